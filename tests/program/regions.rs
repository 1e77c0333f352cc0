//! Tests what perfprop shows of programs with named regions: those that it starts, and those that run already.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use perfprop_regions::{Snapshot, folder_of, record, region};

use crate::folders::Folder;

/// Set for this program where it plays the part of a program with regions.
const PART: &str = "PERFPROP_TEST_REGIONS";

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn plays_a_part() {
    let Ok(part) = std::env::var(PART) else { return };
    match part.as_str() {
        "calls" => (0..20).for_each(|_| call()),
        "threads" => std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..20).for_each(|_| call_slowly()));
            }
        }),
        "touches" => (0..5).for_each(|_| touch()),
        "leaves open" => {
            std::mem::forget(region("main"));
            std::mem::forget(region("step"));
            std::process::exit(0);
        }
        "goes on" => loop {
            call();
            std::thread::sleep(Duration::from_millis(1));
        },
        "did much" => {
            record(true);
            (0..2000).for_each(|_| call());
            loop {
                call();
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        "is foreign" => {
            let _file = nix::sys::memfd::memfd_create(c"perfprop-regions", nix::sys::memfd::MFdFlags::empty()).unwrap();
            std::thread::sleep(PATIENCE);
        }
        other => panic!("no part {other}"),
    }
}

/// A region, and in it another one twice.
fn call() {
    let _outer = region("outer");
    for _ in 0..2 {
        let _inner = region("inner, \"quoted\"");
    }
}

/// The same, with so much time in it that there is some whatever markers take.
fn call_slowly() {
    let _outer = region("outer");
    std::thread::sleep(Duration::from_millis(1));
}

/// A region that writes pages for the first time.
fn touch() {
    let _open = region("touch");
    let mut pages = vec![0_u8; 4 << 20];
    pages.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    std::hint::black_box(&pages);
}

/// The words of a command that plays a part.
fn part() -> [String; 4] {
    let program = std::env::current_exe().unwrap().display().to_string();
    [program, "--exact".into(), "regions::plays_a_part".into(), "--nocapture".into()]
}

fn perfprop(part_of_command: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
    command.args(args).env(PART, part_of_command).stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).join("\n")
}

/// A sandbox may forbid even software events; then it is said why a test is skipped.
fn can_count() -> bool {
    let output = perfprop("", &["stat", "-e", "task-clock", "--", "true"]);
    if !output.status.success() {
        eprintln!("skipped: this machine counts no software events: {}", text(&output));
    }
    output.status.success()
}

/// The calls and the names, with their indentation, of a table of regions.
fn table(text: &str) -> Vec<(u64, String)> {
    let lines = text.lines().skip_while(|line| !line.contains("MEAN CALL")).skip(1);
    let row = |line: &str| {
        let calls = line.split_whitespace().next()?.replace(',', "").parse().ok()?;
        Some((calls, line.chars().skip(64).collect()))
    };
    lines.map_while(row).collect()
}

fn rows(wanted: &[(u64, &str)]) -> Vec<(u64, String)> {
    wanted.iter().map(|(calls, name)| (*calls, (*name).to_owned())).collect()
}

/// What [`call`] gives when it is called 20 times.
fn all_calls() -> Vec<(u64, String)> {
    rows(&[(20, "outer"), (40, "  inner, \"quoted\"")])
}

/// Waits until something is there.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A program that runs already, and ends with the value.
struct Running(Child);

impl Running {
    fn new(what: &str) -> Self {
        let [program, args @ ..] = part();
        Self(Command::new(program).args(args).env(PART, what).stdout(Stdio::null()).spawn().unwrap())
    }

    /// The file of its regions.
    fn memory(&self) -> PathBuf {
        let files = format!("/proc/{}/fd", self.0.id());
        let is_memory =
            |path: &PathBuf| fs::read_link(path).is_ok_and(|to| to.starts_with("/memfd:perfprop-regions (deleted)"));
        until("a region", || fs::read_dir(&files).ok()?.filter_map(|file| Some(file.ok()?.path())).find(is_memory))
    }

    fn snapshot(&self) -> Snapshot {
        let file = fs::File::open(self.memory()).unwrap();
        until("a header", || Snapshot::read(&file).ok())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn stat_prints_the_regions_of_a_command() {
    if !can_count() {
        return;
    }
    let words = part();
    let words: Vec<&str> =
        ["stat", "-e", "task-clock", "--"].into_iter().chain(words.iter().map(String::as_str)).collect();
    let output = perfprop("calls", &words);
    assert_eq!(table(&text(&output)), all_calls(), "{}", text(&output));
}

#[test]
fn regions_that_were_left_open_are_listed() {
    if !can_count() {
        return;
    }
    let words = part();
    let args = ["stat", "-e", "task-clock", "--"].into_iter().chain(words.iter().map(String::as_str));
    let text = text(&perfprop("leaves open", &args.collect::<Vec<_>>()));
    assert!(text.contains("   main  no call has ended\n"), "{text}");
    assert!(text.contains("     step  no call has ended\n"), "{text}");
}

/// The library as other languages load it; `None` where this build made none.
fn library() -> Option<PathBuf> {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libperfprop_regions.so");
    if !library.exists() {
        eprintln!("skipped: no {}", library.display());
    }
    library.exists().then_some(library)
}

fn of_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("regions").join(path)
}

#[test]
fn stat_prints_the_regions_of_a_python_program() {
    let Some(library) = library().filter(|_| can_count()) else { return };
    let output = Command::new(env!("CARGO_BIN_EXE_perfprop"))
        .args(["stat", "-e", "task-clock", "--", "python3"])
        .arg(of_crate("examples/words.py"))
        .env("PERFPROP_REGIONS_LIBRARY", library)
        .env("PYTHONPATH", of_crate("python"))
        .output()
        .unwrap();
    if !output.status.success() {
        return eprintln!("skipped: no python3 here");
    }
    // Which took longer differs.
    let mut found = table(&text(&output));
    found.sort();
    let wanted = [(10, "  Counter"), (10, "  dict"), (10, "round"), (21, "depth")];
    assert_eq!(found, rows(&wanted), "{}", text(&output));
}

#[test]
fn stat_prints_the_regions_of_a_program_in_cpp() {
    let Some(library) = library().filter(|_| can_count()) else { return };
    let folder = Folder::new();
    let program = folder.join("sort");
    let compiled = Command::new("c++")
        .arg("-I")
        .args([of_crate("include"), of_crate("examples/sort.cpp"), library.clone(), "-o".into(), program.clone()])
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no C++ compiler here");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_perfprop"))
        .args(["stat", "-e", "task-clock", "--"])
        .arg(program)
        .env("LD_LIBRARY_PATH", library.parent().unwrap())
        .output()
        .unwrap();
    let found = table(&text(&output));
    let wanted = rows(&[(20, "round"), (20, "  sort"), (20, "  stable_sort"), (1, "throws")]);
    assert!(wanted.iter().all(|row| found.contains(row)), "{}", text(&output));
}

#[test]
fn a_recording_keeps_regions_for_replays_and_other_formats() {
    if !can_count() {
        return;
    }
    let folder = Folder::new();
    let file = folder.join("r.jsonl").display().to_string();
    let words = part();
    let options = ["record", "-e", "task-clock", "-o", &file, "--"].into_iter();
    let output = perfprop("calls", &options.chain(words.iter().map(String::as_str)).collect::<Vec<_>>());
    assert!(text(&output).contains(", 2 regions in "), "{}", text(&output));
    assert_eq!(table(&text(&perfprop("", &["replay", "--print", &file]))), all_calls());
    let screen = text(&perfprop("", &["replay", "--dump", "txt", "--screen", "profile", &file]));
    assert!(screen.contains("region-time") && screen.contains("− outer"), "{screen}");
    let folded = text(&perfprop("", &["export", "--to", "folded", "--no-process", &file]));
    assert!(folded.contains("outer;inner, \"quoted\" "), "{folded}");
    let trace = perfprop("", &["export", "--to", "chrome-trace", &file]);
    assert!(text(&trace).contains("60 calls of 1 thread in ") && text(&trace).contains("none is missing"));
    let trace: serde_json::Value = serde_json::from_slice(&trace.stdout).unwrap();
    let calls = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
    assert_eq!(calls.filter(|call| call["name"] == "outer").count(), 20);
    // One that was killed has no end.
    let lines = fs::read_to_string(&file).unwrap();
    folder.write("killed.jsonl", &lines[..lines.rfind(r#"{"type":"end""#).unwrap()]);
    let killed = folder.join("killed.jsonl").display().to_string();
    let trace = perfprop("", &["export", "--to", "chrome-trace", &killed]);
    assert!(trace.status.code() == Some(1) && text(&trace).contains("has no end"), "{}", text(&trace));
    // Recordings of before have no regions, and say so.
    let without = lines.lines().filter(|line| !line.starts_with(r#"{"type":"regions""#));
    folder.write("old.jsonl", &(without.collect::<Vec<_>>().join("\n") + "\n"));
    let old = folder.join("old.jsonl").display().to_string();
    assert!(!text(&perfprop("", &["replay", "--print", &old])).contains("Regions"));
    assert!(text(&perfprop("", &["export", "--to", "chrome-trace", &old])).contains("no program had any"));
}

/// The counts of the first event by region, of a table of what it counted in regions.
fn events(text: &str) -> Vec<(u64, String)> {
    let lines = text.lines().skip_while(|line| !line.contains("COUNT    ±95%")).skip(1);
    let row = |line: &str| {
        let count = line.split_whitespace().next()?.replace(',', "").parse().ok()?;
        Some((count, line.chars().skip(62).collect::<String>()))
    };
    lines.map_while(row).collect()
}

#[test]
fn events_in_regions_are_recorded_and_replayed_and_exported() {
    if !can_count() {
        return;
    }
    let folder = Folder::new();
    let file = folder.join("r.jsonl").display().to_string();
    let words = part();
    let options = ["record", "-e", "task-clock", "--region-events", "page-faults", "-o", &file, "--"].into_iter();
    let output = text(&perfprop("touches", &options.chain(words.iter().map(String::as_str)).collect::<Vec<_>>()));
    if output.contains("--region-events: ") {
        return eprintln!("skipped: {output}");
    }
    let printed = text(&perfprop("", &["replay", "--print", &file]));
    let [(count, name)] = &events(&printed)[..] else { panic!("{printed}") };
    assert!(*count >= 5 && name == "touch", "{printed}");
    let named = printed.lines().find_map(|line| line.trim().split_once(" in regions of process ")).unwrap();
    assert!(named.1.contains('(') && named.1.ends_with("):"), "{printed}");
    let event = format!("region-{}", named.0);
    let filter = ["export", "--to", "folded", "--no-process", "--event-filter", &event, &file];
    assert_eq!(text(&perfprop("", &filter)).trim(), format!("touch {count}"));
    let pprof = folder.join("r.pb.gz").display().to_string();
    assert!(perfprop("", &["export", "--to", "pprof", "-o", &pprof, &file]).status.success());
    let filter = ["export", "--to", "folded", "--no-process", "--event-filter", &event, &pprof];
    // A file of pprof has the process on the path.
    let folded = text(&perfprop("", &filter));
    assert!(folded.trim().ends_with(&format!(";touch {count}")), "{folded}");
    let screen = text(&perfprop("", &["replay", "--dump", "txt", "--screen", "profile", &file]));
    assert!(screen.contains("region-time (1 of 2)"), "{screen}");
    // Recordings of before know of no events.
    let lines = fs::read_to_string(&file).unwrap();
    let older = lines.lines().map(without_events).collect::<Vec<_>>().join("\n") + "\n";
    folder.write("old.jsonl", &older);
    let old = text(&perfprop("", &["replay", "--print", &folder.join("old.jsonl").display().to_string()]));
    assert_eq!((table(&old), events(&old)), (rows(&[(5, "touch")]), vec![]), "{old}");
}

/// A line of a recording without what events counted in regions.
fn without_events(line: &str) -> String {
    let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
    if line["type"] == "regions" {
        line.get_mut("counts").and_then(|counts| counts.as_object_mut()?.remove("events"));
        for state in line.get_mut("states").and_then(|states| states.as_array_mut()).into_iter().flatten() {
            state[1].as_object_mut().map(|state| state.remove("events"));
        }
    }
    line.to_string()
}

#[test]
fn runs_are_summed_up_and_lines_of_fields_have_regions() {
    if !can_count() {
        return;
    }
    let words = part();
    let stat = |options: &[&str]| {
        let options = ["stat", "-e", "task-clock"].iter().chain(options).chain(&["--"]).copied();
        text(&perfprop("calls", &options.chain(words.iter().map(String::as_str)).collect::<Vec<_>>()))
    };
    let runs = stat(&["-r", "3"]);
    let row = |name: &str| runs.lines().find(|line| line.ends_with(name)).map(|line| line.split_whitespace().next());
    assert!(runs.contains(", mean of 3 runs:"), "{runs}");
    assert_eq!((row("  outer"), row("inner, \"quoted\"")), (Some(Some("20")), Some(Some("40"))), "{runs}");
    let fields = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.contains(name)).map(|line| line.split(';').map(str::to_owned));
        line.map(Iterator::collect::<Vec<_>>).unwrap_or_default()
    };
    let one = stat(&["-x", ";"]);
    let (event, calls) = (fields(&one, "task-clock"), fields(&one, "region-calls in outer of "));
    assert_eq!((calls[0].as_str(), calls.len()), ("20", event.len()), "{one}");
    let three = stat(&["-x", ";", "-r", "3"]);
    let (event, calls) = (fields(&three, "task-clock"), fields(&three, "region-calls in outer/inner, "));
    assert_eq!((&calls[0][..], &calls[3][..], calls.len()), ("40", "0.00%", event.len()), "{three}");
    assert!(fields(&three, "region-time in outer of ").len() == event.len());
    let json = stat(&["-j", "-r", "2"]);
    assert!(json.contains("{\"run\":1,\"version\"") && json.contains("{\"run\":2,\"version\""), "{json}");
}

#[test]
fn names_of_region_events_are_checked_before_the_command_starts() {
    if !can_count() {
        return;
    }
    let folder = Folder::new();
    let made = folder.join("made").display().to_string();
    let refused = |verb: &str, list: &str| {
        let output = perfprop("", &[verb, "-e", "task-clock", "--region-events", list, "--", "touch", &made]);
        assert!(output.status.code() == Some(2) && !Path::new(&made).exists(), "{}", text(&output));
        text(&output)
    };
    for verb in ["stat", "record", "top"] {
        let error = refused(verb, "cs,page-fults");
        assert!(error.contains("unknown event 'page-fults' in --region-events (position 2)"), "{error}");
        assert!(error.contains("did you mean page-faults?"), "{error}");
    }
    assert!(refused("stat", "duration_time").contains("hardware, cache and software"));
    let none = perfprop("", &["stat", "-e", "task-clock", "--region-events", "cs", "--", "true"]);
    assert!(none.status.success() && text(&none).contains("no program of the command had regions"), "{}", text(&none));
    let pid = std::process::id().to_string();
    let running = text(&perfprop("", &["stat", "-p", &pid, "--region-events", "cs", "--", "true"]));
    assert!(running.contains("is for a command that perfprop starts") && running.contains("stat -p $!"), "{running}");
}

#[test]
fn threads_have_their_own_regions_in_an_export() {
    if !can_count() {
        return;
    }
    let folder = Folder::new();
    let file = folder.join("r.jsonl").display().to_string();
    let words = part();
    let options = ["record", "-e", "task-clock", "-o", &file, "--"].into_iter();
    perfprop("threads", &options.chain(words.iter().map(String::as_str)).collect::<Vec<_>>());
    let folded = text(&perfprop("", &["export", "--to", "folded", "--tid", &file]));
    let threads: std::collections::BTreeSet<_> =
        folded.lines().filter(|line| line.contains(";outer")).filter_map(|line| line.split(';').next()).collect();
    // Each of both threads, and neither is the main one.
    assert_eq!(threads.len(), 2, "{folded}");
    let is_main = |name: &str| name.rsplit('-').next().and_then(|ids| ids.split_once('/')).is_none_or(|(a, b)| a == b);
    assert!(!threads.iter().any(|name| is_main(name)), "{folded}");
}

#[test]
fn a_program_that_runs_records_while_it_is_watched_and_no_longer() {
    if !can_count() {
        return;
    }
    let running = Running::new("goes on");
    let pid = running.0.id().to_string();
    assert_eq!(running.snapshot().recording, 0);
    let watch = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
        command.args(["stat", "-e", "task-clock", "-p", &pid]).args(options).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let is_recorded =
        |wanted: bool| until("recording", || ((running.snapshot().recording != 0) == wanted).then_some(()));
    // Two at once: the one that ends first doesn't switch the other off.
    let mut long = watch(&[]);
    is_recorded(true);
    let short = text(&watch(&["--timeout", "100"]).wait_with_output().unwrap());
    let found = table(&short);
    assert_eq!(found.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>(), ["outer", "  inner, \"quoted\""]);
    assert_ne!(running.snapshot().recording, 0);
    // One that is killed can't switch it off; the next one knows, and does.
    long.kill().unwrap();
    long.wait().unwrap();
    assert_ne!(running.snapshot().recording, 0);
    let before = running.snapshot().nodes.iter().map(|node| node.calls).sum::<u64>();
    let next = text(&watch(&["--timeout", "100"]).wait_with_output().unwrap());
    is_recorded(false);
    // What was counted before isn't this one's.
    let calls: u64 = table(&next).iter().map(|(calls, _)| calls).sum();
    let after = running.snapshot().nodes.iter().map(|node| node.calls).sum::<u64>();
    assert!(calls > 0 && calls <= after - before, "{calls} of {before} to {after}: {next}");
    // A signal that ends it does so too.
    let mut ended = watch(&[]);
    is_recorded(true);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(ended.id().cast_signed()), nix::sys::signal::SIGTERM).unwrap();
    ended.wait().unwrap();
    is_recorded(false);
}

#[test]
fn what_was_entered_before_a_recording_began_is_not_missing_in_it() {
    if !can_count() {
        return;
    }
    let (running, folder) = (Running::new("did much"), Folder::new());
    let calls = || running.snapshot().nodes.iter().map(|node| node.calls).sum::<u64>();
    until("calls", || (calls() >= 6000).then_some(()));
    let (file, pid) = (folder.join("run.jsonl"), running.0.id().to_string());
    let recorded =
        perfprop("", &["record", "-e", "task-clock", "-o", file.to_str().unwrap(), "-p", &pid, "--", "sleep", "0.2"]);
    assert!(recorded.status.success() && !text(&recorded).contains("too fast"), "{}", text(&recorded));
    assert!(fs::read_to_string(&file).unwrap().contains("outer"));
}

#[test]
fn a_file_that_is_none_of_regions_is_told() {
    if !can_count() {
        return;
    }
    let running = Running::new("is foreign");
    running.memory();
    let pid = running.0.id().to_string();
    let output = perfprop("", &["stat", "-e", "task-clock", "-p", &pid, "--timeout", "50"]);
    let wanted = format!("Regions of process {pid} can't be read: it holds no regions");
    assert!(text(&output).contains(&wanted), "{}", text(&output));
}

#[test]
fn what_a_killed_perfprop_left_is_removed_by_the_next() {
    if !can_count() {
        return;
    }
    let mut killed = Command::new(env!("CARGO_BIN_EXE_perfprop"))
        .args(["stat", "-e", "task-clock", "--", "sleep", "1000"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", killed.id());
    let command = until("the command", || {
        let pid: u32 = fs::read_to_string(&children).ok()?.split_whitespace().next()?.parse().ok()?;
        folder_of(pid).exists().then_some(pid)
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(folder_of(command).exists());
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(command.cast_signed()), nix::sys::signal::SIGKILL);
    let is_gone = || !Path::new(&format!("/proc/{command}")).exists();
    until("its end", || is_gone().then_some(()));
    perfprop("", &["stat", "-e", "task-clock", "--", "true"]);
    assert!(!folder_of(command).exists());
}
