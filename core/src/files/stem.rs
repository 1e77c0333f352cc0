//! Makes names of files from names from outside.

/// The most characters of a name that a file's name keeps.
const LONGEST: usize = 100;

/// A name for a file, or a folder, of what has this name: without what separates folders, and never hidden. What had to
/// be changed or cut is told apart from other names by a hash.
pub fn file_stem(name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "_-.=".contains(c);
    let kept = name.chars().map(|c| if is_kept(c) { c } else { '_' }).take(LONGEST);
    let mut stem: String = kept.collect();
    if stem.starts_with('.') {
        stem.replace_range(..1, "_");
    }
    if stem == name && !name.is_empty() { stem } else { format!("{stem}-{:016x}", hash_of_name(name)) }
}

/// The hash of a name, which is the same everywhere and always: FNV-1a of Fowler, Noll and Vo, with 64 bits.
pub fn hash_of_name(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_names_stay() {
        assert_eq!(file_stem("sort.page-faults"), "sort.page-faults");
        // The published hash of no bytes, and of one.
        assert_eq!((hash_of_name(""), hash_of_name("a")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c));
    }

    #[test]
    fn names_that_lead_elsewhere_are_changed() {
        assert_eq!(file_stem("a"), "a");
        assert_eq!(file_stem(""), "-cbf29ce484222325");
        for name in ["..", "../../x", "/etc/passwd", ".hidden", "a\0b", "a\nb", "</script>", "é"] {
            let stem = file_stem(name);
            assert!(
                !stem.contains('/')
                    && !stem.starts_with('.')
                    && stem.ends_with(&format!("{:016x}", hash_of_name(name)))
            );
        }
        assert_ne!(file_stem("a/b"), file_stem("a_b"));
        assert_ne!(file_stem(&"a".repeat(101)), file_stem(&"a".repeat(102)));
    }

    proptest! {
        #[test]
        fn any_name_gives_one_of_a_file(name in any::<String>()) {
            let stem = file_stem(&name);
            prop_assert!(stem.len() <= LONGEST + 17 && !stem.is_empty() && !stem.starts_with('.'));
            prop_assert!(stem.chars().all(|c| c.is_ascii_alphanumeric() || "_-.=".contains(c)));
        }
    }
}
