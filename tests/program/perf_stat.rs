//! Compares the fields that perfprop prints with those of `perf stat -x` and `-j` with the same options: the
//! same fields in the same order.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::folders::Folder;
use crate::goldens::TOOLS;

/// A command line and what it printed, from the folder of goldens.
struct Golden {
    name: String,
    options: Vec<String>,
    lines: Vec<String>,
}

/// Options whose value is the next word.
const WITH_VALUES: [&str; 12] = ["-e", "-I", "-r", "-p", "-t", "-C", "-M", "-G", "-D", "-o", "-x", "--cpu"];

/// The goldens whose names begin so; `None`, with a word, where there are none.
fn goldens(prefix: &str) -> Option<Vec<Golden>> {
    let entries = fs::read_dir(TOOLS.find("perf-stat")?).unwrap();
    let commands = entries.map(|entry| entry.unwrap().path()).filter(|path| {
        path.extension().is_some_and(|end| end == "cmd")
            && path.file_name().unwrap().to_str().unwrap().starts_with(prefix)
    });
    let golden = |command: PathBuf| {
        let words: Vec<_> = fs::read_to_string(&command).unwrap().split_whitespace().map(str::to_owned).collect();
        // `perf stat OPTIONS [--] PROGRAM ARGUMENTS`: the program is the first word that begins with a dot or a letter
        // and isn't the value of an option.
        let mut options = Vec::new();
        let mut words = words.into_iter().skip(2);
        while let Some(word) = words.next().filter(|word| word.starts_with('-') && word != "--") {
            let takes_value = WITH_VALUES.contains(&word.as_str());
            options.push(word);
            if takes_value {
                options.extend(words.next());
            }
        }
        let text = fs::read_to_string(command.with_extension("out")).unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(str::to_owned).collect();
        Golden { name: command.file_stem().unwrap().to_string_lossy().into_owned(), options, lines }
    };
    let goldens: Vec<_> = commands.map(golden).filter(|golden| golden.options.contains(&"-e".to_owned())).collect();
    assert!(!goldens.is_empty(), "goldens have commands with -e");
    Some(goldens)
}

/// What perfprop prints with these options; `None`, with a word, where it can't count.
fn ours(options: &[String]) -> Option<Vec<String>> {
    // Hardware events of the goldens were not supported where they were made, nor may they be here: an event that
    // always is goes with them.
    let output = Command::new(env!("CARGO_BIN_EXE_perfprop"))
        .arg("stat")
        .args(options)
        .args(["-e", "page-faults", "--", "sleep", "0.12"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    if !output.status.success() {
        eprintln!("skipped: {text}");
        return None;
    }
    Some(text.lines().filter(|line| !line.starts_with("perfprop: ")).map(str::to_owned).collect())
}

#[test]
fn golden_perf_stat_fields() {
    let Some(goldens) = goldens("csv") else { return };
    for Golden { name, options, lines } in goldens {
        let separator = separator(&options);
        let Some(ours) = ours(&options) else { continue };
        let fields = |line: &str| line.split(&*separator).map(str::to_owned).collect::<Vec<_>>();
        for line in &lines {
            let perf = fields(line);
            let place = event_place(&options, line);
            let same = |mine: &Vec<String>| mine[place - 1..=place] == perf[place - 1..=place];
            let mine = ours.iter().map(|line| fields(line)).find(same);
            let mine = mine.unwrap_or_else(|| panic!("{name}: no line for {line} in {ours:#?}"));
            assert_eq!(mine.len(), perf.len() + OURS, "{name}: {mine:?} {perf:?}");
            assert_eq!(mine[perf.len() - 1].is_empty(), mine[perf.len() - 2].is_empty(), "{name}: {mine:?}");
            let number = |text: &str| text.trim().trim_end_matches('%').parse::<f64>().is_ok();
            assert!(number(&mine[perf.len() - 4]) && number(&mine[perf.len() - 3]), "{name}: {mine:?}");
        }
    }
}

/// The fields that perfprop adds.
const OURS: usize = 10;

/// What stands between fields: behind `-x` or the next word, where `\t` is a tab.
fn separator(options: &[String]) -> String {
    let place = options.iter().position(|option| option.starts_with("-x")).unwrap();
    let separator = match options[place].strip_prefix("-x") {
        Some("") | None => &options[place + 1],
        Some(separator) => separator,
    };
    separator.replace("\\t", "\t")
}

/// Where the event's name stands: behind the time, which begins with blanks; the part of the machine and how many CPUs it
/// has; the value and the unit.
fn event_place(options: &[String], line: &str) -> usize {
    let has = |names: &[&str]| options.iter().any(|word| names.contains(&word.as_str()));
    let parts = match () {
        () if has(&["--per-core", "--per-die", "--per-socket", "--per-node"]) => 2,
        () => usize::from(has(&["-A", "--no-aggr", "--per-thread"])),
    };
    2 + usize::from(line.starts_with(' ')) + parts
}

#[test]
fn options_say_where_fields_stand() {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(["-x, -a", "-x\\t", "-x ;"].map(|text| separator(&words(text))), [",", "\t", ";"]);
    assert_eq!(event_place(&words("-C 0"), "451,,page-faults,1"), 2);
    assert_eq!(event_place(&words("-a --no-aggr"), "CPU0,1370,,page-faults,1"), 3);
    assert_eq!(event_place(&words("-I 50 --summary"), "1.49,msec,task-clock,1"), 2);
    assert_eq!(event_place(&words("-I 50 -A"), "     0.05,CPU0,1.49,msec,task-clock,1"), 4);
    assert_eq!(event_place(&words("-a --per-core"), "S0-D0-C0,1,102.02,msec,cpu-clock,1"), 4);
}

#[test]
fn golden_perf_stat_keys() {
    let Some(goldens) = goldens("json") else { return };
    for Golden { name, options, lines } in goldens {
        // A process to attach to isn't the same here.
        if options.contains(&"-p".to_owned()) {
            continue;
        }
        let Some(ours) = ours(&options) else { continue };
        let keys = |line: &str| {
            serde_json::from_str::<Value>(line).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        let perf = keys(&lines[0]);
        let mine = keys(&ours[0]);
        assert_eq!(mine[..perf.len()], perf, "{name}");
        for line in &ours {
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(line["counter-value"].is_number() || line["counter-value"].is_null(), "{name}: {line}");
            assert!(line["status"].is_string(), "{name}: {line}");
        }
    }
}

/// What the `perf` of this machine prints on standard error; `None`, with a word, where there is none.
fn perf(options: &[&str]) -> Option<String> {
    let output = Command::new("perf").arg("stat").args(options).args(["--", "true"]).output();
    let text =
        output.ok().filter(|output| output.status.success()).and_then(|output| String::from_utf8(output.stderr).ok());
    if text.is_none() {
        eprintln!("skipped: there is no perf stat that runs here");
    }
    text
}

#[test]
fn options_print_what_perf_prints_with_them() {
    // The parts of the target, units, names and their order: counts differ from run to run, and perf leaves letters out.
    let fields = |text: &str, places: &[usize]| -> Vec<Vec<String>> {
        let lines = text.lines().filter(|line| line.contains(',') && !line.starts_with("perfprop: "));
        let wanted = |line: &str| {
            let all: Vec<_> =
                line.split(',').map(|field| field.trim_end_matches(":u").trim_end_matches(":k")).collect();
            places.iter().map(|&place| all[place].to_owned()).collect()
        };
        lines.map(wanted).collect()
    };
    for options in [
        &["-x,", "-e", "task-clock,duration_time,user_time"][..],
        &["-x,", "--all-user", "-e", "page-faults,task-clock"],
        &["-x,", "--all-kernel", "-e", "page-faults"],
        &["-x,", "--no-merge", "-S", "-e", "page-faults,task-clock"],
        &["-x,", "--quiet", "-e", "page-faults"],
        &["-x,", "-a", "-A", "-e", "page-faults,context-switches"],
    ] {
        let Some(perf) = perf(options) else { return };
        let output =
            Command::new(env!("CARGO_BIN_EXE_perfprop")).arg("stat").args(options).args(["--", "true"]).output();
        let output = output.unwrap();
        let ours = String::from_utf8(output.stderr).unwrap();
        if !output.status.success() {
            eprintln!("skipped: {ours}");
            continue;
        }
        let places: &[usize] = if options.contains(&"-A") { &[0, 2, 3] } else { &[1, 2] };
        assert_eq!(fields(&ours, places), fields(&perf, places), "{options:?}: {ours} {perf}");
    }
}

/// Runs a command where sysfs has two units that count page faults; `None`, with a word, where that can't be made.
fn with_units(folder: &std::path::Path, command: &[&str]) -> Option<String> {
    let devices = folder.join("devices");
    for unit in ["uncore_fake_0", "uncore_fake_1"] {
        for (file, text) in [("type", "1"), ("format/event", "config:0-63"), ("events/faults", "event=0x2")] {
            let path = devices.join(unit).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
    }
    let script = r#"mount --bind "$0" /sys/bus/event_source/devices && exec "$@""#;
    let words = ["-m", "sh", "-c", script, devices.to_str().unwrap()];
    let Ok(output) = Command::new("unshare").args(words).args(command).output() else {
        eprintln!("skipped: no unshare");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        eprintln!("skipped: {command:?}: {text}");
        return None;
    }
    Some(text)
}

#[test]
fn like_units_are_added_up_and_told_apart_as_perf_does() {
    let folder = Folder::new();
    let rows = |program: &str, options: &[&str]| -> Option<Vec<(String, u64)>> {
        let of_stat = [&[program, "stat", "-x,"], options, &["-e", "uncore_fake/faults/,page-faults", "--", "true"]];
        let text = with_units(&folder, &of_stat.concat())?;
        let row = |line: &str| {
            let fields: Vec<_> = line.split(',').collect();
            (fields[2].trim_end_matches(":u").to_owned(), fields[0].parse().unwrap_or(0))
        };
        Some(text.lines().filter(|line| line.contains("faults")).map(row).collect())
    };
    for options in [&[][..], &["--no-merge"]] {
        let Some(ours) = rows(env!("CARGO_BIN_EXE_perfprop"), options) else { break };
        let faults = ours.last().unwrap().1;
        let units = if options.is_empty() { 1 } else { 2 };
        assert_eq!(ours.len(), units + 1, "{ours:?}");
        assert!(faults > 0 && ours[..units].iter().all(|(_, count)| count * units as u64 == 2 * faults), "{ours:?}");
        let Some(mut theirs) = rows("perf", options) else { continue };
        // perf has its units in no order.
        theirs.sort_by(|(one, _), (other, _)| (one == "page-faults", one).cmp(&(other == "page-faults", other)));
        let names = |rows: &[(String, u64)]| rows.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&ours), names(&theirs), "{options:?}");
    }
}
