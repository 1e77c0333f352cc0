//! Draws the table of events: their means, errors and spreads.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::event_cells::cell;
use super::event_columns::{EventColumn, EventsContents, EventsLayout, layout};
use super::page::ScreenPage;
use super::{metrics, sum};
use crate::monitor::{Measure, MeasureChoice};
use crate::tui::figures::{Figures, ShownValues};
use crate::tui::layout::{Room, rows_of_list};
use crate::tui::model::{ClickTarget, EventLine, Motion, ScrolledList, VisibleRows};
use crate::tui::screen::Screen;
use crate::tui::symbols::{CURSOR, DOWN, FROZEN, MISSING, UP};
use crate::tui::text::{amount, cut, cut_middle, left, right, short_clock, width};
use crate::tui::theme::Role;
use crate::units::WallNs;

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, room: Room) {
    let model = page.model;
    let order = &model.events.order;
    let selected = order.iter().position(|line| *line == model.events.cursor).unwrap_or(0);
    let shown = page.scrolled_in_panel(Screen::Events, (area, 1), (selected, order.len()));
    let figures: Vec<_> = order.iter().map(|&line| model.line_figures(line)).collect();
    let inner = page.list(area, title(page, &figures), (shown, all(page)), None);
    let cells = usize::from(inner.width).saturating_sub(2);
    // Where no event is shown the columns stay as they were.
    let of_all = || {
        let wholes = model.events.wholes(model.monitor.header().events.len());
        wholes.into_iter().map(|line| model.line_figures(line)).collect::<Vec<_>>()
    };
    let contents = match figures.is_empty() {
        true => EventsContents::of(page, room, &of_all()),
        false => EventsContents::of(page, room, &figures),
    };
    let (columns, gap) = layout(cells, contents);
    let mut rows = inner.rows();
    page.drawn.event_columns = Some(columns.iter().filter_map(|(column, _)| column.sorted_by()).collect());
    if let Some(row) = rows.next() {
        let sorts = columns.iter().map(|(column, _)| column.sorted_by().map(ClickTarget::SortEvents));
        page.heads(row, heads(page, &columns, gap), std::iter::once(None).chain(sorts));
    }
    if model.events.order.is_empty() {
        if let Some(row) = rows.next() {
            page.line(row, Line::from(page.span(Role::Dim, "  no event matches the filter; Esc clears it")));
        }
        return;
    }
    for ((&line, figures), row) in order.iter().zip(&figures).skip(shown.first).zip(rows) {
        let target = match line {
            EventLine::Event(event) => ClickTarget::Event(event),
            EventLine::Sum(place) => ClickTarget::Sum(place),
        };
        page.line(row, event_line(page, (line, figures), &columns, gap));
        page.target(row, target);
        if line == model.events.cursor {
            page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
        }
    }
}

/// Rows of an area that the events leave to what stands below them.
pub(super) fn free_rows(page: &ScreenPage<'_>, area: Rect) -> u16 {
    area.height.saturating_sub(rows_of_list(page.model.events.order.len().max(1)))
}

fn title(page: &ScreenPage<'_>, figures: &[Figures]) -> Line<'static> {
    let model = page.model;
    let sort = &model.events.sort;
    let order = match sort.by {
        None if sort.inverted => "order as given, inverted".to_owned(),
        None => "order as given".to_owned(),
        Some(column) => format!("by {}", column.word()),
    };
    let mut line = Line::from(vec![
        page.span(Role::Title, "Events"),
        page.span(Role::Border, " ─ "),
        page.span(Role::Dim, order),
        page.span(Role::Border, " ─ "),
        page.span(Role::Dim, basis(page, figures)),
    ]);
    if !model.events.filter.is_empty() {
        line.push_span(page.span(Role::Border, " ─ "));
        let text = crate::names::shown(model.events.filter.text()).into_owned();
        line.push_span(page.span(Role::Match, format!("filter: {text}")));
    }
    if model.motion == Motion::Frozen {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(Role::Info, format!("{FROZEN} held, z goes on")));
    }
    line
}

/// Which numbers are shown: scaled ones, where nothing has moved any.
fn basis(page: &ScreenPage<'_>, figures: &[Figures]) -> &'static str {
    let is_moved = |figures: &Figures| figures.raw != figures.corrected;
    let is_scaled = |figures: &Figures| figures.run.is_some_and(|run| run < 1.0);
    match page.model.basis {
        _ if !figures.iter().any(|figures| is_moved(figures) || is_scaled(figures)) => "nothing is scaled",
        ShownValues::Corrected if !figures.iter().any(is_moved) => "scaled",
        basis => basis.word(),
    }
}

/// How many lines there are without a filter, with the parts of what is unfolded.
fn all(page: &ScreenPage<'_>) -> usize {
    let model = page.model;
    let wholes = model.events.wholes(model.monitor.header().events.len());
    let open = model.events.folds.iter().filter(|fold| fold.is_open);
    wholes.len() + open.map(|fold| fold.parts.events.len()).sum::<usize>()
}

fn heads(page: &ScreenPage<'_>, columns: &EventsLayout, gap: usize) -> Line<'static> {
    let model = page.model;
    let sort = &model.events.sort;
    let mut line = Line::raw("  ");
    for (place, &(column, width)) in columns.iter().enumerate() {
        let mut text: String = match column {
            EventColumn::Event => "EVENT".into(),
            EventColumn::Now => model.newest_head().into(),
            EventColumn::Mean => mean_head(page, columns.iter().any(|(column, _)| *column == EventColumn::Raw)),
            EventColumn::NowError => format!("±{}", model.newest_head()),
            EventColumn::Error | EventColumn::RawError => model.error_head(),
            EventColumn::Unit => String::new(),
            EventColumn::Variance => "VAR".into(),
            EventColumn::Sigma => "σ".into(),
            EventColumn::Cv => "CV".into(),
            EventColumn::Min => "MIN".into(),
            EventColumn::Max => "MAX".into(),
            EventColumn::Samples => "n".into(),
            EventColumn::Raw => "RAW".into(),
            EventColumn::Run => "RUN%".into(),
            EventColumn::Off => "OFF".into(),
            EventColumn::Correction => "CORR".into(),
            EventColumn::By => "BY".into(),
            EventColumn::Trend => trend_head(page, width),
        };
        let by = column.sorted_by().is_some() && column.sorted_by() == sort.by;
        let before = if place == 0 { 0 } else { gap };
        if by {
            // The arrow may take the gap before the column but for a blank; then the title gives way.
            let blank = usize::from(place > 0);
            text = cut(&text, (width + before).saturating_sub(1 + blank)).into_owned();
            text.push_str(if sort.is_ascending() { UP } else { DOWN });
        }
        let field = if matches!(column, EventColumn::Event | EventColumn::Unit | EventColumn::By | EventColumn::Trend) {
            format!("{}{}", " ".repeat(before), left(&text, width))
        } else {
            right(&text, width + before)
        };
        line.push_span(page.span(if by { Role::Key } else { Role::Header }, field));
    }
    line
}

/// What the numbers are; beside raw ones, that they aren't.
fn mean_head(page: &ScreenPage<'_>, beside_raw: bool) -> String {
    match page.model.measures {
        _ if beside_raw => "CORRECTED".into(),
        MeasureChoice::Every(Measure::Total) => "TOTAL".into(),
        _ => "MEAN".into(),
    }
}

fn trend_head(page: &ScreenPage<'_>, width: usize) -> String {
    let interval = page.model.monitor.header().interval_ns.as_secs();
    let seconds = interval * width as f64;
    let span = match seconds {
        _ if seconds >= 120.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds >= 1.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} ms", seconds * 1000.0),
    };
    // Of what is over it says which time that is.
    let of_time = page.model.is_over().then(|| {
        let to = page.model.monitor.now();
        let from = to.0.saturating_sub((seconds * 1e9) as u64).max(page.model.monitor.began().0);
        format!("{}–{}", short_clock(WallNs(from)), short_clock(to))
    });
    let mut heads = of_time.into_iter().chain([format!("LAST {span}")]);
    heads.find(|head| head.chars().count() <= width).unwrap_or(span)
}

fn event_line(
    page: &ScreenPage<'_>,
    (event, figures): (EventLine, &Figures),
    columns: &EventsLayout,
    gap: usize,
) -> Line<'static> {
    let model = page.model;
    let cursor = if model.events.cursor == event { CURSOR } else { " " };
    let mut line = Line::from(vec![page.span(Role::Key, format!("{cursor} "))]);
    let name = cut_middle(&sum::short_name(page, event), columns[0].1).into_owned();
    let Some(figure) = figures.shown(model.basis) else {
        line.push_span(page.span(Role::Dim, left(&name, columns[0].1 + gap)));
        line.push_span(page.span(Role::Missing, why_missing(page, model.line_absence(event))));
        return line;
    };
    line.push_span(page.span(Role::Text, left(&name, columns[0].1)));
    for &column in &columns[1..] {
        line.push_span(Span::raw(" ".repeat(gap)));
        line.spans.extend(cell(page, column, event, figures, figure));
    }
    line
}

/// Words in place of numbers. They are never 0.
pub(super) fn why_missing(page: &ScreenPage<'_>, absence: Option<crate::monitor::Absence>) -> String {
    use crate::monitor::Absence;
    let monitor = &page.model.monitor;
    match absence {
        Some(Absence::NotYetRan) | None if monitor.intervals() == 0 && monitor.ended().is_none() => first_reading(page),
        Some(absence) => format!("{MISSING} {}", absence.words()),
        None => format!("{MISSING} {}", page.model.no_unit_words()),
    }
}

fn first_reading(page: &ScreenPage<'_>) -> String {
    let monitor = &page.model.monitor;
    let left = monitor.header().first_end() - monitor.now();
    format!("n=0, first reading in {:.1} s", left.as_secs())
}

/// One line for each event, and for each metric behind them, for the smallest screens.
pub(super) fn lines(page: &mut ScreenPage<'_>, area: Rect) {
    let model = page.model;
    let order = &model.events.order;
    let metrics: Vec<_> = model.monitor.metrics().collect();
    let selected = order.iter().position(|line| *line == model.events.cursor).unwrap_or(0);
    let all = order.len() + metrics.len();
    // Nobody can go to the metrics: they come with the last event.
    let end = if selected + 1 >= order.len() { all.saturating_sub(1) } else { selected };
    let list = ScrolledList::Of(Screen::Events);
    let (shown, last) = VisibleRows::in_lines(area, all, |rows| {
        let first = page.scrolled(list, rows, (end, all)).first;
        VisibleRows { first, rows, all }.scrolled(selected, all, rows).first
    });
    page.drawn.lists.set(list, shown);
    page.hidden_line(last, shown);
    let area = Rect { height: area.height - last.height, ..area };
    let metric_rows = area.rows().skip(order.len().saturating_sub(shown.first));
    for (metric, row) in metrics.iter().zip(metric_rows) {
        let line = metrics::short_line(page, metric, usize::from(area.width).saturating_sub(1));
        page.line(row, line);
    }
    for (&line, row) in order.iter().skip(shown.first).zip(area.rows()) {
        let room = usize::from(area.width).saturating_sub(1);
        let cursor = if line == model.events.cursor { CURSOR } else { " " };
        let value = short_value(page, line);
        let name = cut_middle(&sum::short_name(page, line), room.saturating_sub(width(&value) + 1).max(4)).into_owned();
        let gap = room.saturating_sub(width(&name));
        let text = Line::from(vec![
            Span::styled(cursor, page.style(Role::Key)),
            page.span(Role::Text, name),
            Span::styled(right(&value, gap), Style::new()),
        ]);
        page.line(row, text);
        if line == model.events.cursor {
            page.select(row);
        }
    }
}

fn short_value(page: &ScreenPage<'_>, line: EventLine) -> String {
    let model = page.model;
    let (figures, unit) = (model.line_figures(line), model.line_unit(line));
    match figures.shown(model.basis) {
        Some(figure) => {
            let suffix = model.line_suffix(line);
            format!("{}{suffix} {}", amount(figure.mean, unit).trim_end(), figures.error_of(figure, unit))
        }
        None => why_missing(page, model.line_absence(line)),
    }
}
