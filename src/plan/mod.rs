//! Events in, groups out: which events the kernel is asked to count together.
//!
//! ```text
//! -e task-clock,cycles,{L1_MISSES,L2_MISSES},page-faults
//!
//!    group 0   task-clock page-faults     software: always counts, one read gets all
//!    group 1   cycles                     hardware: on its own, rotated by the kernel
//!    group 2   L1_MISSES L2_MISSES        braces: on a counter together or not at all
//! ```
//!
//! Software events never wait for a hardware counter, so all that are free share groups of their
//! own: one system call then reads them all. They never join a hardware group, where they would be
//! taken off the CPU together with it.

use serde::{Deserialize, Serialize};

use crate::events::{self, Binding, Event};

/// The place of an event in the list that the user asked for.
pub type EventIndex = usize;

/// The kernel gives a group's counts in one read of at most 16 KiB; this stays well below.
const MAX_SOFTWARE_GROUP: usize = 256;

/// All events to count, and the groups they are counted in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The events in the order that the user gave.
    pub events: Vec<Event>,
    /// Groups that cover every event exactly once.
    pub groups: Vec<PlannedGroup>,
}

/// Events that are counted, and read, together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedGroup {
    /// The members; the first is the leader.
    pub members: Vec<EventIndex>,
    /// Why they are together.
    pub cohesion: Cohesion,
}

/// Why events are in one group, which decides what happens when they don't fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cohesion {
    /// perfprop put them together, and may take them apart.
    Chosen,
    /// The user wrote them in braces: together or not at all.
    Required,
    /// The user wrote them in braces with `:W`: together where that can be.
    Preferred,
}

impl PlannedGroup {
    /// The same group of events that stand so much further down.
    pub fn shifted(&self, by: usize) -> Self {
        Self { members: self.members.iter().map(|member| member + by).collect(), cohesion: self.cohesion }
    }
}

impl Plan {
    /// Puts the groups that the user wrote, and the free events between them, into a plan.
    pub fn new(groups: Vec<events::Group>) -> Self {
        let mut plan = Self::default();
        let mut free_software = Vec::new();
        for group in groups {
            let first = plan.events.len();
            let members: Vec<_> = (first..first + group.events.len()).collect();
            plan.events.extend(group.events);
            match group.binding {
                Binding::Free => {
                    for index in members {
                        if plan.events[index].kind.is_software() {
                            free_software.push(index);
                        } else {
                            plan.add(vec![index], Cohesion::Chosen);
                        }
                    }
                }
                Binding::Braces => plan.add(members, Cohesion::Required),
                Binding::Weak => plan.add(members, Cohesion::Preferred),
            }
        }
        for chunk in free_software.chunks(MAX_SOFTWARE_GROUP).rev() {
            plan.groups.insert(0, PlannedGroup { members: chunk.to_vec(), cohesion: Cohesion::Chosen });
        }
        plan
    }

    fn add(&mut self, members: Vec<EventIndex>, cohesion: Cohesion) {
        self.groups.push(PlannedGroup { members, cohesion });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Encoding, Kind, Modifiers, Unit};

    fn event(name: &str, kind: Kind) -> Event {
        Event {
            name: name.into(),
            canonical: name.into(),
            kind,
            encoding: Encoding::default(),
            modifiers: Modifiers::default(),
            unit: Unit::Count,
        }
    }

    fn group(binding: Binding, events: Vec<Event>) -> events::Group {
        events::Group { name: None, events, binding }
    }

    #[test]
    fn software_events_share_a_group_and_hardware_events_stand_alone() {
        let plan = Plan::new(vec![
            group(Binding::Free, vec![event("task-clock", Kind::Software)]),
            group(Binding::Free, vec![event("cycles", Kind::Hardware)]),
            group(Binding::Braces, vec![event("a", Kind::Raw), event("b", Kind::Raw)]),
            group(Binding::Free, vec![event("sched:sched_switch", Kind::Tracepoint)]),
        ]);
        let members: Vec<_> = plan.groups.iter().map(|group| group.members.clone()).collect();
        assert_eq!(members, [vec![0, 4], vec![1], vec![2, 3]]);
        assert_eq!(plan.groups[2].cohesion, Cohesion::Required);
    }

    #[test]
    fn no_events_make_no_groups() {
        assert_eq!(Plan::new(vec![]), Plan::default());
    }

    #[test]
    fn every_event_is_in_exactly_one_group() {
        let many = (0..600).map(|i| group(Binding::Free, vec![event(&i.to_string(), Kind::Tracepoint)]));
        let plan = Plan::new(many.collect());
        assert_eq!(plan.groups.len(), 3);
        let mut all: Vec<_> = plan.groups.iter().flat_map(|group| group.members.clone()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..600).collect::<Vec<_>>());
    }
}
