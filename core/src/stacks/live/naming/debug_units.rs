//! Reads the entries of debug information by units, where only their functions and what these stand in are asked for.
//!
//! A unit may have a million entries, and a program thousands of units. Of a unit that is asked for, all entries are
//! passed once, and only where each of them lies is kept. Names stay in the file until somebody wants one.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use gimli::{
    AttributeValue, DebugStrOffset, DebugStrOffsetsBase, DwTag, EndianArcSlice, EntriesRaw, NativeEndian, UnitOffset,
};
use object::read::{Object, ObjectSection, ReadCache};

use crate::files;
use crate::stacks::live::mapped::{AtOnce, ParsedSymbols};

/// No more than this is read at once, in bytes: a unit, or the ranges of all functions.
const MOST_AT_ONCE: u64 = 512 << 20;

/// A part of a unit that is read for one entry, in bytes: its head, or an entry with its attributes.
const ENTRY: u64 = 4096;

/// A name that is longer than this isn't read, in bytes.
const LONGEST_NAME: u64 = 64 << 10;

/// More units, or ranges of addresses of one unit's functions, than this are wrong: many functions may name one list.
const MOST_RANGES: usize = 1 << 22;

type Data = EndianArcSlice<NativeEndian>;
type Die = gimli::DebuggingInformationEntry<Data>;
type DwarfUnit = gimli::Unit<Data>;

/// The units of a program's debug information.
pub(super) struct DebugUnits {
    file: Arc<File>,
    /// Where in the file the entries are.
    entries: Range<u64>,
    /// Where in the file most names are.
    texts: Range<u64>,
    /// What is read at once: all but entries and names.
    dwarf: gimli::Dwarf<Data>,
    /// Where each unit lies among the entries.
    units: Vec<Range<u64>>,
    /// The units of C++ that have code at some addresses, by the first address.
    code: Vec<(gimli::Range, usize)>,
}

/// The functions of a unit, and what they stand in.
pub(super) struct UnitFunctions {
    /// Without what lies behind its first entry.
    unit: DwarfUnit,
    start: u64,
    /// Functions, and what they may stand in, in the order of the unit.
    scopes: Vec<ScopePlace>,
    /// The functions by their first addresses.
    functions: Vec<(gimli::Range, u32)>,
    /// What is inlined, by the function that it is part of, outer calls first.
    inlined: Vec<InlinedPlace>,
}

/// An entry that functions may stand in.
struct ScopePlace {
    /// In the unit.
    offset: u32,
    tag: DwTag,
    /// The number of the entry around it.
    parent: Option<u32>,
}

struct InlinedPlace {
    function: u32,
    range: gimli::Range,
    scope: u32,
}

/// An entry that functions may stand in, with what its name is made of.
pub(super) struct ScopeEntry {
    pub(super) place: u64,
    pub(super) tag: DwTag,
    pub(super) parent: Option<u64>,
    pub(super) name: Option<DebugText>,
    /// The mangled name.
    pub(super) linkage: Option<DebugText>,
    /// The entry that declares what this one defines, or that this one is an instance of.
    pub(super) of: Option<u64>,
    /// Line and column of the declaration.
    pub(super) at: (u64, u64),
}

/// Where a text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DebugText {
    Here(Vec<u8>),
    /// An offset among the names of the file.
    Named(u64),
}

impl DebugUnits {
    /// `None` where there is no debug information of C++ that can be read so.
    pub(super) fn read(file: &Arc<File>) -> Option<Self> {
        let cache = ReadCache::new(File::open(files::path_of(file)).ok()?);
        let elf = object::File::parse(AtOnce(&cache)).ok()?;
        let load = |id: gimli::SectionId| -> Result<Data, gimli::Error> {
            use gimli::SectionId::{DebugAbbrev, DebugAddr, DebugRanges, DebugRngLists, DebugStrOffsets};
            let is_read = matches!(id, DebugAbbrev | DebugAddr | DebugRanges | DebugRngLists | DebugStrOffsets);
            let range = if is_read { section(&elf, id) } else { None };
            Ok(range.and_then(|range| bytes(file, &range)).unwrap_or_else(|| data(Arc::new([]))))
        };
        let mut units = Self {
            file: Arc::clone(file),
            entries: section(&elf, gimli::SectionId::DebugInfo)?,
            texts: section(&elf, gimli::SectionId::DebugStr).unwrap_or_default(),
            dwarf: gimli::Dwarf::load(load).ok()?,
            units: Vec::new(),
            code: Vec::new(),
        };
        units.find();
        (!units.code.is_empty()).then_some(units)
    }

    fn find(&mut self) {
        let mut start = 0;
        while let Some((unit, length)) = self.head(start).filter(|_| self.units.len() < MOST_RANGES) {
            let Some(end) = start.checked_add(length) else { break };
            if let Some((unit, root)) = unit.and_then(|header| self.unit(header))
                && is_cpp(&root)
                && let Ok(mut ranges) = self.dwarf.die_ranges(&unit, &root)
            {
                while let Some(range) = ranges.next().ok().flatten().filter(|_| self.code.len() < MOST_RANGES) {
                    self.code.push((range, self.units.len()));
                }
            }
            self.units.push(start..end);
            start = end;
        }
        self.code.sort_unstable_by_key(|(range, unit)| (range.begin, range.end, *unit));
    }

    /// The header of a unit with its first entry, and the length of all of it. The header is `None` where it isn't
    /// known how to read it.
    fn head(&self, start: u64) -> Option<(Option<gimli::UnitHeader<Data>>, u64)> {
        let begin = self.entries.start.checked_add(start).filter(|begin| *begin < self.entries.end)?;
        let mut head = vec![0; ENTRY.min(self.entries.end - begin) as usize];
        self.file.read_exact_at(&mut head, begin).ok()?;
        let word = u32::from_ne_bytes(*head.first_chunk()?);
        let (is_long, length) = match word {
            u32::MAX => (true, u64::from_ne_bytes(*head.get(4..)?.first_chunk()?).checked_add(12)?),
            _ => (false, u64::from(word) + 4),
        };
        head.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        // Whoever reads it is told that the unit ends with what was read of it.
        if is_long {
            let behind = head.len().checked_sub(12)? as u64;
            head.get_mut(4..12)?.copy_from_slice(&behind.to_ne_bytes());
        } else {
            let behind = head.len().checked_sub(4)? as u32;
            head.get_mut(..4)?.copy_from_slice(&behind.to_ne_bytes());
        }
        let header = gimli::DebugInfo::from(data(head.into())).units().next();
        Some((header.ok().flatten(), length))
    }

    /// A unit by its header, without its lines, and its first entry.
    fn unit(&self, header: gimli::UnitHeader<Data>) -> Option<(DwarfUnit, Die)> {
        let abbreviations = self.dwarf.abbreviations(&header).ok()?;
        let mut root = Die::null();
        header.entries_raw(&abbreviations, None).ok()?.read_entry(&mut root).ok()?;
        let mut unit = DwarfUnit {
            header,
            abbreviations,
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase(0),
            addr_base: gimli::DebugAddrBase(0),
            loclists_base: gimli::DebugLocListsBase(0),
            rnglists_base: gimli::DebugRngListsBase(0),
            line_program: None,
            dwo_id: None,
        };
        for attribute in root.attrs() {
            match attribute.value() {
                AttributeValue::DebugStrOffsetsBase(base) => unit.str_offsets_base = base,
                AttributeValue::DebugAddrBase(base) => unit.addr_base = base,
                AttributeValue::DebugRngListsBase(base) => unit.rnglists_base = base,
                _ => {}
            }
        }
        let low = root.attr_value(gimli::DW_AT_low_pc);
        unit.low_pc = low.and_then(|low| self.dwarf.attr_address(&unit, low).ok().flatten()).unwrap_or(0);
        Some((unit, root))
    }

    /// The number of the unit of C++ that has code at an address.
    pub(super) fn with_code_at(&self, address: u64) -> Option<usize> {
        let behind = self.code.partition_point(|(range, _)| range.begin <= address);
        let (range, unit) = self.code.get(behind.checked_sub(1)?)?;
        (address < range.end).then_some(*unit)
    }

    /// The number of the unit that an entry is in.
    pub(super) fn with_entry(&self, place: u64) -> Option<usize> {
        let behind = self.units.partition_point(|unit| unit.start <= place);
        behind.checked_sub(1).filter(|&unit| self.units[unit].contains(&place))
    }

    /// Finds the functions of a unit.
    pub(super) fn functions(&self, number: usize) -> Option<UnitFunctions> {
        let Range { start, end } = self.units.get(number)?.clone();
        let (unit, _) = self.unit(self.head(start)?.0?)?;
        let first = unit.header.root_offset();
        let begin = self.entries.start.checked_add(start + first.0 as u64)?;
        let all = bytes(&self.file, &(begin..self.entries.start.checked_add(end)?.min(self.entries.end)))?;
        let mut found = UnitFunctions { unit, start, scopes: Vec::new(), functions: Vec::new(), inlined: Vec::new() };
        found.find(&self.dwarf, all, first);
        Some(found)
    }

    /// Reads an entry that is one of a unit's scopes.
    pub(super) fn entry(&self, unit: &UnitFunctions, place: u64) -> Option<ScopeEntry> {
        let scope = &unit.scopes[unit.scope_at(place)?];
        let begin = self.entries.start.checked_add(place)?;
        let data = bytes(&self.file, &(begin..self.entries.end.min(begin.saturating_add(ENTRY))))?;
        let mut die = Die::null();
        let (encoding, offset) = (unit.unit.encoding(), UnitOffset(scope.offset as usize));
        EntriesRaw::new(data, encoding, &unit.unit.abbreviations, offset).read_entry(&mut die).ok()?;
        let text = |name| self.text_place(&unit.unit, die.attr_value(name)?);
        let number = |name| die.attr_value(name).and_then(|value| value.udata_value()).unwrap_or(0);
        let of = die.attr_value(gimli::DW_AT_abstract_origin).or_else(|| die.attr_value(gimli::DW_AT_specification));
        Some(ScopeEntry {
            place,
            tag: scope.tag,
            parent: scope.parent.map(|parent| unit.place(parent)),
            name: text(gimli::DW_AT_name),
            linkage: text(gimli::DW_AT_linkage_name),
            of: match of {
                Some(AttributeValue::UnitRef(offset)) => unit.start.checked_add(offset.0 as u64),
                Some(AttributeValue::DebugInfoRef(offset)) => Some(offset.0 as u64),
                _ => None,
            },
            at: (number(gimli::DW_AT_decl_line), number(gimli::DW_AT_decl_column)),
        })
    }

    fn text_place(&self, unit: &DwarfUnit, value: AttributeValue<Data>) -> Option<DebugText> {
        let DebugStrOffset(offset) = match value {
            AttributeValue::String(text) => return Some(DebugText::Here(text.bytes().to_vec())),
            AttributeValue::DebugStrRef(offset) => offset,
            AttributeValue::DebugStrOffsetsIndex(index) => self.dwarf.string_offset(unit, index).ok()?,
            _ => return None,
        };
        Some(DebugText::Named(offset as u64))
    }

    /// The text at a place.
    pub(super) fn text(&self, place: &DebugText) -> Option<String> {
        let offset = match place {
            DebugText::Here(text) => return Some(String::from_utf8_lossy(text).into_owned()),
            DebugText::Named(offset) => *offset,
        };
        let begin = self.texts.start.checked_add(offset).filter(|begin| *begin < self.texts.end)?;
        let (mut text, mut most) = (Vec::new(), 256);
        while most <= LONGEST_NAME {
            text.resize(most.min(self.texts.end - begin) as usize, 0);
            self.file.read_exact_at(&mut text, begin).ok()?;
            if let Some(end) = text.iter().position(|&byte| byte == 0) {
                return Some(String::from_utf8_lossy(&text[..end]).into_owned());
            }
            most *= 4;
        }
        None
    }
}

impl UnitFunctions {
    /// Passes all entries once.
    fn find(&mut self, dwarf: &gimli::Dwarf<Data>, all: Data, first: UnitOffset) {
        let abbreviations = Arc::clone(&self.unit.abbreviations);
        let mut entries = EntriesRaw::new(all, self.unit.encoding(), &abbreviations, first);
        // The entries around the next one: depth, number, and the function that its code is part of.
        let mut around: Vec<(isize, u32, Option<u32>)> = Vec::new();
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let Some(abbreviation) = abbreviation else { continue };
            while around.last().is_some_and(|(outer, ..)| *outer >= depth) {
                around.pop();
            }
            let (tag, attributes) = (abbreviation.tag(), abbreviation.attributes());
            let has_code =
                |at: &gimli::AttributeSpecification| matches!(at.name(), gimli::DW_AT_low_pc | gimli::DW_AT_ranges);
            let mut read = Vec::new();
            let passed = if is_function(tag) && attributes.iter().any(has_code) {
                entries.read_attributes(attributes, &mut read)
            } else {
                entries.skip_attributes(attributes)
            };
            if passed.is_err() {
                break;
            }
            let (Ok(place), Ok(scope)) = (u32::try_from(offset.0), u32::try_from(self.scopes.len())) else { break };
            if !is_scope(tag) {
                continue;
            }
            let outer = around.last().copied();
            let function = if tag == gimli::DW_TAG_subprogram { Some(scope) } else { outer.and_then(|(.., of)| of) };
            self.scopes.push(ScopePlace { offset: place, tag, parent: outer.map(|(_, number, _)| number) });
            around.push((depth, scope, function));
            if let Some(function) = function.filter(|_| !read.is_empty()) {
                self.add_code(dwarf, &Die::new(tag, false, read, offset), scope, function);
            }
        }
        self.functions.sort_unstable_by_key(|(range, scope)| (range.begin, range.end, *scope));
        // Those of one function stay in their order.
        self.inlined.sort_by_key(|place| place.function);
        self.scopes.shrink_to_fit();
    }

    fn add_code(&mut self, dwarf: &gimli::Dwarf<Data>, die: &Die, scope: u32, function: u32) {
        let Ok(mut ranges) = dwarf.die_ranges(&self.unit, die) else { return };
        while let Ok(Some(range)) = ranges.next() {
            if self.functions.len() + self.inlined.len() >= MOST_RANGES {
                return;
            }
            if scope == function {
                self.functions.push((range, scope));
            } else {
                self.inlined.push(InlinedPlace { function, range, scope });
            }
        }
    }

    /// The entries of the function at an address, and of what is inlined there, the outermost first.
    pub(super) fn at(&self, address: u64) -> Vec<u64> {
        let behind = self.functions.partition_point(|(range, _)| range.begin <= address);
        let Some((range, function)) = behind.checked_sub(1).map(|last| &self.functions[last]) else {
            return Vec::new();
        };
        if address >= range.end {
            return Vec::new();
        }
        let first = self.inlined.partition_point(|place| place.function < *function);
        let inlined = self.inlined[first..].iter().take_while(|place| place.function == *function);
        let here = inlined.filter(|place| (place.range.begin..place.range.end).contains(&address));
        [*function].into_iter().chain(here.map(|place| place.scope)).map(|scope| self.place(scope)).collect()
    }

    /// The entries with the same tag, and the same one around them, as one of them.
    pub(super) fn beside(&self, entry: &ScopeEntry) -> Vec<u64> {
        let parent = entry.parent.and_then(|parent| self.scope_at(parent));
        let first = parent.map_or(0, |parent| parent + 1);
        // What is in it stands right behind it.
        let is_within = |scope: &&ScopePlace| scope.parent.map(|number| number as usize) >= parent;
        let within = self.scopes[first..].iter().take_while(is_within);
        let is_beside =
            |scope: &&ScopePlace| scope.parent.map(|number| number as usize) == parent && scope.tag == entry.tag;
        within.filter(is_beside).map(|scope| self.start + u64::from(scope.offset)).collect()
    }

    fn place(&self, scope: u32) -> u64 {
        self.start + u64::from(self.scopes[scope as usize].offset)
    }

    fn scope_at(&self, place: u64) -> Option<usize> {
        let offset = u32::try_from(place.checked_sub(self.start)?).ok()?;
        self.scopes.binary_search_by_key(&offset, |scope| scope.offset).ok()
    }
}

/// Whether one of the first units is a skeleton (DWARF 5, chapter 3.1.2): with `-gsplit-dwarf` functions stand in other
/// files, and what is inlined into them, too.
pub(super) fn is_split(elf: &ParsedSymbols<'_>, file: &File) -> bool {
    /// Those of the C library come before those of the program.
    const LOOKED_AT: usize = 64;
    const SKELETON: u8 = 4;
    let mut rest = section(elf, gimli::SectionId::DebugInfo).unwrap_or_default();
    for _ in 0..LOOKED_AT {
        let mut head = [0; 7];
        if rest.start >= rest.end || file.read_exact_at(&mut head, rest.start).is_err() {
            break;
        }
        let [a, b, c, d, version @ .., kind] = head;
        if (u16::from_ne_bytes(version), kind) == (5, SKELETON) {
            return true;
        }
        // The longest units have another form, and no skeleton is so long.
        rest.start = rest.start.saturating_add(4 + u64::from(u32::from_ne_bytes([a, b, c, d])));
    }
    false
}

/// Where a section lies in the file; `None` where there is none, or it is packed.
fn section(elf: &ParsedSymbols<'_>, id: gimli::SectionId) -> Option<Range<u64>> {
    let range = elf.section_by_name(id.name())?.compressed_file_range().ok()?;
    let is_plain = range.format == object::CompressionFormat::None;
    Some(range.offset..range.offset.checked_add(range.uncompressed_size)?).filter(|_| is_plain)
}

/// A part of a file.
fn bytes(file: &File, range: &Range<u64>) -> Option<Data> {
    let length = range.end.checked_sub(range.start).filter(|&length| length <= MOST_AT_ONCE)?;
    if range.end > file.metadata().ok()?.len() {
        return None;
    }
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, usize::try_from(length).ok()?).collect();
    file.read_exact_at(Arc::get_mut(&mut bytes)?, range.start).ok()?;
    Some(data(bytes))
}

fn data(bytes: Arc<[u8]>) -> Data {
    Data::new(bytes, NativeEndian)
}

/// Whether names are made of such entries.
fn is_scope(tag: DwTag) -> bool {
    is_function(tag)
        || matches!(
            tag,
            gimli::DW_TAG_namespace
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_union_type
        )
}

/// Whether an entry is a function, or one that is inlined.
pub(super) fn is_function(tag: DwTag) -> bool {
    matches!(tag, gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine)
}

fn is_cpp(root: &Die) -> bool {
    let cpp = [
        gimli::DW_LANG_C_plus_plus,
        gimli::DW_LANG_C_plus_plus_03,
        gimli::DW_LANG_C_plus_plus_11,
        gimli::DW_LANG_C_plus_plus_14,
        gimli::DW_LANG_C_plus_plus_17,
        gimli::DW_LANG_C_plus_plus_20,
    ];
    let language = root.attr_value(gimli::DW_AT_language);
    matches!(language, Some(AttributeValue::Language(language)) if cpp.contains(&language))
}
