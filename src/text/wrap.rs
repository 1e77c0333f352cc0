//! Wraps text into lines of a narrow terminal.

use std::fmt::Write;

/// Columns of a line.
const WIDTH: usize = 80;

/// Words in lines that end before the width, all but the first one indented. A word that is longer
/// than a line is broken.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = String::new();
    let mut column = indent;
    for word in text.split(' ') {
        let mut letters: Vec<char> = word.chars().collect();
        if column > indent && column + 1 + letters.len() > WIDTH {
            let _ = write!(lines, "\n{:indent$}", "");
            column = indent;
        } else if column > indent {
            lines.push(' ');
            column += 1;
        }
        while letters.len() > WIDTH - indent {
            lines.extend(letters.drain(..WIDTH - indent));
            let _ = write!(lines, "\n{:indent$}", "");
        }
        column += letters.len();
        lines.extend(letters);
    }
    lines
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_wrapped_between_words() {
        let text = wrapped(&"word ".repeat(20), 29);
        assert!(text.lines().all(|line| line.len() <= WIDTH) && text.lines().count() == 2);
        assert_eq!(wrapped("", 8), "");
    }

    proptest! {
        #[test]
        fn wrapping_loses_no_word(words in prop::collection::vec("[a-z]{1,90}", 0..30)) {
            let text = words.join(" ");
            let wrapped = wrapped(&text, 8);
            prop_assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH));
            prop_assert_eq!(wrapped.split_whitespace().collect::<String>(), words.concat());
        }
    }
}
