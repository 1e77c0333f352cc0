//! Tests regions against what Stan's profiles counted for the same scripts.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use perfprop_regions::{Counter, Guard, Region, Row, counter, record, snapshot};
use serde_json::Value;

/// A tape of operations that are recorded forwards and run backwards, as automatic differentiation has it.
#[derive(Default)]
struct Tape(Vec<Entry>);

#[derive(Clone, Copy)]
enum Entry {
    /// A region began.
    Begin,
    /// An operation.
    Operation,
    /// A region of this name ended.
    End(&'static Region),
}

impl Tape {
    /// Runs all of it backwards. Its regions are entered at their ends.
    fn run_backwards(&self) {
        let mut runs = Vec::new();
        for entry in self.0.iter().rev() {
            match entry {
                Entry::End(region) => runs.push(region.reverse()),
                Entry::Begin => drop(runs.pop()),
                Entry::Operation => {}
            }
        }
    }
}

/// An open region, and how long the tape was.
struct Open {
    region: &'static Region,
    name: String,
    guard: Guard,
    recorded: Option<usize>,
}

struct Script {
    tape: Tape,
    open: Vec<Open>,
    regions: std::collections::HashMap<String, &'static Region>,
    errors: Vec<(usize, String)>,
    chain: Counter,
    no_chain: Counter,
}

impl Script {
    fn new() -> Self {
        let (chain, no_chain) = (counter("chain_stack"), counter("no_chain_stack"));
        Self {
            tape: Tape::default(),
            open: Vec::new(),
            regions: Default::default(),
            errors: Vec::new(),
            chain,
            no_chain,
        }
    }

    fn region(&mut self, name: &str) -> &'static Region {
        let made = || &*Box::leak(Box::new(Region::new(String::leak(name.to_owned()))));
        self.regions.entry(name.to_owned()).or_insert_with(made)
    }

    fn run(&mut self, place: usize, op: &str) {
        match op.split_at(1) {
            ("+", name) => self.begin(place, name, false),
            ("*", name) => self.begin(place, name, true),
            ("-", "") => {
                if let Some(open) = self.open.pop() {
                    self.end(open);
                }
            }
            ("-", name) => {
                let at = self.open.iter().rposition(|open| open.name == name).unwrap();
                let open = self.open.remove(at);
                self.end(open);
            }
            ("w", micros) => wait(Duration::from_micros(micros.parse().unwrap())),
            ("v", _) => self.tape.0.push(Entry::Operation),
            ("g", _) => self.tape.run_backwards(),
            ("r", _) => self.tape.0.clear(),
            ("t", name) => {
                let region = self.region(name);
                std::thread::spawn(|| drop(region.enter())).join().unwrap();
            }
            other => panic!("{other:?}"),
        }
    }

    fn begin(&mut self, place: usize, name: &str, records: bool) {
        let region = self.region(name);
        let guard = if self.open.iter().any(|open| open.name == name) {
            match region.try_enter() {
                Err(error) => return self.errors.push((place, error.name().to_owned())),
                Ok(guard) => guard,
            }
        } else if records {
            region.enter_recorded()
        } else {
            region.try_enter().unwrap()
        };
        let recorded = records.then_some(self.tape.0.len());
        if records {
            self.tape.0.push(Entry::Begin);
        }
        self.open.push(Open { region, name: name.to_owned(), guard, recorded });
    }

    fn end(&mut self, open: Open) {
        if let Some(before) = open.recorded {
            // Without what the region itself put there. Each operation needs memory of its own on the other stack.
            let within = &self.tape.0[before + 1..];
            open.guard.count(self.chain, within.len() as u64);
            let operations = within.iter().filter(|entry| matches!(entry, Entry::Operation)).count();
            open.guard.count(self.no_chain, operations as u64);
            drop(open.guard);
            self.tape.0.push(Entry::End(open.region));
        }
    }

    fn finish(&mut self) {
        while let Some(open) = self.open.pop() {
            self.end(open);
        }
    }
}

fn wait(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

/// Runs a case on threads of its own; gives its errors, and its rows, the main thread's first.
fn played(case: &Value) -> (Vec<(usize, String)>, Vec<Row>) {
    let ops: Vec<String> = case["ops"].as_array().unwrap().iter().map(|op| op.as_str().unwrap().to_owned()).collect();
    // Names of this case alone.
    let prefix = format!("{}/", case["name"].as_str().unwrap());
    let run = move || {
        let mut script = Script::new();
        for (place, op) in ops.iter().enumerate() {
            match op.split_at(1) {
                (kind @ ("+" | "*" | "t"), name) => script.run(place, &format!("{kind}{prefix}{name}")),
                ("-", name) if !name.is_empty() => script.run(place, &format!("-{prefix}{name}")),
                _ => script.run(place, op),
            }
        }
        script.finish();
        let tid: u32 =
            std::fs::read_link("/proc/thread-self").unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap();
        let mut rows = snapshot().unwrap().rows();
        rows.retain(|row| row.name.starts_with(&prefix));
        rows.sort_by_key(|row| row.thread != tid);
        rows.iter_mut().for_each(|row| row.name = row.name[prefix.len()..].to_owned());
        let errors = script.errors.into_iter().map(|(place, name)| (place, name[prefix.len()..].to_owned())).collect();
        (errors, rows)
    };
    std::thread::spawn(run).join().unwrap()
}

#[test]
fn golden_stan_profile() {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = std::env::var_os("PERFPROP_GOLDEN").map_or(here, PathBuf::from).join("stan-profile");
    let Ok(text) = std::fs::read_to_string(folder.join("regions.json")) else {
        return eprintln!("skipped: no {}", folder.display());
    };
    record(true);
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    for case in &cases {
        check(case);
    }
    eprintln!("{} cases of {}", cases.len(), folder.display());
}

fn check(case: &Value) {
    let name = &case["name"];
    let (errors, rows) = played(case);
    let wanted = case["errors"].as_array().unwrap();
    let told: Vec<(u64, String)> =
        errors.iter().map(|(op, name)| (*op as u64, format!("Profile '{name}' already started!"))).collect();
    let expected: Vec<(u64, String)> = wanted
        .iter()
        .map(|error| (error["op"].as_u64().unwrap(), error["message"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(told, expected, "{name}");
    let wanted = case["rows"].as_array().unwrap();
    assert_eq!(rows.len(), wanted.len(), "{name}: {rows:?}");
    let counters = snapshot().unwrap().counters;
    let of = |row: &Row, name: &str| {
        counters.iter().position(|counter| counter == name).map_or(0, |place| row.counters[place])
    };
    for wanted in wanted {
        let is_main = wanted["thread"] == 0;
        let main = rows[0].thread;
        let mut same =
            rows.iter().filter(|row| row.name == wanted["name"].as_str().unwrap() && (row.thread == main) == is_main);
        let row = same.next().unwrap_or_else(|| panic!("{name}: no row of {wanted}: {rows:?}"));
        let times = &row.times;
        let exact = [
            ("chain_stack", of(row, "chain_stack")),
            ("no_chain_stack", of(row, "no_chain_stack")),
            ("autodiff_calls", times.reverse_calls),
            ("no_autodiff_calls", times.calls - times.recorded),
            ("autodiff_forward_calls", times.recorded),
        ];
        for (member, found) in exact {
            assert_eq!(Some(found), wanted[member].as_u64(), "{name}: {member} of {row:?}");
        }
        // What markers cost is taken off, which may be a few nanoseconds too much.
        let least = 1000.0 * wanted["forward_time_at_least_us"].as_f64().unwrap_or(0.0);
        assert!(times.forward_ns >= 0.995 * least, "{name}: {least} of {row:?}");
        assert!((times.total_ns() - times.forward_ns - times.reverse_ns).abs() < 1e-6, "{name}");
        assert_eq!(times.reverse_ns > 0.0, wanted["reverse_time"].as_f64().unwrap() > 0.0, "{name}: {row:?}");
    }
}
