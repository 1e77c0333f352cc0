//! Finds and reads the vdso, which the kernel maps into every process.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use super::maps::MapsLine;

/// Where the kernel's code lies in this process; it is the same code in others.
pub(in crate::stacks::live) fn vdso_addresses() -> Option<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().filter_map(MapsLine::parse).find(|line| line.path == "[vdso]")?;
    Some(line.start..line.end)
}

/// The kernel's code, a program of its own.
pub(in crate::stacks::live) fn vdso_code() -> Option<Vec<u8>> {
    let addresses = vdso_addresses()?;
    let mut memory = File::open("/proc/self/mem").ok()?;
    memory.seek(SeekFrom::Start(addresses.start)).ok()?;
    let mut code = Vec::new();
    memory.take(addresses.end - addresses.start).read_to_end(&mut code).ok()?;
    Some(code)
}
