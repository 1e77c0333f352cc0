//! Rotates groups on so many counters, and chooses the companions of each slice by sums of events.
//!
//! Of `a = b + c` any two that are counted at the same time give the third, so that two counters count three events:
//!
//! ```text
//! 2 counters, a = b + c, d        cycle 0   a b   c d        cycle 1   b c   d a        cycle 2   a c   b d
//!              known besides                 c                          a                          b
//! ```
//!
//! A slice never holds all of a sum, where that can be avoided, as the last of them would say nothing new; and which
//! one is left out changes, so that each is counted as often as the others.

use std::cmp::Reverse;

use super::rotation::{drawn, order};

/// An event, as who asks numbers them.
type EventNumber = usize;

/// The place of a group in a rotation.
type GroupPlace = usize;

/// Of so many drawn orders of a cycle the most even one is taken.
const ORDERS: usize = 8;

/// A group may go uncounted for this many cycles in a row, even if all that it counts follows from others.
const LONGEST_WAIT: u32 = 3;

/// Rotates groups on so many counters, in slices of one length.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    /// The events of each group.
    groups: Vec<Vec<EventNumber>>,
    counters: usize,
    /// The events of each sum.
    sums: Vec<Vec<EventNumber>>,
    /// The slices of the cycle, and how many of them are over.
    slices: Vec<Vec<GroupPlace>>,
    over: usize,
    cycles: usize,
    /// How many cycles ago each group was counted.
    waited: Vec<u32>,
    /// The events that are known without a slice: no group has them.
    always: Vec<bool>,
    /// Whether a group has an event of a sum.
    tied: Vec<bool>,
    /// How many slices ago each sum's events were known.
    unknown_for: Vec<usize>,
}

/// Groups that a slice could count besides, in the order of preference.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    groups: Vec<GroupPlace>,
    value: ChoiceValue,
}

/// What counting some groups gives, for each counter that they take.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct ChoiceValue {
    /// Events that nothing in the cycle said anything of before, and groups that are overdue.
    new_in_cycle: f64,
    new_in_slice: f64,
    waited: f64,
}

impl RoundRobin {
    /// The rotation of groups of these events; any `sums` minus one of its events gives that one.
    pub fn new(groups: Vec<Vec<EventNumber>>, counters: usize, sums: Vec<Vec<EventNumber>>) -> Self {
        let events = groups.iter().chain(&sums).flatten().max().map_or(0, |most| most + 1);
        let mut always = vec![true; events];
        groups.iter().flatten().for_each(|&event| always[event] = false);
        let is_tied = |group: &Vec<EventNumber>| group.iter().any(|event| sums.iter().any(|sum| sum.contains(event)));
        let (waited, tied) = (vec![0; groups.len()], groups.iter().map(is_tied).collect());
        let unknown_for = vec![0; sums.len()];
        Self { groups, counters, sums, slices: Vec::new(), over: 0, cycles: 0, waited, always, tied, unknown_for }
    }

    /// The events of the next slice, no more than there are counters.
    ///
    /// Each group gets its slice: to choose those that are least certain starves what is taken to be certain.
    pub fn next_slice(&mut self) -> Vec<EventNumber> {
        if self.over == self.slices.len() {
            let slices = self.cycle();
            let order = self.most_even(&slices);
            self.unknown_for =
                self.gaps(&slices, &order).into_iter().map(|gaps| gaps.last().map_or(0, |&gap| gap)).collect();
            self.slices = order.into_iter().map(|place| slices[place].clone()).collect();
            (self.over, self.cycles) = (0, self.cycles + 1);
        }
        self.over += 1;
        let slice = self.slices.get(self.over - 1).into_iter().flatten();
        slice.flat_map(|&group| &self.groups[group]).copied().collect()
    }

    /// Of some drawn orders of a cycle's slices the one in which sums are known at the most even times.
    fn most_even(&self, slices: &[Vec<GroupPlace>]) -> Vec<usize> {
        // The first cycle is in the order written.
        let draws = if self.sums.is_empty() || self.cycles == 0 { 1 } else { ORDERS };
        let orders = (0..draws).map(|draw| order(self.cycles * draws + draw, slices.len()));
        let unevenness =
            |order: &Vec<usize>| self.gaps(slices, order).iter().flatten().map(|gap| gap * gap).sum::<usize>();
        orders.min_by_key(unevenness).unwrap_or_default()
    }

    /// How many slices of a cycle in this order lie between those that give each sum, the last cycle's last one and the
    /// end.
    fn gaps(&self, slices: &[Vec<GroupPlace>], order: &[usize]) -> Vec<Vec<usize>> {
        let gives = |slice: &[GroupPlace], sum: &[EventNumber]| {
            let counted =
                slice.iter().flat_map(|&group| &self.groups[group]).filter(|event| sum.contains(event)).count();
            counted + 1 >= sum.len()
        };
        let of_sum = |(sum, &before): (&Vec<EventNumber>, &usize)| {
            let mut gaps = vec![before];
            for &place in order {
                *gaps.last_mut().unwrap_or(&mut 0) += 1;
                if gives(&slices[place], sum) {
                    gaps.push(0);
                }
            }
            gaps
        };
        self.sums.iter().zip(&self.unknown_for).map(of_sum).collect()
    }

    /// Slices after which something is known of each event that fits the counters.
    fn cycle(&mut self) -> Vec<Vec<GroupPlace>> {
        self.waited.iter_mut().for_each(|waited| *waited += 1);
        let mut known = vec![true; self.always.len()];
        let fits = |group: &&Vec<EventNumber>| group.len() <= self.counters;
        self.groups.iter().filter(fits).flatten().for_each(|&event| known[event] = false);
        let mut slices = Vec::new();
        while known.contains(&false) || (0..self.groups.len()).any(|group| self.is_overdue(group)) {
            let (slice, in_slice) = self.fill(&known);
            if slice.is_empty() {
                break;
            }
            known.iter_mut().zip(in_slice).for_each(|(known, now)| *known |= now);
            slice.iter().for_each(|&group| self.waited[group] = 0);
            slices.push(slice);
        }
        slices
    }

    /// Whether a group that fits has not been counted for long, though what it counts may have followed from others.
    fn is_overdue(&self, group: GroupPlace) -> bool {
        self.waited[group] > LONGEST_WAIT && (1..=self.counters).contains(&self.groups[group].len())
    }

    /// Fills the counters with what says most, and says which events are known then.
    fn fill(&self, known: &[bool]) -> (Vec<GroupPlace>, Vec<bool>) {
        let mut slice: Vec<GroupPlace> = Vec::new();
        let mut in_slice = self.known_by(&slice);
        while let Some(best) = self.best(&slice, &in_slice, known) {
            slice.extend(best.groups);
            in_slice = self.known_by(&slice);
        }
        (slice, in_slice)
    }

    /// The groups that say most for the counters that they take: one, or those that a sum lacks but for one event.
    fn best(&self, slice: &[GroupPlace], in_slice: &[bool], known: &[bool]) -> Option<Choice> {
        let used: usize = slice.iter().map(|&group| self.groups[group].len()).sum();
        let single = (0..self.groups.len()).map(|group| vec![group]);
        let of_sums = self.sums.iter().flat_map(|sum| self.all_but_one(sum, slice));
        let choice = |groups: Vec<GroupPlace>| {
            let size: usize = groups.iter().map(|&group| self.groups[group].len()).sum();
            let is_new = groups.iter().all(|group| !slice.contains(group));
            (is_new && size > 0 && used + size <= self.counters).then(|| self.valued(groups, slice, in_slice, known))
        };
        let choices = single.chain(of_sums).filter_map(choice);
        // Of equal ones the first in the order written, in later cycles a drawn one.
        let tie = |choice: &Choice| match self.cycles {
            0 => Reverse(choice.groups[0] as u64),
            cycle => Reverse(choice.groups.iter().fold(0, |all, &group| all ^ drawn(cycle, group))),
        };
        choices
            .max_by(|a, b| a.value.partial_cmp(&b.value).unwrap_or(std::cmp::Ordering::Equal).then(tie(a).cmp(&tie(b))))
    }

    /// The groups of a sum that a slice lacks, without any one of them, or the one that was counted last.
    fn all_but_one(&self, sum: &[EventNumber], slice: &[GroupPlace]) -> Vec<Vec<GroupPlace>> {
        let lacks =
            |group: &GroupPlace| !slice.contains(group) && self.groups[*group].iter().any(|event| sum.contains(event));
        let lacking: Vec<GroupPlace> = (0..self.groups.len()).filter(lacks).collect();
        let without =
            |&left_out: &GroupPlace| lacking.iter().copied().filter(|&group| group != left_out).collect::<Vec<_>>();
        lacking.iter().map(without).filter(|groups| groups.len() > 1).collect()
    }

    fn valued(&self, groups: Vec<GroupPlace>, slice: &[GroupPlace], in_slice: &[bool], known: &[bool]) -> Choice {
        let counted: Vec<EventNumber> = groups.iter().flat_map(|&group| &self.groups[group]).copied().collect();
        let size = counted.len() as f64;
        let known_then = match groups.iter().any(|&group| self.tied[group]) {
            true => {
                let after = self.known_by(&slice.iter().chain(&groups).copied().collect::<Vec<_>>());
                (0..after.len()).filter(|&event| after[event]).collect()
            }
            false => counted,
        };
        let new_in_slice = || known_then.iter().filter(|&&event| !in_slice[event]);
        let overdue = groups.iter().filter(|&&group| self.is_overdue(group)).count();
        let value = ChoiceValue {
            new_in_cycle: (new_in_slice().filter(|&&event| !known[event]).count() + overdue) as f64 / size,
            new_in_slice: new_in_slice().count() as f64 / size,
            waited: groups.iter().map(|&group| f64::from(self.waited[group])).sum::<f64>() / groups.len() as f64,
        };
        Choice { groups, value }
    }

    /// Whether each event is counted in a slice of these groups, or follows by a sum.
    fn known_by(&self, slice: &[GroupPlace]) -> Vec<bool> {
        let mut known = self.always.clone();
        slice.iter().flat_map(|&group| &self.groups[group]).for_each(|&event| known[event] = true);
        // What follows may be in another sum.
        while let Some(event) = self.sums.iter().find_map(|sum| last_unknown(sum, &known)) {
            known[event] = true;
        }
        known
    }
}

/// What slices give of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumGain {
    /// How many events it has.
    pub events: usize,
    /// How many pairs of them share a slice.
    pub pairs_together: usize,
    /// Whether a slice has all of them but one, which then follows.
    pub follows: bool,
}

impl SumGain {
    /// What slices with these events give of a sum.
    pub fn new(sum: &[EventNumber], slices: &[Vec<EventNumber>]) -> Self {
        let share = |one: &EventNumber, other: &EventNumber| {
            slices.iter().any(|slice| slice.contains(one) && slice.contains(other))
        };
        let others = |place: usize| sum[place + 1..].iter();
        let pairs = sum.iter().enumerate().map(|(place, one)| others(place).filter(|other| share(one, other)).count());
        let counted = |slice: &Vec<EventNumber>| sum.iter().filter(|event| slice.contains(event)).count();
        let follows = slices.iter().any(|slice| counted(slice) + 1 == sum.len());
        Self { events: sum.len(), pairs_together: pairs.sum(), follows }
    }

    /// How many pairs of its events there are.
    pub fn pairs(self) -> usize {
        self.events * self.events.saturating_sub(1) / 2
    }
}

/// The one event of a sum that isn't known.
fn last_unknown(sum: &[EventNumber], known: &[bool]) -> Option<EventNumber> {
    let mut unknown = sum.iter().copied().filter(|&event| !known[event]);
    unknown.next().filter(|_| unknown.next().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn singles(count: usize) -> Vec<Vec<EventNumber>> {
        (0..count).map(|event| vec![event]).collect()
    }

    fn slices(rotation: &mut RoundRobin, count: usize) -> Vec<Vec<EventNumber>> {
        (0..count).map(|_| rotation.next_slice()).collect()
    }

    #[test]
    fn every_event_has_its_turn_in_each_cycle() {
        let mut rotation = RoundRobin::new(singles(5), 2, Vec::new());
        for _ in 0..50 {
            let mut cycle = slices(&mut rotation, 3).concat();
            cycle.sort_unstable();
            cycle.dedup();
            assert_eq!(cycle, [0, 1, 2, 3, 4]);
        }
        assert!(RoundRobin::new(Vec::new(), 2, Vec::new()).next_slice().is_empty());
        assert!(RoundRobin::new(singles(1), 0, Vec::new()).next_slice().is_empty());
    }

    #[test]
    fn without_sums_groups_are_taken_as_written() {
        let mut rotation = RoundRobin::new(singles(4), 2, Vec::new());
        assert_eq!(slices(&mut rotation, 2), [[0, 1], [2, 3]]);
    }

    #[test]
    fn two_counters_give_the_three_events_of_a_sum_all_the_time() {
        let mut rotation = RoundRobin::new(singles(3), 2, vec![vec![0, 1, 2]]);
        let mut pairs = slices(&mut rotation, 30);
        pairs.iter_mut().for_each(|pair| pair.sort_unstable());
        assert!(pairs.iter().all(|pair| pair.len() == 2));
        for pair in [[0, 1], [0, 2], [1, 2]] {
            assert!((8..=12).contains(&pairs.iter().filter(|&found| *found == pair).count()), "{pairs:?}");
        }
    }

    #[test]
    fn pairs_of_each_sum_share_slices_and_none_holds_it_all() {
        // Two sums and one event on two counters: a cycle of three slices, where seven events need four.
        let sums = vec![vec![0, 1, 2], vec![3, 4, 5]];
        let mut rotation = RoundRobin::new(singles(7), 2, sums.clone());
        let all = slices(&mut rotation, 300);
        for cycle in all.chunks(3) {
            let known: usize = cycle
                .iter()
                .filter(|slice| sums.iter().any(|sum| slice.iter().all(|event| sum.contains(event))))
                .count();
            assert!(known >= 2 && cycle.concat().contains(&6), "{cycle:?}");
        }
        let counted = |event: usize| all.iter().filter(|slice| slice.contains(&event)).count();
        assert!(
            (0..6).all(|event| (70..=100).contains(&counted(event))),
            "{:?}",
            (0..7).map(counted).collect::<Vec<_>>()
        );
    }

    #[test]
    fn sums_are_known_at_even_times() {
        // Nine events of three sums and fifteen others on four counters, as often as there are counters for it.
        let sums: Vec<Vec<usize>> = (0..3).map(|sum| (3 * sum..3 * sum + 3).collect()).collect();
        let mut rotation = RoundRobin::new(singles(24), 4, sums.clone());
        let all = slices(&mut rotation, 600);
        let gives = |slice: &Vec<usize>, sum: &[usize]| slice.iter().filter(|event| sum.contains(event)).count() >= 2;
        for sum in &sums {
            let known: Vec<usize> = (0..all.len()).filter(|&at| gives(&all[at], sum)).collect();
            let gaps: Vec<f64> = known.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            // Slices at random moments have a deviation of about the mean.
            assert!(mean < 5.0 && variance.sqrt() < 0.55 * mean, "{mean} {}", variance.sqrt());
        }
    }

    #[test]
    fn a_sum_gains_where_a_slice_has_all_but_one_of_its_events() {
        let gain = |slices: &[&[EventNumber]]| {
            let gain = SumGain::new(&[0, 1, 2], &slices.iter().map(|slice| slice.to_vec()).collect::<Vec<_>>());
            (gain.pairs_together, gain.pairs(), gain.follows)
        };
        assert_eq!(gain(&[&[0, 1], &[1, 2], &[2, 0]]), (3, 3, true));
        assert_eq!(gain(&[&[0, 1], &[2, 5]]), (1, 3, true));
        assert_eq!(gain(&[&[0, 1, 2], &[5]]), (3, 3, false));
        assert_eq!(gain(&[&[0], &[1], &[2]]), (0, 3, false));
    }

    #[test]
    fn what_fits_at_once_is_counted_at_once() {
        let mut rotation = RoundRobin::new(singles(3), 4, vec![vec![0, 1, 2]]);
        let mut slice = rotation.next_slice();
        slice.sort_unstable();
        assert_eq!(slice, [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn slices_fit_and_nothing_starves(
            sizes in prop::collection::vec(1usize..4, 1..12),
            counters in 1usize..6,
            sums in prop::collection::vec(prop::collection::btree_set(0usize..20, 2..5), 0..5),
        ) {
            let mut next = 0;
            let groups: Vec<Vec<usize>> = sizes.iter().map(|&size| { next += size; (next - size..next).collect() }).collect();
            let sums = sums.into_iter().map(|sum| sum.into_iter().collect()).collect();
            let mut rotation = RoundRobin::new(groups.clone(), counters, sums);
            let all = slices(&mut rotation, 60 * groups.len());
            for slice in &all {
                prop_assert!(slice.len() <= counters);
            }
            for events in groups.iter().filter(|events| events.len() <= counters) {
                prop_assert!(all.iter().filter(|slice| slice.contains(&events[0])).count() >= 5, "{:?} {:?}", events, all);
            }
        }
    }
}
