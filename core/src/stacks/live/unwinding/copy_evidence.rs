//! Counts what samples tell of frame pointers and of copies of stacks.

use crate::stacks::live::rings::CopySize;

/// From this part of the samples on something is done about what is missing: one in so many.
const WORTH_COPYING: u32 = 20;

/// Copies become larger where more than this part ends with them: one in so many. It is the deepest stacks that end
/// there, not some of all, so that a few of them already tilt a profile.
const WORTH_GROWING: u32 = 200;

/// So many of them are no accident.
const ENOUGH_TO_GROW: u32 = 3;

/// So many samples say something of a process; fewer do not.
pub(super) const ENOUGH: u32 = 20;

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
pub(super) struct EvidenceCounts {
    pub(super) all: u32,
    pub(super) doubtful: u32,
    /// Those that copies of this size heal, and smaller ones don't.
    pub(super) healed_by_tiny: u32,
    pub(super) healed_by_small: u32,
    pub(super) healed_by_large: u32,
    pub(super) ended: u32,
    pub(super) useless: u32,
}

impl EvidenceCounts {
    pub(super) fn add(&mut self, evidence: StackEvidence) {
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

    pub(super) fn halve(&mut self) {
        let Self { all, doubtful, healed_by_tiny, healed_by_small, healed_by_large, ended, useless } = self;
        let healed = [healed_by_tiny, healed_by_small, healed_by_large];
        [all, doubtful, ended, useless].into_iter().chain(healed).for_each(|count| *count /= 2);
    }

    /// Those that a copy larger than this would heal, or might.
    pub(super) fn needs_more_than(&self, size: CopySize) -> u32 {
        match size {
            CopySize::None => self.healed_by_tiny + self.needs_more_than(CopySize::Tiny),
            CopySize::Tiny => self.healed_by_small + self.needs_more_than(CopySize::Small),
            CopySize::Small => self.healed_by_large + self.ended,
            CopySize::Large => 0,
        }
    }

    /// Whether more than 5 % of the samples, and of enough of them, are these.
    pub(super) fn has_many(&self, part: u32) -> bool {
        self.all >= ENOUGH && part * WORTH_COPYING > self.all
    }

    /// Whether more than 0.5 % are.
    pub(super) fn has_some(&self, part: u32) -> bool {
        self.all >= ENOUGH && part >= ENOUGH_TO_GROW && part * WORTH_GROWING > self.all
    }
}
