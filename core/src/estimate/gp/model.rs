//! Reads and writes what was learnt of a program's events.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::blocks::CountBlock;
use super::covariance::Covariances;
use super::lessons::Lessons;
use super::level::Level;
use super::settings::Settings;
use super::time::{MEMORIES, PerProcess};
use super::window::Observation;
use crate::files::{self, PartialFile};

/// How the events of a program vary together, as learnt from runs of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CovarianceModel {
    version: u32,
    /// The processes that the covariances are of.
    memories_ms: Vec<f64>,
    events: Vec<String>,
    /// Mean rates per millisecond, which covariances are relative to; null if never counted.
    levels: Vec<Option<f64>>,
    /// The time that they are means of.
    time_ms: f64,
    /// Row after row of the lower triangle, a number for each process.
    covariances: Vec<PerProcess>,
    /// What they were learnt from, for the next learning run to go on with.
    lessons: Lessons,
}

const VERSION: u32 = 3;

/// What a learning run saw.
pub(crate) struct Run {
    pub(crate) names: Vec<String>,
    /// Mean rates over the run; `None` of events that were never counted.
    pub(crate) rates: Vec<Option<f64>>,
    /// Length of the run, in ms.
    pub(crate) time_ms: f64,
}

/// What a learning run keeps.
#[derive(Clone, Debug)]
pub(crate) struct Learning {
    /// The windows of this run and of those before.
    pub(crate) lessons: Lessons,
    /// What runs of the same events taught before, without their lessons.
    earlier: Option<CovarianceModel>,
    /// Covariances that were known before the run.
    known_before: Covariances,
}

impl Learning {
    /// A run of these events that goes on where `earlier` ones ended, if they were of the same.
    pub(crate) fn new(earlier: Option<&CovarianceModel>, names: &[String], known_before: Covariances) -> Self {
        let mut earlier = earlier.filter(|model| model.events == names).cloned();
        let lessons = earlier.as_mut().map(|model| std::mem::take(&mut model.lessons)).unwrap_or_default();
        Self { lessons, earlier, known_before }
    }
}

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

impl CovarianceModel {
    /// What a run and those before it teach. `observation` makes of a block what it says of a rate.
    pub(crate) fn learn(
        run: Run,
        learning: &Learning,
        settings: &Settings,
        observation: impl Fn(&CountBlock, f64, &PerProcess) -> Observation,
    ) -> Self {
        let n = run.names.len();
        let (mut covariances, mut levels, mut time_ms) = (learning.known_before.clone(), run.rates, run.time_ms);
        if let Some(before) = &learning.earlier {
            time_ms += before.time_ms;
            for (level, &earlier) in levels.iter_mut().zip(&before.levels) {
                *level = match (*level, earlier) {
                    (Some(level), Some(earlier)) => Some(earlier + (level - earlier) * run.time_ms / time_ms),
                    (level, earlier) => level.or(earlier),
                };
            }
            covariances.rescale(|event| match (before.levels[event], levels[event]) {
                (Some(from), Some(to)) => {
                    Level::known(from).rate().zip(Level::known(to).rate()).map_or(1.0, |(from, to)| from / to)
                }
                _ => 1.0,
            });
        }
        learning.lessons.teach(&mut covariances, settings, |block, covariances| {
            let rate = Level::known(levels[block.event]?).rate()?;
            Some(observation(block, rate, covariances.at(block.event, block.event)))
        });
        let triangle = (0..n).flat_map(|a| (0..=a).map(move |b| (a, b))).map(|(a, b)| *covariances.at(a, b)).collect();
        Self {
            version: VERSION,
            memories_ms: MEMORIES.to_vec(),
            events: run.names,
            levels,
            time_ms,
            covariances: triangle,
            lessons: learning.lessons.clone(),
        }
    }

    /// Whether it was learnt with an event of this name.
    pub fn knows(&self, name: &str) -> bool {
        self.events.iter().any(|event| event == name)
    }

    /// The events that it was learnt with.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// How many windows it was learnt from.
    pub fn windows(&self) -> u64 {
        self.lessons.seen()
    }

    /// The mean rate of an event.
    pub(crate) fn level(&self, name: &str) -> Option<f64> {
        self.levels[self.events.iter().position(|event| event == name)?]
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
    /// Fails if it can't be read, or isn't a model of this version.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let fail = |reason: String| ModelError { path: path.into(), reason };
        let text = files::text(path, files::LONGEST).map_err(|error| fail(error.to_string()))?;
        let model: Self = serde_json::from_str(&text).map_err(|error| fail(error.to_string()))?;
        if model.version != VERSION {
            return Err(fail(format!("version {} where {VERSION} is known; learn it anew", model.version)));
        }
        let n = model.events.len();
        let finite = model.covariances.iter().flatten().all(|value| value.is_finite());
        if model.memories_ms != MEMORIES || model.covariances.len() != n * (n + 1) / 2 || !finite {
            return Err(fail("its covariances don't fit its events; learn it anew".into()));
        }
        let rates = model.levels.iter().flatten().all(|rate| rate.is_finite() && *rate >= 0.0);
        if model.levels.len() != n || !rates || !(model.time_ms >= 0.0 && model.time_ms.is_finite()) {
            return Err(fail("its mean rates don't fit its events; learn it anew".into()));
        }
        if !model.lessons.fit(n) {
            return Err(fail("its windows don't fit its events; learn it anew".into()));
        }
        Ok(model)
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut part = PartialFile::create(path)?;
        part.write_all((serde_json::to_string(self)? + "\n").as_bytes())?;
        part.put().map(drop)
    }
}
