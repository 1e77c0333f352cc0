//! Reads what a program has shared, and trusts none of it.

use std::fmt;
use std::mem::{offset_of, size_of};
use std::time::Duration;

use crate::layout::{
    BUCKETS, COUNTERS, DEEPEST, DEPTH, EVENTS, EventCell, Header, MAGIC, MARKS, Mark, NAMES, NAMES_AT, NODES, NODES_AT,
    Name, Node, SIZE, TEXT, TEXT_AT, THREADS, THREADS_AT, ThreadSlot, VERSION, state,
};

/// Where the bytes of the layout come from: a file, or the program's own memory.
pub trait Source {
    /// So many bytes from an offset on.
    ///
    /// # Errors
    /// Returns the operating system's error, or one of the end of a file that is too short.
    fn read(&self, offset: usize, length: usize) -> std::io::Result<Vec<u8>>;
}

impl Source for std::fs::File {
    fn read(&self, offset: usize, length: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        std::os::unix::fs::FileExt::read_exact_at(self, &mut bytes, offset as u64)?;
        Ok(bytes)
    }
}

/// Why memory can't be read.
#[derive(Debug)]
pub enum SnapshotError {
    /// It can't be read at all, or is too short.
    Io(std::io::Error),
    /// It isn't of regions, or its program has only begun to make it.
    Foreign,
    /// It is of another version of this crate.
    Version(u32),
    /// A number in it points past its end, or is none.
    Corrupt,
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Foreign => f.write_str("it holds no regions"),
            Self::Version(version) => write!(f, "its program has version {version} of the regions, not {VERSION}"),
            Self::Corrupt => f.write_str("it is damaged: a number in it can't be"),
        }
    }
}

impl std::error::Error for SnapshotError {}

impl From<std::io::Error> for SnapshotError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// All that a program's regions counted so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The process.
    pub pid: u32,
    /// Its name when it entered its first region; empty where that isn't known.
    pub process_name: String,
    /// Whether it records, and for whom.
    pub recording: u32,
    /// Calls that are in no node.
    pub lost: LostCalls,
    /// What an enter and a leave cost, in nanoseconds.
    pub marker: Marker,
    /// Names of the events that are counted.
    pub events: Vec<String>,
    /// What an enter and a leave add to the count of each event.
    pub event_markers: Vec<EventMarker>,
    /// Names of the counters that the program counts.
    pub counters: Vec<String>,
    /// Threads, by slot; the first is all those that have ended and share one.
    pub threads: Vec<ThreadRegions>,
    /// Paths of regions.
    pub nodes: Vec<NodeCounts>,
}

/// Calls that aren't counted, by what they lacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostCalls {
    /// There was no room for their path.
    pub to_paths: u64,
    /// There was no room for their thread.
    pub to_threads: u64,
    /// They began or ended in a signal handler that had interrupted what counts, or when their thread had all but ended.
    pub in_handlers: u64,
    /// A region of their name was open on their thread, as one is that `longjmp` left without an end.
    pub to_open_names: u64,
}

impl LostCalls {
    /// All of them.
    pub fn total(&self) -> u64 {
        let Self { to_paths, to_threads, in_handlers, to_open_names } = *self;
        [to_paths, to_threads, in_handlers, to_open_names].into_iter().fold(0, u64::saturating_add)
    }

    /// Those that were lost after an earlier time.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            to_paths: self.to_paths.saturating_sub(earlier.to_paths),
            to_threads: self.to_threads.saturating_sub(earlier.to_threads),
            in_handlers: self.in_handlers.saturating_sub(earlier.in_handlers),
            to_open_names: self.to_open_names.saturating_sub(earlier.to_open_names),
        }
    }

    /// These and others.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            to_paths: self.to_paths.saturating_add(other.to_paths),
            to_threads: self.to_threads.saturating_add(other.to_threads),
            in_handlers: self.in_handlers.saturating_add(other.in_handlers),
            to_open_names: self.to_open_names.saturating_add(other.to_open_names),
        }
    }

    /// The number and the reason of each kind of which there are any: `3 calls are not counted: there are too many paths`.
    pub fn sentences(&self, number: impl Fn(u64) -> String) -> Vec<String> {
        let all = [
            (self.to_paths, "there are too many paths of regions"),
            (self.to_threads, "there are too many threads at once"),
            (self.in_handlers, "a signal handler had interrupted a begin or an end, or the thread had all but ended"),
            (self.to_open_names, "a region of the name was open on the thread, as one stays that longjmp leaves"),
        ];
        let lost = all.into_iter().filter(|(calls, _)| *calls > 0);
        let sentence = |(calls, why)| match calls {
            1 => format!("1 call is not counted: {why}"),
            calls => format!("{} calls are not counted: {why}", number(calls)),
        };
        lost.map(sentence).collect()
    }
}

/// What markers add to times, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Marker {
    /// To the time of their own region.
    pub inner_ns: f64,
    /// To the time of the region around.
    pub outer_ns: f64,
    /// Where the region is open already, to its time and to that of those around.
    pub again_ns: f64,
}

/// What markers add to the count of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EventMarker {
    /// To that of their own region.
    pub inner: f64,
    /// To that of the region around.
    pub outer: f64,
    /// Where the region is open already, to that of it and of those around.
    pub again: f64,
    /// How much more they added in most rounds in which they were measured: these are the least.
    pub excess: f64,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRegions {
    /// Its number of the kernel; 0 for those that have ended and share a slot.
    pub tid: u32,
    /// Whether it still ran.
    pub runs: bool,
    /// The place of the innermost open region in [`Snapshot::nodes`].
    pub open: Option<usize>,
}

/// What a region counted on a thread, below the regions that were open around it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeCounts {
    /// Its number, by which marks name it.
    pub number: u32,
    /// The slot of its thread, a place in [`Snapshot::threads`].
    pub thread: usize,
    /// The place of the region around in [`Snapshot::nodes`].
    pub parent: Option<usize>,
    /// Name of the region.
    pub name: String,
    /// Name of the phase in which it was entered; empty for none.
    pub phase: String,
    /// Name of a region that was opened in a call of this one, was open when it ended, and still is: the time in this
    /// region alone isn't known. `None` where there is no such region.
    pub outlasted_by: Option<String>,
    /// Calls that ended.
    pub calls: u64,
    /// Those that were counted while the region was open.
    pub again: u64,
    /// Those that recorded operations.
    pub recorded: u64,
    /// Their time, with the markers'.
    pub total_ns: u64,
    /// The part of the time of regions directly within that passed while this one wasn't open, less the time of others that
    /// passed in this one.
    pub outside_ns: i64,
    /// The shortest call.
    pub min_ns: u64,
    /// The longest call.
    pub max_ns: u64,
    /// The sum of squares of calls.
    pub squares: f64,
    /// Runs backwards.
    pub reverse_calls: u64,
    /// Their time.
    pub reverse_ns: u64,
    /// What the program counted.
    pub counters: [u64; COUNTERS],
    /// What events counted.
    pub events: Vec<EventCounts>,
    /// How many calls took how long.
    pub histogram: Box<[u32; BUCKETS]>,
}

/// What an event counted in the calls of a node. Where it was counted for a part of a call, the call's count is scaled by
/// what part that was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EventCounts {
    /// Calls in which it was counted for all or a part of the time.
    pub calls: u64,
    /// Calls in which it wasn't counted at all.
    pub missing: u64,
    /// Counts, not scaled.
    pub sum: u64,
    /// The least of a call, scaled.
    pub min: u64,
    /// The most of a call, scaled.
    pub max: u64,
    /// The sum of scaled counts of calls.
    pub scaled: f64,
    /// The sum of their squares.
    pub squares: f64,
    /// The sum of squares of what stays on the counters counted, which isn't scaled, each divided by the stay's nanoseconds.
    pub squares_per_ns: f64,
    /// Those stays: each has the calls that ended in one time on the counters without a break.
    pub stays: u64,
    /// Time that was to be counted, also in calls without a count.
    pub enabled_ns: u64,
    /// The part of it that was.
    pub running_ns: u64,
}

/// An enter or a leave of a region on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkOf {
    /// When, on CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The number of the node.
    pub node: u32,
    /// Whether it was entered.
    pub is_enter: bool,
}

/// Bytes that are read as the layout says.
struct Bytes(Vec<u8>);

impl Bytes {
    fn u64(&self, offset: usize) -> u64 {
        self.0.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
    }

    fn u32(&self, offset: usize) -> u32 {
        self.0.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
    }

    fn f64(&self, offset: usize) -> Result<f64, SnapshotError> {
        Some(f64::from_bits(self.u64(offset))).filter(|number| number.is_finite()).ok_or(SnapshotError::Corrupt)
    }
}

/// How often a snapshot is begun anew where nodes moved meanwhile.
const ATTEMPTS: usize = 20;
/// How long to wait until then: nodes of a thread move in less.
const BETWEEN: Duration = Duration::from_micros(100);

impl Snapshot {
    /// Reads all regions.
    ///
    /// # Errors
    /// When there are none to be read.
    pub fn read(source: &dyn Source) -> Result<Self, SnapshotError> {
        for _ in 0..ATTEMPTS {
            let before = header(source)?;
            if before.u64(offset_of!(Header, folding)).is_multiple_of(2)
                && let (found, true) = Self::once(source, &before)?
            {
                return found;
            }
            std::thread::sleep(BETWEEN);
        }
        Self::once(source, &header(source)?)?.0
    }

    /// A snapshot, and whether no node moved while it was read.
    fn once(source: &dyn Source, before: &Bytes) -> Result<(Result<Self, SnapshotError>, bool), SnapshotError> {
        let count = before.u32(offset_of!(Header, nodes)) as usize;
        if count > NODES {
            return Err(SnapshotError::Corrupt);
        }
        let bytes = |number| Ok(Bytes(source.read(NODES_AT + number * size_of::<Node>(), size_of::<Node>())?));
        let nodes = (1..count).map(bytes).collect::<Result<Vec<_>, SnapshotError>>()?;
        // After the nodes, so that all their names and threads are there.
        let after = header(source)?;
        let folding = [before, &after].map(|header| header.u64(offset_of!(Header, folding)));
        let is_still = folding[0] == folding[1] && folding[0] % 2 == 0;
        Ok((Self::of(source, &after, &nodes), is_still))
    }

    fn of(source: &dyn Source, header: &Bytes, nodes: &[Bytes]) -> Result<Self, SnapshotError> {
        let at = |offset| header.u32(offset) as usize;
        let (names, text, threads) =
            (at(offset_of!(Header, names)), at(offset_of!(Header, text)), at(offset_of!(Header, threads)));
        if names > NAMES || threads > THREADS || text > TEXT {
            return Err(SnapshotError::Corrupt);
        }
        let names = read_names(source, names, text)?;
        let listed = |first: usize, count: usize| {
            let numbers = (0..count).map(|place| at(first + 4 * place)).take_while(|&number| number != 0);
            let name = |number: usize| names.get(number).cloned().ok_or(SnapshotError::Corrupt);
            numbers.map(name).collect::<Result<Vec<_>, _>>()
        };
        let events = listed(offset_of!(Header, event_names), at(offset_of!(Header, events)).min(EVENTS))?;
        let counters = listed(offset_of!(Header, counter_names), COUNTERS)?;
        let marker = |event: usize| {
            let inner = header.f64(offset_of!(Header, event_inner) + 8 * event)?;
            let outer = header.f64(offset_of!(Header, event_outer) + 8 * event)?;
            let again = header.f64(offset_of!(Header, event_again) + 8 * event)?;
            Ok(EventMarker { inner, outer, again, excess: header.f64(offset_of!(Header, event_excess) + 8 * event)? })
        };
        let threads = (0..threads).map(|slot| read_thread(source, slot)).collect::<Result<Vec<_>, _>>()?;
        let reader = NodesReader { names: &names, threads: &threads, events: events.len() };
        let (nodes, places) = reader.nodes(nodes)?;
        let threads = threads.iter().map(|thread| thread.told(&places)).collect();
        Ok(Self {
            pid: header.u32(offset_of!(Header, pid)),
            process_name: names.get(at(offset_of!(Header, process_name))).cloned().ok_or(SnapshotError::Corrupt)?,
            recording: header.u32(offset_of!(Header, recording)),
            lost: lost_calls(header),
            marker: Marker {
                inner_ns: header.f64(offset_of!(Header, inner_ns))?,
                outer_ns: header.f64(offset_of!(Header, outer_ns))?,
                again_ns: header.f64(offset_of!(Header, again_ns))?,
            },
            event_markers: (0..events.len()).map(marker).collect::<Result<_, SnapshotError>>()?,
            events,
            counters,
            threads,
            nodes,
        })
    }

    /// The name of the process, as [`Snapshot::process_name`] has it.
    ///
    /// # Errors
    /// When there are no regions to be read.
    pub fn name_of_process(source: &dyn Source) -> Result<String, SnapshotError> {
        let header = header(source)?;
        let at = |offset| header.u32(offset) as usize;
        let (names, text) = (at(offset_of!(Header, names)), at(offset_of!(Header, text)));
        if names > NAMES || text > TEXT {
            return Err(SnapshotError::Corrupt);
        }
        let names = read_names(source, names, text)?;
        names.get(at(offset_of!(Header, process_name))).cloned().ok_or(SnapshotError::Corrupt)
    }

    /// The last enters and leaves of a thread, the oldest first, and how many there were in all.
    ///
    /// # Errors
    /// When they can't be read.
    pub fn marks(source: &dyn Source, slot: usize) -> Result<(Vec<MarkOf>, u64), SnapshotError> {
        let slot = THREADS_AT + slot.min(THREADS - 1) * size_of::<ThreadSlot>();
        let bytes = Bytes(source.read(slot, size_of::<ThreadSlot>())?);
        let all = bytes.u64(offset_of!(ThreadSlot, marked));
        let kept = all.min(MARKS as u64);
        let mark = |number: u64| {
            let at = offset_of!(ThreadSlot, marks) + (number % MARKS as u64) as usize * size_of::<Mark>();
            let node = bytes.u64(at + offset_of!(Mark, node_and_enter));
            let time_ns = bytes.u64(at + offset_of!(Mark, time_ns));
            MarkOf { time_ns, node: (node / 2) as u32, is_enter: node % 2 == 1 }
        };
        Ok(((all - kept..all).map(mark).collect(), all))
    }

    /// The path of a node, the outermost region first.
    pub fn path(&self, node: usize) -> Vec<&str> {
        let next = |&node: &usize| self.nodes.get(node)?.parent;
        let up = std::iter::successors(Some(node), next).take(self.nodes.len());
        let mut path: Vec<&str> = up.filter_map(|node| Some(self.nodes.get(node)?.name.as_str())).collect();
        path.reverse();
        path
    }
}

fn header(source: &dyn Source) -> Result<Bytes, SnapshotError> {
    let header = Bytes(source.read(0, size_of::<Header>())?);
    if header.u64(offset_of!(Header, magic)) != MAGIC {
        return Err(SnapshotError::Foreign);
    }
    match header.u32(offset_of!(Header, version)) {
        VERSION => Ok(header),
        other => Err(SnapshotError::Version(other)),
    }
}

fn lost_calls(header: &Bytes) -> LostCalls {
    let lost = |place: usize| header.u64(offset_of!(Header, lost) + 8 * place);
    LostCalls { to_paths: lost(0), to_threads: lost(1), in_handlers: lost(2), to_open_names: lost(3) }
}

fn read_names(source: &dyn Source, count: usize, text: usize) -> Result<Vec<String>, SnapshotError> {
    let entries = Bytes(source.read(NAMES_AT, count * size_of::<Name>())?);
    let text = source.read(TEXT_AT, text)?;
    let name = |number: usize| {
        let at = number * size_of::<Name>();
        let offset = entries.u32(at + offset_of!(Name, offset)) as usize;
        let length = entries.u32(at + offset_of!(Name, length)) as usize;
        let bytes = text.get(offset..offset + length).ok_or(SnapshotError::Corrupt)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    };
    (0..count).map(name).collect()
}

/// A thread whose innermost region has no place yet.
struct ThreadRead {
    tid: u32,
    state: u32,
    innermost: Option<usize>,
}

impl ThreadRead {
    fn told(&self, places: &[Option<usize>]) -> ThreadRegions {
        ThreadRegions {
            tid: self.tid,
            runs: matches!(self.state, state::RUNS | state::MEASURES),
            open: self.innermost.and_then(|node| places.get(node).copied().flatten()),
        }
    }
}

fn read_thread(source: &dyn Source, slot: usize) -> Result<ThreadRead, SnapshotError> {
    let bytes = Bytes(source.read(THREADS_AT + slot * size_of::<ThreadSlot>(), offset_of!(ThreadSlot, marked))?);
    let depth = (bytes.u32(offset_of!(ThreadSlot, depth)) as usize).min(DEPTH);
    let innermost = depth.checked_sub(1).map(|place| bytes.u32(offset_of!(ThreadSlot, open) + 4 * place) as usize);
    Ok(ThreadRead {
        tid: bytes.u32(offset_of!(ThreadSlot, tid)),
        state: bytes.u32(offset_of!(ThreadSlot, state)),
        innermost,
    })
}

/// Reads nodes, whose names and threads there must be.
struct NodesReader<'a> {
    names: &'a [String],
    threads: &'a [ThreadRead],
    events: usize,
}

impl NodesReader<'_> {
    /// The nodes that are used, and the place of each number among them.
    fn nodes(&self, all: &[Bytes]) -> Result<(Vec<NodeCounts>, Vec<Option<usize>>), SnapshotError> {
        let (mut nodes, mut parents) = (Vec::new(), Vec::new());
        let mut places = vec![None; all.len() + 1];
        for (number, bytes) in all.iter().enumerate() {
            if let Some(node) = self.node(number + 1, bytes)? {
                places[number + 1] = Some(nodes.len());
                parents.push(bytes.u32(offset_of!(Node, parent)) as usize);
                nodes.push(node);
            }
        }
        for (place, parent) in parents.into_iter().enumerate() {
            nodes[place].parent = match parent {
                0 => None,
                parent => *places.get(parent).ok_or(SnapshotError::Corrupt)?,
            };
        }
        if (0..nodes.len()).any(|node| is_too_deep(&nodes, node)) {
            return Err(SnapshotError::Corrupt);
        }
        Ok((nodes, places))
    }

    fn node(&self, number: usize, bytes: &Bytes) -> Result<Option<NodeCounts>, SnapshotError> {
        let named = |offset: usize| self.names.get(bytes.u32(offset) as usize).ok_or(SnapshotError::Corrupt);
        let name = named(offset_of!(Node, name))?.clone();
        let thread = bytes.u32(offset_of!(Node, thread)) as usize;
        if bytes.u32(offset_of!(Node, name)) == 0 {
            return Ok(None);
        }
        if self.threads.get(thread).ok_or(SnapshotError::Corrupt)?.state == state::MEASURES {
            return Ok(None);
        }
        let mut histogram = Box::new([0; BUCKETS]);
        let at = offset_of!(Node, histogram);
        histogram.iter_mut().enumerate().for_each(|(bucket, calls)| *calls = bytes.u32(at + 4 * bucket));
        Ok(Some(NodeCounts {
            number: number as u32,
            thread,
            parent: None,
            name,
            phase: named(offset_of!(Node, phase))?.clone(),
            outlasted_by: match bytes.u64(offset_of!(Node, outlasting)) {
                0 => None,
                _ => Some(named(offset_of!(Node, outlasting_name))?.clone()),
            },
            calls: bytes.u64(offset_of!(Node, calls)),
            again: bytes.u64(offset_of!(Node, again)),
            recorded: bytes.u64(offset_of!(Node, recorded)),
            total_ns: bytes.u64(offset_of!(Node, total_ns)),
            outside_ns: bytes.u64(offset_of!(Node, outside_ns)).cast_signed(),
            min_ns: bytes.u64(offset_of!(Node, min_ns)),
            max_ns: bytes.u64(offset_of!(Node, max_ns)),
            squares: bytes.f64(offset_of!(Node, squares))?,
            reverse_calls: bytes.u64(offset_of!(Node, reverse_calls)),
            reverse_ns: bytes.u64(offset_of!(Node, reverse_ns)),
            counters: std::array::from_fn(|place| bytes.u64(offset_of!(Node, counters) + 8 * place)),
            events: (0..self.events).map(|event| event_counts(bytes, event)).collect::<Result<_, _>>()?,
            histogram,
        }))
    }
}

fn event_counts(bytes: &Bytes, event: usize) -> Result<EventCounts, SnapshotError> {
    let at = offset_of!(Node, events) + event * size_of::<EventCell>();
    Ok(EventCounts {
        calls: bytes.u64(at + offset_of!(EventCell, calls)),
        missing: bytes.u64(at + offset_of!(EventCell, missing)),
        sum: bytes.u64(at + offset_of!(EventCell, sum)),
        min: bytes.u64(at + offset_of!(EventCell, min)),
        max: bytes.u64(at + offset_of!(EventCell, max)),
        scaled: bytes.f64(at + offset_of!(EventCell, scaled))?,
        squares: bytes.f64(at + offset_of!(EventCell, squares))?,
        squares_per_ns: bytes.f64(at + offset_of!(EventCell, squares_per_ns))?,
        stays: bytes.u64(at + offset_of!(EventCell, stays)),
        enabled_ns: bytes.u64(at + offset_of!(EventCell, enabled_ns)),
        running_ns: bytes.u64(at + offset_of!(EventCell, running_ns)),
    })
}

/// Whether the way up from a node is longer than any path, as in a circle.
fn is_too_deep(nodes: &[NodeCounts], node: usize) -> bool {
    std::iter::successors(Some(node), |&node| nodes[node].parent).nth(DEEPEST as usize).is_some()
}

/// The bytes that a file of regions has.
pub const FILE_SIZE: usize = SIZE;

/// How much a program has done with its regions: what stays the same while it does nothing with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Paths, moves of them between threads, and calls that are in none.
    pub totals: [u64; 3],
    /// Threads, by slot.
    pub threads: Vec<ThreadActivity>,
}

/// How much a thread has done with its regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadActivity {
    /// The kernel's number of the thread.
    pub tid: u32,
    /// Regions that are open.
    pub depth: u32,
    /// Enters and leaves so far.
    pub marked: u64,
}

impl Snapshot {
    /// Reads how much was done, which is far less to read than all that was counted. Recursion that counts calls of a region
    /// that stays open, and runs backwards, don't show.
    ///
    /// # Errors
    /// When there are no regions to be read.
    pub fn activity(source: &dyn Source) -> Result<Activity, SnapshotError> {
        let header = header(source)?;
        let threads = header.u32(offset_of!(Header, threads)) as usize;
        if threads > THREADS {
            return Err(SnapshotError::Corrupt);
        }
        let thread = |slot: usize| {
            let bytes = Bytes(source.read(THREADS_AT + slot * size_of::<ThreadSlot>(), offset_of!(ThreadSlot, marks))?);
            let tid = bytes.u32(offset_of!(ThreadSlot, tid));
            if bytes.u32(offset_of!(ThreadSlot, state)) == state::MEASURES {
                return Ok(ThreadActivity { tid, depth: 0, marked: 0 });
            }
            let (depth, marked) = (offset_of!(ThreadSlot, depth), offset_of!(ThreadSlot, marked));
            Ok(ThreadActivity { tid, depth: bytes.u32(depth), marked: bytes.u64(marked) })
        };
        let threads = (0..threads).map(thread).collect::<Result<Vec<_>, SnapshotError>>()?;
        let totals = [
            u64::from(header.u32(offset_of!(Header, nodes))),
            header.u64(offset_of!(Header, folding)),
            lost_calls(&header).total(),
        ];
        Ok(Activity { totals, threads })
    }

    /// How many enters and leaves there were of a thread so far.
    ///
    /// # Errors
    /// When that can't be read.
    pub fn marks_so_far(source: &dyn Source, slot: usize) -> Result<u64, SnapshotError> {
        let at = THREADS_AT + slot.min(THREADS - 1) * size_of::<ThreadSlot>() + offset_of!(ThreadSlot, marked);
        Ok(Bytes(source.read(at, 8)?).u64(0))
    }
}
