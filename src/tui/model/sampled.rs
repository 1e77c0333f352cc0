//! Keeps the profile and the selected event of the other screens together.

use super::{EventLine, ProfileState, ScreenModel};
use crate::profile::Tree;
use crate::stacks::StackQuality;
use crate::tui::layout::Room;
use crate::tui::layout::profile::table_rows;
use crate::tui::screen::Screen;

impl ScreenModel {
    /// Takes over what was sampled up to the end of the last interval.
    pub(in crate::tui) fn take_profile(&mut self, tree: &Tree, quality: &StackQuality) {
        let is_first = self.profile.is_none();
        let target = self.monitor.header().target.selection();
        self.profile.get_or_insert_default().take(tree, quality, &target);
        if is_first && self.events.is_chosen {
            self.share_event();
        }
    }

    /// Shows the event that the user selected in the profile too, if it was sampled.
    pub(super) fn share_event(&mut self) {
        self.events.is_chosen = true;
        let events = &self.monitor.header().events;
        let (Some(profile), Some(event)) = (&mut self.profile, events.get(self.events.selected)) else { return };
        let name = &event.event.name;
        if let Some(place) = profile.calls.events.iter().position(|sampled| is_of(&sampled.name, name)) {
            profile.set_event(place);
        }
    }

    /// Selects the event that the profile shows everywhere else.
    pub(super) fn follow_profile(&mut self) {
        let Some(sampled) = self.profile.as_ref().and_then(ProfileState::event_name) else { return };
        let events = &self.monitor.header().events;
        let place = events.iter().position(|event| is_of(sampled, &event.event.name));
        if let Some(line) = place.map(EventLine::Event).filter(|line| self.events.order.contains(line)) {
            self.events.select(line);
        }
    }

    /// Whether the profile is on the screen.
    pub(in crate::tui) fn shows_profile(&self) -> bool {
        match self.screen {
            Screen::Profile => true,
            Screen::Events => Room::on(self.size) == Room::Large,
            Screen::Detail | Screen::Relations | Screen::Groups | Screen::Log | Screen::Compare => false,
        }
    }

    /// How many rows the table of the Profile screen has.
    pub(super) fn profile_rows(&self) -> usize {
        table_rows(self.size, self.profile.as_ref().map(|profile| profile.emphasis).unwrap_or_default())
    }
}

/// Whether a sampled event is this one: it has `:u` behind its name where only user space is sampled.
fn is_of(sampled: &str, event: &str) -> bool {
    sampled == event || sampled.strip_suffix(":u") == Some(event)
}
