//! Prints what each thread of a run did, as a table of plain text.

use std::fmt::Write;

use super::column_width;
use crate::monitor::{Monitor, ThreadUses};
use crate::names::shown;
use crate::number::si;
use crate::run::MeasuredTarget;
use crate::threads::{ThreadUse, WaitKind};
use crate::units::WallNs;

/// The number of threads, at most.
const MOST: usize = 20;
/// Characters of the longest name; the kernel cuts those of threads to 15 bytes.
const MOST_NAME: usize = 32;
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

/// What each thread did over the whole time, or each process of a machine that used CPU time: the busiest first, without columns of
/// which nothing is known. Nothing where threads weren't read.
pub fn threads(monitor: &Monitor) -> String {
    let Some(uses) = monitor.thread_uses(WallNs(u64::MAX)) else { return String::new() };
    let is_machine = matches!(monitor.header().target, MeasuredTarget::Everyone { .. });
    let mut all: Vec<_> = uses.all().filter(|thread| !is_machine || thread.cpu >= LEAST_OF_MACHINE).collect();
    all.sort_by(|one, other| other.cpu.total_cmp(&one.cpu).then(one.thread.tid.cmp(&other.thread.tid)));
    let mut out = format!("{}:\n\n", title(&uses, is_machine));
    let name = |thread: &ThreadUse<'_>| shown(&thread.thread.name).chars().take(MOST_NAME).collect::<String>();
    let width = column_width(all.iter().take(MOST).map(|thread| name(thread))).max(7);
    let is_known = |(_, number): &(&str, ThreadNumber)| all.iter().any(|thread| number(thread).is_some());
    let [shares, rates] =
        [&SHARES[..], &RATES].map(|columns| columns.iter().copied().filter(is_known).collect::<Vec<_>>());
    let (first, id) = if is_machine { ("PROCESS", "PID") } else { ("THREAD", "TID") };
    let heads: String = shares.iter().chain(&rates).map(|(head, _)| format!(" {head:>8}")).collect();
    let _ = writeln!(out, "  {first:<width$} {id:>8}{heads}  WAITS MOST IN");
    for thread in all.iter().take(MOST) {
        let cell =
            |value: Option<f64>, text: fn(f64) -> String| format!(" {:>8}", value.map_or_else(|| "—".into(), text));
        let parts = shares.iter().map(|(_, number)| cell(number(thread), |part| format!("{:.1}", 100.0 * part)));
        let cells: String = parts.chain(rates.iter().map(|(_, number)| cell(number(thread), si))).collect();
        let within = thread.most_within().map_or_else(String::new, |(within, _)| format!("  {}", shown(within)));
        let _ = writeln!(out, "  {:<width$} {:>8}{cells}{within}", name(thread), thread.thread.tid);
    }
    if all.len() > MOST {
        let _ = writeln!(out, "  and {} more with less CPU time", all.len() - MOST);
    }
    if !uses.ended_names.is_empty() {
        let names: Vec<_> = uses.ended_names.iter().take(MOST).map(ToString::to_string).collect();
        let _ = writeln!(out, "  ended, in percent of a CPU: {}", names.join(", "));
    }
    out
}

/// ` 3 threads on 1.20 CPUs in 4.0 s`.
fn title(uses: &ThreadUses<'_>, is_machine: bool) -> String {
    let what = match (is_machine, uses.all().count()) {
        (false, 1) => "1 thread".to_owned(),
        (false, count) => format!("{count} threads"),
        (true, 1) => "1 process".to_owned(),
        (true, count) => format!("{count} processes"),
    };
    format!(" {what} on {:.2} CPUs in {:.1} s", uses.cpus, uses.seconds)
}
