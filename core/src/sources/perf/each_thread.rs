//! Attaches to the threads of a process, each once, while others start.

use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::OpenError;
use crate::host::HostFiles;
use crate::sources::process;

/// For how long processes are attached to anew because threads or processes started meanwhile.
const PATIENCE: Duration = Duration::from_millis(200);

/// Attaches to processes that run.
///
/// A thread that starts meanwhile inherits those counters alone that its starter has by then. So if one has started,
/// `attach` begins anew: nothing counts yet, and closing a counter closes what inherited it.
pub(crate) fn anew_while_others_start<E>(
    inherit: bool,
    began: Instant,
    mut attach: impl FnMut() -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let before = last_id();
        attach()?;
        let is_whole = !inherit || before == last_id();
        if is_whole || began.elapsed() >= PATIENCE {
            return Ok(());
        }
    }
}

/// Attaches to all threads of a process, and looks again until no more have come up: gives to how many. `attach` says
/// whether one has not ended meanwhile.
pub(crate) fn each_thread<E: From<OpenError>>(
    pid: Pid,
    inherit: bool,
    mut attach: impl FnMut(Pid) -> Result<bool, E>,
) -> Result<usize, E> {
    // Where nothing is inherited, what starts from now on isn't counted.
    let begun = if inherit { None } else { last_id() };
    let (mut threads, mut attached) = (Threads::default(), 0);
    loop {
        let new = match process::threads(pid) {
            Ok(listed) => threads.unattached(listed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(OpenError::System(error).into()),
        };
        // Those of the first list are there, though ids may have begun anew since they were given out.
        threads.last = threads.last.or(begun);
        if new.is_empty() {
            return Ok(attached);
        }
        for thread in new {
            if !attach(thread)? {
                continue;
            }
            attached += 1;
            threads.last = threads.last.or_else(last_id);
        }
    }
}

/// The threads of a process as they are found.
///
/// While thousands are attached to, others start. One whose starter was attached to already has
/// inherited its counters; attaching to it as well would count it twice. Who started a thread can't
/// be known, but when: ids are given out in ascending order. The first thread of a process, which is
/// attached to first, starts most others, so a thread that came after that is taken to be counted.
#[derive(Default)]
struct Threads {
    known: HashSet<Pid>,
    /// The last id that had been given out when counters began to be inherited; where they aren't, before threads were
    /// listed: what starts later isn't counted.
    last: Option<Pid>,
}

impl Threads {
    /// The threads of a list that are still to be attached to: each once.
    fn unattached(&mut self, listed: Vec<Pid>) -> Vec<Pid> {
        let mut new = listed;
        new.retain(|&thread| self.known.insert(thread) && self.last.is_none_or(|last| thread <= last));
        new
    }
}

/// The last id that the kernel gave to a thread.
fn last_id() -> Option<Pid> {
    HostFiles::here().last_pid().map(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn pids(ids: &[i32]) -> Vec<Pid> {
        ids.iter().copied().map(Pid::from_raw).collect()
    }

    #[test]
    fn threads_are_attached_to_once_and_not_if_they_inherit() {
        let mut threads = Threads::default();
        assert_eq!(threads.unattached(pids(&[10, 11])), pids(&[10, 11]));
        threads.last = Some(Pid::from_raw(20));
        // 15 was there, or was being started, before anything was inherited; 21 came later.
        assert_eq!(threads.unattached(pids(&[10, 11, 15, 21])), pids(&[15]));
        assert_eq!(threads.unattached(pids(&[10, 11, 15, 21])), []);
    }

    #[test]
    fn a_thread_that_starts_has_a_later_id_than_the_last() {
        let Some(before) = last_id() else { return };
        let id = std::thread::spawn(nix::unistd::gettid).join().unwrap();
        // Unless the ids began anew in between.
        assert!(id > before || id < Pid::from_raw(1000), "{before} {id}");
    }

    /// What is attached to of this process, where each attached thread is seen to start another one.
    fn attached(inherit: bool) -> Vec<Pid> {
        let (mut attached, mut started) = (Vec::new(), Vec::new());
        let (stop, stopped) = std::sync::mpsc::sync_channel::<()>(0);
        let stopped = std::sync::Arc::new(std::sync::Mutex::new(stopped));
        each_thread::<OpenError>(Pid::this(), inherit, |thread| {
            attached.push(thread);
            let (told, id) = std::sync::mpsc::channel();
            let stopped = std::sync::Arc::clone(&stopped);
            started.push(std::thread::spawn(move || {
                told.send(nix::unistd::gettid()).unwrap();
                let _ = stopped.lock().unwrap().recv();
            }));
            id.recv().unwrap();
            Ok(true)
        })
        .unwrap();
        drop(stop);
        started.into_iter().for_each(|thread| thread.join().unwrap());
        attached
    }

    #[test]
    fn threads_that_start_meanwhile_have_an_end() {
        // Without the last id nothing could tell which those are.
        if last_id().is_none() {
            return;
        }
        for inherit in [true, false] {
            let attached = attached(inherit);
            assert!(attached.contains(&nix::unistd::gettid()));
            assert!(attached.iter().collect::<HashSet<_>>().len() == attached.len());
        }
    }
}
