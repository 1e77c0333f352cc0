//! Tests steps, regressions and statistics of samples against asv's own answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic")]

use perfprop::history::{SampleStatistics, is_different, rank_test, round_to_5_digits};
use perfprop::steps::potts::{IntervalLimits, PenaltyTrial, approximate, automatic, default_penalty, partition};
use perfprop::steps::{
    PresentPoints, SearchEnds, SearchTolerance, Step, StepMethod, WeightedValue, centre, detect, minimize, regressions,
};
use serde_json::Value;

use crate::goldens::TOOLS;

/// The cases of a file.
fn cases(name: &str) -> Vec<Value> {
    let Some(path) = TOOLS.find(&format!("asv-steps/{name}.json")) else { return Vec::new() };
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(!cases.is_empty());
    cases
}

/// JSON has no infinities.
fn number(value: &Value) -> f64 {
    match value {
        Value::String(text) => text.parse().unwrap(),
        number => number.as_f64().unwrap_or_else(|| panic!("{number} is no number")),
    }
}

fn optional(value: &Value) -> Option<f64> {
    (!value.is_null()).then(|| number(value))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(number).collect()
}

fn position(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

fn positions(value: &Value) -> Vec<usize> {
    list(value).iter().map(position).collect()
}

fn points(case: &Value) -> Vec<WeightedValue> {
    let pairs = numbers(&case["y"]).into_iter().zip(numbers(&case["w"]));
    pairs.map(|(value, weight)| WeightedValue { value, weight }).collect()
}

/// Equal within a share of the number; within `zero` near zero.
#[track_caller]
fn near(found: f64, expected: f64, share: f64, zero: f64, what: &str) {
    let is_near = found == expected || (found - expected).abs() <= zero.max(share * expected.abs());
    assert!(is_near, "{what}: {found} instead of {expected}");
}

#[track_caller]
fn value(found: f64, expected: &Value, what: &str) {
    near(found, number(expected), 1e-9, 1e-12, what);
}

fn step(value: &Value) -> Step {
    let [left, right, value, minimum, error] = list(value) else { panic!("{value} is no step") };
    Step {
        left: position(left),
        right: position(right),
        value: number(value),
        minimum: number(minimum),
        error: number(error),
    }
}

#[track_caller]
fn same_regressions(steps: &[Step], case: &Value, what: &str) {
    let found = regressions(steps, number(&case["threshold"]), position(&case["min_size"]));
    let expected = &case["result"];
    assert_eq!(found.is_none(), expected.is_null(), "{what}: {found:?} instead of {expected}");
    let Some(found) = found else { return };
    value(found.latest, &expected["latest"], what);
    value(found.best, &expected["best"], what);
    let all = list(&expected["regressions"]);
    assert_eq!(found.found.len(), all.len(), "{what}: {found:?} instead of {expected}");
    for (one, expected) in found.found.iter().zip(all) {
        assert_eq!(one.before, position(&expected[0]), "{what}");
        assert_eq!(one.after, expected[1].as_u64().map(|after| after as usize), "{what}");
        value(one.value_before, &expected[2], what);
        value(one.best_after, &expected[3], what);
    }
}

#[test]
fn golden_asv_steps_detect() {
    for case in cases("detect_steps") {
        let name = case["name"].as_str().unwrap();
        let values: Vec<_> = list(&case["y"]).iter().map(optional).collect();
        let weights: Option<Vec<_>> = case["w"].as_array().map(|weights| weights.iter().map(optional).collect());
        let found = detect(&values, weights.as_deref(), StepMethod::Potts);
        if !case["stable"].as_bool().unwrap() {
            let cost = |steps: &[Step]| steps.iter().map(|step| step.error * (step.right - step.left) as f64).sum();
            let expected: Vec<_> = list(&case["steps"]).iter().map(step).collect();
            near(cost(&found), cost(&expected), 1e-9, 1e-12, name);
            continue;
        }
        let shown: Vec<_> = found.iter().map(|step| (step.left, step.right)).collect();
        let expected: Vec<_> = list(&case["steps"]).iter().map(step).collect();
        assert_eq!(shown, expected.iter().map(|step| (step.left, step.right)).collect::<Vec<_>>(), "{name}");
        for (found, expected) in found.iter().zip(list(&case["steps"])) {
            value(found.value, &expected[2], name);
            value(found.minimum, &expected[3], name);
            value(found.error, &expected[4], name);
        }
        list(&case["regressions"]).iter().for_each(|case| same_regressions(&found, case, name));
    }
}

#[test]
fn golden_asv_steps_automatic_penalty() {
    for case in cases("detect_steps").iter().filter(|case| !case["auto"].is_null()) {
        let (name, auto, stable) = (case["name"].as_str().unwrap(), &case["auto"], case["stable"] == true);
        let values: Vec<_> = list(&case["y"]).iter().map(optional).collect();
        let weights: Option<Vec<_>> = case["w"].as_array().map(|weights| weights.iter().map(optional).collect());
        let points = PresentPoints::new(&values, weights.as_deref()).points;
        let found = automatic(&points);
        near(found.penalty, number(&auto["gamma"]), 1e-6, 0.0, name);
        near(found.cost, number(&auto["beta"]), 1e-6, 0.0, name);
        if stable {
            assert_eq!(found.partition.rights, positions(&auto["right"]), "{name}");
            let centres = found.partition.centres(&points);
            for (at, centre) in centres.iter().enumerate() {
                value(centre.median, &auto["values"][at], name);
                value(centre.distance, &auto["dists"][at], name);
            }
        }
        assert_eq!(found.trials.len(), list(&auto["trace"]).len(), "{name}");
        for (trial, expected) in found.trials.iter().zip(list(&auto["trace"])) {
            near(trial.x, number(&expected["x"]), 0.0, 1e-9, name);
            near(trial.penalty, number(&expected["gamma"]), 1e-6, 0.0, name);
            near(trial.objective, number(&expected["objective"]), 1e-6, 1e-12, name);
            if stable {
                assert_eq!(trial.intervals, position(&expected["k"]), "{name}");
                same_correlation(&points, trial, number(&expected["rho"]), name);
            }
        }
    }
}

/// The same, or one that leaves as much noise: rounding says which of those is found.
fn same_correlation(points: &[WeightedValue], trial: &PenaltyTrial, expected: f64, what: &str) {
    if (trial.correlation - expected).abs() > 1e-6 {
        let [found, expected] = [trial.correlation, expected].map(|share| noise(points, trial.penalty, share));
        let size: f64 = points.iter().map(|point| point.value.abs() * point.weight).sum();
        near(found, expected, 1e-9, 1e-12 * size, what);
    }
}

/// What of each deviation from the levels of a penalty isn't this share of the one before it.
fn noise(points: &[WeightedValue], penalty: f64, share: f64) -> f64 {
    let found = approximate(points, penalty, 1);
    let lefts = std::iter::once(0).chain(found.rights.iter().copied());
    let levels = found.centres(points).into_iter().map(|centre| centre.median);
    let deviations = lefts.zip(&found.rights).zip(levels).flat_map(|((left, &right), level)| {
        points[left..right].iter().map(move |point| (point.value - level, point.weight))
    });
    let (mut sum, mut before) = (0.0, 0.0);
    for (deviation, weight) in deviations {
        sum += (deviation - share * before).abs() * weight;
        before = deviation;
    }
    sum
}

#[test]
fn correlations_of_the_same_noise_are_the_same() {
    // One level, 2: the deviations are -1, 1, 0.
    let points = [1.0, 3.0, 2.0].map(|value| WeightedValue { value, weight: 1.0 });
    assert_eq!([0.0, -1.0, 0.5].map(|share| noise(&points, 1e3, share)), [2.0, 2.0, 3.0]);
}

#[test]
fn golden_asv_steps_potts() {
    for case in cases("potts") {
        let (name, options) = (case["name"].as_str().unwrap(), &case["options"]);
        let points = points(&case);
        let option = |name: &str, default: usize| options.get(name).map_or(default, position);
        let penalty = optional(&case["gamma"]).unwrap_or_else(|| default_penalty(&points));
        near(penalty, number(&case["gamma_used"]), 1e-6, 0.0, name);
        let positions_of = option("min_pos", 0)..option("max_pos", points.len());
        let start = positions_of.start;
        let found = if case["solver"] == "exact" {
            let (min_size, max_size) = (option("min_size", 1), option("max_size", points.len()));
            partition(&points, penalty, &IntervalLimits { min_size, max_size, positions: positions_of })
        } else {
            approximate(&points, penalty, option("min_size", 1))
        };
        let lefts = std::iter::once(start).chain(found.rights.iter().copied());
        let centres: Vec<_> = lefts.zip(&found.rights).map(|(left, &right)| centre(&points[left..right])).collect();
        let distances: f64 = centres.iter().map(|centre| centre.distance).sum();
        let cost = penalty * (found.rights.len() as f64 - 1.0) + distances;
        value(cost, &case["cost"], name);
        if case["stable"] == true {
            assert_eq!(found.rights, positions(&case["right"]), "{name}");
            for (at, centre) in centres.iter().enumerate() {
                value(centre.median, &case["values"][at], name);
                value(centre.distance, &case["dists"][at], name);
            }
        }
    }
}

#[test]
fn golden_asv_steps_weighted_median() {
    for case in cases("weighted_median") {
        let found = centre(&points(&case));
        value(found.median, &case["mu"], &case["y"].to_string());
        value(found.distance, &case["dist"], &case["y"].to_string());
    }
}

#[test]
fn golden_asv_steps_golden_search() {
    for case in cases("golden_search") {
        let name = case["f"].as_str().unwrap();
        let function = |x: f64| match name {
            "1+x^3+x^4" => 1.0 + x.powi(3) + x.powi(4),
            "(x-0.3)^2" => (x - 0.3).powi(2),
            "|x|" => x.abs(),
            "x" => x,
            "-x" => -x,
            "constant 1" => 1.0,
            "cos(5x)" => (5.0 * x).cos(),
            other => panic!("the function {other} isn't known"),
        };
        let ends = if case["expand_bounds"] == true { SearchEnds::FirstTried } else { SearchEnds::Bounds };
        let tolerance = SearchTolerance { x: number(&case["xatol"]), value: number(&case["ftol"]) };
        let mut visited = Vec::new();
        let note = |x: f64| {
            visited.push(x);
            function(x)
        };
        let result = minimize(note, (number(&case["a"]), number(&case["b"])), tolerance, ends);
        value(result, &case["result"], name);
        let expected = numbers(&case["visited"]);
        assert_eq!(visited.len(), expected.len(), "{name}: {visited:?}");
        for (found, expected) in visited.iter().zip(expected) {
            near(*found, expected, 1e-9, 1e-9, name);
        }
    }
}

#[test]
fn golden_asv_steps_regressions() {
    for case in cases("regressions") {
        let steps: Vec<_> = list(&case["steps"]).iter().map(step).collect();
        same_regressions(&steps, &case, &case.to_string());
    }
}

#[test]
fn golden_asv_steps_sample_stats() {
    for case in cases("sample_stats") {
        let (name, stats, saved) = (case["samples"].to_string(), &case["stats"], &case["stats_saved"]);
        let found = SampleStatistics::of(&numbers(&case["samples"])).unwrap();
        value(found.median, &case["result"], &name);
        let all = [found.interval.0, found.interval.1, found.quartiles.0, found.quartiles.1].into_iter();
        for (found, key) in all.zip(["ci_99_a", "ci_99_b", "q_25", "q_75"]) {
            // The saved numbers are small, so that nothing is near zero.
            near(found, number(&stats[key]), 1e-9, 0.0, &format!("{key} of {name}"));
            near(round_to_5_digits(found), number(&saved[key]), 1e-9, 0.0, &format!("{key} of {name}"));
        }
        assert_eq!(found.count, position(&stats["repeat"]));
        match (found.weight(), optional(&case["weight"])) {
            (Some(found), Some(expected)) => near(found, expected, 1e-9, 0.0, &name),
            (found, expected) => assert_eq!(found, expected, "{name}"),
        }
        value(found.error(), &case["err"], &name);
    }
}

#[test]
fn golden_asv_steps_truncate_5_digits() {
    for case in cases("truncate_5_digits") {
        assert_eq!(round_to_5_digits(number(&case["input"])), number(&case["output"]), "{case}");
    }
}

#[test]
fn golden_asv_steps_two_samples() {
    for case in cases("two_samples") {
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let found = rank_test(&a, &b);
        assert_eq!(found.u, case["u"].as_u64().unwrap(), "{case}");
        near(found.chance, number(&case["p"]), 1e-9, 0.0, &case.to_string());
        let [of_a, of_b] = [&a, &b].map(|samples| SampleStatistics::of(samples).unwrap());
        assert_eq!(Some(is_different((&a, &of_a), (&b, &of_b))), case["different"].as_bool(), "{case}");
    }
}
