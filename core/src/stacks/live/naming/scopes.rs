//! Tells which function is meant where debug information gives its last name only: `operator()` of which lambda.
//!
//! Compilers write no mangled name for functions that no other file can call: lambdas, members of local classes,
//! what lies in a namespace without a name. Their full name is that of the entries of the debug information
//! (DWARF 5, chapter 3.3) around the one that declares them.

use std::fs::File;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::debug_units::{DebugUnits, ScopeEntry, UnitFunctions, is_function};
use super::demangle::demangle;

/// A name with more scopes than this is wrong, or led in a circle.
const DEEPEST: usize = 64;

/// The debug information of a program that has parts in C++.
pub(super) struct Scopes {
    units: DebugUnits,
    read: FxHashMap<usize, Option<UnitFunctions>>,
    /// The numbers of lambdas and of classes without a name within what they stand in.
    numbers: FxHashMap<u64, usize>,
}

impl Scopes {
    /// `None` where there is no debug information, or nothing of it is C++'s.
    pub(super) fn read(file: &Arc<File>) -> Option<Self> {
        let units = DebugUnits::read(file)?;
        Some(Self { units, read: FxHashMap::default(), numbers: FxHashMap::default() })
    }

    /// Forgets what was read of units.
    pub(super) fn forget(&mut self) {
        self.read.clear();
        self.numbers.clear();
    }

    /// The function at an address and what is inlined there, the outermost first: the full name of each that has no
    /// mangled one.
    pub(super) fn names(&mut self, address: u64) -> Vec<Option<String>> {
        let unit = self.units.with_code_at(address).and_then(|number| self.unit(number));
        let entries = unit.map(|unit| unit.at(address)).unwrap_or_default();
        entries.into_iter().map(|entry| self.full_name(entry)).collect()
    }

    fn unit(&mut self, number: usize) -> Option<&UnitFunctions> {
        self.read.entry(number).or_insert_with(|| self.units.functions(number)).as_ref()
    }

    fn entry(&mut self, place: u64) -> Option<ScopeEntry> {
        let number = self.units.with_entry(place)?;
        self.unit(number)?;
        self.units.entry(self.read.get(&number)?.as_ref()?, place)
    }

    /// The name with its scopes; `None` for a function with a mangled name, which tells them itself.
    fn full_name(&mut self, place: u64) -> Option<String> {
        let mut parts = Vec::new();
        let mut next = Some(place);
        while let Some(place) = next {
            if parts.len() > DEEPEST {
                return None;
            }
            let entry = self.declared(place)?;
            match &entry.linkage {
                Some(_) if parts.is_empty() => return None,
                Some(linkage) if is_function(entry.tag) => {
                    parts.push(demangle(&self.units.text(linkage)?).into_owned());
                    break;
                }
                _ if is_function(entry.tag) => parts.push(self.units.text(entry.name.as_ref()?)?),
                _ => parts.push(self.scope(&entry)),
            }
            next = entry.parent;
        }
        parts.reverse();
        Some(parts.join("::"))
    }

    /// The entry that declares what another one defines.
    fn declared(&mut self, place: u64) -> Option<ScopeEntry> {
        let mut entry = self.entry(place)?;
        for _ in 0..DEEPEST {
            match entry.of {
                Some(of) if entry.linkage.is_none() => entry = self.entry(of)?,
                _ => return Some(entry),
            }
        }
        None
    }

    /// The name of a namespace or a class.
    fn scope(&mut self, entry: &ScopeEntry) -> String {
        let name = entry.name.as_ref().and_then(|name| self.units.text(name));
        match name.as_deref() {
            None if entry.tag == gimli::DW_TAG_namespace => "(anonymous namespace)".into(),
            Some(name) if !name.starts_with("<lambda") => name.to_owned(),
            name => {
                let arguments = name.and_then(|name| name.strip_prefix("<lambda")?.strip_suffix('>'));
                format!("{{lambda{}#{}}}", arguments.unwrap_or_default(), self.number(entry))
            }
        }
    }

    /// Numbered within what they stand in, as mangled names do it.
    fn number(&mut self, entry: &ScopeEntry) -> usize {
        if let Some(&number) = self.numbers.get(&entry.place) {
            return number;
        }
        let unit = self.units.with_entry(entry.place).and_then(|number| self.unit(number));
        let beside = unit.map(|unit| unit.beside(entry)).unwrap_or_default();
        let like: Vec<_> = beside.into_iter().filter_map(|place| self.entry(place)).collect();
        let like: Vec<_> = like.iter().filter(|other| other.name == entry.name).collect();
        let mut declared: Vec<_> = like.iter().map(|other| other.at).collect();
        declared.sort_unstable();
        declared.dedup();
        let number = |at| declared.partition_point(|other| *other < at) + 1;
        self.numbers.extend(like.iter().map(|other| (other.place, number(other.at))));
        number(entry.at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    fn scopes(bytes: &[u8]) -> Option<Scopes> {
        let file = nix::sys::memfd::memfd_create("program", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
        let mut file = File::from(file);
        std::io::Write::write_all(&mut file, bytes).unwrap();
        Scopes::read(&Arc::new(file))
    }

    /// `all` of `tests/elf/scopes.so` lies from 0x228 to 0x29e.
    fn program() -> Vec<u8> {
        std::fs::read("../tests/elf/scopes.so").unwrap()
    }

    #[test]
    fn functions_are_named_by_what_they_stand_in() {
        let mut scopes = scopes(&program()).unwrap();
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(scopes.names(0x1f2), [name("(anonymous namespace)::Local::turn")]);
        assert_eq!(scopes.names(0x204), [name("all()::{lambda#1}::operator()")]);
        assert_eq!(scopes.names(0x216), [name("all()::{lambda#2}::operator()")]);
        // A function with a mangled name, and what is inlined there.
        let inlined = ["run<all()::<lambda(int)> >", "all()::{lambda#3}::operator()"].map(name);
        assert_eq!(scopes.names(0x27d), [&[None][..], &inlined].concat());
        scopes.forget();
        assert_eq!(scopes.names(0x250), [None, name("run<all()::<lambda(long int)> >")]);
        assert!(scopes.names(0x100).is_empty() && scopes.names(0x29e).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Whatever a file says, asking it ends, and brings nothing down.
        #[test]
        fn broken_programs_have_no_names_or_others(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
            end in any::<prop::sample::Index>(),
            is_cut in any::<bool>(),
        ) {
            let mut bytes = program();
            for (at, byte) in changes {
                *at.get_mut(&mut bytes) = byte;
            }
            if is_cut {
                bytes.truncate(end.index(bytes.len()));
            }
            if let Some(mut scopes) = scopes(&bytes) {
                for address in [0, 0x1f2, 0x204, 0x216, 0x228, 0x27d, u64::MAX] {
                    let _ = scopes.names(address);
                }
            }
        }
    }

    #[test]
    fn entries_that_are_their_own_origin_come_to_an_end() {
        let whole = program();
        let sections = object::File::parse(&*whole).unwrap();
        let section = object::read::Object::section_by_name(&sections, ".debug_info").unwrap();
        let (begin, length) = object::read::ObjectSection::file_range(&section).unwrap();
        let (begin, end) = (begin as usize, (begin + length) as usize);
        // Of an entry the code of its form comes first, so that some of these are what refers to its origin.
        for (place, back) in (begin..end - 4).flat_map(|place| (1..=4).map(move |back| (place, back))) {
            let Some(entry) = (place - begin).checked_sub(back) else { continue };
            let mut bytes = whole.clone();
            bytes[place..place + 4].copy_from_slice(&(entry as u32).to_le_bytes());
            if let Some(mut scopes) = scopes(&bytes) {
                let _ = (scopes.names(0x204), scopes.names(0x27d));
            }
        }
    }
}
