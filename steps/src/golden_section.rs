//! Searches for the minimum of a function of one number, by golden sections.

/// When a search ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchTolerance {
    /// It ends when the minimum lies within so wide a range.
    pub x: f64,
    /// It ends when the two inner points differ by less than this, relative to the first of them. 0 for never.
    pub value: f64,
}

/// What the ends of a search's range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnds {
    /// The minimum lies between them.
    Bounds,
    /// They are the first two points that are tried. The minimum may lie beyond them.
    FirstTried,
}

/// Where the function has its minimum between `low` and `high`.
///
/// A range keeps two inner points, each at the golden section. The part behind the higher one is cut off; the other one is
/// then one of the two inner points of what is left (Kiefer, "Sequential minimax search for a maximum", 1953).
pub fn minimize(
    mut function: impl FnMut(f64) -> f64,
    (low, high): (f64, f64),
    tolerance: SearchTolerance,
    ends: SearchEnds,
) -> f64 {
    let ratio = 2.0 / (1.0 + 5.0_f64.sqrt());
    let between = |near: f64, far: f64| ratio * near + (1.0 - ratio) * far;
    let beyond = |near: f64, far: f64| (ratio * near - (1.0 - ratio) * far) / (2.0 * ratio - 1.0);
    let (mut low, mut high) = match ends {
        SearchEnds::Bounds => (low, high),
        SearchEnds::FirstTried => (beyond(low, high), beyond(high, low)),
    };
    let (mut left, mut right) = (between(low, high), between(high, low));
    let (mut at_left, mut at_right) = (function(left), function(right));
    let scale = at_left.abs().max(at_right.abs());
    let is_equal = |a: f64, b: f64| (a - b).abs() < tolerance.value * scale;
    while (low - high).abs() >= tolerance.x && !is_equal(at_left, at_right) {
        if at_right < at_left {
            (low, left, at_left) = (left, right, at_right);
            right = between(high, low);
            at_right = function(right);
        } else {
            (high, right, at_right) = (right, left, at_left);
            left = between(low, high);
            at_left = function(left);
        }
        if left == right {
            break; // no number is left between them
        }
    }
    if at_right < at_left { right } else { left }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NEAR: SearchTolerance = SearchTolerance { x: 1e-6, value: 0.0 };

    #[test]
    fn the_first_two_points_are_the_golden_sections_or_the_ends() {
        let visited = |ends| {
            let mut visited = Vec::new();
            let note = |x: f64| {
                visited.push(x);
                x * x
            };
            minimize(note, (-1.0, 1.0), SearchTolerance { x: 10.0, value: 0.0 }, ends);
            visited
        };
        assert_eq!(visited(SearchEnds::Bounds).len(), 2);
        assert!((visited(SearchEnds::Bounds)[1] - 0.236_067_977_5).abs() < 1e-9);
        let ends = visited(SearchEnds::FirstTried);
        assert!(ends.len() == 2 && (ends[0] + 1.0).abs() < 1e-12 && (ends[1] - 1.0).abs() < 1e-12, "{ends:?}");
    }

    #[test]
    fn a_function_that_is_no_number_ends_too() {
        assert!(minimize(|_| f64::NAN, (0.0, 1.0), NEAR, SearchEnds::Bounds).is_finite());
        assert_eq!(minimize(|x| x, (2.0, 2.0), NEAR, SearchEnds::Bounds), 2.0);
        let exact = SearchTolerance { x: 0.0, value: 0.0 };
        assert!(minimize(|x| (x - 0.3).abs(), (0.0, 1.0), exact, SearchEnds::Bounds).is_finite());
    }

    proptest! {
        #[test]
        fn a_parabola_has_one_minimum(least in -1f64..1.0) {
            let found = minimize(|x| (x - least).powi(2), (-1.0, 1.0), NEAR, SearchEnds::Bounds);
            prop_assert!((found - least).abs() < 1e-6, "{found}");
        }
    }
}
