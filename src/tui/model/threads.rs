//! Sorts the list of threads, and opens one in the profile.

use super::order::{SortKey, compare};
use super::step::{ListStep, neighbour};
use super::{Notice, ScreenModel};
use crate::monitor::ThreadUses;
use crate::names::shown;
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
        if self.thread_list.selected == Some(tid) {
            return self.open_thread();
        }
        self.thread_list.selected = Some(tid);
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

    /// Shows the call stacks of the selected thread.
    pub(super) fn open_thread(&mut self) {
        let Some(uses) = self.threads() else { return };
        let Some(thread) = uses.threads.get(self.selected_thread(&uses.threads)) else { return };
        let search = format!("^{}", escaped(&thread.thread.name));
        match &mut self.profile {
            Some(profile) => {
                profile.set_search(search);
                self.screen = Screen::Profile;
            }
            None => self.notice = Some(Notice::Failed("no call stacks are sampled: start perfprop with -g".into())),
        }
    }
}

/// A regular expression for a text as it is.
fn escaped(text: &str) -> String {
    let escape = |c: char| if c.is_alphanumeric() { vec![c] } else { vec!['\\', c] };
    text.chars().flat_map(escape).collect()
}
