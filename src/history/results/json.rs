//! Reads and writes JSON as Python does, with the bare words NaN and Infinity.
//!
//! Strict JSON has no such numbers. While a text passes through `serde_json`, they are strings that begin with a private
//! character, so that no string of a file is taken for one of them.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

/// Each bare word, and the string that stands for it. A word that ends with another one comes first.
const WORDS: [(&str, &str); 3] =
    [("NaN", "\"\u{e000}NaN\""), ("-Infinity", "\"\u{e000}-Infinity\""), ("Infinity", "\"\u{e000}Infinity\"")];

/// The text with strings in place of bare words.
pub(super) fn strict(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| b"\"NI".contains(byte))) {
        at += found;
        if bytes[at] == b'"' {
            at = end_of_string(bytes, at + 1);
            continue;
        }
        let has_sign = bytes[at] == b'I' && at > copied && bytes[at - 1] == b'-';
        let begin = if has_sign { at - 1 } else { at };
        match WORDS.iter().find(|(word, _)| bytes[begin..].starts_with(word.as_bytes())) {
            Some((word, stand_in)) => {
                out += &text[copied..begin];
                out += stand_in;
                at = begin + word.len();
                copied = at;
            }
            None => at += 1,
        }
    }
    if copied == 0 { Cow::Borrowed(text) } else { Cow::Owned(out + &text[copied..]) }
}

/// The place after the quote that ends a string.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| b"\"\\".contains(byte))) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        // A backslash and what it escapes belong together.
        at += 2;
    }
    bytes.len()
}

/// The text with bare words again.
pub(super) fn bare(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (word, stand_in)| text.replace(stand_in, word))
}

/// A number of a file of results.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ResultNumber {
    /// What was measured; statistics may be infinite.
    Number(f64),
    /// `null`: the benchmark failed, or nothing was measured.
    #[default]
    Missing,
    /// `NaN`: the benchmark was skipped.
    Skipped,
}

impl ResultNumber {
    /// The number, if there is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Missing | Self::Skipped => None,
        }
    }
}

impl Serialize for ResultNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Missing => serializer.serialize_unit(),
            Self::Skipped => serializer.serialize_str("\u{e000}NaN"),
            Self::Number(number) if number.is_finite() => serializer.serialize_f64(number),
            Self::Number(number) if number.is_nan() => serializer.serialize_str("\u{e000}NaN"),
            Self::Number(number) if number > 0.0 => serializer.serialize_str("\u{e000}Infinity"),
            Self::Number(_) => serializer.serialize_str("\u{e000}-Infinity"),
        }
    }
}

impl<'de> Deserialize<'de> for ResultNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ResultNumberVisitor)
    }
}

struct ResultNumberVisitor;

impl Visitor<'_> for ResultNumberVisitor {
    type Value = ResultNumber;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, null or NaN")
    }

    fn visit_unit<E: Error>(self) -> Result<ResultNumber, E> {
        Ok(ResultNumber::Missing)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<ResultNumber, E> {
        Ok(ResultNumber::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<ResultNumber, E> {
        Ok(ResultNumber::Number(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<ResultNumber, E> {
        Ok(ResultNumber::Number(number as f64))
    }

    // A benchmark that tracks a yes or no has 1 or 0.
    fn visit_bool<E: Error>(self, is_true: bool) -> Result<ResultNumber, E> {
        Ok(ResultNumber::Number(f64::from(u8::from(is_true))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ResultNumber, E> {
        match text {
            "\u{e000}NaN" => Ok(ResultNumber::Skipped),
            "\u{e000}Infinity" => Ok(ResultNumber::Number(f64::INFINITY)),
            "\u{e000}-Infinity" => Ok(ResultNumber::Number(f64::NEG_INFINITY)),
            _ => Err(E::invalid_type(serde::de::Unexpected::Str(text), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Vec<ResultNumber> {
        serde_json::from_str(&strict(text)).unwrap()
    }

    #[test]
    fn bare_words_are_numbers() {
        use ResultNumber::{Missing, Number, Skipped};
        let numbers = read("[1, -2.5, null, NaN, -Infinity, Infinity, true]");
        let infinite = [Number(f64::NEG_INFINITY), Number(f64::INFINITY)];
        assert_eq!(numbers[..4], [Number(1.0), Number(-2.5), Missing, Skipped]);
        assert_eq!(numbers[4..], [infinite[0], infinite[1], Number(1.0)]);
        let text = bare(&serde_json::to_string(&numbers).unwrap());
        assert_eq!(text, "[1.0,-2.5,null,NaN,-Infinity,Infinity,1.0]");
    }

    #[test]
    fn words_in_strings_are_strings() {
        let text = r#"{"NaN": "a \" NaN \\", "b": NaN}"#;
        assert_eq!(strict(text), "{\"NaN\": \"a \\\" NaN \\\\\", \"b\": \"\u{e000}NaN\"}");
        assert!(serde_json::from_str::<Vec<ResultNumber>>(r#"["NaN"]"#).is_err());
        assert_eq!(strict("\"\\"), "\"\\", "a text that is cut");
        assert_eq!(strict(""), "");
    }

    proptest! {
        #[test]
        fn what_is_strict_stays_as_it_is(text in any::<String>()) {
            let json = serde_json::to_string(&[&text]).unwrap();
            prop_assert_eq!(strict(&json), json.as_str());
            drop(strict(&text));
        }

        #[test]
        fn numbers_come_back(number in any::<f64>().prop_filter("a number", |number| !number.is_nan())) {
            let text = bare(&serde_json::to_string(&[ResultNumber::Number(number)]).unwrap());
            prop_assert_eq!(read(&text), vec![ResultNumber::Number(number)]);
        }
    }
}
