//! A plan and a target in, rounds read from the kernel's counters out.
//!
//! Each group is opened once for every task of the target: a leader that reads the whole group in
//! one system call, and siblings that follow it on and off the CPU. Every event is inherited, so
//! threads and processes that start later are counted in the same descriptors; that is why all are
//! opened before the command executes.

use std::ffi::CString;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::unistd::Pid;
use perf_event::events::Software;
use perf_event::{Builder, Counter, GroupData, ReadFormat};

use super::{CounterSource, Next, Reading, Round, Status, process};
use crate::events::{Event, Modifiers};
use crate::plan::{Cohesion, EventIndex, Plan, PlannedGroup};
use crate::units::{CpuNs, WallNs};

/// Group reads answer ECHILD while inherited children come and go (since Linux 6.6). Three
/// immediate retries and then short sleeps have always succeeded within 13 tries.
const QUICK_RETRIES: u32 = 3;
const MAX_RETRIES: u32 = 50;
const RETRY_SLEEP: Duration = Duration::from_micros(100);

/// Whom to count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A process that is held before exec; counting begins with exec.
    Held(Pid),
    /// Processes that run already, all their threads.
    Processes(Vec<Pid>),
}

/// Why nothing could be measured.
#[derive(Debug)]
pub enum OpenError {
    /// There is no such process.
    NoProcess(Pid),
    /// This process belongs to somebody else.
    NotYours(Pid),
    /// A group in braces can't be opened as a whole.
    Group {
        /// Its members' names.
        names: Vec<String>,
        /// The member that failed.
        member: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel's answer to opening an event is not one that a status stands for.
    Event {
        /// The event's name.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// The open counters of a plan.
#[derive(Debug)]
pub struct PerfSource {
    events: usize,
    groups: Vec<OpenGroup>,
    /// The processes whose end is the end of the source; empty for a command.
    attached: Vec<Pid>,
    started: Instant,
}

/// A group opened for one task.
#[derive(Debug)]
struct OpenGroup {
    leader: Counter,
    /// The siblings' descriptors keep their counters alive.
    _siblings: Vec<Counter>,
    /// The event of each value in a group read.
    members: Vec<EventIndex>,
}

impl PerfSource {
    /// Opens every event of the plan that can be opened, and says what became of each.
    ///
    /// # Errors
    /// When the target can't be measured at all. An event that can't be counted is no error: its
    /// [`Status`] says why.
    pub fn open(plan: &Plan, target: &Target) -> Result<(Self, Vec<Status>), OpenError> {
        let mut statuses = vec![Status::Counted; plan.events.len()];
        let mut source =
            Self { events: plan.events.len(), groups: Vec::new(), attached: Vec::new(), started: Instant::now() };
        match target {
            Target::Held(pid) => source.open_task(plan, *pid, Start::OnExec, &mut statuses)?,
            Target::Processes(pids) => {
                for &pid in pids {
                    source.attach(plan, pid, &mut statuses)?;
                }
                source.attached.clone_from(pids);
                source.enable();
            }
        }
        source.started = Instant::now();
        Ok((source, statuses))
    }

    /// Sets the time that rounds are counted from: the moment of exec.
    pub fn start_clock(&mut self) {
        self.started = Instant::now();
    }

    /// Opens the plan for each thread, until a look at /proc shows none that is new.
    fn attach(&mut self, plan: &Plan, pid: Pid, statuses: &mut [Status]) -> Result<(), OpenError> {
        let mut known: Vec<Pid> = Vec::new();
        loop {
            let threads = process::threads(pid).map_err(|_| OpenError::NoProcess(pid))?;
            let new: Vec<_> = threads.into_iter().filter(|thread| !known.contains(thread)).collect();
            if new.is_empty() {
                return Ok(());
            }
            for &thread in &new {
                match self.open_task(plan, thread, Start::Later, statuses) {
                    Err(OpenError::NoProcess(gone)) if gone != pid => {}
                    Err(OpenError::NotYours(_)) => return Err(OpenError::NotYours(pid)),
                    other => other?,
                }
            }
            known.extend(new);
        }
    }

    fn open_task(&mut self, plan: &Plan, task: Pid, start: Start, statuses: &mut [Status]) -> Result<(), OpenError> {
        for group in &plan.groups {
            let mut opening = Opening { plan, task, start, statuses };
            if let Some(open) = opening.group(group)? {
                self.groups.push(open);
            }
        }
        Ok(())
    }

    fn enable(&mut self) {
        for group in &mut self.groups {
            // A task that has ended since cannot be enabled, and needs not be.
            let _ = group.leader.enable_group();
        }
    }

    fn targets_ended(&self) -> bool {
        !self.attached.is_empty() && !self.attached.iter().any(|&pid| process::is_alive(pid))
    }
}

impl CounterSource for PerfSource {
    fn read(&mut self) -> Next {
        // Asked before reading, so that the round that follows has all counts of the ended.
        let ended = self.targets_ended();
        let at = WallNs::from(self.started.elapsed());
        if ended && self.groups.is_empty() {
            return Next::Ended;
        }
        let mut readings = vec![None; self.events];
        for group in &mut self.groups {
            group.read_into(&mut readings);
        }
        if ended {
            // The next call ends the source; dropping the counters is what says so.
            self.groups.clear();
        }
        Next::Round(Round { at, readings })
    }
}

impl OpenGroup {
    /// Adds this group's readings to those of the same events in other tasks.
    fn read_into(&mut self, readings: &mut [Option<Reading>]) {
        let Some(data) = self.read() else { return };
        let enabled = CpuNs(data.time_enabled().map_or(0, nanoseconds));
        let running = CpuNs(data.time_running().map_or(0, nanoseconds));
        for (entry, &event) in data.iter().zip(&self.members) {
            let sum = readings[event].get_or_insert_default();
            sum.count = sum.count.saturating_add(entry.value());
            sum.enabled += enabled;
            sum.running += running;
        }
    }

    fn read(&mut self) -> Option<GroupData> {
        for attempt in 0..MAX_RETRIES {
            match self.leader.read_group() {
                Ok(data) => return Some(data),
                Err(error) if error.raw_os_error() == Some(Errno::ECHILD as i32) => {
                    if attempt >= QUICK_RETRIES {
                        thread::sleep(RETRY_SLEEP);
                    }
                }
                // A pinned group that is in error state, or a task that is gone.
                Err(_) => return None,
            }
        }
        None
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// When a group begins to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    OnExec,
    Later,
}

/// The opening of groups for one task.
struct Opening<'a> {
    plan: &'a Plan,
    task: Pid,
    start: Start,
    statuses: &'a mut [Status],
}

impl Opening<'_> {
    /// Opens what can be opened of a group; `None` if that is nothing.
    fn group(&mut self, group: &PlannedGroup) -> Result<Option<OpenGroup>, OpenError> {
        let mut open: Option<OpenGroup> = None;
        for &index in &group.members {
            match self.member(index, open.as_mut().map(|group| &mut group.leader)) {
                Ok(Some(counter)) => match &mut open {
                    None => open = Some(OpenGroup { leader: counter, _siblings: Vec::new(), members: vec![index] }),
                    Some(open) => {
                        open._siblings.push(counter);
                        open.members.push(index);
                    }
                },
                Ok(None) => {}
                Err(OpenError::Event { name, source }) if group.cohesion == Cohesion::Required && open.is_some() => {
                    let names = group.members.iter().map(|&member| self.plan.events[member].name.clone()).collect();
                    return Err(OpenError::Group { names, member: name, source });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(open)
    }

    /// Opens an event, in user space only where the kernel allows no more.
    fn member(&mut self, index: EventIndex, mut leader: Option<&mut Counter>) -> Result<Option<Counter>, OpenError> {
        let event = &self.plan.events[index];
        let user_only = Event {
            modifiers: Modifiers { exclude_kernel: true, exclude_hv: true, ..event.modifiers.clone() },
            ..event.clone()
        };
        let attempts = [(event, Status::Counted), (&user_only, Status::UserOnly)];
        for (event, status) in attempts {
            match open(event, self.task, self.start, leader.as_deref_mut()) {
                Ok(counter) => {
                    self.statuses[index] = status;
                    return Ok(Some(counter));
                }
                Err(error) => match Refusal::from(&error) {
                    Refusal::Permission if status == Status::Counted && !event.modifiers.exclude_kernel => {}
                    Refusal::Permission => self.statuses[index] = Status::Forbidden,
                    Refusal::NotSupported => {
                        self.statuses[index] = Status::NotSupported;
                        break;
                    }
                    Refusal::NoTask => return Err(OpenError::NoProcess(self.task)),
                    Refusal::Other => return Err(OpenError::Event { name: event.name.clone(), source: error }),
                },
            }
        }
        self.check_owner(index)
    }

    /// A process of somebody else refuses everything; then the event is not what is wrong.
    fn check_owner(&self, index: EventIndex) -> Result<Option<Counter>, OpenError> {
        let own = nix::unistd::geteuid().as_raw();
        let stranger = process::owner(self.task).is_some_and(|owner| owner != own);
        if self.statuses[index] == Status::Forbidden && own != 0 && stranger {
            return Err(OpenError::NotYours(self.task));
        }
        Ok(None)
    }
}

/// What a failed `perf_event_open` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Permission,
    NotSupported,
    NoTask,
    Other,
}

impl From<&io::Error> for Refusal {
    fn from(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EACCES | Errno::EPERM) => Self::Permission,
            Some(Errno::ENOENT | Errno::ENXIO | Errno::ENODEV | Errno::EOPNOTSUPP | Errno::ENOSYS) => {
                Self::NotSupported
            }
            Some(Errno::ESRCH) => Self::NoTask,
            _ => Self::Other,
        }
    }
}

/// Opens an event for a task, as a leader or in a group.
///
/// The leader alone starts disabled: the kernel's trial schedule of a group skips disabled
/// siblings, and would then accept groups that can never run.
fn open(event: &Event, task: Pid, start: Start, leader: Option<&mut Counter>) -> io::Result<Counter> {
    let mut builder = Builder::new(Software::DUMMY);
    encode(event, &mut builder);
    // perf-event2 0.7.4 has no event for probes in programs, so the pointer that the kernel wants
    // (`uprobe_path`, `kprobe_func`) is set here; the name lives until the event is open.
    let probe = probe_name(event)?;
    if let Some(name) = &probe {
        builder.attrs_mut().config1 = name.as_ptr() as u64;
    }
    builder.observe_pid(task.as_raw()).any_cpu().inherit(true);
    builder.enabled(leader.is_some());
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    match leader {
        Some(leader) => builder.read_format(times).build_with_group(leader),
        None => builder.read_format(times | ReadFormat::GROUP).enable_on_exec(start == Start::OnExec).build(),
    }
}

/// perf-event2 knows only events of its own making, so the bits are written into its attributes.
fn encode(event: &Event, builder: &mut Builder<'_>) {
    let Event { encoding, modifiers, .. } = event;
    builder
        .exclude_user(modifiers.exclude_user)
        .exclude_kernel(modifiers.exclude_kernel)
        .exclude_hv(modifiers.exclude_hv)
        .exclude_host(modifiers.exclude_host)
        .exclude_guest(modifiers.exclude_guest)
        .exclude_idle(modifiers.exclude_idle)
        .pinned(modifiers.pinned)
        .exclusive(modifiers.exclusive);
    let attributes = builder.attrs_mut();
    attributes.set_precise_ip(modifiers.precise.into());
    attributes.type_ = encoding.pmu_type;
    attributes.config = encoding.config;
    attributes.config1 = encoding.config1;
    attributes.config2 = encoding.config2;
    attributes.config3 = encoding.config3;
    attributes.bp_type = encoding.bp_type;
    if let Some(probe) = &encoding.probe {
        attributes.config = probe.returns.into();
        attributes.config2 = probe.offset;
    }
}

/// The name that the kernel takes a probe by: that of a file, or of a function of its own.
fn probe_name(event: &Event) -> io::Result<Option<CString>> {
    let Some(probe) = &event.encoding.probe else { return Ok(None) };
    let name = if probe.path.is_empty() { &probe.function } else { &probe.path };
    Ok(Some(CString::new(name.as_str())?))
}

/// Whether this machine counts an event of the calling process, found by trying.
pub fn probe(event: &Event) -> Status {
    let plan = Plan {
        events: vec![event.clone()],
        groups: vec![PlannedGroup { members: vec![0], cohesion: Cohesion::Chosen }],
    };
    match PerfSource::open(&plan, &Target::Held(nix::unistd::getpid())) {
        Ok((_, statuses)) => statuses.into_iter().next().unwrap_or(Status::NotSupported),
        Err(_) => Status::NotSupported,
    }
}

/// Whether this process may count what the kernel counts by itself, software events and tracepoints.
///
/// It is found by asking for an event that no kernel has: who is allowed is told so (ENOENT). An event
/// that opens would be slower by a hundredfold, because the kernel waits for all its CPUs when the last
/// one is closed.
pub fn permission() -> Status {
    let ask = |user_only: bool| {
        let mut builder = Builder::new(Software::DUMMY);
        builder.exclude_kernel(user_only).exclude_hv(user_only).any_cpu();
        builder.attrs_mut().config = u64::MAX;
        builder.build().err().map(|error| Refusal::from(&error))
    };
    match (ask(false), ask(true)) {
        (Some(Refusal::Permission), Some(Refusal::Permission)) => Status::Forbidden,
        (Some(Refusal::Permission), _) => Status::UserOnly,
        _ => Status::Counted,
    }
}
