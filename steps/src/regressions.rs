//! Says which steps made a number larger for good, or smaller.

use super::step::Step;

/// A step up, or of improvements a step down, from which the series never came back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regression {
    /// The last position before it.
    pub before: usize,
    /// The first position after it; `None` if there are no values after it.
    pub after: Option<usize>,
    /// The level before it.
    pub value_before: f64,
    /// The level right behind it: what the step itself made of the one before.
    pub value_after: f64,
    /// The level after it that is nearest to the one before: the lowest, of an improvement the highest. That much of the step is left,
    /// as asv reports it.
    pub best_after: f64,
}

/// All that a series lost, or won.
#[derive(Clone, Debug, PartialEq)]
pub struct Regressions {
    /// The last level.
    pub latest: f64,
    /// The lowest level, of improvements the highest.
    pub best: f64,
    /// The steps, in the order of the series; at least one.
    pub found: Vec<Regression>,
}

/// The best level after a point of the series, as far as the walk from its end has come.
#[derive(Clone, Copy)]
struct Best {
    value: f64,
    error: f64,
}

/// The regressions of steps, by asv's rules; `None` if there are none.
///
/// A step is one if all levels after it are higher by more than the errors, and more than the share `threshold` of its own
/// level. A step of fewer than `min_size` points is left out if the series was up before it, too.
pub fn regressions(steps: &[Step], threshold: f64, min_size: usize) -> Option<Regressions> {
    rises(steps, |step| threshold * step.value, min_size)
}

/// The improvements of steps, by the same rules with levels that are lower; `None` if there are none.
pub fn improvements(steps: &[Step], threshold: f64, min_size: usize) -> Option<Regressions> {
    let upside_down: Vec<Step> = steps.iter().map(|step| Step { value: -step.value, ..*step }).collect();
    let Regressions { latest, best, found } = rises(&upside_down, |step| threshold * -step.value, min_size)?;
    let back = |one: Regression| Regression {
        value_before: -one.value_before,
        value_after: -one.value_after,
        best_after: -one.best_after,
        ..one
    };
    Some(Regressions { latest: -latest, best: -best, found: found.into_iter().map(back).collect() })
}

/// The rises of steps; `least` says how much higher than a step the levels after it have to be.
fn rises(steps: &[Step], least: impl Fn(&Step) -> f64, min_size: usize) -> Option<Regressions> {
    let last = steps.last()?;
    let (mut lowest, mut best) = (last.value, Best { value: last.value, error: last.error });
    let (mut found, mut behind, mut before_short) = (Vec::new(), None::<&Step>, None);
    for step in steps.iter().rev() {
        let least_rise = step.error.max(best.error).max(least(step));
        if best.value > step.value + least_rise {
            if step.right - step.left < min_size {
                before_short = Some(best);
            }
            found.push(Regression {
                before: step.right - 1,
                after: behind.map(|behind| behind.left),
                value_before: step.value,
                value_after: behind.map_or(lowest, |behind| behind.value),
                best_after: lowest,
            });
            best = Best { value: step.value, error: step.error };
        } else if let Some(short) = before_short.take()
            && short.value <= step.value + least_rise
        {
            found.pop();
            best = short;
        }
        behind = Some(step);
        lowest = lowest.min(step.value);
    }
    found.reverse();
    (!found.is_empty()).then_some(Regressions { latest: last.value, best: lowest, found })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn steps(levels: &[(usize, f64)]) -> Vec<Step> {
        let mut left = 0;
        let step = |&(points, value): &(usize, f64)| {
            left += points;
            Step { left: left - points, right: left, value, minimum: value, error: 0.0 }
        };
        levels.iter().map(step).collect()
    }

    #[test]
    fn a_rise_that_stays_by_hand() {
        let found = regressions(&steps(&[(10, 1.0), (10, 3.0), (10, 2.0)]), 0.05, 2).map(|all| (all.found, all.latest));
        // It rose to 3, and fell back to 2, which is the best after it.
        let rise = Regression { before: 9, after: Some(10), value_before: 1.0, value_after: 3.0, best_after: 2.0 };
        assert_eq!(found, Some((vec![rise], 2.0)));
        assert_eq!(regressions(&steps(&[(10, 2.0), (10, 3.0), (10, 2.0)]), 0.0, 2), None, "it came back");
        assert_eq!(regressions(&steps(&[(10, 1.0), (10, 1.04)]), 0.05, 2), None, "less than the threshold");
        assert_eq!(regressions(&[], 0.0, 2), None);
    }

    #[test]
    fn a_fall_that_stays_by_hand() {
        let found =
            improvements(&steps(&[(10, 3.0), (10, 1.0), (10, 2.0)]), 0.05, 2).map(|all| (all.found, all.latest));
        // It fell to 1, and rose again to 2, which is the worst after it.
        let fall = Regression { before: 9, after: Some(10), value_before: 3.0, value_after: 1.0, best_after: 2.0 };
        assert_eq!(found, Some((vec![fall], 2.0)));
        assert_eq!(improvements(&steps(&[(10, 3.0), (10, 2.0), (10, 3.0)]), 0.0, 2), None, "it came back");
        // 5 % are of the level before.
        assert_eq!(improvements(&steps(&[(10, 1.0), (10, 0.96)]), 0.05, 2), None, "less than the threshold");
        assert!(improvements(&steps(&[(10, 1.0), (10, 0.94)]), 0.05, 2).is_some());
        assert_eq!(improvements(&[], 0.0, 2), None);
    }

    #[test]
    fn one_low_point_is_no_regression() {
        let dip = steps(&[(10, 2.0), (1, 1.0), (10, 2.0)]);
        assert_eq!(regressions(&dip, 0.0, 2), None);
        assert_eq!(regressions(&dip, 0.0, 1).map(|all| all.found.len()), Some(1));
    }

    proptest! {
        #[test]
        fn what_follows_an_improvement_is_lower(levels in prop::collection::vec((1usize..5, -9f64..9.0), 1..20)) {
            let steps = steps(&levels);
            for one in improvements(&steps, 0.0, 1).into_iter().flat_map(|all| all.found) {
                prop_assert!(one.best_after < one.value_before && one.value_after <= one.best_after);
                let mut later = steps.iter().filter(|step| Some(step.left) >= one.after);
                prop_assert!(later.all(|step| step.value <= one.best_after));
            }
        }

        #[test]
        fn what_follows_a_regression_is_higher(levels in prop::collection::vec((1usize..5, -9f64..9.0), 1..20)) {
            let steps = steps(&levels);
            if let Some(all) = regressions(&steps, 0.0, 1) {
                for one in &all.found {
                    prop_assert!(one.best_after > one.value_before && one.value_after >= one.best_after);
                    let later = steps.iter().filter(|step| Some(step.left) >= one.after);
                    prop_assert!(later.map(|step| step.value).all(|value| value >= one.best_after));
                }
                prop_assert_eq!(all.latest, steps[steps.len() - 1].value);
            }
        }
    }
}
