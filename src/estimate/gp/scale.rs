//! Observations in, how much each event varies at present over how it does at large out.

use super::Tuning;
use super::covariance::Covariances;
use super::time::{PROCESSES, Span, TimedSpan};
use super::window::{Observation, Scale};

/// Running ratios of squared changes to what covariances expect of them.
#[derive(Clone, Debug)]
pub(crate) struct Volatility {
    tuning: (f64, f64, f64, f64, f64, f64),
    rest: (f64, f64),
    level: (f64, f64),
}

impl Volatility {
    pub(crate) fn new(t: &Tuning) -> Self {
        Self {
            tuning: (t.v_decay, t.v_pseudo, t.v_level, t.v_on, t.v_floor, t.v_lag),
            rest: (0.0, 0.0),
            level: (0.0, 0.0),
        }
    }

    pub(crate) fn scale(&self) -> Scale {
        let (_, pseudo, _, on, floor, _) = self.tuning;
        let ratio = |(sum, count): (f64, f64)| ((sum + pseudo) / (count + pseudo)).clamp(floor * floor, 100.0).sqrt().powf(on);
        let level = (0.3 + self.level.0) / (0.3 + self.level.1);
        Scale { level: level.clamp(0.25, 400.0).sqrt(), rest: ratio(self.rest) }
    }

    pub(crate) fn update(&mut self, event: usize, span: Span, all: &[Observation], covariances: &Covariances, _: f64) {
        let (decay, _, level_decay, _, _, lag) = self.tuning;
        let own = covariances.at(event, event);
        let mine: Vec<&Observation> = all.iter().filter(|o| o.event == event).collect();
        if mine.is_empty() {
            return;
        }
        let decay = decay.powf(span.length() / 100.0);
        let (mut sum, mut count) = (0.0, 0.0);
        for (i, o) in mine.iter().enumerate() {
            if o.span.end <= span.start + 1e-9 {
                continue;
            }
            let before = mine[..i].iter().rev().find(|b| b.span.start + lag <= o.span.start);
            let Some(before) = before else { continue };
            let (a, b) = (TimedSpan::new(before.span, o.span.start), TimedSpan::new(o.span, o.span.start));
            let (aa, bb, ab) = (a.covariances(&a), b.covariances(&b), a.covariances(&b));
            let expected: f64 = (1..PROCESSES).map(|j| own[j] * (aa[j] + bb[j] - 2.0 * ab[j])).sum();
            sum += ((o.value - before.value).powi(2) / expected.max(1e-12)).min(100.0);
            count += 1.0;
        }
        // Neighbours say the same again: a window counts for a few at most.
        let weight = if count > 4.0 { 4.0 / count } else { 1.0 };
        self.rest = (decay * self.rest.0 + weight * sum, decay * self.rest.1 + weight * count);
        let total: f64 = mine.iter().map(|o| o.span.length()).sum();
        let mean = mine.iter().map(|o| o.span.length() * o.value).sum::<f64>() / total;
        let decay = level_decay.powf(span.length() / 100.0);
        self.level = (decay * self.level.0 + mean * mean / own[0].max(1e-9), decay * self.level.1 + 1.0);
    }
}
