//! Compares the profile tree with that of the fble runtime: `PERFPROP_GOLDEN/fble`.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

use std::collections::BTreeMap;
use std::fs;

use perfprop::profile::{EventId, Frame, FrameId, NodeRef, ProfileEvent, SampleMeasure, ThreadId, Tree};
use serde::Deserialize;
use serde_json::Value;

use crate::goldens::TOOLS;

/// A list of cases; `None`, with a word, where there is none.
fn golden<T: for<'a> Deserialize<'a>>(name: &str) -> Option<Vec<T>> {
    let path = TOOLS.find(&format!("fble/{name}"))?;
    let text = fs::read_to_string(&path).unwrap();
    let cases: Vec<T> = serde_json::from_str(&text).unwrap();
    assert!(!cases.is_empty(), "{} has no cases", path.display());
    Some(cases)
}

/// A sequence as the goldens list it: path, calls, samples.
type Row = (String, u64, u64);

#[derive(Deserialize)]
struct Trace {
    name: String,
    blocks: Vec<String>,
    ops: String,
    expect: Vec<Row>,
    #[serde(default)]
    downsampled: BTreeMap<u64, Vec<Row>>,
}

/// Plays a trace: `+X` enters, `=X` replaces, `-` exits, `*N` charges N samples, `@T` goes to another thread.
fn play(trace: &Trace) -> (Tree, EventId) {
    let mut tree = Tree::default();
    let event = tree.event(&ProfileEvent::new("samples", SampleMeasure::Samples));
    let blocks: BTreeMap<&str, FrameId> =
        trace.blocks.iter().map(|name| (&**name, tree.frame(&Frame::function(name)))).collect();
    let mut threads: BTreeMap<u64, ThreadId> = BTreeMap::from([(0, tree.thread())]);
    let mut thread = threads[&0];
    for op in trace.ops.split_whitespace() {
        let (op, rest) = op.split_at(1);
        match op {
            "+" => tree.enter(thread, blocks[rest]),
            "=" => tree.replace(thread, blocks[rest]),
            "-" => tree.exit(thread),
            "*" => (0..rest.parse::<u64>().unwrap()).for_each(|_| tree.sample(thread, event, 1)),
            "@" => thread = *threads.entry(rest.parse().unwrap()).or_insert_with(|| tree.thread()),
            _ => panic!("{}: {op}{rest}", trace.name),
        }
    }
    (tree, event)
}

fn rows(tree: &Tree, event: EventId, holds: impl Fn(&NodeRef<'_>) -> bool) -> Vec<Row> {
    let row = |node: NodeRef<'_>| (tree.names(node.id()).join(" "), node.calls(), node.samples(event));
    tree.walk().filter(holds).map(row).collect()
}

#[test]
fn golden_fble_traces() {
    let Some(traces) = golden::<Trace>("traces.json") else { return };
    for trace in traces {
        let (tree, event) = play(&trace);
        assert_eq!(rows(&tree, event, |_| true), trace.expect, "{}", trace.name);
        for (&period, expected) in &trace.downsampled {
            let mut tree = tree.clone();
            tree.down_sample(period);
            assert_eq!(rows(&tree, event, |node| node.is_counted()), *expected, "{}, one of {period}", trace.name);
        }
    }
}

#[test]
fn golden_fble_stacks() {
    let Some(cases) = golden::<Value>("stacks.json") else { return };
    for case in cases {
        let mut tree = Tree::default();
        let thread = tree.thread();
        for name in case["stack"].as_str().unwrap().split(';') {
            let frame = tree.frame(&Frame::function(name));
            tree.enter(thread, frame);
        }
        let canonical = tree.names(tree.top(thread))[1..].join(";");
        assert_eq!(canonical, case["canonical"].as_str().unwrap(), "{}", case["name"]);
    }
}
