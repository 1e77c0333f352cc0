//! Finds what a signal interrupted: the kernel leaves its registers on the stack, behind the frames of the handler.
//!
//! ```text
//! handler ─ returns to ─ trampoline (a call of the kernel: sigreturn) ┊ saved registers ┊ interrupted function ─ its callers
//!                        the stack pointer is here there ─────────────┘
//! ```
//!
//! Nothing called the trampoline, and what was interrupted has called nothing: neither address is one that a call
//! returns to.

use std::ops::Range;

use gimli::{BaseAddresses, CieOrFde, EhFrame, NativeEndian, UnwindSection};
use rustc_hash::FxHashSet;

use super::unwind_info::UnwindInfo;

/// How C libraries call it on x86-64, where no symbol says it: debuggers and profilers know that name.
pub(in crate::stacks::live) const TRAMPOLINE: &str = "__restore_rt";

/// No more unwind information than this is searched for trampolines, in bytes: a library of C has some 150 KiB.
const MOST_SEARCHED: usize = 32 << 20;

/// Where registers are saved, in bytes from the stack pointer of the trampoline: `struct rt_sigframe` of the kernel.
struct SavedAt {
    pc: u64,
    stack: u64,
    frame: u64,
    /// `rbx` of x86-64.
    base: Option<u64>,
    /// What holds the return address of a leaf on AArch64.
    link: Option<u64>,
}

/// `struct ucontext` begins here; its registers after 40 bytes, `r8` first.
#[cfg(not(target_arch = "aarch64"))]
const SAVED: SavedAt = SavedAt { pc: 168, stack: 160, frame: 120, base: Some(128), link: None };

/// Before `struct ucontext` are 128 bytes about the signal; its registers follow after 184 bytes, `x0` first.
#[cfg(target_arch = "aarch64")]
const SAVED: SavedAt = SavedAt { pc: 568, stack: 560, frame: 544, base: None, link: Some(552) };

/// What registers held in interrupted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interrupted {
    pub(super) pc: u64,
    pub(super) stack: u64,
    pub(super) frame: u64,
    pub(super) base: Option<u64>,
    pub(super) link: Option<u64>,
}

impl Interrupted {
    /// Of the trampoline whose stack pointer this is; `None` where its stack can't be read.
    pub(super) fn read(stack: u64, mut read: impl FnMut(u64) -> Option<u64>) -> Option<Self> {
        let mut saved = |at: u64| read(stack.checked_add(at)?);
        Some(Self {
            pc: saved(SAVED.pc)?,
            stack: saved(SAVED.stack)?,
            frame: saved(SAVED.frame)?,
            base: SAVED.base.and_then(&mut saved),
            link: SAVED.link.and_then(&mut saved),
        })
    }
}

/// The trampolines of a module, at the addresses that its file gives. Those of C libraries begin one byte early, for
/// who looks up the byte before an address that a call returns to.
pub(super) fn search(info: &UnwindInfo) -> Vec<Range<u64>> {
    let section = info.eh_frame.as_ref().filter(|section| section.data.len() <= MOST_SEARCHED);
    section.map_or_else(Vec::new, |section| {
        let bases = BaseAddresses::default().set_eh_frame(section.addresses.start);
        signal_trampolines(&EhFrame::new(&section.data, NativeEndian), &bases)
    })
}

/// The code that unwind information says to be of signals.
pub(in crate::stacks::live) fn signal_trampolines<R: gimli::Reader<Offset = usize>>(
    frames: &EhFrame<R>,
    bases: &BaseAddresses,
) -> Vec<Range<u64>> {
    let (mut entries, mut of_signals, mut found) = (frames.entries(bases), FxHashSet::default(), Vec::new());
    while let Ok(Some(entry)) = entries.next() {
        match entry {
            CieOrFde::Cie(common) if common.is_signal_trampoline() => drop(of_signals.insert(common.offset())),
            CieOrFde::Fde(code) if of_signals.contains(&code.cie_offset().0) => {
                let Ok(code) = code.parse(EhFrame::cie_from_offset) else { continue };
                found.push(code.initial_address()..code.initial_address().saturating_add(code.len()));
            }
            CieOrFde::Cie(_) | CieOrFde::Fde(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry of `.eh_frame` with its length.
    fn entry(body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let mut entry = (padded as u32).to_ne_bytes().to_vec();
        entry.extend_from_slice(body);
        entry.resize(4 + padded, 0);
        entry
    }

    /// What functions have in common: version 1, factors 1 and -8, the return address in register 16, absolute
    /// addresses.
    fn common(augmentation: &[u8]) -> Vec<u8> {
        entry(&[&[0; 4], &[1][..], augmentation, &[1, 0x78, 16, 1, 0]].concat())
    }

    /// A function of 9 bytes, whose entry lies at `at` and refers to the one at `common`.
    fn function(at: usize, common: usize, start: u64) -> Vec<u8> {
        let back = ((at + 4 - common) as u32).to_ne_bytes();
        entry(&[&back[..], &start.to_ne_bytes(), &9_u64.to_ne_bytes(), &[0]].concat())
    }

    #[test]
    fn code_that_is_of_signals_is_found_by_its_mark() {
        let mut section = common(b"zRS\0");
        for (common_at, start) in [(0, 0x1000), (0, 0x3000)] {
            section.extend(function(section.len(), common_at, start));
        }
        let plain = section.len();
        section.extend(common(b"zR\0"));
        section.extend(function(section.len(), plain, 0x2000));
        let mut frames = EhFrame::new(&section, NativeEndian);
        frames.set_address_size(8);
        assert_eq!(signal_trampolines(&frames, &BaseAddresses::default()), [0x1000..0x1009, 0x3000..0x3009]);
        assert_eq!(signal_trampolines(&EhFrame::new(&[], NativeEndian), &BaseAddresses::default()), []);
    }

    #[test]
    fn registers_that_can_not_be_read_tell_nothing() {
        // Of each place the address is what stands there.
        let code = Interrupted::read(0x100, Some).map(|code| (code.pc, code.stack, code.frame));
        assert_eq!(code, Some((0x100 + SAVED.pc, 0x100 + SAVED.stack, 0x100 + SAVED.frame)));
        assert_eq!(Interrupted::read(0x100, |_| None), None);
        assert_eq!(Interrupted::read(u64::MAX, Some), None);
    }
}
