//! Computes what threads did between two snapshots.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{ThreadId, ThreadLooks, ThreadReading, ThreadSnapshot};
use crate::units::{CpuNs, WallNs};

/// What a thread waited for when it was looked at, by the kernel's function in which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WaitKind {
    /// Nothing: it ran, or was ready to.
    Nothing,
    /// A lock or another thread: a futex.
    Lock,
    /// A disk: a wait that signals don't end, in a function of block devices or file systems.
    Disk,
    /// Other reasons to sleep: a timer, a socket, a pipe, a child, or the kernel doesn't say.
    Sleep,
}

/// Parts of the names of the kernel's functions in which threads wait for block devices and file systems.
const DISK_WAITS: [&str; 24] = [
    "io_schedule",
    "folio_wait",
    "wait_on_page",
    "wait_on_buffer",
    "filemap_",
    "blk_",
    "blkdev_",
    "bio_",
    "rq_qos_wait",
    "wbt_wait",
    "iomap_",
    "direct_io",
    "balance_dirty_pages",
    "wb_wait",
    "writeback",
    "swap",
    "jbd2_",
    "wait_transaction",
    "ext4_",
    "xfs_",
    "btrfs_",
    "f2fs_",
    "nfs",
    "rpc_wait",
];

impl WaitKind {
    /// A wait that signals don't end may be one for the kernel itself, such as RCU: it is one for a disk where the
    /// function says so, or where the kernel counted time of it.
    fn of(state: char, within: &str, has_blocked: bool) -> Self {
        let is_in = |functions: &[&str]| functions.iter().any(|function| within.contains(function));
        match state {
            'R' => Self::Nothing,
            // Who starts a process with vfork waits like this until that has begun.
            'D' if is_in(&["vfork", "kernel_clone"]) => Self::Sleep,
            'D' if has_blocked || is_in(&DISK_WAITS) => Self::Disk,
            _ if within.contains("futex") => Self::Lock,
            _ => Self::Sleep,
        }
    }
}

/// How often a thread was seen in a state between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LooksSince<'a> {
    /// The kernel's letter for the state.
    pub state: char,
    /// The function of the kernel in which it slept or waited; empty where the kernel doesn't say.
    pub within: &'a str,
    /// How often.
    pub times: u32,
    /// What it waited for: as the function says, and where the kernel counted time of waits for disks.
    kinds: [WaitKind; 2],
}

impl LooksSince<'_> {
    fn kind(&self, has_blocked: bool) -> WaitKind {
        self.kinds[usize::from(has_blocked)]
    }
}

/// What a thread did between two snapshots.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadUse<'a> {
    /// The later reading, or the last before it ended.
    pub thread: &'a ThreadReading,
    /// The time between the snapshots, in seconds.
    pub seconds: f64,
    /// The part of the time in which it lived, by how often it was looked at and the others were.
    pub lived: f64,
    /// The part of a CPU that it had.
    pub cpu: f64,
    /// The part of the time in which it waited for a CPU, as the kernel has it; `None` where it doesn't say.
    pub delay: Option<f64>,
    /// CPU time of its children that ended and that it waited for in the time, as a number of CPUs; what they used
    /// before the time counts, too.
    pub ended_children: f64,
    /// Page faults a second.
    pub faults: f64,
    /// How often a second it was given a CPU; `None` where the kernel doesn't say.
    pub switches: Option<f64>,
    /// Memory of its process in bytes, the most that was seen in the time; 0 of all but the first thread, and where it
    /// isn't known.
    pub memory: u64,
    /// Whether its waits that signals don't end are those for disks: by the kernel's account, or by all whose function
    /// is known.
    pub has_blocked: bool,
    /// What it was seen doing, most first.
    pub looks: Vec<LooksSince<'a>>,
    /// The time in which it was looked at, in seconds: longer than the time between the snapshots where looks in that
    /// are too few.
    pub looked_at_for: f64,
}

/// Who lived for more than this part of the time lived all of it: threads aren't all looked at in one moment.
const LIVED_ALL: f64 = 0.98;

/// Looks without which shares of them say nothing.
pub const LEAST_LOOKS: u32 = 10;

impl<'a> ThreadUse<'a> {
    /// The part of the time in which it was ready and had no CPU, by the kernel's account. The kernel counts a wait
    /// when it ends, with what of it was before the earlier snapshot: so it is no more than the time in which it was on
    /// no CPU, nor than looks at it can have missed. `None` where the kernel doesn't say.
    pub fn ready(&self) -> Option<f64> {
        let most = (self.most_runnable() * self.lived).min(1.0);
        self.delay.map(|delay| delay.min((most - self.cpu).max(0.0)))
    }

    /// The largest part of the time in which it can have been ready or running, by how often it was seen so.
    fn most_runnable(&self) -> f64 {
        let (seen, looks) = self.waited(WaitKind::Nothing);
        most_of_looks(seen, looks)
    }

    /// The share of looks at which it waited for something of this kind, and how many looks there were.
    pub fn waited(&self, kind: WaitKind) -> (f64, u32) {
        let all = self.times_looked_at();
        let those: u32 =
            self.looks.iter().filter(|looks| looks.kind(self.has_blocked) == kind).map(|looks| looks.times).sum();
        (f64::from(those) / f64::from(all.max(1)), all)
    }

    /// The function in which it waited for a disk most; empty where the kernel doesn't say.
    pub fn disk_wait(&self) -> Option<&'a str> {
        let of_disk = |looks: &&LooksSince<'_>| looks.kind(self.has_blocked) == WaitKind::Disk;
        self.looks.iter().find(of_disk).map(|looks| looks.within)
    }

    /// How often it was looked at.
    pub fn times_looked_at(&self) -> u32 {
        self.looks.iter().map(|looks| looks.times).sum()
    }

    /// The part of all the time in which it waited for something of this kind; `None` where too few looks tell that,
    /// and of one that has ended. The time on a CPU and ready for one is exact, so looks only say what the rest was
    /// spent on.
    pub fn waits(&self, kind: WaitKind) -> Option<f64> {
        let is_known = self.times_looked_at() >= LEAST_LOOKS && !self.thread.is_defunct();
        is_known.then(|| self.part_lived() * self.wait_share(kind))
    }

    /// The part of the time in which it lived, 1 where looks allow that.
    pub fn part_lived(&self) -> f64 {
        if self.lived > LIVED_ALL { 1.0 } else { self.lived }
    }

    /// The part of the time in which it waited for anything but a CPU. Of one that lived all the time it is what the
    /// kernel's account of its time on a CPU and ready for one leaves; but no more than looks allow, as time that a
    /// hypervisor takes is in no account. Of others it is how often it was seen so, and no more than that account
    /// leaves.
    pub fn waited_at_all(&self) -> f64 {
        let (running, looks) = self.waited(WaitKind::Nothing);
        let (seen, left) = (1.0 - running, (1.0 - self.cpu - self.ready().unwrap_or(0.0)).max(0.0));
        let is_known = self.delay.is_some() && self.lived > LIVED_ALL;
        left.min(if is_known { most_of_looks(seen, looks) } else { seen })
    }

    /// The part of the time in which it lived that it waited for something of this kind, also by few looks.
    pub fn wait_share(&self, kind: WaitKind) -> f64 {
        self.of_waits(self.waited(kind).0)
    }

    /// The part of the time that stands behind a share of looks at which it waited.
    fn of_waits(&self, share: f64) -> f64 {
        let seen = 1.0 - self.waited(WaitKind::Nothing).0;
        if seen > 0.0 { share / seen * self.waited_at_all() } else { 0.0 }
    }

    /// Where in the kernel it slept or waited most, and for what part of all the time, if looks tell that; `None` where
    /// it never did or that isn't known.
    pub fn most_within(&self) -> Option<(&'a str, Option<f64>)> {
        let most = self.looks.iter().find(|looks| looks.state != 'R' && !looks.within.is_empty())?;
        let all = self.times_looked_at();
        let part = || self.part_lived() * self.of_waits(f64::from(most.times) / f64::from(all));
        (!self.thread.is_defunct()).then(|| (most.within, (all >= LEAST_LOOKS).then(part)))
    }

    /// Whether it waited for disks wherever the kernel says in what it was: one that has gone on when that is read says
    /// nothing.
    fn waits_for_disks(looks: &[LooksSince<'_>]) -> bool {
        let mut named = looks.iter().filter(|looks| looks.state == 'D' && !looks.within.is_empty()).peekable();
        named.peek().is_some() && named.all(|looks| looks.kind(false) == WaitKind::Disk)
    }

    fn between(earlier: &ThreadReading, later: &'a ThreadReading, seconds: f64) -> Self {
        let looks = looks_since(&earlier.looks, &later.looks);
        let part = |later: CpuNs, earlier: CpuNs| CpuNs(later.0.saturating_sub(earlier.0)).as_secs() / seconds;
        Self {
            seconds,
            looked_at_for: seconds,
            lived: 1.0,
            cpu: part(later.cpu_ns, earlier.cpu_ns),
            delay: later.delay_ns.map(|delay| part(delay, earlier.delay_ns.unwrap_or_default())),
            ended_children: part(later.children_ns, earlier.children_ns),
            faults: later.faults.saturating_sub(earlier.faults) as f64 / seconds,
            switches: later
                .switches
                .map(|switches| switches.saturating_sub(earlier.switches.unwrap_or_default()) as f64 / seconds),
            // Who had less before got there in this time.
            memory: if later.peak() > earlier.peak() { later.peak() } else { later.resident.max(earlier.resident) },
            has_blocked: later.blocked_ns > earlier.blocked_ns || Self::waits_for_disks(&looks),
            looks,
            thread: later,
        }
    }
}

/// The largest share that can be behind one of so many looks: three standard errors more, and three looks.
fn most_of_looks(seen: f64, looks: u32) -> f64 {
    let looks = f64::from(looks.max(1));
    seen + 3.0 * (seen * (1.0 - seen) / looks).sqrt() + 3.0 / looks
}

fn looks_since<'a>(earlier: &[ThreadLooks], later: &'a [ThreadLooks]) -> Vec<LooksSince<'a>> {
    let before = |looks: &ThreadLooks| {
        let same = earlier.iter().find(|earlier| earlier.state == looks.state && earlier.within == looks.within);
        same.map_or(0, |same| same.times)
    };
    let since = |looks: &'a ThreadLooks| LooksSince {
        state: looks.state,
        within: &looks.within,
        times: looks.times.saturating_sub(before(looks)),
        kinds: [false, true].map(|has_blocked| WaitKind::of(looks.state, &looks.within, has_blocked)),
    };
    let mut looks: Vec<_> = later.iter().map(since).filter(|looks| looks.times > 0).collect();
    share_out_unnamed(&mut looks);
    looks.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.within.cmp(b.within)));
    looks
}

/// Counts sleeps whose function isn't known as those of which it is: the kernel keeps some threads on its queues for a
/// while, and then doesn't say.
fn share_out_unnamed(looks: &mut Vec<LooksSince<'_>>) {
    let sleeps = |looks: &[LooksSince<'_>], is_named: bool| -> u32 {
        let of = looks.iter().filter(|looks| looks.state == 'S' && looks.within.is_empty() != is_named);
        of.map(|looks| looks.times).sum()
    };
    let (unnamed, named) = (sleeps(looks, false), sleeps(looks, true));
    if named == 0 {
        return;
    }
    looks.retain(|looks| looks.state != 'S' || !looks.within.is_empty());
    let (mut seen, mut given) = (0_u64, 0_u32);
    for looks in looks.iter_mut().filter(|looks| looks.state == 'S') {
        seen += u64::from(looks.times);
        let until_here = (u64::from(unnamed) * seen / u64::from(named)) as u32;
        looks.times += until_here - given;
        given = until_here;
    }
}

/// What threads did between the first and the last of some snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Uses<'a> {
    /// Each thread of the last snapshot, in its order.
    pub living: Vec<ThreadUse<'a>>,
    /// Each thread that ended before the last snapshot, as far as it was read; the last one to end first.
    pub ended: Vec<ThreadUse<'a>>,
    /// The largest number of looks at one thread.
    pub looks: u32,
}

/// What threads did between the first and the last of these snapshots, which stand in the order of time. A thread that
/// began between them has done all of it since: one that an earlier snapshot doesn't have, which has all that lived
/// then. Where each of those leaves some out, a thread is told from when it was first read. Where the last one leaves
/// some out, none has ended but those that were seen to. Empty where no time passed.
pub fn uses<'a>(snapshots: &[&'a ThreadSnapshot]) -> Uses<'a> {
    let [earlier, between @ .., later] = snapshots else { return Uses::default() };
    if later.at_ns <= earlier.at_ns {
        return Uses::default();
    }
    let seconds = (later.at_ns - earlier.at_ns).as_secs();
    let none = ThreadReading::default();
    let bases = bases(snapshots, &none);
    let of = |thread: &'a ThreadReading| {
        ThreadUse::between(bases.get(&thread.id()).copied().unwrap_or(&none), thread, seconds)
    };
    let mut uses = Uses { living: later.threads.iter().map(of).collect(), ..Uses::default() };
    let mut known: FxHashSet<_> = later.threads.iter().map(ThreadReading::id).collect();
    let last_seen = |snapshot: &&'a ThreadSnapshot| {
        let threads = if later.left_out == 0 { &snapshot.threads[..] } else { &[] };
        threads.iter().chain(&snapshot.ended_threads)
    };
    let ended = later.ended_threads.iter().chain(between.iter().rev().flat_map(last_seen));
    let ended = ended.filter(|thread| bases.contains_key(&thread.id()) && known.insert(thread.id()));
    uses.ended.extend(ended.map(of));
    keep_most_memory(&mut uses, between);
    let all = || uses.living.iter().chain(&uses.ended);
    let most = all().map(ThreadUse::times_looked_at).max().unwrap_or(0);
    uses.looks = most;
    let part_of_looks = |times: u32| (times > 0).then(|| f64::from(times) / f64::from(most));
    for thread in &mut uses.living {
        thread.lived = part_of_looks(thread.times_looked_at()).unwrap_or(thread.lived);
    }
    for thread in &mut uses.ended {
        // One that wasn't looked at since ended at once.
        thread.lived = part_of_looks(thread.times_looked_at()).unwrap_or(0.0);
    }
    uses
}

/// Tells of each thread the most memory that its process had in these snapshots, too.
fn keep_most_memory(uses: &mut Uses<'_>, snapshots: &[&ThreadSnapshot]) {
    let mut seen: FxHashMap<_, u64> = FxHashMap::default();
    for thread in snapshots.iter().flat_map(|snapshot| &snapshot.threads).filter(|thread| thread.resident > 0) {
        let most = seen.entry(thread.id()).or_default();
        *most = thread.resident.max(*most);
    }
    for thread in uses.living.iter_mut().chain(&mut uses.ended) {
        thread.memory = thread.memory.max(seen.get(&thread.thread.id()).copied().unwrap_or(0));
    }
}

/// What each thread of these snapshots had done before what counts: what the first one says, nothing if it began after
/// one that leaves none out, or else what was read of it first. One that was read once and has ended has no base where
/// that isn't known.
fn bases<'a>(snapshots: &[&'a ThreadSnapshot], none: &'a ThreadReading) -> FxHashMap<ThreadId, &'a ThreadReading> {
    let mut bases = FxHashMap::default();
    let mut is_new = false;
    for snapshot in snapshots {
        for thread in &snapshot.threads {
            bases.entry(thread.id()).or_insert(if is_new { none } else { thread });
        }
        for thread in snapshot.ended_threads.iter().filter(|_| is_new) {
            bases.entry(thread.id()).or_insert(none);
        }
        is_new |= snapshot.left_out == 0;
    }
    bases
}

/// Where looks in the time are too few to tell what a thread waits for, takes those before it as well: as far back as
/// they have to reach before the threads were read, of these snapshots, the newest first.
pub fn take_older_looks<'a>(
    threads: &mut [ThreadUse<'a>],
    read: WallNs,
    older: impl Iterator<Item = &'a ThreadSnapshot>,
) {
    for snapshot in older {
        let mut few = threads.iter_mut().filter(|thread| thread.times_looked_at() < LEAST_LOOKS).peekable();
        if few.peek().is_none() {
            return;
        }
        let before: FxHashMap<_, _> = snapshot.threads.iter().map(|thread| (thread.id(), thread)).collect();
        for thread in few {
            if let Some(earlier) = before.get(&thread.thread.id()) {
                thread.looks = looks_since(&earlier.looks, &thread.thread.looks);
                thread.has_blocked |= ThreadUse::waits_for_disks(&thread.looks);
                thread.looked_at_for = (read - snapshot.at_ns).as_secs();
            }
        }
    }
}

/// CPU time between two snapshots of children that ended, in seconds. What a child had used before the earlier one is
/// not part of it, although its parent is told all of it at once. Where a snapshot had no room for all, it is that of
/// parents in both: what others were told, they may have been told before.
pub fn of_ended_children(earlier: &ThreadSnapshot, later: &ThreadSnapshot) -> f64 {
    let ids = |snapshot: &ThreadSnapshot| snapshot.threads.iter().map(ThreadReading::id).collect::<FxHashSet<_>>();
    let (living, before) = (ids(later), ids(earlier));
    let lives = |thread: &ThreadReading| living.contains(&thread.id());
    let children = |snapshot: &ThreadSnapshot, is_of: &dyn Fn(&ThreadReading) -> bool| {
        snapshot.threads.iter().filter(|one| is_of(one)).map(|one| one.children_ns.as_secs()).sum::<f64>()
    };
    let processes = earlier.threads.iter().filter(|thread| thread.pid == thread.tid && !lives(thread));
    let ended: FxHashSet<i32> = processes.map(|thread| thread.pid).collect();
    let known = earlier.threads.iter().filter(|thread| ended.contains(&thread.pid));
    let known: f64 = known.map(|thread| thread.cpu_ns.as_secs()).sum();
    if earlier.left_out + later.left_out > 0 {
        let was_there = |thread: &ThreadReading| before.contains(&thread.id());
        return (children(later, &was_there) - children(earlier, &lives) - known).max(0.0);
    }
    (children(later, &|_| true) - children(earlier, &|_| true) - known).max(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::units::WallNs;

    fn looks(state: char, within: &str, times: u32) -> ThreadLooks {
        ThreadLooks { state, within: within.into(), times }
    }

    fn snapshot(at: u64, threads: Vec<ThreadReading>) -> ThreadSnapshot {
        ThreadSnapshot { at_ns: WallNs(at * 1_000_000_000), threads, ..ThreadSnapshot::default() }
    }

    fn thread(tid: i32, cpu_ms: u64, looks: Vec<ThreadLooks>) -> ThreadReading {
        let (cpu_ns, delay_ns) = (CpuNs(cpu_ms * 1_000_000), Some(CpuNs(cpu_ms * 100_000)));
        let (faults, switches) = (cpu_ms / 5, Some(cpu_ms / 10));
        ThreadReading { pid: 7, tid, cpu_ns, delay_ns, faults, switches, looks, ..ThreadReading::default() }
    }

    #[test]
    fn a_thread_by_hand() {
        let earlier = snapshot(1, vec![thread(7, 500, vec![looks('R', "", 10), looks('S', "futex_wait", 5)])]);
        let now = vec![looks('R', "", 20), looks('S', "futex_wait", 25), looks('D', "io_schedule", 10)];
        let later = snapshot(3, vec![thread(7, 1500, now), thread(8, 200, vec![])]);
        let uses = uses(&[&earlier, &later]).living;
        // 1 s of CPU time in 2 s; of 40 looks 10 ran, 20 waited for a lock, 10 for a disk.
        assert_eq!((uses[0].seconds, uses[0].cpu, uses[0].delay), (2.0, 0.5, Some(0.05)));
        let waited =
            [WaitKind::Nothing, WaitKind::Lock, WaitKind::Disk, WaitKind::Sleep].map(|kind| uses[0].waited(kind));
        assert_eq!(waited, [(0.25, 40), (0.5, 40), (0.25, 40), (0.0, 40)]);
        // It ran for half of the time, though at a quarter of the looks only, and was ready for 0.03 of it: the waits
        // have the rest.
        assert_eq!(uses[0].most_within().unwrap().1.map(|part| (part * 300.0).round()), Some(94.0));
        let waits = [WaitKind::Lock, WaitKind::Disk, WaitKind::Sleep].map(|kind| uses[0].waits(kind).unwrap());
        assert_eq!(waits.map(|part| (part * 300.0).round()), [94.0, 47.0, 0.0]);
        // Ready: 0.05 by the kernel, but it ran at a quarter of the looks only, and for half of the time. Of 40 looks a
        // quarter may be 0.25 + 3 * 0.068 + 0.075 = 0.53.
        assert!((uses[0].ready().unwrap() - 0.0304).abs() < 1e-4);
        assert_eq!(uses[1].ready(), Some(0.01));
        assert_eq!((uses[0].faults, uses[0].switches), (100.0, Some(50.0)));
        // The other one began between the two, and nobody looked at it.
        assert_eq!((uses[1].cpu, uses[1].waited(WaitKind::Lock), uses[1].most_within()), (0.1, (0.0, 0), None));
    }

    #[test]
    fn memory_is_the_most_that_was_seen_in_the_time() {
        let with = |resident, most_resident| ThreadReading { resident, most_resident, ..thread(7, 0, vec![]) };
        let [first, second, third] = [with(90, 400), with(200, 400), with(50, 400)];
        let later = with(0, 500);
        let [first, second, third, last] =
            [(0, first), (1, second), (2, third), (3, later)].map(|(at, thread)| snapshot(at, vec![thread]));
        let memory = |snapshots: &[&ThreadSnapshot]| uses(snapshots).living[0].memory;
        // What it had before the time isn't of it; what nobody saw at its ends is.
        assert_eq!((memory(&[&first, &second, &third]), memory(&[&second, &third])), (200, 200));
        assert_eq!((memory(&[&first, &third]), memory(&[&third, &last])), (90, 500));
        // One that has ended is told by what it had before.
        let (before, after) = (snapshot(0, vec![]), snapshot(4, vec![]));
        let ended = uses(&[&before, &last, &after]).ended;
        assert_eq!(ended.iter().map(|thread| (thread.thread.tid, thread.memory)).collect::<Vec<_>>(), [(7, 500)]);
    }

    #[test]
    fn sleeps_without_a_function_are_like_the_others() {
        let of = |looks: Vec<ThreadLooks>| {
            let (earlier, later) = (snapshot(0, vec![thread(7, 0, vec![])]), snapshot(1, vec![thread(7, 0, looks)]));
            let use_of = uses(&[&earlier, &later]).living.remove(0);
            let seen: Vec<_> =
                use_of.looks.iter().map(|looks| (looks.state, looks.within.to_owned(), looks.times)).collect();
            seen
        };
        let named = |state, within: &str, times| (state, within.to_owned(), times);
        let seen =
            of(vec![looks('S', "futex_do_wait", 6), looks('S', "", 12), looks('S', "ep_poll", 3), looks('R', "", 4)]);
        assert_eq!(seen, [named('S', "futex_do_wait", 14), named('S', "ep_poll", 7), named('R', "", 4)]);
        // Where none is known, they stay.
        assert_eq!(of(vec![looks('S', "", 12), looks('R', "", 4)]), [named('S', "", 12), named('R', "", 4)]);
    }

    #[test]
    fn a_wait_is_a_part_of_all_the_time() {
        // It ended after a quarter of the checks, at all of which it slept.
        let slept = |times| vec![looks('S', "hrtimer_nanosleep", times)];
        let first = snapshot(0, vec![thread(7, 0, slept(0)), thread(8, 0, slept(0))]);
        let middle = snapshot(1, vec![thread(7, 0, slept(20)), thread(8, 0, slept(20))]);
        let last = snapshot(4, vec![thread(7, 0, slept(80))]);
        let uses = uses(&[&first, &middle, &last]);
        let waits = [&uses.living[0], &uses.ended[0]].map(|thread| thread.waits(WaitKind::Sleep));
        assert_eq!(waits, [Some(1.0), Some(0.25)]);
        assert_eq!(uses.ended[0].most_within().unwrap().1, Some(0.25));
    }

    #[test]
    fn older_looks_count_where_those_of_the_time_are_too_few() {
        let at = |second: u64, times: u32| snapshot(second, vec![thread(7, 0, vec![looks('S', "futex_wait", times)])]);
        let [first, second, third, last] = [at(0, 3), at(1, 5), at(2, 9), at(3, 14)];
        let (without, unseen) = (snapshot(2, vec![]), snapshot(0, vec![thread(7, 0, vec![])]));
        let mut uses = uses(&[&third, &last]).living;
        assert_eq!(uses[0].waited(WaitKind::Lock), (1.0, 5));
        take_older_looks(&mut uses, last.at_ns, [].into_iter());
        assert_eq!((uses[0].waited(WaitKind::Lock), uses[0].looked_at_for), ((1.0, 5), 1.0));
        // 9 are too few, 11 aren't; a thread that is in no older snapshot has those that it has.
        for older in [&[&without, &second, &first][..], &[&unseen]] {
            take_older_looks(&mut uses, last.at_ns, older.iter().copied());
            assert_eq!((uses[0].waited(WaitKind::Lock), uses[0].looked_at_for), ((1.0, 11), 3.0));
        }
    }

    #[test]
    fn a_wait_in_the_kernel_is_one_for_a_disk_where_that_is_known() {
        let kind = |within, has_blocked| WaitKind::of('D', within, has_blocked);
        assert_eq!(
            ["submit_bio_wait", "folio_wait_bit_common", "jbd2_log_wait_commit"].map(|it| kind(it, false)),
            [WaitKind::Disk; 3]
        );
        assert_eq!(["__wait_rcu_gp", "synchronize_rcu", "vfork", ""].map(|it| kind(it, false)), [WaitKind::Sleep; 4]);
        // The kernel's own account, where it keeps one.
        assert_eq!([kind("", true), kind("kernel_clone", true)], [WaitKind::Disk, WaitKind::Sleep]);
    }

    #[test]
    fn few_looks_say_nothing_and_who_has_ended_waits_for_nothing() {
        let first = snapshot(0, vec![thread(7, 0, vec![]), thread(8, 0, vec![])]);
        let zombie = vec![looks('S', "futex_wait", 20), looks('Z', "", 5)];
        let last = snapshot(1, vec![thread(7, 0, vec![looks('S', "futex_wait", 9)]), thread(8, 0, zombie)]);
        let uses = uses(&[&first, &last]).living;
        assert_eq!(uses.iter().map(|thread| thread.waits(WaitKind::Lock)).collect::<Vec<_>>(), [None, None]);
        assert_eq!(uses.iter().map(ThreadUse::most_within).collect::<Vec<_>>(), [Some(("futex_wait", None)), None]);
        assert_eq!(uses.iter().map(|thread| thread.thread.is_defunct()).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_wait_that_began_before_is_ready_time_of_this_interval_only() {
        let waited = |ms: u64| ThreadReading { delay_ns: Some(CpuNs(ms * 1_000_000)), ..thread(7, 500, vec![]) };
        let later = ThreadReading { cpu_ns: CpuNs(750_000_000), ..waited(3000) };
        let [earlier, later] = [snapshot(1, vec![waited(0)]), snapshot(2, vec![later])];
        // It waited for 3 s, got a CPU in this second, and had it for a quarter of that.
        assert_eq!(uses(&[&earlier, &later]).living[0].ready(), Some(0.75));
    }

    #[test]
    fn what_a_child_used_before_is_not_counted_when_it_ends() {
        let process = |pid: i32, cpu_ms: u64, children_ms: u64| ThreadReading {
            children_ns: CpuNs(children_ms * 1_000_000),
            ..ThreadReading { pid, ..thread(pid, cpu_ms, vec![]) }
        };
        // A child that had used 60 s uses 0.5 s more, and ends; another, of 0.2 s, nobody has seen.
        let earlier = snapshot(1, vec![process(7, 100, 4_000), process(8, 60_000, 0)]);
        let later = snapshot(2, vec![process(7, 100, 64_700)]);
        assert!((of_ended_children(&earlier, &later) - 0.7).abs() < 1e-9);
        assert_eq!(uses(&[&earlier, &later]).living[0].ended_children, 60.7);
        // While it runs, its parent is told nothing; nor of one that nobody waits for.
        assert_eq!(of_ended_children(&earlier, &earlier), 0.0);
        assert_eq!(of_ended_children(&earlier, &snapshot(2, vec![process(7, 100, 4_000)])), 0.0);
    }

    #[test]
    fn where_processes_are_left_out_one_that_comes_back_brings_no_children() {
        let one = |pid, children_s: u64| ThreadReading {
            tid: pid,
            pid,
            children_ns: CpuNs(children_s * 1_000_000_000),
            ..ThreadReading::default()
        };
        let earlier = ThreadSnapshot { left_out: 1, ..snapshot(1, vec![one(7, 10), one(8, 500)]) };
        let later = ThreadSnapshot { left_out: 1, ..snapshot(2, vec![one(7, 12), one(9, 3600)]) };
        assert_eq!(of_ended_children(&earlier, &later), 2.0);
    }

    #[test]
    fn where_threads_are_left_out_none_is_new_and_none_has_ended() {
        let left_out = |at, threads| ThreadSnapshot { left_out: 1, ..snapshot(at, threads) };
        let first = left_out(1, vec![thread(7, 100, vec![]), thread(8, 100, vec![])]);
        let second = left_out(2, vec![thread(7, 200, vec![]), thread(9, 90_000, vec![])]);
        let third = left_out(3, vec![thread(9, 90_500, vec![]), thread(10, 50_000, vec![])]);
        let uses = uses(&[&first, &second, &third]);
        // In 2 s the one that was read twice used half a second; of the other nothing is known.
        assert_eq!(uses.living.iter().map(|thread| thread.cpu).collect::<Vec<_>>(), [0.25, 0.0]);
        assert_eq!(uses.ended, []);
    }

    #[test]
    fn a_thread_that_a_whole_snapshot_lacks_began_after_it_whatever_is_left_out_later() {
        let at = |second, left_out, threads| ThreadSnapshot { left_out, ..snapshot(second, threads) };
        let first = at(0, 0, vec![thread(7, 100, vec![])]);
        let second = at(1, 600, vec![thread(7, 100, vec![]), thread(8, 200, vec![]), thread(9, 300, vec![])]);
        let third = at(2, 600, vec![thread(7, 100, vec![]), thread(8, 300, vec![])]);
        let last =
            ThreadSnapshot { ended_threads: vec![thread(8, 400, vec![])], ..at(4, 0, vec![thread(7, 500, vec![])]) };
        let cpu = |uses: &[ThreadUse<'_>]| uses.iter().map(|one| (one.thread.tid, one.cpu)).collect::<Vec<_>>();
        // All that the four seconds had of each.
        let all = uses(&[&first, &second, &third, &last]);
        assert_eq!((cpu(&all.living), cpu(&all.ended)), (vec![(7, 0.1)], vec![(8, 0.1), (9, 0.075)]));
        // Whoever isn't in the third may live: nothing is said of it.
        let some = uses(&[&first, &second, &third]);
        assert_eq!((cpu(&some.living), cpu(&some.ended)), (vec![(7, 0.0), (8, 0.15)], vec![]));
        // Where the first leaves some out, a thread counts from its first reading.
        let late = uses(&[&second, &third, &last]);
        assert_eq!((cpu(&late.living), cpu(&late.ended)), (vec![(7, 0.4 / 3.0)], vec![(8, 0.2 / 3.0)]));
    }

    #[test]
    fn a_number_that_another_thread_has_now_is_not_the_same_thread() {
        let earlier = snapshot(1, vec![ThreadReading { began: 5, ..thread(7, 900, vec![]) }]);
        let later = snapshot(2, vec![ThreadReading { began: 6, ..thread(7, 100, vec![]) }]);
        assert!((uses(&[&earlier, &later]).living[0].cpu - 0.1).abs() < 1e-12);
        assert_eq!(uses(&[&later, &later]), Uses::default());
        assert_eq!(uses(&[&later]), Uses::default());
    }

    #[test]
    fn a_thread_that_ended_is_told_with_the_part_of_the_time_that_it_lived() {
        let locked = |times| vec![looks('S', "futex_wait", times)];
        let at = |second, threads| snapshot(second, threads);
        let first = at(0, vec![thread(7, 0, locked(0)), thread(9, 500, locked(10))]);
        let between = at(2, vec![thread(7, 200, locked(20)), thread(8, 400, locked(10)), thread(9, 700, locked(20))]);
        let mut last = at(4, vec![thread(7, 400, locked(40))]);
        let three = uses(&[&first, &between, &last]);
        assert_eq!(three.living.iter().map(|thread| thread.thread.tid).collect::<Vec<_>>(), [7]);
        let ended = |uses: &Uses<'_>| -> Vec<_> {
            uses.ended.iter().map(|use_| (use_.thread.tid, use_.cpu, use_.lived)).collect()
        };
        // 0.4 s and 0.2 s in 4 s; each was looked at 10 times, the one that lives 40 times.
        assert_eq!(ended(&three), [(8, 0.1, 0.25), (9, 0.05, 0.25)]);
        // One of them was seen once more before it ended, and a third came and went between two snapshots.
        last.ended_threads = vec![thread(8, 600, locked(20)), thread(11, 80, locked(4))];
        let told = uses(&[&first, &between, &last]);
        assert_eq!(ended(&told), [(8, 0.15, 0.5), (11, 0.02, 0.1), (9, 0.05, 0.25)]);
    }
}
