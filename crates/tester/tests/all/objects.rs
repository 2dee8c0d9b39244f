//! The eBPF programs that the crate embeds: no build needs clang, and they are what clang makes of their sources.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};
use routecast_tester::programs::OBJECTS;

/// What `make bpf` compiled them with; another version may make other instructions of the same sources.
const MADE_WITH: &str = include_str!("../../bpf/objects/clang-version");

/// Each program with its source's name, in the order of the alphabet.
const PROGRAMS: [&str; 10] =
    ["balance", "fault", "forward", "generate", "loss", "member", "pass", "receive", "slow", "watch"];

fn bpf() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf")
}

fn shipped(name: &str) -> Vec<u8> {
    fs::read(bpf().join("objects").join(format!("{name}.bpf.o"))).expect("the object is in the repository")
}

/// An empty folder of this test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("cargo's folder for tests can be written");
    folder
}

fn succeeds(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

/// The meaning of an object, without paths, debug information and names of local symbols: the octets of its sections,
/// its relocations and its maps.
fn meaning(octets: &[u8]) -> BTreeMap<String, String> {
    let file = object::File::parse(octets).expect("an ELF object");
    let mut sections = BTreeMap::from([("endianness".to_owned(), format!("{:?}", file.endianness()))]);
    for section in file.sections() {
        let object::SectionFlags::Elf { sh_flags } = section.flags() else { panic!("not ELF") };
        let name = section.name().expect("a name").to_owned();
        if sh_flags & u64::from(object::elf::SHF_ALLOC) == 0 {
            continue;
        }
        let mut text = format!("{:02x?}\n", section.data().expect("octets"));
        for (at, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { panic!("{name}: not to a symbol") };
            let symbol = file.symbol_by_index(symbol).expect("a symbol");
            let of = symbol.section_index().map(|index| file.section_by_index(index).expect("a section"));
            let of = of.as_ref().map(|section| section.name().expect("a name"));
            let (flags, addend) = (relocation.flags(), relocation.addend());
            writeln!(text, "{at:#x}: {:?} + {:#x} in {of:?}, {flags:?}, {addend}", symbol.name(), symbol.address())
                .expect("memory");
        }
        sections.insert(format!("section {name}"), text);
    }
    for (name, map) in aya_obj::Object::parse(octets).expect("the loader reads it").maps {
        let sizes = (map.map_type(), map.key_size(), map.value_size(), map.max_entries(), map.map_flags());
        sections.insert(format!("map {name}"), format!("{sizes:?}, {:?}, {:02x?}", map.pinning(), map.data()));
    }
    sections
}

/// The names of the parts in which two objects differ.
fn differences(a: &[u8], b: &[u8]) -> Vec<String> {
    let (a, b) = (meaning(a), meaning(b));
    let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).cloned().collect();
    names.into_iter().filter(|name| a.get(name) != b.get(name)).collect()
}

#[test]
fn the_shipped_programs_are_what_clang_makes_of_their_sources() {
    let major = |version: &str| version.split('.').next().unwrap_or_default().trim().to_owned();
    let requested = env::var("ROUTECAST_CLANG").ok().filter(|name| !name.is_empty());
    // Where there are several versions, the one that compiled the shipped programs, under its Debian name.
    let same = format!("clang-{}", major(MADE_WITH));
    let same = Command::new(&same).arg("--version").output().is_ok().then_some(same);
    let clang = requested.or(same).unwrap_or_else(|| "clang".to_owned());
    // Written past the capture of `cargo test`, so that it is visible.
    let skip = |why: &str| {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the eBPF programs are not compared with their sources: {why}");
    };
    let Ok(version) = Command::new(&clang).arg("-dumpversion").output() else {
        return skip(&format!("there is no `{clang}` (Debian: apt install clang libbpf-dev linux-libc-dev)"));
    };
    if !Path::new("/usr/include/bpf/bpf_helpers.h").exists() {
        return skip("there are no headers of libbpf (Debian: apt install libbpf-dev)");
    }
    let version = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let out = folder("compiled");
    succeeds(Command::new("sh").arg(bpf().join("compile")).arg(&clang).arg(&out).arg("bpfel"));
    let differing: Vec<_> = PROGRAMS
        .iter()
        .map(|name| {
            let compiled = fs::read(out.join(format!("{name}.bpf.o"))).expect("just compiled");
            (name, differences(&shipped(name), &compiled))
        })
        .filter(|(_, differences)| !differences.is_empty())
        .collect();
    let is_other = major(&version) != major(MADE_WITH);
    // A developer's clang may have another version; in CI a difference is an error.
    if is_other && !differing.is_empty() && env::var_os("CI").is_none() {
        return skip(&format!("clang {version} makes others than clang {}, which made them", MADE_WITH.trim()));
    }
    assert!(
        differing.is_empty(),
        "the eBPF programs of crates/tester/bpf/objects, made with clang {}, are not what clang {version} makes of \
         crates/tester/bpf: {differing:?}. After a change of the sources, or for another clang, run `make bpf` and commit \
         what it makes",
        MADE_WITH.trim(),
    );
}

#[test]
fn a_changed_instruction_map_or_relocation_is_told() {
    let octets = shipped("receive");
    assert_eq!(differences(&octets, &octets), Vec::<String>::new());
    assert!(differences(&octets, &shipped("generate")).iter().any(|name| name.starts_with("map ")));
    let change = |section: &str, at: usize| {
        let file = object::File::parse(&*octets).expect("an ELF object");
        let (start, _) = file.section_by_name(section).expect("it is there").file_range().expect("in the file");
        let mut changed = octets.clone();
        changed[start as usize + at] ^= 8;
        differences(&octets, &changed)
    };
    assert_eq!(change("xdp", 0), ["section xdp"]);
    // The place of the first relocation.
    assert_eq!(change(".relxdp", 0), ["section xdp"]);
}

#[test]
fn the_shipped_programs_carry_neither_debug_information_nor_paths() {
    for name in PROGRAMS {
        let octets = shipped(name);
        let file = object::File::parse(&*octets).expect("an ELF object");
        let debug = file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug")));
        assert_eq!(debug.count(), 0, "{name}: run `make bpf` where llvm-strip is (Debian: apt install llvm)");
        let text = String::from_utf8_lossy(&octets);
        assert!(!text.contains("/crates/") && !text.contains("/home/") && !text.contains("/tmp/"), "{name}");
    }
}

/// Builds without clang: the build script of this crate, and a program that embeds what it says, with nothing but a
/// linker on PATH.
#[test]
fn a_build_that_finds_no_clang_embeds_all_programs() {
    let folder = folder("without-clang");
    let path = folder.join("path");
    fs::create_dir(&path).expect("a folder");
    for tool in ["cc", "ld", "as", "gcc", "collect2"] {
        if let Some(executable) =
            env::split_paths(&env::var_os("PATH").expect("set")).map(|at| at.join(tool)).find(|at| at.exists())
        {
            std::os::unix::fs::symlink(executable, path.join(tool)).expect("a link");
        }
    }
    assert!(Command::new("clang").env("PATH", &path).output().is_err(), "clang is hidden");
    let rustc = succeeds(Command::new("rustc").args(["--print", "sysroot"]));
    let rustc = Path::new(rustc.trim()).join("bin/rustc");
    let compile = |source: &Path, to: &str| {
        let to = folder.join(to);
        succeeds(Command::new(&rustc).env("PATH", &path).args(["--edition", "2024", "-o"]).arg(&to).arg(source));
        to
    };
    let script = compile(&Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs"), "build-script");
    let warnings = succeeds(
        Command::new(script)
            .env_clear()
            .env("PATH", &path)
            .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
            .env("CARGO_CFG_TARGET_ENDIAN", if cfg!(target_endian = "little") { "little" } else { "big" })
            .env("OUT_DIR", &folder),
    );
    if cfg!(target_endian = "big") {
        assert!(
            warnings.contains("cargo::warning=the eBPF programs of the repository are little-endian"),
            "{warnings}"
        );
        return;
    }
    assert!(!warnings.contains("warning"), "{warnings}");
    let source = folder.join("embeds.rs");
    let text = "include!(\"objects.rs\");\nfn main() { for (name, octets) in OBJECTS { println!(\"{name} {}\", octets.len()); } }";
    fs::write(&source, text).expect("written");
    let mut embedded: Vec<_> =
        succeeds(&mut Command::new(compile(&source, "embeds"))).lines().map(str::to_owned).collect();
    embedded.sort();
    assert_eq!(embedded, PROGRAMS.map(|name| format!("{name} {}", shipped(name).len())));
    // This test binary embeds the same programs, so the tests on a wire run those of such a build.
    if env::var_os("ROUTECAST_CLANG").is_none() {
        assert!(OBJECTS.iter().all(|(name, octets)| *octets == shipped(name)));
    }
}

#[test]
fn what_is_packaged_has_the_programs_in_it() {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let list = succeeds(
        Command::new(cargo).args(["package", "--list", "--allow-dirty", "--offline", "--manifest-path"]).arg(manifest),
    );
    for name in PROGRAMS {
        let object = format!("bpf/objects/{name}.bpf.o");
        assert!(list.lines().any(|line| line == object), "{object} is not in {list}");
    }
}
