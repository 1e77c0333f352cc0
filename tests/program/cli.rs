//! Tests the program as its users start it: each verb, its output, its exit code.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn perfprop(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_perfprop")).args(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A file name of its own for each test.
fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("perfprop-cli-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

/// Whether software events can be counted; a sandbox may forbid even these, and then says why a
/// test is skipped.
fn can_count() -> bool {
    let output = perfprop(&["stat", "-e", "task-clock", "--", "true"]);
    if !output.status.success() {
        eprintln!("skipped: this machine counts no software events: {}", stderr(&output));
    }
    output.status.success()
}

#[test]
fn stat_passes_on_the_exit_status() {
    if !can_count() {
        return;
    }
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        let output = perfprop(&["stat", "-e", "task-clock", "--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}: {}", stderr(&output));
        assert!(stderr(&output).contains("seconds time elapsed"), "{script}");
    }
}

#[test]
fn stat_says_which_signal_ended_the_command_unless_it_was_asked_to() {
    if !can_count() {
        return;
    }
    let output = perfprop(&["stat", "-e", "task-clock", "--", "sh", "-c", "kill -SEGV $$"]);
    assert!(stderr(&output).contains("ended by SIGSEGV (11)"), "{}", stderr(&output));
    let output = perfprop(&["stat", "-e", "task-clock", "--timeout", "50", "--", "sleep", "60"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!stderr(&output).contains("ended by"), "{}", stderr(&output));
}

#[test]
fn a_command_runs_on_after_the_intervals_that_are_printed() {
    if !can_count() {
        return;
    }
    let command = ["--", "sh", "-c", "sleep 0.3; echo done; exit 3"];
    let options = ["stat", "-e", "task-clock", "-I", "20", "-x", ",", "--interval-count", "2"];
    let output = perfprop(&[&options[..], &command].concat());
    assert_eq!((output.status.code(), stdout(&output)), (Some(3), "done\n".into()), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 2, "{}", stderr(&output));
    // The whole machine isn't counted any longer.
    let began = Instant::now();
    perfprop(&["stat", "-a", "-e", "page-faults", "-I", "20", "--interval-count", "2"]);
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_run_that_fails_is_named_and_its_code_is_that_of_all() {
    if !can_count() {
        return;
    }
    let folder = Folder::new();
    let runs = folder.join("runs");
    let script = format!("echo >> {0}; test $(wc -l < {0}) = 2 && exit 5; true", runs.display());
    let output = perfprop(&["stat", "-r", "3", "-e", "page-faults", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    assert!(stderr(&output).contains("run 2 of 3 ended with exit 5"), "{}", stderr(&output));
}

#[test]
fn the_text_of_a_recording_with_stacks_lists_functions() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/orders.jsonl");
    let text = stdout(&perfprop(&["replay", "--print", recording]));
    assert!(text.contains("samples with call stacks") && text.contains("%  sum_orders  orders\n"), "{text}");
}

#[test]
fn stat_takes_perfs_ways_of_writing_options_and_names_what_stands_for_others() {
    if can_count() {
        let output = perfprop(&["stat", "-x", "\\t", "-e", "page-faults", "--", "true"]);
        assert!(stderr(&output).contains("\t\tpage-faults\t"), "{}", stderr(&output));
        let output = perfprop(&["stat", "--json-output", "-e", "page-faults", "--", "true"]);
        assert!(stderr(&output).starts_with('{'), "{}", stderr(&output));
    }
    let output = perfprop(&["stat", "--per-core", "-e", "page-faults", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("-A"), "{}", stderr(&output));
    let output = perfprop(&["stat", "-a", "-G", "no-such-group", "-e", "page-faults", "--", "true"]);
    assert!(stderr(&output).contains("no control group no-such-group"), "{}", stderr(&output));
}

#[test]
fn stat_writes_to_stderr_a_file_or_stdout() {
    if !can_count() {
        return;
    }
    let file = scratch("stat.txt");
    let to_stdout = perfprop(&["stat", "-e", "page-faults", "-o", "-", "--", "true"]);
    assert!(stdout(&to_stdout).contains("page-faults") && stderr(&to_stdout).is_empty());
    let to_file = perfprop(&["stat", "-e", "page-faults", "-o", file.to_str().unwrap(), "--", "echo", "mine"]);
    assert_eq!(stdout(&to_file), "mine\n");
    assert!(fs::read_to_string(&file).unwrap().contains("page-faults"));
    fs::remove_file(file).unwrap();
}

#[test]
fn stat_json_has_real_numbers_and_null_for_what_is_missing() {
    if !can_count() {
        return;
    }
    // No PMU has this type, so no machine counts it.
    let output = perfprop(&["stat", "-j", "-e", "page-faults,4242424:1", "--", "true"]);
    let lines: Vec<Value> = stderr(&output).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(lines.len(), 2, "{}", stderr(&output));
    assert!(lines[0]["counter-value"].as_f64().unwrap() > 0.0);
    assert_eq!((&lines[0]["event"], &lines[0]["status"]), (&"page-faults".into(), &"counted".into()));
    assert_eq!((&lines[1]["counter-value"], &lines[1]["status"]), (&Value::Null, &"not supported".into()));
}

#[test]
fn stat_repeats_and_prints_intervals() {
    if !can_count() {
        return;
    }
    let repeated = stderr(&perfprop(&["stat", "-r", "3", "-e", "page-faults", "--", "true"]));
    assert!(
        repeated.contains("(3 runs")
            && repeated.contains("(σ ")
            && repeated.contains("between runs)")
            && !repeated.contains("multiplexing"),
        "{repeated}"
    );
    let intervals = stderr(&perfprop(&["stat", "-I", "20", "-e", "task-clock", "--", "sleep", "0.1"]));
    assert!(intervals.lines().filter(|line| line.contains("task-clock")).count() >= 3, "{intervals}");
    assert!(intervals.starts_with('#'), "{intervals}");
}

#[test]
fn top_without_a_terminal_says_so_and_prints_text() {
    if !can_count() {
        return;
    }
    let output = perfprop(&["top", "-I", "50", "-n", "2", "-e", "task-clock,page-faults", "--", "sleep", "30"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output).matches("EVENT").count(), 2);
    let output = perfprop(&["top", "-e", "page-faults", "--", "sh", "-c", "printf 'hid%s\\n' den; exit 3"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("E09") && stderr(&output).contains("hidden"));
    assert!(stdout(&output).contains("page-faults") && !stdout(&output).contains("hidden"));
    assert!(!stdout(&output).contains('\x1b'));
}

#[test]
fn a_recording_replays_to_the_same_numbers() {
    if !can_count() {
        return;
    }
    let file = scratch("run.jsonl");
    let name = file.to_str().unwrap();
    let script = "for i in 1 2 3 4 5; do ls / > /dev/null; done; exit 4";
    let output = perfprop(&["record", "-I", "5", "-e", "task-clock,page-faults", "-o", name, "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["type"], &lines.last().unwrap()["type"]), (&"header".into(), &"end".into()));
    let faults = lines.last().unwrap()["totals"][1]["count"].as_u64().unwrap();
    let seconds = lines.last().unwrap()["at_ns"].as_u64().unwrap() as f64 / 1e9;
    let replayed = perfprop(&["replay", "--speed", "0", "-I", "5", name]);
    let again = perfprop(&["replay", "--speed", "0", "-I", "5", name]);
    assert_eq!(replayed.stdout, again.stdout);
    let text = stdout(&replayed);
    let last = text.lines().rfind(|line| line.starts_with("page-faults")).unwrap();
    let mean = last.split_whitespace().nth(2).unwrap();
    let rate: f64 = mean.trim_end_matches('k').parse().unwrap();
    let rate = if mean.ends_with('k') { rate * 1000.0 } else { rate };
    // Three digits, and a moment between the last reading and the end.
    let most = 0.006 + 3e-4 / seconds;
    assert!((rate / (faults as f64 / seconds) - 1.0).abs() < most, "{last}: {faults} in {seconds}");
    // All of it has all that was counted.
    let report = stdout(&perfprop(&["replay", name]));
    let line = report.lines().find(|line| line.contains(" page-faults ")).unwrap();
    assert_eq!(line.split_whitespace().next().unwrap().replace(',', ""), faults.to_string(), "{report}");
    fs::remove_file(file).unwrap();
}

#[test]
fn repeated_runs_are_recorded_one_by_one() {
    if !can_count() {
        return;
    }
    let folder = scratch("runs");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("x.jsonl");
    // Every run adds a line, and the second one fails.
    let script = format!("cd {}; echo >> runs; [ $(wc -l < runs) -ne 2 ] || exit 3", folder.display());
    let args = ["record", "-r", "3", "-e", "task-clock", "-o", file.to_str().unwrap(), "--", "sh", "-c", &script];
    let output = perfprop(&args);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("x-2.jsonl ended with exit 3"), "{}", stderr(&output));
    assert!(!file.exists());
    for (run, code) in [(1, 0), (2, 3), (3, 0)] {
        let recording = fs::File::open(folder.join(format!("x-{run}.jsonl"))).unwrap();
        let end = perfprop::recording::read(std::io::BufReader::new(recording)).unwrap().end.unwrap();
        assert_eq!(end.exit, Some(perfprop::sources::command::Exit::Code(code)));
    }
    let [x1, x2, x3] = [1, 2, 3].map(|run| folder.join(format!("x-{run}.jsonl")).to_str().unwrap().to_owned());
    let [x1, x2, x3] = [&x1, &x2, &x3].map(String::as_str);
    let compared = stdout(&perfprop(&["replay", "--print", "--a", x1, x2, "--b", x3]));
    assert!(
        compared.contains("2 and 1 runs: too few to tell; 2 comparisons need 4 runs of each: record -r 4"),
        "{compared}"
    );
    let one_each = stdout(&perfprop(&["replay", "--print", x1, x3]));
    assert!(one_each.contains("one run each: too few to tell"), "{one_each}");
    assert!(!one_each.contains("higher") && !one_each.contains("lower"), "{one_each}");
    let mistakes: [(&[&str], &str); 3] = [
        (&["replay", "--a", x1, x1, "--b", x3], "is given twice; a recording counts for one run"),
        (&["replay", "--a", x1], "--b <FILE>"),
        (&["replay", x1, x2, x3], "--a FILE FILE ... --b FILE FILE ..."),
    ];
    for (args, words) in mistakes {
        let output = perfprop(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
    }
    // What would be read with them by a pattern is reported.
    let output = perfprop(&["record", "-r", "2", "-e", "task-clock", "-o", file.to_str().unwrap(), "--", "true"]);
    assert!(stderr(&output).contains("x-3.jsonl is of an earlier series"), "{}", stderr(&output));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_existing_recording_is_kept() {
    if !can_count() {
        return;
    }
    let file = scratch("kept.jsonl");
    let old = file.with_extension("jsonl.old");
    fs::write(&file, "precious\n").unwrap();
    perfprop(&["record", "-e", "task-clock", "-o", file.to_str().unwrap(), "--", "true"]);
    assert_eq!(fs::read_to_string(&old).unwrap(), "precious\n");
    fs::remove_file(file).unwrap();
    fs::remove_file(old).unwrap();
}

#[test]
fn list_finds_events_and_says_when_it_does_not() {
    let output = perfprop(&["list", "page-faults"]);
    assert!(output.status.success());
    assert!(stdout(&output).contains("page-faults OR faults"), "{}", stdout(&output));
    let json = stdout(&perfprop(&["list", "-j", "L1_MISSES"]));
    let line: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!((&line["name"], &line["software"]), (&"L1_MISSES".into(), &false.into()));
    let names = stdout(&perfprop(&["list", "--names", "L1_MISSES"]));
    assert!(names.lines().any(|name| name == "L1_MISSES"), "{names}");
    let nothing = perfprop(&["list", "L1_MISES"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(stderr(&nothing).contains("L1_MISSES"), "{}", stderr(&nothing));
}

/// Text, names and JSON are of the same events and metrics. Of the model none can be counted where valgrind isn't found.
#[test]
fn all_lists_leave_out_what_can_not_be_counted() {
    let list = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
        stdout(&command.args(["list", "--source", "emulate"]).args(args).env("PATH", "/nonexistent").output().unwrap())
    };
    let json =
        |args: &[&str]| -> Vec<Value> { list(args).lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let [here, all] = [json(&["-j"]), json(&["-j", "--all"])];
    let is_refused = |line: &&Value| line["available"] == "no";
    let missing = all.iter().filter(is_refused).count();
    assert_eq!((here.iter().filter(is_refused).count(), here.len() + missing), (0, all.len()));
    let rest = format!("\n{missing} more that can't be counted here: perfprop list --all");
    assert!(missing > 0 && list(&[]).contains(&rest), "{rest}");
    for (args, lines) in [(&["--names"][..], &here), (&["--names", "-a"], &all)] {
        let names: BTreeSet<_> = list(args).lines().map(str::to_owned).collect();
        assert_eq!(names, lines.iter().flat_map(listed_names).collect(), "{args:?}");
    }
    // Who names one is told why it can't be counted.
    assert_eq!(json(&["-j", "I1mr"]), all.iter().filter(|line| line["name"] == "I1mr").cloned().collect::<Vec<_>>());
}

/// The names that an event of a list has.
fn listed_names(line: &Value) -> Vec<String> {
    let texts = |key: &str| line[key].as_array().cloned().unwrap_or_default();
    let name = line["name"].as_str().unwrap();
    let aliases = texts("aliases").into_iter().map(|alias| alias.as_str().unwrap().to_owned());
    let parts = texts("umasks").into_iter().map(|part| format!("{name}:{}", part["name"].as_str().unwrap()));
    [name.to_owned()].into_iter().chain(aliases).chain(parts).collect()
}

#[test]
fn check_says_what_can_be_counted_and_exits_by_it() {
    let counts = can_count();
    let output = perfprop(&["check", "-j"]);
    assert_eq!(output.status.success(), counts, "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&report["version"], &report["ok"]), (&1.into(), &counts.into()));
    let facts = report["facts"].as_array().unwrap();
    for name in ["kernel", "perf_event_paranoid", "seccomp", "software", "PMUs", "counters", "tracefs", "descriptors"] {
        assert!(facts.iter().any(|fact| fact["name"] == name), "{name}");
    }
    let text = stdout(&perfprop(&["check"]));
    // How many counters libpfm's tables have room for says nothing of the machine.
    assert!(!text.contains("fixed counters"), "{text}");
    assert!(text.contains("perf_event_paranoid") && !text.contains('\x1b'), "{text}");
    if counts {
        let output = perfprop(&["check", "-e", "task-clock,page-faults"]);
        assert!(output.status.success() && stdout(&output).contains("2 of 2 events"), "{}", stdout(&output));
    }
    let output = perfprop(&["check", "-e", "task-clock,L1_MISES"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("did you mean L1_MISSES?"), "{}", stdout(&output));
}

#[test]
fn check_looks_through_relation_files() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/relations");
    let (good, bad) = (format!("{folder}/good/design.json"), format!("{folder}/bad/second-plus.json"));
    let output = perfprop(&["check", &good]);
    assert!(output.status.success() && stdout(&output).contains("2 relations are right"), "{}", stdout(&output));
    let output = perfprop(&["check", &good, &bad, "/nonexistent.json"]);
    assert_eq!(output.status.code(), Some(1));
    for words in ["second-plus.json:", "^ second '+' here", "perfprop: E07 relation file /nonexistent.json"] {
        assert!(stdout(&output).contains(words), "{words} in {}", stdout(&output));
    }
    let output = perfprop(&["check", "-j", &bad]);
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let file = &report["relation-files"][0];
    assert_eq!((&file["ok"], file["diagnostics"][0]["line"].is_u64()), (&false.into(), true), "{file}");
}

#[test]
fn check_validates_against_a_truth_that_is_counted_beside() {
    if !can_count() {
        eprintln!("skipped: nothing can be counted here");
        return;
    }
    let command = ["--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do ls /usr > /dev/null; done"];
    let arguments =
        ["check", "--validate", "-j", "-r", "3", "--counters", "1", "-e", "page-faults:u,minor-faults:u,task-clock"];
    let output = perfprop(&[&arguments[..], &command].concat());
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let validation = &report["validation"];
    let conclusion = ["holds", "fails", "unknown"].iter().position(|word| validation["conclusion"] == *word);
    assert_eq!(output.status.code(), conclusion.map(|code| i32::try_from(code).unwrap()), "{validation}");
    assert_eq!((&validation["runs"], &validation["truth"]), (&3.into(), &"same run".into()));
    let events = validation["events"].as_array().unwrap();
    assert_eq!(events.len(), 3);
    for event in events {
        let totals = &event["totals"];
        assert!(event["truth"].as_f64().unwrap() > 0.0 && totals["unclear"] == 0, "{event}");
        assert!(totals["held"].as_u64().unwrap() + totals["missed"].as_u64().unwrap() <= 3, "{event}");
    }
    let text = stdout(&perfprop(
        &[&["check", "--validate", "-r", "2", "--counters", "1", "-e", "page-faults:u,task-clock"][..], &command]
            .concat(),
    ));
    assert!(text.contains("counted beside, in the same runs") && text.contains("\nVerdict\n"), "{text}");
}

#[test]
fn check_says_where_there_is_nothing_to_validate() {
    if can_count() {
        let output = perfprop(&["check", "--validate", "-e", "page-faults:u", "--", "true"]);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("no event takes turns: page-faults:u: the kernel counts these all the time"), "{text}");
        let output = perfprop(&["check", "--validate", "-j", "-e", "page-faults:u", "--", "true"]);
        let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(report["validation"]["conclusion"], "unknown");
    }
    for (arguments, words) in [
        (&["check", "--counters", "2"][..], "--counters is about events"),
        (&["check", "--estimator", "gp"], "--estimator is about counting"),
        (&["check", "--schedule", "user"], "--schedule or --mux is about counting"),
        (&["check", "--validate", "--source", "emulate"], "check --validate --source emulate --counters 2"),
        (&["check", "--validate", "-r", "1"], "a whole number from 2 on"),
        (&["check", "-r", "3"], "--validate"),
        (&["check", "--validate", "relations.json"], "cannot be used with"),
    ] {
        let output = perfprop(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
    let output = perfprop(&["check", "--validate", "--", "/nonexistent/command"]);
    assert_eq!((output.status.code(), stderr(&output).contains("E06")), (Some(127), true), "{}", stderr(&output));
}

#[test]
fn check_explains_codes() {
    let text = stdout(&perfprop(&["check", "--explain", "e04"]));
    assert!(text.starts_with("E04  ") && text.contains("nmi_watchdog"), "{text}");
    assert!(stdout(&perfprop(&["check", "--explain"])).lines().count() >= 21);
    let output = perfprop(&["check", "--explain", "E99"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("'E99'") && stderr(&output).contains("E12"), "{}", stderr(&output));
}

/// perfprop as the user nobody, where that can be had.
fn as_nobody(args: &[&str]) -> Option<Output> {
    // The folder of the build may be closed to others.
    let program = scratch(&format!("nobody-{:?}", std::thread::current().id()));
    fs::copy(env!("CARGO_BIN_EXE_perfprop"), &program).unwrap();
    let privileges = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
    let mut command = Command::new("setpriv");
    command.args(privileges).arg(&program).args(args).stdin(Stdio::null());
    let mut output = command.output();
    // A program that another test starts at this moment holds the copy open for writing until it is executed.
    while output.as_ref().is_ok_and(|output| stderr(output).contains("Text file busy")) {
        std::thread::sleep(std::time::Duration::from_millis(10));
        output = command.output();
    }
    fs::remove_file(program).unwrap();
    let output = output.ok().filter(|output| !stderr(output).starts_with("setpriv"));
    if output.is_none() {
        eprintln!("skipped: this user can't become another one with setpriv");
    }
    output
}

#[test]
fn a_plain_user_is_told_the_layer_that_refuses() {
    let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim() != "2" || !can_count() {
        eprintln!("skipped: perf_event_paranoid is {}, and not 2", paranoid.trim());
        return;
    }
    let cases: [(&[&str], &[&str]); 3] = [
        (&["-e", "context-switches", "--", "true"], &["E01", "perf_event_paranoid=2, EACCES", "perf_event_paranoid=1"]),
        (
            &["-e", "page-faults", "-a", "--", "true"],
            &[
                "E01",
                "of a command that perfprop starts it works",
                "need no right:  perfprop top",
                "perf_event_paranoid=0",
            ],
        ),
        (&["-e", "page-faults", "-p", "1"], &["E12", "pid 1", "will not help"]),
    ];
    for (args, words) in cases {
        let Some(output) = as_nobody(&[&["stat"], args].concat()) else { return };
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{args:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{args:?}: {text}");
    }
    let Some(output) = as_nobody(&["check", "-e", "page-faults:u"]) else { return };
    assert!(output.status.success(), "{}", stdout(&output));
}

#[test]
fn a_plain_user_sees_what_proc_tells_of_the_machine() {
    let Some(machine) = as_nobody(&["stat", "-a", "-e", "page-faults", "--timeout", "1"]) else { return };
    if machine.status.success() {
        eprintln!("skipped: every user may count events of the whole machine here");
        return;
    }
    assert!(stderr(&machine).contains("E01"), "{}", stderr(&machine));
    let top = |args: &[&str]| as_nobody(&[&["top", "--batch", "-n", "1", "-I", "50"], args].concat()).unwrap();
    let output = top(&[]);
    let (text, notes) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{notes}");
    assert!(text.contains("user_time") && text.contains("system_time") && !text.contains("not permitted"), "{text}");
    assert!(notes.contains("E01 uid 65534 may not count the machine"), "{notes}");
    // What was asked for is counted, or it is an error.
    for args in [&["-a"] as &[&str], &["-e", "page-faults"], &["-C", "0"], &["-g"]] {
        let output = top(args);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(125), ""), "{args:?}: {}", stderr(&output));
    }
    // The level that allows it, whatever it is now, and what needs none.
    let stacks = stderr(&top(&["-g"]));
    let words = ["E14", "perf_event_paranoid=0", "need no right:  perfprop top"];
    assert!(words.iter().all(|word| stacks.contains(word)), "{stacks}");
}

/// What a shell runs before a program, and why the kernel takes the counters off that.
const HIDDEN: [(u32, &str); 2] = [(0o4755, "setuid"), (0o711, "not to be read")];

#[test]
fn a_program_with_rights_of_its_own_is_not_counted_and_not_0() {
    let program = scratch("hidden");
    fs::copy("/bin/sh", &program).unwrap();
    let path = program.to_str().unwrap().to_owned();
    for (mode, why) in HIDDEN {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let count = |form: &[&str], command: &[&str]| {
            as_nobody(&[&["stat", "-e", "task-clock:u,page-faults:u"], form, &["--"], command].concat())
        };
        let Some(plain) = count(&[], &["/bin/sh", "-c", busy]) else { break };
        if !plain.status.success() {
            eprintln!("skipped: a plain user can't count anything here: {}", stderr(&plain));
            break;
        }
        assert!(!stderr(&plain).contains("W11"), "{}", stderr(&plain));
        let text = stderr(&count(&[], &[&path, "-c", busy]).unwrap());
        if mode == 0o4755 && !text.contains("W11") && is_nosuid(&program) {
            eprintln!("skipped: rights of programs have no meaning in {}", std::env::temp_dir().display());
            continue;
        }
        assert!(text.contains("W11 not counted from its exec on") && text.contains("setuid"), "{why}: {text}");
        assert!(text.contains("<not counted>") && !text.contains("exact"), "{why}: {text}");
        let json = stderr(&count(&["-j"], &[&path, "-c", busy]).unwrap());
        assert!(json.contains("\"status\":\"not counted from exec on\""), "{why}: {json}");
        // What was counted before the exec stays.
        let before = format!("{busy}; exec {path} -c '{busy}'");
        let text = stderr(&count(&["-I", "20"], &["/bin/sh", "-c", &before]).unwrap());
        assert!(text.contains("W11"), "{why}: {text}");
    }
    let _ = fs::remove_file(&program);
}

#[test]
fn roots_program_that_is_setuid_to_another_user_is_not_counted_and_not_0() {
    let program = scratch("hidden-from-root");
    fs::copy("/bin/sleep", &program).unwrap();
    if std::os::unix::fs::chown(&program, Some(65534), None).is_err() || !can_count() || is_nosuid(&program) {
        eprintln!("skipped: only root can count and make a program that is setuid to another user");
        let _ = fs::remove_file(&program);
        return;
    }
    // It is seen at once: readings would tell it later than such a program ends.
    for (mode, is_counted) in [(0o4755, false), (0o2755, true), (0o755, true)] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let args = ["stat", "-e", "page-faults", "--", program.to_str().unwrap(), "0.2"];
        let text = stderr(&perfprop(&args));
        assert_eq!((text.contains("exact"), text.contains("W11")), (is_counted, !is_counted), "{mode:o}: {text}");
    }
    let _ = fs::remove_file(&program);
}

#[test]
fn a_program_that_may_not_be_read_in_a_user_namespace_is_not_0() {
    let program = scratch("hidden-in-namespace");
    fs::copy("/bin/sleep", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o711)).unwrap();
    // As in a container without root: there nobody is root.
    let inside = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "unshare", "-r"];
    let own = scratch("perfprop-in-namespace");
    fs::copy(env!("CARGO_BIN_EXE_perfprop"), &own).unwrap();
    let count = |path: &Path| {
        let mut command = Command::new(inside[0]);
        command.args(&inside[1..]).arg(&own).args(["stat", "-e", "page-faults:u", "--"]).arg(path).arg("0.2");
        command.output().map(|output| stderr(&output)).unwrap_or_default()
    };
    let plain = count(Path::new("/bin/sleep"));
    if plain.contains("exact") {
        assert!(!plain.contains("W11"), "{plain}");
        let text = count(&program);
        assert!(text.contains("W11") && text.contains("<not counted>"), "{text}");
    } else {
        eprintln!("skipped: nothing is counted in a user namespace here: {plain}");
    }
    let _ = (fs::remove_file(&program), fs::remove_file(&own));
}

#[test]
fn a_process_that_proc_hides_is_not_said_to_be_missing() {
    let own = scratch("perfprop-hidepid");
    fs::copy(env!("CARGO_BIN_EXE_perfprop"), &own).unwrap();
    let script = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups \
                  --inh-caps=-all \"$@\"";
    let text = |target: [&str; 2]| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(&own).args(["stat", "-e", "page-faults"]).args(target);
        command.output().map(|output| stderr(&output)).unwrap_or_default()
    };
    if text(["-p", "2147483647"]).contains("does not exist") {
        for target in [["-p", "1"], ["-t", "1"]] {
            let text = text(target);
            let words = ["E12 1 is another user's, which /proc doesn't show", "sudo "];
            assert!(words.iter().all(|words| text.contains(words)), "{target:?}: {text}");
        }
    } else {
        eprintln!("skipped: this user can't mount a /proc that hides processes");
    }
    let _ = fs::remove_file(&own);
}

#[test]
fn a_home_that_is_no_folder_has_no_configuration() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
    command.args(["top", "--batch", "-e", "duration_time", "--", "true"]).stdin(Stdio::null());
    let output = command.env("HOME", "/dev/null").env_remove("XDG_CONFIG_HOME").output().unwrap();
    assert!(output.status.success() && stdout(&output).contains("duration_time"), "{}", stderr(&output));
}

#[test]
fn a_file_that_cannot_be_made_is_said_to_go_elsewhere() {
    let Some(output) = as_nobody(&["record", "-e", "duration_time", "-o", "/perfprop-test.jsonl", "--", "true"]) else {
        return;
    };
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(text.contains("uid 65534 can make no file in /; give one elsewhere:  -o FILE"), "{text}");
}

#[test]
fn a_child_with_rights_of_its_own_is_missed_once_the_command_has_ended() {
    let program = scratch("hidden-child");
    fs::copy("/bin/sh", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o711)).unwrap();
    let path = program.to_str().unwrap().to_owned();
    // Half a second or so: more than is told at least, on any CPU.
    let busy = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let (child, plain) = (format!("{path} -c '{busy}'; true"), format!("/bin/sh -c '{busy}'; true"));
    let count = |form: &[&str], script: &str| {
        let command = ["--", "/bin/sh", "-c", script];
        as_nobody(&[&["stat", "-e", "page-faults:u,duration_time"], form, &command].concat())
    };
    let Some(counted) = count(&[], &plain) else { return };
    if !counted.status.success() {
        eprintln!("skipped: a plain user can't count anything here: {}", stderr(&counted));
        return;
    }
    assert!(!stderr(&counted).contains("W13") && stderr(&counted).contains("exact"), "{}", stderr(&counted));
    let text = stderr(&count(&[], &child).unwrap());
    assert!(text.contains("W13 not counted: ") && text.contains("setuid"), "{text}");
    let line = text.lines().find(|line| line.contains("page-faults:u")).unwrap();
    assert!(line.contains("±?") && !line.contains("exact"), "{text}");
    let json = stderr(&count(&["-j"], &child).unwrap());
    // What is said in a line isn't said once more between the lines.
    assert!(json.contains("\"status\":\"counted without a child\""), "{json}");
    assert!(json.lines().all(|line| line.starts_with('{')), "{json}");
    // Blocks of text that were printed before aren't the last word.
    let command = ["--", "/bin/sh", "-c", &child];
    let batch = as_nobody(&[&["top", "--batch", "-e", "page-faults:u"][..], &command].concat()).unwrap();
    let last = stdout(&batch).lines().rfind(|line| line.contains("page-faults:u")).unwrap_or_default().to_owned();
    assert!(last.contains("±?"), "{}", stdout(&batch));
    // Nothing is missed where children weren't to be counted.
    let text = stderr(&count(&["-i"], &child).unwrap());
    assert!(!text.contains("W13"), "{text}");
    let _ = fs::remove_file(&program);
}

/// Whether the file system of a file knows no rights of programs.
fn is_nosuid(file: &Path) -> bool {
    nix::sys::statvfs::statvfs(file).is_ok_and(|system| system.flags().contains(nix::sys::statvfs::FsFlags::ST_NOSUID))
}

#[test]
fn a_thread_that_has_ended_does_not_refuse_the_others() {
    if !can_count() {
        return;
    }
    let mut ended = Command::new("true").spawn().unwrap();
    let (mine, gone) = (std::process::id().to_string(), ended.id().to_string());
    ended.wait().unwrap();
    let both = format!("{gone},{mine}");
    let output = perfprop(&["stat", "-e", "task-clock", "-t", &both, "--", "true"]);
    assert!(
        output.status.success() && stderr(&output).contains(&format!("ended: threads {gone}")),
        "{}",
        stderr(&output)
    );
    let output = perfprop(&["stat", "--per-thread", "-e", "task-clock,page-faults", "-t", &both, "--", "true"]);
    let text = stderr(&output);
    let of_gone: Vec<_> = text.lines().filter(|line| line.starts_with(&format!("{gone} "))).collect();
    assert!(of_gone.len() == 2 && of_gone.iter().all(|line| line.contains("<gone>")), "{text}");
    assert!(text.contains("1 thread had ended") && text.contains(&format!("-{mine} ")), "{text}");
    let alone = perfprop(&["stat", "-e", "task-clock", "-t", &gone, "--", "true"]);
    let words = [format!("thread {gone} does not exist"), format!("in place of -t {gone}")];
    assert_eq!(alone.status.code(), Some(125), "{}", stderr(&alone));
    assert!(words.iter().all(|words| stderr(&alone).contains(words)), "{}", stderr(&alone));
}

#[test]
fn standard_output_that_is_full_or_closed_is_an_error() {
    for args in [&["--help"][..], &["stat", "-h"], &["--version"], &["man"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_perfprop")).args(args).stdout(full).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(125), "{args:?}: {said}");
        assert!(said.contains("cannot write standard output: No space left on device"), "{args:?}: {said}");
    }
    let ran = scratch("ran");
    let command = format!("{} record -q -o - -- touch {} >&-", env!("CARGO_BIN_EXE_perfprop"), ran.display());
    let output = Command::new("sh").arg("-c").arg(command).output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write standard output: it is closed"), "{}", stderr(&output));
    assert!(!ran.exists());
}

#[test]
fn list_into_a_closed_pipe_is_quiet() {
    let program = env!("CARGO_BIN_EXE_perfprop");
    let output = Command::new("sh").args(["-c", &format!("{program} list | head -n 1")]).output().unwrap();
    assert!(output.status.success());
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_closed_pipe_does_not_end_what_is_measured() {
    let program = env!("CARGO_BIN_EXE_perfprop");
    // The reader leaves before or after something was written.
    for (verb, readers) in [
        ("stat -I 20 -o - -e duration_time", &["true", "head -n 1"][..]),
        ("stat -j -o - -e duration_time", &["true"]),
        ("record -q -o - -e duration_time", &["true", "head -n 1"]),
    ] {
        let [ran, left] = ["ran_on", "reader_left"].map(scratch);
        for reader in readers {
            // The command ends after the reader has left and something was written since.
            let (ran_on, gone) = (ran.display(), left.display());
            let wait = format!("while ! test -e {gone}; do sleep 0.01; done; sleep 0.2; touch {ran_on}; exit 9");
            let line = format!(
                "{{ {program} {verb} -- sh -c '{wait}'; echo left=$? >&2; }} | {{ {reader}; exec <&-; touch {gone}; }}"
            );
            let output = Command::new("sh").args(["-c", &line]).output().unwrap();
            let told = stderr(&output);
            assert_eq!((ran.exists(), told.trim_end()), (true, "left=141"), "{verb} {reader}");
            [&ran, &left].iter().for_each(|file| std::fs::remove_file(file).unwrap());
        }
    }
}

#[test]
fn a_file_that_is_read_is_not_written_over() {
    let folder = scratch("own_input");
    std::fs::create_dir_all(&folder).unwrap();
    let [relations, times] = ["r.json", "t.csv"].map(|name| folder.join(name).display().to_string());
    std::fs::write(&relations, "[]").unwrap();
    std::fs::write(&times, "n,time\n1,2\n2,4\n3,6\n").unwrap();
    for args in [
        &["stat", "--relations", &relations, "-o", &relations, "--", "true"][..],
        &["fit", &times, "--model", "a*n", "-o", &times],
    ] {
        let output = perfprop(args);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("is what is read: name another file"), "{}", stderr(&output));
    }
    assert!(std::fs::read_to_string(&times).unwrap().starts_with("n,time"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_misspelt_verb_suggests_none_that_is_hidden() {
    let text = stderr(&perfprop(&["sta"]));
    assert!(text.contains("'stat'") && !text.contains("estimate"), "{text}");
}

#[test]
fn what_is_not_utf8_is_named() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let odd = OsStr::from_bytes(b"a\xff");
    let said = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let program = || Command::new(env!("CARGO_BIN_EXE_perfprop"));
    let text = said(program().args(["replay", "x.jsonl"]).env("PERFPROP_THEME", odd));
    assert!(text.contains("the variable PERFPROP_THEME is not UTF-8"), "{text}");
    let text = said(program().args(["replay", "x.jsonl", "--theme"]).arg(odd));
    assert!(text.starts_with(r"perfprop: 'a\xff' is not UTF-8"), "{text}");
    let text = said(program().args(["bench", "--", "true"]).arg(odd));
    assert!(text.contains(r"'a\xff' is not UTF-8, and bench writes commands to files as text"), "{text}");
}

#[test]
fn completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&perfprop(&["completions", shell])).contains("perfprop"), "{shell}");
    }
    assert!(stdout(&perfprop(&["man"])).contains(".TH perfprop"));
    assert!(stdout(&perfprop(&["man", "stat"])).contains(".TH perfprop-stat"));
    assert_eq!(perfprop(&["man", "nosuch"]).status.code(), Some(2));
    let pages = [&["man", "history", "run"][..], &["man", "history-run"]].map(|args| stdout(&perfprop(args)));
    assert!(pages[0] == pages[1] && pages[0].contains(".TH perfprop-history-run"), "{}", pages[0]);
}

/// Arguments, exit code, and what the message must contain.
type Mistake = (&'static [&'static str], i32, &'static [&'static str]);

#[test]
fn mistakes_say_what_where_why_and_what_to_try() {
    const MISTAKES: &[Mistake] = &[
        (&["stat", "-e", "L1_MISES", "--", "true"], 2, &["E03", "'L1_MISES'", "position 1", "did you mean L1_MISSES?"]),
        (
            &["stat", "-e", "page-faults", "--", "./no-such-program"],
            127,
            &["E06", "command not found", "nothing was measured"],
        ),
        (&["stat", "-e", "page-faults", "--", "/etc/passwd"], 126, &["E06", "permission denied"]),
        (&["stat", "-e", "page-faults", "-p", "2147483646"], 125, &["E11", "2147483646", "ESRCH"]),
        (&["stat", "-e", "page-faults"], 2, &["nothing to measure", "-p PID"]),
        (&["stat", "-e", "page-faults", "-p", "1", "-a", "--", "true"], 2, &["--pid", "--all-cpus"]),
        (
            &["stat", "-e", "page-faults", "--relations", "/nonexistent.json", "--", "true"],
            2,
            &["E07", "/nonexistent.json"],
        ),
        (&["replay", "/nonexistent.jsonl"], 1, &["/nonexistent.jsonl"]),
        (&["replay", "/etc/passwd"], 1, &["neither a recording nor"]),
        (&["replay", "/etc/passwd", "--screen", "events"], 1, &["neither a recording nor"]),
        (&["replay", "/dev/null", "--screen", "events"], 1, &["it is empty"]),
        (&["record", "-e", "page-faults", "-o", "/nonexistent/x", "--", "true"], 125, &["cannot write /nonexistent/x"]),
        (&["record", "-r", "2", "-e", "page-faults", "-p", "1"], 2, &["-r repeats a command", "there is none"]),
        (
            &["record", "-r", "2", "-e", "page-faults", "-o", "-", "--", "true"],
            2,
            &["a file for each run", "-o x.jsonl"],
        ),
        (&["top", "--screen", "compare", "--", "true"], 2, &["Compare needs two recordings"]),
        (&["top", "--screen", "source", "--", "true"], 2, &["source is opened from the screen profile"]),
        (&["demo", "--screen", "profile"], 2, &["takes no --screen"]),
        (&["top", "-I", "0", "--", "true"], 2, &["--interval", "a whole number from 1 to 3600000"]),
    ];
    for (args, code, words) in MISTAKES {
        let output = perfprop(args);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {text}");
        assert!(words.iter().all(|word| text.contains(word)), "{args:?}: {text}");
    }
}

#[test]
fn a_recording_in_place_of_a_relation_file_is_one_mistake() {
    let output = perfprop(&["check", "tests/stands-out/page-faults.jsonl"]);
    let text = stdout(&output);
    assert!(text.contains(":1:1: this is a recording") && text.contains("opened by perfprop replay"), "{text}");
    assert_eq!((output.status.code(), text.matches("E07").count()), (Some(1), 1), "{text}");
}

#[test]
fn a_damaged_line_of_a_recording_says_how_to_see_what_is_before_it() {
    let file = scratch("damaged.jsonl");
    let recording = fs::read_to_string("tests/stands-out/page-faults.jsonl").unwrap();
    let mut lines: Vec<_> = recording.lines().collect();
    lines[4] = "{\"type\": }";
    fs::write(&file, lines.join("\n")).unwrap();
    let name = file.to_str().unwrap();
    let output = perfprop(&["replay", name]);
    let wanted = format!(
        "perfprop: {name}: line 5: column 10: expected value\n      what stands before it:  head -n 4 {name} | perfprop replay -\n"
    );
    assert_eq!((output.status.code(), stderr(&output)), (Some(1), wanted));
    fs::remove_file(file).unwrap();
}

#[test]
fn a_typing_error_in_a_command_finds_the_program_beside_it() {
    let folder = scratch("folder");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("prog");
    fs::copy("/bin/true", &program).unwrap();
    let output = perfprop(&["stat", "-e", "page-faults", "--", folder.join("porg").to_str().unwrap()]);
    assert!(stderr(&output).contains(&format!("did you mean {}?", program.display())), "{}", stderr(&output));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_wrong_relation_stops_everything_unless_told_otherwise() {
    let file = scratch("wrong.json");
    fs::write(&file, "[{ \"id\": \"R1\", \"relation\": \"page-faults = minor-faults + + major-faults\" },\n {\"relation\": \"page-faults = minor-faults\"}]\n").unwrap();
    let name = file.to_str().unwrap();
    let marker = scratch("marker");
    let touch = format!("touch {}", marker.display());
    let output = perfprop(&["stat", "-e", "page-faults,minor-faults", "--relations", name, "--", "sh", "-c", &touch]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(!marker.exists(), "the command must not have run");
    for words in ["E07", ":1:", "^", "1 other relation", "--relations-lenient"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    if can_count() {
        let args = ["stat", "-e", "page-faults,minor-faults", "--relations", name, "--relations-lenient", "--", "true"];
        let output = perfprop(&args);
        assert!(output.status.success() && stderr(&output).contains("going on without"), "{}", stderr(&output));
    }
    fs::remove_file(file).unwrap();
}

#[test]
fn names_with_escapes_never_reach_the_terminal_raw() {
    let output = perfprop(&["stat", "-e", "evil\x1b[31m", "--", "true"]);
    assert!(!stderr(&output).contains('\x1b'), "{:?}", stderr(&output));
    if can_count() {
        let output = perfprop(&["stat", "-e", "page-faults", "--", "sh", "-c", ":", "\x1b[31m"]);
        assert!(!stderr(&output).contains('\x1b'), "{:?}", stderr(&output));
    }
}

#[test]
fn hardware_events_without_hardware_are_refused_with_the_reason() {
    let has_pmu = fs::read_dir("/sys/bus/event_source/devices").is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv")
            })
        })
    });
    if has_pmu {
        eprintln!("skipped: this machine has a PMU");
        return;
    }
    let output = perfprop(&["stat", "--strict", "-e", "cycles,L1_MISSES", "--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(stderr(&output).contains("E02") && stderr(&output).contains("task-clock"), "{}", stderr(&output));
    let group = perfprop(&["stat", "-e", "{cycles,instructions}", "--", "true"]);
    assert_eq!(group.status.code(), Some(125), "{}", stderr(&group));
}

/// No PMU has this type, so no machine counts it.
const NOWHERE: &str = "4242424:1";

#[test]
fn a_command_whose_events_cannot_be_counted_runs_all_the_same() {
    let output = perfprop(&["stat", "-e", NOWHERE, "--", "sh", "-c", "exit 7"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(7), "{text}");
    for words in ["<not supported>", NOWHERE, "seconds time elapsed", "seconds user", "seconds sys"] {
        assert!(text.contains(words), "{words} in {text}");
    }
    let marker = scratch("strict");
    let touch = format!("touch {}", marker.display());
    for events in [NOWHERE.to_owned(), format!("{NOWHERE},task-clock")] {
        let output = perfprop(&["stat", "--strict", "-e", &events, "--", "sh", "-c", &touch]);
        assert_eq!(output.status.code(), Some(125), "{}", stderr(&output));
        assert!(stderr(&output).contains(NOWHERE) && !stderr(&output).contains(",task-clock "), "{}", stderr(&output));
    }
    assert!(!marker.exists(), "the command must not have run");
    // Screens and recordings of nothing say no more than the refusal does.
    for verb in ["record", "top"] {
        let file = scratch("nothing.jsonl");
        let output = match verb {
            "record" => perfprop(&["record", "-o", file.to_str().unwrap(), "-e", NOWHERE, "--", "true"]),
            _ => perfprop(&["top", "--batch", "-e", NOWHERE, "--", "true"]),
        };
        assert_eq!(output.status.code(), Some(125), "{verb}: {}", stderr(&output));
        let _ = fs::remove_file(file);
    }
}

#[test]
fn where_nothing_else_is_counted_files_have_the_times() {
    for what in [&["-e", NOWHERE][..], &["-n"]] {
        let fields = perfprop(&[&["stat", "-x,"], what, &["--", "sh", "-c", "exit 3"]].concat());
        assert_eq!(fields.status.code(), Some(3), "{}", stderr(&fields));
        let json = stderr(&perfprop(&[&["stat", "-j"], what, &["--", "true"]].concat()));
        for name in ["duration_time", "user_time", "system_time"] {
            assert!(stderr(&fields).contains(&format!(",ns,{name},")), "{}", stderr(&fields));
            let line = json.lines().find(|line| line.contains(name)).unwrap();
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(line["counter-value"].is_number() && line["mean-per-cpu-sec"].is_null(), "{line}");
        }
        assert_eq!(stderr(&fields).contains("<not supported>"), what[0] == "-e");
    }
}

#[test]
fn time_is_an_event() {
    if !can_count() {
        return;
    }
    let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let events = "duration_time,user_time,system_time,{page-faults,duration_time}";
    let args = ["stat", "-j", "-e", events, "--", "sh", "-c", busy];
    let text = stderr(&perfprop(&args));
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let value = |row: usize| lines[row]["counter-value"].as_f64().unwrap();
    assert_eq!(lines.iter().map(|line| &line["status"]).collect::<Vec<_>>(), ["counted"; 5], "{text}");
    assert!(value(1) + value(2) > 0.0 && value(0) == value(4) && lines[0]["unit"] == "ns", "{text}");
    // What the lines below the counts say.
    let text = stderr(&perfprop(&["stat", "--no-big-num", "-e", "duration_time,user_time", "--", "sh", "-c", busy]));
    let number = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name} in {text}"));
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!((number("duration_time") / 1e9 - number("seconds time elapsed")).abs() < 1e-6, "{text}");
    assert!((number("user_time") / 1e9 - number("seconds user")).abs() < 1e-6, "{text}");
    assert!(stdout(&perfprop(&["list", "duration_time"])).contains("Tool events"));
}

#[test]
fn perfs_options_do_what_they_do_there() {
    if !can_count() {
        return;
    }
    let run = |args: &[&str]| stderr(&perfprop(&[&["stat"], args, &["--", "true"]].concat()));
    let user = run(&["--all-user", "-e", "page-faults,task-clock:k,{minor-faults:k,cs}:p"]);
    for name in [" page-faults:u ", " task-clock:u ", " minor-faults:pu ", " cs:pu "] {
        assert!(user.contains(name), "{name} in {user}");
    }
    assert!(run(&["--all-kernel", "-x,", "-e", "page-faults"]).contains(",page-faults:k,"));
    assert!(run(&["-S", "-e", "page-faults"]).contains("page-faults"));
    assert!(run(&["--no-merge", "-e", "page-faults"]).contains("page-faults"));
    let apart = run(&["--metric-no-group", "-M", "page_faults_per_ms"]);
    assert!(apart.contains("page_faults_per_ms"), "{apart}");
    let verbose = run(&["-v", "-x,", "-e", &format!("page-faults,{NOWHERE}")]);
    let count = verbose.lines().find(|line| line.contains(",,page-faults,")).unwrap().split(',').next().unwrap();
    assert!(
        verbose.contains(&format!("page-faults: {count} ")) && verbose.contains("not supported (E02)"),
        "{verbose}"
    );
    let quiet =
        perfprop(&["stat", "-q", "-e", &format!("page-faults,{NOWHERE}"), "--", "sh", "-c", "echo mine; exit 5"]);
    assert_eq!((quiet.status.code(), stdout(&quiet), stderr(&quiet)), (Some(5), "mine\n".into(), String::new()));
    // Busy for long enough to have a number of more than three digits.
    let grouped = run(&["-B", "-e", "duration_time"]);
    let plain = run(&["--no-big-num", "-e", "duration_time"]);
    let number = |text: &str| text.lines().find(|line| line.contains("duration_time")).unwrap().contains(',');
    assert!(number(&grouped) && !number(&plain), "{grouped} {plain}");
    for wrong in [&["-B", "-x,"][..], &["-q", "-o", "x"], &["-n", "-e", "page-faults"], &["--all-user", "--all-kernel"]]
    {
        assert_eq!(perfprop(&[&["stat"], wrong, &["--", "true"]].concat()).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn counts_by_cpu_stand_by_event() {
    if !can_count() {
        return;
    }
    let args = ["stat", "-a", "-A", "-x,", "-e", "page-faults,context-switches", "--", "true"];
    let output = perfprop(&args);
    if !output.status.success() {
        eprintln!("skipped: this user can't count CPUs: {}", stderr(&output));
        return;
    }
    let text = stderr(&output);
    let names: Vec<_> = text.lines().filter_map(|line| line.split(',').nth(3)).collect();
    let half = names.len() / 2;
    assert!(names[..half].iter().all(|name| *name == "page-faults"), "{text}");
    assert!(half > 0 && names[half..].iter().all(|name| *name == "context-switches"), "{text}");
}

#[test]
fn a_dumped_screen_is_the_same_twice_in_every_format() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/threads.jsonl");
    for screen in ["events", "detail", "relations", "log", "help"] {
        for format in ["txt", "ansi", "svg"] {
            let args = ["replay", recording, "--dump", format, "--screen", screen, "--size", "100x30", "--at", "7"];
            let (first, second) = (perfprop(&args), perfprop(&args));
            assert!(first.status.success() && first.stdout.len() > 500, "{args:?}: {}", stderr(&first));
            assert_eq!(first.stdout, second.stdout, "{args:?}");
            assert_eq!(format == "ansi", stdout(&first).contains('\x1b'), "{args:?}");
        }
    }
}

#[test]
fn a_dumped_screen_is_that_of_the_nearest_reading() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/demo.jsonl.gz");
    let at = |time: &str| stdout(&perfprop(&["replay", recording, "--dump", "txt", "--at", time]));
    // A reading came at 1.0032 s; the others are 0.2 s apart.
    assert_eq!(at("1"), at("1.0032"));
    assert_ne!(at("0.85"), at("1"));
}

#[test]
fn a_group_in_braces_is_whole_or_refused() {
    if !can_count() {
        return;
    }
    // No kernel has a software event 99.
    let torn = perfprop(&["stat", "-e", "{page-faults,1:99},task-clock", "--", "true"]);
    assert_eq!(torn.status.code(), Some(125), "{}", stderr(&torn));
    let expected = "perfprop: E04 group {page-faults,1:99} cannot be counted as a whole: 1:99: not supported\n      \
        leave 1:99 out, or drop the braces to count the others\n";
    assert_eq!(stderr(&torn), expected);
    // Nothing of a group that nobody can count is torn off.
    let absent = perfprop(&["stat", "-e", "{1:98,1:99},task-clock", "--", "true"]);
    assert!(absent.status.success(), "{}", stderr(&absent));
    assert_eq!(stderr(&absent).matches("<not supported>").count(), 2);
    let weak = perfprop(&["stat", "-e", "{page-faults,1:99}:W", "--", "true"]);
    assert!(weak.status.success() && stderr(&weak).contains("<not supported>"), "{}", stderr(&weak));
}

#[test]
fn what_perfprop_put_together_and_the_kernel_refuses_is_opened_singly() {
    if !can_count() {
        return;
    }
    // The kernel takes a pinned event as the leader of a group only (EINVAL).
    let free = perfprop(&["stat", "-j", "-e", "page-faults,task-clock:D,context-switches", "--", "true"]);
    assert!(free.status.success(), "{}", stderr(&free));
    assert_eq!(stderr(&free).matches("\"status\":\"counted\"").count(), 3, "{}", stderr(&free));
    let braces = perfprop(&["stat", "-e", "{page-faults,task-clock:D}", "--", "true"]);
    assert_eq!(braces.status.code(), Some(125));
    assert!(stderr(&braces).starts_with("perfprop: E04 group {page-faults,task-clock:D}"), "{}", stderr(&braces));
}

#[test]
fn detailed_sets_are_those_of_perf() {
    if !can_count() {
        return;
    }
    for (options, expected) in [(&["-d"][..], 5), (&["-dd"][..], 11), (&["-d", "-d", "-d"][..], 13)] {
        let args = [&["stat", "-j", "-e", "task-clock"], options, &["--", "true"]].concat();
        let output = perfprop(&args);
        let events: Vec<Value> = stderr(&output).lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        // A machine with several kinds of cores has a row for each.
        assert!(events.len() >= expected, "{}", stderr(&output));
        let names: Vec<_> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert!(names.iter().any(|name| name.contains("LLC-load-misses")), "{names:?}");
    }
}

#[test]
fn top_has_a_row_for_each_cpu_or_thread() {
    if !can_count() {
        return;
    }
    let cpus = perfprop(&["top", "--batch", "-n", "1", "-I", "50", "-A", "-e", "task-clock", "--", "sleep", "5"]);
    assert!(stdout(&cpus).contains("\nCPU0 task-clock"), "{}{}", stdout(&cpus), stderr(&cpus));
    let me = std::process::id().to_string();
    let threads = ["top", "--batch", "-n", "1", "-I", "50", "--per-thread", "-e", "task-clock", "-p", &me];
    let threads = perfprop(&threads);
    assert!(stdout(&threads).contains(&format!("-{me} task-clock")), "{}{}", stdout(&threads), stderr(&threads));
}

#[test]
fn perfs_words_are_answered_by_what_does_the_same() {
    let cases: [(&[&str], &str); 8] = [
        (&["record", "-T", "--", "true"], "every sample has its time"),
        (&["record", "-B", "--", "true"], "no build ids"),
        (&["record", "-n", "--", "true"], "only with -g"),
        (&["top", "-K", "--", "true"], "--all-user"),
        (&["stat", "--per-socket", "--", "true"], "-A"),
        (&["stat", "report"], "replay FILE"),
        (&["stat", "record", "true"], "perfprop record"),
        (&["report"], "replay FILE"),
    ];
    for (args, words) in cases {
        let output = perfprop(args);
        let text = stderr(&output);
        assert!(output.status.code().is_some_and(|code| code == 2 || code == 127), "{args:?}: {text}");
        assert!(text.contains(words) && !text.contains("did you mean"), "{args:?}: {text}");
    }
}

#[test]
fn words_of_the_command_line_and_of_files_reach_no_terminal_raw() {
    let theme = scratch("th\x1b[31meme.toml");
    fs::write(&theme, "[ui]\n\"te\\u001b[31mxt\" = \"re\\u202ed\"\ntext = \"\\u001b]0;x\\u0007\"\n").unwrap();
    let config = scratch("config\x1b[31m.toml");
    fs::write(&config, "\"the\\u001b[31mme\" = 1\ntheme = \"\\u202enone\"\n[keys]\nquit = \"\\u001b[1m\"\n").unwrap();
    let (theme, config) = (theme.to_str().unwrap(), config.to_str().unwrap());
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/threads.jsonl");
    let damaged = scratch("damaged.jsonl");
    let header = fs::read_to_string(recording).unwrap().lines().next().unwrap().to_owned();
    let sampled = "{\"type\":\"sampled\",\"events\":[],\"call_graph\":\"\\u001b[31m\"}";
    fs::write(&damaged, format!("{header}\n{sampled}\n{{}}\n")).unwrap();
    let damaged = damaged.to_str().unwrap();
    for args in [
        &["stat", "--no\x1b[31msuch", "--", "true"][..],
        &["no\u{202e}verb"],
        &["man", "no\x1b[31mverb"],
        &["replay", "--print", damaged],
        &["export", "--to", "folded", damaged],
        &["relations", "learn", "--program", "/nonexistent/model", damaged],
        &["replay", "--dump", "txt", "--theme", theme, recording],
        &["replay", "--dump", "txt", "--theme", "no\x1b[31msuch", recording],
        &["top", "--batch", "-n", "1", "-I", "10", "--config", config, "-e", "task-clock", "--", "true"],
        &["top", "--batch", "--config", "no\x1b[31mfile", "--", "true"],
    ] {
        let output = perfprop(args);
        let text = stderr(&output) + &stdout(&output);
        assert!(!text.contains(['\x1b', '\u{7}', '\u{202e}']), "{args:?}: {text:?}");
        assert!(!output.status.success() || text.contains("\\x1b"), "{args:?}: {text}");
    }
    [theme, config, damaged].iter().for_each(|file| fs::remove_file(file).unwrap());
}

#[test]
fn a_theme_of_the_configuration_that_is_not_there_is_said_where_nothing_is_drawn() {
    let config = scratch("theme-nope.toml");
    fs::write(&config, "theme = \"nope\"\n").unwrap();
    let path = config.to_str().unwrap();
    let batch = ["top", "--batch", "-n", "1", "-I", "10", "--config", path, "-e", "task-clock", "--", "true"];
    let told = |args: &[&str]| stderr(&perfprop(args)).contains("perfprop: configuration: no theme 'nope'; there are");
    assert!(told(&batch));
    // The option's theme is drawn with in its place.
    let with_option = [&batch[..7], &["--theme", "dark"], &batch[7..]].concat();
    assert!(!told(&with_option));
    fs::remove_file(config).unwrap();
}

#[test]
fn a_wrong_theme_or_configuration_is_said_and_marked() {
    let theme = scratch("wrong.toml");
    fs::write(&theme, "[stat]\nwarn = \"red\"\n").unwrap();
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/threads.jsonl");
    let dump = |theme: &str| perfprop(&["replay", "--dump", "txt", "--size", "120x30", "--theme", theme, recording]);
    let (wrong, right) = (dump(theme.to_str().unwrap()), dump("dark"));
    assert!(stderr(&wrong).contains("unknown section \"stat\"; did you mean \"state\"?"), "{}", stderr(&wrong));
    // The count of warnings stands before their mark.
    let warnings = |output: &Output| {
        let text = stdout(output);
        let before = text.lines().next().unwrap_or_default().split('▲').next().unwrap_or_default().to_owned();
        before.rsplit(' ').next().unwrap_or_default().parse::<u32>().unwrap()
    };
    assert_eq!((warnings(&wrong), stderr(&right)), (warnings(&right) + 1, String::new()));
    fs::remove_file(theme).unwrap();
}

#[test]
fn a_misspelt_event_of_a_relation_file_is_told_with_what_was_meant() {
    let file = scratch("misspelt.json");
    fs::write(&file, "[{\"id\": \"R1\", \"relation\": \"page-fautls = minor-faults + no-machine-has-this\"}]\n")
        .unwrap();
    let name = file.to_str().unwrap();
    for args in [&["check", name][..], &["relations", "show", name]] {
        let text = stdout(&perfprop(args));
        assert!(text.contains("page-fautls") && text.contains("did you mean page-faults?"), "{args:?}: {text}");
        assert!(!text.contains("no-machine-has-this, which"), "{args:?}: {text}");
    }
    if can_count() {
        let args = ["stat", "-e", "page-faults,minor-faults", "--relations", name, "--", "true"];
        let text = stderr(&perfprop(&args));
        assert!(text.contains("R1") && text.contains("did you mean page-faults?"), "{text}");
    }
    fs::remove_file(file).unwrap();
}

#[test]
fn a_replay_knows_the_whole_run_and_says_so_unless_it_is_as_live() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/turns.jsonl");
    let dump = |args: &[&str]| {
        let shown = ["replay", recording, "--dump", "txt", "--screen", "detail", "--size", "160x40"];
        stdout(&perfprop(&[&shown, args].concat()))
    };
    let [later, live, scaled] = [dump(&[]), dump(&["--as-live"]), dump(&["--estimator", "scale"])];
    let says = |screen: &str| screen.contains("whole run known");
    assert_eq!([&later, &live, &scaled].map(|screen| says(screen)), [true, false, false], "{later}{live}{scaled}");
    // The chart is another one; what was counted, and the run's count, are the same.
    let below = |screen: &str| screen.split_once('\n').map(|(_, below)| below.to_owned());
    assert_ne!(below(&later), below(&live));
    let mean =
        |screen: &str| screen.lines().find(|line| line.contains("Detail") || line.contains(" ─ ")).map(str::to_owned);
    assert_eq!(mean(&later), mean(&live));
}

#[test]
fn a_replay_with_other_relations_keeps_the_estimator() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/turns.jsonl");
    let folder = Folder::new();
    let file = folder.join("other.json");
    fs::write(&file, "[{\"id\": \"R1\", \"relation\": \"L1_MISSES = 2 * L2_MISSES\"}]\n").unwrap();
    let dump = |args: &[&str]| {
        let shown = ["replay", recording, "--dump", "txt", "--size", "160x40", "--relations", file.to_str().unwrap()];
        stdout(&perfprop(&[&shown, args].concat()))
    };
    assert_eq!(dump(&[]), dump(&["--estimator", "gp"]));
    assert_ne!(dump(&[]), dump(&["--estimator", "linear"]));
}

#[test]
fn what_nothing_corrects_stands_beside_the_truth() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/turns.jsonl");
    let output = perfprop(&["replay", recording, "--estimator", "scale", "--dump", "txt", "-I", "1000"]);
    let screen = stdout(&output);
    let line = |label: &str| screen.lines().find(|line| line.contains(label)).unwrap_or_default().to_owned();
    assert!(line("scaled ×").contains("±38.8%"), "{screen}");
    assert!(line("│ truth ").contains("off +0.1%, in ±"), "{screen}");
    assert!(!screen.contains("corrected") && screen.contains("nothing corrects it"), "{screen}");
}
use crate::folders::Folder;

#[test]
fn a_recording_that_was_not_finished_is_called_so() {
    if !can_count() {
        return;
    }
    let (whole, part) = (scratch("whole.jsonl"), scratch("part.jsonl"));
    let (of, to) = (whole.to_str().unwrap(), part.to_str().unwrap());
    perfprop(&["record", "-e", "task-clock", "-o", of, "-I", "10", "--", "sleep", "0.1"]);
    let lines = fs::read_to_string(&whole).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    let shown = |file: &str, option: &[&str]| stdout(&perfprop(&[&["replay"], option, &[file]].concat()));
    let dump = ["--dump", "txt", "--size", "120x30"];
    assert!(!shown(of, &["--print"]).contains("not finished") && !shown(of, &dump).contains("not finished"));
    for (kept, words) in [(lines.len() - 1, "the recording was not finished"), (1, "it holds no numbers")] {
        fs::write(&part, lines[..kept].join("\n") + "\n").unwrap();
        for option in [&["--print"][..], &dump] {
            let text = shown(to, option);
            assert!(text.lines().next().unwrap().contains(words), "{words}: {text}");
        }
    }
    let _ = (fs::remove_file(&whole), fs::remove_file(&part));
}

#[test]
fn a_delay_that_the_command_does_not_outlast_is_told() {
    if !can_count() {
        return;
    }
    let output = perfprop(&["stat", "-D", "100000", "-e", "task-clock", "--", "true"]);
    assert!(stderr(&output).contains("ended before the delay of 100000 ms"), "{}", stderr(&output));
}

#[test]
fn manual_pages_are_offered_of_verbs_that_help_lists() {
    let output = perfprop(&["man", "nosuch"]);
    let text = stderr(&output);
    assert!(text.contains("stat, record") && !text.contains("words") && !text.contains("mix"), "{text}");
}

#[test]
fn a_misspelt_theme_is_refused_before_anything_is_done() {
    let folder = Folder::new();
    let ran = folder.join("ran");
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/threads.jsonl");
    let top = ["top", "-n", "1", "-e", "task-clock", "--theme", "drak", "--", "touch", ran.to_str().unwrap()];
    let replay = ["replay", "--print", "--theme", "drak", recording];
    for args in [&top[..], &replay, &["demo", "--theme", "drak"]] {
        let output = perfprop(args);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{args:?}");
        assert!(stderr(&output).contains("no theme 'drak'; did you mean 'dark'?"), "{args:?}: {}", stderr(&output));
    }
    assert!(!ran.exists());
    // Where there is no terminal to follow, there is one that pictures have.
    let dump = |theme: &str| stdout(&perfprop(&["replay", "--dump", "svg", "--theme", theme, recording]));
    assert_eq!(dump("auto"), dump("dark"));
}

#[test]
fn the_advice_on_a_relation_file_leaves_out_relations_of_no_use_here() {
    let folder = Folder::new();
    let file = folder.join("r.json");
    let relation = |id: &str, text: &str| format!("{{\"id\": \"{id}\", \"relation\": \"page-faults = {text}\"}}");
    let all = [relation("R1", "2 * minor-faults"), relation("R2", "no-machine-has-this"), relation("R3", "")];
    fs::write(&file, format!("[{}]", all.join(", "))).unwrap();
    let output = perfprop(&["check", file.to_str().unwrap()]);
    let words = "1 other relation in this file is fine, 1 can't be used here (this machine has no no-machine-has-this)";
    assert!(stdout(&output).contains(&format!("{words}; to go on without R3")), "{}", stdout(&output));
    let unreadable = stdout(&perfprop(&["check", "/nonexistent.json"]));
    assert!(unreadable.contains("can't be read") && !unreadable.contains("are right"), "{unreadable}");
}

#[test]
fn lines_of_intervals_and_of_means_have_the_same_fields() {
    if !can_count() {
        return;
    }
    let args = ["stat", "-I", "40", "-r", "2", "-x", ",", "-e", "page-faults", "--", "sleep", "0.1"];
    let text = stderr(&perfprop(&args));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').map(str::trim).collect()).collect();
    assert!(lines.len() > 3 && lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
    let (last, intervals) = lines.split_last().unwrap();
    assert!(last[0] == "summary" && last[4].ends_with('%'), "{text}");
    assert!(intervals.iter().all(|line| line[0].parse::<f64>().is_ok() && line[4].is_empty()), "{text}");
}

#[test]
fn a_run_that_was_interrupted_is_left_out_of_the_means() {
    if !can_count() {
        return;
    }
    let folder = Folder::new();
    let runs = folder.join("runs");
    // The third run ends perfprop.
    let script = format!("echo >> {0}; test $(wc -l < {0}) = 3 && kill -INT $PPID && exec sleep 60; :", runs.display());
    let output = perfprop(&["stat", "-r", "5", "-e", "page-faults", "--", "sh", "-c", &script]);
    assert_eq!(output.status.signal(), Some(2), "{}", stderr(&output));
    for words in ["interrupted in run 3 of 5, which is left out of the means", "(2 runs)"] {
        assert!(stderr(&output).contains(words), "{words}: {}", stderr(&output));
    }
}

#[test]
fn errors_begin_with_the_program_and_name_the_help_of_the_verb() {
    for (args, begin, more) in [
        (&["stat", "-r", "x", "--", "true"][..], "perfprop: invalid value 'x' for '--repeat", "perfprop stat --help"),
        (&["history", "run", "--repeat", "x"], "perfprop: invalid value 'x'", "perfprop history run --help"),
        (&["tpo"], "perfprop: unrecognized subcommand 'tpo'", "perfprop --help"),
        (&["stat"], "perfprop: nothing to measure", "perfprop stat --help"),
        (&["stat", "--per-thread", "--", "true"], "perfprop: --per-thread needs", "perfprop stat --help"),
    ] {
        let error = stderr(&perfprop(args));
        assert!(error.starts_with(begin), "{error}");
        assert_eq!(error.lines().last(), Some(format!("      more: {more}").as_str()), "{error}");
    }
    for args in
        [&["fit", "/nonexistent.csv"][..], &["list", "qqqqqqqqq"], &["stat", "--learnt", "/nonexistent", "--", "true"]]
    {
        let error = stderr(&perfprop(args));
        assert!(error.starts_with("perfprop: ") && !error.contains("more:"), "{error}");
    }
    let code = stderr(&perfprop(&["stat", "-e", "L1_MISES", "--", "true"]));
    assert!(code.starts_with("perfprop: E03 unknown event 'L1_MISES'"), "{code}");
    let none = stderr(&perfprop(&["list", "qqqqqqqqq"]));
    assert!(none.starts_with("perfprop: no event has 'qqqqqqqqq' in its name"), "{none}");
}

#[test]
fn a_recording_is_known_where_something_else_is_wanted() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/threads.jsonl");
    for (args, wanted) in [
        (&["stat", "--learnt", recording, "--", "true"][..], "perfprop relations learn --program MODEL"),
        (&["fit", recording, "--model", "auto"], "perfprop bench -P"),
        (&["predict", recording, "n=1"], "perfprop fit FILE"),
        (&["relations", "import", recording], "perfprop relations learn"),
    ] {
        let output = perfprop(args);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("threads.jsonl' is a recording, and ") && error.contains(wanted), "{error}");
    }
}

#[test]
fn keys_and_times_that_a_replay_has_not_are_refused() {
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/threads.jsonl");
    let replay = |args: &[&str]| perfprop(&[&["replay", recording, "--dump", "txt"], args].concat());
    let keys = replay(&["--keys", "<Foo>"]);
    assert_eq!(
        (keys.status.code(), stderr(&keys).contains("no key is called <Foo>")),
        (Some(2), true),
        "{}",
        stderr(&keys)
    );
    let late = replay(&["--at", "10000"]);
    assert_eq!(
        (late.status.code(), stderr(&late).contains("nothing was read there; the recording is ")),
        (Some(2), true)
    );
}

#[test]
fn options_of_one_meaning_have_one_name_and_old_names_work() {
    let help = |args: &[&str]| stdout(&perfprop(&[args, &["--help"]].concat()));
    assert!(
        help(&["bench"]).contains("--cpu-affinity <CPU>") && help(&["history", "run"]).contains("--cpu-affinity <CPU>")
    );
    for (verb, unit) in
        [("stat", "Milliseconds"), ("top", "Milliseconds"), ("record", "Milliseconds"), ("bench", "Seconds")]
    {
        assert!(help(&[verb]).contains(&format!("{unit}, or a time with a unit")), "{verb}");
    }
    assert!(help(&["history", "run"]).contains("Seconds, or a time with a unit"));
    assert!(help(&["bench"]).contains("--statistic <") && help(&["fit"]).contains("--statistic <"));
    assert!(!help(&["replay"]).contains("give it to `replay`") && !help(&["top"]).contains("in a replay"));
    let stat = |args: &[&str]| perfprop(&[&["stat"], args, &["--", "true"]].concat());
    for args in [
        &["--events", "page-faults"][..],
        &["-e", "page-faults", "-I", "100", "--iterations", "1"],
        &["--timeout", "10s"],
    ] {
        assert!(stat(args).status.success(), "{args:?}: {}", stderr(&stat(args)));
    }
    let started = Instant::now();
    let sleeping = perfprop(&["stat", "-e", "page-faults", "--timeout", "0.2s", "--", "sleep", "60"]);
    assert!(started.elapsed() < Duration::from_secs(30), "{}", stderr(&sleeping));
}
