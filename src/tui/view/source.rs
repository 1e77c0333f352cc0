//! Draws the source of a function, or its instructions, each with its shares of the samples.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use super::profile::interval;
use crate::names::shown;
use crate::number::share;
use crate::profile::Amount;
use crate::rates::Error;
use crate::tui::layout::split_below;
use crate::tui::model::source::SourceState;
use crate::tui::screen::Screen;
use crate::tui::source_text::FileText;
use crate::tui::symbols::CURSOR;
use crate::tui::text::{cut, from_cell, right, wrap};
use crate::tui::theme::Role;

/// Cells of a share, of its interval, and at least of the number of a line and of an address.
const SHARE: usize = 6;
const INTERVAL: usize = 9;
const NUMBER: usize = 5;
const ADDRESS: usize = 8;

/// Cells of the text, before columns leave for its sake.
const LEAST_TEXT: usize = 30;

/// A line with at least this part of the function's own samples stands out.
const HOT: f64 = 0.1;

/// Which columns there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SourceColumns {
    total: bool,
    intervals: bool,
    /// Cells of the number of a line, or of an address.
    number: usize,
}

impl SourceColumns {
    fn of(room: usize, number: usize) -> Self {
        let both = Self { total: true, intervals: true, number };
        let fitting = [both, Self { total: false, ..both }, Self { total: false, intervals: false, ..both }];
        fitting.into_iter().find(|columns| columns.width() + LEAST_TEXT <= room).unwrap_or(fitting[2])
    }

    fn width(self) -> usize {
        let one = SHARE + 1 + if self.intervals { INTERVAL + 1 } else { 0 };
        2 + one * if self.total { 2 } else { 1 } + self.number + 2
    }
}

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let model = page.model;
    let Some(source) = &model.source else {
        let title = Line::from(page.span(Role::Title, "Source"));
        let inner = page.panel(area, title, Line::default(), true);
        return page.line(inner, Line::from(page.span(Role::Dim, "Enter on a function in Profile shows its source")));
    };
    let missing = words(source);
    let room = usize::from(area.width.saturating_sub(4));
    let missing: Vec<String> = missing.iter().flat_map(|words| wrap(words, room)).collect();
    let above = missing.len().min(usize::from(area.height.saturating_sub(4)));
    let rows = page.scrolled_in_panel(Screen::Source, (area, 1 + above), (source.row, source.rows.len()));
    let title = title(page, source, room);
    let inner = page.list(area, title, (rows, rows.all), None);
    let (said, inner) = split_below(inner, inner.height.saturating_sub(above as u16));
    for (words, row) in missing.into_iter().zip(said.rows()) {
        page.line(row, Line::from(page.span(Role::Warn, words)));
    }
    let (heads, table) = split_below(inner, inner.height.saturating_sub(1));
    let columns = SourceColumns::of(usize::from(inner.width), number_cells(source));
    draw_heads(page, heads, source, columns);
    for (index, row) in (rows.first..source.rows.len()).zip(table.rows()) {
        draw_row(page, row, source, index, columns);
    }
}

/// Cells of the column of lines or addresses, none of which is cut.
fn number_cells(source: &SourceState) -> usize {
    source.number_cells().max(if source.has_instructions() { ADDRESS } else { NUMBER })
}

/// What the reader should know of the text: why it isn't there, or may be another one; and samples without lines.
fn words(source: &SourceState) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(source.lines.nameless.map(|reason| format!("{}; {}", reason.cause(), reason.help())));
    match &source.text {
        FileText::Instructions(..) if source.lines.nameless.is_some() => {}
        FileText::Missing(_) if source.lines.nameless.is_some() && source.lines.offsets.is_empty() => {}
        FileText::Missing(why) | FileText::Instructions(_, why) => said.push(why.clone()),
        FileText::Lines(_, caution) => said.extend(caution.map(str::to_owned)),
    }
    let unknown = source.lines.unknown.total.samples;
    if unknown > 0 && !source.lines.lines.is_empty() && !source.has_instructions() {
        said.push(format!("{unknown} of {} samples have no line", source.whole().samples));
    }
    said
}

/// `Source ─ inner ─ spin.c ─ 24.0% of all, 265 of 1108 samples`.
fn title(page: &ScreenPage<'_>, source: &SourceState, room: usize) -> Line<'static> {
    let mut parts = vec![(Role::Title, if source.has_instructions() { "Instructions" } else { "Source" }.to_owned())];
    if let Some(profile) = &page.model.profile {
        let name = &profile.calls.label(source.function).name;
        parts.push((Role::Text, crate::tui::text::cut_middle(name, room / 3).into_owned()));
        // Of one look: the profile's own numbers may be older.
        let (whole, all) = (source.whole(), source.lines.of_all);
        let of_all = share(whole.weight as f64 / all.weight.max(1) as f64);
        // Of waits time is known, however many samples that is.
        let samples = || format!(", {} of {} samples", whole.samples, all.samples);
        let samples = if profile.is_off_cpu() { String::new() } else { samples() };
        parts.push((Role::Dim, format!("{of_all} of all{samples}")));
    }
    if let Some(file) = &source.lines.file {
        let short = file.rsplit('/').next().unwrap_or(file);
        parts.insert(2.min(parts.len()), (Role::Text, shown(short).into_owned()));
    }
    let mut line = Line::default();
    for (place, (role, text)) in parts.into_iter().enumerate() {
        if place > 0 {
            line.push_span(page.span(Role::Border, " ─ "));
        }
        line.push_span(page.span(role, text));
    }
    line
}

fn draw_heads(page: &mut ScreenPage<'_>, row: Rect, source: &SourceState, columns: SourceColumns) {
    let interval = format!("{} CI", page.model.monitor.confidence());
    let mut text = "  ".to_owned();
    for head in ["SELF", "TOTAL"].iter().take(if columns.total { 2 } else { 1 }) {
        text += &format!("{} ", right(head, SHARE));
        if columns.intervals {
            text += &format!("{} ", right(&interval, INTERVAL));
        }
    }
    let number = if source.has_instructions() { "ADDRESS" } else { "LINE" };
    let shares = if source.has_text() { "  SHARES OF THE FUNCTION" } else { "" };
    let inlined = if source.has_inlined() { ", i: INLINED, part of where it is called" } else { "" };
    text += &format!("{}{shares}{inlined}", right(number, columns.number));
    page.line(row, Line::from(page.span(Role::Header, cut(&text, usize::from(row.width)).into_owned())));
}

fn draw_row(page: &mut ScreenPage<'_>, row: Rect, source: &SourceState, index: usize, columns: SourceColumns) {
    let Some(&line) = source.rows.get(index) else { return };
    let samples = source.samples(line);
    let is_selected = index == source.row;
    let mut spans = vec![page.span(Role::Key, if is_selected { CURSOR } else { " " })];
    let is_inlined = source.is_inlined(line);
    spans.push(page.span(Role::Dim, if is_inlined { "i" } else { " " }));
    for amount in [samples.own, samples.total].into_iter().take(if columns.total { 2 } else { 1 }) {
        let (number, between) = numbers(page, source, amount);
        let role = match part(source, amount) >= HOT {
            _ if is_inlined => Role::Dim,
            true => Role::Match,
            false => Role::Text,
        };
        spans.push(page.span(role, format!("{} ", right(&number, SHARE))));
        if columns.intervals {
            spans.push(page.span(Role::Dim, format!("{} ", right(&between, INTERVAL))));
        }
    }
    spans.push(page.span(Role::Dim, format!("{}  ", right(&source.number(line), columns.number))));
    let room = usize::from(row.width).saturating_sub(columns.width());
    let text = from_cell(source.text(line).unwrap_or_default(), source.scrolled);
    let role = if samples.total == Amount::ZERO { Role::Dim } else { Role::Text };
    spans.push(page.span(role, cut(&text, room).into_owned()));
    page.line(row, Line::from(spans));
    if is_selected {
        page.select(row);
    }
}

/// The part of the function's samples that an amount is.
fn part(source: &SourceState, amount: Amount) -> f64 {
    amount.weight as f64 / source.whole().weight.max(1) as f64
}

/// `12.0%` and `11.1–13.0`; nothing where nothing was sampled.
fn numbers(page: &ScreenPage<'_>, source: &SourceState, amount: Amount) -> (String, String) {
    if amount == Amount::ZERO {
        return (String::new(), String::new());
    }
    let (part, whole) = (part(source, amount), source.whole());
    let confidence = page.model.monitor.confidence();
    let error = match amount == whole {
        true => Error::Exact,
        false => {
            page.model.profile.as_ref().map_or(Error::Unknown, |profile| profile.share_error(part, whole, confidence))
        }
    };
    (share(part), interval(part, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_for_the_text() {
        for room in 0..200 {
            let columns = SourceColumns::of(room, NUMBER);
            assert!(columns.width() + LEAST_TEXT <= room || !columns.total && !columns.intervals);
        }
        assert_eq!(SourceColumns::of(76, NUMBER), SourceColumns { total: true, intervals: true, number: NUMBER });
    }
}
