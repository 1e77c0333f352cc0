//! Counts the samples in functions without a name, by the reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number;
use crate::profile::EventId;

/// Why a function has no name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NamelessReason {
    /// The program has no symbol there: the function is called by where it begins, or the place by its offset.
    Stripped,
    /// The program was gone from its path before it could be opened.
    ProgramGone,
    /// The program isn't to be read, or another file has taken its place.
    ProgramRefused,
    /// The names of the program took too long to read.
    Late,
    /// A process made the code while it ran, and has told no name for it.
    Made,
    /// The process was gone before its mappings could be read, or they are not to be read.
    ProcessGone,
    /// The process is outside of perfprop's namespace of process ids.
    ProcessOutside,
    /// The process has no code at the address.
    Unmapped,
    /// The kernel doesn't tell its symbols to this user.
    KernelHidden,
}

impl NamelessReason {
    /// Where such functions are, as a part of a sentence: `in programs without symbols`.
    pub fn place(self) -> &'static str {
        match self {
            Self::Stripped => "in programs without symbols",
            Self::ProgramGone => "in files that are gone",
            Self::ProgramRefused => "in files that can't be read",
            Self::Late => "in files that take too long to read",
            Self::Made => "in code made at run time",
            Self::ProcessGone => "in processes that were gone",
            Self::ProcessOutside => "in processes outside of this PID namespace",
            Self::Unmapped => "where no code is mapped",
            Self::KernelHidden => "in the kernel, which hides its symbols",
        }
    }

    /// Why such a function has no name: `no symbol: the name is where it begins`.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Stripped => "no symbol: the name is where the function begins",
            Self::ProgramGone => "no name: the file was gone before it could be opened",
            Self::ProgramRefused => "no name: the file can't be read, or another one has taken its place",
            Self::Late => "no name: reading the names of the file took too long",
            Self::Made => "no name: made at run time, and the program has told no name for it",
            Self::ProcessGone => "no name: the process was gone, or isn't to be looked at",
            Self::ProcessOutside => "no name: the process is outside of this PID namespace",
            Self::Unmapped => "no name: the process has no code at this address",
            Self::KernelHidden => "no name: the kernel hides its symbols from this user",
        }
    }

    /// What helps.
    pub fn help(self) -> &'static str {
        match self {
            Self::Stripped => {
                "debug symbols name them:  find-dbgsym-packages or debuginfo-install; or build without -s"
            }
            Self::ProgramGone => "root can follow the kernel's link to them:  sudo \"$(command -v perfprop)\"",
            Self::ProgramRefused => "the lines below say why",
            Self::Late => "the lines below say which",
            Self::Made => "a runtime writes /tmp/perf-PID.map if it is asked to",
            Self::ProcessGone => "of a process that perfprop starts nothing is missed:  perfprop record -g -- COMMAND",
            Self::ProcessOutside => "outside of the container, perfprop sees the processes of all",
            Self::Unmapped => "their stacks were cut, or led nowhere:  --call-graph dwarf",
            Self::KernelHidden => "they are told by:  sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
        }
    }
}

/// How many samples of each event are in functions without a name, by the reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamelessSamples {
    counts: BTreeMap<(usize, NamelessReason), u64>,
}

impl NamelessSamples {
    pub(super) fn add(&mut self, event: EventId, reason: NamelessReason, samples: u64) {
        let count = self.counts.entry((event.index(), reason)).or_default();
        *count = count.saturating_add(samples);
    }

    /// The reasons of an event with their samples, the most frequent first.
    pub fn of(&self, event: EventId) -> Vec<(NamelessReason, u64)> {
        let of_event = self.counts.iter().filter(|((of, _), _)| *of == event.index());
        let mut reasons: Vec<_> = of_event.map(|(&(_, reason), &samples)| (reason, samples)).collect();
        reasons.sort_by_key(|&(reason, samples)| (std::cmp::Reverse(samples), reason));
        reasons
    }
}

/// `12.0% in programs without symbols, 3.0% in files that are gone`, of so many samples.
pub(super) fn in_words(reasons: &[(NamelessReason, u64)], of: u64) -> String {
    let share = |samples: u64| number::share(samples as f64 / of.max(1) as f64);
    let said: Vec<_> =
        reasons.iter().map(|&(reason, samples)| format!("{} {}", share(samples), reason.place())).collect();
    said.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{ProfileEvent, SampleMeasure, Tree};

    #[test]
    fn reasons_are_counted_by_event() {
        let mut tree = Tree::default();
        let [clock, faults] =
            ["clock", "faults"].map(|name| tree.event(&ProfileEvent::new(name, SampleMeasure::Samples)));
        let mut nameless = NamelessSamples::default();
        assert_eq!(nameless.of(clock), []);
        nameless.add(clock, NamelessReason::Stripped, 2);
        nameless.add(clock, NamelessReason::Made, 5);
        nameless.add(clock, NamelessReason::Stripped, 1);
        nameless.add(faults, NamelessReason::Stripped, 4);
        assert_eq!(nameless.of(clock), [(NamelessReason::Made, 5), (NamelessReason::Stripped, 3)]);
        assert_eq!(nameless.of(faults), [(NamelessReason::Stripped, 4)]);
        let words = in_words(&nameless.of(clock), 100);
        assert_eq!(words, "5.0% in code made at run time, 3.0% in programs without symbols");
    }
}
