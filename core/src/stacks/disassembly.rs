//! Gives the instructions of functions of which no line is known.

use std::collections::BTreeMap;
use std::fmt;
#[cfg(not(feature = "disassembly"))]
use std::path::Path;

use super::LineSamples;
use crate::files::Refused;

/// An instruction of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where it lies in the file.
    pub offset: u64,
    /// Its address, as the file gives addresses.
    pub address: u64,
    /// Its length in bytes.
    pub length: u8,
    /// What it is, as the assembler writes it, with the name of the function that it jumps to or calls. It may hold any
    /// character.
    pub text: String,
}

/// Why there are no instructions.
#[derive(Debug)]
#[non_exhaustive]
pub enum DisassemblyError {
    /// This program was built without the feature `disassembly`.
    NotBuilt,
    /// The file can't be read.
    File(Refused),
    /// The file is no program or library.
    NoProgram,
    /// The file has another function there than when it was measured.
    OtherFunction,
    /// Neither symbols nor unwind information tell where the function begins and ends.
    NoBounds,
    /// The program is for a CPU whose instructions can't be shown.
    OtherCpu,
}

impl fmt::Display for DisassemblyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuilt => f.write_str(
                "this perfprop shows no instructions: build it with  cargo build --release --features disassembly",
            ),
            Self::File(why) => write!(f, "its instructions can't be read: {why}"),
            Self::NoProgram => f.write_str("its instructions can't be read: the file is no program or library"),
            Self::OtherFunction => {
                f.write_str("its instructions can't be shown: the file has changed since the measurement")
            }
            Self::NoBounds => f.write_str("its instructions can't be shown: nothing tells where the function begins"),
            Self::OtherCpu => f.write_str("its instructions are those of a CPU that perfprop doesn't know"),
        }
    }
}

impl std::error::Error for DisassemblyError {}

/// The instructions of a function: this build has no disassembler.
///
/// # Errors
/// Says so, always.
#[cfg(not(feature = "disassembly"))]
pub fn disassemble(_program: &Path, _function: &str, _offsets: &[u64]) -> Result<Vec<Instruction>, DisassemblyError> {
    Err(DisassemblyError::NotBuilt)
}

/// Adds samples at offsets to the instructions that they lie in, each by its own offset; samples that lie in none keep
/// theirs.
pub fn by_instruction(
    samples: &BTreeMap<u64, LineSamples>,
    instructions: &[Instruction],
) -> BTreeMap<u64, LineSamples> {
    let mut sums = BTreeMap::<u64, LineSamples>::new();
    for (&offset, counted) in samples {
        let behind = instructions.partition_point(|instruction| instruction.offset <= offset);
        let nearest = behind.checked_sub(1).map(|place| &instructions[place]);
        let inside = nearest.filter(|nearest| offset - nearest.offset < u64::from(nearest.length));
        sums.entry(inside.map_or(offset, |inside| inside.offset)).or_default().join(counted);
    }
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::Amount;

    fn instructions(lengths: &[u8]) -> Vec<Instruction> {
        let mut offset = 0x100;
        let mut all = Vec::new();
        for &length in lengths {
            all.push(Instruction { offset, address: offset + 0x1000, length, text: "nop".into() });
            offset += u64::from(length);
        }
        all
    }

    fn samples(own: u64, total: u64) -> LineSamples {
        let amount = |samples| Amount { samples, weight: samples * 10 };
        LineSamples { own: amount(own), total: amount(total) }
    }

    #[test]
    fn samples_belong_to_the_instruction_that_they_lie_in() {
        let all = instructions(&[2, 5]);
        // At the second one, at the last byte of it as callers are, and behind the end.
        let counted = [(0x102, samples(3, 3)), (0x106, samples(0, 4)), (0x107, samples(1, 1))].into();
        let expected = [(0x102, samples(3, 7)), (0x107, samples(1, 1))].into();
        assert_eq!(by_instruction(&counted, &all), expected);
        assert_eq!(by_instruction(&counted, &[]), counted);
        assert_eq!(by_instruction(&BTreeMap::new(), &all), BTreeMap::new());
    }

    proptest! {
        #[test]
        fn no_sample_is_lost(
            lengths in prop::collection::vec(1_u8..16, 0..8),
            counted in prop::collection::btree_map(0xf0_u64..0x180, (0_u64..9, 0_u64..9), 0..20),
        ) {
            let counted = counted.into_iter().map(|(at, (own, below))| (at, samples(own, own + below))).collect();
            let sum = |all: &BTreeMap<u64, LineSamples>| -> (u64, u64) {
                let add = |(own, total), line: &LineSamples| (own + line.own.samples, total + line.total.samples);
                all.values().fold((0, 0), add)
            };
            let by_instruction = by_instruction(&counted, &instructions(&lengths));
            prop_assert_eq!(sum(&by_instruction), sum(&counted));
        }
    }
}
