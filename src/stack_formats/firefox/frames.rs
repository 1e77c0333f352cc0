//! Gives the frames of a tree to the tracks of a profile for Firefox.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use fxprof_processed_profile::debugid::DebugId;
use fxprof_processed_profile::{
    CategoryColor, CategoryPairHandle, Frame as Place, FrameFlags, FrameHandle, FrameInfo, LibraryHandle, LibraryInfo,
    Profile, StackHandle, Symbol, SymbolTable, ThreadHandle,
};

use crate::profile::{Frame, FrameId, FrameKind, NodeId, Tree};

/// The frames of a tree, and the files that they are in.
pub(super) struct FrameTable<'a> {
    tree: &'a Tree,
    user: CategoryPairHandle,
    kernel: CategoryPairHandle,
    process: CategoryPairHandle,
    /// The files of which offsets are known, with the name of what is at each; `None` where several functions are, as one was
    /// inlined into another.
    libraries: HashMap<&'a str, (LibraryHandle, BTreeMap<u32, Option<&'a str>>)>,
}

impl<'a> FrameTable<'a> {
    pub(super) fn new(tree: &'a Tree, profile: &mut Profile) -> Self {
        let mut named: BTreeMap<&str, BTreeMap<u32, Option<&str>>> = BTreeMap::new();
        for frame in tree.frames() {
            let Some(offset) = offset(&frame) else { continue };
            let names = named.entry(frame.module).or_default();
            let name = names.entry(offset).or_insert(Some(frame.name));
            *name = name.filter(|name| *name == frame.name);
        }
        let libraries = named.into_iter().map(|(module, names)| (module, (library(module, &names, profile), names)));
        Self {
            tree,
            libraries: libraries.collect(),
            user: profile.add_category("User", CategoryColor::Yellow).into(),
            kernel: profile.add_category("Kernel", CategoryColor::Orange).into(),
            process: profile.add_category("Process", CategoryColor::Gray).into(),
        }
    }

    fn frame(&self, id: FrameId, thread: ThreadHandle, profile: &mut Profile) -> FrameHandle {
        let frame = self.tree.frame_of(id);
        let category_pair = match frame.kind {
            FrameKind::Process => self.process,
            _ if frame.is_kernel() => self.kernel,
            _ => self.user,
        };
        let place = self.place(&frame).unwrap_or_else(|| Place::Label(profile.intern_string(&label(&frame))));
        profile.intern_frame(thread, FrameInfo { frame: place, category_pair, flags: FrameFlags::empty() })
    }

    /// Where a frame is in its file, if its name is the only one there.
    fn place(&self, frame: &Frame<'_>) -> Option<Place> {
        let offset = offset(frame)?;
        let (library, names) = self.libraries.get(frame.module)?;
        // Of a caller it is within the instruction that called.
        let place = Place::RelativeAddressFromAdjustedReturnAddress(*library, offset);
        names.get(&offset)?.is_some().then_some(place)
    }
}

fn offset(frame: &Frame<'_>) -> Option<u32> {
    let offset = frame.offset.filter(|_| !frame.module.is_empty())?;
    u32::try_from(offset).ok()
}

/// A file, with the names of what is known in it: nobody need look for others.
fn library(module: &str, names: &BTreeMap<u32, Option<&str>>, profile: &mut Profile) -> LibraryHandle {
    let file = module.rsplit('/').next().unwrap_or_default().to_owned();
    let symbol = |(&address, name): (&u32, &Option<&str>)| {
        name.map(|name| Symbol { address, size: Some(1), name: name.to_owned() })
    };
    profile.add_lib(LibraryInfo {
        debug_name: file.clone(),
        name: file,
        path: module.to_owned(),
        debug_path: module.to_owned(),
        debug_id: DebugId::nil(),
        code_id: None,
        arch: None,
        symbol_table: Some(Arc::new(SymbolTable::new(names.iter().filter_map(symbol).collect()))),
    })
}

fn label(frame: &Frame<'_>) -> String {
    let place = match (frame.file, frame.module) {
        ("", "") => String::new(),
        ("", module) => format!(" ({module})"),
        (file, _) => match frame.line {
            Some(line) => format!(" ({file}:{line})"),
            None => format!(" ({file})"),
        },
    };
    format!("{}{place}", frame.name)
}

/// The frames and stacks that a track has.
pub(super) struct ThreadFrames<'a> {
    thread: ThreadHandle,
    table: &'a FrameTable<'a>,
    /// Whether it is the track of a thread, which need not stand above its functions.
    is_thread: bool,
    frames: HashMap<FrameId, FrameHandle>,
    stacks: HashMap<NodeId, StackHandle>,
}

impl<'a> ThreadFrames<'a> {
    /// Of a track on which all threads are.
    pub(super) fn of_sums(thread: ThreadHandle, table: &'a FrameTable<'a>) -> Self {
        Self { thread, table, is_thread: false, frames: HashMap::new(), stacks: HashMap::new() }
    }

    /// Of a thread's own track.
    pub(super) fn of_thread(thread: ThreadHandle, table: &'a FrameTable<'a>) -> Self {
        Self { is_thread: true, ..Self::of_sums(thread, table) }
    }

    /// The stack of a path. What stands above all is no frame, but for what was counted on itself.
    pub(super) fn stack(&mut self, profile: &mut Profile, node: NodeId) -> Option<StackHandle> {
        let (mut below, mut stack, mut next) = (Vec::new(), None, Some(node));
        while let Some(at) = next.filter(|&at| at == node || !self.is_above(at)) {
            stack = self.stacks.get(&at).copied();
            if stack.is_some() {
                break;
            }
            below.push(at);
            next = self.table.tree.node(at).parent();
        }
        for at in below.into_iter().rev() {
            let frame = self.frame(profile, self.table.tree.node(at).frame_id());
            let made = profile.intern_stack(self.thread, stack, frame);
            self.stacks.insert(at, made);
            stack = Some(made);
        }
        stack
    }

    fn is_above(&self, node: NodeId) -> bool {
        let node = self.table.tree.node(node);
        node.depth() == 0 || self.is_thread && node.depth() == 1 && node.frame().kind == FrameKind::Process
    }

    fn frame(&mut self, profile: &mut Profile, id: FrameId) -> FrameHandle {
        let Self { thread, table, .. } = *self;
        *self.frames.entry(id).or_insert_with(|| table.frame(id, thread, profile))
    }
}
