//! Reads what `/proc` and `/sys` say of the machine, below a root folder that tests choose.
//!
//! What they say of a process or thread is not the machine's: `sources/process.rs`, `stacks/live/` and, below
//! the same root folder, `threads/reader.rs` read that.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use nix::unistd::{SysconfVar, sysconf};

use crate::names::for_shell;

mod clock;
mod load;
mod quota;
mod resources;

pub use load::{CpuTicks, HostStat};
pub use quota::QuotaPeriods;
pub use resources::{DiskBytes, MachineResources};

/// The longest file that is read; `/proc/cpuinfo` of hundreds of CPUs is cut.
const LONGEST_FILE: u64 = 1 << 20;

/// The files of a machine.
#[derive(Clone, Debug)]
pub struct HostFiles {
    root: PathBuf,
}

impl HostFiles {
    /// The machine that this program runs on.
    pub fn here() -> Self {
        Self::under(Path::new("/"))
    }

    /// A machine whose `proc/` and `sys/` lie under `root`.
    pub fn under(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// The path of a file from this program's root: `proc/cpuinfo` is `/proc/cpuinfo` here.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The running program in a command for a shell: its whole path, as `sudo` looks for programs in folders of its
    /// own; what finds it by its name where `/proc` doesn't say.
    pub fn own_program(&self) -> String {
        let program = fs::read_link(self.path("proc/self/exe")).ok().filter(|program| program.exists());
        program.map_or_else(|| "\"$(command -v perfprop)\"".to_owned(), |program| for_shell(&program.to_string_lossy()))
    }

    /// The command that gives the running program the right to count everything.
    pub fn setcap(&self) -> String {
        format!("sudo setcap cap_perfmon+ep {}", self.own_program())
    }

    /// The path of a file as the machine itself calls it.
    pub fn inside(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        Path::new("/").join(inside).display().to_string()
    }

    /// What a file says, as [`text`] has it; `None` where it can't be read.
    pub fn text(&self, path: &str) -> Option<String> {
        text(&self.path(path)).ok()
    }

    /// Whether there is such a file or folder.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// A number below `/proc/sys/kernel`.
    pub fn setting(&self, name: &str) -> Option<i64> {
        self.text(&format!("proc/sys/kernel/{name}"))?.parse().ok()
    }

    /// Whether the NMI watchdog holds a counter of each CPU.
    pub fn has_watchdog(&self) -> bool {
        self.setting("nmi_watchdog") == Some(1)
    }

    /// The kernel's release: `6.12.9-amd64`.
    pub fn release(&self) -> Option<String> {
        self.text("proc/sys/kernel/osrelease")
    }

    /// What the first CPU calls itself; Arm kernels don't say it.
    pub fn cpu_model(&self) -> Option<String> {
        field(&self.text("proc/cpuinfo")?, "model name").map(str::to_owned)
    }

    /// The CPUs that are online, ascending.
    ///
    /// # Errors
    /// Fails if neither sysfs nor, where that isn't mounted, `/proc` says it.
    pub fn online_cpus(&self) -> io::Result<Vec<u32>> {
        let path = self.path("sys/devices/system/cpu/online");
        match text(&path) {
            Ok(text) => {
                parse_cpus(&text).ok_or_else(|| io::Error::other(format!("cannot read the list of CPUs '{text}'")))
            }
            Err(error) => self.cpus_with_times().ok_or_else(|| {
                let words = format!(
                    "cannot read {}: {error}\n      which CPUs there are stands in /sys:  mount -t sysfs sysfs /sys",
                    path.display()
                );
                io::Error::new(error.kind(), words)
            }),
        }
    }

    /// The CPUs of which `/proc/stat` has times: those that are online, ascending.
    fn cpus_with_times(&self) -> Option<Vec<u32>> {
        let stat = self.text("proc/stat")?;
        // The first line, the sum of all, has no number there.
        let numbers = stat.lines().filter_map(|line| line.strip_prefix("cpu")?.split(' ').next());
        let cpus: Vec<_> = numbers.filter_map(|number| number.parse().ok()).collect();
        Some(cpus).filter(|cpus| !cpus.is_empty() && cpus.is_sorted())
    }

    /// The last id that the kernel gave to a process or thread: the end of `/proc/loadavg`.
    pub fn last_pid(&self) -> Option<i32> {
        self.text("proc/loadavg")?.split_whitespace().last()?.parse().ok()
    }

    /// Whether a core PMU records calls in registers, and says how many: Intel's LBR.
    pub fn has_lbr(&self) -> bool {
        let has = |pmu| self.exists(&format!("sys/bus/event_source/devices/{pmu}/caps/branches"));
        ["cpu", "cpu_core", "cpu_atom"].into_iter().any(has)
    }
}

/// What a file of `/proc` or `/sys` says, without white space and zeros around it.
///
/// # Errors
/// Returns the operating system's error.
pub fn text(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?.take(LONGEST_FILE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned())
}

/// The size of the kernel's pages, in bytes: 4096, or up to 64 KiB on AArch64.
pub fn page_size() -> u64 {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|page| u64::try_from(page).ok());
    page.filter(|page| *page > 0).unwrap_or(4096)
}

/// The value behind `name` and a colon at the beginning of a line.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    };
    text.lines().find_map(value)
}

/// A list of CPUs as the kernel and perf write it: `0-2,5`.
pub fn parse_cpus(text: &str) -> Option<Vec<u32>> {
    /// A limit on CPU numbers: more than Linux can have.
    const MOST: u32 = 1 << 16;
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn a_folder_without_files_says_nothing() {
        let host = HostFiles::under(Path::new("/nonexistent"));
        assert_eq!((host.release(), host.setting("perf_event_paranoid"), host.cpu_model()), (None, None, None));
        assert!(host.online_cpus().is_err() && host.last_pid().is_none());
        assert!(!host.has_watchdog() && !host.has_lbr() && !host.exists("proc"));
    }

    #[test]
    fn a_machine_is_read_from_its_folder() {
        let root = std::env::temp_dir().join(format!("perfprop-host-{}", std::process::id()));
        for (path, text) in [
            ("proc/sys/kernel/nmi_watchdog", "1\n"),
            ("proc/sys/kernel/osrelease", "6.1.0\n"),
            ("proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU\n"),
            ("proc/loadavg", "0.00 0.01 0.05 1/200 4711\n"),
            ("sys/devices/system/cpu/online", "0-2,5\n"),
            ("sys/bus/event_source/devices/cpu/caps/branches", "32\n"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let host = HostFiles::under(&root);
        assert!(host.has_watchdog() && host.has_lbr());
        assert_eq!((host.release().as_deref(), host.cpu_model().as_deref()), (Some("6.1.0"), Some("A CPU")));
        assert_eq!((host.last_pid(), host.online_cpus().unwrap()), (Some(4711), vec![0, 1, 2, 5]));
        // As in a root folder without sysfs.
        fs::remove_dir_all(root.join("sys")).unwrap();
        fs::write(root.join("proc/stat"), "cpu  9 9 9 9\ncpu0 1 2 3 4\ncpu3 5 6 7 8\nintr 12 0\n").unwrap();
        assert_eq!(host.online_cpus().unwrap(), [0, 3]);
        fs::remove_file(root.join("proc/stat")).unwrap();
        let error = host.online_cpus().unwrap_err().to_string();
        assert!(error.contains("cpu/online: No such file") && error.contains("mount -t sysfs"), "{error}");
        assert_eq!(host.inside(&root.join("proc/cpuinfo")), "/proc/cpuinfo");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn lists_of_cpus() {
        assert_eq!(parse_cpus("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse_cpus("3,1,3"), Some(vec![1, 3]));
        assert!(["", "2-1", "a", "0-99999999", "1,,2", "-1"].iter().all(|text| parse_cpus(text).is_none()));
    }
}
