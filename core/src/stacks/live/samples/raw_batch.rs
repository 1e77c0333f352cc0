//! Samples whose frames have no names yet, and what is new in them.

use std::time::Duration;

use super::off_cpu::LeftCpu;
use crate::stacks::end::StackEnd;
use crate::stacks::live::mapped::OpenModule;
use crate::stacks::live::unwinding::{CodeLocation, Completeness, PathId, PathNode};
use crate::stacks::{CopySwitch, Losses, RunShare, Task, TaskId};
use crate::units::WallNs;

/// How long the last batch may wait for room.
pub(in crate::stacks::live) const PATIENCE: Duration = Duration::from_secs(60);

/// A sample whose frames have no names yet.
#[derive(Clone, Copy, Debug)]
pub(in crate::stacks::live) struct RawSample {
    pub(in crate::stacks::live) at: WallNs,
    pub(in crate::stacks::live) task: TaskId,
    pub(in crate::stacks::live) cpu: u32,
    pub(in crate::stacks::live) event: u32,
    pub(in crate::stacks::live) weight: u64,
    pub(in crate::stacks::live) path: Option<PathId>,
    /// Where the stack ends; unknown where the name of the outermost frame has to tell it.
    pub(in crate::stacks::live) end: StackEnd,
    /// What counts among the losses with this sample.
    pub(in crate::stacks::live) faults: StackFaults,
    /// How the thread left its CPU, of time on none.
    pub(in crate::stacks::live) left: Option<LeftCpu>,
}

/// What is missing of a stack. It counts once, though the time of a wait may come in several samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct StackFaults {
    pub(in crate::stacks::live) is_cut: bool,
    pub(in crate::stacks::live) completeness: Completeness,
    /// Whether the name of the outermost frame has to tell where the stack ends.
    pub(in crate::stacks::live) asks_for_end: bool,
}

impl StackFaults {
    /// Nothing that counts.
    pub(in crate::stacks::live) const NONE: Self =
        Self { is_cut: false, completeness: Completeness::Whole, asks_for_end: false };

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
pub(in crate::stacks::live) struct RawBatch {
    pub(in crate::stacks::live) modules: Vec<OpenModule>,
    pub(in crate::stacks::live) locations: Vec<CodeLocation>,
    pub(in crate::stacks::live) paths: Vec<PathNode>,
    pub(in crate::stacks::live) tasks: Vec<Task>,
    /// Names of threads that woke others, from 0 in the order of their first time.
    pub(in crate::stacks::live) wakers: Vec<String>,
    pub(in crate::stacks::live) copies: Vec<CopySwitch>,
    pub(in crate::stacks::live) shares: Vec<RunShare>,
    pub(in crate::stacks::live) samples: Vec<RawSample>,
    pub(in crate::stacks::live) losses: Losses,
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
