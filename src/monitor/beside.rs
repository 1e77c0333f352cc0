//! Compares two monitors event by event; a difference counts only where the intervals don't overlap.

use super::{Measure, Monitor, Row};
use crate::events::Unit;
use crate::plan::EventIndex;
use crate::rates::{Error, Uncertain};

/// One of two recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one named first.
    A,
    /// The one named second.
    B,
}

/// What the second number is beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Higher, and their intervals have nothing in common.
    Higher,
    /// Lower, and their intervals have nothing in common.
    Lower,
    /// No difference is shown: their intervals overlap.
    NotApart,
    /// Only this recording has the event.
    OnlyIn(Side),
    /// One of them has no number, which is not 0.
    NoNumber,
    /// How far one of them may be off isn't known.
    NoInterval,
}

impl Difference {
    /// The word for it, about the second of two.
    pub fn word(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::NotApart => "not apart",
            Self::OnlyIn(Side::A) => "only in A",
            Self::OnlyIn(Side::B) => "only in B",
            Self::NoNumber => "no number",
            Self::NoInterval => "no interval",
        }
    }

    /// Whether the two differ by more than their errors.
    pub fn is_apart(self) -> bool {
        matches!(self, Self::Higher | Self::Lower)
    }

    /// Compares two numbers that exist.
    fn between(a: Uncertain, b: Uncertain) -> Self {
        let interval = |number: Uncertain| number.bounds().filter(|(low, high)| low <= high);
        let (Some(a), Some(b)) = (interval(a), interval(b)) else { return Self::NoInterval };
        match (a, b) {
            ((_, a_high), (b_low, _)) if a_high < b_low => Self::Higher,
            ((a_low, _), (_, b_high)) if b_high < a_low => Self::Lower,
            _ => Self::NotApart,
        }
    }
}

/// Which number of an event is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The scaled count.
    Raw,
    /// What the estimator makes of it.
    Estimate,
}

/// An event of one recording, of the other, or of both, with its two numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Name of the event, with the part of the target that it is about.
    pub name: String,
    /// Unit of the counts.
    pub unit: Unit,
    /// Place of the event in the first recording.
    pub a: Option<EventIndex>,
    /// Place of the event in the second recording.
    pub b: Option<EventIndex>,
    /// The numbers in the measure asked for.
    pub a_number: Option<Uncertain>,
    /// Number of the second recording.
    pub b_number: Option<Uncertain>,
    /// The comparison of both numbers.
    pub difference: Difference,
}

impl Compared {
    /// By what part of the first number the second differs from it; `None` of 0, which has no parts.
    pub fn change(&self) -> Option<f64> {
        let (a, b) = (self.a_number?.value, self.b_number?.value);
        Some((b - a) / a.abs()).filter(|part| part.is_finite())
    }
}

/// The events of both, matched by name: first those of `a` in its order, then those that only `b` has.
/// Of events that are there several times the first belongs to the first.
pub fn compare(a: &Monitor, b: &Monitor, measure: Measure, what: Compare) -> Vec<Compared> {
    let mut left: Vec<(String, EventIndex)> = b.rows().map(|row| (row.event.title(), row.index)).collect();
    let mut all = Vec::with_capacity(a.header().events.len());
    for row in a.rows() {
        let name = row.event.title();
        let other = left.iter().position(|(other, _)| *other == name).map(|place| left.remove(place).1);
        all.push(compared(name, (a, Some(row.index)), (b, other), measure, what));
    }
    all.extend(left.into_iter().map(|(name, index)| compared(name, (a, None), (b, Some(index)), measure, what)));
    all
}

type Half<'a> = (&'a Monitor, Option<EventIndex>);

fn compared(name: String, a: Half<'_>, b: Half<'_>, measure: Measure, what: Compare) -> Compared {
    let row = |(monitor, index): Half<'_>| index.map(|index| number(monitor, &monitor.row(index), measure, what));
    let unit = |(monitor, index): Half<'_>| Some(monitor.header().events.get(index?)?.event.unit.clone());
    let (a_number, b_number) = (row(a), row(b));
    let difference = match (a_number, b_number) {
        (_, None) => Difference::OnlyIn(Side::A),
        (None, _) => Difference::OnlyIn(Side::B),
        (Some(Some(a)), Some(Some(b))) => Difference::between(a, b),
        _ => Difference::NoNumber,
    };
    Compared {
        name,
        unit: unit(a).or_else(|| unit(b)).unwrap_or_default(),
        a: a.1,
        b: b.1,
        a_number: a_number.flatten(),
        b_number: b_number.flatten(),
        difference,
    }
}

fn number(monitor: &Monitor, row: &Row<'_>, measure: Measure, what: Compare) -> Option<Uncertain> {
    let count = match what {
        Compare::Raw => row.scaled,
        Compare::Estimate => row.estimate.total,
    };
    let number = count?.scaled(measure.factor(monitor, row)?);
    // What one kind of core counted is a part of all, nobody knows which.
    let error = if row.core_share.is_some() { Error::Unknown } else { number.error };
    number.value.is_finite().then_some(Uncertain { error, ..number })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(value: f64, half: f64) -> Uncertain {
        Uncertain { value, error: Error::of(half) }
    }

    #[test]
    fn two_numbers_differ_where_their_intervals_part() {
        use Difference::{Higher, Lower, NoInterval, NotApart};
        assert_eq!(Difference::between(number(10.0, 1.0), number(12.5, 1.0)), Higher);
        assert_eq!(Difference::between(number(12.5, 1.0), number(10.0, 1.0)), Lower);
        // They touch at 11.
        assert_eq!(Difference::between(number(10.0, 1.0), number(12.0, 1.0)), NotApart);
        let exact = |value| Uncertain { value, error: Error::Exact };
        assert_eq!(Difference::between(exact(3.0), exact(3.0)), NotApart);
        assert_eq!(Difference::between(exact(3.0), exact(4.0)), Higher);
        let unknown = Uncertain { value: 3.0, error: Error::Unknown };
        assert_eq!(Difference::between(exact(1.0), unknown), NoInterval);
        assert_eq!(Difference::between(number(f64::NAN, 1.0), exact(1.0)), NoInterval);
    }

    proptest! {
        #[test]
        fn the_other_way_round_it_is_the_opposite(
            (a, b) in (-1e9f64..1e9, -1e9f64..1e9), (e, f) in (0f64..1e8, 0f64..1e8),
        ) {
            let (one, other) = (Difference::between(number(a, e), number(b, f)), Difference::between(number(b, f), number(a, e)));
            let opposite = match one {
                Difference::Higher => Difference::Lower,
                Difference::Lower => Difference::Higher,
                same => same,
            };
            prop_assert_eq!(opposite, other);
            // Whoever is apart stays apart with narrower intervals.
            if one.is_apart() {
                prop_assert_eq!(Difference::between(number(a, e / 2.0), number(b, f / 2.0)), one);
            }
        }
    }
}
