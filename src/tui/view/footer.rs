//! Draws the two lines at the bottom: what was done, is asked or should be known.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::page::ScreenPage;
use crate::number::whole_share;
use crate::tui::keys::{Action, Bound, keys_in};
use crate::tui::model::{Motion, Notice, Over, ScreenModel};
use crate::tui::screen::Screen;
use crate::tui::symbols::{ERROR, OK, WARN};
use crate::tui::text::{cut, cut_front, width};
use crate::tui::theme::Role;

/// Where the next letter goes.
pub(super) const CARET: &str = "▏";

/// The message has a line of its own where there is room; elsewhere it takes that of the hints.
pub(super) fn draw(page: &mut ScreenPage<'_>, message: Rect, hints: Rect) {
    let urgent = urgent(page);
    if message.height > 0 {
        let line = urgent.or_else(|| advice(page));
        if let Some(line) = line {
            page.line(message, fitted(line, message));
        }
        draw_hints(page, hints);
    } else if let Some(line) = urgent {
        page.line(hints, fitted(line, hints));
    } else {
        draw_hints(page, hints);
    }
}

/// What the user is in the middle of, or has just done.
fn urgent(page: &ScreenPage<'_>) -> Option<Line<'static>> {
    let model = page.model;
    if let (Over::Filter { .. }, Some(filter)) = (&model.over, model.filter()) {
        return Some(prompt(page, " /", filter, "  Enter keeps it, Esc takes it back"));
    }
    if let Over::Jump { text } = &model.over {
        return Some(prompt(page, " to ", text, "  seconds or minutes:seconds; Enter goes there"));
    }
    let (glyph, role, text) = match model.notice.as_ref()? {
        Notice::Done(text) => (OK, Role::Ok, text),
        Notice::Failed(text) => (ERROR, Role::Error, text),
    };
    Some(Line::from(vec![page.span(role, format!(" {glyph} ")), page.span(Role::Text, text.clone())]))
}

/// A line that is being typed: its end is always seen.
fn prompt(page: &ScreenPage<'_>, before: &'static str, text: &str, hint: &'static str) -> Line<'static> {
    let room = usize::from(page.model.size.0).saturating_sub(width(before) + width(CARET));
    let text = crate::names::shown(text);
    Line::from(vec![
        page.span(Role::Key, before),
        page.span(Role::Text, cut_front(&text, room).into_owned()),
        page.span(Role::Key, CARET),
        page.span(Role::Dim, hint),
    ])
}

/// What should be known about the selected event.
fn advice(page: &ScreenPage<'_>) -> Option<Line<'static>> {
    let model = page.model;
    let run = match model.screen {
        Screen::Events | Screen::Detail => selected_run(model)?,
        Screen::Relations
        | Screen::Profile
        | Screen::Groups
        | Screen::Log
        | Screen::Threads
        | Screen::Source
        | Screen::Compare => {
            return None;
        }
    };
    let run = whole_share(run);
    let text = format!("on a counter {run} of the time, scaled up for the rest; fewer events would help");
    Some(Line::from(vec![page.span(Role::Warn, format!(" {WARN} ")), page.span(Role::Dim, text)]))
}

/// The part of the time that the selected event was counted, where its number leans on scaling.
fn selected_run(model: &ScreenModel) -> Option<f64> {
    let index = model.events.selected;
    if index >= model.monitor.header().events.len() || model.monitor.row(index).absence.is_some() {
        return None;
    }
    let figures = model.figures(index);
    figures.run.filter(|&run| figures.leans_on_scaling(run, model.basis))
}

fn fitted(line: Line<'static>, area: Rect) -> Line<'static> {
    if line.width() <= usize::from(area.width) {
        return line;
    }
    let mut room = usize::from(area.width);
    let mut spans = Vec::new();
    for span in line.spans {
        let text = cut(&span.content, room).into_owned();
        room -= width(&text);
        spans.push(Span::styled(text, span.style));
    }
    Line::from(spans)
}

/// Draws as many whole hints as fit; help and quit always.
fn draw_hints(page: &mut ScreenPage<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let screen = page.model.screen;
    let keymap = &page.model.options.keymap;
    let is_empty = screen == Screen::Profile && page.model.profile.is_none();
    let useful = keymap.on(screen).filter(|bound| page.model.has_use_for(bound.binding.action));
    let useful = useful.filter(|bound| !is_empty || bound.binding.works_everywhere());
    let mut useful: Vec<_> = useful.collect();
    // Moving comes first, then what a replay has beside what runs.
    useful.sort_by_key(|bound| match bound.binding.action {
        Action::Down | Action::Open => 0,
        Action::Pause | Action::StepForward | Action::Range | Action::Back => 1,
        _ => 2,
    });
    let hints = useful.into_iter().filter_map(|bound| {
        let words = match bound.binding.hint? {
            "range" => page.model.range_hint(),
            "freeze" if page.model.motion == Motion::Frozen => "go on",
            "pause" if !page.model.is_playing() => "play",
            "raw" => page.model.basis.next().word(),
            "leave range" if screen == Screen::Source => "back",
            "detail" if screen == Screen::Compare => "functions",
            "detail" if screen == Screen::Threads => "stacks",
            words => words,
        };
        Some((first_key(page, bound), words))
    });
    let always = [(Action::Help, "help"), (Action::Quit, "quit")].map(|(action, words)| {
        let bound = keymap.on(screen).find(|bound| bound.binding.action == action);
        (bound.map_or_else(String::new, |bound| first_key(page, bound)), words)
    });
    let length = |(key, words): &(String, &str)| width(key) + 1 + width(words) + 2;
    let mut room = usize::from(area.width).saturating_sub(always.iter().map(length).sum::<usize>());
    let mut chosen = Vec::new();
    for hint in hints {
        if length(&hint) > room {
            break;
        }
        room -= length(&hint);
        chosen.push(hint);
    }
    let mut line = Line::raw(" ");
    for (key, words) in chosen.into_iter().chain(always) {
        line.push_span(page.span(Role::Key, key));
        line.push_span(page.span(Role::Dim, format!(" {words}  ")));
    }
    page.line(area, line);
}

/// Moving is shown with both keys, everything else with its first key.
fn first_key(page: &ScreenPage<'_>, bound: Bound<'_>) -> String {
    let names = match bound.binding.hint {
        Some("move") => "↑↓".to_owned(),
        Some("scroll") => "←→".into(),
        Some("step") => ", .".into(),
        _ => bound.keys.first().map_or_else(String::new, |key| key.name()),
    };
    keys_in(page.model.options.symbols, &names)
}
