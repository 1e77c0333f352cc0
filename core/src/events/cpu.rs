//! Identifies the CPU in perf's form from `/proc/cpuinfo` or the MIDR, and matches it against the patterns of
//! perf's `mapfile.csv`.
//!
//! x86: `vendor-family-model-stepping`, the family in decimal, model and stepping in hexadecimal
//! (`GenuineIntel-6-55-4`). Arm: the MIDR without variant and revision (`0x00000000410fd0c0`).

use regex_lite::RegexBuilder;

/// Larger patterns than this mean nothing; mapfiles have some dozens of characters.
const LARGEST_PATTERN: usize = 1 << 16;

/// Variant and revision in a MIDR, which tell steppings apart and not kinds of cores.
const MIDR_STEPPING: u64 = 0x00F0_000F;

/// The id of the first processor in `/proc/cpuinfo`.
pub(super) fn from_cpuinfo(text: &str) -> Option<String> {
    let field = |name: &str| {
        let line = text.lines().find(|line| line.split(':').next().map(str::trim) == Some(name))?;
        line.split_once(':').map(|(_, value)| value.trim())
    };
    if let (Some(implementer), Some(part)) = (field("CPU implementer"), field("CPU part")) {
        return Some(midr_id(hex(implementer)? << 24 | 0xF << 16 | hex(part)? << 4));
    }
    let family: u32 = field("cpu family")?.parse().ok()?;
    let model: u32 = field("model")?.parse().ok()?;
    let stepping: u32 = field("stepping").and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(format!("{}-{family}-{model:X}-{stepping:X}", field("vendor_id")?))
}

/// The id in the text of a `midr_el1` file.
pub(super) fn from_midr(text: &str) -> Option<String> {
    hex(text).map(midr_id)
}

/// Whether the core of a MIDR is of the kind of `pattern`, another MIDR, and not of an older revision.
pub(super) fn is_core(pattern: &str, midr: &str) -> bool {
    let (Some(wanted), Some(found)) = (hex(pattern), hex(midr)) else { return false };
    let revision = |midr: u64| (midr >> 20 & 0xF, midr & 0xF);
    wanted & !MIDR_STEPPING == found & !MIDR_STEPPING && revision(found) >= revision(wanted)
}

fn midr_id(midr: u64) -> String {
    format!("{:#018x}", midr & !MIDR_STEPPING)
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Whether `pattern`, an extended regular expression, means the CPU `id`: all of it, or all but the
/// stepping where the pattern doesn't ask for one. That is the rule of perf's `strcmp_cpuid_str`.
pub(super) fn matches(pattern: &str, id: &str) -> bool {
    let wants_stepping = pattern.matches('-').count() == 3;
    let id = match id.rsplit_once('-') {
        Some((short, _)) if !wants_stepping && id.matches('-').count() == 3 => short,
        _ => id,
    };
    // Regular expressions are slow to build, and most patterns are another vendor's.
    let vendor = pattern.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    if !id.starts_with(vendor) {
        return false;
    }
    let whole = RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(LARGEST_PATTERN).build();
    whole.is_ok_and(|whole| whole.is_match(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_are_written_as_perf_writes_them() {
        let zen =
            "processor : 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name : x\nstepping : 1\n";
        assert_eq!(from_cpuinfo(zen).as_deref(), Some("AuthenticAMD-25-11-1"));
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n";
        assert_eq!(from_cpuinfo(arm).as_deref(), Some("0x00000000410fd0c0"));
        assert_eq!(from_midr("0x00000000413fd0c1").as_deref(), Some("0x00000000410fd0c0"));
        assert_eq!(from_cpuinfo("processor : 0\n"), None);
        assert_eq!(from_midr("none"), None);
    }

    #[test]
    fn the_stepping_counts_where_it_is_asked_for() {
        assert!(matches("GenuineIntel-6-55-[01234]", "GenuineIntel-6-55-4"));
        assert!(!matches("GenuineIntel-6-55-[01234]", "GenuineIntel-6-55-7"));
        assert!(matches("GenuineIntel-6-(3C|45|46)", "GenuineIntel-6-45-1"));
        assert!(!matches("GenuineIntel-6-(3C|45|46)", "GenuineIntel-6-456-1"));
        assert!(matches("AuthenticAMD-25-[[:xdigit:]]+", "AuthenticAMD-25-11-1"));
        assert!(!matches("AuthenticAMD-25-([245][[:xdigit:]]|[[:xdigit:]])", "AuthenticAMD-25-11-1"));
        assert!(matches("0x00000000410fd0c0", "0x00000000410fd0c0"));
    }

    #[test]
    fn a_core_is_meant_from_its_revision_on() {
        for (midr, expected) in
            [("0x410fd493", true), ("0x411fd490", true), ("0x410fd492", false), ("0x410fd4a3", false)]
        {
            assert_eq!(is_core("0x410fd493", midr), expected, "{midr}");
        }
        assert!(!is_core("x", "0x1") && !is_core("0x1", "y"));
    }

    #[test]
    fn a_pattern_that_is_none_matches_nothing() {
        assert!(!matches("GenuineIntel-6-(", "GenuineIntel-6-("));
        assert!(!matches("((((x{1000}){1000}){1000}){1000})", "x"));
    }

    proptest! {
        #[test]
        fn any_pattern_and_any_id_are_compared(pattern in ".{0,40}", id in ".{0,40}") {
            matches(&pattern, &id);
            from_cpuinfo(&id);
        }
    }
}
