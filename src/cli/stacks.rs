//! Gathers the call stacks and the named regions of a measurement, and prints the functions in which most was sampled.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Error;
use super::stream::say;
use crate::monitor::Monitor;
use crate::profile::{Tree, TreeOptions};
use crate::recording::{KeptSamples, Recorder};
use crate::regions::{LiveRegions, RegionBatch, Wanted};
use crate::session::Session;
use crate::stacks::{
    BatchWatch, FirstLevel, FunctionLines, Gathering, InterpreterFrames, ProfileSpan, SamplingSetup, StackBatch,
    StackQuality, UnwindMethod, WaitingSamples,
};
use crate::text;
use crate::units::WallNs;

/// A profile that is gathered while it is measured.
pub(super) struct LiveProfile {
    regions: Option<LiveRegions>,
    gathering: Option<Gathering>,
    /// What a recording that is saved has of samples and regions; nothing where none is.
    kept: Arc<Mutex<KeptSamples>>,
    has_stacks: bool,
    waiting: WaitingSamples,
    /// Which samples screens show.
    span: ProfileSpan,
}

/// Reads regions every `interval`; enters and leaves too where something is sampled that they can be held against.
pub(super) fn watch_regions(session: &Session, interval: Duration) -> Result<Option<LiveRegions>, Error> {
    let is_sampled = session.stacks().is_some_and(|stacks| stacks.sampled().call_graph != UnwindMethod::Modelled);
    let wanted = if is_sampled { Wanted::Marks } else { Wanted::Counts };
    session.watch_regions(interval, wanted).map_err(Error::System)
}

/// Keeps what is gathered for a recording.
struct Keep(Arc<Mutex<KeptSamples>>);

impl BatchWatch for Keep {
    fn samples(&mut self, batch: &StackBatch) {
        lock(&self.0).take(batch);
    }

    fn regions(&mut self, batch: &RegionBatch) {
        lock(&self.0).take_regions(batch);
    }
}

/// A thread that panicked left whole lines behind.
fn lock(kept: &Mutex<KeptSamples>) -> MutexGuard<'_, KeptSamples> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveProfile {
    /// Puts what is sampled, and regions if there are any, into a tree.
    pub(super) fn start(session: &Session, regions: Option<LiveRegions>) -> Result<Self, Error> {
        Self::gather(session, regions, Arc::default(), ())
    }

    /// The same, and keeps it for a recording that may be saved.
    pub(super) fn start_to_save(session: &Session, regions: Option<LiveRegions>) -> Result<Self, Error> {
        let kept = Arc::default();
        Self::gather(session, regions, Arc::clone(&kept), Keep(kept))
    }

    /// Begins anew where stacks are sampled from now on, with regions from the beginning.
    pub(super) fn start_anew(&mut self, session: &Session, interval: Duration) -> Result<(), Error> {
        self.regions = None;
        *self = Self::start_to_save(session, watch_regions(session, interval)?)?;
        Ok(())
    }

    fn gather(
        session: &Session,
        regions: Option<LiveRegions>,
        kept: Arc<Mutex<KeptSamples>>,
        watch: impl BatchWatch,
    ) -> Result<Self, Error> {
        let stacks = session.stacks().map(|stacks| (stacks.batches().clone(), stacks.sampled().clone()));
        let (has_stacks, batches) = (stacks.is_some(), regions.as_ref().map(|regions| regions.batches().clone()));
        let is_wanted = has_stacks || batches.is_some();
        let gathering = is_wanted.then(|| Gathering::start(stacks, batches, TreeOptions::default(), watch));
        let waiting = session.stacks().map(|stacks| stacks.waiting().clone()).unwrap_or_default();
        let gathering = gathering.transpose().map_err(Error::System)?;
        Ok(Self { regions, gathering, kept, has_stacks, waiting, span: ProfileSpan::default() })
    }

    /// Ends sampling and reading; what was on its way still comes.
    pub(super) fn stop(&mut self, session: &Session) {
        if let Some(stacks) = session.stacks() {
            stacks.stop();
        }
        if let Some(regions) = &mut self.regions {
            regions.stop();
        }
    }

    /// The same, and waits for what is on its way.
    pub(super) fn finish(&mut self, session: &Session) {
        self.stop(session);
        if let Some(gathering) = &mut self.gathering {
            gathering.finish();
        }
    }

    /// The same; says what it waits for where that takes long, and waits no longer once it is asked to end.
    pub(super) fn finish_unless(&mut self, session: &Session, mut is_asked_to_end: impl FnMut() -> bool) {
        const PAUSE: Duration = Duration::from_millis(20);
        const PATIENCE: Duration = Duration::from_millis(300);
        self.stop(session);
        let (begun, mut is_told) = (Instant::now(), false);
        while self.is_coming() {
            if is_asked_to_end() {
                return;
            }
            if !is_told && begun.elapsed() > PATIENCE {
                let waits = match self.waiting.count() {
                    0 => "reading the last samples and regions".to_owned(),
                    1 => "reading symbols: 1 sample waits".to_owned(),
                    count => format!("reading symbols: {count} samples wait"),
                };
                say(&format!("{waits}; Ctrl-C ends without them"));
                is_told = true;
            }
            std::thread::sleep(PAUSE);
        }
        self.finish(session);
    }

    /// Hands over what was gathered of a span that ends with `until`, if anything is sampled or a program has regions.
    pub(super) fn look(&self, until: WallNs, see: &mut dyn FnMut(&Tree, &StackQuality)) {
        let Some(gathering) = &self.gathering else { return };
        let mut gathered = gathering.look();
        gathered.set_waiting(self.waiting.count());
        gathered.show(self.span, until);
        if self.has_stacks || gathered.has_any() {
            see(gathered.tree(), gathered.quality());
        }
    }

    /// What an event sampled of a function so far, by lines.
    pub(super) fn function_lines(&self, function: usize, event: usize) -> Option<FunctionLines> {
        self.gathering.as_ref().map(|gathering| gathering.look().lines_of(function, event))
    }

    /// Shows the samples of this span from now on.
    pub(super) fn set_span(&mut self, span: ProfileSpan) {
        self.span = span;
    }

    /// Begins anew, with the samples to come.
    pub(super) fn restart(&mut self) {
        if let Some(gathering) = &self.gathering {
            gathering.look().forget_samples();
        }
    }

    /// Has another first level of the tree.
    pub(super) fn set_first_level(&mut self, level: FirstLevel) {
        if let Some(gathering) = &self.gathering {
            gathering.look().set_first_level(level);
        }
    }

    /// Shows interpreters' own frames, or leaves them out.
    pub(super) fn set_interpreter_frames(&mut self, frames: InterpreterFrames) {
        if let Some(gathering) = &self.gathering {
            gathering.look().set_interpreter_frames(frames);
        }
    }

    /// Writes to a recording what was sampled so far, and what regions counted. Gives the last time whose samples are
    /// left out, if any are.
    pub(super) fn write<W: Write>(
        &self,
        sampled: Option<&SamplingSetup>,
        recorder: &mut Recorder<W>,
    ) -> io::Result<Option<WallNs>> {
        sampled.map_or(Ok(()), |sampled| recorder.sampled(sampled))?;
        // A copy, which costs little: more may come while it is written.
        let kept = lock(&self.kept).clone();
        kept.write(recorder).map(|()| kept.left_out())
    }

    /// Whether samples may still come.
    pub(super) fn is_coming(&self) -> bool {
        self.gathering.as_ref().is_some_and(Gathering::is_running)
    }

    /// The functions in which most was sampled; nothing if nothing is.
    pub(super) fn text(&self, monitor: &Monitor) -> String {
        let Some(gathering) = self.gathering.as_ref().filter(|_| self.has_stacks) else { return String::new() };
        let mut gathered = gathering.look();
        gathered.show(ProfileSpan::Run, monitor.now());
        let target = monitor.header().target.selection();
        let little = text::LittleSampled::of(gathered.tree(), monitor);
        let functions = text::stacks(gathered.tree(), gathered.quality(), &target, monitor.confidence(), little);
        format!("\n{functions}")
    }
}
