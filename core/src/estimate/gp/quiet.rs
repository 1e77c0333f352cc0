//! Follows which stays of an event hold no count, and whether it may have stopped.

/// How often an event's stays had no count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quiet {
    /// How many stays ended.
    stays: f64,
    /// How many of them had no count, and the part of late: a running mean.
    empty: f64,
    empty_lately: f64,
    /// How many stays with a count were followed by one without.
    ended_bursts: f64,
    /// Stays without a count since the last that had one.
    quiet: i32,
    /// The time on a counter of the stays that were quiet since, in milliseconds.
    quiet_ms: f64,
    /// The most that there were before an event went on.
    usual: i32,
}

/// What the part of stays without a count remembers at each next one.
const EMPTY_KEPT: f64 = 0.85;

/// How far it is believed that an event comes in bursts before a stay had a count.
const MAY_BE_BURST: f64 = 0.05;

/// After so many quiet stays an event may have stopped, and for each more this much of the belief is left
/// that it hasn't.
const MAY_HAVE_STOPPED: i32 = 2;
const STOPPED: f64 = 0.7;
/// Where less is left of it, the event has stopped for all that is known: after 26 quiet stays more than ever before.
const HAS_STOPPED: f64 = 1e-4;

impl Quiet {
    /// Takes a stay of so many milliseconds on a counter, and the count of the one before.
    pub(super) fn end_stay(&mut self, count: f64, running_ms: f64, before: Option<f64>) {
        if count == 0.0 && before.is_some_and(|before| before > 0.0) {
            self.ended_bursts += 1.0;
        }
        if count > 0.0 {
            (self.usual, self.quiet, self.quiet_ms) = (self.usual.max(self.quiet), 0, 0.0);
        } else {
            self.empty += 1.0;
            self.quiet = self.quiet.saturating_add(1);
            self.quiet_ms += running_ms;
        }
        self.stays += 1.0;
        let (kept, is_empty) = (EMPTY_KEPT, f64::from(u8::from(count == 0.0)));
        let weights = (1.0 - kept.powf(self.stays)) / (1.0 - kept);
        self.empty_lately += (is_empty - self.empty_lately) / weights;
    }

    /// How many stays ended.
    pub(super) fn stays(&self) -> f64 {
        self.stays
    }

    /// The part of stays that had no count.
    pub(crate) fn empty(&self) -> f64 {
        self.empty / self.stays.max(1.0)
    }

    /// Whether more than half of the stays had no count, of late: an event that began late isn't one in bursts.
    pub(crate) fn is_mostly_empty(&self) -> bool {
        self.empty_lately > 0.5
    }

    /// The part of stays with a count that were followed by one without, as if there had been one of which this is
    /// hardly believed.
    pub(crate) fn bursts(&self) -> f64 {
        (self.ended_bursts + MAY_BE_BURST) / (self.stays - self.empty + 1.0)
    }

    /// How far it is believed that the event goes on as before: after more stays without a count than ever before, and
    /// two at least, it may have stopped, which a process that knows rates only can't say.
    pub(crate) fn goes_on(&self) -> f64 {
        STOPPED.powi((self.quiet - self.usual.max(MAY_HAVE_STOPPED)).max(0))
    }

    /// For how many milliseconds on a counter an event has had no count that has stopped for all that is known.
    pub(crate) fn stopped_ms(&self) -> Option<f64> {
        (self.goes_on() < HAS_STOPPED).then_some(self.quiet_ms)
    }

    /// Makes it go on for sure, as at any time before the last.
    pub(crate) fn go_on(&mut self) {
        (self.quiet, self.quiet_ms) = (0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_was_quiet_for_long_may_have_stopped() {
        let mut quiet = Quiet::default();
        assert_eq!(quiet.goes_on(), 1.0);
        let mut stay = |count: f64| {
            quiet.end_stay(count, 4.0, None);
            quiet.goes_on()
        };
        assert_eq!([5.0, 0.0, 0.0].map(&mut stay), [1.0; 3]);
        assert!((stay(0.0) - 0.7).abs() < 1e-12 && (stay(0.0) - 0.49).abs() < 1e-12);
        assert_eq!(stay(1.0), 1.0);
        // It was quiet for four stays and went on.
        assert_eq!([0.0; 4].map(&mut stay), [1.0; 4]);
        assert!((stay(0.0) - 0.7).abs() < 1e-12);
        // 0.7^26 is the first power below 10^-4: five quiet stays, and 25 more, of 4 ms.
        (0..24).for_each(|_| _ = stay(0.0));
        assert_eq!(quiet.stopped_ms(), None);
        quiet.end_stay(0.0, 4.0, None);
        assert_eq!(quiet.stopped_ms(), Some(30.0 * 4.0));
        quiet.go_on();
        assert_eq!(quiet.stopped_ms(), None);
    }

    #[test]
    fn stays_are_empty_of_late_by_hand() {
        let mut quiet = Quiet::default();
        let mut stay = |count: f64| {
            quiet.end_stay(count, 4.0, None);
            (quiet.empty_lately, quiet.is_mostly_empty(), quiet.empty())
        };
        assert_eq!(stay(0.0), (1.0, true, 1.0));
        // 0.85 of 1.85, of which the first weighs less.
        let (lately, is_most, _) = stay(1.0);
        assert!((lately - 0.85 / 1.85).abs() < 1e-12 && !is_most, "{lately}");
        (0..40).for_each(|_| _ = stay(0.0));
        assert!((0..5).map(|_| stay(1.0)).last().is_some_and(|(_, is_most, empty)| !is_most && empty > 0.8));
    }

    #[test]
    fn bursts_are_told_from_what_begins_late_or_has_stopped_by_hand() {
        let (mut quiet, mut before) = (Quiet::default(), None);
        let mut after = |counts: &[f64]| {
            for &count in counts {
                quiet.end_stay(count, 4.0, before.replace(count));
            }
            quiet.bursts()
        };
        assert_eq!(after(&[0.0; 5]), 0.05);
        // What began late: four stays with a count, none followed by one without.
        assert!((after(&[7.0; 4]) - 0.05 / 5.0).abs() < 1e-12);
        assert!((after(&[0.0; 9]) - 1.05 / 5.0).abs() < 1e-12);
        let bursts = (0..50).map(|_| after(&[7.0, 0.0])).last();
        assert!(bursts.is_some_and(|part| part > 0.9 && part <= 1.0), "{bursts:?}");
    }
}
