//! Holds the state of the screens, and updates it by messages.
//!
//! A [`ScreenModel`] knows no terminal and no clock. While the view is frozen its monitor stands still
//! and rounds wait in [`RoundBuffer`]; nothing is lost, and thawing takes them all at once.

use super::figures::{Figures, ShownValues};
use super::layout;
use super::options::{Mode, ScreenOptions};
use super::others::Others;
use super::outline::Outline;
use super::playback::Playback;
use super::screen::Screen;
use super::symbols::MISSING;
use super::theme::Theme;
use crate::diagnosis::{self, Diagnosis, LockWaits, LookBack, SampledFacts};
use crate::estimate::{Cause, RelationIndex};
use crate::monitor::{Absence, MeasureChoice, Monitor, Row};
use crate::names::shown;
use crate::plan::RowIndex;
use crate::recording::TimeRange;
use crate::relations::Relation;
use crate::stacks::{FirstLevel, ProfileSpan};
use crate::units::WallNs;

mod compare;
mod copied;
mod filter;
mod level;
mod line;
mod log;
mod message;
mod notice;
mod order;
mod pointer;
mod press;
pub(super) mod profile;
pub(super) mod relation_graph;
mod round_buffer;
mod rows;
mod sampled;
mod seek;
pub(super) mod source;
mod step;
mod thread_order;
mod threads;
mod tour;
mod typing;
mod unfold;
mod update;

pub(super) use compare::{CompareColumn, ComparisonList};
pub(super) use filter::Filter;
pub(super) use log::{Log, LogEntry, Output, Pane};
pub(super) use message::{LoopCommand, Message};
pub(super) use notice::Notice;
pub(super) use order::{Sort, SortColumn};
pub(super) use pointer::ClickTarget;
pub(super) use profile::{ChosenRegion, HotRow, ProfileState};
use relation_graph::RelationGraph;
pub(super) use round_buffer::{RoundBuffer, SavedRecording};
pub(super) use rows::{DiagnosisRows, DrawnLists, DrawnScreen, ScrolledList, VisibleRows};
pub(super) use source::SourceState;
#[cfg(test)]
pub(super) use step::ListStep;
pub(super) use step::Tail;
pub(super) use thread_order::ThreadOrder;
pub(super) use threads::{DrawnThreads, ThreadCells, ThreadColumn, ThreadList, user};
pub(super) use tour::STEPS;
pub(super) use unfold::{EventFold, EventLine};
pub(super) use update::update;

/// Windows of charts, in seconds.
const WINDOWS: [u64; 8] = [10, 30, 60, 120, 300, 600, 1800, 3600];

/// Index of the window of a minute.
const DEFAULT_WINDOW: usize = 2;

/// What lies over the screen and takes the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Over {
    #[default]
    Nothing,
    Help(OpenHelp),
    /// A filter is being typed; what was set before comes back on Esc.
    Filter {
        before: String,
    },
    /// The command still runs: end it, leave it, or stay?
    AskQuit {
        pid: i32,
    },
    /// In which form is the view to be written?
    AskExport,
    /// A time to jump to is being typed.
    Jump {
        text: String,
    },
}

/// The help while it is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OpenHelp {
    /// The number of lines above the first that is seen.
    pub(super) top: usize,
    pub(super) filter: Filter,
    pub(super) keys: HelpKeys,
}

/// What keys do in the help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HelpKeys {
    #[default]
    Scroll,
    /// They are typed into the filter.
    Filter,
}

/// The table of events.
#[derive(Debug, Default)]
pub(super) struct EventTable {
    /// What is shown, in this order.
    pub(super) order: Vec<EventLine>,
    /// Whether some number was corrected so far.
    pub(super) has_corrected: bool,
    /// Stays with its line when the order changes.
    pub(super) cursor: EventLine,
    /// The event of that line.
    pub(super) selected: RowIndex,
    /// Whether the user selected it.
    pub(super) is_chosen: bool,
    /// Events that are counted for each part of the target.
    pub(super) folds: Vec<EventFold>,
    /// By event, the place of the one that it is a part of.
    fold_of_event: Vec<Option<usize>>,
    pub(super) sort: Sort,
    /// The columns on the screen that it can be sorted by, from the left; none before it was drawn.
    columns: Vec<SortColumn>,
    pub(super) filter: Filter,
}

/// The list of relations.
#[derive(Debug, Default)]
pub(super) struct RelationList {
    pub(super) order: Vec<RelationIndex>,
    pub(super) selected: RelationIndex,
    pub(super) filter: Filter,
}

/// Where the axes of charts and the bars of trends begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AxisStart {
    /// At zero, so that a tenth less looks like a tenth.
    #[default]
    Zero,
    /// At the least number that is shown.
    Least,
}

impl AxisStart {
    pub(super) fn other(self) -> Self {
        if self == Self::Zero { Self::Least } else { Self::Zero }
    }
}

/// Whether the view follows what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Motion {
    #[default]
    Moving,
    Frozen,
}

/// What the screens show.
pub(super) struct ScreenModel {
    pub(super) monitor: Monitor,
    pub(super) rounds: RoundBuffer,
    pub(super) motion: Motion,
    pub(super) screen: Screen,
    pub(super) over: Over,
    /// The step of the tour that stands below the screen.
    pub(super) tour: Option<usize>,
    pub(super) events: EventTable,
    pub(super) relations: RelationList,
    /// Whether relations are drawn as a graph too.
    pub(super) graph: bool,
    pub(super) relation_graph: RelationGraph,
    /// `None` where no call stacks are sampled.
    pub(super) profile: Option<ProfileState>,
    /// Why call stacks couldn't be sampled when the user asked for that, and what mends it.
    pub(super) sampling_refused: Option<String>,
    /// The function whose source is shown.
    pub(super) source: Option<SourceState>,
    /// What the first level of the profile's tree tells apart.
    pub(super) first_level: FirstLevel,
    /// Which samples the profile has.
    pub(super) profile_span: ProfileSpan,
    /// When the profile began anew.
    pub(super) profile_since: Option<WallNs>,
    /// The region to which the Events screen is narrowed.
    pub(super) region: Option<ChosenRegion>,
    /// Whether the profile is that of an interval before the last.
    pub(super) profile_is_old: bool,
    /// The time that the screens were about when it was looked at; `None` before.
    profile_of: Option<TimeRange>,
    /// The recordings to compare with, and the list of what differs.
    pub(super) others: Option<Others>,
    pub(super) comparison: ComparisonList,
    /// The selected group.
    pub(super) group: usize,
    pub(super) thread_list: ThreadList,
    /// What stands out in the last intervals.
    pub(super) diagnoses: Vec<Diagnosis>,
    /// The functions with most samples of their own.
    pub(super) hot_functions: Vec<HotRow>,
    /// How long threads waited for locks, where waits are sampled.
    pub(super) lock_waits: Option<LockWaits>,
    /// Samples up to this time aren't in the profile.
    pub(super) sampled_since: WallNs,
    /// The end of the intervals in which `diagnoses` were looked for; `None` where they are others now.
    pub(super) diagnosed_at: Option<WallNs>,
    pub(super) log: Log,
    pub(super) output: Output,
    pub(super) notes: Vec<String>,
    /// A line at the bottom until the next key.
    pub(super) notice: Option<Notice>,
    pub(super) measures: MeasureChoice,
    pub(super) axis: AxisStart,
    pub(super) basis: ShownValues,
    window: usize,
    pub(super) theme: Theme,
    /// Whether that is the one of the user's file.
    shows_own_theme: bool,
    /// Whether the mouse is ours.
    pub(super) mouse: bool,
    /// How a replay goes on; `None` live.
    pub(super) playback: Option<Playback>,
    /// The whole recording, for the time line of a replay.
    pub(super) outline: Option<Outline>,
    pub(super) options: ScreenOptions,
    /// perfprop's own use of a CPU; `None` in pictures, which must not depend on it.
    pub(super) own: Option<f64>,
    pub(super) size: (u16, u16),
    /// What is on the screen of lists.
    pub(super) lists: DrawnLists,
    /// The rows that what stands out had last.
    pub(super) diagnosis_rows: DiagnosisRows,
    /// Goes up when what is shown changes.
    pub(super) revision: u64,
}

impl ScreenModel {
    /// The screens' state for a monitor.
    pub(super) fn new(monitor: Monitor, options: &ScreenOptions) -> Self {
        let mut model = Self {
            rounds: RoundBuffer::default(),
            motion: Motion::Moving,
            screen: options.screen,
            over: if options.help { Over::Help(OpenHelp::default()) } else { Over::Nothing },
            tour: None,
            events: EventTable::default(),
            relations: RelationList::default(),
            graph: true,
            relation_graph: RelationGraph::of(&monitor.header().events, monitor.relations()),
            profile: None,
            sampling_refused: None,
            source: None,
            first_level: options.first_level,
            profile_span: ProfileSpan::default(),
            profile_since: None,
            region: None,
            profile_is_old: true,
            profile_of: None,
            others: None,
            comparison: ComparisonList::default(),
            group: 0,
            thread_list: ThreadList::default(),
            diagnoses: Vec::new(),
            hot_functions: Vec::new(),
            lock_waits: None,
            sampled_since: WallNs(0),
            diagnosed_at: None,
            log: Log::default(),
            output: Output::default(),
            notes: monitor.header().restriction.iter().take(1).chain(&options.notes).cloned().collect(),
            notice: None,
            measures: options.measures,
            axis: AxisStart::default(),
            basis: options.basis,
            window: DEFAULT_WINDOW,
            theme: options.theme.clone(),
            shows_own_theme: options.theme_file.is_some(),
            mouse: options.mouse,
            playback: match options.mode {
                Mode::Live | Mode::Stacks { .. } => None,
                Mode::Replay { speed, .. } => Some(Playback::new(speed)),
            },
            outline: None,
            options: options.clone(),
            own: None,
            size: (80, 24),
            lists: DrawnLists::default(),
            diagnosis_rows: DiagnosisRows::default(),
            revision: 1,
            monitor,
        };
        let first = model.monitor.header().events.iter().position(|event| event.status.is_open()).unwrap_or(0);
        model.events.fold(model.monitor.parts().to_vec());
        model.events.select(model.events.fold_of(first).map_or(EventLine::Event(first), EventLine::Sum));
        model.arrange();
        if let Some(step) = options.tour {
            model.show_step(step);
        }
        model
    }

    /// The monitor, with every round that came.
    pub(super) fn into_monitor(mut self) -> Monitor {
        self.catch_up();
        self.monitor
    }

    pub(super) fn catch_up(&mut self) {
        self.monitor.take_rounds(self.rounds.take());
        if let (None, Some(end)) = (self.monitor.ended(), &self.rounds.end) {
            self.monitor.end(end.clone());
        }
    }

    /// Looks for what stands out in the last intervals, if that may be something else than before.
    pub(super) fn diagnose(&mut self) {
        /// Nobody reads sentences that change more often.
        const PAUSE: WallNs = WallNs(500_000_000);
        let now = self.monitor.closed_at();
        let is_fresh = |at: WallNs| at <= now && now - at < PAUSE;
        if self.monitor.ended().is_none() && self.diagnosed_at.is_some_and(is_fresh) {
            return;
        }
        self.diagnosed_at = Some(now);
        // Few samples say nothing of the rest.
        let hot = self.hot_functions.first().filter(|_| self.little_sampled().is_none());
        let hot = hot.map(|row| row.function.clone());
        let is_over = self.monitor.ended().is_some() || self.shown_range().is_some();
        let look_back = if is_over { LookBack::Run } else { LookBack::Last(diagnosis::LATELY) };
        let sampled = SampledFacts {
            hot: hot.as_ref(),
            locks: self.lock_waits.as_ref(),
            over: self.monitor.now() - self.sampled_since,
        };
        self.diagnoses = diagnosis::diagnose(&self.monitor, look_back, sampled);
    }

    /// Whether what is shown is over: a run that has ended, or a range of one.
    pub(super) fn is_over(&self) -> bool {
        self.monitor.ended().is_some() || self.shown_range().is_some()
    }

    /// What heads the numbers of the newest interval: of what is over, it is the last one.
    pub(super) fn newest_head(&self) -> &'static str {
        if self.is_over() { "LAST" } else { "NOW" }
    }

    /// Rows of the time line below the screen; 0 where there is none, as in comparisons and in small windows.
    pub(super) fn timeline_rows(&self) -> u16 {
        let has_one = self.outline.is_some() && self.others.is_none() && self.tour.is_none();
        if has_one && layout::has_room_for_timeline(self.size) { layout::TIMELINE } else { 0 }
    }

    /// The size of the screens, without the step of the tour below them.
    pub(super) fn screen_size(&self) -> (u16, u16) {
        let (width, height) = self.size;
        let below = if self.tour.is_some() { layout::TOUR } else { 0 };
        (width, height.saturating_sub(below))
    }

    /// How far the view is behind what is counted.
    pub(super) fn lag(&self) -> WallNs {
        self.rounds.now() - self.monitor.now()
    }

    /// Whether every event that could be counted was so all the time, and threads are known: then there is more to say
    /// of these.
    pub(super) fn is_exact(&self) -> bool {
        let is_exact = |row: Row<'_>| match row.absence {
            Some(absence) => absence != Absence::NotYetRan,
            None => row.raw.run.is_exact() && !row.is_partial(),
        };
        self.monitor.newest_threads() > 0 && self.monitor.rows().all(is_exact)
    }

    pub(super) fn figures(&self, event: RowIndex) -> Figures {
        Figures::of(&self.monitor, event, self.measures.of(&self.monitor, event))
    }

    /// The time that charts show: a range that is chosen, else as much as the reader wants.
    pub(super) fn window(&self) -> WallNs {
        if let Some(range) = self.shown_range() {
            return range.length();
        }
        let seconds = WINDOWS.get(self.window).copied().unwrap_or(60);
        let interval = self.monitor.header().interval_ns.0;
        WallNs((seconds * 1_000_000_000).max(interval.saturating_mul(10)))
    }

    pub(super) fn event_name(&self, event: RowIndex) -> String {
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
            Screen::Threads => Some(self.thread_list.filter.text()),
            Screen::Detail | Screen::Groups | Screen::Source => None,
        }
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
}

/// The only place that knows how a relation gives its formula.
fn formula(relation: &Relation) -> String {
    relation.formula().to_string()
}
