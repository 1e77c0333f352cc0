//! Parses `--model`: the caches of the model.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::host::HostFiles;

/// The three caches of the model; one that isn't given is as the kernel describes this CPU's, else as valgrind finds
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheModel {
    /// Instruction cache of the first level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub i1: Option<Cache>,
    /// Data cache of the first level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d1: Option<Cache>,
    /// Shared cache of the last level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ll: Option<Cache>,
}

/// Size and shape of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// Size in bytes.
    pub size: u64,
    /// Ways: the lines of a set.
    pub associativity: u64,
    /// Size of a line in bytes.
    pub line: u64,
}

/// The shortest line that valgrind models: its widest register must fit in one.
const SHORTEST_LINE: u64 = 32;

/// Larger caches than any CPU has.
const LARGEST: u64 = 1 << 30;

impl Cache {
    /// What valgrind has against a cache of this shape.
    fn complaint(self) -> Option<String> {
        let Self { size, associativity, line } = self;
        if !line.is_power_of_two() || line < SHORTEST_LINE {
            return Some(format!("a line of {line} bytes: a power of two from {SHORTEST_LINE} is needed"));
        }
        if size > LARGEST {
            return Some(format!("a size of {size} bytes: at most {LARGEST} can be modelled"));
        }
        let set = associativity.checked_mul(line).filter(|&set| set > 0 && set <= size);
        let Some(set) = set else {
            return Some(format!(
                "{associativity} lines of {line} bytes to a set: a set is more than nothing, and at most the size of {size} bytes"
            ));
        };
        if size % set != 0 || !(size / set).is_power_of_two() {
            let fits = (size / set).max(1).ilog2();
            let near = [set << fits, set << (fits + 1)];
            return Some(format!(
                "a size of {size} bytes: a power of two times the {set} bytes of a set ({associativity} lines of {line}) is needed, as {} or {}",
                near[0], near[1]
            ));
        }
        None
    }
}

impl CacheModel {
    /// Reads `i1=32768,8,64,d1=32768,8,64,ll=8388608,16,64`, any of the three: size, associativity and
    /// line size as valgrind takes them; a size may end with `k` or `m`.
    ///
    /// # Errors
    /// Returns what is wrong, where, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut model = Self::default();
        let mut rest: Vec<&str> = text.split(',').map(str::trim).collect();
        rest.reverse();
        while let Some(first) = rest.pop() {
            let (name, size) = first.split_once('=').ok_or_else(|| format!("'{first}': {EXPECTED}"))?;
            let place = match name.trim().to_ascii_lowercase().as_str() {
                "i1" => &mut model.i1,
                "d1" => &mut model.d1,
                "ll" => &mut model.ll,
                _ => return Err(format!("'{name}' is none of the model's caches i1, d1 and ll; {EXPECTED}")),
            };
            if place.is_some() {
                return Err(format!("'{name}' is given twice"));
            }
            let mut number = |what: &str| {
                let text = rest.pop().filter(|text| !text.contains('='));
                let text = text.ok_or_else(|| format!("'{name}' has no {what}; {EXPECTED}"))?;
                text.parse().map_err(|_| format!("'{text}' is no {what} of {name}: a whole number is needed"))
            };
            let size = bytes(size.trim()).ok_or_else(|| format!("'{size}' is no size of {name}; {EXPECTED}"))?;
            let cache = Cache { size, associativity: number("associativity")?, line: number("line size")? };
            if let Some(complaint) = cache.complaint() {
                return Err(format!("{name} can't be modelled with {complaint}"));
            }
            *place = Some(cache);
        }
        Ok(model)
    }

    /// The same with this CPU's caches, as the kernel describes them, for those that aren't given: valgrind asks the
    /// CPU itself, which has told virtual machines ten times the size.
    pub(super) fn or_of(self, host: &HostFiles) -> Self {
        let found: Vec<_> = (0..MOST_CACHES).filter_map(|number| described(host, number)).collect();
        let first =
            |kind: &str| found.iter().find(|(level, of, _)| *level == 1 && of == kind).map(|(.., cache)| *cache);
        let last = found
            .iter()
            .filter(|(level, kind, _)| *level > 1 && kind != "Instruction")
            .max_by_key(|(level, ..)| *level);
        Self {
            i1: self.i1.or_else(|| first("Instruction")),
            d1: self.d1.or_else(|| first("Data")),
            ll: self.ll.or_else(|| last.map(|(.., cache)| *cache)),
        }
    }

    /// What valgrind says of the caches that it models, in its log with `-v -v`:
    /// `I1: 32,768 B, 8-way, 64 B lines`. `None` until all are there.
    pub(super) fn from_log(log: &str) -> Option<Self> {
        let cache = |name: &str| {
            let line = log.lines().find_map(|line| line.split_once(&format!(" {name}: "))).map(|(_, rest)| rest)?;
            // Commas stand in large numbers and between them.
            let digits = line.replace(", ", " ").replace(',', "");
            let mut numbers = digits.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
            let mut number = || numbers.next()?.parse().ok();
            Some(Cache { size: number()?, associativity: number()?, line: number()? })
        };
        let whole = log.rfind('\n').is_some_and(|end| log[..end].contains(" LL: "));
        Some(Self { i1: Some(cache("I1")?), d1: Some(cache("D1")?), ll: Some(cache("LL").filter(|_| whole)?) })
    }

    /// The options that tell valgrind.
    pub(super) fn options(&self) -> impl Iterator<Item = String> {
        let caches = [("I1", self.i1), ("D1", self.d1), ("LL", self.ll)];
        caches.into_iter().filter_map(|(name, cache)| {
            let Cache { size, associativity, line } = cache?;
            Some(format!("--{name}={size},{associativity},{line}"))
        })
    }
}

/// More descriptions of caches than any CPU has.
const MOST_CACHES: usize = 16;

/// Level, kind and shape of a cache of the first CPU, the size rounded down to one that can be modelled.
fn described(host: &HostFiles, number: usize) -> Option<(u32, String, Cache)> {
    let text = |name: &str| {
        let text = host.text(&format!("sys/devices/system/cpu/cpu0/cache/index{number}/{name}"))?;
        Some(text.trim().to_owned())
    };
    let parsed = |name: &str| text(name)?.parse::<u64>().ok();
    let (associativity, line) = (parsed("ways_of_associativity")?, parsed("coherency_line_size")?);
    let set = associativity.checked_mul(line).filter(|set| *set > 0)?;
    let sets = (bytes(&text("size")?)? / set).checked_ilog2()?;
    let cache = Cache { size: set.checked_shl(sets)?, associativity, line };
    let level = u32::try_from(parsed("level")?).ok()?;
    cache.complaint().is_none().then_some((level, text("type")?, cache))
}

const EXPECTED: &str =
    "give caches as in i1=32768,8,64,d1=32768,8,64,ll=8388608,16,64 (size, associativity, line size)";

fn bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.char_indices().last()? {
        (end, 'k' | 'K') => (&text[..end], 1 << 10),
        (end, 'm' | 'M') => (&text[..end], 1 << 20),
        _ => (text, 1_u64),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, associativity, line } = self;
        match size {
            _ if size % (1 << 20) == 0 => write!(f, "{} MiB", size >> 20)?,
            _ if size % (1 << 10) == 0 => write!(f, "{} KiB", size >> 10)?,
            _ => write!(f, "{size} B")?,
        }
        write!(f, " {associativity}-way {line} B")
    }
}

impl fmt::Display for CacheModel {
    /// `I1 32 KiB 8-way 64 B, D1 32 KiB 8-way 64 B, LL 8 MiB 16-way 64 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let caches = [("I1", self.i1), ("D1", self.d1), ("LL", self.ll)];
        let words = caches.map(|(name, cache)| match cache {
            Some(cache) => format!("{name} {cache}"),
            None => format!("{name} as in this CPU"),
        });
        f.write_str(&words.join(", "))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    /// A folder like `/` with these caches: level, type, size, ways, bytes of a line.
    fn host_with(name: &str, caches: &[[&str; 5]]) -> (std::path::PathBuf, HostFiles) {
        let root = std::env::temp_dir().join(format!("perfprop-caches-{name}-{}", std::process::id()));
        for (number, cache) in caches.iter().enumerate() {
            let folder = root.join(format!("sys/devices/system/cpu/cpu0/cache/index{number}"));
            std::fs::create_dir_all(&folder).unwrap();
            let names = ["level", "type", "size", "ways_of_associativity", "coherency_line_size"];
            names
                .iter()
                .zip(cache)
                .for_each(|(name, text)| std::fs::write(folder.join(name), format!("{text}\n")).unwrap());
        }
        let host = HostFiles::under(&root);
        (root, host)
    }

    #[test]
    fn caches_that_are_not_given_are_those_of_the_cpu() {
        let first = [["1", "Data", "48K", "12", "64"], ["1", "Instruction", "32K", "8", "64"]];
        let rest = [["2", "Unified", "1024K", "8", "64"], ["3", "Unified", "33792K", "11", "64"]];
        let (root, host) = host_with("all", &[first, rest].concat());
        let given = CacheModel::parse("i1=16k,4,64").unwrap();
        let model = given.or_of(&host);
        std::fs::remove_dir_all(root).unwrap();
        // 33 MiB of 11 ways are 49,152 sets; 32,768 can be modelled.
        assert_eq!(model.options().collect::<Vec<_>>(), ["--I1=16384,4,64", "--D1=49152,12,64", "--LL=23068672,11,64"]);
    }

    #[test]
    fn caches_that_the_kernel_does_not_describe_are_left_to_valgrind() {
        let broken = [["1", "Data", "", "8", "64"], ["1", "Instruction", "32K", "0", "64"]];
        let (root, host) = host_with("broken", &broken);
        assert_eq!(CacheModel::default().or_of(&host), CacheModel::default());
        std::fs::remove_dir_all(root).unwrap();
        assert_eq!(CacheModel::default().or_of(&HostFiles::under("/nowhere".as_ref())), CacheModel::default());
    }

    #[test]
    fn caches_are_read_as_valgrind_takes_them() {
        let model = CacheModel::parse("d1=32k,8,64, ll=8m,16,64").unwrap();
        assert_eq!(model.d1, Some(Cache { size: 32768, associativity: 8, line: 64 }));
        assert_eq!(model.i1, None);
        assert_eq!(model.options().collect::<Vec<_>>(), ["--D1=32768,8,64", "--LL=8388608,16,64"]);
        assert_eq!(model.to_string(), "I1 as in this CPU, D1 32 KiB 8-way 64 B, LL 8 MiB 16-way 64 B");
    }

    #[test]
    fn what_valgrind_would_refuse_is_refused_with_the_reason() {
        let cases = [
            ("", "give caches"),
            ("d1=1,2", "has no line size"),
            ("d1=x,8,64", "no size of d1"),
            ("d1=32768,y,64", "no associativity of d1"),
            ("l2=32768,8,64", "none of the model's caches"),
            ("d1=32768,8,64,d1=32768,8,64", "twice"),
            ("d1=32768,8,48", "power of two from 32"),
            ("d1=32768,8,8", "power of two from 32"),
            ("d1=33000,8,64", "32768 or 65536"),
            ("d1=512,16,64", "can't be modelled with 16 lines of 64 bytes to a set: a set is"),
            ("d1=32768,0,64", "lines of 64 bytes to a set"),
            ("d1=99999999999999,1,64", "at most"),
            ("d1=32768,8,d1=32768", "has no line size"),
        ];
        for (text, words) in cases {
            let error = CacheModel::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn valgrinds_log_tells_what_it_models() {
        let log = "==7== Cache configuration used:\n==7==   I1: 32,768 B, 8-way, 64 B lines\n\
                   ==7==   D1: 49,152 B, 12-way, 64 B lines\n==7==   LL: 268,435,456 B, 1-way, 64 B lines\n";
        let model = CacheModel::from_log(log).unwrap();
        assert_eq!(model.to_string(), "I1 32 KiB 8-way 64 B, D1 48 KiB 12-way 64 B, LL 256 MiB 1-way 64 B");
        assert_eq!(CacheModel::from_log(&log[..log.len() - 30]), None);
        assert_eq!(CacheModel::from_log(""), None);
    }

    proptest! {
        #[test]
        fn a_good_cache_comes_back_and_no_text_panics(
            sets in 0u32..12, associativity in 1u64..20, line in 5u32..9, text in ".{0,40}"
        ) {
            let line = 1 << line;
            let size = (associativity * line) << sets;
            let cache = Cache { size, associativity, line };
            let model = CacheModel::parse(&format!("ll={size},{associativity},{line}"));
            prop_assert_eq!(model, Ok(CacheModel { ll: Some(cache), ..CacheModel::default() }));
            let _ = (CacheModel::parse(&text), CacheModel::from_log(&text));
        }
    }
}
