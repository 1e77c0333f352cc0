//! Says which commits and benchmarks of a run failed, and why.

use super::super::stream::say;
use crate::history::{BenchFailure, BrokenBenchmark, FailedCommit, HistoryOutcome, HistoryPlan, short};
use crate::names::shown;

/// So many commits that failed are named.
const NAMED: usize = 5;

/// Says which commits couldn't be built, and which benchmarks failed.
pub(super) fn tell_failures(plan: &HistoryPlan, outcome: &HistoryOutcome) {
    let is_missing = |one: &BrokenBenchmark| matches!(one.why, BenchFailure::NoProgram(_));
    if plan.build.is_none() && (!outcome.failed.is_empty() || outcome.broken.iter().any(is_missing)) {
        say("nothing is built, as there is no Cargo.toml here: say what builds a commit, as with --build 'make'");
    }
    for FailedCommit { commit, log } in outcome.failed.iter().take(NAMED) {
        let (hash, log) = (commit.short(), log.to_string_lossy());
        let what = format!("{hash} can't be built or run ({})", shown(&commit.subject));
        say(&format!("{what}\n      log of the build: {}", shown(&log)));
    }
    if let Some(FailedCommit { log, .. }) = outcome.failed.get(NAMED) {
        let (left, logs) = (outcome.failed.len() - NAMED, log.parent().unwrap_or(log).to_string_lossy());
        say(&format!("nor can {}\n      logs of the builds: {}", others(left), shown(&logs)));
    }
    broken(&outcome.broken).iter().for_each(|text| say(text));
}

/// A message for each benchmark and each reason why it failed.
fn broken(all: &[BrokenBenchmark]) -> Vec<String> {
    let mut groups: Vec<Vec<&BrokenBenchmark>> = Vec::new();
    for one in all {
        match groups.iter_mut().find(|group| group[0].name == one.name && group[0].why == one.why) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups.sort_by_key(|group| group[0].name.as_str());
    groups.iter().map(|group| broken_alike(group)).collect()
}

/// Says of which commits a benchmark failed for one reason, and what it wrote the last time.
fn broken_alike(group: &[&BrokenBenchmark]) -> String {
    let commits: Vec<String> = group.iter().map(|one| commit(one)).collect();
    let named = listed(&commits);
    let said: String = group[group.len() - 1].said.iter().map(|line| format!("\n      {}", shown(line))).collect();
    let BrokenBenchmark { name, why, .. } = group[0];
    format!("{} {why}, so that it has no result of {named}{said}", shown(name))
}

/// A commit, and how many runs of it went well before the one that failed.
fn commit(one: &BrokenBenchmark) -> String {
    let hash = short(&one.commit);
    match one.whole {
        0 => hash.to_owned(),
        1 => format!("{hash} (after 1 run that went well)"),
        whole => format!("{hash} (after {whole} runs that went well)"),
    }
}

/// Names the first of some: `a, b and 3 others`.
fn listed(names: &[String]) -> String {
    let (named, left) = names.split_at(names.len().min(NAMED));
    match (named, left.len()) {
        ([], _) => String::new(),
        ([one], 0) => one.clone(),
        ([first @ .., last], 0) => format!("{} and {last}", first.join(", ")),
        (named, left) => format!("{} and {}", named.join(", "), others(left)),
    }
}

fn others(count: usize) -> String {
    if count == 1 { "1 other".to_owned() } else { format!("{count} others") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::command::Exit;

    #[test]
    fn a_benchmark_is_told_once_for_each_reason() {
        let one = |name: &str, commit: usize, why: &BenchFailure, whole| BrokenBenchmark {
            name: name.to_owned(),
            commit: format!("{commit:08}ffff"),
            why: why.clone(),
            whole,
            said: vec![format!("line {commit}")],
        };
        let (missing, code) = (BenchFailure::NoProgram("./x".into()), BenchFailure::Ended(Exit::Code(7)));
        let mut all: Vec<BrokenBenchmark> = (0..6).map(|commit| one("x", commit, &missing, 0)).collect();
        all.push(one("f", 1, &code, 3));
        all.push(one("f", 2, &code, 1));
        all.push(one("f", 3, &BenchFailure::Ended(Exit::Signal(11)), 0));
        let told = broken(&all);
        let x = "x lacks its program './x' after the build, so that it has no result of 00000000, 00000001, 00000002, 00000003, 00000004 and 1 other";
        assert_eq!(
            told[0],
            "f ended with code 7, so that it has no result of 00000001 (after 3 runs that went well) and 00000002 (after 1 run that went well)\n      line 2"
        );
        assert_eq!(told[1], "f was ended by SIGSEGV, so that it has no result of 00000003\n      line 3");
        assert_eq!(told[2], format!("{x}\n      line 5"));
        assert_eq!(broken(&all[..7])[1], format!("{x}\n      line 5"));
        assert!(broken(&[all.remove(0), all.remove(0)])[0].contains("of 00000000 and 00000001\n"));
    }
}
