//! What was learnt of a program's events in, a file out, and back.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::covariance::Covariances;
use super::time::{MEMORIES, PerProcess};

/// How the events of a program vary together, as learnt from runs of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    version: u32,
    /// The processes that the covariances are of.
    memories_ms: Vec<f64>,
    steps: u64,
    events: Vec<String>,
    /// Row after row of the lower triangle, a number for each process.
    covariances: Vec<PerProcess>,
}

const VERSION: u32 = 1;

/// Why a model can't be used.
#[derive(Debug)]
pub struct ModelError {
    path: PathBuf,
    reason: String,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model {}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for ModelError {}

impl Model {
    pub(crate) fn new(events: Vec<String>, covariances: &Covariances, steps: u64) -> Self {
        let n = events.len();
        let triangle = (0..n).flat_map(|a| (0..=a).map(move |b| *covariances.at(a, b))).collect();
        Self { version: VERSION, memories_ms: MEMORIES.to_vec(), steps, events, covariances: triangle }
    }

    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Puts in what the model knows of these events. Unless it knows both, it says nothing of two:
    /// then they are taken to be unrelated, which keeps the covariances positive definite.
    pub(crate) fn replace(&self, names: &[&str], covariances: &mut Covariances) {
        let known: Vec<Option<usize>> =
            names.iter().map(|name| self.events.iter().position(|event| event == name)).collect();
        if known.iter().all(Option::is_none) {
            return;
        }
        for a in 0..names.len() {
            for b in 0..names.len() {
                match (known[a], known[b]) {
                    (Some(x), Some(y)) => {
                        let (row, column) = (x.max(y), x.min(y));
                        *covariances.at_mut(a, b) = self.covariances[row * (row + 1) / 2 + column];
                    }
                    (None, None) => {}
                    _ => *covariances.at_mut(a, b) = PerProcess::default(),
                }
            }
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it can't be read, or isn't a model of this version.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let fail = |reason: String| ModelError { path: path.into(), reason };
        let text = fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let model: Self = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        if model.version != VERSION {
            return Err(fail(format!("version {} where {VERSION} is known; learn it anew", model.version)));
        }
        let n = model.events.len();
        let finite = model.covariances.iter().flatten().all(|value| value.is_finite());
        if model.memories_ms != MEMORIES || model.covariances.len() != n * (n + 1) / 2 || !finite {
            return Err(fail("its covariances don't fit its events; learn it anew".into()));
        }
        Ok(model)
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(name);
        let written = fs::write(&part, serde_json::to_string(self)? + "\n").and_then(|()| fs::rename(&part, path));
        if written.is_err() {
            // What is left of it, if anything, is of no use.
            let _ = fs::remove_file(&part);
        }
        written
    }
}
