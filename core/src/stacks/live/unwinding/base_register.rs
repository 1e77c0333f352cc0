//! Unwinds through code that finds its caller by `rbx`: what the dynamic linker runs to find a function at its first
//! call.
//!
//! That code aligns the stack, so nothing but the register tells how far away the caller is. What it held there is told
//! by the register of the sample and by where each function that was called from there keeps it.

use std::ops::Range;
use std::sync::Arc;

use gimli::{
    BaseAddresses, CallFrameInstruction, CfaRule, CieOrFde, EhFrame, EhFrameHdr, NativeEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, UnwindTableRow, X86_64,
};

use super::unwind_info::{ModuleSection, UnwindInfo};

/// No more unwind information than this is searched for such code, in bytes: the dynamic linker's has some 20 KiB, and
/// that of large programs takes long.
const MOST_SEARCHED: usize = 1 << 20;

/// The code of a process, with what is needed to follow the register through it.
#[derive(Clone, Debug, Default)]
pub(super) struct BaseRegisterCode {
    modules: Vec<MappedUnwindInfo>,
    /// Where callers are found by the register.
    found_by_it: Vec<Range<u64>>,
}

/// Unwind information, and where its code lies in a process.
#[derive(Clone, Debug)]
struct MappedUnwindInfo {
    addresses: Range<u64>,
    /// Where the first byte of the file lies.
    base: u64,
    info: Arc<UnwindInfo>,
}

/// A frame that was unwound: an address in its code, and where its part of the stack ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct UnwoundFrame {
    pub(super) address: u64,
    pub(super) end: u64,
}

/// What registers held in a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallerRegisters {
    pub(super) return_address: u64,
    pub(super) stack: u64,
    pub(super) frame: u64,
}

impl BaseRegisterCode {
    /// Adds a module of a process.
    pub(super) fn add(&mut self, addresses: Range<u64>, base: u64, info: &Arc<UnwindInfo>) {
        let in_memory = |address: u64| address.wrapping_sub(info.base).wrapping_add(base);
        let found = info.found_by_base_register.iter().map(|code| in_memory(code.start)..in_memory(code.end));
        self.found_by_it.extend(found);
        self.modules.push(MappedUnwindInfo { addresses, base, info: Arc::clone(info) });
    }

    /// Whether the caller of the code at an address is found by the register.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.found_by_it.iter().any(|code| code.contains(&address))
    }

    /// The caller of the code at an address, where the frame pointer is `frame`. `sampled` is what the register held in
    /// the innermost of the frames that were called from there.
    pub(super) fn caller(
        &self,
        address: u64,
        frame: u64,
        (sampled, called): (u64, impl Iterator<Item = UnwoundFrame>),
        mut read: impl FnMut(u64) -> Option<u64>,
    ) -> Option<CallerRegisters> {
        let mut register = sampled;
        for UnwoundFrame { address, end } in called {
            register = self.with_row(address, |row| kept(row, X86_64::RBX, register, end, &mut read))??;
        }
        self.with_row(address, |row| {
            let CfaRule::RegisterAndOffset { register: X86_64::RBX, offset } = *row.cfa() else { return None };
            let stack = register.checked_add_signed(offset)?;
            let return_address = kept(row, X86_64::RA, 0, stack, &mut read).filter(|&address| address > 0)?;
            Some(CallerRegisters { return_address, stack, frame: kept(row, X86_64::RBP, frame, stack, &mut read)? })
        })?
    }

    /// Whether unwind information tells anything of the code at an address.
    pub(super) fn has_row(&self, address: u64) -> bool {
        self.with_row(address, |_| ()).is_some()
    }

    fn with_row<T>(&self, address: u64, look: impl FnOnce(&UnwindTableRow<usize>) -> T) -> Option<T> {
        let module = self.modules.iter().find(|module| module.addresses.contains(&address))?;
        let info = &module.info;
        let (frames, table) = (info.eh_frame.as_ref()?, info.eh_frame_hdr.as_ref()?);
        let (bases, mut context) = (bases(info), UnwindContext::new());
        let frames = EhFrame::new(&frames.data, NativeEndian);
        let header = EhFrameHdr::new(&table.data, NativeEndian).parse(&bases, 8).ok()?;
        let address = address.wrapping_sub(module.base).wrapping_add(info.base);
        let get_cie = EhFrame::cie_from_offset;
        header.table()?.unwind_info_for_address(&frames, &bases, &mut context, address, get_cie).ok().map(look)
    }
}

/// What a register held in the caller of a frame whose part of the stack ends at `end`.
fn kept(
    row: &UnwindTableRow<usize>,
    register: Register,
    now: u64,
    end: u64,
    read: &mut impl FnMut(u64) -> Option<u64>,
) -> Option<u64> {
    match row.register(register) {
        None | Some(RegisterRule::SameValue) => Some(now),
        Some(RegisterRule::Offset(offset)) => read(end.checked_add_signed(offset)?),
        _ => None,
    }
}

/// The code of a module whose callers are found by the register, at the addresses that its file gives.
pub(super) fn search(info: &UnwindInfo) -> Vec<Range<u64>> {
    let section = info.eh_frame.as_ref().filter(|section| section.data.len() <= MOST_SEARCHED);
    let Some(section) = section.filter(|_| cfg!(target_arch = "x86_64")) else { return Vec::new() };
    let (frames, bases) = (EhFrame::new(&section.data, NativeEndian), bases(info));
    let (mut entries, mut context, mut found) = (frames.entries(&bases), UnwindContext::new(), Vec::new());
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(function) = entry else { continue };
        let Ok(function) = function.parse(EhFrame::cie_from_offset) else { continue };
        let mut instructions = function.instructions(&frames, &bases);
        let mut names_it = || loop {
            match instructions.next() {
                Ok(Some(CallFrameInstruction::DefCfaRegister { register: X86_64::RBX }))
                | Ok(Some(CallFrameInstruction::DefCfa { register: X86_64::RBX, .. })) => break true,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break false,
            }
        };
        if !names_it() {
            continue;
        }
        let Ok(mut rows) = function.rows(&frames, &bases, &mut context) else { continue };
        while let Ok(Some(row)) = rows.next_row() {
            if matches!(row.cfa(), CfaRule::RegisterAndOffset { register: X86_64::RBX, .. }) {
                found.push(row.start_address()..row.end_address());
            }
        }
    }
    found
}

fn bases(info: &UnwindInfo) -> BaseAddresses {
    let start = |range: &Option<Range<u64>>| range.as_ref().map_or(0, |range| range.start);
    let section = |section: &Option<ModuleSection>| section.as_ref().map_or(0, |s| s.addresses.start);
    BaseAddresses::default()
        .set_eh_frame(section(&info.eh_frame))
        .set_eh_frame_hdr(section(&info.eh_frame_hdr))
        .set_text(start(&info.text))
        .set_got(start(&info.got))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    const RESOLVER: u64 = 0x1000;
    const CALLED: u64 = 0x2000;
    const LEAF: u64 = 0x3000;
    /// Functions of 16 bytes; a leaf keeps the register where it is.
    const LENGTH: u64 = 16;
    /// Where the file lies in memory.
    const BASE: u64 = 0x10_0000;

    const DEF_CFA: u8 = 0x0c;
    const OFFSET: u8 = 0x80;
    const RBX: u8 = 3;
    const RSP: u8 = 7;
    const RA: u8 = 16;

    /// An entry of unwind information, behind its length.
    fn entry(words: &[&[u8]]) -> Vec<u8> {
        let mut body = words.concat();
        // Instructions that do nothing.
        body.resize((body.len() + 4).next_multiple_of(8) - 4, 0);
        [&(body.len() as u32).to_ne_bytes()[..], &body].concat()
    }

    /// A module with a resolver, whose caller's stack begins 32 bytes behind what `rbx` holds, a function that keeps
    /// `rbx` 16 bytes before the end of its part of the stack, and a leaf.
    fn info() -> UnwindInfo {
        // Version 1, no augmentation, factors 1 and -8, and where calls return to: 8 bytes before the end.
        let mut frames = entry(&[&0_u32.to_ne_bytes(), &[1, 0, 1, 0x78, RA], &[OFFSET | RA, 1]]);
        let functions: [(u64, &[u8]); 3] = [
            (RESOLVER, &[DEF_CFA, RBX, 32, OFFSET | RBX, 4]),
            (CALLED, &[DEF_CFA, RSP, 24, OFFSET | RBX, 2]),
            (LEAF, &[DEF_CFA, RSP, 8]),
        ];
        let mut table = vec![1, 0x04, 0x03, 0x04];
        table.extend_from_slice(&[&0_u64.to_ne_bytes()[..], &3_u32.to_ne_bytes()].concat());
        for (start, rules) in functions {
            table.extend_from_slice(&[start, frames.len() as u64].map(u64::to_ne_bytes).concat());
            let to_first = frames.len() as u32 + 4;
            let addresses = [start, LENGTH].map(u64::to_ne_bytes).concat();
            frames.extend_from_slice(&entry(&[&to_first.to_ne_bytes(), &addresses, rules]));
        }
        let section = |data: Vec<u8>| Some(ModuleSection { addresses: 0..data.len() as u64, data: data.into() });
        let mut info = UnwindInfo::default();
        (info.eh_frame, info.eh_frame_hdr) = (section(frames), section(table));
        info.found_by_base_register = search(&info);
        info
    }

    fn code() -> BaseRegisterCode {
        let mut code = BaseRegisterCode::default();
        code.add(BASE..BASE + 0x4000, BASE, &Arc::new(info()));
        code
    }

    /// The caller that is found with these words on the stack.
    fn caller(sampled: u64, called: &[(u64, u64)], stack: &[(u64, u64)]) -> Option<CallerRegisters> {
        let called = called.iter().map(|&(address, end)| UnwoundFrame { address: BASE + address, end });
        let word = |address| stack.iter().find(|(at, _)| *at == address).map(|(_, word)| *word);
        code().caller(BASE + RESOLVER + 4, 77, (sampled, called), word)
    }

    #[test]
    fn code_that_finds_its_caller_by_the_register_is_told_from_other() {
        assert_eq!(info().found_by_base_register, vec![RESOLVER..RESOLVER + LENGTH]);
        let code = code();
        assert!(code.contains(BASE + RESOLVER) && code.contains(BASE + RESOLVER + LENGTH - 1));
        assert!([0, RESOLVER, BASE + RESOLVER + LENGTH, BASE + CALLED].iter().all(|&address| !code.contains(address)));
        assert!(search(&UnwindInfo::default()).is_empty());
    }

    #[test]
    fn the_caller_is_found_by_what_the_register_was() {
        // The resolver runs: the register has it. 0x8000 + 32 is where the caller's part begins, and 8 before is where
        // it goes on.
        let expected = CallerRegisters { return_address: 0x5555, stack: 0x8020, frame: 77 };
        assert_eq!(caller(0x8000, &[], &[(0x8018, 0x5555)]), Some(expected));
        // A leaf below a function that keeps the register: 16 before the end of its part, at 0x7000.
        let called = [(LEAF, 0x6fe8), (CALLED, 0x7000)];
        assert_eq!(caller(1, &called, &[(0x6ff0, 0x8000), (0x8018, 0x5555)]), Some(expected));
        // A second resolver below it keeps the register as well: 32 before its end.
        let called = [(RESOLVER, 0x7000)];
        assert_eq!(caller(1, &called, &[(0x6fe0, 0x8000), (0x8018, 0x5555)]), Some(expected));
    }

    #[test]
    fn what_isnt_known_finds_no_caller() {
        // Not on the copy: the caller, and what the register was.
        assert_eq!(caller(0x8000, &[], &[]), None);
        assert_eq!(caller(1, &[(CALLED, 0x7000)], &[(0x8018, 0x5555)]), None);
        // Nobody knows what code at 0x3800 does with the register.
        assert_eq!(caller(0x8000, &[(0x3800, 0x7000)], &[(0x8018, 0x5555)]), None);
        assert_eq!(caller(u64::MAX, &[], &[(31, 0x5555)]), None);
        assert_eq!(caller(0x8000, &[], &[(0x8018, 0)]), None);
    }

    proptest! {
        #[test]
        fn leaves_dont_change_what_is_found(depth in 0_usize..20, register in 0_u64..1 << 40, address: u64) {
            let called = vec![(LEAF, 0x7000); depth];
            let found = caller(register, &called, &[(register + 24, address)]);
            let expected = CallerRegisters { return_address: address, stack: register + 32, frame: 77 };
            prop_assert_eq!(found, Some(expected).filter(|_| address > 0));
        }
    }
}
