//! Reads how busy the CPUs were, how fast they run, and how often heat slowed them down.

use std::collections::BTreeMap;

use super::HostFiles;
use crate::units::{ClockTicks, CpuNs};

/// Numbers of CPUs that were slowed down by heat, of a core and of a package.
const THROTTLES: [&str; 2] = ["core_throttle_count", "package_throttle_count"];

/// What a CPU has done since the machine started, as `/proc/stat` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    /// The CPU; `None` of all together.
    pub cpu: Option<u32>,
    /// In user space, also at a low priority.
    pub user: ClockTicks,
    /// In the kernel, with interrupts.
    pub system: ClockTicks,
    /// For other virtual machines.
    pub stolen: ClockTicks,
}

/// What `/proc/stat` says of the machine since it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostStat {
    /// What the CPUs have done, all together first; empty where the kernel doesn't say.
    pub cpus: Vec<CpuTicks>,
    /// Processes and threads that were started; `None` where the kernel doesn't say.
    pub started: Option<u64>,
}

impl CpuTicks {
    /// A line `cpuN user nice system idle iowait irq softirq steal` of proc(5); old kernels leave the last ones out.
    /// The line of all CPUs has no number.
    fn parse(line: &str) -> Option<Self> {
        let (number, fields) = line.strip_prefix("cpu")?.split_once(' ')?;
        let cpu = if number.is_empty() { None } else { Some(number.parse().ok()?) };
        let ticks: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let [user, nice, system, _idle, _waits, rest @ ..] = &ticks[..] else { return None };
        let ticks = |field: usize| ClockTicks(rest.get(field).copied().unwrap_or(0));
        Some(Self {
            cpu,
            user: ClockTicks(*user) + ClockTicks(*nice),
            system: ClockTicks(*system) + ticks(0) + ticks(1),
            stolen: ticks(2),
        })
    }

    /// How long it has been busy, also for other virtual machines.
    pub fn busy(&self) -> CpuNs {
        (self.user + self.system + self.stolen).cpu_time()
    }
}

impl HostFiles {
    /// What `/proc/stat` says.
    pub fn stat(&self) -> HostStat {
        let text = self.text("proc/stat").unwrap_or_default();
        HostStat {
            cpus: text.lines().filter_map(CpuTicks::parse).collect(),
            started: text.lines().find_map(|line| line.strip_prefix("processes ")?.trim().parse().ok()),
        }
    }

    /// What the CPUs have done, all together first; empty where the kernel doesn't say.
    pub fn cpu_ticks(&self) -> Vec<CpuTicks> {
        self.stat().cpus
    }

    /// How long each CPU has been busy since the machine started, also for other virtual machines; empty where the
    /// kernel doesn't say.
    pub fn busy(&self) -> BTreeMap<u32, CpuNs> {
        let busy = |of: CpuTicks| Some((of.cpu?, of.busy()));
        self.cpu_ticks().into_iter().filter_map(busy).collect()
    }

    /// The frequency of a CPU in hertz.
    pub fn frequency(&self, cpu: u32) -> Option<f64> {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        let kilohertz: f64 = self.text(&path)?.parse().ok()?;
        Some(kilohertz * 1e3)
    }

    /// How often heat has slowed a CPU down, by itself or with its package; `None` where the kernel doesn't count that.
    pub fn throttles(&self, cpu: u32) -> Option<u64> {
        let count = |name| self.text(&format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{name}"))?.parse().ok();
        let counts: Vec<u64> = THROTTLES.into_iter().filter_map(count).collect();
        (!counts.is_empty()).then(|| counts.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn loads_by_hand() {
        let root = std::env::temp_dir().join(format!("perfprop-load-{}", std::process::id()));
        for (path, text) in [
            ("proc/stat", "cpu  30 0 0 0 0 0 0 0 0 0\ncpu0 1 2 3 1000 1000 4 5 6 7 8\ncpu3 9 0 0 1\nintr 5\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2400000\n"),
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n"),
            ("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "4\n"),
        ] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let host = HostFiles::under(&root);
        let ticks = |[user, system, stolen]: [u64; 3], cpu| CpuTicks {
            cpu,
            user: ClockTicks(user),
            system: ClockTicks(system),
            stolen: ClockTicks(stolen),
        };
        assert_eq!(host.cpu_ticks(), [ticks([30, 0, 0], None), ticks([3, 12, 6], Some(0))]);
        // 21 ticks of 10 ms; what guests use is in the user's time already. A line that is cut says nothing.
        assert_eq!(host.busy(), BTreeMap::from([(0, CpuNs(210_000_000))]));
        assert_eq!((host.frequency(0), host.throttles(0)), (Some(2.4e9), Some(7)));
        assert_eq!((host.frequency(3), host.throttles(3)), (None, None));
        fs::remove_dir_all(root).unwrap();
        assert!(HostFiles::under(Path::new("/nonexistent")).busy().is_empty());
    }
}
