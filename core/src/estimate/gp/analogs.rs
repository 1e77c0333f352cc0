//! Estimates an event by the method of analogues: from the moments at which other events were as they are now (E. N.
//! Lorenz, "Atmospheric predictability as revealed by naturally occurring analogues", Journal of the Atmospheric
//! Sciences 26, 1969).
//!
//! Where turns on the counters are so long that a window sees one or two of them, covariances of events that are never
//! counted together can't be learnt. What can be compared is where the program was: events that were counted lately
//! have rates, and so had they around each earlier turn of an event that wasn't.

use std::collections::VecDeque;

use super::time::Span;

/// A time in which an event was counted without a break, in milliseconds of CPU time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) span: Span,
    pub(crate) count: f64,
    /// Time on a counter, summed over threads.
    pub(crate) running: f64,
    /// Numbers the times that the event was on a counter without a break.
    pub(crate) stay: u64,
}

impl Piece {
    fn middle(&self) -> f64 {
        0.5 * (self.span.start + self.span.end)
    }

    fn rate(&self) -> f64 {
        self.count / self.running
    }

    /// The logarithm of its rate; half a count stands for none.
    fn log(&self) -> f64 {
        (self.count.max(0.5) / self.running).ln()
    }
}

/// The most pieces that are kept of an event, those of them that are compared with the present, and the most events
/// that they are compared by: what bounds the cost of a window.
const MOST_KEPT: usize = 256;
const MOST_COMPARED: usize = 64;
const MOST_WITNESSES: usize = 32;
/// What the logarithms of rates differ by at least between equal moments.
const LEAST_SPREAD: f64 = 0.01;
/// A difference counts for no more than so many of the usual ones.
const LARGEST: f64 = 6.0;
/// A moment that differs by the usual difference weighs e^-2 of one that doesn't.
const SHARP: f64 = 2.0;
/// How long a count says what goes on, in turns, and how long a moment is remembered, in cycles.
const WITNESS_TURNS: f64 = 2.0;
const MEMORY_CYCLES: f64 = 8.0;
/// An earlier stay weighs at most so much of what all others do together: what was seen once may have been chance.
const MOST_ALONE: f64 = 0.7;
/// A piece of this part of a turn or more says as much as a whole one.
const SHORT: f64 = 0.3;
/// A rate jumps where it changes by so many times what it usually does between the pieces of a turn, and what that is
/// taken to be before any were seen, in logarithms.
const JUMP: f64 = 4.0;
const CHANGE: f64 = 0.05;

/// How long events are on the counters at a time, and from one such turn to the next, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnTimes {
    pub(crate) turn: f64,
    pub(crate) cycle: f64,
}

/// How the logarithm of an event's rate changes.
#[derive(Clone, Copy, Debug)]
struct Changes {
    /// How much it usually does from one stay to the next; `None` if that was seen less than twice.
    spread: Option<f64>,
    /// Whether it jumped before its last piece: that says as much as a whole turn, however short it is.
    has_jumped: bool,
}

/// What was counted of each event, and when.
#[derive(Clone, Debug)]
pub(crate) struct Analogs {
    events: Vec<VecDeque<Piece>>,
}

/// What an event was at an earlier time, and how much that says of what it is now.
#[derive(Clone, Copy, Debug)]
struct Analog {
    rate: f64,
    weight: f64,
    stay: u64,
}

/// An event that tells where the program is: its weight, its rate now, and how much that usually changes, in
/// logarithms.
#[derive(Clone, Copy, Debug)]
struct Witness {
    event: usize,
    weight: f64,
    now: f64,
    spread: f64,
}

impl Analogs {
    pub(crate) fn new(events: usize) -> Self {
        Self { events: vec![VecDeque::new(); events] }
    }

    /// Takes a piece of an event; those of one stay come in the order of time. They are joined up to `longest`.
    pub(crate) fn add(&mut self, event: usize, piece: Piece, longest: f64) {
        let pieces = &mut self.events[event];
        match pieces.back_mut() {
            Some(last) if last.stay == piece.stay && piece.span.end - last.span.start <= longest => {
                last.span.end = piece.span.end;
                last.count += piece.count;
                last.running += piece.running;
            }
            _ => pieces.push_back(piece),
        }
        if pieces.len() > MOST_KEPT {
            pieces.pop_front();
        }
    }

    /// The rate of each event in the part of a window in which it wasn't counted, per millisecond; `None` if it never
    /// was counted.
    pub(crate) fn rates(&self, window: Span, times: &TurnTimes) -> Vec<Option<f64>> {
        let changes = |pieces| Changes { spread: spread(pieces), has_jumped: has_jumped(pieces) };
        let changes: Vec<Changes> = self.events.iter().map(changes).collect();
        (0..self.events.len()).map(|event| self.rate(event, window, times, &changes)).collect()
    }

    fn rate(&self, event: usize, window: Span, times: &TurnTimes, changes: &[Changes]) -> Option<f64> {
        let pieces = &self.events[event];
        let last = pieces.back()?;
        let unseen = unseen(last.span, window);
        let witnesses = self.witnesses(event, window, unseen, times, changes);
        let all: f64 = witnesses.iter().map(|witness| witness.weight).sum();
        if all <= 0.0 {
            return Some(last.rate());
        }
        let compared = pieces.iter().rev().take(MOST_COMPARED).enumerate().map(|(pieces_ago, piece)| {
            let distance: f64 =
                witnesses.iter().map(|witness| witness.weight * self.distance(witness, event, piece)).sum();
            let age = (unseen - piece.middle()).abs() / (MEMORY_CYCLES * times.cycle);
            let is_whole = pieces_ago == 0 && changes[event].has_jumped;
            let running = if is_whole { piece.running.max(times.turn) } else { piece.running };
            let log = 0.5 * running.ln() - SHARP * distance / all - age;
            Analog { rate: piece.rate(), weight: log, stay: piece.stay }
        });
        let mut moments: Vec<Analog> = compared.collect();
        let most = moments.iter().map(|moment| moment.weight).fold(f64::NEG_INFINITY, f64::max);
        moments.iter_mut().for_each(|moment| moment.weight = (moment.weight - most).exp());
        limit_earlier(&mut moments, last.stay);
        Some(weighted_median(moments.into_iter().map(|moment| (moment.rate, moment.weight))))
    }

    /// The events that tell where the program was at a time: those that were counted since the event was, or in the
    /// same window.
    fn witnesses(
        &self,
        event: usize,
        window: Span,
        unseen: f64,
        times: &TurnTimes,
        changes: &[Changes],
    ) -> Vec<Witness> {
        let since = self.events[event].back().map_or(window.start, |last| last.middle().min(window.start));
        let is_counted = self.events[event].back().is_some_and(|last| last.span.end > window.start + 1e-6);
        let witness = |other: usize| {
            let (spread, last) = (changes[other].spread?, self.events[other].back()?);
            let is_later = if other == event { is_counted } else { last.middle() > since + 1e-6 };
            let part = if changes[other].has_jumped { 1.0 } else { last.span.length() / (SHORT * times.turn) };
            let weight = part.min(1.0) * (-(last.middle() - unseen).abs() / (WITNESS_TURNS * times.turn)).exp();
            is_later.then_some(Witness { event: other, weight, now: last.log(), spread })
        };
        let mut witnesses: Vec<Witness> = (0..self.events.len()).filter_map(witness).collect();
        if witnesses.len() > MOST_WITNESSES {
            witnesses.sort_by(|a, b| b.weight.total_cmp(&a.weight));
            witnesses.truncate(MOST_WITNESSES);
        }
        witnesses
    }

    /// How far a witness was from where it is now when a piece of an event was counted: between what it was before and
    /// after, by the time to each.
    fn distance(&self, witness: &Witness, event: usize, piece: &Piece) -> f64 {
        let off = |other: &Piece| ((other.log() - witness.now).abs() / witness.spread).min(LARGEST);
        if witness.event == event {
            return off(piece);
        }
        let (pieces, middle) = (&self.events[witness.event], piece.middle());
        let after = pieces.partition_point(|other| other.middle() < middle);
        match (after.checked_sub(1).and_then(|before| pieces.get(before)), pieces.get(after)) {
            (Some(before), Some(after)) => {
                let part = (middle - before.middle()) / (after.middle() - before.middle()).max(f64::MIN_POSITIVE);
                (1.0 - part) * off(before) + part * off(after)
            }
            (Some(one), None) | (None, Some(one)) => off(one),
            (None, None) => LARGEST,
        }
    }
}

/// The middle of the part of a window that a span leaves out; that of the window if the span is inside it or before.
fn unseen(span: Span, window: Span) -> f64 {
    let reaches = |a: f64, b: f64| (a - b).abs() < 1e-6;
    if span.end <= window.start + 1e-6 {
        return 0.5 * (window.start + window.end);
    }
    match (reaches(span.start, window.start), reaches(span.end, window.end)) {
        (true, false) => 0.5 * (span.end + window.end),
        (false, true) => 0.5 * (window.start + span.start),
        _ => 0.5 * (window.start + window.end),
    }
}

/// How much the logarithm of an event's rate changes from one stay to the next; `None` if that was seen less than
/// twice.
fn spread(pieces: &VecDeque<Piece>) -> Option<f64> {
    let mut changes = Vec::with_capacity(pieces.len());
    let (mut before, mut last): (Option<&Piece>, Option<&Piece>) = (None, None);
    for piece in pieces {
        if last.is_some_and(|last| last.stay != piece.stay) {
            before = last;
        }
        changes.extend(before.map(|before| (piece.log() - before.log()).abs()));
        last = Some(piece);
    }
    if changes.len() < 2 {
        return None;
    }
    let middle = changes.len() / 2;
    let (_, median, _) = changes.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*median + LEAST_SPREAD)
}

/// Limits the weight of the earlier stay that weighs most to [`MOST_ALONE`] of what all others do. The last one isn't
/// limited, as it may go on.
fn limit_earlier(moments: &mut [Analog], last_stay: u64) {
    let mut stays: Vec<(u64, f64)> = Vec::new();
    for moment in moments.iter() {
        match stays.last_mut() {
            Some((stay, weight)) if *stay == moment.stay => *weight += moment.weight,
            _ => stays.push((moment.stay, moment.weight)),
        }
    }
    let all: f64 = stays.iter().map(|&(_, weight)| weight).sum();
    let earlier = stays.into_iter().filter(|&(stay, _)| stay != last_stay);
    let Some((heaviest, weight)) = earlier.max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
    let most = MOST_ALONE * (all - weight);
    if most <= 0.0 || weight <= most {
        return;
    }
    let part = most / weight;
    moments.iter_mut().filter(|moment| moment.stay == heaviest).for_each(|moment| moment.weight *= part);
}

/// Whether an event's rate jumped before its last piece, in a stay or between two: it changed by more than it did
/// between the pieces of earlier stays, and than counts of that size do by chance.
fn has_jumped(pieces: &VecDeque<Piece>) -> bool {
    let (Some(last), Some(before)) = (pieces.back(), pieces.iter().rev().nth(1)) else { return false };
    let change = |before: &Piece, piece: &Piece| (piece.log() - before.log()).abs();
    let mut changes: Vec<f64> = vec![CHANGE];
    for (before, piece) in pieces.iter().zip(pieces.iter().skip(1)) {
        if before.stay == piece.stay && piece.stay != last.stay {
            changes.push(change(before, piece));
        }
    }
    let middle = changes.len() / 2;
    let (_, &mut usual, _) = changes.select_nth_unstable_by(middle, f64::total_cmp);
    change(before, last) > JUMP * (usual + LEAST_SPREAD + last.count.max(0.5).sqrt().recip())
}

/// The least of some numbers for which the weights up to it are half of all; 0 of none.
fn weighted_median(weighted: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut weighted: Vec<(f64, f64)> = weighted.collect();
    weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = 0.5 * weighted.iter().map(|&(_, weight)| weight).sum::<f64>();
    let mut so_far = 0.0;
    let reached = weighted.iter().find(|&&(_, weight)| {
        so_far += weight;
        so_far >= half
    });
    reached.or(weighted.last()).map_or(0.0, |&(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: f64 = 100.0;
    const TIMES: TurnTimes = TurnTimes { turn: TURN, cycle: 2.0 * TURN };

    /// A time at so many counts a millisecond.
    fn piece(start: f64, end: f64, rate: f64, stay: u64) -> Piece {
        Piece { span: Span { start, end }, count: rate * (end - start), running: end - start, stay }
    }

    /// Two events take turns of 100 ms, the first one begins; `rates` of the turns.
    fn turns(rates: &[f64]) -> Analogs {
        let mut analogs = Analogs::new(2);
        for (turn, &rate) in rates.iter().enumerate() {
            let (start, end) = (TURN * turn as f64, TURN * (turn + 1) as f64);
            analogs.add(turn % 2, piece(start, end, rate, turn as u64), 0.5 * TURN);
        }
        analogs
    }

    /// The rates of both events in the last turn.
    fn last_rates(rates: &[f64]) -> [f64; 2] {
        let end = TURN * rates.len() as f64;
        let found = turns(rates).rates(Span { start: end - TURN, end }, &TIMES);
        [found[0].unwrap_or(f64::NAN), found[1].unwrap_or(f64::NAN)]
    }

    #[test]
    fn an_event_is_what_it_was_when_others_were_as_they_are_by_hand() {
        // Where the second event has 5 the first has 10, where it has 50 the first has 70.
        let phase = |first: f64, second: f64| [first, second].repeat(4);
        let mut rates = [phase(10.0, 5.0), phase(70.0, 50.0), phase(10.0, 5.0), vec![10.0, 5.0, 10.0]].concat();
        rates.push(50.0);
        // The last rate of the first event is 10, the median of its rates, too.
        assert_eq!(last_rates(&rates), [70.0, 50.0]);
        // Where nothing tells, the last rate goes on.
        assert_eq!(last_rates(&[10.0, 5.0, 20.0, 7.0]), [20.0, 7.0]);
    }

    #[test]
    fn single_turns_have_no_spread_and_what_was_never_counted_no_rate() {
        assert_eq!(Analogs::new(2).rates(Span { start: 0.0, end: TURN }, &TIMES), [None, None]);
        assert_eq!(turns(&[3.0]).rates(Span { start: 0.0, end: TURN }, &TIMES), [Some(3.0), None]);
        assert_eq!(spread(&turns(&[3.0, 1.0, 9.0]).events[0]), None);
        // Logarithms change by ln 3 twice, and by ln 9 once.
        let changes = spread(&turns(&[1.0, 1.0, 3.0, 1.0, 1.0, 1.0, 9.0]).events[0]);
        assert!(changes.is_some_and(|changes| (changes - 3f64.ln() - LEAST_SPREAD).abs() < 1e-12), "{changes:?}");
        assert_eq!(weighted_median([].into_iter()), 0.0);
    }

    #[test]
    fn what_came_after_a_jump_in_a_turn_is_the_rate_by_hand() {
        let pieces = |rates: &[f64], last: f64| {
            let mut analogs = turns(rates);
            let (start, stay) = (TURN * rates.len() as f64, rates.len() as u64 - 1);
            analogs.add(1, piece(start, start + 4.0, last, stay), 0.5 * TURN);
            analogs.add(0, piece(start + 4.0, start + TURN, 10.0, stay + 1), 0.5 * TURN);
            analogs
        };
        let rates = [10.0, 500.0].repeat(4);
        // By ln 2 where it usually is 0.05 and 4 ms of 1000 are 1.6 % off by chance, and by 5 %.
        let (jumped, same) = (pieces(&rates, 1000.0), pieces(&rates, 525.0));
        assert!(has_jumped(&jumped.events[1]) && !has_jumped(&same.events[1]) && !has_jumped(&jumped.events[0]));
        let end = TURN * 9.0;
        let rate = |analogs: &Analogs| analogs.rates(Span { start: end - TURN, end }, &TIMES)[1];
        assert_eq!((rate(&jumped), rate(&same)), (Some(1000.0), Some(500.0)));
        // Two counts after four are no jump, and neither is one piece.
        assert!(!has_jumped(&pieces(&[10.0, 1.0].repeat(4), 0.5).events[1]));
        assert!(!has_jumped(&VecDeque::new()) && !has_jumped(&turns(&[3.0]).events[0]));
    }

    #[test]
    fn a_short_piece_that_differs_from_the_last_stay_is_the_rate_by_hand() {
        // The second event comes on with 4 ms after the first had its turn.
        let estimate = |rate: f64| {
            let mut analogs = turns(&[[10.0, 500.0].repeat(4), vec![10.0]].concat());
            let (start, end) = (9.0 * TURN, 10.0 * TURN);
            analogs.add(0, piece(start, end - 4.0, 10.0, 8), 0.5 * TURN);
            analogs.add(1, piece(end - 4.0, end, rate, 9), 0.5 * TURN);
            (has_jumped(&analogs.events[1]), analogs.rates(Span { start, end }, &TIMES)[1])
        };
        assert_eq!(estimate(1000.0), (true, Some(1000.0)));
        assert_eq!(estimate(525.0), (false, Some(500.0)));
    }

    /// Moments of these stays and weights.
    fn moments(weights: &[(u64, f64)]) -> Vec<Analog> {
        weights.iter().map(|&(stay, weight)| Analog { rate: 1.0, weight, stay }).collect()
    }

    /// The weights of moments after that of an earlier stay was limited.
    fn limited(weights: &[(u64, f64)], last_stay: u64) -> Vec<f64> {
        let mut moments = moments(weights);
        limit_earlier(&mut moments, last_stay);
        moments.into_iter().map(|moment| moment.weight).collect()
    }

    #[test]
    fn no_earlier_stay_weighs_more_than_the_others_by_hand() {
        // All but the second stay weigh 2, so that it may weigh 1.4, which is 0.35 of 4.
        let found = limited(&[(3, 1.0), (2, 3.0), (2, 1.0), (1, 1.0)], 3);
        assert!(found.iter().zip([1.0, 1.05, 0.35, 1.0]).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        // The last stay isn't limited, what weighs less stays as it is, and so does what is alone.
        assert_eq!(limited(&[(3, 9.0), (2, 1.0)], 3), [9.0, 1.0]);
        assert_eq!((limited(&[(3, 1.0)], 3), limited(&[(2, 1.0)], 3), limited(&[], 3)), (vec![1.0], vec![1.0], vec![]));
        assert_eq!(limited(&[(3, 0.0), (2, 1.0)], 3), [0.0, 1.0]);
    }

    #[test]
    fn half_of_the_weight_lies_below_a_weighted_median_by_hand() {
        assert_eq!(weighted_median([(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)].into_iter()), 2.0);
        assert_eq!(weighted_median([(3.0, 5.0), (1.0, 1.0), (2.0, 1.0)].into_iter()), 3.0);
    }

    #[test]
    fn what_a_window_leaves_out_by_hand() {
        let window = Span { start: 100.0, end: 200.0 };
        let middle = |start: f64, end: f64| unseen(Span { start, end }, window);
        assert_eq!([middle(100.0, 140.0), middle(140.0, 200.0), middle(0.0, 100.0)], [170.0, 120.0, 150.0]);
        assert_eq!(middle(120.0, 140.0), 150.0);
    }

    proptest::proptest! {
        #[test]
        fn an_estimate_is_a_rate_that_was_counted(
            rates in proptest::collection::vec(0.0..1e6f64, 2..40),
            length in 1.0..1000.0f64,
        ) {
            let end = TURN * rates.len() as f64;
            for (event, rate) in turns(&rates).rates(Span { start: end - length, end }, &TIMES).into_iter().enumerate() {
                let counted = rates.iter().skip(event).step_by(2);
                proptest::prop_assert!(counted.into_iter().any(|&counted| Some(counted * TURN / TURN) == rate));
            }
        }

        #[test]
        fn weights_of_one_earlier_stay_shrink_and_no_others(
            weights in proptest::collection::vec(1e-3..1e3f64, 2..20),
            pieces in 1..4usize,
        ) {
            let stays: Vec<(u64, f64)> =
                weights.iter().enumerate().map(|(i, &weight)| (100 - (i / pieces) as u64, weight)).collect();
            let found = limited(&stays, 100);
            let shrunk: Vec<usize> = (0..found.len()).filter(|&i| found[i] < weights[i]).collect();
            proptest::prop_assert!(found.iter().zip(&weights).all(|(found, &weight)| *found <= weight));
            let stay = shrunk.first().map(|&i| stays[i].0);
            proptest::prop_assert!(stay != Some(100) && shrunk.iter().all(|&i| Some(stays[i].0) == stay));
            if let Some(stay) = stay {
                let of = |is: bool| (0..found.len()).filter(|&i| (stays[i].0 == stay) == is).map(|i| found[i]).sum::<f64>();
                proptest::prop_assert!((of(true) - MOST_ALONE * of(false)).abs() < 1e-9 * of(false));
            }
        }

        #[test]
        fn units_of_events_do_not_matter(rates in proptest::collection::vec(1.0..1e3f64, 2..40)) {
            let scaled: Vec<f64> = rates.iter().enumerate().map(|(i, rate)| rate * [1.0, 1024.0][i % 2]).collect();
            let (one, other) = (last_rates(&rates), last_rates(&scaled));
            proptest::prop_assert!((one[0] - other[0]).abs() < 1e-9 && (1024.0 * one[1] - other[1]).abs() < 1e-6);
        }
    }
}
