//! Follows how far stays on the counters are from what all else says of them, to widen intervals by it.

use super::super::fading::FadingMean;

/// How far stays of each event were off, over what was expected of them: running means of squares.
#[derive(Clone, Debug)]
pub(crate) struct Calibration {
    events: Vec<FadingMean>,
    all: FadingMean,
    turns: Turns,
    /// How many times as large as [`usual`] squares usually are.
    usual_squares: f64,
}

/// How much farther off than others the counts of an event may be, as it is quiet most of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ErrorTail {
    Usual,
    /// Most stays of all events hold no count.
    AllQuiet,
    /// Most stays of this event hold no count, of late. The part of the stays with a count that were followed by one
    /// without: what has begun late or has stopped isn't in bursts.
    Quiet {
        bursts: f64,
    },
}

impl ErrorTail {
    /// The factor on half widths.
    fn factor(self) -> f64 {
        match self {
            ErrorTail::Usual => 1.0,
            ErrorTail::AllQuiet => 1.5,
            ErrorTail::Quiet { bursts } => 1.0 + 3.5 * bursts,
        }
    }

    /// A stay's square counts for no more than so much: one surprise doesn't spoil all that comes after, and each burst
    /// of what is quiet is one.
    fn largest(self) -> f64 {
        match self {
            ErrorTail::Usual | ErrorTail::AllQuiet => 50.0,
            ErrorTail::Quiet { .. } => 4.0,
        }
    }
}

/// How far a stay was off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaySquare {
    pub(crate) event: usize,
    /// The square of it, over what was expected.
    pub(crate) square: f64,
    pub(crate) tail: ErrorTail,
}

/// The usual mean of squares where stays take so many milliseconds: covariances that are fitted to a window know the
/// stay that is left out, the better the longer it is.
fn usual(stay_ms: f64) -> f64 {
    USUAL_LONG + USUAL_SHORT * (-stay_ms / SHORT_MS).exp()
}
/// What that is of long stays, how much more it is of short ones, and how long these are. These and the other numbers
/// here were chosen on the accuracy bench.
const USUAL_LONG: f64 = 0.5;
const USUAL_SHORT: f64 = 0.35;
const SHORT_MS: f64 = 6.0;
/// How turns on the counters follow one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Turns {
    /// How long stays take, in milliseconds.
    pub(crate) stay_ms: f64,
    pub(crate) order: TurnOrder,
}

/// In which order events take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnOrder {
    /// The same in each cycle and in the same company, as the kernel's rotation has it.
    Same,
    /// Drawn anew for each cycle, as that of perfprop's own turns.
    Drawn,
}

impl Turns {
    /// As many events as there are counters, of which one is changed every 4 ms.
    pub(crate) const USUAL: Self = Self { stay_ms: 16.0, order: TurnOrder::Same };

    /// How far stays are among the shortest: 1 up to these, and next to 0 of those of 16 ms.
    fn shortness(self) -> f64 {
        (-(self.stay_ms - SHORTEST_MS).max(0.0) / SHORTER_MS).exp()
    }

    /// How much what stays are off by says of a window's count. Of many short stays at moments that were drawn, with
    /// other events each time, what one is off by says little of their sum.
    fn told_by_stays(self) -> f64 {
        match self.order {
            TurnOrder::Same => 1.0,
            TurnOrder::Drawn => 1.0 - self.shortness(),
        }
    }

    /// By how much intervals are narrower where stays are short, as an event is seen many times in a window.
    fn narrower(self) -> f64 {
        let of_shortest = match self.order {
            TurnOrder::Same => NARROWER,
            TurnOrder::Drawn => NARROWER_IF_DRAWN,
        };
        of_shortest * self.shortness()
    }
}
const SHORTEST_MS: f64 = 2.0;
const SHORTER_MS: f64 = 4.0;
const NARROWER: f64 = 0.12;
const NARROWER_IF_DRAWN: f64 = 0.17;
/// It is as if so many stays of all events had been as usual, and as many of each as all are.
const BEFORE: (f64, f64) = (60.0, 10.0);
/// What a window keeps of those before.
const KEPT: f64 = 0.93;
/// How far the squares of all events are followed, as a power, and from which part of what is usual on; how far an
/// event's own over those of all are, and where the event is quiet.
const POWER: f64 = 1.2;
const LEAST_ALL: f64 = 0.9;
const OWN_POWER: f64 = 0.2;
const OWN_POWER_IF_QUIET: f64 = 0.8;
/// The least and the largest factor by squares.
const FACTORS: (f64, f64) = (0.75, 5.0);
/// The variance of a level from n stays is so many times that of a window, over n squared.
const LEVEL_VARIANCE: f64 = 3.0;

/// How far variances from before a fit are believed: so much for each unit by which squares are more than usual, within
/// these.
const DOUBT_OF_FITS: f64 = 1.2;
const BELIEVED: (f64, f64) = (0.1, 0.7);
/// Stays that are left out say less of an event that is on a counter for more than a sixth of the time: its part that
/// isn't counted, times this.
const TELLS: f64 = 1.2;
/// Covariances before a fit say at most that a variance is so many times as large.
const MOST_BEFORE: f64 = 8.0;

/// How much stays that are left out say of an event that was counted for so much of the time, as a power: where that is
/// most of it, what another stay would have been says little.
fn told(counted: f64) -> f64 {
    (TELLS * (1.0 - counted)).min(1.0)
}

impl Calibration {
    pub(crate) fn new(events: usize, usual_squares: f64) -> Self {
        let (events, all) = (vec![FadingMean::default(); events], FadingMean::default());
        Self { events, all, turns: Turns::USUAL, usual_squares }
    }

    /// Takes what stays of a window were off by.
    pub(crate) fn window(&mut self, turns: Turns, stays: impl Iterator<Item = StaySquare>) {
        self.events.iter_mut().for_each(|event| event.forget(KEPT));
        self.all.forget(KEPT);
        self.turns = turns;
        for StaySquare { event, square, tail } in stays {
            let square = square.min(tail.largest());
            self.events[event].add(square);
            self.all.add(square);
        }
    }

    /// The factor on the half widths of an event of which so many stays were seen, and which was counted for so much of
    /// the time.
    pub(crate) fn factor(&self, event: usize, stays: f64, counted: f64, tail: ErrorTail) -> f64 {
        let all = self.all();
        let own = self.events[event].mean_with(all, BEFORE.1);
        let power = POWER * self.turns.told_by_stays();
        let own_power = if tail == ErrorTail::Usual { OWN_POWER } else { OWN_POWER_IF_QUIET };
        let off = (all / self.usual()).max(LEAST_ALL).powf(power) * (own / all).powf(own_power);
        let level = (1.0 + LEVEL_VARIANCE / stays.max(1.0).powi(2)).sqrt();
        let known = level * off.powf(told(counted)).clamp(FACTORS.0, FACTORS.1);
        known * (1.0 - self.turns.narrower()) * tail.factor()
    }

    /// The usual mean of squares where stays are as long as now.
    fn usual(&self) -> f64 {
        self.usual_squares * usual(self.turns.stay_ms)
    }

    /// The mean square of all stays.
    fn all(&self) -> f64 {
        self.all.mean_with(self.usual(), BEFORE.0)
    }

    /// The standard deviation of a number, of its variance by what was fitted to its own window and by what was before,
    /// of an event that was counted for so much of the time.
    pub(crate) fn deviation(&self, fitted: f64, before: f64, counted: f64) -> f64 {
        let more = self.all() / self.usual() - 1.0;
        let doubt = DOUBT_OF_FITS * self.turns.told_by_stays();
        let believed = (doubt * more).clamp(BELIEVED.0, BELIEVED.1);
        (fitted * (before / fitted.max(f64::MIN_POSITIVE)).clamp(1.0, MOST_BEFORE).powf(told(counted) * believed))
            .sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stay(event: usize, square: f64) -> StaySquare {
        StaySquare { event, square, tail: ErrorTail::Usual }
    }

    /// After many windows in which a stay of each of two events was off by so many times what is usual.
    fn after(first: f64, second: f64) -> Calibration {
        let mut calibration = Calibration::new(2, 1.0);
        let usual = usual(Turns::USUAL.stay_ms);
        let stays = [stay(0, first * usual), stay(1, second * usual)];
        (0..400).for_each(|_| calibration.window(Turns::USUAL, stays.into_iter()));
        calibration
    }

    #[test]
    fn what_is_off_as_usual_leaves_intervals_as_they_are() {
        let usual = after(1.0, 1.0);
        let wide = 1.0 - Turns::USUAL.narrower();
        assert!((usual.factor(0, 1e9, 0.1, ErrorTail::Usual) - wide).abs() < 1e-9 && wide > 0.99);
        // An event that was seen in one stay: four times the variance.
        assert!((usual.factor(0, 1.0, 0.1, ErrorTail::Usual) - wide * 2.0).abs() < 1e-9);
        assert!((usual.deviation(4.0, 1.0, 0.1) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_is_off_by_more_has_wider_intervals() {
        let off = after(3.0, 1.0);
        let [first, second] = [0, 1].map(|event| off.factor(event, 1e9, 0.1, ErrorTail::Usual));
        assert!(first > 1.1 * second && second > 1.0, "{first} {second}");
        assert!(off.deviation(1.0, 4.0, 0.1) > off.deviation(1.0, 1.0, 0.1));
        // Of what is counted all but a little, stays say little.
        assert!(off.factor(0, 1e9, 0.9, ErrorTail::Usual) < 1.2, "{off:?}");
        assert_eq!(off.deviation(1.0, 4.0, 1.0), 1.0);
        // Nothing was looked at yet.
        assert_eq!(Calibration::new(1, 1.0).factor(0, 1e9, 0.1, ErrorTail::Usual), 1.0 - Turns::USUAL.narrower());
    }

    #[test]
    fn an_events_own_squares_count_for_less_than_those_of_all_unless_it_is_quiet_by_hand() {
        let calibration = after(3.0, 1.0);
        let all = calibration.all();
        // As many squares count as are remembered, beside ten as all are.
        let of_all = (all / usual(Turns::USUAL.stay_ms)).powf(1.2) * (1.0 - Turns::USUAL.narrower());
        let stopped = ErrorTail::Quiet { bursts: 0.0 };
        for (event, tail, power) in [(0, ErrorTail::Usual, 0.2), (1, ErrorTail::Usual, 0.2), (0, stopped, 0.8)] {
            let own = calibration.events[event].mean_with(all, 10.0);
            assert_eq!(own > all, event == 0);
            let factor = calibration.factor(event, 1e9, 0.1, tail);
            assert!((factor / (of_all * (own / all).powf(power)) - 1.0).abs() < 1e-9, "{factor}");
        }
    }

    #[test]
    fn what_is_quiet_has_wider_intervals_and_surprises_that_count_for_less_by_hand() {
        let tails =
            [ErrorTail::Usual, ErrorTail::AllQuiet, ErrorTail::Quiet { bursts: 0.0 }, ErrorTail::Quiet { bursts: 1.0 }];
        let of = |tail| {
            let mut calibration = Calibration::new(1, 1.0);
            calibration.window(Turns::USUAL, [StaySquare { tail, ..stay(0, 1e6) }].into_iter());
            (calibration.events[0].sum, calibration.all.sum, calibration.factor(0, 1e9, 0.1, tail))
        };
        let [usual, all, stopped, bursts] = tails.map(of);
        assert_eq!(
            [(usual.0, usual.1), (all.0, all.1), (bursts.0, bursts.1)],
            [(50.0, 50.0), (50.0, 50.0), (4.0, 4.0)]
        );
        // Such a surprise gives the largest factor by squares where all are quiet.
        let largest = 5.0 * (1.0 - Turns::USUAL.narrower());
        assert!(
            usual.2 < largest && (all.2 / largest - 1.5).abs() < 1e-9 && (bursts.2 / stopped.2 - 4.5).abs() < 1e-9,
            "{all:?} {bursts:?}"
        );
    }

    #[test]
    fn of_short_stays_at_drawn_moments_what_one_is_off_by_says_little_of_their_sum_by_hand() {
        let [same, drawn] = [TurnOrder::Same, TurnOrder::Drawn].map(|order| move |stay_ms| Turns { stay_ms, order });
        assert_eq!(
            [same(2.0).told_by_stays(), drawn(2.0).told_by_stays(), drawn(1.0).told_by_stays()],
            [1.0, 0.0, 0.0]
        );
        assert!((drawn(6.0).told_by_stays() - (1.0 - (-1.0_f64).exp())).abs() < 1e-9);
        assert!((drawn(6.0).narrower() - NARROWER_IF_DRAWN * (-1.0_f64).exp()).abs() < 1e-9);
        assert!((1..100).all(|ms| same(f64::from(ms)).narrower() <= same(f64::from(ms - 1)).narrower()));
        // All of fifty events are off by as much.
        let off_by = |turns: Turns, times: f64| {
            let mut calibration = Calibration::new(50, 1.0);
            let stays = || (0..50).map(|event| stay(event, times * usual(turns.stay_ms)));
            (0..400).for_each(|_| calibration.window(turns, stays()));
            [calibration.factor(0, 1e9, 0.1, ErrorTail::Usual), calibration.deviation(1.0, 4.0, 0.1)]
        };
        let [usual, off] = [1.0, 3.0].map(|times| off_by(drawn(2.0), times));
        assert!((usual[0] - (1.0 - NARROWER_IF_DRAWN)).abs() < 1e-9, "{usual:?}");
        assert!(off[0] < 1.05 * usual[0] && off[1] == usual[1], "{usual:?} {off:?}");
        let [usual, off] = [1.0, 3.0].map(|times| off_by(same(2.0), times));
        assert!((usual[0] - (1.0 - NARROWER)).abs() < 1e-9, "{usual:?}");
        assert!(off[0] > 2.0 * usual[0] && off[1] > usual[1], "{usual:?} {off:?}");
    }

    #[test]
    fn what_does_not_vary_has_no_deviation() {
        let calibration = after(3.0, 1.0);
        assert_eq!(calibration.deviation(0.0, 0.0, 0.1), 0.0);
        // Of an event that is counted all the time stays that are left out say nothing.
        assert_eq!([told(1.0), told(0.0), told(0.5)], [0.0, 1.0, 0.6]);
    }

    proptest::proptest! {
        #[test]
        fn factors_are_larger_where_more_is_off_and_bounded(
            off in 0.01..100.0f64, more in 1.0..10.0f64, stays in 1.0..100.0f64, counted in 0.0..1.0f64,
        ) {
            let [less, more] = [off, more * off].map(|off| after(off, off).factor(0, stays, counted, ErrorTail::Usual));
            proptest::prop_assert!(less <= more + 1e-12, "{less} {more}");
            let most = FACTORS.1 * (1.0 + LEVEL_VARIANCE).sqrt();
            proptest::prop_assert!(FACTORS.0 * 0.8 <= less && more <= most, "{less} {more}");
        }
    }
}
