"""CPU time and memory of a process, read from /proc (Linux)."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MIB_OF_KIB = 1 / 1024


def cpu_seconds(pid: int) -> float:
    """Read the CPU time of a process and all its threads, in steps of 10 ms; 0 if it has ended."""
    try:
        numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> list[int]:
    """List the ids of the child processes that are running."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def resident_mib(pid: int) -> float:
    """Read the memory that a process holds, shared memory included; 0 if it has ended."""
    return _field(pid, "status", "VmRSS")


def peak_mib(pid: int) -> float:
    """Read the most memory that a process ever held."""
    return _field(pid, "status", "VmHWM")


def proportional_mib(pid: int) -> float:
    """Read the memory of a process; what n processes share counts 1/n, so that sums are right."""
    return _field(pid, "smaps_rollup", "Pss")


def written_mib(pid: int) -> float:
    """Read the memory that a process has written to: what one more worker takes, without files."""
    return _field(pid, "smaps_rollup", "Anonymous")


def _field(pid: int, file: str, name: str) -> float:
    try:
        match = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/{file}").read_text(), re.M)
    except OSError:
        return 0.0
    return round(int(match[1]) * _MIB_OF_KIB, 1) if match else 0.0
