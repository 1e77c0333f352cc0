//! Names the lines of the table of events: sums, and their parts.

use super::page::ScreenPage;
use crate::names::shown;
use crate::plan::RowIndex;
use crate::tui::model::EventLine;

/// What stands before a name that unfolds, and before one that folds.
const CLOSED: &str = "+ ";
const OPEN: &str = "− ";

/// What stands before a part.
const INDENT: &str = "    ";

/// The names of all lines that there can be.
pub(super) fn names(page: &ScreenPage<'_>) -> Vec<String> {
    let model = page.model;
    let parts = (0..model.monitor.header().events.len()).map(|event| part_name(page, event));
    let sums = (0..model.events.folds.len()).map(|place| short_name(page, EventLine::Sum(place)));
    parts.chain(sums).collect()
}

/// The name of an event; of a part only which part it is, as its sum stands above it.
pub(super) fn part_name(page: &ScreenPage<'_>, event: RowIndex) -> String {
    let model = page.model;
    match model.events.fold_of(event) {
        Some(_) => format!("{INDENT}{}", shown(&model.monitor.header().events[event].scope.to_string())),
        None => model.event_name(event),
    }
}

/// The name with a sign that it unfolds.
pub(super) fn short_name(page: &ScreenPage<'_>, line: EventLine) -> String {
    match line {
        EventLine::Event(event) => part_name(page, event),
        EventLine::Sum(place) => {
            let sign = if page.model.events.folds[place].is_open { OPEN } else { CLOSED };
            format!("{sign}{}", page.model.line_name(line))
        }
    }
}
