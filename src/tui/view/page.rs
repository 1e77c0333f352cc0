//! Writes text, panels, lists and places to click on into the buffer of a frame.

use std::borrow::Cow;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Padding, Widget};

use crate::tui::keys::keys_in;
use crate::tui::layout::split_below;
use crate::tui::model::{ClickTarget, DrawnScreen, ScreenModel, ScrolledList, VisibleRows};
use crate::tui::screen::Screen;
use crate::tui::symbols::{BLOCKED, EIGHTHS, LEVELS, ON_CPU, READY, UP};
use crate::tui::text::{ELLIPSIS, width};
use crate::tui::theme::{Role, Theme};

/// The corner at which the frame of a panel ends.
const BOTTOM_LEFT: &str = "╰";

/// What a region draws with.
pub(super) struct ScreenPage<'a> {
    pub(super) model: &'a ScreenModel,
    pub(super) buffer: &'a mut Buffer,
    /// Where a click means something; what is drawn later lies above.
    pub(super) targets: Vec<(Rect, ClickTarget)>,
    /// What the model is to know of what is drawn.
    pub(super) drawn: DrawnScreen,
}

impl<'a> ScreenPage<'a> {
    pub(super) fn theme(&self) -> &'a Theme {
        &self.model.theme
    }

    pub(super) fn style(&self, role: Role) -> Style {
        self.theme().style(role)
    }

    pub(super) fn span(&self, role: Role, text: impl Into<Cow<'static, str>>) -> Span<'static> {
        Span::styled(text, self.style(role))
    }

    /// Writes a line; what has no room ends with an ellipsis.
    pub(super) fn line(&mut self, area: Rect, line: impl Into<Line<'static>>) {
        let (line, area) = (line.into(), area.intersection(self.buffer.area));
        let room = usize::from(area.width);
        // Blanks at its end are no loss.
        let is_cut = area.height > 0 && line.width() > room && width(line.to_string().trim_end()) > room;
        line.render(area, self.buffer);
        if let (true, Some(last)) = (is_cut, area.columns().next_back()) {
            self.buffer[(last.x, area.y)].set_symbol(ELLIPSIS);
        }
    }

    /// A frame with a title; gives the area inside. Where it begins in the last row of another one, they share that
    /// row.
    pub(super) fn panel(&mut self, area: Rect, title: Line<'static>, right: Line<'static>, focus: bool) -> Rect {
        let border = if focus { Role::BorderFocus } else { Role::Border };
        let mut block = Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(self.style(border))
            .padding(Padding::horizontal(1));
        // The right title gives way: two would run into one another.
        let both = fit_beside(&title, &right, area);
        if title.width() > 0 {
            block = block.title(framed(title));
        }
        if both && right.width() > 0 {
            block = block.title(framed(right).right_aligned());
        }
        let inner = block.inner(area);
        let above = self.buffer.cell((area.x, area.y)).filter(|cell| cell.symbol() == BOTTOM_LEFT).map(Cell::style);
        block.render(area.intersection(self.buffer.area), self.buffer);
        if let Some(style) = above {
            self.put(area.x, area.y, "├", style);
            self.put(area.right().saturating_sub(1), area.y, "┤", style);
        }
        inner
    }

    /// The same for a list. That not all of it is shown must be seen: then the title gives way, word by word.
    pub(super) fn list(
        &mut self,
        area: Rect,
        mut title: Line<'static>,
        (rows, all): (VisibleRows, usize),
        whole_in: Option<&str>,
    ) -> Rect {
        // Nothing is wrong with a list that goes on.
        let role = if rows.is_whole() { Role::Dim } else { Role::Key };
        let right = Line::from(self.span(role, keys_in(self.model.options.symbols, &rows.words(all, whole_in))));
        if !rows.is_whole() {
            make_room(&mut title, &right, area);
        }
        self.panel(area, title, right, whole_in.is_none())
    }

    /// The rows of a list that are on the screen where it has so many: those that were, as far as the selected one is
    /// among them.
    pub(super) fn scrolled(&mut self, list: ScrolledList, rows: usize, (selected, all): (usize, usize)) -> VisibleRows {
        let shown = match self.model.lists.of(list) {
            Some(before) => before.scrolled(selected, all, rows),
            None => VisibleRows::around(selected, all, rows),
        };
        self.drawn.lists.set(list, shown);
        shown
    }

    /// The same of a screen's list in a panel, below so many lines of heads.
    pub(super) fn scrolled_in_panel(
        &mut self,
        screen: Screen,
        (area, heads): (Rect, usize),
        place: (usize, usize),
    ) -> VisibleRows {
        self.scrolled(ScrolledList::Of(screen), rows_in_panel(area, heads), place)
    }

    /// Says in the last line of a list without a frame that not all of it is shown.
    pub(super) fn hidden_line(&mut self, last: Rect, rows: VisibleRows) {
        if last.height > 0 {
            let words = keys_in(self.model.options.symbols, &rows.words(rows.all, None));
            let words = self.span(Role::Key, format!(" {words}"));
            self.line(last, words);
        }
    }

    pub(super) fn fill(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        let base = self.style(Role::Background).patch(self.style(Role::Text));
        ratatui::widgets::Clear.render(area, self.buffer);
        self.buffer.set_style(area, base);
    }

    pub(super) fn put(&mut self, x: u16, y: u16, glyph: &str, style: Style) {
        if let Some(cell) = self.buffer.cell_mut((x, y)) {
            cell.set_symbol(glyph).set_style(style);
        }
    }

    /// Makes a place one that can be clicked on.
    pub(super) fn target(&mut self, area: Rect, target: ClickTarget) {
        self.targets.push((area, target));
    }

    /// Writes the heads of a table, a span each, of which some can be clicked on.
    pub(super) fn heads(
        &mut self,
        row: Rect,
        heads: Line<'static>,
        targets: impl IntoIterator<Item = Option<ClickTarget>>,
    ) {
        let mut x = row.x;
        for (head, target) in heads.spans.iter().zip(targets) {
            let width = u16::try_from(head.width()).unwrap_or(u16::MAX);
            if let Some(target) = target {
                self.target(Rect { x, width, ..row }.intersection(row), target);
            }
            x = x.saturating_add(width);
        }
        self.line(row, heads);
    }

    /// Marks a row as selected. Reversed text keeps one colour, or it would be a row of patches; bars aren't reversed, as a full one
    /// would look empty.
    pub(super) fn select(&mut self, row: Rect) {
        let selection = self.style(Role::Selection);
        let row = row.intersection(self.buffer.area);
        if !selection.add_modifier.contains(Modifier::REVERSED) {
            return self.buffer.set_style(row, selection);
        }
        let text = self.style(Role::Text);
        let plain = Style::new().fg(text.fg.unwrap_or_default());
        let mut is_in_bar = false;
        for place in row.positions() {
            let cell = &mut self.buffer[place];
            is_in_bar = is_bar(cell.symbol()) || is_in_bar && IN_BARS.contains(&cell.symbol());
            if !is_in_bar {
                cell.set_style(plain).set_style(selection);
            }
        }
    }
}

/// What stands between the glyphs of bars and trends: nothing, a gap, and a peak that is cut off.
const IN_BARS: [&str; 3] = [" ", "·", UP];

/// Whether a cell is filled as far as a number is large.
fn is_bar(symbol: &str) -> bool {
    LEVELS.contains(&symbol) || EIGHTHS.contains(&symbol) || [ON_CPU, READY, BLOCKED].contains(&symbol)
}

/// Whether two titles fit on the upper border of an area.
pub(super) fn fit_beside(title: &Line<'_>, right: &Line<'_>, area: Rect) -> bool {
    let room = usize::from(area.width);
    if title.width() == 0 { right.width() + 4 <= room } else { title.width() + right.width() + 8 <= room }
}

/// Shortens a title, word by word, until what stands at the right fits beside it. What only leads to a word that left
/// goes with it.
pub(super) fn make_room(title: &mut Line<'_>, right: &Line<'_>, area: Rect) {
    while !title.spans.is_empty() && !fit_beside(title, right, area) {
        title.spans.pop();
        while title.spans.last().is_some_and(|span| span.content.ends_with(' ')) {
            title.spans.pop();
        }
    }
}

/// A title with a blank at each end.
pub(super) fn framed(mut title: Line<'static>) -> Line<'static> {
    title.spans.insert(0, Span::raw(" "));
    title.push_span(Span::raw(" "));
    title
}

/// How many rows a list has in a panel of this area, below so many lines of heads.
pub(super) fn rows_in_panel(area: Rect, heads: usize) -> usize {
    usize::from(area.height.saturating_sub(2)).saturating_sub(heads)
}

impl VisibleRows {
    /// The first rows of a list without a selection.
    pub(super) fn in_panel(area: Rect, heads: usize, all: usize) -> Self {
        Self { first: 0, rows: rows_in_panel(area, heads), all }
    }

    pub(super) fn is_whole(self) -> bool {
        self.rows >= self.all
    }

    /// `7 of 11, ↓ more`: the arrows are the keys that show the others, where the list has them; elsewhere `whole_in`
    /// has the whole list. `matching`: a filter hides more.
    pub(super) fn words(self, all_of_them: usize, whole_in: Option<&str>) -> String {
        if self.is_whole() {
            return format!("{} of {all_of_them}", self.all);
        }
        let hidden = match (self.first > 0, self.first + self.rows < self.all) {
            (true, true) => "↑↓",
            (true, false) => "↑",
            (false, _) => "↓",
        };
        let matching = if self.all < all_of_them { " matching" } else { "" };
        match whole_in {
            Some(screen) => format!("{} of {}{matching}, all in {screen}", self.rows, self.all),
            None => format!("{} of {}{matching}, {hidden} more", self.rows, self.all),
        }
    }

    /// The rows of a list without a frame: where not all fit, the last line of the area is kept for what says so.
    pub(super) fn in_lines(area: Rect, all: usize, first: impl FnOnce(usize) -> usize) -> (Self, Rect) {
        let whole = usize::from(area.height) >= all;
        let (list, last) = split_below(area, u16::from(!whole));
        let rows = usize::from(list.height);
        (Self { first: first(rows), rows, all }, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::tui::options::ScreenOptions;
    use crate::tui::theme::Depth;

    #[test]
    fn bars_are_not_reversed() {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let theme = Theme::built_in("mono", Depth::TrueColor).unwrap_or_else(|| unreachable!("a theme of the program"));
        let model = ScreenModel::new(monitor, &ScreenOptions { theme, ..ScreenOptions::default() });
        let row = Rect::new(0, 0, 12, 1);
        let (mut buffer, drawn) = (Buffer::empty(row), DrawnScreen::default());
        let mut page = ScreenPage { model: &model, buffer: &mut buffer, targets: Vec::new(), drawn };
        page.line(row, "a  ▁█ ↑· 5 ↑");
        page.select(row);
        let reversed = (0..12).map(|x| if buffer[(x, 0)].modifier.contains(Modifier::REVERSED) { 'r' } else { '-' });
        assert_eq!(reversed.collect::<String>(), "rrr------rrr");
    }
}
