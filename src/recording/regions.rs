//! Encodes batches of regions as lines of columns, and decodes them.

use serde::{Deserialize, Serialize};

use super::region_events::EventColumns;
use crate::regions::{
    EventSums, RegionBatch, RegionCounts, RegionMark, RegionPath, RegionPathId, RegionProgram, RegionProgramId,
    RegionState, Spread, ThreadCounts, ThreadMarks,
};
use crate::units::WallNs;

/// A batch in columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RegionsLine {
    at_ns: WallNs,
    since_ns: WallNs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    counted_since_ns: Option<WallNs>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    programs: Vec<RegionProgram>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    paths: Vec<RegionPath>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    states: Vec<(RegionProgramId, RegionState)>,
    #[serde(default, skip_serializing_if = "CountsColumns::is_empty")]
    counts: CountsColumns,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    marks: Vec<MarksColumns>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    threads: Vec<ThreadCounts>,
}

/// Counts that changed, a column for each number.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct CountsColumns {
    path: Vec<RegionPathId>,
    calls: Vec<u64>,
    time_ns: Vec<u64>,
    self_ns: Vec<u64>,
    /// What markers took, in all and in the region alone; empty in recordings of before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    markers_ns: Vec<(u64, u64)>,
    /// Runs backwards and their time; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reverse: Vec<(u64, u64)>,
    /// Mean, variance, the shortest, the longest, and times that 50 % and 99 % of calls stay below.
    spread: Vec<Option<SpreadColumns>>,
    /// What events counted; empty where none were counted, as in recordings of before.
    #[serde(default, skip_serializing_if = "EventColumns::is_empty")]
    events: EventColumns,
    /// What programs counted themselves; empty where nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    counters: Vec<Vec<u64>>,
    /// Names of regions that outlast these; empty where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    outlasted_by: Vec<Option<String>>,
}

type SpreadColumns = (f64, Option<f64>, f64, f64, f64, f64);

/// What a thread entered and left.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MarksColumns {
    program: RegionProgramId,
    tid: u32,
    #[serde(default)]
    missed: u64,
    /// The time of the first.
    at_ns: WallNs,
    /// How long after the one before.
    after_ns: Vec<i64>,
    /// Twice the path, and one more for an enter.
    path_and_enter: Vec<u64>,
}

impl CountsColumns {
    fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    fn of(counts: &[RegionCounts]) -> Self {
        let has_reverse = counts.iter().any(|counts| counts.reverse_calls > 0);
        let has_counters = counts.iter().any(|counts| !counts.counters.is_empty());
        let is_outlasted = counts.iter().any(|counts| counts.outlasted_by.is_some());
        let reverse = counts.iter().filter(|_| has_reverse).map(|counts| (counts.reverse_calls, counts.reverse_ns));
        let spread = |spread: Spread| (spread.mean, spread.variance, spread.min, spread.max, spread.p50, spread.p99);
        Self {
            path: counts.iter().map(|counts| counts.path).collect(),
            calls: counts.iter().map(|counts| counts.calls).collect(),
            time_ns: counts.iter().map(|counts| counts.time_ns).collect(),
            self_ns: counts.iter().map(|counts| counts.self_ns).collect(),
            markers_ns: counts.iter().map(|counts| (counts.markers_ns, counts.self_markers_ns)).collect(),
            reverse: reverse.collect(),
            spread: counts.iter().map(|counts| counts.spread.map(spread)).collect(),
            events: EventColumns::of(counts.iter().map(|counts| counts.events.as_slice())),
            counters: counts.iter().filter(|_| has_counters).map(|counts| counts.counters.clone()).collect(),
            outlasted_by: counts.iter().filter(|_| is_outlasted).map(|counts| counts.outlasted_by.clone()).collect(),
        }
    }

    fn counts(&self) -> Result<Vec<RegionCounts>, String> {
        let count = self.path.len();
        let fit = [self.calls.len(), self.time_ns.len(), self.self_ns.len(), self.spread.len()] == [count; 4];
        let may_be_empty = [self.markers_ns.len(), self.reverse.len(), self.counters.len(), self.outlasted_by.len()];
        let fit = fit && may_be_empty.iter().all(|length| [0, count].contains(length));
        let events = self.events.rows(count).filter(|_| fit);
        let events = events.ok_or_else(|| format!("the columns of {count} regions are not all of that length"))?;
        let of = |(i, events): (usize, Vec<EventSums>)| {
            let (reverse_calls, reverse_ns) = self.reverse.get(i).copied().unwrap_or_default();
            let (markers_ns, self_markers_ns) = self.markers_ns.get(i).copied().unwrap_or_default();
            let spread = self.spread[i];
            RegionCounts {
                path: self.path[i],
                calls: self.calls[i],
                time_ns: self.time_ns[i],
                self_ns: self.self_ns[i],
                markers_ns,
                self_markers_ns,
                reverse_calls,
                reverse_ns,
                spread: spread.map(|(mean, variance, min, max, p50, p99)| Spread {
                    mean,
                    variance,
                    min,
                    max,
                    p50,
                    p99,
                }),
                events,
                counters: self.counters.get(i).cloned().unwrap_or_default(),
                outlasted_by: self.outlasted_by.get(i).cloned().flatten(),
            }
        };
        Ok(events.into_iter().enumerate().map(of).collect())
    }
}

impl From<&ThreadMarks> for MarksColumns {
    fn from(thread: &ThreadMarks) -> Self {
        let marks = || thread.marks.iter();
        let first = thread.marks.first().map_or(WallNs(0), |mark| mark.at);
        let before = std::iter::once(first).chain(marks().map(|mark| mark.at));
        Self {
            program: thread.program,
            tid: thread.tid,
            missed: thread.missed,
            at_ns: first,
            after_ns: marks()
                .zip(before)
                .map(|(mark, before)| mark.at.0.wrapping_sub(before.0).cast_signed())
                .collect(),
            path_and_enter: marks().map(|mark| 2 * u64::from(mark.path.0) + u64::from(mark.is_enter)).collect(),
        }
    }
}

impl TryFrom<MarksColumns> for ThreadMarks {
    type Error = String;

    fn try_from(columns: MarksColumns) -> Result<Self, String> {
        let MarksColumns { program, tid, missed, at_ns: mut at, after_ns, path_and_enter } = columns;
        if after_ns.len() != path_and_enter.len() {
            return Err(format!("the columns of {} marks are not of one length", after_ns.len()));
        }
        let mark = |(after, path): (i64, u64)| {
            at = WallNs(at.0.wrapping_add_signed(after));
            let number = u32::try_from(path / 2).map_err(|_| format!("region {} is not defined", path / 2))?;
            Ok(RegionMark { at, path: RegionPathId(number), is_enter: path % 2 == 1 })
        };
        let marks = after_ns.into_iter().zip(path_and_enter).map(mark).collect::<Result<_, String>>()?;
        Ok(Self { program, tid, missed, marks })
    }
}

impl From<&RegionBatch> for RegionsLine {
    fn from(batch: &RegionBatch) -> Self {
        Self {
            at_ns: batch.at,
            since_ns: batch.since,
            counted_since_ns: batch.counted_since,
            programs: batch.programs.clone(),
            paths: batch.paths.clone(),
            states: batch.states.clone(),
            counts: CountsColumns::of(&batch.counts),
            marks: batch.marks.iter().map(MarksColumns::from).collect(),
            threads: batch.threads.clone(),
        }
    }
}

impl TryFrom<RegionsLine> for RegionBatch {
    type Error = String;

    fn try_from(line: RegionsLine) -> Result<Self, String> {
        let RegionsLine { at_ns, since_ns, counted_since_ns, programs, paths, states, counts, marks, threads } = line;
        let marks = marks.into_iter().map(ThreadMarks::try_from).collect::<Result<_, _>>()?;
        let (at, since, counted_since) = (at_ns, since_ns, counted_since_ns);
        Ok(Self { at, since, counted_since, programs, paths, counts: counts.counts()?, states, marks, threads })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::regions::{CountedPart, EventCounts};

    fn batch() -> RegionBatch {
        let spread = Spread { mean: 2.5, variance: None, min: 1.0, max: 4.0, p50: 2.0, p99: 4.0 };
        let counts = |path, spread| RegionCounts {
            path: RegionPathId(path),
            calls: 2,
            time_ns: 5,
            self_ns: 3,
            markers_ns: 6,
            self_markers_ns: 1,
            reverse_calls: 0,
            reverse_ns: 0,
            spread,
            events: Vec::new(),
            counters: vec![7],
            outlasted_by: None,
        };
        let path = |parent, name: &str| RegionPath {
            program: RegionProgramId(0),
            parent,
            name: name.into(),
            phase: String::new(),
        };
        let mark = |at, is_enter| RegionMark { at: WallNs(at), path: RegionPathId(1), is_enter };
        RegionBatch {
            at: WallNs(100),
            since: WallNs(20),
            counted_since: Some(WallNs(0)),
            programs: vec![RegionProgram { pid: 7, name: Some("\u{1b}".into()) }],
            paths: vec![path(None, "a,\"b"), path(Some(RegionPathId(0)), "c\n")],
            counts: vec![counts(0, Some(spread)), counts(1, None)],
            states: vec![(RegionProgramId(0), RegionState { inner_ns: 12.5, ..RegionState::default() })],
            marks: vec![ThreadMarks {
                program: RegionProgramId(0),
                tid: 8,
                missed: 3,
                marks: vec![mark(40, true), mark(60, false)],
            }],
            threads: vec![ThreadCounts {
                path: RegionPathId(1),
                tid: 8,
                calls: 2,
                self_ns: 3,
                reverse_ns: 0,
                events: vec![Some(4), None],
            }],
        }
    }

    #[test]
    fn batches_read_back_as_they_were_written() {
        let backward = RegionCounts { reverse_calls: 1, reverse_ns: 9, ..batch().counts[0].clone() };
        let backward = RegionBatch { counts: vec![backward], ..batch() };
        let mut outlasted = batch();
        outlasted.counts[1].outlasted_by = Some("d".into());
        for batch in [batch(), backward, outlasted, with_events(), RegionBatch::default()] {
            let line = serde_json::to_string(&RegionsLine::from(&batch)).unwrap();
            let read: RegionsLine = serde_json::from_str(&line).unwrap();
            assert_eq!(RegionBatch::try_from(read).unwrap(), batch, "{line}");
        }
    }

    /// The same, with two events in the first region and none in the second.
    fn with_events() -> RegionBatch {
        let all =
            EventCounts { calls: 2, missing: 1, sum: 70, min: 30, max: 80, scaled: 110.0, ..EventCounts::default() };
        let all =
            EventCounts { squares: 7300.0, squares_per_ns: 250.5, stays: 2, enabled_ns: 80, running_ns: 20, ..all };
        let alone = CountedPart { sum: 60, enabled_ns: 70, running_ns: 10 };
        let sums = EventSums { all, alone, markers: 2.5, self_markers: -1.0, call_marker: 0.5, marker_error: 1.5 };
        let never = EventSums { all: EventCounts { min: u64::MAX, ..EventCounts::default() }, ..EventSums::default() };
        let mut batch = batch();
        batch.counts[0].events = vec![sums, never];
        batch.states[0].1.events = vec!["page-faults".into(), "r1\u{1b}".into()];
        batch
    }

    #[test]
    fn columns_that_differ_in_length_are_damage() {
        let line = serde_json::to_string(&RegionsLine::from(&with_events())).unwrap();
        for (whole, damaged) in [
            ("\"calls\":[2,2]", "\"calls\":[2]"),
            ("\"after_ns\":[0,20]", "\"after_ns\":[0]"),
            ("\"sum\":[70,0]", "\"sum\":[70]"),
            ("\"events\":[2,0]", "\"events\":[1,0]"),
            ("\"events\":[2,0]", "\"events\":[2]"),
        ] {
            assert!(line.contains(whole), "{line}");
            let read: RegionsLine = serde_json::from_str(&line.replace(whole, damaged)).unwrap();
            assert!(RegionBatch::try_from(read).unwrap_err().contains("of"), "{damaged}");
        }
    }
}
