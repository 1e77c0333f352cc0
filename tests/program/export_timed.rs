//! Tests that exports of recordings have the time, the thread and the place of each sample.

#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use perfprop::events::Unit;
use perfprop::recording::Recorder;
use perfprop::run::{End, Header, MeasuredTarget};
use perfprop::sources::Round;
use perfprop::stacks::{
    Rate, RunShare, SampledEvent, SamplingSetup, StackBatch, StackFrame, StackFrameId, StackId, StackNode, StackSample,
    Task, TaskId, UnwindMethod,
};
use perfprop::units::WallNs;
use serde_json::{Value, json};

use crate::piped::{run, stderr, stdout};

const MS: u64 = 1_000_000;

fn setup() -> SamplingSetup {
    let event = |name: &str, unit, rate| SampledEvent { name: name.into(), unit, rate };
    let clock = event("cpu-clock", Unit::Nanoseconds, Rate::Frequency(1000));
    SamplingSetup {
        events: vec![clock, event("page-faults", Unit::Count, Rate::Period(1))],
        call_graph: UnwindMethod::Fp,
    }
}

/// A sample at so many ms.
fn sample(at: u64, task: u32, event: u32, weight: u64, stack: Option<u32>) -> StackSample {
    StackSample { at: WallNs(at * MS), task: TaskId(task), cpu: 0, event, weight, stack: stack.map(StackId) }
}

/// Two processes, one of two threads, of which one changes its name. Times go back between batches.
fn batches() -> [StackBatch; 2] {
    let task = |pid, tid, comm: &str| Task { pid, tid, comm: comm.into() };
    let frame =
        |name: &str, offset| StackFrame { name: name.into(), module: "/bin/p".into(), offset, ..StackFrame::default() };
    let main = StackFrame { file: Some("p.c".into()), line: Some(3), ..frame("main", None) };
    let node = |caller: Option<u32>, frame| StackNode { caller: caller.map(StackId), frame: StackFrameId(frame) };
    let first = StackBatch {
        frames: vec![main, frame("f", Some(0x1234)), frame("f", Some(0x1300))],
        stacks: vec![node(None, 0), node(Some(0), 1), node(Some(0), 2)],
        tasks: vec![task(10, 10, "main"), task(10, 11, "work"), task(20, 20, "other"), task(10, 11, "done")],
        samples: vec![
            sample(500, 0, 0, MS, Some(1)),
            sample(501, 0, 0, MS, Some(2)),
            sample(1500, 1, 0, MS, Some(1)),
            sample(1500, 1, 1, 3, Some(1)),
            sample(2500, 2, 0, MS, Some(0)),
        ],
        ..StackBatch::default()
    };
    let samples = vec![sample(2400, 0, 0, MS, None), sample(2501, 3, 0, 2 * MS, Some(2))];
    [first, StackBatch { samples, ..StackBatch::default() }]
}

fn recording(batches: &[StackBatch]) -> Vec<u8> {
    recording_of(&setup(), batches)
}

fn recording_of(setup: &SamplingSetup, batches: &[StackBatch]) -> Vec<u8> {
    let header = Header {
        started: 1_700_000_000.5,
        ..Header::new(MeasuredTarget::Command { argv: vec!["p".into()], pid: 10 }, "scale")
    };
    let mut bytes = Vec::new();
    let mut recorder = Recorder::new(&mut bytes, &header).unwrap();
    recorder.sampled(setup).unwrap();
    for second in 0..4 {
        recorder.round(&Round { at: WallNs(second * 1000 * MS), ..Round::default() }, 0).unwrap();
    }
    batches.iter().for_each(|batch| recorder.stacks(batch).unwrap());
    recorder.end(&End { at_ns: WallNs(3000 * MS), ..End::default() }).unwrap();
    bytes
}

fn export(to: &str, args: &[&str], input: &[u8]) -> Vec<u8> {
    let output = run(&[&["export", "--to", to], args].concat(), input);
    assert!(output.status.success() && stderr(&output).is_empty(), "{to} {args:?}: {}", stderr(&output));
    output.stdout
}

fn json_of(to: &str, args: &[&str], input: &[u8]) -> Value {
    serde_json::from_slice(&export(to, args, input)).unwrap()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// The functions of each sample of a Firefox track, outermost first, with where they are.
fn firefox_stacks(thread: &Value) -> Vec<String> {
    let at = |table: &str, column: &str, row: &Value| thread[table][column][row.as_u64().unwrap() as usize].clone();
    let function = |frame: &Value| {
        let function = at("frameTable", "func", frame);
        let name = at("funcTable", "name", &function);
        let name = texts(&thread["stringArray"])[name.as_u64().unwrap() as usize].to_owned();
        match at("frameTable", "address", frame).as_i64() {
            Some(address @ 0..) => format!("{name}@{address:x}"),
            _ => name,
        }
    };
    let stack = |stack: &Value| {
        let (mut names, mut next) = (Vec::new(), stack.clone());
        while !next.is_null() {
            names.push(function(&at("stackTable", "frame", &next)));
            next = at("stackTable", "prefix", &next);
        }
        names.reverse();
        names.join(";")
    };
    thread["samples"]["stack"].as_array().unwrap().iter().map(stack).collect()
}

/// Times in ms, stacks and weights of a Firefox track.
fn firefox_samples(thread: &Value) -> Vec<(f64, String, i64)> {
    let samples = &thread["samples"];
    let deltas = samples["timeDeltas"].as_array().unwrap().iter().map(|delta| delta.as_f64().unwrap());
    let times = deltas.scan(0.0, |time, delta| {
        *time += delta;
        Some((*time * 1e3).round() / 1e3)
    });
    let weights = samples["weight"].as_array().unwrap().iter().map(|weight| weight.as_i64().unwrap());
    times.zip(firefox_stacks(thread)).zip(weights).map(|((time, stack), weight)| (time, stack, weight)).collect()
}

#[test]
fn firefox_has_a_track_for_each_thread() {
    let profile = json_of("firefox", &[], &recording(&batches()));
    assert_eq!(profile["meta"]["startTime"].as_f64(), Some(1_700_000_000_500.0));
    assert_eq!(profile["meta"]["interval"].as_f64(), Some(1.0));
    let threads = profile["threads"].as_array().unwrap();
    let named = |thread: &Value| {
        ["processName", "name", "pid", "tid"].map(|key| thread[key].to_string().trim_matches('"').to_owned())
    };
    let all: Vec<_> = threads.iter().map(named).collect();
    assert_eq!(
        all,
        [
            ["main", "main", "10", "10"],
            ["main", "done", "10", "11"],
            ["main", "work (page-faults)", "10", "11.1"],
            ["other", "other", "20", "20"],
        ]
    );
    let is_main: Vec<_> = threads.iter().map(|thread| thread["isMainThread"].as_bool().unwrap()).collect();
    assert_eq!(is_main, [true, false, false, true]);
    let row = |time: f64, stack: &str, weight: i64| (time, stack.to_owned(), weight);
    let [f, f_later] = ["main (p.c);f@1234", "main (p.c);f@1300"];
    let ms = MS as i64;
    assert_eq!(
        firefox_samples(&threads[0]),
        [
            row(500.0, f, ms),
            row(501.0, f_later, ms),
            row(502.0, "", 0),
            // Of the stack nothing is known but the thread.
            row(2400.0, "main", ms),
            row(2401.0, "", 0),
        ]
    );
    assert_eq!(
        firefox_samples(&threads[1]),
        [row(1500.0, f, ms), row(1501.0, "", 0), row(2501.0, f_later, 2 * ms), row(2503.0, "", 0)]
    );
    assert_eq!(firefox_samples(&threads[2]), [row(1500.0, f, 3)]);
    assert_eq!(threads[0]["samples"]["threadCPUDelta"], json!([1000, 1000, 0, 1000, 0]));
    assert_eq!(profile["libs"][0]["path"], "/bin/p");
    let counted = json_of("firefox", &["--counts"], &recording(&batches()));
    assert_eq!(counted["threads"][1]["samples"]["weight"], json!([1, 0, 1, 0]));
}

#[test]
fn a_function_that_was_inlined_keeps_its_name() {
    let mut batches = batches();
    let inlined = StackFrame { name: "h".into(), inlined: true, ..batches[0].frames[1].clone() };
    batches[0].frames.push(inlined);
    batches[0].stacks.push(StackNode { caller: Some(StackId(1)), frame: StackFrameId(3) });
    batches[0].samples[0].stack = Some(StackId(3));
    let profile = json_of("firefox", &[], &recording(&batches));
    // Two functions are at one offset, which has one name in a file.
    assert_eq!(firefox_samples(&profile["threads"][0])[0].1, "main (p.c);f (/bin/p);h (/bin/p)");
    assert_eq!(firefox_samples(&profile["threads"][0])[1].1, "main (p.c);f@1300");
}

/// What the schema of speedscope's files says of profiles that are sampled: `samples` and `weights` of one length, frames that are
/// there, and an end that is as far from the beginning as all weights.
fn check_sampled(file: &Value, profile: &Value) {
    assert_eq!(profile["type"], "sampled");
    let frames = file["shared"]["frames"].as_array().unwrap().len() as u64;
    let samples = profile["samples"].as_array().unwrap();
    let weights: Vec<u64> =
        profile["weights"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap()).collect();
    assert_eq!(samples.len(), weights.len());
    assert!(samples.iter().flat_map(|stack| stack.as_array().unwrap()).all(|frame| frame.as_u64().unwrap() < frames));
    let [start, end] = ["startValue", "endValue"].map(|key| profile[key].as_u64().unwrap());
    assert_eq!(end - start, weights.iter().sum::<u64>());
    assert!(["nanoseconds", "none"].contains(&profile["unit"].as_str().unwrap()) && profile["name"].is_string());
}

#[test]
fn speedscope_has_a_profile_for_each_thread() {
    let file = json_of("speedscope", &[], &recording(&batches()));
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let profiles = file["profiles"].as_array().unwrap();
    let names: Vec<_> = profiles.iter().map(|profile| profile["name"].as_str().unwrap()).collect();
    let threads = ["main [10]: cpu-clock", "done [11] of main [10]: cpu-clock", "other [20]: cpu-clock"];
    assert_eq!(names[0], "cpu-clock", "the sum of all threads");
    assert_eq!((&names[1..4], names[4]), (&threads[..], "work [11] of main [10]: page-faults"));
    assert_eq!((names.len(), file["activeProfileIndex"].as_u64()), (5, Some(1)));
    profiles[1..].iter().for_each(|profile| check_sampled(&file, profile));
    assert_eq!(
        (&profiles[0]["type"], &profiles[0]["endValue"], &profiles[4]["unit"]),
        (&json!("evented"), &json!(7 * MS), &json!("none"))
    );
    let names = |stack: &Value| {
        let name = |frame: &Value| file["shared"]["frames"][frame.as_u64().unwrap() as usize]["name"].clone();
        let names: Vec<_> = stack.as_array().unwrap().iter().map(name).collect();
        names.iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>().join(";")
    };
    let bars = |profile: &Value| -> Vec<(String, u64)> {
        let weights = profile["weights"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap() / MS);
        profile["samples"].as_array().unwrap().iter().map(names).zip(weights).collect()
    };
    let bar = |stack: &str, ms: u64| (stack.to_owned(), ms);
    // A sample stands at the end of the millisecond that it is the weight of.
    assert_eq!(bars(&profiles[2]), [bar("", 1499), bar("main;f", 1), bar("", 999), bar("main;f", 2), bar("", 499)]);
    assert_eq!(profiles[4]["weights"], json!([3]));
    let counted = json_of("speedscope", &["--counts"], &recording(&batches()));
    let weights: Vec<_> =
        counted["profiles"].as_array().unwrap()[1..].iter().map(|all| all["weights"].clone()).collect();
    assert_eq!(weights, [json!([1, 1, 1]), json!([1, 1]), json!([1]), json!([1])]);
}

/// The fields of a message of protobuf: numbers, and bytes.
#[derive(Default)]
struct Message(Vec<(u64, u64, Vec<u8>)>);

impl Message {
    fn read(mut bytes: &[u8]) -> Self {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let (mut number, mut shift) = (0, 0);
            loop {
                let (byte, rest) = bytes.split_first().unwrap();
                *bytes = rest;
                number |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if *byte < 0x80 {
                    return number;
                }
            }
        }
        let mut message = Self::default();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let number = varint(&mut bytes);
            let length = if key & 7 == 2 { number as usize } else { 0 };
            assert!(matches!(key & 7, 0 | 2), "a kind that profiles don't have");
            message.0.push((key >> 3, number, bytes[..length].to_vec()));
            bytes = &bytes[length..];
        }
        message
    }

    fn number(&self, field: u64) -> u64 {
        self.0.iter().find(|(key, ..)| *key == field).map_or(0, |(_, number, _)| *number)
    }

    fn all(&self, field: u64) -> impl Iterator<Item = &[u8]> {
        self.0.iter().filter(move |(key, ..)| *key == field).map(|(.., bytes)| bytes.as_slice())
    }

    fn messages(&self, field: u64) -> Vec<Self> {
        self.all(field).map(Self::read).collect()
    }

    fn text(&self, profile: &Self, field: u64) -> String {
        let text = profile.all(6).nth(self.number(field) as usize).unwrap();
        String::from_utf8(text.to_vec()).unwrap()
    }
}

fn pprof(args: &[&str], input: &[u8]) -> Message {
    let mut bytes = Vec::new();
    GzDecoder::new(&*export("pprof", args, input)).read_to_end(&mut bytes).unwrap();
    Message::read(&bytes)
}

/// The labels of each sample.
fn labels(profile: &Message) -> Vec<BTreeMap<String, String>> {
    let label = |label: &Message| {
        let value = if label.number(2) > 0 { label.text(profile, 2) } else { label.number(3).to_string() };
        (label.text(profile, 1), value)
    };
    profile.messages(2).iter().map(|sample| sample.messages(3).iter().map(label).collect()).collect()
}

#[test]
fn pprof_has_times_addresses_and_labels() {
    let profile = pprof(&[], &recording(&batches()));
    assert_eq!((profile.number(9), profile.number(10)), (1_700_000_000_500_000_000, 3000 * MS));
    let period_type = &profile.messages(11)[0];
    assert_eq!(
        (period_type.text(&profile, 1), period_type.text(&profile, 2)),
        ("cpu-clock".into(), "nanoseconds".into())
    );
    assert_eq!(profile.number(12), MS);
    let mappings: Vec<_> =
        profile.messages(3).iter().map(|mapping| (mapping.text(&profile, 5), mapping.number(3))).collect();
    assert_eq!(mappings, [("/bin/p".into(), 0x2000)]);
    let addresses: Vec<_> = profile.messages(4).iter().map(|location| location.number(3)).collect();
    assert!(addresses.contains(&0x1234) && addresses.contains(&0x1300), "{addresses:x?}");
    let labels = labels(&profile);
    let of = |process: &str, pid: u32, thread: &str, tid: u32| {
        let label = |(key, value): (&str, String)| (key.to_owned(), value);
        let all = [
            ("process", process.into()),
            ("pid", pid.to_string()),
            ("thread", thread.into()),
            ("tid", tid.to_string()),
        ];
        all.map(label).into_iter().collect::<BTreeMap<_, _>>()
    };
    let expected = [
        of("main", 10, "main", 10),
        of("main", 10, "done", 11),
        of("main", 10, "work", 11),
        of("other", 20, "other", 20),
    ];
    assert_eq!(labels.into_iter().collect::<BTreeSet<_>>(), expected.into_iter().collect());
    // A name of the process isn't made up where its first thread wasn't sampled.
    let mut alone = batches();
    alone[0].tasks[0].tid = 12;
    alone[0].frames[0].module = "[kernel]".into();
    let profile = pprof(&[], &recording(&alone));
    assert!(self::labels(&profile).iter().any(|labels| !labels.contains_key("process")));
    // Nor a number.
    alone[0].tasks[0].pid = 0;
    alone[0].tasks[0].tid = 0;
    let nameless = pprof(&[], &recording(&alone));
    let numbers = |labels: &BTreeMap<String, String>| labels.contains_key("pid") || labels.contains_key("tid");
    assert!(!self::labels(&nameless).iter().all(numbers));
    // The program stands first.
    assert_eq!(profile.messages(3)[0].text(&profile, 5), "/bin/p");
}

fn folded(args: &[&str], input: &[u8]) -> String {
    String::from_utf8(export("folded", args, input)).unwrap()
}

#[test]
fn pprof_goes_round_with_the_same_numbers() {
    let recording = recording(&batches());
    let packed = export("pprof", &[], &recording);
    for args in [&[][..], &["--counts"], &["--event-filter", "page-faults"]] {
        let [again, direct] = [&packed, &recording].map(|input| folded(args, input));
        let sorted = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(sorted(&again), sorted(&direct), "{args:?}");
    }
    // Times and the period stay; docs/stacks.md says that labels don't.
    let [direct, again] = [&recording, &packed].map(|input| pprof(&[], input));
    let times = |profile: &Message| {
        let period_type = &profile.messages(11)[0];
        let period_type = [1, 2].map(|field| period_type.text(profile, field));
        ([9, 10, 12].map(|field| profile.number(field)), period_type)
    };
    assert_eq!(times(&again), times(&direct));
    assert!(times(&direct).0.iter().all(|&number| number > 0));
}

#[test]
fn a_range_has_the_samples_of_its_time() {
    let recording = recording(&batches());
    let all = |range: &str| folded(&["--range", range, "--counts"], &recording);
    assert_eq!(all("1-2"), "work;main;f 1\n");
    assert_eq!(all("2-2.5"), "main 1\nother;main 1\n");
    assert_eq!(all("2.45-2.5"), "other;main 1\n", "between two readings");
    // It begins with the reading that is nearest, as in replay.
    assert_eq!(all("0.9-2"), "work;main;f 1\n");
    assert_eq!(all("0-3"), folded(&["--counts"], &recording));
    let profile = pprof(&["--range", "1-2"], &recording);
    assert_eq!((profile.number(9), profile.number(10)), (1_700_000_001_500_000_000, 1000 * MS));
    // Of what isn't in the range there are no places.
    let samples = profile.messages(2);
    // Packed numbers below 128 are bytes.
    let used: BTreeSet<u64> = samples.iter().flat_map(|sample| sample.all(1).flatten()).map(|&id| id.into()).collect();
    let places: BTreeSet<u64> = profile.messages(4).iter().map(|location| location.number(1)).collect();
    assert_eq!(places, used);
    let file = json_of("speedscope", &["--range", "1-2"], &recording);
    assert_eq!(file["profiles"][0]["weights"], json!([499 * MS, MS, 500 * MS]));
    let firefox = json_of("firefox", &["--range", "1-2"], &recording);
    assert_eq!(firefox_samples(&firefox["threads"][0])[0].0, 1500.0);
}

/// A wait of 1.2 s that ends 0.1 s after the beginning of the range.
#[test]
fn what_began_before_a_range_stands_where_it_began() {
    let clock = SampledEvent { name: "off-cpu".into(), unit: Unit::Nanoseconds, rate: Rate::Period(1) };
    let setup = SamplingSetup { events: vec![clock], call_graph: UnwindMethod::Fp };
    let mut batches = batches();
    batches[0].samples = vec![sample(2100, 1, 0, 1200 * MS, Some(0)), sample(2400, 1, 0, 100 * MS, Some(1))];
    batches[1].samples.clear();
    let recording = recording_of(&setup, &batches);
    let file = json_of("speedscope", &["--range", "2-3"], &recording);
    let waits = &file["profiles"][0];
    let start = waits["startValue"].as_u64().unwrap();
    let begins: Vec<u64> = waits["weights"]
        .as_array()
        .unwrap()
        .iter()
        .scan(start, |at, weight| Some(std::mem::replace(at, *at + weight.as_u64().unwrap()) / MS))
        .collect();
    let is_wait = |stack: &&Value| !stack.as_array().unwrap().is_empty();
    let all = waits["samples"].as_array().unwrap();
    let waits_at: Vec<_> = all.iter().zip(begins).filter(|(stack, _)| is_wait(stack)).map(|(_, at)| at).collect();
    let longest = waits["weights"].as_array().unwrap()[0].as_u64().unwrap() / MS;
    assert_eq!((waits_at, waits["endValue"].as_u64()), (vec![2100 - longest, 2300], Some(3000 * MS)));
    let firefox = json_of("firefox", &["--range", "2-3"], &recording);
    let thread = &firefox["threads"][0];
    let (first, _, weight) = firefox_samples(thread)[0].clone();
    assert_eq!(first, 2100.0 - (weight / MS as i64) as f64);
    for key in ["registerTime", "processStartupTime"] {
        assert!(thread[key].as_f64().unwrap() <= first, "{key}: {thread}");
    }
}

#[test]
fn a_range_that_makes_no_sense_is_refused() {
    let recording = recording(&batches());
    let folded = b"a;b 1\n";
    for (args, input, words) in [
        (&["--to", "folded", "--range", "7-9"][..], &recording[..], "the recording is 3.0 s long"),
        (&["--to", "folded", "--range", "0-0.2"], &recording, "nothing was"),
        (&["--to", "folded", "--range", "2-1"], &recording, "the earlier first"),
        (&["--to", "folded", "--range", "0-1"], folded, "--range is for recordings"),
        (&["--to", "chrome-trace", "--range", "0-1"], &recording, "chrome-trace"),
    ] {
        let output = run(&[&["export"], args].concat(), input);
        assert!(!output.status.success() && output.stdout.is_empty(), "{args:?}");
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn samples_that_are_left_out_are_missing_from_tracks() {
    let recording = recording(&batches());
    let file = json_of("speedscope", &["--sample-period", "2", "--counts"], &recording);
    let threads = file["profiles"].as_array().unwrap().iter().filter(|profile| profile["type"] == "sampled");
    // Six samples of cpu-clock in the order of time, of threads 10, 10, 11, 10, 20, 11.
    let samples: Vec<_> = threads.map(|thread| (thread["name"].clone(), thread["weights"].clone())).collect();
    assert_eq!(
        samples,
        [(json!("main [10]: cpu-clock"), json!([1, 1])), (json!("done [11] of main [10]: cpu-clock"), json!([1]))]
    );
}

#[test]
fn events_that_took_turns_weigh_more_on_their_tracks() {
    let mut batches = batches();
    let share = RunShare { until: WallNs(9000 * MS), event: 1, enabled_ns: 4, running_ns: 1 };
    batches[0].shares.push(share);
    let file = json_of("speedscope", &[], &recording(&batches));
    assert_eq!(file["profiles"][4]["weights"], json!([12]));
}

/// A recording without samples, without stacks, of an earlier version's lines, and of regions or a model alone.
#[test]
fn recordings_without_samples_are_written_without_threads() {
    let empty = recording(&[StackBatch::default()]);
    let tracks = |to: &str, key: &str| json_of(to, &[], &empty)[key].as_array().unwrap().clone();
    let names: Vec<_> = tracks("speedscope", "profiles").iter().map(|profile| profile["name"].clone()).collect();
    assert_eq!(names, ["cpu-clock", "page-faults"]);
    assert_eq!(tracks("firefox", "threads").len(), 2);
    let profile = pprof(&[], &empty);
    assert_eq!((profile.messages(2).len(), profile.number(10)), (0, 3000 * MS));
    let modelled = Path::new(env!("CARGO_MANIFEST_DIR")).join("screenshots/demo.jsonl.gz");
    let file = json_of("speedscope", &[modelled.to_str().unwrap()], b"");
    assert!(file["profiles"].as_array().unwrap().iter().all(|profile| profile["type"] == "evented"));
    assert!(labels(&pprof(&[modelled.to_str().unwrap()], b"")).iter().all(|labels| !labels.contains_key("tid")));
}

#[test]
fn a_recording_that_is_cut_off_has_the_samples_before() {
    let whole = recording(&batches());
    let text = String::from_utf8(whole).unwrap();
    let cut = text.rfind("{\"type\":\"end\"").unwrap();
    // Within a line, and between two, as where the writer was killed.
    for (end, words) in [("{\"type\":\"en", "is cut off in line"), ("", "has no end")] {
        let part = format!("{}{end}", &text[..cut]);
        let output = run(&["export", "--to", "speedscope"], part.as_bytes());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        let file: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let profiles = file["profiles"].as_array().unwrap();
        assert_eq!((profiles.len(), &profiles[1]["endValue"]), (5, &json!(3000 * MS)));
        assert_eq!(run(&["replay", "--print", "-"], part.as_bytes()).status.code(), Some(1));
    }
    assert_eq!(run(&["replay", "--print", "-"], text.as_bytes()).status.code(), Some(0));
}

#[test]
fn folded_recursion_and_small_subtrees_stay_on_tracks() {
    let mut batches = batches();
    let node = |caller, frame| StackNode { caller: Some(StackId(caller)), frame: StackFrameId(frame) };
    batches[1].stacks = (0..40).map(|depth| node(2 + depth, 1)).collect();
    batches[1].samples = (0..40).map(|depth| sample(2600 + depth, 3, 0, MS, Some(3 + depth as u32))).collect();
    let recording = recording(&batches);
    for args in [&["--canonical"][..], &["--max-nodes", "16"], &[]] {
        let file = json_of("speedscope", &[args, &["--counts"]].concat(), &recording);
        let threads = file["profiles"].as_array().unwrap().iter().filter(|profile| profile["type"] == "sampled");
        let samples: u64 = threads.map(|thread| thread["samples"].as_array().unwrap().len() as u64).sum();
        assert_eq!(samples, 45, "{args:?}");
        let again = folded(&["--counts"], &export("pprof", args, &recording));
        let numbers = again.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        assert_eq!(numbers.sum::<u64>(), 44, "{args:?}: {again}");
    }
}
