//! Takes the points of a series that are there, with their weights.

use super::step::Step;
use super::weighted::{WeightedValue, centre};

/// The points of a series that are there, in its order.
#[derive(Clone, Debug, PartialEq)]
pub struct PresentPoints {
    /// Their values, and their weights relative to the median one.
    pub points: Vec<WeightedValue>,
    /// Where each stands in the series.
    pub positions: Vec<usize>,
}

impl PresentPoints {
    /// Leaves out what is missing: `None`, what isn't finite, and values whose weight is 0 or less. A missing weight is the
    /// median one. The weights of missing points count in the median too, and so do those of 0 or less.
    pub fn new(values: &[Option<f64>], weights: Option<&[Option<f64>]>) -> Self {
        let number = |number: Option<&Option<f64>>| number.copied().flatten().filter(|number| number.is_finite());
        let weight = |at: usize| number(weights.and_then(|weights| weights.get(at)));
        let unit =
            median((0..values.len()).filter_map(weight).collect()).filter(|&median| median != 0.0).unwrap_or(1.0);
        let (points, positions) = values
            .iter()
            .enumerate()
            .filter_map(|(at, value)| {
                let (value, weight) = (number(Some(value))?, weight(at));
                let point = WeightedValue { value, weight: weight.map_or(1.0, |weight| weight / unit) };
                weight.is_none_or(|weight| weight > 0.0).then_some((point, at))
            })
            .unzip();
        Self { points, positions }
    }

    /// The steps that end before these points.
    pub(super) fn steps(&self, rights: &[usize]) -> Vec<Step> {
        let lefts = std::iter::once(0).chain(rights.iter().copied());
        lefts.zip(rights).map(|(left, &right)| self.step(left, right)).collect()
    }

    fn step(&self, left: usize, right: usize) -> Step {
        let points = &self.points[left..right];
        let centre = centre(points);
        Step {
            left: self.positions[left],
            right: self.positions[right - 1] + 1,
            value: centre.median,
            minimum: points.iter().fold(f64::INFINITY, |least, point| least.min(point.value)),
            error: (centre.distance / points.len() as f64).abs(),
        }
    }
}

/// The median, which is the mean of two for an even number of them; `None` for none.
pub fn median(mut numbers: Vec<f64>) -> Option<f64> {
    let (half, is_even) = (numbers.len() / 2, numbers.len().is_multiple_of(2));
    if numbers.is_empty() {
        return None;
    }
    let (lower, &mut upper, _) = numbers.select_nth_unstable_by(half, f64::total_cmp);
    let below = lower.iter().copied().max_by(f64::total_cmp);
    Some(below.filter(|_| is_even).map_or(upper, |below| f64::midpoint(below, upper)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_points_are_left_out_and_weights_are_relative_to_the_median() {
        let values = [Some(1.0), None, Some(f64::NAN), Some(4.0), Some(5.0), Some(6.0)];
        let weights = [Some(2.0), Some(2.0), Some(2.0), None, Some(0.0), Some(6.0)];
        let present = PresentPoints::new(&values, Some(&weights));
        assert_eq!(present.positions, [0, 3, 5]);
        assert_eq!(present.points.iter().map(|point| point.weight).collect::<Vec<_>>(), [1.0, 1.0, 3.0]);
        let steps = present.steps(&[2, 3]);
        let shown: Vec<_> = steps.iter().map(|step| (step.left, step.right, step.value, step.minimum)).collect();
        assert_eq!(shown, [(0, 4, 2.5, 1.0), (5, 6, 6.0, 6.0)]);
        assert_eq!(steps[0].error, 1.5);
    }

    #[test]
    fn nothing_gives_nothing() {
        assert!(PresentPoints::new(&[None], Some(&[])).points.is_empty());
        assert_eq!(median(Vec::new()), None);
        assert_eq!(median(vec![3.0, 1.0]), Some(2.0));
    }
}
