//! Resolves `-M` to the events to count and the metrics over them.

use std::collections::BTreeMap;
use std::fmt;

use super::derived::DURATION;
use super::{Catalog, Facts, Formulas, Grouping, Metric, list};
use crate::codes::{Coded, ErrorCode};
use crate::events::{Event, Group, GroupBinding};
use crate::expr::{Expr, Fact};
use crate::host::HostFiles;
use crate::names::{glob, shown};
use crate::plan::{EventIndex, Fit, Plan};
use crate::run::MetricFormula;

/// Metrics that were asked for, with the events that they need.
#[derive(Debug, Default)]
pub struct MetricRequest {
    wanted: Vec<ResolvedMetric>,
    /// Metrics that a pattern or group means too, but that this machine can't measure.
    pub skipped: Vec<Skipped>,
}

/// A metric over events of this machine.
#[derive(Debug)]
struct ResolvedMetric {
    metric: Metric,
    /// Formula without names of metrics and facts.
    formula: Expr,
    threshold: Option<Expr>,
    /// What each name in the formula stands for; several units may count one event.
    events: Vec<(String, Vec<Event>)>,
    is_apart: bool,
}

/// A metric that isn't measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Name of the metric.
    pub name: String,
    /// Why this machine can't measure it.
    pub reason: String,
}

/// Names that mean no metric, and metrics that can't be measured here; [`fmt::Display`] gives the
/// whole message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// A name and what is similar.
    names: Vec<(String, Vec<String>)>,
    impossible: Vec<Skipped>,
}

impl std::error::Error for Unknown {}

impl Coded for Unknown {
    fn code(&self) -> Option<ErrorCode> {
        Some(ErrorCode::E13)
    }

    fn problems(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, similar) in &self.names {
            let help = match similar.as_slice() {
                [] => "all: perfprop list metric".to_owned(),
                similar => format!("did you mean {}?   all: perfprop list metric", shown(&similar.join(", "))),
            };
            lines.push(format!("unknown metric '{}'\n      {help}", shown(name)));
        }
        for Skipped { name, reason } in &self.impossible {
            lines.push(format!("the metric {} can't be measured here: {reason}", shown(name)));
        }
        lines
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems().join("\n"))
    }
}

/// What metrics are made from.
struct MetricMaker<'f, 'a> {
    formulas: &'f mut Formulas<'a>,
    facts: &'f Facts<'f>,
    has_watchdog: bool,
}

/// The names in a wish: all of it where that is a metric, as those of vendors' tables may have commas.
fn names_in(wish: &str, catalog: &Catalog) -> Vec<String> {
    let whole = catalog.find(wish.trim()).map(|metric| vec![metric.name.clone()]);
    whole.unwrap_or_else(|| list(wish))
}

impl MetricRequest {
    /// Finds the metrics that each of `wishes` requests, `IPC,Topdown*`: by name, pattern or group.
    ///
    /// # Errors
    /// Names that mean nothing; metrics asked for by name whose events aren't known here, or all of a
    /// pattern or group.
    pub fn new(wishes: &[String], catalog: &Catalog, facts: &Facts<'_>) -> Result<Self, Unknown> {
        let has_watchdog = HostFiles::here().has_watchdog();
        let know = |fact: &Fact| facts.know(fact);
        let mut maker = MetricMaker { formulas: &mut catalog.formulas(&know), facts, has_watchdog };
        let mut request = Self::default();
        let mut unknown = Unknown::default();
        for wish in wishes.iter().flat_map(|wish| names_in(wish, catalog)) {
            let metrics = catalog.select(&wish);
            if metrics.is_empty() {
                unknown.names.push((wish.clone(), catalog.similar(&wish)));
            }
            request.add(&mut maker, &wish, &metrics, &mut unknown);
        }
        if unknown == Unknown::default() { Ok(request) } else { Err(unknown) }
    }

    /// The request without groups: the events of each metric are counted whenever there is room.
    pub fn apart(mut self) -> Self {
        self.wanted.iter_mut().for_each(|wanted| wanted.is_apart = true);
        self
    }

    fn add(&mut self, maker: &mut MetricMaker<'_, '_>, wish: &str, metrics: &[&Metric], unknown: &mut Unknown) {
        let mut failed = Vec::new();
        for metric in metrics {
            if self.wanted.iter().any(|wanted| wanted.metric.name == metric.name) {
                continue;
            }
            match maker.make(metric, wish) {
                Ok(wanted) => self.wanted.push(wanted),
                Err(reason) => failed.push(Skipped { name: metric.name.clone(), reason }),
            }
        }
        // One that was named must not be left out, nor all that a pattern means.
        let list = if failed.len() == metrics.len() { &mut unknown.impossible } else { &mut self.skipped };
        list.extend(failed);
    }

    /// Why a metric can't be measured here, as far as names show it: an event isn't known, or the machine
    /// has no code for it. `None` if there is nothing against it.
    pub fn refusal(metric: &Metric, formulas: &mut Formulas<'_>, facts: &Facts<'_>) -> Option<String> {
        match (MetricMaker { formulas, facts, has_watchdog: false }).events(metric) {
            Ok(events) => events.iter().flat_map(|(_, events)| events).find_map(Event::unavailable),
            Err(reason) => Some(reason),
        }
    }

    /// The names of the events that a metric needs here; empty where it can't be computed.
    pub fn events_of(metric: &Metric, formulas: &mut Formulas<'_>) -> Vec<String> {
        formulas.needs(&metric.formula).map(|needs| needs.events).unwrap_or_default()
    }

    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// Adds the events of the metrics to those that the user wrote. `fit` tries whether events can be
    /// counted at the same time.
    ///
    /// What is counted already is not counted again, unless a metric's events would then be counted at
    /// different times. Free events that a metric needs are drawn into its group.
    pub fn add_to(&self, mut groups: Vec<Group>, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Vec<Group> {
        let mut order: Vec<&ResolvedMetric> = self.wanted.iter().collect();
        // Large groups first: small ones are often parts of them.
        order.sort_by_key(|wanted| std::cmp::Reverse(wanted.hardware().count()));
        for wanted in order {
            let hardware: Vec<&Event> = wanted.hardware().collect();
            let is_together = !wanted.is_apart && hardware.len() > 1;
            if is_together && !together(&groups, &hardware) {
                join(&mut groups, &hardware, fit);
            }
            for event in wanted.all() {
                if !groups.iter().any(|group| has(group, event)) {
                    groups.push(Group { name: None, events: vec![event.clone()], binding: GroupBinding::Free });
                }
            }
        }
        groups
    }

    /// The metrics over the events of a plan that has those of [`add_to`](Self::add_to).
    pub fn recorded(&self, plan: &Plan) -> Vec<MetricFormula> {
        self.wanted.iter().map(|wanted| wanted.recorded(plan)).collect()
    }
}

impl MetricMaker<'_, '_> {
    /// What each name in a metric's formula stands for.
    fn events(&mut self, metric: &Metric) -> Result<Vec<(String, Vec<Event>)>, String> {
        let needs = self.formulas.needs(&metric.formula).map_err(|error| error.to_string())?;
        if let Some(fact) = needs.facts.first() {
            return Err(format!("this machine doesn't tell {}", shown(&fact.to_string())));
        }
        let mut events: Vec<(String, Vec<Event>)> = Vec::new();
        let mut missing: Vec<String> = Vec::new();
        for name in needs.events.into_iter().filter(|name| name != DURATION) {
            match self.facts.events(&name) {
                found if found.is_empty() => missing.push(name),
                found => events.push((name, found)),
            }
        }
        if missing.is_empty() {
            return Ok(events);
        }
        Err(format!("there is no event {}", shown(&missing.join(", "))))
    }

    fn make(&mut self, metric: &Metric, wish: &str) -> Result<ResolvedMetric, String> {
        let events = self.events(metric)?;
        let formula = self.formulas.expand(&metric.formula).map_err(|error| error.to_string())?;
        let threshold = metric.threshold.as_ref().and_then(|threshold| self.formulas.expand(threshold).ok());
        let is_apart = self.is_apart(metric, wish);
        Ok(ResolvedMetric { metric: metric.clone(), formula, threshold, events, is_apart })
    }

    fn is_apart(&self, metric: &Metric, wish: &str) -> bool {
        let wish = wish.to_lowercase();
        let by_group = metric.apart_in.iter().any(|group| glob::matches(&wish, &group.to_lowercase()));
        by_group
            || match metric.grouping {
                Grouping::Together => false,
                Grouping::Apart => true,
                Grouping::ApartUnderWatchdog => self.has_watchdog,
                Grouping::ApartUnderSmt => self.facts.has_smt(),
            }
    }
}

impl ResolvedMetric {
    fn all(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().flat_map(|(_, events)| events)
    }

    /// What takes a counter of the core, each once.
    fn hardware(&self) -> impl Iterator<Item = &Event> {
        let mut seen: Vec<&Event> = Vec::new();
        let counts = |event: &&Event| !event.kind.is_software() && event.unavailable().is_none();
        for event in self.all().filter(counts) {
            if !seen.iter().any(|known| known.identity() == event.identity()) {
                seen.push(event);
            }
        }
        seen.into_iter()
    }

    fn recorded(&self, plan: &Plan) -> MetricFormula {
        let is = |index: EventIndex, event: &Event| plan.events[index.0].identity() == event.identity();
        let hardware: Vec<&Event> = self.hardware().collect();
        // Of the readings of anchors no number is made.
        let mut groups = plan.groups.iter().map(|group| group.members.iter().filter_map(|member| member.event()));
        // Events may be counted in several groups: the one that has all of them is the metric's own.
        let own = groups.find(|group| hardware.iter().all(|event| group.clone().any(|index| is(index, event))));
        let all = || own.clone().into_iter().flatten().chain((0..plan.events.len()).map(EventIndex));
        let place = |event: &Event| all().find(|&index| is(index, event));
        let places = |events: &[Event]| events.iter().filter_map(place).collect::<Vec<_>>();
        let events: BTreeMap<_, _> = self.events.iter().map(|(name, events)| (name.clone(), places(events))).collect();
        MetricFormula {
            name: self.metric.name.clone(),
            formula: self.formula.to_string(),
            threshold: self.threshold.as_ref().map(Expr::to_string),
            factor: self.metric.scale.factor,
            unit: self.metric.scale.unit.clone(),
            description: self.metric.description.clone(),
            events,
        }
    }
}

fn has(group: &Group, event: &Event) -> bool {
    group.events.iter().any(|known| known.identity() == event.identity())
}

/// Whether a group counts all of these events.
fn together(groups: &[Group], events: &[&Event]) -> bool {
    groups.iter().any(|group| events.iter().all(|event| has(group, event)))
}

/// Puts `events` into a group that has some of them, or into one of their own.
fn join(groups: &mut Vec<Group>, events: &[&Event], fit: &mut dyn FnMut(&[&Event]) -> Fit) {
    let shares = |group: &Group| group.binding == GroupBinding::Weak && events.iter().any(|event| has(group, event));
    for group in groups.iter_mut().filter(|group| shares(group)) {
        let new: Vec<&Event> = events.iter().copied().filter(|event| !has(group, event)).collect();
        let union: Vec<&Event> = group.events.iter().chain(new.iter().copied()).collect();
        if fit(&union) != Fit::TooMany {
            let new: Vec<Event> = new.into_iter().cloned().collect();
            group.events.extend(new);
            return draw_in(groups, events);
        }
    }
    if fit(events) != Fit::TooMany {
        let events: Vec<Event> = events.iter().copied().cloned().collect();
        groups.push(Group { name: None, events, binding: GroupBinding::Weak });
        let last = groups.last().map(|group| group.events.clone()).unwrap_or_default();
        draw_in(groups, &last.iter().collect::<Vec<_>>());
    }
}

/// Takes the free ones among `events` away where they stand alone: a group has them now.
fn draw_in(groups: &mut Vec<Group>, events: &[&Event]) {
    let is_free = |group: &Group| group.binding == GroupBinding::Free;
    groups.retain(|group| !(is_free(group) && events.iter().any(|event| has(group, event))));
}
