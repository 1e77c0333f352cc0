//! Rotates groups on the counters, one slice at a time.
//!
//! The kernel moves groups by a timer of its own, every 4 ms at 250 Hz. Here perfprop's sampler does it, in
//! slices of [`SLICE`]: what is not on is disabled, so that the kernel has nothing to rotate.
//!
//! ```text
//!           slice 0      slice 1      slice 2      slice 3
//! group a   on           off          off          on
//! group b   off          on           off          off
//! clock     on           on           on           on         a software event that counts nothing
//! ```
//!
//! A disabled group's own `time_enabled` stands still. The time that counts are scaled to is therefore that
//! of a *clock*: a dummy event in the same place, never disabled and inherited as the groups are, so
//! that its `time_enabled` is the CPU time of the monitored tasks. `time_running` and the count are the
//! kernel's own words on the group. So a reading stays true whatever happens to a switch: a group that is
//! disabled late, or a process that was forked in between, has run for as long as the kernel says.
//!
//! Only leaders are switched: with a leader disabled the whole group is off, in the tasks that
//! inherited it too, at one request a group.
//!
//! The first cycles are shorter: a program begins with cold caches and page faults for some milliseconds, and with
//! slices of 2 ms some groups would see all of that, and others nothing.

use std::time::{Duration, Instant};

use super::OpenGroup;
use crate::plan::{GroupIndex, Rotation, set_at};

/// Length of a slice, unless switching costs too much for that.
pub const SLICE: Duration = Duration::from_millis(2);

/// Length of a slice in the first cycle; each cycle has slices of twice that of the one before, up to the usual ones.
const FIRST_SLICE: Duration = Duration::from_micros(250);

/// After so many doublings slices are as long as any.
const MOST_DOUBLINGS: usize = 8;

/// The part of a CPU that switching may take.
pub const BUDGET: f64 = 0.01;

/// The part that it may take in the first cycles.
const FIRST_BUDGET: f64 = 0.1;

/// No slice is longer than this, whatever it costs.
const LONGEST_SLICE: Duration = Duration::from_millis(50);

/// The cost of a switch is the least of so many: whatever interrupts perfprop only adds to it.
const COSTS: usize = 16;

/// A group of counters in one place, as far as rotation needs it.
pub(super) trait Switched {
    /// Index of the group in the plan.
    fn group(&self) -> GroupIndex;
    /// Puts it on the counters, or takes it off.
    fn switch(&mut self, on: bool);
    /// Reads what it counted, to keep it while it is off.
    fn keep(&mut self);
}

/// A set of a rotation, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SetPlace {
    rotation: usize,
    set: usize,
}

/// The rotations of all PMUs, and where each stands.
#[derive(Debug)]
pub(super) struct PmuRotations {
    rotations: Vec<Rotation>,
    /// By group: the sets of rotations that it is in. A group that is in none needs no slice.
    places: Vec<Vec<SetPlace>>,
    /// The place in the cycle of each rotation.
    current: Vec<usize>,
    /// Number of slices before this one.
    slices: usize,
    /// Whether nothing that is counted ran in the last slice.
    is_idle: bool,
    budget: f64,
    costs: [Duration; COSTS],
    switches: usize,
}

impl PmuRotations {
    /// Rotations at the beginning of their cycles, which may take this part of a CPU.
    pub(super) fn new(rotations: Vec<Rotation>, budget: f64) -> Self {
        let current = rotations.iter().map(|rotation| set_at(0, rotation.sets.len())).collect();
        let mut places: Vec<Vec<SetPlace>> = Vec::new();
        for (rotation, one) in rotations.iter().enumerate() {
            for (set, groups) in one.sets.iter().enumerate() {
                for group in groups {
                    places.resize_with(places.len().max(group.0 + 1), Vec::new);
                    places[group.0].push(SetPlace { rotation, set });
                }
            }
        }
        Self {
            rotations,
            places,
            current,
            slices: 0,
            is_idle: false,
            budget,
            costs: [Duration::ZERO; COSTS],
            switches: 0,
        }
    }

    /// Whether nothing is multiplexed.
    pub(super) fn is_empty(&self) -> bool {
        self.rotations.is_empty()
    }

    /// Whether a group has to wait for its slice, now or at other times.
    pub(super) fn has(&self, group: GroupIndex) -> bool {
        !self.places_of(group).is_empty()
    }

    /// Whether a group is on the counters: it has its slice, or needs none.
    pub(super) fn is_on(&self, group: GroupIndex) -> bool {
        let places = self.places_of(group);
        places.is_empty() || places.iter().any(|place| self.current[place.rotation] == place.set)
    }

    fn places_of(&self, group: GroupIndex) -> &[SetPlace] {
        self.places.get(group.0).map_or(&[], Vec::as_slice)
    }

    /// Ends the slice: takes off the groups that are on, puts on the next ones, and keeps what was counted. The same
    /// groups may stay on ([`set_at`]).
    ///
    /// The counts are read last, so that no counter waits for that.
    pub(super) fn next<G: Switched>(&mut self, groups: &mut [G]) {
        self.is_idle = false;
        let began = Instant::now();
        let was_on: Vec<_> = groups.iter().map(|group| self.is_on(group.group())).collect();
        self.slices += 1;
        for (rotation, turn) in self.rotations.iter().zip(&mut self.current) {
            let turns = rotation.sets.len();
            *turn = set_at(self.slices, turns);
        }
        let is_on: Vec<_> = groups.iter().map(|group| self.is_on(group.group())).collect();
        // Groups that stay on cost nothing, which is no news of what a switch costs.
        if was_on == is_on {
            return;
        }
        for on in [false, true] {
            for ((group, was_on), is_on) in groups.iter_mut().zip(&was_on).zip(&is_on) {
                if was_on != is_on && *is_on == on {
                    group.switch(on);
                }
            }
        }
        for ((group, was_on), is_on) in groups.iter_mut().zip(&was_on).zip(&is_on) {
            if *was_on && !*is_on {
                group.keep();
            }
        }
        self.costs[self.switches % COSTS] = began.elapsed();
        self.switches += 1;
    }

    /// What a switch costs, from the last ones; nothing before the first.
    pub(super) fn cost(&self) -> Duration {
        self.costs.iter().take(self.switches).min().copied().unwrap_or_default()
    }

    /// Goes on with the slice, as nothing that is counted ran in it.
    pub(super) fn wait(&mut self) {
        self.is_idle = true;
    }

    /// How long a slice is: as short as the budget allows, and shorter in the first cycles.
    pub(super) fn slice(&self) -> Duration {
        let usual = slice(self.cost(), SLICE, self.budget);
        if self.is_idle {
            return usual;
        }
        let cycle = self.slices / self.rotations.iter().map(|rotation| rotation.sets.len()).max().unwrap_or(1);
        usual.min(slice(self.cost(), FIRST_SLICE, FIRST_BUDGET) * (1 << cycle.min(MOST_DOUBLINGS)))
    }
}

/// The shortest slice, of those that are no shorter than `least`, in which a switch that costs so much takes no more
/// than a part of a CPU.
fn slice(cost: Duration, least: Duration, budget: f64) -> Duration {
    let affordable = Duration::try_from_secs_f64(cost.as_secs_f64() / budget).unwrap_or(LONGEST_SLICE);
    affordable.clamp(least, LONGEST_SLICE)
}

impl Switched for OpenGroup {
    fn group(&self) -> GroupIndex {
        self.group
    }

    fn switch(&mut self, on: bool) {
        // A task that has ended since cannot be switched, and needs not be.
        let _ = if on { self.leader.enable() } else { self.leader.disable() };
    }

    fn keep(&mut self) {
        self.refresh();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;
    use crate::builders::rotation;

    /// The switches that a kernel would see.
    type Log = Rc<RefCell<Vec<String>>>;

    struct ScriptedCounters(GroupIndex, Log);

    impl Switched for ScriptedCounters {
        fn group(&self) -> GroupIndex {
            self.0
        }

        fn switch(&mut self, on: bool) {
            self.1.borrow_mut().push(format!("{}{}", if on { '+' } else { '-' }, self.0.0));
        }

        fn keep(&mut self) {
            self.1.borrow_mut().push(format!("={}", self.0.0));
        }
    }

    fn groups(count: usize) -> (Vec<ScriptedCounters>, Log) {
        let log = Log::default();
        ((0..count).map(|group| ScriptedCounters(GroupIndex(group), Rc::clone(&log))).collect(), log)
    }

    fn turns(rotations: &[&[&[usize]]]) -> PmuRotations {
        PmuRotations::new(rotations.iter().map(|sets| rotation(sets)).collect(), BUDGET)
    }

    fn is_on(turns: &PmuRotations, group: usize) -> bool {
        turns.is_on(GroupIndex(group))
    }

    #[test]
    fn a_turn_takes_off_then_puts_on_then_reads() {
        let (mut groups, log) = groups(4);
        // Group 3 isn't rotated and is left alone.
        let mut turns = turns(&[&[&[0], &[1, 2]]]);
        assert_eq!([0, 1, 2, 3].map(|group| is_on(&turns, group)), [true, false, false, true]);
        turns.next(&mut groups);
        assert_eq!(log.take(), ["-0", "+1", "+2", "=0"]);
        // The next cycle has another order.
        turns.next(&mut groups);
        turns.next(&mut groups);
        assert_eq!(log.take(), ["-1", "-2", "+0", "=1", "=2"]);
    }

    #[test]
    fn pmus_turn_for_themselves() {
        let (mut groups, log) = groups(5);
        let mut turns = turns(&[&[&[0], &[1]], &[&[2], &[3], &[4]]]);
        turns.next(&mut groups);
        assert_eq!(log.take(), ["-0", "-2", "+1", "+3", "=0", "=2"]);
        assert!(is_on(&turns, 1) && is_on(&turns, 3) && !is_on(&turns, 4));
    }

    #[test]
    fn nothing_to_turn_asks_the_kernel_nothing() {
        let (mut groups, log) = groups(2);
        let mut turns = turns(&[]);
        turns.next(&mut groups);
        assert_eq!((log.take(), turns.is_empty(), is_on(&turns, 1)), (vec![], true, true));
    }

    #[test]
    fn a_switch_that_costs_more_makes_slices_longer() {
        let micros = Duration::from_micros;
        assert_eq!(slice(micros(0), SLICE, 0.01), SLICE);
        assert_eq!(slice(micros(20), SLICE, 0.01), SLICE);
        assert_eq!(slice(micros(60), SLICE, 0.01), Duration::from_millis(6));
        assert_eq!(slice(micros(60), SLICE, 0.1), SLICE);
        assert_eq!(slice(Duration::from_secs(1), SLICE, 0.01), LONGEST_SLICE);
        assert_eq!(slice(micros(1), SLICE, 0.0), LONGEST_SLICE);
    }

    #[test]
    fn the_first_cycles_are_short_by_hand() {
        let (mut groups, _) = groups(3);
        let mut turns = turns(&[&[&[0], &[1], &[2]]]);
        let slices: Vec<_> = (0..13)
            .map(|_| {
                let slice = turns.slice();
                turns.next(&mut groups);
                // What a switch of scripted counters costs is no part of this.
                turns.costs = [Duration::ZERO; COSTS];
                slice.as_micros()
            })
            .collect();
        assert_eq!(slices, [250, 250, 250, 500, 500, 500, 1000, 1000, 1000, 2000, 2000, 2000, 2000]);
    }

    #[test]
    fn short_slices_cost_a_tenth_at_most_and_none_while_nothing_runs() {
        let (mut groups, _) = groups(2);
        let mut turns = turns(&[&[&[0], &[1]]]);
        turns.wait();
        assert_eq!(turns.slice(), SLICE);
        turns.next(&mut groups);
        turns.costs = [Duration::from_micros(60); COSTS];
        assert_eq!(turns.slice(), Duration::from_micros(600));
        turns.wait();
        assert_eq!(turns.slice(), Duration::from_millis(6));
    }

    /// The number of slices in which each of some groups is on.
    fn slices_on(count: usize, slices: usize) -> Vec<usize> {
        let (mut groups, _) = groups(count);
        let each: Vec<_> = (0..count).map(|group| [group]).collect();
        let mut turns = PmuRotations::new(vec![rotation(&each)], BUDGET);
        let mut on = vec![0; count];
        for _ in 0..slices {
            (0..count).filter(|&group| is_on(&turns, group)).for_each(|group| on[group] += 1);
            turns.next(&mut groups);
        }
        on
    }

    #[test]
    fn a_turn_that_goes_on_asks_the_kernel_nothing_and_is_no_cost() {
        let (mut groups, log) = groups(2);
        let mut turns = turns(&[&[&[0], &[1]]]);
        turns.next(&mut groups);
        log.take();
        turns.next(&mut groups);
        assert_eq!((log.take(), turns.switches), (vec![], 1));
    }

    proptest! {
        #[test]
        fn turns_are_fair(count in 2usize..9, cycles in 1usize..5) {
            prop_assert_eq!(slices_on(count, count * cycles), vec![cycles; count]);
        }
    }
}
