//! Draws the lines of an event of both sides, and says how they differ.

use ratatui::text::{Line, Span};

use super::super::page::ScreenPage;
use super::super::run_plot::{RunScale, line};
use super::columns::{ComparedColumns, EventLines};
use crate::compare::{ComparedEvent, RunComparison, Runs, Side, Verdict};
use crate::events::Unit;
use crate::names::shown;
use crate::number::{percent, plus_minus};
use crate::text::difference;
use crate::tui::symbols::{CURSOR, DOWN, MISSING, SAME, UP};
use crate::tui::text::{cut, cut_middle, left, right};
use crate::tui::theme::Role;

/// A line of each side, or one with the verdict alone.
pub(super) fn event_lines(
    page: &ScreenPage<'_>,
    one: &ComparedEvent,
    columns: ComparedColumns,
    lines: EventLines,
    selected: bool,
) -> Vec<Line<'static>> {
    let missing = || MISSING.to_owned();
    let (glyph, role) = mark(one.verdict);
    let suffix = one.measure.suffix(page.model.monitor.header());
    let name = cut_middle(&shown(&one.name), columns.name).into_owned();
    let scale = RunScale::of(one);
    let is_told = lines == EventLines::LineASide && is_told_of_all(&page.model.comparison.found, one);
    let how_sure = if is_told { String::new() } else { how_sure(one) };
    let word = if is_told { "" } else { one.verdict.word() };
    let [first, second] = [
        RowText {
            cursor: if selected { CURSOR } else { " " },
            name: page.span(Role::Text, left(&name, columns.name)),
            change: one.change().map_or_else(missing, difference::change),
            verdict: page.span(role, left(&format!("  {glyph} {word}"), columns.verdict)),
        },
        RowText {
            cursor: " ",
            name: page.span(Role::Dim, left(&cut(&format!("  {suffix}"), columns.name), columns.name)),
            change: one.interval.map_or_else(String::new, difference::interval),
            verdict: page.span(Role::Dim, left(&format!("    {how_sure}"), columns.verdict)),
        },
    ];
    let line = |text: RowText, side: Option<(&str, &Runs, Role)>| {
        let mut line = Line::from(page.span(Role::Key, format!("{} ", text.cursor)));
        line.push_span(text.name);
        if let Some((letter, runs, role)) = side {
            line.spans.extend(side_cells(page, one, (letter, runs, role), columns, scale));
        }
        if columns.change > 0 {
            line.push_span(page.span(Role::Text, right(&text.change, columns.change)));
        }
        line.push_span(text.verdict);
        line
    };
    match lines {
        EventLines::One => vec![line(first, None)],
        EventLines::LineASide => {
            vec![line(first, Some(("A", &one.a, Role::Corrected))), line(second, Some(("B", &one.b, Role::Raw)))]
        }
    }
}

/// Whether an event has no verdict for want of runs, as all of them: the note above the events says that once.
pub(super) fn is_told_of_all(found: &RunComparison, one: &ComparedEvent) -> bool {
    matches!(one.verdict, Verdict::TooFewRuns { .. }) && found.what_it_takes().is_some()
}

/// What a line of an event says beside the numbers of a side.
struct RowText {
    cursor: &'static str,
    name: Span<'static>,
    change: String,
    verdict: Span<'static>,
}

/// The mean, the spread and the plot of one side.
fn side_cells(
    page: &ScreenPage<'_>,
    one: &ComparedEvent,
    (letter, runs, role): (&str, &Runs, Role),
    columns: ComparedColumns,
    scale: RunScale,
) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    if columns.mean > 0 {
        spans.push(page.span(Role::Key, format!("  {letter}")));
        spans.push(page.span(Role::Title, right(&mean(one, runs), columns.mean - 3)));
    }
    if columns.spread > 0 {
        let spread = spread(&page.model.comparison.found, runs, &one.unit);
        spans.push(page.span(Role::Dim, right(&spread, columns.spread)));
    }
    if columns.plot > 0 {
        let interval = runs.interval_of_mean(page.model.comparison.found.confidence);
        let values: Vec<_> = runs.numbers.iter().map(|number| number.value).collect();
        spans.push(page.span(role, format!("  {}", line(&values, interval, scale, columns.plot - 2))));
    }
    spans
}

/// What stands below the verdict: how likely it is by chance, and how many runs would tell.
fn how_sure(one: &ComparedEvent) -> String {
    match (one.p, one.verdict) {
        (_, Verdict::TooFewRuns { needs }) => format!("needs {needs} runs"),
        (Some(p), Verdict::Unclear { needs: Some(runs) }) => format!("p {} n={runs}", difference::p_value(p)),
        (Some(p), _) => format!("p {}", difference::p_value(p)),
        (None, _) => String::new(),
    }
}

pub(super) fn mean(one: &ComparedEvent, runs: &Runs) -> String {
    runs.mean().map_or_else(|| MISSING.into(), |mean| difference::mean(mean, &one.unit))
}

/// The standard deviation between runs as a part of their mean; of one run each, what that one may be off by.
fn spread(found: &RunComparison, runs: &Runs, unit: &Unit) -> String {
    match runs.numbers.first() {
        Some(number) if !found.has_spread() => plus_minus(*number, unit),
        _ => runs.relative_deviation().map_or_else(|| MISSING.into(), percent),
    }
}

/// A glyph beside the word, and how both look.
pub(super) fn mark(verdict: Verdict) -> (&'static str, Role) {
    match verdict {
        // Whether more is worse depends on the event.
        Verdict::Higher => (UP, Role::Warn),
        Verdict::Lower => (DOWN, Role::Warn),
        Verdict::Equal => (SAME, Role::Dim),
        Verdict::Unclear { .. } | Verdict::TooFewRuns { .. } | Verdict::Partial => ("?", Role::Dim),
        Verdict::OnlyIn(_) | Verdict::NoNumber => (MISSING, Role::Missing),
    }
}

pub(super) fn sentence(found: &RunComparison, one: &ComparedEvent) -> String {
    let by = one
        .change()
        .map_or_else(String::new, |part| format!(" by {}", difference::change(part).trim_start_matches(['+', '−'])));
    let p = one.p.map_or_else(String::new, |p| format!(", p {}", difference::p_value(p)));
    match one.verdict {
        Verdict::Higher | Verdict::Lower => format!("B is {}{by}{p}", one.verdict.word()),
        Verdict::Unclear { needs: Some(runs) } => format!("within error{p}; if it is so, {runs} runs of each show it"),
        Verdict::Unclear { needs: None } => format!("within error{p}; too small to be shown by 1,000 runs of each"),
        Verdict::TooFewRuns { needs } => match found.runs {
            [1, 1] => format!("one run each is too few to tell: {needs} of each can"),
            [a, b] => format!("{a} and {b} runs are too few to tell: {needs} of each can"),
        },
        Verdict::Equal => "equal to the last digit shown".into(),
        Verdict::OnlyIn(Side::A) => "only A counted it".into(),
        Verdict::OnlyIn(Side::B) => "only B counted it".into(),
        Verdict::NoNumber => "one of them has no number, which is not 0".into(),
        Verdict::Partial => "one kind of core counted it, an unknown part of the whole".into(),
    }
}
