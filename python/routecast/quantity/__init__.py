"""Text <-> numbers with units, at the edge only.

Inside the package every number is in base units and its name says which (``_pps``, ``_s``, ``_bytes``). Files and
command lines carry texts; this room turns them into numbers, and numbers into texts for screens.
"""

from routecast.quantity.format import (
    format_bps,
    format_bytes,
    format_duration,
    format_energy,
    format_frequency,
    format_power,
    format_pps,
    format_ratio,
)
from routecast.quantity.parse import (
    MAX_FRAME_BYTES,
    MIN_FRAME_BYTES,
    parse_bit_energy_j,
    parse_bit_rate_bps,
    parse_byte_rate_bytes_per_s,
    parse_cost,
    parse_cost_per_byte,
    parse_cycles,
    parse_duration_s,
    parse_energy_j,
    parse_frame_bytes,
    parse_frames,
    parse_frequency_hz,
    parse_packet_energy_j,
    parse_power_term_w,
    parse_power_w,
    parse_rate_pps,
    parse_size_bytes,
    parse_transfer_rate_per_s,
    parse_voltage_v,
)

__all__ = [
    "MAX_FRAME_BYTES",
    "MIN_FRAME_BYTES",
    "format_bps",
    "format_bytes",
    "format_duration",
    "format_energy",
    "format_frequency",
    "format_power",
    "format_pps",
    "format_ratio",
    "parse_bit_energy_j",
    "parse_bit_rate_bps",
    "parse_byte_rate_bytes_per_s",
    "parse_cost",
    "parse_cost_per_byte",
    "parse_cycles",
    "parse_duration_s",
    "parse_energy_j",
    "parse_frame_bytes",
    "parse_frames",
    "parse_frequency_hz",
    "parse_packet_energy_j",
    "parse_power_term_w",
    "parse_power_w",
    "parse_rate_pps",
    "parse_size_bytes",
    "parse_transfer_rate_per_s",
    "parse_voltage_v",
]
