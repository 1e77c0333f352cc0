//! Says how much of what was sampled is known: stacks that reach their beginning, and those that were cut.

mod findings;
mod sampled_by_timer;

use std::fmt;
use std::iter::Sum;

use super::end::StackEnd;
use super::handlers::in_handlers;
use super::nameless::NamelessSamples;
use super::{CUT, CopySwitch, Losses, SampleWorth, StackBatch, StackTree, UnnamedFile, UnwindMethod};
use crate::number;
use crate::profile::{EventId, Frame, FrameKind, NodeRef, Tree};
use crate::regions::UnreadRegions;
use crate::units::WallNs;

/// How far sampled stacks go, in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Stacks down to the beginning of their thread.
    pub complete: u64,
    /// Stacks whose outer frames are missing.
    pub cut: u64,
    /// Stacks whose outermost frame has no name, so that nobody can tell.
    pub unknown: u64,
    /// Samples in code that a process made while it ran, and that has no name.
    pub nameless: u64,
}

impl Reach {
    /// All samples.
    pub fn samples(&self) -> u64 {
        self.complete + self.cut + self.unknown
    }

    fn add(&mut self, end: StackEnd, samples: u64) {
        *match end {
            StackEnd::Beginning => &mut self.complete,
            StackEnd::Cut => &mut self.cut,
            StackEnd::Unknown => &mut self.unknown,
        } += samples;
    }

    /// `30.0% cut, 8.0% unknown`: what is missing; nothing where all is complete.
    pub fn missing(&self) -> String {
        self.shares(&[(self.cut, "cut"), (self.unknown, "unknown")])
    }

    fn shares(&self, parts: &[(u64, &str)]) -> String {
        let said = parts.iter().filter(|(samples, _)| *samples > 0);
        let said: Vec<_> = said.map(|(samples, word)| format!("{} {word}", share(*samples, self.samples()))).collect();
        said.join(", ")
    }

    /// The same of one event, where an unwinder said how many stacks of all events are cut and unknown. `all` are those
    /// of all events, by the same frames. Cut stacks stand below a frame that says so; of those that were cut and have
    /// no frames, and of unknown ones, each event gets its share.
    fn unwound(self, losses: &Losses, all: &Self) -> Self {
        let (rest, rest_of_all) = (self.complete + self.unknown, all.complete + all.unknown);
        let part = |of_all: u64| {
            let part = of_all.min(rest_of_all) as f64 / rest_of_all.max(1) as f64;
            (part * rest as f64).round() as u64
        };
        let cut = part(losses.cut.saturating_sub(all.cut));
        let unknown = part(losses.unknown).min(rest - cut);
        Self { complete: rest - cut - unknown, cut: self.cut + cut, unknown, ..self }
    }
}

impl Sum for Reach {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, reach| Self {
            complete: sum.complete + reach.complete,
            cut: sum.cut + reach.cut,
            unknown: sum.unknown + reach.unknown,
            nameless: sum.nameless + reach.nameless,
        })
    }
}

impl fmt::Display for Reach {
    /// `62.0% complete, 30.0% cut, 8.0% unknown`; what there is nothing of is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shares(&[(self.complete, "complete"), (self.cut, "cut"), (self.unknown, "unknown")]))
    }
}

/// `1.5%`, and never nothing of what there is.
fn share(part: u64, of: u64) -> String {
    number::share(part as f64 / of.max(1) as f64)
}

/// Samples of which nobody knows which regions were open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnknownRegions {
    /// Those samples.
    pub samples: u64,
    /// Those of them that are of threads which are joined ([`Task::JOINED`](super::Task::JOINED)).
    pub of_joined: u64,
    /// Enters and leaves that are gone, of threads that were sampled or not.
    pub missed: u64,
}

/// How stacks came to be known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackOrigin {
    /// In a way that says nothing of how far they go.
    #[default]
    Other,
    /// They were sampled with this call graph.
    Sampled(UnwindMethod),
    /// perf sampled and printed them.
    PerfScript,
}

/// How good what was sampled is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackQuality {
    /// What has gone missing.
    pub losses: Losses,
    /// Samples that were read and wait for their names.
    pub waiting: u64,
    /// Files that give no names.
    pub unnamed: Vec<UnnamedFile>,
    /// What is to be told of how names were found.
    pub notes: Vec<String>,
    /// Programs whose regions can't be read.
    pub unread: Vec<UnreadRegions>,
    /// Regions whose times aren't known well, by their names; `None` where none.
    pub rough_regions: Option<String>,
    /// Of which regions the time alone isn't known, and why; `None` where none.
    pub outlasted_regions: Option<String>,
    /// Samples of which nobody knows which regions were open.
    pub unknown_regions: UnknownRegions,
    /// What samples tell whose weights differ.
    pub worth: SampleWorth,
    /// Samples in functions without a name.
    pub nameless: NamelessSamples,
    /// How stacks came to be known.
    pub origin: StackOrigin,
    /// When stacks began to be copied, and when that changed.
    pub copies: Vec<CopySwitch>,
    /// How many stacks were longer than their copies before those became as large as they ever were.
    pub ended_before: u64,
    /// Samples up to this time are left out; `None` where none are.
    pub since: Option<WallNs>,
}

impl StackQuality {
    /// Of stacks that are sampled so, before the first.
    pub fn of(call_graph: UnwindMethod) -> Self {
        Self { origin: StackOrigin::Sampled(call_graph), ..Self::default() }
    }

    /// Takes what a batch tells.
    pub fn take(&mut self, batch: &StackBatch) {
        self.losses = batch.losses;
        let first = self.copies.iter().chain(&batch.copies).map(|switch| switch.bytes).find(|&bytes| bytes > 0);
        if largest(&batch.copies) > largest(&self.copies).or(first) {
            self.ended_before = batch.losses.copy_ended;
        }
        self.unnamed.extend_from_slice(&batch.unnamed);
        self.notes.extend_from_slice(&batch.notes);
        self.copies.extend_from_slice(&batch.copies);
    }

    /// The same without what had gone missing by a time, of samples after that time.
    #[must_use]
    pub fn since(&self, since: WallNs, lost: &Losses) -> Self {
        Self {
            losses: self.losses.since(lost),
            ended_before: self.ended_before.saturating_sub(lost.copy_ended),
            since: Some(since),
            ..self.clone()
        }
    }

    /// Takes what is known of regions, and how many samples have no name.
    pub fn take_known(&mut self, stacks: &StackTree) {
        self.nameless.clone_from(stacks.nameless());
        self.unread = stacks.regions().unread();
        self.rough_regions = stacks.regions().rough();
        self.outlasted_regions = stacks.regions().outlasted();
        self.unknown_regions = stacks.unknown_regions();
        self.worth.clone_from(stacks.worth());
    }

    /// How far the stacks of an event go; `None` where nothing tells it.
    pub fn reach(&self, tree: &Tree, event: EventId) -> Option<Reach> {
        match self.origin {
            StackOrigin::Other | StackOrigin::Sampled(UnwindMethod::Modelled) => None,
            StackOrigin::Sampled(UnwindMethod::Auto | UnwindMethod::Dwarf(_)) => {
                let all = tree.event_ids().map(|event| reach(tree, event, end_as_unwound)).sum();
                Some(reach(tree, event, end_as_unwound).unwound(&self.losses, &all))
            }
            // They miss what a signal interrupted, and maybe its caller.
            StackOrigin::Sampled(UnwindMethod::Fp) => {
                let mut reach = reach(tree, event, end_by_name);
                let lacking = without_interrupted(tree, event).min(reach.complete);
                reach.complete -= lacking;
                reach.unknown += lacking;
                Some(reach)
            }
            StackOrigin::PerfScript if !has_callers(tree) => None,
            StackOrigin::Sampled(UnwindMethod::Lbr) | StackOrigin::PerfScript => Some(reach(tree, event, end_by_name)),
        }
        .filter(|reach| reach.samples() > 0)
    }

    /// Whether perf printed where it sampled, and no callers.
    pub fn lacks_stacks(&self, tree: &Tree) -> bool {
        self.origin == StackOrigin::PerfScript && tree.event_ids().next().is_some() && !has_callers(tree)
    }
}

/// How far the stacks of an event go, by what their outermost frames tell.
fn reach(tree: &Tree, event: EventId, end_of: fn(&Frame<'_>) -> StackEnd) -> Reach {
    let mut reach = Reach::default();
    // The end of the stacks that the walk is in, and whether their outermost frame is the last node.
    let (mut end, mut outermost) = (StackEnd::Unknown, None);
    let mut above = true;
    for node in tree.walk() {
        let frame = node.frame();
        let is_above = node.depth() == 0 || matches!(frame.kind, FrameKind::Process | FrameKind::Region);
        if is_above {
            (end, outermost, above) = (StackEnd::Unknown, None, true);
        } else if above || outermost.is_some_and(|depth| node.depth() <= depth) {
            (end, outermost, above) = (end_of(&frame), Some(node.depth()), false);
        } else if outermost.is_some_and(|depth| node.depth() == depth + 1) {
            let parent = node.parent().map(|parent| tree.node(parent));
            end = parent.map_or(StackEnd::Unknown, |parent| end_of(&parent.frame())).with_main(frame.name == "main");
        }
        let samples = node.samples(event);
        reach.add(end, samples);
        let is_made = frame.module == "//anon" || frame.module.starts_with("//anon") || frame.name == "[//anon]";
        reach.nameless += if is_made { samples } else { 0 };
    }
    reach
}

/// Whether a function stands below another one.
fn has_callers(tree: &Tree) -> bool {
    let is_function = |node: &NodeRef<'_>| node.depth() > 0 && node.frame().kind == FrameKind::Function;
    let is_called = |node: &NodeRef<'_>| node.parent().is_some_and(|parent| is_function(&tree.node(parent)));
    tree.walk().any(|node| is_function(&node) && is_called(&node))
}

/// The most bytes that were copied; `None` where nothing was.
fn largest(switches: &[CopySwitch]) -> Option<u32> {
    switches.iter().map(|switch| switch.bytes).max().filter(|&bytes| bytes > 0)
}

/// The samples in handlers of signals, whose stacks begin, but miss what the signal interrupted.
fn without_interrupted(tree: &Tree, event: EventId) -> u64 {
    in_handlers(tree, event, |outermost| end_by_name(outermost) == StackEnd::Beginning)
}

fn end_by_name(frame: &Frame<'_>) -> StackEnd {
    StackEnd::of(frame.name, frame.module, frame.is_kernel())
}

/// The same of stacks that an unwinder found whole, whatever their outermost function is called, unless it said that
/// they are cut.
fn end_as_unwound(frame: &Frame<'_>) -> StackEnd {
    match end_by_name(frame) {
        StackEnd::Unknown => StackEnd::Unknown,
        _ if frame.name == CUT => StackEnd::Cut,
        StackEnd::Beginning | StackEnd::Cut => StackEnd::Beginning,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::profile::{Amount, ProfileEvent, SampleMeasure, TreeOptions};

    /// Stacks of a process with so many samples each; a frame is `name` or `name|module`.
    pub(super) fn tree(stacks: &[(&str, u64)]) -> Tree {
        let mut tree = Tree::new(TreeOptions::default());
        let place = tree.sampled();
        let event = tree.event(&ProfileEvent::new("cpu-clock", SampleMeasure::Samples));
        let process = tree.frame(&Frame { kind: FrameKind::Process, ..Frame::function("p") });
        for (stack, samples) in stacks {
            let mut frames = vec![process];
            for frame in stack.split(';') {
                let (name, module) = frame.split_once('|').unwrap_or((frame, "/bin/p"));
                frames.push(tree.frame(&Frame { module, ..Frame::function(name) }));
            }
            tree.stack(place, frames, event, Amount { samples: *samples, weight: *samples });
        }
        tree
    }

    pub(super) fn quality(origin: StackOrigin) -> StackQuality {
        StackQuality { origin, ..StackQuality::default() }
    }

    pub(super) const FP: StackOrigin = StackOrigin::Sampled(UnwindMethod::Fp);
    pub(super) const AUTO: StackOrigin = StackOrigin::Sampled(UnwindMethod::Auto);

    #[test]
    fn stacks_end_at_the_beginning_of_a_thread_or_are_cut() {
        let tree = tree(&[
            ("_start;__libc_start_main;main;f", 40),
            ("__libc_start_call_main;main", 10),
            ("libc.so.6+0x27150|/lib/libc.so.6;main;f", 5),
            ("libc.so.6+0x27150|/lib/libc.so.6;g", 4),
            ("f;g", 20),
            ("[unknown]|;g", 3),
            ("[unknown]|//anon", 2),
            ("ret_from_fork_asm|[kernel];kthread|[kernel]", 6),
            ("__clone3;start_thread;work", 10),
        ]);
        let event = tree.default_event().unwrap();
        let reach = quality(FP).reach(&tree, event).unwrap();
        assert_eq!(reach, Reach { complete: 71, cut: 23, unknown: 6, nameless: 2 });
        assert_eq!(reach.to_string(), "71.0% complete, 23.0% cut, 6.0% unknown");
        assert_eq!(reach.missing(), "23.0% cut, 6.0% unknown");
        assert_eq!(Reach { complete: 3, ..Reach::default() }.missing(), "");
        assert_eq!(quality(StackOrigin::PerfScript).reach(&tree, event), Some(reach));
        assert_eq!(quality(StackOrigin::Other).reach(&tree, event), None);
        assert_eq!(quality(StackOrigin::Sampled(UnwindMethod::Modelled)).reach(&tree, event), None);
        // An unwinder knows it.
        let losses = Losses { cut: 30, ..Losses::default() };
        let unwound = StackQuality { losses, ..quality(StackOrigin::Sampled(UnwindMethod::Dwarf(8192))) };
        assert_eq!(unwound.reach(&tree, event), Some(Reach { complete: 70, cut: 30, unknown: 0, nameless: 2 }));
        let losses = Losses { cut: 2, unknown: 1, ..Losses::default() };
        let reach = StackQuality { losses, ..quality(AUTO) }.reach(&tree, event).unwrap();
        assert_eq!(reach, Reach { complete: 97, cut: 2, unknown: 1, nameless: 2 });
        assert_eq!(reach.to_string(), "97.0% complete, 2.0% cut, 1.0% unknown");
    }

    #[test]
    fn each_event_has_its_own_cut_stacks() {
        let mut tree = Tree::new(TreeOptions::default());
        let place = tree.sampled();
        let [clock, off_cpu] =
            ["cpu-clock", "off-cpu"].map(|name| tree.event(&ProfileEvent::new(name, SampleMeasure::Samples)));
        let [cut, main] = [CUT, "main"].map(|name| tree.frame(&Frame::function(name)));
        for (event, frame, samples) in [(clock, cut, 4), (clock, main, 40), (off_cpu, cut, 64), (off_cpu, main, 16)] {
            let process = tree.frame(&Frame { kind: FrameKind::Process, ..Frame::function("p") });
            tree.stack(place, vec![process, frame], event, Amount { samples, weight: samples });
        }
        let of = |losses| {
            let quality = StackQuality { losses, ..quality(AUTO) };
            [clock, off_cpu].map(|event| quality.reach(&tree, event).map(|reach| (reach.complete, reach.cut)))
        };
        assert_eq!(of(Losses { cut: 68, ..Losses::default() }), [Some((40, 4)), Some((16, 64))]);
        // Seven more have no frames: five of 40, and two of 16.
        assert_eq!(of(Losses { cut: 75, ..Losses::default() }), [Some((35, 9)), Some((14, 66))]);
        // Of samples that nobody took stacks were cut, too.
        assert_eq!(of(Losses { cut: 900, ..Losses::default() }), [Some((0, 44)), Some((0, 80))]);
    }

    #[test]
    fn parts_are_never_rounded_to_nothing_or_to_all() {
        let reach = |complete, cut| Reach { complete, cut, ..Reach::default() }.to_string();
        assert_eq!(reach(9_999, 1), "99.9% complete, <0.1% cut");
        assert_eq!((reach(5, 0), reach(0, 5), reach(0, 0)), ("100% complete".into(), "100% cut".into(), String::new()));
    }

    #[test]
    fn what_was_recorded_without_stacks_is_no_cut_stack() {
        let flat = tree(&[("f", 3), ("main", 2)]);
        let script = quality(StackOrigin::PerfScript);
        assert_eq!(script.findings(&flat, ""), ["no call stacks were recorded:  perf record -g"]);
        assert_eq!(script.reach(&flat, flat.default_event().unwrap()), None);
        assert!(!script.lacks_stacks(&tree(&[("f;g", 3), ("main", 2)])));
    }
}
