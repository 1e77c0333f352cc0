//! Checks the objects of a relation file that define metrics, and makes metrics of them.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::check::{Checker, DeclaredKey, Fields};
use super::syntax::{KeyValue, Object};
use crate::expr::{Dialect, Expr, parse};
use crate::metrics::{Catalog, ExpansionError, Grouping, Metric, MetricScale, list};
use crate::names::quoted;

impl Checker<'_> {
    /// A metric, of which `key` is the first thing that only metrics have.
    pub(super) fn metric(
        &mut self,
        object: &Object<'_>,
        fields: &Fields<'_>,
        id: &str,
        key: DeclaredKey,
        value: &KeyValue<'_>,
    ) -> Option<Metric> {
        let other = DeclaredKey::ALL
            .into_iter()
            .find_map(|(key, _)| Some((key, fields.get(key)?)).filter(|_| !key.is_of_metrics()));
        if let Some((of_relation, value)) = other {
            let message = format!("{} belongs to a relation, {} to a metric", of_relation.name(), key.name());
            return self.wrong(value.offset, message, "an object is one or the other", None);
        }
        let name = self.event(fields, DeclaredKey::Metric);
        let formula = self.metric_expression(fields, DeclaredKey::Formula);
        let threshold = self.metric_expression(fields, DeclaredKey::Threshold);
        let scale = self.read(fields, DeclaredKey::ScaleUnit, "a number and a unit, as in 100%", MetricScale::parse);
        let words = Grouping::ALL.map(|(_, word)| word).join(", ");
        let grouping = self.read(fields, DeclaredKey::Grouping, &words, |text| {
            Grouping::ALL.into_iter().find(|(_, word)| *word == text).map(|(grouping, _)| grouping)
        });
        let description = self.read(fields, DeclaredKey::Description, "text", |text| Some(text.to_owned()));
        let groups = self.read(fields, DeclaredKey::Groups, "names", |text| Some(list(text)));
        let apart_in = self.read(fields, DeclaredKey::ApartIn, "names", |text| Some(list(text)));
        for (key, what) in [(DeclaredKey::Metric, "metric is missing"), (DeclaredKey::Formula, "formula is missing")] {
            if fields.are_all && fields.get(key).is_none() {
                return self.wrong(value.offset.min(object.offset), what, "not in this metric", None);
            }
        }
        let name = name.filter(|name| name == id)?;
        let metric = Metric {
            name,
            formula: formula??,
            scale: scale?.unwrap_or_default(),
            groups: groups?.unwrap_or_default(),
            threshold: threshold?,
            description: description?.unwrap_or_default(),
            grouping: grouping?.unwrap_or_default(),
            apart_in: apart_in?.unwrap_or_default(),
        };
        fields.are_all.then_some(metric)
    }

    /// The expression at `key`: `Some(None)` if it isn't given, `None` if it is wrong.
    fn metric_expression(&mut self, fields: &Fields<'_>, key: DeclaredKey) -> Option<Option<Expr>> {
        match fields.get(key) {
            None => Some(None),
            Some(value) => self.parsed(value, parse(&value.text, Dialect::Metric)).map(Some),
        }
    }

    /// The string at `key`: `Some(None)` if it isn't given, `None` if it is wrong.
    fn read<T>(
        &mut self,
        fields: &Fields<'_>,
        key: DeclaredKey,
        expected: &str,
        make: impl FnOnce(&str) -> Option<T>,
    ) -> Option<Option<T>> {
        let Some(value) = fields.get(key) else { return Some(None) };
        match make(value.text.trim()).filter(|_| value.is_quoted) {
            Some(read) => Some(Some(read)),
            None => {
                let message = format!("expected {expected} in quotes for {}", key.name());
                self.wrong(value.offset, message, format!("{} here", quoted(value.text.trim())), None)
            }
        }
    }

    /// The objects of metrics that the file computes from themselves.
    pub(super) fn endless(&mut self, objects: &[Object<'_>], metrics: &[(usize, Metric)]) -> BTreeSet<usize> {
        let catalog = Catalog::new(metrics.iter().map(|(_, metric)| metric.clone()));
        let places: HashMap<&str, usize> =
            metrics.iter().map(|(index, metric)| (metric.name.as_str(), *index)).collect();
        let mut endless = BTreeSet::new();
        // Of metrics that go round together, each would bring the same message; the first says it.
        let mut told = HashSet::new();
        for (place, error) in catalog.endless() {
            let metric = &catalog.metrics()[place];
            let Some(&index) = places.get(metric.name.as_str()) else { continue };
            endless.insert(index);
            let around: Vec<String> = match &error {
                ExpansionError::Cycle(chain) => chain.clone(),
                _ => vec![metric.name.clone()],
            };
            if around.iter().any(|name| told.contains(name)) {
                continue;
            }
            told.extend(around);
            self.object = index;
            let formula = objects[index]
                .entries
                .iter()
                .find(|entry| DeclaredKey::named(&entry.key.text) == Some(DeclaredKey::Formula));
            let offset = formula.and_then(|entry| entry.value.as_ref()).map_or(0, |value| value.offset);
            let (message, label) = (format!("{} can't be computed", quoted(&metric.name)), error.to_string());
            self.wrong::<()>(offset, message, label, None);
        }
        endless
    }
}
