//! Draws the newest intervals as a sparkline.

use ratatui::text::Span;

use super::page::ScreenPage;
use crate::monitor::Point;
use crate::rates::Uncertain;
use crate::tui::figures::ShownValues;
use crate::tui::symbols::LEVELS;
use crate::tui::theme::Role;

/// The interval's number that the table shows.
pub(super) fn shown_point(page: &ScreenPage<'_>, point: &Point) -> Option<Uncertain> {
    if page.model.basis == ShownValues::Raw { point.raw } else { point.corrected }
}

/// The newest intervals, at least as tall as they differ; an interval without a sample is a gap.
pub(super) fn sparkline(page: &ScreenPage<'_>, history: &[Point], width: usize) -> Vec<Span<'static>> {
    let points: Vec<&Point> = history.iter().skip(history.len().saturating_sub(width)).collect();
    let rates = || points.iter().filter_map(|point| Some(shown_point(page, point)?.value));
    let (low, high) =
        rates().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), rate| (low.min(rate), high.max(rate)));
    // Noise of a few percent must not look like a mountain range.
    let least = 0.2 * high.abs();
    let (low, range) = if high - low < least { ((low + high - least) / 2.0, least) } else { (low, high - low) };
    let mut spans = vec![Span::raw(" ".repeat(width - points.len()))];
    for point in points {
        spans.push(match shown_point(page, point) {
            Some(rate) => {
                let part = if range > 0.0 { (rate.value - low) / range } else { 0.0 };
                Span::styled(level(part), page.theme().height(part))
            }
            None => Span::styled("·", page.style(Role::Missing)),
        });
    }
    spans
}

fn level(part: f64) -> &'static str {
    let step = (part * (LEVELS.len() - 1) as f64).round().clamp(0.0, (LEVELS.len() - 1) as f64);
    LEVELS[step as usize]
}
