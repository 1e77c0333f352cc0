//! Reads the parameters of a sweep: sizes, which are numbers, and words, which name what is compared.

use crate::names::quoted;

/// A name that stands in braces in commands, and what replaces it there.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// What replaces it.
    pub values: ParameterValues,
}

/// What a parameter is replaced by.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValues {
    /// Numbers: sizes, over which a cost model is fitted.
    Sizes(Vec<SizeValue>),
    /// Words: each makes a command of its own, which is compared with the others.
    Words(Vec<String>),
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

/// The largest size: beyond it the command would get another whole number than was written.
const MOST_EXACT: f64 = ((1_u64 << 53) - 1) as f64;

impl Parameter {
    /// Reads `n=1000,2000`, `n=log:1..1e6:20` or `n=lin:0..100:11`: values, or so many between two, evenly spread by their
    /// logarithms or by themselves, as whole numbers where both ends are; and `algo=quick,merge`, which are words.
    ///
    /// # Errors
    /// Returns what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, list) = text.split_once('=').ok_or("expected NAME=VALUES, such as n=1e3,1e4")?;
        let name = name.trim();
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_name) || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("{} is no name of a parameter: use letters, digits and '_'", quoted(name)));
        }
        let values = match (list.strip_prefix("log:"), list.strip_prefix("lin:")) {
            (Some(range), _) => sizes(spread(range, |low, high, part| low * (high / low).powf(part), true)?)?,
            (_, Some(range)) => sizes(spread(range, |low, high, part| low + (high - low) * part, false)?)?,
            _ => listed(list)?,
        };
        Ok(Self { name: name.to_owned(), values })
    }

    /// The sizes, if it has any.
    pub fn sizes(&self) -> Option<&[SizeValue]> {
        if let ParameterValues::Sizes(values) = &self.values { Some(values) } else { None }
    }

    /// The words, if it has any.
    pub fn words(&self) -> Option<&[String]> {
        if let ParameterValues::Words(words) = &self.values { Some(words) } else { None }
    }
}

/// Values between commas: all of them numbers, or none.
fn listed(list: &str) -> Result<ParameterValues, String> {
    let words: Vec<&str> = list.split(',').map(str::trim).collect();
    if words.iter().any(|word| word.parse::<f64>().is_ok()) {
        return sizes(words.into_iter().map(number).collect::<Result<_, _>>()?);
    }
    if words.contains(&"") {
        return Err("there is nothing between commas, or behind '='".into());
    }
    if let [word] = words[..]
        && is_range(word)
    {
        let range = word.split(':').next().unwrap_or(word);
        return Err(format!("how values are spread is missing: lin:{range}:8 or log:{range}:8 gives eight"));
    }
    no_twice(&words, |word| quoted(word))?;
    Ok(ParameterValues::Words(words.into_iter().map(str::to_owned).collect()))
}

/// Whether this is two numbers with dots between them, and perhaps how many values are wanted.
fn is_range(word: &str) -> bool {
    let is_number = |text: &str| any_number(text).is_some();
    word.split_once("..").is_some_and(|(low, high)| is_number(low) && high.split(':').all(is_number))
}

fn sizes(numbers: Vec<f64>) -> Result<ParameterValues, String> {
    no_twice(&numbers, f64::to_string)?;
    let value = |number: f64| SizeValue { number, text: number.to_string() };
    Ok(ParameterValues::Sizes(numbers.into_iter().map(value).collect()))
}

fn no_twice<T: PartialEq>(all: &[T], shown: impl Fn(&T) -> String) -> Result<(), String> {
    let twice = all.iter().enumerate().find(|(place, one)| all[..*place].contains(one));
    twice.map_or(Ok(()), |(_, one)| Err(format!("{} is given twice", shown(one))))
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 = any_number(text).ok_or_else(|| format!("{} is no number", quoted(text)))?;
    if number.abs() > MOST_EXACT {
        return Err(format!("{} is beyond {MOST_EXACT}, up to which whole numbers are exact", quoted(text)));
    }
    Ok(number)
}

fn any_number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn numbers(text: &str) -> Vec<f64> {
        Parameter::parse(text).unwrap().sizes().unwrap().iter().map(|value| value.number).collect()
    }

    #[test]
    fn sizes_are_listed_or_spread() {
        assert_eq!(numbers("n=1e3,20"), [1000.0, 20.0]);
        assert_eq!(numbers("n=log:1..1000:4"), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(numbers("n=log:1..4:9"), [1.0, 2.0, 3.0, 4.0], "whole numbers, each once");
        assert_eq!(numbers("n=lin:0..0.5:3"), [0.0, 0.25, 0.5]);
    }

    #[test]
    fn words_are_what_is_no_number() {
        assert_eq!(Parameter::parse("algo=quick, merge").unwrap().words().unwrap(), ["quick", "merge"]);
        assert_eq!(Parameter::parse("algo=x").unwrap().sizes(), None);
        assert_eq!(Parameter::parse("n=1").unwrap().words(), None);
    }

    #[test]
    fn sizes_that_would_be_rounded_are_refused() {
        assert_eq!(numbers("n=9007199254740991"), [9_007_199_254_740_991.0]);
        for text in ["n=1,9007199254740993", "n=-1e16", "n=lin:0..1e17:3"] {
            let error = Parameter::parse(text).unwrap_err();
            assert!(error.ends_with("is beyond 9007199254740991, up to which whole numbers are exact"), "{error}");
        }
    }

    #[test]
    fn wrong_parameters_are_refused() {
        for wrong in ["n", "n=", "=1", "2n=1", "n=log:0..5:3", "n=log:1..5", "n=lin:5..1:3", "n=1,x", "n=log:1..2:1"] {
            assert!(Parameter::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Parameter::parse("n=10,1e1").unwrap_err(), "10 is given twice");
        assert_eq!(Parameter::parse("a=x,y,x").unwrap_err(), "'x' is given twice");
        assert_eq!(Parameter::parse("a=x,,y").unwrap_err(), "there is nothing between commas, or behind '='");
        for (range, ends) in [("1..8", "1..8"), ("1..1e6:20", "1..1e6")] {
            let expected = format!("how values are spread is missing: lin:{ends}:8 or log:{ends}:8 gives eight");
            assert_eq!(Parameter::parse(&format!("n={range}")).unwrap_err(), expected);
        }
        assert!(Parameter::parse("commits=v1..v2").is_ok(), "no range of numbers");
        assert_eq!(Parameter::parse("n=nan").unwrap_err(), "'nan' is no number");
    }
}
