//! Holds numbers with how far they may be from the truth, and computes that of sums and products.

use super::Confidence;

/// How far a number may be from the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Error {
    /// The number is exact: everything was counted.
    Exact,
    /// The truth lies no further than this, in the unit of the number, as often as the
    /// [`Confidence`] of whoever computed it says. The two sides differ where one of them is known
    /// better: there are never less counts than were counted.
    Within {
        /// How far the truth may be below the number.
        below: f64,
        /// How far the truth may be above the number.
        above: f64,
    },
    /// Too little was seen to say.
    #[default]
    Unknown,
}

impl Error {
    /// An error of this size to either side; unknown if it isn't finite.
    pub fn of(half_width: f64) -> Self {
        if half_width.is_finite() { Self::Within { below: half_width, above: half_width } } else { Self::Unknown }
    }

    /// The error of a sum of numbers with independent errors: each side is the root of its squares' sum.
    pub fn of_sum(errors: impl Iterator<Item = Self>) -> Self {
        let (mut low, mut high, mut is_exact) = (0.0, 0.0, true);
        for error in errors {
            match error {
                Self::Exact => {}
                Self::Within { below, above } => {
                    (low, high, is_exact) = (f64::hypot(low, below), f64::hypot(high, above), false);
                }
                Self::Unknown => return Self::Unknown,
            }
        }
        match (is_exact, low.is_finite() && high.is_finite()) {
            (true, _) => Self::Exact,
            (false, true) => Self::Within { below: low, above: high },
            (false, false) => Self::Unknown,
        }
    }

    /// The error of a number to which so much more may have to be added, which has nothing to do with the error.
    pub fn or_more(self, more: f64) -> Self {
        match self {
            Self::Within { below, above } => Self::Within { below, above: above.hypot(more) },
            other => other,
        }
    }

    /// The error of the number times `factor`.
    pub fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Within { below, above } if factor < 0.0 => {
                Self::Within { below: above * -factor, above: below * -factor }
            }
            Self::Within { below, above } => Self::Within { below: below * factor, above: above * factor },
            other => other,
        }
    }

    /// The larger side, which is what stands behind a `±`: 0 if exact, `None` if unknown.
    pub fn half_width(self) -> Option<f64> {
        match self {
            Self::Exact => Some(0.0),
            Self::Within { below, above } => Some(below.max(above)),
            Self::Unknown => None,
        }
    }

    /// The half width as a part of `number`; `None` if unknown or the number is 0.
    pub fn relative_to(self, number: f64) -> Option<f64> {
        let half_width = self.half_width()?;
        (number != 0.0).then(|| half_width / number.abs())
    }
}

/// A number, and how far it may be from the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Uncertain {
    /// Estimated value.
    pub value: f64,
    /// Error of the value, in the same unit.
    pub error: Error,
}

impl Uncertain {
    /// A number that is no estimate.
    pub fn exact(value: f64) -> Self {
        Self { value, error: Error::Exact }
    }

    /// Value and error times `factor`.
    pub fn scaled(self, factor: f64) -> Self {
        Self { value: self.value * factor, error: self.error.scaled(factor) }
    }

    /// This number, to which so much more may have to be added.
    #[must_use]
    pub fn or_more(self, more: f64) -> Self {
        Self { error: self.error.or_more(more), ..self }
    }

    /// This number times another. Their errors are taken for independent of one another: where one event's slices gave
    /// both, they rise and fall together, and the interval is too wide.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let ends = |number: Self| match number.error {
            Error::Exact => Some((0.0, 0.0)),
            Error::Within { below, above } => Some((below, above)),
            Error::Unknown => None,
        };
        let (a, b) = (self.value.abs(), other.value.abs());
        let error = match (self.error, other.error) {
            (_, Error::Exact) => self.error.scaled(other.value),
            (Error::Exact, _) => other.error.scaled(self.value),
            _ => match (ends(self), ends(other)) {
                (Some(mine), Some(theirs)) => {
                    Error::Within { below: (mine.0 * b).hypot(theirs.0 * a), above: (mine.1 * b).hypot(theirs.1 * a) }
                }
                _ => Error::Unknown,
            },
        };
        Self { value: self.value * other.value, error }
    }

    /// The standard error of a number with an interval of this level.
    pub fn deviation(self, confidence: Confidence) -> f64 {
        match self.error {
            Error::Exact => 0.0,
            Error::Within { below, above } => below.max(above) / confidence.normal(),
            // Nothing is known but that it is not negative.
            Error::Unknown => self.value.abs(),
        }
    }

    /// This number, raised to `counted` where the number or the lower end of its interval is below:
    /// what was counted did happen.
    pub fn at_least(self, counted: f64) -> Self {
        let value = self.value.max(counted);
        let error = match self.error {
            Error::Within { below, above } => Error::Within {
                below: below.min(value - counted).max(0.0),
                // A number that is raised keeps the upper end of its interval.
                above: (self.value + above - value).max(0.0),
            },
            other => other,
        };
        Self { value, error }
    }

    /// The interval: lowest and highest; `None` if the error isn't known.
    pub fn bounds(self) -> Option<(f64, f64)> {
        match self.error {
            Error::Exact => Some((self.value, self.value)),
            Error::Within { below, above } => Some((self.value - below, self.value + above)),
            Error::Unknown => None,
        }
    }

    /// Whether the interval leaves out anything that another one has.
    pub fn excludes_some_of(self, other: Self) -> bool {
        match (self.bounds(), other.bounds()) {
            (Some((low, high)), Some((other_low, other_high))) => low > other_low || high < other_high,
            (_, None) => true,
            (None, Some(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_wider_interval_around_another_one_excludes_nothing() {
        let within = |value: f64, error: f64| Uncertain { value, error: Error::Within { below: error, above: error } };
        let scaled = within(100.0, 10.0);
        assert!(!within(105.0, 15.0).excludes_some_of(scaled) && !within(100.0, 300.0).excludes_some_of(scaled));
        assert!(within(105.0, 14.0).excludes_some_of(scaled) && within(95.0, 12.0).excludes_some_of(scaled));
        assert!(!scaled.excludes_some_of(scaled));
        let unknown = Uncertain { value: 100.0, error: Error::Unknown };
        assert!(scaled.excludes_some_of(unknown) && !unknown.excludes_some_of(scaled));
    }

    #[test]
    fn errors_of_sums_and_products_by_hand() {
        let sum = |errors: &[Error]| Error::of_sum(errors.iter().copied());
        // 3 and 4 below make 5, 5 and 12 above 13.
        let [one, other] = [(3.0, 5.0), (4.0, 12.0)].map(|(below, above)| Error::Within { below, above });
        assert_eq!(sum(&[one, Error::Exact, other]), Error::Within { below: 5.0, above: 13.0 });
        assert_eq!(
            [sum(&[]), sum(&[Error::Exact]), sum(&[one, Error::Unknown])],
            [Error::Exact, Error::Exact, Error::Unknown]
        );
        // 10 +- 3 times 20 +- 4: 3 x 20 and 4 x 10 make the root of 3600 + 1600.
        let [ten, twenty] =
            [(10.0, 3.0), (20.0, 4.0)].map(|(value, error)| Uncertain { value, error: Error::of(error) });
        let product = ten.times(twenty);
        assert_eq!((product.value, product.error.half_width()), (200.0, Some(5200_f64.sqrt())));
        assert_eq!(ten.times(Uncertain::exact(-2.0)).bounds(), Some((-26.0, -14.0)));
        assert_eq!(ten.times(Uncertain { value: 2.0, error: Error::Unknown }).bounds(), None);
    }

    #[test]
    fn what_was_counted_is_the_least() {
        // 10 +- 6, of which 7 were counted: 7 to 16. Had 12 been counted: 12 to 16; 20: just that.
        let ten = Uncertain { value: 10.0, error: Error::of(6.0) };
        assert_eq!(ten.at_least(7.0), Uncertain { value: 10.0, error: Error::Within { below: 3.0, above: 6.0 } });
        assert_eq!(ten.at_least(12.0), Uncertain { value: 12.0, error: Error::Within { below: 0.0, above: 4.0 } });
        assert_eq!(ten.at_least(20.0).bounds(), Some((20.0, 20.0)));
        assert_eq!(Uncertain::exact(3.0).at_least(1.0), Uncertain::exact(3.0));
        assert_eq!(ten.at_least(7.0).scaled(-2.0).bounds(), Some((-32.0, -14.0)));
        assert_eq!(Uncertain { value: 1.0, error: Error::of(f64::NAN) }.bounds(), None);
    }
    proptest! {
        #[test]
        fn a_product_goes_along_with_each_of_its_numbers(a in 0.0..1e6f64, b in 0.0..1e6f64, below in 0.0..1e3f64, above in 0.0..1e3f64) {
            let a = Uncertain { value: a, error: Error::Within { below, above } };
            let exact = Uncertain::exact(b);
            prop_assert_eq!(a.times(exact), a.scaled(b));
            let (low, high) = a.times(Uncertain { value: b, error: Error::of(1.0) }).bounds().unwrap_or_default();
            let (narrow, wide) = a.scaled(b).bounds().unwrap_or_default();
            prop_assert!(low <= narrow + 1e-12 * narrow.abs() && high >= wide - 1e-12 * wide.abs());
        }
    }
}
