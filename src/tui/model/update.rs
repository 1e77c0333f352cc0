//! Updates the model by a message, and returns what the loop is to do.

use std::path::Path;

use ratatui::crossterm::event::KeyEventKind;

use super::{LoopCommand, Message, Motion, Over, SavedRecording, ScreenModel, Tail, ThreadCells};
use crate::names::{shown, shown_path};
use crate::number::clock;
use crate::session::OutputLine;
use crate::sources::RecordedRound;

/// Takes a message.
pub(in crate::tui) fn update(model: &mut ScreenModel, message: Message) -> Option<LoopCommand> {
    let changes = match message {
        Message::Round(round) => model.take_round(round),
        Message::Ended(end, notes) => {
            model.rounds.end = Some(end);
            model.notes.extend(notes);
            if let Over::AskQuit { .. } = model.over {
                model.over = Over::Nothing;
                model.tell("the command has ended; q quits");
            }
            model.follow();
            model.go_along();
            model.compare();
            true
        }
        Message::Output(line) => model.take_output(line),
        Message::Own(part) => {
            // Shown with the next interval: a number that changes by itself would be drawn for
            // nothing.
            model.own = Some(part);
            false
        }
        Message::Resized(width, height) => {
            model.size = (width, height);
            true
        }
        Message::Saved(Ok(path)) => saved(model, &path, ""),
        Message::SavedRecording(SavedRecording { path, left_out: None }) => saved(model, &path, ""),
        Message::SavedRecording(SavedRecording { path, left_out: Some(until) }) => {
            let lacking = format!("; samples until {} were too many to keep", clock(until));
            saved(model, &path, &lacking)
        }
        Message::Saved(Err(error)) => {
            model.refuse(format!("not saved: {}", shown(&error)));
            true
        }
        Message::Failed(error) => {
            model.refuse(shown(without_program(&error)).into_owned());
            true
        }
        Message::SamplingRefused(words) => {
            let words: Vec<_> = words.lines().map(|line| shown(without_program(line.trim())).into_owned()).collect();
            model.refuse(words.first().cloned().unwrap_or_default());
            model.sampling_refused = Some(words.join("\n"));
            true
        }
        Message::CommandRuns(pid) => {
            model.over = Over::AskQuit { pid };
            true
        }
        Message::Wound(monitor, rounds, sight) => {
            (model.monitor, model.rounds) = (*monitor, rounds);
            model.diagnosed_at = None;
            model.profile_is_old = true;
            model.thread_list.cells = ThreadCells::default();
            if let Some(playback) = &mut model.playback {
                playback.sight = sight;
            }
            model.go_along();
            model.arrange();
            true
        }
        Message::ReadAhead(notes) => {
            model.outline = model.outline.take().map(|outline| outline.with_notes(&notes));
            true
        }
        Message::Theme(theme, complaints) => {
            match complaints.first() {
                None => model.tell(format!("theme {} read again", shown(theme.name()))),
                Some(complaint) => model.refuse(shown(complaint)),
            }
            model.options.theme = *theme;
            if model.shows_own_theme {
                model.theme = model.options.theme.clone();
            }
            true
        }
        Message::AtChange(change) => model.at_change(&change),
        Message::Source(state) => {
            model.show_source(*state);
            true
        }
        Message::Sampled => {
            model.profile_is_old = true;
            model.motion == Motion::Moving && model.uses_profile()
        }
        Message::Mouse(kind, target) => match model.drag(kind, target).or_else(|| model.open_clicked(kind, target)) {
            Some(command) => {
                model.revision += 1;
                return Some(command);
            }
            None => model.mouse(kind, target),
        },
        Message::Key(key) if key.kind == KeyEventKind::Release => return None,
        Message::Key(key) => {
            model.revision += 1;
            return model.key_after_notice(key);
        }
    };
    model.revision += u64::from(changes);
    None
}

/// An error without the program's name, which stands on every screen: `E14 no call stacks can be sampled`.
fn without_program(error: &str) -> &str {
    error.strip_prefix("perfprop: ").unwrap_or(error)
}

/// Says where something was saved, and what isn't in it.
fn saved(model: &mut ScreenModel, path: &Path, lacking: &str) -> bool {
    model.tell(format!("saved to {}{lacking}", shown_path(path)));
    true
}

/// What is counted and written.
impl ScreenModel {
    fn take_round(&mut self, round: RecordedRound) -> bool {
        let before = self.lag().0 / 1_000_000_000;
        self.rounds.push(round);
        match self.motion {
            Motion::Moving => self.follow(),
            // The banner shows whole seconds.
            Motion::Frozen => self.lag().0 / 1_000_000_000 != before,
        }
    }

    /// Brings the view up to date; says whether anything that is shown changed.
    pub(super) fn follow(&mut self) -> bool {
        if self.motion == Motion::Frozen {
            return false;
        }
        let (before, read_before) = (self.monitor.intervals(), self.monitor.threads_read_at());
        self.catch_up();
        let closed = self.monitor.intervals() != before;
        // On a busy machine threads are read later than the interval ends: they aren't to wait for the end of the next.
        let has_threads = self.monitor.threads_read_at() != read_before;
        self.profile_is_old |= closed || self.rounds.end.is_some();
        if closed {
            self.go_along();
            self.arrange();
        }
        // Until the first interval is complete, the time to it is counted down.
        closed || has_threads || before == 0
    }

    fn take_output(&mut self, line: OutputLine) -> bool {
        // Places are those of the lines that pass the filter.
        if let Some(dropped) = self.output.push(line)
            && self.log.filter.matches(&dropped.text)
            && let Tail::At(last) = &mut self.log.output
        {
            *last = last.saturating_sub(1);
        }
        self.shows_output()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_on_screens_have_no_name_of_the_program() {
        assert_eq!(without_program("perfprop: E14 no call stacks can be sampled"), "E14 no call stacks can be sampled");
        assert_eq!(without_program("perfprop: no such file"), "no such file");
        assert_eq!(without_program("try perfprop: check"), "try perfprop: check");
    }
}
