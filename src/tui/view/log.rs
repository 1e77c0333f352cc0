//! Draws the newest findings and the newest lines of the command's output.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use crate::names::shown;
use crate::session::Stream;
use crate::tui::model::{LogEntry, Pane, ScrolledList, Tail, VisibleRows};
use crate::tui::screen::Screen;
use crate::tui::symbols::{ENDED, INFO, WARN};
use crate::tui::text::{clock, cut, output as output_text, wrap};
use crate::tui::theme::Role;

/// Cells of the time and the glyph in front of the words.
const MARGIN: usize = 12;

/// The Log screen: one of its two lists.
pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    match page.model.log.pane {
        Pane::Findings => findings(page, area, true),
        Pane::Output => output(page, area, true),
    }
}

pub(super) fn findings(page: &mut ScreenPage<'_>, area: Rect, focus: bool) {
    let model = page.model;
    let entries = model.entries();
    let title = title(page, Pane::Findings, focus);
    let whole_in = (!focus).then_some("Log");
    if entries.is_empty() {
        let none = VisibleRows { first: 0, rows: 0, all: 0 };
        let inner = page.list(area, title, (none, model.all_entries().count()), whole_in);
        page.line(inner, Line::from(page.span(Role::Dim, "no messages")));
        return;
    }
    let (width, height) = (usize::from(area.width.saturating_sub(4)), usize::from(area.height.saturating_sub(2)));
    let tail = if focus { model.log.findings } else { Tail::Follow };
    let heights = entries.iter().map(|entry| entry_lines(page, *entry, width).len());
    let last = last_shown(tail, entries.len(), end_of_first_page(heights, height));
    // From the last one upwards, until the panel is full.
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut shown = VisibleRows { first: last + 1, rows: 0, all: entries.len() };
    for entry in entries[..=last].iter().rev() {
        let mut of_entry = entry_lines(page, *entry, width);
        // Of one that is too long for the panel there is its beginning; others are whole or not there.
        if lines.is_empty() && of_entry.len() > height {
            of_entry.truncate(height);
            lines.extend(of_entry.into_iter().rev());
            break;
        }
        if lines.len() + of_entry.len() > height {
            break;
        }
        lines.extend(of_entry.into_iter().rev());
        (shown.first, shown.rows) = (shown.first - 1, shown.rows + 1);
    }
    if focus {
        page.drawn.lists.set(ScrolledList::Of(Screen::Log), shown);
    }
    let inner = page.list(area, title, (shown, model.all_entries().count()), whole_in);
    for (line, row) in lines.into_iter().rev().zip(inner.rows()) {
        page.line(row, line);
    }
}

/// Rows of a panel of this width that has all messages, or so many.
pub(super) fn rows(page: &ScreenPage<'_>, width: u16, most: u16) -> u16 {
    let (entries, width) = (page.model.entries(), usize::from(width.saturating_sub(4)));
    let newest = entries.iter().rev().take(usize::from(most));
    let lines = newest.map(|entry| entry_lines(page, *entry, width).len()).sum::<usize>().max(1);
    u16::try_from(lines + 2).unwrap_or(most).min(most)
}

/// `00:01:23 ▲ W03 words`, with what doesn't fit below the words.
fn entry_lines(page: &ScreenPage<'_>, entry: LogEntry<'_>, width: usize) -> Vec<Line<'static>> {
    let (at, glyph) = match entry {
        LogEntry::Note(_) => (None, WARN),
        LogEntry::Remark(_) => (None, INFO),
        LogEntry::Finding(noted) => (Some(noted.at), if entry.is_warning() { WARN } else { INFO }),
        LogEntry::End(end) => (Some(end.at_ns), ENDED),
    };
    let role = if entry.is_warning() { Role::Warn } else { Role::Info };
    let at = at.map_or_else(|| "        ".into(), clock);
    let words = wrap(&page.model.entry_text(entry), width.saturating_sub(MARGIN).max(8));
    let mut lines = Vec::with_capacity(words.len());
    for (i, words) in words.into_iter().enumerate() {
        let mut line = Line::default();
        if i == 0 {
            line.push_span(page.span(Role::Dim, format!("{at} ")));
            line.push_span(page.span(role, format!("{glyph}  ")));
        } else {
            line.push_span(page.span(Role::Dim, " ".repeat(MARGIN)));
        }
        line.push_span(page.span(Role::Text, words));
        lines.push(line);
    }
    lines
}

pub(super) fn output(page: &mut ScreenPage<'_>, area: Rect, focus: bool) {
    let model = page.model;
    let all = &model.output.lines;
    let filtered = if focus { model.output_lines() } else { all.iter().collect() };
    let title = title(page, Pane::Output, focus);
    let height = usize::from(area.height.saturating_sub(2));
    let tail = if focus { model.log.output } else { Tail::Follow };
    let last = last_shown(tail, filtered.len(), height.saturating_sub(1));
    let first = (last + 1).saturating_sub(height);
    let shown = VisibleRows { first, rows: (last + 1 - first).min(filtered.len()), all: filtered.len() };
    if focus {
        page.drawn.lists.set(ScrolledList::Of(Screen::Log), shown);
    }
    let inner = page.list(area, title, (shown, all.len()), (!focus).then_some("Log"));
    if filtered.is_empty() {
        let words = if all.is_empty() { "no output from the command" } else { "no line matches the filter" };
        page.line(inner, Line::from(page.span(Role::Dim, words)));
        return;
    }
    let width = usize::from(inner.width);
    for (line, row) in filtered[first..=last].iter().zip(inner.rows()) {
        let role = if line.stream == Stream::Stderr { Role::Warn } else { Role::Text };
        page.line(row, Line::from(page.span(role, cut(&output_text(&line.text), width).into_owned())));
    }
}

/// The two lists as tabs of the Log screen; elsewhere just a name.
fn title(page: &ScreenPage<'_>, pane: Pane, focus: bool) -> Line<'static> {
    let name = |pane: Pane| if pane == Pane::Findings { "Log" } else { "Output" };
    let mut line = Line::from(page.span(Role::Title, name(pane)));
    if focus {
        let other = if pane == Pane::Findings { Pane::Output } else { Pane::Findings };
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(Role::Key, "o"));
        line.push_span(page.span(Role::Dim, format!(" {}", name(other))));
        if !page.model.log.filter.is_empty() {
            line.push_span(page.span(Role::Border, " ─ "));
            line.push_span(page.span(Role::Match, format!("filter: {}", shown(page.model.log.filter.text()))));
        }
    }
    if pane == Pane::Output && page.model.output.dropped > 0 {
        line.push_span(page.span(Role::Dim, format!(" ─ {} older lines dropped", page.model.output.dropped)));
    }
    line
}

/// The entry at the bottom of the panel: nothing of that stays empty where there are more. `least` is the last one of a
/// panel that begins with the first.
fn last_shown(tail: Tail, count: usize, least: usize) -> usize {
    let newest = count.saturating_sub(1);
    match tail {
        Tail::Follow => newest,
        Tail::At(place) => place.max(least).min(newest),
    }
}

/// The last of the entries with these heights that fits below all before it; the first in any case.
fn end_of_first_page(heights: impl Iterator<Item = usize>, height: usize) -> usize {
    let mut used = 0;
    let fitting = heights.take_while(|rows| {
        used += rows;
        used <= height
    });
    fitting.count().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_leaves_no_row_empty_that_it_could_fill() {
        assert_eq!(end_of_first_page([2, 1, 3, 1].into_iter(), 6), 2);
        assert_eq!(end_of_first_page([9, 1].into_iter(), 6), 0);
        assert_eq!(end_of_first_page([].into_iter(), 6), 0);
        let ends = [Tail::Follow, Tail::At(0), Tail::At(7), Tail::At(99)].map(|tail| last_shown(tail, 20, 4));
        assert_eq!(ends, [19, 4, 7, 19]);
        assert_eq!(last_shown(Tail::At(0), 3, 9), 2);
    }
}
