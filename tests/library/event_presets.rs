//! Looks every code in the table of presets up a second time: in libpfm, and in the vendors' tables.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail and say why")]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::goldens::PMU_EVENTS;

/// One code of the table on one family.
struct Coded {
    preset: String,
    family: String,
    /// libpfm's table, where there is one.
    libpfm: Option<String>,
    code: u64,
    /// libpfm's words.
    event: Option<String>,
    /// The vendor's words, where libpfm hasn't got it.
    vendor: Option<String>,
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x").trim_start_matches("0X"), 16).unwrap()
}

fn coded() -> Vec<Coded> {
    let table: Value = serde_json::from_str(include_str!("../../relations/presets.json")).unwrap();
    let families = table["families"].as_array().unwrap();
    let libpfm: BTreeMap<_, _> =
        families.iter().map(|family| (text(family, "id").unwrap(), text(family, "libpfm"))).collect();
    let mut found = Vec::new();
    for preset in table["presets"].as_array().unwrap() {
        for entry in preset.get("entries").and_then(Value::as_array).into_iter().flatten() {
            let Some(code) = text(entry, "code") else { continue };
            for family in entry["on"].as_array().unwrap() {
                let family = family.as_str().unwrap().to_owned();
                found.push(Coded {
                    preset: text(preset, "name").unwrap(),
                    libpfm: libpfm[&family].clone(),
                    family,
                    code: hex(&code),
                    event: text(entry, "event"),
                    vendor: text(entry, "vendor"),
                });
            }
        }
    }
    found
}

/// What libpfm sets beside the event: user and kernel mode, interrupts, enabled (bits 16, 17, 20, 22).
#[cfg(feature = "pfm")]
const ALWAYS_SET: u64 = 1 << 16 | 1 << 17 | 1 << 20 | 1 << 22;

/// Runs itself again with libpfm set to encode the events of PMUs that this CPU hasn't got.
#[cfg(feature = "pfm")]
#[test]
fn presets_encode_in_libpfm_as_in_the_table() {
    const INACTIVE: &str = "LIBPFM_ENCODE_INACTIVE";
    if std::env::var_os(INACTIVE).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "presets_encode_in_libpfm_as_in_the_table"]).env(INACTIVE, "1");
        // With it only the tables up to that CPU's would be there.
        again.env_remove("LIBPFM_FORCE_PMU");
        let output = again.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let mut checked = 0;
    for one in coded() {
        // A build of libpfm has the tables of its own architecture only.
        let (Some(pmu), Some(event)) = (&one.libpfm, &one.event) else { continue };
        if pmu.starts_with("arm_") != cfg!(target_arch = "aarch64") {
            continue;
        }
        let name = format!("{pmu}::{event}");
        let encoded = perfprop::events::pfm::encode(&name);
        let encoding = encoded.unwrap_or_else(|error| panic!("{}: {name}: {}", one.preset, error.0)).encoding;
        assert_eq!(encoding.config & !ALWAYS_SET, one.code, "{}: {name}", one.preset);
        assert_eq!(encoding.config1, 0, "{}: {name}", one.preset);
        checked += 1;
    }
    let x86 = cfg!(target_arch = "x86_64");
    assert!(checked > if x86 { 500 } else { 100 }, "only {checked} codes have libpfm's words");
}

/// Codes out of the manuals, by hand: a table and a library that agree could both be wrong.
#[test]
fn presets_have_the_codes_of_the_manuals() {
    let coded = coded();
    let code = |preset: &str, family: &str| {
        let one = coded.iter().find(|one| (one.preset.as_str(), one.family.as_str()) == (preset, family));
        one.unwrap_or_else(|| panic!("{preset} on {family}")).code
    };
    // Intel SDM vol. 3: 51H/01H, 24H/27H, architectural 2EH/4FH and 2EH/41H, A3H/04H with cmask 4.
    assert_eq!(code("L1_MISSES", "nhm"), 0x0151);
    assert_eq!(code("L2_MISSES", "hsw"), 0x2724);
    for family in ["nhm", "snb", "ivb", "skx", "icx", "gnr"] {
        assert_eq!(code("L3_ACCESSES", family), 0x4f2e, "{family}");
        assert_eq!(code("LLC_MISSES", family), 0x412e, "{family}");
    }
    assert_eq!(code("STALLS", "skl"), 0x0400_04a3);
    // AMD PPR: PMCx064 umask 09h, PMCx18E umask 18h, PMCx0D1.
    assert_eq!(code("L2_MISSES", "zen1"), 0x0964);
    assert_eq!(code("L1I_MISSES", "zen5"), 0x1_0000_188e);
    assert_eq!(code("COND_BRANCHES", "zen3"), 0xd1);
    // Arm ARM, chapter on PMU events.
    assert_eq!(code("L1_MISSES", "a53"), 0x03);
    assert_eq!(code("L2_MISSES", "n1"), 0x17);
    assert_eq!(code("LLC_LOAD_MISSES", "v2"), 0x37);
}

/// The events of one of perf's tables: small letters to raw code, without registers.
fn vendor_events(folder: &Path) -> BTreeMap<String, u64> {
    let mut events = BTreeMap::new();
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    for file in files.filter(|file| file.extension().is_some_and(|end| end == "json")) {
        let parsed: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for event in parsed.as_array().into_iter().flatten() {
            let is_core = event.get("Unit").is_none() && event.get("MSRIndex").is_none_or(|msr| msr == "0");
            let Some(name) = text(event, "EventName").filter(|_| is_core) else { continue };
            let number = |key: &str| {
                text(event, key).map_or(0, |list| {
                    let text = list.split(',').next().unwrap_or_default();
                    if text.starts_with("0x") || text.starts_with("0X") { hex(text) } else { text.parse().unwrap_or(0) }
                })
            };
            let event = number("EventCode");
            let code = event & 0xff
                | (event >> 8) << 32
                | number("UMask") << 8
                | number("EdgeDetect") << 18
                | number("AnyThread") << 21
                | number("Invert") << 23
                | number("CounterMask") << 24;
            events.insert(name.to_lowercase(), code);
        }
    }
    events
}

/// libpfm's words for an event as the vendor writes them, one for each umask.
fn as_vendor(event: &str) -> Vec<String> {
    let (name, umasks) = event.split_once(':').unwrap_or((event, ""));
    let umasks = umasks.split(':');
    umasks.map(|umask| format!("{name}.{umask}").trim_end_matches('.').to_lowercase()).collect()
}

#[test]
fn golden_pmu_events_have_the_presets_codes() {
    let Some(folder) = PMU_EVENTS.find("arch/x86") else { return };
    let tables = [("snb", "sandybridge"), ("skl", "skylake"), ("spr", "sapphirerapids"), ("zen3", "amdzen3")];
    for (family, table) in tables {
        let events = vendor_events(&folder.join(table));
        if events.is_empty() {
            println!("skipped: no table of {table} in {}", folder.display());
            continue;
        }
        let (mut by_name, mut of_family) = (0, 0);
        for one in coded().iter().filter(|one| one.family == family) {
            of_family += 1;
            let words = one.event.as_deref().map(as_vendor);
            let words = words.unwrap_or_else(|| vec![one.vendor.clone().unwrap_or_default().to_lowercase()]);
            let codes: Vec<u64> = words.iter().filter_map(|word| events.get(word).copied()).collect();
            if codes.len() == words.len() {
                by_name += 1;
                assert_eq!(codes.iter().fold(0, |all, code| all | code), one.code, "{} on {family}", one.preset);
            } else {
                // libpfm has a name of its own: the vendor's must at least have the code.
                let event = one.code & 0xf_0000_00ff;
                let umasks = events
                    .values()
                    .filter(|code| *code & 0xf_0000_00ff == event && *code >> 24 & 0xff == one.code >> 24 & 0xff);
                let all = umasks.fold(0, |all, code| all | code);
                assert_eq!(one.code & !all, 0, "{} on {family}: no event has the bits of {:#x}", one.preset, one.code);
            }
        }
        println!("{family}: {by_name} of {of_family} presets by the vendor's own name");
        assert!(family == "zen3" || by_name * 3 > of_family * 2, "{family}: {by_name} of {of_family}");
    }
}

#[test]
fn golden_pmu_events_of_arm_have_the_presets_names() {
    let Some(folder) = PMU_EVENTS.find("arch/arm64/arm/neoverse-n2-v2") else { return };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let all: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    for one in coded().iter().filter(|one| ["n2", "v2"].contains(&one.family.as_str())) {
        // libpfm adds a word to the architecture's names.
        let name = one.event.clone().unwrap().replace("_CACHE_ACCESS", "_CACHE");
        assert!(all.contains(&format!("\"ArchStdEvent\": \"{name}\"")), "{} on {}: {name}", one.preset, one.family);
    }
}
