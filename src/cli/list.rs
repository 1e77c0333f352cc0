//! Implements `perfprop list`: prints the events and metrics that match, and whether they can be counted
//! here.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::Error;
use super::args::SourceName;
use super::pager::Paging;
use super::stream::{Stream, say};
use crate::events::{
    self, Availability, CatalogEntry, Event, EventKind, Machine, Pattern, Prober, Question, Resolver, Source,
};
use crate::expr::Fact;
use crate::measure::{metrics, resolver};
use crate::metrics::{Facts, MeasuredScope, Metric, MetricRequest};
use crate::names::{glob, shown};
use crate::sources::{Status, emulate, perf};
use crate::text::wrapped;

/// The arguments of `perfprop list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop list                    what can be counted here
  perfprop list --all              all events, those that can be counted here first
  perfprop list MISS               those with this in their name
  perfprop list metric             metrics for -M
  perfprop list --source emulate   what the model counts")]
pub(super) struct ListArgs {
    /// Words or patterns with `*` and `?`; without any, all events that can be counted here
    #[arg(value_name = "PATTERN")]
    pub(super) patterns: Vec<String>,
    /// Also list what can't be counted here, in text below the rest; patterns list it anyway
    #[arg(short, long)]
    pub(super) all: bool,
    /// Print JSON lines
    #[arg(short, long)]
    pub(super) json: bool,
    /// Print names only, one per line
    #[arg(long, conflicts_with = "json")]
    pub(super) names: bool,
    /// List the events of this machine, or of the model in valgrind
    #[arg(long, value_name = "NAME", default_value = "perf")]
    pub(super) source: SourceName,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR")]
    pub(super) event_tables: Option<PathBuf>,
}

/// The width of the column of names, as in `perf list`.
const NAME_WIDTH: usize = 50;

/// Text is written in pieces of about this many bytes: the first lines come at once, and
/// thousands of lines don't take thousands of system calls.
const PIECE: usize = 16 * 1024;

pub(super) fn run(args: &ListArgs, paging: Paging) -> Result<u8, Error> {
    let resolver = match args.source {
        SourceName::Perf => resolver(args.event_tables.as_deref())?,
        SourceName::Emulate => Resolver::new(Machine::emulated()),
    };
    let patterns: Vec<_> = args.patterns.iter().map(|text| Pattern::new(text)).collect();
    let matches = |entry: &CatalogEntry| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(entry));
    let prober = Prober::new(&resolver, &probe);
    let mut out = Stream::paged(paging);
    let mut text = String::new();
    let form = if args.names {
        ListForm::Names(HashSet::new())
    } else if args.json {
        ListForm::Json
    } else {
        ListForm::Text(ListedText::default())
    };
    // Who names an event wants to know why it can't be counted, too.
    let is_open = patterns.is_empty();
    let mut page = Page { form, with_all: args.all || !is_open };
    let mut any = false;
    for entry in events::catalog(&resolver).filter(matches) {
        any = true;
        page.add(&mut text, &entry, &prober);
        if text.len() >= PIECE {
            out.print(&std::mem::take(&mut text))?;
        }
    }
    any |= list_metrics(&mut text, args, &prober, &mut page)?;
    if let ListForm::Text(listed) = &page.form {
        text.push_str(&listed.rest(page.with_all));
        if is_open {
            other_ways(&mut text, &resolver);
        }
    }
    out.print(&text)?;
    if any {
        return Ok(0);
    }
    let similar =
        args.patterns.iter().flat_map(|pattern| events::similar(&resolver, pattern.trim_matches('*'))).collect();
    let unread = resolver.machine().tracepoints().err().filter(|_| !resolver.machine().is_emulated());
    Err(Error::NoMatch { patterns: args.patterns.clone(), similar, unread })
}

/// The metrics that match: by name or group, or all for the word `metric`.
fn list_metrics(text: &mut String, args: &ListArgs, prober: &Prober<'_>, page: &mut Page) -> Result<bool, Error> {
    let resolver = prober.resolver();
    let catalog = metrics::catalog(&[], resolver.tables(), &mut say)?;
    let patterns: Vec<_> = args.patterns.iter().map(|pattern| MetricPattern::new(pattern)).collect();
    let is_meant = |metric: &&Metric| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(metric));
    let facts = Facts::new(resolver, MeasuredScope::Part);
    let know = |fact: &Fact| facts.know(fact);
    let mut formulas = catalog.formulas(&know);
    let mut refusal = |metric: &Metric| {
        let uncounted = |name: &String| facts.events(name).iter().find_map(|event| refused(event, prober));
        metrics::refusal(metric, &mut formulas, &facts)
            .or_else(|| MetricRequest::events_of(metric, &mut formulas).iter().find_map(uncounted))
    };
    let mut any = false;
    for metric in catalog.metrics().iter().filter(is_meant) {
        page.add_metric(text, metric, || refusal(metric));
        any = true;
    }
    Ok(any)
}

/// Why an event can't be counted here, behind its name.
fn refused(event: &Event, prober: &Prober<'_>) -> Option<String> {
    match prober.check_event(event) {
        Availability::No(reason) => Some(format!("{}: {}", shown(&event.name), shown(&reason))),
        Availability::Yes | Availability::UserOnly => None,
    }
}

fn metric_json(metric: &Metric, refusal: Option<String>) -> serde_json::Value {
    serde_json::json!({
        "name": metric.name,
        "kind": "metric",
        "description": metric.description,
        "formula": metric.formula.to_string(),
        "unit": metric.scale.unit,
        "groups": metric.groups,
        "available": if refusal.is_none() { "yes" } else { "no" },
        "reason": refusal,
    })
}

/// A pattern as it means metrics.
struct MetricPattern {
    glob: String,
}

impl MetricPattern {
    fn new(text: &str) -> Self {
        let word = text.to_lowercase();
        Self {
            glob: match word.as_str() {
                "metric" | "metrics" => "*".to_owned(),
                word if glob::is_pattern(word) => word.to_owned(),
                word => format!("*{word}*"),
            },
        }
    }

    fn matches(&self, metric: &Metric) -> bool {
        let is = |name: &str| glob::matches(&self.glob, &name.to_lowercase());
        is(&metric.name) || metric.groups.iter().any(|group| is(group))
    }
}

/// What is printed of the events and metrics.
struct Page {
    form: ListForm,
    /// Whether what can't be counted here is listed, too.
    with_all: bool,
}

/// How a list is printed.
enum ListForm {
    /// A list of distinct names.
    Names(HashSet<String>),
    /// A JSON line for each event.
    Json,
    /// Text.
    Text(ListedText),
}

/// Text of what can be counted here, which is taken as it comes, and of the rest, which stands below it.
#[derive(Default)]
struct ListedText {
    here: ListedPart,
    elsewhere: ListedPart,
    /// How many events and metrics can't be counted here.
    missing: usize,
}

/// A part of a list.
#[derive(Default)]
struct ListedPart {
    /// The section that it is in.
    section: Option<Section>,
    has_metrics: bool,
    text: String,
}

impl ListedPart {
    /// Begins the section of an entry, unless the part is in it.
    fn heading(&mut self, entry: &CatalogEntry) {
        let section = Section::of(entry);
        if self.section.as_ref() == Some(&section) {
            return;
        }
        let gap = if self.section.is_some() { "\n" } else { "" };
        let _ = writeln!(self.text, "{gap}{}:", section.words());
        self.section = Some(section);
    }

    /// The text since it was taken last.
    fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

impl ListedText {
    fn part(&mut self, is_here: bool) -> &mut ListedPart {
        self.missing += usize::from(!is_here);
        if is_here { &mut self.here } else { &mut self.elsewhere }
    }

    fn add(&mut self, entry: &CatalogEntry, availability: &Availability) {
        let part = self.part(!matches!(availability, Availability::No(_)));
        part.heading(entry);
        describe(&mut part.text, entry, availability);
    }

    /// `refusal` is why a metric can't be computed here.
    fn add_metric(&mut self, metric: &Metric, refusal: Option<&str>) {
        let part = self.part(refusal.is_none());
        if !std::mem::replace(&mut part.has_metrics, true) {
            part.text.push_str("\nMetrics (for -M):\n");
        }
        let here = refusal.map_or_else(|| "● yes".to_owned(), refusal_words);
        let groups = if metric.groups.is_empty() { String::new() } else { format!("  [{}]", metric.groups.join(";")) };
        let description =
            if metric.description.is_empty() { groups } else { format!("{}{groups}", metric.description) };
        let (name, description) = (shown(&metric.name), shown(&description));
        let _ = writeln!(part.text, "  {name:<NAME_WIDTH$}  metric    {here}\n        {description}");
    }

    /// What can't be counted here, or how many those are.
    fn rest(&self, with_all: bool) -> String {
        match (self.missing, with_all) {
            (0, _) => String::new(),
            (_, true) if self.here.section.is_none() && !self.here.has_metrics => self.elsewhere.text.clone(),
            (_, true) => format!("\nNot counted here:\n\n{}", self.elsewhere.text.trim_start()),
            (missing, false) => {
                format!("\n{missing} more that can't be counted here: perfprop list --all; why: perfprop check\n")
            }
        }
    }
}

impl Page {
    fn add(&mut self, text: &mut String, entry: &CatalogEntry, prober: &Prober<'_>) {
        let with_all = self.with_all;
        let is_refused = |availability: &Availability| !with_all && matches!(availability, Availability::No(_));
        match &mut self.form {
            // Where all are listed, nothing has to be tried.
            ListForm::Names(_) if !with_all && is_refused(&prober.check(entry)) => {}
            ListForm::Names(printed) => {
                for name in entry.names() {
                    let line = shown(&name).into_owned();
                    if printed.insert(name) {
                        let _ = writeln!(text, "{line}");
                    }
                }
            }
            ListForm::Json => {
                let availability = prober.check(entry);
                if !is_refused(&availability) {
                    let _ = writeln!(text, "{}", as_json(entry, &availability));
                }
            }
            ListForm::Text(listed) => {
                listed.add(entry, &prober.check(entry));
                text.push_str(&listed.here.take());
            }
        }
    }

    /// `refusal` tells why a metric can't be computed here.
    fn add_metric(&mut self, text: &mut String, metric: &Metric, refusal: impl FnOnce() -> Option<String>) {
        match &mut self.form {
            ListForm::Names(_) => {
                if self.with_all || refusal().is_none() {
                    let _ = writeln!(text, "{}", shown(&metric.name));
                }
            }
            ListForm::Json => {
                let refusal = refusal();
                if self.with_all || refusal.is_none() {
                    let _ = writeln!(text, "{}", metric_json(metric, refusal));
                }
            }
            ListForm::Text(listed) => {
                listed.add_metric(metric, refusal().as_deref());
                text.push_str(&listed.here.take());
            }
        }
    }
}

/// What no list can hold: names that have a parameter.
fn other_ways(text: &mut String, resolver: &Resolver) {
    if resolver.machine().is_emulated() {
        return;
    }
    let kernel = |pmu: &str| resolver.machine().devices().join(pmu).exists();
    let here = |pmu: &str| if kernel(pmu) { "" } else { " (not in this kernel)" };
    let _ = write!(
        text,
        "\nOther ways to name an event:\n  \
         r1a8  cpu/r1a8/  cpu/event=0xa8,umask=0x1/          a raw code; terms of a PMU's format\n  \
         uprobe:./prog:function  uprobe:./prog:function+4    calls of a function of a program or library{}\n  \
         uretprobe:./prog:function  uprobe:./prog:0x1139     returns from it; an address as nm shows it\n  \
         kprobe:function  kretprobe:function                 calls and returns in the kernel{}\n  \
         mem:0x4010:w  mem:0x4010/8:rw                       accesses to an address\n  \
         {{a,b}}:u  a:k  'sched:*'                             groups, modifiers, patterns\n  \
         --source emulate                                    what a model of a machine counts: perfprop list --source emulate\n",
        here("uprobe"),
        here("kprobe"),
    );
}

fn probe(question: Question<'_>) -> Availability {
    if let Question::Open(Event { kind: EventKind::Modelled, .. }) = question {
        let missing = || Availability::No("needs valgrind, which is not in PATH".into());
        return emulate::find().map_or_else(missing, |_| Availability::Yes);
    }
    let status = match question {
        Question::Allowed => perf::permission(),
        Question::Open(event) => perf::probe(event),
    };
    match status {
        Status::Counted => Availability::Yes,
        Status::UserOnly => Availability::UserOnly,
        Status::NotSupported | Status::Gone | Status::Elsewhere => Availability::No("not supported here".into()),
        Status::Forbidden => Availability::No("not permitted".into()),
        Status::InUse => Availability::No("in use".into()),
    }
}

/// Entries of one source and PMU stand together, and tracepoints of one subsystem.
#[derive(PartialEq, Eq)]
struct Section {
    source: Source,
    kind: EventKind,
    /// The PMU or subsystem.
    part: Option<String>,
}

impl Section {
    fn of(entry: &CatalogEntry) -> Self {
        let kind = if entry.source == Source::Perf { entry.kind } else { EventKind::Pmu };
        let system = entry.name.split_once(':').map(|(system, _)| system.to_owned());
        let part = if entry.source == Source::Tracefs { system } else { entry.pmu.clone() };
        Self { source: entry.source, kind, part }
    }

    fn words(&self) -> String {
        let part = shown(self.part.as_deref().unwrap_or_default());
        match (self.source, self.kind) {
            (Source::Preset, _) => "Presets of perfprop".to_owned(),
            (Source::Perf, EventKind::Software) => "Software events".to_owned(),
            (Source::Perf, EventKind::Tool) => "Tool events".to_owned(),
            (Source::Perf, EventKind::Cache) => "Hardware cache events".to_owned(),
            (Source::Perf, _) => "Hardware events".to_owned(),
            (Source::Sysfs, _) => format!("Events of the PMU {part} (sysfs)"),
            (Source::Tables, _) if part.is_empty() => "Events of the core (event tables)".to_owned(),
            (Source::Tables, _) => format!("Events of {part} (event tables)"),
            (Source::Libpfm, _) => format!("Events of {part} (libpfm)"),
            (Source::Tracefs, _) => format!("Tracepoints of {part}"),
            (Source::Model, _) => "Events of the emulated PMU, modelled by valgrind's callgrind; L2 and LLC are \
                                   one cache"
                .to_owned(),
        }
    }
}

fn describe(text: &mut String, entry: &CatalogEntry, availability: &Availability) {
    let own = shown(&entry.name).into_owned();
    let aliases: String = entry.aliases.iter().map(|alias| format!(" OR {}", shown(alias))).collect();
    // A long alias has lines of its own, so that the columns stand below one another.
    let is_short = own.chars().count() + aliases.chars().count() <= NAME_WIDTH;
    let (name, below) = if is_short { (own + &aliases, "") } else { (own, aliases.trim_start()) };
    let class = match entry.kind {
        EventKind::Modelled => "modelled",
        EventKind::Tool => "tool",
        kind if kind.is_software() => "software",
        _ => "hardware",
    };
    let here = match availability {
        Availability::Yes => "● yes".into(),
        Availability::UserOnly => "i with :u".into(),
        Availability::No(reason) => refusal_words(&shown(reason)),
    };
    let _ = write!(text, "  {name:<NAME_WIDTH$}  {class}  {here}");
    if !below.is_empty() {
        let _ = write!(text, "\n        {}", wrapped(below, 8));
    }
    if !entry.description.is_empty() {
        let _ = write!(text, "\n        {}", shown(&entry.description));
    }
    for part in &entry.umasks {
        let _ = write!(text, "\n      :{:<24} {}", shown(&part.name), shown(&part.description));
    }
    text.push('\n');
}

/// The longest reason that stands behind a name; longer ones stand below it.
const LONGEST_BESIDE: usize = 16;

fn refusal_words(reason: &str) -> String {
    match reason.chars().count() {
        ..=LONGEST_BESIDE => format!("— {reason}"),
        _ => format!("— no\n        {}", wrapped(reason, 8)),
    }
}

/// An event as a JSON line.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    entry: &'a CatalogEntry,
    software: bool,
    available: &'a str,
    reason: Option<&'a str>,
}

fn as_json(entry: &CatalogEntry, availability: &Availability) -> String {
    let (available, reason) = match availability {
        Availability::Yes => ("yes", None),
        Availability::UserOnly => ("user-only", None),
        Availability::No(reason) => ("no", Some(reason.as_str())),
    };
    let line = Line { entry, software: entry.kind.is_software(), available, reason };
    serde_json::to_string(&line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(alias: &str) -> String {
        let entry = CatalogEntry {
            name: "MISSES".into(),
            aliases: vec![alias.into()],
            kind: EventKind::Hardware,
            source: Source::Tables,
            pmu: None,
            description: "what missed".into(),
            umasks: Vec::new(),
        };
        let mut text = String::new();
        describe(&mut text, &entry, &Availability::Yes);
        text
    }

    #[test]
    fn a_long_alias_leaves_the_columns_where_they_are() {
        let short = described("misses");
        let long = described(&"cpu/event=0x1,umask=0x2/".repeat(6));
        let column = |text: &str| text.find("hardware");
        assert!(short.starts_with("  MISSES OR misses  "), "{short}");
        assert!(column(&short).is_some() && column(&short) == column(&long), "{short}{long}");
        assert!(
            long.contains("\n        OR\n        cpu/event=0x1") && long.lines().all(|line| line.len() <= 80),
            "{long}"
        );
        assert!(long.ends_with("\n        what missed\n"), "{long}");
    }
}
