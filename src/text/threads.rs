//! Prints what each thread of a run did, as a table of plain text.

use std::fmt::Write;

use super::column_width;
use crate::monitor::{Monitor, ThreadUses};
use crate::names::shown;
use crate::number::si;
use crate::run::MeasuredTarget;
use crate::threads::{CommandWords, ThreadUse, WaitKind};
use crate::units::WallNs;

/// The number of threads, at most.
const MOST: usize = 20;
/// Characters of the longest name of a thread, and of the longest command line of a process.
const MOST_NAME: usize = 24;
const MOST_COMMAND: usize = 36;
/// CPUs from which on it is said that what is in no row used them.
const LEAST_OTHERS: f64 = 0.005;
/// Most processes of a machine do nothing.
const LEAST_OF_MACHINE: f64 = 0.0005;

/// A number of a thread; `None` where it isn't known.
type ThreadNumber = fn(&ThreadUse<'_>) -> Option<f64>;

/// Shares of the time, which are shown in percent.
const SHARES: [(&str, ThreadNumber); 5] = [
    ("CPU%", |thread| Some(thread.cpu)),
    ("READY%", |thread| thread.ready()),
    ("FUTEX%", |thread| thread.waits(WaitKind::Lock)),
    ("DISK%", |thread| thread.waits(WaitKind::Disk)),
    ("SLEEP%", |thread| thread.waits(WaitKind::Sleep)),
];
const RATES: [(&str, ThreadNumber); 2] =
    [("FAULT/s", |thread| Some(thread.faults)), ("SWITCH/s", |thread| thread.switches)];

/// What each thread did over the whole time, or each process of a machine that used CPU time: the busiest first,
/// without columns of which nothing is known, and without rates where the lines would be longer than `columns`. Says so
/// where threads were read too seldom; nothing where they weren't read.
pub fn threads(monitor: &Monitor, columns: Option<usize>) -> String {
    let is_machine = matches!(monitor.header().target, MeasuredTarget::Everyone { .. });
    let what = if is_machine { "processes" } else { "threads" };
    let Some(uses) = monitor.thread_uses(WallNs(u64::MAX)) else {
        let is_read = monitor.threads_read_at().is_some();
        return if is_read {
            format!(" {what}: read only once in this time, which is too short to tell what they do\n")
        } else {
            String::new()
        };
    };
    let mut all: Vec<_> = uses.all().filter(|thread| !is_machine || thread.cpu >= LEAST_OF_MACHINE).collect();
    all.sort_by(|one, other| other.cpu.total_cmp(&one.cpu).then(one.thread.tid.cmp(&other.thread.tid)));
    let table = ThreadTable::of(&all, columns.unwrap_or(usize::MAX), is_machine);
    let mut out = format!("{}:\n\n{}\n", title(monitor, &uses, is_machine), table.heads(is_machine));
    all.iter().take(MOST).for_each(|thread| out += &format!("{}\n", table.line(thread)));
    if all.len() > MOST {
        let _ = writeln!(out, "  and {} more with less CPU time", all.len() - MOST);
    }
    // Threads that ended are in the list as far as they were read.
    let others = (uses.others - uses.ended.iter().map(|thread| thread.cpu).sum::<f64>()).max(0.0);
    if others >= LEAST_OTHERS || uses.left_out > 0 {
        let words = uses.others_words(is_machine);
        let _ = writeln!(out, "  {words}: {:.1}%{}", 100.0 * others, uses.ended_words(0.0, MOST));
    }
    if table.has_gaps(&all) {
        out.push_str("  —: it was looked at too seldom to tell\n");
    }
    out
}

/// Which columns there are, and how wide the first one is.
struct ThreadTable {
    name: usize,
    within: usize,
    shares: Vec<(&'static str, ThreadNumber)>,
    rates: Vec<(&'static str, ThreadNumber)>,
}

impl ThreadTable {
    /// Columns of a number, with the blank before it.
    const CELL: usize = 9;

    fn of(all: &[&ThreadUse<'_>], columns: usize, is_machine: bool) -> Self {
        let all = &all[..all.len().min(MOST)];
        let is_known = |(_, number): &(&str, ThreadNumber)| all.iter().any(|thread| number(thread).is_some());
        let [shares, rates] =
            [&SHARES[..], &RATES].map(|columns| columns.iter().copied().filter(is_known).collect::<Vec<_>>());
        let most = if is_machine { MOST_COMMAND } else { MOST_NAME };
        let longest = column_width(all.iter().map(|thread| words(thread)));
        let within = column_width(all.iter().map(|thread| within(thread))).max(13);
        let mut table = Self { name: longest.clamp(7, most), within, shares, rates };
        while table.width() > columns && table.rates.pop().is_some() {}
        table
    }

    fn width(&self) -> usize {
        2 + self.name + Self::CELL * (1 + self.shares.len() + self.rates.len()) + 2 + self.within
    }

    fn heads(&self, is_machine: bool) -> String {
        let (first, id) = if is_machine { ("PROCESS", "PID") } else { ("THREAD", "TID") };
        let heads: String = self.shares.iter().chain(&self.rates).map(|(head, _)| format!(" {head:>8}")).collect();
        format!("  {first:<width$} {id:>8}{heads}  WAITS MOST IN", width = self.name)
    }

    fn line(&self, thread: &ThreadUse<'_>) -> String {
        let name: String = words(thread).chars().take(self.name).collect();
        let cell =
            |value: Option<f64>, text: fn(f64) -> String| format!(" {:>8}", value.map_or_else(|| "—".into(), text));
        let shares = self.shares.iter().map(|(_, number)| cell(number(thread), |part| format!("{:.1}", 100.0 * part)));
        let cells: String = shares.chain(self.rates.iter().map(|(_, number)| cell(number(thread), si))).collect();
        let line = format!("  {name:<width$} {:>8}{cells}  {}", thread.thread.tid, within(thread), width = self.name);
        line.trim_end().to_owned()
    }

    fn has_gaps(&self, all: &[&ThreadUse<'_>]) -> bool {
        let numbers = || self.shares.iter().chain(&self.rates);
        all.iter().take(MOST).any(|thread| numbers().any(|(_, number)| number(thread).is_none()))
    }
}

/// The name of a thread; of a process its command line.
fn words(thread: &ThreadUse<'_>) -> String {
    let CommandWords { name, rest } = CommandWords::of(thread.thread);
    name + &rest
}

/// The function of the kernel in which a thread waited most.
fn within(thread: &ThreadUse<'_>) -> String {
    thread.most_within().map_or_else(String::new, |(within, _)| shown(within).into_owned())
}

/// ` 3 threads on 1.20 CPUs in 4.0 s`, when that was where it isn't all that was counted, and how many there are more.
fn title(monitor: &Monitor, uses: &ThreadUses<'_>, is_machine: bool) -> String {
    let what = match (is_machine, uses.all().count()) {
        (false, 1) => "1 thread".to_owned(),
        (false, count) => format!("{count} threads"),
        (true, 1) => "1 process".to_owned(),
        (true, count) => format!("{count} processes"),
    };
    let read = monitor.threads_read_at().map_or(0.0, |at| at.as_secs());
    let is_all = (uses.seconds - monitor.counted_for().as_secs()).abs() < 0.05 * uses.seconds;
    let when = if is_all { String::new() } else { format!(", read from {:.1} s to {read:.1} s", read - uses.seconds) };
    let left_out = if uses.left_out > 0 { format!(", {} not read", uses.left_out) } else { String::new() };
    format!(" {what} on {:.2} CPUs in {:.1} s{when}{left_out}", uses.cpus, uses.seconds)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::sync::Arc;

    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::sources::Round;
    use crate::threads::{ThreadReading, ThreadSnapshot};

    #[test]
    fn threads_beyond_those_that_are_read_are_counted() {
        let header = builders::header([builders::measured(builders::software_event("page-faults"))]);
        let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        for second in 0..=1 {
            let at_ns = WallNs(second * builders::SECOND);
            let threads = vec![ThreadReading { pid: 7, tid: 7, name: "pool".into(), ..ThreadReading::default() }];
            let snapshot = ThreadSnapshot { at_ns, left_out: 989, threads, ..ThreadSnapshot::default() };
            let threads = Some(Arc::new(snapshot));
            monitor.round(&Round { at: at_ns, readings: vec![None], threads, ..Round::default() }, 0);
        }
        let text = threads(&monitor, None);
        assert_eq!(text.lines().next().unwrap(), " 1 thread on 0.00 CPUs in 1.0 s, 989 not read:");
        assert!(text.contains("\n  989 not read, and what ended between checks: 0.0%\n"), "{text}");
    }
}
