//! Handles the keys that move a replay in time.

use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use super::{ClickTarget, EventLine, LoopCommand, Over, ScreenModel};
use crate::monitor::PhaseChange;
use crate::number::clock;
use crate::recording::TimeRange;
use crate::tui::keys::Action;
use crate::tui::playback::{Sight, TimeDirection};
use crate::tui::screen::Screen;
use crate::tui::text::recorded_clock;
use crate::units::WallNs;

impl ScreenModel {
    pub(super) fn control_playback(&mut self, action: Action) -> Option<LoopCommand> {
        let length = self.options.mode.length();
        // Keys may be faster than a long way: they mean where it leads.
        let now = self.playback.as_ref().and_then(|playback| playback.way).map_or(self.rounds.now(), |way| way.to);
        let Some(playback) = &mut self.playback else {
            self.refuse("only a replay can be wound");
            return None;
        };
        if let (Action::Pause, Sight::Range(range)) = (action, playback.sight) {
            playback.go_on();
            return Some(LoopCommand::Seek(range.to));
        }
        if action == Action::Pause && playback.way.is_none() && self.rounds.end.is_some() {
            playback.go_on();
            return Some(LoopCommand::Seek(WallNs(0)));
        }
        match action {
            Action::Range => return self.choose_range(now),
            Action::Pause if playback.playing => playback.playing = false,
            Action::Pause => playback.go_on(),
            Action::Slower => playback.slower(),
            Action::Faster => playback.faster(),
            Action::StepBack | Action::StepForward => {
                playback.playing = false;
                let direction = if action == Action::StepBack { TimeDirection::Back } else { TimeDirection::On };
                return Some(LoopCommand::Step(direction));
            }
            Action::Jump => {
                self.over = Over::Jump { text: String::new() };
                return None;
            }
            Action::Mark => {
                let words = if playback.mark(now) { "marked" } else { "no longer marked" };
                self.tell(format!("{} {words}", recorded_clock(now, length)));
                return None;
            }
            Action::NextMark => match playback.next_mark(now) {
                Some(mark) => return Some(LoopCommand::Seek(mark)),
                None => {
                    self.refuse("no time is marked yet: b marks one");
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

    /// Begins a range, or ends it.
    fn choose_range(&mut self, now: WallNs) -> Option<LoopCommand> {
        if self.others.is_some() {
            self.refuse("recordings are compared whole: replay one alone to choose a range");
            return None;
        }
        let playback = self.playback.as_mut()?;
        match playback.sight {
            Sight::UpToNow => {
                playback.sight = Sight::RangeBegun(now);
                let at = recorded_clock(now, self.options.mode.length());
                let words = format!("range from {at}: go to its other end (, . or :), then R; Esc: no range");
                self.tell(words);
                None
            }
            Sight::RangeBegun(at) if at == now => {
                self.refuse("the range is empty: go to its other end first, with , . or :");
                None
            }
            Sight::RangeBegun(at) => {
                playback.playing = false;
                Some(LoopCommand::ShowRange(TimeRange::between(at, now)))
            }
            Sight::Range(_) => {
                self.refuse("Esc shows the whole recording again");
                None
            }
        }
    }

    /// Whether the run is over, as far as it was read.
    pub(in crate::tui) fn is_at_end(&self) -> bool {
        self.monitor.ended().is_some() || self.rounds.end.is_some()
    }

    /// Whether a replay goes on by itself; at its end it doesn't.
    pub(in crate::tui) fn is_playing(&self) -> bool {
        self.playback.as_ref().is_some_and(|playback| playback.playing) && !self.is_at_end()
    }

    /// What the key of ranges does now, for the footer.
    pub(in crate::tui) fn range_hint(&self) -> &'static str {
        match self.playback.as_ref().map(|playback| playback.sight) {
            Some(Sight::RangeBegun(_)) => "end range",
            _ => "range",
        }
    }

    /// The range that is shown alone.
    pub(in crate::tui) fn shown_range(&self) -> Option<TimeRange> {
        match self.playback.as_ref()?.sight {
            Sight::Range(range) => Some(range),
            Sight::UpToNow | Sight::RangeBegun(_) => None,
        }
    }

    /// Shows all that came before the end of a range, or gives up one that has begun.
    pub(super) fn leave_range(&mut self) -> Option<LoopCommand> {
        let playback = self.playback.as_mut()?;
        match playback.sight {
            // Its numbers are there until the others are.
            Sight::Range(range) => Some(LoopCommand::Seek(range.to)),
            Sight::UpToNow | Sight::RangeBegun(_) => {
                playback.sight = Sight::UpToNow;
                None
            }
        }
    }

    /// Chooses a range by the mouse on the time line, or a time where it goes up where it went down.
    pub(super) fn drag(&mut self, kind: MouseEventKind, target: Option<ClickTarget>) -> Option<LoopCommand> {
        let playback = self.playback.as_mut().filter(|_| self.over == Over::Nothing)?;
        let cell = match target {
            Some(ClickTarget::Time(cell)) => Some(cell),
            _ => None,
        };
        match kind {
            MouseEventKind::Down(MouseButton::Left) => {
                playback.dragged_from = cell;
                None
            }
            MouseEventKind::Drag(MouseButton::Left) => {
                let (from, to) = (playback.dragged_from?, cell?);
                playback.playing = false;
                (from != to).then(|| LoopCommand::ShowRange(from.with(to)))
            }
            MouseEventKind::Up(MouseButton::Left) => {
                let (from, to) = (playback.dragged_from.take()?, cell?);
                playback.playing = false;
                (from == to).then_some(LoopCommand::Seek(to.to))
            }
            _ => None,
        }
    }

    /// Says to which change the replay goes, and selects its event, or the sum in whose line it is; a filter may hide
    /// both.
    pub(super) fn at_change(&mut self, change: &PhaseChange) -> bool {
        let words = self.monitor.phase_change_words(change);
        let name = self.event_name(change.event);
        self.tell(format!("{name} changed at {}: {words}", clock(change.at)));
        if self.screen != Screen::Log {
            self.select_line_of(change.event);
        }
        true
    }
}
