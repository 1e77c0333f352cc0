//! Describes what a run measured.

use serde::{Deserialize, Serialize};

use crate::names::for_shell;

/// Target of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredTarget {
    /// A command that was started for it.
    Command {
        /// The command and its arguments.
        argv: Vec<String>,
        /// Id of the process.
        pid: i32,
    },
    /// Processes that ran already.
    Processes(Vec<MeasuredProcess>),
    /// Threads that ran already.
    Threads(Vec<MeasuredProcess>),
    /// Everything that runs on the machine.
    Everyone {
        /// Only on these CPUs; on all where `None`.
        cpus: Option<Vec<u32>>,
    },
    /// Everything that runs in a control group.
    Cgroup {
        /// Path of the control group's folder.
        path: String,
    },
    /// Nobody: another tool wrote this file.
    File {
        /// Path of the file.
        path: String,
    },
}

/// A process that ran already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredProcess {
    /// Id of the process.
    pub pid: i32,
    /// Name of the process, as the kernel has it.
    pub name: String,
}

impl MeasuredTarget {
    /// The end of a command line that measures it again: `-- prog 'a b'`, `-p 7,8`; empty for a file.
    pub fn selection(&self) -> String {
        let ids = |processes: &[MeasuredProcess]| -> String {
            processes.iter().map(|process| process.pid.to_string()).collect::<Vec<_>>().join(",")
        };
        match self {
            Self::Command { argv, .. } => {
                let words: Vec<_> = argv.iter().map(|word| for_shell(word)).collect();
                format!("-- {}", words.join(" "))
            }
            Self::Processes(processes) => format!("-p {}", ids(processes)),
            Self::Threads(threads) => format!("-t {}", ids(threads)),
            Self::Everyone { cpus: Some(cpus) } => {
                format!("-C {}", cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
            }
            Self::Everyone { cpus: None } => "-a".into(),
            Self::Cgroup { path } => format!("--cgroup {}", for_shell(path)),
            Self::File { .. } => String::new(),
        }
    }

    /// A control group as it is called below where the file system is.
    pub fn cgroup(&self) -> Option<&str> {
        let Self::Cgroup { path } = self else { return None };
        let roots = ["/sys/fs/cgroup/perf_event/", "/sys/fs/cgroup/unified/", "/sys/fs/cgroup/"];
        let name = roots.iter().find_map(|root| path.strip_prefix(root)).unwrap_or(path);
        Some(if name.is_empty() { "/" } else { name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_what_chooses_the_target_again() {
        let everyone = |cpus: Option<Vec<u32>>| MeasuredTarget::Everyone { cpus }.selection();
        assert_eq!([everyone(None), everyone(Some(vec![2, 3]))], ["-a", "-C 2,3"]);
        let command = MeasuredTarget::Command { argv: vec!["sh".into(), "-c".into(), "a b".into()], pid: 1 };
        assert_eq!(command.selection(), "-- sh -c 'a b'");
    }

    #[test]
    fn a_control_group_is_called_as_below_its_file_system() {
        let called = |path: &str| MeasuredTarget::Cgroup { path: path.into() }.cgroup().map(str::to_owned);
        assert_eq!(called("/sys/fs/cgroup/unified/a/b").as_deref(), Some("a/b"));
        assert_eq!(called("/sys/fs/cgroup/a").as_deref(), Some("a"));
        assert_eq!(called("/sys/fs/cgroup/").as_deref(), Some("/"));
        assert_eq!(MeasuredTarget::Everyone { cpus: None }.cgroup(), None);
    }
}
