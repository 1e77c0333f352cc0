//! Makes folders of files that stand for a machine's root.

use perfprop::events::Machine;

use crate::folders::Folder;

/// The root of a machine.
pub(crate) struct Tree(pub(crate) Folder);

impl Tree {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        Self(files.iter().fold(Folder::new(), |folder, (file, text)| folder.with(file, text)))
    }

    pub(crate) fn write(&self, file: &str, text: &str) {
        self.0.write(file, text);
    }

    /// The machine whose root this is.
    pub(crate) fn machine(&self) -> Machine {
        Machine::under(&self.0)
    }
}
