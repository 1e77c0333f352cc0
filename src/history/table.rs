//! Reads a series of numbers from text: one value after the other, or lines of an index, a value and a weight.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

use super::fields::{TableLine, separated, table_lines, words};
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
    NoNumber {
        /// What stands there.
        word: String,
        /// How a missing value is written in such a text.
        missing: MissingMark,
    },
    /// This has a comma where numbers have a point.
    DecimalComma(String),
    /// This is a number with a decimal comma rather than an index and a value.
    IndexOrDecimal(String),
    /// A quote isn't closed.
    OpenQuote,
    /// This is a number, but not a finite one.
    NotFinite {
        /// What stands there.
        word: String,
        /// How a missing value is written in such a text.
        missing: MissingMark,
    },
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

/// How a missing value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingMark {
    /// As a field that is empty.
    EmptyField,
    /// As a word, where each word is a value.
    Word,
}

impl Display for MissingMark {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EmptyField => "leave the field empty if the value is missing",
            Self::Word => "write NaN if the value is missing",
        })
    }
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
            SeriesFaultKind::NoNumber { word, missing } => write!(f, "{} is no number: {missing}", quoted(word)),
            SeriesFaultKind::DecimalComma(word) => write!(f, "{} has a decimal comma: write a point", quoted(word)),
            SeriesFaultKind::IndexOrDecimal(word) => write!(
                f,
                "{} seems to be a number with a decimal comma: write a point; if it is an index and a value, name both in a first line such as index,value",
                quoted(word)
            ),
            SeriesFaultKind::OpenQuote => write!(f, "a quote isn't closed"),
            SeriesFaultKind::NotFinite { word, missing } => {
                write!(f, "{} can't be compared with numbers: {missing}", quoted(word))
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
    /// Lines with commas have an index and a value, and may have a weight; an empty field is missing. So have lines with semicolons or
    /// tabs, and lines of two or three words, if all lines have as many. In other lines each word is a value. The words null, NaN, None and
    /// N/A are missing values, too. A field may stand in double quotes, as RFC 4180 has it. A first line whose value is no number is a
    /// heading. Lines that begin with # say nothing, nor do empty ones, unless they stand between lines of one value each: there they are
    /// missing values.
    ///
    /// # Errors
    ///
    /// What is no series, with its line.
    pub fn parse(text: &str) -> Result<Self, SeriesFault> {
        let at = |line: usize, kind: SeriesFaultKind| SeriesFault { line: Some(line), kind };
        let lines = table_lines(text.trim_start_matches('\u{feff}'));
        let lines = lines.map_err(|line| at(line, SeriesFaultKind::OpenQuote))?;
        let separator = Separator::of(&lines);
        let mut rows: Vec<(&TableLine, Vec<String>)> =
            lines.iter().map(|line| (line, separator.fields(&line.text))).collect();
        let of_first = |rows: &[(_, Vec<String>)]| rows.first().map_or(0, |(_, fields)| fields.len());
        let mut count = of_first(&rows);
        if rows.first().is_some_and(|(_, fields)| is_heading(fields)) {
            rows.remove(0);
            // A heading may have more words than there are columns.
            if separator == Separator::Space {
                count = of_first(&rows);
            }
        } else if separator == Separator::Comma
            && let Some((line, word)) = decimal_comma(&lines)
        {
            return Err(at(line, SeriesFaultKind::IndexOrDecimal(word)));
        }
        let is_one_value = |fields: &[String]| fields.len() == 1 && fields[0].split_whitespace().count() <= 1;
        let has_gaps = rows.iter().all(|(_, fields)| is_one_value(fields));
        let mut table = Self::default();
        for (place, (line, fields)) in rows.into_iter().enumerate() {
            if has_gaps && place > 0 {
                table.values.extend(vec![None; line.empty_before]);
            }
            table.read_fields(&fields, count).map_err(|kind| at(line.number, kind))?;
        }
        if table.values.iter().all(Option::is_none) {
            return Err(SeriesFault { line: None, kind: SeriesFaultKind::Empty });
        }
        Ok(table)
    }

    fn read_fields(&mut self, fields: &[String], first: usize) -> Result<(), SeriesFaultKind> {
        let found = fields.len();
        if found > 3 {
            return Err(SeriesFaultKind::TooMany(found));
        }
        if found != first {
            return Err(SeriesFaultKind::Fields { found, first });
        }
        let (index, value, weight) = match fields {
            [index, value] => (index, value, None),
            [index, value, weight] => (index, value, Some(weight)),
            words => {
                let one = |word: &str| number(word, MissingMark::Word);
                let words = words.iter().flat_map(|words| match words.as_str() {
                    "" => vec![""],
                    words => words.split_whitespace().collect(),
                });
                self.values.extend(words.map(one).collect::<Result<Vec<_>, _>>()?);
                return Ok(());
            }
        };
        let value = number(value, MissingMark::EmptyField)?;
        if let Some(word) = weight {
            let weight = number(word, MissingMark::EmptyField)?;
            if weight.is_some_and(|weight| weight <= 0.0) {
                return Err(SeriesFaultKind::NoWeight(word.clone()));
            }
            if weight.is_some() && value.is_none() {
                return Err(SeriesFaultKind::NoValue);
            }
            self.weights.push(weight);
        }
        self.indexes.push(index.clone());
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
    Semicolon,
    Tab,
    /// Blanks or tabs.
    Space,
}

impl Separator {
    fn of(lines: &[TableLine]) -> Self {
        let lines: Vec<&str> = lines.iter().map(|line| line.unquoted.as_str()).collect();
        // The first one may be a heading.
        let rest = if lines.len() > 1 { &lines[1..] } else { &lines[..] };
        if !rest.is_empty() && rest.iter().all(|line| line.contains(';')) {
            return Self::Semicolon;
        }
        // Those at the end of all lines are blanks.
        let has_tab = lines.iter().any(|line| line.trim().contains('\t'));
        if lines.len() > 1 && has_tab && have_tabs(rest) {
            return Self::Tab;
        }
        // A heading may have more words than there are columns.
        let has_number =
            |line: &str| line.split_whitespace().any(|word| word.parse::<f64>().is_ok() || is_missing(word));
        let lines = lines.into_iter().skip_while(|line| !line.contains(',') && !has_number(line));
        let words: Vec<usize> =
            lines.map(|line| if line.contains(',') { 0 } else { line.split_whitespace().count() }).collect();
        let are_fields = matches!(words[..], [first @ 2..=3, _, ..] if words.iter().all(|&count| count == first));
        if are_fields { Self::Space } else { Self::Comma }
    }

    fn fields(self, line: &str) -> Vec<String> {
        match self {
            Self::Comma => separated(line, ','),
            Self::Semicolon => separated(line, ';'),
            Self::Tab => separated(line, '\t'),
            Self::Space => words(line),
        }
    }
}

/// Whether tabs separate two or three fields in all lines.
fn have_tabs(lines: &[&str]) -> bool {
    let count = |line: &str| line.matches('\t').count();
    let are_alike = lines.iter().all(|line| count(line) == count(lines[0]) && !line.contains(",\t"));
    are_alike && (1..=2).contains(&count(lines[0]))
}

/// A line whose comma is rather that of a number than one between an index and a value, and that number.
///
/// Of lines such as `9,98` all have whole numbers on both sides. Indexes only rise or only fall, and no value is written as `05`.
fn decimal_comma(lines: &[TableLine]) -> Option<(usize, String)> {
    let number_of = |line: &TableLine| {
        let mut words = line.unquoted.split_whitespace().rev();
        let (word, is_alone) = (words.next()?, words.next().is_none());
        let (whole, fraction) = word.split_once(',')?;
        let are_digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        let is_number = are_digits(whole.trim_start_matches('-')) && are_digits(fraction) && words.next().is_none();
        is_number.then(|| (line.number, word.to_owned(), is_alone))
    };
    let all: Vec<(usize, String, bool)> = lines.iter().map(number_of).collect::<Option<_>>()?;
    let parts = |(_, word, _): &(usize, String, bool)| {
        word.split_once(',')
            .map(|(whole, rest)| (whole.parse::<f64>().unwrap_or(0.0), rest.len() > 1 && rest.starts_with('0')))
    };
    let parts: Vec<(f64, bool)> = all.iter().filter_map(parts).collect();
    let is_sorted = |is_next: fn(f64, f64) -> bool| parts.windows(2).all(|pair| is_next(pair[0].0, pair[1].0));
    let are_indexes = all.iter().all(|one| one.2)
        && (is_sorted(|a, b| a < b) || is_sorted(|a, b| a > b))
        && !parts.iter().any(|part| part.1);
    let (line, word, _) = all.into_iter().next().filter(|_| !are_indexes)?;
    Some((line, word))
}

/// Whether a first line names the columns.
fn is_heading(fields: &[String]) -> bool {
    let Some(value) = fields.get(1).or(fields.first()) else { return false };
    let is_missing = value.split_whitespace().next().is_some_and(is_missing);
    value.parse::<f64>().is_err() && value.starts_with(|c: char| c.is_alphabetic()) && !is_missing
}

/// Whether a word stands for a value that is missing, as other tools write it.
fn is_missing(word: &str) -> bool {
    ["", "null", "nan", "none", "n/a"].iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn number(word: &str, missing: MissingMark) -> Result<Option<f64>, SeriesFaultKind> {
    if is_missing(word) {
        return Ok(None);
    }
    match word.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Some(number)),
        Ok(_) => Err(SeriesFaultKind::NotFinite { word: word.to_owned(), missing }),
        Err(_) if word.replacen(',', ".", 1).parse::<f64>().is_ok() => {
            Err(SeriesFaultKind::DecimalComma(word.to_owned()))
        }
        Err(_) => Err(SeriesFaultKind::NoNumber { word: word.to_owned(), missing }),
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
            ("1\ntwo\n", "line 2: 'two' is no number: write NaN if the value is missing"),
            ("0,1\n1,two\n", "line 2: 'two' is no number: leave the field empty if the value is missing"),
            ("1\ninf\n", "line 2: 'inf' can't be compared with numbers: write NaN"),
            ("1\n\"2\n3\n", "line 2: a quote isn't closed"),
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

    #[test]
    fn fields_stand_between_semicolons_or_tabs_and_in_quotes() {
        let read = |text: &str| SeriesTable::parse(text).map(|table| (table.indexes.join("|"), table.values));
        let two = |indexes: &str| Ok((indexes.to_owned(), vec![Some(9.98), None]));
        assert_eq!(read("commit;time\nc0;9.98\nc1;\n"), two("c0|c1"));
        assert_eq!(read("fix a, b\t9.98\nc1\t\n"), two("fix a, b|c1"));
        assert_eq!(read("c0\t9.98\t2\nc1\t\t\n"), two("c0|c1"));
        assert_eq!(read("\"commit\",\"time\"\r\n\"c0\",\"9.98\"\r\n\"c1\",\"\"\r\n"), two("c0|c1"));
        assert_eq!(read("\"a, \"\"b\"\"\",9.98\n\"c\nd\",NaN\n"), two("a, \"b\"|c\nd"));
        assert_eq!(read("\"commit\" \"time\"\n\"c 0\" 9.98\n\"c1\" \"NaN\"\n"), two("c 0|c1"));
        assert_eq!(read("\"time\"\n\"9.98\"\n\"\"\n"), two(""));
        assert_eq!(read("a; b,9.98\nc1,\n"), two("a; b|c1"), "not in all lines");
        assert_eq!(read("9.98\t\nNaN\t\n"), two(""), "blanks at the end");
    }

    #[test]
    fn decimal_commas_are_told() {
        let fault = |text: &str| SeriesTable::parse(text).map_err(|fault| fault.to_string()).err().unwrap_or_default();
        for text in ["c0;9,98\nc1;9,97\n", "commit;time\nc0;9,98\n", "c0\t9,98\nc1\t9,97\n", "\"9,98\"\n\"9,97\"\n"] {
            assert!(fault(text).contains("'9,98' has a decimal comma: write a point"), "{text:?}: {}", fault(text));
        }
        for text in ["9,98\n9,97\n", "9,98\n10,02\n11,00\n", "9,98\n11,2\n10,1\n", "c0 9,98\nc1 10,97\n"] {
            assert!(fault(text).starts_with("line 1: '9,98' seems to be a number with a decimal comma"), "{text:?}");
        }
        let values = |text: &str| SeriesTable::parse(text).map(|table| table.values);
        for text in ["9,98\n10,97\n", "10,98\n9,97\n", "index,value\n9,98\n9,97\n"] {
            assert_eq!(values(text), Ok(vec![Some(98.0), Some(97.0)]), "{text:?}: an index and a value");
        }
    }

    #[test]
    fn empty_lines_between_single_values_are_missing_values() {
        let values = |text: &str| SeriesTable::parse(text).map(|table| table.values);
        assert_eq!(values("\ntime\n\n1\n\n# two\n2\n\n"), Ok(vec![Some(1.0), None, Some(2.0)]));
        assert_eq!(values("1 2\n\n3\n"), Ok(vec![Some(1.0), Some(2.0), Some(3.0)]), "blocks of values");
        assert_eq!(values("0,1\n\n1,2\n"), Ok(vec![Some(1.0), Some(2.0)]));
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
