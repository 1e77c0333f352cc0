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

/// What each thread, or each process of a machine, did over the whole time: the busiest first. Nothing where that wasn't read.
pub fn threads(monitor: &Monitor) -> String {
    let Some(uses) = monitor.thread_uses(WallNs(u64::MAX)) else { return String::new() };
    let mut all: Vec<_> = uses.threads.iter().chain(&uses.ended).collect();
    if all.is_empty() {
        return String::new();
    }
    all.sort_by(|one, other| other.cpu.total_cmp(&one.cpu).then(one.thread.tid.cmp(&other.thread.tid)));
    let what = if matches!(monitor.header().target, MeasuredTarget::Everyone { .. }) { "processes" } else { "threads" };
    let mut out = format!("{}:\n\n", title(&uses, all.len(), what));
    let name = |thread: &ThreadUse<'_>| shown(&thread.thread.name).chars().take(MOST_NAME).collect::<String>();
    let width = column_width(all.iter().take(MOST).map(|thread| name(thread))).max(6);
    let heads = ["CPU%", "READY%", "FUTEX%", "DISK%", "SLEEP%", "FAULT/s", "SWITCH/s"];
    let _ = writeln!(
        out,
        "  {:<width$} {:>8} {}  WAITS MOST IN",
        "THREAD",
        "TID",
        heads.map(|head| format!("{head:>8}")).join(" ")
    );
    for thread in all.iter().take(MOST) {
        let _ = writeln!(out, "  {:<width$} {:>8} {}", name(thread), thread.thread.tid, cells(thread).trim_end());
    }
    if all.len() > MOST {
        let _ = writeln!(out, "  and {} more with less CPU time", all.len() - MOST);
    }
    out
}

/// ` 3 threads on 1.2 CPUs in 4.0 s`.
fn title(uses: &ThreadUses<'_>, count: usize, what: &str) -> String {
    let what = if count == 1 { what.trim_end_matches("es").trim_end_matches('s') } else { what };
    format!(" {count} {what} on {:.2} CPUs in {:.1} s", uses.cpus, uses.seconds)
}

/// The numbers of a thread, and the function of the kernel in which it waited most.
fn cells(thread: &ThreadUse<'_>) -> String {
    let share = |part: Option<f64>| part.map_or_else(|| "—".into(), |part| format!("{:.1}", 100.0 * part));
    let rate = |rate: Option<f64>| rate.map_or_else(|| "—".into(), si);
    let waits = |kind| share(thread.waits(kind));
    let numbers: [String; 7] = [
        share(Some(thread.cpu)),
        share(thread.ready()),
        waits(WaitKind::Lock),
        waits(WaitKind::Disk),
        waits(WaitKind::Sleep),
        rate(Some(thread.faults)),
        rate(thread.switches),
    ];
    let within = thread.most_within().map_or_else(String::new, |(within, _)| format!("  {}", shown(within)));
    format!("{}{within}", numbers.map(|number| format!("{number:>8}")).join(" "))
}
