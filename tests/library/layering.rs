//! Tests what ARCHITECTURE.md says of the order of rooms, of foreign crates and of `unsafe`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::imports::Source;

/// The folders of rooms, the lower rooms first.
const FOLDERS: [&str; 2] = ["core/src", "src"];

/// The rows of the table of ARCHITECTURE.md whose first column has this title: the words in backquotes
/// of each column.
fn table(title: &str) -> Vec<[Vec<String>; 2]> {
    let text = fs::read_to_string("ARCHITECTURE.md").unwrap();
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let heading = format!("| {title} |");
    let rows = text.lines().skip_while(|line| !line.starts_with(&heading)).skip(2);
    let rows: Vec<_> = rows
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let mut cells = line.split('|').skip(1);
            [words(cells.next().unwrap()), words(cells.next().unwrap())]
        })
        .collect();
    assert!(!rows.is_empty(), "ARCHITECTURE.md has no table {title:?}");
    rows
}

/// The rooms in order. Those of one row may not import one another either.
fn order() -> BTreeMap<String, usize> {
    let rows = table("room").into_iter().enumerate();
    rows.flat_map(|(place, [rooms, _])| rooms.into_iter().map(move |room| (room, place))).collect()
}

/// The imports of `from` that lead to rooms that don't stand above its own.
fn against(order: &BTreeMap<String, usize>, from: &str, imports: &BTreeSet<String>) -> Vec<String> {
    let room = |file: &str| file.split('/').next().unwrap().trim_end_matches(".rs").to_owned();
    let place = |room: &str| *order.get(room).unwrap_or_else(|| panic!("ARCHITECTURE.md has no room {room}"));
    let own = room(from);
    let wrong = imports.iter().filter(|to| room(to) != own && place(&room(to)) >= place(&own));
    wrong.map(|to| format!("{from} imports {to}")).collect()
}

/// The files that aren't in any of these files and folders.
fn outside<'a>(files: &'a BTreeSet<String>, places: &[String]) -> Vec<&'a String> {
    let within = |file: &str| {
        places.iter().any(|place| file == place || file.starts_with(&format!("{}/", place.trim_end_matches('/'))))
    };
    files.iter().filter(|file| !within(file)).collect()
}

#[test]
fn rooms_import_only_rooms_above_them() {
    let (source, order) = (Source::read(&FOLDERS), order());
    let files = source.imports.iter().filter(|(file, _)| !matches!(file.as_str(), "lib.rs" | "main.rs"));
    let wrong: Vec<_> = files.flat_map(|(file, imports)| against(&order, file, imports)).collect();
    assert!(wrong.is_empty(), "ARCHITECTURE.md has these rooms in another order:\n{}", wrong.join("\n"));
    let unused: Vec<_> = order.keys().filter(|room| !source.rooms().contains(room.as_str())).collect();
    assert!(unused.is_empty(), "ARCHITECTURE.md has rooms that {FOLDERS:?} haven't: {unused:?}");
}

/// Lines of a file's code, without its tests, that name a file of the machine in `/proc` or `/sys`. Those of a process
/// (`/proc/PID`, `/proc/self`) and paths of control groups are not the machine's.
fn names_files_of_the_machine(text: &str) -> Vec<&str> {
    // What else is for tests only may stand above code.
    let code = text.lines().take_while(|line| !line.starts_with("mod tests {"));
    let code = code.filter(|line| !line.trim_start().starts_with("//"));
    let of_process = |rest: &str| rest.starts_with('{') || rest.starts_with("self");
    code.filter(|line| {
        let proc = line.split("\"/proc/").skip(1).any(|rest| !of_process(rest));
        proc || line.split("\"/sys/").skip(1).any(|rest| !rest.starts_with("fs/cgroup"))
    })
    .collect()
}

#[test]
fn only_host_reads_files_of_the_machine() {
    let source = Source::read(&FOLDERS);
    for (file, path) in source.paths.iter().filter(|(file, _)| *file != "host.rs") {
        let text = fs::read_to_string(path).unwrap();
        let lines = names_files_of_the_machine(&text);
        assert!(lines.is_empty(), "{file} should ask host.rs: {lines:#?}");
    }
    let text = "read(\"/proc/stat\");\nread(\"/proc/{pid}/stat\");\n#[cfg(test)]\nmod simulation;\n// \"/proc/stat\"\n\
                read(\"/sys/devices\");\n#[cfg(test)]\nmod tests {\n    read(\"/proc/stat\");\n}";
    assert_eq!(names_files_of_the_machine(text), ["read(\"/proc/stat\");", "read(\"/sys/devices\");"]);
}

#[test]
fn the_front_page_lists_rooms_in_their_order() {
    let [lower, text] = FOLDERS.map(|folder| fs::read_to_string(Path::new(folder).join("lib.rs")).unwrap());
    let order = order();
    let mut rooms: Vec<_> = order.iter().collect();
    rooms.sort_by_key(|(_, place)| **place);
    let rooms: Vec<_> = rooms.into_iter().map(|(room, _)| room.as_str()).collect();
    let lines = lower.lines().chain(text.lines());
    let modules: Vec<_> = lines.filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(modules, rooms);
    // Behind the list's first line, as the example stands before it.
    let list = text.lines().skip_while(|line| !line.contains("order of the data"));
    let listed = list.take_while(|line| line.starts_with("//!")).flat_map(|line| line.split("[`").skip(1));
    assert_eq!(listed.filter_map(|link| Some(link.split_once("`]")?.0)).collect::<Vec<_>>(), rooms);
}

#[test]
fn files_that_import_one_another_share_a_folder() {
    let source = Source::read(&FOLDERS);
    let circles = crate::imports::circles(&source.imports);
    let folder = |file: &str| Path::new(file).parent().unwrap().to_owned();
    let wide: Vec<_> =
        circles.iter().filter(|files| files.iter().any(|file| folder(file) != folder(files[0]))).collect();
    assert!(wide.is_empty(), "these files import one another across folders: {wide:#?}");
}

/// What the folders of `within` import of one another. A file that stands in none of them is by itself.
fn folder_imports(source: &Source, within: &str) -> BTreeMap<String, BTreeSet<String>> {
    let place = |file: &str| {
        let inner = file.strip_prefix(within)?.strip_prefix('/')?;
        Some(inner.split('/').next().unwrap_or(inner).to_owned())
    };
    let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, to) in &source.imports {
        let Some(from) = place(file) else { continue };
        let others = to.iter().filter_map(|file| place(file)).filter(|other| *other != from);
        imports.entry(from.clone()).or_default().extend(others);
    }
    imports
}

#[test]
fn folders_of_live_stacks_import_one_another_in_one_direction() {
    let imports = folder_imports(&Source::read(&FOLDERS), "stacks/live");
    assert!(imports["samples"].contains("rings"), "{imports:#?}");
    let circles = crate::imports::circles(&imports);
    assert!(circles.is_empty(), "these folders of stacks/live import one another: {circles:#?}");
}

#[test]
fn foreign_crates_and_unsafe_stay_in_their_places() {
    let source = Source::read(&FOLDERS);
    for [crates, places] in table("crate") {
        for name in &crates {
            let files = match name.as_str() {
                "unsafe" => source.unsafe_code.clone(),
                name => source.foreign.get(&name.replace('-', "_")).cloned().unwrap_or_default(),
            };
            assert!(!files.is_empty(), "ARCHITECTURE.md says where {name} may be used, and nothing uses it");
            let wrong = outside(&files, &places);
            assert!(wrong.is_empty(), "{name} belongs in {places:?}, and is used in {wrong:?}");
        }
    }
}

/// The largest share of type definitions that may share their name with another one, in percent.
const MOST_SHARED: usize = 5;

/// Names that several types may have, and why.
const SHARED_NAMES: [(&str, &str); 1] =
    [("Error", "of the program, of measuring, and of a rate: each is named behind its module")];

/// The names that more than one type has, with the files that define them.
fn shared_names(source: &Source) -> Vec<(&String, &Vec<String>)> {
    let is_allowed = |name: &str| SHARED_NAMES.iter().any(|(allowed, _)| *allowed == name);
    source.types.iter().filter(|(name, files)| files.len() > 1 && !is_allowed(name)).collect()
}

#[test]
fn types_have_names_of_their_own() {
    let source = Source::read(&FOLDERS);
    let shared = shared_names(&source);
    let (count, all) = (
        shared.iter().map(|(_, files)| files.len()).sum::<usize>(),
        source.types.values().map(Vec::len).sum::<usize>(),
    );
    eprintln!("{count} of {all} types share their name with another: {:.1} %", 100.0 * count as f64 / all as f64);
    let list: Vec<_> = shared.iter().map(|(name, files)| format!("{name}: {}", files.join(" "))).collect();
    assert!(all > 0 && 100 * count <= MOST_SHARED * all, "too many types share a name:\n{}", list.join("\n"));
    for (name, why) in SHARED_NAMES {
        assert!(source.types.get(name).is_some_and(|files| files.len() > 1), "no two types are named {name} ({why})");
    }
}

#[test]
fn types_of_one_name_are_found() {
    let file = |file: &str, text: &str| (file.to_owned(), text.to_owned());
    let source = Source::of(&[
        file(
            "a.rs",
            "pub struct Row(u8); impl Iterator for Row { type Item = u8; } trait Get { type Out; } fn f() { enum Deep {} }",
        ),
        file("b.rs", "//! struct Out\nmod tests { type Row = u8; } enum Item { Row, Get } struct Error;"),
        file("c.rs", "struct Error;"),
    ]);
    let names: Vec<_> = source.types.keys().map(String::as_str).collect();
    assert_eq!(names, ["Deep", "Error", "Get", "Item", "Row"]);
    assert_eq!(shared_names(&source), [(&"Row".to_owned(), &vec!["a.rs".to_owned(), "b.rs".to_owned()])]);
}

#[test]
fn wrong_imports_are_found() {
    let file = |file: &str, text: &str| (file.to_owned(), text.to_owned());
    let source = Source::of(&[
        file("lib.rs", "pub mod low; pub mod high;"),
        file(
            "low.rs",
            "//! Not an import: crate::high.\nfn f() { let _ = \"crate::high\"; crate::high::view::draw(); }",
        ),
        file("high/mod.rs", "mod model; mod view; pub use view::draw;"),
        file("high/model/mod.rs", "use super::view::{draw, other::{self as o, Deep}}; use nom::IResult;"),
        file(
            "high/view/mod.rs",
            "mod other; pub fn draw() { unsafe {} } #[cfg(test)] mod tests { use super::super::model::X; }",
        ),
        file("high/view/other.rs", "use super::draw;"),
    ]);
    let strings = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(source.imports["low.rs"], strings(&["high/view/mod.rs"]));
    assert_eq!(source.imports["high/model/mod.rs"], strings(&["high/view/mod.rs", "high/view/other.rs"]));
    assert_eq!(source.imports["high/view/other.rs"], strings(&["high/view/mod.rs"]));
    assert_eq!(source.foreign["nom"], strings(&["high/model/mod.rs"]));
    assert_eq!(source.unsafe_code, strings(&["high/view/mod.rs"]));
    let order = BTreeMap::from([("low".to_owned(), 0), ("high".to_owned(), 1)]);
    assert_eq!(against(&order, "low.rs", &source.imports["low.rs"]), ["low.rs imports high/view/mod.rs"]);
    assert!(against(&order, "high/mod.rs", &strings(&["low.rs"])).is_empty());
    let circles = crate::imports::circles(&source.imports);
    assert_eq!(circles, [["high/model/mod.rs", "high/view/mod.rs", "high/view/other.rs"]]);
    let folders = folder_imports(&source, "high");
    assert_eq!(folders["model"], strings(&["view"]));
    assert_eq!(crate::imports::circles(&folders), [["model", "view"]]);
    assert_eq!(outside(&strings(&["a/b.rs", "ab.rs"]), &["a".into()]), ["ab.rs"]);
}
