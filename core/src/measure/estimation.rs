//! Chooses the estimator of a measurement, with what earlier runs taught it, and makes its monitor.

use std::path::Path;
use std::sync::Arc;

use super::{Error, MeasureOptions};
use crate::estimate::gp::{CovarianceModel, MAX_EVENTS};
use crate::estimate::{EachPart, Estimator, EstimatorKind, Gaussian, IntervalBasis};
use crate::events::{Event, with_letters};
use crate::monitor::Monitor;
use crate::names::{shown, shown_path};
use crate::rates::Confidence;
use crate::relations::Relation;
use crate::run::{End, Header};
use crate::sources::RecordedRound;

/// What gives the least errors of those that are known. Where nothing is multiplexed it does no more than
/// `scale`.
const DEFAULT_ESTIMATOR: EstimatorKind = EstimatorKind::Gp;

/// The estimator and its options.
#[derive(Clone, Debug)]
pub struct Estimation {
    /// Which estimator.
    pub kind: EstimatorKind,
    /// Confidence level of all intervals.
    pub confidence: Confidence,
    /// What earlier runs of the program taught [`EstimatorKind::Gp`].
    pub learnt: Option<Arc<CovarianceModel>>,
    /// The rounds by which [`EstimatorKind::Gp`] estimates intervals.
    pub basis: IntervalBasis,
}

impl Estimation {
    /// The estimator of these events that the options choose.
    pub(super) fn of_options(
        options: &MeasureOptions,
        events: &[Event],
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, Error> {
        let kind = options.estimator.unwrap_or(DEFAULT_ESTIMATOR);
        Self::new(kind, options.confidence, options.learnt.as_deref(), events, note)
    }

    /// An estimator of these events, with what a file says that was learnt of the program.
    ///
    /// # Errors
    /// When the file can't be read, knows none of the events, or is of no use to this estimator.
    pub fn new<'a>(
        kind: EstimatorKind,
        confidence: Confidence,
        learnt: Option<&Path>,
        events: impl IntoIterator<Item = &'a Event>,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, Error> {
        let events: Vec<_> = events.into_iter().collect();
        if kind == EstimatorKind::Gp && events.len() > MAX_EVENTS {
            note(&format!(
                "{} events: of more than {MAX_EVENTS}, perfprop corrects no count by others; what takes turns is scaled",
                events.len()
            ));
        }
        let learnt = learnt.map(|path| read_learnt(path, kind, &events)).transpose()?;
        Ok(Self { kind, confidence, learnt, basis: IntervalBasis::AsLive })
    }

    /// Estimates intervals as live: by nothing that comes after them.
    #[must_use]
    pub fn as_live(self) -> Self {
        Self { basis: IntervalBasis::AsLive, ..self }
    }

    /// Estimates the intervals of a run that is over by all of its rounds. Reads them all once, and
    /// takes twice as long again. Where nothing was multiplexed, or the estimator isn't `gp`, all stays as it is.
    #[must_use]
    pub fn with_whole_run<'a>(
        self,
        header: &Header,
        relations: &[Relation],
        rounds: impl IntoIterator<Item = &'a RecordedRound>,
        end: End,
    ) -> Self {
        if self.kind != EstimatorKind::Gp {
            return self;
        }
        let keeping = Self { basis: IntervalBasis::Keeping, ..self.clone() };
        let mut monitor = monitor(header.clone(), relations.to_vec(), keeping).without_history();
        monitor.take_rounds(rounds);
        monitor.end(end);
        let basis = monitor.whole_run().map_or(IntervalBasis::AsLive, |run| IntervalBasis::WholeRun(Arc::new(run)));
        Self { basis, ..self }
    }
}

/// Reads what was learnt of a program; some of these events must be in it.
fn read_learnt(path: &Path, kind: EstimatorKind, events: &[&Event]) -> Result<Arc<CovarianceModel>, Error> {
    if kind != EstimatorKind::Gp {
        return Err(Error::Options(format!("--learnt is for --estimator gp, not for {}", kind.name())));
    }
    let model = CovarianceModel::read(path).map_err(|error| Error::Learnt(shown(&error.to_string()).into_owned()))?;
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    // Whether an event can be counted in user space only isn't known before it is opened.
    if names.iter().any(|name| model.knows(name) || model.knows(&with_letters(name, "u"))) {
        return Ok(Arc::new(model));
    }
    let (file, names, known) = (shown_path(path), names.join(","), model.events().join(","));
    let names = shown(&names);
    Err(Error::Learnt(format!(
        "--learnt {file} knows none of {names}: it was learnt with {}\n      learn these:  \
         perfprop record -I 4 -o run.jsonl -e {names} -- COMMAND   then: perfprop relations learn --program {file} run.jsonl",
        shown(&known)
    )))
}

/// The error of using a model of a whole program for its parts.
pub fn learnt_of_parts() -> Error {
    Error::Options(
        "--learnt is of a whole program: it can't say how single CPUs or threads (-A, --per-thread) count".into(),
    )
}

/// A monitor with this estimator.
pub fn monitor(header: Header, relations: Vec<Relation>, estimation: Estimation) -> Monitor {
    let events = header.estimated_events();
    let estimator = EachPart::build(&header.estimated_scopes(), |rows| -> Box<dyn Estimator> {
        let part: Vec<_> = rows.iter().map(|&row| events[row].clone()).collect();
        match estimation.kind {
            EstimatorKind::Gp => {
                let gaussian = Gaussian::new(&part, &relations).by(estimation.basis.of_rows(rows)).among(events.len());
                Box::new(estimation.learnt.iter().cloned().fold(gaussian, Gaussian::with_model))
            }
            kind => kind.build(&part, &relations),
        }
    });
    Monitor::new(header, relations, estimator).with_confidence(estimation.confidence)
}
