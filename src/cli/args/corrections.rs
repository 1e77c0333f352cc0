//! Defines the arguments of relations and estimators.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::cli::Error;
use crate::cli::input::refuse_recording;
use crate::estimate::EstimatorKind;
use crate::measure::RelationOptions;
use crate::rates::Confidence;

/// What corrects the numbers. Of a recording, what was recorded with it is the default.
#[derive(Debug, Args)]
pub(crate) struct CorrectionArgs {
    /// A file of relations between events; repeatable
    #[arg(long, value_name = "FILE", help_heading = "Estimates")]
    pub(crate) relations: Vec<PathBuf>,
    /// Leave out wrong relations of a file, and use the others
    #[arg(long, help_heading = "Estimates")]
    pub(crate) relations_lenient: bool,
    /// How to estimate counts; `gp` by default
    #[arg(long, value_name = "NAME", value_parser = estimator(), help_heading = "Estimates")]
    pub(crate) estimator: Option<EstimatorKind>,
    /// A model of this program for `gp`, learnt from earlier runs by `relations learn --program`. Recordings don't
    /// contain it: give it to `replay` as well
    #[arg(long, value_name = "MODEL", help_heading = "Estimates")]
    pub(crate) learnt: Option<PathBuf>,
    /// The confidence level of all intervals
    #[arg(long, value_name = "PART", default_value = "0.95", help_heading = "Estimates")]
    pub(crate) confidence: Confidence,
}

/// Parses the name of an estimator.
pub(crate) fn estimator() -> impl TypedValueParser<Value = EstimatorKind> {
    let names = EstimatorKind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.summary()));
    PossibleValuesParser::new(names).try_map(|name| EstimatorKind::named(&name).ok_or("no estimator has this name"))
}

impl CorrectionArgs {
    /// The model of a program that is named; a recording isn't one.
    pub(crate) fn learnt(&self) -> Result<Option<PathBuf>, Error> {
        const WANTED: &str =
            "--learnt takes a model that was learnt from some:  perfprop relations learn --program MODEL RECORDING...";
        self.learnt.as_deref().map_or(Ok(()), |path| refuse_recording(path, WANTED))?;
        Ok(self.learnt.clone())
    }

    /// The relation files that are named.
    pub(crate) fn relations(&self) -> RelationOptions {
        RelationOptions { files: self.relations.clone(), is_lenient: self.relations_lenient }
    }
}
