//! Chooses what part of a number line a chart shows, and where its ticks are.

/// How places on an axis follow from numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences are as long.
    Linear,
    /// Equal ratios are as long.
    Logarithmic,
}

/// An axis.
#[derive(Clone, Debug)]
pub struct ChartAxis {
    /// What it measures.
    pub label: String,
    /// How numbers are spread.
    pub scale: Scale,
    /// How its numbers are written.
    pub format: fn(f64) -> String,
    /// The numbers at both ends.
    pub ends: (f64, f64),
}

/// A ratio of the largest number to the smallest from which on a scale is logarithmic.
const WIDE: f64 = 30.0;

impl ChartAxis {
    /// An axis that shows all of these numbers, on the scale that fits them.
    pub fn of(label: &str, format: fn(f64) -> String, numbers: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = range(numbers);
        let scale = if low > 0.0 && high / low > WIDE { Scale::Logarithmic } else { Scale::Linear };
        let ends = match scale {
            Scale::Logarithmic => widened(low.log10(), high.log10(), 0.03),
            // Half of what there is from 0 on: the rest shows better from 0.
            Scale::Linear if low >= 0.0 && low < 0.5 * high => (0.0, high * 1.04),
            Scale::Linear => widened(low, high, 0.05),
        };
        let ends = if scale == Scale::Logarithmic { (10_f64.powf(ends.0), 10_f64.powf(ends.1)) } else { ends };
        Self { label: label.to_owned(), scale, format, ends }
    }

    /// An axis of numbers that were chosen: logarithmic where neighbours are at more equal ratios than differences.
    pub fn of_chosen(label: &str, format: fn(f64) -> String, numbers: &[f64]) -> Self {
        let (low, high) = range(numbers.iter().copied());
        let axis = Self::of(label, format, numbers.iter().copied());
        if low <= 0.0 || !is_log_spaced(numbers) || axis.scale == Scale::Logarithmic {
            return axis;
        }
        let (low, high) = widened(low.log10(), high.log10(), 0.03);
        Self { scale: Scale::Logarithmic, ends: (10_f64.powf(low), 10_f64.powf(high)), ..axis }
    }

    /// A linear axis that shows as much on both sides of 0.
    pub fn around_zero(label: &str, format: fn(f64) -> String, numbers: impl IntoIterator<Item = f64>) -> Self {
        let most = numbers.into_iter().filter(|number| number.is_finite()).fold(0.0_f64, |most, n| most.max(n.abs()));
        let most = if most > 0.0 { 1.1 * most } else { 1.0 };
        Self { label: label.to_owned(), scale: Scale::Linear, format, ends: (-most, most) }
    }

    /// Where a number is, from 0 at the first end to 1 at the other; `None` of what has no place.
    pub fn place(&self, number: f64) -> Option<f64> {
        let (low, high) = self.ends;
        let place = match self.scale {
            Scale::Linear => (number - low) / (high - low),
            Scale::Logarithmic => (number / low).ln() / (high / low).ln(),
        };
        place.is_finite().then_some(place)
    }

    /// Round numbers within the ends, at most about `most`.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let (low, high) = self.ends;
        match self.scale {
            Scale::Linear => {
                let step = round_step((high - low) / most.max(1) as f64);
                let first = (low / step).ceil() as i64;
                let last = (high / step).floor() as i64;
                (first..=last).map(|number| number as f64 * step).collect()
            }
            Scale::Logarithmic => {
                let (first, last) = (low.log10().ceil() as i32, high.log10().floor() as i32);
                if last - first < 2 {
                    let digits = |power: i32| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(power));
                    let all = (first - 1..=last).flat_map(digits);
                    return all.filter(|tick| (low..=high).contains(tick)).collect();
                }
                let every = ((last - first + 1).max(1) as usize).div_ceil(most.max(1));
                (first..=last).step_by(every).map(|power| 10_f64.powi(power)).collect()
            }
        }
    }
}

/// Whether the largest step between neighbours is fewer times the smallest one by ratios than by differences, of three
/// numbers and more.
fn is_log_spaced(numbers: &[f64]) -> bool {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let uneven = |step: fn(f64, f64) -> f64| {
        let (low, high) = range(sorted.windows(2).map(|pair| step(pair[0], pair[1])));
        high / low
    };
    sorted.len() > 2 && uneven(|low, high| (high / low).ln()) < uneven(|low, high| high - low)
}

/// The smallest and the largest; 0 and 1 where there are none.
fn range(numbers: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (low, high) = numbers
        .into_iter()
        .filter(|number| number.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| (low.min(number), high.max(number)));
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Both ends a part of the length further out; ends that are one number by half of it, or by 0.5 around 0.
fn widened(low: f64, high: f64, part: f64) -> (f64, f64) {
    let room = match low.abs() {
        _ if high > low => part * (high - low),
        0.0 => 0.5,
        number => 0.5 * number,
    };
    (low - room, high + room)
}

/// 1, 2 or 5 times a power of ten, the next from a length up.
fn round_step(length: f64) -> f64 {
    let power = 10_f64.powf(length.log10().floor());
    [1.0, 2.0, 5.0, 10.0].iter().map(|digit| digit * power).find(|step| *step >= length * 0.999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn axis(numbers: &[f64]) -> ChartAxis {
        ChartAxis::of("", |number| number.to_string(), numbers.iter().copied())
    }

    #[test]
    fn axes_by_hand() {
        let near = axis(&[10.0, 90.0]);
        assert!(near.scale == Scale::Linear && near.ends.0 == 0.0 && (near.ends.1 - 93.6).abs() < 1e-9);
        assert_eq!(near.ticks(5), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert!((near.place(46.8).unwrap_or(0.0) - 0.5).abs() < 1e-12);
        let wide = axis(&[1.0, 1e4]);
        assert_eq!((wide.scale, wide.ticks(5)), (Scale::Logarithmic, vec![1.0, 10.0, 100.0, 1e3, 1e4]));
        assert_eq!(axis(&[10.0, 400.0]).ticks(5), [10.0, 20.0, 50.0, 100.0, 200.0]);
        assert!((wide.place(100.0).unwrap_or(0.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn sizes_at_equal_ratios_are_on_a_logarithmic_scale() {
        let scale = |sizes: &[f64]| ChartAxis::of_chosen("", |number| number.to_string(), sizes).scale;
        assert_eq!(scale(&[100.0, 200.0, 400.0, 800.0]), Scale::Logarithmic);
        assert_eq!(scale(&[100.0, 208.0, 433.0, 900.0]), Scale::Logarithmic, "rounded");
        assert_eq!(scale(&[100.0, 200.0, 300.0, 400.0]), Scale::Linear);
        assert_eq!(scale(&[0.0, 1.0, 10.0, 20.0]), Scale::Linear, "0 has no logarithm");
        assert_eq!([scale(&[]), scale(&[5.0]), scale(&[5.0, 9.0])], [Scale::Linear; 3]);
    }

    #[test]
    fn numbers_that_have_no_place_have_none() {
        assert_eq!(axis(&[1.0, 1e4]).place(-1.0), None);
        assert_eq!(axis(&[f64::NAN]).ends, axis(&[0.0, 1.0]).ends);
        for (one, ends) in [(5.0, (2.5, 7.5)), (0.002, (0.001, 0.003)), (-4.0, (-6.0, -2.0)), (0.0, (-0.5, 0.5))] {
            assert_eq!(axis(&[one, one]).ends, ends);
        }
        assert_eq!(ChartAxis::around_zero("", |number| number.to_string(), []).ends, (-1.0, 1.0));
    }

    proptest! {
        #[test]
        fn ticks_are_within_the_ends_and_not_too_many(low in -1e6..1e6_f64, length in 1e-3..1e9_f64) {
            let axis = axis(&[low, low + length]);
            let ticks = axis.ticks(6);
            prop_assert!(ticks.len() <= 8, "{ticks:?}");
            prop_assert!(ticks.iter().all(|tick| axis.place(*tick).is_some_and(|place| (-1e-9..=1.0 + 1e-9).contains(&place))));
        }
    }
}
