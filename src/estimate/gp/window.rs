//! Solves a window's observations for what it counted, and for what they say of the covariances.

use super::covariance::Covariances;
use super::linear_algebra::{Square, dot};
use super::time::{CONSTANT, PROCESSES, PerProcess, SLICES, Span, TimedSpan};

/// A mean rate over a span, relative to the event's mean: zero is the mean, one twice the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    pub(crate) event: usize,
    pub(crate) span: Span,
    pub(crate) value: f64,
    /// The variance that is no part of the rate over the span.
    pub(crate) noise: f64,
    /// The root of how many times the variance between threads it is off by; that lasts for as long as the same ones
    /// are counted.
    pub(crate) between_threads: f64,
    /// How much the event's level and its rate vary at present, over how they do at large.
    pub(crate) scale: WindowScale,
}

impl Observation {
    /// What another of the same event shares of the error between threads, over their variance.
    fn between_threads(&self, other: &Self, in_time: &PerProcess) -> f64 {
        let both = self.between_threads * other.between_threads;
        if both == 0.0 {
            return 0.0;
        }
        let scale = self.scale.rest * other.scale.rest;
        both * scale * (in_time[SLICES] / scale).powi(SAME_THREADS)
    }
}

/// How likely the same threads are counted still, as a power of the process that remembers a turn: a turn ends, where
/// that fades.
const SAME_THREADS: i32 = 3;

/// Factors on what is constant in a window, and on what isn't.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowScale {
    pub(crate) level: f64,
    pub(crate) rest: f64,
}

impl WindowScale {
    /// Scales of 1: events vary as covariances say.
    pub(crate) const AT_LARGE: Self = Self { level: 1.0, rest: 1.0 };

    /// Covariances in time, each times the product of both scales.
    fn times(self, other: Self, in_time: &PerProcess) -> PerProcess {
        let (level, rest) = (self.level * other.level, self.rest * other.rest);
        let mut scaled = in_time.map(|value| rest * value);
        scaled[CONSTANT] = level * in_time[CONSTANT];
        scaled
    }
}

/// The sum over processes of products.
fn sum_of(in_time: &PerProcess, between: &PerProcess) -> f64 {
    in_time.iter().zip(between).map(|(a, b)| a * b).sum()
}

/// Observations with how alike times make each pair of them.
pub(crate) struct Window {
    pub(crate) observations: Vec<Observation>,
    spans: Vec<TimedSpan>,
    /// Covariances in time of each pair of observations, scaled; the lower triangle, row after row.
    time: Vec<PerProcess>,
}

/// A window's observations, solved for.
pub(crate) struct Solved<'a> {
    pub(crate) window: &'a Window,
    /// The observations times the inverse of their covariance.
    weights: Vec<f64>,
    /// Inverse of the Cholesky factor of their covariance.
    whitening: Square,
    /// Squared Mahalanobis length of the observations.
    surprise: f64,
    /// Log likelihood, but for a constant.
    #[cfg(test)]
    pub(crate) log_likelihood: f64,
}

/// Means and covariances of events in a window, in relative units times its length.
pub(crate) struct Posterior {
    pub(crate) mean: Vec<f64>,
    pub(crate) covariance: Square,
}

impl Posterior {
    /// Independent counts, each with its standard error.
    pub(crate) fn independent(counts: impl Iterator<Item = (f64, f64)>) -> Self {
        let (mean, deviations): (Vec<_>, Vec<_>) = counts.unzip();
        let mut covariance = Square::zeros(mean.len());
        for (event, deviation) in deviations.into_iter().enumerate() {
            *covariance.at_mut(event, event) = deviation * deviation;
        }
        Self { mean, covariance }
    }
}

impl Window {
    pub(crate) fn new(observations: Vec<Observation>) -> Self {
        let origin = observations.first().map_or(0.0, |first| first.span.start);
        let spans: Vec<_> = observations.iter().map(|o| TimedSpan::new(o.span, origin)).collect();
        let mut time = Vec::with_capacity(spans.len() * (spans.len() + 1) / 2);
        for (a, one) in observations.iter().enumerate() {
            let pairs = observations[..=a].iter().zip(&spans);
            time.extend(pairs.map(|(other, span)| one.scale.times(other.scale, &spans[a].covariances(span))));
        }
        Self { observations, spans, time }
    }

    /// Time from the start of its first observation to the end of its last.
    pub(crate) fn length(&self) -> f64 {
        let start = self.observations.iter().map(|o| o.span.start).fold(f64::INFINITY, f64::min);
        let end = self.observations.iter().map(|o| o.span.end).fold(f64::NEG_INFINITY, f64::max);
        end - start
    }

    /// `None` where rounding leaves the covariance not positive definite.
    pub(crate) fn solve(&self, covariances: &Covariances) -> Option<Solved<'_>> {
        let n = self.observations.len();
        let mut factor = Square::zeros(n);
        let mut time = self.time.iter();
        for (a, one) in self.observations.iter().enumerate() {
            let row = &mut factor.row_mut(a)[..=a];
            for ((value, in_time), other) in row.iter_mut().zip(&mut time).zip(&self.observations) {
                *value = sum_of(in_time, covariances.at(one.event, other.event));
                if one.event == other.event {
                    *value += covariances.between_threads(one.event) * one.between_threads(other, in_time);
                }
            }
            row[a] += one.noise;
        }
        if !factor.cholesky() {
            return None;
        }
        let whitening = factor.inverse_of_transposed();
        let values: Vec<f64> = self.observations.iter().map(|o| o.value).collect();
        let whitened: Vec<f64> = (0..n).map(|a| dot(&whitening.row(a)[..=a], &values[..=a])).collect();
        let mut weights = vec![0.0; n];
        for (row, &value) in whitened.iter().enumerate() {
            for (weight, factor) in weights.iter_mut().zip(&whitening.row(row)[..=row]) {
                *weight += factor * value;
            }
        }
        let surprise = dot(&whitened, &whitened);
        Some(Solved {
            window: self,
            weights,
            whitening,
            surprise,
            #[cfg(test)]
            log_likelihood: -0.5 * surprise - (0..n).map(|a| factor.at(a, a).ln()).sum::<f64>(),
        })
    }
}

impl Solved<'_> {
    /// Degrees of freedom of the t distribution that windows are taken to follow.
    pub(crate) const DEGREES: f64 = 6.0;

    /// How much larger than expected squared deviations are in this window.
    pub(crate) fn scale(&self) -> f64 {
        (Self::DEGREES + self.surprise) / (Self::DEGREES + self.window.observations.len() as f64)
    }

    /// What the events' sums over a span were, in relative units times milliseconds.
    pub(crate) fn sums(&self, span: Span, covariances: &Covariances, scales: &[WindowScale]) -> Posterior {
        let events = covariances.events();
        let observations = &self.window.observations;
        let n = observations.len();
        let origin = observations.first().map_or(0.0, |first| first.span.start);
        let target = TimedSpan::new(span, origin);
        let in_time: Vec<PerProcess> = self.window.spans.iter().map(|span| span.covariances(&target)).collect();
        let own = target.covariances(&target);
        let length = span.length();
        let mut mean = vec![0.0; events];
        let mut covariance = Square::zeros(events);
        let mut whitened = vec![vec![0.0; n]; events];
        let mut cross = vec![0.0; n];
        for event in 0..events {
            for (a, observation) in observations.iter().enumerate() {
                let between = covariances.at(event, observation.event);
                cross[a] = length * sum_of(&scales[event].times(observation.scale, &in_time[a]), between);
            }
            mean[event] = dot(&cross, &self.weights);
            for a in 0..n {
                whitened[event][a] = dot(&self.whitening.row(a)[..=a], &cross[..=a]);
            }
            for other in 0..=event {
                let between = covariances.at(event, other);
                let prior = length * length * sum_of(&scales[event].times(scales[other], &own), between);
                let value = prior - dot(&whitened[event], &whitened[other]);
                *covariance.at_mut(event, other) = value;
                *covariance.at_mut(other, event) = value;
            }
        }
        Posterior { mean, covariance }
    }

    /// Twice the derivative of the log likelihood by the covariances of each process; the data's part
    /// times `weight`.
    pub(crate) fn gradient(&self, events: usize, weight: f64) -> Gradient {
        let inverse = self.whitening.gram_of_lower();
        let observations = &self.window.observations;
        let mut sums = vec![PerProcess::default(); events * events];
        let mut threads = vec![0.0; events];
        let mut time = self.window.time.iter();
        for (a, one) in observations.iter().enumerate() {
            let (row, sums) = (inverse.row(a), &mut sums[one.event * events..][..events]);
            for (b, (other, in_time)) in observations[..=a].iter().zip(&mut time).enumerate() {
                let value = weight * self.weights[a] * self.weights[b] - row[b];
                let value = if a == b { 0.5 * value } else { value };
                for (sum, in_time) in sums[other.event].iter_mut().zip(in_time) {
                    *sum += value * in_time;
                }
                if one.event == other.event {
                    threads[one.event] += 2.0 * value * one.between_threads(other, in_time);
                }
            }
        }
        let mut processes = vec![Square::zeros(events); PROCESSES];
        for (j, matrix) in processes.iter_mut().enumerate() {
            for a in 0..events {
                for (b, value) in matrix.row_mut(a).iter_mut().enumerate() {
                    *value = sums[a * events + b][j] + sums[b * events + a][j];
                }
            }
        }
        Gradient { processes, threads }
    }
}

/// Twice the derivative of a log likelihood.
pub(crate) struct Gradient {
    /// By the covariances of each process.
    pub(crate) processes: Vec<Square>,
    /// By each event's variance between threads.
    pub(crate) threads: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_that_of_the_log_likelihood() {
        the_gradient_is_right(0.0);
        the_gradient_is_right(0.8);
    }

    fn the_gradient_is_right(between_threads: f64) {
        let mut covariances = Covariances::zeros(3);
        for a in 0..3 {
            for b in 0..3 {
                for j in 0..PROCESSES {
                    covariances.at_mut(a, b)[j] = if a == b { 0.3 } else { 0.05 * (j as f64 + 1.0) };
                }
            }
            *covariances.between_threads_mut(a) = 0.4;
        }
        let observation = |i: usize| {
            let start = 4.0 * i as f64;
            let span = Span { start, end: start + 4.0 + 8.0 * (i % 2) as f64 };
            Observation {
                event: i % 3,
                span,
                value: (i as f64).sin(),
                noise: 0.01,
                between_threads,
                scale: WindowScale { level: 0.7, rest: 1.5 },
            }
        };
        let window = Window::new((0..9).map(observation).collect());
        let solved = window.solve(&covariances).unwrap_or_else(|| unreachable!());
        let gradient = solved.gradient(3, 1.0);
        for (j, gradient) in gradient.processes.iter().enumerate() {
            for (a, b) in [(0, 0), (1, 0), (2, 1)] {
                let moved = |by: f64| {
                    let mut moved = covariances.clone();
                    moved.at_mut(a, b)[j] += by;
                    if a != b {
                        moved.at_mut(b, a)[j] += by;
                    }
                    window.solve(&moved).unwrap_or_else(|| unreachable!()).log_likelihood
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let expected = gradient.at(a, b) * if a == b { 0.5 } else { 1.0 };
                assert!((slope - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{j} {a} {b}: {slope} {expected}");
            }
        }
        for (event, &gradient) in gradient.threads.iter().enumerate() {
            let moved = |by: f64| {
                let mut moved = covariances.clone();
                *moved.between_threads_mut(event) += by;
                window.solve(&moved).unwrap_or_else(|| unreachable!()).log_likelihood
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((slope - 0.5 * gradient).abs() < 1e-4 * (1.0 + slope.abs()), "{event}: {slope} {gradient}");
        }
    }
}
