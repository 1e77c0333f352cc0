//! Relation files in, relations and messages out: one bad file for each mistake with its message
//! beside it, good files, and properties that hold for any text.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use perfprop::relations::{Parsed, Relation, parse};

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

/// Compares `text` with what is kept beside `path`, or keeps it if `UPDATE_GOLDEN=1`.
fn is_golden(path: &Path, text: &str) -> bool {
    let golden = path.with_extension("txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&golden, text).unwrap();
    }
    let kept = fs::read_to_string(&golden).unwrap_or_default();
    if kept != text {
        eprintln!("{}\n--- kept\n{kept}\n--- now\n{text}", golden.display());
    }
    kept == text
}

#[test]
fn every_bad_file_has_its_message() {
    let files = files("bad");
    assert!(files.len() >= 25);
    let wrong = files.iter().filter(|path| {
        let diagnostics = read(path).strict().unwrap_err();
        !is_golden(path, &format!("{diagnostics}\n"))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&PathBuf>::new());
}

fn summary(relation: &Relation) -> String {
    let Relation { id, weight, tolerance, place, .. } = relation;
    let (formula, weight, tolerance) = (relation.formula(), weight.get(), tolerance.get());
    format!("{place} {id}: {formula} (weight {weight}, tolerance {tolerance})\n")
}

#[test]
fn every_good_file_is_read() {
    let files = files("good");
    let wrong = files.iter().filter(|path| {
        let relations = read(path).strict().unwrap_or_else(|wrong| panic!("{wrong}"));
        !is_golden(path, &relations.iter().map(summary).collect::<String>())
    });
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&PathBuf>::new());
}
