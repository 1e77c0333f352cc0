//! Resolves event names by libpfm, and lists its tables.
//!
//! libpfm decides by CPUID which PMUs are present. In a virtual machine that is only a claim: the
//! kernel may still refuse every event. All calls go through one lock, because the library keeps
//! state of its own.
#![expect(unsafe_code, reason = "libpfm is a C library; this is the one place that calls it")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::{size_of, zeroed};
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use pfm_sys as sys;

use super::{Encoding, Modifiers};

/// A PMU that libpfm has a table for and believes to be in this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfmPmu {
    /// The name in front of `::`, as in `skl::L1D:REPLACEMENT`.
    pub name: String,
    /// Description of the PMU.
    pub description: String,
    /// Whether it counts what the cores do (and not the uncore, nor the kernel).
    pub is_core: bool,
    first_event: c_int,
}

/// An event of libpfm's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfmEvent {
    /// The name without PMU and umasks.
    pub name: String,
    /// Description of the event.
    pub description: String,
    /// The parts that it can be narrowed to; one is needed unless one is the default.
    pub umasks: Vec<Umask>,
}

/// A part of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Umask {
    /// The name behind the event's colon.
    pub name: String,
    /// Description of the umask.
    pub description: String,
    /// Whether the event means it when no umask is written.
    pub is_default: bool,
}

/// What libpfm makes of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfmEncoded {
    /// The full name, `pmu::EVENT:UMASK`, without modifiers.
    pub canonical: String,
    /// Bits that the kernel gets.
    pub encoding: Encoding,
    /// The modifiers in the name, and libpfm's defaults, which are perf's.
    pub modifiers: Modifiers,
}

/// Why libpfm has nothing for a name, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PfmError(pub String);

// Declared here again because the generated bindings take a Rust enum, of which a number that
// libpfm doesn't know must never be made.
unsafe extern "C" {
    fn pfm_get_pmu_info(pmu: u32, output: *mut sys::pfm_pmu_info_t) -> c_int;
    fn free(memory: *mut c_void);
}

/// Runs `call` while no other thread is in the library; `None` when it can't be initialised.
fn locked<T>(call: impl FnOnce() -> T) -> Option<T> {
    static READY: OnceLock<bool> = OnceLock::new();
    static LOCK: Mutex<()> = Mutex::new(());
    let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: takes no arguments; runs once, under the lock.
    let ready = READY.get_or_init(|| unsafe { sys::pfm_initialize() } == sys::PFM_SUCCESS);
    ready.then(call)
}

/// Encodes an event such as `skl::L1D:REPLACEMENT:u` or `inst_retired.any`.
///
/// # Errors
/// Returns what libpfm says is wrong with the name.
pub fn encode(name: &str) -> Result<PfmEncoded, PfmError> {
    let name = CString::new(name).map_err(|_| PfmError("a NUL in the name".to_owned()))?;
    locked(|| encode_locked(&name)).unwrap_or_else(|| Err(PfmError("libpfm can't start".to_owned())))
}

fn encode_locked(name: &CStr) -> Result<PfmEncoded, PfmError> {
    // SAFETY: both are plain C structs of numbers and pointers, for which zero is a value.
    let (mut attr, mut args): (sys::perf_event_attr, sys::pfm_perf_encode_arg_t) = unsafe { (zeroed(), zeroed()) };
    let mut full: *mut c_char = ptr::null_mut();
    attr.size = size_of::<sys::perf_event_attr>() as u32;
    args.attr = &raw mut attr;
    args.fstr = &raw mut full;
    args.size = size_of::<sys::pfm_perf_encode_arg_t>();
    let levels = sys::PFM_PLM0 | sys::PFM_PLM3 | sys::PFM_PLMH;
    let os = sys::pfm_os_t::PFM_OS_PERF_EVENT_EXT;
    // SAFETY: `name` ends in NUL; `args` and what it points to outlive the call and carry their sizes.
    let code = unsafe { sys::pfm_get_os_event_encoding(name.as_ptr(), levels, os, (&raw mut args).cast()) };
    // SAFETY: on success libpfm leaves a string of malloc's in `full`, else it stays null.
    let written = unsafe { text(full) };
    // SAFETY: `full` is null or malloc's, and isn't used again.
    unsafe { free(full.cast()) };
    if code != sys::PFM_SUCCESS {
        return Err(PfmError(reason(code)));
    }
    Ok(PfmEncoded { canonical: without_modifiers(&written), encoding: encoding(&attr), modifiers: modifiers(&attr) })
}

fn encoding(attr: &sys::perf_event_attr) -> Encoding {
    // SAFETY: both fields of each union are u64, and all bytes are initialised.
    let (config1, config2) = unsafe { (attr.__bindgen_anon_3.config1, attr.__bindgen_anon_4.config2) };
    Encoding { config1, config2, bp_type: attr.bp_type, ..Encoding::of(attr.type_, attr.config) }
}

fn modifiers(attr: &sys::perf_event_attr) -> Modifiers {
    Modifiers {
        exclude_user: attr.exclude_user() != 0,
        exclude_kernel: attr.exclude_kernel() != 0,
        exclude_hv: attr.exclude_hv() != 0,
        exclude_host: attr.exclude_host() != 0,
        exclude_guest: attr.exclude_guest() != 0,
        exclude_idle: attr.exclude_idle() != 0,
        precise: attr.precise_ip() as u8,
        pinned: attr.pinned() != 0,
        exclusive: attr.exclusive() != 0,
        ..Modifiers::default()
    }
}

/// What perf says by letters, or by options of its own.
const LETTERS: [&str; 13] =
    ["u", "k", "h", "g", "mg", "mh", "period", "freq", "precise", "excl", "pinned", "hw_smpl", "cpu"];

/// `pmu::EVENT:UMASK:k=1:u=1:e=0:c=2` without what isn't said of the event itself, and what is 0 anyway:
/// `pmu::EVENT:UMASK:c=2`.
fn without_modifiers(full: &str) -> String {
    let (pmu, event) = full.split_once("::").unwrap_or(("", full));
    let is_said = |part: &&str| {
        part.split_once('=')
            .is_none_or(|(name, value)| !LETTERS.contains(&name) && value.trim_start_matches("0x") != "0")
    };
    let parts: Vec<&str> = event.split(':').filter(is_said).collect();
    let event = parts.join(":");
    if pmu.is_empty() { event } else { format!("{pmu}::{event}") }
}

fn reason(code: c_int) -> String {
    // SAFETY: gives a static string for any number.
    unsafe { text(sys::pfm_strerror(code)) }
}

/// A copy of a C string; empty for null.
///
/// # Safety
/// `text` is null or ends in NUL.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the caller says that it ends in NUL.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The PMUs that libpfm believes to be in this machine; its view of the kernel's generic events is
/// left out, because perf's own names stand for them.
pub fn pmus() -> Vec<PfmPmu> {
    let last = sys::pfm_pmu_t::PFM_PMU_MAX as u32;
    let all = || (1..last).filter_map(pmu).filter(|(pmu, is_present)| *is_present && !pmu.name.starts_with("perf"));
    locked(|| all().map(|(pmu, _)| pmu).collect()).unwrap_or_default()
}

/// A PMU that libpfm has a table for, and whether it believes it to be in this machine.
fn pmu(number: u32) -> Option<(PfmPmu, bool)> {
    // SAFETY: numbers, pointers and enums whose first variant is zero.
    let mut info: sys::pfm_pmu_info_t = unsafe { zeroed() };
    info.size = size_of::<sys::pfm_pmu_info_t>();
    // SAFETY: any number below PFM_PMU_MAX may be asked for; `info` carries its size.
    let code = unsafe { pfm_get_pmu_info(number, &raw mut info) };
    if code != sys::PFM_SUCCESS {
        return None;
    }
    // SAFETY: libpfm's names are static strings.
    let (name, description) = unsafe { (text(info.name), text(info.desc)) };
    let pmu = PfmPmu {
        name,
        description,
        is_core: info.type_ == sys::pfm_pmu_type_t::PFM_PMU_TYPE_CORE,
        first_event: info.first_event,
    };
    Some((pmu, info.__bindgen_anon_1.is_present() != 0))
}

/// The events of a PMU's table, in its order, read one at a time. Models of a family share a table; an event
/// that has umasks on others only isn't one of this model's.
pub fn events(pmu: &PfmPmu) -> impl Iterator<Item = PfmEvent> + use<> {
    let pmu_name = pmu.name.clone();
    let is_here =
        move |event: &PfmEvent| !event.umasks.is_empty() || encode(&format!("{pmu_name}::{}", event.name)).is_ok();
    let first = Some(pmu.first_event).filter(|&first| first >= 0);
    // SAFETY: takes a number, checks it.
    let next = |&index: &c_int| locked(|| unsafe { sys::pfm_get_event_next(index) }).filter(|&next| next >= 0);
    std::iter::successors(first, next).filter_map(|index| locked(|| event(index)).flatten()).filter(is_here)
}

fn event(index: c_int) -> Option<PfmEvent> {
    // SAFETY: numbers, pointers and enums whose first variant is zero.
    let mut info: sys::pfm_event_info_t = unsafe { zeroed() };
    info.size = size_of::<sys::pfm_event_info_t>();
    let os = sys::pfm_os_t::PFM_OS_NONE;
    // SAFETY: libpfm checks the index; `info` carries its size.
    if unsafe { sys::pfm_get_event_info(index, os, &raw mut info) } != sys::PFM_SUCCESS {
        return None;
    }
    // SAFETY: libpfm's names are static strings.
    let (name, description) = unsafe { (text(info.name), text(info.desc)) };
    // The umasks come before the modifiers, and libpfm takes long for each.
    let umasks = (0..info.nattrs).map_while(|attr| umask(index, attr)).collect();
    Some(PfmEvent { name, description, umasks })
}

fn umask(event: c_int, index: c_int) -> Option<Umask> {
    // SAFETY: numbers, pointers, enums whose first variant is zero, and a union of numbers.
    let mut info: sys::pfm_event_attr_info_t = unsafe { zeroed() };
    info.size = size_of::<sys::pfm_event_attr_info_t>();
    let os = sys::pfm_os_t::PFM_OS_NONE;
    // SAFETY: libpfm checks both indexes; `info` carries its size.
    let code = unsafe { sys::pfm_get_event_attr_info(event, index, os, &raw mut info) };
    if code != sys::PFM_SUCCESS || info.type_ != sys::pfm_attr_t::PFM_ATTR_UMASK {
        return None;
    }
    // SAFETY: libpfm's names are static strings.
    let (name, description) = unsafe { (text(info.name), text(info.desc)) };
    Some(Umask { name, description, is_default: info.__bindgen_anon_1.is_dfl() != 0 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail and say why")]
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Variable that makes libpfm play another CPU, on which the generic events don't exist.
    const FORCED: &str = "LIBPFM_FORCE_PMU";

    /// Runs tests of this program again, in a process where libpfm plays the CPU with this PMU or none:
    /// it looks at the CPU once a process.
    fn run_again(tests: &[&str], pmu: Option<&str>) -> Child {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(tests).arg("--test-threads=1").env_remove(FORCED).envs(pmu.map(|pmu| (FORCED, pmu)));
        again.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn passes(child: Child, cpu: &str) {
        let output = child.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.status.success() && !said.contains("0 passed"), "{cpu}: {said}");
    }

    #[test]
    fn a_generic_event_encodes_as_perfs_own() {
        if std::env::var_os(FORCED).is_some() {
            return passes(run_again(&["a_generic_event_encodes_as_perfs_own"], None), "this CPU");
        }
        let event = encode("perf::PERF_COUNT_HW_CPU_CYCLES").unwrap();
        assert_eq!((event.encoding.pmu_type, event.encoding.config), (0, 0));
        assert!(event.modifiers.exclude_guest && !event.modifiers.exclude_user && !event.modifiers.exclude_host);
        let event = encode("perf::page-faults:u").unwrap();
        assert_eq!((event.encoding.pmu_type, event.encoding.config), (1, 2));
        assert!(event.modifiers.exclude_kernel && !event.modifiers.exclude_user);
    }

    #[test]
    fn nonsense_is_an_error_in_words() {
        assert!(!encode("no_such_event").unwrap_err().0.is_empty());
        assert!(encode("").is_err());
        assert!(encode("a\0b").is_err());
        assert!(encode(&"x:".repeat(10_000)).is_err());
    }

    #[test]
    fn what_depends_on_the_cpu_holds_on_every_cpu() {
        if std::env::var_os(FORCED).is_some() {
            return passes(run_again(&["what_depends_on_the_cpu_holds_on_every_cpu"], None), "this CPU");
        }
        let last = sys::pfm_pmu_t::PFM_PMU_MAX as u32;
        let known = locked(|| (1..last).filter_map(pmu).map(|(pmu, _)| pmu).filter(|pmu| pmu.is_core).collect());
        let known: Vec<PfmPmu> = known.unwrap();
        assert!(known.len() > 10, "{} core PMUs", known.len());
        let at_once = std::thread::available_parallelism().map_or(1, usize::from);
        for some in known.chunks(at_once) {
            let start = |pmu: &PfmPmu| (run_again(&["on_this_cpu"], Some(&pmu.name)), pmu.name.clone());
            let running: Vec<_> = some.iter().map(start).collect();
            running.into_iter().for_each(|(child, name)| passes(child, &name));
        }
    }

    #[test]
    fn every_listed_event_is_encoded_on_this_cpu() {
        let Some(pmu) = pmus().into_iter().find(|pmu| pmu.is_core) else {
            println!("skipped: libpfm knows no core PMU of this CPU");
            return;
        };
        let forced = std::env::var(FORCED).unwrap_or(pmu.name.clone());
        assert_eq!(pmu.name, forced, "libpfm plays another CPU than it was told to");
        let events: Vec<PfmEvent> = events(&pmu).collect();
        let pmu = format!("{}::", pmu.name);
        assert!(!events.is_empty() || pmu == "ix86arch::", "{pmu}");
        for event in events {
            assert!(!event.description.is_empty(), "{}", event.name);
            let umask = event.umasks.first().map_or_else(String::new, |umask| format!(":{}", umask.name));
            let event = format!("{}{umask}", event.name);
            let encoded = encode(&format!("{pmu}{event}")).unwrap_or_else(|error| panic!("{pmu}{event}: {}", error.0));
            // An alias stands for another event, which must mean the same.
            let other = format!("{pmu}{}", event.to_lowercase().replace(':', "."));
            // libpfm 4.13 has two codes for these: 2EH/41H and 2EH/01H, 2EH/4FH and 2EH/02H.
            let is_double = pmu.starts_with("snb") && event.starts_with("LLC_");
            for name in [&encoded.canonical, &other].into_iter().skip(is_double.into()) {
                assert!(name.starts_with(&pmu), "{name}");
                assert_eq!(
                    encode(name).map(|event| event.encoding),
                    Ok(encoded.encoding.clone()),
                    "{pmu}{event}, {name}"
                );
            }
        }
    }

    #[test]
    fn modifiers_are_no_part_of_the_canonical_name() {
        assert_eq!(without_modifiers("skl::L1D:REPLACEMENT:k=1:u=1:e=0"), "skl::L1D:REPLACEMENT");
        // Two events of one code and umask, which differ by what the counter does with it.
        assert_eq!(without_modifiers("core::RS_UOPS_DISPATCHED:k=1:e=0:i=1:c=1"), "core::RS_UOPS_DISPATCHED:i=1:c=1");
        assert_eq!(without_modifiers("cycles"), "cycles");
        assert_eq!(without_modifiers(""), "");
    }
}
