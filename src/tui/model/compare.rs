//! Sorts and filters the list of what differs between two sets of recordings.

use super::{EventLine, Filter, ScreenModel, SortColumn};
use crate::compare::{self, ComparedEvent, ComparedNumber};
use crate::names::shown;
use crate::tui::figures;
use crate::tui::options::Mode;
use crate::tui::others::Others;
use crate::tui::screen::Screen;

/// The list of the Compare screen.
#[derive(Debug, Default)]
pub(in crate::tui) struct ComparisonList {
    /// All events of both sides.
    pub(in crate::tui) found: compare::RunComparison,
    /// What is shown of them, in this order.
    pub(in crate::tui) order: Vec<usize>,
    pub(in crate::tui) selected: usize,
    pub(in crate::tui) by: CompareColumn,
    pub(in crate::tui) inverted: bool,
    pub(in crate::tui) filter: Filter,
}

/// What it can be sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum CompareColumn {
    /// What differs by more than chance, by how much at least; then the rest.
    #[default]
    Difference,
    /// As they were given.
    Given,
    Event,
    A,
    B,
    Change,
}

impl CompareColumn {
    pub(super) const ALL: [Self; 6] = [Self::Difference, Self::Given, Self::Event, Self::A, Self::B, Self::Change];

    pub(in crate::tui) fn word(self) -> &'static str {
        match self {
            Self::Difference => "difference",
            Self::Given => "as given",
            Self::Event => SortColumn::Event.word(),
            Self::A => "A",
            Self::B => "B",
            Self::Change => "change",
        }
    }
}

impl ComparisonList {
    /// Names go up and numbers down, unless inverted.
    pub(in crate::tui) fn is_ascending(&self) -> bool {
        matches!(self.by, CompareColumn::Given | CompareColumn::Event) != self.inverted
    }

    pub(in crate::tui) fn selected(&self) -> Option<&ComparedEvent> {
        self.found.events.get(self.selected).filter(|_| self.order.contains(&self.selected))
    }

    /// Sorts and filters the list.
    fn arrange(&mut self) {
        let all = &self.found.events;
        let mut order = match self.by {
            CompareColumn::Difference => self.found.in_order(),
            _ => (0..all.len()).collect(),
        };
        order.retain(|&index| self.filter.matches(&all[index].name));
        match self.by {
            CompareColumn::Difference | CompareColumn::Given => {}
            column => {
                let keys: Vec<_> = all.iter().map(|one| key(one, column)).collect();
                let ascending = self.is_ascending();
                order.sort_by(|&a, &b| super::order::compare(&keys[a], &keys[b], ascending));
            }
        }
        if self.inverted && matches!(self.by, CompareColumn::Difference | CompareColumn::Given) {
            order.reverse();
        }
        if !order.contains(&self.selected) {
            self.selected = order.first().copied().unwrap_or(0);
        }
        self.order = order;
    }
}

fn key(one: &ComparedEvent, column: CompareColumn) -> super::order::SortKey {
    let number = match column {
        CompareColumn::A => one.a.mean(),
        CompareColumn::B => one.b.mean(),
        CompareColumn::Change => one.change(),
        CompareColumn::Difference | CompareColumn::Given | CompareColumn::Event => {
            return super::order::SortKey::Name(one.name.clone());
        }
    };
    super::order::SortKey::Number(number.filter(|number| !number.is_nan()))
}

impl ScreenModel {
    /// Adds recordings to compare with.
    pub(in crate::tui) fn with_others(mut self, others: Option<Others>) -> Self {
        self.others = others;
        if let Some(profile) = self.others.as_mut().and_then(Others::take_profile) {
            self.profile.get_or_insert_default().take_difference(&profile);
        }
        self.go_along();
        self.compare();
        self.comparison.selected = self.comparison.order.first().copied().unwrap_or(0);
        self
    }

    /// The screens that there are, in the order of their tabs.
    pub(in crate::tui) fn screens(&self) -> impl DoubleEndedIterator<Item = Screen> + use<> {
        let has_stacks_only = matches!(self.options.mode, Mode::Stacks { .. });
        let screens = self.others.as_ref().map(|_| Screen::Compare).into_iter().chain(Screen::ALL);
        screens.filter(move |screen| !has_stacks_only || matches!(screen, Screen::Profile | Screen::Log))
    }

    /// The other recordings go where the first is.
    pub(super) fn go_along(&mut self) {
        let time = self.monitor.ended().is_none().then(|| self.monitor.now());
        if let Some(others) = &mut self.others {
            others.follow(time);
        }
    }

    /// Compares again, for other numbers or another order.
    pub(super) fn compare(&mut self) {
        let Some(others) = &self.others else { return };
        let basis =
            if self.basis == figures::ShownValues::Raw { ComparedNumber::Raw } else { ComparedNumber::Estimate };
        let [a, b] = others.sides(&self.monitor);
        self.comparison.found = compare::compare(&a, &b, self.measures, basis);
        self.comparison.arrange();
    }

    /// Goes to the functions that differ, and shows the selected event on the other screens.
    pub(super) fn open_functions(&mut self) {
        if let Some(event) = self.comparison.selected().and_then(|one| one.a.index) {
            self.events.select(EventLine::Event(event));
        }
        match &mut self.profile {
            Some(profile) if profile.compares() => profile.show_difference(),
            Some(_) => {
                self.refuse(self.without_functions());
                return;
            }
            // The screen says it.
            None => {}
        }
        self.screen = Screen::Profile;
    }

    /// Why functions can't be compared, and the command that records what it takes.
    pub(in crate::tui) fn without_functions(&self) -> String {
        let target = self.monitor.header().target.selection();
        let runs = self.comparison.found.needs;
        format!("functions need call stacks in all:  perfprop record -g -r {runs} {}", shown(&target))
    }

    pub(super) fn sort_comparison(&mut self, step: isize) {
        self.comparison.by = super::step::neighbour(&CompareColumn::ALL, self.comparison.by, step);
        self.comparison.inverted = false;
        self.compare();
    }
}
