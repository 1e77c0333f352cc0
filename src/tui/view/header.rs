//! Draws the line at the top (who is measured, for how long and how well) and the tabs below it.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::page::ScreenPage;
use super::timeline::range_words;
use crate::names::shown;
use crate::number::{percent, time, whole_share};
use crate::run::{Header, MeasuredTarget, RotatedBy};
use crate::tui::figures::intervals_in_words;
use crate::tui::keys::Action;
use crate::tui::model::{ClickTarget, Motion, Over, ScreenModel};
use crate::tui::options::Mode;
use crate::tui::screen::Screen;
use crate::tui::symbols::{ENDED, FROZEN, OK, REPLAY, WAITING, WARN};
use crate::tui::text::{clock, cut, cut_middle, recorded_clock, span, width};
use crate::tui::theme::Role;
use crate::units::WallNs;

/// The target's name is cut, but not to less than this.
const LEAST_TARGET: usize = 12;

/// The target has this much room before other parts of the line.
const MOST_BEFORE: usize = 28;

/// Cells from which on there is room for a sentence.
const WIDE_WORDS: usize = 100;

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let room = usize::from(area.width);
    let mut parts = parts(page, room);
    // The state stays; of the others the last in the list go first: some for the arguments of a command, more for its
    // name.
    let header = page.model.monitor.header();
    for (title, most) in [(shown(&header.title()).into_owned(), LAST_FOR_ARGUMENTS), (short_title(header), 0)] {
        let least = LEAST_TARGET.max(width(&title).min(MOST_BEFORE));
        let needed = |parts: &[HeaderPart]| parts.iter().map(|part| part.span.width() + 2).sum::<usize>() + 12 + least;
        while let Some(last) =
            parts.iter().map(|part| part.rank).max().filter(|&rank| rank > most && needed(&parts) > room)
        {
            parts.retain(|part| part.rank < last);
        }
    }
    let used: usize = parts.iter().map(|part| part.span.width() + 2).sum();
    let title = shown(&header.title()).into_owned();
    let mut line = Line::styled(" ", page.style(Role::Status));
    if used + 11 + LEAST_TARGET.min(width(&title)) <= room {
        line.push_span(page.span(Role::Title, "perfprop"));
        line.push_span(Span::raw("  "));
        let target = target(header, room.saturating_sub(used + 12));
        line.push_span(page.span(Role::Text, target));
        line.push_span(Span::raw("  "));
    }
    for part in parts {
        line.push_span(part.span);
        line.push_span(Span::raw("  "));
    }
    page.line(area, line);
}

/// The target in so many cells: of a command the base name and the process id stay longest, and its arguments are cut.
fn target(header: &Header, cells: usize) -> String {
    let title = shown(&header.title()).into_owned();
    let MeasuredTarget::Command { argv, pid } = &header.target else { return cut_middle(&title, cells).into_owned() };
    if width(&title) <= cells {
        return title;
    }
    let arguments = argv.iter().skip(1).map(|word| format!(" {word}")).collect::<String>();
    let (name, pid) = (shown(base_name(argv)).into_owned(), format!(" [{pid}]"));
    let words = format!("{name}{}", shown(&arguments));
    match cells.checked_sub(width(&pid)) {
        Some(room) if room >= width(&name).min(LEAST_TARGET) => format!("{}{pid}", cut(&words, room).trim_end()),
        _ => cut_middle(&name, cells).into_owned(),
    }
}

/// A command's base name and process id, the whole title of other targets.
fn short_title(header: &Header) -> String {
    match &header.target {
        MeasuredTarget::Command { argv, pid } => format!("{} [{pid}]", shown(base_name(argv))),
        _ => shown(&header.title()).into_owned(),
    }
}

fn base_name(argv: &[String]) -> &str {
    let path = argv.first().map_or("", String::as_str);
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

/// The time, the CPU and the warnings have ranks up to this one, and stay rather than the arguments of a command.
const LAST_FOR_ARGUMENTS: u8 = 2;

/// A part of the header; rank 0 never leaves.
struct HeaderPart {
    rank: u8,
    span: Span<'static>,
}

fn parts(page: &ScreenPage<'_>, room: usize) -> Vec<HeaderPart> {
    let model = page.model;
    let monitor = &model.monitor;
    let header = monitor.header();
    let (_, lost) = monitor.rounds();
    if let Mode::Stacks { .. } = model.options.mode {
        return vec![HeaderPart { rank: 0, span: state(page) }];
    }
    let part = |rank: u8, role: Role, text: String| HeaderPart { rank, span: page.span(role, text) };
    let mut parts = vec![HeaderPart { rank: 0, span: state(page) }];
    if model.motion == Motion::Frozen {
        let lag = model.lag().0 / 1_000_000_000;
        parts.insert(0, part(0, Role::Frozen, format!(" {FROZEN} FROZEN +{lag} s ")));
    }
    match which_side(page) {
        // What follows isn't of both.
        Some(words) if shows_both(page) => parts.insert(0, part(0, Role::Key, format!("{words}:"))),
        words => parts.extend(words.map(|words| part(0, Role::Key, words))),
    }
    if let Some(words) = missing_end(page, room) {
        parts.push(part(0, Role::Warn, format!("{WARN} {words}")));
    }
    // A replay's state has the time.
    if !matches!(model.options.mode, Mode::Replay { .. }) {
        parts.push(part(1, Role::Text, passed(model)));
    }
    // The last interval of what is over may be a moment only.
    let is_over = monitor.ended().is_some() || model.shown_range().is_some();
    let cpu = if is_over { monitor.mean_cpu_share() } else { monitor.cpu_share() };
    if let Some(share) = cpu {
        let mean = if is_over { "mean " } else { "" };
        parts.push(part(2, Role::Text, format!("{mean}cpu {}", whole_share(share))));
    }
    parts.extend([
        part(4, Role::Dim, span(shown_interval(model))),
        part(3, Role::Dim, intervals_in_words(monitor)),
        part(5, Role::Dim, plural(model.events.wholes(header.events.len()).len(), "event")),
    ]);
    if let Some(words) = rotation(model) {
        parts.push(part(7, Role::Dim, words));
    }
    if let Some(way) = model.playback.as_ref().and_then(|playback| playback.way) {
        parts.push(part(0, Role::Frozen, format!(" WINDING {} ", whole_share(way.part))));
    }
    if monitor.knows_whole_run() {
        parts.push(part(0, Role::Info, "whole run known".into()));
    }
    if header.modelled.is_some() {
        parts.push(part(0, Role::Info, "MODELLED".into()));
    }
    if let Some(own) = model.own {
        parts.push(part(6, Role::Dim, format!("perfprop {}", percent(own))));
    }
    if lost > 0 {
        parts.push(part(6, Role::Dim, format!("{lost} {} skipped", if lost == 1 { "reading" } else { "readings" })));
    }
    if warnings(model) > 0 {
        parts.push(part(2, Role::Warn, format!("{}{WARN}", warnings(model))));
    }
    parts
}

/// How long it has been measured: `00:01:23`, and `3.11 ms` of a run that was over sooner than a clock says.
fn passed(model: &ScreenModel) -> String {
    match model.monitor.now() {
        now if model.monitor.ended().is_some() && now.0 < 1_000_000_000 => time(now.0 as f64),
        now => clock(now),
    }
}

/// The length of intervals; of the only one so far, which may be shorter, how long that is.
fn shown_interval(model: &ScreenModel) -> WallNs {
    let (monitor, interval) = (&model.monitor, model.monitor.header().interval_ns);
    let is_first = monitor.intervals() == 1 && monitor.ended().is_none() && model.shown_range().is_none();
    let first = monitor.last_length().filter(|length| is_first && length.0 < interval.0 - interval.0 / 10);
    first.unwrap_or(interval)
}

/// Where recordings are compared: which of them the header is about, and a screen that has no room for all.
fn which_side(page: &ScreenPage<'_>) -> Option<String> {
    let [(_, further), _] = page.model.others.as_ref()?.names();
    Some(if further > 0 { format!("A, run 1 of {}", further + 1) } else { "A".to_owned() })
}

/// Whether the screen has both sides of a comparison.
fn shows_both(page: &ScreenPage<'_>) -> bool {
    matches!(page.model.screen, Screen::Compare | Screen::Profile | Screen::Source)
}

/// What a recording lacks that breaks off.
fn missing_end(page: &ScreenPage<'_>, room: usize) -> Option<&'static str> {
    let Mode::Replay { ending, .. } = page.model.options.mode else { return None };
    if room < WIDE_WORDS { ending.short_words() } else { ending.words() }
}

/// Who rotates the groups, and how long a slice is: what the error of scaling depends on. `None` where nothing was left
/// uncounted for a while.
pub(super) fn rotation(model: &ScreenModel) -> Option<String> {
    let take_turns = model.monitor.rows().any(|row| row.raw.run.run_ratio().is_some_and(|ratio| ratio < 1.0));
    model.monitor.header().rotated_by.filter(|_| take_turns).map(rotation_words)
}

fn rotation_words(rotated_by: RotatedBy) -> String {
    let every = |time: Option<WallNs>| time.map_or_else(String::new, |time| format!(" of {}", span(time)));
    match rotated_by {
        RotatedBy::Kernel { every_ns } => format!("kernel's slices{}", every(every_ns)),
        RotatedBy::User { every_ns } => format!("own slices{}", every(Some(every_ns))),
        RotatedBy::Emulated { counters, every_ns: None } => format!("{} in turns", plural(counters, "counter")),
        RotatedBy::Emulated { counters, every_ns } => {
            format!("{}, slices{}", plural(counters, "counter"), every(every_ns))
        }
    }
}

fn plural(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// What is happening to what is measured, with a glyph and a word; a view that is held still says so beside it.
fn state(page: &ScreenPage<'_>) -> Span<'static> {
    let model = page.model;
    let ended = model.monitor.ended().or(model.rounds.end.as_ref());
    let (role, text) = match (ended, model.options.mode) {
        (Some(end), Mode::Live) => match end.exit {
            Some(exit) => (Role::Info, format!("{ENDED} ENDED {exit}")),
            None => (Role::Info, format!("{ENDED} ENDED")),
        },
        (_, Mode::Replay { length, .. }) => {
            let has_tenths = shows_tenths(model) && length.0 >= 1_000_000_000;
            let tenths = |time| if has_tenths { tenths(time) } else { String::new() };
            let [now, length] = [model.monitor.now(), length].map(|time| recorded_clock(time, length) + &tenths(time));
            match model.shown_range() {
                Some(range) => (Role::Key, format!("RANGE {} of {length}", range_words(range))),
                // At its end both are one time.
                None if model.is_at_end() => (Role::Info, format!("{} {length}", replaying(model))),
                None => (Role::Info, format!("{} {now}/{length}", replaying(model))),
            }
        }
        (_, Mode::Stacks { is_whole: true }) => (Role::Info, format!("{ENDED} STACKS")),
        (_, Mode::Stacks { is_whole: false }) => (Role::Warn, format!("{WARN} STACKS, NOT ALL")),
        (None, Mode::Live) if model.monitor.intervals() == 0 => (Role::Dim, format!("{WAITING} WAIT")),
        (None, Mode::Live) => (Role::Ok, format!("{OK} RUN")),
    };
    page.span(role, text)
}

/// `▶ REPLAY x4`, `❚❚ PAUSED x4`, and `■ REPLAY` at its end.
fn replaying(model: &ScreenModel) -> String {
    if model.is_at_end() {
        return format!("{ENDED} REPLAY");
    }
    let Some(playback) = &model.playback else { return format!("{REPLAY} REPLAY") };
    let speed = match playback.speed {
        speed if speed != 1.0 && speed > 0.0 => format!(" x{speed}"),
        _ => String::new(),
    };
    if playback.playing { format!("{REPLAY} REPLAY{speed}") } else { format!("{FROZEN} PAUSED{speed}") }
}

/// Whether the clock of a replay moves by less than seconds.
fn shows_tenths(model: &ScreenModel) -> bool {
    let is_stepped = model.playback.as_ref().is_some_and(|playback| !playback.playing);
    is_stepped || model.playback.is_some() && model.monitor.header().interval_ns.0 < 1_000_000_000
}

/// `.3`; nothing of a whole second, so that other parts of the line have room.
fn tenths(time: WallNs) -> String {
    match time.0 / 100_000_000 % 10 {
        0 => String::new(),
        tenths => format!(".{tenths}"),
    }
}

/// How many entries of the log are warnings.
fn warnings(model: &ScreenModel) -> usize {
    model.all_entries().filter(|entry| entry.is_warning()).count()
}

/// Cells from which on there is a gap between tabs.
const WIDE_TABS: usize = 100;

pub(super) fn tabs(page: &mut ScreenPage<'_>, area: Rect) {
    let model = page.model;
    let room = usize::from(area.width);
    let gap = if room < WIDE_TABS { "" } else { " " };
    let warned = match warnings(model) {
        0 => String::new(),
        warnings => format!(" {warnings}{WARN}"),
    };
    // Each has its key, and two blanks or brackets.
    let cells = |screen: Screen| width(&tab_key(page, screen)) + width(screen.name()) + 2 + width(gap);
    let all = 1 + width(&warned) + model.screens().map(cells).sum::<usize>();
    let end = if all > room { "" } else { " " };
    // Without blanks behind them, but for the bracket of one.
    let least = all + 1 - model.screens().count();
    let short = without_names(page, least.saturating_sub(room));
    let mut line = Line::raw(" ");
    for screen in model.screens() {
        let start = line.width();
        line.extend(tab(page, screen, end, short.contains(&screen)));
        if screen == Screen::Log {
            let close = line.spans.pop();
            line.push_span(page.span(Role::Warn, warned.clone()));
            line.extend(close);
        }
        line.push_span(page.span(Role::Dim, gap));
        let [start, end] = [start, line.width()].map(|at| u16::try_from(at).unwrap_or(u16::MAX));
        let place = Rect { x: area.x.saturating_add(start), width: end - start, ..area };
        page.target(place.intersection(area), ClickTarget::Screen(screen));
    }
    let used = line.width();
    page.line(area, line);
    let role = if matches!(model.over, Over::Help(_)) { Role::Title } else { Role::Dim };
    if let Some(words) = [" help ", " ", ""].into_iter().find(|words| used + 2 + width(words) <= room) {
        page.line(area, Line::from(vec![page.span(Role::Key, "?"), page.span(role, words)]).right_aligned());
    }
}

/// The key that leads to a screen, and a blank.
fn tab_key(page: &ScreenPage<'_>, screen: Screen) -> String {
    let key = page.model.options.keymap.key_of(Action::Go(screen));
    if key.is_empty() { key } else { key + " " }
}

/// The tabs of which only the key stays, so that the line has so many cells less: from the last on, but that of the
/// screen that is shown.
fn without_names(page: &ScreenPage<'_>, too_many: usize) -> Vec<Screen> {
    let mut saved = 0;
    let mut others: Vec<_> = page.model.screens().filter(|&screen| screen != page.model.screen).collect();
    others.retain(|&screen| !tab_key(page, screen).is_empty());
    let from_last = others.into_iter().rev();
    from_last
        .take_while(|screen| {
            let is_needed = saved < too_many;
            // Its blank goes as well.
            saved += width(screen.name()) + 1;
            is_needed
        })
        .collect()
}

/// A tab with the key that leads to it; `end` closes those that aren't shown.
fn tab(page: &ScreenPage<'_>, screen: Screen, end: &'static str, is_short: bool) -> [Span<'static>; 4] {
    let (begin, number, name, end) = match screen == page.model.screen {
        true => ("[", Role::Key, Role::Title, "]"),
        false => (" ", Role::Dim, Role::Dim, end),
    };
    let (key, words) = (tab_key(page, screen), screen.name());
    let (key, words) = if is_short { (key.trim_end().to_owned(), "") } else { (key, words) };
    [page.span(Role::Key, begin), page.span(number, key), page.span(name, words), page.span(Role::Key, end)]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use ratatui::buffer::Buffer;

    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::sources::{Reading, Round};
    use crate::tui::model::DrawnScreen;
    use crate::tui::options::ScreenOptions;
    use crate::units::CpuNs;

    fn of(argv: &[&str], cells: usize) -> String {
        let argv = argv.iter().map(|&word| word.to_owned()).collect();
        target(&Header::new(MeasuredTarget::Command { argv, pid: 22190 }, "scale"), cells)
    }

    /// The line of tabs in so many cells.
    fn tabs_in(cells: u16, options: &ScreenOptions) -> String {
        let monitor = builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let model = ScreenModel::new(monitor, options);
        let area = Rect::new(0, 0, cells, 1);
        let mut buffer = Buffer::empty(area);
        let drawn = DrawnScreen::default();
        tabs(&mut ScreenPage { model: &model, buffer: &mut buffer, targets: Vec::new(), drawn }, area);
        (0..cells).map(|x| buffer[(x, 0)].symbol()).collect()
    }

    #[test]
    fn tabs_have_the_keys_of_the_screens() {
        let mut options = ScreenOptions::default();
        options.keymap.bind("threads", &["W"]).unwrap();
        options.keymap.free("log");
        let shown = tabs_in(80, &options);
        assert!(shown.contains("5 Groups  Log  W Threads"), "{shown}");
    }

    #[test]
    fn the_tab_of_the_screen_is_whole_where_others_have_no_room() {
        let of = |screen, cells| tabs_in(cells, &ScreenOptions { screen, ..ScreenOptions::default() });
        for cells in 24..70 {
            let shown = of(Screen::Threads, cells);
            assert!(shown.contains("[7 Threads]") && !shown.contains('…'), "{cells}: {shown}");
        }
        let shown = of(Screen::Events, 60);
        assert!(shown.contains("[1 Events]") && shown.contains("6 Log 7 "), "{shown}");
        assert!(of(Screen::Events, 70).contains("7 Threads"), "{}", of(Screen::Events, 70));
    }

    #[test]
    fn an_interval_that_is_shorter_is_told_so_while_it_is_the_only_one() {
        let events = [builders::measured(builders::event("a"))];
        let header = Header { first_interval_ns: Some(WallNs(200_000_000)), ..builders::header(events) };
        let monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        let mut model = ScreenModel::new(monitor, &ScreenOptions::default());
        let mut after = |ms: u64| {
            let (at, time) = (WallNs(ms * 1_000_000), CpuNs(ms * 1_000_000));
            let reading = Reading { count: ms, enabled: time, running: time };
            model.monitor.round(&Round { at, readings: vec![Some(reading)], ..Round::default() }, 0);
            shown_interval(&model)
        };
        assert_eq!([0, 200, 600, 1200].map(&mut after), [1000, 200, 200, 1000].map(|ms| WallNs(ms * 1_000_000)));
    }

    #[test]
    fn the_base_name_and_the_pid_stay_where_the_rest_is_cut() {
        let argv = ["/usr/bin/python3", "x.py", "--all"];
        assert_eq!(of(&argv, 40), "/usr/bin/python3 x.py --all [22190]");
        assert_eq!(of(&argv, 30), "python3 x.py --all [22190]");
        assert_eq!(of(&argv, 22), "python3 x.py … [22190]");
        assert_eq!(of(&argv, 16), "python3… [22190]");
        assert_eq!(of(&argv, 10), "python3");
        assert_eq!(of(&["/opt/a-program-of-a-long-name"], 24), "a-program-of-a-… [22190]");
        assert_eq!(of(&["/"], 20), "/ [22190]");
    }
}
