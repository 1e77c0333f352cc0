//! Counts samples that were read and have no names yet: symbols of large programs take seconds to read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many samples wait for their names; all clones count the same.
#[derive(Clone, Debug, Default)]
pub struct WaitingSamples(Arc<AtomicU64>);

impl WaitingSamples {
    /// How many there are now.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// So many were read.
    #[cfg_attr(not(feature = "stacks"), expect(dead_code, reason = "nothing is sampled"))]
    pub(super) fn came(&self, samples: u64) {
        self.0.fetch_add(samples, Ordering::Relaxed);
    }

    /// So many have their names, or were dropped.
    #[cfg_attr(not(feature = "stacks"), expect(dead_code, reason = "nothing is sampled"))]
    pub(super) fn went(&self, samples: u64) {
        self.0.fetch_sub(samples, Ordering::Relaxed);
    }
}
