//! Parses the text of a relation file into objects of keys and values, and collects what isn't in order.
//!
//! ```text
//! file    := '[' [ object { ',' object } [ ',' ] ] ']'
//! object  := '{' [ entry { ',' entry } [ ',' ] ] '}'
//! entry   := string ':' value
//! value   := string | bare
//! string  := as in JSON
//! bare    := text up to the ',' or '}' that is not in parentheses or in braces
//! comment := '//' up to the end of the line, wherever space can be
//! ```
//!
//! The grammar has no recursion, so no file can overflow the stack. After a mistake reading goes on
//! at the next key or object; every mistake moves it forward, so it ends.

use std::borrow::Cow;

use crate::names::quoted;

/// How many mistakes are kept with their text; the others are only counted.
const MAX_LISTED: usize = 20;

/// How many objects a file can have, so that four million braces don't become as many of them.
const MAX_OBJECTS: usize = 100_000;

/// How a recording begins.
const RECORDING: &str = "{\"type\":\"header\"";

/// A mistake at a byte of the file.
pub(super) struct SyntaxProblem {
    pub(super) offset: usize,
    pub(super) message: String,
    pub(super) label: String,
    pub(super) help: Option<String>,
    /// The index of the object that it is in.
    pub(super) object: Option<usize>,
}

/// The mistakes found so far.
#[derive(Default)]
pub(super) struct Problems {
    pub(super) list: Vec<SyntaxProblem>,
    pub(super) unlisted: usize,
}

impl Problems {
    pub(super) fn push(&mut self, problem: SyntaxProblem) {
        match self.list.len() < MAX_LISTED {
            true => self.list.push(problem),
            false => self.unlisted += 1,
        }
    }
}

/// What stands between two braces.
pub(super) struct Object<'a> {
    pub(super) offset: usize,
    pub(super) entries: Vec<KeyEntry<'a>>,
    /// Whether part of it couldn't be read.
    pub(super) is_broken: bool,
}

/// A key and what follows it.
pub(super) struct KeyEntry<'a> {
    pub(super) key: KeyValue<'a>,
    /// The value; `None` where it couldn't be read.
    pub(super) value: Option<KeyValue<'a>>,
}

/// A string without its quotes, or what stands there without quotes.
#[derive(Clone)]
pub(super) struct KeyValue<'a> {
    /// What it says: escapes replaced, comments blanked out.
    pub(super) text: Cow<'a, str>,
    /// Text as it stands in the file.
    raw: &'a str,
    /// Where `raw` begins in the file.
    pub(super) offset: usize,
    pub(super) is_quoted: bool,
}

impl KeyValue<'_> {
    /// Where in the file the byte `offset` of `text` is.
    pub(super) fn offset_of(&self, offset: usize) -> usize {
        if self.raw.len() == self.text.len() {
            return self.offset + offset;
        }
        let (mut raw, mut decoded) = (0, 0);
        while decoded < offset
            && let Some((written, meant)) = first_character(&self.raw[raw..], &self.text[decoded..])
        {
            (raw, decoded) = (raw + written, decoded + meant);
        }
        self.offset + raw
    }
}

/// How many bytes the first character takes in a JSON string, and how many in the text it means.
fn first_character(raw: &str, decoded: &str) -> Option<(usize, usize)> {
    let meant = decoded.chars().next()?;
    let written = match raw.as_bytes() {
        [b'\\', b'u', ..] => 6 * meant.len_utf16(),
        [b'\\', ..] => 2,
        _ => meant.len_utf8(),
    };
    Some((written, meant.len_utf8()))
}

/// Reads all objects of `text`.
pub(super) fn read(text: &str) -> (Vec<Object<'_>>, Problems) {
    let mut reader = RelationReader {
        text,
        at: 0,
        objects: Vec::new(),
        open: None,
        has_bare_key: false,
        problems: Problems::default(),
    };
    reader.file();
    (reader.objects, reader.problems)
}

struct RelationReader<'a> {
    text: &'a str,
    at: usize,
    objects: Vec<Object<'a>>,
    /// The object that is being read.
    open: Option<Object<'a>>,
    /// Whether a key in it had no quotes.
    has_bare_key: bool,
    problems: Problems,
}

/// Whether what follows is where it can be expected, or reading has to find its way first.
#[derive(Clone, Copy, PartialEq)]
enum ReadingOrder {
    Kept,
    Lost,
}

impl<'a> RelationReader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, c: char) -> bool {
        let is_next = self.peek() == Some(c);
        self.at += if is_next { c.len_utf8() } else { 0 };
        is_next
    }

    fn skip_space(&mut self) {
        loop {
            self.at += self.rest().len() - self.rest().trim_start().len();
            if !self.rest().starts_with("//") {
                return;
            }
            self.skip_until(&['\n']);
        }
    }

    fn skip_until(&mut self, ends: &[char]) {
        self.at += self.rest().find(ends).unwrap_or(self.rest().len());
    }

    fn problem(&mut self, message: impl Into<String>, label: impl Into<String>) {
        self.problem_at(self.at, message.into(), label.into(), None);
    }

    fn problem_at(&mut self, offset: usize, message: String, label: String, help: Option<String>) {
        let object = self.open.as_ref().map(|_| self.objects.len());
        self.open.iter_mut().for_each(|object| object.is_broken = true);
        self.problems.push(SyntaxProblem { offset, message, label, help, object });
    }

    /// What is found where something else was expected.
    fn found(&self) -> String {
        match self.peek() {
            None => "the file ends here".to_owned(),
            Some(c) => format!("{} here", quoted(c.encode_utf8(&mut [0; 4]))),
        }
    }

    fn file(&mut self) {
        self.take('\u{feff}');
        self.skip_space();
        let mut order = ReadingOrder::Kept;
        match self.peek() {
            Some('[') => self.at += 1,
            Some('{') if self.rest().starts_with(RECORDING) => {
                let help = Some("a recording is opened by perfprop replay".to_owned());
                return self.problem_at(self.at, "this is a recording".into(), "no relation begins so".into(), help);
            }
            Some('{') => {
                self.problem("a relation file is an array", "expected '[' before the first relation");
                order = ReadingOrder::Lost;
            }
            None => {
                let help = "a file without relations is []".to_owned();
                return self.problem_at(0, "the file is empty".into(), String::new(), Some(help));
            }
            Some(_) => return self.problem("expected '[': a relation file is an array", self.found()),
        }
        loop {
            self.skip_space();
            match self.peek() {
                Some('{') if self.objects.len() == MAX_OBJECTS => {
                    let message = format!("more than {MAX_OBJECTS} relations in one file");
                    break self.problem(message, "the rest is not read");
                }
                Some('{') => order = self.element(order),
                Some(']') => break self.end(),
                None if order == ReadingOrder::Lost => break,
                None => {
                    self.at = self.text.trim_end().len();
                    break self.problem("expected ']' behind the last relation", "the file ends here");
                }
                Some(_) => {
                    self.problem("expected '{' to begin a relation", self.found());
                    self.skip_until(&['{', ']']);
                    order = ReadingOrder::Lost;
                }
            }
        }
    }

    fn end(&mut self) {
        self.at += 1;
        self.skip_space();
        if self.peek().is_some() && self.problems.list.is_empty() {
            self.problem("expected nothing behind the closing ']'", self.found());
        }
    }

    /// An object and the comma behind it.
    fn element(&mut self, before: ReadingOrder) -> ReadingOrder {
        let after = self.object();
        self.skip_space();
        let ends = matches!(self.peek(), Some(']') | None);
        if !self.take(',') && !ends && after == ReadingOrder::Kept {
            self.problem("expected ',' or ']' behind a relation", self.found());
        }
        // Without the first '[' there is no last ']' to ask for.
        if before == ReadingOrder::Lost && self.peek().is_none() { ReadingOrder::Lost } else { after }
    }

    fn object(&mut self) -> ReadingOrder {
        let start = self.at;
        self.at += 1;
        self.has_bare_key = false;
        self.open = Some(Object { offset: start, entries: Vec::new(), is_broken: false });
        let order = self.entries(start);
        self.objects.extend(self.open.take());
        order
    }

    fn entries(&mut self, start: usize) -> ReadingOrder {
        loop {
            self.skip_space();
            match self.peek() {
                Some('}') => {
                    self.at += 1;
                    return ReadingOrder::Kept;
                }
                Some('"') => self.entry(),
                None => {
                    let message = "the file ends inside a relation".to_owned();
                    self.problem_at(start, message, "'}' for this is missing".to_owned(), None);
                    return ReadingOrder::Lost;
                }
                Some('{' | ']') => {
                    self.problem("expected a key or '}'", self.found());
                    return ReadingOrder::Lost;
                }
                Some(c) => self.bare_entry(c),
            }
        }
    }

    /// An entry whose key isn't in quotes. Others of the same object are no news.
    fn bare_entry(&mut self, c: char) {
        if !std::mem::replace(&mut self.has_bare_key, true) || c == ',' {
            self.bare_key(c);
        }
        self.skip_until(&[':', ',', '}', '\n']);
        if self.take(':') {
            self.skip_space();
            let _ = self.value();
            self.skip_space();
        }
        self.take(',');
    }

    fn bare_key(&mut self, c: char) {
        let word = self.rest().trim_start_matches('\'');
        let word = word.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let help = (1..=40).contains(&word.len()).then(|| format!("write \"{word}\""));
        let message = if c == ',' { "expected a key before ','" } else { "expected a key in quotes" };
        self.problem_at(self.at, message.to_owned(), self.found(), help);
    }

    /// Skips to the next entry, as far as that can be recognised.
    fn skip_entry(&mut self) {
        self.skip_until(&[',', '}', '\n']);
        self.take(',');
    }

    fn entry(&mut self) {
        let key = self.string();
        self.skip_space();
        if !self.take(':') {
            if key.is_some() {
                self.problem("expected ':' behind a key", self.found());
                self.skip_entry();
            }
            return;
        }
        self.skip_space();
        let (value, order) = self.value();
        if let (Some(key), Some(object)) = (key, &mut self.open) {
            object.entries.push(KeyEntry { key, value });
        }
        self.skip_space();
        if self.take(',') || order == ReadingOrder::Lost || matches!(self.peek(), Some('}') | None) {
            return;
        }
        self.problem("expected ',' or '}' behind a value", self.found());
        if self.peek() != Some('"') {
            self.skip_entry();
        }
    }

    fn value(&mut self) -> (Option<KeyValue<'a>>, ReadingOrder) {
        let after = self.rest().get(1..).unwrap_or_default().trim_start();
        match self.peek() {
            Some('"') => {
                let value = self.string();
                let order = if value.is_some() { ReadingOrder::Kept } else { ReadingOrder::Lost };
                (value, order)
            }
            Some(',' | '}' | ']') | None => {
                self.problem("expected a value behind ':'", self.found());
                (None, ReadingOrder::Lost)
            }
            Some(c @ '[') => self.nested(c, "an array"),
            Some(c @ '{') if after.starts_with(['"', '}']) => self.nested(c, "an object"),
            Some(_) => self.bare(),
        }
    }

    /// No value is an array or an object. Its end is where as many brackets are closed as opened.
    fn nested(&mut self, open: char, what: &str) -> (Option<KeyValue<'a>>, ReadingOrder) {
        self.problem("expected an expression, a number or a string", format!("{what} here"));
        let close = if open == '[' { ']' } else { '}' };
        let mut depth = 0_usize;
        let end = self.rest().char_indices().find(|&(_, c)| {
            depth = if c == open { depth + 1 } else { depth - usize::from(c == close) };
            depth == 0
        });
        self.at = end.map_or(self.text.len(), |(end, _)| self.at + end + 1);
        (None, ReadingOrder::Lost)
    }

    /// A string, whose opening quote is next.
    fn string(&mut self) -> Option<KeyValue<'a>> {
        let start = self.at;
        self.at += 1;
        let mut is_escaped = false;
        let end = self.rest().find(|c: char| {
            let is_end = c == '\n' || (c == '"' && !is_escaped);
            is_escaped = c == '\\' && !is_escaped;
            is_end
        });
        let raw = self.rest().get(..end.unwrap_or(self.rest().len())).unwrap_or_default();
        let offset = self.at;
        self.at += raw.len();
        if !self.take('"') {
            let label = "'\"' for this is missing".to_owned();
            self.problem_at(start, "a string is not closed".to_owned(), label, None);
            return None;
        }
        let text = self.decode(start, raw)?;
        Some(KeyValue { text, raw, offset, is_quoted: true })
    }

    /// What the string at `start` means.
    fn decode(&mut self, start: usize, raw: &'a str) -> Option<Cow<'a, str>> {
        if let Some((at, control)) = raw.char_indices().find(|(_, c)| c.is_ascii_control()) {
            let message = "a control character in a string".to_owned();
            let label = format!("{} here", quoted(control.encode_utf8(&mut [0; 4])));
            self.problem_at(start + 1 + at, message, label, None);
            return None;
        }
        if !raw.contains('\\') {
            return Some(Cow::Borrowed(raw));
        }
        match serde_json::from_str(&self.text[start..=start + 1 + raw.len()]) {
            Ok(text) => Some(Cow::Owned(text)),
            Err(error) => {
                let message = "an escape that JSON doesn't have".to_owned();
                let help = "a backslash itself is written \\\\".to_owned();
                let at = (start + error.column()).saturating_sub(1);
                self.problem_at(at, message, "not an escape".to_owned(), Some(help));
                None
            }
        }
    }

    /// Text without quotes. Its end is lost where a brace or parenthesis is open when the line or
    /// the entry must be over.
    fn bare(&mut self) -> (Option<KeyValue<'a>>, ReadingOrder) {
        let offset = self.at;
        let (mut parentheses, mut in_braces) = (0_usize, false);
        while let Some(c) = self.peek() {
            match c {
                '"' | ']' => break,
                '\n' if in_braces => break,
                ',' if parentheses == 0 && !in_braces => break,
                '}' if !in_braces => break,
                '/' if self.rest().starts_with("//") => {
                    self.skip_until(&['\n']);
                    continue;
                }
                '(' => parentheses += 1,
                ')' => parentheses = parentheses.saturating_sub(1),
                '{' | '}' => in_braces = c == '{',
                _ => {}
            }
            self.at += c.len_utf8();
        }
        let raw = self.text[offset..self.at].trim_end();
        let order = if parentheses > 0 || in_braces { ReadingOrder::Lost } else { ReadingOrder::Kept };
        let text = without_comments(raw);
        (Some(KeyValue { text, raw, offset, is_quoted: false }), order)
    }
}

/// `raw` with spaces for its comments, so that every other byte stays in its place.
fn without_comments(raw: &str) -> Cow<'_, str> {
    if !raw.contains("//") {
        return Cow::Borrowed(raw);
    }
    let lines = raw.split_inclusive('\n').map(|line| match line.find("//") {
        Some(at) => {
            let end = line.trim_end_matches('\n').len();
            format!("{}{}{}", &line[..at], " ".repeat(end - at), &line[end..])
        }
        None => line.to_owned(),
    });
    Cow::Owned(lines.collect())
}
