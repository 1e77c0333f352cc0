//! Finds the stubs through which a program calls functions of other files: the procedure linkage table (PLT).
//!
//! No symbol covers a stub. It jumps to an address that it reads from a slot of a table, and the relocation of
//! that slot names the function.

use std::ops::Range;

use object::read::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use rustc_hash::FxHashMap;

use super::program::ParsedSymbols;

/// The length of a stub where the section doesn't tell it: that of x86-64 and of AArch64.
const LENGTH: u64 = 16;

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
            let length = if name == ".plt.got" && has_short_stubs(data) { LENGTH / 2 } else { LENGTH };
            for (number, code) in (0..).zip(data.chunks(length as usize)) {
                let address = start + number * length;
                let callee = slot(code, address, elf.architecture()).and_then(|slot| slots.get(&slot));
                if let Some(callee) = callee {
                    stubs.push((address..address + length, callee.clone()));
                }
            }
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
            let at = words.iter().position(|word| word & 0x9f00_001f == 0x9000_0010)?;
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
    use super::*;

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
