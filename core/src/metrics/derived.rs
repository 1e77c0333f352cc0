//! Computes the value of a metric, with an error bar, from the counts of its events.

use super::MetricScale;
use crate::expr::{Dialect, ParseError, Program, Subject, Variable, VariableSlot, parse};
use crate::plan::EventIndex;
use crate::rates::{Error, Uncertain};
use crate::run::MetricFormula;

/// What stands for wall-clock time in a formula, in seconds.
pub(super) const DURATION: &str = "duration_time";

/// A metric ready to be computed.
#[derive(Clone, Debug)]
pub struct Derived {
    /// Unit and factor of the shown value.
    scale: MetricScale,
    formula: Program,
    threshold: Option<Program>,
    /// What each slot of the programs is the sum of.
    sources: Vec<SlotSource>,
}

/// Where the number in a slot comes from.
#[derive(Clone, Debug)]
enum SlotSource {
    /// The counts of these events together.
    Events(Vec<EventIndex>),
    /// The wall-clock time, in seconds.
    Duration,
}

/// The value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// The value, in the metric's unit.
    pub value: f64,
    /// What it may be off by, in the same unit.
    pub error: Error,
    /// What the threshold says of it.
    pub verdict: ThresholdVerdict,
}

impl Number {
    /// The value and its error.
    pub fn uncertain(&self) -> Uncertain {
        Uncertain { value: self.value, error: self.error }
    }
}

/// What a threshold says of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdVerdict {
    /// There is no threshold, or it can't be computed from what is counted.
    Unjudged,
    /// The value is none to look into.
    Fine,
    /// The value is one to look into.
    Noticeable,
}

impl ThresholdVerdict {
    /// The word for it; empty where nothing is said.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unjudged => "",
            Self::Fine => "fine",
            Self::Noticeable => "over threshold",
        }
    }
}

/// Why a metric has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoValue {
    /// This event has no count.
    NotCounted(EventIndex),
    /// The formula has no value there: a division by zero.
    Undefined,
}

impl Derived {
    /// Reads a metric as recordings have it.
    ///
    /// # Errors
    /// Fails if its formula can't be parsed.
    pub fn new(recorded: &MetricFormula) -> Result<Self, ParseError> {
        let mut names = Vec::new();
        let mut sources = Vec::new();
        let mut slot = |Variable { subject, .. }: &Variable| {
            let Subject::Event(name) = subject else { return None };
            let source = match recorded.events.get(name) {
                Some(events) if !events.is_empty() => SlotSource::Events(events.clone()),
                _ if name == DURATION => SlotSource::Duration,
                _ => return None,
            };
            let known = names.iter().position(|known| known == name);
            Some(VariableSlot(known.unwrap_or_else(|| {
                names.push(name.clone());
                sources.push(source);
                names.len() - 1
            })))
        };
        let formula = parse(&recorded.formula, Dialect::Metric)?;
        let formula = formula.compile(&mut slot).map_err(|unresolved| ParseError {
            span: unresolved[0].span,
            message: "a name stands for no event".to_owned(),
            label: "not counted".to_owned(),
            help: None,
        })?;
        let threshold = recorded.threshold.as_ref().map(|text| parse(text, Dialect::Metric)).transpose()?;
        // A threshold over events that aren't counted says nothing.
        let threshold = threshold.and_then(|threshold| threshold.compile(&mut slot).ok());
        let scale = MetricScale { factor: recorded.factor, unit: recorded.unit.clone() };
        Ok(Self { scale, formula, threshold, sources })
    }

    /// The events that it is computed from, in the order of its formula.
    pub fn events(&self) -> impl Iterator<Item = EventIndex> {
        let slots = self.formula.slots().iter().filter_map(|slot| self.sources.get(slot.0));
        slots
            .flat_map(|source| match source {
                SlotSource::Events(events) => events.as_slice(),
                SlotSource::Duration => &[],
            })
            .copied()
    }

    /// The value over some time of which `count` knows the events' counts.
    ///
    /// The error is that of a sum of independent errors through the formula's slopes,
    /// `h^2 = sum (df/dx_i h_i)^2` (JCGM 100:2008, section 5.1.2), for each side by itself: below the
    /// value lies what is below counts that it rises with, and above counts that it falls with. Events
    /// that were counted in one group miss the same time, and the errors of a ratio then cancel in part:
    /// the error is rather too large.
    ///
    /// # Errors
    /// Returns why there is no value.
    pub fn value(&self, count: impl Fn(EventIndex) -> Option<Uncertain>, seconds: f64) -> Result<Number, NoValue> {
        let mut values = Vec::with_capacity(self.sources.len());
        let mut errors = Vec::with_capacity(self.sources.len());
        let mut missing = Vec::new();
        for source in &self.sources {
            let sum = match source {
                SlotSource::Duration => Ok(Uncertain::exact(seconds)),
                SlotSource::Events(events) => sum(events, &count),
            };
            missing.push(sum.err());
            let Uncertain { value, error } = sum.unwrap_or(Uncertain { value: f64::NAN, error: Error::Unknown });
            values.push(value);
            errors.push(error);
        }
        let value = self.formula.eval(&values) * self.scale.factor;
        if !value.is_finite() {
            let missing = self.formula.slots().iter().find_map(|slot| missing[slot.0]);
            return Err(missing.map_or(NoValue::Undefined, NoValue::NotCounted));
        }
        Ok(Number { value, error: self.error(&values, &errors), verdict: self.verdict(&values) })
    }

    fn error(&self, values: &[f64], errors: &[Error]) -> Error {
        let slots = self.formula.slots();
        if slots.iter().all(|slot| errors[slot.0] == Error::Exact) {
            return Error::Exact;
        }
        let mut slopes = vec![0.0; slots.len()];
        self.formula.eval_with_gradient(values, &mut slopes);
        let part = |(&slope, slot): (&f64, &VariableSlot)| match errors[slot.0].scaled(slope) {
            // What has no slope has no part in it, known or not.
            _ if slope == 0.0 => Error::Exact,
            part => part,
        };
        match Error::of_sum(slopes.iter().zip(slots).map(part)) {
            // Only what has no slope may be off.
            Error::Exact => Error::of(0.0),
            error => error.scaled(self.scale.factor),
        }
    }

    fn verdict(&self, values: &[f64]) -> ThresholdVerdict {
        match self.threshold.as_ref().map(|threshold| threshold.eval(values)) {
            None => ThresholdVerdict::Unjudged,
            Some(found) if found.is_nan() => ThresholdVerdict::Unjudged,
            Some(0.0) => ThresholdVerdict::Fine,
            Some(_) => ThresholdVerdict::Noticeable,
        }
    }
}

/// The counts of several units together, or the first of them that has none.
fn sum(events: &[EventIndex], count: &impl Fn(EventIndex) -> Option<Uncertain>) -> Result<Uncertain, EventIndex> {
    let counts = events.iter().map(|&event| count(event).ok_or(event)).collect::<Result<Vec<_>, _>>()?;
    Ok(Uncertain {
        value: counts.iter().map(|count| count.value).sum(),
        error: Error::of_sum(counts.iter().map(|count| count.error)),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use proptest::prelude::*;

    use super::*;

    fn derived(formula: &str, threshold: Option<&str>, factor: f64) -> Derived {
        let events = [("A", vec![0]), ("B", vec![1]), ("AB", vec![0, 1])];
        let recorded = MetricFormula {
            name: "m".into(),
            formula: formula.into(),
            threshold: threshold.map(str::to_owned),
            factor,
            unit: "%".into(),
            description: String::new(),
            events: events.map(|(name, events)| (name.to_owned(), events.into_iter().map(EventIndex).collect())).into(),
        };
        Derived::new(&recorded).unwrap()
    }

    fn counts(a: (f64, f64), b: (f64, f64)) -> impl Fn(EventIndex) -> Option<Uncertain> {
        let error = |half_width: f64| if half_width == 0.0 { Error::Exact } else { Error::of(half_width) };
        move |event| [a, b].get(event.0).map(|&(value, half_width)| Uncertain { value, error: error(half_width) })
    }

    #[test]
    fn errors_go_through_the_formula_by_hand() {
        // 100 A / B at A = 30 +- 3, B = 60 +- 4: slopes 1/60 and -30/3600; 100 sqrt(0.05^2 + (1/30)^2).
        let number = derived("A / B", Some("A / B > 0.4"), 100.0).value(counts((30.0, 3.0), (60.0, 4.0)), 1.0).unwrap();
        assert!((number.value - 50.0).abs() < 1e-12);
        assert!((number.error.half_width().unwrap() - 6.009_252).abs() < 1e-5, "{number:?}");
        assert_eq!(number.verdict, ThresholdVerdict::Noticeable);
        // Two units: 3 and 4 make 5.
        let sum = derived("AB", None, 1.0).value(counts((30.0, 3.0), (60.0, 4.0)), 1.0).unwrap();
        assert_eq!((sum.value, sum.error, sum.verdict), (90.0, Error::of(5.0), ThresholdVerdict::Unjudged));
    }

    #[test]
    fn each_side_goes_its_own_way() {
        // 100 A / B at A = 30 -3 +6, B = 60 -4 +8: below through A's lower and B's upper side,
        // 100 sqrt(0.05^2 + (8/120)^2); above through the others, 100 sqrt(0.1^2 + (4/120)^2).
        let sides = [(30.0, 3.0, 6.0), (60.0, 4.0, 8.0)];
        let count = |event: EventIndex| {
            sides.get(event.0).map(|&(value, below, above)| Uncertain { value, error: Error::Within { below, above } })
        };
        let check = |factor: f64, expected: [f64; 2]| {
            let Error::Within { below, above } = derived("A / B", None, factor).value(count, 1.0).unwrap().error else {
                panic!("the error is known")
            };
            assert!((below - expected[0]).abs() < 1e-5 && (above - expected[1]).abs() < 1e-5, "{below} {above}");
        };
        check(100.0, [8.333_333, 10.540_926]);
        check(-100.0, [10.540_926, 8.333_333]);
    }

    #[test]
    fn what_is_exact_stays_so_and_what_is_not_known_too() {
        let exact = derived("A / B", Some("A > B"), 1.0).value(counts((30.0, 0.0), (60.0, 0.0)), 1.0).unwrap();
        assert_eq!((exact.value, exact.error, exact.verdict), (0.5, Error::Exact, ThresholdVerdict::Fine));
        let unknown = |EventIndex(event)| Some(Uncertain { value: 2.0, error: [Error::Unknown, Error::Exact][event] });
        assert_eq!(derived("A / B", None, 1.0).value(unknown, 1.0).unwrap().error, Error::Unknown);
        // What has no slope has no part in the error.
        assert_eq!(derived("B + 0 * A", None, 1.0).value(unknown, 1.0).unwrap().error, Error::of(0.0));
        assert_eq!(derived("B / duration_time", None, 1.0).value(unknown, 4.0).unwrap().value, 0.5);
    }

    #[test]
    fn no_value_is_none_and_not_zero() {
        let metric = derived("A / B", None, 1.0);
        assert_eq!(metric.value(counts((1.0, 0.0), (0.0, 0.0)), 1.0), Err(NoValue::Undefined));
        let a_only = |event| (event == EventIndex(0)).then_some(Uncertain::exact(1.0));
        assert_eq!(metric.value(a_only, 1.0), Err(NoValue::NotCounted(EventIndex(1))));
        // A choice that isn't taken needs no count.
        assert_eq!(derived("A if A else B", None, 1.0).value(a_only, 1.0).map(|number| number.value), Ok(1.0));
    }

    proptest! {
        #[test]
        fn values_are_finite_and_errors_not_negative(a in 0.0..1e12_f64, b in 0.0..1e12_f64, c in 0.0..1e12_f64, d in 0.0..1e12_f64) {
            for formula in ["A / B", "A * B - A", "d_ratio(A, A + B)", "A - B", "min(A, B) / AB"] {
                if let Ok(Number { value, error, .. }) = derived(formula, None, 100.0).value(counts((a, b), (c, d)), 1.0) {
                    prop_assert!(value.is_finite());
                    prop_assert!(error.half_width().is_none_or(|half_width| half_width >= 0.0));
                }
            }
        }
    }
}
