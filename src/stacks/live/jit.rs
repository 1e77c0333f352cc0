//! Addresses of code that a process has made in, the names that it wrote into its perf map out.
//!
//! Runtimes that compile while they run list what they compiled in `/tmp/perf-PID.map`: start and size in
//! hexadecimal digits and a name, one a line. The file grows while the process runs.

use std::collections::BTreeMap;
use std::fs;

use rustc_hash::FxHashMap;

/// A perf map longer than this is read up to here.
const MAX_BYTES: u64 = 256 << 20;

/// The perf maps of processes that were asked for.
#[derive(Debug, Default)]
pub(super) struct JitMaps {
    of: FxHashMap<i32, JitMap>,
}

#[derive(Debug, Default)]
struct JitMap {
    /// The end and the name of what begins at an address.
    functions: BTreeMap<u64, (u64, String)>,
    /// How long the file was when it was read.
    length: u64,
}

impl JitMaps {
    /// The function at an address of a process.
    pub(super) fn find(&mut self, pid: i32, address: u64) -> Option<&str> {
        let map = self.of.entry(pid).or_default();
        if map.find(address).is_none() {
            map.read_again(pid);
        }
        map.find(address)
    }
}

impl JitMap {
    fn find(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(name.as_str())
    }

    /// Reads the file if it has grown since; as the process sees it, and as it is here when that ended.
    fn read_again(&mut self, pid: i32) {
        let inside = innermost_pid(pid).unwrap_or(pid);
        let paths = [format!("/proc/{pid}/root/tmp/perf-{inside}.map"), format!("/tmp/perf-{pid}.map")];
        for path in paths {
            let Ok(length) = fs::metadata(&path).map(|metadata| metadata.len()) else { continue };
            if length == self.length {
                return;
            }
            let Ok(file) = fs::File::open(&path) else { continue };
            let mut text = Vec::new();
            if std::io::Read::read_to_end(&mut std::io::Read::take(file, MAX_BYTES), &mut text).is_ok() {
                self.length = length;
                self.parse(&String::from_utf8_lossy(&text));
                return;
            }
        }
    }

    /// A later line about the same address holds: code is thrown away and its room used again.
    fn parse(&mut self, text: &str) {
        for (start, end, name) in text.lines().filter_map(line) {
            self.functions.insert(start, (end, name.to_owned()));
        }
    }
}

fn line(line: &str) -> Option<(u64, u64, &str)> {
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    let (start, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let start = hex(start)?;
    Some((start, start.checked_add(hex(size)?)?, name))
}

/// The number that a process has in its own namespace.
fn innermost_pid(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn lines_of_perf_maps() {
        let mut map = JitMap::default();
        map.parse("1000 20 LazyCompile:~f app.js:1\n0x2000 0x10 py::g:/a b.py\nbad\n3000 zz x\nffffffffffffffff 2 y\n");
        assert_eq!(map.find(0x101f), Some("LazyCompile:~f app.js:1"));
        assert_eq!(map.find(0x1020), None);
        assert_eq!(map.find(0x2000), Some("py::g:/a b.py"));
        assert_eq!((map.find(0xfff), map.find(0x3000)), (None, None));
        map.parse("1000 20 again\n");
        assert_eq!(map.find(0x1000), Some("again"));
    }

    #[test]
    fn a_map_that_grows_is_read_again() {
        // No process has this number.
        let pid = i32::MAX - 7;
        let path = format!("/tmp/perf-{pid}.map");
        let mut maps = JitMaps::default();
        assert_eq!(maps.find(pid, 0x1000), None);
        fs::write(&path, "1000 20 f\n").unwrap();
        assert_eq!(maps.find(pid, 0x1000), Some("f"));
        fs::write(&path, "1000 20 f\n2000 20 g\n").unwrap();
        assert_eq!(maps.find(pid, 0x2000), Some("g"));
        fs::remove_file(&path).unwrap();
        assert_eq!(maps.find(pid, 0x1000), Some("f"));
    }
}
