//! Feeds the screens from a recording.

use std::io::{self, Write};
use std::sync::Arc;

use crossbeam_channel::Receiver;

use super::Error;
use super::compare::Compared;
use super::replay::Setup;
use crate::monitor::{Monitor, ReadAhead, RecordingNotes};
use crate::profile::Tree;
use crate::recording::{Player, Recorder, Recording, Speed};
use crate::run::End;
use crate::sampling::SamplerMessage;
use crate::session::OutputLine;
use crate::sources::{RecordedRound, Round};
use crate::stacks::{FirstLevel, FunctionLines, InterpreterFrames, ProfileSpan, Replayed, StackQuality};
use crate::tui::{Feed, Others, Timeline};
use crate::units::WallNs;

/// A recording as it feeds the screens.
pub(super) struct Played {
    setup: Setup,
    recording: Recording,
    profile: Option<Replayed>,
    samples: Receiver<SamplerMessage>,
    /// `None` while it stands still.
    player: Option<Player>,
    output: Receiver<OutputLine>,
    others: Option<Others>,
    /// What is told of the whole recording, as far as it is read.
    ahead: ReadAhead,
    /// Samples up to this time aren't shown.
    profile_start: Option<WallNs>,
    /// Which of the others are.
    profile_span: ProfileSpan,
}

impl Played {
    /// Begins to play after a time, beside what the recording is compared with.
    pub(super) fn new(
        setup: Setup,
        recording: Recording,
        compared: Option<Compared>,
        (speed, from): (Speed, WallNs),
    ) -> Result<Self, Error> {
        let player = Player::start(Arc::clone(&recording.rounds), 0, speed, from).map_err(Error::System)?;
        Ok(Self {
            samples: player.samples().clone(),
            player: Some(player),
            profile: recording.profile().map(Replayed::new),
            output: crossbeam_channel::never(),
            others: compared.map(Compared::others),
            ahead: ReadAhead::new(setup.as_live().monitor()),
            profile_start: None,
            profile_span: ProfileSpan::default(),
            setup,
            recording,
        })
    }
}

impl Timeline for Played {
    fn play(&mut self, after: WallNs, speed: Speed) -> io::Result<()> {
        let first = self.recording.rounds.partition_point(|recorded| recorded.round.at <= after);
        let player = Player::start(Arc::clone(&self.recording.rounds), first, speed, after)?;
        self.samples = player.samples().clone();
        self.player = Some(player);
        Ok(())
    }

    fn stop(&mut self) {
        self.player = None;
    }

    fn rounds(&self) -> &[RecordedRound] {
        &self.recording.rounds
    }

    fn monitor(&self) -> Monitor {
        self.setup.monitor()
    }

    fn monitor_of_range(&self) -> Monitor {
        self.setup.as_live().monitor()
    }

    fn set_profile_start(&mut self, after: Option<WallNs>) {
        self.profile_start = after;
    }

    fn read_ahead(&mut self, rounds: usize) -> Option<&RecordingNotes> {
        self.ahead.read(&self.recording.rounds, rounds, || self.recording.end_or_last())
    }
}

impl Feed for Played {
    fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }

    fn profile(&mut self, until: WallNs, see: &mut dyn FnMut(&Tree, &StackQuality)) {
        let Some((profile, recorded)) = self.profile.as_mut().zip(self.recording.profile()) else { return };
        let start = self.profile_start.max(self.profile_span.start(until));
        let until = profile_end(&self.recording, until);
        let (tree, quality) = match start {
            Some(_) => profile.part(recorded, start, until),
            None => profile.between(recorded, start, until),
        };
        // As live: before its first region, a program without stacks has no profile.
        if recorded.sampled.is_some() || tree.event_ids().next().is_some() || !quality.unread.is_empty() {
            see(tree, quality);
        }
    }

    fn function_lines(&mut self, function: usize, event: usize) -> Option<FunctionLines> {
        self.profile.as_ref().map(|profile| profile.lines_of(function, event))
    }

    fn set_first_level(&mut self, level: FirstLevel) -> Result<(), String> {
        if let Some(profile) = &mut self.profile {
            profile.set_first_level(level);
        }
        Ok(())
    }

    fn set_profile_span(&mut self, span: ProfileSpan) -> Result<(), String> {
        self.profile_span = span;
        Ok(())
    }

    fn set_interpreter_frames(&mut self, frames: InterpreterFrames) {
        if let Some(profile) = &mut self.profile {
            profile.set_interpreter_frames(frames);
        }
    }

    fn write_profile(&self, until: WallNs, recorder: &mut Recorder<&mut dyn Write>) -> io::Result<Option<WallNs>> {
        self.recording.write_profile(self.profile_start, profile_end(&self.recording, until), recorder).map(|()| None)
    }

    fn timeline(&mut self) -> Option<&mut dyn Timeline> {
        Some(self)
    }

    fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    fn others(&mut self) -> Option<Others> {
        self.others.take()
    }

    fn end(&mut self, _last: &Round, _lost: u64) -> End {
        self.recording.end_or_last()
    }
}

/// The time up to which a profile is shown: what was sampled last is read a little later than the end.
fn profile_end(recording: &Recording, until: WallNs) -> WallNs {
    if until >= recording.length() { WallNs(u64::MAX) } else { until }
}
