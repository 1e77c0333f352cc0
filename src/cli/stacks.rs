//! Reads the options of call stacks, and explains what can't be sampled.

use std::fmt;

use super::args::{Frequency, Stacks};
use super::prepare::{Wishes, resolver};
use super::stream::say;
use super::{Error, args};
use crate::events::{Event, EventKind};
use crate::machine::Host;
use crate::monitor::Monitor;
use crate::names::shown;
use crate::profile::TreeOptions;
use crate::session::Session;
use crate::sources::Counter;
use crate::stacks::live::{self, StackError, Wanted};
use crate::stacks::{Gathering, Rate, UnwindMethod};
use crate::text;

/// Sampled where nobody says what: where there is a PMU, and where there is none.
const DEFAULT_HARDWARE: &str = "cycles";
const DEFAULT_SOFTWARE: &str = "cpu-clock";

/// The sampling that the options request, if any.
pub(super) fn wanted(args: &Stacks, events: &args::Events, wishes: &Wishes) -> Result<Option<Wanted>, Error> {
    let call_graph = match (args.frame_pointers, args.call_graph) {
        (_, Some(call_graph)) => call_graph,
        (true, None) => UnwindMethod::Fp,
        (false, None) if args.frequency.is_some() || args.count.is_some() => {
            let how = "add -g, or --call-graph dwarf for programs without frame pointers";
            return Err(Error::Usage(format!("-F and -c say how often call stacks are sampled: {how}")));
        }
        (false, None) => return Ok(None),
    };
    if wishes.counter != Counter::Kernel {
        return modelled(args, wishes).map(Some);
    }
    let rate = args.frequency.map(frequency).transpose()?.or(args.count.map(Rate::Period));
    // Nothing happens when time passes.
    let sampled = wishes.plan.events.iter().filter(|event| event.kind != EventKind::Tool).cloned().collect::<Vec<_>>();
    let events = if events.events.is_empty() || sampled.is_empty() { default_events()? } else { sampled };
    Ok(Some(Wanted { events, rate, call_graph }))
}

/// A model counts all calls of all events.
fn modelled(args: &Stacks, wishes: &Wishes) -> Result<Wanted, Error> {
    if args.call_graph.is_some() || args.frequency.is_some() || args.count.is_some() {
        let why = "the model of --source emulate counts every call, and samples nothing";
        return Err(Error::Usage(format!("{why}: give -g alone")));
    }
    Ok(Wanted { events: wishes.plan.events.clone(), rate: None, call_graph: UnwindMethod::Modelled })
}

/// Puts what is sampled into a tree, if anything is.
pub(super) fn gather(session: &Session) -> Result<Option<Gathering>, Error> {
    let gathering = session
        .stacks()
        .map(|stacks| Gathering::start(stacks.batches().clone(), stacks.sampled().clone(), TreeOptions::default()));
    gathering.transpose().map_err(Error::System)
}

/// Ends sampling, and waits for what is on its way.
pub(super) fn finish(session: &Session, profile: Option<&mut Gathering>) {
    if let (Some(stacks), Some(profile)) = (session.stacks(), profile) {
        stacks.stop();
        profile.finish();
    }
}

/// The functions in which most was sampled; nothing if nothing is.
pub(super) fn text(profile: Option<&Gathering>, monitor: &Monitor) -> String {
    let stacks = |profile: &Gathering| {
        let gathered = profile.look();
        let target = monitor.header().target.selection();
        format!("\n{}", text::stacks(gathered.tree(), gathered.quality(), &target))
    };
    profile.map(stacks).unwrap_or_default()
}

fn default_events() -> Result<Vec<Event>, Error> {
    let resolver = resolver(None)?;
    let name = if Host::here().cores().next().is_some() { DEFAULT_HARDWARE } else { DEFAULT_SOFTWARE };
    let groups = resolver.parse(name).map_err(Error::Events)?;
    Ok(groups.into_iter().flat_map(|group| group.events).collect())
}

/// A frequency that the kernel allows; that another one was asked for is said.
fn frequency(asked: Frequency) -> Result<Rate, Error> {
    let max = live::max_frequency();
    match (asked, max) {
        (Frequency::Max, Some(max)) => Ok(Rate::Frequency(max)),
        (Frequency::Max, None) => {
            Err(Error::Usage("the kernel doesn't say its highest frequency: give a number".into()))
        }
        (Frequency::Hz(hz), Some(max)) if hz > max => {
            say(&format!(
                "-F {hz} is more than the kernel allows now: sampling at {max} Hz (sudo sysctl kernel.perf_event_max_sample_rate={hz})"
            ));
            Ok(Rate::Frequency(max))
        }
        (Frequency::Hz(hz), _) => Ok(Rate::Frequency(hz)),
    }
}

/// Reports each event that couldn't be sampled.
pub(super) fn tell_unsampled(stacks: &live::LiveStacks) {
    let reasons: Vec<_> = stacks.unsampled().iter().map(reason).collect();
    if !reasons.is_empty() {
        say(&format!("counted without call stacks: {}", reasons.join("; ")));
    }
}

fn reason(unsampled: &live::Unsampled) -> String {
    format!("{} ({})", shown(&unsampled.name), why(&unsampled.source))
}

fn why(error: &std::io::Error) -> String {
    use nix::errno::Errno;
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EINVAL | Errno::EOPNOTSUPP) => "it can't be sampled".into(),
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => "this machine has no such event".into(),
        Some(Errno::EACCES | Errno::EPERM) => "not permitted".into(),
        _ => error.to_string(),
    }
}

/// Why nothing can be sampled, and what to try.
pub(super) fn explain(f: &mut fmt::Formatter<'_>, error: &StackError) -> fmt::Result {
    match error {
        StackError::NoEvent(unsampled) => {
            let reasons: Vec<_> = unsampled.iter().map(reason).collect();
            writeln!(f, "E14 perfprop: no call stacks can be sampled: {}", reasons.join("; "))?;
            let forbidden = unsampled.iter().any(|event| event.source.kind() == std::io::ErrorKind::PermissionDenied);
            if forbidden {
                write!(f, "      as root, or:  sudo sysctl kernel.perf_event_paranoid=1")
            } else {
                write!(f, "      what can be sampled everywhere:  -e cpu-clock")
            }
        }
        StackError::NoLbr => {
            writeln!(f, "E14 perfprop: this processor keeps no record of calls (LBR): most virtual machines hide it")?;
            write!(f, "      use --call-graph dwarf, or -g for programs that are built with frame pointers")
        }
        StackError::NoUnwinding => {
            writeln!(f, "E14 perfprop: stacks of this processor can't be unwound by unwind information")?;
            write!(f, "      use -g with programs that are built with frame pointers")
        }
        StackError::Locked { needed, limit_kb } => {
            let needed = needed.div_ceil(1024);
            let limit = limit_kb.map_or_else(String::new, |limit| format!("; perf_event_mlock_kb is {limit}"));
            writeln!(
                f,
                "E14 perfprop: ring buffers need {needed} KiB of locked memory at least, and this user may lock no more (EPERM{limit})"
            )?;
            let raised = limit_kb.unwrap_or(516) * 2;
            write!(f, "      end other profilers of this user, or:  sudo sysctl kernel.perf_event_mlock_kb={raised}")
        }
        // Reported with the counters'.
        StackError::Open(_) => Ok(()),
    }
}
