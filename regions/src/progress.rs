//! Follows a call that is suspended and resumed: that of a future, or of a span.

use crate::thread::{self, Call, Entered, Refusal, Suspended};

/// How far a call is.
#[derive(Debug, Default)]
pub(crate) enum Progress {
    /// It hasn't begun.
    #[default]
    New,
    /// It goes on when it is entered again.
    Waits(Suspended),
    /// It is a part of another call, or isn't counted at all.
    Within,
    /// It is open, or was counted.
    Done,
}

/// Why a call wasn't begun or resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is new, and within an open call of its name.
    Within,
    /// For another reason, or a second time.
    Other,
}

impl Progress {
    /// Begins the call, or goes on with it.
    pub(crate) fn enter(
        &mut self,
        open: impl FnOnce(Call<'_>) -> Result<Entered, Refusal>,
    ) -> Result<Entered, Refused> {
        let call = match self {
            Self::New => Call::Plain,
            Self::Waits(suspended) => Call::Resumed(suspended),
            Self::Within | Self::Done => return Err(Refused::Other),
        };
        match (open(call), &self) {
            (Ok(entered), _) => {
                *self = Self::Done;
                Ok(entered)
            }
            (Err(Refusal::AlreadyOpen), Self::New) => {
                *self = Self::Within;
                Err(Refused::Within)
            }
            _ => Err(Refused::Other),
        }
    }

    /// Closes it until it goes on.
    pub(crate) fn suspend(&mut self, entered: Entered) {
        *self = thread::suspend(entered).map_or(Self::Done, Self::Waits);
    }

    /// Counts it if it waits: it won't go on.
    pub(crate) fn finish(&mut self) {
        if let Self::Waits(suspended) = std::mem::replace(self, Self::Done) {
            thread::finish(&suspended);
        }
    }
}
