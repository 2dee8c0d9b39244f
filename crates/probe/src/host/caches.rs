//! The caches of the system (`sysfs`, `/sys/devices/system/cpu/cpuN/cache`).

use std::path::Path;

use serde::Serialize;

/// One cache that a processor uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// `L1d`, `L1i`, `L2`, `L3`.
    pub level: String,
    /// Its size; a virtual machine may report more than it has.
    pub size_bytes: u64,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Processors that share it, this one included.
    pub shared_cpus: usize,
}

/// Caches of a processor, nearest first; none where the system does not list them.
#[must_use]
pub fn caches(cpu: usize) -> Vec<Cache> {
    read(Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}/cache")))
}

fn read(folder: &Path) -> Vec<Cache> {
    let mut caches: Vec<Cache> =
        (0..16).map(|index| folder.join(format!("index{index}"))).filter_map(|index| read_cache(&index)).collect();
    caches.sort_by(|read_cache, other| read_cache.level.cmp(&other.level));
    caches
}

fn read_cache(folder: &Path) -> Option<Cache> {
    let field = |name: &str| Some(std::fs::read_to_string(folder.join(name)).ok()?.trim().to_owned());
    let kind = match field("type")?.as_str() {
        "Data" => "d",
        "Instruction" => "i",
        _ => "",
    };
    Some(Cache {
        level: format!("L{}{kind}", field("level")?),
        size_bytes: size_bytes(&field("size")?)?,
        line_bytes: field("coherency_line_size").and_then(|text| text.parse().ok()).unwrap_or(64),
        shared_cpus: field("shared_cpu_list").map_or(1, |list| members(&list)),
    })
}

/// `48K`, `2048K`, `260M`.
fn size_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The number of processors in a list such as `0-3,8`.
fn members(list: &str) -> usize {
    let span = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(to.trim().parse::<usize>().ok()?.checked_sub(from.trim().parse().ok()?)? + 1)
    };
    list.split(',').filter_map(span).sum::<usize>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read_as_the_kernel_writes_them() {
        let folder = std::env::temp_dir().join(format!("routecast-caches-{}", std::process::id()));
        for (index, level, kind, size, cpus) in
            [(0, "1", "Data", "48K", "0"), (1, "1", "Instruction", "32K", "0"), (2, "3", "Unified", "260M", "0-3,8")]
        {
            let index = folder.join(format!("index{index}"));
            std::fs::create_dir_all(&index).unwrap();
            for (name, text) in [
                ("level", level),
                ("type", kind),
                ("size", size),
                ("coherency_line_size", "64"),
                ("shared_cpu_list", cpus),
            ] {
                std::fs::write(index.join(name), format!("{text}\n")).unwrap();
            }
        }
        let caches = read(&folder);
        std::fs::remove_dir_all(&folder).unwrap();
        let facts: Vec<_> = caches.iter().map(|cache| (&*cache.level, cache.size_bytes, cache.shared_cpus)).collect();
        assert_eq!(facts, [("L1d", 48 << 10, 1), ("L1i", 32 << 10, 1), ("L3", 260 << 20, 5)]);
    }

    #[test]
    fn a_system_that_tells_nothing_has_no_known_caches() {
        assert_eq!(read(Path::new("/nowhere")), []);
    }
}
