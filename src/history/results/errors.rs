//! Says how far the numbers of a file may be off, by what it keeps of their samples.

use super::commit::BenchmarkResult;
use super::json::ResultNumber;
use crate::bench::{determined, error_of_median};
use crate::cost::samples::Determinizer;
use crate::rates::Error;

/// The half width of a normal variable's 95 % interval, as a part of that of its 99 % interval: 1.95996 / 2.57583.
const OF_99_PERCENT: f64 = 0.760_90;

impl BenchmarkResult {
    /// How far the number of each combination of these values of parameters may be off, at 95 %.
    pub fn errors(&self, params: &[Vec<String>]) -> Vec<Error> {
        let error = |place: Option<usize>| place.map_or(Error::Unknown, |place| self.error_at(place));
        self.places(params).into_iter().map(error).collect()
    }

    /// How far the number at a place may be off, at 95 %: of several samples as `bench` has it, or by their quartiles where they weren't kept; of a
    /// single one by the interval that an estimator gave, whose ends differ. That a single run was counted exactly says nothing of the next one.
    pub(in crate::history) fn error_at(&self, place: usize) -> Error {
        let at = |numbers: &[ResultNumber]| numbers.get(place)?.number().filter(|number| number.is_finite());
        let both = |low: &[ResultNumber], high: &[ResultNumber]| at(low).zip(at(high));
        let error = match (at(&self.repeat), self.kept_samples(place)) {
            (Some(1.0), _) => both(&self.ci_99_low, &self.ci_99_high)
                .filter(|(low, high)| low < high)
                .zip(self.result.as_deref().and_then(at))
                .map(|((low, high), number)| Error::Within {
                    below: (number - low).max(0.0) * OF_99_PERCENT,
                    above: (high - number).max(0.0) * OF_99_PERCENT,
                }),
            (Some(_), Some(samples)) => determined(Determinizer::Median, &samples).map(|median| median.error),
            (Some(repeat), None) => both(&self.quartile_low, &self.quartile_high)
                .map(|quartiles| error_of_median(quartiles, repeat as usize)),
            (None, _) => None,
        };
        error.unwrap_or_default()
    }

    /// The samples of the number at a place; `None` where they weren't kept.
    fn kept_samples(&self, place: usize) -> Option<Vec<f64>> {
        let samples = self.samples.get(place)?.as_ref()?;
        samples.iter().map(|sample| sample.number()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_by_hand() {
        let numbers = |all: &[f64]| all.iter().copied().map(ResultNumber::Number).collect::<Vec<_>>();
        let params = |values: &[&str]| vec![values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>()];
        let of = BenchmarkResult {
            params: params(&["1", "2", "3", "4"]),
            ci_99_low: numbers(&[0.0, 0.0, -2.575_83, 5.0]),
            ci_99_high: numbers(&[9.0, f64::INFINITY, 2.575_83, 5.0]),
            quartile_low: numbers(&[1.0, 1.0, 0.0, 5.0]),
            quartile_high: numbers(&[2.143_28, 2.0, 0.0, 5.0]),
            repeat: numbers(&[9.0, 2.0, 1.0, 1.0]),
            result: Some(numbers(&[1.5, 1.5, 0.0, 5.0])),
            ..BenchmarkResult::default()
        };
        // In another order, and 5 wasn't measured. Of nine, whose quartiles are 1.14328 deviations apart: sqrt(pi/2 / 9) * 2.30600
        // with 8 degrees.
        let found = of.errors(&params(&["3", "1", "5"]));
        let is_near = |place: usize, half: f64| found[place].half_width().is_some_and(|it| (it - half).abs() < 1e-4);
        assert!(is_near(0, 1.959_96) && is_near(1, 0.417_771 * 2.306_004), "{found:?}");
        assert_eq!(found[2], Error::Unknown);
        // Where samples were kept, they say it: five of two modes hold the median.
        let samples = [1.00, 1.01, 1.02, 1.30, 1.31];
        let kept = BenchmarkResult {
            samples: vec![Some(numbers(&samples))],
            quartile_low: numbers(&[1.01]),
            quartile_high: numbers(&[1.30]),
            repeat: numbers(&[5.0]),
            result: Some(numbers(&[1.02])),
            ..BenchmarkResult::default()
        };
        let of_bench = determined(Determinizer::Median, &samples).map(|median| median.error);
        assert_eq!(Some(kept.error_at(0)), of_bench);
        assert!(of_bench.is_some_and(|error| error.half_width().is_some_and(|half| half < 0.4)), "{of_bench:?}");
        // Of 0 to 9 around 1, the larger side is 8.
        let skewed = BenchmarkResult {
            ci_99_low: numbers(&[0.0]),
            ci_99_high: numbers(&[9.0]),
            repeat: numbers(&[1.0]),
            result: Some(numbers(&[1.0])),
            ..BenchmarkResult::default()
        };
        let half = skewed.error_at(0).half_width();
        assert!(half.is_some_and(|half| (half - 8.0 * OF_99_PERCENT).abs() < 1e-9), "{half:?}");
        assert_eq!([of.error_at(1), of.error_at(3), BenchmarkResult::default().error_at(0)], [Error::Unknown; 3]);
    }
}
