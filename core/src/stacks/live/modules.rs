//! Keeps what was mapped, to read unwind information and symbols from.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use object::SegmentFlags;
use object::elf::{ELFMAG, PF_X};
use object::read::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, ReadRef};
use rustc_hash::FxHashMap;

use super::debug_files::MappedProgram;
use super::jit::{JitDump, JitProcess};
use super::kept_file::{KeptFile, KeptFiles};
use super::mapped_file::{SeenAddresses, find};
use super::{base_register, signal_frames};
use crate::files::{self, Identity, Refused};

/// A program with all its debug information may be so long, in bytes; those of browsers have some 4 GiB.
pub(super) const MOST_PROGRAM: u64 = 16 << 30;

/// How the paths begin that the kernel gives to files of `memfd_create`.
const MEMORY_FILE: &str = "/memfd:";

/// The name of all that runs outside of this namespace of process ids: it has no numbers here.
pub(super) const OUTSIDE: &str = "[outside of this PID namespace]";

/// What is read of a program at once, in bytes: unwind information of the largest has some 100 MiB.
const MOST_AT_ONCE: u64 = 512 << 20;

/// The number of a [`Module`], from 0 in the order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ModuleId(pub(super) u32);

/// Code that has a place of its own for symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Module {
    /// The kernel with its modules; places in it are addresses.
    Kernel,
    /// A file; places are offsets in it.
    File {
        /// Path as the process mapped it.
        path: String,
        /// Which file had that name.
        identity: Identity,
    },
    /// The kernel's code in every process; places are offsets from its beginning.
    Vdso,
    /// Memory of a process that no file stands behind; places are addresses.
    Memory {
        /// Id of the process.
        pid: i32,
    },
    /// No mapping holds the address.
    Nowhere,
    /// The mappings of the process aren't known.
    Unseen,
    /// The process is outside of this namespace of process ids.
    Outside,
}

impl Module {
    /// What a mapping of this path is.
    fn of(pid: i32, path: &str, identity: Identity) -> Self {
        let has_no_file = |path: &str| {
            ["//anon", "/dev/zero", "/SYSV", MEMORY_FILE, "/anon_hugepage"].iter().any(|begin| path.starts_with(begin))
        };
        match path {
            "[vdso]" => Self::Vdso,
            path if path.starts_with('/') && !has_no_file(path) => Self::File { path: path.to_owned(), identity },
            _ => Self::Memory { pid },
        }
    }
}

/// A module, and what it is read from.
#[derive(Clone, Debug)]
pub(super) struct OpenModule {
    pub(super) module: Module,
    pub(super) contents: ModuleContents,
    /// Where the paths of the process begin, if the file is found only from there.
    pub(super) root: Option<Arc<OwnedFd>>,
}

impl OpenModule {
    /// The program or library; `None` where it is none, or could be opened no longer.
    pub(super) fn program(&self) -> Option<MappedProgram> {
        let (Module::File { path, .. }, ModuleContents::File(file)) = (&self.module, &self.contents) else {
            return None;
        };
        Some(MappedProgram { file: file.file()?, path: path.clone(), root: self.root.clone() })
    }
}

/// What a module is read from.
#[derive(Clone, Debug)]
pub(super) enum ModuleContents {
    /// A file.
    File(Arc<KeptFile>),
    /// Code that a process made.
    Made(Arc<JitProcess>),
    /// What a process writes of the code that it makes.
    Dump(Arc<JitDump>),
    /// Nothing has to be opened.
    None,
    /// There is nothing at its path, and nobody keeps what was there.
    Gone,
    /// What is there isn't what was mapped, or can't be read.
    Refused(Arc<Refused>),
}

impl ModuleContents {
    /// Whether there should be a file.
    fn is_missing(&self) -> bool {
        matches!(self, Self::Gone | Self::Refused(_))
    }
}

/// All modules that were seen.
#[derive(Debug, Default)]
pub(super) struct Modules {
    all: Vec<KnownModule>,
    numbers: FxHashMap<Module, ModuleId>,
    /// The programs that make code, by their processes.
    makers: FxHashMap<i32, Arc<JitProcess>>,
    /// Whether files in memory are programs.
    memory_files: FxHashMap<Identity, bool>,
    /// The files that are open.
    kept: KeptFiles,
}

#[derive(Debug)]
struct KnownModule {
    opened: OpenModule,
    /// Loaded when it is unwound through first.
    unwind: Option<Option<Arc<UnwindInfo>>>,
    /// The process that it was seen in last, where it couldn't be opened.
    seen_in: i32,
    /// How often it was seen in another one.
    seen_again: u32,
}

impl KnownModule {
    /// Whether to look for its file in this process, too: in the first other one, the second, the fourth and so on.
    fn may_be_found(&mut self, pid: i32) -> bool {
        if !self.opened.contents.is_missing() || self.seen_in == pid {
            return false;
        }
        self.seen_in = pid;
        self.seen_again += 1;
        self.seen_again.is_power_of_two()
    }
}

impl Modules {
    /// The number of a module, which is opened when it is seen first: its process may end soon. One that couldn't be opened has
    /// another number once it can.
    pub(super) fn number(&mut self, module: Module, seen: &SeenAddresses) -> ModuleId {
        let known = self.numbers.get(&module).copied();
        if let Some(number) = known.filter(|number| !self.all[number.0 as usize].may_be_found(seen.pid)) {
            return number;
        }
        let opened = self.open(module, seen);
        if let Some(number) = known.filter(|_| opened.contents.is_missing()) {
            return number;
        }
        let number = ModuleId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.numbers.insert(opened.module.clone(), number);
        self.all.push(KnownModule { opened, unwind: None, seen_in: seen.pid, seen_again: 0 });
        number
    }

    fn open(&mut self, module: Module, seen: &SeenAddresses) -> OpenModule {
        let mut root = None;
        let contents = match &module {
            Module::File { path, identity } => match find(path, *identity, seen) {
                Ok((file, _)) if JitDump::is_called_so(path) => {
                    let maker = self.maker(seen.pid);
                    ModuleContents::Dump(Arc::new(JitDump { maker, path: path.clone(), file }))
                }
                Ok((file, below)) => {
                    root = below.map(Arc::new);
                    let file = Arc::new(KeptFile::new(file, path, root.clone()));
                    self.kept.keep(&file);
                    ModuleContents::File(file)
                }
                Err(refused) if refused.is_absence() => ModuleContents::Gone,
                Err(refused) => ModuleContents::Refused(Arc::new(refused)),
            },
            Module::Memory { pid } => ModuleContents::Made(self.maker(*pid)),
            Module::Kernel | Module::Vdso | Module::Nowhere | Module::Unseen | Module::Outside => ModuleContents::None,
        };
        OpenModule { module, contents, root }
    }

    /// What a mapping of this path is. A file in memory is one if somebody put a program there, else code that the process makes.
    pub(super) fn mapped(&mut self, path: &str, identity: Identity, seen: &SeenAddresses) -> Module {
        let holds_program = || {
            let mut magic = [0; ELFMAG.len()];
            let found = find(path, identity, seen);
            found.is_ok_and(|(file, _)| file.read_exact_at(&mut magic, 0).is_ok() && magic == ELFMAG)
        };
        if path.starts_with(MEMORY_FILE) && *self.memory_files.entry(identity).or_insert_with(holds_program) {
            return Module::File { path: path.to_owned(), identity };
        }
        Module::of(seen.pid, path, identity)
    }

    /// A process is another one now: what it makes has names of its own.
    pub(super) fn forget_made(&mut self, pid: i32) {
        self.numbers.remove(&Module::Memory { pid });
        self.makers.remove(&pid);
    }

    fn maker(&mut self, pid: i32) -> Arc<JitProcess> {
        Arc::clone(self.makers.entry(pid).or_insert_with(|| Arc::new(JitProcess::of(pid))))
    }

    /// The modules from a number on.
    pub(super) fn since(&self, first: usize) -> impl Iterator<Item = &OpenModule> {
        self.all.iter().skip(first).map(|known| &known.opened)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// How a module is called: its path, if it has one.
    pub(super) fn name(&self, id: ModuleId) -> String {
        match &self.all[id.0 as usize].opened.module {
            Module::File { path, .. } => path.clone(),
            Module::Kernel => "[kernel]".into(),
            Module::Vdso => "[vdso]".into(),
            Module::Memory { .. } => "code that was made at run time".into(),
            Module::Nowhere | Module::Unseen => "[unknown]".into(),
            Module::Outside => OUTSIDE.into(),
        }
    }

    /// Whether a module is code that a process made while it ran.
    pub(super) fn is_made(&self, id: ModuleId) -> bool {
        matches!(self.all[id.0 as usize].opened.module, Module::Memory { .. })
    }

    #[cfg(test)]
    pub(super) fn module(&self, id: ModuleId) -> &Module {
        &self.all[id.0 as usize].opened.module
    }

    /// What is needed to unwind through a module.
    pub(super) fn unwind_info(&mut self, id: ModuleId) -> Option<Arc<UnwindInfo>> {
        let KnownModule { opened, unwind, .. } = &mut self.all[id.0 as usize];
        unwind.get_or_insert_with(|| UnwindInfo::load(opened).map(Arc::new)).clone()
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
                let code = vdso()?;
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

    /// Where the first byte of the file lies in a process that has `offset` of it at `start`. Mappings begin at pages of this size;
    /// segments needn't.
    pub(super) fn base_in_memory(&self, start: u64, offset: u64, page: u64) -> Option<u64> {
        let holds = |segment: &&ModuleSegment| {
            (segment.offset / page * page..segment.offset.saturating_add(segment.size)).contains(&offset)
        };
        let segment = self.code.iter().find(holds)?;
        let address = segment.address.wrapping_sub(segment.offset).wrapping_add(offset);
        Some(start.wrapping_sub(address).wrapping_add(self.base))
    }
}

/// A program of which so much at once is read that no length in it, whatever it says, takes all memory.
#[derive(Clone, Copy)]
pub(super) struct AtOnce<'a>(pub(super) &'a ReadCache<File>);

impl<'a> ReadRef<'a> for AtOnce<'a> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size > MOST_AT_ONCE { Err(()) } else { self.0.read_bytes_at(offset, size) }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.0.read_bytes_at_until(range, delimiter)
    }
}

/// Where the kernel's code lies in this process; it is the same code in others.
pub(super) fn vdso_addresses() -> Option<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().filter_map(super::maps::MapsLine::parse).find(|line| line.path == "[vdso]")?;
    Some(line.start..line.end)
}

/// A trampoline of two instructions by its symbol, and the byte before it, where a caller is looked up.
fn trampoline_named(code: &[u8], name: &str) -> Option<Range<u64>> {
    let file = object::File::parse(code).ok()?;
    let start = file.dynamic_symbols().find(|symbol| symbol.name() == Ok(name))?.address();
    Some(start.checked_sub(1)?..start.checked_add(8)?)
}

fn vdso() -> Option<Vec<u8>> {
    let addresses = vdso_addresses()?;
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(addresses.start)).ok()?;
    let mut code = Vec::new();
    memory.take(addresses.end - addresses.start).read_to_end(&mut code).ok()?;
    Some(code)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is how a test fails, and a skip says why")]

    use super::*;

    #[test]
    fn paths_of_mappings() {
        let identity = Identity { device: 1, inode: 7 };
        assert_eq!(Module::of(1, "[vdso]", identity), Module::Vdso);
        assert_eq!(Module::of(1, "/bin/a", identity), Module::File { path: "/bin/a".into(), identity });
        for path in ["", "[heap]", "//anon", "/dev/zero (deleted)", "/memfd:jit (deleted)"] {
            assert_eq!(Module::of(1, path, identity), Module::Memory { pid: 1 }, "{path}");
        }
    }

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
        let info = modules.unwind_info(number).unwrap();
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
    fn what_is_gone_has_nothing_to_read() {
        let mut modules = Modules::default();
        let identity = Identity { device: 0, inode: 1 };
        let gone = modules.number(Module::File { path: "/nonexistent".into(), identity }, &SeenAddresses::default());
        assert!(modules.unwind_info(gone).is_none());
        assert!(matches!(modules.since(0).next().unwrap().contents, ModuleContents::Gone));
        assert!(modules.since(modules.len()).next().is_none());
    }

    #[test]
    fn what_is_gone_for_one_process_is_looked_for_in_others_now_and_then() {
        let path = std::env::temp_dir().join(format!("perfprop-modules-{}", std::process::id()));
        let module = Module::File { path: path.display().to_string(), identity: Identity::default() };
        let mut modules = Modules::default();
        // No process has a number like these.
        let mut in_process = |number: i32| {
            modules.number(module.clone(), &SeenAddresses { pid: i32::MAX - number, ..SeenAddresses::default() })
        };
        let gone = in_process(0);
        assert_eq!([1, 2].map(&mut in_process), [gone; 2]);
        fs::write(&path, "x").unwrap();
        // Not in the same one, and not in the next.
        assert_eq!([2, 2, 3].map(&mut in_process), [gone; 3]);
        let found = in_process(4);
        assert_eq!([5, 6].map(&mut in_process), [found; 2]);
        assert_ne!(found, gone);
        fs::remove_file(path).unwrap();
        let contents: Vec<_> = modules.since(0).map(|opened| &opened.contents).collect();
        assert!(matches!(contents[..], [ModuleContents::Gone, ModuleContents::File(_)]));
    }

    #[test]
    fn a_process_that_executes_makes_code_as_another_program() {
        let mut modules = Modules::default();
        let pid = std::process::id().cast_signed();
        for _ in 0..2 {
            modules.number(Module::Memory { pid }, &SeenAddresses::default());
            modules.forget_made(pid);
        }
        let contents: Vec<_> = modules.since(0).map(|opened| &opened.contents).collect();
        let [ModuleContents::Made(first), ModuleContents::Made(second)] = contents[..] else { panic!("{contents:?}") };
        assert_ne!(first.key(), second.key());
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
        assert!(modules.unwind_info(number).unwrap().eh_frame.is_some());
    }
}
