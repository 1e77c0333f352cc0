//! Holds all that a recording says.

use std::sync::Arc;

use super::StacksLine;
use crate::regions::{RegionBatch, RegionRange, RegionTable};
use crate::run::{End, Header};
use crate::sources::RecordedRound;
use crate::stacks::{RecordedProfile, SamplingSetup, StackBatch, StackTable};
use crate::units::WallNs;

/// A whole recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Header of the recording.
    pub header: Header,
    /// The rounds in order. Those who play and show them share them.
    pub rounds: Arc<[RecordedRound]>,
    /// The samples with their call stacks, if any were taken.
    pub stacks: Option<RecordedStacks>,
    /// What named regions counted, as it came. All that they name is defined.
    pub regions: Vec<RegionBatch>,
    /// How it ended; `None` if the recording was cut off.
    pub end: Option<End>,
    /// Where it was cut off within a line.
    pub cut: Option<Cut>,
}

/// Samples with their call stacks.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedStacks {
    /// Which events were sampled, and how.
    pub sampled: SamplingSetup,
    /// The samples as they came, with what they define. All that they name is defined.
    pub batches: Vec<StackBatch>,
    /// All frames, stacks and tasks.
    pub table: StackTable,
}

/// A last line that isn't whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Number of the line, from 1.
    pub line: usize,
}

impl Recording {
    /// Whether all of the run is in it. Whoever writes a recording ends it with a last line, also one that is saved
    /// while the run goes on: where that is missing, the writer was killed.
    pub fn is_whole(&self) -> bool {
        self.cut.is_none() && self.end.is_some()
    }

    /// What is said of a recording that isn't [whole](Self::is_whole).
    pub fn breaks_off(&self) -> Option<String> {
        match self.cut {
            Some(cut) => Some(format!("is cut off in line {}", cut.line)),
            None if self.end.is_none() => Some("has no end: what wrote it was killed, or still writes".into()),
            None => None,
        }
    }

    /// How it ended; one that was cut off ends with its last round.
    pub fn end_or_last(&self) -> End {
        let last = self.rounds.last();
        self.end.clone().unwrap_or_else(|| End {
            at_ns: self.length(),
            lost_rounds: last.map_or(0, |last| last.lost),
            totals: last.map(|last| last.round.readings.clone()).unwrap_or_default(),
            ..End::default()
        })
    }

    /// When it ended; one that was cut off ends with its last round.
    pub fn length(&self) -> WallNs {
        let last = || self.rounds.last().map_or(WallNs(0), |last| last.round.at);
        self.end.as_ref().map_or_else(last, |end| end.at_ns)
    }

    /// What it has for a profile; `None` where nothing was sampled and no program had regions.
    pub fn profile(&self) -> Option<RecordedProfile<'_>> {
        let stacks = self.stacks.as_ref();
        let (sampled, batches) = (stacks.map(|stacks| &stacks.sampled), stacks.map(|stacks| stacks.batches.as_slice()));
        let profile = RecordedProfile { sampled, batches: batches.unwrap_or_default(), regions: &self.regions };
        (sampled.is_some() || !self.regions.is_empty()).then_some(profile)
    }

    /// What named regions counted in a range: after a time, if it isn't `None`, and up to and with another.
    pub fn regions_between(&self, after: Option<WallNs>, until: WallNs) -> RegionTable {
        let (mut table, mut range) = (RegionTable::default(), RegionRange::after(after));
        for batch in self.regions.iter().take_while(|batch| batch.at <= until) {
            // All that it names is defined.
            let _ = table.take(&range.take(batch));
        }
        table
    }
}

impl RecordedStacks {
    pub(super) fn take(&mut self, line: StacksLine) -> Result<(), String> {
        let batch = StackBatch::try_from(line)?;
        let events = self.sampled.events.len();
        if batch.samples.iter().any(|sample| sample.event as usize >= events) {
            return Err(format!("a sample must be of one of {events} events"));
        }
        self.table.define(&batch).map_err(|undefined| undefined.to_string())?;
        self.batches.push(batch);
        Ok(())
    }

    /// Gives frames from the beginning the names that became known later.
    pub(super) fn settle(&mut self) {
        if self.batches.iter().all(|batch| batch.renamed.is_empty()) {
            return;
        }
        let mut known = self.table.frames().iter();
        let frames = self.batches.iter_mut().flat_map(|batch| &mut batch.frames);
        frames.for_each(|frame| known.next().into_iter().for_each(|known| frame.clone_from(known)));
    }
}
