//! Edits the line that is being typed: a filter or a time.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Filter, LoopCommand, Notice, Over, ScreenModel, Tail};
use crate::names::shown;
use crate::tui::playback::parse_time;
use crate::tui::screen::Screen;

/// A filter longer than this is no filter.
const MAX_FILTER: usize = 200;

impl ScreenModel {
    pub(super) fn begin_filter(&mut self) {
        if let Some(filter) = self.filter() {
            self.over = Over::Filter { before: filter.to_owned() };
        }
        // A search begins anew; a filter goes on from what it has.
        if self.screen == Screen::Profile && self.over != Over::Nothing {
            self.set_filter(String::new());
        }
    }

    /// Filters while it is typed.
    pub(super) fn filter_key(&mut self, key: KeyEvent, before: String) {
        let mut text = self.filter().map_or_else(String::new, str::to_owned);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => {
                self.over = Over::Nothing;
                return;
            }
            KeyCode::Esc => {
                self.over = Over::Nothing;
                text = before;
            }
            KeyCode::Char('c') if control => {
                self.over = Over::Nothing;
                text = before;
            }
            KeyCode::Char('u') if control => text.clear(),
            KeyCode::Char('w') if control => {
                let end = text.trim_end().rfind(' ').map_or(0, |space| space + 1);
                text.truncate(end);
            }
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(c) if !control && text.chars().count() < MAX_FILTER => text.push(c),
            _ => {}
        }
        self.set_filter(text);
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
        match key.code {
            KeyCode::Esc => self.over = Over::Nothing,
            KeyCode::Enter => {
                self.over = Over::Nothing;
                match parse_time(&text) {
                    _ if text.trim() == "end" => return Some(LoopCommand::Seek(self.options.mode.length())),
                    Some(time) => return Some(LoopCommand::Seek(time)),
                    None => {
                        let words = format!("'{}' is no time: 83, 83.5, 1:23 or end", shown(&text));
                        self.notice = Some(Notice::Failed(words));
                    }
                }
            }
            KeyCode::Backspace => {
                text.pop();
                self.over = Over::Jump { text };
            }
            KeyCode::Char(c) if text.len() < 16 && !key.modifiers.contains(KeyModifiers::CONTROL) => {
                text.push(c);
                self.over = Over::Jump { text };
            }
            _ => {}
        }
        None
    }
}
