//! Packs the relocations of libpfm's tables, a tenth of the program, where the C library of this machine reads packed ones.

use std::env;
use std::process::Command;

/// The first C library that does.
const READS_PACKED: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_for_here = env::var_os("HOST") == env::var_os("TARGET");
    let is_gnu = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|library| library == "gnu");
    if is_for_here && is_gnu && c_library().is_some_and(|version| version >= READS_PACKED) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version of this machine's C library, as in `glibc 2.36`.
fn c_library() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
