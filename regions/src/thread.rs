//! Enters and leaves regions on a thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Once;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::clock::now;
use crate::histogram::bucket;
use crate::layout::{MARKS, Node};
use crate::table::{Table, generation, grow, grow_float, lower, raise, table};

thread_local! {
    static THREAD: RefCell<Option<Thread>> = const { RefCell::new(None) };
}

/// Why a region wasn't entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nothing is recorded.
    Off,
    /// One of this name is open on this thread.
    AlreadyOpen,
}

/// What a call of a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The usual one.
    Plain,
    /// One that records operations for a run backwards.
    Recorded,
    /// One that went on for so many nanoseconds before it was suspended.
    Resumed(u64),
}

/// A region that was entered and is to be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) name: u32,
    generation: u32,
}

impl Entered {
    /// Both as a number that isn't 0, for other languages.
    pub(crate) fn handle(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.name)
    }

    /// What a number stands for; `None` for 0.
    pub(crate) fn of_handle(handle: u64) -> Option<Self> {
        let name = handle as u32;
        (name != 0).then_some(Self { name, generation: (handle >> 32) as u32 })
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    name: u32,
    node: u32,
    call: Call,
    start: u64,
}

/// Nodes by parent and name, of the last regions that were entered: a place each.
const RECENT: usize = 64;

/// What this thread has open, and where it counts.
#[derive(Debug)]
struct Thread {
    table: &'static Table,
    generation: u32,
    /// `None` where all slots are taken.
    slot: Option<u32>,
    open: Vec<Open>,
    /// A bit for each name: whether it is open.
    is_open: Vec<u64>,
    phase: u32,
    recent: [(u32, u32, u32); RECENT],
    nodes: HashMap<(u32, u32, u32), u32>,
    /// The node in which each name was open last.
    last: HashMap<u32, u32>,
    /// Numbers of names that are known only when the program runs.
    names: HashMap<Box<str>, u32>,
}

impl Thread {
    fn new(table: &'static Table) -> Self {
        Self {
            table,
            generation: generation(),
            slot: table.begin_thread(),
            open: Vec::with_capacity(16),
            is_open: Vec::new(),
            phase: 0,
            recent: [(0, 0, 0); RECENT],
            nodes: HashMap::new(),
            last: HashMap::new(),
            names: HashMap::new(),
        }
    }

    /// The number of a name, without asking other threads twice.
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let number = self.table.name(name);
        self.names.insert(name.into(), number);
        number
    }

    fn is_open(&self, name: u32) -> bool {
        self.is_open.get(name as usize / 64).is_some_and(|bits| bits >> (name % 64) & 1 != 0)
    }

    fn set_open(&mut self, name: u32, open: bool) {
        let place = name as usize / 64;
        if place >= self.is_open.len() {
            self.is_open.resize(place + 1, 0);
        }
        let bit = 1 << (name % 64);
        if open { self.is_open[place] |= bit } else { self.is_open[place] &= !bit }
    }

    /// The node of a name below what is open; 0 where there is no room.
    #[inline]
    fn node(&mut self, name: u32) -> u32 {
        let parent = self.open.last().map_or(0, |open| open.node);
        let phase = self.table.memory.header().phase.load(Relaxed);
        if phase != self.phase {
            (self.phase, self.recent) = (phase, [(0, 0, 0); RECENT]);
        }
        let place = (parent.wrapping_mul(31) ^ name) as usize % RECENT;
        let (of_parent, of_name, node) = self.recent[place];
        if node != 0 && (of_parent, of_name) == (parent, name) {
            return node;
        }
        let node = self.find(parent, name);
        self.recent[place] = (parent, name, node);
        node
    }

    #[cold]
    fn find(&mut self, parent: u32, name: u32) -> u32 {
        let key = (parent, name, self.phase);
        if let Some(&node) = self.nodes.get(&key) {
            return node;
        }
        let node = self.slot.and_then(|slot| self.table.node(slot, key)).unwrap_or(0);
        self.nodes.insert(key, node);
        node
    }

    #[inline]
    fn enter(&mut self, name: u32, call: Call) -> Result<Entered, Refusal> {
        if self.is_open(name) {
            return Err(Refusal::AlreadyOpen);
        }
        let node = self.node(name);
        self.set_open(name, true);
        self.open.push(Open { name, node, call, start: 0 });
        self.show(node);
        let start = now();
        self.mark(start, node, 1);
        if let Some(open) = self.open.last_mut() {
            open.start = start;
        }
        Ok(Entered { name, generation: self.generation })
    }

    /// Leaves a region; gives its time with what it had before.
    #[inline]
    fn leave(&mut self, name: u32, end: u64) -> Option<(Open, u64)> {
        let place = self.open.iter().rposition(|open| open.name == name)?;
        let open = self.open.remove(place);
        self.set_open(name, false);
        self.mark(end, open.node, 0);
        let top = self.open.last().map_or(0, |open| open.node);
        self.show(top);
        let before = if let Call::Resumed(before) = open.call { before } else { 0 };
        Some((open, end.saturating_sub(open.start) + before))
    }

    fn close(&mut self, name: u32, end: u64) {
        let Some((open, ns)) = self.leave(name, end) else { return };
        if open.node == 0 {
            return self.table.lose(1);
        }
        let node = self.table.memory.node(open.node);
        count(node, ns);
        if open.call == Call::Recorded {
            grow(&node.recorded, 1);
            self.last.insert(name, open.node);
        }
    }

    fn show(&self, node: u32) {
        if let Some(slot) = self.slot {
            self.table.show_open(slot, self.open.len(), node);
        }
    }

    #[inline]
    fn mark(&self, time: u64, node: u32, enter: u64) {
        let Some(slot) = self.slot else { return };
        let thread = self.table.memory.thread(slot);
        let marked = thread.marked.load(Relaxed);
        let mark = &thread.marks[marked as usize % MARKS];
        mark.time_ns.store(time, Relaxed);
        mark.node_and_enter.store(2 * u64::from(node) + enter, Relaxed);
        thread.marked.store(marked + 1, Release);
    }

    /// The node in which a run backwards of this name is counted.
    fn node_of_reverse(&mut self, name: u32) -> u32 {
        self.last.get(&name).copied().unwrap_or_else(|| self.node(name))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.filter(|_| self.generation == generation()) {
            self.table.end_thread(slot);
        }
    }
}

/// Counts a call that took so long.
#[inline]
fn count(node: &Node, ns: u64) {
    grow(&node.total_ns, ns);
    lower(&node.min_ns, ns);
    raise(&node.max_ns, ns);
    grow_float(&node.squares, ns as f64 * ns as f64);
    let calls = &node.histogram[bucket(ns)];
    calls.store(calls.load(Relaxed).saturating_add(1), Relaxed);
    // Last, so that whoever reads meanwhile has no mean that is too small.
    node.calls.store(node.calls.load(Relaxed) + 1, Release);
}

/// Does something with the thread's state; `None` where there is none, as at the very end of a thread.
#[inline]
fn with<T>(action: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    let table = table()?;
    let done = THREAD.try_with(|thread| {
        // A signal handler that enters a region while one is entered finds it taken.
        let mut thread = thread.try_borrow_mut().ok()?;
        let generation = generation();
        if thread.as_ref().is_none_or(|thread| thread.generation != generation) {
            // What belongs to the parent of a fork stays as it is.
            std::mem::forget(thread.take());
            *thread = Some(Thread::new(table));
            thread.as_mut().into_iter().for_each(measure_marker);
        }
        thread.as_mut().map(action)
    });
    done.ok().flatten()
}

/// Enters a region.
#[inline]
pub(crate) fn enter(name: impl FnOnce(&Table) -> u32, call: Call) -> Result<Entered, Refusal> {
    match table() {
        Some(table) if table.records() => {
            let name = name(table);
            with(|thread| thread.enter(name, call)).unwrap_or(Err(Refusal::Off))
        }
        _ => Err(Refusal::Off),
    }
}

/// Enters a region by a name that is known only now.
pub(crate) fn enter_named(name: &str, call: Call) -> Result<Entered, Refusal> {
    match table() {
        Some(table) if table.records() => with(|thread| {
            let number = thread.number(name);
            thread.enter(number, call)
        })
        .unwrap_or(Err(Refusal::Off)),
        _ => Err(Refusal::Off),
    }
}

/// Leaves a region and counts the call.
#[inline]
pub(crate) fn leave(entered: Entered) {
    let end = now();
    // In a child of the process that entered it, nothing is open.
    if entered.generation == generation() {
        with(|thread| thread.close(entered.name, end));
    }
}

/// Leaves a region that is to go on later; gives its time so far.
pub(crate) fn suspend(entered: Entered) -> u64 {
    let end = now();
    let is_ours = entered.generation == generation();
    let left = if is_ours { with(|thread| thread.leave(entered.name, end)).flatten() } else { None };
    left.map_or(0, |(_, ns)| ns)
}

/// Counts one more call of a region that is open.
pub(crate) fn count_again(name: u32) {
    with(|thread| {
        if let Some(open) = thread.open.iter().rev().find(|open| open.name == name).filter(|open| open.node != 0) {
            grow(&thread.table.memory.node(open.node).calls, 1);
        }
    });
}

/// Adds to what the program counts in an open region.
pub(crate) fn add(entered: Entered, counter: usize, by: u64) {
    with(|thread| {
        let open = thread.open.iter().rev().find(|open| open.name == entered.name);
        if let Some(open) = open.filter(|open| open.node != 0) {
            grow(&thread.table.memory.node(open.node).counters[counter], by);
        }
    });
}

/// When a run backwards began, if anything is recorded.
pub(crate) fn begin_reverse() -> Option<u64> {
    table().filter(|table| table.records()).map(|_| now())
}

/// Counts a run backwards that began then.
pub(crate) fn end_reverse(name: impl FnOnce(&Table) -> u32, start: u64) {
    let end = now();
    with(|thread| {
        let name = name(thread.table);
        match thread.node_of_reverse(name) {
            0 => thread.table.lose(1),
            node => {
                let node = thread.table.memory.node(node);
                grow(&node.reverse_ns, end.saturating_sub(start));
                grow(&node.reverse_calls, 1);
            }
        }
    });
}

/// Rounds of the measurement of a marker, and markers in each.
const ROUNDS: usize = 16;
const MARKERS: u64 = 32;

/// Measures once what an enter and a leave cost, on the thread that is the first.
fn measure_marker(thread: &mut Thread) {
    static ONCE: Once = Once::new();
    static GENERATION: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let is_other = GENERATION.swap(thread.generation, Relaxed) != thread.generation;
    let header = thread.table.memory.header();
    let mut first = is_other;
    ONCE.call_once(|| first = true);
    let Some(slot) = thread.slot.filter(|_| first) else { return };
    let name = thread.table.name("(marker)");
    let mut outer = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = now();
        for _ in 0..MARKERS {
            let _ = thread.enter(name, Call::Plain);
            thread.close(name, now());
        }
        outer = outer.min((now() - start) as f64 / MARKERS as f64);
    }
    let node = thread.node(name);
    if node != 0 {
        let inner = thread.table.memory.node(node).min_ns.load(Relaxed) as f64;
        header.inner_ns.store(inner.to_bits(), Relaxed);
        header.outer_ns.store(outer.max(inner).to_bits(), Relaxed);
        thread.table.drop_node(slot, node);
    }
    thread.recent = [(0, 0, 0); RECENT];
    thread.nodes.clear();
    thread.table.memory.thread(slot).marked.store(0, Relaxed);
}
