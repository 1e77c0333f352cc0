//! Finds the CPUs that went offline.
//!
//! The kernel takes the counters off a CPU that goes offline, without a word, and doesn't put them back when it is
//! online again: their times stand still, and so do their counts.

use std::collections::BTreeMap;

use super::{OpenGroup, PlaceClock};
use crate::plan::RowIndex;
use crate::units::{CpuNs, WallNs};

/// So much time passes beside a counter of a CPU that stands still.
const PASSED: WallNs = WallNs(5_000_000);

/// The CPUs that are watched, by their numbers.
#[derive(Debug, Default)]
pub(super) struct OfflineCpus {
    watched: BTreeMap<u32, WatchedCpu>,
    /// The rows of which one isn't counted any more, and since when.
    rows: BTreeMap<RowIndex, WallNs>,
}

/// When a CPU's counters were read, and for how long they had been enabled then.
#[derive(Clone, Copy, Debug)]
struct WatchedCpu {
    at: WallNs,
    enabled: CpuNs,
    /// When they stood still, had they done so at once.
    since: WallNs,
    is_off: bool,
}

impl WatchedCpu {
    fn new(at: WallNs, enabled: CpuNs) -> Self {
        Self { at, enabled, since: at, is_off: false }
    }

    /// Takes a later reading.
    fn look(&mut self, at: WallNs, enabled: CpuNs) {
        let has_begun = self.enabled.0 > 0;
        if enabled > self.enabled {
            let since = WallNs(self.at.0 + (enabled - self.enabled).0);
            *self = Self { since: if has_begun { since.min(at) } else { at }, ..Self::new(at, enabled) };
        } else {
            self.is_off |= has_begun && at >= self.at + PASSED;
        }
    }
}

impl OfflineCpus {
    /// The rows of which a CPU isn't counted any more, each with when the first one went.
    pub(super) fn rows(&self) -> Vec<(RowIndex, WallNs)> {
        self.rows.iter().map(|(&row, &since)| (row, since)).collect()
    }

    /// Looks at the times of each CPU, after its groups were read. One group tells, in the time of its clock where it
    /// takes turns.
    pub(super) fn look(&mut self, at: WallNs, groups: &[OpenGroup], clocks: &[PlaceClock]) {
        let mut seen = None;
        for group in groups.iter().filter(|group| group.is_read || group.clock.is_some()) {
            // Groups lie in the order of their CPUs.
            let Some(cpu) = group.cpu.filter(|&cpu| seen != Some(cpu)) else { continue };
            seen = Some(cpu);
            let Some(own) = group.last.first() else { continue };
            let enabled = group.clock.map_or(own.enabled, |clock| clocks[clock].time);
            self.watched.entry(cpu).or_insert_with(|| WatchedCpu::new(at, enabled)).look(at, enabled);
        }
        for (&cpu, off) in self.watched.iter().filter(|(_, watched)| watched.is_off) {
            for &row in groups.iter().filter(|group| group.cpu == Some(cpu)).flat_map(|group| &group.members) {
                self.rows.entry(row).or_insert(off.since);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen after rounds that read these times, of the wall and enabled, in milliseconds: since when the CPU is
    /// off.
    fn off_since(rounds: &[(u64, u64)]) -> Option<u64> {
        let ms = |ms: u64| ms * 1_000_000;
        let (first, more) = rounds.split_first()?;
        let mut watched = WatchedCpu::new(WallNs(ms(first.0)), CpuNs(ms(first.1)));
        more.iter().for_each(|&(at, enabled)| watched.look(WallNs(ms(at)), CpuNs(ms(enabled))));
        watched.is_off.then_some(watched.since.0 / 1_000_000)
    }

    #[test]
    fn counters_of_a_cpu_that_stand_still_are_off_since_they_did() {
        assert_eq!(off_since(&[(100, 98), (200, 198), (300, 298)]), None);
        assert_eq!(off_since(&[(100, 98), (200, 198), (300, 238), (400, 238)]), Some(240));
        // It stays so.
        assert_eq!(off_since(&[(100, 98), (200, 98), (300, 98)]), Some(100));
    }

    #[test]
    fn counters_that_have_not_begun_or_were_just_read_are_not() {
        assert_eq!(off_since(&[(100, 0), (200, 0), (300, 0), (400, 50)]), None);
        assert_eq!(off_since(&[(100, 98), (103, 98), (200, 195)]), None);
    }
}
