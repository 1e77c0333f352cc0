//! Finds the symbol of an address in the symbol tables of a program: of several at one place the best.
//!
//! A function may have many names. What is preferred, in this order: symbols with a size, those that begin nearest
//! before the address, global ones, names with fewer underscores in front, shorter names, and then the order of the
//! alphabet.

use std::fs::File;
use std::hash::Hasher;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use object::elf::{SHF_EXECINSTR, SHN_LORESERVE, SHN_UNDEF, STB_LOCAL, STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::read::{ReadRef, SectionIndex};
use rustc_hash::{FxHashMap, FxHasher};

use crate::stacks::live::mapped::ParsedSymbols;

/// The longest name of a symbol that is read, in bytes; those of C++ templates have some thousands.
const LONGEST_NAME: usize = 64 << 10;

/// What of a name is read at once.
const CHUNK: usize = 512;

/// The functions of a program by its symbol tables.
#[derive(Debug, Default)]
pub(super) struct ElfSymbols {
    /// Symbols with a size by their first address, and for each the largest end of all up to it.
    sized: Vec<(FunctionSymbol, u64)>,
    /// Symbols without a size, by their first address.
    endless: Vec<FunctionSymbol>,
    /// Where the names of each table are.
    names: Vec<SymbolNames>,
    /// The source files of functions that share their name with others, by first address: table, and offset of the
    /// file's name where one tells them apart.
    files: FxHashMap<u64, (u8, Option<u32>)>,
    has_cpp: bool,
}

/// A symbol of a function. Its end is exclusive; without a size it is its start.
#[derive(Clone, Copy, Debug)]
struct FunctionSymbol {
    start: u64,
    end: u64,
    /// Offset of the name among those of its table.
    name: u32,
    table: u8,
    is_local: bool,
}

/// Where the names of a table are.
#[derive(Debug)]
enum SymbolNames {
    /// In a part of a file.
    File {
        file: Arc<File>,
        offset: u64,
        length: u64,
    },
    Memory(Vec<u8>),
}

/// A symbol that covers an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundSymbol {
    pub(super) start: u64,
    /// Where the function ends, if the symbol says it: exclusive.
    pub(super) end: Option<u64>,
    pub(super) name: String,
}

/// What of a file's tables is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableKind {
    All,
    /// What other files may use: too few for a symbol without a size to reach up to the next one.
    Dynamic,
}

impl ElfSymbols {
    /// Adds the symbols of a file.
    pub(super) fn add_file(&mut self, file: &Arc<File>, elf: &ParsedSymbols<'_>) {
        self.add_parsed(elf, |offset, length, _| SymbolNames::File { file: Arc::clone(file), offset, length });
    }

    /// Adds the symbols of a file in memory.
    pub(super) fn add_memory(&mut self, bytes: &[u8]) {
        if let Ok(elf) = object::File::parse(bytes) {
            self.add_parsed(&elf, |_, _, names| SymbolNames::Memory(names.to_vec()));
        }
    }

    fn add_parsed<'data, R: ReadRef<'data>>(
        &mut self,
        elf: &object::File<'data, R>,
        names: impl Fn(u64, u64, &'data [u8]) -> SymbolNames,
    ) {
        match elf {
            object::File::Elf32(elf) => self.add_tables(elf, names),
            object::File::Elf64(elf) => self.add_tables(elf, names),
            _ => {}
        }
        self.sort();
    }

    fn add_tables<'data, Elf: FileHeader, R: ReadRef<'data>>(
        &mut self,
        elf: &object::read::elf::ElfFile<'data, Elf, R>,
        names: impl Fn(u64, u64, &'data [u8]) -> SymbolNames,
    ) {
        let tables = [(elf.elf_symbol_table(), TableKind::All), (elf.elf_dynamic_symbol_table(), TableKind::Dynamic)];
        for (table, kind) in tables {
            let (endian, sections) = (elf.endian(), elf.elf_section_table());
            let Ok(strings) = sections.section(table.string_section()) else { continue };
            let Some((offset, length)) = strings.file_range(endian) else { continue };
            let Ok(text) = strings.data(endian, elf.data()) else { continue };
            let Ok(number) = u8::try_from(self.names.len()) else { return };
            let is_code = |section: u16| {
                let found = sections.section(SectionIndex(usize::from(section)));
                found.is_ok_and(|found| found.sh_flags(endian).into() & u64::from(SHF_EXECINSTR) != 0)
            };
            let before = self.sized.len() + self.endless.len();
            let mut local = LocalFunctions::default();
            for symbol in table.iter() {
                if symbol.st_type() == STT_FILE {
                    local.file = Some(symbol.st_name(endian)).filter(|&name| is_name(text.get(name as usize..)));
                    continue;
                }
                let section = symbol.st_shndx(endian);
                let is_function = matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC)
                    || symbol.st_type() == STT_NOTYPE && section < SHN_LORESERVE && is_code(section);
                let name = symbol.st_name(endian);
                let spelled = text.get(name as usize..);
                if section == SHN_UNDEF || !is_function || !is_name(spelled) {
                    continue;
                }
                self.has_cpp = self.has_cpp || is_cpp(spelled);
                let (start, size) = (symbol.st_value(endian).into(), symbol.st_size(endian).into());
                // The lowest bit tells which instructions a 32-bit ARM has there.
                let is_local = symbol.st_bind() == STB_LOCAL;
                if is_local {
                    local.add(spelled, start);
                }
                let end = start.saturating_add(size);
                let symbol = FunctionSymbol { start, end, name, table: number, is_local };
                match (size, kind) {
                    (0, TableKind::All) => self.endless.push(symbol),
                    (0, TableKind::Dynamic) => self.sized.push((FunctionSymbol { end: start + 1, ..symbol }, 0)),
                    _ => self.sized.push((symbol, 0)),
                }
            }
            if self.sized.len() + self.endless.len() > before {
                self.names.push(names(offset, length, text));
                self.files.extend(local.of_shared_names().into_iter().map(|(start, file)| (start, (number, file))));
            }
        }
    }

    fn sort(&mut self) {
        self.sized.sort_unstable_by_key(|(symbol, _)| (symbol.start, symbol.end));
        self.endless.sort_unstable_by_key(|symbol| symbol.start);
        let mut reach = 0;
        for (symbol, reached) in &mut self.sized {
            reach = symbol.end.max(reach);
            *reached = reach;
        }
    }

    /// The best symbol that covers an address. One without a size covers what follows up to the next symbol, in
    /// whatever section that is.
    pub(super) fn find(&self, address: u64) -> Option<FoundSymbol> {
        let before = self.sized.partition_point(|(symbol, _)| symbol.start <= address);
        let reaching = self.sized[..before].iter().rev().take_while(|(_, reach)| *reach > address);
        let nearest = reaching.map(|(symbol, _)| symbol).find(|symbol| symbol.end > address);
        if let Some(nearest) = nearest {
            let covering = self.sized_at(nearest.start).filter(|symbol| symbol.end > address);
            return Some(FoundSymbol { start: nearest.start, end: Some(nearest.end), name: self.best(covering)? });
        }
        let last_sized = before.checked_sub(1).map(|last| self.sized[last].0.start);
        let last = self.endless.partition_point(|symbol| symbol.start <= address).checked_sub(1)?;
        let start = self.endless[last].start;
        if last_sized.is_some_and(|sized| sized >= start) {
            return None;
        }
        let same = self.endless[..=last].iter().rev().take_while(|symbol| symbol.start == start);
        Some(FoundSymbol { start, end: None, name: self.best(same)? })
    }

    /// What tells the function that begins at an address apart from others of the same name: its source file, as the
    /// compiler was told it, or else the address.
    pub(super) fn file_of(&self, start: u64) -> Option<String> {
        let &(table, file) = self.files.get(&start)?;
        let file = file.and_then(|file| self.names.get(usize::from(table))?.read(file));
        Some(file.map_or_else(|| format!("{start:#x}"), |file| String::from_utf8_lossy(&file).into_owned()))
    }

    /// Whether some function is mangled as C++ does it.
    pub(super) fn has_cpp(&self) -> bool {
        self.has_cpp
    }

    /// The best name of the function that begins at an address, if this is one of its names.
    pub(super) fn best_alias(&self, start: u64, name: &str) -> Option<String> {
        let has_name = |symbol: &&FunctionSymbol| self.name(symbol).is_some_and(|own| own == name);
        self.sized_at(start).any(|symbol| has_name(&symbol)).then(|| self.best(self.sized_at(start)))?
    }

    fn sized_at(&self, start: u64) -> impl Iterator<Item = &FunctionSymbol> {
        let first = self.sized.partition_point(|(symbol, _)| symbol.start < start);
        self.sized[first..].iter().map(|(symbol, _)| symbol).take_while(move |symbol| symbol.start == start)
    }

    fn best<'a>(&self, symbols: impl Iterator<Item = &'a FunctionSymbol>) -> Option<String> {
        let ranked = symbols.filter_map(|symbol| {
            let name = self.name(symbol)?;
            let underscores = name.len() - name.trim_start_matches('_').len();
            // Mangled names all begin with one.
            let underscores = if super::demangle::is_mangled(&name) { 0 } else { underscores };
            Some((symbol.is_local, underscores, name.len(), name))
        });
        ranked.min().map(|(.., name)| name)
    }

    /// The name, without the version that the linker writes behind it: `memcpy@@GLIBC_2.14`.
    fn name(&self, symbol: &FunctionSymbol) -> Option<String> {
        let bytes = self.names.get(usize::from(symbol.table))?.read(symbol.name)?;
        let name = String::from_utf8_lossy(&bytes);
        let plain = name.split('@').next().filter(|plain| !plain.is_empty()).unwrap_or(&name);
        Some(plain.to_owned())
    }
}

/// The functions of a table that other files don't see: several may have one name.
#[derive(Default)]
struct LocalFunctions {
    /// The source file of those that come next: the offset of its name.
    file: Option<u32>,
    /// Hash of the name, first address, and the file.
    all: Vec<(u64, u64, Option<u32>)>,
}

/// More functions of one name than so many are one that each file has from a header: they stay together.
const MOST_NAMESAKES: usize = 8;

impl LocalFunctions {
    fn add(&mut self, name: Option<&[u8]>, start: u64) {
        let name = name.and_then(|name| name.split(|&byte| byte == 0).next()).unwrap_or_default();
        let mut hasher = FxHasher::default();
        hasher.write(&name[..name.len().min(LONGEST_NAME)]);
        self.all.push((hasher.finish(), start, self.file));
    }

    /// The first addresses of those whose name another one has, too, with their files where those differ.
    fn of_shared_names(mut self) -> Vec<(u64, Option<u32>)> {
        self.all.sort_unstable();
        self.all.dedup_by_key(|(name, start, _)| (*name, *start));
        let namesakes = self.all.chunk_by(|one, other| one.0 == other.0);
        let namesakes = namesakes.filter(|namesakes| (2..=MOST_NAMESAKES).contains(&namesakes.len()));
        let told = namesakes.flat_map(|namesakes| {
            let is_alone = |file: &u32| namesakes.iter().filter(|other| other.2 == Some(*file)).count() == 1;
            namesakes.iter().map(move |&(_, start, file)| (start, file.filter(is_alone)))
        });
        told.collect()
    }
}

/// Whether the name at the beginning of a text is one of C++.
fn is_cpp(text: Option<&[u8]>) -> bool {
    // Most names of other languages end the search at once.
    let text = text.filter(|text| text.starts_with(b"_Z"));
    let name =
        text.map(|text| &text[..text.len().min(LONGEST_NAME)]).and_then(|text| text.split(|&byte| byte == 0).next());
    name.is_some_and(super::demangle::is_cpp)
}

/// Whether a name is one that people gave: no mark of what is code and what is data, and no label within a function.
fn is_name(text: Option<&[u8]>) -> bool {
    text.is_some_and(|text| !matches!(text, [] | [0, ..] | [b'$', ..] | [b'.', b'L', ..]))
}

impl SymbolNames {
    /// The name at an offset.
    fn read(&self, name: u32) -> Option<Vec<u8>> {
        match self {
            Self::Memory(text) => text.get(name as usize..)?.split(|&byte| byte == 0).next().map(<[u8]>::to_vec),
            Self::File { file, offset, length } => {
                let most = length.checked_sub(name.into())?.min(LONGEST_NAME as u64);
                read_name(file, offset.checked_add(name.into())?, most as usize).ok()
            }
        }
    }
}

/// The bytes from an offset of a file up to a zero, no more than so many.
fn read_name(file: &File, offset: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut name = Vec::new();
    let mut part = [0; CHUNK];
    while name.len() < most {
        let room = part.len().min(most - name.len());
        let count = file.read_at(&mut part[..room], offset + name.len() as u64)?;
        if let Some(end) = part[..count].iter().position(|&byte| byte == 0) {
            name.extend_from_slice(&part[..end]);
            break;
        }
        if count == 0 {
            break;
        }
        name.extend_from_slice(&part[..count]);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    /// Symbols by start, size, name and whether they are local.
    fn symbols(all: &[(u64, u64, &str, bool)]) -> ElfSymbols {
        let mut text = Vec::new();
        let mut symbols = ElfSymbols::default();
        for &(start, size, name, is_local) in all {
            let symbol = FunctionSymbol { start, end: start + size, name: text.len() as u32, table: 0, is_local };
            text.extend_from_slice(name.as_bytes());
            text.push(0);
            if size > 0 { symbols.sized.push((symbol, 0)) } else { symbols.endless.push(symbol) }
        }
        symbols.names.push(SymbolNames::Memory(text));
        symbols.sort();
        symbols
    }

    fn name(symbols: &ElfSymbols, address: u64) -> Option<String> {
        symbols.find(address).map(|found| found.name)
    }

    #[test]
    fn of_several_names_the_one_that_people_use_is_taken() {
        let write = [(16, 8, "__libc_write", false), (16, 8, "__GI_write", true), (16, 8, "write@@GLIBC_2.2.5", false)];
        let all = symbols(&write);
        assert_eq!(name(&all, 20).unwrap(), "write");
        assert_eq!(all.best_alias(16, "__GI_write").unwrap(), "write");
        assert_eq!((all.best_alias(16, "other"), all.best_alias(17, "write")), (None, None));
        let all = symbols(&[(0, 4, "b", false), (0, 4, "a", false), (0, 9, "long", true)]);
        assert_eq!((name(&all, 3).unwrap(), name(&all, 4).unwrap()), ("a".into(), "long".into()));
    }

    #[test]
    fn the_nearest_symbol_that_covers_an_address_is_found() {
        let all = symbols(&[(10, 90, "outer", false), (20, 10, "inner", false), (40, 0, "label", false)]);
        let names = [9, 10, 19, 20, 29, 30, 50, 99, 100].map(|address| name(&all, address));
        let [outer, inner] = ["outer", "inner"].map(|name| Some(name.to_owned()));
        let expected = [None, outer.clone(), outer.clone(), inner.clone(), inner, outer.clone(), outer.clone(), outer];
        assert_eq!(names[..8], expected);
        // Behind all that has an end, what has none may go on.
        assert_eq!(all.find(100), Some(FoundSymbol { start: 40, end: None, name: "label".into() }));
        // But not past another one.
        assert_eq!(symbols(&[(10, 0, "label", false), (20, 5, "f", false)]).find(26), None);
        assert_eq!(ElfSymbols::default().find(0), None);
    }

    #[test]
    fn functions_that_share_a_name_have_their_files() {
        let mut local = LocalFunctions::default();
        local.add(Some(b"helper\0"), 8);
        local.file = Some(1);
        for (name, start) in
            [("helper\0", 16), ("alone\0", 32), ("twice\0", 40), ("twice\0", 40), ("same\0", 56), ("same\0", 60)]
        {
            local.add(Some(name.as_bytes()), start);
        }
        local.file = Some(5);
        local.add(Some(b"helper\0rest"), 48);
        let mut shared = local.of_shared_names();
        shared.sort_unstable();
        // One function of two entries is one; of what stands in no file, or in the same, the address tells it.
        assert_eq!(shared, [(8, None), (16, Some(1)), (48, Some(5)), (56, None), (60, None)]);
        assert!(LocalFunctions::default().of_shared_names().is_empty());
        let names = SymbolNames::Memory(b"\0a.c\0b.c\0".to_vec());
        let files = [(48, (0, Some(5))), (56, (0, None))].into_iter().collect();
        let symbols = ElfSymbols { names: vec![names], files, ..ElfSymbols::default() };
        assert_eq!([48, 56].map(|start| symbols.file_of(start).unwrap()), ["b.c", "0x38"]);
        assert_eq!(symbols.file_of(16), None);
    }

    #[test]
    fn marks_and_labels_are_no_names() {
        let texts: [&[u8]; 5] = [b"", b"\0", b"$x\0", b".Lhere\0", b"f\0"];
        assert_eq!(texts.map(|text| is_name(Some(text))), [false, false, false, false, true]);
        assert!(!is_name(None));
    }

    proptest! {
        #[test]
        fn what_is_found_covers_the_address(
            ranges in prop::collection::vec((0_u64..50, 1_u64..20), 0..12), address in 0_u64..80
        ) {
            let all: Vec<_> = ranges.iter().map(|&(start, size)| (start, size, "f", false)).collect();
            let nearest = ranges.iter().filter(|(start, size)| (*start..start + size).contains(&address)).map(|range| range.0).max();
            prop_assert_eq!(symbols(&all).find(address).map(|found| found.start), nearest);
        }
    }
}
