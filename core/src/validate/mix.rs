//! Runs a mix of loops, memory accesses and branches whose instructions and branches are known exactly.
//!
//! ```text
//! part   0        1         2           3        4         5
//!        count    walk      branch      count    walk      branch    ...    each of another length
//! ```
//!
//! Events happen at other rates in each kind of part, so that what is counted in turns misses some of them. The loops
//! are written in assembly on x86-64 and AArch64: how many instructions and branches they execute is no compiler's
//! choice. On other machines they are plain Rust, and nothing is known.

use std::hint::black_box;

/// Parts of a mix. At its full length they take half a second of a CPU of 3 GHz, some 40 turns of three groups.
const PARTS: u64 = 40;

/// The length of a mix at which it takes half a second.
pub const FULL: u32 = 16;

/// Iterations of a part at the mean length, by its kind: about 10 ms each.
const COUNTED: u64 = 8_000_000;
const WALKED: u64 = 2_000_000;
const BRANCHED: u64 = 2_000_000;

/// Bytes that are walked through, a word at a time: more than most caches hold.
const MEMORY: usize = 32 << 20;

/// Words from one access to the next: another page and another line each time; odd, so that it comes to all words.
const STRIDE: u64 = 521;

/// The generator that branches go by: D. E. Knuth's for 64 bits ("MMIX", in "The Art of Computer Programming", volume
/// 2, 3.3.4), and a bit of it that no branch predictor can learn.
const FACTOR: u64 = 6_364_136_223_846_793_005;
const STEP: u64 = 1_442_695_040_888_963_407;
const BIT: u64 = 1 << 62;

/// What the loops of a mix execute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownCounts {
    /// Instructions, all of them in user space.
    pub instructions: u64,
    /// Branches, taken or not, all of them conditional.
    pub branches: u64,
}

/// A part of the mix: what is done, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MixPart {
    Count(u64),
    Walk(u64),
    Branch(u64),
}

/// The parts of a mix of this length.
fn parts(length: u32) -> impl Iterator<Item = MixPart> {
    (0..PARTS).map(move |part| {
        // From a half to one and a half of the mean, in an order that meets no rotation.
        let sixteenths = 8 + (part * 11 + part * part * 5) % 17;
        let times = |mean: u64| mean * sixteenths / 16 * u64::from(length) / u64::from(FULL);
        match part % 3 {
            0 => MixPart::Count(times(COUNTED)),
            1 => MixPart::Walk(times(WALKED)),
            _ => MixPart::Branch(times(BRANCHED)),
        }
    })
}

/// Runs a mix of this length, in parts of [`FULL`]; at 0 it only makes its memory. Returns what it computed, so that it
/// is computed.
pub fn run(length: u32) -> u64 {
    // Not of zeros, which the kernel would make only when they are read.
    let (memory, mut random, mut result) = (vec![1_u8; MEMORY], 1, 0_u64);
    for part in parts(length) {
        let found = match part {
            MixPart::Count(times) => loops::count(times),
            MixPart::Walk(times) => loops::walk(&memory, times),
            MixPart::Branch(times) => loops::branch(&mut random, times),
        };
        result = result.wrapping_add(black_box(found));
    }
    result
}

/// What the loops of a mix execute; `None` where the compiler decides. What the process needs to start, and to make its
/// memory, comes on top.
pub fn known(length: u32) -> Option<KnownCounts> {
    let Instructions { count, walk, branch, add } = loops::INSTRUCTIONS?;
    let mut random = 1_u64;
    let mut known = KnownCounts::default();
    for part in parts(length) {
        let (instructions, branches) = match part {
            MixPart::Count(times) => (count * times, times),
            MixPart::Walk(times) => (walk * times, times),
            MixPart::Branch(times) => {
                let added: u64 = (0..times).map(|_| u64::from(next(&mut random) & BIT != 0)).sum();
                (branch * times + add * added, 2 * times)
            }
        };
        known.instructions += instructions;
        known.branches += branches;
    }
    Some(known)
}

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(FACTOR).wrapping_add(STEP);
    *random
}

/// Instructions of an iteration of each loop, and those of a branch that isn't taken.
struct Instructions {
    count: u64,
    walk: u64,
    branch: u64,
    add: u64,
}

#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "only in assembly is it known which instructions are executed")]
mod loops {
    use std::arch::asm;

    use super::{BIT, FACTOR, Instructions, STEP, STRIDE};

    pub(super) const INSTRUCTIONS: Option<Instructions> = Some(Instructions { count: 4, walk: 5, branch: 6, add: 1 });

    /// Adds up the numbers from 1, mixed with one another.
    pub(super) fn count(times: u64) -> u64 {
        let mut mixed = 0_u64;
        if times > 0 {
            // SAFETY: it computes in registers only.
            unsafe {
                asm!(
                    "2:", "add {number}, 1", "xor {mixed}, {number}", "sub {left}, 1", "jnz 2b",
                    number = inout(reg) 0_u64 => _, mixed = inout(reg) mixed, left = inout(reg) times => _,
                    options(pure, nomem, nostack)
                );
            }
        }
        mixed
    }

    /// Adds up words that lie far apart; there is a power of two of them.
    pub(super) fn walk(memory: &[u8], times: u64) -> u64 {
        let (mut sum, words) = (0_u64, memory.len() / 8);
        if times > 0 && words.is_power_of_two() {
            // SAFETY: it reads whole words of the memory alone, at places below their number, as the mask makes them.
            unsafe {
                asm!(
                    "2:", "add {place}, {stride}", "and {place}, {mask}", "add {sum}, qword ptr [{memory} + 8*{place}]",
                    "sub {left}, 1", "jnz 2b",
                    place = inout(reg) 0_u64 => _, stride = in(reg) STRIDE, mask = in(reg) words - 1,
                    memory = in(reg) memory.as_ptr(), sum = inout(reg) sum, left = inout(reg) times => _,
                    options(pure, readonly, nostack)
                );
            }
        }
        sum
    }

    /// Counts how often a random bit is set.
    pub(super) fn branch(random: &mut u64, times: u64) -> u64 {
        let mut added = 0_u64;
        if times > 0 {
            // SAFETY: it computes in registers only.
            unsafe {
                asm!(
                    "2:", "imul {random}, {factor}", "add {random}, {step}", "test {random}, {bit}", "jz 3f",
                    "add {added}, 1", "3:", "sub {left}, 1", "jnz 2b",
                    random = inout(reg) *random, factor = in(reg) FACTOR, step = in(reg) STEP, bit = in(reg) BIT,
                    added = inout(reg) added, left = inout(reg) times => _,
                    options(pure, nomem, nostack)
                );
            }
        }
        added
    }
}

#[cfg(target_arch = "aarch64")]
#[expect(unsafe_code, reason = "only in assembly is it known which instructions are executed")]
mod loops {
    use std::arch::asm;

    use super::{BIT, FACTOR, Instructions, STEP, STRIDE};

    pub(super) const INSTRUCTIONS: Option<Instructions> = Some(Instructions { count: 4, walk: 6, branch: 5, add: 1 });

    /// Adds up the numbers from 1, mixed with one another.
    pub(super) fn count(times: u64) -> u64 {
        let mut mixed = 0_u64;
        if times > 0 {
            // SAFETY: it computes in registers only.
            unsafe {
                asm!(
                    "2:", "add {number}, {number}, #1", "eor {mixed}, {mixed}, {number}", "subs {left}, {left}, #1",
                    "b.ne 2b",
                    number = inout(reg) 0_u64 => _, mixed = inout(reg) mixed, left = inout(reg) times => _,
                    options(pure, nomem, nostack)
                );
            }
        }
        mixed
    }

    /// Adds up words that lie far apart; there is a power of two of them.
    pub(super) fn walk(memory: &[u8], times: u64) -> u64 {
        let (mut sum, words) = (0_u64, memory.len() / 8);
        if times > 0 && words.is_power_of_two() {
            // SAFETY: it reads whole words of the memory alone, at places below their number, as the mask makes them.
            unsafe {
                asm!(
                    "2:", "add {place}, {place}, {stride}", "and {place}, {place}, {mask}",
                    "ldr {word}, [{memory}, {place}, lsl #3]", "add {sum}, {sum}, {word}", "subs {left}, {left}, #1",
                    "b.ne 2b",
                    place = inout(reg) 0_u64 => _, stride = in(reg) STRIDE, mask = in(reg) words - 1,
                    memory = in(reg) memory.as_ptr(), word = out(reg) _, sum = inout(reg) sum, left = inout(reg) times => _,
                    options(pure, readonly, nostack)
                );
            }
        }
        sum
    }

    /// Counts how often a random bit is set.
    pub(super) fn branch(random: &mut u64, times: u64) -> u64 {
        let mut added = 0_u64;
        if times > 0 {
            // SAFETY: it computes in registers only.
            unsafe {
                asm!(
                    "2:", "madd {random}, {random}, {factor}, {step}", "tst {random}, {bit}", "b.eq 3f",
                    "add {added}, {added}, #1", "3:", "subs {left}, {left}, #1", "b.ne 2b",
                    random = inout(reg) *random, factor = in(reg) FACTOR, step = in(reg) STEP, bit = in(reg) BIT,
                    added = inout(reg) added, left = inout(reg) times => _,
                    options(pure, nomem, nostack)
                );
            }
        }
        added
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod loops {
    use std::hint::black_box;

    use super::{BIT, Instructions, STRIDE, next};

    pub(super) const INSTRUCTIONS: Option<Instructions> = None;

    pub(super) fn count(times: u64) -> u64 {
        (1..=times).fold(0, |mixed, number| black_box(mixed ^ number))
    }

    pub(super) fn walk(memory: &[u8], times: u64) -> u64 {
        let (words, _) = memory.as_chunks::<8>();
        let word = |step: u64| {
            words.get((step * STRIDE) as usize % words.len().max(1)).map_or(0, |word| u64::from_ne_bytes(*word))
        };
        (1..=times).map(word).fold(0, u64::wrapping_add)
    }

    pub(super) fn branch(random: &mut u64, times: u64) -> u64 {
        (0..times).filter(|_| next(random) & BIT != 0).fold(0, |added, _| black_box(added + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loops_compute_what_their_text_says() {
        // 1 xor 2 xor 3 xor 4 xor 5 = 1.
        assert_eq!([loops::count(0), loops::count(1), loops::count(5)], [0, 1, 1]);
        let memory: Vec<u8> = (0..1024_u64).flat_map(u64::to_ne_bytes).collect();
        // Words 521, 1042 - 1024 = 18, 539.
        assert_eq!([loops::walk(&memory, 0), loops::walk(&memory, 3)], [0, 521 + 18 + 539]);
        let (mut ours, mut model) = (1, 1);
        let added = loops::branch(&mut ours, 1000);
        let expected = (0..1000).filter(|_| next(&mut model) & BIT != 0).count() as u64;
        assert_eq!((added, ours), (expected, model));
        assert!((400..600).contains(&added), "{added}");
    }

    #[test]
    fn known_counts_by_hand() {
        let sum = |length: u32| {
            parts(length).fold([0; 3], |[counted, walked, branched], part| match part {
                MixPart::Count(times) => [counted + times, walked, branched],
                MixPart::Walk(times) => [counted, walked + times, branched],
                MixPart::Branch(times) => [counted, walked, branched + times],
            })
        };
        let [counted, walked, branched] = sum(FULL);
        assert!((80_000_000..150_000_000).contains(&counted) && (20_000_000..35_000_000).contains(&walked));
        let Some(Instructions { count, walk, branch, add }) = loops::INSTRUCTIONS else { return };
        let known = known(FULL).unwrap_or_default();
        assert_eq!(known.branches, counted + walked + 2 * branched);
        // About half of the branches are taken, and so half of the additions are skipped.
        let added = known.instructions - count * counted - walk * walked - branch * branched;
        assert!((added as f64 / (add * branched) as f64 - 0.5).abs() < 0.001, "{added} {branched}");
        assert_eq!(super::known(0), Some(KnownCounts::default()));
    }

    #[test]
    fn a_mix_of_no_length_runs_no_loop() {
        assert_eq!(run(0), 0);
    }
}
