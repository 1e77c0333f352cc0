//! `perfprop replay`: a recording in, the screens that the live run would have shown out.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::Error;
use super::args::{EstimatorName, Replay};
use super::prepare::{self, Relations};
use super::stream::{Stream, say};
use crate::monitor::{Measure, Monitor};
use crate::recording::{self, Recording};
use crate::text;
use crate::units::WallNs;
use crate::words::shown;

pub(super) fn run(args: &Replay) -> Result<u8, Error> {
    let recording = read(&args.file)?;
    let mut monitor = monitor(args, &recording)?;
    let mut out = Stream::stdout();
    for (round, lost) in &recording.rounds {
        if monitor.round(round, *lost) {
            out.print(&format!("{}\n", text::block(&monitor, Measure::default())))?;
        }
    }
    Ok(0)
}

fn read(path: &Path) -> Result<Recording, Error> {
    let failed = |source| Error::Recording { path: path.into(), source };
    let input: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(BufReader::new(io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(path).map_err(|error| failed(recording::ReadError::Io(error)))?))
    };
    let recording = recording::read(input).map_err(failed)?;
    if let Some(cut) = recording.cut {
        say(&format!("the recording is cut off in line {}; showing what was written before", cut.line));
    }
    Ok(recording)
}

/// A monitor as the live run had it, or as the options change it.
fn monitor(args: &Replay, recording: &Recording) -> Result<Monitor, Error> {
    let mut header = recording.header.clone();
    let relations = if args.relations.is_empty() {
        prepare::recorded_relations(&header.relations)
    } else {
        let Relations { all, files } = prepare::load_relations(&args.relations, args.relations_lenient)?;
        header.relations = files;
        header.estimator = prepare::name(EstimatorName::Linear).into();
        all
    };
    if let Some(interval) = args.interval {
        header.interval_ns = WallNs(interval * 1_000_000);
    }
    let estimator = match args.estimator {
        Some(estimator) => estimator,
        None => prepare::estimator_named(&header.estimator).unwrap_or_else(|| {
            say(&format!("no estimator is called {}; using scale", shown(&header.estimator)));
            EstimatorName::Scale
        }),
    };
    header.estimator = prepare::name(estimator).into();
    Ok(prepare::monitor(header, relations, estimator))
}
