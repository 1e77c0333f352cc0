//! Collects what batches define and count.

use std::fmt;

use super::batch::{RegionBatch, RegionCounts, RegionPath, RegionPathId, RegionProgram, RegionProgramId, RegionState};
use crate::units::WallNs;

/// The regions of all programs at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegionTable {
    programs: Vec<(RegionProgram, RegionState)>,
    paths: Vec<RegionPath>,
    counts: Vec<Option<RegionCounts>>,
    /// Calls a second of each path between the last two times that counts were read.
    rates: Vec<f64>,
    at: WallNs,
}

/// A batch of regions names something that no batch has defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndefinedRegion {
    /// Kind of definition.
    pub kind: &'static str,
    /// Number that has no definition.
    pub id: u32,
}

impl fmt::Display for UndefinedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} is not defined", self.kind, self.id)
    }
}

impl std::error::Error for UndefinedRegion {}

impl RegionTable {
    /// Takes over what a batch defines and counts.
    ///
    /// # Errors
    /// Fails if it names what is not defined; then nothing is taken over.
    pub fn take(&mut self, batch: &RegionBatch) -> Result<(), UndefinedRegion> {
        self.check(batch)?;
        self.at = batch.at;
        self.programs.extend(batch.programs.iter().map(|program| (program.clone(), RegionState::default())));
        self.paths.extend_from_slice(&batch.paths);
        self.counts.resize(self.paths.len(), None);
        self.rates.resize(self.paths.len(), 0.0);
        for (program, state) in &batch.states {
            self.programs[program.0 as usize].1.clone_from(state);
        }
        if let Some(since) = batch.counted_since {
            self.rates.fill(0.0);
            let seconds = (batch.at - since).as_secs();
            for counts in &batch.counts {
                let place = counts.path.0 as usize;
                let before = self.counts[place].map_or(0, |before| before.calls);
                if seconds > 0.0 {
                    self.rates[place] = counts.calls.saturating_sub(before) as f64 / seconds;
                }
                self.counts[place] = Some(*counts);
            }
        }
        Ok(())
    }

    fn check(&self, batch: &RegionBatch) -> Result<(), UndefinedRegion> {
        let programs = self.programs.len() + batch.programs.len();
        let program = |id: RegionProgramId| defined("program", id.0, programs);
        let all = self.paths.len() + batch.paths.len();
        let path = |id: RegionPathId| defined("region", id.0, all);
        for (new, number) in batch.paths.iter().zip(self.paths.len()..) {
            program(new.program)?;
            // Those around come first, so that none can be around itself.
            new.parent.map_or(Ok(()), |parent| defined("region", parent.0, number))?;
        }
        batch.counts.iter().try_for_each(|counts| path(counts.path))?;
        batch.states.iter().try_for_each(|(id, _)| program(*id))?;
        for thread in &batch.marks {
            program(thread.program)?;
            thread.marks.iter().try_for_each(|mark| path(mark.path))?;
        }
        Ok(())
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

    /// Calls a second of a path between the last two times that counts were read.
    pub fn per_second(&self, path: RegionPathId) -> f64 {
        self.rates.get(path.0 as usize).copied().unwrap_or(0.0)
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
        paths.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// The path and those around it.
    fn upwards(&self, path: RegionPathId) -> impl Iterator<Item = &RegionPath> {
        let get = |id: RegionPathId| self.paths.get(id.0 as usize);
        std::iter::successors(get(path), move |path| get(path.parent?))
    }

    /// What was counted of a program, in the order of names, those around first.
    pub fn rows(&self, program: RegionProgramId) -> Vec<&RegionCounts> {
        let of_program = |counts: &&RegionCounts| self.paths[counts.path.0 as usize].program == program;
        let mut rows: Vec<_> = self.counts.iter().flatten().filter(of_program).collect();
        rows.sort_by_cached_key(|counts| (self.names(counts.path), &self.paths[counts.path.0 as usize].phase));
        rows
    }
}

fn defined(kind: &'static str, id: u32, count: usize) -> Result<(), UndefinedRegion> {
    if (id as usize) < count { Ok(()) } else { Err(UndefinedRegion { kind, id }) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

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
        let path = RegionPathId(path);
        RegionCounts { path, calls, time_ns: 0, self_ns: 0, reverse_calls: 0, reverse_ns: 0, spread: None }
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
