//! Knows where the programs are whose regions are read: in a command's folder, or among processes that run already.

use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};

use nix::unistd::Pid;
use perfprop_regions::Snapshot;

use super::attach::{AttachedProgram, since};
use super::folder::{SharedFolder, read};
use super::{ProcessRegions, RegionsError};

/// Which of the programs of a process one is: exec makes another.
pub(super) type ProgramKey = (u32, u32);

/// The most programs that are read; more than these aren't shown.
pub(super) const MOST_PROGRAMS: usize = 1000;

/// Where regions are read from.
#[derive(Debug)]
pub struct RegionSource(Place);

#[derive(Debug)]
enum Place {
    Folder(SharedFolder),
    Processes { pids: Vec<Pid>, found: Mutex<Vec<(Pid, Result<AttachedProgram, RegionsError>)>> },
}

impl RegionSource {
    /// The regions of a command with this process, and of all that it starts. They count these events, separated by
    /// commas, if the command has no list of its own.
    ///
    /// # Errors
    /// Returns the operating system's error when no folder can be made for them.
    pub fn of_command(pid: u32, events: Option<&str>) -> io::Result<Self> {
        let folder = SharedFolder::new(pid)?;
        events.map_or(Ok(()), |events| folder.ask_for(events))?;
        Ok(Self(Place::Folder(folder)))
    }

    /// The regions of processes that run already. They record from now on, for as long as this is there, and what they
    /// counted before isn't shown.
    pub fn of_processes(pids: &[Pid]) -> Self {
        let source = Self(Place::Processes { pids: pids.to_vec(), found: Mutex::default() });
        source.look();
        source
    }

    /// Whether processes may have regions later that have to be looked for.
    pub fn has_to_look(&self) -> bool {
        matches!(self.0, Place::Processes { .. })
    }

    /// Looks for processes that have regions now, and had none before.
    pub(super) fn look(&self) {
        let Place::Processes { pids, found } = &self.0 else { return };
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        let new = pids.iter().filter(|pid| found.iter().all(|(known, _)| known != *pid));
        let new: Vec<_> = new.filter_map(|&pid| Some((pid, AttachedProgram::find(pid)?))).collect();
        found.extend(new);
    }

    /// All programs that have regions.
    pub(super) fn programs(&self) -> Vec<ProgramKey> {
        match &self.0 {
            Place::Folder(folder) => folder.programs(),
            Place::Processes { found, .. } => {
                let found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.iter().map(|(pid, _)| (pid.as_raw().unsigned_abs(), 0)).collect()
            }
        }
    }

    /// The memory of a program.
    pub(super) fn open(&self, program: ProgramKey) -> Result<File, RegionsError> {
        match &self.0 {
            Place::Folder(folder) => read(&folder.path_of(program)),
            Place::Processes { .. } => self.attached(program.0, |attached| Ok(attached.file().try_clone()?)),
        }
    }

    /// What a program counted, since it is watched.
    pub(super) fn snapshot(&self, program: ProgramKey, file: &File) -> Result<Snapshot, RegionsError> {
        let snapshot = Snapshot::read(file).map_err(RegionsError::Snapshot)?;
        match &self.0 {
            Place::Folder(_) => Ok(snapshot),
            Place::Processes { .. } => self.attached(program.0, |attached| Ok(since(snapshot, attached.before()))),
        }
    }

    /// Enters and leaves of a thread before it was watched.
    pub(super) fn marked_before(&self, program: ProgramKey, slot: usize, tid: u32) -> u64 {
        self.attached(program.0, |attached| Ok(attached.marked(slot, tid))).unwrap_or(0)
    }

    fn attached<T>(
        &self,
        pid: u32,
        see: impl FnOnce(&AttachedProgram) -> Result<T, RegionsError>,
    ) -> Result<T, RegionsError> {
        let Place::Processes { found, .. } = &self.0 else { return Err(RegionsError::OfAnother) };
        let found = found.lock().unwrap_or_else(PoisonError::into_inner);
        let attached = found.iter().find(|(found, _)| found.as_raw().unsigned_abs() == pid);
        match attached.map(|(_, attached)| attached) {
            Some(Ok(attached)) => see(attached),
            Some(Err(error)) => Err(RegionsError::Known(error.to_string())),
            None => Err(RegionsError::OfAnother),
        }
    }

    /// The regions of all processes that have or had any, the first one first. Past 1,000 of them, an error says how
    /// many more there are.
    pub fn read(&self) -> Vec<ProcessRegions> {
        self.look();
        let read = |program: ProgramKey| ProcessRegions {
            pid: program.0,
            regions: self.open(program).and_then(|file| self.snapshot(program, &file)),
        };
        let programs = self.programs();
        let (shown, others) = programs.split_at(programs.len().min(MOST_PROGRAMS));
        let beyond = |&(pid, _)| ProcessRegions { pid, regions: Err(RegionsError::TooMany(others.len())) };
        shown.iter().copied().map(read).chain(others.first().map(beyond)).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn what_is_no_file_of_regions_is_an_error() {
        // A number that no process has.
        let pid = u32::MAX - 1;
        let source = RegionSource::of_command(pid, None).unwrap();
        let path = |name: &str| perfprop_regions::folder_of(pid).join(name);
        fs::write(path("1.0"), "").unwrap();
        fs::write(path("2.0"), [7; 8192]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", path("3.0")).unwrap();
        nix::unistd::mkfifo(&path("4.0"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let read = source.read();
        let errors: Vec<_> =
            read.into_iter().map(|process| (process.pid, process.regions.unwrap_err().to_string())).collect();
        assert_eq!(errors.iter().map(|(pid, _)| *pid).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(errors[1].1, "it holds no regions");
        assert_eq!((errors[2].1.as_str(), errors[3].1.as_str()), ("it is no regular file", "it is no regular file"));
    }
    #[test]
    fn of_more_programs_than_are_read_the_first_are_and_the_others_are_told() {
        let pid = u32::MAX - 5;
        let source = RegionSource::of_command(pid, None).unwrap();
        let numbers = (1..=MOST_PROGRAMS as u32 + 20).rev();
        numbers.for_each(|of| fs::write(perfprop_regions::folder_of(pid).join(format!("{of}.0")), "").unwrap());
        let read = source.read();
        assert!(read.iter().map(|process| process.pid).eq(1..=MOST_PROGRAMS as u32 + 1));
        let error = read.last().unwrap().regions.as_ref().unwrap_err().to_string();
        assert_eq!(error, "it is one of 20 processes past the first 1000, which alone are read");
    }
}
