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
    for count in [18, 60, 300] {
        for (name, keeps, draw) in [
            ("normal", 0.0, Draws::normal as fn(&mut Draws) -> f64),
            ("uniform", 0.0, Draws::uniform),
            ("Laplace", 0.0, Draws::laplace),
            ("t with 3 degrees", 0.0, Draws::student_3),
            ("correlated by 0.3", 0.3, Draws::normal),
            ("correlated by 0.7", 0.7, Draws::normal),
        ] {
            // 2 % of such short ones, which tell little of how correlated they are.
            let most = if count < 60 && keeps > 0.5 { 15 } else { 5 };
            let found = false_alarms(count, keeps, draw);
            assert!(found <= most, "{name}: {found} of 500 series of {count}");
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

/// In how many of 200 series with these levels, as (values, level), all steps are found, and no others; noise is a part of the level, and
/// the first value is off by a part.
fn found_all(levels: &[(usize, f64)], noise: f64, off: f64) -> usize {
    let mut draws = Draws(9);
    let mut ends = levels.to_vec();
    for at in 1..ends.len() {
        ends[at].0 += ends[at - 1].0;
    }
    let ends: Vec<usize> = ends.iter().map(|(end, _)| *end).collect();
    let mut is_found = |_: &usize| {
        let value = |level: f64, draws: &mut Draws| level * (1.0 + noise * draws.normal());
        let each = levels.iter().flat_map(|&(count, level)| std::iter::repeat_n(level, count));
        let mut values: Vec<f64> = each.map(|level| value(level, &mut draws)).collect();
        values[0] *= 1.0 + off;
        rights(&points(&values)) == ends
    };
    (0..200).filter(&mut is_found).count()
}

#[test]
fn clear_steps_of_few_values_are_found() {
    for (levels, noise, off, least) in [
        (&[(8, 8.0), (4, 4.5), (5, 5.5)][..], 0.01, 0.0, 170),
        (&[(8, 8.0), (4, 4.5), (5, 5.5)], 0.01, 0.12, 165),
        (&[(6, 8.0), (6, 4.5), (6, 5.5)], 0.01, 0.0, 190),
        (&[(6, 8.0), (6, 4.5), (6, 5.5)], 0.03, 0.0, 130),
        (&[(6, 1.0), (5, 2.0), (6, 1.0)], 0.03, 0.0, 170),
        (&[(8, 8.0), (9, 4.5)], 0.05, 0.0, 195),
        // Steps of 8 to 15 deviations, which the correlation of so few values doesn't explain, whatever it seems to be.
        (&[(4, 1.0), (4, 1.08)], 0.01, 0.0, 175),
        (&[(4, 1.0), (4, 1.15)], 0.01, 0.0, 195),
        (&[(5, 1.0), (5, 1.2)], 0.02, 0.0, 195),
        (&[(8, 1.0), (3, 1.16)], 0.02, 0.0, 175),
        (&[(8, 1.0), (8, 1.16)], 0.02, 0.0, 195),
    ] {
        let found = found_all(levels, noise, off);
        assert!(found >= least, "{levels:?} with noise of {noise}, the first off by {off}: {found} of 200");
    }
}
