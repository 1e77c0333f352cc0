//! Draws the help over the screen, from the table of keys.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::footer::CARET;
use super::page::{ScreenPage, fit_beside};
use crate::names::shown;
use crate::tui::help::{self, LEGEND};
use crate::tui::keys::{Bound, keys_in};
use crate::tui::layout::split_right;
use crate::tui::model::{Filter, HelpKeys, OpenHelp, ScrolledList, VisibleRows};
use crate::tui::symbols::GlyphSet;
use crate::tui::text::{cut, left, wrap};
use crate::tui::theme::Role;

/// Cells of the keys, in a column of their own, and where arrows are words.
const KEYS: usize = 14;
const KEYS_IN_WORDS: usize = 18;

/// Cells of the glyphs of the legend.
const GLYPHS: usize = 10;

/// The largest the overlay gets.
const MOST: (u16, u16) = (124, 50);

/// Cells of the screen below that are seen beside it: of fewer nothing can be read.
const LEAST_BESIDE: u16 = 24;

/// Width from which on the legend stands beside the keys.
const TWO_COLUMNS: u16 = 104;
const KEY_COLUMN: u16 = 73;

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, open: &OpenHelp) {
    let margin = if area.width >= 100 && area.height >= 34 { 4 } else { 0 };
    let (width, height) =
        (area.width.saturating_sub(margin).min(MOST.0), area.height.saturating_sub(margin).min(MOST.1));
    let width = if area.width - width < LEAST_BESIDE { area.width } else { width };
    let x = area.x + (area.width - width) / 2;
    let y = area.y + (area.height - height) / 2;
    let area = Rect::new(x, y, width, height);
    page.fill(area);
    let title = title(page, open);
    let words = hints(open);
    let mut right =
        words.map(|words| Line::from(page.span(Role::Dim, keys_in(page.model.options.symbols, words)))).into_iter();
    let right = right.find(|right| fit_beside(&title, right, area)).unwrap_or_default();
    let inner = page.panel(area, title, right, true);
    let (keys, legend) = if inner.width >= TWO_COLUMNS {
        let (keys, legend) = split_right(inner, inner.width - KEY_COLUMN);
        (keys, Some(legend))
    } else {
        (inner, None)
    };
    let mut lines = key_lines(page, &open.filter, usize::from(keys.width));
    match legend {
        Some(legend) => show(page, legend, legend_lines(page, &open.filter, usize::from(legend.width)).into_iter()),
        None => {
            append(&mut lines, legend_lines(page, &open.filter, usize::MAX));
        }
    }
    let (rows, all) = (usize::from(keys.height), lines.len());
    let first = open.top.min(all.saturating_sub(rows));
    page.drawn.lists.set(ScrolledList::Help, VisibleRows { first, rows, all });
    show(page, keys, lines.into_iter().skip(first));
}

fn title(page: &ScreenPage<'_>, open: &OpenHelp) -> Line<'static> {
    let mut title = vec![
        page.span(Role::Title, "Help"),
        page.span(Role::Border, " ─ "),
        page.span(Role::Dim, page.model.screen.name()),
    ];
    let filter = shown(open.filter.text()).into_owned();
    match open.keys {
        HelpKeys::Filter => title.extend([page.span(Role::Key, " /"), page.span(Role::Text, filter + CARET)]),
        HelpKeys::Scroll if open.filter.is_empty() => {}
        HelpKeys::Scroll => title.push(page.span(Role::Dim, format!(" ─ filter: {filter}"))),
    }
    Line::from(title)
}

/// What the keys do, in more words and in fewer.
fn hints(open: &OpenHelp) -> [&'static str; 2] {
    match open.keys {
        HelpKeys::Filter => ["Enter keeps it, Esc takes it back", "Esc takes it back"],
        HelpKeys::Scroll if open.filter.is_empty() => ["Esc closes, ↑↓ scroll, / filter", "Esc closes"],
        HelpKeys::Scroll => ["Esc shows all, ↑↓ scroll, / filter", "Esc shows all"],
    }
}

/// Appends lines below an empty one, if there are any.
fn append(lines: &mut Vec<Line<'static>>, more: Vec<Line<'static>>) {
    if !more.is_empty() && !lines.is_empty() {
        lines.push(Line::default());
    }
    lines.extend(more);
}

fn show(page: &mut ScreenPage<'_>, area: Rect, lines: impl Iterator<Item = Line<'static>>) {
    for (line, row) in lines.zip(area.rows()) {
        page.line(row, line);
    }
}

fn key_lines(page: &ScreenPage<'_>, filter: &Filter, width: usize) -> Vec<Line<'static>> {
    let is_shown = |bound: &Bound<'_>| filter.matches(&format!("{} {}", bound.names(), bound.binding.words));
    let shown = help::keys(page.model).filter(is_shown);
    let (everywhere, here): (Vec<_>, Vec<_>) = shown.partition(|bound| bound.binding.is_global());
    let part = |head: String, keys: Vec<Bound<'_>>| {
        let head = (!keys.is_empty()).then(|| Line::from(page.span(Role::Title, head)));
        head.into_iter().chain(keys.into_iter().map(|bound| key_line(page, bound, width))).collect::<Vec<_>>()
    };
    let mut lines = part(format!("On {}", page.model.screen.name()), here);
    append(&mut lines, part("Everywhere".into(), everywhere));
    if lines.is_empty() {
        lines.push(Line::from(page.span(Role::Dim, "no key matches")));
    }
    lines
}

fn legend_lines(page: &ScreenPage<'_>, filter: &Filter, width: usize) -> Vec<Line<'static>> {
    let is_shown = |name: &str, words: &str| filter.matches(&format!("{name} {words}"));
    let mut lines = Vec::new();
    for &(name, role, words) in help::frames(page.model).iter().filter(|(name, _, words)| is_shown(name, words)) {
        for (i, words) in wrap(words, width.saturating_sub(GLYPHS)).into_iter().enumerate() {
            let name = if i == 0 {
                page.span(role, left(&format!(" {name}"), GLYPHS - 1))
            } else {
                " ".repeat(GLYPHS - 1).into()
            };
            lines.push(Line::from(vec![name, " ".into(), page.span(Role::Text, words)]));
        }
    }
    for (glyph, words) in LEGEND.into_iter().filter(|(glyph, words)| is_shown(glyph, words)) {
        for (i, words) in wrap(words, width.saturating_sub(GLYPHS)).into_iter().enumerate() {
            let glyph = if i == 0 { glyph } else { "" };
            lines.push(Line::from(vec![page.span(Role::Header, left(glyph, GLYPHS)), page.span(Role::Text, words)]));
        }
    }
    if !lines.is_empty() {
        lines.insert(0, Line::from(page.span(Role::Title, "What is shown")));
    }
    lines
}

fn key_line(page: &ScreenPage<'_>, bound: Bound<'_>, width: usize) -> Line<'static> {
    let glyphs = page.model.options.symbols;
    let keys = if glyphs == GlyphSet::Ascii { KEYS_IN_WORDS } else { KEYS };
    let words = cut(bound.binding.words, width.saturating_sub(keys + 1)).into_owned();
    let names = keys_in(glyphs, &bound.names());
    Line::from(vec![page.span(Role::Key, left(&names, keys)), page.span(Role::Text, words)])
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;

    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::tui::model::{DrawnScreen, ScreenModel};
    use crate::tui::options::ScreenOptions;

    #[test]
    fn how_help_is_closed_is_told_on_small_screens_too() {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let model = ScreenModel::new(monitor, &ScreenOptions::default());
        let title = |width, height| {
            let area = Rect::new(0, 0, width, height);
            let (mut buffer, drawn) = (Buffer::empty(area), DrawnScreen::default());
            draw(
                &mut ScreenPage { model: &model, buffer: &mut buffer, targets: Vec::new(), drawn },
                area,
                &OpenHelp::default(),
            );
            (0..width).map(|x| buffer[(x, 0)].symbol()).collect::<String>()
        };
        assert!(title(40, 10).contains("Esc closes"), "{}", title(40, 10));
        assert!(title(80, 24).contains("Esc closes, ↑↓ scroll, / filter"), "{}", title(80, 24));
    }
}
