//! Finds how far errors of neighbouring runs go along, and what that does to the errors of sizes.
//!
//! A disturbance that lasts longer than a run is in runs of several sizes, as runs are made in shuffled order. It moves all
//! sizes alike, so that nothing of it is left after a fit; only the order of runs shows it.

use perfprop_linear_algebra::Square;

/// The errors of a size's runs, in standard deviations, and the places of these runs in the order of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SizeErrors {
    pub(super) errors: Vec<f64>,
    pub(super) order: Vec<u32>,
}

/// The correlation of a run's error with that of the run before it, by the medians of both, which a few runs far off hardly
/// move: the mean of the products of their signs is 2/pi of the arc sine of the correlation (Sheppard, 1899). 0 where the order isn't known, or
/// chance alone could make as much.
pub(super) fn of_neighbours(sizes: &[SizeErrors]) -> f64 {
    let mut runs: Vec<(u32, f64)> =
        sizes.iter().flat_map(|size| size.order.iter().copied().zip(size.errors.iter().copied())).collect();
    if sizes.iter().any(|size| size.order.len() != size.errors.len()) || runs.len() < 30 {
        return 0.0;
    }
    runs.sort_by_key(|&(place, _)| place);
    let pairs: Vec<f64> = runs
        .windows(2)
        .filter(|pair| pair[1].0 == pair[0].0 + 1)
        .map(|pair| pair[0].1.signum() * pair[1].1.signum())
        .collect();
    let mean = pairs.iter().sum::<f64>() / pairs.len().max(1) as f64;
    // Of pairs that don't go along, one in forty is more than two standard errors above 0.
    if mean < 2.0 / (pairs.len().max(1) as f64).sqrt() {
        return 0.0;
    }
    (std::f64::consts::FRAC_PI_2 * mean).sin().clamp(0.0, 0.99)
}

/// The covariances of sizes' means, over the variance that each would have of as many independent runs, where the errors
/// of runs that are k apart have this correlation to the power k.
///
/// Each run adds how far those before it reach, all of a size together, so that it isn't held against each of them.
pub(super) fn of_sizes(sizes: &[SizeErrors], neighbours: f64) -> Square {
    let mut runs: Vec<(u32, usize)> =
        sizes.iter().enumerate().flat_map(|(size, runs)| runs.order.iter().map(move |&place| (place, size))).collect();
    runs.sort_unstable();
    // How far the runs of each size before a run reach to it.
    let mut before = vec![0.0; sizes.len()];
    let mut last = 0;
    let mut sums = Square::zeros(sizes.len());
    for (place, size) in runs {
        let faded = neighbours.powi((place - last).min(10_000) as i32);
        before.iter_mut().for_each(|sum| *sum *= faded);
        sums.row_mut(size).iter_mut().zip(&before).for_each(|(sum, before)| *sum += before);
        before[size] += 1.0;
        last = place;
    }
    let counts: Vec<f64> = sizes.iter().map(|size| size.order.len() as f64).collect();
    let mut covariances = Square::zeros(sizes.len());
    for (i, &a) in counts.iter().enumerate() {
        for (j, &b) in counts.iter().enumerate() {
            let with_itself = if i == j { a } else { 0.0 };
            *covariances.at_mut(i, j) = (sums.at(i, j) + sums.at(j, i) + with_itself) / (a * b).sqrt();
        }
    }
    covariances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sizes_in_turns_by_hand() {
        let size = |order: [u32; 2]| SizeErrors { errors: vec![0.0; 2], order: order.to_vec() };
        // Runs a b a b and a correlation of a half: a with itself (1 + 1/4 + 1/4 + 1) / 2, a with b
        // (1/2 + 1/8 + 1/2 + 1/2) / 2.
        let covariances = of_sizes(&[size([0, 2]), size([1, 3])], 0.5);
        assert_eq!((covariances.at(0, 0), covariances.at(0, 1)), (1.25, 0.8125));
        // Independent runs.
        let covariances = of_sizes(&[size([0, 2]), size([1, 3])], 0.0);
        assert_eq!((covariances.at(0, 0), covariances.at(0, 1)), (1.0, 0.0));
        assert_eq!(of_sizes(&[], 0.5).size(), 0);
    }

    proptest::proptest! {
        /// They are the sums over all pairs of runs, in whatever order the runs stand, also where some are missing.
        #[test]
        fn covariances_are_sums_over_pairs(turns in proptest::collection::vec((0_usize..4, 1_u32..5), 4..60), neighbours in 0.0..0.99_f64) {
            let mut sizes = vec![SizeErrors { errors: Vec::new(), order: Vec::new() }; 4];
            let mut place = 0;
            for (turn, (size, gap)) in turns.into_iter().enumerate() {
                place += gap;
                // The first ones, so that no size is without a run.
                sizes[if turn < 4 { turn } else { size }].order.insert(0, place);
            }
            let found = of_sizes(&sizes, neighbours);
            for (i, a) in sizes.iter().enumerate() {
                for (j, b) in sizes.iter().enumerate() {
                    let pairs = a.order.iter().flat_map(|&a| b.order.iter().map(move |&b| a.abs_diff(b)));
                    let sum: f64 = pairs.map(|apart| neighbours.powi(apart as i32)).sum();
                    let expected = sum / ((a.order.len() * b.order.len()) as f64).sqrt();
                    proptest::prop_assert!((found.at(i, j) - expected).abs() < 1e-12 * (1.0 + expected));
                }
            }
        }
    }

    #[test]
    fn nothing_goes_along_where_the_order_is_unknown_or_errors_alternate() {
        let errors: Vec<f64> = (0..60).map(|run| if run % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let unknown = SizeErrors { errors: errors.clone(), order: Vec::new() };
        let alternating = SizeErrors { errors, order: (0..60).collect() };
        assert_eq!((of_neighbours(&[unknown]), of_neighbours(&[alternating]), of_neighbours(&[])), (0.0, 0.0, 0.0));
    }

    #[test]
    fn runs_that_go_along_are_found() {
        let errors: Vec<f64> = (0..400).map(|run| if run / 10 % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let found = of_neighbours(&[SizeErrors { errors, order: (0..400).collect() }]);
        // 39 of 399 pairs have other signs.
        assert!((found - (std::f64::consts::FRAC_PI_2 * (399.0 - 78.0) / 399.0).sin()).abs() < 1e-12, "{found}");
    }
}
