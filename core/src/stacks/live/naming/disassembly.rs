//! Disassembles functions of programs, for those of which no line is known.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use capstone::arch::{BuildsCapstone, BuildsCapstoneSyntax, arm64, x86};
use capstone::{Capstone, CsResult, Insn, InsnGroupType};
use object::Architecture;
use object::read::{Object, ReadCache};

use super::debug_files::DebugFiles;
use super::program::ElfProgram;
use crate::files::{self, ExpectedFile};
use crate::stacks::live::mapped::{AtOnce, MOST_PROGRAM, MappedProgram};
use crate::stacks::{DisassemblyError, Instruction};

/// The most bytes of code that are shown of a function.
const MOST_CODE: u64 = 1 << 20;

/// The instructions of the functions of this name that lie at some of these offsets of a program, in the order of the
/// file.
///
/// # Errors
/// Says why there are none.
pub fn disassemble(path: &Path, function: &str, offsets: &[u64]) -> Result<Vec<Instruction>, DisassemblyError> {
    let file = files::open(path, &ExpectedFile::any(MOST_PROGRAM)).map_err(DisassemblyError::File)?;
    let file = Arc::new(file);
    let disassembler = disassembler(architecture(&file).ok_or(DisassemblyError::NoProgram)?)?;
    let mapped = MappedProgram { file: Arc::clone(&file), path: path.display().to_string(), root: None };
    let program = ElfProgram::open(mapped, &mut DebugFiles::default());
    let mut program = program.ok_or(DisassemblyError::NoProgram)?;
    let functions = functions(&mut program, function, offsets)?;
    let mut all = Vec::new();
    for addresses in functions {
        let Some(offset) = program.offset(addresses.start) else { continue };
        let mut code = vec![0; (addresses.end - addresses.start).min(MOST_CODE) as usize];
        let read = file.read_exact_at(&mut code, offset);
        read.map_err(|why| DisassemblyError::File(files::Refused::System(why)))?;
        let code = MappedCode { bytes: &code, offset, addresses };
        instructions(&disassembler, &code, |address| program.target(address), &mut all);
    }
    Ok(all)
}

/// The code of a function.
struct MappedCode<'a> {
    bytes: &'a [u8],
    offset: u64,
    addresses: Range<u64>,
}

fn architecture(file: &Arc<File>) -> Option<Architecture> {
    let cache = ReadCache::new(File::open(files::path_of(file)).ok()?);
    Some(object::File::parse(AtOnce(&cache)).ok()?.architecture())
}

/// What reads the instructions of a CPU. Those of x86 are written as perf and gdb write them.
fn disassembler(architecture: Architecture) -> Result<Capstone, DisassemblyError> {
    let of_x86 = |mode| -> CsResult<Capstone> {
        Capstone::new().x86().mode(mode).syntax(x86::ArchSyntax::Att).detail(true).build()
    };
    let built = match architecture {
        Architecture::X86_64 => of_x86(x86::ArchMode::Mode64),
        Architecture::I386 => of_x86(x86::ArchMode::Mode32),
        Architecture::Aarch64 => Capstone::new().arm64().mode(arm64::ArchMode::Arm).detail(true).build(),
        _ => return Err(DisassemblyError::OtherCpu),
    };
    built.map_err(|_| DisassemblyError::OtherCpu)
}

/// The addresses of all functions of a name that lie at some of these offsets, in their order.
fn functions(program: &mut ElfProgram, name: &str, offsets: &[u64]) -> Result<Vec<Range<u64>>, DisassemblyError> {
    let mut functions = Vec::new();
    let mut has_other = false;
    for &offset in offsets {
        if functions.iter().any(|addresses: &Range<u64>| program.lies_within(offset, addresses)) {
            continue;
        }
        let frames = program.frames(offset).unwrap_or_default();
        match program.bounds(offset) {
            Some(addresses) if frames.iter().any(|frame| frame.name == name) => functions.push(addresses),
            Some(_) => has_other = true,
            None => {}
        }
    }
    functions.sort_unstable_by_key(|addresses| addresses.start);
    match functions.is_empty() {
        true if has_other => Err(DisassemblyError::OtherFunction),
        true => Err(DisassemblyError::NoBounds),
        false => Ok(functions),
    }
}

/// Appends the instructions of a function; bytes that are none stand as such.
fn instructions(
    disassembler: &Capstone,
    code: &MappedCode<'_>,
    target: impl Fn(u64) -> Option<String>,
    out: &mut Vec<Instruction>,
) {
    let mut done = 0;
    while done < code.bytes.len() {
        let address = code.addresses.start + done as u64;
        let found = disassembler.disasm_all(&code.bytes[done..], address);
        for instruction in found.iter().flat_map(|found| found.iter()) {
            let text = text(disassembler, instruction, &code.addresses, &target);
            let (address, length) = (instruction.address(), instruction.len());
            let offset = code.offset + done as u64;
            out.push(Instruction { offset, address, length: length as u8, text });
            done += length;
        }
        if let Some(byte) = code.bytes.get(done) {
            let (address, offset) = (code.addresses.start + done as u64, code.offset + done as u64);
            out.push(Instruction { offset, address, length: 1, text: format!(".byte  {byte:#04x}") });
            done += 1;
        }
    }
}

/// `callq  0x1139 <work>`, and `jne  0x1021` within the function.
fn text(
    disassembler: &Capstone,
    instruction: &Insn<'_>,
    function: &Range<u64>,
    target: impl Fn(u64) -> Option<String>,
) -> String {
    let (mnemonic, operands) = (instruction.mnemonic().unwrap_or_default(), instruction.op_str().unwrap_or_default());
    let plain = format!("{mnemonic:<7} {operands}").trim_end().to_owned();
    let goes = if is_jump(disassembler, instruction) { destination(operands) } else { None };
    match goes.filter(|to| !function.contains(to)).and_then(target) {
        Some(name) => format!("{plain} <{name}>"),
        None => plain,
    }
}

/// Whether it jumps or calls.
fn is_jump(disassembler: &Capstone, instruction: &Insn<'_>) -> bool {
    let jumps = [InsnGroupType::CS_GRP_JUMP, InsnGroupType::CS_GRP_CALL, InsnGroupType::CS_GRP_BRANCH_RELATIVE];
    let detail = disassembler.insn_detail(instruction);
    detail.is_ok_and(|detail| detail.groups().iter().any(|group| jumps.contains(&u32::from(group.0))))
}

/// The address that operands end in: of `x0, #0x1139` that behind the sign.
fn destination(operands: &str) -> Option<u64> {
    let last = operands.rsplit(' ').next()?;
    u64::from_str_radix(last.trim_start_matches('#').strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    fn texts(architecture: Architecture, bytes: &[u8]) -> Vec<(u64, String)> {
        let code = MappedCode { bytes, offset: 0x10, addresses: 0x1000..0x1000 + bytes.len() as u64 };
        let mut all = Vec::new();
        let target = |address| (address == 0x2000).then(|| "work".to_owned());
        instructions(&disassembler(architecture).unwrap(), &code, target, &mut all);
        all.into_iter().map(|one| (one.offset, one.text)).collect()
    }

    #[test]
    fn jumps_and_calls_say_where_to() {
        // push %rbp; call 0x2000; jne 0x1001; call *%rax; no instruction; ret.
        let code = [0x55, 0xe8, 0xfa, 0x0f, 0, 0, 0x75, 0xf9, 0xff, 0xd0, 0x06, 0xc3];
        let expected = [
            (0x10, "pushq   %rbp"),
            (0x11, "callq   0x2000 <work>"),
            (0x16, "jne     0x1001"),
            (0x18, "callq   *%rax"),
            (0x1a, ".byte  0x06"),
            (0x1b, "retq"),
        ];
        assert_eq!(texts(Architecture::X86_64, &code), expected.map(|(at, text)| (at, text.to_owned())));
        // bl 0x2000; cbnz x0, 0x1000.
        let code = [0x00, 0x04, 0x00, 0x94, 0xe0, 0xff, 0xff, 0xb5];
        let expected = [(0x10, "bl      #0x2000 <work>"), (0x14, "cbnz    x0, #0x1000")];
        assert_eq!(texts(Architecture::Aarch64, &code), expected.map(|(at, text)| (at, text.to_owned())));
    }

    #[test]
    fn a_function_is_found_by_its_name_at_its_offsets() {
        let read = |name: &str, offsets: &[u64]| disassemble(Path::new("../tests/elf/lines.so"), name, offsets);
        let offset = 0x20d;
        let found = read("outer", &[offset, offset + 1]).unwrap();
        let (first, last) = (&found[0], &found[found.len() - 1]);
        assert_eq!((first.address, last.address + u64::from(last.length)), (0x1ef, 0x224));
        assert_eq!(last.text, "jmp     0x219");
        assert!(matches!(read("inner", &[offset]), Err(DisassemblyError::OtherFunction)));
        assert!(matches!(read("outer", &[]), Err(DisassemblyError::NoBounds)));
        let of_text = disassemble(Path::new("Cargo.toml"), "f", &[0]);
        assert!(matches!(of_text, Err(DisassemblyError::NoProgram)));
        assert!(matches!(disassemble(Path::new("/nonexistent"), "f", &[0]), Err(DisassemblyError::File(_))));
    }

    proptest! {
        #[test]
        fn instructions_lie_one_behind_the_other(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let code = MappedCode { bytes: &bytes, offset: 7, addresses: 0x1000..0x1000 + bytes.len() as u64 };
            let mut all = Vec::new();
            instructions(&disassembler(Architecture::X86_64).unwrap(), &code, |_| None, &mut all);
            let mut offset = 7;
            for one in &all {
                prop_assert_eq!((one.offset, one.address), (offset, 0x1000 + offset - 7));
                offset += u64::from(one.length);
            }
            prop_assert_eq!(offset, 7 + bytes.len() as u64);
        }
    }
}
