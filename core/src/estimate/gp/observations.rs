//! Makes of blocks what a window observes of rates.

use super::blocks::{CountBlock, WHOLE};
use super::threads::WhichThreads;
use super::time::{self, LONG_MEMORY, PerProcess, VARYING};
use super::window::{Observation, WindowScale};
use super::{Gp, Settings};

/// What no rate fits, as a variance relative to the event's present one; of an event that varies by so little in the
/// long term that [`STEADY`] times its variance is below 1, that part of it.
const NOISE: f64 = 2e-4;
const STEADY: f64 = 10.0;
/// No variance is smaller than what a rate of present size rounds to.
const ROUNDED: f64 = 1e-9;

impl Gp {
    /// How long before it a window takes observations from.
    pub(super) fn context(&self, since: f64) -> f64 {
        self.settings.context_ms.max(Settings::LEAST_MS - (self.times.end - since))
    }

    /// What blocks say of the time from shortly before `since`.
    pub(super) fn observations(&self, since: f64) -> Vec<Observation> {
        let (most, context) = (self.settings.most_observations, self.context(since));
        let [.., longest] = Settings::BLOCKS_MS;
        let joined = |context: f64, longest: f64| self.blocks.joined(since - context, since, longest);
        let few = Settings::BLOCKS_MS.into_iter().map(|longest| joined(context, longest)).find(|all| all.len() <= most);
        let blocks = few.unwrap_or_else(|| joined(context.min(Settings::SHORT_CONTEXT_MS), longest));
        let observations = blocks.iter().filter_map(|block| {
            let (scale, own) = (self.process.scales[block.event], self.covariances_of(block.event));
            if self.threads.are_known() {
                return self.observation_of_threads(block, scale, own);
            }
            Some(self.observation(block, self.levels[block.event].rate()?, scale, own))
        });
        observations.collect()
    }

    pub(super) fn observation(
        &self,
        block: &CountBlock,
        rate: f64,
        scale: WindowScale,
        own: &PerProcess,
    ) -> Observation {
        let mut noise = noise(scale, own) + ROUNDED;
        let sampling_deviation = block.sampling_variance().sqrt();
        if sampling_deviation == 0.0 && block.counted < WHOLE * block.span.length() {
            noise += unplaced(scale, own, block.counted, block.span.length());
        }
        Observation {
            event: block.event,
            span: block.span,
            stay: block.stay,
            value: block.rate() / rate - 1.0,
            noise,
            sampling_deviation,
            threads: WhichThreads::All,
        }
    }

    /// What a block says where it is known which threads it is of.
    fn observation_of_threads(&self, block: &CountBlock, scale: WindowScale, own: &PerProcess) -> Option<Observation> {
        let seen = self.threads.seen(block.event, block.span)?;
        let (value, threads) = self.threads.deviation(block.event, &seen, block.rate());
        let length = seen.span.length();
        let mut noise = noise(scale, own);
        if seen.part < WHOLE {
            noise += unplaced(scale, own, seen.part * length, length);
        }
        let noise = noise * threads.alike(&threads) + ROUNDED;
        let (event, stay, sampling_deviation) = (block.event, block.stay, 0.0);
        Some(Observation { event, span: seen.span, stay, value, noise, sampling_deviation, threads })
    }

    fn covariances_of(&self, event: usize) -> &PerProcess {
        self.process.covariances.at(event, event)
    }
}

/// The variance of a block's rate that no rate fits, of an event with these covariances.
fn noise(scale: WindowScale, own: &PerProcess) -> f64 {
    NOISE * scale.rest.powi(2) * (STEADY * own[LONG_MEMORY]).min(1.0)
}

/// By how much more the mean over some milliseconds of a length varies than that over all of it: it isn't known which
/// of them were counted.
fn unplaced(scale: WindowScale, own: &PerProcess, counted: f64, length: f64) -> f64 {
    let (part, whole) = (time::variances(counted), time::variances(length));
    scale.rest.powi(2) * VARYING.map(|process| own[process] * (part[process] - whole[process])).sum::<f64>()
}
