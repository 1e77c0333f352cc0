//! Parses `callgrind.out` files into functions with their costs and calls.
//!
//! The format is described in valgrind's manual, "Callgrind Format Specification". Names stand in full
//! where they are met first, `fn=(3) main`, and by their number from then on; costs are behind positions,
//! and zeros at their end are left out. Files of cachegrind are read too: they have no calls, and end with `summary:`.

use std::collections::HashMap;
use std::fmt;

use rustc_hash::FxBuildHasher;

use super::{CallGraph, CallgrindFunction, FunctionId, add};

/// What the lines so far say; lines come one at a time, so a file may be as long as it likes.
#[derive(Debug, Default)]
pub struct CallgrindFile {
    /// The names of the costs; empty before the line `events:`.
    pub events: Vec<String>,
    /// The first word of the command, without its folder; empty where no line has it.
    pub program: String,
    /// The graph of all lines so far.
    pub graph: CallGraph,
    /// The functions of the graph.
    pub functions: Vec<CallgrindFunction>,
    /// Whether the line `totals:`, the last of a part, was met, or cachegrind's, `summary:` behind costs.
    pub is_whole: bool,
    /// Whether costs stand behind the last line `events:`.
    has_costs: bool,
    /// The sum of the lines `summary:`.
    summary: Vec<u64>,
    /// How many words before the costs are a position.
    positions: usize,
    ids: HashMap<(NumberedText, NumberedText, NumberedText), FunctionId, FxBuildHasher>,
    files: NumberedTexts,
    objects: NumberedTexts,
    symbols: NumberedTexts,
    object: NumberedText,
    file: NumberedText,
    current: Option<FunctionId>,
    /// The callee that was named, and what of its place differs from the caller's.
    called: Called,
    expects: Expects,
}

/// The function of what callgrind says of none.
const UNATTRIBUTED: &str = "(unattributed)";

/// Number by which the file stands for a text.
type NumberedText = u32;

#[derive(Debug, Default)]
struct Called {
    object: Option<NumberedText>,
    file: Option<NumberedText>,
    function: Option<FunctionId>,
}

/// What the next line of numbers means.
#[derive(Clone, Copy, Debug, Default)]
enum Expects {
    /// Costs of the function itself.
    #[default]
    Own,
    /// The inclusive costs of this many calls.
    Calls(u64),
    /// Where a jump begins, which costs nothing.
    Jump,
}

/// Texts that were given numbers, by callgrind and by us.
#[derive(Debug, Default)]
struct NumberedTexts {
    texts: Vec<String>,
    by_text: HashMap<String, NumberedText, FxBuildHasher>,
    by_number: HashMap<u32, NumberedText, FxBuildHasher>,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Costs before a line `events:`.
    NoEvents,
    /// Costs before a line `fn=`, or calls before `cfn=`.
    NoFunction,
    /// A name by a number that none was given.
    NoName,
    /// Neither a line that the format has nor costs.
    NoCosts,
    /// Another part of the file has other events.
    OtherEvents,
}

/// Why a line was not taken.
pub type Faulty = Result<(), Wrong>;

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoEvents => "costs before a line `events:` says of what",
            Self::NoFunction => "costs before a line `fn=` says of which function",
            Self::NoName => "a name by its number, which no line before gave it",
            Self::NoCosts => "neither costs nor a line that callgrind writes",
            Self::OtherEvents => "costs of other events than those before",
        })
    }
}

impl NumberedTexts {
    /// The number of `(3) text`, `(3)` or `text`.
    fn take(&mut self, text: &str) -> Result<NumberedText, Wrong> {
        let numbered = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let numbered = numbered.and_then(|(number, rest)| Some((number.parse().ok()?, rest.trim_start())));
        match numbered {
            Some((number, "")) => self.by_number.get(&number).copied().ok_or(Wrong::NoName),
            Some((number, text)) => {
                let name = self.intern(text);
                self.by_number.insert(number, name);
                Ok(name)
            }
            None => Ok(self.intern(text)),
        }
    }

    fn intern(&mut self, text: &str) -> NumberedText {
        if let Some(&name) = self.by_text.get(text) {
            return name;
        }
        let name = self.texts.len() as NumberedText;
        self.texts.push(text.into());
        self.by_text.insert(text.into(), name);
        name
    }

    /// The text; callgrind writes `???` for what it doesn't know.
    fn text(&self, name: NumberedText) -> String {
        let text = self.texts.get(name as usize).map_or("", String::as_str);
        if text == "???" { String::new() } else { text.into() }
    }
}

impl CallgrindFile {
    /// A parser that has read nothing.
    pub fn new() -> Self {
        let mut parts = Self { positions: 1, ..Self::default() };
        // The names that hold before the first line gives others.
        (parts.object, parts.file) = (parts.objects.intern(""), parts.files.intern(""));
        parts
    }

    /// Takes a line without its end.
    ///
    /// # Errors
    /// Returns what is wrong with the line; then it changes nothing, and the next lines can be taken.
    pub fn line(&mut self, line: &str) -> Faulty {
        let line = line.trim_end();
        match line.as_bytes().first() {
            None | Some(b'#') => Ok(()),
            Some(b'0'..=b'9' | b'+' | b'-' | b'*') => self.costs(line),
            Some(_) => match line.find(['=', ':']) {
                Some(at) if line.as_bytes()[at] == b'=' => self.place(&line[..at], &line[at + 1..]),
                Some(at) => self.head(&line[..at], line[at + 1..].trim()),
                None => Err(Wrong::NoCosts),
            },
        }
    }

    /// Ends a whole file: what callgrind counted and says of no function, as of a few instructions
    /// at a program's end, becomes a function of its own, so that totals are those of `summary:`.
    pub fn finish(&mut self) {
        let totals = self.graph.totals();
        let rest: Vec<u64> = self.summary.iter().zip(totals).map(|(all, known)| all.saturating_sub(known)).collect();
        if self.is_whole && rest.iter().any(|&rest| rest > 0) {
            let function = FunctionId(self.functions.len() as u32);
            self.functions.push(CallgrindFunction { name: UNATTRIBUTED.into(), ..CallgrindFunction::default() });
            self.graph.add_own(function, &rest);
        }
    }

    fn head(&mut self, key: &str, value: &str) -> Faulty {
        // What a file holds of several parts ends with the totals of the last.
        if matches!(key, "part" | "events" | "summary") {
            self.is_whole = false;
        }
        match key {
            "events" => {
                self.has_costs = false;
                let events: Vec<String> = value.split_whitespace().map(str::to_owned).collect();
                if !self.events.is_empty() && self.events != events {
                    return Err(Wrong::OtherEvents);
                }
                if self.events.is_empty() {
                    self.graph = CallGraph::new(events.len());
                    self.events = events;
                }
            }
            "positions" => self.positions = value.split_whitespace().count(),
            "cmd" => {
                let first = value.split_whitespace().next().unwrap_or_default();
                self.program = first.rsplit('/').next().unwrap_or_default().to_owned();
            }
            "summary" => {
                self.summary.resize(self.events.len(), 0);
                let costs: Vec<u64> = value.split_whitespace().filter_map(|cost| cost.parse().ok()).collect();
                add(&mut self.summary, &costs);
                self.is_whole = self.has_costs;
            }
            "totals" => self.is_whole = true,
            _ => {}
        }
        Ok(())
    }

    fn place(&mut self, key: &str, value: &str) -> Faulty {
        match key {
            "ob" => self.object = self.objects.take(value)?,
            "fl" | "fi" | "fe" => self.file = self.files.take(value)?,
            "fn" => {
                let name = self.symbols.take(value)?;
                self.current = Some(self.function(self.object, self.file, name));
            }
            "cob" => self.called.object = Some(self.objects.take(value)?),
            "cfi" | "cfl" => self.called.file = Some(self.files.take(value)?),
            "cfn" => {
                let name = self.symbols.take(value)?;
                let (object, file) = (self.called.object.take(), self.called.file.take());
                let callee = self.function(object.unwrap_or(self.object), file.unwrap_or(self.file), name);
                self.called.function = Some(callee);
            }
            "calls" => {
                let count = value.split_whitespace().next().and_then(|count| count.parse().ok());
                self.expects = Expects::Calls(count.ok_or(Wrong::NoCosts)?);
            }
            "jump" | "jcnd" => self.expects = Expects::Jump,
            // Where a jump leads may be named first there.
            "jfi" => drop(self.files.take(value)?),
            "jfn" => drop(self.symbols.take(value)?),
            // Frames of a call that was inlined, and what later versions add.
            _ => {}
        }
        Ok(())
    }

    fn function(&mut self, object: NumberedText, file: NumberedText, name: NumberedText) -> FunctionId {
        let next = FunctionId(self.functions.len() as u32);
        let id = *self.ids.entry((object, file, name)).or_insert(next);
        if id == next {
            let (name, module) = (self.symbols.text(name), self.objects.text(object));
            self.functions.push(CallgrindFunction { name, module, file: self.files.text(file) });
        }
        id
    }

    fn costs(&mut self, line: &str) -> Faulty {
        let expects = std::mem::take(&mut self.expects);
        if matches!(expects, Expects::Jump) {
            return Ok(());
        }
        if self.events.is_empty() {
            return Err(Wrong::NoEvents);
        }
        let current = self.current.ok_or(Wrong::NoFunction)?;
        self.has_costs = true;
        let numbers = line.split_whitespace().skip(self.positions).map(str::parse);
        let costs: Vec<u64> = numbers.collect::<Result<_, _>>().map_err(|_| Wrong::NoCosts)?;
        if costs.len() > self.events.len() {
            return Err(Wrong::NoCosts);
        }
        match expects {
            Expects::Calls(count) => {
                let callee = self.called.function.take().ok_or(Wrong::NoFunction)?;
                self.graph.add_calls(current, callee, count, &costs);
            }
            Expects::Own | Expects::Jump => self.graph.add_own(current, &costs),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "# callgrind format\nversion: 1\ncmd: /bin/p -x\npositions: instr line\nevents: Ir Dr\n\
        summary: 14 3\n\n\
        ob=(1) /bin/p\nfl=(1) p.c\nfn=(1) main\n0x10 1 1\ncfn=(2) f\ncalls=2 0x20 9\n+4 2 8 3\n\
        fi=(2) p.h\n+1 * 0 0\njump=3 0x11 1\n0x10 1\n\
        cob=(2) /lib/c\ncfi=(3) ???\ncfn=(3) h\ncalls=1 0 0\n* * 5\n\n\
        fl=(1)\nfn=(2)\n0x20 9 8 3\n\nob=(2)\nfl=(3)\nfn=(3)\n0x0 0 5\n\ntotals: 14 3\n";

    fn parsed(text: &str) -> Result<CallgrindFile, Wrong> {
        let mut parts = CallgrindFile::new();
        text.lines().try_for_each(|line| parts.line(line)).map(|()| parts)
    }

    #[test]
    fn names_positions_and_places_of_callees_are_read() {
        let parts = parsed(FILE).unwrap();
        assert!(parts.is_whole);
        assert_eq!((parts.program.as_str(), parts.events.join(" ")), ("p", "Ir Dr".into()));
        let names: Vec<_> = parts.functions.iter().map(|f| [f.name.as_str(), &f.module, &f.file].join(" ")).collect();
        assert_eq!(names, ["main /bin/p p.c", "f /bin/p p.c", "h /lib/c "]);
        assert_eq!(parts.graph.totals(), [14, 3]);
        let calls: Vec<_> = parts.graph.calls().into_iter().map(|(a, b, calls)| (a.0, b.0, calls.clone())).collect();
        let expected = |count, costs: [u64; 2]| CallCosts { count, costs: costs.to_vec() };
        assert_eq!(calls, [(0, 1, expected(2, [8, 3])), (0, 2, expected(1, [5, 0]))]);
    }

    use super::super::CallCosts;

    /// As `--collect-jumps=yes` writes them.
    #[test]
    fn what_a_jump_names_first_is_known_from_then_on() {
        let file = "events: Ir\nfl=(1) p.c\nfn=(1) main\n\
            jfi=(2) p.h\njump=3 9\n1\njfi=(2)\njfn=(2) f\njcnd=1/3 9\n1\n1 4\nfi=(2)\n2 1\nfn=(2)\n9 5\n";
        let parts = parsed(file).unwrap();
        let names: Vec<_> = parts.functions.iter().map(|f| [f.name.as_str(), &f.file].join(" ")).collect();
        assert_eq!((names.join(", "), parts.graph.totals()), ("main p.c, f p.h".into(), vec![10]));
    }

    #[test]
    fn totals_are_those_of_the_summary() {
        let mut parts = parsed(&FILE.replace("summary: 14 3", "summary: 16 3")).unwrap();
        parts.finish();
        assert_eq!(parts.graph.totals(), [16, 3]);
        assert_eq!(parts.functions.last().unwrap().name, "(unattributed)");
        let mut exact = parsed(FILE).unwrap();
        exact.finish();
        assert_eq!((exact.graph.totals(), exact.functions.len()), (vec![14, 3], 3));
    }

    #[test]
    fn a_file_of_cachegrind_ends_with_its_summary() {
        let file = "desc: I1 cache: 32768 B\ncmd: /bin/p -x\nevents: Ir Dr\nfl=p.c\nfn=main\n3 5 1\n4 1\n\
            fl=???\nfn=(below main)\n0 2 2\n";
        assert!(!parsed(file).unwrap().is_whole);
        let mut parts = parsed(&format!("{file}summary: 8 3\n")).unwrap();
        parts.finish();
        assert_eq!((parts.is_whole, parts.graph.totals().to_vec()), (true, vec![8, 3]));
        let names: Vec<_> = parts.functions.iter().map(|f| [f.name.as_str(), &f.file].join(" ")).collect();
        assert_eq!((names.join(", "), parts.program.as_str()), ("main p.c, (below main) ".into(), "p"));
    }

    #[test]
    fn a_file_that_is_cut_off_in_a_later_part_has_no_costs_that_nobody_read() {
        let of_two = |second: &str| {
            let mut parts = parsed(&format!("{FILE}\npart: 2\nevents: Ir Dr\nsummary: 10 2\n{second}")).unwrap();
            parts.finish();
            (parts.is_whole, parts.graph.totals().to_vec())
        };
        assert_eq!(of_two("\nfn=(2)\n0x20 9 8 2\n"), (false, vec![22, 5]));
        assert_eq!(of_two("\nfn=(2)\n0x20 9 8 2\n\ntotals: 10 2\n"), (true, vec![24, 5]));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| parsed(text).err();
        assert_eq!(wrong("fn=(1) f\n1 1\n"), Some(Wrong::NoEvents));
        assert_eq!(wrong("events: Ir\n1 1\n"), Some(Wrong::NoFunction));
        assert_eq!(wrong("events: Ir\nfn=(7)\n"), Some(Wrong::NoName));
        assert_eq!(wrong("events: Ir\nfn=f\n1 2 3\n"), Some(Wrong::NoCosts));
        assert_eq!(wrong("events: Ir\nfn=f\ncalls=1 0\n1 2\n"), Some(Wrong::NoFunction));
        assert_eq!(wrong("events: Ir\nevents: Dr\n"), Some(Wrong::OtherEvents));
        assert_eq!(wrong("hello\n"), Some(Wrong::NoCosts));
    }

    proptest! {
        #[test]
        fn nothing_that_is_read_panics(text in "(events: Ir|fn=\\(1\\) f|cfn=|calls=|[-+*0-9(). =:a-z\n]){0,60}") {
            let _ = parsed(&text);
        }
    }
}
