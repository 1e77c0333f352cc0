//! Enters and leaves regions on a thread.

mod events;
mod marker;

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::clock::now;
use crate::events::Readings;
use crate::histogram::bucket;
use crate::layout::{DEEPEST, MARKS, NAMES, Node};
use crate::table::{Lost, OTHER_NUMBER, Table, generation, grow, grow_float, lose_before, lower, raise, table};
use crate::told::tell_once;
use events::ThreadEvents;

thread_local! {
    static THREAD: RefCell<Option<Thread>> = const { RefCell::new(None) };
}

/// Why a region wasn't entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nothing is recorded, or the call is counted in another way.
    Off,
    /// One of this name is open on this thread.
    AlreadyOpen,
}

/// What a call of a region is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call<'a> {
    /// The usual one.
    Plain,
    /// One of a function that calls itself: one more call where the region is open.
    Recursive,
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

/// How a region is opened; each way takes its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// By a value that knows its name's number.
    Static,
    /// By a name.
    Named,
    /// From C, by a name.
    C,
}

/// A region that was entered and is to be left: the table's generation, the thread's number, and which of its calls it is, so
/// that it can be left on no other thread and only once.
///
/// ```text
/// 63        52 51            32 31             0
/// generation | thread, never 0 | call of the thread
/// ```
///
/// Each begins anew after its last number; that two are the same takes four thousand million calls in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered(NonZeroU64);

/// The bits of the call, and of the thread.
const CALL_BITS: u32 = 32;
const THREAD_BITS: u32 = 20;

impl Entered {
    /// The part that all calls of a thread have.
    fn of_thread(generation: u32, number: u64) -> u64 {
        let number = number % ((1 << THREAD_BITS) - 1) + 1;
        u64::from(generation) << (THREAD_BITS + CALL_BITS) | number << CALL_BITS
    }

    fn thread(self) -> u64 {
        self.0.get() >> CALL_BITS & ((1 << THREAD_BITS) - 1)
    }

    /// Whether it is of this process, or at least of one that was forked so often.
    #[inline]
    fn is_of(self, generation: u32) -> bool {
        let above = u64::from(generation) << (THREAD_BITS + CALL_BITS);
        (self.0.get() ^ above) >> (THREAD_BITS + CALL_BITS) == 0
    }

    /// A number that isn't 0, for other languages.
    pub(crate) fn handle(self) -> u64 {
        self.0.get()
    }

    /// What a number stands for; `None` for 0 and what no region has.
    #[inline]
    pub(crate) fn of_handle(handle: u64) -> Option<Self> {
        NonZeroU64::new(handle).map(Self).filter(|entered| entered.thread() != 0)
    }
}

/// Whether a region was entered: a handle, or a number that is none. It fits a register, as an enum of these doesn't, and a
/// call that waits for memory takes a third longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer(u64);

impl Answer {
    const OFF: Self = Self(0);
    /// It has no thread.
    const ALREADY_OPEN: Self = Self(1);

    #[inline]
    fn result(self) -> Result<Entered, Refusal> {
        let refusal = if self == Self::ALREADY_OPEN { Refusal::AlreadyOpen } else { Refusal::Off };
        Entered::of_handle(self.0).ok_or(refusal)
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    handle: u64,
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

/// A region that was opened in a call of another one, was open when that ended, and still is.
#[derive(Clone, Copy, Debug)]
struct Outlasting {
    handle: u64,
    name: u32,
    /// The node of the one that ended.
    outlasted: u32,
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
    /// What all of its handles have, and how many calls it entered.
    handles: u64,
    calls: u32,
    /// `None` where all slots are taken.
    slot: Option<u32>,
    open: Vec<Open>,
    /// Those of them that were opened in calls which have ended.
    outlasting: Vec<Outlasting>,
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
        let (generation, number) = (generation(), THREADS.fetch_add(1, Relaxed));
        Self {
            table,
            generation,
            number,
            handles: Entered::of_thread(generation, number),
            calls: 0,
            slot: table.begin_thread(),
            open: Vec::with_capacity(16),
            outlasting: Vec::new(),
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
            return self.open_again(name, call);
        }
        let before = if let Call::Resumed(suspended) = call { Some(&suspended.spent) } else { None };
        let (node, depth) = (self.node(name), self.around().1 + 1);
        self.set_open(name, true);
        self.calls = self.calls.wrapping_add(1);
        let handle = self.handles | u64::from(self.calls);
        self.open.push(Open {
            handle,
            name,
            node,
            depth,
            is_recorded: matches!(call, Call::Recorded),
            start: 0,
            moved: 0,
        });
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
        Answer(handle)
    }

    /// Refuses a region whose name is open, unless it calls itself. Those without a name of their own are counted within one
    /// another, too.
    #[inline(never)]
    fn open_again(&mut self, name: u32, call: Call<'_>) -> Answer {
        if name != OTHER_NUMBER && !matches!(call, Call::Recursive) {
            return Answer::ALREADY_OPEN;
        }
        self.count_again(name);
        Answer::OFF
    }

    /// Counts one more call of a region that is open.
    fn count_again(&mut self, name: u32) {
        match self.open.iter().rev().find(|open| open.name == name).map(|open| open.node) {
            None => {}
            Some(0) => self.lose_call(),
            Some(node) => {
                let node = self.table.memory.node(node);
                grow(&node.again, 1);
                grow(&node.calls, 1);
            }
        }
    }

    /// The place of a region among those that are open.
    #[inline]
    fn place(&self, entered: Entered) -> Option<usize> {
        self.open.iter().rposition(|open| open.handle == entered.handle())
    }

    /// Says that a handle isn't one of an open region of this thread.
    #[cold]
    fn refuse(&self, entered: Entered) {
        static ELSEWHERE: AtomicBool = AtomicBool::new(false);
        static ALREADY: AtomicBool = AtomicBool::new(false);
        if entered.thread() == self.handles >> CALL_BITS & ((1 << THREAD_BITS) - 1) {
            tell_once(
                &ALREADY,
                format_args!("a region was ended that had ended already: that changes nothing (told once)"),
            );
        } else {
            let what = "a region was ended on another thread than the one that began it: it goes on there";
            tell_once(&ELSEWHERE, format_args!("{what} (told once)"));
        }
    }

    /// Leaves a region; gives it, its place among those that were open, and the call's time.
    #[inline]
    fn leave(&mut self, entered: Entered, end: u64) -> Option<(Open, usize, u64)> {
        let Some(place) = self.place(entered) else {
            self.refuse(entered);
            return None;
        };
        let open = self.open.remove(place);
        if place < self.open.len() {
            self.move_out(place, &open, end);
        }
        self.set_open(open.name, false);
        self.mark(end, open.node, 0);
        let top = self.open.last().map_or(0, |open| open.node);
        self.show(top);
        let ns = (end.wrapping_sub(open.start) as i64).max(0) as u64;
        Some((open, place, ns))
    }

    /// Leaves a region and counts its call.
    #[inline]
    fn close(&mut self, entered: Entered, end: u64) {
        if self.events.is_some() {
            return self.close_with_events(entered, end);
        }
        if let Some((open, place, ns)) = self.leave(entered, end) {
            self.count_closed(&open, place, ns, end);
        }
    }

    #[inline(never)]
    fn close_with_events(&mut self, entered: Entered, end: u64) {
        let now = self.events.as_ref().and_then(ThreadEvents::read);
        let Some((open, place, ns)) = self.leave(entered, end) else { return };
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
            self.end_outlasting(open.handle);
        }
        self.count_call(open, ns);
    }

    /// A region is closed before the one at this place, which was opened after it and is within another one from now on.
    #[cold]
    fn move_out(&mut self, place: usize, closed: &Open, end: u64) {
        let above = self.open[place];
        self.open[place].moved = end;
        self.add_outside(closed.node, above.since().wrapping_sub(end));
        if closed.node != 0 {
            self.outlasting.push(Outlasting { handle: above.handle, name: above.name, outlasted: closed.node });
            let node = self.table.memory.node(closed.node);
            node.outlasting_name.store(above.name, Relaxed);
            grow(&node.outlasting, 1);
        }
    }

    /// A region ends: what it outlasted is known from now on.
    #[cold]
    fn end_outlasting(&mut self, handle: u64) {
        while let Some(place) = self.outlasting.iter().rposition(|outlasting| outlasting.handle == handle) {
            let outlasted = self.outlasting.remove(place).outlasted;
            let last = self.outlasting.iter().rfind(|outlasting| outlasting.outlasted == outlasted);
            let node = self.table.memory.node(outlasted);
            grow(&node.outlasting, 1_u64.wrapping_neg());
            node.outlasting_name.store(last.map_or(0, |last| last.name), Relaxed);
        }
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
            return self.lose_call();
        }
        let node = self.table.memory.node(open.node);
        count(node, ns);
        if open.is_recorded {
            grow(&node.recorded, 1);
            self.last.insert(open.name, open.node);
        }
    }

    /// Counts a call for which there is no node.
    #[cold]
    fn lose_call(&self) {
        self.table.lose(1, if self.slot.is_none() { Lost::Threads } else { Lost::Paths });
    }

    /// Leaves a region that is to go on.
    fn suspend(&mut self, entered: Entered, end: u64) -> Option<Suspended> {
        let now = self.events.as_ref().and_then(ThreadEvents::read);
        let (open, place, ns) = self.leave(entered, end)?;
        self.add_stay(&open, place, end);
        self.end_outlasting(open.handle);
        let (name, node) = (open.name, open.node);
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
        let open = Open { handle: 0, name: *name, node, depth: 0, is_recorded: false, start: 0, moved: 0 };
        self.count_call(&open, spent.ns);
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

/// Does something with the thread's state; `None` where there is none, as at the very end of a thread, and in a signal handler
/// that interrupts something else with it.
#[inline]
fn with<T>(entry: Entry, action: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    let table = table()?;
    let done = THREAD.try_with(|cell| {
        let mut thread = cell.try_borrow_mut().ok()?;
        if thread.as_ref().is_none_or(|thread| thread.generation != generation()) {
            drop(thread);
            begin(cell, table, entry);
            thread = cell.try_borrow_mut().ok()?;
        }
        thread.as_mut().map(action)
    });
    done.ok().flatten()
}

#[cold]
fn begin(cell: &RefCell<Option<Thread>>, table: &'static Table, entry: Entry) {
    let Ok(mut thread) = cell.try_borrow_mut() else { return };
    // What belongs to the parent of a fork stays as it is.
    if let Some(mut of_parent) = thread.take() {
        of_parent.events.take().into_iter().for_each(ThreadEvents::abandon);
        std::mem::forget(of_parent);
    }
    *thread = Some(Thread::new(table));
    drop(thread);
    marker::measure(entry);
}

/// Does something with a state that is there.
fn with_known<T>(action: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    THREAD.try_with(|cell| cell.try_borrow_mut().ok()?.as_mut().map(action)).ok().flatten()
}

/// Does something that asks other threads, with the thread's state taken: signal handlers don't do it meanwhile, as they would
/// wait for the thread that they interrupted. `None` in such a handler.
pub(crate) fn apart<T>(action: impl FnOnce() -> T) -> Option<T> {
    let mut action = Some(action);
    let done = THREAD.try_with(|cell| {
        let _taken = cell.try_borrow_mut().ok()?;
        action.take().map(|action| action())
    });
    // At the end of a thread nothing else needs it.
    done.unwrap_or_else(|_| action.take().map(|action| action()))
}

/// The table, if regions are to be recorded.
#[inline]
fn recording() -> Option<&'static Table> {
    match table() {
        Some(table) => table.records().then_some(table),
        None => {
            lose_before();
            None
        }
    }
}

/// Whether regions are to be recorded.
#[inline]
pub(crate) fn records() -> bool {
    recording().is_some()
}

/// A call that began or ended when the thread's state couldn't be had.
#[cold]
fn interrupted() -> Answer {
    if let Some(table) = table() {
        table.lose(1, Lost::Interrupted);
    }
    Answer::OFF
}

/// Enters a region.
#[inline]
pub(crate) fn enter(name: impl FnOnce(&Table) -> u32, call: Call<'_>) -> Result<Entered, Refusal> {
    let table = recording().ok_or(Refusal::Off)?;
    enter_recorded(name(table), call).result()
}

/// Out of line, so that programs have only the question whether anything is recorded in theirs.
#[inline(never)]
fn enter_recorded(name: u32, call: Call<'_>) -> Answer {
    with(Entry::Static, |thread| thread.enter(name, call)).unwrap_or_else(interrupted)
}

/// Enters a region by a name that is known only now.
pub(crate) fn enter_named(name: &str, call: Call<'_>, entry: Entry) -> Result<Entered, Refusal> {
    recording().ok_or(Refusal::Off)?;
    let entered = with(entry, |thread| {
        let number = thread.number_of(name);
        thread.enter(number, call)
    });
    entered.unwrap_or_else(interrupted).result()
}

/// Leaves a region and counts the call.
#[inline]
pub(crate) fn leave(entered: Entered) {
    let end = now();
    // In a child of the process that entered it, nothing is open.
    if entered.is_of(generation()) && with(Entry::Static, |thread| thread.close(entered, end)).is_none() {
        interrupted();
    }
}

/// Leaves a region that is to go on later.
pub(crate) fn suspend(entered: Entered) -> Option<Suspended> {
    let end = now();
    if !entered.is_of(generation()) {
        return None;
    }
    with(Entry::Static, |thread| thread.suspend(entered, end)).flatten()
}

/// Counts a suspended call that won't go on: where it was, or where this thread is if that was another one.
pub(crate) fn finish(suspended: &Suspended) {
    if suspended.generation == generation() {
        with(Entry::Static, |thread| thread.finish(suspended));
    }
}

/// Counts a call that was refused, as its name is open.
#[cold]
pub(crate) fn lose_refused() {
    if let Some(table) = table() {
        table.lose(1, Lost::AlreadyOpen);
    }
}

/// Counts one more call of a region that is open.
pub(crate) fn count_again(name: u32) {
    with(Entry::Static, |thread| thread.count_again(name));
}

/// The same by a name that is known only now.
#[cfg(feature = "tracing")]
pub(crate) fn count_again_named(name: &str) {
    with(Entry::Named, |thread| {
        let number = thread.number_of(name);
        thread.count_again(number);
    });
}

/// The name of a region that was opened within another one and is still open.
pub(crate) fn held_within(entered: Entered) -> Option<String> {
    let held = with(Entry::Static, |thread| {
        let place = thread.place(entered)?;
        thread.open.get(place + 1).map(|held| thread.table.text_of(held.name))
    });
    held.flatten()
}

/// Adds to what the program counts in an open region.
pub(crate) fn add(entered: Entered, counter: usize, by: u64) {
    with(Entry::Static, |thread| {
        let open = thread.place(entered).map(|place| thread.open[place]);
        if let Some(open) = open.filter(|open| open.node != 0) {
            grow(&thread.table.memory.node(open.node).counters[counter], by);
        }
    });
}

/// When a run backwards began, if anything is recorded.
pub(crate) fn begin_reverse() -> Option<u64> {
    recording().map(|_| now())
}

/// Counts a run backwards that began then.
pub(crate) fn end_reverse(name: impl FnOnce(&Table) -> u32, start: u64) {
    let end = now();
    let name = table().map(name);
    with(Entry::Static, |thread| match name.map_or(0, |name| thread.node_of_reverse(name)) {
        0 => thread.lose_call(),
        node => {
            let node = thread.table.memory.node(node);
            grow(&node.reverse_ns, end.saturating_sub(start));
            grow(&node.reverse_calls, 1);
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

    #[test]
    fn handles_tell_processes_threads_and_calls_apart() {
        let handle = |generation, number, call: u64| Entered::of_handle(Entered::of_thread(generation, number) | call);
        let (a, b) = (handle(3, 0, 1).unwrap(), handle(3, 1, 1).unwrap());
        assert!(a != b && a.thread() == 1 && b.thread() == 2 && a.is_of(3) && !a.is_of(4));
        // No thread has number 0, however many there were, so that no handle is one of nothing.
        assert_eq!(handle(0, (1 << 20) - 1, 0).unwrap().thread(), 1);
        assert_eq!([0, 1, 12_345].map(Entered::of_handle), [None; 3]);
        assert_eq!(Answer::ALREADY_OPEN.result(), Err(Refusal::AlreadyOpen));
    }
}
