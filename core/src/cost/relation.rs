//! Writes fitted models as relations between events.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Value, json};

use super::emit::identifier;
use super::fit::Fit;
use super::model::CostModel;
use super::workload::TIME;
use crate::expr::{Subject, escaped_name};
use crate::names::quoted;
use crate::number::shortest;

/// A fitted model as a relation between events: the fitted event as a function of other ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedRelation {
    /// The event that was fitted.
    response: String,
    /// The equation.
    equation: String,
    /// The root of the mean square of the parts by which the model was off.
    tolerance: String,
}

impl FittedRelation {
    /// The relation that a fit of this model found.
    ///
    /// # Errors
    /// Returns why events can't be related so: relations are of rates, which know no sizes and no constant.
    pub fn new(fit: &Fit, model: &CostModel) -> Result<Self, NoRelation> {
        let fitted = &fit.fitted;
        if fitted.response == TIME {
            return Err(NoRelation::OfTime);
        }
        let values = fitted.values();
        if let Some(size) =
            model.names().into_iter().find(|name| !values.contains_key(*name) && !fitted.quantities.contains_key(*name))
        {
            return Err(NoRelation::Size(size.to_owned()));
        }
        let at_nothing =
            |name: &str| if fitted.quantities.contains_key(name) { Some(0.0) } else { values.get(name).copied() };
        let constant = model.value(at_nothing).unwrap_or(f64::NAN);
        if constant != 0.0 {
            return Err(NoRelation::Constant(constant));
        }
        // No measurement has more digits.
        let rounded = |value: f64| format!("{value:.8e}").parse().unwrap_or(value);
        let number = |value: f64| if value < 0.0 { format!("(0 - {})", shortest(-value)) } else { shortest(value) };
        let text = model.expression().text_with(|variable| match &variable.subject {
            Subject::Event(name) => match (values.get(name), fitted.quantities.get(name)) {
                (Some(value), _) => number(rounded(*value)),
                (None, quantity) => escaped_name(quantity.unwrap_or(name)),
            },
            Subject::From => String::new(),
        });
        let off = fit.points.iter().map(|point| (point.predicted / point.measured - 1.0).powi(2));
        let tolerance = (off.filter(|off| off.is_finite()).sum::<f64>() / fit.points.len().max(1) as f64).sqrt();
        Ok(Self {
            response: fitted.response.clone(),
            equation: format!("{} = {text}", escaped_name(&fitted.response)),
            tolerance: format!("{:.2}%", 100.0 * tolerance.clamp(0.0001, 1.0)),
        })
    }

    fn to_json(&self, id: &str) -> Value {
        json!({ "id": id, "relation": self.equation, "tolerance": self.tolerance })
    }
}

/// Relations, each behind the name of what it was fitted to, as the file that `top` and other verbs load. The names tell them apart
/// where there are several.
pub fn emit_relations(relations: &[(&str, &FittedRelation)]) -> String {
    let mut taken = HashSet::new();
    let all = relations.iter().map(|(name, relation)| {
        let mut id = format!("fitted-{}", identifier(&relation.response));
        if relations.len() > 1 {
            id = format!("{id}-{}", identifier(name));
        }
        // Other names may be the same as an id.
        let id = (1..)
            .map(|count| if count == 1 { id.clone() } else { format!("{id}-{count}") })
            .find(|id| taken.insert(id.clone()));
        relation.to_json(&id.unwrap_or_default())
    });
    let all = Value::Array(all.collect());
    serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
}

/// Why a fitted model is no relation between events.
#[derive(Clone, Debug, PartialEq)]
pub enum NoRelation {
    /// It is a model of time.
    OfTime,
    /// It names a size.
    Size(String),
    /// It has a value where all events are 0.
    Constant(f64),
}

impl fmt::Display for NoRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfTime => {
                f.write_str("a relation is between events, and time is none: fit an event (--response EVENT)")
            }
            Self::Size(name) => {
                write!(
                    f,
                    "a relation is between events, and {} is a size: name events that were measured instead",
                    quoted(name)
                )
            }
            Self::Constant(value) => {
                write!(
                    f,
                    "a relation holds for rates, which have no constant, and this is {} without any event: leave the constant out",
                    shortest(*value)
                )
            }
        }
    }
}

impl std::error::Error for NoRelation {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_relations_are_unique() {
        let ids = |relations: &[(&str, &FittedRelation)]| -> Vec<String> {
            let text = emit_relations(relations);
            let parsed = crate::relations::parse("", text.as_bytes()).strict();
            parsed
                .map(|all| all.into_iter().map(|one| one.id).collect())
                .unwrap_or_else(|wrong| vec![wrong.to_string()])
        };
        let faults = FittedRelation {
            response: "page-faults".into(),
            equation: "page-faults = 2 * b".into(),
            tolerance: "1.00%".into(),
        };
        assert_eq!(ids(&[("walk", &faults)]), ["fitted-page_faults"]);
        let same = ["a-b", "a_b", "a_b", "c \u{1b}\""].map(|name| (name, &faults));
        let expected = ["", "-2", "-3"].map(|end| format!("fitted-page_faults-a_b{end}"));
        assert_eq!(ids(&same)[..3], expected);
        assert_eq!(ids(&same)[3], "fitted-page_faults-c___");
    }
}
