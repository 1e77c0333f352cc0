//! Keeps the names, threads and nodes of this process.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::events::{self, CountedEvent};
use crate::layout::{
    BY_PROGRAM, BY_WATCHER, DEPTH, EventCell, MAGIC, NAMES, NODES, Node, TEXT, THREADS, ThreadSlot, VERSION, state,
};
use crate::memory::{Made, Memory};
use crate::snapshot::Snapshot;
use crate::told::tell_once;
use crate::{callback, output};

/// The name that stands for all that there is no room for, and its number.
const OTHER: &str = "(other)";
pub(crate) const OTHER_NUMBER: u32 = 1;
/// Threads that have ended and keep a row of their own each.
const ENDED: usize = 256;

/// The regions of this process.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) memory: Memory,
    /// Locked only where the thread's own state is taken, too ([`apart`](crate::thread::apart)): a signal handler that finds
    /// that taken doesn't come here, where it might wait for the thread that it interrupted.
    registry: Mutex<Registry>,
    /// What is counted in regions, from the first thread on that records.
    events: OnceLock<Vec<CountedEvent>>,
}

/// What is where. Nodes of a thread are listed in the order in which they were made: a parent stands before its children.
#[derive(Debug, Default)]
struct Registry {
    names: HashMap<Box<str>, u32>,
    nodes: Vec<Vec<u32>>,
    free_nodes: Vec<u32>,
    free_slots: Vec<u32>,
    ended: VecDeque<u32>,
    /// The nodes of the slot of threads that have ended, by parent, name and phase.
    folded: HashMap<(u32, u32, u32), u32>,
    made: Made,
}

/// The table of this process, from its first region on.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(std::ptr::null_mut());
/// The thread that makes it; 0 for none.
static MAKER: AtomicU32 = AtomicU32::new(0);
/// How long others wait for it each time.
const PAUSE: Duration = Duration::from_micros(50);
/// Calls of signal handlers that interrupted the thread which made the table.
static LOST_BEFORE: AtomicU64 = AtomicU64::new(0);
/// Counts tables: a process that was forked has another than its parent.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The present table's number.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Why a call is in no node; a place in [`Header::lost`](crate::layout::Header::lost).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lost {
    Paths,
    Threads,
    Interrupted,
    AlreadyOpen,
}

/// The table of this process, which its first region makes; `None` where there is no memory for it, and in a signal handler
/// that interrupts the thread while it makes it.
#[inline]
pub(crate) fn table() -> Option<&'static Table> {
    present().or_else(make)
}

#[inline]
#[expect(unsafe_code, reason = "a table stays for as long as its process")]
pub(crate) fn present() -> Option<&'static Table> {
    // SAFETY: it was a box that nobody frees.
    unsafe { TABLE.load(Acquire).as_ref() }
}

#[cold]
fn make() -> Option<&'static Table> {
    let this = tid();
    while let Err(maker) = MAKER.compare_exchange(0, this, Acquire, Relaxed) {
        if maker == this {
            return None;
        }
        std::thread::sleep(PAUSE);
    }
    let table = present().or_else(make_alone);
    MAKER.store(0, Release);
    table
}

fn make_alone() -> Option<&'static Table> {
    let table =
        Box::leak(Box::new(Table { memory: Memory::new()?, registry: Mutex::default(), events: OnceLock::new() }));
    table.begin();
    hook();
    TABLE.store(table, Release);
    let lost = LOST_BEFORE.swap(0, Relaxed);
    if table.records() {
        table.lose(lost, Lost::Interrupted);
    }
    Some(table)
}

/// Counts a call for which there is no table.
#[cold]
pub(crate) fn lose_before() {
    LOST_BEFORE.fetch_add(1, Relaxed);
}

/// Has a child begin with a table of its own, and rows written at exit.
#[expect(unsafe_code, reason = "calls of the C library")]
fn hook() {
    extern "C" fn child() {
        TABLE.store(std::ptr::null_mut(), Release);
        GENERATION.fetch_add(1, Relaxed);
        // Another thread of the parent may have been at it.
        MAKER.store(0, Relaxed);
        LOST_BEFORE.store(0, Relaxed);
    }
    extern "C" fn exit() {
        end(generation() > 0);
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: what the first does is atomic; the second is called when nothing of this is gone yet.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(child));
        libc::atexit(exit);
    });
}

/// Writes rows and tells them, once in a process.
pub(crate) fn end(is_child: bool) {
    /// One more than the generation of the table that was written.
    static ENDED: AtomicU32 = AtomicU32::new(0);
    let generation = generation() + 1;
    if ENDED.swap(generation, Relaxed) != generation
        && let Some(snapshot) = crate::snapshot()
    {
        output::at_exit(&snapshot, is_child);
        callback::at_exit(&snapshot);
    }
}

/// The name of this process; under valgrind's callgrind, whose name the kernel has, that of the program.
fn name_of_process() -> Option<String> {
    let of_kernel = std::fs::read_to_string("/proc/self/comm").ok()?;
    let name = of_kernel.trim_end_matches('\n');
    let program = || Some(std::env::args_os().next()?.to_string_lossy().rsplit('/').next()?.to_owned());
    let name = if name.starts_with("callgrind-") { program()? } else { name.to_owned() };
    (!name.is_empty()).then_some(name)
}

impl Table {
    fn begin(&self) {
        let header = self.memory.header();
        header.version.store(VERSION, Relaxed);
        header.pid.store(std::process::id(), Relaxed);
        header.names.store(1, Relaxed);
        header.nodes.store(1, Relaxed);
        header.threads.store(1, Relaxed);
        self.registry().nodes.push(Vec::new());
        self.memory.thread(0).state.store(state::ENDED, Relaxed);
        self.name(OTHER);
        // Who watches may ask when the process has ended.
        header.process_name.store(name_of_process().map_or(0, |name| self.name(&name)), Relaxed);
        let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
        let by_program = if [output::CSV, output::JSON].into_iter().any(is_set) { BY_PROGRAM } else { 0 };
        let by_watcher = if self.memory.folder.is_some() { BY_WATCHER } else { 0 };
        header.recording.store(by_program | by_watcher, Relaxed);
        header.magic.store(MAGIC, Release);
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was counted so far. No node moves meanwhile.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        let _held = self.registry();
        Snapshot::read(&self.memory).ok()
    }

    /// Whether regions are to be recorded.
    #[inline]
    pub(crate) fn records(&self) -> bool {
        self.memory.header().recording.load(Relaxed) != 0
    }

    /// Switches recording on or off, as far as the program is concerned.
    pub(crate) fn record(&self, on: bool) {
        let recording = &self.memory.header().recording;
        if on {
            recording.fetch_or(BY_PROGRAM, Relaxed)
        } else {
            recording.fetch_and(!BY_PROGRAM, Relaxed)
        };
    }

    /// The number of a name, which is given at its first use.
    pub(crate) fn name(&self, name: &str) -> u32 {
        let mut registry = self.registry();
        if let Some(&number) = registry.names.get(name) {
            return number;
        }
        let header = self.memory.header();
        let (number, offset) = (header.names.load(Relaxed), header.text.load(Relaxed));
        if number as usize >= NAMES || offset as usize + name.len() > TEXT {
            static ONCE: AtomicBool = AtomicBool::new(false);
            let (names, text) = (NAMES - 1, TEXT >> 20);
            let what = "those that are new from now on are counted together as '(other)'";
            tell_once(
                &ONCE,
                format_args!("there is room for {names} names of regions with {text} MiB of text: {what}"),
            );
            return OTHER_NUMBER;
        }
        if !self.memory.add_name(&mut registry.made, number, offset as usize, name.len()) {
            return OTHER_NUMBER;
        }
        for (place, byte) in name.bytes().enumerate() {
            self.memory.text(offset as usize + place).store(byte, Relaxed);
        }
        let entry = self.memory.name(number);
        entry.offset.store(offset, Relaxed);
        entry.length.store(name.len() as u32, Relaxed);
        header.text.store(offset + name.len() as u32, Relaxed);
        header.names.store(number + 1, Release);
        registry.names.insert(name.into(), number);
        number
    }

    /// The name of a number.
    pub(crate) fn text_of(&self, number: u32) -> String {
        let entry = self.memory.name(number);
        let (offset, length) = (entry.offset.load(Relaxed) as usize, entry.length.load(Relaxed) as usize);
        let bytes: Vec<u8> = (offset..offset + length).map(|place| self.memory.text(place).load(Relaxed)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The events that are counted in regions, which the first thread that asks chooses.
    pub(crate) fn events(&self) -> &[CountedEvent] {
        self.events.get_or_init(|| {
            let chosen = events::chosen(self.memory.folder.as_deref());
            let header = self.memory.header();
            for (place, event) in header.event_names.iter().zip(&chosen) {
                place.store(self.name(&event.name), Relaxed);
            }
            header.events.store(chosen.len() as u32, Release);
            chosen
        })
    }

    /// A slot for this thread; `None` where all are taken by threads that run.
    pub(crate) fn begin_thread(&self) -> Option<u32> {
        let mut registry = self.registry();
        let header = self.memory.header();
        let slot = registry.free_slots.pop().or_else(|| {
            let next = header.threads.load(Relaxed);
            ((next as usize) < THREADS && self.memory.add_thread(next)).then(|| {
                header.threads.store(next + 1, Release);
                registry.nodes.push(Vec::new());
                next
            })
        })?;
        let thread = self.memory.thread(slot);
        thread.tid.store(tid(), Relaxed);
        thread.depth.store(0, Relaxed);
        thread.marked.store(0, Relaxed);
        thread.state.store(state::RUNS, Release);
        Some(slot)
    }

    /// What a thread counts and marks from now on is none of the program's.
    pub(crate) fn begin_measuring(&self, slot: u32) {
        self.memory.thread(slot).state.store(state::MEASURES, Release);
    }

    /// Forgets the marks of the measurement.
    pub(crate) fn end_measuring(&self, slot: u32) {
        let thread = self.memory.thread(slot);
        thread.marked.store(0, Relaxed);
        thread.state.store(state::RUNS, Release);
        // Who reads counts meanwhile begins anew.
        self.memory.header().folding.fetch_add(2, Release);
    }

    /// Keeps what a thread counted that ends now.
    pub(crate) fn end_thread(&self, slot: u32) {
        let mut registry = self.registry();
        let thread = self.memory.thread(slot);
        thread.depth.store(0, Relaxed);
        thread.state.store(state::ENDED, Release);
        registry.ended.push_back(slot);
        if registry.ended.len() > ENDED
            && let Some(oldest) = registry.ended.pop_front()
        {
            self.fold(&mut registry, oldest);
        }
    }

    /// Adds what a thread counted to what those before it counted, and frees its slot.
    fn fold(&self, registry: &mut Registry, slot: u32) {
        let folding = &self.memory.header().folding;
        folding.fetch_add(1, Release);
        let nodes = std::mem::take(&mut registry.nodes[slot as usize]);
        let mut places = HashMap::from([(0, 0)]);
        for number in &nodes {
            let from = self.memory.node(*number);
            let parent = places.get(&from.parent.load(Relaxed)).copied().unwrap_or(0);
            let key = (parent, from.name.load(Relaxed), from.phase.load(Relaxed));
            let to = registry.folded.get(&key).copied().or_else(|| {
                let made = self.new_node(registry, 0, key)?;
                registry.folded.insert(key, made);
                Some(made)
            });
            match to {
                Some(to) => {
                    add(self.memory.node(to), from);
                    places.insert(*number, to);
                }
                None => self.lose(from.calls.load(Relaxed), Lost::Paths),
            }
        }
        nodes.iter().for_each(|&number| clear(self.memory.node(number)));
        registry.free_nodes.extend(nodes);
        self.memory.thread(slot).state.store(state::FREE, Release);
        registry.free_slots.push(slot);
        folding.fetch_add(1, Release);
    }

    /// A new node for a thread; `None` where there is no room.
    pub(crate) fn node(&self, slot: u32, key: (u32, u32, u32)) -> Option<u32> {
        self.new_node(&mut self.registry(), slot, key)
    }

    fn new_node(&self, registry: &mut Registry, slot: u32, (parent, name, phase): (u32, u32, u32)) -> Option<u32> {
        let header = self.memory.header();
        let number = registry.free_nodes.pop().or_else(|| {
            let next = header.nodes.load(Relaxed);
            ((next as usize) < NODES && self.memory.add_node(&mut registry.made, next)).then(|| {
                header.nodes.store(next + 1, Release);
                next
            })
        })?;
        let node = self.memory.node(number);
        node.thread.store(slot, Relaxed);
        node.parent.store(parent, Relaxed);
        node.phase.store(phase, Relaxed);
        node.min_ns.store(u64::MAX, Relaxed);
        node.events.iter().for_each(|event| event.min.store(u64::MAX, Relaxed));
        node.name.store(name, Release);
        registry.nodes[slot as usize].push(number);
        Some(number)
    }

    /// Frees a node that is the last of its thread.
    pub(crate) fn drop_node(&self, slot: u32, number: u32) {
        let mut registry = self.registry();
        registry.nodes[slot as usize].retain(|&node| node != number);
        clear(self.memory.node(number));
        registry.free_nodes.push(number);
    }

    /// Counts calls that are in no node.
    pub(crate) fn lose(&self, calls: u64, why: Lost) {
        self.memory.header().lost[why as usize].fetch_add(calls, Relaxed);
    }

    /// Shows which regions of a thread are open.
    pub(crate) fn show_open(&self, slot: u32, depth: usize, node: u32) {
        let thread: &ThreadSlot = self.memory.thread(slot);
        if let Some(place) = depth.checked_sub(1).filter(|&place| place < DEPTH) {
            thread.open[place].store(node, Relaxed);
        }
        thread.depth.store(depth as u32, Release);
    }
}

/// Adds a number that no other thread writes.
#[inline]
pub(crate) fn grow(sum: &AtomicU64, by: u64) {
    sum.store(sum.load(Relaxed).wrapping_add(by), Relaxed);
}

/// The same for an `f64`'s bits.
#[inline]
pub(crate) fn grow_float(sum: &AtomicU64, by: f64) {
    sum.store((f64::from_bits(sum.load(Relaxed)) + by).to_bits(), Relaxed);
}

#[inline]
pub(crate) fn lower(least: &AtomicU64, value: u64) {
    if value < least.load(Relaxed) {
        least.store(value, Relaxed);
    }
}

#[inline]
pub(crate) fn raise(most: &AtomicU64, value: u64) {
    if value > most.load(Relaxed) {
        most.store(value, Relaxed);
    }
}

/// The sums of a node, in which the shortest and longest call aren't.
fn sums(node: &Node) -> impl Iterator<Item = &AtomicU64> {
    let calls = [&node.calls, &node.again, &node.recorded, &node.reverse_calls];
    let own = calls.into_iter().chain([&node.total_ns, &node.outside_ns, &node.reverse_ns, &node.outlasting]);
    let events = node.events.iter().flat_map(event_sums);
    own.chain(&node.counters).chain(events)
}

fn event_sums(event: &EventCell) -> [&AtomicU64; 6] {
    [&event.calls, &event.missing, &event.sum, &event.stays, &event.enabled_ns, &event.running_ns]
}

/// The sums of a node that are an `f64`'s bits.
fn floats(node: &Node) -> impl Iterator<Item = &AtomicU64> {
    let events = node.events.iter().flat_map(|event| [&event.scaled, &event.squares, &event.squares_per_ns]);
    std::iter::once(&node.squares).chain(events)
}

fn least(node: &Node) -> impl Iterator<Item = &AtomicU64> {
    std::iter::once(&node.min_ns).chain(node.events.iter().map(|event| &event.min))
}

fn most(node: &Node) -> impl Iterator<Item = &AtomicU64> {
    std::iter::once(&node.max_ns).chain(node.events.iter().map(|event| &event.max))
}

fn add(to: &Node, from: &Node) {
    sums(to).zip(sums(from)).for_each(|(to, from)| grow(to, from.load(Relaxed)));
    floats(to).zip(floats(from)).for_each(|(to, from)| grow_float(to, f64::from_bits(from.load(Relaxed))));
    least(to).zip(least(from)).for_each(|(to, from)| lower(to, from.load(Relaxed)));
    most(to).zip(most(from)).for_each(|(to, from)| raise(to, from.load(Relaxed)));
    for (to, from) in to.histogram.iter().zip(&from.histogram) {
        to.store(to.load(Relaxed).saturating_add(from.load(Relaxed)), Relaxed);
    }
    if from.outlasting.load(Relaxed) > 0 {
        to.outlasting_name.store(from.outlasting_name.load(Relaxed), Relaxed);
    }
}

fn clear(node: &Node) {
    node.name.store(0, Release);
    node.outlasting_name.store(0, Relaxed);
    sums(node).chain(floats(node)).chain(least(node)).chain(most(node)).for_each(|value| value.store(0, Relaxed));
    node.histogram.iter().for_each(|calls| calls.store(0, Relaxed));
}

/// The kernel's number of this thread.
#[expect(unsafe_code, reason = "a call of the kernel")]
fn tid() -> u32 {
    // SAFETY: it takes nothing, and can't fail.
    unsafe { libc::gettid() }.unsigned_abs()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn what_a_thread_counts_while_it_measures_is_read_by_nobody() {
        let table = Table { memory: Memory::new().unwrap(), registry: Mutex::default(), events: OnceLock::new() };
        table.begin();
        let slot = table.begin_thread().unwrap();
        table.begin_measuring(slot);
        let name = table.name("measured");
        let node = table.node(slot, (0, name, 0)).unwrap();
        table.memory.thread(slot).marked.store(2, Relaxed);
        assert_eq!(Snapshot::activity(&table.memory).unwrap().threads[slot as usize].marked, 0);
        let seen = Snapshot::read(&table.memory).unwrap();
        assert_eq!((seen.nodes.len(), seen.threads[slot as usize].runs), (0, true));
        table.drop_node(slot, node);
        let before = Snapshot::activity(&table.memory).unwrap();
        table.end_measuring(slot);
        let after = Snapshot::activity(&table.memory).unwrap();
        assert_eq!(after.threads[slot as usize].marked, 0);
        assert_ne!(before.totals, after.totals, "whoever reads meanwhile sees that it ended");
        table.node(slot, (0, name, 0)).unwrap();
        table.memory.thread(slot).marked.store(2, Relaxed);
        assert_eq!(Snapshot::activity(&table.memory).unwrap().threads[slot as usize].marked, 2);
        assert_eq!(Snapshot::read(&table.memory).unwrap().nodes.len(), 1);
    }
}
