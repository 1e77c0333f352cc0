//! Adds up how often the CPU quota of a target's control groups was used up, as long as its process stays in them.

use crate::host::{HostFiles, QuotaPeriods};

/// How often a quota was used up since the first reading.
#[derive(Debug, Default)]
pub(super) struct QuotaWatch {
    /// The control groups at the last reading, as `/proc` has them, with what they and those above them said then.
    last: Option<(String, Vec<QuotaPeriods>)>,
    since_first: Option<QuotaPeriods>,
}

impl QuotaWatch {
    /// The periods since the first reading with the control groups that a process is in now; `None` before one of them
    /// has used a quota. What the process moved to counts from then on.
    ///
    /// Of groups within one another that which holds the process back most counts: a pod of Kubernetes has a quota
    /// beside those of its containers.
    pub(super) fn read(&mut self, host: &HostFiles, pid: i32) -> Option<QuotaPeriods> {
        let Some(groups) = host.control_groups(pid) else { return self.since_first };
        let now = host.quota_periods(&groups);
        let has_quota = now.iter().any(|of| of.periods > 0);
        let more = match &self.last {
            Some((before, earlier)) if *before == groups && earlier.len() == now.len() => now
                .iter()
                .zip(earlier)
                .map(|(now, earlier)| *now - *earlier)
                .max_by_key(|of| (of.throttled, of.periods)),
            _ => None,
        };
        self.last = Some((groups, now));
        if has_quota || self.since_first.is_some() {
            self.since_first = Some(self.since_first.unwrap_or_default() + more.unwrap_or_default());
        }
        self.since_first
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn periods_count_from_the_first_reading_and_from_a_move_on() {
        let root = std::env::temp_dir().join(format!("perfprop-quota-watch-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let stat = |periods, throttled| format!("nr_periods {periods}\nnr_throttled {throttled}\n");
        write("proc/7/cgroup", "0::/free\n");
        let host = HostFiles::under(&root);
        let mut watch = QuotaWatch::default();
        assert_eq!(watch.read(&host, 7), None);
        write("proc/7/cgroup", "0::/a\n");
        write("sys/fs/cgroup/a/cpu.stat", &stat(100, 50));
        let mut read = |periods, throttled| {
            assert_eq!(watch.read(&host, 7), Some(QuotaPeriods { periods, throttled }));
        };
        read(0, 0);
        write("sys/fs/cgroup/a/cpu.stat", &stat(110, 58));
        read(10, 8);
        write("proc/7/cgroup", "0::/b\n");
        write("sys/fs/cgroup/b/cpu.stat", &stat(900, 900));
        read(10, 8);
        write("sys/fs/cgroup/b/cpu.stat", &stat(902, 901));
        read(12, 9);
        // The group above throttles more seldom, until it does it more often.
        write("sys/fs/cgroup/cpu.stat", &stat(700, 300));
        read(12, 9);
        write("sys/fs/cgroup/cpu.stat", &stat(710, 302));
        write("sys/fs/cgroup/b/cpu.stat", &stat(922, 907));
        read(32, 15);
        write("sys/fs/cgroup/cpu.stat", &stat(713, 305));
        read(35, 18);
        // A process that has ended has said its last.
        fs::remove_dir_all(root.join("proc/7")).unwrap();
        read(35, 18);
        fs::remove_dir_all(root).unwrap();
    }
}
