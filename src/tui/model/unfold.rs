//! Folds the rows of an event's threads or CPUs into one row of their sum.

use super::{EventTable, ScreenModel};
use crate::events::Unit;
use crate::monitor::{Absence, Measure, MeasureChoice, Point, SummedEvent};
use crate::plan::RowIndex;
use crate::rates::Uncertain;
use crate::sources::Scope;
use crate::tui::figures::{Figures, without_moment};
use crate::tui::keys::Action;

/// A line of the table of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum EventLine {
    Event(RowIndex),
    /// All parts of an event together: the place of a [`EventFold`].
    Sum(usize),
}

impl Default for EventLine {
    fn default() -> Self {
        Self::Event(0)
    }
}

/// The parts of an event, and whether they are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tui) struct EventFold {
    pub(in crate::tui) parts: SummedEvent,
    pub(in crate::tui) is_open: bool,
}

impl EventTable {
    /// Selects a line. What other screens show of a sum is its first part.
    pub(in crate::tui) fn select(&mut self, line: EventLine) {
        self.cursor = line;
        self.selected = match line {
            EventLine::Event(event) => event,
            EventLine::Sum(place) => self.folds[place].parts.events.first().copied().unwrap_or(RowIndex::MAX),
        };
    }

    /// Folds the parts of events.
    pub(super) fn fold(&mut self, parts: Vec<SummedEvent>) {
        let events = parts.iter().flat_map(|parts| &parts.events).max().map_or(0, |last| last + 1);
        self.fold_of_event = vec![None; events];
        for (place, event) in
            parts.iter().enumerate().flat_map(|(place, parts)| parts.events.iter().map(move |e| (place, e)))
        {
            self.fold_of_event[*event] = Some(place);
        }
        self.folds = parts.into_iter().map(|parts| EventFold { parts, is_open: false }).collect();
    }

    /// The sum that an event is a part of.
    pub(in crate::tui) fn fold_of(&self, event: RowIndex) -> Option<usize> {
        self.fold_of_event.get(event).copied().flatten()
    }

    /// Lines of their own: sums, and events that are counted whole.
    pub(in crate::tui) fn wholes(&self, events: usize) -> Vec<EventLine> {
        let mut lines = Vec::new();
        for event in 0..events {
            match self.fold_of(event) {
                None => lines.push(EventLine::Event(event)),
                Some(place) if self.folds[place].parts.events.first() == Some(&event) => {
                    lines.push(EventLine::Sum(place))
                }
                Some(_) => {}
            }
        }
        lines
    }
}

impl ScreenModel {
    /// The name of a line; that of a part says which part.
    pub(in crate::tui) fn line_name(&self, line: EventLine) -> String {
        match line {
            EventLine::Event(event) => self.event_name(event),
            EventLine::Sum(place) => crate::names::shown(&self.events.folds[place].parts.name).into_owned(),
        }
    }

    /// The title of a line that has no line above it to say of what it is a part, or a sum.
    pub(in crate::tui) fn line_title(&self, line: EventLine) -> String {
        match line {
            EventLine::Event(event) => self.event_name(event),
            EventLine::Sum(place) => format!("{} ─ sum of {}", self.line_name(line), self.parts_in_words(place)),
        }
    }

    /// The number of parts in words: `8 CPUs`, `3 threads`.
    fn parts_in_words(&self, place: usize) -> String {
        let events = &self.events.folds[place].parts.events;
        let kind = match events.first().map(|&event| &self.monitor.header().events[event].scope) {
            Some(Scope::Cpu(_)) => "CPUs",
            Some(Scope::Thread { .. }) => "threads",
            _ => "parts",
        };
        format!("{} {kind}", events.len())
    }

    pub(in crate::tui) fn line_figures(&self, line: EventLine) -> Figures {
        self.line_figures_in(line, self.line_measure(line))
    }

    /// The measure of a line's numbers.
    pub(in crate::tui) fn line_measure(&self, line: EventLine) -> Measure {
        self.measures.of(&self.monitor, self.first_event(line))
    }

    /// The measure of a line's intervals. A total grows all the time, so that theirs is the usual rate.
    pub(in crate::tui) fn interval_measure(&self, line: EventLine) -> Measure {
        match self.line_measure(line) {
            Measure::Total => self.monitor.usual_measure(self.first_event(line)),
            rate => rate,
        }
    }

    /// An event, or the first of a sum, which all have one unit.
    fn first_event(&self, line: EventLine) -> RowIndex {
        match line {
            EventLine::Event(event) => event,
            EventLine::Sum(place) => self.events.folds[place].parts.events[0],
        }
    }

    /// What stands behind a line's numbers: `/s`.
    pub(in crate::tui) fn line_suffix(&self, line: EventLine) -> &'static str {
        self.line_measure(line).suffix(self.monitor.header())
    }

    pub(in crate::tui) fn line_figures_in(&self, line: EventLine, measure: Measure) -> Figures {
        match line {
            EventLine::Event(event) => Figures::of(&self.monitor, event, measure),
            EventLine::Sum(place) => Figures::of_sum(&self.monitor, &self.events.folds[place].parts.events, measure),
        }
    }

    /// Selects the line of an event in the table, or of the sum that hides it; where a filter hides both, nothing
    /// changes.
    pub(super) fn select_line_of(&mut self, event: RowIndex) {
        let sum = self.events.fold_of(event).map(EventLine::Sum);
        let lines = std::iter::once(EventLine::Event(event)).chain(sum);
        if let Some(line) = lines.into_iter().find(|line| self.events.order.contains(line)) {
            self.events.select(line);
        }
    }

    /// What is shown in Detail; `None` where no event passes the filter.
    pub(in crate::tui) fn selected_line(&self) -> Option<EventLine> {
        (self.events.selected < self.monitor.header().events.len()).then_some(self.events.cursor)
    }

    /// The newest intervals of a line, in the unit of charts.
    pub(in crate::tui) fn line_points(&self, line: EventLine, most: usize) -> Vec<Point> {
        let (measure, most) = (self.interval_measure(line), most.saturating_add(1));
        let points = match line {
            EventLine::Event(event) => measure.newest(&self.monitor, &self.monitor.row(event), most),
            EventLine::Sum(place) => measure.points_of_sum(&self.monitor, &self.events.folds[place].parts.events, most),
        };
        without_moment(&self.monitor, points)
    }

    pub(in crate::tui) fn line_unit(&self, line: EventLine) -> &Unit {
        &self.monitor.header().events[self.first_event(line)].event.unit
    }

    /// Why a line has no number.
    pub(in crate::tui) fn line_absence(&self, line: EventLine) -> Option<Absence> {
        match line {
            EventLine::Event(event) => self.monitor.row(event).absence,
            EventLine::Sum(place) => self.monitor.sum(&self.events.folds[place].parts.events).absence,
        }
    }

    /// Why what was counted has no number in the unit that was chosen.
    pub(in crate::tui) fn no_unit_words(&self) -> &'static str {
        let is_by_instructions = self.measures == MeasureChoice::Every(Measure::PerKiloInstruction);
        if is_by_instructions && !self.monitor.knows_instructions() {
            return "count instructions to see this unit";
        }
        "no number in this unit"
    }

    /// What a line counted in all, as it is shown: scaled, and estimated.
    pub(in crate::tui) fn line_totals(&self, line: EventLine) -> (Option<Uncertain>, Option<Uncertain>) {
        match line {
            EventLine::Event(event) => {
                let row = self.monitor.row(event);
                (row.scaled, row.estimate.total)
            }
            EventLine::Sum(place) => {
                let sum = self.monitor.sum(&self.events.folds[place].parts.events);
                (sum.scaled, sum.estimate)
            }
        }
    }

    /// The lines through the filter: a sum is there where one of its parts is, and open where the
    /// filter is about parts.
    pub(super) fn lines(&self) -> Vec<(EventLine, Vec<EventLine>)> {
        let filter = &self.events.filter;
        let events = &self.monitor.header().events;
        let through = |event: &RowIndex| filter.matches(&events[*event].event.name);
        let mut lines = Vec::new();
        for line in self.events.wholes(events.len()) {
            match line {
                EventLine::Event(event) if through(&event) => lines.push((line, Vec::new())),
                EventLine::Event(_) => {}
                EventLine::Sum(place) => {
                    let EventFold { parts, is_open } = &self.events.folds[place];
                    let named = parts.events.iter().any(through);
                    let titled = |event: &&RowIndex| named || filter.matches(&events[**event].title());
                    let shown: Vec<_> =
                        parts.events.iter().filter(titled).map(|&event| EventLine::Event(event)).collect();
                    if !shown.is_empty() {
                        lines.push((line, if *is_open || !named { shown } else { Vec::new() }));
                    }
                }
            }
        }
        lines
    }

    /// Shows parts, or hides them.
    pub(super) fn unfold(&mut self, action: Action) {
        if self.events.folds.is_empty() {
            self.refuse("nothing to unfold: -A and --per-thread count parts");
            return;
        }
        let place = match self.events.cursor {
            EventLine::Sum(place) => Some(place),
            EventLine::Event(event) => self.events.fold_of(event),
        };
        for (index, fold) in self.events.folds.iter_mut().enumerate() {
            match action {
                Action::UnfoldAll => fold.is_open = true,
                Action::FoldAll => fold.is_open = false,
                _ if Some(index) != place => {}
                Action::Unfold => fold.is_open = true,
                Action::Fold => fold.is_open = false,
                _ => fold.is_open = !fold.is_open,
            }
        }
        // What is hidden can't be selected.
        if let Some(place) = place.filter(|&place| !self.events.folds[place].is_open) {
            self.events.select(EventLine::Sum(place));
        }
        self.arrange();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::{self, event, measured};
    use crate::estimate::EstimatorKind;
    use crate::run::MeasuredEvent;
    use crate::tui::model::{Filter, LoopCommand, Message, update};
    use crate::tui::options::ScreenOptions;
    use crate::tui::typed::parse_keys;

    /// `cycles` on two CPUs, and `faults`.
    fn model() -> ScreenModel {
        let part = |cpu| MeasuredEvent { scope: Scope::Cpu(cpu), ..measured(event("cycles")) };
        let header = builders::header([part(0), part(1), measured(event("faults"))]);
        ScreenModel::new(builders::monitor(header, vec![], EstimatorKind::Scale), &ScreenOptions::default())
    }

    #[test]
    fn an_event_is_selected_in_the_line_that_it_has() {
        let mut model = model();
        assert_eq!([0, 1, 2, 9].map(|event| model.events.fold_of(event)), [Some(0), Some(0), None, None]);
        model.select_line_of(2);
        assert_eq!(model.events.cursor, EventLine::Event(2));
        model.select_line_of(1);
        assert_eq!(model.events.cursor, EventLine::Sum(0));
        model.unfold(Action::UnfoldAll);
        model.select_line_of(1);
        assert_eq!(model.events.cursor, EventLine::Event(1));
        model.events.filter = Filter::new("faults".into());
        model.arrange();
        model.select_line_of(1);
        assert_eq!(model.events.cursor, EventLine::Event(2), "the filter hides the others");
    }

    #[test]
    fn what_is_copied_of_a_sum_is_the_sum() {
        let mut model = model();
        let mut copied = |keys: &str| {
            let pressed = parse_keys(keys).into_iter().map(|key| update(&mut model, Message::Key(key)));
            pressed.last().flatten()
        };
        assert_eq!(copied("2y"), Some(LoopCommand::Copy("cycles".into())));
        assert_eq!(copied("3y"), None, "there are no relations");
    }
}
