//! Escapes control characters that JSON lets be, so that a terminal which shows a file does nothing else with names.

use std::io::{self, Write};

/// The first byte of U+0080 to U+00BF in UTF-8.
const LEAD: u8 = 0xc2;

/// Writes JSON with DEL and the control characters from U+0080 to U+009F as `\u007f`: they stand in strings only.
pub(super) struct JsonControls<'a> {
    out: &'a mut dyn Write,
    /// Whether the last byte was a [`LEAD`], which isn't written yet.
    has_lead: bool,
}

impl<'a> JsonControls<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out, has_lead: false }
    }
}

impl Write for JsonControls<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut escaped = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            match (std::mem::take(&mut self.has_lead), byte) {
                (true, 0x80..=0x9f) | (false, 0x7f) => write!(escaped, "\\u00{byte:02x}")?,
                (true, _) => escaped.extend([LEAD, byte]),
                (false, LEAD) => self.has_lead = true,
                (false, _) => escaped.push(byte),
            }
        }
        self.out.write_all(&escaped)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str, pieces: usize) -> String {
        let mut out = Vec::new();
        let mut writer = JsonControls::new(&mut out);
        for piece in text.as_bytes().chunks(pieces) {
            writer.write_all(piece).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn control_characters_by_hand() {
        assert_eq!(escaped("\"a\u{9b}2J\u{7f}é\u{a0}\u{80}\"", 100), "\"a\\u009b2J\\u007fé\u{a0}\\u0080\"");
        assert_eq!(escaped("", 1), "");
    }

    proptest! {
        /// It is the same text for who reads the JSON, in whatever pieces it is written, and has no control characters.
        #[test]
        fn strings_stay_what_they_are(text in "[a-z\u{7f}-\u{ff}\u{4e00}-\u{4e10}]{0,20}", pieces in 1_usize..5) {
            let json = escaped(&serde_json::to_string(&text).unwrap(), pieces);
            prop_assert!(!json.chars().any(char::is_control));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
