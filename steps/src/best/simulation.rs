//! Simulates series of noise: how often a step is found in one, and how often the interval of a change holds it.

use super::{evidence, rights};
use crate::draws::Draws;
use crate::weighted::WeightedValue;

/// A series of noise that keeps a part of each value in the next.
fn series(count: usize, keeps: f64, mut draw: impl FnMut() -> f64) -> Vec<f64> {
    let mut last = 0.0;
    let mut next = || {
        last = keeps * last + draw();
        last
    };
    (0..count + 50).map(|_| next()).skip(50).collect()
}

fn points(values: &[f64]) -> Vec<WeightedValue> {
    values.iter().map(|&value| WeightedValue { value, weight: 1.0 }).collect()
}

/// In how many of 500 series of noise there is a step.
fn false_alarms(count: usize, keeps: f64, draw: fn(&mut Draws) -> f64) -> usize {
    let mut draws = Draws(count as u64);
    let has_step = |_: &usize| rights(&points(&series(count, keeps, || draw(&mut draws)))).len() > 1;
    (0..500).filter(has_step).count()
}

#[test]
fn at_most_one_series_of_noise_in_a_hundred_has_a_step() {
    for count in [60, 300] {
        for (name, keeps, draw) in [
            ("normal", 0.0, Draws::normal as fn(&mut Draws) -> f64),
            ("uniform", 0.0, Draws::uniform),
            ("Laplace", 0.0, Draws::laplace),
            ("t with 3 degrees", 0.0, Draws::student_3),
            ("correlated by 0.3", 0.3, Draws::normal),
            ("correlated by 0.7", 0.7, Draws::normal),
        ] {
            let found = false_alarms(count, keeps, draw);
            assert!(found <= 5, "{name}: {found} of 500 series of {count}");
        }
    }
}

#[test]
fn a_step_of_three_deviations_is_found_and_its_interval_holds_it() {
    let mut draws = Draws(7);
    let (mut found, mut near, mut held) = (0, 0, 0);
    for _ in 0..300 {
        let mut values = series(60, 0.0, || draws.normal());
        values[25..].iter_mut().for_each(|value| *value += 3.0);
        let all = rights(&points(&values));
        if let [middle, _] = all[..] {
            let change = evidence(&points(&values), &all)[0];
            // Student's t for 95 % with the 58 degrees that a series of 60 values in two steps has.
            let half = 2.0 * change.error;
            found += 1;
            near += usize::from(middle.abs_diff(25) <= 2);
            held += usize::from((change.by - 3.0).abs() <= half);
        }
    }
    // A sure step isn't found where noise looks correlated by chance, or leads to another one.
    assert!(found >= 280 && near >= 275 && 100 * held >= 92 * found, "{found} found, {near} near, {held} held, of 300");
}
