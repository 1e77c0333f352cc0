//! Checks one relation file.

use std::path::Path;

use serde_json::{Value, json};

use crate::codes::Coded;
use crate::events::Resolver;
use crate::measure::misspelt::misspelt;
use crate::metrics::{Catalog, Metric};
use crate::relations::{self, Diagnostic, Diagnostics, LoadError, Parsed, Relation};

/// A relation file that was looked through.
#[derive(Debug)]
pub(super) struct CheckedFile {
    /// Path as the user gave it.
    pub(super) name: String,
    outcome: Result<Parsed, LoadError>,
    /// Names in it that look like typing errors; where a file is for other machines too, they may be right.
    pub(super) notes: Vec<String>,
    /// The events that relations name and this machine doesn't have, of each relation that names some.
    pub(super) missing: Vec<Vec<String>>,
}

impl CheckedFile {
    pub(super) fn read(path: &Path, resolver: &Resolver) -> Self {
        let outcome = relations::load(path);
        let relations = outcome.as_ref().map_or_else(|_| Vec::new(), expanded);
        let notes = misspelt(&relations, &[], resolver);
        let missing = relations.iter().map(|relation| missing(relation, resolver)).filter(|names| !names.is_empty());
        Self { name: path.display().to_string(), notes, missing: missing.collect(), outcome }
    }

    /// Whether nothing is wrong with it.
    pub(super) fn is_right(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|parsed| parsed.diagnostics.is_empty())
    }

    /// Whether it could be read, whatever stands in it.
    pub(super) fn is_readable(&self) -> bool {
        self.outcome.is_ok()
    }

    /// The relations that nothing is wrong with.
    pub(super) fn relations(&self) -> &[Relation] {
        self.outcome.as_ref().map_or(&[], |parsed| &parsed.relations)
    }

    /// The metrics that nothing is wrong with.
    pub(super) fn metrics(&self) -> &[Metric] {
        self.outcome.as_ref().map_or(&[], |parsed| &parsed.metrics)
    }

    /// All events that this machine doesn't have, each once.
    pub(super) fn missing_events(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.missing.iter().flatten().map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Everything that is wrong with it, as text.
    pub(super) fn complaints(&self) -> Option<String> {
        match &self.outcome {
            Err(error) => Some(error.printed()),
            Ok(parsed) if parsed.diagnostics.is_empty() => None,
            Ok(parsed) => {
                let missing = self.missing_events().into_iter().map(str::to_owned).collect();
                let diagnostics = Diagnostics { unusable: self.missing.len(), missing, ..parsed.diagnostics.clone() };
                Some(diagnostics.printed())
            }
        }
    }

    pub(super) fn json(&self) -> Value {
        let relation = |relation: &Relation| json!({ "id": relation.id, "formula": relation.formula() });
        let metric = |metric: &Metric| json!({ "name": metric.name, "formula": metric.formula.to_string() });
        let diagnostic = |found: &Diagnostic| {
            json!({
                "line": found.excerpt.as_ref().map(|_| found.place.line),
                "column": found.excerpt.as_ref().map(|_| found.place.column),
                "message": found.message,
                "help": found.help,
                "relation": found.relation,
            })
        };
        let diagnostics: Vec<_> = match &self.outcome {
            Err(error) => vec![json!({ "message": error.error.to_string() })],
            Ok(parsed) => parsed.diagnostics.list.iter().map(diagnostic).collect(),
        };
        json!({
            "file": self.name,
            "ok": self.is_right(),
            "relations": self.relations().iter().map(relation).collect::<Vec<_>>(),
            "metrics": self.metrics().iter().map(metric).collect::<Vec<_>>(),
            "diagnostics": diagnostics,
            "notes": self.notes,
            "missing-events": self.missing_events(),
        })
    }
}

/// The relations with the events of metrics in place of their names.
fn expanded(parsed: &Parsed) -> Vec<Relation> {
    let catalog = Catalog::new(parsed.metrics.iter().cloned());
    let mut formulas = catalog.formulas(&|_| None);
    let expand = |relation: &Relation| relation.expanded(&mut formulas).unwrap_or_else(|_| relation.clone());
    parsed.relations.iter().map(expand).collect()
}

/// The events of a relation that this machine doesn't have, in any case of letters.
fn missing(relation: &Relation, resolver: &Resolver) -> Vec<String> {
    let is_known = |name: &str| !resolver.called(name).is_empty();
    relation.events().into_iter().filter(|name| !is_known(name) && !is_known(&name.to_lowercase())).collect()
}
