//! Counts an event on several like units, whose counts add up to its own.
//!
//! Each unit has counters of its own, and a group is opened on each. Counts add up; times don't, as the units count
//! at the same time: that of the event is the mean of theirs.

use std::borrow::Cow;

use super::CounterRow;
use crate::events::{Event, EventKind};
use crate::plan::{Member, Plan, PlannedGroup, RowIndex};
use crate::sources::Reading;
use crate::units::CpuNs;

/// A member of a group on one of its event's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitMember {
    /// The event of the plan, or its anchor.
    pub(super) member: Member,
    /// The place of the unit among the event's; `None` where it has no several.
    pub(super) unit: Option<usize>,
}

impl UnitMember {
    /// The event as it is opened there.
    pub(super) fn event(self, plan: &Plan) -> Cow<'_, Event> {
        let event = plan.event(self.member);
        let unit = self.unit.and_then(|unit| event.units().get(unit));
        unit.map_or(Cow::Borrowed(event), |unit| Cow::Owned(event.on(unit)))
    }

    /// The CPUs that it is opened on; none where it may be any.
    pub(super) fn cpus(self, plan: &Plan) -> &[u32] {
        let event = plan.event(self.member);
        self.unit.and_then(|unit| event.units().get(unit)).map_or(&event.encoding.cpus, |unit| &unit.encoding.cpus)
    }
}

/// The members of a group that the kernel counts, those of each unit for themselves. What has no units goes with the
/// first.
pub(super) fn on_units(plan: &Plan, group: &PlannedGroup) -> Vec<Vec<UnitMember>> {
    let members = || group.members.iter().copied().filter(|&member| plan.event(member).kind != EventKind::Tool);
    let mut pmus: Vec<&str> = Vec::new();
    for unit in members().flat_map(|member| plan.event(member).units()) {
        if !pmus.contains(&unit.pmu.as_str()) {
            pmus.push(&unit.pmu);
        }
    }
    let on = |place: usize, member: Member| match plan.event(member).units() {
        [] => (place == 0).then_some(UnitMember { member, unit: None }),
        units => {
            let unit = units.iter().position(|unit| pmus.get(place) == Some(&unit.pmu.as_str()))?;
            Some(UnitMember { member, unit: Some(unit) })
        }
    };
    (0..pmus.len().max(1)).map(|place| members().filter_map(|member| on(place, member)).collect()).collect()
}

/// Adds the readings of all places and units up to those of their rows.
#[derive(Debug)]
pub(super) struct RowSums {
    /// On how many units each row is counted.
    units: Vec<u64>,
}

impl RowSums {
    pub(super) fn new(rows: &[CounterRow]) -> Self {
        let open = |row: &CounterRow| row.units.iter().filter(|status| status.is_open()).count().max(1) as u64;
        Self { units: rows.iter().map(open).collect() }
    }

    /// Adds what was read in one place of a row, on one unit.
    pub(super) fn add(&self, readings: &mut [Option<Reading>], row: RowIndex, reading: Reading) {
        let sum = readings[row].get_or_insert_default();
        let of_row = |time: CpuNs| CpuNs(time.0 / self.units[row]);
        sum.count = sum.count.saturating_add(reading.count);
        sum.enabled += of_row(reading.enabled);
        sum.running += of_row(reading.running);
    }
}

/// The rows of which some units have been on a counter, and others not so far: their sum lacks those.
pub(super) fn lacking(units: impl Iterator<Item = (RowIndex, Reading)>, rows: usize) -> Vec<RowIndex> {
    let (mut some, mut all) = (vec![false; rows], vec![true; rows]);
    for (row, reading) in units {
        let has_run = reading.running.0 > 0;
        some[row] |= has_run;
        all[row] &= has_run;
    }
    (0..rows).filter(|&row| some[row] && !all[row]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::{self, counter_rows};
    use crate::events::{Encoding, PmuUnit};
    use crate::plan::{Cohesion, EventIndex};
    use crate::sources::Status;

    /// An event on the units of these PMUs, which are called by their types; on one PMU where there are none.
    fn event(units: &[u32]) -> Event {
        let unit = |&pmu_type: &u32| {
            let encoding = Encoding { pmu_type, ..Encoding::default() };
            PmuUnit { pmu: format!("imc_{pmu_type}"), encoding }
        };
        let encoding = Encoding { pmu_type: 9, units: units.iter().map(unit).collect(), ..Encoding::default() };
        Event { kind: EventKind::Pmu, encoding, ..builders::event("sum") }
    }

    /// The types that each member of a group is opened with, in each group that it becomes.
    fn opened(events: &[&[u32]]) -> Vec<Vec<(usize, u32)>> {
        let plan = Plan::of_group(events.iter().map(|units| event(units)).collect(), Cohesion::Chosen);
        let place = |member: &UnitMember| member.member.event().map_or(usize::MAX, |EventIndex(event)| event);
        let code = |member: &UnitMember| (place(member), member.event(&plan).encoding.pmu_type);
        on_units(&plan, &plan.groups[0]).iter().map(|members| members.iter().map(code).collect()).collect()
    }

    #[test]
    fn a_group_is_opened_on_each_unit() {
        assert_eq!(opened(&[&[], &[]]), [[(0, 9), (1, 9)]]);
        assert_eq!(opened(&[&[20, 21], &[20, 21]]), [[(0, 20), (1, 20)], [(0, 21), (1, 21)]]);
        // What has no units goes with the first; a unit that has only one of the events counts that one.
        assert_eq!(opened(&[&[], &[20, 21], &[21]]), [vec![(0, 9), (1, 20)], vec![(1, 21), (2, 21)]]);
    }

    fn reading(count: u64, enabled: u64, running: u64) -> Reading {
        Reading { count, enabled: CpuNs(enabled), running: CpuNs(running) }
    }

    fn row(units: &[Status]) -> CounterRow {
        CounterRow { units: units.to_vec(), ..counter_rows(1).remove(0) }
    }

    #[test]
    fn counts_of_units_add_up_and_their_time_is_the_time_that_passed() {
        let (open, refused) = (Status::Counted, Status::NotSupported);
        let rows = [row(&[open.clone(), open.clone()]), row(&[open.clone(), refused]), row(&[])];
        let sums = RowSums::new(&rows);
        let mut readings = vec![None; 3];
        // Two units; one of two; a PMU without units, on two CPUs.
        for (row, count, enabled, running) in
            [(0, 30, 100, 100), (0, 12, 100, 50), (1, 7, 100, 100), (2, 1, 100, 100), (2, 2, 100, 100)]
        {
            sums.add(&mut readings, row, reading(count, enabled, running));
        }
        assert_eq!(readings, [reading(42, 100, 75), reading(7, 100, 100), reading(3, 200, 200)].map(Some));
    }

    #[test]
    fn a_sum_lacks_a_unit_that_was_on_no_counter_while_others_were() {
        let seen = [(0, 5), (0, 5), (1, 5), (1, 0), (2, 0), (2, 0)];
        let readings = seen.map(|(row, running)| (row, reading(1, 10, running)));
        assert_eq!(lacking(readings.into_iter(), 4), [1]);
    }
}
