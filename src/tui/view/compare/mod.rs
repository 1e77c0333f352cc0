//! Draws the events of two sets of recordings side by side, and the runs and histories of the selected one.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::{ScreenPage, fit_beside, framed, make_room, rows_in_panel};
use super::profile;
use crate::compare::{ComparedEvent, RunComparison};
use crate::monitor::{Measure, MeasureChoice};
use crate::names::shown;
use crate::tui::figures::ShownValues;
use crate::tui::keys::keys_in;
use crate::tui::layout::{split_below, split_right};
use crate::tui::model::profile::ProfileState;
use crate::tui::model::{ClickTarget, CompareColumn, ScrolledList, VisibleRows};
use crate::tui::screen::Screen;
use crate::tui::text::{cut, cut_middle, width};
use crate::tui::theme::Role;

mod columns;
mod histories;
mod rows;

use columns::{ComparedColumns, EventLines, draw_heads};
use histories::{HistoriesTitle, draw_histories, legend};
use rows::{event_lines, is_told_of_all, mean, sentence};

/// Cells of a recording's name in the title, at least.
const LEAST_FILE: usize = 8;

/// Cells of the border that the two titles leave free: corners, blanks and the line between them.
const AROUND: usize = 8;

/// Rows of the histories below the table, at least.
const LEAST_HISTORIES: u16 = 8;

/// Cells from which on functions stand beside the histories.
const LEAST_BOTH: u16 = 110;

/// What is said of sides that were not recorded alternately.
const ONE_AFTER_OTHER: &str = "all of one side ran first: a drift looks like a difference";

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let list = &page.model.comparison;
    // Frame, heads, what has to be known, and two lines for each event.
    let frame = 3 + notes(&list.found).count();
    let wanted = u16::try_from(frame + 2 * list.order.len()).unwrap_or(u16::MAX);
    let below = match area.height.saturating_sub(wanted) {
        free @ LEAST_HISTORIES.. => free,
        _ if area.height >= 30 => area.height * 2 / 5,
        _ => 0,
    };
    let (table, below) = split_below(area, below);
    draw_table(page, table);
    let functions = functions_below(page, below);
    match functions {
        Some(profile) => draw_both(page, below, profile),
        None if below.height > 0 => draw_histories(page, below, HistoriesTitle::Verdict),
        None => {}
    }
    if functions.is_some() || below.height == 0 || page.model.comparison.found.is_one_after_other {
        draw_foot(page, table);
    }
}

/// The functions of both sides, where these were sampled and there is room for them below the table.
fn functions_below<'a>(page: &ScreenPage<'a>, below: Rect) -> Option<&'a ProfileState> {
    let profile = page.model.profile.as_ref().filter(|profile| profile.has_difference());
    profile.filter(|profile| below.height > 0 && below.width >= LEAST_BOTH && !profile.functions.rows.is_empty())
}

/// The histories of the selected event, where it has any, and the functions beside them.
fn draw_both(page: &mut ScreenPage<'_>, area: Rect, profile: &ProfileState) {
    let selected = page.model.comparison.selected();
    let has_history = selected.is_some_and(|one| one.a.index.or(one.b.index).is_some());
    let (histories, functions) = split_right(area, if has_history { area.width / 2 } else { area.width });
    if has_history {
        draw_histories(page, histories, HistoriesTitle::Event);
    }
    profile::draw_apart(page, functions, profile);
}

fn draw_table(page: &mut ScreenPage<'_>, area: Rect) {
    let list = &page.model.comparison;
    let height = area.height.saturating_sub(2);
    let has_heads = height >= 3;
    let lines = EventLines::of(area);
    let notes: Vec<_> = notes(&list.found).take(usize::from(height.saturating_sub(4))).collect();
    let selected = list.order.iter().position(|&place| place == list.selected).unwrap_or(0);
    let above = usize::from(has_heads) + notes.len();
    let rows = rows_in_panel(area, above) / lines.rows();
    let on_screen = page.scrolled(ScrolledList::Of(Screen::Compare), rows, (selected, list.order.len()));
    let count = count(page, on_screen, area);
    let mut title = title(page, usize::from(area.width), count.width());
    if !on_screen.is_whole() {
        make_room(&mut title, &count, area);
    }
    let inner = page.panel(area, title, count, true);
    let events = &list.found.events;
    let longest = |cells: &dyn Fn(&ComparedEvent) -> usize| events.iter().map(cells).max().unwrap_or(5);
    let room = usize::from(inner.width).saturating_sub(2);
    let longest_name = longest(&|one| width(&shown(&one.name)));
    let longest_mean = longest(&|one| width(&mean(one, &one.a)).max(width(&mean(one, &one.b)))).clamp(7, 14);
    let columns = ComparedColumns::of(room, longest_name, longest_mean, (lines, list.found.has_spread()));
    let mut rows = inner.rows().peekable();
    if let Some(row) = rows.next_if(|_| has_heads) {
        draw_heads(page, row, columns);
    }
    if list.order.is_empty() {
        if let Some(row) = rows.next() {
            page.line(row, Line::from(page.span(Role::Dim, "  no event matches the filter; Esc clears it")));
        }
        return;
    }
    for (words, row) in notes.iter().zip(rows.by_ref()) {
        let text = format!("  {}", cut(&shown(words), room));
        page.line(row, Line::from(page.span(Role::Warn, text)));
    }
    for &place in list.order.iter().skip(on_screen.first).take(on_screen.rows) {
        let is_selected = place == list.selected;
        for line in event_lines(page, &events[place], columns, lines, is_selected) {
            let Some(row) = rows.next() else { return };
            page.line(row, line);
            page.target(row, ClickTarget::Compared(place));
            if is_selected {
                page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
            }
        }
    }
}

/// What has to be known before any number is: why nothing has a verdict, that there are several programs, and what took
/// the totals.
fn notes(found: &RunComparison) -> impl Iterator<Item = String> {
    found.what_it_takes().into_iter().chain(found.different_programs()).chain(found.why_rates())
}

/// `beside`: cells of what stands at the right of it.
fn title(page: &ScreenPage<'_>, room: usize, beside: usize) -> Line<'static> {
    let model = page.model;
    let mut line = Line::from(page.span(Role::Title, "Compare"));
    // A filter and what it leaves must be seen.
    if let Some(others) = model.others.as_ref().filter(|_| model.comparison.filter.is_empty()) {
        let more = others.names().map(|(_, more)| if more == 0 { String::new() } else { format!(" +{more}") });
        let taken = beside + width("Compare ─ A   B ") + more.iter().map(String::len).sum::<usize>() + AROUND;
        let most = (room / 5).clamp(14, 40).min(room.saturating_sub(taken) / 2).max(LEAST_FILE);
        for (place, (letter, (name, _))) in ["A", "B"].into_iter().zip(others.names()).enumerate() {
            line.push_span(page.span(Role::Border, if letter == "A" { " ─ " } else { "  " }));
            line.push_span(page.span(Role::Key, format!("{letter} ")));
            let text = format!("{}{}", cut_middle(&shown(name), most), more[place]);
            line.push_span(page.span(Role::Dim, text));
        }
    }
    let mut note = |role: Role, text: String| {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(role, text));
    };
    if model.measures == MeasureChoice::Every(Measure::Total) && room >= 70 {
        note(Role::Dim, "totals".into());
    }
    if model.comparison.by != CompareColumn::default() {
        note(Role::Dim, format!("by {}", model.comparison.by.word()));
    }
    if model.basis == ShownValues::Raw {
        note(Role::Dim, model.basis.word().into());
    }
    if !model.comparison.filter.is_empty() {
        note(Role::Match, format!("filter: {}", shown(model.comparison.filter.text())));
    }
    line
}

/// How many differ, and how many rows are hidden; where there is little room, only these.
fn count(page: &ScreenPage<'_>, on_screen: VisibleRows, area: Rect) -> Line<'static> {
    let list = &page.model.comparison;
    let all = list.found.events.len();
    let differ = list.found.is_enough.then(|| format!("{} of {all} differ", list.found.differing()));
    if on_screen.is_whole() && list.order.len() == all {
        return Line::from(page.span(Role::Dim, differ.unwrap_or_else(|| format!("{all} rows"))));
    }
    let role = if on_screen.is_whole() { Role::Dim } else { Role::Warn };
    let words = keys_in(page.model.options.symbols, &on_screen.words(all, None));
    let hidden = Line::from(page.span(role, words.clone()));
    let both = differ.map(|differ| Line::from(page.span(role, format!("{differ}, {words}"))));
    both.filter(|both| fit_beside(&Line::raw("Compare"), both, area)).unwrap_or(hidden)
}

/// On the lower border of the table: what is said of the selected event, and what the plots show.
fn draw_foot(page: &mut ScreenPage<'_>, table: Rect) {
    if table.height < 3 {
        return;
    }
    let found = &page.model.comparison.found;
    let is_told = |one: &ComparedEvent| EventLines::of(table) == EventLines::LineASide && is_told_of_all(found, one);
    let selected = page.model.comparison.selected().filter(|one| !is_told(one));
    let said = selected.map(|one| format!("{}: {}", shown(&one.name), sentence(found, one)));
    let said = if found.is_one_after_other { Some(ONE_AFTER_OTHER.into()) } else { said };
    let row = Rect { x: table.x + 2, y: table.bottom() - 1, width: table.width.saturating_sub(4), height: 1 };
    let legend = legend(page);
    let has_legend = EventLines::of(table) == EventLines::LineASide;
    let text = said.map_or_else(String::new, |said| format!(" {} ", cut(&said, usize::from(row.width) - 2)));
    let role = if found.is_one_after_other { Role::Warn } else { Role::Dim };
    let fits = width(&text) + legend.width() + 4 <= usize::from(row.width);
    page.line(row, Line::from(page.span(role, text)));
    if has_legend && fits {
        page.line(row, framed(legend).right_aligned());
    }
}
