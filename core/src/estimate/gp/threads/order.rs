//! Finds the phases of threads in a rotation from the times that events ran.

use super::super::time::Span;

/// What a round says of the counters' times.
#[derive(Clone, Debug)]
pub(super) struct Round {
    pub(super) span: Span,
    /// How many threads ran, on average.
    pub(super) threads: f64,
    /// The time that each event ran.
    pub(super) running: Vec<f64>,
}

/// A thread that explains rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Its place among those that were known before; `None` of a new one.
    pub(super) place: Option<usize>,
    pub(super) phase: f64,
}

/// The order in which events take turns.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The slot of each event that is multiplexed; those that are counted together have one.
    pub(super) slots: Vec<Option<usize>>,
    /// The first event of each slot.
    pub(super) firsts: Vec<usize>,
    pub(super) tick: f64,
    /// How long a slot is on the counters, and the time from one such stay to the next.
    pub(super) stay: f64,
    pub(super) cycle: f64,
}

/// Where patterns are off by more than this part of running times, others are looked for.
const WELL: f64 = 0.05;
/// Phases are looked for in steps of this part of a tick, and then in ones that are halved so often.
const PHASES: f64 = 0.25;
const HALVINGS: i32 = 7;
/// A phase that moves by less, as a part of a tick, is of the same thread.
const SAME: f64 = 0.3;
/// How often each phase is looked at again, with all others as they are.
const SWEEPS: usize = 6;

impl Order {
    pub(super) fn new(rounds: &[Round], tick: f64) -> Option<Self> {
        let events = rounds.first()?.running.len();
        let time: f64 = rounds.iter().map(|round| round.threads * round.span.length()).sum();
        let part = |event: usize| rounds.iter().map(|round| round.running[event]).sum::<f64>() / time;
        let together = |a: usize, b: usize| rounds.iter().all(|r| (r.running[a] - r.running[b]).abs() < 1e-3 * time);
        let (mut slots, mut firsts, mut parts) = (vec![None; events], Vec::<usize>::new(), 0.0);
        for event in (0..events).filter(|&event| part(event) < 0.999) {
            if !firsts.last().is_some_and(|&last| together(last, event)) {
                firsts.push(event);
                parts += part(event);
            }
            slots[event] = Some(firsts.len() - 1);
        }
        let on = parts.round();
        let fits = firsts.len() > 1 && on >= 1.0 && on < firsts.len() as f64 && (parts - on).abs() < 0.1 * on;
        fits.then_some(Self { slots, tick, stay: on * tick, cycle: firsts.len() as f64 * tick, firsts })
    }

    /// How long a slot was on the counters from its beginning to a time after.
    fn on_until(&self, time: f64) -> f64 {
        let cycles = (time / self.cycle).floor();
        cycles * self.stay + (time - cycles * self.cycle).min(self.stay)
    }

    /// How long of a span a slot was on the counters of a thread.
    pub(super) fn counted(&self, phase: f64, slot: usize, span: Span) -> f64 {
        let began = phase + slot as f64 * self.tick;
        self.on_until(span.end - began) - self.on_until(span.start - began)
    }

    /// The part of a span from the first time that a slot was on a thread's counters to the last.
    pub(super) fn within(&self, phase: f64, slot: usize, span: Span) -> Span {
        let began = phase + slot as f64 * self.tick;
        let into = |time: f64| (time - began).rem_euclid(self.cycle);
        let (first, last) = (into(span.start + 1e-6), into(span.end - 1e-6));
        let start = if first < self.stay { span.start } else { span.start + self.cycle - first };
        let end = if last < self.stay { span.end } else { span.end - (last - self.stay) };
        Span { start, end }
    }

    /// What is left of rounds' running times, slot after slot, with so many times a thread's pattern taken away.
    fn take(&self, left: &mut [f64], rounds: &[Round], phase: f64, times: f64) {
        let slots = self.firsts.len();
        for (left, round) in left.chunks_mut(slots).zip(rounds) {
            for (slot, left) in left.iter_mut().enumerate() {
                *left -= times * self.counted(phase, slot, round.span);
            }
        }
    }

    fn times(&self, rounds: &[Round]) -> Vec<f64> {
        rounds.iter().flat_map(|round| self.firsts.iter().map(|&event| round.running[event])).collect()
    }

    /// How far these phases are from explaining rounds.
    pub(super) fn misfit(&self, phases: &[f64], rounds: &[Round]) -> f64 {
        let mut left = self.times(rounds);
        let all = squares(&left);
        phases.iter().for_each(|&phase| self.take(&mut left, rounds, phase, 1.0));
        (squares(&left) / all.max(f64::MIN_POSITIVE)).sqrt()
    }

    pub(super) fn misfit_of(&self, found: &[Found], rounds: &[Round]) -> f64 {
        let phases: Vec<f64> = found.iter().map(|found| found.phase).collect();
        self.misfit(&phases, rounds)
    }

    /// The phase whose pattern is nearest to what is left.
    fn best(&self, left: &[f64], rounds: &[Round], known: Option<f64>) -> f64 {
        let folded = Folded::new(self, left, rounds);
        let steps = (self.cycle / self.tick / PHASES).round() as usize;
        let coarse = (0..steps).map(|step| step as f64 * PHASES * self.tick);
        let nearest = |phases: &mut dyn Iterator<Item = f64>| {
            phases.map(|phase| (phase, folded.off(self, phase))).min_by(|a, b| a.1.total_cmp(&b.1))
        };
        let Some((phase, off)) = nearest(&mut coarse.chain(known)) else { return 0.0 };
        let fine = (1..=HALVINGS).flat_map(|halvings| {
            let by = PHASES * self.tick * 0.5f64.powi(halvings);
            [phase - by, phase + by]
        });
        match nearest(&mut fine.into_iter()) {
            Some((finer, finer_off)) if finer_off < off - 1e-9 => finer,
            _ => phase,
        }
    }

    /// So many phases that explain rounds, those known before first.
    pub(super) fn explain(&self, known: &[f64], threads: usize, rounds: &[Round]) -> Vec<Found> {
        let off = |found: &[Found]| self.misfit_of(found, rounds);
        let found = self.explain_from(known, None, threads, rounds);
        if off(&found) < WELL || threads <= known.len() {
            return found;
        }
        let others = (0..self.firsts.len()).map(|slot| slot as f64 * self.tick);
        let others = others.map(|first| self.explain_from(known, Some(first), threads, rounds));
        others.chain([found.clone()]).min_by(|a, b| off(a).total_cmp(&off(b))).unwrap_or(found)
    }

    /// The same, with one more phase that is known to begin with.
    fn explain_from(&self, known: &[f64], mut first: Option<f64>, threads: usize, rounds: &[Round]) -> Vec<Found> {
        let mut left = self.times(rounds);
        let mut found: Vec<Found> =
            known.iter().enumerate().map(|(place, &phase)| Found { place: Some(place), phase }).collect();
        known.iter().for_each(|&phase| self.take(&mut left, rounds, phase, 1.0));
        while found.len() > threads {
            let without = |&Found { phase, .. }: &Found| {
                let mut left = left.clone();
                self.take(&mut left, rounds, phase, -1.0);
                squares(&left)
            };
            let offs: Vec<f64> = found.iter().map(without).collect();
            let Some(place) = (0..offs.len()).min_by(|&a, &b| offs[a].total_cmp(&offs[b])) else { break };
            let Found { phase, .. } = found.remove(place);
            self.take(&mut left, rounds, phase, -1.0);
        }
        while found.len() < threads {
            let phase = first.take().unwrap_or_else(|| self.best(&left, rounds, None));
            self.take(&mut left, rounds, phase, 1.0);
            found.push(Found { place: None, phase });
        }
        for _ in 0..SWEEPS {
            let before = squares(&left);
            for Found { place, phase } in &mut found {
                self.take(&mut left, rounds, *phase, -1.0);
                let best = self.best(&left, rounds, Some(*phase));
                let moved = (best - *phase + 0.5 * self.cycle).rem_euclid(self.cycle) - 0.5 * self.cycle;
                if moved.abs() > SAME * self.tick {
                    *place = None;
                }
                *phase += moved;
                self.take(&mut left, rounds, *phase, 1.0);
            }
            if squares(&left) > 0.99 * before {
                break;
            }
        }
        found
    }
}

/// Times of rounds and slots, where they lie in the cycle.
struct Folded(Vec<FoldedTimes>);

/// Times of rounds and slots that lie alike in the cycle.
#[derive(Clone, Copy)]
struct FoldedTimes {
    /// Where they begin in the cycle, and how long they are.
    start: f64,
    length: f64,
    number: f64,
    /// The sum of times that are left.
    left: f64,
}

impl Folded {
    fn new(order: &Order, left: &[f64], rounds: &[Round]) -> Self {
        let mut times = Vec::new();
        for (left, round) in left.chunks(order.firsts.len()).zip(rounds) {
            for (slot, &left) in left.iter().enumerate() {
                let start = (round.span.start - slot as f64 * order.tick + 1e-6).rem_euclid(order.cycle);
                times.push(FoldedTimes { start, length: round.span.length(), number: 1.0, left });
            }
        }
        times.sort_unstable_by(|a, b| a.start.total_cmp(&b.start));
        let is_small = |apart: f64| apart < 1e-3 * order.tick;
        times.dedup_by(|next, first| {
            let same = is_small(next.start - first.start) && is_small((next.length - first.length).abs());
            if same {
                first.number += next.number;
                first.left += next.left;
            }
            same
        });
        Self(times)
    }

    /// The squares of what a pattern leaves, but for what is the same for all.
    fn off(&self, order: &Order, phase: f64) -> f64 {
        let off = |&FoldedTimes { start, length, number, left }: &FoldedTimes| {
            let counted = order.counted(phase, 0, Span { start, end: start + length });
            counted * (number * counted - 2.0 * left)
        };
        self.0.iter().map(off).sum()
    }
}

fn squares(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum()
}
