//! Compares imports and exports of other tools' stacks with the answers of inferno, fble and pprof:
//! `PERFPROP_GOLDEN`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use perfprop::profile::{EventId, Frame, NodeRef, ProfileEvent, RepeatFolding, SampleMeasure, Tree, TreeOptions};
use perfprop::stack_formats::{
    EventSelection, InputFormat, Names, OutputFormat, Periods, ProcessNaming, ReadOptions, WriteOptions, WrittenNumber,
    read, write,
};
use serde_json::Value;

use crate::goldens::TOOLS;

/// The files of a folder whose names end so, sorted; none, with a word, where there is no such folder.
fn goldens(folder: &str, end: &str) -> Vec<PathBuf> {
    let Some(folder) = TOOLS.find(folder) else { return Vec::new() };
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_str().unwrap().ends_with(end));
    files.sort();
    assert!(!files.is_empty(), "{} has no *{end}", folder.display());
    files
}

/// The file beside a script.
fn beside(script: &Path, end: &str) -> PathBuf {
    script.with_extension("").with_extension(end)
}

fn import(bytes: &[u8], options: &ReadOptions) -> Tree {
    let imported = read(bytes, options);
    assert!(imported.fault.is_none(), "{}", imported.fault.unwrap());
    imported.tree
}

/// As `--to folded` reads.
fn inferno() -> ReadOptions {
    ReadOptions {
        tree: TreeOptions { repeats: RepeatFolding::Keep, ..TreeOptions::default() },
        names: Names::Short,
        periods: Periods::Unpadded,
        events: EventSelection::First,
        ..ReadOptions::default()
    }
}

fn folded(tree: &Tree, unit: WrittenNumber) -> String {
    let mut out = Vec::new();
    write(tree, OutputFormat::Folded, &WriteOptions { unit, ..WriteOptions::default() }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The options that made a golden, from its name's end.
fn reading(end: &str) -> (ReadOptions, WrittenNumber) {
    let base = inferno();
    match end {
        "folded" => (base, WrittenNumber::Weights),
        "counts.folded" => (base, WrittenNumber::Samples),
        "pid.folded" => (ReadOptions { process: ProcessNaming::Pid, ..base }, WrittenNumber::Weights),
        "tid.folded" => (ReadOptions { process: ProcessNaming::Tid, ..base }, WrittenNumber::Weights),
        "kernel.folded" => (ReadOptions { names: Names::ShortKernel, ..base }, WrittenNumber::Weights),
        event => {
            let event = event.strip_suffix(".folded").unwrap().to_owned();
            (ReadOptions { events: EventSelection::Named(vec![event]), ..base }, WrittenNumber::Weights)
        }
    }
}

/// Stacks as inferno has them. It leaves out what we don't: samples without frames, as of `process 12`, those of tasks that
/// have ended, which perf calls `:-1`, and frames whose names begin with a parenthesis, as in `(anonymous namespace)::f`.
/// It takes `P::operator->() const` for two frames of Java.
fn as_inferno(lines: &str) -> Vec<String> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for line in lines.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let (process, frames) = stack.split_once(';').unwrap_or((stack, ""));
        let named = frames.split(';').filter(|name| !name.is_empty() && !name.starts_with('('));
        let inlined = |part: &str| format!("{}_[i]", part.split('(').next().unwrap());
        let parts = named.flat_map(|name| {
            let (first, rest) = name.split_once("->").map_or((name, None), |(first, rest)| (first, Some(rest)));
            std::iter::once(first.to_owned()).chain(rest.into_iter().flat_map(|rest| rest.split("->")).map(inlined))
        });
        let stack: Vec<String> = std::iter::once(process.to_owned()).chain(parts).collect();
        if stack.len() > 1 && !process.starts_with(":-1") {
            *stacks.entry(stack.join(";")).or_default() += count.parse::<u64>().unwrap();
        }
    }
    stacks.into_iter().map(|(stack, count)| format!("{stack} {count}")).collect()
}

#[test]
fn stacks_are_compared_without_what_inferno_leaves_out() {
    let ours = "p 3\np;(anonymous namespace)::f 1\np;(anonymous namespace)::f;g 4\np;P::operator->() const;g 2\np;g 1\n:-1;g 1\n";
    assert_eq!(as_inferno(ours), ["p;P::operator;_[i];g 2", "p;g 5"]);
}

#[test]
fn golden_perf_script_folded() {
    let mut compared = 0;
    for path in goldens("perf-script", ".folded") {
        let file = path.file_name().unwrap().to_str().unwrap();
        let (name, end) = file.split_once('.').unwrap();
        let script = fs::read(path.with_file_name(format!("{name}.script"))).unwrap();
        let (options, unit) = reading(end);
        let ours = folded(&import(&script, &options), unit);
        let theirs = fs::read_to_string(&path).unwrap();
        assert_eq!(as_inferno(&ours), theirs.lines().collect::<Vec<_>>(), "{file}");
        compared += 1;
    }
    eprintln!("{compared} files");
}

/// As fble's converter cuts names: at the first plus sign or blank, also within names of operators and templates.
fn cut(name: &str) -> &str {
    name.split(['+', ' ']).next().unwrap()
}

/// Reads as fble's converter does: names of symbols as it cuts them, no processes, all events together.
fn canonical(script: &[u8]) -> (Tree, EventId) {
    let options = ReadOptions {
        format: Some(InputFormat::PerfScript),
        tree: TreeOptions { repeats: RepeatFolding::Keep, ..TreeOptions::default() },
        names: Names::Symbols,
        process: ProcessNaming::None,
        ..ReadOptions::default()
    };
    let imported = read(script, &options);
    assert!(imported.fault.is_none() || imported.tree.is_empty(), "{}", imported.fault.unwrap());
    let stacks = imported.tree;
    let mut tree = Tree::default();
    for frame in stacks.frames() {
        tree.frame(&Frame::function(cut(frame.name)));
    }
    let event = tree.event(&ProfileEvent::new("samples", SampleMeasure::Samples));
    let thread = tree.thread();
    for node in stacks.walk() {
        let samples: u64 = stacks.event_ids().map(|event| node.samples(event)).sum();
        let path: Vec<_> = stacks.path(node.id())[1..]
            .iter()
            .map(|&frame| tree.frame(&Frame::function(cut(stacks.frame_of(frame).name))))
            .collect();
        for _ in 0..samples {
            path.iter().for_each(|&frame| tree.enter(thread, frame));
            tree.sample(thread, event, 1);
            path.iter().for_each(|_| tree.exit(thread));
        }
    }
    (tree, event)
}

fn lines(tree: &Tree, line: impl Fn(&NodeRef<'_>) -> Option<String>) -> Vec<String> {
    tree.walk().filter_map(|node| line(&node)).collect()
}

fn counted(tree: &Tree, event: EventId) -> Vec<String> {
    lines(tree, |node| {
        let samples = node.samples(event);
        (samples > 0).then(|| format!("{samples} {}", tree.names(node.id()).join(" ")))
    })
}

/// What fble's converter sees of a script: frames, on lines that begin with a tab, and empty lines, each of which ends
/// a sample. Where that isn't all that is there, it leaves something out, or counts an empty line too many.
struct Seen {
    text: String,
    /// Empty lines that end no sample of ours; fble charges each to the root.
    spare: usize,
    /// Lines of frames without a name; fble takes the beginning of the next line for one.
    nameless: bool,
}

fn seen(script: &str) -> Seen {
    let end = script.rfind("\n\n").map_or(0, |end| end + 2);
    let (mut text, mut spare, mut frames, mut nameless) = (String::new(), 0, false, false);
    for line in script[..end].lines() {
        if line.starts_with('\t') {
            frames = true;
            nameless |= line.split_whitespace().count() < 2;
            text += line;
            text += "\n";
        } else if line.is_empty() {
            spare += usize::from(!frames);
            frames = false;
            text += "\n";
        }
    }
    Seen { text, spare, nameless }
}

/// Compares sequences in their order; a difference must be one of those that are named above.
fn compare(name: &str, script: &str, expected: &[String]) {
    let (tree, event) = canonical(script.as_bytes());
    let ours = counted(&tree, event);
    if ours == expected {
        return;
    }
    let Seen { text, spare, nameless } = seen(script);
    if nameless {
        eprintln!("{name}: frames without names: ours are {ours:?}, fble's {expected:?}");
        return;
    }
    let (tree, event) = canonical(text.as_bytes());
    let mut ours = counted(&tree, event);
    if spare > 0 {
        ours.insert(0, format!("{spare} [root]"));
    }
    assert_eq!(ours, expected, "{name}");
    eprintln!("{name}: fble sees less of it than we do");
}

#[test]
fn golden_perf_script_canonical() {
    for path in goldens("perf-script", ".canonical") {
        let script = fs::read_to_string(beside(&path, "script")).unwrap();
        let expected: Vec<_> = fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect();
        compare(path.to_str().unwrap(), &script, &expected);
    }
}

#[test]
fn golden_fble_perf_script() {
    for path in goldens("fble", "perf_script.json") {
        let cases: Vec<Value> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        for case in cases {
            let expected = case["output"].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned());
            compare(case["name"].as_str().unwrap(), case["input"].as_str().unwrap(), &expected.collect::<Vec<_>>());
        }
    }
}

#[test]
fn golden_perf_script_down_sampled() {
    for path in goldens("perf-script", "") {
        let end = path.extension().unwrap().to_str().unwrap();
        let Some(period) = end.strip_prefix("period").and_then(|period| period.parse().ok()) else { continue };
        let (mut tree, event) = canonical(&fs::read(beside(&path, "script")).unwrap());
        tree.down_sample(period);
        let ours = lines(&tree, |node| {
            let path = tree.names(node.id()).join(";");
            node.is_counted().then(|| format!("{path} {} {}", node.calls(), node.samples(event)))
        });
        assert_eq!(ours, fs::read_to_string(&path).unwrap().lines().collect::<Vec<_>>(), "{}", path.display());
    }
}

/// A sum for each stack, of each type of samples.
type Sums = BTreeMap<String, Vec<u64>>;

fn add(sums: &mut Sums, stack: String, values: Vec<u64>) {
    let sum = sums.entry(stack).or_insert_with(|| vec![0; values.len()]);
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

fn expected_sums(decoded: &Value) -> Sums {
    let mut sums = Sums::new();
    for sample in decoded["samples"].as_array().unwrap() {
        let names: Vec<_> = sample["stack"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        let names = names.strip_prefix(&["[root]"]).unwrap_or(&names);
        let values = sample["values"].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect();
        add(&mut sums, names.join(";"), values);
    }
    sums.retain(|_, values| values.iter().any(|&value| value > 0));
    sums
}

/// The tree's numbers as types of samples of a profile.
fn tree_sums(tree: &Tree, types: &[&str]) -> Sums {
    let value = |node: &NodeRef<'_>, kind: &str| {
        let (name, _) = kind.split_once('/').unwrap();
        match tree.find_event(name) {
            _ if kind == "calls/count" => node.calls(),
            Some(event) => node.weight(event),
            None => tree.event_ids().map(|event| node.samples(event)).sum(),
        }
    };
    let mut sums = Sums::new();
    for node in tree.walk() {
        let values: Vec<_> = types.iter().map(|kind| value(&node, kind)).collect();
        add(&mut sums, tree.names(node.id())[1..].join(";"), values);
    }
    sums.retain(|_, values| values.iter().any(|&value| value > 0));
    sums
}

#[test]
fn golden_pprof() {
    for path in goldens("pprof", "") {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".pb") && !name.ends_with(".pb.gz") {
            continue;
        }
        let options = ReadOptions { tree: inferno().tree, ..ReadOptions::default() };
        let imported = read(fs::File::open(&path).unwrap(), &options);
        if name.starts_with("bad-") {
            assert!(imported.fault.is_some() && imported.tree.is_empty(), "{name} is taken");
            eprintln!("{name}: {}", imported.fault.unwrap());
            continue;
        }
        assert!(imported.fault.is_none(), "{name}: {}", imported.fault.unwrap());
        let decoded: Value =
            serde_json::from_str(&fs::read_to_string(format!("{}.json", path.display())).unwrap()).unwrap();
        let types: Vec<_> =
            decoded["sample_types"].as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect();
        let expected = expected_sums(&decoded);
        assert_eq!(tree_sums(&imported.tree, &types), expected, "{name}");
        let mut written = Vec::new();
        write(&imported.tree, OutputFormat::Pprof, &WriteOptions::default(), &mut written).unwrap();
        assert_eq!(tree_sums(&import(&written, &options), &types), expected, "{name}, written and read");
    }
}
