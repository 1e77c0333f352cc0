//! Rounds numbers to the digits that files of results keep.

/// A number rounded to 5 significant digits.
pub fn round_to_5_digits(number: f64) -> f64 {
    // The shortest exact way: decimal text is rounded correctly, and read back correctly.
    format!("{number:.4e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn digits_by_hand() {
        let rounded =
            [(123_456.0, 123_460.0), (-0.000_123_444_9, -0.000_123_44), (0.0, 0.0), (f64::INFINITY, f64::INFINITY)];
        for (number, expected) in rounded {
            assert_eq!(round_to_5_digits(number), expected);
        }
        assert!(round_to_5_digits(f64::NAN).is_nan());
    }

    proptest! {
        #[test]
        fn rounding_again_changes_nothing(number in any::<f64>().prop_filter("finite", |x| x.is_finite())) {
            let once = round_to_5_digits(number);
            prop_assert_eq!(round_to_5_digits(once), once);
            // Tiny numbers have fewer digits than 5.
            prop_assert!((once - number).abs() <= 0.5001e-4 * number.abs() + 5e-324 || once.is_infinite());
        }
    }
}
