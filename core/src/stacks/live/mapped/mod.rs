//! Knows what code processes and the kernel have mapped, and keeps it open to be read.
//!
//! ```text
//! /proc/PID/maps, records ── maps ──> modules ── mapped_file ──> kept_file
//!                                           ├──> vdso
//!                                           └──> code that was made at run time (jit)
//! ```

mod kept_file;
mod kernel_modules;
mod mapped_file;
mod maps;
mod modules;
mod program_file;
mod vdso;

pub(super) use kept_file::part_of_descriptors;
pub(super) use kernel_modules::KernelModules;
pub(super) use mapped_file::SeenAddresses;
pub(super) use maps::{CodeMapping, Mappings, MapsLine};
pub(super) use modules::{Module, ModuleContents, ModuleId, Modules, OUTSIDE, OpenModule};
pub(super) use program_file::{AtOnce, MOST_PROGRAM, MappedProgram, ParsedSymbols};
pub(super) use vdso::{vdso_addresses, vdso_code};
