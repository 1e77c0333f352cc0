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
        let uname = nix::sys::utsname::uname();
        let text = |field: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
            uname.as_ref().map(|uname| field(uname).to_string_lossy().into_owned()).unwrap_or_default()
        };
        Self {
            host: text(nix::sys::utsname::UtsName::nodename),
            kernel: text(nix::sys::utsname::UtsName::release),
            arch: text(nix::sys::utsname::UtsName::machine),
            cpu: HostFiles::here().cpu_model().unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}
