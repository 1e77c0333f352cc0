//! What mappings name in, files to read unwind information and symbols from out.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::SegmentFlags;
use object::elf::PF_X;
use object::read::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef};
use rustc_hash::FxHashMap;

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
        /// As the process named it.
        path: String,
        /// 0 where it isn't known.
        inode: u64,
    },
    /// The kernel's code in every process; places are offsets from its beginning.
    Vdso,
    /// Memory of a process that no file stands behind; places are addresses.
    Memory {
        /// The process.
        pid: i32,
    },
    /// No mapping at all.
    Nowhere,
}

impl Module {
    /// What a mapping of this path is.
    pub(super) fn of(pid: i32, path: &str, inode: u64) -> Self {
        let has_no_file = |path: &str| {
            ["//anon", "/dev/zero", "/SYSV", "/memfd:", "/anon_hugepage"].iter().any(|begin| path.starts_with(begin))
        };
        match path {
            "[vdso]" => Self::Vdso,
            path if path.starts_with('/') && !has_no_file(path) => Self::File { path: path.to_owned(), inode },
            _ => Self::Memory { pid },
        }
    }
}

/// A module, and where its contents can be read.
#[derive(Clone, Debug)]
pub(super) struct Opened {
    pub(super) module: Module,
    /// The path to read; `None` where there is nothing.
    pub(super) readable: Option<PathBuf>,
    /// Keeps a path below `/proc/self/fd` readable.
    _file: Option<Arc<File>>,
}

/// All modules that were seen.
#[derive(Debug, Default)]
pub(super) struct Modules {
    all: Vec<Known>,
    numbers: FxHashMap<Module, ModuleId>,
}

#[derive(Debug)]
struct Known {
    opened: Opened,
    /// Loaded when it is unwound through first.
    unwind: Option<Option<Arc<UnwindInfo>>>,
}

impl Modules {
    /// The number of a module, which is opened when it is seen first: its process may end soon.
    pub(super) fn number(&mut self, module: Module, seen: &Seen) -> ModuleId {
        if let Some(&number) = self.numbers.get(&module) {
            return number;
        }
        let number = ModuleId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.numbers.insert(module.clone(), number);
        self.all.push(Known { opened: open(module, seen), unwind: None });
        number
    }

    /// The modules from a number on.
    pub(super) fn since(&self, first: usize) -> impl Iterator<Item = &Opened> {
        self.all.iter().skip(first).map(|known| &known.opened)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    #[cfg(test)]
    pub(super) fn module(&self, id: ModuleId) -> &Module {
        &self.all[id.0 as usize].opened.module
    }

    /// What is needed to unwind through a module.
    pub(super) fn unwind_info(&mut self, id: ModuleId) -> Option<Arc<UnwindInfo>> {
        let Known { opened, unwind } = &mut self.all[id.0 as usize];
        unwind.get_or_insert_with(|| UnwindInfo::load(opened).map(Arc::new)).clone()
    }
}

/// Where a module was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) pid: i32,
    pub(super) addresses: Range<u64>,
}

fn open(module: Module, seen: &Seen) -> Opened {
    let (readable, file) = match &module {
        Module::File { path, inode } => find(Path::new(path), *inode, seen),
        Module::Kernel | Module::Vdso | Module::Memory { .. } | Module::Nowhere => (None, None),
    };
    Opened { module, readable, _file: file.map(Arc::new) }
}

/// The file of a mapping. Its path may mean another file by now, or in another mount namespace.
fn find(path: &Path, inode: u64, seen: &Seen) -> (Option<PathBuf>, Option<File>) {
    let is_same = |path: &Path| fs::metadata(path).is_ok_and(|found| inode == 0 || found.ino() == inode);
    if is_same(path) {
        return (Some(path.to_owned()), None);
    }
    let (pid, Range { start, end }) = (seen.pid, &seen.addresses);
    let of_process = [
        PathBuf::from(format!("/proc/{pid}/map_files/{start:x}-{end:x}")),
        PathBuf::from(format!("/proc/{pid}/root{}", path.display())),
    ];
    if let Some(file) = of_process.iter().find_map(|path| File::open(path).ok()) {
        // The process may end before the file is needed.
        return (Some(PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))), Some(file));
    }
    // File systems in layers show one inode to the kernel and another one to programs.
    (path.exists().then(|| path.to_owned()), None)
}

/// The parts of a program or library that unwinding needs.
#[derive(Debug)]
pub(super) struct UnwindInfo {
    /// The address that the file gives to its first byte.
    pub(super) base: u64,
    /// Those that hold code.
    code: Vec<Segment>,
    pub(super) text: Option<Range<u64>>,
    pub(super) got: Option<Range<u64>>,
    pub(super) eh_frame: Option<Section>,
    pub(super) eh_frame_hdr: Option<Section>,
    pub(super) debug_frame: Option<Section>,
}

#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) addresses: Range<u64>,
    pub(super) data: Arc<[u8]>,
}

#[derive(Debug)]
struct Segment {
    address: u64,
    offset: u64,
    size: u64,
}

impl UnwindInfo {
    fn load(opened: &Opened) -> Option<Self> {
        match opened.module {
            Module::Vdso => Self::parse(&vdso()?[..]),
            _ => Self::parse(&ReadCache::new(File::open(opened.readable.as_ref()?).ok()?)),
        }
    }

    fn parse<'data>(data: impl ReadRef<'data>) -> Option<Self> {
        let file = object::File::parse(data).ok()?;
        let range =
            |name| file.section_by_name(name).map(|section| section.address()..section.address() + section.size());
        let section = |name| {
            let section = file.section_by_name(name)?;
            let addresses = section.address()..section.address().checked_add(section.size())?;
            let data = section.data().ok().filter(|data| !data.is_empty())?;
            Some(Section { addresses, data: data.into() })
        };
        // The first page of the code may be the last one of what lies before it in the file.
        let is_code = |segment: &object::read::Segment<'data, '_, _>| matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
        let code = file.segments().filter(is_code).map(|segment| {
            let (offset, size) = segment.file_range();
            Segment { address: segment.address(), offset, size }
        });
        let eh_frame = section(".eh_frame");
        let debug_frame = if eh_frame.is_none() { section(".debug_frame") } else { None };
        Some(Self {
            base: file.segments().map(|segment| segment.address()).min()?,
            code: code.collect(),
            text: range(".text"),
            got: range(".got"),
            eh_frame,
            eh_frame_hdr: section(".eh_frame_hdr"),
            debug_frame,
        })
    }

    /// Where the first byte of the file lies in a process that has `offset` of it at `start`.
    pub(super) fn base_in_memory(&self, start: u64, offset: u64) -> Option<u64> {
        /// Mappings begin at pages; segments needn't.
        const PAGE: u64 = 4096;
        let holds =
            |segment: &&Segment| (segment.offset / PAGE * PAGE..segment.offset + segment.size).contains(&offset);
        let segment = self.code.iter().find(holds)?;
        let address = segment.address.wrapping_sub(segment.offset).wrapping_add(offset);
        Some(start.wrapping_sub(address).wrapping_add(self.base))
    }
}

/// Where the kernel's code lies in this process; it is the same code in others.
pub(super) fn vdso_addresses() -> Option<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().filter_map(super::maps::MapsLine::parse).find(|line| line.path == "[vdso]")?;
    Some(line.start..line.end)
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
        assert_eq!(Module::of(1, "[vdso]", 0), Module::Vdso);
        assert_eq!(Module::of(1, "/bin/a", 7), Module::File { path: "/bin/a".into(), inode: 7 });
        for path in ["", "[heap]", "//anon", "/dev/zero (deleted)", "/memfd:jit (deleted)"] {
            assert_eq!(Module::of(1, path, 0), Module::Memory { pid: 1 }, "{path}");
        }
    }

    #[test]
    fn this_program_is_found_and_has_unwind_information() {
        let path = std::env::current_exe().unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let mut modules = Modules::default();
        let module = Module::File { path: path.display().to_string(), inode };
        let number = modules.number(module.clone(), &Seen::default());
        assert_eq!(modules.number(module, &Seen::default()), number);
        assert_eq!(modules.since(0).next().unwrap().readable.as_ref(), Some(&path));
        let info = modules.unwind_info(number).unwrap();
        assert!(info.eh_frame.is_some());
        // A segment that is mapped where the file wants it has its base there, too.
        let segment = info.code.first().unwrap();
        let offset = segment.offset / 4096 * 4096;
        let start = segment.address - (segment.offset - offset) + 0x10_0000;
        assert_eq!(info.base_in_memory(start, offset), Some(info.base + 0x10_0000));
        assert_eq!(info.base_in_memory(start, 1 << 60), None);
    }

    #[test]
    fn what_is_gone_has_nothing_to_read() {
        let mut modules = Modules::default();
        let gone = modules.number(Module::File { path: "/nonexistent".into(), inode: 1 }, &Seen::default());
        assert!(modules.unwind_info(gone).is_none());
        assert_eq!(modules.since(0).next().unwrap().readable, None);
        assert!(modules.since(modules.len()).next().is_none());
    }

    #[test]
    fn the_vdso_is_a_program() {
        if vdso_addresses().is_none() {
            eprintln!("skipped: this kernel gives no vdso");
            return;
        }
        let mut modules = Modules::default();
        let number = modules.number(Module::Vdso, &Seen::default());
        assert!(modules.unwind_info(number).unwrap().eh_frame.is_some());
    }
}
