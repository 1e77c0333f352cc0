//! Draws what the threads of the target did in the last interval, or in the range that is shown.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::events;
use super::page::ScreenPage;
use crate::monitor::ThreadUses;
use crate::names::shown;
use crate::number::{memory, time};
use crate::run::MeasuredTarget;
use crate::threads::CommandWords;
use crate::tui::layout::{rows_of_list, split_below};
use crate::tui::model::{ClickTarget, DrawnThreads, ThreadCells, ThreadColumn, VisibleRows};
use crate::tui::screen::Screen;
use crate::tui::symbols::LEVELS;
use crate::tui::text::{cut, width, wrap};
use crate::tui::theme::Role;

mod columns;
mod rows;

use columns::{LEAST_OTHERS, ThreadColumns, cells, heads, of_machine};
use rows::thread_line;

/// Rows of the panel from which on its last one says what the columns are.
const LEAST_WITH_LEGEND: u16 = 10;

/// Rows of the list below the events from which on one says what has ended.
const LEAST_WITH_OTHERS: u16 = 6;
/// Names of processes that have ended: those with so many CPUs.
const LEAST_ENDED: f64 = 0.005;
/// Rows of the list below the events without which it isn't there, with its frame and its head.
pub(super) const LEAST_BELOW: u16 = 4;

/// Rows of a panel with all threads, and with what is said above them; 0 where there are none.
pub(super) fn rows(page: &ScreenPage<'_>, uses: Option<&ThreadUses<'_>>) -> u16 {
    let Some(uses) = uses else {
        let is_read = page.model.listed_threads() > 0;
        return if is_read { LEAST_BELOW } else { 0 };
    };
    let has_others = uses.others >= LEAST_OTHERS || page.model.thread_list.cells.has_others;
    rows_of_list(uses.threads.len().max(1) + usize::from(has_others) + usize::from(has_machine(uses)))
}

/// The table of events, and so many rows of the busiest threads below it, where there is room for some.
pub(super) fn below_events(page: &ScreenPage<'_>, area: Rect, rows: u16) -> (Rect, Rect) {
    let free = events::free_rows(page, area);
    if free < LEAST_BELOW || rows < LEAST_BELOW {
        return (area, Rect::default());
    }
    split_below(area, free.min(rows))
}

/// Draws the busiest threads in a part of a screen; a click leads to all of them.
pub(super) fn draw_busiest(page: &mut ScreenPage<'_>, area: Rect, uses: Option<&ThreadUses<'_>>) {
    if area.is_empty() {
        return;
    }
    let Some(uses) = uses else { return draw_nothing(page, area, false) };
    let cells = cells(page, uses);
    let machine = Some(uses).filter(|uses| has_machine(uses) && area.height >= LEAST_WITH_LEGEND);
    // In few rows what has ended stands only if it used more than each that lives.
    let is_most = || uses.others >= LEAST_OTHERS && uses.threads.iter().all(|thread| thread.cpu <= uses.others);
    let others = others(uses, page, &cells).filter(|_| area.height >= LEAST_WITH_OTHERS || is_most());
    let above = 1 + usize::from(machine.is_some()) + usize::from(others.is_some());
    let rows = VisibleRows::in_panel(area, above, uses.threads.len());
    let inner = page.list(area, title(page, uses), (rows, all(page, uses)), Some(Screen::Threads.name()));
    page.target(area, ClickTarget::Screen(Screen::Threads));
    let columns = ThreadColumns::of(usize::from(inner.width), &cells, of_machine(page));
    page.drawn.threads = Some(DrawnThreads { columns: Vec::new(), cursor: None, cells });
    let mut lines = inner.rows();
    if let Some(row) = lines.next() {
        page.line(row, heads(page, &columns));
    }
    draw_above(page, &mut lines, machine, others);
    draw_no_match(page, &mut lines, uses, "");
    for (thread, row) in uses.threads.iter().zip(lines) {
        page.line(row, thread_line(page, thread, false, &columns));
    }
}

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let Some(uses) = page.model.threads() else { return draw_nothing(page, area, true) };
    let selected = page.model.selected_thread(&uses.threads);
    let has_legend = area.height >= LEAST_WITH_LEGEND;
    let machine = Some(&uses).filter(|uses| has_machine(uses) && has_legend);
    let cells = cells(page, &uses);
    let others = others(&uses, page, &cells).filter(|_| has_legend);
    let fixed = 1 + usize::from(has_legend) + usize::from(machine.is_some()) + usize::from(others.is_some());
    let rows = page.scrolled_in_panel(Screen::Threads, (area, fixed), (selected, uses.threads.len()));
    let inner = page.list(area, title(page, &uses), (rows, all(page, &uses)), None);
    let columns = ThreadColumns::of(usize::from(inner.width), &cells, of_machine(page));
    let sorts: Vec<_> =
        std::iter::once(ThreadColumn::Name).chain(columns.shown.iter().map(|(column, ..)| *column)).collect();
    let mut lines = inner.rows();
    if let Some(row) = lines.next() {
        page.heads(row, heads(page, &columns), sorts.iter().map(|column| Some(ClickTarget::SortThreads(*column))));
    }
    let cursor = uses.threads.get(selected).map(|thread| (selected, thread.thread.tid));
    page.drawn.threads = Some(DrawnThreads { columns: sorts, cursor, cells });
    draw_above(page, &mut lines, machine, others);
    draw_no_match(page, &mut lines, &uses, "; Esc clears it");
    for ((place, thread), row) in uses.threads.iter().enumerate().skip(rows.first).take(rows.rows).zip(&mut lines) {
        page.line(row, thread_line(page, thread, place == selected, &columns));
        page.target(row, ClickTarget::Thread(thread.thread.tid));
        if place == selected {
            page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
        }
    }
    if has_legend {
        let free = rows.rows.saturating_sub(uses.threads.len());
        draw_legend(page, inner, free, &columns.legend(&uses.threads));
    }
}

/// What the columns mean, in the last row, and in those before it that the threads leave.
fn draw_legend(page: &mut ScreenPage<'_>, inner: Rect, free: usize, legend: &str) {
    let lines = wrap(legend, usize::from(inner.width));
    let lines = if lines.len() > free + 1 { vec![legend.to_owned()] } else { lines };
    let (_, below) = split_below(inner, lines.len() as u16);
    for (words, row) in lines.into_iter().zip(below.rows()) {
        page.line(row, fitted(page, &words, inner));
    }
}

/// What stands above the threads: how busy the machine is, and what is in no row.
fn draw_above(
    page: &mut ScreenPage<'_>,
    lines: &mut impl Iterator<Item = Rect>,
    machine: Option<&ThreadUses<'_>>,
    others: Option<String>,
) {
    if let Some(uses) = machine
        && let Some(row) = lines.next()
    {
        page.line(row, machine_line(page, uses, usize::from(row.width)));
    }
    if let Some(others) = others
        && let Some(row) = lines.next()
    {
        page.line(row, fitted(page, &others, row));
    }
}

/// Says that the filter leaves nothing, if it does.
fn draw_no_match(
    page: &mut ScreenPage<'_>,
    lines: &mut impl Iterator<Item = Rect>,
    uses: &ThreadUses<'_>,
    how_to_clear: &str,
) {
    if uses.threads.is_empty()
        && let Some(row) = lines.next()
    {
        let noun = if of_machine(page) { "process" } else { "thread" };
        page.line(row, fitted(page, &format!("  no {noun} matches the filter{how_to_clear}"), row));
    }
}

/// Whether something is known of the machine's CPUs or memory that no row of a process says.
fn has_machine(uses: &ThreadUses<'_>) -> bool {
    uses.busy.len() > 1 || uses.resources.is_some()
}

/// The part of a row that the bars of CPUs have at least, if there are so many.
const LEAST_BARS: f64 = 0.3;

/// `  CPUs ▇▁▁▂  busiest: 0 at 97%  memory 3.1G of 7.8G  load 2.31`: a bar for each CPU, as far as there is room.
fn machine_line(page: &ScreenPage<'_>, uses: &ThreadUses<'_>, room: usize) -> Line<'static> {
    let mut line = Line::from(page.span(Role::Dim, "  CPUs "));
    let busiest = uses.busy.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let mut words = match busiest {
        Some((cpu, part)) if uses.busy.len() > 1 => format!("  busiest: {cpu} at {:.0}%", 100.0 * part),
        _ => String::new(),
    };
    let least_bars = uses.busy.len().min((LEAST_BARS * room as f64) as usize);
    for part in resource_words(uses) {
        if line.width() + least_bars + width(&words) + width(&part) + 2 <= room {
            words += &format!("  {part}");
        }
    }
    let bars = room.saturating_sub(line.width() + width(&words));
    line.extend(uses.busy.iter().take(bars).map(|(_, part)| {
        let step = (part * LEVELS.len() as f64).ceil().clamp(1.0, LEVELS.len() as f64) as usize - 1;
        Span::styled(LEVELS[step], page.theme().height(*part))
    }));
    line.push_span(page.span(Role::Dim, words));
    line
}

/// What is said of the machine's memory, load and disks; what matters most comes first.
fn resource_words(uses: &ThreadUses<'_>) -> Vec<String> {
    let Some(of) = uses.resources else { return Vec::new() };
    let mut words = vec![format!("memory {} of {}", memory(of.memory_used), memory(of.memory))];
    if of.swap_used > 0 {
        words.push(format!("swap {}", memory(of.swap_used)));
    }
    words.push(format!("load {:.2}", of.load));
    if let Some(disk) = uses.disk {
        let [read, written] = [disk.read, disk.written].map(|rate| memory(rate as u64));
        words.push(format!("disk {read}B/s read, {written}B/s written"));
    }
    words
}

/// Dim words, cut to the width of an area.
fn fitted(page: &ScreenPage<'_>, words: &str, area: Rect) -> Line<'static> {
    Line::from(page.span(Role::Dim, cut(words, usize::from(area.width)).into_owned()))
}

fn title(page: &ScreenPage<'_>, uses: &ThreadUses<'_>) -> Line<'static> {
    let what = if of_machine(page) { "Processes" } else { "Threads" };
    let filter = &page.model.thread_list.filter;
    let parts = [(Role::Title, what.to_owned()), (Role::Border, " ─ ".into()), (Role::Dim, summary(page, uses))];
    let mut line = Line::from_iter(parts.map(|(role, text)| page.span(role, text)));
    if !filter.is_empty() {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(Role::Match, format!("filter: {}", shown(filter.text()))));
    }
    line
}

/// `4 on 1.98 CPUs in 1.0 s`, and what is in no row.
fn summary(page: &ScreenPage<'_>, uses: &ThreadUses<'_>) -> String {
    let all = all(page, uses);
    let whole = if page.model.shows_threads_of_run() { ", all of the run" } else { "" };
    let left_out = if uses.left_out > 0 { format!(", {} not read", uses.left_out) } else { String::new() };
    let when = other_time(page, uses).unwrap_or_default();
    format!("{all} on {:.2} CPUs in {:.1} s{whole}{when}{left_out}", uses.cpus, uses.seconds)
}

/// Seconds by which the time of threads may end before or behind that of the rest of the screen without a word.
const SAME_TIME: f64 = 0.1;

/// `, read from 0.2 s to 1.0 s` in a replay: recordings keep threads once a second, so that their time may be another
/// than that of the other numbers.
fn other_time(page: &ScreenPage<'_>, uses: &ThreadUses<'_>) -> Option<String> {
    let model = page.model;
    let read = model.monitor.threads_read_at().filter(|_| model.playback.is_some() && !model.shows_threads_of_run())?;
    let (read, shown) = (read.as_secs(), model.monitor.closed_at().as_secs());
    let is_other = (read - shown).abs() > SAME_TIME;
    is_other.then(|| format!(", read from {:.1} s to {read:.1} s", (read - uses.seconds).max(0.0)))
}

/// How many threads there are, whatever the filter is.
fn all(page: &ScreenPage<'_>, uses: &ThreadUses<'_>) -> usize {
    match page.model.thread_list.filter.is_empty() {
        true => uses.threads.len(),
        false => page.model.listed_threads(),
    }
}

/// What is in no row: what has ended, with who started it, and what there was no room for. The line stays once it was
/// there.
fn others(uses: &ThreadUses<'_>, page: &ScreenPage<'_>, cells: &ThreadCells) -> Option<String> {
    let words = uses.others_words(of_machine(page));
    if uses.others < LEAST_OTHERS {
        return cells.has_others.then(|| format!("  {words}: under {:.0}%", 100.0 * LEAST_OTHERS));
    }
    let of = uses
        .starter
        .map_or_else(String::new, |starter| format!(", mostly of {} {}", CommandWords::of(starter).name, starter.tid));
    Some(format!("  {words}: {:.1}%{of}{}", 100.0 * uses.others, uses.ended_words(LEAST_ENDED, usize::MAX)))
}

fn draw_nothing(page: &mut ScreenPage<'_>, area: Rect, focus: bool) {
    let title = Line::from(page.span(Role::Title, "Threads"));
    let inner = page.panel(area, title, Line::default(), focus);
    let monitor = &page.model.monitor;
    let noun = if of_machine(page) { "processes" } else { "threads" };
    let words = if monitor.header().modelled.is_some() {
        "a model runs the command: its threads are valgrind's"
    } else if monitor.ended().is_some() && monitor.newest_threads() > 0 {
        "the run ended before its threads were read twice"
    } else if page.model.playback.is_some() {
        match page.model.shown_range() {
            Some(_) => "threads were read less than twice in this range: choose a longer one",
            None if monitor.ended().is_some() => "this recording has no threads",
            None => "no threads were recorded until this time",
        }
    } else {
        match (&monitor.header().target, monitor.ended()) {
            (MeasuredTarget::Everyone { cpus: Some(_) }, _) => "processes of single CPUs aren't read",
            (MeasuredTarget::Cgroup { .. }, _) => "threads of a control group aren't read",
            (_, Some(end)) => &format!("it ended after {}, before its {noun} were read", time(end.at_ns.0 as f64)),
            (_, None) => &format!("reading {noun}…"),
        }
    };
    page.line(inner, Line::from(page.span(Role::Dim, cut(words, usize::from(inner.width)).into_owned())));
}
