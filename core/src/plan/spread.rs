//! Chooses which related events share a group of a plan.
//!
//! Groups are multiplexed. Of a relation of n events any n - 1 that are counted at the same time give the last one for
//! nothing: of `a = b + c` a group with two of them counts three events. All of them in one group say nothing new, and
//! are off the counters together; so the events of a pair (`a ~ b`) go into different groups.
//!
//! ```text
//! as written    a b c | d e f        a = b + c, d ~ e
//! spread        a b e | d c f        an anchor in both groups ties them besides
//! ```
//!
//! Members change places between groups, or move to where a counter is free, as long as more events follow from others
//! then. Groups stay as many and as full as they were, and what the user put into braces stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cohesion, EventIndex, Fit, GroupIndex, Member, Plan};
use crate::events::Event;

/// A change of places: a member of one group, and a member of another or a free counter there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exchange {
    from: (GroupIndex, usize),
    to: (GroupIndex, Option<usize>),
}

impl Plan {
    /// Puts all but one of the events that each of `related` names into one group, where there is a choice. `fit` is
    /// asked as in [`Plan::new`].
    pub(super) fn spread(mut self, related: &[Vec<EventIndex>], fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Self {
        // Each exchange makes more events follow from others, so this ends.
        while let Some(exchange) = self.best_exchange(&RelatedGroups::new(&self, related), fit) {
            self.exchange(exchange);
        }
        self
    }

    /// The exchange that gives most and that the counters take.
    fn best_exchange(&self, related: &RelatedGroups, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Option<Exchange> {
        let mut exchanges = self.gains(related);
        // Stable: of equal ones the first in the order written.
        exchanges.sort_by_key(|&(gain, _)| std::cmp::Reverse(gain));
        exchanges.into_iter().map(|(_, exchange)| exchange).find(|&exchange| self.allows(exchange, fit))
    }

    /// Lists the exchanges after which more events follow from others, with how many more.
    fn gains(&self, related: &RelatedGroups) -> Vec<(i64, Exchange)> {
        let mut gains = Vec::new();
        for here in self.group_indices().filter(|&group| self.is_chosen(group)) {
            let from = &self.groups[here.0];
            for (place, &member) in from.members.iter().enumerate().filter(|(_, member)| related.has(**member)) {
                for there in self.group_indices().filter(|&there| self.share(here, there)) {
                    let to = &self.groups[there.0];
                    let places = (0..to.members.len()).map(Some).chain([None]);
                    gains.extend(places.filter_map(|other| {
                        let back = other.map(|other| to.members[other]);
                        let gain = related.gain([here, there], member, back);
                        (gain > 0).then_some((gain, Exchange { from: (here, place), to: (there, other) }))
                    }));
                }
            }
        }
        gains
    }

    /// Whether perfprop made the group, of hardware events that could stand in another.
    fn is_chosen(&self, group: GroupIndex) -> bool {
        let group = &self.groups[group.0];
        let is_free = |event: &Event| {
            !event.kind.is_software()
                && !event.modifiers.pinned
                && !event.modifiers.exclusive
                && event.unavailable().is_none()
        };
        group.cohesion == Cohesion::Chosen && group.members.iter().all(|&member| is_free(self.event(member)))
    }

    /// Whether members of one group can stand in the other: two of one PMU.
    fn share(&self, here: GroupIndex, there: GroupIndex) -> bool {
        let pmu = |group: GroupIndex| self.groups[group.0].members.first().map(|&member| self.event(member).pmu_type());
        here != there && self.is_chosen(there) && pmu(here) == pmu(there)
    }

    fn allows(&self, exchange: Exchange, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> bool {
        let Exchange { from: (here, _), to: (there, other) } = exchange;
        if other.is_none() && self.groups[here.0].members.len() == 1 {
            return false;
        }
        let mut changed = self.clone();
        changed.exchange(exchange);
        [here, there].iter().all(|group| {
            let members = &changed.groups[group.0].members;
            let events: Vec<_> = members.iter().map(|&member| changed.event(member)).collect();
            fit(&changed.with_pinned(&events)) == Fit::Fits
        })
    }

    fn exchange(&mut self, Exchange { from: (here, place), to: (there, other) }: Exchange) {
        match other {
            Some(other) => {
                let member = self.groups[here.0].members[place];
                let back = std::mem::replace(&mut self.groups[there.0].members[other], member);
                self.groups[here.0].members[place] = back;
            }
            None => {
                let member = self.groups[here.0].members.remove(place);
                self.groups[there.0].members.push(member);
            }
        }
    }
}

/// How many events of each relation each group has.
struct RelatedGroups {
    /// The relations of each event, each with how many events it has.
    of: BTreeMap<Member, Vec<(usize, usize)>>,
    /// By group and relation.
    counts: Vec<Vec<usize>>,
}

impl RelatedGroups {
    fn new(plan: &Plan, related: &[Vec<EventIndex>]) -> Self {
        let mut of: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let mut counts = vec![vec![0; related.len()]; plan.groups.len()];
        for (relation, events) in related.iter().enumerate() {
            let events: BTreeSet<_> =
                events.iter().copied().filter(|event| event.0 < plan.events.len()).map(Member::Event).collect();
            for &event in events.iter().filter(|_| events.len() > 1) {
                of.entry(event).or_default().push((relation, events.len()));
                let groups = plan.groups.iter().zip(&mut counts).filter(|(group, _)| group.members.contains(&event));
                groups.for_each(|(_, counts)| counts[relation] += 1);
            }
        }
        Self { of, counts }
    }

    fn has(&self, member: Member) -> bool {
        self.of.contains_key(&member)
    }

    /// How many more events follow from others once an event goes from one group to another, and another one back.
    fn gain(&self, [here, there]: [GroupIndex; 2], member: Member, back: Option<Member>) -> i64 {
        let relations =
            |member: Option<Member>| member.and_then(|member| self.of.get(&member)).map_or(&[][..], Vec::as_slice);
        let (of_member, of_back) = (relations(Some(member)), relations(back));
        let one_way = |of: &[(usize, usize)], but: &[(usize, usize)], from: GroupIndex, to: GroupIndex| -> i64 {
            let alone = of.iter().filter(|relation| !but.contains(relation));
            alone
                .map(|&(relation, all)| {
                    let [leaves, gets] = [from, to].map(|group| self.counts[group.0][relation]);
                    worth(leaves - 1, all) + worth(gets + 1, all) - worth(leaves, all) - worth(gets, all)
                })
                .sum()
        };
        one_way(of_member, of_back, here, there) + one_way(of_back, of_member, there, here)
    }
}

/// What so many of all events of a relation are worth in a group: with all but one that one follows, with all of them
/// none is left to.
fn worth(count: usize, all: usize) -> i64 {
    match all - count {
        0 => -1,
        1 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::super::tests::members;
    use super::*;
    use crate::builders::{group, raw_event};
    use crate::events::GroupBinding;

    fn planned(count: usize, binding: GroupBinding, counters: usize, related: &[Vec<usize>]) -> (Plan, Plan) {
        let event = |number: usize| raw_event(&format!("e{number}"), number);
        let group = |events: Vec<Event>| group(binding, events);
        let groups = match binding {
            GroupBinding::Free => (0..count).map(|number| group(vec![event(number)])).collect(),
            _ => (0..count)
                .step_by(counters)
                .map(|first| group((first..count.min(first + counters)).map(event).collect()))
                .collect(),
        };
        let mut fit = |events: &[&Event]| if events.len() <= counters { Fit::Fits } else { Fit::TooMany };
        let plan = Plan::new(groups, &mut fit).unwrap();
        (plan.clone(), plan.spread(&indices(related), &mut fit))
    }

    fn indices(related: &[Vec<usize>]) -> Vec<Vec<EventIndex>> {
        related.iter().map(|set| set.iter().copied().map(EventIndex).collect()).collect()
    }

    /// What the groups of a plan are worth for relations.
    fn worth_of(plan: &Plan, related: &[Vec<usize>]) -> i64 {
        let groups = RelatedGroups::new(plan, &indices(related));
        let sizes = related
            .iter()
            .map(|events| events.iter().filter(|&&event| event < plan.events.len()).collect::<BTreeSet<_>>().len());
        let sizes: Vec<_> = sizes.collect();
        let of_group = |counts: &Vec<usize>| -> i64 {
            counts.iter().zip(&sizes).filter(|(_, size)| **size > 1).map(|(&count, &size)| worth(count, size)).sum()
        };
        groups.counts.iter().map(of_group).sum()
    }

    #[test]
    fn the_events_of_a_pair_go_into_different_groups() {
        let related = [vec![0, 1], vec![3, 4]];
        let (_, plan) = planned(6, GroupBinding::Free, 3, &related);
        // 0 and 3 change places would part neither; one exchange parts both pairs.
        assert_eq!(worth_of(&plan, &related), 4);
        assert_eq!(members(&plan).iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn two_events_of_a_sum_share_a_group_and_the_third_has_another() {
        // As written: one sum in the first group, the others in three.
        let related = [vec![0, 1, 2], vec![3, 6, 9], vec![4, 7, 10]];
        let (before, plan) = planned(12, GroupBinding::Free, 3, &related);
        assert_eq!((worth_of(&before, &related), worth_of(&plan, &related)), (-1, 3));
        for sum in &related {
            let mut shares: Vec<_> =
                members(&plan).iter().map(|group| sum.iter().filter(|event| group.contains(event)).count()).collect();
            shares.sort_unstable();
            assert_eq!(shares, [0, 0, 1, 2]);
        }
    }

    #[test]
    fn a_free_counter_takes_one_of_a_pair() {
        let (_, plan) = planned(5, GroupBinding::Free, 4, &[vec![0, 1, 2]]);
        // Three in two groups: two stay together, and give the third.
        assert_eq!(worth_of(&plan, &[vec![0, 1, 2]]), 1);
    }

    #[test]
    fn without_a_choice_nothing_moves() {
        for (count, binding, related) in [
            (3, GroupBinding::Free, vec![vec![0, 1]]),
            (6, GroupBinding::Braces, vec![vec![0, 1]]),
            (6, GroupBinding::Free, vec![]),
            (6, GroupBinding::Free, vec![vec![0, 3], vec![1], vec![99, 2]]),
            (0, GroupBinding::Free, vec![vec![0, 1]]),
        ] {
            let (before, after) = planned(count, binding, 3, &related);
            assert_eq!(before, after);
        }
    }

    proptest! {
        #[test]
        fn groups_stay_as_they_were_but_for_what_follows(
            count in 0usize..20,
            counters in 1usize..6,
            related in prop::collection::vec(prop::collection::vec(0usize..20, 0..4), 0..8),
        ) {
            let (before, after) = planned(count, GroupBinding::Free, counters, &related);
            prop_assert!(worth_of(&after, &related) >= worth_of(&before, &related));
            prop_assert_eq!(after.groups.len(), before.groups.len());
            prop_assert!(members(&after).iter().all(|members| !members.is_empty() && members.len() <= counters));
            let mut all = members(&after).concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
