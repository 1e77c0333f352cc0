//! Keeps what each event counted in the first minute, beside which later rates are held.

use super::Point;
use crate::rates::{Error, Uncertain};
use crate::units::{CpuNs, WallNs};

/// What is called a minute.
const MINUTE: WallNs = WallNs(60_000_000_000);

/// The intervals of an event that ended in the first minute of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FirstMinute {
    /// The time that they take together.
    pub length: WallNs,
    /// CPU time that passed in it.
    pub cpu_time: CpuNs,
    /// The highest rate of one of them, a second of time; 0 before the first.
    pub highest: f64,
    count: Option<Uncertain>,
    has_gap: bool,
    /// Whether an interval has come that ends later.
    is_over: bool,
}

impl FirstMinute {
    /// Takes the next interval; those that end later change nothing.
    pub(super) fn add(&mut self, point: &Point) {
        self.is_over |= self.length + point.length > MINUTE;
        if self.is_over || point.length.0 == 0 {
            return;
        }
        self.length += point.length;
        self.cpu_time += point.cpu_time;
        let Some(count) = point.best() else {
            self.has_gap = true;
            return;
        };
        self.highest = self.highest.max(count.value / point.length.as_secs());
        let before = self.count.unwrap_or(Uncertain { value: 0.0, error: Error::Exact });
        let error = Error::of_sum([before.error, count.error].into_iter());
        self.count = Some(Uncertain { value: before.value + count.value, error });
    }

    /// Whether it has passed.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// What was counted; `None` where an interval has no number, as the sum isn't known then.
    pub fn count(&self) -> Option<Uncertain> {
        self.count.filter(|_| !self.has_gap)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn second(count: Option<f64>) -> Point {
        let raw = count.map(|value| Uncertain { value, error: Error::Exact });
        let length = WallNs(1_000_000_000);
        Point { length, cpu_time: CpuNs(500_000_000), raw, ..Point::default() }
    }

    #[test]
    fn it_ends_after_a_minute() {
        let mut minute = FirstMinute::default();
        assert_eq!(minute.count(), None);
        for number in 0..90 {
            minute.add(&second(Some(f64::from(number))));
            assert_eq!(minute.is_over(), number >= 60);
        }
        // One that is short comes too late as well.
        minute.add(&Point { length: WallNs(0), ..second(Some(1.0)) });
        assert_eq!(minute.count().unwrap().value, f64::from((0..60).sum::<i32>()));
        assert_eq!((minute.length, minute.cpu_time), (WallNs(60_000_000_000), CpuNs(30_000_000_000)));
        assert!((minute.highest - 59.0).abs() < 1e-9);
    }

    #[test]
    fn a_gap_leaves_the_sum_unknown() {
        let mut minute = FirstMinute::default();
        [Some(4.0), None, Some(5.0)].into_iter().for_each(|count| minute.add(&second(count)));
        assert_eq!((minute.count(), minute.highest), (None, 5.0));
    }
}
