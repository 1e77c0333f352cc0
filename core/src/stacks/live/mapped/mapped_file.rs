//! Finds the file behind a mapping.
//!
//! Its path may mean another file by now, or in another mount namespace. The numbers of the file tell it. File systems
//! in layers may report the layer's for a mapping: then the inode alone tells it or, where it is another one, what the
//! process has mapped.

use std::fs::File;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use super::maps::MapsLine;
use super::program_file::MOST_PROGRAM;
use crate::files::{self, Answerer, ExpectedFile, Identity, Refused};
use crate::sources::process;
use crate::stacks::live::namespaces;

/// How long opening a file may take: the rings fill meanwhile.
pub(super) const OPENING: Duration = Duration::from_secs(1);

/// So much of the beginning of a file is compared with what is mapped, in bytes: its headers, and mostly its build id.
const BEGINNING: usize = 4096;

/// The process and the addresses at which a module was seen.
#[derive(Clone, Debug, Default)]
pub(in crate::stacks::live) struct SeenAddresses {
    pub(in crate::stacks::live) pid: i32,
    pub(in crate::stacks::live) addresses: Range<u64>,
}

/// A file, and where the paths of its process begin if it isn't found from here.
pub(super) type FoundFile = (File, Option<OwnedFd>);

/// The file of a mapping.
pub(super) fn find(path: &str, identity: Identity, seen: &SeenAddresses) -> Result<FoundFile, Refused> {
    let (path, seen) = (path.to_owned(), seen.clone());
    let device = Answerer::Device(identity.device);
    files::within(OPENING, device, move || find_now(&path, identity, &seen)).and_then(|found| found)
}

fn find_now(path: &str, identity: Identity, seen: &SeenAddresses) -> Result<FoundFile, Refused> {
    let expected = ExpectedFile { identity, ..ExpectedFile::any(MOST_PROGRAM) };
    let why = match files::open(Path::new(path), &expected) {
        Ok(file) => return Ok((file, None)),
        Err(why) => why,
    };
    let in_layers = ExpectedFile { in_layers: true, ..expected.clone() };
    let is_mapped = |file: &File| seen.is_of(file, path, identity);
    let open = |path: &str, expected| files::open(Path::new(path), expected).ok().filter(is_mapped);
    let (pid, Range { start, end }) = (seen.pid, &seen.addresses);
    let root = files::folder(Path::new(&format!("/proc/{pid}/root")));
    // This one leads to what is mapped, whatever its path is now; few may follow it.
    let mapped = || open(&format!("/proc/{pid}/map_files/{start:x}-{end:x}"), &in_layers);
    let program = || open(&format!("/proc/{pid}/exe"), &expected);
    let below = || files::open_below(root.as_ref().ok()?, Path::new(path), &in_layers).ok().filter(is_mapped);
    let there = || mapped().or_else(program).or_else(below).map(|file| (file, true));
    let here = || open(path, &in_layers).map(|file| (file, false));
    let found = match namespaces::shares_namespace(pid, "mnt") {
        true => here().or_else(there),
        false => there().or_else(here),
    };
    let (file, is_there) = found.ok_or(why)?;
    Ok((file, root.ok().filter(|_| is_there)))
}

impl SeenAddresses {
    /// Whether a file is the one that was mapped there.
    fn is_of(&self, file: &File, path: &str, identity: Identity) -> bool {
        let Some(found) = files::identity(file).ok().filter(|_| identity.inode != 0) else { return false };
        found.inode == identity.inode || self.has_beginning_of(file, path) == Some(true)
    }

    /// Whether the process has the beginning of this file mapped before the code; `None` where that can't be told.
    fn has_beginning_of(&self, file: &File, path: &str) -> Option<bool> {
        let maps = process::text(&format!("/proc/{}/maps", self.pid)).ok()?;
        let lines = maps.lines().filter_map(MapsLine::parse).filter(|line| line.path == path);
        let lines: Vec<_> = lines.take_while(|line| line.start <= self.addresses.start).collect();
        lines.last().filter(|code| code.start == self.addresses.start)?;
        let first = lines.iter().rev().find(|line| line.offset == 0)?;
        let (mut expected, mut mapped) = ([0; BEGINNING], [0; BEGINNING]);
        let length = file.read_at(&mut expected, 0).ok()?;
        let memory = File::open(format!("/proc/{}/mem", self.pid)).ok()?;
        memory.read_exact_at(&mut mapped[..length], first.start).ok()?;
        Some(mapped[..length] == expected[..length])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    /// Where this program has its code, and its path.
    fn this_program() -> (SeenAddresses, String, File) {
        let path = std::env::current_exe().unwrap().display().to_string();
        let maps = process::text("/proc/self/maps").unwrap();
        let code = maps.lines().filter_map(MapsLine::parse).find(|line| line.executable && line.path == path).unwrap();
        let seen = SeenAddresses { pid: std::process::id().cast_signed(), addresses: code.start..code.end };
        let file = File::open(&path).unwrap();
        (seen, path, file)
    }

    #[test]
    fn what_is_mapped_tells_a_file_from_another() {
        let (seen, path, file) = this_program();
        let other = File::open("../tests/elf/parts.so").unwrap();
        assert_eq!(seen.has_beginning_of(&file, &path), Some(true));
        assert_eq!(seen.has_beginning_of(&other, &path), Some(false));
        // No such code is mapped there, or nobody is there to ask.
        let shifted = SeenAddresses { addresses: seen.addresses.start + 1..seen.addresses.end, ..seen.clone() };
        let gone = SeenAddresses { pid: i32::MAX - 4, ..seen.clone() };
        assert_eq!([&shifted, &gone].map(|seen| seen.has_beginning_of(&file, &path)), [None; 2]);
        assert_eq!(seen.has_beginning_of(&file, "/nonexistent"), None);
    }

    #[test]
    fn a_program_that_runs_is_found_though_nothing_is_at_its_path() {
        let (seen, _, file) = this_program();
        let identity = files::identity(&file).unwrap();
        let found = |seen: &SeenAddresses, identity| find_now("/nonexistent/program", identity, seen);
        assert_eq!(files::identity(&found(&seen, identity).unwrap().0).unwrap(), identity);
        assert!(found(&seen, Identity { inode: identity.inode + 1, ..identity }).unwrap_err().is_absence());
        assert!(found(&seen, Identity::default()).unwrap_err().is_absence(), "nothing is known of it");
        assert!(found(&SeenAddresses { pid: i32::MAX - 4, ..seen }, identity).unwrap_err().is_absence());
    }

    #[test]
    fn a_file_in_layers_is_known_by_its_inode_or_by_what_is_mapped() {
        let (seen, path, file) = this_program();
        let inode = files::identity(&file).unwrap().inode;
        let on_layer = |inode| Identity { device: 1, inode };
        assert!(seen.is_of(&file, &path, on_layer(inode + 1)), "it is what is mapped");
        let gone = SeenAddresses { pid: i32::MAX - 4, ..seen };
        assert!(gone.is_of(&file, &path, on_layer(inode)));
        assert!(!gone.is_of(&file, &path, on_layer(inode + 1)));
    }
}
