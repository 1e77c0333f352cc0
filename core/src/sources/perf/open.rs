//! Opens the counters of one group at one place, or says what the kernel has against it.

use std::ffi::CString;
use std::io;

use nix::errno::Errno;
use nix::unistd::Pid;
use perf_event::events::Software;
use perf_event::{Builder, Counter, ReadFormat};

use super::target::{CountedTask, CounterPlace, Start};
use super::units::{UnitMember, on_units};
use super::{CounterRow, OpenError, ProbeIds};
use crate::events::{Event, EventKind, TRACEPOINT};
use crate::plan::{Cohesion, Member, Plan, PlannedGroup};
use crate::sources::{Scope, Status, process};

/// Every event reports how long it was enabled and how long it ran.
const TIMES: ReadFormat = ReadFormat::TOTAL_TIME_ENABLED.union(ReadFormat::TOTAL_TIME_RUNNING);

/// The opening of groups in one place.
pub(super) struct Opening<'a> {
    pub(super) plan: &'a Plan,
    pub(super) place: &'a CounterPlace,
    pub(super) start: Start,
    pub(super) inherit: bool,
    pub(super) probes: &'a ProbeIds,
    /// The rows of the place's scope, one for each of the plan's members.
    pub(super) rows: &'a mut [CounterRow],
}

/// The counters of a group in one place, on one unit where its events have several.
pub(super) struct GroupCounters {
    pub(super) leader: Counter,
    pub(super) siblings: Vec<Counter>,
    /// What each value in a group read is of.
    pub(super) members: Vec<Member>,
}

impl GroupCounters {
    fn new(leader: Counter, member: UnitMember) -> Self {
        Self { leader, siblings: Vec::new(), members: vec![member.member] }
    }
}

/// What came of opening an event.
enum OpenAttempt {
    Open(Counter),
    Refused(Status),
}

impl Opening<'_> {
    /// Opens what can be opened of a group in its place, on each unit as one group; singly what perfprop put together
    /// and the kernel doesn't take so.
    pub(super) fn group(&mut self, group: &PlannedGroup) -> Result<Vec<GroupCounters>, OpenError> {
        let mut all = Vec::new();
        for members in self.on_units(group)? {
            match self.together(group, &members) {
                Ok(opened) => all.extend(opened),
                Err(OpenError::Group { source, .. })
                    if group.cohesion != Cohesion::Required
                        && matches!(Refusal::from(&source), Refusal::Impossible | Refusal::InUse) =>
                {
                    all.extend(self.singly(&members)?);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    /// The members of a group that can be counted in this place, those of each unit for themselves. A group that the
    /// user wrote lies on the same units as a whole: the kernel takes none over two.
    fn on_units(&self, group: &PlannedGroup) -> Result<Vec<Vec<UnitMember>>, OpenError> {
        let mut groups = on_units(self.plan, group);
        let units = |member: &UnitMember| self.plan.event(member.member).units().len();
        let is_split = |members: &Vec<UnitMember>| members.iter().filter(|member| units(member) > 0).count();
        let most = group.members.iter().filter(|&&member| !self.plan.event(member).units().is_empty()).count();
        if group.cohesion == Cohesion::Required
            && let Some(split) = groups.iter().find(|members| is_split(members) < most)
            && let Some(&missing) = group.members.iter().find(|&&member| split.iter().all(|on| on.member != member))
        {
            let member = self.plan.event(missing).name.clone();
            return Err(OpenError::Group { names: self.names(group), member, source: Errno::EINVAL.into() });
        }
        let place = self.place;
        for members in &mut groups {
            members.retain(|member| place.is_among(member.cpus(self.plan)));
        }
        groups.retain(|members| !members.is_empty());
        Ok(groups)
    }

    /// Opens every event of a group for itself. An anchor alone would link nothing.
    fn singly(&mut self, members: &[UnitMember]) -> Result<Vec<GroupCounters>, OpenError> {
        let mut opened = Vec::new();
        for &member in members {
            if let Member::Anchor(_) = member.member {
                self.row(member.member).status = Status::NotSupported;
            } else if let OpenAttempt::Open(leader) = self.member(member, None)? {
                opened.push(GroupCounters::new(leader, member));
            }
        }
        Ok(opened)
    }

    /// The members as one group, without those that can't be counted at all; `None` if that is all of them. The
    /// user's groups are whole or an error.
    fn together(&mut self, group: &PlannedGroup, members: &[UnitMember]) -> Result<Option<GroupCounters>, OpenError> {
        let mut opened: Option<GroupCounters> = None;
        let mut refused = None;
        for &member in members {
            match self.member(member, opened.as_mut().map(|opened| &mut opened.leader)) {
                Ok(OpenAttempt::Open(counter)) => match &mut opened {
                    None => opened = Some(GroupCounters::new(counter, member)),
                    Some(opened) => {
                        opened.siblings.push(counter);
                        opened.members.push(member.member);
                    }
                },
                Ok(OpenAttempt::Refused(status)) => refused = refused.or(Some((member.member, status))),
                Err(OpenError::Event { name, source }) if opened.is_some() => {
                    return Err(OpenError::Group { names: self.names(group), member: name, source });
                }
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some((member, status)) if group.cohesion == Cohesion::Required && opened.is_some() => {
                let event = self.plan.event(member);
                let reason = event.unavailable().unwrap_or_else(|| status.to_string());
                Err(OpenError::Torn { names: self.names(group), member: event.name.clone(), reason })
            }
            _ => Ok(opened),
        }
    }

    fn names(&self, group: &PlannedGroup) -> Vec<String> {
        group.members.iter().map(|&member| self.plan.event(member).name.clone()).collect()
    }

    /// Opens an event, in user space only where the kernel allows no more.
    fn member(&mut self, member: UnitMember, mut leader: Option<&mut Counter>) -> Result<OpenAttempt, OpenError> {
        let event = &*member.event(self.plan);
        let narrowed = event.in_user_space_only();
        let left = if event.is_clock() { Status::Counted } else { Status::UserOnly };
        let attempts = [Some((event, Status::Counted)), narrowed.as_ref().map(|event| (event, left))];
        let is_alone = leader.is_none();
        let mut refused = Status::NotSupported;
        for (event, status) in attempts.into_iter().flatten() {
            match self.open(event, leader.as_deref_mut()) {
                Ok(counter) => {
                    self.note(member, status);
                    self.note_inheritance(member);
                    return Ok(OpenAttempt::Open(counter));
                }
                Err(error) => match Refusal::from(&error) {
                    Refusal::Permission => refused = Status::Forbidden,
                    // A kernel that forbids an event says so before it looks whether there is one.
                    Refusal::NotSupported => {
                        refused = Status::NotSupported;
                        break;
                    }
                    // A PMU that can't leave the kernel out says so of the second attempt only.
                    Refusal::Impossible if is_alone => break,
                    Refusal::InUse if is_alone => {
                        refused = Status::InUse;
                        break;
                    }
                    Refusal::NoTask => return Err(self.gone()),
                    Refusal::Impossible | Refusal::InUse | Refusal::Other => {
                        return Err(OpenError::Event { name: event.name.clone(), source: error });
                    }
                },
            }
        }
        self.check_owner(&refused)?;
        self.note(member, refused.clone());
        Ok(OpenAttempt::Refused(refused))
    }

    fn row(&mut self, member: Member) -> &mut CounterRow {
        &mut self.rows[self.plan.row(member, 0, 1)]
    }

    /// A row that could be opened in one place is counted, whatever the others say.
    fn note(&mut self, member: UnitMember, status: Status) {
        let row = self.row(member.member);
        let unit = member.unit.and_then(|unit| row.units.get_mut(unit));
        for known in unit.into_iter().chain([&mut row.status]) {
            if !known.is_open() || status.is_open() {
                *known = status.clone();
            }
        }
    }

    /// Notes why what the task starts isn't counted.
    fn note_inheritance(&mut self, member: UnitMember) {
        let Some(probe) = &self.plan.event(member.member).encoding.probe else { return };
        if self.inherit && matches!(self.place.subject, CountedTask::Task(_)) {
            let why = match self.probes.get(probe) {
                Some(Ok(_)) => None,
                Some(Err(why)) => Some(why.clone()),
                None => Some("it isn't in tracefs".to_owned()),
            };
            self.row(member.member).not_inherited = why;
        }
    }

    fn gone(&self) -> OpenError {
        match self.place.subject {
            CountedTask::Task(task) => OpenError::NoProcess(task),
            CountedTask::Anyone | CountedTask::Cgroup(_) => OpenError::NoCpu(self.place.cpu.unwrap_or_default()),
        }
    }

    /// A process of somebody else refuses everything; then the event is not what is wrong.
    fn check_owner(&self, refused: &Status) -> Result<(), OpenError> {
        let CountedTask::Task(task) = self.place.subject else { return Ok(()) };
        let own = nix::unistd::geteuid().as_raw();
        let is_stranger = || process::owner(task).is_some_and(|owner| owner != own);
        let is_refused = *refused == Status::Forbidden && own != 0 && is_stranger();
        if is_refused { Err(OpenError::NotYours(task)) } else { Ok(()) }
    }

    /// Opens an event as a leader or in a group.
    ///
    /// The leader alone starts disabled: the kernel's trial schedule of a group skips disabled
    /// siblings, and would then accept groups that can never run.
    fn open(&self, event: &Event, leader: Option<&mut Counter>) -> io::Result<Counter> {
        let mut builder = Builder::new(Software::DUMMY);
        let placed = Placed::new(event, &mut builder, self.probes)?;
        self.put(&mut builder, placed.can_be_inherited());
        match leader {
            Some(leader) => {
                builder.enabled(true).enable_on_exec(false).read_format(TIMES);
                uninterrupted(|| builder.build_with_group(&mut *leader))
            }
            None => {
                builder.read_format(TIMES | ReadFormat::GROUP);
                uninterrupted(|| builder.build())
            }
        }
    }

    /// Opens an event that counts nothing: its `time_enabled` is the CPU time of the place.
    pub(super) fn clock(&self) -> Result<Counter, OpenError> {
        let mut builder = Builder::new(Software::DUMMY);
        builder.exclude_kernel(true).exclude_hv(true).read_format(TIMES);
        self.put(&mut builder, true);
        let failed = |error: io::Error| match Refusal::from(&error) {
            Refusal::NoTask => self.gone(),
            _ => OpenError::Event { name: "the clock of turns".to_owned(), source: error },
        };
        uninterrupted(|| builder.build()).map_err(failed)
    }

    /// Whose work is counted, and from when on: what every leader has.
    fn put<'b>(&'b self, builder: &mut Builder<'b>, can_be_inherited: bool) {
        match &self.place.subject {
            CountedTask::Task(task) => builder.observe_pid(task.as_raw()).inherit(self.inherit && can_be_inherited),
            CountedTask::Anyone => builder.any_pid(),
            CountedTask::Cgroup(folder) => builder.observe_cgroup(folder),
        };
        match self.place.cpu {
            Some(cpu) => builder.one_cpu(usize::try_from(cpu).unwrap_or(usize::MAX)),
            None => builder.any_cpu(),
        };
        builder.enabled(false).enable_on_exec(self.start == Start::OnExec);
    }
}

/// What a failed `perf_event_open` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    Permission,
    NotSupported,
    /// The event can't be opened with these bits, or in this group.
    Impossible,
    /// Others have what it needs, or what it needs is used up.
    InUse,
    NoTask,
    Other,
}

impl From<&io::Error> for Refusal {
    fn from(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            // ENOSYS is a sandbox' way to forbid the system call.
            Some(Errno::EACCES | Errno::EPERM | Errno::ENOSYS) => Self::Permission,
            Some(Errno::ENOENT | Errno::ENXIO | Errno::ENODEV | Errno::EOPNOTSUPP) => Self::NotSupported,
            Some(Errno::EINVAL) => Self::Impossible,
            Some(Errno::ENOSPC | Errno::EBUSY) => Self::InUse,
            Some(Errno::ESRCH) => Self::NoTask,
            _ => Self::Other,
        }
    }
}

/// Opens an event, anew where a signal to this process came between: the kernel may wait for a task that is at its
/// exec.
pub(crate) fn uninterrupted<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match open() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            opened => return opened,
        }
    }
}

/// perf-event2 knows only events of its own making, so the bits are written into its attributes.
pub(crate) fn encode(event: &Event, builder: &mut Builder<'_>) {
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

/// What was written into the attributes of an event, which are to be used while this is there.
#[derive(Debug)]
pub(crate) struct Placed {
    /// The name that the kernel takes a probe by, unless it is a tracepoint: that of a file, or of a function of its
    /// own.
    probe: Option<CString>,
}

impl Placed {
    /// Writes the event into a builder's attributes. A probe that is in tracefs is a tracepoint.
    pub(crate) fn new(event: &Event, builder: &mut Builder<'_>, ids: &ProbeIds) -> io::Result<Self> {
        encode(event, builder);
        let Some(probe) = &event.encoding.probe else { return Ok(Self { probe: None }) };
        let attributes = builder.attrs_mut();
        if let Some(Ok(id)) = ids.get(probe) {
            (attributes.type_, attributes.config, attributes.config2) = (TRACEPOINT, *id, 0);
            return Ok(Self { probe: None });
        }
        // perf-event2 0.7.4 has no event for probes in programs, so the pointer that the kernel wants
        // (`uprobe_path`, `kprobe_func`) is set here.
        let name = if probe.path.is_empty() { &probe.function } else { &probe.path };
        let name = CString::new(name.as_str())?;
        attributes.config1 = name.as_ptr() as u64;
        Ok(Self { probe: Some(name) })
    }

    /// Whether threads and processes that start later can have the event. The kernel would read the name of a probe
    /// again for each, in their memory, and refuse to start them.
    pub(crate) fn can_be_inherited(&self) -> bool {
        self.probe.is_none()
    }
}

/// Whether this process may count what the kernel counts by itself, software events and tracepoints.
///
/// It is found by asking for an event that no kernel has: whoever is allowed gets ENOENT. An event
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

/// Target of an event that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeTarget {
    /// The calling thread.
    Mine,
    /// A task that runs already.
    Task(Pid),
    /// Whatever runs on a CPU.
    Cpu(u32),
}

/// What the kernel answers to opening an event, which is closed at once.
///
/// # Errors
/// Returns the kernel's own answer, without a meaning.
pub fn ask(event: &Event, whose: ProbeTarget) -> io::Result<()> {
    if event.kind == EventKind::Tool {
        return Ok(());
    }
    let (subject, cpu) = match whose {
        ProbeTarget::Mine => (CountedTask::Task(nix::unistd::gettid()), None),
        ProbeTarget::Task(task) => (CountedTask::Task(task), None),
        ProbeTarget::Cpu(cpu) => (CountedTask::Anyone, Some(cpu)),
    };
    let ask = |event: &Event, cpu: Option<u32>| {
        let place = CounterPlace { subject: subject.clone(), cpu, scope: Scope::All };
        let (plan, start, probes) = (&Plan::default(), Start::Later, &ProbeIds::default());
        Opening { plan, place: &place, start, inherit: false, probes, rows: &mut [] }.open(event, None).map(drop)
    };
    match event.units() {
        [] => ask(event, cpu),
        // Units may listen to different CPUs.
        units => {
            units.iter().try_for_each(|unit| ask(&event.on(unit), cpu.and(unit.encoding.cpus.first().copied()).or(cpu)))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn a_signal_while_an_event_is_opened_refuses_nothing() {
        let mut answers = [Err(Errno::EINTR), Err(Errno::EINTR), Ok(7), Err(Errno::EINTR)].into_iter();
        assert_eq!(uninterrupted(|| Ok(answers.next().unwrap()?)).unwrap(), 7);
        assert_eq!(answers.len(), 1);
        let refused = uninterrupted(|| Err::<(), _>(Errno::EACCES.into())).unwrap_err();
        assert_eq!(Refusal::from(&refused), Refusal::Permission);
    }
}
