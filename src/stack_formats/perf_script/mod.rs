//! Reads the text of `perf script`.
//!
//! ```text
//! comm pid[/tid] [cpu] time: period event:     each field may be left out
//!         address symbol+0xoffset (module)     innermost frame first, indented by perf
//!   file:line                                  of the frame above it
//!                                              an empty line ends the sample
//! ```
//!
//! Without call chains the frame stands on the first line. Headers begin with `#`; lines of
//! `PERF_RECORD_*` are no samples.

mod frame;
mod head;
mod message;

use std::borrow::Cow;
use std::io::Read;
use std::num::NonZeroU32;

use frame::{is_frame, parse_frame, put_frame};
pub(super) use head::is_head;
use head::{HeadParts, SampleHead};
use message::Messages;
pub(super) use message::is_message;

use crate::profile::{Amount, Detail, EventId, Frame, FrameId, FrameKind, ProfileEvent, SampleMeasure, ThreadId, Tree};
use crate::stack_formats::cache::TextCache;
use crate::stack_formats::error::{Fault, FaultKind};
use crate::stack_formats::lines::InputLines;
use crate::stack_formats::names::{inlined, without_offset};
use crate::stack_formats::options::{Periods, ProcessNaming, ReadOptions, ScriptGaps};
use crate::stack_formats::selection::EventSelector;

/// The deepest stack; kernels record far less.
const DEEPEST: usize = 8_000_000;

/// Where in the text the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScriptPosition {
    /// Between two samples.
    Between,
    /// Behind the head of a sample of a requested event.
    Head,
    /// Behind such a head with a frame on it: the whole stack, unless a call chain follows.
    HeadFrame,
    /// Behind the first of its frames.
    First,
    /// Behind two or more frames of a sample.
    Sample,
    /// In a sample of another event.
    Unwanted,
    /// Behind a line that only a frame behind it would make the head of a sample; its number.
    Doubtful(u64),
}

/// Reads to the end; returns what was left out.
pub(super) fn read<R: Read>(
    lines: &mut InputLines<R>,
    tree: &mut Tree,
    options: &ReadOptions,
) -> (ScriptGaps, Result<(), Fault>) {
    let mut reader = ScriptReader::new(tree, options);
    let result = reader.all(lines);
    reader.end();
    let others = reader.chosen.behind_first().to_vec();
    let gaps = ScriptGaps { messages: reader.messages.lines, others, ..reader.gaps };
    (gaps, result.and_then(|()| reader.chosen.missing()))
}

struct ScriptReader<'a> {
    tree: &'a mut Tree,
    options: &'a ReadOptions,
    chosen: EventSelector,
    stacks: ThreadId,
    place: ScriptPosition,
    /// The sample's first line, and its weight.
    head: Option<KnownHead>,
    weight: u64,
    /// Frames of the sample, innermost first.
    frames: Vec<FrameId>,
    gaps: ScriptGaps,
    messages: Messages,
    known_heads: TextCache<KnownHead>,
    known_frames: TextCache<FrameId>,
    known_stacks: TextCache<Stack>,
    /// How often the tree had been folded when the first of the known stacks came.
    folds: u32,
    /// The callers being read, if they may come again.
    callers: Option<Callers>,
    /// Scratch text to look up known pieces by.
    text: Vec<u8>,
}

/// The lines behind a sample's first frame.
#[derive(Debug)]
struct Callers {
    /// How many frames the line above them holds.
    below: usize,
    /// The number of the empty line behind them.
    end: u64,
    text: Vec<u8>,
}

/// What the first line of a sample means.
#[derive(Clone, Copy, Debug)]
struct KnownHead {
    event: EventId,
    process: Option<FrameId>,
    /// Whether its period is the weight.
    is_weighed: bool,
    /// Whether its process runs Java, by its name, as inferno tells.
    is_java: bool,
}

/// Where the callers of a sample's first frame lead, and how many lines they take.
#[derive(Debug)]
struct Stack {
    place: ThreadId,
    lines: u64,
}

/// How many heads, frames and stacks of callers are known at most, and how long they are: 55 MiB with the longest.
const HEADS: (usize, usize) = (1 << 12, 256);
const FRAMES: (usize, usize) = (1 << 15, 512);
const STACKS: (usize, usize) = (1 << 14, 1536);

impl<'a> ScriptReader<'a> {
    fn new(tree: &'a mut Tree, options: &'a ReadOptions) -> Self {
        Self {
            stacks: tree.sampled(),
            folds: tree.folds(),
            chosen: EventSelector::new(&options.events),
            tree,
            options,
            place: ScriptPosition::Between,
            head: None,
            weight: 1,
            frames: Vec::new(),
            gaps: ScriptGaps::default(),
            messages: Messages::default(),
            known_heads: TextCache::new(HEADS.0, HEADS.1),
            known_frames: TextCache::new(FRAMES.0, FRAMES.1),
            known_stacks: TextCache::new(STACKS.0, STACKS.1),
            callers: None,
            text: Vec::new(),
        }
    }

    fn all<R: Read>(&mut self, lines: &mut InputLines<R>) -> Result<(), Fault> {
        loop {
            let number = lines.number() + 1;
            match lines.next() {
                Ok(Some(line)) => self.line(line, number)?,
                Ok(None) => {
                    self.settle()?;
                    self.gaps.is_cut = lines.is_cut() && self.place != ScriptPosition::Between;
                    self.sample();
                    return Ok(());
                }
                Err(broken) => return Err(Fault::broken(broken, number)),
            }
            if self.place == ScriptPosition::First {
                self.look_up_callers(lines);
            }
        }
    }

    /// Places of callers are good for nothing else.
    fn end(&mut self) {
        self.tree.end(self.stacks);
        self.forget_callers();
    }

    /// Whether a doubtful head of a sample had a frame behind it.
    fn settle(&self) -> Result<(), Fault> {
        match self.place {
            ScriptPosition::Doubtful(number) => Err(Fault::at(number, FaultKind::NoSample)),
            _ => Ok(()),
        }
    }

    fn line(&mut self, line: &[u8], number: u64) -> Result<(), Fault> {
        match line.first() {
            // The file was cut off behind the tab.
            Some(b'\t') if line.trim_ascii().is_empty() => return Ok(()),
            Some(b'\t') => {
                self.messages.end();
                return self.frame_line(line, number);
            }
            // perf's comments have a blank behind it; threads may be called `#1`.
            Some(b'#') if line.get(1).is_none_or(|byte| b" \n\r#=".contains(byte)) => return Ok(()),
            _ if self.messages.take(line) => {
                self.callers = None;
                return Ok(());
            }
            _ => {}
        }
        if self.place == ScriptPosition::HeadFrame {
            self.sample();
        }
        let text = line.trim_ascii_end();
        if text.is_empty() {
            self.settle()?;
            if self.callers.as_ref().is_some_and(|callers| callers.end == number) {
                self.remember_callers();
            }
            self.sample();
            return Ok(());
        }
        if self.place != ScriptPosition::Between && text[0] == b' ' {
            let inner = text.trim_ascii_start();
            if first_word(inner).iter().all(u8::is_ascii_hexdigit) {
                return self.frame_line(line, number);
            }
            if SampleHead::parse(&String::from_utf8_lossy(text)).is_none() {
                self.source_line(&String::from_utf8_lossy(inner));
                return Ok(());
            }
        }
        // Editors and mails take blanks away.
        if self.place != ScriptPosition::Between && is_frame(text) {
            return self.frame_line(line, number);
        }
        self.settle()?;
        self.sample();
        let parts = HeadParts::of(text);
        if !parts.as_ref().is_some_and(|parts| self.look_up_head(parts)) {
            self.head(&String::from_utf8_lossy(text), number, parts);
        }
        Ok(())
    }

    /// The first line of a sample.
    fn head(&mut self, text: &str, number: u64, parts: Option<HeadParts<'_>>) {
        let Some(header) = SampleHead::parse(text) else {
            self.begin(&SampleHead { comm: text.trim(), ..SampleHead::default() });
            self.place = ScriptPosition::Doubtful(number);
            return;
        };
        if header.event.starts_with("PERF_RECORD_") {
            return;
        }
        self.begin(&header);
        let Some(head) = self.head.filter(|_| self.place == ScriptPosition::Head) else { return };
        if let Some(frame) = header.frame {
            self.push_frame(frame.as_bytes());
            self.place = ScriptPosition::HeadFrame;
        } else if parts.is_some_and(|parts| parts.mean(&header)) {
            self.known_heads.insert(&self.text, head);
        }
    }

    fn begin(&mut self, header: &SampleHead<'_>) {
        let event = if header.event.is_empty() { "samples" } else { header.event };
        if !self.chosen.takes(event) {
            (self.place, self.head) = (ScriptPosition::Unwanted, None);
            return;
        }
        self.place = ScriptPosition::Head;
        let measure = header.period.map_or(SampleMeasure::Samples, |_| SampleMeasure::Weighted(unit(event)));
        let is_skipped = header.period.is_some() && self.options.periods == Periods::Unpadded && header.is_padded;
        self.gaps.periods |= is_skipped;
        let process = process_name(self.options.process, header)
            .map(|name| self.tree.frame(&Frame { kind: FrameKind::Process, ..Frame::function(&name) }));
        let event = self.tree.event(&ProfileEvent::new(event, measure));
        let is_java = header.comm.starts_with("java");
        let head = KnownHead { event, process, is_weighed: !is_skipped, is_java };
        self.weight = head.weight(header.period);
        self.head = Some(head);
    }

    fn frame_line(&mut self, line: &[u8], number: u64) -> Result<(), Fault> {
        // No heads at all were asked of perf.
        if self.place == ScriptPosition::Between {
            self.begin(&SampleHead::default());
        }
        // What stood there was an address of data (`-F +addr`).
        if self.place == ScriptPosition::HeadFrame {
            self.frames.clear();
        }
        self.place = match self.place {
            ScriptPosition::Unwanted => return Ok(()),
            ScriptPosition::First | ScriptPosition::Sample => ScriptPosition::Sample,
            ScriptPosition::Head
            | ScriptPosition::HeadFrame
            | ScriptPosition::Doubtful(_)
            | ScriptPosition::Between => ScriptPosition::First,
        };
        if !self.push_frame(line) {
            return Err(Fault::at(number, FaultKind::NoFrame));
        }
        if self.frames.len() > DEEPEST {
            return Err(Fault::at(number, FaultKind::TooDeep));
        }
        Ok(())
    }

    /// Takes a frame's line apart, unless it is known; false if it is none.
    fn push_frame(&mut self, line: &[u8]) -> bool {
        let is_java = self.head.is_some_and(|head| head.is_java);
        put_frame(line, &mut self.text);
        self.text.push(is_java.into());
        if let Some(frame) = self.known_frames.get(&self.text) {
            self.frames.push(*frame);
            return true;
        }
        let text = String::from_utf8_lossy(line);
        let Some((symbol, module)) = parse_frame(text.trim()) else { return false };
        // Old versions of perf name the process so, among the frames.
        if symbol.starts_with('(') && !symbol.starts_with("(anonymous") {
            return true;
        }
        let mut name = String::new();
        let before = self.frames.len();
        for symbol in inlined(without_offset(&symbol), module) {
            let mut frame = self.options.names.frame(&symbol, module, &mut name);
            if is_java {
                frame.name = self.options.names.of_java(frame.name);
            }
            self.frames.push(self.tree.frame(&frame));
        }
        // Innermost first.
        self.frames[before..].reverse();
        if let [frame] = self.frames[before..] {
            self.known_frames.insert(&self.text, frame);
        }
        true
    }

    /// Where in the source the last frame is.
    fn source_line(&mut self, text: &str) {
        if self.tree.options().detail == Detail::Functions || self.place == ScriptPosition::Unwanted {
            return;
        }
        let text = text.strip_suffix(" (inlined)").unwrap_or(text);
        let place = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<NonZeroU32>().ok()?)));
        if let (Some((file, line)), Some(last)) = (place, self.frames.last_mut()) {
            let frame = self.tree.frame_of(*last);
            let (name, module) = (frame.name.to_owned(), frame.module.to_owned());
            *last = self.tree.frame(&Frame { module: &module, file, line: Some(line), ..Frame::function(&name) });
        }
    }

    /// Ends the current sample and adds it to the tree.
    fn sample(&mut self) {
        use ScriptPosition::{First, Head, HeadFrame, Sample};
        if let (Head | HeadFrame | First | Sample, Some(head)) = (self.place, self.head) {
            let frames = head.process.into_iter().chain(self.frames.iter().rev().copied());
            self.tree.stack(self.stacks, frames, head.event, Amount { samples: 1, weight: self.weight });
        }
        self.frames.clear();
        self.callers = None;
        self.place = ScriptPosition::Between;
    }
}

/// Most heads, frames and stacks of callers come again, and are looked up by their bytes.
impl ScriptReader<'_> {
    /// Begins a sample with a head that is known.
    fn look_up_head(&mut self, parts: &HeadParts<'_>) -> bool {
        parts.put_into(&mut self.text);
        let Some(head) = self.known_heads.get(&self.text) else { return false };
        self.weight = head.weight(parts.period);
        self.head = Some(*head);
        self.place = ScriptPosition::Head;
        true
    }

    /// Counts a sample whose lines behind the first frame are all known, and goes on behind them.
    fn look_up_callers<R: Read>(&mut self, lines: &mut InputLines<R>) {
        self.place = ScriptPosition::Sample;
        let (Some(head), Some(text)) = (self.head, lines.paragraph(STACKS.1)) else { return };
        // A line of the source would be that of the first frame.
        if text[0] == b' ' {
            return;
        }
        put_callers(head, text, &mut self.text);
        let length = text.len();
        if self.tree.folds() != self.folds {
            self.forget_callers();
        }
        if let Some(known) = self.known_stacks.get(&self.text) {
            let amount = Amount { samples: 1, weight: self.weight };
            self.tree.stack(known.place, self.frames.drain(..).rev(), head.event, amount);
            lines.skip(length, known.lines);
            self.place = ScriptPosition::Between;
        } else {
            let end = lines.number() + memchr::memchr_iter(b'\n', text).count() as u64;
            self.callers = Some(Callers { below: self.frames.len(), end, text: text.to_vec() });
        }
    }

    /// Counts a sample at the empty line behind its callers.
    fn remember_callers(&mut self) {
        let (Some(head), Some(callers)) = (self.head, self.callers.take()) else { return };
        let place = self.tree.sampled();
        let mut frames = self.frames.drain(..).rev();
        let depth = frames.len() - callers.below;
        self.tree.stand(place, head.process.into_iter().chain(frames.by_ref().take(depth)));
        self.tree.stack(place, frames, head.event, Amount { samples: 1, weight: self.weight });
        self.place = ScriptPosition::Between;
        put_callers(head, &callers.text, &mut self.text);
        let lines = memchr::memchr_iter(b'\n', &callers.text).count() as u64;
        if let Some(before) = self.known_stacks.insert(&self.text, Stack { place, lines }) {
            self.tree.end(before.place);
        }
    }

    fn forget_callers(&mut self) {
        self.known_stacks.drain().for_each(|stack| self.tree.end(stack.place));
        self.folds = self.tree.folds();
    }
}

/// The lines behind the first frame of a sample with this head, as they are looked up.
fn put_callers(head: KnownHead, lines: &[u8], text: &mut Vec<u8>) {
    text.clear();
    text.extend_from_slice(&head.process.map_or(usize::MAX, FrameId::index).to_le_bytes());
    text.push(head.is_java.into());
    text.extend_from_slice(lines);
}

impl KnownHead {
    fn weight(&self, period: Option<u64>) -> u64 {
        period.filter(|_| self.is_weighed).unwrap_or(1)
    }
}

/// Clocks count nanoseconds.
fn unit(event: &str) -> Cow<'static, str> {
    match event.split(':').next() {
        Some("cpu-clock" | "task-clock") => "nanoseconds".into(),
        _ => "count".into(),
    }
}

fn process_name(process: ProcessNaming, header: &SampleHead<'_>) -> Option<String> {
    let comm = header.comm.replace(' ', "_");
    if comm.is_empty() {
        return None;
    }
    let (pid, tid) = (header.pid.unwrap_or("?"), header.tid.unwrap_or("?"));
    match process {
        ProcessNaming::None => None,
        ProcessNaming::Name => Some(comm),
        ProcessNaming::Pid => Some(format!("{comm}-{pid}")),
        ProcessNaming::Tid => Some(format!("{comm}-{pid}/{tid}")),
    }
}

fn first_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    &text[..end]
}
