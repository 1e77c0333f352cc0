//! Tests what stands out in recordings of programs with known faults, and of programs without. tests/stands-out/record made
//! them, and tests/stands-out/by-hand.py those of events that few machines count.

use crate::folders::Folder;
use crate::piped::{run, stderr, stdout};

/// The recording, and the fault that is told; none of a program that works.
const PROGRAMS: [(&str, &str); 17] = [
    ("page-faults", "page-faults"),
    ("lock-convoy", "lock-wait"),
    ("busy-loop", ""),
    ("short-processes", "short-processes"),
    ("disk-wait", "disk-wait"),
    ("hand-over", "context-switches"),
    ("more-faults", ""),
    ("memory-leak", "memory-growth"),
    ("thread-imbalance", "thread-imbalance"),
    ("cache-thrash", "cache-misses"),
    ("branch-misses", "branch-misses"),
    ("false-sharing", "false-sharing"),
    ("tlb-reach", "tlb-misses"),
    ("xz", ""),
    ("sqlite3", ""),
    ("python3", ""),
    ("make", ""),
];

#[test]
fn each_fault_is_told_once_and_nothing_else() {
    for (name, fault) in PROGRAMS {
        let file = format!("{}/tests/stands-out/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let output = run(&["replay", "--print", "-I", "1000", &file], b"");
        assert!(output.status.success(), "{name}");
        let text = stdout(&output);
        let told: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("warning: ")).collect();
        let wanted = usize::from(!fault.is_empty());
        assert!(
            told.len() == wanted && told.iter().all(|line| line.ends_with(&format!("({fault})"))),
            "{name}: {told:?}"
        );
    }
}

#[test]
fn a_report_has_the_counts_of_all_what_stands_out_and_threads() {
    let file = format!("{}/tests/stands-out/lock-convoy.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = stdout(&run(&["replay", "--print", &file], b""));
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {text}"));
    let parts =
        [" Performance counter stats for ", "seconds time elapsed", " What stands out:", "(lock-wait)", "  THREAD "];
    assert!(parts.map(place).is_sorted(), "{text}");
    assert!(text.contains("more: key 7 (threads) of perfprop replay"), "{text}");
    // Each once, not an interval.
    assert_eq!((text.matches("task-clock").count(), text.matches("(lock-wait)").count()), (1, 1), "{text}");
    let of_part = stdout(&run(&["replay", "--print", "--range", "2-4", &file], b""));
    assert!(of_part.contains("  THREAD ") && of_part != text, "{of_part}");
}

#[test]
fn a_report_names_the_function_in_which_threads_wait_for_locks() {
    let frames = r#"[{"name":"main","module":"faults"},{"name":"update","module":"faults"},{"name":"futex_wait","module":"[kernel]","kernel":true},{"name":"[waits for a lock]","module":"off-cpu"}]"#;
    let sampled = r#"{"type":"sampled","events":[{"name":"off-cpu","unit":"nanoseconds","rate":{"period":1}}],"call_graph":"auto"}"#;
    // Three waits of 5 s in a run of 10 s.
    let waits = format!(
        r#"{{"type":"stacks","frames":{frames},"stacks":[[null,0],[0,1],[1,2],[2,3]],"tasks":[{{"pid":1,"tid":1,"comm":"faults"}}],"at_ns":9000000000,"after_ns":[0,0,0],"task":[0,0,0],"cpu":[0,0,0],"event":[0,0,0],"weight":[5000000000,5000000000,5000000000],"stack":[3,3,3]}}"#
    );
    let file = format!("{}/tests/stands-out/lock-convoy.jsonl", env!("CARGO_MANIFEST_DIR"));
    let counts = std::fs::read_to_string(file).unwrap_or_default();
    let (header, rest) = counts.split_once('\n').unwrap_or_default();
    let (rounds, end) = rest.trim_end().rsplit_once('\n').unwrap_or_default();
    let folder = Folder::new();
    let path = folder.join("waits.jsonl");
    std::fs::write(&path, [header, sampled, rounds, &waits, end, ""].join("\n")).unwrap_or_default();
    for options in [&["--print"][..], &["--print", "--range", "0-60"]] {
        let output = run(&[&["replay"], options, &[&path.to_string_lossy()]].concat(), b"");
        let text = stdout(&output);
        assert!(text.contains("1.5 threads wait for locks, 100% of that in update:"), "{text}{}", stderr(&output));
    }
}

#[test]
fn what_is_no_fault_is_told_of_a_busy_program() {
    for name in ["busy-loop", "false-sharing", "xz", "make"] {
        let file = format!("{}/tests/stands-out/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let text = stdout(&run(&["replay", "--print", "-I", "1000", &file], b""));
        assert_eq!(text.matches("note: CPU-bound").count(), 1, "{name}: {text}");
    }
}

#[test]
fn a_rate_that_rises_is_told_beside_the_first_minute() {
    let file = format!("{}/tests/stands-out/more-faults.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = stdout(&run(&["replay", "--print", "-I", "1000", &file], b""));
    let told: Vec<&str> = text.lines().filter(|line| line.ends_with("(rate-rise)")).collect();
    assert!(told.len() == 1 && told[0].contains("times its first minute"), "{text}");
}
