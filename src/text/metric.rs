//! Formats the metrics that stand with an event, for texts and files.

use serde_json::{Map, Value};

use super::perf_metric::DerivedMetric;
use super::repeats::{Repeats, SummarySpread};
use super::summary::spread_text;
use crate::events::Unit;
use crate::metrics::{NoValue, Number, ThresholdVerdict};
use crate::monitor::{MetricRow, Monitor, Row};
use crate::names::shown;
use crate::number::{fixed, plain, plus_minus_sides};

/// The keys that only lines of metrics fill, beside those that perf's own metrics have.
pub(super) const NO_METRIC_KEYS: [&str; 3] = ["metric-ci-lo", "metric-ci-hi", "metric-status"];

/// A metric with its value over the time that is printed.
pub(super) struct PrintedMetric {
    /// Name of the metric behind its unit, as perf prints them: `%  branch_miss_rate`.
    pub(super) label: String,
    pub(super) number: Result<Number, NoValue>,
    /// What the threshold says of it.
    verdict: String,
    /// Why there is no number.
    why: String,
    /// The standard deviation between runs, as a part of the value.
    spread: Option<f64>,
}

impl PrintedMetric {
    /// Beside an event whose line says of which part of the target it is.
    fn beside_event(row: &MetricRow<'_>, number: Result<Number, NoValue>) -> Self {
        Self::new(row, &row.definition.name, number)
    }

    fn new(row: &MetricRow<'_>, name: &str, number: Result<Number, NoValue>) -> Self {
        let unit = &row.definition.unit;
        let gap = if unit.is_empty() { "" } else { "  " };
        let label = format!("{}{gap}{}", shown(unit), shown(name));
        let why = number.err().map_or_else(String::new, |none| shown(&row.why(none)).into_owned());
        let verdict = number.map_or_else(|_| String::new(), |number| verdict(row, number.verdict));
        Self { label, number, verdict, why, spread: None }
    }

    /// What perf's fields for metrics hold.
    pub(super) fn field(&self) -> Option<DerivedMetric> {
        let number = self.number.as_ref().ok()?;
        Some(DerivedMetric::new(number.value, self.label.clone()))
    }

    /// `# value unit  name ±error`, and what its threshold says.
    pub(super) fn text(&self) -> String {
        match &self.number {
            Ok(number) => {
                let error = plus_minus_sides(number.uncertain(), &Unit::Count);
                let spread = self.spread.map_or_else(String::new, |spread| format!("  {}", spread_text(spread)));
                format!("# {:>9} {}  {error}{spread}{}", fixed(number.value, 3), self.label, self.verdict)
            }
            Err(_) => format!("# {:>9} {}  ({})", "—", self.label, self.why),
        }
    }

    /// The fields behind all others: the ends of its interval, what its threshold says.
    pub(super) fn our_fields(&self) -> [String; 3] {
        let Ok(number) = &self.number else { return [String::new(), String::new(), self.why.clone()] };
        let [low, high] = bounds(number).map(|bound| bound.map_or_else(String::new, |bound| plain(bound, 3)));
        [low, high, number.verdict.word().to_owned()]
    }

    /// Adds the metrics to a JSON object, as keys.
    pub(super) fn keys(&self, line: &mut Map<String, Value>) {
        let number = self.number.as_ref().ok();
        let [low, high] = number.map_or([None; 2], bounds);
        line.insert("metric-value".into(), number.map(|number| number.value).into());
        line.insert("metric-unit".into(), self.label.clone().into());
        line.insert("metric-ci-lo".into(), low.into());
        line.insert("metric-ci-hi".into(), high.into());
        let words = number.map_or(self.why.as_str(), |number| number.verdict.word());
        line.insert("metric-status".into(), Some(words).filter(|words| !words.is_empty()).into());
    }
}

/// The ends of its interval, lowest and highest.
fn bounds(number: &Number) -> [Option<f64>; 2] {
    let bounds = number.uncertain().bounds();
    [bounds.map(|(low, _)| low), bounds.map(|(_, high)| high)]
}

/// A glyph and a word; nothing where there is no threshold.
fn verdict(metric: &MetricRow<'_>, verdict: ThresholdVerdict) -> String {
    let words = metric.verdict(verdict);
    match verdict {
        ThresholdVerdict::Unjudged => String::new(),
        ThresholdVerdict::Fine => format!("  ● {words}"),
        ThresholdVerdict::Noticeable => format!("  ▲ {words}"),
    }
}

/// The metrics that stand with the event of `row`, over whole runs.
pub(super) fn over_runs(runs: &Repeats<'_>, monitor: &Monitor, row: &Row<'_>) -> Vec<PrintedMetric> {
    let metrics = monitor.metrics_of(row.index).enumerate();
    metrics.map(|(place, metric)| of_runs(runs, row, place, &metric)).collect()
}

/// The metric over several runs: the value of their mean counts.
fn of_runs(runs: &Repeats<'_>, row: &Row<'_>, place: usize, metric: &MetricRow<'_>) -> PrintedMetric {
    if runs.0.len() == 1 {
        return PrintedMetric::beside_event(metric, metric.over_run());
    }
    let each = runs.0.iter().filter_map(|run| run.metrics_of(row.index).nth(place)?.over_run().ok());
    let values: Vec<_> = each.map(|number| number.value).collect();
    let seconds = runs.0.iter().map(|run| run.counted_for().as_secs()).sum::<f64>() / runs.0.len() as f64;
    let number = metric.value(|row| runs.best(row.index), seconds);
    PrintedMetric { spread: SummarySpread::of(&values).relative(), ..PrintedMetric::beside_event(metric, number) }
}

/// The metrics that stand with the event of `row`, over the interval that ended last.
pub(super) fn over_interval(monitor: &Monitor, row: &Row<'_>) -> Vec<PrintedMetric> {
    monitor.metrics_of(row.index).map(|metric| PrintedMetric::beside_event(&metric, metric.over_interval())).collect()
}

/// Formats all metrics over the run.
pub(super) fn all(monitor: &Monitor) -> Vec<PrintedMetric> {
    monitor.metrics().map(|metric| PrintedMetric::new(&metric, &metric.title(), metric.over_run())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::Error;

    #[test]
    fn numbers_of_hundreds_of_digits_are_short_for_people_only() {
        let number = Number { value: 1.5e300, error: Error::Exact, verdict: ThresholdVerdict::Unjudged };
        let none = String::new;
        let metric =
            PrintedMetric { label: "x".into(), number: Ok(number), verdict: none(), why: none(), spread: None };
        assert_eq!(metric.text(), "#  1.50e300 x  exact");
        assert_eq!(metric.our_fields()[0], "1.5e300");
    }
}
