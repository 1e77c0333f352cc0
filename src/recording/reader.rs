//! Reads a recording, line by line.

use std::io::{self, BufRead};
use std::sync::Arc;

use super::Line;
use super::check::check_readings;
use super::contents::{Cut, RecordedStacks, Recording};
use super::error::{ReadError, not_json};
use super::head::header;
use super::processes::KnownProcesses;
use crate::regions::{RegionBatch, RegionTable};
use crate::run::Header;
use crate::sources::RecordedRound;
use crate::stacks::StackTable;

/// A line longer than this is no recording: 10,000 events take half a megabyte.
const MAX_LINE: u64 = 64 << 20;

/// Reads a recording up to its last whole line.
///
/// # Errors
/// Fails if it isn't a recording, or a line before the last is damaged.
pub fn read(mut input: impl BufRead) -> Result<Recording, ReadError> {
    let mut lines = Lines { input: &mut input, number: 0, text: Vec::new() };
    if !lines.next()? {
        return Err(ReadError::Empty);
    }
    let header = header(&lines.text)?;
    let mut parts = RecordingParts::new(header);
    while lines.is_next_whole(&mut parts.recording.cut)? {
        match serde_json::from_slice(&lines.text) {
            Ok(line) => parts.take(line).map_err(|reason| lines.error(reason))?,
            Err(error) => {
                let (cut, reason) = (Cut { line: lines.number }, lines.error(not_json(&error, lines.text.len())));
                // Whatever killed the writer, only a last line can be damaged by it.
                if lines.next()? {
                    return Err(reason);
                }
                parts.recording.cut = Some(cut);
                break;
            }
        }
    }
    Ok(parts.whole())
}

/// A recording that is being read.
struct RecordingParts {
    /// All but its rounds.
    recording: Recording,
    rounds: Vec<RecordedRound>,
    /// What regions are defined so far.
    known: RegionTable,
    processes: KnownProcesses,
}

impl RecordingParts {
    fn new(header: Header) -> Self {
        let rounds = Arc::default();
        let recording = Recording { header, rounds, stacks: None, regions: Vec::new(), end: None, cut: None };
        let (known, processes) = (RegionTable::default(), KnownProcesses::default());
        Self { recording, rounds: Vec::new(), known, processes }
    }

    fn take(&mut self, line: Line) -> Result<(), String> {
        let recording = &mut self.recording;
        match line {
            _ if recording.end.is_some() => return Err("nothing may follow the end".into()),
            Line::Header(_) => return Err("a second header".into()),
            Line::Round(line) => {
                let columns = recording.header.columns();
                let round =
                    line.round(columns).ok_or_else(|| format!("a reading must have {columns} counts and times"))?;
                if self.rounds.last().is_some_and(|last| last.round.at > round.at) {
                    return Err("time goes backwards".into());
                }
                check_readings(&round.readings)?;
                self.rounds.push(RecordedRound { round, lost: line.lost_rounds });
            }
            Line::Threads(mut threads) => {
                self.processes.fill_in(&mut threads);
                let at = threads.at_ns;
                let round =
                    RecordedRound::for_threads(&mut self.rounds, at).ok_or("threads before the first reading")?;
                round.round.threads = Some(Arc::new(threads));
            }
            Line::Sampled(_) if recording.stacks.is_some() => return Err("a second list of what was sampled".into()),
            Line::Sampled(sampled) => {
                recording.stacks = Some(RecordedStacks { sampled, batches: Vec::new(), table: StackTable::default() });
            }
            Line::Stacks(line) => {
                recording.stacks.as_mut().ok_or("samples of events that no line names")?.take(*line)?
            }
            Line::Regions(line) => {
                let batch = RegionBatch::try_from(*line)?;
                self.known.take(&batch).map_err(|undefined| undefined.to_string())?;
                recording.regions.push(batch);
            }
            Line::End(end) => {
                if self.rounds.last().is_some_and(|last| last.round.at > end.at_ns) {
                    return Err("the end is before the last reading".into());
                }
                check_readings(&end.totals)?;
                recording.end = Some(end);
            }
            Line::Unknown => {}
        }
        Ok(())
    }

    fn whole(self) -> Recording {
        let mut recording = Recording { rounds: self.rounds.into(), ..self.recording };
        recording.stacks.iter_mut().for_each(RecordedStacks::settle);
        recording
    }
}

/// Lines with their number.
struct Lines<'a, R> {
    input: &'a mut R,
    number: usize,
    text: Vec<u8>,
}

impl<R: BufRead> Lines<'_, R> {
    /// Whether there is another line. Blank ones, as editors leave at the end of a file, are passed over.
    fn next(&mut self) -> Result<bool, ReadError> {
        loop {
            self.text.clear();
            let read =
                io::Read::take(&mut *self.input, MAX_LINE).read_until(b'\n', &mut self.text).map_err(ReadError::Io)?;
            self.number += 1;
            if read as u64 == MAX_LINE {
                return Err(self.error(format!("longer than {} MiB", MAX_LINE >> 20)));
            }
            if read == 0 || !self.text.trim_ascii().is_empty() {
                return Ok(read > 0);
            }
        }
    }

    /// Whether there is a next line, where a packed file that is cut off ends with a cut.
    fn is_next_whole(&mut self, cut: &mut Option<Cut>) -> Result<bool, ReadError> {
        match self.next() {
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                *cut = Some(Cut { line: self.number + 1 });
                Ok(false)
            }
            read => read,
        }
    }

    fn error(&self, reason: String) -> ReadError {
        ReadError::Line { line: self.number, reason }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::super::{Recorder, is_recording};
    use super::*;
    use crate::builders::{self, measured, software_event};
    use crate::events::{Encoding, Event, Unit};
    use crate::run::End;
    use crate::sources::command::Exit;
    use crate::sources::{Reading, Round};
    use crate::stacks::{
        CopySwitch, Losses, Rate, SampledEvent, SamplingSetup, StackBatch, StackFrame, StackFrameId, StackId,
        StackNode, StackSample, Task, TaskId, UnnamedFile, UnwindMethod,
    };
    use crate::threads::{ThreadLooks, ThreadReading, ThreadSnapshot};
    use crate::units::{CpuNs, WallNs};

    fn header(events: usize) -> Header {
        let event = |i| {
            let encoding = Encoding { pmu_type: 1, config: i as u64, ..Encoding::default() };
            measured(Event { encoding, ..software_event(&format!("event-{i}")) })
        };
        Header {
            started: 1.5,
            period_ns: WallNs(100),
            interval_ns: WallNs(1000),
            ..builders::header((0..events).map(event))
        }
    }

    fn write(rounds: &[RecordedRound], end: Option<&End>, events: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut recorder = Recorder::new(&mut bytes, &header(events)).unwrap();
        for RecordedRound { round, lost } in rounds {
            recorder.round(round, *lost).unwrap();
        }
        match end {
            Some(end) => recorder.end(end).unwrap(),
            None => drop(recorder),
        }
        bytes
    }

    fn round(at: u64, count: u64) -> RecordedRound {
        let reading = Reading { count, enabled: CpuNs(at), running: CpuNs(at / 2) };
        let round = Round { at: WallNs(at), readings: vec![Some(reading), None], ..Round::default() };
        RecordedRound { round, lost: 0 }
    }

    #[test]
    fn a_recording_reads_back_as_it_was_written() {
        let end = End { at_ns: WallNs(30), exit: Some(Exit::Code(3)), ..End::default() };
        let mut rounds = vec![round(10, 5), round(20, 7)];
        let looks = vec![ThreadLooks { state: 'S', within: "futex_wait".into(), times: 3 }];
        let thread = ThreadReading { pid: 7, tid: 8, name: "a \u{1b}".into(), looks, ..ThreadReading::default() };
        let threads = ThreadSnapshot { at_ns: WallNs(19), threads: vec![thread], ..ThreadSnapshot::default() };
        rounds[1].round.threads = Some(Arc::new(threads));
        let recording = read(&write(&rounds, Some(&end), 2)[..]).unwrap();
        assert_eq!(
            recording,
            Recording {
                header: header(2),
                rounds: rounds.into(),
                stacks: None,
                regions: vec![],
                end: Some(end),
                cut: None
            }
        );
    }

    fn sampled() -> SamplingSetup {
        let event = SampledEvent { name: "cpu-clock".into(), unit: Unit::Nanoseconds, rate: Rate::Frequency(99) };
        SamplingSetup { events: vec![event], call_graph: UnwindMethod::Dwarf(8192) }
    }

    /// The batch as it is read: what became known later holds from the beginning.
    fn settled() -> StackBatch {
        let [(_, renamed)] = &batch().renamed[..] else { panic!("nothing is renamed") };
        StackBatch { frames: vec![renamed.clone()], ..batch() }
    }

    fn batch() -> StackBatch {
        let sample = |at, weight, stack: Option<u32>| StackSample {
            at: WallNs(at),
            task: TaskId(0),
            cpu: 1,
            event: 0,
            weight,
            stack: stack.map(StackId),
        };
        StackBatch {
            frames: vec![StackFrame { name: "f".into(), line: Some(7), inlined: true, ..StackFrame::default() }],
            stacks: vec![StackNode { caller: None, frame: StackFrameId(0) }],
            tasks: vec![Task { pid: 1, tid: 2, comm: "\u{1b}".into() }],
            samples: vec![sample(500, 10, Some(0)), sample(700, 20, None), sample(600, 20, Some(0))],
            renamed: vec![(StackFrameId(0), StackFrame { name: "g".into(), ..StackFrame::default() })],
            unnamed: vec![UnnamedFile { path: "/x".into(), why: "it is no regular file".into() }],
            notes: vec!["debug information of /x: 1.0 MB".into()],
            shares: vec![crate::stacks::RunShare { until: WallNs(9), event: 0, enabled_ns: 8, running_ns: 5 }],
            copies: vec![CopySwitch { at: WallNs(5), bytes: 8192, modules: vec!["/x".into()] }],
            costs: vec![crate::stacks::TaskCosts {
                task: TaskId(0),
                at: WallNs(800),
                own: vec![(StackFrameId(0), vec![7])],
                calls: vec![(StackFrameId(0), StackFrameId(0), 2, vec![5])],
            }],
            losses: Losses { lost: 3, ..Losses::default() },
        }
    }

    #[test]
    fn samples_read_back_as_they_were_written() {
        let mut bytes = Vec::new();
        let mut recorder = Recorder::new(&mut bytes, &header(2)).unwrap();
        recorder.sampled(&sampled()).unwrap();
        let again = StackBatch { samples: batch().samples, losses: batch().losses, ..StackBatch::default() };
        let nothing_new = StackBatch { losses: batch().losses, ..StackBatch::default() };
        [batch(), nothing_new, again.clone()].iter().for_each(|batch| recorder.stacks(batch).unwrap());
        recorder.end(&End::default()).unwrap();
        let stacks = read(&bytes[..]).unwrap().stacks.unwrap();
        assert_eq!((stacks.sampled, stacks.batches), (sampled(), vec![settled(), again]));
        assert_eq!(stacks.table.frames(), settled().frames);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(r#""at_ns":500,"after_ns":[0,200,-100]"#), "{text}");
        assert!(text.contains(r#""cpu":1,"event":0,"weight":[10,20,20],"stack":[0,null,0]"#), "{text}");
    }

    #[test]
    fn what_was_flushed_is_whole_without_an_end() {
        let file = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        struct Shared(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);
        impl std::io::Write for Shared {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.borrow_mut().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut recorder = Recorder::new(Shared(file.clone()), &header(2)).unwrap();
        recorder.sampled(&sampled()).unwrap();
        recorder.round(&round(10, 5).round, 0).unwrap();
        recorder.stacks(&batch()).unwrap();
        recorder.flush().unwrap();
        let killed = read(&file.borrow()[..]).unwrap();
        assert_eq!((&*killed.rounds, killed.stacks.unwrap().batches), (&[round(10, 5)][..], vec![settled()]));
    }

    #[test]
    fn samples_that_name_what_is_not_there_are_damage() {
        let message = |batch: &StackBatch, sampled: Option<&SamplingSetup>| {
            let mut bytes = Vec::new();
            let mut recorder = Recorder::new(&mut bytes, &header(2)).unwrap();
            sampled.into_iter().for_each(|sampled| recorder.sampled(sampled).unwrap());
            recorder.stacks(batch).unwrap();
            recorder.end(&End::default()).unwrap();
            read(&bytes[..]).unwrap_err().to_string()
        };
        assert!(message(&batch(), None).contains("no line names"));
        let undefined = StackBatch { stacks: vec![], ..batch() };
        assert_eq!(message(&undefined, Some(&sampled())), "line 3: stack 0 is not defined");
        assert!(message(&batch(), Some(&SamplingSetup { events: vec![], ..sampled() })).contains("one of 0 events"));
    }

    #[test]
    fn lines_of_an_unknown_type_are_passed_over() {
        let mut bytes = write(&[round(10, 5)], None, 2);
        bytes.extend_from_slice(b"{\"type\":\"of-the-future\",\"x\":[1]}\n");
        bytes.extend_from_slice(write(&[round(20, 7)], None, 2).split_inclusive(|&b| b == b'\n').nth(1).unwrap());
        assert_eq!(*read(&bytes[..]).unwrap().rounds, [round(10, 5), round(20, 7)]);
    }

    #[test]
    fn missing_is_null_and_not_zero() {
        let text = String::from_utf8(write(&[round(10, 0)], None, 2)).unwrap();
        assert!(text.contains(r#""count":[0,null]"#), "{text}");
    }

    #[test]
    fn a_cut_recording_is_good_up_to_its_last_whole_line() {
        let bytes = write(&[round(10, 5), round(20, 7)], None, 2);
        for end in [&b""[..], b"\n"] {
            let recording = read(&[&bytes[..bytes.len() - 4], end].concat()[..]).unwrap();
            assert_eq!(*recording.rounds, [round(10, 5)]);
            assert_eq!(recording.cut, Some(Cut { line: 3 }));
        }
    }

    #[test]
    fn blank_lines_at_the_end_are_no_damage() {
        let end = End { at_ns: WallNs(20), ..End::default() };
        let bytes = write(&[round(10, 5)], Some(&end), 2);
        for blank in ["\n", "  ", " \t\r\n\n \n"] {
            let recording = read(&[&bytes[..], blank.as_bytes()].concat()[..]).unwrap();
            assert_eq!((recording.is_whole(), recording.end), (true, Some(end.clone())), "{blank:?}");
        }
        let more = [&bytes[..], b"\n{}\n{}\n"].concat();
        assert!(read(&more[..]).unwrap_err().to_string().starts_with("line 5: "));
    }

    #[test]
    fn a_header_is_known_however_its_json_is_written() {
        let bytes = write(&[round(10, 5)], None, 2);
        let (mut spaced, mut sorted) = (String::new(), String::new());
        for line in String::from_utf8(bytes.clone()).unwrap().lines() {
            let mut fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(line).unwrap();
            fields.sort_keys();
            sorted += &format!("{}\n", serde_json::to_string(&fields).unwrap());
            let fields = fields.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect::<Vec<_>>();
            spaced += &format!("{{{}}}\n", fields.join(", "));
        }
        for text in [&bytes, sorted.as_bytes(), spaced.as_bytes()] {
            assert!(is_recording(text), "{}", String::from_utf8_lossy(text));
            assert_eq!(*read(text).unwrap().rounds, [round(10, 5)]);
        }
        assert!(is_recording(br#"{"a": 1, "type" : "header", "b": [1, "#), "a part of a line");
        for other in [&br#"{"type": "round"}"#[..], br#"{"type": 1}"#, br#"{"x": "header"}"#, b"main;f 1", b"", b"{"] {
            assert!(!is_recording(other), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn what_is_not_a_recording_says_so() {
        let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert_eq!(message(b""), "it is empty");
        assert!(message(b"\x7fELF\n").starts_with("not a perfprop recording"));
        assert!(message(b"{\"type\":\"header\",\"version\":2}\n").contains("version 2"));
        let mut damaged = write(&[round(10, 5)], None, 2);
        damaged.extend_from_slice(b"{}\n{}\n");
        assert!(message(&damaged).starts_with("line 3: "));
        // The only line number is that of the file.
        let damaged = [&write(&[round(10, 5)], None, 2)[..], b"{\"type\":\n{}\n"].concat();
        assert_eq!(message(&damaged), "line 3: column 9: EOF while parsing a value");
        assert!(message(&write(&[round(10, 5)], None, 3)).contains("3 counts"));
        assert!(message(&write(&[round(10, 5), round(9, 5)], None, 2)).contains("backwards"));
        let end = |at| End { at_ns: WallNs(at), ..End::default() };
        assert!(
            message(&write(&[round(10, 5)], Some(&end(9)), 2)).contains("line 3: the end is before the last reading")
        );
        assert!(read(&write(&[round(10, 5)], Some(&end(10)), 2)[..]).is_ok());
    }

    #[test]
    fn no_event_is_on_a_counter_for_longer_than_it_is_counted() {
        let is_read = |enabled: u64, running: u64| {
            let reading = Reading { count: 1, enabled: CpuNs(enabled), running: CpuNs(running) };
            let round = Round { at: WallNs(10), readings: vec![Some(reading), None], ..Round::default() };
            let totals = End { at_ns: WallNs(10), totals: vec![Some(reading)], ..End::default() };
            let in_round = read(&write(&[RecordedRound { round, lost: 0 }], None, 2)[..]).is_ok();
            let in_end = read(&write(&[], Some(&totals), 2)[..]).is_ok();
            assert_eq!(in_round, in_end);
            in_round
        };
        // The clocks of the kernel are read one after the other.
        assert_eq!([is_read(5, 1_000_005), is_read(5, 1_000_006)], [true, false]);
        assert_eq!([is_read(1_000_000_000, 1_100_000_000), is_read(1_000_000_000, 1_100_000_001)], [true, false]);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_recording_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes[..]);
        }

        #[test]
        fn every_prefix_of_a_recording_reads(cut in 0usize..2000) {
            let bytes = write(&[round(10, 5), round(20, 7)], Some(&End { at_ns: WallNs(20), ..End::default() }), 2);
            let header_length = bytes.iter().position(|&byte| byte == b'\n').unwrap();
            let cut = cut.clamp(header_length + 1, bytes.len());
            prop_assert!(read(&bytes[..cut]).is_ok());
        }
    }
}
