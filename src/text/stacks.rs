//! Prints the functions in which most was sampled.

use std::collections::HashMap;

use crate::events::Unit;
use crate::names::shown;
use crate::number::{amount, share, time};
use crate::profile::{EventId, Frame, FrameId, FrameKind, NodeRef, SampleMeasure, Tree};
use crate::stacks::{Losses, OFF_CPU, Reach, StackQuality};

/// The number of lines for each event, at most.
const MOST: usize = 20;

/// What has less than this part of all stands in no line.
const LEAST: f64 = 0.005;

/// For each sampled event its samples, how far their stacks go, what has gone missing, and the functions in which most of
/// it was; then what is to be known of the stacks. `target` says what was measured, as in [`StackQuality::findings`].
pub fn stacks(tree: &Tree, quality: &StackQuality, target: &str) -> String {
    let mut out = String::new();
    let sampled: Vec<_> = tree.event_ids().filter(|event| !tree.event_of(*event).is_of_calls()).collect();
    for &event in &sampled {
        let total = tree.total(event);
        let name = shown(&tree.event_of(event).name).into_owned();
        let counted = match tree.event_of(event).measure {
            SampleMeasure::Sum(_) => format!("{} with all calls, modelled", amount(total.weight as f64, &Unit::Count)),
            _ if quality.lacks_stacks(tree) => format!("{} samples without call stacks", total.samples),
            _ if total.samples == 1 => "1 sample with its call stack".to_owned(),
            _ => format!("{} samples with call stacks", total.samples),
        };
        let reach = quality.reach(tree, event);
        let missing = in_brackets(match reach {
            Some(Reach { cut, unknown, .. }) if sampled.len() > 1 => Losses { cut, unknown, ..Losses::default() },
            None if sampled.len() > 1 => Losses::default(),
            _ => quality.losses,
        });
        let reach = reach.map_or_else(String::new, |reach| format!(", {reach}"));
        out += &format!("{name}: {counted}{reach}{missing}\n");
        let part_of = |weight: u64| weight as f64 / total.weight.max(1) as f64;
        let is_off_cpu = tree.event_of(event).name == OFF_CPU;
        let hottest = hottest(tree, event);
        for (frame, weight) in hottest.iter().filter(|(_, weight)| part_of(*weight) >= LEAST) {
            let frame = tree.frame_of(*frame);
            let part = share(part_of(*weight));
            if is_off_cpu {
                let waited = time(*weight as f64);
                out += &format!(
                    "{part:>8}  {waited:>8}  {}
",
                    shown(frame.name)
                );
                continue;
            }
            let module = frame.module.rsplit('/').next().unwrap_or_default();
            let module = if module.is_empty() { String::new() } else { format!("  {}", shown(module)) };
            let is_namesake = |other: Frame<'_>| (other.name, other.module) == (frame.name, frame.module);
            let namesakes = hottest.iter().filter(|(other, _)| is_namesake(tree.frame_of(*other))).count();
            let file = frame.file.rsplit('/').next().filter(|file| namesakes > 1 && !file.is_empty());
            let file = file.map_or_else(String::new, |file| format!(" ({})", shown(file)));
            out += &format!(
                "{part:>8}  {}{file}{module}
",
                shown(frame.name)
            );
        }
    }
    let of_all = Losses { cut: 0, unknown: 0, ..quality.losses }.to_string();
    if sampled.len() > 1 && !of_all.is_empty() {
        out += &format!("of all events together: {of_all}\n");
    }
    let findings = quality.copying().into_iter().chain(quality.findings(tree, target));
    findings.for_each(|finding| out += &format!("{finding}\n"));
    out
}

/// ` (3 lost)`; nothing where nothing has gone missing.
fn in_brackets(losses: Losses) -> String {
    let losses = losses.to_string();
    if losses.is_empty() { losses } else { format!(" ({losses})") }
}

/// The frame that a line tells of: who woke a thread stands behind what it waited for.
fn hot_frame(tree: &Tree, node: &NodeRef<'_>) -> FrameId {
    let caller = node.parent().map(|parent| tree.node(parent)).filter(|caller| {
        let (frame, caller) = (node.frame(), caller.frame());
        frame.module == OFF_CPU && caller.module == OFF_CPU
    });
    caller.map_or(node.frame_id(), |caller| caller.frame_id())
}

/// Functions by what was sampled in them, without what they called; of equals the one seen first.
fn hottest(tree: &Tree, event: EventId) -> Vec<(FrameId, u64)> {
    let mut by_function: HashMap<FrameId, u64> = HashMap::new();
    for node in tree.walk() {
        let weight = node.weight(event);
        if weight > 0 && node.frame().kind == FrameKind::Function {
            *by_function.entry(hot_frame(tree, &node)).or_default() += weight;
        }
    }
    let mut functions: Vec<_> = by_function.into_iter().collect();
    functions.sort_by_key(|&(frame, weight)| (std::cmp::Reverse(weight), frame));
    functions.truncate(MOST);
    functions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Amount, Frame, ProfileEvent, TreeOptions};

    #[test]
    fn waits_are_listed_by_what_is_waited_for_in_seconds() {
        let mut tree = Tree::new(TreeOptions::default());
        let (place, event) = (tree.sampled(), tree.event(&ProfileEvent::new(OFF_CPU, SampleMeasure::Samples)));
        let read = tree.frame(&Frame::function("read"));
        let mut off_cpu = |name| tree.frame(&Frame { module: OFF_CPU, ..Frame::function(name) });
        let [pipe, sleep, worker, other] =
            ["[waits for a pipe or socket]", "[sleeps]", "[woken by worker]", "[woken by other]"].map(&mut off_cpu);
        let stacks = [
            (vec![read, pipe, worker], 500),
            (vec![read, pipe, other], 250),
            (vec![read, pipe], 50),
            (vec![sleep], 200),
        ];
        for (stack, ms) in stacks {
            tree.stack(place, stack, event, Amount { samples: 1, weight: ms * 1_000_000 });
        }
        let text = stacks_of(&tree);
        let lines: Vec<_> =
            text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, ["80.0% 800 ms [waits for a pipe or socket]", "20.0% 200 ms [sleeps]"]);
    }

    fn stacks_of(tree: &Tree) -> String {
        stacks(tree, &StackQuality::default(), "-a")
    }
}
