//! Tells which function is meant where debug information gives its last name only: `operator()` of which lambda.
//!
//! Compilers write no mangled name for functions that no other file can call: lambdas, members of local classes,
//! what lies in a namespace without a name. Their full name is that of the entries of the debug information
//! (DWARF 5, chapter 3.3) around the one that declares them.

use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

use gimli::{AttributeValue, DwTag, EndianArcSlice, NativeEndian, UnitOffset, UnitSectionOffset};
use object::read::{Object, ObjectSection, ReadCache};
use rustc_hash::FxHashMap;

use super::demangle::demangle;
use super::modules::AtOnce;
use crate::files;

/// Debug information with more bytes than this isn't read a second time: it would be all in memory.
const MOST_BYTES: u64 = 256 << 20;

/// A name with more scopes than this is wrong, or led in a circle.
const DEEPEST: usize = 64;

type Data = EndianArcSlice<NativeEndian>;
type Die = gimli::DebuggingInformationEntry<Data>;

/// The debug information of a program that has parts in C++.
pub(super) struct Scopes {
    dwarf: gimli::Dwarf<Data>,
    units: Vec<gimli::UnitHeader<Data>>,
    /// Which unit has code at some addresses, by the first address.
    ranges: Vec<(u64, u64, usize)>,
    read: FxHashMap<usize, Option<UnitFunctions>>,
}

/// The functions of a unit.
struct UnitFunctions {
    /// Functions and what was inlined into them, outer ones first: addresses, and the entry that declares them.
    places: Vec<(gimli::Range, usize)>,
    entries: FxHashMap<usize, ScopeEntry>,
}

/// What a name may be made of.
struct ScopeEntry {
    tag: DwTag,
    parent: Option<usize>,
    name: Option<String>,
    /// The mangled name.
    linkage: Option<String>,
    /// The entry that declares what this one defines, or that this one is an instance of.
    of: Option<usize>,
    /// Line and column of the declaration.
    at: (u64, u64),
}

impl Scopes {
    /// `None` where there is no debug information, or nothing of it is C++'s.
    pub(super) fn read(file: &File) -> Option<Self> {
        let cache = ReadCache::new(File::open(files::path_of(file)).ok()?);
        let elf = object::File::parse(AtOnce(&cache)).ok()?;
        let size: u64 = elf.sections().filter(|section| section.name().is_ok_and(is_debug)).map(|s| s.size()).sum();
        if size > MOST_BYTES {
            return None;
        }
        let load = |id: gimli::SectionId| -> Result<Data, gimli::Error> {
            let data = elf.section_by_name(id.name()).and_then(|section| section.data().ok()).unwrap_or_default();
            Ok(Data::new(Arc::from(data), NativeEndian))
        };
        let mut scopes = Self {
            dwarf: gimli::Dwarf::load(load).ok()?,
            units: Vec::new(),
            ranges: Vec::new(),
            read: FxHashMap::default(),
        };
        scopes.find_units();
        (!scopes.units.is_empty()).then_some(scopes)
    }

    fn find_units(&mut self) {
        let mut headers = self.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = self.dwarf.unit(header.clone()) else { continue };
            if !is_cpp(&unit) {
                continue;
            }
            let Ok(mut ranges) = self.dwarf.unit_ranges(&unit) else { continue };
            while let Ok(Some(range)) = ranges.next() {
                self.ranges.push((range.begin, range.end, self.units.len()));
            }
            self.units.push(header);
        }
        self.ranges.sort_unstable();
    }

    /// The function at an address and what is inlined there, the outermost first: the full name of each that has no
    /// mangled one.
    pub(super) fn names(&mut self, address: u64) -> Vec<Option<String>> {
        let behind = self.ranges.partition_point(|&(start, ..)| start <= address);
        let Some(&(_, end, number)) = behind.checked_sub(1).and_then(|last| self.ranges.get(last)) else {
            return Vec::new();
        };
        if address >= end {
            return Vec::new();
        }
        let (dwarf, units) = (&self.dwarf, &self.units);
        let unit = self.read.entry(number).or_insert_with(|| UnitFunctions::read(dwarf, units[number].clone()));
        let Some(unit) = unit else { return Vec::new() };
        let here = unit.places.iter().filter(|(range, _)| (range.begin..range.end).contains(&address));
        here.map(|&(_, entry)| unit.full_name(entry)).collect()
    }
}

fn is_debug(name: &str) -> bool {
    name.starts_with(".debug_")
}

fn is_cpp(unit: &gimli::Unit<Data>) -> bool {
    let mut entries = unit.entries();
    let language = match entries.next_entry() {
        Ok(true) => entries.current().and_then(|root| root.attr_value(gimli::DW_AT_language)),
        _ => None,
    };
    let cpp = [
        gimli::DW_LANG_C_plus_plus,
        gimli::DW_LANG_C_plus_plus_03,
        gimli::DW_LANG_C_plus_plus_11,
        gimli::DW_LANG_C_plus_plus_14,
        gimli::DW_LANG_C_plus_plus_17,
        gimli::DW_LANG_C_plus_plus_20,
    ];
    matches!(language, Some(AttributeValue::Language(language)) if cpp.contains(&language))
}

impl UnitFunctions {
    fn read(dwarf: &gimli::Dwarf<Data>, header: gimli::UnitHeader<Data>) -> Option<Self> {
        let unit = dwarf.unit(header).ok()?;
        let mut read = Self { places: Vec::new(), entries: FxHashMap::default() };
        // The entries around the next one.
        let mut around: Vec<(isize, usize)> = Vec::new();
        let mut cursor = unit.entries();
        while let Ok(true) = cursor.next_entry() {
            let Some(die) = cursor.current() else { continue };
            while around.last().is_some_and(|(depth, _)| *depth >= die.depth()) {
                around.pop();
            }
            let parent = around.last().map(|(_, entry)| *entry);
            let place = global(&unit, die.offset());
            match die.tag() {
                gimli::DW_TAG_inlined_subroutine => read.place(dwarf, &unit, die, place),
                gimli::DW_TAG_subprogram => read.place(dwarf, &unit, die, place),
                gimli::DW_TAG_namespace
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_structure_type
                | gimli::DW_TAG_union_type => {}
                _ => continue,
            }
            read.entries.insert(place, ScopeEntry::of(dwarf, &unit, die, parent));
            around.push((die.depth(), place));
        }
        Some(read)
    }

    fn place(&mut self, dwarf: &gimli::Dwarf<Data>, unit: &gimli::Unit<Data>, die: &Die, entry: usize) {
        let Ok(mut ranges) = dwarf.die_ranges(unit, die) else { return };
        while let Ok(Some(range)) = ranges.next() {
            self.places.push((range, entry));
        }
    }

    /// The name with its scopes; `None` for a function with a mangled name, which tells them itself.
    fn full_name(&self, entry: usize) -> Option<String> {
        let declared = self.declared(entry)?;
        let mut parts = Vec::new();
        let mut next = Some(declared);
        while let Some(entry) = next.and_then(|entry| self.entries.get(&entry)) {
            if parts.len() > DEEPEST {
                return None;
            }
            if entry.tag == gimli::DW_TAG_subprogram || entry.tag == gimli::DW_TAG_inlined_subroutine {
                let of = self.declared(next?)?;
                let function = self.entries.get(&of)?;
                if let Some(linkage) = &function.linkage {
                    if parts.is_empty() {
                        return None;
                    }
                    parts.push(demangle(linkage).into_owned());
                    break;
                }
                parts.push(function.name.clone()?);
                next = function.parent;
            } else {
                parts.push(self.scope(entry));
                next = entry.parent;
            }
        }
        parts.reverse();
        Some(parts.join("::"))
    }

    /// The entry that declares what another one defines.
    fn declared(&self, entry: usize) -> Option<usize> {
        let mut entry = entry;
        for _ in 0..DEEPEST {
            let known = self.entries.get(&entry)?;
            match known.of {
                Some(of) if known.linkage.is_none() => entry = of,
                _ => return Some(entry),
            }
        }
        None
    }

    /// The name of a namespace or a class.
    fn scope(&self, entry: &ScopeEntry) -> String {
        let name = entry.name.as_deref();
        match name {
            None if entry.tag == gimli::DW_TAG_namespace => "(anonymous namespace)".into(),
            Some(name) if !name.starts_with("<lambda") => name.to_owned(),
            _ => {
                // Numbered within what they stand in, as mangled names do it.
                let is_like = |other: &&ScopeEntry| {
                    (other.parent, other.tag, &other.name) == (entry.parent, entry.tag, &entry.name)
                };
                let places = self.entries.values().filter(is_like).map(|other| other.at);
                let before: BTreeSet<_> = places.filter(|at| *at < entry.at).collect();
                let arguments =
                    name.and_then(|name| name.strip_prefix("<lambda")).and_then(|name| name.strip_suffix('>'));
                format!("{{lambda{}#{}}}", arguments.unwrap_or_default(), before.len() + 1)
            }
        }
    }
}

impl ScopeEntry {
    fn of(dwarf: &gimli::Dwarf<Data>, unit: &gimli::Unit<Data>, die: &Die, parent: Option<usize>) -> Self {
        let text = |name| {
            let value = dwarf.attr_string(unit, die.attr_value(name)?).ok()?;
            Some(String::from_utf8_lossy(value.bytes()).into_owned())
        };
        let number = |name| die.attr_value(name).and_then(|value| value.udata_value()).unwrap_or(0);
        let of = die.attr_value(gimli::DW_AT_abstract_origin).or_else(|| die.attr_value(gimli::DW_AT_specification));
        let of = match of {
            Some(AttributeValue::UnitRef(offset)) => Some(global(unit, offset)),
            Some(AttributeValue::DebugInfoRef(offset)) => Some(offset.0),
            _ => None,
        };
        Self {
            tag: die.tag(),
            parent,
            name: text(gimli::DW_AT_name),
            linkage: text(gimli::DW_AT_linkage_name),
            of,
            at: (number(gimli::DW_AT_decl_line), number(gimli::DW_AT_decl_column)),
        }
    }
}

/// The place of an entry in the whole debug information.
fn global(unit: &gimli::Unit<Data>, offset: UnitOffset) -> usize {
    match unit.header.offset() {
        UnitSectionOffset(start) => start + offset.0,
    }
}
