//! Adds anchors to the groups of a plan that have counters free.
//!
//! Groups of one PMU are multiplexed, so no two of them count at the same time. An anchor is an event that
//! all of them count: it ties what one group saw to what the others did, and is itself seen nearly
//! all the time.
//!
//! ```text
//! group 1   L1_MISSES L2_MISSES instructions cycles
//! group 2   L3_MISSES branch-misses (instructions) (cycles)      where counters are free
//! ```
//!
//! Each repeated instance has readings of its own: what the user asked for is counted in its group. Only an estimator
//! gets what all groups counted, as one event.

use super::{AnchorIndex, Cohesion, EventIndex, Fit, GroupIndex, Member, Plan, PlannedAnchor};
use crate::events::{Event, PmuType};

/// Events that make the best anchors: nearly every other count goes along with them, and many CPUs
/// have counters that take nothing else.
const BEST: [&str; 2] = ["instructions", "cycles"];

impl Plan {
    /// Spreads the events that relations tie together over different groups, and links
    /// all groups by anchors: see `spread` and `anchored`. `related` names the
    /// events of each relation; it is called only where groups are multiplexed.
    pub fn linked(
        self,
        related: impl Fn(&[Event]) -> Vec<Vec<EventIndex>>,
        fit: &mut dyn FnMut(&[&Event]) -> Fit,
    ) -> Self {
        if !self.group_indices().any(|group| self.shared_pmu(group).is_some()) {
            return self;
        }
        let related = related(&self.events);
        self.spread(&related, fit).anchored(&related.concat(), fit)
    }

    /// Adds anchors to the groups that perfprop made: cycles and instructions if they were asked for,
    /// else the first `related` event of the PMU. `fit` is asked as in [`Plan::new`].
    fn anchored(mut self, related: &[EventIndex], fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Self {
        for group in self.group_indices() {
            let Some(pmu) = self.shared_pmu(group) else { continue };
            let mut anchors = self.best_anchors(pmu);
            if anchors.is_empty() {
                anchors
                    .extend(related.iter().copied().filter(|&event| self.takes_turns(Member::Event(event), pmu)).min());
            }
            for anchor in anchors {
                self.add_anchor(group, anchor, fit);
            }
        }
        self
    }

    /// The PMU of a group that perfprop made, if other groups are multiplexed with it there.
    fn shared_pmu(&self, group: GroupIndex) -> Option<PmuType> {
        let group = &self.groups[group.0];
        let leader = *group.members.first()?;
        let pmu = self.event(leader).pmu_type();
        let chosen = group.cohesion == Cohesion::Chosen && self.takes_turns(leader, pmu);
        let on_pmu = |group: &&super::PlannedGroup| {
            group
                .members
                .iter()
                .any(|&member| !self.event(member).kind.is_software() && self.event(member).pmu_type() == pmu)
        };
        (chosen && self.groups.iter().filter(on_pmu).count() > 1).then_some(pmu)
    }

    /// Whether an event is multiplexed on this PMU, so that others can be counted with it.
    fn takes_turns(&self, member: Member, pmu: PmuType) -> bool {
        let event = self.event(member);
        let alone = event.kind.is_software() || event.modifiers.pinned || event.modifiers.exclusive;
        !alone && event.unavailable().is_none() && event.pmu_type() == pmu
    }

    fn best_anchors(&self, pmu: PmuType) -> Vec<EventIndex> {
        let first = |name: &&str| {
            let mut events = (0..self.events.len()).map(EventIndex);
            events.find(|&event| {
                self.takes_turns(Member::Event(event), pmu) && self.events[event.0].is_called_on_any_pmu(name)
            })
        };
        BEST.iter().filter_map(first).collect()
    }

    fn add_anchor(&mut self, group: GroupIndex, anchor: EventIndex, fit: &mut dyn FnMut(&[&Event]) -> Fit) {
        let members = &self.groups[group.0].members;
        let mut together: Vec<_> = members.iter().map(|&member| self.event(member)).collect();
        let event = &self.events[anchor.0];
        if together.iter().any(|member| member.identity() == event.identity()) {
            return;
        }
        together.push(event);
        if fit(&self.with_pinned(&together)) == Fit::Fits {
            let member = Member::Anchor(AnchorIndex(self.anchors.len()));
            self.anchors.push(PlannedAnchor::Again(anchor));
            self.groups[group.0].members.push(member);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::builders::{group, raw_event, software_event};
    use crate::events::GroupBinding;

    /// A plan of free events for so many counters, `cycles` having one of its own beside them.
    fn plan(names: &[&str], counters: usize, related: &[usize]) -> Plan {
        let free = |(number, name): (usize, &&str)| match *name {
            "task-clock" => group(GroupBinding::Free, [software_event(name)]),
            name => group(GroupBinding::Free, [raw_event(name, number)]),
        };
        let mut fit = |events: &[&Event]| {
            let general = events.iter().filter(|event| event.name != "cycles").count();
            if general <= counters { Fit::Fits } else { Fit::TooMany }
        };
        let groups = names.iter().enumerate().map(free).collect();
        let related: Vec<_> = related.iter().copied().map(EventIndex).collect();
        Plan::new(groups, &mut fit).unwrap().anchored(&related, &mut fit)
    }

    fn groups(plan: &Plan) -> Vec<Vec<&str>> {
        let names = |members: &[Member]| members.iter().map(|&member| plan.event(member).name.as_str()).collect();
        plan.groups.iter().map(|group| names(&group.members)).collect()
    }

    #[test]
    fn cycles_and_instructions_are_repeated_where_there_is_room() {
        let plan = plan(&["instructions", "cycles", "a", "b", "c", "d", "e"], 3, &[]);
        // Six of the events need one of three counters; cycles has its own.
        assert_eq!(groups(&plan), [vec!["instructions", "cycles", "a", "b"], vec!["c", "d", "e", "cycles"]]);
        assert_eq!((plan.anchors.as_slice(), plan.width()), (&[PlannedAnchor::Again(EventIndex(1))][..], 8));
    }

    #[test]
    fn a_free_counter_takes_instructions_too() {
        let plan = plan(&["instructions", "a", "b", "c"], 3, &[]);
        assert_eq!(groups(&plan), [vec!["instructions", "a", "b"], vec!["c", "instructions"]]);
    }

    #[test]
    fn without_them_the_first_related_event_is_the_anchor() {
        assert_eq!(groups(&plan(&["a", "b", "c", "d"], 3, &[2, 1])), [vec!["a", "b", "c"], vec!["d", "b"]]);
        assert!(plan(&["a", "b", "c", "d"], 3, &[]).anchors.is_empty());
    }

    #[test]
    fn one_group_needs_no_anchor_and_software_none_either() {
        assert!(plan(&["instructions", "a", "task-clock"], 3, &[1]).anchors.is_empty());
    }

    #[test]
    fn rows_of_anchors_lie_behind_those_of_all_events() {
        let plan = plan(&["a", "b", "c"], 2, &[0]);
        assert_eq!((plan.events.len(), plan.anchors.len()), (3, 1));
        let rows = |scope| plan.members().map(|member| plan.row(member, scope, 2)).collect::<Vec<_>>();
        assert_eq!((rows(0), rows(1)), (vec![0, 1, 2, 6], vec![3, 4, 5, 7]));
    }

    proptest! {
        #[test]
        fn a_group_with_anchors_still_fits_and_repeats_nothing(count in 0usize..30, counters in 1usize..6, related in 0usize..30) {
            let names = ["cycles", "a", "instructions", "b", "c", "task-clock"];
            let names: Vec<_> = (0..count).map(|number| names[number % names.len()]).collect();
            let plan = plan(&names, counters, &[related.min(count.saturating_sub(1))][..count.min(1)]);
            for group in &plan.groups {
                let general = group.members.iter().filter(|&&member| !["cycles", "task-clock"].contains(&plan.event(member).name.as_str()));
                prop_assert!(general.count() <= counters);
            }
            let mut members: Vec<_> = plan.groups.iter().flat_map(|group| group.members.clone()).collect();
            members.sort_unstable();
            prop_assert_eq!(members, plan.members().collect::<Vec<_>>());
        }
    }
}
