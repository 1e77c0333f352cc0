//! Finds the code at an address among what a process has mapped.

use std::collections::BTreeMap;

use nix::sys::stat::makedev;

use super::modules::ModuleId;
use crate::files::Identity;

/// Code at a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct CodeMapping {
    pub(in crate::stacks::live) start: u64,
    /// End address, exclusive.
    pub(in crate::stacks::live) end: u64,
    pub(in crate::stacks::live) module: ModuleId,
    /// The place in the file that lies at `start`.
    pub(in crate::stacks::live) offset: u64,
}

impl CodeMapping {
    /// The place in the file that lies at `address`.
    pub(in crate::stacks::live) fn place(&self, address: u64) -> u64 {
        address.wrapping_sub(self.start).wrapping_add(self.offset)
    }

    fn part(&self, start: u64, end: u64) -> Self {
        Self { start, end, offset: self.place(start), ..*self }
    }
}

/// Mappings that don't overlap, by their first address.
#[derive(Clone, Debug, Default)]
pub(in crate::stacks::live) struct Mappings {
    by_start: BTreeMap<u64, CodeMapping>,
}

impl Mappings {
    /// Maps over what was there before.
    pub(in crate::stacks::live) fn map(&mut self, new: CodeMapping) {
        if new.start >= new.end {
            return;
        }
        let overlap = |old: &CodeMapping| old.end > new.start;
        let covered: Vec<_> = self.by_start.range(..new.end).rev().map(|(_, old)| *old).take_while(overlap).collect();
        for old in covered {
            self.by_start.remove(&old.start);
            if old.start < new.start {
                self.by_start.insert(old.start, old.part(old.start, new.start));
            }
            if old.end > new.end {
                self.by_start.insert(new.end, old.part(new.end, old.end));
            }
        }
        self.by_start.insert(new.start, new);
    }

    /// The mapping that `address` lies in.
    pub(in crate::stacks::live) fn find(&self, address: u64) -> Option<&CodeMapping> {
        let (_, mapping) = self.by_start.range(..=address).next_back()?;
        (address < mapping.end).then_some(mapping)
    }

    pub(in crate::stacks::live) fn iter(&self) -> impl Iterator<Item = &CodeMapping> {
        self.by_start.values()
    }
}

/// A line of `/proc/PID/maps`.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct MapsLine<'a> {
    pub(in crate::stacks::live) start: u64,
    pub(in crate::stacks::live) end: u64,
    pub(in crate::stacks::live) executable: bool,
    pub(in crate::stacks::live) offset: u64,
    pub(in crate::stacks::live) identity: Identity,
    pub(in crate::stacks::live) path: &'a str,
}

impl<'a> MapsLine<'a> {
    /// `7f0000-7f1000 r-xp 00001000 08:01 4242    /usr/lib/libc.so.6`.
    pub(in crate::stacks::live) fn parse(line: &'a str) -> Option<Self> {
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let permissions = words.next()?;
        let offset = hex(words.next()?)?;
        let (major, minor) = words.next()?.split_once(':')?;
        let device = makedev(hex(major)?, hex(minor)?);
        let identity = Identity { device, inode: words.next()?.parse().ok()? };
        let path = words.next().unwrap_or_default().trim_start();
        let executable = permissions.as_bytes().get(2) == Some(&b'x');
        Some(Self { start: hex(start)?, end: hex(end)?, executable, offset, identity, path })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    fn mapping(start: u64, end: u64, module: u32, offset: u64) -> CodeMapping {
        CodeMapping { start, end, module: ModuleId(module), offset }
    }

    #[test]
    fn a_mapping_in_the_middle_of_another_leaves_both_ends() {
        let mut maps = Mappings::default();
        maps.map(mapping(100, 200, 0, 1000));
        maps.map(mapping(120, 130, 1, 0));
        let at = |address| maps.find(address).map(|found| (found.module.0, found.place(address)));
        assert_eq!(at(99), None);
        assert_eq!(at(110), Some((0, 1010)));
        assert_eq!(at(125), Some((1, 5)));
        assert_eq!(at(130), Some((0, 1030)));
        assert_eq!(at(200), None);
        assert_eq!(maps.iter().count(), 3);
    }

    #[test]
    fn lines_of_maps() {
        let line = "7f5c-7f5d r-xp 00000300 fd:00 4242                  /a dir/lib c.so (deleted)";
        let parsed = MapsLine::parse(line).unwrap();
        assert_eq!((parsed.start, parsed.end, parsed.offset), (0x7f5c, 0x7f5d, 0x300));
        assert_eq!(parsed.identity, Identity { device: makedev(0xfd, 0), inode: 4242 });
        assert_eq!((parsed.executable, parsed.path), (true, "/a dir/lib c.so (deleted)"));
        let anonymous = MapsLine::parse("1000-2000 rw-p 00000000 00:00 0 ").unwrap();
        assert_eq!((anonymous.executable, anonymous.path), (false, ""));
        assert!(["", "x", "1-2", "1-2 r-xp 0 0:0", "g-2 r-xp 0 0:0 0"].iter().all(|l| MapsLine::parse(l).is_none()));
    }

    proptest! {
        #[test]
        fn the_last_mapping_of_an_address_wins(ranges in prop::collection::vec((0u64..40, 0u64..20, 0u64..50), 0..12)) {
            let mut maps = Mappings::default();
            let mut bytes = [None; 64];
            for (module, &(start, length, offset)) in ranges.iter().enumerate() {
                maps.map(mapping(start, start + length, module as u32, offset));
                for address in start..start + length {
                    bytes[address as usize] = Some((module as u32, address - start + offset));
                }
            }
            for (address, expected) in bytes.iter().enumerate() {
                let address = address as u64;
                let found = maps.find(address).map(|found| (found.module.0, found.place(address)));
                prop_assert_eq!(found, *expected);
            }
        }
    }
}
