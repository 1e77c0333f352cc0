//! Splits text into lines and these into fields, which may stand in double quotes (RFC 4180).

/// A line that says something. It goes on over the ends of lines that stand in quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TableLine {
    /// Its number, from 1.
    pub(super) number: usize,
    /// How many empty lines stand between it and the one before.
    pub(super) empty_before: usize,
    /// As it stands, without blanks around it.
    pub(super) text: String,
    /// The same without its quotes, and with `_` in the place of separators that stand in them.
    pub(super) unquoted: String,
}

/// What may stand between fields.
const SEPARATORS: [char; 3] = [',', ';', '\t'];

/// The lines of a text that aren't empty, and don't begin with #.
///
/// # Errors
/// Returns the line of a quote that isn't closed.
pub(super) fn table_lines(text: &str) -> Result<Vec<TableLine>, usize> {
    let (mut all, mut empty_before) = (Vec::new(), 0);
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if line.trim().is_empty() {
            empty_before += 1;
            continue;
        }
        if line.trim_start().starts_with('#') {
            continue;
        }
        let mut text = line.trim_start_matches(' ').to_owned();
        let unquoted = loop {
            match without_quotes(&text) {
                Some(unquoted) => break unquoted,
                None => text = format!("{text}\n{}", lines.next().ok_or(number)?.0),
            }
        };
        text.truncate(text.trim_end_matches([' ', '\r']).len());
        all.push(TableLine { number, empty_before, text, unquoted });
        empty_before = 0;
    }
    Ok(all)
}

/// A line without its quotes; `None` if one isn't closed. A quote opens a field where one begins, and a word behind a quoted one.
fn without_quotes(line: &str) -> Option<String> {
    let (mut out, mut is_quoted, mut is_start) = (String::new(), false, true);
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => out.push('"'),
            '"' if is_quoted || is_start => {
                is_start = is_quoted;
                is_quoted = !is_quoted;
            }
            c if is_quoted => out.push(if c.is_whitespace() || SEPARATORS.contains(&c) { '_' } else { c }),
            c => {
                is_start = SEPARATORS.contains(&c) || (is_start && c == ' ');
                out.push(c);
            }
        }
    }
    (!is_quoted).then_some(out)
}

/// The fields of a line between separators, without blanks around them.
pub(super) fn separated(line: &str, separator: char) -> Vec<String> {
    let is_blank = |c: char| c.is_whitespace() && c != separator;
    let (mut all, mut rest) = (Vec::new(), Some(line));
    while let Some(text) = rest {
        let (field, behind) = field(text.trim_start_matches(is_blank), |c| c == separator);
        all.push(field);
        rest = behind.strip_prefix(separator);
    }
    all
}

/// The words of a line.
pub(super) fn words(line: &str) -> Vec<String> {
    let (mut all, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() {
        let (word, behind) = field(rest, char::is_whitespace);
        all.push(word);
        rest = behind.trim_start();
    }
    all
}

/// The field that a text begins with, and what stands behind it.
fn field(text: &str, is_end: impl Fn(char) -> bool) -> (String, &str) {
    let (mut field, mut rest) = (String::new(), text);
    if let Some(quoted) = text.strip_prefix('"') {
        rest = quoted;
        while let Some((part, behind)) = rest.split_once('"') {
            field += part;
            rest = behind;
            let Some(behind) = rest.strip_prefix('"') else { break };
            field.push('"');
            rest = behind;
        }
    }
    let end = rest.find(is_end).unwrap_or(rest.len());
    field += rest[..end].trim_end();
    (field, &rest[end..])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_may_stand_in_quotes() {
        assert_eq!(separated(r#" "a, ""b""" ,4, "5","#, ','), [r#"a, "b""#, "4", "5", ""]);
        assert_eq!(separated("a b; 5\" disk ;", ';'), ["a b", "5\" disk", ""]);
        assert_eq!(separated("a b\t\t1", '\t'), ["a b", "", "1"]);
        assert_eq!(words(r#""a b"  4 c"d "#), ["a b", "4", "c\"d"]);
    }

    #[test]
    fn lines_go_on_in_quotes() {
        let lines = table_lines("# \"\n\n \"a\nb;\",4\r\n\n\n1;\"2,5\"\n").unwrap();
        let told: Vec<_> = lines.iter().map(|line| (line.number, line.empty_before, line.unquoted.as_str())).collect();
        assert_eq!(told, [(3, 1, "a_b_,4"), (7, 2, "1;2_5")]);
        assert_eq!(separated(&lines[0].text, ','), ["a\nb;", "4"]);
        assert_eq!(table_lines("1,2\n\"a,4\n5,6\n"), Err(2));
        assert_eq!(table_lines("5\" disk,4\nb \"c,4\n").unwrap().len(), 2, "no field begins there");
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read(fields in prop::collection::vec("[a,; \"\t\n]{0,6}", 1..4)) {
            let line: Vec<String> = fields.iter().map(|one| format!("\"{}\"", one.replace('"', "\"\""))).collect();
            let text = format!("{}\n", line.join(","));
            let lines = table_lines(&text).unwrap();
            prop_assert_eq!(lines.len(), 1);
            prop_assert_eq!(separated(&lines[0].text, ','), fields);
        }
    }
}
