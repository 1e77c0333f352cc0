//! Lists what differs between two monitors, sorted and filtered.

use super::{Column, Filter, Model, Screen};
use crate::monitor::{Compare, Compared, compare};
use crate::tui::figures::Basis;
use crate::tui::{Beside, Mode};

/// The list of the Compare screen.
#[derive(Debug, Default)]
pub(in crate::tui) struct Comparison {
    /// All events of both recordings.
    pub(in crate::tui) all: Vec<Compared>,
    /// What is shown of them, in this order.
    pub(in crate::tui) order: Vec<usize>,
    pub(in crate::tui) selected: usize,
    /// `None`: as they were given.
    pub(in crate::tui) by: Option<CompareColumn>,
    pub(in crate::tui) inverted: bool,
    pub(in crate::tui) filter: Filter,
}

/// A column of it that it can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum CompareColumn {
    Event,
    A,
    B,
    Change,
    Difference,
}

impl CompareColumn {
    pub(super) const ALL: [Self; 5] = [Self::Event, Self::A, Self::B, Self::Change, Self::Difference];

    pub(in crate::tui) fn word(self) -> &'static str {
        match self {
            Self::Event => Column::Event.word(),
            Self::A => "A",
            Self::B => "B",
            Self::Change => "change",
            Self::Difference => "difference",
        }
    }
}

impl Comparison {
    /// Names go up and numbers down, unless inverted.
    pub(in crate::tui) fn is_ascending(&self) -> bool {
        matches!(self.by, None | Some(CompareColumn::Event)) != self.inverted
    }

    pub(in crate::tui) fn selected(&self) -> Option<&Compared> {
        self.all.get(self.selected).filter(|_| self.order.contains(&self.selected))
    }

    /// Sorts and filters the list.
    fn arrange(&mut self) {
        let mut order: Vec<usize> =
            (0..self.all.len()).filter(|&index| self.filter.matches(&self.all[index].name)).collect();
        match self.by {
            None if self.inverted => order.reverse(),
            None => {}
            Some(column) => {
                let keys: Vec<_> = self.all.iter().map(|one| key(one, column)).collect();
                let ascending = self.is_ascending();
                order.sort_by(|&a, &b| super::order::compare(&keys[a], &keys[b], ascending));
            }
        }
        if !order.contains(&self.selected) {
            self.selected = order.first().copied().unwrap_or(0);
        }
        self.order = order;
    }
}

/// What is apart stands before what isn't, and the larger change before the smaller.
fn key(one: &Compared, column: CompareColumn) -> super::order::SortKey {
    let apart = if one.difference.is_apart() { 1e12 } else { 0.0 };
    let number = match column {
        CompareColumn::Event => return super::order::SortKey::Name(one.name.clone()),
        CompareColumn::A => one.a_number.map(|number| number.value),
        CompareColumn::B => one.b_number.map(|number| number.value),
        CompareColumn::Change => one.change(),
        CompareColumn::Difference => Some(apart + one.change().map_or(0.0, |part| part.abs().min(1e9))),
    };
    super::order::SortKey::Number(number.filter(|number| !number.is_nan()))
}

impl Model {
    /// Adds a second recording to compare with.
    pub(in crate::tui) fn with_beside(mut self, beside: Option<Beside>) -> Self {
        self.beside = beside;
        self.go_along();
        self.compare();
        let list = &mut self.comparison;
        list.selected = list.all.iter().position(|one| one.difference.is_apart()).unwrap_or(0);
        self
    }

    /// The screens that there are, in the order of their tabs.
    pub(in crate::tui) fn screens(&self) -> impl DoubleEndedIterator<Item = Screen> + use<> {
        let has_stacks_only = matches!(self.options.mode, Mode::Stacks { .. });
        let screens = self.beside.as_ref().map(|_| Screen::Compare).into_iter().chain(Screen::ALL);
        screens.filter(move |screen| !has_stacks_only || matches!(screen, Screen::Profile | Screen::Log))
    }

    /// The second recording goes where the first is.
    pub(super) fn go_along(&mut self) {
        let time = self.monitor.ended().is_none().then(|| self.monitor.now());
        if let Some(beside) = &mut self.beside {
            beside.follow(time);
        }
    }

    /// Compares again, for other numbers or another order.
    pub(super) fn compare(&mut self) {
        let Some(beside) = &self.beside else { return };
        let what = if self.basis == Basis::Raw { Compare::Raw } else { Compare::Estimate };
        self.comparison.all = compare(&self.monitor, &beside.monitor, self.measure, what);
        self.comparison.arrange();
    }

    pub(super) fn sort_comparison(&mut self, step: usize) {
        let all: Vec<_> = std::iter::once(None).chain(CompareColumn::ALL.map(Some)).collect();
        self.comparison.by = super::step::neighbour(&all, self.comparison.by, step);
        self.comparison.inverted = false;
        self.compare();
    }
}
