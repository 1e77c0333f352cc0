//! Starts the sampling of a target's call stacks; does nothing where the library is built without it.

use super::{Launch, StartError};
use crate::plan::Plan;
use crate::sampling::LastRound;
use crate::sources::emulate::Emulator;
#[cfg(feature = "stacks")]
use crate::sources::perf::CountedTarget;
use crate::sources::perf::{TargetKind, TracefsProbes};
use crate::units::KernelNs;

#[cfg(feature = "stacks")]
pub(super) type Sampling = Option<crate::stacks::live::LiveStacks>;

/// Prepares sampling, if that was requested. After [`begin`] it begins with exec where the process waits before it, and
/// not before [`enabler`] where it is put off.
#[cfg(feature = "stacks")]
pub(super) fn start(launch: &Launch, kind: &TargetKind, probes: &TracefsProbes) -> Result<Sampling, StartError> {
    use crate::stacks::live::{StackNeed, StackSource};

    let Some(wanted) = &launch.stacks else { return Ok(None) };
    let target = launch.counted(kind, probes);
    let source = match StackSource::open(wanted, &target) {
        Err(_) if wanted.need == StackNeed::IfPossible => return Ok(None),
        source => source.map_err(StartError::Stacks)?,
    };
    source.start(launch.begins_at_once(&target)).map(Some).map_err(StartError::System)
}

/// Begins to sample. Times count from `origin`, that of the rounds, which is known once all counters are open. Samples
/// end with the last round.
#[cfg(feature = "stacks")]
pub(super) fn begin(stacks: &Sampling, origin: KernelNs, last_round: &LastRound) {
    stacks.as_ref().inspect(|stacks| stacks.begin(origin.0, last_round.clone()));
}

/// Starts sampling a target that runs and is counted already. Times count from `origin`.
#[cfg(feature = "stacks")]
pub(super) fn start_late(
    wanted: &crate::stacks::live::StackRequest,
    target: &CountedTarget,
    origin: KernelNs,
    last_round: &LastRound,
) -> Result<Sampling, StartError> {
    let source = crate::stacks::live::StackSource::open(wanted, target).map_err(StartError::Stacks)?;
    let stacks = source.start(true).map(Some).map_err(StartError::System)?;
    begin(&stacks, origin, last_round);
    Ok(stacks)
}

/// What begins to sample, at the end of a delay.
#[cfg(feature = "stacks")]
pub(super) fn enabler(stacks: &Sampling) -> Result<impl FnOnce() + Send + use<>, StartError> {
    let remote =
        stacks.as_ref().map(crate::stacks::live::LiveStacks::remote).transpose().map_err(StartError::System)?;
    Ok(move || {
        if let Some(remote) = remote.flatten() {
            remote.enable();
        }
    })
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
pub(super) fn begin(_: &Sampling, _: KernelNs, _: &LastRound) {}

#[cfg(not(feature = "stacks"))]
pub(super) fn enabler(_: &Sampling) -> Result<impl FnOnce() + Send + use<>, StartError> {
    Ok(|| {})
}

#[cfg(not(feature = "stacks"))]
pub(super) fn of_model(_: &Launch, _: &Plan, _: &mut Emulator) -> Result<Sampling, StartError> {
    Ok(None)
}
