//! Reads how often control groups have used up their CPU quota.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

use super::HostFiles;

/// Periods of a CPU quota (100 ms each, unless the group says otherwise) in which a control group had something to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaPeriods {
    /// All of them: `nr_periods` of `cpu.stat`.
    pub periods: u64,
    /// Those in which the quota was used up, so that threads had to wait for the next one: `nr_throttled`.
    pub throttled: u64,
}

impl QuotaPeriods {
    /// The lines `nr_periods` and `nr_throttled` of `cpu.stat`; `None` where the group has no CPU controller.
    fn parse(text: &str) -> Option<Self> {
        let value = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            value.trim().parse().ok()
        };
        Some(Self { periods: value("nr_periods")?, throttled: value("nr_throttled")? })
    }
}

impl Add for QuotaPeriods {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (periods, throttled) = (self.periods + other.periods, self.throttled + other.throttled);
        Self { periods, throttled }
    }
}

/// What came since an earlier reading; nothing where that is larger, as of another group.
impl Sub for QuotaPeriods {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        let (periods, throttled) = (self.periods, self.throttled);
        Self {
            periods: periods.saturating_sub(earlier.periods),
            throttled: throttled.saturating_sub(earlier.throttled),
        }
    }
}

impl HostFiles {
    /// The control groups of a process as `/proc` has them.
    pub fn control_groups(&self, pid: i32) -> Option<String> {
        self.text(&format!("proc/{pid}/cgroup"))
    }

    /// The periods of the quotas that hold in these control groups, as `/proc` has them: of each group above and then
    /// of the group itself, as far as they have a CPU controller; without a quota there are none.
    pub fn quota_periods(&self, groups: &str) -> Vec<QuotaPeriods> {
        let Some(group) = groups.lines().find_map(cpu_group) else { return Vec::new() };
        // In a container without a namespace of its own for groups the path is the machine's, and its files are those
        // of the root here.
        let above = group.path.match_indices('/').map(|(at, _)| &group.path[..at]);
        above.chain([group.path]).filter_map(|path| self.quota_of(&group.mounted, path)).collect()
    }

    /// The periods of one group, below the first folder that has it.
    fn quota_of(&self, mounted: &[String], path: &str) -> Option<QuotaPeriods> {
        let read = |folder: &String| QuotaPeriods::parse(&self.text(&format!("{folder}{path}/cpu.stat"))?);
        mounted.iter().find_map(read)
    }
}

/// A control group that may have a CPU quota.
struct CpuGroup<'a> {
    /// Where its hierarchy is mounted.
    mounted: Vec<String>,
    /// Its path in there: `/a/b`, or nothing of the root.
    path: &'a str,
}

/// The group of a line `4:cpu,cpuacct:/a/b` of cgroups(7) if that is of the CPU controller, or `0::/a/b` of version 2,
/// which comes last.
fn cpu_group(line: &str) -> Option<CpuGroup<'_>> {
    let (number, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(':')?;
    // A process outside of this namespace has a path like `/../other`.
    let path = Some(path.trim_end_matches('/')).filter(|path| !path.split('/').any(|part| part == ".."))?;
    let root = "sys/fs/cgroup";
    let mounted = if controllers.split(',').any(|controller| controller == "cpu") {
        vec![format!("{root}/{controllers}"), format!("{root}/cpu")]
    } else if number == "0" {
        vec![root.to_owned(), format!("{root}/unified")]
    } else {
        return None;
    };
    Some(CpuGroup { mounted, path })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn machine(name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("perfprop-quota-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join("sys/fs/cgroup").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn quotas_of_version_two_by_hand() {
        let files = [
            ("cpu.stat", "usage_usec 9\n"),
            ("a/cpu.stat", "usage_usec 9\nnr_periods 40\nnr_throttled 30\nthrottled_usec 1\n"),
            ("a/b/cpu.stat", "nr_periods 2\nnr_throttled 1\n"),
            ("c/cpu.stat", "nr_periods 0\nnr_throttled 0\n"),
        ];
        let root = machine("two", &files);
        let host = HostFiles::under(&root);
        let read = |groups| -> Vec<(u64, u64)> {
            host.quota_periods(groups).iter().map(|of| (of.periods, of.throttled)).collect()
        };
        assert_eq!(read("0::/a\n"), [(40, 30)]);
        assert_eq!(read("0::/a/b\n"), [(40, 30), (2, 1)]);
        // A group that isn't seen here, of which one above is.
        assert_eq!(read("0::/a/unseen\n"), [(40, 30)]);
        // No quota was used.
        assert_eq!(read("0::/c\n"), [(0, 0)]);
        for none in ["0::/\n", "0::/../a\n", "", "1:name=systemd:/a\n", "no line"] {
            assert_eq!(read(none), [], "{none}");
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn quotas_of_version_one_by_hand() {
        let files = [
            ("cpu,cpuacct/a/cpu.stat", "nr_periods 7\nnr_throttled 3\nthrottled_time 5\n"),
            ("unified/a/cpu.stat", "usage_usec 9\n"),
        ];
        let root = machine("one", &files);
        let groups = "9:memory:/m\n4:cpu,cpuacct:/a\n0::/a\n";
        let host = HostFiles::under(&root);
        assert_eq!(host.quota_periods(groups), [QuotaPeriods { periods: 7, throttled: 3 }]);
        fs::rename(root.join("sys/fs/cgroup/cpu,cpuacct"), root.join("sys/fs/cgroup/cpu")).unwrap();
        assert_eq!(host.quota_periods(groups), [QuotaPeriods { periods: 7, throttled: 3 }]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_smaller_reading_is_no_time() {
        let (less, more) = (QuotaPeriods { periods: 1, throttled: 2 }, QuotaPeriods { periods: 5, throttled: 2 });
        assert_eq!(more - less, QuotaPeriods { periods: 4, throttled: 0 });
        assert_eq!(less - more, QuotaPeriods::default());
    }
}
