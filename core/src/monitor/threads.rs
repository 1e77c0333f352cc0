//! Keeps what the target's threads did, and computes it over a time.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Add;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Monitor, Point};
use crate::host::{MachineResources, QuotaPeriods};
use crate::names::shown;
use crate::plan::RowIndex;
use crate::run::{End, MeasuredTarget};
use crate::threads::{
    EndedProcesses, ThreadReading, ThreadSnapshot, ThreadUse, Uses, of_ended_children, take_older_looks, uses,
};
use crate::units::{ClockTicks, CpuNs, WallNs};

/// Snapshots that are kept at most.
const KEPT: usize = 128;

/// How long after the last snapshot a run may end that it belongs to.
const AFTER_LAST_SNAPSHOT: WallNs = WallNs(50_000_000);

/// How long before the end of a time looks may be, where those in it are too few: a machine's processes are looked at
/// once a second.
const LONGEST_LOOKS: WallNs = WallNs(15_000_000_000);

/// Snapshots, the oldest first: that of the beginning, the newest, and the less of those between the older they are.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadTrack {
    snapshots: VecDeque<Arc<ThreadSnapshot>>,
}

impl ThreadTrack {
    /// Takes a snapshot; one of a target that has ended says nothing.
    pub(super) fn take(&mut self, snapshot: &Arc<ThreadSnapshot>) {
        if let Some(first) = &snapshot.first
            && self.snapshots.is_empty()
        {
            self.take(first);
        }
        if snapshot.threads.is_empty() {
            return;
        }
        if self.snapshots.len() == KEPT {
            self.thin();
        }
        self.snapshots.push_back(Arc::clone(snapshot));
    }

    /// Leaves out every other one of the older half. What ended before it is told by the next.
    fn thin(&mut self) {
        for place in (1..KEPT / 2).step_by(2) {
            let left_out = Arc::clone(&self.snapshots[place]);
            ThreadSnapshot::take_ended(&mut self.snapshots[place + 1], &left_out);
        }
        let mut place = 0_usize..;
        self.snapshots.retain(|_| place.next().is_some_and(|place| place >= KEPT / 2 || place % 2 == 0));
    }

    /// The snapshots since the last that is about so much older than the newest or more, or all; `None` where there is
    /// only one.
    fn since(&self, time: WallNs, interval: WallNs) -> Option<Vec<&ThreadSnapshot>> {
        // Each is as long before the end of its interval as reading takes then.
        let time = WallNs(time.0 - time.min(interval).0 / 4);
        let (later, older) = (self.snapshots.back()?, self.snapshots.len().checked_sub(2)?);
        let is_old = |place: &usize| later.at_ns - self.snapshots[*place].at_ns >= time;
        let first = (0..=older).rev().find(is_old).unwrap_or(0);
        Some(self.snapshots.range(first..).map(AsRef::as_ref).collect())
    }

    /// Whether the memory of a process, when it was read first and in this reading, is as `is` says.
    fn is_sought(&self, last: &ThreadReading, is: impl Fn(u64, u64) -> bool) -> bool {
        // Most have too little to have grown by much: those aren't looked for.
        let is_first = |thread: &&ThreadReading| thread.id() == last.id() && thread.resident > 0;
        let first = || self.snapshots.iter().find_map(|snapshot| snapshot.threads.iter().find(is_first));
        is(0, last.resident) && first().is_some_and(|first| is(first.resident, last.resident))
    }

    /// The snapshots before a time, the newest first, back to another.
    fn before(&self, time: WallNs, back_to: WallNs) -> impl Iterator<Item = &ThreadSnapshot> {
        let newest_first = self.snapshots.iter().rev().map(AsRef::as_ref);
        newest_first
            .skip_while(move |snapshot| snapshot.at_ns >= time)
            .take_while(move |snapshot| snapshot.at_ns >= back_to)
    }
}

/// What the threads of the target did in a time that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadUses<'a> {
    /// Each thread that lives.
    pub threads: Vec<ThreadUse<'a>>,
    /// Each thread that ended in the time, as far as it was read.
    pub ended: Vec<ThreadUse<'a>>,
    /// Threads of which nothing is known, as there are too many.
    pub left_out: usize,
    /// The CPUs that all of the target was on, with what has ended and what is left out.
    pub cpus: f64,
    /// Of these, those that others than the threads that live were on: those that have ended, and those left out.
    pub others: f64,
    /// Of these, those that ended children were on.
    pub ended_children: f64,
    /// Processes of a machine that ended in the time, by name, those with most CPU time first; empty where the kernel
    /// doesn't say.
    pub ended_names: Vec<EndedUse<'a>>,
    /// The time, in seconds.
    pub seconds: f64,
    /// The largest number of looks at one thread, in the time.
    pub looks: u32,
    /// When it ended.
    pub until: WallNs,
    /// Processes and threads that the whole machine started a second; `None` where the kernel doesn't say.
    pub started: Option<f64>,
    /// Who started most of what has ended; `None` where that can't be told from what the others did.
    pub starter: Option<&'a ThreadReading>,
    /// How many CPUs of the machine were busy, whoever ran on them; `None` where the kernel doesn't say.
    pub machine_cpus: Option<f64>,
    /// The part of the time in which each CPU of a machine was busy, by its number; empty where the kernel doesn't say.
    pub busy: Vec<(u32, f64)>,
    /// How often the CPU quota of the target's control groups was used up; `None` where there is none, of a machine,
    /// and where the kernel doesn't say.
    pub quota: Option<QuotaPeriods>,
    /// Memory and load of a machine at the end of the time; `None` of other targets, and where the kernel doesn't say.
    pub resources: Option<&'a MachineResources>,
    /// Bytes a second that a machine's block devices read and wrote; `None` where the kernel doesn't say.
    pub disk: Option<DiskRates>,
}

/// What processes of one name used that ended in a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedUse<'a> {
    /// Their name, which may hold any character.
    pub name: &'a str,
    /// How many there were.
    pub count: u64,
    /// The CPUs that they were on.
    pub cpus: f64,
}

impl<'a> EndedUse<'a> {
    /// What ended between two snapshots, with most CPU time first.
    fn between(earlier: &ThreadSnapshot, later: &'a ThreadSnapshot, seconds: f64) -> Vec<Self> {
        let one = |ended: &'a EndedProcesses| {
            let before = earlier.ended.iter().find(|before| before.name == ended.name);
            let (count, cpu) = before.map_or((0, CpuNs(0)), |before| (before.count, before.cpu_ns));
            let cpus = (ended.cpu_ns - cpu).as_secs() / seconds;
            Self { name: &ended.name, count: ended.count.saturating_sub(count), cpus }
        };
        let mut all: Vec<_> = later.ended.iter().map(one).filter(|ended| ended.count > 0).collect();
        all.sort_by(|a, b| b.cpus.total_cmp(&a.cpus));
        all
    }
}

impl fmt::Display for EndedUse<'_> {
    /// `cc1 ×31 48.1%`: in percent of a CPU.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ×{} {:.1}%", shown(self.name), self.count, 100.0 * self.cpus)
    }
}

/// Bytes a second that block devices moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskRates {
    /// Read.
    pub read: f64,
    /// Written.
    pub written: f64,
}

impl DiskRates {
    fn between(earlier: &ThreadSnapshot, later: &ThreadSnapshot, seconds: f64) -> Option<Self> {
        let bytes = |snapshot: &ThreadSnapshot| snapshot.resources.as_ref()?.disk;
        let (earlier, later) = (bytes(earlier)?, bytes(later)?);
        let rate = |earlier: u64, later: u64| later.saturating_sub(earlier) as f64 / seconds;
        Some(Self { read: rate(earlier.read, later.read), written: rate(earlier.written, later.written) })
    }
}

impl Monitor {
    /// Whether it is known what the target's threads did in a time.
    pub fn knows_thread_uses(&self) -> bool {
        self.threads.snapshots.len() > 1
    }

    /// The time of the newest snapshot of the target's threads.
    pub fn threads_read_at(&self) -> Option<WallNs> {
        self.threads.snapshots.back().map(|snapshot| snapshot.at_ns)
    }

    /// Takes the first snapshot after a part of a recording, if it is nearer to the part's end than the last one in it.
    pub fn reach_to(&mut self, next: &Arc<ThreadSnapshot>) {
        let distance = |at: WallNs| at.0.abs_diff(self.now.0);
        if self.threads_read_at().is_none_or(|last| distance(next.at_ns) < distance(last)) {
            self.threads.take(next);
        }
    }

    /// How many threads the target had in the whole run, as far as they were read.
    pub fn threads_of_run(&self) -> usize {
        let of_all = self.threads.snapshots.iter();
        let threads = of_all.flat_map(|snapshot| snapshot.threads.iter().chain(&snapshot.ended_threads));
        threads.map(ThreadReading::id).collect::<FxHashSet<_>>().len()
    }

    /// How many threads the target had when they were read last.
    pub fn newest_threads(&self) -> usize {
        self.threads.snapshots.back().map_or(0, |snapshot| snapshot.threads.len())
    }
}

impl<'a> ThreadUses<'a> {
    /// Counts threads that ended in the time among those that live.
    #[must_use]
    pub fn with_ended(mut self) -> Self {
        self.others = (self.others - self.ended.iter().map(|thread| thread.cpu).sum::<f64>()).max(0.0);
        self.threads.append(&mut self.ended);
        self
    }

    /// What has no row: what there was no room for, and what ended; of threads, as far as no check saw it.
    pub fn others_words(&self, is_machine: bool) -> String {
        let left_out = if self.left_out > 0 { format!("{} not read, and ", self.left_out) } else { String::new() };
        let ended = if is_machine { "processes that ended" } else { "what ended between checks" };
        left_out + ended
    }

    /// The processes of a machine that ended, by name: those on at least so many CPUs, and so many of them;
    /// `: cc1 ×31 48.1%, as ×31 6.9% and 2 more`. Nothing where none is known.
    pub fn ended_words(&self, least: f64, most: usize) -> String {
        let listed: Vec<_> = self.ended_names.iter().take_while(|ended| ended.cpus >= least).collect();
        let names: Vec<_> = listed.iter().take(most).map(ToString::to_string).collect();
        let more = listed.len() - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        if names.is_empty() { String::new() } else { format!(": {}{more}", names.join(", ")) }
    }

    /// Each thread that lived in the time.
    pub fn all(&self) -> impl Iterator<Item = &ThreadUse<'a>> + Clone {
        self.threads.iter().chain(&self.ended)
    }
}

/// Who started most of what others than these threads used: a parent is told all that a child used, also before, so
/// that more than the others used in the time says nothing of it.
fn starter<'a>(threads: &[ThreadUse<'a>], others: f64) -> Option<&'a ThreadReading> {
    let most = threads.iter().max_by(|a, b| a.ended_children.total_cmp(&b.ended_children))?;
    (others > 0.0 && (0.5 * others..=1.1 * others).contains(&most.ended_children)).then_some(most.thread)
}

/// The part of the time between two snapshots in which each CPU of a machine was busy.
fn busy_parts(earlier: &ThreadSnapshot, later: &ThreadSnapshot, seconds: f64) -> Vec<(u32, f64)> {
    let before = |cpu: u32| earlier.busy_ns.iter().find(|(of, _)| *of == cpu).map(|(_, busy)| *busy);
    let part = |&(cpu, busy): &(u32, CpuNs)| Some((cpu, ((busy - before(cpu)?).as_secs() / seconds).min(1.0)));
    later.busy_ns.iter().filter_map(part).collect()
}

impl Monitor {
    /// What the target's threads did in about the last `time`: over whole snapshots, and as long as they reach. `None`
    /// before there are two, and where threads aren't read.
    pub fn thread_uses(&self, time: WallNs) -> Option<ThreadUses<'_>> {
        let snapshots = self.near_snapshots(time)?;
        let [earlier, .., later] = snapshots[..] else { return None };
        let seconds = Some((later.at_ns - earlier.at_ns).as_secs()).filter(|&seconds| seconds > 0.0)?;
        let Uses { living: mut threads, ended, looks } = uses(&snapshots);
        take_older_looks(
            &mut threads,
            later.at_ns,
            self.threads.before(earlier.at_ns, later.at_ns - later.at_ns.min(LONGEST_LOOKS)),
        );
        let ended_children = if self.has_children() { of_ended_children(earlier, later) / seconds } else { 0.0 };
        let cpu = |threads: &[ThreadUse<'_>]| threads.iter().map(|thread| thread.cpu).sum::<f64>();
        // What ended may be among the children that ended.
        let known = cpu(&threads) + ended_children.max(cpu(&ended));
        let cpus_of = |later: CpuNs, earlier: CpuNs| (later - earlier).as_secs() / seconds;
        let all = self.all_at_end(later).zip(self.all_cpu_time(earlier));
        let all = all.map_or(0.0, |(later, earlier)| cpus_of(later, earlier));
        // Of a machine it is exact. Elsewhere a process that has ended without a parent in the target takes its time
        // with it.
        let is_machine = !later.busy_ns.is_empty() && all > 0.0;
        let cpus = if is_machine { all } else { known.max(all) }.min(self.header().machine.cpus.max(1) as f64);
        let machine = later.machine_busy_ns.zip(earlier.machine_busy_ns);
        let machine = machine.map(|(later, earlier)| cpus_of(later, earlier));
        let ended_names = EndedUse::between(earlier, later, seconds);
        // How busy CPUs were is known in ticks, what ended processes used exactly.
        let of_names: f64 = ended_names.iter().map(|ended| ended.cpus).sum();
        let others = (cpus - cpu(&threads)).max(of_names);
        // The sum of a target is known in ticks, its threads' times exactly.
        let others = if !is_machine && others * seconds < ClockTicks(2).cpu_time().as_secs() { 0.0 } else { others };
        let started = later.started.zip(earlier.started);
        Some(ThreadUses {
            starter: starter(&threads, others).filter(|_| later.left_out == 0),
            threads,
            ended,
            left_out: later.left_out,
            cpus,
            machine_cpus: if is_machine { Some(all) } else { machine },
            busy: busy_parts(earlier, later, seconds),
            quota: later.quota.map(|quota| quota - earlier.quota.unwrap_or_default()),
            resources: later.resources.as_ref(),
            disk: DiskRates::between(earlier, later, seconds),
            others,
            ended_children,
            ended_names,
            seconds,
            looks,
            until: later.at_ns,
            started: started.map(|(later, earlier)| later.saturating_sub(earlier) as f64 / seconds),
        })
    }

    /// The snapshots of about the last `time`. The first one of a range is that which is nearest to its beginning,
    /// unless that is so far before it that it says little of it.
    fn near_snapshots(&self, time: WallNs) -> Option<Vec<&ThreadSnapshot>> {
        let mut snapshots = self.threads.since(time, self.header.interval_ns)?;
        let distance = |snapshot: &ThreadSnapshot| snapshot.at_ns.0.abs_diff(self.began.0);
        if let [base, first, ..] = snapshots[..]
            && base.at_ns < self.began
            && distance(first) < distance(base)
        {
            snapshots.remove(0);
        }
        let before = self.began - snapshots.first()?.at_ns;
        (before <= WallNs(self.shown_time().0 / 2)).then_some(snapshots)
    }

    /// Whether children are of the target. Of those of processes and threads that ran already nobody knows what they
    /// had used before.
    fn has_children(&self) -> bool {
        !matches!(self.header.target, MeasuredTarget::Processes(_) | MeasuredTarget::Threads(_))
    }

    /// CPU time of all of the target up to a snapshot; `None` where it isn't known.
    fn all_cpu_time(&self, snapshot: &ThreadSnapshot) -> Option<CpuNs> {
        let all = snapshot.all_ns?;
        if !snapshot.busy_ns.is_empty() {
            return Some(all);
        }
        let sum = |time: fn(&ThreadReading) -> CpuNs| CpuNs(snapshot.threads.iter().map(|thread| time(thread).0).sum());
        let (threads, children) = (sum(|thread| thread.cpu_ns), sum(|thread| thread.children_ns));
        // It is a sum of whole ticks, of which threads may have used a part more each.
        let all = all.max(threads + children);
        match self.has_children() {
            true => Some(all),
            false => (snapshot.left_out == 0).then(|| all - children),
        }
    }

    /// The same of the later snapshot. Where the run ended with it, the kernel's account of the command has what
    /// threads used that came and went since the snapshot before.
    fn all_at_end(&self, snapshot: &ThreadSnapshot) -> Option<CpuNs> {
        let is_last = |end: &&End| self.has_children() && snapshot.at_ns + AFTER_LAST_SNAPSHOT >= end.at_ns;
        let of_command = self.ended().filter(is_last).and_then(|end| end.cpu_time).map(|time| time.all());
        self.all_cpu_time(snapshot).map(|all| of_command.map_or(all, |command| all.max(command)))
    }

    /// The CPUs that the target was on in the time of these uses by the CPU time of its counters, where that is surely
    /// more than its threads tell: the kernel counts processes, too, that no check finds. `None` elsewhere.
    pub fn more_counted_cpus(&self, uses: &ThreadUses<'_>) -> Option<f64> {
        if matches!(self.header.target, MeasuredTarget::Everyone { .. }) {
            return None;
        }
        let (from, to) = (uses.until.as_secs() - uses.seconds, uses.until.as_secs());
        let counted = self.counted_within(from, to)?;
        // Intervals may end a little after snapshots.
        let outside = (from - counted.from).max(0.0) + (counted.to - to).max(0.0);
        let all_cpus = self.header.machine.cpus.max(1) as f64;
        let least = (counted.cpu_seconds - outside * all_cpus) / uses.seconds;
        (least > uses.cpus).then(|| (counted.cpu_seconds / uses.seconds).min(all_cpus))
    }

    /// The CPU time of counters in whole intervals within a time in seconds, of which snapshots may miss a part at the
    /// ends.
    fn counted_within(&self, from: f64, to: f64) -> Option<CountedTime> {
        let slack = self.header.interval_ns.as_secs() / 4.0;
        let is_within = |began: f64, ended: f64| began + slack >= from && ended <= to + slack;
        let (began, ended) = (self.began.max(self.header.delay_ns).as_secs(), self.closed_at().as_secs());
        if is_within(began, ended) {
            let cpu_seconds = self.mean_cpu_share()? * self.shown_time_counted().as_secs();
            return Some(CountedTime { from: began, to: ended, cpu_seconds });
        }
        let is_inside = |point: &&Point| is_within((point.at - point.length).as_secs(), point.at.as_secs());
        let points = self.tracks.first()?.history.iter().filter(is_inside);
        let (first, last) = (points.clone().next()?, points.clone().next_back()?);
        let length: WallNs = points.map(|point| point.length).fold(WallNs(0), Add::add);
        let time = |event: RowIndex| {
            let points = self.tracks[event].history.iter().filter(is_inside);
            Some(points.map(|point| point.cpu_time).fold(CpuNs(0), Add::add))
        };
        let cpu_seconds = self.cpu_share_in(length, time)? * length.as_secs();
        Some(CountedTime { from: (first.at - first.length).as_secs(), to: last.at.as_secs(), cpu_seconds })
    }
}

/// CPU time of counters, and from when to when it passed, in seconds.
struct CountedTime {
    from: f64,
    to: f64,
    cpu_seconds: f64,
}

impl Monitor {
    /// The memory of each process that lives or has just ended, with its name, in all snapshots that are kept: when,
    /// and bytes in RAM; of those processes alone whose first and last number are as `is_sought` says.
    pub fn memory_series(&self, is_sought: impl Fn(u64, u64) -> bool) -> Vec<(&str, Vec<(WallNs, u64)>)> {
        // One that ends has no memory any more when it is read last.
        let newest = self.threads.snapshots.iter().rev().take(2).flat_map(|snapshot| &snapshot.threads);
        let mut series: Vec<(&str, Vec<(WallNs, u64)>)> = Vec::new();
        let mut places = FxHashMap::default();
        for process in newest.filter(|thread| thread.resident > 0 && self.threads.is_sought(thread, &is_sought)) {
            places.entry(process.id()).or_insert_with(|| {
                series.push((process.name.as_str(), Vec::new()));
                series.len() - 1
            });
        }
        if series.is_empty() {
            return series;
        }
        for snapshot in &self.threads.snapshots {
            for process in snapshot.threads.iter().filter(|thread| thread.resident > 0) {
                if let Some(&place) = places.get(&process.id()) {
                    series[place].1.push((snapshot.at_ns, process.resident));
                }
            }
        }
        series
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::sources::{Reading, Round};
    use crate::units::CpuTime;

    #[test]
    fn memory_is_that_of_the_same_process_in_all_snapshots() {
        let process = |tid: i32, began: u64, resident: u64| ThreadReading {
            tid,
            began,
            resident,
            name: format!("p{tid}"),
            ..ThreadReading::default()
        };
        let mut monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let all = |_: u64, _: u64| true;
        assert_eq!(monitor.memory_series(all), []);
        // Process 2 ends, process 3 has the id of an earlier one, and a thread has no memory of its own.
        for (second, threads) in [
            (1, vec![process(1, 0, 10), process(2, 0, 5), process(3, 0, 99)]),
            (2, vec![process(1, 0, 20), process(2, 0, 6), process(3, 1, 7), process(4, 1, 0)]),
            (3, vec![process(1, 0, 30), process(2, 0, 0), process(3, 1, 8)]),
        ] {
            let snapshot = ThreadSnapshot { at_ns: WallNs(second), threads, ..ThreadSnapshot::default() };
            monitor.threads.take(&Arc::new(snapshot));
        }
        let at = |all: &[(u64, u64)]| all.iter().map(|&(at, bytes)| (WallNs(at), bytes)).collect::<Vec<_>>();
        let expected =
            [("p1", at(&[(1, 10), (2, 20), (3, 30)])), ("p3", at(&[(2, 7), (3, 8)])), ("p2", at(&[(1, 5), (2, 6)]))];
        assert_eq!(monitor.memory_series(all), expected);
        let grown = |by: u64| move |first: u64, last: u64| last >= first + by;
        assert_eq!(monitor.memory_series(grown(2)), expected[..1]);
        assert_eq!(monitor.memory_series(grown(21)), []);
    }

    #[test]
    fn what_threads_used_between_two_snapshots_is_known_at_the_end() {
        let second = 1_000_000_000;
        let ran = |end: u64, cpu_time: Option<u64>| {
            let mut monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
            for (at, all) in [(0, 0), (second, second / 10)] {
                let threads = vec![ThreadReading { tid: 1, cpu_ns: CpuNs(all), ..ThreadReading::default() }];
                let (at_ns, all_ns) = (WallNs(at), Some(CpuNs(all)));
                monitor.threads.take(&Arc::new(ThreadSnapshot { at_ns, all_ns, threads, ..ThreadSnapshot::default() }));
            }
            let cpu_time = cpu_time.map(|all| CpuTime { user_ns: CpuNs(all), system_ns: CpuNs(0) });
            monitor.end(End { at_ns: WallNs(end), cpu_time, ..End::default() });
            let uses = monitor.thread_uses(WallNs(end)).unwrap();
            (uses.cpus, uses.others)
        };
        assert_eq!(ran(second, None), (0.1, 0.0));
        assert_eq!(ran(second, Some(3 * second / 4)), (0.75, 0.65));
        // The last snapshot has more, as of what runs on when the command has ended.
        assert_eq!(ran(second, Some(1)), (0.1, 0.0));
        // It was taken long before.
        assert_eq!(ran(2 * second, Some(3 * second / 4)), (0.1, 0.0));
    }

    /// A monitor of two snapshots a second apart, of a process with its CPU time, that of its children, and that of
    /// all, in ms.
    fn of_process(target: Option<MeasuredTarget>, snapshots: [[u64; 3]; 2]) -> Monitor {
        let mut header = builders::header([builders::measured(builders::software_event("faults"))]);
        header.machine.cpus = 2;
        header.target = target.unwrap_or(header.target);
        let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        for (at, times) in [0, 1_000_000_000].into_iter().zip(snapshots) {
            let [cpu_ns, children_ns, all_ns] = times.map(|ms| CpuNs(1_000_000 * ms));
            let threads = vec![ThreadReading { pid: 1, tid: 1, cpu_ns, children_ns, ..ThreadReading::default() }];
            let (at_ns, all_ns) = (WallNs(at), Some(all_ns));
            monitor.threads.take(&Arc::new(ThreadSnapshot { at_ns, all_ns, threads, ..ThreadSnapshot::default() }));
        }
        monitor
    }

    #[test]
    fn a_child_that_ran_before_is_none_of_a_process_that_ran_before() {
        // It had used 58 s before, ran on for one, and ended: its parent is told all of it.
        let times = [[0, 0, 0], [100, 59_000, 59_100]];
        let cpus = |target| {
            let monitor = of_process(target, times);
            let uses = monitor.thread_uses(WallNs(u64::MAX)).unwrap();
            (uses.cpus, uses.others, uses.ended_children)
        };
        assert_eq!(cpus(Some(MeasuredTarget::Processes(vec![]))), (0.1, 0.0, 0.0));
        assert_eq!(cpus(None).0, 2.0);
    }

    #[test]
    fn parts_of_ticks_are_no_thread_that_ended() {
        let others = |snapshots| of_process(None, snapshots).thread_uses(WallNs(u64::MAX)).unwrap().others;
        // It had used 79 ms of which 70 are whole ticks, and has used no more.
        assert_eq!(others([[79, 0, 70], [79, 0, 79]]), 0.0);
        assert_eq!((others([[0, 0, 0], [79, 0, 90]]), others([[0, 0, 0], [79, 0, 109]])), (0.0, 0.03));
    }

    #[test]
    fn counters_tell_of_processes_that_no_check_finds() {
        let counted = |enabled_ms: u64| {
            let mut monitor = of_process(None, [[0, 0, 0], [100, 0, 100]]);
            for tenth in 0..=10 {
                let enabled = CpuNs(100_000 * tenth * enabled_ms);
                let readings = vec![Some(Reading { count: tenth, enabled, running: enabled })];
                monitor.round(&Round { at: WallNs(100_000_000 * tenth), readings, ..Round::default() }, 0);
            }
            monitor.more_counted_cpus(&monitor.thread_uses(WallNs(u64::MAX)).unwrap())
        };
        assert!(counted(880).is_some_and(|cpus| (cpus - 0.88).abs() < 1e-9), "{:?}", counted(880));
        assert_eq!((counted(100), counted(50)), (None, None));
    }

    #[test]
    fn the_first_snapshot_may_come_with_the_next() {
        let mut monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let second = 1_000_000_000;
        let snapshot = |seconds: u64, cpu_ms: u64, first| {
            let threads = vec![ThreadReading { cpu_ns: CpuNs(1_000_000 * cpu_ms), ..ThreadReading::default() }];
            Arc::new(ThreadSnapshot { at_ns: WallNs(seconds * second), threads, first, ..ThreadSnapshot::default() })
        };
        let first = snapshot(0, 100, None);
        monitor.threads.take(&snapshot(1, 350, Some(first)));
        let uses = monitor.thread_uses(WallNs(second)).unwrap();
        assert_eq!((uses.seconds, uses.cpus), (1.0, 0.25));
    }

    #[test]
    fn a_pair_is_as_far_apart_as_asked_or_as_can_be() {
        let mut track = ThreadTrack::default();
        let times = |track: &ThreadTrack, seconds: u64| {
            let second = 1_000_000_000;
            let snapshots = track.since(WallNs(seconds * second), WallNs(second))?;
            let (earlier, later) = (*snapshots.first()?, *snapshots.last()?);
            Some((earlier.at_ns.as_secs() as u64, later.at_ns.as_secs() as u64))
        };
        assert_eq!(times(&track, 1), None);
        for second in 0..1000 {
            // Every other one is late by a tenth of a second.
            let at_ns = WallNs(second * 1_000_000_000 + second % 2 * 100_000_000);
            let threads = vec![ThreadReading::default()];
            track.take(&Arc::new(ThreadSnapshot { at_ns, threads, ..ThreadSnapshot::default() }));
            if second == 0 {
                assert_eq!(times(&track, 1), None);
            }
        }
        assert_eq!(
            [0, 1, 10, 30].map(|seconds| times(&track, seconds).unwrap()),
            [998, 998, 989, 969].map(|at| (at, 999))
        );
        // That all have ended says nothing of what they did.
        track.take(&Arc::new(ThreadSnapshot { at_ns: WallNs(u64::MAX), ..ThreadSnapshot::default() }));
        // The whole run is there, and not much more is kept than is needed.
        assert_eq!(times(&track, 5000), Some((0, 999)));
        assert!(track.snapshots.len() <= KEPT && track.snapshots.iter().is_sorted_by_key(|snapshot| snapshot.at_ns));
    }
}
