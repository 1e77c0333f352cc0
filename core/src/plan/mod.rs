//! Groups events: decides which of them the kernel is asked to count together.
//!
//! ```text
//! -e task-clock,cycles,instructions,{L1_MISSES,L2_MISSES},page-faults,r1a
//!
//!    group 0   task-clock page-faults     software: always counts, one read gets all
//!    group 1   cycles instructions r1a    hardware: as many as the counters take at once
//!    group 2   L1_MISSES L2_MISSES        braces: on counters together or not at all
//! ```
//!
//! Software events never wait for a hardware counter, so all that are free share groups of their
//! own: one system call then reads them all. They never join a hardware group, where they would be
//! taken off the CPU together with it.
//!
//! Free hardware events fill the counters. The kernel rotates groups: with one event a
//! group it moves one event a slice, and each is off for as long as all the others need; groups that
//! fill the counters come round as soon as can be. Where one of them has a counter left, an
//! anchor (`anchors`) is counted there once more. Of a sum of events all but one share a group
//! (`spread`), and perfprop can rotate the groups itself (`rotation`). What has counters that take nothing else is
//! counted all the time beside them (`always_on`). Emulated counters have other companions in each slice
//! (`companions`).

use serde::{Deserialize, Serialize};

use crate::events::{self, Event, GroupBinding, PmuType};

mod always_on;
mod anchors;
mod companions;
pub mod expectation;
mod limited;
mod rotation;
mod spread;

pub use always_on::always_on_candidates;
pub use companions::{RoundRobin, SumGain};
pub use rotation::{KERNEL_SLICE, Rotation, set_at};

/// The place of an event in the list of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventIndex(pub usize);

/// The place of an anchor in the list of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnchorIndex(pub usize);

/// The place of a group in the list of a plan, or of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupIndex(pub usize);

/// The place of a reading in a round, and so of an event in a run: a row for each event in each part of the target, and
/// behind them all a row for each anchor. A plain number, as all that is computed of rows stands in lists of that
/// order.
pub type RowIndex = usize;

/// Where rows stand: those of the events of one part of the target after those of another, and behind them all those of
/// the anchors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLayout {
    /// How many events are counted in each part.
    events: usize,
    /// How many rows the events of all parts have.
    rows: usize,
}

impl RowLayout {
    /// The layout of so many rows of events, `events` for each part of the target.
    pub fn new(events: usize, rows: usize) -> Self {
        Self { events: events.max(1), rows }
    }

    /// The row of an event in a part of the target.
    pub fn row(self, EventIndex(event): EventIndex, part: usize) -> RowIndex {
        part * self.events + event
    }

    /// The row of an anchor, by its place among those of all parts.
    pub fn anchor(self, place: usize) -> RowIndex {
        self.rows + place
    }

    /// The event of a row, and the part of the target; `None` of an anchor.
    pub fn split(self, row: RowIndex) -> Option<(EventIndex, usize)> {
        (row < self.rows).then(|| (EventIndex(row % self.events), row / self.events))
    }

    /// How many parts of the target there are.
    pub fn parts(self) -> usize {
        self.rows.div_ceil(self.events)
    }
}

/// The kernel gives a group's counts in one read of at most 16 KiB; this stays well below.
const MAX_SOFTWARE_GROUP: usize = 256;

/// All events to count, and the groups they are counted in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The events in the order that the user gave.
    pub events: Vec<Event>,
    /// What is counted beside the events so that an estimator knows more of them.
    pub anchors: Vec<PlannedAnchor>,
    /// Groups that cover every event and every anchor exactly once.
    pub groups: Vec<PlannedGroup>,
    /// The events of each sum that a relation says, any of which follows from the others: what shares a slice on
    /// emulated counters is chosen by them.
    pub sums: Vec<Vec<EventIndex>>,
}

/// What an anchor counts.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedAnchor {
    /// An event of the plan, once more in another group.
    Again(EventIndex),
    /// An event that nobody asked for, and that takes no counter from those that were.
    Added(Box<Event>),
}

/// Events that are counted, and read, together.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedGroup {
    /// The members; the first is the leader.
    pub members: Vec<Member>,
    /// Why the events are in one group.
    pub cohesion: Cohesion,
}

/// What is counted in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Member {
    /// An event.
    Event(EventIndex),
    /// What is counted beside the events: one of them once more, or one that nobody asked for.
    Anchor(AnchorIndex),
}

impl Member {
    /// The event, unless it is an anchor.
    pub fn event(self) -> Option<EventIndex> {
        match self {
            Self::Event(event) => Some(event),
            Self::Anchor(_) => None,
        }
    }
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

/// Whether the hardware counts some events at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The hardware counts the group at once.
    Fits,
    /// The group has more events than there are counters for.
    TooMany,
    /// At least one of them can't be counted at all, so nothing can be said of the group.
    Unknown,
}

/// A group in braces that the hardware can't count as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unschedulable {
    /// The names of its members.
    pub names: Vec<String>,
    /// The number of events, from the first, that can be counted at once.
    pub fit: usize,
}

impl Plan {
    /// Puts the groups that the user wrote, and the free events between them, into a plan. `fit`
    /// tries whether events can be counted at the same time; it is asked about hardware events of
    /// one PMU only.
    ///
    /// # Errors
    /// Returns a group in braces that doesn't fit.
    pub fn new(groups: Vec<events::Group>, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Result<Self, Unschedulable> {
        let mut plan = Self::default();
        let mut software = Vec::new();
        let pinned = |event: &&Event| event.modifiers.pinned && !event.kind.is_software();
        let pinned = groups.iter().flat_map(|group| &group.events).filter(pinned).cloned().collect();
        let mut hardware = Packing { groups: Vec::new(), pinned };
        for group in groups {
            let members = plan.add(group.events);
            let cohesion = match group.binding {
                GroupBinding::Free => None,
                GroupBinding::Braces => Some(Cohesion::Required),
                GroupBinding::Weak => Some(Cohesion::Preferred).filter(|_| plan.fits(&members, &hardware.pinned, fit)),
            };
            match cohesion {
                Some(cohesion) => {
                    if cohesion == Cohesion::Required {
                        plan.check(&members, &hardware.pinned, fit)?;
                    }
                    plan.groups.push(PlannedGroup { members, cohesion });
                }
                None => members.into_iter().for_each(|member| match plan.event(member).kind.is_software() {
                    true => software.push(member),
                    false => hardware.add(member, &plan, fit),
                }),
            }
        }
        let chosen = |members: &[Member]| PlannedGroup { members: members.to_vec(), cohesion: Cohesion::Chosen };
        let free = software.chunks(MAX_SOFTWARE_GROUP).chain(hardware.groups.iter().map(|group| &group.members[..]));
        let free: Vec<_> = free.map(chosen).collect();
        plan.groups.splice(0..0, free);
        Ok(plan)
    }

    /// A plan of one group.
    pub fn of_group(events: Vec<Event>, cohesion: Cohesion) -> Self {
        let mut plan = Self::default();
        let members = plan.add(events);
        plan.groups.push(PlannedGroup { members, cohesion });
        plan
    }

    /// Adds events, and says which members of a group they are.
    fn add(&mut self, events: Vec<Event>) -> Vec<Member> {
        let first = self.events.len();
        self.events.extend(events);
        (first..self.events.len()).map(|event| Member::Event(EventIndex(event))).collect()
    }

    /// How many things are counted: events and anchors.
    pub fn width(&self) -> usize {
        self.events.len() + self.anchors.len()
    }

    /// All that is counted: the events, and behind them the anchors.
    pub fn members(&self) -> impl Iterator<Item = Member> + use<> {
        let events = (0..self.events.len()).map(|event| Member::Event(EventIndex(event)));
        events.chain((0..self.anchors.len()).map(|anchor| Member::Anchor(AnchorIndex(anchor))))
    }

    /// The places of the groups.
    fn group_indices(&self) -> impl Iterator<Item = GroupIndex> + use<> {
        (0..self.groups.len()).map(GroupIndex)
    }

    /// The event that a member of a group counts.
    ///
    /// # Panics
    /// Panics if the plan has no such member.
    pub fn event(&self, member: Member) -> &Event {
        match member {
            Member::Event(EventIndex(event)) => &self.events[event],
            Member::Anchor(AnchorIndex(anchor)) => match &self.anchors[anchor] {
                PlannedAnchor::Again(EventIndex(event)) => &self.events[*event],
                PlannedAnchor::Added(event) => event,
            },
        }
    }

    /// The event that was asked for of a member; `None` of one that perfprop added.
    pub fn asked(&self, member: Member) -> Option<EventIndex> {
        match member {
            Member::Event(event) => Some(event),
            Member::Anchor(AnchorIndex(anchor)) => match self.anchors[anchor] {
                PlannedAnchor::Again(event) => Some(event),
                PlannedAnchor::Added(_) => None,
            },
        }
    }

    /// The events that perfprop added.
    pub fn added(&self) -> impl Iterator<Item = &Event> {
        self.anchors.iter().filter_map(|anchor| match anchor {
            PlannedAnchor::Added(event) => Some(&**event),
            PlannedAnchor::Again(_) => None,
        })
    }

    /// Whether groups wait for one another: more than one has events of the same PMU.
    pub fn rotates(&self) -> bool {
        let hardware = |group: &PlannedGroup| {
            let mut events = group.members.iter().map(|&member| self.event(member));
            events.find(|event| !event.kind.is_software()).map(Event::pmu_type)
        };
        let pmus: Vec<_> = self.groups.iter().filter_map(hardware).collect();
        pmus.iter().enumerate().any(|(place, pmu)| pmus[..place].contains(pmu))
    }

    /// Where the readings of a member are when the plan is counted in several scopes: the events of
    /// one scope after those of another, and behind them all the anchors in the same order.
    pub fn row(&self, member: Member, scope: usize, scopes: usize) -> RowIndex {
        let layout = RowLayout::new(self.events.len(), scopes * self.events.len());
        match member {
            Member::Event(event) => layout.row(event, scope),
            Member::Anchor(AnchorIndex(anchor)) => layout.anchor(scope * self.anchors.len() + anchor),
        }
    }

    /// These events with those that are pinned on their PMU: what has to fit for a group to get a slice.
    fn with_pinned<'a>(&'a self, events: &[&'a Event]) -> Vec<&'a Event> {
        let pmu = events.first().map(|event| event.pmu_type());
        let holds =
            |event: &&Event| event.modifiers.pinned && !event.kind.is_software() && Some(event.pmu_type()) == pmu;
        self.added().chain(&self.events).filter(holds).chain(events.iter().copied()).collect()
    }

    /// Whether members fit beside the events that have counters of their own.
    fn fits(&self, members: &[Member], pinned: &[Event], fit: &mut dyn FnMut(&[&Event]) -> Fit) -> bool {
        let hardware: Vec<_> =
            members.iter().map(|&member| self.event(member)).filter(|event| !event.kind.is_software()).collect();
        let pmu = hardware.first().map(|first| first.pmu_type());
        let is_beside = |event: &&Event| Some(event.pmu_type()) == pmu && !hardware.contains(event);
        let all: Vec<_> = pinned.iter().filter(is_beside).chain(hardware.iter().copied()).collect();
        hardware.len() < 2 || fit(&all) != Fit::TooMany
    }

    /// Refuses members that don't fit, and finds out how many do.
    fn check(
        &self,
        members: &[Member],
        pinned: &[Event],
        fit: &mut dyn FnMut(&[&Event]) -> Fit,
    ) -> Result<(), Unschedulable> {
        if self.fits(members, pinned, fit) {
            return Ok(());
        }
        let fitting = (1..members.len()).rev().find(|&count| self.fits(&members[..count], pinned, fit));
        let names = members.iter().map(|&member| self.event(member).name.clone()).collect();
        Err(Unschedulable { names, fit: fitting.unwrap_or(0) })
    }
}

/// Groups of free hardware events as they fill up.
struct Packing {
    groups: Vec<Packed>,
    /// Pinned events: they never give their counter away, so nothing else can have it.
    pinned: Vec<Event>,
}

struct Packed {
    pmu: PmuType,
    members: Vec<Member>,
    is_full: bool,
}

impl Packing {
    /// Puts an event into the open group of its PMU; the first event that doesn't fit closes it.
    fn add(&mut self, member: Member, plan: &Plan, fit: &mut dyn FnMut(&[&Event]) -> Fit) {
        let event = plan.event(member);
        let pmu = event.pmu_type();
        let joins = !event.modifiers.pinned && !event.modifiers.exclusive && fit(&[event]) == Fit::Fits;
        if joins && let Some(group) = self.groups.iter_mut().find(|group| group.pmu == pmu && !group.is_full) {
            let members = group.members.iter().chain([&member]).map(|&member| plan.event(member));
            let with: Vec<_> = self.pinned.iter().filter(|event| event.pmu_type() == pmu).chain(members).collect();
            if fit(&with) == Fit::Fits {
                group.members.push(member);
                return;
            }
            group.is_full = true;
        }
        self.groups.push(Packed { pmu, members: vec![member], is_full: !joins });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::builders::{event, group};
    use crate::events::{Encoding, EventKind};

    fn of_kind(name: &str, kind: EventKind) -> Event {
        Event { kind, ..event(name) }
    }

    #[test]
    fn a_row_is_one_of_an_event_in_a_part_or_of_an_anchor() {
        let layout = RowLayout::new(3, 6);
        assert_eq!((layout.row(EventIndex(2), 1), layout.anchor(1), layout.parts()), (5, 7, 2));
        assert_eq!((layout.split(5), layout.split(6)), (Some((EventIndex(2), 1)), None));
        let empty = RowLayout::new(0, 0);
        assert_eq!((empty.anchor(0), empty.parts(), empty.split(0)), (0, 0, None));
    }

    #[test]
    fn events_of_the_cores_share_a_group_by_whatever_type_they_are_counted() {
        let of_type = |pmu_type, of_cores| Event {
            kind: EventKind::Pmu,
            encoding: Encoding { pmu_type, config: 8, of_cores, ..Encoding::default() },
            ..event(&format!("type {pmu_type}"))
        };
        let groups: Vec<_> =
            [of_type(0, false), of_type(3, false), of_type(4, false), of_type(8, true), of_type(9, false)]
                .into_iter()
                .map(|event| group(GroupBinding::Free, [event]))
                .collect();
        let plan = Plan::new(groups, &mut counters(6)).unwrap();
        assert_eq!(members(&plan), [vec![0, 1, 2, 3], vec![4]]);
    }

    /// A machine with so many counters, which knows no event called `absent`.
    fn counters(most: usize) -> impl FnMut(&[&Event]) -> Fit {
        move |events| match events {
            _ if events.iter().any(|event| event.name == "absent") => Fit::Unknown,
            _ if events.len() <= most => Fit::Fits,
            _ => Fit::TooMany,
        }
    }

    fn free(names: &[&str]) -> Vec<events::Group> {
        names.iter().map(|name| group(GroupBinding::Free, [event(name)])).collect()
    }

    /// The events of each group, by their places.
    pub(super) fn members(plan: &Plan) -> Vec<Vec<usize>> {
        let place = |member: &Member| member.event().map(|event| event.0);
        plan.groups.iter().map(|group| group.members.iter().filter_map(place).collect()).collect()
    }

    #[test]
    fn software_events_share_a_group_apart_from_hardware() {
        let groups = vec![
            group(GroupBinding::Free, [of_kind("task-clock", EventKind::Software)]),
            group(GroupBinding::Free, [event("cycles")]),
            group(GroupBinding::Braces, ["a", "b"].map(event)),
            group(GroupBinding::Free, [of_kind("sched:sched_switch", EventKind::Tracepoint)]),
        ];
        let plan = Plan::new(groups, &mut counters(4)).unwrap();
        assert_eq!(members(&plan), [vec![0, 4], vec![1], vec![2, 3]]);
        assert_eq!(plan.groups[2].cohesion, Cohesion::Required);
    }

    #[test]
    fn free_hardware_events_fill_the_counters() {
        let plan = Plan::new(free(&["a", "b", "c", "d", "e", "f", "g"]), &mut counters(3)).unwrap();
        assert_eq!(members(&plan), [vec![0, 1, 2], vec![3, 4, 5], vec![6]]);
    }

    #[test]
    fn an_event_that_is_absent_stands_alone_and_takes_no_place() {
        let plan = Plan::new(free(&["a", "absent", "b", "absent"]), &mut counters(3)).unwrap();
        assert_eq!(members(&plan), [vec![0, 2], vec![1], vec![3]]);
    }

    #[test]
    fn pinned_events_stand_alone_and_pmus_apart() {
        let mut groups = free(&["a", "b", "c"]);
        groups[0].events[0].modifiers.pinned = true;
        groups[2].events[0].encoding.pmu_type = 9;
        let plan = Plan::new(groups, &mut counters(4)).unwrap();
        assert_eq!(members(&plan), [vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn braces_have_the_counters_that_pinned_events_leave() {
        let mut groups = vec![group(GroupBinding::Braces, ["a", "b", "c", "d"].map(event))];
        let mut pinned = free(&["x"]);
        pinned[0].events[0].modifiers.pinned = true;
        assert!(Plan::new(groups.clone(), &mut counters(4)).is_ok());
        groups.extend(pinned);
        let refused = Plan::new(groups.clone(), &mut counters(4)).unwrap_err();
        assert_eq!((refused.names.len(), refused.fit), (4, 3));
        assert!(Plan::new(groups, &mut counters(5)).is_ok());
    }

    #[test]
    fn groups_fill_the_counters_that_pinned_events_leave() {
        let mut groups = free(&["a", "b", "c", "d", "e"]);
        groups[1].events[0].modifiers.pinned = true;
        let plan = Plan::new(groups, &mut counters(3)).unwrap();
        assert_eq!(members(&plan), [vec![0, 2], vec![1], vec![3, 4]]);
    }

    #[test]
    fn braces_that_do_not_fit_are_refused_and_weak_ones_opened_singly() {
        let five = |binding| vec![group(binding, ["a", "b", "c", "d", "e"].map(event))];
        let refused = Plan::new(five(GroupBinding::Braces), &mut counters(3)).unwrap_err();
        assert_eq!((refused.names.len(), refused.fit), (5, 3));
        let weak = Plan::new(five(GroupBinding::Weak), &mut counters(3)).unwrap();
        assert_eq!(members(&weak), [vec![0, 1, 2], vec![3, 4]]);
        let kept = Plan::new(five(GroupBinding::Weak), &mut counters(5)).unwrap();
        assert_eq!(kept.groups[0].cohesion, Cohesion::Preferred);
    }

    #[test]
    fn no_events_make_no_groups() {
        assert_eq!(Plan::new(vec![], &mut counters(1)), Ok(Plan::default()));
    }

    proptest! {
        #[test]
        fn every_event_is_in_exactly_one_group(kinds in prop::collection::vec((any::<bool>(), 0u8..4), 0..700), most in 1usize..9) {
            let kind = |software: bool| if software { EventKind::Tracepoint } else { EventKind::Hardware };
            let name = |n: u8| if n == 0 { "absent" } else { "present" };
            let groups = kinds.iter().map(|&(software, n)| group(GroupBinding::Free, [of_kind(name(n), kind(software))]));
            let plan = Plan::new(groups.collect(), &mut counters(most)).unwrap();
            let mut all: Vec<_> = members(&plan).concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..kinds.len()).collect::<Vec<_>>());
            for members in members(&plan) {
                let hardware = members.iter().filter(|&&index| !plan.events[index].kind.is_software()).count();
                prop_assert!(hardware == 0 || hardware == members.len() && hardware <= most);
            }
        }
    }
}
