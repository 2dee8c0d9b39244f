//! Compiles the eBPF programs of `bpf/` with clang and embeds them; without clang or the headers of libbpf the crate
//! still builds and says so when a tester is opened.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Each is `bpf/NAME.bpf.c`.
const PROGRAMS: [&str; 6] = ["receive", "generate", "pass", "slow", "forward", "fault"];

/// Where Debian keeps the headers of an architecture (`asm/types.h`).
fn headers_of_the_architecture() -> Option<PathBuf> {
    let asked = Command::new("clang").arg("-print-multiarch").output().ok();
    let asked = asked.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    [asked.unwrap_or_default(), format!("{arch}-linux-gnu")]
        .iter()
        .filter(|name| !name.is_empty())
        .map(|name| Path::new("/usr/include").join(name))
        .find(|folder| folder.is_dir())
}

fn compile(name: &str, folder: &Path, out: &Path) -> Result<PathBuf, String> {
    let source = folder.join(format!("{name}.bpf.c"));
    let object = out.join(format!("{name}.bpf.o"));
    let mut clang = Command::new(env::var("ROUTECAST_CLANG").unwrap_or_else(|_| "clang".to_owned()));
    clang.args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"]);
    // Paths of the machine that builds have no business in what is built.
    clang.arg(format!("-fdebug-prefix-map={}=.", folder.display()));
    if let Some(headers) = headers_of_the_architecture() {
        clang.arg("-I").arg(headers);
    }
    clang.arg("-c").arg(&source).arg("-o").arg(&object);
    match clang.output() {
        Ok(output) if output.status.success() => Ok(object),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Err(error) => Err(format!("clang: {error}")),
    }
}

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ROUTECAST_CLANG");
    let folder = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("bpf");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let mut text = String::from("/// Name and object of each program.\npub const OBJECTS: &[(&str, &[u8])] = &[\n");
    for name in PROGRAMS {
        match compile(name, &folder, &out) {
            Ok(object) => {
                writeln!(text, "    ({name:?}, include_bytes!({:?})),", object.display().to_string()).expect("memory");
            }
            Err(why) => println!("cargo::warning=no eBPF program `{name}`: {}", why.replace('\n', " | ")),
        }
    }
    text.push_str("];\n");
    fs::write(out.join("objects.rs"), text).expect("OUT_DIR can be written");
}
