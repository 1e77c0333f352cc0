//! Binds relations to the events that are measured: programs over the events' statistics.
//!
//! The statistics of all events lie in one slice that the estimator keeps, the mean and the
//! variance of event `i` side by side:
//!
//! ```text
//! slot      0        1        2        3      ...     2 i     2 i + 1
//! values  mean 0  variance 0  mean 1  variance 1  ...  mean i  variance i
//! ```
//!
//! A bound relation reads from there without copying, and its gradients have an entry for each
//! slot that it reads, not for each event: ten thousand relations of three events stay cheap
//! beside two hundred events.

use std::collections::HashSet;

use super::{Relation, RelationForm, Tolerance, Weight};
use crate::events::{Event, Letters};
use crate::expr::{Expr, Moment, Program, Subject, Variable, VariableSlot};
use crate::plan::EventIndex;

/// Where the mean of an event is.
pub fn mean_slot(event: usize) -> VariableSlot {
    VariableSlot(2 * event)
}

/// Where the variance of an event is.
pub fn variance_slot(event: usize) -> VariableSlot {
    VariableSlot(2 * event + 1)
}

/// The event that a slot is of.
pub fn slot_event(slot: VariableSlot) -> usize {
    slot.0 / 2
}

/// Whether a slot is that of a mean.
pub fn is_mean(slot: VariableSlot) -> bool {
    slot == mean_slot(slot_event(slot))
}

/// What becomes of a relation when these events are measured.
#[derive(Clone, Debug)]
pub enum RelationBinding {
    /// All its events are measured.
    Active(BoundRelation),
    /// Some of its events aren't measured, which is normal for a file that was written for more
    /// than this measurement.
    Inactive {
        /// Their names as the file has them, each once.
        missing: Vec<String>,
    },
    /// `eventFrom` and `eventTo` are two names of one event.
    SelfRelation {
        /// Index of the event.
        event: usize,
    },
}

/// A relation over the indices of the events that are measured.
#[derive(Clone, Debug)]
pub struct BoundRelation {
    /// How much of the way one correction goes.
    pub weight: Weight,
    /// The deviation to expect of it.
    pub tolerance: Tolerance,
    /// What the relation says, over slots.
    pub form: BoundForm,
}

impl BoundRelation {
    /// The indices of the events that it ties together.
    pub fn events(&self) -> Vec<usize> {
        match &self.form {
            BoundForm::Pair(pair) => vec![pair.from, pair.to],
            BoundForm::Equation(equation) => equation.events().to_vec(),
        }
    }
}

/// What a [`BoundRelation`] says.
#[derive(Clone, Debug)]
pub enum BoundForm {
    /// What to expect of one event from others.
    Pair(BoundPair),
    /// Both sides must be equal: the residual should be zero.
    Equation(BoundEquation),
}

/// What to expect of event `to` when event `from` got a sample. At least one of the programs is
/// there.
#[derive(Clone, Debug)]
pub struct BoundPair {
    /// The index of the event that gets samples.
    pub from: usize,
    /// The index of the event that is corrected.
    pub to: usize,
    /// Computes what the mean of `to` should be.
    pub mean: Option<Program>,
    /// Computes what the variance of `to` should be; below 0 it is to be read as 0.
    pub variance: Option<Program>,
}

/// Two expressions of means that should be equal.
#[derive(Clone, Debug)]
pub struct BoundEquation {
    left: Program,
    right: Program,
    residual: Program,
    events: Box<[usize]>,
    /// The weights of the events, if it says that a weighted sum is zero.
    weights: Option<Box<[f64]>>,
}

impl BoundEquation {
    /// The indices of its events, ascending: the order of the gradient.
    pub fn events(&self) -> &[usize] {
        &self.events
    }

    /// The indices of the events on the left side, each once, in the order in which it reads them.
    pub fn left_events(&self) -> impl Iterator<Item = usize> {
        self.left.slots().iter().copied().map(slot_event)
    }

    /// The left side, in counts per CPU-millisecond if the equation is one of rates.
    pub fn left(&self, values: &[f64]) -> f64 {
        self.left.eval(values)
    }

    /// What its tolerance is a fraction of: of a weighted sum half of the sum of the products' sizes, so that it
    /// doesn't matter on which side a product stands; of another equation the larger side.
    pub fn size(&self, values: &[f64]) -> f64 {
        match &self.weights {
            Some(weights) => {
                let product = |(&event, weight): (&usize, &f64)| (weight * values[mean_slot(event).0]).abs();
                self.events.iter().zip(weights).map(product).sum::<f64>() / 2.0
            }
            None => self.left(values).abs().max(self.right.eval(values).abs()),
        }
    }

    /// Where it says that a weighted sum is zero: the weights of its events, none of them zero.
    pub fn sum(&self) -> Option<&[f64]> {
        self.weights.as_deref()
    }

    /// The left side minus the right side. Not finite means that there is none.
    pub fn residual(&self, values: &[f64]) -> f64 {
        self.residual.eval(values)
    }

    /// The residual, and in `gradient[k]` its derivative by the mean of `self.events()[k]`.
    pub fn residual_with_gradient(&self, values: &[f64], gradient: &mut [f64]) -> f64 {
        self.residual.eval_with_gradient(values, gradient)
    }
}

/// The indices of the events that each relation ties together.
pub fn related(relations: &[Relation], events: &[Event]) -> Vec<Vec<EventIndex>> {
    let events_of = |relation: &Relation| match relation.bind(events) {
        RelationBinding::Active(bound) => bound.events().into_iter().map(EventIndex).collect(),
        RelationBinding::Inactive { .. } | RelationBinding::SelfRelation { .. } => Vec::new(),
    };
    relations.iter().map(events_of).collect()
}

/// The relations that say that a weighted sum of events is zero, so that any of these follows from the others, with the
/// indices of these.
pub fn sums<'a>(relations: &'a [Relation], events: &[Event]) -> Vec<(&'a Relation, Vec<EventIndex>)> {
    let sum = |relation: &'a Relation| match relation.bind(events) {
        RelationBinding::Active(BoundRelation { form: BoundForm::Equation(equation), .. }) => {
            equation.sum().map(|_| (relation, equation.events().iter().copied().map(EventIndex).collect()))
        }
        _ => None,
    };
    relations.iter().filter_map(sum).collect()
}

impl Relation {
    /// Ties the relation to `events`, whose names are compared in any case of letters. What it says holds in user space
    /// and in the kernel, each for itself: where events are counted in several ways, it is about the first in which all
    /// are.
    pub fn bind(&self, events: &[Event]) -> RelationBinding {
        let ways = ways(events);
        let first = self.bind_beside(events, ways.first().copied());
        match first {
            RelationBinding::Inactive { .. } => {
                let mut others = ways.iter().skip(1).map(|way| self.bind_beside(events, Some(way)));
                let is_bound = |binding: &RelationBinding| !matches!(binding, RelationBinding::Inactive { .. });
                others.find(is_bound).unwrap_or(first)
            }
            bound => bound,
        }
    }

    fn bind_beside(&self, events: &[Event], beside: Option<&Event>) -> RelationBinding {
        let mut names = MeasuredNames { events, beside, missing: Vec::new(), sought: HashSet::new() };
        match self.bound_form(&mut names) {
            Some(BoundForm::Pair(BoundPair { from, to, .. })) if from == to => {
                RelationBinding::SelfRelation { event: from }
            }
            Some(form) if names.missing.is_empty() => {
                let Self { weight, tolerance, .. } = *self;
                RelationBinding::Active(BoundRelation { weight, tolerance, form })
            }
            _ => RelationBinding::Inactive { missing: names.missing },
        }
    }

    /// Looks every name up, so that all that is missing is known.
    fn bound_form(&self, names: &mut MeasuredNames<'_>) -> Option<BoundForm> {
        match &self.form {
            RelationForm::Pair { from, to, expected_mean, expected_variance } => {
                let (from, to) = (names.find(from), names.find(to));
                let mean = expected_mean.as_ref().map(|expr| names.compile(expr, from));
                let variance = expected_variance.as_ref().map(|expr| names.compile(expr, from));
                let (mean, variance) = (all_or_none(mean)?, all_or_none(variance)?);
                Some(BoundForm::Pair(BoundPair { from: from?, to: to?, mean, variance }))
            }
            RelationForm::Equation { left, right } => {
                let (left, right) = (names.compile(left, None), names.compile(right, None));
                let (left, right) = (left?, right?);
                let residual = Program::difference(&left, &right)?;
                let events: Box<[usize]> = residual.slots().iter().copied().map(slot_event).collect();
                let weights = weights(&residual, &events);
                Some(BoundForm::Equation(BoundEquation { left, right, residual, events, weights }))
            }
        }
    }
}

/// An event for each way in which events are counted: in user space, in the kernel, on one kind of core.
fn ways(events: &[Event]) -> Vec<&Event> {
    let mut ways: Vec<&Event> = Vec::new();
    for event in events.iter().filter(|event| event.has_spaces()) {
        if !ways.iter().any(|way| way.counts_beside(event)) {
            ways.push(event);
        }
    }
    ways
}

/// Whether a name says by itself how the event is counted: `cycles:u`, `cpu_core/cycles/`.
fn says_how(name: &str) -> bool {
    let letters = name.rsplit_once(':').and_then(|(_, letters)| Letters::parse(letters).ok());
    name.contains('/') || letters.is_some_and(|letters| !letters.is_empty())
}

/// The factors of the events in a residual, if it is a weighted sum and none of them is zero.
fn weights(residual: &Program, events: &[usize]) -> Option<Box<[f64]>> {
    // Of a sum the gradient is the same everywhere, and the residual what it gives.
    let at = |value: &dyn Fn(usize) -> f64| {
        let values: Vec<f64> = (0..=events.last().map_or(0, |last| 2 * last + 1)).map(value).collect();
        let mut gradient = vec![0.0; events.len()];
        let sum = residual.eval_with_gradient(&values, &mut gradient);
        let product = |(&event, factor): (&usize, &f64)| factor * values[mean_slot(event).0];
        let products: Vec<f64> = events.iter().zip(&gradient).map(product).collect();
        let (by_gradient, size) =
            (products.iter().sum::<f64>(), products.iter().map(|product| product.abs()).sum::<f64>());
        ((sum - by_gradient).abs() <= 1e-9 * size).then_some(gradient)
    };
    let weights = at(&|slot| 1.0 + slot as f64)?;
    let is_same = at(&|slot| 1e3 / (2.0 + slot as f64))? == weights;
    (is_same && weights.iter().all(|weight| weight.is_normal())).then(|| weights.into())
}

/// `None` if there should be a program and is none.
fn all_or_none(program: Option<Option<Program>>) -> Option<Option<Program>> {
    match program {
        None => Some(None),
        Some(program) => program.map(Some),
    }
}

/// The events that are measured, and the names looked up in vain.
struct MeasuredNames<'a> {
    events: &'a [Event],
    /// An event beside which those are counted that are meant by a name that doesn't say how.
    beside: Option<&'a Event>,
    missing: Vec<String>,
    /// The missing names in small letters.
    sought: HashSet<String>,
}

impl MeasuredNames<'_> {
    fn find(&mut self, name: &str) -> Option<usize> {
        let is_beside = |event: &Event| self.beside.is_none_or(|beside| event.may_be_related(beside));
        let is_meant = |event: &Event| event.is_called(name) && (says_how(name) || is_beside(event));
        let found = self.events.iter().position(is_meant);
        if found.is_none() && self.sought.insert(name.to_ascii_lowercase()) {
            self.missing.push(name.to_owned());
        }
        found
    }

    /// `from` is the event that a pair goes out from.
    fn compile(&mut self, expr: &Expr, from: Option<usize>) -> Option<Program> {
        let slot = |Variable { subject, moment }: &Variable| {
            let event = match subject {
                Subject::From => from?,
                Subject::Event(name) => self.find(name)?,
            };
            Some(match moment {
                Moment::Mean => mean_slot(event),
                Moment::Variance => variance_slot(event),
            })
        };
        expr.compile(slot).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

    use super::*;
    use crate::builders;
    use crate::events::{EventKind, Modifiers, Space};
    use crate::relations::parse;

    fn event(name: &str, canonical: &str) -> Event {
        Event { canonical: canonical.to_owned(), ..builders::event(name) }
    }

    /// Events A, B, C and D, of which B is called `b-canonical` too.
    fn events() -> Vec<Event> {
        ["A", "B:u", "C", "D"].map(|name| event(name, &format!("{}-canonical", &name[..1]))).into()
    }

    /// The mean and variance of each of them.
    const VALUES: [f64; 8] = [12.0, 4.0, 5.0, 1.0, 0.25, 0.5, 8.0, 2.0];

    fn bind(object: &str) -> RelationBinding {
        let file = format!("[{object}]");
        parse("f", file.as_bytes()).strict().unwrap().remove(0).bind(&events())
    }

    fn active(object: &str) -> BoundForm {
        match bind(object) {
            RelationBinding::Active(bound) => bound.form,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pairs_read_the_slots_of_their_events() {
        let pair = r#"{ "eventFrom": "d", "eventTo": "b-CANONICAL",
            "expectedMean": 2 * {mean} + {A.mean}, "expectedVariance": {variance} + {C.variance} }"#;
        let BoundForm::Pair(BoundPair { from, to, mean, variance }) = active(pair) else { panic!("a pair") };
        let (mean, variance) = (mean.unwrap(), variance.unwrap());
        assert_eq!((from, to), (3, 1));
        assert_eq!((mean.eval(&VALUES), variance.eval(&VALUES)), (28.0, 2.5));
        assert_eq!(mean.slots(), [mean_slot(0), mean_slot(3)]);
        assert_eq!(variance.slots(), [variance_slot(2), variance_slot(3)]);
        let mut gradient = [0.0; 2];
        mean.eval_with_gradient(&VALUES, &mut gradient);
        assert_eq!(gradient, [1.0, 2.0]);
    }

    #[test]
    fn the_residual_of_an_equation_is_left_minus_right() {
        let BoundForm::Equation(equation) = active(r#"{ "relation": "d * C = A - a + b:u" }"#) else {
            panic!("an equation")
        };
        assert_eq!(equation.events(), [0, 1, 2, 3]);
        assert_eq!((equation.left(&VALUES), equation.size(&VALUES)), (2.0, 5.0));
        assert_eq!(equation.residual(&VALUES), -3.0);
        let mut gradient = [9.0; 4];
        assert_eq!(equation.residual_with_gradient(&VALUES, &mut gradient), -3.0);
        assert_eq!(gradient, [0.0, -1.0, 8.0, 0.25]);
    }

    #[test]
    fn only_sums_are_sums() {
        let weights = |text: &str| match active(&format!(r#"{{ "relation": "{text}" }}"#)) {
            BoundForm::Equation(equation) => equation.sum().map(<[f64]>::to_vec),
            BoundForm::Pair(_) => panic!("an equation"),
        };
        assert_eq!(weights("A = C + 2 * D"), Some(vec![1.0, -1.0, -2.0]));
        assert_eq!(weights("A / 2 = D"), Some(vec![0.5, -1.0]));
        for none in ["A = C * D", "A / C = D", "A = C + 1", "A = max(C, D)"] {
            assert_eq!(weights(none), None, "{none}");
        }
    }

    #[test]
    fn the_size_of_a_sum_is_the_same_however_it_is_written_by_hand() {
        let size = |text: &str| match active(&format!(r#"{{ "relation": "{text}" }}"#)) {
            BoundForm::Equation(equation) => equation.size(&VALUES),
            BoundForm::Pair(_) => panic!("an equation"),
        };
        // (12 + 5 + 8) / 2.
        for text in ["A = B:u + D", "A - B:u = D", "A - B:u - D = 0", "0 = D + B:u - A"] {
            assert_eq!(size(text), 12.5, "{text}");
        }
        // The larger side: 8 x 0.25 and 12.
        assert_eq!((size("D * C = A"), size("A = D * C")), (12.0, 12.0));
    }

    #[test]
    fn events_that_are_not_measured_are_named_once() {
        let missing = |object| match bind(object) {
            RelationBinding::Inactive { missing } => missing,
            other => panic!("{other:?}"),
        };
        assert_eq!(missing(r#"{ "relation": "A + X = y + B-canonical + x" }"#), ["X", "y"]);
        let pair = r#"{ "eventFrom": "F", "eventTo": "G",
            "expectedMean": {mean} + {H.mean}, "expectedVariance": {I.variance} }"#;
        assert_eq!(missing(pair), ["F", "G", "H", "I"]);
    }

    #[test]
    fn names_mean_events_that_are_counted_in_the_same_way() {
        let counted = |name: &str, space: Space| {
            let mut modifiers = Modifiers::default();
            space.apply(&mut modifiers);
            let name = format!("{name}:{}", space.letter());
            Event { modifiers, kind: EventKind::Hardware, ..event(&name, &name[..name.len() - 2]) }
        };
        let (user, kernel) = (Space::User, Space::Kernel);
        let of = |text: &str, events: &[Event]| {
            let file = format!(r#"[{{ "relation": "{text}" }}]"#);
            match parse("f", file.as_bytes()).strict().unwrap().remove(0).bind(events) {
                RelationBinding::Active(bound) => Some(bound.events()),
                _ => None,
            }
        };
        let both = [counted("loads", user), counted("cycles", kernel), counted("loads", kernel)];
        assert_eq!(of("loads = cycles", &both), Some(vec![1, 2]));
        assert_eq!(of("loads = cycles", &both[..2]), None);
        assert_eq!(of("loads:u = cycles:k", &both), Some(vec![0, 1]), "it says so");
        // What only the kernel does has no other place.
        let switches = Event { kind: EventKind::Tracepoint, ..event("switches", "switches") };
        assert_eq!(of("loads = switches", &[counted("loads", user), switches]), Some(vec![0, 1]));
    }

    #[test]
    fn two_names_of_one_event_make_no_relation() {
        let pair = r#"{ "eventFrom": "A", "eventTo": "a-canonical", "expectedMean": {mean} }"#;
        assert!(matches!(bind(pair), RelationBinding::SelfRelation { event: 0 }));
    }
}
