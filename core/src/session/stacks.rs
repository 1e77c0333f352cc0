//! Starts the sampling of a target's call stacks; does nothing where the library is built without it.

use super::{Launch, StartError};
use crate::plan::Plan;
use crate::sources::emulate::Emulator;
use crate::sources::perf::{TargetKind, TracefsProbes};

#[cfg(feature = "stacks")]
pub(super) type Sampling = Option<crate::stacks::live::LiveStacks>;

/// Starts sampling, if that was requested: with exec where the process waits before it.
#[cfg(feature = "stacks")]
pub(super) fn start(launch: &Launch, kind: &TargetKind, probes: &TracefsProbes) -> Result<Sampling, StartError> {
    use std::thread;

    use crate::sources::perf::{CountedTarget, Start};
    use crate::stacks::live::StackSource;

    let Some(wanted) = &launch.stacks else { return Ok(None) };
    let start = super::launch::begin(launch, kind);
    let (cpus, split) = (launch.cpus.clone(), launch.split);
    let (stop, probes) = (launch.stop.clone(), probes.ids());
    let target = CountedTarget { kind: kind.clone(), cpus, inherit: launch.inherit, split, start, stop, probes };
    let source = StackSource::open(wanted, &target).map_err(StartError::Stacks)?;
    let at_once = start == Start::Later && launch.delay.is_none();
    let stacks = source.start(at_once).map_err(StartError::System)?;
    if let Some(delay) = launch.delay {
        let remote = stacks.remote().map_err(StartError::System)?;
        let later = move || {
            thread::sleep(delay);
            remote.enable();
        };
        thread::Builder::new().name("perfprop-delay".into()).spawn(later).map_err(StartError::System)?;
    }
    Ok(Some(stacks))
}

/// Takes over the model's call graphs, if those were requested.
#[cfg(feature = "stacks")]
pub(super) fn of_model(launch: &Launch, plan: &Plan, emulator: &mut Emulator) -> Result<Sampling, StartError> {
    let Some(_) = &launch.stacks else { return Ok(None) };
    let stacks = crate::stacks::live::LiveStacks::of_model(&plan.events, emulator.parts());
    stacks.map(Some).map_err(StartError::System)
}

/// Stands for sampling in a library that is built without it.
#[cfg(not(feature = "stacks"))]
pub(super) type Sampling = Option<std::convert::Infallible>;

#[cfg(not(feature = "stacks"))]
pub(super) fn start(_: &Launch, _: &TargetKind, _: &TracefsProbes) -> Result<Sampling, StartError> {
    Ok(None)
}

#[cfg(not(feature = "stacks"))]
pub(super) fn of_model(_: &Launch, _: &Plan, _: &mut Emulator) -> Result<Sampling, StartError> {
    Ok(None)
}
