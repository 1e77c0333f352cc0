//! Loads relation files, and those that a recording holds.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::{Error, metrics};
use crate::codes::Coded;
use crate::events::Tables;
use crate::expr::Fact;
use crate::metrics::{Catalog, Facts, Metric};
use crate::relations::{self, Diagnostics, LoadError, Relation};
use crate::run::RelationFile;

/// Which relation files are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelationOptions {
    /// Paths of the files.
    pub files: Vec<PathBuf>,
    /// Whether to go on without what is wrong in them.
    pub is_lenient: bool,
}

/// Relations, and the files that they came from.
#[derive(Debug, Default)]
pub struct LoadedRelations {
    /// The relations of all files.
    pub all: Vec<Relation>,
    /// The metrics of all files.
    pub metrics: Vec<Metric>,
    /// The files as they were read.
    pub files: Vec<RelationFile>,
}

impl LoadedRelations {
    /// Reads relation files.
    ///
    /// # Errors
    /// When a file can't be read, or something is wrong in one and the options aren't lenient.
    pub fn read(options: &RelationOptions, note: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        let mut found = Self::default();
        let mut wrong = Vec::new();
        for path in &options.files {
            // Read once: it may be a pipe, and what is recorded must be what was used.
            let failed = |error| Error::RelationFile(LoadError { path: path.clone(), error });
            let bytes = relations::read(path).map_err(failed)?;
            let file = path.display().to_string();
            let parsed = relations::parse(&file, &bytes);
            found.files.push(RelationFile { file, text: String::from_utf8_lossy(&bytes).into_owned() });
            if !parsed.diagnostics.is_empty() {
                wrong.push(Diagnostics { is_lenient: options.is_lenient, ..parsed.diagnostics });
            }
            found.all.extend(parsed.relations);
            found.metrics.extend(parsed.metrics);
        }
        distinguish(&mut found.all);
        if wrong.is_empty() {
            return Ok(found);
        }
        let error = Error::Relations(wrong);
        if !options.is_lenient {
            return Err(error);
        }
        note(&format!("going on without the relations that are wrong:\n{}", error.printed()));
        Ok(found)
    }

    /// Expands names for a recording of another machine, of which no facts are known.
    ///
    /// # Errors
    /// When a relation names a metric that has no value.
    pub fn expand_elsewhere(&mut self, note: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let catalog = metrics::catalog(&self.metrics, &Tables::default(), note)?;
        self.all = metrics::expanded(std::mem::take(&mut self.all), &catalog, &|_| None)?;
        Ok(())
    }

    /// Puts formulas in place of the metrics that equations name. Their definitions are recorded with
    /// the relations, as what this machine knows and its event tables say isn't known elsewhere.
    pub(super) fn expand(&mut self, catalog: &Catalog, facts: &Facts<'_>) -> Result<(), Error> {
        let know = |fact: &Fact| facts.know(fact);
        let named = metrics::named(&self.all, catalog, &know);
        self.all = metrics::expanded(std::mem::take(&mut self.all), catalog, &know)?;
        if !named.is_empty() {
            let text = relations::metric_file(&named);
            self.files.insert(0, RelationFile { file: "metrics of this machine".into(), text });
        }
        Ok(())
    }
}

/// Reads the relations of a recording, which were read before. Metrics that they name are in its files.
pub fn recorded_relations(files: &[RelationFile]) -> Vec<Relation> {
    let parsed: Vec<_> = files.iter().map(|file| relations::parse(&file.file, file.text.as_bytes())).collect();
    let catalog = Catalog::new(parsed.iter().flat_map(|parsed| parsed.metrics.iter().cloned()));
    let mut all: Vec<_> = parsed.into_iter().flat_map(|parsed| parsed.relations).collect();
    distinguish(&mut all);
    let mut formulas = catalog.formulas(&|_| None);
    let expand = |relation: Relation| relation.expanded(&mut formulas).unwrap_or(relation);
    all.into_iter().map(expand).collect()
}

/// Two files may each have an R1: the second one is called by its file, too.
fn distinguish(relations: &mut [Relation]) {
    let mut taken = HashSet::new();
    for relation in relations {
        if !taken.insert(relation.id.clone()) {
            let stem = Path::new(&relation.place.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let id = relation.id.clone();
            relation.id = (1..)
                .map(|n| if n == 1 { format!("{stem}.{id}") } else { format!("{stem}{n}.{id}") })
                .find(|id| !taken.contains(id))
                .unwrap_or(id);
            taken.insert(relation.id.clone());
        }
    }
}
