//! Handles keys while a filter or a time is typed.

use ratatui::crossterm::event::KeyEvent;

use super::line::{LineEdit, edit};
use super::press::WITHOUT_STACKS;
use super::{Filter, HelpKeys, LoopCommand, OpenHelp, Over, ScreenModel, Tail};
use crate::names::shown;
use crate::tui::playback::parse_time;
use crate::tui::screen::Screen;

/// A filter longer than this is no filter, and such a time none.
const MAX_FILTER: usize = 200;
const MAX_TIME: usize = 16;

impl ScreenModel {
    pub(super) fn begin_filter(&mut self) {
        let Some(filter) = self.filter() else {
            self.refuse(WITHOUT_STACKS);
            return;
        };
        self.over = Over::Filter { before: filter.to_owned() };
        // A search begins anew; a filter goes on from what it has.
        if self.screen == Screen::Profile {
            self.set_filter(String::new());
        }
    }

    /// Filters while it is typed.
    pub(super) fn filter_key(&mut self, key: KeyEvent, before: String) {
        let mut text = self.filter().map_or_else(String::new, str::to_owned);
        match edit(&mut text, key, MAX_FILTER) {
            LineEdit::Typed => {}
            LineEdit::Entered => {
                self.over = Over::Nothing;
                return self.go_to_match();
            }
            LineEdit::GivenUp => {
                self.over = Over::Nothing;
                text = before;
            }
        }
        self.set_filter(text);
    }

    /// Filters the help while the filter is typed; Esc takes the filter away.
    pub(super) fn help_filter_key(&mut self, key: KeyEvent, help: OpenHelp) {
        let mut text = help.filter.text().to_owned();
        let keys = match edit(&mut text, key, MAX_FILTER) {
            LineEdit::Typed => HelpKeys::Filter,
            LineEdit::Entered => HelpKeys::Scroll,
            LineEdit::GivenUp => {
                text.clear();
                HelpKeys::Scroll
            }
        };
        self.over = Over::Help(OpenHelp { top: 0, filter: Filter::new(text), keys });
    }

    /// What was searched for in the profile is selected, as pagers do.
    fn go_to_match(&mut self) {
        let rows = self.profile_rows();
        let Some(profile) = self.profile.as_mut().filter(|_| self.screen == Screen::Profile) else { return };
        if let Err(words) = profile.go_to_match(rows) {
            self.refuse(words);
        }
    }

    pub(super) fn set_filter(&mut self, text: String) {
        if let (Screen::Profile, Some(profile)) = (self.screen, &mut self.profile) {
            profile.set_search(text);
            return;
        }
        let filter = Filter::new(text);
        match self.screen {
            Screen::Events => self.events.filter = filter,
            Screen::Relations => self.relations.filter = filter,
            Screen::Log => {
                self.log.filter = filter;
                (self.log.findings, self.log.output) = (Tail::Follow, Tail::Follow);
            }
            Screen::Compare => self.comparison.filter = filter,
            Screen::Threads => self.thread_list.filter = filter,
            Screen::Detail | Screen::Profile | Screen::Groups | Screen::Source => {}
        }
        self.arrange();
    }

    pub(super) fn jump_key(&mut self, key: KeyEvent, mut text: String) -> Option<LoopCommand> {
        let edited = edit(&mut text, key, MAX_TIME);
        if edited == LineEdit::Typed {
            self.over = Over::Jump { text };
            return None;
        }
        self.over = Over::Nothing;
        match parse_time(&text) {
            _ if edited == LineEdit::GivenUp => None,
            _ if text.trim() == "end" => Some(LoopCommand::Seek(self.options.mode.length())),
            Some(time) => Some(LoopCommand::Seek(time)),
            None => {
                let words = format!("'{}' is no time: 83, 83.5, 1:23 or end", shown(&text));
                self.refuse(words);
                None
            }
        }
    }
}
