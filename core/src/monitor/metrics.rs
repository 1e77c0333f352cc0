//! Computes metrics over a monitor's events: of the run, of the last interval and of those before.

use super::{Monitor, Point, Row};
use crate::metrics::{Derived, NoValue, Number, ThresholdVerdict};
use crate::plan::{EventIndex, RowIndex, RowLayout};
use crate::rates::Uncertain;
use crate::run::{Header, MetricFormula};
use crate::sources::Scope;

/// A metric of one part of the target.
#[derive(Clone, Copy)]
pub struct MetricRow<'a> {
    monitor: &'a Monitor,
    /// Definition of the metric.
    pub definition: &'a MetricFormula,
    derived: &'a Derived,
    layout: RowLayout,
    /// The part of the target.
    part: usize,
}

/// The metrics of a header; one whose formula can't be read, as no writer leaves it, is left out.
pub(super) fn derived(header: &Header) -> Vec<(usize, Derived)> {
    let metrics = header.metrics.iter().enumerate();
    metrics.filter_map(|(index, metric)| Some((index, Derived::new(metric).ok()?))).collect()
}

impl Monitor {
    /// The metrics, for each part of the target in turn.
    pub fn metrics(&self) -> impl Iterator<Item = MetricRow<'_>> {
        let layout = self.header().layout();
        (0..layout.parts()).flat_map(move |part| self.metrics_of_part(layout, part))
    }

    /// The metrics that stand with an event.
    pub fn metrics_of(&self, event: RowIndex) -> impl Iterator<Item = MetricRow<'_>> {
        let layout = self.header().layout();
        let part = layout.split(event).map(|(_, part)| part);
        let metrics = part.into_iter().flat_map(move |part| self.metrics_of_part(layout, part));
        metrics.filter(move |metric| metric.leader() == event)
    }

    fn metrics_of_part(&self, layout: RowLayout, part: usize) -> impl Iterator<Item = MetricRow<'_>> {
        self.derived.iter().map(move |(index, derived)| {
            let definition = &self.header().metrics[*index];
            MetricRow { monitor: self, definition, derived, layout, part }
        })
    }
}

impl<'a> MetricRow<'a> {
    /// Name of the metric, with the part of the target where that isn't all of it.
    pub fn title(&self) -> String {
        match self.scope() {
            None | Some(Scope::All) => self.definition.name.clone(),
            Some(scope) => format!("{scope} {}", self.definition.name),
        }
    }

    /// What the threshold says, in words: `over 5%`, `fine`; empty where it says nothing.
    pub fn verdict(&self, verdict: ThresholdVerdict) -> String {
        match verdict {
            ThresholdVerdict::Noticeable => self.definition.limit().unwrap_or_else(|| verdict.word().to_owned()),
            _ => verdict.word().to_owned(),
        }
    }

    /// Why there is no value, in words.
    pub fn why(&self, none: NoValue) -> String {
        match none {
            NoValue::Undefined => "divided by zero".to_owned(),
            NoValue::NotCounted(event) => {
                let row = self.monitor.row(self.row(event));
                format!("{}: {}", row.event.event.name, row.absence.map_or("not counted", |absence| absence.words()))
            }
        }
    }

    fn scope(&self) -> Option<&'a Scope> {
        self.monitor.header().events.get(self.row(EventIndex(0))).map(|event| &event.scope)
    }

    /// The row of one of its events, which it names by their places in each part of the target.
    fn row(&self, event: EventIndex) -> RowIndex {
        self.layout.row(event, self.part)
    }

    /// The event that it stands with: the first of its formula, else the first of all.
    pub fn leader(&self) -> RowIndex {
        self.row(self.derived.events().next().unwrap_or(EventIndex(0)))
    }

    /// Value of the metric over the whole run.
    ///
    /// # Errors
    /// Returns why there is no value.
    pub fn over_run(&self) -> Result<Number, NoValue> {
        let time = self.monitor.shown_time_counted();
        self.value(|row| row.best(), time.as_secs())
    }

    /// Value of the metric where each event's count is what `count` says, in a time of so many seconds.
    ///
    /// # Errors
    /// Returns why there is no value.
    pub fn value(&self, count: impl Fn(Row<'a>) -> Option<Uncertain>, seconds: f64) -> Result<Number, NoValue> {
        let events = self.monitor.header().events.len();
        let row = |event: EventIndex| Some(self.row(event)).filter(|&row| row < events);
        self.derived.value(|event| count(self.monitor.row(row(event)?)), seconds)
    }

    /// Value of the metric in the interval that ended last.
    ///
    /// # Errors
    /// Returns why there is no value.
    pub fn over_interval(&self) -> Result<Number, NoValue> {
        self.interval(0)
    }

    /// Value of the metric in the interval `back` intervals before the last.
    ///
    /// # Errors
    /// Returns why there is no value.
    pub fn interval(&self, back: usize) -> Result<Number, NoValue> {
        // Of an event that hasn't been on a counter nothing is known, also where no time passed for it.
        let point = |row: &Row<'a>| row.newest().and(row.history.get(row.history.len().checked_sub(back + 1)?));
        let seconds = point(&self.monitor.row(self.leader())).map_or(0.0, |point| point.length.as_secs());
        self.value(|row| point(&row).and_then(Point::best), seconds)
    }
}
