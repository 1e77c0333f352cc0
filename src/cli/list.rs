//! `perfprop list`: patterns in, the events that match out, and whether they can be counted here.

use std::fmt::Write;

use serde_json::{Value, json};

use super::Error;
use super::args::List;
use super::stream::Stream;
use crate::events::{self, Availability, Entry, Event, Kind, Machine, Pattern, Prober, Source};
use crate::sources::{Status, perf};
use crate::words::shown;

/// The width of the column of names, as in `perf list`.
const NAME_WIDTH: usize = 50;

/// Text is written in pieces of about this many bytes: the first lines come at once, and
/// thousands of lines don't take thousands of system calls.
const PIECE: usize = 16 * 1024;

pub(super) fn run(args: &List) -> Result<u8, Error> {
    let machine = Machine::here();
    let patterns: Vec<_> = args.patterns.iter().map(|text| Pattern::new(text)).collect();
    let matches = |entry: &Entry| patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(entry));
    let probe: &dyn Fn(&Event) -> Availability = &probe;
    let prober = Prober::new(machine.clone(), probe);
    let mut out = Stream::stdout();
    let mut text = String::new();
    let mut section = None;
    let mut any = false;
    for entry in events::catalog(&machine).filter(matches) {
        any = true;
        let availability = prober.check(&entry);
        if args.json {
            let _ = writeln!(text, "{}", as_json(&entry, &availability));
        } else {
            heading(&mut text, &mut section, &entry);
            describe(&mut text, &entry, &availability);
        }
        if text.len() >= PIECE {
            out.print(&std::mem::take(&mut text))?;
        }
    }
    out.print(&text)?;
    if any {
        return Ok(0);
    }
    let similar =
        args.patterns.iter().flat_map(|pattern| events::similar(&machine, pattern.trim_matches('*'))).collect();
    Err(Error::NoMatch { patterns: args.patterns.clone(), similar })
}

fn probe(event: &Event) -> Availability {
    match perf::probe(event) {
        Status::Counted => Availability::Yes,
        Status::UserOnly => Availability::UserOnly,
        Status::NotSupported => Availability::No("not supported here".into()),
        Status::Forbidden => Availability::No("not permitted".into()),
    }
}

/// Entries of one source and PMU stand together.
type Section = (Source, Kind, Option<String>);

fn heading(text: &mut String, section: &mut Option<Section>, entry: &Entry) {
    let kind = if entry.source == Source::Perf { entry.kind } else { Kind::Pmu };
    let this = (entry.source, kind, entry.pmu.clone());
    if section.as_ref() == Some(&this) {
        return;
    }
    let pmu = shown(entry.pmu.as_deref().unwrap_or_default());
    let words = match (this.0, this.1) {
        (Source::Preset, _) => "Presets of perfprop".to_owned(),
        (Source::Perf, Kind::Software) => "Software events".to_owned(),
        (Source::Perf, Kind::Cache) => "Hardware cache events".to_owned(),
        (Source::Perf, _) => "Hardware events".to_owned(),
        (Source::Sysfs, _) => format!("Events of the PMU {pmu} (sysfs)"),
        (Source::Libpfm, _) => format!("Events of {pmu} (libpfm)"),
        (Source::Tracefs, _) => "Tracepoints".to_owned(),
    };
    let gap = if section.is_some() { "\n" } else { "" };
    let _ = writeln!(text, "{gap}{words}:");
    *section = Some(this);
}

fn describe(text: &mut String, entry: &Entry, availability: &Availability) {
    let mut name = shown(&entry.name).into_owned();
    for alias in &entry.aliases {
        let _ = write!(name, " OR {}", shown(alias));
    }
    let class = if entry.kind.is_software() { "software" } else { "hardware" };
    let here = match availability {
        Availability::Yes => "● yes".into(),
        Availability::UserOnly => "i with :u".into(),
        Availability::No(reason) => format!("— {}", shown(reason)),
    };
    let _ = write!(text, "  {name:<NAME_WIDTH$}  {class}  {here}");
    if !entry.description.is_empty() {
        let _ = write!(text, "\n        {}", shown(&entry.description));
    }
    for part in &entry.umasks {
        let _ = write!(text, "\n      :{:<24} {}", shown(&part.name), shown(&part.description));
    }
    text.push('\n');
}

fn as_json(entry: &Entry, availability: &Availability) -> Value {
    let (available, reason) = match availability {
        Availability::Yes => ("yes", None),
        Availability::UserOnly => ("user-only", None),
        Availability::No(reason) => ("no", Some(reason)),
    };
    let mut line = json!(entry);
    line["software"] = entry.kind.is_software().into();
    line["available"] = available.into();
    line["reason"] = reason.cloned().into();
    line
}
