//! Reads what the machine has of memory, how many threads want its CPUs, and what its disks have moved.

use serde::{Deserialize, Serialize};

use super::{HostFiles, field};

/// Memory, load and disks of the whole machine at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineResources {
    /// Memory that programs can't get any more, in bytes: all but what `/proc/meminfo` calls available, as free(1) has
    /// it.
    pub memory_used: u64,
    /// All memory, in bytes.
    pub memory: u64,
    /// Swap that is used, in bytes.
    #[serde(default)]
    pub swap_used: u64,
    /// Threads that run, are ready to or wait for disks: the mean of about the last minute (`/proc/loadavg`).
    pub load: f64,
    /// Bytes that block devices have read and written since the machine runs (`/proc/vmstat`); `None` where the kernel
    /// doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskBytes>,
}

/// What block devices have moved since the machine runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskBytes {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl HostFiles {
    /// Memory, load and disks now; `None` where the kernel doesn't say how much memory is available.
    pub fn resources(&self) -> Option<MachineResources> {
        let memory = self.text("proc/meminfo")?;
        let bytes = |name| {
            let kibibytes: u64 = field(&memory, name)?.strip_suffix(" kB")?.parse().ok()?;
            kibibytes.checked_mul(1024)
        };
        let all = bytes("MemTotal")?;
        let swap = bytes("SwapTotal").zip(bytes("SwapFree")).map_or(0, |(all, free)| all.saturating_sub(free));
        Some(MachineResources {
            memory_used: all.saturating_sub(bytes("MemAvailable")?),
            memory: all,
            swap_used: swap,
            load: self.text("proc/loadavg")?.split(' ').next()?.parse().ok()?,
            disk: self.disk_bytes(),
        })
    }

    /// The kernel counts in KiB.
    fn disk_bytes(&self) -> Option<DiskBytes> {
        let text = self.text("proc/vmstat")?;
        let bytes = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            value.parse::<u64>().ok()?.checked_mul(1024)
        };
        Some(DiskBytes { read: bytes("pgpgin")?, written: bytes("pgpgout")? })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn resources_by_hand() {
        let root = std::env::temp_dir().join(format!("perfprop-resources-{}", std::process::id()));
        fs::create_dir_all(root.join("proc")).unwrap();
        let write = |file: &str, text: &str| fs::write(root.join("proc").join(file), text).unwrap();
        write(
            "meminfo",
            "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable: 400 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n",
        );
        write("loadavg", "2.31 1.00 0.50 1/200 4711\n");
        let host = HostFiles::under(&root);
        let wanted = MachineResources {
            memory_used: 600 * 1024,
            memory: 1000 * 1024,
            swap_used: 30 * 1024,
            load: 2.31,
            disk: None,
        };
        assert_eq!(host.resources(), Some(wanted.clone()));
        write("vmstat", "nr_free_pages 7\npgpgin 3\npgpgout 5\npgpgoutclean 9\n");
        let disk = Some(DiskBytes { read: 3072, written: 5120 });
        assert_eq!(host.resources(), Some(MachineResources { disk, ..wanted }));
        // Kernels before 3.14 don't say what is available.
        write("meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\n");
        assert_eq!(host.resources(), None);
        fs::remove_dir_all(root).unwrap();
        assert_eq!(HostFiles::under(Path::new("/nonexistent")).resources(), None);
    }
}
