//! Turns what is read of programs into batches: what is new since the last time.

use std::fs::File;

use perfprop_regions::layout::MARKS;
use perfprop_regions::{Activity, CountedPart, EventSums, MarkOf, NodeCounts, PathRow, Snapshot, ThreadActivity};
use rustc_hash::FxHashMap;

use super::batch::{
    RegionBatch, RegionCounts, RegionMark, RegionPath, RegionPathId, RegionProgram, RegionProgramId, RegionState,
    ThreadCounts, ThreadMarks,
};
use super::folder::is_alive;
use super::source::{MOST_PROGRAMS, ProgramKey, RegionSource};
use super::table::RegionTable;
use super::{ProcessRegions, RegionsError};
use crate::sources::process;
use crate::units::{KernelNs, WallNs};

/// The most enters and leaves of all threads in a batch: more are missed, the oldest first.
const MOST_MARKS: usize = 2048;

/// Reads after which programs that seem to have ended are looked at again: the number of one in another namespace isn't that of its
/// process.
const READS_UNTIL_LOOK: u32 = 64;

/// What is read each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What threads entered and left.
    Marks,
    /// What was counted.
    Counts,
    /// Both.
    Both,
}

/// Reads the programs of a source, and knows what it has told of them.
#[derive(Debug)]
pub(super) struct RegionReader {
    /// When the measurement began.
    origin: KernelNs,
    programs: FxHashMap<ProgramKey, ReadProgram>,
    paths: u32,
    reads: u32,
    /// When anything was read last, and when counts were.
    read: WallNs,
    counted: WallNs,
}

/// What was told of a program.
#[derive(Debug)]
struct ReadProgram {
    id: RegionProgramId,
    file: Option<File>,
    /// Whether its process has ended, and all of it was told.
    is_over: bool,
    /// Whether it is among those that are read.
    is_read: bool,
    paths: FxHashMap<(Vec<String>, String), RegionPathId>,
    parents: FxHashMap<RegionPathId, RegionPathId>,
    /// The paths of nodes, without their phases.
    nodes: FxHashMap<u32, RegionPathId>,
    counts: FxHashMap<RegionPathId, RegionCounts>,
    state: RegionState,
    /// What it had done when counts were read last.
    activity: Option<Activity>,
    marked: ToldMarks,
}

/// How many enters and leaves were told of the thread that each slot had last. Threads come and go, slots stay.
#[derive(Debug, Default)]
struct ToldMarks(FxHashMap<usize, (u32, u64)>);

impl ToldMarks {
    /// Those of a thread that has so many by now. A slot counts from zero for its next thread, which may have the number of the one
    /// before.
    fn of(&self, slot: usize, tid: u32, now: u64) -> u64 {
        let told = self.0.get(&slot).filter(|(of, _)| *of == tid).map_or(0, |(_, told)| *told);
        if told > now { 0 } else { told }
    }

    fn tell(&mut self, slot: usize, tid: u32, told: u64) {
        self.0.insert(slot, (tid, told));
    }
}

impl RegionReader {
    pub(super) fn new(origin: KernelNs) -> Self {
        Self { origin, programs: FxHashMap::default(), paths: 0, reads: 0, read: WallNs(0), counted: WallNs(0) }
    }

    /// What is new at a time.
    pub(super) fn read(&mut self, source: &RegionSource, now: KernelNs, part: Part) -> RegionBatch {
        let at = now.since(self.origin);
        let mut batch = RegionBatch { at, since: std::mem::replace(&mut self.read, at), ..RegionBatch::default() };
        if part != Part::Marks {
            batch.counted_since = Some(std::mem::replace(&mut self.counted, batch.at));
        }
        let is_look = self.reads.is_multiple_of(READS_UNTIL_LOOK);
        self.reads = self.reads.wrapping_add(1);
        let (programs, others) = self.chosen(source.programs());
        if let Some(&first) = others.first() {
            self.know(first, || name_of(source, first), &mut batch);
            self.fail(first, &RegionsError::TooMany(others.len()), &mut batch);
        }
        for key in programs {
            self.know(key, || name_of(source, key), &mut batch);
            if !is_look && self.programs.get(&key).is_some_and(|program| program.is_over) {
                continue;
            }
            let read = self.read_program(source, key, part, &mut batch);
            if let Err(error) = read {
                self.fail(key, &error, &mut batch);
            }
        }
        batch
    }

    /// Which programs are read, and which aren't as there are too many: those that were read before stay.
    fn chosen(&self, all: Vec<ProgramKey>) -> (Vec<ProgramKey>, Vec<ProgramKey>) {
        if all.len() <= MOST_PROGRAMS {
            return (all, Vec::new());
        }
        let is_read = |key: &ProgramKey| self.programs.get(key).is_some_and(|program| program.is_read);
        let mut new = MOST_PROGRAMS.saturating_sub(all.iter().filter(|key| is_read(key)).count());
        let mut is_chosen = |key: &ProgramKey| {
            let is_new = !is_read(key) && new > 0;
            new -= usize::from(is_new);
            is_new || is_read(key)
        };
        all.into_iter().partition(|key| is_chosen(key))
    }

    /// The same for the last time, with what each thread counted.
    pub(super) fn read_last(&mut self, source: &RegionSource, now: KernelNs, part: Part) -> RegionBatch {
        self.reads = 0;
        let mut batch = self.read(source, now, part);
        for key in source.programs().into_iter().filter(|_| part == Part::Both) {
            let Some(program) = self.programs.get(&key).filter(|program| program.is_read) else { continue };
            // What can't be read was said.
            let Ok(snapshot) = source.open(key).and_then(|file| source.snapshot(key, &file)) else { continue };
            let of_threads = snapshot.paths();
            batch.threads.extend(of_threads.iter().filter_map(|row| program.of_thread(row)));
        }
        batch
    }

    /// Defines a program that is new.
    fn know(&mut self, key: ProgramKey, name: impl FnOnce() -> Option<String>, batch: &mut RegionBatch) {
        let next = RegionProgramId(self.programs.len() as u32);
        self.programs.entry(key).or_insert_with(|| {
            batch.programs.push(RegionProgram { pid: key.0, name: name() });
            ReadProgram {
                id: next,
                file: None,
                is_over: false,
                is_read: false,
                paths: FxHashMap::default(),
                parents: FxHashMap::default(),
                nodes: FxHashMap::default(),
                counts: FxHashMap::default(),
                state: RegionState::default(),
                activity: None,
                marked: ToldMarks::default(),
            }
        });
    }

    fn read_program(
        &mut self,
        source: &RegionSource,
        key: ProgramKey,
        part: Part,
        batch: &mut RegionBatch,
    ) -> Result<(), RegionsError> {
        let Some(program) = self.programs.get_mut(&key) else { return Ok(()) };
        program.is_read = true;
        // Before it is read: nobody writes later.
        let has_ended = !is_alive(key.0);
        let file = match program.file.take() {
            Some(file) => file,
            None => source.open(key)?,
        };
        let activity = Snapshot::activity(&file).map_err(RegionsError::Snapshot)?;
        let is_new = program.activity.as_ref() != Some(&activity);
        let mut fresh = Vec::new();
        if part != Part::Counts {
            fresh = program.marks(&file, &activity, |slot, tid| source.marked_before(key, slot, tid))?;
        }
        let is_unknown = |mark: &MarkOf| mark.node != 0 && !program.nodes.contains_key(&mark.node);
        let is_over = has_ended && !is_new && fresh.is_empty();
        let needs_nodes = fresh.iter().any(|(_, _, marks)| marks.iter().any(is_unknown));
        if (part != Part::Marks && is_new) || needs_nodes {
            let snapshot = source.snapshot(key, &file)?;
            self.number(key, &snapshot, batch);
            if part != Part::Marks {
                self.count(key, &snapshot, batch);
            }
        }
        let origin = self.origin;
        if let Some(program) = self.programs.get_mut(&key) {
            batch.marks.extend(fresh.into_iter().map(|(tid, missed, marks)| program.told(tid, missed, &marks, origin)));
            if part != Part::Marks {
                program.activity = Some(activity);
            }
            // A file for each of many processes that have ended would be too many open ones.
            program.is_over = is_over;
            program.file = (!is_over).then_some(file);
        }
        Ok(())
    }

    /// Finds the path of each node.
    fn number(&mut self, key: ProgramKey, snapshot: &Snapshot, batch: &mut RegionBatch) {
        let Some(program) = self.programs.get_mut(&key) else { return };
        program.nodes.clear();
        for (place, node) in snapshot.nodes.iter().enumerate() {
            let names: Vec<String> = snapshot.path(place).into_iter().map(str::to_owned).collect();
            let path = program.path(&names, "", &mut self.paths, batch);
            program.nodes.insert(node.number, path);
        }
    }

    /// Tells the counts that changed.
    fn count(&mut self, key: ProgramKey, snapshot: &Snapshot, batch: &mut RegionBatch) {
        let Some(program) = self.programs.get_mut(&key) else { return };
        for row in snapshot.paths_of_all_threads() {
            let path = program.path(&row.path, &row.phase, &mut self.paths, batch);
            let before = program.counts.get(&path);
            let counts = counts(path, &row, before, snapshot.counters.len());
            if before != Some(&counts) {
                batch.counts.push(counts.clone());
                program.counts.insert(path, counts);
            }
        }
        for (place, _) in snapshot.nodes.iter().enumerate().filter(|(_, node)| never_ended(node)) {
            let names: Vec<String> = snapshot.path(place).into_iter().map(str::to_owned).collect();
            program.path(&names, "", &mut self.paths, batch);
        }
        let Snapshot { marker, lost, .. } = snapshot;
        let state = RegionState {
            inner_ns: marker.inner_ns,
            outer_ns: marker.outer_ns,
            lost: lost.to_paths,
            lost_to_threads: lost.to_threads,
            lost_in_handlers: lost.in_handlers,
            lost_to_open_names: lost.to_open_names,
            events: snapshot.events.clone(),
            counters: snapshot.counters.clone(),
            error: None,
        };
        self.say(key, state, batch);
    }

    /// Tells that a program can't be read; what it told before stays.
    fn fail(&mut self, key: ProgramKey, error: &RegionsError, batch: &mut RegionBatch) {
        let known = self.programs.get(&key).map(|program| program.state.clone()).unwrap_or_default();
        self.say(key, RegionState { error: Some(error.to_string()), ..known }, batch);
    }

    /// Tells what changed of a program.
    fn say(&mut self, key: ProgramKey, state: RegionState, batch: &mut RegionBatch) {
        let Some(program) = self.programs.get_mut(&key).filter(|program| program.state != state) else { return };
        program.state.clone_from(&state);
        batch.states.push((program.id, state));
    }
}

/// Whether no call of a region has ended, not even before it was watched: the shortest call is that of all of them.
fn never_ended(node: &NodeCounts) -> bool {
    node.calls == 0 && node.reverse_calls == 0 && node.min_ns == u64::MAX
}

/// The name of a program's process: what the program says of itself, which is there when it has ended, too.
fn name_of(source: &RegionSource, key: ProgramKey) -> Option<String> {
    let told = source.open(key).ok().and_then(|file| Snapshot::name_of_process(&file).ok());
    let told = told.filter(|name| !name.is_empty());
    told.or_else(|| process::name(nix::unistd::Pid::from_raw(key.0.cast_signed())))
}

/// Rounded to nanoseconds, as a recording has them.
fn counts(path: RegionPathId, row: &PathRow, before: Option<&RegionCounts>, counters: usize) -> RegionCounts {
    let times = &row.times;
    // While a region is open, those within have counted more already than it has.
    let self_ns = (times.self_ns.round() as u64).max(before.map_or(0, |before| before.self_ns));
    let before_of = |place: usize| before.and_then(|before| before.events.get(place));
    let event = |(place, event): (usize, &EventSums)| EventSums {
        alone: before_of(place).map_or(event.alone, |before| no_less(event.alone, before.alone)),
        ..*event
    };
    RegionCounts {
        path,
        calls: times.calls,
        time_ns: times.forward_ns.round() as u64,
        self_ns,
        markers_ns: times.markers_ns.round() as u64,
        self_markers_ns: times.self_markers_ns.round() as u64,
        reverse_calls: times.reverse_calls,
        reverse_ns: times.reverse_ns.round() as u64,
        spread: times.calls_ns,
        events: row.events.iter().enumerate().map(event).collect(),
        counters: row.counters.into_iter().take(counters).collect(),
        outlasted_by: times.outlasted_by.clone(),
    }
}

/// What was counted, unless it is less than before.
fn no_less(now: CountedPart, before: CountedPart) -> CountedPart {
    let is_less = now.sum < before.sum || now.enabled_ns < before.enabled_ns || now.running_ns < before.running_ns;
    if is_less { before } else { now }
}

/// A thread, how many of its marks were missed, and the others.
type FreshMarks = (u32, u64, Vec<MarkOf>);

impl ReadProgram {
    /// What is new on the threads that did anything.
    fn marks(
        &mut self,
        file: &File,
        activity: &Activity,
        marked_before: impl Fn(usize, u32) -> u64,
    ) -> Result<Vec<FreshMarks>, RegionsError> {
        let told = |slot: usize, thread: &ThreadActivity| self.marked.of(slot, thread.tid, thread.marked);
        let threads = activity.threads.iter().enumerate().skip(1);
        let busy: Vec<_> = threads
            .map(|(slot, thread)| (slot, *thread, told(slot, thread)))
            .filter(|(_, thread, told)| thread.marked > *told)
            .collect();
        let most = MOST_MARKS / busy.len().max(1);
        let mut fresh = Vec::new();
        for (slot, thread, told) in busy {
            let (marks, all) = Snapshot::marks(file, slot).map_err(RegionsError::Snapshot)?;
            // The program writes on while the ring is read.
            let after = Snapshot::marks_so_far(file, slot).map_err(RegionsError::Snapshot)?;
            if all < told {
                continue;
            }
            let first = all - marks.len() as u64;
            let whole = (after + 1).saturating_sub(MARKS as u64).max(first).max(told);
            let kept = whole.max(all.saturating_sub(most as u64)).min(all);
            self.marked.tell(slot, thread.tid, all);
            // What was entered before anybody watched isn't missed; a slot that has another thread since has none of it.
            let before = Some(marked_before(slot, thread.tid)).filter(|&before| before <= all).unwrap_or(0);
            fresh.push((thread.tid, kept.saturating_sub(told.max(before)), marks[(kept - first) as usize..].to_vec()));
        }
        Ok(fresh)
    }

    /// The marks of a thread by paths; from the last one on that has none, if one has none.
    fn told(&self, tid: u32, mut missed: u64, fresh: &[MarkOf], origin: KernelNs) -> ThreadMarks {
        let mut marks = Vec::with_capacity(fresh.len());
        for mark in fresh {
            match self.nodes.get(&mark.node) {
                Some(&path) => {
                    let at = KernelNs(mark.time_ns).since(origin);
                    marks.push(RegionMark { at, path, is_enter: mark.is_enter });
                }
                // It is of a region for which there was no room.
                None => {
                    missed += marks.len() as u64 + 1;
                    marks.clear();
                }
            }
        }
        // What came before anything was watched says only what was open then.
        let before = fresh.partition_point(|mark| KernelNs(mark.time_ns) < origin).min(marks.len());
        if before > 0 {
            let enter = |path| RegionMark { at: WallNs(0), path, is_enter: true };
            let open: Vec<_> = self.open_after(&marks[..before], missed > 0).into_iter().map(enter).collect();
            marks.splice(..before, open);
            missed = 0;
        }
        ThreadMarks { program: self.id, tid, missed, marks }
    }

    /// What is open after these marks, the innermost last; where marks before them are missing, what is around the first.
    fn open_after(&self, marks: &[RegionMark], are_missing: bool) -> Vec<RegionPathId> {
        let parent = |path: &RegionPathId| self.parents.get(path).copied();
        let around =
            marks.first().filter(|_| are_missing).map(|first| std::iter::successors(parent(&first.path), parent));
        let mut open: Vec<_> = around.into_iter().flatten().collect();
        open.reverse();
        for mark in marks {
            if mark.is_enter {
                open.push(mark.path);
            } else if let Some(place) = open.iter().rposition(|open| *open == mark.path) {
                open.remove(place);
            }
        }
        open
    }

    /// What a thread counted on a path; `None` where nothing was told of the path.
    fn of_thread(&self, row: &PathRow) -> Option<ThreadCounts> {
        let path = *self.paths.get(&(row.path.clone(), row.phase.clone()))?;
        let own = |event: &EventSums| row.times.event(event)?.self_count.map(|count| count.round() as u64);
        Some(ThreadCounts {
            path,
            tid: row.thread,
            calls: row.times.calls,
            self_ns: row.times.self_ns.round() as u64,
            reverse_ns: row.times.reverse_ns.round() as u64,
            events: row.events.iter().map(own).collect(),
        })
    }

    /// The number of a path, which is given at its first use, as those of the regions around are.
    fn path(&mut self, names: &[String], phase: &str, next: &mut u32, batch: &mut RegionBatch) -> RegionPathId {
        let key = (names.to_vec(), phase.to_owned());
        if let Some(&known) = self.paths.get(&key) {
            return known;
        }
        let mut parent = None;
        for length in 1..names.len() {
            parent = Some(self.define((names[..length].to_vec(), String::new()), parent, next, batch));
        }
        self.define(key, parent, next, batch)
    }

    fn define(
        &mut self,
        key: (Vec<String>, String),
        parent: Option<RegionPathId>,
        next: &mut u32,
        batch: &mut RegionBatch,
    ) -> RegionPathId {
        if let Some(&known) = self.paths.get(&key) {
            return known;
        }
        let id = RegionPathId(*next);
        *next += 1;
        let (name, phase) = (key.0.last().cloned().unwrap_or_default(), key.1.clone());
        batch.paths.push(RegionPath { program: self.id, parent, name, phase });
        self.paths.insert(key, id);
        self.parents.extend(parent.map(|parent| (id, parent)));
        id
    }
}

impl RegionTable {
    /// All that programs counted.
    pub fn of(processes: &[ProcessRegions]) -> Self {
        let mut reader = RegionReader::new(KernelNs(0));
        let mut batch = RegionBatch { counted_since: Some(WallNs(0)), ..RegionBatch::default() };
        for (place, process) in processes.iter().enumerate() {
            let key = (process.pid, place as u32);
            let told = process.regions.as_ref().ok().map(|snapshot| snapshot.process_name.clone());
            reader.know(key, || told.filter(|name| !name.is_empty()), &mut batch);
            match &process.regions {
                Ok(snapshot) => reader.count(key, snapshot, &mut batch),
                Err(error) => reader.fail(key, error, &mut batch),
            }
        }
        let mut table = Self::default();
        // All that it names is defined above.
        let _ = table.take(&batch);
        table
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::mem::offset_of;
    use std::os::unix::fs::FileExt;
    use std::process::Command;

    use perfprop_regions::layout::{Header, MAGIC, VERSION};
    use perfprop_regions::{FILE_SIZE, folder_of};

    use super::*;

    /// The file of a program that has counted nothing.
    fn write_program(folder: u32, (pid, number): ProgramKey) {
        let file = File::create(folder_of(folder).join(format!("{pid}.{number}"))).unwrap();
        file.set_len(FILE_SIZE as u64).unwrap();
        file.write_all_at(&MAGIC.to_ne_bytes(), 0).unwrap();
        let numbers = [
            (offset_of!(Header, version), VERSION),
            (offset_of!(Header, names), 1),
            (offset_of!(Header, nodes), 1),
            (offset_of!(Header, threads), 1),
        ];
        numbers.iter().for_each(|(at, number)| file.write_all_at(&number.to_ne_bytes(), *at as u64).unwrap());
    }

    #[test]
    fn files_of_processes_that_ended_are_closed_and_read_again_at_the_end() {
        // A number that no process has.
        let folder = u32::MAX - 6;
        let source = RegionSource::of_command(folder, None).unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let (ended, runs) = ((child.id(), 0), (std::process::id(), 0));
        [ended, runs].into_iter().for_each(|key| write_program(folder, key));
        let mut reader = RegionReader::new(KernelNs(0));
        let is_open = |reader: &RegionReader| [ended, runs].map(|key| reader.programs[&key].file.is_some());
        assert!(reader.read(&source, KernelNs(1), Part::Both).states.iter().all(|(_, state)| state.error.is_none()));
        assert_eq!(is_open(&reader), [true, true]);
        reader.read(&source, KernelNs(2), Part::Both);
        assert_eq!(is_open(&reader), [false, true]);
        // What seemed to have ended, as its number is another one here, is seen at the end at the latest.
        let lost = (offset_of!(Header, lost) as u64, 5_u64.to_ne_bytes());
        let file = File::options().write(true).open(folder_of(folder).join(format!("{}.0", ended.0))).unwrap();
        file.write_all_at(&lost.1, lost.0).unwrap();
        assert!(reader.read(&source, KernelNs(3), Part::Both).states.is_empty());
        let last = reader.read_last(&source, KernelNs(4), Part::Both);
        assert_eq!(last.states.iter().map(|(_, state)| state.lost).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn programs_that_are_read_stay_and_others_are_told() {
        let folder = u32::MAX - 7;
        let source = RegionSource::of_command(folder, None).unwrap();
        let all = 10_000..10_000 + MOST_PROGRAMS as u32;
        all.for_each(|pid| write_program(folder, (pid, 0)));
        let mut reader = RegionReader::new(KernelNs(0));
        reader.read(&source, KernelNs(1), Part::Both);
        (5..8).for_each(|pid| write_program(folder, (pid, 0)));
        let batch = reader.read(&source, KernelNs(2), Part::Both);
        assert_eq!(batch.programs.iter().map(|program| program.pid).collect::<Vec<_>>(), [5]);
        let errors: Vec<_> = batch.states.into_iter().filter_map(|(_, state)| state.error).collect();
        assert_eq!(errors, [RegionsError::TooMany(3).to_string()]);
    }

    #[test]
    fn of_threads_that_come_and_go_in_a_slot_the_last_is_remembered() {
        let mut told = ToldMarks::default();
        for tid in 1..=1000 {
            assert_eq!(told.of(3, tid, 5), 0);
            told.tell(3, tid, 5);
        }
        assert_eq!((told.0.len(), told.of(3, 1000, 8), told.of(3, 1000, 4), told.of(3, 7, 8)), (1, 5, 0, 0));
    }

    #[test]
    fn own_counts_never_get_less_while_regions_within_are_ahead() {
        let of = |sum, enabled_ns, running_ns| CountedPart { sum, enabled_ns, running_ns };
        assert_eq!(no_less(of(5, 60, 30), of(4, 50, 30)), of(5, 60, 30));
        // A region that is open has less than those within, which have ended: what was told stays as a whole.
        assert_eq!(no_less(of(0, 60, 30), of(4, 50, 30)), of(4, 50, 30));
        assert_eq!(no_less(of(5, 60, 20), of(4, 50, 30)), of(4, 50, 30));
    }
}
