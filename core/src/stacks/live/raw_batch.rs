//! Samples whose frames have no names yet, and what is new in them.

use super::super::end::StackEnd;
use super::super::{CopySwitch, Losses, RunShare, Task, TaskId};
use super::modules::OpenModule;
use super::off_cpu::LeftCpu;
use super::paths::{CodeLocation, PathId, PathNode};
use super::unwind::Completeness;
use crate::units::WallNs;

/// A sample whose frames have no names yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSample {
    pub(super) at: WallNs,
    pub(super) task: TaskId,
    pub(super) cpu: u32,
    pub(super) event: u32,
    pub(super) weight: u64,
    pub(super) path: Option<PathId>,
    /// Where the stack ends; unknown where the name of the outermost frame has to tell it.
    pub(super) end: StackEnd,
    /// What counts among the losses with this sample.
    pub(super) faults: StackFaults,
    /// How the thread left its CPU, of time on none.
    pub(super) left: Option<LeftCpu>,
}

/// What is missing of a stack. It counts once, though the time of a wait may come in several samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackFaults {
    pub(super) is_cut: bool,
    pub(super) completeness: Completeness,
    /// Whether the name of the outermost frame has to tell where the stack ends.
    pub(super) asks_for_end: bool,
}

impl StackFaults {
    /// Nothing that counts.
    pub(super) const NONE: Self = Self { is_cut: false, completeness: Completeness::Whole, asks_for_end: false };

    /// Counts it.
    pub(super) fn count(self, losses: &mut Losses) {
        let Self { is_cut, completeness, asks_for_end } = self;
        losses.cut += u64::from(is_cut);
        losses.too_deep += u64::from(completeness == Completeness::TooDeep);
        losses.copy_ended += u64::from(completeness == Completeness::CopyEnded);
        losses.stack_gone += u64::from(completeness == Completeness::StackGone && !asks_for_end);
    }
}

/// Samples, and what is new in them.
#[derive(Debug, Default)]
pub(super) struct RawBatch {
    pub(super) modules: Vec<OpenModule>,
    pub(super) locations: Vec<CodeLocation>,
    pub(super) paths: Vec<PathNode>,
    pub(super) tasks: Vec<Task>,
    /// Names of threads that woke others, from 0 in the order of their first time.
    pub(super) wakers: Vec<String>,
    pub(super) copies: Vec<CopySwitch>,
    pub(super) shares: Vec<RunShare>,
    pub(super) samples: Vec<RawSample>,
    pub(super) losses: Losses,
}

impl RawBatch {
    /// Whether it tells more than what was sent, up to these losses. What it only defines can wait for samples.
    pub(super) fn has_news(&self, sent: &Losses) -> bool {
        let Self { paths, copies, shares, samples, losses, .. } = self;
        !(samples.is_empty() && paths.is_empty() && copies.is_empty() && shares.is_empty()) || losses != sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_shares_are_told_without_samples() {
        let sent = Losses { lost: 5, ..Losses::default() };
        let batch = |losses, shares| RawBatch { losses, shares, ..RawBatch::default() };
        assert!(!batch(sent, Vec::new()).has_news(&sent));
        assert!(batch(Losses { lost: 6, ..sent }, Vec::new()).has_news(&sent));
        let share = RunShare { until: WallNs(9), event: 0, enabled_ns: 8, running_ns: 5 };
        assert!(batch(sent, vec![share]).has_news(&sent));
    }
}
