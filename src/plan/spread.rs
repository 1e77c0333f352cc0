//! Spreads related events over different groups of a plan.
//!
//! Groups are multiplexed. Events of one relation say more of each other the less they are counted at
//! the same time: while one is off the counters, the other says how it went on. In one group both are
//! blind at once.
//!
//! ```text
//! as written    a b c | d e f        a ~ b, d ~ e
//! spread        a e c | d b f        an anchor in both groups ties them besides
//! ```
//!
//! Members change places between groups, or move to where a counter is free, as long as that parts
//! more than it brings together. Groups stay as many and as full as they were, and what the
//! user put into braces stays as it is.

use super::{Cohesion, EventIndex, Fit, Plan, pmu_of};
use crate::events::Event;

/// A change of places: a member of one group, and a member of another or a free counter there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exchange {
    from: (usize, usize),
    to: (usize, Option<usize>),
}

impl Plan {
    /// Spreads the events that `related` names together over different groups, where there is a choice. `fit` is asked as in
    /// [`Plan::new`].
    pub(super) fn spread(mut self, related: &[Vec<EventIndex>], fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Self {
        let pairs = RelatedPairs::new(self.events.len(), related);
        // Each exchange leaves fewer related pairs in groups, so this ends.
        while let Some(exchange) = self.best_exchange(&pairs, fit) {
            self.exchange(exchange);
        }
        self
    }

    /// The exchange that parts most and that the counters take.
    fn best_exchange(&self, pairs: &RelatedPairs, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Option<Exchange> {
        let mut exchanges = self.gains(pairs);
        // Stable: of equal ones the first in the order written.
        exchanges.sort_by_key(|&(gain, _)| std::cmp::Reverse(gain));
        exchanges.into_iter().map(|(_, exchange)| exchange).find(|&exchange| self.allows(exchange, fit))
    }

    /// Lists the exchanges that separate more related pairs than they bring together, with how many more.
    fn gains(&self, pairs: &RelatedPairs) -> Vec<(usize, Exchange)> {
        let mut gains = Vec::new();
        for (here, from) in self.groups.iter().enumerate().filter(|(group, _)| self.is_chosen(*group)) {
            for (place, &member) in from.members.iter().enumerate() {
                let now = pairs.within(member, &from.members, None);
                if now == 0 {
                    continue;
                }
                for (there, to) in self.groups.iter().enumerate().filter(|(there, _)| self.share(here, *there)) {
                    let places = (0..to.members.len()).map(Some).chain([None]);
                    gains.extend(places.filter_map(|other| {
                        let leaves = other.map(|other| to.members[other]);
                        let before = now + leaves.map_or(0, |leaves| pairs.within(leaves, &to.members, None));
                        let after = pairs.within(member, &to.members, leaves)
                            + leaves.map_or(0, |leaves| pairs.within(leaves, &from.members, Some(member)));
                        let gain = before.checked_sub(after).filter(|&gain| gain > 0)?;
                        Some((gain, Exchange { from: (here, place), to: (there, other) }))
                    }));
                }
            }
        }
        gains
    }

    /// Whether perfprop made the group, of hardware events that could stand in another.
    fn is_chosen(&self, group: usize) -> bool {
        let group = &self.groups[group];
        let is_free = |event: &Event| {
            !event.kind.is_software()
                && !event.modifiers.pinned
                && !event.modifiers.exclusive
                && event.unavailable().is_none()
        };
        group.cohesion == Cohesion::Chosen && group.members.iter().all(|&member| is_free(self.event(member)))
    }

    /// Whether members of one group can stand in the other: two of one PMU.
    fn share(&self, here: usize, there: usize) -> bool {
        let pmu = |group: usize| self.groups[group].members.first().map(|&member| pmu_of(self.event(member)));
        here != there && self.is_chosen(there) && pmu(here) == pmu(there)
    }

    fn allows(&self, exchange: Exchange, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> bool {
        let Exchange { from: (here, _), to: (there, other) } = exchange;
        if other.is_none() && self.groups[here].members.len() == 1 {
            return false;
        }
        let mut changed = self.clone();
        changed.exchange(exchange);
        [here, there].iter().all(|&group| {
            let members = &changed.groups[group].members;
            let events: Vec<_> = members.iter().map(|&member| changed.event(member)).collect();
            fit(&changed.with_pinned(&events)) == Fit::Fits
        })
    }

    fn exchange(&mut self, Exchange { from: (here, place), to: (there, other) }: Exchange) {
        match other {
            Some(other) => {
                let member = self.groups[here].members[place];
                let back = std::mem::replace(&mut self.groups[there].members[other], member);
                self.groups[here].members[place] = back;
            }
            None => {
                let member = self.groups[here].members.remove(place);
                self.groups[there].members.push(member);
            }
        }
    }
}

/// The pairs of events that a relation names together.
struct RelatedPairs {
    of: Vec<Vec<EventIndex>>,
}

impl RelatedPairs {
    fn new(events: usize, related: &[Vec<EventIndex>]) -> Self {
        let mut of = vec![Vec::new(); events];
        for set in related {
            for &one in set.iter().filter(|&&one| one < events) {
                of[one].extend(set.iter().filter(|&&other| other != one && other < events));
            }
        }
        for others in &mut of {
            others.sort_unstable();
            others.dedup();
        }
        Self { of }
    }

    /// How many of the members, without one that leaves, are related to an event.
    fn within(&self, event: EventIndex, members: &[EventIndex], leaves: Option<EventIndex>) -> usize {
        let others = self.of.get(event).map_or(&[][..], Vec::as_slice);
        let stays = |member: &&EventIndex| Some(**member) != leaves && others.binary_search(member).is_ok();
        members.iter().filter(stays).count()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::events::{Encoding, EventKind, Group, GroupBinding, Modifiers, Unit};

    fn planned(count: usize, binding: GroupBinding, counters: usize, related: &[Vec<EventIndex>]) -> (Plan, Plan) {
        let event = |number: usize| Event {
            name: format!("e{number}"),
            canonical: format!("e{number}"),
            kind: EventKind::Raw,
            encoding: Encoding { pmu_type: 4, config: number as u64, ..Encoding::default() },
            modifiers: Modifiers::default(),
            unit: Unit::Count,
        };
        let group = |events: Vec<Event>| Group { name: None, events, binding };
        let groups = match binding {
            GroupBinding::Free => (0..count).map(|number| group(vec![event(number)])).collect(),
            _ => (0..count)
                .step_by(counters)
                .map(|first| group((first..count.min(first + counters)).map(event).collect()))
                .collect(),
        };
        let mut fit = |events: &[&Event]| if events.len() <= counters { Fit::Fits } else { Fit::TooMany };
        let plan = Plan::new(groups, &mut fit).unwrap();
        (plan.clone(), plan.spread(related, &mut fit))
    }

    fn groups(plan: &Plan) -> Vec<Vec<EventIndex>> {
        plan.groups.iter().map(|group| group.members.clone()).collect()
    }

    fn together(plan: &Plan, related: &[Vec<EventIndex>]) -> usize {
        let pairs = RelatedPairs::new(plan.events.len(), related);
        plan.groups.iter().flat_map(|group| group.members.iter().map(|&m| pairs.within(m, &group.members, None))).sum()
    }

    #[test]
    fn tied_events_go_into_different_groups() {
        let related = [vec![0, 1], vec![3, 4]];
        let (_, plan) = planned(6, GroupBinding::Free, 3, &related);
        // 0 and 3 change places would part neither; one exchange parts both pairs.
        assert_eq!(together(&plan, &related), 0);
        assert_eq!(groups(&plan).iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
    }

    #[test]
    fn a_free_counter_takes_one_of_a_pair() {
        let (_, plan) = planned(5, GroupBinding::Free, 4, &[vec![0, 1, 2]]);
        // Three in two groups: one pair has to stay together.
        assert_eq!(together(&plan, &[vec![0, 1, 2]]), 2);
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
        fn groups_stay_as_they_were_but_for_fewer_pairs(
            count in 0usize..20,
            counters in 1usize..6,
            related in prop::collection::vec(prop::collection::vec(0usize..20, 0..4), 0..8),
        ) {
            let (before, after) = planned(count, GroupBinding::Free, counters, &related);
            prop_assert!(together(&after, &related) <= together(&before, &related));
            prop_assert_eq!(after.groups.len(), before.groups.len());
            prop_assert!(groups(&after).iter().all(|members| !members.is_empty() && members.len() <= counters));
            let mut members = groups(&after).concat();
            members.sort_unstable();
            prop_assert_eq!(members, (0..count).collect::<Vec<_>>());
        }
    }
}
