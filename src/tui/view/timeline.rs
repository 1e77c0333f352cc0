//! Draws the time line of a replay: how an event went over the whole recording, and what happened when.

use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::page::ScreenPage;
use super::sparkline;
use crate::monitor::Severity;
use crate::recording::TimeRange;
use crate::tui::model::{ClickTarget, EventLine};
use crate::tui::outline::Outline;
use crate::tui::playback::Playback;
use crate::tui::symbols::{CHANGE, MARK, MEAN, WARN};
use crate::tui::text::{cut_middle, left, recorded_clock, short_clock, width};
use crate::tui::theme::Role;
use crate::units::WallNs;

/// Cells of the names at the left.
const LABEL: usize = 25;

/// What stands in a cell of the line below the spark; the later in the list is drawn above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CellMark {
    Nothing,
    Range,
    Finding,
    Phase,
    Mark,
    Position,
}

impl CellMark {
    fn look(self) -> (&'static str, Role) {
        match self {
            Self::Nothing => ("·", Role::Border),
            Self::Range => ("━", Role::Key),
            Self::Finding => (WARN, Role::Warn),
            Self::Phase => (CHANGE, Role::Info),
            Self::Mark => (MARK, Role::Match),
            Self::Position => (MEAN, Role::Key),
        }
    }
}

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let model = page.model;
    let (Some(outline), Some(playback)) = (&model.outline, &model.playback) else { return };
    let length = recorded_clock(outline.length(), outline.length());
    let cells = usize::from(area.width).saturating_sub(LABEL + width(&length) + 2);
    if area.height < 2 || cells == 0 {
        return;
    }
    let position = outline.place(model.monitor.now(), cells);
    let range = playback.range_in_sight(model.monitor.now());
    let within = range.map(|range| (outline.place(WallNs(range.from.0 + 1), cells), outline.place(range.to, cells)));
    let is_within = |cell: usize| within.is_none_or(|(first, last)| (first..=last).contains(&cell));

    let name = model.selected_line().map_or_else(String::new, |line| model.line_name(line));
    let name = cut_middle(&name, LABEL - 2).into_owned();
    let mut spark = Line::from(page.span(Role::Dim, left(&format!(" {name}"), LABEL)));
    spark.spans.extend(bars(page, outline, cells).into_iter().enumerate().map(|(cell, span)| match is_within(cell) {
        true => span,
        false => page.span(Role::Border, span.content),
    }));
    spark.push_span(page.span(Role::Dim, format!(" {length}")));
    let mut marks = legend(page);
    for mark in cell_marks(outline, playback, (position, within), cells) {
        let (glyph, role) = mark.look();
        let span = page.span(role, glyph);
        // Without colour the position stands out, too.
        let is_position = mark == CellMark::Position;
        marks.push_span(if is_position { Span::styled(glyph, span.style.add_modifier(Modifier::BOLD)) } else { span });
    }
    let mut rows = area.rows();
    for (row, line) in rows.by_ref().zip([spark, marks]) {
        page.line(row, line);
    }
    for cell in 0..cells {
        let x = area.x.saturating_add(u16::try_from(LABEL + cell).unwrap_or(u16::MAX));
        page.target(Rect { x, width: 1, ..area }.intersection(area), ClickTarget::Time(outline.cell(cell, cells)));
    }
}

/// The selected event, or the sum of its parts, over the whole recording; a gap where it wasn't counted.
fn bars(page: &ScreenPage<'_>, outline: &Outline, cells: usize) -> Vec<Span<'static>> {
    let (model, monitor) = (page.model, &page.model.monitor);
    let Some(line) = model.selected_line() else { return vec![Span::raw(" "); cells] };
    let parts = match line {
        EventLine::Event(event) => vec![event],
        EventLine::Sum(place) => model.events.folds[place].parts.events.clone(),
    };
    let rates = outline.rates(monitor.header(), &parts, monitor.usual_measure(model.events.selected), cells);
    sparkline::bars(page, &rates)
}

/// What the glyphs of the marks mean.
fn legend(page: &ScreenPage<'_>) -> Line<'static> {
    let mut line = Line::raw(" ");
    for (glyph, role, words) in
        [(CHANGE, Role::Info, "phase "), (WARN, Role::Warn, "warning "), (MARK, Role::Match, "mark ")]
    {
        line.push_span(page.span(role, glyph));
        line.push_span(page.span(Role::Dim, words));
    }
    let gap = LABEL.saturating_sub(line.width());
    line.push_span(Span::raw(" ".repeat(gap)));
    line
}

fn cell_marks(
    outline: &Outline,
    playback: &Playback,
    (position, within): (usize, Option<(usize, usize)>),
    cells: usize,
) -> Vec<CellMark> {
    let mut marks = vec![CellMark::Nothing; cells];
    let mut put = |cell: usize, mark: CellMark| marks[cell] = marks[cell].max(mark);
    if let Some((first, last)) = within {
        (first..=last.min(cells - 1)).for_each(|cell| put(cell, CellMark::Range));
    }
    let worth_it = outline.findings().iter().filter(|(_, severity)| *severity != Severity::Info);
    worth_it.for_each(|(at, _)| put(outline.place(*at, cells), CellMark::Finding));
    outline.changes().iter().for_each(|(at, _)| put(outline.place(*at, cells), CellMark::Phase));
    playback.marks.iter().for_each(|mark| put(outline.place(*mark, cells), CellMark::Mark));
    // A range has its end where the replay stands.
    if within.is_none() {
        put(position, CellMark::Position);
    }
    marks
}

/// `0:12–0:30`, with tenths of seconds where it is short, and thousandths where it is shorter than a second.
pub(super) fn range_words(range: TimeRange) -> String {
    let time = |at: WallNs| match (range.to - range.from).0 {
        length if length < 1_000_000_000 => format!("{}.{:03}", short_clock(at), at.0 / 1_000_000 % 1000),
        length if length < 10_000_000_000 => format!("{}.{}", short_clock(at), at.0 / 100_000_000 % 10),
        _ => short_clock(at),
    };
    format!("{}–{}", time(range.from), time(range.to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::RecordingNotes;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_matters_most_is_seen_where_several_share_a_cell() {
        let outline = Outline::of(&[], WallNs(10 * SECOND)).with_notes(&RecordingNotes::default());
        let mut playback = Playback::new(1.0);
        assert!(playback.mark(WallNs(3 * SECOND)));
        use CellMark::{Mark, Nothing, Position, Range};
        let marks = |within| cell_marks(&outline, &playback, (4, within), 5);
        assert_eq!(marks(None), [Nothing, Mark, Nothing, Nothing, Position]);
        assert_eq!(marks(Some((1, 2))), [Nothing, Mark, Range, Nothing, Nothing]);
    }

    #[test]
    fn ranges_are_told_as_exactly_as_they_are_long() {
        let at = |tenths: u64| WallNs(tenths * SECOND / 10);
        assert_eq!(range_words(TimeRange { from: at(123), to: at(300) }), "0:12–0:30");
        assert_eq!(range_words(TimeRange { from: at(123), to: at(150) }), "0:12.3–0:15.0");
        let thousandths = TimeRange { from: WallNs(12_000_000), to: WallNs(480_999_999) };
        assert_eq!(range_words(thousandths), "0:00.012–0:00.480");
    }
}
