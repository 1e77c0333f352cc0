//! Writes the calls of regions one by one as Chrome's trace events, which Perfetto and chrome://tracing open.
//!
//! Processes have names, and threads where samples or what was read of them tell these. A call is an event of type `X`,
//! with its beginning and its length in microseconds; one that had not ended an event `B`. These have to nest on a thread:
//! Perfetto drops what doesn't. So a call that ended after one in which it began is a pair of events `b` and `e`, which are
//! drawn on a track of their own; one that had not ended by then is a `b` alone. Where enters and leaves were missed, an
//! event `i` says how many.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

use serde_json::{Value, json};

use super::error::WriteError;
use super::json_controls::JsonControls;
use crate::number::grouped;
use crate::recording::Recording;
use crate::regions::{RegionBatch, RegionMark, RegionPathId, RegionProgram, RegionTable, ThreadMarks};
use crate::units::WallNs;

/// How much of a run a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceLength {
    /// Calls that are in it, ended or not.
    pub calls: u64,
    /// Threads that made them.
    pub threads: u64,
    /// From the first enter or leave to the last.
    pub time: WallNs,
    /// Enters and leaves that are gone: threads keep their last ones, and a recording some of those.
    pub missed: u64,
}

impl fmt::Display for TraceLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [calls, threads, missed] = [self.calls, self.threads, self.missed].map(grouped);
        let plural = if self.threads == 1 { "" } else { "s" };
        write!(f, "{calls} calls of {threads} thread{plural} in {:.1} s", self.time.as_secs())?;
        match self.missed {
            0 => write!(f, "; none is missing"),
            _ => write!(f, "; {missed} enters and leaves are missing, which came too fast to be kept"),
        }
    }
}

/// Writes the calls of all regions of a recording.
///
/// # Errors
/// Fails if it has none, or the output can't be written.
pub fn write_trace(recording: &Recording, out: &mut dyn Write) -> Result<TraceLength, WriteError> {
    let has_marks = |batch: &RegionBatch| batch.marks.iter().any(|thread| !thread.marks.is_empty());
    if !recording.regions.iter().any(has_marks) {
        return Err(WriteError::NoMarks);
    }
    let mut out = JsonControls::new(out);
    let mut trace = Trace {
        out: &mut out,
        is_empty: true,
        table: RegionTable::default(),
        open: BTreeMap::new(),
        outlasting: 0,
        length: TraceLength::default(),
    };
    let (mut first, mut last) = (None, WallNs(0));
    write!(trace.out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    for batch in &recording.regions {
        // All that it names is defined.
        let _ = trace.table.take(batch);
        for program in &batch.programs {
            let name = program.name.clone().unwrap_or_else(|| format!("process {}", program.pid));
            trace.event(&json!({ "ph": "M", "name": "process_name", "pid": program.pid, "args": { "name": name } }))?;
        }
        for thread in &batch.marks {
            let times = || thread.marks.iter().map(|mark| mark.at);
            first = times().chain(first).min();
            last = times().fold(last, WallNs::max);
            trace.thread(thread, batch.since)?;
        }
    }
    trace.finish()?;
    trace.names(&thread_names(recording))?;
    trace.length.time = last - first.unwrap_or(last);
    write!(trace.out, "\n]}}\n")?;
    trace.out.flush()?;
    Ok(trace.length)
}

/// The last names of threads, by process and thread.
fn thread_names(recording: &Recording) -> BTreeMap<(u32, u32), &str> {
    let tasks = recording.stacks.iter().flat_map(|stacks| &stacks.batches).flat_map(|batch| &batch.tasks);
    let tasks = tasks.map(|task| (task.pid, task.tid, task.comm.as_str()));
    let read = recording.rounds.iter().filter_map(|round| round.round.threads.as_ref());
    let read = read.flat_map(|snapshot| snapshot.threads.iter().chain(&snapshot.ended_threads));
    let read = read.map(|thread| (thread.pid, thread.tid, thread.name.as_str()));
    tasks.chain(read).map(|(pid, tid, name)| ((pid.cast_unsigned(), tid.cast_unsigned()), name)).collect()
}

struct Trace<'a> {
    out: &'a mut dyn Write,
    /// Whether it has no event yet.
    is_empty: bool,
    table: RegionTable,
    /// What is open on each thread of each process.
    open: BTreeMap<(u32, u32), Vec<OpenCall>>,
    /// Calls so far that are on tracks of their own: each has a number.
    outlasting: u64,
    length: TraceLength,
}

/// A call that has not ended.
#[derive(Clone, Copy)]
struct OpenCall {
    enter: RegionMark,
    /// Whether enters and leaves are missing since then.
    is_unsure: bool,
    /// Whether a call in which it began has ended.
    is_outlasting: bool,
}

impl Trace<'_> {
    fn event(&mut self, event: &Value) -> Result<(), WriteError> {
        let separator = if std::mem::take(&mut self.is_empty) { "" } else { "," };
        Ok(write!(self.out, "{separator}\n{event}")?)
    }

    fn thread(&mut self, thread: &ThreadMarks, since: WallNs) -> Result<(), WriteError> {
        let pid = self.table.program(thread.program).map_or(0, |RegionProgram { pid, .. }| *pid);
        let key = (pid, thread.tid);
        if thread.missed > 0 {
            self.keep_around(key, thread.marks.first());
            self.length.missed += thread.missed;
            let name = format!("{} enters and leaves are missing", grouped(thread.missed));
            self.event(
                &json!({ "ph": "i", "s": "t", "name": name, "pid": pid, "tid": key.1, "ts": microseconds(since) }),
            )?;
        }
        for mark in &thread.marks {
            let open = self.open.entry(key).or_default();
            if mark.is_enter {
                open.push(OpenCall { enter: *mark, is_unsure: false, is_outlasting: false });
            } else if let Some(place) = open.iter().rposition(|open| open.enter.path == mark.path) {
                let call = open.remove(place);
                open[place..].iter_mut().for_each(|within| within.is_outlasting = true);
                self.call(key, call, Some(mark.at))?;
            }
        }
        Ok(())
    }

    /// Where enters and leaves of a thread are missing before a mark: keeps open what is around that. Whether the rest was left
    /// since, nobody knows; nor whether what is kept was left and entered again.
    fn keep_around(&mut self, key: (u32, u32), next: Option<&RegionMark>) {
        let Some(open) = self.open.get_mut(&key) else { return };
        let parent = |path: &RegionPathId| self.table.paths().get(path.0 as usize)?.parent;
        let innermost = next.and_then(|next| if next.is_enter { parent(&next.path) } else { Some(next.path) });
        let around: Vec<RegionPathId> = std::iter::successors(innermost, parent).collect();
        open.retain(|open| around.contains(&open.enter.path));
        open.iter_mut().for_each(|open| open.is_unsure = true);
    }

    fn call(&mut self, (pid, tid): (u32, u32), call: OpenCall, end: Option<WallNs>) -> Result<(), WriteError> {
        self.length.calls += 1;
        let OpenCall { enter, is_unsure, is_outlasting } = call;
        let ts = microseconds(enter.at);
        let mut event = json!({ "ph": "B", "name": self.name(enter.path), "pid": pid, "tid": tid, "ts": ts });
        if is_unsure {
            event["args"] = json!({ "note": "enters and leaves are missing in it: it may be several calls" });
        }
        if is_outlasting {
            return self.outlasting(event, end);
        }
        if let Some(end) = end {
            (event["ph"], event["dur"]) = ("X".into(), microseconds(end - enter.at).into());
        }
        self.event(&event)
    }

    /// A call that ended after one in which it began, or hadn't ended by then.
    fn outlasting(&mut self, mut event: Value, end: Option<WallNs>) -> Result<(), WriteError> {
        self.outlasting += 1;
        (event["ph"], event["cat"], event["id"]) = ("b".into(), "region".into(), self.outlasting.into());
        self.event(&event)?;
        let Some(end) = end else { return Ok(()) };
        (event["ph"], event["ts"]) = ("e".into(), microseconds(end).into());
        self.event(&event)
    }

    fn name(&self, path: RegionPathId) -> String {
        self.table.names(path).last().copied().unwrap_or_default().to_owned()
    }

    /// Writes the calls that had not ended.
    fn finish(&mut self) -> Result<(), WriteError> {
        self.length.threads = self.open.len() as u64;
        let open: Vec<_> = self.open.iter_mut().map(|(key, calls)| (*key, std::mem::take(calls))).collect();
        for (key, calls) in open {
            for call in calls {
                self.call(key, call, None)?;
            }
        }
        Ok(())
    }

    /// Writes the names of the threads that made calls.
    fn names(&mut self, names: &BTreeMap<(u32, u32), &str>) -> Result<(), WriteError> {
        let threads: Vec<_> = self.open.keys().filter_map(|key| Some((*key, names.get(key)?))).collect();
        for ((pid, tid), name) in threads {
            self.event(&json!({ "ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": { "name": name } }))?;
        }
        Ok(())
    }
}

fn microseconds(time: WallNs) -> f64 {
    time.0 as f64 / 1e3
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::sync::Arc;

    use super::*;
    use crate::regions::{RegionBatch, RegionPath, RegionProgramId};
    use crate::run::{Header, MeasuredTarget};
    use crate::sources::{RecordedRound, Round};
    use crate::threads::{ThreadReading, ThreadSnapshot};

    fn recording(regions: Vec<RegionBatch>) -> Recording {
        let header = Header::new(MeasuredTarget::File { path: "x".into() }, "scale");
        Recording { header, rounds: [].into(), stacks: None, regions, end: None, cut: None }
    }

    fn path(parent: Option<u32>, name: &str) -> RegionPath {
        let parent = parent.map(RegionPathId);
        RegionPath { program: RegionProgramId(0), parent, name: name.into(), phase: String::new() }
    }

    fn marks(missed: u64, marks: &[(u64, u32, bool)]) -> Vec<ThreadMarks> {
        let mark = |&(at, path, is_enter): &_| RegionMark { at: WallNs(at), path: RegionPathId(path), is_enter };
        let marks = marks.iter().map(mark).collect();
        vec![ThreadMarks { program: RegionProgramId(0), tid: 8, missed, marks }]
    }

    fn events(regions: Vec<RegionBatch>) -> (Vec<(String, String, Value, Value)>, TraceLength) {
        let mut out = Vec::new();
        let length = write_trace(&recording(regions), &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
        let all = trace["traceEvents"].as_array().unwrap().iter();
        let all = all.filter(|event| event["ph"] != "M");
        let all = all.map(|event| (text(event, "ph"), text(event, "name"), event["ts"].clone(), event["dur"].clone()));
        (all.collect(), length)
    }

    #[test]
    fn calls_have_a_beginning_and_a_length() {
        let first = RegionBatch {
            programs: vec![RegionProgram { pid: 7, name: Some("p".into()) }],
            paths: vec![path(None, "a\"b"), path(Some(0), "c")],
            marks: marks(0, &[(1000, 0, true), (1500, 1, true), (2500, 1, false)]),
            ..RegionBatch::default()
        };
        let gap = RegionBatch {
            since: WallNs(3000),
            marks: marks(4, &[(5000, 0, false), (6000, 0, true)]),
            ..RegionBatch::default()
        };
        let (events, length) = events(vec![first, gap]);
        let event = |ph: &str, name: &str, ts: f64, dur: Value| (ph.into(), name.into(), json!(ts), dur);
        assert_eq!(
            events,
            [
                event("X", "c", 1.5, json!(1.0)),
                event("i", "4 enters and leaves are missing", 3.0, Value::Null),
                event("X", "a\"b", 1.0, json!(4.0)),
                event("B", "a\"b", 6.0, Value::Null),
            ]
        );
        assert_eq!(length, TraceLength { calls: 3, threads: 1, time: WallNs(5000), missed: 4 });
        assert!(length.to_string().contains("4 enters and leaves are missing"), "{length}");
    }

    #[test]
    fn calls_that_outlast_one_in_which_they_began_are_on_tracks_of_their_own_and_the_others_nest() {
        let enters_and_leaves = [
            (1000, 0, true),
            (2000, 1, true),
            (3000, 2, true),
            (4000, 0, false),
            // It begins when 'a' has ended.
            (5000, 3, true),
            (6000, 3, false),
            (7000, 1, false),
        ];
        let batch = RegionBatch {
            programs: vec![RegionProgram { pid: 7, name: None }],
            paths: vec![path(None, "a"), path(Some(0), "b"), path(Some(1), "c"), path(Some(2), "d")],
            marks: marks(0, &enters_and_leaves),
            ..RegionBatch::default()
        };
        let (events, length) = events(vec![batch.clone()]);
        let event = |ph: &str, name: &str, ts: f64, dur: Value| (ph.into(), name.into(), json!(ts), dur);
        let wanted = [
            event("X", "a", 1.0, json!(3.0)),
            event("X", "d", 5.0, json!(1.0)),
            event("b", "b", 2.0, Value::Null),
            event("e", "b", 7.0, Value::Null),
            event("b", "c", 3.0, Value::Null),
        ];
        assert_eq!((&events[..], length.calls), (&wanted[..], 4));
        let mut out = Vec::new();
        write_trace(&recording(vec![batch]), &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        let all = trace["traceEvents"].as_array().unwrap().iter();
        let ids: Vec<_> = all.filter_map(|event| event["id"].as_u64()).collect();
        assert_eq!(ids, [1, 1, 2]);
    }

    #[test]
    fn threads_that_made_calls_have_their_last_names() {
        let thread = |tid, name: &str| ThreadReading { pid: 7, tid, name: name.into(), ..ThreadReading::default() };
        let snapshot = |threads| Some(Arc::new(ThreadSnapshot { threads, ..ThreadSnapshot::default() }));
        let round =
            |threads| RecordedRound { round: Round { threads: snapshot(threads), ..Round::default() }, lost: 0 };
        let batch = RegionBatch {
            programs: vec![RegionProgram { pid: 7, name: None }],
            paths: vec![path(None, "a")],
            marks: marks(0, &[(1000, 0, true), (2000, 0, false)]),
            ..RegionBatch::default()
        };
        let rounds = [round(vec![thread(8, "p"), thread(9, "idle")]), round(vec![thread(8, "wor\"ker")])];
        let mut out = Vec::new();
        write_trace(&Recording { rounds: rounds.into(), ..recording(vec![batch]) }, &mut out).unwrap();
        let trace: Value = serde_json::from_slice(&out).unwrap();
        let names = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["name"] == "thread_name");
        let names: Vec<_> = names.map(|event| (&event["pid"], &event["tid"], &event["args"]["name"])).collect();
        assert_eq!(names, [(&json!(7), &json!(8), &json!("wor\"ker"))]);
    }

    #[test]
    fn what_is_around_a_gap_stays_open_and_says_that_something_is_missing_in_it() {
        let of_gap = |next: (u64, u32, bool)| {
            let first = RegionBatch {
                programs: vec![RegionProgram { pid: 7, name: None }],
                paths: vec![path(None, "main"), path(Some(0), "a"), path(Some(1), "b"), path(Some(0), "c")],
                marks: marks(0, &[(1000, 0, true), (2000, 1, true), (3000, 2, true)]),
                ..RegionBatch::default()
            };
            let gap = RegionBatch { marks: marks(9, &[next]), ..RegionBatch::default() };
            let mut out = Vec::new();
            write_trace(&recording(vec![first, gap]), &mut out).unwrap();
            let trace: Value = serde_json::from_slice(&out).unwrap();
            let all = trace["traceEvents"].as_array().unwrap().clone();
            // The one process has a name; nothing else does.
            assert_eq!(all.iter().filter(|event| event["ph"] == "M").count(), 1);
            let calls = all.iter().filter(|event| event["ph"] == "B" || event["ph"] == "X");
            let call = |event: &Value| format!("{} {}", event["name"].as_str().unwrap(), event.get("args").is_some());
            calls.map(call).collect::<Vec<_>>()
        };
        assert_eq!(of_gap((9000, 3, true)), ["main true", "c false"]);
        assert_eq!(of_gap((9000, 1, false)), ["a true", "main true"]);
        assert_eq!(of_gap((9000, 0, false)), ["main true"]);
    }

    #[test]
    fn the_time_begins_with_the_first_call_of_any_thread() {
        let of_thread = |tid, times: [u64; 2]| {
            let [enter, leave] = times;
            let marks = marks(0, &[(enter, 0, true), (leave, 0, false)]);
            marks.into_iter().map(move |marks| ThreadMarks { tid, ..marks })
        };
        let batch = RegionBatch {
            programs: vec![RegionProgram { pid: 7, name: None }],
            paths: vec![path(None, "a")],
            marks: of_thread(8, [2000, 3000]).chain(of_thread(9, [1000, 1500])).collect(),
            ..RegionBatch::default()
        };
        let (_, length) = events(vec![batch]);
        assert_eq!(length, TraceLength { calls: 2, threads: 2, time: WallNs(2000), missed: 0 });
    }

    #[test]
    fn a_recording_without_regions_says_so() {
        let mut out = Vec::new();
        let error = write_trace(&recording(vec![]), &mut out).unwrap_err();
        assert!(error.to_string().contains("no program had any") && out.is_empty());
    }
}
