//! What was left out and what all else said of it in, how far an event's estimates can be trusted out.

use super::Tuning;

/// How an event's left out turns agreed with what foretold them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trust {
    /// The squared residual of what is shown over the variance that was expected.
    pub(crate) kappa: f64,
    /// The rate of the last turn.
    pub(crate) last: Option<f64>,
    /// Sums over turns of the squared difference between both predictions, and of its product with
    /// the residual of scaling's.
    difference: f64,
    product: f64,
}

impl Default for Trust {
    fn default() -> Self {
        Self { kappa: 1.0, last: None, difference: 0.0, product: 0.0 }
    }
}

impl Trust {
    /// The weight of the process against scaling: what least squares give for the turns left out.
    pub(crate) fn weight(&self, tuning: &Tuning) -> f64 {
        ((self.product + tuning.t_pseudo) / (self.difference + tuning.t_pseudo)).clamp(0.0, 1.0)
    }

    pub(crate) fn update(&mut self, residual: f64, variance: f64, scaling: Option<f64>, tuning: &Tuning) {
        let weight = self.weight(tuning);
        let shown = scaling.map_or(residual, |scaling| weight * residual + (1.0 - weight) * scaling);
        let ratio = (shown * shown / variance).min(25.0);
        self.kappa += tuning.kappa * (ratio - self.kappa);
        if let Some(scaling) = scaling {
            // Turns weigh by what was expected of them, so that a burst doesn't outweigh all else.
            let weight = 1.0 / (variance + residual * residual + scaling * scaling).max(1e-12);
            let difference = scaling - residual;
            self.difference = tuning.t_decay * self.difference + weight * difference * difference;
            self.product = tuning.t_decay * self.product + weight * scaling * difference;
        }
    }
}

/// How the rates of an event's turns on a counter differ, from which follows the error of its
/// scaled total.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    raw: f64,
    running: f64,
    last: Option<(f64, f64)>,
    squares: f64,
    lengths: f64,
    lengths_squared: f64,
    count: f64,
}

impl Turns {
    pub(crate) fn push(&mut self, raw: f64, running: f64) {
        if running > 0.0 {
            self.raw += raw;
            self.running += running;
        } else if self.running > 0.0 {
            let rate = self.raw / self.running;
            if let Some((before, _)) = self.last {
                self.squares += (rate - before).powi(2) * 0.5;
                self.count += 1.0;
            }
            self.last = Some((rate, self.running));
            self.lengths += self.running;
            self.lengths_squared += self.running * self.running;
            self.raw = 0.0;
            self.running = 0.0;
        }
    }

    pub(crate) fn half_width(&self, scaled: f64, fraction: f64, _: f64) -> f64 {
        if self.count < 1.0 {
            return scaled;
        }
        let variance = self.squares / self.count / (self.count + 1.0) * (1.0 - fraction);
        let mean = self.lengths;
        let total_time = mean / fraction;
        2.1 * variance.sqrt() * total_time
    }
}
