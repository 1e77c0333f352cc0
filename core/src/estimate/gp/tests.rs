//! Tests what must hold whatever is counted, and cases small enough to work by hand.

#![allow(clippy::unwrap_used, reason = "tests may fail")]

use proptest::prelude::*;

use super::window::{Observation, Pairs};
use super::*;

fn specs(always: &[bool]) -> Vec<EventSpec> {
    let spec = |(i, &always_counted): (usize, &bool)| EventSpec {
        name: format!("event{i}"),
        counted: if always_counted { WhenCounted::Always } else { WhenCounted::InTurns },
    };
    always.iter().enumerate().map(spec).collect()
}

const ROTATION_MS: f64 = 4.0;

pub(super) fn gp(always: &[bool]) -> Gp {
    Gp::new(&specs(always), ROTATION_MS, Settings::default(), &Prior::default(), None)
}

pub(super) fn delta(raw: f64, part: f64) -> Delta {
    Delta { count: raw as u64, enabled: CpuNs(4_000_000), running: CpuNs((4e6 * part) as u64) }
}

fn totals(gp: &Gp) -> Vec<Option<Uncertain>> {
    gp.totals(Confidence::DEFAULT).into_iter().map(|total| Some(total?.count)).collect()
}

pub(super) fn round(i: usize) -> Span {
    Span { start: 4.0 * i as f64, end: 4.0 * (i + 1) as f64 }
}

#[test]
fn one_observation_of_one_event_by_hand() {
    // A rate that is half constant, half white noise, of variance one over 4 ms; a window of 8 ms
    // of which the first half was seen.
    let mut covariances = Covariances::zeros(1);
    covariances.at_mut(0, 0)[time::CONSTANT] = 0.5;
    covariances.at_mut(0, 0)[time::WHITE] = 0.5;
    let span = Span { start: 0.0, end: time::WHITE_SPAN };
    let seen = Observation {
        event: 0,
        span,
        stay: 0,
        value: 0.2,
        noise: 0.0,
        sampling_deviation: 0.0,
        threads: WhichThreads::All,
    };
    let observed = window::Window::new(vec![seen], vec![WindowScale::AT_LARGE]);
    let solved = observed.solve(&covariances).unwrap();
    let window = Span { start: 0.0, end: 2.0 * time::WHITE_SPAN };
    let known = solved.sums(window, &covariances, &[WhichThreads::All], Pairs::All);
    // Cross covariance of the sum: 8 * 0.5 (constant) + 4 * 0.5 (white), over a variance of 1.
    assert!((known.mean[0] - 6.0 * 0.2).abs() < 1e-12);
    // Before: 64 * 0.5 + 0.5 * 4 * 8 = 48; after: less 6 * 6.
    assert!((known.covariance.at(0, 0) - 12.0).abs() < 1e-9);
}

#[test]
fn a_window_that_was_seen_whole_is_exact_and_one_never_seen_is_missing() {
    let mut gp = gp(&[false, false]);
    for i in 0..25 {
        gp.round(round(i), &[delta(7.0, 1.0), delta(0.0, 0.0)]);
    }
    let estimates = gp.interval(Confidence::DEFAULT);
    assert_eq!(estimates[0], Some(Uncertain::exact(175.0)));
    assert_eq!(estimates[1], None);
    assert_eq!(totals(&gp), [Some(Uncertain::exact(175.0)), None]);
}

#[test]
fn an_event_that_never_occurs_pulls_no_other() {
    // What begins with a program may have taught that three events go together.
    let counts = |quiet: f64| {
        let mut gp = gp(&[false; 3]);
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let shared = gp.process.covariances.at(a, a).map(|own| 0.5 * own);
            (*gp.process.covariances.at_mut(a, b), *gp.process.covariances.at_mut(b, a)) = (shared, shared);
        }
        let read = |i: usize, event: usize| delta([40.0, quiet, quiet][event], f64::from(u8::from(i % 3 == event)));
        (0..200).for_each(|i| gp.round(round(i), &[0, 1, 2].map(|event| read(i, event))));
        (gp.process.present.at(0, 1).iter().sum::<f64>(), gp.process.present.at(1, 2).iter().sum::<f64>())
    };
    assert_eq!(counts(0.0), (0.0, 0.0));
    let (one, other) = counts(40.0);
    assert!(one > 0.0 && other > 0.0, "{one} {other}");
}

#[test]
fn what_never_happens_is_zero_with_a_bound() {
    let mut gp = gp(&[false]);
    for i in 0..50 {
        gp.round(round(i), &[delta(0.0, f64::from(u8::from(i % 2 == 0)))]);
    }
    let estimate = gp.interval(Confidence::DEFAULT)[0].unwrap();
    assert_eq!(estimate.value, 0.0);
    assert!(estimate.bounds().is_some_and(|(_, high)| high > 0.0 && high < 10.0), "{estimate:?}");
}

#[test]
fn what_has_stopped_for_long_is_zero_with_a_bound_by_hand() {
    // Two thousand rounds in turns: it has 1000 a round until the hundredth, and nothing after.
    let mut gp = gp(&[true, false]);
    for i in 0..2000 {
        let on = f64::from(u8::from(i % 2 == 0));
        gp.round(round(i), &[delta(4e6, 1.0), delta(if i < 100 { 1000.0 * on } else { 0.0 }, on)]);
        if i == 1974 {
            gp.interval(Confidence::DEFAULT);
        }
    }
    // It was quiet for 950 stays of 4 ms: in the 48 ms of 100 that nobody saw there are 3 x 48 / 3800 at most.
    let estimate = gp.interval(Confidence::DEFAULT)[1].unwrap();
    let (_, high) = estimate.bounds().unwrap();
    assert!(estimate.value == 0.0 && (0.03..0.06).contains(&high), "{estimate:?}");
}

#[test]
fn the_first_group_to_be_counted_is_no_regressor() {
    // An interval ends in the first turn, in which two of four were counted; one is always counted in fact.
    let mut gp = gp(&[false, false, false]);
    let rounds = |gp: &mut Gp, rounds: std::ops::Range<usize>| {
        for i in rounds {
            let on = f64::from(u8::from(i / 5 % 2 == 0));
            gp.round(round(i), &[delta(100.0 * on, on), delta(100.0 * (1.0 - on), 1.0 - on), delta(50.0, 1.0)]);
        }
    };
    rounds(&mut gp, 0..3);
    gp.interval(Confidence::DEFAULT);
    assert_eq!(gp.regressors.events, Vec::<usize>::new());
    rounds(&mut gp, 3..60);
    gp.interval(Confidence::DEFAULT);
    assert_eq!(gp.regressors.events, [2]);
}

#[test]
fn events_on_counters_are_regressors_before_those_that_software_counts() {
    let spec = |counted| EventSpec { name: "any".to_owned(), counted };
    let events =
        [WhenCounted::BySoftware, WhenCounted::InTurns, WhenCounted::Always, WhenCounted::BySoftware].map(spec);
    assert_eq!(ranked((0..4).collect(), &events), [1, 2, 0, 3]);
    let gp = Gp::new(&events, ROTATION_MS, Settings::default(), &Prior::default(), None);
    assert_eq!(gp.regressors.events, [2, 0, 3]);
}

#[test]
fn half_widths_of_windows_add_up_by_hand() {
    // Errors of neighbours are alike by a half: 3^2 + 4^2 + 3 * 4.
    let mut sum = WindowSum::default();
    sum.add(10.0, 3.0);
    sum.add(20.0, 4.0);
    assert_eq!((sum.estimate, sum.square), (30.0, 37.0));
}

#[test]
fn dear_fits_are_fewer_and_none_stay_none() {
    let fits = |fit_steps: usize| Settings { fit_steps, ..Settings::default() };
    assert_eq!([(200, 100), (201, 24), (100, 101)].map(|(o, e)| fits(3).fits_to(o, e, false)), [3, 2, 2]);
    assert_eq!(fits(3).fits_to(100, 24, true), 2);
    assert_eq!([0, 1].map(|steps| fits(steps).fits_to(300, 24, false)), [0, 1]);
}

#[test]
fn a_window_without_observations_fits_nothing() {
    let mut gp = gp(&[true, false]);
    let before = gp.process.covariances.clone();
    let fitted = gp.fit(0.0);
    assert!(fitted.window.observations.is_empty());
    let moved = (0..2).map(|e| gp.process.covariances.at(e, e)[0] - before.at(e, e)[0]).fold(0.0, f64::max);
    assert!(moved < 1e-6, "{moved}");
}

#[test]
fn a_steady_rate_is_found_whatever_the_stays() {
    let mut gp = gp(&[true, false]);
    for i in 0..250 {
        let on = f64::from(u8::from(i % 6 < 2));
        gp.round(round(i), &[delta(4e6, 1.0), delta(1000.0 * on, on)]);
        if i % 25 == 24 {
            let estimate = gp.interval(Confidence::DEFAULT)[1].unwrap();
            assert!((estimate.value - 25_000.0).abs() < 250.0, "{estimate:?}");
        }
    }
}

/// A run of an event that is always counted, at so many a millisecond, and one that is multiplexed, at half of that.
fn learning_run(rate: f64, model: Option<&CovarianceModel>) -> Gp {
    let mut gp =
        Gp::new(&specs(&[true, false]), ROTATION_MS, Settings::default(), &Prior::default(), model).learning(model);
    for i in 0..100 {
        let (on, level) = (f64::from(u8::from(i % 3 == 0)), rate * if i % 20 < 10 { 6.0 } else { 2.0 });
        gp.round(round(i), &[delta(level, 1.0), delta(0.5 * level * on, on)]);
    }
    gp
}

fn temporary(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("perfprop-{name}-{}.json", std::process::id()))
}

#[test]
fn a_model_comes_back_from_its_file_as_it_was() {
    let (path, written) = (temporary("model"), learning_run(1000.0, None).model().unwrap());
    written.write(&path).unwrap();
    let read = CovarianceModel::read(&path).unwrap();
    let names = ["event0", "event1"];
    let (mut a, mut b) = (Covariances::zeros(2), Covariances::zeros(2));
    read.replace(&names, &mut a);
    written.replace(&names, &mut b);
    let levels = names.map(|name| [read.level(name).unwrap(), written.level(name).unwrap()]);
    let pairs = a.at(1, 1).iter().zip(b.at(1, 1)).map(|(&a, &b)| [a, b]).chain(levels);
    for [a, b] in pairs {
        assert!(b > 0.0 && (a - b).abs() <= 1e-12 * b, "{a} {b}");
    }
    assert_eq!((read.events(), read.windows()), (&names.map(str::to_owned)[..], written.windows()));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_damaged_model_is_refused_with_what_is_wrong() {
    let path = temporary("damaged");
    let text = serde_json::to_string(&learning_run(1000.0, None).model().unwrap()).unwrap();
    let damages = [
        ("\"version\":3", "\"version\":1", "version 1 where 3 is known; learn it anew"),
        ("\"event1\"]", "\"event1\",\"event2\"]", "its covariances don't fit"),
        ("\"levels\":[", "\"levels\":[-1.0,", "its mean rates don't fit"),
        ("\"windows\":[[[0,", "\"windows\":[[[7,", "its windows don't fit"),
    ];
    for (from, to, wanted) in damages {
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = CovarianceModel::read(&path).unwrap_err().to_string();

        assert!(error.contains(wanted) && error.contains("perfprop-damaged"), "{error}");
    }
    std::fs::write(&path, "{}").unwrap();
    assert!(CovarianceModel::read(&path).unwrap_err().to_string().contains("missing field"));
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn levels_are_means_over_all_learning_runs() {
    // Both as long: 4000 a round of 4 ms in one run, twice that in the other.
    let first = learning_run(1000.0, None).model().unwrap();
    let second = learning_run(2000.0, Some(&first)).model().unwrap();
    let level = |model: &CovarianceModel| model.level("event0").unwrap();
    assert!((level(&first) - 1000.0).abs() < 1e-9 && (level(&second) - 1500.0).abs() < 1e-9, "{}", level(&second));
}

#[test]
fn what_was_learnt_foretells_an_event_by_another() {
    let model = learning_run(1000.0, None).model().unwrap();
    let mut covariances = Covariances::zeros(2);
    model.replace(&["event0", "event1"], &mut covariances);
    let total = |a: usize, b: usize| covariances.at(a, b).iter().sum::<f64>();
    let correlation = total(0, 1) / (total(0, 0) * total(1, 1)).sqrt();
    assert!(correlation > 0.9, "{correlation}");
}

#[test]
fn a_run_without_lessons_teaches_what_was_known() {
    assert!(gp(&[true, false]).model().is_none());
    let mut gp = gp(&[true, false]).learning(None);
    // It is over before its first window.
    (0..10).for_each(|i| gp.round(round(i), &[delta(4e3, 1.0), delta(0.0, 0.0)]));
    let mut covariances = Covariances::zeros(2);
    let model = gp.model().unwrap();
    model.replace(&["event0", "event1"], &mut covariances);
    assert_eq!(covariances, Prior::default().covariances(&["event0", "event1"], Settings::default().prior_doubt));
    assert_eq!((model.level("event1"), model.level("event2")), (None, None));
}

fn any_delta() -> impl Strategy<Value = Delta> {
    let count = prop_oneof![Just(0), Just(u64::MAX), 0..1_000_000u64];
    let time = prop_oneof![Just(0), Just(4_000_000), 0..4_000_000u64, Just(u64::MAX / 1000)].prop_map(CpuNs);
    (count, time.clone(), time).prop_map(|(count, enabled, running)| Delta { count, enabled, running })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn nothing_is_nan_or_negative_whatever_is_counted(
        always in prop::collection::vec(any::<bool>(), 1..5),
        rounds in prop::collection::vec((0.0..9.0f64, prop::collection::vec(any_delta(), 4), any::<bool>()), 1..80),
    ) {
        let mut gp = gp(&always).keeping_windows();
        let mut now = 0.0;
        let mut intervals = 0;
        let check = |estimates: Vec<Option<Uncertain>>| -> Result<(), TestCaseError> {
            for estimate in estimates.into_iter().flatten() {
                let (low, high) = estimate.bounds().unwrap();
                prop_assert!(estimate.value.is_finite() && high.is_finite(), "{estimate:?}");
                prop_assert!(0.0 <= low && low <= estimate.value && estimate.value <= high, "{estimate:?}");
            }
            Ok(())
        };
        for (length, deltas, report) in rounds {
            let deltas = &deltas[..always.len()];
            gp.round(Span { start: now, end: now + length }, deltas);
            now += length;
            if report {
                check(gp.interval(Confidence::DEFAULT))?;
                check(totals(&gp))?;
                intervals += 1;
            }
        }
        // None where several threads ran all the time.
        if let Some(again) = gp.hindsight(Confidence::DEFAULT) {
            prop_assert_eq!(again.len(), intervals);
            again.into_iter().try_for_each(check)?;
        }
    }

    #[test]
    fn an_event_that_is_counted_whole_is_never_moved(counts in prop::collection::vec(0u32..1000, 25..80)) {
        let mut gp = gp(&[false, false, false]).keeping_windows();
        gp.constrain(Constraint { tolerance: 1e-3, ..Constraint::exact(0, vec![(0, 1.0), (1, -3.0)]) });
        let mut sum = 0.0;
        for (i, &count) in counts.iter().enumerate() {
            let (count, on) = (f64::from(count), f64::from(u8::from(i % 2 == 0)));
            sum += count;
            gp.round(round(i), &[delta(count, 1.0), delta(count * on, on), delta(count * (1.0 - on), 1.0 - on)]);
        }
        let interval = gp.interval(Confidence::DEFAULT);
        prop_assert_eq!(interval[0], Some(Uncertain::exact(sum)));
        prop_assert_eq!(gp.hindsight(Confidence::DEFAULT).unwrap()[0][0], interval[0]);
    }
}

#[test]
fn covariances_without_a_solution_are_told_and_scaled() {
    let mut gp = gp(&[false, false]);
    let solvable = (gp.process.covariances.clone(), gp.process.present.clone());
    // Two events that vary with one another by more than they vary at all.
    for covariances in [&mut gp.process.covariances, &mut gp.process.present] {
        for (a, b) in [(0, 1), (1, 0)] {
            *covariances.at_mut(a, b) = covariances.at(a, a).map(|own| 100.0 * own);
        }
    }
    assert!(!gp.was_unsolved());
    let interval = |gp: &mut Gp, first: usize| {
        for i in first..first + 25 {
            let part = |event: usize| if i % 2 == event { 1.0 } else { 0.0 };
            gp.round(round(i), &[delta(100.0 * part(0), part(0)), delta(50.0 * part(1), part(1))]);
        }
        gp.interval(Confidence::DEFAULT)
    };
    let estimates = interval(&mut gp, 0);
    assert!(gp.was_unsolved());
    // 13 and 12 of 25 rounds were seen: 2500 and 1250 when scaled.
    let values = estimates.iter().map(|estimate| estimate.unwrap().value).collect::<Vec<_>>();
    assert!((values[0] - 2500.0).abs() < 1.0 && (values[1] - 1250.0).abs() < 1.0, "{values:?}");
    (gp.process.covariances, gp.process.present) = solvable;
    interval(&mut gp, 25);
    assert!(!gp.was_unsolved(), "the next interval has a solution");
}

#[test]
fn what_came_after_tells_when_a_rate_changed() {
    // Each event is on in every other round, at 1000 a round for half of a run, then at none; it isn't seen in the
    // first two rounds of the last interval before.
    let mut gp = gp(&[false, false]).keeping_windows();
    let rate = |i: usize| if i < 53 { 1000.0 } else { 3000.0 };
    let mut live = Vec::new();
    for i in 0..100 {
        let on = |event: usize| f64::from(u8::from(i % 2 == event));
        gp.round(round(i), &[0, 1].map(|event| delta(rate(i) * on(event), on(event))));
        if i % 5 == 4 {
            live.push(gp.interval(Confidence::DEFAULT));
        }
    }
    let again = gp.hindsight(Confidence::DEFAULT).unwrap();
    assert_eq!(again.len(), live.len());
    let off = |intervals: &[Vec<Option<Uncertain>>]| -> f64 {
        let truth = |interval: usize| (5 * interval..5 * interval + 5).map(rate).sum::<f64>();
        let off = |(at, row): (usize, &Vec<Option<Uncertain>>)| {
            row.iter().map(|found| (found.unwrap().value - truth(at)).abs()).sum::<f64>()
        };
        intervals.iter().enumerate().map(off).sum()
    };
    assert!(off(&again) < 0.8 * off(&live), "{} {}", off(&again), off(&live));
    assert!(
        Gp::new(&specs(&[false]), ROTATION_MS, Settings::default(), &Prior::default(), None)
            .hindsight(Confidence::DEFAULT)
            .is_none()
    );
}

#[test]
fn in_long_turns_an_event_is_what_it_was_when_others_were_as_they_are() {
    // Five events take turns of 100 ms. All count 100 a millisecond for two seconds, then 300, and again.
    let mut gp = Gp::new(&specs(&[false; 5]), 100.0, Settings::default(), &Prior::default(), None);
    let enabled = CpuNs(100_000_000);
    for turn in 0..=62 {
        let count = if turn / 20 % 2 == 0 { 10_000 } else { 30_000 };
        let counted = |event: usize| match turn % 5 == event {
            true => Delta { count, enabled, running: enabled },
            false => Delta { count: 0, enabled, running: CpuNs(0) },
        };
        let span = Span { start: 100.0 * turn as f64, end: 100.0 * (turn + 1) as f64 };
        gp.round(span, &[0, 1, 2, 3, 4].map(counted));
        let found: Vec<f64> = gp
            .interval(Confidence::DEFAULT)
            .into_iter()
            .map(|found| found.map_or(f64::NAN, |found| found.value))
            .collect();
        // Three events have been counted since rates were 300 again, and tell of the two whose last rate is 100.
        if turn == 62 {
            assert_eq!(found, [30_000.0; 5]);
        }
    }
}

#[test]
fn a_clock_is_known_while_it_waits() {
    let mut gp = gp(&[true, false, false, false]);
    for i in 0..50 {
        let on = f64::from(u8::from(i % 5 == 0));
        // The last one counts as much as a clock on average.
        let swing = if i % 10 == 0 { 2e6 } else { 6e6 };
        gp.round(round(i), &[delta(4e6, 1.0), delta(4e6 * on, on), delta(4.1e6 * on, on), delta(swing * on, on)]);
    }
    let estimates: Vec<Uncertain> = gp.interval(Confidence::DEFAULT).into_iter().map(Option::unwrap).collect();
    // 200 ms, less what switches may take; what counts a fortieth more is no clock.
    let (low, high) = estimates[1].bounds().unwrap();
    assert!(estimates[1].value == 2e8 && high - low <= 2.1 * SWITCHES * 2e8, "{:?}", estimates[1]);
    for other in &estimates[2..] {
        let (low, high) = other.bounds().unwrap();
        assert!(high - low > 2.1 * SWITCHES * 2e8, "{other:?}");
    }
}

#[test]
fn a_rate_is_met_again_after_a_window_without_cpu_time() {
    // Four events in turns of 100 ms, each at 100 a millisecond but for a swing; three cycles, then nobody runs for a
    // window.
    let mut gp = Gp::new(&specs(&[false; 4]), 100.0, Settings::default(), &Prior::default(), None);
    let enabled = CpuNs(100_000_000);
    let counted = |turn: usize, event: usize| match turn % 4 == event {
        true => Delta { count: 10_000 + 10 * (turn as u64 % 3), enabled, running: enabled },
        false => Delta { count: 0, enabled, running: CpuNs(0) },
    };
    let mut found = Vec::new();
    for turn in 0..24 {
        let span = Span { start: 100.0 * turn as f64, end: 100.0 * (turn + 1) as f64 };
        let is_idle = turn == 12;
        gp.round(span, &[0, 1, 2, 3].map(|event| if is_idle { Delta::default() } else { counted(turn, event) }));
        let estimates = gp.interval(Confidence::DEFAULT);
        assert!(estimates.iter().flatten().all(|found| found.value.is_finite() && found.bounds().is_some()), "{turn}");
        if is_idle {
            assert!(estimates.iter().flatten().all(|found| found.value == 0.0), "{estimates:?}");
        }
        found = estimates;
    }
    assert!(found.iter().flatten().all(|found| (found.value - 10_000.0).abs() < 100.0), "{found:?}");
}
