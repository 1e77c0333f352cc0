//! Finds the file that holds the debug information of a program, where that is a file of its own.
//!
//! Distributions strip programs, and install what they took off under `/usr/lib/debug`, by the build id of the program
//! or under the name that a debug link gives. perf and debuginfod's clients keep such files by build id too.

use std::env;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::read::{Object, ObjectSection, ReadCache};

use crate::files::{self, ExpectedFile};
#[cfg(not(feature = "debuginfod"))]
use crate::names::shown;
use crate::stacks::live::mapped::{AtOnce, MOST_PROGRAM, MappedProgram, ParsedSymbols};

/// Where debug information of installed programs lies.
const DEBUG: &str = "/usr/lib/debug";

/// Debug information that unpacks to more bytes than this isn't read.
const MOST_UNPACKED: u64 = 4 << 30;

/// Looks for files with debug information.
#[derive(Debug, Default)]
pub(in crate::stacks::live) struct DebugFiles {
    #[cfg(feature = "debuginfod")]
    servers: Option<Option<super::debuginfod::Debuginfod>>,
    /// What was fetched, or not, since it was taken last.
    pub(super) notes: Vec<String>,
    #[cfg(not(feature = "debuginfod"))]
    has_told: bool,
}

impl DebugFiles {
    /// The file that holds the debug information of a program: of this machine or, if the user wants that, of a server.
    pub(super) fn find(&mut self, elf: &ParsedSymbols<'_>, program: &MappedProgram) -> Option<File> {
        let found = debug_file(elf, program);
        let Some(build) = elf.build_id().ok().flatten().filter(|_| found.is_none()) else { return found };
        self.fetch(build, &program.path);
        debug_file(elf, program)
    }

    #[cfg(feature = "debuginfod")]
    fn fetch(&mut self, build: &[u8], path: &str) {
        let cache = || DebugFolders::here().debuginfod;
        let servers =
            self.servers.get_or_insert_with(|| super::debuginfod::Debuginfod::of_environment(cache().as_deref()));
        if let Some(servers) = servers {
            servers.fetch(build, path, &mut self.notes);
        }
    }

    #[cfg(not(feature = "debuginfod"))]
    fn fetch(&mut self, _build: &[u8], path: &str) {
        let is_wanted = env::var("DEBUGINFOD_URLS").is_ok_and(|urls| !urls.trim().is_empty());
        if is_wanted && !self.has_told {
            self.has_told = true;
            self.notes.push(format!(
                "DEBUGINFOD_URLS is set, but this perfprop was built without debuginfod; elfutils fetches what it reads:  \
                 debuginfod-find debuginfo {}",
                shown(path)
            ));
        }
    }
}

/// The file that holds the debug information of a program. It is believed if it belongs to root, to this user or to
/// whom the program belongs, and is of the same build.
fn debug_file(elf: &ParsedSymbols<'_>, program: &MappedProgram) -> Option<File> {
    let owners = [0, nix::unistd::geteuid().as_raw(), program.file.metadata().ok()?.uid()];
    let expected = ExpectedFile { owners: Some(&owners), ..ExpectedFile::any(MOST_PROGRAM) };
    let (build, link) = (elf.build_id().ok().flatten(), elf.gnu_debuglink().ok().flatten());
    let path = program.path.strip_suffix(" (deleted)").unwrap_or(&program.path);
    let by_build = build.into_iter().flat_map(|build| by_build(build, &DebugFolders::here()));
    let by_link = link.into_iter().flat_map(|(name, _)| by_link(path, name));
    let open = |candidate: PathBuf| {
        let below = program.root.as_ref().map(|root| files::open_below(root, &candidate, &expected));
        [below, Some(files::open(&candidate, &expected))]
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .collect::<Vec<_>>()
    };
    by_build.chain(by_link).flat_map(open).find(|found| is_of_build(found, build, link) == Some(true))
}

/// Whether a file holds the debug information of a program with this build id and debug link.
fn is_of_build(found: &File, build: Option<&[u8]>, link: Option<(&[u8], u32)>) -> Option<bool> {
    let cache = ReadCache::new(File::open(files::path_of(found)).ok()?);
    let debug = object::File::parse(AtOnce(&cache)).ok()?;
    let is_same = match (build, debug.build_id().ok().flatten(), link) {
        (Some(build), Some(found), _) => build == found,
        (_, _, Some((_, sum))) => crc32(found)? == sum,
        _ => false,
    };
    Some(is_same && debug.gnu_debuglink().ok()?.is_none() && unpacks_to_little(&debug))
}

/// Where this user's tools keep debug information.
#[derive(Debug, Default)]
struct DebugFolders {
    /// Of perf (`perf buildid-cache`).
    perf: Option<PathBuf>,
    /// Of debuginfod's clients.
    debuginfod: Option<PathBuf>,
}

impl DebugFolders {
    fn here() -> Self {
        let folder = |name| env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let home = folder("HOME");
        let cache = folder("XDG_CACHE_HOME").or_else(|| home.as_ref().map(|home| home.join(".cache")));
        let debuginfod = folder("DEBUGINFOD_CACHE_PATH").or_else(|| cache.map(|cache| cache.join("debuginfod_client")));
        Self { perf: home.map(|home| home.join(".debug")), debuginfod }
    }
}

/// `/usr/lib/debug/.build-id/12/34567890.debug`, and what perf and debuginfod's clients have.
fn by_build(build: &[u8], folders: &DebugFolders) -> Vec<PathBuf> {
    let Some((first, rest)) = build.split_first().filter(|(_, rest)| !rest.is_empty()) else { return Vec::new() };
    let first = format!("{first:02x}");
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut paths = vec![PathBuf::from(format!("{DEBUG}/.build-id/{first}/{rest}.debug"))];
    if let Some(perf) = &folders.perf {
        let build = perf.join(".build-id").join(&first).join(&rest);
        paths.extend(["debug", "elf"].map(|name| build.join(name)));
    }
    paths.extend(folders.debuginfod.iter().map(|cache| cache.join(format!("{first}{rest}")).join("debuginfo")));
    paths
}

/// Beside the program, and where those of installed ones lie. A name is never a path.
fn by_link(path: &str, name: &[u8]) -> Vec<PathBuf> {
    let (Some(folder), Ok(name)) = (Path::new(path).parent(), std::str::from_utf8(name)) else { return Vec::new() };
    if name.contains('/') || matches!(name, "" | "." | "..") {
        return Vec::new();
    }
    let installed = format!("{DEBUG}{}", folder.display());
    vec![folder.join(name), folder.join(".debug").join(name), Path::new(&installed).join(name)]
}

/// The sum of a file that debug links have: the CRC of ISO 3309, as of zlib.
fn crc32(file: &File) -> Option<u32> {
    let mut sum = u32::MAX;
    let mut bytes = vec![0; 1 << 16];
    let mut file = File::open(files::path_of(file)).ok()?;
    loop {
        let length = file.read(&mut bytes).ok()?;
        if length == 0 {
            return Some(!sum);
        }
        sum = bytes[..length].iter().fold(sum, |sum, &byte| CRC[usize::from(sum as u8 ^ byte)] ^ sum >> 8);
    }
}

const CRC: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut sum, mut bit) = (byte as u32, 0);
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xedb8_8320 ^ sum >> 1 } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

/// Whether the debug information takes no more memory than is there, by what its packed sections say of themselves.
pub(super) fn unpacks_to_little(elf: &ParsedSymbols<'_>) -> bool {
    let sizes = elf.sections().filter_map(|section| section.compressed_file_range().ok());
    let packed = sizes.filter(|range| range.format != object::CompressionFormat::None);
    packed.fold(0_u64, |sum, range| sum.saturating_add(range.uncompressed_size)) <= MOST_UNPACKED
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn sums_of_debug_links() {
        let path = std::env::temp_dir().join(format!("perfprop-crc-{}", std::process::id()));
        std::fs::write(&path, "123456789").unwrap();
        // The check value of this CRC.
        assert_eq!(crc32(&File::open(&path).unwrap()), Some(0xcbf4_3926));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn debug_information_is_looked_for_by_build_and_by_name() {
        let of = |build: &[u8], folders| by_build(build, &folders);
        assert_eq!(
            of(&[0x0a, 0xbc, 1], DebugFolders::default()),
            [PathBuf::from("/usr/lib/debug/.build-id/0a/bc01.debug")]
        );
        assert!(of(&[1], DebugFolders::default()).is_empty() && of(&[], DebugFolders::default()).is_empty());
        let folders = DebugFolders { perf: Some("/h/.debug".into()), debuginfod: Some("/c".into()) };
        let kept = ["/h/.debug/.build-id/0a/bc/debug", "/h/.debug/.build-id/0a/bc/elf", "/c/0abc/debuginfo"];
        assert_eq!(of(&[0x0a, 0xbc], folders)[1..], kept.map(PathBuf::from));
        let beside = ["/a/p.debug", "/a/.debug/p.debug", "/usr/lib/debug/a/p.debug"].map(PathBuf::from);
        assert_eq!(by_link("/a/p", b"p.debug"), beside);
        assert!(["../x", "/etc/x", "", ".."].iter().all(|name| by_link("/a/p", name.as_bytes()).is_empty()));
    }
}
