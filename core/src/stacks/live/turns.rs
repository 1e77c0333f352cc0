//! Reads for how long sampled events were on counters, which they share with all that is counted.

use super::super::RunShare;
use super::open::SampledCounter;
use crate::units::WallNs;

/// An event that was on a counter for a smaller part of the time than this took turns; less is how times are read.
const ALL_THE_TIME: f64 = 0.995;

/// With more open events than this, they are read in every tenth pass: each takes a system call, often to another CPU.
const FEW: usize = 128;
const SELDOM: u32 = 10;

/// The times of events when they were read last.
#[derive(Debug, Default)]
pub(super) struct CounterTurns {
    /// By event: the time enabled and the time running, in nanoseconds; and whether it took turns.
    events: Vec<(u64, u64, bool)>,
    passes: u32,
}

impl CounterTurns {
    /// Adds what is new of events that take turns. All are read at nearly one time; one that can't be read counts as before.
    pub(super) fn read(&mut self, counters: &mut [SampledCounter], at: WallNs, into: &mut Vec<RunShare>) {
        self.passes += 1;
        let count = counters.iter().filter(|one| one.takes_turns).count();
        if count == 0 || (count > FEW && self.passes % SELDOM != 1) {
            return;
        }
        let mut now = Vec::new();
        for one in counters.iter_mut().filter(|one| one.takes_turns) {
            let Ok(data) = one.counter.read_full() else { return };
            let nanoseconds = |time: Option<std::time::Duration>| time.map_or(0, |time| time.as_nanos() as u64);
            let event = one.event as usize;
            if now.len() <= event {
                now.resize(event + 1, (0, 0));
            }
            now[event] =
                (now[event].0 + nanoseconds(data.time_enabled()), now[event].1 + nanoseconds(data.time_running()));
        }
        self.take(&now, at, into);
    }

    fn take(&mut self, now: &[(u64, u64)], at: WallNs, into: &mut Vec<RunShare>) {
        self.events.resize(now.len().max(self.events.len()), (0, 0, false));
        for (event, (before, &(enabled, running))) in (0..).zip(self.events.iter_mut().zip(now)) {
            let (enabled_ns, running_ns) = (enabled.saturating_sub(before.0), running.saturating_sub(before.1));
            if enabled_ns == 0 || running_ns == 0 {
                continue;
            }
            let takes_turns = (running_ns as f64) < ALL_THE_TIME * enabled_ns as f64;
            // Once it runs all the time again, that has to be known.
            if takes_turns || before.2 {
                into.push(RunShare { until: at, event, enabled_ns, running_ns });
            }
            *before = (enabled, running, takes_turns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_turns_are_told_and_their_end() {
        let mut turns = CounterTurns::default();
        let mut told = |at, now: &[(u64, u64)]| {
            let mut into = Vec::new();
            turns.take(now, WallNs(at), &mut into);
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
}
