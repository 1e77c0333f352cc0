//! The estimator `gp` as the simulator knows estimators.

use perfprop::estimate::gp::{Delta, EventSpec, Gp, IntervalEstimate, Model, Prior, Settings, Span, Timing};

use super::{Answer, Counted, Estimating, Init, Schedule};

/// The estimator that is scored.
pub struct Scored(pub Gp);

impl Scored {
    pub fn new(init: &Init, prior: &Prior, model: Option<&Model>) -> Self {
        Self::with(init, prior, model, Settings::default())
    }

    /// With these settings; smaller steps where there is a model.
    pub fn with(init: &Init, prior: &Prior, model: Option<&Model>, settings: Settings) -> Self {
        Self::as_is(init, prior, model, if model.is_some() { settings.with_model() } else { settings })
    }

    /// A learning run.
    pub fn learning(init: &Init, prior: &Prior, model: Option<&Model>, settings: Settings) -> Self {
        Self(Self::as_is(init, prior, model, settings).0.learning())
    }

    fn as_is(init: &Init, prior: &Prior, model: Option<&Model>, settings: Settings) -> Self {
        let spec = |(name, fixed): &(String, bool)| EventSpec { name: name.clone(), always_counted: *fixed };
        let events: Vec<_> = init.events.iter().map(spec).collect();
        let rotation_ms = match init.setup.schedule {
            Schedule::Kernel => init.setup.mux_ms,
            Schedule::User => init.read_ms,
        };
        let timing = Timing { read_ms: init.read_ms, rotation_ms, counters: init.setup.counters };
        Self(Gp::new(&events, timing, settings, prior, model))
    }
}

fn answers(estimates: Vec<Option<IntervalEstimate>>) -> Vec<Answer> {
    let estimates = estimates.into_iter().map(Option::unwrap_or_default);
    estimates.map(|e| Answer { estimate: e.estimate, low: e.low, high: e.high }).collect()
}

impl Estimating for Scored {
    fn round(&mut self, start: f64, end: f64, counted: &[Counted], report: bool) -> Option<Vec<Answer>> {
        let delta = |&[raw, enabled, running]: &Counted| Delta {
            raw: raw as f64,
            enabled_ns: enabled as f64,
            running_ns: running as f64,
        };
        let deltas: Vec<_> = counted.iter().map(delta).collect();
        self.0.round(Span { start, end }, &deltas);
        report.then(|| answers(self.0.interval()))
    }

    fn next(&mut self) -> Option<Vec<usize>> {
        Some(self.0.next_events())
    }

    fn totals(&mut self) -> Vec<Answer> {
        answers(self.0.totals())
    }
}
