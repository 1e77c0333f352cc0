//! Options in, what a measurement needs out: a plan, relations, a target, a monitor.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nix::unistd::Pid;

use super::Error;
use super::args::{Corrections, Counting, EstimatorName, Events, SourceName, Target};
use super::stream::say;
use crate::estimate::{Estimator, Linear, Scale};
use crate::events::{Event, Kind, Machine, Resolver, Tables, with_letters};
use crate::monitor::Monitor;
use crate::plan::{Plan, PlannedGroup};
use crate::recording::{self, Header, RecordedEvent, RecordedTruth, RelationFile};
use crate::relations::{self, LoadError, Relation};
use crate::session::{ChildIo, CommandLine, Launch, Session, StartError, find_command};
use crate::sources::perf::{self, Cgroup, Row, Split, Who, parse_cpus};
use crate::sources::{Counter, Status, emulate, process};
use crate::units::WallNs;
use crate::words::{nearest, shown};

/// Rounds under the intervals of screens and texts come at least this often.
const LONGEST_PERIOD: Duration = Duration::from_millis(100);

/// Counted where there is a PMU and nobody says what to count.
const DEFAULT_HARDWARE: &str =
    "CYCLES,INSTRUCTIONS,L1_MISSES,L2_MISSES,branch-misses,task-clock,page-faults,context-switches";
/// Counted where there is none.
const DEFAULT_SOFTWARE: &str = "task-clock,page-faults,minor-faults,major-faults,context-switches,cpu-migrations";

/// Counted by the model where nobody says what to count.
const DEFAULT_MODELLED: &str = "INSTRUCTIONS,L1_MISSES,LLC_MISSES,L1I_MISSES,BRANCHES,BRANCH_MISSES";

/// All that the options say about what to count.
pub(super) struct Wishes {
    pub(super) plan: Plan,
    pub(super) counter: Counter,
    /// How many events are counted at once, where the options say so.
    pub(super) counters: Option<usize>,
    pub(super) relations: Relations,
    pub(super) estimator: EstimatorName,
}

/// Relations, and the files that they came from.
#[derive(Default)]
pub(super) struct Relations {
    pub(super) all: Vec<Relation>,
    pub(super) files: Vec<RelationFile>,
}

/// Reads the options of a verb that measures.
pub(super) fn wishes(events: &Events) -> Result<Wishes, Error> {
    let counter = counter(&events.counting)?;
    let counters = events.counting.counters.map(usize::from);
    let resolver = match counter {
        Counter::Kernel => resolver(events.event_tables.as_deref())?,
        Counter::Model(_) => Resolver::new(Machine::emulated()),
    };
    let plan = plan(&resolver, &events.events, counters)?;
    let relations = load_relations(&events.corrections)?;
    let estimator = events.corrections.estimator.unwrap_or_else(|| default_estimator(&relations));
    Ok(Wishes { plan, counter, counters, relations, estimator })
}

fn default_estimator(relations: &Relations) -> EstimatorName {
    if relations.all.is_empty() { EstimatorName::Scale } else { EstimatorName::Linear }
}

/// A resolver of this machine's events, and of those in a folder of event tables.
pub(super) fn resolver(tables: Option<&Path>) -> Result<Resolver, Error> {
    let machine = Machine::here();
    let tables = tables.map(|folder| Tables::read(folder, &machine)).transpose().map_err(Error::Tables)?;
    Ok(Resolver::new(machine).with_tables(Arc::new(tables.unwrap_or_default())))
}

/// Who is to count; a model needs valgrind.
fn counter(counting: &Counting) -> Result<Counter, Error> {
    match (counting.source, &counting.model) {
        (SourceName::Perf, None) => Ok(Counter::Kernel),
        (SourceName::Perf, Some(_)) => Err(Error::Usage("--model is about --source emulate".into())),
        (SourceName::Emulate, _) if emulate::find().is_none() => Err(Error::NoValgrind),
        (SourceName::Emulate, None) => Ok(Counter::Model(emulate::Model::default())),
        (SourceName::Emulate, Some(text)) => {
            let wrong = |error: String| Error::Usage(format!("--model: {}", shown(&error)));
            emulate::Model::parse(text).map(Counter::Model).map_err(wrong)
        }
    }
}

fn plan(resolver: &Resolver, events: &[String], counters: Option<usize>) -> Result<Plan, Error> {
    let names = if events.is_empty() { defaults(resolver.machine()).to_owned() } else { events.join(",") };
    let groups = resolver.parse(&names).map_err(Error::Events)?;
    let plan = match counters {
        Some(counters) => Plan::limited(groups, counters),
        // The model counts everything at once.
        None if resolver.machine().is_emulated() => Plan::limited(groups, usize::MAX),
        None => Plan::new(groups, &mut perf::fit),
    };
    plan.map_err(Error::Unschedulable)
}

/// The best that there is to count where nobody says what; it is said which and why.
fn defaults(machine: &Machine) -> &'static str {
    let (names, why) = if machine.is_emulated() {
        (DEFAULT_MODELLED, "")
    } else if has_core_pmu(machine) {
        (DEFAULT_HARDWARE, "")
    } else {
        (
            DEFAULT_SOFTWARE,
            " (this machine exposes no hardware counters; modelled cache and branch misses: --source emulate)",
        )
    };
    say(&format!("no -e given: counting {names}{why}"));
    names
}

/// Whether the kernel knows a PMU of the processor: by its usual names, or by the CPUs that it
/// lists for itself.
pub(super) fn has_core_pmu(machine: &Machine) -> bool {
    let is_core = |name: &str| name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv");
    let entries = std::fs::read_dir(machine.devices()).into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).any(|name| is_core(&name))
}

/// Reads relation files; with `lenient`, goes on without what is wrong in them.
pub(super) fn load_relations(corrections: &Corrections) -> Result<Relations, Error> {
    let Corrections { relations: paths, relations_lenient: lenient, .. } = corrections;
    let mut found = Relations::default();
    let mut wrong = Vec::new();
    for path in paths {
        // Read once: it may be a pipe, and what is recorded must be what was used.
        let failed = |error| Error::RelationFile(LoadError { path: path.clone(), error });
        let bytes = relations::read(path).map_err(failed)?;
        let file = path.display().to_string();
        let parsed = relations::parse(&file, &bytes);
        found.files.push(RelationFile { file, text: String::from_utf8_lossy(&bytes).into_owned() });
        if !parsed.diagnostics.is_empty() {
            wrong.push(parsed.diagnostics);
        }
        found.all.extend(parsed.relations);
    }
    distinguish(&mut found.all);
    if wrong.is_empty() {
        return Ok(found);
    }
    let error = Error::Relations(wrong);
    if !*lenient {
        return Err(error);
    }
    say(&format!("going on without the relations that are wrong:\n{error}"));
    Ok(found)
}

/// Reads the relations of a recording, which were read before.
pub(super) fn recorded_relations(files: &[RelationFile]) -> Vec<Relation> {
    let parsed = files.iter().map(|file| relations::parse(&file.file, file.text.as_bytes()));
    let mut all: Vec<_> = parsed.flat_map(|parsed| parsed.relations).collect();
    distinguish(&mut all);
    all
}

/// Two files may each have an R1: the second one is called by its file, too.
fn distinguish(relations: &mut [Relation]) {
    let mut taken = HashSet::new();
    for relation in relations {
        if !taken.insert(relation.id.clone()) {
            let stem = Path::new(&relation.place.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let id = relation.id.clone();
            relation.id = (1..)
                .map(|n| if n == 1 { format!("{stem}.{id}") } else { format!("{stem}{n}.{id}") })
                .find(|id| !taken.contains(id))
                .unwrap_or(id);
            taken.insert(relation.id.clone());
        }
    }
}

/// What to start and whom to measure.
pub(super) fn launch(target: &Target, io: ChildIo) -> Result<Launch, Error> {
    let aim = aim(target)?;
    if aim.is_none() && target.command.is_empty() {
        let how = "give a command after --, processes with -p PID, or the machine with -a";
        return Err(Error::Usage(format!("nothing to measure: {how}")));
    }
    if let Some(command) = target.command.first() {
        check_command(command)?;
    }
    let argv = target.command.clone();
    let command = (!argv.is_empty()).then_some(CommandLine { argv, io });
    let delay = target.delay.map(Duration::from_millis);
    let timeout = target.timeout.map(Duration::from_millis);
    Ok(Launch { command, cpus: cpus(target)?, inherit: !target.no_inherit, delay, timeout, ..Launch::attach(aim) })
}

/// What is measured besides a command.
fn aim(target: &Target) -> Result<Option<Who>, Error> {
    let pids = |numbers: &[i32]| {
        let mut seen = HashSet::new();
        numbers.iter().filter(|number| seen.insert(**number)).map(|&number| Pid::from_raw(number)).collect()
    };
    if !target.pid.is_empty() {
        return Ok(Some(Who::Processes(pids(&target.pid))));
    }
    if !target.tid.is_empty() {
        return Ok(Some(Who::Threads(pids(&target.tid))));
    }
    if let Some(name) = &target.cgroup {
        let failed = |error| Error::Usage(format!("no control group {} below /sys/fs/cgroup: {error}", shown(name)));
        return Cgroup::open(name).map(|cgroup| Some(Who::Cgroup(cgroup))).map_err(failed);
    }
    Ok((target.all_cpus || target.cpu.is_some()).then_some(Who::Everyone))
}

fn cpus(target: &Target) -> Result<Option<Vec<u32>>, Error> {
    let Some(text) = &target.cpu else { return Ok(None) };
    let cpus =
        parse_cpus(text).ok_or_else(|| Error::Usage(format!("-C takes CPUs as in 0-2,5, not {}", shown(text))))?;
    Ok(Some(cpus))
}

/// Finds out before anything is started what exec would say.
fn check_command(command: &OsString) -> Result<(), Error> {
    let failed = |kind: io::ErrorKind| Error::Command {
        command: command.clone(),
        source: kind.into(),
        similar: similar_command(command),
    };
    match find_command(command) {
        None => Err(failed(io::ErrorKind::NotFound)),
        Some(path) if !path.exists() => Err(failed(io::ErrorKind::NotFound)),
        Some(path) if !process::is_executable(&path) => Err(Error::Command {
            command: command.clone(),
            source: io::ErrorKind::PermissionDenied.into(),
            similar: None,
        }),
        Some(_) => Ok(()),
    }
}

/// A program beside the one that isn't there, or in the same folder, with nearly its name.
fn similar_command(command: &OsString) -> Option<String> {
    let path = Path::new(command);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folders = match parent {
        Some(parent) => vec![parent.to_owned()],
        None => std::env::split_paths(&std::env::var_os("PATH")?).chain([PathBuf::from(".")]).collect(),
    };
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let programs = entries.filter(|entry| process::is_executable(&entry.path()));
    let names: Vec<_> = programs.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let name = path.file_name()?.to_str()?;
    let nearest = *nearest(name, names.iter().map(String::as_str)).first()?;
    let full = parent.map_or_else(|| PathBuf::from(nearest), |parent| parent.join(nearest));
    let in_this_folder = parent.is_none() && find_command(&nearest.into()).is_none();
    Some(if in_this_folder { format!("./{nearest}") } else { full.display().to_string() })
}

/// The time between rounds for intervals of this length: so that whole rounds make an interval.
pub(super) fn period(interval: Duration) -> Duration {
    let rounds = interval.as_nanos().div_ceil(LONGEST_PERIOD.as_nanos()).max(1);
    interval / u32::try_from(rounds).unwrap_or(u32::MAX)
}

/// Starts measuring, and describes it.
pub(super) fn start(
    wishes: &Wishes,
    launch: &Launch,
    period: Duration,
    interval: Duration,
) -> Result<(Session, Header), Error> {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let launch = &Launch { counter: wishes.counter.clone(), counters: wishes.counters, ..launch.clone() };
    check_modelled(launch)?;
    let session = Session::start(&wishes.plan, launch, period).map_err(|error| refused(error, wishes))?;
    let recorded = |row: &Row| RecordedEvent {
        event: opened(&wishes.plan.events[row.event], &row.status),
        status: row.status.clone(),
        scope: row.scope.clone(),
    };
    let events: Vec<_> = session.rows().iter().map(recorded).collect();
    tell_partial(&events);
    let events_len = events.len();
    let header = Header {
        version: recording::VERSION,
        perfprop: env!("CARGO_PKG_VERSION").into(),
        started: started.as_secs_f64(),
        machine: recording::Machine::this(),
        target: session.target().clone(),
        truths: truths(launch, events_len),
        modelled: session.model().cloned(),
        events,
        groups: groups_of_rows(&wishes.plan, events_len),
        relations: wishes.relations.files.clone(),
        estimator: name(wishes.estimator).into(),
        period_ns: WallNs::from(period),
        interval_ns: WallNs::from(interval),
    };
    Ok((session, header))
}

/// A column of truth for each row, where rows are made to take turns.
fn truths(launch: &Launch, rows: usize) -> Vec<RecordedTruth> {
    let rows = 0..launch.counters.map_or(0, |_| rows);
    rows.map(|truth_of| RecordedTruth { truth_of }).collect()
}

/// The model runs a command of its own, and knows no CPUs.
fn check_modelled(launch: &Launch) -> Result<(), Error> {
    if launch.counter == Counter::Kernel {
        return Ok(());
    }
    let refused = |what: &str| Err(Error::Usage(format!("--source emulate {what}")));
    match launch {
        Launch { aim: Some(_), .. } => refused("runs the command under a model: it can't measure what runs already"),
        Launch { command: None, .. } => refused("needs a command after --"),
        Launch { cpus: Some(_), .. } => refused("models one CPU: -C has no meaning there"),
        Launch { split, .. } if *split != Split::Sum => refused("counts all of a command: no rows by CPU or thread"),
        _ => Ok(()),
    }
}

/// The event as it was opened: one that is counted in user space only says so in its name.
fn opened(event: &Event, status: &Status) -> Event {
    let mut event = event.clone();
    if *status == Status::UserOnly {
        event.modifiers.exclude_kernel = true;
        event.modifiers.exclude_hv = true;
        event.name = with_letters(&event.name, "u");
    }
    event
}

/// The groups of every scope: each has the plan's events once, in their order.
fn groups_of_rows(plan: &Plan, rows: usize) -> Vec<PlannedGroup> {
    let scopes = (0..rows).step_by(plan.events.len().max(1));
    let shifted = |first: usize| plan.groups.iter().map(move |group| group.shifted(first));
    scopes.flat_map(shifted).collect()
}

/// A part that can't be counted is never passed over in silence.
fn tell_partial(events: &[RecordedEvent]) {
    let closed: Vec<_> = events.iter().filter(|event| !event.status.is_open()).collect();
    if closed.is_empty() {
        return;
    }
    let reasons: Vec<_> =
        closed.iter().map(|event| format!("{}: {}", shown(&event.event.name), reason(event))).collect();
    say(&format!("{} of {} events opened; {}", events.len() - closed.len(), events.len(), reasons.join("; ")));
}

fn reason(event: &RecordedEvent) -> String {
    let code = if event.status == Status::Forbidden { "E01" } else { "E02" };
    match event.event.unavailable() {
        Some(reason) if event.event.kind == Kind::Modelled => reason,
        Some(reason) => format!("{reason} ({code})"),
        None => format!("{} ({code})", event.status),
    }
}

fn refused(error: StartError, wishes: &Wishes) -> Error {
    let plan = &wishes.plan;
    match error {
        StartError::NoValgrind => Error::NoValgrind,
        StartError::Command { command, source } => Error::Command { command, source, similar: None },
        StartError::Open(error) => Error::Open(error),
        StartError::System(error) => Error::System(error),
        StartError::NoTarget => Error::Usage("nothing to measure".into()),
        StartError::NothingOpened(rows) => {
            let names = |events: &[Event]| events.iter().map(|event| event.name.clone()).collect();
            if wishes.counter != Counter::Kernel {
                Error::NotModelled(plan.events.iter().filter_map(Event::unavailable).collect())
            } else if rows.iter().any(|row| row.status == Status::Forbidden) {
                Error::NotPermitted { events: names(&plan.events), paranoid: paranoid() }
            } else {
                Error::NoCounters { events: names(&plan.events), has_pmu: has_core_pmu(&Machine::here()) }
            }
        }
    }
}

fn paranoid() -> Option<i32> {
    std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

/// A monitor with the estimator of this name.
pub(super) fn monitor(header: Header, relations: Vec<Relation>, estimator: EstimatorName) -> Monitor {
    let events: Vec<_> = header.events.iter().map(|event| event.event.clone()).collect();
    let estimator: Box<dyn Estimator> = match estimator {
        EstimatorName::Scale => Box::new(Scale::new(&events, &relations)),
        EstimatorName::Linear => Box::new(Linear::new(&events, &relations)),
    };
    Monitor::new(header, relations, estimator)
}

/// The name of an estimator in recordings.
pub(super) fn name(estimator: EstimatorName) -> &'static str {
    match estimator {
        EstimatorName::Scale => "scale",
        EstimatorName::Linear => "linear",
    }
}

/// The estimator of this name; recordings of other versions may have others.
pub(super) fn estimator_named(text: &str) -> Option<EstimatorName> {
    [EstimatorName::Scale, EstimatorName::Linear].into_iter().find(|&estimator| name(estimator) == text)
}
