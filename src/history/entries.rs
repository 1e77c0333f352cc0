//! Says how what was measured stands in results: the names, units and versions of benchmarks, and the machine.

use std::collections::BTreeMap;

use super::benches::{BenchCommand, HistoryPlan};
use super::checkout::key;
use super::git::Commit;
use super::results::{Benchmark, BenchmarkResult, CommitResults, MachineFacts, OrderedMap, ResultNumber};
use super::samples::SampleStatistics;
use crate::bench::unit;
use crate::cost::TIME;
use crate::events::Unit;
use crate::run::MeasuredMachine;
use crate::sources::Counter;

/// What asv wants in each file.
fn other() -> BTreeMap<String, serde_json::Value> {
    let empty = || serde_json::Value::Object(serde_json::Map::new());
    [("python", serde_json::Value::from("")), ("requirements", empty()), ("env_vars", empty())]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// What numbers are divided by in results: times are in seconds there, as asv's, and measured in nanoseconds.
pub(super) fn divisor(quantity: &str) -> f64 {
    if quantity == TIME { 1e9 } else { 1.0 }
}

/// What the name of a machine ends with where a model counted.
pub(super) const OF_MODEL: &str = "-emulated";

/// The unit of times of whole runs.
pub const SECONDS: &str = "seconds";
/// The unit of events that are times, such as task-clock.
pub const NANOSECONDS: &str = "nanoseconds";

/// What one run of a benchmark is called for one quantity: `sort` for its time, `sort.cycles` for an event.
pub(super) fn benchmark(bench: &BenchCommand, quantity: &str) -> Benchmark {
    let code = ("code".to_owned(), serde_json::Value::from(bench.argv.join(" ")));
    Benchmark { version: Some(version(bench)), other: [code].into(), ..named_benchmark(&bench.name, quantity) }
}

/// The same of a benchmark whose command isn't known.
pub(super) fn named_benchmark(name: &str, quantity: &str) -> Benchmark {
    let is_time = quantity == TIME;
    Benchmark {
        name: if is_time { name.to_owned() } else { format!("{name}.{quantity}") },
        kind: if is_time { "time" } else { "track" }.to_owned(),
        unit: match unit(quantity) {
            _ if is_time => SECONDS.to_owned(),
            Unit::Nanoseconds => NANOSECONDS.to_owned(),
            _ => quantity.to_owned(),
        },
        ..Benchmark::default()
    }
}

/// The quantity of a benchmark that a name stands for; `None` if it is one of another benchmark.
pub fn quantity<'a>(bench: &BenchCommand, name: &'a str) -> Option<&'a str> {
    if name == bench.name { Some(TIME) } else { name.strip_prefix(&bench.name)?.strip_prefix('.') }
}

/// The benchmark and the event that a name such as `sort.cycles` is made of; `None` of a name that isn't. The unit tells, which is
/// the event itself, or that of events which are times.
pub fn counted_event<'a>(name: &'a str, of_unit: &str) -> Option<(&'a str, &'a str)> {
    let is_event = |event: &str| match of_unit {
        NANOSECONDS => event != TIME && unit(event) == Unit::Nanoseconds,
        of_unit => event == of_unit,
    };
    name.match_indices('.').map(|(dot, _)| (&name[..dot], &name[dot + 1..])).find(|(_, event)| is_event(event))
}

/// What tells a benchmark from one of the same name that ran something else.
pub(super) fn version(bench: &BenchCommand) -> String {
    let alone = HistoryPlan { benches: vec![bench.clone()], ..HistoryPlan::default() };
    format!("{:08x}", key(&alone))
}

/// The result of samples: their median with what is known of it; a failure if there are none.
pub(super) fn result(bench: &BenchCommand, quantity: &str, samples: &[f64]) -> BenchmarkResult {
    let samples: Vec<f64> = samples.iter().map(|sample| sample / divisor(quantity)).collect();
    let empty = BenchmarkResult { version: Some(version(bench)), ..BenchmarkResult::default() };
    let Some(found) = SampleStatistics::of(&samples) else { return empty };
    let kept = samples.into_iter().map(ResultNumber::Number).collect();
    BenchmarkResult { version: empty.version, samples: vec![Some(kept)], ..found.result() }
}

/// What counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedOn {
    /// The machine.
    Machine,
    /// A model of one.
    Model,
}

/// This machine, as results have it.
pub(super) fn this_machine(counter: &Counter) -> MachineFacts {
    let on = match counter {
        Counter::Kernel => CountedOn::Machine,
        Counter::Model(_) => CountedOn::Model,
    };
    machine_facts(MeasuredMachine::this(), on)
}

/// A machine, as results have it; one whose counts are a model's is another one.
pub fn machine_facts(machine: MeasuredMachine, on: CountedOn) -> MachineFacts {
    let MeasuredMachine { host, kernel, arch, cpu, cpus } = machine;
    let name = match on {
        CountedOn::Machine => host,
        CountedOn::Model => format!("{host}{OF_MODEL}"),
    };
    // The name is a folder's.
    let name: String = name.chars().map(|c| if c.is_alphanumeric() || "_-.".contains(c) { c } else { '_' }).collect();
    let name = if name.trim_matches('.').is_empty() { "unknown".to_owned() } else { name };
    let facts = [("machine", name), ("os", kernel), ("arch", arch), ("cpu", cpu), ("num_cpu", cpus.to_string())];
    MachineFacts(OrderedMap(facts.into_iter().map(|(fact, value)| (fact.to_owned(), value)).collect()))
}

/// The environment of what wasn't built here.
pub const ADDED: &str = "added";

/// What was measured of a commit by another program, or at another time, as results of it.
pub fn imported_results(
    commit: &Commit,
    machine: &MachineFacts,
    results: OrderedMap<BenchmarkResult>,
) -> CommitResults {
    results_of(commit, ADDED, facts_of(machine).collect(), results)
}

/// What is known of a machine, as a commit's results have it.
pub(super) fn facts_of(machine: &MachineFacts) -> impl Iterator<Item = (String, Option<String>)> {
    machine.0.0.iter().map(|(name, value)| (name.clone(), Some(value.clone())))
}

/// What was measured of a commit.
pub(super) fn results_of(
    commit: &Commit,
    environment: &str,
    params: Vec<(String, Option<String>)>,
    results: OrderedMap<BenchmarkResult>,
) -> CommitResults {
    CommitResults {
        commit: commit.hash.clone(),
        environment: environment.to_owned(),
        date: commit.date,
        params: OrderedMap(params),
        results,
        other: other(),
        ..CommitResults::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn a_benchmark_has_a_result_for_each_quantity() {
        let bench = BenchCommand::parse("sort=./sort 10").unwrap();
        assert_eq!(benchmark(&bench, TIME).name, "sort");
        assert_eq!(benchmark(&bench, "cycles").name, "sort.cycles");
        assert_eq!(
            ["cycles", "task-clock", TIME].map(|name| benchmark(&bench, name).unit),
            ["cycles", NANOSECONDS, SECONDS]
        );
        assert_eq!(
            [quantity(&bench, "sort"), quantity(&bench, "sort.a.b"), quantity(&bench, "sorted")],
            [Some(TIME), Some("a.b"), None]
        );
        for quantity in ["cycles", "task-clock", "task-clock:u", "pmu.x/a.b/"] {
            let Benchmark { name, unit, .. } = benchmark(&bench, quantity);
            assert_eq!(counted_event(&name, &unit), Some(("sort", quantity)));
        }
        let of = |name: &'static str, unit: &str| counted_event(name, unit);
        assert_eq!([of("sort", SECONDS), of("suite.time_sort", SECONDS), of("a.b", "")], [None; 3]);
        assert_eq!(of("suite.track_wait", NANOSECONDS), None, "asv's, which is no event");
        assert_eq!([divisor(TIME), divisor("cycles"), divisor("task-clock")], [1e9, 1.0, 1.0]);
        let found = result(&bench, TIME, &[3e9, 1e9, 2e9]);
        assert_eq!(found.result, Some(vec![ResultNumber::Number(2.0)]));
        let none = result(&bench, "cycles", &[]);
        assert_eq!((none.result, none.samples.len()), (None, 0), "a failure has no number");
    }
}
