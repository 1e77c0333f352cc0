//! The messages that update the model, and the commands that it gives to the loop.

use std::path::PathBuf;

use ratatui::crossterm::event::{KeyEvent, MouseEventKind};

use super::profile::FrameIndex;
use super::{ClickTarget, RoundBuffer, SavedRecording, SourceState};
use crate::monitor::{Monitor, PhaseChange, RecordingNotes};
use crate::plan::RowIndex;
use crate::recording::TimeRange;
use crate::run::End;
use crate::session::OutputLine;
use crate::sources::RecordedRound;
use crate::stacks::{FirstLevel, InterpreterFrames, ProfileSpan};
use crate::tui::picture::PictureFormat;
use crate::tui::playback::{Sight, TimeDirection};
use crate::tui::theme::Theme;
use crate::units::WallNs;

/// Input of the model: rounds, keys, and what else changes what is shown.
pub(in crate::tui) enum Message {
    /// A round was read.
    Round(RecordedRound),
    /// The measurement has ended, and there is this to be known of it.
    Ended(End, Vec<String>),
    /// The command wrote a line.
    Output(OutputLine),
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal has this size now.
    Resized(u16, u16),
    /// The mouse did something; a click, on this.
    Mouse(MouseEventKind, Option<ClickTarget>),
    /// The recording so far was saved.
    SavedRecording(SavedRecording),
    /// An export was saved, or nothing was.
    Saved(Result<PathBuf, String>),
    /// The replay went back, or to a range of the recording: a monitor with its rounds, and what it has of the
    /// recording.
    Wound(Box<Monitor>, RoundBuffer, Sight),
    /// This is what is told of the whole recording.
    ReadAhead(RecordingNotes),
    /// The theme's file has changed.
    Theme(Box<Theme>, Vec<String>),
    /// The user wants to quit, and the command with this process id runs.
    CommandRuns(i32),
    /// What was sampled of a function, with its source.
    Source(Box<SourceState>),
    /// More was sampled than the profile shows.
    Sampled,
    /// The replay goes to a change of level.
    AtChange(PhaseChange),
    /// Something failed, and the user should know.
    Failed(String),
    /// Call stacks can't be sampled: why, and in further lines what mends it.
    SamplingRefused(String),
    /// perfprop used this part of a CPU in the last interval.
    Own(f64),
}

/// What the loop is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tui) enum LoopCommand {
    /// Have another first level of the profile's tree.
    FirstLevel(FirstLevel),
    /// Have the samples of this span in the profile.
    ProfileSpan(ProfileSpan),
    /// Begin to sample call stacks.
    BeginSampling,
    /// Begin the profile anew, with the samples to come.
    RestartProfile,
    /// Show interpreters' own frames in the profile's tree, or leave them out.
    InterpreterFrames(InterpreterFrames),
    /// Quit, unless the command runs and the user is to be asked.
    Quit,
    /// End the command, and quit.
    Kill,
    /// Let the command run on, and quit.
    Detach,
    /// Write what was recorded.
    Save,
    /// Put this into the terminal's clipboard.
    Copy(String),
    /// Write what is shown, in this form.
    Export(PictureFormat),
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Play the recording on from here at the speed of the replay, or stop, as the replay is paused or not.
    Play,
    /// Go to this time of the recording, and show what came before it.
    Seek(WallNs),
    /// Go to the end of the interval before, or of the next one; move a range by one.
    Step(TimeDirection),
    /// Show this range of the recording alone.
    ShowRange(TimeRange),
    /// Go to the next change of level in this direction: of this event, or of any.
    SeekChange(TimeDirection, Option<RowIndex>),
    /// Show the source of this function, with the samples of this event.
    ShowSource(FrameIndex, usize),
    /// Stop, and give the terminal back to the shell.
    Suspend,
    /// Draw every cell.
    Redraw,
}
