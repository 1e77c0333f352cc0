//! Handles the keys that move a replay in time.

use super::{EventLine, LoopCommand, Notice, Over, ScreenModel, TimeDirection};
use crate::monitor::PhaseChange;
use crate::number::clock;
use crate::tui::keys::Action;
use crate::tui::screen::Screen;
use crate::tui::text::short_clock;
use crate::units::WallNs;

impl ScreenModel {
    pub(super) fn control_playback(&mut self, action: Action) -> Option<LoopCommand> {
        let (now, interval) = (self.rounds.now(), self.monitor.header().interval_ns);
        let Some(playback) = &mut self.playback else {
            self.notice = Some(Notice::Failed("only a replay can be wound".into()));
            return None;
        };
        match action {
            Action::Pause => playback.playing = !playback.playing,
            Action::Slower => playback.slower(),
            Action::Faster => playback.faster(),
            Action::StepBack => {
                playback.playing = false;
                // The interval that ended last is the one to leave.
                let last = self.monitor.now().0.saturating_sub(1) / interval.0.max(1);
                return Some(LoopCommand::Seek(WallNs(last * interval.0)));
            }
            Action::StepForward => {
                playback.playing = false;
                let next = self.monitor.now().0 / interval.0.max(1) + 1;
                return Some(LoopCommand::Seek(WallNs(next.saturating_mul(interval.0))));
            }
            Action::Jump => {
                self.over = Over::Jump { text: String::new() };
                return None;
            }
            Action::Mark => {
                let words = if playback.mark(now) { "marked" } else { "no longer marked" };
                self.notice = Some(Notice::Done(format!("{} {words}", short_clock(now))));
                return None;
            }
            Action::NextMark => match playback.next_mark(now) {
                Some(mark) => return Some(LoopCommand::Seek(mark)),
                None => {
                    self.notice = Some(Notice::Failed("no time is marked yet: b marks one".into()));
                    return None;
                }
            },
            Action::NextChange | Action::PreviousChange => {
                // It stays there, as with single intervals.
                playback.playing = false;
                let direction = if action == Action::NextChange { TimeDirection::On } else { TimeDirection::Back };
                let event = match (self.screen, self.events.cursor) {
                    (Screen::Detail, EventLine::Event(event)) => Some(event),
                    _ => None,
                };
                return Some(LoopCommand::SeekChange(direction, event));
            }
            _ => return None,
        }
        Some(LoopCommand::Play)
    }

    /// Says to which change the replay goes, and selects its event.
    pub(super) fn at_change(&mut self, change: &PhaseChange) -> bool {
        let words = self.monitor.phase_change_words(change);
        let name = self.event_name(change.event);
        self.notice = Some(Notice::Done(format!("{name} changed at {}: {words}", clock(change.at))));
        if self.screen != Screen::Log {
            self.events.select(EventLine::Event(change.event));
        }
        true
    }
}
