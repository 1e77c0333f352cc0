//! Compares the profiles of two sets of runs: one tree with the numbers of both sides, and a test of the functions in
//! which most is spent; of named regions where nothing was sampled.
//!
//! ```text
//! A   tree tree tree ...  ──┐                      own weight of each function, a number of each run
//! B   tree tree tree ...  ──┴── one tree, A and B  the largest are tested, as events are
//! ```

use std::collections::{BTreeSet, HashMap};

use super::verdict::is_enough;
use super::{Average, ComparedEvent, NumbersOfRuns, Side, compare_numbers, enough};
use crate::events::Unit;
use crate::monitor::{Measure, MeasureChoice};
use crate::profile::{Amount, EventId, Frame, FrameId, FrameKind, NodeRef, ProfileEvent, SampleMeasure, Tree};
use crate::rates::{self, Confidence};

/// So many functions are tested: with five runs of each side, no p-value of more can be below 0.05 after its
/// correction. Those in which most is spent on both sides together are, which says nothing of how the sides differ.
pub const MOST_TESTED: usize = 20;

/// And none that has less than this part of all: more tests leave each less sure.
const LEAST_TESTED: f64 = 0.005;

/// What all that was sampled in a run is where runs are compared by shares.
const WHOLE: f64 = 1e12;

/// What stands behind the name of a region where those within are counted, too.
const WITHIN: &str = ", with those within";

/// A function: its name, and the file that it is in, without the folder, which may be another on each side.
pub type FunctionKey = (String, String);

/// The profiles of two sets of runs.
#[derive(Clone, Debug)]
pub struct ProfileDifference {
    /// All paths of both sides. Its events are both together, A and B, each side with the same weight.
    pub tree: Tree,
    /// Those events.
    pub events: [EventId; 3],
    /// The event that was sampled, not escaped.
    pub event: String,
    /// What the functions are: functions, or regions.
    pub of: FrameKind,
    /// Whether weights are compared; otherwise the shares that functions have of them.
    pub is_of_weights: bool,
    /// How many runs each side has.
    pub runs: [usize; 2],
    /// How many of each side can tell a difference from chance.
    pub needs: usize,
    /// How sure it is that no verdict is false, over all functions.
    pub confidence: Confidence,
    /// The functions that are tested.
    pub functions: Vec<(FunctionKey, ComparedEvent)>,
}

impl ProfileDifference {
    /// Compares the event that is the first tree's default; `None` where a run hasn't sampled it. Weights are compared
    /// where totals are, else shares.
    pub fn of(a: &[&Tree], b: &[&Tree], measures: MeasureChoice, confidence: Confidence) -> Option<Self> {
        let first = a.first()?;
        let event = first.event_of(first.default_event()?);
        let is_sampled = |tree: &&&Tree| tree.find_event(&event.name).is_some_and(|id| tree.total(id).weight > 0);
        if b.is_empty() || !a.iter().chain(b).all(|tree| is_sampled(&tree)) {
            return None;
        }
        let is_of_weights = measures == MeasureChoice::Every(Measure::Total);
        let unit = match (is_of_weights, event.unit()) {
            (true, "nanoseconds") => Unit::Nanoseconds,
            _ => Unit::Count,
        };
        let runs = [a.len(), b.len()];
        let mut joined = JoinedTree::new(event, runs);
        for (side, trees, renamed) in
            [(Side::A, a, RenamedProgram::default()), (Side::B, b, RenamedProgram::between(a, b))]
        {
            trees.iter().for_each(|tree| joined.add(tree, side, &renamed, is_of_weights));
        }
        let functions = joined.test(&unit, confidence);
        let needs = enough(functions.len().max(1), confidence.alpha());
        let JoinedTree { tree, events, of, .. } = joined;
        Some(Self { tree, events, event: event.name.clone(), of, is_of_weights, runs, needs, confidence, functions })
    }

    /// The mean of a run, of a weight that the tree has of a side.
    pub fn mean(&self, weight: u64) -> f64 {
        let [a, b] = self.runs.map(|runs| runs as f64);
        let mean = weight as f64 / (a * b);
        if self.is_of_weights { mean } else { mean / WHOLE }
    }

    /// What is known of a function that is tested.
    pub fn tested(&self, frame: &Frame<'_>) -> Option<&ComparedEvent> {
        let is_it =
            |((name, module), _): &&(FunctionKey, ComparedEvent)| name == frame.name && module == file(frame.module);
        self.functions.iter().find(is_it).map(|(_, found)| found)
    }

    /// `function`, or `region`.
    pub fn of_what(&self) -> &'static str {
        if self.of == FrameKind::Region { "region" } else { "function" }
    }

    /// Why no function is marked, where that is for want of runs.
    pub fn what_it_takes(&self) -> Option<String> {
        let needs = self.needs;
        (!is_enough(self.runs, self.functions.len().max(1), self.confidence.alpha())).then(|| {
            let [a, b] = self.runs;
            let runs = if (a, b) == (1, 1) { "one run each".into() } else { format!("{a} and {b} runs") };
            format!(
                "{runs}: no {} is marked; {needs} of each can tell differences from chance: record -r {needs}",
                self.of_what()
            )
        })
    }
}

/// The tree of both sides while it is made.
struct JoinedTree {
    tree: Tree,
    events: [EventId; 3],
    name: String,
    /// What is tested.
    of: FrameKind,
    runs: [usize; 2],
    /// Own weight of each function in each run of both sides.
    own: HashMap<FunctionKey, [Vec<f64>; 2]>,
    /// The weight of each region with those within.
    in_all: HashMap<FunctionKey, [Vec<f64>; 2]>,
    /// Runs of each side that are added.
    added: [usize; 2],
}

/// A program that has another name on each side, as `app-old` and `app-new`; on both, its functions are the same ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RenamedProgram {
    /// The name of its process in B, and in A.
    process: Option<[String; 2]>,
    /// The name of its file in B, and in A.
    module: Option<[String; 2]>,
}

/// The kernel keeps so many bytes of a process' name.
const COMM: usize = 15;

impl RenamedProgram {
    /// The only process of each side that the other lacks, and the only file of a process; where no tree has processes,
    /// the only file.
    fn between(a: &[&Tree], b: &[&Tree]) -> Self {
        let processes =
            [a, b].map(|trees| names(trees, |frame| (frame.kind == FrameKind::Process).then_some(frame.name)));
        let modules =
            [a, b].map(|trees| names(trees, |frame| Some(file(frame.module)).filter(|name| !name.is_empty())));
        let has_processes = processes.iter().any(|names| !names.is_empty());
        let mut sides = processes.iter();
        let programs = modules.map(|mut files| {
            let processes = sides.next();
            let is_program = |file: &String| processes.iter().copied().flatten().any(|name| is_of_process(file, name));
            files.retain(|file| !has_processes || is_program(file));
            files
        });
        Self { process: only(&processes), module: only(&programs) }
    }

    /// A frame of B by the names of A.
    fn as_in_a<'a>(&'a self, frame: Frame<'a>) -> Frame<'a> {
        let renamed = |names: &'a Option<[String; 2]>, name: &'a str| match names {
            Some([b, a]) if b == name => a.as_str(),
            _ => name,
        };
        match frame.kind {
            FrameKind::Process => Frame { name: renamed(&self.process, frame.name), ..frame },
            _ => Frame { module: renamed(&self.module, frame.module), ..frame },
        }
    }
}

/// Whether a file is the program of a process with this name.
fn is_of_process(file: &str, process: &str) -> bool {
    file == process || process.len() == COMM && file.starts_with(process)
}

/// All names that frames have.
fn names<'a>(trees: &[&'a Tree], name: impl Fn(&Frame<'a>) -> Option<&'a str>) -> BTreeSet<String> {
    trees.iter().flat_map(|tree| tree.frames()).filter_map(|frame| name(&frame)).map(str::to_owned).collect()
}

/// The only name that B has alone, and the only one that A has alone.
fn only([a, b]: &[BTreeSet<String>; 2]) -> Option<[String; 2]> {
    let one = |mut names: Vec<&String>| if names.len() == 1 { names.pop().cloned() } else { None };
    Some([one(b.difference(a).collect())?, one(a.difference(b).collect())?])
}

impl JoinedTree {
    fn new(event: &ProfileEvent, runs: [usize; 2]) -> Self {
        let mut tree = Tree::default();
        let unit = event.unit().to_owned();
        let mut add = |name: &str| tree.event(&ProfileEvent::new(name, SampleMeasure::Weighted(unit.clone().into())));
        let events = [add(&event.name), add(&format!("{} of A", event.name)), add(&format!("{} of B", event.name))];
        let of = if event.is_of_calls() { FrameKind::Region } else { FrameKind::Function };
        let (own, in_all) = (HashMap::new(), HashMap::new());
        Self { tree, events, name: event.name.clone(), of, runs, own, in_all, added: [0; 2] }
    }

    /// Adds a run. Each counts as often as the other side has runs, so that sides weigh alike.
    fn add(&mut self, tree: &Tree, side: Side, renamed: &RenamedProgram, is_of_weights: bool) {
        let Some(event) = tree.find_event(&self.name) else { return };
        let (side, other) = if side == Side::A { (0, 1) } else { (1, 0) };
        let run = self.added[side];
        self.added[side] += 1;
        let scale = if is_of_weights { 1.0 } else { WHOLE / tree.total(event).weight.max(1) as f64 };
        let frames: Vec<FrameId> =
            tree.frames().map(|frame| self.tree.frame(&renamed.as_in_a(anywhere(&frame)))).collect();
        let place = self.tree.sampled();
        tree.sequences(|path, node: NodeRef<'_>| {
            let Amount { samples, weight } = node.amount(event);
            if weight == 0 {
                return;
            }
            let number = weight as f64 * scale;
            let amount = Amount { samples, weight: (number * self.runs[other] as f64) as u64 };
            let frames = || path[1..].iter().map(|frame| frames[frame.index()]);
            self.tree.stack(place, frames(), self.events[0], amount);
            self.tree.stack(place, frames(), self.events[1 + side], amount);
            let runs = self.runs;
            let number = if is_of_weights { number } else { number / WHOLE };
            let add = |sums: &mut HashMap<FunctionKey, [Vec<f64>; 2]>, key| {
                sums.entry(key).or_insert_with(|| runs.map(|runs| vec![0.0; runs]))[side][run] += number;
            };
            let frame = renamed.as_in_a(anywhere(&node.frame()));
            if frame.kind == self.of && node.depth() > 0 {
                add(&mut self.own, (frame.name.to_owned(), frame.module.to_owned()));
            }
            if self.of == FrameKind::Region {
                let around = path[1..].iter().map(|frame| tree.frame_of(*frame));
                around
                    .filter(|frame| frame.kind == FrameKind::Region)
                    .for_each(|frame| add(&mut self.in_all, (frame.name.to_owned(), String::new())));
            }
        });
        self.tree.end(place);
    }

    /// Tests the functions in which most is spent; regions with those within, too, where there are any.
    fn test(&self, unit: &Unit, confidence: Confidence) -> Vec<(FunctionKey, ComparedEvent)> {
        let mean = |runs: &[f64]| rates::mean(runs).unwrap_or_default();
        let own = self.own.iter().map(|(key, runs)| (key.clone(), runs));
        let has_others = self.in_all.iter().filter(|(key, runs)| self.own.get(*key) != Some(*runs));
        let in_all = has_others.map(|((name, module), runs)| ((format!("{name}{WITHIN}"), module.clone()), runs));
        let mut all: Vec<_> = own.chain(in_all).collect();
        all.sort_by(|(key, [a, b]), (other, [c, d])| {
            (mean(c) + mean(d)).total_cmp(&(mean(a) + mean(b))).then_with(|| key.cmp(other))
        });
        let spent = |[a, b]: &[Vec<f64>; 2]| mean(a) + mean(b);
        let whole: f64 = all.iter().map(|(_, runs)| spent(runs)).sum();
        all.retain(|(_, runs)| spent(runs) >= LEAST_TESTED * whole);
        all.truncate(MOST_TESTED);
        let numbers = all.iter().map(|(key, [a, b])| NumbersOfRuns {
            name: key.0.clone(),
            unit: unit.clone(),
            a: a.clone(),
            b: b.clone(),
            average: Average::Whole,
        });
        let found = compare_numbers(numbers.collect(), confidence);
        all.into_iter().map(|(key, _)| key).zip(found).collect()
    }
}

/// A frame as it is on both sides: another build has another folder, and lines that moved.
fn anywhere<'a>(frame: &Frame<'a>) -> Frame<'a> {
    Frame { kind: frame.kind, name: frame.name, module: file(frame.module), file: "", line: None, offset: None }
}

fn file(module: &str) -> &str {
    module.rsplit('/').next().unwrap_or_default()
}

/// The names of functions that differ for sure.
pub fn marked(difference: &ProfileDifference) -> BTreeSet<&FunctionKey> {
    let sure = difference.functions.iter().filter(|(_, found)| found.verdict.is_sure());
    sure.map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::Verdict;
    use super::*;

    /// A process `name`, whose program is a file of this name, beside the C library.
    fn of_program(name: &str, weight: u64) -> Tree {
        let mut tree = Tree::default();
        let event = tree.event(&ProfileEvent::new("cpu-clock", SampleMeasure::Weighted("nanoseconds".into())));
        let process = Frame { kind: FrameKind::Process, ..Frame::function(&name[..name.len().min(COMM)]) };
        let module = format!("/bin/{name}");
        let main = Frame { module: &module, ..Frame::function("main") };
        let libc = Frame { module: "/lib/libc.so.6", ..Frame::function("memcpy") };
        let frames = [process, main, libc].map(|frame| tree.frame(&frame));
        let place = tree.sampled();
        tree.stack(place, frames, event, Amount { samples: 1, weight });
        tree.stack(place, [frames[0], frames[1]], event, Amount { samples: 1, weight: 2 * weight });
        tree.end(place);
        tree
    }

    #[test]
    fn a_program_with_another_name_has_the_same_functions() {
        let [old, new] = [of_program("sort-with-merge-old", 100), of_program("sort-with-merge-new", 300)];
        // Their first 15 letters, which the process has, are the same.
        let module = Some(["sort-with-merge-new".into(), "sort-with-merge-old".into()]);
        assert_eq!(RenamedProgram::between(&[&old], &[&new]), RenamedProgram { process: None, module });
        let [old, new] = [of_program("old", 100), of_program("new", 300)];
        let found = ProfileDifference::of(&[&old], &[&new], MeasureChoice::Every(Measure::Total), Confidence::DEFAULT);
        let found = found.unwrap();
        let main = found.functions.iter().find(|((name, _), _)| name == "main").unwrap();
        assert_eq!(main.0, ("main".into(), "old".into()));
        assert_eq!(found.functions.len(), 2, "main and memcpy");
        assert_eq!(found.tree.frames().filter(|frame| frame.kind == FrameKind::Process).count(), 1);
        // Another process on one side leaves open which is which.
        let mut more = of_program("new", 300);
        more.merge(&of_program("sh", 5));
        assert_eq!(RenamedProgram::between(&[&old], &[&more]), RenamedProgram::default());
        assert_eq!(RenamedProgram::between(&[&old], &[&old]), RenamedProgram::default());
    }

    /// A run in which `f` and `g`, which `main` calls, have these weights.
    fn run(folder: &str, f: u64, g: u64) -> Tree {
        let mut tree = Tree::default();
        let event = tree.event(&ProfileEvent::new("cpu-clock", SampleMeasure::Weighted("nanoseconds".into())));
        let module = format!("{folder}/prog");
        let [main, f_frame, g_frame] =
            ["main", "f", "g"].map(|name| tree.frame(&Frame { module: &module, ..Frame::function(name) }));
        let place = tree.sampled();
        for (frame, weight) in [(f_frame, f), (g_frame, g)] {
            tree.stack(place, [main, frame], event, Amount { samples: weight / 10, weight });
        }
        tree
    }

    const TOTALS: MeasureChoice = MeasureChoice::Every(Measure::Total);

    fn compared(a: &[Tree], b: &[Tree], measures: MeasureChoice) -> ProfileDifference {
        let [a, b] = [a, b].map(|side| side.iter().collect::<Vec<_>>());
        ProfileDifference::of(&a, &b, measures, Confidence::DEFAULT).unwrap()
    }

    #[test]
    fn a_function_is_marked_only_by_the_test_between_runs() {
        let side = |folder, f: u64| (0..5).map(|i| run(folder, f + 10 * i, 1000 + 7 * i)).collect::<Vec<_>>();
        let found = compared(&side("/old", 1000), &side("/new", 2000), TOTALS);
        let verdicts: Vec<_> =
            found.functions.iter().map(|((name, _), found)| (name.as_str(), found.verdict)).collect();
        assert_eq!(verdicts[0], ("f", Verdict::Higher));
        assert!(matches!(verdicts[1], ("g", Verdict::Equal | Verdict::Unclear { .. })), "{verdicts:?}");
        assert_eq!((marked(&found).len(), found.what_it_takes()), (1, None));
        let one = compared(&side("/old", 1000)[..1], &side("/new", 2000)[..1], TOTALS);
        assert!(marked(&one).is_empty() && one.what_it_takes().unwrap().contains("one run each"));
    }

    #[test]
    fn both_sides_weigh_alike_whatever_folder_and_number_of_runs() {
        let found = compared(&[run("/old", 100, 300)], &[run("/new", 300, 300), run("/new", 500, 300)], TOTALS);
        let [both, a, b] = found.events;
        let at = |name: &str, event| {
            let node = found.tree.nodes().find(|node| node.frame().name == name).unwrap();
            found.mean(node.weight(event))
        };
        assert_eq!((at("f", a), at("f", b), at("g", a), at("g", b)), (100.0, 400.0, 300.0, 300.0));
        assert_eq!(at("f", both), 500.0);
        assert_eq!(found.tree.nodes().filter(|node| node.frame().name == "f").count(), 1);
        let f = found.tree.frames().find(|frame| frame.name == "f").unwrap();
        assert_eq!(found.tested(&f).unwrap().change(), Some(3.0));
    }

    #[test]
    fn without_totals_shares_are_compared() {
        let found = compared(&[run("", 100, 300)], &[run("", 1000, 1000)], MeasureChoice::Usual);
        let [a, b] = [&found.functions[0].1.a, &found.functions[0].1.b].map(|runs| runs.mean().unwrap());
        assert_eq!((found.functions[0].0.0.as_str(), a, b), ("g", 0.75, 0.5));
        assert!((found.mean(found.tree.total(found.events[1]).weight) - 1.0).abs() < 1e-9);
    }

    /// A run in which a region took so much, and another one within so much, in nanoseconds.
    fn run_of_regions(outer: u64, inner: u64) -> Tree {
        let mut tree = Tree::default();
        let event = tree.event(&ProfileEvent::new("region-time", SampleMeasure::Timed));
        let region = |name| Frame { kind: FrameKind::Region, ..Frame::function(name) };
        let frames = [region("outer"), region("inner")].map(|frame| tree.frame(&frame));
        let place = tree.sampled();
        for (frames, weight) in [(&frames[..1], outer), (&frames[..], inner)] {
            tree.tally(place, frames.iter().copied(), 1, &[(event, Amount { samples: 0, weight })]);
        }
        tree
    }

    #[test]
    fn regions_are_compared_alone_and_with_those_within_where_nothing_was_sampled() {
        let side = |inner| (0..8).map(|i| run_of_regions(1000 + 7 * i, inner + 10 * i)).collect::<Vec<_>>();
        let found = compared(&side(5000), &side(9000), TOTALS);
        let verdict = |(key, found): &(FunctionKey, ComparedEvent)| (key.0.clone(), found.verdict);
        let verdicts: Vec<_> = found.functions.iter().map(verdict).collect();
        assert_eq!(
            verdicts[..2],
            [("outer, with those within".to_owned(), Verdict::Higher), ("inner".to_owned(), Verdict::Higher),]
        );
        assert!(verdicts.len() == 3 && verdicts[2].0 == "outer" && verdicts[2].1 != Verdict::Higher, "{verdicts:?}");
        assert_eq!(
            (found.of_what(), found.tested(&Frame::function("inner")).unwrap().change().is_some()),
            ("region", true)
        );
        assert!(
            compared(&side(1)[..1], &side(1)[..1], TOTALS).what_it_takes().unwrap().contains("no region is marked")
        );
    }

    #[test]
    fn what_was_not_sampled_on_both_sides_is_not_compared() {
        let (one, none) = (run("", 1, 1), run("", 0, 0));
        let of = |a: &[&Tree], b: &[&Tree]| ProfileDifference::of(a, b, TOTALS, Confidence::DEFAULT).is_some();
        assert_eq!(
            (of(&[&one], &[&one]), of(&[&one], &[&none]), of(&[], &[&one]), of(&[&one], &[])),
            (true, false, false, false)
        );
    }
}
