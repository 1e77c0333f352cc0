//! Sorts the events and relations that pass the filter.

use std::cmp::Ordering;

use super::step::neighbour;
use super::{EventLine, ScreenModel};
use crate::plan::RowIndex;
use crate::rates::Error;

/// A column of the table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum SortColumn {
    Event,
    Mean,
    Error,
    Variance,
    Run,
    Correction,
}

impl SortColumn {
    const ALL: [Self; 6] = [Self::Event, Self::Mean, Self::Error, Self::Variance, Self::Run, Self::Correction];

    pub(in crate::tui) fn word(self) -> &'static str {
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
pub(in crate::tui) struct Sort {
    /// `None`: as they were given.
    pub(in crate::tui) by: Option<SortColumn>,
    pub(in crate::tui) inverted: bool,
}

impl Sort {
    /// Names go up and numbers down, unless inverted.
    pub(in crate::tui) fn is_ascending(self) -> bool {
        matches!(self.by, None | Some(SortColumn::Event)) != self.inverted
    }
}

impl ScreenModel {
    /// Puts events and relations in order, through their filters, and looks for what stands out.
    pub(super) fn arrange(&mut self) {
        self.diagnose();
        let mut lines = self.lines();
        self.sort_lines(&mut lines, |(line, _)| *line);
        lines.iter_mut().for_each(|(_, parts)| self.sort_lines(parts, |line| *line));
        let order: Vec<_> = lines.into_iter().flat_map(|(line, parts)| std::iter::once(line).chain(parts)).collect();
        if !order.contains(&self.events.cursor) {
            // Past the end is no event: where none matches, none is selected.
            self.events.select(order.first().copied().unwrap_or(EventLine::Event(RowIndex::MAX)));
        }
        self.events.order = order;
        self.events.has_corrected |= self.monitor.rows().any(|row| row.correction().is_some());
        let filter = &self.relations.filter;
        let line = |index| format!("{} {}", self.relation_id(index), self.relation_formula(index));
        let order: Vec<_> = (0..self.monitor.relations().len()).filter(|&index| filter.matches(&line(index))).collect();
        if !order.contains(&self.relations.selected) {
            self.relations.selected = order.first().copied().unwrap_or(0);
        }
        self.relations.order = order;
        self.compare();
    }

    /// Sums, or the parts of one.
    fn sort_lines<T>(&self, lines: &mut Vec<T>, line_of: impl Fn(&T) -> EventLine) {
        let Some(column) = self.events.sort.by else {
            if self.events.sort.inverted {
                lines.reverse();
            }
            return;
        };
        let ascending = self.events.sort.is_ascending();
        let mut keyed: Vec<_> = lines.drain(..).map(|line| (self.sort_key(column, line_of(&line)), line)).collect();
        keyed.sort_by(|(a, _), (b, _)| compare(a, b, ascending));
        lines.extend(keyed.into_iter().map(|(_, line)| line));
    }

    fn sort_key(&self, column: SortColumn, line: EventLine) -> SortKey {
        let figures = self.line_figures(line);
        let shown = figures.shown(self.basis);
        let number = match column {
            SortColumn::Event => return SortKey::Name(self.line_name(line)),
            SortColumn::Mean => shown.map(|figure| figure.mean),
            SortColumn::Error => shown.and_then(|figure| match figure.error {
                Error::Exact => Some(0.0),
                error => error.relative_to(figure.mean),
            }),
            SortColumn::Variance => shown.and_then(|figure| figure.variance),
            SortColumn::Run => figures.run,
            SortColumn::Correction => figures.correction.part(),
        };
        SortKey::Number(number.filter(|number| !number.is_nan()))
    }

    /// Sorts events by a column on the screen beside the one that they are sorted by. The order as given is one, too.
    pub(super) fn sort_events(&mut self, step: isize) {
        let table = &mut self.events;
        let columns = if table.columns.is_empty() { &SortColumn::ALL[..] } else { &table.columns };
        let all: Vec<_> = std::iter::once(None).chain(columns.iter().copied().map(Some)).collect();
        table.sort = Sort { by: neighbour(&all, table.sort.by, step), inverted: false };
        self.arrange();
    }
}

pub(super) enum SortKey {
    Name(String),
    Number(Option<f64>),
}

/// What has no number stands last, whatever the direction.
pub(super) fn compare(a: &SortKey, b: &SortKey, ascending: bool) -> Ordering {
    let directed = |order: Ordering| if ascending { order } else { order.reverse() };
    match (a, b) {
        (SortKey::Name(a), SortKey::Name(b)) => directed(a.cmp(b)),
        (SortKey::Number(Some(a)), SortKey::Number(Some(b))) => directed(a.total_cmp(b)),
        (SortKey::Number(Some(_)), SortKey::Number(None)) => Ordering::Less,
        (SortKey::Number(None), SortKey::Number(Some(_))) => Ordering::Greater,
        _ => Ordering::Equal,
    }
}
