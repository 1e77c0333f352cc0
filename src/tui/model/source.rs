//! Holds the state of the Source screen: one function of the profile, line by line or instruction by instruction.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use super::step::ListStep;
use super::{LoopCommand, Motion, ScreenModel, ScrolledList};
use crate::names::shown;
use crate::profile::Amount;
use crate::run::Header;
use crate::stacks::{FunctionLines, Instruction, LineSamples, by_instruction, hottest};
use crate::tui::keys::Action;
use crate::tui::model::profile::FrameIndex;
use crate::tui::options::Mode;
use crate::tui::screen::Screen;
use crate::tui::source_text::FileText;
use crate::tui::text::width;

/// By how many cells long lines move at once, and how many of the longest are seen always.
const SCROLL: usize = 8;
const LEAST_SEEN: usize = 30;

/// A function with its samples by lines, or by instructions.
#[derive(Clone, Debug, Default)]
pub(in crate::tui) struct SourceState {
    /// Places of the function and of the event in the profile.
    pub(in crate::tui) function: FrameIndex,
    pub(in crate::tui) event: usize,
    pub(in crate::tui) lines: FunctionLines,
    pub(in crate::tui) text: FileText,
    /// The rows: the numbers of all lines of the file or, without it, of those that were sampled; of instructions their
    /// offsets in the program.
    pub(in crate::tui) rows: Vec<u64>,
    /// What was sampled at each of them.
    samples: BTreeMap<u64, LineSamples>,
    /// Rows that have nothing but what was inlined from there.
    inlined: BTreeSet<u64>,
    /// The selected row.
    pub(in crate::tui) row: usize,
    /// Cells of the text that have gone at the left.
    pub(in crate::tui) scrolled: usize,
}

impl SourceState {
    /// A function of a run as it was sampled so far, with the text of its file.
    pub(in crate::tui) fn read(run: &Header, function: FrameIndex, event: usize, lines: FunctionLines) -> Self {
        let began = SystemTime::UNIX_EPOCH + Duration::try_from_secs_f64(run.started.max(0.0)).unwrap_or_default();
        let text = FileText::read(&lines, began);
        Self::new(function, event, lines, text)
    }

    /// A function as it was sampled so far, at the row with most samples.
    pub(in crate::tui) fn new(function: FrameIndex, event: usize, lines: FunctionLines, text: FileText) -> Self {
        let mut state = Self { function, event, text, ..Self::default() };
        state.take(lines);
        let hottest = hottest(&state.samples);
        state.row = state.rows.iter().position(|row| Some(*row) == hottest).unwrap_or(0);
        state
    }

    /// Takes over what was sampled by now; the same row stays selected.
    pub(in crate::tui) fn take(&mut self, lines: FunctionLines) {
        let selected = self.rows.get(self.row).copied();
        self.samples = match &self.text {
            FileText::Instructions(instructions, _) => by_instruction(&lines.offsets, instructions),
            FileText::Lines(..) | FileText::Missing(_) => {
                lines.lines.iter().map(|(&line, samples)| (line.into(), *samples)).collect()
            }
        };
        self.inlined.clear();
        let counts_lines = !self.has_instructions();
        for (&line, samples) in lines.inlined.iter().filter(|(line, _)| counts_lines && !lines.lines.contains_key(line))
        {
            self.samples.insert(line.into(), *samples);
            self.inlined.insert(line.into());
        }
        let shown: Vec<u64> = match &self.text {
            FileText::Lines(text, _) => (1..=text.len() as u64).collect(),
            FileText::Instructions(instructions, _) => instructions.iter().map(|one| one.offset).collect(),
            FileText::Missing(_) => Vec::new(),
        };
        let besides = self.samples.keys().filter(|row| shown.binary_search(row).is_err());
        self.rows = shown.iter().chain(besides).copied().collect();
        self.lines = lines;
        let place = self.rows.iter().position(|row| Some(*row) == selected);
        self.row = place.unwrap_or(self.row.min(self.rows.len().saturating_sub(1)));
    }

    pub(in crate::tui) fn samples(&self, row: u64) -> LineSamples {
        self.samples.get(&row).copied().unwrap_or_default()
    }

    /// Whether what was sampled of a row is that of another function, which was inlined.
    pub(in crate::tui) fn is_inlined(&self, row: u64) -> bool {
        self.inlined.contains(&row)
    }

    /// Whether there are such rows.
    pub(in crate::tui) fn has_inlined(&self) -> bool {
        !self.inlined.is_empty()
    }

    /// The text of a row, where there is one.
    pub(in crate::tui) fn text(&self, row: u64) -> Option<&str> {
        match &self.text {
            FileText::Lines(text, _) => text.get(usize::try_from(row).ok()?.checked_sub(1)?).map(String::as_str),
            FileText::Instructions(..) => self.instruction(row).map(|instruction| instruction.text.as_str()),
            FileText::Missing(_) => None,
        }
    }

    fn instruction(&self, row: u64) -> Option<&Instruction> {
        let FileText::Instructions(instructions, _) = &self.text else { return None };
        let place = instructions.binary_search_by_key(&row, |instruction| instruction.offset).ok()?;
        instructions.get(place)
    }

    /// Whether the rows are instructions.
    pub(in crate::tui) fn has_instructions(&self) -> bool {
        matches!(self.text, FileText::Instructions(..))
    }

    /// What a row is called: the number of a line, the address of an instruction.
    pub(in crate::tui) fn number(&self, row: u64) -> String {
        match self.instruction(row) {
            Some(instruction) => format!("{:x}", instruction.address),
            None if self.has_instructions() => String::new(),
            None => row.to_string(),
        }
    }

    /// Cells of the longest of these.
    pub(in crate::tui) fn number_cells(&self) -> usize {
        let longest = match &self.text {
            FileText::Instructions(all, _) => all.iter().map(|one| one.address).max().map(|last| format!("{last:x}")),
            FileText::Lines(..) | FileText::Missing(_) => self.rows.iter().max().map(u64::to_string),
        };
        longest.map_or(0, |number| number.len())
    }

    /// All samples of the function.
    pub(in crate::tui) fn whole(&self) -> Amount {
        self.lines.whole.total
    }

    /// Whether there are texts, which may be missing as a whole.
    pub(in crate::tui) fn has_text(&self) -> bool {
        !matches!(self.text, FileText::Missing(_))
    }

    /// Whether some text may have no room.
    pub(in crate::tui) fn has_long_lines(&self) -> bool {
        self.longest() > LEAST_SEEN
    }

    /// Cells of the longest text.
    fn longest(&self) -> usize {
        let texts = self.rows.iter().filter_map(|&row| self.text(row));
        texts.map(width).max().unwrap_or(0)
    }

    /// Moves all texts; the longest never leaves as a whole.
    fn scroll(&mut self, is_right: bool) {
        self.scrolled = match is_right {
            true => (self.scrolled + SCROLL).min(self.longest().saturating_sub(LEAST_SEEN)),
            false => self.scrolled.saturating_sub(SCROLL),
        };
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
    pub(in crate::tui) fn ask_for_source(&mut self) -> Option<LoopCommand> {
        if let Some(refused) = self.why_no_source() {
            self.refuse(refused);
            return None;
        }
        let chosen = self.profile.as_ref().filter(|profile| !profile.is_empty()).and_then(|profile| {
            let function = profile.selected_function()?;
            (!profile.calls.label(function).is_region && function != 0).then_some((function, profile.event))
        });
        if chosen.is_none() {
            self.refuse("a function has a source: select one first");
        }
        chosen.map(|(function, event)| LoopCommand::ShowSource(function, event))
    }

    /// Why no function of the profile has a source that can be shown.
    pub(in crate::tui) fn why_no_source(&self) -> Option<&'static str> {
        match self.options.mode {
            Mode::Stacks { .. } => Some("stacks of a file have no lines"),
            // Samples that came since are in no number on the screen.
            Mode::Live if self.motion == Motion::Frozen && self.monitor.ended().is_none() => {
                Some("the view is frozen; z goes on, then v shows the source")
            }
            Mode::Live | Mode::Replay { .. } => None,
        }
    }

    /// Enter zooms; on what has the whole width already, and on a function of the list of functions, it opens the source.
    pub(super) fn zoom_or_source(&mut self) -> Option<LoopCommand> {
        let has_whole_width = self.profile.as_ref().is_some_and(|profile| {
            let place = profile.place();
            profile.is_in_functions() || place.is_zoomed() && place.selected == place.root()
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
            self.refuse(format!("no samples of {name} have lines here"));
            return;
        }
        // Of a program, the empty screen says what gives it lines.
        if let FileText::Missing(why) = &state.text
            && state.rows.is_empty()
            && state.lines.module.starts_with('[')
        {
            return self.refuse(why.clone());
        }
        self.source = Some(state);
        self.lists.forget(ScrolledList::Of(Screen::Source));
        self.screen = Screen::Source;
    }

    pub(super) fn go_in_source(&mut self, step: ListStep) {
        if let Some(source) = &mut self.source {
            source.step(step);
        }
    }

    pub(super) fn scroll_source(&mut self, is_right: bool) {
        if let Some(source) = &mut self.source {
            source.scroll(is_right);
        }
    }

    /// Goes to the next line that was sampled, or to the one before.
    pub(super) fn next_sampled_line(&mut self, is_on: bool) {
        if let Some(source) = &mut self.source
            && !source.next_sampled(is_on)
        {
            let place = if is_on { "below" } else { "above" };
            self.refuse(format!("no line {place} was sampled"));
        }
    }

    /// The selected row in words: its place and its text.
    pub(super) fn source_line(&self) -> Option<String> {
        let source = self.source.as_ref()?;
        let row = *source.rows.get(source.row)?;
        let (file, text) = (source.lines.file.as_deref(), source.text(row).unwrap_or_default().trim());
        let place = match file.filter(|_| !source.has_instructions()) {
            Some(file) => format!("{}:{row}", shown(file)),
            None => format!("{}+{row:#x}", shown(&source.lines.module)),
        };
        Some(format!("{place}: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::tui::model::Notice;
    use crate::tui::options::ScreenOptions;

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
    fn code_that_never_has_a_source_says_so_where_it_is() {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let mut model = ScreenModel::new(monitor, &ScreenOptions::default());
        let whole = LineSamples { total: Amount { samples: 9, weight: 9 }, ..LineSamples::default() };
        let lines = FunctionLines { module: "[kernel]".into(), whole, ..FunctionLines::default() };
        model.show_source(SourceState::read(&builders::header([]), 1, 0, lines));
        assert_eq!((model.screen, model.source.is_none()), (Screen::Events, true));
        assert_eq!(model.notice, Some(Notice::Failed("[kernel] has no lines here".into())));
    }

    #[test]
    fn stacks_of_a_file_have_no_source() {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let mode = Mode::Stacks { is_whole: true };
        let model = ScreenModel::new(monitor, &ScreenOptions { mode, ..ScreenOptions::default() });
        assert!(model.why_no_source().is_some());
    }

    #[test]
    fn long_lines_scroll_until_their_ends_are_seen() {
        let text = FileText::Lines(vec!["x".repeat(LEAST_SEEN + 10), "short".into()], None);
        let mut source = SourceState::new(1, 0, lines(&[(1, 5)]), text);
        assert!(source.has_long_lines());
        let mut places = Vec::new();
        for is_right in [true, true, true, false, false] {
            source.scroll(is_right);
            places.push(source.scrolled);
        }
        assert_eq!(places, [8, 10, 10, 2, 0]);
    }

    #[test]
    fn without_a_file_there_are_the_lines_that_were_sampled() {
        let mut source = SourceState::new(1, 0, lines(&[(40, 1), (30, 9)]), FileText::default());
        assert_eq!((source.rows.as_slice(), source.row), (&[30, 40][..], 0));
        assert!(!source.next_sampled(false) && source.next_sampled(true));
        assert_eq!((source.row, source.text(40)), (1, None));
        source.take(lines(&[(30, 9), (123_456, 1)]));
        assert_eq!(source.number_cells(), source.number(123_456).len());
        assert!(SourceState::new(1, 0, lines(&[]), FileText::default()).rows.is_empty());
    }
}
