//! Collects what batches define and count.

use std::collections::BTreeSet;
use std::fmt;

use super::batch::{RegionBatch, RegionCounts, RegionPath, RegionPathId, RegionProgram, RegionProgramId, RegionState};
use crate::names::{first_of, shown};
use crate::units::WallNs;
use perfprop_regions::{Certainty, EventSums, outlasted_words};
use rustc_hash::FxHashMap;

/// The regions of all programs at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegionTable {
    programs: Vec<(RegionProgram, RegionState)>,
    paths: Vec<RegionPath>,
    counts: Vec<Option<RegionCounts>>,
    /// What each path counted between the last two times that counts were read.
    of_late: Vec<Option<OfLate>>,
    at: WallNs,
}

/// What a path counted in a time.
#[derive(Clone, Debug, PartialEq)]
struct OfLate {
    seconds: f64,
    calls: u64,
    events: Vec<EventSums>,
}

impl OfLate {
    fn between(earlier: Option<&RegionCounts>, later: &RegionCounts, seconds: f64) -> Option<Self> {
        let before = |place: usize| earlier.and_then(|earlier| earlier.events.get(place));
        let since = |(place, event): (usize, &EventSums)| before(place).map_or(*event, |before| event.since(before));
        (seconds > 0.0).then(|| Self {
            seconds,
            calls: later.calls.saturating_sub(earlier.map_or(0, |earlier| earlier.calls)),
            events: later.events.iter().enumerate().map(since).collect(),
        })
    }
}

/// How much an event is counted in a region a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventRate {
    /// Counts a second.
    pub per_second: f64,
    /// Half the width of its 95 % interval, as [`EventTotal::half_width`](super::EventTotal::half_width).
    pub error: Option<f64>,
}

/// A batch of regions or stacks names something that no batch has defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// Kind of definition.
    pub kind: &'static str,
    /// Number that has no definition.
    pub id: u32,
}

impl Undefined {
    /// Fails unless a number is below that of what is defined.
    pub(crate) fn check(kind: &'static str, id: u32, defined: usize) -> Result<(), Self> {
        if (id as usize) < defined { Ok(()) } else { Err(Self { kind, id }) }
    }
}

impl fmt::Display for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} is not defined", self.kind, self.id)
    }
}

impl std::error::Error for Undefined {}

/// A program whose regions can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadRegions {
    /// Its process.
    pub pid: u32,
    /// Why.
    pub why: String,
}

impl fmt::Display for UnreadRegions {
    /// `Regions of process 7 can't be read: it holds no regions`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Regions of process {} can't be read: {}", self.pid, shown(&self.why))
    }
}

/// Says that SELF isn't known of regions which others outlast, from pairs of both; `None` without any.
pub fn outlasted_regions<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let (outlasted, by): (BTreeSet<&str>, BTreeSet<&str>) = pairs.unzip();
    let [outlasted, by] = [outlasted, by].map(|names| {
        let quoted = names.into_iter().map(|name| format!("'{}'", shown(name))).collect::<Vec<_>>();
        first_of(quoted.iter().map(String::as_str), MOST_NAMED)
    });
    (!outlasted.is_empty()).then(|| outlasted_words("SELF", &outlasted, &by))
}

/// So many names of regions are told.
const MOST_NAMED: usize = 5;

impl RegionTable {
    /// The programs whose regions can't be read now.
    pub fn unread(&self) -> Vec<UnreadRegions> {
        let unread = |(program, state): &(RegionProgram, RegionState)| {
            Some(UnreadRegions { pid: program.pid, why: state.error.clone()? })
        };
        self.programs.iter().filter_map(unread).collect()
    }

    /// Which regions' times aren't known well, as measuring their calls took more: `'a', 'b' and 3 more`. `None` where none.
    pub fn rough(&self) -> Option<String> {
        let is_rough = |counts: &&RegionCounts| counts.calls > 0 && counts.certainty() != Certainty::Clear;
        let name = |counts: &RegionCounts| format!("'{}'", shown(self.names(counts.path).last().unwrap_or(&"")));
        let names: BTreeSet<String> = self.all_counts().filter(is_rough).map(name).collect();
        (!names.is_empty()).then(|| first_of(names.iter().map(String::as_str), MOST_NAMED))
    }

    /// Of which regions what was counted in them alone isn't known, and why: other ones outlast them. `None` where none.
    pub fn outlasted(&self) -> Option<String> {
        self.outlasted_of(self.all_counts())
    }

    /// The same of some of its rows.
    pub fn outlasted_of<'a>(&self, rows: impl Iterator<Item = &'a RegionCounts>) -> Option<String> {
        outlasted_regions(rows.filter_map(|row| {
            Some((self.names(row.path).last().copied().unwrap_or_default(), row.outlasted_by.as_deref()?))
        }))
    }

    /// What several programs, which count the same, counted together, as that of one: the first.
    #[must_use]
    pub fn joined(&self, programs: &[RegionProgramId]) -> Self {
        let is_joined: BTreeSet<_> = programs.iter().collect();
        let of = |id: &RegionProgramId| self.programs.get(id.0 as usize);
        let mut joined =
            Self { programs: programs.first().and_then(of).cloned().into_iter().collect(), ..Self::default() };
        let mut known = FxHashMap::default();
        let mut places = vec![None; self.paths.len()];
        for (place, path) in self.paths.iter().enumerate().filter(|(_, path)| is_joined.contains(&path.program)) {
            let parent = path.parent.and_then(|parent| places[parent.0 as usize]);
            let path = RegionPath { program: RegionProgramId(0), parent, ..path.clone() };
            let id = *known.entry(path.clone()).or_insert_with(|| {
                joined.paths.push(path);
                joined.counts.push(None);
                RegionPathId(joined.counts.len() as u32 - 1)
            });
            places[place] = Some(id);
            let Some(counts) = &self.counts[place] else { continue };
            let sum = joined.counts[id.0 as usize].get_or_insert_with(|| RegionCounts::nothing(id));
            *sum = sum.plus(counts);
        }
        joined.join_states(programs.iter().filter_map(of).map(|(_, state)| state));
        joined
    }

    /// Adds up what programs lost, and takes the mean of what measuring their calls takes.
    fn join_states<'a>(&mut self, states: impl Iterator<Item = &'a RegionState> + Clone) {
        let Some((_, joined)) = self.programs.first_mut() else { return };
        let mean = |of: fn(&RegionState) -> f64| states.clone().map(of).sum::<f64>() / states.clone().count() as f64;
        let sum = |of: fn(&RegionState) -> u64| states.clone().map(of).fold(0, u64::saturating_add);
        (joined.inner_ns, joined.outer_ns) = (mean(|state| state.inner_ns), mean(|state| state.outer_ns));
        joined.lost = sum(|state| state.lost);
        joined.lost_to_threads = sum(|state| state.lost_to_threads);
        joined.lost_in_handlers = sum(|state| state.lost_in_handlers);
        joined.lost_to_open_names = sum(|state| state.lost_to_open_names);
    }

    /// One batch that says all of it, without enters and leaves.
    pub fn as_batch(&self) -> RegionBatch {
        let (programs, states): (Vec<_>, Vec<_>) = self.programs.iter().cloned().unzip();
        RegionBatch {
            at: self.at,
            counted_since: Some(WallNs(0)),
            programs,
            paths: self.paths.clone(),
            counts: self.counts.iter().flatten().cloned().collect(),
            states: (0..).map(RegionProgramId).zip(states).collect(),
            ..RegionBatch::default()
        }
    }

    /// Takes over what a batch defines and counts.
    ///
    /// # Errors
    /// Fails if it names what is not defined; then nothing is taken over.
    pub fn take(&mut self, batch: &RegionBatch) -> Result<(), Undefined> {
        self.check(batch)?;
        self.at = batch.at;
        self.programs.extend(batch.programs.iter().map(|program| (program.clone(), RegionState::default())));
        self.paths.extend_from_slice(&batch.paths);
        self.counts.resize(self.paths.len(), None);
        self.of_late.resize(self.paths.len(), None);
        for (program, state) in &batch.states {
            self.programs[program.0 as usize].1.clone_from(state);
        }
        if let Some(since) = batch.counted_since {
            self.of_late.fill(None);
            let seconds = (batch.at - since).as_secs();
            for counts in &batch.counts {
                let place = counts.path.0 as usize;
                let before = self.counts[place].replace(counts.clone());
                self.of_late[place] = OfLate::between(before.as_ref(), counts, seconds);
            }
        }
        Ok(())
    }

    fn check(&self, batch: &RegionBatch) -> Result<(), Undefined> {
        let programs = self.programs.len() + batch.programs.len();
        let program = |id: RegionProgramId| Undefined::check("program", id.0, programs);
        let all = self.paths.len() + batch.paths.len();
        let path = |id: RegionPathId| Undefined::check("region", id.0, all);
        for (new, number) in batch.paths.iter().zip(self.paths.len()..) {
            program(new.program)?;
            // Those around come first, so that none can be around itself.
            new.parent.map_or(Ok(()), |parent| Undefined::check("region", parent.0, number))?;
        }
        batch.states.iter().try_for_each(|(id, _)| program(*id))?;
        for counts in &batch.counts {
            path(counts.path)?;
            counts
                .events
                .len()
                .checked_sub(1)
                .map_or(Ok(()), |last| Undefined::check("event", last as u32, self.events_with(batch, counts.path)))?;
        }
        batch.threads.iter().try_for_each(|thread| path(thread.path))?;
        for thread in &batch.marks {
            program(thread.program)?;
            thread.marks.iter().try_for_each(|mark| path(mark.path))?;
        }
        Ok(())
    }

    /// How many events a path's program has once a batch is taken.
    fn events_with(&self, batch: &RegionBatch, path: RegionPathId) -> usize {
        let new = (path.0 as usize).checked_sub(self.paths.len()).and_then(|place| batch.paths.get(place));
        let Some(path) = self.paths.get(path.0 as usize).or(new) else { return 0 };
        let of_batch = batch.states.iter().rfind(|(program, _)| *program == path.program).map(|(_, state)| state);
        let state = of_batch.or_else(|| self.programs.get(path.program.0 as usize).map(|(_, state)| state));
        state.map_or(0, |state| state.events.len())
    }

    /// When it was read last.
    pub fn at(&self) -> WallNs {
        self.at
    }

    /// All programs, in the order of their numbers.
    pub fn programs(&self) -> impl ExactSizeIterator<Item = &(RegionProgram, RegionState)> {
        self.programs.iter()
    }

    /// A program.
    pub fn program(&self, id: RegionProgramId) -> Option<&RegionProgram> {
        self.programs.get(id.0 as usize).map(|(program, _)| program)
    }

    /// All paths, in the order of their numbers.
    pub fn paths(&self) -> &[RegionPath] {
        &self.paths
    }

    /// What was counted on a path; `None` where no call has ended.
    pub fn counts(&self, path: RegionPathId) -> Option<&RegionCounts> {
        self.counts.get(path.0 as usize)?.as_ref()
    }

    /// What was counted on all paths on which a call has ended.
    pub fn all_counts(&self) -> impl Iterator<Item = &RegionCounts> {
        self.counts.iter().flatten()
    }

    /// Calls a second of a path between the last two times that counts were read.
    pub fn per_second(&self, path: RegionPathId) -> f64 {
        self.of_late(path).map_or(0.0, |of_late| of_late.calls as f64 / of_late.seconds)
    }

    /// Counts of an event a second on a path in the same time; `None` where it wasn't counted then.
    pub fn event_per_second(&self, path: RegionPathId, place: usize) -> Option<EventRate> {
        let nothing = EventRate { per_second: 0.0, error: Some(0.0) };
        self.counts(path)?.events.get(place)?;
        let Some(of_late) = self.of_late(path) else { return Some(nothing) };
        let sums = of_late.events.get(place)?;
        if sums.all.calls + sums.all.missing == 0 {
            return Some(nothing);
        }
        let total = sums.total(of_late.calls)?;
        let error = total.half_width().map(|error| error / of_late.seconds);
        Some(EventRate { per_second: total.count / of_late.seconds, error })
    }

    fn of_late(&self, path: RegionPathId) -> Option<&OfLate> {
        self.of_late.get(path.0 as usize)?.as_ref()
    }

    /// Names of the events that are counted on a path, in the order of [`RegionCounts::events`].
    pub fn events(&self, path: RegionPathId) -> &[String] {
        let program = self.paths.get(path.0 as usize).and_then(|path| self.programs.get(path.program.0 as usize));
        program.map_or(&[], |(_, state)| state.events.as_slice())
    }

    /// Names of what a path's program counts itself, in the order of [`RegionCounts::counters`].
    pub fn counters(&self, path: RegionPathId) -> &[String] {
        let program = self.paths.get(path.0 as usize).and_then(|path| self.programs.get(path.program.0 as usize));
        program.map_or(&[], |(_, state)| state.counters.as_slice())
    }

    /// Names of the regions from the outermost to this one.
    pub fn names(&self, path: RegionPathId) -> Vec<&str> {
        let mut names: Vec<&str> = self.upwards(path).map(|path| path.name.as_str()).collect();
        names.reverse();
        names
    }

    /// How many regions there are: those of two processes with the same names around them are one.
    pub fn distinct(&self) -> usize {
        let paths = (0..self.paths.len() as u32).map(|path| self.names(RegionPathId(path)));
        paths.collect::<BTreeSet<_>>().len()
    }

    /// The path and those around it.
    fn upwards(&self, path: RegionPathId) -> impl Iterator<Item = &RegionPath> {
        let get = |id: RegionPathId| self.paths.get(id.0 as usize);
        std::iter::successors(get(path), move |path| get(path.parent?))
    }

    /// The innermost paths of a program on which no call has ended, in the order of definition.
    pub fn unended(&self, program: RegionProgramId) -> Vec<RegionPathId> {
        let around: BTreeSet<_> = self.paths.iter().filter_map(|path| path.parent).collect();
        let counted: BTreeSet<_> = self.rows(program).into_iter().map(|counts| self.names(counts.path)).collect();
        let of_program = (0..).map(RegionPathId).zip(&self.paths).filter(|(_, path)| path.program == program);
        let innermost = of_program.map(|(id, _)| id).filter(|id| !around.contains(id));
        innermost.filter(|id| !counted.contains(&self.names(*id))).collect()
    }

    /// What was counted of a program, in the order of names, those around first.
    pub fn rows(&self, program: RegionProgramId) -> Vec<&RegionCounts> {
        let of_program = |counts: &&RegionCounts| self.paths[counts.path.0 as usize].program == program;
        let mut rows: Vec<_> = self.counts.iter().flatten().filter(of_program).collect();
        rows.sort_by_cached_key(|counts| (self.names(counts.path), &self.paths[counts.path.0 as usize].phase));
        rows
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use perfprop_regions::{CountedPart, EventCounts};

    use super::*;

    fn path(parent: Option<u32>, name: &str) -> RegionPath {
        RegionPath {
            program: RegionProgramId(0),
            parent: parent.map(RegionPathId),
            name: name.into(),
            phase: String::new(),
        }
    }

    fn counts(path: u32, calls: u64) -> RegionCounts {
        RegionCounts { calls, ..RegionCounts::nothing(RegionPathId(path)) }
    }

    #[test]
    fn innermost_paths_without_a_call_are_those_that_were_left_open() {
        let mut table = RegionTable::default();
        table.take(&first()).unwrap();
        assert_eq!(table.unended(RegionProgramId(0)), [], "'z' has 'inner' within, and 'inner' and 'a' have calls");
        let in_phase = RegionPath { phase: "warmup".into(), ..path(None, "a") };
        let paths = vec![in_phase, path(Some(1), "deep"), path(None, "b")];
        table.take(&RegionBatch { paths, ..batch(4, Vec::new()) }).unwrap();
        assert_eq!(table.unended(RegionProgramId(0)), [RegionPathId(4), RegionPathId(5)]);
        assert_eq!(table.unended(RegionProgramId(1)), []);
    }

    fn batch(seconds: u64, of: Vec<RegionCounts>) -> RegionBatch {
        let at = WallNs(seconds * 1_000_000_000);
        RegionBatch { at, counted_since: Some(WallNs(at.0 - 2_000_000_000)), counts: of, ..RegionBatch::default() }
    }

    fn first() -> RegionBatch {
        RegionBatch {
            programs: vec![RegionProgram { pid: 7, name: None }],
            paths: vec![path(None, "z"), path(Some(0), "inner"), path(None, "a")],
            ..batch(2, vec![counts(1, 10), counts(2, 4)])
        }
    }

    #[test]
    fn rates_are_of_the_time_between_two_readings() {
        let mut table = RegionTable::default();
        let rates = |table: &RegionTable| [1, 2].map(|id| table.per_second(RegionPathId(id)));
        table.take(&first()).unwrap();
        assert_eq!(rates(&table), [5.0, 2.0]);
        // Marks alone say nothing of rates; what no longer changes has none.
        table.take(&RegionBatch { at: WallNs(3_000_000_000), ..RegionBatch::default() }).unwrap();
        assert_eq!(rates(&table), [5.0, 2.0]);
        table.take(&batch(4, vec![counts(2, 7)])).unwrap();
        assert_eq!(rates(&table), [0.0, 1.5]);
        assert_eq!(table.counts(RegionPathId(1)).unwrap().calls, 10);
    }

    /// Sums of an event that counted so much in a part of the time.
    fn sums(calls: u64, sum: u64, running_ns: u64, enabled_ns: u64) -> EventSums {
        let all = EventCounts { calls, stays: calls, sum, running_ns, enabled_ns, ..EventCounts::default() };
        EventSums { all, alone: CountedPart { sum, enabled_ns, running_ns }, ..EventSums::default() }
    }

    #[test]
    fn events_have_totals_of_all_calls_and_rates_of_the_newest() {
        let state = RegionState { events: vec!["page-faults".into()], ..RegionState::default() };
        let of = |calls: u64, sums: EventSums| RegionCounts { events: vec![sums], ..counts(1, calls) };
        let mut table = RegionTable::default();
        let begun = RegionBatch { states: vec![(RegionProgramId(0), state)], ..first() };
        table.take(&RegionBatch { counts: vec![of(2, sums(2, 60, 20, 20))], ..begun }).unwrap();
        let path = RegionPathId(1);
        assert_eq!(table.events(path), ["page-faults"]);
        // 60 in 2 s, all of which were counted.
        assert_eq!(table.event_per_second(path, 0), Some(EventRate { per_second: 30.0, error: Some(0.0) }));
        // 20 more in 10 of 40 ns: 80 in 2 s. Of all calls 80 in 30 of 60 ns: 160.
        table.take(&batch(4, vec![of(3, sums(3, 80, 30, 60))])).unwrap();
        let rate = table.event_per_second(path, 0).unwrap();
        assert_eq!((rate.per_second, rate.error), (40.0, None));
        let total = table.counts(path).unwrap().event(0).unwrap();
        assert_eq!((total.count, total.run_ratio), (160.0, 0.5));
        // A call that wasn't counted says nothing of the rate; no call is none.
        let missing = EventSums {
            all: EventCounts { missing: 1, enabled_ns: 70, ..sums(3, 80, 30, 60).all },
            ..sums(3, 80, 30, 60)
        };
        table.take(&batch(6, vec![of(4, missing)])).unwrap();
        assert_eq!(table.event_per_second(path, 0), None);
        table.take(&batch(8, vec![])).unwrap();
        assert_eq!(table.event_per_second(path, 0).unwrap().per_second, 0.0);
        assert_eq!(table.event_per_second(path, 1), None);
    }

    #[test]
    fn programs_are_joined_by_the_names_of_their_paths() {
        let of = |program, path: RegionPath| RegionPath { program: RegionProgramId(program), ..path };
        let second = [of(1, path(None, "a")), of(1, path(None, "z")), of(1, path(Some(4), "inner"))];
        let lost = |lost, outer_ns| RegionState { lost, outer_ns, ..RegionState::default() };
        let states = [lost(1, 80.0), lost(2, 90.0), lost(5, 0.0)];
        let mut table = RegionTable::default();
        table.take(&first()).unwrap();
        let batch = RegionBatch {
            programs: vec![RegionProgram { pid: 8, name: None }, RegionProgram { pid: 9, name: None }],
            paths: second.into_iter().chain([of(2, path(None, "a"))]).collect(),
            states: (0..).map(RegionProgramId).zip(states).collect(),
            ..batch(4, vec![counts(3, 1), counts(5, 2), counts(6, 100)])
        };
        table.take(&batch).unwrap();
        let joined = table.joined(&[RegionProgramId(0), RegionProgramId(1)]);
        let rows = joined.rows(RegionProgramId(0));
        let of_row = |row: &&RegionCounts| (joined.names(row.path).join("/"), row.calls);
        assert_eq!(rows.iter().map(of_row).collect::<Vec<_>>(), [("a".to_owned(), 5), ("z/inner".to_owned(), 12)]);
        let (program, state) = joined.programs().next().unwrap();
        assert_eq!((program.pid, state.lost, state.outer_ns, joined.programs().len()), (7, 3, 85.0, 1));
    }

    #[test]
    fn regions_are_told_whose_calls_took_less_than_measuring_them() {
        let mut table = RegionTable::default();
        let took = |counts: RegionCounts, time_ns, markers_ns| RegionCounts { time_ns, markers_ns, ..counts };
        table.take(&RegionBatch { counts: vec![took(counts(0, 1), 10, 10)], ..first() }).unwrap();
        assert_eq!(table.rough(), None);
        table.take(&batch(4, vec![took(counts(1, 10), 10, 11), took(counts(2, 4), 0, 1)])).unwrap();
        assert_eq!(table.rough().as_deref(), Some("'a', 'inner'"));
    }

    #[test]
    fn what_a_region_took_alone_is_unknown_while_another_outlasts_it() {
        let all = EventCounts { calls: 4, sum: 60, ..EventCounts::default() };
        let events =
            vec![EventSums { all, alone: CountedPart { sum: 50, ..CountedPart::default() }, ..sums(4, 0, 0, 0) }];
        let known = RegionCounts { self_ns: 30, events, ..counts(2, 4) };
        let outlasted = RegionCounts { outlasted_by: Some("b\n".into()), ..known.clone() };
        let of = |counts: &RegionCounts| (counts.self_certainty(), counts.event(0).unwrap().self_count);
        assert_eq!(of(&known), (Certainty::Clear, Some(50.0)));
        for unknown in [&outlasted, &outlasted.plus(&known), &known.plus(&outlasted), &outlasted.since(&counts(2, 0))] {
            assert_eq!(of(unknown), (Certainty::Unknown, None));
        }
        let mut table = RegionTable::default();
        table.take(&first()).unwrap();
        assert_eq!(table.outlasted(), None);
        table.take(&batch(4, vec![RegionCounts { events: Vec::new(), ..outlasted }])).unwrap();
        let told = "SELF of 'a' is not known: in a call that has ended, 'b\\x0a' began and has not ended";
        assert_eq!(table.outlasted().as_deref(), Some(told));
    }

    #[test]
    fn one_batch_says_all_of_a_table() {
        let mut table = RegionTable::default();
        assert!(table.as_batch().is_empty());
        table.take(&first()).unwrap();
        table.take(&batch(4, vec![counts(2, 7)])).unwrap();
        let mut again = RegionTable::default();
        again.take(&table.as_batch()).unwrap();
        assert_eq!((again.paths(), &again.counts, again.at()), (table.paths(), &table.counts, table.at()));
        // 7 in 4 s.
        assert_eq!(again.per_second(RegionPathId(2)), 1.75);
    }

    #[test]
    fn more_events_than_have_names_are_an_error() {
        let mut table = RegionTable::default();
        let nameless = RegionCounts { events: vec![sums(1, 1, 1, 1)], ..counts(1, 1) };
        let error = table.take(&RegionBatch { counts: vec![nameless], ..first() }).unwrap_err();
        assert_eq!((error.to_string(), table), ("event 0 is not defined".into(), RegionTable::default()));
    }

    #[test]
    fn rows_are_in_the_order_of_names_and_those_around_come_first() {
        let mut table = RegionTable::default();
        table.take(&first()).unwrap();
        table.take(&batch(4, vec![counts(0, 1)])).unwrap();
        let names: Vec<_> = table.rows(RegionProgramId(0)).iter().map(|row| table.names(row.path).join("/")).collect();
        assert_eq!(names, ["a", "z", "z/inner"]);
        assert_eq!(table.distinct(), 3);
    }

    #[test]
    fn what_is_not_defined_is_an_error_and_changes_nothing() {
        let mut table = RegionTable::default();
        let wrong = |batch: RegionBatch, table: &mut RegionTable| table.take(&batch).unwrap_err().to_string();
        assert_eq!(wrong(batch(2, vec![counts(0, 1)]), &mut table), "region 0 is not defined");
        let around_itself = RegionBatch { paths: vec![path(Some(0), "a")], ..first() };
        assert_eq!(wrong(around_itself, &mut table), "region 0 is not defined");
        let no_program = RegionBatch { paths: vec![path(None, "a")], ..RegionBatch::default() };
        assert_eq!(wrong(no_program, &mut table), "program 0 is not defined");
        assert_eq!(table, RegionTable::default());
    }
}
