//! Handles the keys that move a replay in time.

use super::{Command, Model, Notice, Over};
use crate::tui::keys::Action;
use crate::tui::text::short_clock;
use crate::units::WallNs;

impl Model {
    pub(super) fn wind(&mut self, action: Action) -> Option<Command> {
        let (now, interval) = (self.kept.now(), self.monitor.header().interval_ns);
        let Some(tape) = &mut self.tape else {
            self.notice = Some(Notice::Failed("only a replay can be wound".into()));
            return None;
        };
        match action {
            Action::Pause => tape.playing = !tape.playing,
            Action::Slower => tape.slower(),
            Action::Faster => tape.faster(),
            Action::StepBack => {
                tape.playing = false;
                // The interval that ended last is the one to leave.
                let last = self.monitor.now().0.saturating_sub(1) / interval.0.max(1);
                return Some(Command::Seek(WallNs(last * interval.0)));
            }
            Action::StepForward => {
                tape.playing = false;
                let next = self.monitor.now().0 / interval.0.max(1) + 1;
                return Some(Command::Seek(WallNs(next.saturating_mul(interval.0))));
            }
            Action::Jump => {
                self.over = Over::Jump { text: String::new() };
                return None;
            }
            Action::Mark => {
                let words = if tape.mark(now) { "marked" } else { "no longer marked" };
                self.notice = Some(Notice::Done(format!("{} {words}", short_clock(now))));
                return None;
            }
            Action::NextMark => match tape.next_mark(now) {
                Some(mark) => return Some(Command::Seek(mark)),
                None => {
                    self.notice = Some(Notice::Failed("no time is marked yet: b marks one".into()));
                    return None;
                }
            },
            _ => return None,
        }
        Some(Command::Play)
    }
}
