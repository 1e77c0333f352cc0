//! Keeps the samples and regions of a measurement packed in memory, for a recording that may be saved later.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::mem;
use std::sync::Arc;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

use super::new_lines::NewLines;
use super::{Line, Recorder, RegionsLine, StacksLine};
use crate::number::clock;
use crate::regions::{RegionBatch, RegionProgramId, RegionTable, ThreadMarks};
use crate::stacks::StackBatch;
use crate::units::WallNs;

/// How much is kept of lines with samples; what they define, and regions, comes on top.
#[derive(Clone, Copy, Debug)]
struct KeptBytes {
    /// Bytes of packed lines with samples.
    most: usize,
    /// So many bytes of lines are packed together.
    part: usize,
}

/// Some millions of samples.
const ROOM: KeptBytes = KeptBytes { most: 32 << 20, part: 256 << 10 };

/// Lines of samples and regions. Where they take too much memory, the oldest samples are left out, but neither what
/// they define nor what regions counted.
#[derive(Clone, Debug)]
pub struct KeptSamples {
    /// What is left of lines of samples: what they define.
    defined: Vec<Arc<[u8]>>,
    /// What regions of such lines define and count.
    regions: RegionTable,
    /// How many enters and leaves of a thread are left out.
    missed: BTreeMap<(RegionProgramId, u32), u64>,
    /// Parts with all that was in them, the oldest first, and their size.
    whole: VecDeque<Arc<[u8]>>,
    size: usize,
    room: KeptBytes,
    /// Lines that aren't packed yet.
    open: Vec<u8>,
    new: NewLines,
    /// The last time whose samples are left out.
    left_out: Option<WallNs>,
}

impl Default for KeptSamples {
    fn default() -> Self {
        Self::with_room(ROOM)
    }
}

impl KeptSamples {
    fn with_room(room: KeptBytes) -> Self {
        let (defined, regions, missed, whole, open) = Default::default();
        Self { defined, regions, missed, whole, size: 0, room, open, new: NewLines::default(), left_out: None }
    }

    /// Takes samples.
    pub fn take(&mut self, batch: &StackBatch) {
        let line = self.new.stacks(batch);
        self.keep(line);
    }

    /// Takes what is new of regions.
    pub fn take_regions(&mut self, batch: &RegionBatch) {
        let line = self.new.regions(batch);
        self.keep(line);
    }

    /// The last time whose samples are left out; `None` if none are.
    pub fn left_out(&self) -> Option<WallNs> {
        self.left_out
    }

    /// Writes all that is kept to a recording.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn write<W: Write>(&self, recorder: &mut Recorder<W>) -> io::Result<()> {
        if let Some(until) = self.left_out {
            let note = format!("samples until {} are left out: so many are not kept for saving", clock(until));
            recorder.stacks(&StackBatch { notes: vec![note], ..StackBatch::default() })?;
        }
        if self.regions.programs().len() > 0 {
            let mark = |(&(program, tid), &missed): (&(RegionProgramId, u32), &u64)| ThreadMarks {
                program,
                tid,
                missed,
                marks: Vec::new(),
            };
            recorder
                .regions(&RegionBatch { marks: self.missed.iter().map(mark).collect(), ..self.regions.as_batch() })?;
        }
        self.defined.iter().chain(&self.whole).try_for_each(|part| recorder.lines(&unpacked(part)?))?;
        recorder.lines(&self.open)
    }

    fn keep(&mut self, line: Option<Line>) {
        let Some(line) = line else { return };
        append(&mut self.open, &line);
        if self.open.len() >= self.room.part {
            let part = packed(&mem::take(&mut self.open));
            self.size += part.len();
            self.whole.push_back(part);
        }
        while self.size > self.room.most
            && let Some(oldest) = self.whole.pop_front()
        {
            self.size -= oldest.len();
            self.leave_out(&oldest);
        }
    }

    /// Keeps of a part what it defines and counts.
    fn leave_out(&mut self, part: &[u8]) {
        let mut left = Vec::new();
        for line in unpacked(part).unwrap_or_default().split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Stacks(line)) => self.left_out = self.left_out.max(without_samples(*line, &mut left)),
                Ok(Line::Regions(line)) => self.leave_out_marks(*line),
                _ => {}
            }
        }
        if !left.is_empty() {
            self.defined.push(packed(&left));
        }
    }

    /// Keeps of a line of regions all but what threads entered and left: as of threads that were too fast.
    fn leave_out_marks(&mut self, line: RegionsLine) {
        let Ok(batch) = RegionBatch::try_from(line) else { return };
        // All that it names is defined.
        let _ = self.regions.take(&batch);
        for thread in &batch.marks {
            *self.missed.entry((thread.program, thread.tid)).or_default() += thread.missed + thread.marks.len() as u64;
        }
    }
}

/// Appends a line of samples without them; gives the time of the last.
fn without_samples(line: StacksLine, left: &mut Vec<u8>) -> Option<WallNs> {
    let mut batch = StackBatch::try_from(line).ok()?;
    let last = batch.samples.iter().map(|sample| sample.at).max();
    (batch.samples, batch.shares) = Default::default();
    append(left, &Line::Stacks(Box::new(StacksLine::from(&batch))));
    last
}

/// Nothing that is written here can fail to be JSON, and memory takes all.
fn append(lines: &mut Vec<u8>, line: &Line) {
    if serde_json::to_writer(&mut *lines, line).is_ok() {
        lines.push(b'\n');
    }
}

fn packed(lines: &[u8]) -> Arc<[u8]> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let packed = encoder.write_all(lines).and_then(|()| encoder.finish());
    packed.unwrap_or_default().into()
}

fn unpacked(part: &[u8]) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    DeflateDecoder::new(part).read_to_end(&mut lines)?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::super::read;
    use super::*;
    use crate::recording::Recording;
    use crate::regions::{RegionMark, RegionPath, RegionPathId, RegionProgram};
    use crate::run::{End, Header, MeasuredTarget};
    use crate::stacks::{Rate, SampledEvent, SamplingSetup, StackSample, Task, TaskId, UnwindMethod};

    /// Every sample is of a task of its own.
    fn batch(first: u32, samples: u32) -> StackBatch {
        let task = |tid: u32| Task { pid: 1, tid: tid as i32, comm: "p".into() };
        let sample = |number: u32| StackSample {
            at: WallNs(u64::from(number) * 1_000_000_000),
            task: TaskId(number),
            cpu: number % 7,
            event: 0,
            weight: 3,
            stack: None,
        };
        let numbers = first..first + samples;
        StackBatch {
            tasks: numbers.clone().map(task).collect(),
            samples: numbers.map(sample).collect(),
            ..StackBatch::default()
        }
    }

    fn saved(kept: &KeptSamples) -> Recording {
        let mut file = Vec::new();
        let header = Header::new(MeasuredTarget::File { path: "x".into() }, "scale");
        let mut recorder = Recorder::new(&mut file, &header).unwrap();
        let event = SampledEvent { name: "e".into(), unit: Default::default(), rate: Rate::Period(1) };
        recorder.sampled(&SamplingSetup { events: vec![event], call_graph: UnwindMethod::Fp }).unwrap();
        kept.write(&mut recorder).unwrap();
        recorder.end(&End::default()).unwrap();
        read(file.as_slice()).unwrap()
    }

    fn samples(recording: &Recording) -> Vec<StackSample> {
        recording.stacks.iter().flat_map(|stacks| &stacks.batches).flat_map(|batch| batch.samples.clone()).collect()
    }

    #[test]
    fn what_has_room_is_saved_as_it_came() {
        let mut kept = KeptSamples::default();
        assert_eq!(samples(&saved(&kept)), []);
        let batches = [batch(0, 3), batch(3, 1), batch(4, 2)];
        batches.iter().for_each(|batch| kept.take(batch));
        kept.take(&StackBatch::default());
        let saved = saved(&kept);
        assert_eq!((saved.stacks.unwrap().batches, kept.left_out()), (batches.to_vec(), None));
    }

    #[test]
    fn marks_that_are_left_out_were_missed() {
        let mut kept = KeptSamples::with_room(KeptBytes { most: 0, part: 1 });
        let path = RegionPath { program: RegionProgramId(0), parent: None, name: "r".into(), phase: String::new() };
        let marks = vec![RegionMark { at: WallNs(5), path: RegionPathId(0), is_enter: true }];
        let marks = vec![ThreadMarks { program: RegionProgramId(0), tid: 1, missed: 2, marks }];
        let program = RegionProgram { pid: 1, name: Some("p".into()) };
        let (at, since) = (WallNs(9), WallNs(0));
        let batch =
            RegionBatch { at, since, programs: vec![program], paths: vec![path], marks, ..RegionBatch::default() };
        kept.take_regions(&batch);
        let saved = saved(&kept);
        assert_eq!((saved.regions[0].marks[0].missed, saved.regions[0].marks[0].marks.len()), (3, 0));
        assert_eq!(saved.regions_between(None, WallNs(9)).programs().len(), 1);
    }

    proptest! {
        /// The newest samples are kept, all that they name is defined, and it is said which are left out.
        #[test]
        fn the_newest_samples_have_room(
            sizes in prop::collection::vec(1u32..40, 1..30),
            most in 0usize..3000,
            part in 1usize..2000,
        ) {
            let mut kept = KeptSamples::with_room(KeptBytes { most, part });
            let mut count = 0;
            for size in sizes {
                kept.take(&batch(count, size));
                count += size;
            }
            let saved = saved(&kept);
            let stacks = saved.stacks.as_ref().unwrap();
            let tasks: usize = stacks.batches.iter().map(|batch| batch.tasks.len()).sum();
            prop_assert_eq!(tasks, count as usize);
            let left = samples(&saved);
            let first = count - left.len() as u32;
            prop_assert_eq!(&left, &batch(first, left.len() as u32).samples);
            let left_out = first.checked_sub(1).map(|last| WallNs(u64::from(last) * 1_000_000_000));
            prop_assert_eq!(kept.left_out(), left_out);
            prop_assert_eq!(stacks.batches.iter().flat_map(|batch| &batch.notes).count(), usize::from(first > 0));
        }
    }
}
