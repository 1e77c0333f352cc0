//! Defines findings, and the words for each.

use std::fmt;

use super::{Monitor, PhaseChange};
use crate::codes::ErrorCode::{E01, E02, E11};
use crate::estimate::RelationIndex;
use crate::names::first_of;
use crate::number::{clock, counted, whole_share};
use crate::plan::RowIndex;
use crate::run::{Header, MeasuredEvent, RotatedBy};
use crate::sources::Scope;
use crate::units::{CpuNs, WallNs};

/// A finding, and when it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted {
    /// The time of the round that showed it.
    pub at: WallNs,
    /// The finding itself.
    pub finding: Finding,
}

/// Something about the measurement that its reader should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// Rounds of up to a minute came too late or found no room.
    LostRounds {
        /// Number of lost rounds in that time.
        rounds: u64,
    },
    /// A count or a time fell between two rounds; the two give no sample.
    WentBackwards {
        /// Event that it is about.
        event: RowIndex,
    },
    /// Events were on a counter for a small part of the time.
    LowRunRatio {
        /// Events, each with its time running over its time enabled.
        ratios: Vec<(RowIndex, f64)>,
    },
    /// This machine has no such event.
    NotSupported {
        /// Event that it is about.
        event: RowIndex,
    },
    /// The kernel doesn't let this user count it.
    Forbidden {
        /// Event that it is about.
        event: RowIndex,
    },
    /// All that could count the event is in use.
    InUse {
        /// Event that it is about.
        event: RowIndex,
    },
    /// The kernel took counters off a task or a CPU.
    TakenOff {
        /// The events that aren't counted, in whole or in part, from then on.
        events: Vec<RowIndex>,
        /// What made it do so.
        by: TakenOffBy,
    },
    /// Much CPU time of a command passed without its events, as if the kernel had taken counters off a child.
    UncountedTime {
        /// CPU time without them.
        uncounted: CpuNs,
        /// All CPU time of the command and its waited-for children.
        all: CpuNs,
    },
    /// Threads had ended before their counters were open.
    Gone {
        /// Number of threads.
        threads: usize,
    },
    /// The event is counted in user space only.
    UserOnly {
        /// Event that it is about.
        event: RowIndex,
    },
    /// The event is counted on one kind of core only.
    OneKindOfCore {
        /// Event that it is about.
        event: RowIndex,
    },
    /// Some units, or what starts later, have no part in the event's sum.
    LacksUnits {
        /// Event that it is about.
        event: RowIndex,
    },
    /// The event's PMU is opened on other CPUs than those that are measured.
    Elsewhere {
        /// Event that it is about.
        event: RowIndex,
    },
    /// Events of a relation aren't measured.
    RelationInactive {
        /// Relation that it is about.
        relation: RelationIndex,
        /// Names of the events that are not measured.
        missing: Vec<String>,
    },
    /// What is counted contradicts a relation.
    RelationViolated {
        /// Relation that it is about.
        relation: RelationIndex,
        /// The residual in standard errors.
        z: f64,
    },
    /// Counts are those of a model, not of a real machine.
    Modelled,
    /// The rotation of the counters beats with the program.
    RotationBeats {
        /// By what scaled counts may have to be multiplied, at least.
        least: f64,
        /// By what they may have to be multiplied at most.
        most: f64,
    },
    /// The estimator found no solution for an interval, and scaled its counts.
    FellBack,
    /// The rates of events changed to another level that lasted, at nearly the same time.
    LevelChanged {
        /// The changes, in the order in which they were told.
        changes: Vec<PhaseChange>,
    },
    /// Changes of an event were so frequent that no more of them are told for now.
    ChangesOften {
        /// Event that it is about.
        event: RowIndex,
    },
    /// The processes that were watched have ended, or watching them has.
    TargetEnded,
    /// What is counted agrees with a relation again.
    RelationRecovered {
        /// Relation that it is about.
        relation: RelationIndex,
        /// The residual in standard errors.
        z: f64,
    },
}

/// What leaves a part of the target uncounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenOffBy {
    /// A task executed a program with rights of its own.
    Exec,
    /// The model ended before it had written all that it counted.
    Model,
    /// A CPU went offline.
    OfflineCpu {
        /// When.
        from: WallNs,
    },
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Information: nothing is wrong.
    Info,
    /// Numbers are less than they seem.
    Warning,
}

impl Finding {
    /// Severity of the finding.
    pub fn severity(&self) -> Severity {
        match self {
            Self::RelationInactive { .. }
            | Self::RelationRecovered { .. }
            | Self::UserOnly { .. }
            | Self::Modelled
            | Self::Gone { .. }
            | Self::OneKindOfCore { .. }
            | Self::LevelChanged { .. }
            | Self::ChangesOften { .. }
            // Counts are cumulative: nothing is missing.
            | Self::LostRounds { .. }
            | Self::TargetEnded => Severity::Info,
            Self::WentBackwards { .. }
            | Self::LowRunRatio { .. }
            | Self::NotSupported { .. }
            | Self::Forbidden { .. }
            | Self::InUse { .. }
            | Self::TakenOff { .. }
            | Self::UncountedTime { .. }
            | Self::LacksUnits { .. }
            | Self::Elsewhere { .. }
            | Self::RelationViolated { .. }
            | Self::RotationBeats { .. }
            | Self::FellBack => Severity::Warning,
        }
    }

    /// Name of the finding in lists and files.
    pub fn code(&self) -> &'static str {
        match self {
            Self::LostRounds { .. } => "W01",
            Self::WentBackwards { .. } => "W02",
            Self::LowRunRatio { .. } => "W03",
            Self::NotSupported { .. } => E02.name(),
            Self::Forbidden { .. } => E01.name(),
            Self::UserOnly { .. } => "W06",
            Self::RelationInactive { .. } => "W07",
            Self::RelationViolated { .. } => "W08",
            Self::RelationRecovered { .. } => "W09",
            Self::Modelled => "W20",
            Self::OneKindOfCore { .. } => "W10",
            Self::TakenOff { by: TakenOffBy::Model, .. } => CUT,
            Self::TakenOff { .. } => TAKEN_OFF,
            Self::Gone { .. } => "W12",
            Self::UncountedTime { .. } => "W13",
            Self::LacksUnits { .. } => "W14",
            Self::Elsewhere { .. } => "W15",
            Self::RotationBeats { .. } => "W16",
            Self::FellBack => "W17",
            Self::LevelChanged { .. } => "W18",
            Self::ChangesOften { .. } => "W19",
            Self::InUse { .. } => "W21",
            Self::TargetEnded => E11.name(),
        }
    }

    /// The words for it, with the names that `monitor` knows.
    pub fn words<'a>(&'a self, monitor: &'a Monitor) -> impl fmt::Display + 'a {
        FindingText { finding: self, monitor }
    }
}

struct FindingText<'a> {
    finding: &'a Finding,
    monitor: &'a Monitor,
}

impl FindingText<'_> {
    fn measured(&self, index: RowIndex) -> &MeasuredEvent {
        &self.monitor.header().events[index]
    }

    fn event(&self, index: RowIndex) -> &str {
        &self.measured(index).event.name
    }

    /// An event with what is said of it.
    fn of_event(&self, f: &mut fmt::Formatter<'_>, event: RowIndex, words: &str) -> fmt::Result {
        write!(f, "{} {words}", self.event(event))
    }

    fn one_kind_of_core(&self, f: &mut fmt::Formatter<'_>, event: RowIndex) -> fmt::Result {
        let core = self.measured(event).event.core().unwrap_or_default();
        self.of_event(f, event, &format!("counts on {core} only: a part, which is not scaled"))
    }

    /// What an event lacks whose sum is not whole.
    fn lacking_words(&self, event: RowIndex) -> String {
        let measured = self.measured(event);
        measured.lacking_words().unwrap_or_else(|| {
            let units = measured.event.units().len();
            format!(
                "is the sum of a part of its {units} units; the others were on no counter: is another tool using them?"
            )
        })
    }

    fn violated(&self, f: &mut fmt::Formatter<'_>, relation: RelationIndex, z: f64) -> fmt::Result {
        let consequence = match self.monitor.standings()[relation].corrects_regardless() {
            true => "it corrects nevertheless, as --estimator linear-plain asks",
            false => "it corrects nothing now",
        };
        write!(f, "{} contradicts what is counted (z {z:+.1}); {consequence}", self.relation(relation))
    }

    fn rotation_beats(&self, f: &mut fmt::Formatter<'_>, least: f64, most: f64) -> fmt::Result {
        let remedy = match self.monitor.header().modelled {
            Some(_) => "Try more counters (--counters), or fewer events",
            None => "Try --schedule user, or fewer hardware events",
        };
        write!(
            f,
            "the counters rotate in step with the program, so multiplexed counts may be wrong: the truth may be \
             {least:.1} to {most:.1} times what is shown, and intervals are as wide. {remedy}"
        )
    }

    fn relation(&self, index: RelationIndex) -> &str {
        &self.monitor.relations()[index].id
    }

    /// Which part of the target it was, where rows tell parts by thread or by CPU.
    fn taken_off(&self, f: &mut fmt::Formatter<'_>, events: &[RowIndex], by: TakenOffBy) -> fmt::Result {
        let scopes = events.iter().map(|&event| &self.monitor.header().events[event].scope);
        if by == TakenOffBy::Model {
            return f.write_str(CUT_MODEL);
        }
        if let TakenOffBy::OfflineCpu { from } = by {
            let cpu = scopes.clone().find_map(|scope| if let Scope::Cpu(cpu) = scope { Some(cpu) } else { None });
            let cpu = cpu.map_or_else(|| "a CPU".to_owned(), |cpu| format!("CPU {cpu}"));
            return write!(
                f,
                "{cpu} was offline from {:.1} s on: the kernel took its counters off, and what ran there later isn't counted; \
                 a new measurement counts it",
                from.as_secs()
            );
        }
        let thread = scopes.clone().find(|scope| matches!(scope, Scope::Thread { .. }));
        let who = thread.map_or_else(|| self.monitor.header().title(), Scope::to_string);
        f.write_str(&taken_off_at_exec(&who))
    }

    /// What takes counters away from one another: emulated ones are shared by events of any kind.
    fn fewer(&self) -> &'static str {
        match self.monitor.header().rotated_by {
            Some(RotatedBy::Emulated { .. }) => "fewer events or more counters (--counters)",
            _ => "fewer hardware events",
        }
    }

    /// Several together: they lie in multiplexed groups.
    fn low_ratios(&self, f: &mut fmt::Formatter<'_>, ratios: &[(RowIndex, f64)]) -> fmt::Result {
        let (least, most) = ratios
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, most), (_, ratio)| (least.min(*ratio), most.max(*ratio)));
        let counted = match most {
            0.0 => "not counted so far".to_owned(),
            _ if most - least < 0.01 => format!("counted {} of the time", whole_share(most)),
            _ => format!("counted {} to {} of the time", whole_share(least), whole_share(most)),
        };
        match ratios {
            [(event, _)] => {
                write!(f, "{} was {counted}; with {} its error would be smaller", self.event(*event), self.fewer())
            }
            _ => {
                let names: Vec<_> = ratios.iter().map(|(event, _)| self.event(*event)).collect();
                let fewer = self.fewer();
                write!(f, "{} events were {counted}; with {fewer} their errors would be smaller", ratios.len())?;
                // More of them than anyone reads stand in the table, each with its run ratio.
                if names.len() <= 4 { write!(f, " ({})", names.join(", ")) } else { Ok(()) }
            }
        }
    }

    /// `task-clock changed at 00:41: −12.0%, 980 ms/s → 862 ms/s`, or each event with its change.
    fn level_changed(&self, f: &mut fmt::Formatter<'_>, changes: &[PhaseChange]) -> fmt::Result {
        let Some((first, more)) = changes.split_first() else { return Ok(()) };
        let at = clock(first.at);
        if more.is_empty() {
            return write!(
                f,
                "{} changed at {at}: {}",
                self.event(first.event),
                self.monitor.phase_change_words(first)
            );
        }
        let part = |change: &PhaseChange| change.words().unwrap_or_else(|| "from 0".into());
        let named = changes.iter().map(|change| format!("{} {}", self.event(change.event), part(change)));
        write!(f, "{} events changed at {at}: {}", changes.len(), first_of(named, MOST_NAMED))
    }
}

/// Which part of the CPU time is not counted, and why.
fn uncounted_time(f: &mut fmt::Formatter<'_>, uncounted: CpuNs, all: CpuNs) -> fmt::Result {
    write!(
        f,
        "not counted: {:.2} s of {:.2} s CPU time. The kernel takes the counters off a child that is {WITH_RIGHTS}",
        uncounted.as_secs(),
        all.as_secs()
    )
}

/// A finding names so many events that changed at the same time.
const MOST_NAMED: usize = 6;

impl fmt::Display for FindingText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.finding {
            Finding::LostRounds { rounds } => write!(f, "{} skipped, totals are right", counted(*rounds, "reading")),
            Finding::LowRunRatio { ratios } => self.low_ratios(f, ratios),
            Finding::TakenOff { events, by } => self.taken_off(f, events, *by),
            Finding::UncountedTime { uncounted, all } => uncounted_time(f, *uncounted, *all),
            Finding::Gone { threads } => write!(f, "{} had ended before counting began", counted(*threads, "thread")),
            Finding::RelationInactive { relation, missing } => {
                write!(f, "{} is inactive: {} not measured", self.relation(*relation), missing.join(", "))
            }
            Finding::RelationViolated { relation, z } => self.violated(f, *relation, *z),
            Finding::RelationRecovered { relation, z } => {
                write!(f, "{} agrees with what is counted again (z {z:+.1})", self.relation(*relation))
            }
            Finding::RotationBeats { least, most } => self.rotation_beats(f, *least, *most),
            Finding::FellBack => {
                f.write_str("the estimator found no solution for an interval: its counts are scaled, as perf does")
            }
            Finding::Modelled => {
                let words = self.monitor.header().modelled_words().unwrap_or_default();
                write!(
                    f,
                    "all counts are {words}; if a process is killed, only what it had written until then is counted"
                )
            }
            Finding::LevelChanged { changes } => self.level_changed(f, changes),
            Finding::TargetEnded => {
                let (title, seconds) = (self.monitor.header().title(), self.monitor.now().as_secs());
                write!(f, "{title} ended after {seconds:.0} s; final values kept")
            }
            Finding::WentBackwards { event } => self.of_event(f, *event, "went backwards; that reading is left out"),
            Finding::NotSupported { event } => self.of_event(f, *event, "is not supported on this machine"),
            Finding::Forbidden { event } => self.of_event(f, *event, "may not be counted by this user"),
            Finding::InUse { event } => self.of_event(f, *event, "can't be counted: all that could count it is in use"),
            Finding::UserOnly { event } => {
                self.of_event(f, *event, "is counted in user space only: the kernel needs more rights")
            }
            Finding::OneKindOfCore { event } => self.one_kind_of_core(f, *event),
            Finding::LacksUnits { event } => self.of_event(f, *event, &self.lacking_words(*event)),
            Finding::Elsewhere { event } => {
                let cpus = self.measured(*event).event.cpu_list();
                self.of_event(f, *event, &format!("is counted on CPU {cpus} only"))
            }
            Finding::ChangesOften { event } => self.of_event(
                f,
                *event,
                "changes often; its changes are marked in Detail, and told here again after 5 minutes without one",
            ),
        }
    }
}

/// What the kernel lets no plain user count, and who can.
const WITH_RIGHTS: &str = "setuid or setgid, has file capabilities or can't be read by its user; \
                           root can count it (a copy of it where it is setuid to another user): \
                           sudo \"$(command -v perfprop)\" ...";

/// Why counts of a model are those of a part of the run.
const CUT_MODEL: &str = "counted in part: valgrind ended before it had written all that it counted, as where it can't run a \
                         program, its folder is full (df -h \"${TMPDIR:-/tmp}\"; TMPDIR names another), or it was killed";

/// The codes of [`Finding::TakenOff`], of counters and of a model.
const TAKEN_OFF: &str = "W11";
const CUT: &str = "W22";

/// The code and the words for a run that has such rows from a round on.
pub fn taken_off(header: &Header) -> String {
    match header.modelled {
        Some(_) => format!("{CUT} {CUT_MODEL}"),
        None => format!("{TAKEN_OFF} {}", taken_off_at_exec(&header.title())),
    }
}

/// What it means that the kernel took the counters off what is called so.
fn taken_off_at_exec(who: &str) -> String {
    format!("not counted from its exec on: {who}. The kernel took the counters off, as the program is {WITH_RIGHTS}")
}
