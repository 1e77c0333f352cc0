//! Resolves presets (`L1_MISSES`) to what counts them on this CPU, or to the reason why nothing does.
//!
//! The table is data, `relations/presets.json`; `about` in it says how it is read. Each preset that
//! isn't one of perf's own events has exactly one entry for each family: a raw code, an event in
//! perf's words, or the reason why there is none. A raw code needs neither libpfm nor sysfs, so the
//! numbers are the same with and without them; the tests encode every code a second time with
//! libpfm and look it up in the vendors' tables.

use std::sync::OnceLock;

use serde::{Deserialize, Deserializer};

use super::cpu;

/// The file `relations/presets.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetTable {
    #[serde(rename = "about")]
    _about: Vec<String>,
    families: Vec<CpuFamily>,
    presets: Vec<Preset>,
}

/// CPUs that count the same events with the same codes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CpuFamily {
    id: String,
    /// Name of the family for people.
    title: String,
    /// Patterns of the CPU's id, as in perf's `mapfile.csv`.
    cpus: Vec<String>,
    /// The name of libpfm's table for it.
    #[serde(default)]
    libpfm: Option<String>,
}

/// An event that perfprop names itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Preset {
    /// Name in capitals.
    pub(super) name: String,
    pub(super) description: String,
    /// An event in perf's words that counts it on every CPU.
    #[serde(default)]
    everywhere: Option<String>,
    /// An event in perf's words for CPUs of no family in the table.
    #[serde(default)]
    fallback: Option<String>,
    /// Beginnings of the ids of CPUs on which the fallback means that; on all where there is none.
    #[serde(default, rename = "fallbackOn")]
    fallback_on: Vec<String>,
    #[serde(default)]
    entries: Vec<PresetEntry>,
}

/// What counts a preset on some families; one of `code`, `perf` and `missing` is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PresetEntry {
    on: Vec<String>,
    #[serde(default, deserialize_with = "hexadecimal")]
    code: Option<u64>,
    /// The code in libpfm's words.
    #[serde(default)]
    event: Option<String>,
    /// The code in the vendor's words, where libpfm hasn't got it.
    #[serde(default, rename = "vendor")]
    _vendor: Option<String>,
    #[serde(default)]
    perf: Option<String>,
    #[serde(default)]
    missing: Option<String>,
    #[serde(rename = "source")]
    _source: String,
}

/// Codes are written as manuals write them: `"0x151"`.
fn hexadecimal<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    let digits = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    digits.map(Some).ok_or_else(|| serde::de::Error::custom("a code is a text such as \"0x151\""))
}

/// What a preset means on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning<'a> {
    /// A raw code of the core's PMU, and the event in libpfm's words where it has them.
    Code(u64, Option<String>),
    /// An event in perf's words.
    Perf(&'a str),
    /// Nothing counts it there, for this reason.
    Missing(String),
}

impl CpuFamily {
    /// Name of the family for people.
    pub(super) fn title(&self) -> &str {
        &self.title
    }
}

impl Preset {
    /// What counts the preset on a CPU of this id and family; `None` is a family that the table doesn't know.
    pub(super) fn on(&self, cpu_id: &str, family: Option<&CpuFamily>) -> Meaning<'_> {
        if let Some(event) = &self.everywhere {
            return Meaning::Perf(event);
        }
        let Some(family) = family else { return self.elsewhere(cpu_id) };
        match self.entries.iter().find(|entry| entry.on.contains(&family.id)) {
            Some(entry) => entry.meaning(&self.name, family),
            None => self.elsewhere(cpu_id),
        }
    }

    /// What perf's events can do for it on a CPU whose own events aren't known.
    fn elsewhere(&self, cpu_id: &str) -> Meaning<'_> {
        let holds = self.fallback_on.is_empty() || self.fallback_on.iter().any(|vendor| cpu_id.starts_with(vendor));
        match &self.fallback {
            Some(event) if holds => Meaning::Perf(event),
            Some(event) => Meaning::Missing(format!(
                "this CPU isn't in the table, and its {event} may be of another cache: it is of the last level on Intel's CPUs"
            )),
            None => Meaning::Missing(format!("this CPU family has no event for {} in the table", self.name)),
        }
    }
}

impl PresetEntry {
    fn meaning(&self, preset: &str, family: &CpuFamily) -> Meaning<'_> {
        let why = match (self.code, &self.perf, &self.missing) {
            (Some(code), ..) => return Meaning::Code(code, self.in_libpfms_words(family)),
            (None, Some(event), _) => return Meaning::Perf(event),
            (None, None, why) => why.as_deref().unwrap_or("not known"),
        };
        Meaning::Missing(format!("{} cannot count {preset}: {why}", family.title))
    }

    fn in_libpfms_words(&self, family: &CpuFamily) -> Option<String> {
        Some(format!("{}::{}", family.libpfm.as_ref()?, self.event.as_ref()?))
    }
}

fn table() -> &'static PresetTable {
    static TABLE: OnceLock<PresetTable> = OnceLock::new();
    TABLE.get_or_init(|| serde_json::from_str(TEXT).unwrap_or_default())
}

const TEXT: &str = include_str!("../../relations/presets.json");

/// All presets, in the order of the table.
pub(super) fn all() -> &'static [Preset] {
    &table().presets
}

/// The preset of this name, in any case of letters.
pub(super) fn find(name: &str) -> Option<&'static Preset> {
    all().iter().find(|preset| preset.name.eq_ignore_ascii_case(name))
}

/// The family of the CPU with this id.
pub(super) fn family(cpu: &str) -> Option<&'static CpuFamily> {
    table().families.iter().find(|family| family.cpus.iter().any(|pattern| cpu::matches(pattern, cpu)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use super::*;

    #[test]
    fn the_table_is_well_formed() {
        let table: PresetTable = serde_json::from_str(TEXT).unwrap();
        assert!(table.presets.len() >= 24);
        for preset in &table.presets {
            assert_eq!(preset.name, preset.name.to_uppercase());
            assert!(!preset.description.is_empty(), "{}", preset.name);
            assert!(preset.everywhere.is_none() || preset.entries.is_empty(), "{}", preset.name);
            for entry in &preset.entries {
                let given = [entry.code.is_some(), entry.perf.is_some(), entry.missing.is_some()];
                assert_eq!(given.iter().filter(|given| **given).count(), 1, "{}: {entry:?}", preset.name);
                let words = entry.event.is_some() != entry._vendor.is_some();
                assert_eq!(words, entry.code.is_some(), "{}: {entry:?}", preset.name);
                assert!(!entry._source.is_empty(), "{}: {entry:?}", preset.name);
            }
        }
        let mut names: Vec<&str> = table.presets.iter().map(|preset| preset.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), table.presets.len(), "a preset is defined twice");
    }

    #[test]
    fn each_family_has_one_entry_for_each_preset() {
        for preset in all().iter().filter(|preset| preset.everywhere.is_none()) {
            for family in &table().families {
                let entries = preset.entries.iter().filter(|entry| entry.on.contains(&family.id)).count();
                assert_eq!(entries, 1, "{} on {}", preset.name, family.id);
            }
            let known = |id: &String| table().families.iter().any(|family| family.id == *id);
            assert!(preset.entries.iter().flat_map(|entry| &entry.on).all(known), "{}", preset.name);
        }
    }

    #[test]
    fn families_are_told_by_their_cpus() {
        for (cpu, id) in [
            ("GenuineIntel-6-1A-5", Some("nhm")),
            ("GenuineIntel-6-2F-2", Some("wsm_dp")),
            ("GenuineIntel-6-55-4", Some("skx")),
            ("GenuineIntel-6-55-7", Some("clx")),
            ("GenuineIntel-6-AD-1", Some("gnr")),
            ("AuthenticAMD-23-1-2", Some("zen1")),
            ("AuthenticAMD-23-18-1", Some("zen1")),
            ("AuthenticAMD-23-31-0", Some("zen2")),
            ("AuthenticAMD-25-21-0", Some("zen3")),
            ("AuthenticAMD-25-11-1", Some("zen4")),
            ("AuthenticAMD-26-2-1", Some("zen5")),
            ("0x00000000410fd0c0", Some("n1")),
            ("0x00000000410fd080", Some("a72")),
            ("GenuineIntel-6-97-2", None),
            ("AuthenticAMD-16-2-3", None),
            ("", None),
        ] {
            assert_eq!(family(cpu).map(|family| family.id.as_str()), id, "{cpu}");
        }
    }

    #[test]
    fn a_preset_is_a_code_an_event_or_a_reason() {
        let on = |name: &str, cpu: &str| find(name).unwrap().on(cpu, family(cpu));
        let misses = Meaning::Code(0x151, Some("skx::L1D:REPLACEMENT".to_owned()));
        assert_eq!(on("l1_misses", "GenuineIntel-6-55-4"), misses);
        assert_eq!(on("L1_MISSES", "0x00000000410fd080"), Meaning::Code(3, None));
        assert_eq!(on("CYCLES", "GenuineIntel-6-55-4"), Meaning::Perf("cycles"));
        assert_eq!(on("L1_MISSES", "GenuineIntel-6-97-2"), Meaning::Perf("L1-dcache-load-misses"));
        assert_eq!(on("LLC_MISSES", "GenuineIntel-6-97-2"), Meaning::Perf("cache-misses"));
        // Of the first level, on a Cortex-A76.
        assert!(
            matches!(on("LLC_MISSES", "0x00000000410fd0b0"), Meaning::Missing(why) if why.contains("cache-misses"))
        );
        let Meaning::Missing(why) = on("FP_SCALAR", "GenuineIntel-6-3C-3") else { panic!() };
        assert_eq!(why, "Intel Haswell cannot count FP_SCALAR: Haswell counts no floating-point operations");
        assert!(find("L1_MISES").is_none());
    }
}
