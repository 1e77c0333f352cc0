//! Finds the layer that refuses an event, by asking the kernel.
//!
//! One errno has many causes: EACCES may hide that there is no PMU, and a seccomp filter's EPERM
//! looks like a missing right. So the question is made smaller until it is answered:
//!
//! ```text
//! the event of the target     opens: counted
//!   in user space only        opens: the kernel's side is what is forbidden; ENOENT: no such event
//!     task-clock of itself    fails: perf_event_open as a whole is forbidden
//!       of the target         fails: the target is
//! ```

use std::time::Duration;

use nix::errno::Errno;
use nix::unistd::Pid;

use super::{Capability, Host};
use crate::events::{Event, EventKind};
use crate::plan::{Fit, Plan, Rotation};
use crate::sources::perf::{self, ProbeTarget};

/// What a kernel answers.
pub trait Kernel {
    /// What `perf_event_open` says to this event.
    ///
    /// # Errors
    /// Returns the kernel's errno.
    fn open(&self, event: &Event, whose: ProbeTarget) -> Result<(), Errno>;

    /// Whether these events of one PMU can be counted at the same time.
    fn fit(&self, events: &[&Event]) -> Fit;

    /// The time that one switch between slices takes; `None` where that isn't known.
    fn switch_cost(&self, _plan: &Plan, _rotations: &[Rotation]) -> Option<Duration> {
        None
    }
}

/// The kernel that runs this program.
#[derive(Clone, Copy, Debug)]
pub struct ThisKernel;

impl Kernel for ThisKernel {
    fn open(&self, event: &Event, whose: ProbeTarget) -> Result<(), Errno> {
        perf::ask(event, whose).map_err(|error| error.raw_os_error().map_or(Errno::EINVAL, Errno::from_raw))
    }

    fn fit(&self, events: &[&Event]) -> Fit {
        perf::fit(events)
    }

    fn switch_cost(&self, plan: &Plan, rotations: &[Rotation]) -> Option<Duration> {
        perf::switch_cost(plan, rotations)
    }
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventVerdict {
    /// The event can be counted as asked.
    Counted,
    /// The event can be counted in user space only: the kernel's side needs more rights.
    UserOnly,
    /// This machine or kernel has no such event.
    Absent(Errno),
    /// This user may not count it.
    Denied(Denial),
    /// The kernel says something that has no general meaning.
    Refused(Errno),
}

/// Why this user may not count an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// `perf_event_paranoid` keeps it from users without `CAP_PERFMON`.
    Level {
        /// The level, where it can be read.
        level: Option<i64>,
        /// The highest level that allows it.
        allows: i64,
    },
    /// Only `CAP_PERFMON` can open it, at any level.
    Capability,
    /// The kernel refuses it to this process, which has the right to count everything.
    Nobody(Errno),
    /// A seccomp filter refuses every `perf_event_open`.
    Seccomp(Errno),
    /// The kernel is built without `perf_event_open`, or what plays the kernel has none.
    NoSystemCall,
    /// Something refuses every `perf_event_open`, and doesn't say what it is.
    Everything(Errno),
    /// The target is somebody else's.
    Target,
}

impl EventVerdict {
    /// Whether there will be numbers.
    pub fn counts(self) -> bool {
        matches!(self, Self::Counted | Self::UserOnly)
    }
}

/// Asks the kernel why an event of the target can't be counted, or whether it can.
pub fn verdict(host: &Host, kernel: &dyn Kernel, event: &Event, whose: ProbeTarget) -> EventVerdict {
    let Err(error) = kernel.open(event, whose) else { return EventVerdict::Counted };
    if is_absent(error) {
        return EventVerdict::Absent(error);
    }
    if !is_denied(error) {
        return EventVerdict::Refused(error);
    }
    if let Some(narrowed) = event.in_user_space_only() {
        match kernel.open(&narrowed, whose) {
            Ok(()) if event.is_clock() => return EventVerdict::Counted,
            Ok(()) => return EventVerdict::UserOnly,
            Err(error) if is_absent(error) => return EventVerdict::Absent(error),
            Err(_) => {}
        }
    }
    EventVerdict::Denied(denial(host, kernel, event, whose, error))
}

/// Which layer it is when the event itself isn't: all counting, the target, or the level.
fn denial(host: &Host, kernel: &dyn Kernel, event: &Event, whose: ProbeTarget, error: Errno) -> Denial {
    let Some(clock) = host.event("task-clock:u") else { return Denial::Everything(error) };
    if let Err(error) = kernel.open(&clock, ProbeTarget::Mine) {
        return blocked(host, whose, error);
    }
    if let ProbeTarget::Task(_) = whose
        && kernel.open(&clock, whose).is_err()
    {
        return Denial::Target;
    }
    let process = host.process();
    if process.can(Capability::Perfmon) || process.can(Capability::SysAdmin) {
        return Denial::Nobody(error);
    }
    if event.kind == EventKind::Probe {
        return Denial::Capability;
    }
    let allows = if let ProbeTarget::Cpu(_) = whose { 0 } else { 1 };
    Denial::Level { level: host.setting("perf_event_paranoid"), allows }
}

/// Who it is that refuses even a software event of this very process.
fn blocked(host: &Host, whose: ProbeTarget, error: Errno) -> Denial {
    let level = host.setting("perf_event_paranoid");
    match error {
        // Debian's and Ubuntu's levels 3 and 4 answer EACCES; a filter answers EPERM or ENOSYS.
        Errno::EACCES if level.is_some_and(|level| level > 2) => {
            let allows = if let ProbeTarget::Cpu(_) = whose { 0 } else { 2 };
            Denial::Level { level, allows }
        }
        Errno::ENOSYS if level.is_none() => Denial::NoSystemCall,
        _ if host.process().filtered => Denial::Seccomp(error),
        _ => Denial::Everything(error),
    }
}

/// Why a process, whatever is counted of it, can't be measured.
pub fn target_denial(host: &Host, kernel: &dyn Kernel, pid: Pid) -> Option<Denial> {
    match verdict(host, kernel, &host.event("task-clock:u")?, ProbeTarget::Task(pid)) {
        EventVerdict::Denied(denial) => Some(denial),
        _ => None,
    }
}

fn is_absent(error: Errno) -> bool {
    matches!(error, Errno::ENOENT | Errno::ENXIO | Errno::ENODEV | Errno::EOPNOTSUPP)
}

fn is_denied(error: Errno) -> bool {
    matches!(error, Errno::EACCES | Errno::EPERM | Errno::ENOSYS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;
    use std::path::Path;

    use super::*;

    /// A kernel whose answers all follow from one function.
    struct Rule(fn(&Event, ProbeTarget) -> Result<(), Errno>);

    impl Kernel for Rule {
        fn open(&self, event: &Event, whose: ProbeTarget) -> Result<(), Errno> {
            self.0(event, whose)
        }

        fn fit(&self, _: &[&Event]) -> Fit {
            Fit::Unknown
        }

        fn switch_cost(&self, _: &Plan, _: &[Rotation]) -> Option<Duration> {
            None
        }
    }

    const OTHER: ProbeTarget = ProbeTarget::Task(Pid::from_raw(1));

    fn found(name: &str, whose: ProbeTarget, rule: fn(&Event, ProbeTarget) -> Result<(), Errno>) -> EventVerdict {
        // Without files: no level can be read, and no filter is known of.
        let host = Host::under(Path::new("/nonexistent"));
        verdict(&host, &Rule(rule), &host.event(name).unwrap(), whose)
    }

    #[test]
    fn a_missing_pmu_is_found_behind_a_missing_right() {
        let rule = |event: &Event, _| match event.modifiers.exclude_kernel {
            true => Err(Errno::ENOENT),
            false => Err(Errno::EACCES),
        };
        assert_eq!(found("cycles", ProbeTarget::Mine, rule), EventVerdict::Absent(Errno::ENOENT));
        assert_eq!(found("cycles", ProbeTarget::Mine, |_, _| Err(Errno::EINVAL)), EventVerdict::Refused(Errno::EINVAL));
        assert_eq!(found("cycles", ProbeTarget::Mine, |_, _| Ok(())), EventVerdict::Counted);
    }

    #[test]
    fn the_kernels_side_alone_may_be_forbidden() {
        let rule = |event: &Event, _| if event.modifiers.exclude_kernel { Ok(()) } else { Err(Errno::EACCES) };
        assert_eq!(found("cycles", ProbeTarget::Mine, rule), EventVerdict::UserOnly);
        // Switches happen in the kernel: in user space there is nothing left to count.
        let level = |allows| EventVerdict::Denied(Denial::Level { level: None, allows });
        assert_eq!(found("context-switches", ProbeTarget::Mine, rule), level(1));
        // Without the kernel's side there would be nothing of the kernel's side alone.
        assert_eq!(found("page-faults:k", ProbeTarget::Mine, rule), level(1));
        let whole = |_: &Event, whose| if let ProbeTarget::Cpu(_) = whose { Err(Errno::EACCES) } else { Ok(()) };
        assert_eq!(found("cycles", ProbeTarget::Cpu(3), whole), level(0));
    }

    #[test]
    fn a_level_that_forbids_everything_is_lowered_as_far_as_the_target_needs() {
        let root = std::env::temp_dir().join(format!("perfprop-layers-{}", std::process::id()));
        let settings = root.join("proc/sys/kernel");
        fs::create_dir_all(&settings).unwrap();
        fs::write(settings.join("perf_event_paranoid"), "4\n").unwrap();
        let (host, rule) = (Host::under(&root), Rule(|_, _| Err(Errno::EACCES)));
        let found = |whose| verdict(&host, &rule, &host.event("page-faults").unwrap(), whose);
        let level = |allows| EventVerdict::Denied(Denial::Level { level: Some(4), allows });
        assert_eq!([found(ProbeTarget::Mine), found(ProbeTarget::Cpu(0))], [level(2), level(0)]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn probes_need_the_capability_at_any_level() {
        let host = Host::under(Path::new("/nonexistent"));
        let probe = Event { kind: EventKind::Probe, ..host.event("context-switches").unwrap() };
        let rule = Rule(|event, _| if event.kind == EventKind::Probe { Err(Errno::EACCES) } else { Ok(()) });
        assert_eq!(verdict(&host, &rule, &probe, ProbeTarget::Mine), EventVerdict::Denied(Denial::Capability));
    }

    #[test]
    fn the_target_is_told_from_the_level_and_both_from_everything() {
        let strangers = |_: &Event, whose| if let ProbeTarget::Task(_) = whose { Err(Errno::EACCES) } else { Ok(()) };
        assert_eq!(found("page-faults", OTHER, strangers), EventVerdict::Denied(Denial::Target));
        assert_eq!(found("page-faults", OTHER, |_, _| Err(Errno::EPERM)), {
            EventVerdict::Denied(Denial::Everything(Errno::EPERM))
        });
        let no_call = EventVerdict::Denied(Denial::NoSystemCall);
        assert_eq!(found("cycles", ProbeTarget::Mine, |_, _| Err(Errno::ENOSYS)), no_call);
    }
}
