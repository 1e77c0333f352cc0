//! Reads rounds from the kernel's counters.
//!
//! Each group is opened once for every place of the target (a task, a CPU, a task on a CPU): a
//! leader that reads the whole group in one system call, and siblings that follow it on and off the
//! counters. Events are inherited, so threads and processes that start later are counted in the
//! same descriptors; that is why all are opened before the command executes.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::Pid;
use perf_event::{Counter, GroupData};

use super::{CounterSource, Next, Reading, Round, Scope, Status, process};
use crate::events::{Event, EventKind};
use crate::plan::{Cohesion, GroupIndex, Member, Plan, Rotation, RowIndex};
use crate::units::{CpuNs, WallNs};

mod attach;
mod each_thread;
pub mod mux;
mod offline;
mod open;
mod probes;
mod rotation;
mod taken;
mod target;
mod trial;
mod units;

use attach::{Attached, Attaching};
#[cfg(feature = "stacks")]
pub(crate) use each_thread::{anew_while_others_start, each_thread};
use offline::OfflineCpus;
pub use open::permission;
#[cfg(feature = "stacks")]
pub(crate) use open::{Placed, encode, uninterrupted};
pub use probes::{ProbeIds, TracefsProbes};
use rotation::PmuRotations;
pub use rotation::{BUDGET, SLICE};
use taken::Taken;
use target::CounterPlace;
pub use target::{CancelToken, Cgroup, CountedTarget, Split, Start, TargetKind};
pub use trial::{fit, switch_cost};
use units::RowSums;

pub use open::{ProbeTarget, ask};

/// Group reads answer ECHILD while inherited children come and go (since Linux 6.6). Three
/// immediate retries and then short sleeps have always succeeded within 13 tries, unless a child has a part of the
/// group.
const QUICK_RETRIES: u32 = 3;
const MAX_RETRIES: u32 = 50;
const RETRY_SLEEP: Duration = Duration::from_micros(100);

/// Whether and how one row is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRow {
    /// The event of the plan, or its anchor.
    pub member: Member,
    /// Which part of the target it counts.
    pub scope: Scope,
    /// Whether it could be opened.
    pub status: Status,
    /// Whether each unit of the event could be opened; empty where one PMU counts it.
    pub units: Vec<Status>,
    /// Why what starts later isn't counted, where that was wanted.
    pub not_inherited: Option<String>,
}

impl CounterRow {
    /// Whether it counts something beside the events that were asked for.
    pub fn is_anchor(&self) -> bool {
        matches!(self.member, Member::Anchor(_))
    }

    /// Whether all that there is to count in its part of the target is counted. On a CPU that a unit doesn't listen to
    /// there is nothing of that unit, and a thread that is gone has nothing any more.
    pub fn is_whole(&self) -> bool {
        self.has(&self.status) && self.units.iter().all(|unit| self.has(unit))
    }

    /// Whether nothing is missing because of this status, its own or that of one of its units.
    pub fn has(&self, status: &Status) -> bool {
        match status {
            Status::Counted | Status::UserOnly | Status::Gone => true,
            Status::Elsewhere => matches!(self.scope, Scope::Cpu(_)),
            Status::NotSupported | Status::Forbidden | Status::InUse => false,
        }
    }
}

/// Why nothing could be measured.
#[derive(Debug)]
pub enum OpenError {
    /// There is no such process.
    NoProcess(Pid),
    /// There is no such thread.
    NoThread(Pid),
    /// This process belongs to somebody else.
    NotYours(Pid),
    /// There is no such CPU, or it is offline.
    NoCpu(u32),
    /// More descriptors are needed than this process may open.
    TooManyFiles {
        /// How many events there are,
        events: usize,
        /// in how many places,
        places: usize,
        /// how many descriptors that takes: for some events or places several,
        needed: usize,
        /// and how many descriptors are allowed.
        limit: u64,
    },
    /// A group in braces can't be opened as a whole.
    Group {
        /// Names of the members.
        names: Vec<String>,
        /// Name of the member that failed.
        member: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A group in braces has members that can't be counted here, and others that can.
    Torn {
        /// Names of the members.
        names: Vec<String>,
        /// The first that can't be counted.
        member: String,
        /// Why the group can't be counted.
        reason: String,
    },
    /// The kernel's answer to opening an event is not one that a status stands for.
    Event {
        /// Name of the event.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The operating system doesn't say what is needed.
    System(io::Error),
    /// This signal asked to leave off.
    Stopped(i32),
}

/// The open counters of a plan.
#[derive(Debug)]
pub struct PerfSource {
    rows: Vec<CounterRow>,
    sums: RowSums,
    groups: Vec<OpenGroup>,
    /// The rotation, where perfprop makes it.
    rotations: PmuRotations,
    /// A clock for each place, where groups are multiplexed or a place is one CPU of a task.
    clocks: Vec<PlaceClock>,
    /// The tasks that lost their counters.
    taken: Taken,
    /// The CPUs that lost theirs.
    offline: OfflineCpus,
    started: Instant,
}

/// A group opened in one place.
#[derive(Debug)]
struct OpenGroup {
    /// Index of the group in the plan.
    group: GroupIndex,
    /// The clock that its time is counted by, if that isn't its own.
    clock: Option<usize>,
    leader: Counter,
    /// The siblings' descriptors keep their counters alive.
    siblings: Vec<Counter>,
    /// The row of each value in a group read.
    members: Vec<RowIndex>,
    /// Whether further units of these rows are counted in other groups.
    is_of_unit: bool,
    /// The task that it counts, if it counts one.
    task: Option<Pid>,
    /// The CPU that it counts, if it counts all that runs on one.
    cpu: Option<u32>,
    /// What was read last: a group that can't be read this time has still counted that.
    last: Vec<Reading>,
    /// Whether it could be read last time.
    is_read: bool,
}

/// The CPU time of a place, whichever group is on there.
#[derive(Debug)]
struct PlaceClock {
    counter: Counter,
    /// Which of the counter's times it is.
    ticks: Ticks,
    time: CpuNs,
    /// What it was just before the groups of the place were read last; nothing where nobody asks for that.
    before: Option<CpuNs>,
    /// What it was when the slice began.
    turn: CpuNs,
}

impl PerfSource {
    /// Opens every event of the plan that can be opened; [`rows`](Self::rows) says what became of
    /// each. A process that waits before exec begins to count with exec, everything else when [enabled].
    ///
    /// [enabled]: CounterSource::enable
    ///
    /// # Errors
    /// When the target can't be measured at all, or a [`CancelToken`] asked to leave off. An event that can't be
    /// counted is no error: its [`Status`] says why.
    pub fn open(plan: &Plan, target: &CountedTarget) -> Result<Self, OpenError> {
        Self::open_rotating(plan, target, Vec::new(), BUDGET)
    }

    /// Lets perfprop rotate groups on the counters instead of the kernel:
    /// [`tick`](CounterSource::tick) ends a slice. Switching may take a part of a CPU, `budget`; where it would
    /// take more, slices are longer.
    ///
    /// # Errors
    /// Fails as [`open`](Self::open) does.
    pub fn open_rotating(
        plan: &Plan,
        target: &CountedTarget,
        rotations: Vec<Rotation>,
        budget: f64,
    ) -> Result<Self, OpenError> {
        process::raise_file_limit();
        let rotations = PmuRotations::new(rotations, budget);
        let Attached { rows, groups, clocks } = Attaching::all(plan, target, &rotations)?;
        let (taken, sums) = (Taken::of(target), RowSums::new(&rows));
        let offline = OfflineCpus::default();
        Ok(Self { rows, sums, groups, rotations, clocks, taken, offline, started: Instant::now() })
    }

    /// What became of each event in each scope, and behind them what became of the anchors: in the
    /// order of the readings.
    pub fn rows(&self) -> &[CounterRow] {
        &self.rows
    }

    /// The rows of which a unit has not been on a counter so far, while others have.
    fn lacking_units(&self) -> Vec<RowIndex> {
        let of_units = self.groups.iter().filter(|group| group.is_of_unit);
        let mut readings = of_units.flat_map(|group| group.members.iter().copied().zip(group.last.clone())).peekable();
        if readings.peek().is_none() { Vec::new() } else { units::lacking(readings, self.rows.len()) }
    }
}

impl OpenError {
    /// A kernel that refuses another descriptor doesn't know how many would be needed.
    fn with_count(self, events: usize, places: usize, in_each: usize) -> Self {
        let is_limit = |error: &io::Error| error.raw_os_error().map(Errno::from_raw) == Some(Errno::EMFILE);
        match self {
            Self::Event { source, .. } | Self::Group { source, .. } | Self::System(source) if is_limit(&source) => {
                let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
                Self::TooManyFiles { events, places, needed: in_each * places, limit }
            }
            other => other,
        }
    }
}

impl CounterSource for PerfSource {
    fn read(&mut self) -> Next {
        let at = WallNs::from(self.started.elapsed());
        let mut readings = vec![None; self.rows.len()];
        self.clocks.iter_mut().for_each(PlaceClock::begin_reading);
        for group in self.groups.iter_mut().filter(|group| self.rotations.is_on(group.group)) {
            group.refresh();
        }
        // After the groups, so that none has run for longer than there was time.
        self.clocks.iter_mut().for_each(PlaceClock::refresh);
        for group in &self.groups {
            group.add_to(&mut readings, &self.sums, group.clock.map(|clock| &self.clocks[clock]));
        }
        self.taken.look(&self.groups);
        self.offline.look(at, &self.groups, &self.clocks);
        let mut uncounted = self.lacking_units();
        uncounted.extend(self.taken.rows());
        Next::Round(Round { at, readings, uncounted, offline: self.offline.rows(), threads: None })
    }

    fn has_executed(&mut self) {
        self.taken.look_after_exec(&self.groups);
    }

    fn enable(&mut self) {
        let enable_clocks = |clocks: &mut [PlaceClock], ticks: Ticks| {
            for clock in clocks.iter_mut().filter(|clock| clock.ticks == ticks) {
                let _ = clock.counter.enable();
            }
        };
        enable_clocks(&mut self.clocks, Ticks::Enabled);
        for group in self.groups.iter_mut().filter(|group| self.rotations.is_on(group.group)) {
            // A task that has ended since cannot be enabled, and needs not be.
            let _ = group.leader.enable_group();
        }
        // After their groups: what a group ran before isn't taken for time in which it was off.
        enable_clocks(&mut self.clocks, Ticks::OnItsCpu);
    }

    fn start_clock(&mut self, start: Instant) {
        self.started = start;
    }

    fn beat(&self) -> Option<Duration> {
        (!self.rotations.is_empty()).then(|| self.rotations.slice())
    }

    fn tick(&mut self) {
        // While nothing runs, nothing is seen of whichever group is on. All are asked, as each remembers its last time.
        let moved = self.clocks.iter_mut().filter_map(|clock| clock.has_moved().then_some(())).count();
        if moved > 0 {
            self.rotations.next(&mut self.groups);
        } else {
            self.rotations.wait();
        }
    }
}

/// When the clock of a place goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ticks {
    /// While it is enabled: whatever the place is, it is there.
    Enabled,
    /// While its task is on its CPU. An event of a task on one CPU is enabled on the others too, where it
    /// can't run; to scale by that time would add what the task did there.
    OnItsCpu,
}

impl PlaceClock {
    fn new(counter: Counter, place: &CounterPlace) -> Self {
        let ticks = if place.is_one_cpu_of_a_task() { Ticks::OnItsCpu } else { Ticks::Enabled };
        Self { counter, ticks, time: CpuNs(0), before: None, turn: CpuNs(0) }
    }

    /// Reads it before the groups, too, where it goes on between the readings of groups that are never off their CPU.
    fn begin_reading(&mut self) {
        if self.ticks == Ticks::OnItsCpu {
            self.refresh();
            self.before = Some(self.time);
        }
    }

    /// For how long a group that ran for this long was enabled. One that ran for as long as the clock said before it
    /// was read was never off.
    fn enabled(&self, running: CpuNs) -> CpuNs {
        if self.before.is_some_and(|before| running >= before) { running } else { self.time.max(running) }
    }

    fn refresh(&mut self) {
        // A clock that can't be read stands still, as the counts of its place do.
        let Ok(data) = self.counter.read_full() else { return };
        let time = match self.ticks {
            Ticks::Enabled => data.time_enabled(),
            Ticks::OnItsCpu => data.time_running(),
        };
        self.time = time.map_or(self.time, |time| CpuNs(nanoseconds(time)));
    }

    /// Whether time has passed since it was asked last.
    fn has_moved(&mut self) -> bool {
        self.refresh();
        std::mem::replace(&mut self.turn, self.time) < self.time
    }
}

impl OpenGroup {
    /// Reads what it has counted.
    fn refresh(&mut self) {
        let data = self.read().ok();
        self.is_read = data.is_some();
        if let Some(data) = data {
            let enabled = CpuNs(data.time_enabled().map_or(0, nanoseconds));
            let running = CpuNs(data.time_running().map_or(0, nanoseconds));
            for (entry, last) in data.iter().zip(&mut self.last) {
                *last = Reading { count: entry.value(), enabled, running };
            }
        }
    }

    /// Adds this group's readings to those of the same rows in other places and on other units. The time that it was
    /// enabled is its own, or that of the clock of its rotation.
    ///
    /// A sum that left one place out would go backwards, so a group that can't be read adds what it
    /// had.
    fn add_to(&self, readings: &mut [Option<Reading>], sums: &RowSums, clock: Option<&PlaceClock>) {
        for (&reading, &row) in self.last.iter().zip(&self.members) {
            let enabled = clock.map_or(reading.enabled, |clock| clock.enabled(reading.running));
            sums.add(readings, row, Reading { enabled, ..reading });
        }
    }

    /// Whether a child has only a part of the group.
    fn is_torn(&mut self) -> bool {
        !self.siblings.is_empty() && self.read().is_err_and(|error| is_torn(&error))
    }

    /// # Errors
    /// ECHILD where a child has a part of the group; others of a pinned group that is in error state, or a task that is
    /// gone.
    fn read(&mut self) -> io::Result<GroupData> {
        for attempt in 0..MAX_RETRIES {
            match self.leader.read_group() {
                Err(error) if is_torn(&error) => {
                    if attempt >= QUICK_RETRIES {
                        thread::sleep(RETRY_SLEEP);
                    }
                }
                read => return read,
            }
        }
        Err(Errno::ECHILD.into())
    }
}

fn is_torn(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ECHILD as i32)
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether this machine counts an event of the calling process, found by trying.
pub fn probe(event: &Event) -> Status {
    if event.kind == EventKind::Tool {
        return Status::Counted;
    }
    let plan = Plan::of_group(vec![event.clone()], Cohesion::Chosen);
    let opened = PerfSource::open(&plan, &CountedTarget::held(nix::unistd::getpid()));
    let status = opened.ok().and_then(|source| Some(source.rows.first()?.status.clone()));
    status.unwrap_or(Status::NotSupported)
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::print_stdout,
        reason = "a panic is how a test fails; one that is skipped says why"
    )]

    use std::sync::mpsc;

    use perf_event::events::Software;
    use perf_event::{Builder, ReadFormat};

    use super::*;
    use crate::host::HostFiles;

    /// Whether this kernel refuses to read groups that children have a part of: from Linux 6.6 on.
    fn refuses_torn_groups() -> bool {
        let release = HostFiles::here().release().unwrap_or_default();
        let mut numbers = release.split(|sign: char| !sign.is_ascii_digit()).map_while(|word| word.parse::<u32>().ok());
        (numbers.next(), numbers.next()) >= (Some(6), Some(6))
    }

    #[test]
    fn a_group_that_a_thread_has_a_part_of_is_torn_until_that_ends() {
        let builder = || {
            let mut builder = Builder::new(Software::PAGE_FAULTS);
            builder.exclude_kernel(true).exclude_hv(true).inherit(true);
            builder
        };
        let Ok(mut leader) = builder().read_format(ReadFormat::GROUP).build() else {
            return println!("skipped: this user may not count page faults");
        };
        // It starts when there is a leader alone, and inherits that.
        let (end, ends) = mpsc::channel::<()>();
        let started = thread::spawn(move || ends.recv());
        let siblings = vec![builder().build_with_group(&mut leader).unwrap()];
        let (group, clock, members, last) = (GroupIndex(0), None, Vec::new(), Vec::new());
        let (is_of_unit, task, cpu, is_read) = (false, None, None, false);
        let mut group = OpenGroup { group, clock, leader, siblings, members, is_of_unit, task, cpu, last, is_read };
        if refuses_torn_groups() {
            assert!(group.is_torn());
        } else {
            println!("skipped: this kernel reads groups that a thread has a part of");
        }
        drop(end);
        let _ = started.join();
        // The kernel may take a moment to forget a thread that was joined.
        let patience = Instant::now() + Duration::from_secs(10);
        while group.is_torn() && Instant::now() < patience {
            thread::yield_now();
        }
        assert!(!group.is_torn());
    }
}
