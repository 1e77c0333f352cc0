//! Opens programs and libraries so that none of them, whatever its file says, takes all memory.

use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use object::read::{ReadCache, ReadRef};

/// A program with all its debug information may be so long, in bytes; those of browsers have some 4 GiB.
pub(in crate::stacks::live) const MOST_PROGRAM: u64 = 16 << 30;

/// What is read of a program at once, in bytes: unwind information of the largest has some 100 MiB.
const MOST_AT_ONCE: u64 = 512 << 20;

/// A program as it was mapped.
#[derive(Clone, Debug)]
pub(in crate::stacks::live) struct MappedProgram {
    pub(in crate::stacks::live) file: Arc<File>,
    /// Path as the process mapped it.
    pub(in crate::stacks::live) path: String,
    /// Where the paths of its process begin; `None` where that is here, or isn't known.
    pub(in crate::stacks::live) root: Option<Arc<OwnedFd>>,
}

/// A program of which so much at once is read that no length in it, whatever it says, takes all memory.
#[derive(Clone, Copy)]
pub(in crate::stacks::live) struct AtOnce<'a>(pub(in crate::stacks::live) &'a ReadCache<File>);

impl<'a> ReadRef<'a> for AtOnce<'a> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size > MOST_AT_ONCE { Err(()) } else { self.0.read_bytes_at(offset, size) }
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.0.read_bytes_at_until(range, delimiter)
    }
}

/// A program of which symbols and sections are read.
pub(in crate::stacks::live) type ParsedSymbols<'a> = object::File<'a, AtOnce<'a>>;
