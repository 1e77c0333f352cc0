//! Leads through the screens in steps: what each shows, and its words.

use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::{EventLine, LoopCommand, ScreenModel};
use crate::tui::figures::ShownValues;
use crate::tui::screen::Screen;

/// A step of the tour, for the recording that `perfprop demo` plays.
#[derive(Debug)]
pub(in crate::tui) struct TourStep {
    /// What it is about.
    pub(in crate::tui) title: &'static str,
    /// A sentence or three, which fit into four lines of 78 cells.
    pub(in crate::tui) words: &'static str,
    screen: Screen,
    basis: ShownValues,
    /// The relation that is selected, by its id.
    relation: Option<&'static str>,
}

/// The event that is selected.
const EVENT: &str = "L1_LOAD_MISSES";

/// All steps.
pub(in crate::tui) const STEPS: [TourStep; 5] = [
    TourStep {
        title: "What multiplexing hides",
        words: "Six events on four counters take turns. RUN% says how much of the time each was counted; the rest is scaled up, as \
                perf does. These counters are emulated, so the truth is known: OFF says how far each number is off.",
        screen: Screen::Events,
        basis: ShownValues::Raw,
        relation: None,
    },
    TourStep {
        title: "Error bars",
        words: "Each number says how far it can be trusted: ±95% should hold the truth in 95 of 100 cases, which perfprop check \
                --validate measures on your machine. The table below the chart shows it as low and high.",
        screen: Screen::Detail,
        basis: ShownValues::Raw,
        relation: None,
    },
    TourStep {
        title: "A relation that helps",
        words: "L1_LOAD_MISSES = L2_HITS + L2_LOAD_MISSES. While two of them are on counters, the third is known as well: \
                here that is nearly all the time. Compare the rows raw and corrected below the chart: the ± has all but gone.",
        screen: Screen::Detail,
        basis: ShownValues::Corrected,
        relation: None,
    },
    TourStep {
        title: "A relation that is violated",
        words: "LOADS = 2 * STORES is wrong on purpose. What was counted contradicts it, so it corrects nothing any more. The Log \
                says since when.",
        screen: Screen::Relations,
        basis: ShownValues::Corrected,
        relation: Some("wrong"),
    },
    TourStep {
        title: "Where it happens",
        words: "The functions with most of an event, and who called them. ] shows the next event, and ? lists all keys, \
                which work in the tour, too. For your own program:  perfprop top -g -- ./prog",
        screen: Screen::Profile,
        basis: ShownValues::Corrected,
        relation: None,
    },
];

impl ScreenModel {
    /// Shows what a step is about.
    pub(super) fn show_step(&mut self, step: usize) {
        let Some(shown) = STEPS.get(step) else { return };
        self.tour = Some(step);
        (self.screen, self.basis) = (shown.screen, shown.basis);
        let events = &self.monitor.header().events;
        if let Some(event) = events.iter().position(|event| event.event.is_called(EVENT)) {
            self.events.select(EventLine::Event(event));
        }
        let named = |id| self.monitor.relations().iter().position(|relation| relation.id == id);
        if let Some(relation) = shown.relation.and_then(named) {
            self.relations.selected = relation;
        }
    }

    /// Goes on, back, or out of the tour; all other keys work as without it.
    pub(super) fn tour_key(&mut self, key: KeyEvent, step: usize) -> Option<LoopCommand> {
        match key.code {
            KeyCode::Enter | KeyCode::Right if step + 1 < STEPS.len() => self.show_step(step + 1),
            KeyCode::Backspace | KeyCode::Left => self.show_step(step.saturating_sub(1)),
            KeyCode::Enter | KeyCode::Esc => self.tour = None,
            _ => return self.screen_key(key),
        }
        None
    }
}
