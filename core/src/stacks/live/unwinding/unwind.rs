//! Unwinds call stacks from registers and a copy of the stack of user space.

use std::ops::Range;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder as _};

use super::base_register::{BaseRegisterCode, CallerRegisters, UnwoundFrame};
use super::epilogue::Epilogue;
use super::signal_frames::Interrupted;
use super::unwind_info::{KnownUnwindInfo, ModuleSection};
use crate::host::page_size;
use crate::stacks::live::mapped::{Mappings, Modules};
use crate::stacks::live::rings::UserState;

/// So long is the code by which a process is entered, in bytes: `_start` of glibc's dynamic linker has 61.
const ENTRY_LENGTH: u64 = 64;

/// More frames than a stack of the largest copy could hold are a loop in bad unwind information.
const MAX_DEPTH: usize = 8192;

#[cfg(target_arch = "x86_64")]
mod arch {
    pub(super) use framehop::x86_64::{
        CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Unwinder,
    };

    use super::super::signal_frames::Interrupted;
    use crate::stacks::live::rings::RecordWords;

    /// The program counter, and all that unwinding needs, of the words that `rings/registers.rs` asks for.
    pub(super) fn registers(words: RecordWords<'_>, _highest_code: u64) -> Option<(u64, Registers)> {
        let (bp, sp, ip) = (words.get(1)?, words.get(2)?, words.get(3)?);
        Some((ip, registers_with(ip, sp, bp)))
    }

    /// What some code of the dynamic linker finds its caller by.
    pub(super) fn base_register(words: RecordWords<'_>) -> Option<u64> {
        words.get(0)
    }

    /// Registers with a stack pointer and a frame pointer.
    pub(super) fn registers_with(pc: u64, stack: u64, frame: u64) -> Registers {
        Registers::new(pc, stack, frame)
    }

    pub(super) fn frame_pointer(registers: &Registers) -> u64 {
        registers.bp()
    }

    /// The registers of interrupted code.
    pub(super) fn interrupted(_handler: &Registers, code: &Interrupted) -> Registers {
        Registers::new(code.pc, code.stack, code.frame)
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    use framehop::aarch64::PtrAuthMask;
    pub(super) use framehop::aarch64::{
        CacheAarch64 as Cache, UnwindRegsAarch64 as Registers, UnwinderAarch64 as Unwinder,
    };

    use super::super::signal_frames::Interrupted;
    use crate::stacks::live::rings::RecordWords;

    /// The program counter, and all that unwinding needs, of the words that `rings/registers.rs` asks for.
    pub(super) fn registers(words: RecordWords<'_>, highest_code: u64) -> Option<(u64, Registers)> {
        let (fp, lr, sp, pc) = (words.get(0)?, words.get(1)?, words.get(2)?, words.get(3)?);
        // Before any code is known nothing is known of the bits that sign a pointer.
        let mask = match highest_code {
            0 => PtrAuthMask::new_no_strip(),
            highest => PtrAuthMask::from_max_known_address(highest),
        };
        Some((pc, Registers::new_with_ptr_auth_mask(mask, lr, sp, fp)))
    }

    /// No code finds its caller by another register.
    pub(super) fn base_register(_: RecordWords<'_>) -> Option<u64> {
        None
    }

    /// Registers with a stack pointer and a frame pointer.
    pub(super) fn registers_with(pc: u64, stack: u64, frame: u64) -> Registers {
        Registers::new(pc, stack, frame)
    }

    pub(super) fn frame_pointer(registers: &Registers) -> u64 {
        registers.fp()
    }

    /// The registers of interrupted code.
    pub(super) fn interrupted(handler: &Registers, code: &Interrupted) -> Registers {
        let link = code.link.unwrap_or(0);
        Registers::new_with_ptr_auth_mask(handler.lr_mask(), link, code.stack, code.frame)
    }
}

/// Stacks of other processors can't be unwound: no sample carries registers.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod arch {
    pub(super) use framehop::x86_64::{
        CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Unwinder,
    };

    use super::super::signal_frames::Interrupted;
    use crate::stacks::live::rings::RecordWords;

    pub(super) fn registers(_: RecordWords<'_>, _: u64) -> Option<(u64, Registers)> {
        None
    }

    /// No code finds its caller by another register.
    pub(super) fn base_register(_: RecordWords<'_>) -> Option<u64> {
        None
    }

    pub(super) fn registers_with(pc: u64, stack: u64, frame: u64) -> Registers {
        Registers::new(pc, stack, frame)
    }

    pub(super) fn frame_pointer(registers: &Registers) -> u64 {
        registers.bp()
    }

    pub(super) fn interrupted(_: &Registers, code: &Interrupted) -> Registers {
        Registers::new(code.pc, code.stack, code.frame)
    }
}

/// What unwinding remembers from one sample to the next.
#[derive(Default)]
pub(super) struct UnwindCache {
    rules: arch::Cache,
    /// Where the parts of the stack end of the frames that are being unwound.
    ends: Vec<u64>,
    pub(super) modules: KnownUnwindInfo,
}

/// The unwind information of a process.
#[derive(Clone)]
pub(super) struct Unwinder {
    known: arch::Unwinder<Arc<[u8]>>,
    base_register: Arc<BaseRegisterCode>,
    /// Where programs and the dynamic linker are entered without unwind information.
    entries: Arc<[Range<u64>]>,
    /// Where handlers of signals return to.
    trampolines: Arc<[Range<u64>]>,
}

/// Whether a stack is all there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::stacks::live) enum Completeness {
    Whole,
    /// The stack is deeper than the kernel follows.
    TooDeep,
    /// The stack is longer than the part that was copied.
    CopyEnded,
    /// There was no stack to copy: the process was on its way out, or became another program.
    StackGone,
    /// What would have to be known to go on is missing or wrong.
    #[default]
    Cut,
}

impl Unwinder {
    /// An unwinder for a process with these mappings.
    pub(super) fn new(mappings: &Mappings, modules: &Modules, cache: &mut UnwindCache) -> Self {
        let (mut known, mut base_register) = (arch::Unwinder::new(), BaseRegisterCode::default());
        let (mut entries, mut trampolines) = (Vec::new(), Vec::new());
        let page = page_size();
        for mapping in mappings.iter() {
            let Some(info) = cache.modules.of(mapping.module, modules) else { continue };
            let Some(base) = info.base_in_memory(mapping.start, mapping.offset, page) else { continue };
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
            known.add_module(framehop::Module::new(String::new(), mapping.start..mapping.end, base, sections));
            base_register.add(mapping.start..mapping.end, base, &info);
            let in_memory = |address: u64| address.wrapping_sub(info.base).wrapping_add(base);
            trampolines.extend(info.trampolines.iter().map(|code| in_memory(code.start)..in_memory(code.end)));
            let entry = info.entry.map(in_memory);
            entries.extend(entry.map(|entry| entry..entry.saturating_add(ENTRY_LENGTH)));
        }
        let (entries, trampolines) = (entries.into(), trampolines.into());
        Self { known, base_register: Arc::new(base_register), entries, trampolines }
    }

    /// Appends the addresses to look up, the innermost first. `made` tells what follows a call in code that has no
    /// unwind information.
    pub(super) fn unwind(
        &self,
        user: &UserState<'_>,
        cache: &mut UnwindCache,
        mut made: impl FnMut(u64) -> Option<Epilogue>,
        out: &mut Vec<u64>,
    ) -> Unwound {
        let Some((pc, registers)) = arch::registers(user.registers, self.known.max_known_code_address()) else {
            return Unwound::default();
        };
        // Who reads a little behind the copy would read on; who reads far away has lost the way.
        let mut has_copy_ended = false;
        let (stack, frame) = (registers.sp(), arch::frame_pointer(&registers));
        let most = user.stack.len().saturating_mul(64).max(1 << 23);
        let mut read = |address: u64| {
            let from = address.checked_sub(stack).and_then(|offset| usize::try_from(offset).ok()).ok_or(())?;
            let word = user.stack_word(from);
            has_copy_ended = word.is_none() && user.is_full && from < most;
            word.ok_or(())
        };
        let UnwindCache { rules, ends, .. } = cache;
        ends.clear();
        let (first, base) = (out.len(), arch::base_register(user.registers));
        let address = FrameAddress::from_instruction_pointer(pc);
        let mut walk = StackWalk { unwinder: self, address, registers, frame, first, base, ends, rules, out };
        let end = (0..MAX_DEPTH).find_map(|_| walk.step(&mut read, &mut made));
        let end_of_last = walk.registers.sp();
        let end = match end.unwrap_or_default() {
            Completeness::Cut if user.stack.is_empty() => Completeness::StackGone,
            Completeness::Cut if has_copy_ended => Completeness::CopyEnded,
            end => end,
        };
        Unwound { end, stack, end_of_last, frame }
    }

    /// Whether the kernel may have entered a process here: what lies on the stack is then its arguments, and no caller.
    fn is_entry(&self, place: u64) -> bool {
        self.entries.iter().any(|entry| entry.contains(&place)) && !self.base_register.has_row(place)
    }

    /// Whether no call returns to this address, as a function begins there and none ends: `makecontext` lays such an
    /// address where the stack of a coroutine begins.
    fn is_laid_by_hand(&self, address: u64) -> bool {
        self.base_register.has_row(address) && !self.base_register.has_row(address.wrapping_sub(1))
    }

    /// Whether a handler of a signal returns to this address: nothing called it.
    fn is_trampoline(&self, address: u64) -> bool {
        self.trampolines.iter().any(|code| code.contains(&address))
    }

    /// Returns from code that finds its caller by a register of its own.
    fn by_base_register(
        &self,
        place: u64,
        registers: &mut arch::Registers,
        (sampled, called): (Option<u64>, impl Iterator<Item = UnwoundFrame>),
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Result<Option<u64>, framehop::Error> {
        let (stack, frame) = (registers.sp(), arch::frame_pointer(registers));
        let caller = sampled.and_then(|sampled| {
            self.base_register.caller(place, frame, (sampled, called), |address| read(address).ok())
        });
        let caller = caller.ok_or(framehop::Error::CouldNotReadStack(stack))?;
        let CallerRegisters { return_address, stack, frame } = caller;
        *registers = arch::registers_with(return_address, stack, frame);
        Ok(Some(return_address))
    }

    /// How the caller of the code at an address is found: at the instruction that runs, or where a call returns to.
    pub(super) fn caller_rule(&self, address: u64, place: FramePlace, cache: &mut UnwindCache) -> CallerRule {
        // No program has these: by the addresses that are read it is known which register leads to the caller.
        const STACK: u64 = 1 << 40;
        const FRAME: u64 = 1 << 41;
        const NEAR: u64 = 1 << 32;
        let at = match place {
            FramePlace::Innermost => Some(FrameAddress::from_instruction_pointer(address)),
            FramePlace::Caller => FrameAddress::from_return_address(address.wrapping_add(1)),
        };
        let Some(at) = at else { return CallerRule::Other };
        if self.base_register.contains(address) {
            return CallerRule::Other;
        }
        if self.is_trampoline(address) {
            return CallerRule::Signal;
        }
        if place == FramePlace::Caller && self.is_laid_by_hand(address.wrapping_add(1)) {
            return CallerRule::Nobody;
        }
        let mut is_by_frame = false;
        let mut read = |address: u64| {
            is_by_frame |= address.abs_diff(FRAME) < NEAR;
            Ok(FRAME)
        };
        let mut registers = arch::registers_with(address, STACK, FRAME);
        match self.known.unwind_frame(at, &mut registers, &mut cache.rules, &mut read) {
            Ok(None) => CallerRule::Nobody,
            _ if is_by_frame => CallerRule::FramePointer,
            _ => CallerRule::Other,
        }
    }
}

/// A stack that is being unwound, at one of its frames.
struct StackWalk<'a> {
    unwinder: &'a Unwinder,
    address: FrameAddress,
    registers: arch::Registers,
    /// The frame pointer of the innermost frame.
    frame: u64,
    /// The place in `out` of what nothing was called from, and a register of it.
    first: usize,
    base: Option<u64>,
    /// Where the parts of the stack end of the frames since then.
    ends: &'a mut Vec<u64>,
    rules: &'a mut arch::Cache,
    out: &'a mut Vec<u64>,
}

impl StackWalk<'_> {
    /// Appends the frame, and goes to its caller. Says how whole the stack is where it ends here.
    fn step(
        &mut self,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
        made: &mut impl FnMut(u64) -> Option<Epilogue>,
    ) -> Option<Completeness> {
        let (address, place) = (self.address.address(), self.address.address_for_lookup());
        if self.unwinder.is_trampoline(address) {
            return self.leave_handler(read);
        }
        let is_called_from = self.address.is_return_address();
        if self.frame == 0 && !is_called_from && self.unwinder.is_entry(place) {
            self.out.push(place);
            return Some(Completeness::Whole);
        }
        let epilogue = if is_called_from { made(address) } else { None };
        let caller = self.caller(place, epilogue, read);
        self.out.push(place);
        match caller.map(|caller| caller.map(FrameAddress::from_return_address)) {
            Ok(Some(Some(caller))) => {
                self.ends.push(self.registers.sp());
                self.address = caller;
                None
            }
            Ok(None) => Some(Completeness::Whole),
            Err(error) if begins_without_frame(self.address, error, &self.registers) => Some(Completeness::Whole),
            Err(_) if is_called_from && self.unwinder.is_laid_by_hand(address) => {
                if let Some(last) = self.out.last_mut() {
                    *last = address;
                }
                Some(Completeness::Whole)
            }
            Ok(Some(None)) | Err(_) => Some(Completeness::Cut),
        }
    }

    /// Goes from the trampoline of a signal's handler to what the signal interrupted.
    fn leave_handler(&mut self, read: &mut impl FnMut(u64) -> Result<u64, ()>) -> Option<Completeness> {
        self.out.push(self.address.address());
        let Some(code) = Interrupted::read(self.registers.sp(), |at| read(at).ok()) else {
            return Some(Completeness::Cut);
        };
        self.registers = arch::interrupted(&self.registers, &code);
        self.address = FrameAddress::from_instruction_pointer(code.pc);
        (self.first, self.base) = (self.out.len(), code.base);
        self.ends.clear();
        None
    }

    /// Returns from the code at a place: by what follows the call, where that is known.
    fn caller(
        &mut self,
        place: u64,
        epilogue: Option<Epilogue>,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Result<Option<u64>, framehop::Error> {
        let Self { unwinder, registers, .. } = self;
        if let Some(epilogue) = epilogue {
            return released(epilogue, registers, read);
        }
        if unwinder.base_register.contains(place) {
            let called = self.out[self.first..].iter().zip(&*self.ends);
            let called = called.map(|(&address, &end)| UnwoundFrame { address, end });
            return unwinder.by_base_register(place, registers, (self.base, called), read);
        }
        unwinder.known.unwind_frame(self.address, registers, self.rules, read)
    }
}

/// Whether nobody called the code behind a call for which there is no unwind information, as its frame pointer is 0:
/// the kernel sets that when it enters a process, and so do functions that begin a thread. glibc's dynamic linker
/// begins so.
fn begins_without_frame(address: FrameAddress, error: framehop::Error, registers: &arch::Registers) -> bool {
    let is_by_frame = match error {
        framehop::Error::FramepointerUnwindingMovedBackwards => true,
        framehop::Error::CouldNotReadStack(at) => at < 16,
        _ => false,
    };
    is_by_frame && address.is_return_address() && arch::frame_pointer(registers) == 0
}

/// Returns from a function that releases its frame so.
fn released(
    epilogue: Epilogue,
    registers: &mut arch::Registers,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Result<Option<u64>, framehop::Error> {
    let (stack, missing) = (registers.sp(), framehop::Error::CouldNotReadStack);
    let mut read = |offset: u64| {
        let at = stack.checked_add(offset).ok_or(framehop::Error::IntegerOverflow)?;
        read(at).map_err(|()| missing(at))
    };
    let caller = read(epilogue.before_return)?;
    let frame = match epilogue.frame_pointer {
        Some(offset) => read(offset)?,
        None => arch::frame_pointer(registers),
    };
    *registers = arch::registers_with(caller, stack.saturating_add(epilogue.before_return + 8), frame);
    Ok(Some(caller))
}

/// How far unwinding came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::stacks::live) struct Unwound {
    pub(in crate::stacks::live) end: Completeness,
    /// The address at which the copy begins.
    pub(super) stack: u64,
    /// The address at which the last frame that was found begins, behind all that it called.
    pub(super) end_of_last: u64,
    /// The frame pointer of the innermost frame.
    pub(super) frame: u64,
}

/// How the caller of a place in code is found, by its unwind information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallerRule {
    /// By the frame pointer.
    FramePointer,
    /// By the frame pointer as far as is known: there is no unwind information.
    Assumed,
    /// By something else: a chain of frame pointers misses the caller.
    Other,
    /// Nothing called it: a signal came, and a chain of frame pointers misses what that interrupted.
    Signal,
    /// Nobody called: stacks begin there.
    Nobody,
}

/// Where in a stack a frame stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FramePlace {
    Innermost,
    Caller,
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    #![allow(clippy::print_stderr, reason = "a skip says why")]

    use std::fs::File;

    use super::*;
    use crate::files;
    use crate::stacks::live::mapped::{CodeMapping, Module, SeenAddresses};
    use crate::stacks::live::rings::RecordWords;

    const LINKER: &str = "/lib64/ld-linux-x86-64.so.2";
    /// Where its file begins in memory, and the stack.
    const BASE: u64 = 0x7000_0000;
    const STACK: u64 = 0x9000;

    /// The dynamic linker of this machine in a process, and the address where the process is entered.
    fn linker() -> Option<(Unwinder, u64)> {
        let identity = files::identity(&File::open(LINKER).ok()?).ok()?;
        let mut modules = Modules::default();
        let module = modules.number(Module::File { path: LINKER.into(), identity }, &SeenAddresses::default());
        let mut cache = UnwindCache::default();
        let info = cache.modules.of(module, &modules)?;
        let mut mappings = Mappings::default();
        mappings.map(CodeMapping { start: BASE, end: BASE + (1 << 20), offset: info.entry?, module });
        let unwinder = Unwinder::new(&mappings, &modules, &mut cache);
        let entry = unwinder.entries.first()?.start;
        (!unwinder.base_register.has_row(entry)).then_some((unwinder, entry))
    }

    /// What is found of a stack of these words, from an instruction and a frame pointer.
    fn found(unwinder: &Unwinder, ip: u64, frame: u64, stack: &[u64]) -> (Vec<u64>, Completeness) {
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let (registers, stack) = (bytes(&[0, frame, STACK, ip]), bytes(stack));
        let user = UserState { registers: RecordWords(&registers), stack: &stack, is_full: false };
        let mut found = Vec::new();
        let end = unwinder.unwind(&user, &mut UnwindCache::default(), |_| None, &mut found).end;
        (found, end)
    }

    #[test]
    fn what_a_signal_interrupted_is_found_by_the_registers_that_the_kernel_saved() {
        const TRAMPOLINE: u64 = 0x5000;
        let mut unwinder = Unwinder::new(&Mappings::default(), &Modules::default(), &mut UnwindCache::default());
        unwinder.trampolines = std::iter::once(TRAMPOLINE - 1..TRAMPOLINE + 9).collect();
        // The handler returns to the trampoline, by its frame pointer; behind that lie the registers, and the frame of
        // what was interrupted, which begins a thread.
        let (mut stack, saved, interrupted) = (vec![0; 40], 2, 30);
        stack[1] = TRAMPOLINE;
        (stack[saved + 168 / 8], stack[saved + 160 / 8]) = (0x2000, STACK + 8 * interrupted as u64);
        stack[saved + 120 / 8] = STACK + 8 * interrupted as u64;
        stack[interrupted + 1] = 0x3001;
        let expected = vec![0x1001, TRAMPOLINE, 0x2000, 0x3000];
        assert_eq!(found(&unwinder, 0x1001, STACK, &stack), (expected.clone(), Completeness::Whole));
        // The trampoline may be sampled itself.
        assert_eq!(found(&unwinder, TRAMPOLINE + 7, 0, &stack[saved..]).0[..2], [TRAMPOLINE + 7, 0x2000]);
        // A copy that ends before the registers tells nothing of it.
        assert_eq!(found(&unwinder, 0x1001, STACK, &stack[..20]), (expected[..2].to_vec(), Completeness::Cut));
        let rule = unwinder.caller_rule(TRAMPOLINE - 1, FramePlace::Caller, &mut UnwindCache::default());
        assert_eq!(rule, CallerRule::Signal);
    }

    #[test]
    fn stacks_begin_where_the_kernel_enters_the_dynamic_linker() {
        let Some((unwinder, entry)) = linker() else {
            eprintln!("skipped: {LINKER} isn't here, or has unwind information where it is entered");
            return;
        };
        // At its first instruction the number of arguments stands where a caller would.
        assert_eq!(found(&unwinder, entry, 0, &[1, 2, 3]), (vec![entry], Completeness::Whole));
        // What it calls, here code with a frame pointer, has 0 for that of its caller.
        let called = |frame| found(&unwinder, 0x1001, STACK, &[frame, entry + 8, 1, 2]);
        assert_eq!(called(0), (vec![0x1001, entry + 7], Completeness::Whole));
        assert_eq!(called(8).1, Completeness::Cut);
        // The stack of a process that is on its way out is gone.
        assert_eq!(found(&unwinder, 0x1001, STACK, &[]), (vec![0x1001], Completeness::StackGone));
    }
}
