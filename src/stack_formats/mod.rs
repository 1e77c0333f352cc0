//! Reads stacks from other tools' files into a tree, and writes trees as files for other tools.
//!
//! Reading is streaming but for pprof: memory grows with what differs between stacks, not with their
//! number. What was read before a fault is kept.

mod cache;
mod callgrind;
mod chrome;
mod error;
mod firefox;
mod flame;
mod folded;
mod json_controls;
mod lines;
mod names;
mod options;
mod packed;
mod perf_script;
mod pprof;
mod recording;
mod selection;
mod speedscope;
mod timed;

use std::io::{self, Read, Write};

use crate::compare::{self, ProfileDifference};
use crate::profile::{Amount, EventId, Tree};
use crate::recording::is_recording;
use crate::run::{End, Header};
use crate::stacks::Losses;

pub use chrome::{TraceLength, write_trace};
pub use error::{Fault, FaultKind, WriteError};
use json_controls::JsonControls;
use lines::InputLines;
pub use names::Names;
pub use options::{
    EventSelection, FlameDifference, InputFormat, OutputFormat, Periods, ProcessNaming, ProfileTimes, ReadOptions,
    SampleKeeping, ScriptGaps, WriteOptions, WrittenNumber,
};
pub use packed::unpacked;
pub use timed::TimedRun;

/// The stacks of a file, and what is wrong with it.
#[derive(Debug)]
pub struct Imported {
    /// All stacks, those before the fault if there is one.
    pub tree: Tree,
    /// Why the file wasn't read to its end.
    pub fault: Option<Fault>,
    /// What a text of `perf script` has beside what was read of it.
    pub gaps: ScriptGaps,
    /// What it is written in; `None` where that isn't known.
    pub format: Option<InputFormat>,
    /// What was run, if the file is a recording that was read to its end.
    pub run: Option<ImportedRun>,
    /// What a recording lacks of what was sampled.
    pub losses: Losses,
    /// The samples of a recording one by one, if they were kept.
    pub timed: Option<TimedRun>,
    /// What a profile of pprof says of times.
    pub times: Option<ProfileTimes>,
}

/// What a recording says beside its stacks.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedRun {
    /// Header of the recording.
    pub header: Header,
    /// How the run ended.
    pub end: End,
}

/// How much of a file its format is guessed from.
const HEAD: u64 = 256 << 10;

/// What an input is written in, by its beginning, and the whole input again, unpacked where gzip has packed it; `None` for
/// what nobody can read. What begins with a brace, and is no other tool's, can be a recording only.
///
/// # Errors
/// Returns the operating system's error if nothing can be read.
pub fn sniff<'a>(input: impl Read + 'a) -> io::Result<(Option<InputFormat>, impl Read + 'a)> {
    let mut input = unpacked(input)?;
    let begun = begin(&mut input)?;
    let is_json = begun.starts_with(b"{") && foreign(&begun).is_none();
    let format = guess(&begun).or_else(|| is_json.then_some(InputFormat::Recording));
    Ok((format, io::Cursor::new(begun).chain(input)))
}

fn begin(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut begun = Vec::new();
    match input.take(HEAD).read_to_end(&mut begun) {
        // What is cut off after a beginning is read up to there.
        Err(error) if begun.is_empty() || error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(begun),
    }
}

/// Reads a file of stacks. A fault doesn't take away what stood before it.
pub fn read(input: impl Read, options: &ReadOptions) -> Imported {
    let tree = Tree::new(options.tree);
    let losses = Losses::default();
    let mut imported = Imported {
        tree,
        fault: None,
        gaps: ScriptGaps::default(),
        format: None,
        run: None,
        losses,
        timed: None,
        times: None,
    };
    let begun = unpacked(input).and_then(|mut input| begin(&mut input).map(|begun| (begun, input)));
    let result = begun.map_err(|error| Fault::of_file(FaultKind::Io(error))).and_then(|(begun, input)| {
        imported.format = options.format.or_else(|| guess(&begun));
        imported.take(begun, input, options)
    });
    let too_much = too_much(&imported.tree);
    if too_much.is_some() {
        (imported.tree, imported.timed) = (Tree::new(options.tree), None);
    }
    let result = too_much.map_or(result, Err);
    let is_empty = imported.tree.event_ids().next().is_none();
    let is_zero = || imported.tree.event_ids().all(|event| imported.tree.total(event) == Amount::ZERO);
    let has_stacks = || imported.tree.frames().len() > Tree::new(options.tree).frames().len();
    let nothing = match imported.format {
        _ if is_empty => Some(FaultKind::Empty),
        Some(InputFormat::Folded) if is_zero() && !has_stacks() => Some(FaultKind::Empty),
        Some(InputFormat::Folded) if is_zero() => Some(FaultKind::AllZero),
        _ => None,
    };
    imported.fault = result.err().or(nothing.map(Fault::of_file));
    imported
}

/// The fault of an event whose sum stays at the largest number: shares of it are wrong.
fn too_much(tree: &Tree) -> Option<Fault> {
    let has_too_much = |event: &EventId| tree.total(*event).weight == u64::MAX;
    let event = tree.event_ids().find(has_too_much)?;
    Some(Fault::of_file(FaultKind::TooMuch(tree.event_of(event).name.clone())))
}

impl Imported {
    /// Reads a file of a known format; `begun` is its beginning.
    fn take(&mut self, begun: Vec<u8>, input: impl Read, options: &ReadOptions) -> Result<(), Fault> {
        let tree = &mut self.tree;
        match self.format {
            Some(InputFormat::PerfScript) => {
                let (gaps, result) = perf_script::read(&mut InputLines::new(begun, input), tree, options);
                self.gaps = gaps;
                result
            }
            Some(InputFormat::Folded) => folded::read(&mut InputLines::new(begun, input), tree, options),
            Some(InputFormat::Callgrind) => callgrind::read(&mut InputLines::new(begun, input), tree, options),
            Some(InputFormat::Recording) => {
                let input = io::BufReader::new(io::Cursor::new(begun).chain(input));
                recording::read(input, self, options)
            }
            Some(InputFormat::Pprof) => {
                self.times = Some(pprof::read(io::Cursor::new(begun).chain(input), tree, options)?);
                Ok(())
            }
            None if begun.is_empty() => Err(Fault::of_file(FaultKind::NoBytes)),
            None if begun.trim_ascii().is_empty() => Err(Fault::of_file(FaultKind::Empty)),
            None => Err(Fault::of_file(FaultKind::Unknown(foreign(&begun)))),
        }
    }
}

/// What a file is that begins so, of those that people open by mistake, and what to do with it.
fn foreign(begun: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 10] = [
        (b"PERFILE2", "perf's own file; perfprop reads its text:  perf script -i FILE | perfprop replay -"),
        (b"\x7fELF", "a program or a library; to measure a program:  perfprop top -- PROGRAM"),
        (b"\x28\xb5\x2f\xfd", "compressed by zstd:  zstd -dc FILE | perfprop replay -"),
        (b"\xfd7zXZ", "compressed by xz:  xz -dc FILE | perfprop replay -"),
        (b"BZh", "compressed by bzip2:  bzip2 -dc FILE | perfprop replay -"),
        (b"PK\x03\x04", "an archive of zip:  unzip -p FILE | perfprop replay -"),
        (b"\xff\xfe", "text in UTF-16:  iconv -f UTF-16 -t UTF-8 FILE | perfprop replay -"),
        (b"SQLite format 3", "a database of SQLite"),
        (b"\x89PNG", "a picture"),
        (b"%PDF", "a PDF document"),
    ];
    let known = KNOWN.iter().find(|(begin, _)| begun.starts_with(begin)).map(|(_, what)| *what);
    known.or_else(|| foreign_text(begun.trim_ascii_start()))
}

/// What a text of JSON or markup is, by what stands near its beginning.
fn foreign_text(begun: &[u8]) -> Option<&'static str> {
    const JSON: [(&[u8], &str); 4] = [
        (
            b"speedscope.app/file-format-schema",
            "a profile for speedscope, which perfprop writes and doesn't read: take the file that it was made from",
        ),
        (
            b"\"preprocessedProfileVersion\"",
            "a profile for Firefox, which perfprop writes and doesn't read: take the file that it was made from",
        ),
        (b"\"traceEvents\"", "a trace, which perfprop writes and doesn't read: ui.perfetto.dev shows it"),
        (b"\"callFrame\"", "a profile of V8, which perfprop doesn't read: speedscope.app shows it"),
    ];
    match begun.first()? {
        b'{' => JSON.iter().find(|(mark, _)| memchr::memmem::find(begun, mark).is_some()).map(|(_, what)| *what),
        b'<' if begun.starts_with(b"<?xml") || begun.starts_with(b"<svg") => Some("a picture or another file of XML"),
        b'<' if begun.starts_with(b"<!DOCTYPE") || begun.starts_with(b"<html") => Some("a page of HTML"),
        _ => None,
    }
}

/// The format of a file that begins so: fields of a protobuf are pprof's; `perf script` indents
/// frames, or has heads; a number ends the lines of folded stacks.
fn guess(begun: &[u8]) -> Option<InputFormat> {
    let is_binary = begun.iter().take(4096).any(|&byte| byte < b' ' && !b"\t\n\r\x1b".contains(&byte));
    if is_binary && pprof::is_profile(begun) {
        return Some(InputFormat::Pprof);
    }
    if is_recording(begun) {
        return Some(InputFormat::Recording);
    }
    if callgrind::is_callgrind(begun) {
        return Some(InputFormat::Callgrind);
    }
    // Its first line may end with a colon, as heads of samples do.
    if begun.starts_with(b"{") && foreign(begun).is_some() {
        return None;
    }
    let mut lines = begun.split(|&byte| byte == b'\n').filter(|line| !folded::is_comment(line));
    let mut lines = lines.by_ref().skip_while(|line| line.trim_ascii().is_empty());
    let first = lines.next()?;
    let is_frame = |line: &[u8]| line.starts_with(b"\t");
    if perf_script::is_message(first)
        || is_frame(first)
        || lines.next().is_some_and(is_frame)
        || perf_script::is_head(first)
    {
        return Some(InputFormat::PerfScript);
    }
    // The first stack may be longer than what is looked at.
    let is_deep = first.len() as u64 == HEAD && first.contains(&b';') && !first.contains(&0);
    (is_deep || folded::is_stack(first)).then_some(InputFormat::Folded)
}

/// How the difference of two profiles is drawn, with this above it.
pub fn difference_options(found: &ProfileDifference, title: String) -> WriteOptions {
    let marked = compare::marked(found).into_iter().cloned().collect();
    let note = found.what_it_takes().unwrap_or_else(|| "framed functions differ by more than chance".into());
    let title = if found.is_of_weights { title } else { format!("{title}, each side as 100%") };
    let difference = FlameDifference { a: found.events[1], b: found.events[2], marked, note };
    WriteOptions { event: Some(found.events[0]), title, difference: Some(difference), ..WriteOptions::default() }
}

/// Writes a tree.
///
/// # Errors
/// Fails if the output can't be written, or the numbers don't exist.
pub fn write(tree: &Tree, target: OutputFormat, options: &WriteOptions, out: &mut dyn Write) -> Result<(), WriteError> {
    let event = options.event(tree);
    let without = event.map(|event| tree.event_of(event)).filter(|event| !event.has_samples());
    if let (WrittenNumber::Samples, Some(event), true) = (options.unit, without, target != OutputFormat::Pprof) {
        return Err(WriteError::NoSamples(event.name.clone()));
    }
    match target {
        OutputFormat::Pprof => pprof::write(tree, options, out)?,
        OutputFormat::Folded => folded::write(tree, options, out)?,
        OutputFormat::Firefox => firefox::write(tree, options, &mut JsonControls::new(out))?,
        OutputFormat::Speedscope => speedscope::write(tree, options, &mut JsonControls::new(out))?,
        OutputFormat::Svg => flame::svg(tree, options, out)?,
        OutputFormat::Html => flame::html(tree, options, out)?,
    }
    out.flush().map_err(WriteError::Io)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_beginnings() {
        for (text, format) in [
            ("rec 7 23.5: 1 cycles:\n\t 5b f+0x1 (/x)\n\n", Some(InputFormat::PerfScript)),
            ("# hostname\n#\n\nrec 7 23.5: 1 cycles:  5b f+0x1 (/x)\n", Some(InputFormat::PerfScript)),
            ("rec \n\t 5b f\n\n", Some(InputFormat::PerfScript)),
            ("a;b;c 12\n", Some(InputFormat::Folded)),
            ("a b 12", Some(InputFormat::Folded)),
            ("version: 1\ncreator: callgrind-3.19.0\n", Some(InputFormat::Callgrind)),
            ("\n\x04\x08\x01\x10\x02", Some(InputFormat::Pprof)),
            ("\x1f\u{8b}", None),
            ("", None),
            ("hello\nworld\n", None),
        ] {
            assert_eq!(guess(text.as_bytes()), format, "{text:?}");
        }
        // An archive of zip, and fields in another order.
        assert_eq!([guess(b"PK\x03\x04\x14"), guess(b"\x32\x00\x48\x01")], [None, Some(InputFormat::Pprof)]);
        let begun = |frame: &[u8]| frame.iter().copied().cycle().take(HEAD as usize).collect::<Vec<u8>>();
        assert_eq!([guess(&begun(b"main;")), guess(&begun(b"x"))], [Some(InputFormat::Folded), None]);
    }
}
