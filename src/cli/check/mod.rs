//! Implements `perfprop check`: says what works on this machine, what doesn't, and the commands that mend it; with
//! `--validate`, how far numbers are from the truth.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;

use super::Error;
use super::args::{SourceName, When};
use super::stream::Stream;
use crate::events::{Machine, Resolver};
use crate::machine::{Host, ThisKernel, facts};
use crate::measure::resolver;
use crate::names::shown_path;
use crate::tui::{Config, Depth, theme_of_base16};

mod codes;
mod events;
mod expected;
mod files;
mod report;
mod validation;

use events::{CheckedPlan, Events};
use files::CheckedFile;
use report::{Paint, Report};
pub(super) use validation::{MixArgs, run_mix};
use validation::{ValidateArgs, ValidationRequest};

/// The arguments of `perfprop check`.
#[derive(Debug, Args)]
#[command(
    mut_arg("relations", |arg| arg.help("A file of relations between events that estimates use, with --validate; repeatable. Files to check stand without an option")),
    after_help = "Examples:
  perfprop check                       what this machine can count, and how to get the rest
  perfprop check -e cycles,L1_MISSES   which events are counted together
  perfprop check --explain E04         what a code means
  perfprop check relations.json        whether a relation file is right")]
pub(super) struct CheckArgs {
    /// Relation files to check
    #[arg(value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Events to check: how each name is read, whether it opens, the groups, the share of time each is counted, and
    /// what the relations of FILEs win
    #[arg(short, long = "event", alias = "events", value_name = "EVENTS", help_heading = "What is checked")]
    pub(super) events: Vec<String>,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR", help_heading = "What is checked")]
    pub(super) event_tables: Option<PathBuf>,
    /// Print one JSON object
    #[arg(short, long, help_heading = "Output")]
    pub(super) json: bool,
    /// Explain an error or warning such as E04; without a code, list all
    #[arg(long, value_name = "CODE", num_args = 0..=1, default_missing_value = "", hide_possible_values = true,
        value_parser = codes::CodeParser, conflicts_with_all = ["files", "events"], help_heading = "Output")]
    pub(super) explain: Option<String>,
    /// Print a configuration file with the defaults
    #[arg(long, conflicts_with_all = ["files", "events", "explain"], help_heading = "Output")]
    pub(super) default_config: bool,
    /// Convert a base16 scheme (a YAML file) into a theme, and print it
    #[arg(long, value_name = "SCHEME", conflicts_with_all = ["files", "events", "explain", "default_config"], help_heading = "Output")]
    pub(super) import_theme: Option<PathBuf>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(super) color: When,
    #[command(flatten)]
    pub(super) validation: ValidateArgs,
}

#[cfg(test)]
mod tests;

pub(super) fn run(args: &CheckArgs) -> Result<u8, Error> {
    let paint = paint(args.color);
    args.validation.check(!args.events.is_empty())?;
    let counting = &args.validation.counting;
    if args.validation.validate {
        let CheckArgs { validation: own, events, event_tables, json, .. } = args;
        let event_tables = event_tables.as_deref();
        return validation::run(&ValidationRequest { own, events, event_tables, is_json: *json, paint });
    }
    if let Some(code) = &args.explain {
        let text = codes::explain(code).ok_or_else(|| Error::Usage(codes::unknown(code)))?;
        Stream::stdout().print(&text)?;
        return Ok(0);
    }
    if args.default_config {
        Stream::stdout().print(&Config::default_text())?;
        return Ok(0);
    }
    if let Some(path) = &args.import_theme {
        let failed = |error: String| Error::Theme(format!("{}: {error}", shown_path(path)));
        let scheme = crate::files::text(path, crate::files::LONGEST).map_err(|error| failed(error.to_string()))?;
        Stream::stdout().print(&theme_of_base16(&scheme).map_err(|error| failed(error.to_string()))?)?;
        return Ok(0);
    }
    let resolver = match counting.by.source {
        SourceName::Perf => resolver(args.event_tables.as_deref())?,
        SourceName::Emulate => Resolver::new(Machine::emulated()),
    };
    let files: Vec<_> = args.files.iter().map(|path| CheckedFile::read(path, &resolver)).collect();
    let only_files = !files.is_empty() && args.events.is_empty();
    let report = if only_files {
        Report { facts: Vec::new(), events: None, files }
    } else {
        let host = Host::with(resolver);
        let text = args.events.join(",");
        let relations: Vec<_> = files.iter().flat_map(CheckedFile::relations).cloned().collect();
        let plan = CheckedPlan { relations: &relations, counters: counting.counters.map(usize::from) };
        let events = (!args.events.is_empty()).then(|| Events::try_out(&text, &host, &ThisKernel, plan));
        let facts = if counting.by.source == SourceName::Perf { facts(&host, &ThisKernel) } else { Vec::new() };
        Report { facts, events, files }
    };
    let text = if args.json { report.json() } else { report.text(paint) };
    Stream::stdout().print(&text)?;
    Ok(u8::from(!report.is_well()))
}

/// Colour where people look, unless the environment says otherwise.
fn paint(when: When) -> Paint {
    let variable = |name: &str| std::env::var(name).ok();
    let [no_color, colorterm, term] = ["NO_COLOR", "COLORTERM", "TERM"].map(variable);
    let depth = Depth::detect(no_color.as_deref(), colorterm.as_deref(), term.as_deref());
    let coloured = match when {
        When::Always => true,
        When::Never => false,
        When::Auto => std::io::stdout().is_terminal() && depth != Depth::Mono,
    };
    if coloured { Paint::Colour } else { Paint::Plain }
}
