//! Holds the observations of a window, with how alike times and threads make them.

use std::collections::BTreeMap;

use super::covariance::Covariances;
use super::threads::WhichThreads;
use super::time::{PerProcess, STAYS, Span, TimedSpan};

mod solved;

pub(crate) use solved::{LeftOut, Pairs, Posterior, Solved};

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
    /// The standard deviation of what it is off by as a sample of threads, over that between threads; it lasts for as
    /// long as the same ones are counted.
    pub(crate) sampling_deviation: f64,
    /// Which threads it is of, where that is known.
    pub(crate) threads: WhichThreads,
}

impl Observation {
    /// What another of the same event, of this scale, shares of what isn't known of threads, over the variance between
    /// them.
    fn shared_of_threads(&self, other: &Self, in_time: &PerProcess, scale: WindowScale) -> f64 {
        let both = self.sampling_deviation * other.sampling_deviation;
        if both == 0.0 {
            return self.threads.unknown(&other.threads);
        }
        both * scale.rest.powi(2) * in_time[STAYS].powi(SAME_THREADS)
    }

    fn is_of_threads(&self) -> bool {
        self.sampling_deviation != 0.0 || self.threads != WhichThreads::All
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

    /// Covariances of each process between two events of such scales.
    #[inline(always)]
    fn of_processes(self, other: Self, between: &PerProcess) -> PerProcess {
        let (level, rest) = (self.level * other.level, self.rest * other.rest);
        let [constant, slow, fast, white] = *between;
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

/// Observations with how alike times and threads make each pair of them.
pub(crate) struct Window {
    pub(crate) observations: Vec<Observation>,
    /// The events that were observed, in order, and the place of each observation's among them.
    seen: Vec<usize>,
    events: Vec<usize>,
    /// How much each event's level and its rate vary at present, over how they do at large.
    scales: Vec<WindowScale>,
    spans: Spans,
    /// How alike the threads are that each pair is of, in the lower triangle, row after row; `None` where they are the
    /// same.
    threads: Option<Vec<f64>>,
}

impl Window {
    pub(crate) fn new(observations: Vec<Observation>, scales: Vec<WindowScale>) -> Self {
        let pairs =
            || observations.iter().enumerate().flat_map(|(a, one)| observations[..=a].iter().map(move |b| (one, b)));
        let are_of_threads = observations.iter().any(Observation::is_of_threads);
        let threads = are_of_threads.then(|| pairs().map(|(one, other)| one.threads.alike(&other.threads)).collect());
        let spans = Spans::new(&observations);
        let mut seen: Vec<usize> = observations.iter().map(|o| o.event).collect();
        seen.sort_unstable();
        seen.dedup();
        let events = observations.iter().map(|o| seen.partition_point(|&event| event < o.event)).collect();
        Self { observations, seen, events, scales, spans, threads }
    }

    /// How alike threads make an observation to those up to it; `None` where they are the same.
    fn threads_of(&self, observation: usize) -> Option<&[f64]> {
        let start = observation * (observation + 1) / 2;
        self.threads.as_ref().map(|threads| &threads[start..=start + observation])
    }

    /// The events that were observed, in order.
    pub(crate) fn seen(&self) -> &[usize] {
        &self.seen
    }

    /// The covariances of two events at present.
    #[inline(always)]
    fn present(&self, covariances: &Covariances, a: usize, b: usize) -> PerProcess {
        self.scales[a].of_processes(self.scales[b], covariances.at(a, b))
    }

    /// Time from the start of its first observation to the end of its last.
    pub(crate) fn length(&self) -> f64 {
        let start = self.observations.iter().map(|o| o.span.start).fold(f64::INFINITY, f64::min);
        let end = self.observations.iter().map(|o| o.span.end).fold(f64::NEG_INFINITY, f64::max);
        end - start
    }

    /// The places of the observations of each event's stays, in order.
    fn stays(&self) -> BTreeMap<(usize, u64), Vec<usize>> {
        let mut stays: BTreeMap<(usize, u64), Vec<usize>> = BTreeMap::new();
        for (place, observation) in self.observations.iter().enumerate() {
            stays.entry((observation.event, observation.stay)).or_default().push(place);
        }
        stays
    }

    /// The mean of observations over their time, and that time.
    fn mean(&self, places: &[usize]) -> (f64, f64) {
        let observations = || places.iter().map(|&place| &self.observations[place]);
        let length: f64 = observations().map(|o| o.span.length()).sum();
        (observations().map(|o| o.span.length() * o.value).sum::<f64>() / length, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            sampling_deviation: 0.0,
            threads: WhichThreads::All,
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
}
