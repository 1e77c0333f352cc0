//! Text from outside in, text that a terminal can be given out.

/// The longest piece of a file that a message quotes, in characters.
const MAX_QUOTED: usize = 40;

/// Whether a terminal would do something else with `c` than draw it: control characters, and the
/// invisible ones that turn the direction of a text round or join and split characters.
pub(crate) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` with its unprintable characters written as `\x1b` or `\u{202e}`.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push_escaped(&mut out, c);
    }
    out
}

/// Appends `c` to `out`, escaped where it is unprintable.
pub(crate) fn push_escaped(out: &mut String, c: char) {
    match u32::from(c) {
        _ if !is_unprintable(c) => out.push(c),
        code if code < 0x100 => out.push_str(&format!("\\x{code:02x}")),
        code => out.push_str(&format!("\\u{{{code:x}}}")),
    }
}

/// `text` in single quotes, escaped and cut to a length that fits into a message.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("'{}...'", escaped(&text[..end])),
        None => format!("'{}'", escaped(text)),
    }
}

/// The one of `candidates` that `word` was most likely meant to be, if one is close enough.
///
/// Close enough is a Jaro-Winkler similarity of 0.8, in any case of letters: one wrong, missing or
/// swapped letter in a word of five passes, an unrelated word doesn't.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const CLOSE_ENOUGH: f64 = 0.8;
    // Similarity takes the product of both lengths; nobody mistypes a word of a kilobyte.
    if word.len() > 100 {
        return None;
    }
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&word, &candidate.to_lowercase()), candidate))
        .filter(|(similarity, _)| *similarity >= CLOSE_ENOUGH)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(escaped("a\u{1b}[2J\0\u{9b}\u{202e}é"), "a\\x1b[2J\\x00\\x9b\\u{202e}é");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(quoted(&"é".repeat(40)), format!("'{}'", "é".repeat(40)));
        assert_eq!(quoted(&"é".repeat(41)), format!("'{}...'", "é".repeat(40)));
    }

    #[test]
    fn suggestions_are_close_or_none() {
        let functions = ["min", "max", "log2"];
        assert_eq!(did_you_mean("log", functions), Some("log2"));
        assert_eq!(did_you_mean("MAX", functions), Some("max"));
        assert_eq!(did_you_mean("cosine", functions), None);
        assert_eq!(did_you_mean("", functions), None);
    }
}
