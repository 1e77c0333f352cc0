//! Chooses the columns of the list of threads, and says what they mean.

use ratatui::text::Line;

use super::super::page::ScreenPage;
use super::rows::{BAR, BAR_CELLS, LONGEST_USER, aligned, cell, within};
use crate::monitor::ThreadUses;
use crate::run::MeasuredTarget;
use crate::threads::{CommandWords, LEAST_LOOKS, ThreadUse};
use crate::tui::model::{ThreadCells, ThreadColumn, user};
use crate::tui::symbols::{DOWN, MISSING, UP};
use crate::tui::text::{left, width};
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
/// The head of memory over a longer time: the most that was seen, as `ru_maxrss` has it.
const MOST_MEMORY: &str = "MAXRSS";
/// The last of them of threads.
const RATES: [ThreadColumn; 3] = [ThreadColumn::Memory, ThreadColumn::Faults, ThreadColumn::Switches];
/// Cells that names of threads and command lines of processes have at least, those that they have before there are a
/// bar and where threads wait, and those of that.
const LEAST_NAME: usize = 12;
const LEAST_COMMAND: usize = 32;
const NAME_FIRST: usize = 20;
const COMMAND_FIRST: usize = 40;
/// Numbers that stand too far behind names can't be followed.
const MOST_NAME: usize = 40;
const MOST_COMMAND: usize = 110;
const LEAST_WITHIN: usize = 15;
/// `futex_do_wait 100%` is whole before names have more room than they need.
const USUAL_WITHIN: usize = 18;
const MOST_WITHIN: usize = 32;

/// CPUs from which on it is said that others used them: below, it is how times are rounded.
pub(super) const LEAST_OTHERS: f64 = 0.05;

/// Whether it is a machine, which is read by process.
pub(super) fn of_machine(page: &ScreenPage<'_>) -> bool {
    matches!(page.model.monitor.header().target, MeasuredTarget::Everyone { .. })
}

/// Widths; 0 for a column that has left.
pub(super) struct ThreadColumns {
    pub(super) name: usize,
    pub(super) shown: Vec<(ThreadColumn, &'static str, usize)>,
    pub(super) has_bar: bool,
    pub(super) within: usize,
}

/// What there is in the list now, and what there was.
pub(super) fn cells(page: &ScreenPage<'_>, uses: &ThreadUses<'_>) -> ThreadCells {
    let mut cells = page.model.thread_list.cells.clone();
    let are_processes = of_machine(page);
    let threads = &uses.threads;
    let any = |is: &dyn Fn(&ThreadUse<'_>) -> bool| threads.iter().any(is);
    let is_known = |column: ThreadColumn| match column {
        ThreadColumn::User => are_processes && any(&|thread| !user(thread.thread).is_empty()),
        ThreadColumn::Ready => !are_processes && any(&|thread| thread.delay.is_some()),
        ThreadColumn::Lock | ThreadColumn::Disk | ThreadColumn::Sleep => {
            // From the first check on, though it takes some to tell a share: columns that come later move those that
            // are read.
            any(&|thread| thread.times_looked_at() > 0)
        }
        ThreadColumn::Switches => any(&|thread| thread.switches.is_some()),
        _ => true,
    };
    for (column, ..) in COLUMNS {
        if is_known(column) {
            let longest = threads.iter().map(|thread| width(&cell(column, thread).1)).max();
            cells.widen(column, longest.unwrap_or(0));
        }
    }
    let names = threads.iter().map(|thread| {
        let words = CommandWords::of(thread.thread);
        width(&words.name) + if are_processes { width(&words.rest) } else { 0 }
    });
    cells.name = names.max().unwrap_or(0).max(cells.name);
    let within = threads.iter().filter_map(|thread| within(thread, usize::MAX)).map(|text| width(&text));
    cells.within = within.max().unwrap_or(0).max(cells.within);
    cells.has_others |= uses.others >= LEAST_OTHERS;
    cells.order = page.model.thread_list.order_of(threads);
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
    /// Rates and memory of threads leave before where they wait does; then sleep and the others. How wide each is goes
    /// by the room.
    pub(super) fn of(room: usize, cells: &ThreadCells, are_processes: bool) -> Self {
        let mut all = known_columns(cells, are_processes);
        let used = |all: &[(ThreadColumn, &str, usize)]| 2 + all.iter().map(|(_, _, width)| width + 1).sum::<usize>();
        let least = if are_processes { LEAST_COMMAND } else { LEAST_NAME };
        let name = if are_processes { COMMAND_FIRST } else { NAME_FIRST };
        // Names of threads are whole where there is little room, and command lines have no end.
        let whole = if are_processes { name } else { cells.name.clamp(LEAST_NAME, name) };
        // Where a thread waits says more than its rates and memory, which stand last.
        let with_within = whole + 2 + LEAST_WITHIN;
        let before_rates = all.iter().take_while(|(column, ..)| !RATES.contains(column)).count();
        if !are_processes && cells.within > 0 && used(&all[..before_rates]) + with_within <= room {
            while used(&all) + with_within > room {
                all.pop();
            }
        }
        while used(&all) + least > room && all.len() > 2 {
            // The share of a CPU stays longest.
            let user = all.iter().position(|(column, ..)| *column == ThreadColumn::User);
            all.remove(user.filter(|_| all.len() == 3).unwrap_or(all.len() - 1));
        }
        let rest = room.saturating_sub(used(&all));
        let within = match rest.saturating_sub(name + 2) {
            _ if cells.within == 0 || rest < with_within => 0,
            room => {
                let most = if are_processes { room / 2 } else { room.max(USUAL_WITHIN.min(rest - whole - 2)) };
                cells.within.min(most).clamp(LEAST_WITHIN, MOST_WITHIN)
            }
        };
        let rest = rest - if within > 0 { within + 2 } else { 0 };
        let has_bar = !are_processes && rest >= name + BAR_CELLS + 2;
        let rest = if has_bar { rest - BAR_CELLS - 2 } else { rest };
        let most = if are_processes { cells.name.clamp(COMMAND_FIRST, MOST_COMMAND) } else { MOST_NAME };
        let name = rest.min(most);
        Self { name, shown: all, has_bar, within }
    }

    /// What the columns mean that are there, and why some have no number: of a machine's processes, those with one
    /// thread are checked.
    pub(super) fn legend(&self, threads: &[ThreadUse<'_>]) -> String {
        let has = |column: ThreadColumn| self.shown.iter().any(|(shown, ..)| *shown == column);
        let mut words = Vec::new();
        if has(ThreadColumn::Ready) {
            words.push("READY%: could run, was on no CPU.".to_owned());
        }
        let waits = [(ThreadColumn::Lock, "FUTEX%"), (ThreadColumn::Disk, "DISK%"), (ThreadColumn::Sleep, "SLEEP%")];
        let waits: Vec<_> = waits.into_iter().filter(|(column, _)| has(*column)).map(|(_, head)| head).collect();
        let checks = || threads.iter().map(ThreadUse::times_looked_at);
        let most = threads.iter().max_by_key(|thread| thread.times_looked_at());
        match most.filter(|most| most.times_looked_at() > 0 && !waits.is_empty()) {
            None => {}
            Some(most) if most.times_looked_at() < LEAST_LOOKS => {
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

/// Of what a column is a share, in what time if that isn't the time of the other numbers, and the widest 95 % interval
/// of that.
fn of_checks(thread: &ThreadUse<'_>) -> String {
    let (checks, time) = (thread.times_looked_at(), thread.looked_at_for);
    let within = if time > thread.seconds { format!(" in {time:.1} s") } else { String::new() };
    format!("share of {checks} checks{within}, ±{:.0} points", 98.0 / f64::from(checks).sqrt())
}

pub(super) fn heads(page: &ScreenPage<'_>, columns: &ThreadColumns) -> Line<'static> {
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
        let title = match column {
            ThreadColumn::Tid => id,
            ThreadColumn::Memory if page.model.shows_threads_of_time() => MOST_MEMORY,
            _ => title,
        };
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
