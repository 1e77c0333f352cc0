//! Draws the functions in which most samples were taken, in a part of a screen.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::events;
use super::page::{ScreenPage, make_room};
use super::profile::{self, interval};
use super::threads;
use crate::names::shown;
use crate::number::share;
use crate::tui::layout::{rows_of_list, split_below};
use crate::tui::model::ClickTarget;
use crate::tui::screen::Screen;
use crate::tui::text::{cut_name, left, right};
use crate::tui::theme::Role;

/// Cells of a share and of its interval, each with a blank before it.
const SHARE: usize = 7;
const INTERVAL: usize = 12;
/// Cells of a share with what was called, and those that a name has at least beside it.
const TOTAL: usize = 8;
const LEAST_NAME: usize = 24;

/// Rows without which they aren't there below the events, with their frame and head.
const LEAST_BELOW: u16 = 4;

/// The events with so many rows of threads below them, and the hot functions below these, where there is room for some.
pub(super) fn below_events(page: &ScreenPage<'_>, area: Rect, threads: u16) -> (Rect, Rect) {
    let model = page.model;
    let free = events::free_rows(page, area);
    let threads = threads.min((free / 2).max(threads::LEAST_BELOW));
    match free.saturating_sub(threads).min(rows_of_list(model.hot_functions.len())) {
        below if below >= LEAST_BELOW && !model.hot_functions.is_empty() => split_below(area, below),
        _ => (area, Rect::default()),
    }
}

/// A click leads to all of them.
pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let model = page.model;
    let mut title = Line::from(page.span(Role::Title, "Hot functions"));
    // That there are few samples says more than of which event they are.
    let what = match model.little_sampled() {
        Some(part) => Some((Role::Warn, format!("{} of CPU time sampled", share(part)))),
        None => model.profile.as_ref().and_then(|profile| Some((Role::Dim, shown(profile.event_name()?).into_owned()))),
    };
    let span = model.profile.as_ref().map(|profile| profile::span_beside(page, profile));
    for (role, words) in what.into_iter().chain(span.map(|span| (Role::Key, span))) {
        title.push_span(page.span(Role::Border, " ─ "));
        title.push_span(page.span(role, words));
    }
    let right_title = Line::from(page.span(Role::Dim, format!("all in {}", Screen::Profile.name())));
    make_room(&mut title, &right_title, area);
    let inner = page.panel(area, title, right_title, false);
    page.target(area, ClickTarget::Screen(Screen::Profile));
    let name = usize::from(inner.width).saturating_sub(SHARE + INTERVAL);
    let total = if name >= LEAST_NAME + TOTAL { TOTAL } else { 0 };
    let name = name - total;
    let mut lines = inner.rows();
    if let Some(row) = lines.next() {
        let interval = format!("{} CI", model.monitor.confidence());
        let shares = format!("{}{}{}", right("SELF", SHARE), right(&interval, INTERVAL), right("TOTAL", total));
        let heads = format!("{}{shares}", left("FUNCTION", name));
        page.line(row, Line::from(page.span(Role::Header, heads)));
    }
    for (hot, row) in model.hot_functions.iter().zip(lines) {
        let (share_of_all, with_calls) = (hot.function.share, share(hot.total));
        let line = vec![
            page.span(Role::Text, left(&cut_name(&shown(&hot.shown), name), name)),
            page.span(Role::Title, right(&share(share_of_all), SHARE)),
            page.span(Role::Dim, right(&interval(share_of_all, hot.error), INTERVAL)),
            page.span(Role::Text, right(if total > 0 { &with_calls } else { "" }, total)),
        ];
        page.line(row, Line::from(line));
    }
}
