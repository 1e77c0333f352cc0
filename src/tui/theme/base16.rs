//! Converts base16 and base24 schemes to theme files.
//!
//! A scheme is YAML, but of the simplest kind: sixteen lines `base00: "282828"`, with or without
//! `#`, on their own or below `palette:`. Only those lines and its name are read. What each colour
//! is for: the base16 styling guidelines.

use std::collections::HashMap;
use std::fmt::Write as _;

/// Why a scheme makes no theme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemeError {
    /// These colours aren't there.
    Missing(Vec<&'static str>),
    /// The line, from 1, names a colour that is none.
    NotAColour {
        /// Number of the line.
        line: usize,
        /// Text of the line.
        text: String,
    },
}

impl std::fmt::Display for SchemeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing(keys) => write!(f, "no base16 scheme: {} missing", keys.join(", ")),
            Self::NotAColour { line, text } => {
                write!(f, "line {line}: '{}' is no colour: six hexadecimal digits", crate::names::shown(text))
            }
        }
    }
}

impl std::error::Error for SchemeError {}

/// The colours that a theme is made of, and the scheme's names of them.
const COLOURS: [(&str, &str); 11] = [
    ("paper", "base00"),
    ("chosen", "base02"),
    ("grey", "base03"),
    ("faint", "base04"),
    ("ink", "base05"),
    ("bad", "base08"),
    ("caution", "base09"),
    ("good", "base0B"),
    ("band", "base01"),
    ("head", "base0D"),
    ("keys", "base0E"),
];

const ROLES: &str = r#"[ui]
text = "ink"
dim = "faint"
bg = "paper"
border = "grey"
border_focus = "head"
title = { fg = "ink", modifiers = ["bold"] }
header = "head"
selection = { bg = "chosen", modifiers = ["bold"] }
match = { fg = "caution", modifiers = ["underlined"] }
key = { fg = "keys", modifiers = ["bold"] }
status = "ink"
frozen = { fg = "paper", bg = "head", modifiers = ["bold"] }

[state]
ok = "good"
info = "head"
warn = "caution"
error = "bad"
missing = "faint"

[value]
raw = "keys"
corrected = "head"
ci_band = "band"
reference = "faint"

[run]
full = "ink"
part = "ink"
low = "caution"

[series]
colors = ["head", "caution", "keys", "good", "bad", "ink"]
gradient = ["grey", "head"]
"#;

/// Makes a theme of a scheme.
///
/// # Errors
/// Fails if a colour is missing or isn't a colour.
pub fn theme_of_base16(scheme: &str) -> Result<String, SchemeError> {
    let mut colours: HashMap<String, String> = HashMap::new();
    let mut name = "imported".to_owned();
    for (place, line) in scheme.lines().enumerate() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim().trim_matches('"'), unquoted(value));
        if matches!(key, "scheme" | "name") && !value.is_empty() {
            name = file_name(value);
        }
        let is_colour = key.len() == 6 && key.starts_with("base") && key[4..].bytes().all(|b| b.is_ascii_hexdigit());
        if !is_colour {
            continue;
        }
        let hex = value.trim_start_matches('#');
        if hex.len() != 6 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(SchemeError::NotAColour { line: place + 1, text: value.to_owned() });
        }
        colours.insert(format!("base{}", key[4..].to_ascii_uppercase()), hex.to_ascii_lowercase());
    }
    let missing: Vec<_> = COLOURS.iter().map(|(_, key)| *key).filter(|key| !colours.contains_key(*key)).collect();
    if !missing.is_empty() {
        return Err(SchemeError::Missing(missing));
    }
    Ok(text(&name, &colours))
}

fn text(name: &str, colours: &HashMap<String, String>) -> String {
    let light = |hex: &str| {
        let channel = |at: usize| u32::from_str_radix(&hex[at..at + 2], 16).unwrap_or(0);
        channel(0) + channel(2) + channel(4) > 3 * 128
    };
    let variant = if colours.get("base00").is_some_and(|paper| light(paper)) { "light" } else { "dark" };
    let mut text =
        format!("[meta]\nname = \"{name}\"\nvariant = \"{variant}\"\ninherits = \"terminal\"\n\n[palette]\n");
    for (own, key) in COLOURS {
        if let Some(hex) = colours.get(key) {
            let _ = writeln!(text, "{own} = \"#{hex}\"");
        }
    }
    text.push('\n');
    text.push_str(ROLES);
    text
}

/// A value without its quotes and the comment behind it. A `#` in quotes begins a colour.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next().unwrap_or(""),
        _ => value.split(" #").next().unwrap_or("").trim(),
    }
}

/// Letters and digits with hyphens between them.
fn file_name(name: &str) -> String {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use ratatui::style::Color;

    use super::*;
    use crate::tui::{Depth, Role, Theme};

    fn scheme(line: impl Fn(usize) -> String) -> String {
        let colours: Vec<_> = (0..16).map(line).collect();
        format!("scheme: \"Grey & Co.\" # a comment\nauthor: 'somebody'\n{}\n", colours.join("\n"))
    }

    #[test]
    fn both_spellings_make_the_same_theme() {
        let old = scheme(|i| format!("base0{i:X}: \"{i:x}0{i:x}0{i:x}0\""));
        let new = scheme(|i| format!("  base0{i:X}: \"#{i:X}0{i:X}0{i:X}0\" # {i}"));
        let text = theme_of_base16(&old).unwrap();
        assert_eq!(theme_of_base16(&new).unwrap(), text);
        let (theme, complaints) = Theme::parse("grey-co", &text, Depth::TrueColor);
        assert_eq!((complaints.len(), theme.is_light()), (0, false));
        assert_eq!(theme.style(Role::Background).bg, Some(Color::Rgb(0, 0, 0)));
        assert_eq!(theme.style(Role::Error).fg, Some(Color::Rgb(0x80, 0x80, 0x80)));
        assert!(text.contains("name = \"grey-co\""), "{text}");
    }

    #[test]
    fn what_is_no_scheme_is_told() {
        let error = theme_of_base16("base00: \"112233\"\n").unwrap_err();
        assert!(error.to_string().contains("base02, base03"), "{error}");
        let error = theme_of_base16("x: 1\nbase00: \"11223\x1b\"\n").unwrap_err();
        assert_eq!(error.to_string(), "line 2: '11223\\x1b' is no colour: six hexadecimal digits");
        assert!(matches!(theme_of_base16(""), Err(SchemeError::Missing(keys)) if keys.len() == 11));
    }

    #[test]
    fn a_light_background_makes_a_light_theme() {
        let text = theme_of_base16(&scheme(|i| format!("base0{i:X}: {0}{0}{0}", if i == 0 { "f0" } else { "20" })));
        assert!(text.unwrap().contains("variant = \"light\""));
    }
}
