//! Merges the encodings of like units (`uncore_imc_0`, `uncore_imc_1`) into one event, whose count is their sum.

use super::found::Meant;
use super::{Encoding, PmuUnit};

/// How the counts of an event's like units are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// One event, the sum of all of them: perf's default.
    #[default]
    Units,
    /// An event for each unit: perf's `--no-merge`.
    Nothing,
}

/// The encodings with those of like units in one, where that was asked for.
pub(super) fn merged(found: Vec<Meant>, merge: Merge) -> Vec<Meant> {
    if merge == Merge::Nothing {
        return found;
    }
    let mut events: Vec<Meant> = Vec::new();
    for one in found {
        match events.iter_mut().find(|event| are_alike(event, &one)) {
            Some(event) => event.add(one),
            None => events.push(one),
        }
    }
    events
}

/// Whether two encodings are those of one event on two units of a kind. What is counted in other units of measure
/// can't be added up.
fn are_alike(event: &Meant, other: &Meant) -> bool {
    let kind = |meant: &Meant| meant.pmu.as_deref().map(kind);
    let is_unit = |meant: &Meant| kind(meant).as_deref() != meant.pmu.as_deref();
    is_unit(event)
        && is_unit(other)
        && kind(event) == kind(other)
        && (&event.unit, &event.name) == (&other.unit, &other.name)
}

impl Meant {
    fn add(&mut self, other: Self) {
        if self.encoding.units.is_empty() {
            self.encoding.units.extend(self.unit());
            let terms = self.canonical.split_once('/').map_or("", |(_, terms)| terms);
            self.canonical = format!("{}/{terms}", self.pmu.as_deref().map(kind).unwrap_or_default());
        }
        self.encoding.units.extend(other.unit());
    }

    fn unit(&self) -> Option<PmuUnit> {
        let encoding = Encoding { units: Vec::new(), ..self.encoding.clone() };
        Some(PmuUnit { pmu: self.pmu.clone()?, encoding })
    }
}

/// The name of a unit's PMU without what tells it from like ones: `uncore_imc` for `uncore_imc_0`, `arm_dmc620` for
/// `arm_dmc620_10008c000`, `imx8_ddr` for `imx8_ddr0`, `hisi_sccl_ddrc` for `hisi_sccl1_ddrc0`; the whole name of one
/// that has no such number.
///
/// As in perf, letters make a number only where it has more than two digits: `cpum_cf` is no unit.
fn kind(pmu: &str) -> String {
    if pmu.starts_with("hisi_") {
        return pmu.replace(|c: char| c.is_ascii_digit(), "").trim_end_matches('_').to_owned();
    }
    let stem = pmu.trim_end_matches(|c: char| c.is_ascii_digit() || ('a'..='f').contains(&c));
    let number = &pmu[stem.len()..];
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit()) || number.len() > 2;
    let kind = match stem.strip_suffix('_') {
        Some(kind) if is_number => kind,
        _ => pmu.trim_end_matches(|c: char| c.is_ascii_digit()),
    };
    if kind.is_empty() { pmu.to_owned() } else { kind.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_a_kind_differ_by_a_number_at_the_end() {
        for (pmu, expected) in [
            ("uncore_imc_0", "uncore_imc"),
            ("uncore_cha_31", "uncore_cha"),
            ("uncore_imc_free_running_1", "uncore_imc_free_running"),
            // Types that the kernel has no name for: the first number is the type.
            ("uncore_type_0_1", "uncore_type_0"),
            ("arm_cmn_0", "arm_cmn"),
            ("arm_dmc620_10008c000", "arm_dmc620"),
            ("mrvl_ddr_pmu_87e1b0000000", "mrvl_ddr_pmu"),
            ("amd_umc_11", "amd_umc"),
            ("imx8_ddr0", "imx8_ddr"),
            ("hisi_sccl1_ddrc0", "hisi_sccl_ddrc"),
            ("hisi_sccl3_l3c12", "hisi_sccl_lc"),
            ("hisi_sccl1_ddrc0_1", "hisi_sccl_ddrc"),
        ] {
            assert_eq!(kind(pmu), expected, "{pmu}");
        }
        for whole in ["cpu", "cpu_core", "cpum_cf", "amd_df", "power", "uncore_imc", "msr", "12", ""] {
            assert_eq!(kind(whole), whole);
        }
    }
}
