//! Names the threads that wake others: those of the target, and of the rest of the machine.

use rustc_hash::FxHashMap;

use super::off_cpu::Waker;
use crate::sources::process;
use crate::stacks::live::rings::Wakeup;
use crate::stacks::live::unwinding::Processes;

/// How long a name that /proc gave is believed, in ns: nobody tells of a thread outside of the target that it has
/// ended, and that another one has its number.
const BELIEVED: u64 = 1_000_000_000;

/// Threads outside of the target of which names are kept.
const MOST_KEPT: usize = 4096;

/// The names of all threads that woke others.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    names: Vec<String>,
    numbers: FxHashMap<String, u32>,
    /// The numbers of names of threads outside of the target, and when they were read.
    others: FxHashMap<i32, (u32, u64)>,
}

impl Wakers {
    /// Who wakes.
    pub(super) fn of(&mut self, wakeup: &Wakeup, processes: &Processes, time: u64) -> Waker {
        let (pid, tid) = wakeup.by;
        // What runs where nothing does is the kernel's idle thread, which wakes nobody.
        if wakeup.in_interrupt || tid == 0 {
            return Waker::Interrupt;
        }
        if let Some(name) = processes.name(tid) {
            return Waker::Thread(self.number(name.to_owned()));
        }
        if let Some(&(number, read_at)) = self.others.get(&tid)
            && time.saturating_sub(read_at) < BELIEVED
        {
            return Waker::Thread(number);
        }
        // The kernel gives -1 of one that has just ended.
        let name = if pid < 0 || tid < 0 { None } else { process::name(nix::unistd::Pid::from_raw(tid)) };
        let Some(name) = name else { return Waker::Unknown };
        let number = self.number(name);
        if self.others.len() >= MOST_KEPT {
            self.others.clear();
        }
        self.others.insert(tid, (number, time));
        Waker::Thread(number)
    }

    fn number(&mut self, name: String) -> u32 {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let names = &mut self.names;
        *self.numbers.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            next
        })
    }

    /// The names from a number on.
    pub(super) fn since(&self, first: usize) -> &[String] {
        self.names.get(first..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn threads_are_named_and_interrupts_are_not() {
        let (mut wakers, mut processes) = (Wakers::default(), Processes::default());
        let wakeup = |tid: i32, in_interrupt| Wakeup { tid: 9, by: (tid, tid), in_interrupt };
        processes.rename(7, 7, b"worker", false);
        assert_eq!(wakers.of(&wakeup(7, false), &processes, 0), Waker::Thread(0));
        assert_eq!(wakers.of(&wakeup(7, true), &processes, 0), Waker::Interrupt);
        assert_eq!(wakers.of(&wakeup(0, false), &processes, 0), Waker::Interrupt);
        assert_eq!(wakers.of(&wakeup(-1, false), &processes, 0), Waker::Unknown);
        // No thread of the target: /proc knows it, once a second.
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(wakers.of(&wakeup(me, false), &processes, 0), Waker::Thread(1));
        assert_eq!(wakers.of(&wakeup(me, false), &processes, BELIEVED + 1), Waker::Thread(1));
        assert_eq!((wakers.since(0).len(), wakers.since(1).len(), wakers.since(9).len()), (2, 1, 0));
        assert_eq!(wakers.since(0)[0], "worker");
        processes.rename(7, 7, b"other", false);
        assert_eq!(wakers.of(&wakeup(7, false), &processes, 0), Waker::Thread(2));
    }
}
