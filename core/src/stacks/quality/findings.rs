//! Says what a reader should know of stacks, each with what mends it.

use super::super::folding::is_of_runtime;
use super::super::handlers::{all_samples_below, cut_behind_handlers, samples_below};
use super::super::nameless::{NamelessReason, in_words};
use super::super::{CopySwitch, UnwindMethod};
use super::{Reach, StackOrigin, StackQuality, UnknownRegions, largest, sampled_by_timer, share, without_interrupted};
use crate::names::{first_of, shown};
use crate::number::{clock, grouped};
use crate::profile::{EventId, Frame, FrameKind, NodeRef, Tree};

/// The part of the samples from which on a finding tells of cut stacks or missing names: one in so many.
const WORTH_A_WORD: u64 = 20;

/// So many samples there are before shares of them are told: fewer say nothing of the rest.
const LEAST_SAMPLES: u64 = 10;

/// The part of lost samples from which on a finding tells of them: one in so many.
const WORTH_TELLING_LOST: u64 = 100;

/// So many files are named that keep no frame pointers.
const MOST_NAMED: usize = 4;

/// The largest copy of a stack that the kernel makes, in bytes: a multiple of 8 below 64 KiB.
const LARGEST_COPY: u32 = 65_528;

/// So many frame pointers the kernel follows where nobody changed it (`kernel.perf_event_max_stack`).
const FRAMES_FOLLOWED: u32 = 127;

impl StackQuality {
    /// How stacks were had where frame pointers are missing, and what that costs; `None` where none were copied.
    pub fn copying(&self) -> Option<String> {
        copied(&self.copies)
    }

    /// What a reader should know of the stacks, each with what mends it. `target` is that part of a command line
    /// which says what is measured: `-- python3 x.py`.
    pub fn findings(&self, tree: &Tree, target: &str) -> Vec<String> {
        let reached = EventReaches::of(self, tree);
        let all: Reach = reached.0.iter().map(|(_, reach)| *reach).sum();
        let runtime = Runtime::of(tree);
        let mut findings = Vec::new();
        let samples = tree.event_ids().map(|event| tree.total(event).samples).fold(0, u64::saturating_add);
        findings.extend(self.lost(samples, target));
        if let Some(part) = reached.told(tree, "stacks", |_, reach| reach.cut) {
            findings.push(format!("{part} are cut: {}", self.why_cut(tree, &all, runtime, target)));
        }
        if let Some(part) = reached.told(tree, "stacks", |_, reach| reach.unknown) {
            let why = self.why_unknown(tree, all.unknown, target);
            findings.push(format!("{part} may lack callers: {why}"));
        }
        if self.lacks_stacks(tree) {
            findings.push("no call stacks were recorded:  perf record -g".into());
        }
        if let Some(part) = reached.told(tree, "samples", |_, reach| reach.nameless) {
            findings.push(format!("{part} are in code without a name, {}", runtime.names(target)));
        }
        if let Some(part) = reached.told(tree, "samples", |event, _| without_python(tree, event)) {
            let minor = if let Runtime::Python(minor) = runtime { minor } else { None };
            let how = python_names(minor, target);
            findings.push(format!(
                "{part} are below Python's interpreter, and which function of Python called isn't known: {how}"
            ));
        }
        findings.extend(self.without_names(tree, &reached));
        if matches!(self.origin, StackOrigin::Sampled(_)) {
            findings.extend(sampled_by_timer::findings(tree));
        }
        findings.extend(self.unknown_regions.finding(samples));
        findings.extend(self.rough_regions.as_ref().map(|names| {
            let what = "their times can't be told well, as measuring the calls took more; put regions around more work";
            format!("regions {names}: {what}")
        }));
        findings.extend(self.outlasted_regions.as_ref().map(|told| format!("{told}; end it before longjmp")));
        findings.extend(self.unnamed.iter().map(ToString::to_string));
        findings.extend(self.notes.iter().map(|note| shown(note).into_owned()));
        findings
    }

    /// Why nobody can tell whether so many stacks are whole, and the command that shows it.
    fn why_unknown(&self, tree: &Tree, unknown: u64, target: &str) -> String {
        let lacking = tree.event_ids().map(|event| without_interrupted(tree, event)).fold(0, u64::saturating_add);
        if self.origin == StackOrigin::Sampled(UnwindMethod::Fp) && lacking.saturating_mul(2) > unknown {
            return format!("frame pointers miss what signals interrupted:  perfprop record -g {}", shown(target));
        }
        why_unnamed(tree, unknown).into()
    }

    /// How many samples are missing beside so many that were taken, and what mends it; `None` where that is not worth a
    /// word.
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
    fn without_names(&self, tree: &Tree, reached: &EventReaches) -> Option<String> {
        // Of code that was made at run time another finding tells.
        let is_told = |(reason, _): &(NamelessReason, u64)| *reason != NamelessReason::Made;
        let reasons = |event| self.nameless.of(event).into_iter().filter(is_told).collect::<Vec<_>>();
        let sum = |event, _: &Reach| reasons(event).iter().fold(0u64, |sum, (_, samples)| sum.saturating_add(*samples));
        let worth = reached.worth(sum);
        let part = reached.told(tree, "samples", sum)?;
        let (event, reach) = worth.first()?;
        let of_first = reasons(*event);
        let (main, _) = of_first.first()?;
        let words = match (of_first.len(), reached.0.len()) {
            (1, _) => format!(", {}", main.place()),
            (_, 1) => format!(": {}", in_words(&of_first, reach.samples())),
            _ => format!(", most {}", main.place()),
        };
        Some(format!("{part} are in functions without a name{words}; {}", main.help()))
    }

    /// Why stacks are cut, and the command that shows more of them.
    fn why_cut(&self, tree: &Tree, reach: &Reach, runtime: Runtime, target: &str) -> String {
        let target = &shown(target);
        match self.origin {
            StackOrigin::Sampled(method) => self
                .why_ended(method, reach, target)
                .unwrap_or_else(|| self.why_lost(method, (tree, reach), runtime, target)),
            StackOrigin::PerfScript => "if frame pointers are missing:  perf record --call-graph dwarf".into(),
            StackOrigin::Other => without_frame_pointers(target),
        }
    }

    /// The limit that most of the cut stacks are longer than; `None` where it isn't that.
    fn why_ended(&self, method: UnwindMethod, reach: &Reach, target: &str) -> Option<String> {
        let losses = &self.losses;
        let is_mostly = |part: u64| part * 2 > reach.cut;
        Some(match method {
            UnwindMethod::Auto | UnwindMethod::Fp | UnwindMethod::Lbr if is_mostly(losses.too_deep) => format!(
                "they are deeper than the kernel follows:  sudo sysctl kernel.perf_event_max_stack=1024, or  \
                 perfprop record --call-graph dwarf,{LARGEST_COPY} {target}"
            ),
            UnwindMethod::Dwarf(bytes) if is_mostly(losses.copy_ended) && bytes < LARGEST_COPY => {
                let more = bytes.saturating_mul(4);
                if more >= LARGEST_COPY {
                    return Some(longer_than_copies(target));
                }
                format!("they are longer than the copies:  perfprop record --call-graph dwarf,{more} {target}")
            }
            UnwindMethod::Dwarf(bytes) if is_mostly(losses.copy_ended) => format!(
                "they are longer than the {bytes} bytes that the kernel copies at most; where code keeps frame pointers \
                 (-fno-omit-frame-pointer), -g follows those of any length up to {FRAMES_FOLLOWED} frames deep"
            ),
            UnwindMethod::Auto if self.were_copies_relieved() && losses.stack_gone < losses.cut / 2 => {
                "samples were lost, and copies of stacks were made shorter for that; a lower -F leaves room for whole ones".into()
            }
            UnwindMethod::Auto if is_mostly(losses.copy_ended) => match largest(&self.copies) {
                Some(bytes) if self.ended_before * 2 > losses.copy_ended => format!(
                    "they were longer than the first copies, which have grown to {} since; all of this size from the beginning:  \
                     perfprop record --call-graph dwarf,{bytes} {target}",
                    size(bytes)
                ),
                _ => longer_than_copies(target),
            },
            _ => return None,
        })
    }

    /// Why callers weren't found within what there was of a stack.
    fn why_lost(&self, method: UnwindMethod, (tree, reach): (&Tree, &Reach), runtime: Runtime, target: &str) -> String {
        let is_mostly = |part: u64| part * 2 > reach.cut;
        match method {
            _ if is_mostly(self.losses.stack_gone) => {
                "their processes were about to end or to become other programs, and had no stack any more".into()
            }
            _ if is_mostly(cut_behind_handlers(tree)) => format!(
                "handlers of signals ran on a stack of their own (sigaltstack), and that of what they interrupted isn't copied; \
                 where code keeps frame pointers (-fno-omit-frame-pointer):  perfprop record --call-graph fp {target}"
            ),
            _ if runtime == Runtime::Java => {
                let option = "JAVA_TOOL_OPTIONS=-XX:+PreserveFramePointer";
                format!("Java keeps no frame pointers unless it is told to{}", with_setting(option, target))
            }
            UnwindMethod::Auto => {
                "code with neither frame pointers nor unwind information called, or a large part of the stack was never \
                 written and can't be copied; build it with -fno-omit-frame-pointer"
                    .into()
            }
            UnwindMethod::Dwarf(_) => {
                format!(
                    "code without unwind information called, or a large part of the stack was never written and can't be \
                     copied; if the program keeps frame pointers:  perfprop record -g {target}"
                )
            }
            UnwindMethod::Fp | UnwindMethod::Lbr | UnwindMethod::Modelled => without_frame_pointers(target),
        }
    }
}

/// How far the stacks of each event go that was sampled.
struct EventReaches(Vec<(EventId, Reach)>);

impl EventReaches {
    fn of(quality: &StackQuality, tree: &Tree) -> Self {
        Self(tree.event_ids().filter_map(|event| Some((event, quality.reach(tree, event)?))).collect())
    }

    /// The events of whose samples so many are worth a word.
    fn worth(&self, count: impl Fn(EventId, &Reach) -> u64) -> Vec<(EventId, Reach)> {
        let all = self.0.iter().copied();
        all.filter(|(event, reach)| is_worth(count(*event, reach), reach.samples())).collect()
    }

    /// `30.0% of the stacks`, of several events `30.0% of the stacks of cpu-clock, 12.0% of off-cpu's`; `None` where no
    /// event's are worth a word.
    fn told(&self, tree: &Tree, what: &str, count: impl Fn(EventId, &Reach) -> u64) -> Option<String> {
        let share_of = |(event, reach): &(EventId, Reach)| share(count(*event, reach), reach.samples());
        let name = |event: EventId| shown(&tree.event_of(event).name).into_owned();
        let worth = self.worth(&count);
        let (first, rest) = worth.split_first()?;
        if self.0.len() == 1 {
            return Some(format!("{} of the {what}", share_of(first)));
        }
        let rest = rest.iter().map(|one| format!(", {} of {}'s", share_of(one), name(one.0)));
        Some(format!("{} of the {what} of {}{}", share_of(first), name(first.0), rest.collect::<String>()))
    }
}

/// Stacks are cut as code has no frame pointers.
fn without_frame_pointers(target: &str) -> String {
    format!("code without frame pointers called:  perfprop record --call-graph dwarf {target}")
}

/// Whether so many samples of all are worth a word.
fn is_worth(samples: u64, all: u64) -> bool {
    samples > 0 && all >= LEAST_SAMPLES && samples.saturating_mul(WORTH_A_WORD) >= all
}

impl UnknownRegions {
    /// What it means, of so many samples in all; `None` where nothing is gone.
    fn finding(self, samples: u64) -> Option<String> {
        let [of, missed] = [self.samples, self.missed].map(grouped);
        let rest = "calls and times of regions have them all";
        match self {
            Self { samples: 0, missed: 0, .. } => None,
            Self { of_joined, samples: all, .. } if of_joined > all / 2 => Some(format!(
                "{of} samples ({}) are in [region unknown]: so many threads ran that those which were sampled seldom are joined \
                 under their name; {rest}",
                share(self.samples, samples)
            )),
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

/// Why nothing says where so many stacks begin.
fn why_unnamed(tree: &Tree, unknown: u64) -> &'static str {
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

/// The samples of an event below Python's interpreter in stacks without functions of Python.
fn without_python(tree: &Tree, event: EventId) -> u64 {
    if tree.frames().any(|frame| is_of_runtime(frame.module)) {
        return 0;
    }
    samples_below(tree, event, |node| node.frame().name == "_PyEval_EvalFrameDefault")
}

/// What is true of stacks that only the largest copies may hold.
fn longer_than_copies(target: &str) -> String {
    format!(
        "they are longer than the copies; where code keeps frame pointers (-fno-omit-frame-pointer), those of up to {FRAMES_FOLLOWED} \
         frames are whole; larger copies hold those of up to 64 KiB:  perfprop record --call-graph dwarf,{LARGEST_COPY} {target}"
    )
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
    let place = if listed.is_empty() { String::new() } else { format!(" in functions of {listed}") };
    let from = clock(first.at);
    let when = match switches {
        [.., last] if last.bytes > 0 => format!("since {from}"),
        [.., last] => format!("from {from} to {}", clock(last.at)),
        [] => return None,
    };
    let least = switches.iter().map(|switch| switch.bytes).filter(|bytes| *bytes > 0).min()?;
    let size = if most > least { format!("{} to {}", size(least), size(most)) } else { size(most) };
    Some(format!(
        "frame pointers are missing{place}: a part of the stack is copied with each sample {when} ({size}); --call-graph fp copies none"
    ))
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
            Self::Python(minor) => format!("which was made at run time: {}", python_names(minor, &target)),
            Self::Other => "which was made at run time and is in no /tmp/perf-PID.map".into(),
        }
    }
}

/// The first Python 3 that tells names of its functions.
const PYTHON_THAT_TELLS: u32 = 12;

/// How Python 3 of a version is made to tell the names of its functions.
fn python_names(minor: Option<u32>, target: &str) -> String {
    let tells = format!("Python 3.{PYTHON_THAT_TELLS} or later tells names if it is");
    match minor {
        Some(minor) if minor < PYTHON_THAT_TELLS => {
            format!("names need Python 3.{PYTHON_THAT_TELLS} or later (this is 3.{minor})")
        }
        _ if is_of_command(target) => {
            format!("{tells} asked to{}", with_setting("PYTHONPERFSUPPORT=1", &shown(target)))
        }
        _ => format!("{tells} started as  python3 -X perf, or with  PYTHONPERFSUPPORT=1"),
    }
}

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

    use super::super::super::{Losses, StackBatch, UnnamedFile};
    use super::super::tests::{AUTO, FP, quality, tree};
    use super::*;
    use crate::profile::{Amount, ProfileEvent, SampleMeasure};
    use crate::units::WallNs;

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
            "80.0% of the samples are below Python's interpreter, and which function of Python called isn't known: \
             Python 3.12 or later tells names if it is asked to:  PYTHONPERFSUPPORT=1 perfprop record -g -- python3 x.py"
        );
        assert_eq!(told(&[(python, 60), (&format!("{python};fib|perf-7.map"), 20)]), "");
        assert_eq!(told(&[(python, 1), ("_start;main", 99)]), "");
    }

    #[test]
    fn few_samples_tell_nothing_of_the_rest() {
        let told = |samples| {
            let mut quality = quality(FP);
            let tree = tree(&[("[unknown]|/usr/bin/prog", samples)]);
            let event = tree.default_event().unwrap();
            quality.nameless.add(event, NamelessReason::Stripped, samples);
            quality.findings(&tree, "-- ./prog").join("\n")
        };
        assert_eq!((told(1), told(9)), (String::new(), String::new()));
        assert!(told(10).contains("100% of the samples are in functions without a name"), "{}", told(10));
    }

    #[test]
    fn parts_are_those_of_each_event() {
        let mut tree = tree(&[("[cut];f", 64), ("_start;main", 136)]);
        let (place, clock) = (tree.sampled(), tree.default_event().unwrap());
        let [few, none] =
            ["off-cpu", "faults"].map(|name| tree.event(&ProfileEvent::new(name, SampleMeasure::Samples)));
        let frames = ["[cut]", "f", "_start"].map(|name| tree.frame(&Frame::function(name)));
        let amount = |samples| Amount { samples, weight: samples };
        tree.stack(place, vec![frames[0], frames[1]], few, amount(2));
        tree.stack(place, vec![frames[2]], few, amount(18));
        tree.stack(place, vec![frames[2]], none, amount(400));
        let mut quality = StackQuality { losses: Losses { cut: 66, ..Losses::default() }, ..quality(AUTO) };
        quality.nameless.add(clock, NamelessReason::Stripped, 50);
        quality.nameless.add(few, NamelessReason::Made, 9);
        let told = quality.findings(&tree, "-a").join("\n");
        assert!(told.starts_with("32.0% of the stacks of cpu-clock, 10.0% of off-cpu's are cut: "), "{told}");
        let nameless =
            "25.0% of the samples of cpu-clock are in functions without a name, in programs without symbols; ";
        assert!(told.contains(nameless), "{told}");
    }

    #[test]
    fn a_python_that_runs_or_is_too_old_is_told_so() {
        let told = |module: &str, target: &str| {
            let stack = format!("_start;main;_PyEval_EvalFrameDefault|{module}");
            quality(FP).findings(&tree(&[(&stack, 90)]), target).join("\n")
        };
        let text = told("/usr/lib/libpython3.12.so.1.0", "-p 7");
        assert!(text.ends_with("if it is started as  python3 -X perf, or with  PYTHONPERFSUPPORT=1"), "{text}");
        assert!(told("/usr/bin/python3", "-a").contains("-X perf"));
        let text = told("/usr/bin/python3.11", "-- python3 x.py");
        assert!(text.ends_with("isn't known: names need Python 3.12 or later (this is 3.11)"), "{text}");
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
    fn copies_of_stacks_are_told_with_their_reason_and_cost() {
        let switch = |seconds: u64, bytes, modules: &[&str]| CopySwitch {
            at: WallNs(seconds * 1_000_000_000),
            bytes,
            modules: modules.iter().map(|module| (*module).to_owned()).collect(),
        };
        let told = |copies: &[CopySwitch]| {
            let quality = StackQuality { copies: copies.to_vec(), ..quality(AUTO) };
            assert!(quality.findings(&tree(&[("f", 1)]), "").is_empty());
            quality.copying().unwrap_or_default()
        };
        assert_eq!(told(&[]), "");
        let first = switch(1, 8192, &["/lib/libc.so.6", "/usr/bin/sqlite3"]);
        let begin = "frame pointers are missing in functions of libc.so.6, sqlite3";
        let end = "--call-graph fp copies none";
        assert_eq!(
            told(std::slice::from_ref(&first)),
            format!("{begin}: a part of the stack is copied with each sample since 00:01 (8 KiB); {end}")
        );
        let larger = switch(2, 32768, &["/lib/libc.so.6"]);
        let over = switch(62, 0, &[]);
        assert_eq!(
            told(&[first, larger, over]),
            format!(
                "{begin}: a part of the stack is copied with each sample from 00:01 to 01:02 (8 KiB to 32 KiB); {end}"
            )
        );
        let many = switch(0, 8192, &["/a", "/b", "/c", "/d", "/e", "/f\u{1b}"]);
        let text = told(&[many]);
        assert!(text.starts_with("frame pointers are missing in functions of a, b, c, d and 2 more: "), "{text}");
        assert!(!told(&[switch(0, 8192, &["/f\u{1b}"])]).contains('\u{1b}'));
        assert!(told(&[switch(0, 8192, &[])]).starts_with("frame pointers are missing: a part of the stack is copied"));
    }

    #[test]
    fn samples_in_unknown_regions_are_told_with_what_is_missing() {
        let finding = |samples, missed| UnknownRegions { samples, missed, of_joined: 0 }.finding(200);
        assert_eq!(finding(0, 0), None);
        let told = finding(50, 12_345).unwrap();
        assert!(told.starts_with("50 samples (25.0%) are in [region unknown]: 12,345 enters and leaves"), "{told}");
        assert!(finding(0, 3).unwrap().starts_with("3 enters and leaves of regions came too fast"));
        let of_joined = UnknownRegions { samples: 50, missed: 0, of_joined: 50 }.finding(200).unwrap();
        assert!(
            of_joined.starts_with("50 samples (25.0%) are in [region unknown]: so many threads ran"),
            "{of_joined}"
        );
        let unknown_regions = UnknownRegions { samples: 1, missed: 9, of_joined: 0 };
        let quality = StackQuality { unknown_regions, ..StackQuality::default() };
        assert!(
            quality.findings(&tree(&[("_start;main", 2)]), "").iter().any(|told| told.starts_with("1 samples (50.0%)"))
        );
    }

    #[test]
    fn regions_whose_calls_take_less_than_measuring_them_are_told() {
        let quality = StackQuality { rough_regions: Some("'leaf'".into()), ..StackQuality::default() };
        assert!(
            quality.findings(&tree(&[("f", 1)]), "")[0].starts_with("regions 'leaf': their times can't be told well")
        );
    }

    #[test]
    fn regions_that_others_outlast_are_told() {
        let told = "SELF of 'a' is not known: in a call that has ended, 'b' began and has not ended";
        let quality = StackQuality { outlasted_regions: Some(told.into()), ..StackQuality::default() };
        assert_eq!(quality.findings(&tree(&[("f", 1)]), "")[0], format!("{told}; end it before longjmp"));
    }

    #[test]
    fn names_from_outside_are_escaped() {
        let unnamed = vec![UnnamedFile { path: "/tmp/\u{1b}[2J".into(), why: "it is no regular file".into() }];
        let findings = StackQuality { unnamed, ..StackQuality::default() }.findings(&tree(&[("f", 1)]), "");
        assert!(!findings[0].contains('\u{1b}'), "{findings:?}");
    }
}
