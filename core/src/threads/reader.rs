//! Reads threads from `/proc`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add as _;
use std::path::PathBuf;

use super::ended::EndedWatch;
use super::family::Family;
use super::process::ProcessReader;
use super::quota::QuotaWatch;
use super::{MOST_THREADS, Stat, ThreadId, ThreadLooks, ThreadReading, ThreadSnapshot};
use crate::host::{CpuTicks, HostFiles, HostStat, page_size};
use crate::units::{ClockTicks, CpuNs, WallNs};

/// Whose threads are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadTarget {
    /// A process with all that it starts.
    Family(i32),
    /// Processes, without what they start.
    Processes(Vec<i32>),
    /// Threads alone.
    Threads(Vec<i32>),
    /// All processes of the machine, without their threads.
    Machine,
}

/// Reads the threads of a target again and again, and keeps what each was seen doing.
#[derive(Debug)]
pub struct ThreadReader {
    host: HostFiles,
    target: ThreadTarget,
    page: u64,
    seen: BTreeMap<ThreadId, Vec<ThreadLooks>>,
    /// The most memory that each process was seen to have, in pages.
    most_resident: BTreeMap<ThreadId, u64>,
    /// The target when it was read last and something of it lived.
    last: Vec<(Place, Stat)>,
    /// The processes of a command.
    family: Family,
    /// Whether the machine's processes are to be searched for some of the command whose parents have ended.
    has_orphans: bool,
    /// What has ended since the last snapshot, as it was seen last.
    gone: Vec<(Place, Stat)>,
    processes: ProcessReader,
    quota: QuotaWatch,
    /// Hears of a machine's processes that end, where the kernel tells.
    ended: Option<EndedWatch>,
    /// CPU time at the last snapshot of more threads than it holds.
    used: BTreeMap<ThreadId, ClockTicks>,
    /// What the scheduler said of each thread at the last snapshot.
    scheduled: BTreeMap<ThreadId, SchedStat>,
    /// CPU time of the target's processes, with that of children that have ended, at the last snapshot.
    of_processes: BTreeMap<i32, ClockTicks>,
    /// The threads of the last snapshot.
    told: BTreeSet<ThreadId>,
    /// What the command had used before it was released, until a snapshot has told it.
    before_release: Option<UsedBefore>,
}

/// What the first thread of a command had used when it was released: until then it was a copy of who starts it.
#[derive(Debug)]
struct UsedBefore {
    id: ThreadId,
    faults: u64,
    times: SchedStat,
}

impl UsedBefore {
    /// Has a snapshot say what was used then instead of what has been used since.
    fn put_into(&self, threads: &mut [ThreadReading], all: &mut Option<CpuNs>) {
        let Some(first) = threads.iter_mut().find(|thread| thread.id() == self.id) else { return };
        let since = CpuNs(first.cpu_ns.0.saturating_sub(self.times.cpu.0));
        *all = all.map(|all| CpuNs(all.0.saturating_sub(since.0)));
        (first.cpu_ns, first.faults) = (self.times.cpu, self.faults);
        (first.delay_ns, first.switches) = (Some(self.times.delay), Some(self.times.switches));
    }
}

/// So many threads are looked for in what the processes of a family start. Of each process no more count than a
/// snapshot holds: one with very many doesn't hide what it starts.
const MOST_OF_CHILDREN: usize = 4 * MOST_THREADS;

/// The most threads that are asked for the processes that they started.
const MOST_ASKED: usize = 4096;

/// What has ended and used less than this is told by nothing but the sum of all.
const LEAST_OF_GONE: ClockTicks = ClockTicks(2);

/// Where a thread's files are.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    pid: i32,
    tid: i32,
    /// `proc/7/task/8`.
    folder: String,
}

/// The threads of a command's processes that were found.
#[derive(Debug, Default)]
struct FamilyTree {
    places: Vec<Place>,
    pids: BTreeSet<i32>,
    /// Threads of all processes but the command's own.
    of_children: usize,
}

impl FamilyTree {
    /// Adds a process, unless it is there.
    fn add(&mut self, pid: i32, threads: Vec<Place>) {
        if self.pids.insert(pid) {
            self.places.extend(threads);
        }
    }
}

/// What the kernel's scheduler says in `schedstat`: time on a CPU and waiting for one, and how often the thread was
/// given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SchedStat {
    cpu: CpuNs,
    delay: CpuNs,
    switches: u64,
}

fn id(place: &Place, stat: &Stat) -> ThreadId {
    ThreadId { tid: place.tid, began: stat.began }
}

fn ids(threads: &[(Place, Stat)]) -> BTreeSet<ThreadId> {
    threads.iter().map(|(place, stat)| id(place, stat)).collect()
}

impl ThreadReader {
    /// A reader of a target's threads.
    pub fn new(host: HostFiles, target: ThreadTarget) -> Self {
        Self {
            host,
            target,
            page: page_size(),
            seen: BTreeMap::new(),
            most_resident: BTreeMap::new(),
            last: Vec::new(),
            family: Family::default(),
            has_orphans: false,
            gone: Vec::new(),
            processes: ProcessReader::default(),
            quota: QuotaWatch::default(),
            ended: None,
            used: BTreeMap::new(),
            scheduled: BTreeMap::new(),
            of_processes: BTreeMap::new(),
            told: BTreeSet::new(),
            before_release: None,
        }
    }

    /// Hears of each process of the machine that ends, too, where the kernel tells this process.
    #[must_use]
    pub fn with_ended(self) -> Self {
        let cpus = self.host.text("sys/devices/system/cpu/possible");
        let ended =
            cpus.filter(|_| self.target == ThreadTarget::Machine).and_then(|cpus| EndedWatch::start(cpus.trim()));
        Self { ended, ..self }
    }

    /// Notes what a command has used that is about to be released: the first snapshot tells that, with the time 0, so that nothing is
    /// missing that the command does before it.
    pub fn note_release(&mut self) {
        let ThreadTarget::Family(pid) = self.target else { return };
        let place = Place { pid, tid: pid, folder: format!("proc/{pid}/task/{pid}") };
        self.before_release = self.stat(&place).zip(self.schedstat(&place)).map(|(stat, times)| UsedBefore {
            id: id(&place, &stat),
            faults: stat.faults,
            times,
        });
    }

    /// Looks at what each thread does now.
    pub fn look(&mut self) {
        self.read();
    }

    /// What `stat` says of each thread, each seen once more. Of a target that has ended it is what was said last: what
    /// used the CPU until then is not to be missing at the end.
    fn read(&mut self) -> Vec<(Place, Stat)> {
        // First, so that what ends meanwhile isn't taken for one that lived then.
        self.ended.iter_mut().for_each(EndedWatch::read);
        let read: Vec<_> = self.places().into_iter().filter_map(|place| Some((self.stat(&place)?, place))).collect();
        let has_ended = read.iter().all(|(stat, _)| stat.has_ended());
        if has_ended && self.target != ThreadTarget::Machine && !self.last.is_empty() {
            return self.last.clone();
        }
        let read: Vec<_> = read.into_iter().map(|(stat, place)| (place, stat)).collect();
        read.iter().for_each(|(place, stat)| self.see(place, stat));
        self.keep_family(&read);
        let last = std::mem::replace(&mut self.last, read.clone());
        if self.target != ThreadTarget::Machine {
            let living = ids(&read);
            // What was told before is told to its end, also of threads that only waited.
            let is_told = |one: &(Place, Stat)| self.told.contains(&id(&one.0, &one.1));
            let is_gone = |one: &(Place, Stat)| {
                (one.1.cpu() >= LEAST_OF_GONE || is_told(one)) && !living.contains(&id(&one.0, &one.1))
            };
            self.gone.extend(last.into_iter().filter(is_gone));
        }
        read
    }

    /// Knows the processes of a command from now on; what has ended since the last time may have left some.
    fn keep_family(&mut self, read: &[(Place, Stat)]) {
        if !matches!(self.target, ThreadTarget::Family(_)) {
            return;
        }
        let processes = || read.iter().filter(|(place, _)| place.pid == place.tid);
        processes().for_each(|(place, stat)| self.family.add(place.pid, stat));
        let living: BTreeSet<i32> =
            processes().filter(|(_, stat)| !stat.has_ended()).map(|(place, _)| place.pid).collect();
        self.has_orphans = self.last.iter().any(|(place, stat)| !stat.has_ended() && !living.contains(&place.pid));
    }

    fn see(&mut self, place: &Place, stat: &Stat) {
        // Who ends gives its memory back bit by bit.
        if place.pid == place.tid && !stat.ends() && stat.resident_pages > 0 {
            let most = self.most_resident.entry(id(place, stat)).or_default();
            *most = stat.resident_pages.max(*most);
        }
        // What the first of several threads does says nothing of the others.
        if self.target == ThreadTarget::Machine && stat.threads > 1 {
            return;
        }
        // Who runs is nowhere; the file of who has just begun to run would say where it was. It may have ended by the
        // next look.
        let within = if stat.state == 'R' { String::new() } else { self.within(place) };
        if self.target != ThreadTarget::Machine {
            self.scheduled(place, stat);
        }
        let looks = self.seen.entry(id(place, stat)).or_default();
        match looks.iter_mut().find(|looks| looks.state == stat.state && looks.within == within) {
            Some(looks) => looks.times += 1,
            None => looks.push(ThreadLooks { state: stat.state, within, times: 1 }),
        }
    }

    /// What all have done until now, with one more look at each.
    pub fn snapshot(&mut self, at: WallNs) -> ThreadSnapshot {
        // What came and went between two looks may have left some, too.
        self.has_orphans = true;
        let mut read = self.read();
        let ended_threads = self.ended_threads();
        // Those that have ended are no longer looked at.
        let living = ids(&read);
        self.seen.retain(|id, _| living.contains(id));
        self.most_resident.retain(|id, _| living.contains(id));
        self.scheduled.retain(|id, _| living.contains(id));
        self.processes.retain(&living);
        let lived = || read.iter().map(|(place, stat)| (place.pid, stat.cpu().cpu_time()));
        let ended = self.ended.as_mut().map_or_else(Vec::new, |ended| ended.snapshot(lived()));
        let pids: Vec<i32> =
            read.iter().map(|(place, _)| place).filter(|place| place.pid == place.tid).map(|place| place.pid).collect();
        let left_out = read.len().saturating_sub(MOST_THREADS);
        if left_out > 0 {
            self.keep_busiest(&mut read);
        }
        self.told = ids(&read);
        let mut threads: Vec<_> = read.into_iter().map(|(place, stat)| self.reading(&place, stat)).collect();
        let HostStat { cpus: ticks, started } = self.host.stat();
        let is_machine = self.target == ThreadTarget::Machine;
        let machine_busy_ns = ticks.iter().find(|of| of.cpu.is_none() && !is_machine).map(CpuTicks::busy);
        let (ticks, resources) = if is_machine { (ticks, self.host.resources()) } else { (Vec::new(), None) };
        let mut all_ns = self.all(&threads, &pids, &ticks);
        let before = self.before_release.take();
        before.iter().for_each(|before| before.put_into(&mut threads, &mut all_ns));
        let busy_ns = ticks.iter().filter_map(|of| Some((of.cpu?, of.busy()))).collect();
        let first = threads.first().filter(|_| !is_machine).map(|thread| thread.pid);
        let quota = first.and_then(|first| self.quota.read(&self.host, first));
        ThreadSnapshot {
            at_ns: if before.is_some() { WallNs(0) } else { at },
            started,
            left_out,
            all_ns,
            machine_busy_ns,
            busy_ns,
            quota,
            resources,
            ended,
            ended_threads,
            first: None,
            threads,
        }
    }

    /// What has ended since the last snapshot: as many as a snapshot holds, those with most CPU time first.
    fn ended_threads(&mut self) -> Vec<ThreadReading> {
        let mut gone = std::mem::take(&mut self.gone);
        gone.sort_by_key(|(_, stat)| Reverse(stat.cpu()));
        gone.truncate(MOST_THREADS);
        gone.into_iter().map(|(place, stat)| self.reading(&place, stat)).collect()
    }

    /// Keeps as many as a snapshot holds: those that used most CPU time since the last one, and those of the kernel
    /// last.
    fn keep_busiest(&mut self, read: &mut Vec<(Place, Stat)>) {
        let before =
            std::mem::replace(&mut self.used, read.iter().map(|one| (id(&one.0, &one.1), one.1.cpu())).collect());
        let used = |one: &(Place, Stat)| one.1.cpu() - before.get(&id(&one.0, &one.1)).copied().unwrap_or_default();
        read.sort_by_cached_key(|one| (one.1.is_of_kernel(), Reverse(used(one)), one.0.pid, one.0.tid));
        read.truncate(MOST_THREADS);
        read.sort_by_key(|(place, _)| (place.pid, place.tid));
    }

    /// CPU time of all of the target, with that of threads that a snapshot has no room for: of all its processes; of a
    /// machine, by how long its CPUs were busy, also those that are offline now. Of a process that is gone it is what
    /// was said last.
    fn all(&mut self, threads: &[ThreadReading], pids: &[i32], ticks: &[CpuTicks]) -> Option<CpuNs> {
        match &self.target {
            ThreadTarget::Machine => {
                let together = ticks.iter().find(|of| of.cpu.is_none());
                together.map(CpuTicks::busy).filter(|busy| busy.0 > 0)
            }
            ThreadTarget::Threads(_) => None,
            ThreadTarget::Family(_) | ThreadTarget::Processes(_) => {
                let now = |pid: i32| {
                    let stat = self.process(pid)?;
                    Some(stat.cpu() + stat.children())
                };
                let read: Vec<_> = pids.iter().map(|&pid| (pid, now(pid))).collect();
                let is_gone = read.iter().any(|(_, ticks)| ticks.is_none());
                let before = |pid: &i32| self.of_processes.get(pid).copied();
                self.of_processes =
                    read.into_iter().filter_map(|(pid, ticks)| Some((pid, ticks.or_else(|| before(&pid))?))).collect();
                let all = self.of_processes.values().copied().fold(ClockTicks(0), ClockTicks::add).cpu_time();
                // What was said last of a process that is gone may be older than what its threads were seen to have
                // used.
                let of_threads = threads.iter().map(|thread| thread.cpu_ns.0).sum();
                Some(if is_gone { all.max(CpuNs(of_threads)) } else { all })
            }
        }
    }

    fn reading(&mut self, place: &Place, stat: Stat) -> ThreadReading {
        let is_first = place.pid == place.tid;
        let looks = self.seen.get(&id(place, &stat)).cloned().unwrap_or_default();
        // That of a process' folder is of its first thread alone.
        let process = is_first.then(|| self.processes.details(&self.host, place.pid, &stat));
        let resident = if is_first && !stat.ends() { stat.resident_pages } else { 0 };
        let most = self.most_resident.get(&id(place, &stat)).copied().filter(|most| is_first && *most > resident);
        let times = if self.target == ThreadTarget::Machine { None } else { self.scheduled(place, &stat) };
        ThreadReading {
            pid: place.pid,
            tid: place.tid,
            began: stat.began.0,
            cpu_ns: times.map_or(stat.cpu().cpu_time(), |times| times.cpu),
            delay_ns: times.map(|times| times.delay),
            children_ns: if is_first { stat.children().cpu_time() } else { CpuNs(0) },
            resident: resident.saturating_mul(self.page),
            most_resident: most.unwrap_or(0).saturating_mul(self.page),
            faults: stat.faults,
            switches: times.map(|times| times.switches),
            process,
            looks,
            blocked_ns: stat.blocked.cpu_time(),
            is_of_kernel: stat.is_of_kernel(),
            name: stat.name,
        }
    }

    /// What the scheduler says of a thread; once it is gone, what it said last, with the CPU time that was seen since.
    fn scheduled(&mut self, place: &Place, stat: &Stat) -> Option<SchedStat> {
        let id = id(place, stat);
        let kept = || {
            let kept = self.scheduled.get(&id)?;
            Some(SchedStat { cpu: kept.cpu.max(stat.cpu().cpu_time()), ..*kept })
        };
        let times = self.schedstat(place).or_else(kept)?;
        self.scheduled.insert(id, times);
        Some(times)
    }

    fn schedstat(&self, place: &Place) -> Option<SchedStat> {
        let text = self.host.text(&format!("{}/schedstat", place.folder))?;
        let numbers: Vec<u64> = text.split_whitespace().map_while(|number| number.parse().ok()).collect();
        let [cpu, delay, switches] = numbers[..] else { return None };
        Some(SchedStat { cpu: CpuNs(cpu), delay: CpuNs(delay), switches })
    }

    fn stat(&self, place: &Place) -> Option<Stat> {
        Stat::parse(&self.host.text(&format!("{}/stat", place.folder))?)
    }

    /// The kernel says `0` to who may not know, and of who doesn't wait.
    fn within(&self, place: &Place) -> String {
        let within = self.host.text(&format!("{}/wchan", place.folder)).unwrap_or_default();
        if within == "0" { String::new() } else { within }
    }

    fn places(&mut self) -> Vec<Place> {
        match &self.target {
            ThreadTarget::Machine => {
                let place = |pid: i32| Place { pid, tid: pid, folder: format!("proc/{pid}") };
                self.numbers("proc").into_iter().map(place).collect()
            }
            ThreadTarget::Threads(tids) => {
                let place = |tid: &i32| {
                    let pid = self.process_of(*tid)?;
                    Some(Place { pid, tid: *tid, folder: format!("proc/{pid}/task/{tid}") })
                };
                tids.iter().filter_map(place).collect()
            }
            ThreadTarget::Processes(pids) => pids.iter().flat_map(|pid| self.threads(*pid)).collect(),
            ThreadTarget::Family(pid) => self.family_of(*pid),
        }
    }

    /// The threads of a command's processes: its tree, those that were in it, and those that have left it unseen.
    fn family_of(&mut self, command: i32) -> Vec<Place> {
        // What it started may have lost its parent before anything was read.
        if self.family.is_unknown()
            && let Some(stat) = self.process(command)
        {
            self.family.add(command, &stat);
        }
        let mut tree = FamilyTree::default();
        self.grow(&mut tree, command);
        for pid in self.family.missing(&tree.pids) {
            match self.process(pid) {
                Some(stat) if self.family.is_same(pid, &stat) => self.grow(&mut tree, pid),
                _ => self.family.forget(pid),
            }
        }
        if std::mem::take(&mut self.has_orphans) {
            let all = self.numbers("proc");
            for pid in self.family.unknown(&all) {
                let Some(stat) = self.process(pid).filter(|_| !tree.pids.contains(&pid)) else { continue };
                let adopter = self.process(stat.parent);
                if self.family.has_orphan(pid, &stat, adopter.as_ref()) {
                    self.grow(&mut tree, pid);
                }
            }
        }
        tree.places.sort_by_key(|place| (place.pid, place.tid));
        tree.places
    }

    /// Adds a process with all that it started to a tree, as far as there is room.
    fn grow(&self, tree: &mut FamilyTree, pid: i32) {
        let mut next = tree.places.len();
        tree.add(pid, self.threads(pid));
        while next < tree.places.len().min(MOST_ASKED) && tree.of_children <= MOST_OF_CHILDREN {
            for pid in self.children(&tree.places[next]) {
                let threads = self.threads(pid);
                tree.of_children += threads.len().min(MOST_THREADS);
                tree.add(pid, threads);
            }
            next += 1;
        }
    }

    fn process(&self, pid: i32) -> Option<Stat> {
        self.stat(&Place { pid, tid: pid, folder: format!("proc/{pid}") })
    }

    /// The processes that a thread started and that run still.
    fn children(&self, place: &Place) -> Vec<i32> {
        let children = self.host.text(&format!("{}/children", place.folder)).unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    fn threads(&self, pid: i32) -> Vec<Place> {
        let place = |tid: i32| Place { pid, tid, folder: format!("proc/{pid}/task/{tid}") };
        self.numbers(&format!("proc/{pid}/task")).into_iter().map(place).collect()
    }

    fn process_of(&self, tid: i32) -> Option<i32> {
        crate::host::field(&self.host.text(&format!("proc/{tid}/status"))?, "Tgid")?.parse().ok()
    }

    /// The numbers among the names in a folder, ascending.
    fn numbers(&self, folder: &str) -> Vec<i32> {
        let path: PathBuf = self.host.path(folder);
        let entries = std::fs::read_dir(path).into_iter().flatten();
        let mut numbers: Vec<i32> =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use super::super::ProcessDetails;
    use super::*;
    use crate::threads::stat::KERNEL_THREAD;

    /// A line of `stat` of a process with two threads, with these fields: name, state, user and system ticks, those of
    /// children, start, pages.
    fn stat(name: &str, state: char, ticks: [u64; 4], began: u64, pages: u64) -> String {
        let [user, system, users, systems] = ticks;
        format!(
            "7 ({name}) {state} 1 7 7 0 -1 0 30 0 2 0 {user} {system} {users} {systems} 20 0 2 0 {began} 9999 {pages} 0\n"
        )
    }

    fn write(root: &Path, files: &[(&str, String)]) {
        for (path, text) in files {
            let path = root.join("proc").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// Process 7 with a thread 8 that waits for a lock, and its child 9.
    fn machine(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("perfprop-threads-{name}-{}", std::process::id()));
        let files = [
            ("stat", "cpu  150 0 100 9 9\ncpu0 100 0 100 7 7\nprocesses 4711\nprocs_running 1\n".to_owned()),
            ("7/stat", stat("a (b) c", 'R', [50, 50, 0, 0], 100, 3)),
            ("7/task/7/stat", stat("a (b) c", 'R', [30, 10, 5, 5], 100, 3)),
            ("7/task/7/schedstat", "400000001 20000002 9\n".into()),
            ("7/task/7/children", "9 \n".into()),
            ("7/task/8/stat", stat("worker", 'S', [60, 0, 5, 5], 101, 3)),
            ("7/task/8/wchan", "futex_wait_queue".into()),
            ("7/status", "Name:\ta (b) c\nUid:\t0\t4294967294\t0\t0\n".into()),
            ("7/cmdline", "a\0-v\0".into()),
            ("7/task/8/status", "Name:\tworker\nTgid:\t7\n".into()),
            ("8/status", "Name:\tworker\nTgid:\t7\n".into()),
            ("9/stat", stat("child", 'D', [1, 0, 0, 0], 102, 1)),
            ("9/task/9/stat", stat("child", 'D', [1, 0, 0, 0], 102, 1)),
            ("9/task/9/wchan", "0".into()),
        ];
        write(&root, &files);
        root
    }

    fn reader(root: &Path, target: ThreadTarget) -> ThreadReader {
        ThreadReader { page: 4096, ..ThreadReader::new(HostFiles::under(root), target) }
    }

    #[test]
    fn a_family_is_read_with_its_threads_and_children() {
        let root = machine("family");
        let mut reader = reader(&root, ThreadTarget::Family(7));
        reader.look();
        let snapshot = reader.snapshot(WallNs(5));
        assert_eq!((snapshot.at_ns, snapshot.started, snapshot.left_out), (WallNs(5), Some(4711), 0));
        let looks = |state, within: &str| vec![ThreadLooks { state, within: within.into(), times: 2 }];
        let [main, worker, child] = &snapshot.threads[..] else { panic!("{snapshot:?}") };
        let wanted = ThreadReading {
            pid: 7,
            tid: 7,
            name: "a (b) c".into(),
            began: 100,
            cpu_ns: CpuNs(400_000_001),
            delay_ns: Some(CpuNs(20_000_002)),
            children_ns: CpuNs(100_000_000),
            resident: 3 * 4096,
            faults: 32,
            switches: Some(9),
            process: Some(Arc::new(ProcessDetails { user: "4294967294".into(), command: "a -v".into() })),
            looks: looks('R', ""),
            ..ThreadReading::default()
        };
        assert_eq!(*main, wanted);
        // Without schedstat it is by ticks; the children and the memory are those of the process.
        let wanted = ThreadReading {
            pid: 7,
            tid: 8,
            name: "worker".into(),
            began: 101,
            cpu_ns: CpuNs(600_000_000),
            faults: 32,
            looks: looks('S', "futex_wait_queue"),
            ..ThreadReading::default()
        };
        assert_eq!(*worker, wanted);
        assert_eq!((child.pid, child.tid, &child.looks), (9, 9, &looks('D', "")));
        // 100 ticks of the first process and 1 of the child, by their own files.
        assert_eq!(snapshot.all_ns, Some(CpuNs(1_010_000_000)));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_command_is_told_from_its_release_on() {
        let root = machine("release");
        let mut reader = reader(&root, ThreadTarget::Family(7));
        reader.note_release();
        let later = stat("command", 'R', [60, 10, 5, 5], 100, 3).replace("0 30 0 2 0", "0 930 0 2 0");
        write(&root, &[("7/task/7/stat", later), ("7/task/7/schedstat", "700000001 50000002 12\n".into())]);
        let (first, second) = (reader.snapshot(WallNs(5)), reader.snapshot(WallNs(6)));
        let told = |snapshot: &ThreadSnapshot| {
            let command = &snapshot.threads[0];
            let counts = (command.cpu_ns.0, command.delay_ns.map(|delay| delay.0), command.faults, command.switches);
            (snapshot.at_ns.0, command.name.clone(), counts)
        };
        // What it had used before, at the time 0, by the name that it has now; 300 ms less than it has used since.
        assert_eq!(told(&first), (0, "command".into(), (400_000_001, Some(20_000_002), 32, Some(9))));
        assert_eq!(told(&second), (6, "command".into(), (700_000_001, Some(50_000_002), 932, Some(12))));
        assert_eq!(second.all_ns.unwrap().0 - first.all_ns.unwrap().0, 300_000_000);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_thread_that_only_waited_is_told_to_its_end() {
        let root = machine("waited");
        let waits = |times: u64| ("7/task/10/stat", stat("waits", 'S', [0; 4], 103 + times, 3));
        write(&root, &[waits(0)]);
        let mut reader = reader(&root, ThreadTarget::Family(7));
        reader.snapshot(WallNs(0));
        (0..3).for_each(|_| reader.look());
        fs::remove_dir_all(root.join("proc/7/task/10")).unwrap();
        let looks = |snapshot: &ThreadSnapshot| {
            let ended = &snapshot.ended_threads;
            ended.iter().map(|one| (one.tid, one.looks[0].times)).collect::<Vec<_>>()
        };
        assert_eq!(looks(&reader.snapshot(WallNs(1))), [(10, 4)]);
        // One that no snapshot had is told by nothing but the sum of all.
        write(&root, &[waits(1)]);
        reader.look();
        fs::remove_dir_all(root.join("proc/7/task/10")).unwrap();
        assert_eq!(looks(&reader.snapshot(WallNs(2))), []);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn children_are_found_of_processes_with_very_many_threads() {
        let root = machine("many-threads");
        (0..3 * MOST_THREADS)
            .for_each(|one| fs::create_dir_all(root.join(format!("proc/7/task/{}", 100 + one))).unwrap());
        let snapshot = reader(&root, ThreadTarget::Family(7)).snapshot(WallNs(0));
        assert_eq!(snapshot.threads.iter().map(|thread| thread.pid).collect::<Vec<_>>(), [7, 7, 9]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_child_is_followed_when_its_parent_has_ended() {
        let root = machine("orphan");
        let mut reader = reader(&root, ThreadTarget::Family(7));
        let pids =
            |snapshot: &ThreadSnapshot| snapshot.threads.iter().map(|thread| thread.pid).collect::<BTreeSet<_>>();
        assert_eq!(pids(&reader.snapshot(WallNs(0))), BTreeSet::from([7, 9]));
        // Another child came and went, and left process 12 in the group of the command, and 13 has nothing to do with
        // it.
        let of = |ids: &str| stat("orphan", 'R', [2, 0, 0, 0], 900, 3).replace(" R 1 7 7 ", ids);
        write(
            &root,
            &[
                ("7/task/7/children", String::new()),
                ("1/stat", stat("init", 'S', [0; 4], 0, 3).replace(" S 1 7 7 ", " S 0 1 1 ")),
                ("12/stat", of(" R 1 7 7 ")),
                ("12/task/12/stat", of(" R 1 7 7 ")),
                ("13/stat", of(" R 1 13 13 ")),
                ("13/task/13/stat", of(" R 1 13 13 ")),
            ],
        );
        assert_eq!(pids(&reader.snapshot(WallNs(1))), BTreeSet::from([7, 9, 12]));
        // Another process has the number of one that is gone.
        write(&root, &[("9/stat", of(" R 1 13 13 ")), ("9/task/9/stat", of(" R 1 13 13 "))]);
        let last = reader.snapshot(WallNs(2));
        assert_eq!(pids(&last), BTreeSet::from([7, 12]));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_child_that_lost_its_parent_before_the_first_look_is_found() {
        let root = machine("early-orphan");
        let orphan = stat("orphan", 'R', [2, 0, 0, 0], 101, 3);
        write(&root, &[("12/stat", orphan.clone()), ("12/task/12/stat", orphan)]);
        let snapshot = reader(&root, ThreadTarget::Family(7)).snapshot(WallNs(0));
        assert!(snapshot.threads.iter().any(|thread| thread.pid == 12), "{snapshot:?}");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn other_targets_are_read_as_they_are() {
        let root = machine("others");
        let ids = |target| {
            let snapshot = reader(&root, target).snapshot(WallNs(0));
            snapshot.threads.iter().map(|thread| (thread.pid, thread.tid)).collect::<Vec<_>>()
        };
        assert_eq!(ids(ThreadTarget::Processes(vec![7, 99])), [(7, 7), (7, 8)]);
        assert_eq!(ids(ThreadTarget::Threads(vec![8, 99])), [(7, 8)]);
        assert_eq!(ids(ThreadTarget::Machine), [(7, 7), (9, 9)]);
        // Of a machine's process it is the time of all its threads.
        let snapshot = reader(&root, ThreadTarget::Machine).snapshot(WallNs(0));
        assert_eq!((snapshot.threads[0].cpu_ns, snapshot.threads[0].delay_ns), (CpuNs(1_000_000_000), None));
        // Another CPU is offline, which was busy for half a second.
        assert_eq!(
            (snapshot.all_ns, &snapshot.busy_ns[..]),
            (Some(CpuNs(2_500_000_000)), &[(0, CpuNs(2_000_000_000))][..])
        );
        // It has two: what the first does says nothing of the other.
        assert_eq!(snapshot.threads[0].looks, []);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_thread_that_has_ended_is_forgotten() {
        let root = machine("ended");
        let mut reader = reader(&root, ThreadTarget::Processes(vec![7]));
        reader.snapshot(WallNs(0));
        // Another one has its number now.
        write(&root, &[("7/task/8/stat", stat("other", 'S', [0; 4], 900, 3))]);
        let snapshot = reader.snapshot(WallNs(1));
        assert_eq!((snapshot.threads[1].name.as_str(), snapshot.threads[1].looks[0].times), ("other", 1));
        assert_eq!(reader.seen.len(), 2);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_thread_that_slept_when_it_was_seen_last_is_told_until_then() {
        let root = machine("slept");
        let mut reader = reader(&root, ThreadTarget::Processes(vec![7]));
        write(&root, &[("7/task/8/schedstat", "600000000 1000 5\n".into())]);
        reader.snapshot(WallNs(0));
        write(&root, &[("7/task/8/schedstat", "610000000 3000 70\n".into())]);
        reader.look();
        fs::remove_dir_all(root.join("proc/7/task/8")).unwrap();
        let last = reader.snapshot(WallNs(1));
        let [worker] = &last.ended_threads[..] else { panic!("{last:?}") };
        assert_eq!(
            (worker.cpu_ns, worker.delay_ns, worker.switches),
            (CpuNs(610_000_000), Some(CpuNs(3000)), Some(70))
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn memory_that_a_process_gives_back_as_it_ends_is_not_what_it_had() {
        let root = machine("memory");
        let mut reader = reader(&root, ThreadTarget::Family(7));
        let child = |pages, flags: u64| {
            let line =
                stat("child", 'R', [9, 0, 0, 0], 102, pages).replace(" 0 -1 0 30 ", &format!(" 0 -1 {flags} 30 "));
            [("9/stat", line.clone()), ("9/task/9/stat", line)]
        };
        let memory = |snapshot: &ThreadSnapshot| {
            let all = snapshot.threads.iter().chain(&snapshot.ended_threads);
            all.filter(|thread| thread.pid == 9).map(|one| (one.resident / 4096, one.peak() / 4096)).collect::<Vec<_>>()
        };
        write(&root, &child(300, 0));
        reader.look();
        write(&root, &child(90, 0));
        assert_eq!(memory(&reader.snapshot(WallNs(0))), [(90, 300)]);
        write(&root, &child(20, 0x4));
        assert_eq!(memory(&reader.snapshot(WallNs(1))), [(0, 300)]);
        fs::remove_dir_all(root.join("proc/9")).unwrap();
        write(&root, &[("7/task/7/children", String::new())]);
        assert_eq!(memory(&reader.snapshot(WallNs(2))), [(0, 300)]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn of_a_target_that_has_ended_it_is_told_what_was_seen_last() {
        let root = machine("last");
        let mut reader = reader(&root, ThreadTarget::Processes(vec![7]));
        reader.look();
        fs::remove_dir_all(root.join("proc/7/task/8")).unwrap();
        let ids = |snapshot: &ThreadSnapshot| snapshot.threads.iter().map(|thread| thread.tid).collect::<Vec<_>>();
        // A thread that ends before the others is told as it was seen last, once.
        let [first, second] = [0, 1].map(|at| reader.snapshot(WallNs(at)));
        assert_eq!((ids(&first), ids(&second), &second.ended_threads[..]), (vec![7], vec![7], &[][..]));
        let [worker] = &first.ended_threads[..] else { panic!("{first:?}") };
        assert_eq!((worker.tid, worker.cpu_ns, worker.looks[0].times), (8, CpuNs(600_000_000), 1));
        write(&root, &[("7/task/7/stat", stat("a (b) c", 'Z', [31, 10, 5, 5], 100, 0))]);
        let last = reader.snapshot(WallNs(1));
        assert_eq!((ids(&last), last.threads[0].resident, last.threads[0].is_defunct()), (vec![7], 3 * 4096, false));
        fs::remove_dir_all(root.join("proc/7")).unwrap();
        let gone = reader.snapshot(WallNs(2));
        let one = &gone.threads[0];
        assert_eq!((ids(&gone), one.switches, one.delay_ns), (vec![7], Some(9), Some(CpuNs(20_000_002))));
        // No time goes backwards.
        assert_eq!((one.cpu_ns, gone.all_ns), (CpuNs(400_000_001), last.all_ns));
        assert!(gone.all_ns.is_some_and(|all| all.0 > 0));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn of_too_many_processes_the_busiest_are_kept() {
        let root = std::env::temp_dir().join(format!("perfprop-threads-many-{}", std::process::id()));
        let of_kernel = |pid: u64| {
            stat("kworker", 'I', [9, 9, 0, 0], pid, 0).replace(" 0 -1 0 30 ", &format!(" 0 -1 {KERNEL_THREAD} 30 "))
        };
        let user = |pid: u64, ticks: u64| stat("user", 'S', [ticks, 0, 0, 0], pid, 3);
        let file = |pid: u64, text: String| {
            fs::create_dir_all(root.join(format!("proc/{pid}")))
                .and_then(|()| fs::write(root.join(format!("proc/{pid}/stat")), text))
                .unwrap()
        };
        for pid in 1..=500 {
            file(pid, of_kernel(pid));
        }
        for pid in 501..=600 {
            file(pid, user(pid, 1000));
        }
        let mut reader = reader(&root, ThreadTarget::Machine);
        let first = reader.snapshot(WallNs(0));
        let of_users =
            |snapshot: &ThreadSnapshot| snapshot.threads.iter().filter(|thread| thread.name == "user").count();
        assert_eq!((first.threads.len(), first.left_out, of_users(&first)), (MOST_THREADS, 88, 100));
        // More of them, of which those at the end of the list are busy.
        for pid in 501..=1100 {
            file(pid, user(pid, 1000));
        }
        reader.snapshot(WallNs(1));
        for pid in 1090..=1100 {
            file(pid, user(pid, 1001));
        }
        let last = reader.snapshot(WallNs(2));
        let ids: Vec<i32> = last.threads.iter().map(|thread| thread.pid).collect();
        assert!((1090..=1100).all(|pid| ids.contains(&pid)) && of_users(&last) == MOST_THREADS && ids.is_sorted());
        fs::remove_dir_all(root).unwrap();
    }
}
