//! Draws which events share a group, and when each group ran.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use crate::number::whole_share;
use crate::plan::{Cohesion, RowIndex};
use crate::run::{MeasuredGroup, RotatedBy};
use crate::sources::Round;
use crate::tui::layout::split_below;
use crate::tui::model::ClickTarget;
use crate::tui::screen::Screen;
use crate::tui::symbols::{CURSOR, LEVELS, MISSING};
use crate::tui::text::{cut, left, right, span, width, wrap};
use crate::tui::theme::Role;
use crate::units::WallNs;

/// Cells of the group's number, its run ratio and why it is one.
const NUMBER: usize = 3;
const RUN: usize = 5;
const WHY: usize = 9;

/// Cells of the events' names, and of the timeline, before the reason leaves for their sake.
const LEAST_NAMES: usize = 16;
const LEAST_TIMELINE: usize = 16;

/// Rows of the panel with all members of the selected group.
const MEMBERS: u16 = 6;

/// Rounds whose median distance is the time of a cell.
const MEDIAN_OF: usize = 9;

/// A round in which no task was on a CPU.
const IDLE: &str = "·";

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let (list, members) = split_below(area, if area.height >= 14 { MEMBERS } else { 0 });
    let groups = &page.model.monitor.header().groups;
    let columns = GroupColumns::of(usize::from(list.width.saturating_sub(4)), page);
    let mut title = Line::from(page.span(Role::Title, "Groups"));
    if let Some(words) = super::header::rotation(page.model) {
        title.push_span(page.span(Role::Border, " ─ "));
        title.push_span(page.span(Role::Dim, words));
    }
    let selected = page.model.group.min(groups.len().saturating_sub(1));
    let shown = page.scrolled_in_panel(Screen::Groups, (list, 1), (selected, groups.len()));
    let inner = match shown.is_whole() {
        true => page.panel(list, title, legend(page, list), true),
        false => page.list(list, title, (shown, groups.len()), None),
    };
    let mut rows = inner.rows();
    if let Some(row) = rows.next() {
        page.line(row, heads(page, &columns));
    }
    for ((index, group), row) in groups.iter().enumerate().skip(shown.first).zip(rows) {
        page.line(row, group_line(page, index, group, &columns));
        page.target(row, ClickTarget::Group(index));
        if index == selected {
            page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
        }
    }
    if let (true, Some(group)) = (members.height > 0, groups.get(selected)) {
        draw_members(page, members, selected, group);
    }
}

/// What a cell of the timeline is, where there is room for it.
fn legend(page: &ScreenPage<'_>, area: Rect) -> Line<'static> {
    let words = match (period(page), area.width >= 70) {
        (Some(period), true) => format!("a cell is {}; its height, the part on counters", span(period)),
        _ => String::new(),
    };
    Line::from(page.span(Role::Dim, words))
}

/// The time between two rounds: their median over the newest ones, as the last one comes when all has ended and others
/// may be late.
fn period(page: &ScreenPage<'_>) -> Option<WallNs> {
    let newest = newest(page, MEDIAN_OF + 1);
    let mut between: Vec<_> = newest.windows(2).map(|pair| pair[0].at - pair[1].at).collect();
    between.sort_unstable();
    between.get(between.len() / 2).copied()
}

/// The newest rounds, the last one first.
fn newest<'a>(page: &'a ScreenPage<'_>, count: usize) -> Vec<&'a Round> {
    let is_modelled = page.model.monitor.header().modelled.is_some();
    answers(page.model.rounds.seen().rev(), is_modelled, count)
}

/// The first of these rounds. A model answers less often than rounds are read: one that has the same answer as the one
/// before it would be a cell in which nothing was counted.
fn answers<'a>(rounds: impl Iterator<Item = &'a Round>, is_modelled: bool, count: usize) -> Vec<&'a Round> {
    let enabled = |round: &Round| round.readings.iter().map(|it| it.map(|it| it.enabled)).collect::<Vec<_>>();
    let mut newest: Vec<&Round> = Vec::new();
    for round in rounds {
        let is_full = newest.len() == count;
        match newest.last_mut() {
            Some(last) if is_modelled && enabled(last) == enabled(round) => *last = round,
            _ if is_full => break,
            _ => newest.push(round),
        }
    }
    newest
}

/// Widths; 0 for a column that has left.
struct GroupColumns {
    names: usize,
    why: usize,
    timeline: usize,
}

impl GroupColumns {
    /// The reason leaves first. Names get what the longest needs, at most half of the room.
    fn of(room: usize, page: &ScreenPage<'_>) -> Self {
        let longest = page.model.monitor.header().groups.iter().map(|group| width(&names(page, group))).max();
        let fixed = 2 + NUMBER + 1 + 1 + RUN + 2;
        let why = if room > fixed + LEAST_NAMES + LEAST_TIMELINE + WHY { WHY } else { 0 };
        let rest = room.saturating_sub(fixed + if why > 0 { why + 1 } else { 0 });
        let names = longest.unwrap_or(LEAST_NAMES).clamp(LEAST_NAMES, (rest / 2).max(LEAST_NAMES)).min(rest);
        Self { names, why, timeline: rest - names }
    }
}

fn heads(page: &ScreenPage<'_>, columns: &GroupColumns) -> Line<'static> {
    let mut text = format!("  {} {} {}", right("#", NUMBER), left("EVENTS", columns.names), right("RUN%", RUN));
    if columns.why > 0 {
        text.push_str(&format!("  {}", left("WHY", columns.why - 1)));
    }
    let seconds = period(page).map(|period| WallNs(period.0.saturating_mul(columns.timeline as u64)));
    let last = seconds.map_or_else(|| "LAST".into(), |seconds| format!("LAST {}", span(seconds)));
    text.push_str(&format!("  {}", cut(&last, columns.timeline)));
    Line::from(page.span(Role::Header, text))
}

fn group_line(page: &ScreenPage<'_>, index: usize, group: &MeasuredGroup, columns: &GroupColumns) -> Line<'static> {
    let cursor = if index == page.model.group { CURSOR } else { " " };
    let run = run_ratio(page, group);
    let names = names(page, group);
    let mut line = Line::from(vec![
        page.span(Role::Key, format!("{cursor} ")),
        page.span(Role::Dim, format!("{} ", right(&index.to_string(), NUMBER))),
        page.span(Role::Text, format!("{} ", left(&cut(&names, columns.names), columns.names))),
        page.span(run_role(run), right(&run.map_or_else(|| MISSING.into(), whole_share), RUN)),
    ]);
    if columns.why > 0 {
        line.push_span(page.span(Role::Dim, format!("  {}", left(why(page, group), columns.why - 1))));
    }
    line.push_span(page.span(Role::Dim, "  "));
    line.push_span(page.span(Role::Raw, timeline(page, group, columns.timeline)));
    line
}

fn run_role(run: Option<f64>) -> Role {
    match run {
        None => Role::Missing,
        Some(run) if run >= 0.95 => Role::RunFull,
        Some(run) if run >= crate::monitor::LOW_RUN_RATIO => Role::RunPart,
        Some(_) => Role::RunLow,
    }
}

fn names(page: &ScreenPage<'_>, group: &MeasuredGroup) -> String {
    let names: Vec<_> = group.members.iter().map(|&event| page.model.event_name(event)).collect();
    names.join(" ")
}

/// Why its events are together, in a word.
fn why(page: &ScreenPage<'_>, group: &MeasuredGroup) -> &'static str {
    let events = &page.model.monitor.header().events;
    // Emulated counters are shared by events of any kind.
    let is_emulated = matches!(page.model.monitor.header().rotated_by, Some(RotatedBy::Emulated { .. }));
    let is_software = |&event: &RowIndex| events.get(event).is_some_and(|event| event.event.kind.is_software());
    let software = !is_emulated && group.members.iter().all(is_software);
    match group.cohesion {
        Cohesion::Required => "braces",
        Cohesion::Preferred => "weak",
        Cohesion::Chosen if software => "software",
        Cohesion::Chosen if group.members.len() == 1 => "alone",
        Cohesion::Chosen => "packed",
    }
}

/// Over the whole run; that of the member that ran most, as they run together.
fn run_ratio(page: &ScreenPage<'_>, group: &MeasuredGroup) -> Option<f64> {
    let monitor = &page.model.monitor;
    let ratios = group.members.iter().filter_map(|&event| monitor.row(event).raw.run.run_ratio());
    ratios.reduce(f64::max)
}

/// A cell for each of the newest rounds: how much of the time between it and the one before the
/// group was on counters.
fn timeline(page: &ScreenPage<'_>, group: &MeasuredGroup, cells: usize) -> String {
    let mut newest = newest(page, cells + 1);
    newest.reverse();
    let parts: Vec<&str> = newest.windows(2).map(|pair| cell(pair[0], pair[1], group)).collect();
    format!("{}{}", " ".repeat(cells.saturating_sub(parts.len())), parts.concat())
}

fn cell(before: &Round, after: &Round, group: &MeasuredGroup) -> &'static str {
    let part = group.members.iter().find_map(|&event| {
        let reading = |round: &Round| round.readings.get(event).copied().flatten();
        let (before, after) = (reading(before)?, reading(after)?);
        let enabled = after.enabled.0.saturating_sub(before.enabled.0);
        Some((enabled, after.running.0.saturating_sub(before.running.0)))
    });
    match part {
        None => MISSING,
        Some((0, _)) => IDLE,
        Some((_, 0)) => " ",
        Some((enabled, running)) => {
            let eighths = (running as f64 / enabled as f64 * 8.0).ceil() as usize;
            LEVELS[eighths.clamp(1, 8) - 1]
        }
    }
}

/// Why an event is in a group alone. On emulated counters groups run beside one another, as many as there are counters for.
fn alone(rotated_by: Option<&RotatedBy>) -> String {
    match rotated_by {
        Some(RotatedBy::Emulated { counters: 1, .. }) => "alone: one event counts at a time".into(),
        Some(RotatedBy::Emulated { counters, .. }) => {
            format!("alone: each event takes a counter of its own, and {counters} count at a time")
        }
        Some(RotatedBy::Kernel { .. } | RotatedBy::User { .. }) | None => {
            "alone: no other event fitted beside it, or there is none".into()
        }
    }
}

fn draw_members(page: &mut ScreenPage<'_>, area: Rect, index: usize, group: &MeasuredGroup) {
    let reason = match why(page, group) {
        "software" => "software events: each counts all the time, and one read gets them all".into(),
        "alone" => alone(page.model.monitor.header().rotated_by.as_ref()),
        "packed" => "put together by perfprop, as many as the counters take at once".into(),
        "braces" => "in braces: on counters together or not at all".into(),
        _ => "in braces with :W: together, because that fits".into(),
    };
    let title = Line::from(page.span(Role::Title, format!("group {index}")));
    let inner = page.panel(area, title, Line::default(), false);
    let mut lines = vec![(Role::Dim, reason)];
    let members = group.members.iter().map(|&event| {
        let run = page.model.monitor.row(event).raw.run.run_ratio();
        format!("{} {}", page.model.event_name(event), run.map_or_else(|| MISSING.into(), whole_share))
    });
    let members: Vec<_> = members.collect();
    lines.extend(wrap(&members.join(", "), usize::from(inner.width)).into_iter().map(|line| (Role::Text, line)));
    for ((role, text), row) in lines.into_iter().zip(inner.rows()) {
        let text = cut(&text, usize::from(row.width)).into_owned();
        page.line(row, Line::from(page.span(role, text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Reading;
    use crate::units::CpuNs;

    #[test]
    fn events_on_emulated_counters_are_alone_and_beside_others() {
        let of = |counters| alone(Some(&RotatedBy::Emulated { counters, every_ns: None }));
        assert_eq!(of(4), "alone: each event takes a counter of its own, and 4 count at a time");
        assert_eq!([of(1), alone(None)].map(|words| words.contains("at a time")), [true, false]);
    }

    #[test]
    fn rounds_without_an_answer_of_the_model_are_no_cells() {
        let round = |at, enabled| {
            let reading = Reading { enabled: CpuNs(enabled), ..Reading::default() };
            Round { at: WallNs(at), readings: vec![Some(reading)], ..Round::default() }
        };
        let rounds = [round(4, 0), round(8, 7), round(12, 7), round(16, 7), round(20, 9), round(24, 9)];
        let times = |is_modelled, count| {
            let answers = answers(rounds.iter().rev(), is_modelled, count);
            answers.iter().map(|round| round.at.0).collect::<Vec<_>>()
        };
        assert_eq!([times(true, 9), times(true, 2), times(false, 2)], [vec![20, 8, 4], vec![20, 8], vec![24, 20]]);
    }
}
