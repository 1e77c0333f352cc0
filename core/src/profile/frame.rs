//! Numbers places in code: the same place always has the same number.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

/// What a frame stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// A function, or a block of an interpreted program.
    #[default]
    Function,
    /// A process or a thread, above its functions.
    Process,
    /// A part of a program that it names itself, above the functions that were sampled in it.
    Region,
    /// What many small subtrees became.
    Other,
}

/// A place in code. Fields that aren't known are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Kind of frame.
    pub kind: FrameKind,
    /// The function's name, as people read it. Not escaped: pass it through [`crate::names::shown`]
    /// before a terminal sees it.
    pub name: &'a str,
    /// The program, library or kernel module that holds it.
    pub module: &'a str,
    /// Path of the source file; empty where it isn't known.
    pub file: &'a str,
    /// The line in the source file.
    pub line: Option<NonZeroU32>,
    /// Where the code is in the module's file, in bytes.
    pub offset: Option<u64>,
}

impl<'a> Frame<'a> {
    /// A function of which only the name is known.
    pub fn function(name: &'a str) -> Self {
        Self { name, ..Self::default() }
    }

    /// Whether the kernel's code is meant, by the name of the module.
    pub fn is_kernel(&self) -> bool {
        is_kernel(self.module)
    }
}

/// Whether a module is the kernel or one of its modules: `[kernel.kallsyms]`, `[ext4]`,
/// `/lib/modules/.../ext4.ko`, `vmlinux`. Pages of a process in brackets, such as `[vdso]`, are not: programs run
/// them themselves.
pub(crate) fn is_kernel(module: &str) -> bool {
    const PAGES: [&str; 8] = ["[unknown]", "[vdso", "[vsyscall]", "[vvar", "[heap]", "[stack", "[anon", "[uprobes]"];
    let file = module.rsplit('/').next().unwrap_or_default();
    let is_image = file == "vmlinux" || file.strip_prefix("vmlinux-").is_some_and(|version| !version.contains(' '));
    let is_page = PAGES.iter().any(|page| module.starts_with(page));
    (module.starts_with('[') || module.ends_with(".ko") || is_image) && !is_page
}

/// The number of a frame. Numbers are given in the order in which frames come; reports list children
/// in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(pub(super) u32);

impl FrameId {
    /// The frame `[root]` above all others.
    pub const ROOT: Self = Self(0);

    /// Place of the frame among all frames of the tree.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of a text.
type Text = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FrameKey {
    kind: FrameKind,
    name: Text,
    module: Text,
    file: Text,
    line: Option<NonZeroU32>,
    offset: Option<u64>,
}

/// All frames of a tree.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    texts: Vec<Arc<str>>,
    text_ids: HashMap<Arc<str>, Text>,
    keys: Vec<FrameKey>,
    ids: HashMap<FrameKey, FrameId, FxBuildHasher>,
}

impl Frames {
    /// A table with the root alone.
    pub(super) fn new() -> Self {
        let mut frames =
            Self { texts: Vec::new(), text_ids: HashMap::new(), keys: Vec::new(), ids: HashMap::default() };
        frames.id(&Frame::function("[root]"));
        frames
    }

    pub(super) fn id(&mut self, frame: &Frame<'_>) -> FrameId {
        let [name, module, file] = [frame.name, frame.module, frame.file].map(|text| self.text(text));
        let key = FrameKey { kind: frame.kind, name, module, file, line: frame.line, offset: frame.offset };
        let next = FrameId(self.keys.len() as u32);
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.keys.push(key);
        }
        id
    }

    pub(super) fn get(&self, id: FrameId) -> Frame<'_> {
        let FrameKey { kind, name, module, file, line, offset } = self.keys[id.index()];
        let text = |text: Text| &*self.texts[text as usize];
        Frame { kind, name: text(name), module: text(module), file: text(file), line, offset }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    fn text(&mut self, text: &str) -> Text {
        if let Some(&id) = self.text_ids.get(text) {
            return id;
        }
        let id = self.texts.len() as Text;
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.text_ids.insert(text, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_place_has_one_number() {
        let mut frames = Frames::new();
        assert_eq!(frames.id(&Frame::function("[root]")), FrameId::ROOT);
        let place = Frame { module: "libc.so", line: NonZeroU32::new(7), ..Frame::function("f") };
        let id = frames.id(&place);
        assert_eq!(frames.id(&place), id);
        assert_eq!(frames.get(id), place);
        for other in [
            Frame { line: None, ..place },
            Frame { offset: Some(7), ..place },
            Frame { module: "", ..place },
            Frame { file: "libc.so", ..place },
            Frame { kind: FrameKind::Process, ..place },
        ] {
            assert_ne!(frames.id(&other), id, "{other:?}");
        }
        assert_eq!(frames.len(), 7);
    }

    #[test]
    fn the_kernel_is_known_by_its_modules_names() {
        for module in ["[kernel.kallsyms]", "[ext4]", "/lib/modules/6.1/ext4.ko", "/boot/vmlinux", "vmlinux-6.1.0"] {
            assert!(is_kernel(module), "{module}");
        }
        let pages = ["[vdso]", "[vsyscall]", "[heap]", "[stack]", "[anon:x]"];
        for module in ["", "[unknown]", "/usr/bin/vmlinux-tool/x", "/lib/libc.so.6"].into_iter().chain(pages) {
            assert!(!is_kernel(module), "{module}");
        }
    }
}
