//! Draws what the threads of the target did in the last interval.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::{ScreenPage, VisibleRows};
use crate::monitor::ThreadUses;
use crate::names::shown;
use crate::number::{memory, si};
use crate::run::MeasuredTarget;
use crate::threads::{ThreadUse, WaitKind};
use crate::tui::layout::split_below;
use crate::tui::model::{ClickTarget, ThreadColumn};
use crate::tui::screen::Screen;
use crate::tui::symbols::{BLOCKED, CURSOR, DOWN, MISSING, ON_CPU, READY, UP};
use crate::tui::text::{cut, left, right, width};
use crate::tui::theme::Role;

/// Cells of the columns behind the name, at least.
const COLUMNS: [(ThreadColumn, &str, usize); 9] = [
    (ThreadColumn::Tid, "TID", 7),
    (ThreadColumn::Cpu, "CPU%", 5),
    (ThreadColumn::Ready, "READY%", 6),
    (ThreadColumn::Lock, "FUTEX%", 6),
    (ThreadColumn::Disk, "DISK%", 5),
    (ThreadColumn::Sleep, "SLEEP%", 6),
    (ThreadColumn::Memory, "MEMORY", 6),
    (ThreadColumn::Faults, "FAULT/s", 7),
    (ThreadColumn::Switches, "SWITCH/s", 8),
];
/// Cells of the name, and from how many on it is said where a thread waits.
const NAME: (usize, usize) = (8, 32);
const LEAST_WITHIN: usize = 16;
/// Head of the bar of a thread's time, which is as wide, and what of it has which role.
const BAR: [(Role, &str); 3] = [(Role::Text, "ON CPU "), (Role::Warn, "READY "), (Role::Dim, "BLOCKED")];
const BAR_CELLS: usize = 20;
/// Rows of the panel from which on its last one says what the columns are.
const LEAST_WITH_LEGEND: u16 = 10;

/// Rows of the list below the events without which it isn't there, with its frame and its head.
const LEAST_BELOW: u16 = 5;

/// The table of events, and the busiest threads below it, where there is room for some.
pub(super) fn below_events(page: &ScreenPage<'_>, area: Rect) -> (Rect, Rect) {
    let model = page.model;
    let table = u16::try_from(model.events.order.len()).unwrap_or(u16::MAX).saturating_add(3);
    let free = area.height.saturating_sub(table);
    let threads = model.monitor.newest_threads();
    if free < LEAST_BELOW || threads == 0 {
        return (area, Rect::default());
    }
    split_below(area, free.min(u16::try_from(threads).unwrap_or(u16::MAX).saturating_add(3)))
}

/// Draws the busiest threads in a part of a screen; a click leads to all of them.
pub(super) fn draw_busiest(page: &mut ScreenPage<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let Some(uses) = page.model.threads() else { return draw_nothing(page, area, false) };
    let rows = VisibleRows::in_panel(area, 1, 0, uses.threads.len());
    let inner = page.list(area, title(page, &uses), (rows, uses.threads.len()), Some(Screen::Threads.name()));
    page.target(area, ClickTarget::Screen(Screen::Threads));
    let columns = ThreadColumns::of(usize::from(inner.width), &uses.threads, page.model.thread_list.by);
    let mut lines = inner.rows();
    if let Some(row) = lines.next() {
        page.line(row, heads(page, &columns));
    }
    for (thread, row) in uses.threads.iter().zip(lines) {
        page.line(row, thread_line(page, thread, false, &columns));
    }
}

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let Some(uses) = page.model.threads() else { return draw_nothing(page, area, true) };
    let selected = page.model.selected_thread(&uses.threads);
    let has_legend = area.height >= LEAST_WITH_LEGEND;
    let others = others(&uses).filter(|_| has_legend);
    let fixed = 1 + usize::from(has_legend) + usize::from(others.is_some());
    let rows = VisibleRows::in_panel(area, fixed, selected, uses.threads.len());
    let inner = page.list(area, title(page, &uses), (rows, uses.threads.len()), None);
    let columns = ThreadColumns::of(usize::from(inner.width), &uses.threads, page.model.thread_list.by);
    let room = usize::from(inner.width);
    let mut lines = inner.rows();
    if let Some(row) = lines.next() {
        let sorts = columns.shown.iter().map(|(column, ..)| *column);
        let sorts =
            std::iter::once(ThreadColumn::Name).chain(sorts).map(|column| Some(ClickTarget::SortThreads(column)));
        page.heads(row, heads(page, &columns), sorts);
    }
    for ((place, thread), row) in uses.threads.iter().enumerate().skip(rows.first).take(rows.rows).zip(&mut lines) {
        page.line(row, thread_line(page, thread, place == selected, &columns));
        page.target(row, ClickTarget::Thread(thread.thread.tid));
        if place == selected {
            page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
        }
    }
    let dim = |page: &ScreenPage<'_>, text: &str| Line::from(page.span(Role::Dim, cut(text, room).into_owned()));
    if let (Some(others), Some(row)) = (others, lines.next()) {
        page.line(row, dim(page, &others));
    }
    if has_legend {
        let last = Rect { y: inner.bottom().saturating_sub(1), height: inner.height.min(1), ..inner };
        page.line(last, dim(page, &columns.legend(&uses.threads)));
    }
}

/// Whether it is a machine, which is read by process.
fn of_machine(page: &ScreenPage<'_>) -> bool {
    matches!(page.model.monitor.header().target, MeasuredTarget::Everyone { .. })
}

fn title(page: &ScreenPage<'_>, uses: &ThreadUses<'_>) -> Line<'static> {
    let what = if of_machine(page) { "Processes" } else { "Threads" };
    let parts = [(Role::Title, what.to_owned()), (Role::Border, " ─ ".into()), (Role::Dim, summary(uses))];
    Line::from_iter(parts.map(|(role, text)| page.span(role, text)))
}

/// `4 on 1.98 CPUs in 1.0 s`, and what is in no row.
fn summary(uses: &ThreadUses<'_>) -> String {
    let left_out = if uses.left_out > 0 { format!(", {} more are not read", uses.left_out) } else { String::new() };
    let others = uses.others();
    let others =
        if others >= LEAST_OTHERS { format!(", {others:.2} of them used by what has ended") } else { String::new() };
    format!("{} on {:.2} CPUs in {:.1} s{others}{left_out}", uses.threads.len(), uses.cpus, uses.seconds)
}

/// CPUs from which on it is said that others used them: below, it is how times are rounded.
const LEAST_OTHERS: f64 = 0.05;

/// What is in no row: what has ended, and what there was no room for.
fn others(uses: &ThreadUses<'_>) -> Option<String> {
    let others = uses.others();
    let words = if uses.left_out > 0 { "those that are not read, and what has ended" } else { "what has ended since" };
    (others >= LEAST_OTHERS).then(|| format!("  others: {:.1}% of a CPU: {words}", 100.0 * others))
}

fn draw_nothing(page: &mut ScreenPage<'_>, area: Rect, focus: bool) {
    let title = Line::from(page.span(Role::Title, "Threads"));
    let inner = page.panel(area, title, Line::default(), focus);
    let monitor = &page.model.monitor;
    let words = if monitor.header().modelled.is_some() {
        "a model runs the command: its threads are valgrind's"
    } else if monitor.ended().is_some() && monitor.newest_threads() > 0 {
        "the run ended before its threads were read twice"
    } else if page.model.playback.is_some() {
        match page.model.shown_range() {
            Some(_) => "threads were read less than twice in this range: choose a longer one",
            None => "the recording has no threads until here",
        }
    } else {
        "threads are read once an interval; those of a control group and of single CPUs aren't"
    };
    page.line(inner, Line::from(page.span(Role::Dim, cut(words, usize::from(inner.width)).into_owned())));
}

/// Widths; 0 for a column that has left.
struct ThreadColumns {
    name: usize,
    shown: Vec<(ThreadColumn, &'static str, usize)>,
    has_bar: bool,
    within: usize,
}

impl ThreadColumns {
    /// What nothing is known of isn't there. Rates leave first, then memory, then sleep.
    fn of(room: usize, threads: &[ThreadUse<'_>], sorted_by: ThreadColumn) -> Self {
        let longest = threads.iter().map(|thread| width(&shown(&thread.thread.name))).max().unwrap_or(0);
        let name = longest.clamp(NAME.0, NAME.1);
        let is_known = |column: ThreadColumn| {
            let has = |thread: &ThreadUse<'_>| column.part(thread).is_some() || column.rate(thread).is_some();
            matches!(column, ThreadColumn::Tid | ThreadColumn::Memory) || threads.iter().any(has)
        };
        let cells = |(column, head, least): (ThreadColumn, &'static str, usize)| {
            let longest = threads.iter().map(|thread| width(&cell(column, thread).1)).max().unwrap_or(0);
            let arrow = usize::from(column == sorted_by);
            (column, head, least.max(longest).max(width(head) + arrow))
        };
        let known = COLUMNS.into_iter().filter(|(column, ..)| is_known(*column));
        let mut all: Vec<_> = known.map(cells).collect();
        let used = |all: &[(ThreadColumn, &str, usize)]| 2 + all.iter().map(|(_, _, width)| width + 1).sum::<usize>();
        while used(&all) + name > room && all.len() > 2 {
            all.pop();
        }
        let name = name.min(room.saturating_sub(used(&all)));
        let rest = room.saturating_sub(used(&all) + name + 2);
        let has_bar = rest >= LEAST_WITHIN + BAR_CELLS + 2;
        let rest = if has_bar { rest - BAR_CELLS - 2 } else { rest };
        Self { name, shown: all, has_bar, within: if rest >= LEAST_WITHIN { rest } else { 0 } }
    }

    /// What the columns mean that are there, and why some have no number: of a machine's processes, those with one thread
    /// are checked.
    fn legend(&self, threads: &[ThreadUse<'_>]) -> String {
        let has = |column: ThreadColumn| self.shown.iter().any(|(shown, ..)| *shown == column);
        let mut words = Vec::new();
        if has(ThreadColumn::Ready) {
            words.push("READY%: no CPU free.".to_owned());
        }
        let waits = [(ThreadColumn::Lock, "FUTEX%"), (ThreadColumn::Disk, "DISK%"), (ThreadColumn::Sleep, "SLEEP%")];
        let waits: Vec<_> = waits.into_iter().filter(|(column, _)| has(*column)).map(|(_, head)| head).collect();
        let checks = || threads.iter().map(|thread| thread.waited(WaitKind::Lock).1);
        if let (Some(checks), false) = (checks().max().filter(|checks| *checks > 0), waits.is_empty()) {
            words.push(format!("{}: {}", waits.join(", "), of_checks(checks)));
            if threads.iter().any(|thread| thread.waited(WaitKind::Lock).1 == 0) {
                words.push(format!("{MISSING}: several threads"));
            }
        }
        words.join("  ")
    }
}

/// Of what a column is a share, and the widest 95 % interval of that.
fn of_checks(checks: u32) -> String {
    match checks {
        1 => "from 1 check".into(),
        _ => format!("share of {checks} checks, ±{:.0} points", 98.0 / f64::from(checks).sqrt()),
    }
}

fn heads(page: &ScreenPage<'_>, columns: &ThreadColumns) -> Line<'static> {
    let list = &page.model.thread_list;
    let arrow = if list.is_ascending() { UP } else { DOWN };
    let head = |column: ThreadColumn, title: &str, width: usize| match column == list.by {
        true => page.span(Role::Key, right(&format!("{title}{arrow}"), width + 1)),
        false => page.span(Role::Header, right(title, width + 1)),
    };
    let (who, id) = if of_machine(page) { ("PROCESS", "PID") } else { ("THREAD", "TID") };
    let by_name = list.by == ThreadColumn::Name;
    let name = left(&format!("{who}{}", if by_name { arrow } else { "" }), columns.name);
    let mut line = Line::from(page.span(if by_name { Role::Key } else { Role::Header }, format!("  {name}")));
    for (column, title, width) in &columns.shown {
        let title = if *column == ThreadColumn::Tid { id } else { title };
        line.push_span(head(*column, title, *width));
    }
    if columns.has_bar {
        line.push_span(page.span(Role::Text, "  "));
        line.extend(BAR.map(|(role, words)| page.span(role, words)));
    }
    if columns.within > 0 {
        line.push_span(page.span(Role::Header, "  WAITS MOST IN"));
    }
    line
}

fn thread_line(
    page: &ScreenPage<'_>,
    thread: &ThreadUse<'_>,
    is_selected: bool,
    columns: &ThreadColumns,
) -> Line<'static> {
    let cursor = if is_selected { CURSOR } else { " " };
    let name = shown(&thread.thread.name).into_owned();
    let mut line = Line::from(vec![
        page.span(Role::Key, format!("{cursor} ")),
        page.span(Role::Text, left(&cut(&name, columns.name), columns.name)),
    ]);
    for (column, _, width) in &columns.shown {
        let (role, text) = cell(*column, thread);
        line.push_span(page.span(role, format!(" {}", right(&text, *width))));
    }
    if columns.has_bar {
        line.push_span(page.span(Role::Text, "  "));
        let cells = bar(thread.cpu, thread.ready(), BAR_CELLS);
        let parts = BAR.iter().zip([ON_CPU, READY, BLOCKED]).zip(cells);
        line.extend(parts.map(|(((role, _), glyph), cells)| page.span(*role, glyph.repeat(cells))));
        let said: usize = cells.iter().sum();
        line.push_span(page.span(Role::Text, " ".repeat(BAR_CELLS - said)));
    }
    if let (Some((within, part)), true) = (thread.most_within(), columns.within > 0) {
        let share = format!(" {:.0}%", 100.0 * part);
        let name = shown(within);
        let name = cut(&name, columns.within.saturating_sub(width(&share)));
        line.push_span(page.span(Role::Dim, format!("  {name}{share}")));
    }
    line
}

/// The cells of a bar for the time on a CPU, ready for one, and blocked. Where the kernel doesn't tell who was ready, what is
/// left of the time stays empty. Several threads that are read as one may have more than a CPU: they fill the bar.
fn bar(cpu: f64, ready: Option<f64>, cells: usize) -> [usize; 3] {
    let end = |part: f64| (part.clamp(0.0, 1.0) * cells as f64).round() as usize;
    let on_cpu = end(cpu);
    match ready {
        Some(ready) => [on_cpu, end(cpu + ready) - on_cpu, cells - end(cpu + ready)],
        None => [on_cpu, 0, 0],
    }
}

fn cell(column: ThreadColumn, thread: &ThreadUse<'_>) -> (Role, String) {
    match (column, column.part(thread)) {
        (ThreadColumn::Tid, _) => (Role::Dim, thread.thread.tid.to_string()),
        (ThreadColumn::Memory, _) if thread.thread.resident > 0 => (Role::Dim, memory(thread.thread.resident)),
        (ThreadColumn::Memory, _) => (Role::Dim, String::new()),
        (ThreadColumn::Faults | ThreadColumn::Switches, _) => match column.rate(thread) {
            Some(rate) if rate < 0.5 => (Role::Dim, "0".into()),
            Some(rate) => (Role::Text, si(rate)),
            None => (Role::Missing, MISSING.into()),
        },
        (_, None) => (Role::Missing, MISSING.into()),
        (_, Some(part)) if part < 0.0005 => (Role::Dim, "0".into()),
        (ThreadColumn::Cpu, Some(part)) => (Role::Text, format!("{:.1}", 100.0 * part)),
        (_, Some(part)) => (if part >= 0.1 { Role::Text } else { Role::Dim }, format!("{:.0}", 100.0 * part)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bar_has_what_a_thread_did_with_its_time() {
        assert_eq!(bar(0.5, Some(0.25), 20), [10, 5, 5]);
        assert_eq!(bar(0.5, None, 20), [10, 0, 0]);
        assert_eq!(bar(1.8, Some(0.4), 20), [20, 0, 0]);
        assert_eq!(bar(0.0, Some(0.0), 20), [0, 0, 20]);
        assert_eq!(width(&BAR.map(|(_, words)| words).concat()), BAR_CELLS);
    }

    proptest! {
        #[test]
        fn a_bar_is_full_where_all_is_known(cpu in 0.0..2.0_f64, ready in 0.0..2.0_f64, cells in 0_usize..50) {
            prop_assert_eq!(bar(cpu, Some(ready), cells).iter().sum::<usize>(), cells);
        }
    }
}
