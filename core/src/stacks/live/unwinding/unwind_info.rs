//! Reads of modules what is needed to unwind through them.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use object::SegmentFlags;
use object::elf::PF_X;
use object::read::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef};
use rustc_hash::FxHashMap;

use super::{base_register, signal_frames};
use crate::files;
use crate::stacks::live::mapped::{AtOnce, Module, ModuleId, Modules, OpenModule, vdso_code};

/// What is known of modules, each read when it is unwound through first.
#[derive(Debug, Default)]
pub(super) struct KnownUnwindInfo(FxHashMap<ModuleId, Option<Arc<UnwindInfo>>>);

impl KnownUnwindInfo {
    /// What is needed to unwind through a module.
    pub(super) fn of(&mut self, id: ModuleId, modules: &Modules) -> Option<Arc<UnwindInfo>> {
        self.0.entry(id).or_insert_with(|| UnwindInfo::load(modules.opened(id)).map(Arc::new)).clone()
    }
}

/// The parts of a program or library that unwinding needs.
#[derive(Debug, Default)]
pub(super) struct UnwindInfo {
    /// The address that the file gives to its first byte.
    pub(super) base: u64,
    /// Where a process is entered, if it is.
    pub(super) entry: Option<u64>,
    /// Segments that hold code.
    code: Vec<ModuleSegment>,
    pub(super) text: Option<Range<u64>>,
    pub(super) got: Option<Range<u64>>,
    pub(super) eh_frame: Option<ModuleSection>,
    pub(super) eh_frame_hdr: Option<ModuleSection>,
    pub(super) debug_frame: Option<ModuleSection>,
    /// Code whose callers are found by a register that isn't the frame pointer.
    pub(super) found_by_base_register: Vec<Range<u64>>,
    /// Where handlers of signals return to.
    pub(super) trampolines: Vec<Range<u64>>,
}

#[derive(Clone, Debug)]
pub(super) struct ModuleSection {
    pub(super) addresses: Range<u64>,
    pub(super) data: Arc<[u8]>,
}

#[derive(Debug)]
struct ModuleSegment {
    address: u64,
    offset: u64,
    size: u64,
}

impl UnwindInfo {
    fn load(opened: &OpenModule) -> Option<Self> {
        match opened.module {
            Module::Vdso => {
                let code = vdso_code()?;
                let mut info = Self::parse(&code[..])?;
                // On AArch64 it has a name, and no unwind information.
                info.trampolines.extend(trampoline_named(&code, "__kernel_rt_sigreturn"));
                Some(info)
            }
            _ => {
                let file = opened.program()?.file;
                Self::parse(AtOnce(&ReadCache::new(File::open(files::path_of(&file)).ok()?)))
            }
        }
    }

    fn parse<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let range = |name| {
            file.section_by_name(name)
                .map(|section| section.address()..section.address().saturating_add(section.size()))
        };
        let section = |name| {
            let section = file.section_by_name(name)?;
            let addresses = section.address()..section.address().checked_add(section.size())?;
            let data = section.data().ok().filter(|data| !data.is_empty())?;
            Some(ModuleSection { addresses, data: data.into() })
        };
        // The first page of the code may be the last one of what lies before it in the file.
        let is_code = |segment: &object::read::Segment<'data, '_, _>| matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
        let code = file.segments().filter(is_code).map(|segment| {
            let (offset, size) = segment.file_range();
            ModuleSegment { address: segment.address(), offset, size }
        });
        let eh_frame = section(".eh_frame");
        let debug_frame = if eh_frame.is_none() { section(".debug_frame") } else { None };
        let mut info = Self {
            base: file.segments().map(|segment| segment.address()).min()?,
            entry: Some(file.entry()).filter(|entry| *entry > 0),
            code: code.collect(),
            text: range(".text"),
            got: range(".got"),
            eh_frame,
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame,
            found_by_base_register: Vec::new(),
            trampolines: Vec::new(),
        };
        info.found_by_base_register = base_register::search(&info);
        info.trampolines = signal_frames::search(&info);
        Some(info)
    }

    /// Where the first byte of the file lies in a process that has `offset` of it at `start`. Mappings begin at pages
    /// of this size; segments needn't.
    pub(super) fn base_in_memory(&self, start: u64, offset: u64, page: u64) -> Option<u64> {
        let holds = |segment: &&ModuleSegment| {
            (segment.offset / page * page..segment.offset.saturating_add(segment.size)).contains(&offset)
        };
        let segment = self.code.iter().find(holds)?;
        let address = segment.address.wrapping_sub(segment.offset).wrapping_add(offset);
        Some(start.wrapping_sub(address).wrapping_add(self.base))
    }
}

/// A trampoline of two instructions by its symbol, and the byte before it, where a caller is looked up.
fn trampoline_named(code: &[u8], name: &str) -> Option<Range<u64>> {
    let file = object::File::parse(code).ok()?;
    let start = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(name))?.address();
    Some(start.checked_sub(1)?..start.checked_add(8)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is how a test fails, and a skip says why")]

    use super::*;
    use crate::stacks::live::mapped::{SeenAddresses, vdso_addresses};

    #[test]
    fn this_program_is_found_and_has_unwind_information() {
        let path = std::env::current_exe().unwrap();
        let identity = files::identity(&File::open(&path).unwrap()).unwrap();
        let mut modules = Modules::default();
        let module = Module::File { path: path.display().to_string(), identity };
        let number = modules.number(module.clone(), &SeenAddresses::default());
        assert_eq!(modules.number(module, &SeenAddresses::default()), number);
        let found = modules.since(0).next().unwrap().program().unwrap();
        assert_eq!(files::identity(&found.file).unwrap(), identity);
        let info = KnownUnwindInfo::default().of(number, &modules).unwrap();
        assert!(info.eh_frame.is_some());
        // A segment that is mapped where the file wants it has its base there, too.
        let segment = info.code.first().unwrap();
        for page in [4096, 1 << 16] {
            let offset = segment.offset / page * page;
            let start = (segment.address + 0x10_0000).wrapping_sub(segment.offset - offset);
            assert_eq!(info.base_in_memory(start, offset, page), Some(info.base + 0x10_0000));
            assert_eq!(info.base_in_memory(start, 1 << 60, page), None);
        }
    }

    #[test]
    fn trampolines_are_found_by_their_names() {
        let program = std::fs::read("../tests/elf/parts.so").unwrap();
        assert_eq!(trampoline_named(&program, "outer"), Some(0x26f..0x278));
        assert_eq!((trampoline_named(&program, "inner"), trampoline_named(&[], "outer")), (None, None));
    }

    #[test]
    fn the_vdso_is_a_program() {
        if vdso_addresses().is_none() {
            eprintln!("skipped: this kernel gives no vdso");
            return;
        }
        let mut modules = Modules::default();
        let number = modules.number(Module::Vdso, &SeenAddresses::default());
        assert!(KnownUnwindInfo::default().of(number, &modules).unwrap().eh_frame.is_some());
    }
}
