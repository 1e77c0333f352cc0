//! Keeps what was mapped, to read unwind information and symbols from.

use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use object::elf::ELFMAG;
use rustc_hash::FxHashMap;

use super::kept_file::{KeptFile, KeptFiles};
use super::mapped_file::{SeenAddresses, find};
use super::program_file::MappedProgram;
use crate::files::{Identity, Refused};
use crate::stacks::live::jit::{JitDump, JitProcess};

/// How the paths begin that the kernel gives to files of `memfd_create`.
const MEMORY_FILE: &str = "/memfd:";

/// The name of all that runs outside of this namespace of process ids: it has no numbers here.
pub(in crate::stacks::live) const OUTSIDE: &str = "[outside of this PID namespace]";

/// The number of a [`Module`], from 0 in the order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::stacks::live) struct ModuleId(pub(in crate::stacks::live) u32);

/// Code that has a place of its own for symbols.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::stacks::live) enum Module {
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
pub(in crate::stacks::live) struct OpenModule {
    pub(in crate::stacks::live) module: Module,
    pub(in crate::stacks::live) contents: ModuleContents,
    /// Where the paths of the process begin, if the file is found only from there.
    pub(in crate::stacks::live) root: Option<Arc<OwnedFd>>,
}

impl OpenModule {
    /// The program or library; `None` where it is none, or could be opened no longer.
    pub(in crate::stacks::live) fn program(&self) -> Option<MappedProgram> {
        let (Module::File { path, .. }, ModuleContents::File(file)) = (&self.module, &self.contents) else {
            return None;
        };
        Some(MappedProgram { file: file.file()?, path: path.clone(), root: self.root.clone() })
    }
}

/// What a module is read from.
#[derive(Clone, Debug)]
pub(in crate::stacks::live) enum ModuleContents {
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
pub(in crate::stacks::live) struct Modules {
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
    /// The number of a module, which is opened when it is seen first: its process may end soon. One that couldn't be
    /// opened has another number once it can.
    pub(in crate::stacks::live) fn number(&mut self, module: Module, seen: &SeenAddresses) -> ModuleId {
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
        self.all.push(KnownModule { opened, seen_in: seen.pid, seen_again: 0 });
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

    /// What a mapping of this path is. A file in memory is one if somebody put a program there, else code that the
    /// process makes.
    pub(in crate::stacks::live) fn mapped(&mut self, path: &str, identity: Identity, seen: &SeenAddresses) -> Module {
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
    pub(in crate::stacks::live) fn forget_made(&mut self, pid: i32) {
        self.numbers.remove(&Module::Memory { pid });
        self.makers.remove(&pid);
    }

    fn maker(&mut self, pid: i32) -> Arc<JitProcess> {
        Arc::clone(self.makers.entry(pid).or_insert_with(|| Arc::new(JitProcess::of(pid))))
    }

    /// The modules from a number on.
    pub(in crate::stacks::live) fn since(&self, first: usize) -> impl Iterator<Item = &OpenModule> {
        self.all.iter().skip(first).map(|known| &known.opened)
    }

    pub(in crate::stacks::live) fn len(&self) -> usize {
        self.all.len()
    }

    /// A module, and what it is read from.
    pub(in crate::stacks::live) fn opened(&self, id: ModuleId) -> &OpenModule {
        &self.all[id.0 as usize].opened
    }

    /// How a module is called: its path, if it has one.
    pub(in crate::stacks::live) fn name(&self, id: ModuleId) -> String {
        match &self.opened(id).module {
            Module::File { path, .. } => path.clone(),
            Module::Kernel => "[kernel]".into(),
            Module::Vdso => "[vdso]".into(),
            Module::Memory { .. } => "code that was made at run time".into(),
            Module::Nowhere | Module::Unseen => "[unknown]".into(),
            Module::Outside => OUTSIDE.into(),
        }
    }

    /// Whether a module is code that a process made while it ran.
    pub(in crate::stacks::live) fn is_made(&self, id: ModuleId) -> bool {
        matches!(self.opened(id).module, Module::Memory { .. })
    }

    #[cfg(test)]
    pub(in crate::stacks::live) fn module(&self, id: ModuleId) -> &Module {
        &self.opened(id).module
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

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
    fn what_is_gone_has_nothing_to_read() {
        let mut modules = Modules::default();
        let identity = Identity { device: 0, inode: 1 };
        let gone = modules.number(Module::File { path: "/nonexistent".into(), identity }, &SeenAddresses::default());
        assert!(modules.opened(gone).program().is_none());
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
}
