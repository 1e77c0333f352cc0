//! Knows where the kernel's loadable modules lie.

use std::ops::Range;

use crate::host::HostFiles;

/// The address ranges of the kernel's loadable modules.
#[derive(Debug, Default, PartialEq)]
pub(in crate::stacks::live) struct KernelModules(Vec<(Range<u64>, String)>);

impl KernelModules {
    pub(in crate::stacks::live) fn read() -> Self {
        Self::parse(&HostFiles::here().text("proc/modules").unwrap_or_default())
    }

    /// `nf_tables 303104 0 - Live 0xffffffffc0a00000`; the address is 0 for who may not know it.
    fn parse(text: &str) -> Self {
        let range = |line: &str| {
            let words: Vec<_> = line.split(' ').collect();
            let size: u64 = words.get(1)?.parse().ok()?;
            let start = u64::from_str_radix(words.get(5)?.strip_prefix("0x")?, 16).ok().filter(|&start| start > 0)?;
            Some((start..start.checked_add(size)?, format!("[{}]", words[0])))
        };
        Self(text.lines().filter_map(range).collect())
    }

    /// The name of the module at an address.
    pub(in crate::stacks::live) fn name(&self, address: u64) -> &str {
        self.0.iter().find(|(range, _)| range.contains(&address)).map_or("[kernel]", |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_modules_have_ranges() {
        let modules = KernelModules::parse("nf 4096 0 - Live 0xffffffffc0a00000\nhidden 4096 0 - Live 0x0\nbad\n");
        assert_eq!(modules.name(0xffff_ffff_c0a0_0000), "[nf]");
        assert_eq!(modules.name(0xffff_ffff_c0a0_1000), "[kernel]");
        assert_eq!(modules.name(0x10), "[kernel]");
    }
}
