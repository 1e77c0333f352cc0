//! Tests `perfprop bench` as a program: commands that are compared, what runs around runs, sweeps that go on.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::folders::Folder;

fn bench(folder: &Folder, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
    command.current_dir(&**folder).arg("bench").args(args).stdin(Stdio::null()).output().unwrap()
}

fn ended(folder: &Folder, args: &[&str], code: i32) -> (String, String) {
    let output = bench(folder, args);
    let [out, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(output.status.code(), Some(code), "{args:?}: {out}{said}");
    (out, said)
}

fn lines(folder: &Folder, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The places of all runs of some files, in order.
fn places(folder: &Folder, files: &[&str]) -> Vec<u64> {
    let workloads = files.iter().flat_map(|file| lines(folder, file).into_iter().skip(1));
    let orders = workloads.map(|workload| {
        let order = workload["order"].as_array().unwrap().clone();
        assert_eq!(workload["samples"]["time"].as_array().unwrap().len(), order.len());
        order
    });
    let mut all: Vec<u64> = orders.flatten().map(|place| place.as_u64().unwrap()).collect();
    all.sort_unstable();
    all
}

#[test]
fn words_make_commands_that_take_turns_and_are_compared() {
    let folder = Folder::new();
    let args = ["-P", "n=1,2", "-P", "algo=quick,merge sort", "-r", "3", "--warmup", "0", "-o", "runs/s.jsonl"];
    fs::create_dir(folder.join("runs")).unwrap();
    let (table, said) = ended(&folder, &[&args[..], &["--", "sh", "-c", ": {n} \"$0\"", "{algo}"]].concat(), 0);
    assert!(table.contains("RATIO") && table.contains("to algo=quick\n"), "{table}");
    assert!(said.contains("a file for each command: runs/s-algo=quick.jsonl, runs/s-algo=merge-sort.jsonl"), "{said}");
    let files = ["runs/s-algo=quick.jsonl", "runs/s-algo=merge-sort.jsonl"];
    assert_eq!(places(&folder, &files), (0..12).collect::<Vec<_>>());
    let header = &lines(&folder, files[1])[0];
    assert_eq!((&header["words"]["algo"], &header["command"][3]), (&"merge sort".into(), &"merge sort".into()));
    // A folder of them can be fitted.
    let mut fit = Command::new(env!("CARGO_BIN_EXE_perfprop"));
    let fitted = fit.current_dir(&*folder).args(["fit", "runs", "--model", "const"]).output().unwrap();
    let text = String::from_utf8(fitted.stdout).unwrap();
    assert!(fitted.status.success() && files.iter().all(|file| text.contains(file)), "{text}");
}

#[test]
fn several_commands_are_told_apart() {
    let folder = Folder::new();
    let args = ["-r", "3", "--warmup", "0", "--", "sh", "-c", ":", "--vs", "sh", "-c", ": 2", "--vs", "true"];
    let (table, _) = ended(&folder, &args, 0);
    assert!(table.starts_with("sh-1  sh -c :\nsh-2  sh -c : 2\ntrue  true\n\n"), "{table}");
    assert_eq!(table.lines().filter(|line| line.starts_with("time ")).count(), 2, "{table}");
    let wrong: [(&[&str], &str); 4] = [
        (&["--", "true", "--vs"], "a command is missing"),
        (&["-o", "-", "--", "true", "--vs", "false"], "several commands don't go to standard output"),
        (&["-P", "n=1", "--", "true", "{n}", "--vs", "false"], "the command 'false' has no {n}"),
        (&["-P", "n=1,x", "--", "true", "{n}"], "'x' is no number"),
    ];
    for (args, words) in wrong {
        let (_, said) = ended(&folder, args, 2);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn commands_around_runs_have_sizes_and_quoted_words() {
    let folder = Folder::new();
    let hooks = ["--setup", "echo setup {n} {w} >> log", "--prepare", "echo prepare {n} >> log"];
    let args = ["-P", "n=1,2", "-P", "w=it's $HOME", "-r", "2", "--cleanup", "echo cleanup {n} >> log"];
    ended(&folder, &[&hooks[..], &args, &["--", "sh", "-c", "echo run {n} >> log", "{w}"]].concat(), 0);
    let log = fs::read_to_string(folder.join("log")).unwrap();
    let count = |line: &str| log.lines().filter(|other| *other == line).count();
    // Two runs and a warm-up of each size.
    let counts =
        ["setup 1 it's $HOME", "setup 2 it's $HOME", "prepare 1", "run 2", "cleanup 1", "cleanup 2"].map(count);
    assert_eq!((counts, log.lines().count()), ([1, 1, 3, 3, 1, 1], 16), "{log}");
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].starts_with("setup") && lines[1].starts_with("prepare") && lines[2].starts_with("run"), "{log}");
    assert!(lines[14..].iter().all(|line| line.starts_with("cleanup")), "{log}");
}

#[test]
fn a_failure_around_runs_is_told_and_cleaned_up() {
    let folder = Folder::new();
    let args = ["--prepare", "echo; echo all is lost >&2; exit 4", "--cleanup", "echo x >> cleaned", "--", "true"];
    let (_, said) = ended(&folder, &args, 125);
    assert!(said.contains("the command of --prepare ended with code 4: echo; echo all"), "{said}");
    assert!(said.contains("\n      all is lost"), "{said}");
    assert_eq!(fs::read_to_string(folder.join("cleaned")).unwrap(), "x\n");
    ended(&folder, &["-r", "1", "--cleanup", "exit 1", "--", "true"], 125);
    let (_, said) = ended(&folder, &["-o", "none/a.jsonl", "--", "touch", "ran"], 125);
    assert!(said.contains("cannot write none/a.jsonl") && !folder.join("ran").exists(), "{said}");
}

#[test]
fn an_interrupted_sweep_goes_on_with_the_runs_that_are_missing() {
    let folder = Folder::new().with("stop", "");
    // The fourth run ends perfprop while there is a file `stop`.
    let script = "echo >> runs; test -e stop && test $(wc -l < runs) = 4 && kill -TERM $PPID && sleep 60; : {n}";
    let all = |repeat: &'static str, more: &[&'static str]| {
        let sweep = ["-P", "n=1,2,3", "-r", repeat, "--warmup", "0", "-o", "s.jsonl", "--cleanup", "echo x >> cleaned"];
        [&sweep[..], more, &["--", "sh", "-c", script]].concat()
    };
    let (_, said) = ended(&folder, &all("4", &[]), 143);
    assert!(said.contains("the same with --resume goes on"), "{said}");
    assert_eq!(places(&folder, &["s.jsonl"]), [0, 1, 2]);
    assert_eq!(fs::read_to_string(folder.join("cleaned")).unwrap(), "x\n");
    fs::remove_file(folder.join("stop")).unwrap();
    let (_, said) = ended(&folder, &all("4", &["--resume"]), 0);
    assert!(said.contains("3 runs were there already, 9 were made now"), "{said}");
    assert_eq!(places(&folder, &["s.jsonl"]), (0..12).collect::<Vec<_>>());
    assert_eq!(fs::read_to_string(folder.join("runs")).unwrap().lines().count(), 13);
    let (_, said) = ended(&folder, &all("4", &["--resume", "--seed", "2"]), 2);
    assert!(said.contains("the seed was '1' and is '2' now"), "{said}");
    // More repetitions are no other sweep.
    ended(&folder, &all("5", &["--resume"]), 0);
    assert_eq!(places(&folder, &["s.jsonl"]), (0..15).collect::<Vec<_>>());
    let header = &lines(&folder, "s.jsonl")[0]["sweep"];
    assert_eq!(header["conditions"].as_array().unwrap().len(), 3);
    assert_eq!(header["process_start"]["order"], serde_json::json!([0, 1, 2, 3, 4]), "one in each round");
}

#[test]
fn a_sweep_that_a_failure_ended_goes_on_with_failures_ignored_and_without() {
    let folder = Folder::new().with("bad", "");
    // The sixth run fails, and later ones while there is a file `bad`.
    let script = "echo {n} >> runs; test ! -e bad || test $(wc -l < runs) -lt 6";
    let all = |repeat: &'static str, more: &[&'static str]| {
        let sweep = ["-P", "n=1,2", "-r", repeat, "--warmup", "0", "-o", "s.jsonl"];
        [&sweep[..], more, &["--", "sh", "-c"]].concat()
    };
    let run = |words: Vec<&str>, code| ended(&folder, &[&words[..], &[script]].concat(), code);
    run(all("4", &[]), 125);
    run(all("4", &["--resume", "--ignore-failure"]), 0);
    fs::remove_file(folder.join("bad")).unwrap();
    run(all("5", &["--resume"]), 0);
    let (_, said) = run(all("6", &["--resume", "--ignore-failure"]), 0);
    assert!(said.contains("10 runs were there already, 2 were made now"), "{said}");
    assert_eq!(places(&folder, &["s.jsonl"]), (0..12).collect::<Vec<_>>());
    let codes = lines(&folder, "s.jsonl")
        .into_iter()
        .skip(1)
        .flat_map(|line| line["samples"]["exit_code"].as_array().unwrap().clone());
    let failed = codes.map(|code| code.as_f64().unwrap()).collect::<Vec<_>>();
    assert_eq!((failed.len(), failed.iter().sum::<f64>()), (12, 3.0), "{failed:?}");
}

#[test]
fn a_sweep_of_which_a_file_is_missing_measures_what_starting_takes_for_it() {
    let folder = Folder::new();
    let args = ["-P", "n=1", "-P", "k=x,y", "-r", "3", "--warmup", "0", "-o", "s.jsonl"];
    let command = ["--", "true", "{n}", "{k}"];
    ended(&folder, &[&args[..], &command].concat(), 0);
    fs::remove_file(folder.join("s-k=y.jsonl")).unwrap();
    ended(&folder, &[&args[..], &["--resume"], &command].concat(), 0);
    for file in ["s-k=x.jsonl", "s-k=y.jsonl"] {
        let start = &lines(&folder, file)[0]["sweep"]["process_start"];
        assert_eq!(start["order"], serde_json::json!([0, 1, 2]), "{file}");
        assert_eq!(start["samples"]["time"].as_array().unwrap().len(), 3, "{file}");
    }
}

#[test]
fn runs_end_once_intervals_are_narrow() {
    let folder = Folder::new();
    let (_, said) = ended(&folder, &["--until", "100%", "-r", "40", "-o", "a.jsonl", "--", "true"], 0);
    let kept = places(&folder, &["a.jsonl"]).len();
    assert!((20..=40).contains(&kept), "{kept}");
    assert!(said.contains(&format!("±100% was reached without {} of 40 runs", 40 - kept)), "{said}");
}

#[test]
fn times_are_exported_as_hyperfine_has_them() {
    let folder = Folder::new();
    let args = ["-P", "n=0,3", "-r", "3", "--ignore-failure", "--statistic", "mean", "--export-hyperfine", "h.json"];
    let command = ["--export-markdown", "t.md", "--", "sh", "-c", "exit {n}"];
    let (table, _) = ended(&folder, &[&args[..], &command].concat(), 0);
    assert!(table.contains("3 of 6 runs ended with another exit code than 0"), "{table}");
    let json: Value = serde_json::from_str(&fs::read_to_string(folder.join("h.json")).unwrap()).unwrap();
    let second = &json["results"][1];
    assert_eq!((&second["command"], &second["parameters"]["n"]), (&"sh -c exit 3".into(), &"3".into()));
    assert_eq!(second["exit_codes"], serde_json::json!([3, 3, 3]));
    let times: Vec<f64> = second["times"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
    let mean = times.iter().sum::<f64>() / 3.0;
    assert!((second["mean"].as_f64().unwrap() / mean - 1.0).abs() < 1e-9 && mean < 3600.0, "{second}");
    let table = fs::read_to_string(folder.join("t.md")).unwrap();
    assert!(table.starts_with("| Command | Mean [") && table.contains("\n| `sh -c exit 3` | "), "{table}");
}

#[test]
fn hyperfines_command_lines_work_or_say_what_to_type() {
    let folder = Folder::new();
    let args = ["--runs", "3", "-w", "0", "-i", "--export-json", "h.json", "--export-csv", "h.csv"];
    let (table, _) = ended(&folder, &[&args[..], &["-P", "n=1,2", "--", "sh", "-c", "exit {n}"]].concat(), 0);
    assert!(table.lines().next().is_some_and(|line| line.contains("MEAN") && line.contains("MOST")), "{table}");
    let csv = fs::read_to_string(folder.join("h.csv")).unwrap();
    assert!(csv.starts_with("command,mean,stddev,median,user,system,min,max,parameter_n\nsh -c exit 1,"), "{csv}");
    assert!(csv.lines().count() == 3 && csv.ends_with(",2\n") && folder.join("h.json").exists(), "{csv}");
    for (args, words) in [
        (&["true a", "sort -u b"][..], "\n      perfprop bench -- true a --vs sort -u b"),
        (&["-r", "2", "--", "true | cat"], "\n      perfprop bench -- sh -c 'true | cat'"),
        (&["--", "true a", "--vs", "true b"], "\n      perfprop bench -- true a --vs true b"),
        (&["--min-runs", "5", "--", "true"], "perfprop: there is no --min-runs\n      as many runs as it takes:"),
        (&["-L", "n", "1,2", "--", "true"], "-P NAME=VALUE,VALUE"),
        (&["-P", "n", "1", "10", "true {n}"], "-P NAME=lin:A..B:COUNT"),
    ] {
        let (_, said) = ended(&folder, args, 2);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn an_interrupt_after_a_run_that_failed_is_one() {
    let folder = Folder::new();
    // The command catches the signal and fails before perfprop has it.
    let (_, said) = ended(&folder, &["--warmup", "0", "--", "sh", "-c", "kill -TERM $PPID; exit 1"], 143);
    assert!(said.contains("interrupted: nothing was measured"), "{said}");
}

#[test]
fn commands_run_on_the_cpu_that_was_named() {
    let folder = Folder::new();
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    let cpu = allowed.rsplit([',', '-']).next().unwrap();
    let script = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status > cpu";
    ended(&folder, &["--cpu-affinity", cpu, "-r", "1", "-o", "a.jsonl", "--", "sh", "-c", script], 0);
    assert_eq!(fs::read_to_string(folder.join("cpu")).unwrap().trim(), cpu);
    assert_eq!(lines(&folder, "a.jsonl")[0]["sweep"]["cpu"].to_string(), cpu);
    let (_, said) = ended(&folder, &["--cpu-affinity", "60000", "--", "true"], 2);
    assert!(said.contains("--cpu-affinity 60000: there is no such CPU"), "{said}");
}

#[test]
fn what_starting_a_process_takes_is_told() {
    let folder = Folder::new();
    let (_, said) = ended(&folder, &["-P", "n=1,2", "-r", "3", "-o", "a.jsonl", "--", "true", "{n}"], 0);
    assert!(said.contains("a process that does nothing takes "), "{said}");
    let mut fit = Command::new(env!("CARGO_BIN_EXE_perfprop"));
    let words = ["fit", "a.jsonl", "--model", "affine", "--set", "intercept=1.0us"];
    let fitted = fit.current_dir(&*folder).args(words).output().unwrap();
    let text = String::from_utf8(fitted.stdout).unwrap();
    assert!(fitted.status.success() && text.contains("set   intercept"), "{text}");
}

#[test]
fn what_another_sweep_left_in_the_file_is_kept() {
    let folder = Folder::new();
    for (n, is_told) in [("1", false), ("2", true)] {
        let size = format!("n={n}");
        let (_, said) =
            ended(&folder, &["-P", &size, "-r", "3", "--warmup", "0", "-o", "a.jsonl", "--", "true", "{n}"], 0);
        let words = "'a.jsonl' has another sweep, which is kept as 'a.jsonl.old'";
        assert_eq!(said.contains(words), is_told, "{said}");
    }
    let [now, before] = ["a.jsonl", "a.jsonl.old"].map(|name| fs::read_to_string(folder.join(name)).unwrap());
    assert!(now.contains(r#""runs":{"repeats":3,"warmups":0,"taken":"the median","ignores_failure":false}"#), "{now}");
    assert!(now.contains(r#"{"sizes":{"n":2.0}"#) && before.contains(r#"{"sizes":{"n":1.0}"#), "{now}{before}");
}

#[test]
fn a_folder_is_no_sweep_that_is_kept() {
    let folder = Folder::new();
    fs::create_dir(folder.join("dir")).unwrap();
    let (_, said) = ended(&folder, &["-r", "1", "-o", "dir", "--", "true"], 125);
    assert!(said.contains("cannot write dir: is a directory") && !said.contains("another sweep"), "{said}");
}

#[test]
fn what_can_not_be_written_is_refused_before_anything_runs() {
    let folder = Folder::new();
    let long = format!("N={},x", "y".repeat(300));
    for (args, words) in [
        (&["-P", &long, "-o", "lb.jsonl", "--", "touch", "ran", "{N}"][..], "cannot write lb-N=yyy"),
        (&["--export-markdown", "none/x.md", "--", "touch", "ran"], "cannot write none/x.md"),
        (&["--export-hyperfine", ".", "--", "touch", "ran"], "cannot write .: is a directory"),
    ] {
        let (_, said) = ended(&folder, &[&["-r", "1"], args].concat(), 125);
        assert!(said.contains(words) && !folder.join("ran").exists(), "{said}");
    }
}

#[test]
fn a_run_that_takes_too_long_ends_the_sweep_or_is_left_out() {
    let folder = Folder::new().with("stop", "");
    // The third run hangs while there is a file `stop`.
    let script = "echo >> runs; test -e stop && test $(wc -l < runs) = 3 && exec sleep 600; : {n}";
    let all = |more: &[&'static str]| {
        let sweep = ["-P", "n=1,2", "-r", "2", "--warmup", "0", "-o", "s.jsonl", "--timeout"];
        [&sweep[..], more, &["--", "sh", "-c", script]].concat()
    };
    let (_, said) = ended(&folder, &all(&["300ms"]), 125);
    assert!(said.contains("what was measured until then is kept; the same with --resume goes on"), "{said}");
    let words = "took longer than 300 ms and was ended: give it more with --timeout, or go on without such runs";
    assert!(said.contains(words) && said.contains("a run at n="), "{said}");
    assert_eq!(places(&folder, &["s.jsonl"]), [0, 1]);
    fs::remove_file(folder.join("stop")).unwrap();
    ended(&folder, &all(&["10m", "--resume"]), 0);
    assert_eq!(places(&folder, &["s.jsonl"]), [0, 1, 2, 3]);
    let folder = Folder::new().with("stop", "");
    let (_, said) = ended(&folder, &all(&["300ms", "--ignore-failure"]), 0);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("1 run took longer than 300 ms (--timeout): it was ended, and is in no number"), "{said}");
    assert_eq!(places(&folder, &["s.jsonl"]), [0, 1, 3]);
}

#[test]
fn help_says_what_commands_read_and_when_runs_end() {
    let folder = Folder::new();
    let (help, _) = ended(&folder, &["--help"], 0);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        help.contains("Its standard input is empty (/dev/null)") && help.contains("at most this percentage"),
        "{help}"
    );
}
