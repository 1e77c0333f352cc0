//! Draws the overview of a small screen: panels below one another, which share their borders.

use ratatui::layout::Rect;

use super::page::ScreenPage;
use super::{diagnosis, events, hot_functions, metrics, strip, threads};
use crate::tui::layout::{self, Room};

/// The panels from above to below; one without room or without anything to show is empty.
#[derive(Clone, Copy)]
struct StackedPanels {
    events: Rect,
    threads: Rect,
    hot: Rect,
    metrics: Rect,
    strip: Rect,
}

/// How many borders the panels share at most.
const MOST_SHARED: u16 = 4;

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let area = diagnosis::above_events(page, area);
    let uses = page.model.threads();
    let panels = StackedPanels::of(page, area, threads::rows(page, uses.as_ref()));
    events::draw(page, panels.events, Room::Small);
    threads::draw_busiest(page, panels.threads, uses.as_ref());
    hot_functions::draw(page, panels.hot);
    metrics::draw(page, panels.metrics);
    strip::draw(page, panels.strip);
}

impl StackedPanels {
    /// The panels in an area, with so many rows of threads: each border that two of them share is a row more to show
    /// something in.
    fn of(page: &ScreenPage<'_>, area: Rect, threads: u16) -> Self {
        let in_rows = |shared| Self::unshared(page, Rect { height: area.height + shared, ..area }, threads);
        let fitting = |&shared: &u16| in_rows(shared).count() > shared;
        let shared = (1..=MOST_SHARED).rev().find(fitting).unwrap_or(0);
        in_rows(shared).joined(shared)
    }

    fn unshared(page: &ScreenPage<'_>, area: Rect, threads: u16) -> Self {
        // Of events that are all exact the strip would say nothing.
        let (table, strip) = if page.model.is_exact() { (area, Rect::default()) } else { layout::above_strip(area) };
        let (table, metrics) = metrics::below_events(page, table);
        let (table, hot) = hot_functions::below_events(page, table, threads);
        let (events, threads) = threads::below_events(page, table, threads);
        Self { events, threads, hot, metrics, strip }
    }

    fn count(&self) -> u16 {
        let panels = [self.events, self.threads, self.hot, self.metrics, self.strip];
        panels.iter().map(|panel| u16::from(!panel.is_empty())).sum()
    }

    /// The panels, each moved up over the last row of the one above it, as often as rows are shared.
    fn joined(mut self, shared: u16) -> Self {
        let below = [&mut self.threads, &mut self.hot, &mut self.metrics, &mut self.strip];
        for (place, panel) in below.into_iter().filter(|panel| !panel.is_empty()).enumerate() {
            panel.y -= shared.min(place as u16 + 1);
        }
        self
    }
}
