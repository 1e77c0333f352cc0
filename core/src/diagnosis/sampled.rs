//! Gathers what sampled stacks say: the hottest function, and the time in which threads waited for locks.

use std::collections::HashMap;

use crate::profile::{FrameId, FrameKind, NodeRef, Tree};
use crate::stacks::{OFF_CPU, WaitReason, waiting_function};
use crate::units::WallNs;

/// What is known of the target by its sampled stacks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampledFacts<'a> {
    /// The function in which most samples were taken.
    pub hot: Option<&'a HotFunction>,
    /// How long threads waited for locks; `None` where waits weren't sampled.
    pub locks: Option<&'a LockWaits>,
    /// The time in which both were sampled.
    pub over: WallNs,
}

/// The function in which most samples were taken.
#[derive(Clone, Debug, PartialEq)]
pub struct HotFunction {
    /// Its name, which may hold any character.
    pub name: String,
    /// The share of samples in it alone.
    pub share: f64,
    /// Where samples were taken.
    pub space: SampledSpace,
}

/// Where samples of an event are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampledSpace {
    /// Wherever it occurs.
    All,
    /// In user space alone.
    User,
}

impl SampledSpace {
    /// By the event's name: `cycles:u` is of user space.
    pub fn of(event: &str) -> Self {
        let modifiers = event.rsplit_once(':').map_or("", |(_, modifiers)| modifiers);
        let is_letters = modifiers.bytes().all(|letter| b"ukhpPGHSDWeI".contains(&letter));
        if is_letters && modifiers.contains('u') && !modifiers.contains('k') { Self::User } else { Self::All }
    }
}

impl HotFunction {
    /// By the event of a profile that is shown first; `None` where nothing was sampled of it.
    pub fn of(tree: &Tree) -> Option<Self> {
        let event = tree.default_event()?;
        let mut by_function = HashMap::<FrameId, u64>::new();
        for node in tree.nodes().filter(|node| node.frame().kind == FrameKind::Function) {
            *by_function.entry(node.frame_id()).or_default() += node.weight(event);
        }
        let (function, most) =
            by_function.into_iter().max_by_key(|(frame, weight)| (*weight, std::cmp::Reverse(*frame)))?;
        let share = most as f64 / tree.total(event).weight as f64;
        let space = SampledSpace::of(&tree.event_of(event).name);
        (most > 0).then(|| Self { name: tree.frame_of(function).name.to_owned(), share, space })
    }
}

/// How long threads waited for locks.
#[derive(Clone, Debug, PartialEq)]
pub struct LockWaits {
    /// The sum over all threads, in seconds.
    pub seconds: f64,
    /// The function that took most of the locks; `None` where nothing waited for one.
    pub most: Option<HotFunction>,
}

impl LockWaits {
    /// By the event `off-cpu` of a profile; `None` where it wasn't sampled.
    pub fn of(tree: &Tree) -> Option<Self> {
        let event = tree.find_event(OFF_CPU)?;
        let lock = WaitReason::Lock.name();
        let waited = tree.inclusive(event);
        let mut by_function = HashMap::<FrameId, u64>::new();
        for node in tree.nodes().filter(|node| is_wait(node) && node.frame().name == lock) {
            let taken_by = waiting_function(&node).unwrap_or(FrameId::ROOT);
            *by_function.entry(taken_by).or_default() += waited[node.id().index()].weight;
        }
        let all: u64 = by_function.values().sum();
        let most = by_function.into_iter().max_by_key(|(frame, weight)| (*weight, std::cmp::Reverse(*frame)));
        let most = most.filter(|(_, most)| *most > 0).map(|(function, most)| HotFunction {
            name: tree.frame_of(function).name.to_owned(),
            share: most as f64 / all as f64,
            space: SampledSpace::All,
        });
        Some(Self { seconds: all as f64 / 1e9, most })
    }
}

/// Whether it is what a thread waits for.
fn is_wait(node: &NodeRef<'_>) -> bool {
    node.frame().module == OFF_CPU
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::profile::{Frame, ProfileEvent, SampleMeasure, TreeOptions};

    /// A tree of stacks, each frame as `name@module`, with the ns that were waited there.
    fn tree(stacks: &[(&str, u64)]) -> Tree {
        let mut tree = Tree::new(TreeOptions::default());
        let event = tree.event(&ProfileEvent::new(OFF_CPU, SampleMeasure::Samples));
        for (stack, weight) in stacks {
            let frames: Vec<_> = stack
                .split(' ')
                .map(|frame| frame.split_once('@').unwrap_or((frame, "prog")))
                .map(|(name, module)| (name.replace('_', " "), module))
                .map(|(name, module)| tree.frame(&Frame { name: &name, module, ..Frame::default() }))
                .collect();
            let thread = tree.thread();
            frames.into_iter().for_each(|frame| tree.enter(thread, frame));
            tree.sample(thread, event, *weight);
            tree.end(thread);
        }
        tree
    }

    #[test]
    fn locks_are_those_of_the_innermost_function_of_the_program() {
        let of_lock = "lock@libc.so.6 futex@[kernel.kallsyms] [waits_for_a_lock]@off-cpu";
        let found = LockWaits::of(&tree(&[
            (&format!("main update {of_lock} [woken_by_worker]@off-cpu"), 2_000_000_000),
            (&format!("main update {of_lock}"), 1_000_000_000),
            (&format!("main log {of_lock}"), 1_000_000_000),
            ("main join@libc.so.6 [waits_for_a_thread]@off-cpu", 9_000_000_000),
        ]));
        let most = HotFunction { name: "update".into(), share: 0.75, space: SampledSpace::All };
        assert_eq!(found, Some(LockWaits { seconds: 4.0, most: Some(most) }));
    }

    #[test]
    fn the_hottest_function_is_that_with_most_in_itself() {
        let found = HotFunction::of(&tree(&[("main f", 30), ("main g f", 30), ("main g", 40)]));
        assert_eq!(found, Some(HotFunction { name: "f".into(), share: 0.6, space: SampledSpace::All }));
        assert_eq!(HotFunction::of(&tree(&[])), None);
    }

    #[test]
    fn samples_of_user_space_are_told_by_modifiers() {
        let space = |name| SampledSpace::of(name);
        assert_eq!(["cycles:u", "cpu-clock:upp", "cycles:uH"].map(space), [SampledSpace::User; 3]);
        assert_eq!(
            ["cycles", "cycles:uk", "cycles:k", "syscalls:sys_enter_futex", "a:"].map(space),
            [SampledSpace::All; 5]
        );
    }

    #[test]
    fn no_lock_was_waited_for_where_waits_were_sampled_and_none_was_for_one() {
        let none = Some(LockWaits { seconds: 0.0, most: None });
        assert_eq!(LockWaits::of(&tree(&[("main [sleeps]@off-cpu", 9)])), none);
        assert_eq!(LockWaits::of(&tree(&[])), none);
        assert_eq!(LockWaits::of(&Tree::new(TreeOptions::default())), None);
    }
}
