//! Draws the model as a frame. Nothing here changes the model.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::layout::{self, Filled, Regions, Room};
use super::model::{ClickTarget, DrawnScreen, Over, ScreenModel};
use super::screen::Screen;
use super::theme::Role;

mod chart;
mod columns;
mod compare;
mod detail;
mod diagnosis;
mod event_cells;
mod event_columns;
mod events;
mod export;
mod footer;
mod graph;
mod groups;
mod header;
mod help;
mod histogram;
mod hot_functions;
mod log;
mod metrics;
mod page;
mod phases;
mod profile;
mod quit;
mod region_events;
mod relations;
mod restriction;
mod run_plot;
mod source;
mod sparkline;
mod stacked;
mod strip;
mod sum;
mod threads;
mod timeline;
mod tour;

use page::ScreenPage;

/// Places of a screen where a click means something; of those that lie over one another, the last counts.
#[derive(Debug, Default)]
pub(super) struct ClickTargets(Vec<(Rect, ClickTarget)>);

impl ClickTargets {
    pub(super) fn at(&self, place: (u16, u16)) -> Option<ClickTarget> {
        self.0.iter().rfind(|(area, _)| area.contains(place.into())).map(|(_, target)| *target)
    }
}

/// Draws the whole screen.
pub(super) fn draw(model: &ScreenModel, frame: &mut Frame<'_>) -> (ClickTargets, DrawnScreen) {
    let area = frame.area();
    draw_on(model, area, frame.buffer_mut())
}

/// Draws the whole screen into a buffer.
pub(super) fn draw_on(model: &ScreenModel, area: Rect, buffer: &mut Buffer) -> (ClickTargets, DrawnScreen) {
    let theme = &model.theme;
    buffer.set_style(area, theme.style(Role::Background).patch(theme.style(Role::Text)));
    let mut page = ScreenPage { model, buffer, targets: Vec::new(), drawn: DrawnScreen::default() };
    let (area, below) = layout::split_below(area, if model.tour.is_some() { layout::TOUR } else { 0 });
    if let Some(step) = model.tour {
        tour::draw(&mut page, below, step);
    }
    match Room::of(area) {
        Room::TooSmall => {
            too_small(&mut page, area);
            if let Over::AskQuit { pid } = model.over {
                quit::draw(&mut page, area, pid);
            }
        }
        room => {
            let regions = Regions::of(area, room, model.timeline_rows());
            header::draw(&mut page, regions.header);
            header::tabs(&mut page, regions.tabs);
            screen(&mut page, regions.body, room);
            timeline::draw(&mut page, regions.timeline);
            footer::draw(&mut page, regions.message, regions.hints);
            match &model.over {
                Over::Help(open) => help::draw(&mut page, area, open),
                Over::AskQuit { pid } => quit::draw(&mut page, area, *pid),
                Over::AskExport => export::draw(&mut page, area),
                Over::Nothing | Over::Filter { .. } | Over::Jump { .. } => {}
            }
        }
    }
    model.options.symbols.apply(page.buffer);
    (ClickTargets(page.targets), page.drawn)
}

fn screen(page: &mut ScreenPage<'_>, area: Rect, room: Room) {
    let model = page.model;
    if let (Screen::Events, Some(region), Some(profile)) = (model.screen, &model.region, &model.profile) {
        return region_events::draw(page, area, profile, region);
    }
    let area = match (model.screen, room) {
        (_, Room::TooSmall | Room::Lines) => area,
        (Screen::Events | Screen::Threads | Screen::Log, _) => restriction::above(page, area),
        _ => area,
    };
    match (page.model.screen, room) {
        (Screen::Events, Room::Lines) => events::lines(page, area),
        (Screen::Events, Room::Small) => stacked::draw(page, area),
        (Screen::Events, _) if page.model.profile.is_some() && layout::has_profile_beside(area, room, filled(page)) => {
            let area = diagnosis::above_events(page, area);
            let (left, right) = layout::beside_profile(area, filled(page));
            overview(page, left, Room::Large);
            profile::draw(page, right, false);
        }
        (Screen::Events, _) => {
            let area = diagnosis::above_events(page, area);
            overview(page, area, room);
        }
        (Screen::Detail, _) => detail::draw(page, area, true),
        (Screen::Relations, _) => relations::draw(page, area, true),
        (Screen::Profile, _) => profile::draw(page, area, true),
        (Screen::Groups, _) => groups::draw(page, area),
        (Screen::Log, _) => log::draw(page, area),
        (Screen::Threads, _) => threads::draw(page, area),
        (Screen::Source, _) => source::draw(page, area),
        (Screen::Compare, _) => compare::draw(page, area),
    }
}

fn filled(page: &ScreenPage<'_>) -> Filled {
    let model = page.model;
    let events = model.events.wholes(model.monitor.header().events.len()).len();
    let output = model.has_output().then_some(model.output.lines.len());
    Filled { events, relations: model.monitor.relations().len(), output }
}

/// Draws everything at once, where there is room.
fn overview(page: &mut ScreenPage<'_>, area: Rect, room: Room) {
    let threads = page.model.threads();
    let panels = layout::overview(area, room, filled(page), |width, most| log::rows(page, width, most));
    let (table, below) = metrics::below_events(page, panels.events);
    let rows = threads::rows(page, threads.as_ref());
    let (table, calls) = profile_below_events(page, table, room, rows);
    let free = events::free_rows(page, table);
    let rows = match room == Room::Large && panels.detail.is_empty() && rows > free.saturating_sub(LEAST_DETAIL) {
        true => free * 3 / 5,
        false => rows,
    };
    let (table, hot) = match room != Room::Large && calls.is_empty() && !page.model.hot_functions.is_empty() {
        true if panels.detail.is_empty() => hot_functions::below_events(page, table, rows),
        // In place of the chart.
        true => (table, panels.detail),
        false => (table, Rect::default()),
    };
    let (table, busiest) = threads::below_events(page, table, rows);
    let (table, detail) = match (panels.detail.is_empty(), events::free_rows(page, table)) {
        (true, free) if free >= layout::LEAST_CHART => layout::split_below(table, free),
        _ => (table, panels.detail),
    };
    events::draw(page, table, room);
    threads::draw_busiest(page, busiest, threads.as_ref());
    if !calls.is_empty() {
        profile::draw(page, calls, false);
    }
    metrics::draw(page, below);
    hot_functions::draw(page, hot);
    if !detail.is_empty() && detail != hot {
        detail::draw(page, detail, false);
    }
    if !panels.relations.is_empty() {
        relations::draw(page, panels.relations, false);
    }
    log::findings(page, panels.log, false);
    if let Some(area) = panels.output {
        log::output(page, area, false);
    }
}

/// Rows of the chart of an event that threads leave on a large screen; where not all of them fit then, it has a part of
/// the rows.
const LEAST_DETAIL: u16 = 11;

/// The rows of the profile without which it isn't there below the events, and without which it has no icicle.
const LEAST_OF_PROFILE: u16 = 10;
const LEAST_WITH_ICICLE: u16 = 12;

/// The events with so many rows of threads below them, and the profile below these, where a screen of medium size has
/// room for it.
fn profile_below_events(page: &ScreenPage<'_>, area: Rect, room: Room, threads: u16) -> (Rect, Rect) {
    let free = events::free_rows(page, area);
    // All of them, where that leaves the profile its icicle.
    let is_both = threads <= free / 2 && free - threads >= LEAST_WITH_ICICLE;
    let calls = free - if is_both { threads } else { threads.min(free * 2 / 5) };
    match page.model.profile.as_ref().filter(|profile| !profile.is_empty()) {
        Some(profile) if room == Room::Medium && calls >= LEAST_OF_PROFILE => {
            layout::split_below(area, calls.min(profile::rows(profile).max(LEAST_OF_PROFILE)))
        }
        _ => (area, Rect::default()),
    }
}

fn too_small(page: &mut ScreenPage<'_>, area: Rect) {
    let (width, height) = (area.width, area.height);
    let (least_width, least_height) = layout::LEAST;
    let text = format!("perfprop {width}x{height}: too small (need {least_width}x{least_height})");
    let lines = super::text::wrap(&text, usize::from(width));
    for (line, row) in lines.into_iter().zip(area.rows()) {
        page.line(row, Line::raw(line));
    }
}
