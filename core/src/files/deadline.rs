//! Sets a deadline for calls that may never come back.

use std::mem::discriminant;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::Refused;

/// The most calls to one kind of [`Answerer`] that may hang past their deadline; then no further one is begun.
const MOST_STUCK: usize = 8;

/// Who has to answer a call. As long as one hangs, no other to the same is begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answerer {
    /// The file system on a device, by its number.
    Device(u64),
    /// A process: its memory, whose lock another may hold, and its files.
    Process(i32),
    /// What lies in a folder.
    Folder(PathBuf),
}

/// Those that missed their deadline and haven't answered, once for each call.
static STUCK: Mutex<Vec<Answerer>> = Mutex::new(Vec::new());

fn stuck() -> MutexGuard<'static, Vec<Answerer>> {
    STUCK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Answerer {
    /// Who answers for a path of which no device is known.
    pub fn folder_of(path: &Path) -> Self {
        Self::Folder(path.parent().unwrap_or(path).to_owned())
    }

    fn is_stuck(&self) -> bool {
        let stuck = stuck();
        let of_kind = stuck.iter().filter(|other| discriminant(*other) == discriminant(self)).count();
        of_kind >= MOST_STUCK || stuck.contains(self)
    }
}

/// What `work` gives, if it does within a time; else it is left to itself on its thread.
///
/// # Errors
/// [`Refused::Late`] when the time is over, and at once where a call to the same hangs already, or too many others do.
pub fn within<T: Send + 'static>(
    deadline: Duration,
    answerer: Answerer,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    if answerer.is_stuck() {
        return Err(Refused::Late(deadline));
    }
    let (sender, answer) = sync_channel(1);
    let call = Arc::new(Call { answerer, state: Mutex::new(CallState::Runs) });
    let end = EndOfCall(Arc::clone(&call));
    let run = move || {
        let _end = end;
        let _ = sender.send(work());
    };
    thread::Builder::new().name("perfprop-files".into()).spawn(run).map_err(Refused::System)?;
    if let Ok(answer) = answer.recv_timeout(deadline) {
        return Ok(answer);
    }
    call.is_late();
    // It may have ended just now.
    answer.try_recv().map_err(|_| Refused::Late(deadline))
}

#[derive(Debug)]
struct Call {
    answerer: Answerer,
    state: Mutex<CallState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    Runs,
    Late,
    Ended,
}

impl Call {
    fn state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts it as stuck, unless it has ended.
    fn is_late(&self) {
        let mut state = self.state();
        if *state == CallState::Runs {
            *state = CallState::Late;
            stuck().push(self.answerer.clone());
        }
    }
}

/// When a call ends, also by a panic, it is stuck no longer.
struct EndOfCall(Arc<Call>);

impl Drop for EndOfCall {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if std::mem::replace(&mut *state, CallState::Ended) == CallState::Late {
            let mut stuck = stuck();
            if let Some(place) = stuck.iter().position(|other| *other == self.0.answerer) {
                stuck.swap_remove(place);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_never_comes_back_is_left_behind_and_others_are_asked() {
        // No device has a number like these.
        let [hangs, other] = [u64::MAX - 1, u64::MAX - 2].map(Answerer::Device);
        let (end, never) = std::sync::mpsc::channel::<()>();
        let late = within(Duration::from_millis(1), hangs.clone(), move || never.recv());
        assert!(matches!(late, Err(Refused::Late(_))));
        assert!(matches!(within(LONG, hangs.clone(), || 7), Err(Refused::Late(_))), "at once");
        assert_eq!(within(LONG, other, || 7).unwrap(), 7);
        drop(end);
        while within(LONG, hangs.clone(), || 7).is_err() {
            thread::yield_now();
        }
    }

    #[test]
    fn no_more_than_some_of_a_kind_are_left_behind() {
        let folder = |number: usize| Answerer::folder_of(Path::new(&format!("/nonexistent/{number}/file")));
        let (end, never) = std::sync::mpsc::channel::<()>();
        let never = Arc::new(Mutex::new(never));
        for number in 0..MOST_STUCK {
            let never = Arc::clone(&never);
            let hang = move || never.lock().unwrap().recv();
            assert!(within(Duration::from_millis(1), folder(number), hang).is_err());
        }
        assert!(matches!(within(LONG, folder(MOST_STUCK), || 7), Err(Refused::Late(_))));
        assert_eq!(within(LONG, Answerer::Process(i32::MAX - 5), || 7).unwrap(), 7);
        drop(end);
    }
}
