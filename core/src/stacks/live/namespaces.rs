//! Says which namespaces this process shares with others.

use std::fs;
use std::path::Path;

/// Whether a process is in this process' namespace of a kind (`mnt`, `user`); not where that isn't to be known.
pub(super) fn shares_namespace(pid: i32, kind: &str) -> bool {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok();
    namespace(&pid.to_string()).is_some_and(|of_process| Some(of_process) == namespace("self"))
}

/// The namespace of process ids that all others are in (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Whether this process is in the first namespace of process ids, where every process of the machine has a number.
pub(super) fn sees_all_processes() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|namespace| namespace == Path::new(FIRST_NAMESPACE))
}
