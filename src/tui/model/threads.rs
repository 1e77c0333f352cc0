//! Sorts the list of threads, and opens one in the profile.

use super::order::{SortKey, compare};
use super::profile::exactly;
use super::step::{ListStep, neighbour};
use super::{LoopCommand, Motion, Notice, ScreenModel};
use crate::monitor::ThreadUses;
use crate::names::shown;
use crate::run::MeasuredTarget;
use crate::stacks::FirstLevel;
use crate::threads::{ThreadUse, WaitKind};
use crate::tui::screen::Screen;

/// A column of the list of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum ThreadColumn {
    Name,
    Tid,
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
    pub(super) const ALL: [Self; 10] = [
        Self::Name,
        Self::Tid,
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
        let waited = |kind| Some(thread.waited(kind)).filter(|(_, looks)| *looks > 0).map(|(part, _)| part);
        match self {
            Self::Cpu => Some(thread.cpu),
            Self::Ready => thread.ready(),
            Self::Lock => waited(WaitKind::Lock),
            Self::Disk => waited(WaitKind::Disk),
            Self::Sleep => waited(WaitKind::Sleep),
            Self::Name | Self::Tid | Self::Memory | Self::Faults | Self::Switches => None,
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
            Self::Memory => SortKey::Number(Some(thread.thread.resident as f64).filter(|bytes| *bytes > 0.0)),
            Self::Faults | Self::Switches => SortKey::Number(self.rate(thread)),
            _ => SortKey::Number(self.part(thread)),
        }
    }
}

/// The list of threads: its order, and the one that is selected, by its number.
#[derive(Debug, Default)]
pub(in crate::tui) struct ThreadList {
    pub(in crate::tui) by: ThreadColumn,
    pub(in crate::tui) inverted: bool,
    selected: Option<i32>,
    /// What is to be shown of the profile as soon as that tells threads apart.
    opened: Option<OpenedThread>,
}

/// A thread, or a process of a machine, whose call stacks are shown.
#[derive(Clone, Debug)]
struct OpenedThread {
    tid: i32,
    name: String,
}

impl ThreadList {
    /// Whether the least stands first.
    pub(in crate::tui) fn is_ascending(&self) -> bool {
        matches!(self.by, ThreadColumn::Name | ThreadColumn::Tid) != self.inverted
    }
}

impl ScreenModel {
    /// What the threads did in the last interval, in the order of the list.
    pub(in crate::tui) fn threads(&self) -> Option<ThreadUses<'_>> {
        let mut uses = self.monitor.thread_uses(self.monitor.header().interval_ns)?;
        let (by, ascending) = (self.thread_list.by, self.thread_list.is_ascending());
        uses.threads.sort_by(|a, b| compare(&by.key(a), &by.key(b), ascending));
        Some(uses)
    }

    /// The place of the selected thread; the first where it has ended, or none was selected.
    pub(in crate::tui) fn selected_thread(&self, threads: &[ThreadUse<'_>]) -> usize {
        let is_selected = |thread: &ThreadUse<'_>| Some(thread.thread.tid) == self.thread_list.selected;
        threads.iter().position(is_selected).unwrap_or(0)
    }

    pub(super) fn click_thread(&mut self, tid: i32) {
        self.thread_list.selected = Some(tid);
    }

    /// Opens a thread that is clicked on, if it is selected already.
    pub(super) fn open_clicked_thread(&mut self, tid: i32) -> Option<LoopCommand> {
        if self.thread_list.selected == Some(tid) { self.open_thread() } else { None }
    }

    pub(super) fn go_in_threads(&mut self, step: ListStep) {
        let Some(uses) = self.threads() else { return };
        let place = step.from(self.selected_thread(&uses.threads), uses.threads.len());
        self.thread_list.selected = uses.threads.get(place).map(|thread| thread.thread.tid);
    }

    pub(super) fn sort_threads(&mut self, step: usize) {
        self.thread_list.by = neighbour(&ThreadColumn::ALL, self.thread_list.by, step);
        self.thread_list.inverted = false;
    }

    /// `worker 4711: 98.2% of a CPU`.
    pub(super) fn thread_in_words(&self) -> Option<String> {
        let uses = self.threads()?;
        let thread = uses.threads.get(self.selected_thread(&uses.threads))?;
        let (name, tid) = (shown(&thread.thread.name), thread.thread.tid);
        Some(format!("{name} {tid}: {:.1}% of a CPU", 100.0 * thread.cpu))
    }

    /// Shows the call stacks of the selected thread, which the profile finds by its number: threads may share names.
    pub(super) fn open_thread(&mut self) -> Option<LoopCommand> {
        let uses = self.threads()?;
        let thread = uses.threads.get(self.selected_thread(&uses.threads))?.thread;
        let opened = OpenedThread { tid: thread.tid, name: thread.name.clone() };
        let level = self.level_of_threads();
        let has_level = self.first_level == level;
        match &mut self.profile {
            None => self.notice = Some(Notice::Failed("no call stacks are sampled: start perfprop with -g".into())),
            Some(profile) if profile.compares() => {
                profile.set_search(exactly(&opened.name));
                self.screen = Screen::Profile;
                let words =
                    format!("profiles are compared by names of threads: all of {} are found", shown(&opened.name));
                self.notice = Some(Notice::Done(words));
            }
            Some(_) if self.motion == Motion::Frozen && !has_level => {
                self.notice = Some(Notice::Failed("the view is frozen; z goes on".into()));
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

    /// What tells the rows of the list apart in a profile: a machine is read by process.
    fn level_of_threads(&self) -> FirstLevel {
        match self.monitor.header().target {
            MeasuredTarget::Everyone { .. } => FirstLevel::Process,
            _ => FirstLevel::Thread,
        }
    }

    /// Zooms into what was sampled of the thread that was opened, now that the profile tells threads apart.
    pub(super) fn show_opened_thread(&mut self) {
        let has_level = self.first_level == self.level_of_threads();
        let Some(OpenedThread { tid, name }) = self.thread_list.opened.take().filter(|_| has_level) else { return };
        if !self.profile.as_mut().is_some_and(|profile| profile.zoom_into_task(tid)) {
            self.screen = Screen::Threads;
            let words = format!("no call stack of {} {tid} was sampled so far", shown(&name));
            self.notice = Some(Notice::Failed(words));
        }
    }
}
