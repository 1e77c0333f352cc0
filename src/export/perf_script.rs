//! Imports the text of `perf script`.
//!
//! ```text
//! comm pid[/tid] [cpu] time: period event:     each field may be left out
//!         address symbol+0xoffset (module)     innermost frame first
//!   file:line                                  of the frame above it
//!                                              an empty line ends the sample
//! ```
//!
//! Without call chains the frame stands on the first line. Headers begin with `#`; lines of
//! `PERF_RECORD_*` are no samples.

use std::borrow::Cow;
use std::io::Read;
use std::num::NonZeroU32;

use super::known::Known;
use super::lines::Lines;
use super::names::{UNKNOWN, inlined, without_offset};
use super::read::{Chosen, Fault, ReadOptions, What};
use crate::profile::{Amount, Detail, Event, EventId, Frame, FrameId, Kind, Measure, ThreadId, Tree};

/// How the frame above all functions of a sample is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Process {
    /// No frame for the process.
    None,
    /// Named by the command.
    #[default]
    Name,
    /// Named by command and process: `name-pid`.
    Pid,
    /// Named by command, process and thread: `name-pid/tid`.
    Tid,
}

/// Which periods are the weights of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Periods {
    /// All periods that are printed.
    #[default]
    All,
    /// As inferno-collapse-perf: those with one blank behind them. perf aligns the names of several events with more;
    /// their samples weigh 1 then.
    Unpadded,
}

/// The deepest stack; kernels record far less.
const DEEPEST: usize = 8_000_000;

/// Where in the text the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Between two samples.
    Between,
    /// Behind the head of a sample of a requested event.
    Head,
    /// Behind the first of its frames.
    First,
    /// Behind two or more frames of a sample.
    Sample,
    /// In a sample of another event.
    Unwanted,
    /// Behind a line that only a frame behind it would make the head of a sample; its number.
    Doubtful(u64),
}

/// Reads to the end; returns whether periods were left out.
pub(super) fn read<R: Read>(lines: &mut Lines<R>, tree: &mut Tree, options: &ReadOptions) -> (bool, Result<(), Fault>) {
    let mut reader = Reader::new(tree, options);
    let result = reader.all(lines);
    reader.end();
    (reader.skipped_periods, result.and_then(|()| reader.chosen.missing()))
}

struct Reader<'a> {
    tree: &'a mut Tree,
    options: &'a ReadOptions,
    chosen: Chosen,
    stacks: ThreadId,
    place: Place,
    /// The sample's first line, and its weight.
    head: Option<Head>,
    weight: u64,
    /// Frames of the sample, innermost first.
    frames: Vec<FrameId>,
    skipped_periods: bool,
    known_heads: Known<Head>,
    known_frames: Known<FrameId>,
    known_stacks: Known<Stack>,
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
struct Head {
    event: EventId,
    process: Option<FrameId>,
    /// Whether its period is the weight.
    is_weighed: bool,
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

impl<'a> Reader<'a> {
    fn new(tree: &'a mut Tree, options: &'a ReadOptions) -> Self {
        Self {
            stacks: tree.sampled(),
            folds: tree.folds(),
            chosen: Chosen::new(&options.events),
            tree,
            options,
            place: Place::Between,
            head: None,
            weight: 1,
            frames: Vec::new(),
            skipped_periods: false,
            known_heads: Known::new(HEADS.0, HEADS.1),
            known_frames: Known::new(FRAMES.0, FRAMES.1),
            known_stacks: Known::new(STACKS.0, STACKS.1),
            callers: None,
            text: Vec::new(),
        }
    }

    fn all<R: Read>(&mut self, lines: &mut Lines<R>) -> Result<(), Fault> {
        loop {
            let number = lines.number() + 1;
            match lines.next() {
                Ok(Some(line)) => self.line(line, number)?,
                Ok(None) => {
                    self.settle()?;
                    self.sample();
                    return Ok(());
                }
                Err(broken) => return Err(Fault::broken(broken, number)),
            }
            if self.place == Place::First {
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
            Place::Doubtful(number) => Err(Fault::at(number, What::NoSample)),
            _ => Ok(()),
        }
    }

    fn line(&mut self, line: &[u8], number: u64) -> Result<(), Fault> {
        match line.first() {
            // The file was cut off behind the tab.
            Some(b'\t') if line.trim_ascii().is_empty() => return Ok(()),
            Some(b'\t') => return self.frame_line(line, number),
            Some(b'#') => return Ok(()),
            _ => {}
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
        if self.place != Place::Between && text[0] == b' ' {
            let inner = text.trim_ascii_start();
            if first_word(inner).iter().all(u8::is_ascii_hexdigit) {
                return self.frame_line(line, number);
            }
            if Header::parse(&String::from_utf8_lossy(text)).is_none() {
                self.source_line(&String::from_utf8_lossy(inner));
                return Ok(());
            }
        }
        self.settle()?;
        self.sample();
        let parts = Parts::of(text);
        if !parts.as_ref().is_some_and(|parts| self.look_up_head(parts)) {
            self.head(&String::from_utf8_lossy(text), number, parts);
        }
        Ok(())
    }

    /// The first line of a sample.
    fn head(&mut self, text: &str, number: u64, parts: Option<Parts<'_>>) {
        let Some(header) = Header::parse(text) else {
            self.begin(&Header { comm: text.trim(), ..Header::default() });
            self.place = Place::Doubtful(number);
            return;
        };
        if header.event.starts_with("PERF_RECORD_") {
            return;
        }
        self.begin(&header);
        let Some(head) = self.head.filter(|_| self.place == Place::Head) else { return };
        if let Some(frame) = header.frame {
            self.push_frame(frame.as_bytes());
            self.sample();
        } else if parts.is_some_and(|parts| parts.mean(&header)) {
            self.known_heads.insert(&self.text, head);
        }
    }

    fn begin(&mut self, header: &Header<'_>) {
        let event = if header.event.is_empty() { "samples" } else { header.event };
        if !self.chosen.takes(event) {
            (self.place, self.head) = (Place::Unwanted, None);
            return;
        }
        self.place = Place::Head;
        let measure = header.period.map_or(Measure::Samples, |_| Measure::Weighted(unit(event)));
        let is_skipped = header.period.is_some() && self.options.periods == Periods::Unpadded && header.is_padded;
        self.skipped_periods |= is_skipped;
        let process = process_name(self.options.process, header)
            .map(|name| self.tree.frame(&Frame { kind: Kind::Process, ..Frame::function(&name) }));
        let event = self.tree.event(&Event::new(event, measure));
        let head = Head { event, process, is_weighed: !is_skipped };
        self.weight = head.weight(header.period);
        self.head = Some(head);
    }

    fn frame_line(&mut self, line: &[u8], number: u64) -> Result<(), Fault> {
        // No heads at all were asked of perf.
        if self.place == Place::Between {
            self.begin(&Header::default());
        }
        self.place = match self.place {
            Place::Unwanted => return Ok(()),
            Place::First | Place::Sample => Place::Sample,
            Place::Head | Place::Doubtful(_) | Place::Between => Place::First,
        };
        if !self.push_frame(line) {
            return Err(Fault::at(number, What::NoFrame));
        }
        if self.frames.len() > DEEPEST {
            return Err(Fault::at(number, What::TooDeep));
        }
        Ok(())
    }

    /// Takes a frame's line apart, unless it is known; false if it is none.
    fn push_frame(&mut self, line: &[u8]) -> bool {
        put_frame(line, &mut self.text);
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
            let frame = self.options.names.frame(&symbol, module, &mut name);
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
        if self.tree.options().detail == Detail::Functions || self.place == Place::Unwanted {
            return;
        }
        let place = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<NonZeroU32>().ok()?)));
        if let (Some((file, line)), Some(last)) = (place, self.frames.last_mut()) {
            let frame = self.tree.frame_of(*last);
            let (name, module) = (frame.name.to_owned(), frame.module.to_owned());
            *last = self.tree.frame(&Frame { module: &module, file, line: Some(line), ..Frame::function(&name) });
        }
    }

    /// Ends the current sample and adds it to the tree.
    fn sample(&mut self) {
        if let (Place::Head | Place::First | Place::Sample, Some(head)) = (self.place, self.head) {
            let frames = head.process.into_iter().chain(self.frames.iter().rev().copied());
            self.tree.stack(self.stacks, frames, head.event, Amount { samples: 1, weight: self.weight });
        }
        self.frames.clear();
        self.callers = None;
        self.place = Place::Between;
    }
}

/// Most heads, frames and stacks of callers come again, and are looked up by their bytes.
impl Reader<'_> {
    /// Begins a sample with a head that is known.
    fn look_up_head(&mut self, parts: &Parts<'_>) -> bool {
        parts.put_into(&mut self.text);
        let Some(head) = self.known_heads.get(&self.text) else { return false };
        self.weight = head.weight(parts.period);
        self.head = Some(*head);
        self.place = Place::Head;
        true
    }

    /// Counts a sample whose lines behind the first frame are all known, and goes on behind them.
    fn look_up_callers<R: Read>(&mut self, lines: &mut Lines<R>) {
        self.place = Place::Sample;
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
            self.place = Place::Between;
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
        self.place = Place::Between;
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

/// A line of a frame as it is looked up: without the address and the offset, where a symbol stands between them.
fn put_frame(line: &[u8], text: &mut Vec<u8>) {
    text.clear();
    let (symbol, module) = frame_parts(line).unwrap_or((line, b""));
    text.extend_from_slice(symbol);
    text.push(b'\n');
    text.extend_from_slice(module);
}

/// Symbol and module of `address symbol+0xoffset (module)`, where nothing else can be meant.
fn frame_parts(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = line[digits..].strip_prefix(b" ").filter(|_| digits > 0)?;
    let inner = rest.strip_suffix(b")")?;
    let module = memchr::memrchr2(b'(', b')', inner).filter(|&at| inner[at] == b'(')?;
    let before = inner[..module].strip_suffix(b" ")?;
    let offset = before.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let symbol = before[..before.len() - offset].strip_suffix(b"+0x").unwrap_or(before);
    (!symbol.is_empty()).then_some((symbol, &inner[module..]))
}

/// The lines behind the first frame of a sample with this head, as they are looked up.
fn put_callers(head: Head, lines: &[u8], text: &mut Vec<u8>) {
    text.clear();
    text.extend_from_slice(&head.process.map_or(usize::MAX, FrameId::index).to_le_bytes());
    text.extend_from_slice(lines);
}

impl Head {
    fn weight(&self, period: Option<u64>) -> u64 {
        period.filter(|_| self.is_weighed).unwrap_or(1)
    }
}

/// A first line around what differs from sample to sample: its time, and its period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts<'a> {
    before: &'a [u8],
    period: Option<u64>,
    behind: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let is_time = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        let mut ends = memchr::memchr_iter(b':', line);
        let (before, rest) = ends.find_map(|end| {
            let start = line[..end].iter().rposition(|byte| !is_time(byte)).map_or(0, |at| at + 1);
            let is_word = start < end && (start == 0 || line[start - 1] == b' ');
            is_word.then(|| (&line[..start], &line[end + 1..]))
        })?;
        let word = rest.trim_ascii_start();
        let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 || word.get(digits) != Some(&b' ') {
            return Some(Self { before, period: None, behind: rest });
        }
        let period = std::str::from_utf8(&word[..digits]).ok()?.parse().ok()?;
        Some(Self { before, period: Some(period), behind: &word[digits..] })
    }

    /// Writes the head in the form by which known heads are looked up.
    fn put_into(&self, text: &mut Vec<u8>) {
        text.clear();
        text.extend_from_slice(&self.before.len().to_le_bytes());
        text.push(u8::from(self.period.is_some()));
        text.extend_from_slice(self.before);
        text.extend_from_slice(self.behind);
    }

    /// Whether all that the header says but the period is said before and behind.
    fn mean(&self, header: &Header<'_>) -> bool {
        let [before, behind] = [self.before, self.behind].map(String::from_utf8_lossy);
        let period = if self.period.is_some() { " 0" } else { "" };
        let other = format!("{before}0.0:{period}{behind}");
        let expected = Header { period: self.period.map(|_| 0), ..header.clone() };
        header.period == self.period && Header::parse(&other) == Some(expected)
    }
}

/// Whether a line begins a sample beyond doubt.
pub(super) fn is_head(line: &[u8]) -> bool {
    Header::parse(&String::from_utf8_lossy(line.trim_ascii_end())).is_some()
}

/// Clocks count nanoseconds.
fn unit(event: &str) -> Cow<'static, str> {
    match event.split(':').next() {
        Some("cpu-clock" | "task-clock") => "nanoseconds".into(),
        _ => "count".into(),
    }
}

fn process_name(process: Process, header: &Header<'_>) -> Option<String> {
    let comm = header.comm.replace(' ', "_");
    if comm.is_empty() {
        return None;
    }
    let (pid, tid) = (header.pid.unwrap_or("?"), header.tid.unwrap_or("?"));
    match process {
        Process::None => None,
        Process::Name => Some(comm),
        Process::Pid => Some(format!("{comm}-{pid}")),
        Process::Tid => Some(format!("{comm}-{pid}/{tid}")),
    }
}

fn first_word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    &text[..end]
}

/// The symbol and the module of `address symbol (module)`. An address alone is its own symbol; a module
/// alone has an unknown one.
fn parse_frame(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let (address, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    if address.is_empty() || !address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let rest = rest.trim();
    if rest.is_empty() {
        return Some((Cow::Owned(format!("0x{address}")), ""));
    }
    let (symbol, module) = split_module(rest);
    Some((Cow::Borrowed(if symbol.is_empty() { UNKNOWN } else { symbol }), module))
}

/// `symbol (module)` apart. What stands in the last parentheses is no module if there are more in it, as in the
/// arguments of a function; a file that is gone says `(deleted)`.
fn split_module(text: &str) -> (&str, &str) {
    let Some(inner) = text.strip_suffix(')') else { return (text, "") };
    let inner = inner.strip_suffix(" (deleted)").unwrap_or(inner);
    match inner.rfind(" (") {
        Some(start) if !inner[start + 2..].contains([')', '(']) => (inner[..start].trim(), &inner[start + 2..]),
        None if inner.starts_with('(') && !inner[1..].contains([')', '(']) => ("", &inner[1..]),
        _ => (text, ""),
    }
}

/// What the first line of a sample says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Header<'a> {
    comm: &'a str,
    pid: Option<&'a str>,
    tid: Option<&'a str>,
    period: Option<u64>,
    /// Whether more than a blank stands behind the period: perf aligns several events so.
    is_padded: bool,
    /// Name of the event; empty where the line has none.
    event: &'a str,
    /// The only frame, where there are no call chains.
    frame: Option<&'a str>,
}

impl<'a> Header<'a> {
    /// Takes the line apart, if it holds a number of a process or an event.
    fn parse(line: &'a str) -> Option<Self> {
        match process_field(line) {
            Some((comm, ids, rest)) => {
                let (pid, tid) = ids.split_once('/').map_or((None, ids), |(pid, tid)| (Some(pid), tid));
                let header = Self { comm, pid, tid: Some(tid), ..Self::default() };
                header.fields(rest)
            }
            None => {
                let event = line.trim().strip_suffix(':')?;
                let (before, event) = event.rsplit_once(' ').unwrap_or(("", event));
                let before = before.trim_end();
                let period = before.rsplit_once(' ').and_then(|(comm, period)| Some((comm, period.parse().ok()?)));
                let (comm, period) = period.map_or((before, None), |(comm, period)| (comm, Some(period)));
                Some(Self { comm: comm.trim(), period, event, ..Self::default() })
            }
        }
    }

    /// What stands behind the process: `[cpu] time: period event: frame`.
    fn fields(mut self, mut rest: &'a str) -> Option<Self> {
        let mut has_time = false;
        loop {
            rest = rest.trim_start();
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            if word.is_empty() {
                return has_time.then_some(self);
            }
            rest = after;
            if word.starts_with("PERF_RECORD_") {
                return Some(Self { event: word, ..self });
            }
            match word.strip_suffix(':') {
                Some(time) if !has_time && is_time(time) => has_time = true,
                Some(event) => {
                    self.event = event;
                    self.frame = Some(rest.trim()).filter(|frame| is_inline_frame(frame));
                    return Some(self);
                }
                None if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                    self.period = word.parse().ok();
                    self.is_padded = rest.starts_with(' ');
                }
                None => {}
            }
        }
    }
}

fn is_time(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Whether an address and a symbol follow; fields of a tracepoint may follow as well.
fn is_inline_frame(text: &str) -> bool {
    text.split_once(' ').is_some_and(|(address, _)| address.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The name, the numbers and the rest of a line, at its first word of digits, or of two numbers with a
/// slash between them. Names of commands may hold spaces.
fn process_field(line: &str) -> Option<(&str, &str, &str)> {
    let mut start = 0;
    for word in line.split(' ') {
        let end = start + word.len();
        let is_id = |text: &str| text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
        let is_ids = word.split('/').count() <= 2 && word.split('/').all(|id| !id.is_empty() && is_id(id));
        if is_ids && start > 0 && end < line.len() && !line[..start].trim().is_empty() {
            return Some((line[..start].trim(), word, &line[end..]));
        }
        start = end + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_taken_apart() {
        let ids = Header { comm: "rec", tid: Some("7"), ..Header::default() };
        let full = Header { period: Some(12), event: "cpu-clock", ..ids };
        for (line, header) in [
            ("rec 7  23.5:  12 cpu-clock: ", full.clone()),
            ("rec 7 [001] 23.5:  12 cpu-clock: ", full.clone()),
            ("rec 3/7  23.5:  12 cpu-clock:", Header { pid: Some("3"), ..full.clone() }),
            ("V8 Worker 7  23.5:  12 cycles:u:", Header { comm: "V8 Worker", event: "cycles:u", ..full.clone() }),
            ("  rec 7  23.5:  12 cpu-clock:   5b f+0x1 (/x)", Header { frame: Some("5b f+0x1 (/x)"), ..full.clone() }),
            ("rec 7  23.5:  12    cpu-clock:", Header { is_padded: true, ..full.clone() }),
            ("rec 7  23.5: cpu-clock: ", Header { period: None, ..full.clone() }),
            ("rec 7  23.5: sched:sched_switch: prev=a b", Header { period: None, event: "sched:sched_switch", ..full }),
            ("rec cpu-clock: ", Header { comm: "rec", event: "cpu-clock", ..Header::default() }),
        ] {
            assert_eq!(Header::parse(line), Some(header), "{line}");
        }
        for line in ["", "hello", "hello world 7", "7 7"] {
            assert_eq!(Header::parse(line), None, "{line}");
        }
    }

    #[test]
    fn heads_are_known_by_what_does_not_differ() {
        let parts = |line: &'static str| Parts::of(line.as_bytes());
        let known =
            |line| parts(line).is_some_and(|parts| Header::parse(line).is_some_and(|header| parts.mean(&header)));
        assert_eq!(
            parts("rec 7 [001] 23.5:  12 cpu-clock: "),
            Some(Parts { before: b"rec 7 [001] ", period: Some(12), behind: b" cpu-clock: " })
        );
        assert_eq!(parts("kworker/0:1 7 2.5: a:b:").map(|parts| parts.before), Some(&b"kworker/0:1 7 "[..]));
        assert!(known("rec 7 23.5: 12 cycles:") && known("rec 7 23.5:  12    cycles:") && known("rec 7 23.5: cycles:"));
        // What looks like a time is part of a name, and what looks like a period is a process.
        assert!(!known("foo 12: bar 7 23.5: 1 ev:") && !known("rec 23.5: 12 cycles:"));
        assert_eq!(parts("rec 7 23.5: 99999999999999999999 cycles:"), None);
    }

    #[test]
    fn frames_are_known_without_address_and_offset() {
        let parts = |line: &'static str| {
            frame_parts(line.as_bytes())
                .map(|(symbol, module)| [symbol, module].map(|part| std::str::from_utf8(part).unwrap_or_default()))
        };
        for line in ["\t 5b f+0x1 (/x)", "\t 7f f+0x22 (/x)", "\t ff f (/x)"] {
            assert_eq!(parts(line), Some(["f", "(/x"]), "{line}");
        }
        assert_eq!(parts("\t 5b operator++0x1 (/x)"), Some(["operator+", "(/x"]));
        for line in ["\t 5b", "\t 5b f", "\t 5b  (/x)", "\t xy f (/x)", "\t 5b f (/x (deleted))", "\t 5b f(int)"] {
            assert_eq!(parts(line), None, "{line}");
        }
    }

    #[test]
    fn frames_are_taken_apart() {
        for (line, symbol, module) in [
            ("1140 Big::operator+(Big const&)+0x1d (/bin/x)", "Big::operator+(Big const&)+0x1d", "/bin/x"),
            ("1140 f+0x1 (/tmp/with space/x)", "f+0x1", "/tmp/with space/x"),
            ("1140 f+0x1 (/tmp/x (deleted))", "f+0x1", "/tmp/x"),
            ("1140 [unknown] ([unknown])", "[unknown]", "[unknown]"),
            ("1140  (/lib/x.so)", "[unknown]", "/lib/x.so"),
            ("1140 f(void (*)(int))", "f(void (*)(int))", ""),
            ("1140 operator new(unsigned long)", "operator new(unsigned long)", ""),
            ("1140", "0x1140", ""),
        ] {
            assert_eq!(parse_frame(line), Some((Cow::Borrowed(symbol), module)), "{line}");
        }
        assert_eq!(parse_frame("no address"), None);
    }
}
