//! What tests of whole programs share.

#![allow(dead_code, reason = "each binary of tests uses a part of it")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use perfprop_regions::Snapshot;

/// The folder that this test's program is in, and the library that was built with it.
pub(crate) fn built() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// A folder of its own, which goes with the value.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("perfprop-regions-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        let files = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        files.map(|file| Snapshot::read(&std::fs::File::open(file).unwrap()).unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The library as others link to it; `None` where this build made none.
pub(crate) fn library() -> Option<PathBuf> {
    let library = built().join("libperfprop_regions.so");
    if !library.exists() {
        eprintln!("skipped: no {}", library.display());
    }
    library.exists().then_some(library)
}

/// Set for this program where it plays the part of a program with regions.
pub(crate) const PART: &str = "PERFPROP_REGIONS_TEST_PART";

/// This program once more, as one that has regions.
pub(crate) fn part(what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "plays_a_part", "--nocapture"]).env(PART, what);
    command
}
