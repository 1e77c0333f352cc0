//! Decides who rotates the groups on the counters, the kernel or perfprop.
//!
//! The shorter the cycle in which every group has its slice, the smaller the error of scaling. The kernel's
//! slices are as long as one of its ticks, 4 ms at 250 Hz; perfprop's are
//! [2 ms](crate::sources::perf::SLICE), and cost system calls.

use std::time::Duration;

use super::{Launch, StartError};
use crate::plan::{Plan, Rotation};
use crate::run;
use crate::sources::perf::mux::{self, Interval};
use crate::sources::perf::{self, BUDGET, CountedTarget, SLICE};
use crate::units::WallNs;

/// The part of a CPU that switching may take where the user chose perfprop's rotation.
const BUDGET_IF_ASKED: f64 = 0.1;

/// Who rotates the groups on the counters, where they can't all be counted at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Schedule {
    /// perfprop, if that costs no more than 1 % of a CPU, else the kernel.
    #[default]
    Auto,
    /// The kernel, by its timer.
    Kernel,
    /// The kernel, by its timer at another interval, on the PMUs of the plan. It is set back afterwards.
    KernelEvery {
        /// Length of a slice.
        milliseconds: u32,
    },
    /// perfprop rotates the groups.
    User,
}

/// The rotations that perfprop makes; none where the kernel rotates.
pub(super) struct OwnRotations {
    pub(super) rotations: Vec<Rotation>,
    /// The part of a CPU that switching may take.
    pub(super) budget: f64,
}

impl OwnRotations {
    /// The schedule as a recording has it; `None` where nothing is counted on hardware.
    pub(super) fn rotated_by(&self, plan: &Plan, launch: &Launch) -> Option<run::RotatedBy> {
        let mut hardware = plan.events.iter().filter(|event| !event.kind.is_software());
        let every_ns = match launch.schedule {
            _ if !self.rotations.is_empty() => return Some(run::RotatedBy::User { every_ns: WallNs::from(SLICE) }),
            Schedule::KernelEvery { milliseconds } => Some(Duration::from_millis(milliseconds.into())),
            _ => hardware.clone().find_map(|event| mux::interval_of(event.pmu_type())),
        };
        hardware.next().map(|_| run::RotatedBy::Kernel { every_ns: every_ns.map(WallNs::from) })
    }
}

/// Sets the kernel's interval, if that was requested, for as long as the returned value lives.
pub(super) fn set_intervals(launch: &Launch) -> Result<Vec<Interval>, StartError> {
    let Schedule::KernelEvery { milliseconds } = launch.schedule else { return Ok(Vec::new()) };
    launch.rotating_pmus.iter().map(|pmu| mux::set(pmu, milliseconds).map_err(StartError::Mux)).collect()
}

/// Decides who rotates the groups of a plan.
pub(super) fn own_rotations(plan: &Plan, launch: &Launch, target: &CountedTarget) -> OwnRotations {
    let kernel = OwnRotations { rotations: Vec::new(), budget: BUDGET };
    // Emulated counters have a rotation of their own.
    if launch.counters.is_some() {
        return kernel;
    }
    match launch.schedule {
        Schedule::Kernel | Schedule::KernelEvery { .. } => kernel,
        Schedule::User => OwnRotations { rotations: plan.rotations(&mut perf::fit), budget: BUDGET_IF_ASKED },
        Schedule::Auto => {
            let rotations = plan.rotations(&mut perf::fit);
            let pays = choose(rotations.len(), || perf::switch_cost(plan, &rotations), || target.count_of_places());
            if pays { OwnRotations { rotations, budget: BUDGET } } else { kernel }
        }
    }
}

/// Whether perfprop's rotation is worth its cost: that of a switch, in every place where the target is
/// counted. With several rotations that would be one for each PMU.
///
/// The cost is asked for only where something is multiplexed: to measure it the counters are opened.
pub fn choose(rotations: usize, switch: impl FnOnce() -> Option<Duration>, places: impl FnOnce() -> usize) -> bool {
    let pays = |switch: Duration| switch.as_secs_f64() * places() as f64 <= SLICE.as_secs_f64() * BUDGET;
    rotations == 1 && switch().is_some_and(pays)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether perfprop rotates where a switch costs so many microseconds in so many places.
    fn chosen(rotations: usize, micros: Option<u64>, places: usize) -> bool {
        choose(rotations, || micros.map(Duration::from_micros), || places)
    }

    #[test]
    fn perfprop_gives_turns_where_that_costs_a_percent_at_most() {
        assert!(chosen(1, Some(20), 1) && chosen(1, Some(1), 20));
        assert!(!chosen(1, Some(21), 1) && !chosen(1, Some(2), 20));
    }

    #[test]
    fn where_one_turn_is_enough_or_nothing_is_known_the_kernel_does() {
        assert!(!chosen(0, Some(0), 1) && !chosen(1, None, 1) && !chosen(2, Some(0), 1));
    }

    #[test]
    fn what_takes_no_turns_is_not_opened_to_ask_for_their_cost() {
        for rotations in [0, 2] {
            let opened = || panic!("{rotations} rotations need no cost");
            assert!(!choose(rotations, opened, || 1));
        }
    }
}
