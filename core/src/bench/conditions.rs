//! Watches what may disturb measurements: other load, changing frequencies, heat.

use std::time::{Duration, Instant};

use nix::sys::resource::UsageWho;

use crate::cost::MachineConditions;
use crate::host::HostFiles;
use crate::number::percent;
use crate::sources::process;
use crate::units::CpuNs;

/// What was read at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LoadReading {
    /// How long all the CPUs have been busy; `None` where the kernel doesn't say.
    busy: Option<CpuNs>,
    /// CPU time of perfprop.
    own: CpuNs,
    /// CPU time of what it has waited for: measured commands, and those around runs.
    waited_for: CpuNs,
    throttles: Option<u64>,
}

/// Which CPU time on the CPUs that are watched isn't that of others.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WatchKind {
    /// On all CPUs: that of perfprop and of all that it has waited for.
    AllCpus,
    /// On the one that measured commands are kept on: theirs, as it isn't known where perfprop and commands around runs were. `None`
    /// where it isn't known how long a command used it, or there are commands around runs.
    OneCpu(Option<CpuNs>),
}

/// Watches the machine from when it is made.
#[derive(Debug)]
pub(super) struct ConditionWatch {
    host: HostFiles,
    cpus: Vec<u32>,
    kind: WatchKind,
    since: Instant,
    first: LoadReading,
    frequency: Option<(f64, f64)>,
    looked_at: Option<Instant>,
}

/// The kernel may take 10 ms to find a frequency out, so it is asked seldom.
const SELDOM: Duration = Duration::from_secs(1);

/// The least time in which ticks of 10 ms say how busy a CPU was.
const LEAST: Duration = Duration::from_millis(500);

impl ConditionWatch {
    /// Watches one CPU that commands are kept on, or all that are online.
    pub(super) fn new(host: HostFiles, cpu: Option<u32>, has_hooks: bool) -> Self {
        let kind = match cpu {
            Some(_) => WatchKind::OneCpu((!has_hooks).then_some(CpuNs(0))),
            None => WatchKind::AllCpus,
        };
        let cpus = cpu.map_or_else(|| host.online_cpus().unwrap_or_default(), |cpu| vec![cpu]);
        let first = LoadReading::now(&host, &cpus);
        Self { host, cpus, kind, since: Instant::now(), first, frequency: None, looked_at: None }
    }

    /// Adds the CPU time of a measured command, and looks at frequencies while the CPU that it ran on is still awake.
    pub(super) fn after_run(&mut self, used: Option<CpuNs>) {
        if let WatchKind::OneCpu(measured) = &mut self.kind {
            *measured = measured.zip(used).map(|(before, used)| before + used);
        }
        if self.looked_at.is_some_and(|before| before.elapsed() < SELDOM) {
            return;
        }
        self.looked_at = Some(Instant::now());
        let fastest = self.cpus.iter().filter_map(|&cpu| self.host.frequency(cpu)).reduce(f64::max);
        if let Some(now) = fastest {
            let (low, high) = self.frequency.unwrap_or((now, now));
            self.frequency = Some((low.min(now), high.max(now)));
        }
    }

    /// What was seen since it was made.
    pub(super) fn conditions(&self) -> MachineConditions {
        let last = LoadReading::now(&self.host, &self.cpus);
        MachineConditions {
            cpus: self.cpus.len(),
            others_busy: others_busy(self.first, last, self.kind, self.since.elapsed()),
            frequency: self.frequency,
            throttled: self.first.throttles.zip(last.throttles).map(|(first, last)| last.saturating_sub(first)),
        }
    }
}

impl LoadReading {
    fn now(host: &HostFiles, cpus: &[u32]) -> Self {
        let all = host.busy();
        let busy: Vec<u64> = cpus.iter().filter_map(|cpu| Some(all.get(cpu)?.0)).collect();
        let throttles: Vec<u64> = cpus.iter().filter_map(|&cpu| host.throttles(cpu)).collect();
        Self {
            busy: (!busy.is_empty()).then(|| CpuNs(busy.iter().sum())),
            own: process::used(UsageWho::RUSAGE_SELF).all(),
            waited_for: process::used(UsageWho::RUSAGE_CHILDREN).all(),
            throttles: (!throttles.is_empty()).then(|| throttles.iter().sum()),
        }
    }
}

/// How many CPUs were busy with something else. Of one CPU that isn't known where perfprop, which may have been on it, used as much as
/// would be warned of.
fn others_busy(first: LoadReading, last: LoadReading, kind: WatchKind, time: Duration) -> Option<f64> {
    let (busy, perfprop) = (last.busy? - first.busy?, last.own - first.own);
    let time_ns = time.as_nanos() as f64;
    let own = match kind {
        WatchKind::AllCpus => perfprop + (last.waited_for - first.waited_for),
        WatchKind::OneCpu(measured) if perfprop.0 as f64 <= MUCH * time_ns => measured?,
        WatchKind::OneCpu(_) => return None,
    };
    (time >= LEAST).then(|| (busy - own).0 as f64 / time_ns)
}

/// So much of the CPUs' time taken by others is worth a warning.
const MUCH: f64 = 0.05;

/// Frequencies that differ by so much are.
const STEP: f64 = 0.05;

/// A sentence for each thing that may have disturbed measurements.
pub fn warnings(conditions: &MachineConditions, cpu: Option<u32>) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(busy) = conditions.others_busy.filter(|busy| *busy > MUCH * conditions.cpus as f64) {
        let busy = match cpu {
            Some(cpu) => format!("CPU {cpu} busy for {} of the time", percent(busy)),
            None => format!("{busy:.1} of {} CPUs busy", conditions.cpus),
        };
        let instead = if cpu.is_none() { ", or keep the command on a quiet CPU (--cpu-affinity N)" } else { "" };
        all.push(format!("something else kept {busy} while the commands ran: end it{instead}"));
    }
    if let Some((low, high)) = conditions.frequency.filter(|(low, high)| *low < *high * (1.0 - STEP)) {
        let [low, high] = [low, high].map(|hertz| hertz / 1e9);
        all.push(format!(
            "the CPUs' frequency went between {low:.2} and {high:.2} GHz: times of the same work differ; \
             choose the governor performance and switch boost off"
        ));
    }
    if let Some(count) = conditions.throttled.filter(|count| *count > 0) {
        let times = if count == 1 { "once".to_owned() } else { format!("{count} times") };
        all.push(format!(
            "heat slowed the CPUs down {times} while the commands ran: let the machine cool, and measure again"
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn others_are_what_is_busy_and_not_ours() {
        let (all, second) = (WatchKind::AllCpus, Duration::from_secs(1));
        assert_eq!(others_busy(reading(100, 5), reading(2_000_000_100, 500_000_005), all, second), Some(1.5));
        assert_eq!(others_busy(reading(100, 5), reading(200, 500), all, second), Some(0.0), "ticks are coarse");
        assert_eq!(others_busy(reading(0, 0), reading(900, 0), all, LEAST / 2), None, "too short to say");
        assert_eq!(others_busy(LoadReading { busy: None, ..reading(0, 0) }, reading(9, 0), all, second), None);
    }

    /// Of what all CPUs did for perfprop, a fiftieth is its own, and the rest that of what it waited for.
    fn reading(busy: u64, all: u64) -> LoadReading {
        let own = all / 50;
        LoadReading { busy: Some(CpuNs(busy)), own: CpuNs(own), waited_for: CpuNs(all - own), throttles: None }
    }

    #[test]
    fn on_one_cpu_only_measured_commands_are_ours() {
        let second = Duration::from_secs(1);
        let of = |measured: Option<u64>, all: u64| {
            let kind = WatchKind::OneCpu(measured.map(CpuNs));
            others_busy(reading(0, 0), reading(900_000_000, all), kind, second)
        };
        // Commands around runs used another CPU for two seconds.
        assert_eq!(of(Some(600_000_000), 2_500_000_000), Some(0.3));
        assert_eq!(of(None, 600_000_000), None, "commands around runs may have been there");
        assert_eq!(of(Some(600_000_000), 2_600_000_000), None, "perfprop may have been there for 0.052 s");
        let mut watch = ConditionWatch::new(HostFiles::under(std::path::Path::new("/none")), Some(0), false);
        watch.after_run(Some(CpuNs(5)));
        watch.after_run(Some(CpuNs(6)));
        assert_eq!(watch.kind, WatchKind::OneCpu(Some(CpuNs(11))));
        watch.after_run(None);
        assert_eq!(watch.kind, WatchKind::OneCpu(None));
    }

    proptest::proptest! {
        /// More work of perfprop's own never makes others busier.
        #[test]
        fn own_work_is_never_that_of_others(busy in 0_u64..4_000_000_000, measured in 0_u64..2_000_000_000, more in 0_u64..1_000_000_000) {
            let others = |measured: u64| {
                let kind = WatchKind::OneCpu(Some(CpuNs(measured)));
                others_busy(reading(0, 0), reading(busy, 0), kind, Duration::from_secs(1)).unwrap()
            };
            proptest::prop_assert!(0.0 <= others(measured + more) && others(measured + more) <= others(measured));
        }
    }

    #[test]
    fn a_machine_is_watched_from_its_folder() {
        let root = std::env::temp_dir().join(format!("perfprop-conditions-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        };
        let frequency = |cpu: u32, kilohertz: u64| {
            write(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"), &kilohertz.to_string());
        };
        write("sys/devices/system/cpu/online", "0-1");
        write("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "3");
        frequency(0, 800_000);
        frequency(1, 3_000_000);
        let mut watch = ConditionWatch::new(HostFiles::under(&root), None, false);
        watch.after_run(None);
        frequency(1, 2_000_000);
        watch.after_run(None);
        assert_eq!(watch.frequency, Some((3e9, 3e9)), "not asked again so soon");
        watch.looked_at = None;
        watch.after_run(None);
        write("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "5");
        let seen = watch.conditions();
        fs::remove_dir_all(&root).unwrap();
        let expected =
            MachineConditions { cpus: 2, others_busy: None, frequency: Some((2e9, 3e9)), throttled: Some(2) };
        assert_eq!(seen, expected);
        let said = warnings(&seen, None);
        assert!(said[0].contains("between 2.00 and 3.00 GHz") && said[1].contains("2 times"), "{said:?}");
    }

    #[test]
    fn a_quiet_machine_gives_no_warning() {
        let quiet =
            MachineConditions { cpus: 4, others_busy: Some(0.1), frequency: Some((2.9e9, 3e9)), throttled: Some(0) };
        assert!(warnings(&quiet, None).is_empty() && warnings(&MachineConditions::default(), Some(1)).is_empty());
        let loud = MachineConditions { others_busy: Some(1.24), ..quiet };
        assert_eq!(
            warnings(&loud, None),
            [
                "something else kept 1.2 of 4 CPUs busy while the commands ran: end it, or keep the command on a quiet CPU (--cpu-affinity N)"
            ]
        );
        let pinned = MachineConditions { cpus: 1, others_busy: Some(0.25), ..loud };
        assert_eq!(
            warnings(&pinned, Some(3)),
            ["something else kept CPU 3 busy for 25.0% of the time while the commands ran: end it"]
        );
    }
}
