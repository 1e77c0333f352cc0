//! Measures how long it takes to name places in a program with much debug information, beside binutils' addr2line and
//! `perf report`, in turns: `cargo bench --bench names [-- PROGRAM [PLACES [TURNS]]]`.
//!
//! Without a program it is this project's test `library` with all code and all debug information, which is built once. The places are spread
//! evenly over the program's functions: each is the first in its unit, or nearly, which is the worst that can be asked for. All
//! print the function, file and line, and but for perf what is inlined there. What they read lies in the machine's memory already.

#![allow(clippy::print_stdout, clippy::expect_used, reason = "a bench tells what it measured, and ends where it can't")]

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use perfprop::stacks::live::ProgramNames;

/// Debug information that a program should have at least, in bytes.
const LEAST_DEBUG: u64 = 300_000_000;

/// Tells this program to name places itself.
const ITSELF: &str = "--name";

fn main() {
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [first, program, places] = &words[..]
        && first == ITSELF
    {
        return name(Path::new(program), Path::new(places));
    }
    let program = words.first().map_or_else(built, PathBuf::from);
    let number = |at: usize, default| words.get(at).and_then(|word| word.parse().ok()).unwrap_or(default);
    let (count, turns) = (number(1, 2000), number(2, 3));
    let debug = debug_bytes(&program);
    println!("{}: {} MB of debug information", program.display(), debug / 1_000_000);
    if debug < LEAST_DEBUG {
        println!("that is less than the {} MB that this is about", LEAST_DEBUG / 1_000_000);
    }
    let places = env::temp_dir().join(format!("perfprop-bench-names-{}", std::process::id()));
    let recording = places.with_extension("data");
    let addresses = addresses(&program, count);
    let text: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    fs::write(&places, text).expect("no place for addresses");
    fs::write(&recording, perf_data(&program, &addresses)).expect("no place for a recording");
    let mut ratios = Vec::new();
    for turn in 1..=turns {
        let ours = itself(&program, &places);
        let theirs = addr2line(&program, &places);
        println!("turn {turn}: {ours}; addr2line {theirs}");
        ratios.push(ours.whole_ms / theirs.whole_ms);
        // Once: with lines it takes minutes.
        for sort in ["sym", "sym,srcline"].iter().filter(|_| turn == turns) {
            match perf_report(&recording, sort) {
                Some(perf) => {
                    println!("perf report --sort {sort}: {perf}: a ratio of {:.3}", ours.whole_ms / perf.whole_ms)
                }
                None => println!("left out: perf can't be had here"),
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    println!("median ratio of the time for all to that of addr2line: {:.3}", ratios[ratios.len() / 2]);
    let _ = (fs::remove_file(places), fs::remove_file(recording));
}

/// What one took.
struct NamingCost {
    first_ms: Option<f64>,
    whole_ms: f64,
    peak_mb: f64,
    named: usize,
}

impl std::fmt::Display for NamingCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(first) = self.first_ms {
            write!(f, "first after {first:.0} ms, ")?;
        }
        write!(f, "all after {:.0} ms, {:.0} MB, {} frames", self.whole_ms, self.peak_mb, self.named)
    }
}

/// Names the places of a file, and prints what that took.
fn name(program: &Path, places: &Path) {
    let begun = Instant::now();
    let mut names = ProgramNames::open(program).expect("no program").expect("no ELF file");
    let text = fs::read_to_string(places).expect("no places");
    let addresses = text.lines().filter_map(|line| u64::from_str_radix(line.trim_start_matches("0x"), 16).ok());
    let (mut first, mut frames) = (None, 0);
    for address in addresses {
        frames += names.frames(address).map_or(0, |frames| frames.len());
        first.get_or_insert_with(|| begun.elapsed());
    }
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    println!("{} {} {frames}", first.map_or(0.0, ms), ms(begun.elapsed()));
}

fn itself(program: &Path, places: &Path) -> NamingCost {
    let mut command = Command::new(env::current_exe().expect("no name"));
    command.args([ITSELF.as_ref(), program.as_os_str(), places.as_os_str()]);
    let (text, peak_mb, _) = run(&mut command, None);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [first, whole, frames] = numbers[..] else { panic!("{text}") };
    NamingCost { first_ms: Some(first), whole_ms: whole, peak_mb, named: frames as usize }
}

fn addr2line(program: &Path, places: &Path) -> NamingCost {
    let mut command = Command::new("addr2line");
    command.args(["-f", "-i", "-C", "-e"]).arg(program);
    let (text, peak_mb, whole_ms) = run(&mut command, Some(places));
    NamingCost { first_ms: None, whole_ms, peak_mb, named: text.lines().count() / 2 }
}

/// Names what was recorded. For lines perf asks addr2line, whose memory isn't in what is told of it.
fn perf_report(recording: &Path, sort: &str) -> Option<NamingCost> {
    Command::new("perf").arg("--version").output().ok().filter(|output| output.status.success())?;
    let mut command = Command::new("perf");
    command.args(["report", "-f", "--stdio", "--no-children", "--sort", sort, "-i"]).arg(recording);
    let (text, peak_mb, whole_ms) = run(&mut command, None);
    let is_line = |line: &&str| !line.starts_with('#') && !line.trim().is_empty();
    Some(NamingCost { first_ms: None, whole_ms, peak_mb, named: text.lines().filter(is_line).count() })
}

/// What `perf record` would have written of samples at these addresses (perf's Documentation/perf.data-file-format.txt).
fn perf_data(program: &Path, addresses: &[u64]) -> Vec<u8> {
    /// Where the kernel puts programs.
    const BASE: u64 = 0x5555_5555_4000;
    const ATTRIBUTES: u64 = 128;
    // PERF_SAMPLE_IP, _TID, _TIME and _PERIOD.
    let sampled = 1 | 2 | 4 | 256_u64;
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    let record = |kind: u64, misc: u64, body: &[u8]| {
        [&words(&[kind | misc << 32 | (8 + body.len() as u64) << 48])[..], body].concat()
    };
    let text = |text: &[u8]| [text, &vec![0; 8 - text.len() % 8][..]].concat();
    let process = 7 | 7 << 32;
    let mut data = record(3, 0, &[words(&[process]), text(b"named")].concat());
    for (offset, address, length) in code_segments(program) {
        let mapped = [words(&[process, BASE + address, length, offset]), text(program.as_os_str().as_encoded_bytes())];
        data.extend(record(1, 2, &mapped.concat()));
    }
    for (number, address) in addresses.iter().enumerate() {
        data.extend(record(9, 2, &words(&[BASE + address, process, number as u64 + 1, 1])));
    }
    // An event of the kernel's own (1), cpu-clock, with a sample each 1000.
    let mut event = words(&[1 | ATTRIBUTES << 32, 0, 1000, sampled]);
    event.resize(ATTRIBUTES as usize, 0);
    let (header, attributes) = (104, ATTRIBUTES + 16);
    let begin =
        words(&[header, attributes, header, attributes, header + attributes, data.len() as u64, 0, 0, 0, 0, 0, 0]);
    [&b"PERFILE2"[..], &begin, &event, &words(&[0, 0]), &data].concat()
}

/// Offset in the file, address and length of each part of a program that holds code.
fn code_segments(program: &Path) -> Vec<(u64, u64, u64)> {
    let output = Command::new("readelf").arg("-lW").arg(program).output().expect("no readelf");
    let text = String::from_utf8_lossy(&output.stdout);
    let segment = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_code = words.first() == Some(&"LOAD") && words.get(7) == Some(&"E");
        let hex = |at: usize| u64::from_str_radix(words.get(at)?.trim_start_matches("0x"), 16).ok();
        is_code.then(|| Some((hex(1)?, hex(2)?, hex(4)?)))?
    };
    text.lines().filter_map(segment).collect()
}

/// What a command prints, the most memory that it had in MB, and its time in ms.
fn run(command: &mut Command, input: Option<&Path>) -> (String, f64, f64) {
    let input = input.map_or_else(Stdio::null, |path| fs::File::open(path).expect("no input").into());
    let begun = Instant::now();
    let child = command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it doesn't start");
    let pid = child.id();
    let watched = std::thread::spawn(move || {
        let mut peak = 0.0_f64;
        while let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) {
            let Some(line) = status.lines().find(|line| line.starts_with("VmHWM:")) else { break };
            peak = line.split_whitespace().nth(1).and_then(|kb| kb.parse().ok()).unwrap_or(peak).max(peak);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        peak / 1024.0
    });
    let output = child.wait_with_output().expect("it doesn't end");
    let took = begun.elapsed().as_secs_f64() * 1e3;
    (String::from_utf8_lossy(&output.stdout).into_owned(), watched.join().unwrap_or(0.0), took)
}

/// Addresses in so many functions, spread over all.
fn addresses(program: &Path, count: usize) -> Vec<u64> {
    let output = Command::new("nm").args(["-S", "--defined-only"]).arg(program).output().expect("no nm");
    let text = String::from_utf8_lossy(&output.stdout);
    let middle = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_function = matches!(words.get(2), Some(&("t" | "T")));
        let hex = |at: usize| u64::from_str_radix(words.get(at)?, 16).ok();
        is_function.then(|| Some(hex(0)? + hex(1)? / 2))?
    };
    let mut all: Vec<u64> = text.lines().filter_map(middle).collect();
    all.sort_unstable();
    let step = (all.len() / count.max(1)).max(1);
    all.into_iter().step_by(step).take(count).collect()
}

/// The length of all debug information of a program.
fn debug_bytes(program: &Path) -> u64 {
    let output = Command::new("readelf").arg("-SW").arg(program).output().expect("no readelf");
    let text = String::from_utf8_lossy(&output.stdout);
    let size = |line: &str| {
        let words: Vec<_> = line.split(']').nth(1)?.split_whitespace().collect();
        words.first()?.starts_with(".debug_").then(|| u64::from_str_radix(words.get(4)?, 16).ok())?
    };
    text.lines().filter_map(size).sum()
}

/// This project's largest test with all debug information, in a folder of its own.
fn built() -> PathBuf {
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--no-run", "--test", "library", "--message-format=json"]);
    cargo.env("CARGO_TARGET_DIR", folder.join("names-bench"));
    // Functions that nobody calls stay, with what describes them.
    cargo.env("RUSTFLAGS", "-C link-dead-code").env("CARGO_INCREMENTAL", "0");
    cargo.envs(["CARGO_PROFILE_TEST_DEBUG", "CARGO_PROFILE_DEV_DEBUG"].map(|name| (name, "2")));
    let _ = writeln!(std::io::stdout(), "building a program with much debug information ...");
    let output = cargo.stderr(Stdio::inherit()).output().expect("no cargo");
    let text = String::from_utf8_lossy(&output.stdout);
    let path = text.lines().rev().find_map(|line| line.split("\"executable\":\"").nth(1)?.split('"').next());
    PathBuf::from(path.expect("cargo built nothing"))
}
