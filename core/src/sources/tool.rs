//! Adds perf's tool events, which no kernel counts, to the rounds of another source: the time that passes and the
//! CPU time of the target, by clocks and /proc.
//!
//! They are enabled for as long as there is counting, so that they are never scaled.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Add;
use std::time::Instant;

use nix::unistd::Pid;

use super::perf::TargetKind;
use super::{CounterSource, Next, Reading, Scope, Status, process};
use crate::events::{Event, EventKind};
use crate::host::{CpuTicks, HostFiles};
use crate::threads::Stat;
use crate::units::{ClockTicks, CpuNs, CpuTime, WallNs};

/// What a command and its waited-for children used, once it has ended.
pub type AtEnd = Box<dyn Fn() -> Option<CpuTime> + Send>;

/// A source with tool events in it.
pub struct Tools<S> {
    inner: S,
    columns: Vec<ToolColumn>,
    whose: TimeOwner,
    at_end: AtEnd,
    /// Whether counting waits until it is [enabled](CounterSource::enable).
    waits: bool,
    /// What the clock of rounds begins with.
    started: Instant,
    /// When counting began by that clock, and what each column's time was then.
    since: Option<WallNs>,
    before: Vec<CpuTime>,
}

/// Which clock a tool event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    Duration,
    User,
    System,
}

impl Tool {
    fn of(event: &Event) -> Option<Self> {
        match event.canonical.as_str() {
            _ if event.kind != EventKind::Tool => None,
            "duration_time" => Some(Self::Duration),
            "user_time" => Some(Self::User),
            _ => Some(Self::System),
        }
    }
}

/// Where the readings of a tool event go.
#[derive(Debug)]
struct ToolColumn {
    place: usize,
    tool: Tool,
    scope: Scope,
    last: u64,
    /// What each process or thread of a list was last seen to have used: what has ended stays in the sum.
    seen: BTreeMap<Pid, CpuTime>,
}

/// Whose CPU time it is.
#[derive(Clone, Debug)]
enum TimeOwner {
    /// A command, with all that it starts.
    Command(Pid),
    /// Processes that ran already, each with its threads and without its children.
    Processes(Vec<Pid>),
    Threads(Vec<Pid>),
    /// That of these CPUs, of all where `None`.
    Cpus(Option<Vec<u32>>),
    /// Nobody keeps it.
    Nobody,
}

impl TimeOwner {
    fn of(kind: &TargetKind, cpus: Option<&[u32]>) -> Self {
        match (kind, cpus) {
            (TargetKind::Everyone, cpus) => Self::Cpus(cpus.map(<[u32]>::to_vec)),
            (_, Some(_)) | (TargetKind::Cgroup(_), None) => Self::Nobody,
            (TargetKind::Command(pid), None) => Self::Command(*pid),
            (TargetKind::Processes(pids), None) => Self::Processes(pids.clone()),
            (TargetKind::Threads(threads), None) => Self::Threads(threads.clone()),
        }
    }

    /// Whether the part of the target that a row is about has its own CPU time.
    fn tells(&self, scope: &Scope) -> bool {
        match scope {
            Scope::All => !matches!(self, Self::Nobody),
            Scope::Cpu(_) => matches!(self, Self::Cpus(_)),
            Scope::Thread { .. } => matches!(self, Self::Processes(_) | Self::Threads(_)),
        }
    }

    /// The CPU time of a part of the target since it began. What has ended is in it where it was `seen`, and a child of
    /// a command where that waited for it.
    fn times(&self, scope: &Scope, seen: &mut BTreeMap<Pid, CpuTime>, read: &ReadOnce) -> CpuTime {
        match (self, scope) {
            (_, Scope::Thread { tid, .. }) => of_thread(Pid::from_raw(*tid)).unwrap_or_default(),
            (_, Scope::Cpu(cpu)) => of_cpus(Some(&[*cpu]), read),
            (Self::Cpus(cpus), Scope::All) => of_cpus(cpus.as_deref(), read),
            (Self::Command(pid), Scope::All) => *read.family.get_or_init(|| {
                let family = std::iter::once(*pid).chain(process::descendants(*pid));
                sum(family.filter_map(process::stat).map(|stat| own(&stat) + of_children(&stat)))
            }),
            (Self::Processes(pids), Scope::All) => see(seen, pids, |pid| Some(own(&process::stat(pid)?))),
            (Self::Threads(tids), Scope::All) => see(seen, tids, of_thread),
            (Self::Nobody, Scope::All) => CpuTime::default(),
        }
    }
}

/// The sum of what each has used by now, or had used when it was seen last. A number that is used again begins lower,
/// and isn't looked at.
fn see(seen: &mut BTreeMap<Pid, CpuTime>, ids: &[Pid], now: impl Fn(Pid) -> Option<CpuTime>) -> CpuTime {
    for &id in ids {
        let last = seen.entry(id).or_default();
        if let Some(now) = now(id).filter(|now| now.all() >= last.all()) {
            *last = now;
        }
    }
    sum(seen.values().copied())
}

fn of_thread(tid: Pid) -> Option<CpuTime> {
    Some(own(&process::stat_of_thread(tid, tid)?))
}

fn sum(all: impl Iterator<Item = CpuTime>) -> CpuTime {
    all.fold(CpuTime::default(), CpuTime::add)
}

/// The CPU time of a process or thread.
fn own(stat: &Stat) -> CpuTime {
    times(stat.user, stat.system)
}

/// That of its children that have ended and were waited for.
fn of_children(stat: &Stat) -> CpuTime {
    times(stat.children_user, stat.children_system)
}

/// What several columns of a round need, and is read once.
#[derive(Default)]
struct ReadOnce {
    cpus: OnceCell<Vec<CpuTicks>>,
    family: OnceCell<CpuTime>,
}

fn of_cpus(cpus: Option<&[u32]>, read: &ReadOnce) -> CpuTime {
    let is_wanted = |of: &CpuTicks| match cpus {
        None => of.cpu.is_none(),
        Some(cpus) => of.cpu.is_some_and(|cpu| cpus.contains(&cpu)),
    };
    let all = read.cpus.get_or_init(|| HostFiles::here().cpu_ticks());
    sum(all.iter().filter(|of| is_wanted(of)).map(|of| times(of.user, of.system)))
}

fn times(user: ClockTicks, system: ClockTicks) -> CpuTime {
    CpuTime { user_ns: user.cpu_time(), system_ns: system.cpu_time() }
}

/// A row's event and the part of the target that it is about, with what became of it.
pub type RowOf<'a> = (&'a Event, &'a Scope, &'a mut Status);

impl<S: CounterSource> Tools<S> {
    /// Adds the tool events among the rows of a source, which all come before its anchors, and marks them as counted
    /// where they can be. `waits` says that counting begins when the source is enabled.
    pub fn new<'a>(
        inner: S,
        rows: impl Iterator<Item = RowOf<'a>>,
        kind: &TargetKind,
        cpus: Option<&[u32]>,
        waits: bool,
        at_end: AtEnd,
    ) -> Self {
        let whose = TimeOwner::of(kind, cpus);
        let mut columns = Vec::new();
        for (place, (event, scope, status)) in rows.enumerate() {
            let tool = Tool::of(event).filter(|&tool| tool == Tool::Duration || whose.tells(scope));
            if let Some(tool) = tool {
                *status = Status::Counted;
                columns.push(ToolColumn { place, tool, scope: scope.clone(), last: 0, seen: BTreeMap::new() });
            }
        }
        Self { inner, columns, whose, at_end, waits, started: Instant::now(), since: None, before: Vec::new() }
    }

    fn begin(&mut self) {
        self.since = Some(WallNs::from(self.started.elapsed()));
        let read = ReadOnce::default();
        self.before = self.columns.iter_mut().map(|column| column.now(&self.whose, &read)).collect();
    }
}

impl ToolColumn {
    /// The CPU time of its part of the target; not asked for where only time passes.
    fn now(&mut self, whose: &TimeOwner, read: &ReadOnce) -> CpuTime {
        if self.tool == Tool::Duration { CpuTime::default() } else { whose.times(&self.scope, &mut self.seen, read) }
    }
}

impl<S: CounterSource> CounterSource for Tools<S> {
    fn read(&mut self) -> Next {
        let mut round = match (self.inner.read(), self.since) {
            (Next::Round(round), Some(_)) => round,
            (next, _) => return next,
        };
        let since = self.since.unwrap_or_default();
        let elapsed = round.at - since;
        let enabled = CpuNs(elapsed.0);
        let (at_end, read) = ((self.at_end)(), ReadOnce::default());
        for (column, before) in self.columns.iter_mut().zip(&self.before) {
            let exact = at_end.filter(|_| matches!(self.whose, TimeOwner::Command(_)) && column.scope == Scope::All);
            let now = exact.unwrap_or_else(|| column.now(&self.whose, &read));
            let count = match column.tool {
                Tool::Duration => elapsed.0,
                Tool::User => (now - *before).user_ns.0,
                Tool::System => (now - *before).system_ns.0,
            };
            // Who has ended and was not waited for yet is missing for a moment.
            column.last = column.last.max(count);
            let reading = Reading { count: column.last, enabled, running: enabled };
            if let Some(place) = round.readings.get_mut(column.place) {
                *place = Some(reading);
            }
        }
        Next::Round(round)
    }

    fn enable(&mut self) {
        self.inner.enable();
        self.begin();
    }

    fn start_clock(&mut self, start: Instant) {
        self.inner.start_clock(start);
        self.started = start;
        if !self.waits {
            self.begin();
            self.since = Some(WallNs(0));
        }
    }

    fn has_executed(&mut self) {
        self.inner.has_executed();
    }

    fn end(&mut self) {
        self.inner.end();
    }

    fn beat(&self) -> Option<std::time::Duration> {
        self.inner.beat()
    }

    fn tick(&mut self) {
        self.inner.tick();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::events::{Machine, Resolver};
    use crate::sources::Round;
    use crate::sources::scripted::ScriptedSource;

    fn tools(at_end: Option<CpuTime>, waits: bool) -> (Tools<ScriptedSource>, Vec<Status>) {
        let resolver = Resolver::new(Machine::here());
        let groups = resolver.parse("page-faults,duration_time,user_time,system_time").unwrap();
        let events: Vec<_> = groups.into_iter().flat_map(|group| group.events).collect();
        let mut statuses = vec![Status::NotSupported; events.len()];
        let rows = events.iter().zip(&mut statuses).map(|(event, status)| (event, &Scope::All, status));
        let an_hour = 3_600_000_000_000;
        let rounds = (1..3).map(|at| Round { at: WallNs(at * an_hour), readings: vec![None; 4], ..Round::default() });
        let me = TargetKind::Command(nix::unistd::getpid());
        let tools = Tools::new(ScriptedSource::new(rounds), rows, &me, None, waits, Box::new(move || at_end));
        (tools, statuses)
    }

    fn counts(tools: &mut Tools<ScriptedSource>) -> Vec<Option<u64>> {
        let Next::Round(round) = tools.read() else { panic!("rounds") };
        round.readings.iter().map(|reading| reading.map(|reading| reading.count)).collect()
    }

    #[test]
    fn tool_events_are_counted_and_others_left_alone() {
        let ended = CpuTime { user_ns: CpuNs(u64::MAX), system_ns: CpuNs(u64::MAX) };
        let (mut tools, statuses) = tools(Some(ended), false);
        use Status::{Counted, NotSupported};
        assert_eq!(statuses, [NotSupported, Counted, Counted, Counted]);
        tools.start_clock(Instant::now());
        let first = counts(&mut tools);
        assert_eq!(first[0], None);
        assert_eq!([first[1], counts(&mut tools)[1]], [Some(3_600_000_000_000), Some(7_200_000_000_000)]);
        // What the kernel says at the end holds.
        assert!(first[2].unwrap() > u64::MAX / 2 && first[3].unwrap() > u64::MAX / 2);
    }

    #[test]
    fn nothing_is_counted_before_a_delay_is_over() {
        let (mut tools, _) = tools(None, true);
        tools.start_clock(Instant::now());
        assert_eq!(counts(&mut tools), [None; 4]);
        tools.enable();
        assert!(counts(&mut tools)[1..].iter().all(Option::is_some));
    }

    #[test]
    fn this_process_and_the_machine_have_used_time() {
        let stat = process::stat(nix::unistd::getpid()).unwrap();
        assert!((own(&stat) + of_children(&stat)).user_ns >= own(&stat).user_ns);
        let read = ReadOnce::default();
        let (all, first) = (of_cpus(None, &read), of_cpus(Some(&[0]), &read));
        assert!(all.user_ns >= first.user_ns && all.user_ns.0 > 0);
        assert_eq!(of_thread(Pid::from_raw(i32::MAX)), None);
    }

    #[test]
    fn what_has_ended_stays_in_the_sum() {
        let (first, second) = (Pid::from_raw(1), Pid::from_raw(2));
        let used = |user: u64| CpuTime { user_ns: CpuNs(user), system_ns: CpuNs(1) };
        let mut seen = BTreeMap::new();
        let mut sum = |now: [Option<u64>; 2]| {
            let of = |pid: Pid| now[usize::from(pid == second)].map(used);
            let sum = see(&mut seen, &[first, second], of);
            (sum.user_ns.0, sum.system_ns.0)
        };
        assert_eq!(sum([Some(1000), Some(5)]), (1005, 2));
        assert_eq!(sum([None, Some(8)]), (1008, 2));
        // Another process has the number of the first.
        assert_eq!(sum([Some(3), Some(9)]), (1009, 2));
        assert_eq!(sum([None, None]), (1009, 2));
    }
}
