//! Solves a window's observations for what it counted, and for what they say of the covariances.

use std::cell::OnceCell;

use super::super::covariance::Covariances;
use super::super::threads::WhichThreads;
use super::super::time::{PROCESSES, PerProcess, Span, TimedSpan};
use super::{Observation, Window, add, sum_of};
use perfprop_linear_algebra::{Square, Tall, dot};

/// A window's observations, solved for.
pub(crate) struct Solved<'a> {
    pub(crate) window: &'a Window,
    /// The Cholesky factor of their covariance, upper, and the observations as it whitens them.
    factor: Square,
    whitened: Tall,
    /// The inverse of their covariance, once it was asked for.
    inverse: OnceCell<Inverse>,
    /// The square of the observations' Mahalanobis length.
    squared_length: f64,
    /// Log likelihood, but for a constant.
    #[cfg(test)]
    pub(crate) log_likelihood: f64,
}

/// A stay on a counter against what is said of it.
#[derive(Clone, Debug)]
pub(crate) struct LeftOut {
    pub(crate) event: usize,
    /// The square of how far its mean is from what all others say, over what that should be.
    pub(crate) square: f64,
    /// How far that is, relative to the event's mean rate; and how far it is from the event's last stay, if the window
    /// has it.
    pub(crate) off: f64,
    pub(crate) off_last: Option<f64>,
}

/// A stay on a counter that nothing explains.
#[derive(Clone, Debug)]
pub(crate) struct SurprisingStay {
    pub(crate) event: usize,
    /// The places of its observations.
    pub(crate) places: Vec<usize>,
    /// How far its mean is from what all others say of it, and the square of that over what it should be.
    pub(crate) off: f64,
    pub(crate) square: f64,
    /// How many observations of one length have a mean of the same variance: of one and nine parts of ten 1.22.
    pub(crate) effective: f64,
}

/// The inverse of the observations' covariance.
struct Inverse {
    /// Its lower triangle.
    matrix: Square,
    /// The observations times it.
    weights: Vec<f64>,
}

/// Of which pairs of events covariances are asked for. Variances always are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pairs {
    All,
    /// Those of different events are left at zero.
    None,
}

/// Means and covariances of events in a window, in relative units times its length.
pub(crate) struct Posterior {
    pub(crate) mean: Vec<f64>,
    pub(crate) covariance: Square,
}

impl Posterior {
    /// Takes an event's mean and variance from another one; how its errors go along with others' stays.
    pub(crate) fn replace(&mut self, event: usize, other: &Self) {
        self.mean[event] = other.mean[event];
        let (before, variance) = (self.covariance.at(event, event), other.covariance.at(event, event));
        let factor = if before > 0.0 { (variance / before).sqrt() } else { 0.0 };
        for place in 0..self.mean.len() {
            *self.covariance.at_mut(event, place) *= factor;
            *self.covariance.at_mut(place, event) *= factor;
        }
        *self.covariance.at_mut(event, event) = variance;
    }

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
    /// `None` where rounding leaves the covariance not positive definite.
    pub(crate) fn solve(&self, covariances: &Covariances) -> Option<Solved<'_>> {
        let n = self.observations.len();
        let mut factor = Square::zeros(n);
        let pairs = self.seen.iter().flat_map(|&a| self.seen.iter().map(move |&b| (a, b)));
        let present: Vec<PerProcess> = pairs.map(|(a, b)| self.present(covariances, a, b)).collect();
        for (a, one) in self.observations.iter().enumerate() {
            let (row, in_time) = (&mut factor.row_mut(a)[..=a], self.spans.row(a));
            let between = &present[self.events[a] * self.seen.len()..];
            for ((value, &other), &place) in row.iter_mut().zip(&self.events).zip(&self.spans.places) {
                *value = sum_of(&in_time[place], &between[other]);
            }
            if let Some(alike) = self.threads_of(a) {
                row.iter_mut().zip(alike).for_each(|(value, alike)| *value *= alike);
                let (variance, scale) = (covariances.between_threads(one.event), self.scales[one.event]);
                for (b, other) in
                    self.observations[..=a].iter().enumerate().filter(|(_, other)| other.event == one.event)
                {
                    row[b] += variance * one.shared_of_threads(other, &in_time[self.spans.places[b]], scale);
                }
            }
            row[a] += one.noise;
        }
        if !factor.cholesky() {
            return None;
        }
        #[cfg(test)]
        let log_determinant = 2.0 * (0..n).map(|a| factor.at(a, a).ln()).sum::<f64>();
        let values = Tall::new(n, vec![self.observations.iter().map(|o| o.value).collect()]);
        let whitened = factor.transposed_solve(&values);
        let squared_length = dot(&whitened.columns()[0], &whitened.columns()[0]);
        Some(Solved {
            window: self,
            factor,
            whitened,
            inverse: OnceCell::new(),
            squared_length,
            #[cfg(test)]
            log_likelihood: -0.5 * (squared_length + log_determinant),
        })
    }
}

impl Solved<'_> {
    /// Degrees of freedom of the t distribution that windows are taken to follow.
    pub(crate) const DEGREES: f64 = 6.0;

    fn inverse(&self) -> &Inverse {
        self.inverse.get_or_init(|| {
            let whitening = self.factor.inverse_of_transposed();
            let mut weights = vec![0.0; whitening.size()];
            for (row, value) in self.whitened.columns()[0].iter().enumerate() {
                for (weight, factor) in weights.iter_mut().zip(&whitening.row(row)[..=row]) {
                    *weight += factor * value;
                }
            }
            Inverse { matrix: whitening.gram_of_lower(), weights }
        })
    }

    /// How much larger than expected squared deviations are in this window.
    pub(crate) fn scale(&self) -> f64 {
        (Self::DEGREES + self.squared_length) / (Self::DEGREES + self.window.observations.len() as f64)
    }

    /// What the events' sums over a span were, in relative units times milliseconds, of these threads.
    pub(crate) fn sums(
        &self,
        span: Span,
        covariances: &Covariances,
        threads: &[WhichThreads],
        pairs: Pairs,
    ) -> Posterior {
        let events = covariances.events();
        let observations = &self.window.observations;
        let n = observations.len();
        let origin = observations.first().map_or(0.0, |first| first.span.start);
        let target = TimedSpan::new(span, origin);
        let spans = &self.window.spans;
        let in_time: Vec<PerProcess> = spans.different.iter().map(|span| span.covariances(&target)).collect();
        let in_time = |observation: usize| &in_time[spans.places[observation]];
        let own = target.covariances(&target);
        let between = |event: usize, other: usize| self.window.present(covariances, event, other);
        let length = span.length();
        let cross = |event: usize| {
            let with = |(a, observation): (usize, &Observation)| {
                let alike = threads[event].alike(&observation.threads);
                let cross = alike * length * sum_of(in_time(a), &between(event, observation.event));
                if event == observation.event {
                    let unknown = threads[event].unknown(&observation.threads);
                    cross + length * covariances.between_threads(event) * unknown
                } else {
                    cross
                }
            };
            observations.iter().enumerate().map(with).collect()
        };
        let whitened = self.factor.transposed_solve(&Tall::new(n, (0..events).map(cross).collect()));
        let mean = whitened.transposed_times(&self.whitened.columns()[0]);
        let whitened = whitened.columns();
        let mut covariance = Square::zeros(events);
        for event in 0..events {
            let first = match pairs {
                Pairs::All => 0,
                Pairs::None => event,
            };
            for other in first..=event {
                let alike = threads[event].alike(&threads[other]);
                let prior = alike * length * length * sum_of(&own, &between(event, other));
                let unknown = if event == other { covariances.between_threads(event) * length * length } else { 0.0 };
                let prior = prior + unknown * threads[event].unknown(&threads[other]);
                let value = prior - dot(&whitened[event], &whitened[other]);
                *covariance.at_mut(event, other) = value;
                *covariance.at_mut(other, event) = value;
            }
        }
        Posterior { mean, covariance }
    }

    /// How far each stay on a counter that ended after `since` is from what all others say of it. In the order of
    /// events.
    ///
    /// Without the observations b of a stay, those would be off by Q w_b on average, with the covariance Q, where Q is
    /// the inverse of that part of the covariances' inverse and w_b are their weights (C. E. Rasmussen and C. K. I.
    /// Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4.2, of one observation).
    pub(crate) fn left_out(&self, since: f64) -> Vec<LeftOut> {
        let observations = &self.window.observations;
        let mut left_out = Vec::new();
        let mut last: Option<(usize, f64)> = None;
        for ((event, _), mut places) in self.window.stays() {
            let before = last.filter(|last| last.0 == event).map(|(_, mean)| mean);
            last = Some((event, self.window.mean(&places).0));
            places.retain(|&place| observations[place].span.end > since + 1e-9);
            let (now, length) = self.window.mean(&places);
            if !places.is_empty()
                && let Some((off, square)) = self.deviation(&places)
            {
                let off_last = before.map(|before| (now - before).abs());
                left_out.push(LeftOut { event, square, off: off.abs() / length, off_last });
            }
        }
        left_out
    }

    /// The stays that are off by more than is expected, in squares over that: both from their event's mean by what it
    /// varies by, in one observation at least, and from what all other stays say.
    pub(crate) fn surprises(&self, most: f64) -> Vec<SurprisingStay> {
        let is_large = |&place: &usize| {
            let variance: f64 = (0..=place).map(|row| self.factor.at(row, place).powi(2)).sum();
            self.window.observations[place].value.powi(2) > most * variance
        };
        let mut surprises = Vec::new();
        for ((event, _), places) in self.window.stays() {
            if places.iter().any(is_large)
                && let Some((off, square)) = self.deviation(&places)
                && square > most
            {
                let length = self.window.mean(&places).1;
                let squares: f64 = places.iter().map(|&p| self.window.observations[p].span.length().powi(2)).sum();
                surprises.push(SurprisingStay {
                    event,
                    places,
                    off: off / length,
                    square,
                    effective: length.powi(2) / squares,
                });
            }
        }
        surprises
    }

    /// How far the sum over some observations is from what all others say of it, and the square of that over what it
    /// should be.
    fn deviation(&self, places: &[usize]) -> Option<(f64, f64)> {
        let inverse = self.inverse();
        let mut precision = Square::zeros(places.len());
        for (i, &a) in places.iter().enumerate() {
            for (j, &b) in places[..=i].iter().enumerate() {
                *precision.at_mut(i, j) = inverse.matrix.at(a.max(b), a.min(b));
            }
        }
        if !precision.cholesky() {
            return None;
        }
        let whitening = precision.inverse_of_transposed();
        // Q = W'W; sums weigh observations by their lengths.
        let whiten = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (0..places.len()).map(|row| (0..=row).map(|i| whitening.at(row, i) * of(places[i])).sum()).collect()
        };
        let length = whiten(&|place| self.window.observations[place].span.length());
        let weights = whiten(&|place| inverse.weights[place]);
        let (sum, variance) = (dot(&length, &weights), dot(&length, &length));
        Some((sum, sum * sum / variance)).filter(|(_, square)| square.is_finite())
    }

    /// Twice the derivative of the log likelihood by the covariances of each process; the data's part
    /// times `weight`.
    pub(crate) fn gradient(&self, events: usize, weight: f64) -> Gradient {
        let (Inverse { matrix: inverse, weights }, observations) = (self.inverse(), &self.window.observations);
        let window = self.window;
        let seen = &window.seen;
        let mut sums = vec![PerProcess::default(); seen.len() * seen.len()];
        let mut threads = vec![0.0; events];
        let mut values = Vec::with_capacity(observations.len());
        for (a, one) in observations.iter().enumerate() {
            let (row, in_time) = (&inverse.row(a)[..=a], window.spans.row(a));
            values.clear();
            values.extend(weights.iter().zip(row).map(|(other, inverse)| weight * weights[a] * other - inverse));
            values[a] *= 0.5;
            if let Some(alike) = window.threads_of(a) {
                for (b, other) in observations[..=a].iter().enumerate().filter(|(_, other)| other.event == one.event) {
                    let between =
                        one.shared_of_threads(other, &in_time[window.spans.places[b]], window.scales[one.event]);
                    threads[one.event] += 2.0 * values[b] * between;
                }
                values.iter_mut().zip(alike).for_each(|(value, alike)| *value *= alike);
            }
            let sums = &mut sums[window.events[a] * seen.len()..][..seen.len()];
            for ((value, &other), &place) in values.iter().zip(&window.events).zip(&window.spans.places) {
                add(&mut sums[other], &in_time[place], *value);
            }
        }
        let mut processes = vec![Square::zeros(events); PROCESSES];
        for (i, &a) in seen.iter().enumerate() {
            for (k, &b) in seen.iter().enumerate() {
                let (sums, mirrored) = (&sums[i * seen.len() + k], &sums[k * seen.len() + i]);
                let sum = std::array::from_fn(|j| sums[j] + mirrored[j]);
                let scaled = window.scales[a].of_processes(window.scales[b], &sum);
                processes.iter_mut().zip(scaled).for_each(|(matrix, value)| *matrix.at_mut(a, b) = value);
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
    use super::super::WindowScale;
    use super::*;

    #[test]
    fn the_gradient_is_that_of_the_log_likelihood() {
        the_gradient_is_right(0.0);
        the_gradient_is_right(0.8);
    }

    fn the_gradient_is_right(sampling_deviation: f64) {
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
                stay: 0,
                value: (i as f64).sin(),
                noise: 0.01,
                sampling_deviation,
                threads: WhichThreads::All,
            }
        };
        let window = Window::new((0..9).map(observation).collect(), vec![WindowScale { level: 0.7, rest: 1.5 }; 3]);
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

    #[test]
    fn a_stay_is_left_out_as_if_it_had_not_been_seen() {
        let mut covariances = Covariances::zeros(2);
        for (a, b, value) in [(0, 0, 0.5), (0, 1, 0.3), (1, 0, 0.3), (1, 1, 0.4)] {
            *covariances.at_mut(a, b) = [value; PROCESSES];
        }
        let observation = |i: usize| {
            let span = Span { start: 4.0 * i as f64, end: 4.0 * (i + 1) as f64 };
            let (event, value) = (usize::from(i / 2 % 2 == 1), (1.0 + i as f64).sin());
            Observation {
                event,
                span,
                stay: (i / 4) as u64,
                value,
                noise: 0.01,
                sampling_deviation: 0.0,
                threads: WhichThreads::All,
            }
        };
        let all: Vec<_> = (0..8).map(observation).collect();
        // The second stay of the second event is from 24 to 32 ms.
        let others =
            Window::new(all.iter().filter(|o| o.span.end < 25.0).copied().collect(), vec![WindowScale::AT_LARGE; 2]);
        let solved = others.solve(&covariances).unwrap_or_else(|| unreachable!());
        let known = solved.sums(Span { start: 24.0, end: 32.0 }, &covariances, &[WhichThreads::All; 2], Pairs::None);
        assert_eq!(known.covariance.at(0, 1), 0.0);
        let sum = all[6..].iter().map(|o| 4.0 * o.value).sum::<f64>();
        let expected = (sum - known.mean[1]).powi(2) / (known.covariance.at(1, 1) + 2.0 * 16.0 * 0.01);
        let window = Window::new(all.clone(), vec![WindowScale::AT_LARGE; 2]);
        let left_out = window.solve(&covariances).unwrap_or_else(|| unreachable!()).left_out(20.0);
        let found = left_out.iter().find(|found| found.event == 1).unwrap_or_else(|| unreachable!());
        assert!((found.square - expected).abs() < 1e-9 * expected, "{found:?} {expected}");
        assert!((found.off - (sum - known.mean[1]).abs() / 8.0).abs() < 1e-9, "{found:?}");
        // Its first stay was from 8 to 16 ms.
        let last = all[2..4].iter().map(|o| 4.0 * o.value).sum::<f64>();
        assert!(found.off_last.is_some_and(|off| (off - (sum - last).abs() / 8.0).abs() < 1e-9), "{found:?}");
    }

    #[test]
    fn an_event_of_another_posterior_keeps_how_its_errors_go_along_by_hand() {
        let mut known = Posterior::independent([(10.0, 2.0), (20.0, 3.0)].into_iter());
        *known.covariance.at_mut(0, 1) = 3.0;
        *known.covariance.at_mut(1, 0) = 3.0;
        known.replace(1, &Posterior::independent([(0.0, 0.0), (40.0, 6.0)].into_iter()));
        assert_eq!(known.mean, [10.0, 40.0]);
        assert_eq!([(0, 0), (0, 1), (1, 0), (1, 1)].map(|(a, b)| known.covariance.at(a, b)), [4.0, 6.0, 6.0, 36.0]);
        // What was exact goes along with nothing.
        let mut exact = Posterior::independent([(10.0, 2.0), (20.0, 0.0)].into_iter());
        exact.replace(1, &Posterior::independent([(0.0, 0.0), (40.0, 6.0)].into_iter()));
        assert_eq!([(0, 1), (1, 0), (1, 1)].map(|(a, b)| exact.covariance.at(a, b)), [0.0, 0.0, 36.0]);
    }
}
