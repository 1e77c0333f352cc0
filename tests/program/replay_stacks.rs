//! Tests `perfprop replay` of what other tools wrote: the Profile screen of the same tree that `export`
//! writes.

#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::fs;
use std::path::Path;
use std::thread;

use crossbeam_channel::{Receiver, bounded, never};
use perfprop::estimate::Linear;
use perfprop::monitor::Monitor;
use perfprop::profile::Tree;
use perfprop::recording;
use perfprop::run::End;
use perfprop::sampling::SamplerMessage;
use perfprop::session::OutputLine;
use perfprop::sources::Round;
use perfprop::stacks::StackQuality;
use perfprop::tui::{self, Feed, Mode, Screen, ScreenOptions, Terminal};
use perfprop::units::WallNs;

use crate::folders::Folder;
use crate::piped::{run, stderr, stdout};

const SCRIPT: &str = "\
rec 7/8 [001] 1.5:  500 cpu-clock: \n\
\t    5d geo::Big::operator++0x5d (/opt/demo/cxx)\n\
\t    16 main+0x4de (/opt/demo/cxx)\n\
\n\
rec 7/8 [001] 1.6:  300 cpu-clock: \n\
\t    5d fib(int)+0x5d (/opt/demo/cxx)\n\
\t    5d fib(int)+0x5e (/opt/demo/cxx)\n\
\t    16 main+0x4de (/opt/demo/cxx)\n\
\n\
rec 7/8 [001] 1.7:  200 cpu-clock: \n\
\t    16 main+0x4df (/opt/demo/cxx)\n\
\n";

/// The rows of the table: name, share of its own, share with what is below.
fn rows(screen: &str) -> Vec<(String, String, String)> {
    let table = screen.lines().skip_while(|line| !line.contains("TOTAL")).skip(1);
    let words = table.map(|line| line.split_whitespace().filter(|word| !"│▶−+".contains(word)).collect::<Vec<_>>());
    words
        .filter(|words| words.len() > 4)
        .map_while(|words| {
            let shares: Vec<_> = words.iter().filter(|word| word.ends_with('%')).collect();
            Some((words[0].into(), (*shares.first()?).to_string(), (*shares.get(1)?).to_string()))
        })
        .collect()
}

/// What the list of functions holds. A pprof or folded file doesn't say that its first frame is a process.
fn expected(names_process: bool) -> Vec<(String, String, String)> {
    let row = |(name, own, total): (&str, &str, &str)| (name.into(), own.into(), total.into());
    let functions =
        [("geo::Big::operator+", "50.0%", "50.0%"), ("fib(int)", "30.0%", "30.0%"), ("main", "20.0%", "100%")];
    let first = (!names_process).then_some(("rec", "0.0%", "100%"));
    functions.into_iter().chain(first).map(row).collect()
}

#[test]
fn every_format_shows_the_tree_that_export_writes() {
    let folder = Folder::new();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::write(file("script"), SCRIPT).unwrap();
    run(&["export", "--to", "pprof", "-o", &file("gzip"), &file("script")], b"");
    let mut raw = Vec::new();
    let packed = fs::read(file("gzip")).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*packed), &mut raw).unwrap();
    fs::write(file("raw"), &raw).unwrap();
    // Lines of folded stacks have names as inferno has them.
    fs::write(file("folded"), "rec;main 200\nrec;main;geo::Big::operator+ 500\nrec;main;fib(int);fib(int) 300\n")
        .unwrap();
    for (name, from) in [("script", "perf-script"), ("gzip", "pprof"), ("raw", "pprof"), ("folded", "folded")] {
        let bytes = fs::read(file(name)).unwrap();
        let path = file(name);
        for args in [&[path.as_str()][..], &["-", "--from", from]] {
            let output = run(&[&["replay", "--dump", "txt", "--size", "100x24"], args].concat(), &bytes);
            assert!(output.status.success(), "{}", stderr(&output));
            assert_eq!(rows(&stdout(&output)), expected(name == "script"), "{name}: {}", stdout(&output));
        }
    }
    let svg = stdout(&run(&["replay", "--dump", "svg", &file("gzip")], b""));
    assert!(svg.starts_with("<svg") && svg.contains("fib"), "{}", &svg[..200.min(svg.len())]);
}

#[test]
fn without_a_terminal_the_hottest_functions_are_printed() {
    let output = run(&["replay", "-"], SCRIPT.as_bytes());
    let text = stdout(&output);
    assert!(
        text.starts_with(
            "cpu-clock: 3 samples with call stacks, 100% complete\n    SELF       95% CI    TOTAL  FUNCTION\n"
        ) && text.contains("  geo::Big::operator+  cxx\n"),
        "{text}"
    );
}

#[test]
fn canonical_folds_recursion() {
    let levels = |options: &[&str]| {
        let output = run(&[&["replay", "--dump", "txt", "-"], options].concat(), SCRIPT.as_bytes());
        stdout(&output).lines().filter(|line| line.contains('▏') && line.contains("fib(int)")).count()
    };
    assert_eq!([levels(&[]), levels(&["--canonical"])], [2, 1]);
}

#[test]
fn what_stands_before_a_fault_is_shown_with_its_line() {
    let input = format!("{SCRIPT}rec 7 2.0: 1 cpu-clock:\n\tgarbage\n");
    let output = run(&["replay", "--dump", "txt", "-"], input.as_bytes());
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("line 14: no frame") && stderr(&output).contains("what stands before it is shown")
    );
    assert!(stdout(&output).contains("NOT ALL") && stdout(&output).contains("3 samples"), "{}", stdout(&output));
    let log = stdout(&run(&["replay", "--dump", "txt", "--screen", "log", "-"], input.as_bytes()));
    assert!(log.contains("line 14: no frame"), "{log}");
}

#[test]
fn what_nobody_can_read_is_refused() {
    for (args, input, words) in [
        (&["-"][..], &b"hello\nworld\n"[..], "neither a recording nor"),
        (&["-"], b"", "it is empty"),
        (&["-"], b"{\"a\": 1}\n", "not a perfprop recording"),
        (
            &["-"],
            b"{\"shared\":\n{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}}",
            "a profile for speedscope",
        ),
        (&["-"], &[0x1f, 0x8b, 8, 0, 7, 7], "the packed file is cut off"),
        (&["-"], b"\x7fELF\x02\x01\x01\x00\x00\x00", "but a program or a library"),
        (&["--from", "folded", "-"], b"a;b\n", "line 1: no stack with a whole number"),
        (&["--from", "perf-script", "-"], b"hello\n", "line 1: no sample begins so"),
        (&["--from", "recording", "-"], SCRIPT.as_bytes(), "not a perfprop recording"),
        (&["/nonexistent.folded"], b"", "/nonexistent.folded"),
    ] {
        let output = run(&[&["replay"], args].concat(), input);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{args:?}");
    }
}

#[test]
fn options_for_recordings_are_refused() {
    for (args, words) in [
        (&["--at", "3", "-"][..], "--at is for recordings"),
        (&["--speed", "2", "-"], "--speed is for recordings"),
        (&["-I", "100", "-"], "-I is for recordings"),
        (&["--by", "cpu", "-"], "--by is for recordings"),
        (&["--screen", "events", "-"], "profile and log only"),
        (&["-", "/etc/hostname"], "- is no recording"),
    ] {
        let output = run(&[&["replay"], args].concat(), SCRIPT.as_bytes());
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn options_for_one_recording_are_refused_before_files_are_opened() {
    for (args, words) in [
        (&["--range", "1-2", "/nonexistent.a", "/nonexistent.b"][..], "--range is for one recording"),
        (&["--print", "--at", "1", "/nonexistent.a", "/nonexistent.b"], "--at is for screens"),
    ] {
        let output = run(&[&["replay"], args].concat(), b"");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn escape_sequences_do_not_reach_the_terminal() {
    let input = "evil\x1b[31m;\x07bell\x1b]0;title\x07 7\n";
    for args in [&["replay", "-"][..], &["replay", "--dump", "txt", "-"]] {
        let text = stdout(&run(args, input.as_bytes()));
        assert!(text.contains("title\\x07") && !text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}

struct Still {
    tree: Tree,
    samples: Receiver<SamplerMessage>,
    output: Receiver<OutputLine>,
}

impl Feed for Still {
    fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }

    fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    fn profile(&mut self, _until: WallNs, see: &mut dyn FnMut(&Tree, &StackQuality)) {
        see(&self.tree, &StackQuality::default());
    }

    fn end(&mut self, _last: &Round, _lost: u64) -> End {
        End::default()
    }
}

#[test]
fn screens_of_stacks_have_a_profile_and_a_log_only() {
    let header = r#"{"type":"header","version":1,"perfprop":"","started":0,"machine":{"host":"","kernel":"","arch":"","cpu":"","cpus":1},
        "target":{"file":{"path":"x.folded"}},"events":[],"groups":[],"relations":[],"estimator":"scale",
        "period_ns":0,"interval_ns":0}"#;
    let header = recording::read(header.replace('\n', "").as_bytes()).unwrap().header;
    let tree = perfprop::stack_formats::read(SCRIPT.as_bytes(), &Default::default()).tree;
    let mut feed = Still { tree, samples: never(), output: never() };
    let (terminal, script) = Terminal::scripted(80, 24).unwrap();
    let (signals, signals_out) = bounded(0);
    let user = thread::spawn(move || {
        assert!(script.screen().contains("STACKS") && script.screen().contains("3 samples"), "{}", script.screen());
        for (keys, words) in [
            ("1", "a file of stacks has the screens Profile and Log"),
            ("S", "perfprop export writes stacks"),
            ("p", "only a replay can be wound"),
            ("B", "the first level of these stacks is that of their file"),
            ("6", "no messages"),
            ("<Esc>/fib<Enter>", "/fib 30.0% of all"),
            ("nnN", "fib(int)"),
        ] {
            script.keys(keys);
            assert!(script.screen().contains(words), "{keys}: {}", script.screen());
        }
        signals.send(15.into()).unwrap();
    });
    let monitor = Monitor::new(header, Vec::new(), Box::new(Linear::new(&[], &[])));
    let options =
        ScreenOptions { mode: Mode::Stacks { is_whole: true }, screen: Screen::Profile, ..ScreenOptions::default() };
    tui::run_on(terminal, monitor, &mut feed, &signals_out, &options).unwrap();
    user.join().unwrap();
}

#[test]
fn the_readme_and_the_manual_say_so() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    assert!(readme.contains("perfprop replay -"));
    let manual = stdout(&run(&["man", "replay"], b""));
    assert!(manual.contains("canonical") && manual.contains("stacks of another tool"), "{manual}");
}

#[test]
fn counts_that_are_too_large_together_are_refused() {
    let most = u64::MAX;
    let folder = Folder::new().with("f.folded", &format!("a;b {most}\na;b;c {most}\na;d {most}\n"));
    let file = folder.join("f.folded");
    let file = file.to_str().unwrap();
    for args in [
        &["replay", "--dump", "txt", "--screen", "profile", file][..],
        &["replay", "--print", file],
        &["export", "--to", "svg", file],
    ] {
        let output = run(args, b"");
        let refused = stderr(&output).contains("the numbers of 'samples' add up to more than 2^64");
        assert!(refused && output.status.code() == Some(1), "{args:?}: {}", stderr(&output));
    }
}
