//! Takes outliers out of a series, and estimates its noise from the differences of neighbours, which steps hardly change.

use crate::weighted::WeightedValue;

/// Values further than so many deviations from the median of the five around them become that median. Normal noise has 1 of
/// 2,000 further off.
const FAR: f64 = 3.5;

/// If more values than this share are far off, the values have two levels in turns, and those aren't outliers.
const MOST: f64 = 0.08;

/// Where no value is far off, so few in a row are enough.
const WITHOUT_OUTLIERS: usize = 3;

/// The noise at a place is that of so many differences around it.
const AROUND: usize = 60;

/// The noise at a place may differ by such a factor by chance.
const USUAL: f64 = 1.5;

/// The share of differences that count; the largest are of steps and outliers.
const KEPT: f64 = 0.75;

/// The mean of that share of the absolute values of a normal variable, the smallest: 2 (φ(0) - φ(q)) / 0.75 for P(|Z| < q) = 0.75.
const MEAN_OF_KEPT: f64 = 0.514_776;

/// A series without outliers.
pub(super) struct CleanedValues {
    pub(super) values: Vec<f64>,
    /// The standard deviation of the noise at each place, over that of the whole series.
    pub(super) scales: Vec<f64>,
    /// Which values were taken out.
    pub(super) is_outlier: Vec<bool>,
    without: usize,
    /// The standard deviation of the noise, as differences of neighbours have it.
    pub(super) noise: f64,
    /// How much of the noise of one value the next one has.
    pub(super) correlation: f64,
}

impl CleanedValues {
    /// The least number of values that outliers don't fill by chance: n qᵐ is below 1/1000 for the share q of outliers.
    pub(super) fn shortest(&self) -> usize {
        let count = self.values.len() as f64;
        let shortest = ((1000.0 * count).ln() / -self.share().ln()).ceil().max(1.0) as usize;
        if self.outliers() == 0 { shortest.min(self.without) } else { shortest }
    }

    fn outliers(&self) -> usize {
        self.is_outlier.iter().filter(|is_outlier| **is_outlier).count()
    }

    /// The share of outliers; half a one more than was seen.
    pub(super) fn share(&self) -> f64 {
        (self.outliers() as f64 + 0.5) / self.values.len() as f64
    }

    /// The variance of the noise as differences have it, and its correlation, rather more than less.
    pub(super) fn noise_of_differences(&self) -> (f64, f64) {
        let uncertain = (self.values.len() as f64).sqrt().recip();
        let correlation = (self.correlation + uncertain).clamp(0.0, 0.8);
        (self.noise.powi(2) / (1.0 - correlation), correlation)
    }
}

/// Takes out outliers of one or two values in a row: a median of five moves with a step, and not with those (a Hampel filter).
pub(super) fn clean(points: &[WeightedValue]) -> CleanedValues {
    let raw: Vec<f64> = points.iter().map(|point| point.value).collect();
    let noises = local_noise(&raw);
    let middles: Vec<f64> =
        (0..raw.len()).map(|at| median_of_few(&raw[at.saturating_sub(2)..(at + 3).min(raw.len())])).collect();
    let off: Vec<f64> =
        (0..raw.len()).map(|at| (raw[at] - middles[at]).abs() / noises[at].max(f64::MIN_POSITIVE)).collect();
    let far = usual(off.clone()).max(FAR);
    let far_off: Vec<usize> = (0..raw.len()).filter(|&at| off[at] > far).collect();
    let is_step = is_short_step(&far_off, &raw, &middles, &noises);
    let is_outlier = |at: usize| off[at] > far && !is_step;
    let is_outlier: Vec<bool> = (0..raw.len()).map(is_outlier).collect();
    let values: Vec<f64> = (0..raw.len()).map(|at| if is_outlier[at] { middles[at] } else { raw[at] }).collect();
    let noise = deviation(&mut differences(&values, 1));
    let unit = deviation(&mut differences(&raw, 1));
    let scale = |local: f64| if unit > 0.0 { (local / unit).clamp(0.1, 10.0) } else { 1.0 };
    let scales: Vec<f64> = noises.into_iter().map(scale).collect();
    // For noise that keeps the part r from one value to the next, the differences of neighbours have the variance
    // 2 s² (1 - r), and those of every other value 2 s² (1 - r²); the second over the first is 1 + r (Chakar and others,
    // "A robust approach for estimating change-points in the mean of an AR(1) process", 2017).
    let further = deviation(&mut differences(&values, 2));
    let correlation = if noise > 0.0 { (further / noise).powi(2) - 1.0 } else { 0.0 };
    let without = if is_step { 2 } else { WITHOUT_OUTLIERS };
    CleanedValues { values, scales, is_outlier, without, noise, correlation }
}

/// Whether the only values that are far off are two in a row, on one side, and near one another but not near the others. Outliers
/// would have come one by one.
fn is_short_step(far_off: &[usize], raw: &[f64], middles: &[f64], noises: &[f64]) -> bool {
    let &[a, b] = far_off else { return false };
    let (by, noise) = ([raw[a] - middles[a], raw[b] - middles[b]], noises[a]);
    let is_far = by.iter().all(|by| by.abs() > 2.0 * FAR * noise) && by[0].signum() == by[1].signum();
    b == a + 1 && is_far && (raw[a] - raw[b]).abs() < FAR * noise && a > 1 && b + 2 < raw.len()
}

/// What so few values exceed that the others aren't outliers of theirs.
fn usual(mut off: Vec<f64>) -> f64 {
    let place = ((1.0 - MOST) * off.len() as f64) as usize;
    if place >= off.len() {
        return f64::INFINITY;
    }
    *off.select_nth_unstable_by(place, f64::total_cmp).1
}

fn differences(values: &[f64], distance: usize) -> Vec<f64> {
    values.iter().zip(values.iter().skip(distance)).map(|(a, b)| (b - a).abs()).collect()
}

/// The standard deviation of normal noise with such absolute differences; 0 for none.
fn deviation(differences: &mut [f64]) -> f64 {
    let kept = (differences.len() as f64 * KEPT) as usize;
    if kept == 0 {
        return 0.0;
    }
    differences.select_nth_unstable_by(kept, f64::total_cmp);
    deviation_of_kept(&differences[..kept])
}

fn deviation_of_kept(kept: &[f64]) -> f64 {
    kept.iter().sum::<f64>() / kept.len() as f64 / (MEAN_OF_KEPT * 2.0_f64.sqrt())
}

/// The standard deviation of the noise at each place: at least half that of the series, as few differences may be equal by chance.
fn local_noise(values: &[f64]) -> Vec<f64> {
    let mut all = differences(values, 1);
    let whole = deviation(&mut all.clone());
    if all.len() <= AROUND {
        return vec![whole; values.len()];
    }
    let mut sorted = all[..AROUND].to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let kept = (AROUND as f64 * KEPT) as usize;
    let mut noises = vec![deviation_of_kept(&sorted[..kept])];
    for (old, new) in all.iter().zip(&all[AROUND..]) {
        let gone = sorted.partition_point(|other| other < old);
        sorted.remove(gone);
        let place = sorted.partition_point(|other| other < new);
        sorted.insert(place, *new);
        noises.push(deviation_of_kept(&sorted[..kept]));
    }
    let last = noises.len() - 1;
    all.clear();
    // Where the noise grows, the differences on one side say so.
    let at_either_side = |at: usize| noises[at.saturating_sub(AROUND).min(last)].max(noises[at.min(last)]);
    let is_usual = |noise: &f64| (whole / USUAL..=whole * USUAL).contains(noise);
    (0..values.len()).map(at_either_side).map(|noise| if is_usual(&noise) { whole } else { noise }).collect()
}

/// The median of up to five values.
fn median_of_few(values: &[f64]) -> f64 {
    let mut sorted = [f64::INFINITY; 5];
    sorted[..values.len()].copy_from_slice(values);
    sorted.sort_unstable_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) { f64::midpoint(sorted[half - 1], sorted[half]) } else { sorted[half] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(values: &[f64]) -> CleanedValues {
        clean(&values.iter().map(|&value| WeightedValue { value, weight: 1.0 }).collect::<Vec<_>>())
    }

    #[test]
    fn one_outlier_becomes_the_median_of_five() {
        let mut values: Vec<f64> = (0..40).map(|at| f64::from(at * 7 % 5)).collect();
        values[20] = 100.0;
        // Around it are 1, 3, 2 and 4.
        assert_eq!((values[18], values[19], values[21], values[22]), (1.0, 3.0, 2.0, 4.0));
        let cleaned = cleaned(&values);
        assert_eq!((cleaned.values[20], cleaned.outliers()), (3.0, 1));
        assert_eq!(cleaned.values[..20], values[..20]);
    }

    #[test]
    fn a_step_moves_no_value() {
        let values: Vec<f64> = (0..40).map(|at| f64::from(at * 7 % 5) + if at < 17 { 0.0 } else { 50.0 }).collect();
        assert_eq!(cleaned(&values).values, values);
        assert_eq!(cleaned(&[1.0]).values, [1.0]);
        assert!(cleaned(&[]).values.is_empty());
    }

    #[test]
    fn shortest_steps_by_hand() {
        // 5000 · 0.02^m < 1/1000 from m = 4 on.
        let cleaned = CleanedValues {
            values: vec![0.0; 5000],
            scales: Vec::new(),
            is_outlier: (0..5000).map(|at| at < 100).collect(),
            without: 3,
            noise: 1.0,
            correlation: 0.0,
        };
        assert_eq!(cleaned.shortest(), 4);
        assert_eq!(CleanedValues { is_outlier: vec![false; 5000], ..cleaned }.shortest(), 2);
    }
}
