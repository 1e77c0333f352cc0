//! Divides the samples of a function by the lines of its source, and where no lines are known by the places of its
//! code.
//!
//! The tree knows functions, and no lines: nodes stay few, and functions whole. Samples keep their stacks, and those
//! the lines, so that one function's lines are counted when somebody asks.

use std::collections::BTreeMap;

use super::{NamelessReason, StackFrame};
use crate::profile::Amount;

/// What was sampled at a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineSamples {
    /// While the line itself ran.
    pub own: Amount,
    /// While it or what it called ran; a recursion counts once.
    pub total: Amount,
}

/// The samples of one function and event, by lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionLines {
    /// Name of the function, as its frames have it; it may hold any character.
    pub name: String,
    /// Path of the source file; `None` where no debug information has it.
    pub file: Option<String>,
    /// The program, library or kernel module.
    pub module: String,
    /// Why the function has no name of its own.
    pub nameless: Option<NamelessReason>,
    /// The lines that were sampled.
    pub lines: BTreeMap<u32, LineSamples>,
    /// What was sampled at lines of the same file of other functions, which were inlined into this one. It is part of
    /// what `lines` have at the line that calls each of these.
    pub inlined: BTreeMap<u32, LineSamples>,
    /// What was sampled where no line is known, by the offset in the module's file: of a caller within the instruction
    /// that called.
    pub offsets: BTreeMap<u64, LineSamples>,
    /// Samples of which the line isn't known.
    pub unknown: LineSamples,
    /// All samples of the function.
    pub whole: LineSamples,
    /// All samples of the event, in whatever function, when these were counted.
    pub of_all: Amount,
}

impl LineSamples {
    /// Adds what was sampled at another place.
    pub(super) fn join(&mut self, other: &Self) {
        add(&mut self.own, other.own);
        add(&mut self.total, other.total);
    }

    fn add(&mut self, amount: Amount, is_own: bool, is_repeated: bool) {
        if is_own {
            add(&mut self.own, amount);
        }
        if !is_repeated {
            add(&mut self.total, amount);
        }
    }
}

impl FunctionLines {
    /// Adds a stack: the frames of the function on it, the innermost first, and whether the innermost of all is the
    /// function's.
    pub(super) fn add(&mut self, frames: &[&StackFrame], is_innermost: bool, amount: Amount) {
        let Some(first) = frames.first() else { return };
        self.file = self.file.take().or_else(|| first.file.clone());
        self.nameless = self.nameless.or(first.nameless);
        if self.module.is_empty() {
            self.name.clone_from(&first.name);
            self.module.clone_from(&first.module);
        }
        for (index, frame) in frames.iter().enumerate() {
            let before = &frames[..index];
            let line = match frame.line {
                Some(line) => self.lines.entry(line).or_default(),
                None => &mut self.unknown,
            };
            let is_own = index == 0 && is_innermost;
            line.add(amount, is_own, before.iter().any(|before| before.line == frame.line));
            if let Some(offset) = frame.offset {
                let is_repeated = before.iter().any(|before| before.offset == frame.offset);
                self.offsets.entry(offset).or_default().add(amount, is_own, is_repeated);
            }
        }
        if is_innermost {
            add(&mut self.whole.own, amount);
        }
        add(&mut self.whole.total, amount);
    }

    /// Adds lines of code that was inlined into the function, of one stack, the innermost first, and whether the
    /// innermost of all is there.
    pub(super) fn add_inlined(&mut self, lines: &[u32], is_innermost: bool, amount: Amount) {
        for (index, &line) in lines.iter().enumerate() {
            let is_repeated = lines[..index].contains(&line);
            self.inlined.entry(line).or_default().add(amount, index == 0 && is_innermost, is_repeated);
        }
    }

    /// Adds samples of the event, in whatever function they are.
    pub(super) fn add_of_all(&mut self, amount: Amount) {
        add(&mut self.of_all, amount);
    }

    /// The line at which most of the function's own samples are; where it has none, most of all.
    pub fn hottest(&self) -> Option<u32> {
        hottest(&self.lines)
    }
}

/// The place with most samples of its own; where none has any, with most of all. Of equals the first.
pub fn hottest<K: Copy + Ord>(samples: &BTreeMap<K, LineSamples>) -> Option<K> {
    let weight = |line: &LineSamples| (line.own.weight, line.own.samples, line.total.weight, line.total.samples);
    samples.iter().rev().max_by_key(|(_, line)| weight(line)).map(|(&place, _)| place)
}

fn add(sum: &mut Amount, amount: Amount) {
    sum.samples = sum.samples.saturating_add(amount.samples);
    sum.weight = sum.weight.saturating_add(amount.weight);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(line: Option<u32>) -> StackFrame {
        StackFrame { name: "f".into(), module: "/p".into(), file: Some("f.c".into()), line, ..StackFrame::default() }
    }

    const ONE: Amount = Amount { samples: 1, weight: 10 };

    #[test]
    fn a_recursion_counts_each_line_once() {
        let (at3, at5, nowhere) = (frame(Some(3)), frame(Some(5)), frame(None));
        let mut lines = FunctionLines::default();
        assert_eq!(lines.hottest(), None);
        // Innermost at 5, called from 3, called from 3.
        lines.add(&[&at5, &at3, &at3], true, ONE);
        // Something else, called from 3.
        lines.add(&[&at3], false, ONE);
        lines.add(&[&nowhere], true, ONE);
        lines.add(&[], false, ONE);
        let samples = |line: &LineSamples| (line.own.samples, line.total.samples);
        let by_line: Vec<_> = lines.lines.iter().map(|(&line, counted)| (line, samples(counted))).collect();
        assert_eq!(by_line, [(3, (0, 2)), (5, (1, 1))]);
        assert_eq!((samples(&lines.unknown), samples(&lines.whole)), ((1, 1), (2, 3)));
        assert_eq!((lines.hottest(), lines.file.as_deref(), lines.module.as_str()), (Some(5), Some("f.c"), "/p"));
    }

    #[test]
    fn code_without_lines_is_counted_by_its_offsets() {
        let at = |offset| StackFrame { offset: Some(offset), ..frame(None) };
        let (inner, outer, with_line) = (at(0x20), at(0x11), frame(Some(3)));
        let mut lines = FunctionLines::default();
        lines.add(&[&inner, &outer, &outer], true, ONE);
        lines.add(&[&outer], false, ONE);
        lines.add(&[&with_line], true, ONE);
        let by_offset: Vec<_> =
            lines.offsets.iter().map(|(&at, line)| (at, line.own.samples, line.total.samples)).collect();
        assert_eq!(by_offset, [(0x11, 0, 2), (0x20, 1, 1)]);
        // All of these have no line, and a recursion is one sample of that.
        assert_eq!(
            (lines.unknown.own.samples, lines.unknown.total.samples, hottest(&lines.offsets)),
            (1, 2, Some(0x20))
        );
    }

    proptest! {
        #[test]
        fn own_samples_of_lines_add_up(stacks in prop::collection::vec((prop::collection::vec(0_u32..4, 1..5), any::<bool>()), 0..20)) {
            let frames: Vec<_> = (0..4).map(|line| frame((line > 0).then_some(line))).collect();
            let mut lines = FunctionLines::default();
            for (stack, is_innermost) in &stacks {
                let stack: Vec<_> = stack.iter().map(|&line| &frames[line as usize]).collect();
                lines.add(&stack, *is_innermost, ONE);
            }
            let all = || lines.lines.values().chain([&lines.unknown]);
            prop_assert_eq!(all().map(|line| line.own.samples).sum::<u64>(), lines.whole.own.samples);
            prop_assert!(all().all(|line| line.own.samples <= line.total.samples && line.total.samples <= lines.whole.total.samples));
            prop_assert_eq!(lines.whole.total.samples, stacks.len() as u64);
        }
    }
}
