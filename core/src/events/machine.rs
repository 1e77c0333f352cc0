//! Reads the PMUs of a machine from sysfs and its tracepoints from tracefs.
//!
//! Nothing is cached: sysfs changes when a driver is loaded, and reading it is cheap.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::cpu;
use crate::host::{HostFiles, text};

/// Where a machine describes its events.
#[derive(Clone, Debug)]
pub struct Machine {
    devices: PathBuf,
    cpus: PathBuf,
    pmem: PathBuf,
    cpuinfo: PathBuf,
    /// Path of the file in which an Arm machine's kernel names its first core.
    midr: PathBuf,
    /// Path of the list of the kernel's functions.
    kallsyms: PathBuf,
    /// The first that exists and isn't empty is taken.
    tracefs: Vec<PathBuf>,
    libpfm: bool,
    emulated: bool,
}

impl Machine {
    /// The machine that this program runs on, with libpfm where it is built in.
    pub fn here() -> Self {
        Self { libpfm: true, ..Self::under(Path::new("/")) }
    }

    /// A machine whose `sys/` lies under `root`; libpfm, which asks this CPU, is left out.
    pub fn under(root: &Path) -> Self {
        let host = HostFiles::under(root);
        Self {
            devices: host.path("sys/bus/event_source/devices"),
            cpus: host.path("sys/devices/system/cpu"),
            pmem: host.path("sys/firmware/acpi/tables/NFIT"),
            cpuinfo: host.path("proc/cpuinfo"),
            midr: host.path("sys/devices/system/cpu/cpu0/regs/identification/midr_el1"),
            kallsyms: host.path("proc/kallsyms"),
            tracefs: vec![host.path("sys/kernel/tracing"), host.path("sys/kernel/debug/tracing")],
            libpfm: false,
            emulated: false,
        }
    }

    /// The emulated PMU, which has the events of its model and no others.
    pub fn emulated() -> Self {
        // A folder that no machine has: what the kernel knows isn't counted by the model.
        Self { emulated: true, ..Self::under(Path::new("/proc/self/emulated")) }
    }

    /// Whether it is the emulated PMU.
    pub fn is_emulated(&self) -> bool {
        self.emulated
    }

    /// Whether libpfm may be asked about this machine.
    pub fn has_libpfm(&self) -> bool {
        self.libpfm && cfg!(feature = "pfm")
    }

    /// The folder of the PMUs: `/sys/bus/event_source/devices`.
    pub fn devices(&self) -> &Path {
        &self.devices
    }

    /// The folder of the CPUs: `/sys/devices/system/cpu`.
    pub fn cpus(&self) -> &Path {
        &self.cpus
    }

    /// What the kernel says of the processors: `/proc/cpuinfo`.
    pub fn cpuinfo(&self) -> &Path {
        &self.cpuinfo
    }

    /// Whether the firmware lists persistent memory.
    pub fn has_pmem(&self) -> bool {
        self.pmem.exists()
    }

    /// Whether the CPU is one that perf's `strcmp_cpuid_str` means by `pattern`. An Arm core is meant
    /// from the revision of the pattern on.
    pub fn is_cpu(&self, pattern: &str) -> bool {
        match text(&self.midr) {
            Ok(midr) => cpu::is_core(pattern, &midr),
            Err(_) => self.cpu_id().is_some_and(|id| cpu::matches(pattern, &id)),
        }
    }

    /// The kernel's own list of tracepoints, one a line; empty where there is none.
    pub(super) fn available_events(&self) -> String {
        let read = |folder: &PathBuf| fs::read_to_string(folder.join("available_events")).ok();
        self.tracefs.iter().find_map(read).unwrap_or_default()
    }

    /// Which CPU the first one is, as perf writes it: `GenuineIntel-6-AD-1` (vendor, family in
    /// decimal, model and stepping in hexadecimal), `0x00000000410fd0c0` (Arm's MIDR without variant
    /// and revision); `None` where the kernel doesn't say it.
    pub fn cpu_id(&self) -> Option<String> {
        let midr = text(&self.midr).ok().and_then(|midr| cpu::from_midr(&midr));
        midr.or_else(|| cpu::from_cpuinfo(&text(&self.cpuinfo).ok()?))
    }

    /// The list of the kernel's functions, `/proc/kallsyms`.
    pub(super) fn kallsyms(&self) -> &Path {
        &self.kallsyms
    }

    /// The folder of the tracepoints, `/sys/kernel/tracing/events`.
    ///
    /// # Errors
    /// [`TracefsError`] says which folder it was and what is wrong with it.
    pub fn tracepoints(&self) -> Result<PathBuf, TracefsError> {
        let mut problem = TracefsError::NotMounted(self.tracefs[0].clone());
        for folder in &self.tracefs {
            let events = folder.join("events");
            match fs::read_dir(&events) {
                Ok(_) => return Ok(events),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    problem = TracefsError::Forbidden(events);
                }
                Err(_) => {}
            }
        }
        Err(problem)
    }
}

/// Why tracepoints can't be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracefsError {
    /// No tracefs at this folder, nor at the older place.
    NotMounted(PathBuf),
    /// This folder may not be read.
    Forbidden(PathBuf),
}

/// The names in a folder that aren't hidden, sorted; empty when it can't be read.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    names
}

/// Whether `name` can be the name of one file: no way out of its folder.
pub(super) fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}
