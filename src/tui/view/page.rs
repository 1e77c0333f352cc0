//! Writes text, panels, lists and places to click on into the buffer of a frame.

use std::borrow::Cow;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Padding, Widget};

use crate::tui::model::{ClickTarget, ScreenModel};
use crate::tui::theme::{Role, Theme};

/// What a region draws with.
pub(super) struct ScreenPage<'a> {
    pub(super) model: &'a ScreenModel,
    pub(super) buffer: &'a mut Buffer,
    /// Where a click means something; what is drawn later lies above.
    pub(super) targets: Vec<(Rect, ClickTarget)>,
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

    pub(super) fn line(&mut self, area: Rect, line: impl Into<Line<'static>>) {
        line.into().render(area.intersection(self.buffer.area), self.buffer);
    }

    /// A frame with a title; gives the area inside.
    pub(super) fn panel(&mut self, area: Rect, title: Line<'static>, right: Line<'static>, focus: bool) -> Rect {
        let border = if focus { Role::BorderFocus } else { Role::Border };
        let mut block = Block::bordered()
            .border_type(BorderType::Rounded)
            .border_style(self.style(border))
            .padding(Padding::horizontal(1));
        // The right title gives way: two would run into one another.
        let room = usize::from(area.width.saturating_sub(4));
        let both = title.width() + right.width() + 4 <= room;
        block = block.title(framed(title));
        if both && right.width() > 0 {
            block = block.title(framed(right).right_aligned());
        }
        let inner = block.inner(area);
        block.render(area.intersection(self.buffer.area), self.buffer);
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
        let role = if rows.is_whole() { Role::Dim } else { Role::Warn };
        let right = Line::from(self.span(role, rows.words(all, whole_in)));
        let room = usize::from(area.width.saturating_sub(4));
        while !rows.is_whole() && title.spans.len() > 1 && title.width() + right.width() + 4 > room {
            title.spans.pop();
        }
        self.panel(area, title, right, whole_in.is_none())
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

    /// Marks a row as selected. Reversed text keeps one colour, or it would be a row of patches.
    pub(super) fn select(&mut self, row: Rect) {
        let selection = self.style(Role::Selection);
        let row = row.intersection(self.buffer.area);
        if selection.add_modifier.contains(Modifier::REVERSED) {
            let text = self.style(Role::Text);
            let plain = Style::new().fg(text.fg.unwrap_or_default());
            self.buffer.set_style(row, plain);
        }
        self.buffer.set_style(row, selection);
    }
}

fn framed(mut title: Line<'static>) -> Line<'static> {
    title.spans.insert(0, Span::raw(" "));
    title.push_span(Span::raw(" "));
    title
}

/// Rows of a list on the screen: how many there is room for, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct VisibleRows {
    /// The first one on the screen.
    pub(super) first: usize,
    pub(super) rows: usize,
    pub(super) all: usize,
}

impl VisibleRows {
    /// The rows that a list has in a panel of this area, below so many lines of heads, `selected` in the middle.
    pub(super) fn in_panel(area: Rect, heads: usize, selected: usize, all: usize) -> Self {
        let rows = usize::from(area.height.saturating_sub(2)).saturating_sub(heads);
        Self { first: top(selected, all, rows), rows, all }
    }

    pub(super) fn is_whole(self) -> bool {
        self.rows >= self.all
    }

    /// `7 of 11, ↓ more`: the arrows are the keys that show the others, where the list has them; elsewhere `whole_in` has
    /// the whole list. `matching`: a filter hides more.
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
}

/// The first of `count` rows to show so that `selected` stands in the middle of `height`.
pub(super) fn top(selected: usize, count: usize, height: usize) -> usize {
    selected.saturating_sub(height / 2).min(count.saturating_sub(height))
}
