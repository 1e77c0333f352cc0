//! Packs a series into a few characters, from which the grid draws a small plot.
//!
//! ```text
//! points   lowest and highest value of each of a few stretches of commits    two digits, or '.' for none
//! steps    first stretch, last stretch, level                                three digits each
//! ```
//!
//! A digit is one of 64; heights go from the lowest value to the highest.

use super::entries::SiteLine;

/// The digits, by value.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// The most stretches of commits.
pub(super) const MOST_STRETCHES: usize = 64;
/// The part of its level that a plot is high at least: noise of less isn't blown up.
const LEAST_HEIGHT: f64 = 0.1;
/// The last steps are drawn, so many of them.
const MOST_STEPS: usize = 24;

/// A small plot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlotShape {
    pub(super) points: String,
    pub(super) steps: String,
}

/// The stretch of commits that each place of a series falls into.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlotWidth {
    /// How many commits there are.
    pub(super) commits: usize,
    /// How many stretches they are packed into, at most [`MOST_STRETCHES`].
    pub(super) stretches: usize,
}

impl PlotWidth {
    /// The stretch of the commit with this number.
    fn stretch(self, commit: usize) -> usize {
        match self.commits {
            // So few have a stretch of their own.
            commits if commits <= self.stretches => commit,
            commits => commit * self.stretches / commits,
        }
    }

    /// How many stretches are drawn.
    pub(super) fn drawn(self) -> usize {
        self.stretches.min(self.commits)
    }
}

/// The small plot of a line. `numbers` says for each of its places which commit it is, from 0.
pub(super) fn shape(line: &SiteLine, numbers: &[usize], width: PlotWidth) -> PlotShape {
    let Some(height) = PlotHeight::of(line) else { return PlotShape { points: String::new(), steps: String::new() } };
    let mut ends: Vec<Option<(f64, f64)>> = vec![None; width.drawn()];
    for (value, &number) in line.values.iter().zip(numbers) {
        if let (Some(value), Some(end)) = (value, ends.get_mut(width.stretch(number))) {
            let (low, high) = end.unwrap_or((*value, *value));
            *end = Some((low.min(*value), high.max(*value)));
        }
    }
    let points = ends.into_iter().map(|end| match end {
        Some((low, high)) => [height.digit(low), height.digit(high)].into_iter().collect(),
        None => ".".to_owned(),
    });
    let last = &line.steps[line.steps.len().saturating_sub(MOST_STEPS)..];
    let steps = last.iter().flat_map(|step| {
        let [left, right] = [step.left, step.right - 1].map(|place| digit(width.stretch(numbers[place])));
        [left, right, height.digit(step.value)]
    });
    PlotShape { points: points.collect(), steps: steps.collect() }
}

/// What the bottom of a plot stands for, and its whole height.
#[derive(Clone, Copy, Debug)]
struct PlotHeight {
    bottom: f64,
    height: f64,
}

impl PlotHeight {
    fn of(line: &SiteLine) -> Option<Self> {
        let values = || line.values.iter().flatten().copied();
        let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
        let least = LEAST_HEIGHT * f64::midpoint(low, high).abs();
        let height = (high - low).max(least);
        let height = if height > 0.0 && height.is_finite() { height } else { 1.0 };
        Some(Self { bottom: f64::midpoint(low, high) - height / 2.0, height })
    }

    fn digit(self, value: f64) -> char {
        let part = (value - self.bottom) / self.height;
        digit((part.clamp(0.0, 1.0) * (DIGITS.len() - 1) as f64).round() as usize)
    }
}

fn digit(number: usize) -> char {
    char::from(DIGITS[number.min(DIGITS.len() - 1)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::steps::Step;

    fn line(values: &[Option<f64>], steps: &[(usize, usize, f64)]) -> SiteLine {
        let step =
            |&(left, right, value): &(usize, usize, f64)| Step { left, right, value, minimum: value, error: 0.0 };
        SiteLine {
            entry: "b".into(),
            values_of_params: Vec::new(),
            values: values.to_vec(),
            weights: Vec::new(),
            details: Vec::new(),
            steps: steps.iter().map(step).collect(),
            changes: Vec::new(),
            rises: Vec::new(),
        }
    }

    #[test]
    fn a_plot_by_hand() {
        let one = line(&[Some(1.0), None, Some(2.0), Some(3.0)], &[(0, 1, 1.0), (2, 4, 3.0)]);
        let all = |stretches| shape(&one, &[0, 1, 2, 3], PlotWidth { commits: 4, stretches });
        // The lowest is A, the highest _, and the middle 31.5 of 63.
        assert_eq!(all(64), PlotShape { points: "AA.gg__".into(), steps: "AAACD_".into() });
        assert_eq!(all(2), PlotShape { points: "AAg_".into(), steps: "AAABB_".into() });
    }

    #[test]
    fn noise_is_not_blown_up() {
        // A tenth of 100.5 is 10.05, from 95.475 on: 100 is at 0.4503, the digit 28, and 101 at 0.5497, the digit 35.
        let noise = shape(&line(&[Some(100.0), Some(101.0)], &[]), &[0, 1], PlotWidth { commits: 2, stretches: 64 });
        assert_eq!(noise.points, "ccjj");
        let zero = shape(&line(&[Some(0.0)], &[]), &[0], PlotWidth { commits: 1, stretches: 64 });
        assert_eq!(zero.points, "gg");
        assert_eq!(shape(&line(&[None], &[]), &[0], PlotWidth { commits: 1, stretches: 64 }).points, "");
    }

    proptest! {
        #[test]
        fn any_series_can_be_drawn(values in prop::collection::vec(prop::option::of(any::<f64>().prop_filter("finite", |x| x.is_finite())), 1..200), stretches in 1usize..64) {
            let numbers: Vec<usize> = (0..values.len()).collect();
            let width = PlotWidth { commits: values.len(), stretches };
            let drawn = shape(&line(&values, &[(0, values.len(), 1.0)]), &numbers, width);
            let gaps = drawn.points.matches('.').count();
            prop_assert!(drawn.points.is_empty() || (drawn.points.len() - gaps) / 2 + gaps == width.drawn());
        }
    }
}
