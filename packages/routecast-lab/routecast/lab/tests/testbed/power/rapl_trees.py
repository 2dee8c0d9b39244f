"""Trees of sysfs as machines of different kinds show them.

The layout is that of Documentation/power/powercap/powercap.rst and Documentation/ABI/testing/sysfs-class-powercap of
Linux; names of zones are those of drivers/powercap/intel_rapl_common.c (``rapl_domain_names``, ``package-%d``). Every
zone, of whatever depth, has a folder ``intel-rapl:0:1`` right below ``/sys/class/powercap``. psys stands beside the
packages, as ``intel-rapl/intel-rapl:1`` does in the message of commit bdc275ee9ce3 (cpupower: powercap-info).

Ranges follow from the driver: an energy unit of 2^-14 J is kept as 61,035 in billionths of a joule, one of 2^-16 J as
15,258, and the range is (2^32 − 1) · unit / 1000: 262,143,328,850 and 65,532,610,987 uJ. Haswell servers' memory has
15.3 uJ (``dram_domain_energy_unit``): 65,712,999,613 uJ.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

INTEL_RANGE_UJ = 262_143_328_850
DRAM_RANGE_UJ = 65_712_999_613
AMD_RANGE_UJ = 65_532_610_987

Tree = Mapping[str, tuple[str, int]]

CLIENT: Tree = {
    "intel-rapl:0": ("package-0", INTEL_RANGE_UJ),
    "intel-rapl:0:0": ("core", INTEL_RANGE_UJ),
    "intel-rapl:0:1": ("uncore", INTEL_RANGE_UJ),
    "intel-rapl:1": ("psys", INTEL_RANGE_UJ),
}
"""A laptop: the platform contains the package, the package contains its cores and its graphics."""

CLIENT_MMIO: Tree = {**CLIENT, "intel-rapl-mmio:0": ("package-0", INTEL_RANGE_UJ)}
"""The same, whose package is shown over memory-mapped registers as well."""

SERVER: Tree = {
    "intel-rapl:0": ("package-0", INTEL_RANGE_UJ),
    "intel-rapl:0:0": ("dram", DRAM_RANGE_UJ),
    "intel-rapl:1": ("package-1", INTEL_RANGE_UJ),
    "intel-rapl:1:0": ("dram", DRAM_RANGE_UJ),
}
"""Two sockets with memory of their own, which is no part of the package's figure."""

AMD: Tree = {"intel-rapl:0": ("package-0", AMD_RANGE_UJ), "intel-rapl:0:0": ("core", AMD_RANGE_UJ)}
"""One socket of AMD: the same driver, the same names."""


def write_tree(root: Path, tree: Tree, energy_uj: Mapping[str, int] | int = 0) -> Path:
    """Write a tree below ``root/sys/class/powercap``; ``energy_uj`` by folder, or for all."""
    powercap = root / "sys/class/powercap"
    (powercap / "intel-rapl").mkdir(parents=True, exist_ok=True)  # the control type is a folder there too
    (powercap / "intel-rapl" / "enabled").write_text("1\n")
    for folder, (name, range_uj) in tree.items():
        zone = powercap / folder
        zone.mkdir()
        (zone / "name").write_text(f"{name}\n")
        (zone / "max_energy_range_uj").write_text(f"{range_uj}\n")
        (zone / "enabled").write_text("1\n")
        value = energy_uj if isinstance(energy_uj, int) else energy_uj.get(folder, 0)
        (zone / "energy_uj").write_text(f"{value}\n")
    return root


def advance(root: Path, energy_uj: Mapping[str, int]) -> None:
    """Raise counters by microjoules; a counter wraps at the end of its range."""
    for folder, more in energy_uj.items():
        zone = root / "sys/class/powercap" / folder
        range_uj = int((zone / "max_energy_range_uj").read_text())
        value = int((zone / "energy_uj").read_text()) + more
        step = range_uj / (2**32 - 1)
        (zone / "energy_uj").write_text(f"{int(value - (range_uj + step)) if value > range_uj else value}\n")
