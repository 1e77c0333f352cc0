//! Reads counters of the CPU without the kernel's help, where it allows that.
//!
//! The kernel shows each event in a page: which counter has it, and what to add to that. It changes `lock` before and after
//! it writes, so that a reader that sees another `lock` behind than before begins anew (`linux/perf_event.h`).

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, fence};

use super::Readings;

/// The beginning of `struct perf_event_mmap_page`.
#[repr(C)]
#[derive(Debug, Default)]
struct Fields {
    version: AtomicU32,
    compatible: AtomicU32,
    lock: AtomicU32,
    /// One more than the number of the counter; 0 while none has the event.
    index: AtomicU32,
    offset: AtomicI64,
    time_enabled: AtomicU64,
    time_running: AtomicU64,
    capabilities: AtomicU64,
    width: AtomicU16,
    time_shift: AtomicU16,
    time_multiplier: AtomicU32,
    time_offset: AtomicU64,
}

/// The counters may be read from user space.
const READS: u64 = 1 << 2;
/// The fields of time hold.
const TIMES: u64 = 1 << 3;
/// How often a page is read anew that the kernel keeps changing.
const ATTEMPTS: u32 = 100;

/// What reads the CPU: its counters by number, and its clock.
trait Cpu {
    fn counter(&self, number: u32) -> u64;
    fn clock(&self) -> u64;
}

/// What a page says of its event at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    value: u64,
    enabled_ns: u64,
    running_ns: u64,
}

impl Fields {
    /// What is counted so far; `None` where the kernel alone can say.
    #[inline]
    fn read(&self, cpu: &impl Cpu) -> Option<Shown> {
        for _ in 0..ATTEMPTS {
            let lock = self.lock.load(Acquire);
            let shown = self.once(cpu);
            fence(Acquire);
            if self.lock.load(Relaxed) == lock {
                return shown;
            }
        }
        None
    }

    #[inline]
    fn once(&self, cpu: &impl Cpu) -> Option<Shown> {
        if self.capabilities.load(Relaxed) & (READS | TIMES) != READS | TIMES {
            return None;
        }
        let since = self.since(cpu.clock());
        let (index, offset) = (self.index.load(Relaxed), self.offset.load(Relaxed));
        let enabled_ns = self.time_enabled.load(Relaxed).wrapping_add(since);
        let running_ns = self.time_running.load(Relaxed);
        let Some(number) = index.checked_sub(1) else {
            return Some(Shown { value: offset as u64, enabled_ns, running_ns });
        };
        // The counter's highest bit is a sign.
        let unused = 64_u32.saturating_sub(u32::from(self.width.load(Relaxed))).min(63);
        let counted = (cpu.counter(number) << unused) as i64 >> unused;
        Some(Shown {
            value: offset.wrapping_add(counted) as u64,
            enabled_ns,
            running_ns: running_ns.wrapping_add(since),
        })
    }

    /// Nanoseconds since the kernel wrote the times. The header of the kernel has the formula, which can't overflow.
    #[inline]
    fn since(&self, clock: u64) -> u64 {
        let shift = u32::from(self.time_shift.load(Relaxed)).min(63);
        let multiplier = u64::from(self.time_multiplier.load(Relaxed));
        let (whole, part) = (clock >> shift, clock & ((1 << shift) - 1));
        let ns = whole.wrapping_mul(multiplier).wrapping_add(part.wrapping_mul(multiplier) >> shift);
        self.time_offset.load(Relaxed).wrapping_add(ns)
    }
}

/// The page of an event.
#[derive(Debug)]
pub(super) struct UserPage(*const Fields);

impl UserPage {
    /// The page of an event that can be read from user space; `None` for any other.
    pub(super) fn of(file: &OwnedFd) -> Option<Self> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        #[expect(unsafe_code, reason = "a call of the kernel")]
        // SAFETY: the kernel chooses where, so that nothing else is there.
        let page =
            unsafe { libc::mmap(std::ptr::null_mut(), size(), libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        let page = (page != libc::MAP_FAILED).then(|| Self(page.cast_const().cast()))?;
        let capabilities = page.fields().capabilities.load(Relaxed);
        (capabilities & (READS | TIMES) == READS | TIMES).then_some(page)
    }

    /// What all events of a group counted; `None` where the kernel alone can say.
    #[inline]
    pub(super) fn read_all(pages: &[Self]) -> Option<Readings> {
        if pages.is_empty() {
            return None;
        }
        read_all(pages.iter().map(Self::fields), &here())
    }

    #[expect(unsafe_code, reason = "the memory is the kernel's")]
    fn fields(&self) -> &Fields {
        // SAFETY: it is mapped for as long as this lives, longer than the fields, and they are atomic.
        unsafe { &*self.0 }
    }
}

impl Drop for UserPage {
    #[expect(unsafe_code, reason = "a call of the kernel")]
    fn drop(&mut self) {
        // SAFETY: it was mapped, as long, and nothing of it is used any more.
        unsafe { libc::munmap(self.0.cast_mut().cast(), size()) };
    }
}

#[inline]
fn read_all<'a>(pages: impl Iterator<Item = &'a Fields>, cpu: &impl Cpu) -> Option<Readings> {
    let mut readings = Readings::default();
    for (place, page) in pages.enumerate() {
        let shown = page.read(cpu)?;
        *readings.values.get_mut(place)? = shown.value;
        // The group is counted together: its leader's times are those of all.
        if place == 0 {
            (readings.enabled_ns, readings.running_ns) = (shown.enabled_ns, shown.running_ns);
        }
    }
    Some(readings)
}

/// Bytes of a page of memory.
#[expect(unsafe_code, reason = "a call of the C library")]
fn size() -> usize {
    // SAFETY: it takes a number, and the answer is always there.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The CPU on which this runs.
struct This;

fn here() -> This {
    This
}

#[cfg(target_arch = "x86_64")]
impl Cpu for This {
    #[inline]
    #[expect(unsafe_code, reason = "an instruction that Rust has no name for")]
    fn counter(&self, number: u32) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: the kernel says in the event's page that this counter may be read; nothing else changes.
        unsafe {
            std::arch::asm!("rdpmc", in("ecx") number, out("eax") low, out("edx") high, options(nostack, nomem, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline]
    #[expect(unsafe_code, reason = "an instruction")]
    fn clock(&self) -> u64 {
        // SAFETY: the kernel says in the event's page that this clock may be read.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
}

/// No page is made elsewhere, so that nothing is read.
#[cfg(not(target_arch = "x86_64"))]
impl Cpu for This {
    fn counter(&self, _: u32) -> u64 {
        0
    }

    fn clock(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    /// A CPU of known counters; counts how often it is asked, and may change a page meanwhile.
    struct Known<'a> {
        counters: [u64; 2],
        clock: u64,
        asked: Cell<u32>,
        changes: Option<&'a Fields>,
    }

    impl Cpu for Known<'_> {
        fn counter(&self, number: u32) -> u64 {
            self.asked.set(self.asked.get() + 1);
            if let Some(page) = self.changes.filter(|_| self.asked.get() < 3) {
                page.lock.fetch_add(1, Relaxed);
            }
            self.counters[number as usize]
        }

        fn clock(&self) -> u64 {
            self.clock
        }
    }

    fn cpu(counters: [u64; 2], clock: u64) -> Known<'static> {
        Known { counters, clock, asked: Cell::new(0), changes: None }
    }

    /// A page of an event on a counter of 48 bits, whose clock has 4 ns a tick.
    fn page(index: u32, offset: i64) -> Fields {
        let page = Fields::default();
        page.index.store(index, Relaxed);
        page.offset.store(offset, Relaxed);
        page.capabilities.store(READS | TIMES, Relaxed);
        page.width.store(48, Relaxed);
        page.time_shift.store(4, Relaxed);
        page.time_multiplier.store(64, Relaxed);
        page.time_offset.store(0_u64.wrapping_sub(1000), Relaxed);
        page.time_enabled.store(500, Relaxed);
        page.time_running.store(300, Relaxed);
        page
    }

    #[test]
    fn a_page_by_hand() {
        // 262 ticks of 64/16 ns are 1048, 48 after the kernel wrote; counter 1 has 7 of 1000.
        let shown = page(2, 1000).read(&cpu([0, 7], 262));
        assert_eq!(shown, Some(Shown { value: 1007, enabled_ns: 548, running_ns: 348 }));
        // A counter begins below zero, where it overflows soon.
        let below = (1 << 48) - 5;
        assert_eq!(page(1, 1000).read(&cpu([below, 0], 262)).map(|shown| shown.value), Some(995));
    }

    #[test]
    fn an_event_without_a_counter_is_enabled_and_does_not_run() {
        assert_eq!(page(0, 9).read(&cpu([0, 0], 262)), Some(Shown { value: 9, enabled_ns: 548, running_ns: 300 }));
    }

    #[test]
    fn a_page_that_changes_is_read_anew_and_one_that_may_not_be_read_is_not() {
        let changing = page(1, 0);
        let cpu = Known { changes: Some(&changing), ..cpu([1, 2], 0) };
        assert!(changing.read(&cpu).is_some());
        assert_eq!(cpu.asked.get(), 3);
        let forbidden = page(1, 0);
        forbidden.capabilities.store(TIMES, Relaxed);
        let cpu = self::cpu([1, 2], 0);
        assert_eq!((forbidden.read(&cpu), cpu.asked.get()), (None, 0));
    }

    #[test]
    fn a_group_has_its_leaders_times_and_needs_all_its_pages() {
        let (leader, other) = (page(1, 0), page(2, 0));
        other.time_enabled.store(7, Relaxed);
        let read = read_all([&leader, &other].into_iter(), &cpu([3, 4], 250));
        assert_eq!(read.map(|read| (read.values[..2].to_vec(), read.enabled_ns)), Some((vec![3, 4], 500)));
        other.capabilities.store(0, Relaxed);
        assert_eq!(read_all([&leader, &other].into_iter(), &cpu([3, 4], 250)), None);
    }
}
