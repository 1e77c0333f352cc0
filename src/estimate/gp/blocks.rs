//! Rounds in, what was counted over spans of time out.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::time::Span;

/// What a round says of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delta {
    /// What was counted; up to 2^53 exactly.
    pub raw: f64,
    /// The time that the event was enabled.
    pub enabled_ns: f64,
    /// The time of it that the event was on a counter.
    pub running_ns: f64,
}

impl Delta {
    /// With what can't be put right: counts and times are not negative, none runs for longer than
    /// it is enabled, and what didn't run counted nothing.
    pub(crate) fn sane(self) -> Self {
        let positive = |value: f64| if value.is_finite() { value.max(0.0) } else { 0.0 };
        let enabled_ns = positive(self.enabled_ns);
        let running_ns = positive(self.running_ns).min(enabled_ns);
        let raw = if running_ns > 0.0 { positive(self.raw) } else { 0.0 };
        Self { raw, enabled_ns, running_ns }
    }

    /// The part of the time that the event was on a counter.
    pub(crate) fn part(&self) -> f64 {
        if self.enabled_ns > 0.0 { self.running_ns / self.enabled_ns } else { 0.0 }
    }
}

impl std::ops::AddAssign for Delta {
    fn add_assign(&mut self, other: Self) {
        self.raw += other.raw;
        self.enabled_ns += other.enabled_ns;
        self.running_ns += other.running_ns;
    }
}

/// A count over a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(crate) struct Block {
    pub(crate) event: usize,
    pub(crate) span: Span,
    pub(crate) count: f64,
    /// How long of the span the event was counted; less than its length where it isn't known when.
    pub(crate) counted: f64,
    /// Numbers the times that the event was on a counter without a break.
    pub(crate) turn: u64,
}

/// As models store it: event, start, end, count, time counted, turn.
type Stored = (usize, f64, f64, f64, f64, u64);

impl From<Stored> for Block {
    fn from((event, start, end, count, counted, turn): Stored) -> Self {
        Self { event, span: Span { start, end }, count, counted, turn }
    }
}

impl From<Block> for Stored {
    fn from(block: Block) -> Self {
        (block.event, block.span.start, block.span.end, block.count, block.counted, block.turn)
    }
}

impl Block {
    /// Whether it can be a block: finite numbers, a span, some of which was counted.
    pub(crate) fn is_sane(&self) -> bool {
        let times = self.counted > 0.0 && self.counted <= 1.001 * self.span.length();
        self.count >= 0.0 && self.count.is_finite() && times && self.span.length().is_finite()
    }
}

/// Joins rounds to blocks.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Longest span of a block of a multiplexed event, and of an event that is always counted.
    longest: [f64; 2],
    /// Whether an event changes between on and off at most once in a round.
    placed: bool,
    open: Vec<Option<Block>>,
    turns: Vec<u64>,
    /// Until when each event is known to have been on a counter.
    running_until: Vec<f64>,
    always: Vec<bool>,
    done: VecDeque<Block>,
}

/// Running for so much of a time is running for all of it.
pub(crate) const WHOLE: f64 = 0.999;

impl Blocks {
    pub(crate) fn new(always: &[bool], longest: [f64; 2], placed: bool) -> Self {
        let events = always.len();
        Self {
            longest,
            placed,
            open: vec![None; events],
            turns: vec![0; events],
            running_until: vec![f64::NEG_INFINITY; events],
            always: always.to_vec(),
            done: VecDeque::new(),
        }
    }

    /// Takes what a round says of an event.
    pub(crate) fn push(&mut self, event: usize, round: Span, delta: &Delta) {
        let part = delta.part();
        if part <= 0.0 {
            return self.close(event);
        }
        let continues = self.running_until[event] >= round.start - 1e-9;
        if !continues {
            self.close(event);
            self.turns[event] += 1;
        }
        let length = part * round.length();
        let span = match (part > WHOLE, self.placed) {
            (true, _) => round,
            // It was taken off in this round, or came on in it and stays on till its end.
            (false, true) if continues => Span { start: round.start, end: round.start + length },
            (false, true) => Span { start: round.end - length, end: round.end },
            (false, false) => round,
        };
        self.running_until[event] = span.end;
        let longest = self.longest[usize::from(self.always[event])];
        match &mut self.open[event] {
            Some(open) if open.span.length() + 0.5 * span.length() <= longest => {
                open.span.end = span.end;
                open.count += delta.raw;
                open.counted += length;
            }
            _ => {
                self.close(event);
                let turn = self.turns[event];
                self.open[event] = Some(Block { event, span, count: delta.raw, counted: length, turn });
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

    /// Forgets what ended before.
    pub(crate) fn forget(&mut self, before: f64) {
        self.done.retain(|block| block.span.end > before + 1e-9);
    }

    /// The blocks that have ended and aren't forgotten.
    pub(crate) fn done(&self) -> impl Iterator<Item = &Block> {
        self.done.iter()
    }
}
