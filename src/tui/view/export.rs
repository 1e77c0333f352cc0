//! Draws the question in which form the view is to be written.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use crate::tui::theme::Role;

const CHOICES: [(&str, &str, &str); 3] = [
    ("t", "text", "characters only"),
    ("a", "ansi", "characters with their colours, for a terminal"),
    ("s", "svg", "a picture for a browser or a page"),
];

/// A box in the middle, or one line where there is no room for it.
pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let choice = |page: &ScreenPage<'_>, (key, word, words): (&'static str, &'static str, &'static str), wide: bool| {
        let mut line = Line::from(vec![page.span(Role::Key, format!("[{key}] ")), page.span(Role::Text, word)]);
        if wide {
            line.push_span(page.span(Role::Dim, format!("  {words}")));
        }
        line
    };
    if area.width < 60 || area.height < 9 {
        let row = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
        page.fill(row);
        let mut line = Line::raw(" ");
        for one in CHOICES {
            line.spans.extend(choice(page, one, false).spans);
            line.push_span(page.span(Role::Text, "  "));
        }
        page.line(row, line);
        return;
    }
    let area = Rect::new(area.x + (area.width - 60) / 2, area.y + (area.height - 7) / 2, 60, 7);
    page.fill(area);
    let title = Line::from(page.span(Role::Title, "Write what is shown"));
    let right = Line::from(page.span(Role::Dim, "Esc goes back"));
    let inner = page.panel(area, title, right, true);
    for (one, row) in CHOICES.into_iter().zip(inner.rows().skip(1)) {
        let line = choice(page, one, true);
        page.line(row, line);
    }
}
