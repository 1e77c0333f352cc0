//! Divides the groups of a plan into the sets that share a slice on the counters.
//!
//! ```text
//! groups 7 and 3 and {2} events for 7 counters      slice 0   a
//!                                                   slice 1   b {c}
//! ```
//!
//! Every group has one slice in each cycle, and as many go together as fit. The kernel moves its list
//! by one group a tick instead, so that its cycle is as long as there are groups.

use std::time::Duration;

use super::{Fit, GroupIndex, Plan};
use crate::events::{Event, PmuType};
use crate::random;

/// The groups of one PMU that can't all be counted at once, and the order of their slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// The groups of each place in the cycle, which are on the counters at the same time; at least two places.
    pub sets: Vec<Vec<GroupIndex>>,
}

/// The kernel's slice: how long groups stay on the counters until it rotates them, one tick of a kernel of 250 Hz. A
/// machine says its own in `perf_event_mux_interval_ms` of each PMU.
pub const KERNEL_SLICE: Duration = Duration::from_millis(4);

/// The set whose slice it is, where each of so many has one in each cycle.
///
/// A fixed order shows each event the same moments of whatever repeats as often as the cycle, or in any simple ratio to
/// it: with six slices of 2 ms every third tick of a kernel's 4 ms. So each cycle but the first has an order of its
/// own, drawn so that it is the same in every run.
pub fn set_at(slice: usize, sets: usize) -> usize {
    let sets = sets.max(1);
    order(slice / sets, sets)[slice % sets]
}

/// The order of so many sets in a cycle.
pub(super) fn order(cycle: usize, sets: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sets).collect();
    if cycle > 0 {
        order.sort_by_key(|&set| drawn(cycle, set));
    }
    order
}

/// A number, the same in every run.
pub(super) fn drawn(cycle: usize, set: usize) -> u64 {
    random::nth(((cycle as u64) << 20 | set as u64).wrapping_add(1))
}

impl Plan {
    /// The rotations of the PMUs whose groups are multiplexed; none for a PMU that counts all of
    /// its groups at once. `fit` is asked as in [`Plan::new`].
    ///
    /// Pinned groups are always on and so in no place; one with an exclusive event has its
    /// slice alone. What one kind of core counts isn't scaled by its time, so it has no slices.
    pub fn rotations(&self, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Vec<Rotation> {
        let mut pmus: Vec<_> = self.group_indices().filter_map(|group| self.pmu(group)).collect();
        pmus.sort_unstable();
        pmus.dedup();
        let rotations = pmus.into_iter().map(|pmu| self.rotation(pmu, fit));
        rotations.filter(|rotation| rotation.sets.len() > 1).collect()
    }

    fn rotation(&self, pmu: PmuType, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Rotation {
        let on_pmu = self.group_indices().filter(|&group| self.pmu(group) == Some(pmu));
        let (pinned, waiting): (Vec<_>, Vec<_>) = on_pmu.partition(|&group| self.has(group, |m| m.pinned));
        let mut sets: Vec<Vec<GroupIndex>> = Vec::new();
        // Nothing joins the set of an exclusive group.
        let mut is_open = false;
        for group in waiting {
            let is_exclusive = self.has(group, |modifiers| modifiers.exclusive);
            let joins = is_open
                && !is_exclusive
                && sets.last().is_some_and(|set| {
                    let all: Vec<_> = pinned.iter().chain(set).chain([&group]).copied().collect();
                    fit(&self.hardware(&all)) == Fit::Fits
                });
            match sets.last_mut().filter(|_| joins) {
                Some(set) => set.push(group),
                None => sets.push(vec![group]),
            }
            is_open = !is_exclusive;
        }
        Rotation { sets }
    }

    /// The PMU of a group that may have slices; `None` for software events, for what is absent here, and for one kind
    /// of core.
    fn pmu(&self, group: GroupIndex) -> Option<PmuType> {
        let may = |event: &&&Event| event.unavailable().is_none() && event.core().is_none();
        self.hardware(&[group]).first().filter(may).map(|event| event.pmu_type())
    }

    fn has(&self, group: GroupIndex, what: impl Fn(&crate::events::Modifiers) -> bool) -> bool {
        self.groups[group.0].members.iter().any(|&member| what(&self.event(member).modifiers))
    }

    fn hardware(&self, groups: &[GroupIndex]) -> Vec<&Event> {
        let members = groups.iter().flat_map(|group| &self.groups[group.0].members);
        let events = members.map(|&member| self.event(member));
        events.filter(|event| !event.kind.is_software()).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::builders::{group, raw_event, software_event};
    use crate::events::{Encoding, GroupBinding, Modifiers};

    /// Groups in braces, written as the names of their events: `p` is pinned, `x` exclusive, `s` software,
    /// `o` of another PMU, `k` of one kind of core.
    fn plan(groups: &[&str]) -> Plan {
        let event = |letter: char| {
            let modifiers = Modifiers { pinned: letter == 'p', exclusive: letter == 'x', ..Modifiers::default() };
            let event = if letter == 's' { software_event("s") } else { raw_event(&letter.to_string(), 0) };
            let core = (letter == 'k').then(|| "cpu_atom".to_owned());
            let encoding = Encoding { pmu_type: if letter == 'o' { 9 } else { 4 }, core, ..event.encoding };
            Event { encoding, modifiers, ..event }
        };
        let group = |names: &&str| group(GroupBinding::Braces, names.chars().map(event));
        Plan::new(groups.iter().map(group).collect(), &mut |_| Fit::Fits).unwrap()
    }

    fn sets(groups: &[&str], counters: usize) -> Vec<Vec<Vec<usize>>> {
        let mut fit = |events: &[&Event]| if events.len() <= counters { Fit::Fits } else { Fit::TooMany };
        let places = |set: &Vec<GroupIndex>| set.iter().map(|group| group.0).collect();
        let sets = |rotation: Rotation| rotation.sets.iter().map(places).collect();
        plan(groups).rotations(&mut fit).into_iter().map(sets).collect()
    }

    #[test]
    fn as_many_groups_go_together_as_fit() {
        assert_eq!(sets(&["aaaaaaa", "bbb", "cc"], 7), [vec![vec![0], vec![1, 2]]]);
        assert_eq!(sets(&["a", "b", "c", "d", "e"], 2), [vec![vec![0, 1], vec![2, 3], vec![4]]]);
    }

    #[test]
    fn what_fits_at_once_takes_no_turns() {
        assert_eq!(sets(&["aa", "bb", "s"], 4), Vec::<Vec<Vec<usize>>>::new());
        assert_eq!(sets(&[], 4), Vec::<Vec<Vec<usize>>>::new());
    }

    #[test]
    fn pinned_groups_hold_their_counters_and_exclusive_ones_are_alone() {
        assert_eq!(sets(&["p", "a", "b", "c"], 2), [vec![vec![1], vec![2], vec![3]]]);
        assert_eq!(sets(&["x", "a", "b"], 4), [vec![vec![0], vec![1, 2]]]);
    }

    #[test]
    fn the_order_of_a_cycle_says_nothing_of_the_next() {
        // Of six sets: how often each has each slice of a cycle, in 600 cycles. A fair die has 100 +- 9 of each.
        let mut times = [[0i32; 6]; 6];
        (0..3600).for_each(|slice| times[set_at(slice, 6)][slice % 6] += 1);
        assert!(times.iter().flatten().all(|&times| (times - 100).abs() < 40), "{times:?}");
        // Whatever repeats in the time of a cycle or of half of it, is seen as often as it happens.
        for period in [3, 6, 12] {
            let seen =
                (0..3600).filter(|&slice| set_at(slice, 6) == 0 && slice % period < period / 2 + period % 2).count();
            let happens = 600 * (period / 2 + period % 2) / period;
            assert!(seen.abs_diff(happens) < 50, "{period}: {seen} {happens}");
        }
    }

    #[test]
    fn each_pmu_has_turns_of_its_own() {
        assert_eq!(sets(&["aa", "oo", "bb", "oo"], 2), [vec![vec![0], vec![2]], vec![vec![1], vec![3]]]);
    }

    #[test]
    fn one_kind_of_core_has_no_slices() {
        assert_eq!(sets(&["kk", "aa", "kk", "bb"], 2), [vec![vec![1], vec![3]]]);
    }

    proptest! {
        #[test]
        fn each_set_has_one_slice_in_each_cycle(sets in 1usize..20, cycle in 0usize..1_000_000) {
            let mut all: Vec<_> = (0..sets).map(|slice| set_at(cycle * sets + slice, sets)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, (0..sets).collect::<Vec<_>>());
        }

        #[test]
        fn every_group_has_one_turn_and_no_turn_is_overfull(sizes in prop::collection::vec(1usize..5, 0..12), counters in 4usize..9) {
            let names: Vec<_> = sizes.iter().map(|&size| "a".repeat(size)).collect();
            let sets = sets(&names.iter().map(String::as_str).collect::<Vec<_>>(), counters).concat();
            prop_assert!(sets.iter().all(|set| set.iter().map(|&group| sizes[group]).sum::<usize>() <= counters));
            let all = sets.concat();
            prop_assert!(all.is_empty() || all == (0..sizes.len()).collect::<Vec<_>>());
        }
    }
}
