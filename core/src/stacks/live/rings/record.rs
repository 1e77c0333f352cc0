//! Decodes perf records.
//!
//! The fields of a record have no names in it: they follow from the bits with which its event was
//! opened, and from the order that perf_event_open(2) gives for them. [`SampleLayout`] stands for those bits; the
//! identifier, with which every sample begins, tells whose they are.

use std::fmt;

use nix::sys::stat::makedev;

use super::registers::REGISTERS;
use crate::files::Identity;
use crate::stacks::UnwindMethod;

/// `PERF_SAMPLE_*` bits that every event has, so that every record ends with the same trailer.
pub(super) const COMMON: u64 = TID | TIME | CPU | IDENTIFIER;
const IP: u64 = 1 << 0;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const CALLCHAIN: u64 = 1 << 5;
const CPU: u64 = 1 << 7;
const PERIOD: u64 = 1 << 8;
const RAW: u64 = 1 << 10;
const BRANCH_STACK: u64 = 1 << 11;
const REGS_USER: u64 = 1 << 12;
const STACK_USER: u64 = 1 << 13;
const IDENTIFIER: u64 = 1 << 16;

/// `PERF_RECORD_*`.
const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;
const SWITCH_CPU_WIDE: u32 = 15;

/// `PERF_RECORD_MISC_COMM_EXEC`, `PERF_RECORD_MISC_MMAP_BUILD_ID`.
const MISC_EXEC: u16 = 1 << 13;
const MISC_BUILD_ID: u16 = 1 << 14;
/// `PERF_RECORD_MISC_SWITCH_OUT`, `PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`.
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_PREEMPTED: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;

/// Values of a call chain at and above this are marks (`PERF_CONTEXT_MAX`).
const CONTEXT_MAX: u64 = (-4095_i64) as u64;
const CONTEXT_KERNEL: u64 = (-128_i64) as u64;

/// pid and tid, time, CPU, identifier.
const TRAILER: usize = 32;

/// Which fields samples have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct SampleLayout {
    pub(in crate::stacks::live) call_graph: UnwindMethod,
    pub(in crate::stacks::live) period: SamplePeriod,
}

/// How many occurrences a sample stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) enum SamplePeriod {
    /// Each sample says so.
    InSample,
    /// As many for all, which samples don't say.
    Fixed(u64),
}

impl SampleLayout {
    /// The `PERF_SAMPLE_*` bits of a sampled event.
    pub(super) fn sample_type(self) -> u64 {
        let stack = match self.call_graph {
            UnwindMethod::Auto | UnwindMethod::Fp | UnwindMethod::Modelled => 0,
            UnwindMethod::Dwarf(_) => REGS_USER | STACK_USER,
            UnwindMethod::Lbr => BRANCH_STACK,
        };
        let period = if self.period == SamplePeriod::InSample { PERIOD } else { 0 };
        COMMON | IP | period | CALLCHAIN | stack
    }
}

/// The `PERF_SAMPLE_*` bits of a wake-up's event.
pub(super) const WAKEUP: u64 = COMMON | IP | RAW;

/// A thread is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct Wakeup {
    /// The thread that is woken.
    pub(in crate::stacks::live) tid: i32,
    /// The thread that ran then.
    pub(in crate::stacks::live) by: (i32, i32),
    /// Whether that was interrupted, and the interrupt wakes.
    pub(in crate::stacks::live) in_interrupt: bool,
}

/// A decoded record.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::stacks::live) enum DecodedRecord<'a> {
    Sample(SampleRecord<'a>),
    Mmap(Mmap<'a>),
    Comm {
        pid: i32,
        tid: i32,
        comm: &'a [u8],
        exec: bool,
    },
    Fork(Tasks),
    Exit(Tasks),
    Lost(u64),
    Throttle,
    /// A thread comes to a CPU or leaves it.
    Switch {
        tid: i32,
        direction: SwitchDirection,
    },
    /// A record of a kind that isn't used.
    Other,
}

/// Which way a thread was switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) enum SwitchDirection {
    /// On a CPU.
    In,
    /// Off its CPU.
    Out {
        /// Whether it could have gone on.
        is_ready: bool,
    },
}

/// A task that begins or ends, and the one that began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct Tasks {
    pub(in crate::stacks::live) pid: i32,
    pub(in crate::stacks::live) parent_pid: i32,
    pub(in crate::stacks::live) tid: i32,
    pub(in crate::stacks::live) parent_tid: i32,
}

/// A file or memory that was mapped to run code from.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::stacks::live) struct Mmap<'a> {
    pub(in crate::stacks::live) pid: i32,
    pub(in crate::stacks::live) start: u64,
    pub(in crate::stacks::live) length: u64,
    pub(in crate::stacks::live) offset: u64,
    /// The file; with zeros where it isn't known.
    pub(in crate::stacks::live) identity: Identity,
    pub(in crate::stacks::live) executable: bool,
    pub(in crate::stacks::live) path: &'a [u8],
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::stacks::live) struct SampleRecord<'a> {
    /// The identifier of the event that it is a sample of.
    pub(in crate::stacks::live) id: u64,
    pub(in crate::stacks::live) ip: u64,
    pub(in crate::stacks::live) pid: i32,
    pub(in crate::stacks::live) tid: i32,
    pub(in crate::stacks::live) cpu: u32,
    pub(in crate::stacks::live) period: u64,
    pub(in crate::stacks::live) chain: RecordWords<'a>,
    pub(in crate::stacks::live) branches: Branches<'a>,
    pub(in crate::stacks::live) user: Option<UserState<'a>>,
}

/// The registers and the stack of user space.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::stacks::live) struct UserState<'a> {
    /// The registers that were asked for, in the order of their numbers.
    pub(in crate::stacks::live) registers: RecordWords<'a>,
    pub(in crate::stacks::live) stack: &'a [u8],
    /// Whether it is as long as it could be: there may be more of it.
    pub(in crate::stacks::live) is_full: bool,
}

impl UserState<'_> {
    /// The number that lies so many bytes from the beginning of the stack.
    pub(in crate::stacks::live) fn stack_word(&self, from: usize) -> Option<u64> {
        let word = self.stack.get(from..).and_then(|rest| rest.first_chunk());
        word.map(|word| u64::from_ne_bytes(*word))
    }
}

/// Reads a record's numbers of 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::stacks::live) struct RecordWords<'a>(pub(in crate::stacks::live) &'a [u8]);

impl<'a> RecordWords<'a> {
    pub(in crate::stacks::live) fn iter(self) -> impl Iterator<Item = u64> + 'a {
        self.0.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word))
    }

    pub(in crate::stacks::live) fn get(self, index: usize) -> Option<u64> {
        self.0.as_chunks().0.get(index).map(|word| u64::from_ne_bytes(*word))
    }
}

/// Calls that have not returned, the latest first: from, to and flags of each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::stacks::live) struct Branches<'a>(RecordWords<'a>);

impl<'a> Branches<'a> {
    /// Where the calls were made.
    pub(in crate::stacks::live) fn callers(self) -> impl Iterator<Item = u64> + 'a {
        self.0.iter().step_by(3)
    }
}

/// A part of a call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) enum ChainEntry {
    /// What follows is kernel code, or not.
    Kernel(bool),
    Address(u64),
}

impl From<u64> for ChainEntry {
    fn from(word: u64) -> Self {
        match word {
            CONTEXT_KERNEL => Self::Kernel(true),
            // Those of guests and hypervisors are nothing that could be looked up here.
            CONTEXT_MAX.. => Self::Kernel(false),
            address => Self::Address(address),
        }
    }
}

/// A record that isn't what the kernel promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record of the kernel is shorter than its fields")
    }
}

/// The kind, flags and place in time of a record, beside its bytes behind the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct RecordKind {
    pub(super) kind: u32,
    pub(super) misc: u16,
}

impl RecordKind {
    /// Time of the record, in ns.
    pub(super) fn time(self, body: &[u8]) -> Result<u64, Malformed> {
        // In samples behind identifier, address and task; elsewhere behind the task of the trailer.
        let at = if self.kind == SAMPLE { 24 } else { body.len().checked_sub(TRAILER).ok_or(Malformed)? + 8 };
        let bytes = body.get(at..at + 8).ok_or(Malformed)?;
        bytes.try_into().map(u64::from_ne_bytes).map_err(|_| Malformed)
    }

    /// The identifier of the event that a sample is of; `None` of other records.
    pub(in crate::stacks::live) fn sampled(self, body: &[u8]) -> Option<u64> {
        (self.kind == SAMPLE).then(|| body.first_chunk()).flatten().map(|word| u64::from_ne_bytes(*word))
    }

    /// Decodes the sample of a wake-up, of which the tracepoint has the number of the thread so many bytes from its
    /// beginning.
    pub(in crate::stacks::live) fn wakeup(self, body: &[u8], tid_at: usize) -> Result<Wakeup, Malformed> {
        /// Of the fields that all tracepoints have: `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`, and where they stand.
        const IN_INTERRUPT: u8 = 0x08 | 0x10;
        const FLAGS_AT: usize = 2;
        let mut fields = Cursor(body);
        let (_id, _ip) = (fields.u64()?, fields.u64()?);
        let by = (fields.i32()?, fields.i32()?);
        let (_time, _cpu, size) = (fields.u64()?, fields.u64()?, fields.u32()?);
        let raw = fields.bytes(size.into())?;
        let tid = raw.get(tid_at..).and_then(|rest| rest.first_chunk()).ok_or(Malformed)?;
        let flags = raw.get(FLAGS_AT).ok_or(Malformed)?;
        Ok(Wakeup { tid: i32::from_ne_bytes(*tid), by, in_interrupt: flags & IN_INTERRUPT != 0 })
    }

    /// Decodes the record.
    pub(in crate::stacks::live) fn parse(
        self,
        body: &[u8],
        layout: SampleLayout,
    ) -> Result<DecodedRecord<'_>, Malformed> {
        if self.kind == SAMPLE {
            return sample(Cursor(body), layout).map(DecodedRecord::Sample);
        }
        let own = body.len().checked_sub(TRAILER).ok_or(Malformed)?;
        let mut fields = Cursor(&body[..own]);
        Ok(match self.kind {
            MMAP | MMAP2 => DecodedRecord::Mmap(self.mmap(fields)?),
            COMM => {
                let (pid, tid) = (fields.i32()?, fields.i32()?);
                DecodedRecord::Comm { pid, tid, comm: fields.string(), exec: self.misc & MISC_EXEC != 0 }
            }
            FORK => DecodedRecord::Fork(tasks(fields)?),
            EXIT => DecodedRecord::Exit(tasks(fields)?),
            LOST => {
                fields.u64()?;
                DecodedRecord::Lost(fields.u64()?)
            }
            LOST_SAMPLES => DecodedRecord::Lost(fields.u64()?),
            THROTTLE => DecodedRecord::Throttle,
            SWITCH | SWITCH_CPU_WIDE => {
                // Whose it is stands in the trailer: that of a whole CPU names the other thread before it.
                let mut trailer = Cursor(&body[own..]);
                let (_pid, tid) = (trailer.i32()?, trailer.i32()?);
                DecodedRecord::Switch { tid, direction: self.direction() }
            }
            _ => DecodedRecord::Other,
        })
    }

    fn direction(self) -> SwitchDirection {
        match self.misc & MISC_SWITCH_OUT {
            0 => SwitchDirection::In,
            _ => SwitchDirection::Out { is_ready: self.misc & MISC_PREEMPTED != 0 },
        }
    }

    fn mmap(self, mut fields: Cursor<'_>) -> Result<Mmap<'_>, Malformed> {
        let (pid, _tid) = (fields.i32()?, fields.i32()?);
        let (start, length, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (mut identity, mut executable) = (Identity::default(), true);
        if self.kind == MMAP2 {
            let (major, minor) = (fields.u32()?, fields.u32()?);
            let (inode, _generation) = (fields.u64()?, fields.u64()?);
            if self.misc & MISC_BUILD_ID == 0 {
                identity = Identity { device: makedev(major.into(), minor.into()), inode };
            }
            executable = fields.u32()? & PROT_EXEC != 0;
            let _flags = fields.u32()?;
        }
        Ok(Mmap { pid, start, length, offset, identity, executable, path: fields.string() })
    }
}

fn tasks(mut fields: Cursor<'_>) -> Result<Tasks, Malformed> {
    Ok(Tasks { pid: fields.i32()?, parent_pid: fields.i32()?, tid: fields.i32()?, parent_tid: fields.i32()? })
}

fn sample(mut fields: Cursor<'_>, layout: SampleLayout) -> Result<SampleRecord<'_>, Malformed> {
    let (id, ip) = (fields.u64()?, fields.u64()?);
    let (pid, tid) = (fields.i32()?, fields.i32()?);
    let _time = fields.u64()?;
    let (cpu, _reserved) = (fields.u32()?, fields.u32()?);
    let period = match layout.period {
        SamplePeriod::InSample => fields.u64()?,
        SamplePeriod::Fixed(period) => period,
    };
    let depth = fields.u64()?;
    let chain = fields.words(depth)?;
    let mut branches = Branches::default();
    let mut user = None;
    match layout.call_graph {
        UnwindMethod::Auto | UnwindMethod::Fp | UnwindMethod::Modelled => {}
        UnwindMethod::Lbr => {
            let calls = fields.u64()?;
            branches = Branches(fields.words(calls.checked_mul(3).ok_or(Malformed)?)?);
        }
        UnwindMethod::Dwarf(_) => user = user_state(&mut fields)?,
    }
    Ok(SampleRecord { id, ip, pid, tid, cpu, period, chain, branches, user })
}

/// The user registers and stack; `None` in samples of kernel threads and of 32-bit programs.
fn user_state<'a>(fields: &mut Cursor<'a>) -> Result<Option<UserState<'a>>, Malformed> {
    /// `PERF_SAMPLE_REGS_ABI_NONE` and `_64`.
    const NONE: u64 = 0;
    const ABI_64: u64 = 2;
    let abi = fields.u64()?;
    let count = if abi == NONE { 0 } else { REGISTERS.count_ones().into() };
    let registers = fields.words(count)?;
    let size = fields.u64()?;
    let copied = fields.bytes(size)?;
    // Only so much of the copy was there to be copied.
    let valid = if size == 0 { 0 } else { fields.u64()?.min(size) };
    let stack = usize::try_from(valid).ok().and_then(|valid| copied.get(..valid)).ok_or(Malformed)?;
    Ok((abi == ABI_64).then_some(UserState { registers, stack, is_full: valid == size }))
}

/// Takes fields from the front.
#[derive(Clone, Copy, Debug)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (field, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_ne_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_ne_bytes)
    }

    fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_ne_bytes)
    }

    fn bytes(&mut self, count: u64) -> Result<&'a [u8], Malformed> {
        let count = usize::try_from(count).map_err(|_| Malformed)?;
        let (field, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(field)
    }

    fn words(&mut self, count: u64) -> Result<RecordWords<'a>, Malformed> {
        self.bytes(count.checked_mul(8).ok_or(Malformed)?).map(RecordWords)
    }

    /// The rest up to a zero byte.
    fn string(self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        &self.0[..end]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    /// Bytes written field by field, as the kernel does.
    #[derive(Default)]
    struct RecordScript(Vec<u8>);

    impl RecordScript {
        fn u64s(mut self, words: &[u64]) -> Self {
            words.iter().for_each(|word| self.0.extend_from_slice(&word.to_ne_bytes()));
            self
        }

        fn u32s(mut self, halves: &[u32]) -> Self {
            halves.iter().for_each(|half| self.0.extend_from_slice(&half.to_ne_bytes()));
            self
        }

        fn padded(mut self, text: &[u8]) -> Self {
            self.0.extend_from_slice(text);
            self.0.resize(self.0.len() / 8 * 8 + 8, 0);
            self
        }

        fn trailer(self, time: u64) -> Vec<u8> {
            self.u32s(&[1, 2]).u64s(&[time]).u32s(&[0, 0]).u64s(&[77]).0
        }
    }

    /// `PERF_CONTEXT_USER`.
    const CONTEXT_USER: u64 = (-512_i64) as u64;

    const FP: SampleLayout = SampleLayout { call_graph: UnwindMethod::Fp, period: SamplePeriod::InSample };

    fn common(chain: &[u64]) -> RecordScript {
        let head = RecordScript::default().u64s(&[77, 0x1000]).u32s(&[4, 5]).u64s(&[99]).u32s(&[1, 0]);
        head.u64s(&[250_000, chain.len() as u64]).u64s(chain)
    }

    fn kind(kind: u32) -> RecordKind {
        RecordKind { kind, misc: 0 }
    }

    #[test]
    fn a_sample_with_a_call_chain() {
        let body = common(&[CONTEXT_KERNEL, 0xffff, CONTEXT_USER, 0x1000, 0x2000]).0;
        assert_eq!(kind(SAMPLE).time(&body), Ok(99));
        let Ok(DecodedRecord::Sample(sample)) = kind(SAMPLE).parse(&body, FP) else { panic!("no sample") };
        assert_eq!((sample.id, sample.ip, sample.pid, sample.tid), (77, 0x1000, 4, 5));
        assert_eq!((sample.cpu, sample.period), (1, 250_000));
        let chain: Vec<_> = sample.chain.iter().map(ChainEntry::from).collect();
        use ChainEntry::{Address, Kernel};
        assert_eq!(chain, [Kernel(true), Address(0xffff), Kernel(false), Address(0x1000), Address(0x2000)]);
    }

    #[test]
    fn a_sample_without_a_period_has_that_of_all() {
        let head = RecordScript::default().u64s(&[77, 0x1000]).u32s(&[4, 5]).u64s(&[99]).u32s(&[1, 0]);
        let body = head.u64s(&[1, 0x1000]).0;
        let layout = SampleLayout { period: SamplePeriod::Fixed(100), ..FP };
        let Ok(DecodedRecord::Sample(sample)) = kind(SAMPLE).parse(&body, layout) else { panic!("no sample") };
        assert_eq!((sample.period, sample.chain.iter().count()), (100, 1));
        assert_eq!((layout.sample_type() & PERIOD, FP.sample_type() & PERIOD), (0, PERIOD));
    }

    #[test]
    fn a_sample_with_a_copy_of_the_stack_has_what_was_there_of_it() {
        let layout = SampleLayout { call_graph: UnwindMethod::Dwarf(16), ..FP };
        let registers: Vec<u64> = (0..REGISTERS.count_ones().into()).collect();
        let body = common(&[]).u64s(&[2]).u64s(&registers).u64s(&[16, 0xaaaa, 0xbbbb, 8]).0;
        let Ok(DecodedRecord::Sample(sample)) = kind(SAMPLE).parse(&body, layout) else { panic!("no sample") };
        let user = sample.user.unwrap();
        assert_eq!(user.registers.iter().collect::<Vec<_>>(), registers);
        assert_eq!(user.stack, 0xaaaa_u64.to_ne_bytes());
        // A kernel thread has neither.
        let body = common(&[]).u64s(&[0, 0]).0;
        let Ok(DecodedRecord::Sample(sample)) = kind(SAMPLE).parse(&body, layout) else { panic!("no sample") };
        assert_eq!(sample.user, None);
        // More valid bytes than copied ones can't be.
        let body = common(&[]).u64s(&[2]).u64s(&registers).u64s(&[8, 0xaaaa, 800]).0;
        let Ok(DecodedRecord::Sample(sample)) = kind(SAMPLE).parse(&body, layout) else { panic!("no sample") };
        assert_eq!(sample.user.unwrap().stack.len(), 8);
    }

    #[test]
    fn a_sample_with_calls_of_the_processor() {
        let layout = SampleLayout { call_graph: UnwindMethod::Lbr, ..FP };
        let body = common(&[]).u64s(&[2, 0x10, 0x20, 0, 0x30, 0x40, 0]).0;
        let Ok(DecodedRecord::Sample(sample)) = kind(SAMPLE).parse(&body, layout) else { panic!("no sample") };
        assert_eq!(sample.branches.callers().collect::<Vec<_>>(), [0x10, 0x30]);
        let body = common(&[]).u64s(&[u64::MAX]).0;
        assert_eq!(kind(SAMPLE).parse(&body, layout), Err(Malformed));
    }

    #[test]
    fn mappings_names_forks_and_losses() {
        let mapped = RecordScript::default().u32s(&[4, 5]).u64s(&[0x1000, 0x2000, 0x300]);
        let body = mapped.u32s(&[8, 1]).u64s(&[4242, 0]).u32s(&[5, 2]).padded(b"/bin/a").trailer(7);
        let expected = Mmap {
            pid: 4,
            start: 0x1000,
            length: 0x2000,
            offset: 0x300,
            identity: Identity { device: makedev(8, 1), inode: 4242 },
            executable: true,
            path: b"/bin/a",
        };
        assert_eq!(kind(MMAP2).parse(&body, FP), Ok(DecodedRecord::Mmap(expected.clone())));
        assert_eq!(kind(MMAP2).time(&body), Ok(7));
        let with_build_id = RecordKind { kind: MMAP2, misc: MISC_BUILD_ID };
        assert_eq!(
            with_build_id.parse(&body, FP),
            Ok(DecodedRecord::Mmap(Mmap { identity: Identity::default(), ..expected }))
        );

        let body = RecordScript::default().u32s(&[4, 5]).padded(b"name").trailer(7);
        let exec = RecordKind { kind: COMM, misc: MISC_EXEC };
        assert_eq!(exec.parse(&body, FP), Ok(DecodedRecord::Comm { pid: 4, tid: 5, comm: b"name", exec: true }));

        let body = RecordScript::default().u32s(&[4, 3, 5, 3]).u64s(&[7]).trailer(7);
        let tasks = Tasks { pid: 4, parent_pid: 3, tid: 5, parent_tid: 3 };
        assert_eq!(kind(FORK).parse(&body, FP), Ok(DecodedRecord::Fork(tasks)));
        assert_eq!(kind(EXIT).parse(&body, FP), Ok(DecodedRecord::Exit(tasks)));

        assert_eq!(
            kind(LOST).parse(&RecordScript::default().u64s(&[77, 3]).trailer(7), FP),
            Ok(DecodedRecord::Lost(3))
        );
        assert_eq!(
            kind(LOST_SAMPLES).parse(&RecordScript::default().u64s(&[3]).trailer(7), FP),
            Ok(DecodedRecord::Lost(3))
        );
        assert_eq!(
            kind(THROTTLE).parse(&RecordScript::default().u64s(&[7, 77, 77]).trailer(7), FP),
            Ok(DecodedRecord::Throttle)
        );
        assert_eq!(kind(999).parse(&RecordScript::default().trailer(7), FP), Ok(DecodedRecord::Other));
    }

    #[test]
    fn switches_are_of_the_thread_in_the_trailer() {
        fn of(kind: u32, misc: u16, body: &[u8]) -> Result<DecodedRecord<'_>, Malformed> {
            RecordKind { kind, misc }.parse(body, FP)
        }
        let switched = |direction| Ok(DecodedRecord::Switch { tid: 2, direction });
        let body = RecordScript::default().trailer(7);
        assert_eq!(of(SWITCH, 0, &body), switched(SwitchDirection::In));
        assert_eq!(of(SWITCH, MISC_SWITCH_OUT, &body), switched(SwitchDirection::Out { is_ready: false }));
        // Of a whole CPU it names the next thread, too.
        let body = RecordScript::default().u32s(&[8, 9]).trailer(7);
        let preempted = MISC_SWITCH_OUT | MISC_PREEMPTED;
        assert_eq!(of(SWITCH_CPU_WIDE, preempted, &body), switched(SwitchDirection::Out { is_ready: true }));
        assert_eq!(of(SWITCH, 0, &[0; 8]), Err(Malformed));
    }

    #[test]
    fn a_length_beyond_the_record_is_malformed() {
        let body = RecordScript::default().u64s(&[77, 0, 0, 0, 0, 0, u64::MAX / 4]).0;
        assert_eq!(kind(SAMPLE).parse(&body, FP), Err(Malformed));
        assert_eq!(kind(MMAP2).time(&[0; 8]), Err(Malformed));
    }

    proptest! {
        #[test]
        fn a_cut_sample_is_malformed(cut in 0usize..80) {
            let body = common(&[1, 2, 3]).0;
            let cut = cut.min(body.len() - 1);
            prop_assert_eq!(kind(SAMPLE).parse(&body[..cut], FP), Err(Malformed));
        }

        #[test]
        fn any_bytes_give_a_record_or_an_error(
            number in 0u32..20,
            misc in any::<u16>(),
            body in prop::collection::vec(any::<u8>(), 0..300),
            graph in prop::sample::select(vec![UnwindMethod::Fp, UnwindMethod::Dwarf(8), UnwindMethod::Lbr]),
        ) {
            let kind = RecordKind { kind: number, misc };
            let _ = kind.time(&body);
            if let Ok(DecodedRecord::Sample(sample)) = kind.parse(&body, SampleLayout { call_graph: graph, ..FP }) {
                sample.chain.iter().chain(sample.branches.callers()).for_each(drop);
            }
        }
    }
}
