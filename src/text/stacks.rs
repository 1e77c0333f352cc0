//! Prints the functions in which most was sampled.

use std::collections::HashMap;

use super::column_width;
use crate::monitor::Monitor;
use crate::names::shown;
use crate::number::{share, share_interval, time};
use crate::profile::{EventId, Frame, FrameId, FrameKind, NodeRef, SampleMeasure, Tree, share_error};
use crate::rates::{Confidence, Uncertain};
use crate::stacks::{Losses, OFF_CPU, Reach, StackOrigin, StackQuality, UnwindMethod, waiting_function};
use crate::units::CpuNs;

/// The number of lines for each event, at most.
const MOST: usize = 30;

/// Functions with less than this part of all in themselves stand in no line, unless they have so much with what they
/// called.
const LEAST: f64 = 0.005;
const LEAST_CALLER: f64 = 0.05;

/// For each sampled event its samples, how far their stacks go, what has gone missing, and the functions in which most
/// of it was, each with the interval of its share; then what is to be known of the stacks. `target` says what was
/// measured, as in [`StackQuality::findings`].
///
/// `little` says of which event the samples stand for a part of the CPU time only.
pub fn stacks(
    tree: &Tree,
    quality: &StackQuality,
    target: &str,
    confidence: Confidence,
    little: Option<LittleSampled>,
) -> String {
    let mut out = String::new();
    let sampled: Vec<_> = tree.event_ids().filter(|event| !tree.event_of(*event).is_of_calls()).collect();
    for &event in &sampled {
        let little = little.filter(|little| little.event == event);
        out += &format!("{}\n", title(tree, quality, event, (sampled.len(), little)));
        out += &little.map_or_else(String::new, |_| of_that_part(confidence));
        out += &match tree.event_of(event).name == OFF_CPU {
            true => waits(tree, event),
            false => functions(tree, quality, event, confidence),
        };
    }
    let of_all = Losses { cut: 0, unknown: 0, ..quality.losses }.to_string();
    if sampled.len() > 1 && !of_all.is_empty() {
        out += &format!("of all events together: {of_all}\n");
    }
    let findings = quality.copying().into_iter().chain(quality.findings(tree, target));
    findings.for_each(|finding| out += &format!("{finding}\n"));
    out
}

/// Samples that stand for little of the CPU time that passed.
#[derive(Clone, Copy, Debug)]
pub struct LittleSampled {
    event: EventId,
    /// The part of the CPU time.
    part: f64,
}

impl LittleSampled {
    /// The first event of a run whose samples stand for little; `None` if there is none.
    pub fn of(tree: &Tree, monitor: &Monitor) -> Option<Self> {
        tree.event_ids().find_map(|event| {
            let (name, weight) = (&tree.event_of(event).name, tree.total(event).weight);
            let part = monitor.little_sampled(name, CpuNs(weight), monitor.shown_time())?;
            Some(Self { event, part })
        })
    }
}

/// What shares are of where samples stand for a part of the CPU time.
fn of_that_part(confidence: Confidence) -> String {
    format!(
        "shares and their {confidence} CI are of that part only: threads that end sooner than they are sampled have no samples; -F takes more\n"
    )
}

/// The samples of one of so many events:
/// `cpu-clock: 1500 samples with call stacks, of 50.0% of the CPU time, 99.9% complete, 0.1% cut (2 stacks cut)`.
fn title(
    tree: &Tree,
    quality: &StackQuality,
    event: EventId,
    (events, little): (usize, Option<LittleSampled>),
) -> String {
    let total = tree.total(event);
    let name = shown(&tree.event_of(event).name).into_owned();
    let counted = match tree.event_of(event).measure {
        SampleMeasure::Sum(_) => match quality.origin {
            StackOrigin::Sampled(UnwindMethod::Modelled) => {
                format!("{} with all calls, modelled", tree.event_of(event).in_unit(total.weight))
            }
            _ => format!("{}, as the file sums it up", tree.event_of(event).in_unit(total.weight)),
        },
        _ if quality.lacks_stacks(tree) => format!("{} samples without call stacks", total.samples),
        _ if total.samples == 1 => "1 sample with its call stack".to_owned(),
        _ => format!("{} samples with call stacks", total.samples),
    };
    let reach = quality.reach(tree, event);
    let missing = in_brackets(match reach {
        Some(Reach { cut, unknown, .. }) if events > 1 => Losses { cut, unknown, ..Losses::default() },
        None if events > 1 => Losses::default(),
        _ => quality.losses,
    });
    let reach = reach.map_or_else(String::new, |reach| format!(", {reach}"));
    let part = little.map_or_else(String::new, |little| format!(", of {} of the CPU time", share(little.part)));
    format!("{name}: {counted}{part}{reach}{missing}")
}

/// A line of heads, and one for each function: what was sampled in it alone, how far that may be off, and with what it
/// called.
fn functions(tree: &Tree, quality: &StackQuality, event: EventId, confidence: Confidence) -> String {
    let whole = tree.total(event);
    let part_of = |weight: u64| weight as f64 / whole.weight.max(1) as f64;
    let all = by_function(tree, event);
    let is_listed =
        |function: &&SampledFunction| part_of(function.own) >= LEAST || part_of(function.total) >= LEAST_CALLER;
    let listed: Vec<_> = all.iter().filter(is_listed).collect();
    if listed.is_empty() {
        return String::new();
    }
    // A model counts all.
    let is_sampled = !matches!(tree.event_of(event).measure, SampleMeasure::Sum(_));
    let samples = whole.samples as f64 * quality.worth.of(event.index());
    let interval = |part: f64| {
        let error = share_error(part, samples, confidence);
        let bounds = Uncertain { value: part, error }.bounds().filter(|_| is_sampled);
        bounds.map_or_else(|| "—".into(), |(low, high)| share_interval(low, high))
    };
    let mut out = format!("{:>8}  {:>11}  {:>7}  FUNCTION\n", "SELF", format!("{confidence} CI"), "TOTAL");
    for function in listed.iter().take(MOST) {
        let (own, total) = (part_of(function.own), part_of(function.total));
        let name = name_of(tree, function.frame, &all);
        out += &format!("{:>8}  {:>11}  {:>7}  {name}\n", share(own), interval(own), share(total));
    }
    if all.len() > listed.len().min(MOST) {
        let more = all.len() - listed.len().min(MOST);
        let each = match listed.len() > MOST {
            true => String::new(),
            false => format!(", each under {}% in itself and {}% with calls", 100.0 * LEAST, 100.0 * LEAST_CALLER),
        };
        out += &format!("          and {more} more{each}\n");
    }
    out
}

/// A line of heads, and one for each thing that was waited for in a function of the program.
fn waits(tree: &Tree, event: EventId) -> String {
    let whole = tree.total(event).weight.max(1) as f64;
    let mut sums: HashMap<(FrameId, Option<FrameId>), u64> = HashMap::new();
    for node in tree.nodes().filter(|node| node.weight(event) > 0 && node.frame().module == OFF_CPU) {
        *sums.entry((waited_for(tree, &node), waiting_function(&node))).or_default() += node.weight(event);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|&(place, weight)| (std::cmp::Reverse(weight), place));
    let name = |frame: FrameId| shown(tree.frame_of(frame).name).into_owned();
    let listed: Vec<_> = sums.iter().filter(|(_, weight)| *weight as f64 / whole >= LEAST).take(MOST).collect();
    let width = column_width(listed.iter().map(|((reason, _), _)| name(*reason))).max(9);
    let mut out = format!("{:>8}  {:>8}  {:<width$}  IN\n", "SHARE", "TIME", "WAITS FOR");
    for ((reason, function), weight) in &listed {
        let (part, waited) = (share(*weight as f64 / whole), time(*weight as f64));
        let line =
            format!("{part:>8}  {waited:>8}  {:<width$}  {}", name(*reason), function.map_or_else(String::new, name));
        out += &format!("{}\n", line.trim_end());
    }
    if listed.is_empty() { String::new() } else { out }
}

/// `sort (lib.rs)  prog`: a function with its module, and with its file where another one is called alike.
fn name_of(tree: &Tree, frame: FrameId, all: &[SampledFunction]) -> String {
    let frame = tree.frame_of(frame);
    let module = frame.module.rsplit('/').next().unwrap_or_default();
    let module = if module.is_empty() { String::new() } else { format!("  {}", shown(module)) };
    let is_namesake = |other: Frame<'_>| (other.name, other.module) == (frame.name, frame.module);
    let namesakes = all.iter().filter(|other| is_namesake(tree.frame_of(other.frame))).count();
    let file = frame.file.rsplit('/').next().filter(|file| namesakes > 1 && !file.is_empty());
    let file = file.map_or_else(String::new, |file| format!(" ({})", shown(file)));
    format!("{}{file}{module}", shown(frame.name))
}

/// What was sampled in a function.
struct SampledFunction {
    frame: FrameId,
    /// In it alone.
    own: u64,
    /// In it and in all that it called; once where it called itself.
    total: u64,
}

/// All functions, those with most of their own first, and of equals those with most in all.
fn by_function(tree: &Tree, event: EventId) -> Vec<SampledFunction> {
    let inclusive = tree.inclusive(event);
    let mut sums: HashMap<FrameId, SampledFunction> = HashMap::new();
    tree.sequences(|path, node| {
        let (frame, callers) = (node.frame_id(), &path[..path.len().saturating_sub(1)]);
        let is_function = node.depth() > 0 && node.frame().kind == FrameKind::Function;
        if !is_function || inclusive[node.id().index()].weight == 0 {
            return;
        }
        let sum = sums.entry(frame).or_insert(SampledFunction { frame, own: 0, total: 0 });
        sum.own += node.weight(event);
        sum.total += if callers.contains(&frame) { 0 } else { inclusive[node.id().index()].weight };
    });
    let mut all: Vec<_> = sums.into_values().collect();
    all.sort_by_key(|function| (std::cmp::Reverse((function.own, function.total)), function.frame));
    all
}

/// ` (3 lost)`; nothing where nothing has gone missing.
fn in_brackets(losses: Losses) -> String {
    let losses = losses.to_string();
    if losses.is_empty() { losses } else { format!(" ({losses})") }
}

/// What was waited for: who woke a thread stands behind that.
fn waited_for(tree: &Tree, node: &NodeRef<'_>) -> FrameId {
    let reason = node.parent().map(|parent| tree.node(parent)).filter(|caller| caller.frame().module == OFF_CPU);
    reason.map_or(node.frame_id(), |reason| reason.frame_id())
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
        let heads = "SHARE TIME WAITS FOR IN";
        assert_eq!(lines, [heads, "80.0% 800 ms [waits for a pipe or socket] read", "20.0% 200 ms [sleeps]"]);
    }

    #[test]
    fn functions_have_what_was_sampled_in_them_alone_and_with_what_they_called() {
        let mut tree = Tree::new(TreeOptions::default());
        let place = tree.sampled();
        let event = tree.event(&ProfileEvent::new("cycles", SampleMeasure::Samples));
        let [main, f, g] = ["main", "f", "g"].map(|name| tree.frame(&Frame::function(name)));
        for (stack, samples) in [(vec![main], 10), (vec![main, f, g, f], 60), (vec![main, g], 30)] {
            tree.stack(place, stack, event, Amount { samples, weight: samples });
        }
        let text = stacks_of(&tree);
        let lines: Vec<_> =
            text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        // Wilson's interval of 60 of 100 is 0.502 to 0.691.
        assert_eq!(lines[..2], ["SELF 95% CI TOTAL FUNCTION", "60.0% 50.2–69.1 60.0% f"]);
        assert!(lines[2].starts_with("30.0% ") && lines[2].ends_with(" 90.0% g"), "{lines:?}");
        assert!(lines[3].starts_with("10.0% ") && lines[3].ends_with(" 100% main"), "{lines:?}");
    }

    #[test]
    fn all_samples_in_a_function_are_an_estimate() {
        let told = |samples| {
            let mut tree = Tree::new(TreeOptions::default());
            let (place, frame) = (tree.sampled(), tree.frame(&Frame::function("main")));
            let event = tree.event(&ProfileEvent::new("cpu-clock", SampleMeasure::Samples));
            tree.stack(place, [frame], event, Amount { samples, weight: samples });
            stacks_of(&tree).lines().nth(2).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        // n / (n + 1.96²): 1 / 4.84 and 132 / 135.84.
        assert_eq!(told(1).as_deref(), Some("100% 20.6–100 100% main"));
        assert_eq!(told(132).as_deref(), Some("100% 97.1–100 100% main"));
    }

    /// Heap profiles of pprof, beside what valgrind's model counted.
    #[test]
    fn a_sum_of_a_file_is_no_model_s() {
        let mut tree = Tree::new(TreeOptions::default());
        let place = tree.sampled();
        let frame = tree.frame(&Frame::function("f"));
        for (name, unit, weight) in
            [("space", "bytes", 2048), ("objects", "count", 102_000), ("busy", "nanoseconds", 310)]
        {
            let event = tree.event(&ProfileEvent::new(name, SampleMeasure::Sum(unit.into())));
            tree.stack(place, [frame], event, Amount { samples: 0, weight });
        }
        let titles = |origin| -> Vec<String> {
            let text =
                stacks(&tree, &StackQuality { origin, ..StackQuality::default() }, "", Confidence::DEFAULT, None);
            let titles = text.lines().filter(|line| line.contains(": "));
            titles.map(str::to_owned).collect()
        };
        let sums = ["space: 2.05k bytes", "objects: 102k", "busy: 310 ns"];
        assert_eq!(titles(StackOrigin::Other)[..3], sums.map(|sum| format!("{sum}, as the file sums it up")));
        let modelled = titles(StackOrigin::Sampled(UnwindMethod::Modelled));
        assert_eq!(modelled[1], "objects: 102k with all calls, modelled");
    }

    #[test]
    fn a_part_of_the_cpu_time_stands_beside_the_number_of_samples() {
        let mut tree = Tree::new(TreeOptions::default());
        let (place, frame) = (tree.sampled(), tree.frame(&Frame::function("f")));
        let event = tree.event(&ProfileEvent::new("cpu-clock", SampleMeasure::Samples));
        tree.stack(place, [frame], event, Amount { samples: 500, weight: 500 });
        let little = Some(LittleSampled { event, part: 0.5 });
        let text = stacks(&tree, &StackQuality::default(), "-a", Confidence::DEFAULT, little);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("cpu-clock: 500 samples with call stacks, of 50.0% of the CPU time"), "{text}");
        assert!(lines[1].starts_with("shares and their 95% CI are of that part only"), "{text}");
    }

    fn stacks_of(tree: &Tree) -> String {
        stacks(tree, &StackQuality::default(), "-a", Confidence::DEFAULT, None)
    }
}
