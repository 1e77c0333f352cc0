//! Implements `perfprop relations learn`: makes a model of a program from its recordings, or the prior of
//! `gp` from programs' complete counts.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};

use super::Error;
use super::input::{open, open_recording, refuse_input};
use super::progress::ProgressLine;
use super::stream::{Stream, say};
use crate::estimate::OnCpu;
use crate::estimate::gp::{Complete, CovarianceModel, Prior};
use crate::names::{shown, shown_path};
use crate::number::counted;
use crate::recording::{self, ReadError, Recording};
use crate::sources::{Reading, RecordedRound, Scope};
use crate::stack_formats::unpacked;
use crate::units::WallNs;

/// The arguments of `perfprop relations learn`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("to").required(true), after_help = "Examples:
  perfprop record -I 4 -r 3 -o run.jsonl -- ./prog                    three recordings to learn from
  perfprop relations learn --program prog.model run-*.jsonl           what they teach of this program
  perfprop top --learnt prog.model -- ./prog                          use it
  perfprop relations learn --prior prior.json counts-*.csv.gz         of programs at large, from complete counts")]
pub(super) struct LearnArgs {
    /// Write a model of one program, from recordings of runs in which its events took turns, made anew each time.
    /// Short rounds teach most: `record -I 4`. It is for `--learnt`
    #[arg(long, value_name = "MODEL", group = "to")]
    pub(super) program: Option<PathBuf>,
    /// Write what holds of programs at large, from complete counts; `-` is standard output
    #[arg(long, value_name = "FILE", group = "to")]
    pub(super) prior: Option<PathBuf>,
    /// Recordings of the program; for `--prior`, tables of counts (CSV, gzipped or not): a header of event names, a row
    /// for each millisecond
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
}

/// A table of counts.
struct Table {
    names: Vec<String>,
    rows: Vec<Vec<f64>>,
    row_ms: f64,
}

/// The first column of tables whose rows are of uneven length, and the length that they are meant
/// to have; rows of all others last a millisecond.
const WALL_TIME: &str = "bin_us";
const WALL_ROW_MS: f64 = 2.0;

/// `perfprop relations learn`.
pub(super) fn run(args: &LearnArgs) -> Result<u8, Error> {
    match (&args.program, &args.prior) {
        (Some(model), _) => program(&args.files, model),
        (None, Some(file)) => prior(&args.files, file),
        (None, None) => Err(Error::Usage("give --program MODEL or --prior FILE".into())),
    }
}

/// A model of the program that all these recordings are of.
fn program(files: &[PathBuf], to: &Path) -> Result<u8, Error> {
    refuse_recording(to)?;
    // Learning takes seconds: what is wrong with a file is said before.
    let recordings = files.iter().map(|path| recorded(path)).collect::<Result<Vec<_>, _>>()?;
    for (path, recording) in files.iter().zip(&recordings).skip(1) {
        let names = [&recordings[0], recording].map(names);
        if names[0] != names[1] {
            return Err(other_events([&files[0], path], names));
        }
    }
    let (mut model, mut runs) = (None, 0);
    for (path, recording) in files.iter().zip(&recordings) {
        match taught(recording, model.as_ref(), &shown_path(path)) {
            Some(next) => (model, runs) = (Some(next), runs + 1),
            None => say(&format!("{}: no event took turns, so nothing is learnt from it", shown_path(path))),
        }
    }
    let model = model.ok_or_else(|| nothing("no event took turns in these recordings, so all counts are exact"))?;
    if model.windows() == 0 {
        return Err(nothing("these runs are too short: a window is 100 ms of CPU time"));
    }
    model.write(to).map_err(|source| Error::Write { path: to.into(), source })?;
    let (windows, events) = (model.windows(), model.events().len());
    let runs = counted(runs, "run");
    let learnt = format!("learnt from {runs} ({windows} windows, {events} events): {}", shown_path(to));
    say(&format!("{learnt}\n      for it: perfprop stat --learnt {} -e ... -- COMMAND", shown_path(to)));
    Ok(0)
}

/// What a run teaches after earlier ones; `None` if no event was multiplexed in it. Anchors and the truth aren't
/// looked at.
fn taught(recording: &Recording, earlier: Option<&CovarianceModel>, name: &str) -> Option<CovarianceModel> {
    let events = recording.header.bare_events();
    let mut run = OnCpu::learning(&events, earlier.cloned());
    let mut last = vec![Reading::default(); events.len()];
    let mut before = WallNs(0);
    let (what, of) = (format!("learning from {name}"), recording.rounds.len() as u64);
    let mut progress = ProgressLine::new();
    for (done, RecordedRound { round, .. }) in (0_u64..).zip(&*recording.rounds) {
        progress.part(&what, done, of);
        let counted = recording.header.events.iter().zip(&round.readings).zip(&mut last);
        let deltas: Vec<_> = counted
            .map(|((event, reading), last)| reading.and_then(|reading| event.delta(last, reading).ok()))
            .collect();
        run.round(std::mem::replace(&mut before, round.at), round.at, &deltas);
    }
    run.model()
}

/// Reads a recording of rows that are each of the whole target.
fn recorded(path: &Path) -> Result<Recording, Error> {
    let recording = open_recording(path)?;
    if recording.header.events.iter().any(|event| event.scope != Scope::All) {
        let what = "has rows for single CPUs or threads, and a model is of a whole program";
        return Err(Error::Input(format!("{} {what}: record it without -A and --per-thread", shown_path(path))));
    }
    if let Some(words) = recording.breaks_off() {
        say(&format!("{} {words}; learning from what was written before", shown_path(path)));
    }
    Ok(recording)
}

/// What was measured can't be measured again: it isn't overwritten by mistake.
fn refuse_recording(to: &Path) -> Result<(), Error> {
    if !to.is_file() {
        return Ok(());
    }
    let read = File::open(to).and_then(unpacked).map(|input| recording::read(BufReader::new(input)));
    if matches!(read, Ok(Ok(_) | Err(ReadError::Line { .. }))) {
        let what = "is a recording, which the model would overwrite";
        return Err(Error::Input(format!("{} {what}: name another file behind --program", shown_path(to))));
    }
    Ok(())
}

/// What a recording counted.
fn names(recording: &Recording) -> String {
    let names: Vec<_> = recording.header.events.iter().map(|event| event.event.name.as_str()).collect();
    names.join(",")
}

fn other_events(files: [&Path; 2], names: [String; 2]) -> Error {
    let [a, b] = files.map(shown_path);
    let [first, other] = names.map(|names| shown(&names).into_owned());
    Error::Input(format!(
        "{b} counted other events than {a}, or in another order: {other} instead of {first}\n      \
         a model is of the same events in each run: give record the same -e"
    ))
}

fn nothing(why: &str) -> Error {
    Error::Input(format!(
        "{why}: there is nothing to learn\n      \
         record a run of a second or more with more events than counters:  perfprop record -I 4 -e EVENTS -- COMMAND"
    ))
}

/// What holds of these programs at large.
fn prior(traces: &[PathBuf], to: &Path) -> Result<u8, Error> {
    let wrong = |path: &PathBuf, error: io::Error| Error::Input(format!("trace {}: {error}", shown_path(path)));
    // A shell puts the first trace where the name of the prior is missing.
    if to.is_file() && read(to).is_ok() {
        return Err(Error::Input(format!(
            "{} is a table of counts, which the prior would overwrite: name another file behind --prior",
            shown_path(to)
        )));
    }
    refuse_input(traces.iter(), to)?;
    let tables: Result<Vec<Table>, Error> =
        traces.iter().map(|path| read(path).map_err(|error| wrong(path, error))).collect();
    let tables = tables?;
    let programs: Vec<Complete<'_>> =
        tables.iter().map(|table| Complete { names: &table.names, rows: &table.rows, row_ms: table.row_ms }).collect();
    if let Some((path, _)) = traces.iter().zip(&programs).find(|(_, program)| !program.is_long_enough()) {
        let least = "it has less than 300 ms of counts, which say nothing of how a program varies";
        return Err(Error::Input(format!(
            "trace {}: {least}\n      record a longer run, or leave the trace out",
            shown_path(path)
        )));
    }
    let mut progress = ProgressLine::new();
    let learnt = Prior::learn(&programs, |done| progress.part("learning", done as u64, programs.len() as u64));
    progress.clear();
    let text = learnt.to_json().map_err(io::Error::from);
    let text = text.map_err(|source| Error::Write { path: to.into(), source })?;
    Stream::write_whole(Some(to), &(text + "\n"))?;
    Ok(0)
}

/// The largest table of counts, unpacked: ten minutes of a hundred events each millisecond.
const LARGEST_TABLE: u64 = 512 << 20;

/// Reads CSV, gzipped or not: a header of names, then counts.
fn read(path: &Path) -> io::Result<Table> {
    let mut text = String::new();
    if unpacked(open(path)?)?.take(LARGEST_TABLE + 1).read_to_string(&mut text)? as u64 > LARGEST_TABLE {
        return Err(io::Error::other(format!("it is larger than {} MiB once it is unpacked", LARGEST_TABLE >> 20)));
    }
    let mut lines = text.lines();
    let header = lines.next().ok_or_else(|| io::Error::other("it is empty"))?;
    let wall = header.split(',').next() == Some(WALL_TIME);
    let names: Vec<String> = header.split(',').skip(usize::from(wall)).map(str::to_owned).collect();
    let mut rows = Vec::new();
    for (number, line) in lines.enumerate() {
        let row: Option<Vec<f64>> = line
            .split(',')
            .skip(usize::from(wall))
            .map(|field| field.parse().ok().filter(|v: &f64| v.is_finite()))
            .collect();
        match row {
            Some(row) if row.len() == names.len() => rows.push(row),
            _ => return Err(io::Error::other(format!("line {}: not {} counts", number + 2, names.len()))),
        }
    }
    Ok(Table { names, rows, row_ms: if wall { WALL_ROW_MS } else { 1.0 } })
}
