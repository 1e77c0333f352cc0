//! Shows the phases of an event: when its level changed, from what to what.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::chart::ChartLevel;
use super::detail::LABEL;
use super::page::ScreenPage;
use crate::monitor::PhaseChange;
use crate::number::{chance, clock};
use crate::tui::model::EventLine;
use crate::tui::text::{cut, left};
use crate::tui::theme::Role;
use crate::units::WallNs;

/// Rows that a chart keeps, however many changes there are; and the most rows of changes.
const CHART: u16 = 9;
const MOST: usize = 6;

/// The changes of what a line shows.
fn changes<'a>(page: &'a ScreenPage<'_>, line: EventLine) -> Vec<&'a PhaseChange> {
    match line {
        EventLine::Event(event) => page.model.monitor.phase_changes_of(event).collect(),
        EventLine::Sum(_) => Vec::new(),
    }
}

/// The levels of a chart, and the times at which they change: those of the phases where the chart has their unit, else
/// the mean of the run.
pub(super) fn levels(page: &ScreenPage<'_>, line: EventLine) -> (Vec<ChartLevel>, Vec<WallNs>) {
    let (model, changes) = (page.model, changes(page, line));
    // A model's time is its instructions, on which times of the clock have no place.
    let measure = model.interval_measure(line);
    let is_by_instructions = measure.is_by_instructions(model.monitor.header());
    let times = if is_by_instructions { Vec::new() } else { changes.iter().map(|change| change.at).collect() };
    let has_unit = |event| model.monitor.phase_measure(event) == measure;
    match (line, changes.first()) {
        (EventLine::Event(event), Some(_)) if has_unit(event) && !is_by_instructions => (of_phases(&changes), times),
        _ => {
            let mean = model.line_figures_in(line, measure).shown(model.basis).map(|figure| figure.mean);
            let level = |value| ChartLevel { from: WallNs(0), to: WallNs(u64::MAX), value };
            (mean.map(level).into_iter().collect(), times)
        }
    }
}

/// The level before each change, and the one after the last.
fn of_phases(changes: &[&PhaseChange]) -> Vec<ChartLevel> {
    let mut from = WallNs(0);
    let before = changes.iter().map(|change| {
        let level = ChartLevel { from, to: change.at, value: change.from };
        from = change.at;
        level
    });
    let mut levels: Vec<_> = before.collect();
    levels.extend(changes.last().map(|last| ChartLevel { from: last.at, to: WallNs(u64::MAX), value: last.to }));
    levels
}

/// `changed   00:41 −12.0%, 1.20M/cpu-s → 1.06M/cpu-s, chance 1.2e-8`: the newest changes, as many as there is room for
/// below the chart and so many rows.
pub(super) fn lines(page: &ScreenPage<'_>, line: EventLine, area: Rect, rows: u16) -> Vec<Line<'static>> {
    let all = changes(page, line);
    let room = usize::from(area.height.saturating_sub(rows + CHART)).min(MOST);
    let hidden = all.len().saturating_sub(room);
    let width = usize::from(area.width).saturating_sub(LABEL);
    let row = |(place, change): (usize, &&PhaseChange)| {
        let label = if place == 0 { "changed" } else { "" };
        let words = page.model.monitor.phase_change_words(change);
        let before = if place == 0 && hidden > 0 { format!("  ({hidden} more before)") } else { String::new() };
        let text = format!("{}  {words}, chance {}{before}", clock(change.at), chance(change.chance));
        Line::from(vec![
            page.span(Role::Dim, left(label, LABEL)),
            page.span(Role::Text, cut(&text, width).into_owned()),
        ])
    };
    all[hidden..].iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_its_level() {
        let change = |at: u64, from: f64, to: f64| PhaseChange {
            event: 0,
            at: WallNs(at),
            told_at: WallNs(at + 5),
            from,
            to,
            interval: (0.0, 0.0),
            chance: 0.0,
        };
        let levels = of_phases(&[&change(10, 1.0, 2.0), &change(30, 2.5, 4.0)]);
        let shown: Vec<_> = levels.iter().map(|level| (level.from.0, level.to.0, level.value)).collect();
        assert_eq!(shown, [(0, 10, 1.0), (10, 30, 2.5), (30, u64::MAX, 4.0)]);
        assert_eq!(of_phases(&[]), []);
    }
}
