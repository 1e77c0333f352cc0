//! Predicts the part of the time that each group of a PMU is on the counters.
//!
//! The kernel rotates groups: at every tick the list of groups moves on by one, and from
//! its head on as many are put on the counters as fit; the first that doesn't fit ends the search.
//! Pinned groups come before all others, at every tick.
//!
//! ```text
//! three groups, two of which fit      a b . | b c . | c a .      each runs 2/3 of the time
//! ```

/// A group that waits for its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Whether it is on the counters at every tick.
    pub pinned: bool,
}

/// The expected run ratio of each group, from 0 to 1. `fit` says whether groups, by their places
/// in the list, can be on the counters together.
pub fn ratios(groups: &[Waiting], fit: &mut dyn FnMut(&[usize]) -> bool) -> Vec<f64> {
    let (pinned, flexible): (Vec<_>, Vec<_>) = (0..groups.len()).partition(|&group| groups[group].pinned);
    let mut always: Vec<usize> = Vec::new();
    for group in pinned {
        always.push(group);
        if !fit(&always) {
            always.pop();
        }
    }
    let mut slices = vec![0_usize; groups.len()];
    for tick in 0..flexible.len() {
        let mut running = always.clone();
        for &group in flexible[tick..].iter().chain(&flexible[..tick]) {
            running.push(group);
            if !fit(&running) {
                break;
            }
            slices[group] += 1;
        }
    }
    let mut ratios: Vec<_> = slices.iter().map(|&slices| slices as f64 / flexible.len().max(1) as f64).collect();
    always.iter().for_each(|&group| ratios[group] = 1.0);
    ratios
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_sizes(sizes: &[usize], counters: usize) -> Vec<f64> {
        let groups = vec![Waiting { pinned: false }; sizes.len()];
        ratios(&groups, &mut |together| together.iter().map(|&group| sizes[group]).sum::<usize>() <= counters)
    }

    #[test]
    fn single_events_share_the_counters_evenly() {
        assert_eq!(of_sizes(&[1; 3], 2), [2.0 / 3.0; 3]);
        assert_eq!(of_sizes(&[1; 10], 7), [0.7; 10]);
        assert_eq!(of_sizes(&[1; 4], 7), [1.0; 4]);
    }

    #[test]
    fn a_group_that_fills_the_counters_ends_the_turn() {
        // At the tick that begins with the 1, the 3 behind it fits beside it; the 4 never does.
        assert_eq!(of_sizes(&[4, 1, 3], 4), [1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0]);
        assert_eq!(of_sizes(&[7, 3], 7), [0.5, 0.5]);
    }

    #[test]
    fn nothing_runs_where_nothing_fits() {
        assert_eq!(of_sizes(&[], 4), Vec::<f64>::new());
        assert_eq!(of_sizes(&[5], 4), [0.0]);
    }

    #[test]
    fn what_is_pinned_is_always_there_and_takes_its_counter() {
        let groups = [true, false, false].map(|pinned| Waiting { pinned });
        assert_eq!(ratios(&groups, &mut |together| together.len() <= 2), [1.0, 0.5, 0.5]);
    }

    proptest! {
        #[test]
        fn the_counters_are_never_overfull(sizes in prop::collection::vec(1usize..5, 0..12), counters in 1usize..9) {
            let ratios = of_sizes(&sizes, counters);
            let used: f64 = ratios.iter().zip(&sizes).map(|(ratio, &size)| ratio * size as f64).sum();
            prop_assert!(used <= counters as f64 + 1e-9);
            for (ratio, &size) in ratios.iter().zip(&sizes) {
                prop_assert_eq!(*ratio > 0.0, size <= counters);
                prop_assert!(*ratio <= 1.0);
            }
        }
    }
}
