//! Lists the findings and the command's output, for the Log screen.

use std::collections::VecDeque;

use super::step::Tail;
use super::{Filter, ScreenModel};
use crate::monitor::{Finding, Noted, Severity};
use crate::names::shown;
use crate::run::{End, MeasuredTarget};
use crate::session::{LineEnd, OutputLine};
use crate::tui::layout::Room;
use crate::tui::options::Mode;
use crate::tui::screen::Screen;

/// Lines of the command's output that are kept.
const MAX_OUTPUT: usize = 10_000;

/// The two lists of the Log screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum Pane {
    #[default]
    Findings,
    Output,
}

/// The Log screen.
#[derive(Debug, Default)]
pub(in crate::tui) struct Log {
    pub(in crate::tui) pane: Pane,
    pub(in crate::tui) findings: Tail,
    pub(in crate::tui) output: Tail,
    pub(in crate::tui) filter: Filter,
}

/// The newest lines of the command's output.
#[derive(Debug, Default)]
pub(in crate::tui) struct Output {
    pub(in crate::tui) lines: VecDeque<OutputLine>,
    /// How many older ones were dropped.
    pub(in crate::tui) dropped: usize,
}

/// A line of the log.
#[derive(Clone, Copy, Debug)]
pub(in crate::tui) enum LogEntry<'a> {
    /// Something about perfprop itself, from before the first round.
    Note(&'a str),
    /// How something is measured, of which nothing is wrong.
    Remark(&'a str),
    Finding(&'a Noted),
    End(&'a End),
}

impl LogEntry<'_> {
    /// Whether numbers are less than they seem, or something is wrong in a file of the user's.
    pub(in crate::tui) fn is_warning(self) -> bool {
        match self {
            Self::Note(_) => true,
            Self::Finding(noted) => noted.finding.severity() == Severity::Warning,
            Self::Remark(_) | Self::End(_) => false,
        }
    }
}

impl Output {
    /// Takes a line, or what is new of the last one; gives the oldest, if that was dropped for it.
    pub(super) fn push(&mut self, line: OutputLine) -> Option<OutputLine> {
        let last = self.lines.iter_mut().rev().find(|last| last.stream == line.stream);
        if let Some(last) = last.filter(|last| last.end == LineEnd::Open) {
            *last = line;
            return None;
        }
        let oldest = if self.lines.len() == MAX_OUTPUT { self.lines.pop_front() } else { None };
        self.dropped += usize::from(oldest.is_some());
        self.lines.push_back(line);
        oldest
    }
}

impl ScreenModel {
    /// The entries that pass the filter.
    pub(in crate::tui) fn entries(&self) -> Vec<LogEntry<'_>> {
        self.all_entries().filter(|entry| self.log.filter.matches(&self.entry_text(*entry))).collect()
    }

    pub(in crate::tui) fn all_entries(&self) -> impl Iterator<Item = LogEntry<'_>> {
        let of_stacks = self.profile.iter().flat_map(|profile| &profile.findings);
        let notes = self.notes.iter().chain(of_stacks).map(|note| LogEntry::Note(note));
        let remarks = self.profile.iter().filter_map(|profile| profile.copying.as_deref()).map(LogEntry::Remark);
        // Readings may be skipped in every interval of a busy machine: that is told once, with all of them.
        let is_skipping = |noted: &&Noted| matches!(noted.finding, Finding::LostRounds { .. });
        let first = self.monitor.findings().iter().position(|noted| is_skipping(&noted));
        let findings = self.monitor.findings().iter().enumerate();
        let findings = findings.filter(move |(place, noted)| !is_skipping(noted) || first == Some(*place));
        let findings = findings.map(|(_, noted)| LogEntry::Finding(noted));
        let end = self.monitor.ended().map(LogEntry::End);
        // Where there is room for few, these are the last ones.
        remarks.chain(notes).chain(findings).chain(end)
    }

    pub(in crate::tui) fn entry_text(&self, entry: LogEntry<'_>) -> String {
        match entry {
            LogEntry::Note(note) | LogEntry::Remark(note) => shown(note).into_owned(),
            LogEntry::Finding(noted) => {
                let words = match noted.finding {
                    Finding::LostRounds { .. } => self.all_skipped().words(&self.monitor).to_string(),
                    _ => noted.finding.words(&self.monitor).to_string(),
                };
                format!("{} {}", noted.finding.code(), shown(&words))
            }
            LogEntry::End(end) => match end.exit {
                Some(exit) if end.was_ended_by_perfprop => format!("perfprop ended the command: {exit}"),
                Some(exit) => format!("the command ended: {exit}"),
                None => "the measurement ended".into(),
            },
        }
    }

    /// All readings together that the findings say were skipped.
    fn all_skipped(&self) -> Finding {
        let skipped = self.monitor.findings().iter().map(|noted| match noted.finding {
            Finding::LostRounds { rounds } => rounds,
            _ => 0,
        });
        Finding::LostRounds { rounds: skipped.sum() }
    }

    /// The lines of output that pass the filter, with their numbers.
    pub(in crate::tui) fn output_lines(&self) -> Vec<&OutputLine> {
        self.output.lines.iter().filter(|line| self.log.filter.matches(&line.text)).collect()
    }

    /// Whether there is, or may still come, output to show.
    pub(in crate::tui) fn has_output(&self) -> bool {
        let runs_command = matches!(self.monitor.header().target, MeasuredTarget::Command { .. });
        !self.output.lines.is_empty() || (self.options.mode == Mode::Live && runs_command)
    }

    /// Whether a new line of output changes what is on the screen.
    pub(in crate::tui) fn shows_output(&self) -> bool {
        match self.screen {
            Screen::Log => self.log.pane == Pane::Output,
            Screen::Events => matches!(Room::on(self.screen_size()), Room::Medium | Room::Large),
            Screen::Detail
            | Screen::Relations
            | Screen::Profile
            | Screen::Groups
            | Screen::Threads
            | Screen::Source
            | Screen::Compare => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::run::End;
    use crate::session::Stream;
    use crate::sources::command::Exit;
    use crate::tui::model::{Message, update};
    use crate::tui::options::ScreenOptions;

    #[test]
    fn lines_that_a_filter_hides_move_nothing_when_they_are_dropped() {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let mut model = ScreenModel::new(monitor, &ScreenOptions::default());
        let write = |model: &mut ScreenModel, text: &str| {
            update(
                model,
                Message::Output(OutputLine { stream: Stream::Stdout, text: text.into(), end: LineEnd::Newline }),
            );
        };
        for _ in 0..MAX_OUTPUT / 2 {
            write(&mut model, "noise");
            write(&mut model, "news");
        }
        (model.log.filter, model.log.output) = (Filter::new("news".into()), Tail::At(5));
        write(&mut model, "news");
        assert_eq!(model.log.output, Tail::At(5), "the oldest line was noise");
        write(&mut model, "news");
        assert_eq!(model.log.output, Tail::At(4));
    }

    #[test]
    fn a_command_that_perfprop_ended_did_not_end_by_itself() {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let model = ScreenModel::new(monitor, &ScreenOptions::default());
        let text = |was_ended_by_perfprop| {
            let end = End { exit: Some(Exit::Signal(15)), was_ended_by_perfprop, ..End::default() };
            model.entry_text(LogEntry::End(&end))
        };
        assert_eq!([false, true].map(text), ["the command ended: SIGTERM", "perfprop ended the command: SIGTERM"]);
    }

    #[test]
    fn a_line_without_its_end_is_replaced_by_what_follows_in_its_stream() {
        let mut output = Output::default();
        let mut write = |stream, text: &str, end| output.push(OutputLine { stream, text: text.into(), end });
        write(Stream::Stdout, "10%", LineEnd::Open);
        write(Stream::Stderr, "oh", LineEnd::Newline);
        write(Stream::Stdout, "20%", LineEnd::Open);
        write(Stream::Stdout, "done", LineEnd::Newline);
        write(Stream::Stdout, "next", LineEnd::Newline);
        let texts: Vec<_> = output.lines.iter().map(|line| &*line.text).collect();
        assert_eq!(texts, ["done", "oh", "next"]);
    }
}
