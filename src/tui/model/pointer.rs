//! Handles the mouse: selects and opens what it points at.

use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use super::profile::{FrameIndex, TreeNode};
use super::step::ListStep;
use super::{CompareColumn, EventLine, LoopCommand, Over, ProfileState, ScreenModel, SortColumn, ThreadColumn};
use crate::estimate::RelationIndex;
use crate::plan::RowIndex;
use crate::recording::TimeRange;
use crate::tui::keys::Action;
use crate::tui::screen::Screen;

/// Rows that a wheel scrolls by.
const SCROLLED: isize = 3;

/// What a click can be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum ClickTarget {
    Screen(Screen),
    Event(RowIndex),
    /// All parts of an event together.
    Sum(usize),
    Relation(RelationIndex),
    Frame(TreeNode),
    Function(FrameIndex),
    Group(usize),
    /// The thread of this number.
    Thread(i32),
    /// The heads of columns to sort by.
    SortEvents(SortColumn),
    SortComparison(CompareColumn),
    SortThreads(ThreadColumn),
    /// A line of the comparison of recordings.
    Compared(usize),
    /// A cell of the time line, which stands for this time.
    Time(TimeRange),
}

impl ScreenModel {
    pub(super) fn mouse(&mut self, kind: MouseEventKind, target: Option<ClickTarget>) -> bool {
        let scrolled = match kind {
            MouseEventKind::ScrollUp => Some(ListStep::By(-SCROLLED)),
            MouseEventKind::ScrollDown => Some(ListStep::By(SCROLLED)),
            _ => None,
        };
        match (&self.over, kind, scrolled) {
            (Over::Help(help), _, Some(step)) => self.scroll_help(help.clone(), step),
            // The list of all events isn't there while a region's are.
            (Over::Nothing, _, Some(step)) if self.has_place_for(Action::Down) => self.go(step),
            (Over::Nothing, MouseEventKind::Down(MouseButton::Left), None) => match target {
                Some(target) => self.click(target),
                None => return false,
            },
            (Over::Help(_) | Over::AskExport, MouseEventKind::Down(_), None) => self.over = Over::Nothing,
            _ => return false,
        }
        true
    }

    /// Opens what is clicked on where the loop has a part in that.
    pub(super) fn open_clicked(&mut self, kind: MouseEventKind, target: Option<ClickTarget>) -> Option<LoopCommand> {
        match (&self.over, kind, target) {
            (Over::Nothing, MouseEventKind::Down(MouseButton::Left), Some(ClickTarget::Thread(tid))) => {
                self.open_clicked_thread(tid)
            }
            _ => None,
        }
    }

    /// A click on what is selected already opens it.
    fn click(&mut self, target: ClickTarget) {
        match target {
            ClickTarget::Screen(screen) => self.go_to(screen),
            ClickTarget::Compared(place) if self.comparison.selected == place => self.open_functions(),
            ClickTarget::Compared(place) => self.comparison.selected = place,
            ClickTarget::Event(event) if self.events.cursor == EventLine::Event(event) => self.screen = Screen::Detail,
            ClickTarget::Event(event) => {
                self.events.select(EventLine::Event(event));
                self.share_event();
            }
            ClickTarget::Sum(place) if self.events.cursor == EventLine::Sum(place) => self.unfold(Action::Toggle),
            ClickTarget::Sum(place) => self.events.select(EventLine::Sum(place)),
            ClickTarget::Frame(node) => self.click_profile(|profile, height| profile.click(node, height)),
            ClickTarget::Function(frame) => self.click_profile(|profile, _| profile.click_sum(frame)),
            ClickTarget::SortEvents(column) => {
                let sort = &mut self.events.sort;
                (sort.inverted, sort.by) = (sort.by == Some(column) && !sort.inverted, Some(column));
                self.arrange();
            }
            ClickTarget::SortComparison(column) => {
                let list = &mut self.comparison;
                (list.inverted, list.by) = (list.by == column && !list.inverted, column);
                self.compare();
            }
            ClickTarget::SortThreads(column) => {
                let list = &mut self.thread_list;
                (list.inverted, list.by) = (list.by == column && !list.inverted, column);
            }
            // A range is dragged.
            ClickTarget::Time(_) => {}
            ClickTarget::Group(group) => self.group = group,
            ClickTarget::Thread(tid) => self.select_thread(tid),
            ClickTarget::Relation(relation) if self.relations.selected == relation => self.screen = Screen::Relations,
            ClickTarget::Relation(relation) => self.relations.selected = relation,
        }
    }

    /// Handles a click on the profile; in the overview it opens the screen.
    fn click_profile(&mut self, click: impl FnOnce(&mut ProfileState, usize)) {
        let height = self.profile_rows();
        match &mut self.profile {
            Some(profile) if self.screen == Screen::Profile => click(profile, height),
            _ => self.screen = Screen::Profile,
        }
    }
}
