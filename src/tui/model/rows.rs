//! Remembers which rows of each list are on the screen: keys go by pages of them, and only what has to scrolls.

use super::step::{Tail, first_row};
use super::{DrawnThreads, Over, Pane, ScreenModel, SortColumn};
use crate::tui::screen::Screen;

/// A list that scrolls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum ScrolledList {
    /// The list of a screen, which may be a part of another screen, too.
    Of(Screen),
    Help,
}

/// Rows of a list on the screen: how many there is room for, and how many there are.
#[derive(Clone, Copy, Debug)]
pub(in crate::tui) struct VisibleRows {
    /// The first one on the screen.
    pub(in crate::tui) first: usize,
    pub(in crate::tui) rows: usize,
    pub(in crate::tui) all: usize,
}

impl VisibleRows {
    /// The same list with another selection or another height: it scrolls no further than needed.
    pub(in crate::tui) fn scrolled(self, selected: usize, all: usize, rows: usize) -> Self {
        Self { first: first_row(selected, self.first, all, rows), rows, all }
    }

    /// A list that wasn't there before: the selected row is in the middle.
    pub(in crate::tui) fn around(selected: usize, all: usize, rows: usize) -> Self {
        Self { first: selected.saturating_sub(rows / 2).min(all.saturating_sub(rows)), rows, all }
    }
}

/// The lists that were drawn last, each with the rows that were on the screen then.
#[derive(Debug, Default)]
pub(in crate::tui) struct DrawnLists(Vec<(ScrolledList, VisibleRows)>);

impl DrawnLists {
    pub(in crate::tui) fn of(&self, list: ScrolledList) -> Option<VisibleRows> {
        self.0.iter().find(|(drawn, _)| *drawn == list).map(|(_, rows)| *rows)
    }

    pub(in crate::tui) fn set(&mut self, list: ScrolledList, rows: VisibleRows) {
        self.forget(list);
        self.0.push((list, rows));
    }

    pub(super) fn forget(&mut self, list: ScrolledList) {
        self.0.retain(|(drawn, _)| *drawn != list);
    }
}

/// What was drawn that keys and the next frame depend on.
#[derive(Debug, Default)]
pub(in crate::tui) struct DrawnScreen {
    pub(in crate::tui) lists: DrawnLists,
    pub(in crate::tui) threads: Option<DrawnThreads>,
    /// The columns that events can be sorted by, from the left.
    pub(in crate::tui) event_columns: Option<Vec<SortColumn>>,
    /// The rows above the events that say what stands out.
    pub(in crate::tui) diagnosis_rows: Option<DiagnosisRows>,
}

/// How many rows sentences about what stands out have in a region of this size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct DiagnosisRows {
    pub(in crate::tui) region: (u16, u16),
    pub(in crate::tui) rows: usize,
}

/// Rows of a page of a list that wasn't drawn yet.
const UNSEEN_PAGE: usize = 10;

impl ScreenModel {
    /// How many rows of a list are on the screen.
    pub(super) fn page(&self, list: ScrolledList) -> usize {
        self.lists.of(list).map_or(UNSEEN_PAGE, |drawn| drawn.rows.max(1))
    }

    /// Remembers what was drawn. Where a list can't be scrolled as far as was asked, keys go on from where it is.
    pub(in crate::tui) fn remember_drawn(&mut self, drawn: DrawnScreen) {
        self.remember_drawn_threads(drawn.threads);
        if let Some(columns) = drawn.event_columns {
            self.events.columns = columns;
        }
        self.diagnosis_rows = drawn.diagnosis_rows.unwrap_or(self.diagnosis_rows);
        let drawn = drawn.lists;
        if let (Over::Help(help), Some(rows)) = (&mut self.over, drawn.of(ScrolledList::Help)) {
            help.top = rows.first;
        }
        if let (Screen::Log, Some(rows)) = (self.screen, drawn.of(ScrolledList::Of(Screen::Log))) {
            let tail = match self.log.pane {
                Pane::Findings => &mut self.log.findings,
                Pane::Output => &mut self.log.output,
            };
            *tail = match (rows.first + rows.rows).checked_sub(1) {
                Some(last) if rows.rows > 0 && last + 1 < rows.all => Tail::At(last),
                Some(_) if rows.rows > 0 => Tail::Follow,
                _ => *tail,
            };
        }
        for (list, rows) in drawn.0 {
            self.lists.set(list, rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_begins_around_what_is_selected_and_then_stays() {
        let before = VisibleRows::around(10, 20, 8);
        assert_eq!((before.first, before.scrolled(13, 20, 8).first, before.scrolled(14, 20, 8).first), (6, 6, 7));
    }
}
