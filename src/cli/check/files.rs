//! A relation file's path in, whether the file is right out.

use std::path::Path;

use serde_json::{Value, json};

use crate::relations::{self, Diagnostic, Diagnostics, LoadError, Relation};

/// A relation file that was looked through.
#[derive(Debug)]
pub(super) struct CheckedFile {
    /// As the user named it.
    pub(super) name: String,
    outcome: Result<(Vec<Relation>, Diagnostics), LoadError>,
}

impl CheckedFile {
    pub(super) fn read(path: &Path) -> Self {
        let outcome = relations::load(path).map(|parsed| (parsed.relations, parsed.diagnostics));
        Self { name: path.display().to_string(), outcome }
    }

    /// Whether nothing is wrong with it.
    pub(super) fn is_right(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|(_, diagnostics)| diagnostics.is_empty())
    }

    /// The relations that nothing is wrong with.
    pub(super) fn relations(&self) -> &[Relation] {
        self.outcome.as_ref().map_or(&[], |(relations, _)| relations)
    }

    /// Everything that is wrong with it, as text.
    pub(super) fn complaints(&self) -> Option<String> {
        match &self.outcome {
            Err(error) => Some(error.to_string()),
            Ok((_, diagnostics)) if diagnostics.is_empty() => None,
            Ok((_, diagnostics)) => Some(diagnostics.to_string()),
        }
    }

    pub(super) fn json(&self) -> Value {
        let relation = |relation: &Relation| json!({ "id": relation.id, "formula": relation.formula() });
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
            Ok((_, diagnostics)) => diagnostics.list.iter().map(diagnostic).collect(),
        };
        json!({
            "file": self.name,
            "ok": self.is_right(),
            "relations": self.relations().iter().map(relation).collect::<Vec<_>>(),
            "diagnostics": diagnostics,
        })
    }
}
