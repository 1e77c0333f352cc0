//! Opens the counters of a measurement: the kernel's or a model's, limited to a few or not, with tool events among
//! them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::child::Ended;
use super::{Launch, Needs, StartError, schedule};
use crate::events::EventKind;
use crate::plan::{KERNEL_SLICE, Plan};
use crate::run::RotatedBy;
use crate::sources::emulate::{self, Emulator, ModelLog};
use crate::sources::limited::Limited;
use crate::sources::perf::{CounterRow, PerfSource, TargetKind, TracefsProbes};
use crate::sources::tool::Tools;
use crate::sources::watched::{Watched, threads_of};
use crate::sources::{Counter, CounterSource};
use crate::units::{KernelNs, WallNs};

/// Counters that are open, with what became of each row.
pub(super) struct Opened {
    pub(super) source: Box<dyn CounterSource>,
    pub(super) rows: Vec<CounterRow>,
    pub(super) rotated_by: Option<RotatedBy>,
    /// Reads from valgrind's log which caches it models.
    pub(super) model_log: Option<ModelLog>,
}

impl Opened {
    /// Has rounds counted from now on.
    pub(super) fn start_clock(&mut self) -> KernelNs {
        let began = KernelNs::now();
        self.source.start_clock(Instant::now());
        began
    }

    /// A source as it is, or limited to some counters with slices of this length.
    fn new(
        source: impl CounterSource + 'static,
        rows: Vec<CounterRow>,
        plan: &Plan,
        launch: &Launch,
        slice: Option<Duration>,
    ) -> Self {
        let source: Box<dyn CounterSource> = match launch.counters {
            Some(counters) => Box::new(Limited::new(source, plan, &rows, counters, slice).after(launch.first_turn)),
            None => Box::new(source),
        };
        let every_ns = slice.map(WallNs::from);
        let rotated_by = launch.counters.map(|counters| RotatedBy::Emulated { counters, every_ns });
        Self { source, rows, rotated_by, model_log: None }
    }

    /// The same with tool events in it, if the plan has some.
    fn with_tools(self, plan: &Plan, launch: &Launch, kind: &TargetKind, ended: &Ended) -> Self {
        if !plan.events.iter().any(|event| event.kind == EventKind::Tool) {
            return self;
        }
        let Self { source, mut rows, rotated_by, model_log } = self;
        let places = rows.iter_mut().filter(|row| !row.is_anchor());
        let places = places.map(|row| (plan.event(row.member), &row.scope, &mut row.status));
        let ended = Arc::clone(ended);
        let at_end = Box::new(move || ended.get().map(|&(_, cpu_time)| cpu_time));
        let tools = Tools::new(source, places, kind, launch.cpus.as_deref(), launch.delay.is_some(), at_end);
        Self { source: Box::new(tools), rows, rotated_by, model_log }
    }

    /// The same with what the threads of the target do, if that is wanted.
    fn with_threads(self, launch: &Launch, kind: &TargetKind) -> Self {
        let threads = threads_of(kind, launch.cpus.as_deref());
        let Some((interval, threads)) = launch.threads.zip(threads) else { return self };
        Self { source: Box::new(Watched::new(self.source, threads, interval)), ..self }
    }

    /// Fewer events than are needed are an error.
    fn checked(self, launch: &Launch) -> Result<Self, StartError> {
        let mut rows = self.rows.iter().filter(|row| !row.is_anchor());
        let is_enough = match launch.needs {
            Needs::Nothing => true,
            Needs::One => rows.any(|row| row.status.is_open()),
            // A thread that has ended meanwhile says nothing of an event.
            Needs::All => rows.all(CounterRow::is_whole),
        };
        if is_enough { Ok(self) } else { Err(StartError::NotOpened(self.rows)) }
    }
}

/// The probes that a target's threads and processes inherit, made of the events that are counted or sampled.
pub(super) fn probes(plan: &Plan, launch: &Launch, kind: &TargetKind) -> TracefsProbes {
    let is_of_tasks = !matches!(kind, TargetKind::Everyone | TargetKind::Cgroup(_));
    if !launch.inherit || !is_of_tasks || launch.counter != Counter::Kernel {
        return TracefsProbes::default();
    }
    let counted = plan.members().map(|member| plan.event(member));
    #[cfg(feature = "stacks")]
    let counted = counted.chain(launch.stacks.iter().flat_map(|stacks| &stacks.events));
    TracefsProbes::of(counted)
}

/// Opens what can be opened of the kernel's counters.
pub(super) fn open(
    plan: &Plan,
    launch: &Launch,
    kind: &TargetKind,
    probes: &TracefsProbes,
    ended: &Ended,
) -> Result<Opened, StartError> {
    let target = launch.counted(kind, probes);
    let own = schedule::own_rotations(plan, launch, &target);
    let by = own.rotated_by(plan, launch);
    let opened = PerfSource::open_rotating(plan, &target, own.rotations, own.budget);
    let mut source = opened.map_err(StartError::Open)?;
    // Before the command, if there is one, so that none of its time is left out.
    if launch.begins_at_once(&target) {
        source.enable();
    }
    let rows = source.rows().to_vec();
    let opened = Opened::new(source, rows, plan, launch, Some(KERNEL_SLICE))
        .with_tools(plan, launch, kind, ended)
        .with_threads(launch, kind);
    let rotated_by = opened.rotated_by.or(by);
    Opened { rotated_by, ..opened }.checked(launch)
}

/// What runs the command under a model, if that is to count.
pub(super) fn emulator(launch: &Launch) -> Result<Option<Emulator>, StartError> {
    let Counter::Model(model) = &launch.counter else { return Ok(None) };
    let valgrind = emulate::find().ok_or(StartError::NoValgrind)?;
    Emulator::new(valgrind, model, launch.inherit).map(Some).map_err(StartError::System)
}

/// The counters of a model.
pub(super) fn emulated(emulator: Emulator, plan: &Plan, launch: &Launch, pid: Pid) -> Result<Opened, StartError> {
    let log = emulator.model_log(pid);
    let mut source = emulator.source(plan, pid);
    if launch.delay.is_some() {
        source.wait_for_enable();
    }
    let rows = source.rows().to_vec();
    // A slice of the kernel's length would be shorter than an answer takes.
    Opened { model_log: Some(log), ..Opened::new(source, rows, plan, launch, None) }.checked(launch)
}
