//! Reads a series of numbers from text: one value after the other, or lines of an index, a value and a weight.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use crate::names::quoted;

/// A series as a file has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesTable {
    /// What each value belongs to, such as a commit; empty if the file says nothing of it.
    pub indexes: Vec<String>,
    /// The values; `None` where one is missing.
    pub values: Vec<Option<f64>>,
    /// How much each counts; empty if the file has no weights. `None` where one is missing.
    pub weights: Vec<Option<f64>>,
}

/// Why a text is no series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesFault {
    /// The line, from 1; `None` if it's none of one line.
    pub line: Option<usize>,
    /// What is wrong.
    pub kind: SeriesFaultKind,
}

/// What is wrong with a line, or with all of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeriesFaultKind {
    /// There are no values.
    Empty,
    /// This is no number.
    NoNumber(String),
    /// This is a number, but not a finite one.
    NotFinite(String),
    /// A weight stands without a value.
    NoValue,
    /// A weight isn't above 0.
    NoWeight(String),
    /// The line has more fields than there are.
    TooMany(usize),
    /// The line has another number of fields than the first.
    Fields {
        /// How many it has.
        found: usize,
        /// How many the first has.
        first: usize,
    },
}

impl Display for SeriesFault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        match &self.kind {
            SeriesFaultKind::Empty => {
                write!(f, "there are no values: give a number a line, or lines of index,value or index,value,weight")
            }
            SeriesFaultKind::NoNumber(word) => {
                write!(f, "{} is no number: leave the field empty if the value is missing", quoted(word))
            }
            SeriesFaultKind::NotFinite(word) => {
                write!(
                    f,
                    "{} can't be compared with numbers: leave the field empty if the value is missing",
                    quoted(word)
                )
            }
            SeriesFaultKind::NoValue => {
                write!(f, "there is a weight without a value: give the value, or leave both fields empty")
            }
            SeriesFaultKind::NoWeight(word) => {
                write!(
                    f,
                    "the weight {} isn't above 0: leave both fields empty if the value doesn't count",
                    quoted(word)
                )
            }
            SeriesFaultKind::TooMany(found) => {
                write!(f, "it has {found} fields: give a number a line, or index,value or index,value,weight")
            }
            SeriesFaultKind::Fields { found, first } => {
                write!(
                    f,
                    "it has {found} fields, and the first line has {first}: give all lines the same, and leave a field empty where something is missing"
                )
            }
        }
    }
}

impl Error for SeriesFault {}

impl SeriesTable {
    /// Reads a text.
    ///
    /// Lines with commas have an index and a value, and may have a weight; an empty field is missing. So have lines of two or three
    /// words, if all lines have as many. In other lines each word is a value. The words null, NaN, None and N/A are missing values, too. A first line whose value is no number is a heading. Empty lines, and those that begin with #, say
    /// nothing.
    ///
    /// # Errors
    ///
    /// What is no series, with its line.
    pub fn parse(text: &str) -> Result<Self, SeriesFault> {
        let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let separator = Separator::of(lines.clone().map(|(_, line)| line));
        let mut lines = lines.peekable();
        let of_heading = lines.next_if(|(_, first)| is_heading(first, separator));
        let first =
            if separator == Separator::Space { lines.peek().copied() } else { of_heading.or(lines.peek().copied()) };
        let first = first.map_or(0, |(_, first)| separator.fields(first).count());
        let mut table = Self::default();
        for (at, line) in lines {
            table.read_line(line, separator, first).map_err(|kind| SeriesFault { line: Some(at + 1), kind })?;
        }
        if table.values.iter().all(Option::is_none) {
            return Err(SeriesFault { line: None, kind: SeriesFaultKind::Empty });
        }
        Ok(table)
    }

    fn read_line(&mut self, line: &str, separator: Separator, first: usize) -> Result<(), SeriesFaultKind> {
        let found = separator.fields(line).count();
        if found > 3 {
            return Err(SeriesFaultKind::TooMany(found));
        }
        if found != first {
            return Err(SeriesFaultKind::Fields { found, first });
        }
        if found == 1 {
            let values: Result<Vec<_>, _> = line.split_whitespace().map(number).collect();
            self.values.extend(values?);
            return Ok(());
        }
        let mut fields = separator.fields(line);
        let index = fields.next().unwrap_or_default();
        let value = number(fields.next().unwrap_or_default())?;
        if let Some(weight) = fields.next() {
            let word = weight;
            let weight = number(weight)?;
            if weight.is_some_and(|weight| weight <= 0.0) {
                return Err(SeriesFaultKind::NoWeight(word.to_owned()));
            }
            if weight.is_some() && value.is_none() {
                return Err(SeriesFaultKind::NoValue);
            }
            self.weights.push(weight);
        }
        self.indexes.push(index.to_owned());
        self.values.push(value);
        Ok(())
    }

    /// The weights, if there are any.
    pub fn weights(&self) -> Option<&[Option<f64>]> {
        (!self.weights.is_empty()).then_some(&self.weights[..])
    }
}

/// What stands between the fields of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Separator {
    Comma,
    /// Blanks or tabs.
    Space,
}

impl Separator {
    fn of<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        // A heading may have more words than there are columns.
        let has_number =
            |line: &&str| line.split_whitespace().any(|word| word.parse::<f64>().is_ok() || is_missing(word));
        let lines = lines.skip_while(|line| !line.contains(',') && !has_number(line));
        let words: Vec<usize> =
            lines.map(|line| if line.contains(',') { 0 } else { Self::Space.fields(line).count() }).collect();
        let are_fields = matches!(words[..], [first @ 2..=3, _, ..] if words.iter().all(|&count| count == first));
        if are_fields { Self::Space } else { Self::Comma }
    }

    fn fields(self, line: &str) -> impl Iterator<Item = &str> {
        let (mut commas, mut words) = (line.split(',').map(str::trim), line.split_whitespace());
        std::iter::from_fn(move || match self {
            Self::Comma => commas.next(),
            Self::Space => words.next(),
        })
    }
}

/// Whether a first line names the columns.
fn is_heading(line: &str, separator: Separator) -> bool {
    let value = separator.fields(line).nth(1).unwrap_or(line);
    let is_missing = value.split_whitespace().next().is_some_and(is_missing);
    value.parse::<f64>().is_err() && value.starts_with(|c: char| c.is_alphabetic()) && !is_missing
}

/// Whether a word stands for a value that is missing, as other tools write it.
fn is_missing(word: &str) -> bool {
    ["", "null", "nan", "none", "n/a"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn number(word: &str) -> Result<Option<f64>, SeriesFaultKind> {
    if is_missing(word) {
        return Ok(None);
    }
    match word.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Some(number)),
        Ok(_) => Err(SeriesFaultKind::NotFinite(word.to_owned())),
        Err(_) => Err(SeriesFaultKind::NoNumber(word.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_lines_and_headings() {
        let values = |text: &str| SeriesTable::parse(text).map(|table| table.values);
        assert_eq!(values("1\n\n# two\n2 3\n"), Ok(vec![Some(1.0), Some(2.0), Some(3.0)]));
        assert_eq!(values("commit,time\na1,4\nb2,\n"), Ok(vec![Some(4.0), None]));
        for word in ["null", "NaN", "None", "N/A"] {
            assert_eq!(values(&format!("{word}\n1\n{word}\n2\n")), Ok(vec![None, Some(1.0), None, Some(2.0)]));
            assert_eq!(values(&format!("{word} 1\n")), Ok(vec![None, Some(1.0)]));
            assert_eq!(values(&format!("a,{word}\nb,1\n")), Ok(vec![None, Some(1.0)]));
        }
        assert_eq!(values("nothing\n1\n"), Ok(vec![Some(1.0)]), "a heading");
        // Two words in each line are an index and a value, three in one line are values.
        assert_eq!(values("commit time\na1\t4\nb2   nan\n"), Ok(vec![Some(4.0), None]));
        assert_eq!(values("commit time in ms\na1 4\nb2 5\n"), Ok(vec![Some(4.0), Some(5.0)]));
        assert_eq!(values("a1 4 0.5\nb2 5 2\n"), Ok(vec![Some(4.0), Some(5.0)]));
        assert_eq!(values("1 2 3\n"), Ok(vec![Some(1.0), Some(2.0), Some(3.0)]));
        assert_eq!(values("1 2\n3 4\n5\n"), Ok((1..6).map(|at| Some(f64::from(at))).collect()));
        let table = SeriesTable::parse("0,4,1\n1,5,\n").unwrap_or_default();
        assert_eq!(table.weights(), Some(&[Some(1.0), None][..]));
        assert_eq!(table.indexes, ["0", "1"]);
    }

    #[test]
    fn faults_say_where_and_what_to_do() {
        let fault = |text: &str| SeriesTable::parse(text).map_err(|fault| fault.to_string()).err().unwrap_or_default();
        let faults = [
            ("", "there are no values"),
            ("time\n", "there are no values"),
            ("1\ntwo\n", "line 2: 'two' is no number: leave the field empty"),
            ("0,1\n1,inf\n", "line 2: 'inf' can't be compared"),
            ("0,1,1\n1,,2\n", "line 2: there is a weight without a value"),
            ("0,1\n1,2,3\n", "line 2: it has 3 fields, and the first line has 2"),
            ("1,2,3,4\n", "line 1: it has 4 fields"),
            ("a 1\nb two\n", "line 2: 'two' is no number"),
            ("0,\n1,\n", "there are no values"),
            ("null\nNaN\n", "there are no values"),
        ];
        for (text, words) in faults {
            assert!(fault(text).contains(words), "{text:?}: {}", fault(text));
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(values in prop::collection::vec(-1e9f64..1e9, 1..20)) {
            let text: String = values.iter().map(|value| format!("{value}\n")).collect();
            let found = SeriesTable::parse(&text).map(|table| table.values);
            prop_assert_eq!(found, Ok(values.into_iter().map(Some).collect()));
        }

        #[test]
        fn no_text_stops_the_reader(text in ".{0,60}") {
            drop(SeriesTable::parse(&text));
        }
    }
}
