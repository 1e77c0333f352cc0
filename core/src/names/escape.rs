//! Escapes text from outside, so that a terminal only draws it.

use std::borrow::Cow;
use std::path::Path;

/// The longest piece of a file that a message quotes, in characters.
const MAX_QUOTED: usize = 40;

/// Whether a terminal would do something else with `c` than draw it: control characters, and the
/// invisible ones that turn the direction of a text round or join and split characters.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` escaped for a terminal, a page or a picture: its hidden characters are written as `\x1b` or `\u{202e}`.
pub fn shown(text: &str) -> Cow<'_, str> {
    // Most names are plain; lists have thousands of them.
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if is_plain || !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| push_shown(&mut out, c));
    Cow::Owned(out)
}

/// A path as [`shown`] writes it. What is no text in it is written as `�`.
pub fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy()).into_owned()
}

/// Appends `c` to `out`, written out where it is hidden.
pub fn push_shown(out: &mut String, c: char) {
    match u32::from(c) {
        _ if !is_hidden(c) => out.push(c),
        code if code < 0x100 => out.push_str(&format!("\\x{code:02x}")),
        code => out.push_str(&format!("\\u{{{code:x}}}")),
    }
}

/// `text` escaped as XML and HTML take it, its hidden characters written out.
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in shown(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // No characters of XML.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// `text` escaped as Markdown takes it, in a cell of a table too, its hidden characters written out: nothing in it is a
/// link, a picture, markup or emphasis, and it calls nobody.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in shown(text).chars() {
        if r"\`*_[]<>&|~".contains(c) {
            out.push('\\');
        }
        out.push(c);
        if c == '@' {
            // Code hosts look for names behind it in the text that is shown, where a backslash is gone.
            out.push_str("&#8203;");
        }
    }
    out
}

/// A name between the slashes of a path of names: a slash in it has a backslash before it.
pub fn in_path(name: &str) -> Cow<'_, str> {
    if name.contains('/') { Cow::Owned(name.replace('/', "\\/")) } else { Cow::Borrowed(name) }
}

/// `text` in single quotes, escaped and cut to a length that fits into a message.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("'{}...'", shown(&text[..end])),
        None => format!("'{}'", shown(text)),
    }
}

/// A path in single quotes, as [`shown_path`] writes it: whole, as its end says the most.
pub fn quoted_path(path: &Path) -> String {
    format!("'{}'", shown_path(path))
}

/// A word as a shell takes it for one word. Where it holds what isn't shown as it is, in the quotes of bash, zsh and
/// ksh that have escapes.
pub fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else if word.contains(is_hidden) {
        format!("$'{}'", word.chars().map(in_dollar_quotes).collect::<String>())
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A character between `$'` and `'`.
fn in_dollar_quotes(c: char) -> String {
    match c {
        '\n' => r"\n".into(),
        '\t' => r"\t".into(),
        '\'' | '\\' => format!("\\{c}"),
        c if is_hidden(c) => c.to_string().bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(shown("a\u{1b}[2J\0\u{9b}\u{202e}é"), "a\\x1b[2J\\x00\\x9b\\u{202e}é");
    }

    #[test]
    fn nothing_in_markdown_is_live() {
        let text = "*a* _b_ `c` [d](e) <b> &lt; f|g ~~h~~ \\ i\u{1b}";
        let escaped = r"\*a\* \_b\_ \`c\` \[d\](e) \<b\> \&lt; f\|g \~\~h\~\~ \\ i\\x1b";
        assert_eq!((markdown(text).as_str(), markdown("@team").as_str()), (escaped, "@&#8203;team"));
    }

    #[test]
    fn paths_are_escaped_and_have_no_quotes() {
        let path = Path::new(OsStr::from_bytes(b"/a b/\x1b[31m\xff"));
        assert_eq!(shown_path(path), "/a b/\\x1b[31m\u{fffd}");
    }

    #[test]
    fn words_can_be_pasted_into_a_shell() {
        assert_eq!(["a/b.c", "a b", "it's", ""].map(for_shell), ["a/b.c", "'a b'", r"'it'\''s'", "''"]);
        assert_eq!(for_shell("for i in x:\n\tprint('\\')"), r"$'for i in x:\n\tprint(\'\\\')'");
        assert_eq!(for_shell("\u{1b}é\u{202e}"), r"$'\x1bé\xe2\x80\xae'");
        assert_eq!(shown(&for_shell("a\nb")), r"$'a\nb'");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(quoted(&"é".repeat(40)), format!("'{}'", "é".repeat(40)));
        assert_eq!(quoted(&"é".repeat(41)), format!("'{}...'", "é".repeat(40)));
    }

    #[test]
    fn a_path_is_quoted_whole_and_escaped() {
        let folder = "/folder".repeat(20);
        assert_eq!(quoted_path(Path::new(&format!("{folder}/a\x1b.json"))), format!("'{folder}/a\\x1b.json'"));
    }

    proptest! {
        #[test]
        fn what_is_shown_holds_no_control_character(text in any::<String>()) {
            prop_assert!(!shown(&text).contains(char::is_control));
        }
    }
}
