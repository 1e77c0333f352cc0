//! Measures real commands through the library, without the command line.

use std::ops::ControlFlow;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded, never};
use nix::libc::{SIGTERM, SIGUSR1};
use perfprop::measure::{EndedBy, Error, MeasureOptions, Measurement, RunOutcome, WatchEvent, watch};
use perfprop::monitor::Monitor;
use perfprop::session::{CaughtSignal, ChildIo, Launch};
#[cfg(feature = "stacks")]
use perfprop::session::{Session, StartError};
use perfprop::sources::command::Exit;

const INTERVAL: Duration = Duration::from_millis(50);

/// A measurement of software events, which every machine has, in a shell that runs this.
fn measurement(script: &str) -> Measurement {
    let options = MeasureOptions { events: vec!["task-clock,page-faults".into()], ..MeasureOptions::default() };
    let argv = ["sh", "-c", script].map(Into::into).to_vec();
    Measurement::new(&options, Launch::command(argv, ChildIo::Capture), &mut |note| panic!("{note}")).unwrap()
}

/// What was measured; `None` with the reason where this machine doesn't allow it.
fn allowed<T>(measured: Result<T, Error>) -> Option<T> {
    match measured {
        Err(error @ Error::NotPermitted { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        measured => Some(measured.unwrap()),
    }
}

/// Whether every event was counted.
fn has_counts(monitor: &Monitor) -> bool {
    monitor.rows().all(|row| row.best().is_some_and(|count| count.value > 0.0))
}

#[test]
fn a_command_is_measured_to_its_end() {
    let measurement = measurement("i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); done; exit 3");
    let Some((monitor, outcome)) = allowed(measurement.run(INTERVAL, &mut |note| panic!("{note}"))) else { return };
    let names: Vec<_> = monitor.rows().map(|row| row.event.event.name.clone()).collect();
    assert_eq!(names, ["task-clock", "page-faults"]);
    assert!(has_counts(&monitor));
    let RunOutcome { end, ended_by } = outcome;
    assert_eq!((end.exit, ended_by), (Some(Exit::Code(3)), EndedBy::Itself));
    assert!(end.at_ns.0 > 0 && end.cpu_time.is_some_and(|time| time.user_ns.0 + time.system_ns.0 > 0));
    assert_eq!(monitor.ended(), Some(&end));
}

/// Watches a command that would never end, with these signals.
fn watched(
    signals: &Receiver<CaughtSignal>,
    show: impl FnMut(&Monitor, WatchEvent) -> Result<ControlFlow<()>, Error>,
) -> Option<(Monitor, RunOutcome)> {
    let measurement = measurement("while :; do :; done");
    let (session, header) = allowed(measurement.start(INTERVAL, INTERVAL, &mut |note| panic!("{note}")))?;
    let mut monitor = measurement.monitor(header);
    let outcome = watch(&session, signals, &mut monitor, show).unwrap();
    assert!(has_counts(&monitor) && monitor.ended().is_some());
    Some((monitor, outcome))
}

#[test]
fn whoever_has_seen_enough_ends_the_measurement() {
    let two = |monitor: &Monitor, event| {
        assert_eq!(event, WatchEvent::Interval);
        Ok(if monitor.intervals() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    let Some((_, outcome)) = watched(&never(), two) else { return };
    assert_eq!(outcome.ended_by, EndedBy::Request);
    assert!(matches!(outcome.end.exit, Some(Exit::Signal(_))));
}

#[test]
fn signals_come_from_the_channel_of_the_caller() {
    let (sender, signals) = bounded(2);
    let mut saved = 0;
    let show = |monitor: &Monitor, event| {
        match event {
            WatchEvent::Save => {
                saved += 1;
                sender.send(SIGTERM.into()).unwrap();
            }
            WatchEvent::Interval if monitor.intervals() == 1 => sender.send(SIGUSR1.into()).unwrap(),
            WatchEvent::Interval | WatchEvent::LastInterval => {}
        }
        Ok(ControlFlow::Continue(()))
    };
    let Some((_, outcome)) = watched(&signals, show) else { return };
    assert_eq!((outcome.ended_by, saved), (EndedBy::Signal(SIGTERM), 1));
    assert!(outcome.end.was_ended_by_perfprop);
}

#[test]
#[cfg(feature = "stacks")]
fn samples_and_rounds_count_from_the_same_time() {
    use perfprop::events::{Machine, Resolver};
    use perfprop::plan::{Cohesion, Plan};
    use perfprop::sampling::SamplerMessage;
    use perfprop::stacks::UnwindMethod;
    use perfprop::stacks::live::{StackNeed, StackRequest};

    /// So many counters take some milliseconds to open, between the opening of what is sampled and the first round.
    const COUNTERS: usize = 700;
    let resolver = Resolver::new(Machine::here());
    let counted = resolver.called("page-faults");
    let plan = Plan::of_group(counted.into_iter().cycle().take(COUNTERS).collect(), Cohesion::Chosen);
    let stacks = StackRequest {
        events: resolver.called("cpu-clock"),
        rate: None,
        call_graph: UnwindMethod::Fp,
        off_cpu: None,
        wakeups: None,
        need: StackNeed::Required,
    };
    let argv = ["sh", "-c", "i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done"].map(Into::into).to_vec();
    let launch = Launch { stacks: Some(stacks), ..Launch::command(argv, ChildIo::Discard) };
    let session = match Session::start(&plan, &launch, INTERVAL) {
        Err(error @ (StartError::Stacks(_) | StartError::NotOpened(_))) => return eprintln!("skipped: {error:?}"),
        Err(_) => panic!("the session doesn't start"),
        Ok(session) => session,
    };
    let mut last = None;
    while let Ok(SamplerMessage::Round { round, .. }) = session.samples().recv() {
        last = Some(round.at);
    }
    let stacks = session.stacks().unwrap();
    stacks.stop();
    // The command has ended before the last round.
    let latest = stacks.batches().iter().flat_map(|batch| batch.samples).map(|sample| sample.at).max();
    assert!(latest.is_some() && latest <= last, "{latest:?} {last:?}");
}
