//! Makes folders of files that stand for a machine's root.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use perfprop::events::Machine;

/// A folder of its own, which goes when this value does.
pub(crate) struct Tree(pub(crate) PathBuf);

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let tree = Self(std::env::temp_dir().join(format!("perfprop-tree-{}-{number}", std::process::id())));
        fs::create_dir_all(&tree.0).unwrap();
        for (file, text) in files {
            tree.write(file, text);
        }
        tree
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The machine whose root this is.
    pub(crate) fn machine(&self) -> Machine {
        Machine::under(&self.0)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
