//! Messages in, what is to be shown out: the state of the screens.
//!
//! A [`Model`] knows no terminal and no clock. While the view is frozen its monitor stands still
//! and rounds wait in [`Kept`]; nothing is lost, and thawing takes them all at once.

use std::collections::VecDeque;
use std::path::PathBuf;

use ratatui::crossterm::event::KeyEvent;

use super::figures::{Basis, Figures};
use super::symbols::MISSING;
use super::theme::Theme;
use super::{Mode, Options};
use crate::estimate::{Cause, RelationIndex};
use crate::events::Unit;
use crate::monitor::{Measure, Monitor, Noted};
use crate::plan::EventIndex;
use crate::recording::End;
use crate::recording::RecordedEvent;
use crate::relations::Relation;
use crate::session::OutputLine;
use crate::sources::Round;
use crate::units::WallNs;
use crate::words::shown;

mod filter;
mod kept;
mod update;

pub(super) use filter::Filter;
pub(super) use kept::Kept;
pub(super) use update::update;

/// Lines of the command's output that are kept.
const MAX_OUTPUT: usize = 10_000;

/// Windows of charts, in seconds.
const WINDOWS: [u64; 8] = [10, 30, 60, 120, 300, 600, 1800, 3600];

/// A minute.
const DEFAULT_WINDOW: usize = 2;

/// A screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Screen {
    /// All events in a table.
    #[default]
    Events,
    /// One event: its chart, histogram and statistics.
    Detail,
    /// All relations and how they fare.
    Relations,
    /// What was noticed, and the command's output.
    Log,
}

impl Screen {
    /// All, in the order of their keys.
    pub const ALL: [Self; 4] = [Self::Events, Self::Detail, Self::Relations, Self::Log];

    /// Its name in titles and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "Events",
            Self::Detail => "Detail",
            Self::Relations => "Relations",
            Self::Log => "Log",
        }
    }
}

/// What lies over the screen and takes the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Over {
    #[default]
    Nothing,
    /// Help, scrolled down by so many lines.
    Help(usize),
    /// A filter is being typed; what was set before comes back on Esc.
    Filter { before: String },
    /// The command still runs: end it, leave it, or stay?
    AskQuit { pid: i32 },
}

/// A column of the table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Event,
    Mean,
    Error,
    Variance,
    Run,
    Correction,
}

impl Column {
    const SORTABLE: [Self; 6] = [Self::Event, Self::Mean, Self::Error, Self::Variance, Self::Run, Self::Correction];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Event => "name",
            Self::Mean => "mean",
            Self::Error => "error",
            Self::Variance => "variance",
            Self::Run => "run %",
            Self::Correction => "correction",
        }
    }
}

/// The order of the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sort {
    /// `None`: as they were given.
    pub(super) by: Option<Column>,
    pub(super) inverted: bool,
}

impl Sort {
    /// Names go up and numbers down, unless inverted.
    pub(super) fn is_ascending(self) -> bool {
        matches!(self.by, None | Some(Column::Event)) != self.inverted
    }
}

/// The table of events.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// What is shown, in this order.
    pub(super) order: Vec<EventIndex>,
    /// Stays with the event when the order changes.
    pub(super) selected: EventIndex,
    pub(super) sort: Sort,
    pub(super) filter: Filter,
}

/// The list of relations.
#[derive(Debug, Default)]
pub(super) struct Relations {
    pub(super) order: Vec<RelationIndex>,
    pub(super) selected: RelationIndex,
    pub(super) filter: Filter,
}

/// The two lists of the Log screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    #[default]
    Findings,
    Output,
}

/// Which line of a growing list is the last one on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tail {
    /// The newest.
    #[default]
    Follow,
    /// This one, counted from the beginning.
    At(usize),
}

/// The Log screen.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) pane: Pane,
    pub(super) findings: Tail,
    pub(super) output: Tail,
    pub(super) filter: Filter,
}

/// The newest lines of the command's output.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) lines: VecDeque<OutputLine>,
    /// How many older ones were dropped.
    pub(super) dropped: usize,
}

/// A line of the log.
#[derive(Clone, Copy, Debug)]
pub(super) enum Entry<'a> {
    /// Something about perfprop itself, from before the first round.
    Note(&'a str),
    Finding(&'a Noted),
    End(&'a End),
}

/// Whether the view follows what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Motion {
    #[default]
    Moving,
    Frozen,
}

/// What the screens show.
pub(super) struct Model {
    pub(super) monitor: Monitor,
    pub(super) kept: Kept,
    pub(super) motion: Motion,
    pub(super) screen: Screen,
    pub(super) over: Over,
    pub(super) events: Events,
    pub(super) relations: Relations,
    pub(super) log: Log,
    pub(super) output: Output,
    pub(super) notes: Vec<String>,
    /// A line at the bottom until the next key.
    pub(super) notice: Option<Notice>,
    pub(super) measure: Measure,
    pub(super) basis: Basis,
    window: usize,
    pub(super) theme: Theme,
    pub(super) options: Options,
    /// perfprop's own use of a CPU; `None` in pictures, which must not depend on it.
    pub(super) own: Option<f64>,
    pub(super) size: (u16, u16),
    /// Goes up when what is shown changes.
    pub(super) revision: u64,
}

/// A word to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// Something was done.
    Done(String),
    /// Something can't be done.
    Failed(String),
}

/// What happened.
#[derive(Debug)]
pub(super) enum Message {
    /// A round was read, after so many that were lost.
    Round(Round, u64),
    /// The measurement has ended.
    Ended(End),
    /// The command wrote a line.
    Output(OutputLine),
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal has this size now.
    Resized(u16, u16),
    /// The recording was saved, or not.
    Saved(Result<PathBuf, String>),
    /// The user wants to quit, and the command with this process id runs.
    CommandRuns(i32),
    /// Something is to be told.
    Failed(String),
    /// perfprop used this part of a CPU in the last interval.
    Own(f64),
}

/// What the loop is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Quit, unless the command runs and the user is to be asked.
    Quit,
    /// End the command, and quit.
    Kill,
    /// Let the command run on, and quit.
    Detach,
    /// Write what was recorded.
    Save,
    /// Stop, and give the terminal back to the shell.
    Suspend,
    /// Draw every cell.
    Redraw,
}

impl Model {
    /// The screens' state for a monitor.
    pub(super) fn new(monitor: Monitor, options: &Options) -> Self {
        let mut model = Self {
            kept: Kept::default(),
            motion: Motion::Moving,
            screen: options.screen,
            over: if options.help { Over::Help(0) } else { Over::Nothing },
            events: Events::default(),
            relations: Relations::default(),
            log: Log::default(),
            output: Output::default(),
            notes: options.notes.clone(),
            notice: None,
            measure: options.measure,
            basis: options.basis,
            window: DEFAULT_WINDOW,
            theme: options.theme.clone(),
            options: options.clone(),
            own: None,
            size: (80, 24),
            revision: 1,
            monitor,
        };
        // A clock per second of CPU time is a second by definition: nothing to look at first.
        let is_clock = |event: &RecordedEvent| event.event.unit == Unit::Nanoseconds;
        let events = &model.monitor.header().events;
        model.events.selected = events.iter().position(|event| event.status.is_open() && !is_clock(event)).unwrap_or(0);
        model.arrange();
        model
    }

    /// The monitor, with every round that came.
    pub(super) fn into_monitor(mut self) -> Monitor {
        self.catch_up();
        self.monitor
    }

    pub(super) fn catch_up(&mut self) {
        for (round, lost) in self.kept.take() {
            self.monitor.round(round, *lost);
        }
        if let (None, Some(end)) = (self.monitor.ended(), &self.kept.end) {
            self.monitor.end(end.clone());
        }
    }

    /// How far the view is behind what is counted.
    pub(super) fn lag(&self) -> WallNs {
        self.kept.now() - self.monitor.now()
    }

    pub(super) fn figures(&self, event: EventIndex) -> Figures {
        Figures::of(&self.monitor, event, self.measure)
    }

    /// The time that charts show.
    pub(super) fn window(&self) -> WallNs {
        let seconds = WINDOWS.get(self.window).copied().unwrap_or(60);
        let interval = self.monitor.header().interval_ns.0;
        WallNs((seconds * 1_000_000_000).max(interval.saturating_mul(10)))
    }

    pub(super) fn event_name(&self, event: EventIndex) -> String {
        let events = &self.monitor.header().events;
        events.get(event).map_or_else(String::new, |event| shown(&event.event.name).into_owned())
    }

    /// The filter of the screen's list.
    pub(super) fn filter(&self) -> Option<&Filter> {
        match self.screen {
            Screen::Events => Some(&self.events.filter),
            Screen::Relations => Some(&self.relations.filter),
            Screen::Log => Some(&self.log.filter),
            Screen::Detail => None,
        }
    }

    pub(super) fn entries(&self) -> Vec<Entry<'_>> {
        let notes = self.notes.iter().map(|note| Entry::Note(note));
        let findings = self.monitor.findings().iter().map(Entry::Finding);
        let end = self.monitor.ended().map(Entry::End);
        let all = notes.chain(findings).chain(end);
        all.filter(|entry| self.log.filter.matches(&self.entry_text(*entry))).collect()
    }

    pub(super) fn entry_text(&self, entry: Entry<'_>) -> String {
        match entry {
            Entry::Note(note) => shown(note).into_owned(),
            Entry::Finding(noted) => {
                let words = noted.finding.words(&self.monitor).to_string();
                format!("{} {}", noted.finding.code(), shown(&words))
            }
            Entry::End(end) => match end.exit {
                Some(exit) => format!("the command ended: {exit}"),
                None => "the measurement ended".into(),
            },
        }
    }

    /// The lines of output that pass the filter, with their numbers.
    pub(super) fn output_lines(&self) -> Vec<&OutputLine> {
        self.output.lines.iter().filter(|line| self.log.filter.matches(&line.text)).collect()
    }

    /// The head of a column of errors: `±95%`.
    pub(super) fn error_head(&self) -> String {
        format!("±{}", self.monitor.confidence())
    }

    /// The name of what moved a number.
    pub(super) fn cause(&self, cause: Cause) -> String {
        shown(self.monitor.cause(cause)).into_owned()
    }

    pub(super) fn relation_id(&self, relation: RelationIndex) -> String {
        let relation = self.monitor.relations().get(relation);
        relation.map_or_else(|| MISSING.into(), |relation| shown(&relation.id).into_owned())
    }

    pub(super) fn relation_formula(&self, relation: RelationIndex) -> String {
        self.monitor
            .relations()
            .get(relation)
            .map_or_else(String::new, |relation| shown(&formula(relation)).into_owned())
    }

    /// Whether there is, or may still come, output to show.
    pub(super) fn has_output(&self) -> bool {
        !self.output.lines.is_empty() || self.options.mode == Mode::Live
    }
}

/// The only place that knows how a relation gives its formula.
fn formula(relation: &Relation) -> String {
    relation.formula().to_string()
}
