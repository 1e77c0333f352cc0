//! Implements `perfprop check --validate`: measures how far numbers are from the truth on this machine.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::super::args::{CorrectionArgs, CountingArgs, RotationArgs, SourceName, method};
use super::super::error::code_of;
use super::super::stream::{Stream, say};
use super::super::{Error, signals};
use super::CheckArgs;
use super::report::Paint;
use crate::measure::{self, MeasureOptions, Measurement, check_command};
use crate::names::shown;
use crate::number::{amount, grouped, plus_minus, whole_share};
use crate::run::MeasuredEvent;
use crate::session::{ChildIo, CommandLine, Launch};
use crate::sources::command::Exit;
use crate::text::wrapped;
use crate::validate::{
    Conclusion, Coverage, ENOUGH, KnownCommand, KnownCount, RelativeError, ValidateOptions, ValidatedEvent, Validation,
    ValidationOutcome, Validity, mix, validate,
};

/// The arguments of `--validate`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Validation")]
pub(crate) struct ValidateArgs {
    /// Run COMMAND, or a built-in mix of loops, memory accesses and branches, again and again, and hold what is counted in
    /// turns against counts that had a counter all the time. Exits with 0 where intervals hold the truth, 1 where they don't, 2
    /// where that can't be known
    #[arg(long, conflicts_with_all = ["files", "explain", "default_config", "import_theme"])]
    pub(crate) validate: bool,
    /// How often it runs with events in turns, and as often for the truth [default: 10]
    #[arg(short = 'r', long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..), requires = "validate")]
    pub(crate) repeat: Option<u16>,
    #[command(flatten)]
    pub(crate) counting: CountingArgs,
    #[command(flatten)]
    pub(crate) rotation: RotationArgs,
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
        let Self { counting, rotation, corrections, .. } = self;
        let planned =
            [("--source", counting.by.source != SourceName::Perf), ("--counters", counting.counters.is_some())];
        if let Some((option, _)) = planned.iter().find(|(_, is_given)| *is_given && !self.validate && !has_events) {
            return Err(Error::Usage(format!("{option} is about events, which check takes with -e or --validate")));
        }
        let given = [
            ("--model", counting.by.model.is_some()),
            ("--schedule or --mux", rotation.is_given()),
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

pub(super) fn run(args: &CheckArgs, paint: Paint) -> Result<u8, Error> {
    let own = &args.validation;
    if own.is_modelled() && own.counting.counters.is_none() {
        let what =
            "--source emulate counts all events at once: give them few counters, and the truth is counted beside";
        return Err(Error::Usage(format!("{what}\n      perfprop check --validate --source emulate --counters 2")));
    }
    let options = options(args)?;
    let (command, known) = command(own)?;
    let launch = Launch::command(command, ChildIo::Discard);
    let measurement = Measurement::new(&options, launch, &mut say)?;
    let signals = signals::listen(&measurement.launch.stop).map_err(Error::System)?;
    let runs = own.repeat.unwrap_or(RUNS).into();
    let validated = validate(
        measurement,
        known.as_ref(),
        ValidateOptions { runs, interval: INTERVAL },
        &signals,
        &mut progress,
        &mut say,
    );
    let result = match validated {
        Ok(ValidationOutcome::Interrupted(signal)) => {
            say("ended by a signal before the last run: nothing can be said of fewer");
            return Ok(code_of(signal));
        }
        Ok(ValidationOutcome::Validated(validation)) => Ok(validation),
        Ok(ValidationOutcome::NothingInTurns { counted, refused }) => Err(nothing_in_turns(&counted, &refused)),
        // Its text has escaped what comes from outside.
        Err(error @ measure::Error::NoCounters { .. }) => Err(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    let text = match (&result, args.json) {
        (Ok(validation), true) => json(validation, own),
        (Ok(validation), false) => text(validation, own, paint),
        (Err(why), true) => {
            format!("{}\n", json!({ "version": 1, "validation": { "conclusion": "unknown", "why": why } }))
        }
        (Err(why), false) => nothing(why),
    };
    Stream::stdout().print(&text)?;
    Ok(result.map_or(Conclusion::Unknown, |validation| validation.conclusion).code())
}

fn options(args: &CheckArgs) -> Result<MeasureOptions, Error> {
    let own = &args.validation;
    let mut events = args.events.clone();
    if events.is_empty() && (own.is_modelled() || own.counting.counters.is_none()) {
        let names = if own.is_modelled() { MODELLED } else { HARDWARE };
        say(&format!("no -e given: validating {names}"));
        events.push(names.into());
    }
    let method = method(&own.counting, &own.rotation, &own.corrections)?;
    Ok(MeasureOptions { events, event_tables: args.event_tables.clone(), ..method })
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
    let start = CommandLine { argv: of_length(0), folder: None, io: ChildIo::Discard };
    Ok((of_length(length), mix::known(length).map(|counts| KnownCommand { start, counts })))
}

/// Says on a terminal how far it is; the line goes at the end.
fn progress(done: usize, all: Option<usize>) {
    let mut out = std::io::stderr();
    if !out.is_terminal() {
        return;
    }
    let text = match all {
        Some(all) if done == all => String::new(),
        Some(all) => format!("run {} of {all}", done + 1),
        None => "finding out what fits on the counters".into(),
    };
    // Nothing can report that standard error is closed.
    let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
}

fn names(events: &[MeasuredEvent]) -> String {
    events.iter().map(|event| shown(&event.event.name)).collect::<Vec<_>>().join(",")
}

fn nothing_in_turns(counted: &[MeasuredEvent], refused: &[MeasuredEvent]) -> String {
    let of_software = counted.iter().all(|event| event.event.kind.is_software());
    let why = match (of_software, counted.len()) {
        (true, _) => "the kernel counts these all the time, without hardware counters".to_owned(),
        (false, 1) => "it has a counter all the time".to_owned(),
        (false, _) => "they all fit on the counters at once".to_owned(),
    };
    let mut text = format!("no event takes turns: {}: {why}", names(counted));
    if !refused.is_empty() {
        let _ = write!(text, "; not counted on this machine: {}", names(refused));
    }
    text
}

/// What to do where there is nothing to validate.
fn nothing(why: &str) -> String {
    let mut text = format!("There is nothing to validate here.\n  {}\n", why.replace('\n', "\n  "));
    text.push_str("  Counts are exact where nothing takes turns. To validate in spite of that:\n");
    text.push_str("    more events than counters:     perfprop check --validate -e EVENTS\n");
    text.push_str("    the same events on two:        perfprop check --validate --counters 2 -e EVENTS -- COMMAND\n");
    text.push_str("    a model, on any machine:       perfprop check --validate --source emulate --counters 2\n");
    text
}

/// A part in percent, with as many digits as errors of totals need.
fn fine(part: f64) -> String {
    match part * 100.0 {
        0.0 => "0%".into(),
        percent if !percent.is_finite() => "—".into(),
        percent if percent >= 999.5 => ">999%".into(),
        percent if percent >= 10.0 => format!("{percent:.0}%"),
        percent if percent >= 1.0 => format!("{percent:.1}%"),
        percent if percent >= 0.1 => format!("{percent:.2}%"),
        percent if percent >= 0.001 => format!("{percent:.3}%"),
        _ => "<0.001%".into(),
    }
}

fn error(error: Option<RelativeError>) -> String {
    match error {
        None => "—".into(),
        Some(RelativeError::Of(part)) => fine(part),
        Some(RelativeError::Below(part)) => format!("<{}", fine(part).trim_start_matches('<')),
    }
}

/// `9 of 10`; with how many can't be known behind it.
fn coverage(coverage: Coverage) -> String {
    match coverage {
        Coverage { held: 0, missed: 0, unclear: 0 } => "—".into(),
        Coverage { unclear: 0, held, .. } => format!("{held} of {}", coverage.judged()),
        Coverage { unclear, held, .. } => format!("{held} of {}, {unclear}?", coverage.judged()),
    }
}

fn text(validation: &Validation, args: &ValidateArgs, paint: Paint) -> String {
    let mut text = format!("{}\n", paint.heading("Numbers against the truth"));
    for line in about(validation, args) {
        let _ = writeln!(text, "  {}", wrapped(&line, 2));
    }
    let _ = writeln!(
        text,
        "\n{}",
        paint.heading(&format!(
            "{:>10} {:>8} {:>5} {:>8} {:>8}  {:>10}  {:>12}  {:<14} EVENT",
            "TRUTH",
            "RUNS ±",
            "ON",
            "SCALED",
            "PERFPROP",
            "IN ±",
            format!("OF {} ms", validation.interval.as_millis()),
            "VERDICT"
        ))
    );
    validation.events.iter().for_each(|event| text.push_str(&event_line(event)));
    text.push_str(&known_text(&validation.events, paint));
    let _ = writeln!(text, "\n{}", paint.heading("Verdict"));
    for line in verdict(validation) {
        let _ = writeln!(text, "  {}", wrapped(&line, 2));
    }
    text
}

/// What was done, and how the truth is known.
fn about(validation: &Validation, args: &ValidateArgs) -> Vec<String> {
    let command: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let command = match command.as_slice() {
        [] => "the built-in mix of loops, memory accesses and branches".to_owned(),
        words => format!("'{}'", shown(&words.join(" "))),
    };
    let runs = validation.runs;
    let columns = "SCALED and PERFPROP are errors of totals. IN ± says how many intervals hold the truth, of totals and of report \
                   intervals";
    let mut lines = match args.counting.counters {
        Some(counters) => {
            let truth = "the truth was counted beside, in the same runs.";
            vec![format!("{command} ran {runs} times on {counters} emulated counters; {truth}"), format!("{columns}.")]
        }
        None => vec![
            format!(
                "{command} ran {runs} times with all events in turns, and between these {} times with some of them pinned to \
                 counters, so that each was counted all the time in {runs} runs. What it did in a run with turns isn't known, \
                 only what it did in the others: by how much these differ (RUNS ±) is taken off errors and added to intervals.",
                validation.truth_runs
            ),
            format!("{columns}; `?` are those that are narrower than RUNS ±, of which nobody can know."),
        ],
    };
    if let Some(exit) = validation.failed {
        let how = match exit {
            Exit::Code(code) => format!("with code {code}"),
            Exit::Signal(signal) => format!("by signal {signal}"),
        };
        lines.push(format!("The command ended {how} in a run: check that it does what it should."));
    }
    lines
}

fn event_line(event: &ValidatedEvent) -> String {
    let unit = &event.event.event.unit;
    format!(
        "{:>10} {:>8} {:>5} {:>8} {:>8}  {:>10}  {:>12}  {:<14} {}\n",
        event.truth.map_or_else(|| "—".into(), |truth| amount(truth.value, unit)),
        event.truth.map_or_else(|| "—".into(), |truth| plus_minus(truth, unit)),
        event.run_ratio.map_or_else(|| "—".into(), whole_share),
        error(event.scaled),
        error(event.estimated),
        coverage(event.totals),
        coverage(event.intervals),
        event.validity.word(),
        shown(&event.event.event.name)
    )
}

/// Counts beside their known values.
fn known_text(events: &[ValidatedEvent], paint: Paint) -> String {
    let known: Vec<_> = events.iter().filter_map(|event| Some((event, event.known?))).collect();
    if known.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint.heading("Counts of the mix, whose loops are in assembly and known exactly"));
    for (event, known) in known {
        let KnownCount { counted, known: exact, is_user_only } = known;
        let judged = match (known.is_wrong(), is_user_only) {
            (true, _) => "wrong",
            (false, true) => "right",
            (false, false) => "right, with what the kernel adds",
        };
        let off = known.deviation();
        let off = format!("{}{}", if off < 0.0 { "−" } else { "+" }, fine(off.abs()));
        let _ = writeln!(
            text,
            "  {:<18} counted {:>14}  known {:>14}  off {off:>9}  {judged}",
            shown(&event.event.event.name),
            grouped(counted.round() as u64),
            grouped(exact)
        );
    }
    text.push_str("  What the process needs to start was counted alone, and is taken off.\n");
    text
}

/// What all of it comes to, and what can't be known.
fn verdict(validation: &Validation) -> Vec<String> {
    let promised = whole_share(validation.confidence.level());
    let of = |coverage: Coverage, what: &str| {
        let share = coverage.share().map_or_else(|| "none".into(), whole_share);
        format!("{} of {} {what} ({share})", coverage.held, coverage.judged())
    };
    let millis = validation.interval.as_millis();
    let held = format!(
        "the truth lies in {} and in {}; {promised} are promised",
        of(validation.totals, "totals"),
        of(validation.intervals, &format!("intervals of {millis} ms"))
    );
    let with = |validity: Validity| {
        let events = validation.events.iter().filter(|event| event.validity == validity);
        events.map(|event| event.event.event.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut lines = vec![match validation.conclusion {
        Conclusion::Holds => format!("The intervals hold: {held}."),
        Conclusion::Fails => format!("The intervals don't hold what they promise, or a known count is wrong: {held}."),
        Conclusion::Unknown => format!("That can't be known: {held}. {}", why_unknown(validation)),
    }];
    let remarks = [
        (Validity::TooNarrow, "Too narrow by more than chance"),
        (Validity::Unclear, "Not known, as runs differ by more than the intervals are wide, or there are none"),
        (
            Validity::NoTruth,
            "Without a truth, as they never had a counter all the time (who holds one? perfprop check)",
        ),
        (Validity::NotCounted, "Not counted on this machine"),
    ];
    for (validity, what) in remarks {
        let events = with(validity);
        if !events.is_empty() {
            lines.push(format!("{what}: {}.", shown(&events)));
        }
    }
    let wrong = validation.events.iter().filter(|event| event.known.is_some_and(KnownCount::is_wrong));
    let wrong: Vec<_> = wrong.map(|event| shown(&event.event.event.name)).collect();
    if !wrong.is_empty() {
        lines.push(format!(
            "Known counts are wrong: {}. The hardware or its guest counts something else.",
            wrong.join(", ")
        ));
    }
    lines
}

fn why_unknown(validation: &Validation) -> String {
    let judged = validation.totals.judged();
    match validation.totals {
        Coverage { unclear, .. } if unclear > judged => {
            "The command differs from run to run by more than the intervals are wide: give one that does the same each \
             time, or longer runs."
                .into()
        }
        _ if judged == 0 => "No interval could be held against a truth.".into(),
        _ => {
            let runs = (validation.runs as u64 * ENOUGH).div_ceil(judged).max(validation.runs as u64 * 2);
            format!("That is too few to say: -r {runs}.")
        }
    }
}

fn json(validation: &Validation, args: &ValidateArgs) -> String {
    let command: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let report = json!({
        "version": 1,
        "perfprop": env!("CARGO_PKG_VERSION"),
        "validation": {
            "command": if command.is_empty() { Value::Null } else { json!(command) },
            "runs": validation.runs,
            "truth-runs": validation.truth_runs,
            "truth": if args.counting.counters.is_some() { "same run" } else { "other runs" },
            "interval-ms": validation.interval.as_millis() as u64,
            "confidence": validation.confidence.level(),
            "events": validation.events.iter().map(event_json).collect::<Vec<_>>(),
            "totals": coverage_json(validation.totals),
            "intervals": coverage_json(validation.intervals),
            "ended-badly": validation.failed.map(Exit::shell_code),
            "conclusion": validation.conclusion.word(),
        },
    });
    format!("{report}\n")
}

fn coverage_json(coverage: Coverage) -> Value {
    json!({ "held": coverage.held, "missed": coverage.missed, "unclear": coverage.unclear, "coverage": coverage.share() })
}

fn event_json(event: &ValidatedEvent) -> Value {
    let truth = event.truth;
    let mut members = Map::new();
    members.insert("event".into(), event.event.event.name.clone().into());
    members.insert("verdict".into(), event.validity.word().into());
    members.insert("run-ratio".into(), event.run_ratio.into());
    members.insert("truth".into(), truth.map(|truth| truth.value).into());
    members.insert("runs-differ-by".into(), truth.and_then(|truth| truth.error.half_width()).into());
    for (name, error) in [
        ("scaled-error", event.scaled),
        ("error", event.estimated),
        ("interval-scaled-error", event.scaled_intervals),
        ("interval-error", event.estimated_intervals),
    ] {
        members.insert(name.into(), error.map(RelativeError::size).into());
        members.insert(format!("{name}-is-below"), error.map(|error| matches!(error, RelativeError::Below(_))).into());
    }
    members.insert("totals".into(), coverage_json(event.totals));
    members.insert("intervals".into(), coverage_json(event.intervals));
    let known = event.known.map(|known| {
        json!({
            "known": known.known, "counted": known.counted, "deviation": known.deviation(),
            "by": "assembly", "user-only": known.is_user_only, "wrong": known.is_wrong(),
        })
    });
    members.insert("known".into(), known.unwrap_or_default());
    members.into()
}
