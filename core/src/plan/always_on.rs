//! Adds events that are counted all the time, on counters that take nothing else, to a plan whose groups are
//! multiplexed.
//!
//! Many CPUs have counters for cycles and instructions alone, and newer ones of Intel for slots and for what became of
//! them (Top-down level 1). Where nobody asked for these events they cost nothing, and an estimator learns from them
//! what happened while another group was on the counters.
//!
//! ```text
//! group 1   L1_MISSES L2_MISSES L3_MISSES branch-misses        in turns
//! group 2   dTLB-load-misses br_taken ...                      in turns
//! added     (cycles)   (instructions)                          always
//! ```

use super::{AnchorIndex, Cohesion, Fit, GroupIndex, Member, Plan, PlannedAnchor, PlannedGroup};
use crate::events::{Event, Modifiers, PmuType, Resolver};

/// What may have counters of its own, by names: a group each, the leader first. The kernel counts what became of slots
/// only in the group that slots lead.
const CANDIDATES: [&[&str]; 3] = [
    &["slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"],
    &["cycles"],
    &["instructions"],
];

/// The events of this machine that may have counters of their own, in groups.
pub fn always_on_candidates(resolver: &Resolver) -> Vec<Vec<Event>> {
    let mut groups = Vec::new();
    for names in CANDIDATES {
        let events: Vec<_> = names.iter().map(|name| resolver.called(name)).collect();
        // A machine with two kinds of cores has the events of each.
        for leader in events.first().into_iter().flatten() {
            let same = |events: &Vec<Event>| events.iter().find(|event| event.pmu_type() == leader.pmu_type()).cloned();
            groups.extend(events.iter().map(same).collect::<Option<Vec<_>>>());
        }
    }
    groups
}

impl Plan {
    /// Adds those of these groups that are counted all the time without taking a counter from the events that were
    /// asked for. Both are asked, `fit` as in [`Plan::new`], only where groups are multiplexed.
    #[must_use]
    pub fn with_always_on(
        mut self,
        candidates: impl FnOnce() -> Vec<Vec<Event>>,
        fit: &mut dyn FnMut(&[&Event]) -> Fit,
    ) -> Self {
        if !self.rotates() {
            return self;
        }
        for events in candidates() {
            if self.have_counters_of_their_own(&events, fit) {
                self.add_pinned(events);
            }
        }
        self
    }

    /// Whether every group of the PMU still fits with these events beside it, though one of them takes nothing more.
    fn have_counters_of_their_own(&self, events: &[Event], fit: &mut dyn FnMut(&[&Event]) -> Fit) -> bool {
        let Some(pmu) = events.first().map(Event::pmu_type) else { return false };
        let is_asked = |event: &Event| self.events.iter().any(|asked| asked.encoding == event.encoding);
        let waiting: Vec<_> = self.group_indices().filter(|&group| self.waits_on(group, pmu)).collect();
        if waiting.len() < 2 || events.iter().any(is_asked) {
            return false;
        }
        let mut beside = |group: GroupIndex, further: &[&Event]| {
            let members = self.groups[group.0].members.iter().map(|&member| self.event(member));
            let members = members.filter(|event| !event.kind.is_software());
            let all: Vec<_> = further.iter().copied().chain(members).collect();
            fit(&self.with_pinned(&all))
        };
        let events: Vec<_> = events.iter().collect();
        let mut is_one_full = false;
        for (place, &group) in waiting.iter().enumerate() {
            if beside(group, &events) != Fit::Fits {
                return false;
            }
            let other = waiting[(place + 1) % waiting.len()];
            let mut others = self.groups[other.0].members.iter().map(|&member| self.event(member));
            let others = others.find(|event| !event.kind.is_software());
            is_one_full |= others.is_some_and(|other| beside(group, &[other]) == Fit::TooMany);
        }
        is_one_full
    }

    /// Whether a group has to wait for its slice on this PMU.
    fn waits_on(&self, group: GroupIndex, pmu: PmuType) -> bool {
        let mut events = self.groups[group.0].members.iter().map(|&member| self.event(member));
        let on_pmu =
            |event: &Event| !event.kind.is_software() && event.unavailable().is_none() && event.pmu_type() == pmu;
        events.clone().any(on_pmu) && !events.any(|event| event.modifiers.pinned)
    }

    /// Adds a group that the kernel puts on the counters before all others.
    fn add_pinned(&mut self, events: Vec<Event>) {
        let first = self.anchors.len();
        let pinned = events.into_iter().enumerate().map(|(place, event)| {
            let modifiers = Modifiers { pinned: place == 0, ..event.modifiers.clone() };
            PlannedAnchor::Added(Box::new(Event { modifiers, ..event }))
        });
        self.anchors.extend(pinned);
        let members = (first..self.anchors.len()).map(|anchor| Member::Anchor(AnchorIndex(anchor))).collect();
        self.groups.push(PlannedGroup { members, cohesion: Cohesion::Chosen });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::builders::{group, raw_event};
    use crate::events::GroupBinding;

    /// The code of an event that is named so here.
    const NAMES: [&str; 10] = ["cycles", "instructions", "slots", "topdown-retiring", "a", "b", "c", "d", "e", "f"];

    fn named(name: &str) -> Event {
        raw_event(name, NAMES.iter().position(|known| *known == name).unwrap())
    }

    fn candidates() -> Vec<Vec<Event>> {
        vec![vec![named("slots"), named("topdown-retiring")], vec![named("cycles")], vec![named("instructions")]]
    }

    /// A CPU with so many counters for anything, and one each for `own`.
    fn cpu(counters: usize, own: &'static [&'static str]) -> impl FnMut(&[&Event]) -> Fit {
        move |events: &[&Event]| {
            // What became of slots is counted with these alone.
            let has = |name: &str| events.iter().any(|event| event.name == name);
            assert!(!has("topdown-retiring") || has("slots"));
            let general = events.iter().filter(|event| !own.contains(&event.name.as_str())).count();
            if general <= counters { Fit::Fits } else { Fit::TooMany }
        }
    }

    fn plan(names: &[&str], counters: usize, own: &'static [&'static str]) -> Plan {
        let groups = names.iter().map(|name| group(GroupBinding::Free, [named(name)])).collect();
        let fit = &mut cpu(counters, own);
        Plan::new(groups, fit).unwrap().with_always_on(candidates, fit)
    }

    fn added(plan: &Plan) -> Vec<(&str, bool)> {
        plan.added().map(|event| (event.name.as_str(), event.modifiers.pinned)).collect()
    }

    const INTEL: &[&str] = &["cycles", "instructions"];
    const TOP_DOWN: &[&str] = &["cycles", "instructions", "slots", "topdown-retiring"];

    #[test]
    fn what_has_counters_of_its_own_is_counted_all_the_time() {
        let six = ["a", "b", "c", "d", "e", "f"];
        let plan = plan(&six, 4, INTEL);
        assert_eq!(added(&plan), [("cycles", true), ("instructions", true)]);
        // Each is a group of its own behind those that take turns, and its reading stands behind those of all events.
        assert_eq!(plan.groups.len(), 4);
        let rows: Vec<_> = plan.members().map(|member| plan.row(member, 0, 1)).collect();
        assert_eq!(rows, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(plan.asked(Member::Anchor(AnchorIndex(0))), None);
        // They aren't in the rotation.
        let rotations = plan.rotations(&mut cpu(4, INTEL));
        assert_eq!(rotations.iter().map(|rotation| rotation.sets.len()).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn only_the_leader_of_slots_is_pinned() {
        let six = ["a", "b", "c", "d", "e", "f"];
        let plan = plan(&six, 4, TOP_DOWN);
        assert_eq!(
            added(&plan),
            [("slots", true), ("topdown-retiring", false), ("cycles", true), ("instructions", true)]
        );
    }

    #[test]
    fn nothing_is_added_where_it_would_take_a_counter() {
        // AMD's cycles are counted as anything else, Arm's have a counter of their own.
        let six = ["a", "b", "c", "d", "e", "f"];
        assert!(added(&plan(&six, 4, &[])).is_empty());
        assert_eq!(added(&plan(&six, 4, &["cycles"])), [("cycles", true)]);
        // With a counter free in every group: nobody can tell one of its own from that.
        assert!(added(&plan(&["a", "b", "c", "d"], 4, INTEL)).is_empty());
    }

    #[test]
    fn what_was_asked_for_is_not_added() {
        let plan = plan(&["cycles", "a", "b", "c", "d", "e"], 4, INTEL);
        assert_eq!(added(&plan), [("instructions", true)]);
    }

    proptest! {
        #[test]
        fn no_group_loses_its_place(count in 0usize..6, counters in 1usize..6, own in 0usize..5) {
            let own = &TOP_DOWN[..own.min(TOP_DOWN.len())];
            let names = &["a", "b", "c", "d", "e", "f"][..count];
            let groups = |plan: &Plan| plan.groups.len() - plan.groups.iter().filter(|group| group.members.iter().all(|member| plan.asked(*member).is_none())).count();
            let with = plan(names, counters, own);
            let without = Plan::new(names.iter().map(|name| group(GroupBinding::Free, [named(name)])).collect(), &mut cpu(counters, own)).unwrap();
            prop_assert_eq!(groups(&with), without.groups.len());
            for group in &with.groups {
                let events: Vec<_> = group.members.iter().map(|&member| with.event(member)).collect();
                prop_assert_eq!(cpu(counters, own)(&with.with_pinned(&events)), Fit::Fits);
            }
        }
    }
}
