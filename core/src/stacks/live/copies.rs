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
//! Copies grow where more than 0.5 % of the stacks end with them, and shrink where smaller ones would do for 99.75 %. Where the
//! kernel finds no room for records, copies shrink by a step at once, down to none, and stay so for a while.
//!
//! Every state names one of the sets of events that are open: one of them samples at a time.

use rustc_hash::{FxHashMap, FxHashSet};

/// From this part of the samples on something is done about what is missing: one in so many.
const WORTH_COPYING: u32 = 20;

/// Copies become larger where more than this part ends with them: one in so many. It is the deepest stacks that end there, not some
/// of all, so that a few of them already tilt a profile.
const WORTH_GROWING: u32 = 200;

/// So many of them are no accident.
const ENOUGH_TO_GROW: u32 = 3;

/// They become smaller where less than this part needs them, of so many samples.
const WORTH_THE_SIZE: u32 = 400;
const ENOUGH_TO_SHRINK: u32 = 400;

/// Copies end where less than this part needs them: one in so many.
const WORTH_KEEPING: u32 = 100;

/// So many samples say something of a process; fewer do not.
const ENOUGH: u32 = 20;

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

/// How long copies stay small that were too large for the buffers, in nanoseconds: at first, and at most. Each time it is twice as
/// long.
const FIRST_RELIEF: u64 = 5_000_000_000;
const LONGEST_RELIEF: u64 = 320_000_000_000;

/// How much of a stack is copied with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CopySize {
    /// Nothing: the kernel follows frame pointers.
    None,
    /// What finds the callers of functions without a frame pointer that others with one called.
    Tiny,
    Small,
    Large,
}

impl CopySize {
    /// All of them; a check begins with the first.
    pub(super) const ALL: [Self; 4] = [Self::Small, Self::None, Self::Tiny, Self::Large];

    /// The size in bytes.
    pub(super) fn bytes(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Tiny => 512,
            Self::Small => 8192,
            Self::Large => 32_768,
        }
    }
}

/// What a sample tells of frame pointers and copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StackEvidence {
    /// Its frame pointers lead to all callers.
    Holds,
    /// They may not, and nothing was copied.
    Doubtful,
    /// They don't, and the copy has the missing callers within so many bytes.
    Healed(u64),
    /// They don't, and the copy is too short.
    CopyEnded,
    /// They don't, and the copy is of no use.
    Useless,
}

/// How many samples told what.
#[derive(Clone, Copy, Debug, Default)]
struct EvidenceCounts {
    all: u32,
    doubtful: u32,
    /// Those that copies of this size heal, and smaller ones don't.
    healed_by_tiny: u32,
    healed_by_small: u32,
    healed_by_large: u32,
    ended: u32,
    useless: u32,
}

impl EvidenceCounts {
    fn add(&mut self, evidence: StackEvidence) {
        self.all += 1;
        match evidence {
            StackEvidence::Holds => {}
            StackEvidence::Useless => self.useless += 1,
            StackEvidence::Doubtful => self.doubtful += 1,
            StackEvidence::Healed(bytes) if bytes <= CopySize::Tiny.bytes().into() => self.healed_by_tiny += 1,
            StackEvidence::Healed(bytes) if bytes <= CopySize::Small.bytes().into() => self.healed_by_small += 1,
            StackEvidence::Healed(_) => self.healed_by_large += 1,
            StackEvidence::CopyEnded => self.ended += 1,
        }
    }

    fn halve(&mut self) {
        let Self { all, doubtful, healed_by_tiny, healed_by_small, healed_by_large, ended, useless } = self;
        let healed = [healed_by_tiny, healed_by_small, healed_by_large];
        [all, doubtful, ended, useless].into_iter().chain(healed).for_each(|count| *count /= 2);
    }

    /// Those that a copy larger than this would heal, or might.
    fn needs_more_than(&self, size: CopySize) -> u32 {
        match size {
            CopySize::None => self.healed_by_tiny + self.needs_more_than(CopySize::Tiny),
            CopySize::Tiny => self.healed_by_small + self.needs_more_than(CopySize::Small),
            CopySize::Small => self.healed_by_large + self.ended,
            CopySize::Large => 0,
        }
    }

    /// Whether more than 5 % of the samples, and of enough of them, are these.
    fn has_many(&self, part: u32) -> bool {
        self.all >= ENOUGH && part * WORTH_COPYING > self.all
    }

    /// Whether more than 0.5 % are.
    fn has_some(&self, part: u32) -> bool {
        self.all >= ENOUGH && part >= ENOUGH_TO_GROW && part * WORTH_GROWING > self.all
    }
}

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

    /// Whether copies of this size, which are made for so long, are too short for too many: more than 5 %, or 0.5 % of a second.
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

    /// Forgets the first half of a check, once: there a program loads its libraries, which says nothing of its own code.
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

/// Which samples count: those of the set of events that was to sample at their time. While one set ends and another one
/// begins both sample, so no time is sampled twice or not at all.
#[derive(Debug)]
pub(super) struct SampledTimes {
    /// What was to sample from a time on, the earliest first.
    since: Vec<(u64, CopySize)>,
}

impl SampledTimes {
    pub(super) fn new(first: CopySize) -> Self {
        Self { since: vec![(0, first)] }
    }

    /// From this time on another set samples.
    pub(super) fn change(&mut self, at: u64, to: CopySize) {
        /// Records wait for milliseconds, and changes come seldom.
        const KEPT: usize = 16;
        self.since.push((at, to));
        if self.since.len() > KEPT {
            self.since.remove(0);
        }
    }

    /// Whether a sample of this set at this time counts.
    pub(super) fn counts(&self, at: u64, size: CopySize) -> bool {
        let earlier = self.since.iter().rev().find(|(since, _)| *since <= at);
        earlier.is_some_and(|(_, sampled)| *sampled == size)
    }

    /// When what samples now began.
    pub(super) fn last_change(&self) -> u64 {
        self.since.last().map_or(0, |(since, _)| *since)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn note(control: &mut CopyControl, pid: i32, evidence: StackEvidence, count: u32) {
        (0..count).for_each(|_| control.note(pid, evidence));
    }

    /// What is copied after a check that saw so many samples that hold, and that a copy healed.
    fn after_check(holds: u32, healed: u32) -> (Option<CopyChange>, CopySize) {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Holds, holds);
        note(&mut control, 1, StackEvidence::Healed(1000), healed);
        control.decide(0);
        (control.decide(SECOND), control.size())
    }

    #[test]
    fn stacks_are_copied_where_more_than_one_in_twenty_needs_it() {
        assert_eq!(after_check(100, 0), (Some(CopyChange::Quietly), CopySize::None));
        // 5 of 100 are 5 %, and 6 of 100 are more.
        assert_eq!(after_check(95, 5), (Some(CopyChange::Quietly), CopySize::None));
        assert_eq!(after_check(94, 6), (Some(CopyChange::Missing), CopySize::Small));
        // A few samples tell nothing, and the check goes on.
        assert_eq!(after_check(0, 19), (None, CopySize::Small));
        assert_eq!(after_check(0, 20), (Some(CopyChange::Missing), CopySize::Small));
        assert_eq!(after_check(0, 0), (None, CopySize::Small));
    }

    #[test]
    fn one_process_among_many_is_enough_and_so_are_many_short_ones() {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Holds, 10_000);
        note(&mut control, 2, StackEvidence::Healed(1000), 20);
        assert_eq!(control.decide(SECOND), Some(CopyChange::Missing));
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Holds, 100);
        (2..12).for_each(|pid| note(&mut control, pid, StackEvidence::Healed(1000), 2));
        assert_eq!(control.decide(SECOND), Some(CopyChange::Missing));
    }

    #[test]
    fn what_a_program_does_at_its_beginning_is_no_reason_to_copy() {
        let mut control = CopyControl::new(0, true);
        // The dynamic linker has no frame pointers.
        note(&mut control, 1, StackEvidence::Healed(300), 30);
        control.age(CHECK / 2 - 1);
        control.age(CHECK / 2);
        assert_eq!(control.decide(CHECK / 2), None);
        note(&mut control, 1, StackEvidence::Holds, 50);
        control.age(CHECK - 1);
        assert_eq!((control.decide(CHECK), control.size()), (Some(CopyChange::Quietly), CopySize::None));
        // What the second half shows counts, and too few samples are not forgotten.
        for (early, late, change) in [(50, 50, CopyChange::Missing), (ENOUGH - 1, 1, CopyChange::Missing)] {
            let mut control = CopyControl::new(0, true);
            note(&mut control, 1, StackEvidence::Healed(300), early);
            control.age(CHECK / 2);
            note(&mut control, 1, StackEvidence::Healed(300), late);
            assert_eq!((control.decide(CHECK), control.size()), (Some(change), CopySize::Tiny));
        }
    }

    #[test]
    fn time_without_samples_says_nothing_of_whether_copies_are_needed() {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Healed(300), 100);
        assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Tiny));
        for second in 2..20 {
            control.age(second * SECOND);
            assert_eq!(control.decide(second * SECOND), None);
        }
        note(&mut control, 1, StackEvidence::Holds, 200);
        assert_eq!(control.decide(20 * SECOND), None);
    }

    #[test]
    fn doubts_lead_to_a_check_and_what_copies_do_not_help_to_no_other() {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Holds, 20);
        assert_eq!(control.decide(SECOND), Some(CopyChange::Quietly));
        note(&mut control, 1, StackEvidence::Holds, 38);
        note(&mut control, 1, StackEvidence::Doubtful, 2);
        assert_eq!(control.decide(3 * SECOND), None);
        note(&mut control, 1, StackEvidence::Doubtful, 1);
        // Checks come one a second at most.
        assert_eq!(control.decide(SECOND + PAUSE - 1), None);
        assert_eq!((control.decide(3 * SECOND), control.size()), (Some(CopyChange::Quietly), CopySize::Small));
        note(&mut control, 1, StackEvidence::Useless, 20);
        assert_eq!((control.decide(4 * SECOND), control.size()), (Some(CopyChange::Quietly), CopySize::None));
        note(&mut control, 1, StackEvidence::Doubtful, 1000);
        assert_eq!(control.decide(6 * SECOND), None);
        // Another process is another matter.
        note(&mut control, 2, StackEvidence::Doubtful, 100);
        assert_eq!(control.decide(7 * SECOND), Some(CopyChange::Quietly));
    }

    #[test]
    fn larger_copies_stay_where_they_help() {
        // Found in the check, or later.
        let in_check = || {
            let mut control = CopyControl::new(0, true);
            note(&mut control, 1, StackEvidence::CopyEnded, 20);
            assert_eq!((control.decide(1), control.size()), (Some(CopyChange::Quietly), CopySize::Large));
            control
        };
        let later = || {
            let mut control = CopyControl::new(0, true);
            note(&mut control, 1, StackEvidence::Healed(1000), 20);
            assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Small));
            note(&mut control, 1, StackEvidence::Healed(1000), 80);
            note(&mut control, 1, StackEvidence::CopyEnded, 20);
            assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Large));
            control
        };
        for (start, change) in [(in_check as fn() -> CopyControl, Some(CopyChange::Missing)), (later, None)] {
            let mut helped = start();
            note(&mut helped, 1, StackEvidence::Healed(20_000), 20);
            assert_eq!((helped.decide(2 * SECOND), helped.size()), (change, CopySize::Large));
            let mut too_long = start();
            note(&mut too_long, 1, StackEvidence::Healed(1000), 60);
            note(&mut too_long, 1, StackEvidence::CopyEnded, 40);
            let change = change.or(Some(CopyChange::Resized));
            assert_eq!((too_long.decide(2 * SECOND), too_long.size()), (change, CopySize::Small));
            note(&mut too_long, 1, StackEvidence::CopyEnded, 400);
            assert_eq!((too_long.decide(3 * SECOND), too_long.size()), (None, CopySize::Small));
        }
        // They aren't given up for a moment without need.
        let mut helped = later();
        note(&mut helped, 1, StackEvidence::Healed(1000), 400);
        assert_eq!((helped.decide(2 * SECOND), helped.size()), (None, CopySize::Large));
        assert_eq!((helped.decide(5 * SECOND), helped.size()), (Some(CopyChange::Resized), CopySize::Small));
        let mut none = CopyControl::new(0, false);
        note(&mut none, 1, StackEvidence::CopyEnded, 100);
        assert_eq!((none.decide(SECOND), none.size()), (Some(CopyChange::Missing), CopySize::Small));
    }

    #[test]
    fn copies_are_as_small_as_nearly_all_samples_allow() {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Healed(300), 400);
        note(&mut control, 1, StackEvidence::Healed(1000), 2);
        assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Tiny));
        note(&mut control, 1, StackEvidence::Healed(300), 90);
        note(&mut control, 1, StackEvidence::CopyEnded, 10);
        assert_eq!((control.decide(2 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Small));
        note(&mut control, 1, StackEvidence::Healed(300), 1000);
        assert_eq!(control.decide(3 * SECOND), None);
        assert_eq!((control.decide(5 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Tiny));
    }

    #[test]
    fn copies_grow_where_the_few_deepest_stacks_end_with_them() {
        let small_copies = || {
            let mut control = CopyControl::new(0, true);
            note(&mut control, 1, StackEvidence::Healed(300), 400);
            assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Tiny));
            control
        };
        // 5 of 1,000 are 0.5 %, 33 are more; what a second hasn't shown is no rule.
        let mut control = small_copies();
        note(&mut control, 1, StackEvidence::Healed(300), 995);
        note(&mut control, 1, StackEvidence::CopyEnded, 5);
        assert_eq!(control.decide(2 * SECOND), None);
        note(&mut control, 1, StackEvidence::CopyEnded, 28);
        assert_eq!(control.decide(2 * SECOND - 1), None);
        assert_eq!((control.decide(2 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Small));
        // There they stay as long as these are met.
        note(&mut control, 1, StackEvidence::Healed(300), 967);
        note(&mut control, 1, StackEvidence::Healed(3000), 33);
        assert_eq!((control.decide(6 * SECOND), control.size()), (None, CopySize::Small));
        // The largest ones are tried for few once, and for many again.
        note(&mut control, 1, StackEvidence::CopyEnded, 20);
        assert_eq!((control.decide(7 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Large));
        note(&mut control, 1, StackEvidence::Healed(300), 980);
        note(&mut control, 1, StackEvidence::CopyEnded, 20);
        assert_eq!((control.decide(8 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Small));
        note(&mut control, 1, StackEvidence::Healed(3000), 980);
        note(&mut control, 1, StackEvidence::CopyEnded, 20);
        assert_eq!(control.decide(10 * SECOND), None);
        note(&mut control, 1, StackEvidence::CopyEnded, 40);
        assert_eq!((control.decide(10 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Large));
        // One or two may be an accident.
        let mut control = small_copies();
        note(&mut control, 1, StackEvidence::Healed(300), 100);
        note(&mut control, 1, StackEvidence::CopyEnded, 2);
        assert_eq!(control.decide(2 * SECOND), None);
    }

    #[test]
    fn copies_end_after_long_without_need() {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Healed(1000), 20);
        assert_eq!(control.decide(SECOND), Some(CopyChange::Missing));
        note(&mut control, 1, StackEvidence::Healed(1000), 3);
        note(&mut control, 1, StackEvidence::Holds, 797);
        assert_eq!(control.decide(5 * SECOND), None);
        control.age(5 * SECOND);
        control.age(6 * SECOND);
        note(&mut control, 1, StackEvidence::Holds, 250);
        assert_eq!((control.decide(7 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Tiny));
        note(&mut control, 1, StackEvidence::Holds, 100);
        assert_eq!((control.decide(11 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::None));
    }

    #[test]
    fn copies_that_find_no_room_shrink_at_once_and_stay_so_for_a_while() {
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::CopyEnded, 20);
        assert_eq!((control.decide(1), control.size()), (Some(CopyChange::Quietly), CopySize::Large));
        // What was lost before the change says nothing of it.
        assert_eq!(control.relieve(1 + SETTLING - 1), None);
        let mut sizes = Vec::new();
        for turn in 1..=4 {
            control.relieve(1 + turn * SETTLING);
            sizes.push(control.size());
        }
        assert_eq!(sizes, [CopySize::Small, CopySize::None, CopySize::None, CopySize::None]);
        // The second relief lasts 10 s; then doubts lead to a check again.
        note(&mut control, 1, StackEvidence::Doubtful, 100);
        assert_eq!((control.decide(9 * SECOND), control.size()), (None, CopySize::None));
        assert_eq!((control.decide(11 * SECOND), control.size()), (Some(CopyChange::Quietly), CopySize::Small));
        // What is known to need copies is copied in smaller ones, which don't grow for 5 s even where they end.
        let mut control = CopyControl::new(0, true);
        note(&mut control, 1, StackEvidence::Healed(1000), 20);
        assert_eq!((control.decide(SECOND), control.size()), (Some(CopyChange::Missing), CopySize::Small));
        assert_eq!((control.relieve(2 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Tiny));
        note(&mut control, 1, StackEvidence::CopyEnded, 100);
        assert_eq!((control.decide(6 * SECOND), control.size()), (None, CopySize::Tiny));
        assert_eq!((control.decide(7 * SECOND), control.size()), (Some(CopyChange::Resized), CopySize::Small));
    }

    #[test]
    fn each_time_belongs_to_one_set_of_events() {
        let mut times = SampledTimes::new(CopySize::Small);
        times.change(100, CopySize::None);
        times.change(200, CopySize::Large);
        let counted = |at| CopySize::ALL.into_iter().filter(|&size| times.counts(at, size)).collect::<Vec<_>>();
        assert_eq!(
            [0, 99, 100, 199, 200].map(counted),
            [
                vec![CopySize::Small],
                vec![CopySize::Small],
                vec![CopySize::None],
                vec![CopySize::None],
                vec![CopySize::Large],
            ]
        );
        assert_eq!(times.last_change(), 200);
    }

    proptest! {
        #[test]
        fn no_sample_counts_twice_and_none_is_lost(mut changes in prop::collection::vec((1u64..100, 0usize..4), 0..10), at in 0u64..120) {
            changes.sort_unstable();
            let mut times = SampledTimes::new(CopySize::Small);
            changes.iter().for_each(|&(at, size)| times.change(at, CopySize::ALL[size]));
            prop_assert_eq!(CopySize::ALL.into_iter().filter(|&size| times.counts(at, size)).count(), 1);
        }
    }
}
