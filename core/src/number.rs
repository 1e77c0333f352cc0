//! Writes numbers, times, shares and errors as short text, the same on every screen and in every table.
//!
//! Whoever adds a table takes these, so that `±` has one meaning: how far the number beside it may be off, in percent
//! of that number.

mod moment;

use std::fmt::Display;

pub use moment::rfc_3339;

use crate::events::Unit;
use crate::names::shown;
use crate::rates::{Error, Uncertain};
use crate::units::WallNs;

/// What stands for a number that there is none of.
const NONE: &str = "—";

/// Percentages from this one on have no decimal: 99.95 would be rounded to 100.0.
const WHOLE: f64 = 99.95;

/// The least percentage that its decimal shows.
const LEAST: f64 = 0.05;

/// Percentages beyond this are only said to be so: 999.5 would be rounded to 1000.
const MOST: f64 = 999.5;

const UP: [(f64, &str); 5] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];

/// No prefix is known for numbers from here on.
const TOO_LARGE: f64 = 1e19;

/// So many of something whose plural has an `s`: `1 reading`, `2 readings`.
pub fn counted<T: Display + PartialEq + From<u8>>(count: T, one: &str) -> String {
    let plural = if count == T::from(1) { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// A number with three significant digits and an SI prefix: `1.93M`, `412k`, `83`, `0.25`. From
/// `1e19` on it has a power of ten instead: `1.0e19`.
pub fn si(value: f64) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let size = value.abs();
    match prefix_of(value) {
        Some((unit, prefix)) => format!("{}{prefix}", significant(value / unit)),
        None if size >= TOO_LARGE => minus(format!("{value:.1e}")),
        None => significant(value),
    }
}

/// The SI prefix that fits a number. 999.6k would round to 1000k: the next one takes over where rounding would cross.
fn prefix_of(value: f64) -> Option<(f64, &'static str)> {
    let size = value.abs();
    UP.into_iter().find(|(unit, _)| size >= unit * 0.9995 && (999.5..TOO_LARGE).contains(&size))
}

/// Three significant digits, without zeros that say nothing: `1.5`, `42.1`, `0.001`.
fn significant(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(0.0005..1e4).contains(&size) {
        return minus(format!("{value:.1e}"));
    }
    let text = three_digits(value);
    let is_whole = size.fract() == 0.0 && text.contains('.');
    if is_whole { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

fn three_digits(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ => 3,
    };
    minus(format!("{value:.decimals$}"))
}

/// The sign as it is printed.
fn minus(text: String) -> String {
    text.strip_prefix('-').map_or_else(|| text.clone(), |size| format!("−{size}"))
}

/// A time in nanoseconds with the unit that fits: `1.50 s`, `20.6 ms`, `310 ns`.
pub fn time(nanoseconds: f64) -> String {
    if !nanoseconds.is_finite() {
        return NONE.into();
    }
    let (unit, name) = unit_of_time(nanoseconds);
    match nanoseconds {
        0.0 => "0 s".into(),
        // More digits than anyone reads.
        _ if nanoseconds.abs() >= 1e21 => format!("{} s", minus(format!("{:.1e}", nanoseconds / unit))),
        _ => format!("{} {name}", three_digits(nanoseconds / unit)),
    }
}

/// The unit that fits a time: its nanoseconds and its name.
fn unit_of_time(nanoseconds: f64) -> (f64, &'static str) {
    match nanoseconds.abs() {
        size if size >= 0.9995e9 => (1e9, "s"),
        size if size >= 0.9995e6 => (1e6, "ms"),
        size if size >= 0.9995e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    }
}

/// A time since the beginning as `00:41`, and from an hour on `1:00:41`.
pub fn clock(time: WallNs) -> String {
    let seconds = time.0 / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 { format!("{minutes:02}:{seconds:02}") } else { format!("{hours}:{minutes:02}:{seconds:02}") }
}

/// A number of counts of an event, in its unit.
pub fn amount(counts: f64, unit: &Unit) -> String {
    match unit {
        Unit::Count => si(counts),
        Unit::Nanoseconds => time(counts),
        Unit::Scaled { scale, name } if name == "ns" => time(counts * scale),
        Unit::Scaled { scale, name } => format!("{} {}", si(counts * scale), shown(name)),
    }
}

/// A range of counts of an event, both ends in one unit and with as many decimals as tell them apart: `0.5–1.0M`,
/// `8–10 ms`.
pub fn range(low: f64, high: f64, unit: &Unit) -> String {
    let size = low.abs().max(high.abs());
    let (divisor, name) = unit_of(size, unit);
    let decimals = decimals_of((high - low) / divisor, 1);
    // More digits than anyone reads.
    if !(-6.0..=6.0).contains(&decimals) || size / divisor >= 1e6 {
        return format!("{}–{}", amount(low, unit), amount(high, unit));
    }
    let end = |end: f64| minus(format!("{:.*}", decimals.max(0.0) as usize, end / divisor + 0.0));
    format!("{}–{}{name}", end(low), end(high))
}

/// A number of counts of an event and the ends of its interval, all in one unit and with as many decimals as show two
/// digits of half the interval's width: `1.0066 µs`, `1.0060 µs`, `1.0072 µs`. Three digits of the largest where the
/// interval has no width.
pub fn with_interval(value: f64, (low, high): (f64, f64), unit: &Unit) -> [String; 3] {
    let all = [value, low, high];
    let size = all.iter().map(|number| number.abs()).fold(0.0, f64::max);
    let half = (high - low).abs() / 2.0;
    if size == 0.0 || !size.is_finite() || !half.is_finite() {
        return all.map(|number| amount(number, unit));
    }
    let (mut divisor, mut name) = unit_of(size, unit);
    // As a power of ten what has no prefix.
    if !(0.01..1e6).contains(&(size / divisor)) {
        let power = (size / divisor).log10().floor();
        (divisor, name) = (divisor * 10_f64.powf(power), format!("e{power}{name}"));
    }
    // What a sum is off by is no width.
    let width = if half > size * 1e-9 { half / divisor } else { size / divisor / 10.0 };
    let decimals = decimals_of(width, 2).clamp(0.0, 6.0) as usize;
    let places = 10_f64.powi(decimals as i32);
    all.map(|number| {
        let rounded = (number / divisor * places).round() / places + 0.0;
        format!("{}{name}", minus(format!("{rounded:.decimals$}")))
    })
}

/// The unit that fits counts of this size: how many counts it is, and what stands behind a number in it.
fn unit_of(size: f64, unit: &Unit) -> (f64, String) {
    let prefixed = |scale: f64| prefix_of(size * scale).unwrap_or((1.0, ""));
    let timed = |scale: f64| {
        let (unit, name) = unit_of_time(size * scale);
        (unit / scale, format!(" {name}"))
    };
    match unit {
        Unit::Count => (prefixed(1.0).0, prefixed(1.0).1.to_owned()),
        Unit::Nanoseconds => timed(1.0),
        Unit::Scaled { scale, name } if name == "ns" => timed(*scale),
        Unit::Scaled { scale, name } => (prefixed(*scale).0 / scale, format!("{} {}", prefixed(*scale).1, shown(name))),
    }
}

/// How many decimals show so many significant digits of a width; below 0 where they end before the point.
pub fn decimals_of(width: f64, digits: u32) -> f64 {
    // What a product is off by is no digit.
    f64::from(digits) - 1.0 - (width.abs().log10() + 1e-9).floor()
}

/// A size in percent: `1.8%`, `250%`, `>999%`; `<0.1%` is what the decimal can't show, and `0.0%` none.
pub fn percent(part: f64) -> String {
    let percent = part * 100.0;
    let size = match percent.abs() {
        size if size.is_nan() => return "?".into(),
        size if size >= MOST => ">999%".into(),
        size if size >= WHOLE => format!("{size:.0}%"),
        size if size < LEAST && size > 0.0 => return "<0.1%".into(),
        size => format!("{size:.1}%"),
    };
    if percent < 0.0 { format!("−{size}") } else { size }
}

/// A part of a whole: `67.0%`. What isn't all of it is never `100%`.
pub fn share(part: f64) -> String {
    percent(if part < 1.0 { part.min(0.999) } else { part })
}

/// Formats a share without decimals, for narrow columns: `67%`, `99%` of what isn't all, and `<1%` of what isn't
/// nothing.
pub fn whole_share(part: f64) -> String {
    let percent = part * 100.0;
    match percent {
        _ if percent.is_nan() => "?".into(),
        _ if part > 0.0 && percent < 0.5 => "<1%".into(),
        _ if part < 1.0 => format!("{:.0}%", percent.min(99.0)),
        _ => format!("{percent:.0}%"),
    }
}

/// The ends of the interval of a part of a whole, in percent and rounded outwards: `11.9–12.7`, `99.6–100`.
pub fn share_interval(low: f64, high: f64) -> String {
    let end = |tenths: f64| match tenths {
        _ if tenths.is_nan() => "?".into(),
        _ if tenths >= 1000.0 => "100".into(),
        _ => format!("{:.1}", (tenths.max(0.0) + 0.0) / 10.0),
    };
    // What a product is off by is no reason to round.
    let noise = 1e-9;
    format!("{}–{}", end((low * 1000.0 + noise).floor()), end((high * 1000.0 - noise).ceil()))
}

/// A change with its sign: `+11.0%`, `−2.3%`; `0.0%` where the decimal shows none. What became more than ten times as
/// large has the factor: `×12`.
pub fn change(part: f64) -> String {
    let size = part.abs() * 100.0;
    match percent(part.abs()) {
        text if text == "?" => text,
        _ if part * 100.0 >= MOST && part < 1e15 => times(1.0 + part),
        _ if size < LEAST => "0.0%".into(),
        text if part < 0.0 => format!("−{text}"),
        text => format!("+{text}"),
    }
}

/// A factor: `×12`, `×1.5k`.
pub fn times(factor: f64) -> String {
    let factor = if (9.95..999.5).contains(&factor) { factor.round() } else { factor };
    format!("×{}", si(factor))
}

/// Formats a number with its sign and one decimal: `+1.5`, `−0.3`, `0.0`.
pub fn signed(number: f64) -> String {
    match number {
        _ if !number.is_finite() => "?".into(),
        _ if number.abs() < 0.05 => "0.0".into(),
        _ => minus(format!("{number:+.1}")),
    }
}

/// A probability that is small where it matters: `2.1e-4`, `<1e-9` below that, and `0.3` or `1` from a tenth on.
pub fn chance(probability: f64) -> String {
    match probability {
        ..1e-9 => "<1e-9".into(),
        ..0.1 => format!("{probability:.1e}"),
        ..0.95 => format!("{probability:.1}"),
        _ => "1".into(),
    }
}

/// Formats a number with two digits: `2.6e10`.
pub fn scientific(number: f64) -> String {
    match number {
        0.0 => "0".into(),
        number if number.is_finite() => format!("{number:.1e}"),
        _ => "?".into(),
    }
}

/// A variance of counts of an event in so many significant digits: `2.7e14`, and of times in the square of seconds:
/// `3.9e-2s²`.
pub fn variance(variance: f64, unit: &Unit) -> String {
    const SECOND: f64 = 1e-9;
    let of_time = |scale: f64| match variance {
        0.0 => "0".into(),
        variance => format!("{}s²", scientific(variance * (scale * SECOND).powi(2))),
    };
    match unit {
        Unit::Count => scientific(variance),
        Unit::Nanoseconds => of_time(1.0),
        Unit::Scaled { scale, name } if name == "ns" => of_time(*scale),
        Unit::Scaled { scale, .. } => scientific(variance * scale * scale),
    }
}

/// How far `number` may be off, in percent of it: `exact`, `±1.8%`, `±<0.1%`, `±>999%`; `±?` where that isn't known.
/// There are no percents of 0: beside it stands `±4`, in `unit`.
pub fn plus_minus(number: Uncertain, unit: &Unit) -> String {
    let half_width = match (number.error, number.error.half_width()) {
        (Error::Exact, _) => return "exact".into(),
        (_, Some(half_width)) if half_width.is_finite() => half_width,
        _ => return "±?".into(),
    };
    match (number.error.relative_to(number.value), unit) {
        (Some(part), _) => plus_minus_part(part),
        (None, Unit::Count) => format!("±{}", si(half_width)),
        // As narrow as a column.
        (None, Unit::Nanoseconds) => format!("±{}", time(half_width).replace(' ', "")),
        (None, Unit::Scaled { scale, name }) if name == "ns" => {
            format!("±{}", time(half_width * scale).replace(' ', ""))
        }
        (None, Unit::Scaled { scale, .. }) => format!("±{}", si(half_width * scale)),
    }
}

/// Characters of the longest error with both sides.
pub const BOTH_SIDES: usize = 11;

/// The same where there is room for both sides: `+182/−11%` where one of them is more than twice as large as the other.
pub fn plus_minus_sides(number: Uncertain, unit: &Unit) -> String {
    match number.error {
        Error::Within { below, above } if has_two_sides(number) => {
            let side = |size: f64| percent_of_side(size / number.value.abs());
            format!("+{}/−{}%", side(above), side(below))
        }
        _ => plus_minus(number, unit),
    }
}

/// Whether one side of an interval is so much larger than the other that `±` says little.
pub fn has_two_sides(number: Uncertain) -> bool {
    const TIMES: f64 = 2.0;
    let Error::Within { below, above } = number.error else { return false };
    let (less, more) = (below.min(above), below.max(above));
    let are_known = below.is_finite() && above.is_finite() && number.value != 0.0;
    are_known && more > TIMES * less && more / number.value.abs() * 100.0 >= LEAST
}

/// In percent, as short as can be: `182`, `11`, `5.2`.
fn percent_of_side(part: f64) -> String {
    match part * 100.0 {
        percent if percent >= MOST => ">999".into(),
        percent if percent >= 9.95 => format!("{percent:.0}"),
        percent if percent < LEAST && percent > 0.0 => "<0.1".into(),
        0.0 => "0".into(),
        percent => format!("{percent:.1}"),
    }
}

/// A number of counts of an event with how far it may be off: `20.6 ms ±1.8%`.
pub fn uncertain(number: Uncertain, unit: &Unit) -> String {
    format!("{} {}", amount(number.value, unit), plus_minus_sides(number, unit))
}

/// Formats an error that is known as a part of its number.
pub fn plus_minus_part(part: f64) -> String {
    // However little an error is, only what was counted all the time has none.
    if part.abs() * 100.0 < LEAST { "±<0.1%".into() } else { format!("±{}", percent(part)) }
}

/// Formats a number with so many decimals: `0.250`; as a power of ten where nobody reads all digits before its point:
/// `1.50e47`.
pub fn fixed(value: f64, decimals: usize) -> String {
    if value.abs() < MOST_READ { format!("{value:.decimals$}") } else { format!("{value:.2e}") }
}

/// Numbers from here on have more digits than anyone reads.
const MOST_READ: f64 = 1e15;

/// A number for other programs with so many decimals: `-0.25`; as a power of ten where a double doesn't
/// tell all the digits before its point apart: `1.5e47`.
pub fn plain(value: f64, decimals: usize) -> String {
    if value.abs() < MOST_DIGITS { format!("{value:.decimals$}") } else { format!("{value:e}") }
}

/// The shortest text that is read back as the same number: `0.1`, `1.5e47`, `2e-9`.
pub fn shortest(value: f64) -> String {
    let is_short = value == 0.0 || (1e-4..MOST_DIGITS).contains(&value.abs());
    if is_short { value.to_string() } else { format!("{value:e}") }
}

/// Whole numbers from here on have more digits than the 17 that a double needs at most.
const MOST_DIGITS: f64 = 1e17;

/// A whole number with commas: `1,931,204`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Memory in RAM in four characters or fewer, in units of 1,024: `512`, `9.5K`, `12M`, `1.5G`.
pub fn memory(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["", "K", "M", "G", "T"] {
        match amount {
            ..9.95 if !unit.is_empty() => return format!("{amount:.1}{unit}"),
            ..999.5 => return format!("{amount:.0}{unit}"),
            _ => amount /= 1024.0,
        }
    }
    format!("{amount:.0}P")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0_u64, 1, 2].map(|count| counted(count, "reading")), ["0 readings", "1 reading", "2 readings"]);
    }

    #[test]
    fn memory_in_four_characters() {
        let all = [0, 512, 1024, 9_700, 10_240, 1 << 20, 12 << 20, 1023 << 20, 3 << 29, 1 << 44].map(memory);
        assert_eq!(all, ["0", "512", "1.0K", "9.5K", "10K", "1.0M", "12M", "1.0G", "1.5G", "16T"]);
    }

    #[test]
    fn prefixes_by_hand() {
        let cases = [
            (0.0, "0"),
            (1.0, "1"),
            (0.25, "0.250"),
            (83.0, "83"),
            (42.06, "42.1"),
            (999.4, "999"),
            (999.7, "1.00k"),
            (1_931_204.0, "1.93M"),
            (412_000.0, "412k"),
            (-38_100.0, "−38.1k"),
            (999_600.0, "1.00M"),
            (2.4e14, "240T"),
            (f64::NAN, "—"),
            (0.000_04, "4.0e-5"),
            (1e18, "1000P"),
            (1e20, "1.0e20"),
        ];
        for (value, text) in cases {
            assert_eq!(si(value), text, "{value}");
        }
    }

    #[test]
    fn clocks_by_hand() {
        let texts = [41, 754, 3641].map(|second| clock(WallNs(second * 1_000_000_000 + 999_999_999)));
        assert_eq!(texts, ["00:41", "12:34", "1:00:41"]);
    }

    #[test]
    fn times_by_hand() {
        let cases = [
            (0.0, "0 s"),
            (1e9, "1.00 s"),
            (310.0, "310 ns"),
            (20.6e6, "20.6 ms"),
            (1.5e9, "1.50 s"),
            (999.7e3, "1.00 ms"),
            (123.4e18, "123400000000 s"),
            (-1.02e300, "−1.0e291 s"),
        ];
        for (value, text) in cases {
            assert_eq!(time(value), text, "{value}");
        }
    }

    #[test]
    fn ranges_by_hand() {
        let counts = [
            (0.0, 5.0, "0–5"),
            (900.0, 1000.0, "0.9–1.0k"),
            (500_000.0, 1_000_000.0, "0.5–1.0M"),
            (1_000_000.0, 1_500_000.0, "1.0–1.5M"),
            (1200.0, 1220.0, "1.20–1.22k"),
            (-0.5, 0.0, "−0.5–0.0"),
            (2e4, 3e4, "20–30k"),
            (7.0, 7.0, "7–7"),
            (1e-9, 2e-9, "1.0e-9–2.0e-9"),
            (1e300, 2e300, "1.0e300–2.0e300"),
        ];
        for (low, high, text) in counts {
            assert_eq!(range(low, high, &Unit::Count), text);
        }
        let scaled = |scale: f64, name: &str| Unit::Scaled { scale, name: name.into() };
        assert_eq!(range(8e6, 1e7, &Unit::Nanoseconds), "8–10 ms");
        assert_eq!(range(9.5e8, 1e9, &Unit::Nanoseconds), "0.95–1.00 s");
        assert_eq!(range(1e6, 1.5e6, &scaled(64.0, "B")), "64–96M B");
        assert_eq!(range(2e6, 4e6, &scaled(0.5, "ns")), "1–2 ms");
    }

    #[test]
    fn numbers_have_the_digits_of_their_intervals() {
        let of = |value: f64, interval: (f64, f64), unit: &Unit| with_interval(value, interval, unit).join(" | ");
        let times = [
            ((1006.6, (1003.4, 1009.8)), "1.0066 µs | 1.0034 µs | 1.0098 µs"),
            ((103.6e6, (103.1e6, 104.1e6)), "103.60 ms | 103.10 ms | 104.10 ms"),
            ((2.05e6, (1.78e6, 2.32e6)), "2.05 ms | 1.78 ms | 2.32 ms"),
            ((0.001_57, (0.0012, 0.0019)), "1.57e-3 ns | 1.20e-3 ns | 1.90e-3 ns"),
            ((-0.4, (-99.0, 98.0)), "0 ns | −99 ns | 98 ns"),
            ((5e9, (5e9, 5e9)), "5.00 s | 5.00 s | 5.00 s"),
            ((0.0, (0.0, 0.0)), "0 s | 0 s | 0 s"),
        ];
        for ((value, interval), text) in times {
            assert_eq!(of(value, interval, &Unit::Nanoseconds), text);
        }
        let counts = [
            ((0.0, (0.0, 6960.0)), "0.0k | 0.0k | 7.0k"),
            ((0.078_4, (0.0781, 0.0787)), "0.07840 | 0.07810 | 0.07870"),
            ((83.0, (61.0, 105.0)), "83 | 61 | 105"),
            ((4.2e20, (4.1e20, 4.3e20)), "4.20e20 | 4.10e20 | 4.30e20"),
        ];
        for ((value, interval), text) in counts {
            assert_eq!(of(value, interval, &Unit::Count), text);
        }
    }

    #[test]
    fn groups_by_hand() {
        assert_eq!([grouped(0), grouped(999), grouped(1_931_204)], ["0", "999", "1,931,204"]);
    }

    #[test]
    fn numbers_for_programs_by_hand() {
        let texts = [plain(1_931_204.0, 0), plain(-0.25, 2), plain(1.5e47, 0), plain(-2e17, 3)];
        assert_eq!(texts, ["1931204", "-0.25", "1.5e47", "-2e17"]);
        assert_eq!([0.0, 0.1, 1.5e47, 2e-9].map(shortest), ["0", "0.1", "1.5e47", "2e-9"]);
    }

    #[test]
    fn numbers_with_decimals_by_hand() {
        let texts = [fixed(0.25, 3), fixed(-9.4e14, 1), fixed(1e15, 3), fixed(-1.5e300, 3), fixed(f64::INFINITY, 3)];
        assert_eq!(texts, ["0.250", "-940000000000000.0", "1.00e15", "-1.50e300", "inf"]);
    }

    #[test]
    fn percentages_by_hand() {
        let cases = [
            (0.018, "1.8%"),
            (0.0, "0.0%"),
            (-0.0, "0.0%"),
            (0.0004, "<0.1%"),
            (0.0005, "0.1%"),
            (-0.0004, "<0.1%"),
            (-0.023, "−2.3%"),
            (0.9994, "99.9%"),
            (0.9996, "100%"),
            (2.5, "250%"),
            (9.994, "999%"),
            (9.996, ">999%"),
            (-50.0, "−>999%"),
            (f64::INFINITY, ">999%"),
            (f64::NAN, "?"),
        ];
        for (part, text) in cases {
            assert_eq!(percent(part), text, "{part}");
        }
    }

    #[test]
    fn only_all_of_a_whole_is_a_hundred_percent() {
        assert_eq!([0.0, 0.67, 0.99996, 1.0].map(share), ["0.0%", "67.0%", "99.9%", "100%"]);
        assert_eq!([0.0, 0.003, 0.67, 0.99996, 1.0].map(whole_share), ["0%", "<1%", "67%", "99%", "100%"]);
        assert_eq!((share(f64::NAN), whole_share(f64::NAN)), ("?".into(), "?".into()));
    }

    #[test]
    fn intervals_of_shares_by_hand() {
        assert_eq!(share_interval(0.119, 0.127), "11.9–12.7");
        assert_eq!(
            [(0.0, 0.0), (0.0002, 0.0004), (0.9996, 1.0)].map(|(low, high)| share_interval(low, high)),
            ["0.0–0.0", "0.0–0.1", "99.9–100"]
        );
        assert_eq!(share_interval(f64::NAN, 1.0), "?–100");
    }

    #[test]
    fn changes_have_a_sign() {
        let cases = [
            (0.11, "+11.0%"),
            (-0.023, "−2.3%"),
            (0.0, "0.0%"),
            (-0.0004, "0.0%"),
            (0.0005, "+0.1%"),
            (9.99, "+999%"),
            (9.996, "×11"),
            (50.0, "×51"),
            (11_000.0, "×11.0k"),
            (f64::INFINITY, "+>999%"),
            (f64::NAN, "?"),
        ];
        for (part, text) in cases {
            assert_eq!(change(part), text, "{part}");
        }
        assert_eq!([1.5, -0.3, -0.04, 0.0, f64::NAN].map(signed), ["+1.5", "−0.3", "0.0", "0.0", "?"]);
    }

    #[test]
    fn errors_by_hand() {
        let of = |value: f64, error: Error| plus_minus(Uncertain { value, error }, &Unit::Count);
        let within = |value: f64, half: f64| of(value, Error::of(half));
        assert_eq!((of(5.0, Error::Exact), of(5.0, Error::Unknown)), ("exact".into(), "±?".into()));
        assert_eq!((within(100.0, 1.8), within(-100.0, 1.8)), ("±1.8%".into(), "±1.8%".into()));
        assert_eq!(of(100.0, Error::Within { below: 1.0, above: 3.0 }), "±3.0%");
        // At both ends, on either side of the rounding.
        assert_eq!([0.0, 0.0499, 0.05, 0.1].map(|half| within(100.0, half)), ["±<0.1%", "±<0.1%", "±0.1%", "±0.1%"]);
        assert_eq!([99.9, 99.96, 999.4, 999.6].map(|half| within(100.0, half)), ["±99.9%", "±100%", "±999%", "±>999%"]);
        assert_eq!((within(1e-300, 1e300), within(5.0, f64::NAN)), ("±>999%".into(), "±?".into()));
        assert_eq!(of(5.0, Error::Within { below: f64::NAN, above: f64::NAN }), "±?");
    }

    #[test]
    fn unequal_sides_of_an_interval_by_hand() {
        let of = |value: f64, below: f64, above: f64| {
            plus_minus_sides(Uncertain { value, error: Error::Within { below, above } }, &Unit::Count)
        };
        assert_eq!(of(1000.0, 110.0, 1820.0), "+182/−11%");
        assert_eq!((of(100.0, 10.0, 20.0), of(100.0, 9.0, 20.0)), ("±20.0%".into(), "+20/−9.0%".into()));
        assert_eq!((of(100.0, 90.0, 3.0), of(-100.0, 1.0, 9.0)), ("+3.0/−90%".into(), "+9.0/−1.0%".into()));
        assert_eq!((of(100.0, 0.01, 1e4), of(100.0, 0.0, 5.0)), ("+>999/−<0.1%".into(), "+5.0/−0%".into()));
        // Beside 0 there are no percents, and too little to be shown has no sides.
        assert_eq!((of(0.0, 0.0, 4.0), of(1e6, 1.0, 5.0)), ("±4".into(), "±<0.1%".into()));
        assert_eq!(
            of(5.0, f64::NAN, 9.0),
            plus_minus(Uncertain { value: 5.0, error: Error::Within { below: f64::NAN, above: 9.0 } }, &Unit::Count)
        );
        assert_eq!(plus_minus_sides(Uncertain::exact(5.0), &Unit::Count), "exact");
    }

    #[test]
    fn beside_nothing_the_error_is_in_the_unit_of_what_is_counted() {
        let of = |half: f64, unit: &Unit| plus_minus(Uncertain { value: 0.0, error: Error::of(half) }, unit);
        assert_eq!((of(4.0, &Unit::Count), of(0.0, &Unit::Count)), ("±4".into(), "±0".into()));
        assert_eq!(of(20.6e6, &Unit::Nanoseconds), "±20.6ms");
        assert_eq!(of(4.0, &Unit::Scaled { scale: 0.5, name: "MiB".into() }), "±2");
        assert_eq!(of(4e6, &Unit::Scaled { scale: 1.0, name: "ns".into() }), of(4e6, &Unit::Nanoseconds));
    }

    proptest! {
        #[test]
        fn numbers_for_programs_are_short_and_read_back(value in prop::num::f64::NORMAL) {
            let longest = 25;
            prop_assert!(plain(value, 3).len() <= longest && shortest(value).len() <= longest, "{}", shortest(value));
            prop_assert_eq!(shortest(value).parse(), Ok(value));
        }

        #[test]
        fn numbers_stay_short(value in prop::num::f64::ANY, half in prop::num::f64::ANY) {
            let cells = |text: String| text.chars().count();
            prop_assert!(cells(si(value)) <= 9, "{}", si(value));
            prop_assert!(cells(percent(value)) <= 6 && cells(change(value)) <= 7, "{}", percent(value));
            let error = plus_minus(Uncertain { value, error: Error::of(half.abs()) }, &Unit::Count);
            prop_assert!(cells(error.clone()) <= 7 || value == 0.0, "{error}");
        }

        #[test]
        fn what_is_written_of_an_error_is_what_it_is(value in 1e-3f64..1e12, part in 0.0f64..20.0) {
            let text = plus_minus(Uncertain { value, error: Error::of(value * part) }, &Unit::Count);
            let digits = text.trim_start_matches('±').trim_end_matches('%');
            match digits.parse::<f64>() {
                // Half of the last digit.
                Ok(percent) => prop_assert!((percent - part * 100.0).abs() <= if percent >= 100.0 { 0.5 } else { 0.05 } + 1e-6, "{text}"),
                Err(_) if digits == "<0.1" => prop_assert!(part < 0.000_500_1),
                Err(_) => prop_assert!(digits == ">999" && part > 9.994_999),
            }
        }

        #[test]
        fn a_part_is_never_written_as_all(part in 0.0f64..1.0) {
            prop_assert!(!share(part).starts_with("100") && !whole_share(part).starts_with("100"));
        }
    }
}
