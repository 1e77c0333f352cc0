//! Ends a measurement of processes or threads that ran before, once all of them have ended.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::sampling::{SamplerRemote, SamplerRequest};
use crate::sources::perf::TargetKind;
use crate::sources::process::KnownTask;

/// How often tasks are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Processes or threads whose end is the end of the measurement; none for the rest.
pub(super) struct AwaitedTasks(Vec<KnownTask>);

impl AwaitedTasks {
    pub(super) fn of(target: &TargetKind) -> Self {
        Self(match target {
            TargetKind::Processes(pids) => pids.iter().copied().map(KnownTask::process).collect(),
            TargetKind::Threads(threads) => threads.iter().copied().map(KnownTask::thread).collect(),
            TargetKind::Command(_) | TargetKind::Everyone | TargetKind::Cgroup(_) => Vec::new(),
        })
    }

    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    /// Asks the sampler to stop once all have ended, and says then that they have. Nobody looks any more once the sampler has
    /// ended.
    pub(super) fn stop_at_end(
        self,
        sampler: SamplerRemote,
        ended: Receiver<Infallible>,
    ) -> io::Result<Arc<AtomicBool>> {
        let have_ended = Arc::new(AtomicBool::new(false));
        if self.0.is_empty() {
            return Ok(have_ended);
        }
        let told = Arc::clone(&have_ended);
        let look = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK_EVERY) {
                if !self.0.iter().any(KnownTask::is_alive) {
                    told.store(true, Ordering::Relaxed);
                    return sampler.request(SamplerRequest::Finish);
                }
            }
        };
        thread::Builder::new().name("perfprop-wait".into()).spawn(look)?;
        Ok(have_ended)
    }
}
