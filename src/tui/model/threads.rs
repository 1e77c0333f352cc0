//! Sorts and filters the list of threads, and opens one in the profile.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::filter::Filter;
use super::order::{SortKey, compare};
use super::profile::exactly;
use super::step::{ListStep, neighbour};
use super::{LoopCommand, Motion, ScreenModel, ThreadOrder};
use crate::monitor::ThreadUses;
use crate::names::shown;
use crate::run::MeasuredTarget;
use crate::stacks::FirstLevel;
use crate::threads::{ThreadReading, ThreadUse, WaitKind};
use crate::tui::options::Mode;
use crate::tui::screen::Screen;
use crate::units::WallNs;

/// A column of the list of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum ThreadColumn {
    Name,
    Tid,
    User,
    #[default]
    Cpu,
    /// Ready to run, without a CPU.
    Ready,
    Lock,
    Disk,
    Sleep,
    Memory,
    /// Page faults a second.
    Faults,
    /// How often a second it was given a CPU.
    Switches,
}

impl ThreadColumn {
    pub(super) const ALL: [Self; 11] = [
        Self::Name,
        Self::Tid,
        Self::User,
        Self::Cpu,
        Self::Ready,
        Self::Lock,
        Self::Disk,
        Self::Sleep,
        Self::Memory,
        Self::Faults,
        Self::Switches,
    ];

    /// The part of the time that the column shows, where it shows one.
    pub(in crate::tui) fn part(self, thread: &ThreadUse<'_>) -> Option<f64> {
        match self {
            Self::Cpu => Some(thread.cpu),
            Self::Ready => thread.ready(),
            Self::Lock => thread.waits(WaitKind::Lock),
            Self::Disk => thread.waits(WaitKind::Disk),
            Self::Sleep => thread.waits(WaitKind::Sleep),
            Self::Name | Self::Tid | Self::User | Self::Memory | Self::Faults | Self::Switches => None,
        }
    }

    /// How often a second something happened, where the column shows that.
    pub(in crate::tui) fn rate(self, thread: &ThreadUse<'_>) -> Option<f64> {
        match self {
            Self::Faults => Some(thread.faults),
            Self::Switches => thread.switches,
            _ => None,
        }
    }

    fn key(self, thread: &ThreadUse<'_>) -> SortKey {
        match self {
            Self::Name => SortKey::Name(thread.thread.name.clone()),
            Self::Tid => SortKey::Number(Some(thread.thread.tid.into())),
            Self::User => SortKey::Name(user(thread.thread).to_owned()),
            Self::Memory => SortKey::Number(Some(thread.memory as f64).filter(|bytes| *bytes > 0.0)),
            Self::Faults | Self::Switches => SortKey::Number(self.rate(thread)),
            _ => SortKey::Number(self.part(thread)),
        }
    }
}

/// The name of a process' user; empty where it isn't known, and of the other threads.
pub(in crate::tui) fn user(thread: &ThreadReading) -> &str {
    thread.process.as_ref().map_or("", |process| &process.user)
}

/// The list of threads: its order, and the one that is selected, by its number.
#[derive(Debug, Default)]
pub(in crate::tui) struct ThreadList {
    pub(in crate::tui) by: ThreadColumn,
    pub(in crate::tui) inverted: bool,
    pub(in crate::tui) filter: Filter,
    selected: Option<i32>,
    /// The one with the cursor on the screen, which keys are about: the rows may have another order by now.
    drawn: Option<i32>,
    /// Its place in the list when it was drawn.
    place: usize,
    /// The columns on the screen, from the left; none before it was drawn.
    columns: Vec<ThreadColumn>,
    /// What there was in the list so far.
    pub(in crate::tui) cells: ThreadCells,
    /// What is to be shown of the profile as soon as that tells threads apart.
    opened: Option<OpenedThread>,
    /// The one whose call stacks are shown since Enter opened it here: Esc comes back.
    shown: Option<i32>,
}

/// What there was in a list of threads: columns and lines that come and go can't be read, so they stay.
#[derive(Clone, Debug, Default)]
pub(in crate::tui) struct ThreadCells {
    /// Of each column that was there, the cells of its longest value.
    columns: Vec<(ThreadColumn, usize)>,
    /// The cells of the longest name, of processes with the rest of the command line.
    pub(in crate::tui) name: usize,
    /// The cells of the longest place where one waited; 0 before any was known.
    pub(in crate::tui) within: usize,
    /// Whether others than the threads of the list used the CPUs.
    pub(in crate::tui) has_others: bool,
    /// The order in which the threads stood last.
    pub(in crate::tui) order: ThreadOrder,
}

impl ThreadCells {
    /// The cells of the longest value of a column; `None` of one that wasn't there.
    pub(in crate::tui) fn of(&self, column: ThreadColumn) -> Option<usize> {
        self.columns.iter().find(|(known, _)| *known == column).map(|(_, cells)| *cells)
    }

    /// Makes a column as wide as that, if it isn't wider.
    pub(in crate::tui) fn widen(&mut self, column: ThreadColumn, cells: usize) {
        match self.columns.iter_mut().find(|(known, _)| *known == column) {
            Some((_, widest)) => *widest = cells.max(*widest),
            None => self.columns.push((column, cells)),
        }
    }
}

/// The list of threads as it was drawn.
#[derive(Debug)]
pub(in crate::tui) struct DrawnThreads {
    /// The columns on the screen, from the left; none where the list is a part of another screen.
    pub(in crate::tui) columns: Vec<ThreadColumn>,
    /// The place and the number of the thread with the cursor.
    pub(in crate::tui) cursor: Option<(usize, i32)>,
    pub(in crate::tui) cells: ThreadCells,
}

/// A thread, or a process of a machine, whose call stacks are shown.
#[derive(Clone, Debug)]
struct OpenedThread {
    tid: i32,
    name: String,
    /// Whether it waited more than it ran: then what it waited for is shown, where that was sampled.
    has_waited: bool,
}

impl ThreadList {
    /// Whether the least stands first.
    pub(in crate::tui) fn is_ascending(&self) -> bool {
        matches!(self.by, ThreadColumn::Name | ThreadColumn::Tid | ThreadColumn::User) != self.inverted
    }

    /// What the list is sorted by, and whether the least stands first.
    fn order(&self) -> (ThreadColumn, bool) {
        (self.by, self.is_ascending())
    }

    /// The same with the threads that stand in it, from the first on.
    pub(in crate::tui) fn order_of(&self, threads: &[ThreadUse<'_>]) -> ThreadOrder {
        ThreadOrder::of(self.order(), threads.iter().map(|thread| thread.thread.tid))
    }

    /// Whether the name, the number, that of the process, its user or the command line is what the filter asks for. `process` is its
    /// first thread, if it is there.
    fn lets_through(&self, thread: &ThreadReading, process: Option<&ThreadReading>) -> bool {
        let command = thread.process.as_ref().map_or("", |process| &process.command);
        let user = user(process.unwrap_or(thread));
        self.filter.is_empty()
            || [&thread.name, &thread.tid.to_string(), &thread.pid.to_string(), user, command]
                .iter()
                .any(|text| self.filter.matches(text))
    }
}

impl ScreenModel {
    /// Whether threads are shown over the whole run: it is over, and its last moment says little of it.
    pub(in crate::tui) fn shows_threads_of_run(&self) -> bool {
        self.monitor.ended().is_some() && self.shown_range().is_none()
    }

    /// Whether threads are shown over a longer time than the last interval: a range, or the whole run.
    pub(in crate::tui) fn shows_threads_of_time(&self) -> bool {
        self.shown_range().is_some() || self.shows_threads_of_run()
    }

    /// How many threads there are to show, whatever the filter is.
    pub(in crate::tui) fn listed_threads(&self) -> usize {
        if self.shows_threads_of_run() { self.monitor.threads_of_run() } else { self.monitor.newest_threads() }
    }

    /// What the threads that pass the filter did in the last interval, in the range that is shown or in a run that is over, in the
    /// order of the list. Those that are nearly alike in it stay where they were, else stand by their numbers; processes by their
    /// memory, so that the kernel's threads, which have none, come last, and those that did nothing behind the others.
    pub(in crate::tui) fn threads(&self) -> Option<ThreadUses<'_>> {
        let of_interval = || self.monitor.last_length().unwrap_or(self.monitor.header().interval_ns);
        let mut uses = match self.shown_range() {
            Some(range) => self.monitor.thread_uses(range.length())?,
            None if self.shows_threads_of_run() => self.monitor.thread_uses(WallNs(u64::MAX))?.with_ended(),
            None => self.monitor.thread_uses(of_interval())?,
        };
        if !self.shows_threads_of_time() {
            // What there is now says more than what there was.
            uses.threads.iter_mut().for_each(|thread| thread.memory = thread.thread.resident);
        }
        let processes = uses.threads.iter().filter(|thread| thread.thread.pid == thread.thread.tid);
        let processes: FxHashMap<i32, &ThreadReading> =
            processes.map(|thread| (thread.thread.pid, thread.thread)).collect();
        let process = |thread: &ThreadUse<'_>| processes.get(&thread.thread.pid).copied();
        uses.threads.retain(|thread| self.thread_list.lets_through(thread.thread, process(thread)));
        uses.threads.sort_by_key(|thread| thread.thread.tid);
        if self.level_of_threads() == FirstLevel::Process {
            let is_idle = |thread: &ThreadUse<'_>| thread.cpu == 0.0 && thread.faults == 0.0;
            uses.threads.sort_by_key(|thread| (is_idle(thread), Reverse(thread.memory)));
        }
        let order @ (by, ascending) = self.thread_list.order();
        let mut keyed: Vec<_> = uses.threads.into_iter().map(|thread| (by.key(&thread), thread)).collect();
        keyed.sort_by(|(a, _), (b, _)| compare(a, b, ascending));
        // A time that stands still has its numbers in their order.
        if !self.shows_threads_of_time() {
            self.thread_list.cells.order.settle(order, &mut keyed, |thread| thread.thread.tid);
        }
        uses.threads = keyed.into_iter().map(|(_, thread)| thread).collect();
        Some(uses)
    }

    /// The place of the selected thread; where it has ended, that of the row in which it was; the first where none was
    /// selected.
    pub(in crate::tui) fn selected_thread(&self, threads: &[ThreadUse<'_>]) -> usize {
        let list = &self.thread_list;
        let is_selected = |thread: &ThreadUse<'_>| Some(thread.thread.tid) == list.selected;
        let left = || if list.selected.is_some() { list.place.min(threads.len().saturating_sub(1)) } else { 0 };
        threads.iter().position(is_selected).unwrap_or_else(left)
    }

    /// Remembers which thread has the cursor on the screen that was just drawn, and which columns that has.
    pub(super) fn remember_drawn_threads(&mut self, drawn: Option<DrawnThreads>) {
        let list = &mut self.thread_list;
        list.drawn = None;
        let Some(drawn) = drawn else { return };
        if let Some((place, tid)) = drawn.cursor {
            (list.place, list.drawn) = (place, Some(tid));
        }
        (list.columns, list.cells) = (drawn.columns, drawn.cells);
    }

    /// The place of the thread that keys are about: the one with the cursor on the screen, while it lives.
    fn thread_of_keys(&self, threads: &[ThreadUse<'_>]) -> usize {
        let is_drawn = |thread: &ThreadUse<'_>| Some(thread.thread.tid) == self.thread_list.drawn;
        threads.iter().position(is_drawn).unwrap_or_else(|| self.selected_thread(threads))
    }

    pub(super) fn select_thread(&mut self, tid: i32) {
        (self.thread_list.selected, self.thread_list.drawn) = (Some(tid), Some(tid));
    }

    /// Opens a thread that is clicked on, if it is selected already.
    pub(super) fn open_clicked_thread(&mut self, tid: i32) -> Option<LoopCommand> {
        if self.thread_list.selected == Some(tid) { self.open_thread() } else { None }
    }

    pub(super) fn go_in_threads(&mut self, step: ListStep) {
        let Some(uses) = self.threads() else { return };
        let place = step.from(self.thread_of_keys(&uses.threads), uses.threads.len());
        let Some(tid) = uses.threads.get(place).map(|thread| thread.thread.tid) else { return };
        self.select_thread(tid);
    }

    /// Sorts by the next column on the screen, or the one before: an order without its arrow would be a riddle.
    pub(super) fn sort_threads(&mut self, step: isize) {
        let list = &mut self.thread_list;
        let columns = if list.columns.is_empty() { &ThreadColumn::ALL[..] } else { &list.columns };
        list.by = neighbour(columns, list.by, step);
        list.inverted = false;
    }

    /// `worker 4711: 98.2% of a CPU`.
    pub(super) fn thread_in_words(&self) -> Option<String> {
        let uses = self.threads()?;
        let thread = uses.threads.get(self.thread_of_keys(&uses.threads))?;
        let (name, tid) = (shown(&thread.thread.name), thread.thread.tid);
        Some(format!("{name} {tid}: {:.1}% of a CPU", 100.0 * thread.cpu))
    }

    /// Shows the call stacks of the selected thread, which the profile finds by its number: threads may share names.
    pub(super) fn open_thread(&mut self) -> Option<LoopCommand> {
        let uses = self.threads()?;
        let thread_use = uses.threads.get(self.thread_of_keys(&uses.threads))?;
        let has_waited = thread_use.lived - thread_use.cpu - thread_use.ready().unwrap_or(0.0) > thread_use.cpu;
        let thread = thread_use.thread;
        let opened = OpenedThread { tid: thread.tid, name: thread.name.clone(), has_waited };
        let how_to_see_inside = self.how_to_see_inside(thread);
        let level = self.level_of_threads();
        let can_open = self.can_open_threads();
        match &mut self.profile {
            None => self.refuse(how_to_see_inside),
            Some(profile) if profile.compares() => {
                profile.set_search(exactly(&opened.name));
                self.screen = Screen::Profile;
                let words =
                    format!("profiles are compared by names of threads: all of {} are found", shown(&opened.name));
                self.tell(words);
            }
            Some(_) if !can_open => {
                let words = "the view is frozen; z goes on, then Enter shows its stacks";
                self.refuse(words);
            }
            Some(_) => {
                self.screen = Screen::Profile;
                self.thread_list.opened = Some(opened);
                if self.motion == Motion::Moving {
                    // The profile is taken anew, and then has what was sampled until now.
                    self.first_level = level;
                    return Some(LoopCommand::FirstLevel(level));
                }
                self.show_opened_thread();
            }
        }
        None
    }

    /// How call stacks are sampled, and of a machine's processes, which are read without their threads, how these are
    /// seen.
    fn how_to_see_inside(&self, thread: &ThreadReading) -> String {
        match self.options.mode {
            Mode::Live if self.level_of_threads() == FirstLevel::Process => {
                format!("-g samples call stacks; perfprop top -p {} shows its threads", thread.pid)
            }
            Mode::Live => "no call stacks are sampled: start perfprop with -g, or press 4 and Enter".into(),
            Mode::Replay { .. } | Mode::Stacks { .. } => {
                "this recording has no call stacks; perfprop record -g records them".into()
            }
        }
    }

    /// Whether the profile can tell threads apart: in a frozen view it stays as it is.
    pub(super) fn can_open_threads(&self) -> bool {
        let Some(profile) = &self.profile else { return false };
        profile.compares() || self.motion == Motion::Moving || self.first_level == self.level_of_threads()
    }

    /// What tells the rows of the list apart in a profile: a machine is read by process.
    fn level_of_threads(&self) -> FirstLevel {
        match self.monitor.header().target {
            MeasuredTarget::Everyone { .. } => FirstLevel::Process,
            _ => FirstLevel::Thread,
        }
    }

    /// Goes one level back in the profile; out of a thread that Enter opened, to the list of threads.
    pub(super) fn back_in_profile(&mut self) {
        let height = self.profile_rows();
        let Some(profile) = &mut self.profile else { return };
        let is_in_thread = self.thread_list.shown.is_some_and(|tid| profile.is_zoomed_into_task(tid));
        profile.back(height);
        if is_in_thread && !profile.tree.is_zoomed() {
            self.thread_list.shown = None;
            self.screen = Screen::Threads;
        }
    }

    /// Zooms into what was sampled of the thread that was opened, now that the profile tells threads apart.
    pub(super) fn show_opened_thread(&mut self) {
        let has_level = self.first_level == self.level_of_threads();
        let Some(opened) = self.thread_list.opened.take().filter(|_| has_level) else { return };
        let OpenedThread { tid, name, has_waited } = opened;
        self.thread_list.shown = Some(tid);
        if !self.profile.as_mut().is_some_and(|profile| profile.open_task(tid, has_waited)) {
            self.screen = Screen::Threads;
            let waits = if has_waited { ": --off-cpu samples what it waits in" } else { "" };
            let words = format!("no call stack of {} {tid} was sampled so far{waits}", shown(&name));
            self.refuse(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ratatui::crossterm::event::{KeyCode, KeyEvent};

    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::sources::{RecordedRound, Round};
    use crate::threads::{ProcessDetails, ThreadSnapshot};
    use crate::tui::model::{Message, update};
    use crate::tui::options::ScreenOptions;
    use crate::units::{CpuNs, WallNs};

    /// A second of two threads that had these milliseconds of CPU time by its end.
    fn round(second: u64, cpu_ms: [u64; 2]) -> Message {
        let thread = |(tid, ms): (i32, u64)| {
            let cpu_ns = CpuNs(ms * 1_000_000);
            ThreadReading { pid: 7, tid, name: format!("t{tid}"), cpu_ns, ..ThreadReading::default() }
        };
        let at = WallNs(second * builders::SECOND);
        let threads = (7..).zip(cpu_ms).map(thread).collect();
        let snapshot = ThreadSnapshot { at_ns: at, threads, ..ThreadSnapshot::default() };
        let round = Round { at, readings: vec![None], threads: Some(Arc::new(snapshot)), ..Round::default() };
        Message::Round(RecordedRound { round, lost: 0 })
    }

    /// Remembers where the cursor is as when the screen is drawn.
    fn draw(model: &mut ScreenModel) {
        let uses = model.threads();
        let place = uses.as_ref().map_or(0, |uses| model.selected_thread(&uses.threads));
        let cursor = uses.and_then(|uses| Some((place, uses.threads.get(place)?.thread.tid)));
        let order = model.threads().map(|uses| model.thread_list.order_of(&uses.threads)).unwrap_or_default();
        let drawn =
            DrawnThreads { columns: Vec::new(), cursor, cells: ThreadCells { order, ..ThreadCells::default() } };
        model.remember_drawn_threads(Some(drawn));
    }

    #[test]
    fn keys_are_about_the_row_that_was_drawn_though_the_order_is_another_now() {
        let header = builders::header([builders::measured(builders::event("cycles"))]);
        let options = ScreenOptions { screen: Screen::Threads, ..ScreenOptions::default() };
        let monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        let mut model = ScreenModel::new(monitor, &options);
        for message in [round(0, [0, 0]), round(1, [900, 100])] {
            update(&mut model, message);
        }
        draw(&mut model);
        update(&mut model, round(2, [1000, 1000]));
        let copied = update(&mut model, Message::Key(KeyEvent::from(KeyCode::Char('y'))));
        assert_eq!(copied, Some(LoopCommand::Copy("t7 7: 10.0% of a CPU".into())));
        // Once the reader has moved, the cursor stays with the thread.
        update(&mut model, Message::Key(KeyEvent::from(KeyCode::Up)));
        draw(&mut model);
        assert_eq!(model.thread_list.drawn, Some(8));
    }

    #[test]
    fn rows_of_threads_that_are_nearly_equal_stay_where_they_are() {
        let header = builders::header([builders::measured(builders::event("cycles"))]);
        let options = ScreenOptions { screen: Screen::Threads, ..ScreenOptions::default() };
        let mut model = ScreenModel::new(builders::monitor(header, vec![], EstimatorKind::Scale), &options);
        let mut cpu_ms = [0, 0];
        update(&mut model, round(0, cpu_ms));
        let mut first_after = |second, more: [u64; 2]| {
            cpu_ms = [cpu_ms[0] + more[0], cpu_ms[1] + more[1]];
            update(&mut model, round(second, cpu_ms));
            draw(&mut model);
            model.threads().map(|uses| uses.threads[0].thread.tid)
        };
        let first = [first_after(1, [900, 930]), first_after(2, [930, 900]), first_after(3, [900, 700])];
        assert_eq!(first, [Some(8), Some(8), Some(7)]);
    }

    #[test]
    fn a_filter_finds_threads_by_their_process_and_its_user() {
        let thread = |pid, tid, user: &str| {
            let process = ProcessDetails { user: user.into(), command: "prog".into() };
            let process = (pid == tid).then(|| Arc::new(process));
            ThreadReading { pid, tid, name: "worker".into(), process, ..ThreadReading::default() }
        };
        let [first, second, other] = [thread(31, 31, "mail"), thread(31, 32, ""), thread(77, 77, "root")];
        let found = |filter: &str| {
            let list = ThreadList { filter: Filter::new(filter.into()), ..ThreadList::default() };
            let all = [(&first, &first), (&second, &first), (&other, &other)];
            let found = all.into_iter().filter(|(thread, process)| list.lets_through(thread, Some(process)));
            found.map(|(thread, _)| thread.tid).collect::<Vec<_>>()
        };
        assert_eq!(
            [found("mail"), found("31"), found("32"), found("root")],
            [vec![31, 32], vec![31, 32], vec![32], vec![77]]
        );
    }

    #[test]
    fn esc_takes_an_error_away_before_it_leaves() {
        let header = builders::header([builders::measured(builders::event("cycles"))]);
        let options = ScreenOptions { screen: Screen::Threads, ..ScreenOptions::default() };
        let mut model = ScreenModel::new(builders::monitor(header, vec![], EstimatorKind::Scale), &options);
        for message in [round(0, [0, 0]), round(1, [900, 100])] {
            update(&mut model, message);
        }
        let mut press = |code| {
            update(&mut model, Message::Key(KeyEvent::from(code)));
            (model.screen, model.notice.is_some())
        };
        assert_eq!(press(KeyCode::Enter), (Screen::Threads, true));
        assert_eq!(press(KeyCode::Esc), (Screen::Threads, false));
        assert_eq!(press(KeyCode::Esc), (Screen::Events, false));
    }

    #[test]
    fn the_order_goes_through_the_columns_on_the_screen() {
        let header = builders::header([builders::measured(builders::event("cycles"))]);
        let monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        let mut model = ScreenModel::new(monitor, &ScreenOptions::default());
        use ThreadColumn::{Cpu, Memory, Name, Switches, Tid};
        model.thread_list.columns = vec![Name, Tid, Memory, Cpu];
        let mut after = |step| {
            model.sort_threads(step);
            model.thread_list.by
        };
        assert_eq!([after(1), after(1), after(1), after(-1), after(-1)], [Name, Tid, Memory, Tid, Name]);
        // One that has left the screen gives way to the first.
        model.thread_list.by = Switches;
        model.sort_threads(1);
        assert_eq!(model.thread_list.by, Name);
    }
}
