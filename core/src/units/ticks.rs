//! Defines the ticks in which the kernel writes times in `/proc`.

use std::ops::{Add, Sub};

use nix::unistd::{SysconfVar, sysconf};

use super::CpuNs;

/// A time in clock ticks, of which the kernel writes 100 a second: CPU time, or since the machine runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockTicks(pub u64);

impl ClockTicks {
    /// The ticks as CPU time.
    pub fn cpu_time(self) -> CpuNs {
        let a_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|ticks| u64::try_from(ticks).ok());
        CpuNs(self.0.saturating_mul(1_000_000_000 / a_second.unwrap_or(100).max(1)))
    }
}

impl Add for ClockTicks {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for ClockTicks {
    type Output = Self;
    /// Subtracts; saturates at zero.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_by_hand() {
        assert_eq!((ClockTicks(2) + ClockTicks(1)).cpu_time(), CpuNs(30_000_000));
        assert_eq!(ClockTicks(2) - ClockTicks(3), ClockTicks(0));
        assert_eq!(ClockTicks(u64::MAX).cpu_time(), CpuNs(u64::MAX));
    }
}
