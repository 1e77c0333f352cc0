//! Prints the functions in which most was sampled.

use std::collections::HashMap;

use crate::events::Unit;
use crate::names::shown;
use crate::number::{amount, share};
use crate::profile::{EventId, Frame, FrameId, FrameKind, SampleMeasure, Tree};
use crate::stacks::StackQuality;

/// The number of lines for each event, at most.
const MOST: usize = 20;

/// What has less than this part of all stands in no line.
const LEAST: f64 = 0.005;

/// For each sampled event its samples, how far their stacks go, what has gone missing, and the functions in which most of
/// it was; then what is to be known of the stacks. `target` says what was measured, as in [`StackQuality::findings`].
pub fn stacks(tree: &Tree, quality: &StackQuality, target: &str) -> String {
    let losses = quality.losses.to_string();
    let missing = if losses.is_empty() { losses } else { format!(" ({losses})") };
    let mut out = String::new();
    let is_sampled = |event: &EventId| !tree.event_of(*event).is_of_calls();
    for event in tree.event_ids().filter(is_sampled) {
        let total = tree.total(event);
        let name = shown(&tree.event_of(event).name).into_owned();
        let counted = match tree.event_of(event).measure {
            SampleMeasure::Sum(_) => format!("{} with all calls, modelled", amount(total.weight as f64, &Unit::Count)),
            _ if quality.lacks_stacks(tree) => format!("{} samples without call stacks", total.samples),
            _ if total.samples == 1 => "1 sample with its call stack".to_owned(),
            _ => format!("{} samples with call stacks", total.samples),
        };
        let reach = quality.reach(tree, event).map_or_else(String::new, |reach| format!(", {reach}"));
        out += &format!("{name}: {counted}{reach}{missing}\n");
        let part_of = |weight: u64| weight as f64 / total.weight.max(1) as f64;
        let hottest = hottest(tree, event);
        for (frame, weight) in hottest.iter().filter(|(_, weight)| part_of(*weight) >= LEAST) {
            let frame = tree.frame_of(*frame);
            let part = share(part_of(*weight));
            let module = frame.module.rsplit('/').next().unwrap_or_default();
            let module = if module.is_empty() { String::new() } else { format!("  {}", shown(module)) };
            let is_namesake = |other: Frame<'_>| (other.name, other.module) == (frame.name, frame.module);
            let namesakes = hottest.iter().filter(|(other, _)| is_namesake(tree.frame_of(*other))).count();
            let file = frame.file.rsplit('/').next().filter(|file| namesakes > 1 && !file.is_empty());
            let file = file.map_or_else(String::new, |file| format!(" ({})", shown(file)));
            out += &format!("{part:>8}  {}{file}{module}\n", shown(frame.name));
        }
    }
    quality.findings(tree, target).iter().for_each(|finding| out += &format!("{finding}\n"));
    out
}

/// Functions by what was sampled in them, without what they called; of equals the one seen first.
fn hottest(tree: &Tree, event: EventId) -> Vec<(FrameId, u64)> {
    let mut by_function: HashMap<FrameId, u64> = HashMap::new();
    for node in tree.walk() {
        let weight = node.weight(event);
        if weight > 0 && node.frame().kind == FrameKind::Function {
            *by_function.entry(node.frame_id()).or_default() += weight;
        }
    }
    let mut functions: Vec<_> = by_function.into_iter().collect();
    functions.sort_by_key(|&(frame, weight)| (std::cmp::Reverse(weight), frame));
    functions.truncate(MOST);
    functions
}
