//! Compares with goldens: texts that perfprop made and somebody has looked at, and answers of other tools.
//!
//! `INSTA_UPDATE=always cargo test` renews all that perfprop made. What other tools answered lies outside of this
//! package, and is never renewed.

#![allow(dead_code, unused_macros, unused_imports, reason = "no test uses all of them")]
#![allow(clippy::print_stderr, reason = "a test that skips says why")]

use std::path::{Path, PathBuf};

/// Compares a text with the snapshot of this name in a folder below `tests/`.
macro_rules! assert_golden {
    ($folder:expr, $name:expr, $text:expr) => {
        insta::with_settings!({
            snapshot_path => std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join($folder),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!($name, $text);
        })
    };
}
pub(crate) use assert_golden;

/// Whether goldens are renewed: for those that are a part of a file, which insta can't write.
pub(crate) fn are_renewed() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|update| ["always", "force"].contains(&update.as_str()))
}

/// A folder of other tools' answers: which variable names it, and what it is called where it lies beside this package.
pub(crate) struct Answers(&'static str, &'static str);

/// Stacks and counts, as inferno, fble, pprof and `perf stat` write them.
pub(crate) const TOOLS: Answers = Answers("PERFPROP_GOLDEN", "golden");

/// The vendors' tables of events and metrics, as perf ships them.
pub(crate) const PMU_EVENTS: Answers = Answers("PERFPROP_PMU_EVENTS", "pmu-events");

/// Event strings, and what perf makes of each.
pub(crate) const EVENT_SYNTAX: Answers = Answers("PERFPROP_EVENT_SYNTAX", "event-syntax");

impl Answers {
    /// A file or folder in it; `None`, with a word, where there is none.
    pub(crate) fn find(&self, path: &str) -> Option<PathBuf> {
        let Self(variable, folder) = self;
        let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(folder);
        let path = std::env::var_os(variable).map_or_else(beside, PathBuf::from).join(path);
        if path.exists() {
            return Some(path);
        }
        eprintln!("skipped: no {} ({variable} names its folder)", path.display());
        None
    }
}
