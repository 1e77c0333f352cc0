//! Finds the callers of sampled code, by frame pointers, or by unwind information and a copy of the stack.
//!
//! ```text
//!                 ┌─ chains: whether frame pointers hold ─────────────────────────┐
//! sample ── auto ─┤                                                               ├──> paths
//!                 └─ code ── process ── unwind (unwind_info, base_register, ...) ─┘
//!                      copies: whether, and how much of, stacks are copied
//! ```

mod auto;
mod base_register;
mod chains;
mod code;
mod copies;
mod copy_evidence;
mod epilogue;
mod paths;
mod process;
mod sampled_times;
mod signal_frames;
mod unwind;
mod unwind_info;

pub(super) use auto::{AutoStacks, FoundStack};
pub(super) use code::SampledCode;
pub(super) use paths::{CodeLocation, KeptPath, LocationId, PathId, PathNode};
pub(super) use process::Processes;
pub(super) use signal_frames::{TRAMPOLINE, signal_trampolines};
pub(super) use unwind::Completeness;
