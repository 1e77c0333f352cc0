//! Computes how alike the mean rates over spans of time are.
//!
//! A rate is modelled as a sum of processes of unit variance, each with its own memory. The
//! covariance of two processes' means over the spans [a, b] and [c, d] is the double integral of
//! the covariance between two moments, over the product of the lengths.

use crate::rates::Delta;

/// A span of time in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Beginning of the span.
    pub start: f64,
    /// Where it ends, later than it begins.
    pub end: f64,
}

impl Span {
    pub(crate) fn length(self) -> f64 {
        self.end - self.start
    }
}

/// Puts rounds on an axis of CPU time: where nobody ran there was nothing to count.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuClock {
    /// CPU time so far, in milliseconds; of several threads at once, wall time.
    now: f64,
}

impl CpuClock {
    /// The CPU time of a round that took so many milliseconds of wall time; `None` if nobody ran.
    pub fn round<'a>(&mut self, wall_ms: f64, deltas: impl Iterator<Item = &'a Delta>) -> Option<Span> {
        let enabled = deltas.map(|delta| delta.enabled).max().unwrap_or_default();
        let span = Span { start: self.now, end: self.now + enabled.as_ms().min(wall_ms) };
        self.now = span.end;
        (span.length() > 0.0).then_some(span)
    }
}

/// Memories of the processes that fade, in milliseconds.
pub(crate) const MEMORIES: [f64; FADING] = [150.0, 25.0];
const FADING: usize = 2;

/// How many processes there are: one that is constant within a window, those that fade, and noise
/// without memory.
pub(crate) const PROCESSES: usize = FADING + 2;
pub(crate) const CONSTANT: usize = 0;
/// The process that fades last.
pub(crate) const LONG_MEMORY: usize = CONSTANT + 1;
/// The process that remembers for about as long as a stay on the counters lasts.
pub(crate) const STAYS: usize = CONSTANT + FADING;
pub(crate) const WHITE: usize = PROCESSES - 1;
/// The processes that aren't constant within a window.
pub(crate) const VARYING: std::ops::Range<usize> = CONSTANT + 1..PROCESSES;

/// The usual length of a round, in milliseconds: the shortest time that is looked at by itself.
pub(crate) const ROUND_MS: f64 = 4.0;

/// Noise has variance one in the mean over so many milliseconds.
pub(crate) const WHITE_SPAN: f64 = ROUND_MS;

/// A number for each process.
pub(crate) type PerProcess = [f64; PROCESSES];

/// A span with what its covariances with other spans are made of.
///
/// With memory T, e^(-|s-t|/T) is a product of e^(s/T) and e^(-t/T), so that exponentials are taken
/// once per end and not once per pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedSpan {
    pub(crate) span: Span,
    /// e^(start/T), e^(-start/T), e^(end/T), e^(-end/T).
    powers: [[f64; 4]; FADING],
    /// T / length * (1 - e^(-length/T)): how much of a moment at its end a span's mean keeps.
    kept: [f64; FADING],
}

impl TimedSpan {
    /// `origin` should be near all spans of a window: powers overflow some hundred memories away.
    pub(crate) fn new(span: Span, origin: f64) -> Self {
        let (start, end) = (span.start - origin, span.end - origin);
        let powers = MEMORIES.map(|memory| {
            let (start, end) = ((start / memory).exp(), (end / memory).exp());
            [start, 1.0 / start, end, 1.0 / end]
        });
        let kept = MEMORIES.map(|memory| -(-span.length() / memory).exp_m1() * memory / span.length());
        Self { span, powers, kept }
    }

    /// Covariances of the means over two spans.
    pub(crate) fn covariances(&self, other: &Self) -> PerProcess {
        let (first, second) = if self.span.start <= other.span.start { (self, other) } else { (other, self) };
        let mut covariances = [1.0; PROCESSES];
        if first.span.end <= second.span.start {
            for j in 0..FADING {
                covariances[1 + j] = first.kept[j] * second.kept[j] * first.powers[j][2] * second.powers[j][1];
            }
            covariances[WHITE] = 0.0;
        } else {
            let lengths = first.span.length() * second.span.length();
            for j in 0..FADING {
                covariances[1 + j] = overlapping(first, second, j) / lengths;
            }
            let overlap = first.span.end.min(second.span.end) - second.span.start;
            covariances[WHITE] = WHITE_SPAN * overlap / lengths;
        }
        covariances
    }
}

/// The double integral of e^(-|s-t|/T) over two spans, by its second antiderivative in s - t,
/// G(u) = T^2 e^(-|u|/T) + T |u|: it is G(b-c) - G(b-d) - G(a-c) + G(a-d).
fn overlapping(first: &TimedSpan, second: &TimedSpan, j: usize) -> f64 {
    let memory = MEMORIES[j];
    let [a, _, b, b_down] = first.powers[j];
    let [c, c_down, d, d_down] = second.powers[j];
    let antiderivative = |power: f64, distance: f64| memory * (memory * power + distance);
    // a <= c < b, and either of b and d may be later.
    let ends = if first.span.end <= second.span.end { b * d_down } else { d * b_down };
    let g_bc = antiderivative(c * b_down, first.span.end - second.span.start);
    let g_bd = antiderivative(ends, (first.span.end - second.span.end).abs());
    let g_ac = antiderivative(a * c_down, second.span.start - first.span.start);
    let g_ad = antiderivative(a * d_down, second.span.end - first.span.start);
    g_bc - g_bd - g_ac + g_ad
}

/// The variances of the mean over a span of this length.
pub(crate) fn variances(length: f64) -> PerProcess {
    let span = TimedSpan::new(Span { start: 0.0, end: length }, 0.0);
    span.covariances(&span)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::CpuNs;

    fn timed(start: f64, length: f64) -> TimedSpan {
        TimedSpan::new(Span { start, end: start + length }, 10.0)
    }

    #[test]
    fn covariances_of_spans_by_hand() {
        // A span of one memory of 150 ms with itself: 2 (x - 1 + e^-x) / x^2 at x = 1. With the next such span: (1 -
        // 1/e)^2.
        let (one, next) = (timed(0.0, 150.0), timed(150.0, 150.0));
        let inverse = std::f64::consts::E.recip();
        let [constant, fading, _, white] = one.covariances(&one);
        assert!((constant - 1.0).abs() < 1e-12 && (fading - 2.0 * inverse).abs() < 1e-12, "{fading}");
        assert!((white - WHITE_SPAN / 150.0).abs() < 1e-12);
        let [constant, fading, _, white] = one.covariances(&next);
        assert!((fading - (1.0 - inverse).powi(2)).abs() < 1e-12, "{fading}");
        assert_eq!((constant, white), (1.0, 0.0));
        // A moment varies by all of it, but for the noise, which a moment has no end of.
        let moment = variances(0.01);
        assert!(moment[1..=FADING].iter().all(|variance| (variance - 1.0).abs() < 1e-3), "{moment:?}");
    }

    /// The mean of e^(-|s-t|/T) over both spans, on a grid.
    fn integrated(a: Span, b: Span, memory: f64) -> f64 {
        const STEPS: u32 = 60;
        let at = |span: Span, step: u32| span.start + span.length() * (f64::from(step) + 0.5) / f64::from(STEPS);
        let pairs = (0..STEPS).flat_map(|i| (0..STEPS).map(move |j| (i, j)));
        pairs.map(|(i, j)| (-(at(a, i) - at(b, j)).abs() / memory).exp()).sum::<f64>() / f64::from(STEPS * STEPS)
    }

    proptest! {
        #[test]
        fn covariances_are_integrals_symmetric_and_at_most_one(
            starts in [0.0..60.0f64, 0.0..60.0], lengths in [0.5..40.0f64, 0.5..40.0],
        ) {
            let [a, b] = [0, 1].map(|span| timed(starts[span], lengths[span]));
            let (ab, ba) = (a.covariances(&b), b.covariances(&a));
            for j in 0..FADING {
                prop_assert!((ab[1 + j] - integrated(a.span, b.span, MEMORIES[j])).abs() < 1e-3);
                prop_assert!(ab[1 + j] > 0.0 && ab[1 + j] <= 1.0 + 1e-9);
            }
            prop_assert!(ab.iter().zip(ba).all(|(ab, ba)| (ab - ba).abs() < 1e-9), "{ab:?} {ba:?}");
        }

        #[test]
        fn covariances_are_continuous_where_spans_touch(start in 0.0..60.0f64, lengths in [0.5..40.0f64, 0.5..40.0]) {
            let first = timed(start, lengths[0]);
            let [before, after] = [-1e-7, 1e-7].map(|apart| first.covariances(&timed(start + lengths[0] + apart, lengths[1])));
            prop_assert!(before.iter().zip(after).all(|(before, after)| (before - after).abs() < 1e-5));
        }
    }

    #[test]
    fn the_clock_goes_on_by_cpu_time_and_no_faster_than_the_wall_by_hand() {
        let mut clock = CpuClock::default();
        let mut round = |wall_ms: f64, enabled_ms: u64| {
            let enabled = CpuNs(enabled_ms * 1_000_000);
            clock.round(wall_ms, [Delta { enabled, ..Delta::default() }].iter()).map(|span| (span.start, span.end))
        };
        // A quarter of the time; nobody; four threads at once.
        assert_eq!([round(4.0, 1), round(4.0, 0), round(4.0, 16)], [Some((0.0, 1.0)), None, Some((1.0, 5.0))]);
    }
}
