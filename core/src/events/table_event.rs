//! Makes an event of the fields that a vendor's table has for it.
//!
//! What a field means is taken from perf 6.12 (`pmu-events/jevents.py`): every field is a term of the PMU's `format/`
//! folder.

use serde_json::{Map, Value};

use super::syntax::{self, Term};
use super::{Encoding, Unit, symbols};
use crate::names::shown;

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

impl TableEvent {
    /// The event of this name that these fields describe.
    ///
    /// # Errors
    /// The field that has no meaning, in words.
    pub(super) fn new(name: &str, fields: &Map<String, Value>) -> Result<Self, String> {
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
        Ok(Self {
            name: name.to_owned(),
            pmu: field("Unit")?.map(|unit| pmu_of(&unit)),
            description: field("BriefDescription")?.or(field("PublicDescription")?).unwrap_or_default(),
            deprecated: number(fields, "Deprecated")?.is_some_and(|value| value != 0),
            scale_unit: field("ScaleUnit")?.unwrap_or_default(),
            terms,
        })
    }

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use super::*;
    use proptest::prelude::*;

    fn event(text: &str) -> TableEvent {
        TableEvent::new("x", &serde_json::from_str(text).unwrap()).unwrap()
    }

    fn terms(text: &str) -> String {
        let event = event(text);
        let written = event.terms.iter().map(|(key, value)| format!("{key}={value:#x}"));
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
        let config = |text: &str| event(text).on_x86().map(|encoding| (encoding.config, encoding.config1));
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

    proptest! {
        #[test]
        fn any_fields_are_read(code in ".{0,20}", umask in ".{0,20}", filter in ".{0,20}", msr in any::<u64>()) {
            let mut fields = Map::new();
            for (key, value) in [("EventCode", code), ("UMask", umask), ("Filter", filter), ("MSRIndex", msr.to_string())] {
                fields.insert(key.to_owned(), Value::String(value));
            }
            if let Ok(event) = TableEvent::new("x", &fields) {
                event.on_x86();
            }
        }
    }
}
