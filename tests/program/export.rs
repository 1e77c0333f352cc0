//! Tests `perfprop export` and the formats behind it: numbers agree, names are harmless, bad files are
//! refused.

#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Output;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use perfprop::profile::{
    Amount, EventId, Frame, FrameId, ProfileEvent, RepeatFolding, SampleMeasure, Tree, TreeOptions,
};
use perfprop::stack_formats::{
    EventSelection, InputFormat, OutputFormat, ReadOptions, WriteOptions, WrittenNumber, read, write,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::folders::Folder;
use crate::piped::{run, stderr, stdout};

/// A script of two events, two processes, operators and recursion.
const SCRIPT: &str = "\
rec 7/8 [001] 1.5:  500 cpu-clock: \n\
\t    5d geo::Big::operator++0x5d (/opt/demo/cxx)\n\
\t    1a geo::Big::operator()+0x1 (/opt/demo/cxx)\n\
\t    16 main+0x4de (/opt/demo/cxx)\n\
\n\
rec 7/8 [001] 1.6:  500 cpu-clock: \n\
\t    5d fib(int)+0x5d (/opt/demo/cxx)\n\
\t    5d fib(int)+0x5e (/opt/demo/cxx)\n\
\t    5d fib(int)+0x5d (/opt/demo/cxx)\n\
\t    16 main+0x4de (/opt/demo/cxx)\n\
\n\
my sh 9/9 [001] 1.7:  3 page-faults: \n\
\tffff816c8064 [unknown] ([kernel.kallsyms])\n\
\n";

fn perfprop(args: &[&str], input: &[u8]) -> Output {
    run(&[&["export"], args].concat(), input)
}

#[test]
fn perf_script_becomes_folded_stacks() {
    for (args, expected) in [
        (&[][..], "rec;main;fib;fib;fib 500\nrec;main;geo::Big::operator;geo::Big::operator+ 500\n"),
        (&["--counts", "--canonical"], "rec;main;fib 1\nrec;main;geo::Big::operator;geo::Big::operator+ 1\n"),
        (&["--event-filter", "page-faults", "--kernel", "--pid"], "my_sh-9;[[kernel.kallsyms]]_[k] 3\n"),
        (&["--event-filter", "page-faults", "--tid"], "my_sh-9/9;[[kernel.kallsyms]] 3\n"),
        (&["--sample-period", "2", "--counts", "--no-process"], "main;fib;fib;fib 1\n"),
    ] {
        let output = perfprop(&[&["--to", "folded"], args].concat(), SCRIPT.as_bytes());
        assert_eq!(stdout(&output), expected, "{args:?}");
        // What is chosen needs no word.
        let others = "page-faults (1); --event-filter chooses one";
        let is_chosen = args.contains(&"--event-filter");
        assert_eq!((stderr(&output).is_empty(), stderr(&output).contains(others)), (is_chosen, !is_chosen), "{args:?}");
        assert_eq!(output.status.code(), Some(0));
    }
}

/// `perf record -d` and `perf script -F +addr`; one event of each kind has no call chains.
#[test]
fn addresses_of_data_are_no_frames() {
    let script = "rec 7 1.5:          1 faults:     5563d4553068 data+0x0 (/x)\n\t    5b f+0x1 (/x)\n\
        \t    6b main+0x1 (/x)\n\n\
        rec 7 1.6:          1 faults:     5563d4553068 data+0x0 (/x)     5563d4550068 g+0x1 (/x)\n\
        dd 7 1.7:          1 faults:     7ffc4553068 \n\t    5b f+0x1 (/x)\n\t    6b main+0x1 (/x)\n\n";
    let output = perfprop(&["--to", "folded"], script.as_bytes());
    assert_eq!((stdout(&output).as_str(), stderr(&output).as_str()), ("dd;main;f 1\nrec;g 1\nrec;main;f 1\n", ""));
}

/// `perf script -F +srcline`.
#[test]
fn inlined_frames_have_their_lines() {
    let script = "rec 7 1.5:  1 cycles: \n\t 5b g+0x1\n  a.c:4 (inlined)\n\t 5b f+0x1 (/x)\n  a.c:6\n\n";
    let output = perfprop(&["--to", "speedscope", "--lines"], script.as_bytes());
    let profile: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let frames = profile["shared"]["frames"].as_array().unwrap();
    let line =
        |name: &str| frames.iter().filter(|frame| frame["name"] == name).find_map(|frame| frame["line"].as_u64());
    assert_eq!([line("g"), line("f")], [Some(4), Some(6)]);
}

/// As mails and editors leave it.
#[test]
fn frames_without_blanks_in_front_are_read() {
    let bare: String = SCRIPT.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    for args in [&["--to", "folded"][..], &["--to", "folded", "--event-filter", "page-faults"]] {
        let [bare, indented] = [&bare, SCRIPT].map(|script| perfprop(args, script.as_bytes()));
        assert_eq!((stdout(&bare), bare.status.code()), (stdout(&indented), Some(0)), "{args:?}");
    }
}

/// Of processes whose names begin with `java`, whether they are named or not, and whichever comes first.
#[test]
fn classes_of_java_are_named_as_inferno_names_them() {
    let frames = "\t 5d Lorg/A;::call (/tmp/perf-7.map)\n\t 5e Lorg/B;.run(I)V->Lorg/C;::go+0x1 (/tmp/perf-7.map)\n\n";
    let sample = |comm: &str| format!("{comm} 7 1.5:  1 cycles: \n{frames}");
    let script = [sample("java"), sample("rec"), sample("java thread"), sample("java"), sample("rec")].concat();
    let of = |args: &[&str]| stdout(&perfprop(&[&["--to", "folded"], args].concat(), script.as_bytes()));
    let [java, other] = ["org/B:.run;org/C:::go_[i];org/A:::call", "Lorg/B:.run;Lorg/C:::go_[i];Lorg/A:::call"];
    assert_eq!(of(&[]), format!("java;{java} 2\njava_thread;{java} 1\nrec;{other} 2\n"));
    assert_eq!(of(&["--no-process"]), format!("{other} 2\n{java} 3\n"));
    // Other formats have whole names.
    let speedscope = stdout(&perfprop(&["--to", "speedscope"], script.as_bytes()));
    assert!(speedscope.contains("Lorg/A;::call") && !speedscope.contains("\"org/A"), "{speedscope}");
}

#[test]
fn formats_follow_one_another() {
    let pprof = perfprop(&["--to", "pprof"], SCRIPT.as_bytes());
    assert!(pprof.stdout.starts_with(&[0x1f, 0x8b]));
    let folded = perfprop(&["--to", "folded", "--event-filter", "cpu-clock"], &pprof.stdout);
    // Names are whole where there is room for them.
    assert_eq!(
        stdout(&folded),
        "rec;main;fib(int);fib(int);fib(int) 500\nrec;main;geo::Big::operator();geo::Big::operator+ 500\n"
    );
    let again = perfprop(&["--to", "folded", "--from", "folded"], &folded.stdout);
    assert_eq!(again.stdout, folded.stdout);
}

#[test]
fn what_stands_before_a_fault_is_kept() {
    let cut = SCRIPT.find("my sh").unwrap();
    for (what, bad) in [
        ("line 12: no sample", b"what is this\nand that\n".to_vec()),
        ("line 13: no frame", b"rec 7 1.5: 3 cpu-clock: \n\tnonsense\n".to_vec()),
        ("line 12: no sample", vec![0, 1, 2, 200, 201, b'\n', 7, b'\n']),
    ] {
        let output = perfprop(&["--to", "folded"], &[&SCRIPT.as_bytes()[..cut], &bad].concat());
        assert_eq!(output.status.code(), Some(1), "{what}");
        assert!(stderr(&output).contains(what), "{what}: {}", stderr(&output));
        assert_eq!(stdout(&output).lines().count(), 2, "{what}");
    }
    let folded = perfprop(&["--to", "folded", "--from", "folded"], b"a;b 3\nno number\n");
    assert_eq!((stdout(&folded).as_str(), folded.status.code()), ("a;b 3\n", Some(1)));
    assert!(stderr(&folded).contains("line 2"), "{}", stderr(&folded));
}

/// perf writes them to the same file where errors and output go there (`&>`).
#[test]
fn messages_of_perf_are_no_part_of_samples() {
    let lost = "Warning:\nProcessed 20 events and lost 1 chunks!\n\nCheck IO/CPU overload!\n\n";
    let missing = "/usr/x with build id 12ab not found, continuing without symbols\n";
    let head = "rec 7 23.5: 10 cycles:\n";
    let frames = ["\t 5b f+0x1 (/x)\n", "\t 6b main+0x1 (/x)\n", "\n"];
    let sample = [&[head], &frames[..]].concat().concat();
    for (message, lines) in [(lost, "3 lines are messages"), (missing, "1 line is a message")] {
        for place in 0..=4 {
            let mut parts = [&[head], &frames[..]].concat();
            parts.insert(place, message);
            let script = [parts.concat(), sample.clone(), sample.clone()].concat();
            let output = perfprop(&["--to", "folded"], script.as_bytes());
            assert_eq!((stdout(&output).as_str(), output.status.code()), ("rec;main;f 30\n", Some(0)), "{script}");
            assert!(stderr(&output).contains(lines), "{script}{}", stderr(&output));
            let shown = run(&["replay", "-"], script.as_bytes());
            assert_eq!(shown.status.code(), Some(0), "{script}");
            assert!(stdout(&shown).contains("3 samples") && stderr(&shown).contains(lines), "{script}");
        }
    }
}

#[test]
fn a_script_that_ends_within_a_sample_may_be_cut_off() {
    let cut = "the last sample may be cut off";
    let whole = "rec 7 23.5: 10 cycles:\n\t 5b f+0x1 (/x)\n";
    for (script, is_told) in [
        (whole, false),
        (whole.trim_end(), true),
        (&[whole, "\n\n"].concat(), false),
        (&[whole, "\t 6"].concat(), true),
    ] {
        let output = perfprop(&["--to", "folded"], script.as_bytes());
        assert_eq!((output.status.code(), stderr(&output).contains(cut)), (Some(0), is_told), "{script}");
    }
}

#[test]
fn calls_of_regions_are_not_looked_for_in_stacks() {
    for input in [SCRIPT, "a;b 1\n"] {
        let output = perfprop(&["--to", "chrome-trace"], input.as_bytes());
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
        let reason = "holds stacks, and no calls; --to chrome-trace writes the calls of regions";
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}

#[test]
fn a_script_cut_anywhere_is_read_up_to_there() {
    for end in 0..SCRIPT.len() {
        let options = ReadOptions { format: Some(InputFormat::PerfScript), ..ReadOptions::default() };
        let imported = read(&SCRIPT.as_bytes()[..end], &options);
        let samples: u64 = imported.tree.event_ids().map(|event| imported.tree.total(event).samples).sum();
        let whole = SCRIPT[..end].matches("\n\n").count() as u64;
        assert!(samples >= whole, "{end}: {samples} of {whole}");
        if SCRIPT[..end].ends_with("\n\t") {
            assert!(imported.fault.is_none(), "{end}: {:?}", imported.fault);
        }
    }
}

#[test]
fn bad_files_are_refused_with_the_reason() {
    for (args, input, reason) in [
        (&[][..], &b""[..], "it is empty"),
        (&[], b"\n\n", "no samples"),
        (&[], b"hello\nworld\n", "neither"),
        (&[], b"\x7fELF\x02\x01\x01\0\0\0", "a program or a library"),
        (&[], br#"{"$schema":"https://www.speedscope.app/file-format-schema.json"}"#, "a profile for speedscope"),
        (&[], br#"{"meta":{"preprocessedProfileVersion":55}}"#, "a profile for Firefox"),
        (&[], br#"{"traceEvents":[]}"#, "a trace, which perfprop writes"),
        (&[], b"<?xml version=\"1.0\"?>\n<svg>", "a picture"),
        (&[], b"\xff\xfea\0;\0b\0 \x001\0", "text in UTF-16:  iconv"),
        (&[], b"a;b -10\n", "line 1: the number behind the stack is below 0"),
        (&[], b"a;b 1.5\n", "line 1: the number behind the stack isn't whole"),
        (&[], b"a;b 99999999999999999999\n", "line 1: no stack with a whole number"),
        (&[], b"a;b 0\n", "no samples: the number behind each stack is 0"),
        (&[], b"a;b 10 20\na;c 5 0\n", "line 1: two numbers behind each stack"),
        (&["--from", "perf-script"], b"hello\nworld\n", "line 1"),
        (&["--from", "pprof"], b"\x1f\x8bnonsense", "the packed file is damaged"),
        (&["--from", "pprof"], b"\x0a\xff", "pprof"),
        (&["--event-filter", "cycles"], b"a;b 1\n", "there are 'samples'"),
        (&["--event-filter", "cycles"], SCRIPT.as_bytes(), "there are 'cpu-clock', 'page-faults'"),
    ] {
        let output = perfprop(&[&["--to", "folded"], args].concat(), input);
        assert_eq!(output.status.code(), Some(1), "{reason}: {}", stderr(&output));
        assert!(stderr(&output).contains(reason) && output.stdout.is_empty(), "{reason}: {}", stderr(&output));
    }
    let missing = perfprop(&["--to", "folded", "/nonexistent/file"], b"");
    assert!(stderr(&missing).contains("No such file") && missing.status.code() == Some(1));
}

#[test]
fn names_never_reach_a_terminal_raw() {
    let name = "evil\u{1b}[2J\u{202e}</title><script>x;y";
    let mut tree = Tree::default();
    let event = tree.event(&ProfileEvent::new(name, SampleMeasure::Samples));
    let frame = tree.frame(&Frame { module: name, file: name, ..Frame::function(name) });
    let place = tree.sampled();
    tree.stack(place, [frame], event, Amount { samples: 1, weight: 1 });
    for target in
        [OutputFormat::Folded, OutputFormat::Firefox, OutputFormat::Speedscope, OutputFormat::Svg, OutputFormat::Html]
    {
        let text = written(&tree, target, WrittenNumber::Samples, name);
        assert!(!text.contains('\u{1b}'), "{target:?}");
        if matches!(target, OutputFormat::Svg | OutputFormat::Html) {
            assert!(!text.contains("<script>x"), "{target:?}");
        }
    }
    let output = perfprop(&["--to", "folded"], b"rec 7 1.5: 3 \x1b[2Jx: \n\t 5d \x1b[31mf+0x1 (/x)\n\n\x1b[2J\n\n");
    assert!(!stdout(&output).contains('\u{1b}') && !stderr(&output).contains('\u{1b}'));
    let output = perfprop(&["--to", "folded", "--event-filter", "\x1b[2J"], SCRIPT.as_bytes());
    assert!(!stderr(&output).contains('\u{1b}'));
}

#[test]
fn recursion_as_deep_as_it_gets() {
    let mut script = String::from("rec 7 1.5:  1 cycles: \n");
    (0..100_000).for_each(|_| script += "\t 5d fib+0x5d (/opt/demo/cxx)\n");
    script += "\n";
    for to in ["folded", "pprof", "firefox", "speedscope", "svg"] {
        let output = perfprop(&["--to", to], script.as_bytes());
        assert_eq!(output.status.code(), Some(0), "{to}: {}", stderr(&output));
        assert!(output.stdout.len() > 100, "{to}");
    }
    let folded = perfprop(&["--to", "folded", "--canonical"], script.as_bytes());
    assert_eq!(stdout(&folded), "rec;fib 1\n");
}

#[test]
fn output_goes_to_a_file() {
    let folder = Folder::new();
    let path = folder.join("x.html");
    let output = perfprop(&["--to", "html", "-o", path.to_str().unwrap()], SCRIPT.as_bytes());
    assert!(output.status.success() && output.stdout.is_empty(), "{}", stderr(&output));
    let page = fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("geo::Big::operator()"));
    assert!(!page.contains("src=") && !page.contains("@import"), "nothing is loaded");
}

#[test]
fn a_refused_export_leaves_the_file() {
    let folder = Folder::new();
    let path = folder.join("x.folded");
    fs::write(&path, "precious").unwrap();
    let mut tree = Tree::default();
    let event = tree.event(&ProfileEvent::new("inuse_space", SampleMeasure::Sum("bytes".into())));
    let place = tree.sampled();
    let frame = tree.frame(&Frame::function("f"));
    tree.tally(place, [frame], 0, &[(event, Amount { samples: 0, weight: 512 })]);
    let mut heap = Vec::new();
    write(&tree, OutputFormat::Pprof, &WriteOptions::default(), &mut heap).unwrap();
    let output = perfprop(&["--to", "folded", "--counts", "-o", path.to_str().unwrap()], &heap);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("inuse_space"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    assert_eq!(stdout(&perfprop(&["--to", "folded"], &heap)), "f 512\n");
}

/// perf pads the names of several events; inferno doesn't see the periods before them.
#[test]
fn padded_periods_are_weighed_on_request() {
    let script = "rec 7 1.5:  500      cpu-clock: \n\t 5d f+0x1 (/x)\n\n";
    let as_inferno = perfprop(&["--to", "folded"], script.as_bytes());
    assert_eq!(stdout(&as_inferno), "rec;f 1\n");
    assert!(stderr(&as_inferno).contains("--padded-periods"));
    let padded = perfprop(&["--to", "folded", "--padded-periods"], script.as_bytes());
    assert_eq!((stdout(&padded), stderr(&padded)), ("rec;f 500\n".into(), String::new()));
    let speedscope = stdout(&perfprop(&["--to", "speedscope"], script.as_bytes()));
    assert!(speedscope.contains("\"endValue\":500"), "{speedscope}");
}

fn written(tree: &Tree, target: OutputFormat, unit: WrittenNumber, title: &str) -> String {
    let mut out = Vec::new();
    let options = WriteOptions { unit, title: title.into(), ..WriteOptions::default() };
    write(tree, target, &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Numbers by path of names.
type Numbers = BTreeMap<String, u64>;

fn put(numbers: &mut Numbers, path: String, number: u64) {
    if number > 0 {
        *numbers.entry(path).or_default() += number;
    }
}

fn of_tree(tree: &Tree, event: EventId, unit: WrittenNumber) -> Numbers {
    let mut numbers = Numbers::new();
    for node in tree.walk() {
        let Amount { samples, weight } = node.amount(event);
        let names = tree.names(node.id());
        let path = if names.len() > 1 { names[1..].join(";") } else { names.join(";") };
        put(&mut numbers, path, if unit == WrittenNumber::Samples { samples } else { weight });
    }
    numbers
}

fn of_folded(text: &str) -> Numbers {
    text.lines().map(|line| line.rsplit_once(' ').unwrap()).map(|(path, n)| (path.into(), n.parse().unwrap())).collect()
}

fn of_speedscope(text: &str) -> Numbers {
    let value: Value = serde_json::from_str(text).unwrap();
    let name = |event: &Value| value["shared"]["frames"][event["frame"].as_u64().unwrap() as usize]["name"].clone();
    let (mut numbers, mut path, mut last) = (Numbers::new(), Vec::new(), 0);
    for event in value["profiles"][0]["events"].as_array().unwrap() {
        let at = event["at"].as_u64().unwrap();
        put(&mut numbers, path.join(";"), at - last);
        last = at;
        let name = name(event).as_str().unwrap().to_owned();
        if event["type"] == "O" {
            path.push(name);
        } else {
            assert_eq!(path.pop(), Some(name), "frames close in order");
        }
    }
    assert_eq!((path.len(), value["profiles"][0]["endValue"].as_u64()), (0, Some(last)));
    numbers
}

fn of_firefox(text: &str) -> Numbers {
    let value: Value = serde_json::from_str(text).unwrap();
    let thread = &value["threads"][0];
    let strings = [&value["shared"]["stringArray"], &thread["stringArray"]].into_iter().find(|v| v.is_array()).unwrap();
    let mut numbers = Numbers::new();
    let samples = &thread["samples"];
    for (stack, weight) in samples["stack"].as_array().unwrap().iter().zip(samples["weight"].as_array().unwrap()) {
        let (mut path, mut at) = (Vec::new(), stack.as_u64());
        while let Some(index) = at.map(|index| index as usize) {
            let frame = thread["stackTable"]["frame"][index].as_u64().unwrap() as usize;
            let func = thread["frameTable"]["func"][frame].as_u64().unwrap() as usize;
            let name = thread["funcTable"]["name"][func].as_u64().unwrap() as usize;
            path.push(strings[name].as_str().unwrap().to_owned());
            at = thread["stackTable"]["prefix"][index].as_u64();
        }
        path.reverse();
        put(&mut numbers, path.join(";"), weight.as_u64().unwrap());
    }
    numbers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_format_has_the_same_numbers(
        stacks in vec((vec(0..5_u8, 0..8), 1..5_u64, 0..3_000_000_000_u64), 0..12),
        folds in any::<bool>(),
        by_samples in any::<bool>(),
    ) {
        let repeats = if folds { RepeatFolding::Fold } else { RepeatFolding::Keep };
        let options = TreeOptions { repeats, ..TreeOptions::default() };
        let mut tree = Tree::new(options);
        let event = tree.event(&ProfileEvent::new("cpu-clock", SampleMeasure::Weighted("nanoseconds".into())));
        let place = tree.sampled();
        for (path, samples, weight) in &stacks {
            let path: Vec<FrameId> = path.iter().map(|n| tree.frame(&Frame::function(&format!("f{n}")))).collect();
            tree.stack(place, path, event, Amount { samples: *samples, weight: *weight });
        }
        let unit = if by_samples { WrittenNumber::Samples } else { WrittenNumber::Weights };
        let expected = of_tree(&tree, event, unit);
        prop_assert_eq!(&of_folded(&written(&tree, OutputFormat::Folded, unit, "t")), &expected);
        prop_assert_eq!(&of_speedscope(&written(&tree, OutputFormat::Speedscope, unit, "t")), &expected);
        prop_assert_eq!(&of_firefox(&written(&tree, OutputFormat::Firefox, unit, "t")), &expected);
        for target in [OutputFormat::Svg, OutputFormat::Html] {
            let text = written(&tree, target, unit, "t");
            let samples = perfprop::number::counted(tree.total(event).samples, "sample");
            let time = perfprop::number::time(tree.total(event).weight as f64);
            let heading = match tree.total(event) {
                _ if by_samples => format!("t: {samples} of cpu-clock<"),
                Amount { samples, weight } if samples == weight => format!("t: {time} of cpu-clock<"),
                Amount { weight: 0, .. } => format!("t: {time} of cpu-clock by {samples}<"),
                _ => format!("t: about {time} of cpu-clock by {samples}<"),
            };
            prop_assert!(text.contains(&heading), "{heading}");
        }
        let mut pprof = Vec::new();
        write(&tree, OutputFormat::Pprof, &WriteOptions::default(), &mut pprof).unwrap();
        let imported = read(&*pprof, &ReadOptions { tree: options, ..ReadOptions::default() });
        prop_assert!(imported.fault.is_none());
        let again = imported.tree.find_event("cpu-clock").unwrap();
        prop_assert_eq!(of_tree(&imported.tree, again, unit), expected);
    }

    #[test]
    fn no_input_panics(input in vec(any::<u8>(), 0..300), text in "[\\PC\t\n;: 0-9]{0,200}") {
        for format in [None, Some(InputFormat::PerfScript), Some(InputFormat::Folded), Some(InputFormat::Pprof)] {
            let options = ReadOptions { format, ..ReadOptions::default() };
            read(&*input, &options);
            read(text.as_bytes(), &options);
        }
    }

    #[test]
    fn a_damaged_profile_is_refused_or_read(at in 0..200_usize, to in any::<u8>()) {
        let mut bytes = Vec::new();
        let options = ReadOptions::default();
        write(&read(SCRIPT.as_bytes(), &options).tree, OutputFormat::Pprof, &WriteOptions::default(), &mut bytes).unwrap();
        let mut raw = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*bytes), &mut raw).unwrap();
        let at = at % raw.len();
        raw[at] = to;
        read(&*raw, &ReadOptions { format: Some(InputFormat::Pprof), ..options });
    }
}

/// As the reader sees the lines of a sample, one after the other, where nothing can be looked up as a whole.
fn one_by_one(script: &str) -> String {
    // A line with a blank ends a sample, and a whole stack is looked up only up to an empty one.
    script.replace("\n\n", "\n \n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn samples_that_come_again_count_as_if_they_were_new(
        samples in vec((0..3_usize, 0..100_u32, 1..2000_u32, vec((0..4_usize, 0..3_u32), 0..5)), 0..40),
        canonical in any::<bool>(),
        cap in 16..60_usize,
    ) {
        const SYMBOLS: [&str; 4] = ["f", "Big::operator+", "[unknown]", "g(int)"];
        let mut script = String::new();
        for (process, time, period, frames) in &samples {
            let head = ["my sh 7", "rec 8/9 [001]", "12: odd 9"][*process];
            script += &format!("{head} 1.{time}: {period} cpu-clock: \n");
            for (symbol, offset) in frames {
                script += &format!("\t  {offset}f {}+0x{offset} (/opt/x)\n", SYMBOLS[*symbol]);
            }
            script += "\n";
        }
        let options = TreeOptions { repeats: if canonical { RepeatFolding::Fold } else { RepeatFolding::Keep }, cap, ..TreeOptions::default() };
        let options = ReadOptions { format: Some(InputFormat::PerfScript), tree: options, ..ReadOptions::default() };
        let [known, new] = [script.clone(), one_by_one(&script)].map(|script| read(script.as_bytes(), &options).tree);
        for event in known.event_ids() {
            prop_assert_eq!(of_tree(&known, event, WrittenNumber::Weights), of_tree(&new, event, WrittenNumber::Weights));
            let total: u64 = samples.iter().map(|(_, _, period, _)| u64::from(*period)).sum();
            prop_assert_eq!(known.total(event), Amount { samples: samples.len() as u64, weight: total });
        }
    }
}

#[test]
fn a_sample_that_names_no_event_is_none_of_a_chosen_one() {
    let script = "rec 7 1.5: 1 cycles:\n\t 5d f+0x1 (/x)\n\nrec\n\t 5d f+0x1 (/x)\n\n";
    let options = ReadOptions { events: EventSelection::Named(vec!["cycles".into()]), ..ReadOptions::default() };
    let imported = read(script.as_bytes(), &options);
    assert!(imported.fault.is_none(), "{:?}", imported.fault);
    assert_eq!(imported.tree.total(imported.tree.default_event().unwrap()).samples, 1);
}

#[test]
fn faults_in_known_samples_have_their_line() {
    let sample = "rec 7 1.5: 1 cycles:\n\t 5d f+0x1 (/x)\n\t 5d main+0x1 (/x)\n\n";
    let script = format!("{}rec 7 1.5: 1 cycles:\n\t 5d f+0x1 (/x)\n\tno frame\n\n", sample.repeat(5));
    let imported = read(script.as_bytes(), &ReadOptions::default());
    assert_eq!(imported.fault.unwrap().line, Some(23));
    let event = imported.tree.default_event().unwrap();
    assert_eq!(imported.tree.total(event).samples, 5);
}

/// Who looks into a folder that all share learns nothing of what ran.
#[test]
fn an_exported_file_is_its_owners() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    fs::set_permissions(&folder, PermissionsExt::from_mode(0o1777)).unwrap();
    let out = folder.join("out.folded");
    let to = |path: &PathBuf| perfprop(&["--to", "folded", "-o", path.to_str().unwrap()], SCRIPT.as_bytes());
    assert_eq!(to(&out).status.code(), Some(0));
    assert_eq!(fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    let (link, target) = (folder.join("link"), folder.join("target"));
    fs::write(&target, "precious").unwrap();
    symlink(&target, &link).unwrap();
    let refused = to(&link);
    assert!(stderr(&refused).contains("link in a folder that others write to"), "{}", stderr(&refused));
    assert_eq!((refused.status.success(), fs::read_to_string(&target).unwrap().as_str()), (false, "precious"));
}

#[test]
fn more_events_than_can_be_estimated_together_are_refused() {
    let events: Vec<_> = (0..513).map(|n| serde_json::json!({ "name": format!("e{n}"), "fixed": false })).collect();
    let init = serde_json::json!({
        "type": "init", "events": events, "counters": 4, "mux_ms": 4.0, "read_ms": 10.0, "phase": "measure"
    });
    let output = run(&["estimate"], format!("{init}\n").as_bytes());
    assert!(stderr(&output).contains("513 events; 512 can be estimated together"), "{}", stderr(&output));
    assert!(!output.status.success());
}

#[test]
fn lines_to_estimate_that_make_no_sense_are_refused_with_their_number() {
    let init = |counters: u32| {
        serde_json::json!({
            "type": "init", "events": [{ "name": "a", "fixed": false }], "counters": counters, "mux_ms": 4.0, "read_ms": 4.0
        })
    };
    let with = |key: &str, ms: f64| {
        let mut init = init(1);
        init[key] = ms.into();
        format!("{init}\n")
    };
    let read = |t0: u32, t1: u32| serde_json::json!({ "type": "read", "t0": t0, "t1": t1, "report": true, "d": [[10, 4_000_000, 2_000_000]] });
    for (input, reason) in [
        (format!("{}\n", init(0)), "line 1: \"counters\" is 0"),
        (format!("{}\n{}\n", init(1), init(1)), "line 2: a second line of type \"init\""),
        (with("mux_ms", 0.0), "line 1: \"mux_ms\" is 0: it has to be a time above 0"),
        (with("mux_ms", -4.0), "line 1: \"mux_ms\" is -4"),
        (with("read_ms", 0.0), "line 1: \"read_ms\" is 0"),
        (format!("{}\n", read(0, 4)), "line 1: the first line must be of type \"init\""),
        (format!("{}\n{}\n", init(1), read(4, 0)), "line 2: t1 (0) is before t0 (4)"),
        ("{\"type\":\"\\u001b[31m\"}\n".to_owned(), "line 1: unknown variant `\\x1b[31m`"),
        (format!("{}\n{}\n", init(1), read(0, 4)), "standard input ended before a line of type \"end\""),
    ] {
        let output = run(&["estimate"], input.as_bytes());
        assert!(stderr(&output).contains(reason) && !output.status.success(), "{input} {}", stderr(&output));
    }
}

#[test]
fn the_end_answers_each_report_once_more_unless_it_is_as_live() {
    let events: Vec<_> = ["a", "b"].map(|name| serde_json::json!({ "name": name, "fixed": false })).into();
    let init = serde_json::json!({
        "type": "init", "events": events, "counters": 1, "mux_ms": 4.0, "read_ms": 4.0, "phase": "measure"
    });
    let read = |i: usize| {
        let on =
            |event: usize, count: u64| if i % 2 == event { [count, 4_000_000, 4_000_000] } else { [0, 4_000_000, 0] };
        serde_json::json!({
            "type": "read", "t0": 4 * i, "t1": 4 * i + 4, "report": i % 25 == 24, "d": [on(0, 1000), on(1, 300)]
        })
    };
    let reads: String = (0..75).map(|i| format!("{}\n", read(i))).collect();
    let input = format!("{init}\n{reads}{}\n", serde_json::json!({ "type": "end" }));
    let end = |args: &[&str]| -> Value {
        let output = run(&[&["estimate"], args].concat(), input.as_bytes());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(String::from_utf8(output.stdout).unwrap().lines().last().unwrap()).unwrap()
    };
    let (later, live) = (end(&[]), end(&["--as-live"]));
    let numbers = |key: &str| -> Vec<Vec<f64>> { serde_json::from_value(later[key].clone()).unwrap() };
    let [series, low, high] = ["series", "series_lo", "series_hi"].map(numbers);
    assert_eq!((series.len(), low.len(), high.len()), (3, 3, 3));
    for (report, row) in series.iter().enumerate() {
        for (event, (&found, truth)) in row.iter().zip([25_000.0, 7_500.0]).enumerate() {
            assert!((found - truth).abs() < 0.02 * truth, "{series:?}");
            assert!(low[report][event] <= truth && truth <= high[report][event], "{low:?} {high:?}");
        }
    }
    assert!(live.get("series").is_none() && live["total"] == later["total"], "{live}");
}

#[test]
fn other_estimators_answer_rounds_too() {
    let events: Vec<_> = ["a", "b", "c"].map(|name| serde_json::json!({ "name": name, "fixed": false })).into();
    let init = serde_json::json!({
        "type": "init", "events": events, "counters": 2, "mux_ms": 4.0, "read_ms": 2.0, "phase": "measure",
        "exact": [{ "sum": { "b": 1, "c": 1 }, "equals": ["a"] }]
    });
    let half = |count: u64| [count, 2_000_000, 1_000_000];
    let read =
        serde_json::json!({ "type": "read", "t0": 0, "t1": 2, "report": true, "d": [half(100), half(40), half(50)] });
    let input = format!("{init}\n{read}\n{}\n", serde_json::json!({ "type": "end" }));
    // Scaled, and by a = b + c a quarter of the way to 90, 50 and 60 a millisecond.
    for (estimator, counts) in [("scale", [200.0, 80.0, 100.0]), ("linear-plain", [195.0, 85.0, 105.0])] {
        let output = run(&["estimate", "--estimator", estimator], input.as_bytes());
        assert!(output.status.success(), "{}", stderr(&output));
        let answers = String::from_utf8(output.stdout).unwrap();
        let answers: Vec<Value> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers[1]["est"], serde_json::json!(counts), "{estimator}");
        assert_eq!(answers[2]["total"], serde_json::json!(counts), "{estimator}");
    }
    let learn = init.to_string().replace("measure", "learn");
    let output = run(&["estimate", "--estimator", "linear"], format!("{learn}\n").as_bytes());
    assert!(stderr(&output).contains("for the estimator gp, not for linear"), "{}", stderr(&output));
}

#[test]
fn a_difference_is_a_flame_graph_of_both_sides() {
    let folder = Folder::new();
    let file = |name: &str, stacks: &str| {
        let path = folder.join(name);
        fs::write(&path, stacks).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let before = file("before.folded", "p;main;slow 50\np;main;same 40\np;main;gone 10\n");
    let after = file("after.folded", "p;main;slow 5\np;main;same 4\np;main;new<b> 1\n");
    let output = run(&["export", &before, &after, "--to", "svg"], b"");
    let svg = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    let title = |name: &str| {
        let begin = svg.find(&format!("<title>{name}")).unwrap_or_else(|| panic!("{name}: {svg}"));
        svg[begin..].split("</title>").next().unwrap().to_owned()
    };
    assert!(title("same").contains("40.00% of both, +0.00% of all of A"), "{}", title("same"));
    assert!(title("gone").contains("5.00% of both, -10.00% of all of A"), "{}", title("gone"));
    assert!(title("new&lt;b&gt;").contains("+10.00% of all of A"));
    assert!(svg.contains("class=\"l4\"") && svg.contains("class=\"m4\"") && !svg.contains(" sure\""));
    assert!(svg.contains("one run each: no function is marked"), "{svg}");
    // Five runs a side, in which one function differs by more than chance.
    let side = |name: &str, slow: [u64; 5]| -> Vec<String> {
        let runs = slow.iter().enumerate();
        runs.map(|(run, slow)| file(&format!("{name}-{run}"), &format!("p;slow {slow}\np;same 400\n"))).collect()
    };
    let [a, b] = [side("a", [500, 510, 490, 505, 495]), side("b", [900, 910, 890, 905, 895])];
    let args: Vec<&str> = ["export", "--to", "html", "--a"].into_iter().chain(a.iter().map(String::as_str)).collect();
    let args: Vec<&str> = args.into_iter().chain(["--b"]).chain(b.iter().map(String::as_str)).collect();
    let html = stdout(&run(&args, b""));
    assert!(html.contains(" sure\"") && html.contains("framed functions differ by more than chance"), "{html}");
}

#[test]
fn what_can_not_be_compared_is_refused() {
    let folder = Folder::new();
    let file = folder.join("one.folded");
    fs::write(&file, "a;b 3\n").unwrap();
    let path = file.to_str().unwrap();
    for (args, status, words) in [
        (&["export", path, path, "--to", "folded"][..], 2, "--to svg or --to html"),
        (&["export", path, "/nonexistent", "--to", "svg"], 1, "/nonexistent"),
        (&["export", "--a", path, "--to", "svg"], 2, "--b"),
    ] {
        let output = run(args, b"");
        assert_eq!(output.status.code(), Some(status), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
}

fn packed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn calls_of_regions_are_read_from_a_packed_recording() {
    let recording = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/regions.jsonl")).unwrap();
    let trace = |input: &[u8]| perfprop(&["--to", "chrome-trace"], input);
    let [plain, packed] = [trace(&recording), trace(&packed(&recording))].map(|output| stderr(&output));
    // Calls one by one aren't in it.
    assert!(plain.contains("no calls of regions were recorded"), "{plain}");
    assert_eq!(plain, packed);
}

/// The recording of the tour.
fn demo() -> String {
    let mut text = String::new();
    let demo = fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/demo.jsonl.gz")).unwrap();
    GzDecoder::new(demo).read_to_string(&mut text).unwrap();
    text
}

#[test]
fn numbers_that_a_format_has_no_room_for_are_refused() {
    let stacks = b"a;b 9223372036854775808\n";
    for format in ["pprof", "firefox"] {
        let output = perfprop(&["--to", format], stacks);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert!(stderr(&output).contains("are too large for this format"), "{format}: {}", stderr(&output));
    }
    let output = perfprop(&["--to", "pprof"], b"a;b 9223372036854775807\n");
    assert_eq!(stdout(&perfprop(&["--to", "folded"], &output.stdout)), "a;b 9223372036854775807\n");
}

#[test]
fn no_sample_that_is_left_is_an_error() {
    let output = perfprop(&["--to", "folded", "--sample-period", "18446744073709551614"], SCRIPT.as_bytes());
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert!(stderr(&output).contains("--sample-period 18446744073709551614 leaves no sample"), "{}", stderr(&output));
}

#[test]
fn the_title_of_a_flame_graph_is_markup() {
    let output = perfprop(&["--to", "svg"], b"a;b 9999\n[cut];c 1\n");
    let (svg, error) = (stdout(&output), stderr(&output));
    assert!(svg.contains(", &lt;0.1% in cut stacks") && !svg.contains("<0.1%"), "{error}{svg}");
}

#[test]
fn lost_samples_are_told() {
    let whole = demo();
    let lossy = whole.replace("\"lost\":0,\"dropped\":0,", "\"lost\":2545,\"dropped\":2,");
    for format in ["folded", "pprof", "firefox", "speedscope", "svg", "html"] {
        let said = |text: &str| stderr(&perfprop(&["--to", format], text.as_bytes()));
        assert_eq!(said(&whole), "");
        assert!(said(&lossy).contains("samples are missing (2545 lost, 2 dropped)"), "{format}: {}", said(&lossy));
    }
}

#[test]
fn packed_and_piped_recordings_differ_as_plain_ones_do() {
    let whole = demo();
    // Half of the samples: by totals all functions take less, by shares hardly one does.
    let stacks = |line: &str| line.starts_with("{\"type\":\"stacks\"");
    let mut left = whole.lines().filter(|line| stacks(line)).count() / 2;
    let keep = |line: &&str| !stacks(line) || left.checked_sub(1).map(|fewer| left = fewer).is_some();
    let half: String = whole.lines().filter(keep).map(|line| format!("{line}\n")).collect();
    let folders = [Folder::new(), Folder::new()];
    for (folder, pack) in folders.iter().zip([<[u8]>::to_vec, packed]) {
        fs::write(folder.join("whole.jsonl"), pack(whole.as_bytes())).unwrap();
        fs::write(folder.join("half.jsonl"), pack(half.as_bytes())).unwrap();
    }
    let difference = |folder: &Folder, first: &str, input: &[u8]| {
        let other = folder.join("half.jsonl");
        let output = run(&["export", first, other.to_str().unwrap(), "--to", "svg"], input);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).replace("standard input", "whole.jsonl")
    };
    let [plain, packed] =
        folders.each_ref().map(|folder| difference(folder, folder.join("whole.jsonl").to_str().unwrap(), b""));
    assert!(plain.contains("<title>all: 100.00% of both, -"), "no totals are compared");
    assert!(plain == packed, "a packed recording differs from a plain one");
    let piped = difference(&folders[1], "-", &fs::read(folders[1].join("whole.jsonl")).unwrap());
    assert!(plain == piped, "a piped recording differs from a file");
}
