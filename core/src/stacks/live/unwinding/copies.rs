//! Decides when the kernel copies stacks: where frame pointers are missing, and unwinding a copy finds more callers.
//!
//! ```text
//!            most chains are whole, or copies don't help
//! Checking ──────────────────────────────────────────────▶ Chains ◀───────┐ nothing needs a copy
//!     │  ▲              more than 5 % are in doubt            │           │
//!     │  └────────────────────────────────────────────────────┘           │
//!     └──────────── copies find the callers of more than 5 % ───▶ Tiny ◀─▶ Small ◀─▶ Large
//! ```
//!
//! Copies grow where more than 0.5 % of the stacks end with them, and shrink where smaller ones would do for 99.75 %.
//! Where the kernel finds no room for records, copies shrink by a step at once, down to none, and stay so for a while.
//!
//! Every state names one of the sets of events that are open: one of them samples at a time.

use rustc_hash::{FxHashMap, FxHashSet};

use super::copy_evidence::{ENOUGH, EvidenceCounts, StackEvidence};
use crate::stacks::live::rings::CopySize;

#[cfg(test)]
mod tests;

/// They become smaller where less than this part needs them, of so many samples.
const WORTH_THE_SIZE: u32 = 400;
const ENOUGH_TO_SHRINK: u32 = 400;

/// Copies end where less than this part needs them: one in so many.
const WORTH_KEEPING: u32 = 100;

/// A check lasts this long, in nanoseconds: how a program begins says little of the rest.
const CHECK: u64 = 100_000_000;

/// The time from one check to the next, in nanoseconds.
const PAUSE: u64 = 1_000_000_000;

/// Copies end after this time without need, in nanoseconds, and with so many samples that say it.
const NEEDLESS: u64 = 3_000_000_000;
const ENOUGH_TO_END: u32 = 100;

/// After this time, in nanoseconds, what was seen counts half.
const HALVING: u64 = 1_000_000_000;

/// After a change records may still be lost for this long, in nanoseconds, by what was copied before.
const SETTLING: u64 = 50_000_000;

/// How long copies stay small that were too large for the buffers, in nanoseconds: at first, and at most. Each time it
/// is twice as long.
const FIRST_RELIEF: u64 = 5_000_000_000;
const LONGEST_RELIEF: u64 = 320_000_000_000;

/// What is done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CopyState {
    /// Copies tell whether frame pointers hold.
    Checking(CopySize),
    /// They hold, or copies are of no use.
    Chains,
    /// They don't.
    Copying(CopySize),
}

impl CopyState {
    fn size(self) -> CopySize {
        match self {
            Self::Chains => CopySize::None,
            Self::Checking(size) | Self::Copying(size) => size,
        }
    }
}

/// A change of what is copied, with what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyChange {
    /// Another set of events begins to sample, and a reader needs not know.
    Quietly,
    /// Frame pointers are missing: stacks are copied since the last change.
    Missing,
    /// Other sizes are copied from now on, or nothing.
    Resized,
}

/// Gathers what samples tell, and decides.
#[derive(Debug)]
pub(super) struct CopyControl {
    state: CopyState,
    /// Since when it is done.
    since: u64,
    processes: FxHashMap<i32, EvidenceCounts>,
    /// All of them.
    together: EvidenceCounts,
    /// Processes that copies are of no use for, and those whose stacks are longer than the largest copy.
    hopeless: FxHashSet<i32>,
    too_long: FxHashSet<i32>,
    /// The same of all together, where each alone lived too short.
    are_all_hopeless: bool,
    are_all_too_long: bool,
    /// The largest copies didn't help the few that were too long for small ones.
    are_few_too_long: bool,
    halved: u64,
    /// What may be copied at most until a time, as more found no room; and for how long it will be the next time.
    relief: Option<(CopySize, u64)>,
    next_relief: u64,
}

impl CopyControl {
    /// Begins with a check. Large copies may not be to be had.
    pub(super) fn new(now: u64, has_large: bool) -> Self {
        Self {
            state: CopyState::Checking(CopySize::Small),
            since: now,
            processes: FxHashMap::default(),
            together: EvidenceCounts::default(),
            hopeless: FxHashSet::default(),
            too_long: FxHashSet::default(),
            are_all_hopeless: false,
            are_all_too_long: !has_large,
            are_few_too_long: false,
            halved: now,
            relief: None,
            next_relief: FIRST_RELIEF,
        }
    }

    /// What the kernel is to copy now.
    pub(super) fn size(&self) -> CopySize {
        self.state.size()
    }

    /// Whether it is to be decided soon.
    pub(super) fn is_checking(&self) -> bool {
        matches!(self.state, CopyState::Checking(_))
    }

    /// Takes what a sample of a process told.
    pub(super) fn note(&mut self, pid: i32, evidence: StackEvidence) {
        let evidence = match evidence {
            StackEvidence::Doubtful if self.hopeless.contains(&pid) => StackEvidence::Useless,
            // A small copy is the best of all that are too short.
            StackEvidence::CopyEnded
                if self.size() != CopySize::Tiny && (self.are_all_too_long || self.too_long.contains(&pid)) =>
            {
                StackEvidence::Healed(CopySize::Small.bytes().into())
            }
            told => told,
        };
        self.together.add(evidence);
        self.processes.entry(pid).or_default().add(evidence);
    }

    /// The process is another program now, or ended.
    pub(super) fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
        self.hopeless.remove(&pid);
        self.too_long.remove(&pid);
    }

    /// Decides by what was told so far; `None` where all stays as it is.
    pub(super) fn decide(&mut self, now: u64) -> Option<CopyChange> {
        if self.together.all == 0 && !self.has_forgotten() {
            // Time in which nothing was sampled says nothing.
            self.since = now;
        }
        self.relief = self.relief.filter(|(_, until)| now < *until);
        let (next, change) = self.next(now.saturating_sub(self.since))?;
        let most = self.relief.map_or(CopySize::Large, |(most, _)| most);
        if next.size().bytes() > most.bytes() {
            return None;
        }
        match (self.state, next) {
            (CopyState::Checking(_), CopyState::Chains) => self.give_up(),
            (_, CopyState::Copying(CopySize::Small)) if self.size() == CopySize::Large => self.give_up_length(),
            _ => {}
        }
        self.begin(next, now);
        Some(change)
    }

    fn begin(&mut self, next: CopyState, now: u64) {
        (self.state, self.since, self.halved) = (next, now, now);
        self.processes.clear();
        self.together = EvidenceCounts::default();
    }

    /// The kernel found no room for records: copies a step less, if it copies anything.
    pub(super) fn relieve(&mut self, now: u64) -> Option<CopyChange> {
        if now.saturating_sub(self.since) < SETTLING {
            return None;
        }
        let (next, change) = match (self.state, self.size()) {
            (_, CopySize::None) => return None,
            // Nothing is known to need copies.
            (CopyState::Checking(_), CopySize::Large) => (CopyState::Checking(CopySize::Small), CopyChange::Quietly),
            (CopyState::Checking(_), _) => (CopyState::Chains, CopyChange::Quietly),
            (_, CopySize::Tiny) => (CopyState::Chains, CopyChange::Resized),
            (_, CopySize::Small) => (CopyState::Copying(CopySize::Tiny), CopyChange::Resized),
            (_, CopySize::Large) => (CopyState::Copying(CopySize::Small), CopyChange::Resized),
        };
        self.relief = Some((next.size(), now.saturating_add(self.next_relief)));
        self.next_relief = (self.next_relief * 2).min(LONGEST_RELIEF);
        self.begin(next, now);
        Some(change)
    }

    /// What is done next, after what was done so long.
    fn next(&self, lasted: u64) -> Option<(CopyState, CopyChange)> {
        let (has_enough, is_checked) = (self.together.all >= ENOUGH, lasted >= CHECK);
        Some(match self.state {
            CopyState::Checking(CopySize::Small) if has_enough && self.any_has_many(|group| group.ended) => {
                (CopyState::Checking(CopySize::Large), CopyChange::Quietly)
            }
            CopyState::Checking(_) if !has_enough || !is_checked => return None,
            CopyState::Checking(_) => match self.wanted() {
                CopySize::None => (CopyState::Chains, CopyChange::Quietly),
                size => (CopyState::Copying(size), CopyChange::Missing),
            },
            CopyState::Chains if lasted >= PAUSE && self.any_has_many(|group| group.doubtful) => {
                (CopyState::Checking(CopySize::Small), CopyChange::Quietly)
            }
            CopyState::Chains => return None,
            CopyState::Copying(size) => (self.resized(size, lasted)?, CopyChange::Resized),
        })
    }

    /// What is to be copied after a check.
    fn wanted(&self) -> CopySize {
        if self.any_has_many(|group| group.healed_by_large) {
            CopySize::Large
        } else if !self.any_has_many(|group| group.needs_more_than(CopySize::None)) {
            CopySize::None
        } else if self.any_has_some(|group| group.needs_more_than(CopySize::Tiny)) {
            CopySize::Small
        } else {
            CopySize::Tiny
        }
    }

    /// What is copied instead, after copies of this size for so long.
    fn resized(&self, size: CopySize, lasted: u64) -> Option<CopyState> {
        let is_long = lasted >= NEEDLESS;
        Some(match size {
            CopySize::Tiny if self.ends_too_often(lasted) => CopyState::Copying(CopySize::Small),
            CopySize::Small if self.any_has_many(|group| group.ended) => CopyState::Copying(CopySize::Large),
            CopySize::Small if !self.are_few_too_long && self.ends_too_often(lasted) => {
                CopyState::Copying(CopySize::Large)
            }
            CopySize::Large if lasted >= CHECK && self.is_too_short(lasted) => CopyState::Copying(CopySize::Small),
            CopySize::Large if is_long && self.is_too_large(|group| group.healed_by_large) => {
                CopyState::Copying(CopySize::Small)
            }
            CopySize::Small if is_long && self.is_too_large(|group| group.needs_more_than(CopySize::Tiny)) => {
                CopyState::Copying(CopySize::Tiny)
            }
            CopySize::Tiny if is_long && self.is_needless(|group| group.needs_more_than(CopySize::None)) => {
                CopyState::Chains
            }
            CopySize::None | CopySize::Tiny | CopySize::Small | CopySize::Large => return None,
        })
    }

    /// Whether copies of this size, which are made for so long, are too short for too many: more than 5 %, or 0.5 % of
    /// a second.
    fn ends_too_often(&self, lasted: u64) -> bool {
        self.any_has_many(|group| group.ended) || lasted >= PAUSE && self.any_has_some(|group| group.ended)
    }

    /// What was seen long ago counts less: call it now and then.
    /// Says whether all of it is forgotten.
    pub(super) fn age(&mut self, now: u64) -> bool {
        if self.is_checking() {
            return self.forget_beginning(now);
        }
        if now.saturating_sub(self.halved) < HALVING {
            return false;
        }
        self.halved = now;
        self.together.halve();
        self.processes.values_mut().for_each(EvidenceCounts::halve);
        self.processes.retain(|_, counts| counts.all > 0);
        false
    }

    /// Whether the first half of a check is forgotten.
    fn has_forgotten(&self) -> bool {
        self.is_checking() && self.halved > self.since
    }

    /// Forgets the first half of a check, once: there a program loads its libraries, which says nothing of its own
    /// code.
    fn forget_beginning(&mut self, now: u64) -> bool {
        let is_middle = (CHECK / 2..CHECK).contains(&now.saturating_sub(self.since));
        let is_due = is_middle && !self.has_forgotten() && self.together.all >= ENOUGH;
        if is_due {
            self.halved = now;
            self.processes.clear();
            self.together = EvidenceCounts::default();
        }
        is_due
    }

    /// Whether in a group more than 5 % are of this kind.
    fn any_has_many(&self, part: fn(&EvidenceCounts) -> u32) -> bool {
        self.groups().any(|group| group.has_many(part(group)))
    }

    /// Whether in a group more than 0.5 % are.
    fn any_has_some(&self, part: fn(&EvidenceCounts) -> u32) -> bool {
        self.groups().any(|group| group.has_some(part(group)))
    }

    /// Each process alone, and all of them, as processes may live for milliseconds only.
    fn groups(&self) -> impl Iterator<Item = &EvidenceCounts> {
        let together = Some(&self.together).filter(|_| !self.are_all_hopeless);
        self.processes.values().chain(together)
    }

    /// Copies have nothing better than the chains of these.
    fn give_up(&mut self) {
        let hopeless = self.processes.iter().filter(|(_, counts)| counts.has_many(counts.useless));
        self.hopeless.extend(hopeless.map(|(pid, _)| pid));
        self.are_all_hopeless |= self.together.has_many(self.together.useless);
    }

    /// Stacks of these are longer than the largest copies.
    fn give_up_length(&mut self) {
        let too_long = self.processes.iter().filter(|(_, counts)| counts.has_many(counts.ended));
        self.too_long.extend(too_long.map(|(pid, _)| pid));
        self.are_all_too_long |= self.together.has_many(self.together.ended);
        self.are_few_too_long |= self.any_has_some(|group| group.ended);
    }

    /// Whether what large copies heal is nothing beside what they don't.
    fn is_too_short(&self, lasted: u64) -> bool {
        let few_end = || lasted >= PAUSE && self.any_has_some(|group| group.ended);
        match self.any_has_many(|group| group.ended) {
            true => !self.any_has_many(|group| group.healed_by_large),
            false => few_end() && !self.any_has_some(|group| group.healed_by_large),
        }
    }

    /// Whether smaller copies would do for nearly all.
    fn is_too_large(&self, part: fn(&EvidenceCounts) -> u32) -> bool {
        let needed = |counts: &EvidenceCounts| part(counts) * WORTH_THE_SIZE > counts.all;
        self.together.all >= ENOUGH_TO_SHRINK && !self.groups().any(needed)
    }

    /// Whether nearly nothing was of this kind.
    fn is_needless(&self, part: fn(&EvidenceCounts) -> u32) -> bool {
        let needed = |counts: &EvidenceCounts| part(counts) * WORTH_KEEPING > counts.all;
        self.together.all >= ENOUGH_TO_END && !self.groups().any(needed)
    }
}
