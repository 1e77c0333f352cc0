//! Joins rounds into blocks: what was counted over spans of time.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::time::{ROUND_MS, Span};
use crate::rates::Delta;

/// A count over a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(crate) struct CountBlock {
    pub(crate) event: usize,
    pub(crate) span: Span,
    pub(crate) count: f64,
    /// How long of the span the event was counted; less than its length where it isn't known when.
    pub(crate) counted: f64,
    /// The time that it was on a counter, in milliseconds of CPU time.
    pub(crate) running: f64,
    /// How many threads ran on average, each of which is counted on its own: where the event wasn't counted all the
    /// time, it was in some of them.
    pub(crate) threads: f64,
    /// Numbers the times that the event was on a counter without a break.
    pub(crate) stay: u64,
}

/// As models store it: event, start, end, count, time counted, time running, threads, stay.
type Stored = (usize, f64, f64, f64, f64, f64, f64, u64);

impl From<Stored> for CountBlock {
    fn from((event, start, end, count, counted, running, threads, stay): Stored) -> Self {
        Self { event, span: Span { start, end }, count, counted, running, threads, stay }
    }
}

impl From<CountBlock> for Stored {
    fn from(block: CountBlock) -> Self {
        (
            block.event,
            block.span.start,
            block.span.end,
            block.count,
            block.counted,
            block.running,
            block.threads,
            block.stay,
        )
    }
}

impl CountBlock {
    /// Whether it can be a block: finite numbers, a span, some of which was counted.
    pub(crate) fn is_sane(&self) -> bool {
        let times = self.counted > 0.0 && self.counted <= 1.001 * self.span.length();
        let threads = [self.running, self.threads].into_iter().all(|value| value > 0.0 && value.is_finite());
        self.count >= 0.0 && self.count.is_finite() && times && threads && self.span.length().is_finite()
    }

    /// The mean rate, per millisecond of CPU time.
    pub(crate) fn rate(&self) -> f64 {
        self.count / self.running
    }

    /// The variance of what the mean over the threads that were counted is off by, over that between threads; none
    /// where all were. Of m threads with as many rates k were counted, for (1/k - 1/m) of the variance of a thread's
    /// rate.
    pub(crate) fn sampling_variance(&self) -> f64 {
        let part = (self.counted / self.span.length()).min(1.0);
        if self.threads < SEVERAL || part > WHOLE { 0.0 } else { (1.0 - part) / (part * self.threads) }
    }

    /// Whether the other is of the same stay, and not too long to be joined.
    fn goes_on_in(&self, other: &Self, longest: f64) -> bool {
        self.stay == other.stay && self.span.length() + 0.5 * other.span.length() <= longest
    }

    fn add(&mut self, other: &Self) {
        let length = self.span.length();
        self.threads = (self.threads * length + other.threads * other.span.length()) / (length + other.span.length());
        self.span.end = other.span.end;
        self.count += other.count;
        self.counted += other.counted;
        self.running += other.running;
    }
}

/// Joins rounds to blocks of [`ROUND_MS`].
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    open: Vec<Option<CountBlock>>,
    stays: Vec<u64>,
    /// Until when each event is known to have been on a counter.
    running_until: Vec<f64>,
    always: Vec<bool>,
    done: VecDeque<CountBlock>,
}

/// What is always counted is known well enough from blocks of this length.
const ALWAYS_COUNTED_MS: f64 = 8.0;

/// Running for so much of a time is running for all of it.
pub(crate) const WHOLE: f64 = 0.999;

/// From so many on it is several threads, on average over a round, that were counted.
pub(crate) const SEVERAL: f64 = 1.02;

impl Blocks {
    pub(crate) fn new(always: &[bool]) -> Self {
        let events = always.len();
        Self {
            open: vec![None; events],
            stays: vec![0; events],
            running_until: vec![f64::NEG_INFINITY; events],
            always: always.to_vec(),
            done: VecDeque::new(),
        }
    }

    /// Takes what a round says of an event. `unit`: how many milliseconds the unit of its span has.
    pub(crate) fn push(&mut self, event: usize, round: Span, unit: f64, delta: &Delta) {
        let part = delta.run_ratio();
        if part <= 0.0 {
            return self.close(event);
        }
        let continues = self.running_until[event] >= round.start - 1e-9;
        if !continues {
            self.close(event);
            self.stays[event] += 1;
        }
        let length = part * round.length();
        let threads = delta.enabled.as_ms() / (round.length() * unit);
        let placed = threads < SEVERAL;
        let span = match (part > WHOLE, placed) {
            (true, _) => round,
            // It was taken off in this round, or came on in it and stays on till its end.
            (false, true) if continues => Span { start: round.start, end: round.start + length },
            (false, true) => Span { start: round.end - length, end: round.end },
            (false, false) => round,
        };
        self.running_until[event] = span.end;
        let block = CountBlock {
            event,
            span,
            count: delta.count as f64,
            counted: length,
            running: delta.running.as_ms(),
            threads,
            stay: self.stays[event],
        };
        match &mut self.open[event] {
            Some(open) if open.goes_on_in(&block, ROUND_MS) => open.add(&block),
            _ => {
                self.close(event);
                self.open[event] = Some(block);
            }
        }
    }

    fn close(&mut self, event: usize) {
        self.done.extend(self.open[event].take());
    }

    /// Ends every block, as at the end of an interval.
    pub(crate) fn cut(&mut self) {
        for event in 0..self.open.len() {
            self.close(event);
        }
    }

    /// The blocks that ended after, in the order in which they did.
    pub(crate) fn ended_since(&self, since: f64) -> Vec<CountBlock> {
        let mut ended: Vec<_> = self.done.iter().filter(|block| block.span.end > since + 1e-9).copied().collect();
        ended.sort_by(|a, b| a.span.end.total_cmp(&b.span.end));
        ended
    }

    /// Holds these and no others.
    pub(crate) fn replace(&mut self, blocks: &[CountBlock]) {
        self.done.clear();
        self.done.extend(blocks);
    }

    /// Forgets what ended before.
    pub(crate) fn forget(&mut self, before: f64) {
        self.done.retain(|block| block.span.end > before + 1e-9);
    }

    /// The blocks that ended after `from`. Those of a stay are joined up to `longest`, or for events that are
    /// always counted up to [`ALWAYS_COUNTED_MS`] if that is longer, but not across the time `apart`.
    pub(crate) fn joined(&self, from: f64, apart: f64, longest: f64) -> Vec<CountBlock> {
        let mut joined: Vec<CountBlock> = Vec::new();
        let mut last = vec![usize::MAX; self.open.len()];
        for block in self.done.iter().filter(|block| block.span.end > from + 1e-9) {
            let always = self.always[block.event];
            let longest = if always { longest.max(ALWAYS_COUNTED_MS) } else { longest };
            match joined.get_mut(last[block.event]) {
                Some(open) if open.goes_on_in(block, longest) && (block.span.start - apart).abs() > 1e-9 => {
                    open.add(block);
                }
                _ => {
                    last[block.event] = joined.len();
                    joined.push(*block);
                }
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::CpuNs;

    /// Of one event that is always counted and one that is multiplexed, in rounds of 4 ms; a round counts one.
    fn counted(rounds: &[bool]) -> Blocks {
        let mut blocks = Blocks::new(&[true, false]);
        for (i, &on) in rounds.iter().enumerate() {
            let round = Span { start: 4.0 * i as f64, end: 4.0 * (i + 1) as f64 };
            for part in [1.0, f64::from(u8::from(on))] {
                let event = usize::from(blocks.running_until[0] >= round.end);
                let running = if part > 0.0 { CpuNs(4_000_000) } else { CpuNs(0) };
                blocks.push(event, round, 1.0, &Delta { count: part as u64, enabled: CpuNs(4_000_000), running });
            }
        }
        blocks.cut();
        blocks
    }

    fn spans(blocks: &[CountBlock], event: usize) -> Vec<(f64, f64)> {
        blocks.iter().filter(|b| b.event == event).map(|b| (b.span.start, b.span.end)).collect()
    }

    #[test]
    fn stays_are_joined_up_to_a_length_and_not_across_a_time_by_hand() {
        let blocks = counted(&[true, true, true, false, true]);
        assert_eq!(spans(&blocks.joined(0.0, 0.0, 4.0), 1), [(0.0, 4.0), (4.0, 8.0), (8.0, 12.0), (16.0, 20.0)]);
        let joined = blocks.joined(0.0, 0.0, 8.0);
        assert_eq!(spans(&joined, 1), [(0.0, 8.0), (8.0, 12.0), (16.0, 20.0)]);
        assert_eq!(spans(&joined, 0), [(0.0, 8.0), (8.0, 16.0), (16.0, 20.0)]);
        assert_eq!(spans(&blocks.joined(0.0, 4.0, 8.0), 1), [(0.0, 4.0), (4.0, 12.0), (16.0, 20.0)]);
        assert_eq!(spans(&blocks.joined(8.0, 0.0, 8.0), 1), [(8.0, 12.0), (16.0, 20.0)]);
    }

    #[test]
    fn what_some_of_several_threads_counted_is_a_sample_of_them_by_hand() {
        let block = |threads: u64, counted: u64| {
            let mut blocks = Blocks::new(&[false]);
            let ms = |ms: u64| CpuNs(ms * 1_000_000);
            let delta = Delta { count: 120 * counted, enabled: ms(4 * threads), running: ms(4 * counted) };
            blocks.push(0, Span { start: 0.0, end: 4.0 }, 1.0, &delta);
            blocks.cut();
            blocks.joined(-1.0, 0.0, 4.0)[0]
        };
        // One of four for all of a round: 1/1 - 1/4; two of four: 1/2 - 1/4. The rate is that of a thread.
        let found = [(4, 1), (4, 2), (4, 4), (1, 1)].map(|(threads, counted)| block(threads, counted));
        assert_eq!(found.map(|block| block.sampling_variance()), [0.75, 0.25, 0.0, 0.0]);
        assert!(found.iter().all(|block| (block.rate() - 30.0).abs() < 1e-9 && block.span.length() == 4.0));
    }

    #[test]
    fn nothing_counted_is_no_block() {
        assert!(Blocks::new(&[]).joined(0.0, 0.0, 8.0).is_empty());
        assert!(spans(&counted(&[false; 3]).joined(0.0, 0.0, 8.0), 1).is_empty());
    }

    proptest! {
        #[test]
        fn joining_loses_no_count_and_makes_no_more_blocks(
            rounds in prop::collection::vec(any::<bool>(), 0..40),
            longest in 4.0..40.0f64,
        ) {
            let blocks = counted(&rounds);
            let (single, joined) = (blocks.joined(-1.0, 20.0, 4.0), blocks.joined(-1.0, 20.0, longest));
            let count = |blocks: &[CountBlock]| blocks.iter().map(|b| b.count).sum::<f64>();
            prop_assert_eq!(count(&single), count(&joined));
            prop_assert!(joined.len() <= single.len());
            for block in &joined {
                let longest = if block.event == 0 { longest.max(ALWAYS_COUNTED_MS) } else { longest };
                prop_assert!(block.span.length() <= longest + 2.0 && (block.counted - block.span.length()).abs() < 1e-9);
                prop_assert!(block.span.end <= 20.0 || block.span.start >= 20.0);
            }
        }
    }
}
