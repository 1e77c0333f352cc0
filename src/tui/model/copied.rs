//! Formats the name and the number of what is selected, for the clipboard.

use super::{EventLine, LoopCommand, Pane, ScreenModel, Tail};
use crate::compare::Runs;
use crate::names::shown;
use crate::number::amount;
use crate::text::difference::p_value;
use crate::tui::screen::Screen;
use crate::tui::symbols::MISSING;

impl ScreenModel {
    /// What is selected, in words: its name and its number.
    pub(super) fn copied(&mut self) -> Option<LoopCommand> {
        let text = self.selected_in_words();
        match &text {
            Some(text) => self.tell(format!("copied: {text}")),
            None => self.refuse("nothing is selected here that could be copied"),
        }
        text.map(LoopCommand::Copy)
    }

    fn selected_in_words(&self) -> Option<String> {
        match self.screen {
            Screen::Events | Screen::Detail => self.event_in_words(self.selected_line()?),
            Screen::Relations => {
                let index = Some(self.relations.selected).filter(|index| self.relations.order.contains(index))?;
                Some(format!("{}: {}", self.relation_id(index), self.relation_formula(index)))
            }
            Screen::Profile => self.profile_path(),
            Screen::Groups => {
                let group = self.monitor.header().groups.get(self.group)?;
                let names: Vec<_> = group.members.iter().map(|&event| self.event_name(event)).collect();
                Some(format!("{{{}}}", names.join(",")))
            }
            Screen::Log => self.log_line(),
            Screen::Threads => self.thread_in_words(),
            Screen::Source => self.source_line(),
            Screen::Compare => self.difference_in_words(),
        }
    }

    fn event_in_words(&self, line: EventLine) -> Option<String> {
        let name = self.line_name(line);
        let (figures, unit) = (self.line_figures(line), self.line_unit(line));
        let figure = figures.shown(self.basis);
        Some(figure.map_or_else(
            || name.clone(),
            |figure| {
                let (mean, suffix) = (amount(figure.mean, unit), self.line_suffix(line));
                let blank = if suffix.is_empty() { "" } else { " " };
                format!("{name} {mean}{blank}{suffix} {}", figures.error_within(figure, unit, usize::MAX))
            },
        ))
    }

    fn difference_in_words(&self) -> Option<String> {
        let one = self.comparison.selected()?;
        let mean = |runs: &Runs| runs.mean().map_or_else(|| MISSING.into(), |mean| mean.to_string());
        let (a, b, p) =
            (mean(&one.a), mean(&one.b), one.p.map_or_else(String::new, |p| format!(", p = {}", p_value(p))));
        Some(format!("{} A {a} B {b} {}{p}", shown(&one.name), one.verdict.word()))
    }

    /// The line of the log at the bottom of the screen.
    fn log_line(&self) -> Option<String> {
        let at = |tail: Tail, count: usize| match tail {
            Tail::Follow => count.checked_sub(1),
            Tail::At(place) => Some(place.min(count.checked_sub(1)?)),
        };
        match self.log.pane {
            Pane::Findings => {
                let entries = self.entries();
                at(self.log.findings, entries.len()).map(|place| self.entry_text(entries[place]))
            }
            Pane::Output => {
                let lines = self.output_lines();
                at(self.log.output, lines.len()).map(|place| shown(&lines[place].text).into_owned())
            }
        }
    }

    /// The names on the path to what is selected, as folded stacks have them.
    fn profile_path(&self) -> Option<String> {
        let profile = self.profile.as_ref().filter(|profile| !profile.is_empty())?;
        let names: Vec<_> = profile.path().into_iter().map(|frame| profile.calls.label(frame).name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(";"))
    }
}
