//! Updates the model by a message, and returns what the loop is to do.

use ratatui::crossterm::event::KeyEventKind;

use super::{
    LoopCommand, Message, Motion, Over, RoundBuffer, SavedRecording, ScreenModel, SourceState, Tail, ThreadCells,
};
use crate::monitor::{Monitor, RecordingNotes};
use crate::names::{shown, shown_path};
use crate::number::clock;
use crate::run::End;
use crate::session::OutputLine;
use crate::sources::RecordedRound;
use crate::tui::playback::Sight;
use crate::tui::theme::Theme;

/// Takes a message.
pub(in crate::tui) fn update(model: &mut ScreenModel, message: Message) -> Option<LoopCommand> {
    let changes = match message {
        Message::Round(round) => model.take_round(round),
        Message::Ended(end, notes) => model.take_end(end, notes),
        Message::Output(line) => model.take_output(line),
        Message::Own(part) => model.take_own(part),
        Message::Resized(width, height) => model.resize(width, height),
        Message::Saved(Ok(path)) => model.tell_saved(&SavedRecording { path, left_out: None }),
        Message::SavedRecording(saved) => model.tell_saved(&saved),
        Message::Saved(Err(error)) => model.refuse_with(format!("not saved: {}", shown(&error))),
        Message::Failed(error) => model.refuse_with(shown(&error)),
        Message::SamplingRefused(words) => model.refuse_sampling(&words),
        Message::CommandRuns(pid) => model.ask_to_quit(pid),
        Message::Wound(monitor, rounds, sight) => model.take_wound(*monitor, rounds, sight),
        Message::ReadAhead(notes) => model.take_notes(&notes),
        Message::Theme(theme, complaints) => model.take_theme(*theme, &complaints),
        Message::AtChange(change) => model.at_change(&change),
        Message::Source(state) => model.take_source(*state),
        Message::Sampled => model.take_samples(),
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

/// What is told once, or asked. Each method says whether anything that is shown changed.
impl ScreenModel {
    /// Says where something was saved, and what isn't in it.
    fn tell_saved(&mut self, saved: &SavedRecording) -> bool {
        let lacking = saved
            .left_out
            .map_or_else(String::new, |until| format!("; samples until {} were too many to keep", clock(until)));
        self.tell(format!("saved to {}{lacking}", shown_path(&saved.path)));
        true
    }

    fn refuse_with(&mut self, words: impl Into<String>) -> bool {
        self.refuse(words);
        true
    }

    fn refuse_sampling(&mut self, words: &str) -> bool {
        let words: Vec<_> = words.lines().map(|line| shown(line.trim()).into_owned()).collect();
        self.refuse(words.first().cloned().unwrap_or_default());
        self.sampling_refused = Some(words.join("\n"));
        true
    }

    fn ask_to_quit(&mut self, pid: i32) -> bool {
        self.over = Over::AskQuit { pid };
        true
    }
}

/// How things look.
impl ScreenModel {
    fn resize(&mut self, width: u16, height: u16) -> bool {
        self.size = (width, height);
        true
    }

    fn take_theme(&mut self, theme: Theme, complaints: &[String]) -> bool {
        match complaints.first() {
            None => self.tell(format!("theme {} read again", shown(theme.name()))),
            Some(complaint) => self.refuse(shown(complaint)),
        }
        self.options.theme = theme;
        if self.shows_own_theme {
            self.theme = self.options.theme.clone();
        }
        true
    }
}

/// What is counted and written.
impl ScreenModel {
    fn take_end(&mut self, end: End, notes: Vec<String>) -> bool {
        self.rounds.end = Some(end);
        self.notes.extend(notes);
        if let Over::AskQuit { .. } = self.over {
            self.over = Over::Nothing;
            self.tell("the command has ended; q quits");
        }
        self.follow();
        self.go_along();
        self.compare();
        true
    }

    /// Shown with the next interval: a number that changes by itself would be drawn for nothing.
    fn take_own(&mut self, part: f64) -> bool {
        self.own = Some(part);
        false
    }

    fn take_wound(&mut self, monitor: Monitor, rounds: RoundBuffer, sight: Sight) -> bool {
        (self.monitor, self.rounds) = (monitor, rounds);
        self.diagnosed_at = None;
        self.profile_is_old = true;
        self.thread_list.cells = ThreadCells::default();
        if let Some(playback) = &mut self.playback {
            playback.sight = sight;
        }
        self.go_along();
        self.arrange();
        true
    }

    fn take_notes(&mut self, notes: &RecordingNotes) -> bool {
        self.outline = self.outline.take().map(|outline| outline.with_notes(notes));
        true
    }

    fn take_source(&mut self, state: SourceState) -> bool {
        self.show_source(state);
        true
    }

    fn take_samples(&mut self) -> bool {
        self.profile_is_old = true;
        self.motion == Motion::Moving && self.uses_profile()
    }

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
