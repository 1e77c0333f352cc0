//! Tests `perfprop relations learn --program`: the model that it makes of recordings, and the numbers that
//! use it.

#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use perfprop::recording::Recorder;
use perfprop::run::{End, Header, MeasuredEvent};
use perfprop::sources::{Reading, Round, Scope};
use perfprop::units::{CpuNs, WallNs};
use serde_json::{Value, json};

use crate::builders::{header, measured, raw_event};
use crate::folders::Folder;

impl Folder {
    fn perfprop(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
        command.current_dir(self).args(args).stdin(Stdio::null()).output().unwrap()
    }

    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self).unwrap();
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

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What `record -I 10` makes of a program whose rate changes every 200 ms: the last event is counted all the time,
/// the others in slices of a round each, unless nothing is multiplexed.
fn recording(names: &[&str], rounds: u64, turns: bool, scope: &Scope) -> String {
    let events = names.iter().map(|name| MeasuredEvent { scope: scope.clone(), ..measured(raw_event(name, 1)) });
    let (estimator, period_ns, interval_ns) = ("gp".into(), WallNs(10_000_000), WallNs(100_000_000));
    let header = Header { estimator, period_ns, interval_ns, ..header(events) };
    let mut lines = Vec::new();
    let mut recorder = Recorder::new(&mut lines, &header).unwrap();
    let mut readings = vec![Reading::default(); names.len()];
    let mut now = 0;
    for at in 0..rounds {
        now = (at + 1) * period_ns.0;
        for (event, reading) in readings.iter_mut().enumerate() {
            reading.enabled = CpuNs(now);
            if event + 1 == names.len() || !turns || at % names.len() as u64 == event as u64 {
                let (phase, jitter) = (if (at / 20).is_multiple_of(2) { 3 } else { 1 }, at * 7919 % 101);
                reading.count += (event as u64 + 1) * (1000 * phase + jitter);
                reading.running += CpuNs(period_ns.0);
            }
        }
        let readings = readings.iter().copied().map(Some).collect();
        recorder.round(&Round { at: WallNs(now), readings, ..Round::default() }, 0).unwrap();
    }
    let totals = readings.into_iter().map(Some).collect();
    recorder.end(&End { at_ns: WallNs(now), totals, ..End::default() }).unwrap();
    String::from_utf8(lines).unwrap()
}

fn turns(names: &[&str]) -> String {
    recording(names, 100, true, &Scope::All)
}

/// A model of a run of a, b and c.
fn learnt() -> Folder {
    let folder = Folder::new().with("run.jsonl", &turns(&["a", "b", "c"]));
    let output = folder.perfprop(&["relations", "learn", "--program", "model.json", "run.jsonl"]);
    assert!(output.status.success(), "{}", stderr(&output));
    folder
}

#[test]
fn runs_continue_one_another_and_those_without_turns_are_passed_over() {
    let whole = recording(&["a", "b", "c"], 100, false, &Scope::All);
    let run = turns(&["a", "b", "c"]);
    let folder = Folder::new().with("1.jsonl", &run).with("whole.jsonl", &whole).with("2.jsonl", &run);
    let output = folder.perfprop(&["relations", "learn", "--program", "m.json", "1.jsonl", "whole.jsonl", "2.jsonl"]);
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("whole.jsonl: no event took turns"), "{text}");
    // A second each, in windows of 100 ms.
    assert!(text.contains("learnt from 2 runs (20 windows, 3 events): m.json"), "{text}");
    let model: Value = serde_json::from_str(&fs::read_to_string(folder.join("m.json")).unwrap()).unwrap();
    assert_eq!((&model["events"], &model["time_ms"]), (&json!(["a", "b", "c"]), &json!(2000.0)));
    assert_eq!(folder.entries(), ["1.jsonl", "2.jsonl", "m.json", "whole.jsonl"]);
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

#[test]
fn a_prior_is_learnt_from_all_parts_of_a_packed_table() {
    let row = |at: u64| format!("{},{}\n", 1000 + at * 7919 % 101, 500 + at * 104_729 % 53);
    let rows = |times: Range<u64>| times.map(row).collect::<String>();
    let (first, second) = (format!("a,b\n{}", rows(0..1000)), rows(1000..2000));
    let folder = Folder::new().with("plain.csv", &format!("{first}{second}"));
    let parts = [packed(first.as_bytes()), packed(second.as_bytes())].concat();
    // Whatever it is called.
    fs::write(folder.join("parts.table"), parts).unwrap();
    let prior = |table: &str| {
        let output = folder.perfprop(&["relations", "learn", "--prior", "-", table]);
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    };
    assert!(prior("plain.csv") == prior("parts.table"));
}

#[test]
fn packed_recordings_teach_what_plain_ones_do() {
    let folder = learnt();
    fs::write(folder.join("run.jsonl.gz"), packed(&fs::read(folder.join("run.jsonl")).unwrap())).unwrap();
    let output = folder.perfprop(&["relations", "learn", "--program", "packed.json", "run.jsonl.gz"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let [plain, packed] = ["model.json", "packed.json"].map(|model| fs::read(folder.join(model)).unwrap());
    assert!(plain == packed);
    let onto = ["relations", "learn", "--program", "run.jsonl.gz", "run.jsonl"];
    folder.assert_refused(&onto, 2, &["run.jsonl.gz is a recording"]);
}

#[test]
fn a_replay_goes_by_the_model_and_comes_out_the_same_again() {
    let folder = learnt();
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
    let folder = Folder::new()
        .with("run.jsonl", &turns(&["a", "b"]))
        .with("swapped.jsonl", &turns(&["b", "a"]))
        .with("whole.jsonl", &recording(&["a", "b"], 100, false, &Scope::All))
        .with("short.jsonl", &recording(&["a", "b"], 2, true, &Scope::All))
        .with("cpus.jsonl", &recording(&["a", "b"], 100, true, &Scope::Cpu(0)))
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
    let run = fs::read(folder.join("run.jsonl")).unwrap();
    folder.assert_refused(
        &["relations", "learn", "--program", "run.jsonl", "short.jsonl"],
        2,
        &["run.jsonl is a recording", "name another file"],
    );
    assert_eq!(fs::read(folder.join("run.jsonl")).unwrap(), run);
}

#[test]
fn a_model_that_cannot_be_used_is_refused_before_anything_starts() {
    let folder = learnt().with("damaged.json", "{}").with("other.jsonl", &turns(&["x", "y"]));
    let stat = |model: &'static str, more: &[&'static str]| {
        [&["stat", "-e", "page-faults", "--learnt", model], more, &["--", "touch", "started"]].concat()
    };
    let refused = |args: &[&str], words: &[&str]| folder.assert_refused(args, 2, words);
    refused(&stat("missing.json", &[]), &["model missing.json", "No such file"]);
    refused(&stat("damaged.json", &[]), &["model damaged.json", "missing field"]);
    refused(&stat("run.jsonl", &[]), &["'run.jsonl' is a recording", "relations learn --program"]);
    refused(&stat("model.json", &["--estimator", "linear"]), &["--estimator gp", "linear"]);
    refused(&stat("model.json", &[]), &["knows none of page-faults", "a,b,c", "relations learn --program"]);
    let other = ["replay", "other.jsonl", "--print", "--learnt", "model.json"];
    refused(&other, &["knows none of x,y"]);
    let cpus = folder.join("cpus.jsonl");
    fs::write(cpus, recording(&["a", "b"], 10, true, &Scope::Cpu(0))).unwrap();
    refused(&["replay", "cpus.jsonl", "--print", "--learnt", "model.json"], &["whole program"]);
    assert!(!Path::new(&folder.join("started")).exists());
}
