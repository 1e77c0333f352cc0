//! Resolves names of events to what the kernel is asked to count.

/// What the kernel's `perf_event_attr` calls a type.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;

/// Names of `enum perf_hw_id`, in its order.
const HARDWARE_NAMES: [&[&str]; 10] = [
    &["cycles", "cpu-cycles"],
    &["instructions"],
    &["cache-references"],
    &["cache-misses"],
    &["branches", "branch-instructions"],
    &["branch-misses"],
    &["bus-cycles"],
    &["stalled-cycles-frontend", "idle-cycles-frontend"],
    &["stalled-cycles-backend", "idle-cycles-backend"],
    &["ref-cycles"],
];

/// Names of `enum perf_sw_ids`, in its order. The ninth is for other uses than counting.
const SOFTWARE_NAMES: [&[&str]; 12] = [
    &["cpu-clock"],
    &["task-clock"],
    &["page-faults", "faults"],
    &["context-switches", "cs"],
    &["cpu-migrations", "migrations"],
    &["minor-faults"],
    &["major-faults"],
    &["alignment-faults"],
    &["emulation-faults"],
    &[],
    &["bpf-output"],
    &["cgroup-switches"],
];

/// Caches, in the order of `enum perf_hw_cache_id`.
const CACHES: [&str; 7] = ["L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"];
/// What is done with them, by what `perf_hw_cache_op_id` and `perf_hw_cache_op_result_id` call it.
const ACCESSES: [&str; 6] = ["loads", "load-misses", "stores", "store-misses", "prefetches", "prefetch-misses"];

/// An event that is to be counted in regions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountedEvent {
    /// As its user wrote it, with `:u` where the kernel's part had to be left out.
    pub(crate) name: String,
    pub(crate) kind: u32,
    pub(crate) config: u64,
    pub(crate) without_user: bool,
    pub(crate) without_kernel: bool,
}

impl CountedEvent {
    /// The event of a name such as `instructions`, `L1-dcache-load-misses`, `page-faults` or `r1a8`, behind which may stand
    /// `:u` or `:k`; `None` where no event has it.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let (plain, modifiers) = name.split_once(':').unwrap_or((name, "uk"));
        if modifiers.is_empty() || modifiers.contains(|modifier| !matches!(modifier, 'u' | 'k')) {
            return None;
        }
        let (kind, config) = code(plain)?;
        let without = |modifier: char| !modifiers.contains(modifier);
        Some(Self { name: name.to_owned(), kind, config, without_user: without('u'), without_kernel: without('k') })
    }

    /// The same in user space alone, for those who may not count the kernel; `None` where that is no other event, or the
    /// event happens in the kernel alone.
    pub(crate) fn of_user(&self) -> Option<Self> {
        let is_of_kernel = self.kind == SOFTWARE && matches!(self.config, 3 | 4 | 11);
        let may = !self.without_kernel && !self.without_user && !is_of_kernel;
        may.then(|| Self { name: format!("{}:u", self.name), without_kernel: true, ..self.clone() })
    }

    /// Whether a counter of the CPU is needed.
    pub(crate) fn is_hardware(&self) -> bool {
        self.kind != SOFTWARE
    }
}

/// Type and config of a name.
fn code(name: &str) -> Option<(u32, u64)> {
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    let place = |names: &[&[&str]]| names.iter().position(|names| names.iter().any(|known| is(known)));
    let hardware = place(&HARDWARE_NAMES).map(|place| (HARDWARE, place as u64));
    let software = || place(&SOFTWARE_NAMES).map(|place| (SOFTWARE, place as u64));
    hardware.or_else(software).or_else(|| cache(name)).or_else(|| raw(name))
}

fn cache(name: &str) -> Option<(u32, u64)> {
    CACHES.iter().enumerate().find_map(|(cache, known)| {
        let (start, rest) = name.split_at_checked(known.len())?;
        let access = rest.strip_prefix('-').filter(|_| start.eq_ignore_ascii_case(known))?;
        let place = ACCESSES.iter().position(|known| known.eq_ignore_ascii_case(access))?;
        let (operation, is_miss) = (place as u64 / 2, place as u64 % 2);
        Some((CACHE, cache as u64 | operation << 8 | is_miss << 16))
    })
}

/// `r` and hexadecimal digits.
fn raw(name: &str) -> Option<(u32, u64)> {
    let digits = name.strip_prefix('r').filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    Some((RAW, u64::from_str_radix(digits, 16).ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic")]

    use super::*;

    #[test]
    fn names_are_those_of_linux_perf_event_h() {
        let of = |name: &str| CountedEvent::of(name).map(|event| (event.kind, event.config));
        assert_eq!(["cycles", "branch-misses", "REF-CYCLES"].map(of), [Some((0, 0)), Some((0, 5)), Some((0, 9))]);
        assert_eq!(["task-clock", "faults", "cgroup-switches"].map(of), [Some((1, 1)), Some((1, 2)), Some((1, 11))]);
        // Cache, operation << 8, result << 16.
        assert_eq!(of("L1-dcache-load-misses"), Some((3, 0x1_0000)));
        assert_eq!(of("LLC-store-misses"), Some((3, 0x1_0102)));
        assert_eq!(of("branch-loads"), Some((3, 5)));
        assert_eq!(of("r1A8"), Some((4, 0x1a8)));
    }

    #[test]
    fn what_is_no_event_is_none() {
        for name in
            ["", "r", "rxyz", "cycle", "LLC", "LLC-", "LLC-hits", "cycles:", "cycles:p", "r11112222333344445", "é"]
        {
            assert_eq!(CountedEvent::of(name), None, "{name}");
        }
    }

    #[test]
    fn modifiers_leave_out_the_kernel_or_the_user() {
        let of = |name: &str| CountedEvent::of(name).map(|event| (event.without_user, event.without_kernel)).unwrap();
        assert_eq!(
            ["cycles", "cycles:u", "cycles:k", "cycles:uk"].map(of),
            [(false, false), (false, true), (true, false), (false, false)]
        );
        let in_user = |name: &str| CountedEvent::of(name).unwrap().of_user().map(|event| event.name);
        assert_eq!(in_user("page-faults"), Some("page-faults:u".to_owned()));
        // Nobody switches in user space: such a count would be a zero that means nothing.
        assert_eq!(["cycles:k", "cycles:u", "context-switches", "migrations"].map(in_user), [None, None, None, None]);
    }
}
