//! Reads the vendors' event tables, as perf has them in `pmu-events`: named events and the terms that they
//! stand for.
//!
//! Such a folder has JSON files, each a list of objects with `EventName`, `EventCode`, `UMask` and so
//! on. Several of them stand under `arch/<isa>/`, with a `mapfile.csv` that says which is for which
//! CPU.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::cpu;
use super::machine::{self, Machine};
use super::table_event::TableEvent;
use crate::names::{shown, shown_path};

/// The largest file that is read; the vendors' largest has 4 MB.
const LARGEST_FILE: u64 = 64 << 20;

/// The most events of all files together; the vendors' largest tables have 20,000.
const MOST_EVENTS: usize = 1 << 18;

/// The most problems that are reported.
const MOST_PROBLEMS: usize = 20;

/// The events of one CPU's tables.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    events: Vec<TableEvent>,
    /// The place of each name in `events`, in small letters.
    places: HashMap<String, Vec<usize>>,
    metrics: Vec<TableMetric>,
}

/// A metric of a vendor's table, as it is written there.
#[derive(Clone, Debug, PartialEq)]
pub struct TableMetric {
    /// Name of the file that it stands in.
    pub file: String,
    /// Fields of the metric as the file has them.
    pub fields: Map<String, Value>,
}

/// Everything that is wrong with a folder of tables; [`fmt::Display`] gives the whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    folder: PathBuf,
    problems: Vec<String>,
}

impl Tables {
    /// Reads the tables of `machine`'s CPU from a folder: perf's `pmu-events`, its `arch`, the folder
    /// of an architecture with a `mapfile.csv`, or one with the JSON files themselves.
    ///
    /// # Errors
    /// Fails if the folder has no tables for this CPU, or files and events that aren't in perf's form.
    pub fn read(folder: &Path, machine: &Machine) -> Result<Self, TableError> {
        let fail = |problem: String| TableError { folder: folder.to_owned(), problems: vec![problem] };
        let id = machine.cpu_id();
        let tables = match mapfile(folder, id.as_deref()) {
            Some(map) => mapped(&map, id.as_deref()).map_err(fail)?,
            None => folder.to_owned(),
        };
        let mut reading = TableReader { standard: standard_events(&tables), ..TableReader::default() };
        for name in machine::names(&tables) {
            if name.ends_with(".json") {
                reading.file(&tables.join(&name), &name);
            }
        }
        if reading.files == 0 && reading.problems.is_empty() {
            return Err(fail("no JSON files, and no mapfile.csv that leads to some".to_owned()));
        }
        reading.finish().map_err(|problems| TableError { folder: tables, problems })
    }

    /// The events, in the order of the files.
    pub fn events(&self) -> &[TableEvent] {
        &self.events
    }

    /// The metrics, in the order of the files.
    pub fn metrics(&self) -> &[TableMetric] {
        &self.metrics
    }

    /// The event of this name, in any case of letters.
    pub fn find(&self, name: &str) -> Option<&TableEvent> {
        self.all(name).next()
    }

    /// The events of this name, one for each PMU that has it: of hybrid CPUs each kind of core has its own.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &TableEvent> {
        let places = self.places.get(&name.to_lowercase()).map_or(&[][..], Vec::as_slice);
        places.iter().filter_map(|&place| self.events.get(place))
    }
}

/// The `mapfile.csv` that a folder leads to.
fn mapfile(folder: &Path, id: Option<&str>) -> Option<PathBuf> {
    let isa = if id.is_some_and(|id| id.starts_with("0x")) { "arm64" } else { "x86" };
    let places = [folder.join("arch").join(isa), folder.join(isa), folder.to_owned()];
    places.into_iter().map(|place| place.join("mapfile.csv")).find(|file| file.is_file())
}

/// The folder that a mapfile has for a CPU: the first row whose pattern matches.
fn mapped(map: &Path, id: Option<&str>) -> Result<PathBuf, String> {
    let text = text(map).map_err(|error| format!("mapfile.csv: {error}"))?;
    let id = id.ok_or("this machine doesn't tell which CPU it has; give the folder with the CPU's JSON files")?;
    let row = text.lines().skip(1).find_map(|line| {
        let mut fields = line.split(',').map(str::trim);
        let (pattern, folder) = (fields.next()?, fields.nth(1)?);
        let is_core = fields.next() == Some("core");
        (is_core && cpu::matches(pattern, id)).then_some(folder)
    });
    let Some(row) = row else { return Err(format!("mapfile.csv has no row for the CPU {}", shown(id))) };
    let is_below = Path::new(row).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let found = map.with_file_name("").join(row);
    if !is_below || !found.is_dir() {
        return Err(format!(
            "mapfile.csv has the folder '{}' for the CPU {}, which isn't there",
            shown(row),
            shown(id)
        ));
    }
    Ok(found)
}

/// The file's text, up to the largest size.
fn text(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let open = fs::File::open(file).map_err(|error| error.to_string())?;
    let length = open.take(LARGEST_FILE + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if length as u64 > LARGEST_FILE {
        return Err(format!("larger than {} MiB", LARGEST_FILE >> 20));
    }
    Ok(text)
}

/// Arm's tables name events of the architecture (`ArchStdEvent`) that files above them describe: all
/// of those beside `common-and-microarch.json`.
fn standard_events(tables: &Path) -> HashMap<String, Map<String, Value>> {
    let has_common = |folder: &&Path| folder.join(COMMON).is_file();
    let Some(above) = tables.ancestors().skip(1).take(3).find(has_common) else { return HashMap::new() };
    let names = machine::names(above).into_iter().filter(|name| name.ends_with(".json"));
    let read = |name: String| serde_json::from_str::<Vec<Map<String, Value>>>(&text(&above.join(name)).ok()?).ok();
    let name = |event: &Map<String, Value>| {
        Some(event.get("EventName").or_else(|| event.get("MetricName"))?.as_str()?.to_lowercase())
    };
    names.filter_map(read).flatten().filter_map(|event| Some((name(&event)?, event))).collect()
}

/// The file of the architecture's own events.
const COMMON: &str = "common-and-microarch.json";

/// The files that have been read, and what was wrong with them.
#[derive(Default)]
struct TableReader {
    standard: HashMap<String, Map<String, Value>>,
    tables: Tables,
    files: usize,
    /// Events of the architecture that no file describes: how many, and the first.
    undescribed: (usize, String),
    problems: Vec<String>,
}

impl TableReader {
    fn finish(mut self) -> Result<Tables, Vec<String>> {
        if let (count @ 1.., first) = &self.undescribed {
            self.problems.push(format!("{count} events, {first} for one, need the file {COMMON} in a folder above"));
        }
        if self.problems.is_empty() { Ok(self.tables) } else { Err(self.problems) }
    }

    fn problem(&mut self, problem: String) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
    }

    fn file(&mut self, path: &Path, name: &str) {
        let name = shown(name).into_owned();
        let parsed = text(path)
            .and_then(|text| serde_json::from_str::<Value>(&text).map_err(|error| format!("not JSON: {error}")));
        match parsed {
            Err(problem) => self.problem(format!("{name}: {problem}")),
            Ok(Value::Array(entries)) => {
                self.files += 1;
                for (index, entry) in entries.iter().enumerate() {
                    self.entry(&name, index, entry);
                }
            }
            // Files beside the events, such as metricgroups.json, are objects.
            Ok(Value::Object(_)) => self.files += 1,
            Ok(_) => self.problem(format!("{name}: not a list of events")),
        }
    }

    fn entry(&mut self, file: &str, index: usize, entry: &Value) {
        let Value::Object(fields) = entry else {
            return self.problem(format!("{file}: entry {} isn't an object", index + 1));
        };
        let merged = self.with_standard(fields);
        if fields.contains_key("MetricExpr") {
            let fields = merged.as_ref().unwrap_or(fields).clone();
            return self.tables.metrics.push(TableMetric { file: file.to_owned(), fields });
        }
        if let (None, Some(Value::String(name))) = (&merged, fields.get("ArchStdEvent")) {
            if self.undescribed.0 == 0 {
                self.undescribed.1 = format!("{} in {file}", shown(name));
            }
            self.undescribed.0 += 1;
            return;
        }
        let fields = merged.as_ref().unwrap_or(fields);
        match fields.get("EventName") {
            // Metrics and counters' descriptions have no such name.
            None => {}
            Some(Value::String(name)) => match TableEvent::new(name, fields) {
                Ok(event) => self.add(file, event),
                Err(problem) => self.problem(format!("{file}: {}: {problem}", shown(name))),
            },
            Some(_) => self.problem(format!("{file}: entry {}: EventName isn't text", index + 1)),
        }
    }

    fn with_standard(&self, fields: &Map<String, Value>) -> Option<Map<String, Value>> {
        let name = fields.get("ArchStdEvent")?.as_str()?.to_lowercase();
        let mut merged = self.standard.get(&name)?.clone();
        merged.extend(fields.iter().map(|(key, value)| (key.clone(), value.clone())));
        Some(merged)
    }

    fn add(&mut self, file: &str, event: TableEvent) {
        if self.tables.events.len() >= MOST_EVENTS {
            return self.problem(format!("{file}: more than {MOST_EVENTS} events"));
        }
        let place = self.tables.events.len();
        // As in perf, the first of two events of one name and PMU holds.
        if self.tables.all(&event.name).all(|known| known.pmu != event.pmu) {
            self.tables.places.entry(event.name.to_lowercase()).or_default().push(place);
        }
        self.tables.events.push(event);
    }
}

impl std::error::Error for TableError {}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use the event tables in {}", shown_path(&self.folder))?;
        for problem in &self.problems {
            write!(f, "\n      {problem}")?;
        }
        if self.problems.len() >= MOST_PROBLEMS {
            write!(f, "\n      ... and perhaps more")?;
        }
        write!(f, "\n      --event-tables takes perf's folder pmu-events, or the folder with one CPU's JSON files")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use super::*;

    fn read(text: &str) -> Result<Tables, Vec<String>> {
        let mut reading = TableReader::default();
        match serde_json::from_str(text).unwrap() {
            Value::Array(entries) => {
                entries.iter().enumerate().for_each(|(index, entry)| reading.entry("f.json", index, entry));
            }
            _ => panic!(),
        }
        reading.finish()
    }

    #[test]
    fn names_are_found_in_any_case_and_the_first_holds() {
        let tables = read(
            r#"[{"EventName": "A.b", "EventCode": "1"}, {"EventName": "a.B", "EventCode": "2"}, {"MetricName": "m"}]"#,
        )
        .unwrap();
        assert_eq!(tables.find("A.B").unwrap().terms, [("event".to_owned(), 1)]);
        assert_eq!((tables.events().len(), tables.find("m")), (2, None));
    }

    #[test]
    fn what_is_wrong_is_told_by_file_and_event() {
        let problems = read(r#"[1, {"EventName": 1}, {"EventName": "A\u001b", "EventCode": "zz"}, {"EventName": "B", "UMask": []}, {"EventName": "C", "MSRIndex": "0x999"}, {"ArchStdEvent": "D"}, {"EventName": "E", "UMaskExt": "0xffffffffffffffff"}]"#).unwrap_err();
        let expected = [
            "f.json: entry 1 isn't an object",
            "f.json: entry 2: EventName isn't text",
            "f.json: A\\x1b: EventCode 'zz' isn't a number",
            "f.json: B: UMask isn't text",
            "f.json: C: MSRIndex 0x999 has no term",
            "f.json: E: UMaskExt has too many bits",
            "1 events, D in f.json for one, need the file common-and-microarch.json in a folder above",
        ];
        assert_eq!(problems, expected);
    }
}
