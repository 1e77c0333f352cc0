//! Goes back by one level: out of a zoom, a filter, a range.

use super::{LoopCommand, Pane, ProfileState, ScreenModel};
use crate::tui::playback::Sight;
use crate::tui::screen::Screen;

/// What Esc goes back from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackLevel {
    /// The events of a region, to the region.
    Region,
    /// The source of a function, to the function.
    Source,
    /// A search, a zoom, a listing or an emphasis of the profile.
    Profile,
    Filter,
    /// The command's output, to the findings.
    Output,
    /// A range of the recording, or one that has only begun.
    Range,
    /// A screen, to the first one.
    Screen,
}

impl ScreenModel {
    /// The innermost level.
    pub(super) fn level(&self) -> BackLevel {
        match self.screen {
            Screen::Events if self.region.is_some() => BackLevel::Region,
            Screen::Source => BackLevel::Source,
            Screen::Profile if self.profile.as_ref().is_some_and(ProfileState::has_level) => BackLevel::Profile,
            _ if self.filter().is_some_and(|filter| !filter.is_empty()) => BackLevel::Filter,
            Screen::Log if self.log.pane == Pane::Output => BackLevel::Output,
            _ if self.playback.as_ref().is_some_and(|playback| playback.sight != Sight::UpToNow) => BackLevel::Range,
            _ => BackLevel::Screen,
        }
    }

    /// Goes back by one level.
    pub(super) fn back(&mut self) -> Option<LoopCommand> {
        match self.level() {
            BackLevel::Region => self.widen(),
            BackLevel::Source => self.screen = Screen::Profile,
            BackLevel::Profile => self.back_in_profile(),
            BackLevel::Filter => self.set_filter(String::new()),
            BackLevel::Output => self.log.pane = Pane::Findings,
            BackLevel::Range => return self.leave_range(),
            BackLevel::Screen => self.screen = self.screens().next().unwrap_or_default(),
        }
        None
    }

    /// Whether Esc leaves a range.
    pub(super) fn is_in_range(&self) -> bool {
        self.level() == BackLevel::Range
    }
}
