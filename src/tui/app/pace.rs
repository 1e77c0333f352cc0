//! Says how often a profile is looked at while it grows: with very many stacks that takes long, and keys wait for it.

use std::time::{Duration, Instant};

/// After a look at the profile there is none for so many times as long as it took, so that looks take a fifth of the
/// time.
const REST: u32 = 4;

/// A look that took longer isn't repeated at once after a key.
const QUICK: Duration = Duration::from_millis(30);

/// When the profile was looked at last, and how long that took; nothing where the reader has asked for another since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProfilePace(Option<(Instant, Duration)>);

impl ProfilePace {
    /// A look at the profile took from `begun` to `ended`.
    pub(super) fn looked(begun: Instant, ended: Instant) -> Self {
        Self(Some((ended, ended.saturating_duration_since(begun))))
    }

    /// When the rest after the last look is over; `None` where another was asked for since.
    pub(super) fn rested_at(self) -> Option<Instant> {
        self.0.map(|(ended, took)| ended + REST * took)
    }

    /// Whether the profile may be looked at `now`. Where the user waits for the answer to a key, only if that is quick.
    pub(super) fn may_look(self, now: Instant, does_user_wait: bool) -> bool {
        self.0.is_none_or(|(ended, took)| {
            let is_slow = does_user_wait && took > QUICK;
            !is_slow && now.saturating_duration_since(ended) >= REST * took
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether there may be a look so many milliseconds after one that took so many.
    fn may_look(took: u64, after: u64, does_user_wait: bool) -> bool {
        let begun = Instant::now();
        let ended = begun + Duration::from_millis(took);
        ProfilePace::looked(begun, ended).may_look(ended + Duration::from_millis(after), does_user_wait)
    }

    #[test]
    fn a_slow_look_is_followed_by_a_long_rest_by_hand() {
        // 100 ms, and four times that; with a key's answer to come not even then.
        assert_eq!([399, 400].map(|after| may_look(100, after, false)), [false, true]);
        assert_eq!([400, 5000].map(|after| may_look(100, after, true)), [false, false]);
        // A quick one only has to rest.
        assert_eq!([119, 120].map(|after| may_look(30, after, true)), [false, true]);
    }

    #[test]
    fn the_first_look_and_one_that_took_no_time_wait_for_nothing() {
        assert!(ProfilePace::default().may_look(Instant::now(), true) && may_look(0, 0, true));
    }

    proptest! {
        /// Looks never take more than a fifth of the time.
        #[test]
        fn who_may_look_has_rested_four_times_as_long(took in 0..10_000u64, after in 0..100_000u64, waits: bool) {
            prop_assert!(!may_look(took, after, waits) || after >= 4 * took);
        }
    }
}
