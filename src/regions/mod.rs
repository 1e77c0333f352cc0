//! Reads the named regions of measured programs, which they share through the crate `perfprop-regions`.
//!
//! Each command has a [folder](SharedFolder), which is named after its process. Each process of it that has regions makes
//! a file there and writes its counts into it as they come, so that they can be read at any time, and are still there
//! when the process has crashed.

mod folder;

pub use folder::SharedFolder;
pub use perfprop_regions::{Marker, PathRow, Snapshot, SnapshotError, Spread, Times, json};

use crate::files::Refused;

/// The regions of a process.
#[derive(Debug)]
pub struct ProcessRegions {
    /// The process.
    pub pid: u32,
    /// What they counted, or why that can't be read.
    pub regions: Result<Snapshot, RegionsError>,
}

/// Why the regions of a process can't be read.
#[derive(Debug)]
pub enum RegionsError {
    /// Their file is a link, or no regular file.
    Refused(Refused),
    /// Their file doesn't hold what it should.
    Snapshot(SnapshotError),
}

impl std::fmt::Display for RegionsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Snapshot(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RegionsError {}
