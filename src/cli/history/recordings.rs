//! Reads recordings and stacks for `perfprop history add`: what a run took, and where it spent that.

use std::fs::File;
use std::io;
use std::path::Path;

use super::super::Error;
use super::super::replay::seen;
use super::super::stream::say;
use crate::cost::TIME;
use crate::estimate::EstimatorKind;
use crate::events::EventKind;
use crate::history::results::MachineFacts;
use crate::history::{CountedOn, MeasuredQuantity, in_name, machine_facts};
use crate::measure::{self, Estimation};
use crate::monitor::Monitor;
use crate::names::quoted_path;
use crate::rates::{Confidence, Error as NumberError, Uncertain};
use crate::recording::{self, Recording};
use crate::run::MeasuredTarget;
use crate::sources::command::Exit;
use crate::stack_formats::{self, InputFormat, OutputFormat, ReadOptions, WriteOptions};
use crate::units::WallNs;

/// What a file holds of a run.
pub(super) enum ReadRun {
    /// Counts, and stacks if any were sampled.
    Recorded(Box<RecordedRun>),
    /// Stacks that another tool wrote.
    Stacks(FoldedStacks),
}

/// A recording, as what is kept of it.
pub(super) struct RecordedRun {
    /// The program's name, if perfprop started one.
    pub(super) program: Option<String>,
    /// The command; empty if perfprop started none.
    pub(super) argv: Vec<String>,
    /// Whether the recording has the end of the run.
    pub(super) is_whole: bool,
    /// Whether it ended with another code than 0, or by a signal.
    pub(super) has_failed: bool,
    pub(super) machine: MachineFacts,
    pub(super) quantities: Vec<MeasuredQuantity>,
    pub(super) stacks: Option<FoldedStacks>,
}

/// Stacks as lines `main;f;g 12`.
pub(super) struct FoldedStacks {
    /// What weighs them.
    pub(super) event: String,
    pub(super) text: String,
}

/// What asv's results have as the interval of a number.
const LEVEL: f64 = 0.99;

/// Reads a file; `None` if it is neither a recording nor stacks.
pub(super) fn read(path: &Path) -> Result<Option<ReadRun>, Error> {
    let failed = |error| Error::Recording { path: path.into(), source: recording::ReadError::Io(error) };
    let open = || File::open(path).map_err(failed);
    let (format, input) = stack_formats::sniff(open()?).map_err(failed)?;
    match format {
        None => Ok(None),
        Some(InputFormat::Recording) => {
            let recording = match recording::read(io::BufReader::new(input)) {
                Ok(recording) => recording,
                // Another program's JSON.
                Err(recording::ReadError::Foreign { .. }) => return Ok(None),
                Err(source) => return Err(Error::Recording { path: path.into(), source }),
            };
            let has_stacks = recording.profile().is_some_and(|profile| profile.sampled.is_some());
            let stacks = if has_stacks { folded(path, open()?)? } else { None };
            Ok(Some(ReadRun::Recorded(Box::new(recorded(&recording, stacks)?))))
        }
        Some(_) => Ok(folded(path, input)?.map(ReadRun::Stacks)),
    }
}

/// The stacks of a file; `None` if there are none.
fn folded(path: &Path, input: impl io::Read) -> Result<Option<FoldedStacks>, Error> {
    let imported = stack_formats::read(input, &ReadOptions::default());
    let Some(event) = imported.tree.default_event() else { return Ok(None) };
    if let Some(fault) = &imported.fault {
        say(&format!("{}: {fault}; what stood before it is kept", quoted_path(path)));
    }
    let options = WriteOptions { event: Some(event), ..WriteOptions::default() };
    let mut text = Vec::new();
    stack_formats::write(&imported.tree, OutputFormat::Folded, &options, &mut text)
        .map_err(|error| Error::Input(format!("{}: {error}", quoted_path(path))))?;
    let event = imported.tree.event_of(event).name.clone();
    Ok(Some(FoldedStacks { event, text: String::from_utf8_lossy(&text).into_owned() }))
}

fn recorded(recording: &Recording, stacks: Option<FoldedStacks>) -> Result<RecordedRun, Error> {
    let header = &recording.header;
    let relations = measure::recorded_relations(&header.relations);
    let kind = EstimatorKind::named(&header.estimator).unwrap_or(EstimatorKind::Scale);
    let confidence = Confidence::new(LEVEL).unwrap_or_default();
    let events = header.events.iter().map(|event| &event.event);
    let estimation = Estimation::new(kind, confidence, None, events, &mut say)?;
    let monitor = seen(recording, measure::monitor(header.clone(), relations, estimation), WallNs(u64::MAX));
    let on = if header.modelled.is_some() { CountedOn::Model } else { CountedOn::Machine };
    let argv = match &header.target {
        MeasuredTarget::Command { argv, .. } => argv.clone(),
        _ => Vec::new(),
    };
    let program = argv.first().map(|path| in_name(path.rsplit('/').next().unwrap_or(path)));
    let exit = recording.end.as_ref().and_then(|end| end.exit);
    let has_failed = exit.is_some_and(|exit| exit != Exit::Code(0));
    let mut quantities = counts(&monitor);
    // How long a command took is its time; how long others were watched isn't theirs. Under a model it is that of the model.
    if program.is_some() && on == CountedOn::Machine && recording.end.is_some() {
        let time = recording.length().0 as f64;
        quantities.insert(0, MeasuredQuantity { name: TIME.to_owned(), number: time, interval: None });
    }
    Ok(RecordedRun {
        program,
        argv,
        is_whole: is_whole(recording),
        has_failed,
        machine: machine_facts(header.machine.clone(), on),
        quantities,
        stacks,
    })
}

/// Whether a recording has the end of a run: one that was saved while the command ran says nothing of how that ended.
fn is_whole(recording: &Recording) -> bool {
    let is_command = matches!(recording.header.target, MeasuredTarget::Command { .. });
    recording.end.as_ref().is_some_and(|end| !is_command || end.exit.is_some())
}

/// The count of each event over the run; those of threads and CPUs are summed.
fn counts(monitor: &Monitor) -> Vec<MeasuredQuantity> {
    let summed = monitor.parts().iter().map(|parts| {
        let sum = monitor.sum(&parts.events);
        (parts.name.clone(), sum.estimate.or(sum.scaled))
    });
    let is_whole = |row: &crate::monitor::Row<'_>| row.event.scope == crate::sources::Scope::All;
    let is_counted = |row: &crate::monitor::Row<'_>| row.event.event.kind != EventKind::Tool && row.absence.is_none();
    let rows = monitor.rows().filter(|row| is_whole(row) && is_counted(row));
    let whole = rows.map(|row| (row.event.event.name.clone(), row.best()));
    let quantity = |(name, number): (String, Option<Uncertain>)| {
        let number = number?;
        let interval = match number.error {
            NumberError::Within { below, above } => Some((number.value - below, number.value + above)),
            NumberError::Exact => Some((number.value, number.value)),
            NumberError::Unknown => None,
        };
        Some(MeasuredQuantity { name, number: number.value, interval })
    };
    whole.chain(summed).filter_map(quantity).collect()
}
