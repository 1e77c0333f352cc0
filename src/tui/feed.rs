//! Feeds the screens: what a measurement or a replay gives them, and what they can do to it.

use std::io::{self, Write};

use crossbeam_channel::Receiver;

use super::others::Others;
use crate::monitor::{Monitor, RecordingNotes};
use crate::profile::Tree;
use crate::recording::{Recorder, Speed};
use crate::run::End;
use crate::sampling::SamplerMessage;
use crate::session::OutputLine;
use crate::sources::{RecordedRound, Round};
use crate::stacks::{FirstLevel, FunctionLines, InterpreterFrames, ProfileSpan, StackQuality};
use crate::units::WallNs;

/// What feeds the screens, and what they can do to it.
pub trait Feed {
    /// Channel that rounds come from.
    fn samples(&self) -> &Receiver<SamplerMessage>;

    /// Where the command's output comes out; a channel that never gives a line if there is none.
    fn output(&self) -> &Receiver<OutputLine>;

    /// Hands over the profile of the call stacks that were sampled, with what went missing; not at all if none are
    /// sampled. A replay hands over what was sampled until then.
    fn profile(&mut self, _until: WallNs, _see: &mut dyn FnMut(&Tree, &StackQuality)) {}

    /// What an event sampled of a function, by lines: both by their places in the tree that was handed over last.
    /// `None` where samples have no lines.
    fn function_lines(&mut self, _function: usize, _event: usize) -> Option<FunctionLines> {
        None
    }

    /// Has another first level of the profile's tree from now on; says why not where that can't be.
    ///
    /// # Errors
    /// Fails with words for the user where the levels of what is sampled are fixed.
    fn set_first_level(&mut self, _level: FirstLevel) -> Result<(), String> {
        Err("the first level of these stacks is that of their file".into())
    }

    /// Has the samples of this span in the profile from now on; says why not where they have no times.
    ///
    /// # Errors
    /// Fails with words for the user where the times of samples aren't known.
    fn set_profile_span(&mut self, _span: ProfileSpan) -> Result<(), String> {
        Err("the stacks of a file are shown whole".into())
    }

    /// Begins to sample call stacks, where none are sampled.
    ///
    /// # Errors
    /// Fails with words for the user where that can't be; lines behind the first say what mends it.
    fn begin_sampling(&mut self) -> Result<(), String> {
        Err("nothing runs here that could be sampled".into())
    }

    /// Samples CPU time more often from now on, and forgets what was sampled; says how many times a second. `None`
    /// where that is the user's to choose, or there is no higher rate.
    fn sample_more_often(&mut self) -> Option<u64> {
        None
    }

    /// Begins the profile anew, with the samples to come. Only what runs has some.
    fn restart_profile(&mut self) {}

    /// Shows interpreters' own frames in the profile's tree from now on, or leaves them out; stacks of files have what
    /// is in them.
    fn set_interpreter_frames(&mut self, _frames: InterpreterFrames) {}

    /// Writes to a recording what was sampled and what named regions counted until then. Gives the last time whose
    /// samples are left out, if any are.
    ///
    /// # Errors
    /// Returns the writer's error.
    fn write_profile(&self, _until: WallNs, _recorder: &mut Recorder<&mut dyn Write>) -> io::Result<Option<WallNs>> {
        Ok(None)
    }

    /// Whether samples may still come after the end: those on their way have to be named first.
    fn is_profile_coming(&self) -> bool {
        false
    }

    /// How the measurement ended; called once, after the last round.
    fn end(&mut self, last: &Round, lost: u64) -> End;

    /// What the Log is to say when the measurement has ended.
    fn notes_of_end(&self) -> Vec<String> {
        Vec::new()
    }

    /// The process id of the command while it runs.
    fn running_command(&self) -> Option<i32> {
        None
    }

    /// Ends the command; may take two seconds.
    fn terminate(&mut self) {}

    /// The recording behind a replay, in which the screens can seek; `None` for what runs.
    fn timeline(&mut self) -> Option<&mut dyn Timeline> {
        None
    }

    /// Recordings to compare with; asked for once.
    fn others(&mut self) -> Option<Others> {
        None
    }

    /// Lets the command run on after the screens are gone.
    ///
    /// # Errors
    /// Fails if nothing can take over reading its output.
    fn detach(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A recording that the screens can seek in.
pub trait Timeline {
    /// Gives the rounds after a time at this speed through [`samples`](Feed::samples), which
    /// is another channel then.
    ///
    /// # Errors
    /// Returns the operating system's error if nothing can play them.
    fn play(&mut self, after: WallNs, speed: Speed) -> io::Result<()>;

    /// Stops the replay: no more rounds come.
    fn stop(&mut self);

    /// All rounds of the recording.
    fn rounds(&self) -> &[RecordedRound];

    /// A monitor that has seen nothing yet.
    fn monitor(&self) -> Monitor;

    /// The same for a range that doesn't begin where the recording does.
    fn monitor_of_range(&self) -> Monitor {
        self.monitor()
    }

    /// Has only samples after this time in the profile from now on; all if `None`.
    fn set_profile_start(&mut self, _after: Option<WallNs>) {}

    /// Reads so many rounds further ahead, for what is told of the whole recording; gives it once all is read.
    fn read_ahead(&mut self, rounds: usize) -> Option<&RecordingNotes>;
}
