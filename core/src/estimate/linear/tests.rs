//! Tests what relations and equations do to counts, on cases small enough to work by hand.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use proptest::prelude::*;

use super::super::audit::AUDITED_AFTER;
use super::super::{Moved, RelationState};
use super::correction::less_sure;
use super::state::{mixed, one_pass};
use super::*;
use crate::estimate::tests::{events, half, whole};
use crate::rates::Delta;
use crate::units::CpuNs;

/// An estimator and what was counted, fed with a rate an event a millisecond, each counted for
/// half of the time.
struct Bench {
    linear: Linear,
    tally: Tally,
}

impl Bench {
    fn new(names: &[&str], file: &str) -> Self {
        Self::with_rule(LinearRule::Judged, names, file)
    }

    fn with_rule(rule: LinearRule, names: &[&str], file: &str) -> Self {
        let relations = crate::relations::parse("test.json", file.as_bytes()).strict().unwrap();
        Self { linear: Linear::with_rule(rule, &events(names), &relations), tally: Tally::new(names.len()) }
    }

    fn feed(&mut self, rates: &[Option<u64>]) {
        self.feed_deltas(&rates.iter().map(|rate| Some(half(*rate))).collect::<Vec<_>>());
    }

    fn feed_deltas(&mut self, deltas: &[Option<Delta>]) {
        self.tally.round(deltas);
        self.tally.end_interval();
        self.linear.end_interval(&self.tally);
    }

    fn mean(&self, event: usize) -> f64 {
        self.linear.estimates()[event].total.unwrap().value / self.tally.run_time(event).as_ms()
    }

    fn interval(&self, event: usize) -> f64 {
        self.linear.estimates()[event].interval.unwrap().value / self.tally.interval_time(event).as_ms()
    }

    fn quality(&self, event: usize) -> Quality {
        self.linear.estimates()[event].quality
    }

    /// What moved an event, as rates.
    fn parts(&self, event: usize) -> Vec<(Cause, f64)> {
        let time = self.tally.run_time(event).as_ms();
        self.linear.estimates()[event].parts.iter().map(|part| (part.by, part.counts / time)).collect()
    }
}

const FIVE: &str = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "5 * {mean}", "weight": 0.25}]"#;

#[test]
fn a_correction_goes_a_quarter_of_the_way_to_five_times_the_source() {
    // b has 40, a says 5 x 10 = 50: 40 + 0.25 x (50 - 40) = 42.5.
    let mut bench = Bench::new(&["a", "b"], FIVE);
    bench.feed(&[Some(10), Some(40)]);
    assert_eq!((bench.mean(0), bench.mean(1)), (10.0, 42.5));
    assert_eq!((bench.interval(0), bench.interval(1)), (10.0, 42.5));
    assert_eq!(bench.tally.raw()[1].rate.mean(), Some(40.0));
    let standing = &bench.linear.relations()[0];
    assert_eq!((standing.uses, standing.residual, standing.trust), (1, Some(10.0), None));
    assert_eq!(standing.moved, Some(Moved { event: 1, relative: Some(0.0625) }));
    assert_eq!((bench.quality(1), bench.parts(1)), (Quality::Corrected, vec![(Cause::Relation(0), 2.5)]));
}

#[test]
fn a_source_without_a_sample_corrects_nothing() {
    let mut bench = Bench::new(&["a", "b"], FIVE);
    bench.feed(&[None, Some(40)]);
    assert_eq!(bench.linear.relations()[0].uses, 0);
    assert_eq!(bench.linear.estimates()[0], Estimate::default());
    assert_eq!(bench.quality(1), Quality::Scaled);
}

#[test]
fn an_event_that_was_never_counted_is_derived() {
    let mut bench = Bench::new(&["a", "b"], FIVE);
    bench.feed(&[Some(10), None]);
    assert_eq!(bench.mean(1), 50.0);
    assert_eq!((bench.quality(1), bench.parts(1)), (Quality::Derived, vec![(Cause::Relation(0), 50.0)]));
    assert_eq!(bench.linear.relations()[0].moved, Some(Moved { event: 1, relative: None }));
}

#[test]
fn an_equation_derives_the_one_event_that_was_never_counted() {
    let cases = [
        (r#"[{"relation": "a = b + c"}]"#, [Some(100), Some(40), None], Some(60.0)),
        (r#"[{"relation": "a = b * c"}]"#, [Some(100), Some(40), None], Some(2.5)),
        (r#"[{"relation": "a = b / c"}]"#, [Some(100), Some(40), None], Some(0.4)),
        (r#"[{"relation": "a = b + c"}]"#, [None, Some(40), Some(50)], Some(90.0)),
        // Less than nothing is nothing; of two none can be chosen.
        (r#"[{"relation": "a = b + c"}]"#, [Some(40), Some(100), None], Some(0.0)),
        (r#"[{"relation": "a = b + c"}]"#, [Some(100), None, None], None),
        (r#"[{"relation": "a = b + 0 * c"}]"#, [Some(100), Some(40), None], None),
    ];
    for (file, rates, expected) in cases {
        let mut bench = Bench::new(&["a", "b", "c"], file);
        let missing = rates.iter().rposition(Option::is_none).unwrap();
        for _ in 0..3 {
            bench.feed(&rates);
            match expected {
                Some(expected) => {
                    assert!((bench.mean(missing) - expected).abs() < 1e-9, "{file}: {}", bench.mean(missing));
                    assert!((bench.interval(missing) - expected).abs() < 1e-9, "{file}");
                    assert_eq!(bench.quality(missing), Quality::Derived, "{file}");
                }
                None => assert_eq!(bench.linear.estimates()[missing], Estimate::default(), "{file}"),
            }
        }
        // What it gives corrects nothing in turn.
        assert!((0..3).filter(|&event| rates[event].is_some()).all(|event| bench.quality(event) == Quality::Scaled));
    }
}

#[test]
fn what_a_relation_derives_is_as_uncertain_as_it_says() {
    // 10 % is what it is put aside for, and three deviations: 1.96 x 50 / 30, of exact events.
    let mut bench = Bench::new(&["a", "b"], FIVE);
    bench.feed_deltas(&[Some(whole(20)), Some(half(None))]);
    let total = bench.linear.estimates()[1].total.unwrap();
    let half_width = 1.959_964 * total.value / 30.0;
    assert!((total.error.half_width().unwrap() - half_width).abs() < 1e-4, "{total:?}");
}

#[test]
fn a_cycle_starts_from_the_same_states() {
    let file = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "{mean}", "weight": 0.5},
                   {"eventFrom": "b", "eventTo": "a", "expectedMean": "{mean}", "weight": 0.5}]"#;
    let mut bench = Bench::new(&["a", "b"], file);
    bench.feed(&[Some(10), Some(20)]);
    assert_eq!((bench.mean(0), bench.mean(1)), (15.0, 15.0));
}

#[test]
fn relations_into_one_event_share_at_most_the_whole_way() {
    let file = r#"[{"eventFrom": "a", "eventTo": "c", "expectedMean": "{mean}", "weight": 1},
                   {"eventFrom": "b", "eventTo": "c", "expectedMean": "{mean}", "weight": 0.5}]"#;
    let mut bench = Bench::new(&["a", "b", "c"], file);
    bench.feed(&[Some(30), Some(60), Some(0)]);
    assert!((bench.mean(2) - 40.0).abs() < 1e-12);
    // Two thirds of the way to 30, and one third of that to 60.
    assert_eq!(bench.parts(2), [(Cause::Relation(0), 20.0), (Cause::Relation(1), 20.0)]);
}

#[test]
fn a_single_interval_is_corrected_from_its_own_rates() {
    let mut bench = Bench::new(&["a", "b"], FIVE);
    bench.feed(&[Some(10), Some(40)]);
    bench.feed(&[Some(20), Some(100)]);
    assert_eq!(bench.interval(1), 100.0);
    // Two samples tell how far 70 is off, so that what the first interval did ends: at most a quarter of the way to 5
    // x 15.
    assert!((70.0..=71.25).contains(&bench.mean(1)), "{}", bench.mean(1));
    // Not counted in this interval: what the other says of it.
    bench.feed(&[Some(8), None]);
    assert_eq!(bench.interval(1), 40.0);
    bench.feed(&[None, None]);
    assert_eq!(bench.linear.estimates()[1].interval, None);
}

#[test]
fn an_equation_corrects_each_of_its_events() {
    // a = b + c with 100, 40, 50: residual 10; a should be 90, b 50, c 60; a tenth of the way.
    let mut bench = Bench::new(&["a", "b", "c"], r#"[{"relation": "a = b + c", "weight": 0.1}]"#);
    bench.feed(&[Some(100), Some(40), Some(50)]);
    for (event, mean) in [99.0, 41.0, 51.0].into_iter().enumerate() {
        assert!((bench.mean(event) - mean).abs() < 1e-12, "{event}");
    }
}

#[test]
fn variance_follows_the_source_and_never_goes_below_zero() {
    let file = r#"[{"eventFrom": "a", "eventTo": "b", "expectedVariance": "{variance} - 1000", "weight": 0.5}]"#;
    let mut bench = Bench::new(&["a", "b"], file);
    bench.feed(&[Some(10), Some(0)]);
    bench.feed(&[Some(20), Some(20)]);
    // b: (0 - 10)^2 + (20 - 10)^2 = 200; expected 50 - 1000, which is read as 0.
    assert_eq!(bench.linear.states[1].variance, 100.0);
}

#[test]
fn a_relation_that_contradicts_the_counts_is_put_aside() {
    let mut bench = Bench::new(&["a", "b"], FIVE);
    for _ in 0..AUDITED_AFTER + 1 {
        bench.feed(&[Some(10), Some(1000)]);
    }
    assert_eq!(bench.linear.relations()[0].state, RelationState::Violated);
    assert_eq!(bench.linear.relations()[0].trust, Some(0.0));
    assert_eq!((bench.quality(1), bench.parts(1)), (Quality::Scaled, vec![]));
    assert_eq!(bench.mean(1), 1000.0);
    for _ in 0..500 {
        bench.feed(&[Some(1000), Some(1000)]);
    }
    assert_eq!(bench.linear.relations()[0].state, RelationState::Violated, "5 x 990 is still not 1000");
}

/// b is said to be 2.1 a and is 2 a; b and c are the same.
const CHAIN: &str = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "2.1 * {mean}", "weight": 0.5},
                        {"eventFrom": "b", "eventTo": "c", "expectedMean": "{mean}", "weight": 0.5},
                        {"eventFrom": "c", "eventTo": "b", "expectedMean": "{mean}", "weight": 0.5}]"#;

#[test]
fn the_plain_rule_follows_a_chain_whatever_the_samples_say() {
    let means = |rule| {
        let mut bench = Bench::with_rule(rule, &["a", "b", "c"], CHAIN);
        (0..2000).for_each(|_| bench.feed(&[Some(100), Some(200), Some(200)]));
        [1, 2].map(|event| bench.mean(event))
    };
    // Own samples draw it back by a 2000th each time.
    let plain = means(LinearRule::Plain);
    assert!(plain.iter().all(|mean| (209.9..210.0).contains(mean)), "{plain:?}");
    let judged = means(LinearRule::Judged);
    assert!(judged.iter().all(|mean| (200.0..202.0).contains(mean)), "{judged:?}");
}

#[test]
fn the_plain_rule_goes_along_a_chain_step_by_step() {
    let mut bench = Bench::with_rule(LinearRule::Plain, &["a", "b", "c"], CHAIN);
    let mut by_hand = [f64::NAN; 2];
    for n in 1..=AUDITED_AFTER + 5 {
        bench.feed(&[Some(100), Some(200), Some(200)]);
        let [b, c] = by_hand.map(|mean| if n == 1 { 200.0 } else { mean + (200.0 - mean) / n as f64 });
        by_hand = [b + 0.5 * (210.0 - b) + 0.5 * (c - b), c + 0.5 * (b - c)];
        if n <= 2 {
            assert_eq!(by_hand, [[205.0, 200.0], [205.0, 201.25]][n as usize - 1]);
        }
        for (event, mean) in [(1, by_hand[0]), (2, by_hand[1])] {
            assert!((bench.linear.states[event].mean - mean).abs() < 1e-9, "{n}: {by_hand:?}");
        }
    }
}

#[test]
fn the_plain_rule_corrects_means_of_rates_in_the_time_running_by_hand() {
    let read = |count: u64, running_s: u64| {
        let of_seconds = |seconds: u64| CpuNs(1_000_000_000 * seconds);
        Some(Delta { count, enabled: of_seconds(2), running: of_seconds(running_s) })
    };
    let twice = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "2 * {mean}", "weight": 0.2}]"#;
    let mut bench = Bench::with_rule(LinearRule::Plain, &["a", "b"], twice);
    let mut means = |a, b| {
        bench.feed_deltas(&[a, b]);
        [0, 1].map(|event| 1e3 * bench.linear.states[event].mean)
    };
    // Counts a second: b has 200, and 2 x 50 is expected of it.
    let first = means(read(100, 2), read(200, 1));
    assert!((first[0] - 50.0).abs() < 1e-9 && (first[1] - 180.0).abs() < 1e-9, "{first:?}");
    // (100 / 2 + 80 / 1) / 2 = 65; b is between 180 and 200, and 2 x 65 is expected of it.
    let second = means(read(80, 1), read(200, 1));
    assert!((second[0] - 65.0).abs() < 1e-9 && (second[1] - 178.0).abs() < 1e-9, "{second:?}");
}

#[test]
fn by_the_plain_rule_a_violated_relation_corrects_at_its_weight() {
    let mut bench = Bench::with_rule(LinearRule::Plain, &["a", "b"], FIVE);
    let mut by_hand = f64::NAN;
    for n in 1..=AUDITED_AFTER + 5 {
        bench.feed(&[Some(10), Some(1000)]);
        by_hand = if n == 1 { 1000.0 } else { by_hand + (1000.0 - by_hand) / n as f64 };
        by_hand += 0.25 * (50.0 - by_hand);
        assert!((bench.linear.states[1].mean - by_hand).abs() < 1e-9, "{n}");
    }
    let standing = &bench.linear.relations()[0];
    assert_eq!((&standing.state, standing.trust), (&RelationState::Violated, None));
    assert!(standing.corrects_regardless());
}

#[test]
fn by_no_rule_is_an_exact_count_moved() {
    for rule in [LinearRule::Judged, LinearRule::Plain] {
        let mut bench = Bench::with_rule(rule, &["a", "b"], FIVE);
        bench.feed_deltas(&[Some(half(Some(10))), Some(whole(80))]);
        assert_eq!((bench.mean(1), bench.quality(1)), (40.0, Quality::Measured));
    }
}

#[test]
fn a_relation_with_events_that_are_not_measured_is_inactive() {
    let bench = Bench::new(&["a"], FIVE);
    assert_eq!(bench.linear.relations()[0].state, RelationState::Inactive { missing: vec!["b".into()] });
}

#[test]
fn an_error_mixes_as_its_number_does() {
    // A quarter is what a says of b: five times the error of a, and the 10 that it is off by.
    let mut bench = Bench::with_rule(LinearRule::Plain, &["a", "b"], FIVE);
    bench.feed(&[Some(10), Some(40)]);
    assert_eq!(bench.linear.estimates()[1].total.unwrap().error, Error::Unknown);
    bench.feed(&[Some(10), Some(40)]);
    let [a, b] = [0, 1].map(|event| bench.tally.raw()[event].run.deviation().unwrap() / 4.0);
    let expected = 4.0 * 1.959_964 * (0.75 * b + 0.25 * (5.0 * a).hypot(10.0));
    let found = bench.linear.estimates()[1].total.unwrap().error.half_width().unwrap();
    assert!((found - expected).abs() < 1e-4 * expected, "{found} {expected}");
    assert!(mixed(f64::NAN, 3.0, 0.5).is_nan() && (mixed(3.0, 5.0, 0.5) - 4.0).abs() < 1e-12);
}

#[test]
fn what_is_less_sure_weighs_less_by_hand() {
    // An error of 6 for 3: as in a mean by inverse variances, a quarter.
    assert_eq!([less_sure(3.0, 6.0), less_sure(6.0, 3.0), less_sure(3.0, f64::INFINITY)], [0.25, 1.0, 0.0]);
    // Two that are exact weigh alike, and any error is less than one that isn't known.
    let unknown = [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::NAN, f64::NAN)];
    assert_eq!(less_sure(0.0, 0.0), 1.0);
    assert_eq!(unknown.map(|(own, other)| less_sure(own, other)), [1.0, 0.0, 1.0]);
}

#[test]
fn a_small_part_is_not_moved_by_what_large_ones_are_wrong_by() {
    let small = |rule| {
        let mut bench = Bench::with_rule(rule, &["a", "b", "c"], r#"[{"relation": "a = b + c", "tolerance": "1%"}]"#);
        let moved = |i: u64| {
            let [a, b] = [i, i + 1].map(|i| Some(1_000_000 + 10_000 * (i % 3)));
            bench.feed(&[a, b, Some(10 + i % 2)]);
            (bench.interval(2) - (10 + i % 2) as f64).abs()
        };
        // The first interval has no errors yet.
        (0..12).map(moved).skip(2).fold(0.0, f64::max)
    };
    let [judged, plain] = [LinearRule::Judged, LinearRule::Plain].map(small);
    assert!(judged < 0.5 && plain > 100.0, "{judged} {plain}");
}

#[test]
fn nothing_stays_of_corrections_that_may_have_been_off_by_anything() {
    // In the first interval b happens to be off by as much as half of a; c is 0 in each.
    let mut bench = Bench::new(&["a", "b", "c"], r#"[{"relation": "a = b + c", "tolerance": "1%"}]"#);
    bench.feed(&[Some(1_000), Some(500), Some(0)]);
    let first = bench.linear.estimates()[2].total.unwrap();
    assert!(first.value > 0.0 && first.error == Error::Unknown, "{first:?}");
    // So often that it is known that c is seldom.
    (0..64).for_each(|i| bench.feed(&[Some(500 + 100 * (i % 3)), Some(500 + 100 * ((i + 1) % 3)), Some(0)]));
    let last = bench.linear.estimates()[2].total.unwrap();
    assert!(last.bounds().unwrap().0 <= 0.0 && bench.mean(2) < 1.0, "{last:?}");
}

#[test]
fn a_relation_of_variances_is_judged() {
    let file = r#"[{"id": "same", "eventFrom": "a", "eventTo": "b", "expectedVariance": "{variance}"},
                   {"id": "much", "eventFrom": "a", "eventTo": "b", "expectedVariance": "1000 * {variance} + 1e9"}]"#;
    let mut bench = Bench::new(&["a", "b"], file);
    for i in 0..40 {
        bench.feed_deltas(&[Some(whole(1_000_000 + 100_000 * (i % 4))); 2]);
    }
    let [same, much] = bench.linear.relations() else { panic!("two") };
    assert_eq!((same.residual, same.z, same.trust), (Some(0.0), Some(0.0), Some(1.0)));
    assert_eq!((&same.state, &much.state), (&RelationState::Agrees, &RelationState::Violated));
}

#[test]
fn what_a_wrong_relation_did_is_forgotten_wherever_it_went() {
    let file = r#"[{"id": "right", "relation": "a = b", "tolerance": "1%"}, {"id": "wrong", "relation": "c = 9 * b"}]"#;
    let mut bench = Bench::new(&["a", "b", "c"], file);
    for _ in 0..12 {
        bench.feed(&[Some(10_000), Some(10_000), Some(5_000)]);
    }
    assert_eq!(bench.linear.relations()[1].state, RelationState::Violated);
    for (event, rate) in [10_000.0, 10_000.0, 5_000.0].into_iter().enumerate() {
        assert!((bench.mean(event) - rate).abs() < 1e-6, "{event}: {}", bench.mean(event));
    }
}

#[test]
fn a_relation_that_is_off_by_more_than_it_says_weighs_less() {
    // 5 x 10 beside 46: within the tolerance of 10 %, but not as often as in every interval.
    let mut bench = Bench::new(&["a", "b"], &FIVE.replace("0.25", "1"));
    for _ in 0..30 {
        bench.feed_deltas(&[Some(whole(10_000)), Some(whole(46_000))]);
    }
    let standing = bench.linear.relations()[0].clone();
    let trust = standing.trust.unwrap();
    assert_eq!(standing.state, RelationState::Agrees);
    assert!((0.1..0.9).contains(&trust), "{trust}");
}

/// The amount by which an estimate was raised to what was counted.
fn clipped(bench: &Bench, event: usize) -> f64 {
    let mean = bench.linear.states[event].mean * bench.tally.run_time(event).as_ms();
    (bench.tally.raw()[event].run.total().count as f64 - mean).max(0.0)
}

#[test]
fn one_pass_gives_the_sample_variance() {
    let (mut mean, mut variance) = (f64::NAN, f64::NAN);
    for (n, x) in [(1.0, 2.0), (2.0, 4.0), (3.0, 9.0)] {
        (mean, variance) = one_pass(n, x, mean, variance);
    }
    assert_eq!((mean, variance), (5.0, 13.0));
}

proptest! {
    #[test]
    fn what_moved_a_number_adds_up(rounds in prop::collection::vec(prop::array::uniform3(prop::option::of(0u64..1_000_000)), 1..40)) {
        let file = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "2 * {mean}", "weight": 1},
                       {"eventFrom": "b", "eventTo": "a", "expectedMean": "{mean} / 3"},
                       {"relation": "a = b + c", "tolerance": 1}]"#;
        let mut bench = Bench::new(&["a", "b", "c"], file);
        for rates in rounds {
            bench.feed(&rates);
            for (event, estimate) in bench.linear.estimates().iter().enumerate() {
                let parts: f64 = estimate.parts.iter().map(|part| part.counts).sum();
                let scaled = bench.tally.raw()[event].run.estimate().unwrap_or(0.0);
                let moved = estimate.total.map_or(0.0, |total| total.value - scaled);
                prop_assert!((parts - moved).abs() <= 1e-6 * scaled.max(1.0) + clipped(&bench, event));
            }
        }
    }

    #[test]
    fn the_order_of_relations_does_not_matter(a in 0u64..1000, b in 0u64..1000, c in 0u64..1000) {
        let relations = [
            r#"{"eventFrom": "a", "eventTo": "c", "expectedMean": "2 * {mean}"}"#,
            r#"{"eventFrom": "b", "eventTo": "c", "expectedMean": "{mean} + 1"}"#,
            r#"{"relation": "a = b + c"}"#,
        ];
        let file = |order: [usize; 3]| format!("[{}]", order.map(|i| relations[i]).join(","));
        let mut one = Bench::new(&["a", "b", "c"], &file([0, 1, 2]));
        let mut other = Bench::new(&["a", "b", "c"], &file([2, 0, 1]));
        for bench in [&mut one, &mut other] {
            bench.feed(&[Some(a), Some(b), Some(c)]);
        }
        for event in 0..3 {
            prop_assert!((one.mean(event) - other.mean(event)).abs() < 1e-9);
        }
    }
}
