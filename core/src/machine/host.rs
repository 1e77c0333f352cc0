//! Says what a machine is and what this process may do on it, from the machine's files.

use std::fs;
use std::path::Path;

use nix::unistd::Pid;

use crate::events::{Machine, Pmu, Resolver};
use crate::host::{HostFiles, field};

/// A machine, and this process on it, by its files.
#[derive(Clone, Debug)]
pub struct Host {
    files: HostFiles,
    /// Resolver of the machine's event names.
    pub resolver: Resolver,
}

/// What the kernel says of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// The effective user id.
    pub uid: u32,
    /// `CapEff`, a bit for each capability.
    pub capabilities: u64,
    /// Whether a seccomp filter looks at its system calls.
    pub filtered: bool,
    /// Whether programs can't gain rights by exec, as `setcap` would have it.
    pub no_new_privs: bool,
    /// Whether its rights are those of a user namespace, which the kernel takes for nothing here.
    pub in_user_namespace: bool,
}

/// The capabilities that counting has to do with, as bits of `CapEff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `CAP_IPC_LOCK`: may lock any amount of memory.
    IpcLock = 14,
    /// `CAP_SYS_PTRACE`: may look into other users' processes.
    SysPtrace = 19,
    /// What `CAP_PERFMON` was before Linux 5.8, and much else.
    SysAdmin = 21,
    /// `CAP_SYSLOG`: may see the kernel's addresses.
    Syslog = 34,
    /// `CAP_PERFMON`: may count everything.
    Perfmon = 38,
}

impl Capability {
    /// All capabilities that bear on counting.
    pub const ALL: [Self; 5] = [Self::Perfmon, Self::SysAdmin, Self::SysPtrace, Self::IpcLock, Self::Syslog];

    /// The capability's name in the manual pages.
    pub fn name(self) -> &'static str {
        match self {
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::Syslog => "CAP_SYSLOG",
            Self::Perfmon => "CAP_PERFMON",
        }
    }
}

impl Process {
    /// Whether it has the capability, as far as the kernel takes it for one.
    pub fn can(&self, capability: Capability) -> bool {
        !self.in_user_namespace && self.capabilities >> (capability as u32) & 1 == 1
    }

    /// Whether no `perf_event_paranoid` keeps it from counting.
    pub fn may_count_everything(&self) -> bool {
        self.can(Capability::Perfmon) || self.can(Capability::SysAdmin)
    }
}

/// A soft and a hard limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Soft limit: what holds now.
    pub soft: Option<u64>,
    /// Hard limit: what the soft one can be raised to.
    pub hard: Option<u64>,
}

impl Host {
    /// The machine that this program runs on.
    pub fn here() -> Self {
        Self::with(Resolver::new(Machine::here()))
    }

    /// The host below the usual root, with a resolver that may know a vendor's tables.
    pub fn with(resolver: Resolver) -> Self {
        Self { files: HostFiles::here(), resolver }
    }

    /// A machine whose `proc/` and `sys/` lie under `root`.
    pub fn under(root: &Path) -> Self {
        Self { files: HostFiles::under(root), resolver: Resolver::new(Machine::under(root)) }
    }

    fn text(&self, path: &str) -> Option<String> {
        self.files.text(path)
    }

    /// The command that gives the running program the right to count everything.
    pub(super) fn setcap(&self) -> String {
        self.files.setcap()
    }

    /// The path of a file as the machine itself calls it.
    pub(super) fn inside(&self, path: &Path) -> String {
        self.files.inside(path)
    }

    /// A number below `/proc/sys/kernel`.
    pub fn setting(&self, name: &str) -> Option<i64> {
        self.files.setting(name)
    }

    /// The kernel's release: `6.12.9-amd64`.
    pub fn release(&self) -> Option<String> {
        self.files.release()
    }

    /// What the first CPU calls itself, else its id in perf's form.
    pub fn processor(&self) -> Option<String> {
        self.files.cpu_model().or_else(|| self.resolver.machine().cpu_id())
    }

    /// How many CPUs are online.
    pub fn cpus(&self) -> Option<usize> {
        self.files.online_cpus().ok().map(|cpus| cpus.len())
    }

    /// A CPU that is online: the first, where that is known.
    pub(super) fn some_cpu(&self) -> u32 {
        self.files.online_cpus().ok().and_then(|cpus| cpus.first().copied()).unwrap_or(0)
    }

    /// The PMUs of the cores; several on a hybrid machine.
    pub fn cores(&self) -> impl Iterator<Item = &Pmu> {
        self.resolver.pmus().iter().filter(|pmu| pmu.is_core())
    }

    /// What the kernel says of this process.
    pub fn process(&self) -> Process {
        let status = self.text("proc/self/status").unwrap_or_default();
        let whole = |text: String| text.split_whitespace().eq(["0", "0", "4294967295"]);
        Process {
            uid: field(&status, "Uid").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok()).unwrap_or_default(),
            capabilities: field(&status, "CapEff").and_then(|bits| u64::from_str_radix(bits, 16).ok()).unwrap_or(0),
            filtered: field(&status, "Seccomp") == Some("2"),
            no_new_privs: field(&status, "NoNewPrivs") == Some("1"),
            in_user_namespace: self.text("proc/self/uid_map").is_some_and(|map| !whole(map)),
        }
    }

    /// Whether `/proc` says what this process may do.
    pub fn has_proc(&self) -> bool {
        self.files.exists("proc/self/status")
    }

    /// Whether `/proc` gives processes other numbers than they have for this one: it is another PID namespace's.
    pub fn has_proc_of_others(&self) -> bool {
        let own = fs::read_link(self.files.path("proc/self"));
        own.is_ok_and(|own| own != Path::new(&Pid::this().to_string()))
    }

    /// The limit of this process that `/proc/self/limits` calls `name`.
    pub fn limit(&self, name: &str) -> Option<Limit> {
        let limits = self.text("proc/self/limits")?;
        let mut words = limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
        let mut next = || words.next().map(|word| word.parse().ok());
        Some(Limit { soft: next()?, hard: next()? })
    }

    /// Whether this process sees where the kernel's functions are: addresses are written as 0 for who
    /// may not. `None` without a list.
    pub fn sees_kernel_addresses(&self) -> Option<bool> {
        let list = self.text("proc/kallsyms").filter(|list| !list.is_empty())?;
        Some(
            list.lines()
                .any(|line| line.split(' ').next().is_some_and(|address| !address.trim_matches('0').is_empty())),
        )
    }

    /// What this machine is, if it is a virtual one: `KVM guest`, `virtual machine`.
    pub fn guest(&self) -> Option<String> {
        self.hypervisor().map(|name| if name == UNKNOWN_HYPERVISOR { name } else { format!("{name} guest") })
    }

    fn hypervisor(&self) -> Option<String> {
        let info = self.text("proc/cpuinfo").unwrap_or_default();
        // x86 tells by a flag; a machine that is rented as a whole has a cloud's name in DMI, too.
        let flag = field(&info, "flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
        let dmi = |file: &str| self.text(&format!("sys/class/dmi/id/{file}")).unwrap_or_default();
        let compatible = self.text("sys/firmware/devicetree/base/compatible").unwrap_or_default();
        let told = [dmi("sys_vendor"), dmi("product_name"), dmi("bios_vendor"), compatible].join(" ");
        if flag == Some(false) || told.contains(".metal") {
            return None;
        }
        let known = HYPERVISORS.iter().find(|(sign, _)| told.contains(sign)).map(|(_, name)| (*name).to_owned());
        let clocks = self.text("sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
        let by_clock = CLOCKS.iter().find(|(sign, _)| clocks.contains(sign)).map(|(_, name)| (*name).to_owned());
        let unknown = || flag.map(|_| UNKNOWN_HYPERVISOR.to_owned());
        self.text("sys/hypervisor/type").or(known).or(by_clock).or_else(unknown)
    }

    /// What this process is contained in, if it is.
    pub fn container(&self) -> Option<String> {
        if let Some(name) = self.text("run/systemd/container").filter(|name| !name.is_empty()) {
            return Some(name);
        }
        if self.files.exists("run/.containerenv") {
            return Some("podman".to_owned());
        }
        let groups = self.text("proc/1/cgroup").unwrap_or_default();
        let by_group = ["kubepods", "docker", "libpod", "containerd", "lxc"].iter().find(|sign| groups.contains(*sign));
        let docker = || self.files.exists(".dockerenv").then(|| "docker".to_owned());
        by_group.map(|sign| (*sign).to_owned()).or_else(docker)
    }
}

/// A virtual machine of which only that is known.
const UNKNOWN_HYPERVISOR: &str = "virtual machine";

/// Clocks that a hypervisor gives its guests.
const CLOCKS: &[(&str, &str)] = &[("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];

/// Words in DMI or the device tree, and the hypervisors or clouds that they stand for.
const HYPERVISORS: &[(&str, &str)] = &[
    ("VMware", "VMware"),
    ("innotek", "VirtualBox"),
    ("VirtualBox", "VirtualBox"),
    ("Microsoft Corporation Virtual", "Hyper-V"),
    ("Xen", "Xen"),
    ("Amazon EC2", "Amazon EC2"),
    ("Google Compute Engine", "Google Compute Engine"),
    ("Firecracker", "Firecracker"),
    ("KVM", "KVM"),
    ("QEMU", "QEMU"),
    ("linux,dummy-virt", "QEMU"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_of_a_user_namespace_is_none() {
        let all = Process { capabilities: u64::MAX, ..Process::default() };
        assert!(all.may_count_everything());
        assert!(!Process { in_user_namespace: true, ..all }.may_count_everything());
        let perfmon = Process { capabilities: 1 << 38, ..Process::default() };
        assert!(perfmon.may_count_everything() && !perfmon.can(Capability::SysAdmin));
    }

    #[test]
    fn a_folder_without_files_tells_nothing() {
        let host = Host::under(Path::new("/nonexistent"));
        assert_eq!((host.release(), host.setting("perf_event_paranoid"), host.cpus()), (None, None, None));
        assert_eq!(host.process(), Process::default());
        assert_eq!((host.hypervisor(), host.container(), host.sees_kernel_addresses()), (None, None, None));
        assert_eq!(host.limit("Max open files"), None);
    }
}
