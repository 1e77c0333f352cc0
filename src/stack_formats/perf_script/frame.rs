//! Parses a line of `perf script` that names a frame: its address, its symbol, its module.

use std::borrow::Cow;

use super::head::is_head;
use crate::stack_formats::names::UNKNOWN;

/// The symbol and the module of `address symbol (module)`. An address alone is its own symbol; a module
/// alone has an unknown one.
pub(super) fn parse_frame(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let (address, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    if address.is_empty() || !address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let rest = rest.trim();
    if rest.is_empty() {
        return Some((Cow::Owned(format!("0x{address}")), ""));
    }
    let (symbol, module) = split_module(rest);
    Some((Cow::Borrowed(if symbol.is_empty() { UNKNOWN } else { symbol }), module))
}

/// `symbol (module)` apart; a file that is gone says `(deleted)`.
fn split_module(text: &str) -> (&str, &str) {
    let Some(inner) = text.strip_suffix(')') else { return (text, "") };
    let inner = inner.strip_suffix(" (deleted)").unwrap_or(inner);
    match behind_offset(inner).or_else(|| last_open(inner)) {
        Some(0) => ("", &inner[1..]),
        Some(open) if inner[..open].ends_with(' ') => (inner[..open].trim(), &inner[open + 1..]),
        _ => (text, ""),
    }
}

/// The place of the parenthesis of a module behind a symbol with its offset, `f+0x1d (`.
fn behind_offset(text: &str) -> Option<usize> {
    let digits = text.find("+0x")? + 3;
    let end = digits + text[digits..].find(|c: char| !c.is_ascii_hexdigit())?;
    (end > digits && text[end..].starts_with(" (")).then_some(end + 1)
}

/// The place of the last parenthesis that stays open: all behind it is the module, or arguments of a function.
fn last_open(text: &str) -> Option<usize> {
    let mut closed = 0_usize;
    for (place, c) in text.char_indices().rev() {
        match c {
            ')' => closed += 1,
            '(' if closed == 0 => return Some(place),
            '(' => closed -= 1,
            _ => {}
        }
    }
    None
}

/// A line of a frame as it is looked up: without the address and the offset, where a symbol stands between them.
pub(super) fn put_frame(line: &[u8], text: &mut Vec<u8>) {
    text.clear();
    let (symbol, module) = frame_parts(line).unwrap_or((line, b""));
    text.extend_from_slice(symbol);
    text.push(b'\n');
    text.extend_from_slice(module);
}

/// Whether a line that isn't indented is a frame: heads begin with a name, and don't end with a module unless a frame stands on them.
pub(super) fn is_frame(line: &[u8]) -> bool {
    let has_module = parse_frame(&String::from_utf8_lossy(line)).is_some_and(|(_, module)| !module.is_empty());
    has_module && !is_head(line)
}

/// Symbol and module of `address symbol+0xoffset (module)`, where nothing else can be meant.
fn frame_parts(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = line[digits..].strip_prefix(b" ").filter(|_| digits > 0)?;
    let inner = rest.strip_suffix(b")")?;
    let module = memchr::memrchr2(b'(', b')', inner).filter(|&at| inner[at] == b'(')?;
    let before = inner[..module].strip_suffix(b" ")?;
    let offset = before.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let symbol = before[..before.len() - offset].strip_suffix(b"+0x").unwrap_or(before);
    (!symbol.is_empty()).then_some((symbol, &inner[module..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_known_without_address_and_offset() {
        let parts = |line: &'static str| {
            frame_parts(line.as_bytes())
                .map(|(symbol, module)| [symbol, module].map(|part| std::str::from_utf8(part).unwrap_or_default()))
        };
        for line in ["\t 5b f+0x1 (/x)", "\t 7f f+0x22 (/x)", "\t ff f (/x)"] {
            assert_eq!(parts(line), Some(["f", "(/x"]), "{line}");
        }
        assert_eq!(parts("\t 5b operator++0x1 (/x)"), Some(["operator+", "(/x"]));
        for line in ["\t 5b", "\t 5b f", "\t 5b  (/x)", "\t xy f (/x)", "\t 5b f (/x (deleted))", "\t 5b f(int)"] {
            assert_eq!(parts(line), None, "{line}");
        }
    }

    #[test]
    fn frames_without_blanks_in_front_are_no_heads() {
        let frames = ["5b f+0x1 (/x)", "ffff8100 [unknown] ([kernel.kallsyms])", "5b f (/x (deleted))"];
        assert!(frames.iter().all(|line| is_frame(line.as_bytes())));
        let heads = ["dd 7 1.5:  12 cycles:", "dd 7 1.5:  12 cycles:  5b f+0x1 (/x)", "rec 7 (x)", "dd", "5b f(int)"];
        assert!(!heads.iter().any(|line| is_frame(line.as_bytes())));
    }

    #[test]
    fn frames_are_taken_apart() {
        for (line, symbol, module) in [
            ("1140 Big::operator+(Big const&)+0x1d (/bin/x)", "Big::operator+(Big const&)+0x1d", "/bin/x"),
            ("1140 f+0x1 (/tmp/with space/x)", "f+0x1", "/tmp/with space/x"),
            ("1140 f+0x1 (/tmp/x (deleted))", "f+0x1", "/tmp/x"),
            ("1140 f+0x1 (/tmp/x(y)z)", "f+0x1", "/tmp/x(y)z"),
            ("1140 f+0x1 (/tmp/x (y)/z)", "f+0x1", "/tmp/x (y)/z"),
            ("1140 f+0x1 (/tmp/x)y (deleted))", "f+0x1", "/tmp/x)y"),
            ("1140 f(int)+0x1 (/tmp/x(y)", "f(int)+0x1", "/tmp/x(y"),
            ("1140 f (/tmp/x(y)z)", "f", "/tmp/x(y)z"),
            ("1140 g(int (*) (char)) (/tmp/(x))", "g(int (*) (char))", "/tmp/(x)"),
            ("1140  (/tmp/x(y))", "[unknown]", "/tmp/x(y)"),
            ("1140 [unknown] ([unknown])", "[unknown]", "[unknown]"),
            ("1140  (/lib/x.so)", "[unknown]", "/lib/x.so"),
            ("1140 f(void (*)(int))", "f(void (*)(int))", ""),
            ("1140 operator new(unsigned long)", "operator new(unsigned long)", ""),
            ("1140", "0x1140", ""),
        ] {
            assert_eq!(parse_frame(line), Some((Cow::Borrowed(symbol), module)), "{line}");
        }
        assert_eq!(parse_frame("no address"), None);
    }
}
