//! Enters and leaves regions on a thread.

mod events;
mod marker;

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};

use crate::clock::now;
use crate::events::Readings;
use crate::histogram::bucket;
use crate::layout::{DEEPEST, MARKS, NAMES, Node};
use crate::table::{Table, generation, grow, grow_float, lower, raise, table};
use events::ThreadEvents;

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
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call<'a> {
    /// The usual one.
    Plain,
    /// One that records operations for a run backwards.
    Recorded,
    /// One that was suspended.
    Resumed(&'a Suspended),
}

/// What a call took so far, and what was counted in it; `None` where that couldn't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spent {
    ns: u64,
    counted: Option<Readings>,
}

/// A call that goes on later, perhaps on another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspended {
    name: u32,
    generation: u32,
    /// The number of the thread that suspended it, and the node in which it was there.
    thread: u64,
    node: u32,
    spent: Spent,
}

/// A region that was entered and is to be left: the number of its name, and above it the table's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered(NonZeroU64);

impl Entered {
    fn name(self) -> u32 {
        self.0.get() as u32
    }

    fn generation(self) -> u32 {
        (self.0.get() >> 32) as u32
    }

    /// A number that isn't 0, for other languages.
    pub(crate) fn handle(self) -> u64 {
        self.0.get()
    }

    /// What a number stands for; `None` for 0 and what no region has.
    #[inline]
    pub(crate) fn of_handle(handle: u64) -> Option<Self> {
        NonZeroU64::new(handle).filter(|handle| handle.get() as u32 != 0).map(Self)
    }
}

/// Whether a region was entered: a handle, or a number that is none. It fits a register, as an enum of these doesn't, and a
/// call that waits for memory takes a third longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer(u64);

impl Answer {
    const OFF: Self = Self(0);
    const ALREADY_OPEN: Self = Self(1 << 32);

    fn entered(name: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(name))
    }

    #[inline]
    fn result(self) -> Result<Entered, Refusal> {
        let refusal = if self == Self::ALREADY_OPEN { Refusal::AlreadyOpen } else { Refusal::Off };
        Entered::of_handle(self.0).ok_or(refusal)
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    name: u32,
    node: u32,
    /// How many regions its path has.
    depth: u32,
    is_recorded: bool,
    /// When it was entered, less what it took before it was suspended.
    start: u64,
    /// Since when it is directly within another region than its path has, as the one around was closed before it or it was
    /// suspended; 0 while it isn't.
    moved: u64,
}

impl Open {
    /// Since when it is directly within the region around.
    fn since(&self) -> u64 {
        if self.moved == 0 { self.start } else { self.moved }
    }
}

/// Nodes by parent and name, of the last regions that were entered: a place each.
const RECENT: usize = 64;

/// What this thread has open, and where it counts.
#[derive(Debug)]
struct Thread {
    table: &'static Table,
    generation: u32,
    /// No other thread of the process has or had this number.
    number: u64,
    /// `None` where all slots are taken.
    slot: Option<u32>,
    open: Vec<Open>,
    /// `None` where no events are wanted.
    events: Option<ThreadEvents>,
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
        static THREADS: AtomicU64 = AtomicU64::new(0);
        Self {
            table,
            generation: generation(),
            number: THREADS.fetch_add(1, Relaxed),
            slot: table.begin_thread(),
            open: Vec::with_capacity(16),
            events: ThreadEvents::new(table.events()),
            is_open: Vec::new(),
            phase: 0,
            recent: [(0, 0, 0); RECENT],
            nodes: HashMap::new(),
            last: HashMap::new(),
            names: HashMap::new(),
        }
    }

    /// The number of a name, without asking other threads twice. Names without end aren't all kept: there is no room for
    /// them in the table either.
    fn number_of(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let number = self.table.name(name);
        if self.names.len() < NAMES {
            self.names.insert(name.into(), number);
        }
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

    /// The node below which a region is opened, and how many regions its path has. Where regions overlap without end, as
    /// each is closed after the next one began, a path is as well.
    #[inline]
    fn around(&self) -> (u32, u32) {
        let last = self.open.last().filter(|open| open.depth < DEEPEST);
        last.map_or((0, 0), |open| (open.node, open.depth))
    }

    /// The node of a name below what is open; 0 where there is no room.
    #[inline]
    fn node(&mut self, name: u32) -> u32 {
        let (parent, _) = self.around();
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
    fn enter(&mut self, name: u32, call: Call<'_>) -> Answer {
        if self.is_open(name) {
            return Answer::ALREADY_OPEN;
        }
        let before = if let Call::Resumed(suspended) = call { Some(&suspended.spent) } else { None };
        let (node, depth) = (self.node(name), self.around().1 + 1);
        self.set_open(name, true);
        self.open.push(Open { name, node, depth, is_recorded: matches!(call, Call::Recorded), start: 0, moved: 0 });
        self.show(node);
        // What the kernel takes to read events is in no time; what the clock takes is in the events, and measured.
        if let Some(events) = &mut self.events {
            events.begin(before.map(|spent| &spent.counted));
        }
        let start = now();
        self.mark(start, node, 1);
        if let Some(open) = self.open.last_mut() {
            open.start = start.wrapping_sub(before.map_or(0, |spent| spent.ns));
            open.moved = before.map_or(0, |_| start);
        }
        Answer::entered(name, self.generation)
    }

    /// Leaves a region; gives it, its place among those that were open, and the call's time.
    #[inline]
    fn leave(&mut self, name: u32, end: u64) -> Option<(Open, usize, u64)> {
        let place = self.open.iter().rposition(|open| open.name == name)?;
        let open = self.open.remove(place);
        if place < self.open.len() {
            self.move_out(place, &open, end);
        }
        self.set_open(name, false);
        self.mark(end, open.node, 0);
        let top = self.open.last().map_or(0, |open| open.node);
        self.show(top);
        let ns = (end.wrapping_sub(open.start) as i64).max(0) as u64;
        Some((open, place, ns))
    }

    /// Leaves a region and counts its call.
    #[inline]
    fn close(&mut self, name: u32, end: u64) {
        if self.events.is_some() {
            return self.close_with_events(name, end);
        }
        if let Some((open, place, ns)) = self.leave(name, end) {
            self.count_closed(&open, place, ns, end);
        }
    }

    #[inline(never)]
    fn close_with_events(&mut self, name: u32, end: u64) {
        let now = self.events.as_ref().and_then(ThreadEvents::read);
        let Some((open, place, ns)) = self.leave(name, end) else { return };
        if let Some(events) = &mut self.events {
            let waited_ns = now.as_ref().map(Readings::waited_ns);
            let counted = events.end(place, now);
            if open.node != 0 {
                events.count(self.table.memory.node(open.node), counted.as_ref(), waited_ns, ns);
            }
        }
        self.count_closed(&open, place, ns, end);
    }

    #[inline]
    fn count_closed(&mut self, open: &Open, place: usize, ns: u64, end: u64) {
        if open.moved != 0 {
            self.add_stay(open, place, end);
            self.add_outside(self.parent(open.node), ns);
        }
        self.count_call(open, ns);
    }

    /// A region is closed before the one at this place, which was opened after it and is within another one from now on.
    #[cold]
    fn move_out(&mut self, place: usize, closed: &Open, end: u64) {
        let above = self.open[place];
        self.open[place].moved = end;
        self.add_outside(closed.node, above.since().wrapping_sub(end));
    }

    /// Takes what a region took since it moved, or was entered, off the region around, which its path may not have.
    #[cold]
    fn add_stay(&self, open: &Open, place: usize, end: u64) {
        if let Some(around) = place.checked_sub(1) {
            self.add_outside(self.open[around].node, open.since().wrapping_sub(end));
        }
    }

    fn add_outside(&self, node: u32, ns: u64) {
        if node != 0 {
            grow(&self.table.memory.node(node).outside_ns, ns);
        }
    }

    fn parent(&self, node: u32) -> u32 {
        if node == 0 { 0 } else { self.table.memory.node(node).parent.load(Relaxed) }
    }

    #[inline]
    fn count_call(&mut self, open: &Open, ns: u64) {
        if open.node == 0 {
            return self.table.lose(1);
        }
        let node = self.table.memory.node(open.node);
        count(node, ns);
        if open.is_recorded {
            grow(&node.recorded, 1);
            self.last.insert(open.name, open.node);
        }
    }

    /// Leaves a region that is to go on.
    fn suspend(&mut self, name: u32, end: u64) -> Option<Suspended> {
        let now = self.events.as_ref().and_then(ThreadEvents::read);
        let (open, place, ns) = self.leave(name, end)?;
        self.add_stay(&open, place, end);
        let node = open.node;
        let counted = self.events.as_mut().and_then(|events| events.end(place, now));
        let (generation, thread) = (self.generation, self.number);
        Some(Suspended { name, generation, thread, node, spent: Spent { ns, counted } })
    }

    /// Counts a call that was suspended, where it was or, on another thread, where that one is.
    fn finish(&mut self, suspended: &Suspended) {
        let Suspended { name, spent, .. } = suspended;
        let node = if suspended.thread == self.number { suspended.node } else { self.node(*name) };
        if let Some(events) = self.events.as_ref().filter(|_| node != 0) {
            events.count(self.table.memory.node(node), spent.counted.as_ref(), None, spent.ns);
        }
        self.add_outside(self.parent(node), spent.ns);
        self.count_call(&Open { name: *name, node, depth: 0, is_recorded: false, start: 0, moved: 0 }, spent.ns);
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
        if thread.as_ref().is_none_or(|thread| thread.generation != generation()) {
            begin(&mut thread, table);
        }
        thread.as_mut().map(action)
    });
    done.ok().flatten()
}

#[cold]
fn begin(thread: &mut Option<Thread>, table: &'static Table) {
    // What belongs to the parent of a fork stays as it is.
    if let Some(mut of_parent) = thread.take() {
        of_parent.events.take().into_iter().for_each(ThreadEvents::abandon);
        std::mem::forget(of_parent);
    }
    marker::measure(thread.insert(Thread::new(table)));
}

/// Enters a region.
#[inline]
pub(crate) fn enter(name: impl FnOnce(&Table) -> u32, call: Call<'_>) -> Result<Entered, Refusal> {
    match table() {
        Some(table) if table.records() => enter_recorded(name(table), call).result(),
        _ => Err(Refusal::Off),
    }
}

/// Out of line, so that programs have only the question whether anything is recorded in theirs.
#[inline(never)]
fn enter_recorded(name: u32, call: Call<'_>) -> Answer {
    with(|thread| thread.enter(name, call)).unwrap_or(Answer::OFF)
}

/// Enters a region by a name that is known only now.
pub(crate) fn enter_named(name: &str, call: Call<'_>) -> Result<Entered, Refusal> {
    match table() {
        Some(table) if table.records() => with(|thread| {
            let number = thread.number_of(name);
            thread.enter(number, call)
        })
        .unwrap_or(Answer::OFF)
        .result(),
        _ => Err(Refusal::Off),
    }
}

/// Leaves a region and counts the call.
#[inline]
pub(crate) fn leave(entered: Entered) {
    let end = now();
    // In a child of the process that entered it, nothing is open.
    if entered.generation() == generation() {
        with(|thread| thread.close(entered.name(), end));
    }
}

/// Leaves a region that is to go on later.
pub(crate) fn suspend(entered: Entered) -> Option<Suspended> {
    let end = now();
    if entered.generation() != generation() {
        return None;
    }
    with(|thread| thread.suspend(entered.name(), end)).flatten()
}

/// Counts a suspended call that won't go on: where it was, or where this thread is if that was another one.
pub(crate) fn finish(suspended: &Suspended) {
    if suspended.generation == generation() {
        with(|thread| thread.finish(suspended));
    }
}

/// Counts one more call of a region that is open.
pub(crate) fn count_again(name: u32) {
    with(|thread| {
        if let Some(open) = thread.open.iter().rev().find(|open| open.name == name).filter(|open| open.node != 0) {
            grow(&thread.table.memory.node(open.node).calls, 1);
        }
    });
}

/// The same by a name that is known only now.
pub(crate) fn count_again_named(name: &str) {
    if let Some(number) = with(|thread| thread.number_of(name)) {
        count_again(number);
    }
}

/// Whether regions are to be recorded.
#[cfg(feature = "tracing")]
#[inline]
pub(crate) fn records() -> bool {
    table().is_some_and(Table::records)
}

/// The name of a region that was opened within another one and is still open.
pub(crate) fn held_within(entered: Entered) -> Option<String> {
    let held = with(|thread| {
        let place = thread.open.iter().rposition(|open| open.name == entered.name())?;
        thread.open.get(place + 1).map(|held| thread.table.text_of(held.name))
    });
    held.flatten()
}

/// Adds to what the program counts in an open region.
pub(crate) fn add(entered: Entered, counter: usize, by: u64) {
    with(|thread| {
        let open = thread.open.iter().rev().find(|open| open.name == entered.name());
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn names_without_end_take_memory_up_to_a_limit() {
        let mut thread = Thread::new(table().unwrap());
        let first = thread.number_of("0");
        for name in 0..NAMES + 100 {
            let _ = thread.number_of(&name.to_string());
        }
        assert_eq!((thread.number_of("0"), thread.names.len()), (first, NAMES));
    }
}
