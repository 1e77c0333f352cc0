//! Keeps the files of modules open, and closes those that were opened longest ago where there are many.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::sys::resource::{Resource, getrlimit};

use super::mapped_file::OPENING;
use super::program_file::MOST_PROGRAM;
use crate::files::{self, Answerer, ExpectedFile, Identity};
use crate::stacks::live::jit::{MapVersion, version};

/// Files that are kept open at most: one that was deleted takes its room on the disk for as long.
const MOST_KEPT_OPEN: usize = 1024;

/// As many as this process may have descriptors, divided by a number, but no more than `most`.
pub(in crate::stacks::live) fn part_of_descriptors(divisor: u64, most: usize) -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    usize::try_from(limit / divisor).map_or(most, |part| part.clamp(1, most))
}

/// A file that is opened again where it was closed, if it is still there.
#[derive(Debug)]
pub(in crate::stacks::live) struct KeptFile {
    path: PathBuf,
    /// Where its path begins; `None` where that is here.
    root: Option<Arc<OwnedFd>>,
    identity: Identity,
    /// As it was when it was opened; `None` where that isn't known, so that no other can be told from it.
    version: Option<MapVersion>,
    file: Mutex<Option<Arc<File>>>,
}

impl KeptFile {
    pub(super) fn new(file: File, path: &str, root: Option<Arc<OwnedFd>>) -> Self {
        let (identity, version) = (files::identity(&file).unwrap_or_default(), version(&file).ok());
        Self { path: path.into(), root, identity, version, file: Mutex::new(Some(Arc::new(file))) }
    }

    /// The file, for who keeps it open himself.
    pub(super) fn file(&self) -> Option<Arc<File>> {
        let open = self.open().clone();
        open.or_else(|| self.open_again().map(Arc::new))
    }

    fn open(&self) -> MutexGuard<'_, Option<Arc<File>>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_again(&self) -> Option<File> {
        let expected = ExpectedFile { identity: self.identity, ..ExpectedFile::any(MOST_PROGRAM) };
        let (path, root) = (self.path.clone(), self.root.clone());
        let open = move || {
            let file = match root {
                Some(root) => files::open_below(&root, &path, &expected),
                None => files::open(&path, &expected),
            };
            file.and_then(|file| Ok((version(&file)?, file)))
        };
        let (version, file) = files::within(OPENING, Answerer::Device(self.identity.device), open).ok()?.ok()?;
        (self.version == Some(version)).then_some(file)
    }
}

/// The files that are open, the one that was opened longest ago first.
#[derive(Debug, Default)]
pub(super) struct KeptFiles(VecDeque<Arc<KeptFile>>);

impl KeptFiles {
    /// Keeps another one open.
    pub(super) fn keep(&mut self, file: &Arc<KeptFile>) {
        self.keep_of(file, part_of_descriptors(4, MOST_KEPT_OPEN));
    }

    fn keep_of(&mut self, file: &Arc<KeptFile>, most: usize) {
        // It couldn't be opened again.
        if file.path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") {
            return;
        }
        self.0.push_back(Arc::clone(file));
        if self.0.len() > most
            && let Some(oldest) = self.0.pop_front()
        {
            *oldest.open() = None;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn what_was_closed_is_opened_again_unless_it_is_another_file_now() {
        let folder = std::env::temp_dir().join(format!("perfprop-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut kept = KeptFiles::default();
        let files = ["same", "changed", "gone", "gone (deleted)", "last"].map(|name| {
            let path = folder.join(name);
            fs::write(&path, name).unwrap();
            let file = KeptFile::new(File::open(&path).unwrap(), path.to_str().unwrap(), None);
            let file = Arc::new(file);
            kept.keep_of(&file, 1);
            file
        });
        fs::write(folder.join("changed"), "longer than before").unwrap();
        fs::remove_file(folder.join("gone")).unwrap();
        fs::remove_file(folder.join("last")).unwrap();
        assert_eq!(files.each_ref().map(|kept| kept.open().is_some()), [false, false, false, true, true]);
        let has_file = files.map(|kept| kept.file().is_some());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(has_file, [true, false, false, true, true]);
    }
}
