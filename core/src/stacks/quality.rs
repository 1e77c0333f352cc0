//! Says how much of what was sampled is known: stacks that reach their beginning, those that were cut, and what
//! to do about it.

use std::fmt;

use super::end::StackEnd;
use super::folding::is_of_runtime;
use super::handlers::{all_samples_below, cut_behind_handlers, in_handlers};
use super::nameless::{NamelessReason, NamelessSamples, in_words};
use super::{CUT, CopySwitch, Losses, StackBatch, StackTree, UnnamedFile, UnwindMethod};
use crate::names::{first_of, shown};
use crate::number::{self, clock, grouped};
use crate::profile::{EventId, Frame, FrameKind, NodeRef, Tree};
use crate::regions::UnreadRegions;

/// The part of the samples from which on a finding tells of cut stacks or missing names: one in so many.
const WORTH_A_WORD: u64 = 20;

/// The part of lost samples from which on a finding tells of them: one in so many.
const WORTH_TELLING_LOST: u64 = 100;

/// So many files are named that keep no frame pointers.
const MOST_NAMED: usize = 4;

/// The largest copy of a stack that the kernel makes, in bytes: a multiple of 8 below 64 KiB.
const LARGEST_COPY: u32 = 65_528;

/// So many frame pointers the kernel follows where nobody changed it (`kernel.perf_event_max_stack`).
const FRAMES_FOLLOWED: u32 = 127;

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

    /// The same of one event, where an unwinder said how many stacks of all events are cut and unknown. `all` are those of all
    /// events, by the same frames. Cut stacks stand below a frame that says so; of those that were cut and have no frames, and
    /// of unknown ones, each event gets its share.
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

    fn plus(self, other: &Self) -> Self {
        Self {
            complete: self.complete + other.complete,
            cut: self.cut + other.cut,
            unknown: self.unknown + other.unknown,
            nameless: self.nameless + other.nameless,
        }
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
    /// Enters and leaves that are gone, of threads that were sampled or not.
    pub missed: u64,
}

impl UnknownRegions {
    /// What it means, of so many samples in all; `None` where nothing is gone.
    fn finding(self, samples: u64) -> Option<String> {
        let [of, missed] = [self.samples, self.missed].map(grouped);
        let rest = "calls and times of regions have them all";
        match self {
            Self { missed: 0, .. } => None,
            Self { samples: 0, .. } => Some(format!(
                "{missed} enters and leaves of regions came too fast to be kept: traces of single calls lack them; {rest}"
            )),
            _ => Some(format!(
                "{of} samples ({}) are in [region unknown]: {missed} enters and leaves came too fast to be kept; {rest}",
                share(self.samples, samples)
            )),
        }
    }
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
    /// Samples of which nobody knows which regions were open.
    pub unknown_regions: UnknownRegions,
    /// Samples in functions without a name.
    pub nameless: NamelessSamples,
    /// How stacks came to be known.
    pub origin: StackOrigin,
    /// When stacks began to be copied, and when that changed.
    pub copies: Vec<CopySwitch>,
    /// How many stacks were longer than their copies before those became as large as they ever were.
    pub ended_before: u64,
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

    /// Takes what is known of regions, and how many samples have no name.
    pub fn take_known(&mut self, stacks: &StackTree) {
        self.nameless.clone_from(stacks.nameless());
        self.unread = stacks.regions().unread();
        self.unknown_regions = stacks.unknown_regions();
    }

    /// How far the stacks of an event go; `None` where nothing tells it.
    pub fn reach(&self, tree: &Tree, event: EventId) -> Option<Reach> {
        match self.origin {
            StackOrigin::Other | StackOrigin::Sampled(UnwindMethod::Modelled) => None,
            StackOrigin::Sampled(UnwindMethod::Auto | UnwindMethod::Dwarf(_)) => {
                let all = tree.event_ids().map(|event| reach(tree, event, end_as_unwound));
                let all = all.fold(Reach::default(), |sum, reach| sum.plus(&reach));
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

    /// What a reader should know of the stacks, each with what mends it. `target` is that part of a command line
    /// which says what is measured: `-- python3 x.py`.
    pub fn findings(&self, tree: &Tree, target: &str) -> Vec<String> {
        let all = tree.event_ids().filter_map(|event| self.reach(tree, event));
        let all = all.fold(Reach::default(), |sum, reach| sum.plus(&reach));
        let is_worth = |samples: u64| samples > 0 && samples.saturating_mul(WORTH_A_WORD) >= all.samples();
        let runtime = Runtime::of(tree);
        let mut findings: Vec<_> = copied(&self.copies).into_iter().collect();
        let samples = tree.event_ids().map(|event| tree.total(event).samples).fold(0, u64::saturating_add);
        findings.extend(self.lost(samples, target));
        if is_worth(all.cut) {
            let part = share(all.cut, all.samples());
            findings.push(format!("{part} of the stacks are cut: {}", self.why_cut(tree, &all, runtime, target)));
        }
        if is_worth(all.unknown) {
            let part = share(all.unknown, all.samples());
            let lacking = tree.event_ids().map(|event| without_interrupted(tree, event)).fold(0, u64::saturating_add);
            let why = match lacking {
                lacking
                    if self.origin == StackOrigin::Sampled(UnwindMethod::Fp)
                        && lacking.saturating_mul(2) > all.unknown =>
                {
                    format!("frame pointers miss what signals interrupted:  perfprop record -g {}", shown(target))
                }
                _ => why_unknown(tree, all.unknown).into(),
            };
            findings.push(format!("{part} of the stacks may lack callers: {why}"));
        }
        if self.lacks_stacks(tree) {
            findings.push("no call stacks were recorded:  perf record -g".into());
        }
        if is_worth(all.nameless) {
            let part = share(all.nameless, all.samples());
            findings.push(format!("{part} of the samples are in code without a name, {}", runtime.names(target)));
        }
        let python = without_python(tree);
        if is_worth(python) {
            let how = if let Runtime::Python(_) = runtime { runtime } else { Runtime::Python(None) }.names(target);
            let part = share(python, all.samples());
            findings
                .push(format!("{part} of the samples are in Python's interpreter, not in functions of Python, {how}"));
        }
        findings.extend(self.without_names(all.samples()));
        findings.extend(self.unknown_regions.finding(samples));
        findings.extend(self.unnamed.iter().map(ToString::to_string));
        findings.extend(self.notes.iter().map(|note| shown(note).into_owned()));
        findings
    }

    /// How many samples are missing beside so many that were taken, and what mends it; `None` where that is not worth a word.
    fn lost(&self, taken: u64, target: &str) -> Option<String> {
        let lost = self.losses.samples();
        let all = taken.saturating_add(lost);
        let is_worth = lost > 0 && lost.saturating_mul(WORTH_TELLING_LOST) >= all;
        let has_copies = matches!(self.origin, StackOrigin::Sampled(UnwindMethod::Auto | UnwindMethod::Dwarf(_)));
        let fewer = "a lower -F takes fewer samples";
        is_worth.then(|| {
            let (part, target) = (share(lost, all), shown(target));
            let how = match has_copies && self.losses.lost > 0 {
                true => format!("{fewer}, and no stacks are copied with  perfprop record --call-graph fp {target}"),
                false => fewer.to_owned(),
            };
            format!("{part} of the samples were lost, as nobody read them in time: {how}")
        })
    }

    /// Whether copies of stacks became shorter, and records had been lost.
    fn were_copies_relieved(&self) -> bool {
        self.losses.lost > 0 && self.copies.windows(2).any(|pair| pair[1].bytes < pair[0].bytes)
    }

    /// In how many samples nothing names the function, and why; `None` where that is not worth a word.
    fn without_names(&self, samples: u64) -> Option<String> {
        // Of code that was made at run time another finding tells.
        let reasons: Vec<_> =
            self.nameless.all().into_iter().filter(|(reason, _)| *reason != NamelessReason::Made).collect();
        let sum = reasons.iter().fold(0u64, |sum, (_, samples)| sum.saturating_add(*samples));
        let (main, _) = reasons.first()?;
        let (part, words) = (share(sum, samples), in_words(&reasons, samples));
        let is_worth = sum.saturating_mul(WORTH_A_WORD) >= samples;
        let words = if reasons.len() == 1 { format!(", {}", main.place()) } else { format!(": {words}") };
        is_worth.then(|| format!("{part} of the samples are in functions without a name{words}; {}", main.help()))
    }

    /// Why stacks are cut, and the command that shows more of them.
    fn why_cut(&self, tree: &Tree, reach: &Reach, runtime: Runtime, target: &str) -> String {
        let losses = &self.losses;
        let (is_mostly, target) = (|part: u64| part * 2 > reach.cut, shown(target));
        match self.origin {
            StackOrigin::Sampled(UnwindMethod::Auto | UnwindMethod::Fp | UnwindMethod::Lbr)
                if is_mostly(losses.too_deep) =>
            {
                format!(
                    "they are deeper than the kernel follows:  sudo sysctl kernel.perf_event_max_stack=1024, or  \
                     perfprop record --call-graph dwarf,{LARGEST_COPY} {target}"
                )
            }
            StackOrigin::Sampled(UnwindMethod::Dwarf(bytes))
                if is_mostly(losses.copy_ended) && bytes < LARGEST_COPY =>
            {
                let more = bytes.saturating_mul(4);
                if more >= LARGEST_COPY {
                    return longer_than_copies(&target);
                }
                format!("they are longer than the copies:  perfprop record --call-graph dwarf,{more} {target}")
            }
            StackOrigin::Sampled(UnwindMethod::Dwarf(bytes)) if is_mostly(losses.copy_ended) => {
                format!(
                    "they are longer than the {bytes} bytes that the kernel copies at most; where code keeps frame pointers \
                     (-fno-omit-frame-pointer), -g follows those of any length up to {FRAMES_FOLLOWED} frames deep"
                )
            }
            StackOrigin::Sampled(UnwindMethod::Auto) if self.were_copies_relieved() && losses.stack_gone < losses.cut / 2 => {
                "samples were lost, and copies of stacks were made shorter for that; a lower -F leaves room for whole ones".into()
            }
            StackOrigin::Sampled(UnwindMethod::Auto) if is_mostly(losses.copy_ended) => match largest(&self.copies) {
                Some(bytes) if self.ended_before * 2 > losses.copy_ended => format!(
                    "they were longer than the first copies, which have grown to {} since; all of this size from the beginning:  \
                     perfprop record --call-graph dwarf,{bytes} {target}",
                    size(bytes)
                ),
                _ => longer_than_copies(&target),
            },
            StackOrigin::Sampled(_) if is_mostly(losses.stack_gone) => {
                "their processes were about to end or to become other programs, and had no stack any more".into()
            }
            StackOrigin::Sampled(_) if is_mostly(cut_behind_handlers(tree)) => format!(
                "handlers of signals ran on a stack of their own (sigaltstack), and that of what they interrupted isn't copied; \
                 where code keeps frame pointers (-fno-omit-frame-pointer):  perfprop record --call-graph fp {target}"
            ),
            StackOrigin::Sampled(_) if runtime == Runtime::Java => {
                let option = "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer";
                format!("Java keeps no frame pointers unless it is told to{}", with_setting(option, &target))
            }
            StackOrigin::Sampled(UnwindMethod::Auto) => {
                "code with neither frame pointers nor unwind information called; build it with -fno-omit-frame-pointer"
                    .into()
            }
            StackOrigin::Sampled(UnwindMethod::Dwarf(_)) => {
                format!(
                    "code without unwind information called; if it keeps frame pointers:  perfprop record -g {target}"
                )
            }
            StackOrigin::PerfScript => "if frame pointers are missing:  perf record --call-graph dwarf".into(),
            StackOrigin::Other | StackOrigin::Sampled(_) => {
                format!("code without frame pointers called:  perfprop record --call-graph dwarf {target}")
            }
        }
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

/// Why nobody can tell whether so many stacks are whole.
fn why_unknown(tree: &Tree, unknown: u64) -> &'static str {
    let is_made = |frame: &Frame<'_>| frame.module.starts_with("//anon") || is_of_runtime(frame.module);
    let is_outermost = |node: &NodeRef<'_>| {
        node.parent().is_some_and(|parent| {
            let parent = tree.node(parent);
            parent.depth() == 0 || matches!(parent.frame().kind, FrameKind::Process | FrameKind::Region)
        })
    };
    let made = all_samples_below(tree, |node| is_made(&node.frame()) && is_outermost(node));
    if made.saturating_mul(2) > unknown {
        "they begin in code that was made at run time, which has no unwind information, and no frame pointers lead on"
    } else {
        "their outermost functions have no names, which would tell where stacks begin"
    }
}

/// The samples below Python's interpreter in stacks without functions of Python.
fn without_python(tree: &Tree) -> u64 {
    if tree.frames().any(|frame| is_of_runtime(frame.module)) {
        return 0;
    }
    all_samples_below(tree, |node| node.frame().name == "_PyEval_EvalFrameDefault")
}

/// What is true of stacks that only the largest copies may hold.
fn longer_than_copies(target: &str) -> String {
    format!(
        "they are longer than the copies; where code keeps frame pointers (-fno-omit-frame-pointer), those of up to {FRAMES_FOLLOWED} \
         frames are whole; larger copies hold those of up to 64 KiB:  perfprop record --call-graph dwarf,{LARGEST_COPY} {target}"
    )
}

/// The most bytes that were copied; `None` where nothing was.
fn largest(switches: &[CopySwitch]) -> Option<u32> {
    switches.iter().map(|switch| switch.bytes).max().filter(|&bytes| bytes > 0)
}

/// `512 bytes`, `8 KiB`.
fn size(bytes: u32) -> String {
    if bytes < 1024 { format!("{bytes} bytes") } else { format!("{} KiB", bytes / 1024) }
}

/// From when to when stacks were copied, why, and what that costs; `None` where they never were.
fn copied(switches: &[CopySwitch]) -> Option<String> {
    let first = switches.iter().find(|switch| switch.bytes > 0)?;
    let most = switches.iter().map(|switch| switch.bytes).max()?;
    let mut modules: Vec<&str> = Vec::new();
    for module in switches.iter().flat_map(|switch| &switch.modules) {
        let name = module.rsplit('/').next().unwrap_or_default();
        if !modules.contains(&name) {
            modules.push(name);
        }
    }
    let listed = first_of(modules.iter().map(|name| shown(name)), MOST_NAMED);
    let where_ = if listed.is_empty() { String::new() } else { format!(" in {listed}") };
    let from = clock(first.at);
    let when = match switches {
        [.., last] if last.bytes > 0 => format!("from {from} on"),
        [.., last] => format!("from {from} to {}", clock(last.at)),
        [] => return None,
    };
    let least = switches.iter().map(|switch| switch.bytes).filter(|bytes| *bytes > 0).min()?;
    let size = if most > least { format!("{} to {}", size(least), size(most)) } else { size(most) };
    Some(format!(
        "frame pointers are missing{where_}: stacks are copied ({size} a sample) {when}; --call-graph fp copies none"
    ))
}

/// The samples in handlers of signals, whose stacks begin, but miss what the signal interrupted.
fn without_interrupted(tree: &Tree, event: EventId) -> u64 {
    in_handlers(tree, event, |outermost| end_by_name(outermost) == StackEnd::Beginning)
}

fn end_by_name(frame: &Frame<'_>) -> StackEnd {
    StackEnd::of(frame.name, frame.module, frame.is_kernel())
}

/// The same of stacks that an unwinder found whole, whatever their outermost function is called, unless it said that they are cut.
fn end_as_unwound(frame: &Frame<'_>) -> StackEnd {
    match end_by_name(frame) {
        StackEnd::Unknown => StackEnd::Unknown,
        _ if frame.name == CUT => StackEnd::Cut,
        StackEnd::Beginning | StackEnd::Cut => StackEnd::Beginning,
    }
}

/// What made code while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runtime {
    Java,
    Node,
    /// Python 3 of this version, if the file's name tells it.
    Python(Option<u32>),
    Other,
}

impl Runtime {
    fn of(tree: &Tree) -> Self {
        let runtime = |module: &str| match module.rsplit('/').next().unwrap_or_default() {
            "libjvm.so" => Some(Self::Java),
            "node" | "nodejs" => Some(Self::Node),
            name if name.starts_with("libnode.so") => Some(Self::Node),
            name if name.starts_with("python3") || name.starts_with("libpython3") => {
                Some(Self::Python(python_minor(name)))
            }
            _ => None,
        };
        tree.frames().find_map(|frame| runtime(frame.module)).unwrap_or(Self::Other)
    }

    /// How it is made to tell the names of what it compiled.
    fn names(self, target: &str) -> String {
        let target = shown(target);
        let told = |what: &str, setting: &str| {
            format!("whose names {what} tells if it is asked to{}", with_setting(setting, &target))
        };
        match self {
            Self::Java => told(
                "Java",
                "JAVA_TOOL_OPTIONS='-XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit'",
            ),
            Self::Node => told("Node", "NODE_OPTIONS='--perf-basic-prof --interpreted-frames-native-stack'"),
            Self::Python(Some(minor)) if minor < PYTHON_THAT_TELLS => {
                format!("whose names need Python 3.{PYTHON_THAT_TELLS} or later (this is 3.{minor})")
            }
            Self::Python(_) if is_of_command(&target) => told("Python 3.12 or later", "PYTHONPERFSUPPORT=1"),
            Self::Python(_) => {
                "whose names Python 3.12 or later tells if it is started as  python3 -X perf, or with  PYTHONPERFSUPPORT=1"
                    .into()
            }
            Self::Other => "which was made at run time and is in no /tmp/perf-PID.map".into(),
        }
    }
}

/// The first Python 3 that tells names of its functions.
const PYTHON_THAT_TELLS: u32 = 12;

/// `3.11` of `python3.11`, `libpython3.11.so.1.0`: the number behind the point.
fn python_minor(name: &str) -> Option<u32> {
    let version = name.split_once("python3.")?.1;
    version[..version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len())].parse().ok()
}

/// Whether what was measured is a command, which gets the variables of perfprop.
fn is_of_command(target: &str) -> bool {
    target.starts_with("-- ")
}

/// How a program gets a variable: what runs already got its own when it began.
fn with_setting(setting: &str, target: &str) -> String {
    match is_of_command(target) {
        true => format!(":  {setting} perfprop record -g {target}"),
        false => format!(" when it starts, with  {setting}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::profile::{Amount, ProfileEvent, SampleMeasure, TreeOptions};
    use crate::units::WallNs;

    /// Stacks of a process with so many samples each; a frame is `name` or `name|module`.
    fn tree(stacks: &[(&str, u64)]) -> Tree {
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

    fn quality(origin: StackOrigin) -> StackQuality {
        StackQuality { origin, ..StackQuality::default() }
    }

    const FP: StackOrigin = StackOrigin::Sampled(UnwindMethod::Fp);
    const AUTO: StackOrigin = StackOrigin::Sampled(UnwindMethod::Auto);

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
    fn what_cuts_stacks_has_a_command_against_it() {
        let python = tree(&[("_start;main", 4), ("PyEval_EvalCode|/usr/bin/python3.11", 804)]);
        let finding = |origin, losses, tree: &Tree, target: &str| {
            StackQuality { losses, ..quality(origin) }.findings(tree, target).join("\n")
        };
        let none = Losses::default();
        let text = finding(FP, none, &python, "-- python3 x.py");
        assert_eq!(
            text,
            "99.5% of the stacks are cut: code without frame pointers called:  \
             perfprop record --call-graph dwarf -- python3 x.py"
        );
        let dwarf = |bytes| StackOrigin::Sampled(UnwindMethod::Dwarf(bytes));
        let ended = Losses { cut: 804, copy_ended: 804, ..none };
        assert!(finding(dwarf(8192), ended, &python, "-a").ends_with("--call-graph dwarf,32768 -a"));
        assert!(finding(dwarf(32768), ended, &python, "-a").ends_with("--call-graph dwarf,65528 -a"));
        assert!(finding(dwarf(65528), ended, &python, "-a").contains("copies at most"));
        let deep = Losses { cut: 804, too_deep: 804, ..none };
        let text = finding(FP, deep, &python, "-a");
        assert!(text.contains("perf_event_max_stack=1024") && text.ends_with("dwarf,65528 -a"), "{text}");
        assert!(finding(StackOrigin::PerfScript, none, &python, "").contains("perf record --call-graph dwarf"));
        let java = tree(&[("[unknown]|//anon", 64), ("JavaMain|/lib/libjvm.so", 36)]);
        let text = finding(FP, none, &java, "-- java A");
        assert!(text.contains("-XX:+PreserveFramePointer perfprop record -g -- java A"), "{text}");
        assert!(text.contains("64.0% of the samples are in code without a name") && text.contains("DumpPerfMapAtExit"));
        let text = finding(AUTO, ended, &python, "-- python3 x.py");
        assert!(text.contains("dwarf,65528 -- python3 x.py") && text.contains("up to 127 frames"), "{text}");
        let gone = Losses { cut: 804, stack_gone: 800, ..none };
        assert!(finding(AUTO, gone, &python, "-a").ends_with("had no stack any more"));
        assert!(finding(AUTO, Losses { cut: 804, ..none }, &python, "-a").ends_with("with -fno-omit-frame-pointer"));
        assert!(finding(FP, none, &java, "-p 7").contains("told to when it starts, with  JAVA_TOOL_OPTIONS="));
        // A few are no reason to tell anything.
        assert_eq!(finding(FP, none, &tree(&[("_start;main", 99), ("f", 1)]), "-a"), "");
    }

    #[test]
    fn copies_that_have_grown_are_not_told_to_be_too_short() {
        let program = tree(&[("_start;main", 4), ("[cut];f", 6)]);
        let batch = |ended, copies: &[(u64, u32)]| StackBatch {
            losses: Losses { cut: ended, copy_ended: ended, ..Losses::default() },
            copies: copies
                .iter()
                .map(|&(at, bytes)| CopySwitch { at: WallNs(at), bytes, modules: Vec::new() })
                .collect(),
            ..StackBatch::default()
        };
        let told = |batches: &[StackBatch]| {
            let mut quality = quality(AUTO);
            batches.iter().for_each(|batch| quality.take(batch));
            quality.findings(&program, "-- ./p").join("\n")
        };
        // All were cut before copies grew.
        let text = told(&[batch(0, &[(1, 512)]), batch(6, &[(2, 8192)]), batch(6, &[(3, 512)])]);
        assert!(
            text.ends_with(
                "have grown to 8 KiB since; all of this size from the beginning:  \
                                perfprop record --call-graph dwarf,8192 -- ./p"
            ),
            "{text}"
        );
        // Most were cut since, or copies never grew.
        let never = [batch(6, &[(1, 8192)]), batch(6, &[(3, 512)])];
        for batches in
            [[batch(2, &[(1, 512), (2, 8192)]), batch(6, &[])], [batch(0, &[(1, 8192)]), batch(6, &[])], never]
        {
            assert!(told(&batches).contains("dwarf,65528"));
        }
    }

    #[test]
    fn what_signals_interrupted_is_not_told_to_lack_frame_pointers() {
        let stack = "_start;main;__restore_rt;handler";
        let interrupted = tree(&[("_start;main", 6), (stack, 4)]);
        let event = interrupted.default_event().unwrap();
        let reach = |origin| quality(origin).reach(&interrupted, event).unwrap();
        assert_eq!(reach(FP), Reach { complete: 6, unknown: 4, ..Reach::default() });
        assert_eq!(reach(AUTO), Reach { complete: 10, ..Reach::default() });
        let text = quality(FP).findings(&interrupted, "-- ./p").join("\n");
        assert!(text.ends_with("frame pointers miss what signals interrupted:  perfprop record -g -- ./p"), "{text}");
        let other_stack = tree(&[("_start;main", 6), ("[cut];spin;__restore_rt;handler", 4)]);
        let losses = Losses { cut: 4, ..Losses::default() };
        let text = StackQuality { losses, ..quality(AUTO) }.findings(&other_stack, "-- ./p").join("\n");
        assert!(
            text.contains("on a stack of their own (sigaltstack)") && text.ends_with("--call-graph fp -- ./p"),
            "{text}"
        );
        // Cut stacks are cut, and no more than that.
        assert_eq!(quality(FP).reach(&other_stack, other_stack.default_event().unwrap()).unwrap().unknown, 0);
    }

    #[test]
    fn lost_samples_are_told_from_one_in_a_hundred_on_with_what_mends_it() {
        let taken = tree(&[("_start;main", 99)]);
        let told = |origin, lost| {
            let losses = Losses { lost, ..Losses::default() };
            StackQuality { losses, ..quality(origin) }.findings(&taken, "-a").join("\n")
        };
        let text = told(AUTO, 1);
        assert!(
            text.starts_with("1.0% of the samples were lost") && text.ends_with("perfprop record --call-graph fp -a"),
            "{text}"
        );
        assert!(told(FP, 99).ends_with("in time: a lower -F takes fewer samples"));
        assert_eq!(told(AUTO, 0), "");
    }

    #[test]
    fn python_without_its_functions_is_told_how_to_name_them() {
        let told = |stacks: &[(&str, u64)]| quality(FP).findings(&tree(stacks), "-- python3 x.py").join("\n");
        let python = "_start;main;_PyEval_EvalFrameDefault";
        let text =
            told(&[(python, 60), (&format!("{python};list_sort;_PyEval_EvalFrameDefault"), 20), ("_start;main", 20)]);
        assert_eq!(
            text,
            "80.0% of the samples are in Python's interpreter, not in functions of Python, whose names Python 3.12 or later \
             tells if it is asked to:  PYTHONPERFSUPPORT=1 perfprop record -g -- python3 x.py"
        );
        assert_eq!(told(&[(python, 60), (&format!("{python};fib|perf-7.map"), 20)]), "");
        assert_eq!(told(&[(python, 1), ("_start;main", 99)]), "");
    }

    #[test]
    fn a_python_that_runs_or_is_too_old_is_told_so() {
        let told = |module: &str, target: &str| {
            let stack = format!("_start;main;_PyEval_EvalFrameDefault|{module}");
            quality(FP).findings(&tree(&[(&stack, 9)]), target).join("\n")
        };
        let text = told("/usr/lib/libpython3.12.so.1.0", "-p 7");
        assert!(text.ends_with("if it is started as  python3 -X perf, or with  PYTHONPERFSUPPORT=1"), "{text}");
        assert!(told("/usr/bin/python3", "-a").contains("-X perf"));
        let text = told("/usr/bin/python3.11", "-- python3 x.py");
        assert!(text.ends_with("whose names need Python 3.12 or later (this is 3.11)"), "{text}");
        assert_eq!(python_minor("libpython3.so"), None);
    }

    #[test]
    fn stacks_that_may_lack_callers_are_told_with_the_reason() {
        let told = |stacks: &[(&str, u64)]| {
            let losses = Losses { unknown: 10, ..Losses::default() };
            StackQuality { losses, ..quality(AUTO) }.findings(&tree(stacks), "-a").join("\n")
        };
        let text = told(&[("f|perf-7.map;g|perf-7.map", 10), ("_start;main", 10)]);
        assert!(text.starts_with("50.0% of the stacks may lack callers: they begin in code that was made"), "{text}");
        let text = told(&[("p+0x10;g", 10), ("_start;main", 10)]);
        assert!(text.contains("their outermost functions have no names"), "{text}");
    }

    #[test]
    fn what_was_recorded_without_stacks_is_no_cut_stack() {
        let flat = tree(&[("f", 3), ("main", 2)]);
        let script = quality(StackOrigin::PerfScript);
        assert_eq!(script.findings(&flat, ""), ["no call stacks were recorded:  perf record -g"]);
        assert_eq!(script.reach(&flat, flat.default_event().unwrap()), None);
        assert!(!script.lacks_stacks(&tree(&[("f;g", 3), ("main", 2)])));
    }

    #[test]
    fn copies_of_stacks_are_told_with_their_reason_and_cost() {
        let switch = |seconds: u64, bytes, modules: &[&str]| CopySwitch {
            at: WallNs(seconds * 1_000_000_000),
            bytes,
            modules: modules.iter().map(|module| (*module).to_owned()).collect(),
        };
        let told = |copies: &[CopySwitch]| {
            let quality = StackQuality { copies: copies.to_vec(), ..quality(AUTO) };
            quality.findings(&tree(&[("f", 1)]), "").join("\n")
        };
        assert_eq!(told(&[]), "");
        let first = switch(1, 8192, &["/lib/libc.so.6", "/usr/bin/sqlite3"]);
        let begin = "frame pointers are missing in libc.so.6, sqlite3";
        let end = "--call-graph fp copies none";
        assert_eq!(
            told(std::slice::from_ref(&first)),
            format!("{begin}: stacks are copied (8 KiB a sample) from 00:01 on; {end}")
        );
        let larger = switch(2, 32768, &["/lib/libc.so.6"]);
        let over = switch(62, 0, &[]);
        assert_eq!(
            told(&[first, larger, over]),
            format!("{begin}: stacks are copied (8 KiB to 32 KiB a sample) from 00:01 to 01:02; {end}")
        );
        let many = switch(0, 8192, &["/a", "/b", "/c", "/d", "/e", "/f\u{1b}"]);
        let text = told(&[many]);
        assert!(text.starts_with("frame pointers are missing in a, b, c, d and 2 more: "), "{text}");
        assert!(!told(&[switch(0, 8192, &["/f\u{1b}"])]).contains('\u{1b}'));
        assert!(told(&[switch(0, 8192, &[])]).starts_with("frame pointers are missing: stacks are copied"));
    }

    #[test]
    fn samples_in_unknown_regions_are_told_with_what_is_missing() {
        let finding = |samples, missed| UnknownRegions { samples, missed }.finding(200);
        assert_eq!(finding(0, 0), None);
        let told = finding(50, 12_345).unwrap();
        assert!(told.starts_with("50 samples (25.0%) are in [region unknown]: 12,345 enters and leaves"), "{told}");
        assert!(finding(0, 3).unwrap().starts_with("3 enters and leaves of regions came too fast"));
        let unknown_regions = UnknownRegions { samples: 1, missed: 9 };
        let quality = StackQuality { unknown_regions, ..StackQuality::default() };
        assert!(
            quality.findings(&tree(&[("_start;main", 2)]), "").iter().any(|told| told.starts_with("1 samples (50.0%)"))
        );
    }

    #[test]
    fn names_from_outside_are_escaped() {
        let unnamed = vec![UnnamedFile { path: "/tmp/\u{1b}[2J".into(), why: "it is no regular file".into() }];
        let findings = StackQuality { unnamed, ..StackQuality::default() }.findings(&tree(&[("f", 1)]), "");
        assert!(!findings[0].contains('\u{1b}'), "{findings:?}");
    }
}
