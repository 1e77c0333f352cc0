//! Keeps the newest values of a series one by one, and older ones averaged over longer times.
//!
//! ```text
//! spans of 1   |||||||||||||||||     the newest values
//! spans of 4   |   |   |   |   |     means of four of them, back to four times as long ago
//! spans of 16  |               |
//! ```

use std::collections::VecDeque;

use crate::units::WallNs;

/// How many spans of each length are kept. A look at so many takes about 0.1 ms.
pub(super) const KEPT: usize = 120;

/// So many spans of one length make one of the next.
pub(super) const MERGED: usize = 4;

/// How many lengths there are.
pub(super) const LENGTHS: usize = 3;

/// A change is looked at closely if its means differ by so many of their standard errors.
const WORTH_A_LOOK: f64 = 4.0;

/// What was counted in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CountedSpan {
    pub(super) begin: WallNs,
    pub(super) end: WallNs,
    /// The scaled count, and the time that it is divided by, in seconds. Without a time, the value is missing.
    pub(super) count: f64,
    pub(super) seconds: f64,
    /// The variance of the scaled count, from what multiplexing left unseen.
    pub(super) variance: f64,
    /// What was counted indeed, and the part of the time in which it was.
    pub(super) seen: f64,
    pub(super) seen_seconds: f64,
}

impl CountedSpan {
    /// The rate; `None` if it is missing.
    pub(super) fn value(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.count / self.seconds)
    }

    /// Adds what came after it.
    pub(super) fn add(&mut self, next: &Self) {
        if self.end == WallNs(0) {
            self.begin = next.begin;
        }
        self.end = next.end;
        self.count += next.count;
        self.seconds += next.seconds;
        self.variance += next.variance;
        self.seen += next.seen;
        self.seen_seconds += next.seen_seconds;
    }

    /// Makes its value missing.
    fn leave_out(&mut self) {
        *self = Self { begin: self.begin, end: self.end, ..Self::default() };
    }
}

/// The spans of one length.
#[derive(Clone, Debug, Default)]
pub(super) struct SpanWindow {
    pub(super) spans: VecDeque<CountedSpan>,
    /// The one that isn't complete, and how many it has.
    open: (CountedSpan, usize),
}

/// A series with all its lengths of spans, the shortest first.
#[derive(Clone, Debug, Default)]
pub(super) struct ThinnedSeries {
    pub(super) windows: [SpanWindow; LENGTHS],
}

impl ThinnedSeries {
    /// Takes the next span; says how many lengths have a new one.
    pub(super) fn push(&mut self, span: CountedSpan) -> usize {
        let mut new = span;
        for (length, window) in self.windows.iter_mut().enumerate() {
            window.push(new);
            let (open, parts) = &mut window.open;
            open.add(&new);
            *parts += 1;
            if *parts < MERGED {
                return length + 1;
            }
            (new, window.open) = (*open, (CountedSpan::default(), 0));
        }
        LENGTHS
    }

    /// Forgets what began before a time.
    pub(super) fn forget_before(&mut self, time: WallNs) {
        for window in &mut self.windows {
            window.spans.retain(|span| span.begin >= time);
            if window.open.0.begin < time {
                window.open = (CountedSpan::default(), 0);
            }
        }
    }
}

impl SpanWindow {
    fn push(&mut self, span: CountedSpan) {
        if self.spans.len() == KEPT {
            self.spans.pop_front();
        }
        self.spans.push_back(span);
    }

    /// Makes values missing that were no phase of their own.
    pub(super) fn leave_out(&mut self, places: std::ops::Range<usize>) {
        self.spans.range_mut(places).for_each(CountedSpan::leave_out);
    }

    /// Whether two means differ so much anywhere, with so many values on both sides, that a close look is worth it.
    pub(super) fn may_have_changed(&self, least: usize, least_change: f64) -> bool {
        let values: Vec<f64> = self.spans.iter().filter_map(CountedSpan::value).collect();
        if least == 0 || values.len() < 2 * least {
            return false;
        }
        let means = SplitMeans { values: &values, least };
        // Most are told apart by this alone, which costs least.
        means.any(|low, high, _| (high - low).abs() > least_change * low.abs()) && {
            let variance = variance_by_differences(&values);
            means.any(|low, high, parts| {
                let square = (high - low).powi(2);
                square > (least_change * low).powi(2) && square >= WORTH_A_LOOK.powi(2) * variance * parts
            })
        }
    }
}

/// The means of a series before and after each place that has so many values on both sides.
struct SplitMeans<'a> {
    values: &'a [f64],
    least: usize,
}

impl SplitMeans<'_> {
    /// Whether that holds anywhere for the means before and after a place, and the sum of one over how many values they
    /// are of.
    fn any(&self, holds: impl Fn(f64, f64, f64) -> bool) -> bool {
        let (all, count) = (self.values.iter().sum::<f64>(), self.values.len());
        let mut sum: f64 = self.values[..self.least - 1].iter().sum();
        (self.least..=count - self.least).any(|before| {
            sum += self.values[before - 1];
            let [of_before, of_after] = [before, count - before].map(|number| (number as f64).recip());
            holds(sum * of_before, (all - sum) * of_after, of_before + of_after)
        })
    }
}

/// The variance of values whose level hardly changes: the median of the absolute difference of two normal values
/// is 0.954 of their deviation.
fn variance_by_differences(values: &[f64]) -> f64 {
    let mut apart: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    let half = apart.len() / 2;
    (*apart.select_nth_unstable_by(half, f64::total_cmp).1 / 0.954).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(second: u64, count: f64) -> CountedSpan {
        let (begin, end) = (WallNs(second * 1_000_000_000), WallNs((second + 1) * 1_000_000_000));
        CountedSpan { begin, end, count, seconds: 1.0, ..CountedSpan::default() }
    }

    fn series(values: impl IntoIterator<Item = f64>) -> ThinnedSeries {
        let mut series = ThinnedSeries::default();
        for (second, value) in (0..).zip(values) {
            series.push(span(second, value));
        }
        series
    }

    #[test]
    fn four_make_one_of_the_next_length() {
        let mut series = series([1.0, 2.0, 3.0]);
        assert_eq!(series.push(span(3, 6.0)), 2);
        let merged = series.windows[1].spans[0];
        assert_eq!((merged.begin, merged.end, merged.value()), (WallNs(0), WallNs(4_000_000_000), Some(3.0)));
        assert_eq!((4..15).map(|second| series.push(span(second, 1.0))).max(), Some(2));
        assert_eq!(series.push(span(15, 1.0)), 3);
        assert_eq!(series.windows[2].spans[0].value(), Some(1.5));
    }

    #[test]
    fn what_began_before_a_change_is_forgotten_in_all_lengths() {
        let mut series = series((0..500).map(f64::from));
        assert_eq!(series.windows.each_ref().map(|window| window.spans.len()), [KEPT, KEPT, 31]);
        series.forget_before(WallNs(450_000_000_000));
        assert_eq!(series.windows.each_ref().map(|window| window.spans.len()), [50, 12, 2]);
        let first = series.windows.each_ref().map(|window| window.spans[0].begin.as_secs());
        assert_eq!(first, [450.0, 452.0, 464.0]);
    }

    #[test]
    fn a_look_is_worth_it_where_means_are_apart() {
        let values =
            |step: f64| (0..40).map(move |at| f64::from(at * 7 % 5) + 100.0 + if at < 30 { 0.0 } else { step });
        let looked = |series: ThinnedSeries| series.windows[0].may_have_changed(5, 0.05);
        assert!(looked(series(values(12.0))));
        assert!(!looked(series(values(0.0))) && !looked(series(values(4.0))));
        assert!(!looked(series([1.0, 1.0, 1.0, 9.0, 9.0, 9.0])), "too few");
        assert!(!looked(series([])) && !looked(series([2.0; 50])));
    }
}
