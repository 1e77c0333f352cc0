//! Names the places of samples, on a thread of its own, which may take long.
//!
//! ```text
//! raw batches ── namer ── symbols ─┬─ programs ── program ── elf_symbols, debug_files, stubs, ...
//!                                  ├─ code that was made at run time (jit)
//!                                  └─ the kernel
//! ```

mod debug_files;
mod debug_units;
#[cfg(feature = "debuginfod")]
mod debuginfod;
mod demangle;
#[cfg(feature = "disassembly")]
mod disassembly;
mod elf_symbols;
mod function_ranges;
mod mini_debug;
mod namer;
mod program;
mod programs;
mod scopes;
mod stubs;
mod symbols;

pub(super) use debug_files::DebugFiles;
#[cfg(feature = "disassembly")]
pub use disassembly::disassemble;
pub(super) use namer::run;
pub(super) use program::ElfProgram;
