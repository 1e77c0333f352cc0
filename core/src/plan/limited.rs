//! Plans groups for a source that counts only a given number of events at once.

use super::{Cohesion, EventIndex, Member, Plan, PlannedGroup, RoundRobin, Unschedulable};
use crate::events::{Event, Group, GroupBinding};

impl Plan {
    /// Puts groups into a plan for `counters` counters that take any event, software events too. Free
    /// events fill the counters in the order written, but where sums tie some of them and not all fit at once: then
    /// each is a group, and has other companions in each slice. Pinned ones stand alone. `sums` gives the events of
    /// each sum.
    ///
    /// # Errors
    /// Returns a group in braces with more events than counters.
    pub fn limited(
        groups: Vec<Group>,
        counters: usize,
        sums: impl FnOnce(&[Event]) -> Vec<Vec<EventIndex>>,
    ) -> Result<Self, Unschedulable> {
        let mut plan = Self::default();
        let mut free: Vec<Member> = Vec::new();
        for group in groups {
            let is_pinned = group.events.iter().all(|event| event.modifiers.pinned);
            let members = plan.add(group.events);
            let cohesion = match group.binding {
                GroupBinding::Braces if members.len() > counters => {
                    let names = members.iter().map(|&member| plan.event(member).name.clone()).collect();
                    return Err(Unschedulable { names, fit: counters });
                }
                GroupBinding::Braces => Some(Cohesion::Required),
                GroupBinding::Weak => Some(Cohesion::Preferred).filter(|_| members.len() <= counters),
                GroupBinding::Free => Some(Cohesion::Chosen).filter(|_| is_pinned),
            };
            match cohesion {
                Some(cohesion) => plan.groups.push(PlannedGroup { members, cohesion }),
                None => free.extend(members),
            }
        }
        let chosen = |members: &[Member]| PlannedGroup { members: members.to_vec(), cohesion: Cohesion::Chosen };
        if plan.events.len() > counters {
            plan.sums = sums(&plan.events).into_iter().filter(|sum| sum.len() > 1).collect();
        }
        let together = if plan.sums.is_empty() { counters.max(1) } else { 1 };
        let free: Vec<_> = free.chunks(together).map(chosen).collect();
        plan.groups.splice(0..0, free);
        Ok(plan)
    }
}

impl Plan {
    /// The slices of a few cycles on so many emulated counters, where sums tie events.
    pub fn emulated_slices(&self, counters: usize) -> Vec<Vec<usize>> {
        let events = |group: &PlannedGroup| group.members.iter().filter_map(|member| Some(member.event()?.0)).collect();
        let groups: Vec<Vec<usize>> = self.groups.iter().map(events).collect();
        let slices = FEW_CYCLES * groups.len();
        let mut rotation = RoundRobin::new(groups, counters, self.sums_by_number());
        (0..slices).map(|_| rotation.next_slice()).collect()
    }

    /// The sums, their events as plain numbers.
    pub(crate) fn sums_by_number(&self) -> Vec<Vec<usize>> {
        self.sums.iter().map(|sum| sum.iter().map(|event| event.0).collect()).collect()
    }
}

/// So many cycles show which pairs share slices.
const FEW_CYCLES: usize = 12;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::tests::members;
    use super::*;
    use crate::builders::{self, software_event};
    use crate::events::{Event, Modifiers};

    fn group(binding: GroupBinding, names: &[&str]) -> Group {
        let event = |name: &&str| {
            let modifiers = Modifiers { pinned: name.starts_with('p'), ..Modifiers::default() };
            Event { modifiers, ..software_event(name) }
        };
        builders::group(binding, names.iter().map(event))
    }

    #[test]
    fn free_events_fill_the_counters_and_braces_stay_whole() {
        let free = |name| group(GroupBinding::Free, &[name]);
        let groups = vec![free("a"), group(GroupBinding::Braces, &["b", "c"]), free("d"), free("p"), free("e")];
        let plan = Plan::limited(groups, 2, |_| Vec::new()).unwrap();
        assert_eq!(members(&plan), [vec![0, 3], vec![5], vec![1, 2], vec![4]]);
    }

    #[test]
    fn braces_that_do_not_fit_are_refused_and_weak_ones_taken_apart() {
        let limited = |groups, counters| Plan::limited(groups, counters, |_| Vec::new());
        let refused = limited(vec![group(GroupBinding::Braces, &["a", "b", "c"])], 2).unwrap_err();
        assert_eq!((refused.names.len(), refused.fit), (3, 2));
        let weak = limited(vec![group(GroupBinding::Weak, &["a", "b", "c"])], 2).unwrap();
        assert_eq!(weak.groups.len(), 2);
        assert_eq!(limited(vec![], 0), Ok(Plan::default()));
    }

    #[test]
    fn where_sums_tie_events_each_is_a_group_unless_all_fit() {
        let free = || ["a", "b", "c"].map(|name| group(GroupBinding::Free, &[name])).into();
        let sizes = |counters: usize, sums: Vec<Vec<usize>>| {
            let sums = sums.into_iter().map(|sum| sum.into_iter().map(EventIndex).collect()).collect();
            let plan = Plan::limited(free(), counters, |_| sums).unwrap();
            (plan.groups.iter().map(|group| group.members.len()).collect::<Vec<_>>(), plan.sums.len())
        };
        assert_eq!(sizes(2, vec![vec![0, 1, 2]]), (vec![1, 1, 1], 1));
        assert_eq!(sizes(3, vec![vec![0, 1, 2]]), (vec![3], 0));
        assert_eq!(sizes(2, vec![]), (vec![2, 1], 0));
    }
}
