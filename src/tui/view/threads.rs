//! Draws what the threads of the target did in the last interval, or in the range that is shown.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::events;
use super::page::ScreenPage;
use crate::monitor::ThreadUses;
use crate::names::shown;
use crate::number::{memory, si};
use crate::run::MeasuredTarget;
use crate::threads::{LEAST_LOOKS, ThreadReading, ThreadUse, WaitKind};
use crate::tui::layout::{rows_of_list, split_below};
use crate::tui::model::{ClickTarget, DrawnThreads, ThreadCells, ThreadColumn, VisibleRows, user};
use crate::tui::screen::Screen;
use crate::tui::symbols::{BLOCKED, CURSOR, DOWN, LEVELS, MISSING, ON_CPU, READY, UP};
use crate::tui::text::{cut, left, right, width};
use crate::tui::theme::Role;

/// Cells of the columns behind the name, at least.
const COLUMNS: [(ThreadColumn, &str, usize); 10] = [
    (ThreadColumn::Tid, "TID", 7),
    (ThreadColumn::User, "USER", LONGEST_USER),
    (ThreadColumn::Cpu, "CPU%", 5),
    (ThreadColumn::Ready, "READY%", 6),
    (ThreadColumn::Lock, "FUTEX%", 6),
    (ThreadColumn::Disk, "DISK%", 5),
    (ThreadColumn::Sleep, "SLEEP%", 6),
    (ThreadColumn::Memory, "MEMORY", 6),
    (ThreadColumn::Faults, "FAULT/s", 7),
    (ThreadColumn::Switches, "SWITCH/s", 8),
];
/// Cells that names of threads and command lines of processes have at least, those that they have before there are a bar and
/// where threads wait, and those of that.
const LEAST_NAME: usize = 12;
const LEAST_COMMAND: usize = 32;
const NAME_FIRST: usize = 20;
const COMMAND_FIRST: usize = 40;
/// Numbers that stand too far behind names can't be followed.
const MOST_NAME: usize = 40;
const MOST_COMMAND: usize = 72;
const LEAST_WITHIN: usize = 16;
const MOST_WITHIN: usize = 32;
/// The longest name of a user.
const LONGEST_USER: usize = 8;
/// Head of the bar of a thread's time, which is as wide, and what of it has which role.
const BAR: [(Role, &str); 3] = [(Role::Text, "ON CPU "), (Role::Warn, "READY "), (Role::Dim, "BLOCKED")];
const BAR_CELLS: usize = 20;
/// Rows of the panel from which on its last one says what the columns are.
const LEAST_WITH_LEGEND: u16 = 10;

/// Rows of the list below the events from which on one says what has ended.
const LEAST_WITH_OTHERS: u16 = 6;
/// Rows of the list below the events without which it isn't there, with its frame and its head.
pub(super) const LEAST_BELOW: u16 = 4;

/// The table of events, and the busiest threads below it, where there is room for some.
pub(super) fn below_events(page: &ScreenPage<'_>, area: Rect) -> (Rect, Rect) {
    let free = events::free_rows(page, area);
    let threads = page.model.listed_threads();
    if free < LEAST_BELOW || threads == 0 {
        return (area, Rect::default());
    }
    split_below(area, free.min(rows_of_list(threads)))
}

/// Draws the busiest threads in a part of a screen; a click leads to all of them.
pub(super) fn draw_busiest(page: &mut ScreenPage<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let Some(uses) = page.model.threads() else { return draw_nothing(page, area, false) };
    let cells = cells(page, &uses);
    let machine = Some(&uses).filter(|uses| has_machine(uses) && area.height >= LEAST_WITH_LEGEND);
    let others = others(&uses, page, &cells).filter(|_| area.height >= LEAST_WITH_OTHERS);
    let above = 1 + usize::from(machine.is_some()) + usize::from(others.is_some());
    let rows = VisibleRows::in_panel(area, above, uses.threads.len());
    let inner = page.list(area, title(page, &uses), (rows, uses.threads.len()), Some(Screen::Threads.name()));
    page.target(area, ClickTarget::Screen(Screen::Threads));
    let columns = ThreadColumns::of(usize::from(inner.width), &cells, of_machine(page));
    page.drawn.threads = Some(DrawnThreads { columns: Vec::new(), cursor: None, cells });
    let mut lines = inner.rows();
    if let Some(row) = lines.next() {
        page.line(row, heads(page, &columns));
    }
    draw_above(page, &mut lines, machine, others);
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
    let all = page.model.listed_threads();
    let inner = page.list(area, title(page, &uses), (rows, all), None);
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
    if uses.threads.is_empty()
        && let Some(row) = lines.next()
    {
        let noun = if of_machine(page) { "process" } else { "thread" };
        page.line(row, fitted(page, &format!("  no {noun} matches the filter; Esc clears it"), inner));
    }
    for ((place, thread), row) in uses.threads.iter().enumerate().skip(rows.first).take(rows.rows).zip(&mut lines) {
        page.line(row, thread_line(page, thread, place == selected, &columns));
        page.target(row, ClickTarget::Thread(thread.thread.tid));
        if place == selected {
            page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
        }
    }
    if has_legend {
        let last = Rect { y: inner.bottom().saturating_sub(1), height: inner.height.min(1), ..inner };
        page.line(last, fitted(page, &columns.legend(&uses.threads), inner));
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
        words.push(format!("disk {read}/s read, {written}/s written"));
    }
    words
}

/// Dim words, cut to the width of an area.
fn fitted(page: &ScreenPage<'_>, words: &str, area: Rect) -> Line<'static> {
    Line::from(page.span(Role::Dim, cut(words, usize::from(area.width)).into_owned()))
}

/// Whether it is a machine, which is read by process.
fn of_machine(page: &ScreenPage<'_>) -> bool {
    matches!(page.model.monitor.header().target, MeasuredTarget::Everyone { .. })
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
    let all = page.model.listed_threads();
    let whole = if page.model.shows_threads_of_run() { ", all of the run" } else { "" };
    let left_out = if uses.left_out > 0 { format!(", {} not read", uses.left_out) } else { String::new() };
    format!("{all} on {:.2} CPUs in {:.1} s{whole}{left_out}", uses.cpus, uses.seconds)
}

/// CPUs from which on it is said that others used them: below, it is how times are rounded.
const LEAST_OTHERS: f64 = 0.05;

/// What is in no row: what has ended, with who started it, and what there was no room for. The line stays once it was there.
fn others(uses: &ThreadUses<'_>, page: &ScreenPage<'_>, cells: &ThreadCells) -> Option<String> {
    if uses.others < LEAST_OTHERS {
        return cells.has_others.then(|| format!("  others: under {:.0}%", 100.0 * LEAST_OTHERS));
    }
    let left_out = if uses.left_out > 0 { format!("{} not read, and ", uses.left_out) } else { String::new() };
    let ended = if of_machine(page) { "ended processes" } else { "ended threads and children" };
    let of = uses
        .starter
        .map_or_else(String::new, |starter| format!(", mostly of {} {}", CommandWords::of(starter).name, starter.tid));
    Some(format!("  others {:.1}%: {left_out}{ended}{of}", 100.0 * uses.others))
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
        match (&monitor.header().target, of_machine(page)) {
            (MeasuredTarget::Everyone { cpus: Some(_) }, _) => "processes of single CPUs aren't read",
            (MeasuredTarget::Cgroup { .. }, _) => "threads of a control group aren't read",
            (_, true) => "reading processes…",
            _ => "reading threads…",
        }
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

/// What there is in the list now, and what there was.
fn cells(page: &ScreenPage<'_>, uses: &ThreadUses<'_>) -> ThreadCells {
    let mut cells = page.model.thread_list.cells.clone();
    let are_processes = of_machine(page);
    let threads = &uses.threads;
    let any = |is: &dyn Fn(&ThreadUse<'_>) -> bool| threads.iter().any(is);
    let is_known = |column: ThreadColumn| match column {
        ThreadColumn::User => are_processes && any(&|thread| !user(thread.thread).is_empty()),
        ThreadColumn::Ready => !are_processes && any(&|thread| thread.delay.is_some()),
        ThreadColumn::Lock | ThreadColumn::Disk | ThreadColumn::Sleep => any(&|thread| !thread.looks.is_empty()),
        ThreadColumn::Switches => any(&|thread| thread.switches.is_some()),
        _ => true,
    };
    for (column, ..) in COLUMNS {
        if is_known(column) {
            let longest = threads.iter().map(|thread| width(&cell(column, thread).1)).max();
            cells.widen(column, longest.unwrap_or(0));
        }
    }
    let within = threads.iter().filter_map(|thread| within(thread, usize::MAX)).map(|text| width(&text));
    cells.within = within.max().unwrap_or(0).max(cells.within);
    cells.has_others |= uses.others >= LEAST_OTHERS;
    cells
}

/// The columns that there are, with their heads and widths: each has room for the arrow of the order.
fn known_columns(cells: &ThreadCells, are_processes: bool) -> Vec<(ThreadColumn, &'static str, usize)> {
    let known = |(column, head, least): (ThreadColumn, &'static str, usize)| {
        let longest = cells.of(column)?;
        Some((column, head, least.max(longest).max(width(head) + 1)))
    };
    let mut all: Vec<_> = COLUMNS.into_iter().filter_map(known).collect();
    // Of the waits of a machine's processes too little is known to stand first.
    if are_processes {
        all.sort_by_key(|(column, ..)| match column {
            ThreadColumn::Tid | ThreadColumn::User | ThreadColumn::Cpu => 0,
            ThreadColumn::Memory => 1,
            ThreadColumn::Faults => 2,
            _ => 3,
        });
    }
    all
}

impl ThreadColumns {
    /// Rates leave first, then memory, then sleep; then the bar, and where threads wait. How wide each is goes by the room.
    fn of(room: usize, cells: &ThreadCells, are_processes: bool) -> Self {
        let mut all = known_columns(cells, are_processes);
        let used = |all: &[(ThreadColumn, &str, usize)]| 2 + all.iter().map(|(_, _, width)| width + 1).sum::<usize>();
        let least = if are_processes { LEAST_COMMAND } else { LEAST_NAME };
        while used(&all) + least > room && all.len() > 2 {
            // The share of a CPU stays longest.
            let user = all.iter().position(|(column, ..)| *column == ThreadColumn::User);
            all.remove(user.filter(|_| all.len() == 3).unwrap_or(all.len() - 1));
        }
        let rest = room.saturating_sub(used(&all));
        let name = if are_processes { COMMAND_FIRST } else { NAME_FIRST };
        let within = match rest.saturating_sub(name + 2) {
            room if cells.within > 0 && room >= LEAST_WITHIN => {
                // Command lines have no end.
                let most = if are_processes { room / 2 } else { room };
                cells.within.min(most).clamp(LEAST_WITHIN, MOST_WITHIN)
            }
            _ => 0,
        };
        let rest = rest - if within > 0 { within + 2 } else { 0 };
        let has_bar = !are_processes && rest >= name + BAR_CELLS + 2;
        let rest = if has_bar { rest - BAR_CELLS - 2 } else { rest };
        let name = rest.min(if are_processes { MOST_COMMAND } else { MOST_NAME });
        Self { name, shown: all, has_bar, within }
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
        match checks().max() {
            None | Some(0) => {}
            Some(_) if waits.is_empty() => {}
            Some(most) if most < LEAST_LOOKS => {
                words.push(format!("{}: {MISSING}, under {LEAST_LOOKS} checks", waits.join(", ")));
            }
            Some(most) => {
                words.push(format!("{}: {}", waits.join(", "), of_checks(most)));
                if checks().any(|checks| (1..LEAST_LOOKS).contains(&checks)) {
                    words.push(format!("{MISSING}: under {LEAST_LOOKS} checks"));
                } else if checks().any(|checks| checks == 0) {
                    words.push(format!("{MISSING}: several threads"));
                }
            }
        }
        words.join("  ")
    }
}

/// Of what a column is a share, and the widest 95 % interval of that.
fn of_checks(checks: u32) -> String {
    format!("share of {checks} checks, ±{:.0} points", 98.0 / f64::from(checks).sqrt())
}

fn heads(page: &ScreenPage<'_>, columns: &ThreadColumns) -> Line<'static> {
    let list = &page.model.thread_list;
    let arrow = if list.is_ascending() { UP } else { DOWN };
    let head = |column: ThreadColumn, title: &str, width: usize| match column == list.by {
        true => page.span(Role::Key, format!(" {}", aligned(column, &format!("{title}{arrow}"), width))),
        false => page.span(Role::Header, format!(" {}", aligned(column, title, width))),
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
    let CommandWords { name, rest } = CommandWords::of(thread.thread);
    let name = cut(&name, columns.name).into_owned();
    let free = columns.name.saturating_sub(width(&name));
    let mut line = Line::from(vec![
        page.span(Role::Key, format!("{cursor} ")),
        page.span(Role::Text, name),
        page.span(Role::Dim, left(&cut(&rest, free), free)),
    ]);
    for (column, _, width) in &columns.shown {
        let (role, text) = cell(*column, thread);
        line.push_span(page.span(role, format!(" {}", aligned(*column, &text, *width))));
    }
    if columns.has_bar {
        line.push_span(page.span(Role::Text, "  "));
        let cells = bar(thread.cpu, thread.ready(), BAR_CELLS);
        let parts = BAR.iter().zip([ON_CPU, READY, BLOCKED]).zip(cells);
        line.extend(parts.map(|(((role, _), glyph), cells)| page.span(*role, glyph.repeat(cells))));
        let said: usize = cells.iter().sum();
        line.push_span(page.span(Role::Text, " ".repeat(BAR_CELLS - said)));
    }
    if let Some(within) = within(thread, columns.within).filter(|_| columns.within > 0) {
        line.push_span(page.span(Role::Dim, format!("  {within}")));
    }
    line
}

/// Where a thread waited most, and for which part of the time, in so many cells: `futex_do_wait 42%`.
fn within(thread: &ThreadUse<'_>, cells: usize) -> Option<String> {
    let (within, part) = thread.most_within()?;
    let share = part.map_or_else(String::new, share);
    let name = shown(within);
    Some(format!("{}{share}", cut(&name, cells.saturating_sub(width(&share)))))
}

/// Words stand at the left, numbers at the right.
fn aligned(column: ThreadColumn, text: &str, cells: usize) -> String {
    if column == ThreadColumn::User { left(text, cells) } else { right(text, cells) }
}

/// A thread's name and the rest of its command line, ready for a screen.
struct CommandWords {
    name: String,
    rest: String,
}

impl CommandWords {
    /// The kernel cuts names to 15 bytes; the command line has the whole one, unless the program is called otherwise.
    fn of(thread: &ThreadReading) -> Self {
        if thread.is_defunct() {
            return Self { name: format!("{} <defunct>", shown(&thread.name)), rest: String::new() };
        }
        let command = thread.process.as_ref().map_or("", |process| &process.command);
        let program = command.split(' ').next().unwrap_or_default();
        let file = program.rsplit('/').next().unwrap_or_default().trim_start_matches('-');
        let (name, rest) = match file.starts_with(&thread.name) {
            true => (file, command[program.len()..].to_owned()),
            false if command.is_empty() => (thread.name.as_str(), String::new()),
            false => (thread.name.as_str(), format!(" {command}")),
        };
        Self { name: shown(name).into_owned(), rest: shown(&rest).into_owned() }
    }
}

/// ` 42%`.
fn share(part: f64) -> String {
    format!(" {:.0}%", 100.0 * part)
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
        (ThreadColumn::User, _) => (Role::Dim, cut(&shown(user(thread.thread)), LONGEST_USER).into_owned()),
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
