//! Draws the model as a frame. Nothing here changes the model.

use std::borrow::Cow;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Padding, Widget};

use super::model::profile::{FrameIndex, Node};
use super::model::{Model, Over, Pane, Screen};
use super::theme::{Role, Theme};
use crate::estimate::RelationIndex;
use crate::plan::EventIndex;

mod chart;
mod compare;
mod detail;
mod events;
mod export;
mod footer;
mod graph;
mod groups;
mod header;
mod help;
mod histogram;
mod layout;
mod log;
mod metrics;
mod profile;
mod quit;
mod relations;
mod strip;
mod sum;

pub(super) use help::lines as help_lines;
pub(super) use layout::page;
use layout::{Filled, Regions, Room};
pub(super) use profile::table_rows as profile_rows;

/// Draws the whole screen.
pub(super) fn draw(model: &Model, frame: &mut Frame<'_>) {
    let area = frame.area();
    draw_on(model, area, frame.buffer_mut());
}

/// Draws the whole screen into a buffer.
pub(super) fn draw_on(model: &Model, area: Rect, buffer: &mut Buffer) {
    draw_and_find(model, area, buffer);
}

/// What a click can be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Screen(Screen),
    Event(EventIndex),
    /// All parts of an event together.
    Sum(usize),
    Relation(RelationIndex),
    Frame(Node),
    Function(FrameIndex),
    Group(usize),
    /// A line of the comparison of recordings.
    Compared(usize),
}

/// What stands at a place of the screen. The screen is drawn for it once more, so that only what is
/// drawn can be clicked on.
pub(super) fn target_at(model: &Model, column: u16, row: u16) -> Option<Target> {
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let targets = draw_and_find(model, area, &mut Buffer::empty(area));
    targets.into_iter().rfind(|(place, _)| place.contains((column, row).into())).map(|(_, target)| target)
}

fn draw_and_find(model: &Model, area: Rect, buffer: &mut Buffer) -> Vec<(Rect, Target)> {
    let theme = &model.theme;
    buffer.set_style(area, theme.style(Role::Background).patch(theme.style(Role::Text)));
    let mut page = Page { model, buffer, targets: Vec::new() };
    match Room::of(area) {
        Room::TooSmall => too_small(&mut page, area),
        room => {
            let regions = Regions::of(area, room);
            header::draw(&mut page, regions.header);
            header::tabs(&mut page, regions.tabs);
            screen(&mut page, regions.body, room);
            footer::draw(&mut page, regions.message, regions.hints);
            match model.over {
                Over::Help(top) => help::draw(&mut page, area, top),
                Over::AskQuit { pid } => quit::draw(&mut page, area, pid),
                Over::AskExport => export::draw(&mut page, area),
                Over::Nothing | Over::Filter { .. } | Over::Jump { .. } => {}
            }
        }
    }
    model.options.symbols.apply(page.buffer);
    page.targets
}

fn screen(page: &mut Page<'_>, area: Rect, room: Room) {
    match (page.model.screen, room) {
        (Screen::Events, Room::Lines) => events::lines(page, area),
        (Screen::Events, Room::Small) => {
            let (table, lower) = layout::above_strip(area);
            let (table, below) = metrics::below_events(page, table);
            events::draw(page, table, room);
            metrics::draw(page, below);
            strip::draw(page, lower);
        }
        (Screen::Events, Room::Large) if page.model.profile.is_some() => {
            let (left, right) = layout::split_right(area, area.width * 26 / 100);
            overview(page, left, room);
            profile::draw(page, right, false);
        }
        (Screen::Events, _) => overview(page, area, room),
        (Screen::Detail, _) => detail::draw(page, area, true),
        (Screen::Relations, _) => relations::draw(page, area, true),
        (Screen::Profile, _) => profile::draw(page, area, true),
        (Screen::Groups, _) => groups::draw(page, area),
        (Screen::Log, _) => log::draw(page, area),
        (Screen::Compare, _) => compare::draw(page, area),
    }
}

/// Draws everything at once, where there is room.
fn overview(page: &mut Page<'_>, area: Rect, room: Room) {
    let filled = Filled { relations: !page.model.monitor.relations().is_empty(), output: page.model.has_output() };
    let panels = layout::overview(area, room, filled);
    let (table, below) = metrics::below_events(page, panels.events);
    events::draw(page, table, room);
    metrics::draw(page, below);
    detail::draw(page, panels.detail, false);
    if !panels.relations.is_empty() {
        relations::draw(page, panels.relations, false);
    }
    log::findings(page, panels.log, false);
    if let Some(area) = panels.output {
        log::output(page, area, false);
    }
}

/// Whether a new line of output changes what is on the screen.
pub(super) fn shows_output(model: &Model) -> bool {
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    match model.screen {
        Screen::Log => model.log.pane == Pane::Output,
        Screen::Events => matches!(Room::of(area), Room::Medium | Room::Large),
        Screen::Detail | Screen::Relations | Screen::Profile | Screen::Groups | Screen::Compare => false,
    }
}

/// Whether the profile is on the screen.
pub(super) fn shows_profile(model: &Model) -> bool {
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    match model.screen {
        Screen::Profile => true,
        Screen::Events => Room::of(area) == Room::Large,
        Screen::Detail | Screen::Relations | Screen::Groups | Screen::Log | Screen::Compare => false,
    }
}

fn too_small(page: &mut Page<'_>, area: Rect) {
    let (width, height) = (area.width, area.height);
    let (least_width, least_height) = layout::LEAST;
    let text = format!("perfprop {width}x{height}: too small (need {least_width}x{least_height})");
    let lines = super::text::wrap(&text, usize::from(width));
    for (line, row) in lines.into_iter().zip(area.rows()) {
        page.line(row, Line::raw(line));
    }
}

/// What a region draws with.
struct Page<'a> {
    model: &'a Model,
    buffer: &'a mut Buffer,
    /// Where a click means something; what is drawn later lies above.
    targets: Vec<(Rect, Target)>,
}

impl<'a> Page<'a> {
    fn theme(&self) -> &'a Theme {
        &self.model.theme
    }

    fn style(&self, role: Role) -> Style {
        self.theme().style(role)
    }

    fn span(&self, role: Role, text: impl Into<Cow<'static, str>>) -> Span<'static> {
        Span::styled(text, self.style(role))
    }

    fn line(&mut self, area: Rect, line: impl Into<Line<'static>>) {
        line.into().render(area.intersection(self.buffer.area), self.buffer);
    }

    /// A frame with a title; gives the area inside.
    fn panel(&mut self, area: Rect, title: Line<'static>, right: Line<'static>, focus: bool) -> Rect {
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
    fn list(
        &mut self,
        area: Rect,
        mut title: Line<'static>,
        (rows, all): (Shown, usize),
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

    fn fill(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        let base = self.style(Role::Background).patch(self.style(Role::Text));
        ratatui::widgets::Clear.render(area, self.buffer);
        self.buffer.set_style(area, base);
    }

    fn put(&mut self, x: u16, y: u16, glyph: &str, style: Style) {
        if let Some(cell) = self.buffer.cell_mut((x, y)) {
            cell.set_symbol(glyph).set_style(style);
        }
    }

    /// Makes a place one that can be clicked on.
    fn target(&mut self, area: Rect, target: Target) {
        self.targets.push((area, target));
    }

    /// Marks a row as selected. Reversed text keeps one colour, or it would be a row of patches.
    fn select(&mut self, row: Rect) {
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
struct Shown {
    /// The first one on the screen.
    first: usize,
    rows: usize,
    all: usize,
}

impl Shown {
    /// The rows that a list has in a panel of this area, below so many lines of heads, `selected` in the middle.
    fn in_panel(area: Rect, heads: usize, selected: usize, all: usize) -> Self {
        let rows = usize::from(area.height.saturating_sub(2)).saturating_sub(heads);
        Self { first: top(selected, all, rows), rows, all }
    }

    fn is_whole(self) -> bool {
        self.rows >= self.all
    }

    /// `7 of 11, ↓ more`: the arrows are the keys that show the others, where the list has them; elsewhere `whole_in` has
    /// the whole list. `matching`: a filter hides more.
    fn words(self, all_of_them: usize, whole_in: Option<&str>) -> String {
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
fn top(selected: usize, count: usize, height: usize) -> usize {
    selected.saturating_sub(height / 2).min(count.saturating_sub(height))
}
