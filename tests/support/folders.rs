//! Makes folders of files for tests, which are gone when a test has ended, however it did.

#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of its own, which goes when this value does.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("perfprop-test-{}-{number}", std::process::id()));
        // One of this name was left by a process that had this id and was killed.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The same with a file in it.
    pub(crate) fn with(self, file: &str, text: &str) -> Self {
        self.write(file, text);
        self
    }

    /// Writes a file, and makes the folders that its name has.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
