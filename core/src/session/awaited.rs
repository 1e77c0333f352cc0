//! Ends a measurement of processes or threads that ran before, once all of them have ended.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::sampling::{SamplerRemote, SamplerRequest};
use crate::sources::perf::TargetKind;
use crate::sources::process::KnownTask;

/// How long tasks aren't looked at: at least, and at most.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// In between it is this part of the time so far, one in so many: their end is known to half a percent.
const PART_OF_THE_TIME: u32 = 200;

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

    /// Asks the sampler to stop once all have ended, and says then that they have. Nobody looks any more once the
    /// sampler has ended.
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
            let begun = Instant::now();
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(pause(begun.elapsed())) {
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

/// How long tasks aren't looked at, after they ran so long.
fn pause(ran: Duration) -> Duration {
    (ran / PART_OF_THE_TIME).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_short_run_is_known_soon_and_of_a_long_one_to_half_a_percent() {
        let pauses = [0, 9, 10, 20, 50, 3600].map(|seconds| pause(Duration::from_secs(seconds)).as_millis());
        assert_eq!(pauses, [50, 50, 50, 100, 250, 250]);
    }
}
