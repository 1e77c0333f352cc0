//! Draws a step of the tour below the screen that it is about.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use crate::tui::keys::keys_in;
use crate::tui::model::STEPS;
use crate::tui::text::wrap;
use crate::tui::theme::Role;

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, step: usize) {
    let Some(shown) = STEPS.get(step) else { return };
    let is_last = step + 1 == STEPS.len();
    let keys: &[(&str, &str)] = if is_last {
        &[("Enter", "end"), ("←", "back")]
    } else {
        &[("Enter", "next"), ("←", "back"), ("Esc", "end")]
    };
    let mut title = Line::from(vec![
        page.span(Role::Title, format!(" {}. {}", step + 1, shown.title)),
        page.span(Role::Dim, format!("  {} of {}", step + 1, STEPS.len())),
    ]);
    for (key, word) in keys {
        title.push_span(page.span(Role::Key, format!("   {}", keys_in(page.model.options.symbols, key))));
        title.push_span(page.span(Role::Dim, format!(" {word}")));
    }
    let width = usize::from(area.width.saturating_sub(2)).min(110);
    let words = wrap(shown.words, width);
    let lines = words.into_iter().map(|words| Line::from(page.span(Role::Text, format!(" {words}"))));
    let lines: Vec<_> = std::iter::once(title).chain(lines).collect();
    for (row, line) in area.rows().zip(lines) {
        page.line(row, line);
    }
}
