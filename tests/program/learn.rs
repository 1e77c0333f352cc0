//! Tests `perfprop relations learn --program`: the model that it makes of recordings, and the numbers that
//! use it.

#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// A folder of its own for each test, with files in it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("perfprop-learn-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn with(self, name: &str, text: &str) -> Self {
        fs::write(self.0.join(name), text).unwrap();
        self
    }

    fn perfprop(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
        command.current_dir(&self.0).args(args).stdin(Stdio::null()).output().unwrap()
    }

    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// Asserts that this is refused with this code and these words, and that no file comes of it.
    fn assert_refused(&self, args: &[&str], code: i32, words: &[&str]) {
        let before = self.entries();
        let output = self.perfprop(args);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{args:?}: {text}");
        assert_eq!(self.entries(), before, "{args:?}");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn event(name: &str, scope: &Value) -> Value {
    let modifiers = json!({
        "exclude_user": false, "exclude_kernel": false, "exclude_hv": false, "exclude_host": false,
        "exclude_guest": true, "exclude_idle": false, "precise": 0, "pinned": false, "exclusive": false,
    });
    json!({
        "name": name, "canonical": name, "kind": "raw", "encoding": {"pmu_type": 4, "config": 1},
        "modifiers": modifiers, "unit": "count", "status": "counted", "scope": scope,
    })
}

/// What `record -I 10` makes of a program whose rate changes every 200 ms: the last event is counted all the time,
/// the others in slices of a round each, unless nothing is multiplexed.
fn recording(names: &[&str], rounds: u64, turns: bool, scope: &Value) -> String {
    let events: Vec<_> = names.iter().map(|name| event(name, scope)).collect();
    let machine = json!({"host": "h", "kernel": "k", "arch": "x86_64", "cpu": "c", "cpus": 1});
    let header = json!({
        "type": "header", "version": 1, "perfprop": "0.1.0", "started": 0.0, "machine": machine,
        "target": {"command": {"argv": ["program"], "pid": 1}}, "events": events, "groups": [], "relations": [],
        "estimator": "gp", "period_ns": 10_000_000, "interval_ns": 100_000_000,
    });
    let mut lines = vec![header.to_string()];
    let (mut count, mut running) = (vec![0; names.len()], vec![0; names.len()]);
    for at in 0..rounds {
        for event in 0..names.len() {
            if event + 1 == names.len() || !turns || at % names.len() as u64 == event as u64 {
                let (phase, jitter) = (if (at / 20).is_multiple_of(2) { 3 } else { 1 }, at * 7919 % 101);
                count[event] += (event as u64 + 1) * (1000 * phase + jitter);
                running[event] += 10_000_000;
            }
        }
        let now = (at + 1) * 10_000_000;
        let enabled = vec![now; names.len()];
        let round = json!({
            "type": "round", "at_ns": now, "lost_rounds": 0, "count": count, "enabled_ns": enabled, "running_ns": running,
        });
        lines.push(round.to_string());
    }
    lines.join("\n") + "\n"
}

fn turns(names: &[&str]) -> String {
    recording(names, 100, true, &json!("all"))
}

/// A model of a run of a, b and c.
fn learnt(test: &str) -> Folder {
    let folder = Folder::new(test).with("run.jsonl", &turns(&["a", "b", "c"]));
    let output = folder.perfprop(&["relations", "learn", "--program", "model.json", "run.jsonl"]);
    assert!(output.status.success(), "{}", stderr(&output));
    folder
}

#[test]
fn runs_continue_one_another_and_those_without_turns_are_passed_over() {
    let whole = recording(&["a", "b", "c"], 100, false, &json!("all"));
    let run = turns(&["a", "b", "c"]);
    let folder = Folder::new("continue").with("1.jsonl", &run).with("whole.jsonl", &whole).with("2.jsonl", &run);
    let output = folder.perfprop(&["relations", "learn", "--program", "m.json", "1.jsonl", "whole.jsonl", "2.jsonl"]);
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("whole.jsonl: no event took turns"), "{text}");
    // A second each, in windows of 100 ms.
    assert!(text.contains("learnt from 2 runs (20 windows, 3 events): m.json"), "{text}");
    let model: Value = serde_json::from_str(&fs::read_to_string(folder.0.join("m.json")).unwrap()).unwrap();
    assert_eq!((&model["events"], &model["time_ms"]), (&json!(["a", "b", "c"]), &json!(2000.0)));
    assert_eq!(folder.entries(), ["1.jsonl", "2.jsonl", "m.json", "whole.jsonl"]);
}

#[test]
fn a_replay_goes_by_the_model_and_comes_out_the_same_again() {
    let folder = learnt("replay");
    let shown = |more: &[&str]| {
        let output = folder.perfprop(&[&["replay", "run.jsonl", "--dump", "txt", "--screen", "detail"], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    let (with, without) = (shown(&["--learnt", "model.json"]), shown(&[]));
    assert_ne!(with, without);
    assert_eq!(with, shown(&["--learnt", "model.json"]));
    // Of a program that has just one of them, too.
    let folder = folder.with("other.jsonl", &turns(&["a", "x"]));
    let output = folder.perfprop(&["replay", "other.jsonl", "--print", "--learnt", "model.json"]);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_learnt_from_is_refused_and_nothing_is_written() {
    let folder = Folder::new("refused")
        .with("run.jsonl", &turns(&["a", "b"]))
        .with("swapped.jsonl", &turns(&["b", "a"]))
        .with("whole.jsonl", &recording(&["a", "b"], 100, false, &json!("all")))
        .with("short.jsonl", &recording(&["a", "b"], 2, true, &json!("all")))
        .with("cpus.jsonl", &recording(&["a", "b"], 100, true, &json!({"cpu": 0})))
        .with("table.csv", "a,b\n1,2\n");
    let refused = |files: &[&str], code, words: &[&str]| {
        folder.assert_refused(&[&["relations", "learn", "--program", "m.json"], files].concat(), code, words);
    };
    refused(&["table.csv"], 1, &["table.csv", "not a perfprop recording"]);
    refused(&["missing.jsonl"], 1, &["missing.jsonl", "No such file"]);
    refused(&["whole.jsonl"], 2, &["no event took turns", "nothing to learn", "perfprop record"]);
    refused(&["short.jsonl"], 2, &["too short", "nothing to learn"]);
    refused(&["cpus.jsonl"], 2, &["cpus.jsonl", "--per-thread"]);
    refused(&["run.jsonl", "swapped.jsonl"], 2, &["swapped.jsonl", "run.jsonl", "b,a instead of a,b"]);
    refused(&["run.jsonl", "--prior", "p.json"], 2, &["--prior", "cannot be used with"]);
    let run = fs::read(folder.0.join("run.jsonl")).unwrap();
    folder.assert_refused(
        &["relations", "learn", "--program", "run.jsonl", "short.jsonl"],
        2,
        &["run.jsonl is a recording", "name another file"],
    );
    assert_eq!(fs::read(folder.0.join("run.jsonl")).unwrap(), run);
}

#[test]
fn a_model_that_cannot_be_used_is_refused_before_anything_starts() {
    let folder = learnt("unusable").with("damaged.json", "{}").with("other.jsonl", &turns(&["x", "y"]));
    let stat = |model: &'static str, more: &[&'static str]| {
        [&["stat", "-e", "page-faults", "--learnt", model], more, &["--", "touch", "started"]].concat()
    };
    let refused = |args: &[&str], words: &[&str]| folder.assert_refused(args, 2, words);
    refused(&stat("missing.json", &[]), &["model missing.json", "No such file"]);
    refused(&stat("damaged.json", &[]), &["model damaged.json", "missing field"]);
    refused(&stat("run.jsonl", &[]), &["model run.jsonl"]);
    refused(&stat("model.json", &["--estimator", "linear"]), &["--estimator gp", "linear"]);
    refused(&stat("model.json", &[]), &["knows none of page-faults", "a,b,c", "relations learn --program"]);
    let other = ["replay", "other.jsonl", "--print", "--learnt", "model.json"];
    refused(&other, &["knows none of x,y"]);
    let cpus = folder.0.join("cpus.jsonl");
    fs::write(cpus, recording(&["a", "b"], 10, true, &json!({"cpu": 0}))).unwrap();
    refused(&["replay", "cpus.jsonl", "--print", "--learnt", "model.json"], &["whole program"]);
    assert!(!Path::new(&folder.0.join("started")).exists());
}
