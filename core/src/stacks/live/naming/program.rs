//! Names the places in a program or library: by its debug information, its symbols, and where both are silent.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolizer};
use object::read::{Object, ObjectSection, ObjectSegment, ReadCache};
use rustc_hash::FxHashMap;

use super::debug_files::{DebugFiles, unpacks_to_little};
use super::debug_units::is_split;
use super::demangle::{demangle, is_mangled};
use super::elf_symbols::{ElfSymbols, FoundSymbol};
use super::function_ranges::FunctionRanges;
use super::mini_debug::mini_debug_info;
use super::scopes::Scopes;
use super::stubs::{Callee, Stubs};
use crate::files;
use crate::stacks::live::mapped::{AtOnce, MappedProgram, ParsedSymbols};
use crate::stacks::live::unwinding::TRAMPOLINE;
use crate::stacks::{NamelessReason, StackFrame};

/// From this length on, in bytes, what was read of a file is forgotten now and then.
const LARGE: u64 = 100 << 20;

/// So many places of a large file are looked up before that. Of a program with 300 MB of debug information that keeps
/// memory below half of it, and to begin anew takes some 0.2 s (benches/names.rs).
const MOST_LOOKUPS: usize = 500;

/// A program or library.
pub(in crate::stacks::live) struct ElfProgram {
    path: String,
    file: Arc<File>,
    /// What its debug information is read from: the file itself, or another one.
    debug: Option<Arc<File>>,
    segments: Vec<ProgramSegment>,
    sections: Vec<Range<u64>>,
    symbols: ElfSymbols,
    stubs: Stubs,
    /// The functions that unwind information knows; read when a place has no symbol.
    functions: OnceCell<FunctionRanges>,
    /// Where it begins to run, if it is a program.
    entry: Option<u64>,
    symbolizer: Symbolizer,
    /// Whether debug information turned out to be broken: it isn't asked again.
    is_broken: Cell<bool>,
    /// How often the symbolizer may be asked before another one takes its place; `None` for any number of times.
    lookups: Option<usize>,
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
    pub(in crate::stacks::live) fn open(program: MappedProgram, debug_files: &mut DebugFiles) -> Option<Self> {
        let cache = ReadCache::new(File::open(files::path_of(&program.file)).ok()?);
        let elf = object::File::parse(AtOnce(&cache)).ok()?;
        let segments = elf.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            ProgramSegment { address: segment.address(), offset, size }
        });
        let segments = segments.collect();
        let sections = elf.sections().filter(|section| section.address() > 0);
        let sections = sections.map(|s| s.address()..s.address().saturating_add(s.size())).collect();
        let debug = debug_information(&elf, &program, debug_files).map(Arc::new);
        if is_split(&elf, &program.file) {
            let name = program.path.rsplit('/').next().unwrap_or_default();
            debug_files.notes.push(format!(
                "{name} was built with -gsplit-dwarf: inlined functions stand in its .dwo files, which aren't read; build it without that \
                 option to see them"
            ));
        }
        let symbols = symbols(&elf, &program.file, debug.as_ref());
        let length = debug.as_ref().and_then(|debug| debug.metadata().ok()).map_or(0, |about| about.len());
        let lookups = (length >= LARGE).then_some(MOST_LOOKUPS);
        Some(Self {
            segments,
            sections,
            symbols,
            stubs: Stubs::read(&elf),
            functions: OnceCell::new(),
            entry: entry(&elf),
            symbolizer: symbolizer(),
            is_broken: Cell::new(false),
            lookups,
            scopes: None,
            sources: FxHashMap::default(),
            path: program.path,
            file: program.file,
            debug,
        })
    }

    /// The frames at an offset of the file, the outermost first.
    pub(super) fn frames(&mut self, offset: u64) -> Option<Vec<StackFrame>> {
        let mut frames = self.frames_at(self.address(offset)?)?;
        for frame in frames.iter_mut().filter(|frame| frame.line.is_none()) {
            frame.offset = Some(offset);
        }
        Some(frames)
    }

    /// The frames at an address, as the file gives addresses, the outermost first.
    pub(in crate::stacks::live) fn frames_at(&mut self, address: u64) -> Option<Vec<StackFrame>> {
        if let Some(stub) = self.stub(address) {
            return Some(vec![self.frame(stub)]);
        }
        self.bound_memory();
        let Some(symbol) = self.described(address) else {
            return self.by_symbol(address).or_else(|| self.by_range(address)).map(|frame| vec![frame]);
        };
        let start = symbol.size.map(|_| symbol.addr);
        let mut frames = frames_of(&symbol, &self.path, false);
        drop(symbol);
        let start = start.unwrap_or_else(|| self.start(address));
        if let Some(best) = frames.first().and_then(|frame| self.symbols.best_alias(start, &frame.name)) {
            frames[0].name = best;
        }
        self.name(&mut frames, address);
        for (depth, frame) in frames.iter_mut().enumerate() {
            let file = self.sources.entry((start, depth, frame.name.clone())).or_insert_with(|| frame.file.clone());
            frame.file.clone_from(file);
        }
        Some(frames)
    }

    /// Forgets what was read of a large file, now and then: the symbolizer keeps every unit that it has met.
    fn bound_memory(&mut self) {
        if let Some(left) = &mut self.lookups {
            *left = left.saturating_sub(1);
            if *left == 0 {
                *left = MOST_LOOKUPS;
                self.symbolizer = symbolizer();
                if let Some(Some(scopes)) = &mut self.scopes {
                    scopes.forget();
                }
            }
        }
    }

    fn frame(&self, name: String) -> StackFrame {
        StackFrame { name, module: self.path.clone(), ..StackFrame::default() }
    }

    /// Writes names as people do, and with what they stand in.
    fn name(&mut self, frames: &mut [StackFrame], address: u64) {
        let mut scoped = Vec::new();
        // All units are looked at for that: not for programs without C++.
        if self.symbols.has_cpp() && frames.iter().any(|frame| !is_mangled(&frame.name)) {
            let debug = self.debug.as_ref();
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

    fn functions(&self) -> &FunctionRanges {
        self.functions.get_or_init(|| {
            let read = || {
                let cache = ReadCache::new(File::open(files::path_of(&self.file)).ok()?);
                Some(FunctionRanges::read(&object::File::parse(AtOnce(&cache)).ok()?))
            };
            read().unwrap_or_default()
        })
    }

    /// The function at an address as debug information describes it, with lines.
    fn described(&self, address: u64) -> Option<Sym<'_>> {
        // Who reads debug information looks at the byte behind, too.
        address.checked_add(1)?;
        let elf = Elf { debug_syms: true, ..Elf::new(files::path_of(self.debug.as_ref()?)) };
        if self.is_broken.get() {
            return None;
        }
        let ask = || self.symbolizer.symbolize_single(&Source::Elf(elf), Input::VirtOffset(address));
        let answer = files::unless_it_panics(ask);
        self.is_broken.set(answer.is_none());
        let symbol = answer?.ok()?.into_sym()?;
        // A function of several parts has neither address nor size; a symbol without a size has its address.
        let is_function = symbol.size.map_or(symbol.addr == 0, |size| size > 0);
        // Without a place in the source the symbol table has said it.
        (symbol.code_info.is_some() && is_function).then_some(symbol)
    }

    /// Where the part of a function begins that an address is in; 0 where nothing tells it.
    fn start(&self, address: u64) -> u64 {
        let by_range = || self.functions().find(address).map(|function| function.start);
        self.symbols.find(address).map(|symbol| symbol.start).or_else(by_range).unwrap_or(0)
    }

    /// The function by the symbol at an address.
    fn by_symbol(&self, address: u64) -> Option<StackFrame> {
        let symbol = self.symbol(address)?;
        let frame = self.frame(demangle(&symbol.name).into_owned());
        Some(StackFrame { file: self.symbols.file_of(symbol.start), ..frame })
    }

    /// The function by its beginning, which unwind information tells.
    fn by_range(&self, address: u64) -> Option<StackFrame> {
        let function = self.functions().find(address)?;
        if self.entry.is_some_and(|entry| function.contains(&entry)) {
            return Some(self.frame("_start".into()));
        }
        if self.functions().is_trampoline(address) {
            return Some(self.frame(TRAMPOLINE.into()));
        }
        let file = self.path.strip_suffix(" (deleted)").unwrap_or(&self.path);
        let short = file.rsplit('/').next().unwrap_or(file);
        let name = format!("{short}+{:#x}", function.start);
        Some(StackFrame { nameless: Some(NamelessReason::Stripped), ..self.frame(name) })
    }

    /// The addresses of the function at an offset of the file; `None` where nothing tells them.
    #[cfg(feature = "disassembly")]
    pub(super) fn bounds(&self, offset: u64) -> Option<Range<u64>> {
        let address = self.address(offset)?;
        let by_symbol = || self.symbol(address).and_then(|symbol| Some(symbol.start..symbol.end?));
        // A symbol of hand-written code may cover several functions.
        self.functions().find(address).cloned().or_else(by_symbol)
    }

    /// Whether an offset of the file lies at one of these addresses.
    #[cfg(feature = "disassembly")]
    pub(super) fn lies_within(&self, offset: u64, addresses: &Range<u64>) -> bool {
        self.address(offset).is_some_and(|address| addresses.contains(&address))
    }

    /// The offset in the file of an address.
    #[cfg(feature = "disassembly")]
    pub(super) fn offset(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address).filter(|&inside| inside < segment.size)?;
            segment.offset.checked_add(inside)
        })
    }

    /// What lies at an address that a jump goes to: `work`, `work+0x12`, `write@plt`.
    #[cfg(feature = "disassembly")]
    pub(super) fn target(&self, address: u64) -> Option<String> {
        self.stub(address).or_else(|| {
            let symbol = self.symbol(address)?;
            let name = demangle(&symbol.name).into_owned();
            Some(if symbol.start == address { name } else { format!("{name}+{:#x}", address - symbol.start) })
        })
    }

    /// The symbol that covers an address.
    fn symbol(&self, address: u64) -> Option<FoundSymbol> {
        self.symbols.find(address).filter(|symbol| symbol.end.is_some() || self.may_reach(symbol.start, address))
    }

    /// Whether a symbol without an end may cover an address: in its section, and before the next function.
    fn may_reach(&self, start: u64, address: u64) -> bool {
        let is_in_section = self.sections.iter().any(|section| section.contains(&start) && section.contains(&address));
        is_in_section && self.functions().find(address).is_none_or(|function| function.start <= start)
    }

    /// The address that the file gives to one of its bytes.
    fn address(&self, offset: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let inside = offset.checked_sub(segment.offset).filter(|&inside| inside < segment.size)?;
            segment.address.checked_add(inside)
        })
    }
}

/// Files that were sampled stay what they were then.
fn symbolizer() -> Symbolizer {
    Symbolizer::builder().enable_auto_reload(false).enable_demangling(false).build()
}

/// The file with the debug information of a program, which may be itself.
fn debug_information(elf: &ParsedSymbols<'_>, program: &MappedProgram, debug_files: &mut DebugFiles) -> Option<File> {
    let has_own = [".debug_info", ".zdebug_info"].iter().any(|name| elf.section_by_name(name).is_some());
    if !has_own {
        return debug_files.find(elf, program);
    }
    // Who reads a file with a link follows that, to wherever it leads.
    let has_link = elf.gnu_debuglink().ok().flatten().is_some();
    if has_link || !unpacks_to_little(elf) {
        return None;
    }
    File::open(files::path_of(&program.file)).ok()
}

/// The symbols of a program, those that were taken off it, and those that it has packed.
fn symbols(elf: &ParsedSymbols<'_>, file: &Arc<File>, debug: Option<&Arc<File>>) -> ElfSymbols {
    let mut symbols = ElfSymbols::default();
    symbols.add_file(file, elf);
    let is_stripped = elf.section_by_name(".symtab").is_none();
    if let Some(debug) = debug.filter(|_| is_stripped)
        && let Ok(opened) = File::open(files::path_of(debug))
    {
        let cache = ReadCache::new(opened);
        if let Ok(of_debug) = object::File::parse(AtOnce(&cache)) {
            symbols.add_file(debug, &of_debug);
        }
    }
    if let Some(packed) = mini_debug_info(elf).filter(|_| is_stripped) {
        symbols.add_memory(&packed);
    }
    symbols
}

/// Where a program begins to run. That of a library, which has a name for others to find it by, is no program's.
fn entry(elf: &ParsedSymbols<'_>) -> Option<u64> {
    let dynamic = elf.section_by_name(".dynamic").and_then(|section| section.data().ok()).unwrap_or_default();
    // Pairs of a tag and a value.
    let tags = dynamic.as_chunks::<16>().0.iter().filter_map(|pair| pair.first_chunk::<8>());
    let is_library = tags.map(|tag| i64::from_ne_bytes(*tag)).any(|tag| tag == object::elf::DT_SONAME);
    Some(elf.entry()).filter(|&entry| entry > 0 && !is_library)
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
        offset: None,
        nameless: None,
    };
    let outermost = frame(&symbol.name, symbol.code_info.as_deref(), false);
    let inlined = symbol.inlined.iter().map(|inlined| frame(&inlined.name, inlined.code_info.as_ref(), true));
    std::iter::once(outermost).chain(inlined).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    /// A program of these bytes.
    fn program(bytes: &[u8]) -> Option<ElfProgram> {
        let file = nix::sys::memfd::memfd_create("program", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
        let mut file = File::from(file);
        std::io::Write::write_all(&mut file, bytes).unwrap();
        let program = MappedProgram { file: Arc::new(file), path: "/bin/p".into(), root: None };
        ElfProgram::open(program, &mut DebugFiles::default())
    }

    /// `outer` of `tests/elf/lines.so` lies from 0x1ef to 0x224.
    fn lines() -> Vec<u8> {
        std::fs::read("../tests/elf/lines.so").unwrap()
    }

    #[test]
    fn functions_have_lines_and_what_is_inlined() {
        let mut program = program(&lines()).unwrap();
        let mut at = |address| {
            let frames = program.frames_at(address)?;
            let place = |frame: StackFrame| (frame.name, frame.file.unwrap_or_default(), frame.line.unwrap_or(0));
            Some(frames.into_iter().map(place).collect::<Vec<_>>())
        };
        let frame = |name: &str, line| (name.to_owned(), "/src/lines.c".to_owned(), line);
        // As objdump -dl has it.
        assert_eq!(at(0x20d).unwrap(), [frame("outer", 9)]);
        assert_eq!(at(0x205).unwrap(), [frame("outer", 9), frame("twice", 3)]);
        assert_eq!(at(0x1000), None);
    }

    #[test]
    fn functions_of_a_hot_and_a_cold_part_have_lines_and_what_is_inlined() {
        let mut program = program(&std::fs::read("../tests/elf/parts.so").unwrap()).unwrap();
        let mut at = |address| {
            let frames = program.frames_at(address).unwrap();
            frames.into_iter().map(|frame| (frame.name, frame.line.unwrap_or(0))).collect::<Vec<_>>()
        };
        let [outer, twice] = [("outer", 15), ("twice", 4)].map(|(name, line)| (name.to_owned(), line));
        // As objdump -dl has it: the hot part, what is inlined there, and the cold part.
        assert_eq!(at(0x29b), std::slice::from_ref(&outer));
        assert_eq!(at(0x293), [outer, twice]);
        assert_eq!(at(0x259), [("outer".to_owned(), 9)]);
        let starts = [0x259, 0x29b].map(|address| program.start(address));
        assert_eq!((starts, program.start(0x1000)), ([0x250, 0x270], 0));
    }

    #[test]
    fn programs_whose_functions_stand_in_other_files_are_told_so() {
        let mut bytes = std::fs::read("../tests/elf/parts.so").unwrap();
        let sections = object::File::parse(&*bytes).unwrap();
        let (begin, _) = sections.section_by_name(".debug_info").unwrap().file_range().unwrap();
        let told = |bytes: &[u8]| {
            let mut debug_files = DebugFiles::default();
            let file = nix::sys::memfd::memfd_create("program", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
            let mut file = File::from(file);
            std::io::Write::write_all(&mut file, bytes).unwrap();
            let program = MappedProgram { file: Arc::new(file), path: "/bin/p".into(), root: None };
            ElfProgram::open(program, &mut debug_files).unwrap();
            debug_files.notes
        };
        assert!(told(&bytes).is_empty());
        // Behind length and version stands the kind of a unit.
        bytes[begin as usize + 6] = 4;
        let [note] = &told(&bytes)[..] else { panic!("one note") };
        assert!(note.starts_with("p was built with -gsplit-dwarf"), "{note}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Whatever a file says, asking it ends, and brings nothing down.
        #[test]
        fn broken_programs_have_no_names_or_others(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
            end in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let mut bytes = lines();
            for (at, byte) in changes {
                *at.get_mut(&mut bytes) = byte;
            }
            if is_cut {
                bytes.truncate(end.index(bytes.len()));
            }
            if let Some(mut program) = program(&bytes) {
                for address in [0, 0x1ef, 0x205, 0x20d, 0x224, 0x1000, u64::MAX] {
                    let _ = program.frames_at(address);
                    let _ = program.frames(address);
                }
            }
        }
    }

    #[test]
    fn entries_that_are_their_own_origin_come_to_an_end() {
        let whole = lines();
        let sections = object::File::parse(&*whole).unwrap();
        let (begin, length) = sections.section_by_name(".debug_info").unwrap().file_range().unwrap();
        let (begin, end) = (begin as usize, (begin + length) as usize);
        // Of an entry the code of its form comes first, so that some of these are what refers to its origin.
        for (place, back) in (begin..end - 4).flat_map(|place| (1..=4).map(move |back| (place, back))) {
            let Some(entry) = (place - begin).checked_sub(back) else { continue };
            let mut bytes = whole.clone();
            bytes[place..place + 4].copy_from_slice(&(entry as u32).to_le_bytes());
            if let Some(mut program) = program(&bytes) {
                let _ = (program.frames_at(0x205), program.frames_at(0x20d));
            }
        }
    }

    #[test]
    fn this_program_has_names_with_lines() {
        let file = Arc::new(File::open("/proc/self/exe").unwrap());
        let program = MappedProgram { file, path: "/bin/me".into(), root: None };
        let mut program = ElfProgram::open(program, &mut DebugFiles::default()).unwrap();
        let here = this_program_has_names_with_lines as fn() as usize as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut lines = maps.lines().filter_map(crate::stacks::live::mapped::MapsLine::parse);
        let line = lines.find(|line| (line.start..line.end).contains(&here)).unwrap();
        let frames = program.frames(here - line.start + line.offset).unwrap();
        assert!(frames[0].name.ends_with("this_program_has_names_with_lines"), "{frames:?}");
        assert!(frames[0].file.as_ref().unwrap().ends_with("program.rs"), "{frames:?}");
        assert_eq!(frames[0].module, "/bin/me");
    }
}
