//! Tests relation files: one bad file for each mistake with its message beside it, good files, and properties
//! that hold for any text.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use perfprop::relations::{Diagnostics, MAX_FILE, Parsed, Relation, load, parse};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::goldens::assert_golden;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/relations").join(name)
}

/// The files of a folder that end in `.json`, sorted.
fn files(name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path());
    let mut files = entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect::<Vec<_>>();
    files.sort();
    files
}

fn read(path: &Path) -> Parsed {
    parse(path.file_name().unwrap().to_str().unwrap(), &fs::read(path).unwrap())
}

/// The name that a file and its golden have in common.
fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

#[test]
fn every_bad_file_has_its_message() {
    let files = files("bad");
    assert!(files.len() >= 25);
    for path in &files {
        let diagnostics = read(path).strict().unwrap_err();
        assert_golden!("relations/bad", stem(path), diagnostics.to_string());
    }
}

fn summary(relation: &Relation) -> String {
    let Relation { id, weight, tolerance, place, .. } = relation;
    let (formula, weight, tolerance) = (relation.formula(), weight.get(), tolerance.get());
    format!("{place} {id}: {formula} (weight {weight}, tolerance {tolerance})\n")
}

#[test]
fn every_good_file_is_read() {
    for path in files("good") {
        let relations = read(&path).strict().unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_golden!("relations/good", stem(&path), relations.iter().map(summary).collect::<String>());
    }
}

fn mistakes(text: &str) -> Diagnostics {
    parse("f", text.as_bytes()).strict().unwrap_err()
}

#[test]
fn a_file_that_is_too_large_is_not_looked_at() {
    let message = "relation file f: larger than 4 MiB, which no relation file needs";
    assert_eq!(mistakes(&" ".repeat(10_000_000)).to_string(), message);
    let largest = format!("[{}]", " ".repeat(MAX_FILE - 2));
    assert!(parse("f", largest.as_bytes()).strict().unwrap().is_empty());
}

#[test]
fn nested_brackets_are_neither_deep_nor_slow() {
    for bracket in ["[", "{", "[{", "[{\"id\":", "[{\"id\":[", "{\"relation\": {\"", "[{\"relation\":A=("] {
        let wrong = mistakes(&bracket.repeat(100_000));
        assert!((1..=20).contains(&wrong.list.len()), "{bracket}: {}", wrong.list.len());
        assert_eq!(wrong.fine, 0);
    }
}

#[test]
fn a_million_parentheses_are_refused() {
    let open = "(".repeat(1_000_000);
    let wrong = mistakes(&format!("[{{ \"relation\": \"A = {open}\" }}, {{ \"relation\": A = {open} }}]"));
    let messages = wrong.list.iter().map(|wrong| wrong.message.as_str()).collect::<Vec<_>>();
    assert_eq!(messages[0], "an expression of 1000004 bytes is too long");
    assert_eq!(wrong.broken, ["R1", "R2"]);
}

#[test]
fn the_number_of_relations_is_bounded() {
    let file = |count| format!("[{}]", r#"{"relation":"A=B"},"#.repeat(count));
    assert_eq!(parse("f", file(100_000).as_bytes()).strict().unwrap().len(), 100_000);
    let wrong = mistakes(&file(100_001));
    assert_eq!((wrong.fine, wrong.list.len()), (100_000, 1));
    assert_eq!(wrong.list[0].message, "more than 100000 relations in one file");
}

#[test]
fn made_ids_never_collide() {
    let file = r#"[{"relation": "A = B"}, {"id": "R1", "relation": "A = B"}, {"id": "R1-2", "relation": "A = B"},
        {"id": "R5", "relation": "A = B"}, {"relation": "A = B"}]"#;
    let relations = parse("f", file.as_bytes()).strict().unwrap();
    let ids = relations.iter().map(|relation| relation.id.as_str()).collect::<Vec<_>>();
    assert_eq!(ids, ["R1-3", "R1", "R1-2", "R5", "R5-2"]);
}

#[test]
fn what_is_right_can_be_used_without_what_is_wrong() {
    let parsed = read(&folder("bad").join("second-plus.json"));
    let ids = parsed.relations.iter().map(|relation| relation.id.as_str()).collect::<Vec<_>>();
    assert_eq!(ids, ["R2", "R3", "R4"]);
    assert_eq!((parsed.diagnostics.fine, parsed.diagnostics.broken), (3, vec!["R1".to_owned()]));
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let path = folder("no\u{1b}such.json");
    let message = load(&path).unwrap_err().to_string();
    assert!(message.contains("no\\x1bsuch.json: there is no such file\n"), "{message}");
    let message = load(folder("good")).unwrap_err().to_string();
    assert!(message.ends_with("good: it is a folder; a relation file is one file"), "{message}");
    assert_eq!(load(folder("good").join("design.json")).unwrap().strict().unwrap().len(), 2);
}

#[test]
fn saved_relations_come_back_as_they_were() {
    for path in files("good") {
        let relations = read(&path).strict().unwrap();
        let saved = serde_json::to_string(&relations).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Relation>>(&saved).unwrap(), relations);
    }
}

#[test]
fn a_saved_relation_is_an_object_of_a_relation_file_with_its_place() {
    let file = r#"[{ "eventFrom": "A", "eventTo": "B", "expectedMean": 2*{mean}, "tolerance": 2% }]"#;
    let relations = parse("f", file.as_bytes()).strict().unwrap();
    let saved = serde_json::to_string(&relations[0]).unwrap();
    let expected = r#"{"id":"R1","eventFrom":"A","eventTo":"B","expectedMean":"2 * {mean}","#;
    let rest = r#""weight":0.25,"tolerance":0.02,"place":{"file":"f","line":1,"column":2}}"#;
    assert_eq!(saved, format!("{expected}{rest}"));
}

#[test]
fn a_saved_relation_that_no_file_could_have_is_refused() {
    let place = r#""place":{"file":"f","line":1,"column":2}"#;
    let rest = format!(r#""id":"R1","weight":0.25,"tolerance":0.02,{place}"#);
    let load = |form: &str| serde_json::from_str::<Relation>(&format!("{{{form},{rest}}}"));
    assert!(load(r#""relation":"A = B""#).is_ok());
    for form in [r#""relation":"A = ""#, r#""relation":"A""#, r#""eventFrom":"A""#, r#""relations":"A = B""#] {
        assert!(load(form).is_err(), "{form}");
    }
    let heavy = format!(r#"{{"relation":"A = B",{}}}"#, rest.replace("0.25", "2"));
    let error = serde_json::from_str::<Relation>(&heavy).unwrap_err().to_string();
    assert!(error.contains("2 is not above 0 and at most 1"), "{error}");
}

/// Whether a terminal shows `text` as it is.
fn is_printable(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !(c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)))
}

fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let parsed = parse("f", bytes);
    let Diagnostics { list, fine, broken, .. } = &parsed.diagnostics;
    prop_assert_eq!(*fine, parsed.relations.len() + parsed.metrics.len());
    prop_assert!(broken.is_empty() || !list.is_empty());
    prop_assert!(is_printable(&parsed.diagnostics.to_string()));
    let metrics = parsed.metrics.iter().map(|metric| &metric.name);
    let mut ids = parsed.relations.iter().map(|relation| &relation.id).chain(metrics).chain(broken).collect::<Vec<_>>();
    ids.sort();
    ids.dedup();
    prop_assert_eq!(ids.len(), fine + broken.len());
    let saved = serde_json::to_string(&parsed.relations).unwrap();
    prop_assert_eq!(serde_json::from_str::<Vec<Relation>>(&saved).unwrap(), parsed.relations);
    Ok(())
}

/// All good and bad files that are text, as material to damage.
fn material() -> Vec<String> {
    let files = ["good", "bad"].into_iter().flat_map(files);
    let short = files.filter_map(|path| fs::read_to_string(path).ok()).filter(|text| text.len() < 2000);
    short.collect()
}

fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(7);
    ProptestConfig { cases: 1500, failure_persistence: None, rng_seed, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes)?;
    }

    #[test]
    fn no_words_of_the_format_make_it_panic(
        text in r#"([\[\]{}:,"\\ \n\t()/*+=%.\x00-é漢]|"id"|"R1"|: |"relation"|"A = B"|"eventFrom"|"A"|"eventTo"|"B"|"expectedMean"|\{mean\}|"weight"|0.5){0,40}"#,
    ) {
        check(text.as_bytes())?;
    }

    #[test]
    fn damaged_files_are_still_read_to_their_end(
        text in prop::sample::select(material()),
        cut in any::<(prop::sample::Index, prop::sample::Index)>(),
        patch in r#"[\[\]{}:,"\\ \n\x00(é]{0,3}"#,
    ) {
        let mut bytes = text.into_bytes();
        let from = cut.0.index(bytes.len() + 1);
        let to = (from + cut.1.index(12)).min(bytes.len());
        bytes.splice(from..to, patch.into_bytes());
        check(&bytes)?;
    }
}
