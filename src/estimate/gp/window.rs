//! Observations and covariances in, what a window counted and what they say of the covariances out.

use super::covariance::Covariances;
use super::linear_algebra::{Square, dot};
use super::time::{PROCESSES, PerProcess, Span, TimedSpan};

/// A mean rate over a span, relative to the event's mean: zero is the mean, one twice the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    pub(crate) event: usize,
    pub(crate) span: Span,
    pub(crate) value: f64,
    /// The variance that is no part of the rate over the span.
    pub(crate) noise: f64,
    /// Numbers the times that the event was on a counter; `None` if it always is.
    pub(crate) turn: Option<u64>,
    /// How long of the span the event was counted.
    pub(crate) counted: f64,
    /// How much the event's level and its rate vary at present, over how they do at large.
    pub(crate) scale: Scale,
}

/// Factors on what is constant in a window, and on what isn't.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) level: f64,
    pub(crate) rest: f64,
}

impl Scale {
    /// As covariances have it.
    pub(crate) const AT_LARGE: Self = Self { level: 1.0, rest: 1.0 };

    /// The sum over processes of covariances, each times the product of both scales.
    fn covariance(self, other: Self, in_time: &PerProcess, between: &PerProcess) -> f64 {
        let rest: f64 = (1..PROCESSES).map(|j| in_time[j] * between[j]).sum();
        self.level * other.level * in_time[0] * between[0] + self.rest * other.rest * rest
    }
}

/// A window's observations, solved for.
pub(crate) struct Solved<'a> {
    pub(crate) observations: &'a [Observation],
    spans: Vec<TimedSpan>,
    /// Covariances in time of each pair of observations; the lower triangle, row after row.
    time: Vec<PerProcess>,
    /// The observations times the inverse of their covariance.
    pub(crate) weights: Vec<f64>,
    /// Inverse of the Cholesky factor of their covariance.
    whitening: Square,
    inverse: Option<Square>,
    /// Squared Mahalanobis length of the observations.
    pub(crate) surprise: f64,
    /// But for a constant.
    #[cfg(test)]
    pub(crate) log_likelihood: f64,
}

/// What is known of an event's turn on a counter without the turn itself, in relative units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeftOut {
    pub(crate) event: usize,
    pub(crate) start: f64,
    /// What was counted.
    pub(crate) value: f64,
    /// That, less what all other observations say of it, and the variance of this.
    pub(crate) residual: f64,
    pub(crate) variance: f64,
    /// The mean over the event's other turns in the window.
    pub(crate) others: Option<f64>,
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

impl<'a> Solved<'a> {
    /// `None` where rounding leaves the covariance not positive definite.
    pub(crate) fn new(observations: &'a [Observation], covariances: &Covariances) -> Option<Self> {
        let n = observations.len();
        let origin = observations.first().map_or(0.0, |first| first.span.start);
        let spans: Vec<_> = observations.iter().map(|o| TimedSpan::new(o.span, origin)).collect();
        let mut time = Vec::with_capacity(n * (n + 1) / 2);
        let mut whitening = Square::zeros(n);
        for a in 0..n {
            let row = whitening.row_mut(a);
            for b in 0..=a {
                let in_time = spans[a].covariances(&spans[b]);
                let between = covariances.at(observations[a].event, observations[b].event);
                row[b] = observations[a].scale.covariance(observations[b].scale, &in_time, between);
                time.push(in_time);
            }
            row[a] += observations[a].noise;
        }
        if !whitening.cholesky() {
            return None;
        }
        #[cfg(test)]
        let log_determinant: f64 = (0..n).map(|a| whitening.at(a, a).ln()).sum();
        whitening.invert_lower();
        let whitened: Vec<f64> = (0..n)
            .map(|a| whitening.row(a)[..=a].iter().zip(observations).map(|(factor, o)| factor * o.value).sum())
            .collect();
        let mut weights = vec![0.0; n];
        for (row, &value) in whitened.iter().enumerate() {
            for (weight, factor) in weights.iter_mut().zip(&whitening.row(row)[..=row]) {
                *weight += factor * value;
            }
        }
        let surprise = dot(&whitened, &whitened);
        Some(Self {
            observations,
            spans,
            time,
            weights,
            whitening,
            inverse: None,
            surprise,
            #[cfg(test)]
            log_likelihood: -0.5 * surprise - log_determinant,
        })
    }

    /// Degrees of freedom of the t distribution that windows are taken to follow.
    pub(crate) const DEGREES: f64 = 6.0;

    /// How much larger than expected squared deviations are in this window.
    pub(crate) fn scale(&self) -> f64 {
        (Self::DEGREES + self.surprise) / (Self::DEGREES + self.observations.len() as f64)
    }

    fn inverse(&mut self) -> &Square {
        self.inverse.get_or_insert_with(|| self.whitening.gram_of_lower())
    }

    /// What the events' sums over a span were, in relative units times milliseconds.
    pub(crate) fn sums(&self, span: Span, covariances: &Covariances, scales: &[Scale]) -> Posterior {
        let events = covariances.events();
        let n = self.observations.len();
        let origin = self.observations.first().map_or(0.0, |first| first.span.start);
        let target = TimedSpan::new(span, origin);
        let in_time: Vec<PerProcess> = self.spans.iter().map(|span| span.covariances(&target)).collect();
        let own = target.covariances(&target);
        let length = span.length();
        let mut mean = vec![0.0; events];
        let mut covariance = Square::zeros(events);
        let mut whitened = vec![vec![0.0; n]; events];
        let mut cross = vec![0.0; n];
        for event in 0..events {
            for (a, observation) in self.observations.iter().enumerate() {
                let between = covariances.at(event, observation.event);
                cross[a] = length * scales[event].covariance(observation.scale, &in_time[a], between);
            }
            mean[event] = dot(&cross, &self.weights);
            for a in 0..n {
                whitened[event][a] = dot(&self.whitening.row(a)[..=a], &cross[..=a]);
            }
            for other in 0..=event {
                let between = covariances.at(event, other);
                let prior = length * length * scales[event].covariance(scales[other], &own, between);
                let value = prior - dot(&whitened[event], &whitened[other]);
                *covariance.at_mut(event, other) = value;
                *covariance.at_mut(other, event) = value;
            }
        }
        Posterior { mean, covariance }
    }

    /// For each turn of a multiplexed event on a counter since `since`: what all else says of it.
    pub(crate) fn left_out(&mut self, since: f64) -> Vec<LeftOut> {
        self.inverse();
        let Some(inverse) = &self.inverse else { return Vec::new() };
        let mut turns: Vec<(usize, u64, Vec<usize>)> = Vec::new();
        for (a, observation) in self.observations.iter().enumerate() {
            let Some(turn) = observation.turn else { continue };
            let same = |(event, t, _): &&mut (usize, u64, Vec<usize>)| (*event, *t) == (observation.event, turn);
            match turns.iter_mut().find(same) {
                Some((_, _, members)) => members.push(a),
                None => turns.push((observation.event, turn, vec![a])),
            }
        }
        let recent = |members: &[usize]| members.iter().all(|&a| self.observations[a].span.start >= since - 1e-9);
        let mut left_out: Vec<LeftOut> = turns
            .iter()
            .filter(|(_, _, members)| recent(members))
            .filter_map(|(event, turn, members)| {
                let (residual, variance) = self.residual(inverse, members)?;
                let (own, _) = self.mean_of(members);
                let others = turns.iter().filter(|(e, t, _)| e == event && t != turn);
                let (sum, length) = others.fold((0.0, 0.0), |(sum, length), (_, _, members)| {
                    let (mean, own) = self.mean_of(members);
                    (sum + mean * own, length + own)
                });
                let others = (length > 0.0).then(|| sum / length);
                let start = self.observations[members[0]].span.start;
                Some(LeftOut { event: *event, start, value: own, residual, variance, others })
            })
            .collect();
        left_out.sort_by(|a, b| a.start.total_cmp(&b.start));
        left_out
    }

    fn mean_of(&self, members: &[usize]) -> (f64, f64) {
        let length: f64 = members.iter().map(|&a| self.observations[a].counted).sum();
        let sum: f64 = members.iter().map(|&a| self.observations[a].counted * self.observations[a].value).sum();
        (sum / length, length)
    }

    /// The mean of some observations less what all others say of it, and the variance of that: the
    /// inverse of their block of the inverse covariance times their weights.
    fn residual(&self, inverse: &Square, members: &[usize]) -> Option<(f64, f64)> {
        let at = |a: usize, b: usize| inverse.at(a.max(b), a.min(b));
        if let [a] = *members {
            return Some((self.weights[a] / at(a, a), 1.0 / at(a, a)));
        }
        let mut block = Square::zeros(members.len());
        for (i, &a) in members.iter().enumerate() {
            for (j, &b) in members.iter().enumerate() {
                *block.at_mut(i, j) = at(a, b);
            }
        }
        if !block.cholesky() {
            return None;
        }
        block.invert_lower();
        let mut variances = block.gram_of_lower();
        variances.mirror();
        let lengths: Vec<f64> = members.iter().map(|&a| self.observations[a].span.length()).collect();
        let total: f64 = lengths.iter().sum();
        let (mut residual, mut variance) = (0.0, 0.0);
        for (i, length) in lengths.iter().enumerate() {
            for (j, &b) in members.iter().enumerate() {
                residual += length * variances.at(i, j) * self.weights[b] / total;
                variance += length * variances.at(i, j) * lengths[j] / (total * total);
            }
        }
        Some((residual, variance))
    }

    /// Twice the derivative of the log likelihood by the covariances of each process, over the
    /// events `active` in that order; the data's part times `weight`.
    pub(crate) fn gradient(&mut self, active: &[usize], weight: f64) -> Vec<Square> {
        self.inverse();
        let mut places = vec![usize::MAX; active.iter().max().map_or(0, |last| last + 1)];
        for (place, &event) in active.iter().enumerate() {
            places[event] = place;
        }
        let size = active.len();
        let mut sums = vec![[0.0; PROCESSES]; size * size];
        let Some(inverse) = &self.inverse else { return Vec::new() };
        let mut time = self.time.iter();
        for a in 0..self.observations.len() {
            let place = places[self.observations[a].event] * size;
            let row = inverse.row(a);
            for b in 0..=a {
                let Some(in_time) = time.next() else { break };
                let value = weight * self.weights[a] * self.weights[b] - row[b];
                let value = if a == b { 0.5 * value } else { value };
                let sum = &mut sums[place + places[self.observations[b].event]];
                let (one, other) = (self.observations[a].scale, self.observations[b].scale);
                sum[0] += value * one.level * other.level * in_time[0];
                let value = value * one.rest * other.rest;
                for j in 1..PROCESSES {
                    sum[j] += value * in_time[j];
                }
            }
        }
        let mut gradient = vec![Square::zeros(size); PROCESSES];
        for a in 0..size {
            for b in 0..size {
                for (j, matrix) in gradient.iter_mut().enumerate() {
                    *matrix.at_mut(a, b) = sums[a * size + b][j] + sums[b * size + a][j];
                }
            }
        }
        gradient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gradient_is_that_of_the_log_likelihood() {
        let mut covariances = Covariances::zeros(3);
        for a in 0..3 {
            for b in 0..3 {
                for j in 0..PROCESSES {
                    covariances.at_mut(a, b)[j] = if a == b { 0.3 } else { 0.05 * (j as f64 + 1.0) };
                }
            }
        }
        let observation = |i: usize| {
            let start = 4.0 * i as f64;
            let span = Span { start, end: start + 4.0 + 8.0 * (i % 2) as f64 };
            Observation {
                event: i % 3,
                span,
                value: (i as f64).sin(),
                noise: 0.01,
                turn: None,
                counted: 0.0,
                scale: Scale { level: 0.7, rest: 1.5 },
            }
        };
        let observations: Vec<_> = (0..9).map(observation).collect();
        let mut solved = Solved::new(&observations, &covariances).unwrap_or_else(|| unreachable!());
        let gradient = solved.gradient(&[0, 1, 2], 1.0);
        for (j, gradient) in gradient.iter().enumerate() {
            for (a, b) in [(0, 0), (1, 0), (2, 1)] {
                let moved = |by: f64| {
                    let mut moved = covariances.clone();
                    moved.at_mut(a, b)[j] += by;
                    if a != b {
                        moved.at_mut(b, a)[j] += by;
                    }
                    Solved::new(&observations, &moved).unwrap_or_else(|| unreachable!()).log_likelihood
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let expected = gradient.at(a, b) * if a == b { 0.5 } else { 1.0 };
                assert!((slope - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{j} {a} {b}: {slope} {expected}");
            }
        }
    }
}
