//! Tests names of events on machines that are made of files.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::trees::Tree;
use perfprop::codes::Coded as _;
use perfprop::events::{
    Availability, Encoding, Event, EventErrorCause, EventKind, Group, GroupBinding, LettersError, Machine, Merge,
    Pattern, PmuType, Prober, Question, Resolver, Source, TracefsError, Unit, catalog, similar,
};
use proptest::prelude::*;

impl Tree {
    fn pmu(&self, pmu: &str, files: &[(&str, &str)]) {
        for (file, text) in files {
            self.write(&format!("sys/bus/event_source/devices/{pmu}/{file}"), text);
        }
    }

    fn tracepoint(&self, name: &str, id: u32) {
        self.write(&format!("sys/kernel/tracing/events/{name}/id"), &format!("{id}\n"));
    }

    fn resolver(&self) -> Resolver {
        Resolver::new(self.machine())
    }

    fn parse(&self, text: &str) -> Vec<Group> {
        self.resolver().parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn one(&self, text: &str) -> Event {
        let mut groups = self.parse(text);
        assert_eq!(groups.len(), 1, "{text}");
        let mut events = groups.remove(0).events;
        assert_eq!(events.len(), 1, "{text}");
        events.remove(0)
    }

    fn error(&self, text: &str) -> String {
        self.resolver().parse(text).map(|groups| panic!("{text}: {groups:?}")).unwrap_err().to_string()
    }

    fn cause(&self, text: &str) -> EventErrorCause {
        let error = self.resolver().parse(text).map(|groups| panic!("{text}: {groups:?}")).unwrap_err();
        error.problems[0].cause.clone()
    }
}

/// A server with AMD's split event field, two memory controllers and some tracepoints.
fn server() -> Tree {
    let tree = Tree::new(&[]);
    tree.pmu(
        "cpu",
        &[
            ("type", "4\n"),
            ("format/event", "config:0-7,32-35\n"),
            ("format/umask", "config:8-15\n"),
            ("format/edge", "config:18\n"),
            ("format/cmask", "config:24-31\n"),
            ("format/ldlat", "config1:0-15\n"),
            ("events/cpu-cycles", "event=0x76\n"),
            ("events/l3-fills", "event=0x28f,umask=0x1\n"),
            ("events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
            ("events/asks", "event=0x1,umask=?\n"),
            ("events/broken", "event=\n"),
        ],
    );
    for (index, pmu) in ["uncore_imc_0", "uncore_imc_1"].iter().enumerate() {
        tree.pmu(
            pmu,
            &[
                ("type", &format!("{}\n", 12 + index)),
                ("format/event", "config:0-7\n"),
                ("format/umask", "config:8-15\n"),
                ("events/cas_count_read", "event=0x04,umask=0x03\n"),
                ("events/cas_count_read.scale", "6.103515625e-5\n"),
                ("events/cas_count_read.unit", "MiB\n"),
            ],
        );
    }
    tree.pmu("software", &[("type", "1\n")]);
    tree.pmu("uprobe", &[("type", "7\n"), ("format/retprobe", "config:0\n")]);
    for (name, id) in [("sched/sched_switch", 316), ("sched/sched_wakeup", 318), ("irq/irq_handler_entry", 140)] {
        tree.tracepoint(name, id);
    }
    tree.write("sys/kernel/tracing/events/sched/enable", "0\n");
    tree
}

fn code(event: &Event) -> (u32, u64) {
    (event.encoding.pmu_type, event.encoding.config)
}

fn names(groups: &[Group]) -> Vec<String> {
    groups.iter().flat_map(|group| &group.events).map(|event| event.name.clone()).collect()
}

#[test]
fn perfs_symbols_need_no_machine() {
    let bare = Tree::new(&[]);
    assert_eq!(code(&bare.one("cycles:u")), (0, 0));
    assert_eq!(bare.one("cycles:u").name, "cycles:u");
    assert_eq!(code(&bare.one("faults")), (1, 2));
    assert_eq!(bare.one("task-clock").unit, Unit::Nanoseconds);
    assert_eq!(bare.one("1:1").identity(), bare.one("task-clock").identity());
    assert_eq!(bare.one("1:1").unit, Unit::Nanoseconds);
    assert_eq!(code(&bare.one("LLC-load-misses")), (3, 0x1_0002));
    assert_eq!(code(&bare.one("r1a:kp")), (4, 0x1a));
    assert_eq!(bare.one("r1a:kp").kind, EventKind::Raw);
    assert_eq!(code(&bare.one("4:0x6530160/name=numpmu/")), (4, 0x653_0160));
    assert_eq!(bare.one("4:0x6530160/name=numpmu/").name, "numpmu");
    assert_eq!(bare.one("cycles/name='A:b=c,d',period=1000/u").name, "A:b=c,d");
    assert_eq!(bare.one("cycles/config1=3/").encoding.config1, 3);
}

#[test]
fn a_breakpoint_is_its_address_length_and_access() {
    let bare = Tree::new(&[]);
    let encoding = |text: &str| {
        let Encoding { pmu_type, config1, config2, bp_type, .. } = bare.one(text).encoding;
        (pmu_type, config1, config2, bp_type)
    };
    assert_eq!(encoding("mem:0x1000"), (5, 0x1000, 4, 3));
    assert_eq!(encoding("mem:0x1000/1:w:u"), (5, 0x1000, 1, 2));
    assert_eq!(encoding("mem:0x1000:x"), (5, 0x1000, 8, 4));
    assert_eq!(bare.one("mem:0x1000:x:k").kind, EventKind::Breakpoint);
    assert_eq!(bare.cause("mem:0:rr"), EventErrorCause::Letters(LettersError::Twice('r')));
}

#[test]
fn a_tracepoint_goes_before_a_symbol_with_modifiers() {
    let tree = server();
    tree.tracepoint("cycles/u", 999);
    assert_eq!(code(&tree.one("cycles:u")), (2, 999));
    assert_eq!(code(&tree.one("cycles:k")), (0, 0));
    assert_eq!(code(&tree.one("sched:sched_switch:u")), (2, 316));
    assert!(tree.one("sched:sched_switch:u").modifiers.exclude_kernel);
    assert_eq!(tree.one("sched:sched_switch:u").canonical, "sched:sched_switch");
    assert_eq!(tree.one("sched:sched_switch/call-graph=fp/").kind, EventKind::Tracepoint);
}

#[test]
fn patterns_stand_for_tracepoints_in_order_of_name() {
    let tree = server();
    assert_eq!(names(&tree.parse("sched:*:k")), ["sched:sched_switch:k", "sched:sched_wakeup:k"]);
    assert_eq!(names(&tree.parse("*:*_[es]*")).len(), 2);
    let groups = tree.parse("{sched:sched_*,cs}:u");
    assert_eq!((groups.len(), groups[0].events.len(), groups[0].binding), (1, 3, GroupBinding::Braces));
    assert!(matches!(tree.cause("nosuch:*"), EventErrorCause::Unknown { .. }));
    assert!(matches!(tree.cause("../../sched:sched_switch"), EventErrorCause::Syntax { .. }));
}

#[test]
fn names_that_the_model_lacks_are_looked_up_in_its_list() {
    let text = |machine| Resolver::new(machine).parse("nosuch").unwrap_err().to_string();
    assert!(text(Machine::emulated()).contains("perfprop list --source emulate"));
    let here = text(Machine::under(Path::new("/nonexistent")));
    assert!(here.contains("perfprop list") && !here.contains("emulate"), "{here}");
}

#[test]
fn tracefs_at_the_older_place_is_found() {
    let tree = Tree::new(&[("sys/kernel/debug/tracing/events/irq/irq_exit/id", "7")]);
    fs::create_dir_all(tree.0.join("sys/kernel/tracing")).unwrap();
    assert_eq!(code(&tree.one("irq:irq_exit")), (2, 7));
}

#[test]
fn a_pmus_terms_fill_all_their_bit_ranges() {
    let tree = server();
    assert_eq!(code(&tree.one("cpu/event=0x28f,umask=0x3/")), (4, 0x2_0000_038F));
    assert_eq!(code(&tree.one("cpu/l3-fills/")), (4, 0x2_0000_018F));
    assert_eq!(code(&tree.one("cpu/event=0x76,edge,cmask=1/u")), (4, 0x104_0076));
    assert_eq!(code(&tree.one("cpu/config=1,name=krava/u")), (4, 1));
    assert_eq!(tree.one("cpu/config=1,config1=2,config2=3,config3=4/").encoding.config3, 4);
    assert_eq!(code(&tree.one("cpu/r1a/")), (4, 0x1a));
    assert_eq!(code(&tree.one("software/r0x1a/")), (1, 0x1a));
    assert_eq!(tree.one("software/config=2/").kind, EventKind::Software);
    assert_eq!(tree.one("uprobe/retprobe/").kind, EventKind::Probe);
    assert_eq!(tree.one("cpu/mem-loads/").encoding.config1, 3);
    assert_eq!(code(&tree.one("cpu/asks,umask=0x5/")), (4, 0x501));
    assert_eq!(tree.one("cpu/instructions/").identity(), tree.one("instructions").identity());
    assert_eq!(tree.one("cpu/L1-dcache-load-miss/kp").kind, EventKind::Cache);
    assert_eq!(tree.one("cpu/cpu-cycles/").kind, EventKind::Pmu);
    assert_eq!(tree.one("mem-loads:p").modifiers.precise, 1);
}

const READS: [&str; 4] =
    ["uncore_imc*/cas_count_read/", "uncore_imc/cas_count_read/", "imc/cas_count_read/", "cas_count_read"];

fn units(event: &Event) -> Vec<(&str, u32, u64)> {
    event.units().iter().map(|unit| (unit.pmu.as_str(), unit.encoding.pmu_type, unit.encoding.config)).collect()
}

#[test]
fn one_name_on_several_like_units_is_their_sum() {
    let tree = server();
    for text in READS {
        let event = tree.one(text);
        assert_eq!((event.name.as_str(), event.canonical.as_str()), (text, "uncore_imc/cas_count_read/"));
        assert_eq!(units(&event), [("uncore_imc_0", 12, 0x304), ("uncore_imc_1", 13, 0x304)], "{text}");
        assert_eq!(code(&event), (12, 0x304), "older readers know the first unit");
        assert_eq!(event.unit, Unit::Scaled { scale: 6.103_515_625e-5, name: "MiB".to_owned() });
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
    }
    assert_eq!(tree.one("uncore_imc/event=4,name=reads/").name, "reads");
    assert_ne!(tree.one("cas_count_read").identity(), tree.one("uncore_imc_0/cas_count_read/").identity());
    let groups = tree.parse("{uncore_imc/cas_count_read/,imc/event=4/}");
    assert_eq!(groups.len(), 1);
    assert!(groups[0].events.iter().all(|event| event.units().len() == 2));
    let unit = tree.one("uncore_imc_1/cas_count_read/");
    assert_eq!((code(&unit), unit.units().len()), ((13, 0x304), 0));
    assert!(!unit.modifiers.exclude_guest, "the kernel refuses exclusion outside of the cores");
}

#[test]
fn an_event_of_several_units_is_one_for_each_where_they_are_not_merged() {
    let tree = server();
    let resolver = tree.resolver().merging(Merge::Nothing);
    for text in READS {
        let groups = resolver.parse(text).unwrap();
        assert_eq!(names(&groups), ["uncore_imc_0/cas_count_read/", "uncore_imc_1/cas_count_read/"], "{text}");
        assert!(groups.iter().all(|group| group.events[0].units().is_empty()));
    }
    // The kernel takes no group over two PMUs.
    let groups = resolver.parse("{uncore_imc/cas_count_read/,cs,imc/event=4/}").unwrap();
    let members: Vec<_> = groups.iter().map(|group| names(std::slice::from_ref(group))).collect();
    assert_eq!(members[0], ["uncore_imc_0/cas_count_read/", "cs", "uncore_imc_0/event=0x4/"]);
    assert_eq!(members[1], ["uncore_imc_1/cas_count_read/", "uncore_imc_1/event=0x4/"]);
}

#[test]
fn units_of_different_kinds_and_measures_are_not_added_up() {
    let tree = Tree::new(&[]);
    let files = |kind: &'static str| [("type", kind), ("format/event", "config:0-7"), ("events/clockticks", "event=1")];
    for (pmu, number) in [
        ("uncore_imc_0", "20"),
        ("uncore_imc_1", "21"),
        ("uncore_cha_0", "30"),
        ("uncore_cha_10", "31"),
        ("uncore_arb", "40"),
        ("arm_cmn_0", "50"),
        ("arm_dmc620_10008c000", "60"),
        ("arm_dmc620_10008d000", "61"),
        ("hisi_sccl1_ddrc0", "70"),
        ("hisi_sccl3_ddrc1", "71"),
        ("hisi_sccl3_l3c1", "72"),
    ] {
        tree.pmu(pmu, &files(number));
    }
    assert_eq!(
        names(&tree.parse("uncore_*/clockticks/")),
        ["uncore_arb/clockticks/", "uncore_cha/clockticks/", "uncore_imc/clockticks/"]
    );
    let all = [
        "arm_cmn_0/clockticks/",
        "arm_dmc620/clockticks/",
        "hisi_sccl_ddrc/clockticks/",
        "hisi_sccl3_l3c1/clockticks/",
        "uncore_arb/clockticks/",
        "uncore_cha/clockticks/",
        "uncore_imc/clockticks/",
    ];
    assert_eq!(names(&tree.parse("clockticks")), all);
    let types = |event: Event| units(&event).iter().map(|unit| unit.1).collect::<Vec<_>>();
    assert_eq!(types(tree.one("arm_dmc620/event=1/")), [60, 61]);
    assert_eq!(types(tree.one("hisi_sccl*ddrc/event=1/")), [70, 71]);
    // One of them counts something else by this name.
    tree.pmu("uncore_cha_10", &[("events/clockticks.scale", "64"), ("events/clockticks.unit", "B")]);
    assert_eq!(names(&tree.parse("cha/clockticks/")), ["uncore_cha_0/clockticks/", "uncore_cha_10/clockticks/"]);
}

#[test]
fn an_event_knows_the_cpus_that_its_pmus_listen_to() {
    let tree = server();
    tree.pmu("uncore_imc_0", &[("cpumask", "0,28\n")]);
    tree.pmu("uncore_imc_1", &[("cpumask", "1\n")]);
    for text in ["uncore_imc_0/cas_count_read/", "12:0x304"] {
        assert_eq!(tree.one(text).encoding.cpus, [0, 28], "{text}");
    }
    let sum = tree.one("cas_count_read");
    assert_eq!(sum.units().iter().map(|unit| unit.encoding.cpus.clone()).collect::<Vec<_>>(), [vec![0, 28], vec![1]]);
    assert!(tree.one("cpu/event=1/").encoding.cpus.is_empty() && tree.one("cs").encoding.cpus.is_empty());
}

#[test]
fn wrong_terms_are_told_apart() {
    let tree = server();
    assert!(matches!(tree.cause("nosuch/event=1/"), EventErrorCause::NoPmu { .. }));
    assert!(matches!(tree.cause("cpu/evnt=1/"), EventErrorCause::NoTerm { .. }));
    assert!(matches!(tree.cause("software/cycles/"), EventErrorCause::NoTerm { .. }));
    assert!(matches!(tree.cause("cycles/umask=1/"), EventErrorCause::NoTerm { .. }));
    let large = EventErrorCause::TooLarge { pmu: "cpu".into(), term: "umask".into(), value: 0x100, max: 0xff };
    assert_eq!(tree.cause("cpu/event=1,umask=0x100/"), large);
    assert_eq!(tree.cause("cpu/event/"), EventErrorCause::NeedsValue { term: "event".into() });
    assert_eq!(tree.cause("cpu/event=no/"), EventErrorCause::NotANumber { term: "event".into(), text: "no".into() });
    let open = EventErrorCause::NeedsParameter { event: "cpu/asks/".into(), parameter: "umask".into() };
    assert_eq!(tree.cause("cpu/asks/"), open);
    assert_eq!(tree.cause("asks"), open);
    assert!(matches!(tree.cause("cpu/broken/"), EventErrorCause::BadSysfs { .. }));
    assert!(matches!(tree.cause("4294967296:1"), EventErrorCause::TooLarge { .. }));
    assert_eq!(tree.cause("cycles:uz"), EventErrorCause::Letters(LettersError::Unknown('z')));
    assert_eq!(tree.cause("cycles:W"), EventErrorCause::Letters(LettersError::WeakWithoutBraces));
    assert_eq!(tree.cause("{cycles:pp,cs:pp}:pp"), EventErrorCause::Letters(LettersError::TooPrecise));
}

#[test]
fn groups_keep_their_braces_and_names() {
    let bare = Tree::new(&[]);
    let groups = bare.parse("cs,g1{cycles,instructions:u}:kD,{faults,cs}:W");
    let shape: Vec<_> = groups.iter().map(|group| (group.name.as_deref(), group.events.len(), group.binding)).collect();
    assert_eq!(
        shape,
        [(None, 1, GroupBinding::Free), (Some("g1"), 2, GroupBinding::Braces), (None, 2, GroupBinding::Weak)]
    );
    let [leader, member] = groups[1].events.as_slice() else { panic!() };
    assert!(leader.modifiers.pinned && !member.modifiers.pinned);
    assert!(!member.modifiers.exclude_user && !member.modifiers.exclude_kernel && member.modifiers.exclude_hv);
}

#[test]
fn presets_are_read_in_any_case_of_letters() {
    let bare = Tree::new(&[]);
    assert_eq!(bare.one("CYCLES").identity(), bare.one("cycles").identity());
    assert_eq!(bare.one("Instructions:u").identity(), bare.one("instructions:u").identity());
    assert_eq!(bare.one("l1_misses").identity(), bare.one("L1-dcache-load-misses").identity());
    assert_eq!(bare.one("l1_misses").name, "l1_misses");
    assert!(bare.one("CYCLES").is_called("cycles"));
}

#[test]
fn a_preset_is_counted_by_the_code_of_its_family() {
    let on = |cpuinfo: &str, name: &str| {
        let tree = Tree::new(&[("proc/cpuinfo", cpuinfo)]);
        tree.one(name)
    };
    let x86 = |vendor: &str, family: u32, model: u32, stepping: u32| {
        format!("vendor_id : {vendor}\ncpu family : {family}\nmodel : {model}\nstepping : {stepping}\n")
    };
    let arm = |part: &str| format!("processor : 0\nCPU implementer : 0x41\nCPU part : {part}\n");
    let skx = x86("GenuineIntel", 6, 0x55, 4);
    assert_eq!(code(&on(&skx, "L2_MISSES:u")), (4, 0x2724));
    assert_eq!(on(&skx, "L2_MISSES").canonical, "skx::L2_RQSTS:ALL_DEMAND_MISS");
    assert_eq!(code(&on(&x86("GenuineIntel", 6, 0xAD, 1), "STALLS_L1_MISS")), (4, 0xc00_0ca3));
    assert_eq!(code(&on(&x86("AuthenticAMD", 25, 0x11, 1), "L1I_MISSES")), (4, 0x1_0000_188e));
    assert_eq!(code(&on(&x86("AuthenticAMD", 26, 2, 1), "L2_HITS")), (4, 0xf664));
    assert_eq!(code(&on(&arm("0xd08"), "L1_LOAD_MISSES")), (4, 0x42));
    assert_eq!(on(&arm("0xd08"), "L1_LOAD_MISSES").canonical, "r42");
    assert_eq!(code(&on(&arm("0xd0c"), "LLC_LOAD_MISSES")), (4, 0x37));
    assert_eq!(code(&on(&skx, "LLC_LOADS")), (3, 2));
    let haswell = on(&x86("GenuineIntel", 6, 0x3C, 3), "FP_SCALAR");
    assert!(haswell.unavailable().unwrap().starts_with("Intel Haswell cannot count FP_SCALAR: "));
    let midr = ("sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "0x00000000411fd493\n");
    assert_eq!(code(&Tree::new(&[midr]).one("STALLS_MEMORY")), (4, 0x4005));
}

#[test]
fn a_preset_without_a_code_here_is_known_and_absent() {
    let bare = Tree::new(&[]);
    let event = bare.one("L2_MISSES:u");
    assert_eq!(event.kind, EventKind::Hardware);
    assert_eq!(event.unavailable().unwrap(), "this CPU family has no event for L2_MISSES in the table");
    assert_eq!(event.encoding.pmu_type, u32::MAX);
    assert_ne!(event.encoding, Encoding::absent("L3_MISSES"));
    assert_eq!(bare.one("cycles").unavailable(), None);
    let text = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event);
}

#[test]
fn a_hybrid_machine_counts_on_each_kind_of_core() {
    let tree = Tree::new(&[]);
    tree.pmu("cpu_core", &[("type", "4"), ("cpus", "0-7"), ("format/event", "config:0-7"), ("events/x", "event=1")]);
    tree.pmu("cpu_atom", &[("type", "10"), ("cpus", "8-15"), ("format/event", "config:0-7"), ("events/x", "event=2")]);
    let groups = tree.parse("cycles:u");
    assert_eq!(names(&groups), ["cpu_atom/cycles/u", "cpu_core/cycles/u"]);
    assert_eq!(
        groups.iter().map(|group| group.events[0].core()).collect::<Vec<_>>(),
        [Some("cpu_atom"), Some("cpu_core")]
    );
    assert_eq!(tree.one("cpu_atom/cycles/u").identity(), groups[0].events[0].identity());
    let text = serde_json::to_string(&groups[0].events[0]).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&text).unwrap().core(), Some("cpu_atom"));
    assert_eq!(groups.iter().map(|group| code(&group.events[0]).1).collect::<Vec<_>>(), [10 << 32, 4 << 32]);
    let groups = tree.parse("{cs,cycles,instructions}");
    let members: Vec<_> = groups.iter().map(|group| names(std::slice::from_ref(group))).collect();
    let [first, second] = members.as_slice() else { panic!("{members:?}") };
    assert_eq!(first, &["cs", "cpu_atom/cycles/", "cpu_atom/instructions/"]);
    assert_eq!(second, &["cpu_core/cycles/", "cpu_core/instructions/"]);
    assert_eq!(tree.one("cpu_core/cycles/").encoding, groups[1].events[0].encoding);
    assert_eq!((code(&tree.one("cs")), tree.one("cs").core()), ((1, 3), None));
    let several_arm = Tree::new(&[]);
    for (name, pmu_type) in [("armv8_cortex_a53", "8"), ("armv8_cortex_a72", "9")] {
        several_arm.pmu(
            name,
            &[("type", pmu_type), ("cpus", "0-3"), ("events/inst_retired", "event=8"), ("format/event", "config:0-15")],
        );
    }
    assert_eq!(names(&several_arm.parse("cycles")), ["armv8_cortex_a53/cycles/", "armv8_cortex_a72/cycles/"]);
    assert_eq!(several_arm.one("armv8_cortex_a53/inst_retired/").core(), Some("armv8_cortex_a53"));
}

#[test]
fn all_ways_to_name_an_event_of_the_cores_are_of_one_pmu() {
    let arm = Tree::new(&[]);
    let formats = [("type", "8"), ("cpus", "0-3"), ("events/inst_retired", "event=8"), ("format/event", "config:0-15")];
    arm.pmu("armv8_pmuv3_0", &formats);
    arm.pmu("arm_cmn_0", &[("type", "9"), ("events/hnf_mc_reqs", "event=1"), ("format/event", "config:0-15")]);
    let cores =
        ["cycles", "L1-dcache-loads", "r11", "inst_retired", "armv8_pmuv3_0/inst_retired/", "armv8_pmuv3_0/event=8/"];
    for name in cores {
        assert_eq!(arm.one(name).pmu_type(), PmuType::CORES, "{name}");
    }
    assert_eq!(arm.one("arm_cmn_0/hnf_mc_reqs/").pmu_type(), PmuType(9));
    let hybrid = Tree::new(&[]);
    let formats =
        |kind, cpus| [("type", kind), ("cpus", cpus), ("format/event", "config:0-7"), ("events/x", "event=1")];
    hybrid.pmu("cpu_core", &formats("4", "0-7"));
    hybrid.pmu("cpu_atom", &formats("10", "8-15"));
    let atom = ["cpu_atom/cycles/", "cpu_atom/x/", "cpu_atom/event=3/"];
    assert!(atom.iter().all(|name| hybrid.one(name).pmu_type() == PmuType(10)));
    let core = ["cpu_core/cycles/", "cpu_core/x/", "cpu_core/event=3/"];
    assert!(core.iter().all(|name| hybrid.one(name).pmu_type() == PmuType(4)));
}

#[test]
fn every_wrong_name_is_reported_with_its_place() {
    let tree = server();
    let text = tree.error("L1_MISES,cycles,{cpu/evnt=1/,sched:sched_swich}:k");
    let expected = "\
unknown event 'L1_MISES' in -e (position 1)
      did you mean L1_MISSES?   similar: L1I_MISSES, L2_MISSES, L3_MISSES   all: perfprop list '*MISS*'
no term 'evnt' in 'cpu/evnt=1/' in -e (position 3)
      terms of PMU cpu: cmask, edge, event, ldlat, umask, asks, broken, cpu-cycles, l3-fills, mem-loads
unknown event 'sched:sched_swich' in -e (position 4)
      did you mean sched:sched_switch?   similar: sched:sched_wakeup   all: perfprop list '*switch*'";
    assert_eq!(text, expected);
}

#[test]
fn a_syntax_error_has_a_caret() {
    let expected = "\
cannot read the events in -e: expected ',' or '}'
      cycles,{cs:u,faults
                         ^ here";
    assert_eq!(Tree::new(&[]).error("cycles,{cs:u,faults"), expected);
    let long = format!("{}{{", "cs,".repeat(50));
    let text = Tree::new(&[]).error(&long);
    let [_, line, caret] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert!(line.len() < 80 && caret.find('^') == Some(line.len()), "{text}");
}

#[test]
fn names_from_outside_reach_no_terminal_raw() {
    for text in ["\x1b[2Jcycles", "cycles/name=\x07/", "cs,\u{202e}abc", "'\x1b", "cpu/\x1b]0;x/"] {
        let error = Tree::new(&[]).error(text);
        assert!(!error.chars().any(|c| c.is_control() && c != '\n'), "{error:?}");
        assert!(!error.contains('\u{202e}'), "{error:?}");
    }
}

#[test]
fn nonsense_gets_no_suggestion() {
    let expected = "\
unknown event 'qqqqqqqq' in -e (position 1)
      all names: perfprop list";
    assert_eq!(Tree::new(&[]).error("qqqqqqqq"), expected);
}

#[test]
fn missing_tracefs_is_no_unknown_event() {
    let bare = Tree::new(&[]);
    let folder = bare.0.join("sys/kernel/tracing");
    assert_eq!(bare.cause("sched:sched_switch"), EventErrorCause::Tracefs(TracefsError::NotMounted(folder.clone())));
    let text = bare.error("sched:sched_switch");
    assert!(text.contains(&format!("sudo mount -t tracefs tracefs {}", folder.display())), "{text}");
    assert!(matches!(bare.cause("L1_MISES:u"), EventErrorCause::Unknown { .. }));
}

#[test]
fn forbidden_tracefs_names_the_folder() {
    let tree = server();
    let folder = tree.0.join("sys/kernel/tracing/events");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o000)).unwrap();
    let may_read_anyway = fs::read_dir(&folder).is_ok();
    let cause = tree.resolver().parse("sched:sched_switch").map_err(|error| error.problems[0].cause.clone());
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    if may_read_anyway {
        // The superuser reads every folder.
        assert!(cause.is_ok());
    } else {
        assert_eq!(cause.unwrap_err(), EventErrorCause::Tracefs(TracefsError::Forbidden(folder)));
    }
}

#[test]
fn lists_without_end_are_refused() {
    let bare = Tree::new(&[]);
    assert!(matches!(bare.cause(&"{".repeat(100_000)), EventErrorCause::Syntax { .. }));
    assert!(matches!(bare.cause(&"cs,".repeat(1 << 20)), EventErrorCause::Syntax { .. }));
    let many = vec!["cs"; (1 << 16) + 1].join(",");
    assert!(matches!(bare.cause(&many), EventErrorCause::TooMany { .. }));
    let wrong = bare.resolver().parse(&vec!["nosuch"; 5000].join(",")).unwrap_err();
    assert_eq!(wrong.problems.len(), 5000);
    assert_eq!(wrong.problems[4999].position, 5000);
    assert!(wrong.to_string().ends_with("... and 4980 more wrong names in -e"));
}

#[test]
fn the_catalog_has_every_source() {
    let tree = server();
    let entries: Vec<_> = catalog(&tree.resolver()).collect();
    let find = |name: &str| entries.iter().find(|entry| entry.name == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(find("L1_MISSES").source, Source::Preset);
    assert_eq!(find("L1_MISSES").aliases, ["L1-dcache-load-misses"]);
    assert_eq!(find("L2_MISSES").aliases, [""; 0]);
    assert_eq!(find("page-faults").aliases, ["faults"]);
    assert_eq!(find("L1-dcache-load-misses").kind, EventKind::Cache);
    assert_eq!(find("cpu/l3-fills/").description, "event=0x28f,umask=0x1");
    assert_eq!(find("uncore_imc_0/cas_count_read/").pmu.as_deref(), Some("uncore_imc_0"));
    assert!(entries.iter().all(|entry| !entry.name.contains(".scale") && !entry.name.contains("enable")));
    assert_eq!(find("sched:sched_wakeup").kind, EventKind::Tracepoint);
    let resolver = tree.resolver();
    for entry in &entries {
        let may_fail = entry.name == "cpu/asks/" || entry.name == "cpu/broken/";
        assert!(may_fail || resolver.parse(&entry.name).is_ok(), "{}", entry.name);
    }
}

#[test]
fn patterns_match_as_in_perf_list() {
    let tree = server();
    let found = |pattern: &str| {
        let pattern = Pattern::new(pattern);
        let resolver = tree.resolver();
        let entries = catalog(&resolver).filter(move |entry| pattern.matches(entry));
        entries.map(|entry| entry.name).collect::<Vec<_>>()
    };
    assert_eq!(found("SCHED:*"), ["sched:sched_switch", "sched:sched_wakeup"]);
    assert_eq!(found("sched_w"), ["sched:sched_wakeup"]);
    assert_eq!(found("fault?"), ["page-faults"]);
    assert_eq!(found("cas_count_read").len(), 2);
    assert!(found("miss").contains(&"L2_MISSES".to_owned()));
    assert_eq!(found("sw").len(), 12 + 1, "software events, and sched_switch by its name");
    assert!(found("nosuch").is_empty());
    assert_eq!(found("").len(), catalog(&tree.resolver()).count());
    assert_eq!(similar(&tree.resolver(), "page-falts")[0], "page-faults");
}

#[test]
fn a_probe_is_made_once_where_one_tells_the_truth() {
    let tree = server();
    let probes = Cell::new(0);
    let probe = |question: Question<'_>| {
        probes.set(probes.get() + 1);
        match question {
            Question::Allowed => Availability::No("EACCES".to_owned()),
            Question::Open(event) if event.kind == EventKind::Hardware => Availability::UserOnly,
            Question::Open(_) => Availability::Yes,
        }
    };
    let resolver = tree.resolver();
    let prober = Prober::new(&resolver, &probe);
    let check = |name: &str| prober.check(&catalog(&resolver).find(|entry| entry.name == name).unwrap());
    let forbidden = Availability::No("EACCES".to_owned());
    for name in ["sched:sched_switch", "irq:irq_handler_entry", "page-faults", "uncore_imc_0/cas_count_read/"] {
        assert_eq!(check(name), forbidden, "{name}");
    }
    assert_eq!(probes.get(), 1);
    assert_eq!(check("cpu/l3-fills/"), Availability::Yes);
    assert_eq!(check("cpu/cpu-cycles/"), Availability::Yes);
    assert_eq!(probes.get(), 2);
    assert_eq!(check("cycles"), Availability::UserOnly);
    assert_eq!(check("instructions"), Availability::UserOnly);
    assert_eq!(check("cycles"), Availability::UserOnly);
    assert_eq!(probes.get(), 4);
    assert!(matches!(check("L2_MISSES"), Availability::No(reason) if reason.contains("no event for L2_MISSES")));
    assert_eq!(probes.get(), 4, "an absent event is not opened");
}

#[test]
fn what_counts_whole_cpus_cannot_count_a_program() {
    let tree = server();
    tree.pmu("uncore_imc_1", &[("cpumask", "0\n")]);
    let resolver = tree.resolver();
    let prober = Prober::new(&resolver, &|_| Availability::Yes);
    let check = |name: &str| prober.check(&catalog(&resolver).find(|entry| entry.name == name).unwrap());
    assert_eq!(check("uncore_imc_0/cas_count_read/"), Availability::Yes);
    assert!(matches!(check("uncore_imc_1/cas_count_read/"), Availability::No(_)));
}

/// Every string that perf's own tests accept, on a machine that has what they name.
#[test]
fn what_perf_accepts_has_an_encoding() {
    let tree = server();
    for (name, id) in [("syscalls/sys_enter_openat", 1), ("9p/9p_client_req", 2)] {
        tree.tracepoint(name, id);
    }
    tree.pmu("intel_pt", &[("type", "8"), ("format/pt", "config:0")]);
    for text in [
        "group1{syscalls:sys_enter_openat:H,cycles:kppp},group2{cycles,1:3}:G,instructions:u",
        "{cycles,instructions}:G,{cycles:G,instructions:G},cycles",
        "{cycles,cache-misses,branch-misses}:S",
        "cpu/name='COMPLEX_CYCLES_NAME:orig=cycles,desc=chip-clock-ticks',period=0x1,event=0x2/ukp",
        "{cpu/instructions/,cpu/branch-misses/}:Su",
        "mem:0/4:rw/name=breakpoint/u",
        "intel_pt//u",
        "9p:9p_client_req",
        "software/r0x1a/",
        "cpu/cycles,name=l1d/",
    ] {
        assert!(!tree.parse(text).is_empty(), "{text}");
    }
}

fn any_machine() -> Machine {
    Machine::under(Path::new("/nonexistent"))
}

proptest! {
    #[test]
    fn any_text_gives_events_or_an_error_that_can_be_shown(text in ".{0,60}") {
        if let Err(error) = Resolver::new(any_machine()).parse(&text) {
            prop_assert!(error.printed().starts_with("perfprop: E03 "));
        }
    }

    #[test]
    fn any_near_miss_does_too(text in "([a-z]{1,3}|cycles|mem:0|1:3|r1|cpu|[:/=,{}'*?0-9ukp])(([a-z]|cycles|mem:0|cpu|[:/=,{}'*?0-9ukp]){0,12})") {
        match Resolver::new(any_machine()).parse(&text) {
            Ok(groups) => prop_assert!(groups.iter().all(|group| !group.events.is_empty())),
            Err(error) => prop_assert!(!error.problems.is_empty()),
        }
    }
}

#[test]
fn letters_go_behind_letters() {
    use perfprop::events::with_letters;
    let cases = [
        ("cycles", "cycles:u"),
        ("cycles:p", "cycles:pu"),
        ("L2_RQSTS:MISS", "L2_RQSTS:MISS:u"),
        ("cpu/r1a/", "cpu/r1a/u"),
        ("cpu/r1a/p", "cpu/r1a/pu"),
    ];
    for (name, with) in cases {
        assert_eq!(with_letters(name, "u"), with);
    }
    assert_eq!(with_letters("cycles", ""), "cycles");
}
