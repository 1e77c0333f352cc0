//! Implements `perfprop relations`: prints relation files and vendors' tables in one form.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::Error;
use super::input;
use super::learn::LearnArgs;
use super::stream::{Stream, say};
use crate::events::{Machine, Resolver, Tables};
use crate::expr::Fact;
use crate::measure::{self, LoadedRelations, RelationOptions, can_count, metrics, misspelt, resolver};
use crate::metrics::vendor::Vendor;
use crate::metrics::{Facts, Formulas, MeasuredScope, Metric, MetricRequest};
use crate::names::{shown, shown_path};
use crate::recording::is_recording;
use crate::relations::{self, LoadError, Relation};

/// The arguments of `perfprop relations`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop relations show cache.json                  a file in one form, with its events
  perfprop relations import metrics.json              relations from a vendor's metrics
  perfprop relations learn --program m.json *.jsonl   what recordings of a program teach")]
pub(super) struct RelationsArgs {
    #[command(subcommand)]
    pub(super) verb: RelationVerb,
}

/// The verbs below `perfprop relations`.
#[derive(Debug, Subcommand)]
pub(super) enum RelationVerb {
    /// Print relation files in one form, with the events that they need, and whether they can be counted here
    Show(ShowArgs),
    /// Make a relation file from a vendor's metric tables
    Import(ImportArgs),
    /// Learn how events vary together: from recordings of one program, or from complete counts of many
    Learn(LearnArgs),
}

/// The arguments of `perfprop relations show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop relations show                 perfprop's own metrics, with the events that they need
  perfprop relations show cache.json      a file in one form, with the events that it needs
  perfprop relations show --event-tables pmu-events cache.json
                                          the same with a vendor's names of events")]
pub(super) struct ShowArgs {
    /// Relation files; without any, perfprop's own metrics
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Leave out wrong relations of a file, and use the others
    #[arg(long)]
    pub(super) relations_lenient: bool,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR")]
    pub(super) event_tables: Option<PathBuf>,
}

/// The arguments of `perfprop relations import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop relations import linux/tools/perf/pmu-events -o vendor.json   this CPU's metrics out of perf's tables
  perfprop relations import icelakex_metrics_perf.json                   one file of Intel's, printed
  perfprop top --relations vendor.json -- ./prog                         use what was imported")]
pub(super) struct ImportArgs {
    /// perf's folder pmu-events, one CPU's folder of JSON files, or a file of perf's or Intel's form
    #[arg(value_name = "DIR|FILE")]
    pub(super) from: PathBuf,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

pub(super) fn run(args: &RelationsArgs) -> Result<u8, Error> {
    match &args.verb {
        RelationVerb::Show(args) => show(args),
        RelationVerb::Import(args) => import(args),
        RelationVerb::Learn(args) => super::learn::run(args),
    }
}

/// Prints each relation and metric on a line, with what it needs, and whether this machine has that.
fn show(args: &ShowArgs) -> Result<u8, Error> {
    let resolver = resolver(args.event_tables.as_deref())?;
    let options = RelationOptions { files: args.files.clone(), is_lenient: args.relations_lenient };
    let found = LoadedRelations::read(&options, &mut say)?;
    let catalog = metrics::catalog(&found.metrics, resolver.tables(), &mut say)?;
    let facts = Facts::new(&resolver, MeasuredScope::Part);
    let know = |fact: &Fact| facts.know(fact);
    let formulas = catalog.formulas(&know);
    let mut here = Here { facts: &facts, formulas, resolver: &resolver, known: HashMap::new() };
    let mut text = String::new();
    for relation in &found.all {
        text.push_str(&relation_lines(relation, &mut here));
    }
    // Without files, what is there anyway.
    let metrics = if args.files.is_empty() { catalog.metrics() } else { &found.metrics };
    for metric in metrics {
        text.push_str(&metric_lines(metric, &mut here));
    }
    Stream::stdout().print(&text)?;
    Ok(0)
}

fn relation_lines(relation: &Relation, here: &mut Here<'_>) -> String {
    let whole = relation.expanded(&mut here.formulas);
    let state = match &whole {
        Err(error) => format!("— {error}"),
        Ok(whole) => here.availability(&whole.events()),
    };
    let events = whole.as_ref().map(Relation::events).unwrap_or_default();
    let mut text = format!("{}  {}\n", shown(&relation.id), shown(&relation.formula()));
    let (weight, tolerance) = (relation.weight.get(), relation.tolerance.get() * 100.0);
    let _ = writeln!(text, "      needs {}   {state}", needed(&events));
    let _ = writeln!(text, "      weight {weight}  tolerance {tolerance}%  {}", relation.place);
    text
}

fn metric_lines(metric: &Metric, here: &mut Here<'_>) -> String {
    let mut text = format!("{} = {}\n", shown(&metric.name), shown(&metric.formula.to_string()));
    let needs = MetricRequest::events_of(metric, &mut here.formulas);
    let state = match metrics::refusal(metric, &mut here.formulas, here.facts) {
        None => here.availability(&needs),
        Some(reason) => format!("— {reason}"),
    };
    let _ = writeln!(text, "      needs {}   {state}", needed(&needs));
    let threshold = metric.threshold.as_ref().map(|threshold| format!("look into it where {threshold}"));
    let unit = Some(&metric.scale.unit).filter(|unit| !unit.is_empty()).map(|unit| format!("in {unit}"));
    let factor = Some(metric.scale.factor).filter(|&factor| factor != 1.0).map(|factor| format!("times {factor}"));
    let groups =
        Some(metric.groups.join(";")).filter(|groups| !groups.is_empty()).map(|groups| format!("group {groups}"));
    let more: Vec<_> = [unit, factor, groups, threshold].into_iter().flatten().collect();
    if !more.is_empty() {
        let _ = writeln!(text, "      {}", shown(&more.join("   ")));
    }
    text
}

/// This machine, and which events it counts, each tried once by opening it.
struct Here<'a> {
    facts: &'a Facts<'a>,
    formulas: Formulas<'a>,
    resolver: &'a Resolver,
    known: HashMap<String, bool>,
}

impl Here<'_> {
    fn counts(&mut self, name: &str) -> bool {
        if let Some(&known) = self.known.get(name) {
            return known;
        }
        let events = self.facts.events(name);
        let counts = name == "duration_time" || !events.is_empty() && events.iter().all(can_count);
        self.known.insert(name.to_owned(), counts);
        counts
    }

    fn availability(&mut self, names: &[String]) -> String {
        let missing: Vec<_> = names.iter().filter(|name| !self.counts(name)).map(String::as_str).collect();
        match missing.as_slice() {
            [] => "● active here".to_owned(),
            missing => {
                let meant = missing.iter().find_map(|name| misspelt::meant(name, &[], self.resolver));
                let hint = meant.map_or_else(String::new, |meant| format!("; did you mean {}?", shown(&meant)));
                format!("— inactive here: no {}{hint}", shown(&missing.join(", ")))
            }
        }
    }
}

/// A vendor's metrics as a relation file.
fn import(args: &ImportArgs) -> Result<u8, Error> {
    let vendor = if args.from.is_dir() { of_folder(&args.from)? } else { of_file(&args.from)? };
    metrics::note_problems(&vendor, &mut say);
    if vendor.metrics.is_empty() {
        let path = shown_path(&args.from);
        return Err(Error::Input(format!("no metrics in {path}: perf's tables have MetricExpr, Intel's Metrics")));
    }
    let (metrics, problems) = relations::writable(vendor.metrics);
    problems.iter().for_each(|problem| say(&format!("without {problem}")));
    let text = relations::metric_file(&metrics);
    if text.len() > relations::MAX_FILE {
        let (size, most) = (text.len() >> 20, relations::MAX_FILE >> 20);
        return Err(Error::Input(format!(
            "{} metrics take {size} MiB, and a relation file has {most} at most: import one file of the folder",
            metrics.len()
        )));
    }
    Stream::write_whole(args.output.as_deref(), &text)?;
    if let Some(path) = args.output.as_deref().filter(|path| path.as_os_str() != "-") {
        let path = shown_path(path);
        say(&format!("{} metrics in {path}; to show one: -M NAME --relations {path}", metrics.len()));
    }
    Ok(0)
}

fn of_folder(folder: &Path) -> Result<Vendor, Error> {
    let tables = Tables::read(folder, &Machine::here()).map_err(measure::Error::Tables)?;
    Ok(Vendor::of_tables(&tables))
}

fn of_file(path: &Path) -> Result<Vendor, Error> {
    let failed = |error| measure::Error::RelationFile(LoadError { path: path.to_owned(), error });
    let bytes = relations::read(path).map_err(failed)?;
    let file = path.display().to_string();
    if bytes.len() > relations::MAX_FILE {
        let largest = relations::MAX_FILE >> 20;
        return Err(Error::Input(format!("{} is larger than {largest} MiB", shown(&file))));
    }
    if is_recording(&bytes) {
        let wanted = "import takes a vendor's table of metrics; recordings teach relations:  perfprop relations learn";
        return Err(input::is_recording(path, wanted));
    }
    let text = String::from_utf8_lossy(&bytes);
    let tables = "a table of metrics is a JSON file, as in perf's folder pmu-events and in Intel's perfmon";
    Vendor::of_file(&file, &text)
        .map_err(|problem| Error::Input(format!("{}: {problem}\n      {tables}", shown(&file))))
}

fn needed(events: &[String]) -> String {
    if events.is_empty() { "nothing".to_owned() } else { shown(&events.join(", ")).into_owned() }
}
