//! Tests names out of the vendors' tables, on machines that are made of files.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail and say why")]

use std::fs;
use std::sync::Arc;

use perfprop::events::{Event, Merge, Resolver, Source, Tables, Unit, catalog};
use perfprop::expr::Fact;
use perfprop::metrics::{Facts, MeasuredScope};
use proptest::prelude::*;

use crate::goldens::PMU_EVENTS;
use crate::trees::Tree;

impl Tree {
    fn resolver_with(&self, tables: &str) -> Resolver {
        let tables = Tables::read(&self.0.join(tables), &self.machine()).unwrap_or_else(|error| panic!("{error}"));
        Resolver::new(self.machine()).with_tables(Arc::new(tables))
    }

    fn refused(&self, tables: &str) -> String {
        let error = Tables::read(&self.0.join(tables), &self.machine()).map(|_| ()).unwrap_err().to_string();
        error.replace(&*self.0.to_string_lossy(), "")
    }
}

const SKYLAKE: &str = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 94\nstepping : 3\n";

fn one(resolver: &Resolver, text: &str) -> Event {
    let groups = resolver.parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let [group] = groups.as_slice() else { panic!("{text}: {groups:?}") };
    group.events[0].clone()
}

fn code(event: &Event) -> (u32, u64, u64) {
    (event.encoding.pmu_type, event.encoding.config, event.encoding.config1)
}

const EVENTS: &str = r#"[
  {"EventName": "L2_RQSTS.MISS", "EventCode": "0x24", "UMask": "0x3f", "BriefDescription": "misses"},
  {"EventName": "OLD.NAME", "EventCode": "0x1", "Deprecated": "1", "BriefDescription": "this one is old"},
  {"EventName": "OCR.ANY", "EventCode": "0xB7, 0xBB", "UMask": "0x1", "MSRIndex": "0x1a6,0x1a7", "MSRValue": "0x10001"},
  {"EventName": "UNC_M_CAS_COUNT.RD", "EventCode": "0x4", "UMask": "0x3", "Unit": "iMC", "ScaleUnit": "64Bytes"},
  {"MetricName": "IPC", "MetricExpr": "a / b"}
]"#;

fn skylake() -> Tree {
    Tree::new(&[
        ("proc/cpuinfo", SKYLAKE),
        (
            "pmu-events/arch/x86/mapfile.csv",
            "Family-model,Version,Filename,EventType\nGenuineIntel-6-(4E|5E),v59,skylake,core\nGenuineIntel-6-[[:xdigit:]]+,v1,gone,core\n",
        ),
        ("pmu-events/arch/x86/skylake/cache.json", EVENTS),
        ("pmu-events/arch/x86/skylake/metricgroups.json", "{}"),
    ])
}

#[test]
fn names_are_found_by_the_cpu_and_in_any_case() {
    let tree = skylake();
    for folder in ["pmu-events", "pmu-events/arch", "pmu-events/arch/x86", "pmu-events/arch/x86/skylake"] {
        let resolver = tree.resolver_with(folder);
        assert_eq!(code(&one(&resolver, "l2_rqsts.miss")), (4, 0x3f24, 0), "{folder}");
    }
    let resolver = tree.resolver_with("pmu-events");
    let event = one(&resolver, "l2_RQSTS.MISS:u");
    assert_eq!((event.name.as_str(), event.canonical.as_str()), ("l2_RQSTS.MISS:u", "L2_RQSTS.MISS"));
    assert!(event.modifiers.exclude_kernel);
    assert_eq!(code(&one(&resolver, "OCR.ANY")), (4, 0x1b7, 0x10001));
    assert_eq!(one(&resolver, "{l2_rqsts.miss,cs}").name, "l2_rqsts.miss");
    let error = resolver.parse("l2_rqsts.mis").unwrap_err().to_string();
    assert!(error.contains("did you mean L2_RQSTS.MISS?"), "{error}");
}

#[test]
fn sysfs_says_where_the_bits_go_and_which_pmus_count() {
    let tree = skylake();
    for (file, text) in [
        ("cpu/type", "4"),
        ("cpu/format/event", "config:0-7"),
        ("cpu/format/umask", "config:8-15"),
        ("cpu/format/cmask", "config:24-31"),
        ("cpu/format/offcore_rsp", "config1:0-63"),
        ("uncore_imc_0/type", "14"),
        ("uncore_imc_0/format/event", "config:0-7"),
        ("uncore_imc_0/format/umask", "config:8-15"),
    ] {
        tree.write(&format!("sys/bus/event_source/devices/{file}"), text);
    }
    let resolver = tree.resolver_with("pmu-events");
    assert_eq!(code(&one(&resolver, "OCR.ANY")), (4, 0x1b7, 0x10001));
    assert_eq!(code(&one(&resolver, "cpu/l2_rqsts.miss,cmask=2/")), (4, 0x200_3f24, 0));
    let reads = one(&resolver, "unc_m_cas_count.rd");
    assert_eq!(code(&reads), (14, 0x304, 0));
    assert_eq!(reads.unit, Unit::Scaled { scale: 64.0, name: "Bytes".to_owned() });
}

#[test]
fn an_event_of_a_table_is_the_sum_over_its_units() {
    let tree = skylake();
    for (unit, number) in [("uncore_imc_0", "14"), ("uncore_imc_1", "15")] {
        for (file, text) in [("type", number), ("format/event", "config:0-7"), ("format/umask", "config:8-15")] {
            tree.write(&format!("sys/bus/event_source/devices/{unit}/{file}"), text);
        }
    }
    let resolver = tree.resolver_with("pmu-events");
    let reads = one(&resolver, "unc_m_cas_count.rd");
    assert_eq!((reads.name.as_str(), reads.canonical.as_str()), ("unc_m_cas_count.rd", "UNC_M_CAS_COUNT.RD"));
    assert_eq!(reads.units().iter().map(|unit| unit.encoding.pmu_type).collect::<Vec<_>>(), [14, 15]);
    assert_eq!(reads.unit, Unit::Scaled { scale: 64.0, name: "Bytes".to_owned() });
    let facts = Facts::new(&resolver, MeasuredScope::Whole);
    assert_eq!(facts.know(&Fact::SourceCount("UNC_M_CAS_COUNT.RD".into())), Some(2.0));
    // Each by a name that can be written again.
    let apart = resolver.clone().merging(Merge::Nothing);
    let groups = apart.parse("unc_m_cas_count.rd").unwrap();
    let events: Vec<_> = groups.iter().map(|group| &group.events[0]).collect();
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["uncore_imc_0/UNC_M_CAS_COUNT.RD/", "uncore_imc_1/UNC_M_CAS_COUNT.RD/"]);
    assert_eq!(code(&one(&apart, names[1])), (15, 0x304, 0));
}

#[test]
fn a_table_may_name_its_pmus_in_parts() {
    let tree = Tree::new(&[("t/e.json", r#"[{"EventName": "flux_rd", "EventCode": "1", "Unit": "hisi_sccl,ddrc"}]"#)]);
    for (unit, number) in [("hisi_sccl1_ddrc0", "14"), ("hisi_sccl3_ddrc1", "15"), ("hisi_sccl3_l3c1", "16")] {
        for (file, text) in [("type", number), ("format/event", "config:0-7")] {
            tree.write(&format!("sys/bus/event_source/devices/{unit}/{file}"), text);
        }
    }
    let event = one(&tree.resolver_with("t"), "flux_rd");
    assert_eq!(event.units().iter().map(|unit| unit.encoding.pmu_type).collect::<Vec<_>>(), [14, 15]);
}

#[test]
fn an_event_whose_pmu_is_missing_says_so() {
    let resolver = skylake().resolver_with("pmu-events");
    let error = resolver.parse("unc_m_cas_count.rd").unwrap_err().to_string();
    assert!(error.contains("no PMU 'uncore_imc'"), "{error}");
}

#[test]
fn the_list_has_them_and_marks_the_deprecated() {
    let resolver = skylake().resolver_with("pmu-events");
    let entries: Vec<_> = catalog(&resolver).filter(|entry| entry.source == Source::Tables).collect();
    assert_eq!(entries.len(), 4);
    assert_eq!(entries[1].description, "[deprecated] this one is old");
    assert_eq!(entries[3].pmu.as_deref(), Some("uncore_imc"));
}

#[test]
fn arms_standard_events_come_from_the_file_above() {
    let tree = Tree::new(&[
        ("proc/cpuinfo", "CPU implementer : 0x41\nCPU part : 0xd49\n"),
        (
            "arm64/mapfile.csv",
            "Family-model,Version,Filename,EventType\n0x00000000410fd490,v1,arm/neoverse-n2-v2,core\n",
        ),
        (
            "arm64/common-and-microarch.json",
            r#"[{"EventName": "L1D_CACHE_REFILL", "EventCode": "0x03", "BriefDescription": "refills"}]"#,
        ),
        ("arm64/arm/neoverse-n2-v2/l1d_cache.json", r#"[{"ArchStdEvent": "L1D_CACHE_REFILL"}]"#),
    ]);
    assert_eq!(code(&one(&tree.resolver_with(""), "l1d_cache_refill")), (4, 3, 0));
}

#[test]
fn folders_that_lead_nowhere_say_why() {
    let tree = skylake();
    tree.write("empty/x", "");
    assert_eq!(
        tree.refused("empty").lines().nth(1).unwrap().trim(),
        "no JSON files, and no mapfile.csv that leads to some"
    );
    assert!(tree.refused("nowhere").contains("no JSON files"));
    tree.write("proc/cpuinfo", &SKYLAKE.replace("94", "85"));
    assert!(
        tree.refused("pmu-events").contains("the folder 'gone' for the CPU GenuineIntel-6-55-3, which isn't there")
    );
    tree.write("proc/cpuinfo", &SKYLAKE.replace("GenuineIntel", "Other"));
    assert!(tree.refused("pmu-events").contains("no row for the CPU Other-6-5E-3"));
    tree.write("proc/cpuinfo", "");
    assert!(tree.refused("pmu-events").contains("doesn't tell which CPU it has"));
}

#[test]
fn hostile_files_are_refused_with_their_names() {
    let tree = Tree::new(&[
        ("t/a.json", "[{\"EventName\": \"A\", \"EventCode\": \"0x1\"}, {\"EventName\": \"B\""),
        ("t/b.json", "[{\"EventName\": \"X.Y\", \"UMask\": {}}, 7]"),
        ("t/c.json", "12"),
        ("t/d.json", &"[".repeat(100_000)),
        ("t/e.json", "[{\"EventName\": \"\\u001b[2J\", \"EventCode\": \"x\"}]"),
    ]);
    tree.write("t/f.json", "");
    fs::write(tree.0.join("t/g.json"), [0xff, 0xfe]).unwrap();
    let text = tree.refused("t");
    for part in [
        "a.json: not JSON",
        "b.json: X.Y: UMask isn't text",
        "b.json: entry 2 isn't an object",
        "c.json: not a list of events",
        "d.json: not JSON",
        "e.json: \\x1b[2J: EventCode 'x' isn't a number",
        "f.json: not JSON",
        "g.json: ",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'));
}

#[test]
fn a_file_without_end_is_refused() {
    let tree = Tree::new(&[]);
    fs::create_dir_all(tree.0.join("t")).unwrap();
    let file = fs::File::create(tree.0.join("t/huge.json")).unwrap();
    file.set_len(65 << 20).unwrap();
    assert!(tree.refused("t").contains("huge.json: larger than 64 MiB"));
}

/// The vendors' own tables, where they are: each name must have an encoding.
#[test]
fn golden_pmu_events_are_all_read() {
    let Some(arch) = PMU_EVENTS.find("arch/x86") else { return };
    let tree = Tree::new(&[("proc/cpuinfo", SKYLAKE)]);
    let folders = fs::read_dir(arch).unwrap().map(|entry| entry.unwrap().path());
    for folder in folders.filter(|path| path.is_dir()) {
        let tables = Tables::read(&folder, &tree.machine()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!tables.events().is_empty(), "{}", folder.display());
        let resolver = Resolver::new(tree.machine()).with_tables(Arc::new(tables));
        for event in resolver.tables().events().iter().filter(|event| event.pmu.is_none()) {
            assert!(resolver.parse(&event.name).is_ok(), "{}: {}", folder.display(), event.name);
        }
    }
}

/// The same tables are found by the CPU, and have these encodings.
#[test]
fn golden_pmu_events_are_found_by_the_cpu() {
    if PMU_EVENTS.find("arch/x86/mapfile.csv").is_none() {
        return;
    }
    let folder = PMU_EVENTS.find("").unwrap();
    for (core, vendor, family, model, known, code_of) in [
        ("skylake", "GenuineIntel", 6, 94, "l2_rqsts.miss", 0x3f24),
        ("sapphirerapids", "GenuineIntel", 6, 143, "l2_rqsts.miss", 0x3f24),
        ("sandybridge", "GenuineIntel", 6, 42, "l1d.replacement", 0x151),
        ("amdzen3", "AuthenticAMD", 25, 33, "ic_tag_hit_miss.instruction_cache_miss", 0x1_0000_188e),
    ] {
        if PMU_EVENTS.find(&format!("arch/x86/{core}")).is_none() {
            continue;
        }
        let cpuinfo = format!("vendor_id : {vendor}\ncpu family : {family}\nmodel : {model}\nstepping : 8\n");
        let tree = Tree::new(&[("proc/cpuinfo", &cpuinfo)]);
        let tables = Tables::read(&folder, &tree.machine()).unwrap_or_else(|error| panic!("{error}"));
        let resolver = Resolver::new(tree.machine()).with_tables(Arc::new(tables));
        assert_eq!(code(&one(&resolver, known)), (4, code_of, 0), "{core}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_file_is_read_or_refused(text in "[\\[\\]{}\",:0-9xA-Z]{0,60}", map in ".{0,60}") {
        let tree = Tree::new(&[("proc/cpuinfo", SKYLAKE), ("t/a.json", &text), ("m/mapfile.csv", &map)]);
        let _ = Tables::read(&tree.0.join("t"), &tree.machine());
        let _ = Tables::read(&tree.0.join("m"), &tree.machine());
    }
}
