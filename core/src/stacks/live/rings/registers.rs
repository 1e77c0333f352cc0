//! Says which registers the kernel puts into samples, a bit each, by its numbers. Records have them in the order of
//! their bits.

/// `PERF_REG_X86_BX`, `_BP`, `_SP`, `_IP`.
#[cfg(target_arch = "x86_64")]
pub(in crate::stacks::live) const REGISTERS: u64 = 1 << 1 | 1 << 6 | 1 << 7 | 1 << 8;

/// `PERF_REG_ARM64_X29`, `_LR`, `_SP`, `_PC`.
#[cfg(target_arch = "aarch64")]
pub(in crate::stacks::live) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// None: unwinding doesn't know the processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(in crate::stacks::live) const REGISTERS: u64 = 0;
