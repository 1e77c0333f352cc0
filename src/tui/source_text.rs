//! Reads source files, or the instructions of functions without lines, to show them: as text that a terminal may see,
//! with what the reader should know of them.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::files::{self, Answerer, ExpectedFile, Refused};
use crate::names::shown;
use crate::stacks::{FunctionLines, Instruction, OFF_CPU, disassemble};

/// A longer file isn't shown, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// How long reading one may take: keys wait meanwhile.
const READING: Duration = Duration::from_secs(1);

/// Cells of a line that are kept.
const LONGEST_LINE: usize = 500;

/// Cells from one tab stop to the next.
const TAB: usize = 4;

/// The lines of a source file, the instructions of a function of which no line is known, or why there are neither.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tui) enum FileText {
    /// The lines, and why they may not be those of the program.
    Lines(Vec<String>, Option<&'static str>),
    /// The instructions in the order of the file, and why there are no lines.
    Instructions(Vec<Instruction>, String),
    /// Why there are none.
    Missing(String),
}

impl Default for FileText {
    fn default() -> Self {
        Self::Missing(String::new())
    }
}

impl FileText {
    /// Reads the file of a function of a program, or the function's instructions where no line of it is known. Where
    /// the program is no longer there, it is as old as the measurement, which began at this time.
    pub(in crate::tui) fn read(function: &FunctionLines, began: SystemTime) -> Self {
        match &function.file {
            // Symbols tell the name of a file, too, and no line of it.
            Some(file) if !function.lines.is_empty() || function.offsets.is_empty() => {
                Self::of_file(file, &function.module, began)
            }
            _ if function.offsets.is_empty() => Self::Missing(no_lines(&function.module)),
            _ => Self::instructions(function),
        }
    }

    fn instructions(function: &FunctionLines) -> Self {
        let program = Path::new(&function.module).to_owned();
        let (name, offsets) = (function.name.clone(), function.offsets.keys().copied().collect::<Vec<_>>());
        let no_lines = no_lines(&function.module);
        // Why a function has no name is told of it, too.
        let missing = |why: String| match function.nameless {
            Some(_) => Self::Missing(why),
            None => Self::Missing(format!("{no_lines}; {why}")),
        };
        let folder = Answerer::folder_of(&program);
        let read = move || disassemble(&program, &name, &offsets);
        match files::within(READING, folder, read) {
            Ok(Ok(mut instructions)) => {
                instructions.iter_mut().for_each(|instruction| instruction.text = plain(&instruction.text));
                Self::Instructions(instructions, no_lines)
            }
            Ok(Err(why)) => missing(why.to_string()),
            Err(why) => missing(format!("its instructions can't be read: {why}")),
        }
    }

    fn of_file(file: &str, module: &str, began: SystemTime) -> Self {
        let path = Path::new(file).to_owned();
        if path.is_relative() {
            return Self::Missing(format!(
                "{} has no folder in the debug information, so it can't be found; if it is yours, compile it by its whole path",
                shown(file)
            ));
        }
        let program = module.strip_suffix(" (deleted)").unwrap_or(module).to_owned();
        let folder = Answerer::folder_of(&path);
        let read = move || read_now(&path, Path::new(&program), began);
        match files::within(READING, folder, read).and_then(|text| text) {
            Ok((text, caution)) => Self::Lines(text.lines().map(plain).collect(), caution),
            Err(why) if why.is_absence() => Self::Missing(missing_file(file)),
            Err(why) => Self::Missing(format!("{} can't be read: {why}", shown(file))),
        }
    }
}

fn missing_file(file: &str) -> String {
    format!(
        "looked for {}, which isn't on this machine: copy the source there, or replay the recording where it is",
        shown(file)
    )
}

fn no_lines(module: &str) -> String {
    match module {
        "" => "no debug information is known for this function".into(),
        OFF_CPU => "this is what a thread waited for, which has no source: select the function that waits".into(),
        module if module.starts_with('[') => format!("{} has no lines here", shown(module)),
        module => format!(
            "{} has no debug information for this function: build it with -g, or install its debug symbols",
            shown(module)
        ),
    }
}

fn read_now(path: &Path, program: &Path, began: SystemTime) -> Result<(String, Option<&'static str>), Refused> {
    let file = files::open(path, &ExpectedFile::any(MOST_BYTES))?;
    let changed = file.metadata().and_then(|about| about.modified()).map_err(Refused::System)?;
    let built = fs::metadata(program).and_then(|about| about.modified());
    let caution = caution(changed, built, began);
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(Refused::System)?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), caution))
}

/// Why lines may be others than those of the program, which was built at this time.
fn caution(changed: SystemTime, built: io::Result<SystemTime>, began: SystemTime) -> Option<&'static str> {
    match built {
        Ok(built) if changed > built => Some("the file is newer than the program: lines may have moved"),
        Err(_) if changed > began => Some("the file was changed since: lines may have moved"),
        Ok(_) | Err(_) => None,
    }
}

/// A line without tabs, safe to show.
fn plain(line: &str) -> String {
    let mut cells = String::new();
    let mut column = 0;
    for c in line.chars().take(LONGEST_LINE) {
        let wide = if c == '\t' { TAB - column % TAB } else { 1 };
        match c {
            '\t' => cells.extend(std::iter::repeat_n(' ', wide)),
            c => cells.push(c),
        }
        column += wide;
    }
    shown(&cells).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::stacks::LineSamples;

    #[test]
    fn lines_have_no_tabs_and_no_escapes() {
        assert_eq!(plain("\tif\t(x)\tf\u{1b}[2J"), format!("    if  (x) f{}", shown("\u{1b}[2J")));
        assert_eq!(plain(&"x".repeat(10_000)).len(), LONGEST_LINE);
    }

    #[test]
    fn a_file_that_is_newer_than_its_program_is_told() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let gone = || Err(io::ErrorKind::NotFound.into());
        let newer = Some("the file is newer than the program: lines may have moved");
        assert_eq!([caution(at(5), Ok(at(4)), at(9)), caution(at(5), Ok(at(5)), at(1))], [newer, None]);
        let changed = Some("the file was changed since: lines may have moved");
        assert_eq!([caution(at(5), gone(), at(4)), caution(at(5), gone(), at(6))], [changed, None]);
    }

    #[test]
    fn what_is_missing_is_said() {
        let read = |file: Option<&str>, module: &str| {
            let function =
                FunctionLines { file: file.map(str::to_owned), module: module.into(), ..FunctionLines::default() };
            FileText::read(&function, SystemTime::UNIX_EPOCH)
        };
        let missing = |words: &str| FileText::Missing(words.into());
        assert_eq!(read(Some("/nonexistent/a.c"), "/p"), FileText::Missing(missing_file("/nonexistent/a.c")));
        let relative = "./a.c has no folder in the debug information, so it can't be found; if it is yours, compile it by its whole path";
        assert_eq!(read(Some("./a.c"), "/p"), missing(relative));
        assert_eq!(read(Some("/dev/null"), "/p"), missing("/dev/null can't be read: it is no regular file"));
        let without = "/p has no debug information for this function: build it with -g, or install its debug symbols";
        assert_eq!(read(None, "/p"), missing(without));
        // A file that symbols tell is no reason to look for its lines.
        let offsets = [(16, LineSamples::default())].into_iter().collect();
        let by_symbol =
            FunctionLines { file: Some("a.c".into()), module: "/p".into(), offsets, ..FunctionLines::default() };
        let FileText::Missing(why) = FileText::read(&by_symbol, SystemTime::UNIX_EPOCH) else {
            panic!("nothing is there")
        };
        assert!(why.starts_with(without), "{why}");
        let path = std::env::temp_dir().join(format!("perfprop-source-{}.c", std::process::id()));
        fs::write(&path, "a\n\tb\n").unwrap();
        let text = read(path.to_str(), "/nonexistent");
        let changed = Some("the file was changed since: lines may have moved");
        assert_eq!(text, FileText::Lines(vec!["a".into(), "    b".into()], changed));
        fs::remove_file(path).unwrap();
    }
}
