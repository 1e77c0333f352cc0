//! Parses and checks relation files, and reports everything that is wrong with them.
//!
//! A [`Relation`] ties the means or variances of events together. A *pair* is directed: it says
//! what to expect of `eventTo` when `eventFrom` got a sample. An *equation* holds both ways.
//!
//! ```
//! # extern crate perfprop_core as perfprop;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let file = r#"[
//!   { "id": "R1", "eventFrom": "L1_MISSES", "eventTo": "L2_MISSES",
//!     "expectedMean": 2 * {mean}, "expectedVariance": {variance} + 50, "weight": 0.25 },
//!   { "relation": "L1_MISSES = L2_HITS + L2_MISSES", "tolerance": "2%" }, // every miss goes on
//! ]"#;
//! let relations = perfprop::relations::parse("cache.json", file.as_bytes()).strict()?;
//! assert_eq!(relations[1].formula(), "L1_MISSES = L2_HITS + L2_MISSES");
//! # Ok(())
//! # }
//! ```
//!
//! A file may also define metrics, which equations can name and `-M` shows:
//! `{ "metric": "IPC", "formula": instructions / cycles, "scaleUnit": "1insn per cycle" }`.
//!
//! Means are in counts per CPU-millisecond, variances in the square of that.
//! [`Relation::bind`] gives a relation the form that estimators evaluate.

mod bind;
mod check;
mod check_metric;
mod diagnostic;
mod saved;
mod source;
mod syntax;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use bind::{
    BoundEquation, BoundForm, BoundPair, BoundRelation, RelationBinding, is_mean, mean_slot, related, slot_event, sums,
    variance_slot,
};
pub use diagnostic::{Diagnostic, Diagnostics, Excerpt, LoadError};

use crate::expr::{Expr, Subject};
use crate::metrics::{ExpansionError, Formulas, Metric};
use crate::names::shown;

/// The largest relation file that is read, in bytes: twenty thousand relations of two lines.
pub const MAX_FILE: usize = 4 * 1024 * 1024;

/// A statement that ties the means or variances of events together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "saved::Saved", into = "saved::Saved")]
pub struct Relation {
    /// What it is called; no other relation of its file is.
    pub id: String,
    /// What the relation says.
    pub form: RelationForm,
    /// How much of the way one correction goes.
    pub weight: Weight,
    /// The deviation to expect of it.
    pub tolerance: Tolerance,
    /// Place in the file.
    pub place: TextPlace,
}

/// What a relation says.
#[derive(Clone, Debug, PartialEq)]
pub enum RelationForm {
    /// What to expect of one event when another one got a sample. At least one of the expectations
    /// is there.
    Pair {
        /// The event that gets samples.
        from: String,
        /// The event that is corrected; another one than `from`.
        to: String,
        /// What the mean of `to` should be.
        expected_mean: Option<Expr>,
        /// What the variance of `to` should be.
        expected_variance: Option<Expr>,
    },
    /// Two expressions of means that should be equal.
    Equation {
        /// The side before the `=`.
        left: Expr,
        /// The side behind the `=`.
        right: Expr,
    },
}

impl Relation {
    /// The relation with the formulas of metrics in place of their names; only equations can name them.
    ///
    /// # Errors
    /// Metrics that can't be computed, and those that ask for what isn't known of the machine.
    pub fn expanded(&self, formulas: &mut Formulas<'_>) -> Result<Self, ExpansionError> {
        let RelationForm::Equation { left, right } = &self.form else { return Ok(self.clone()) };
        let mut side = |expr: &Expr| match formulas.catalog().is_named_in(expr) {
            true => formulas.expand(expr),
            false => Ok(expr.clone()),
        };
        Ok(Self { form: RelationForm::Equation { left: side(left)?, right: side(right)? }, ..self.clone() })
    }

    /// The names of its events, each once, in any case of letters.
    pub fn events(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut add = |name: &str| {
            if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                names.push(name.to_owned());
            }
        };
        let (ends, sides): ([Option<&String>; 2], [Option<&Expr>; 2]) = match &self.form {
            RelationForm::Equation { left, right } => ([None, None], [Some(left), Some(right)]),
            RelationForm::Pair { from, to, expected_mean, expected_variance } => {
                ([Some(from), Some(to)], [expected_mean.as_ref(), expected_variance.as_ref()])
            }
        };
        ends.into_iter().flatten().for_each(|name| add(name));
        for (variable, _) in sides.into_iter().flatten().flat_map(Expr::variables) {
            if let Subject::Event(name) = &variable.subject {
                add(name);
            }
        }
        names
    }

    /// Whether it is an equation in which `name`, in any case of letters, stands.
    pub fn names(&self, name: &str) -> bool {
        let RelationForm::Equation { left, right } = &self.form else { return false };
        let is = |subject: &Subject| matches!(subject, Subject::Event(event) if event.eq_ignore_ascii_case(name));
        left.variables().chain(right.variables()).any(|(variable, _)| is(&variable.subject))
    }

    /// The relation's equation or pair, on one line: `L2_MISSES = 2 * L1_MISSES`.
    pub fn formula(&self) -> String {
        match &self.form {
            RelationForm::Equation { left, right } => format!("{left} = {right}"),
            RelationForm::Pair { from, to, expected_mean, expected_variance } => {
                let to = crate::expr::escaped_name(to);
                let text = |expr: &Expr| expr.text_with(|variable| variable.in_formula(from));
                let mean = expected_mean.iter().map(|expr| format!("{to} = {}", text(expr)));
                let variance = expected_variance.iter().map(|expr| format!("variance({to}) = {}", text(expr)));
                mean.chain(variance).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

macro_rules! fraction {
    ($(#[$doc:meta])* $name:ident, default $default:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// `value`, if it is above 0 and at most 1.
            pub fn new(value: f64) -> Option<Self> {
                (value > 0.0 && value <= 1.0).then_some(Self(value))
            }

            /// The fraction, above 0 and at most 1.
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self($default)
            }
        }

        impl From<$name> for f64 {
            fn from(fraction: $name) -> Self {
                fraction.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = String;
            fn try_from(value: f64) -> Result<Self, String> {
                Self::new(value).ok_or_else(|| format!("{value} is not above 0 and at most 1"))
            }
        }
    };
}

fraction! {
    /// How much of the way from what an event has to what a relation expects one correction goes:
    /// above 0 and at most 1, 0.25 where a file doesn't say.
    Weight, default 0.25
}

fraction! {
    /// The relative deviation to expect of a relation that holds, as a fraction: 0.02 is 2 %.
    ///
    /// Above 0, as no measurement meets an expectation exactly, and at most 1. Where a file doesn't
    /// say it is 0.1: relations that people write down are seldom better known than that, and one
    /// that is too sure does more harm than one that is too careful.
    Tolerance, default 0.1
}

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPlace {
    /// The file as the user named it.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u32,
    /// The character in the line, from 1.
    pub column: u32,
}

impl std::fmt::Display for TextPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", shown(&self.file), self.line, self.column)
    }
}

/// What was found in a relation file.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The relations that nothing is wrong with, in the order of the file.
    pub relations: Vec<Relation>,
    /// The metrics that nothing is wrong with.
    pub metrics: Vec<Metric>,
    /// What is wrong with the others.
    pub diagnostics: Diagnostics,
}

impl Parsed {
    /// The relations of a file that is right as a whole. Who goes on without the wrong ones
    /// (`--relations-lenient`) takes [`relations`](Self::relations) and reports the diagnostics.
    ///
    /// # Errors
    /// Returns everything that is wrong with the file.
    pub fn strict(self) -> Result<Vec<Relation>, Diagnostics> {
        if self.diagnostics.is_empty() { Ok(self.relations) } else { Err(self.diagnostics) }
    }
}

/// The metrics that perfprop has itself, over presets and software events.
///
/// # Errors
/// Fails if the built-in file is wrong, which a test rules out.
pub fn shipped_metrics() -> Result<Vec<Metric>, Diagnostics> {
    let parsed = parse("relations/metrics.json", include_bytes!("../../relations/metrics.json"));
    if parsed.diagnostics.is_empty() { Ok(parsed.metrics) } else { Err(parsed.diagnostics) }
}

/// A relation file that has these metrics.
pub fn metric_file(metrics: &[Metric]) -> String {
    let lines: Vec<_> = metrics.iter().map(saved::metric).collect();
    if lines.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) }
}

/// The metrics that a file of them gives back as they are, and what is wrong with the others, ready for a terminal.
pub fn writable(metrics: Vec<Metric>) -> (Vec<Metric>, Vec<String>) {
    let mut names = HashSet::new();
    let (mut written, mut problems) = (Vec::new(), Vec::new());
    for metric in metrics {
        let problem = match parse("", metric_file(std::slice::from_ref(&metric)).as_bytes()) {
            _ if !names.insert(metric.name.to_lowercase()) => {
                "there is one of that name already, which holds".to_owned()
            }
            again if again.metrics.first() == Some(&metric) => {
                written.push(metric);
                continue;
            }
            again => match again.diagnostics.list.first() {
                Some(wrong) => wrong.message.clone(),
                None => "no relation file says it".to_owned(),
            },
        };
        problems.push(format!("{}: {problem}", shown(&metric.name)));
    }
    (written, problems)
}

/// Reads the relations in `bytes`; messages call them `file`.
pub fn parse(file: &str, bytes: &[u8]) -> Parsed {
    check::check(file, bytes)
}

/// Reads the relation file at `path`, of which no more than [`MAX_FILE`] bytes are looked at.
///
/// # Errors
/// Fails if the file can't be read. What is wrong inside it is in [`Parsed::diagnostics`].
pub fn load(path: impl AsRef<Path>) -> Result<Parsed, LoadError> {
    let path = path.as_ref();
    let failed = |error| LoadError { path: path.to_owned(), error };
    let bytes = read(path).map_err(failed)?;
    Ok(parse(&path.display().to_string(), &bytes))
}

/// The bytes of the file at `path`, no more than show that it is larger than [`MAX_FILE`]; of standard input where that
/// is `-`.
///
/// # Errors
/// Fails if the file can't be read.
pub fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    File::open(path)?.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
