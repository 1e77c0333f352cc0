//! Looks up the names that perf has built in: their kind, encoding and canonical name.
//!
//! The numbers are the kernel's ABI (`PERF_TYPE_*`, `PERF_COUNT_*` of `linux/perf_event.h`).

use super::{Encoding, EventKind, Unit};

/// `PERF_TYPE_HARDWARE`.
pub(super) const HARDWARE: u32 = 0;
/// `PERF_TYPE_SOFTWARE`.
pub(super) const SOFTWARE: u32 = 1;
/// `PERF_TYPE_TRACEPOINT`.
pub(crate) const TRACEPOINT: u32 = 2;
/// `PERF_TYPE_HW_CACHE`.
pub(super) const HW_CACHE: u32 = 3;
/// `PERF_TYPE_RAW`.
pub(super) const RAW: u32 = 4;
/// `PERF_TYPE_BREAKPOINT`.
pub(super) const BREAKPOINT: u32 = 5;

/// An event that perf knows by itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Symbol {
    pub(super) canonical: String,
    pub(super) kind: EventKind,
    pub(super) encoding: Encoding,
    pub(super) unit: Unit,
}

/// One row of the tables below: type, config, names (the canonical one first), description.
pub(super) struct SymbolRow {
    pub(super) pmu_type: u32,
    pub(super) config: u64,
    pub(super) names: &'static [&'static str],
    pub(super) description: &'static str,
}

const fn row(pmu_type: u32, config: u64, names: &'static [&'static str], description: &'static str) -> SymbolRow {
    SymbolRow { pmu_type, config, names, description }
}

/// perf's generic hardware and software events.
pub(super) const ROWS: &[SymbolRow] = &[
    row(HARDWARE, 0, &["cycles", "cpu-cycles"], "CPU cycles, at the frequency of the moment"),
    row(HARDWARE, 1, &["instructions"], "instructions retired"),
    row(HARDWARE, 2, &["cache-references"], "accesses to the last level of cache, mostly"),
    row(HARDWARE, 3, &["cache-misses"], "misses of the last level of cache, mostly"),
    row(HARDWARE, 4, &["branches", "branch-instructions"], "branches retired"),
    row(HARDWARE, 5, &["branch-misses"], "branches predicted wrongly"),
    row(HARDWARE, 6, &["bus-cycles"], "cycles of the bus"),
    row(HARDWARE, 7, &["stalled-cycles-frontend", "idle-cycles-frontend"], "cycles in which nothing was issued"),
    row(HARDWARE, 8, &["stalled-cycles-backend", "idle-cycles-backend"], "cycles in which nothing was retired"),
    row(HARDWARE, 9, &["ref-cycles"], "CPU cycles at a fixed frequency"),
    row(SOFTWARE, 0, &["cpu-clock"], "time by the CPU's timer, in nanoseconds"),
    row(SOFTWARE, 1, &["task-clock"], "time that the task was on a CPU, in nanoseconds"),
    row(SOFTWARE, 2, &["page-faults", "faults"], "page faults of both kinds"),
    row(SOFTWARE, 3, &["context-switches", "cs"], "switches away from the task"),
    row(SOFTWARE, 4, &["cpu-migrations", "migrations"], "moves to another CPU"),
    row(SOFTWARE, 5, &["minor-faults"], "page faults that read no disk"),
    row(SOFTWARE, 6, &["major-faults"], "page faults that read a disk"),
    row(SOFTWARE, 7, &["alignment-faults"], "unaligned accesses that the kernel repaired"),
    row(SOFTWARE, 8, &["emulation-faults"], "instructions that the kernel emulated"),
    row(SOFTWARE, 9, &["dummy"], "counts nothing; carries side-band records"),
    row(SOFTWARE, 10, &["bpf-output"], "what a BPF program writes out"),
    row(SOFTWARE, 11, &["cgroup-switches"], "switches to a task of another cgroup"),
    row(Encoding::TOOL, 1, &["duration_time"], "time that passes while events are counted, in nanoseconds"),
    row(Encoding::TOOL, 2, &["user_time"], "CPU time in user space, by the kernel's accounts, in nanoseconds"),
    row(Encoding::TOOL, 3, &["system_time"], "CPU time in the kernel, by the kernel's accounts, in nanoseconds"),
];

/// The event that perf calls `name`: software, hardware or cache.
pub(super) fn find(name: &str) -> Option<Symbol> {
    generic(name).or_else(|| cache(name))
}

fn generic(name: &str) -> Option<Symbol> {
    ROWS.iter().find(|row| row.names.contains(&name)).map(Symbol::from)
}

impl From<&SymbolRow> for Symbol {
    fn from(row: &SymbolRow) -> Self {
        let is_clock = row.pmu_type == SOFTWARE && row.config <= 1;
        Self {
            canonical: row.names[0].to_owned(),
            kind: match row.pmu_type {
                SOFTWARE => EventKind::Software,
                Encoding::TOOL => EventKind::Tool,
                _ => EventKind::Hardware,
            },
            encoding: Encoding::of(row.pmu_type, row.config),
            unit: match row.pmu_type {
                Encoding::TOOL => Unit::Scaled { scale: 1.0, name: "ns".into() },
                _ if is_clock => Unit::Nanoseconds,
                _ => Unit::Count,
            },
        }
    }
}

/// The names of a cache, the canonical one first, and the operations that perf counts there.
struct CacheNames {
    names: &'static [&'static str],
    operations: &'static [usize],
}

const READ: usize = 0;
const WRITE: usize = 1;
const PREFETCH: usize = 2;

/// Caches, in the order of `PERF_COUNT_HW_CACHE_*`.
const CACHES: &[CacheNames] = &[
    CacheNames { names: &["L1-dcache", "l1-d", "l1d", "L1-data"], operations: &[READ, WRITE, PREFETCH] },
    CacheNames { names: &["L1-icache", "l1-i", "l1i", "L1-instruction"], operations: &[READ, PREFETCH] },
    CacheNames { names: &["LLC", "L2"], operations: &[READ, WRITE, PREFETCH] },
    CacheNames { names: &["dTLB", "d-tlb", "Data-TLB"], operations: &[READ, WRITE, PREFETCH] },
    CacheNames { names: &["iTLB", "i-tlb", "Instruction-TLB"], operations: &[READ] },
    CacheNames { names: &["branch", "branches", "bpu", "btb", "bpc"], operations: &[READ] },
    CacheNames { names: &["node"], operations: &[READ, WRITE, PREFETCH] },
];

/// In the order of `PERF_COUNT_HW_CACHE_OP_*`; perf's names use the first (with a result) or the
/// second (without).
const OPERATIONS: &[&[&str]] = &[
    &["load", "loads", "read"],
    &["store", "stores", "write"],
    &["prefetch", "prefetches", "speculative-read", "speculative-load"],
];

/// Results, in the order of `PERF_COUNT_HW_CACHE_RESULT_*`.
const RESULTS: &[&[&str]] = &[&["refs", "Reference", "ops", "access"], &["misses", "miss"]];

/// `L1-dcache-load-misses`: a cache, then an operation and a result in either order. perf takes
/// reads where no operation is named, and accesses where no result is.
fn cache(name: &str) -> Option<Symbol> {
    let (cache, mut rest) = strip_longest(name, CACHES.iter().map(|cache| cache.names))?;
    let (mut operation, mut result) = (None, None);
    while !rest.is_empty() {
        let word = rest.strip_prefix('-')?;
        let as_operation = strip_longest(word, OPERATIONS.iter().copied());
        let as_result = strip_longest(word, RESULTS.iter().copied());
        rest = match (as_operation, as_result) {
            (Some((index, rest)), _) if operation.is_none() => {
                operation = Some(index);
                rest
            }
            (_, Some((index, rest))) if result.is_none() => {
                result = Some(index);
                rest
            }
            _ => return None,
        };
    }
    let (operation, result) = (operation.unwrap_or(READ), result.unwrap_or(0));
    CACHES[cache].operations.contains(&operation).then(|| cache_symbol(cache, operation, result))
}

fn cache_symbol(cache: usize, operation: usize, result: usize) -> Symbol {
    let name = CACHES[cache].names[0];
    let canonical = match result {
        0 => format!("{name}-{}", OPERATIONS[operation][1]),
        _ => format!("{name}-{}-{}", OPERATIONS[operation][0], RESULTS[result][0]),
    };
    let config = (cache | operation << 8 | result << 16) as u64;
    Symbol { canonical, kind: EventKind::Cache, encoding: Encoding::of(HW_CACHE, config), unit: Unit::Count }
}

/// The index of the names that hold the longest beginning of `text` up to a `-` or the end, and
/// what follows it.
fn strip_longest(text: &str, names: impl Iterator<Item = &'static [&'static str]>) -> Option<(usize, &str)> {
    names
        .enumerate()
        .flat_map(|(index, names)| names.iter().map(move |name| (index, name)))
        .filter_map(|(index, name)| Some((index, text.strip_prefix(name)?)))
        .filter(|(_, rest)| rest.is_empty() || rest.starts_with('-'))
        .min_by_key(|(_, rest)| rest.len())
}

/// Every cache event by its canonical name.
pub(super) fn caches() -> impl Iterator<Item = Symbol> {
    CACHES.iter().enumerate().flat_map(|(index, cache)| {
        cache
            .operations
            .iter()
            .flat_map(move |&operation| (0..RESULTS.len()).map(move |result| cache_symbol(index, operation, result)))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use super::*;

    #[test]
    fn cache_names_encode_as_in_the_kernel_header() {
        let config = |name: &str| find(name).map(|symbol| symbol.encoding.config);
        assert_eq!(config("L1-dcache-load-misses"), Some(0x1_0000));
        assert_eq!(config("L1-dcache-load-miss"), Some(0x1_0000));
        assert_eq!(config("L1-dcache-misses-load"), Some(0x1_0000));
        assert_eq!(config("L1-dcache"), Some(0));
        assert_eq!(config("LLC-loads"), Some(2));
        assert_eq!(config("L2-store-misses"), Some(0x1_0102));
        assert_eq!(config("dTLB-store-misses"), Some(0x1_0103));
        assert_eq!(config("iTLB-loads"), Some(4));
        assert_eq!(config("branch-loads"), Some(5));
        assert_eq!(config("node-prefetches"), Some(0x206));
        assert_eq!(config("l1d-speculative-read-miss"), Some(0x1_0200));
    }

    #[test]
    fn combinations_that_perf_refuses_are_refused() {
        for name in [
            "L1-icache-stores",
            "iTLB-stores",
            "iTLB-prefetches",
            "branch-stores",
            "L1-dcache-",
            "L1-dcache-load-load",
            "L1-dcache-misses-miss",
            "L1-dcache-load-misses-x",
            "L1-dcachex",
        ] {
            assert_eq!(find(name), None, "{name}");
        }
    }

    #[test]
    fn branches_is_the_hardware_event_as_in_perf() {
        assert_eq!(find("branches").unwrap().encoding, Encoding::of(HARDWARE, 4));
        assert_eq!(find("branch-misses").unwrap().encoding, Encoding::of(HARDWARE, 5));
    }

    #[test]
    fn every_canonical_name_names_itself() {
        let generic = ROWS.iter().map(Symbol::from);
        for symbol in generic.chain(caches()) {
            assert_eq!(find(&symbol.canonical).as_ref(), Some(&symbol));
        }
        assert_eq!(caches().count(), 2 * (3 + 2 + 3 + 3 + 1 + 1 + 3));
    }

    #[test]
    fn clocks_count_nanoseconds() {
        assert_eq!(find("task-clock").unwrap().unit, Unit::Nanoseconds);
        assert_eq!(find("cpu-clock").unwrap().unit, Unit::Nanoseconds);
        assert_eq!(find("cs").unwrap().unit, Unit::Count);
    }
}
