//! Adds to what events counted what their anchors did, for the estimator.

use super::Monitor;
use crate::rates::Delta;
use crate::run::Anchor;
use crate::sources::{Reading, Round};
use crate::units::CpuNs;

/// Groups that are rotated leave one another no time in common but for the switch between them: times may add up to so
/// much more than there was.
const IN_COMMON: f64 = 0.01;

impl Monitor {
    /// What a round counted of the events that perfprop added, which only the estimator gets.
    pub(super) fn of_added(&mut self, round: &Round) -> Vec<Option<Delta>> {
        let added = self.header.added().zip(&mut self.added);
        added
            .map(|((place, event), last)| event.delta(last, round.readings.get(place).copied().flatten()?).ok())
            .collect()
    }

    /// What a round counted of each event, in all the groups that it is counted in. What its own group counted stays
    /// raw.
    pub(super) fn in_all_groups(&mut self, own: &[Option<Delta>], round: &Round) -> Vec<Option<Delta>> {
        let mut all = own.to_vec();
        if self.header.anchors.is_empty() {
            return all;
        }
        let mut counted: Vec<Vec<Delta>> = own.iter().map(|delta| delta.iter().copied().collect()).collect();
        let layout = self.header.layout();
        for (number, anchor) in self.header.anchors.iter().enumerate() {
            let Anchor::Again(anchor) = anchor else { continue };
            let reading: Option<Reading> = round.readings.get(layout.anchor(number)).copied().flatten();
            let (Some(reading), Some(last)) = (reading, self.anchors.get_mut(number)) else { continue };
            let event = anchor.anchor_of;
            if let (Ok(delta), Some(counted)) = (self.header.events[event].delta(last, reading), counted.get_mut(event))
            {
                counted.push(delta);
            }
        }
        for (delta, counted) in all.iter_mut().zip(counted).filter(|(delta, _)| delta.is_some()) {
            *delta = together(&counted);
        }
        all
    }
}

/// What several groups counted of an event: their sum if they took turns, else what the one counted that had most time.
fn together(groups: &[Delta]) -> Option<Delta> {
    let own = *groups.first()?;
    let count = groups.iter().fold(0u64, |sum, delta| sum.saturating_add(delta.count));
    let running: u64 = groups.iter().map(|delta| delta.running.0).sum();
    if running as f64 <= (1.0 + IN_COMMON) * own.enabled.0 as f64 {
        return Some(Delta { count, running: CpuNs(running.min(own.enabled.0)), ..own });
    }
    groups.iter().copied().max_by(|a, b| a.run_ratio().total_cmp(&b.run_ratio()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(count: u64, running: u64) -> Delta {
        Delta { count, enabled: CpuNs(1000), running: CpuNs(running) }
    }

    #[test]
    fn groups_that_take_turns_add_up() {
        assert_eq!(together(&[delta(10, 300), delta(25, 700)]), Some(delta(35, 1000)));
        // A hair too much is the switch between them.
        assert_eq!(together(&[delta(10, 300), delta(25, 705)]), Some(delta(35, 1000)));
        assert_eq!(together(&[delta(10, 300)]), Some(delta(10, 300)));
        assert_eq!(together(&[]), None);
    }

    #[test]
    fn groups_that_count_at_the_same_time_dont_add_up() {
        assert_eq!(together(&[delta(10, 600), delta(25, 700)]), Some(delta(25, 700)));
    }
}
