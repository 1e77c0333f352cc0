//! Recordings that somebody has changed: reading one gives a recording that every screen and text can show, or an error,
//! and never a panic.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::Path;

use perfprop::estimate::EstimatorKind;
use perfprop::monitor::{Measure, MeasureChoice, Monitor};
use perfprop::recording::{self, Recording};
use perfprop::relations;
use perfprop::sources::RecordedRound;
use perfprop::stacks::Replayed;
use perfprop::text::{self, Repeats, Repetition, SummaryLayout};
use perfprop::tui::{self, Picture, Screen, ScreenOptions};
use perfprop::units::WallNs;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::builders;

const RECORDINGS: [&str; 5] = ["misses", "python", "sqlite-small-cache", "sqlite", "threads"];

/// As many rounds are enough for three intervals and what is noticed after them.
const ROUNDS: usize = 12;

/// Real recordings, and one of them as it would be in two parts and with anchors, as lines of JSON.
fn recordings() -> Vec<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("screenshots");
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let end = lines.last().cloned();
        lines.into_iter().take(ROUNDS).chain(end).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = RECORDINGS.map(read).into();
    all.push(in_parts(&all[2]));
    all
}

/// A recording with the columns [events, truths] as one of two CPUs that counted the same, and anchors.
fn in_parts(lines: &[Value]) -> Vec<Value> {
    let mut lines = lines.to_vec();
    let header = lines[0].as_object_mut().unwrap();
    let events = header["events"].as_array().unwrap().clone();
    let width = events.len();
    let of = |cpu: usize| {
        events.iter().cloned().map(move |mut event| {
            event["scope"] = json!({ "cpu": cpu });
            event
        })
    };
    header["events"] = of(0).chain(of(1)).collect();
    let shifted = |list: &Value, by: &dyn Fn(&mut Value)| -> Value {
        let more = list.as_array().unwrap().iter().cloned().map(|mut entry| {
            by(&mut entry);
            entry
        });
        list.as_array().unwrap().iter().cloned().chain(more).collect()
    };
    let add = |number: &mut Value| *number = json!(number.as_u64().unwrap() as usize + width);
    let groups = shifted(&header["groups"], &|group| group["members"].as_array_mut().unwrap().iter_mut().for_each(add));
    header["groups"] = groups;
    header["truths"] = shifted(&header["truths"], &|truth| add(&mut truth["truth_of"]));
    let anchor = json!({ "anchor_of": 0, "group": 1, "status": "counted" });
    header.insert("anchors".into(), json!([anchor, anchor]));
    for line in lines.iter_mut().filter(|line| line["type"] == "round") {
        for column in ["count", "enabled_ns", "running_ns"] {
            let (events, truths) = line[column].as_array().unwrap().split_at(width);
            line[column] = [events, events, &truths[..2], truths, truths].concat().into();
        }
    }
    lines
}

/// The values within a value, in order; the whole is the first.
fn within(value: &Value) -> usize {
    1 + match value {
        Value::Array(entries) => entries.iter().map(within).sum(),
        Value::Object(fields) => fields.values().map(within).sum::<usize>(),
        _ => 0,
    }
}

/// What is done to one value of a line.
#[derive(Clone, Debug)]
enum Change {
    Put(Value),
    /// A number that is so much larger.
    Add(i64),
    /// An entry or a field is taken away, or stands there twice.
    Remove(usize),
    Double(usize),
    /// A field gets the name of another one, or a name that nobody knows.
    Retag(usize, Option<usize>),
    /// Entries or fields change places, with their values.
    Swap(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(7),
        json!(65_536),
        json!(u32::MAX),
        json!(1_u64 << 40),
        json!(i64::MAX),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(0.5),
        json!(-1e300),
        json!(1e308),
        json!(5e-324),
        json!(""),
        json!("counted"),
        json!("all"),
        json!("\u{1b}[2J\u{202e}"),
        json!("A / (B - B)"),
        json!([]),
        json!([0]),
        json!([u64::MAX, -1, null]),
        json!({}),
        json!({ "cpu": 3 }),
        json!({ "thread": { "tid": -1, "name": "\u{7}" } }),
    ];
    let place = 0..64_usize;
    prop_oneof![
        6 => prop::sample::select(values.to_vec()).prop_map(Change::Put),
        3 => prop::sample::select(vec![1, -1, 2, 64, i64::MAX, i64::MIN]).prop_map(Change::Add),
        2 => place.clone().prop_map(Change::Remove),
        2 => place.clone().prop_map(Change::Double),
        1 => (place.clone(), prop::option::of(place.clone())).prop_map(|(field, name)| Change::Retag(field, name)),
        1 => (place.clone(), place).prop_map(|(a, b)| Change::Swap(a, b)),
    ]
}

/// Stands behind the names of fields that are there already, and isn't written.
const AGAIN: char = '\u{e000}';

fn rebuilt(fields: &mut Map<String, Value>, with: impl FnOnce(&mut Vec<(String, Value)>)) {
    let mut list: Vec<_> = std::mem::take(fields).into_iter().collect();
    with(&mut list);
    for (mut name, value) in list {
        while fields.contains_key(&name) {
            name.push(AGAIN);
        }
        fields.insert(name, value);
    }
}

fn apply(change: &Change, value: &mut Value) {
    match (change, value) {
        (Change::Put(new), value) => *value = new.clone(),
        (Change::Add(more), Value::Number(number)) => {
            if let Some(new) = number.as_u64() {
                *number = new.wrapping_add_signed(*more).into();
            }
        }
        (Change::Remove(at), Value::Array(entries)) if !entries.is_empty() => drop(entries.remove(at % entries.len())),
        (Change::Double(at), Value::Array(entries)) if !entries.is_empty() => {
            entries.push(entries[at % entries.len()].clone());
        }
        (Change::Swap(a, b), Value::Array(entries)) if !entries.is_empty() => {
            let length = entries.len();
            entries.swap(a % length, b % length);
        }
        (_, Value::Object(fields)) if !fields.is_empty() => rebuilt(fields, |list| {
            let length = list.len();
            match change {
                Change::Remove(at) => drop(list.remove(at % length)),
                Change::Double(at) => list.push(list[at % length].clone()),
                Change::Retag(at, Some(other)) => list[at % length].0 = list[other % length].0.clone(),
                Change::Retag(at, None) => list[at % length].0 = "of-the-future".into(),
                Change::Swap(a, b) => {
                    let (a, b) = (a % length, b % length);
                    let kept = list[a].1.clone();
                    list[a].1 = std::mem::replace(&mut list[b].1, kept);
                }
                Change::Put(_) | Change::Add(_) => {}
            }
        }),
        _ => {}
    }
}

/// Changes the value at a place among those within.
fn change_at(value: &mut Value, place: &mut usize, change: &Change) -> bool {
    if *place == 0 {
        apply(change, value);
        return true;
    }
    *place -= 1;
    match value {
        Value::Array(entries) => entries.iter_mut().any(|entry| change_at(entry, place, change)),
        Value::Object(fields) => fields.values_mut().any(|field| change_at(field, place, change)),
        _ => false,
    }
}

fn bytes(lines: &[Value]) -> Vec<u8> {
    lines.iter().map(|line| line.to_string().replace(AGAIN, "") + "\n").collect::<String>().into_bytes()
}

fn monitor(recording: &Recording) -> Monitor {
    let header = recording.header.clone();
    let files = header.relations.iter();
    let relations: Vec<_> =
        files.flat_map(|file| relations::parse(&file.file, file.text.as_bytes()).relations).collect();
    let kind = EstimatorKind::named(&header.estimator).unwrap_or_default();
    builders::monitor(header, relations, kind)
}

/// Everything that `replay` shows of a recording, at two times and two sizes.
fn show(recording: &Recording) {
    let profile = recording.profile().map(|recorded| {
        let mut profile = Replayed::new(recorded);
        let (tree, quality) = profile.until(recorded, WallNs(u64::MAX));
        (tree.clone(), quality.clone())
    });
    let rounds: Vec<_> = recording.rounds.iter().map(|recorded| recorded.round.clone()).collect();
    for screen in Screen::ALL {
        let mut monitor = monitor(recording);
        monitor.take_rounds(&*recording.rounds);
        recording.end.iter().for_each(|end| monitor.end(end.clone()));
        let size = if screen == Screen::Events { (200, 60) } else { (80, 24) };
        let wanted = Picture { size, rounds: rounds.clone(), profile: profile.clone(), ..Picture::default() };
        tui::picture(monitor, &wanted, &ScreenOptions { screen, ..ScreenOptions::default() });
    }
    let mut monitor = monitor(recording);
    for RecordedRound { round, lost } in &*recording.rounds {
        if monitor.round(round, *lost) {
            text::interval(&monitor, SummaryLayout::default());
            text::csv_interval(&monitor, ",", Repetition::Once);
            text::json_interval(&monitor);
            let _ = Measure::ALL.map(|measure| text::block(&monitor, MeasureChoice::Every(measure)));
        }
    }
    recording.end.iter().for_each(|end| monitor.end(end.clone()));
    monitor.findings().iter().for_each(|noted| drop(noted.finding.words(&monitor).to_string()));
    let runs = [monitor];
    let runs = Repeats(&runs);
    let _ = [
        text::summary(&runs, SummaryLayout::default()),
        text::csv_totals(&runs, ",", Repetition::Once),
        text::json_totals(&runs, Repetition::Once),
        text::truth(&runs, None),
    ];
}

#[test]
fn the_recordings_are_right_as_they_are() {
    for lines in recordings() {
        let recording = recording::read(&bytes(&lines)[..]).unwrap();
        assert!(recording.cut.is_none() && recording.end.is_some());
        show(&recording);
    }
}

#[test]
fn a_place_that_is_not_there_is_told() {
    let told = |change: &dyn Fn(&mut Value)| {
        let mut lines = recordings().pop().unwrap();
        change(&mut lines[0]);
        recording::read(&bytes(&lines)[..]).unwrap_err().to_string()
    };
    let set = |path: &'static str, to: usize| told(&move |header| *header.pointer_mut(path).unwrap() = json!(to));
    assert_eq!(set("/groups/7/members/1", 22), "line 1: group 7 names event 22 of 22");
    assert_eq!(set("/anchors/1/anchor_of", 22), "line 1: anchor 1 names event 22 of 22");
    assert_eq!(set("/anchors/1/group", 8), "line 1: anchor 1 names group 8 of 8");
    assert_eq!(set("/truths/3/truth_of", 99), "line 1: truth 3 names event 99 of 22");
    let metric = |header: &mut Value| {
        let events = header["metrics"][1]["events"].as_object_mut().unwrap();
        events.values_mut().for_each(|places| *places = json!([11]));
    };
    assert_eq!(told(&metric), "line 1: metric 1 names event 22 of 22");
}

/// A line, and a change of one of its values. The header is the most likely.
fn changes() -> impl Strategy<Value = Vec<(usize, usize, Change)>> {
    let line = prop_oneof![3 => Just(0), 1 => any::<usize>()];
    prop::collection::vec((line, any::<usize>(), change()), 1..4)
}

proptest! {
    // Each case draws every screen.
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_recording_is_shown_or_refused(which in any::<usize>(), changes in changes()) {
        let mut all = recordings();
        let which = which % all.len();
        let lines = &mut all[which];
        for (line, place, change) in &changes {
            let line = line % lines.len();
            let mut place = place % within(&lines[line]);
            change_at(&mut lines[line], &mut place, change);
        }
        if let Ok(recording) = recording::read(&bytes(lines)[..]) {
            show(&recording);
        }
    }
}
