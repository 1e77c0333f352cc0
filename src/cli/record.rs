//! `perfprop record`: a command and events in, a recording out.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use super::Error;
use super::args::Record;
use super::prepare;
use super::pump::{Taking, pump};
use super::signals;
use super::stream::say;
use crate::recording::{Header, Recorder};
use crate::session::ChildIo;
use crate::words::shown;

pub(super) fn run(args: &Record) -> Result<u8, Error> {
    let launch = prepare::launch(&args.target, ChildIo::Inherit)?;
    let wishes = prepare::wishes(&args.events)?;
    let signals = signals::listen().map_err(Error::System)?;
    let failed = |source| Error::Write { path: args.output.clone(), source };
    // Opened first, so that nothing runs whose recording can't be kept.
    let out = Out::open(&args.output).map_err(failed)?;
    let period = Duration::from_millis(args.interval);
    let (session, header) = prepare::start(&wishes, &launch, period, period)?;
    let mut recorder = out.recorder(&header).map_err(failed)?;
    let mut rounds = 0_u64;
    let finished = pump(&session, &signals, Taking::Batches, |round, lost| {
        rounds += 1;
        recorder.round(round, lost).map_err(failed)?;
        Ok(ControlFlow::Continue(()))
    })?;
    recorder.end(&finished.end).map_err(failed)?;
    let lost = finished.end.lost_rounds;
    let losses = if lost > 0 { format!(", {lost} lost") } else { String::new() };
    if args.output.as_os_str() != "-" {
        say(&format!("{rounds} rounds{losses} in {}", shown(&args.output.display().to_string())));
    }
    Ok(finished.code())
}

/// Where the recording goes.
enum Out<'a> {
    Stdout,
    File { path: &'a Path },
}

impl<'a> Out<'a> {
    fn open(path: &'a Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Stdout);
        }
        // Tried without changing what is there: the recorder sets that aside.
        File::options().append(true).create(true).open(path)?;
        Ok(Self::File { path })
    }

    fn recorder(&self, header: &Header) -> io::Result<Recorder<Box<dyn Write>>> {
        let out: Box<dyn Write> = match self {
            Self::Stdout => Box::new(io::stdout()),
            Self::File { path } => Box::new(crate::recording::create_keeping_old(path)?),
        };
        Recorder::new(out, header)
    }
}
