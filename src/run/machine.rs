//! Describes the machine that a run was measured on.

use serde::{Deserialize, Serialize};

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
            cpu: cpu_model(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// The first `model name` of x86; Arm kernels give none.
fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(String::new, |(_, model)| model.trim().to_owned())
}
