//! Draws the graph of events and what corrects them.
//!
//! ```text
//! ╭ L2_HITS ──────╮
//! │ 1.52M ±2.0%   ├──┐        ╭ L1_MISSES ────╮
//! ╰───────────────╯  ├── R1 ─▶│ 1.93M ±1.8%   │
//! ╭ L2_MISSES ────╮  │        ╰───────────────╯
//! │ 412k ±6.4%    ├──┘
//! ╰───────────────╯
//! ```

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::page::ScreenPage;
use crate::estimate::{RelationIndex, RelationState};
use crate::plan::RowIndex;
use crate::tui::model::relation_graph::{GraphEdge, GraphSlot, RelationGraph};
use crate::tui::text::{amount, cut, cut_middle, width};
use crate::tui::theme::Role;

/// Rows of a node, and cells that it is wide.
const NODE_ROWS: u16 = 3;
const LEAST_NODE: u16 = 14;
const MOST_NODE: u16 = 24;
const GOOD_NODE: u16 = 18;

/// Cells between columns: room for a line down, a name and an arrow.
const LEAST_GAP: u16 = 9;
const MOST_GAP: u16 = 22;

/// A graph that fits into an area.
pub(super) struct Drawing<'a> {
    graph: &'a RelationGraph,
    node_width: u16,
    gap: u16,
    /// How many lines may go up and down beside one another in a gap.
    lanes: u16,
}

/// The graph of the relations between measured events; `None` where there is none, or no room.
pub(super) fn fit<'a>(page: &ScreenPage<'a>, area: Rect) -> Option<Drawing<'a>> {
    let graph = &page.model.relation_graph;
    let layout = &graph.layout;
    let columns = u16::try_from(layout.columns.len()).ok().filter(|&columns| columns >= 2)?;
    let rows = layout.columns.iter().map(|column| column_rows(column)).max()?;
    let least = columns * LEAST_NODE + (columns - 1) * LEAST_GAP;
    if least > area.width || rows > area.height {
        return None;
    }
    let longest = graph.nodes.iter().map(|&event| width(&page.model.event_name(event)) + 6).max().unwrap_or(0);
    let wished = u16::try_from(longest).unwrap_or(MOST_NODE).clamp(LEAST_NODE, MOST_NODE);
    // The name of a relation, and the line and the arrow around it, as far as nodes stay readable.
    let ids = graph.edges.iter().map(|(_, relation)| width(&page.model.relation_id(*relation)) + 8).max().unwrap_or(0);
    let wished_gap = u16::try_from(ids).unwrap_or(MOST_GAP).clamp(LEAST_GAP, MOST_GAP);
    let most_gap = area.width.saturating_sub(columns * wished.min(GOOD_NODE)) / (columns - 1);
    let least_gap = wished_gap.min(most_gap).max(LEAST_GAP);
    let node_width = wished.min((area.width - (columns - 1) * least_gap) / columns);
    let gap = ((area.width - columns * node_width) / (columns - 1)).min(MOST_GAP);
    // Names come first, but lines to two nodes beside one another are to be distinguished.
    let lanes = (gap + 2).saturating_sub(wished_gap).clamp(1 + u16::from(gap > LEAST_GAP), 4);
    Some(Drawing { graph, node_width, gap, lanes })
}

fn column_rows(column: &[GraphSlot]) -> u16 {
    let rows: usize = column.iter().map(|slot| usize::from(slot_rows(*slot))).sum();
    u16::try_from(rows).unwrap_or(u16::MAX)
}

fn slot_rows(slot: GraphSlot) -> u16 {
    match slot {
        GraphSlot::Node(_) => NODE_ROWS,
        GraphSlot::Pass(_) => 1,
    }
}

impl Drawing<'_> {
    /// The number of rows that it takes.
    pub(super) fn rows(&self) -> u16 {
        self.graph.layout.columns.iter().map(|column| column_rows(column)).max().unwrap_or(0)
    }

    pub(super) fn draw(&self, page: &mut ScreenPage<'_>, area: Rect) {
        let places = self.places(area);
        let mut lines = CrossingLines::new(area);
        for (index, (edge, relation)) in self.graph.edges.iter().enumerate() {
            self.trace(page, &mut lines, &places, index, *edge, *relation);
        }
        lines.draw(page);
        for (column, slots) in self.graph.layout.columns.iter().enumerate() {
            for (slot, row) in slots.iter().zip(&places[column]) {
                if let GraphSlot::Node(node) = slot {
                    let x = self.left(area, column);
                    let place = Rect::new(x, row - 1, self.node_width, NODE_ROWS).intersection(area);
                    draw_node(page, place, self.graph.nodes[*node]);
                }
            }
        }
        // Names and arrows lie on the lines.
        for (index, (edge, relation)) in self.graph.edges.iter().enumerate() {
            self.label(page, &places, area, index, *edge, *relation);
        }
    }

    /// The row of the middle of each slot. Each column stands in the middle of the area.
    fn places(&self, area: Rect) -> Vec<Vec<u16>> {
        let middle = |column: &Vec<GraphSlot>| {
            let spare = area.height.saturating_sub(column_rows(column));
            let mut row = area.y + spare / 2;
            column
                .iter()
                .map(|slot| {
                    let rows = slot_rows(*slot);
                    let middle = row + rows / 2;
                    row += rows;
                    middle
                })
                .collect()
        };
        self.graph.layout.columns.iter().map(middle).collect()
    }

    fn left(&self, area: Rect, column: usize) -> u16 {
        let column = u16::try_from(column).unwrap_or(0);
        area.x + column * (self.node_width + self.gap)
    }

    fn row(&self, places: &[Vec<u16>], column: usize, slot: GraphSlot) -> Option<u16> {
        let at = self.graph.layout.columns.get(column)?.iter().position(|found| *found == slot)?;
        places.get(column)?.get(at).copied()
    }

    /// The rows of an edge in each column from its left end to its right one.
    fn way(&self, places: &[Vec<u16>], index: usize, edge: GraphEdge) -> Vec<(usize, u16)> {
        let (left, right) = if self.graph.layout.back[index] { (edge.to, edge.from) } else { (edge.from, edge.to) };
        let (first, last) = (self.graph.layout.column[left], self.graph.layout.column[right]);
        (first..=last)
            .filter_map(|column| {
                let slot = match column {
                    column if column == first => GraphSlot::Node(left),
                    column if column == last => GraphSlot::Node(right),
                    _ => GraphSlot::Pass(index),
                };
                self.row(places, column, slot).map(|row| (column, row))
            })
            .collect()
    }

    /// The column of cells in the gap behind `column` where this edge goes up or down. Edges into
    /// the same node share it, so that they come together.
    fn channel(&self, area: Rect, column: usize, edge: GraphEdge, back: bool) -> u16 {
        let start = self.left(area, column) + self.node_width;
        let right = if back { edge.from } else { edge.to };
        start + 1 + u16::try_from(right).unwrap_or(0) % self.lanes
    }

    fn trace(
        &self,
        page: &ScreenPage<'_>,
        lines: &mut CrossingLines,
        places: &[Vec<u16>],
        index: usize,
        edge: GraphEdge,
        relation: RelationIndex,
    ) {
        let (area, style) = (lines.area, edge_style(page, relation));
        for pair in self.way(places, index, edge).windows(2) {
            let [(column, from), (_, to)] = [pair[0], pair[1]];
            let start = self.left(area, column) + self.node_width;
            let end = start + self.gap;
            let turn = self.channel(area, column, edge, self.graph.layout.back[index]);
            lines.across(start, turn, from, style);
            lines.down(turn, from, to, style);
            lines.across(turn, end, to, style);
            if matches!(
                self.graph.layout.columns[column + 1].get(self.place_of(places, column + 1, to)),
                Some(GraphSlot::Pass(_))
            ) {
                lines.across(end, end + self.node_width, to, style);
            }
        }
    }

    fn place_of(&self, places: &[Vec<u16>], column: usize, row: u16) -> usize {
        places[column].iter().position(|place| *place == row).unwrap_or(usize::MAX)
    }

    /// The relation's name before the arrow, the arrow, and a cross on one that is violated.
    fn label(
        &self,
        page: &mut ScreenPage<'_>,
        places: &[Vec<u16>],
        area: Rect,
        index: usize,
        edge: GraphEdge,
        relation: RelationIndex,
    ) {
        let way = self.way(places, index, edge);
        let style = edge_style(page, relation);
        let back = self.graph.layout.back[index];
        let (Some(first), Some(last)) = (way.first(), way.last()) else { return };
        if first.0 == last.0 {
            return;
        }
        let end = self.left(area, last.0);
        match back {
            true => page.put(self.left(area, first.0) + self.node_width, first.1, "◀", style),
            false => page.put(end - 1, last.1, "▶", style),
        }
        let start = end - self.gap + 1 + self.lanes;
        let room = usize::from((end - 1).saturating_sub(start + 1));
        let mark = if violated(page, relation) { "╳" } else { "" };
        let name = page.model.relation_id(relation);
        let text = format!(" {}{mark} ", cut(&name, room.saturating_sub(2 + width(mark))));
        if room > 3 {
            page.line(Rect::new(start, last.1, end - 1 - start, 1), Line::styled(text, style));
        }
    }
}

fn violated(page: &ScreenPage<'_>, relation: RelationIndex) -> bool {
    page.model.monitor.standings().get(relation).is_some_and(|standing| standing.state == RelationState::Violated)
}

fn edge_style(page: &ScreenPage<'_>, relation: RelationIndex) -> Style {
    let state = page.model.monitor.standings().get(relation).map(|standing| &standing.state);
    let style = page.style(match state {
        Some(RelationState::Violated) => Role::Error,
        Some(RelationState::Agrees) => Role::Corrected,
        _ => Role::Dim,
    });
    if page.model.relations.selected == relation { style.add_modifier(Modifier::BOLD) } else { style }
}

/// A box with the event's name in its border and its number inside.
fn draw_node(page: &mut ScreenPage<'_>, area: Rect, event: RowIndex) {
    let model = page.model;
    let room = usize::from(area.width.saturating_sub(4));
    let name = cut_middle(&model.event_name(event), room).into_owned();
    let figures = model.figures(event);
    let figure = figures.shown(model.basis);
    let unit = &model.monitor.header().events[event].event.unit;
    let text = figure.map_or_else(
        || model.monitor.row(event).absence.map_or("", |absence| absence.words()).to_owned(),
        |figure| format!("{} {}", amount(figure.mean, unit).trim_end(), figures.error_of(figure, unit)),
    );
    page.fill(area);
    let inner = page.panel(area, Line::from(page.span(Role::Text, name)), Line::default(), false);
    page.line(inner, Line::from(page.span(Role::Text, cut(&text, usize::from(inner.width)).into_owned())));
    page.target(area, crate::tui::model::ClickTarget::Event(event));
}

const LEFT: u8 = 1;
const RIGHT: u8 = 2;
const UP: u8 = 4;
const DOWN: u8 = 8;

/// Lines that meet where they cross.
struct CrossingLines {
    area: Rect,
    /// For each cell, the sides to which lines go, and the style of the last line.
    cells: Vec<(u8, Style)>,
}

impl CrossingLines {
    fn new(area: Rect) -> Self {
        Self { area, cells: vec![(0, Style::new()); usize::from(area.width) * usize::from(area.height)] }
    }

    fn add(&mut self, x: u16, y: u16, sides: u8, style: Style) {
        if !self.area.contains((x, y).into()) {
            return;
        }
        let place = usize::from(y - self.area.y) * usize::from(self.area.width) + usize::from(x - self.area.x);
        if let Some(cell) = self.cells.get_mut(place) {
            *cell = (cell.0 | sides, style);
        }
    }

    /// Draws a line from one column of cells to another, in a row.
    fn across(&mut self, from: u16, to: u16, row: u16, style: Style) {
        for x in from..=to {
            let sides = if x == from {
                RIGHT
            } else if x == to {
                LEFT
            } else {
                LEFT | RIGHT
            };
            self.add(x, row, if from == to { 0 } else { sides }, style);
        }
    }

    /// Draws a line from one row to another, in a column of cells.
    fn down(&mut self, column: u16, from: u16, to: u16, style: Style) {
        let (top, bottom) = (from.min(to), from.max(to));
        for y in top..=bottom {
            let sides = if y == top {
                DOWN
            } else if y == bottom {
                UP
            } else {
                UP | DOWN
            };
            self.add(column, y, if top == bottom { 0 } else { sides }, style);
        }
    }

    fn draw(&self, page: &mut ScreenPage<'_>) {
        for (place, &(sides, style)) in self.cells.iter().enumerate() {
            let width = usize::from(self.area.width);
            let (x, y) = (place % width, place / width);
            if sides != 0 {
                let at = |offset: usize, start: u16| start.saturating_add(u16::try_from(offset).unwrap_or(u16::MAX));
                page.put(at(x, self.area.x), at(y, self.area.y), glyph(sides), style);
            }
        }
    }
}

fn glyph(sides: u8) -> &'static str {
    match (sides & LEFT > 0, sides & RIGHT > 0, sides & UP > 0, sides & DOWN > 0) {
        (_, _, false, false) => "─",
        (false, false, _, _) => "│",
        (true, false, true, false) => "╯",
        (true, false, false, true) => "╮",
        (false, true, true, false) => "╰",
        (false, true, false, true) => "╭",
        (true, false, true, true) => "┤",
        (false, true, true, true) => "├",
        (true, true, true, false) => "┴",
        (true, true, false, true) => "┬",
        (true, true, true, true) => "┼",
    }
}
