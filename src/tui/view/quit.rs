//! Draws the question what to do with a command that still runs.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use crate::names::shown;
use crate::tui::layout::split_below;
use crate::tui::text::{cut_middle, width, wrap};
use crate::tui::theme::Role;

const CHOICES: [(&str, &str, &str); 3] = [
    ("k", "kill", "end it, also by Ctrl-C: SIGTERM, then SIGKILL"),
    ("d", "detach", "let it run on without perfprop"),
    ("c", "cancel", "stay here"),
];

/// Each choice in a word, as far as there is room for words, at the bottom.
fn choices(page: &mut ScreenPage<'_>, area: Rect) {
    let words: Vec<_> = CHOICES.map(|(key, word, _)| format!("[{key}]{}", &word[1..])).into();
    let lines = match wrap(&words.join(" "), usize::from(area.width)) {
        lines if lines.len() <= usize::from(area.height) => lines,
        _ => vec![CHOICES.map(|(key, ..)| key).join(" ")],
    };
    let (_, below) = split_below(area, u16::try_from(lines.len()).unwrap_or(u16::MAX));
    page.fill(below);
    for (line, row) in lines.into_iter().zip(below.rows()) {
        page.line(row, Line::from(page.span(Role::Key, line)));
    }
}

/// A box in the middle, or the choices alone where there is no room for it.
pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, pid: i32) {
    let box_width = area.width.min(60);
    if box_width < 36 || area.height < 9 {
        return choices(page, area);
    }
    let x = area.x + (area.width - box_width) / 2;
    let y = area.y + (area.height - 8) / 2;
    let area = Rect::new(x, y, box_width, 8);
    page.fill(area);
    let title = Line::from(page.span(Role::Title, "Quit"));
    let inner = page.panel(area, title, Line::default(), true);
    let name = shown(&page.model.monitor.header().title()).into_owned();
    let tail = if name.contains(&format!("[{pid}]")) { " still runs.".into() } else { format!(" [{pid}] still runs.") };
    let name = cut_middle(&name, usize::from(inner.width).saturating_sub(width(&tail))).into_owned();
    let mut rows = inner.rows().skip(1);
    let lines = std::iter::once(Line::from(vec![page.span(Role::Text, name), page.span(Role::Text, tail)]))
        .chain(std::iter::once(Line::default()))
        .chain(CHOICES.map(|(key, word, words)| {
            Line::from(vec![
                page.span(Role::Key, format!("[{key}]")),
                page.span(Role::Text, format!("{:<8}", &word[1..])),
                page.span(Role::Dim, words),
            ])
        }));
    let lines: Vec<_> = lines.collect();
    for line in lines {
        if let Some(row) = rows.next() {
            page.line(row, line);
        }
    }
}
