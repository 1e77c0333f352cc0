//! Reads jitdumps: files in which runtimes write the code that they make, its names, lines and moves.
//!
//! ```text
//! header ┊ record: kind, length, time ┊ …
//!          0 load: process, thread, address twice, size, number, name, code
//!          1 move: process, thread, address, old and new address, size, number
//!          2 lines of the load behind it: address, count, each address, line, column, file
//! ```
//!
//! The numbers are in the byte order of the machine, as the file is of a process on it. V8 (`--perf-prof`),
//! CPython 3.13 (`-X perf_jit`), wasmtime and OpenJDK with perf's agent write it. Of the file no more is kept than what
//! addresses that were sampled need.

use std::io::{self, BufRead, Read, Seek};
use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::made_names::MadeCode;

const MAGIC: u32 = 0x4a69_5444;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const LINES: u32 = 2;

/// The header begins with its magic number, version and length.
const LEAST_HEADER: u32 = 40;
const RECORD_HEADER: u32 = 16;

/// A longer name is none that anybody reads.
const MOST_NAME: u64 = 16 << 10;

/// The bytes of names whose moves are followed.
const MOST_NAMES: usize = 64 << 20;

/// The lines that are kept of one load.
const MOST_LINES: u64 = 1 << 16;

/// The bytes of the names of their files.
const MOST_FILES: usize = 1 << 20;

/// The functions of addresses, which are in ascending order. What was loaded last at an address holds.
///
/// # Errors
/// Fails if the file can't be read, or is none of these. One that ends within a record is still being written.
pub(super) fn read(dump: &mut (impl BufRead + Seek), wanted: &[u64]) -> io::Result<FxHashMap<u64, MadeCode>> {
    let mut found = Loaded { wanted, names: FxHashMap::default(), loads: FxHashMap::default(), kept: 0, lines: None };
    let header = (word(dump)?, word(dump)?, word(dump)?);
    let (MAGIC, 1.., length @ LEAST_HEADER..) = header else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no jitdump of this machine"));
    };
    dump.seek_relative(i64::from(length) - 12)?;
    match found.records(dump) {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
        Ok(()) | Err(_) => Ok(found.names),
    }
}

/// What was loaded so far.
struct Loaded<'a> {
    wanted: &'a [u64],
    names: FxHashMap<u64, MadeCode>,
    /// The name of each load, by its number.
    loads: FxHashMap<u64, String>,
    /// The bytes of those names.
    kept: usize,
    /// Where the code of the next load begins, and its lines by their first addresses.
    lines: Option<(u64, Vec<CodeLine>)>,
}

struct CodeLine {
    address: u64,
    line: u32,
    file: Rc<str>,
}

impl Loaded<'_> {
    fn records(&mut self, dump: &mut (impl BufRead + Seek)) -> io::Result<()> {
        while !dump.fill_buf()?.is_empty() {
            let (kind, length) = (word(dump)?, word(dump)?);
            // The length of a record that is being written may not be there yet.
            if length < RECORD_HEADER {
                return Ok(());
            }
            dump.seek_relative(8)?;
            let mut body = (&mut *dump).take(u64::from(length - RECORD_HEADER));
            match kind {
                LOAD => self.load(&mut body)?,
                MOVE => self.moved(&mut body)?,
                LINES => self.lines = Some(lines(&mut body)?),
                _ => {}
            }
            // Within what is read ahead, that reads nothing again.
            let rest = body.limit();
            dump.seek_relative(rest.cast_signed())?;
        }
        Ok(())
    }

    fn load(&mut self, body: &mut impl BufRead) -> io::Result<()> {
        let (_pid, _tid, _memory) = (word(body)?, word(body)?, long(body)?);
        let (address, size, number) = (long(body)?, long(body)?, long(body)?);
        let name = text(body)?;
        let lines = self.lines.take().filter(|(begin, _)| *begin == address).map(|(_, lines)| lines);
        self.name(address..address.saturating_add(size), &name, &lines.unwrap_or_default());
        // The number of a load takes room, too.
        self.kept += name.len() + size_of::<(u64, String)>();
        if self.kept <= MOST_NAMES {
            self.loads.insert(number, name);
        }
        Ok(())
    }

    fn moved(&mut self, body: &mut impl BufRead) -> io::Result<()> {
        let (_pid, _tid, _memory, _old) = (word(body)?, word(body)?, long(body)?, long(body)?);
        let (address, size, number) = (long(body)?, long(body)?, long(body)?);
        if let Some(name) = self.loads.get(&number).cloned() {
            self.name(address..address.saturating_add(size), &name, &[]);
        }
        Ok(())
    }

    /// Names the addresses that are looked for in the code of a function.
    fn name(&mut self, code: Range<u64>, name: &str, lines: &[CodeLine]) {
        let first = self.wanted.partition_point(|&address| address < code.start);
        for &address in self.wanted[first..].iter().take_while(|&&address| address < code.end) {
            let mut made = MadeCode::named(name);
            let line = lines.iter().filter(|line| line.address <= address).max_by_key(|line| line.address);
            if let Some(line) = line {
                (made.file, made.line) = (Some(line.file.to_string()), Some(line.line).filter(|line| *line > 0));
            }
            self.names.insert(address, made);
        }
    }
}

/// Where the code begins, and its lines.
fn lines(body: &mut impl BufRead) -> io::Result<(u64, Vec<CodeLine>)> {
    /// Stands for the file of the entry before.
    const SAME: &str = "\u{fffd}";
    let (begin, count) = (long(body)?, long(body)?);
    let mut lines: Vec<CodeLine> = Vec::new();
    let mut room = MOST_FILES;
    for _ in 0..count.min(MOST_LINES) {
        let (address, line, _column) = (long(body)?, word(body)?, word(body)?);
        let name = text(body)?;
        let file = match lines.last() {
            Some(before) if name == SAME || name == *before.file => Rc::clone(&before.file),
            _ => {
                let Some(left) = room.checked_sub(name.len()) else { break };
                room = left;
                name.into()
            }
        };
        lines.push(CodeLine { address, line, file });
    }
    Ok((begin, lines))
}

fn word(from: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes).map(|()| u32::from_ne_bytes(bytes))
}

fn long(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes).map(|()| u64::from_ne_bytes(bytes))
}

/// The text up to a zero byte.
fn text(from: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    from.take(MOST_NAME).read_until(0, &mut bytes)?;
    match bytes.pop() {
        Some(0) => {}
        Some(_) => from.skip_until(0).map(drop)?,
        None => return Err(io::ErrorKind::UnexpectedEof.into()),
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn bytes(words: &[u32], longs: &[u64]) -> Vec<u8> {
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        words.chain(longs.iter().flat_map(|long| long.to_ne_bytes())).collect()
    }

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        [&bytes(&[kind, 16 + body.len() as u32], &[99])[..], body].concat()
    }

    fn load(address: u64, size: u64, number: u64, name: &[u8]) -> Vec<u8> {
        let code = vec![0xcc; size as usize];
        record(LOAD, &[&bytes(&[1, 1], &[address, address, size, number])[..], name, &[0], &code].concat())
    }

    fn dump(records: &[Vec<u8>]) -> Vec<u8> {
        [bytes(&[MAGIC, 1, 40, 62, 0, 1], &[7, 0]), records.concat()].concat()
    }

    fn names(dump: &[u8], wanted: &[u64]) -> Vec<(u64, MadeCode)> {
        let mut names: Vec<_> = read(&mut Cursor::new(dump), wanted).unwrap().into_iter().collect();
        names.sort_by_key(|(address, _)| *address);
        names
    }

    fn made(name: &str) -> MadeCode {
        MadeCode { name: name.into(), ..MadeCode::default() }
    }

    #[test]
    fn code_is_loaded_moved_and_replaced() {
        let moved = record(MOVE, &bytes(&[1, 1], &[0x3000, 0x1000, 0x3000, 16, 1]));
        let unknown = record(7, &[1, 2, 3]);
        let file =
            dump(&[load(0x1000, 16, 1, b"f"), unknown, load(0x2000, 16, 2, b"g"), moved, load(0x2008, 8, 3, b"h")]);
        let found = names(&file, &[0xfff, 0x1000, 0x2007, 0x2008, 0x2010, 0x300f]);
        let expected = [(0x1000, "f"), (0x2007, "g"), (0x2008, "h"), (0x300f, "f")].map(|(at, name)| (at, made(name)));
        assert_eq!(found, expected);
    }

    #[test]
    fn places_have_the_lines_of_the_load_behind_them() {
        let line = |address: u64, line: u32, file: &[u8]| {
            [&bytes(&[], &[address]), &bytes(&[line, 0], &[])[..], file, &[0]].concat()
        };
        let entries = [line(0x1000, 7, b"/a.js"), line(0x1008, 9, b"\xff")].concat();
        let debug = record(LINES, &[bytes(&[], &[0x1000, 2]), entries].concat());
        let file = dump(&[debug, load(0x1000, 16, 1, b"JS:*f /b.js:1:1"), load(0x2000, 16, 2, b"g")]);
        let at = |line| MadeCode { file: Some("/a.js".into()), line: Some(line), ..made("f") };
        assert_eq!(names(&file, &[0x1004, 0x100f, 0x2000]), [(0x1004, at(7)), (0x100f, at(9)), (0x2000, made("g"))]);
    }

    #[test]
    fn a_file_that_is_none_is_refused_and_one_that_is_being_written_is_read_so_far() {
        for file in [&b"1000 20 f of a perf map, and more\n"[..], &bytes(&[MAGIC.swap_bytes(), 1, 40], &[0; 4])] {
            assert_eq!(read(&mut Cursor::new(file), &[1]).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
        let whole = dump(&[load(0x1000, 16, 1, b"f"), load(0x2000, 16, 2, b"g")]);
        assert_eq!(names(&whole[..whole.len() - 20], &[0x1000, 0x2000]), [(0x1000, made("f"))]);
        let unfinished = [whole, bytes(&[LOAD, 0], &[0])].concat();
        assert_eq!(names(&unfinished, &[0x1000, 0x2000]).len(), 2);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fail_in_another_way(mut noise in prop::collection::vec(any::<u8>(), 0..200), wanted in any::<u64>()) {
            let mut file = dump(&[load(0x1000, 4, 1, b"f")]);
            file.append(&mut noise);
            prop_assert!(read(&mut Cursor::new(&file), &[0x1000, wanted.max(0x1001)]).is_ok());
        }
    }
}
