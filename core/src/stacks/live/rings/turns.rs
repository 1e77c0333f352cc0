//! Reads for how long sampled events were on counters, which they share with all that is counted.

use perf_event::Counter;
use rustc_hash::FxHashMap;

use super::open::{SampledCounter, TurnTimes};
use crate::stacks::RunShare;
use crate::units::WallNs;

/// An event that was on a counter for a smaller part of the time than this took turns; less is how times are read.
const ALL_THE_TIME: f64 = 0.995;

/// With more open events than this, they are read in every tenth pass: each takes a system call, often to another CPU.
const FEW: usize = 128;
const SELDOM: u32 = 10;

/// The times of events when they were read last.
#[derive(Debug, Default)]
pub(in crate::stacks::live) struct CounterTurns {
    /// By open event.
    open: Vec<RunTimes>,
    /// By clock: just before and after the events.
    clocks: Vec<(u64, u64)>,
    /// By event: its times, and whether it took turns.
    events: Vec<(RunTimes, bool)>,
    passes: u32,
}

/// For how long an event was enabled where it can run, and for how long it ran, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RunTimes {
    enabled: u64,
    running: u64,
}

impl RunTimes {
    fn read(counter: &mut Counter) -> Option<Self> {
        let data = counter.read_full().ok()?;
        let nanoseconds = |time: Option<std::time::Duration>| time.map_or(0, |time| time.as_nanos() as u64);
        Some(Self { enabled: nanoseconds(data.time_enabled()), running: nanoseconds(data.time_running()) })
    }
}

impl std::ops::AddAssign for RunTimes {
    fn add_assign(&mut self, other: Self) {
        self.enabled += other.enabled;
        self.running += other.running;
    }
}

impl CounterTurns {
    /// Adds what is new of events that take turns. All are read at nearly one time; one that can't be read counts as
    /// before.
    pub(in crate::stacks::live) fn read(
        &mut self,
        counters: &mut [SampledCounter],
        clocks: &mut [Counter],
        at: WallNs,
        into: &mut Vec<RunShare>,
    ) {
        self.passes += 1;
        let count = counters.iter().filter(|one| one.turns != TurnTimes::Never).count();
        if count == 0 || (count > FEW && self.passes % SELDOM != 1) {
            return;
        }
        self.open.resize(counters.len(), RunTimes::default());
        self.clocks.resize(clocks.len(), (0, 0));
        let running = |clock: &mut Counter, known| RunTimes::read(clock).map_or(known, |times| times.running);
        clocks.iter_mut().zip(&mut self.clocks).for_each(|(clock, known)| known.0 = running(clock, known.0));
        for (one, known) in counters.iter_mut().zip(&mut self.open).filter(|(one, _)| one.turns != TurnTimes::Never) {
            *known = RunTimes::read(&mut one.counter).unwrap_or(*known);
        }
        clocks.iter_mut().zip(&mut self.clocks).for_each(|(clock, known)| known.1 = running(clock, known.1));
        let open = counters.iter().zip(&self.open).map(|(one, &times)| (one.event as usize, one.turns, times));
        let now = by_event(open, &self.clocks);
        self.take(&now, at, into);
    }

    fn take(&mut self, now: &[RunTimes], at: WallNs, into: &mut Vec<RunShare>) {
        self.events.resize(now.len().max(self.events.len()), (RunTimes::default(), false));
        for (event, ((before, took_turns), now)) in (0..).zip(self.events.iter_mut().zip(now)) {
            let enabled_ns = now.enabled.saturating_sub(before.enabled);
            let running_ns = now.running.saturating_sub(before.running);
            if enabled_ns == 0 || running_ns == 0 {
                continue;
            }
            let takes_turns = (running_ns as f64) < ALL_THE_TIME * enabled_ns as f64;
            // Once it runs all the time again, that has to be known.
            if takes_turns || *took_turns {
                into.push(RunShare { until: at, event, enabled_ns, running_ns });
            }
            (*before, *took_turns) = (*now, takes_turns);
        }
    }
}

/// The times of each event, from those of all that are open, each with its event.
fn by_event(open: impl Iterator<Item = (usize, TurnTimes, RunTimes)>, clocks: &[(u64, u64)]) -> Vec<RunTimes> {
    let mut events = Vec::new();
    let mut add = |event: usize, times| {
        events.resize(events.len().max(event + 1), RunTimes::default());
        events[event] += times;
    };
    // Of several sets of events one runs at a time, in the time of one clock.
    let mut by_clock: FxHashMap<_, u64> = FxHashMap::default();
    for (event, turns, times) in open {
        match turns {
            TurnTimes::Never => {}
            TurnTimes::OwnTimes => add(event, times),
            TurnTimes::Clock(clock) => *by_clock.entry((event, clock)).or_default() += times.running,
        }
    }
    for ((event, clock), running) in by_clock {
        let (before, after) = clocks[clock];
        // One that ran for as long as the clock said before it was read was never off.
        let enabled = if running >= before { running } else { after.max(running) };
        add(event, RunTimes { enabled, running });
    }
    events
}

#[cfg(test)]
mod tests {
    #![allow(
        clippy::unwrap_used,
        clippy::print_stdout,
        reason = "a panic is how a test fails; one that is skipped says why"
    )]

    use std::time::{Duration, Instant};

    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::gettid;
    use perf_event::events::Software;
    use perf_event::{Builder, ReadFormat};

    use super::super::copy_size::CopySize;
    use super::*;

    fn times(&(enabled, running): &(u64, u64)) -> RunTimes {
        RunTimes { enabled, running }
    }

    #[test]
    fn only_turns_are_told_and_their_end() {
        let mut turns = CounterTurns::default();
        let mut told = |at, now: &[(u64, u64)]| {
            let mut into = Vec::new();
            turns.take(&now.iter().map(times).collect::<Vec<_>>(), WallNs(at), &mut into);
            into.into_iter().map(|share| (share.event, share.enabled_ns, share.running_ns)).collect::<Vec<_>>()
        };
        assert_eq!(told(1, &[(100, 100), (100, 99)]), [(1, 100, 99)]);
        assert_eq!(told(2, &[(200, 150), (200, 199)]), [(0, 100, 50), (1, 100, 100)]);
        assert_eq!(told(3, &[(300, 250), (300, 299)]), [(0, 100, 100)]);
        assert!(told(4, &[(300, 250), (400, 399)]).is_empty());
        // Nothing ran: the time waits for when something did.
        assert!(told(5, &[(400, 250), (400, 399)]).is_empty());
        assert_eq!(told(6, &[(500, 260), (400, 399)]), [(0, 200, 10)]);
    }

    #[test]
    fn an_event_of_a_task_is_off_only_while_the_task_is_on_its_cpu() {
        let (on_0, on_1) = (TurnTimes::Clock(0), TurnTimes::Clock(1));
        let sums = |open: &[(usize, TurnTimes, (u64, u64))], clocks: &[(u64, u64)]| {
            let open = open.iter().map(|(event, turns, ran)| (*event, *turns, times(ran)));
            by_event(open, clocks).iter().map(|times| (times.enabled, times.running)).collect::<Vec<_>>()
        };
        // 100 ns, of which 70 on one CPU and 30 on the other: all the time, and half of it on the second.
        let clocks = [(70, 72), (30, 31)];
        assert_eq!(sums(&[(0, on_0, (100, 71)), (0, on_1, (100, 30))], &clocks), [(101, 101)]);
        assert_eq!(sums(&[(0, on_0, (100, 70)), (0, on_1, (100, 15))], &clocks), [(70 + 31, 85)]);
        // Of two sets one after the other; and beside what needs no clock.
        let sets = [
            (0, on_0, (100, 40)),
            (0, on_0, (100, 30)),
            (1, TurnTimes::OwnTimes, (9, 4)),
            (2, TurnTimes::Never, (9, 4)),
        ];
        assert_eq!(sums(&sets, &clocks), [(70, 70), (9, 4)]);
    }

    /// An event of this thread on a CPU; `None` where this user may have none.
    fn of_this_thread(cpu: usize, event: Software) -> Option<Counter> {
        let mut builder = Builder::new(event);
        builder.observe_pid(gettid().as_raw()).one_cpu(cpu).enabled(false);
        builder.read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING).build().ok()
    }

    #[test]
    fn a_thread_that_may_be_on_several_cpus_has_its_events_on_all_the_time() {
        let Ok(mine) = sched_getaffinity(gettid()) else {
            return println!("skipped: this machine has more CPUs than a set of them");
        };
        let cpus: Vec<_> = (0..CpuSet::count()).filter(|&cpu| mine.is_set(cpu).unwrap()).collect();
        if cpus.len() > 128 {
            return println!("skipped: each CPU takes two descriptors, and other tests need some");
        }
        let open = |event: Software| cpus.iter().map(|&cpu| of_this_thread(cpu, event)).collect::<Option<Vec<_>>>();
        let (Some(mut clocks), Some(counters)) = (open(Software::DUMMY), open(Software::TASK_CLOCK)) else {
            return println!("skipped: this user may open no events");
        };
        let sampled = |(clock, counter)| SampledCounter {
            size: CopySize::None,
            event: 0,
            turns: TurnTimes::Clock(clock),
            counter,
        };
        let mut counters: Vec<_> = counters.into_iter().enumerate().map(sampled).collect();
        counters.iter_mut().for_each(|one| one.counter.enable().unwrap());
        clocks.iter_mut().for_each(|clock| clock.enable().unwrap());
        let (mut turns, mut shares) = (CounterTurns::default(), Vec::new());
        for at in 0..5 {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(4) {}
            turns.read(&mut counters, &mut clocks, WallNs(at), &mut shares);
        }
        assert_eq!(shares, []);
        assert!(turns.events[0].0.running > 0);
    }
}
