//! Says below the screens what a key did, or why it did nothing.

use super::ScreenModel;

/// A message to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tui) enum Notice {
    /// Something was done.
    Done(String),
    /// Something can't be done.
    Failed(String),
}

impl ScreenModel {
    /// Tells what was done.
    pub(in crate::tui) fn tell(&mut self, words: impl Into<String>) {
        self.notice = Some(Notice::Done(words.into()));
    }

    /// Tells why something can't be done.
    pub(super) fn refuse(&mut self, words: impl Into<String>) {
        self.notice = Some(Notice::Failed(words.into()));
    }
}
