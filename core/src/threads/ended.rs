//! Counts the processes of the machine that have ended, by name, with the CPU time that they used.
//!
//! The kernel tells of each task that ends (`taskstats`, over generic netlink), if perfprop has the right to know it
//! (CAP_NET_ADMIN). So processes that come and go between two looks have names, too.

use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt, socket,
    sockopt::RcvBufForce,
};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::units::CpuNs;

/// What processes of one name used that have ended since the measurement began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedProcesses {
    /// Their name, which may hold any character.
    pub name: String,
    /// How many there were.
    pub count: u64,
    /// Their CPU time, without what they had used by the snapshot in which they were read last.
    pub cpu_ns: CpuNs,
}

/// Names that are told apart at most: those that used so much CPU time first.
const MOST_NAMES: usize = 64;
const LEAST_TOLD: CpuNs = CpuNs(10_000_000);
/// Names that are kept at most.
const MOST_KEPT: usize = 4096;

/// Bytes of messages that the kernel keeps until they are read: of some thousand tasks.
const BUFFER: usize = 4 << 20;

/// The end of a task, as the kernel tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TaskEnd {
    /// Its process.
    pid: i32,
    tid: i32,
    name: String,
    cpu: CpuNs,
}

/// What has ended so far.
#[derive(Debug, Default)]
struct EndedSums {
    /// CPU time of threads that have ended, of processes that live.
    of_threads: FxHashMap<i32, CpuNs>,
    /// CPU time of the processes that lived at the last snapshot, and at the one before.
    living: [FxHashMap<i32, CpuNs>; 2],
    all: FxHashMap<String, EndedProcesses>,
    /// The names that are told, in the order in which they came.
    told: Vec<String>,
}

impl EndedSums {
    /// Takes what a message says has ended.
    fn take_all(&mut self, message: &[u8]) {
        ends(message).into_iter().for_each(|end| self.take(end));
    }

    fn take(&mut self, end: TaskEnd) {
        let TaskEnd { pid, tid, name, cpu } = end;
        if pid != tid {
            *self.of_threads.entry(pid).or_default() += cpu;
            return;
        }
        let cpu = cpu + self.of_threads.remove(&pid).unwrap_or_default();
        // One that ended while the last snapshot was made is in the one before.
        let known = self.living.iter().find_map(|living| living.get(&pid)).copied().unwrap_or_default();
        if self.all.len() >= MOST_KEPT && !self.all.contains_key(&name) {
            return;
        }
        let sum = self.all.entry(name.clone()).or_insert_with(|| EndedProcesses { name, ..EndedProcesses::default() });
        sum.count += 1;
        sum.cpu_ns += cpu - known;
        if sum.cpu_ns >= LEAST_TOLD && self.told.len() < MOST_NAMES && !self.told.contains(&sum.name) {
            self.told.push(sum.name.clone());
        }
    }

    fn told(&self) -> Vec<EndedProcesses> {
        self.told.iter().filter_map(|name| self.all.get(name)).cloned().collect()
    }
}

/// Hears of each task of the machine that ends.
#[derive(Debug)]
pub(super) struct EndedWatch {
    socket: OwnedFd,
    sums: EndedSums,
}

impl EndedWatch {
    /// Begins to listen on these CPUs, such as `0-3`; `None` where the kernel doesn't let this process.
    pub(super) fn start(cpus: &str) -> Option<Self> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkGeneric).ok()?;
        let _ = setsockopt(&socket, RcvBufForce, &BUFFER);
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0)).ok()?;
        let mut watch = Self { socket, sums: EndedSums::default() };
        let name = attribute(CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0");
        watch.send(&request(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, NLM_F_REQUEST, &name))?;
        let answer = receive(&watch.socket)?;
        let family = attributes(answer.get(HEADERS..)?).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)?.1;
        let family = u16::from_ne_bytes(family.get(..2)?.try_into().ok()?);
        let cpus = attribute(REGISTER_CPUMASK, format!("{cpus}\0").as_bytes());
        watch.send(&request(family, TASKSTATS_CMD_GET, NLM_F_REQUEST | NLM_F_ACK, &cpus))?;
        let Self { socket, sums } = &mut watch;
        is_accepted(|| receive(socket), sums)?.then_some(watch)
    }

    /// Takes all that has ended, before the processes that live are read.
    pub(super) fn read(&mut self) {
        while let Some(message) = receive(&self.socket) {
            self.sums.take_all(&message);
        }
    }

    /// These processes live now, and have used so much; gives what has ended so far.
    pub(super) fn snapshot(&mut self, living: impl Iterator<Item = (i32, CpuNs)>) -> Vec<EndedProcesses> {
        self.sums.living.swap(0, 1);
        self.sums.living[0] = living.collect();
        // What is left of processes whose first thread ended before others.
        if self.sums.of_threads.len() > MOST_KEPT {
            let living = &self.sums.living[0];
            self.sums.of_threads.retain(|pid, _| living.contains_key(pid));
        }
        self.sums.told()
    }

    fn send(&self, message: &[u8]) -> Option<()> {
        send(self.socket.as_raw_fd(), message, MsgFlags::empty()).ok().map(|_| ())
    }
}

/// The next message; `None` where there is none. The kernel says that some are lost once.
fn receive(socket: &OwnedFd) -> Option<Vec<u8>> {
    let mut message = vec![0; 16 << 10];
    let mut receive = || recv(socket.as_raw_fd(), &mut message, MsgFlags::MSG_DONTWAIT);
    let length = match receive() {
        Err(nix::errno::Errno::ENOBUFS) => receive(),
        read => read,
    };
    message.truncate(length.ok()?);
    Some(message)
}

/// Whether the kernel lets this process listen; `None` if it doesn't say. It tells of tasks that end from the request
/// on, and says this later.
fn is_accepted(mut receive: impl FnMut() -> Option<Vec<u8>>, sums: &mut EndedSums) -> Option<bool> {
    loop {
        let message = receive()?;
        // An acknowledgement is an error with the number 0.
        if number(&message, 4, u16::from_ne_bytes)? == NLMSG_ERROR {
            return Some(number(&message, 16, i32::from_ne_bytes)? == 0);
        }
        sums.take_all(&message);
    }
}

// linux/netlink.h, linux/genetlink.h
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// `nlmsghdr` and `genlmsghdr`.
const HEADERS: usize = 20;
// linux/taskstats.h
const TASKSTATS_CMD_GET: u8 = 1;
const REGISTER_CPUMASK: u16 = 3;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
/// The first version that has the number of the process.
const WITH_PROCESS: u16 = 12;

fn request(family: u16, command: u8, flags: u16, attributes: &[u8]) -> Vec<u8> {
    let length = (HEADERS + attributes.len()) as u32;
    let mut message = Vec::with_capacity(HEADERS + attributes.len());
    message.extend(length.to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // A number of the request and the port of the kernel, which nobody needs here; a command of version 1.
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(attributes);
    message
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(((4 + value.len()) as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The attributes in some bytes, each with its kind; those behind a broken one are left out.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(number(bytes, 0, u16::from_ne_bytes)?);
        let kind = number(bytes, 2, u16::from_ne_bytes)?;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn number<const N: usize, T>(bytes: &[u8], at: usize, read: impl Fn([u8; N]) -> T) -> Option<T> {
    Some(read(bytes.get(at..at + N)?.try_into().ok()?))
}

/// The tasks that a message says have ended.
fn ends(message: &[u8]) -> Vec<TaskEnd> {
    let tasks = attributes(message.get(HEADERS..).unwrap_or_default()).filter(|(kind, _)| *kind == TYPE_AGGR_PID);
    let stats = tasks.flat_map(|(_, task)| attributes(task)).filter(|(kind, _)| *kind == TYPE_STATS);
    stats.filter_map(|(_, stats)| end_of(stats)).collect()
}

/// By `struct taskstats`, whose fields keep their places.
fn end_of(stats: &[u8]) -> Option<TaskEnd> {
    let version = number(stats, 0, u16::from_ne_bytes)?;
    let name = stats.get(80..112)?.split(|byte| *byte == 0).next()?;
    let tid = number(stats, 128, i32::from_ne_bytes)?;
    let pid = if version >= WITH_PROCESS { number(stats, 368, i32::from_ne_bytes)? } else { tid };
    // `cpu_run_virtual_total`; the sums of the clock's ticks, in microseconds, where the kernel doesn't keep that.
    let exact = number(stats, 72, u64::from_ne_bytes)?;
    let ticks = number(stats, 152, u64::from_ne_bytes)?.saturating_add(number(stats, 160, u64::from_ne_bytes)?);
    let cpu = CpuNs(if exact > 0 { exact } else { ticks.saturating_mul(1000) });
    Some(TaskEnd { pid, tid, name: String::from_utf8_lossy(name).into_owned(), cpu })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    const MS: u64 = 1_000_000;

    fn end(pid: i32, tid: i32, name: &str, ms: u64) -> TaskEnd {
        TaskEnd { pid, tid, name: name.into(), cpu: CpuNs(ms * MS) }
    }

    /// What the kernel says of the end of a task, with a number of bytes behind what is read.
    fn told(end: &TaskEnd, version: u16) -> Vec<u8> {
        let mut stats = vec![0; 560];
        let mut put = |at: usize, bytes: &[u8]| stats[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &version.to_ne_bytes());
        put(72, &end.cpu.0.to_ne_bytes());
        put(80, end.name.as_bytes());
        put(128, &end.tid.to_ne_bytes());
        put(152, &7000_u64.to_ne_bytes());
        put(160, &3000_u64.to_ne_bytes());
        put(368, &end.pid.to_ne_bytes());
        let task = [attribute(1, &end.tid.to_ne_bytes()), attribute(TYPE_STATS, &stats)].concat();
        request(31, 2, 0, &attribute(TYPE_AGGR_PID, &task))
    }

    #[test]
    fn messages_tell_who_ended_and_what_it_used() {
        let thread = end(70, 71, "worker", 5);
        assert_eq!(ends(&told(&thread, 16)), std::slice::from_ref(&thread));
        // Before version 12, a thread is a process of its own; where the kernel keeps no exact time, it has ticks.
        let without = TaskEnd { cpu: CpuNs(0), ..thread };
        assert_eq!(ends(&told(&without, 11)), [end(71, 71, "worker", 10)]);
    }

    #[test]
    fn what_ends_before_the_kernel_accepts_counts() {
        let answer = |number: i32| {
            let mut message = request(NLMSG_ERROR, 0, 0, &[]);
            message[16..20].copy_from_slice(&number.to_ne_bytes());
            message
        };
        let start = |messages: Vec<Vec<u8>>| {
            let (mut sums, mut messages) = (EndedSums::default(), messages.into_iter());
            (is_accepted(|| messages.next(), &mut sums), sums.told().len())
        };
        let ended = told(&end(70, 70, "cc1", 50), 16);
        assert_eq!(start(vec![ended.clone(), answer(0)]), (Some(true), 1));
        assert_eq!(start(vec![answer(-1)]), (Some(false), 0));
        assert_eq!(start(vec![ended]), (None, 1));
    }

    #[test]
    fn broken_messages_tell_nothing() {
        let whole = told(&end(70, 70, "a", 5), 16);
        for length in 0..whole.len() {
            assert!(ends(&whole[..length]).len() <= 1);
        }
        assert_eq!(ends(&whole[..300]), []);
        assert_eq!(attributes(&[0; 64]).count(), 0);
    }

    #[test]
    fn processes_are_summed_by_name_without_what_snapshots_had() {
        let lived = |pid, ms| FxHashMap::from_iter([(pid, CpuNs(ms * MS))]);
        let mut sums = EndedSums { living: [lived(7, 100), lived(8, 30)], ..EndedSums::default() };
        // Its thread ended before it; 100 of its 160 ms were in the last snapshot.
        sums.take(end(7, 70, "other", 50));
        sums.take(end(7, 7, "cc1", 110));
        sums.take(end(9, 9, "cc1", 20));
        sums.take(end(8, 8, "as", 40));
        // Too little to be told.
        sums.take(end(10, 10, "sh", 1));
        let told: Vec<_> =
            sums.told().into_iter().map(|ended| (ended.name, ended.count, ended.cpu_ns.0 / MS)).collect();
        assert_eq!(told, [("cc1".into(), 2, 80), ("as".into(), 1, 10)]);
    }

    #[test]
    fn a_name_that_was_told_stays() {
        let mut sums = EndedSums::default();
        (0..100).for_each(|pid| sums.take(end(pid, pid, &format!("p{pid}"), 20)));
        let first = sums.told();
        assert_eq!((first.len(), first[0].name.as_str()), (MOST_NAMES, "p0"));
        sums.take(end(200, 200, "p99", 5000));
        assert_eq!(sums.told(), first);
    }
}
