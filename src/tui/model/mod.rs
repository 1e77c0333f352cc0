//! Holds the state of the screens, and updates it by messages.
//!
//! A [`Model`] knows no terminal and no clock. While the view is frozen its monitor stands still
//! and rounds wait in [`Kept`]; nothing is lost, and thawing takes them all at once.

use std::collections::VecDeque;
use std::path::PathBuf;

use ratatui::crossterm::event::{KeyEvent, MouseEventKind};

use super::figures::{Basis, Figures};
use super::picture::Format;
use super::symbols::MISSING;
use super::tape::Tape;
use super::theme::Theme;
use super::{Mode, Options, Others};
use crate::estimate::{Cause, RelationIndex};
use crate::events::Unit;
use crate::monitor::{Measure, Monitor, Noted};
use crate::names::shown;
use crate::plan::EventIndex;
use crate::profile::Tree;
use crate::recording::End;
use crate::recording::RecordedEvent;
use crate::relations::Relation;
use crate::session::OutputLine;
use crate::sources::Round;
use crate::stacks::Quality;
use crate::units::WallNs;

mod compare;
mod copied;
mod filter;
mod kept;
mod order;
mod pointer;
mod press;
pub(super) mod profile;
mod step;
pub(super) mod ties;
mod typing;
mod unfold;
mod update;
mod wind;

pub(super) use compare::{CompareColumn, Comparison};
pub(super) use filter::Filter;
pub(super) use kept::Kept;
pub(super) use profile::Profile;
use ties::Ties;
pub(super) use unfold::{Fold, Line};
pub(super) use update::update;

/// Lines of the command's output that are kept.
const MAX_OUTPUT: usize = 10_000;

/// Windows of charts, in seconds.
const WINDOWS: [u64; 8] = [10, 30, 60, 120, 300, 600, 1800, 3600];

/// Index of the window of a minute.
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
    /// Where samples of events were taken: the tree of call paths.
    Profile,
    /// Which events share a group, and when each ran.
    Groups,
    /// Findings, and the command's output.
    Log,
    /// Recordings side by side; there only where several are open.
    Compare,
}

impl Screen {
    /// The screens of every measurement, in the order of their keys.
    pub const ALL: [Self; 6] = [Self::Events, Self::Detail, Self::Relations, Self::Profile, Self::Groups, Self::Log];

    /// Name of the screen on the command line and in the configuration.
    pub fn word(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Detail => "detail",
            Self::Relations => "relations",
            Self::Profile => "profile",
            Self::Groups => "groups",
            Self::Log => "log",
            Self::Compare => "compare",
        }
    }

    /// Name of the screen in titles.
    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "Events",
            Self::Detail => "Detail",
            Self::Relations => "Relations",
            Self::Profile => "Profile",
            Self::Groups => "Groups",
            Self::Log => "Log",
            Self::Compare => "Compare",
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
    /// In which form is the view to be written?
    AskExport,
    /// A time to jump to is being typed.
    Jump { text: String },
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
    pub(super) order: Vec<Line>,
    /// Stays with its line when the order changes.
    pub(super) cursor: Line,
    /// The event of that line.
    pub(super) selected: EventIndex,
    /// Whether the user selected it.
    pub(super) is_chosen: bool,
    /// Events that are counted for each part of the target.
    pub(super) folds: Vec<Fold>,
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
    /// The newest line, as lines come.
    #[default]
    Follow,
    /// The line at this place, counted from the beginning.
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
    /// Whether relations are drawn as a graph too.
    pub(super) graph: bool,
    pub(super) ties: Ties,
    /// `None` where no call stacks are sampled.
    pub(super) profile: Option<Profile>,
    /// Whether the profile is that of an interval before the last.
    pub(super) profile_is_old: bool,
    /// The recordings to compare with, and the list of what differs.
    pub(super) others: Option<Others>,
    pub(super) comparison: Comparison,
    /// The selected group.
    pub(super) group: usize,
    pub(super) log: Log,
    pub(super) output: Output,
    pub(super) notes: Vec<String>,
    /// A line at the bottom until the next key.
    pub(super) notice: Option<Notice>,
    pub(super) measure: Measure,
    pub(super) basis: Basis,
    window: usize,
    pub(super) theme: Theme,
    /// Whether the mouse is ours.
    pub(super) mouse: bool,
    /// How a replay goes on; `None` live.
    pub(super) tape: Option<Tape>,
    pub(super) options: Options,
    /// perfprop's own use of a CPU; `None` in pictures, which must not depend on it.
    pub(super) own: Option<f64>,
    pub(super) size: (u16, u16),
    /// Goes up when what is shown changes.
    pub(super) revision: u64,
}

/// A message to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// Something was done.
    Done(String),
    /// Something can't be done.
    Failed(String),
}

/// Input of the model: rounds, keys, and what else changes what is shown.
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
    /// The mouse did something at this column and row.
    Mouse(MouseEventKind, u16, u16),
    /// The recording or an export was saved, or not.
    Saved(Result<PathBuf, String>),
    /// The recording was wound back: a monitor that has seen nothing yet.
    Rewound(Box<Monitor>),
    /// The theme's file has changed.
    Theme(Box<Theme>, Vec<String>),
    /// The user wants to quit, and the command with this process id runs.
    CommandRuns(i32),
    /// More was sampled than the profile shows.
    Sampled,
    /// Something failed, and the user should know.
    Failed(String),
    /// perfprop used this part of a CPU in the last interval.
    Own(f64),
}

/// What the loop is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
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
    Export(Format),
    /// Take the mouse, or leave it to the terminal.
    Mouse(bool),
    /// Play the recording on from here at the tape's speed, or stop, as the tape says.
    Play,
    /// Go to this time of the recording.
    Seek(WallNs),
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
            graph: true,
            ties: Ties::of(&monitor.header().events, monitor.relations()),
            profile: None,
            profile_is_old: true,
            others: None,
            comparison: Comparison::default(),
            group: 0,
            log: Log::default(),
            output: Output::default(),
            notes: options.notes.clone(),
            notice: None,
            measure: options.measure,
            basis: options.basis,
            window: DEFAULT_WINDOW,
            theme: options.theme.clone(),
            mouse: options.mouse,
            tape: match options.mode {
                Mode::Live | Mode::Stacks { .. } => None,
                Mode::Replay { speed, .. } => Some(Tape::new(speed)),
            },
            options: options.clone(),
            own: None,
            size: (80, 24),
            revision: 1,
            monitor,
        };
        // A clock per second of CPU time is a second by definition: nothing to look at first.
        let is_clock = |event: &RecordedEvent| event.event.unit == Unit::Nanoseconds;
        let events = &model.monitor.header().events;
        let first = events.iter().position(|event| event.status.is_open() && !is_clock(event)).unwrap_or(0);
        model.events.folds =
            model.monitor.parts().iter().map(|parts| Fold { parts: parts.clone(), is_open: false }).collect();
        model.events.select(model.events.fold_of(first).map_or(Line::Event(first), Line::Sum));
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
        events.get(event).map_or_else(String::new, |event| shown(&event.title()).into_owned())
    }

    /// The text of the filter of the screen's list, or of its search.
    pub(super) fn filter(&self) -> Option<&str> {
        match self.screen {
            Screen::Events => Some(self.events.filter.text()),
            Screen::Relations => Some(self.relations.filter.text()),
            Screen::Log => Some(self.log.filter.text()),
            Screen::Compare => Some(self.comparison.filter.text()),
            Screen::Profile => self.profile.as_ref().map(|profile| profile.search.text()),
            Screen::Detail | Screen::Groups => None,
        }
    }

    /// Takes over what was sampled up to the end of the last interval.
    pub(super) fn take_profile(&mut self, tree: &Tree, quality: &Quality) {
        let is_first = self.profile.is_none();
        let target = self.monitor.header().target.selection();
        self.profile.get_or_insert_default().take(tree, quality, &target);
        if is_first && self.events.is_chosen {
            self.share_event();
        }
    }

    /// Shows the event that the user selected in the profile too, if it was sampled.
    pub(super) fn share_event(&mut self) {
        self.events.is_chosen = true;
        let events = &self.monitor.header().events;
        let (Some(profile), Some(event)) = (&mut self.profile, events.get(self.events.selected)) else { return };
        let name = &event.event.name;
        if let Some(place) = profile.calls.events.iter().position(|sampled| is_of(&sampled.name, name)) {
            profile.set_event(place);
        }
    }

    /// Selects the event that the profile shows everywhere else.
    pub(super) fn follow_profile(&mut self) {
        let Some(sampled) = self.profile.as_ref().and_then(Profile::event_name) else { return };
        let events = &self.monitor.header().events;
        let place = events.iter().position(|event| is_of(sampled, &event.event.name));
        if let Some(line) = place.map(Line::Event).filter(|line| self.events.order.contains(line)) {
            self.events.select(line);
        }
    }

    pub(super) fn entries(&self) -> Vec<Entry<'_>> {
        let of_stacks = self.profile.iter().flat_map(|profile| &profile.findings);
        let notes = self.notes.iter().chain(of_stacks).map(|note| Entry::Note(note));
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

/// Whether a sampled event is this one: it has `:u` behind its name where only user space is sampled.
fn is_of(sampled: &str, event: &str) -> bool {
    sampled == event || sampled.strip_suffix(":u") == Some(event)
}

/// The only place that knows how a relation gives its formula.
fn formula(relation: &Relation) -> String {
    relation.formula().to_string()
}
