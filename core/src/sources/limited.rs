//! Limits a source that counts everything to a few counters, and keeps the truth beside.
//!
//! Events are rotated as the kernel does it: groups stand in a list, those at its head are on the
//! counters as far as they fit, and each slice moves the head to the tail.
//!
//! ```text
//! --counters 2, groups {a} {b} {c}       slice 0  slice 1  slice 2  slice 3
//!                              on        a b      b c      c a      a b
//! ```
//!
//! Where sums tie events, slices are those of [`RoundRobin`] instead: a pair of a sum counts three events.
//!
//! What an event counts while it is off is left out of its reading, and only there: the truth is the
//! source's own reading, in a column of its own. So the error of every estimate is known, for a real
//! program on any machine.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::perf::CounterRow;
use super::{CounterSource, Next, Reading, Round};
use crate::plan::{Member, Plan, PlannedGroup, RoundRobin, RowIndex};
use crate::units::WallNs;

/// A source whose events are multiplexed on a few counters.
#[derive(Debug)]
pub struct Limited<S> {
    source: S,
    /// Groups that never leave: pinned ones.
    fixed: Vec<RotatedGroup>,
    rotation: EmulatedRotation,
    /// Length of a slice; a round where `None`.
    slice: Option<Duration>,
    /// The truth so far, and what of it was counted.
    truth: Vec<Option<Reading>>,
    counted: Vec<Option<Reading>>,
    at: WallNs,
    /// The rows of the source of which a part isn't counted any more.
    uncounted: Vec<RowIndex>,
    state: LimitedState,
}

/// State of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitedState {
    Runs,
    /// The source has ended, and its last round was not given yet.
    LastRound,
    Ended,
}

/// Which groups are on the counters that pinned ones leave.
#[derive(Debug)]
enum EmulatedRotation {
    /// Those at the head of a list, as the kernel does it.
    Kernel { queue: VecDeque<RotatedGroup>, counters: usize },
    /// The companions that sums ask for; the rows of those that are on, and of each event.
    Companions { slices: RoundRobin, on: Vec<RowIndex>, rows: Vec<Vec<RowIndex>> },
}

/// A group that is on the counters or off as a whole, in all scopes.
#[derive(Clone, Debug)]
struct RotatedGroup {
    /// Its members that are open.
    members: Vec<Member>,
    rows: Vec<RowIndex>,
}

impl RotatedGroup {
    fn counters(&self) -> usize {
        self.members.len()
    }
}

impl EmulatedRotation {
    /// The rotation of these groups on so many counters; `rows` are those of the source.
    fn new(plan: &Plan, groups: Vec<RotatedGroup>, counters: usize, rows: &[CounterRow]) -> Self {
        if plan.sums.is_empty() {
            return Self::Kernel { queue: groups.into(), counters };
        }
        let mut of_events = vec![Vec::new(); plan.events.len()];
        let number = |member: &Member| member.event().map(|event| event.0);
        for (place, row) in rows.iter().enumerate() {
            number(&row.member).into_iter().for_each(|event: usize| of_events[event].push(place));
        }
        let groups = groups.iter().map(|group| group.members.iter().filter_map(number).collect()).collect();
        let slices = RoundRobin::new(groups, counters, plan.sums_by_number());
        let mut rotation = Self::Companions { slices, on: Vec::new(), rows: of_events };
        rotation.next();
        rotation
    }

    /// Ends the slice.
    fn next(&mut self) {
        match self {
            Self::Kernel { queue, .. } => {
                let head = queue.pop_front();
                queue.extend(head);
            }
            Self::Companions { slices, on, rows } => {
                *on = slices.next_slice().into_iter().flat_map(|event| rows[event].iter().copied()).collect();
            }
        }
    }

    /// The rows on the counters.
    fn on(&self) -> Vec<RowIndex> {
        match self {
            // Chosen as the kernel does: from the head, until a group doesn't fit.
            Self::Kernel { queue, counters } => {
                let mut left = *counters;
                let fits = |group: &&RotatedGroup| {
                    let fits = group.counters() <= left;
                    left = left.saturating_sub(group.counters());
                    fits
                };
                queue.iter().take_while(fits).flat_map(|group| group.rows.iter().copied()).collect()
            }
            Self::Companions { on, .. } => on.clone(),
        }
    }
}

impl<S: CounterSource> Limited<S> {
    /// Multiplexes the groups of a plan on so many counters, a new slice every `slice`, or every round
    /// where that is `None`. `rows` are those of the source.
    pub fn new(source: S, plan: &Plan, rows: &[CounterRow], counters: usize, slice: Option<Duration>) -> Self {
        let group = |group: &PlannedGroup| {
            let members: Vec<_> = group.members.iter().copied().filter(|&member| is_open(rows, member)).collect();
            let is_member = |row: &CounterRow| members.contains(&row.member) && row.status.is_open();
            let rows = rows.iter().enumerate().filter(|(_, row)| is_member(row)).map(|(place, _)| place).collect();
            let is_pinned = group.members.first().is_some_and(|&leader| plan.event(leader).modifiers.pinned);
            (is_pinned, RotatedGroup { members, rows })
        };
        let groups = plan.groups.iter().map(group).filter(|(_, group)| group.counters() > 0);
        let (fixed, rotated): (Vec<_>, Vec<_>) = groups.partition(|(is_pinned, _)| *is_pinned);
        let mut left = counters;
        let fits = |(_, group): (bool, RotatedGroup)| {
            left = left.checked_sub(group.counters())?;
            Some(group)
        };
        let fixed: Vec<_> = fixed.into_iter().filter_map(fits).collect();
        let rotated = rotated.into_iter().map(|(_, group)| group).collect();
        Self {
            source,
            rotation: EmulatedRotation::new(plan, rotated, left, rows),
            fixed,
            slice,
            truth: vec![None; rows.len()],
            counted: vec![None; rows.len()],
            at: WallNs(0),
            uncounted: Vec::new(),
            state: LimitedState::Runs,
        }
    }

    /// Begins after so many turns.
    #[must_use]
    pub fn after(mut self, turns: usize) -> Self {
        (0..turns).for_each(|_| self.rotation.next());
        self
    }

    /// Adds what came since the last look to the groups that were on, and rotates.
    fn advance(&mut self) {
        match self.source.read() {
            Next::Ended if self.state == LimitedState::Runs => self.state = LimitedState::LastRound,
            Next::Ended => {}
            Next::Round(round) => {
                self.at = round.at;
                self.take(&round);
                self.uncounted = round.uncounted;
            }
        }
    }

    fn take(&mut self, round: &Round) {
        let mut is_on = vec![false; self.truth.len()];
        let fixed = self.fixed.iter().flat_map(|group| group.rows.iter().copied());
        fixed.chain(self.rotation.on()).for_each(|row| is_on[row] = true);
        let mut time_passed = false;
        for (row, now) in round.readings.iter().enumerate().take(self.truth.len()) {
            let Some(now) = *now else { continue };
            let before = self.truth[row].replace(now).unwrap_or_default();
            // A reading that went backwards is a finding of its own, in the truth.
            let Some(delta) = since(before, now) else { continue };
            time_passed |= delta.enabled.0 > 0;
            let counted = self.counted[row].get_or_insert_default();
            counted.enabled += delta.enabled;
            if is_on[row] {
                counted.count = counted.count.saturating_add(delta.count);
                counted.running += delta.running;
            }
        }
        // The kernel's rotation timer stands while nothing runs.
        if time_passed {
            self.rotation.next();
        }
    }
}

/// Whether an event is counted in some row.
fn is_open(rows: &[CounterRow], member: Member) -> bool {
    rows.iter().any(|row| row.member == member && row.status.is_open())
}

/// What came between two readings; `None` if one went backwards.
fn since(earlier: Reading, later: Reading) -> Option<Reading> {
    Some(Reading {
        count: later.count.checked_sub(earlier.count)?,
        enabled: later.enabled.checked_sub(earlier.enabled)?,
        running: later.running.checked_sub(earlier.running)?,
    })
}

impl<S: CounterSource> CounterSource for Limited<S> {
    fn read(&mut self) -> Next {
        if self.state == LimitedState::Runs {
            self.advance();
        }
        match self.state {
            LimitedState::Ended => return Next::Ended,
            // Slices within a round have read the last one already.
            LimitedState::LastRound if self.slice.is_some() => self.state = LimitedState::Ended,
            LimitedState::LastRound => return Next::Ended,
            LimitedState::Runs => {}
        }
        let readings = self.counted.iter().chain(&self.truth).copied().collect();
        Next::Round(Round { at: self.at, readings, uncounted: self.uncounted.clone(), ..Round::default() })
    }

    fn has_executed(&mut self) {
        self.source.has_executed();
    }

    fn end(&mut self) {
        self.source.end();
    }

    fn enable(&mut self) {
        self.source.enable();
    }

    fn start_clock(&mut self, start: Instant) {
        self.source.start_clock(start);
    }

    fn beat(&self) -> Option<Duration> {
        self.slice.or(self.source.beat())
    }

    fn tick(&mut self) {
        match self.slice {
            Some(_) if self.state == LimitedState::Runs => self.advance(),
            Some(_) => {}
            None => self.source.tick(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::builders::{counter_rows, plan};
    use crate::plan::{EventIndex, KERNEL_SLICE};
    use crate::sources::Status;
    use crate::sources::scripted::ScriptedSource;
    use crate::units::CpuNs;

    /// Every event counts 10 a round, of 1 ns.
    fn steady(events: usize, rounds: u64) -> ScriptedSource {
        let reading = |n: u64| Some(Reading { count: 10 * n, enabled: CpuNs(n), running: CpuNs(n) });
        ScriptedSource::new((1..=rounds).map(move |n| Round {
            at: WallNs(n),
            readings: vec![reading(n); events],
            ..Round::default()
        }))
    }

    fn counts(mut source: impl CounterSource) -> Vec<Vec<(u64, u64)>> {
        let mut all = Vec::new();
        while let Next::Round(round) = source.read() {
            all.push(round.readings.iter().flatten().map(|reading| (reading.count, reading.running.0)).collect());
        }
        all
    }

    #[test]
    fn single_events_take_turns_as_in_the_picture() {
        let limited = Limited::new(steady(3, 4), &plan(&[1, 1, 1]), &counter_rows(3), 2, None);
        let rounds = counts(limited);
        assert_eq!(rounds.len(), 4);
        // a b | b c | c a | a b
        let on: Vec<_> = rounds.iter().map(|round| [round[0].1, round[1].1, round[2].1]).collect();
        assert_eq!(on, [[1, 1, 0], [1, 2, 1], [2, 2, 2], [3, 3, 2]]);
        assert_eq!(rounds[3][3..], [(40, 4); 3]);
    }

    #[test]
    fn two_events_of_a_sum_are_on_the_counters_in_each_slice() {
        let mut plan = plan(&[1; 3]);
        plan.sums = vec![[0, 1, 2].map(EventIndex).into()];
        let mut limited = Limited::new(steady(3, 30), &plan, &counter_rows(3), 2, None);
        let mut before = [0; 3];
        while let Next::Round(round) = limited.read() {
            let running = [0, 1, 2].map(|row| round.readings[row].map_or(0, |reading| reading.running.0));
            assert_eq!(running.iter().sum::<u64>(), before.iter().sum::<u64>() + 2);
            before = running;
        }
        assert!(before.iter().all(|&slices| (18..=22).contains(&slices)), "{before:?}");
    }

    #[test]
    fn a_group_that_does_not_fit_ends_the_filling_as_in_the_kernel() {
        // {0} {1,2} {3} on 2 counters: 0 alone, although 3 would fit too; 1 and 2; 3 and 0.
        let limited = Limited::new(steady(4, 3), &plan(&[1, 2, 1]), &counter_rows(4), 2, None);
        let rounds = counts(limited);
        assert_eq!(rounds[0][..4], [(10, 1), (0, 0), (0, 0), (0, 0)]);
        assert_eq!(rounds[1][..4], [(10, 1), (10, 1), (10, 1), (0, 0)]);
        assert_eq!(rounds[2][..4], [(20, 2), (10, 1), (10, 1), (10, 1)]);
    }

    #[test]
    fn pinned_events_stay_and_closed_ones_take_no_counter() {
        let mut plan = plan(&[1, 1, 1]);
        plan.events[2].modifiers.pinned = true;
        let mut rows = counter_rows(3);
        rows[0].status = Status::NotSupported;
        let rounds = counts(Limited::new(steady(3, 4), &plan, &rows, 2, None));
        assert_eq!(rounds[3][1..3], [(40, 4); 2]);
    }

    #[test]
    fn a_later_run_begins_with_another_group() {
        let first = |turns: usize| {
            let limited = Limited::new(steady(3, 4), &plan(&[1, 1, 1]), &counter_rows(3), 1, None).after(turns);
            counts(limited)[0].iter().position(|&(count, _)| count > 0)
        };
        assert_eq!([0, 1, 2, 3].map(first), [Some(0), Some(1), Some(2), Some(0)]);
    }

    #[test]
    fn the_clock_of_turns_stands_while_nothing_runs() {
        let idle = Reading { count: 5, enabled: CpuNs(5), running: CpuNs(5) };
        let busy = Reading { count: 9, enabled: CpuNs(9), running: CpuNs(9) };
        let rounds = [idle, idle, idle, busy].map(|reading| Round {
            at: WallNs(1),
            readings: vec![Some(reading); 2],
            ..Round::default()
        });
        let rounds = counts(Limited::new(ScriptedSource::new(rounds), &plan(&[1, 1]), &counter_rows(2), 1, None));
        assert_eq!(rounds[3][..2], [(5, 5), (4, 4)]);
    }

    #[test]
    fn turns_within_a_round_lose_no_last_round() {
        let mut limited = Limited::new(steady(2, 3), &plan(&[1, 1]), &counter_rows(2), 1, Some(KERNEL_SLICE));
        (0..5).for_each(|_| limited.tick());
        let rounds = counts(limited);
        assert_eq!(rounds.len(), 1);
        assert_eq!(rounds[0], [(20, 2), (10, 1), (30, 3), (30, 3)]);
    }

    proptest! {
        #[test]
        fn what_is_counted_is_a_part_of_the_truth(
            events in 1usize..8, counters in 1usize..5, deltas in prop::collection::vec((0u64..1000, 0u64..5), 1..50)
        ) {
            let mut now = Reading::default();
            let script: Vec<_> = deltas.iter().map(|&(count, time)| {
                now.count += count;
                now.enabled += CpuNs(time);
                now.running += CpuNs(time);
                Round { at: WallNs(1), readings: vec![Some(now); events], ..Round::default() }
            }).collect();
            let mut limited = Limited::new(ScriptedSource::new(script), &plan(&vec![1; events]), &counter_rows(events), counters, None);
            let mut last = None;
            while let Next::Round(round) = limited.read() {
                last = Some(round.readings);
            }
            let last = last.unwrap_or_default();
            for (counted, truth) in last[..events].iter().zip(&last[events..]) {
                let (Some(counted), Some(truth)) = (counted, truth) else { continue };
                prop_assert!(counted.count <= truth.count && counted.running <= counted.enabled);
                prop_assert_eq!(counted.enabled, truth.enabled);
            }
            let running: u64 = last[..events].iter().flatten().map(|reading| reading.running.0).sum();
            let most = now.running.0 * counters.min(events) as u64;
            prop_assert!(running <= most);
        }
    }
}
