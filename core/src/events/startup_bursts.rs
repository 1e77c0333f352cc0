//! Says how often an event may happen while a program begins, when caches are cold and no page is mapped.

use super::Event;

/// The most counts in a millisecond of CPU time with which programs begin. In the first 1 to 4 ms of ten programs (a
/// compiler, interpreters, a database, text tools) under the model of `--source emulate`, where a million instructions
/// take a millisecond, a cache missed 20 to 5,600 times a millisecond, and once 12,000 times; 4,900 to 20,600
/// conditional branches were mispredicted. Sixteen programs under the kernel had 68 to 221 page faults a millisecond in
/// all of a short run; ten of them had 51 to 423 allocations of pages, up to 301 of the kernel's objects, and 52 to 191
/// system calls.
const CACHE_MISSES: f64 = 6_000.0;
const BRANCH_MISSES: f64 = 21_000.0;
const FAULTS: f64 = 250.0;
const ALLOCATIONS: f64 = 450.0;
const SYSTEM_CALLS: f64 = 200.0;

/// The most counts in a millisecond that an event may have while a program begins; 0 where that is as at other times.
pub fn most_per_ms_at_startup(event: &Event) -> f64 {
    let name = event.canonical.to_ascii_lowercase();
    let has = |word: &str| name.contains(word);
    match () {
        () if has("mispred") || has("misp_") || has("miss") && has("branch") => BRANCH_MISSES,
        () if has("miss") => CACHE_MISSES,
        () if ["page-fault", "page_fault", "minor-fault"].iter().any(|fault| has(fault)) => FAULTS,
        () if has("kmem:") => ALLOCATIONS,
        () if has("sys_enter") || has("sys_exit") => SYSTEM_CALLS,
        () => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::raw_event;

    #[test]
    fn misses_and_faults_are_many_at_first() {
        let of = |name: &str| most_per_ms_at_startup(&Event { canonical: name.into(), ..raw_event(name, 1) });
        assert_eq!(
            ["L2_LOAD_MISSES", "cache-misses", "branch-misses", "BR_MISP_RETIRED.ALL_BRANCHES", "minor-faults"].map(of),
            [CACHE_MISSES, CACHE_MISSES, BRANCH_MISSES, BRANCH_MISSES, FAULTS]
        );
        assert_eq!(
            ["kmem:mm_page_alloc", "kmem:kmalloc", "raw_syscalls:sys_enter", "syscalls:sys_exit_read"].map(of),
            [ALLOCATIONS, ALLOCATIONS, SYSTEM_CALLS, SYSTEM_CALLS]
        );
        assert_eq!(["instructions", "major-faults", "alignment-faults", "LOADS", "branches"].map(of), [0.0; 5]);
    }
}
