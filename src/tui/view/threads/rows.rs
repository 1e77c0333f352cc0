//! Draws the rows of the list of threads.

use ratatui::text::Line;

use super::super::page::ScreenPage;
use super::columns::ThreadColumns;
use crate::names::shown;
use crate::number::{memory, si};
use crate::threads::{CommandWords, ThreadUse, WaitKind};
use crate::tui::model::{ThreadColumn, user};
use crate::tui::symbols::{BLOCKED, CURSOR, MISSING, ON_CPU, READY};
use crate::tui::text::{cut, left, right, width};
use crate::tui::theme::Role;

/// The longest name of a user.
pub(super) const LONGEST_USER: usize = 8;
/// Head of the bar of a thread's time, which is as wide, and what of it has which role.
pub(super) const BAR: [(Role, &str); 3] = [(Role::Text, "ON CPU "), (Role::Warn, "READY "), (Role::Dim, "BLOCKED")];
pub(super) const BAR_CELLS: usize = 20;

pub(super) fn thread_line(
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
        let cells = bar(thread.cpu, thread.ready(), blocked(thread), BAR_CELLS);
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
pub(super) fn within(thread: &ThreadUse<'_>, cells: usize) -> Option<String> {
    let (within, part) = thread.most_within()?;
    let share = part.map_or_else(String::new, share);
    let name = shown(within);
    Some(format!("{}{share}", cut(&name, cells.saturating_sub(width(&share)))))
}

/// Words stand at the left, numbers at the right.
pub(super) fn aligned(column: ThreadColumn, text: &str, cells: usize) -> String {
    if column == ThreadColumn::User { left(text, cells) } else { right(text, cells) }
}

/// ` 42%`.
fn share(part: f64) -> String {
    format!(" {:.0}%", 100.0 * part)
}

/// The part of the time in which a thread is known to have waited for anything but a CPU: what the columns say
/// together.
fn blocked(thread: &ThreadUse<'_>) -> f64 {
    [WaitKind::Lock, WaitKind::Disk, WaitKind::Sleep].into_iter().filter_map(|kind| thread.waits(kind)).sum()
}

/// The cells of a bar for the time on a CPU, ready for one, and blocked. The rest stays empty: time in which the thread
/// didn't live, and that of which nothing is known. Several threads that are read as one may have more than a CPU: they
/// fill the bar.
fn bar(cpu: f64, ready: Option<f64>, blocked: f64, cells: usize) -> [usize; 3] {
    let end = |part: f64| (part.clamp(0.0, 1.0) * cells as f64).round() as usize;
    let runnable = cpu + ready.unwrap_or(0.0);
    [end(cpu), end(runnable) - end(cpu), end(runnable + blocked) - end(runnable)]
}

pub(super) fn cell(column: ThreadColumn, thread: &ThreadUse<'_>) -> (Role, String) {
    match (column, column.part(thread)) {
        (ThreadColumn::Tid, _) => (Role::Dim, thread.thread.tid.to_string()),
        (ThreadColumn::User, _) => (Role::Dim, cut(&shown(user(thread.thread)), LONGEST_USER).into_owned()),
        (ThreadColumn::Memory, _) if thread.memory > 0 => (Role::Dim, memory(thread.memory)),
        // Memory is a process', and the kernel's threads have none.
        (ThreadColumn::Memory, _) if thread.thread.pid == thread.thread.tid && !thread.thread.is_of_kernel => {
            (Role::Missing, MISSING.into())
        }
        (ThreadColumn::Memory, _) => (Role::Dim, String::new()),
        (ThreadColumn::Faults | ThreadColumn::Switches, _) => match column.rate(thread) {
            Some(0.0) => (Role::Dim, "0".into()),
            Some(rate) if rate < 0.5 => (Role::Dim, "<1".into()),
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
    use crate::threads::ThreadReading;

    #[test]
    fn a_bar_has_what_a_thread_did_with_its_time() {
        assert_eq!(bar(0.5, Some(0.25), 0.25, 20), [10, 5, 5]);
        assert_eq!(bar(0.5, Some(0.25), 0.0, 20), [10, 5, 0], "nothing is known of the rest");
        assert_eq!(bar(0.5, None, 0.1, 20), [10, 0, 2]);
        assert_eq!(bar(1.8, Some(0.4), 1.0, 20), [20, 0, 0]);
        assert_eq!(bar(0.0, Some(0.0), 1.0, 20), [0, 0, 20]);
        assert_eq!(width(&BAR.map(|(_, words)| words).concat()), BAR_CELLS);
    }

    fn idle(reading: &ThreadReading) -> ThreadUse<'_> {
        ThreadUse {
            thread: reading,
            seconds: 1.0,
            looked_at_for: 1.0,
            lived: 1.0,
            cpu: 0.0,
            delay: None,
            ended_children: 0.0,
            faults: 0.0,
            switches: None,
            memory: 0,
            has_blocked: false,
            looks: Vec::new(),
        }
    }

    #[test]
    fn rates_below_one_are_not_none() {
        let reading = ThreadReading::default();
        let switches = |switches| cell(ThreadColumn::Switches, &ThreadUse { switches, ..idle(&reading) }).1;
        assert_eq!([Some(0.0), Some(0.091), Some(2.0), None].map(switches), ["0", "<1", "2", MISSING]);
    }

    #[test]
    fn memory_that_is_not_known_is_not_none() {
        let told = |pid, tid, is_of_kernel, memory| {
            let reading = ThreadReading { pid, tid, is_of_kernel, ..ThreadReading::default() };
            cell(ThreadColumn::Memory, &ThreadUse { memory, ..idle(&reading) }).1
        };
        assert_eq!([told(7, 7, false, 0), told(7, 8, false, 0), told(2, 2, true, 0)], [MISSING, "", ""]);
        assert_eq!(told(7, 7, false, 3 << 20), memory(3 << 20));
    }

    proptest! {
        #[test]
        fn a_bar_is_full_where_all_is_known(cpu in 0.0..2.0_f64, ready in 0.0..2.0_f64, cells in 0_usize..50) {
            prop_assert_eq!(bar(cpu, Some(ready), 1.0, cells).iter().sum::<usize>(), cells);
        }

        #[test]
        fn a_bar_has_no_more_blocked_time_than_is_known(
            cpu in 0.0..1.0_f64, ready in 0.0..1.0_f64, blocked in 0.0..1.0_f64, cells in 0_usize..50
        ) {
            let [.., drawn] = bar(cpu, Some(ready), blocked, cells);
            prop_assert!(drawn as f64 <= blocked * cells as f64 + 1.0);
        }
    }
}
