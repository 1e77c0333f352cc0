//! Unpacks the symbols that some distributions leave in stripped programs: MiniDebugInfo, a section `.gnu_debugdata`
//! which holds a program of symbols alone, packed with xz.

use std::io::{Cursor, Read};

use lzma_rust2::XzReader;
use object::read::{Object, ObjectSection};

use crate::stacks::live::mapped::ParsedSymbols;

/// Symbols that unpack to more bytes than this aren't read: those of the largest programs have some 30 MiB.
const MOST_BYTES: u64 = 128 << 20;

/// The most memory that unpacking may take beside, in KiB; what xz packs at its highest level needs 64 MiB.
const MOST_MEMORY: u32 = 80 << 10;

/// The unpacked symbols; `None` where there are none, or they are broken or too large.
pub(super) fn mini_debug_info(elf: &ParsedSymbols<'_>) -> Option<Vec<u8>> {
    unpack(elf.section_by_name(".gnu_debugdata")?.data().ok()?)
}

fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let unpacked = XzReader::new_mem_limit(Cursor::new(packed), false, MOST_MEMORY);
    unpacked.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MOST_BYTES).then_some(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    /// `printf 'symbols\n' | xz | xxd -i`.
    const PACKED: &[u8] = &[
        0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00, 0x04, 0xe6, 0xd6, 0xb4, 0x46, 0x02, 0x00, 0x21, 0x01, 0x16, 0x00,
        0x00, 0x00, 0x74, 0x2f, 0xe5, 0xa3, 0x01, 0x00, 0x07, 0x73, 0x79, 0x6d, 0x62, 0x6f, 0x6c, 0x73, 0x0a, 0x00,
        0x01, 0x59, 0x77, 0x0b, 0xc9, 0x79, 0x8a, 0x7a, 0x00, 0x01, 0x20, 0x08, 0xbb, 0x19, 0xd9, 0xbb, 0x1f, 0xb6,
        0xf3, 0x7d, 0x01, 0x00, 0x00, 0x00, 0x00, 0x04, 0x59, 0x5a,
    ];

    #[test]
    fn what_xz_packed_is_unpacked() {
        assert_eq!(unpack(PACKED).unwrap(), b"symbols\n");
    }

    #[test]
    fn broken_bytes_are_no_symbols() {
        assert_eq!((unpack(b""), unpack(b"\xfd7zXZ\0")), (None, None));
        for cut in 1..PACKED.len() {
            assert_ne!(unpack(&PACKED[..cut]).as_deref(), Some(&b"symbols\n"[..]), "{cut}");
            let mut changed = PACKED.to_vec();
            changed[cut] ^= 0x55;
            assert_ne!(unpack(&changed).as_deref(), Some(&b"symbols?"[..]), "{cut}");
        }
    }
}
