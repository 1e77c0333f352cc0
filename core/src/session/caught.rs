//! Signals that perfprop caught: who sent one, and what it ended.

/// A signal that perfprop caught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaughtSignal {
    /// Its number (signal(7)).
    pub number: i32,
    /// Who sent it.
    pub sender: SignalSender,
}

/// Who sent a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalSender {
    /// The kernel, as when a key is pressed: a terminal sends it to all processes in its foreground, also to the
    /// command.
    Kernel,
    /// A process, as with `kill`: perfprop may be the only one that has it.
    Process,
}

impl From<i32> for CaughtSignal {
    /// A signal that a process sent.
    fn from(number: i32) -> Self {
        Self { number, sender: SignalSender::Process }
    }
}

/// Why something ended before it was done.
#[derive(Debug)]
pub enum Unfinished<E> {
    /// A signal of this number ended it.
    Signal(i32),
    /// It failed.
    Error(E),
}

impl<E> Unfinished<E> {
    /// The signal.
    ///
    /// # Errors
    /// The error, if it failed.
    pub fn signal(self) -> Result<i32, E> {
        match self {
            Self::Signal(signal) => Ok(signal),
            Self::Error(error) => Err(error),
        }
    }
}

impl<E> From<E> for Unfinished<E> {
    fn from(error: E) -> Self {
        Self::Error(error)
    }
}
