//! Says why a model can't be fitted.

use std::fmt;

use super::model::{CostModel, NAMED_MODELS};
use super::term::NotLinear;
use crate::names::{first_of, quoted, shown};

/// Why a model can't be fitted.
#[derive(Clone, Debug, PartialEq)]
pub enum FitError {
    /// No workload has the quantity.
    NoData {
        /// The quantity.
        response: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A measurement is no number, infinite or below 0.
    BadValue {
        /// The sizes at which it was measured.
        sizes: String,
        /// The measurement.
        value: f64,
    },
    /// The model isn't linear in its coefficients.
    NotLinear {
        /// The operation that isn't.
        error: Box<NotLinear>,
        /// What is written there.
        written: String,
        /// The sizes that have values; every other name is a coefficient.
        sizes: Vec<String>,
        /// The coefficients of the operation.
        names: Vec<String>,
    },
    /// The model has no value at some sizes.
    NoValue {
        /// These sizes.
        sizes: String,
    },
    /// What was measured, or the model, is too large at some sizes to be squared.
    TooLarge {
        /// These sizes.
        sizes: String,
    },
    /// A quantity that the model names wasn't measured everywhere.
    NoQuantity {
        /// The quantity.
        quantity: String,
        /// The sizes at which it is missing.
        sizes: String,
    },
    /// There are too few sizes for breakpoints among them.
    NoRoomForBreakpoints {
        /// The breakpoints.
        names: Vec<String>,
    },
    /// There are too few sets of sizes to tell which of several models is best.
    TooFewToCompare {
        /// How many sets.
        points: usize,
        /// How many the two smallest models need.
        needed: usize,
    },
    /// Only one of several models can be fitted, so that nothing is compared with it.
    NoRival {
        /// Why the first of the others can't be.
        error: Box<FitError>,
    },
    /// There are fewer sets of sizes than coefficients.
    TooFew {
        /// How many sets.
        points: usize,
        /// The coefficients.
        coefficients: Vec<String>,
    },
}

impl FitError {
    /// An operation of a model that isn't linear where these names have values.
    pub(super) fn not_linear(
        error: NotLinear,
        model: &CostModel,
        known: impl Fn(&str) -> bool,
        sizes: Vec<String>,
    ) -> Self {
        let names = error.names.iter().filter(|name| !known(name)).cloned().collect();
        let written = error.span.and_then(|span| model.text().get(span.start..span.end));
        Self::NotLinear { written: written.unwrap_or_default().to_owned(), error: Box::new(error), sizes, names }
    }

    /// How many coefficients there are too few sets of sizes for, where that is what is wrong.
    pub(super) fn too_few_for(&self) -> Option<usize> {
        match self {
            Self::TooFew { coefficients, .. } => Some(coefficients.len()),
            _ => None,
        }
    }
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoData { response, known } if known.is_empty() => {
                write!(f, "there are no measurements of {}: the file is empty", quoted(response))
            }
            Self::NoData { response, known } => {
                let known: Vec<_> = known.iter().map(|name| quoted(name)).collect();
                write!(f, "there are no measurements of {}; there are of {}", quoted(response), known.join(", "))
            }
            Self::BadValue { sizes, value } => write!(f, "{value} at {sizes} is no measurement: remove it"),
            Self::NotLinear { error, written, sizes, names } => not_linear(f, error, written, (names, sizes)),
            Self::NoQuantity { quantity, sizes } => {
                write!(f, "the model names {}, which was not measured at {sizes}", quoted(quantity))
            }
            Self::NoRoomForBreakpoints { names } => {
                write!(
                    f,
                    "too few sizes to look for {} among them: measure at least two on each side, or set it (--set NAME=VALUE)",
                    listed(names, " and ")
                )
            }
            Self::NoValue { sizes } => {
                write!(f, "the model has no value at {sizes}: leave these sizes out, or mend the model")
            }
            Self::TooLarge { sizes } => {
                write!(f, "the numbers at {sizes} are too large to be fitted: give them in a larger unit")
            }
            Self::TooFewToCompare { points, needed } => {
                let sets = if *points == 1 {
                    "one set of sizes tells".to_owned()
                } else {
                    format!("{points} sets of sizes tell")
                };
                write!(f, "{sets} no models apart: measure {needed} at least, or name one model (--model)")
            }
            Self::NoRival { error } => {
                write!(
                    f,
                    "only one of the models can be fitted, and nothing is compared with it: {error}; or name one model"
                )
            }
            Self::TooFew { points, coefficients } => {
                write!(
                    f,
                    "{} of sizes can't tell {} coefficients ({}) apart: measure more sizes, or set some (--set NAME=VALUE)",
                    if *points == 1 { "one set".to_owned() } else { format!("{points} sets") },
                    coefficients.len(),
                    listed(coefficients, ", ")
                )
            }
        }
    }
}

fn not_linear(
    f: &mut fmt::Formatter<'_>,
    error: &NotLinear,
    written: &str,
    (names, sizes): (&[String], &[String]),
) -> fmt::Result {
    f.write_str("the model is not linear in its coefficients")?;
    if let Some(span) = error.span {
        write!(f, ", character {}, {}", span.start + 1, quoted(written))?;
    }
    match error.remedy() {
        Some(remedy) => write!(f, ": {error}; {remedy}"),
        None => write!(f, ": {error}; {}", cant_be_found(names, sizes)),
    }
}

/// Which coefficients can't be found, and what to do: correct a size, or set the one that looks least like a coefficient.
fn cant_be_found(names: &[String], sizes: &[String]) -> String {
    let is_near = |name: &&String| sizes.iter().any(|size| size.eq_ignore_ascii_case(name));
    if let Some(name) = names.iter().find(is_near) {
        return format!("{} is no size: the sizes are {}", quoted(name), listed(sizes, ", "));
    }
    let of_models = || NAMED_MODELS.iter().flat_map(|model| model.parameters.iter().rev().take(model.numbers));
    let is_number = |name: &&String| of_models().any(|number| number == name);
    let set = names.iter().find(is_number).or(names.last()).map_or("NAME", String::as_str);
    let what = if names.len() == 1 { "can't be found" } else { "can't all be found" };
    if sizes.is_empty() {
        let names = listed(names, " and ");
        return format!("{names} {what}: the measurements have no sizes, for which there is --model const");
    }
    format!(
        "{} {what}: every name but the sizes ({}) is a coefficient: correct a misspelt size, change the model, or set one \
         (--set {}=VALUE)",
        listed(names, " and "),
        listed(sizes, ", "),
        if set.len() <= LONGEST_SET { shown(set) } else { "NAME".into() },
    )
}

/// So many names are listed.
const MOST_LISTED: usize = 8;

/// The longest name that is repeated to be set.
const LONGEST_SET: usize = 40;

/// Names in quotes, the first of many.
fn listed(names: &[String], between: &str) -> String {
    let names = names.iter().map(|name| quoted(name));
    match names.len() {
        ..=MOST_LISTED => names.collect::<Vec<_>>().join(between),
        _ => first_of(names, MOST_LISTED),
    }
}

impl std::error::Error for FitError {}
