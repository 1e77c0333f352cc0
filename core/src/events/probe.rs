//! Resolves a function of a program or of the kernel to a uprobe or kprobe.
//!
//! A uprobe stands at an offset of a file, a function at an address of memory; the program's
//! segments (`PT_LOAD`) say which offset an address is loaded from. That holds for programs at fixed
//! addresses and for those that may be loaded anywhere, because both have the same form.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;

use object::read::ReadCache;
use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind};

use super::error::{EventErrorCause, ProbeProblem};
use super::machine::Machine;
use super::pmu;
use super::syntax::ProbePlace;
use super::{Encoding, Probe};
use crate::files::{self, ExpectedFile};
use crate::names;

/// A program with all its debug information may be so long, in bytes; those of browsers have some 4 GiB.
const LONGEST_PROGRAM: u64 = 16 << 30;

/// `PF_X` of `elf.h`: the segment may be executed.
const EXECUTABLE: u32 = 1;

/// The most addresses of one name that an error lists.
const MOST_ADDRESSES: usize = 4;

/// The encoding of a probe on a place in the file at `path`.
///
/// # Errors
/// Fails if the kernel has no such probes, or the file no such place, or several of that name.
pub(super) fn user(
    machine: &Machine,
    path: &str,
    place: &ProbePlace<'_>,
    returns: bool,
) -> Result<Encoding, EventErrorCause> {
    let problem = |problem| EventErrorCause::Probe { path: path.to_owned(), problem };
    let pmu_type = pmu_type(machine, "uprobe").ok_or_else(|| problem(ProbeProblem::NoPmu("uprobe")))?;
    let full = fs::canonicalize(path).map_err(|error| problem(ProbeProblem::File(error.to_string())))?;
    let offset = offset(&full, place).map_err(problem)?;
    let full = full.into_os_string().into_string().map_err(|_| problem(ProbeProblem::NotText))?;
    Ok(encoding(pmu_type, Probe { path: full, offset, returns, ..Probe::default() }))
}

/// The encoding of a probe on a function of the kernel.
///
/// # Errors
/// Fails if the kernel has no such probes or no such function.
pub(super) fn kernel(machine: &Machine, place: &ProbePlace<'_>, returns: bool) -> Result<Encoding, EventErrorCause> {
    let problem = |problem| EventErrorCause::Probe { path: String::new(), problem };
    let pmu_type = pmu_type(machine, "kprobe").ok_or_else(|| problem(ProbeProblem::NoPmu("kprobe")))?;
    let ProbePlace::Function { name, offset } = *place else {
        return Err(problem(ProbeProblem::KernelAddress));
    };
    if let Some(similar) = missing_in_kernel(machine.kallsyms(), name) {
        return Err(problem(ProbeProblem::NoFunction { function: name.to_owned(), similar }));
    }
    Ok(encoding(pmu_type, Probe { function: name.to_owned(), offset, returns, ..Probe::default() }))
}

fn encoding(pmu_type: u32, probe: Probe) -> Encoding {
    Encoding { probe: Some(probe), ..Encoding::of(pmu_type, 0) }
}

fn pmu_type(machine: &Machine, pmu: &str) -> Option<u32> {
    pmu::find(machine, pmu).map(|pmu| pmu.pmu_type)
}

/// The offset in the file of a place in the program.
fn offset(path: &Path, place: &ProbePlace<'_>) -> Result<u64, ProbeProblem> {
    let file =
        files::open(path, &ExpectedFile::any(LONGEST_PROGRAM)).map_err(|why| ProbeProblem::File(why.to_string()))?;
    let cache = ReadCache::new(file);
    let program = object::File::parse(&cache).map_err(|error| ProbeProblem::NotElf(error.to_string()))?;
    let address = match *place {
        ProbePlace::Address(address) => address,
        ProbePlace::Function { name, offset } => {
            function(&program, name)?.checked_add(offset).ok_or(ProbeProblem::NoCode(u64::MAX))?
        }
    };
    loaded_from(&program, address).ok_or(ProbeProblem::NoCode(address))
}

type ProbedProgram<'data> = object::File<'data, &'data ReadCache<File>>;

/// Where the executable segment that holds an address has it in the file.
fn loaded_from(program: &ProbedProgram<'_>, address: u64) -> Option<u64> {
    program.segments().find_map(|segment| {
        let SegmentFlags::Elf { p_flags } = segment.flags() else { return None };
        let (start, length) = segment.file_range();
        let inside = address.checked_sub(segment.address())?;
        (p_flags & EXECUTABLE != 0 && inside < length).then(|| start.checked_add(inside))?
    })
}

/// The address of a function, by the full table of symbols and by that of a shared library.
fn function(program: &ProbedProgram<'_>, name: &str) -> Result<u64, ProbeProblem> {
    let functions = || program.symbols().chain(program.dynamic_symbols()).filter(is_function);
    let named = || functions().filter(|symbol| symbol.name() == Ok(name));
    // A function that other files can call goes before others of its name.
    let mut addresses: Vec<u64> = named().filter(|symbol| !symbol.is_local()).map(|symbol| symbol.address()).collect();
    if addresses.is_empty() {
        addresses = named().map(|symbol| symbol.address()).collect();
    }
    addresses.sort_unstable();
    addresses.dedup();
    match addresses.as_slice() {
        [address] => Ok(*address),
        [] if functions().next().is_none() => Err(ProbeProblem::Stripped { function: name.to_owned() }),
        [] => {
            let known: Vec<&str> = functions().filter_map(|symbol| symbol.name().ok()).collect();
            let similar = names::nearest(name, known).into_iter().map(String::from).collect();
            Err(ProbeProblem::NoFunction { function: name.to_owned(), similar })
        }
        several => {
            let first = several.iter().copied().take(MOST_ADDRESSES).collect();
            Err(ProbeProblem::Several { function: name.to_owned(), addresses: first })
        }
    }
}

fn is_function<'data>(symbol: &impl ObjectSymbol<'data>) -> bool {
    symbol.is_definition() && symbol.kind() == SymbolKind::Text
}

/// The names nearest to a function that the kernel hasn't got; `None` when it has it, or doesn't
/// tell its functions.
fn missing_in_kernel(kallsyms: &Path, function: &str) -> Option<Vec<String>> {
    let mut functions = Vec::new();
    for line in BufReader::new(File::open(kallsyms).ok()?).split(b'\n') {
        let line = line.ok()?;
        let line = std::str::from_utf8(&line).ok()?;
        let mut fields = line.split_ascii_whitespace().skip(1);
        match (fields.next(), fields.next()) {
            (Some("t" | "T" | "w" | "W"), Some(name)) if name == function => return None,
            (Some("t" | "T" | "w" | "W"), Some(name)) => functions.push(name.to_owned()),
            _ => {}
        }
    }
    let nearest = || names::nearest(function, functions.iter().map(String::as_str));
    (!functions.is_empty()).then(|| nearest().into_iter().map(String::from).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use super::*;

    #[test]
    fn this_program_has_its_own_functions() {
        let path = std::env::current_exe().unwrap();
        let place = |name| ProbePlace::Function { name, offset: 0 };
        let main = offset(&path, &place("main")).unwrap();
        assert!(main > 0 && main < fs::metadata(&path).unwrap().len());
        assert_eq!(offset(&path, &ProbePlace::Function { name: "main", offset: 1 }), Ok(main + 1));
        let Err(ProbeProblem::NoFunction { similar, .. }) = offset(&path, &place("mian")) else { panic!() };
        assert!(similar.contains(&"main".to_owned()), "{similar:?}");
        assert_eq!(offset(&path, &ProbePlace::Address(u64::MAX)), Err(ProbeProblem::NoCode(u64::MAX)));
        let past = ProbePlace::Function { name: "main", offset: u64::MAX };
        assert_eq!(offset(&path, &past), Err(ProbeProblem::NoCode(u64::MAX)));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let place = ProbePlace::Address(0);
        assert!(matches!(offset(Path::new("/proc/self/status"), &place), Err(ProbeProblem::NotElf(_))));
        assert!(matches!(offset(Path::new("/"), &place), Err(ProbeProblem::File(_))));
        assert!(matches!(offset(Path::new("/nonexistent"), &place), Err(ProbeProblem::File(_))));
        // Opening one would wait for a writer.
        let fifo = std::env::temp_dir().join(format!("perfprop-fifo-{}", std::process::id()));
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let refused = offset(&fifo, &place);
        fs::remove_file(&fifo).unwrap();
        assert_eq!(refused, Err(ProbeProblem::File("it is no regular file".into())));
        // Cut off after the header.
        let path = std::env::temp_dir().join(format!("perfprop-cut-{}", std::process::id()));
        let whole = fs::read(std::env::current_exe().unwrap()).unwrap();
        fs::write(&path, &whole[..100]).unwrap();
        let cut = offset(&path, &ProbePlace::Function { name: "main", offset: 0 });
        fs::remove_file(&path).unwrap();
        assert!(cut.is_err(), "{cut:?}");
    }

    #[test]
    fn the_kernels_functions_are_known_by_kallsyms() {
        let path = std::env::temp_dir().join(format!("perfprop-kallsyms-{}", std::process::id()));
        fs::write(&path, "0000 T do_exit\n0000 t do_exec [m]\n0000 D data\n").unwrap();
        assert_eq!(missing_in_kernel(&path, "do_exit"), None);
        assert_eq!(missing_in_kernel(&path, "do_exut"), Some(vec!["do_exit".to_owned(), "do_exec".to_owned()]));
        fs::remove_file(&path).unwrap();
        assert_eq!(missing_in_kernel(&path, "anything"), None);
    }
}
