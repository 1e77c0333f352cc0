//! Finds the names of code that a process made while it ran, in the perf map or the jitdumps that it writes.
//!
//! Runtimes that compile while they run list what they compiled in `/tmp/perf-PID.map`: start and size in
//! hexadecimal digits and a name, one a line. A jitdump says more; the process maps it, which tells where it is. Some
//! add to these files while they run, others write them when they end, so an address that has no name yet is looked up
//! again when a file has changed, and at the end. Code is thrown away and its room used again: a line that is added to
//! a perf map later holds for what is sampled from then on. Of the files no more is kept than the names of addresses
//! that were sampled.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::files::{self, Answerer, ExpectedFile, Refused};
use crate::sources::process;

mod java_map;
mod jit_dump;
mod made_names;

use java_map::JavaMap;
pub(super) use made_names::MadeCode;

/// A perf map or a jitdump longer than this isn't read; those of the largest runtimes have some 100 MiB.
const MOST_BYTES: u64 = 1 << 30;

/// A longer line is no name that anybody reads.
const MOST_LINE: u64 = 16 << 10;

/// Reading maps may take this part of the time: one in so many.
const SHARE: u32 = 10;

/// How long reading a map may take.
const READING: Duration = Duration::from_secs(20);

/// A process that makes code, as it was when that was mapped first: it may end before its map is read.
#[derive(Debug)]
pub(super) struct JitProcess {
    pid: i32,
    /// The number that it has in its own namespace.
    inside: i32,
    /// Who may have written its map: its users, and this one.
    owners: Vec<u32>,
    /// Where its paths begin; `None` where it is gone, or not to be looked at.
    root: Option<OwnedFd>,
    /// Where it is Java, which writes its map when it is asked to.
    java: Option<JavaMap>,
}

impl JitProcess {
    pub(super) fn of(pid: i32) -> Self {
        let status = process::text(&format!("/proc/{pid}/status")).unwrap_or_default();
        let numbers = |label: &str| -> Vec<u32> {
            let words = crate::host::field(&status, label).unwrap_or_default();
            words.split_whitespace().filter_map(|word| word.parse().ok()).collect()
        };
        let inside = numbers("NSpid").last().and_then(|&inside| i32::try_from(inside).ok()).unwrap_or(pid);
        // Root may write what it likes anyway.
        let owners = [numbers("Uid"), vec![nix::unistd::geteuid().as_raw(), 0]].concat();
        let root = files::folder(Path::new(&format!("/proc/{pid}/root"))).ok();
        let java = JavaMap::of(pid, inside, root.as_ref());
        Self { pid, inside, owners, root, java }
    }

    /// Its key: another program in the same process has another one, for as long as this one is kept.
    pub(super) fn key(self: &Arc<Self>) -> MakerKey {
        MakerKey(Arc::as_ptr(self).addr())
    }

    /// Whether it may have written a file.
    fn may_own(&self, file: &File) -> Result<(), Refused> {
        let owner = file.metadata().map_err(Refused::System)?.uid();
        if self.owners.contains(&owner) { Ok(()) } else { Err(Refused::Owner(owner)) }
    }

    /// Opens the perf map: as the process sees it, or as it is here.
    fn map(&self) -> Result<File, Refused> {
        let expected = ExpectedFile { owners: Some(&self.owners), ..ExpectedFile::any(MOST_BYTES) };
        let inside = format!("/tmp/perf-{}.map", self.inside);
        let below = self.root.as_ref().map(|root| files::open_below(root, Path::new(&inside), &expected));
        match below {
            Some(Err(why)) if !why.is_absence() && !matches!(why, Refused::System(_)) => Err(why),
            Some(Ok(file)) => Ok(file),
            Some(Err(_)) | None => files::open(Path::new(&format!("/tmp/perf-{}.map", self.pid)), &expected),
        }
    }
}

/// Tells a program that makes code from others, in the same process too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct MakerKey(usize);

/// A jitdump that a process has mapped, to say that it writes it.
#[derive(Debug)]
pub(super) struct JitDump {
    pub(super) maker: Arc<JitProcess>,
    pub(super) path: String,
    pub(super) file: File,
}

impl JitDump {
    /// Whether a mapped file has the name of a jitdump: `jit-4711.dump`.
    pub(super) fn is_called_so(path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        let number = name.strip_prefix("jit-").and_then(|rest| rest.strip_suffix(".dump"));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    }

    fn names(&self, wanted: &[u64]) -> Result<FxHashMap<u64, MadeCode>, Refused> {
        self.maker.may_own(&self.file)?;
        // With a place in it of its own.
        let file = File::open(files::path_of(&self.file)).map_err(Refused::System)?;
        let length = file.metadata().map_err(Refused::System)?.len();
        if length > MOST_BYTES {
            return Err(Refused::TooLong(length));
        }
        jit_dump::read(&mut BufReader::with_capacity(1 << 16, file), wanted).map_err(Refused::System)
    }
}

/// What is looked for in the perf maps and jitdumps of processes.
#[derive(Debug, Default)]
pub(super) struct JitMaps {
    of: FxHashMap<MakerKey, JitMap>,
}

/// Whether maps are read now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapReading {
    /// Where that doesn't take too much of the time.
    IfDue,
    /// In any case: there is no later.
    Last,
}

/// Names from perf maps, and the maps that couldn't be read.
#[derive(Debug, Default)]
pub(super) struct PerfMapNames {
    pub(super) names: Vec<LateName>,
    /// The names of addresses that had others before.
    pub(super) changed: Vec<LateName>,
    /// The maps that aren't read, and why: each once.
    pub(super) refused: Vec<(String, Refused)>,
    /// The processes that wrote a map because they were asked to: each once.
    pub(super) asked: Vec<i32>,
}

/// The name of an address of a program.
#[derive(Debug)]
pub(super) struct LateName {
    pub(super) maker: MakerKey,
    pub(super) address: u64,
    pub(super) code: MadeCode,
    /// The name of the file that has it, which stands for the code's module.
    pub(super) module: String,
}

fn late(maker: MakerKey, module: &str, names: FxHashMap<u64, MadeCode>) -> impl Iterator<Item = LateName> {
    names.into_iter().map(move |(address, code)| LateName { maker, address, code, module: module.to_owned() })
}

#[derive(Debug)]
struct JitMap {
    maker: Arc<JitProcess>,
    /// The addresses without names, in ascending order when they are looked up.
    wanted: Vec<u64>,
    /// Whether some of them were never looked up.
    has_new: bool,
    /// The names that the perf map has given.
    named: FxHashMap<u64, MadeCode>,
    /// The file when it was read.
    read: Option<MapVersion>,
    /// The jitdumps, each as it was when it was read.
    dumps: Vec<(Arc<JitDump>, DumpState)>,
    /// When it may be read again.
    due: Instant,
    is_refused: bool,
    /// Whether it has written its map because it was asked to.
    is_asked: bool,
}

/// A file as it was at a time: its number, length and time of change.
pub(super) type MapVersion = (u64, u64, i64, i64);

pub(super) fn version(file: &File) -> Result<MapVersion, Refused> {
    let about = file.metadata().map_err(Refused::System)?;
    Ok((about.ino(), about.len(), about.mtime(), about.mtime_nsec()))
}

/// What is known of a jitdump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DumpState {
    Unread,
    ReadAs(MapVersion),
    Refused,
}

impl JitMaps {
    /// Looks for the name of an address from now on.
    pub(super) fn want(&mut self, maker: &Arc<JitProcess>, address: u64) {
        let map = self.map(maker);
        map.wanted.push(address);
        map.has_new = true;
    }

    /// Looks for names in a jitdump, too, from now on.
    pub(super) fn dump(&mut self, dump: &Arc<JitDump>) {
        let map = self.map(&dump.maker);
        map.dumps.push((Arc::clone(dump), DumpState::Unread));
        map.has_new = true;
    }

    fn map(&mut self, maker: &Arc<JitProcess>) -> &mut JitMap {
        self.of.entry(maker.key()).or_insert_with(|| JitMap {
            maker: Arc::clone(maker),
            wanted: Vec::new(),
            has_new: false,
            named: FxHashMap::default(),
            read: None,
            dumps: Vec::new(),
            due: Instant::now(),
            is_refused: false,
            is_asked: false,
        })
    }

    /// The names that have become known, each once.
    pub(super) fn look(&mut self, when: MapReading) -> PerfMapNames {
        let mut found = PerfMapNames::default();
        let is_looked_for = |map: &JitMap| !map.wanted.is_empty() || !map.named.is_empty();
        for (&maker, map) in self.of.iter_mut().filter(|(_, map)| is_looked_for(map)) {
            found.asked.extend(map.look_for_java(when));
            let begun = Instant::now();
            if when == MapReading::IfDue && begun < map.due {
                continue;
            }
            let (pid, has_new) = (map.maker.pid, std::mem::take(&mut map.has_new));
            match map.look(has_new) {
                Ok(MapNames { new, changed }) => {
                    let module = format!("perf-{pid}.map");
                    found.names.extend(late(maker, &module, new));
                    found.changed.extend(late(maker, &module, changed));
                }
                Err(why) if why.is_absence() || map.is_refused => {}
                Err(why) => {
                    map.is_refused = true;
                    found.refused.push((format!("/tmp/perf-{pid}.map"), why));
                }
            }
            map.look_at_dumps(has_new, &mut found);
            map.due = Instant::now() + begun.elapsed() * SHARE;
        }
        found
    }
}

impl JitMap {
    /// Looks whether Java has written a map; gives the process when it has for the first time.
    fn look_for_java(&mut self, when: MapReading) -> Option<i32> {
        let java = self.maker.java.as_ref()?;
        let is_written = match when {
            MapReading::IfDue => java.is_written(),
            MapReading::Last => java.is_written_at_end(),
        };
        if is_written {
            self.due = Instant::now();
        }
        (is_written && !std::mem::replace(&mut self.is_asked, true)).then_some(self.maker.pid)
    }

    /// Reads the file unless it was read before and nothing is new in it or asked of it.
    fn look(&mut self, has_new: bool) -> Result<MapNames, Refused> {
        self.wanted.sort_unstable();
        let (maker, wanted) = (Arc::clone(&self.maker), self.wanted.clone());
        let mut named: Vec<u64> = self.named.keys().copied().collect();
        named.sort_unstable();
        let before = self.read;
        let read = move || {
            let file = maker.map()?;
            let version = version(&file)?;
            if Some(version) == before && !has_new {
                return Ok((version, MapNames::default()));
            }
            let changed = before.map_or(Ok(FxHashMap::default()), |before| added(&file, before, version, &named));
            let new = if wanted.is_empty() { Ok(FxHashMap::default()) } else { of_part(&file, 0, version.1, &wanted) };
            Ok((version, MapNames { new: new.map_err(Refused::System)?, changed: changed.map_err(Refused::System)? }))
        };
        let (version, mut names) = files::within(READING, Answerer::Process(self.maker.pid), read)??;
        self.read = Some(version);
        self.wanted.retain(|address| !names.new.contains_key(address));
        names.changed.retain(|address, code| self.named.get(address) != Some(code));
        let all = names.new.iter().chain(&names.changed);
        self.named.extend(all.map(|(&address, code)| (address, code.clone())));
        Ok(names)
    }

    /// Looks for what no map has in the jitdumps, unless one was read before and nothing is new in it or asked of it.
    fn look_at_dumps(&mut self, has_new: bool, found: &mut PerfMapNames) {
        self.wanted.sort_unstable();
        for (dump, state) in &mut self.dumps {
            let version = version(&dump.file);
            if *state == DumpState::Refused
                || !has_new && version.as_ref().is_ok_and(|version| *state == DumpState::ReadAs(*version))
            {
                continue;
            }
            let (read, wanted) = (Arc::clone(dump), self.wanted.clone());
            let maker = Answerer::Process(self.maker.pid);
            let names = files::within(READING, maker, move || read.names(&wanted)).and_then(|names| names);
            match version.and_then(|version| Ok((version, names?))) {
                Ok((version, names)) => {
                    *state = DumpState::ReadAs(version);
                    self.wanted.retain(|address| !names.contains_key(address));
                    let module = dump.path.rsplit('/').next().unwrap_or_default();
                    found.names.extend(late(self.maker.key(), module, names));
                }
                Err(why) => {
                    *state = DumpState::Refused;
                    found.refused.push((dump.path.clone(), why));
                }
            }
        }
    }
}

/// What a look at a perf map has found: names of addresses that had none, and of some that had others.
#[derive(Debug, Default)]
struct MapNames {
    new: FxHashMap<u64, MadeCode>,
    changed: FxHashMap<u64, MadeCode>,
}

/// The names of addresses in lines that were added to a perf map since it was read, and in some before them, the last
/// of which may not have been whole. Of another file nothing is known.
fn added(file: &File, before: MapVersion, now: MapVersion, named: &[u64]) -> io::Result<FxHashMap<u64, MadeCode>> {
    let has_grown = before.0 == now.0 && before.1 < now.1;
    match has_grown && !named.is_empty() {
        true => of_part(file, before.1.saturating_sub(MOST_LINE), now.1, named),
        false => Ok(FxHashMap::default()),
    }
}

/// The names of addresses in the whole lines of a perf map from a place in it on.
fn of_part(mut file: &File, from: u64, until: u64, wanted: &[u64]) -> io::Result<FxHashMap<u64, MadeCode>> {
    file.seek(SeekFrom::Start(from))?;
    let mut text = BufReader::with_capacity(1 << 18, file.take(until - from));
    if from > 0 {
        text.skip_until(b'\n')?;
    }
    names(text, wanted)
}

/// The names of addresses, which are in ascending order. A later line about the same address holds: code is
/// thrown away and its room used again.
fn names(mut map: impl BufRead, wanted: &[u64]) -> io::Result<FxHashMap<u64, MadeCode>> {
    let mut names = FxHashMap::default();
    let mut text = Vec::new();
    loop {
        text.clear();
        let length = (&mut map).take(MOST_LINE).read_until(b'\n', &mut text)? as u64;
        if length == 0 {
            return Ok(names);
        }
        if length == MOST_LINE && text.last() != Some(&b'\n') {
            map.skip_until(b'\n')?;
        }
        let Some((start, end, name)) = line(text.trim_ascii_end()) else { continue };
        let first = wanted.partition_point(|&address| address < start);
        for &address in wanted[first..].iter().take_while(|&&address| address < end) {
            names.insert(address, MadeCode::named(&String::from_utf8_lossy(name)));
        }
    }
}

fn line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (start, rest) = number(line)?;
    let (size, name) = number(rest)?;
    Some((start, start.checked_add(size)?, name))
}

/// A number in hexadecimal digits, and what follows the blank behind it.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let text = text.strip_prefix(b"0x").unwrap_or(text);
    let end = text.iter().position(|&byte| byte == b' ').filter(|end| (1..=16).contains(end))?;
    let digit = |value: u64, &byte: &u8| Some(value << 4 | u64::from(char::from(byte).to_digit(16)?));
    Some((text[..end].iter().try_fold(0, digit)?, &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn lines_of_perf_maps() {
        let text = "1000 20 LazyCompile:~f app.js:1\n0x2000 0x10 py::g:/a b.py\nbad\n3000 zz x\nffffffffffffffff 2 y\n";
        let long = format!("4000 10 {}\n5000 10 after", "x".repeat(3 * MOST_LINE as usize));
        let wanted = [0xfff, 0x1000, 0x101f, 0x1020, 0x2000, 0x3000, 0x5001];
        let names = names(format!("{text}{long}\n1010 10 again\n").as_bytes(), &wanted).unwrap();
        let name = |address: u64| names.get(&address).map(|made| made.name.as_str());
        assert_eq!((name(0x1000), name(0x101f)), (Some("f"), Some("again")));
        assert_eq!((name(0x2000), name(0x5001)), (Some("g"), Some("after")));
        assert_eq!(names[&0x2000].file.as_deref(), Some("/a b.py"));
        assert_eq!([0xfff, 0x1020, 0x3000].map(name), [None; 3]);
    }

    /// What is found about these addresses, read in any case.
    fn found(maps: &mut JitMaps) -> Vec<(u64, String)> {
        let look = maps.look(MapReading::Last);
        let mut names: Vec<_> = look.names.into_iter().map(|late| (late.address, late.code.name)).collect();
        names.sort();
        names
    }

    #[test]
    fn an_address_gets_its_name_once_the_map_has_it() {
        // No process has this number.
        let pid = i32::MAX - 7;
        let path = format!("/tmp/perf-{pid}.map");
        let maker = Arc::new(JitProcess::of(pid));
        let mut maps = JitMaps::default();
        [0x2000, 0x1000, 0x3000].iter().for_each(|&address| maps.want(&maker, address));
        assert_eq!(found(&mut maps), []);
        fs::write(&path, "1000 20 f\n").unwrap();
        assert_eq!(found(&mut maps), [(0x1000, "f".to_owned())]);
        fs::write(&path, "1000 20 f\n2000 20 g\n").unwrap();
        assert_eq!(found(&mut maps), [(0x2000, "g".to_owned())]);
        maps.want(&maker, 0x1008);
        assert_eq!(found(&mut maps), [(0x1008, "f".to_owned())]);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_line_that_is_added_renames_an_address() {
        let pid = i32::MAX - 11;
        let path = format!("/tmp/perf-{pid}.map");
        let maker = Arc::new(JitProcess::of(pid));
        let mut maps = JitMaps::default();
        maps.want(&maker, 0x1000);
        let mut text = "1000 20 f\n2000 20 g\n".to_owned();
        fs::write(&path, &text).unwrap();
        assert_eq!(found(&mut maps), [(0x1000, "f".to_owned())]);
        let mut changed = |maps: &mut JitMaps, more: &str| {
            text += more;
            fs::write(&path, &text).unwrap();
            let look = maps.look(MapReading::Last);
            assert!(look.names.is_empty());
            look.changed.into_iter().map(|late| (late.address, late.code.name)).collect::<Vec<_>>()
        };
        assert_eq!(changed(&mut maps, "3000 20 h\n"), []);
        assert_eq!(changed(&mut maps, "fe0 40 i\n"), [(0x1000, "i".to_owned())]);
        // The same name again, and then the first one.
        assert_eq!(changed(&mut maps, "1000 20 i\n"), []);
        assert_eq!(changed(&mut maps, "1000 20 f\n"), [(0x1000, "f".to_owned())]);
        // Of one that was written anew nothing is known.
        fs::write(&path, "1000 20 j\n").unwrap();
        assert!(maps.look(MapReading::Last).changed.is_empty());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_map_of_another_user_or_no_file_is_told_once_and_not_believed() {
        let pid = i32::MAX - 8;
        let path = format!("/tmp/perf-{pid}.map");
        let mut maker = JitProcess::of(pid);
        fs::write(&path, "1000 20 f\n").unwrap();
        maker.owners = vec![fs::metadata(&path).unwrap().uid() + 1];
        let mut maps = JitMaps::default();
        maps.want(&Arc::new(maker), 0x1000);
        let look = maps.look(MapReading::Last);
        assert!(look.names.is_empty());
        assert!(matches!(&look.refused[..], [(_, Refused::Owner(_))]));
        assert!(maps.look(MapReading::Last).refused.is_empty());
        fs::remove_file(&path).unwrap();
        nix::unistd::mkfifo(path.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut maps = JitMaps::default();
        maps.want(&Arc::new(JitProcess::of(pid)), 0x1000);
        assert!(matches!(&maps.look(MapReading::Last).refused[..], [(_, Refused::NotRegular)]));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn another_program_in_the_same_process_has_names_of_its_own() {
        let pid = i32::MAX - 10;
        let path = format!("/tmp/perf-{pid}.map");
        let [mut first, second] = [pid; 2].map(JitProcess::of);
        fs::write(&path, "1000 20 f\n").unwrap();
        // It ran as another user.
        first.owners = vec![fs::metadata(&path).unwrap().uid() + 1];
        let [first, second] = [first, second].map(Arc::new);
        let mut maps = JitMaps::default();
        [&first, &second].iter().for_each(|maker| maps.want(maker, 0x1008));
        let names = maps.look(MapReading::Last).names;
        fs::remove_file(&path).unwrap();
        assert_eq!(names.iter().map(|late| late.maker).collect::<Vec<_>>(), [second.key()]);
    }

    #[test]
    fn a_jitdump_tells_what_no_map_has_unless_it_is_another_users() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let (header, code) =
            (words(&[0x4a69_5444, 1, 40, 62, 0, 1, 0, 0, 0, 0]), words(&[0x5000, 0, 0x5000, 0, 16, 0, 1, 0]));
        let load = [words(&[0, 16 + 8 + 32 + 2, 0, 0, 1, 1]), code, b"f\0".to_vec()].concat();
        let mut path = std::env::temp_dir();
        path.push(format!("perfprop-{}-jit-1.dump", std::process::id()));
        fs::write(&path, [header, load].concat()).unwrap();
        for is_own in [true, false] {
            let mut maker = JitProcess::of(i32::MAX - 9);
            let owner = fs::metadata(&path).unwrap().uid();
            maker.owners = vec![if is_own { owner } else { owner + 1 }];
            let (maker, path) = (Arc::new(maker), path.clone());
            let dump =
                JitDump { maker: Arc::clone(&maker), file: File::open(&path).unwrap(), path: "jit-1.dump".into() };
            let mut maps = JitMaps::default();
            maps.dump(&Arc::new(dump));
            maps.want(&maker, 0x500f);
            let look = maps.look(MapReading::Last);
            let refused: Vec<_> = look.refused.iter().map(|(path, why)| format!("{path}: {why}")).collect();
            match is_own {
                true => {
                    let [late] = &look.names[..] else { panic!("{look:?}") };
                    assert_eq!((&*late.code.name, &*late.module, refused.len()), ("f", "jit-1.dump", 0));
                }
                false => assert_eq!(refused, [format!("jit-1.dump: it belongs to user {owner}")]),
            }
        }
        fs::remove_file(&path).unwrap();
        let called = ["/tmp/jit-7.dump", "jit-7.dump", "jit-.dump", "jit-x.dump", "/jit-7.dump/x"];
        assert_eq!(called.map(JitDump::is_called_so), [true, true, false, false, false]);
    }
}
