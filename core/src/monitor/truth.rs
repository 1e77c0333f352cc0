//! Compares estimates with the truth, in measurements on emulated counters.

use super::Monitor;
use crate::plan::RowIndex;
use crate::rates::{Error, Uncertain};

/// What an event counted in truth, and the relative errors of what few counters made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Truth {
    /// True count of the run, up to the end of the last interval.
    pub count: u64,
    /// (scaled count - truth) / truth; `None` if it never ran or the truth is 0.
    pub scaled: Option<f64>,
    /// Relative error of the corrected count; `None` where nothing was corrected.
    pub corrected: Option<f64>,
    /// What the interval of the scaled count is worth.
    pub scaled_interval: Judged,
    /// What the interval of the corrected count is worth; nothing is known of it where nothing was corrected.
    pub corrected_interval: Judged,
}

/// An interval beside the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Judged {
    /// The side of the interval that the truth lies on, as a part of the truth: the interval has the truth in it where
    /// the error is no larger. `None` without an interval, or if the truth is 0.
    pub side: Option<f64>,
    /// Whether the interval has the truth in it; `None` without an interval.
    pub is_covered: Option<bool>,
}

impl Judged {
    fn new(estimate: Option<Uncertain>, truth: u64) -> Self {
        let holds = |(low, high): (f64, f64)| (low..=high).contains(&(truth as f64));
        Self {
            side: estimate.and_then(|estimate| side(estimate, truth)),
            is_covered: estimate.and_then(Uncertain::bounds).map(holds),
        }
    }
}

impl Monitor {
    /// The truth of an event up to the end of the last interval, where the recording has it.
    pub fn truth(&self, event: RowIndex) -> Option<Truth> {
        let count = (*self.truths.get(event)?)?;
        let row = self.row(event);
        let corrected = row.estimate.total.filter(|_| row.is_corrected());
        let error = |estimate: Option<Uncertain>| relative(estimate?.value, count);
        Some(Truth {
            count,
            scaled: error(row.scaled),
            corrected: error(corrected),
            scaled_interval: Judged::new(row.count(), count),
            corrected_interval: Judged::new(corrected, count),
        })
    }

    /// Takes the true counts, which stand in the last columns of a round.
    pub(super) fn take_truths(&mut self, round: &crate::sources::Round) {
        let first = self.header.columns() - self.header.truths.len();
        for (truth, reading) in self.header.truths.iter().zip(round.readings.iter().skip(first)) {
            let event = truth.truth_of;
            if let (Some(place), Some(reading)) = (self.truths_now.get_mut(event), reading) {
                *place = Some(reading.count.saturating_sub(self.truths_before.get(event).copied().unwrap_or(0)));
            }
        }
    }
}

/// How far an estimate is from a true count, as a part of it.
fn relative(estimate: f64, truth: u64) -> Option<f64> {
    (truth > 0).then(|| estimate / truth as f64 - 1.0)
}

/// The side of an estimate's interval that the truth lies on, as a part of the truth.
fn side(estimate: Uncertain, truth: u64) -> Option<f64> {
    let ends = match estimate.error {
        Error::Exact => (0.0, 0.0),
        Error::Within { below, above } => (below, above),
        Error::Unknown => return None,
    };
    let side = if estimate.value > truth as f64 { ends.0 } else { ends.1 };
    (truth > 0).then(|| side / truth as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_parts_of_the_truth() {
        assert_eq!(relative(110.0, 100).map(|error| (error * 1000.0).round()), Some(100.0));
        assert_eq!(relative(0.0, 100), Some(-1.0));
        assert_eq!(relative(1.0, 0), None);
    }

    #[test]
    fn the_side_of_an_interval_that_the_truth_lies_on() {
        let estimate = |value: f64| Uncertain { value, error: Error::Within { below: 5.0, above: 20.0 } };
        assert_eq!((side(estimate(90.0), 100), side(estimate(110.0), 100)), (Some(0.2), Some(0.05)));
        assert_eq!((side(Uncertain::exact(90.0), 100), side(estimate(0.0), 0)), (Some(0.0), None));
        assert_eq!(side(Uncertain { value: 90.0, error: Error::Unknown }, 100), None);
    }

    #[test]
    fn an_interval_holds_the_truth_or_not_as_far_as_it_is_known() {
        let judged = |value: f64, error| Judged::new(Some(Uncertain { value, error }), 100);
        let within = Error::Within { below: 5.0, above: 20.0 };
        assert_eq!(judged(90.0, within), Judged { side: Some(0.2), is_covered: Some(true) });
        assert_eq!(judged(110.0, within), Judged { side: Some(0.05), is_covered: Some(false) });
        assert_eq!([judged(90.0, Error::Unknown), Judged::new(None, 100)], [Judged::default(); 2]);
    }
}
