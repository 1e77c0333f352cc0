//! Tests that every event string that perf's own tests accept parses, on any machine.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a test may fail and say why")]

use std::path::{Path, PathBuf};

use perfprop::events::syntax;

use crate::goldens::EVENT_SYNTAX;

fn lists(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "txt")).collect();
    files.sort();
    files
}

#[test]
fn golden_event_syntax() {
    let Some(folder) = EVENT_SYNTAX.find("") else { return };
    let lists = lists(&folder);
    assert!(!lists.is_empty(), "{} has lists", folder.display());
    let mut refused = Vec::new();
    for list in lists {
        let text = std::fs::read_to_string(&list).expect("a readable list");
        for (index, line) in text.lines().enumerate() {
            let is_comment = line.trim().is_empty() || line.starts_with('#');
            if let (false, Err(error)) = (is_comment, syntax::parse(line)) {
                refused.push(format!("{}:{}: {line}: {error:?}", list.display(), index + 1));
            }
        }
    }
    assert!(refused.is_empty(), "refused:\n{}", refused.join("\n"));
}
