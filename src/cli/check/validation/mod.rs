//! Implements `perfprop check --validate`: measures how far numbers are from the truth on this machine.

mod json;
mod text;

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::super::args::{CorrectionArgs, CountingArgs, SourceName, whole_number};
use super::super::error::code_of;
use super::super::progress::ProgressLine;
use super::super::stream::{Stream, say};
use super::super::{Error, signals};
use super::report::Paint;
use crate::codes::Coded;
use crate::measure::{self, MeasureOptions, Measurement, check_command};
use crate::session::{ChildIo, CommandLine, Launch};
use crate::validate::{Conclusion, KnownCommand, ValidateOptions, ValidationOutcome, mix, validate};

/// The arguments of `--validate`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Validation")]
pub(crate) struct ValidateArgs {
    /// Run COMMAND, or a built-in mix of loops, memory accesses and branches, again and again, and hold what is counted
    /// in turns against counts that had a counter all the time. Exits with 0 where intervals hold the truth, 1 where
    /// they don't, 2 where that can't be known
    #[arg(long, conflicts_with_all = ["files", "explain", "default_config", "import_theme"])]
    pub(crate) validate: bool,
    /// How often it runs with events in turns, and as often for the truth [default: 10]
    #[arg(short = 'r', long, value_name = "N", value_parser = whole_number::<u16>(2..), requires = "validate")]
    pub(crate) repeat: Option<u16>,
    #[command(flatten)]
    pub(crate) counting: CountingArgs,
    #[command(flatten)]
    pub(crate) corrections: CorrectionArgs,
    /// The command to validate with, after `--`
    #[arg(last = true, value_name = "COMMAND", requires = "validate")]
    pub(crate) command: Vec<OsString>,
}

/// The arguments of the hidden verb that is the built-in mix.
#[derive(Debug, Args)]
pub(crate) struct MixArgs {
    /// Its length; 0 only starts
    pub(crate) length: u32,
}

/// Runs where nobody says how many.
const RUNS: u16 = 10;

/// Report intervals: as short as `stat -I` is mostly asked for.
const INTERVAL: Duration = Duration::from_millis(100);

/// What is validated where nobody says what, more than a CPU has counters.
const HARDWARE: &str = "cycles,instructions,instructions:u,branches:u,branch-misses,cache-references,cache-misses,\
    L1-dcache-loads,L1-dcache-load-misses,L1-icache-load-misses,dTLB-load-misses,iTLB-load-misses";
const MODELLED: &str = "INSTRUCTIONS,BRANCHES,BRANCH_MISSES,LOADS,STORES,L1_MISSES,LLC_MISSES,L1I_MISSES";

/// The model is some fifty times slower than a CPU.
const MODELLED_LENGTH: u32 = mix::FULL / 4;

impl ValidateArgs {
    /// What has no meaning without `--validate`, or without events to check.
    pub(super) fn check(&self, has_events: bool) -> Result<(), Error> {
        let Self { counting, corrections, .. } = self;
        let planned =
            [("--source", counting.by.source != SourceName::Perf), ("--counters", counting.counters.is_some())];
        if let Some((option, _)) = planned.iter().find(|(_, is_given)| *is_given && !self.validate && !has_events) {
            return Err(Error::Usage(format!("{option} is about events, which check takes with -e or --validate")));
        }
        let given = [
            ("--model", counting.by.model.is_some()),
            ("--schedule or --mux", counting.has_rotation()),
            ("--relations", !corrections.relations.is_empty()),
            ("--estimator", corrections.estimator.is_some()),
            ("--learnt", corrections.learnt.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given && !self.validate) {
            Some((option, _)) => {
                Err(Error::Usage(format!("{option} is about counting, which check does with --validate")))
            }
            None => Ok(()),
        }
    }

    fn is_modelled(&self) -> bool {
        self.counting.by.source == SourceName::Emulate
    }
}

/// The built-in mix.
pub(crate) fn run_mix(args: &MixArgs) -> u8 {
    // What it computes has to go somewhere, or it need not be computed.
    u8::from(std::hint::black_box(mix::run(args.length)) == u64::MAX)
}

/// What is validated, and how what was found is printed.
pub(super) struct ValidationRequest<'a> {
    pub(super) own: &'a ValidateArgs,
    pub(super) events: &'a [String],
    pub(super) event_tables: Option<&'a Path>,
    pub(super) is_json: bool,
    pub(super) paint: Paint,
}

pub(super) fn run(request: &ValidationRequest<'_>) -> Result<u8, Error> {
    let own = request.own;
    if own.is_modelled() && own.counting.counters.is_none() {
        let what =
            "--source emulate counts all events at once: give them few counters, and the truth is counted beside";
        return Err(Error::Usage(format!("{what}\n      perfprop check --validate --source emulate --counters 2")));
    }
    let options = options(request)?;
    let (command, known) = command(own)?;
    let launch = Launch::command(command, ChildIo::Discard);
    let measurement = Measurement::new(&options, launch, &mut say)?;
    let signals = signals::listen(&measurement.launch.stop).map_err(Error::System)?;
    let validate_options = ValidateOptions { runs: own.repeat.unwrap_or(RUNS).into(), interval: INTERVAL };
    let line = RefCell::new(ProgressLine::new());
    let mut show = |done, all| progress(&mut line.borrow_mut(), done, all);
    let mut tell = |text: &str| {
        line.borrow_mut().clear();
        say(text);
    };
    let validated = validate(measurement, known.as_ref(), validate_options, &signals, &mut show, &mut tell);
    drop(line);
    let result = match validated {
        Ok(ValidationOutcome::Interrupted(signal)) => {
            say("ended by a signal before the last run: nothing can be said of fewer");
            return Ok(code_of(signal));
        }
        Ok(ValidationOutcome::Validated(validation)) => Ok(validation),
        Ok(ValidationOutcome::NothingInTurns { counted, refused }) => Err(text::nothing_in_turns(&counted, &refused)),
        // Its text has escaped what comes from outside.
        Err(error @ measure::Error::NoCounters { .. }) => Err(error.printed()),
        Err(error) => return Err(error.into()),
    };
    let text = match (&result, request.is_json) {
        (Ok(validation), true) => json::validation(validation, own),
        (Ok(validation), false) => text::validation(validation, own, request.paint),
        (Err(why), true) => json::nothing(why),
        (Err(why), false) => text::nothing(why),
    };
    Stream::stdout().print(&text)?;
    Ok(result.map_or(Conclusion::Unknown, |validation| validation.conclusion).code())
}

fn options(request: &ValidationRequest<'_>) -> Result<MeasureOptions, Error> {
    let own = request.own;
    let mut events = request.events.to_vec();
    if events.is_empty() && (own.is_modelled() || own.counting.counters.is_none()) {
        let names = if own.is_modelled() { MODELLED } else { HARDWARE };
        say(&format!("no -e given: validating {names}"));
        events.push(names.into());
    }
    let method = own.counting.options(&own.corrections)?;
    Ok(MeasureOptions { events, event_tables: request.event_tables.map(Path::to_owned), ..method })
}

/// The command, and what is known of it: this program runs the built-in mix.
fn command(args: &ValidateArgs) -> Result<(Vec<OsString>, Option<KnownCommand>), Error> {
    if let Some(command) = args.command.first() {
        check_command(command)?;
        return Ok((args.command.clone(), None));
    }
    let program = std::env::current_exe().map_err(Error::System)?;
    let of_length = |length: u32| vec![program.clone().into(), "mix".into(), length.to_string().into()];
    let length = if args.is_modelled() { MODELLED_LENGTH } else { mix::FULL };
    let start = CommandLine { argv: of_length(0), folder: None, io: ChildIo::Discard, output: None, errors: None };
    Ok((of_length(length), mix::known(length).map(|counts| KnownCommand { start, counts })))
}

/// Shows how far it is: `done` runs of all, where it is known how many there are.
fn progress(line: &mut ProgressLine, done: usize, all: Option<usize>) {
    match all {
        None => line.step("finding out what fits on the counters"),
        Some(all) if done == all => line.clear(),
        Some(all) => line.number("run", done as u64, all as u64),
    }
}
