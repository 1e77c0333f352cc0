//! Formats numbers as short text with their unit.

use crate::events::Unit;
use crate::words::shown;

const UP: [(f64, &str); 5] = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];

/// A number with three significant digits, four below 10,000, and an SI prefix: `1.93M`, `412k`,
/// `83`, `0.25`.
pub fn si(value: f64) -> String {
    if !value.is_finite() {
        return "—".into();
    }
    let size = value.abs();
    // 999.6k would round to 1000k: the next prefix takes over where rounding would cross.
    for (unit, prefix) in UP {
        if size >= unit * 0.9995 && size >= 999.5 {
            return format!("{}{prefix}", significant(value / unit));
        }
    }
    if size >= 1e16 { format!("{value:.2e}") } else { significant(value) }
}

/// Three significant digits, without zeros that say nothing: `1.5`, `42.1`, `0.001`.
fn significant(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 {
        return "0".into();
    }
    if !(0.0005..1e4).contains(&size) {
        return format!("{value:.1e}");
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
    format!("{value:.decimals$}")
}

/// A time in nanoseconds with the unit that fits: `1.50 s`, `20.6 ms`, `310 ns`.
pub fn time(nanoseconds: f64) -> String {
    if !nanoseconds.is_finite() {
        return "—".into();
    }
    let (unit, name) = match nanoseconds.abs() {
        size if size >= 0.9995e9 => (1e9, "s"),
        size if size >= 0.9995e6 => (1e6, "ms"),
        size if size >= 0.9995e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    match nanoseconds {
        0.0 => "0 s".into(),
        _ => format!("{} {name}", three_digits(nanoseconds / unit)),
    }
}

/// A number of counts of an event, in its unit.
pub fn amount(counts: f64, unit: &Unit) -> String {
    match unit {
        Unit::Count => si(counts),
        Unit::Nanoseconds => time(counts),
        Unit::Scaled { scale, name } => format!("{} {}", si(counts * scale), shown(name)),
    }
}

/// A part of one in percent with one decimal: `67.0%`.
pub fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

/// A relative half width: `±1.8%`, `±<0.1%` and `±>999%` past the ends.
pub fn plus_minus(relative: f64) -> String {
    let percent = relative * 100.0;
    match percent {
        _ if !percent.is_finite() => "±?".into(),
        _ if percent >= 999.5 => "±>999%".into(),
        _ if percent >= 99.95 => format!("±{percent:.0}%"),
        _ if percent < 0.05 => "±<0.1%".into(),
        _ => format!("±{percent:.1}%"),
    }
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            (-38_100.0, "-38.1k"),
            (999_600.0, "1.00M"),
            (2.4e14, "240T"),
            (f64::NAN, "—"),
            (0.000_04, "4.0e-5"),
            (1e18, "1000P"),
        ];
        for (value, text) in cases {
            assert_eq!(si(value), text, "{value}");
        }
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
        ];
        for (value, text) in cases {
            assert_eq!(time(value), text, "{value}");
        }
    }

    #[test]
    fn errors_and_groups_by_hand() {
        assert_eq!(plus_minus(0.018), "±1.8%");
        assert_eq!(plus_minus(1.5), "±150%");
        assert_eq!(plus_minus(0.0004), "±<0.1%");
        assert_eq!(plus_minus(42.0), "±>999%");
        assert_eq!(plus_minus(f64::NAN), "±?");
        assert_eq!([grouped(0), grouped(999), grouped(1_931_204)], ["0", "999", "1,931,204"]);
    }

    #[test]
    fn numbers_for_programs_by_hand() {
        let texts = [plain(1_931_204.0, 0), plain(-0.25, 2), plain(1.5e47, 0), plain(-2e17, 3)];
        assert_eq!(texts, ["1931204", "-0.25", "1.5e47", "-2e17"]);
        assert_eq!([0.0, 0.1, 1.5e47, 2e-9].map(shortest), ["0", "0.1", "1.5e47", "2e-9"]);
    }

    proptest! {
        #[test]
        fn numbers_for_programs_are_short_and_read_back(value in prop::num::f64::NORMAL) {
            let longest = 25;
            prop_assert!(plain(value, 3).len() <= longest && shortest(value).len() <= longest, "{}", shortest(value));
            prop_assert_eq!(shortest(value).parse(), Ok(value));
        }

        #[test]
        fn numbers_stay_short(value in prop::num::f64::ANY) {
            prop_assert!(si(value).chars().count() <= 9, "{}", si(value));
        }
    }
}
