//! Runs the loop of the screens: takes samples, output, keys and signals, and draws frames.

mod pace;
mod winding;

use std::io::{self, Write};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, at, never, select};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::Signal;
use nix::sys::time::TimeValLike;
use ratatui::crossterm::event::{KeyEvent, MouseButton, MouseEventKind};

use super::feed::Feed;
use super::model::{ClickTarget, DrawnScreen, LoopCommand, Message, ScreenModel, SourceState, update};
use super::options::{Mode, QuitAction, ScreenOptions};
use super::outline::Outline;
use super::picture::{self, PictureFormat};
use super::playback::TimeDirection;
use super::screen::Screen;
use super::terminal::{AwaitedBy, Input, Terminal};
use super::theme::ThemeWatch;
use super::view::{self, ClickTargets};
use crate::monitor::Monitor;
use crate::plan::RowIndex;
use crate::recording::Recorder;
use crate::sampling::SamplerMessage;
use crate::session::{CaughtSignal, OutputLine};
use crate::sources::RecordedRound;
use crate::stacks::{FirstLevel, ProfileSpan};
use pace::ProfilePace;
use winding::Winding;

/// Lines of output that are taken at once, so that a flood of them doesn't hold up keys.
const MAX_LINES_AT_ONCE: usize = 1000;

/// How long the last round of an ended command may take.
const LAST_ROUND_PATIENCE: Duration = Duration::from_secs(2);

/// How often samples are looked at that come after the end.
const LAST_SAMPLES_PAUSE: Duration = Duration::from_millis(250);

/// Why the screens closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The user quit; no command ran.
    Quit,
    /// The user quit, and the command was ended.
    Killed,
    /// The user quit, and the command runs on.
    Detached,
    /// The measurement ended, and [`ScreenOptions::exit_with_child`] was set.
    Ended,
    /// A signal asked for it. A command that runs is the caller's to end.
    Signal(i32),
}

pub(super) struct App<'a> {
    terminal: Terminal,
    model: ScreenModel,
    feed: &'a mut dyn Feed,
    samples: Receiver<SamplerMessage>,
    output: Receiver<OutputLine>,
    inputs: Receiver<Input>,
    signals: Receiver<CaughtSignal>,
    /// The revision of the model that is on the screen, and when it was drawn.
    drawn: (u64, Option<Instant>),
    /// What can be clicked on there.
    targets: ClickTargets,
    awaited_by: AwaitedBy,
    own: OwnTime,
    theme_file: Option<ThemeWatch>,
    profile_pace: ProfilePace,
    /// Whether samples were still on their way then.
    is_profile_coming: bool,
    /// The way through a recording that is being gone.
    winding: Option<Winding>,
    /// Whether all of the recording was read for what is told of it.
    is_read_ahead: bool,
    /// The change of level to go to once that is so: in which direction, and of which event.
    wanted_change: Option<(TimeDirection, Option<RowIndex>)>,
    /// The row of the time line in which the mouse is held down.
    dragged_row: Option<u16>,
}

/// Events that wake the loop.
enum AppEvent {
    Sample(SamplerMessage),
    Output(OutputLine),
    Input(Input),
    Signal(i32),
    FrameDue,
    /// The terminal is gone.
    Hangup,
}

impl<'a> App<'a> {
    pub(super) fn new(
        terminal: Terminal,
        monitor: Monitor,
        feed: &'a mut dyn Feed,
        signals: Receiver<CaughtSignal>,
        options: &ScreenOptions,
    ) -> Self {
        let mut model = ScreenModel::new(monitor, options).with_others(feed.others());
        model.size = terminal.size().unwrap_or((80, 24));
        if let (Mode::Replay { length, .. }, Some(timeline)) = (options.mode, feed.timeline()) {
            model.outline = Some(Outline::of(timeline.rounds(), length));
        }
        if feed.set_first_level(model.first_level).is_err() {
            model.first_level = FirstLevel::default();
        }
        let is_read_ahead = model.outline.is_none();
        let mut app = Self {
            samples: feed.samples().clone(),
            output: feed.output().clone(),
            inputs: terminal.inputs().clone(),
            signals,
            terminal,
            model,
            feed,
            drawn: (0, None),
            targets: ClickTargets::default(),
            awaited_by: AwaitedBy::Nobody,
            own: OwnTime::default(),
            theme_file: options.theme_file.clone().map(ThemeWatch::new),
            profile_pace: ProfilePace::default(),
            is_profile_coming: false,
            winding: None,
            is_read_ahead,
            wanted_change: None,
            dragged_row: None,
        };
        // Short recordings are read at once.
        app.read_ahead();
        if let Some(range) = options.range {
            app.show_range(range);
        }
        app
    }

    pub(super) fn run(mut self) -> io::Result<(Monitor, Outcome)> {
        if self.model.mouse {
            self.terminal.mouse(true)?;
        }
        loop {
            if let Some(outcome) = self.once().or_else(|error| self.hung_up(error))? {
                drop(self.terminal);
                return Ok((self.model.into_monitor(), outcome));
            }
        }
    }

    /// Draws what is due, and takes what comes next.
    fn once(&mut self) -> io::Result<Option<Outcome>> {
        self.draw_if_due()?;
        let event = self.wait();
        self.take(event)
    }

    /// A terminal that went away can't be written to, and its signal may come a little later.
    fn hung_up(&self, error: io::Error) -> io::Result<Option<Outcome>> {
        match self.signals.recv_timeout(HANG_UP_PATIENCE) {
            Ok(signal)
                if ![Signal::SIGTSTP, Signal::SIGCONT, Signal::SIGUSR1]
                    .map(|it| it as i32)
                    .contains(&signal.number) =>
            {
                Ok(Some(Outcome::Signal(signal.number)))
            }
            Ok(_) => self.hung_up(error),
            Err(_) => Err(error),
        }
    }

    fn wait(&mut self) -> AppEvent {
        let is_busy = self.winding.is_some() || !self.is_read_ahead;
        let later = || self.profile_due().or_else(|| self.postponed_look());
        let due = if is_busy { Some(Instant::now()) } else { self.next_frame().or_else(later) };
        let frame = due.map_or_else(never, at);
        select! {
            recv(self.signals) -> signal => match signal {
                Ok(signal) => AppEvent::Signal(signal.number),
                Err(_) => {
                    self.signals = never();
                    AppEvent::FrameDue
                }
            },
            recv(self.inputs) -> input => input.map_or(AppEvent::Hangup, AppEvent::Input),
            recv(self.samples) -> sample => AppEvent::Sample(sample.unwrap_or(SamplerMessage::End)),
            recv(self.output) -> line => match line {
                Ok(line) => AppEvent::Output(line),
                Err(_) => {
                    self.output = never();
                    AppEvent::FrameDue
                }
            },
            recv(frame) -> _ => AppEvent::FrameDue,
        }
    }

    fn take(&mut self, event: AppEvent) -> io::Result<Option<Outcome>> {
        if let AppEvent::Input(_) = event {
            self.awaited_by = AwaitedBy::User;
        }
        match event {
            AppEvent::Sample(SamplerMessage::Round { round, lost }) => self.take_round(RecordedRound { round, lost }),
            AppEvent::Sample(SamplerMessage::End) => {
                self.take_end();
                return Ok(self.model.options.exit_with_child.then_some(Outcome::Ended));
            }
            AppEvent::Output(line) => self.take_output(line),
            AppEvent::Input(Input::Resized(width, height)) => {
                self.terminal.resized(width, height);
                self.tell(Message::Resized(width, height));
            }
            AppEvent::Input(Input::Mouse(kind, column, row)) => return self.take_mouse(kind, (column, row)),
            AppEvent::Input(Input::Key(key)) => return self.take_key(key),
            AppEvent::Signal(signal) => return self.take_signal(signal),
            AppEvent::Hangup => return Ok(Some(Outcome::Signal(Signal::SIGHUP as i32))),
            AppEvent::FrameDue if self.winding.is_some() => self.wind(),
            AppEvent::FrameDue if !self.is_read_ahead => self.read_ahead(),
            AppEvent::FrameDue => self.await_samples(),
        }
        Ok(None)
    }

    fn take_key(&mut self, key: KeyEvent) -> io::Result<Option<Outcome>> {
        match update(&mut self.model, Message::Key(key)) {
            Some(command) => self.obey(command),
            None => Ok(None),
        }
    }

    /// Only a click and a drag along the time line need what is under them.
    fn take_mouse(&mut self, kind: MouseEventKind, (column, row): (u16, u16)) -> io::Result<Option<Outcome>> {
        let target = match (kind, self.dragged_row) {
            (MouseEventKind::Down(MouseButton::Left), _) => self.targets.at((column, row)),
            // A hand isn't steady.
            (MouseEventKind::Drag(MouseButton::Left) | MouseEventKind::Up(MouseButton::Left), Some(row)) => {
                self.targets.at((column, row))
            }
            _ => None,
        };
        match kind {
            MouseEventKind::Down(_) => self.dragged_row = matches!(target, Some(ClickTarget::Time(_))).then_some(row),
            MouseEventKind::Up(_) => self.dragged_row = None,
            _ => {}
        }
        match update(&mut self.model, Message::Mouse(kind, target)) {
            Some(command) => self.obey(command),
            None => Ok(None),
        }
    }

    fn obey(&mut self, command: LoopCommand) -> io::Result<Option<Outcome>> {
        match (command, self.feed.running_command()) {
            (LoopCommand::Quit | LoopCommand::Kill | LoopCommand::Detach, None) => return Ok(Some(Outcome::Quit)),
            (LoopCommand::Quit, Some(pid)) => match self.model.options.on_quit {
                QuitAction::Ask => self.tell(Message::CommandRuns(pid)),
                QuitAction::Kill => return Ok(Some(self.kill())),
                QuitAction::Detach => return Ok(self.detach()),
            },
            (LoopCommand::Kill, Some(_)) => return Ok(Some(self.kill())),
            (LoopCommand::Detach, Some(_)) => return Ok(self.detach()),
            (LoopCommand::FirstLevel(level), _) => self.set_first_level(level),
            (LoopCommand::ProfileSpan(span), _) => self.set_profile_span(span),
            (LoopCommand::BeginSampling, _) => self.begin_sampling(),
            (LoopCommand::RestartProfile, _) => {
                self.feed.restart_profile();
                self.renew_profile();
            }
            (LoopCommand::InterpreterFrames(frames), _) => {
                self.feed.set_interpreter_frames(frames);
                self.renew_profile();
            }
            (LoopCommand::Save, _) => self.save(),
            (LoopCommand::Export(format), _) => self.export(format),
            (LoopCommand::Play, _) => self.play(),
            (LoopCommand::Seek(time), _) => self.seek(time),
            (LoopCommand::Step(direction), _) => self.step(direction),
            (LoopCommand::ShowRange(range), _) => self.show_range(range),
            (LoopCommand::SeekChange(direction, event), _) => self.seek_change(direction, event),
            (LoopCommand::Copy(text), _) => self.terminal.copy(&text)?,
            (LoopCommand::Mouse(ours), _) => self.terminal.mouse(ours)?,
            (LoopCommand::ShowSource(function, event), _) => self.show_source(function, event),
            (LoopCommand::Suspend, _) => self.suspend()?,
            (LoopCommand::Redraw, _) => self.redraw()?,
        }
        Ok(None)
    }

    fn begin_sampling(&mut self) {
        match self.feed.begin_sampling() {
            Ok(()) => {
                self.renew_profile();
                self.model.profile_since = Some(self.model.monitor.now());
            }
            Err(words) => self.tell(Message::SamplingRefused(words)),
        }
    }

    fn take_signal(&mut self, signal: i32) -> io::Result<Option<Outcome>> {
        match Signal::try_from(signal) {
            Ok(Signal::SIGTSTP) => self.suspend()?,
            Ok(Signal::SIGCONT) => {
                self.terminal.retake()?;
                self.redraw()?;
            }
            Ok(Signal::SIGUSR1) => self.model.save().map_or((), |_| self.save()),
            // Real-time signals have no names.
            Ok(_) | Err(_) => return Ok(Some(Outcome::Signal(signal))),
        }
        Ok(None)
    }
}

/// What is counted and written.
impl App<'_> {
    fn take_round(&mut self, round: RecordedRound) {
        let before = self.model.monitor.intervals();
        self.tell(Message::Round(round));
        // On a scripted terminal the same rounds make the same screen.
        if self.terminal.is_real() && self.model.monitor.intervals() != before {
            let is_live = self.model.options.mode == Mode::Live;
            if let Some(part) = self.own.since_last().filter(|_| is_live) {
                self.tell(Message::Own(part));
            }
            self.look_at_theme();
        }
    }

    fn take_end(&mut self) {
        self.samples = never();
        let RecordedRound { round: last, lost } = self.model.rounds.last().cloned().unwrap_or_default();
        let end = self.feed.end(&last, lost);
        // Looked at once more in any case: the last samples have to be named first.
        self.is_profile_coming = true;
        self.tell(Message::Ended(end, self.feed.notes_of_end()));
        self.model.show_totals_of_short_run();
    }

    fn take_output(&mut self, line: OutputLine) {
        self.tell(Message::Output(line));
        for _ in 0..MAX_LINES_AT_ONCE {
            let Ok(line) = self.output.try_recv() else { return };
            self.tell(Message::Output(line));
        }
    }

    /// Ends the command, and takes what it still counted.
    fn kill(&mut self) -> Outcome {
        self.feed.terminate();
        let patience = Instant::now() + LAST_ROUND_PATIENCE;
        while let Ok(sample) = self.samples.recv_deadline(patience) {
            match sample {
                SamplerMessage::Round { round, lost } => self.tell(Message::Round(RecordedRound { round, lost })),
                SamplerMessage::End => {
                    self.take_end();
                    break;
                }
            }
        }
        Outcome::Killed
    }

    fn detach(&mut self) -> Option<Outcome> {
        match self.feed.detach() {
            Ok(()) => Some(Outcome::Detached),
            Err(error) => {
                self.tell(Message::Failed(format!("the command can't be left alone: {error}")));
                None
            }
        }
    }

    fn set_first_level(&mut self, level: FirstLevel) {
        if let Err(reason) = self.feed.set_first_level(level) {
            self.model.first_level = FirstLevel::default();
            return self.tell(Message::Failed(reason));
        }
        self.renew_profile();
    }

    fn set_profile_span(&mut self, span: ProfileSpan) {
        if let Err(reason) = self.feed.set_profile_span(span) {
            self.model.profile_span = ProfileSpan::default();
            return self.tell(Message::Failed(reason));
        }
        self.renew_profile();
    }

    /// Has the profile be looked at before the next frame.
    fn renew_profile(&mut self) {
        self.model.profile_is_old = true;
        self.profile_pace = ProfilePace::default();
    }

    fn save(&mut self) {
        let (rounds, header) = (&self.model.rounds, self.model.monitor.header());
        let write_profile = |recorder: &mut Recorder<&mut dyn Write>| self.feed.write_profile(rounds.now(), recorder);
        let saved = rounds.save(&self.model.options.save_in, header, write_profile);
        self.tell(match saved {
            Ok(saved) => Message::SavedRecording(saved),
            Err(error) => Message::Saved(Err(error.to_string())),
        });
    }

    fn export(&mut self, format: PictureFormat) {
        let folder = self.model.options.save_in.clone();
        let saved = picture::export(&self.model, format, &folder);
        self.tell(Message::Saved(saved.map_err(|error| error.to_string())));
    }

    /// Reads the theme's file again when it has changed.
    fn look_at_theme(&mut self) {
        if let Some((theme, complaints)) =
            self.theme_file.as_mut().and_then(|file| file.read_again(self.model.options.depth))
        {
            let complaints = complaints.iter().map(ToString::to_string).collect();
            self.tell(Message::Theme(Box::new(theme), complaints));
        }
    }

    /// Opens the source of a function, and its samples by line.
    fn show_source(&mut self, function: u32, event: usize) {
        let lines = self.feed.function_lines(function as usize, event).unwrap_or_default();
        let state = SourceState::read(self.model.monitor.header(), function, event, lines);
        self.tell(Message::Source(Box::new(state)));
    }

    /// Updates the model by a message that requests nothing.
    fn tell(&mut self, message: Message) {
        let _ = update(&mut self.model, message);
    }
}

/// Drawing.
impl App<'_> {
    /// When the next frame may be drawn; `None` if nothing changed since the last.
    fn next_frame(&self) -> Option<Instant> {
        let (revision, when) = self.drawn;
        let pause = self.terminal.frame_pause(self.awaited_by);
        (revision != self.model.revision).then(|| when.map_or_else(Instant::now, |when| when + pause))
    }

    fn draw_if_due(&mut self) -> io::Result<()> {
        let due = self.next_frame().is_some_and(|due| due <= Instant::now());
        if due {
            self.refresh_profile();
            let (model, targets, mut drawn) = (&self.model, &mut self.targets, DrawnScreen::default());
            self.terminal.draw(|frame| {
                (*targets, drawn) = view::draw(model, frame);
                panic_if_told(model);
            })?;
            self.model.remember_drawn(drawn);
            self.drawn = (self.model.revision, Some(Instant::now()));
            self.awaited_by = AwaitedBy::Nobody;
        }
        Ok(())
    }

    /// Whether the profile may be looked at. Only screens that go on have to be quick.
    fn may_look_at_profile(&self) -> bool {
        let is_busy = self.terminal.is_real() && self.model.goes_on() && self.model.profile.is_some();
        !is_busy || self.profile_pace.may_look(Instant::now(), self.awaited_by == AwaitedBy::User)
    }

    /// When to look at the profile, where a key or the rest after a long look came before that.
    fn postponed_look(&self) -> Option<Instant> {
        let is_postponed = self.terminal.is_real() && self.model.wants_new_profile();
        self.profile_pace.rested_at().filter(|_| is_postponed)
    }

    /// Looks at what was sampled, if that is on the screen and an interval has ended since.
    fn refresh_profile(&mut self) {
        let may_look = self.may_look_at_profile();
        let model = &mut self.model;
        let is_new = model.wants_new_profile() && may_look;
        if is_new {
            model.profile_is_old = false;
            let begun = Instant::now();
            self.feed.profile(model.monitor.now(), &mut |tree, quality| model.take_profile(tree, quality));
            if let (Screen::Source, Some(source)) = (model.screen, &mut model.source)
                && let Some(lines) = self.feed.function_lines(source.function as usize, source.event)
            {
                source.take(lines);
            }
            self.profile_pace = ProfilePace::looked(begun, Instant::now());
            self.sample_enough();
        }
        if self.model.shows_profile() {
            self.refresh_hot_line(is_new);
        }
    }

    /// Samples more often where threads end before they are sampled: what is sampled then tells of the long ones only.
    fn sample_enough(&mut self) {
        let is_live = self.model.options.mode == Mode::Live && self.model.rounds.end.is_none();
        // Who reads a function's source goes on.
        let may_begin = is_live && self.model.screen != Screen::Source;
        if may_begin
            && self.model.little_sampled().is_some()
            && let Some(frequency) = self.feed.sample_more_often()
        {
            self.model.profile_since = Some(self.model.monitor.now());
            // Functions have other numbers in another tree.
            self.model.profile = None;
            let _ = self.feed.set_first_level(self.model.first_level);
            let _ = self.feed.set_profile_span(self.model.profile_span);
            self.renew_profile();
            self.model.tell(format!("threads end before they are sampled: {frequency} samples a second from now on"));
        }
    }

    /// Asks for the lines of the function that is selected in the profile, once for each function and interval.
    fn refresh_hot_line(&mut self, is_new: bool) {
        // Of samples that came since the view is frozen nothing is shown.
        let has_sources = self.model.why_no_source().is_none();
        let Some(profile) = self.model.profile.as_mut().filter(|profile| !profile.is_empty()) else { return };
        let Some(function) = profile.selected_function() else { return };
        let asked = (function, profile.event);
        if is_new || profile.hot_line.is_none_or(|(function, event, _)| (function, event) != asked) {
            let has_file = !profile.calls.label(asked.0).file.is_empty();
            let lines =
                if has_file && has_sources { self.feed.function_lines(asked.0 as usize, asked.1) } else { None };
            profile.hot_line = Some((asked.0, asked.1, lines.and_then(|lines| lines.hottest())));
        }
    }

    /// When to look at it again after the end of the measurement, as long as samples are on their way.
    fn profile_due(&self) -> Option<Instant> {
        let is_awaited = self.model.rounds.end.is_some() && (self.is_profile_coming || self.feed.is_profile_coming());
        is_awaited.then(|| Instant::now() + LAST_SAMPLES_PAUSE)
    }

    fn await_samples(&mut self) {
        if self.profile_due().is_some() {
            // Once more after the last has come.
            self.is_profile_coming = self.feed.is_profile_coming();
            self.tell(Message::Sampled);
        } else if self.postponed_look().is_some_and(|due| due <= Instant::now()) {
            self.model.revision += 1;
        }
    }

    fn redraw(&mut self) -> io::Result<()> {
        self.terminal.clear()?;
        self.model.size = self.terminal.size().unwrap_or(self.model.size);
        self.drawn = (0, None);
        Ok(())
    }

    /// Stops until the shell lets it go on.
    fn suspend(&mut self) -> io::Result<()> {
        self.terminal.suspend()?;
        if self.model.mouse {
            self.terminal.mouse(true)?;
        }
        self.redraw()
    }
}

/// Builds with debug assertions break down while they draw where a test tells them to: it looks at the terminal
/// afterwards.
fn panic_if_told(model: &ScreenModel) {
    if cfg!(debug_assertions) && model.monitor.intervals() > 0 {
        assert!(std::env::var_os("PERFPROP_TEST_PANIC").is_none(), "a test wants drawing to panic");
    }
}

/// How long a signal may come after the terminal can't be written to.
const HANG_UP_PATIENCE: Duration = Duration::from_millis(200);

/// The shortest time that says what part of it perfprop took. Readings that were late come at once, and the kernel
/// counts the time of threads that run on other CPUs some milliseconds late.
const LEAST_OWN: Duration = Duration::from_millis(250);

/// The CPU time that perfprop itself takes.
#[derive(Debug, Default)]
struct OwnTime {
    last: Option<(Instant, i64)>,
}

impl OwnTime {
    /// CPU time as a part of the time since it was last told; `None` where that is too short to say it.
    fn since_last(&mut self) -> Option<f64> {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
        self.told(Instant::now(), usage.user_time().num_microseconds() + usage.system_time().num_microseconds())
    }

    /// The same at a time by which so many microseconds were used.
    fn told(&mut self, now: Instant, used: i64) -> Option<f64> {
        let Some((before, used_before)) = self.last else {
            self.last = Some((now, used));
            return None;
        };
        let passed = now.duration_since(before);
        if passed < LEAST_OWN {
            return None;
        }
        self.last = Some((now, used));
        Some((used - used_before) as f64 / 1e6 / passed.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_time_is_told_over_the_window_in_which_it_was_used() {
        let (mut own, start) = (OwnTime::default(), Instant::now());
        let mut told = |ms, used| own.told(start + Duration::from_millis(ms), used);
        assert_eq!(told(0, 500_000), None);
        assert_eq!(told(1000, 600_000), Some(0.1));
        // Two readings were late and came at once: their CPU time is part of the next window.
        assert_eq!(told(3000, 1_400_000), Some(0.4));
        assert_eq!((told(3001, 1_404_000), told(3001, 1_404_000)), (None, None));
        assert_eq!(told(4000, 1_500_000), Some(0.1));
    }
}
