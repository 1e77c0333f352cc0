//! Unwinds call stacks from registers and a copy of the stack of user space.

use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Unwinder as _};

use super::maps::Mappings;
use super::modules::{ModuleSection, Modules};
use super::record::UserState;

/// More frames than a stack of the largest copy could hold are a loop in bad unwind information.
const MAX_DEPTH: usize = 8192;

#[cfg(target_arch = "x86_64")]
mod arch {
    use framehop::x86_64::UnwindRegsX86_64;
    pub(super) use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as Unwinder};

    use super::super::record::RecordWords;

    /// `PERF_REG_X86_BP`, `_SP`, `_IP`.
    pub(super) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

    /// The program counter, the stack pointer, and all that unwinding needs.
    pub(super) fn registers(words: RecordWords<'_>, _highest_code: u64) -> Option<(u64, u64, UnwindRegsX86_64)> {
        let (bp, sp, ip) = (words.get(0)?, words.get(1)?, words.get(2)?);
        Some((ip, sp, UnwindRegsX86_64::new(ip, sp, bp)))
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    pub(super) use framehop::aarch64::{CacheAarch64 as Cache, UnwinderAarch64 as Unwinder};
    use framehop::aarch64::{PtrAuthMask, UnwindRegsAarch64};

    use super::super::record::RecordWords;

    /// `PERF_REG_ARM64_X29`, `_LR`, `_SP`, `_PC`.
    pub(super) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

    /// The program counter, the stack pointer, and all that unwinding needs.
    pub(super) fn registers(words: RecordWords<'_>, highest_code: u64) -> Option<(u64, u64, UnwindRegsAarch64)> {
        let (fp, lr, sp, pc) = (words.get(0)?, words.get(1)?, words.get(2)?, words.get(3)?);
        // Before any code is known nothing is known of the bits that sign a pointer.
        let mask = match highest_code {
            0 => PtrAuthMask::new_no_strip(),
            highest => PtrAuthMask::from_max_known_address(highest),
        };
        Some((pc, sp, UnwindRegsAarch64::new_with_ptr_auth_mask(mask, lr, sp, fp)))
    }
}

/// Stacks of other processors can't be unwound: no sample carries registers.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    use framehop::x86_64::UnwindRegsX86_64;
    pub(super) use framehop::x86_64::{CacheX86_64 as Cache, UnwinderX86_64 as Unwinder};

    use super::super::record::RecordWords;

    pub(super) const REGISTERS: u64 = 0;

    pub(super) fn registers(_: RecordWords<'_>, _: u64) -> Option<(u64, u64, UnwindRegsX86_64)> {
        None
    }
}

/// The registers that samples carry: a bit each, by the kernel's numbers. None where unwinding doesn't
/// know the processor.
pub(super) const REGISTERS: u64 = arch::REGISTERS;

/// What unwinding remembers from one sample to the next.
#[derive(Default)]
pub(super) struct UnwindCache(arch::Cache);

/// The unwind information of a process.
#[derive(Clone)]
pub(super) struct Unwinder(arch::Unwinder<Arc<[u8]>>);

/// Whether a stack is all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Completeness {
    Whole,
    /// The stack is deeper than the kernel follows.
    TooDeep,
    /// The stack is longer than the part that was copied.
    CopyEnded,
    /// What would have to be known to go on is missing or wrong.
    Cut,
}

impl Unwinder {
    /// An unwinder for a process with these mappings.
    pub(super) fn new(mappings: &Mappings, modules: &mut Modules) -> Self {
        let mut unwinder = arch::Unwinder::new();
        for mapping in mappings.iter() {
            let Some(info) = modules.unwind_info(mapping.module) else { continue };
            let Some(base) = info.base_in_memory(mapping.start, mapping.offset) else { continue };
            let addresses = |section: &Option<ModuleSection>| section.as_ref().map(|section| section.addresses.clone());
            let data = |section: &Option<ModuleSection>| section.as_ref().map(|section| Arc::clone(&section.data));
            let sections = ExplicitModuleSectionInfo {
                base_svma: info.base,
                text_svma: info.text.clone(),
                got_svma: info.got.clone(),
                eh_frame_svma: addresses(&info.eh_frame),
                eh_frame: data(&info.eh_frame),
                eh_frame_hdr_svma: addresses(&info.eh_frame_hdr),
                eh_frame_hdr: data(&info.eh_frame_hdr),
                debug_frame: data(&info.debug_frame),
                ..Default::default()
            };
            unwinder.add_module(framehop::Module::new(String::new(), mapping.start..mapping.end, base, sections));
        }
        Self(unwinder)
    }

    /// Appends the addresses to look up, the innermost first.
    pub(super) fn unwind(&self, user: &UserState<'_>, cache: &mut UnwindCache, out: &mut Vec<u64>) -> Completeness {
        let Some((pc, sp, registers)) = arch::registers(user.registers, self.0.max_known_code_address()) else {
            return Completeness::Cut;
        };
        // Who reads a little behind the copy would read on; who reads far away has lost the way.
        let mut has_copy_ended = false;
        let most = user.stack.len().saturating_mul(64).max(1 << 23);
        let mut read = |address: u64| {
            let from = address.checked_sub(sp).and_then(|offset| usize::try_from(offset).ok()).ok_or(())?;
            let word = user.stack.get(from..).and_then(|rest| rest.first_chunk());
            has_copy_ended = word.is_none() && user.is_full && from < most;
            word.map(|word| u64::from_ne_bytes(*word)).ok_or(())
        };
        let mut frames = self.0.iter_frames(pc, registers, &mut cache.0, &mut read);
        let mut end = Completeness::Cut;
        for _ in 0..MAX_DEPTH {
            match frames.next() {
                Ok(Some(frame)) => out.push(frame.address_for_lookup()),
                Ok(None) => {
                    end = Completeness::Whole;
                    break;
                }
                Err(_) => break,
            }
        }
        match end {
            Completeness::Cut if has_copy_ended => Completeness::CopyEnded,
            end => end,
        }
    }
}
