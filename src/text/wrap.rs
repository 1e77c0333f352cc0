//! Wraps text into lines of a narrow terminal.

use std::fmt::Write;

/// Columns of a line.
pub(super) const WIDTH: usize = 80;

/// Words in lines that end before the width, all but the first one indented. A word that is longer
/// than a line is broken, behind a comma where it has one.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = WrappedLines::new(indent, WIDTH);
    text.split(' ').for_each(|word| lines.word(word));
    lines.text
}

/// A message in lines of a terminal of this width. What stands behind two blanks is a command or a path, which stays
/// whole.
pub fn wrapped_message(text: &str, indent: usize, width: usize) -> String {
    let mut lines = WrappedLines::new(indent, width.max(2 * indent + 1));
    let mut parts = text.split("  ");
    parts.next().unwrap_or_default().split(' ').for_each(|word| lines.word(word));
    parts.for_each(|command| lines.whole(command));
    lines.text
}

/// How far what goes on below a line stands behind its beginning.
const HANGING: usize = 2;

/// A text whose lines that are longer than so many columns go on below; as it is where any length has room. Lines are
/// broken between columns of a table, else between words. A word that is longer stays whole.
pub fn folded(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    text.split_inclusive('\n').map(|line| folded_line(line, columns)).collect()
}

fn folded_line(line: &str, columns: usize) -> String {
    let mut left: Vec<char> = line.chars().collect();
    let begin = left.iter().take_while(|letter| **letter == ' ').count();
    let indent = if 2 * (begin + HANGING) < columns { begin + HANGING } else { 0 };
    let (mut text, mut begin, mut room) = (String::new(), begin, columns);
    while let Some(end) = last_gap(&left, begin, room) {
        let rest = left.split_off(end);
        text.push_str(String::from_iter(&left).trim_end());
        let _ = write!(text, "\n{:indent$}", "");
        left = rest.into_iter().skip_while(|letter| *letter == ' ').collect();
        (begin, room) = (0, columns - indent);
    }
    text.extend(left);
    text
}

/// Where a line is broken that begins with so many blanks and is longer than its room.
fn last_gap(line: &[char], begin: usize, room: usize) -> Option<usize> {
    let length = line.iter().rposition(|letter| !letter.is_whitespace())? + 1;
    let is_blank = |place: usize| line[place] == ' ';
    let mut places = (begin..=room.min(length)).rev().filter(|_| length > room);
    let between_columns =
        places.clone().take_while(|place| 2 * place >= room).find(|&place| is_blank(place) && is_blank(place + 1));
    between_columns
        .or_else(|| places.find(|&place| is_blank(place)))
        .or_else(|| (room.max(begin)..length).find(|&place| is_blank(place)))
}

/// Lines that are filled with words.
struct WrappedLines {
    text: String,
    indent: usize,
    width: usize,
    column: usize,
}

impl WrappedLines {
    fn new(indent: usize, width: usize) -> Self {
        Self { text: String::new(), indent, width, column: indent }
    }

    fn new_line(&mut self) {
        let _ = write!(self.text, "\n{:1$}", "", self.indent);
        self.column = self.indent;
    }

    fn word(&mut self, word: &str) {
        let mut letters: Vec<char> = word.chars().collect();
        if self.column > self.indent && self.column + 1 + letters.len() > self.width {
            self.new_line();
        } else if self.column > self.indent {
            self.push(" ");
        }
        let room = self.width - self.indent;
        while letters.len() > room {
            let comma = letters[..room].iter().rposition(|letter| *letter == ',');
            self.text.extend(letters.drain(..comma.map_or(room, |comma| comma + 1)));
            self.new_line();
        }
        self.push(&String::from_iter(letters));
    }

    /// Words that stay together, two blanks behind others, however long they are.
    fn whole(&mut self, words: &str) {
        if self.column > self.indent && self.column + 2 + words.chars().count() > self.width {
            self.new_line();
            return self.push(words.trim_start());
        }
        self.push("  ");
        self.push(words);
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_lines_go_on_below_between_columns_or_words() {
        let text = "EVENT   MEAN   CORRECTED\nLOADS   45.1  corrected 44.9 by R1\n  note: it was slow\n";
        let narrow = "EVENT   MEAN   CORRECTED\nLOADS   45.1\n  corrected 44.9 by R1\n  note: it was slow\n";
        assert_eq!((folded(text, None).as_str(), folded(text, Some(24)).as_str()), (text, narrow));
        assert_eq!(folded("  note: it was slow\n", Some(15)), "  note: it was\n    slow\n");
        // A word that is longer than the line.
        assert_eq!(folded("a /long/path/of/a/file b", Some(8)), "a\n  /long/path/of/a/file\n  b");
    }

    #[test]
    fn text_is_wrapped_between_words() {
        let text = wrapped(&"word ".repeat(20), 29);
        assert!(text.lines().all(|line| line.len() <= WIDTH) && text.lines().count() == 2);
        assert_eq!(wrapped("", 8), "");
    }

    #[test]
    fn long_lists_are_broken_behind_commas() {
        let text = wrapped(&format!("counting {}", ["context-switches"; 8].join(",")), 4);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (3, "counting"));
        assert!(lines[1].ends_with("context-switches,") && lines[2].ends_with("context-switches"), "{text}");
    }

    #[test]
    fn commands_of_messages_stay_whole() {
        let text = "nothing was kept of that; again:  perfprop record -g -o a.jsonl   or: perfprop top -g";
        let lines = wrapped_message(text, 10, 60);
        let wanted = [
            "nothing was kept of that; again:",
            "          perfprop record -g -o a.jsonl",
            "          or: perfprop top -g",
        ];
        assert_eq!(lines.lines().collect::<Vec<_>>(), wanted);
        assert_eq!(wrapped_message(text, 10, 200), text);
        assert_eq!(wrapped_message("of a terminal without columns", 10, 0).lines().count(), 4);
    }

    proptest! {
        #[test]
        fn folded_lines_have_the_same_words(text in "[a-z \n]{0,60}", columns in 0usize..30) {
            let narrow = folded(&text, Some(columns));
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            prop_assert_eq!(words(&narrow), words(&text));
            let is_short = |line: &str| line.trim_end().chars().count() <= columns || line.split_whitespace().count() == 1;
            prop_assert!(columns < 5 || narrow.lines().all(is_short), "{:?}", narrow);
        }

        #[test]
        fn wrapping_loses_no_word(words in prop::collection::vec("[a-z]{1,90}", 0..30)) {
            let text = words.join(" ");
            let wrapped = wrapped(&text, 8);
            prop_assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH));
            prop_assert_eq!(wrapped.split_whitespace().collect::<String>(), words.concat());
        }
    }
}
