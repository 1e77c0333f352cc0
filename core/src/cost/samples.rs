//! Makes one number of the repeated measurements of a size, and says how uncertain it is.

use std::fmt;
use std::str::FromStr;

use crate::rates::{self, Confidence};
use crate::steps::median;

/// Which number stands for the repeated measurements of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Determinizer {
    /// The middle one of the sorted measurements, or the mean of the middle two. The lower of the two, as
    /// [`Percentile`](Self::Percentile) has it, is too low in all sizes, which repetitions don't mend.
    #[default]
    Median,
    /// The measurement that so many percent are below: see [`percentile`].
    Percentile(f64),
    /// The mean.
    Mean,
}

impl fmt::Display for Determinizer {
    /// Names the number: `the median`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Median => f.write_str("the median"),
            Self::Mean => f.write_str("the mean"),
            Self::Percentile(percent) => write!(f, "percentile {percent}"),
        }
    }
}

impl FromStr for Determinizer {
    type Err = String;

    /// Reads `mean`, `median`, or a percentile as in `p90`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "mean" => return Ok(Self::Mean),
            "median" => return Ok(Self::Median),
            _ => {}
        }
        let percent = text.strip_prefix('p').and_then(|number| number.parse().ok());
        let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
        percent.map(Self::Percentile).ok_or_else(|| "expected mean, median, or p0 to p100".into())
    }
}

impl Determinizer {
    /// The number that stands for these measurements; `None` where there are none.
    pub fn value(self, samples: &[f64]) -> Option<f64> {
        match self {
            Self::Median => median(samples.to_vec()),
            Self::Percentile(percent) => percentile(samples, percent),
            Self::Mean => moments(samples).map(|moments| moments.mean),
        }
    }

    /// The variance of that number between repetitions of the whole; `None` of fewer than three measurements.
    ///
    /// Of a mean it is the samples' variance over their number. Of a median of Gaussian errors it is pi/2 of that, where the
    /// variance comes from the distance of the quartiles. Other percentiles are taken to be as uncertain as the median,
    /// which does for the weights of sizes; [`quantile_interval`] says how uncertain they are.
    pub fn variance(self, samples: &[f64]) -> Option<f64> {
        match self {
            _ if samples.len() < FEWEST => None,
            Self::Mean => moments(samples).map(|moments| moments.variance / (samples.len() as f64 - 1.0)),
            Self::Median | Self::Percentile(_) => {
                let (low, high) = quartiles(samples)?;
                variance_of_median((high - low) / DISTANCE_OF_QUARTILES, samples.len())
            }
        }
    }
}

/// Fewer measurements don't say how far off they are.
const FEWEST: usize = 3;

/// The median of the distances from the median, which measurements far off don't move, squared.
pub(super) fn robust_square(samples: &[f64]) -> Option<f64> {
    let middle = median(samples.to_vec()).filter(|_| samples.len() >= FEWEST)?;
    median(samples.iter().map(|sample| (sample - middle).abs()).collect()).map(|distance| distance.powi(2))
}

/// The variance of the median of so many measurements with Gaussian errors of this standard deviation (Kendall and Stuart, "The
/// Advanced Theory of Statistics", 10.10); `None` of fewer than three.
pub fn variance_of_median(deviation: f64, count: usize) -> Option<f64> {
    (count >= FEWEST).then(|| std::f64::consts::FRAC_PI_2 * deviation.powi(2) / count as f64)
}

/// The distance of the quartiles of Gaussian errors, in standard deviations.
const DISTANCE_OF_QUARTILES: f64 = 1.348_98;

/// The quartiles, which a few measurements far off don't move, between two samples where they fall there. Of few samples they are
/// as far apart as those of many, on average (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996, definition 8).
fn quartiles(samples: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = |part: f64| {
        let place = (part * (sorted.len() as f64 + 1.0 / 3.0) - 2.0 / 3.0).clamp(0.0, last as f64);
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        low + place.fract() * (high - low)
    };
    Some((at(0.25), at(0.75)))
}

/// The element that stands at `percent` of the way from the first to the last of the sorted samples, without
/// interpolation: the median of an even number is the lower one.
pub fn percentile(samples: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = percent.clamp(0.0, 100.0) * (sorted.len().checked_sub(1)?) as f64 / 100.0;
    sorted.get(place.floor() as usize).copied()
}

/// The samples between which the quantile of their distribution lies in all but the part `outside` of sets, at most half of
/// it on either side, whatever that distribution is: the number of samples below a quantile is binomial (David and Nagaraja,
/// "Order Statistics", 2003, 7.1). `sorted` holds numbers from the least to the largest, and `share` is the quantile as a
/// part of one. A side on which too few samples lie is infinite: below the 0th and above the 100th percentile no number of
/// them is enough.
pub fn quantile_interval(sorted: &[f64], share: f64, outside: f64) -> (f64, f64) {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let count = sorted.len() as f64;
    // Of a power of 0 that isn't there nothing is left.
    let log_power = |base: f64, power: f64| if power == 0.0 { 0.0 } else { power * base.ln() };
    let (mut log_ways, mut below) = (0.0_f64, 0.0);
    for (k, &sample) in sorted.iter().enumerate() {
        let k = k as f64;
        below += (log_ways + log_power(share, k) + log_power(1.0 - share, count - k)).exp();
        if below <= outside / 2.0 {
            low = sample;
        }
        if below >= 1.0 - outside / 2.0 {
            high = sample;
            break;
        }
        log_ways += ((count - k) / (k + 1.0)).ln();
    }
    (low, high)
}

/// The interval of the median of so many measurements or more holds whatever their distribution is.
const ENOUGH_FOR_ORDER: usize = 6;

/// The interval of the median of a distribution; `None` of fewer than three samples.
///
/// Of six samples and more it is the one of [`quantile_interval`], with ends between two samples each, so that it is no wider than it
/// has to be (Hettmansperger and Sheather, "Confidence intervals based on interpolated order statistics", 1986). It doesn't ask how
/// many modes the distribution has. Of fewer it is Student's, by the distance of the quartiles, and holds all samples.
pub fn median_interval(samples: &[f64], confidence: Confidence) -> Option<(f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    if let Some(interval) = interpolated_interval(&sorted, confidence.alpha()) {
        return Some(interval);
    }
    let value = median(sorted.clone())?;
    let half = confidence.student((sorted.len() - 1) as f64) * Determinizer::Median.variance(&sorted)?.sqrt();
    Some((sorted.first()?.min(value - half), sorted.last()?.max(value + half)))
}

/// The interval of the median by the order of samples; `None` where too few lie outside of it.
fn interpolated_interval(sorted: &[f64], outside: f64) -> Option<(f64, f64)> {
    let count = sorted.len();
    if count < ENOUGH_FOR_ORDER {
        return None;
    }
    // The probabilities that at most so many samples lie below the median: of as many as may be outside, and of one more.
    let (mut rank, mut log_ways, mut below) = (0, 0.0_f64, 0.0);
    let next = loop {
        let next = below + (log_ways - count as f64 * 2.0_f64.ln()).exp();
        if next > outside / 2.0 {
            break next;
        }
        log_ways += ((count - rank) as f64 / (rank + 1) as f64).ln();
        (rank, below) = (rank + 1, next);
    };
    let from = rank.checked_sub(1)?;
    // By how much of the way to the next rank: for a share that Laplace's distribution has.
    let share = (outside / 2.0 - below) / (next - below);
    let (n, k) = (count as f64, rank as f64);
    let part = (n - k) * share / (k + (n - 2.0 * k) * share);
    let between = |end: f64, inner: f64| end + part * (inner - end);
    let low = between(sorted[from], sorted[from + 1]);
    Some((low, between(sorted[count - rank], sorted[count - rank - 1])))
}

/// Of fewer measurements the quartiles don't say what is far off.
const FEWEST_OF_QUARTILES: usize = 12;

/// Beyond so many distances of the quartiles a measurement is far off.
const FAR: f64 = 5.0;

/// The places of measurements that lie beyond the quartiles by five times their distance or more, which of Gaussian ones those of one
/// set in 200 do at most. None of fewer than twelve, or where the quartiles are equal.
pub fn far_off(samples: &[f64]) -> Vec<usize> {
    let quartiles = percentile(samples, 25.0).zip(percentile(samples, 75.0)).filter(|(low, high)| low < high);
    let Some((low, high)) = quartiles.filter(|_| samples.len() >= FEWEST_OF_QUARTILES) else { return Vec::new() };
    let width = FAR * (high - low);
    let is_far = |sample: f64| sample <= low - width || sample >= high + width;
    (0..samples.len()).filter(|&place| is_far(samples[place])).collect()
}

/// The mean and the variance of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleMoments {
    /// The mean.
    pub mean: f64,
    /// The mean square of the differences from the mean: divided by the number of samples.
    pub variance: f64,
}

/// The mean and the variance; `None` of no samples.
pub fn moments(samples: &[f64]) -> Option<SampleMoments> {
    let mean = rates::mean(samples)?;
    let squares: Vec<f64> = samples.iter().map(|sample| (sample - mean).powi(2)).collect();
    Some(SampleMoments { mean, variance: rates::mean(&squares)? })
}

/// Which measurements lie within so many standard deviations of the mean of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Culled {
    /// The least that is kept.
    pub lower: f64,
    /// The most that is kept.
    pub upper: f64,
    /// The places of those that are kept.
    pub kept: Vec<usize>,
}

/// Keeps what lies within `sigmas` standard deviations of the mean, both ends included, once and not again for what is
/// left.
///
/// Of different sizes it takes the largest ones away, not those that are odd.
pub fn cull(times: &[f64], sigmas: f64) -> Culled {
    let Some(SampleMoments { mean, variance }) = moments(times) else {
        return Culled { lower: f64::NAN, upper: f64::NAN, kept: Vec::new() };
    };
    let width = sigmas * variance.sqrt();
    let (lower, upper) = (mean - width, mean + width);
    let kept = (0..times.len()).filter(|&place| (lower..=upper).contains(&times[place])).collect();
    Culled { lower, upper, kept }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn what_is_far_off_by_hand() {
        // Quartiles of 0 to 12 are 3 and 9: -27 and 39 are five distances off.
        let all: Vec<f64> = (0..13).map(f64::from).collect();
        let with = |place: usize, value: f64| {
            let mut samples = all.clone();
            samples[place] = value;
            far_off(&samples)
        };
        assert_eq!(
            [with(12, 38.9), with(12, 39.0), with(0, -27.0), with(0, -26.9)],
            [vec![], vec![12], vec![0], vec![]]
        );
        assert!(far_off(&[]).is_empty() && far_off(&[1.0, 1.1, 99.0]).is_empty(), "too few");
        let mut equal = vec![5.0; 20];
        equal[3] = 6.0;
        assert!(far_off(&equal).is_empty(), "no distance to measure by");
    }

    #[test]
    fn gaussian_samples_are_seldom_far_off() {
        let mut random = crate::random::SplitMix64::new(3);
        const SETS: usize = 4000;
        let mut has_any = |count: usize| !far_off(&(0..count).map(|_| random.normal()).collect::<Vec<_>>()).is_empty();
        for count in [12, 15, 30] {
            let found = (0..SETS).filter(|_| has_any(count)).count();
            assert!(found < SETS / 200, "{found} sets of {count}");
        }
    }

    #[test]
    fn four_samples_by_hand() {
        let samples = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(percentile(&samples, 50.0), Some(2.0));
        assert_eq!(percentile(&samples, 100.0), Some(4.0));
        assert_eq!(Determinizer::Median.value(&samples), Some(2.5));
        assert_eq!(Determinizer::Median.value(&samples[..3]), Some(3.0));
        assert_eq!(moments(&samples), Some(SampleMoments { mean: 2.5, variance: 1.25 }));
        // 1.25 * 4 / 3 is the variance of the samples, a fourth of it that of the mean.
        assert_eq!(Determinizer::Mean.variance(&samples), Some(1.25 / 3.0));
        assert_eq!(cull(&samples, 1.0).kept, [2, 3]);
    }

    #[test]
    fn quartiles_by_hand() {
        // Of five, a quarter of 5 1/3 less 2/3 is the place 2/3 from 0, and three quarters of it 3 1/3.
        let (low, high) = quartiles(&[4.0, 1.0, 3.0, 2.0, 5.0]).unwrap();
        assert!((low - (1.0 + 2.0 / 3.0)).abs() < 1e-12 && (high - (4.0 + 1.0 / 3.0)).abs() < 1e-12, "{low} {high}");
        assert_eq!((quartiles(&[]), quartiles(&[7.0])), (None, Some((7.0, 7.0))));
    }

    #[test]
    fn intervals_of_quantiles_by_hand() {
        let to = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        // Of 10 samples, up to 1 lies below the median in 11 of 1024 sets, up to 2 in 56; up to 8 in 1013, up to 7 in 968.
        assert_eq!(quantile_interval(&to(10), 0.5, 0.05), (2.0, 9.0));
        // Of 40 samples, up to 31 lie below p90 in 0.0155 of sets, up to 32 in 0.0419; up to 39 in 0.9852, up to 38 in
        // 0.9195.
        assert_eq!(quantile_interval(&to(40), 0.9, 0.05), (32.0, 40.0));
        // p10 is its mirror.
        assert_eq!(quantile_interval(&to(40), 0.1, 0.05), (1.0, 9.0));
    }

    #[test]
    fn intervals_of_medians_by_hand() {
        let of = |samples: &[f64]| median_interval(samples, Confidence::DEFAULT);
        let to = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        // Of 10, one lies below in 11/1024 at most, two in 56/1024: (25.6 - 11)/45 is 0.32444, and 8 of that over 2 + 6 of it is 0.65766.
        let (low, high) = of(&to(10)).unwrap();
        assert!((low - 2.657_66).abs() < 1e-5 && (high - 8.342_34).abs() < 1e-5, "{low} {high}");
        // Of five, Student's t: 3.07629 around 3; two modes are both in it.
        let (low, high) = of(&to(5)).unwrap();
        assert!((low + 0.076_29).abs() < 1e-4 && (high - 6.076_29).abs() < 1e-4, "{low} {high}");
        assert!(of(&[1.0, 1.0, 1.0, 1.0, 9.0]).is_some_and(|(_, high)| high == 9.0));
        assert_eq!([of(&[]), of(&[1.0, 2.0]), of(&[7.0; 6])], [None, None, Some((7.0, 7.0))]);
    }

    #[test]
    fn intervals_of_medians_hold_with_one_mode_and_with_two() {
        const SETS: usize = 3000;
        let mut random = crate::random::SplitMix64::new(11);
        let truth = 1.013_35; // 10/11 of the lower mode lie below it.
        for count in [3, 5, 6, 7, 8, 9, 10, 30] {
            let (mut one_mode, mut two_modes) = (0, 0);
            for _ in 0..SETS {
                let noise: Vec<f64> = (0..count).map(|_| random.normal()).collect();
                let of_modes: Vec<f64> =
                    noise.iter().map(|noise| 0.01 * noise + if random.uniform() < 0.55 { 1.0 } else { 1.3 }).collect();
                let holds = |samples: &[f64], truth: f64| {
                    median_interval(samples, Confidence::DEFAULT).is_some_and(|(a, b)| a <= truth && truth <= b)
                };
                one_mode += usize::from(holds(&noise, 0.0));
                two_modes += usize::from(holds(&of_modes, truth));
            }
            let [one, two] = [one_mode, two_modes].map(|held| held as f64 / SETS as f64);
            assert!(one > 0.94 && two > if count < 5 { 0.86 } else { 0.9 }, "{count}: {one} {two}");
        }
    }

    #[test]
    fn quantiles_beyond_which_too_few_samples_lie_have_no_bound() {
        let to = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        let (least, most) = (f64::NEG_INFINITY, f64::INFINITY);
        // 0.9 to the 35th is 0.02503, to the 36th 0.02253.
        assert_eq!(quantile_interval(&to(35), 0.9, 0.05), (28.0, most));
        assert_eq!(quantile_interval(&to(36), 0.9, 0.05), (29.0, 36.0));
        assert_eq!([0.0, 1.0].map(|share| quantile_interval(&to(99), share, 0.05)), [(least, 1.0), (99.0, most)]);
        assert_eq!([&[][..], &[7.0]].map(|few| quantile_interval(few, 0.5, 0.05)), [(least, most); 2]);
        assert_eq!(quantile_interval(&[7.0; 6], 0.5, 0.05), (7.0, 7.0));
    }

    #[test]
    fn nothing_stands_for_no_samples() {
        assert_eq!((percentile(&[], 50.0), moments(&[]), Determinizer::Mean.value(&[])), (None, None, None));
        assert_eq!(Determinizer::default().variance(&[1.0, 2.0]), None);
        assert!(cull(&[], 2.0).kept.is_empty());
    }

    proptest::proptest! {
        #[test]
        fn half_of_the_samples_lie_between_the_quartiles(samples in proptest::collection::vec(-1e6..1e6_f64, 3..50)) {
            let (low, high) = quartiles(&samples).unwrap();
            let between = samples.iter().filter(|sample| (low..=high).contains(*sample)).count();
            proptest::prop_assert!((between as f64 - samples.len() as f64 / 2.0).abs() <= 1.0, "{between}");
        }

        #[test]
        fn a_percentile_is_one_of_the_samples(samples in proptest::collection::vec(-1e6..1e6_f64, 1..50), percent in 0.0..100.0_f64) {
            let found = percentile(&samples, percent);
            proptest::prop_assert!(found.is_some_and(|found| samples.contains(&found)));
            proptest::prop_assert!(percentile(&samples, 0.0) <= found && found <= percentile(&samples, 100.0));
        }

        #[test]
        fn a_percentile_lies_in_its_interval_which_grows_with_its_chance(
            mut samples in proptest::collection::vec(-1e6..1e6_f64, 0..200),
            percent in 0.0..100.0_f64,
        ) {
            samples.sort_by(f64::total_cmp);
            let [narrow, wide] = [0.05, 0.01].map(|outside| quantile_interval(&samples, percent / 100.0, outside));
            proptest::prop_assert!(wide.0 <= narrow.0 && narrow.1 <= wide.1, "{narrow:?} {wide:?}");
            if let Some(found) = percentile(&samples, percent).filter(|_| narrow.0.is_finite() && narrow.1.is_finite()) {
                proptest::prop_assert!(narrow.0 <= found && found <= narrow.1, "{found} {narrow:?}");
            }
            // Seen from the other side, it is the same.
            let mirrored: Vec<f64> = samples.iter().rev().map(|sample| -sample).collect();
            let (low, high) = quantile_interval(&mirrored, 1.0 - percent / 100.0, 0.05);
            proptest::prop_assert_eq!((-high, -low), narrow);
        }
    }
}
