//! Describes the machine that a run was measured on.

use serde::{Deserialize, Serialize};

use crate::host::HostFiles;

/// The machine that was measured on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredMachine {
    /// Host name.
    pub host: String,
    /// Release of the kernel.
    pub kernel: String,
    /// The instruction set: `x86_64`, `aarch64`.
    pub arch: String,
    /// The processor, as it calls itself.
    pub cpu: String,
    /// How many logical CPUs are online.
    pub cpus: usize,
}

impl MeasuredMachine {
    /// Describes this machine.
    pub fn this() -> Self {
        Self::of(&HostFiles::here())
    }

    /// Describes the machine of these files; its instruction set is this program's.
    fn of(host: &HostFiles) -> Self {
        Self {
            host: host.text("proc/sys/kernel/hostname").unwrap_or_default(),
            kernel: host.release().unwrap_or_default(),
            arch: std::env::consts::ARCH.into(),
            cpu: host.cpu_model().unwrap_or_default(),
            cpus: host.online_cpus().map_or(1, |cpus| cpus.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    /// Not those that this process may run on, as `taskset` sets them.
    #[test]
    fn all_cpus_that_are_online_are_the_machines() {
        let root = std::env::temp_dir().join(format!("perfprop-machine-{}", std::process::id()));
        let folder = root.join("sys/devices/system/cpu");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("online"), "0-255\n").unwrap();
        let machine = MeasuredMachine::of(&HostFiles::under(&root));
        assert_eq!((machine.cpus, machine.host.as_str()), (256, ""));
        fs::remove_dir_all(&root).unwrap();
    }
}
