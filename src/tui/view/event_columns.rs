//! Chooses the columns of the table of events that there is room for, and their widths.

use super::columns::fit;
use super::page::ScreenPage;
use super::sum;
use crate::events::Unit;
use crate::monitor::{Measure, MeasureChoice};
use crate::number::BOTH_SIDES;
use crate::rates::Error;
use crate::tui::figures::{CorrectionEffect, Figures, ShownValues};
use crate::tui::layout::Room;
use crate::tui::model::SortColumn;
use crate::tui::text::width;

/// The smallest width of the trend, in cells.
const LEAST_TREND: usize = 6;
/// The smallest one beside a name that is cut.
const LEAST_BESIDE_CUT_NAME: usize = 8;
const LARGE_TREND: usize = 24;
const MOST_TREND: usize = 80;

/// The smallest width of the trend of exact numbers beside their variance.
const TREND_BESIDE_VARIANCE: usize = 20;

/// Cells of a name, before others leave for its sake.
const LEAST_NAME: usize = 14;
const MOST_NAME: usize = 36;
/// Cells of the head of the names with an arrow.
const LEAST_HEAD: usize = 6;

/// Cells of the name of what corrects.
const MOST_BY: usize = 12;

/// A column, with what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventColumn {
    Event,
    /// The interval that ended last.
    Now,
    NowError,
    Mean,
    Error,
    Unit,
    Variance,
    Sigma,
    Cv,
    Min,
    Max,
    Samples,
    Raw,
    RawError,
    Run,
    Off,
    Correction,
    By,
    Trend,
}

/// All columns, in the order of the screen.
const ALL: [EventColumn; 19] = [
    EventColumn::Event,
    EventColumn::Raw,
    EventColumn::RawError,
    EventColumn::Now,
    EventColumn::NowError,
    EventColumn::Mean,
    EventColumn::Unit,
    EventColumn::Error,
    EventColumn::Variance,
    EventColumn::Sigma,
    EventColumn::Cv,
    EventColumn::Min,
    EventColumn::Max,
    EventColumn::Samples,
    EventColumn::Run,
    EventColumn::Off,
    EventColumn::Correction,
    EventColumn::By,
    EventColumn::Trend,
];

/// Columns that only a large screen has.
const LARGE: [EventColumn; 5] =
    [EventColumn::Max, EventColumn::Min, EventColumn::Samples, EventColumn::Cv, EventColumn::Sigma];

/// Columns that a large screen has where something is corrected, and one that shows both raw and corrected numbers.
const BOTH: [EventColumn; 2] = [EventColumn::Raw, EventColumn::RawError];

/// The order in which columns leave a screen that gets narrower.
const LEAVING: [EventColumn; 16] = [
    EventColumn::Max,
    EventColumn::Min,
    EventColumn::Samples,
    EventColumn::Cv,
    EventColumn::Sigma,
    EventColumn::By,
    EventColumn::Variance,
    EventColumn::Trend,
    EventColumn::RawError,
    EventColumn::Raw,
    EventColumn::Correction,
    EventColumn::NowError,
    EventColumn::Off,
    EventColumn::Run,
    EventColumn::Now,
    EventColumn::Unit,
];

impl EventColumn {
    fn width(self) -> usize {
        match self {
            Self::Event => LEAST_NAME,
            Self::Mean => 9,
            Self::Error | Self::NowError | Self::RawError | Self::Correction | Self::Variance | Self::Off => 7,
            Self::Sigma | Self::Min | Self::Max | Self::Raw | Self::Now => 8,
            Self::Cv | Self::Samples | Self::Unit => 6,
            Self::Run => 5,
            Self::By => 4,
            Self::Trend => LEAST_TREND,
        }
    }

    pub(super) fn sorted_by(self) -> Option<SortColumn> {
        match self {
            Self::Event => Some(SortColumn::Event),
            Self::Mean => Some(SortColumn::Mean),
            Self::Error => Some(SortColumn::Error),
            Self::Variance => Some(SortColumn::Variance),
            Self::Run => Some(SortColumn::Run),
            Self::Correction => Some(SortColumn::Correction),
            _ => None,
        }
    }
}

/// Columns with their widths.
pub(super) type EventsLayout = Vec<(EventColumn, usize)>;

/// What a layout of the columns depends on, beside the room.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EventsContents {
    large: bool,
    basis: ShownValues,
    /// Whether numbers are totals, which have no unit and no newest interval.
    totals: bool,
    has_truth: bool,
    has_corrections: bool,
    /// Whether any corrected number or error isn't the raw one.
    differ: bool,
    /// Whether the variances of times are among them, which have a unit.
    has_times: bool,
    /// Whether each number is exact, so that one column says it.
    is_exact: bool,
    /// Whether all of them were counted all the time, so that no part of it has to be said.
    runs_always: bool,
    /// Cells of the longest name, and of the longest name of what corrects.
    name: usize,
    by: usize,
}

impl EventsContents {
    /// Of the figures of all lines.
    pub(super) fn of(page: &ScreenPage<'_>, room: Room, figures: &[Figures]) -> Self {
        let model = page.model;
        let (mut differ, mut by) = (false, 0);
        // A column that was there stays: what is corrected may change with each interval.
        let mut has_corrections = model.events.has_corrected;
        let mut known = figures.iter().filter_map(|figures| figures.raw).peekable();
        let is_exact = known.peek().is_some() && known.all(|raw| raw.error == Error::Exact);
        let is_whole = |figures: &Figures| !figures.is_partial && figures.run.is_none_or(|run| run >= 1.0);
        let runs_always = is_exact && figures.iter().all(is_whole);
        for figures in figures {
            differ |= figures.raw != figures.corrected;
            has_corrections |= figures.correction != CorrectionEffect::None;
            by = by.max(figures.by.map_or(0, |cause| width(&model.cause(cause))));
        }
        Self {
            large: room == Room::Large,
            basis: model.basis,
            totals: model.measures == MeasureChoice::Every(Measure::Total),
            has_truth: !model.monitor.header().truths.is_empty(),
            has_times: model.monitor.header().events.iter().any(|event| event.event.unit == Unit::Nanoseconds),
            has_corrections,
            differ,
            is_exact,
            runs_always,
            name: sum::names(page).into_iter().map(|name| width(&name)).max().unwrap_or(0),
            by,
        }
    }

    /// Whether a column has anything to say.
    fn have(self, column: EventColumn) -> bool {
        let unasked = self.large && self.basis == ShownValues::Corrected && self.differ;
        let with_both = self.basis == ShownValues::Both || unasked;
        match column {
            EventColumn::NowError if self.is_exact => false,
            EventColumn::Now | EventColumn::NowError => !self.totals && (self.large || self.basis != ShownValues::Both),
            EventColumn::Unit => !self.totals,
            EventColumn::Run => !self.runs_always,
            EventColumn::Off => self.has_truth,
            EventColumn::Correction | EventColumn::By => self.has_corrections,
            column if LARGE.contains(&column) => self.large,
            column if BOTH.contains(&column) => with_both,
            _ => true,
        }
    }
}

/// Which columns fit into `room` cells, and the gap between them: a narrow one where more numbers have their error
/// then.
pub(super) fn layout(room: usize, contents: EventsContents) -> (EventsLayout, usize) {
    const GAP: usize = 2;
    let is_error = |column: EventColumn| matches!(column, EventColumn::NowError | EventColumn::RawError);
    let errors = |columns: &EventsLayout| columns.iter().filter(|(column, _)| is_error(*column)).count();
    let [wide, narrow] = [GAP, 1].map(|gap| layout_with(room, gap, contents));
    if errors(&narrow) > errors(&wide) || room < 70 { (narrow, 1) } else { (wide, GAP) }
}

/// The same with a gap; what is left goes to the names and the trend.
fn layout_with(room: usize, gap: usize, contents: EventsContents) -> EventsLayout {
    let columns = ALL.into_iter().filter(|column| contents.have(*column));
    let name = contents.name.clamp(LEAST_HEAD, MOST_NAME);
    let wide = |column| column == EventColumn::Trend && contents.large;
    let cells = |column: EventColumn, shown: &[EventColumn]| match column {
        _ if wide(column) => LARGE_TREND,
        EventColumn::Trend if contents.is_exact && shown.contains(&EventColumn::Variance) => TREND_BESIDE_VARIANCE,
        EventColumn::Event => name.min(LEAST_NAME),
        EventColumn::Variance if contents.has_times => column.width() + width("s²"),
        _ => column.width(),
    };
    let used = |columns: &[(EventColumn, usize)]| {
        columns.iter().map(|(_, width)| width + gap).sum::<usize>().saturating_sub(gap)
    };
    let with_cells =
        |shown: &[EventColumn]| shown.iter().map(|column| (*column, cells(*column, shown))).collect::<Vec<_>>();
    let shown = fit(columns, LEAVING.map(|column| [column]), |columns| used(&with_cells(columns)) <= room);
    let mut columns = with_cells(&shown);
    let mut spare = room.saturating_sub(used(&columns));
    widen(&mut columns, &mut spare, EventColumn::Event, name);
    widen(&mut columns, &mut spare, EventColumn::By, contents.by.min(MOST_BY));
    widen(&mut columns, &mut spare, EventColumn::Trend, MOST_TREND);
    // Always, so that columns stay where they are while errors change.
    let errors = [EventColumn::Error, EventColumn::NowError, EventColumn::RawError];
    let has_room = !contents.is_exact;
    for (_, width) in columns.iter_mut().filter(|(column, _)| errors.contains(column) && has_room) {
        let more = BOTH_SIDES - *width;
        if spare >= 2 * more {
            (*width, spare) = (BOTH_SIDES, spare - more);
        }
    }
    // A name that is cut says less than some cells of a trend.
    let lacks = name.saturating_sub(columns[0].1);
    if let Some((_, width)) = columns.iter_mut().find(|(column, _)| *column == EventColumn::Trend) {
        let given = lacks.min(width.saturating_sub(LEAST_TREND));
        *width -= given;
        let trend = *width;
        columns[0].1 += given;
        if lacks > given && trend < LEAST_BESIDE_CUT_NAME {
            columns[0].1 += (lacks - given).min(trend + gap);
            columns.retain(|(column, _)| *column != EventColumn::Trend);
        }
    }
    // Nothing is as narrow as names that are cut to nothing.
    let over = used(&columns).saturating_sub(room);
    columns[0].1 = columns[0].1.saturating_sub(over).max(3);
    columns
}

/// Gives a column what is spare, up to so many cells.
fn widen(columns: &mut EventsLayout, spare: &mut usize, column: EventColumn, most: usize) {
    if let Some((_, width)) = columns.iter_mut().find(|(found, _)| *found == column) {
        let more = most.saturating_sub(*width).min(*spare);
        *width += more;
        *spare -= more;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn contents(large: bool, basis: ShownValues, has_truth: bool) -> EventsContents {
        let seen = EventsContents { large, basis, totals: false, has_truth, ..EventsContents::default() };
        EventsContents { has_corrections: true, differ: true, name: 12, by: 2, ..seen }
    }

    fn shown_with(room: usize, large: bool, basis: ShownValues) -> Vec<EventColumn> {
        let columns = layout_with(room, if room < 60 { 1 } else { 2 }, contents(large, basis, false));
        columns.into_iter().map(|(column, _)| column).collect()
    }

    fn shown(room: usize, large: bool) -> Vec<EventColumn> {
        shown_with(room, large, ShownValues::Corrected)
    }

    #[test]
    fn columns_without_anything_to_say_are_not_there() {
        let nothing = EventsContents { has_corrections: false, ..contents(false, ShownValues::Corrected, false) };
        let columns: Vec<_> = layout_with(100, 2, nothing).into_iter().map(|(column, _)| column).collect();
        use EventColumn::*;
        assert_eq!(columns, [Event, Now, NowError, Mean, Unit, Error, Variance, Run, Trend]);
        // What is exact is so in each interval as well; the room is for the trend.
        let columns =
            |room, contents| layout_with(room, 2, contents).into_iter().map(|(column, _)| column).collect::<Vec<_>>();
        let exact = EventsContents { is_exact: true, ..nothing };
        assert_eq!(columns(72, exact), [Event, Now, Mean, Unit, Error, Run, Trend]);
        let always = EventsContents { runs_always: true, ..exact };
        assert_eq!(columns(74, always), [Event, Now, Mean, Unit, Error, Trend]);
        assert_eq!(columns(90, always), [Event, Now, Mean, Unit, Error, Variance, Trend]);
        // Where nothing is corrected, raw numbers are the same once more.
        let raw = |basis, differ| {
            let contents = EventsContents { large: true, differ, ..contents(true, basis, false) };
            layout_with(200, 2, contents).iter().any(|(column, _)| *column == Raw)
        };
        assert!(raw(ShownValues::Corrected, true) && !raw(ShownValues::Corrected, false));
        assert!(raw(ShownValues::Both, false) && !raw(ShownValues::Raw, true));
    }

    #[test]
    fn columns_leave_in_order() {
        use EventColumn::*;
        assert_eq!(shown(110, false), [Event, Now, NowError, Mean, Unit, Error, Variance, Run, Correction, By, Trend]);
        assert_eq!(shown(86, false), [Event, Now, NowError, Mean, Unit, Error, Run, Correction, Trend]);
        assert_eq!(shown(77, false), [Event, Now, NowError, Mean, Unit, Error, Run, Correction]);
        assert_eq!(shown(68, false), [Event, Now, NowError, Mean, Unit, Error, Run]);
        assert_eq!(shown(54, false), [Event, Now, Mean, Unit, Error, Run]);
        assert_eq!(shown(46, false), [Event, Now, Mean, Unit, Error]);
        assert_eq!(shown(38, false), [Event, Mean, Unit, Error]);
        assert_eq!(shown(30, false), [Event, Mean, Error]);
        assert_eq!(shown(3, false), [Event, Mean, Error]);
        // Without a truth there is nothing to be off from.
        assert_eq!(shown(200, true).len(), ALL.len() - 1);
        assert_eq!(
            shown_with(84, false, ShownValues::Both),
            [Event, Raw, RawError, Mean, Unit, Error, Run, Correction, Trend]
        );
        assert_eq!(shown_with(54, false, ShownValues::Both), [Event, Mean, Unit, Error, Run, Correction]);
        let totals = EventsContents { totals: true, ..contents(false, ShownValues::Corrected, false) };
        let columns: Vec<_> = layout_with(80, 2, totals).into_iter().map(|(column, _)| column).collect();
        assert_eq!(columns, [Event, Mean, Error, Variance, Run, Correction, By, Trend]);
    }

    #[test]
    fn a_trend_gives_way_to_a_name() {
        let long = EventsContents { name: 20, ..contents(true, ShownValues::Corrected, true) };
        let columns = |room| {
            let columns = layout_with(room, 2, long);
            let width = |of| columns.iter().find(|(column, _)| *column == of).map(|(_, width)| *width);
            (width(EventColumn::Event), width(EventColumn::Trend))
        };
        let taken = |(name, trend): (Option<usize>, Option<usize>)| name.unwrap_or(0) + trend.unwrap_or(0);
        let narrow = (100..200).find(|room| columns(*room).1 == Some(LARGE_TREND - 6)).unwrap();
        assert_eq!(columns(narrow).0, Some(20), "14 and six cells of the trend");
        assert_eq!(taken(columns(narrow + 1)), taken(columns(narrow)) + 1);
        assert_eq!(columns(narrow + 6), (Some(20), Some(LARGE_TREND)));
    }

    #[test]
    fn a_short_trend_leaves_before_a_name_is_cut() {
        let long = EventsContents { name: 24, ..contents(false, ShownValues::Corrected, false) };
        for room in 60..140 {
            let columns = layout_with(room, 2, long);
            let trend = columns.iter().find(|(column, _)| *column == EventColumn::Trend).map(|(_, width)| *width);
            assert!(trend.is_none_or(|trend| columns[0].1 == 24 || trend >= LEAST_BESIDE_CUT_NAME), "{columns:?}");
        }
    }

    #[test]
    fn the_columns_fill_the_room_and_no_more() {
        for room in 32..200 {
            let gap = if room < 60 { 1 } else { 2 };
            let columns = layout_with(room, gap, contents(room > 120, ShownValues::Both, true));
            let used: usize = columns.iter().map(|(_, width)| width + gap).sum::<usize>() - gap;
            assert!(used <= room, "{room}: {used}");
        }
    }
}
