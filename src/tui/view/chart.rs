//! Draws intervals as a line over time with its error band.
//!
//! ```text
//!  600k ┤        ░░░░        ░░░      a cell of the line has 2 x 4 dots; the band fills cells;
//!       │  ░░⡠⠤⢄░░░░⡠⢄░░░░⡠⠊⢄░       ┊ marks where nothing ran; ┄ is the mean over the run, or of
//!       │                              each phase; ╎ marks where one ends; ↑ is a peak that is cut off
//!  300k ┤⠤⠊░░░░⠑⠤⠤⠊░⠑⠤⠊░░░░⠑⠤
//!       └┬──────────────┬─────────
//!     −60 s           −30 s     now
//! ```

use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;

use super::page::ScreenPage;
use super::sparkline::usual_highest;
use crate::monitor::Point;
use crate::rates::Uncertain;
use crate::tui::model::AxisStart;
use crate::tui::symbols::UP;
use crate::tui::text::width;
use crate::tui::theme::Role;
use crate::units::WallNs;

/// Data and labels of a chart.
pub(super) struct Chart<'a> {
    /// The intervals of each history, in the unit of the screen.
    pub(super) histories: Vec<Vec<Point>>,
    /// The lines, each over those before it. The gaps are those of the last one, and the bands those of
    /// the last one of each history.
    pub(super) series: &'a [Series],
    /// What the times on the axis are counted from.
    pub(super) clock: TimeOrigin,
    /// The time at the left and at the right.
    pub(super) from: WallNs,
    pub(super) to: WallNs,
    /// Levels that are drawn over a time each: the mean over the run, or that of each phase.
    pub(super) levels: Vec<ChartLevel>,
    /// When the level changed.
    pub(super) changes: Vec<WallNs>,
    /// How long ago something was, on the horizontal axis.
    pub(super) span: fn(WallNs) -> String,
    /// A number on the vertical axis in words.
    pub(super) label: &'a dyn Fn(f64) -> String,
}

/// A level in the unit of the screen, and from when to when it is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ChartLevel {
    pub(super) from: WallNs,
    pub(super) to: WallNs,
    pub(super) value: f64,
}

/// What the times on an axis are counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeOrigin {
    /// Back from the end: `−60 s`, `now`.
    Now,
    /// Time from the start of a recording: `0 s`, `60 s`.
    Start,
}

/// One line of a chart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series {
    /// The place of its intervals in the list of histories.
    pub(super) history: usize,
    /// A letter at the end of the line, where colour alone would distinguish lines.
    pub(super) letter: Option<char>,
    /// Role that gives the line its style.
    pub(super) role: Role,
    /// Gets the line's number from an interval.
    pub(super) of: fn(&Point) -> Option<Uncertain>,
}

impl Series {
    pub(super) const RAW: Self = Self { history: 0, letter: None, role: Role::Raw, of: |point| point.raw };
    pub(super) const CORRECTED: Self =
        Self { history: 0, letter: None, role: Role::Corrected, of: |point| point.corrected };
}

/// Columns of dots in a cell.
const ACROSS: usize = 2;
const DOWN: usize = 4;

/// What one column of dots shows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Stroke {
    /// The lowest and highest rate.
    line: Option<(f64, f64)>,
    band: Option<(f64, f64)>,
    gap: bool,
}

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, chart: &Chart<'_>) {
    if area.width < 16 || area.height < 3 {
        return;
    }
    let rows = usize::from(area.height - 2);
    let strokes: Vec<_> = chart.series.iter().flat_map(|series| chart.strokes(*series, 2)).collect();
    let scale = ChartScale::of(&strokes, &chart.levels, rows, page.model.axis);
    let labels = labels(&scale, chart, rows);
    let margin = labels.iter().map(|(_, label)| width(label)).max().unwrap_or(0).min(if rows == 1 { 20 } else { 10 });
    let plot = Rect {
        x: area.x + margin as u16 + 1,
        width: area.width.saturating_sub(margin as u16 + 1),
        height: area.height - 2,
        ..area
    };
    draw_axes(page, area, plot, chart, &labels);
    draw_line(page, plot, chart, &scale);
}

/// The rows of the numbers on the vertical axis; one row says from where to where it goes.
fn labels(scale: &ChartScale, chart: &Chart<'_>, rows: usize) -> Vec<(usize, String)> {
    if rows == 1 {
        let [low, high] = [scale.low, scale.high].map(|end| (chart.label)(end).trim().to_owned());
        return vec![(0, format!("{low}–{high}"))];
    }
    let mut labels: Vec<_> = scale.ticks().map(|tick| (scale.row(tick, rows), (chart.label)(tick))).collect();
    // Three digits can be too few to tell two ticks apart.
    labels.dedup_by(|(_, upper), (_, lower)| upper == lower);
    labels
}

fn draw_axes(page: &mut ScreenPage<'_>, area: Rect, plot: Rect, chart: &Chart<'_>, labels: &[(usize, String)]) {
    let border = page.style(Role::Border);
    let x = plot.x.saturating_sub(1);
    for y in plot.top()..plot.bottom() {
        page.put(x, y, "│", border);
    }
    for (row, label) in labels {
        let y = plot.y + *row as u16;
        page.put(x, y, "┤", border);
        let cells = x.saturating_sub(area.x);
        let label = Line::from(page.span(Role::Dim, label.trim_end().to_owned())).right_aligned();
        page.line(Rect::new(area.x, y, cells, 1), label);
    }
    page.put(x, plot.bottom(), "└", border);
    for column in plot.left()..plot.right() {
        page.put(column, plot.bottom(), "─", border);
    }
    let long = chart.to - chart.from;
    let part = |halves: u16| WallNs(long.0.saturating_mul(halves.into()) / 2);
    let times = if plot.width >= 36 { vec![0, 1, 2] } else { vec![0, 2] };
    for half in times {
        let column = plot.x + (plot.width.saturating_sub(1)) * half / 2;
        page.put(column, plot.bottom(), "┬", border);
        let text = match (chart.clock, half) {
            (TimeOrigin::Now, 2) => "now".to_owned(),
            (TimeOrigin::Now, half) => format!("−{}", (chart.span)(part(2 - half))),
            (TimeOrigin::Start, 0) if chart.from == WallNs(0) => "0".to_owned(),
            (TimeOrigin::Start, half) => (chart.span)(chart.from + part(half)),
        };
        let cells = width(&text) as u16;
        let start = match half {
            0 => column,
            2 => (column + 1).saturating_sub(cells),
            _ => column.saturating_sub(cells / 2),
        };
        page.line(Rect::new(start, plot.bottom() + 1, cells, 1), Line::from(page.span(Role::Dim, text)));
    }
}

fn draw_line(page: &mut ScreenPage<'_>, plot: Rect, chart: &Chart<'_>, scale: &ChartScale) {
    let (columns, rows) = (usize::from(plot.width), usize::from(plot.height));
    let strokes = |series: &Series| chart.strokes(*series, columns * ACROSS);
    let lines: Vec<_> = chart.series.iter().map(|series| (series.role, dots(&strokes(series), scale, rows))).collect();
    let last = chart.series.last().map(strokes).unwrap_or_default();
    let banded: Vec<_> = chart.banded().map(strokes).collect();
    let levels = chart.levels_of_columns(columns);
    let changes = chart.columns_of_changes(columns);
    for (column, pair) in last.chunks(ACROSS).enumerate() {
        let bands: Vec<_> = banded
            .iter()
            .filter_map(|strokes| {
                let dots = strokes.iter().skip(column * ACROSS).take(ACROSS);
                dots.filter_map(|stroke| stroke.band).reduce(wider)
            })
            .map(|(low, high)| scale.row(high, rows)..=scale.row(low, rows))
            .collect();
        let gap = pair.iter().all(|stroke| stroke.line.is_none()) && pair.iter().any(|stroke| stroke.gap);
        for row in 0..rows {
            let (x, y) = (plot.x + column as u16, plot.y + row as u16);
            let line = lines.iter().rev().find(|(_, dots)| dots[column][row] != 0);
            if let Some((role, dots)) = line {
                let glyph = char::from_u32(0x2800 + u32::from(dots[column][row])).unwrap_or(' ');
                page.put(x, y, glyph.encode_utf8(&mut [0; 4]), page.style(*role));
            } else if changes.contains(&column) {
                page.put(x, y, "╎", page.style(Role::Match));
            } else if gap {
                page.put(x, y, "┊", page.style(Role::Border));
            } else if levels[column].is_some_and(|level| scale.row(level, rows) == row) {
                page.put(x, y, "┄", page.style(Role::Reference));
            } else if bands.iter().any(|band| band.contains(&row)) {
                page.put(x, y, "░", page.style(Role::Band));
            }
        }
        // A peak that is cut off.
        if pair.iter().any(|stroke| stroke.line.is_some_and(|(_, high)| high > scale.high)) {
            page.put(plot.x + column as u16, plot.y, UP, page.style(Role::Warn));
        }
    }
    for (series, (role, dots)) in chart.series.iter().zip(&lines) {
        put_letter(page, plot, *series, *role, dots);
    }
}

/// The letter of a line, where the line ends.
fn put_letter(page: &mut ScreenPage<'_>, plot: Rect, series: Series, role: Role, dots: &[Vec<u8>]) {
    let Some(letter) = series.letter else { return };
    let end = dots.iter().enumerate().rev().find_map(|(column, dots)| {
        let row = dots.iter().position(|dots| *dots != 0)?;
        Some((column, row))
    });
    if let Some((column, row)) = end {
        let (x, y) = (plot.x + column as u16, plot.y + row as u16);
        page.put(x, y, letter.encode_utf8(&mut [0; 4]), page.style(role).add_modifier(Modifier::BOLD));
    }
}

/// The dots of a line in each cell, column by column.
fn dots(strokes: &[Stroke], scale: &ChartScale, rows: usize) -> Vec<Vec<u8>> {
    let mut before: Option<(usize, usize)> = None;
    let mut columns = Vec::with_capacity(strokes.len() / ACROSS);
    for pair in strokes.chunks(ACROSS) {
        let mut dots = vec![0u8; rows];
        for (across, stroke) in pair.iter().enumerate() {
            let span = stroke.line.map(|(low, high)| (scale.dot(high, rows), scale.dot(low, rows)));
            if let Some((top, bottom)) = span {
                // Joined to the stroke before it, so that a step is a line.
                let (from, to) = before.map_or((top, bottom), |(above, below)| {
                    (top.min(below.saturating_add(1)).min(bottom), bottom.max(above.saturating_sub(1)).max(top))
                });
                (from..=to).for_each(|dot| dots[dot / DOWN] |= braille(across, dot % DOWN));
            }
            before = span;
        }
        columns.push(dots);
    }
    columns
}

/// The bit of a dot in a braille character: columns of 1 2 3 7 and 4 5 6 8.
fn braille(across: usize, down: usize) -> u8 {
    const BITS: [[u8; DOWN]; ACROSS] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    BITS[across.min(ACROSS - 1)][down.min(DOWN - 1)]
}

impl Chart<'_> {
    /// The last line of each history.
    fn banded(&self) -> impl Iterator<Item = &Series> {
        let later = |place: usize| &self.series[place + 1..];
        let is_last =
            move |(place, series): &(usize, &Series)| later(*place).iter().all(|l| l.history != series.history);
        self.series.iter().enumerate().filter(is_last).map(|(_, series)| series)
    }

    /// The column of a time, of so many.
    fn column(&self, time: WallNs, columns: usize) -> Option<usize> {
        let long = (self.to - self.from).as_secs();
        let place = (time.as_secs() - self.from.as_secs()) / long * columns as f64;
        (long > 0.0 && (0.0..columns as f64).contains(&place)).then_some(place as usize)
    }

    fn columns_of_changes(&self, columns: usize) -> Vec<usize> {
        self.changes.iter().filter_map(|&time| self.column(time, columns)).collect()
    }

    /// The level in each of so many columns.
    fn levels_of_columns(&self, columns: usize) -> Vec<Option<f64>> {
        let mut levels = vec![None; columns];
        for level in self.levels.iter().filter(|level| level.to > self.from && level.from < self.to) {
            let first = self.column(level.from.max(self.from), columns).unwrap_or(0);
            let last = self.column(level.to, columns).unwrap_or(columns);
            levels[first.min(columns)..last.max(first).min(columns)].fill(Some(level.value));
        }
        levels
    }

    /// The rates of the time that each of so many columns covers. An interval lasts from its
    /// beginning to its end, so a column shows every interval that it touches.
    fn strokes(&self, series: Series, columns: usize) -> Vec<Stroke> {
        let mut strokes = vec![Stroke::default(); columns];
        let (from, long) = (self.from.as_secs(), (self.to - self.from).as_secs());
        if long <= 0.0 || columns == 0 {
            return strokes;
        }
        let place = |seconds: f64| (seconds - from) / long * columns as f64;
        for point in self.histories.get(series.history).into_iter().flatten() {
            let (begin, end) = (place((point.at - point.length).as_secs()), place(point.at.as_secs()));
            if end <= 0.0 || begin >= columns as f64 {
                continue;
            }
            let first = begin.max(0.0).floor() as usize;
            let last = (end.ceil() as usize).saturating_sub(1).clamp(first, columns - 1);
            for stroke in strokes.iter_mut().take(last + 1).skip(first) {
                stroke.add((series.of)(point));
            }
        }
        strokes
    }
}

impl Stroke {
    fn add(&mut self, number: Option<Uncertain>) {
        let Some(number) = number.filter(|number| number.value.is_finite()) else {
            self.gap = true;
            return;
        };
        let add = |old: Option<(f64, f64)>, new: (f64, f64)| Some(old.map_or(new, |old| wider(old, new)));
        self.line = add(self.line, (number.value, number.value));
        if let Some(bounds) = number.bounds().filter(|(low, high)| low < high) {
            self.band = add(self.band, bounds);
        }
    }
}

/// The least range that holds both.
fn wider(one: (f64, f64), other: (f64, f64)) -> (f64, f64) {
    (one.0.min(other.0), one.1.max(other.1))
}

/// A plot of so many rows has no room for round numbers: its scale goes from the least to the most that is shown.
const FEW_ROWS: usize = 3;

/// The vertical axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ChartScale {
    low: f64,
    high: f64,
    step: f64,
}

impl ChartScale {
    /// Round numbers around all that is to be seen. A band may reach past the edge: the line is
    /// not to be squeezed flat by a wide one.
    fn of(strokes: &[Stroke], levels: &[ChartLevel], rows: usize, axis: AxisStart) -> Self {
        let levels = levels.iter().map(|level| (level.value, level.value));
        let lines = strokes.iter().filter_map(|stroke| stroke.line).chain(levels);
        let lines: Vec<(f64, f64)> = lines.collect();
        let low = lines.iter().fold(f64::INFINITY, |low, line| low.min(line.0));
        let high = usual_highest(&lines.iter().map(|line| line.1).collect::<Vec<_>>());
        if !(low.is_finite() && high.is_finite()) {
            return Self { low: 0.0, high: 1.0, step: 1.0 };
        }
        if rows <= FEW_ROWS {
            return Self::between(low, high, axis);
        }
        let room = (high - low).max(0.05 * high.abs());
        let bands = strokes.iter().filter_map(|stroke| stroke.band);
        let (band_low, band_high) = bands.fold((low, high), |(low, high), band| (low.min(band.0), high.max(band.1)));
        let positive = low >= 0.0;
        let mut low = band_low.max(low - 0.75 * room) - 0.05 * room;
        let high = band_high.min(high + 0.75 * room) + 0.05 * room;
        if positive && (axis == AxisStart::Zero || low < 0.35 * high || low < 0.0) {
            low = 0.0;
        }
        Self::fitting(low, high, rows.saturating_sub(1).max(1))
    }

    /// A scale with ticks at its ends. Noise of a few percent must not fill it.
    fn between(low: f64, high: f64, axis: AxisStart) -> Self {
        let least = if low == 0.0 && high == 0.0 { 1.0 } else { 0.05 * high.abs().max(low.abs()) };
        let begins_at_zero = low >= 0.0 && (axis == AxisStart::Zero || low < 0.35 * high);
        let low = if begins_at_zero { 0.0 } else { low };
        let high = high.max(low + least);
        Self { low, high, step: high - low }
    }

    /// Ticks lie the same whole number of rows apart; of the distances, the one with which the numbers fill the rows
    /// best.
    fn fitting(low: f64, high: f64, gaps: usize) -> Self {
        let scales = (2..=5).filter_map(|rows| {
            let part = rows.min(gaps) as f64 / gaps as f64;
            let mut step = round_step((high - low) * part);
            // What begins at a tick may no longer reach the top; one step never does on both sides of 0.
            for _ in 0..3 {
                let low = (low / step).floor() * step;
                if low + step / part >= high * (1.0 - 1e-9) {
                    return Some(Self { low, high: low + step / part, step });
                }
                step = round_step(step * 1.1);
            }
            None
        });
        let length = |scale: &Self| scale.high - scale.low;
        let best = scales.reduce(|best, scale| if length(&scale) < length(&best) { scale } else { best });
        best.unwrap_or(Self { low, high, step: high - low })
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.step + 1e-9).floor().clamp(0.0, 40.0) as usize;
        let (low, step) = (self.low, self.step);
        (0..=count).map(move |i| low + step * i as f64)
    }

    /// Position of a number, from 0 at the top to 1 at the bottom.
    fn depth(&self, number: f64) -> f64 {
        ((self.high - number) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn row(&self, number: f64, rows: usize) -> usize {
        self.dot(number, rows) / DOWN
    }

    /// The ends of the scale lie in the middle of the first and the last row, and at the edges of few rows.
    fn dot(&self, number: f64, rows: usize) -> usize {
        if rows <= FEW_ROWS {
            return (self.depth(number) * (rows * DOWN).saturating_sub(1) as f64).round() as usize;
        }
        DOWN / 2 + (self.depth(number) * (rows.saturating_sub(1) * DOWN) as f64).round() as usize
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
pub(super) fn round_step(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= least * 0.999_999);
    step.filter(|step| step.is_finite() && *step > 0.0).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::Error;

    fn point(second: u64, rate: Option<f64>, error: Error) -> Point {
        let (at, length) = (WallNs(second * 1_000_000_000), WallNs(1_000_000_000));
        Point { at, length, raw: rate.map(|value| Uncertain { value, error }), ..Point::default() }
    }

    fn chart(points: &[Point], from: u64, to: u64) -> Chart<'static> {
        Chart {
            span: crate::tui::text::span,
            histories: vec![points.to_vec()],
            series: &[Series::RAW],
            clock: TimeOrigin::Now,
            from: WallNs(from * 1_000_000_000),
            to: WallNs(to * 1_000_000_000),
            levels: Vec::new(),
            changes: Vec::new(),
            label: &|_| String::new(),
        }
    }

    #[test]
    fn an_interval_covers_its_whole_time() {
        let points = [point(1, Some(5.0), Error::Within { below: 1.0, above: 4.0 }), point(2, None, Error::Unknown)];
        let strokes = chart(&points, 0, 4).strokes(Series::RAW, 8);
        let lines: Vec<_> = strokes.iter().map(|stroke| stroke.line).collect();
        let five = Some((5.0, 5.0));
        assert_eq!(lines, [five, five, None, None, None, None, None, None]);
        assert_eq!(strokes[0].band, Some((4.0, 9.0)));
        assert_eq!(strokes.iter().map(|stroke| stroke.gap).collect::<Vec<_>>()[..5], [false, false, true, true, false]);
    }

    #[test]
    fn a_column_shows_all_that_it_touches() {
        let points: Vec<_> = (1..=10).map(|second| point(second, Some(second as f64), Error::Exact)).collect();
        let strokes = chart(&points, 0, 10).strokes(Series::RAW, 2);
        assert_eq!(strokes[0].line, Some((1.0, 5.0)));
        assert_eq!(strokes[1].line, Some((6.0, 10.0)));
        assert_eq!(chart(&points, 5, 5).strokes(Series::RAW, 2), [Stroke::default(); 2]);
    }

    #[test]
    fn levels_and_changes_are_in_the_columns_of_their_times() {
        let second = |second: u64| WallNs(second * 1_000_000_000);
        let level = |from, to, value| ChartLevel { from: second(from), to: second(to), value };
        let levels = vec![level(0, 12, 5.0), level(12, 16, 7.0)];
        let chart = Chart { levels, changes: vec![second(4), second(12)], ..chart(&[], 10, 20) };
        assert_eq!(chart.columns_of_changes(5), [1]);
        let (five, seven) = (Some(5.0), Some(7.0));
        assert_eq!(chart.levels_of_columns(5), [five, seven, seven, None, None]);
        let to_the_end = Chart { levels: vec![level(0, 20, 5.0)], ..chart };
        assert_eq!(to_the_end.levels_of_columns(3), [five; 3]);
    }

    #[test]
    fn scales_have_round_numbers_and_hold_the_line() {
        let strokes = [Stroke { line: Some((300.0, 870.0)), ..Stroke::default() }];
        let scale = ChartScale::of(&strokes, &[], 9, AxisStart::Least);
        assert_eq!(scale.ticks().collect::<Vec<_>>(), [0.0, 500.0, 1000.0]);
        assert_eq!((scale.row(1000.0, 9), scale.row(0.0, 9)), (0, 8));
        for (low, high) in [(0.0, 0.0), (5.0, 5.0), (-3.0, 3.0), (1e300, 1e301), (1e-300, 2e-300)] {
            for rows in 1..40 {
                let scale = ChartScale::of(
                    &[Stroke { line: Some((low, high)), ..Stroke::default() }],
                    &[],
                    rows,
                    AxisStart::Least,
                );
                assert!(scale.low <= low && scale.high >= high && scale.step > 0.0, "{low} {high}");
                let ticks: Vec<_> = scale.ticks().map(|tick| scale.row(tick, rows)).collect();
                assert!(ticks.windows(3).all(|rows| rows[0] - rows[1] == rows[1] - rows[2]), "{rows}: {ticks:?}");
                assert!(ticks.iter().all(|row| *row < rows));
            }
        }
    }

    #[test]
    fn few_rows_say_the_least_and_the_most_that_is_shown() {
        let strokes = [352.0, 1234.0].map(|number| Stroke { line: Some((number, number)), ..Stroke::default() });
        let labels = |rows, axis| {
            let chart = Chart { label: &|number| format!("{number} "), ..chart(&[], 0, 1) };
            labels(&ChartScale::of(&strokes, &[], rows, axis), &chart, rows)
        };
        assert_eq!(labels(2, AxisStart::Zero), [(1, "0 ".to_owned()), (0, "1234 ".to_owned())]);
        assert_eq!(labels(1, AxisStart::Zero), [(0, "0–1234".to_owned())]);
        let scale = ChartScale::between(900.0, 1000.0, AxisStart::Least);
        assert_eq!((scale.low, scale.high, scale.dot(900.0, 3), scale.dot(1000.0, 3)), (900.0, 1000.0, 11, 0));
        assert_eq!(ChartScale::between(1000.0, 1001.0, AxisStart::Least).high, 1050.05);
        assert_eq!(ChartScale::between(0.0, 0.0, AxisStart::Zero).high, 1.0);
    }

    #[test]
    fn steps_are_round() {
        for (least, step) in
            [(0.7, 1.0), (1.0, 1.0), (1.2, 2.0), (30.0, 50.0), (70.0, 100.0), (0.0, 1.0), (f64::NAN, 1.0)]
        {
            assert_eq!(round_step(least), step, "{least}");
        }
    }

    #[test]
    fn dots_have_the_bits_of_the_standard() {
        assert_eq!((braille(0, 0), braille(0, 3), braille(1, 0), braille(1, 3)), (0x01, 0x40, 0x08, 0x80));
    }
}
