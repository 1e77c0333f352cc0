//! Finds the regions of programs that run already, and has them recorded.
//!
//! Such a program made a file without a name at its first region, which its user, and root, find in `/proc/PID/fd`. One
//! word of it says whether to record; all else is the program's to write. Each watcher has a byte of that word, which it
//! locks for as long as it watches: so several at once don't switch one another off, and a byte that a killed one left
//! behind is known by its lock, which has gone with it.

use std::fs::{self, File};
use std::mem::offset_of;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::unistd::Pid;
use perfprop_regions::layout::Header;
use perfprop_regions::{Activity, FILE_SIZE, MEMFD, NodeCounts, Snapshot, SnapshotError};
use rustc_hash::FxHashMap;

use super::RegionsError;
use crate::files::{ExpectedFile, Refused, open_to_write};
use crate::sources::process;

/// The bytes of the word that are watchers'; the first one has the program's own bit, and that of who made a folder.
const WATCHERS: std::ops::Range<u64> = 1..4;
/// The most descriptors of a process that are looked at.
const MOST_DESCRIPTORS: usize = 10_000;

/// A program that records for as long as this is there.
#[derive(Debug)]
pub(super) struct AttachedProgram {
    file: File,
    /// The byte that is ours; `None` where three others watch already.
    byte: Option<u64>,
    /// What was counted when it was found.
    before: Snapshot,
    /// What threads had done then.
    done: Activity,
}

impl AttachedProgram {
    /// The regions of a process; `None` where it has none so far.
    ///
    /// # Errors
    /// When there is a file of that name which isn't one of regions, or can't be opened.
    pub(super) fn find(pid: Pid) -> Option<Result<Self, RegionsError>> {
        let mut found = descriptors(pid).into_iter().map(|path| Self::open(&path, pid));
        // A process that was forked has its parent's file too.
        found.rfind(|found| !matches!(found, Err(RegionsError::OfAnother)))
    }

    fn open(path: &Path, pid: Pid) -> Result<Self, RegionsError> {
        let owner = process::owner(pid).ok_or(RegionsError::OfAnother)?;
        let owners = [owner];
        let expected = ExpectedFile { owners: Some(&owners), ..ExpectedFile::any(FILE_SIZE as u64) };
        let file = open_to_write(path, &expected).map_err(RegionsError::Refused)?;
        let length = file.metadata().map_err(|error| RegionsError::Refused(Refused::System(error)))?.size();
        if length != FILE_SIZE as u64 {
            return Err(RegionsError::Snapshot(SnapshotError::Foreign));
        }
        let before = Snapshot::read(&file).map_err(RegionsError::Snapshot)?;
        if !numbers(pid).contains(&before.pid) {
            return Err(RegionsError::OfAnother);
        }
        let done = Snapshot::activity(&file).map_err(RegionsError::Snapshot)?;
        let byte = record(&file).map_err(|error| RegionsError::Refused(Refused::System(error)))?;
        Ok(Self { file, byte, before, done })
    }

    /// Its memory.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// What was counted when it was found.
    pub(super) fn before(&self) -> &Snapshot {
        &self.before
    }

    /// Enters and leaves of a thread until it was found.
    pub(super) fn marked(&self, slot: usize, tid: u32) -> u64 {
        self.done.threads.get(slot).filter(|thread| thread.tid == tid).map_or(0, |thread| thread.marked)
    }
}

impl Drop for AttachedProgram {
    fn drop(&mut self) {
        if let Some(byte) = self.byte {
            // A program that has ended records no more in any case.
            let _ = self.file.write_all_at(&[0], byte);
        }
    }
}

/// Has a program record, with a byte that no other watcher has; `None` where they have all. What killed watchers left is
/// taken away.
fn record(file: &File) -> std::io::Result<Option<u64>> {
    let mut ours = None;
    for byte in WATCHERS.map(|byte| offset_of!(Header, recording) as u64 + byte) {
        if !lock(file, byte, libc::F_WRLCK) {
            continue;
        }
        file.write_all_at(&[u8::from(ours.is_none())], byte)?;
        match ours {
            None => ours = Some(byte),
            Some(_) => drop(lock(file, byte, libc::F_UNLCK)),
        }
    }
    Ok(ours)
}

/// Locks or unlocks a byte; whether that could be done. The lock goes with the open file, however perfprop ends.
fn lock(file: &File, byte: u64, kind: i32) -> bool {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte.cast_signed(),
        l_len: 1,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).is_ok()
}

/// The descriptors of a process that lead to a file of that name.
fn descriptors(pid: Pid) -> Vec<PathBuf> {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().take(MOST_DESCRIPTORS);
    let name = format!("/memfd:{MEMFD} (deleted)");
    let leads = |path: &PathBuf| fs::read_link(path).is_ok_and(|link| link.as_os_str() == name.as_str());
    all.map(|entry| entry.path()).filter(leads).collect()
}

/// The numbers that a process has, here and in the namespaces that it runs in.
fn numbers(pid: Pid) -> Vec<u32> {
    let status = process::text(&format!("/proc/{pid}/status")).unwrap_or_default();
    let inside = crate::host::field(&status, "NSpid").unwrap_or_default();
    let inside = inside.split_whitespace().filter_map(|number| number.parse().ok());
    inside.chain([pid.as_raw().unsigned_abs()]).collect()
}

/// What was counted since then: the later snapshot without what the earlier one has. The shortest and the longest call are of
/// all calls where there were any before.
pub(super) fn since(mut later: Snapshot, earlier: &Snapshot) -> Snapshot {
    let places = places(&later);
    let counted = earlier.nodes.iter().enumerate().filter(|(_, node)| node.calls + node.reverse_calls > 0);
    // What a thread counted that has ended since may have moved to the others that have.
    let matching = counted.filter_map(|(place, before)| {
        let key = |tid| (earlier.path(place), before.phase.as_str(), tid);
        let tid = earlier.threads.get(before.thread).map_or(0, |thread| thread.tid);
        places.get(&key(tid)).or_else(|| places.get(&key(0))).map(|&node| (node, before))
    });
    let matching: Vec<_> = matching.collect();
    drop(places);
    matching.into_iter().for_each(|(node, before)| subtract(&mut later.nodes[node], before));
    later.lost = later.lost.since(&earlier.lost);
    later
}

/// Names of the regions of a path, its phase, and the thread's number.
type PathKey<'a> = (Vec<&'a str>, &'a str, u32);

fn places(snapshot: &Snapshot) -> FxHashMap<PathKey<'_>, usize> {
    let tid = |node: &NodeCounts| snapshot.threads.get(node.thread).map_or(0, |thread| thread.tid);
    let all = snapshot.nodes.iter().enumerate();
    all.map(|(place, node)| ((snapshot.path(place), node.phase.as_str(), tid(node)), place)).collect()
}

fn subtract(node: &mut NodeCounts, before: &NodeCounts) {
    let less = |now: &mut u64, before: u64| *now = now.saturating_sub(before);
    less(&mut node.calls, before.calls);
    less(&mut node.again, before.again);
    less(&mut node.recorded, before.recorded);
    less(&mut node.total_ns, before.total_ns);
    node.outside_ns = node.outside_ns.wrapping_sub(before.outside_ns);
    less(&mut node.reverse_calls, before.reverse_calls);
    less(&mut node.reverse_ns, before.reverse_ns);
    node.squares = (node.squares - before.squares).max(0.0);
    node.counters.iter_mut().zip(before.counters).for_each(|(now, before)| less(now, before));
    for (calls, before) in node.histogram.iter_mut().zip(before.histogram.iter()) {
        *calls = calls.saturating_sub(*before);
    }
    node.events.iter_mut().zip(&before.events).for_each(|(event, before)| *event = event.since(before));
    // What outlasted it before may have ended since, and another region may outlast it now: `outlasted_by` stays.
}
