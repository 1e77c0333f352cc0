//! Reads the rules of regressions that stand in asv's configuration: thresholds and first commits of benchmarks, by patterns of names.

use std::fmt;

use regex_lite::Regex;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::regressions::{RegressionRule, THRESHOLD};
use crate::names::{quoted, shown};

/// What asv's configuration says of regressions. A pattern holds for the names that begin with what it matches; behind a
/// name stands its branch, as in `sort('quick', 10)@main`.
#[derive(Clone, Debug, Default)]
pub struct AsvRules {
    thresholds: Vec<(Regex, f64)>,
    /// The first revision that counts; `None` leaves the benchmarks out.
    first: Vec<(Regex, Option<u64>)>,
    /// The branch whose commits the results are of, where that is known.
    branch: Option<String>,
}

/// Why a configuration has no rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AsvRulesError {
    /// It isn't JSON with comments.
    Syntax(String),
    /// A pattern isn't a regular expression.
    Pattern(String, String),
    /// A threshold isn't a share.
    Threshold(String),
    /// There is no such commit in the history.
    NoCommit(String),
}

impl fmt::Display for AsvRulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => f.write_str(&shown(error)),
            Self::Pattern(pattern, _) if looks_around(pattern) => write!(
                f,
                "pattern {} looks ahead or behind, which perfprop's patterns can't: write it without, in this file or in one named with --asv-conf",
                quoted(pattern)
            ),
            Self::Pattern(pattern, error) => write!(f, "pattern {}: {}", quoted(pattern), shown(error)),
            Self::Threshold(pattern) => write!(f, "the threshold of {} isn't a share such as 0.05", quoted(pattern)),
            Self::NoCommit(name) => {
                write!(f, "the first commit {} isn't in the history: name one that leads to --tip", quoted(name))
            }
        }
    }
}

impl std::error::Error for AsvRulesError {}

/// The parts of `asv.conf.json` that are read.
#[derive(Deserialize)]
struct AsvConfiguration {
    #[serde(default)]
    regressions_thresholds: Map<String, Value>,
    #[serde(default)]
    regressions_first_commits: Map<String, Value>,
}

impl AsvRules {
    /// Reads the text of `asv.conf.json`. `revision` finds the place of a commit in the history by its name.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub fn parse(text: &str, revision: impl Fn(&str) -> Option<u64>) -> Result<Self, AsvRulesError> {
        let file: AsvConfiguration =
            serde_json::from_str(&without_comments(text)).map_err(|error| AsvRulesError::Syntax(error.to_string()))?;
        let threshold = |(pattern, share): (&String, &Value)| {
            let share = share.as_f64().filter(|share| *share >= 0.0);
            Ok((regex(pattern)?, share.ok_or_else(|| AsvRulesError::Threshold(pattern.clone()))?))
        };
        let first = |(pattern, commit): (&String, &Value)| {
            // asv looks at steps that end after the commit that follows.
            let place =
                |name| revision(name).map(|place| place + 1).ok_or_else(|| AsvRulesError::NoCommit(name.into()));
            Ok((regex(pattern)?, commit.as_str().map(place).transpose()?))
        };
        Ok(Self {
            thresholds: file.regressions_thresholds.iter().map(threshold).collect::<Result<_, _>>()?,
            first: file.regressions_first_commits.iter().map(first).collect::<Result<_, _>>()?,
            branch: None,
        })
    }

    /// The rules for the commits of a branch.
    #[must_use]
    pub fn of_branch(self, branch: Option<String>) -> Self {
        Self { branch, ..self }
    }

    /// Whether it says nothing of regressions.
    pub fn is_empty(&self) -> bool {
        self.thresholds.is_empty() && self.first.is_empty()
    }

    /// What counts for a benchmark with its parameters: of several thresholds the largest, of several first commits the last;
    /// `None` if it is left out. `threshold` is that of names without a pattern.
    pub fn rule(&self, entry: &str, threshold: f64) -> Option<RegressionRule> {
        let entry = self.branch.as_ref().map_or_else(|| entry.to_owned(), |branch| format!("{entry}@{branch}"));
        let shares = self.thresholds.iter().filter(|(pattern, _)| pattern.is_match(&entry)).map(|(_, share)| *share);
        let firsts = self.first.iter().filter(|(pattern, _)| pattern.is_match(&entry));
        let from = firsts.map(|(_, first)| *first).try_fold(0, |last, first| Some(first?.max(last)))?;
        Some(RegressionRule { threshold: shares.reduce(f64::max).unwrap_or(threshold), from })
    }
}

/// Which steps are regressions, benchmark by benchmark.
#[derive(Clone, Debug, Default)]
pub struct RegressionRules {
    /// The threshold of all benchmarks, whatever asv's configuration says; `None` leaves that to it.
    pub threshold: Option<f64>,
    /// What asv's configuration says.
    pub of_asv: AsvRules,
}

impl RegressionRules {
    /// What counts for a benchmark with its parameters; `None` if it is left out.
    pub fn rule(&self, entry: &str) -> Option<RegressionRule> {
        let rule = self.of_asv.rule(entry, THRESHOLD)?;
        Some(RegressionRule { threshold: self.threshold.unwrap_or(rule.threshold), ..rule })
    }

    /// The threshold of benchmarks that asv's configuration says nothing of.
    pub fn usual_threshold(&self) -> f64 {
        self.threshold.unwrap_or(THRESHOLD)
    }

    /// Whether benchmarks have thresholds of their own.
    pub fn has_several_thresholds(&self) -> bool {
        self.threshold.is_none() && !self.of_asv.thresholds.is_empty()
    }
}

/// Whether a pattern asks what stands before or after a place, as Python's may.
fn looks_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|mark| pattern.contains(mark))
}

fn regex(pattern: &str) -> Result<Regex, AsvRulesError> {
    let problem = |error: regex_lite::Error| AsvRulesError::Pattern(pattern.to_owned(), error.to_string());
    Regex::new(&format!("^(?:{pattern})")).map_err(problem)
}

/// JSON without the comments and the last commas that asv allows; lines stay where they are.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut in_string = false;
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('\\', Some(&next)) if in_string => {
                out.extend([c, next]);
                rest.next();
            }
            ('"', _) => {
                in_string = !in_string;
                out.push(c);
            }
            ('/', Some('/')) if !in_string => while rest.next_if(|&c| c != '\n').is_some() {},
            (']' | '}', _) if !in_string => {
                let end = out.trim_end().len();
                if out[..end].ends_with(',') {
                    out.replace_range(end - 1..end, " ");
                }
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = r#"{
        // "repo": "//", the rules of regressions:
        "project": "a // b \" // c",
        "regressions_thresholds": {".*": 0.1, "sort\\(": 0.2},
        "regressions_first_commits": {"old": null, "sort": "v1", "s": "v0",}, // the last comma
    }"#;

    fn parse(text: &str) -> Result<AsvRules, AsvRulesError> {
        AsvRules::parse(text, |name| name.strip_prefix('v')?.parse().ok())
    }

    #[test]
    fn patterns_hold_from_the_beginning_of_names() {
        let rules = parse(TEXT).unwrap();
        let rule = |entry: &str| rules.rule(entry, 0.05).map(|rule| (rule.threshold, rule.from));
        assert_eq!(rule("sort(1)"), Some((0.2, 2)));
        assert_eq!(rule("search"), Some((0.1, 1)));
        assert_eq!(rule("resort"), Some((0.1, 0)));
        assert_eq!(rule("older"), None);
        assert!(AsvRules::default().is_empty() && !rules.is_empty());
        assert_eq!(AsvRules::default().rule("x", 0.05), Some(RegressionRule { threshold: 0.05, from: 0 }));
    }

    #[test]
    fn the_branch_stands_behind_names() {
        let text = r#"{"regressions_thresholds": {"sort@main$": 0.1, "sort$": 0.2}, "regressions_first_commits": {".*@old": null}}"#;
        let threshold = |branch: Option<&str>| {
            let rules = parse(text).unwrap().of_branch(branch.map(str::to_owned));
            rules.rule("sort", 0.05).map(|rule| rule.threshold)
        };
        assert_eq!([Some("main"), None, Some("old")].map(threshold), [Some(0.1), Some(0.2), None]);
    }

    #[test]
    fn a_threshold_for_all_goes_before_those_of_patterns() {
        let rules = |threshold| RegressionRules { threshold, of_asv: parse(TEXT).unwrap() };
        let rule = |threshold, entry: &str| rules(threshold).rule(entry).map(|rule| (rule.threshold, rule.from));
        assert_eq!((rule(None, "sort(1)"), rule(Some(0.02), "sort(1)")), (Some((0.2, 2)), Some((0.02, 2))));
        assert_eq!(rule(Some(0.02), "older"), None, "what is left out stays so");
        assert!(rules(None).has_several_thresholds() && !rules(Some(0.1)).has_several_thresholds());
        assert_eq!((rules(None).usual_threshold(), rules(Some(0.1)).usual_threshold()), (THRESHOLD, 0.1));
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert!(matches!(parse("{"), Err(AsvRulesError::Syntax(_))));
        assert!(matches!(parse(r#"{"regressions_thresholds": {"(": 1}}"#), Err(AsvRulesError::Pattern(..))));
        let error = parse(r#"{"regressions_thresholds": {"^(?!slow)": 0.1}}"#).unwrap_err().to_string();
        assert!(
            error.starts_with("pattern '^(?!slow)' looks ahead or behind") && error.contains("--asv-conf"),
            "{error}"
        );
        assert!(matches!(parse(r#"{"regressions_thresholds": {"a": "x"}}"#), Err(AsvRulesError::Threshold(_))));
        assert!(matches!(parse(r#"{"regressions_first_commits": {"a": "x"}}"#), Err(AsvRulesError::NoCommit(_))));
    }

    proptest! {
        #[test]
        fn json_stays_as_it_is(text in any::<String>()) {
            let value = serde_json::json!({ "a": [text], "b": { "c": 1 } });
            let text = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(without_comments(&text), text);
        }
    }
}
