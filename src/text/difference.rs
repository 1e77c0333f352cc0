//! Writes means and changes with as many digits as they are compared by.

use crate::compare::DIGITS;
use crate::events::Unit;
use crate::names::shown;
use crate::number::times;

/// Changes from so many percent on have a factor.
const MOST: f64 = 999.5;

/// Prefixes by powers of a thousand, from the first.
const PREFIXES: [&str; 5] = ["k", "M", "G", "T", "P"];
const TIMES: [&str; 4] = ["ns", "µs", "ms", "s"];

/// A mean with [`DIGITS`] significant digits, in the unit of its event: `1.9312M`, `83`, `20.600 ms`. Means that are
/// written the same are equal to whoever compares them.
pub fn mean(counts: f64, unit: &Unit) -> String {
    match unit {
        Unit::Count => count(counts),
        Unit::Nanoseconds => time(counts),
        Unit::Scaled { scale, name } => format!("{} {}", count(counts * scale), shown(name)),
    }
}

/// A number rounded to so many digits, and the power of ten of the first.
fn rounded(value: f64) -> (f64, i32) {
    let text = format!("{value:.*e}", DIGITS - 1);
    let exponent = text.rsplit_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    (text.parse().unwrap_or(value), exponent)
}

fn count(value: f64) -> String {
    let (number, exponent) = rounded(value);
    match exponent {
        _ if !value.is_finite() => "—".into(),
        _ if number == 0.0 => "0".into(),
        -3..=4 => digits(number, exponent),
        5..=17 => {
            let group = exponent / 3;
            let prefix = PREFIXES.get(group as usize - 1).copied().unwrap_or_default();
            format!("{}{prefix}", digits(number / 10_f64.powi(3 * group), exponent - 3 * group))
        }
        _ => format!("{value:.*e}", DIGITS - 1),
    }
}

fn time(nanoseconds: f64) -> String {
    let (number, exponent) = rounded(nanoseconds);
    if !nanoseconds.is_finite() {
        return "—".into();
    }
    let group = if number == 0.0 { 3 } else { (exponent / 3).clamp(0, 3) };
    format!("{} {}", digits(number / 10_f64.powi(3 * group), exponent - 3 * group), TIMES[group as usize])
}

/// A number whose first digit has this power of ten; a whole one without zeros behind its point.
fn digits(number: f64, exponent: i32) -> String {
    let decimals = usize::try_from(DIGITS as i32 - 1 - exponent).unwrap_or(0);
    let text = format!("{number:.decimals$}");
    let is_whole = text.contains('.') && text.trim_end_matches('0').ends_with('.');
    minus(if is_whole { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
}

/// A change as a part of one, with its sign and at least one digit that isn't 0: `+19.9%`, `−0.034%`, `0%`. What became
/// more than ten times as large has the factor: `×13`.
pub fn change(part: f64) -> String {
    let percent = part * 100.0;
    match percent.abs() {
        size if size.is_nan() => "?".into(),
        0.0 => "0%".into(),
        _ if percent >= MOST => times(1.0 + part),
        size if size >= MOST => "<−999%".into(),
        size if size < 0.0005 => if percent < 0.0 { "−<0.001%" } else { "+<0.001%" }.into(),
        size => minus(&format!("{percent:+.*}%", decimals(size))),
    }
}

/// The two ends of a change: `+17.1..+22.6%`; `−50%..×57` where one has a factor.
pub fn interval((low, high): (f64, f64)) -> String {
    let (low, high) = (low * 100.0, high * 100.0);
    let finest = low.abs().min(high.abs());
    // Neither end is to look like 0, which it isn't.
    let decimals = decimals(high - low).max(if finest < 0.05 { decimals(finest) } else { 0 });
    let decimals = match low.abs().max(high.abs()) {
        largest if largest >= 99.95 => 0,
        largest if largest >= 9.9995 => decimals.min(2),
        _ => decimals,
    };
    let factor = |percent: f64| times(1.0 + percent / 100.0);
    match (low >= MOST, high >= MOST) {
        (true, _) => format!("{}..{}", factor(low), factor(high)),
        (false, true) => minus(&format!("{low:+.decimals$}%..{}", factor(high))),
        (false, false) => minus(&format!("{low:+.decimals$}..{high:+.decimals$}%")),
    }
}

fn decimals(percent: f64) -> usize {
    match percent {
        _ if percent >= 99.95 => 0,
        _ if percent >= 1.0 => 1,
        _ if percent >= 0.1 => 2,
        _ => 3,
    }
}

/// The sign as it is printed.
fn minus(text: &str) -> String {
    text.replace('-', "−")
}

/// A p-value: `<.001`, `0.025`, `0.31`.
pub fn p_value(p: f64) -> String {
    match p {
        _ if p < 0.001 => "<.001".into(),
        _ if p < 0.0995 => format!("{p:.3}"),
        _ => format!("{p:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn means_by_hand() {
        let counts = [
            (0.0, "0"),
            (83.0, "83"),
            (312.4, "312.40"),
            (12_345.0, "12345"),
            (99_999.6, "100k"),
            (123_456.0, "123.46k"),
            (1_931_204.0, "1.9312M"),
            (1_003_200_000.0, "1.0032G"),
            (2e6, "2M"),
            (0.25, "0.25000"),
            (0.001_234_56, "0.0012346"),
            (0.000_012, "1.2000e-5"),
            (4e20, "4.0000e20"),
            (-38_100.0, "−38100"),
            (f64::NAN, "—"),
        ];
        for (value, text) in counts {
            assert_eq!(count(value), text, "{value}");
        }
        let times = [(0.0, "0 s"), (310.0, "310 ns"), (20.6e6, "20.600 ms"), (1.5e9, "1.5000 s"), (999_999.7, "1 ms")];
        for (value, text) in times {
            assert_eq!(time(value), text, "{value}");
        }
    }

    #[test]
    fn changes_by_hand() {
        let changes = [
            (0.199, "+19.9%"),
            (-0.272, "−27.2%"),
            (0.0034, "+0.34%"),
            (-0.000_131, "−0.013%"),
            (0.0, "0%"),
            (1.5, "+150%"),
            (12.0, "×13"),
            (1e6, "×1.00M"),
            (1e-7, "+<0.001%"),
        ];
        for (part, text) in changes {
            assert_eq!(change(part), text, "{part}");
        }
        let intervals = [
            ((0.171, 0.226), "+17.1..+22.6%"),
            ((0.0021, 0.0034), "+0.21..+0.34%"),
            ((0.0004, 0.05), "+0.040..+5.000%"),
            ((-0.152_14, -0.151_96), "−15.21..−15.20%"),
            ((-1.0, 56.0), "−100%..×57"),
            ((12.0, 13.0), "×13..×14"),
        ];
        for (ends, text) in intervals {
            assert_eq!(interval(ends), text, "{ends:?}");
        }
        assert_eq!([0.0001, 0.025, 0.31, 1.0].map(p_value), ["<.001", "0.025", "0.31", "1.00"]);
    }

    proptest! {
        #[test]
        fn what_looks_the_same_is_the_same_to_as_many_digits(value in 1e-3f64..1e17, factor in 0.9999f64..1.0001) {
            let (one, other) = (value, value * factor);
            let same = format!("{one:.*e}", DIGITS - 1) == format!("{other:.*e}", DIGITS - 1);
            prop_assert_eq!(count(one) == count(other), same);
            prop_assert_eq!(time(one) == time(other), same);
            prop_assert!(count(value).chars().count() <= 10 && time(value).chars().count() <= 12);
        }
    }
}
