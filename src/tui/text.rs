//! Fits text and numbers into strings of a known width for the screen.
//!
//! Whatever comes from outside (names, command lines, output) goes through [`shown`] before it
//! reaches the screen.

use std::borrow::Cow;

use ratatui::text::Span;

use crate::events::Unit;
use crate::names::{short_name, shown};
use crate::number;
use crate::units::WallNs;

/// What stands for text that has no room.
pub(super) const ELLIPSIS: &str = "…";

/// A line of a program's output: tabs become the spaces that a terminal would show, colours are left out, the rest is
/// [`shown`].
pub(super) fn output(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for (i, part) in without_colors(text.trim_end_matches('\r')).split('\t').enumerate() {
        if i > 0 {
            let gap = 8 - width(&line) % 8;
            line.extend(std::iter::repeat_n(' ', gap));
        }
        line.push_str(&shown(part));
    }
    line
}

/// A text without the sequences that set colours or clear the rest of a line (`ESC [ 1;31 m`, `ESC [ K`).
fn without_colors(text: &str) -> Cow<'_, str> {
    const BEGIN: &str = "\x1b[";
    let Some((before, mut rest)) = text.split_once(BEGIN) else { return Cow::Borrowed(text) };
    let mut plain = before.to_owned();
    loop {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        match after.strip_prefix(['m', 'K']) {
            Some(after) => rest = after,
            None => plain.push_str(BEGIN),
        }
        let Some((before, after)) = rest.split_once(BEGIN) else { break };
        plain.push_str(before);
        rest = after;
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// How many cells a string takes.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// The longest beginning that takes at most `cells`.
fn head(text: &str, cells: usize) -> &str {
    let (mut used, mut end) = (0, 0);
    for (at, c) in text.char_indices() {
        used += width(c.encode_utf8(&mut [0; 4]));
        if used > cells {
            break;
        }
        end = at + c.len_utf8();
    }
    // Some characters take more cells together than each for itself: emoji with a selector.
    while width(&text[..end]) > cells {
        end = text[..end].char_indices().next_back().map_or(0, |(at, _)| at);
    }
    &text[..end]
}

/// The longest end that takes at most `cells`.
fn tail(text: &str, cells: usize) -> &str {
    let (mut used, mut begin) = (0, text.len());
    for (at, c) in text.char_indices().rev() {
        used += width(c.encode_utf8(&mut [0; 4]));
        if used > cells {
            break;
        }
        begin = at;
    }
    while width(&text[begin..]) > cells {
        begin += text[begin..].chars().next().map_or(0, char::len_utf8);
    }
    &text[begin..]
}

/// Cut at the end to `cells` of a terminal.
pub fn cut(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    if cells == 0 {
        return Cow::Borrowed("");
    }
    Cow::Owned(format!("{}{ELLIPSIS}", head(text, cells - 1)))
}

/// Cut at the beginning to `cells`.
pub(super) fn cut_front(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    if cells == 0 {
        return Cow::Borrowed("");
    }
    Cow::Owned(format!("{ELLIPSIS}{}", tail(text, cells - 1)))
}

/// What is left of a text that has gone at the left by so many cells.
pub(super) fn from_cell(text: &str, cells: usize) -> Cow<'_, str> {
    match cells {
        0 => Cow::Borrowed(text),
        cells if cells >= width(text) => Cow::Borrowed(""),
        cells => cut_front(text, width(text) - cells),
    }
}

/// Cut in the middle to `cells`: the ends of names differ, not their middles.
pub(super) fn cut_middle(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    if cells < 3 {
        return cut(text, cells);
    }
    let left = cells / 2;
    Cow::Owned(format!("{}{ELLIPSIS}{}", head(text, left), tail(text, cells - 1 - left)))
}

/// A module's name cut to `cells`: the version of a library goes first, which tells it from no other one.
pub(super) fn cut_module(name: &str, cells: usize) -> Cow<'_, str> {
    match name.find(".so") {
        Some(end) if width(name) > cells && matches!(name.as_bytes().get(end + 3), None | Some(b'.')) => {
            cut_middle(&name[..end], cells)
        }
        _ => cut_middle(name, cells),
    }
}

/// A function's name cut to `cells`: arguments of templates and functions go first, then the namespaces and types that it lies
/// in. What the function itself is called stays longest.
pub(super) fn cut_name(name: &str, cells: usize) -> Cow<'_, str> {
    if width(name) <= cells {
        return Cow::Borrowed(name);
    }
    if name.contains(".<") {
        return cut_dotted(name, cells);
    }
    let short = short_name(name);
    let parts = scopes(&short);
    let Some(last) = parts.last().filter(|_| parts.len() > 1 || short.len() < name.len()) else {
        return cut_middle(name, cells);
    };
    // The first has no `…` before it.
    let whole = Some(&*short).filter(|short| width(short) <= cells);
    let inner = || parts[1..].iter().find(|inner| width(inner) < cells).map(|inner| format!("{ELLIPSIS}{inner}"));
    match whole {
        Some(short) => Cow::Owned(short.to_owned()),
        None => Cow::Owned(inner().unwrap_or_else(|| cut(last.split('(').next().unwrap_or(last), cells).into_owned())),
    }
}

/// A name of Python's cut to `cells`, which has `.<locals>.` before what a function itself is called: names of one
/// function's inner ones differ at their ends.
fn cut_dotted(name: &str, cells: usize) -> Cow<'_, str> {
    // A file may stand behind it.
    let end = name.find(" (").unwrap_or(name.len());
    let parts = name[..end].match_indices('.').map(|(at, _)| &name[at + 1..]);
    let inner = parts.filter(|part| !part.starts_with('<') || !part.contains('.')).find(|part| width(part) < cells);
    match inner {
        Some(inner) => Cow::Owned(format!("{ELLIPSIS}{inner}")),
        None if end < name.len() => cut_name(&name[..end], cells),
        None => cut_front(name, cells),
    }
}

/// A name from each of its parts on, the whole one first: `a::B<c::d>::e`, `B<c::d>::e`, `e`.
fn scopes(name: &str) -> Vec<&str> {
    let (mut deep, mut parts) = (0_usize, vec![name]);
    for (at, letter) in name.char_indices() {
        match letter {
            '<' | '(' => deep += 1,
            '>' | ')' => deep = deep.saturating_sub(1),
            ':' if deep == 0 && name[at..].starts_with("::") => parts.push(&name[at + 2..]),
            _ => {}
        }
    }
    parts.retain(|part| !part.is_empty() && !part.starts_with(':'));
    parts
}

/// Filled up with spaces on the right, or cut at the end, to exactly `cells`.
pub(super) fn left(text: &str, cells: usize) -> String {
    let mut line = cut(text, cells).into_owned();
    let missing = cells.saturating_sub(width(&line));
    line.extend(std::iter::repeat_n(' ', missing));
    line
}

/// Filled up with spaces on the left, or cut at the end, to exactly `cells`.
pub(super) fn right(text: &str, cells: usize) -> String {
    let line = cut(text, cells);
    let missing = cells.saturating_sub(width(&line));
    format!("{}{line}", " ".repeat(missing))
}

/// Broken at spaces into lines of at most `cells`; words that are too long are broken anywhere.
pub(super) fn wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word = word;
        let used = lines.last().map_or(0, |line| width(line));
        if used > 0 && used + 1 + width(word) > cells {
            lines.push(String::new());
        } else if used > 0 {
            push(&mut lines, " ");
        }
        while width(word) > cells {
            let first = head(word, cells);
            // A character wider than the line must not stop the loop.
            let first = if first.is_empty() { &word[..word.chars().next().map_or(0, char::len_utf8)] } else { first };
            push(&mut lines, first);
            word = &word[first.len()..];
            if !word.is_empty() {
                lines.push(String::new());
            }
        }
        push(&mut lines, word);
    }
    lines
}

fn push(lines: &mut [String], text: &str) {
    if let Some(line) = lines.last_mut() {
        line.push_str(text);
    }
}

/// A number of what an event counts. One without a prefix of the SI has a space in its place, so
/// that digits in a column stand below one another.
pub(super) fn amount(number: f64, unit: &Unit) -> String {
    let text = number::amount(number, unit);
    if *unit == Unit::Count && !text.ends_with(|c: char| c.is_ascii_alphabetic()) { text + " " } else { text }
}

/// Formats a time as `00:01:23`.
pub(super) fn clock(time: WallNs) -> String {
    let seconds = time.0 / 1_000_000_000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Formats a time as `0:42`.
pub(super) fn short_clock(time: WallNs) -> String {
    let seconds = time.0 / 1_000_000_000;
    if seconds < 3600 {
        format!("{}:{:02}", seconds / 60, seconds % 60)
    } else {
        format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

/// Formats a time of a recording of this length: as `0:42`, and as `412 ms` where all of it is shorter than a second.
pub(super) fn recorded_clock(time: WallNs, length: WallNs) -> String {
    if length.0 < 1_000_000_000 { number::time(time.0 as f64) } else { short_clock(time) }
}

/// Formats a span as `1 s`, `0.5 s` or `2 min`.
pub(super) fn span(time: WallNs) -> String {
    let seconds = time.as_secs();
    match seconds {
        s if s >= 120.0 && (s / 60.0).fract() == 0.0 => format!("{} min", s / 60.0),
        s if s >= 10.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.1} s"),
        s => format!("{:.0} ms", s * 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_version_of_a_library_goes_before_its_name() {
        let of = |name, cells| cut_module(name, cells).into_owned();
        assert_eq!(
            [of("libsqlite3.so.0.8.6", 19), of("libsqlite3.so.0.8.6", 12)],
            ["libsqlite3.so.0.8.6", "libsqlite3"]
        );
        assert_eq!([of("libsqlite3.so", 10), of("libsqlite3.so.0.8.6", 7)], ["libsqlite3", "lib…te3"]);
        assert_eq!(of("a.sorted-program", 7), "a.s…ram");
    }

    #[test]
    fn what_takes_more_cells_together_is_cut_to_fit_too() {
        let clouds = "\u{2601}\u{fe0f}".repeat(40);
        for cells in 0..100 {
            assert!(width(&cut(&clouds, cells)) <= cells && width(&cut_middle(&clouds, cells)) <= cells, "{cells}");
        }
    }

    #[test]
    fn names_of_inner_functions_keep_their_ends() {
        let [list, one] = ["_iterencode_list", "_iterencode"].map(|name| format!("_make_iterencode.<locals>.{name}"));
        assert_eq!([cut_name(&list, 30), cut_name(&one, 30)], ["…_iterencode_list", "…_iterencode"]);
        assert_eq!([cut_name(&list, 12), cut_name(&one, 12)], ["…encode_list", "…_iterencode"]);
        assert_eq!(cut_name("Queue.get.<locals>.<lambda>", 14), "…<lambda>");
    }

    #[test]
    fn nothing_from_outside_steers_the_terminal() {
        assert_eq!(output("\x1b[1;31ma\x1b[0mb\x1b[K"), "ab");
        assert_eq!(output("a\x1b[2Jb\x1b["), "a\\x1b[2Jb\\x1b[");
        assert_eq!(output("a\tb\r"), "a       b");
    }

    #[test]
    fn numbers_without_a_prefix_keep_its_place() {
        assert_eq!((amount(412.4, &Unit::Count), amount(1.93e6, &Unit::Count)), ("412 ".into(), "1.93M".into()));
        assert_eq!(amount(1e9, &Unit::Nanoseconds), "1.00 s");
        let unit = Unit::Scaled { scale: 0.5, name: "M\x1biB".into() };
        assert_eq!(amount(6.0, &unit), "3 M\\x1biB");
    }

    #[test]
    fn names_are_cut_in_the_middle() {
        assert_eq!(cut_middle("L2_RQSTS.DEMAND_MISS", 11), "L2_RQ…_MISS");
        assert_eq!(cut_middle("short", 11), "short");
        let name = "std::_Hashtable<int, std::pair<int const, long>>::_M_find_before_node(unsigned long) const";
        for (cells, cut) in [
            (100, name),
            (50, "std::_Hashtable<…>::_M_find_before_node(…) const"),
            (44, "…_Hashtable<…>::_M_find_before_node(…) const"),
            (30, "…_M_find_before_node(…) const"),
            (19, "_M_find_before_node"),
            (10, "_M_find_b…"),
            (0, ""),
        ] {
            assert_eq!(cut_name(name, cells), cut, "{cells}");
        }
        assert_eq!(cut_name("<alloc::Vec<T> as core::Extend<T>>::extend", 10), "…extend");
        assert_eq!((cut_name("long_to_decimal", 9), cut_name("a::", 2)), ("long…imal".into(), "a…".into()));
        assert_eq!(cut_middle("漢字漢字漢字", 7), "漢…字");
        assert_eq!((cut_middle("abc", 0), cut("abc", 0)), ("".into(), "".into()));
    }

    #[test]
    fn long_text_is_wrapped_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap("漢字", 1), ["漢", "字"]);
    }

    #[test]
    fn clocks() {
        assert_eq!(clock(WallNs(83_000_000_000)), "00:01:23");
        assert_eq!(short_clock(WallNs(3_683_000_000_000)), "1:01:23");
        let of = |length| recorded_clock(WallNs(412_000_000), WallNs(length));
        assert_eq!((of(480_000_000), of(1_000_000_000)), ("412 ms".into(), "0:00".into()));
    }

    proptest! {
        #[test]
        fn fitted_text_has_its_width(text in "\\PC{0,40}", cells in 0usize..30) {
            let text = shown(&text);
            prop_assert!(width(&cut(&text, cells)) <= cells);
            prop_assert!(width(&cut_middle(&text, cells)) <= cells && width(&cut_name(&text, cells)) <= cells);
        }

        #[test]
        fn wrapping_loses_no_letter(text in "[a-z ]{0,60}", cells in 1usize..20) {
            let wrapped = wrap(&text, cells);
            prop_assert!(wrapped.iter().all(|line| width(line) <= cells));
            let letters = |text: &str| text.chars().filter(|&c| c != ' ').collect::<String>();
            prop_assert_eq!(letters(&wrapped.concat()), letters(&text));
        }

        #[test]
        fn numbers_stay_short(number in prop::num::f64::ANY) {
            prop_assert!(width(&amount(number, &Unit::Count)) <= 10, "{}", amount(number, &Unit::Count));
        }
    }
}
