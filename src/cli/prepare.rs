//! Prepares a measurement from options: the plan, relations, the target, the monitor.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nix::unistd::Pid;

use super::args::{Corrections, Counting, Events, SourceName, Target};
use super::misspelt::misspelt;
use super::refused::refused;
use super::stream::say;
use super::turns;
use super::{Error, metrics};
use crate::estimate::gp::{CovarianceModel, MAX_EVENTS};
use crate::estimate::{Estimator, EstimatorKind, Gaussian};
use crate::events::{self, Event, Machine, Merge, Pmu, Resolver, Space, Tables, parse_cpus, with_letters};
use crate::expr::Fact;
use crate::metrics::{Catalog, Facts, MeasuredScope, Metric, MetricRequest};
use crate::monitor::Monitor;
use crate::names::{nearest, shown};
use crate::plan::{EventIndex, Fit, Plan, PlannedGroup};
use crate::rates::Confidence;
use crate::relations::{self, LoadError, Relation};
use crate::run::{self, Anchor, Header, MeasuredEvent, MeasuredTarget, MetricFormula, RelationFile, TruthColumn};
use crate::session::{ChildIo, CommandLine, Launch, Schedule, Session, find_command};
use crate::sources::perf::{self, Cgroup, CounterRow, Split, Who};
use crate::sources::{Counter, Status, emulate, process};
use crate::units::WallNs;

/// What gives the least errors of those that are known. Where nothing is multiplexed it does no more than
/// `scale`.
const DEFAULT_ESTIMATOR: EstimatorKind = EstimatorKind::Gp;

/// Rounds under the intervals of screens and texts come at least this often.
const LONGEST_PERIOD: Duration = Duration::from_millis(100);

/// Where events are multiplexed and `gp` learns how they vary together: the length of the kernel's slices.
const TURN: Duration = Duration::from_millis(4);

/// Counted where there is a PMU and nobody says what to count.
const DEFAULT_HARDWARE: &str =
    "CYCLES,INSTRUCTIONS,L1_MISSES,L2_MISSES,branch-misses,task-clock,page-faults,context-switches";
/// Counted where there is none.
const DEFAULT_SOFTWARE: &str = "task-clock,page-faults,minor-faults,major-faults,context-switches,cpu-migrations";

/// Counted by the model where nobody says what to count.
const DEFAULT_MODELLED: &str = "INSTRUCTIONS,L1_MISSES,LLC_MISSES,L1I_MISSES,BRANCHES,BRANCH_MISSES";

/// Events, metrics and counters that the options request.
pub(super) struct Wishes {
    pub(super) plan: Plan,
    pub(super) metrics: Vec<MetricFormula>,
    pub(super) counter: Counter,
    /// The number of events that are counted at once, where the options say so.
    pub(super) counters: Option<usize>,
    pub(super) schedule: Schedule,
    pub(super) relations: Relations,
    pub(super) estimator: Estimation,
    /// What was said of them and screens are to show too.
    pub(super) notes: Vec<String>,
}

/// The estimator and its options.
#[derive(Clone, Debug)]
pub(super) struct Estimation {
    pub(super) kind: EstimatorKind,
    pub(super) confidence: Confidence,
    /// What earlier runs of the program taught [`EstimatorKind::Gp`].
    pub(super) learnt: Option<Arc<CovarianceModel>>,
}

/// Relations, and the files that they came from.
#[derive(Default)]
pub(super) struct Relations {
    pub(super) all: Vec<Relation>,
    pub(super) metrics: Vec<Metric>,
    pub(super) files: Vec<RelationFile>,
}

/// Reads the options of a verb that measures.
pub(super) fn wishes(events: &Events, target: &Target) -> Result<Wishes, Error> {
    wishes_with(events, target, Unnamed::Default, &[])
}

/// What is counted where nobody says what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unnamed {
    /// The best that there is.
    Default,
    Nothing,
}

/// The requested events, with further ones behind those that were asked for or are counted by default.
pub(super) fn wishes_with(
    events: &Events,
    target: &Target,
    unnamed: Unnamed,
    further: &[&str],
) -> Result<Wishes, Error> {
    let counter = counter(&events.counting)?;
    let counters = events.counting.counters.map(usize::from);
    let resolver = match counter {
        Counter::Kernel => resolver(events.event_tables.as_deref())?,
        Counter::Model(_) => Resolver::new(Machine::emulated()),
    };
    let resolver = match (events.all_user, events.all_kernel) {
        (false, false) => resolver,
        (true, _) => resolver.only_in(Space::User),
        (false, true) => resolver.only_in(Space::Kernel),
    };
    let resolver = resolver.merging(if events.no_merge { Merge::Nothing } else { Merge::Units });
    let mut relations = load_relations(&events.corrections)?;
    let catalog = metrics::catalog(&relations.metrics, resolver.tables())?;
    let scope = if target.all_cpus { MeasuredScope::Whole } else { MeasuredScope::Part };
    let facts = Facts::new(&resolver, scope);
    let request = metrics::request(&events.metrics, &catalog, &facts, events.metric_no_group)?;
    relations.expand(&catalog, &facts)?;
    let related = |events: &[Event]| related(&relations.all, events);
    let groups = groups(&resolver, &events.events, &request, unnamed, further)?;
    let plan = plan(&resolver, groups, &request, counters, related)?;
    let schedule = turns::schedule(events, &plan, &resolver)?;
    let kind = events.corrections.estimator.unwrap_or(DEFAULT_ESTIMATOR);
    let estimator = Estimation::of(&events.corrections, kind, &plan.events)?;
    if estimator.learnt.is_some() && (target.no_aggr || target.per_thread) {
        return Err(learnt_of_parts());
    }
    let notes = misspelt(&relations.all, &plan.events, &resolver);
    notes.iter().for_each(|note| say(note));
    Ok(Wishes { metrics: request.recorded(&plan), plan, counter, counters, schedule, relations, estimator, notes })
}

impl Estimation {
    /// An estimator of these events as options say it.
    pub(super) fn of<'a>(
        corrections: &Corrections,
        kind: EstimatorKind,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, Error> {
        let events: Vec<_> = events.into_iter().collect();
        if kind == EstimatorKind::Gp && events.len() > MAX_EVENTS {
            say(&format!(
                "{} events; gp holds {MAX_EVENTS} against one another, and so these are scaled",
                events.len()
            ));
        }
        let learnt = corrections.learnt.as_deref().map(|path| learnt(path, kind, events)).transpose()?;
        Ok(Self { kind, confidence: corrections.confidence, learnt })
    }
}

/// Reads what was learnt of a program; some of these events must be in it.
fn learnt<'a>(
    path: &Path,
    kind: EstimatorKind,
    events: impl IntoIterator<Item = &'a Event>,
) -> Result<Arc<CovarianceModel>, Error> {
    if kind != EstimatorKind::Gp {
        return Err(Error::Usage(format!("--learnt is for --estimator gp, not for {}", kind.name())));
    }
    let model = CovarianceModel::read(path).map_err(|error| Error::Usage(shown(&error.to_string()).into_owned()))?;
    let names: Vec<_> = events.into_iter().map(|event| event.name.as_str()).collect();
    // Whether an event can be counted in user space only isn't known before it is opened.
    if names.iter().any(|name| model.knows(name) || model.knows(&with_letters(name, "u"))) {
        return Ok(Arc::new(model));
    }
    let (file, names) = (path.display().to_string(), names.join(","));
    let (file, names, known) = (shown(&file), shown(&names), model.events().join(","));
    Err(Error::Usage(format!(
        "--learnt {file} knows none of {names}: it was learnt with {}\n      learn these:  \
         perfprop record -I 4 -o run.jsonl -e {names} -- COMMAND   then: perfprop relations learn --program {file} run.jsonl",
        shown(&known)
    )))
}

/// A model is of a whole program.
pub(super) fn learnt_of_parts() -> Error {
    Error::Usage(
        "--learnt is of a whole program: it can't say how single CPUs or threads (-A, --per-thread) count".into(),
    )
}

impl Relations {
    /// Expands names for a recording of another machine, of which no facts are known.
    pub(super) fn expand_elsewhere(&mut self) -> Result<(), Error> {
        let catalog = metrics::catalog(&self.metrics, &Tables::default())?;
        self.all = metrics::expanded(std::mem::take(&mut self.all), &catalog, &|_| None)?;
        Ok(())
    }

    /// Puts formulas in place of the metrics that equations name. Their definitions are recorded with
    /// the relations, as what this machine knows and its event tables say isn't known elsewhere.
    fn expand(&mut self, catalog: &Catalog, facts: &Facts<'_>) -> Result<(), Error> {
        let know = |fact: &Fact| facts.know(fact);
        let named = metrics::named(&self.all, catalog, &know);
        self.all = metrics::expanded(std::mem::take(&mut self.all), catalog, &know)?;
        if !named.is_empty() {
            let text = relations::metric_file(&named);
            self.files.insert(0, RelationFile { file: "metrics of this machine".into(), text });
        }
        Ok(())
    }
}

/// The events that each relation ties together.
fn related(relations: &[Relation], events: &[Event]) -> Vec<Vec<EventIndex>> {
    let events_of = |relation: &Relation| match relation.bind(events) {
        relations::RelationBinding::Active(bound) => bound.events(),
        relations::RelationBinding::Inactive { .. } | relations::RelationBinding::SelfRelation { .. } => Vec::new(),
    };
    relations.iter().map(events_of).collect()
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
        (SourceName::Emulate, None) => Ok(Counter::Model(emulate::CacheModel::default())),
        (SourceName::Emulate, Some(text)) => {
            let wrong = |error: String| Error::Usage(format!("--model: {}", shown(&error)));
            emulate::CacheModel::parse(text).map(Counter::Model).map_err(wrong)
        }
    }
}

/// The groups of what was asked for; those of metrics come to them.
fn groups(
    resolver: &Resolver,
    events: &[String],
    request: &MetricRequest,
    unnamed: Unnamed,
    further: &[&str],
) -> Result<Vec<events::Group>, Error> {
    let mut names: Vec<_> = events.iter().map(String::as_str).collect();
    if names.is_empty() && request.is_empty() && unnamed == Unnamed::Default {
        names.push(defaults(resolver));
    }
    names.extend(further);
    if names.is_empty() { Ok(Vec::new()) } else { resolver.parse(&names.join(",")).map_err(Error::Events) }
}

fn plan(
    resolver: &Resolver,
    groups: Vec<events::Group>,
    request: &MetricRequest,
    counters: Option<usize>,
    related: impl Fn(&[Event]) -> Vec<Vec<EventIndex>>,
) -> Result<Plan, Error> {
    // The model counts everything at once.
    let plan = match counters.or(resolver.machine().is_emulated().then_some(usize::MAX)) {
        Some(counters) => {
            let mut fit = |events: &[&Event]| if events.len() > counters { Fit::TooMany } else { Fit::Fits };
            Plan::limited(request.add_to(groups, &mut fit), counters)
        }
        // Anchors come last: they take what room the groups of metrics leave.
        None => Plan::new(request.add_to(groups, &mut perf::fit), &mut perf::fit)
            .map(|plan| plan.linked(related, &mut perf::fit)),
    };
    plan.map_err(Error::Unschedulable)
}

/// The best that there is to count where nobody says what; it is said which and why.
fn defaults(resolver: &Resolver) -> &'static str {
    let (names, why) = if resolver.machine().is_emulated() {
        (DEFAULT_MODELLED, "")
    } else if resolver.pmus().iter().any(Pmu::is_core) {
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

/// Reads relation files; with `lenient`, goes on without what is wrong in them.
pub(super) fn load_relations(corrections: &Corrections) -> Result<Relations, Error> {
    load_files(&corrections.relations, corrections.relations_lenient)
}

/// Loads the given relation files.
pub(super) fn load_files(paths: &[PathBuf], lenient: bool) -> Result<Relations, Error> {
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
        found.metrics.extend(parsed.metrics);
    }
    distinguish(&mut found.all);
    if wrong.is_empty() {
        return Ok(found);
    }
    let error = Error::Relations(wrong);
    if !lenient {
        return Err(error);
    }
    say(&format!("going on without the relations that are wrong:\n{error}"));
    Ok(found)
}

/// Reads the relations of a recording, which were read before. Metrics that they name are in its files.
pub(super) fn recorded_relations(files: &[RelationFile]) -> Vec<Relation> {
    let parsed: Vec<_> = files.iter().map(|file| relations::parse(&file.file, file.text.as_bytes())).collect();
    let catalog = Catalog::new(parsed.iter().flat_map(|parsed| parsed.metrics.iter().cloned()));
    let mut all: Vec<_> = parsed.into_iter().flat_map(|parsed| parsed.relations).collect();
    distinguish(&mut all);
    let mut formulas = catalog.formulas(&|_| None);
    let expand = |relation: Relation| relation.expanded(&mut formulas).unwrap_or(relation);
    all.into_iter().map(expand).collect()
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

/// Whether this user can count an event here, tried by opening it.
pub(super) fn can_count(event: &Event) -> bool {
    event.unavailable().is_none() && perf::probe(event).is_open()
}

/// The command to start and the target to measure.
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
    let (cpus, split, inherit) = (cpus(target)?, split(target)?, !target.no_inherit);
    Ok(Launch { command, cpus, inherit, split, delay, timeout, ..Launch::attach(aim) })
}

fn split(target: &Target) -> Result<Split, Error> {
    match (target.no_aggr, target.per_thread) {
        (false, true) if target.pid.is_empty() && target.tid.is_empty() => {
            Err(Error::Usage("--per-thread needs -p PID or -t TID".into()))
        }
        (false, true) => Ok(Split::Threads),
        (true, _) => Ok(Split::Cpus),
        (false, false) => Ok(Split::Sum),
    }
}

/// The part of the target that is no command.
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
        // perf takes one for each event; they are mostly all the same.
        let mut names: Vec<_> = name.split(',').collect();
        names.dedup();
        let [name] = names[..] else {
            return Err(Error::Usage("-G takes one control group: count others in runs of their own".into()));
        };
        let failed = |_| {
            let what = format!("no control group {} that events can be counted of", shown(name));
            Error::Usage(format!("{what}\n      those there are:  find /sys/fs/cgroup -name cgroup.procs"))
        };
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
        Some(path) if path.is_dir() => {
            Err(Error::Command { command: command.clone(), source: io::ErrorKind::IsADirectory.into(), similar: None })
        }
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

impl Wishes {
    /// The time between rounds for intervals of this length: so that whole rounds make an interval.
    pub(super) fn period(&self, interval: Duration) -> Duration {
        let learns = self.estimator.kind == EstimatorKind::Gp && (self.counters.is_some() || self.plan.rotates());
        let longest = if learns { TURN } else { LONGEST_PERIOD };
        let rounds = interval.as_nanos().div_ceil(longest.as_nanos()).max(1);
        interval / u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// The same where nothing is shown but intervals: rounds within them say how far scaled counts may be off, and
    /// software events are never scaled.
    pub(super) fn period_of_texts(&self, interval: Duration) -> Duration {
        let is_scaled = self.counters.is_some() || self.plan.events.iter().any(|event| !event.kind.is_software());
        if is_scaled { self.period(interval) } else { interval }
    }
}

/// Starts measuring, and describes it.
pub(super) fn start(
    wishes: &Wishes,
    launch: &Launch,
    period: Duration,
    interval: Duration,
) -> Result<(Session, Header), Error> {
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let launch = &Launch {
        counter: wishes.counter.clone(),
        counters: wishes.counters,
        schedule: wishes.schedule.clone(),
        ..launch.clone()
    };
    check_modelled(launch)?;
    let session = Session::start(&wishes.plan, launch, period).map_err(|error| refused(error, &wishes.plan, launch))?;
    tell_ended(launch);
    let recorded = |row: &CounterRow| MeasuredEvent {
        event: opened(&wishes.plan.events[row.event], row),
        status: row.status.clone(),
        scope: row.scope.clone(),
    };
    let events: Vec<_> = session.rows().iter().filter(|row| row.anchor_of.is_none()).map(recorded).collect();
    turns::tell(session.intervals());
    session.stacks().inspect(|stacks| super::stacks::tell_unsampled(stacks));
    let anchors = anchors(&wishes.plan, &session.rows()[events.len()..]);
    let groups = groups_of_rows(&wishes.plan, events.len());
    let header = Header {
        version: run::VERSION,
        perfprop: env!("CARGO_PKG_VERSION").into(),
        started: started.as_secs_f64(),
        machine: run::MeasuredMachine::this(),
        target: session.target().clone(),
        delay_ns: launch.delay.map_or(WallNs(0), WallNs::from),
        truths: truths(launch, events.len()),
        modelled: session.model().cloned(),
        events,
        anchors,
        turns: session.turns(),
        groups,
        metrics: wishes.metrics.clone(),
        relations: wishes.relations.files.clone(),
        estimator: wishes.estimator.kind.name().into(),
        period_ns: WallNs::from(period),
        interval_ns: WallNs::from(interval),
    };
    Ok((session, header))
}

/// A column of truth for each row, where counters are emulated.
fn truths(launch: &Launch, rows: usize) -> Vec<TruthColumn> {
    let rows = 0..launch.counters.map_or(0, |_| rows);
    rows.map(|truth_of| TruthColumn { truth_of }).collect()
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

/// The event as it was opened: one that is counted in user space only says so in its name, and one of several units
/// says which have no part in it.
fn opened(event: &Event, row: &CounterRow) -> Event {
    let mut event = event.clone();
    if row.status.is_open() {
        for (unit, status) in event.encoding.units.iter_mut().zip(&row.units) {
            unit.absent = (!row.has(status)).then(|| status.word().to_owned());
        }
    }
    if row.status == Status::UserOnly {
        event.modifiers.exclude_kernel = true;
        event.modifiers.exclude_hv = true;
        event.name = with_letters(&event.name, "u");
    }
    event
}

/// The groups of every scope, by the places of their events; anchors know their groups themselves.
fn groups_of_rows(plan: &Plan, events: usize) -> Vec<PlannedGroup> {
    let width = plan.events.len().max(1);
    let in_scope = |group: &PlannedGroup, first: usize| PlannedGroup {
        members: group.members.iter().filter(|&&member| member < width).map(|member| first + member).collect(),
        cohesion: group.cohesion,
    };
    (0..events).step_by(width).flat_map(|first| plan.groups.iter().map(move |group| in_scope(group, first))).collect()
}

/// The anchors of every scope, which are in the order of the plan.
fn anchors(plan: &Plan, rows: &[CounterRow]) -> Vec<Anchor> {
    let count = plan.anchors.len().max(1);
    let recorded = |(place, row): (usize, &CounterRow)| {
        let member = plan.events.len() + place % count;
        let group = plan.groups.iter().position(|group| group.members.contains(&member))?;
        let group = place / count * plan.groups.len() + group;
        Some(Anchor { anchor_of: row.anchor_of?, group, status: row.status.clone() })
    };
    rows.iter().enumerate().filter_map(recorded).collect()
}

/// Threads that were asked for and have ended are no reason to refuse the others.
fn tell_ended(launch: &Launch) {
    let Launch { aim: Some(Who::Threads(threads)), split: Split::Sum | Split::Cpus, .. } = launch else { return };
    let ended: Vec<_> = threads.iter().filter(|&&thread| !process::is_alive(thread)).map(Pid::to_string).collect();
    if !ended.is_empty() {
        say(&format!("not counted, as they have ended: threads {}", ended.join(", ")));
    }
}

/// A part that can't be counted is never passed over in silence.
pub(super) fn tell_partial(header: &Header) {
    let events = &header.events;
    let is_elsewhere = |event: &&MeasuredEvent| event.is_elsewhere();
    let (gone, here): (Vec<_>, Vec<_>) =
        events.iter().filter(|event| !is_elsewhere(event)).partition(|event| event.status == Status::Gone);
    let gone: HashSet<_> = gone.iter().map(|event| &event.scope).collect();
    match gone.len() {
        0 => {}
        1 => say("1 thread had ended before counting began (W12)"),
        threads => say(&format!("{threads} threads had ended before counting began (W12)")),
    }
    // An event has a row in each scope, and is named once; where it is asked for twice, one may be refused.
    let mut names = HashSet::new();
    let named: Vec<_> =
        here.into_iter().filter(|event| names.insert((&event.event.name, event.status.is_open()))).collect();
    for event in &named {
        tell_units(event);
    }
    let closed: Vec<_> = named.iter().filter(|event| !event.status.is_open()).collect();
    if closed.is_empty() {
        return;
    }
    let mut reasons: Vec<(String, Vec<_>)> = Vec::new();
    for event in &closed {
        let (reason, name) = (reason(event, header), shown(&event.event.name));
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let reasons: Vec<_> = reasons.iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect();
    say(&format!("{} of {} events opened; {}", named.len() - closed.len(), named.len(), reasons.join("; ")));
}

/// A sum that lacks some of its units must not look like that of all.
fn tell_units(event: &MeasuredEvent) {
    if let Some(words) = event.lacking_words() {
        say(&format!("{} {} (W14)", shown(&event.event.name), shown(&words)));
    }
}

fn reason(event: &MeasuredEvent, header: &Header) -> String {
    let code = if event.status == Status::Forbidden { "E01" } else { "E02" };
    match event.event.unavailable() {
        None if event.status == Status::Elsewhere => {
            format!("counted on CPU {} only, which -C leaves out (W15)", event.event.cpu_list())
        }
        None if event.status == Status::NotSupported
            && !event.event.encoding.cpus.is_empty()
            && !matches!(header.target, MeasuredTarget::Everyone { .. } | MeasuredTarget::Cgroup { .. }) =>
        {
            format!("counted for whole CPUs (-a), and not for a program ({code})")
        }
        Some(reason) if event.event.kind == events::EventKind::Modelled => reason,
        Some(reason) => format!("{reason} ({code})"),
        None => format!("{} ({code})", event.status),
    }
}

/// A monitor with this estimator.
pub(super) fn monitor(header: Header, relations: Vec<Relation>, estimation: Estimation) -> Monitor {
    let events: Vec<_> = header.events.iter().map(|event| event.event.clone()).collect();
    let estimator: Box<dyn Estimator> = match estimation.learnt {
        Some(model) => Box::new(Gaussian::new(&events, &relations).with_model(model)),
        None => estimation.kind.build(&events, &relations),
    };
    Monitor::new(header, relations, estimator).with_confidence(estimation.confidence)
}
