//! Draws what is known of calls whose times were all measured: how many, how long, and how sure their mean is.

use ratatui::text::Span;

use super::super::page::ScreenPage;
use super::table::RowNumbers;
use crate::events::Unit;
use crate::number::{plus_minus, share, si, time};
use crate::profile::CallTimes;
use crate::rates::Uncertain;
use crate::tui::model::profile::ProfileState;
use crate::tui::symbols::MISSING;
use crate::tui::text::{left, right};
use crate::tui::theme::Role;

/// Cells of a name, before columns leave for its sake.
const LEAST_NAME: usize = 16;

/// A number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimedColumn {
    Share,
    Total,
    Own,
    Calls,
    Rate,
    Mean,
    MeanError,
}

/// All columns, in the order of the screen.
const ALL: [TimedColumn; 7] = [
    TimedColumn::Share,
    TimedColumn::Total,
    TimedColumn::Own,
    TimedColumn::Calls,
    TimedColumn::Rate,
    TimedColumn::Mean,
    TimedColumn::MeanError,
];

/// In this order they leave where there is no room.
const LEAVING: [TimedColumn; 6] = [
    TimedColumn::Own,
    TimedColumn::MeanError,
    TimedColumn::Rate,
    TimedColumn::Total,
    TimedColumn::Mean,
    TimedColumn::Calls,
];

impl TimedColumn {
    fn width(self) -> usize {
        match self {
            Self::Share | Self::Calls => 6,
            Self::Total | Self::Own | Self::Mean | Self::Rate => 7,
            Self::MeanError => 6,
        }
    }

    fn text(self, page: &ScreenPage<'_>, numbers: &RowNumbers, profile: &ProfileState) -> String {
        let of_calls = |text: &dyn Fn(&CallTimes) -> String| {
            numbers.times.as_ref().filter(|times| times.calls > 0).map_or_else(|| MISSING.into(), text)
        };
        match self {
            Self::Share => share(profile.share(numbers.total)),
            Self::Total => time(numbers.total.weight as f64),
            Self::Own => time(numbers.own.weight as f64),
            Self::Calls => of_calls(&|times| si(times.calls as f64)),
            Self::Rate => of_calls(&|times| si(times.per_second)),
            Self::Mean => of_calls(&|times| time(times.mean_ns)),
            Self::MeanError => of_calls(&|times| mean_error(page, times)),
        }
    }
}

/// Which columns there is room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedColumns {
    name: usize,
    /// How many of those that leave have left.
    left: usize,
}

impl TimedColumns {
    pub(super) fn of(room: usize) -> Self {
        let mut columns = Self { name: 0, left: 0 };
        while columns.rest() + LEAST_NAME > room && columns.left < LEAVING.len() {
            columns.left += 1;
        }
        columns.name = room.saturating_sub(columns.rest()).max(1);
        columns
    }

    pub(super) fn name(&self) -> usize {
        self.name
    }

    fn shown(&self) -> impl Iterator<Item = TimedColumn> + '_ {
        ALL.into_iter().filter(|column| !LEAVING[..self.left].contains(column))
    }

    fn rest(&self) -> usize {
        2 + self.shown().map(|column| column.width() + 1).sum::<usize>()
    }

    /// The line of heads; `error` is that of errors.
    pub(super) fn heads(&self, name: &str, error: &str) -> String {
        let head = |column: TimedColumn| match column {
            TimedColumn::Share => "TOTAL",
            TimedColumn::Total => "TIME",
            TimedColumn::Own => "SELF",
            TimedColumn::Calls => "CALLS",
            TimedColumn::Rate => "CALLS/S",
            TimedColumn::Mean => "MEAN",
            TimedColumn::MeanError => error,
        };
        let heads = self.shown().map(|column| format!(" {}", right(head(column), column.width())));
        format!("  {}{}", left(name, self.name), heads.collect::<String>())
    }

    /// The numbers of a row.
    pub(super) fn numbers(
        &self,
        page: &ScreenPage<'_>,
        numbers: &RowNumbers,
        profile: &ProfileState,
    ) -> Vec<Span<'static>> {
        let span = |column: TimedColumn| {
            let role = match column {
                TimedColumn::Share => Role::Title,
                TimedColumn::MeanError => Role::Dim,
                _ => Role::Text,
            };
            let gap = if column == TimedColumn::Share { "" } else { " " };
            page.span(role, format!("{gap}{}", right(&column.text(page, numbers, profile), column.width())))
        };
        self.shown().map(span).collect()
    }
}

/// `±1.8%`; a dash of a single call.
fn mean_error(page: &ScreenPage<'_>, times: &CallTimes) -> String {
    let error = times.mean_error(page.model.monitor.confidence());
    plus_minus(Uncertain { value: times.mean_ns, error }, &Unit::Nanoseconds)
}

/// `1.2k calls`, `310/s`, `mean 42.0 µs ±1.8%`: what is known of a selected row.
pub(super) fn words(page: &ScreenPage<'_>, times: &CallTimes) -> Vec<String> {
    if times.calls == 0 {
        return vec!["no call has ended".into()];
    }
    vec![
        format!("{} calls", si(times.calls as f64)),
        format!("{}/s", si(times.per_second)),
        format!("mean {} {}", time(times.mean_ns), mean_error(page, times)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_in_order_and_take_no_more_than_there_is() {
        for room in 26..200 {
            let columns = TimedColumns::of(room);
            assert!(columns.rest() + columns.name <= room, "{room}: {columns:?}");
        }
        let shown = |room| TimedColumns::of(room).shown().count();
        assert_eq!([shown(10), shown(56), shown(76)], [1, 5, 7]);
    }
}
