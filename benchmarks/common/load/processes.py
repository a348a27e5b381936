"""What a process costs, from the system's accounts (Linux)."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MIB_OF_KIB = 1 / 1024


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all its threads, in steps of 10 ms; 0 where it has gone."""
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> list[int]:
    """Process ids of the children that live."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def resident_mib(pid: int) -> float:
    """Memory that a process holds, what it shares with others included; 0 where it has gone."""
    return _field(pid, "status", "VmRSS")


def peak_mib(pid: int) -> float:
    """The most memory that it ever held."""
    return _field(pid, "status", "VmHWM")


def proportional_mib(pid: int) -> float:
    """Memory with what n processes share counted as 1/n: the sum over processes is the truth."""
    return _field(pid, "smaps_rollup", "Pss")


def written_mib(pid: int) -> float:
    """Memory that a process has written to: what one more worker takes, however large the files."""
    return _field(pid, "smaps_rollup", "Anonymous")


def _field(pid: int, file: str, name: str) -> float:
    try:
        match = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/{file}").read_text(), re.M)
    except OSError:
        return 0.0
    return round(int(match[1]) * _MIB_OF_KIB, 1) if match else 0.0
