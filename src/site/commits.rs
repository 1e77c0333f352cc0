//! Writes what is known of commits: a list of all, and what was measured of each in files of a few.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::entries::{SiteLine, SiteSeries};
use super::script::{call, drawn, number, word};
use super::{Site, SiteCommit, SiteProfile};
use crate::history::{Commit, on_all_cpus, short};

/// The file of the list of commits.
const LIST: &str = "data/commits.js";
/// How many commits share a file.
const OF_A_FILE: usize = 64;
/// The longest subject of a commit that is kept, in characters.
const LONGEST: usize = 200;

/// The list of commits, and the files of what was measured.
///
/// ```text
/// data/commits.js    {each: 64, history, list: [[REVISION, HASH, DATE, SUBJECT, STATE]..], tags: [[REVISION, DATE, NAME]..]}
/// data/commits-N.js  {series: [STEM..], commits: [{hash, rows: [ROW..], profiles: [[BENCHMARK, EVENT, MACHINE, FILE]..]}..]}
/// ROW                [SERIES, LINE, VALUE, LOW, HIGH, SAMPLES, LEVEL BEFORE, REASON, PREVIOUS]
/// ```
///
/// `is_drawn` says of a picture's file whether it is there. STATE is 0 of a commit that has a number, 1 of one that couldn't be built or run, 2 of others. PREVIOUS is the last revision before a step that begins at the commit, else null.
pub(super) fn pages(site: &Site<'_>, is_drawn: impl Fn(&str) -> bool + Sync) -> Vec<(String, Vec<u8>)> {
    let list: Vec<Value> = site.commits.iter().map(entry).collect();
    let data = json!({"each": OF_A_FILE, "history": site.history.len(), "list": list, "tags": tags(site)});
    let mut files = vec![(LIST.to_owned(), call("commits", &Value::Null, &data).into_bytes())];
    let stems: Vec<&str> = site.series.iter().map(|one| one.stem.as_str()).collect();
    let chunks: Vec<_> = site.commits.chunks(OF_A_FILE).enumerate().collect();
    files.extend(on_all_cpus(&chunks, |&(file, commits)| {
        let commits: Vec<Value> = commits.iter().map(|one| measured(site, one, &is_drawn)).collect();
        let text = call("measured", &file.into(), &json!({"series": stems, "commits": commits}));
        (chunk(file), text.into_bytes())
    }));
    files
}

/// The names of these files.
pub(super) fn files(site: &Site<'_>) -> impl Iterator<Item = String> {
    let chunks = site.commits.len().div_ceil(OF_A_FILE);
    [LIST.to_owned()].into_iter().chain((0..chunks).map(chunk))
}

fn chunk(number: usize) -> String {
    format!("data/commits-{number}.js")
}

/// The first characters of a subject, as they may be shown.
pub(super) fn subject(text: &str) -> Value {
    let cut: String = text.chars().take(LONGEST).collect();
    word(&cut)
}

fn entry(one: &SiteCommit<'_>) -> Value {
    json!([one.revision, word(&one.commit.hash), one.commit.date, subject(&one.commit.subject), one.state.code()])
}

/// The tags of the history, in its order.
fn tags(site: &Site<'_>) -> Vec<Value> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    site.options.tags.iter().for_each(|tag| names.entry(&tag.commit).or_default().push(&tag.name));
    let of = |(revision, commit): (usize, &Commit)| {
        let names = names.get(commit.hash.as_str()).into_iter().flatten();
        names.map(|name| json!([revision, commit.date, word(name)])).collect::<Vec<_>>()
    };
    site.history.iter().enumerate().flat_map(of).collect()
}

/// What was measured of a commit.
fn measured(site: &Site<'_>, commit: &SiteCommit<'_>, is_drawn: &impl Fn(&str) -> bool) -> Value {
    let mut rows = Vec::new();
    for (number, series) in site.series.iter().enumerate() {
        if let Ok(place) = series.revisions.binary_search(&commit.revision) {
            rows.extend((0..series.lines.len()).map(|line| row(number, series, line, place)));
        }
    }
    let profile = |one: &SiteProfile<'_>| {
        let of = &one.stored.of;
        let event = match one.before {
            Some(before) => format!("{} since {}", of.event, short(&before.of.commit)),
            None => of.event.clone(),
        };
        json!([word(&of.benchmark), word(event.trim_start()), word(one.machine), one.file])
    };
    let profiles = commit.profiles.iter().filter(|one| is_drawn(&one.file));
    json!({
        "hash": word(&commit.commit.hash),
        "rows": rows,
        "profiles": profiles.map(profile).collect::<Vec<_>>(),
    })
}

fn row(number_of_series: usize, series: &SiteSeries, line_number: usize, place: usize) -> Value {
    let line = &series.lines[line_number];
    let detail = line.details[place];
    let end = |which: fn((f64, f64)) -> f64| detail.interval.map_or(Value::Null, |ends| drawn(which(ends)));
    let (level, previous) = before(line, place);
    json!([
        number_of_series,
        line_number,
        number(line.values[place]),
        end(|ends| ends.0),
        end(|ends| ends.1),
        detail.samples,
        level.map_or(Value::Null, drawn),
        line.reason(place).map(super::points::NoNumber::code),
        previous.map(|place| series.revisions[place]),
    ])
}

/// The level before a place; and where a step begins there, the last place before it.
fn before(line: &SiteLine, place: usize) -> (Option<f64>, Option<usize>) {
    let Some(found) = line.steps.iter().rposition(|step| step.left <= place) else { return (None, None) };
    let step = &line.steps[found];
    match found.checked_sub(1).map(|before| &line.steps[before]) {
        Some(earlier) if step.left == place => (Some(earlier.value), Some(earlier.right - 1)),
        None if step.left == place => (None, None),
        _ => (Some(step.value), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Step;

    #[test]
    fn the_level_before_a_commit() {
        let step = |left, right, value| Step { left, right, value, minimum: value, error: 0.0 };
        let line = SiteLine {
            entry: String::new(),
            values_of_params: Vec::new(),
            values: vec![None, Some(1.0), Some(1.0), None, Some(2.0), Some(2.0)],
            weights: Vec::new(),
            details: Vec::new(),
            steps: vec![step(1, 3, 1.0), step(4, 6, 2.0)],
            changes: Vec::new(),
            rises: Vec::new(),
        };
        let found: Vec<_> = (0..6).map(|place| before(&line, place)).collect();
        let at_step = (Some(1.0), Some(2));
        let expected = [(None, None), (None, None), (Some(1.0), None), (Some(1.0), None), at_step, (Some(2.0), None)];
        assert_eq!(found, expected);
    }
}
