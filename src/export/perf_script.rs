//! The text of `perf script` in, its stacks in a tree out.
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
use std::hash::BuildHasher;
use std::io::Read;
use std::num::NonZeroU32;

use rustc_hash::FxBuildHasher;

use super::lines::Lines;
use super::names::{UNKNOWN, inlined, without_offset};
use super::read::{Chosen, Fault, ReadOptions, What};
use crate::profile::{Amount, Detail, Event, EventId, Frame, FrameId, Kind, Measure, ThreadId, Tree};

/// How the frame above all functions of a sample is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Process {
    /// There is none.
    None,
    /// By the name of the command.
    #[default]
    Name,
    /// By name and process: `name-pid`.
    Pid,
    /// By name, process and thread: `name-pid/tid`.
    Tid,
}

/// Which periods are the weights of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Periods {
    /// All that are printed.
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
    /// Between samples.
    Between,
    /// In a sample that is wanted.
    Sample,
    /// In a sample of another event.
    Unwanted,
    /// Behind a line that only a frame behind it would make the head of a sample; its number.
    Doubtful(u64),
}

/// Reads to the end; tells whether periods were left out.
pub(super) fn read<R: Read>(lines: &mut Lines<R>, tree: &mut Tree, options: &ReadOptions) -> (bool, Result<(), Fault>) {
    let mut reader = Reader::new(tree, options);
    let result = reader.all(lines);
    (reader.skipped_periods, result.and_then(|()| reader.chosen.missing()))
}

struct Reader<'a> {
    tree: &'a mut Tree,
    options: &'a ReadOptions,
    chosen: Chosen,
    stacks: ThreadId,
    place: Place,
    /// The frame of the process, and what it was made of.
    process: Option<FrameId>,
    process_ids: [String; 3],
    event: Option<EventId>,
    weight: u64,
    skipped_periods: bool,
    /// The sample's frames, innermost first.
    frames: Vec<FrameId>,
    known: Known,
}

impl<'a> Reader<'a> {
    fn new(tree: &'a mut Tree, options: &'a ReadOptions) -> Self {
        Self {
            stacks: tree.sampled(),
            chosen: Chosen::new(&options.events),
            tree,
            options,
            place: Place::Between,
            process: None,
            process_ids: Default::default(),
            event: None,
            weight: 1,
            skipped_periods: false,
            frames: Vec::new(),
            known: Known::new(),
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
        }
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
            Some(b'\t') => return self.frame_line(line, number),
            Some(b'#') => return Ok(()),
            _ => {}
        }
        let text = line.trim_ascii_end();
        if text.is_empty() {
            self.settle()?;
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
        self.head(&String::from_utf8_lossy(text), number);
        Ok(())
    }

    /// The first line of a sample.
    fn head(&mut self, text: &str, number: u64) {
        let Some(header) = Header::parse(text) else {
            self.begin(&Header { comm: text.trim(), ..Header::default() });
            self.place = Place::Doubtful(number);
            return;
        };
        if header.event.starts_with("PERF_RECORD_") {
            return;
        }
        self.begin(&header);
        if let Some(frame) = header.frame {
            if self.place == Place::Sample {
                self.push_frame(frame.as_bytes());
            }
            self.sample();
        }
    }

    fn begin(&mut self, header: &Header<'_>) {
        let event = if header.event.is_empty() { "samples" } else { header.event };
        if !self.chosen.takes(event) {
            self.place = Place::Unwanted;
            return;
        }
        self.place = Place::Sample;
        let measure = header.period.map_or(Measure::Samples, |_| Measure::Weighted(unit(event)));
        let is_last = |&id: &EventId| self.tree.event_of(id).name == event && self.tree.event_of(id).measure == measure;
        self.event = self.event.filter(is_last).or_else(|| Some(self.tree.event(&Event::new(event, measure))));
        self.weight = match (header.period, self.options.periods) {
            (Some(_), Periods::Unpadded) if header.is_padded => {
                self.skipped_periods = true;
                1
            }
            (period, _) => period.unwrap_or(1),
        };
        // The same process runs on, mostly.
        let ids = [header.comm, header.pid.unwrap_or_default(), header.tid.unwrap_or_default()];
        if self.process_ids.iter().map(String::as_str).ne(ids) {
            self.process_ids = ids.map(str::to_owned);
            self.process = process_name(self.options.process, header)
                .map(|name| self.tree.frame(&Frame { kind: Kind::Process, ..Frame::function(&name) }));
        }
    }

    fn frame_line(&mut self, line: &[u8], number: u64) -> Result<(), Fault> {
        match self.place {
            Place::Unwanted => return Ok(()),
            Place::Sample => {}
            Place::Doubtful(_) => self.place = Place::Sample,
            // No heads at all were asked of perf.
            Place::Between => self.begin(&Header::default()),
        }
        if let Some(frame) = self.known.get(line) {
            self.frames.push(frame);
        } else if !self.push_frame(line) {
            return Err(Fault::at(number, What::NoFrame));
        }
        if self.frames.len() > DEEPEST {
            return Err(Fault::at(number, What::TooDeep));
        }
        Ok(())
    }

    /// Takes a frame's line apart; false if it is none.
    fn push_frame(&mut self, line: &[u8]) -> bool {
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
            self.known.insert(line, frame);
        }
        true
    }

    /// Where in the source the last frame is.
    fn source_line(&mut self, text: &str) {
        if self.tree.options().detail == Detail::Functions || self.place != Place::Sample {
            return;
        }
        let place = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<NonZeroU32>().ok()?)));
        if let (Some((file, line)), Some(last)) = (place, self.frames.last_mut()) {
            let frame = self.tree.frame_of(*last);
            let (name, module) = (frame.name.to_owned(), frame.module.to_owned());
            *last = self.tree.frame(&Frame { module: &module, file, line: Some(line), ..Frame::function(&name) });
        }
    }

    /// The end of a sample.
    fn sample(&mut self) {
        if let (Place::Sample, Some(event)) = (self.place, self.event) {
            let amount = Amount { samples: 1, weight: self.weight };
            let frames = self.process.into_iter().chain(self.frames.iter().rev().copied());
            self.tree.stack(self.stacks, frames, event, amount);
        }
        self.frames.clear();
        self.place = Place::Between;
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
    /// Empty if it isn't told.
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

/// Lines of frames that came before, and their frames: most lines come again. A fixed number of them, each in
/// the place its hash gives it.
struct Known {
    slots: Vec<(Vec<u8>, FrameId)>,
}

impl Known {
    const SLOTS: usize = 1 << 15;
    /// Longer lines aren't worth their memory.
    const LONGEST: usize = 512;

    fn new() -> Self {
        Self { slots: vec![(Vec::new(), FrameId::ROOT); Self::SLOTS] }
    }

    fn slot(line: &[u8]) -> usize {
        // The high bits are the better ones.
        (FxBuildHasher.hash_one(line) >> 32) as usize % Self::SLOTS
    }

    #[inline]
    fn get(&self, line: &[u8]) -> Option<FrameId> {
        let (known, frame) = &self.slots[Self::slot(line)];
        (known == line).then_some(*frame)
    }

    fn insert(&mut self, line: &[u8], frame: FrameId) {
        if line.len() <= Self::LONGEST {
            let (known, known_frame) = &mut self.slots[Self::slot(line)];
            known.clear();
            known.extend_from_slice(line);
            *known_frame = frame;
        }
    }
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
