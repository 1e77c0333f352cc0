//! Draws how often each range of an event's rate came.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::chart::round_step;
use super::page::ScreenPage;
use crate::events::Unit;
use crate::number::range;
use crate::tui::symbols::EIGHTHS;
use crate::tui::text::{right, width};
use crate::tui::theme::Role;

/// Draws rates as bars, lowest first.
pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, rates: &[f64], unit: &Unit) {
    let bins = bins(rates, usize::from(area.height).clamp(1, 16));
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0);
    let labels: Vec<_> = bins.iter().map(|bin| range(bin.low, bin.high, unit)).collect();
    let margin = labels.iter().map(|label| width(label)).max().unwrap_or(0);
    let counts = most.to_string().len();
    let room = usize::from(area.width).saturating_sub(margin + counts + 3);
    for ((bin, label), row) in bins.iter().zip(&labels).zip(area.rows()) {
        let part = if most > 0 { bin.count as f64 / most as f64 } else { 0.0 };
        let bar = bar(part, room);
        let gap = room.saturating_sub(width(&bar));
        let line = Line::from(vec![
            page.span(Role::Dim, format!("{} ", right(label, margin))),
            Span::styled(bar, page.theme().height(part)),
            page.span(Role::Text, format!("{} {}", " ".repeat(gap), right(&bin.count.to_string(), counts))),
        ]);
        page.line(row, line);
    }
}

/// A bar of whole and eighth cells; what isn't nothing shows.
fn bar(part: f64, cells: usize) -> String {
    let eighths = (part * cells as f64 * 8.0).round() as usize;
    let eighths = if part > 0.0 { eighths.max(1) } else { eighths };
    let mut bar = EIGHTHS[7].repeat((eighths / 8).min(cells));
    if eighths % 8 > 0 && eighths / 8 < cells {
        bar.push_str(EIGHTHS[eighths % 8 - 1]);
    }
    bar
}

/// A range and how many rates are in it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bin {
    low: f64,
    high: f64,
    count: usize,
}

/// Divides all rates into at most `most` ranges of a round width.
fn bins(rates: &[f64], most: usize) -> Vec<Bin> {
    let finite = || rates.iter().copied().filter(|rate| rate.is_finite());
    let (Some(low), Some(high)) = (finite().reduce(f64::min), finite().reduce(f64::max)) else { return Vec::new() };
    let mut step = round_step(((high - low) / most as f64).max(low.abs().max(high.abs()) * 1e-2));
    // Rounding outwards at both ends can take a range more than there is room for. Two wider steps
    // are enough, except at the ends of what a float can hold, where the last range takes the rest.
    for _ in 0..2 {
        if (high / step).floor() - (low / step).floor() + 1.0 > most as f64 {
            step = round_step(step * 1.5);
        }
    }
    let first = (low / step).floor();
    let count = ((high / step).floor() - first + 1.0).clamp(1.0, most.max(1) as f64) as usize;
    let mut bins: Vec<_> = (0..count)
        .map(|i| Bin { low: (first + i as f64) * step, high: (first + i as f64 + 1.0) * step, count: 0 })
        .collect();
    for rate in finite() {
        let place = ((rate / step).floor() - first).clamp(0.0, (count - 1) as f64) as usize;
        bins[place].count += 1;
    }
    bins
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_round() {
        let found = bins(&[210.0, 250.0, 310.0, 480.0], 5);
        let bin = |low: f64, count| Bin { low, high: low + 100.0, count };
        assert_eq!(found, [bin(200.0, 2), bin(300.0, 1), bin(400.0, 1)]);
        assert_eq!(bins(&[], 5), []);
        assert_eq!(bins(&[f64::NAN], 5), []);
        assert_eq!(bins(&[7.0, 7.0], 5).iter().map(|bin| bin.count).sum::<usize>(), 2);
    }

    #[test]
    fn bars_have_eighths() {
        assert_eq!((bar(1.0, 3), bar(0.5, 3), bar(0.0, 3)), ("███".into(), "█▌".into(), String::new()));
        assert_eq!((bar(0.001, 3), bar(1.0, 0)), ("▏".into(), String::new()));
    }

    proptest! {
        #[test]
        fn every_rate_is_in_a_range(rates in prop::collection::vec(prop::num::f64::NORMAL, 0..40), most in 1usize..20) {
            let found = bins(&rates, most);
            prop_assert!(found.len() <= most);
            prop_assert_eq!(found.iter().map(|bin| bin.count).sum::<usize>(), rates.len());
        }
    }
}
