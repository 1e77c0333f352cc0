//! Tracks processes by their records, and finds the code at an address of a process.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::fs;
use std::ops::Range;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::epilogue::Epilogue;
use super::paths::LocationId;
use super::unwind::{CallerRule, FramePlace, UnwindCache, Unwinder, Unwound};
use crate::files::{self, Answerer, Identity};
use crate::sources::process;
use crate::stacks::live::mapped::{CodeMapping, Mappings, MapsLine, Module, ModuleId, Modules, OUTSIDE, SeenAddresses};
use crate::stacks::live::namespaces;
use crate::stacks::live::rings::{Mmap, Tasks, UserState};
use crate::stacks::{Task, TaskId};

/// How long reading the mappings of a process may take: the rings fill meanwhile.
const READING: Duration = Duration::from_secs(1);

/// Tasks that were sampled, past which threads of one name have one task together: each thread has paths of its own in
/// a profile.
const MOST_TASKS: usize = 1 << 14;
/// Samples from which on a thread has a task of its own all the same.
const SAMPLES_ALONE: u32 = 32;
/// Names that have such a task each.
const MOST_JOINED: usize = 4096;

/// Addresses that a process remembers the locations of, before it forgets them all.
const MAX_REMEMBERED: usize = 1 << 18;

/// The mappings of a process, and what was found out by them.
#[derive(Default)]
pub(in crate::stacks::live) struct AddressSpace {
    mappings: Mappings,
    /// Locations of addresses that were looked up before; valid until the next change of the mappings.
    pub(super) known: FxHashMap<u64, LocationId>,
    unwinder: Option<Unwinder>,
    /// What follows calls in code that the process made; valid until the next change of the mappings, too.
    epilogues: FxHashMap<u64, Option<Epilogue>>,
}

impl AddressSpace {
    fn map(&mut self, mapping: CodeMapping) {
        self.mappings.map(mapping);
        self.forget();
    }

    fn forget(&mut self) {
        self.known.clear();
        self.epilogues.clear();
        self.unwinder = None;
    }

    /// That of a child. Most children execute at once, so that what was found out of single addresses would be copied
    /// for nothing.
    fn fork(&self) -> Self {
        Self { mappings: self.mappings.clone(), unwinder: self.unwinder.clone(), ..Self::default() }
    }

    /// The module and the place in it that lie at an address.
    pub(super) fn place(&self, address: u64) -> Option<(ModuleId, u64)> {
        self.mappings.find(address).map(|mapping| (mapping.module, mapping.place(address)))
    }

    /// Whether nothing is known of what is mapped.
    pub(super) fn is_empty(&self) -> bool {
        self.mappings.iter().next().is_none()
    }

    /// Remembers where an address lies.
    pub(super) fn remember(&mut self, address: u64, location: LocationId) {
        if self.known.len() >= MAX_REMEMBERED {
            self.known.clear();
        }
        self.known.insert(address, location);
    }

    fn unwinder(&mut self, modules: &Modules, cache: &mut UnwindCache) -> &Unwinder {
        self.unwinder.get_or_insert_with(|| Unwinder::new(&self.mappings, modules, cache))
    }

    /// Appends the addresses of a stack that was copied of this process.
    pub(super) fn unwind(
        &mut self,
        pid: i32,
        user: &UserState<'_>,
        modules: &Modules,
        cache: &mut UnwindCache,
        out: &mut Vec<u64>,
    ) -> Unwound {
        let unwinder = self.unwinder.get_or_insert_with(|| Unwinder::new(&self.mappings, modules, cache));
        let (mappings, epilogues) = (&self.mappings, &mut self.epilogues);
        if epilogues.len() >= MAX_REMEMBERED {
            epilogues.clear();
        }
        let made = |address: u64| {
            // Other processors' trampolines keep frame pointers.
            let is_made = || {
                cfg!(target_arch = "x86_64")
                    && mappings.find(address).is_some_and(|found| modules.is_made(found.module))
            };
            *epilogues.entry(address).or_insert_with(|| is_made().then(|| Epilogue::at(pid, address)).flatten())
        };
        unwinder.unwind(user, cache, made, out)
    }

    /// How the caller of the code at an address is found.
    pub(super) fn caller_rule(
        &mut self,
        address: u64,
        place: FramePlace,
        modules: &Modules,
        cache: &mut UnwindCache,
    ) -> CallerRule {
        let module = self.place(address).map(|(module, _)| module);
        let is_known = module.is_some_and(|module| cache.modules.of(module, modules).is_some());
        match self.unwinder(modules, cache).caller_rule(address, place, cache) {
            CallerRule::FramePointer if !is_known => CallerRule::Assumed,
            rule => rule,
        }
    }
}

/// So many threads that have ended are remembered.
const MOST_ENDED: usize = 64;

/// The processes and threads that were seen.
#[derive(Default)]
pub(in crate::stacks::live) struct Processes {
    spaces: FxHashMap<i32, AddressSpace>,
    threads: FxHashMap<i32, SeenThread>,
    /// How many of them each process has.
    thread_counts: FxHashMap<i32, usize>,
    /// The threads that ended last: the kernel samples them on their way out, after it has said that they end.
    ended: VecDeque<(i32, SeenThread)>,
    /// The threads that were sampled, each under each of its names.
    tasks: Vec<Task>,
    /// The tasks of threads of a name together, once there are [`MOST_TASKS`].
    joined: FxHashMap<String, TaskId>,
    pub(in crate::stacks::live) modules: Modules,
}

/// A thread that lives as far as is known.
#[derive(Clone, Debug)]
struct SeenThread {
    pid: i32,
    /// Its present name.
    comm: String,
    /// Its task under this name, once it was sampled.
    task: Option<TaskId>,
    /// Samples that it has in the task of all threads of its name.
    joined: u32,
}

impl Processes {
    /// The mappings of a process; those of one that was there before come from /proc.
    pub(in crate::stacks::live) fn space(&mut self, pid: i32) -> (&mut AddressSpace, &mut Modules) {
        let space = self.spaces.entry(pid).or_insert_with(|| read(pid, &mut self.modules));
        (space, &mut self.modules)
    }

    /// Follows a new mapping.
    pub(in crate::stacks::live) fn map(&mut self, mmap: &Mmap<'_>) {
        // The kernel maps for itself under this number.
        if mmap.pid <= 0 || !mmap.executable {
            return;
        }
        let path = String::from_utf8_lossy(mmap.path);
        let (start, end) = (mmap.start, mmap.start.saturating_add(mmap.length));
        let (space, modules) = self.space(mmap.pid);
        space.map(mapping(mmap.pid, start..end, mmap.offset, (&path, mmap.identity), modules));
    }

    /// Follows a new name; exec gives a process all new memory.
    pub(in crate::stacks::live) fn rename(&mut self, pid: i32, tid: i32, comm: &[u8], exec: bool) {
        if !is_here(pid, tid) {
            return;
        }
        if exec {
            self.spaces.insert(pid, AddressSpace::default());
            self.modules.forget_made(pid);
            self.keep_alone(pid, tid);
        }
        let comm = String::from_utf8_lossy(comm).into_owned();
        if self.threads.get(&tid).is_none_or(|known| known.pid != pid || known.comm != comm) {
            self.insert(tid, SeenThread { pid, comm, task: None, joined: 0 });
        }
    }

    /// Exec ends all other threads of its process, and gives its own thread the number of the first: of one of them it
    /// isn't told.
    fn keep_alone(&mut self, pid: i32, tid: i32) {
        let own = usize::from(self.threads.get(&tid).is_some_and(|thread| thread.pid == pid));
        if self.thread_counts.get(&pid).is_none_or(|&count| count == own) {
            return;
        }
        self.threads.retain(|&known, thread| thread.pid != pid || known == tid);
        self.thread_counts.insert(pid, own);
    }

    /// A new process has what its parent has, a new thread its parent's name.
    pub(in crate::stacks::live) fn fork(&mut self, tasks: Tasks) {
        let Tasks { pid, parent_pid, tid, parent_tid } = tasks;
        if !is_here(pid, tid) {
            return;
        }
        let has_parent = is_here(parent_pid, parent_tid);
        if pid != parent_pid {
            // Nothing is left of a process that had the number before.
            self.modules.forget_made(pid);
            match self.spaces.get(&parent_pid).filter(|_| has_parent).map(AddressSpace::fork) {
                Some(copy) => self.spaces.insert(pid, copy),
                None => self.spaces.remove(&pid),
            };
        }
        let comm = if has_parent { self.thread(parent_pid, parent_tid).comm.clone() } else { name_now(tid) };
        self.insert(tid, SeenThread { pid, comm, task: None, joined: 0 });
    }

    /// The kernel may use the numbers again.
    pub(in crate::stacks::live) fn exit(&mut self, tasks: Tasks) {
        if !is_here(tasks.pid, tasks.tid) {
            return;
        }
        if let Some(thread) = self.threads.remove(&tasks.tid) {
            self.has_one_less(thread.pid);
            self.ended.truncate(MOST_ENDED - 1);
            self.ended.push_front((tasks.tid, thread));
        } else if tasks.pid == tasks.tid && !self.thread_counts.contains_key(&tasks.pid) {
            self.spaces.remove(&tasks.pid);
        }
    }

    fn insert(&mut self, tid: i32, thread: SeenThread) {
        *self.thread_counts.entry(thread.pid).or_default() += 1;
        if let Some(before) = self.threads.insert(tid, thread) {
            self.has_one_less(before.pid);
        }
    }

    /// A process without threads is gone. Where one still has threads that weren't seen, its mappings are read again.
    fn has_one_less(&mut self, pid: i32) {
        let Some(count) = self.thread_counts.get_mut(&pid) else { return };
        *count -= 1;
        if *count == 0 {
            self.thread_counts.remove(&pid);
            self.spaces.remove(&pid);
        }
    }

    /// The task of a thread. Past [`MOST_TASKS`] of them, threads of one name have one until they were sampled often.
    pub(in crate::stacks::live) fn task(&mut self, pid: i32, tid: i32) -> TaskId {
        let thread = self.thread(pid, tid);
        let (task, process) = (thread.task, thread.pid);
        if let Some(task) = task {
            return task;
        }
        if tid != process {
            self.tell_first_thread(process);
        }
        let next = TaskId(u32::try_from(self.tasks.len()).unwrap_or(u32::MAX));
        let is_full = self.tasks.len() >= MOST_TASKS;
        let thread = self.thread(pid, tid);
        if is_full && thread.joined < SAMPLES_ALONE {
            thread.joined += 1;
            let comm = thread.comm.clone();
            return self.joined_task(comm, next);
        }
        thread.task = Some(next);
        let task = Task { pid: thread.pid, tid, comm: thread.comm.clone() };
        self.tasks.push(task);
        next
    }

    /// Makes a task of the first thread of a process, as the process has its name, whether or not it is sampled.
    fn tell_first_thread(&mut self, pid: i32) {
        let lives = || process::name(nix::unistd::Pid::from_raw(pid)).is_some();
        let is_there = self.tasks.len() < MOST_TASKS && (self.threads.contains_key(&pid) || lives());
        if is_there && self.thread(pid, pid).pid == pid {
            self.task(pid, pid);
        }
    }

    /// The task of all threads of a name together. Names without end have one, too.
    fn joined_task(&mut self, comm: String, next: TaskId) -> TaskId {
        let comm =
            if self.joined.len() < MOST_JOINED || self.joined.contains_key(&comm) { comm } else { "…".to_owned() };
        let number = Task::JOINED - i32::try_from(self.joined.len()).unwrap_or(0);
        *self.joined.entry(comm).or_insert_with_key(|comm| {
            self.tasks.push(Task { pid: number, tid: number, comm: comm.clone() });
            next
        })
    }

    fn thread(&mut self, pid: i32, tid: i32) -> &mut SeenThread {
        let new = match self.threads.entry(tid) {
            Entry::Occupied(known) => return known.into_mut(),
            Entry::Vacant(new) => new,
        };
        if let Some((_, thread)) = self.ended.iter_mut().find(|(ended, _)| *ended == tid) {
            return thread;
        }
        let comm = match tid {
            // The idle thread of each CPU is among them.
            0 if !namespaces::sees_all_processes() => OUTSIDE.to_owned(),
            0 => "swapper".to_owned(),
            _ => name_now(tid),
        };
        *self.thread_counts.entry(pid).or_default() += 1;
        new.insert(SeenThread { pid, comm, task: None, joined: 0 })
    }

    /// The name of a thread that was seen.
    pub(in crate::stacks::live) fn name(&self, tid: i32) -> Option<&str> {
        self.threads.get(&tid).map(|thread| thread.comm.as_str())
    }

    /// The tasks from a number on.
    pub(in crate::stacks::live) fn tasks_since(&self, first: usize) -> &[Task] {
        self.tasks.get(first..).unwrap_or_default()
    }
}

/// Whether a task has numbers in this namespace of process ids: one outside of it has the number 0, and one that has
/// ended -1.
fn is_here(pid: i32, tid: i32) -> bool {
    pid > 0 && tid > 0
}

/// The present name of a thread. Of one that is gone perf shows the number, too.
fn name_now(tid: i32) -> String {
    process::name(nix::unistd::Pid::from_raw(tid)).unwrap_or_else(|| format!(":{tid}"))
}

fn mapping(
    pid: i32,
    addresses: Range<u64>,
    offset: u64,
    (path, identity): (&str, Identity),
    modules: &mut Modules,
) -> CodeMapping {
    let seen = SeenAddresses { pid, addresses };
    let Range { start, end } = seen.addresses;
    let module = modules.mapped(path, identity, &seen);
    let offset = match module {
        Module::File { .. } => offset,
        Module::Memory { .. } => start,
        Module::Vdso | Module::Kernel | Module::Nowhere | Module::Unseen | Module::Outside => 0,
    };
    CodeMapping { start, end, module: modules.number(module, &seen), offset }
}

/// The code that a process has mapped now; none where it is gone or not to be looked at.
fn read(pid: i32, modules: &mut Modules) -> AddressSpace {
    let mut space = AddressSpace::default();
    // The kernel waits for the lock of the process' memory, which another may hold for ever.
    let maps = files::within(READING, Answerer::Process(pid), move || maps_of(pid)).unwrap_or_default();
    let text = String::from_utf8_lossy(&maps);
    // The kernel itself answers calls in that mapping, which is the same in all processes.
    let is_code = |line: &MapsLine<'_>| line.executable && line.path != "[vsyscall]";
    for line in text.lines().filter_map(MapsLine::parse).filter(is_code) {
        space.map(mapping(pid, line.start..line.end, line.offset, (line.path, line.identity), modules));
    }
    space
}

/// What /proc says of the memory of a process. Of a first thread that has ended it says nothing; others may still run.
fn maps_of(pid: i32) -> Vec<u8> {
    let read = |path: String| fs::read(path).ok().filter(|maps| !maps.is_empty());
    let of_others = || {
        let threads = process::threads(nix::unistd::Pid::from_raw(pid)).ok()?;
        threads.into_iter().find_map(|thread| read(format!("/proc/{pid}/task/{thread}/maps")))
    };
    read(format!("/proc/{pid}/maps")).or_else(of_others).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::stacks::live::mapped::ModuleContents;

    /// No process has a number like these.
    const PARENT: i32 = i32::MAX - 1;
    const CHILD: i32 = i32::MAX;

    const IDENTITY: Identity = Identity { device: 0, inode: 7 };

    fn map(processes: &mut Processes, pid: i32, start: u64, path: &'static str) {
        let path = path.as_bytes();
        processes.map(&Mmap { pid, start, length: 0x1000, offset: 0x300, identity: IDENTITY, executable: true, path });
    }

    fn place(processes: &mut Processes, pid: i32, address: u64) -> Option<(Module, u64)> {
        let (space, modules) = processes.space(pid);
        space.place(address).map(|(module, place)| (modules.module(module).clone(), place))
    }

    fn file(path: &str) -> Module {
        Module::File { path: path.into(), identity: IDENTITY }
    }

    const FORK: Tasks = Tasks { pid: CHILD, parent_pid: PARENT, tid: CHILD, parent_tid: PARENT };

    #[test]
    fn a_child_has_its_parents_mappings_until_it_executes() {
        let mut processes = Processes::default();
        processes.rename(PARENT, PARENT, b"sh", true);
        map(&mut processes, PARENT, 0x1000, "/a");
        processes.fork(FORK);
        // What the parent maps later is its own.
        map(&mut processes, PARENT, 0x5000, "/b");
        assert_eq!(place(&mut processes, CHILD, 0x1004), Some((file("/a"), 0x304)));
        assert_eq!(place(&mut processes, CHILD, 0x5004), None);
        processes.rename(CHILD, CHILD, b"new", true);
        assert_eq!(place(&mut processes, CHILD, 0x1004), None);
        assert_eq!(place(&mut processes, PARENT, 0x5004), Some((file("/b"), 0x304)));
    }

    #[test]
    fn names_are_inherited_and_change() {
        let mut processes = Processes::default();
        processes.rename(PARENT, PARENT, b"sh", true);
        processes.fork(FORK);
        let before = processes.task(CHILD, CHILD);
        processes.rename(CHILD, CHILD, b"new", false);
        let after = processes.task(CHILD, CHILD);
        let name = |task: TaskId| processes.tasks_since(0)[task.0 as usize].comm.clone();
        assert_eq!((name(before), name(after)), ("sh".into(), "new".into()));
    }

    #[test]
    fn a_process_has_the_name_of_its_first_thread_though_others_alone_are_sampled() {
        let mut processes = Processes::default();
        processes.rename(PARENT, PARENT, b"prog", true);
        processes.fork(thread(7));
        processes.rename(PARENT, 7, b"worker", false);
        let worker = processes.task(PARENT, 7);
        assert_eq!(processes.task(PARENT, 7), worker);
        let told: Vec<_> = processes.tasks_since(0).iter().map(|task| (task.tid, task.comm.as_str())).collect();
        assert_eq!(told, [(PARENT, "prog"), (7, "worker")]);
    }

    #[test]
    fn a_thread_on_its_way_out_keeps_its_name_until_another_has_its_number() {
        let mut processes = Processes::default();
        processes.rename(PARENT, PARENT, b"sh", true);
        processes.fork(FORK);
        let ended = processes.task(CHILD, CHILD);
        processes.exit(FORK);
        assert_eq!(processes.task(CHILD, CHILD), ended);
        assert_eq!(processes.name(CHILD), None, "it has ended");
        processes.rename(PARENT, PARENT, b"other", false);
        processes.fork(FORK);
        assert_eq!(processes.name(CHILD), Some("other"));
        // No thread has so large a number.
        let gone = processes.task(i32::MAX - 9, i32::MAX - 9);
        assert_eq!(processes.tasks_since(0)[gone.0 as usize].comm, ":2147483638");
        for tid in 1000..1000 + 2 * MOST_ENDED as i32 {
            processes.rename(tid, tid, b"x", false);
            processes.exit(Tasks { pid: tid, parent_pid: 1, tid, parent_tid: 1 });
        }
        assert_eq!(processes.ended.len(), MOST_ENDED);
    }

    #[test]
    fn a_number_that_ended_starts_anew() {
        let mut processes = Processes::default();
        processes.rename(PARENT, PARENT, b"sh", true);
        map(&mut processes, PARENT, 0x1000, "/a");
        processes.exit(Tasks { pid: PARENT, parent_pid: 1, tid: PARENT, parent_tid: 1 });
        assert_eq!(place(&mut processes, PARENT, 0x1004), None);
    }

    /// A thread of the process that begins or ends.
    fn thread(tid: i32) -> Tasks {
        Tasks { pid: PARENT, parent_pid: PARENT, tid, parent_tid: PARENT }
    }

    #[test]
    fn a_process_is_gone_with_its_last_thread_whichever_that_is() {
        let mut processes = Processes::default();
        processes.rename(PARENT, PARENT, b"sh", true);
        map(&mut processes, PARENT, 0x1000, "/a");
        processes.fork(thread(7));
        processes.exit(thread(PARENT));
        assert_eq!(place(&mut processes, PARENT, 0x1004), Some((file("/a"), 0x304)));
        processes.exit(thread(7));
        assert!(processes.spaces.is_empty() && processes.thread_counts.is_empty() && processes.threads.is_empty());
    }

    #[test]
    fn exec_leaves_one_thread() {
        let mut processes = Processes::default();
        processes.rename(PARENT, PARENT, b"sh", true);
        processes.fork(thread(7));
        processes.fork(thread(8));
        // 8 executes, and has the first thread's number from now on.
        processes.exit(thread(PARENT));
        processes.exit(thread(7));
        processes.rename(PARENT, PARENT, b"new", true);
        assert_eq!((processes.name(PARENT), processes.name(8)), (Some("new"), None));
        processes.exit(thread(PARENT));
        assert!(processes.spaces.is_empty() && processes.thread_counts.is_empty());
    }

    #[test]
    fn a_new_process_has_nothing_of_one_that_had_its_number() {
        let mut processes = Processes::default();
        map(&mut processes, CHILD, 0x1000, "/a");
        // Its end wasn't told, and the parent isn't known.
        processes.fork(FORK);
        assert_eq!(place(&mut processes, CHILD, 0x1004), None);
    }

    #[test]
    fn what_is_never_sampled_is_no_task() {
        let mut processes = Processes::default();
        processes.rename(PARENT, PARENT, b"sh", true);
        processes.fork(FORK);
        processes.rename(CHILD, CHILD, b"new", true);
        assert!(processes.tasks_since(0).is_empty());
        let task = processes.task(CHILD, CHILD);
        assert_eq!(processes.task(CHILD, CHILD), task);
        assert_eq!(processes.tasks_since(0), [Task { pid: CHILD, tid: CHILD, comm: "new".into() }]);
    }

    #[test]
    fn past_many_tasks_short_threads_of_a_name_have_one() {
        let mut processes = Processes::default();
        let mut of = |tid: i32, comm: &str| {
            processes.rename(tid, tid, comm.as_bytes(), false);
            let task = processes.task(tid, tid);
            processes.exit(Tasks { pid: tid, parent_pid: 1, tid, parent_tid: 1 });
            (task, processes.tasks.len())
        };
        let first = 1 << 20;
        let alone: Vec<_> = (0..MOST_TASKS as i32).map(|number| of(first + number, "sh").0).collect();
        assert!(alone.iter().zip(0..).all(|(task, number)| *task == TaskId(number)));
        let next = MOST_TASKS as u32;
        assert_eq!(of(1, "sh"), (TaskId(next), MOST_TASKS + 1));
        assert_eq!(of(2, "cc"), (TaskId(next + 1), MOST_TASKS + 2));
        assert_eq!(of(3, "sh"), (TaskId(next), MOST_TASKS + 2));
        // One that runs on has a task of its own.
        processes.rename(4, 4, b"sh", false);
        let tasks: Vec<_> = (0..=SAMPLES_ALONE).map(|_| processes.task(4, 4).0).collect();
        assert_eq!(
            (tasks[0], tasks[SAMPLES_ALONE as usize - 1], tasks[SAMPLES_ALONE as usize]),
            (next, next, next + 2)
        );
        let told = processes.tasks_since(MOST_TASKS);
        let joined = |number: i32, comm: &str| Task {
            pid: Task::JOINED - number,
            tid: Task::JOINED - number,
            comm: comm.into(),
        };
        assert_eq!(told, [joined(0, "sh"), joined(1, "cc"), Task { pid: 4, tid: 4, comm: "sh".into() }]);
        for number in 0..2 * MOST_JOINED as i32 {
            processes.rename(4, 4, number.to_string().as_bytes(), false);
            processes.task(4, 4);
        }
        assert!(processes.tasks.len() <= MOST_TASKS + MOST_JOINED + 2);
    }

    #[test]
    fn no_process_that_makes_no_code_is_looked_at_for_names_of_it() {
        let mut processes = Processes::default();
        processes.space(std::process::id() as i32);
        let contents = processes.modules.since(0).map(|module| &module.contents);
        let made: Vec<_> = contents.filter(|contents| matches!(contents, ModuleContents::Made(_))).collect();
        assert!(made.is_empty(), "{made:?}");
    }

    #[test]
    fn memory_without_a_file_is_looked_up_by_address() {
        let mut processes = Processes::default();
        map(&mut processes, PARENT, 0x1000, "//anon");
        assert_eq!(place(&mut processes, PARENT, 0x1004), Some((Module::Memory { pid: PARENT }, 0x1004)));
    }

    #[test]
    fn tasks_of_outside_have_no_records_of_their_own() {
        let mut processes = Processes::default();
        let me = std::process::id().cast_signed();
        let idle = processes.task(0, 0);
        for (pid, tid) in [(0, 0), (-1, -1)] {
            processes.rename(pid, tid, b"host", true);
            processes.fork(Tasks { pid, parent_pid: pid, tid, parent_tid: tid });
            processes.exit(Tasks { pid, parent_pid: 1, tid, parent_tid: 1 });
        }
        assert_eq!(processes.task(0, 0), idle);
        assert!(processes.threads.len() == 1 && processes.ended.is_empty());
        // One that was started from outside has what it has, and nothing of all others there.
        processes.fork(Tasks { pid: me, parent_pid: 0, tid: me, parent_tid: 0 });
        assert_eq!(processes.name(me).map(str::to_owned), process::name(nix::unistd::Pid::from_raw(me)));
        let here = tasks_of_outside_have_no_records_of_their_own as fn() as usize as u64;
        assert!(place(&mut processes, me, here).is_some());
    }

    #[test]
    fn a_process_that_runs_already_is_read_from_proc() {
        let mut processes = Processes::default();
        let here = a_process_that_runs_already_is_read_from_proc as fn() as usize as u64;
        let (module, _) = place(&mut processes, std::process::id() as i32, here).unwrap();
        let Module::File { path, .. } = module else { panic!("{module:?}") };
        assert_eq!(path, std::env::current_exe().unwrap().display().to_string());
    }
}
