//! Draws the table of relations: how each fares.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::graph;
use super::page::ScreenPage;
use crate::estimate::{Moved, RelationIndex, RelationState, Standing};
use crate::names::shown;
use crate::number::{change, signed, whole_share};
use crate::tui::layout::split_below;
use crate::tui::model::ClickTarget;
use crate::tui::screen::Screen;
use crate::tui::symbols::{CURSOR, ERROR, MISSING, OK, WAITING, WARN};
use crate::tui::text::{cut, left, right, width, wrap};
use crate::tui::theme::Role;

/// Cells of the columns after the formula: residual, z, used, trust, state.
const RESIDUAL: usize = 8;
const Z: usize = 6;
const USED: usize = 6;
const TRUST: usize = 5;
const STATE: usize = 11;

/// Cells of a formula, before columns leave for its sake.
const LEAST_FORMULA: usize = 16;

/// Rows of the list below the graph.
const LEAST_LIST: u16 = 6;

/// Rows of the panel that has the whole formula.
const WHOLE: u16 = 6;

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, focus: bool) {
    let model = page.model;
    let area = if model.graph { draw_graph(page, area, focus) } else { area };
    let order = &model.relations.order;
    let has_whole = focus && area.height >= 14 && !order.is_empty();
    let (list, whole) = split_below(area, if has_whole { WHOLE } else { 0 });
    let selected = order.iter().position(|&index| index == model.relations.selected).unwrap_or(0);
    let shown = page.scrolled_in_panel(Screen::Relations, (list, 1), (selected, order.len()));
    let inner = page.list(list, title(page), (shown, model.monitor.relations().len()), (!focus).then_some("Relations"));
    let mut rows = inner.rows();
    if model.monitor.relations().is_empty() {
        let words = "no relations are loaded (--relations FILE)";
        for (line, row) in wrap(words, usize::from(inner.width)).into_iter().zip(rows) {
            page.line(row, Line::from(page.span(Role::Dim, line)));
        }
        return;
    }
    let ids = order.iter().map(|&index| width(&model.relation_id(index)));
    let columns = RelationColumns::of(usize::from(inner.width), ids.max().unwrap_or(2), focus);
    if let Some(row) = rows.next() {
        page.line(row, heads(page, &columns));
    }
    for (&index, row) in order.iter().skip(shown.first).zip(rows) {
        page.line(row, relation_line(page, index, &columns));
        page.target(row, ClickTarget::Relation(index));
        if focus && index == model.relations.selected {
            page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
        }
    }
    if has_whole {
        draw_whole(page, whole, model.relations.selected);
    }
}

/// The graph above the list, where there is room for both; gives what is left for the list.
fn draw_graph(page: &mut ScreenPage<'_>, area: Rect, focus: bool) -> Rect {
    // In the overview the list comes first, and stays whole.
    let whole = u16::try_from(page.model.relations.order.len() + 3).unwrap_or(u16::MAX);
    let list = if focus { LEAST_LIST } else { whole };
    let inside = Rect {
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(list.saturating_add(2)),
        ..area
    };
    let Some(drawing) = graph::fit(page, inside) else { return area };
    let (above, below) = split_below(area, area.height.saturating_sub(drawing.rows() + 2).max(list));
    let title = Line::from(page.span(Role::Title, "What corrects what"));
    let right = if focus { Line::from(page.span(Role::Dim, "t: list only")) } else { Line::default() };
    let inner = page.panel(above, title, right, false);
    drawing.draw(page, inner);
    below
}

fn title(page: &ScreenPage<'_>) -> Line<'static> {
    let model = page.model;
    let mut line = Line::from(page.span(Role::Title, "Relations"));
    let standings = model.monitor.standings().iter().enumerate();
    let roles: Vec<_> = standings.map(|(index, standing)| state(page, index, standing).0).collect();
    let states = [
        (Role::Ok, Role::Ok, "agree"),
        (Role::Info, Role::Info, "uncertain"),
        (Role::Warn, Role::Warn, "doubted"),
        (Role::Error, Role::Error, "violated"),
        (Role::Missing, Role::Dim, "inactive"),
    ];
    let counted = states.map(|(of, role, word)| (role, roles.iter().filter(|role| **role == of).count(), word));
    for (role, count, word) in counted.into_iter().filter(|(_, count, _)| *count > 0) {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(role, format!("{count} {word}")));
    }
    if !model.relations.filter.is_empty() {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(Role::Match, format!("filter: {}", shown(model.relations.filter.text()))));
    }
    line
}

/// Widths; 0 for a column that has left.
struct RelationColumns {
    cursor: bool,
    id: usize,
    formula: usize,
    residual: usize,
    z: usize,
    used: usize,
    trust: usize,
    state: usize,
}

impl RelationColumns {
    /// USED leaves first, then z, RESIDUAL and TRUST: the state says what follows from them.
    fn of(room: usize, id: usize, cursor: bool) -> Self {
        let id = id.clamp(2, 12);
        let mut columns =
            Self { cursor, id, formula: 0, residual: RESIDUAL, z: Z, used: USED, trust: TRUST, state: STATE };
        // The Relations screen has the whole formula of the selected one below.
        let least_formula = if cursor { LEAST_FORMULA } else { 2 * LEAST_FORMULA };
        let leaving: [fn(&mut Self) -> &mut usize; 4] = [
            |columns| &mut columns.used,
            |columns| &mut columns.z,
            |columns| &mut columns.residual,
            |columns| &mut columns.trust,
        ];
        for column in leaving {
            if columns.rest() + least_formula > room {
                *column(&mut columns) = 0;
            }
        }
        columns.formula = room.saturating_sub(columns.rest());
        columns
    }

    fn rest(&self) -> usize {
        let numbers: usize = self.numbers().iter().filter(|width| **width > 0).map(|width| width + 2).sum();
        let cursor = if self.cursor { 2 } else { 0 };
        cursor + self.id + 2 + numbers + 2 + self.state
    }

    /// Widths of the columns of numbers, in the order of the screen.
    fn numbers(&self) -> [usize; 4] {
        [self.residual, self.z, self.used, self.trust]
    }
}

fn heads(page: &ScreenPage<'_>, columns: &RelationColumns) -> Line<'static> {
    let cursor = if columns.cursor { "  " } else { "" };
    let mut text = format!("{cursor}{}  {}", left("ID", columns.id), left("FORMULA", columns.formula));
    for (word, width) in ["RESIDUAL", "z", "USED", "TRUST"].into_iter().zip(columns.numbers()) {
        if width > 0 {
            text.push_str("  ");
            text.push_str(&right(word, width));
        }
    }
    text.push_str("  STATE");
    Line::from(page.span(Role::Header, text))
}

fn relation_line(page: &ScreenPage<'_>, index: RelationIndex, columns: &RelationColumns) -> Line<'static> {
    let model = page.model;
    let standing = standing(page, index);
    let cursor = if index == model.relations.selected { CURSOR } else { " " };
    let mut line = Line::default();
    if columns.cursor {
        line.push_span(page.span(Role::Key, format!("{cursor} ")));
    }
    let (role, state) = state(page, index, &standing);
    let active = role != Role::Missing;
    let text = match standing.state {
        RelationState::Violated => Role::Error,
        _ if active => Role::Text,
        _ => Role::Dim,
    };
    line.push_span(page.span(text, left(&model.relation_id(index), columns.id)));
    line.push_span(page.span(text, format!("  {}", left(&model.relation_formula(index), columns.formula))));
    let numbers = [
        standing.relative.map(change),
        standing.z.map(signed),
        (standing.uses > 0).then(|| standing.uses.to_string()),
        standing.trust.map(whole_share),
    ];
    let number_role = if standing.state == RelationState::Violated { Role::Error } else { Role::Dim };
    for (width, number) in columns.numbers().into_iter().zip(numbers).filter(|(width, _)| *width > 0) {
        let number = number.unwrap_or_else(|| MISSING.into());
        line.push_span(page.span(number_role, format!("  {}", right(&number, width))));
    }
    line.push_span(page.span(role, format!("  {}", left(&state, columns.state))));
    line
}

fn standing(page: &ScreenPage<'_>, index: RelationIndex) -> Standing {
    page.model.monitor.standings().get(index).cloned().unwrap_or_default()
}

/// Whether the counts are too uncertain to contradict a relation that is farther off than it says.
fn is_uncertain(page: &ScreenPage<'_>, index: RelationIndex, standing: &Standing) -> bool {
    let relation = page.model.monitor.relations().get(index);
    standing.state == RelationState::Agrees && relation.is_some_and(|relation| standing.is_far_off(relation.tolerance))
}

/// A glyph and a word, and how they look.
fn state(page: &ScreenPage<'_>, index: RelationIndex, standing: &Standing) -> (Role, String) {
    match &standing.state {
        _ if standing.is_doubted() => (Role::Warn, format!("{WARN} doubted")),
        _ if is_uncertain(page, index, standing) => (Role::Info, format!("{WAITING} uncertain")),
        RelationState::Agrees => (Role::Ok, format!("{OK} agrees")),
        RelationState::Violated => (Role::Error, format!("{ERROR} violated")),
        RelationState::Waiting => (Role::Dim, format!("{WAITING} waiting")),
        RelationState::Inactive { .. } | RelationState::SameEvent { .. } => {
            (Role::Missing, format!("{MISSING} inactive"))
        }
    }
}

/// A relation in one line: `R1  A = B + C    residual −0.1%  z −0.3  ● agrees`.
pub(super) fn sentence(page: &ScreenPage<'_>, index: RelationIndex, room: usize) -> Line<'static> {
    let standing = standing(page, index);
    let (role, word) = state(page, index, &standing);
    let residual = standing.relative.map_or_else(String::new, |part| format!("  residual {}", change(part)));
    let z = standing.z.map_or_else(String::new, |z| format!("  z {}", signed(z)));
    let trust = standing.trust.map_or_else(String::new, |part| format!("  trust {}", whole_share(part)));
    let id = page.model.relation_id(index);
    // What says least leaves first.
    let mut numbers = [z, residual, trust];
    let used = |numbers: &[String; 3]| {
        width(&id) + 2 + LEAST_FORMULA + numbers.iter().map(|number| width(number)).sum::<usize>() + 2 + width(&word)
    };
    for place in 0..numbers.len() {
        if used(&numbers) > room {
            numbers[place].clear();
        }
    }
    let formula_room = (room + LEAST_FORMULA).saturating_sub(used(&numbers));
    let formula = page.model.relation_formula(index);
    let [z, residual, trust] = numbers.map(|number| page.span(Role::Dim, number));
    Line::from(vec![
        page.span(Role::Key, id),
        page.span(Role::Text, format!("  {}", left(&cut(&formula, formula_room), formula_room))),
        residual,
        z,
        trust,
        page.span(role, format!("  {word}")),
    ])
}

/// The whole formula of the selected relation, and what follows from its state.
fn draw_whole(page: &mut ScreenPage<'_>, area: Rect, index: RelationIndex) {
    let title = Line::from(page.span(Role::Title, page.model.relation_id(index)));
    let inner = page.panel(area, title, Line::default(), false);
    let mut lines: Vec<Line<'static>> = wrap(&page.model.relation_formula(index), usize::from(inner.width))
        .into_iter()
        .map(|line| Line::from(page.span(Role::Text, line)))
        .collect();
    let standing = standing(page, index);
    let is_violated = matches!(standing.state, RelationState::Violated);
    let moved = standing.moved.map(|moved| match moved_words(page, moved) {
        words if is_violated => format!("before that {words}"),
        words => words,
    });
    lines.truncate(usize::from(inner.height).saturating_sub(1 + usize::from(moved.is_some())));
    let (role, words) = consequence(page, index, &standing);
    lines.push(Line::from(page.span(role, cut(&words, usize::from(inner.width)).into_owned())));
    lines.extend(
        moved.map(|words| Line::from(page.span(Role::Dim, cut(&words, usize::from(inner.width)).into_owned()))),
    );
    for (line, row) in lines.into_iter().zip(inner.rows()) {
        page.line(row, line);
    }
}

/// Words for what a relation moved most.
fn moved_words(page: &ScreenPage<'_>, moved: Moved) -> String {
    let event = page.model.event_name(moved.event);
    match moved.relative {
        Some(part) => format!("it moved {event} most, by {} of its scaled count", change(part)),
        None => format!("it gives {event} its number, which was counted nowhere"),
    }
}

fn consequence(page: &ScreenPage<'_>, index: RelationIndex, standing: &Standing) -> (Role, String) {
    let (role, word) = state(page, index, standing);
    let words = match &standing.state {
        _ if standing.is_doubted() => {
            let trust = whole_share(standing.trust.unwrap_or(0.0));
            let by = match standing.tested {
                0 => "over this run".to_owned(),
                1 => "in 1 interval of this run".into(),
                tested => format!("in {tested} intervals of this run"),
            };
            format!("it corrects with {trust} of its weight, by how it held {by}")
        }
        _ if is_uncertain(page, index, standing) => {
            "it is far off, and the counts are too uncertain to contradict it: it corrects its events".into()
        }
        RelationState::Agrees => match standing.trust {
            Some(trust) if standing.tested > 0 => {
                let (trust, tested) = (whole_share(trust), standing.tested);
                let intervals = if tested == 1 { "interval" } else { "intervals" };
                format!("it corrects its events; trust {trust} is by how it held in {tested} {intervals} of this run")
            }
            _ => "it corrects its events by what the others counted".into(),
        },
        RelationState::Violated if standing.corrects_regardless() => {
            "what is counted contradicts it; it corrects nevertheless, as --estimator linear-plain asks".into()
        }
        RelationState::Violated => "what is counted contradicts it, so it corrects nothing".into(),
        RelationState::Waiting => "too little has been counted to judge it".into(),
        RelationState::Inactive { missing } => {
            let missing: Vec<_> = missing.iter().map(|name| shown(name)).collect();
            format!("needs {}", missing.join(", "))
        }
        RelationState::SameEvent { event } => {
            format!("both of its events are {}, under two names", page.model.event_name(*event))
        }
    };
    (role, format!("{word}: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_state_is_cut() {
        for word in ["agrees", "doubted", "inactive", "uncertain", "violated", "waiting"] {
            assert!(width(OK) + 1 + width(word) <= STATE, "{word}");
        }
    }
}
