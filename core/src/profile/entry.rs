//! Knows the functions with which runtimes start programs and threads, and the kernel system calls and interrupts.

/// Functions of a runtime that call what a program is about; they do nothing else of note.
///
/// From glibc 2.36 and musl 1.2 (`csu/`, `nptl/`, `crt/`), Rust 1.90 (`library/std/src/rt.rs`, `sys/backtrace.rs`),
/// Go 1.24 (`runtime/proc.go`, `asm_amd64.s`), OpenJDK 21 (`os_linux.cpp`, `javaCalls.cpp`), Linux 6.12
/// (`arch/x86/entry`, `arch/arm64/kernel/entry-common.c`).
const NAMES: &[&str] = &[
    "_start",
    "_start_c",
    "__libc_start_main",
    "__libc_start_main_impl",
    "__libc_start_call_main",
    "generic_start_main",
    "libc_start_main_stage2",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__clone_internal",
    "start_thread",
    "std::rt::lang_start",
    "std::rt::lang_start::{{closure}}",
    "std::rt::lang_start_internal",
    "std::rt::lang_start_internal::{{closure}}",
    "std::panicking::try",
    "std::panicking::try::do_call",
    "std::panicking::catch_unwind",
    "std::panicking::catch_unwind::do_call",
    "std::panic::catch_unwind",
    "std::sys::backtrace::__rust_begin_short_backtrace",
    "std::sys_common::backtrace::__rust_begin_short_backtrace",
    "core::ops::function::FnOnce::call_once",
    "core::ops::function::FnOnce::call_once{{vtable.shim}}",
    "runtime.main",
    "runtime.goexit",
    "runtime.goexit.abi0",
    "runtime.mstart",
    "runtime.mstart0",
    "runtime.mstart1",
    "runtime.rt0_go",
    "thread_native_entry",
    "JavaMain",
    "ThreadJavaMain",
    "call_stub",
    "entry_SYSCALL_64",
    "entry_SYSCALL_64_after_hwframe",
    "do_syscall_64",
    "x64_sys_call",
    "asm_exc_page_fault",
    "asm_sysvec_apic_timer_interrupt",
    "ret_from_fork",
    "ret_from_fork_asm",
    "kthread",
    "el0t_64_sync",
    "el0t_64_sync_handler",
    "el0_svc",
    "invoke_syscall",
    "do_el0_svc",
];

/// What follows a name that is generic: `std::rt::lang_start<()>`, and implementations of calls of closures.
const PREFIXES: &[&str] = &[
    "std::rt::lang_start<",
    "std::rt::lang_start::{closure",
    "std::panicking::try<",
    "std::panicking::try::do_call<",
    "std::panicking::catch_unwind<",
    "std::panicking::catch_unwind::do_call<",
    "std::panic::catch_unwind<",
    "std::sys::backtrace::__rust_begin_short_backtrace<",
    "std::sys_common::backtrace::__rust_begin_short_backtrace<",
    "core::ops::function::FnOnce::call_once<",
    "core::ops::function::impls::<impl core::ops::function::FnOnce",
    "std::thread::Builder::spawn_unchecked_",
    "std::sys::thread::",
    "std::sys::pal::unix::thread::Thread::new::thread_start",
    "std::sys::unix::thread::Thread::new::thread_start",
];

/// Whether a function only starts a program, a thread or a system call, by its name.
pub fn is_runtime_entry(name: &str) -> bool {
    // What the compiler or the C library's versions put behind a name.
    let plain = name.split("@@").next().unwrap_or(name);
    NAMES.contains(&plain) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_known_and_what_programs_are_about_is_not() {
        for name in [
            "_start",
            "__libc_start_main@@GLIBC_2.34",
            "std::rt::lang_start<()>",
            "std::rt::lang_start::{{closure}}",
            "core::ops::function::FnOnce::call_once",
            "entry_SYSCALL_64_after_hwframe",
        ] {
            assert!(is_runtime_entry(name), "{name}");
        }
        for name in ["main", "start", "_start_work", "clone_tree", "std::rt::begin", "runtime.mallocgc", "", "@@"] {
            assert!(!is_runtime_entry(name), "{name}");
        }
    }
}
