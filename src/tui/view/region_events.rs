//! Draws what the events of a region counted that the reader chose.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::columns::fit;
use super::page::{ScreenPage, make_room};
use super::profile::EMULATED;
use crate::names::shown;
use crate::number::{amount, plus_minus, si, time};
use crate::profile::CallTimes;
use crate::rates::Uncertain;
use crate::tui::layout::Room;
use crate::tui::model::profile::{ChosenRegion, ProfileState, RegionEvent};
use crate::tui::options::Mode;
use crate::tui::symbols::MISSING;
use crate::tui::text::{cut_middle, left, right, wrap};
use crate::tui::theme::Role;

/// Cells of a number, and of an event's name before columns leave for its sake.
const NUMBER: usize = 8;
const LEAST_NAME: usize = 14;

/// A number of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Count,
    Error,
    Own,
    Mean,
    Rate,
    Calls,
}

/// All columns, in the order of the screen.
const ALL: [Column; 6] = [Column::Count, Column::Error, Column::Own, Column::Mean, Column::Rate, Column::Calls];

/// In this order they leave where there is no room.
const LEAVING: [Column; 5] = [Column::Own, Column::Calls, Column::Rate, Column::Error, Column::Count];

impl Column {
    fn head(self, error: &str) -> &str {
        match self {
            Self::Count => "COUNT",
            Self::Error => error,
            Self::Own => "SELF",
            Self::Mean => "MEAN",
            Self::Rate => "/S",
            Self::Calls => "CALLS",
        }
    }

    /// The number of an event, if it was counted.
    fn text(self, page: &ScreenPage<'_>, event: &RegionEvent) -> Option<String> {
        let counts = event.calls?.counts;
        let unit = &event.unit;
        if !counts.is_counted() {
            return None;
        }
        Some(match self {
            Self::Count => amount(counts.count, unit),
            Self::Error => {
                let error = counts.error(page.model.monitor.confidence());
                plus_minus(Uncertain { value: counts.count, error }, unit)
            }
            Self::Own => amount(counts.own?, unit),
            Self::Mean => amount(counts.mean(), unit),
            Self::Rate => amount(counts.per_second?, unit),
            Self::Calls => si(counts.measured as f64),
        })
    }
}

/// The columns that there is room for, and the cells of a name.
fn columns(room: usize) -> (Vec<Column>, usize) {
    let rest = |columns: &[Column]| columns.len() * (NUMBER + 1);
    let shown = fit(ALL, LEAVING.map(|column| [column]), |columns| rest(columns) + LEAST_NAME <= room);
    let name = room.saturating_sub(rest(&shown)).max(1);
    (shown, name)
}

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, profile: &ProfileState, region: &ChosenRegion) {
    let (times, events) = profile.region_events(region);
    let inner = match Room::on(page.model.screen_size()) {
        Room::Lines => area,
        _ => {
            let title = title(page, &profile.calls.label(region.frame).name, times.as_ref());
            let back = Line::from(page.span(Role::Dim, "r back to the region"));
            let mut title = title;
            make_room(&mut title, &back, area);
            page.panel(area, title, back, true)
        }
    };
    if events.is_empty() {
        return words(page, inner, nothing(page.model.options.mode));
    }
    let (columns, name) = columns(usize::from(inner.width));
    let error = page.model.error_head();
    let heads: String = columns.iter().map(|column| format!(" {}", right(column.head(&error), NUMBER))).collect();
    let mut rows = inner.rows();
    if let Some(row) = rows.next() {
        page.line(row, Line::from(page.span(Role::Header, format!("{}{heads}", left("EVENT", name)))));
    }
    for (event, row) in events.iter().zip(rows) {
        let text = cut_middle(&shown(&event.name), name).into_owned();
        let number = |column: &Column| column.text(page, event).unwrap_or_else(|| MISSING.into());
        let numbers = columns.iter().map(|column| {
            let role = if *column == Column::Error { Role::Dim } else { Role::Text };
            page.span(role, format!(" {}", right(&number(column), NUMBER)))
        });
        let mut line = Line::from(page.span(Role::Text, left(&text, name)));
        line.spans.extend(numbers.collect::<Vec<_>>());
        page.line(row, line);
    }
}

/// `Events in region model ─ 52k calls ─ 52k/s ─ mean 596 µs`.
fn title(page: &ScreenPage<'_>, name: &str, times: Option<&CallTimes>) -> Line<'static> {
    let mut line = Line::from(page.span(Role::Title, format!("Events in region {}", cut_middle(name, 24))));
    let mean = times.and_then(CallTimes::mean).map_or_else(|| MISSING.into(), time);
    let parts = match times.filter(|times| times.calls > 0) {
        None => vec!["no call has ended".to_owned()],
        Some(times) => vec![
            format!("{} calls", si(times.calls as f64)),
            format!("{}/s", si(times.per_second)),
            match page.model.monitor.header().modelled {
                Some(_) => format!("mean {mean}, {EMULATED}"),
                None => format!("mean {mean}"),
            },
        ],
    };
    for part in parts {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(Role::Dim, part));
    }
    line
}

/// Why there are no events, and what to do.
fn nothing(mode: Mode) -> &'static str {
    match mode {
        Mode::Live => {
            "no events are counted in regions: perfprop top --region-events instructions,page-faults -- COMMAND counts these. \
             A program that runs already has to be started with PERFPROP_REGION_EVENTS=instructions,page-faults"
        }
        Mode::Replay { .. } | Mode::Stacks { .. } => {
            "no events were counted in regions: perfprop record --region-events instructions,page-faults -- COMMAND \
             records these"
        }
    }
}

fn words(page: &mut ScreenPage<'_>, area: Rect, words: &str) {
    for (line, row) in wrap(words, usize::from(area.width)).into_iter().zip(area.rows()) {
        page.line(row, Line::from(page.span(Role::Dim, line)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_in_order_and_take_no_more_than_there_is() {
        for room in 10..200 {
            let (columns, name) = columns(room);
            assert!(columns.len() * (NUMBER + 1) + name <= room, "{room}: {columns:?}");
        }
        assert_eq!([10, 40, 68].map(|room| columns(room).0.len()), [1, 2, 6]);
        assert_eq!(columns(59).0, [Column::Count, Column::Error, Column::Mean, Column::Rate, Column::Calls]);
    }
}
