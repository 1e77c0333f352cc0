//! `perfprop top`: a command and events in, live screens out, or text where there is no terminal.

use std::ops::ControlFlow;
use std::time::Duration;

use super::Error;
use super::args::Top;
use super::prepare;
use super::pump::pump;
use super::signals;
use super::stream::{Stream, has_terminal, say};
use crate::monitor::Measure;
use crate::session::ChildIo;
use crate::text;

pub(super) fn run(args: &Top) -> Result<u8, Error> {
    if args.batch || args.iterations.is_some() {
        return batch(args);
    }
    if !has_terminal() {
        say(NO_TERMINAL);
        return batch(args);
    }
    screens(args)
}

const NO_TERMINAL: &str =
    "E09 no terminal, printing text every interval instead (--batch; JSON lines: perfprop stat -I 1000 -j)";

/// A block of text an interval on standard output; the command's output goes to standard error.
fn batch(args: &Top) -> Result<u8, Error> {
    let wishes = prepare::wishes(&args.events)?;
    let launch = prepare::launch(&args.target, ChildIo::ToStderr)?;
    let signals = signals::listen().map_err(Error::System)?;
    let interval = Duration::from_millis(args.interval);
    let (session, header) = prepare::start(&wishes, &launch, prepare::period(interval), interval)?;
    let mut monitor = prepare::monitor(header, wishes.relations.all, wishes.estimator);
    let mut out = Stream::stdout();
    let finished = pump(&session, &signals, |round, lost| {
        if monitor.round(round, lost) {
            out.print(&format!("{}\n", text::block(&monitor, Measure::default())))?;
            if args.iterations == Some(monitor.intervals()) {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let intervals = monitor.intervals();
    let enough = args.iterations == Some(intervals);
    monitor.end(finished.end.clone());
    if monitor.intervals() > intervals && !enough {
        out.print(&text::block(&monitor, Measure::default()))?;
    }
    // A command that was ended because enough was seen has not failed.
    Ok(if enough { 0 } else { finished.code() })
}

fn screens(args: &Top) -> Result<u8, Error> {
    batch(args)
}
