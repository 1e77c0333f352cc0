//! Connects the estimator `gp` to the simulator.

use perfprop::estimate::gp::{CovarianceModel, EventSpec, Gp, Prior, Settings, Span, WhenCounted};
use perfprop::plan::RoundRobin;
use perfprop::rates::{Confidence, Delta, Uncertain};
use perfprop::units::CpuNs;

use super::{Answer, Counted, Estimating, Init, Schedule};

/// The estimator that is scored.
pub struct Scored(pub Gp, pub RoundRobin);

impl Scored {
    pub fn new(init: &Init, prior: &Prior, model: Option<&CovarianceModel>) -> Self {
        Self::with(init, prior, model, Settings::default())
    }

    /// With these settings; smaller steps where there is a model.
    pub fn with(init: &Init, prior: &Prior, model: Option<&CovarianceModel>, settings: Settings) -> Self {
        Self::as_is(init, prior, model, if model.is_some() { settings.with_model() } else { settings })
    }

    /// A learning run.
    pub fn learning(init: &Init, prior: &Prior, model: Option<&CovarianceModel>, settings: Settings) -> Self {
        let Self(gp, turns) = Self::as_is(init, prior, model, settings);
        Self(gp.learning(model), turns)
    }

    /// The same, with what [`Scored::hindsight`] needs.
    pub fn keeping(self) -> Self {
        Self(self.0.keeping_windows(), self.1)
    }

    /// What it answers for each report when the whole run is known.
    pub fn hindsight(&self) -> Vec<Vec<Answer>> {
        self.0.hindsight(Confidence::DEFAULT).unwrap_or_default().into_iter().map(answers).collect()
    }

    fn as_is(init: &Init, prior: &Prior, model: Option<&CovarianceModel>, settings: Settings) -> Self {
        let spec = |(name, fixed): &(String, bool)| EventSpec {
            name: name.clone(),
            counted: if *fixed { WhenCounted::Always } else { WhenCounted::InTurns },
        };
        let events: Vec<_> = init.events.iter().map(spec).collect();
        let rotation_ms = match init.setup.schedule {
            Schedule::Kernel => init.setup.mux_ms,
            Schedule::User => init.read_ms,
        };
        let multiplexed =
            (0..events.len()).filter(|&event| !events[event].counted.is_always()).map(|event| vec![event]).collect();
        let turns = RoundRobin::new(multiplexed, init.setup.counters, Vec::new());
        Self(Gp::new(&events, rotation_ms, settings, prior, model), turns)
    }
}

pub fn answers(estimates: Vec<Option<Uncertain>>) -> Vec<Answer> {
    let answer = |estimate: Option<Uncertain>| {
        let estimate = estimate.unwrap_or(Uncertain::exact(0.0));
        let (low, high) = estimate.bounds().unwrap_or((estimate.value, estimate.value));
        Answer { estimate: estimate.value, low, high }
    };
    estimates.into_iter().map(answer).collect()
}

impl Estimating for Scored {
    fn round(&mut self, start: f64, end: f64, counted: &[Counted], report: bool) -> Option<Vec<Answer>> {
        let delta =
            |&[raw, enabled, running]: &Counted| Delta { count: raw, enabled: CpuNs(enabled), running: CpuNs(running) };
        let deltas: Vec<_> = counted.iter().map(delta).collect();
        self.0.round(Span { start, end }, &deltas);
        report.then(|| answers(self.0.interval(Confidence::DEFAULT)))
    }

    fn next(&mut self) -> Option<Vec<usize>> {
        Some(self.1.next_slice())
    }

    fn totals(&mut self) -> Vec<Answer> {
        answers(self.0.totals(Confidence::DEFAULT).into_iter().map(|total| Some(total?.count)).collect())
    }
}
