//! Draws what was measured of calls: how many there were, how long they took or what was counted in them, and how sure
//! that is.

use ratatui::text::Span;

use super::super::columns::fit;
use super::super::page::ScreenPage;
use super::table::RowNumbers;
use crate::events::Unit;
use crate::number::{amount, plus_minus, share, si, time};
use crate::rates::Uncertain;
use crate::tui::model::profile::{CallMeasure, ProfileState, RowCalls};
use crate::tui::symbols::MISSING;
use crate::tui::text::{left, right};
use crate::tui::theme::Role;

/// Cells of a name, before columns leave for its sake.
const LEAST_NAME: usize = 16;

/// A number of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallColumn {
    Share,
    Total,
    Own,
    Calls,
    Rate,
    Mean,
    Error,
}

/// All columns, in the order of the screen.
const ALL: [CallColumn; 7] = [
    CallColumn::Share,
    CallColumn::Total,
    CallColumn::Own,
    CallColumn::Calls,
    CallColumn::Rate,
    CallColumn::Mean,
    CallColumn::Error,
];

/// In this order they leave where there is no room.
const LEAVING: [CallColumn; 6] =
    [CallColumn::Own, CallColumn::Error, CallColumn::Rate, CallColumn::Total, CallColumn::Mean, CallColumn::Calls];

impl CallColumn {
    fn width(self) -> usize {
        match self {
            Self::Share | Self::Calls => 6,
            Self::Total | Self::Own | Self::Mean | Self::Rate => 7,
            Self::Error => 6,
        }
    }

    fn text(self, page: &ScreenPage<'_>, numbers: &RowNumbers, profile: &ProfileState) -> String {
        let Some(measure) = profile.call_measure() else { return MISSING.into() };
        let of_calls = |text: &dyn Fn(&RowCalls) -> String| {
            numbers.calls.as_ref().filter(|calls| calls.times.calls > 0).map_or_else(|| MISSING.into(), text)
        };
        match self {
            Self::Share => share(profile.share(numbers.total)),
            Self::Total => total(numbers, measure),
            Self::Own => own(numbers, measure),
            Self::Calls => of_calls(&|calls| si(number_of(calls, measure) as f64)),
            // How often a region runs backwards is not known of late.
            Self::Rate => of_calls(&|calls| match number_of(calls, measure) == calls.times.calls {
                true => si(calls.times.per_second),
                false => MISSING.into(),
            }),
            Self::Mean => of_calls(&|calls| mean(calls, measure)),
            Self::Error => of_calls(&|calls| error(page, calls, measure)),
        }
    }
}

/// How many calls there were, or runs backwards where those are measured.
fn number_of(calls: &RowCalls, measure: &CallMeasure) -> u64 {
    match measure {
        CallMeasure::Time => calls.times.calls,
        CallMeasure::Count(_) => calls.counts.calls,
    }
}

/// What was measured in all. Of a region whose calls were counted it is what those that ended counted.
fn total(numbers: &RowNumbers, measure: &CallMeasure) -> String {
    match (measure, numbers.calls) {
        (CallMeasure::Time, calls) => measured_time(numbers.total.weight, calls),
        (CallMeasure::Count(unit), Some(calls)) if calls.times.calls > 0 => counted(&calls, calls.counts.count, unit),
        (CallMeasure::Count(unit), _) => amount(numbers.total.weight as f64, unit),
    }
}

/// A time; where all of it was taken off, as measuring the calls took as long, it isn't known.
fn measured_time(ns: u64, calls: Option<RowCalls>) -> String {
    match calls {
        Some(calls) if ns == 0 && calls.times.markers_ns > 0.0 => MISSING.into(),
        _ => time(ns as f64),
    }
}

/// What was measured outside of the regions within.
fn own(numbers: &RowNumbers, measure: &CallMeasure) -> String {
    match (measure, numbers.calls) {
        (CallMeasure::Time, calls) => measured_time(numbers.own.weight, calls),
        (CallMeasure::Count(unit), Some(calls)) if calls.times.calls > 0 => {
            calls.counts.own.map_or_else(|| MISSING.into(), |own| counted(&calls, own, unit))
        }
        (CallMeasure::Count(unit), _) => amount(numbers.own.weight as f64, unit),
    }
}

/// The mean of a call.
fn mean(calls: &RowCalls, measure: &CallMeasure) -> String {
    match measure {
        CallMeasure::Time => calls.times.mean().map_or_else(|| MISSING.into(), time),
        CallMeasure::Count(unit) => counted(calls, calls.counts.mean(), unit),
    }
}

/// A number of counts; none where nothing was counted.
fn counted(calls: &RowCalls, counts: f64, unit: &Unit) -> String {
    if calls.counts.is_counted() { amount(counts, unit) } else { MISSING.into() }
}

/// The cells of all but the name.
fn rest(shown: &[CallColumn]) -> usize {
    2 + shown.iter().map(|column| column.width() + 1).sum::<usize>()
}

/// Which columns there is room for.
#[derive(Clone, Debug)]
pub(super) struct CallColumns {
    name: usize,
    shown: Vec<CallColumn>,
}

impl CallColumns {
    pub(super) fn of(room: usize) -> Self {
        let shown = fit(ALL, LEAVING.map(|column| [column]), |shown| rest(shown) + LEAST_NAME <= room);
        Self { name: room.saturating_sub(rest(&shown)).max(1), shown }
    }

    pub(super) fn name(&self) -> usize {
        self.name
    }

    /// The line of heads; `error` is that of errors of counts. Times are exact, and their mean has an error of another
    /// kind: calls differ.
    pub(super) fn heads(&self, name: &str, error: &str, measure: &CallMeasure) -> String {
        let head = |column: CallColumn| match column {
            CallColumn::Share => "TOTAL",
            CallColumn::Total if *measure == CallMeasure::Time => "TIME",
            CallColumn::Total => "COUNT",
            CallColumn::Own => "SELF",
            CallColumn::Calls => "CALLS",
            CallColumn::Rate => "CALLS/S",
            CallColumn::Mean => "MEAN",
            CallColumn::Error if *measure == CallMeasure::Time => "±MEAN",
            CallColumn::Error => error,
        };
        let heads = self.shown.iter().map(|column| format!(" {}", right(head(*column), column.width())));
        format!("  {}{}", left(name, self.name), heads.collect::<String>())
    }

    /// The numbers of a row.
    pub(super) fn numbers(
        &self,
        page: &ScreenPage<'_>,
        numbers: &RowNumbers,
        profile: &ProfileState,
    ) -> Vec<Span<'static>> {
        let span = |column: CallColumn| {
            let role = match column {
                CallColumn::Share => Role::Title,
                CallColumn::Error => Role::Dim,
                _ => Role::Text,
            };
            let gap = if column == CallColumn::Share { "" } else { " " };
            page.span(role, format!("{gap}{}", right(&column.text(page, numbers, profile), column.width())))
        };
        self.shown.iter().copied().map(span).collect()
    }
}

/// `±1.8%`; `±?` of a single call, and where measuring calls took more than they did. Of times it is the error of the
/// mean, of counts that of the count, and with it of the mean: the number of calls is exact.
fn error(page: &ScreenPage<'_>, calls: &RowCalls, measure: &CallMeasure) -> String {
    let confidence = page.model.monitor.confidence();
    let RowCalls { times, counts } = calls;
    match measure {
        CallMeasure::Time => {
            let mean = Uncertain { value: times.mean_ns, error: times.mean_error(confidence) };
            plus_minus(mean, &Unit::Nanoseconds)
        }
        CallMeasure::Count(unit) if counts.is_counted() => {
            plus_minus(Uncertain { value: counts.count, error: counts.error(confidence) }, unit)
        }
        CallMeasure::Count(_) => MISSING.into(),
    }
}

/// `1.2k calls`, `310/s`, `mean 42.0 µs ±1.8%`: what is known of a selected row.
pub(super) fn words(page: &ScreenPage<'_>, calls: &RowCalls, measure: &CallMeasure) -> Vec<String> {
    if calls.times.calls == 0 {
        return vec!["no call has ended".into()];
    }
    vec![
        format!("{} calls", si(calls.times.calls as f64)),
        format!("{}/s", si(calls.times.per_second)),
        match measure {
            CallMeasure::Count(_) if !calls.counts.is_counted() => "not counted".into(),
            _ => format!("mean {} {}", mean(calls, measure), error(page, calls, measure)),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CallCounts, CallTimes};

    #[test]
    fn a_time_of_which_nothing_is_left_is_not_0() {
        let of = |markers_ns| {
            let times = CallTimes { calls: 3, markers_ns, ..CallTimes::default() };
            Some(RowCalls { times, counts: CallCounts::default() })
        };
        assert_eq!([measured_time(0, of(5.0)), measured_time(0, of(0.0)), measured_time(0, None)], ["—", "0 s", "0 s"]);
        assert_eq!(measured_time(7, of(5.0)), "7.00 ns");
    }

    #[test]
    fn columns_leave_in_order_and_take_no_more_than_there_is() {
        for room in 26..200 {
            let columns = CallColumns::of(room);
            assert!(rest(&columns.shown) + columns.name <= room, "{room}: {columns:?}");
        }
        let shown = |room| CallColumns::of(room).shown.len();
        assert_eq!([shown(10), shown(56), shown(76)], [1, 5, 7]);
    }
}
