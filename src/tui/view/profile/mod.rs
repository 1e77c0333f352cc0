//! Draws a profile: an icicle of its calls above a table of them.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::page::ScreenPage;
use crate::names::shown;
use crate::number::{amount, clock, share, si, time};
use crate::stacks::{FirstLevel, ProfileSpan};
use crate::tui::keys::keys_in;
use crate::tui::layout::profile::ProfileLayout;
use crate::tui::layout::{Room, rows_of_list};
use crate::tui::model::profile::{CallMeasure, FunctionRow, Listing, ProfileState, RatioRow, TreeNode};
use crate::tui::model::{ClickTarget, Motion, ScrolledList, VisibleRows};
use crate::tui::options::Mode;
use crate::tui::screen::Screen;
use crate::tui::symbols::FROZEN;
use crate::tui::text::{cut_middle, cut_name, right as right_aligned, width, wrap};
use crate::tui::theme::Role;
use crate::units::WallNs;

mod called;
mod columns;
pub(super) mod icicle;
mod selected;
mod table;

use columns::TableColumns;
pub(super) use table::interval;

/// From this part of the samples on, functions without a name are worth a warning; Log says why.
const NAMELESS: f64 = 0.05;

/// Cells of the share of a frame of a path, with all below it.
const PATH_SHARE: usize = 8;

/// Stands beside times of regions that are a model's slow run's.
pub(super) const EMULATED: &str = "under emulation, many times slower";

/// `focus` is whether the screen is the profile's alone.
pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, focus: bool) {
    let model = page.model;
    let room = Room::on(model.screen_size());
    let Some(profile) = model.profile.as_ref().filter(|profile| !profile.is_empty()) else {
        return nothing(page, area, room);
    };
    let mut parts = ProfileLayout::of(area, room, profile.emphasis, focus, profile.beside_table());
    let rows = match room {
        Room::Lines if parts.table.height > 0 => {
            let (rows, last) = table::lines(parts.table, profile);
            page.hidden_line(last, rows);
            parts.table.height -= last.height;
            rows
        }
        _ => table::rows(parts.table, profile),
    };
    if focus {
        // Where the icicle is alone, a page is one of its frames.
        let page_rows = if rows.rows > 0 { rows.rows } else { usize::from(parts.icicle.height) };
        page.drawn.lists.set(ScrolledList::Of(Screen::Profile), VisibleRows { rows: page_rows, ..rows });
    }
    // Until the reader moves in it, it begins with the root; while keys are about another list, too.
    let first_level = match focus && profile.has_moved() && !profile.is_in_sums() && parts.icicle.height > 0 {
        true => icicle::first_level(profile.place(), parts.icicle),
        false => 0,
    };
    if parts.panel.area() > 0 {
        let place =
            TitlePlace { room: usize::from(parts.panel.width.saturating_sub(6)), focus, levels_above: first_level };
        let title = title(page, profile, place);
        page.panel(parts.panel, title, Line::default(), focus);
    }
    icicle::draw(page, parts.icicle, profile, first_level);
    let columns = TableColumns::of(usize::from(parts.table.width), profile);
    if parts.heads.height > 0 {
        let next = if focus { format!(" (t: {})", profile.next_listing().word()) } else { String::new() };
        let name = format!("{}{next}", profile.listing().word().to_uppercase());
        table::draw_heads(page, parts.heads, profile, &columns, &name);
    }
    if parts.icicle.height > 0 && parts.heads.height > 0 {
        divide(page, parts.panel, parts.heads.y, focus);
    }
    table::draw(page, parts.table, profile, (&columns, rows.first), focus);
    if parts.callers.height > 0 {
        draw_callers(page, &parts, profile);
    }
    if parts.panel.height > 0 {
        selected::draw(page, parts.panel, profile, &hidden(page, rows, focus));
    }
    if parts.path.height > 0 {
        draw_path(page, parts.path, profile);
    }
}

/// Rows of a panel with all levels of the icicle and all rows of the table.
pub(super) fn rows(profile: &ProfileState) -> u16 {
    rows_of_list(table::count(profile)).saturating_add(profile.beside_table().levels())
}

/// The functions of two profiles in a part of the screen of comparisons, those first that are furthest apart. A click
/// leads to all of them.
pub(super) fn draw_apart(page: &mut ScreenPage<'_>, area: Rect, profile: &ProfileState) {
    let sampled = |function: &&FunctionRow| {
        let row = profile.difference_on(RatioRow::Function(function.frame));
        row.is_some_and(|row| row.a > 0.0 || row.b > 0.0)
    };
    let list: Vec<_> = profile.functions.rows.iter().filter(sampled).collect();
    let rows = VisibleRows::in_panel(area, 1, list.len());
    let event = shown(profile.event_name().unwrap_or_default()).into_owned();
    let mut title = vec![(Role::Title, "Functions".to_owned()), (Role::Dim, event)];
    if profile.tree.is_zoomed() {
        title.push((Role::Key, format!("in {}", row_name(profile, profile.tree.root(), 24))));
    }
    title.extend(profile.difference_note().map(|note| (Role::Warn, note.to_owned())));
    let title = joined(page, title);
    let inner = page.list(area, title, (rows, list.len()), Some(Screen::Profile.name()));
    let columns = TableColumns::of_difference(usize::from(inner.width), profile);
    let mut lines = inner.rows();
    if let Some(row) = lines.next() {
        table::draw_heads(page, row, profile, &columns, "FUNCTION");
    }
    for (function, row) in list.into_iter().zip(lines) {
        table::draw_function(page, row, function, profile, &columns, false);
    }
    page.target(area, ClickTarget::Screen(Screen::Profile));
}

/// Who called the selected function, beside the list.
fn draw_callers(page: &mut ScreenPage<'_>, parts: &ProfileLayout, profile: &ProfileState) {
    // Between the two.
    let (x, style) = (parts.callers.x.saturating_sub(2), page.style(Role::Border));
    (parts.callers.y..parts.callers.bottom()).for_each(|y| page.put(x, y, "│", style));
    table::draw_callers(page, parts.callers_heads, parts.callers, profile);
}

/// How many rows of the table are on the screen, if not all are; nothing where there is no table. Beside other panels
/// no key shows more of them.
fn hidden(page: &ScreenPage<'_>, rows: VisibleRows, focus: bool) -> Line<'static> {
    if rows.is_whole() || rows.rows == 0 {
        return Line::default();
    }
    let whole_in = (!focus).then_some(Screen::Profile.name());
    Line::from(page.span(Role::Warn, keys_in(page.model.options.symbols, &rows.words(rows.all, whole_in))))
}

/// Says why there is no profile.
fn nothing(page: &mut ScreenPage<'_>, area: Rect, room: Room) {
    let model = page.model;
    let of_calls = model.profile.as_ref().filter(|profile| profile.call_measure().is_some());
    if let Some(event) = of_calls.and_then(ProfileState::event_name) {
        let words = format!("no region has counted any {} so far; ] shows another event", shown(event));
        return words_alone(page, area, room, &words);
    }
    if model.others.is_some() && model.profile.is_none() {
        return words_alone(page, area, room, &model.without_functions());
    }
    if let Some(refused) = model.sampling_refused.as_ref().filter(|_| model.can_begin_sampling()) {
        return words_alone(page, area, room, refused);
    }
    let words = match (&model.profile, model.options.mode, model.monitor.ended()) {
        (None, Mode::Live, _) if model.can_begin_sampling() => {
            "no call stacks are sampled: Enter begins; perfprop top -g begins at once"
        }
        (None, Mode::Live, _) => {
            "no call stacks are sampled: start with  perfprop top -g; regions of a program are shown without it"
        }
        (None, Mode::Stacks { .. }, _) => "the file has no stacks",
        (None, Mode::Replay { .. }, _) => {
            "this recording has no call stacks and no regions; perfprop record -g records stacks"
        }
        (Some(profile), ..) if profile.calls.events.is_empty() => {
            "nothing is sampled, and no region can be read; Log says why"
        }
        (Some(profile), Mode::Live, _) if profile.waiting > 0 => {
            let words = format!("reading symbols: {} samples wait", si(profile.waiting as f64));
            return words_alone(page, area, room, &words);
        }
        (Some(profile), ..) if last_seconds(page, profile).is_some() => "no sample in this time; } shows a longer one",
        (Some(_), Mode::Live, None) if page.model.profile_since.is_some() => "no sample yet since then",
        (Some(_), Mode::Live, None) => "no sample yet: a program that sleeps isn't sampled",
        (Some(_), _, None) => "no sample so far",
        (Some(_), _, Some(_)) => {
            "no sample: a process that uses less CPU time than passes between two has none; -F 4000 samples more often"
        }
    };
    words_alone(page, area, room, words);
}

/// Words where the profile would be.
fn words_alone(page: &mut ScreenPage<'_>, area: Rect, room: Room, words: &str) {
    let inner = match room {
        Room::Lines => area,
        _ => {
            let title = Line::from(page.span(Role::Title, "Profile"));
            page.panel(area, title, Line::default(), true)
        }
    };
    let lines = words.lines().flat_map(|line| wrap(line, usize::from(inner.width)));
    for (line, row) in lines.zip(inner.rows()) {
        page.line(row, Line::from(page.span(Role::Dim, line)));
    }
}

/// The time of the samples, where it isn't that of the whole run: `last 10 s`, `last 60 s: all`, `since 00:01:04`.
pub(super) fn span(page: &ScreenPage<'_>, profile: &ProfileState) -> Option<String> {
    let model = page.model;
    match (model.profile_span, last_seconds(page, profile)) {
        (_, Some(shown)) => Some(format!("last {:.0} s", shown.as_secs())),
        (ProfileSpan::Last(length), None) if model.profile_since.is_none() && profile.call_measure().is_none() => {
            Some(format!("last {:.0} s: all", length.as_secs()))
        }
        _ => model.profile_since.map(|time| format!("since {}", clock(time))),
    }
}

/// The time of the samples, where those of the last seconds are shown and there are others.
fn last_seconds(page: &ScreenPage<'_>, profile: &ProfileState) -> Option<WallNs> {
    let model = page.model;
    let since = profile.since.filter(|_| model.profile_span != ProfileSpan::Run && profile.call_measure().is_none())?;
    let begun = model.profile_since.unwrap_or(model.monitor.began());
    (begun < since).then(|| model.monitor.now() - since)
}

/// The time of the samples beside panels of the last interval, where that isn't told anyway: `all of the run`.
pub(super) fn span_beside(page: &ScreenPage<'_>, profile: &ProfileState) -> String {
    let whole = if page.model.shown_range().is_some() { "all of the range" } else { "all of the run" };
    span(page, profile).unwrap_or_else(|| whole.to_owned())
}

/// Where a title stands.
struct TitlePlace {
    /// Its cells.
    room: usize,
    /// Whether the screen is the profile's alone.
    focus: bool,
    /// Levels of the icicle above the first that is shown.
    levels_above: usize,
}

/// What is shown: the event, how many levels of the icicle are above it, how much was sampled, into what the reader
/// zoomed, what was found. From the end on, parts leave a title that is too long.
fn title(page: &ScreenPage<'_>, profile: &ProfileState, place: TitlePlace) -> Line<'static> {
    let TitlePlace { room, focus, levels_above } = place;
    let mut parts = vec![(Role::Title, "Profile".to_owned())];
    let event = cut_middle(&shown(profile.event_name().unwrap_or_default()), 24).into_owned();
    let count = profile.calls.events.len();
    let place = if count > 1 { format!(" ({} of {count})", profile.event + 1) } else { String::new() };
    parts.push((Role::Text, format!("{event}{place}")));
    if let Some(until) = page.model.old_profile() {
        parts.push((Role::Warn, format!("as of {}", clock(until))));
    }
    if !focus {
        parts.push((Role::Key, span_beside(page, profile)));
    }
    if levels_above > 0 {
        parts
            .push((Role::Warn, format!("{levels_above} {} above", if levels_above == 1 { "level" } else { "levels" })));
    }
    if !profile.search.is_empty() {
        parts.push((Role::Match, found(profile)));
    }
    let tree = profile.place();
    if tree.is_zoomed() {
        let name = row_name(profile, tree.root(), 24);
        parts.push((Role::Key, format!("zoom: {name}")));
    }
    if let Some(note) = profile.difference_note() {
        parts.push((Role::Warn, note.to_owned()));
    }
    if page.model.first_level != FirstLevel::default() {
        parts.push((Role::Key, format!("by {}", page.model.first_level)));
    }
    if profile.call_measure() == Some(&CallMeasure::Time) && page.model.monitor.header().modelled.is_some() {
        parts.push((Role::Warn, EMULATED.to_owned()));
    }
    if let Some(span) = span(page, profile).filter(|_| focus) {
        parts.push((Role::Key, span));
    }
    parts.push(match page.model.little_sampled() {
        Some(part) => (Role::Warn, format!("{} of {} of the CPU time", samples(profile), share(part))),
        None => (Role::Dim, samples(profile)),
    });
    let (reach, place_of_reach) = (profile.reach(), parts.len());
    if let Some(reach) = reach {
        let role = if reach.cut + reach.unknown > reach.complete { Role::Warn } else { Role::Dim };
        parts.push((role, reach.to_string()));
    }
    if profile.nameless() > 0.0 {
        let role = if profile.nameless() >= NAMELESS { Role::Warn } else { Role::Dim };
        parts.push((role, format!("{} without a name", share(profile.nameless()))));
    }
    if page.model.motion == Motion::Frozen {
        parts.push((Role::Info, format!("{FROZEN} held, z goes on")));
    }
    if profile.listing() == Listing::Callers {
        let name = &profile.calls.label(profile.functions.selected).name;
        parts.push((Role::Key, format!("callers of {}", cut_name(name, 24))));
    }
    let is_too_long =
        |parts: &[(Role, String)]| parts.iter().map(|(_, text)| width(text) + 3).sum::<usize>() > room + 3;
    // What is missing must be seen; the rest is complete.
    if let Some(missing) =
        reach.map(|reach| reach.missing()).filter(|missing| !missing.is_empty() && is_too_long(&parts))
    {
        parts[place_of_reach].1 = missing;
    }
    while parts.len() > 2 && is_too_long(&parts) {
        parts.pop();
    }
    joined(page, parts)
}

/// The parts of a title with lines between them.
fn joined(page: &ScreenPage<'_>, parts: Vec<(Role, String)>) -> Line<'static> {
    let mut line = Line::default();
    for (i, (role, text)) in parts.into_iter().enumerate() {
        if i > 0 {
            line.push_span(page.span(Role::Border, " ─ "));
        }
        line.push_span(page.span(role, text));
    }
    line
}

/// The part of the samples that waits for names from which on the title says so: one in so many.
const WAITING: u64 = 20;
/// The part of lost samples from which on the title says that they are of all events: one in so many.
const MANY_LOST: u64 = 100;

/// `17.9k samples, 3 lost, 2 times throttled, reading symbols: 1.2k wait`.
fn samples(profile: &ProfileState) -> String {
    let whole = profile.whole();
    let sampled = profile.calls.events.iter().filter(|event| event.has_samples).count();
    // Which event's they were isn't known: that matters where they are many.
    let is_much = profile.losses.samples().saturating_mul(MANY_LOST) >= whole.samples;
    let lost = if sampled > 1 && is_much { "lost of all events" } else { "lost" };
    let losses = [(profile.losses.samples(), lost), (profile.losses.throttled, "times throttled")];
    let losses = losses.into_iter().filter(|&(count, _)| count > 0);
    let lost: String = losses.map(|(count, what)| format!(", {} {what}", si(count as f64))).collect();
    // Some are on their way all the time.
    let lost = match profile.waiting {
        waiting if waiting.saturating_mul(WAITING) <= whole.samples => lost,
        waiting => format!("{lost}, reading symbols: {} wait", si(waiting as f64)),
    };
    match profile.call_measure() {
        Some(measure) => format!("{} in all", amount(whole.weight as f64, measure.unit())),
        None if profile.is_off_cpu() => format!("{} on no CPU{lost}", time(whole.weight as f64)),
        None if whole.samples == 1 => format!("1 sample{lost}"),
        None if profile.has_samples() => format!("{} samples{lost}", si(whole.samples as f64)),
        None => format!("{} in all{lost}", si(whole.weight as f64)),
    }
}

/// `/fp 6.0% of all, 12.0% of zoom`.
fn found(profile: &ProfileState) -> String {
    let (place, amount) = (profile.place(), profile.found.amount);
    let text = shown(profile.search.text()).into_owned();
    let of_all = share(profile.share(amount));
    let zoom = match place.is_zoomed() {
        true => {
            let part = amount.weight as f64 / place.shape.total(place.root()).weight.max(1) as f64;
            format!(", {} of zoom", share(part))
        }
        false => String::new(),
    };
    match profile.found.frames {
        0 if !profile.search.is_expression() => {
            format!("/{} is no regular expression, and no name has it", cut_middle(&text, 24))
        }
        0 => format!("/{} matches nothing", cut_middle(&text, 24)),
        _ => format!("/{} {of_all} of all{zoom}", cut_middle(&text, 24)),
    }
}

/// A line between icicle and table, on which the table's heads lie.
fn divide(page: &mut ScreenPage<'_>, panel: Rect, y: u16, focus: bool) {
    let style = page.style(if focus { Role::BorderFocus } else { Role::Border });
    let (first, last) = (panel.x, panel.right().saturating_sub(1));
    let is_blank = |page: &ScreenPage<'_>, x: u16| page.buffer.cell((x, y)).is_some_and(|cell| cell.symbol() == " ");
    // One blank cell stays around each word.
    let line = (first + 1..last).filter(|&x| {
        let is_near = |near: u16| near <= first || near >= last || is_blank(page, near);
        is_blank(page, x) && is_near(x - 1) && is_near(x + 1)
    });
    let line: Vec<_> = line.collect();
    line.into_iter().for_each(|x| page.put(x, y, "─", style));
    page.put(first, y, "├", style);
    page.put(last, y, "┤", style);
}

/// The frames of a row of the tree in so many cells.
fn row_name(profile: &ProfileState, row: TreeNode, room: usize) -> String {
    let place = profile.place();
    let frames = profile.frames_of_row(place, row);
    let names: Vec<_> = frames.iter().map(|&frame| profile.calls.label(frame).name.as_str()).collect();
    let end = profile.kept_end(place, row, &frames);
    table::chain_text(&names, (place.direction, end), room)
}

/// The path to the selected frame, its last frames where not all fit.
fn draw_path(page: &mut ScreenPage<'_>, area: Rect, profile: &ProfileState) {
    let words = if profile.listing() == Listing::Callers { "Called through" } else { "Path" };
    let mut title = Line::from(page.span(Role::Title, words));
    if let Some((all, part)) = profile.path_among() {
        let which = if all > 1 { format!("one path of {all}, {}", share(part)) } else { "the only one".to_owned() };
        title.push_span(page.span(Role::Border, " ─ "));
        title.push_span(page.span(Role::Dim, which));
    }
    let losses = profile.losses_of_event().to_string();
    let right = Line::from(page.span(Role::Warn, losses));
    let inner = page.panel(area, title, right, false);
    let path = profile.path_nodes();
    let height = usize::from(inner.height);
    let hidden = if path.len() > height { path.len() - (height - 1) } else { 0 };
    let mut rows = inner.rows();
    if hidden > 0
        && let Some(row) = rows.next()
    {
        page.line(row, Line::from(page.span(Role::Dim, format!("… {hidden} above"))));
    }
    let each = usize::from(inner.width).saturating_sub(PATH_SHARE);
    let shape = &profile.place().shape;
    for (&node, row) in path.iter().skip(hidden).zip(rows) {
        let frame = shape.frame(node);
        let total = format!("{}  ", right_aligned(&share(profile.share(shape.total(node))), PATH_SHARE - 2));
        let label = profile.calls.label(frame);
        let module = cut_middle(&label.module, each / 4).into_owned();
        let file = cut_middle(&profile.source_of(frame), each / 4).into_owned();
        let name = cut_name(&label.name, each / 2 - 2).into_owned();
        let gap = " ".repeat((each / 2).saturating_sub(width(&name)));
        let after = " ".repeat((each / 4).saturating_sub(width(&module)));
        let role = if profile.is_hit(frame) { Role::Match } else { Role::Text };
        page.line(
            row,
            Line::from(vec![
                page.span(Role::Title, total),
                page.span(role, name),
                page.span(Role::Dim, format!("{gap}{module}{after}{file}")),
            ]),
        );
    }
}

#[cfg(test)]
#[allow(clippy::field_reassign_with_default, reason = "not all fields are seen here")]
mod tests {
    use super::*;
    use crate::stacks::Losses;

    #[test]
    fn what_went_missing_is_said_beside_the_samples() {
        let of = |losses| {
            let mut profile = ProfileState::default();
            profile.losses = losses;
            samples(&profile)
        };
        assert_eq!(of(Losses::default()), "0 in all");
        let losses = Losses { lost: 3, dropped: 1, throttled: 2, ..Losses::default() };
        assert_eq!(of(losses), "0 in all, 4 lost, 2 times throttled");
    }
}
