//! `perfprop record`: a command and events in, a recording out.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use crossbeam_channel::never;

use super::Error;
use super::args::Record;
use super::pump::{Given, Taking, pump_all};
use super::stream::say;
use super::{prepare, signals, stacks};
use crate::recording::{Header, Recorder};
use crate::session::ChildIo;
use crate::stacks::Losses;
use crate::words::shown;

pub(super) fn run(args: &Record) -> Result<u8, Error> {
    let mut launch = prepare::launch(&args.target, ChildIo::Inherit)?;
    let wishes = prepare::wishes(&args.events, &args.target)?;
    launch.stacks = stacks::wanted(&args.stacks, &args.events, &wishes)?;
    let signals = signals::listen().map_err(Error::System)?;
    let failed = |source| Error::Write { path: args.output.clone(), source };
    // Opened first, so that nothing runs whose recording can't be kept.
    let out = Out::open(&args.output).map_err(failed)?;
    let period = Duration::from_millis(args.interval);
    let (session, header) = prepare::start(&wishes, &launch, period, period)?;
    prepare::tell_partial(&header.events);
    let mut recorder = out.recorder(&header).map_err(failed)?;
    if let Some(stacks) = session.stacks() {
        recorder.sampled(stacks.sampled()).map_err(failed)?;
    }
    let mut written = Written::default();
    let mut write = |given: Given<'_>| {
        written.note(given);
        let done = match given {
            Given::Round(round, lost) => recorder.round(round, lost),
            Given::Stacks(batch) => recorder.stacks(batch),
        };
        done.map_err(failed)
    };
    let batches = session.stacks().map_or_else(never, |stacks| stacks.batches().clone());
    let take = |given: Given<'_>| write(given).map(ControlFlow::Continue);
    let finished = pump_all(&session, &signals, batches, Taking::Batches, take)?;
    if let Some(stacks) = session.stacks() {
        stacks.stop();
        stacks.batches().iter().try_for_each(|batch| write(Given::Stacks(&batch)))?;
    }
    recorder.end(&finished.end).map_err(failed)?;
    if args.output.as_os_str() != "-" {
        let with_stacks = session.stacks().is_some();
        let what = written.words(finished.end.lost_rounds, with_stacks);
        say(&format!("{what} in {}", shown(&args.output.display().to_string())));
    }
    Ok(finished.code())
}

/// How much is in a recording.
#[derive(Default)]
struct Written {
    rounds: u64,
    samples: u64,
    /// Functions of a call graph that a model counted.
    functions: usize,
    losses: Losses,
}

impl Written {
    fn note(&mut self, given: Given<'_>) {
        match given {
            Given::Round(..) => self.rounds += 1,
            Given::Stacks(batch) => {
                self.samples += batch.samples.len() as u64;
                if !batch.costs.is_empty() {
                    self.functions += batch.frames.len();
                }
                self.losses = batch.losses;
            }
        }
    }

    fn words(&self, lost_rounds: u64, with_stacks: bool) -> String {
        let mut words = format!("{} rounds", self.rounds);
        if lost_rounds > 0 {
            words += &format!(", {lost_rounds} lost");
        }
        if with_stacks {
            let losses = self.losses.to_string();
            let losses = if losses.is_empty() { losses } else { format!(" ({losses})") };
            words += &match self.functions {
                0 => format!(", {} samples with call stacks{losses}", self.samples),
                functions => format!(", the calls of {functions} functions{losses}"),
            };
        }
        words
    }
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
