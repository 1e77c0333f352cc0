//! Turns that were left out and what all else said of them in, how far an event's estimates can be
//! trusted out.

/// How an event's left out turns agreed with what foretold them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust {
    /// The squared residual of what is shown, over the variance that was expected of it.
    kappa: f64,
    /// The rate of the last turn.
    last: Option<f64>,
    /// Sums over turns of the squared difference between both predictions, and of its product with
    /// the residual of scaling's.
    difference: f64,
    product: f64,
    /// Turns without a count since the last that had one.
    quiet: i32,
}

/// After so many quiet turns an event may have stopped, and for each more the process, which knows
/// rates only, is believed less by this factor.
const MAY_HAVE_STOPPED: i32 = 2;
const STOPPED: f64 = 0.7;

/// The weight of the latest turn in the running ratio.
const LATEST: f64 = 0.13;
/// What is kept of the sums at each turn.
const KEPT: f64 = 0.95;
/// The sums at the start, when the process is believed.
const START: f64 = 0.5;

impl Default for Trust {
    fn default() -> Self {
        Self { kappa: 1.0, last: None, difference: 0.0, product: 0.0, quiet: 0 }
    }
}

impl Trust {
    /// The weight of the process against scaling: what least squares give for the turns left out.
    pub(crate) fn weight(&self) -> f64 {
        let quiet = STOPPED.powi((self.quiet - MAY_HAVE_STOPPED).max(0));
        quiet * ((self.product + START) / (self.difference + START)).clamp(0.0, 1.0)
    }

    /// The factor on variances.
    pub(crate) fn kappa(&self) -> f64 {
        self.kappa.clamp(0.1, 50.0)
    }

    /// The rate of the last turn.
    pub(crate) fn last(&self) -> Option<f64> {
        self.last
    }

    /// Takes a turn: its rate, the process' residual and the variance expected of it, and the
    /// residual of scaling from other turns.
    pub(crate) fn update(&mut self, rate: f64, residual: f64, variance: f64, scaling: Option<f64>) {
        self.last = Some(rate);
        self.quiet = if rate > 1e-9 { 0 } else { (self.quiet + 1).min(100) };
        let weight = self.weight();
        let shown = scaling.map_or(residual, |scaling| weight * residual + (1.0 - weight) * scaling);
        let ratio = (shown * shown / variance).min(60.0);
        if !ratio.is_finite() {
            return;
        }
        self.kappa += LATEST * (ratio - self.kappa);
        if let Some(scaling) = scaling {
            // Turns weigh by what was expected of them, so that a burst doesn't outweigh all else.
            let weight = 1.0 / (variance + residual * residual + scaling * scaling).max(1e-12);
            let difference = scaling - residual;
            self.difference = KEPT * self.difference + weight * difference * difference;
            self.product = KEPT * self.product + weight * scaling * difference;
        }
    }
}
