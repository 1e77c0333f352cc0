//! Finds how much CPU time of a command passed without any of its events.

use crate::events::{Event, EventKind};
use crate::run::{End, MeasuredEvent};
use crate::units::CpuNs;

/// The least CPU time that is told: more than perfprop's fork takes before it executes the command, and than ticks are
/// off.
const LEAST: CpuNs = CpuNs(100_000_000);
/// What the kernel may take for each process before it has its counters and after they are off. A shell that does
/// nothing but start short commands leaves 27 % of 0.7 ms each, measured on Linux 6.1; processes with more memory take
/// longer.
const EACH: CpuNs = CpuNs(2_000_000);
/// The least part of all that is told where it isn't known how many there were, or others started many meanwhile.
const LEAST_PART: f64 = 0.5;

/// The least part of the CPU time that passed without counters where that is told, whatever the reason, and the least
/// time.
const TOLD: (f64, CpuNs) = (0.05, CpuNs(20_000_000));

/// The CPU time of a command and its waited-for children in which no event was enabled, and all of it; `None` where
/// that is no more than usual, or can't be told.
pub(super) fn uncounted_time(events: &[MeasuredEvent], end: &End) -> Option<(CpuNs, CpuNs)> {
    let (uncounted, all) = time_without_counters(events, end)?;
    let is_of_child = uncounted >= most_without_a_child(end.started) || uncounted.0 as f64 >= LEAST_PART * all.0 as f64;
    (uncounted >= LEAST && is_of_child).then_some((uncounted, all))
}

/// The CPU time of a command and its waited-for children in which no event was enabled, and all of it, where that is
/// enough to tell: kernels have no counters on while processes and threads start and end.
pub(super) fn told_time_without_counters(events: &[MeasuredEvent], end: &End) -> Option<(CpuNs, CpuNs)> {
    let (least_part, least) = TOLD;
    time_without_counters(events, end)
        .filter(|&(uncounted, all)| uncounted >= least && uncounted.0 as f64 >= least_part * all.0 as f64)
}

fn time_without_counters(events: &[MeasuredEvent], end: &End) -> Option<(CpuNs, CpuNs)> {
    let used = end.cpu_time.filter(|_| end.is_all_watched)?;
    let all = used.all();
    // A tool event is enabled while time passes. What was never enabled, or isn't of what starts later, tells of no
    // child.
    let is_of_all = |event: &Event| event.kind != EventKind::Tool && event.not_inherited().is_none();
    let readings = events.iter().zip(&end.totals).filter(|(event, _)| is_of_all(&event.event));
    let enabled = readings.filter_map(|(_, reading)| Some((*reading)?.enabled)).max().filter(|time| time.0 > 0)?;
    Some((all - enabled, all))
}

/// The CPU time that passes without counters where no child lost them, by how many processes started on the machine.
fn most_without_a_child(started: Option<u64>) -> CpuNs {
    started.map_or(CpuNs(u64::MAX), |started| LEAST + CpuNs(EACH.0.saturating_mul(started)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::{event, measured, software_event};
    use crate::events::{Encoding, Probe};
    use crate::sources::Reading;
    use crate::units::CpuTime;

    const MS: u64 = 1_000_000;

    /// The end of a command that used so many nanoseconds in user space and in the kernel, and how long each of its
    /// events was enabled.
    fn end((user, system): (u64, u64), enabled: &[Option<u64>]) -> End {
        let reading = |enabled: Option<u64>| Some(Reading { count: 7, enabled: CpuNs(enabled?), running: CpuNs(1) });
        End {
            cpu_time: Some(CpuTime { user_ns: CpuNs(user), system_ns: CpuNs(system) }),
            is_all_watched: true,
            totals: enabled.iter().copied().map(reading).collect(),
            ..End::default()
        }
    }

    fn uncounted(used: (u64, u64), enabled: &[Option<u64>]) -> Option<(u64, u64)> {
        let events = vec![measured(software_event("faults")); enabled.len()];
        uncounted_time(&events, &end(used, enabled)).map(|(uncounted, all)| (uncounted.0, all.0))
    }

    #[test]
    fn by_hand() {
        // 900 ms in user space and 300 in the kernel, of which the event that was enabled longest saw 200.
        let enabled = [Some(150 * MS), None, Some(200 * MS)];
        assert_eq!(uncounted((900 * MS, 300 * MS), &enabled), Some((1000 * MS, 1200 * MS)));
    }

    #[test]
    fn a_tenth_of_a_second_and_half_of_the_time_are_the_least() {
        assert_eq!(uncounted((200 * MS, 0), &[Some(100 * MS)]), Some((100 * MS, 200 * MS)));
        assert_eq!(uncounted((200 * MS, 0), &[Some(100 * MS + 1)]), None);
        assert_eq!(uncounted((0, 199 * MS), &[Some(99 * MS + 1)]), None);
        assert_eq!(uncounted((1000 * MS, 0), &[Some(500 * MS)]), Some((500 * MS, 1000 * MS)));
        assert_eq!(uncounted((1000 * MS, 0), &[Some(500 * MS + 1)]), None);
        // What a shell that only forks leaves.
        assert_eq!(uncounted((400 * MS, 600 * MS), &[Some(730 * MS)]), None);
    }

    #[test]
    fn a_child_is_told_by_more_than_processes_leave() {
        let events = [measured(software_event("faults"))];
        let of = |used: u64, enabled: u64, started| {
            let end = End { started, ..end((used * MS, 0), &[Some(enabled * MS)]) };
            uncounted_time(&events, &end).map(|(uncounted, _)| uncounted.0 / MS)
        };
        // Half a second of a setuid child is just under a half.
        assert_eq!((of(1005, 504, Some(3)), of(1005, 504, None)), (Some(501), None));
        assert_eq!(of(10_000, 9_500, Some(30)), Some(500));
        // A shell that only forks, and one of which others hide what a child took.
        assert_eq!((of(1000, 730, Some(1400)), of(1005, 504, Some(300))), (None, None));
        assert_eq!((of(1000, 500, Some(5000)), of(10_000, 9_910, Some(0))), (Some(500), None));
    }

    #[test]
    fn what_starts_and_ends_take_is_told_from_a_twentieth_on() {
        let events = [measured(software_event("faults"))];
        let of = |used: u64, enabled: u64| {
            let end = End { started: Some(3000), ..end((used * MS, 0), &[Some(enabled * MS)]) };
            told_time_without_counters(&events, &end).map(|(uncounted, all)| (uncounted.0 / MS, all.0 / MS))
        };
        assert_eq!((of(432, 304), of(1000, 950)), (Some((128, 432)), Some((50, 1000))));
        // Less than a twentieth, too little time, and more than all.
        assert_eq!((of(1000, 951), of(38, 19), of(400, 500)), (None, None, None));
    }

    #[test]
    fn nothing_is_found_where_nothing_can_be() {
        assert_eq!(uncounted((0, 0), &[Some(0)]), None);
        assert_eq!(uncounted((1000 * MS, 0), &[]), None);
        assert_eq!(uncounted((1000 * MS, 0), &[None, Some(0)]), None);
        assert_eq!(uncounted((100 * MS, 0), &[Some(u64::MAX)]), None);
        assert_eq!(uncounted((u64::MAX, u64::MAX), &[Some(1)]), Some((u64::MAX - 1, u64::MAX)));
        let events = [measured(software_event("faults"))];
        let found = end((1000 * MS, 0), &[Some(MS)]);
        assert!(uncounted_time(&events, &found).is_some());
        assert_eq!(uncounted_time(&events, &End { is_all_watched: false, ..found.clone() }), None);
        assert_eq!(uncounted_time(&events, &End { cpu_time: None, ..found }), None);
    }

    #[test]
    fn time_that_passes_is_no_cpu_time() {
        let events = [EventKind::Tool, EventKind::Hardware].map(|kind| measured(Event { kind, ..event("other") }));
        let found = uncounted_time(&events, &end((1000 * MS, 0), &[Some(5000 * MS), Some(MS)]));
        assert_eq!(found, Some((CpuNs(999 * MS), CpuNs(1000 * MS))));
        assert_eq!(uncounted_time(&events[..1], &end((1000 * MS, 0), &[Some(MS)])), None);
    }

    #[test]
    fn a_probe_that_is_not_inherited_tells_of_no_child() {
        let probe = Some(Probe { not_inherited: Some("tracefs isn't mounted".into()), ..Probe::default() });
        let encoding = Encoding { probe, ..Encoding::default() };
        let events = [measured(Event { encoding, ..software_event("uprobe") })];
        assert_eq!(uncounted_time(&events, &end((1000 * MS, 0), &[Some(MS)])), None);
        assert!(events[0].event.is_of_a_part() && events[0].lacking_words().is_some());
    }
}
