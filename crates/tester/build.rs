//! Embeds the eBPF programs: those of `bpf/objects`, which `make bpf` compiled, so that no build needs clang.
//!
//! If `ROUTECAST_CLANG` names a clang, this script compiles them with it instead. A big-endian machine needs that: the
//! programs of `bpf/objects` are little-endian, and a build without others has no programs and reports so when it runs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Each is `bpf/NAME.bpf.c`.
const PROGRAMS: [&str; 10] =
    ["receive", "generate", "pass", "slow", "forward", "fault", "balance", "member", "loss", "watch"];

fn compile(clang: &str, target: &str, recipe: &Path, out: &Path) {
    let done = Command::new("sh").arg(recipe).arg(clang).arg(out).arg(target).output();
    let done = done.unwrap_or_else(|error| panic!("{}: {error}", recipe.display()));
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "ROUTECAST_CLANG = {clang:?} does not compile the eBPF programs (Debian: apt install clang libbpf-dev \
         linux-libc-dev); without that variable those of the repository are taken:\n{errors}"
    );
}

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ROUTECAST_CLANG");
    let bpf = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("bpf");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let is_little = env::var("CARGO_CFG_TARGET_ENDIAN").expect("cargo sets it") == "little";
    let clang = env::var("ROUTECAST_CLANG").ok().filter(|clang| !clang.is_empty());
    let folder = if let Some(clang) = &clang {
        compile(clang, if is_little { "bpfel" } else { "bpfeb" }, &bpf.join("compile"), &out);
        Some(out.clone())
    } else if is_little {
        Some(bpf.join("objects"))
    } else {
        println!("cargo::warning=the eBPF programs of the repository are little-endian: set ROUTECAST_CLANG=clang");
        None
    };
    let mut text = String::from("/// Name and object of each program.\npub const OBJECTS: &[(&str, &[u8])] = &[\n");
    for (name, folder) in PROGRAMS.iter().zip(folder.iter().cycle()) {
        let object = folder.join(format!("{name}.bpf.o")).display().to_string();
        writeln!(text, "    ({name:?}, include_bytes!({object:?})),").expect("memory");
    }
    text.push_str("];\n");
    fs::write(out.join("objects.rs"), text).expect("OUT_DIR can be written");
}
