//! Reads the vendors' event tables, as perf has them in `pmu-events`: named events and the terms that they
//! stand for.
//!
//! Such a folder has JSON files, each a list of objects with `EventName`, `EventCode`, `UMask` and so
//! on. Several of them stand under `arch/<isa>/`, with a `mapfile.csv` that says which is for which
//! CPU. What a field means is taken from perf 6.12 (`pmu-events/jevents.py`): every field is a term
//! of the PMU's `format/` folder.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::machine::{self, Machine};
use super::syntax::{self, Term};
use super::{Encoding, Unit, cpu, symbols};
use crate::names::shown;

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
    places: HashMap<String, usize>,
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

/// An event of a vendor's table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableEvent {
    /// The name as the table has it: `L2_RQSTS.MISS`.
    pub name: String,
    /// The PMU that counts it, as sysfs may have it with a number behind; `None` is the core's.
    pub pmu: Option<String>,
    /// Description of the event.
    pub description: String,
    /// Whether the vendor has another name for it now.
    pub deprecated: bool,
    /// What one count is worth (`64Bytes`); empty for an occurrence.
    pub scale_unit: String,
    /// The terms of the PMU's format.
    pub(super) terms: Vec<(String, u64)>,
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
        self.places.get(&name.to_lowercase()).and_then(|&place| self.events.get(place))
    }
}

impl TableEvent {
    /// What one count stands for, where the table says it: a number and what is counted.
    pub(super) fn unit(&self) -> Option<Unit> {
        let end = self.scale_unit.find(|c: char| !(c.is_ascii_digit() || ".eE-+".contains(c)));
        let (scale, name) = self.scale_unit.split_at(end.unwrap_or(self.scale_unit.len()));
        let scale = scale.parse::<f64>().ok().filter(|scale| scale.is_finite())?;
        Some(Unit::Scaled { scale, name: name.to_owned() })
    }

    /// The terms as they are written between slashes.
    pub(super) fn written_terms(&self) -> Vec<Term<'_>> {
        self.terms.iter().map(|(key, value)| Term { key, value: Some(syntax::TermValue::Number(*value)) }).collect()
    }

    /// The encoding by the well-known layout of x86 cores, for machines whose sysfs doesn't say it;
    /// `None` where a term isn't in it.
    pub(super) fn on_x86(&self) -> Option<Encoding> {
        let mut encoding = Encoding::of(symbols::RAW, 0);
        for (key, value) in &self.terms {
            let (shift, largest) = match key.as_str() {
                "umask" => (8, 0xff),
                "edge" => (18, 1),
                "any" => (21, 1),
                "inv" => (23, 1),
                "cmask" => (24, 0xff),
                // AMD's events have four bits more, far from the others.
                "event" if *value <= 0xfff => {
                    encoding.config |= value & 0xff | (value >> 8) << 32;
                    continue;
                }
                "config" => {
                    encoding.config |= value;
                    continue;
                }
                "offcore_rsp" | "ldlat" | "frontend" => {
                    encoding.config1 = *value;
                    continue;
                }
                _ => return None,
            };
            if *value > largest {
                return None;
            }
            encoding.config |= value << shift;
        }
        Some(encoding)
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
            Some(Value::String(name)) => match event(name, fields) {
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
        // As in perf, the first of two events of one name holds.
        self.tables.places.entry(event.name.to_lowercase()).or_insert(place);
        self.tables.events.push(event);
    }
}

/// The fields that become terms, beside the event's code.
const TERMS: &[(&str, &str)] = &[
    ("AnyThread", "any"),
    ("PortMask", "ch_mask"),
    ("CounterMask", "cmask"),
    ("EdgeDetect", "edge"),
    ("FCMask", "fc_mask"),
    ("Invert", "inv"),
    ("NodeType", "type"),
    ("RdWrMask", "rdwrmask"),
    ("EnAllCores", "enallcores"),
    ("EnAllSlices", "enallslices"),
    ("SliceId", "sliceid"),
    ("ThreadMask", "threadmask"),
];

fn event(name: &str, fields: &Map<String, Value>) -> Result<TableEvent, String> {
    let field = |key: &str| text_field(fields, key);
    let mut terms = vec![code(fields)?];
    for (key, term) in TERMS {
        terms.extend(number(fields, key)?.filter(|value| *value != 0).map(|value| ((*term).to_owned(), value)));
    }
    let umask = number(fields, "UMask")?.unwrap_or(0);
    let more = number(fields, "UMaskExt")?.unwrap_or(0);
    let more = more.checked_shl(8).filter(|shifted| shifted >> 8 == more).ok_or("UMaskExt has too many bits")?;
    if umask | more != 0 {
        terms.push(("umask".to_owned(), umask | more));
    }
    if let Some(filter) = field("Filter")? {
        terms.extend(filters(&filter)?);
    }
    terms.extend(register(fields)?);
    Ok(TableEvent {
        name: name.to_owned(),
        pmu: field("Unit")?.map(|unit| pmu_of(&unit)),
        description: field("BriefDescription")?.or(field("PublicDescription")?).unwrap_or_default(),
        deprecated: number(fields, "Deprecated")?.is_some_and(|value| value != 0),
        scale_unit: field("ScaleUnit")?.unwrap_or_default(),
        terms,
    })
}

fn code(fields: &Map<String, Value>) -> Result<(String, u64), String> {
    if let Some(config) = number(fields, "ConfigCode")? {
        return Ok(("config".to_owned(), config));
    }
    if let Some(id) = number(fields, "EventidCode")? {
        return Ok(("eventid".to_owned(), id));
    }
    let given = number(fields, "EventCode")?;
    let more = number(fields, "ExtSel")?.unwrap_or(0);
    if more > 0xff {
        return Err("ExtSel has too many bits".to_owned());
    }
    Ok(("event".to_owned(), given.unwrap_or(0) | more << 8))
}

/// The register that an event needs beside its code. perf sets it through a term of its own.
fn register(fields: &Map<String, Value>) -> Result<Option<(String, u64)>, String> {
    let term = match number(fields, "MSRIndex")? {
        None | Some(0) => return Ok(None),
        Some(0x3f6) => "ldlat",
        Some(0x1a6 | 0x1a7) => "offcore_rsp",
        Some(0x3f7) => "frontend",
        Some(other) => return Err(format!("MSRIndex {other:#x} has no term")),
    };
    Ok(Some((term.to_owned(), number(fields, "MSRValue")?.unwrap_or(0))))
}

fn filters(text: &str) -> Result<Vec<(String, u64)>, String> {
    let bad = || format!("Filter '{}' has no meaning", shown(text));
    let terms = syntax::parse_terms(text).map_err(|_| bad())?;
    let number = |term: Term<'_>| match term.value {
        Some(syntax::TermValue::Number(value)) => Ok((term.key.to_owned(), value)),
        None => Ok((term.key.to_owned(), 1)),
        Some(syntax::TermValue::Text(_)) => Err(bad()),
    };
    terms.into_iter().map(number).collect()
}

fn text_field(fields: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(format!("{key} isn't text")),
    }
}

/// A number in decimal or hexadecimal; the first of a list (`0xB7,0xBB`), as in perf.
fn number(fields: &Map<String, Value>, key: &str) -> Result<Option<u64>, String> {
    let Some(text) = text_field(fields, key)? else { return Ok(None) };
    let first = text.split(',').next().unwrap_or_default().trim();
    if first.is_empty() {
        return Ok(None);
    }
    let hex = first.strip_prefix("0x").or_else(|| first.strip_prefix("0X"));
    let value = hex.map_or_else(|| first.parse(), |digits| u64::from_str_radix(digits, 16));
    value.map(Some).map_err(|_| format!("{key} '{}' isn't a number", shown(first)))
}

/// The PMU that perf takes a table's `Unit` for.
fn pmu_of(unit: &str) -> String {
    match unit {
        "CBO" => "uncore_cbox".to_owned(),
        "SBO" => "uncore_sbox".to_owned(),
        "QPI LL" => "uncore_qpi".to_owned(),
        "UPI LL" => "uncore_upi".to_owned(),
        "iMPH-U" => "uncore_arb".to_owned(),
        "L3PMC" => "amd_l3".to_owned(),
        "DFPMC" => "amd_df".to_owned(),
        "UMCPMC" => "amd_umc".to_owned(),
        "CPU-M-CF" => "cpum_cf".to_owned(),
        "CPU-M-SF" => "cpum_sf".to_owned(),
        "PAI-CRYPTO" => "pai_crypto".to_owned(),
        "PAI-EXT" => "pai_ext".to_owned(),
        "cpu_core" | "cpu_atom" | "ali_drw" | "arm_cmn" | "imx8_ddr" | "imx9_ddr" => unit.to_owned(),
        unit if unit.starts_with("hisi_") => unit.to_owned(),
        unit => format!("uncore_{}", unit.to_lowercase()),
    }
}

impl std::error::Error for TableError {}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.folder.to_string_lossy();
        write!(f, "perfprop: cannot use the event tables in {}", shown(&folder))?;
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
    use proptest::prelude::*;

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

    fn terms(text: &str) -> String {
        let tables = read(&format!("[{text}]")).unwrap();
        let written = tables.events()[0].terms.iter().map(|(key, value)| format!("{key}={value:#x}"));
        written.collect::<Vec<_>>().join(",")
    }

    #[test]
    fn fields_become_the_terms_that_perf_makes_of_them() {
        let stalls = r#"{"EventName": "CYCLE_ACTIVITY.STALLS_TOTAL", "EventCode": "0xA3", "UMask": "0x4", "CounterMask": "4", "Invert": "0", "PEBS": "1", "SampleAfterValue": "9"}"#;
        assert_eq!(terms(stalls), "event=0xa3,cmask=0x4,umask=0x4");
        let offcore = r#"{"EventName": "O", "EventCode": "0xB7, 0xBB", "UMask": "0x1", "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x10003"}"#;
        assert_eq!(terms(offcore), "event=0xb7,umask=0x1,offcore_rsp=0x10003");
        assert_eq!(
            terms(r#"{"EventName": "F", "EventCode": "0xc6", "UMask": 1, "MSRIndex": "0x3F7", "MSRValue": "0x12"}"#),
            "event=0xc6,umask=0x1,frontend=0x12"
        );
        assert_eq!(terms(r#"{"EventName": "C", "ConfigCode": "0x100"}"#), "config=0x100");
        assert_eq!(
            terms(
                r#"{"EventName": "U", "EventCode": "0x34", "UMask": "0x1F", "UMaskExt": "0x10", "Filter": "filter_opc=0x182,x", "ExtSel": "1"}"#
            ),
            "event=0x134,umask=0x101f,filter_opc=0x182,x=0x1"
        );
        assert_eq!(
            terms(r#"{"EventName": "E", "EventCode": "14", "EdgeDetect": "1", "AnyThread": "1", "Invert": "1"}"#),
            "event=0xe,any=0x1,edge=0x1,inv=0x1"
        );
    }

    #[test]
    fn x86_cores_have_a_layout_of_their_own() {
        let config = |text: &str| {
            let tables = read(&format!("[{text}]")).unwrap();
            tables.events()[0].on_x86().map(|encoding| (encoding.config, encoding.config1))
        };
        let stalls = r#"{"EventName": "S", "EventCode": "0xA3", "UMask": "0x4", "CounterMask": "4", "Invert": "1", "EdgeDetect": "1"}"#;
        assert_eq!(config(stalls), Some((0x484_04a3, 0)));
        assert_eq!(config(r#"{"EventName": "Z", "EventCode": "0x28f", "UMask": "0x04"}"#), Some((0x2_0000_048f, 0)));
        assert_eq!(
            config(r#"{"EventName": "O", "EventCode": "0xB7", "MSRIndex": "0x1a6", "MSRValue": "5"}"#),
            Some((0xb7, 5))
        );
        assert_eq!(config(r#"{"EventName": "W", "EventCode": "0x1000"}"#), None);
        assert_eq!(config(r#"{"EventName": "W", "EventCode": "1", "UMask": "0x100"}"#), None);
        assert_eq!(config(r#"{"EventName": "W", "EventCode": "1", "ThreadMask": "1"}"#), None);
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

    proptest! {
        #[test]
        fn any_fields_are_read(code in ".{0,20}", umask in ".{0,20}", filter in ".{0,20}", msr in any::<u64>()) {
            let mut fields = Map::new();
            for (key, value) in [("EventCode", code), ("UMask", umask), ("Filter", filter), ("MSRIndex", msr.to_string())] {
                fields.insert(key.to_owned(), Value::String(value));
            }
            if let Ok(event) = event("x", &fields) {
                event.on_x86();
            }
        }
    }
}
