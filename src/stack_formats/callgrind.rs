//! Reads `callgrind.out` and `cachegrind.out` files of valgrind into a tree of call paths.
//!
//! Every cost is an event, and calls are counted, not sampled; see [`crate::callgrind`] for how paths are made. cachegrind knows no
//! calls, so that each of its functions stands below the program.

use std::io::Read;

use super::error::{Fault, FaultKind};
use super::lines::InputLines;
use super::options::{ProcessNaming, ReadOptions};
use super::selection::EventSelector;
use crate::callgrind::{CallgrindFile, CallgrindFunction};
use crate::profile::{Frame, FrameId, FrameKind, ProfileEvent, SampleMeasure, Tree};

/// Reads a file of one part or several, which are added up.
pub(super) fn read<R: Read>(lines: &mut InputLines<R>, tree: &mut Tree, options: &ReadOptions) -> Result<(), Fault> {
    let mut parts = CallgrindFile::new();
    let result = take(lines, &mut parts);
    parts.finish();
    let mut chosen = EventSelector::new(&options.events);
    let sum = |name: &String| ProfileEvent::new(name, SampleMeasure::Sum("count".into()));
    let events: Vec<_> = parts.events.iter().map(|name| chosen.takes(name).then(|| tree.event(&sum(name)))).collect();
    let frames: Vec<_> = parts.functions.iter().map(|function| frame(function, tree, options)).collect();
    let has_program = options.process != ProcessNaming::None && !parts.program.is_empty();
    let program = Frame { kind: FrameKind::Process, ..Frame::function(&parts.program) };
    let above = has_program.then(|| tree.frame(&program));
    parts.graph.add_to(tree, above.as_slice(), &frames, &events);
    chosen.missing()?;
    result?;
    if parts.is_whole { Ok(()) } else { Err(Fault::of_file(FaultKind::CutOff)) }
}

fn take<R: Read>(lines: &mut InputLines<R>, parts: &mut CallgrindFile) -> Result<(), Fault> {
    loop {
        let number = lines.number() + 1;
        match lines.next() {
            Ok(Some(line)) => parts
                .line(&String::from_utf8_lossy(line))
                .map_err(|wrong| Fault::at(number, FaultKind::Callgrind(wrong)))?,
            Ok(None) => return Ok(()),
            Err(broken) => return Err(Fault::broken(broken, number)),
        }
    }
}

fn frame(function: &CallgrindFunction, tree: &mut Tree, options: &ReadOptions) -> FrameId {
    let mut name = String::new();
    let frame = options.names.frame(function.plain_name(), &function.module, &mut name);
    let file = if frame.module.is_empty() { "" } else { function.file.as_str() };
    tree.frame(&Frame { file, ..frame })
}

/// Whether a file that begins so is callgrind's.
pub(super) fn is_callgrind(begun: &[u8]) -> bool {
    let mut lines = begun.split(|&byte| byte == b'\n').take(64);
    begun.starts_with(b"# callgrind format")
        || lines.any(|line| line.starts_with(b"events: ") || line.starts_with(b"creator: callgrind"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::profile::Amount;

    const FILE: &str = "# callgrind format\nversion: 1\ncmd: ./p 1\npositions: line\nevents: Ir Dr\nsummary: 20 5\n\n\
        fl=(1) p.c\nfn=(1) main\n3 1\ncfn=(2) fib\ncalls=1 9\n3 19 5\n\n\
        fn=(2)\n9 4 2\ncfn=(3) fib'2\ncalls=2 9\n9 15 3\n\nfn=(3)\n9 15 3\ncfn=(3)\ncalls=6 9\n9 12 2\n";

    fn imported(text: &str) -> (Tree, Result<(), Fault>) {
        let mut tree = Tree::default();
        let result = read(&mut InputLines::new(Vec::new(), text.as_bytes()), &mut tree, &ReadOptions::default());
        (tree, result)
    }

    #[test]
    fn costs_are_events_and_recursion_is_folded() {
        let (tree, result) = imported(&format!("{FILE}totals: 20 5\n"));
        assert!(result.is_ok(), "{result:?}");
        let [ir, dr] = ["Ir", "Dr"].map(|name| tree.find_event(name).unwrap());
        let rows: Vec<_> = tree
            .walk()
            .skip(1)
            .map(|node| (tree.names(node.id())[1..].join(";"), node.calls(), node.weight(ir), node.weight(dr)))
            .collect();
        let expected = [("p", 0, 0, 0), ("p;main", 0, 1, 0), ("p;main;fib", 9, 19, 5)];
        assert_eq!(rows, expected.map(|(path, calls, ir, dr)| (path.into(), calls, ir, dr)));
        assert_eq!((tree.total(ir), tree.inclusive(dr)[0]), (Amount { samples: 0, weight: 20 }, tree.total(dr)));
    }

    #[test]
    fn functions_of_cachegrind_stand_beside_one_another() {
        let file = "desc: D1 cache: 32768 B\ncmd: ./p 1\nevents: Ir\nfl=p.c\nfn=main\n3 5\n4 1\nfn=f\n9 2\n";
        assert!(is_callgrind(file.as_bytes()));
        let (tree, result) = imported(&format!("{file}summary: 8\n"));
        assert!(result.is_ok(), "{result:?}");
        let ir = tree.find_event("Ir").unwrap();
        let rows = tree.walk().filter(|node| node.weight(ir) > 0);
        let rows: Vec<_> = rows.map(|node| (tree.names(node.id())[1..].join(";"), node.weight(ir))).collect();
        assert_eq!(rows, [("p;main".to_owned(), 6), ("p;f".to_owned(), 2)]);
    }

    #[test]
    fn what_stands_before_a_fault_is_kept() {
        let (_, cut) = imported(FILE);
        assert!(matches!(cut.unwrap_err().what, FaultKind::CutOff));
        let (tree, broken) = imported(&format!("{FILE}fn=(77)\n"));
        assert_eq!(broken.unwrap_err().line, Some(FILE.lines().count() as u64 + 1));
        assert_eq!(tree.total(tree.default_event().unwrap()).weight, 20);
        assert!(imported("main;f 12\n").1.is_err());
    }
}
