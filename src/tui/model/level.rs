//! Goes back by one level: out of a zoom, a filter, a range.

use super::{LoopCommand, Pane, ProfileState, ScreenModel};
use crate::tui::playback::Sight;
use crate::tui::screen::Screen;

/// What Esc goes back from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
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
    pub(super) fn level(&self) -> Level {
        match self.screen {
            Screen::Events if self.region.is_some() => Level::Region,
            Screen::Source => Level::Source,
            Screen::Profile if self.profile.as_ref().is_some_and(ProfileState::has_level) => Level::Profile,
            _ if self.filter().is_some_and(|filter| !filter.is_empty()) => Level::Filter,
            Screen::Log if self.log.pane == Pane::Output => Level::Output,
            _ if self.playback.as_ref().is_some_and(|playback| playback.sight != Sight::UpToNow) => Level::Range,
            _ => Level::Screen,
        }
    }

    /// Goes back by one level.
    pub(super) fn back(&mut self) -> Option<LoopCommand> {
        match self.level() {
            Level::Region => self.widen(),
            Level::Source => self.screen = Screen::Profile,
            Level::Profile => self.back_in_profile(),
            Level::Filter => self.set_filter(String::new()),
            Level::Output => self.log.pane = Pane::Findings,
            Level::Range => return self.leave_range(),
            Level::Screen => self.screen = self.screens().next().unwrap_or_default(),
        }
        None
    }

    /// Whether Esc leaves a range.
    pub(super) fn is_in_range(&self) -> bool {
        self.level() == Level::Range
    }
}
