//! Tests `perfprop history` on small repositories.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use perfprop::history::results::{
    Benchmark, BenchmarkList, BenchmarkResult, CommitResults, MachineFacts, OrderedMap, ResultNumber, ResultStore,
};
use perfprop::history::{Commit, Repository};
use perfprop::sources::command::Exit;
use serde_json::Value;

use crate::folders::Folder;

pub(crate) fn git(folder: &Path, arguments: &[&str]) {
    let named = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
    let output = Command::new("git").arg("-C").arg(folder).args(named).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A repository of commits whose program is a script; the third one can't be built.
pub(crate) fn repository(commits: usize) -> Folder {
    let folder = Folder::new();
    let root = folder.join("project");
    fs::create_dir(&root).unwrap();
    git(&root, &["init", "--quiet", "--initial-branch=main"]);
    for number in 0..commits {
        let build = if number == 2 { "exit 3\n" } else { "cp work.in work && chmod +x work\n" };
        fs::write(root.join("build.sh"), build).unwrap();
        fs::write(root.join("work.in"), format!("#!/bin/sh\nexec cat data > /dev/null # {number}\n")).unwrap();
        fs::write(root.join("data"), "data").unwrap();
        git(&root, &["add", "."]);
        git(&root, &["commit", "--quiet", "-m", &format!("change {number}\u{1b}[2J")]);
    }
    folder
}

pub(crate) fn history(folder: &Folder, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
    command.arg("history").args(arguments).current_dir(folder.join("project")).stdin(Stdio::null());
    command.env("XDG_DATA_HOME", folder.join("share")).env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// Standard output and standard error, of a run that ended with this code.
#[track_caller]
pub(crate) fn texts(output: &Output, code: i32) -> (String, String) {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8(text.clone()).unwrap());
    // As a shell has it: perfprop ends by the signal that interrupted it.
    assert_eq!(i32::from(Exit::from(output.status).shell_code()), code, "{out}{err}");
    (out, err)
}

/// The paths, sizes and times of all files of a folder.
fn files(folder: &Path) -> Vec<String> {
    let output = Command::new("find").arg(folder).args(["-printf", "%p %s %T@ %m\n"]).output().unwrap();
    let mut all: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    all.sort();
    all
}

#[test]
fn commits_are_built_and_measured_and_the_checkout_stays_as_it_was() {
    let folder = repository(4);
    let root = folder.join("project");
    fs::write(root.join("data"), "changed").unwrap();
    let before = files(&root);
    let run = [
        "run",
        "HEAD~3..",
        "--build",
        "sh build.sh",
        "--bench",
        "cat=./work",
        "--keep",
        "data",
        "-r",
        "2",
        "-e",
        "page-faults",
    ];
    let (_, said) = texts(&history(&folder, &run), 0);
    assert!(
        said.contains("2 of 3 commits measured in 4 runs") && said.contains("can't be built or run (change 2\\x1b[2J)"),
        "{said}"
    );
    assert!(said.contains("changes that aren't committed are not measured"), "{said}");
    assert_eq!(files(&root), before, "nothing of the checkout or its .git is written");
    let (out, _) = texts(&history(&folder, &["show", "cat"]), 0);
    let numbers: Vec<&str> = out.lines().filter(|line| line.contains("change")).collect();
    assert!(numbers.len() == 3 && numbers[1].contains("failed") && numbers[2].contains("change 3\\x1b[2J"), "{out}");
    let (out, _) = texts(&history(&folder, &["show"]), 0);
    assert!(out.lines().count() == 3 && out.contains("cat.page-faults"), "{out}");
    // The failure is a result, too.
    let (_, said) = texts(&history(&folder, &[&run[..], &["--new"]].concat()), 0);
    assert!(said.contains("0 of 3 commits measured in 0 runs, 3 left out"), "{said}");
    // Two runs are there; the failed build is tried again.
    let longer: Vec<&str> = run.iter().map(|&word| if word == "2" { "3" } else { word }).chain(["--resume"]).collect();
    let (_, said) = texts(&history(&folder, &longer), 0);
    assert!(said.contains("2 of 3 commits measured in 2 runs"), "{said}");
    // What fails now doesn't take the place of what was measured.
    let cache = fs::read_dir(folder.join("cache/perfprop/history")).unwrap().next().unwrap().unwrap().path();
    let kept: Vec<_> = fs::read_dir(cache.join("builds")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let commits = Repository::of(&root).unwrap().history("HEAD").unwrap();
    let is_of = |path: &Path, commit: &Commit| path.file_name().unwrap().to_string_lossy().starts_with(&commit.hash);
    assert!(kept.iter().all(|path| commits.iter().any(|commit| is_of(path, commit))), "{kept:?}");
    kept.iter()
        .map(|path| path.join("data"))
        .filter(|path| path.exists())
        .for_each(|path| fs::remove_file(path).unwrap());
    let again: Vec<&str> = run.iter().map(|&word| if word == "2" { "9" } else { word }).chain(["--resume"]).collect();
    let (_, said) = texts(&history(&folder, &again), 1);
    assert!(said.contains("cat ended with code 1, so that it has no result of") && said.contains("data"), "{said}");
    let (out, _) = texts(&history(&folder, &["compare", "HEAD~2", "HEAD"]), 0);
    assert!(out.contains("cat ") && out.contains("cat.page-faults"), "{out}");
    let (_, said) = texts(&history(&folder, &["compare", "HEAD~1", "HEAD~3"]), 2);
    assert!(said.contains("has no results: measure it with perfprop history run"), "{said}");
}

#[test]
fn two_commits_are_measured_now_and_nothing_is_kept() {
    let folder = repository(4);
    let compare =
        ["compare", "--run", "HEAD~1", "HEAD", "--build", "sh build.sh", "--bench", "cat=./work", "--keep", "data"];
    let counts = ["--repeat", "4", "--warmup", "0", "-e", "page-faults", "--threshold", "10000%"];
    let (out, _) = texts(&history(&folder, &[&compare[..], &counts].concat()), 1);
    assert!(out.lines().count() == 3 && out.matches("failed before").count() == 2, "{out}");
    let (_, said) = texts(&history(&folder, &["compare", "HEAD~1", "HEAD", "-e", "page-faults"]), 2);
    assert!(said.contains("--run"), "{said}");
    // A branch may become a folder of branches.
    git(&folder.join("project"), &["branch", "fix"]);
    texts(&history(&folder, &[&compare[..], &counts].concat()), 1);
    git(&folder.join("project"), &["branch", "-D", "fix"]);
    git(&folder.join("project"), &["branch", "fix/a"]);
    let compare: Vec<&str> = compare.iter().map(|&word| if word == "HEAD~1" { "HEAD~3" } else { word }).collect();
    let (out, _) = texts(&history(&folder, &[&compare[..], &counts].concat()), 0);
    let rows = out.lines().take_while(|line| !line.is_empty()).count();
    assert!(rows == 3 && out.contains("cat.page-faults") && out.contains("\nRATIO: of B to A"), "{out}");
    assert!(!folder.join("share").exists(), "no results are kept");
    let cache = fs::read_dir(folder.join("cache/perfprop/history")).unwrap().next().unwrap().unwrap().path();
    let left: Vec<_> = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let is_known = |name: &OsString| [".lock", "builds", "checkout"].iter().any(|known| name == known);
    assert!(left.len() == 3 && left.iter().all(is_known), "{left:?}");
}

#[test]
fn a_cache_may_be_relative() {
    let folder = repository(2);
    let run = ["run", "HEAD~1..", "--build", "sh build.sh", "--bench", "cat=./work", "--keep", "data", "-r", "1"];
    let (_, said) = texts(&history(&folder, &[&run[..], &["--cache", "../own"]].concat()), 0);
    assert!(said.contains("1 of 1 commits measured in 1 run"), "{said}");
    assert!(folder.join("own/checkout/build.sh").exists());
}

#[test]
fn variables_of_another_repository_are_not_listened_to() {
    let folder = repository(2);
    let build = "cp work.in work && chmod +x work && git rev-parse HEAD > data";
    let run = ["run", "HEAD~1", "--build", build, "--bench", "cat=./work", "--keep", "data", "-r", "1"];
    let mut command = command(&folder, &[&run[..], &["--cache", "../own"]].concat());
    // A hook has the first of these, and git the others when it receives commits.
    command.env("GIT_DIR", folder.join("project/.git")).env("GIT_OBJECT_DIRECTORY", folder.join("none"));
    command.env("GIT_COMMON_DIR", folder.join("none"));
    texts(&command.output().unwrap(), 0);
    let commits = Repository::of(&folder.join("project")).unwrap().history("HEAD").unwrap();
    let mut kept = fs::read_dir(folder.join("own/builds")).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept.find(|path| path.is_dir()).unwrap();
    assert_eq!(fs::read_to_string(kept.join("data")).unwrap().trim(), commits[0].hash);
}

#[test]
fn files_of_submodules_are_the_commits_own() {
    let folder = repository(1);
    let (root, words) = (folder.join("project"), folder.join("words"));
    fs::create_dir(&words).unwrap();
    git(&words, &["init", "--quiet"]);
    fs::write(words.join("list"), "a").unwrap();
    git(&words, &["add", "."]);
    git(&words, &["commit", "--quiet", "-m", "words"]);
    let local = ["-c", "protocol.file.allow=always"];
    git(&root, &[&local[..], &["submodule", "--quiet", "add", words.to_str().unwrap(), "words"]].concat());
    git(&root, &["commit", "--quiet", "-m", "with words"]);
    let run =
        ["run", "HEAD", "--build", "sh build.sh", "--bench", "cat=./work words/list", "--keep", "data", "-r", "1"];
    let mut command = command(&folder, &[&run[..], &["--cache", "../own"]].concat());
    // Settings in the surroundings are git's, too.
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "protocol.file.allow");
    let (_, said) = texts(&command.env("GIT_CONFIG_VALUE_0", "always").output().unwrap(), 0);
    assert!(said.contains("1 of 1 commits measured in 1 run"), "{said}");
}

#[test]
fn one_perfprop_builds_in_a_cache_at_a_time() {
    let folder = repository(1);
    let run = ["run", "HEAD", "--build", "sh build.sh", "--bench", "cat=./work", "--keep", "data", "-r", "1"];
    let cache = folder.join("own");
    fs::create_dir(&cache).unwrap();
    let held = perfprop::files::try_lock(&cache.join(".lock")).unwrap().unwrap();
    let run = [&run[..], &["--cache", cache.to_str().unwrap()]].concat();
    let (_, said) = texts(&history(&folder, &run), 125);
    assert!(
        said.contains("another perfprop builds in '") && said.contains("name another folder with --cache"),
        "{said}"
    );
    drop(held);
    texts(&history(&folder, &run), 0);
}

#[test]
fn the_first_commit_is_among_all() {
    let folder = repository(2);
    let run = ["--build", "sh build.sh", "--bench", "cat=./work", "--keep", "data", "-r", "3"];
    let (_, said) = texts(&history(&folder, &[&["run", "--all"], &run[..]].concat()), 0);
    assert!(said.contains("2 of 2 commits measured in 6 runs"), "{said}");
    let (_, said) = texts(&history(&folder, &[&["run", "HEAD~1", "--all"], &run[..]].concat()), 0);
    assert!(said.contains("1 of 1 commits measured in 3 runs"), "{said}");
    let (out, _) = texts(&history(&folder, &["show", "cat"]), 0);
    assert_eq!(out.lines().filter(|line| line.contains('±') && !line.contains("±?")).count(), 2, "{out}");
    let (out, _) = texts(&history(&folder, &["compare", "HEAD~1", "HEAD"]), 0);
    assert!(out.contains("RATIO") && out.contains("INTERVAL") && out.matches('±').count() == 2, "{out}");
}

#[test]
fn a_benchmark_that_failed_is_left_out_of_later_looks() {
    let folder = repository(2);
    let counted = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default().lines().count();
    // Two runs of each commit, which the first look has, decide nothing.
    let whole = format!("whole=sh -c 'echo >> {}/whole'", folder.display());
    let broken = format!("broken=sh -c 'echo >> {}/broken; exit 7'", folder.display());
    let mut args = vec!["compare", "--run", "HEAD~1", "HEAD", "--build", "sh build.sh", "--keep", "data"];
    args.extend(["--warmup", "0", "-r", "8", "--bench", &whole, "--bench", &broken]);
    let (_, said) = texts(&history(&folder, &args), 1);
    assert_eq!(said.matches("broken ended with code 7").count(), 1, "{said}");
    assert!(!said.contains("nothing was decided"), "{said}");
    assert!(counted("whole") > 4, "there were several looks");
    assert_eq!(counted("broken"), 2, "once of each commit");
}

#[test]
fn a_comparison_that_decided_nothing_says_so() {
    let folder = repository(2);
    let args =
        ["compare", "--run", "HEAD~1", "HEAD", "--build", "sh build.sh", "--keep", "data", "--bench", "cat=./work"];
    let (out, said) = texts(&history(&folder, &[&args[..], &["--repeat", "2"]].concat()), 0);
    assert!(out.contains("too few runs") && !out.contains("confidence"), "{out}");
    assert!(said.contains("nothing was decided, as there were too few runs: give --repeat 4 or more"), "{said}");
}

#[test]
fn a_project_names_its_benchmarks_in_a_file() {
    let folder = repository(1);
    let file = "[history]\nbuild = \"sh build.sh\"\nkeep = [\"data\"]\n[history.bench]\ncat = \"./work\"\n";
    fs::write(folder.join("project/perfprop.toml"), file).unwrap();
    let (_, said) = texts(&history(&folder, &["run", "HEAD", "-r", "1"]), 0);
    assert!(said.contains("1 of 1 commits measured in 1 run"), "{said}");
    fs::write(folder.join("project/perfprop.toml"), "[history]\nbuilds = 1\n").unwrap();
    let (_, said) = texts(&history(&folder, &["run", "HEAD"]), 2);
    assert!(said.contains("perfprop.toml:2:1: unknown key \"builds\"; did you mean \"build\"?"), "{said}");
}

#[test]
fn what_can_not_be_measured_is_told() {
    let folder = repository(1);
    let refused = |arguments: &[&str], words: &str| {
        let (_, said) = texts(&history(&folder, arguments), 2);
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    refused(&["run", "HEAD"], "there is nothing to measure: name benchmarks with --bench");
    refused(&["run", "HEAD", "--bench", "x"], "'x' names no benchmark: expected NAME=COMMAND");
    refused(&["run", "none..HEAD", "--bench", "x=true"], "none..HEAD");
    let too_few = "the history has only 1 commit; --all measures them all, the first one, too";
    refused(&["run", "HEAD~20..", "--bench", "x=true"], &format!("there is no 'HEAD~20': {too_few}"));
    refused(&["run", "HEAD^..", "--bench", "x=true"], &format!("there is no 'HEAD^': {too_few}"));
    refused(&["run", "--all", "HEAD..HEAD", "--bench", "x=true"], "name one instead of 'HEAD..HEAD'");
    refused(&["run", "--bench", "x=true"], "<RANGE>");
    refused(&["regressions", "--improvements", "--format", "junit"], "--improvements are no failures");
    refused(&["run", "HEAD..HEAD", "--bench", "x=true"], "there are no commits in HEAD..HEAD");
    refused(&["run", "--bench", "x=true", "--", "--output=x"], "--output=x");
    for verb in [&["regressions"][..], &["show"], &["compare", "HEAD", "HEAD"], &["rm", "x"], &["export", "--asv", "x"]]
    {
        refused(verb, "there are no results in");
        refused(verb, "measure commits with perfprop history run, or name a folder with --results");
    }
    refused(&["rm"], "name what to remove: benchmarks, as in history rm sort, or commits with --commit");
    let elsewhere = Folder::new();
    fs::create_dir(elsewhere.join("project")).unwrap();
    let (_, said) = texts(&history(&elsewhere, &["run", "HEAD", "--bench", "x=true"]), 2);
    assert!(said.contains("is in no git repository"), "{said}");
}

#[test]
fn what_others_measured_is_kept_under_a_commit() {
    let folder = repository(2);
    let files = [
        ("h.json", r#"{"results": [{"command": "./sort 10", "times": [0.3, 0.1, 0.2]}]}"#),
        ("new/sample.json", r#"{"iters": [1.0, 2.0], "times": [1e6, 2e6]}"#),
        ("new/benchmark.json", r#"{"full_id": "parse/small"}"#),
    ];
    files.iter().for_each(|(name, text)| folder.write(name, text));
    texts(&history(&folder, &["add", "../h.json", "../new/sample.json"]), 0);
    texts(&history(&folder, &["add", "--commit", "HEAD~1", "--name", "sort_10", "../h.json"]), 0);
    let (out, _) = texts(&history(&folder, &["show"]), 0);
    let line = |name: &str| out.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("sort_10").contains("200 ms") && line("parse_small").contains("1.00 ms"), "{out}");
    let (_, said) =
        texts(&history(&folder, &["add", "--name", "sort_10", "--commit", "HEAD~1", "../h.json", "../h.json"]), 0);
    assert!(said.contains("what was added before of 'sort_10' is replaced"), "{said}");
    folder.write("other.json", r#"{"results": 3}"#);
    folder.write("empty.json", "");
    let refused = [
        ("data", "'data': expected what 'hyperfine --export-json'"),
        ("../other.json", "other.json': expected what 'hyperfine --export-json'"),
        ("../empty.json", "empty.json': it is empty"),
    ];
    for (file, error) in refused {
        let (_, said) = texts(&history(&folder, &["add", "--name", "x", file]), 2);
        assert!(said.contains(error), "{said}");
    }
    let (_, said) = texts(&history(&folder, &["add", "--commit", "HEAD~1..", "../h.json"]), 2);
    assert!(said.contains("'HEAD~1..' is a range: name one commit"), "{said}");
}

#[test]
fn recordings_are_runs_of_a_benchmark_and_stacks_its_profile() {
    let folder = repository(1);
    for name in ["a.jsonl", "b.jsonl"] {
        let output = perfprop(&folder, &["record", "-q", "-e", "page-faults", "-o", name, "--", "true"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    folder.write("s.folded", "main;f 3\nmain;g 1\n");
    texts(&history(&folder, &["add", "--name", "work", "../a.jsonl", "../b.jsonl", "../s.folded"]), 0);
    let (out, _) = texts(&history(&folder, &["show", "work*"]), 0);
    assert!(
        out.contains("work.page-faults") && out.lines().any(|line| line == "work" || line.starts_with("work on")),
        "{out}"
    );
    let stored = fs::read_dir(folder.join("share/perfprop/history")).unwrap().next().unwrap().unwrap().path();
    let stored = ResultStore::new(&stored.join("results")).read().unwrap();
    let commit = &stored.machines[0].commits[0];
    assert_eq!(commit.results.get("work.page-faults").unwrap().samples[0].as_ref().unwrap().len(), 2);
    assert_eq!(stored.machines[0].profiles[0].of.benchmark, "work");
    let output = perfprop(&folder, &["record", "-q", "-e", "page-faults", "-o", "c.jsonl", "--", "sh", "-c", "true"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, said) = texts(&history(&folder, &["add", "--name", "work", "../a.jsonl", "../c.jsonl"]), 2);
    assert!(said.contains("c.jsonl': it is of another command than the files before it"), "{said}");
    perfprop(&folder, &["record", "-q", "-e", "page-faults", "-o", "d.jsonl", "--", "false"]);
    let (_, said) = texts(&history(&folder, &["add", "../d.jsonl"]), 2);
    assert!(said.contains("d.jsonl': its command failed"), "{said}");
    let (_, said) = texts(&history(&folder, &["add", "../s.folded"]), 2);
    assert!(said.contains("name it with --name"), "{said}");
    // Stacks that aren't text.
    let output = perfprop(&folder, &["export", "s.folded", "--to", "pprof", "-o", "s.pb.gz"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (_, said) = texts(&history(&folder, &["add", "--name", "packed", "../s.pb.gz"]), 0);
    assert!(said.contains("the profile of 'packed'"), "{said}");
    let whole = fs::read_to_string(folder.join("a.jsonl")).unwrap();
    let cut: String =
        whole.lines().take_while(|line| !line.contains("\"type\":\"end\"")).map(|line| format!("{line}\n")).collect();
    folder.write("cut.jsonl", &cut);
    let (_, said) = texts(&history(&folder, &["add", "../cut.jsonl"]), 2);
    assert!(
        said.contains("cut.jsonl': it ends before its command did, so that its counts are of a part of the run"),
        "{said}"
    );
}

#[test]
fn a_known_step_is_found_by_halving() {
    let folder = Folder::new();
    let root = folder.join("project");
    fs::create_dir(&root).unwrap();
    git(&root, &["init", "--quiet", "--initial-branch=main"]);
    for number in 0..12 {
        // The buffer is in pages of its own.
        let size = if number < 7 { 4 } else { 1024 };
        fs::write(root.join("work.in"), format!("#!/bin/sh\nexec dd if=/dev/zero of=/dev/null bs={size}k count=1\n"))
            .unwrap();
        let build = if number == 5 { "exit 1\n" } else { "cp work.in work && chmod +x work\n" };
        fs::write(root.join("build.sh"), format!("{build}# {number}\n")).unwrap();
        git(&root, &["add", "."]);
        git(&root, &["commit", "--quiet", "-m", &format!("change {number}\u{1b}[2J")]);
    }
    let run = ["--build", "sh build.sh", "--bench", "dd=./work", "--warmup", "0", "--bisect"];
    let (out, _) = texts(&history(&folder, &[&["run", "HEAD~11..HEAD"], &run[..], &["dd.page-faults"]].concat()), 0);
    let commits = Repository::of(&root).unwrap().history("HEAD").unwrap();
    assert!(out.starts_with(&format!("{} change 7\\x1b[2J\n", commits[7].short())), "{out}");
    assert!(
        out.contains("dd.page-faults: ") && out.contains("at most 1 of 100 such searches names a wrong commit"),
        "{out}"
    );
    // What was measured on the way is kept.
    let (shown, _) = texts(&history(&folder, &["show", "dd.page-faults"]), 0);
    assert!(shown.contains("change 7") && shown.contains("change 0") && !shown.contains("change 10"), "{shown}");
    let same = ["run", "HEAD~11..HEAD~7", "-r", "6"];
    // A search may be wrong in one of a hundred.
    let search =
        || String::from_utf8(history(&folder, &[&same, &run[..], &["dd.page-faults"]].concat()).stdout).unwrap();
    assert!((0..4).any(|_| search().contains("don't differ by more than chance")), "{}", search());
    let (_, said) = texts(&history(&folder, &[&["run", "HEAD"], &run[..], &["dd"]].concat()), 2);
    assert!(said.contains("--bisect wants a range FROM..TO"), "{said}");
    let (_, said) = texts(&history(&folder, &[&["run", "HEAD~1..HEAD"], &run[..], &["cat"]].concat()), 2);
    assert!(said.contains("there is no benchmark 'cat': name one of 'dd'"), "{said}");
}

/// A repository of commits whose programs are these.
fn programs(scripts: &[&str]) -> Folder {
    let folder = Folder::new();
    let root = folder.join("project");
    fs::create_dir(&root).unwrap();
    git(&root, &["init", "--quiet", "--initial-branch=main"]);
    for (number, script) in scripts.iter().enumerate() {
        fs::write(root.join("work.in"), format!("{script}\n# {number}\n")).unwrap();
        git(&root, &["add", "."]);
        git(&root, &["commit", "--quiet", "-m", &format!("change {number}")]);
    }
    folder
}

const BUILD: [&str; 2] = ["--build", "cp work.in work && chmod +x work"];

#[test]
fn what_was_measured_before_an_error_is_kept() {
    // The third can't be started.
    let (fast, slow) = ("#!/bin/sh\nexec true", "#!/bin/sh\nexec sleep 0.1");
    let folder = programs(&[fast, fast, "#!/nowhere", slow, slow]);
    let run = [&BUILD[..], &["--bench", "wait=./work", "--warmup", "0"]].concat();
    let failed = |more: &[&str]| {
        let output = history(&folder, &[&["run"], &run[..], more].concat());
        assert_ne!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    };
    failed(&["HEAD~4..HEAD", "-r", "6", "--bisect", "wait", "--results", "../searched"]);
    let (out, _) = texts(&history(&folder, &["show", "wait", "--results", "../searched"]), 0);
    assert!(out.contains("change 0") && out.contains("change 4"), "{out}");
    // The order is drawn: in some the first commit is run before the second, which is the one that can't be.
    let is_kept = |seed: u32| {
        let results = format!("../run-{seed}");
        failed(&["HEAD~4..HEAD~2", "--repeat", "1", "--seed", &seed.to_string(), "--results", &results]);
        folder.join("project").join(results).exists()
    };
    assert!((1..9).any(is_kept));
}

/// Adds a result to the store, as if it had been measured.
pub(crate) fn add(store: &ResultStore, commit: &Commit, name: &str, level: f64) {
    let numbers: Vec<f64> = [0.999, 1.0, 1.001, 1.002].map(|factor| factor * level).into();
    let result = BenchmarkResult {
        result: Some(vec![ResultNumber::Number(level)]),
        samples: vec![Some(numbers.into_iter().map(ResultNumber::Number).collect())],
        ..BenchmarkResult::default()
    };
    let results = CommitResults {
        commit: commit.hash.clone(),
        environment: "e".into(),
        results: OrderedMap(vec![(name.to_owned(), result)]),
        ..CommitResults::default()
    };
    let benchmark = Benchmark { name: name.into(), unit: "seconds".into(), ..Benchmark::default() };
    let machine = MachineFacts(OrderedMap(vec![("machine".into(), "m".into())]));
    store.add(&machine, &BenchmarkList([(name.to_owned(), benchmark)].into()), results).unwrap();
}

#[test]
fn the_commit_that_made_a_benchmark_slower_is_named() {
    let folder = repository(12);
    let store = ResultStore::new(&folder.join("results"));
    let commits = Repository::of(&folder.join("project")).unwrap().history("HEAD").unwrap();
    for (place, commit) in commits.iter().enumerate() {
        // The noise is a part in a thousand; the ninth commit costs a fifth.
        let level = (1.0 + 1e-3 * (place * 7 % 5) as f64) * if place < 8 { 0.01 } else { 0.012 };
        add(&store, commit, "sort", level);
        add(&store, commit, "flat", 1.0);
    }
    let (out, _) = texts(&history(&folder, &["regressions", "--results", "../results"]), 1);
    let line = out.lines().nth(1).unwrap();
    assert!(
        line.starts_with("sort") && line.contains("change 8\\x1b[2J") && line.contains(commits[8].short()),
        "{out}"
    );
    assert_eq!(out.lines().count(), 4, "{out}");
    let (out, _) = texts(&history(&folder, &["regressions", "--results", "../results", "--format", "json"]), 1);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert!(json["regressions"][0]["chance"].as_f64().unwrap() < 1e-3, "{out}");
    let of =
        |format: &str| texts(&history(&folder, &["regressions", "--results", "../results", "--format", format]), 1).0;
    let junit = of("junit");
    assert!(
        junit.contains("tests=\"2\" failures=\"1\" skipped=\"0\"") && junit.contains("<testcase name=\"flat\""),
        "{junit}"
    );
    let sarif = || -> Value { serde_json::from_str(&of("sarif")).unwrap() };
    let place = |sarif: &Value| {
        let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        (place["artifactLocation"]["uri"].clone(), place["region"]["startLine"].clone())
    };
    // GitHub refuses a file with an alert without a place.
    assert_eq!(place(&sarif()), (Value::from("perfprop.toml"), Value::from(1)));
    folder.write("project/README.md", "x\n");
    assert_eq!(place(&sarif()), (Value::from("README.md"), Value::from(1)));
    folder.write("project/perfprop.toml", "[history.bench]\nflat = \"true\"\nsort = \"true\"\n");
    let sarif = sarif();
    assert_eq!(place(&sarif), (Value::from("perfprop.toml"), Value::from(3)));
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["properties"]["firstAfter"].as_str(), Some(commits[8].hash.as_str()));
    // asv's own rules count, where there are some.
    folder.write("asv.conf.json", "{\"regressions_thresholds\": {\"so\": 0.3}} // of sort alone");
    let (_, said) = texts(&history(&folder, &["regressions", "--results", "../results"]), 0);
    assert!(said.contains("no regression"), "{said}");
    fs::remove_file(folder.join("asv.conf.json")).unwrap();
    let (_, said) = texts(&history(&folder, &["regressions", "--results", "../results", "--threshold", "0.3"]), 2);
    assert!(said.contains("write 0.3%, or 30% if it is meant as a share"), "{said}");
    let (_, said) = texts(&history(&folder, &["regressions", "--results", "../results", "--threshold", "30%"]), 0);
    assert!(said.contains("no regression in 2 series of 24 results"), "{said}");
    let (out, _) = texts(&history(&folder, &["compare", "HEAD~11", "HEAD", "--results", "../results"]), 0);
    assert!(out.lines().any(|line| line.starts_with("sort") && line.ends_with("higher")), "{out}");
    texts(&history(&folder, &["export", "--asv", "../asv", "--results", "../results"]), 0);
    let conf: Value = serde_json::from_str(&fs::read_to_string(folder.join("asv/asv.conf.json")).unwrap()).unwrap();
    assert_eq!((&conf["branches"][0], &conf["project"]), (&"main".into(), &"project".into()));
    let copied = ResultStore::new(&folder.join("asv/results")).read().unwrap();
    assert_eq!(copied.machines[0].commits.len(), commits.len());
    let (_, said) = texts(&history(&folder, &["export", "--asv", "../asv", "--results", "../results"]), 2);
    assert!(said.contains("is there already"), "{said}");
    // A file that was cut short is told, and the others are read.
    let path = folder.join("results/m").join(format!("{}-e.json", commits[0].short()));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    let (out, said) = texts(&history(&folder, &["regressions", "--results", "../results"]), 1);
    assert!(said.contains("cut short") && out.contains("sort"), "{out}{said}");
}

#[test]
fn a_step_that_was_taken_back_in_part_has_its_own_size_everywhere() {
    let folder = repository(12);
    let store = ResultStore::new(&folder.join("results"));
    let commits = Repository::of(&folder.join("project")).unwrap().history("HEAD").unwrap();
    for (place, commit) in commits.iter().enumerate() {
        let level = [0.01, 0.012, 0.0108][place / 4];
        add(&store, commit, "sort", (1.0 + 1e-4 * (place * 7 % 5) as f64) * level);
    }
    let of =
        |format: &str| texts(&history(&folder, &["regressions", "--results", "../results", "--format", format]), 1).0;
    let text = of("text");
    assert!(text.lines().nth(1).unwrap().contains("10.0 ms  12.0 ms  +20.0% ±0.0%"), "{text}");
    assert!(text.contains(&format!("{}  change 4\\x1b[2J  (of which +8.0% is left)", commits[4].short())), "{text}");
    let markdown = of("markdown");
    assert!(markdown.contains("| 10.0 ms | 12.0 ms | +20.0% ±0.0%, of which +8.0% is left |"), "{markdown}");
    let json: Value = serde_json::from_str(&of("json")).unwrap();
    let rise = &json["regressions"][0];
    let [after, best] = ["after", "best_after"].map(|level| rise[level].as_f64().unwrap());
    assert!((after - 0.012).abs() < 1e-5 && (best - 0.0108).abs() < 1e-5, "{rise}");
    let junit = of("junit");
    assert!(junit.contains("sort: 10.0 ms -&gt; 12.0 ms (+20.0% ±0.0%) in"), "{junit}");
    let sarif: Value = serde_json::from_str(&of("sarif")).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    let message = result["message"]["text"].as_str().unwrap();
    assert!(
        message.contains("10.0 ms -> 12.0 ms (+20.0%") && message.ends_with("(of which +8.0% is left)"),
        "{message}"
    );
    assert_eq!(
        (&result["properties"]["after"], &result["properties"]["bestAfter"]),
        (&rise["after"], &rise["best_after"])
    );
    texts(&history(&folder, &["publish", "../site", "--results", "../results"]), 0);
    let feed = fs::read_to_string(folder.join("site/regressions.xml")).unwrap();
    assert!(
        feed.contains("<title>sort +20.0% at") && feed.contains("went from 10.0 ms to 12.0 ms, by commit"),
        "{feed}"
    );
    assert!(feed.contains("(of which +8.0% is left, 10.8 ms)"), "{feed}");
}

#[test]
fn a_step_between_two_runs_may_be_of_the_machine() {
    let folder = repository(2);
    let sleep = |seconds: &str| format!("#!/bin/sh\nsleep {seconds}\n");
    for number in 2..12 {
        let seconds = if number < 7 { "0.002" } else { "0.05" };
        fs::write(folder.join("project/build.sh"), "cp work.in work && chmod +x work\n").unwrap();
        fs::write(folder.join("project/work.in"), format!("{}# {number}\n", sleep(seconds))).unwrap();
        git(&folder.join("project"), &["commit", "--quiet", "-a", "-m", &format!("change {number}")]);
    }
    let run = |range: &str| {
        let run = ["run", range, "--build", "sh build.sh", "--bench", "wait=./work", "-r", "2", "--warmup", "0"];
        texts(&history(&folder, &run), 0)
    };
    let apart = || {
        let (out, _) = texts(&history(&folder, &["regressions"]), 1);
        let (json, _) = texts(&history(&folder, &["regressions", "--format", "json"]), 1);
        let json: Value = serde_json::from_str(&json).unwrap();
        (out, json["regressions"][0]["measured_apart"].as_bool().unwrap())
    };
    run("HEAD~10..HEAD~5");
    run("HEAD~5..");
    let (out, is_apart) = apart();
    assert!(is_apart && out.contains("change 7  (measured in different runs)"), "{out}");
    let told = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("perfprop history compare --run A B tells whether the commit did it"), "{out}");
    run("HEAD~10..");
    let (out, is_apart) = apart();
    assert!(!is_apart && !out.contains("different runs"), "{out}");
}

fn perfprop(folder: &Folder, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perfprop"));
    command.current_dir(&**folder).args(args).stdin(Stdio::null()).output().unwrap()
}

/// Two levels with a little noise.
fn two_levels() -> String {
    let noise = |at: i32| f64::from(at * 7 % 5) / 10.0;
    (0..40).map(|at| format!("c{at},{},1\n", noise(at) + if at < 25 { 10.0 } else { 12.0 })).collect()
}

#[test]
fn steps_of_a_file_as_text_and_as_json() {
    let folder = Folder::new();
    fs::write(folder.join("levels.csv"), format!("commit,time,weight\n{}", two_levels())).unwrap();
    for method in ["best", "potts"] {
        let output = perfprop(&folder, &["history", "steps", "-j", "--method", method, "levels.csv"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let steps = json["steps"].as_array().unwrap();
        assert_eq!((steps.len(), &steps[1]["left"], &steps[1]["from"]), (2, &Value::from(25), &Value::from("c25")));
        let change = &steps[1]["change"];
        assert!(change["chance"].as_f64().unwrap() < 1e-3 && change["low"].as_f64().unwrap() > 1.5, "{change}");
    }
    let text = String::from_utf8(perfprop(&folder, &["history", "steps", "levels.csv"]).stdout).unwrap();
    assert!(text.contains("40 values: 1 change of level") && text.contains("c25"), "{text}");
    assert!(text.starts_with("LEFT  RIGHT  VALUE  SPREAD ") && !text.contains(" %"), "{text}");
}

#[test]
fn what_is_no_series_is_refused_with_its_line() {
    let folder = Folder::new();
    let refused = |text: &[u8], words: &str| {
        fs::write(folder.join("in.txt"), text).unwrap();
        let output = perfprop(&folder, &["history", "steps", "in.txt"]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("in.txt") && error.contains(words), "{error}");
    };
    refused(b"", "there are no values");
    refused(b"1\n2\nthree\n", "line 3: 'three' is no number");
    refused(b"1\ninf\n", "line 2: 'inf' can't be compared");
    refused(b"0,1,1\n1,,1\n", "line 2: there is a weight without a value");
    refused(b"0,1,1\n1,1,0\n", "line 2: the weight '0' isn't above 0");
    refused(b"0,1,1,1\n", "line 1: it has 4 fields: give a number a line");
    refused(b"\xff\xfe\x00", "it is no text");
    let output = perfprop(&folder, &["history", "steps", "nothing.txt"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("nothing.txt") && error.contains("No such file"), "{error}");
}

/// The names of what is in the folder of builds, without hashes.
fn endings_of_builds(folder: &Folder) -> Vec<String> {
    let cache = fs::read_dir(folder.join("cache/perfprop/history")).unwrap().next().unwrap().unwrap().path();
    let names = fs::read_dir(cache.join("builds")).unwrap().map(|entry| entry.unwrap().path());
    let ending = |path: std::path::PathBuf| path.extension().unwrap_or_default().to_string_lossy().into_owned();
    let mut all: Vec<String> = names.map(ending).collect();
    all.sort();
    all
}

#[test]
fn a_benchmark_whose_program_is_not_there_fails_alone() {
    let folder = repository(2);
    // The second commit adds a program, and the builds are counted.
    let build = "cp work.in work && chmod +x work; echo >> ../../../../../builds; test ! -e more.in || cp work more";
    fs::write(folder.join("project/more.in"), "").unwrap();
    git(&folder.join("project"), &["add", "."]);
    git(&folder.join("project"), &["commit", "--quiet", "-m", "more"]);
    let run = ["run", "HEAD~2..", "--build", build, "--keep", "data", "-r", "1", "--warmup", "0"];
    let run = [&run[..], &["--bench", "cat=./work", "--bench", "more=./more"]].concat();
    let (_, said) = texts(&history(&folder, &run), 0);
    assert!(said.contains("2 of 2 commits measured in 3 runs"), "{said}");
    let hash = Repository::of(&folder.join("project")).unwrap().commit("HEAD~1").unwrap().short().to_owned();
    let missing = format!("more lacks its program './more' after the build, so that it has no result of {hash}\n");
    assert!(said.contains(&missing) && !said.contains("failed"), "{said}");
    let (out, _) = texts(&history(&folder, &["show", "*"]), 0);
    assert!(out.matches("failed").count() == 1 && out.lines().any(|line| line.contains("failed")), "{out}");
    // It isn't built again, as the build left it out before.
    let (_, said) = texts(&history(&folder, &run), 0);
    assert!(said.contains("2 of 2 commits measured in 3 runs") && said.contains(&missing), "{said}");
    assert_eq!(fs::read_to_string(folder.join("builds")).unwrap().lines().count(), 2);
    assert_eq!(endings_of_builds(&folder), ["", "", "log", "log", "missing"]);
    // What is to be kept has no benchmark of its own.
    let (_, said) = texts(&history(&folder, &[&run[..], &["--keep", "more"]].concat()), 0);
    assert!(said.contains(&format!("more isn't there after the build of {hash}")), "{said}");
    assert!(!endings_of_builds(&folder).iter().any(|ending| ending == "part"));
}

#[test]
fn it_is_told_why_a_benchmark_failed() {
    let folder = repository(1);
    let build = ["run", "HEAD", "--build", "sh build.sh", "--keep", "data", "--warmup", "0"];
    let run = |more: &[&str]| texts(&history(&folder, &[&build[..], more].concat()), 1).1;
    let said = run(&["--bench", "f=sh -c 'echo why >&2; exit 7'", "--bench", "g=sh -c 'kill -SEGV $$'", "-r", "2"]);
    assert!(
        said.contains("f ended with code 7, so that it has no result of ") && said.contains("\n      why\n"),
        "{said}"
    );
    assert!(said.contains("g was ended by SIGSEGV, so that it has no result of"), "{said}");
    let said = run(&["--bench", "f=sh -c 'echo >> runs; test $(wc -l < runs) -lt 3'", "-r", "5"]);
    assert!(said.contains("f ended with code 1") && said.contains(" (after 2 runs that went well)\n"), "{said}");
    let said = run(&["--bench", "f=sleep 600", "-r", "2", "--timeout", "1"]);
    assert!(said.contains("f took longer than 1.00 s (--timeout), so that it has no result of "), "{said}");
    fs::write(folder.join("project/perfprop.toml"), "[history]\ntimeout = 1\n").unwrap();
    let said = run(&["--bench", "g=sleep 600", "-r", "2"]);
    assert!(said.contains("g took longer than 1.00 s"), "{said}");
}

#[test]
fn a_benchmark_that_an_interrupt_ended_has_not_failed() {
    let folder = repository(1);
    let build = ["run", "HEAD", "--build", "sh build.sh", "--keep", "data", "--warmup", "0"];
    // The command may have ended before perfprop has the signal.
    for end in ["kill -INT $$", "exit 1", "exit 130"] {
        let bench = format!("f=sh -c 'kill -INT $PPID; {end}'");
        let (_, said) = texts(&history(&folder, &[&build[..], &["--bench", &bench, "-r", "9"]].concat()), 130);
        assert!(said.contains("interrupted: builds and runs until then are kept"), "{end}: {said}");
        assert!(!said.contains("no result"), "{end}: {said}");
    }
    texts(&history(&folder, &["show", "f"]), 2);
}

#[test]
fn results_are_removed_once_that_is_asked_for() {
    let folder = repository(4);
    let store = ResultStore::new(&folder.join("results"));
    let commits = Repository::of(&folder.join("project")).unwrap().history("HEAD").unwrap();
    for (commit, name) in commits.iter().flat_map(|commit| ["sort", "sort.cycles", "grep"].map(|name| (commit, name))) {
        add(&store, commit, name, 1.0);
    }
    // One that a rebase took out of the history.
    let gone = Commit { hash: "0123456789abcdef".into(), ..commits[0].clone() };
    add(&store, &gone, "grep", 1.0);
    let rm = |more: &[&str], code| texts(&history(&folder, &[&["rm", "--results", "../results"], more].concat()), code);
    let count = || store.read().unwrap().machines[0].commits.iter().map(|one| one.results.0.len()).sum::<usize>();
    let (out, said) = rm(&["sort*", "--commit", "HEAD~2.."], 0);
    let (a, b) = (commits[2].short().min(commits[3].short()), commits[2].short().max(commits[3].short()));
    assert_eq!(out, format!("sort of {a}\nsort of {b}\nsort.cycles of {a}\nsort.cycles of {b}\n"));
    assert!(said.contains("nothing is removed yet: the same with --yes removes 4 results"), "{said}");
    assert_eq!(count(), 13);
    let (again, said) = rm(&["sort*", "--commit", "HEAD~2..", "--yes"], 0);
    assert!(again == out && said.contains("4 results removed"), "{said}");
    assert_eq!(count(), 9);
    let (_, said) = rm(&["--commit", "0123456", "--yes"], 0);
    assert!(said.contains("1 result removed"), "{said}");
    assert!(rm(&["srot"], 2).1.contains("there is no benchmark 'srot': sort?"));
    assert!(rm(&["sort", "--commit", "HEAD"], 2).1.contains("there are no such results"));
    rm(&["--commit", "89abcde"], 2);
    rm(&["sort*", "--yes"], 0);
    assert_eq!(store.read().unwrap().benchmarks.0.into_keys().collect::<Vec<_>>(), ["grep"]);
}

#[test]
fn what_nothing_builds_is_told_once() {
    let folder = repository(3);
    let run = ["run", "HEAD~2..", "--bench", "x=./work", "-r", "1"];
    let (_, said) = texts(&history(&folder, &run), 2);
    let why = "'./work' isn't in the repository, and nothing is built, as there is no Cargo.toml here: say what builds it with --build";
    assert!(said.contains(&format!("{why} COMMAND")) && !said.contains("lacks its program"), "{said}");
    assert!(!folder.join("share").exists() && !folder.join("cache").exists(), "nothing is written");
    fs::write(folder.join("project/Makefile"), "work: work.in\n\tcp work.in work\n").unwrap();
    for arguments in [&run[..], &["compare", "--run", "HEAD~1", "HEAD", "--bench", "x=./work"]] {
        let (_, said) = texts(&history(&folder, arguments), 2);
        assert!(said.contains(&format!("{why} make")), "{said}");
    }
    // One of the commits has it: the cause stands before what it leads to.
    fs::write(folder.join("project/work"), "#!/bin/sh\n").unwrap();
    Command::new("chmod").arg("+x").arg(folder.join("project/work")).status().unwrap();
    git(&folder.join("project"), &["add", "work"]);
    git(&folder.join("project"), &["commit", "--quiet", "-m", "work"]);
    let (_, said) = texts(&history(&folder, &run), 0);
    let [cause, effect] = ["nothing is built, as there is no Cargo.toml here", "lacks its program './work'"];
    assert!(said.find(cause).unwrap() < said.find(effect).unwrap() && said.matches(cause).count() == 1, "{said}");
    let (out, _) = texts(&history(&folder, &["show", "x"]), 0);
    assert!(out.contains(" ms") || out.contains(" µs"), "{out}");
}

#[test]
fn what_failed_and_what_is_too_short_is_told() {
    let folder = repository(4);
    let run = ["run", "HEAD~3..", "--build", "sh build.sh", "--bench", "cat=./work", "--keep", "data", "-r", "1"];
    texts(&history(&folder, &run), 0);
    let (_, said) = texts(&history(&folder, &["regressions"]), 0);
    assert!(
        said.contains("too few results to tell whether there is a regression: a step needs 6 numbers of a series"),
        "{said}"
    );
    assert!(said.contains("perfprop history compare A B judges two commits"), "{said}");
    let (out, _) = texts(&history(&folder, &["compare", "HEAD~2", "HEAD"]), 0);
    assert!(out.contains("too few runs (needs 3 runs)") && !out.contains("within error"), "{out}");
    let (out, _) = texts(&history(&folder, &["compare", "HEAD~2", "HEAD~1"]), 0);
    assert!(out.lines().nth(1).is_some_and(|line| line.contains("failed") && line.ends_with("fails now")), "{out}");
    // The newest commits fail.
    for number in 4..6 {
        fs::write(folder.join("project/build.sh"), format!("exit {number}\n")).unwrap();
        git(&folder.join("project"), &["commit", "--quiet", "-a", "-m", &format!("change {number}")]);
    }
    texts(&history(&folder, &[&run[..], &["--new"]].concat()), 0);
    let last = ["run", "HEAD~2..", "--build", "sh build.sh", "--bench", "none=./work", "--keep", "data", "-r", "1"];
    texts(&history(&folder, &last), 1);
    let (out, _) = texts(&history(&folder, &["show", "*"]), 0);
    assert!(out.lines().any(|line| line.contains("failed") && line.ends_with("change 5")), "{out}");
    let (out, _) = texts(&history(&folder, &["show"]), 0);
    assert!(out.lines().any(|line| line.starts_with("none ") && line.ends_with("failed in 2 commits")), "{out}");
}
