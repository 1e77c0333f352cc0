//! Reads and writes folded stacks, `main;f;g 12`. The number behind the last blank is the weight of the path. A `;` within a
//! name is `\x3b`.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use super::error::{Fault, FaultKind};
use super::lines::InputLines;
use super::options::ReadOptions;
use super::options::WriteOptions;
use super::selection::EventSelector;
use crate::names::shown;
use crate::profile::{Amount, Frame, FrameId, NodeId, ProfileEvent, RepeatFolding, SampleMeasure, Tree, TreeOptions};

/// Reads folded stacks. Weights are taken for samples, as that is what they are where nobody says else.
pub(super) fn read<R: Read>(lines: &mut InputLines<R>, tree: &mut Tree, options: &ReadOptions) -> Result<(), Fault> {
    let mut chosen = EventSelector::new(&options.events);
    if !chosen.takes("samples") {
        return chosen.missing();
    }
    if let Some(number) = two_counts(lines.ahead()) {
        return Err(Fault::at(number, FaultKind::TwoCounts));
    }
    let event = tree.event(&ProfileEvent::new("samples", SampleMeasure::Samples));
    let stacks = tree.sampled();
    loop {
        let number = lines.number() + 1;
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(broken) => return Err(Fault::broken(broken, number)),
        };
        if is_comment(line) || line.trim_ascii().is_empty() {
            continue;
        }
        let (path, count) = split(line).ok_or_else(|| Fault::at(number, wrong_count(line)))?;
        let path = String::from_utf8_lossy(path);
        let frames: Vec<FrameId> = path.split(';').map(|name| tree.frame(&Frame::function(&unescape(name)))).collect();
        tree.stack(stacks, frames, event, Amount { samples: count, weight: count });
    }
}

/// Whether a line is one for people: a `#` with a blank behind it. Names of threads may begin with one, too.
pub(super) fn is_comment(line: &[u8]) -> bool {
    line.strip_prefix(b"#").is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// Whether a line is a stack with any number behind it, also one that isn't read, such as `a;b -1`.
pub(super) fn is_stack(line: &[u8]) -> bool {
    split(line).is_some() || line.contains(&b';') && !line.contains(&0) && any_number(line).is_some()
}

/// The number behind the last blank of a line, whole or not.
fn any_number(line: &[u8]) -> Option<f64> {
    let line = line.trim_ascii_end();
    let blank = line.iter().rposition(u8::is_ascii_whitespace)?;
    let number: f64 = std::str::from_utf8(&line[blank + 1..]).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// What is wrong with a line that isn't read.
fn wrong_count(line: &[u8]) -> FaultKind {
    match any_number(line) {
        Some(number) if number < 0.0 => FaultKind::BelowZero,
        Some(number) if number.fract() != 0.0 => FaultKind::NotWhole,
        _ => FaultKind::NoCount,
    }
}

/// The number of the first stack where all of these lines have two counts, as difffolded.pl writes them: the last of a name may be a
/// number in one line, but not in all.
fn two_counts(ahead: &[u8]) -> Option<u64> {
    let has_two = |line: &[u8]| split(line).is_some_and(|(path, _)| path.contains(&b';') && split(path).is_some());
    let lines = (1..).zip(ahead.split_inclusive(|&byte| byte == b'\n'));
    let stacks = lines.filter(|(_, line)| !is_comment(line) && !line.trim_ascii().is_empty());
    // The last line may be cut off.
    let mut stacks = stacks.filter(|(_, line)| line.ends_with(b"\n") || has_two(line)).peekable();
    let first = stacks.peek()?.0;
    stacks.all(|(_, line)| has_two(line)).then_some(first)
}

/// A line's path and number.
pub(super) fn split(line: &[u8]) -> Option<(&[u8], u64)> {
    let line = line.trim_ascii_end();
    let blank = line.iter().rposition(u8::is_ascii_whitespace)?;
    let count = std::str::from_utf8(&line[blank + 1..]).ok()?.parse().ok()?;
    let path = line[..blank].trim_ascii_end();
    let is_text = !path.is_empty() && !path.contains(&0);
    is_text.then_some((path, count))
}

/// Writes a line for each path of names that has a number, sorted by the paths' bytes.
pub(super) fn write(tree: &Tree, options: &WriteOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut names = Tree::new(TreeOptions { repeats: RepeatFolding::Keep, cap: usize::MAX, ..tree.options() });
    let escaped: Vec<String> = tree.frames().map(|frame| escape(frame.name)).collect();
    names.merge_named(tree, |frame| Frame::function(&escaped[frame.index()]));
    // Merged into an empty tree, events keep their numbers.
    let event = options.event(tree);
    let mut path = Vec::new();
    let mut ahead = children(&names, NodeId::ROOT, 0);
    let own = event.map_or(0, |event| options.unit.of(&names.node(NodeId::ROOT), event));
    if own > 0 {
        writeln!(out, "[root] {own}")?;
    }
    while let Some(PendingPart { node, start, part }) = ahead.pop() {
        path.truncate(start);
        path.extend_from_slice(names.node(node).frame().name.as_bytes());
        match part {
            NodePart::Own => {
                let number = event.map_or(0, |event| options.unit.of(&names.node(node), event));
                if number > 0 {
                    out.write_all(&path)?;
                    writeln!(out, " {number}")?;
                }
            }
            NodePart::Below => {
                path.push(b';');
                ahead.extend(children(&names, node, path.len()));
            }
        }
    }
    Ok(())
}

/// What of a node is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NodePart {
    Own,
    Below,
}

/// Part of a node, whose name begins at this byte of the path.
struct PendingPart {
    node: NodeId,
    start: usize,
    part: NodePart,
}

/// Both parts of all children, the last in order first. In the order of bytes a path's own line may be parted from
/// those below it: `a`, `a b`, `a;b`.
fn children(tree: &Tree, parent: NodeId, start: usize) -> Vec<PendingPart> {
    let children = tree.node(parent).children();
    let parts = |node| [NodePart::Own, NodePart::Below].map(|part| PendingPart { node, start, part });
    let mut items: Vec<PendingPart> = children.into_iter().flat_map(parts).collect();
    let key = |item: &PendingPart| -> (&[u8], &[u8]) {
        let name = tree.node(item.node).frame().name.as_bytes();
        (name, if item.part == NodePart::Below { b";" } else { b"" })
    };
    items.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        b.0.iter().chain(b.1).cmp(a.0.iter().chain(a.1))
    });
    items
}

/// What stands for the sign between names within one, and for a backslash in front of what would be read as either.
const SEMICOLON: &str = r"\x3b";
const BACKSLASH: &str = r"\x5c";

/// A name that is one frame of one line wherever it is read, and another one than any other name.
fn escape(name: &str) -> String {
    let literal = shown(name).replace(BACKSLASH, r"\x5cx5c").replace(SEMICOLON, r"\x5cx3b");
    literal.replace(';', SEMICOLON)
}

/// The name that was escaped. Other escapes, which stand for what a terminal must not get, stay.
fn unescape(name: &str) -> Cow<'_, str> {
    if !name.contains(r"\x") {
        return Cow::Borrowed(name);
    }
    let (mut out, mut rest) = (String::with_capacity(name.len()), name);
    while let Some(place) = rest.find('\\') {
        out += &rest[..place];
        rest = &rest[place..];
        let known = [(SEMICOLON, ';'), (BACKSLASH, '\\')].into_iter();
        let found = known.filter_map(|(escape, sign)| Some((rest.strip_prefix(escape)?, sign))).next();
        let (behind, sign) = found.unwrap_or((&rest[1..], '\\'));
        out.push(sign);
        rest = behind;
    }
    Cow::Owned(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_apart_and_are_read_back() {
        let names = ["a;b", "a:b", r"a\x3bb", r"a\x5cx3bb", r"a\;b", r"\", r"a\x41", "é;"];
        let escaped = names.map(escape);
        assert!(escaped.iter().all(|name| !name.contains(';')), "{escaped:?}");
        assert_eq!(escaped[0], r"a\x3bb");
        assert_eq!(escaped.each_ref().map(|name| unescape(name)), names);
    }

    #[test]
    fn stacks_with_two_counts_each_are_told_from_names_with_numbers() {
        let of = |text: &str| two_counts(text.as_bytes());
        assert_eq!(
            [of("a;b 10 20\na;c 5 0\n"), of("# x\n\na;b 1 2"), of("a;b 1 2\na;c 3")],
            [Some(1), Some(3), Some(1)]
        );
        assert_eq!([of(""), of("a;b 1\n"), of("a;cpu 1 2\na;b 3\n"), of("cpu 1 2\n")], [None; 4]);
    }

    #[test]
    fn a_stack_with_a_number_that_is_not_read_is_one_all_the_same() {
        assert!(["a;b 12", "a b 12", "a;b -10", "a;b 1.5\r"].iter().all(|line| is_stack(line.as_bytes())));
        assert!(!["a;b", "a b -1", "a;b x", "-1", "a;-1", ""].iter().any(|line| is_stack(line.as_bytes())));
    }
}
