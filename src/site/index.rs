//! Writes what the first page needs: a small plot of each benchmark, and which of them regressed.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::commits::subject;
use super::entries::{SiteLine, SiteSeries};
use super::script::{call, drawn, number, word};
use super::shape::{MOST_STRETCHES, PlotWidth, shape};
use super::tables::param;
use super::{CommitState, Site};
use crate::history::LEAST_NUMBERS;
use crate::steps::{LevelChange, Regression};
use crate::text::half_part;

/// How many regressions the first page holds; the others stand in a file of their own.
const MOST_RISES: usize = 40;
/// About how many characters all small plots may have together.
const ROOM: usize = 100_000;

/// A regression of an entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct SiteRise<'a> {
    pub(super) series: &'a SiteSeries,
    /// The place of the series, and of the line in it.
    places: (usize, usize),
    pub(super) rise: Regression,
}

impl SiteRise<'_> {
    pub(super) fn line(&self) -> &SiteLine {
        &self.series.lines[self.places.1]
    }

    /// The first revision that is higher.
    pub(super) fn revision(&self) -> u64 {
        self.rise.after.unwrap_or(self.rise.before) as u64
    }

    /// By what part the step rose, whatever came later.
    pub(super) fn part(&self) -> f64 {
        (self.rise.value_after - self.rise.value_before) / self.rise.value_before.abs()
    }

    /// How far that may be off.
    fn half_part(&self) -> Option<f64> {
        half_part(self.rise.value_before, self.rise.value_after, self.change()?.interval)
    }

    /// How likely noise alone makes such a step.
    fn chance(&self) -> Option<f64> {
        self.change().map(|change| change.chance)
    }

    fn change(&self) -> Option<&LevelChange> {
        let place = self.series.revisions.binary_search(&self.revision()).ok()?;
        let step = self.line().steps.iter().position(|step| step.left == place)?.checked_sub(1)?;
        self.line().changes.get(step)
    }
}

/// What the first page shows.
#[derive(Debug)]
pub(super) struct SiteIndex<'a> {
    site: &'a Site<'a>,
    /// The regressions, the newest first, of one commit the largest first.
    pub(super) rises: Vec<SiteRise<'a>>,
}

impl<'a> SiteIndex<'a> {
    pub(super) fn new(site: &'a Site<'a>) -> Self {
        let of_line = |(places, series): ((usize, usize), &'a SiteSeries)| {
            let rises = series.lines[places.1].rises.iter();
            rises.map(move |&rise| SiteRise { series, places, rise }).collect::<Vec<_>>()
        };
        let lines = site
            .series
            .iter()
            .enumerate()
            .flat_map(|(number, series)| (0..series.lines.len()).map(move |line| ((number, line), series)));
        let mut rises: Vec<SiteRise<'a>> = lines.flat_map(of_line).collect();
        let newer = |a: &SiteRise<'_>, b: &SiteRise<'_>| b.revision().cmp(&a.revision());
        rises.sort_by(|a, b| newer(a, b).then(b.part().total_cmp(&a.part())).then(a.places.cmp(&b.places)));
        Self { site, rises }
    }

    /// The data of the first page.
    ///
    /// ```text
    /// {title, range: [FIRST, LAST], measured, failed, history, threshold, hasThresholds, short, least, method, stretches, differing: [[NAME, [VALUE..]]..],
    ///  series: [[STEM, NAME, UNIT, [VALUE..], [PARAMETER..]]..], entries: [ENTRY..], rises: [RISE..], allRises}
    /// ENTRY  [SERIES, LINE, [VALUE OF PARAMETER..], LATEST, IS OF NEWEST, BEFORE, AFTER, REVISION, RISE, POINTS, STEPS, REASON, IS SHORT]
    /// RISE   [SERIES, LINE, BEFORE, AFTER, CHANCE, LAST BEFORE, REVISION, HASH BEFORE, HASH, DATE, SUBJECT, COMMITS, BEST AFTER, HALF]
    /// ```
    ///
    /// AFTER is the level right behind the step, BEST AFTER the lowest since; HALF says how far the change may be off, as a part of BEFORE.
    /// `short` entries have fewer than `least` numbers. VALUEs are places in `differing`. Entries stand in the order of the grid.
    pub(super) fn text(&self) -> String {
        let site = self.site;
        let mut measured = site.commits.iter().filter(|one| one.state == CommitState::Measured);
        let (first, last) = (measured.clone().next(), measured.next_back());
        let end = |one: Option<&super::SiteCommit<'_>>| {
            one.map_or(Value::Null, |one| json!([one.commit.short(), one.commit.date, subject(&one.commit.subject)]))
        };
        let differing = differing(&site.series);
        let width = self.width();
        let names: Vec<Value> = differing
            .iter()
            .map(|(name, values)| json!([word(name), values.iter().map(|value| param(value)).collect::<Vec<_>>()]))
            .collect();
        let short = site.series.iter().flat_map(|one| &one.lines).filter(|line| line.is_short()).count();
        let data = json!({
            "title": word(&site.options.title), "range": [end(first), end(last)], "measured": site.count(CommitState::Measured), "failed": site.count(CommitState::Failed),
            "history": site.history.len(), "threshold": site.options.rules.usual_threshold(),
            "hasThresholds": site.options.rules.has_several_thresholds(), "short": short, "least": LEAST_NUMBERS,
            "method": format!("{:?}", site.options.method).to_lowercase(), "stretches": width.drawn(), "differing": names,
            "series": site.series.iter().map(|one| in_index(one, &differing)).collect::<Vec<_>>(),
            "entries": self.entries(width),
            "rises": self.rises.iter().take(MOST_RISES).map(|rise| self.told(rise)).collect::<Vec<_>>(),
            "allRises": self.rises.len(),
        });
        call("index", &Value::Null, &data)
    }

    /// The file of all regressions.
    pub(super) fn all_rises(&self) -> String {
        let all: Vec<Value> = self.rises.iter().map(|rise| self.told(rise)).collect();
        call("regressions", &Value::Null, &all.into())
    }

    fn told(&self, one: &SiteRise<'_>) -> Value {
        let at = |revision: u64| self.site.at(revision);
        let (last, revision) = (one.rise.before as u64, one.revision());
        json!([
            one.places.0,
            one.places.1,
            drawn(one.rise.value_before),
            drawn(one.rise.value_after),
            one.chance().map_or(Value::Null, drawn),
            last,
            revision,
            at(last).map(|commit| word(&commit.hash)),
            at(revision).map(|commit| word(&commit.hash)),
            at(revision).map(|commit| commit.date),
            at(revision).map(|commit| subject(&commit.subject)),
            revision - last,
            drawn(one.rise.best_after),
            one.half_part().map_or(Value::Null, drawn),
        ])
    }

    /// So many stretches that all plots find room.
    fn width(&self) -> PlotWidth {
        let entries: usize = self.site.series.iter().map(|one| one.lines.len()).sum();
        let stretches = (ROOM / 2 / entries.max(1)).clamp(MOST_STRETCHES / 4, MOST_STRETCHES);
        PlotWidth { commits: self.site.commits.len(), stretches }
    }

    /// The entries: those that regressed first, the largest first; then by name.
    fn entries(&self, width: PlotWidth) -> Vec<Value> {
        let mut largest: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for rise in &self.rises {
            let part = largest.entry(rise.places).or_default();
            *part = part.max(rise.part());
        }
        let series = &self.site.series;
        let lines = series.iter().enumerate().flat_map(|(at, one)| (0..one.lines.len()).map(move |line| (at, line)));
        let mut places: Vec<(usize, usize)> = lines.collect();
        let part = |places: &(usize, usize)| largest.get(places).copied().unwrap_or(-1.0);
        let by_name = |a: &(usize, usize), b: &(usize, usize)| -> Ordering {
            series[a.0].benchmark.cmp(&series[b.0].benchmark).then(a.cmp(b))
        };
        places.sort_by(|a, b| part(b).total_cmp(&part(a)).then(by_name(a, b)));
        let numbers: BTreeMap<u64, usize> = self.site.commits.iter().map(|one| one.revision).zip(0..).collect();
        let entry = |places: &(usize, usize)| {
            let one = &series[places.0];
            let of: Vec<usize> = one.revisions.iter().map(|at| numbers.get(at).copied().unwrap_or(0)).collect();
            let line = &one.lines[places.1];
            let drawn_shape = shape(line, &of, width);
            let mut cells = vec![places.0.into(), places.1.into()];
            cells.push(line.values_of_params.iter().map(|value| word(value)).collect());
            cells.extend(newest(one, line));
            cells.push(largest.get(places).map_or(Value::Null, |&part| drawn(part)));
            cells.extend([drawn_shape.points.into(), drawn_shape.steps.into()]);
            let reason = one.revisions.len().checked_sub(1).and_then(|last| line.reason(last));
            cells.push(reason.map(super::points::NoNumber::code).into());
            cells.push(line.is_short().into());
            Value::Array(cells)
        };
        places.iter().map(entry).collect()
    }
}

/// The newest number, whether it is of the newest commit, and the last change: level before, level, revision.
fn newest(series: &SiteSeries, line: &SiteLine) -> [Value; 5] {
    let latest = line.latest();
    let is_newest = latest.is_some_and(|(place, _)| place + 1 == series.revisions.len());
    let [before, after, revision] = match &line.steps[..] {
        [.., before, last] => [drawn(before.value), drawn(last.value), series.revisions[last.left].into()],
        _ => [Value::Null, Value::Null, Value::Null],
    };
    [number(latest.map(|(_, value)| value)), is_newest.into(), before, after, revision]
}

/// The values of what tells series apart.
type DifferingValues<'a> = BTreeMap<&'a str, BTreeSet<&'a Option<String>>>;

fn differing(series: &[SiteSeries]) -> DifferingValues<'_> {
    let mut all: DifferingValues<'_> = BTreeMap::new();
    for (name, value) in series.iter().flat_map(|one| &one.differing) {
        all.entry(name).or_default().insert(value);
    }
    all
}

fn in_index(one: &SiteSeries, differing: &DifferingValues<'_>) -> Value {
    let place = |(name, values): (&&str, &BTreeSet<&Option<String>>)| {
        let own = one.differing.get(*name);
        own.and_then(|own| values.iter().position(|value| *value == own))
    };
    let places: Vec<Option<usize>> = differing.iter().map(place).collect();
    let names: Vec<Value> = one.param_names.iter().map(|name| word(name)).collect();
    json!([one.stem, word(&one.benchmark), word(&one.unit), places, names])
}
