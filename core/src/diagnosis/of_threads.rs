//! Holds the rules about threads.

use super::evidence::Evidence;
use crate::monitor::ThreadUses;
use crate::run::MeasuredTarget;
use crate::threads::ThreadUse;

mod cpus;
mod processes;
mod waits;

/// The part of the CPUs that threads could use, which is busy at most where waiting for locks is told.
const IDLE_CPUS: f64 = 0.85;
/// The part of the time that a thread lived at least where it is told beside others.
const LIVED: f64 = 0.8;
/// How sure the CPU time of threads is that lived nearly all the time.
const ACCOUNTED: &str = "from the kernel's scheduler statistics of threads that lived most of the time";

/// `over 10 s`.
fn over(uses: &ThreadUses<'_>) -> String {
    format!("over {:.0} s", uses.seconds)
}

impl Evidence<'_> {
    fn is_of_machine(&self) -> bool {
        matches!(self.monitor.header().target, MeasuredTarget::Everyone { .. })
    }
}

/// How many threads could run and have no CPU on average.
fn ready(uses: &ThreadUses<'_>) -> f64 {
    uses.all().filter_map(ThreadUse::ready).sum()
}
