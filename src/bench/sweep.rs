//! Plans a sweep: which commands are run with which sizes, how often, and in which order.

use std::collections::BTreeMap;

use crate::names::quoted;

/// A size and the values that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeValues {
    /// The name, which stands in braces in the command.
    pub name: String,
    /// The values, each with how it is written in the command.
    pub values: Vec<SizeValue>,
}

/// A value of a size.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeValue {
    /// The number.
    pub number: f64,
    /// The text that replaces the name: `1e3` is written 1000, as few programs read powers of ten.
    pub text: String,
}

/// The most values that a size may have.
const MOST_VALUES: usize = 10_000;

impl SizeValues {
    /// Reads `n=1000,2000`, `n=log:1..1e6:20` or `n=lin:0..100:11`: values, or so many between two, evenly spread by their
    /// logarithms or by themselves, as whole numbers where both ends are.
    ///
    /// # Errors
    /// Returns what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, list) = text.split_once('=').ok_or("expected SIZE=VALUES, such as n=1e3,1e4")?;
        let name = name.trim();
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("{} is no name of a size: use letters, digits and '_'", quoted(name)));
        }
        let numbers = match (list.strip_prefix("log:"), list.strip_prefix("lin:")) {
            (Some(range), _) => spread(range, |low, high, part| low * (high / low).powf(part), true)?,
            (_, Some(range)) => spread(range, |low, high, part| low + (high - low) * part, false)?,
            _ => list.split(',').map(|value| number(value.trim())).collect::<Result<Vec<f64>, _>>()?,
        };
        let value = |number: f64| SizeValue { number, text: number.to_string() };
        Ok(Self { name: name.to_owned(), values: numbers.into_iter().map(value).collect() })
    }
}

fn number(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("{} is no number", quoted(text)))
}

/// `LOW..HIGH:COUNT`.
fn spread(range: &str, at: impl Fn(f64, f64, f64) -> f64, is_log: bool) -> Result<Vec<f64>, String> {
    let parts = range.split_once(':').and_then(|(ends, count)| Some((ends.split_once("..")?, count)));
    let ((low, high), count) = parts.ok_or("expected LOW..HIGH:COUNT, such as log:1..1e6:20")?;
    let (low, high) = (number(low)?, number(high)?);
    let count: usize =
        count.parse().ok().filter(|count| (2..=MOST_VALUES).contains(count)).ok_or("COUNT is from 2 to 10000")?;
    if low >= high || is_log && low <= 0.0 {
        return Err(if is_log { "expected 0 < LOW < HIGH".into() } else { "expected LOW < HIGH".into() });
    }
    let is_whole = low.fract() == 0.0 && high.fract() == 0.0;
    let value = |place: usize| {
        let value = at(low, high, place as f64 / (count - 1) as f64);
        if is_whole { value.round() } else { value }
    };
    let mut values: Vec<f64> = (0..count).map(value).collect();
    values.dedup();
    Ok(values)
}

/// A set of sizes.
pub type Sizes = BTreeMap<String, SizeValue>;

/// Each value of each size with each of the others, the first size slowest.
pub fn points(sizes: &[SizeValues]) -> Vec<Sizes> {
    sizes.iter().fold(vec![Sizes::new()], |before, size| {
        let with = |one: &Sizes, value: &SizeValue| {
            one.clone().into_iter().chain([(size.name.clone(), value.clone())]).collect()
        };
        before.iter().flat_map(|one| size.values.iter().map(|value| with(one, value)).collect::<Vec<_>>()).collect()
    })
}

/// A word of a command with the sizes in place of their names in braces; other braces stay.
pub fn filled(word: &str, sizes: &Sizes) -> String {
    sizes.iter().fold(word.to_owned(), |word, (name, value)| word.replace(&format!("{{{name}}}"), &value.text))
}

/// The places of points in the order of runs: each of them `repeats` times, shuffled anew for each repetition, so that a
/// drift of the machine is in all points alike.
pub fn order(points: usize, repeats: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut next = move || {
        // Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014): SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let mut all = Vec::with_capacity(points * repeats);
    for _ in 0..repeats {
        let mut round: Vec<usize> = (0..points).collect();
        for place in (1..points).rev() {
            round.swap(place, (next() % (place as u64 + 1)) as usize);
        }
        all.append(&mut round);
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn numbers(text: &str) -> Vec<f64> {
        SizeValues::parse(text).unwrap().values.iter().map(|value| value.number).collect()
    }

    #[test]
    fn values_are_listed_or_spread() {
        assert_eq!(numbers("n=1e3,20"), [1000.0, 20.0]);
        assert_eq!(numbers("n=log:1..1000:4"), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(numbers("n=log:1..4:9"), [1.0, 2.0, 3.0, 4.0], "whole numbers, each once");
        assert_eq!(numbers("n=lin:0..0.5:3"), [0.0, 0.25, 0.5]);
        for wrong in ["n", "n=", "=1", "2n=1", "n=log:0..5:3", "n=log:1..5", "n=lin:5..1:3", "n=1,x", "n=log:1..2:1"] {
            assert!(SizeValues::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn commands_are_filled_with_plain_numbers() {
        let sizes = [SizeValues::parse("n=1e6").unwrap(), SizeValues::parse("m=0.5").unwrap()];
        let points = points(&sizes);
        assert_eq!(points.len(), 1);
        assert_eq!(filled("--size={n} {m} {k} {{n}", &points[0]), "--size=1000000 0.5 {k} {1000000");
        assert_eq!(super::points(&[]).len(), 1, "without sizes there is one point");
    }

    #[test]
    fn each_repetition_runs_each_point_once_and_the_seed_alone_decides() {
        let order = super::order(5, 3, 7);
        for round in order.chunks(5) {
            let mut round = round.to_vec();
            round.sort_unstable();
            assert_eq!(round, [0, 1, 2, 3, 4]);
        }
        assert_eq!(order, super::order(5, 3, 7));
        assert_ne!(order, super::order(5, 3, 8));
        assert!(super::order(0, 3, 1).is_empty());
    }
}
