//! Plans groups for a source that counts only a given number of events at once.

use super::{Cohesion, EventIndex, Plan, PlannedGroup, Unschedulable};
use crate::events::{Group, GroupBinding};

impl Plan {
    /// Puts groups into a plan for `counters` counters that take any event, software events too. Free
    /// events fill the counters in the order written; pinned ones stand alone.
    ///
    /// # Errors
    /// Returns a group in braces with more events than counters.
    pub fn limited(groups: Vec<Group>, counters: usize) -> Result<Self, Unschedulable> {
        let mut plan = Self::default();
        let mut free: Vec<EventIndex> = Vec::new();
        for group in groups {
            let first = plan.events.len();
            let members: Vec<_> = (first..first + group.events.len()).collect();
            let cohesion = match group.binding {
                GroupBinding::Braces if members.len() > counters => {
                    let names = group.events.iter().map(|event| event.name.clone()).collect();
                    return Err(Unschedulable { names, fit: counters });
                }
                GroupBinding::Braces => Some(Cohesion::Required),
                GroupBinding::Weak => Some(Cohesion::Preferred).filter(|_| members.len() <= counters),
                GroupBinding::Free => {
                    Some(Cohesion::Chosen).filter(|_| group.events.iter().all(|event| event.modifiers.pinned))
                }
            };
            plan.events.extend(group.events);
            match cohesion {
                Some(cohesion) => plan.groups.push(PlannedGroup { members, cohesion }),
                None => free.extend(members),
            }
        }
        let chosen = |members: &[EventIndex]| PlannedGroup { members: members.to_vec(), cohesion: Cohesion::Chosen };
        let free: Vec<_> = free.chunks(counters.max(1)).map(chosen).collect();
        plan.groups.splice(0..0, free);
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::events::{Encoding, Event, EventKind, Modifiers, Unit};

    fn group(binding: GroupBinding, names: &[&str]) -> Group {
        let event = |name: &&str| Event {
            name: (*name).into(),
            canonical: (*name).into(),
            kind: EventKind::Software,
            encoding: Encoding::default(),
            modifiers: Modifiers { pinned: name.starts_with('p'), ..Modifiers::default() },
            unit: Unit::Count,
        };
        Group { name: None, events: names.iter().map(event).collect(), binding }
    }

    #[test]
    fn free_events_fill_the_counters_and_braces_stay_whole() {
        let free = |name| group(GroupBinding::Free, &[name]);
        let groups = vec![free("a"), group(GroupBinding::Braces, &["b", "c"]), free("d"), free("p"), free("e")];
        let plan = Plan::limited(groups, 2).unwrap();
        let members: Vec<_> = plan.groups.iter().map(|group| group.members.clone()).collect();
        assert_eq!(members, [vec![0, 3], vec![5], vec![1, 2], vec![4]]);
    }

    #[test]
    fn braces_that_do_not_fit_are_refused_and_weak_ones_taken_apart() {
        let refused = Plan::limited(vec![group(GroupBinding::Braces, &["a", "b", "c"])], 2).unwrap_err();
        assert_eq!((refused.names.len(), refused.fit), (3, 2));
        let weak = Plan::limited(vec![group(GroupBinding::Weak, &["a", "b", "c"])], 2).unwrap();
        assert_eq!(weak.groups.len(), 2);
        assert_eq!(Plan::limited(vec![], 0), Ok(Plan::default()));
    }
}
