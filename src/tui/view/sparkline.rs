//! Draws the newest intervals as a sparkline.

use ratatui::text::Span;

use super::page::ScreenPage;
use crate::monitor::Point;
use crate::rates::Uncertain;
use crate::tui::figures::ShownValues;
use crate::tui::model::AxisStart;
use crate::tui::symbols::{LEVELS, UP};
use crate::tui::theme::Role;

/// The interval's number that the table shows.
pub(super) fn shown_point(page: &ScreenPage<'_>, point: &Point) -> Option<Uncertain> {
    if page.model.basis == ShownValues::Raw { point.raw } else { point.corrected }
}

/// The newest intervals; an interval without a sample is a gap, and an arrow a peak that is cut.
pub(super) fn sparkline(page: &ScreenPage<'_>, history: &[Point], width: usize) -> Vec<Span<'static>> {
    let points: Vec<&Point> = history.iter().skip(history.len().saturating_sub(width)).collect();
    let rates: Vec<Option<f64>> = points.iter().map(|point| Some(shown_point(page, point)?.value)).collect();
    let mut spans = vec![Span::raw(" ".repeat(width - points.len()))];
    spans.extend(bars(page, &rates));
    spans
}

/// A bar for each number, on a scale of all.
pub(super) fn bars(page: &ScreenPage<'_>, rates: &[Option<f64>]) -> Vec<Span<'static>> {
    let known: Vec<f64> = rates.iter().flatten().copied().collect();
    let (low, range) = scale(&known, page.model.axis);
    let bar = |rate: &Option<f64>| match rate {
        Some(rate) => {
            let part = if range > 0.0 { (rate - low) / range } else { 0.0 };
            let glyph = if part > 1.0 + 1e-9 { UP } else { level(part) };
            Span::styled(glyph, page.theme().height(part.clamp(0.0, 1.0)))
        }
        None => Span::styled("·", page.style(Role::Missing)),
    };
    rates.iter().map(bar).collect()
}

/// How much higher than the highest usual number a scale reaches on which a peak is cut.
const CUT: f64 = 2.0;

/// Where the bars begin, and how much the tallest is.
fn scale(rates: &[f64], axis: AxisStart) -> (f64, f64) {
    let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let high = usual_highest(rates);
    match axis {
        // Beside peaks that are cut, the others don't look as if they were high; but a start is left behind.
        AxisStart::Zero if low >= 0.0 && rates.iter().skip(1).any(|rate| *rate > high) => (0.0, CUT * high),
        AxisStart::Zero if low >= 0.0 => (0.0, high),
        // Noise of a few percent must not look like a mountain range.
        _ if high - low < 0.2 * high.abs() => ((low + high - 0.2 * high.abs()) / 2.0, 0.2 * high.abs()),
        _ => (low, high - low),
    }
}

/// The highest of some numbers; one peak of twenty, such as the start of a program, doesn't count where it is more than
/// three times as high as all others.
pub(super) fn usual_highest(numbers: &[f64]) -> f64 {
    /// Of fewer, nobody knows which are usual.
    const LEAST: usize = 4;
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let all = sorted.last().copied().unwrap_or(f64::NEG_INFINITY);
    if sorted.len() < LEAST {
        return all;
    }
    let peaks = sorted.len().div_ceil(20);
    let usual = sorted[sorted.len() - 1 - peaks];
    if usual > 0.0 && all > 3.0 * usual { usual } else { all }
}

fn level(part: f64) -> &'static str {
    let step = (part * (LEVELS.len() - 1) as f64).round().clamp(0.0, (LEVELS.len() - 1) as f64);
    LEVELS[step as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_at_zero_and_one_peak_does_not_flatten_the_others() {
        assert_eq!(scale(&[228.0, 203.0], AxisStart::Zero), (0.0, 228.0));
        assert_eq!(scale(&[228.0, 103.0], AxisStart::Least), (103.0, 125.0));
        assert_eq!(scale(&[120.0, 20.0, 21.0, 19.0], AxisStart::Zero), (0.0, 21.0), "a program's start");
        assert_eq!(scale(&[20.0, 120.0, 21.0, 19.0], AxisStart::Zero), (0.0, 42.0), "half as high as there is room");
        assert_eq!(usual_highest(&[120.0, 20.0, 21.0, 19.0]), 21.0);
        // Twice as high is usual, and of three numbers nobody knows which is.
        assert_eq!(usual_highest(&[40.0, 20.0, 21.0, 19.0]), 40.0);
        assert_eq!(usual_highest(&[120.0, 20.0, 21.0]), 120.0);
        assert_eq!(usual_highest(&[0.0, 0.0, 0.0, 5.0]), 5.0);
        assert_eq!(usual_highest(&[]), f64::NEG_INFINITY);
    }

    #[test]
    fn a_rate_below_zero_keeps_its_place() {
        assert_eq!(scale(&[-1.0, 3.0], AxisStart::Zero), (-1.0, 4.0));
    }
}
