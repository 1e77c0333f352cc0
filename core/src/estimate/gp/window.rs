//! Solves a window's observations for what it counted, and for what they say of the covariances.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::covariance::Covariances;
use super::threads::WhichThreads;
use super::time::{PROCESSES, PerProcess, SLICES, Span, TimedSpan};
use perfprop_linear_algebra::{Square, Tall, dot};

/// A mean rate over a span, relative to the event's mean: zero is the mean, one twice the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    pub(crate) event: usize,
    pub(crate) span: Span,
    /// The stay on a counter that it is of; those of one come one after another.
    pub(crate) stay: u64,
    pub(crate) value: f64,
    /// The variance that is no part of the rate over the span.
    pub(crate) noise: f64,
    /// The root of how many times the variance between threads it is off by; that lasts for as long as the same ones
    /// are counted.
    pub(crate) between_threads: f64,
    /// Which threads it is of, where that is known.
    pub(crate) threads: WhichThreads,
    /// How much the event's level and its rate vary at present, over how they do at large.
    pub(crate) scale: WindowScale,
}

impl Observation {
    /// What another of the same event shares of the error between threads, over their variance.
    #[inline(always)]
    fn between_threads(&self, other: &Self, in_time: &PerProcess) -> f64 {
        let both = self.between_threads * other.between_threads;
        if both == 0.0 {
            return self.threads.unknown(&other.threads);
        }
        let scale = self.scale.rest * other.scale.rest;
        both * scale * (in_time[SLICES] / scale).powi(SAME_THREADS)
    }
}

/// How likely the same threads are counted still, as a power of the process that remembers a stay: a stay ends, where
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
    #[inline(always)]
    fn times(self, other: Self, in_time: &PerProcess) -> PerProcess {
        let (level, rest) = (self.level * other.level, self.rest * other.rest);
        let [constant, slow, fast, white] = *in_time;
        [level * constant, rest * slow, rest * fast, rest * white]
    }
}

/// The sum over processes of products.
#[inline(always)]
fn sum_of(in_time: &PerProcess, between: &PerProcess) -> f64 {
    // Written out: optimised for size, a loop over four stays one.
    let ([a, b, c, d], [e, f, g, h]) = (*in_time, *between);
    a * e + b * f + c * g + d * h
}

/// Adds a multiple of a number for each process.
#[inline(always)]
fn add(to: &mut PerProcess, in_time: &PerProcess, times: f64) {
    let [a, b, c, d] = *in_time;
    let [to_a, to_b, to_c, to_d] = *to;
    *to = [to_a + times * a, to_b + times * b, to_c + times * c, to_d + times * d];
}

/// The spans of observations. What is counted at the same time has one in common, so that they are compared once.
struct Spans {
    different: Vec<TimedSpan>,
    /// Which of them each observation has.
    places: Vec<usize>,
    /// Covariances of each pair of different ones, row after row.
    covariances: Vec<PerProcess>,
}

impl Spans {
    fn new(observations: &[Observation]) -> Self {
        let origin = observations.first().map_or(0.0, |first| first.span.start);
        let mut different: Vec<TimedSpan> = Vec::new();
        let mut place = |observation: &Observation| {
            let found = different.iter().rposition(|other| other.span == observation.span);
            found.unwrap_or_else(|| {
                different.push(TimedSpan::new(observation.span, origin));
                different.len() - 1
            })
        };
        let places = observations.iter().map(&mut place).collect();
        let size = different.len();
        let mut covariances = vec![PerProcess::default(); size * size];
        for (a, one) in different.iter().enumerate() {
            for (b, other) in different[..=a].iter().enumerate() {
                let both = one.covariances(other);
                covariances[a * size + b] = both;
                covariances[b * size + a] = both;
            }
        }
        Self { different, places, covariances }
    }

    /// How alike times make an observation to those of each different span.
    fn row(&self, observation: usize) -> &[PerProcess] {
        &self.covariances[self.places[observation] * self.different.len()..][..self.different.len()]
    }
}

/// Observations with how alike times make each pair of them.
pub(crate) struct Window {
    pub(crate) observations: Vec<Observation>,
    spans: Spans,
    /// Covariances in time of each pair of observations, scaled; the lower triangle, row after row.
    time: Vec<PerProcess>,
}

/// A window's observations, solved for.
pub(crate) struct Solved<'a> {
    pub(crate) window: &'a Window,
    /// The Cholesky factor of their covariance, upper, and the observations as it whitens them.
    factor: Square,
    whitened: Tall,
    /// The inverse of their covariance, once it was asked for.
    inverse: OnceCell<Inverse>,
    /// Squared Mahalanobis length of the observations.
    surprise: f64,
    /// Log likelihood, but for a constant.
    #[cfg(test)]
    pub(crate) log_likelihood: f64,
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
        let spans = Spans::new(&observations);
        let mut time = Vec::with_capacity(observations.len() * (observations.len() + 1) / 2);
        for (a, one) in observations.iter().enumerate() {
            let row = spans.row(a);
            time.extend(observations[..=a].iter().zip(&spans.places).map(|(other, &place)| {
                let in_time = one.scale.times(other.scale, &row[place]);
                match one.threads.alike(&other.threads) {
                    1.0 => in_time,
                    alike => in_time.map(|value| alike * value),
                }
            }));
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
        #[cfg(test)]
        let log_determinant = 2.0 * (0..n).map(|a| factor.at(a, a).ln()).sum::<f64>();
        let values = Tall::new(n, vec![self.observations.iter().map(|o| o.value).collect()]);
        let whitened = factor.transposed_solve(&values);
        let surprise = dot(&whitened.columns()[0], &whitened.columns()[0]);
        Some(Solved {
            window: self,
            factor,
            whitened,
            inverse: OnceCell::new(),
            surprise,
            #[cfg(test)]
            log_likelihood: -0.5 * (surprise + log_determinant),
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
        (Self::DEGREES + self.surprise) / (Self::DEGREES + self.window.observations.len() as f64)
    }

    /// What the events' sums over a span were, in relative units times milliseconds, of these threads.
    pub(crate) fn sums(
        &self,
        span: Span,
        covariances: &Covariances,
        scales: &[WindowScale],
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
        let length = span.length();
        let cross = |event: usize| {
            let with = |(a, observation): (usize, &Observation)| {
                let between = covariances.at(event, observation.event);
                let alike = threads[event].alike(&observation.threads);
                let cross = alike * length * sum_of(&scales[event].times(observation.scale, in_time(a)), between);
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
                let between = covariances.at(event, other);
                let prior = threads[event].alike(&threads[other])
                    * length
                    * length
                    * sum_of(&scales[event].times(scales[other], &own), between);
                let unknown = if event == other { covariances.between_threads(event) * length * length } else { 0.0 };
                let prior = prior + unknown * threads[event].unknown(&threads[other]);
                let value = prior - dot(&whitened[event], &whitened[other]);
                *covariance.at_mut(event, other) = value;
                *covariance.at_mut(other, event) = value;
            }
        }
        Posterior { mean, covariance }
    }

    /// How far each stay on a counter that ended after `since` is from what all others say of it: the square of its mean's
    /// deviation, over what that should be. In the order of events.
    ///
    /// Without the observations b of a stay, those would be off by Q w_b on average, with the covariance Q, where Q is the
    /// inverse of that part of the covariances' inverse and w_b are their weights.
    pub(crate) fn left_out(&self, since: f64) -> Vec<(usize, f64)> {
        let observations = &self.window.observations;
        let mut stays: BTreeMap<(usize, u64), Vec<usize>> = BTreeMap::new();
        for (place, o) in observations.iter().enumerate().filter(|(_, o)| o.span.end > since + 1e-9) {
            stays.entry((o.event, o.stay)).or_default().push(place);
        }
        let deviation = |((event, _), places): ((usize, u64), Vec<usize>)| Some((event, self.deviation(&places)?));
        stays.into_iter().filter_map(deviation).collect()
    }

    fn deviation(&self, places: &[usize]) -> Option<f64> {
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
        Some(sum * sum / variance).filter(|square| square.is_finite())
    }

    /// Twice the derivative of the log likelihood by the covariances of each process; the data's part
    /// times `weight`.
    pub(crate) fn gradient(&self, events: usize, weight: f64) -> Gradient {
        let (Inverse { matrix: inverse, weights }, observations) = (self.inverse(), &self.window.observations);
        let mut sums = vec![PerProcess::default(); events * events];
        let mut threads = vec![0.0; events];
        let mut time = self.window.time.iter();
        for (a, one) in observations.iter().enumerate() {
            let (row, sums) = (inverse.row(a), &mut sums[one.event * events..][..events]);
            for (b, (other, in_time)) in observations[..=a].iter().zip(&mut time).enumerate() {
                let value = weight * weights[a] * weights[b] - row[b];
                let value = if a == b { 0.5 * value } else { value };
                add(&mut sums[other.event], in_time, value);
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
                stay: 0,
                value: (i as f64).sin(),
                noise: 0.01,
                between_threads,
                threads: WhichThreads::All,
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

    #[test]
    fn observations_of_one_span_share_its_covariances() {
        let span = |start: f64, end: f64| Span { start, end };
        let spans = [span(0.0, 4.0), span(0.0, 4.0), span(2.0, 6.0), span(0.0, 4.0), span(8.0, 9.0)];
        let observation = |span| Observation {
            event: 0,
            span,
            stay: 0,
            value: 0.0,
            noise: 0.0,
            between_threads: 0.0,
            threads: WhichThreads::All,
            scale: WindowScale::AT_LARGE,
        };
        let found = Spans::new(&spans.map(observation));
        assert_eq!((found.different.len(), &found.places[..]), (3, &[0, 0, 1, 0, 2][..]));
        for (a, one) in spans.iter().enumerate() {
            for (other, &place) in spans.iter().zip(&found.places) {
                let [one, other] = [one, other].map(|span| TimedSpan::new(*span, 0.0));
                assert_eq!(found.row(a)[place], one.covariances(&other));
            }
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
                between_threads: 0.0,
                threads: WhichThreads::All,
                scale: WindowScale::AT_LARGE,
            }
        };
        let all: Vec<_> = (0..8).map(observation).collect();
        // The second stay of the second event is from 24 to 32 ms.
        let others = Window::new(all.iter().filter(|o| o.span.end < 25.0).copied().collect());
        let solved = others.solve(&covariances).unwrap_or_else(|| unreachable!());
        let known = solved.sums(
            Span { start: 24.0, end: 32.0 },
            &covariances,
            &[WindowScale::AT_LARGE; 2],
            &[WhichThreads::All; 2],
            Pairs::None,
        );
        assert_eq!(known.covariance.at(0, 1), 0.0);
        let sum = all[6..].iter().map(|o| 4.0 * o.value).sum::<f64>();
        let expected = (sum - known.mean[1]).powi(2) / (known.covariance.at(1, 1) + 2.0 * 16.0 * 0.01);
        let window = Window::new(all);
        let left_out = window.solve(&covariances).unwrap_or_else(|| unreachable!()).left_out(20.0);
        let found = left_out.iter().find(|(event, _)| *event == 1).map_or(f64::NAN, |found| found.1);
        assert!((found - expected).abs() < 1e-9 * expected, "{found} {expected}");
    }
}
