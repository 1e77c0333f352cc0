//! Draws the raw and corrected intervals of the selected event on one axis.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use super::relations;
use crate::estimate::Cause;
use crate::events::Unit;
use crate::monitor::{Row, UncountedPart};
use crate::names::shown;
use crate::number::{BOTH_SIDES, change, whole_share};
use crate::plan::RowIndex;
use crate::tui::figures::{Figure, Figures, ShownValues};
use crate::tui::model::EventLine;
use crate::tui::symbols::MISSING;
use crate::tui::text::{amount, cut, left, right};
use crate::tui::theme::Role;

/// Cells of the label and the number before the interval, and of the words behind it.
const LABEL: usize = 20;
const NUMBER: usize = 16;
const TAIL: usize = 14;

/// Cells of an interval that says anything.
const LEAST_BAR: usize = 5;

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let Some(shown) = page.model.selected_line().filter(|_| area.height > 0) else { return };
    let title = Line::from(page.span(Role::Title, page.model.line_title(shown)));
    let inner = page.panel(area, title, Line::default(), false);
    for (line, row) in lines(page, shown, usize::from(inner.width)).into_iter().zip(inner.rows()) {
        page.line(row, line);
    }
}

/// Raw, corrected, and the relation that made the difference; of what is exact there is one number.
pub(super) fn lines(page: &ScreenPage<'_>, shown: EventLine, width: usize) -> Vec<Line<'static>> {
    let figures = page.model.line_figures(shown);
    let axis = Axis::of([figures.raw, figures.corrected]);
    let errors = errors_cells(&figures, page.model.line_unit(shown), width);
    let bar = width.saturating_sub(LABEL + NUMBER / 2 + errors + 4 + TAIL);
    let unit = page.model.line_unit(shown);
    let line = |named, figure, tail: &str| value_line(page, (&figures, unit), named, figure, (axis, bar, errors), tail);
    let truth = truth(page, shown);
    let mut lines = Vec::new();
    if figures.is_exact() && truth.is_none() {
        lines.push(line((Role::Raw, "counted"), figures.raw, ""));
    } else {
        let scaled = figures.run.filter(|run| !figures.is_partial && *run > 0.0 && *run < 1.0);
        let raw = scaled.map_or_else(|| "raw".to_owned(), |run| format!("scaled ×{:.2}", 1.0 / run));
        lines.push(line((Role::Raw, &raw), figures.raw, ""));
        let tail = narrowing(figures.raw, figures.corrected);
        // Cut off it would say something else.
        let has_room = LABEL + NUMBER / 2 + errors + 2 + crate::tui::text::width(&tail) <= width;
        let corrected = || line((Role::Corrected, "corrected"), figures.corrected, if has_room { &tail } else { "" });
        lines.push(truth.filter(|_| figures.raw == figures.corrected).unwrap_or_else(corrected));
    }
    lines.push(cause(page, (shown, &figures), width));
    lines
}

/// What moved a number, or why nothing did.
fn cause(page: &ScreenPage<'_>, (shown, figures): (EventLine, &Figures), width: usize) -> Line<'static> {
    let model = page.model;
    match (shown, figures.by) {
        (EventLine::Sum(place), _) => parts(page, place, width),
        (_, Some(Cause::Relation(relation))) => relations::sentence(page, relation, width),
        (_, Some(cause)) => Line::from(page.span(Role::Dim, format!("moved most by {}", model.cause(cause)))),
        (EventLine::Event(event), None) => Line::from(page.span(Role::Dim, why_unmoved(&model.monitor.row(event)))),
    }
}

/// The same where the number stands in the title: of one that is exact there is no other.
pub(super) fn news(page: &ScreenPage<'_>, shown: EventLine, width: usize) -> Vec<Line<'static>> {
    let lines = lines(page, shown, width);
    let is_exact = page.model.line_figures(shown).is_exact();
    let told = if is_exact && truth(page, shown).is_none() { lines.len() - 1 } else { 0 };
    lines.into_iter().skip(told).collect()
}

/// `truth  1.94M   off +0.1%, in ±`, where it is counted beside: of the corrected number where there is one, unless raw
/// ones are shown.
fn truth(page: &ScreenPage<'_>, shown: EventLine) -> Option<Line<'static>> {
    let EventLine::Event(event) = shown else { return None };
    let (monitor, measure) = (&page.model.monitor, page.model.line_measure(shown));
    let (truth, row) = (monitor.truth(event)?, monitor.row(event));
    let number = amount(truth.count as f64 * measure.factor(monitor, &row)?.value, page.model.line_unit(shown));
    let (error, interval) = match (page.model.basis, truth.corrected) {
        (ShownValues::Corrected | ShownValues::Both, Some(error)) => (Some(error), truth.corrected_interval),
        _ => (truth.scaled, truth.scaled_interval),
    };
    let held = match interval.is_covered {
        Some(true) => ", in ±",
        Some(false) => ", not in ±",
        None => "",
    };
    let off = error.map_or_else(String::new, |part| format!("  off {}{held}", change(part)));
    let mut line = Line::from(page.span(Role::Dim, left("truth", LABEL)));
    line.push_span(page.span(Role::Title, right(&number, NUMBER / 2)));
    line.push_span(page.span(Role::Text, off));
    Some(line)
}

/// `most in CPU 3 41%, CPU 0 33%, CPU 1 14%`: the shares of the parts of a sum, largest first.
pub(super) fn parts(page: &ScreenPage<'_>, place: usize, width: usize) -> Line<'static> {
    let model = page.model;
    let scope = |event: RowIndex| shown(&model.monitor.header().events[event].scope.to_string()).into_owned();
    let count = |event: RowIndex| Some(model.monitor.row(event).best()?.value).filter(|count| *count > 0.0);
    let events = &model.events.folds[place].parts.events;
    let mut counts: Vec<_> = events.iter().filter_map(|&event| Some((event, count(event)?))).collect();
    let all: f64 = counts.iter().map(|(_, count)| count).sum();
    counts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let shares: Vec<_> =
        counts.iter().map(|&(event, count)| format!("{} {}", scope(event), whole_share(count / all))).collect();
    let words =
        if shares.is_empty() { "no part counted any".to_owned() } else { format!("most in {}", shares.join(", ")) };
    Line::from(page.span(Role::Dim, cut(&words, width).into_owned()))
}

/// Why nothing corrects a number.
pub(super) fn why_unmoved(row: &Row<'_>) -> String {
    match row.absence {
        Some(absence) => format!("{MISSING} {}", absence.words()),
        None if row.uncounted == Some(UncountedPart::FromExecOn) => "not counted from exec on: see Log, W11".into(),
        None if row.uncounted == Some(UncountedPart::OfChild) => "counted without a child: see Log, W13".into(),
        None if row.uncounted == Some(UncountedPart::OfModel) => "counted in part: see Log, W22".into(),
        None if row.lacks_units => "a part of the sum: see Log, W14".into(),
        None if row.corrected_variance().is_some() => "the mean is as scaled; a relation corrects the variance".into(),
        None if row.raw.run.is_exact() => "counted all the time: nothing to correct".into(),
        None if row.best() != row.scaled => "as scaled; its ± also uses other events".into(),
        None => "nothing corrects it".into(),
    }
}

/// Cells of the errors of the raw and the corrected number: more where one has two sides and there is room.
fn errors_cells(figures: &Figures, unit: &Unit, width: usize) -> usize {
    const ONE_SIDE: usize = NUMBER / 2;
    const TWO_SIDES: usize = BOTH_SIDES + 1;
    let shown = [figures.raw, figures.corrected].into_iter().flatten();
    let has_two = |figure: Figure| figures.error_within(figure, unit, BOTH_SIDES) != figures.error_of(figure, unit);
    let has_room = LABEL + ONE_SIDE + TWO_SIDES + 4 + TAIL + LEAST_BAR <= width;
    if has_room && shown.into_iter().any(has_two) { TWO_SIDES } else { ONE_SIDE }
}

fn value_line(
    page: &ScreenPage<'_>,
    (figures, unit): (&Figures, &Unit),
    (role, label): (Role, &str),
    figure: Option<Figure>,
    (axis, bar, errors): (Option<Axis>, usize, usize),
    tail: &str,
) -> Line<'static> {
    let mut line = Line::from(page.span(Role::Dim, left(label, LABEL)));
    let Some(figure) = figure else {
        line.push_span(page.span(Role::Missing, right(MISSING, NUMBER / 2)));
        return line;
    };
    line.push_span(page.span(Role::Title, right(&amount(figure.mean, unit), NUMBER / 2)));
    line.push_span(page.span(Role::Text, right(&figures.error_within(figure, unit, errors - 1), errors)));
    if let Some(axis) = axis.filter(|_| bar >= LEAST_BAR) {
        line.push_span(page.span(role, format!("  {}", axis.interval(figure, bar))));
    }
    line.push_span(page.span(Role::Dim, format!("  {tail}")));
    line
}

/// How much smaller the ± of the corrected number is than that of the raw one: the two stand beside it, and where one of them says
/// nothing that can be divided, neither does this.
fn narrowing(raw: Option<Figure>, corrected: Option<Figure>) -> String {
    let shown = |figure: Option<Figure>| figure.and_then(|figure| figure.error.relative_to(figure.mean));
    match shown(raw).zip(shown(corrected)) {
        Some((raw, corrected)) if raw > 0.0 && corrected < 0.995 * raw => {
            format!("{} narrower", whole_share(1.0 - corrected / raw))
        }
        Some((raw, corrected)) if raw > 0.0 && corrected > 1.005 * raw => {
            format!("{:.0}% wider", ((corrected / raw - 1.0) * 100.0).min(999.0))
        }
        _ => String::new(),
    }
}

/// What lies between the ends of a line of cells.
#[derive(Clone, Copy, Debug)]
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that shows all intervals whole.
    fn of(figures: [Option<Figure>; 2]) -> Option<Self> {
        let ends = figures.into_iter().flatten().flat_map(|figure| <[f64; 2]>::from(figure.bounds()));
        let (low, high) =
            ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), end| (low.min(end), high.max(end)));
        if !(low.is_finite() && high.is_finite()) {
            return None;
        }
        // A single number stands in the middle.
        let margin = if high > low { 0.0 } else { low.abs().max(1.0) * 0.5 };
        Some(Self { low: low - margin, high: high + margin })
    }

    /// `├────┼────┤` in `cells` cells.
    fn interval(self, figure: Figure, cells: usize) -> String {
        if cells < 3 {
            return String::new();
        }
        let place = |number: f64| {
            let part = (number - self.low) / (self.high - self.low);
            (part.clamp(0.0, 1.0) * (cells - 1) as f64).round() as usize
        };
        let (low, high) = figure.bounds();
        let (low, mean, high) = (place(low), place(figure.mean), place(high));
        let glyph = |cell: usize| match cell {
            cell if cell == mean => '┼',
            cell if cell == low => '├',
            cell if cell == high => '┤',
            cell if cell > low && cell < high => '─',
            _ => ' ',
        };
        (0..cells).map(glyph).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::Error;

    fn figure(mean: f64, half: f64) -> Figure {
        Figure { mean, error: Error::of(half), variance: None }
    }

    #[test]
    fn intervals_share_an_axis() {
        let (raw, corrected) = (figure(10.0, 5.0), figure(10.0, 2.5));
        let axis = Axis::of([Some(raw), Some(corrected)]);
        let bars = [raw, corrected].map(|figure| axis.map(|axis| axis.interval(figure, 9)));
        assert_eq!(bars, [Some("├───┼───┤".into()), Some("  ├─┼─┤  ".into())]);
        assert_eq!(narrowing(Some(raw), Some(corrected)), "50% narrower");
        assert_eq!(narrowing(Some(corrected), Some(raw)), "100% wider");
        // Some of it is always left.
        assert_eq!(narrowing(Some(raw), Some(figure(10.0, 0.01))), "99% narrower");
        assert_eq!(narrowing(Some(raw), None), "");
        // The ratio is that of ±60.8% and ±105%, whatever the shorter sides are.
        let sides = |below, above| Figure { error: Error::Within { below, above }, ..raw };
        assert_eq!(narrowing(Some(sides(6.08, 6.08)), Some(sides(2.27, 10.5))), "73% wider");
    }

    #[test]
    fn an_exact_number_is_a_point_and_nothing_is_no_axis() {
        let exact = Figure { mean: 4.0, error: Error::Exact, variance: None };
        let axis = Axis::of([Some(exact), None]);
        assert_eq!(axis.map(|axis| axis.interval(exact, 5)), Some("  ┼  ".into()));
        assert!(Axis::of([None, None]).is_none());
        assert!(Axis::of([Some(figure(f64::NAN, 1.0)), None]).is_none());
    }
}
