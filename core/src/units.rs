//! Defines the units of times, a type for each, so that CPU time and wall time can't be mixed up.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

mod ticks;

pub use ticks::ClockTicks;

macro_rules! nanoseconds {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// This time in milliseconds.
            pub fn as_ms(self) -> f64 {
                self.0 as f64 / 1e6
            }

            /// This time in seconds.
            pub fn as_secs(self) -> f64 {
                self.0 as f64 / 1e9
            }

            /// `self - earlier`, or `None` if time went backwards.
            pub fn checked_sub(self, earlier: Self) -> Option<Self> {
                self.0.checked_sub(earlier.0).map(Self)
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            /// Subtracts; saturates at zero.
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
    };
}

nanoseconds! {
    /// Nanoseconds during which a monitored task was on a CPU, summed over its threads.
    ///
    /// The kernel's `time_enabled` and `time_running` of a task event advance only then, so two
    /// busy threads make two CPU seconds a second.
    CpuNs
}

/// CPU time by where it was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// In user space.
    pub user_ns: CpuNs,
    /// In the kernel.
    pub system_ns: CpuNs,
}

impl CpuTime {
    /// In user space and in the kernel.
    pub fn all(self) -> CpuNs {
        self.user_ns + self.system_ns
    }
}

impl Add for CpuTime {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { user_ns: self.user_ns + other.user_ns, system_ns: self.system_ns + other.system_ns }
    }
}

impl Sub for CpuTime {
    type Output = Self;
    /// Subtracts; saturates at zero.
    fn sub(self, other: Self) -> Self {
        Self { user_ns: self.user_ns - other.user_ns, system_ns: self.system_ns - other.system_ns }
    }
}

nanoseconds! {
    /// Nanoseconds of wall-clock time since the measurement began.
    WallNs
}

nanoseconds! {
    /// A time of the kernel's clock that never goes backwards (`CLOCK_MONOTONIC`), in nanoseconds: sampled stacks and
    /// marks of regions have it.
    KernelNs
}

impl KernelNs {
    /// The time now.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        Self(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time since a measurement began.
    pub fn since(self, beginning: Self) -> WallNs {
        WallNs((self - beginning).0)
    }
}

impl From<Duration> for WallNs {
    fn from(time: Duration) -> Self {
        Self(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<WallNs> for Duration {
    fn from(time: WallNs) -> Self {
        Self::from_nanos(time.0)
    }
}
