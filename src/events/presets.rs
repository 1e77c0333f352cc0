//! The name of a preset (`L1_MISSES`) in, what each CPU family has for it out.
//!
//! The table is data, `relations/presets.json`: for each preset a list of candidates in order of
//! preference. A candidate holds on the CPUs whose libpfm PMU (`pmus`) or identity (`cpus`) it
//! names, or, naming none, everywhere; the first that holds here is the event.

use std::sync::OnceLock;

use serde::Deserialize;

use super::glob;

/// The presets.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    presets: Vec<Preset>,
}

/// An event that perfprop names itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Preset {
    /// In capitals.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) candidates: Vec<Candidate>,
}

/// What counts a preset on some CPUs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Candidate {
    /// libpfm's names of the PMUs; the event is then in libpfm's words.
    #[serde(default)]
    pub(super) pmus: Vec<String>,
    /// Patterns of `vendor-family-model` (hexadecimal, `GenuineIntel-6-AD`); the event is then in
    /// perf's words.
    #[serde(default)]
    pub(super) cpus: Vec<String>,
    pub(super) event: String,
    /// Where the code comes from.
    #[serde(rename = "source")]
    _source: String,
}

impl Candidate {
    /// Whether its `cpus` name this CPU; a candidate that names no CPUs at all holds everywhere.
    pub(super) fn holds_on(&self, cpu: Option<&str>) -> bool {
        if self.cpus.is_empty() {
            return self.pmus.is_empty();
        }
        cpu.is_some_and(|cpu| self.cpus.iter().any(|pattern| glob::matches(pattern, cpu)))
    }
}

/// All presets, in the order of the table.
pub(super) fn all() -> &'static [Preset] {
    static TABLE: OnceLock<Table> = OnceLock::new();
    let read = || serde_json::from_str(TEXT).unwrap_or_default();
    &TABLE.get_or_init(read).presets
}

const TEXT: &str = include_str!("../../relations/presets.json");

/// The preset of this name, in any case of letters.
pub(super) fn find(name: &str) -> Option<&'static Preset> {
    all().iter().find(|preset| preset.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        let table: Table = serde_json::from_str(TEXT).unwrap();
        let mut names: Vec<&str> = table.presets.iter().map(|preset| preset.name.as_str()).collect();
        for preset in &table.presets {
            assert_eq!(preset.name, preset.name.to_uppercase());
            assert!(!preset.description.is_empty() && !preset.candidates.is_empty());
            for candidate in &preset.candidates {
                assert!(!candidate.event.is_empty() && !candidate._source.is_empty(), "{}", preset.name);
                assert!(candidate.pmus.is_empty() || candidate.cpus.is_empty(), "{}", preset.name);
            }
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), table.presets.len(), "a preset is defined twice");
    }

    #[test]
    fn any_case_is_taken() {
        assert_eq!(find("l1_misses").unwrap().name, "L1_MISSES");
        assert!(find("L1_MISES").is_none());
    }

    #[test]
    fn candidates_hold_where_they_say() {
        let candidate = |text| serde_json::from_str::<Candidate>(text).unwrap();
        let intel = candidate(r#"{"cpus": ["GenuineIntel-6-A[DE]"], "event": "r1", "source": "-"}"#);
        assert!(intel.holds_on(Some("GenuineIntel-6-AD")));
        assert!(!intel.holds_on(Some("GenuineIntel-6-A")));
        assert!(!intel.holds_on(None));
        let generic = candidate(r#"{"event": "cycles", "source": "-"}"#);
        assert!(generic.holds_on(None));
        let libpfm = candidate(r#"{"pmus": ["skl"], "event": "L1D:REPLACEMENT", "source": "-"}"#);
        assert!(!libpfm.holds_on(Some("GenuineIntel-6-5E")));
    }
}
