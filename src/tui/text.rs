//! Text and numbers in, strings of a known width for the screen out.
//!
//! Whatever comes from outside (names, command lines, output) goes through [`shown`] before it
//! reaches the screen.

use std::borrow::Cow;
use std::fmt::Write as _;

use ratatui::text::Span;

use crate::events::Unit;
use crate::rates::Error;
use crate::units::WallNs;

/// The stand-in for what was cut away.
const ELLIPSIS: &str = "…";

/// A string from outside with everything that could steer a terminal made visible: control
/// characters as `\x1b`, invisible and direction-changing characters as `\u{202e}`.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_unsafe(c) => safe.push(c),
            c if u32::from(c) < 0x100 => {
                let _ = write!(safe, "\\x{:02x}", u32::from(c));
            }
            c => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    Cow::Owned(safe)
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A line of a program's output: tabs become the spaces that a terminal would show, the rest is
/// [`shown`].
pub(super) fn output(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for (i, part) in text.trim_end_matches('\r').split('\t').enumerate() {
        if i > 0 {
            let gap = 8 - width(&line) % 8;
            line.extend(std::iter::repeat_n(' ', gap));
        }
        line.push_str(&shown(part));
    }
    line
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
    &text[begin..]
}

/// Cut at the end to `cells`.
pub(super) fn cut(text: &str, cells: usize) -> Cow<'_, str> {
    if width(text) <= cells {
        return Cow::Borrowed(text);
    }
    if cells == 0 {
        return Cow::Borrowed("");
    }
    Cow::Owned(format!("{}{ELLIPSIS}", head(text, cells - 1)))
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
            lines.push(String::new());
            word = &word[first.len()..];
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

/// Three digits and a prefix of the SI: `1.93M`, `412`, `0.0123`. Numbers without a prefix have a
/// space in its place, so that digits in a column stand below one another.
pub fn si(number: f64) -> String {
    const PREFIXES: [&str; 7] = [" ", "k", "M", "G", "T", "P", "E"];
    if !number.is_finite() {
        return "? ".into();
    }
    let size = number.abs();
    if size == 0.0 {
        return "0 ".into();
    }
    if size < 0.000_995 {
        return scientific(number);
    }
    if size < 0.995 {
        let decimals = 2 - size.log10().floor() as i32;
        return format!("{:.*} ", decimals.clamp(2, 6) as usize, number);
    }
    let (mut scaled, mut prefix) = (number, 0);
    // 999.5 would be shown as 1000.
    while scaled.abs() >= 999.5 && prefix + 1 < PREFIXES.len() {
        scaled /= 1000.0;
        prefix += 1;
    }
    if scaled.abs() >= 999.5 {
        return scientific(number);
    }
    format!("{}{}", three_digits(scaled), PREFIXES[prefix])
}

/// `1.93`, `19.3`, `193`.
fn three_digits(number: f64) -> String {
    let size = number.abs();
    let decimals = if size < 9.995 {
        2
    } else if size < 99.95 {
        1
    } else {
        0
    };
    format!("{number:.decimals$}")
}

/// `2.6e10`.
pub(super) fn scientific(number: f64) -> String {
    if number.is_finite() { format!("{number:.1e}") } else { "?".into() }
}

/// A span of time with three digits: `1.00 s`, `38.1 ms`.
pub fn time(nanoseconds: f64) -> String {
    let size = nanoseconds.abs();
    if !size.is_finite() {
        return "?".into();
    }
    let (scaled, unit) = match size {
        _ if size < 999.5 => (nanoseconds, "ns"),
        _ if size < 999.5e3 => (nanoseconds / 1e3, "µs"),
        _ if size < 999.5e6 => (nanoseconds / 1e6, "ms"),
        _ if size < 1e12 => (nanoseconds / 1e9, "s"),
        _ => return format!("{:.2e} s", nanoseconds / 1e9),
    };
    if scaled == 0.0 { "0 s".into() } else { format!("{} {unit}", three_digits(scaled)) }
}

/// A number of what an event counts.
pub fn amount(number: f64, unit: &Unit) -> String {
    match unit {
        Unit::Count => si(number),
        Unit::Nanoseconds => time(number),
        Unit::Scaled { scale, name } => {
            format!("{} {}", si(number * scale).trim_end(), cut(&shown(name), 8))
        }
    }
}

/// The error of a number: `exact`, `±1.8%`, `±?`.
pub fn plus_minus(error: Error, number: f64) -> String {
    match error {
        Error::Exact => "exact".into(),
        Error::Unknown => "±?".into(),
        Error::Within(half_width) => match error.relative_to(number) {
            Some(part) => format!("±{}", percent(part)),
            // Nothing was counted: there is no percentage of 0.
            None => format!("±{}", si(half_width).trim_end()),
        },
    }
}

/// A part of a whole without its sign's plus: `1.8%`, `250%`, `>999%`.
pub fn percent(part: f64) -> String {
    let percent = part * 100.0;
    match percent.abs() {
        size if size.is_nan() => "?".into(),
        size if size > 999.0 => if percent < 0.0 { "<-999%" } else { ">999%" }.into(),
        size if size >= 99.95 => format!("{percent:.0}%"),
        size if size < 0.05 && size > 0.0 => "<0.1%".into(),
        _ => format!("{percent:.1}%"),
    }
}

/// A change with its sign: `+11.0%`, `−2.3%`, `0.0%`.
pub fn change(part: f64) -> String {
    let text = percent(part.abs());
    match part {
        part if part.is_nan() || text == "0.0%" => text,
        _ if text.starts_with('<') => "0.0%".into(),
        part if part < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

/// A signed number with one decimal and a real minus: `−0.3`.
pub(super) fn signed(number: f64) -> String {
    if number.is_finite() { format!("{number:+.1}").replace('-', "−") } else { "?".into() }
}

/// `00:01:23`.
pub(super) fn clock(time: WallNs) -> String {
    let seconds = time.0 / 1_000_000_000;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// `0:42`.
pub(super) fn short_clock(time: WallNs) -> String {
    let seconds = time.0 / 1_000_000_000;
    if seconds < 3600 {
        format!("{}:{:02}", seconds / 60, seconds % 60)
    } else {
        format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

/// `1 s`, `0.5 s`, `2 min`.
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
    fn nothing_from_outside_steers_the_terminal() {
        assert_eq!(shown("L1_MISSES"), "L1_MISSES");
        assert_eq!(shown("a\x1b[31mb\u{9b}c\u{202e}d\u{7f}"), "a\\x1b[31mb\\x9bc\\u{202e}d\\x7f");
        assert_eq!(output("a\tb\r"), "a       b");
    }

    #[test]
    fn numbers_have_three_digits() {
        let cases = [
            (0.0, "0 "),
            (1.0, "1.00 "),
            (412.4, "412 "),
            (999.4, "999 "),
            (999.6, "1.00k"),
            (1_930_000.0, "1.93M"),
            (-38_100.0, "-38.1k"),
            (0.0123, "0.0123 "),
            (0.5, "0.500 "),
            (1e-7, "1.0e-7"),
            (3.4e24, "3.4e24"),
            (f64::NAN, "? "),
        ];
        for (number, text) in cases {
            assert_eq!(si(number), text, "{number}");
        }
    }

    #[test]
    fn times_are_shown_as_times() {
        let cases = [
            (1e9, "1.00 s"),
            (38.1e6, "38.1 ms"),
            (2_500.0, "2.50 µs"),
            (12.0, "12.0 ns"),
            (0.0, "0 s"),
            (83e9, "83.0 s"),
        ];
        for (number, text) in cases {
            assert_eq!(time(number), text);
        }
    }

    #[test]
    fn errors_say_what_is_known() {
        assert_eq!(plus_minus(Error::Exact, 5.0), "exact");
        assert_eq!(plus_minus(Error::Unknown, 5.0), "±?");
        assert_eq!(plus_minus(Error::Within(0.018), 1.0), "±1.8%");
        assert_eq!(plus_minus(Error::Within(4.0), 0.0), "±4.00");
        assert_eq!(plus_minus(Error::Within(1e-9), 1.0), "±<0.1%");
    }

    #[test]
    fn changes_have_a_sign() {
        for (part, text) in [(0.11, "+11.0%"), (-0.023, "−2.3%"), (0.0, "0.0%"), (-0.0001, "0.0%"), (50.0, "+>999%")]
        {
            assert_eq!(change(part), text);
        }
    }

    #[test]
    fn names_are_cut_in_the_middle() {
        assert_eq!(cut_middle("L2_RQSTS.DEMAND_MISS", 11), "L2_RQ…_MISS");
        assert_eq!(cut_middle("short", 11), "short");
        assert_eq!(cut_middle("漢字漢字漢字", 7), "漢…漢");
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
    }

    proptest! {
        #[test]
        fn fitted_text_has_its_width(text in "\\PC{0,40}", cells in 0usize..30) {
            let text = shown(&text);
            prop_assert!(width(&cut(&text, cells)) <= cells);
            prop_assert!(width(&cut_middle(&text, cells)) <= cells);
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
            prop_assert!(width(&si(number)) <= 8, "{}", si(number));
            prop_assert!(width(&percent(number)) <= 6);
            prop_assert!(width(&time(number)) <= 11, "{}", time(number));
        }

        #[test]
        fn shown_text_has_no_control_characters(text in any::<String>()) {
            prop_assert!(!shown(&text).chars().any(char::is_control));
        }
    }
}
