//! Converts relations to objects of a relation file with the place they were written, and back.

use serde::{Deserialize, Serialize};

use super::{Relation, RelationForm, TextPlace, Tolerance, Weight, parse};
use crate::metrics::{Grouping, Metric};

/// A metric as an object of a relation file, on one line.
pub(super) fn metric(metric: &Metric) -> String {
    let mut line = serde_json::Map::new();
    let mut put = |key: &str, text: String| {
        if !text.is_empty() {
            line.insert(key.to_owned(), text.into());
        }
    };
    put("metric", metric.name.clone());
    put("formula", metric.formula.to_string());
    put("scaleUnit", metric.scale.to_string());
    put("groups", metric.groups.join(";"));
    put("threshold", metric.threshold.as_ref().map_or_else(String::new, ToString::to_string));
    put("grouping", if metric.grouping == Grouping::Together { "" } else { metric.grouping.word() }.to_owned());
    put("apartIn", metric.apart_in.join(";"));
    put("description", metric.description.clone());
    format!("  {}", serde_json::Value::Object(line))
}

/// A relation as recordings have it: strict JSON with the keys of relation files, and its place.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Saved {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event_from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event_to: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_mean: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expected_variance: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    relation: Option<String>,
    weight: Weight,
    tolerance: Tolerance,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<TextPlace>,
}

impl From<Relation> for Saved {
    fn from(saved: Relation) -> Self {
        let Relation { id, form, weight, tolerance, place } = saved;
        let (mut event_from, mut event_to, mut relation) = (None, None, None);
        let (mut expected_mean, mut expected_variance) = (None, None);
        match form {
            RelationForm::Equation { left, right } => relation = Some(format!("{left} = {right}")),
            RelationForm::Pair { from, to, expected_mean: mean, expected_variance: variance } => {
                (event_from, event_to) = (Some(from), Some(to));
                expected_mean = mean.map(|expr| expr.to_string());
                expected_variance = variance.map(|expr| expr.to_string());
            }
        }
        let place = Some(place);
        Self { id, event_from, event_to, expected_mean, expected_variance, relation, weight, tolerance, place }
    }
}

impl TryFrom<Saved> for Relation {
    type Error = String;

    /// By way of the text of a file, so that nothing gets in that no file can say.
    fn try_from(mut saved: Saved) -> Result<Self, String> {
        let place = saved.place.take().ok_or("a relation without its place")?;
        let text = serde_json::to_string(&[saved]).map_err(|error| error.to_string())?;
        let relations = parse(&place.file, text.as_bytes()).strict().map_err(|wrong| {
            let messages = wrong.list.into_iter().map(|diagnostic| diagnostic.message);
            messages.collect::<Vec<_>>().join("; ")
        })?;
        let relation = relations.into_iter().next().ok_or("no relation")?;
        Ok(Self { place, ..relation })
    }
}
