//! Collects the metrics that exist here, and selects those that were asked for.

use super::Error;
use crate::events::Tables;
use crate::expr::Fact;
use crate::metrics::vendor::Vendor;
use crate::metrics::{Catalog, Facts, Formulas, Metric, MetricRequest};
use crate::names::{first_of, shown};
use crate::relations::{self, Relation};

/// How many metrics that can't be measured are named.
const MOST_NAMED: usize = 3;

/// What is known of the machine.
type Know<'a> = dyn Fn(&Fact) -> Option<f64> + 'a;

/// The metrics of relation files, of the event tables, and perfprop's own, in this order: of several
/// with one name the first holds.
///
/// # Errors
/// When perfprop's own metrics are wrong, which its tests rule out.
pub fn catalog(of_files: &[Metric], tables: &Tables, note: &mut dyn FnMut(&str)) -> Result<Catalog, Error> {
    let vendor = Vendor::of_tables(tables);
    note_problems(&vendor, note);
    let shipped = relations::shipped_metrics().map_err(|wrong| Error::Relations(vec![wrong]))?;
    Ok(Catalog::new(of_files.iter().cloned().chain(vendor.metrics).chain(shipped)))
}

/// Notes the metrics of a table that can't be read.
pub fn note_problems(vendor: &Vendor, note: &mut dyn FnMut(&str)) {
    for problem in &vendor.problems {
        note(problem);
    }
    if vendor.untold > 0 {
        note(&format!("and {} more metrics that can't be read", vendor.untold));
    }
}

/// Resolves the values of `-M` to metrics and their events; `all_apart` leaves those ungrouped.
pub(super) fn request(
    names: &[String],
    catalog: &Catalog,
    facts: &Facts<'_>,
    all_apart: bool,
    note: &mut dyn FnMut(&str),
) -> Result<MetricRequest, Error> {
    let request = MetricRequest::new(names, catalog, facts).map_err(Error::Metrics)?;
    let request = if all_apart { request.apart() } else { request };
    if let [first, ..] = request.skipped.as_slice() {
        let names = first_of(request.skipped.iter().map(|skipped| shown(&skipped.name)), MOST_NAMED);
        note(&format!("without {names}, which can't be measured here; {}: {}", shown(&first.name), first.reason));
    }
    Ok(request)
}

/// The metrics that equations name, as they are on this machine: without facts and other metrics.
pub(super) fn named(relations: &[Relation], catalog: &Catalog, know: &Know<'_>) -> Vec<Metric> {
    let is_named = |metric: &&Metric| relations.iter().any(|relation| relation.names(&metric.name));
    let mut formulas = catalog.formulas(know);
    let whole = |metric: &Metric| {
        let formula = formulas.expand(&metric.formula).ok()?;
        Some(Metric { formula, threshold: None, ..metric.clone() })
    };
    catalog.metrics().iter().filter(is_named).filter_map(whole).collect()
}

/// The relations with formulas in place of the names of metrics.
pub(super) fn expanded(relations: Vec<Relation>, catalog: &Catalog, know: &Know<'_>) -> Result<Vec<Relation>, Error> {
    let mut formulas = catalog.formulas(know);
    let expand = |relation: Relation| {
        relation.expanded(&mut formulas).map_err(|error| {
            let id = shown(&relation.id).into_owned();
            Error::Options(format!("the relation {id} ({}) names a metric that has no value: {error}", relation.place))
        })
    };
    relations.into_iter().map(expand).collect()
}

/// Why a metric can't be measured here, as far as names show it; `None` if its events are known.
pub fn refusal(metric: &Metric, formulas: &mut Formulas<'_>, facts: &Facts<'_>) -> Option<String> {
    let refusal = MetricRequest::refusal(metric, formulas, facts)?;
    Some(shown(&refusal).into_owned())
}
