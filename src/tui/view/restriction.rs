//! Draws what this user may not count, and what helps, above what is shown in its place.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use crate::names::shown;
use crate::tui::layout::split_above;
use crate::tui::screen::Screen;
use crate::tui::symbols::WARN;
use crate::tui::text::{cut, wrap};
use crate::tui::theme::Role;

/// Cells of the glyph before the words, and as many behind them.
const MARGIN: usize = 3;
/// Lines above the screens; the Log has the others, too.
const LINES: usize = 3;
/// Rows of a region below which there is the first line only, and below which there is none.
const LEAST_REGION: u16 = 14;
const LEAST_FOR_LINE: u16 = 6;

/// Draws the lines of the restriction, if there is one; gives the region below them.
pub(super) fn above(page: &mut ScreenPage<'_>, area: Rect) -> Rect {
    let most = if page.model.screen == Screen::Log { usize::MAX } else { LINES };
    let (restriction, room) =
        (&page.model.monitor.header().restriction, usize::from(area.width).saturating_sub(2 * MARGIN));
    let lines: Vec<_> = match area.height {
        ..LEAST_FOR_LINE => Vec::new(),
        LEAST_FOR_LINE..LEAST_REGION => restriction.iter().take(1).map(|text| cut(&shown(text), room).into()).collect(),
        LEAST_REGION.. => restriction.iter().take(most).flat_map(|text| wrap(&shown(text), room)).collect(),
    };
    let (above, below) = split_above(area, u16::try_from(lines.len()).unwrap_or(u16::MAX));
    let glyphs = std::iter::once(format!(" {WARN} ")).chain(std::iter::repeat("   ".into()));
    for ((glyph, words), row) in glyphs.zip(lines).zip(above.rows()) {
        page.line(row, Line::from(vec![page.span(Role::Warn, glyph), page.span(Role::Text, words)]));
    }
    below
}
