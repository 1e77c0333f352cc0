//! Tests that the README's table of keys is the one that the screens have.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;

use perfprop::tui::key_table;

use crate::goldens;

const BEGIN: &str = "<!-- keys -->\n";
const END: &str = "<!-- /keys -->";

/// As Markdown, where a bar would end a cell and a backtick a name.
fn table() -> String {
    let mut table = String::from("| keys | what they do | where |\n|---|---|---|\n");
    for line in key_table() {
        let keys: Vec<_> = line.keys.split(' ').map(|key| format!("`{}`", key.replace('|', "\\|"))).collect();
        let place = if line.screens.is_empty() { "everywhere".into() } else { line.screens.join(", ") };
        table.push_str(&format!("| {} | {} | {place} |\n", keys.join(" "), line.words));
    }
    table
}

/// The README is renewed with the goldens.
#[test]
fn the_readme_lists_the_keys() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = fs::read_to_string(path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).unwrap();
    let (listed, after) = rest.split_once(END).unwrap();
    if goldens::are_renewed() {
        fs::write(path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
    } else {
        assert_eq!(listed, table(), "INSTA_UPDATE=always cargo test renews it");
    }
}

#[test]
fn what_a_key_does_fits_into_80_columns() {
    // The frame, and the column of the keys.
    let room = 80 - 2 - 16;
    for row in key_table() {
        assert!(row.words.chars().count() <= room, "{}", row.words);
    }
}
