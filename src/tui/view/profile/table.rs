//! Draws the rows of a profile: a table of shares with their errors.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::page::ScreenPage;
use super::columns::{ProfileColumns, ShareColumn, TableColumns, TableKind, shown_numbers};
use crate::compare::Verdict;
use crate::number;
use crate::profile::Amount;
use crate::rates::{Error, Uncertain};
use crate::tui::model::profile::{
    CallMeasure, ChainEnd, FunctionOrder, FunctionRow, Listing, ProfileState, RatioKind, RatioRow, RowCalls,
    RowDifference, TreeDirection, TreeNode, TreePlace,
};
use crate::tui::model::{ClickTarget, VisibleRows};
use crate::tui::symbols::{CURSOR, DOWN, MISSING, UP};
use crate::tui::text::{cut_module, cut_name, left, width};
use crate::tui::theme::Role;

/// Cells of indentation for each level.
const INDENT: usize = 2;

/// What stands between the frames of a chain: one calls the next, or is called by it.
const CALLS: &str = " > ";
const CALLED_BY: &str = " < ";

/// Stands for frames of a chain that are left out.
const CUT: &str = "…";

/// The head of the callers beside a list.
const CALLERS: &str = "CALLERS OF ";

/// What is in front of a name.
const UNFOLDED: &str = "−";
const FOLDED: &str = "+";

pub(super) fn draw_heads(
    page: &mut ScreenPage<'_>,
    row: Rect,
    profile: &ProfileState,
    columns: &TableColumns,
    name: &str,
) {
    let text = match columns {
        TableColumns::Sampled(columns) => sampled_heads(page, columns, name, (profile.ratio_kind(), profile.order())),
        TableColumns::Called(columns) => {
            let measure = profile.call_measure().unwrap_or(&CallMeasure::Time);
            columns.heads(name, &page.model.error_head(), measure)
        }
    };
    page.line(row, Line::from(page.span(Role::Header, text)));
}

fn sampled_heads(
    page: &ScreenPage<'_>,
    columns: &ProfileColumns,
    name: &str,
    (ratio, order): (Option<RatioKind>, Option<FunctionOrder>),
) -> String {
    let sorted = |head: &str, by: FunctionOrder| match order == Some(by) {
        true => format!("{head}{DOWN}"),
        false => head.to_owned(),
    };
    let heads = columns.texts(|column| match column {
        ShareColumn::Total => sorted("TOTAL", FunctionOrder::Total),
        ShareColumn::Own => sorted("SELF", FunctionOrder::Own),
        ShareColumn::Ratio => ratio.map_or("", RatioKind::head).into(),
        ShareColumn::SideA => "A".into(),
        ShareColumn::SideB => "B".into(),
        ShareColumn::Change => "CHANGE".into(),
        ShareColumn::Mark => "VERDICT".into(),
        ShareColumn::TotalInterval | ShareColumn::OwnInterval | ShareColumn::RatioInterval => {
            format!("{} CI", page.model.monitor.confidence())
        }
        ShareColumn::Module if columns.kind == TableKind::Modules => "CODE".into(),
        ShareColumn::Module => "MODULE".into(),
    });
    let heads: String = heads.into_iter().map(|(_, text)| text).collect();
    format!("  {}{heads}", left(name, columns.name))
}

pub(super) fn draw(
    page: &mut ScreenPage<'_>,
    area: Rect,
    profile: &ProfileState,
    (columns, first): (&TableColumns, usize),
    focus: bool,
) {
    match profile.sums() {
        Some(list) => {
            for (row, place) in list.rows.iter().skip(first).zip(area.rows()) {
                let is_selected = row.frame == list.selected;
                match profile.listing() {
                    Listing::Modules => draw_module(page, place, row, profile, columns, is_selected),
                    _ => draw_function(page, place, row, profile, columns, is_selected),
                }
                select(page, place, focus && is_selected);
            }
        }
        None => {
            let place = profile.place();
            for ((at, &node), row) in place.rows.iter().enumerate().skip(first).zip(area.rows()) {
                draw_node(page, row, (node, place.level_of_row(at)), profile, columns);
                select(page, row, focus && node == place.selected);
            }
        }
    }
}

/// The callers of the function that is selected in the list of functions, beside that list.
pub(super) fn draw_callers(page: &mut ScreenPage<'_>, heads: Rect, area: Rect, profile: &ProfileState) {
    let place = &profile.callers;
    let columns = ProfileColumns::of(usize::from(area.width), TableKind::Beside, shown_numbers(profile));
    let function = profile.name(profile.functions.selected);
    let room = columns.name.saturating_sub(width(CALLERS));
    let text = sampled_heads(page, &columns, &format!("{CALLERS}{}", cut_name(function, room)), (None, None));
    page.line(heads, Line::from(page.span(Role::Header, text)));
    let columns = TableColumns::Sampled(columns);
    if place.rows.len() < 2 {
        let words = if place.rows.is_empty() { "" } else { "  nothing called it" };
        return page.line(area, Line::from(page.span(Role::Dim, words)));
    }
    // The function itself is the root.
    for ((at, &node), row) in place.rows.iter().enumerate().skip(1).zip(area.rows()) {
        let numbers =
            RowNumbers { total: place.shape.total(node), own: place.shape.own(node), ..RowNumbers::default() };
        let name = node_name(place, (node, place.level_of_row(at) - 1), profile, columns.name());
        let name = FunctionName { is_selected: false, ..name };
        draw_row(page, row, &name, &numbers, profile, &columns);
        page.target(row, ClickTarget::Function(place.shape.frame(place.end_of(node))));
    }
}

/// The rows of the listing that are on the screen.
pub(super) fn rows(area: Rect, profile: &ProfileState) -> VisibleRows {
    let rows = usize::from(area.height);
    let (selected, line, all) = listed(profile);
    VisibleRows { first: first_row(selected, line, all, rows), rows, all }
}

/// The same where the table has no frame, and the line that is kept for what says that rows are hidden.
pub(super) fn lines(area: Rect, profile: &ProfileState) -> (VisibleRows, Rect) {
    let (selected, line, all) = listed(profile);
    VisibleRows::in_lines(area, all, |rows| first_row(selected, line, all, rows))
}

/// How many rows the listing has.
pub(super) fn count(profile: &ProfileState) -> usize {
    listed(profile).2
}

/// The selected row of the listing, its line on the screen, and how many rows there are.
fn listed(profile: &ProfileState) -> (usize, usize, usize) {
    match profile.sums() {
        Some(list) => (list.row(), list.line, list.rows.len()),
        None => {
            let place = profile.place();
            (place.row(), place.line, place.rows.len())
        }
    }
}

/// The first row to show, so that the selected one stands on its line, or as near to it as there are rows.
fn first_row(selected: usize, line: usize, count: usize, height: usize) -> usize {
    let line = line.min(height.saturating_sub(1));
    selected.saturating_sub(line).min(count.saturating_sub(height))
}

fn select(page: &mut ScreenPage<'_>, row: Rect, is_selected: bool) {
    if is_selected {
        page.select(Rect { x: row.x.saturating_sub(1), width: row.width + 2, ..row });
    }
}

fn draw_node(
    page: &mut ScreenPage<'_>,
    row: Rect,
    (node, level): (TreeNode, usize),
    profile: &ProfileState,
    columns: &TableColumns,
) {
    let place = profile.place();
    let name = node_name(place, (node, level), profile, columns.name());
    let calls = profile.calls_of_node(node);
    let confidence = page.model.monitor.confidence();
    let of = profile.ratio_row(place, node);
    let ratio = of.and_then(|row| profile.ratio_on(row, confidence));
    let difference = of.and_then(|row| profile.difference_on(row));
    // Only a row of all samples is no estimate. The root of callers is a function.
    let is_all = node == 0 && place.direction == TreeDirection::Calls;
    let numbers = RowNumbers { total: place.shape.total(node), own: place.own(node), calls, ratio, difference, is_all };
    draw_row(page, row, &name, &numbers, profile, columns);
    page.target(row, ClickTarget::Frame(node));
}

/// The name of a row of a tree that stands on a level of it, in so many cells.
fn node_name(place: &TreePlace, (node, level): (TreeNode, usize), profile: &ProfileState, room: usize) -> FunctionName {
    // However deep, there is room for a name.
    let indent = (level * INDENT).min(room / 2);
    let is_cut = indent < level * INDENT;
    let mark = match (place.has_below(node), place.is_open(node)) {
        (false, _) => " ",
        (true, true) => UNFOLDED,
        (true, false) => FOLDED,
    };
    let mut before = format!("{}{}{mark} ", " ".repeat(indent - usize::from(is_cut)), if is_cut { "…" } else { "" });
    let frames = profile.frames_of_row(place, node);
    let arrow = arrow(place.direction);
    // What a frame within the chain above called, and not its last.
    let caller = place.shape.parent(node);
    let of_caller = place.shape.frame(caller);
    let is_said = caller != 0 && !profile.calls.label(of_caller).is_entry;
    if node != place.root() && caller != place.end_of(caller) && is_said {
        before += &format!("{}{arrow}", cut_name(profile.name(of_caller), room / 4));
    }
    let names: Vec<_> = frames.iter().map(|&frame| profile.name(frame)).collect();
    let end = profile.kept_end(place, node, &frames);
    let text = chain_text(&names, (place.direction, end), room.saturating_sub(width(&before)));
    let is_hit = place.chain(node).into_iter().any(|node| profile.is_hit(place.shape.frame(node)));
    let of_module = match place.direction {
        TreeDirection::Calls => frames.last(),
        TreeDirection::CalledBy => frames.first(),
    };
    let module = of_module.map_or_else(String::new, |&frame| profile.calls.label(frame).module.clone());
    FunctionName { before, text, place: module, is_hit, is_selected: node == place.selected }
}

/// What stands between the frames of a chain.
fn arrow(direction: TreeDirection) -> &'static str {
    match direction {
        TreeDirection::Calls => CALLS,
        TreeDirection::CalledBy => CALLED_BY,
    }
}

/// The names of a chain in so many cells. Of calls the ends stay: one is known, and the other is what comes next. Of
/// callers those stay that are nearest to the function. Where there is room for one, it is that of this end.
pub(super) fn chain_text(names: &[&str], (direction, end): (TreeDirection, ChainEnd), room: usize) -> String {
    let arrow = arrow(direction);
    let [first, middle @ .., last] = names else {
        return cut_name(names.first().copied().unwrap_or_default(), room).into_owned();
    };
    // Each name takes a cell at least; there may be 100,000 of them.
    let most = room / (1 + width(arrow)) + 1;
    if middle.len() <= most {
        let whole = names.join(arrow);
        if width(&whole) <= room {
            return whole;
        }
    }
    let middle = match direction {
        TreeDirection::Calls => &middle[middle.len().saturating_sub(most)..],
        TreeDirection::CalledBy => &middle[..middle.len().min(most)],
    };
    let part = |left_out: usize| match direction {
        TreeDirection::Calls => [&[*first, CUT][..], &middle[left_out..], &[*last]].concat().join(arrow),
        TreeDirection::CalledBy => [&[*first], &middle[..middle.len() - left_out], &[CUT]].concat().join(arrow),
    };
    let alone = || match end {
        ChainEnd::Last => (format!("{CUT}{arrow}{last}"), last),
        ChainEnd::First => (format!("{first}{arrow}{CUT}"), first),
    };
    let fits = (0..=middle.len()).map(part).find(|text| width(text) <= room);
    fits.unwrap_or_else(|| match alone() {
        (text, _) if width(&text) <= room => text,
        (_, name) => cut_name(name, room).into_owned(),
    })
}

/// A row of the list of functions.
pub(super) fn draw_function(
    page: &mut ScreenPage<'_>,
    row: Rect,
    sum: &FunctionRow,
    profile: &ProfileState,
    columns: &TableColumns,
    is_selected: bool,
) {
    let name = FunctionName {
        before: String::new(),
        text: cut_name(profile.name(sum.frame), columns.name()).into_owned(),
        place: profile.calls.label(sum.frame).module.clone(),
        is_hit: profile.is_hit(sum.frame),
        is_selected,
    };
    draw_sum(page, row, (sum, RatioRow::Function(sum.frame)), &name, profile, columns);
}

fn draw_module(
    page: &mut ScreenPage<'_>,
    row: Rect,
    sum: &FunctionRow,
    profile: &ProfileState,
    columns: &TableColumns,
    is_selected: bool,
) {
    let module = profile.module(sum.frame);
    let text = cut_name(&module.name, columns.name()).into_owned();
    let place = module.origin.word().into();
    let name =
        FunctionName { before: String::new(), text, place, is_hit: profile.is_module_hit(sum.frame), is_selected };
    draw_sum(page, row, (sum, RatioRow::Module(sum.frame)), &name, profile, columns);
}

fn draw_sum(
    page: &mut ScreenPage<'_>,
    row: Rect,
    (sum, of): (&FunctionRow, RatioRow),
    name: &FunctionName,
    profile: &ProfileState,
    columns: &TableColumns,
) {
    let calls = match of {
        RatioRow::Function(frame) => profile.calls_of_function(frame),
        RatioRow::Module(_) | RatioRow::Path(_) => None,
    };
    let ratio = profile.ratio_on(of, page.model.monitor.confidence());
    let difference = profile.difference_on(of);
    let numbers = RowNumbers { total: sum.total, own: sum.own, calls, ratio, difference, is_all: false };
    draw_row(page, row, name, &numbers, profile, columns);
    page.target(row, ClickTarget::Function(sum.frame));
}

/// What a row shows beside its name.
#[derive(Default)]
pub(super) struct RowNumbers {
    pub(super) total: Amount,
    pub(super) own: Amount,
    pub(super) calls: Option<RowCalls>,
    /// What the event is held against.
    pub(super) ratio: Option<Uncertain>,
    /// How two sides differ.
    pub(super) difference: Option<RowDifference>,
    /// Whether its total is all that was sampled.
    pub(super) is_all: bool,
}

/// The name of a row.
struct FunctionName {
    before: String,
    text: String,
    /// Where the code is: its module, or whose it is.
    place: String,
    is_hit: bool,
    is_selected: bool,
}

fn draw_row(
    page: &mut ScreenPage<'_>,
    row: Rect,
    name: &FunctionName,
    numbers: &RowNumbers,
    profile: &ProfileState,
    columns: &TableColumns,
) {
    let cursor = if name.is_selected { CURSOR } else { " " };
    let room = columns.name().saturating_sub(width(&name.before));
    let role = if name.is_hit { Role::Match } else { Role::Text };
    let rest = " ".repeat(room.saturating_sub(width(&name.text)));
    let mut line = Line::from(vec![
        page.span(Role::Key, format!("{cursor} ")),
        page.span(Role::Dim, name.before.clone()),
        page.span(role, name.text.clone()),
        Span::raw(rest),
    ]);
    match columns {
        TableColumns::Sampled(columns) => line.spans.extend(shares(page, &name.place, numbers, profile, columns)),
        TableColumns::Called(columns) => {
            line.push_span(Span::raw(" "));
            line.spans.extend(columns.numbers(page, numbers, profile));
        }
    }
    page.line(row, line);
}

fn shares(
    page: &ScreenPage<'_>,
    place: &str,
    numbers: &RowNumbers,
    profile: &ProfileState,
    columns: &ProfileColumns,
) -> Vec<Span<'static>> {
    // What the table is sorted by stands first.
    let first = columns.shown.first().copied();
    let texts = columns.texts(|column| match column {
        ShareColumn::Total => number::share(profile.share(numbers.total)),
        ShareColumn::Own => number::share(profile.share(numbers.own)),
        ShareColumn::TotalInterval if numbers.is_all => MISSING.into(),
        ShareColumn::TotalInterval => interval_of(page, numbers.total, profile),
        ShareColumn::OwnInterval => interval_of(page, numbers.own, profile),
        ShareColumn::Ratio => numbers.ratio.map_or_else(|| MISSING.into(), |ratio| number::si(ratio.value)),
        ShareColumn::RatioInterval => numbers.ratio.map_or_else(|| MISSING.into(), ratio_interval),
        ShareColumn::SideA => side(numbers, profile, |row| row.a),
        ShareColumn::SideB => side(numbers, profile, |row| row.b),
        ShareColumn::Change => numbers.difference.map_or_else(String::new, |row| changed(&row)),
        ShareColumn::Mark => numbers.difference.map_or_else(String::new, |row| mark(&row)),
        ShareColumn::Module => cut_module(place, columns.module).into_owned(),
    });
    let role = |column| match column {
        ShareColumn::Total | ShareColumn::Own if Some(column) == first => Role::Title,
        ShareColumn::Total | ShareColumn::Own => Role::Text,
        ShareColumn::Ratio | ShareColumn::SideA | ShareColumn::SideB => Role::Text,
        ShareColumn::Change => Role::Title,
        ShareColumn::Mark => Role::Warn,
        ShareColumn::TotalInterval | ShareColumn::OwnInterval | ShareColumn::RatioInterval | ShareColumn::Module => {
            Role::Dim
        }
    };
    texts.into_iter().map(|(column, text)| page.span(role(column), text)).collect()
}

/// The interval that a share lies in, in percent of all. Its error has no `±`: that stands for percents of the number
/// before it, and these would be percents of all.
fn interval_of(page: &ScreenPage<'_>, amount: Amount, profile: &ProfileState) -> String {
    interval(profile.share(amount), error(page, amount, profile))
}

/// The number of a side of a difference.
fn side(numbers: &RowNumbers, profile: &ProfileState, of: impl Fn(&RowDifference) -> f64) -> String {
    let Some(number) = numbers.difference.as_ref().map(of) else { return String::new() };
    profile.difference_unit().map_or_else(|| number::share(number), |unit| number::amount(number, unit))
}

/// By what part of A the sides differ: `+12%`; `new` of what A doesn't have, `gone` of what B doesn't.
pub(super) fn changed(row: &RowDifference) -> String {
    match (row.a > 0.0, row.b > 0.0) {
        (false, false) => MISSING.into(),
        (false, true) => "new".into(),
        (true, false) => "gone".into(),
        (true, true) => number::change((row.b - row.a) / row.a),
    }
}

/// A word where a test says that a function differs; nothing else is marked.
fn mark(row: &RowDifference) -> String {
    match row.verdict {
        Some(verdict @ Verdict::Higher) => format!("{UP} {}", verdict.word()),
        Some(verdict @ Verdict::Lower) => format!("{DOWN} {}", verdict.word()),
        _ => String::new(),
    }
}

/// `0.41–0.52`; `?` where it isn't known.
pub(super) fn ratio_interval(ratio: Uncertain) -> String {
    ratio.bounds().map_or_else(|| "?".into(), |(low, high)| format!("{}–{}", number::si(low), number::si(high)))
}

/// The error of a share; none of waits, which are all sampled.
fn error(page: &ScreenPage<'_>, amount: Amount, profile: &ProfileState) -> Error {
    match profile.is_off_cpu() {
        true => Error::Exact,
        false if !profile.has_samples() && amount == profile.whole() => Error::Exact,
        false if !profile.has_samples() => Error::Unknown,
        false => profile.share_error(profile.share(amount), profile.whole(), page.model.monitor.confidence()),
    }
}

/// `11.9–12.7`; `?` where it isn't known.
pub(in crate::tui::view) fn interval(share: f64, error: Error) -> String {
    match (error, Uncertain { value: share, error }.bounds()) {
        (Error::Exact, _) => MISSING.into(),
        (_, Some((low, high))) => number::share_interval(low, high),
        (_, None) => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_keep_their_ends() {
        let names = ["main", "run", "step", "loop"];
        let text = |room| chain_text(&names, (TreeDirection::Calls, ChainEnd::Last), room);
        assert_eq!(text(40), "main > run > step > loop");
        assert_eq!(text(23), "main > … > step > loop");
        assert_eq!(text(16), "main > … > loop");
        assert_eq!((text(10), text(4), text(3)), ("… > loop".into(), "loop".into(), "l…p".into()));
        let task = |room| chain_text(&names, (TreeDirection::Calls, ChainEnd::First), room);
        assert_eq!((task(16), task(10), task(4)), ("main > … > loop".into(), "main > …".into(), "main".into()));
        let callers = |names: &[&str], room| chain_text(names, (TreeDirection::CalledBy, ChainEnd::First), room);
        assert_eq!(callers(&names, 22), "main < run < step < …");
        assert_eq!((callers(&names, 9), callers(&names, 5)), ("main < …".into(), "main".into()));
        assert_eq!((callers(&["f"], 9), callers(&[], 9)), ("f".into(), String::new()));
    }

    #[test]
    fn shares_have_an_interval() {
        assert_eq!(interval(0.123, Error::Within { below: 0.004, above: 0.005 }), "11.9–12.8");
        assert_eq!((interval(1.0, Error::Exact), interval(0.5, Error::Unknown)), ("—".into(), "?".into()));
    }

    #[test]
    fn the_selected_row_keeps_its_line() {
        assert_eq!(first_row(10, 4, 100, 12), 6);
        assert_eq!(first_row(3, 4, 100, 12), 0);
        assert_eq!(first_row(99, 2, 100, 12), 88);
        assert_eq!(first_row(5, 40, 100, 12), 0);
    }
}
