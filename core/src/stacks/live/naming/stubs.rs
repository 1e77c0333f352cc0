//! Finds the stubs through which a program calls functions of other files: the procedure linkage table (PLT).
//!
//! No symbol covers a stub. It jumps to an address that it reads from a slot of a table, and the relocation of
//! that slot names the function.

use std::ops::Range;

use object::read::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use rustc_hash::FxHashMap;

use crate::stacks::live::mapped::ParsedSymbols;

/// The length of a stub of x86-64.
const LENGTH: u64 = 16;

/// The longest stub of AArch64.
const LONGEST: usize = 24;

/// What a stub calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Callee {
    /// The function of this name.
    Named(String),
    /// The function that the one at this address chooses.
    ChosenBy(u64),
}

/// The stubs of a program, by their first addresses.
#[derive(Debug, Default)]
pub(super) struct Stubs(Vec<(Range<u64>, Callee)>);

impl Stubs {
    pub(super) fn read(elf: &ParsedSymbols<'_>) -> Self {
        let slots = slots(elf);
        let mut stubs = Vec::new();
        for name in [".plt", ".plt.sec", ".plt.got", ".iplt"] {
            let Some(section) = elf.section_by_name(name) else { continue };
            let (start, data) = (section.address(), section.data().unwrap_or_default());
            let found = match elf.architecture() {
                object::Architecture::Aarch64 => stubs_by_code(data, start),
                architecture => {
                    let length = if name == ".plt.got" && has_short_stubs(data) { LENGTH / 2 } else { LENGTH };
                    stubs_by_length(data, start, length, architecture)
                }
            };
            let known = |(addresses, slot)| Some((addresses, slots.get(&slot)?.clone()));
            stubs.extend(found.into_iter().filter_map(known));
        }
        stubs.sort_unstable_by_key(|(range, _)| range.start);
        Self(stubs)
    }

    /// What the stub at an address calls.
    pub(super) fn find(&self, address: u64) -> Option<&Callee> {
        let behind = self.0.partition_point(|(range, _)| range.start <= address);
        let (range, callee) = self.0.get(behind.checked_sub(1)?)?;
        range.contains(&address).then_some(callee)
    }
}

/// Stubs that all have the same length: their addresses, and the slot that each reads.
fn stubs_by_length(data: &[u8], start: u64, length: u64, architecture: object::Architecture) -> Vec<(Range<u64>, u64)> {
    let stub = |(number, code): (u64, &[u8])| {
        let address = start + number * length;
        Some((address..address + length, slot(code, address, architecture)?))
    };
    (0..).zip(data.chunks(length as usize)).filter_map(stub).collect()
}

/// Stubs of AArch64: those with protected branches are longer than others, and what the section says of their length is
/// always the same.
fn stubs_by_code(data: &[u8], start: u64) -> Vec<(Range<u64>, u64)> {
    /// `bti c`: code that may be branched to.
    const LANDING: u32 = 0xd503_245f;
    let words: Vec<_> = data.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let begins = words.iter().enumerate().filter(|(_, word)| is_adrp_x16(**word)).map(|(at, _)| {
        let before = at.checked_sub(1).filter(|&before| words[before] == LANDING);
        before.unwrap_or(at) * 4
    });
    let begins: Vec<usize> = begins.collect();
    let ends = begins.iter().skip(1).copied().chain([data.len()]);
    let stub = |(&begin, end): (&usize, usize)| {
        let (address, end) = (start + begin as u64, end.min(begin + LONGEST));
        let slot = slot(&data[begin..end], address, object::Architecture::Aarch64)?;
        Some((address..start + end as u64, slot))
    };
    begins.iter().zip(ends).filter_map(stub).collect()
}

/// `adrp x16, page`.
fn is_adrp_x16(word: u32) -> bool {
    word & 0x9f00_001f == 0x9000_0010
}

/// `jmp *slot; xchg %ax,%ax`, and the same again.
fn has_short_stubs(data: &[u8]) -> bool {
    data.starts_with(&[0xff, 0x25]) && data.get(6..8) == Some(&[0x66, 0x90])
}

/// Which function the loader writes into each slot.
fn slots(elf: &ParsedSymbols<'_>) -> FxHashMap<u64, Callee> {
    let symbols = elf.dynamic_symbol_table();
    let Some(relocations) = elf.dynamic_relocations() else { return FxHashMap::default() };
    let callee = |target, addend: i64| match target {
        RelocationTarget::Symbol(index) => {
            let symbol = symbols.as_ref()?.symbol_by_index(index).ok()?;
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some(Callee::Named(name.to_owned()))
        }
        RelocationTarget::Absolute => u64::try_from(addend).ok().map(Callee::ChosenBy),
        _ => None,
    };
    let slot = |(slot, relocation): (u64, object::read::Relocation)| {
        Some((slot, callee(relocation.target(), relocation.addend())?))
    };
    relocations.filter_map(slot).collect()
}

/// The slot that a stub reads.
fn slot(code: &[u8], address: u64, architecture: object::Architecture) -> Option<u64> {
    match architecture {
        object::Architecture::X86_64 => {
            // `jmp *offset(%rip)`, perhaps behind `endbr64` and with a prefix.
            let at = code.windows(2).position(|two| two == [0xff, 0x25])?;
            let offset = i32::from_le_bytes(*code.get(at + 2..)?.first_chunk()?);
            address.checked_add(at as u64 + 6)?.checked_add_signed(offset.into())
        }
        object::Architecture::Aarch64 => {
            // `adrp x16, page; ldr x17, [x16, #offset]`, perhaps behind `bti c`.
            let words: Vec<_> = code.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
            let at = words.iter().position(|word| is_adrp_x16(*word))?;
            let (page, load) = (words[at], *words.get(at + 1)?);
            let pages = ((page >> 5 & 0x7_ffff) << 2 | page >> 29 & 3) as i32;
            // 21 bits with a sign.
            let pages = i64::from(pages << 11 >> 11) << 12;
            let base = (address.checked_add(at as u64 * 4)? & !0xfff).checked_add_signed(pages)?;
            base.checked_add(u64::from(load >> 10 & 0xfff) * 8)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs::File;

    use object::read::ReadCache;

    use super::*;
    use crate::stacks::live::mapped::AtOnce;

    /// The stubs of a file of `tests/elf`, which its README.md says how to make: their addresses and what they call.
    fn stubs(name: &str) -> Vec<(Range<u64>, String)> {
        let cache = ReadCache::new(File::open(format!("../tests/elf/{name}")).unwrap());
        let Stubs(stubs) = Stubs::read(&object::File::parse(AtOnce(&cache)).unwrap());
        let named = |(addresses, callee)| match callee {
            Callee::Named(name) => (addresses, name),
            Callee::ChosenBy(chooser) => (addresses, format!("{chooser:#x}")),
        };
        stubs.into_iter().map(named).collect()
    }

    #[test]
    fn stubs_with_and_without_protected_branches() {
        let named = |first: u64, length: u64| {
            let second = first + length;
            vec![(first..second, "second".to_owned()), (second..second + length, "first".to_owned())]
        };
        // As objdump -d prints them.
        assert_eq!(stubs("plt-aarch64.so"), named(0x280, 16));
        assert_eq!(stubs("plt-aarch64-bti"), named(0x40_0380, 24));
        assert_eq!(stubs("plt-x86_64-ibt.so"), named(0x300, 16));
    }

    #[test]
    fn stubs_read_their_slots() {
        let x86 = |code: &[u8]| slot(code, 0x1030, object::Architecture::X86_64);
        // jmp *0x2fe2(%rip); push; jmp
        assert_eq!(x86(&[0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff]), Some(0x4018));
        // endbr64; bnd jmp *0x2f75(%rip)
        assert_eq!(x86(&[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0x75, 0x2f, 0, 0, 0x0f]), Some(0x3fb0));
        assert_eq!(x86(&[0x90; 16]), None);
        // adrp x16, 0x11000; ldr x17, [x16, #16]
        let words: [u32; 4] = [0x9000_0090, 0xf940_0a11, 0x9100_4210, 0xd61f_0220];
        let code: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(slot(&code, 0x1040, object::Architecture::Aarch64), Some(0x11010));
    }
}
