//! Handles the mouse: selects and opens what it points at.

use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use super::profile::{FrameIndex, Node};
use super::step::Step;
use super::{Line, Model, Over, Profile};
use crate::estimate::RelationIndex;
use crate::plan::EventIndex;
use crate::tui::keys::Action;
use crate::tui::screen::Screen;

/// What a click can be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum Target {
    Screen(Screen),
    Event(EventIndex),
    /// All parts of an event together.
    Sum(usize),
    Relation(RelationIndex),
    Frame(Node),
    Function(FrameIndex),
    Group(usize),
    /// A line of the comparison of recordings.
    Compared(usize),
}

impl Model {
    pub(super) fn mouse(&mut self, kind: MouseEventKind, target: Option<Target>) -> bool {
        match (&self.over, kind) {
            (Over::Nothing, MouseEventKind::ScrollUp) => self.go(Step::By(-3)),
            (Over::Nothing, MouseEventKind::ScrollDown) => self.go(Step::By(3)),
            (Over::Nothing, MouseEventKind::Down(MouseButton::Left)) => match target {
                Some(target) => self.click(target),
                None => return false,
            },
            (Over::Help(_) | Over::AskExport, MouseEventKind::Down(_)) => self.over = Over::Nothing,
            _ => return false,
        }
        true
    }

    /// A click on what is selected already opens it.
    fn click(&mut self, target: Target) {
        match target {
            Target::Screen(screen) => self.screen = screen,
            Target::Compared(place) if self.comparison.selected == place => self.open(),
            Target::Compared(place) => self.comparison.selected = place,
            Target::Event(event) if self.events.cursor == Line::Event(event) => self.screen = Screen::Detail,
            Target::Event(event) => {
                self.events.select(Line::Event(event));
                self.share_event();
            }
            Target::Sum(place) if self.events.cursor == Line::Sum(place) => self.unfold(Action::Toggle),
            Target::Sum(place) => self.events.select(Line::Sum(place)),
            Target::Frame(node) => self.click_profile(|profile, height| profile.click(node, height)),
            Target::Function(frame) => self.click_profile(|profile, height| profile.click_function(frame, height)),
            Target::Group(group) => self.group = group,
            Target::Relation(relation) if self.relations.selected == relation => self.screen = Screen::Relations,
            Target::Relation(relation) => self.relations.selected = relation,
        }
    }

    /// Handles a click on the profile; in the overview it opens the screen.
    fn click_profile(&mut self, click: impl FnOnce(&mut Profile, usize)) {
        let height = self.profile_rows();
        match &mut self.profile {
            Some(profile) if self.screen == Screen::Profile => click(profile, height),
            _ => self.screen = Screen::Profile,
        }
    }
}
