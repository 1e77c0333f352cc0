//! Decides which of some events differ between two sets of runs, how sure that is, and by how much.
//!
//! - **Each event** is tested by Welch's t-test (B. L. Welch, "The generalization of 'Student's' problem when several
//!   different population variances are involved", Biometrika 34, 1947) and by Student's with one spread for both
//!   sides; the larger p-value holds. With equal numbers of runs that is always Welch's; with 3 and 10 it is too
//!   sure where the three happen to lie close together.
//! - **All of them** are corrected by S. Holm, "A simple sequentially rejective multiple test procedure",
//!   Scandinavian Journal of Statistics 6, 1979: where nothing differs, the probability of any verdict is at most one
//!   less the confidence, however events hang together.
//! - **No p-value is below [`least_p`]**, as no few runs can say more without knowing how runs are distributed.
//! - **Means without outliers** are tested in the same way (K. Yuen, "The two-sample trimmed t for unequal population
//!   variances", Biometrika 61, 1974), where one slow run says nothing of the others.
//! - **The interval** of the change is that of E. C. Fieller, "Some problems in interval estimation", Journal of the
//!   Royal Statistical Society B 16, 1954, as wide as the correction asks for: it leaves out 0 where there is a
//!   verdict.

use crate::rates::{Confidence, two_sided_quantile, two_sided_tail};

/// How often enough runs are to give a verdict: the usual power of planned experiments (J. Cohen, "Statistical Power
/// Analysis for the Behavioral Sciences", 1988, takes 0.8; people who wait for runs want to be surer).
const POWER: f64 = 0.9;

/// Nobody makes more runs of a side than this.
const MOST_RUNS: usize = 1000;

/// One of so many runs is left out at each end where outliers don't count.
const TRIMMED: usize = 7;

/// Mean and variance of the runs of one side.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RunSpread {
    pub(super) runs: usize,
    /// How many of them the mean is of.
    pub(super) counted: usize,
    pub(super) mean: f64,
    /// The squared standard error of the mean, times how many it is of: over n - 1; 0 of a single run.
    pub(super) variance: f64,
}

impl RunSpread {
    /// `None` without a run. Values that are all the same have a variance of exactly 0.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let (first, n) = (*values.first()?, values.len() as f64);
        let mean = first + values.iter().map(|value| value - first).sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let runs = values.len();
        Some(Self { runs, counted: runs, mean, variance: squares / (n - 1.0).max(1.0) })
    }

    /// The same without a seventh of the runs at each end. The variance is that of all, where those at the ends have
    /// the value of the next one that counts: (n - 1) s²/(h - 1) for h of n (Yuen).
    pub(super) fn without_outliers(values: &[f64]) -> Option<Self> {
        let left_out = values.len() / TRIMMED;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let kept = &sorted[left_out..sorted.len() - left_out];
        let (&least, &most) = (kept.first()?, kept.last()?);
        let pulled: Vec<f64> = sorted.iter().map(|value| value.clamp(least, most)).collect();
        let (all, kept) = (Self::of(&pulled)?, Self::of(kept)?);
        let degrees = |runs: usize| (runs as f64 - 1.0).max(1.0);
        Some(Self {
            runs: values.len(),
            variance: all.variance * degrees(values.len()) / degrees(kept.counted),
            ..kept
        })
    }

    /// [`least_p`] of two sides. Where runs are left out, so many of a side may be in the other mode, too, and nothing
    /// is seen of it: for a mode of the probability p, that has the probability P(Bin(a, p) ≤ k) P(Bin(b, 1 - p) ≤ l)
    /// for each of both directions.
    fn least_p(&self, other: &Self) -> f64 {
        let least = least_p([self.runs, other.runs]);
        let left_out = |side: &Self| (side.runs - side.counted) / 2;
        let apart = |p: f64| {
            at_most(left_out(self), self.runs, p) * at_most(left_out(other), other.runs, 1.0 - p)
                + at_most(left_out(self), self.runs, 1.0 - p) * at_most(left_out(other), other.runs, p)
        };
        match left_out(self) + left_out(other) {
            0 => least,
            _ => (1..50).map(|percents| apart(0.02 * f64::from(percents))).fold(least, f64::max),
        }
    }

    /// The variance of a run, had all been counted.
    fn of_a_run(&self) -> f64 {
        self.variance * self.runs as f64 / self.counted.max(1) as f64
    }
}

/// What is said of a pair of sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Decision {
    /// Too few runs to be sure of any difference.
    TooFew,
    /// The p-value, corrected for all events, and the interval of the change as a part of the first mean, where it
    /// has bounds.
    ///
    /// `least_factor`: how many times the smaller mean the larger is at least, by that interval.
    Tested { p: f64, differs: bool, interval: Option<(f64, f64)>, least_factor: f64 },
}

/// Decides on all events that both sides counted.
pub(super) fn decide(pairs: &[(RunSpread, RunSpread)], confidence: Confidence) -> Vec<Decision> {
    let alpha = confidence.alpha();
    let tests: Vec<Option<Test>> =
        pairs.iter().map(|(a, b)| is_enough([a.runs, b.runs], pairs.len(), alpha).then(|| Test::of(a, b))).collect();
    let mut order: Vec<usize> = (0..pairs.len()).filter(|&event| tests[event].is_some()).collect();
    let p = |event: usize| tests[event].as_ref().map_or(1.0, |test| test.p);
    order.sort_by(|&one, &other| p(one).total_cmp(&p(other)));
    let mut decisions = vec![Decision::TooFew; pairs.len()];
    let (mut corrected, mut left) = (0.0_f64, pairs.len() as f64);
    for event in order {
        let Some(test) = &tests[event] else { continue };
        corrected = corrected.max(test.p * left).min(1.0);
        let differs = corrected < alpha;
        let interval = test.change(&pairs[event], alpha / left);
        let least_factor = test.least_factor(&pairs[event], alpha / left);
        decisions[event] = Decision::Tested { p: corrected, differs, interval, least_factor };
        // Once one event doesn't differ, those after it don't either.
        left -= f64::from(u8::from(differs));
    }
    decisions
}

/// The smallest p-value that so many runs of each side can have: programs do run in one of two modes, by where their
/// memory came to lie, and then all of A may be in one by chance, and all of B in the other.
///
/// For any distribution of single runs, the probability that all of B give one value y, whose own probability is p, and
/// all of A others is `p^b (1-p)^a` at most; as the p of all y add up to 1, their sum is the largest `p^(b-1) (1-p)^a`
/// at most. The same holds the other way round. 5 and 5 runs give 0.0021, 3 and 3 give 0.035.
pub(super) fn least_p(runs: [usize; 2]) -> f64 {
    let most = |a: f64, b: f64| {
        let p = (b - 1.0) / (a + b - 1.0);
        p.powf(b - 1.0) * (1.0 - p).powf(a)
    };
    let [a, b] = runs.map(|runs| runs as f64);
    if runs.contains(&0) { 1.0 } else { most(a, b).min(most(b, a)) }
}

/// The probability of at most k of n cases with the probability p each.
fn at_most(k: usize, n: usize, p: f64) -> f64 {
    let odds = p / (1.0 - p);
    let terms = std::iter::successors(Some(((1.0 - p).powf(n as f64), 0.0)), |(term, of)| {
        Some((term * odds * (n as f64 - of) / (of + 1.0), of + 1.0))
    });
    terms.take(k + 1).map(|(term, _)| term).sum()
}

/// Whether so many runs can give a verdict on one of so many events.
pub(super) fn is_enough(runs: [usize; 2], events: usize, alpha: f64) -> bool {
    runs.iter().all(|&runs| runs > 1) && least_p(runs) * (events as f64) < alpha
}

/// The least runs of each side that can.
pub(super) fn enough(events: usize, alpha: f64) -> usize {
    (2..MOST_RUNS).find(|&runs| is_enough([runs; 2], events, alpha)).unwrap_or(MOST_RUNS)
}

/// How many runs of each side tell these apart in nine of ten cases, should they differ as they seem to; `None` above
/// 1,000. The t of that difference is to lie as far above what the test asks for as nine of ten fall short of it less.
pub(super) fn needed((a, b): &(RunSpread, RunSpread), events: usize, alpha: f64) -> Option<usize> {
    let effect = (b.mean - a.mean).abs() / (0.5 * (a.of_a_run() + b.of_a_run())).sqrt();
    let is_shown = |runs: usize| {
        let degrees = 2.0 * runs as f64 - 2.0;
        let asked =
            two_sided_quantile(alpha / events as f64, degrees) + two_sided_quantile(2.0 * (1.0 - POWER), degrees);
        effect * (runs as f64 / 2.0).sqrt() >= asked
    };
    let least = enough(events, alpha).max(a.runs.max(b.runs) + 1);
    if !is_shown(MOST_RUNS) {
        return None;
    }
    let (mut low, mut high) = (least, MOST_RUNS.max(least));
    while low < high {
        let middle = low.midpoint(high);
        if is_shown(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// A test of two means: the squared standard error of each, and how well these are known.
#[derive(Clone, Copy, Debug)]
struct Test {
    a: f64,
    b: f64,
    degrees: f64,
    p: f64,
}

impl Test {
    /// Welch's or Student's, whichever is less sure.
    fn of(a: &RunSpread, b: &RunSpread) -> Self {
        let least = a.least_p(b);
        let (m, n) = (a.counted as f64, b.counted as f64);
        let difference = b.mean - a.mean;
        let test = |(a, b): (f64, f64), degrees: f64| {
            let p = match difference {
                0.0 => 1.0,
                _ => two_sided_tail(difference.abs() / (a + b).sqrt(), degrees).max(least),
            };
            Self { a, b, degrees, p }
        };
        let apart = (a.variance / m, b.variance / n);
        let degrees = (apart.0 + apart.1).powi(2) / (apart.0.powi(2) / (m - 1.0) + apart.1.powi(2) / (n - 1.0));
        let both = (a.variance * (m - 1.0) + b.variance * (n - 1.0)) / (m + n - 2.0);
        let student = test((both / m, both / n), m + n - 2.0);
        if both == 0.0 {
            return student;
        }
        let welch = test(apart, degrees);
        if student.p > welch.p { student } else { welch }
    }

    /// By what part of the size of the first mean the second differs from it, with this probability of being wrong;
    /// `None` where neither varies, and where the first can't be distinguished from 0.
    fn change(&self, means: &(RunSpread, RunSpread), alpha: f64) -> Option<(f64, f64)> {
        let (low, high) = self.ratio(means, alpha)?;
        Some(match means {
            (a, _) if a.mean < 0.0 => (-high, -low),
            // What is never below 0 loses no more than all.
            (_, b) if b.mean >= 0.0 => (low.max(-1.0), high),
            _ => (low, high),
        })
    }

    /// The interval of the second mean over the first, less 1 (Fieller, "Some problems in interval estimation", 1954).
    fn ratio(&self, (a, b): &(RunSpread, RunSpread), alpha: f64) -> Option<(f64, f64)> {
        let square = two_sided_quantile(alpha, self.degrees).powi(2);
        let scale = a.mean * a.mean - square * self.a;
        if self.a + self.b == 0.0 || scale <= 0.0 {
            return None;
        }
        let root = (square * (self.a * b.mean * b.mean + self.b * scale)).sqrt();
        let end = |root: f64| (a.mean * b.mean + root) / scale - 1.0;
        Some((end(-root), end(root)))
    }

    /// How many times the smaller mean the larger one is, with this probability of being less: 1 where the means may be
    /// the same. Where the first can't be distinguished from 0, it is how many times the second the first is that has
    /// an interval. Of means on both sides of 0 it is 1 and what lies between them, in parts of the first.
    fn least_factor(&self, (a, b): &(RunSpread, RunSpread), alpha: f64) -> f64 {
        if self.a + self.b == 0.0 {
            let (low, high) = (a.mean.abs().min(b.mean.abs()), a.mean.abs().max(b.mean.abs()));
            return if high > low { high / low } else { 1.0 };
        }
        let nearest = |(low, high): (f64, f64)| match () {
            () if low > 0.0 => 1.0 + low,
            () if high < 0.0 && a.mean * b.mean < 0.0 => 1.0 - high,
            () if high < 0.0 => 1.0 / (1.0 + high).max(0.0),
            () => 1.0,
        };
        let reversed = Self { a: self.b, b: self.a, ..*self };
        self.ratio(&(*a, *b), alpha).or_else(|| reversed.ratio(&(*b, *a), alpha)).map_or(1.0, nearest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALPHA: f64 = 0.05;

    fn spread(values: &[f64]) -> RunSpread {
        RunSpread::of(values).unwrap_or(RunSpread { runs: 0, counted: 0, mean: 0.0, variance: 0.0 })
    }

    #[test]
    fn means_without_outliers_by_hand() {
        // 1 and 90 are left out; in the variance they count as 2 and 6: 2, 2, 3, 4, 5, 6, 6 have the mean 4 and the
        // squares 18.
        let spread = RunSpread::without_outliers(&[4.0, 90.0, 2.0, 1.0, 3.0, 5.0, 6.0]);
        assert_eq!(spread, Some(RunSpread { runs: 7, counted: 5, mean: 4.0, variance: 18.0 / 4.0 }));
        let few = [4.0, 90.0, 2.0];
        assert_eq!([RunSpread::without_outliers(&few), RunSpread::without_outliers(&[])], [RunSpread::of(&few), None]);
    }

    #[test]
    fn runs_that_are_left_out_may_be_in_the_other_mode() {
        assert!((at_most(1, 7, 0.5) - 8.0 / 128.0).abs() < 1e-12 && (at_most(3, 3, 0.3) - 1.0).abs() < 1e-12);
        let modes = |other: usize| (0..7).map(|at| if at < other { 120.0 } else { 100.0 }).collect::<Vec<_>>();
        let (a, b) = (RunSpread::without_outliers(&modes(1)), RunSpread::without_outliers(&modes(6)));
        // Half and half: 2 (8 / 128)².
        let least = a.zip(b).map(|(a, b)| a.least_p(&b));
        assert!(least.is_some_and(|least| (least - 2.0 * (8.0_f64 / 128.0).powi(2)).abs() < 1e-9), "{least:?}");
    }

    #[test]
    fn one_slow_run_hides_no_difference() {
        let side = |by: f64| (0..20).map(|at| by + 0.01 * f64::from(at * 7 % 20)).collect::<Vec<_>>();
        let (mut a, b) = (side(10.0), side(11.0));
        a[3] = 40.0;
        let decided = |of: fn(&[f64]) -> Option<RunSpread>| {
            decide(
                &[(of(&a).unwrap_or_else(|| spread(&[])), of(&b).unwrap_or_else(|| spread(&[])))],
                Confidence::DEFAULT,
            )[0]
        };
        let differs = |decision: Decision| matches!(decision, Decision::Tested { differs: true, .. });
        assert!(!differs(decided(RunSpread::of)) && differs(decided(RunSpread::without_outliers)));
    }

    fn one(a: &[f64], b: &[f64]) -> Decision {
        decide(&[(spread(a), spread(b))], Confidence::DEFAULT)[0]
    }

    #[test]
    fn one_event_by_hand() {
        // Means 3 and 9, variances 2.5 each: t = 6 over the root of 1, 8 degrees, p = 0.00032; the floor is 0.00206.
        let Decision::Tested { p, differs, interval: Some((low, high)), least_factor } =
            one(&[1.0, 2.0, 3.0, 4.0, 5.0], &[7.0, 8.0, 9.0, 10.0, 11.0])
        else {
            panic!()
        };
        assert!(differs && (p - 0.002_065).abs() < 1e-5, "{p}");
        // Fieller: t² is 5.31766, 9 - t²/2 = 6.34117, and (27 ± sqrt(t² (81/2 + 6.34117/2))) / 6.34117 - 1.
        assert!((low - 0.854_715).abs() < 1e-5 && (high - 5.661_06).abs() < 1e-4, "{low} {high}");
        assert_eq!(least_factor, 1.0 + low);
        // The other way round the factor is the same, up to what the interval is a part of.
        let Decision::Tested { interval: Some((_, high)), least_factor: fewer, .. } =
            one(&[7.0, 8.0, 9.0, 10.0, 11.0], &[1.0, 2.0, 3.0, 4.0, 5.0])
        else {
            panic!()
        };
        assert!((fewer - 1.0 / (1.0 + high)).abs() < 1e-12 && (fewer - least_factor).abs() < 1e-9, "{fewer}");
    }

    #[test]
    fn means_below_zero_by_hand() {
        let tested = |a: &[f64], b: &[f64]| match one(a, b) {
            Decision::Tested { interval: Some(interval), least_factor, .. } => (interval, least_factor),
            other => panic!("{other:?}"),
        };
        let of = |values: [f64; 5], sign: f64| values.map(|value| sign * value);
        let (three, nine) = ([1.0, 2.0, 3.0, 4.0, 5.0], [7.0, 8.0, 9.0, 10.0, 11.0]);
        let ((low, high), factor) = tested(&three, &nine);
        // From -3 to -9 is as far down as from 3 to 9 is up, and as many times as much.
        let ((below, above), mirrored) = tested(&of(three, -1.0), &of(nine, -1.0));
        assert!((below + high).abs() < 1e-9 && (above + low).abs() < 1e-9 && (mirrored - factor).abs() < 1e-9);
        // From 9 to -3: the part is -4/3, and the ends stand in their order around it.
        let ((low, high), factor) = tested(&nine, &of(three, -1.0));
        assert!(low < -4.0 / 3.0 && -4.0 / 3.0 < high && high < -1.0, "{low} {high}");
        assert_eq!(factor, 1.0 - high);
    }

    #[test]
    fn three_runs_and_ten_are_less_sure_than_welch() {
        let (a, b) =
            (spread(&[10.0, 10.01, 9.99]), spread(&[10.0, 10.5, 11.0, 9.6, 10.4, 11.2, 9.9, 10.9, 10.3, 10.2]));
        assert_eq!(Test::of(&a, &b).degrees, 11.0);
        let (a, b) = (spread(&[1.0, 2.0, 4.0, 3.0]), spread(&[10.0, 50.0, 20.0, 30.0]));
        assert!(Test::of(&a, &b).degrees < 4.0);
    }

    #[test]
    fn few_runs_give_no_verdict_and_how_many_do_is_told() {
        assert_eq!(one(&[1.0], &[9.0]), Decision::TooFew);
        assert_eq!(one(&[1.0, 1.0], &[9.0, 9.0]), Decision::TooFew);
        let least = [([2, 2], 0.148_148), ([3, 3], 0.034_56), ([5, 5], 0.002_065), ([2, 10], 0.005_435), ([1, 1], 1.0)];
        for (runs, p) in least {
            assert!((least_p(runs) - p).abs() < 1e-5, "{runs:?}: {}", least_p(runs));
        }
        assert_eq!([1, 5, 12, 24, 25, 90, 390].map(|events| enough(events, ALPHA)), [3, 4, 5, 5, 6, 6, 7]);
    }

    #[test]
    fn what_never_varies_differs_as_surely_as_the_number_of_runs_says() {
        let exact = |value: f64, runs: usize| spread(&vec![value; runs]);
        let decided = |runs: usize, events: usize| {
            let mut pairs = vec![(exact(7.0, runs), exact(7.0, runs)); events];
            pairs[0].1 = exact(8.0, runs);
            decide(&pairs, Confidence::DEFAULT)[0]
        };
        assert!(matches!(decided(5, 12), Decision::Tested { differs: true, interval: None, .. }));
        assert_eq!(decided(4, 12), Decision::TooFew);
        assert!(matches!(one(&[0.1; 3], &[0.1; 3]), Decision::Tested { differs: false, .. }));
        // Zeros have no parts.
        assert!(matches!(one(&[0.0; 3], &[5.0, 6.0, 7.0]), Decision::Tested { interval: None, .. }));
    }

    #[test]
    fn holm_by_hand() {
        // t of 12.6, 4.11 and 0.316 with 8 degrees: p of the floor, 0.0034 and 0.76, times 3, 2 and 1.
        let a = spread(&[1.0, 2.0, 3.0, 4.0, 5.0].map(|value| value + 100.0));
        let shifted = |by: f64| (a, RunSpread { mean: a.mean + by, ..a });
        let found = decide(&[shifted(4.11), shifted(0.316), shifted(12.6)], Confidence::DEFAULT);
        let p = |place: usize| match found[place] {
            Decision::Tested { p, .. } => p,
            Decision::TooFew => panic!(),
        };
        assert!((p(2) - 3.0 * 0.002_065).abs() < 1e-4, "{}", p(2));
        assert!((p(0) - 2.0 * 0.003_39).abs() < 1e-4, "{}", p(0));
        assert!((p(1) - 0.760).abs() < 1e-3, "{}", p(1));
    }

    #[test]
    fn the_runs_that_a_difference_takes() {
        let pair = |by: f64| {
            let one = |mean: f64| RunSpread { runs: 3, counted: 3, mean, variance: 1.0 };
            (one(10.0), one(10.0 + by))
        };
        // 12 events, 4 standard deviations: 3.96 + 1.40 are 5.36, and 4 sqrt(5 / 2) is 6.32; 4 runs can't at all.
        assert_eq!(needed(&pair(4.0), 12, ALPHA), Some(5));
        assert_eq!(needed(&pair(1.0), 12, ALPHA), Some(37));
        assert_eq!((needed(&pair(0.01), 12, ALPHA), needed(&pair(0.0), 12, ALPHA)), (None, None));
    }

    fn runs() -> impl Strategy<Value = Vec<f64>> {
        (1e-3f64..1e12, 1e-6f64..1.0, prop::collection::vec(-1.0f64..1.0, 3..9))
            .prop_map(|(mean, spread, values)| values.iter().map(|value| mean * (1.0 + spread * value)).collect())
    }

    proptest! {
        #[test]
        fn an_interval_leaves_out_0_where_there_is_a_verdict(
            pairs in prop::collection::vec((runs(), runs(), 0.5f64..2.0, any::<bool>()), 1..6),
        ) {
            // Half of the second sides are near the first.
            let pairs: Vec<_> = pairs.iter().map(|(a, b, factor, near)| {
                let b: Vec<f64> = if *near { a.iter().zip(b.iter().cycle()).map(|(a, b)| a * factor + b * 1e-9).collect() } else { b.clone() };
                (spread(a), spread(&b))
            }).collect();
            for (decision, (a, b)) in decide(&pairs, Confidence::DEFAULT).into_iter().zip(&pairs) {
                if let Decision::Tested { p, differs, interval: Some((low, high)), least_factor } = decision {
                    prop_assert_eq!(differs, least_factor > 1.0);
                    prop_assert!((0.0..=1.0).contains(&p) && low <= high);
                    prop_assert_eq!(differs, low > 0.0 || high < 0.0);
                    let change = b.mean / a.mean - 1.0;
                    prop_assert!(low <= change + 1e-9 && change <= high + 1e-9);
                }
            }
        }
    }
}
