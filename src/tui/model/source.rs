//! Holds the state of the Source screen: one function of the profile, line by line.

use super::step::ListStep;
use super::{LoopCommand, Notice, ScreenModel};
use crate::profile::Amount;
use crate::stacks::{FunctionLines, LineSamples};
use crate::tui::keys::Action;
use crate::tui::model::profile::{FrameIndex, Listing};
use crate::tui::screen::Screen;
use crate::tui::source_text::FileText;

/// A function with its samples by lines.
#[derive(Clone, Debug, Default)]
pub(in crate::tui) struct SourceState {
    /// Places of the function and of the event in the profile.
    pub(in crate::tui) function: FrameIndex,
    pub(in crate::tui) event: usize,
    pub(in crate::tui) lines: FunctionLines,
    pub(in crate::tui) text: FileText,
    /// The rows: all lines of the file or, without it, those that were sampled.
    pub(in crate::tui) rows: Vec<u32>,
    /// The selected row.
    pub(in crate::tui) row: usize,
}

impl SourceState {
    /// A function as it was sampled so far, at the line with most samples.
    pub(in crate::tui) fn new(function: FrameIndex, event: usize, lines: FunctionLines, text: FileText) -> Self {
        let hottest = lines.hottest();
        let mut state = Self { function, event, text, ..Self::default() };
        state.take(lines);
        state.row = state.rows.iter().position(|row| Some(*row) == hottest).unwrap_or(0);
        state
    }

    /// Takes over what was sampled by now; the same line stays selected.
    pub(in crate::tui) fn take(&mut self, lines: FunctionLines) {
        let selected = self.rows.get(self.row).copied();
        let sampled = lines.lines.keys().copied();
        self.rows = match &self.text {
            FileText::Lines(text, _) => {
                let last = u32::try_from(text.len()).unwrap_or(u32::MAX);
                (1..=last).chain(sampled.filter(|line| !(1..=last).contains(line))).collect()
            }
            FileText::Missing(_) => sampled.collect(),
        };
        self.lines = lines;
        let place = self.rows.iter().position(|row| Some(*row) == selected);
        self.row = place.unwrap_or(self.row.min(self.rows.len().saturating_sub(1)));
    }

    pub(in crate::tui) fn samples(&self, line: u32) -> LineSamples {
        self.lines.lines.get(&line).copied().unwrap_or_default()
    }

    /// The text of a line, where there is one.
    pub(in crate::tui) fn text(&self, line: u32) -> Option<&str> {
        match &self.text {
            FileText::Lines(text, _) => text.get((line as usize).checked_sub(1)?).map(String::as_str),
            FileText::Missing(_) => None,
        }
    }

    /// All samples of the function.
    pub(in crate::tui) fn whole(&self) -> Amount {
        self.lines.whole.total
    }

    fn step(&mut self, step: ListStep) {
        self.row = step.from(self.row, self.rows.len());
    }

    /// Selects the next line that was sampled, or the one before; `false` where there is none.
    fn next_sampled(&mut self, is_on: bool) -> bool {
        let is_sampled = |row: &usize| self.samples(self.rows[*row]) != LineSamples::default();
        let next = match is_on {
            true => (self.row + 1..self.rows.len()).find(is_sampled),
            false => (0..self.row.min(self.rows.len())).rev().find(is_sampled),
        };
        self.row = next.unwrap_or(self.row);
        next.is_some()
    }
}

impl ScreenModel {
    /// Asks for the source of the function that is selected in the profile.
    pub(super) fn ask_for_source(&mut self) -> Option<LoopCommand> {
        let chosen = self.profile.as_ref().filter(|profile| !profile.is_empty()).and_then(|profile| {
            let function = profile.selected_function()?;
            (!profile.calls.label(function).is_region && function != 0).then_some((function, profile.event))
        });
        if chosen.is_none() {
            self.notice = Some(Notice::Failed("a function has a source: select one first".into()));
        }
        chosen.map(|(function, event)| LoopCommand::ShowSource(function, event))
    }

    /// Enter zooms; on what has the whole width already, and on a function of the flat list, it opens the source.
    pub(super) fn zoom_or_source(&mut self) -> Option<LoopCommand> {
        let has_whole_width = self.profile.as_ref().is_some_and(|profile| {
            let place = profile.place();
            profile.listing() == Listing::Flat || place.is_zoomed() && place.selected == place.root()
        });
        if has_whole_width {
            return self.ask_for_source();
        }
        self.steer_profile(Action::Zoom);
        None
    }

    /// Shows a function's source, or says why there is nothing to show.
    pub(super) fn show_source(&mut self, state: SourceState) {
        if state.lines.whole.total == Amount::ZERO {
            let name = self.profile.as_ref().map(|profile| profile.calls.label(state.function).name.clone());
            let name = name.unwrap_or_default();
            self.notice = Some(Notice::Failed(format!("no samples of {name} have lines here")));
            return;
        }
        self.source = Some(state);
        self.screen = Screen::Source;
    }

    pub(super) fn go_in_source(&mut self, step: ListStep) {
        if let Some(source) = &mut self.source {
            source.step(step);
        }
    }

    /// Goes to the next line that was sampled, or to the one before.
    pub(super) fn next_sampled_line(&mut self, is_on: bool) {
        if let Some(source) = &mut self.source
            && !source.next_sampled(is_on)
        {
            let place = if is_on { "below" } else { "above" };
            self.notice = Some(Notice::Failed(format!("no line {place} was sampled")));
        }
    }

    /// The selected line in words: its place and its text.
    pub(super) fn source_line(&self) -> Option<String> {
        let source = self.source.as_ref()?;
        let line = *source.rows.get(source.row)?;
        let file = crate::names::shown(source.lines.file.as_deref()?).into_owned();
        Some(format!("{file}:{line}: {}", source.text(line).unwrap_or_default().trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(all: &[(u32, u64)]) -> FunctionLines {
        let mut lines = FunctionLines { file: Some("/a.c".into()), ..FunctionLines::default() };
        for &(line, samples) in all {
            let amount = Amount { samples, weight: samples };
            lines.lines.insert(line, LineSamples { own: amount, total: amount });
        }
        lines
    }

    #[test]
    fn the_selected_line_stays_when_more_is_sampled() {
        let text = FileText::Lines(vec!["one".into(), "two".into(), "three".into()], None);
        let mut source = SourceState::new(1, 0, lines(&[(2, 5), (9, 1)]), text);
        assert_eq!((source.rows.as_slice(), source.row), (&[1, 2, 3, 9][..], 1));
        assert_eq!((source.text(2), source.text(9), source.text(0)), (Some("two"), None, None));
        assert!(source.next_sampled(true) && !source.next_sampled(true));
        assert_eq!(source.row, 3);
        source.take(lines(&[(2, 5), (7, 1), (9, 1)]));
        assert_eq!((source.rows.as_slice(), source.row), (&[1, 2, 3, 7, 9][..], 4));
        source.take(lines(&[(2, 5)]));
        assert_eq!(source.row, 2);
    }

    #[test]
    fn without_a_file_there_are_the_lines_that_were_sampled() {
        let mut source = SourceState::new(1, 0, lines(&[(40, 1), (30, 9)]), FileText::default());
        assert_eq!((source.rows.as_slice(), source.row), (&[30, 40][..], 0));
        assert!(!source.next_sampled(false) && source.next_sampled(true));
        assert_eq!((source.row, source.text(40)), (1, None));
        assert!(SourceState::new(1, 0, lines(&[]), FileText::default()).rows.is_empty());
    }
}
