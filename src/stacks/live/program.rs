//! Names the places in a program or library: by its symbols, its debug information, and where both are silent.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolizer};
use gimli::{BaseAddresses, CieOrFde, EhFrame, NativeEndian, UnwindSection};
use object::read::{Object, ObjectSection, ObjectSegment, ReadCache};
use rustc_hash::FxHashMap;

use super::super::StackFrame;
use super::demangle::{demangle, is_mangled};
use super::modules::{AtOnce, MOST_PROGRAM};
use super::scopes::Scopes;
use super::stubs::{Callee, Stubs};
use crate::files::{self, ExpectedFile};

/// Debug information that unpacks to more bytes than this isn't read.
const MOST_UNPACKED: u64 = 4 << 30;

/// Where debug information of installed programs lies.
const DEBUG: &str = "/usr/lib/debug";

/// A program or library.
pub(super) struct ElfProgram {
    path: String,
    file: Arc<File>,
    /// Debug information, where that is a file of its own.
    debug: Option<File>,
    /// Whether its own debug information is read.
    own_debug: bool,
    segments: Vec<ProgramSegment>,
    sections: Vec<Range<u64>>,
    stubs: Stubs,
    /// The functions that unwind information knows, by their first addresses.
    functions: Vec<Range<u64>>,
    /// Where it begins to run, if it is a program.
    entry: Option<u64>,
    symbolizer: Symbolizer,
    /// Read when a name without its scopes is met first.
    scopes: Option<Option<Scopes>>,
    /// The source file of each function, so that it is the same at all its places.
    sources: FxHashMap<(u64, usize, String), Option<String>>,
}

/// A part of the file, and where it lies in memory.
#[derive(Clone, Copy, Debug)]
struct ProgramSegment {
    address: u64,
    offset: u64,
    size: u64,
}

impl ElfProgram {
    /// Reads what is needed of any of its places; `None` where it is no program.
    pub(super) fn open(file: Arc<File>, path: &str) -> Option<Self> {
        let cache = ReadCache::new(File::open(files::path_of(&file)).ok()?);
        let elf = object::File::parse(AtOnce(&cache)).ok()?;
        let segments = elf.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            ProgramSegment { address: segment.address(), offset, size }
        });
        let segments = segments.collect();
        let sections = elf.sections().filter(|section| section.address() > 0);
        let sections = sections.map(|s| s.address()..s.address().saturating_add(s.size())).collect();
        let (stubs, functions, entry) = (Stubs::read(&elf), unwind_ranges(&elf), entry(&elf));
        let link = elf.gnu_debuglink().ok().flatten();
        let has_own = elf.section_by_name(".debug_info").or_else(|| elf.section_by_name(".zdebug_info")).is_some();
        let debug = if has_own { None } else { debug_file(&elf, path, &file, link) };
        // Who reads a file with a link follows that, to wherever it leads.
        let own_debug = link.is_none() && unpacks_to_little(&elf);
        // Files that were sampled stay what they were then.
        let symbolizer = Symbolizer::builder().enable_auto_reload(false).enable_demangling(false).build();
        let (path, scopes, sources) = (path.to_owned(), None, FxHashMap::default());
        Some(Self {
            path,
            file,
            debug,
            own_debug,
            segments,
            sections,
            stubs,
            functions,
            entry,
            symbolizer,
            scopes,
            sources,
        })
    }

    /// The frames at an offset of the file, the outermost first.
    pub(super) fn frames(&mut self, offset: u64) -> Option<Vec<StackFrame>> {
        let address = self.address(offset)?;
        if let Some(stub) = self.stub(address) {
            return Some(vec![self.frame(stub)]);
        }
        let Some(symbol) = self.symbol(address) else {
            let function = self.function(address)?;
            let is_entry = self.entry.is_some_and(|entry| function.contains(&entry));
            let file = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
            let short = file.rsplit('/').next().unwrap_or(file);
            let name = if is_entry { "_start".into() } else { format!("{short}+{:#x}", function.start) };
            return Some(vec![self.frame(name)]);
        };
        let start = symbol.addr;
        let mut frames = frames_of(&symbol, &self.path, false);
        drop(symbol);
        self.name(&mut frames, address);
        for (depth, frame) in frames.iter_mut().enumerate() {
            let file = self.sources.entry((start, depth, frame.name.clone())).or_insert_with(|| frame.file.clone());
            frame.file.clone_from(file);
        }
        Some(frames)
    }

    fn frame(&self, name: String) -> StackFrame {
        StackFrame { name, module: self.path.clone(), ..StackFrame::default() }
    }

    /// Writes names as people do, and with what they stand in.
    fn name(&mut self, frames: &mut [StackFrame], address: u64) {
        let mut scoped = Vec::new();
        if frames.iter().any(|frame| !is_mangled(&frame.name)) {
            let debug = self.debug.as_ref().or(Some(&*self.file).filter(|_| self.own_debug));
            let scopes = self.scopes.get_or_insert_with(|| Scopes::read(debug?));
            scoped = scopes.as_mut().map(|scopes| scopes.names(address)).unwrap_or_default();
        }
        // Both readers must have seen the same functions.
        if scoped.len() != frames.len() {
            scoped = vec![None; frames.len()];
        }
        for (frame, scoped) in frames.iter_mut().zip(scoped) {
            let name = if is_mangled(&frame.name) { None } else { scoped };
            frame.name = name.unwrap_or_else(|| demangle(&frame.name).into_owned());
        }
    }

    /// The name of the stub that calls a function of another file.
    fn stub(&self, address: u64) -> Option<String> {
        let name = match self.stubs.find(address)? {
            Callee::Named(name) => demangle(name).into_owned(),
            // Chosen by a function of this file when it is loaded.
            Callee::ChosenBy(chooser) => demangle(&self.symbol(*chooser)?.name).into_owned(),
        };
        Some(format!("{name}@plt"))
    }

    /// The function that unwind information has at an address.
    fn function(&self, address: u64) -> Option<&Range<u64>> {
        let behind = self.functions.partition_point(|function| function.start <= address);
        self.functions.get(behind.checked_sub(1)?).filter(|function| function.contains(&address))
    }

    /// The symbol that covers an address.
    fn symbol(&self, address: u64) -> Option<Sym<'_>> {
        let debug = self.debug.as_ref().and_then(|debug| self.symbol_of(debug, true, address));
        let symbol = debug.or_else(|| self.symbol_of(&self.file, self.own_debug, address))?;
        let is_certain = symbol.size.is_some_and(|size| size > 0);
        (is_certain || self.may_reach(symbol.addr, address)).then_some(symbol)
    }

    /// Whether a symbol without an end may cover an address: in its section, and before the next function.
    fn may_reach(&self, start: u64, address: u64) -> bool {
        let is_in_section = self.sections.iter().any(|section| section.contains(&start) && section.contains(&address));
        is_in_section && self.function(address).is_none_or(|function| function.start <= start)
    }

    fn symbol_of(&self, file: &File, debug_syms: bool, address: u64) -> Option<Sym<'_>> {
        let elf = Elf { debug_syms, ..Elf::new(files::path_of(file)) };
        let answer = self.symbolizer.symbolize_single(&Source::Elf(elf), Input::VirtOffset(address));
        answer.ok()?.into_sym()
    }

    /// The address that the file gives to one of its bytes.
    fn address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let inside = offset.checked_sub(segment.offset).filter(|&inside| inside < segment.size)?;
            segment.address.checked_add(inside)
        })
    }
}

pub(super) type ParsedSymbols<'a> = object::File<'a, AtOnce<'a>>;

/// The functions that unwind information knows, in the order of their addresses.
fn unwind_ranges(elf: &ParsedSymbols<'_>) -> Vec<Range<u64>> {
    let Some(section) = elf.section_by_name(".eh_frame") else { return Vec::new() };
    let address = |name| elf.section_by_name(name).map_or(0, |section| section.address());
    let bases = BaseAddresses::default().set_eh_frame(section.address());
    let bases = bases.set_text(address(".text")).set_got(address(".got"));
    let frames = EhFrame::new(section.data().unwrap_or_default(), NativeEndian);
    let mut entries = frames.entries(&bases);
    let mut functions = Vec::new();
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(function) = entry else { continue };
        let Ok(function) = function.parse(EhFrame::cie_from_offset) else { continue };
        let start = function.initial_address();
        functions.push(start..start.saturating_add(function.len()));
    }
    functions.sort_unstable_by_key(|function| (function.start, function.end));
    functions
}

/// Where a program begins to run. That of a library, which has a name for others to find it by, is no program's.
fn entry(elf: &ParsedSymbols<'_>) -> Option<u64> {
    let dynamic = elf.section_by_name(".dynamic").and_then(|section| section.data().ok()).unwrap_or_default();
    // Pairs of a tag and a value.
    let tags = dynamic.as_chunks::<16>().0.iter().filter_map(|pair| pair.first_chunk::<8>());
    let is_library = tags.map(|tag| i64::from_ne_bytes(*tag)).any(|tag| tag == object::elf::DT_SONAME);
    Some(elf.entry()).filter(|&entry| entry > 0 && !is_library)
}

/// The file that holds the debug information of a program: found by its build id, or by the name that it gives.
/// It is believed if it belongs to root, to this user or to whom the program belongs, and is of the same build.
fn debug_file(elf: &ParsedSymbols<'_>, path: &str, file: &File, link: Option<(&[u8], u32)>) -> Option<File> {
    let owners = [0, nix::unistd::geteuid().as_raw(), file.metadata().ok()?.uid()];
    let expected = ExpectedFile { owners: Some(&owners), ..ExpectedFile::any(MOST_PROGRAM) };
    let build = elf.build_id().ok().flatten();
    let is_of_build = |found: &File| {
        let cache = ReadCache::new(File::open(files::path_of(found)).ok()?);
        let debug = object::File::parse(AtOnce(&cache)).ok()?;
        let is_same = match (build, debug.build_id().ok().flatten(), link) {
            (Some(build), Some(found), _) => build == found,
            (_, _, Some((_, sum))) => crc32(found)? == sum,
            _ => false,
        };
        Some(is_same && debug.gnu_debuglink().ok()?.is_none() && unpacks_to_little(&debug))
    };
    let candidates =
        build.and_then(by_build).into_iter().chain(link.map(|(name, _)| by_link(path, name)).into_iter().flatten());
    let mut found = candidates.filter_map(|candidate| files::open(&candidate, &expected).ok());
    found.find(|found| is_of_build(found) == Some(true))
}

/// `/usr/lib/debug/.build-id/12/34567890.debug`.
fn by_build(build: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(PathBuf::from(format!("{DEBUG}/.build-id/{first:02x}/{rest}.debug")))
}

/// Beside the program, and where those of installed ones lie. A name is never a path.
fn by_link(path: &str, name: &[u8]) -> Vec<PathBuf> {
    let (Some(folder), Ok(name)) = (Path::new(path).parent(), std::str::from_utf8(name)) else { return Vec::new() };
    if name.contains('/') || matches!(name, "" | "." | "..") {
        return Vec::new();
    }
    let installed = format!("{DEBUG}{}", folder.display());
    vec![folder.join(name), folder.join(".debug").join(name), Path::new(&installed).join(name)]
}

/// The sum of a file that debug links have: the CRC of ISO 3309, as of zlib.
fn crc32(file: &File) -> Option<u32> {
    let mut sum = u32::MAX;
    let mut bytes = vec![0; 1 << 16];
    let mut file = File::open(files::path_of(file)).ok()?;
    loop {
        let length = file.read(&mut bytes).ok()?;
        if length == 0 {
            return Some(!sum);
        }
        sum = bytes[..length].iter().fold(sum, |sum, &byte| CRC[usize::from(sum as u8 ^ byte)] ^ sum >> 8);
    }
}

const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xedb8_8320 ^ sum >> 1 } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

/// Whether the debug information takes no more memory than is there, by what its packed sections say of themselves.
fn unpacks_to_little(elf: &ParsedSymbols<'_>) -> bool {
    let sizes = elf.sections().filter_map(|section| section.compressed_file_range().ok());
    let packed = sizes.filter(|range| range.format != object::CompressionFormat::None);
    packed.fold(0_u64, |sum, range| sum.saturating_add(range.uncompressed_size)) <= MOST_UNPACKED
}

/// A function with what is inlined into it: blazesym gives each its name beside the place in the source
/// that the next inner one was called at.
pub(super) fn frames_of(symbol: &Sym<'_>, module: &str, kernel: bool) -> Vec<StackFrame> {
    let frame = |name: &str, code: Option<&CodeInfo<'_>>, inlined| StackFrame {
        name: name.to_owned(),
        module: module.to_owned(),
        file: code.map(|code| code.to_path().to_string_lossy().into_owned()),
        line: code.and_then(|code| code.line),
        inlined,
        kernel,
    };
    let outermost = frame(&symbol.name, symbol.code_info.as_deref(), false);
    let inlined = symbol.inlined.iter().map(|inlined| frame(&inlined.name, inlined.code_info.as_ref(), true));
    std::iter::once(outermost).chain(inlined).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn sums_of_debug_links() {
        let path = std::env::temp_dir().join(format!("perfprop-crc-{}", std::process::id()));
        std::fs::write(&path, "123456789").unwrap();
        // The check value of this CRC.
        assert_eq!(crc32(&File::open(&path).unwrap()), Some(0xcbf4_3926));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn debug_information_is_looked_for_by_build_and_by_name() {
        assert_eq!(by_build(&[0x0a, 0xbc, 1]).unwrap(), Path::new("/usr/lib/debug/.build-id/0a/bc01.debug"));
        assert_eq!(by_build(&[1]), None);
        let beside = ["/a/p.debug", "/a/.debug/p.debug", "/usr/lib/debug/a/p.debug"].map(PathBuf::from);
        assert_eq!(by_link("/a/p", b"p.debug"), beside);
        assert!(["../x", "/etc/x", "", ".."].iter().all(|name| by_link("/a/p", name.as_bytes()).is_empty()));
    }

    #[test]
    fn this_program_has_names_with_lines() {
        let file = Arc::new(File::open("/proc/self/exe").unwrap());
        let mut program = ElfProgram::open(file, "/bin/me").unwrap();
        let here = this_program_has_names_with_lines as fn() as usize as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut lines = maps.lines().filter_map(super::super::maps::MapsLine::parse);
        let line = lines.find(|line| (line.start..line.end).contains(&here)).unwrap();
        let frames = program.frames(here - line.start + line.offset).unwrap();
        assert!(frames[0].name.ends_with("this_program_has_names_with_lines"), "{frames:?}");
        assert!(frames[0].file.as_ref().unwrap().ends_with("program.rs"), "{frames:?}");
        assert_eq!(frames[0].module, "/bin/me");
    }
}
