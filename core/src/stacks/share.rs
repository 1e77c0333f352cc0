//! Weighs samples of events that took turns on the counters: each stands for what happened while its event was off,
//! too.

use serde::{Deserialize, Serialize};

use crate::units::WallNs;

/// For how long an event was sampled of the time in which it was to be, up to a time since the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunShare {
    /// The time up to which it holds.
    pub until: WallNs,
    /// Place of the event in [`SamplingSetup::events`](super::SamplingSetup::events).
    pub event: u32,
    /// The time in which it was enabled where it can run, on all CPUs.
    pub enabled_ns: u64,
    /// The part of it in which it was on a counter.
    pub running_ns: u64,
}

/// The run shares of all events so far.
#[derive(Debug, Default)]
pub(super) struct RunShares {
    /// By event, in the order of time.
    all: Vec<Vec<RunShare>>,
}

impl RunShares {
    /// Takes over what is new.
    pub(super) fn take(&mut self, shares: &[RunShare]) {
        for share in shares {
            let event = share.event as usize;
            if self.all.len() <= event {
                self.all.resize_with(event + 1, Vec::new);
            }
            self.all[event].push(*share);
        }
    }

    /// What a sample stands for: its weight by the time enabled over the time running around it. An event of which no
    /// share is known was on a counter all the time. Of samples after the last share, that one holds.
    pub(super) fn weight(&self, event: u32, at: WallNs, weight: u64) -> u64 {
        let Some(shares) = self.all.get(event as usize).filter(|shares| !shares.is_empty()) else { return weight };
        let place = shares.partition_point(|share| share.until < at).min(shares.len() - 1);
        let share = shares[place];
        if share.running_ns == 0 || share.enabled_ns <= share.running_ns {
            return weight;
        }
        let (enabled, running) = (u128::from(share.enabled_ns), u128::from(share.running_ns));
        u64::try_from((u128::from(weight) * enabled + running / 2) / running).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn share(until: u64, event: u32, enabled_ns: u64, running_ns: u64) -> RunShare {
        RunShare { until: WallNs(until), event, enabled_ns, running_ns }
    }

    #[test]
    fn samples_stand_for_the_time_their_event_was_off() {
        let mut shares = RunShares::default();
        shares.take(&[share(10, 1, 100, 25), share(20, 1, 100, 100)]);
        let weight = |event, at| shares.weight(event, WallNs(at), 7);
        assert_eq!([weight(1, 0), weight(1, 10), weight(1, 11), weight(1, 99)], [28, 28, 7, 7]);
        assert_eq!((weight(0, 5), weight(2, 5)), (7, 7), "always on a counter");
        shares.take(&[share(30, 1, 100, 0), share(40, 1, 3, 2)]);
        assert_eq!((shares.weight(1, WallNs(25), 7), shares.weight(1, WallNs(31), 7)), (7, 11), "10.5 is rounded up");
        assert_eq!(shares.weight(1, WallNs(35), u64::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn no_sample_stands_for_less_than_itself(enabled in 0u64..1_000_000, running in 0u64..1_000_000, weight in 0u64..1 << 50) {
            let mut shares = RunShares::default();
            shares.take(&[share(10, 0, enabled, running)]);
            prop_assert!(shares.weight(0, WallNs(5), weight) >= weight);
        }
    }
}
