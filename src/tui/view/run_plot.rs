//! Draws the runs of one side of a comparison as a line of dots, with their mean and its interval.

use crate::compare::ComparedEvent;
use crate::tui::symbols::{MEAN, OK, RUN_AND_MEAN};

/// The numbers at both ends of a plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RunScale {
    low: f64,
    high: f64,
}

impl RunScale {
    /// From the least to the largest run of both sides, and a tenth more at each end; of one run each from zero, as
    /// nothing else says how much a difference is.
    pub(super) fn of(one: &ComparedEvent) -> Self {
        let is_single = one.a.numbers.len().max(one.b.numbers.len()) < 2;
        let values = || one.a.numbers.iter().chain(&one.b.numbers).map(|number| number.value);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        if is_single && low >= 0.0 && high.is_finite() {
            // Of nothing but zeros, any end is above them.
            return Self { low: 0.0, high: if high > 0.0 { high * 1.1 } else { 1.0 } };
        }
        let more = if high > low { (high - low) / 10.0 } else { 0.0 };
        Self { low: low - more, high: high + more }
    }

    /// The part of the way from one end to the other; the middle where all is the same.
    fn part(self, value: f64) -> f64 {
        if self.high > self.low { (value - self.low) / (self.high - self.low) } else { 0.5 }
    }
}

/// The runs of one side as dots, with their mean and its interval, on the scale of both sides.
pub(super) fn line(runs: &[f64], interval: Option<(f64, f64)>, scale: RunScale, cells: usize) -> String {
    let place = |value: f64| (scale.part(value).clamp(0.0, 1.0) * cells.saturating_sub(1) as f64).round() as usize;
    let mut glyphs = vec!["·"; cells];
    if cells == 0 || runs.is_empty() {
        return glyphs.concat();
    }
    if let Some((low, high)) = interval.filter(|_| scale.high > scale.low) {
        let (first, last) = (place(low), place(high));
        glyphs[first..=last].fill("─");
        // An end that lies beyond the plot isn't drawn.
        if low >= scale.low && first < last {
            glyphs[first] = "├";
        }
        if high <= scale.high && first < last {
            glyphs[last] = "┤";
        }
    }
    for &run in runs {
        glyphs[place(run)] = OK;
    }
    let mean = place(runs.iter().sum::<f64>() / runs.len() as f64);
    glyphs[mean] = if glyphs[mean] == OK { RUN_AND_MEAN } else { MEAN };
    glyphs.concat()
}

/// What the signs mean. Of one run each, that run is the mean.
pub(super) fn legend(has_spread: bool) -> String {
    if has_spread {
        format!("{OK} run  {MEAN} mean  ├─┤ its interval")
    } else {
        format!("{RUN_AND_MEAN} run  ├─┤ what it may be")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Average, NumbersOfRuns, compare_numbers};
    use crate::events::Unit;
    use crate::rates::Confidence;

    #[test]
    fn one_run_each_of_nothing_stands_at_zero() {
        let one = |number| NumbersOfRuns {
            name: "faults".into(),
            unit: Unit::Count,
            a: vec![number],
            b: vec![number],
            average: Average::Whole,
        };
        let scale = |number| RunScale::of(&compare_numbers(vec![one(number)], Confidence::DEFAULT)[0]);
        assert_eq!(line(&[0.0], None, scale(0.0), 5), "◆····");
        assert_eq!(line(&[7.0], None, scale(7.0), 5), "····◆");
    }

    #[test]
    fn runs_stand_where_their_numbers_are() {
        let scale = |low, high| RunScale { low, high };
        assert_eq!(line(&[1.0, 4.0], None, scale(0.0, 5.0), 6), "·●·┃●·");
        assert_eq!(line(&[1.0, 3.0], Some((0.0, 4.0)), scale(0.0, 6.0), 7), "├●┃●┤··");
        // An interval that goes on beyond the plot, and one narrower than a cell.
        assert_eq!(line(&[1.0, 3.0], Some((-5.0, 9.0)), scale(0.0, 6.0), 7), "─●┃●───");
        assert_eq!(line(&[2.0], Some((1.9, 2.1)), scale(0.0, 4.0), 5), "··◆··");
        // All the same: the middle.
        assert_eq!(line(&[2.0, 2.0], Some((2.0, 2.0)), scale(2.0, 2.0), 5), "··◆··");
        assert_eq!(line(&[], None, scale(f64::INFINITY, f64::NEG_INFINITY), 3), "···");
        assert_eq!(line(&[1.0], None, scale(0.0, 2.0), 0), "");
    }
}
