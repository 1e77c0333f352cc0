//! Finds which threads were on the counters when, where several rotate on their own.
//!
//! Under the kernel's rotation each thread's counters go through the same order of events, each thread in a phase of
//! its own. Counts and times are summed over threads, but the times tell the phases: those of all events together are a
//! sum of as many patterns as there are threads, each shifted by its phase. A thread's pattern goes on until it ends,
//! so that what is counted is known to be of one thread, or of some, and each has a rate of its own.

use super::time::Span;
use crate::rates::Delta;
use perfprop_linear_algebra::{Square, dot};

mod order;

use order::{Found, Order, Round};

/// No more threads are told apart at a time.
pub(crate) const MOST: usize = 16;

/// How many threads ran at a time, and what is known of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concurrency {
    /// One.
    Alone,
    /// Several, of which it isn't known which one was counted when: counts are those of a sample.
    Sampled,
    /// It is known which of them was counted when.
    ToldApart,
    /// Just as many as is neither one nor several.
    Unclear,
}

/// A number for each thread.
pub(crate) type PerThread = [f64; MOST];

/// Which threads a rate is of.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a window has some hundred of them, one beside the other")]
pub(crate) enum WhichThreads {
    /// All that run, or it isn't known which.
    All,
    /// The weight of each thread's deviation.
    Weighed(Weights),
}

/// How much each thread's deviations have in a rate, relative to the mean rate of all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Weights {
    /// Deviations from the thread's rate, relative to that.
    deviations: PerThread,
    /// What isn't known of the thread's rate, relative to that of all.
    rates: PerThread,
}

impl WhichThreads {
    /// The covariance of two of these rates over that of one thread's: threads vary independently.
    #[inline(always)]
    pub(crate) fn alike(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Weighed(a), Self::Weighed(b)) => dot(&a.deviations, &b.deviations),
            _ => 1.0,
        }
    }

    /// Which threads a mean of rates is of; each with its weight.
    pub(crate) fn mean<'a>(all: impl Iterator<Item = (f64, &'a Self)>) -> Self {
        let (mut mean, mut sum) = (Weights::default(), 0.0);
        for (weight, threads) in all {
            let Self::Weighed(weights) = threads else { return Self::All };
            for thread in 0..MOST {
                mean.deviations[thread] += weight * weights.deviations[thread];
                mean.rates[thread] += weight * weights.rates[thread];
            }
            sum += weight;
        }
        [&mut mean.deviations, &mut mean.rates].into_iter().flatten().for_each(|value| *value /= sum);
        Self::Weighed(mean)
    }

    /// The covariance of what isn't known of the threads' rates in two of one event, over the variance between threads.
    pub(crate) fn unknown(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Weighed(a), Self::Weighed(b)) => dot(&a.rates, &b.rates),
            _ => 0.0,
        }
    }
}

/// A thread's place in the rotation.
#[derive(Clone, Copy, Debug)]
struct Track {
    /// When its first slot came on the counters, once.
    phase: f64,
    life: Span,
}

/// A number of threads within this of a whole one is that.
const PARTLY: f64 = 0.05;
/// Patterns explain running times where they are off by less than this part of them.
const FIT: f64 = 0.2;
/// How many rounds a stretch has at most that phases are fitted to.
const STRETCH: usize = 26;
/// After more rounds in a row in which threads came or went, they can't be told apart.
const CHANGING: usize = 4;
/// It is as if each thread had been counted for so many milliseconds at the rate of all.
const BEFORE_MS: f64 = 2.0;
/// No thread's rate is below this part of that of all.
const LEAST: f64 = 0.03;

/// The rates of an event in each thread, by least squares.
#[derive(Clone, Debug, Default)]
struct Rates {
    products: [PerThread; MOST],
    sums: PerThread,
    /// As solved for: per millisecond of the thread, and the mean over the threads of the last window.
    rates: PerThread,
    mean: f64,
}

impl Rates {
    /// Takes a rate of threads with these weights, of which so many milliseconds were counted.
    fn add(&mut self, weights: &PerThread, running: f64, rate: f64) {
        for (row, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
            self.sums[row] += running * weight * rate;
            self.products[row].iter_mut().zip(weights).for_each(|(sum, other)| *sum += running * weight * other);
        }
    }

    fn forget(&mut self, kept: f64) {
        self.products.iter_mut().flatten().chain(&mut self.sums).for_each(|sum| *sum *= kept);
    }

    /// Forgets a thread, whose rate is taken to be what it was.
    fn remove(&mut self, thread: usize) {
        for other in 0..MOST {
            self.sums[other] -= self.products[other][thread] * self.rates[thread];
        }
        let shift = |values: &mut PerThread| {
            values.copy_within(thread + 1.., thread);
            values[MOST - 1] = 0.0;
        };
        self.products.iter_mut().for_each(shift);
        self.products.copy_within(thread + 1.., thread);
        self.products[MOST - 1] = [0.0; MOST];
        shift(&mut self.sums);
        shift(&mut self.rates);
    }

    /// These parts of threads as weights of their deviations.
    fn weights(&self, parts: &PerThread) -> Weights {
        let unknown = |thread: usize| (BEFORE_MS / (BEFORE_MS + self.products[thread][thread])).sqrt();
        Weights {
            deviations: std::array::from_fn(|thread| parts[thread] * self.rates[thread] / self.mean),
            rates: std::array::from_fn(|thread| parts[thread] * unknown(thread)),
        }
    }

    fn solve(&mut self, overall: f64, ran: &[f64]) {
        let n = ran.len();
        let mut products = Square::zeros(n);
        for row in 0..n {
            products.row_mut(row).copy_from_slice(&self.products[row][..n]);
            *products.at_mut(row, row) += BEFORE_MS;
        }
        if let Some(inverse) = products.inverse() {
            for row in 0..n {
                let sum = |column: usize| inverse.at(row, column) * (self.sums[column] + BEFORE_MS * overall);
                self.rates[row] = (0..n).map(sum).sum::<f64>().max(LEAST * overall);
            }
        }
        let time: f64 = ran.iter().sum();
        self.mean = ran.iter().zip(&self.rates).map(|(ran, rate)| ran * rate).sum::<f64>() / time;
    }
}

/// What is known of an event's rate over a span.
pub(crate) struct Seen {
    /// The part of the span in which it was counted of any thread.
    pub(crate) span: Span,
    /// The part of the time of these threads that was counted.
    pub(crate) part: f64,
    /// How much each thread has in it.
    weights: PerThread,
}

/// The threads, as far as they can be told apart.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    tick: f64,
    order: Option<Order>,
    tracks: Vec<Track>,
    rounds: Vec<Round>,
    rates: Vec<Rates>,
    /// Since when all that ran has been explained.
    since: Option<f64>,
    /// The time that each thread ran in the last window.
    ran: Vec<f64>,
}

impl Threads {
    pub(crate) fn new(tick: f64) -> Self {
        let (order, since) = (None, None);
        Self { tick, order, since, tracks: vec![], rounds: vec![], rates: vec![], ran: vec![] }
    }

    /// Takes a round. `unit`: how many milliseconds the unit of its span has, which is the same for as long as threads
    /// are known.
    pub(crate) fn round(&mut self, span: Span, unit: f64, deltas: &[Delta]) {
        let time = deltas.iter().map(|delta| delta.enabled).max().unwrap_or_default().as_ms() / unit;
        let running = deltas.iter().map(|delta| delta.running.as_ms() / unit).collect();
        self.rounds.push(Round { span, threads: time / span.length(), running });
    }

    /// Forgets the rounds since the last window without a look for threads in them.
    pub(crate) fn skip(&mut self) {
        self.rounds.clear();
    }

    /// Whether threads have been told apart at all times since then.
    pub(crate) fn are_known(&self) -> bool {
        self.since.is_some()
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.tracks.len()).filter(|&track| self.tracks[track].life.end == f64::INFINITY).collect()
    }

    fn lose(&mut self) {
        self.tracks.clear();
        self.rates.clear();
        (self.since, self.order) = (None, None);
    }

    /// Finds the threads of the rounds since the last window, and forgets those that ended before `forget`.
    pub(crate) fn follow(&mut self, window: Span, unit: f64, forget: f64) {
        let rounds = std::mem::take(&mut self.rounds);
        self.forget(forget);
        if self.order.is_none() {
            self.order = Order::new(&rounds, self.tick / unit);
        }
        let Some(order) = self.order.clone() else { return self.lose() };
        self.rates.resize_with(order.slots.len(), Rates::default);
        let mut changing = 0;
        for (at, round) in rounds.iter().enumerate() {
            let threads = round.threads.round();
            if threads < 1.0 || (round.threads - threads).abs() > PARTLY {
                changing += 1;
                continue;
            }
            if changing > CHANGING || threads as usize > MOST {
                return self.lose();
            }
            let alive = self.alive();
            let phases: Vec<f64> = alive.iter().map(|&track| self.tracks[track].phase).collect();
            if phases.len() != threads as usize || order.misfit(&phases, &rounds[at..=at]) > FIT {
                let goes_on = |round: &&Round| (round.threads - threads).abs() < PARTLY;
                let stretch = rounds[at..].iter().take_while(goes_on).take(STRETCH).count();
                let stretch = &rounds[at..at + stretch];
                let found = order.explain(&phases, threads as usize, stretch);
                self.change(&alive, &found, &rounds[at - changing..at], round.span.start);
                if order.misfit_of(&found, stretch) > FIT || self.tracks.len() > MOST {
                    return self.lose();
                }
            }
            changing = 0;
        }
        self.since = self.since.or(Some(window.start));
        let ran = |track: &Track| (track.life.end.min(window.end) - track.life.start.max(window.start)).max(0.0);
        self.ran = self.tracks.iter().map(ran).collect();
        if self.ran.iter().sum::<f64>() <= 0.0 {
            self.lose();
        }
    }

    /// Replaces threads by those that were found at a time. `changing`: the rounds before in which threads came or
    /// went.
    fn change(&mut self, alive: &[usize], found: &[Found], changing: &[Round], now: f64) {
        let gap = changing.first().map_or(0.0, |first| now - first.span.start);
        let time: f64 = changing.iter().map(|round| round.threads * round.span.length()).sum();
        let kept: Vec<usize> = found.iter().filter_map(|found| Some(alive[found.place?])).collect();
        let changes = found.len() + alive.len() - 2 * kept.len();
        let more = ((time - kept.len() as f64 * gap) / changes.max(1) as f64).clamp(0.0, gap);
        for &track in alive.iter().filter(|track| !kept.contains(track)) {
            self.tracks[track].life.end = now - gap + more;
        }
        for &Found { place, phase } in found {
            match place {
                Some(place) => self.tracks[alive[place]].phase = phase,
                None => {
                    let life = Span { start: now - more, end: f64::INFINITY };
                    self.tracks.push(Track { phase, life });
                }
            }
        }
    }

    fn forget(&mut self, before: f64) {
        for track in
            (0..self.tracks.len()).rev().filter(|&track| self.tracks[track].life.end < before).collect::<Vec<_>>()
        {
            self.tracks.remove(track);
            self.rates.iter_mut().for_each(|rates| rates.remove(track));
        }
    }

    /// What a count of an event over a span is of; `None` where none of these threads was on a counter.
    pub(crate) fn seen(&self, event: usize, span: Span) -> Option<Seen> {
        let order = self.order.as_ref()?;
        let mut weights = [0.0; MOST];
        let mut hull = Span { start: f64::INFINITY, end: f64::NEG_INFINITY };
        let mut threads = 0.0;
        for (weight, track) in weights.iter_mut().zip(&self.tracks) {
            let lived = Span { start: span.start.max(track.life.start), end: span.end.min(track.life.end) };
            if lived.length() <= 0.0 {
                continue;
            }
            let (counted, within) = match order.slots[event] {
                Some(slot) => (order.counted(track.phase, slot, lived), order.within(track.phase, slot, lived)),
                None => (lived.length(), lived),
            };
            if counted > 1e-3 * span.length() {
                *weight = counted;
                threads += 1.0;
                hull = Span { start: hull.start.min(within.start), end: hull.end.max(within.end) };
            }
        }
        let time: f64 = weights.iter().sum();
        if time <= 0.0 {
            return None;
        }
        weights.iter_mut().for_each(|weight| *weight /= time);
        Some(Seen { span: hull, part: (time / threads / hull.length()).min(1.0), weights })
    }

    /// Takes what was counted in a window, before [`Threads::solve`].
    pub(crate) fn add(&mut self, event: usize, span: Span, running: f64, rate: f64) {
        if let Some(seen) = self.seen(event, span) {
            self.rates[event].add(&seen.weights, running, rate);
        }
    }

    pub(crate) fn forget_rates(&mut self, kept: f64) {
        self.rates.iter_mut().for_each(|rates| rates.forget(kept));
    }

    /// Solves for the rates of an event in each thread.
    pub(crate) fn solve(&mut self, event: usize, overall: f64) {
        self.rates[event].solve(overall, &self.ran);
    }

    /// The mean rate of an event over the threads of the last window.
    pub(crate) fn mean(&self, event: usize) -> f64 {
        self.rates[event].mean
    }

    /// How far a rate is from that of the threads it is of, and their weights, relative to the mean rate.
    pub(crate) fn deviation(&self, event: usize, seen: &Seen, rate: f64) -> (f64, WhichThreads) {
        let rates = &self.rates[event];
        let weights = rates.weights(&seen.weights);
        (rate / rates.mean - weights.deviations.iter().sum::<f64>(), WhichThreads::Weighed(weights))
    }

    /// The weights of threads in what all of them counted of an event in the last window.
    pub(crate) fn target(&self, event: usize) -> WhichThreads {
        let time: f64 = self.ran.iter().sum();
        let parts = std::array::from_fn(|thread| self.ran.get(thread).map_or(0.0, |ran| ran / time));
        WhichThreads::Weighed(self.rates[event].weights(&parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::CpuNs;

    /// Threads in a rotation of 24 events on four counters, beside one that is always counted: the phase and the life
    /// of each. An event counts as many a millisecond as its thread's number, from one on.
    struct World(Vec<(f64, Span)>);

    const EVENTS: usize = 25;

    impl World {
        fn order() -> Order {
            let slots = (0..EVENTS).map(|event| event.checked_sub(1)).collect();
            Order { slots, firsts: (1..EVENTS).collect(), tick: 4.0, stay: 16.0, cycle: 96.0 }
        }

        fn deltas(&self, round: Span) -> Vec<Delta> {
            let order = Self::order();
            let ns = |ms: f64| CpuNs((ms * 1e6).round() as u64);
            let ran = |life: Span| Span { start: round.start.max(life.start), end: round.end.min(life.end) };
            let threads = || self.0.iter().enumerate().filter(|(_, (_, life))| ran(*life).length() > 0.0);
            let delta = |event: usize| {
                let times = threads().map(|(number, &(phase, life))| {
                    let span = ran(life);
                    (number, event.checked_sub(1).map_or(span.length(), |slot| order.counted(phase, slot, span)))
                });
                let (mut running, mut count) = (0.0, 0.0);
                times.for_each(|(number, time)| {
                    (running, count) = (running + time, count + 1e3 * (number + 1) as f64 * time)
                });
                let enabled = threads().map(|(_, (_, life))| ran(*life).length()).sum();
                Delta { count: count.round() as u64, enabled: ns(enabled), running: ns(running) }
            };
            (0..EVENTS).map(delta).collect()
        }

        /// What is found after so many windows of 100 ms, with the rates of a few events.
        fn found(&self, windows: usize) -> Threads {
            let mut threads = Threads::new(4.0);
            for window in 0..windows {
                let start = 100.0 * window as f64;
                let rounds = (0..25).map(|round| start + 4.0 * round as f64);
                let rounds: Vec<Span> = rounds.map(|start| Span { start, end: start + 4.0 }).collect();
                rounds.iter().for_each(|&round| threads.round(round, 1.0, &self.deltas(round)));
                threads.follow(Span { start, end: start + 100.0 }, 1.0, start - 70.0);
                for (&round, event) in rounds.iter().flat_map(|round| (0..EVENTS).map(move |event| (round, event))) {
                    let delta = self.deltas(round)[event];
                    if let Some(rate) = delta.rate() {
                        threads.add(event, round, delta.running.as_ms(), rate);
                    }
                }
                if threads.are_known() {
                    (0..EVENTS).for_each(|event| threads.solve(event, 2e3));
                }
            }
            threads
        }
    }

    const ALWAYS: Span = Span { start: f64::NEG_INFINITY, end: f64::INFINITY };

    fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        values
    }

    #[test]
    fn phases_are_found_from_running_times() {
        for phases in [vec![5.0, 53.0], vec![70.0, 70.5, 11.0], vec![1.0, 8.0, 30.0, 33.0, 47.0, 61.0, 66.0, 90.0]] {
            let found = World(phases.iter().map(|&phase| (phase, ALWAYS)).collect()).found(1);
            let tracks = sorted(found.tracks.iter().map(|track| track.phase));
            assert!(found.are_known() && tracks.len() == phases.len(), "{phases:?}: {tracks:?}");
            let phases = sorted(phases.into_iter());
            assert!(
                tracks.iter().zip(&phases).all(|(found, phase)| (found - phase).abs() < 0.3),
                "{phases:?}: {tracks:?}"
            );
        }
    }

    #[test]
    fn each_thread_has_its_rate_and_what_is_counted_is_of_it_by_hand() {
        let found = World(vec![(0.0, ALWAYS), (48.0, ALWAYS)]).found(2);
        // The first event is on the first thread's counters from 0 to 16 ms and on the second's from 48 to 64.
        let which = |start: f64| found.seen(1, Span { start, end: start + 8.0 }).map(|seen| (seen.span, seen.weights));
        let place =
            |start: f64| which(start).and_then(|(_, weights)| weights.iter().position(|&weight| weight > 0.999));
        let (Some(first), Some(second)) = (place(96.0), place(144.0)) else { unreachable!("{found:?}") };
        assert_ne!(first, second);
        assert!(which(180.0).is_none());
        // A block that it came on in the middle of.
        assert!(which(92.0).is_some_and(|(span, _)| (span.start - 96.0).abs() < 0.1 && span.end == 100.0));
        // 32 ms each at 1000 and 2000, as if there had been two more at 2000.
        let rates = &found.rates[1];
        assert!((rates.rates[first] - (32.0 * 1e3 + 2.0 * 2e3) / 34.0).abs() < 20.0, "{rates:?}");
        assert!((rates.rates[second] - 2e3).abs() < 20.0 && (rates.mean - 1530.0).abs() < 20.0, "{rates:?}");
    }

    #[test]
    fn threads_come_and_go() {
        let worker = Span { start: 250.0, end: 441.0 };
        let world = World(vec![(5.0, ALWAYS), (37.0, worker)]);
        // One thread alone tells nothing of others; the second is found when it is there, and forgotten when it isn't.
        let during = world.found(4);
        let phases = sorted(during.tracks.iter().map(|track| track.phase));
        assert!((phases[0] - 5.0).abs() < 0.3 && (phases[1] - 37.0).abs() < 0.3, "{during:?}");
        let began = during.tracks.iter().map(|track| track.life.start).fold(0.0, f64::max);
        assert!((began - 250.0).abs() < 0.5, "{during:?}");
        let after = world.found(6);
        assert!(after.tracks.iter().any(|track| (track.life.end - 441.0).abs() < 0.5), "{after:?}");
        assert_eq!(world.found(7).tracks.len(), 1);
    }

    #[test]
    fn times_that_no_rotation_explains_are_not_told_apart() {
        let mut threads = Threads::new(4.0);
        for round in 0..25u64 {
            let delta = |event: u64| {
                let running = CpuNs((round * 7919 + event * 104_729) % 8 * 1_000_000);
                Delta { count: 1, enabled: CpuNs(8_000_000), running }
            };
            let start = 4.0 * round as f64;
            threads.round(Span { start, end: start + 4.0 }, 1.0, &(0..12).map(delta).collect::<Vec<_>>());
        }
        threads.follow(Span { start: 0.0, end: 100.0 }, 1.0, -70.0);
        assert!(!threads.are_known());
    }

    #[test]
    fn rates_of_one_thread_are_alike_and_those_of_others_are_not() {
        let of = |thread: usize| {
            let mut weights = Weights::default();
            (weights.deviations[thread], weights.rates[thread]) = (1.0, 0.5);
            WhichThreads::Weighed(weights)
        };
        assert_eq!((of(0).alike(&of(0)), of(0).alike(&of(1)), of(0).unknown(&of(0))), (1.0, 0.0, 0.25));
        let both = WhichThreads::mean([(1.0, &of(0)), (1.0, &of(1))].into_iter());
        assert_eq!((both.alike(&both), both.alike(&of(1)), both.unknown(&of(0))), (0.5, 0.5, 0.125));
        assert_eq!((WhichThreads::All.alike(&of(0)), WhichThreads::All.unknown(&of(0))), (1.0, 0.0));
    }
}
