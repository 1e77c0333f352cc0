//! Says where a timer that samples, and the sampling of waits, show something else than what a program does.

use std::collections::BTreeMap;

use crate::names::shown;
use crate::profile::{EventId, Tree};

use super::super::OFF_CPU;
use super::share;
use crate::number::si;

/// Beginnings of the names of kernel functions that let interrupts in again: a timer samples there what ran without
/// them.
const ENABLE_INTERRUPTS: [&str; 6] = [
    "_raw_spin_unlock_irq",
    "finish_task_switch",
    "handle_softirqs",
    "__do_softirq",
    "do_softirq",
    "__local_bh_enable_ip",
];

/// The part of the samples from which on that is told: one in so many.
const WORTH_A_WORD: u64 = 20;

/// Waits in a second of CPU time from which on sampling them slows a program down: each took 3 to 8 µs.
const MANY_WAITS: f64 = 20_000.0;

/// What a reader should know of the kernel's functions, and of the speed of a program whose waits are sampled.
pub(super) fn findings(tree: &Tree) -> impl Iterator<Item = String> {
    let clock = tree.find_event("cpu-clock").or_else(|| tree.find_event("task-clock"));
    let without_interrupts = clock.and_then(|clock| without_interrupts(tree, clock));
    without_interrupts.into_iter().chain(clock.and_then(|clock| slowed(tree, clock)))
}

fn without_interrupts(tree: &Tree, clock: EventId) -> Option<String> {
    let enables = |name: &str| ENABLE_INTERRUPTS.iter().any(|beginning| name.starts_with(beginning));
    let mut found: BTreeMap<&str, u64> = BTreeMap::new();
    for node in tree.walk() {
        let (frame, samples) = (node.frame(), node.samples(clock));
        if frame.is_kernel() && enables(frame.name) {
            let sum = found.entry(frame.name).or_default();
            *sum = sum.saturating_add(samples);
        }
    }
    let samples = found.values().copied().fold(0, u64::saturating_add);
    let (most, _) = found.into_iter().max_by_key(|(_, samples)| *samples)?;
    let all = tree.total(clock).samples;
    (samples > 0 && samples.saturating_mul(WORTH_A_WORD) >= all).then(|| {
        format!(
            "{} of the samples are where the kernel lets interrupts in again, most in {}: without hardware counters a timer samples, \
             and finds there what ran without interrupts; that is seldom the time of these functions themselves",
            share(samples, all),
            shown(most)
        )
    })
}

fn slowed(tree: &Tree, clock: EventId) -> Option<String> {
    let waits = tree.total(tree.find_event(OFF_CPU)?).samples as f64;
    let seconds = tree.total(clock).weight as f64 / 1e9;
    let rate = waits / seconds;
    (seconds >= 0.1 && rate >= MANY_WAITS).then(|| {
        format!(
            "{} waits a CPU second were sampled (--off-cpu), which took some µs each: the program ran slower than it does without",
            si(rate)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;
    use crate::profile::{Amount, Frame, ProfileEvent, SampleMeasure};

    fn told(tree: &Tree) -> Vec<String> {
        findings(tree).collect()
    }

    #[test]
    fn places_where_interrupts_come_in_again_are_told() {
        let kernel = "[kernel.kallsyms]";
        let unlock = format!("main;__wake_up|{kernel};_raw_spin_unlock_irqrestore|{kernel}");
        let switch = format!("main;schedule|{kernel};finish_task_switch.isra.0|{kernel}");
        let words = told(&tree(&[(&unlock, 30), (&switch, 10), ("main", 60)])).join("\n");
        assert!(
            words.starts_with(
                "40.0% of the samples are where the kernel lets interrupts in again, most in _raw_spin_unlock_irqrestore:"
            ),
            "{words}"
        );
        // A function of the program that is called the same, and a few samples, are no reason.
        assert!(told(&tree(&[("main;finish_task_switch", 40), ("main", 60)])).is_empty());
        assert!(told(&tree(&[(&unlock, 4), ("main", 96)])).is_empty());
        assert!(told(&Tree::default()).is_empty());
    }

    #[test]
    fn many_sampled_waits_are_told() {
        let of = |waits: u64| {
            let mut tree = tree(&[("main", 1_000_000_000)]);
            let (place, event) = (tree.sampled(), tree.event(&ProfileEvent::new(OFF_CPU, SampleMeasure::Samples)));
            let frame = tree.frame(&Frame::function("main"));
            tree.stack(place, vec![frame], event, Amount { samples: waits, weight: waits * 1000 });
            told(&tree)
        };
        assert!(of(50_000)[0].starts_with("50k waits a CPU second were sampled"), "{:?}", of(50_000));
        assert!(of(10_000).is_empty());
    }
}
