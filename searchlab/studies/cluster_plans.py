"""Plans: what a library of a size that nobody measured would take, by the records of smaller ones.

Memory, disk and the work of building and embedding grow with the photos; the time of a search grows
with their square root, as `results/scale` has it. What asking several machines adds is read from
the record of `benchmarks/cluster/bench_shards.py`, where there is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.reporting.lookup import Results, pick

OURS: Final = "searchlab-clustered"
_ASKING: Final = "shards/spliced-1M/costs.json"
_GB: Final = 1e9
_MIB: Final = 2**20


@dataclass(frozen=True)
class Machine:
    """A machine that is rented by the hour.

    Attributes:
        cores: Processors.
        memory_gb: GB of memory.
        price: Of an hour, in any currency.
        usable: Share of the memory that vectors may take; the rest is for everything else.
    """

    cores: int
    memory_gb: float
    price: float
    usable: float = 0.75


@dataclass(frozen=True)
class MeasuredMachine:
    """What one machine took, from its records.

    Attributes:
        n_photos: Photos of the largest library that was measured.
        dim: Components of a vector.
        memory_mib: Codes and centres, which must be in memory.
        rows_mib: Rows, which are mapped and read a little at a time.
        stored_mib: All files.
        build_cpu_s: Processor seconds to build the index.
        image_ms: Median milliseconds of a search by a photo.
        text_ms: Median milliseconds of a search by words.
        embed_cpu_ms: Processor milliseconds to decode and embed a photo.
        embedded_per_core_s: Photos that a processor embeds a second while the others do so too.
    """

    n_photos: int
    dim: int
    memory_mib: float
    rows_mib: float
    stored_mib: float
    build_cpu_s: float
    image_ms: float
    text_ms: float
    embed_cpu_ms: float
    embedded_per_core_s: float


def read_measured(results: Results, dim: int, *, pictures: str = "1920 px") -> MeasuredMachine:
    """Read what one machine took, of the largest library of made vectors that is on record.

    Args:
        results: The folder of results.
        dim: Components of a vector, 256 or 512.
        pictures: Size of the pictures that are embedded, as `results/embedding` names it.

    Raises:
        InputError: There is no such record.
    """
    scale = results.values(results.file(f"scale/scenes-{dim}/summary.json"))
    rows = [row for row in scale["rows"] if row["system"] == OURS]
    largest = max(rows, key=lambda row: int(row["n_photos"]))
    embedding = results.values(results.file("embedding/photos/mini.json"))["metrics"]
    busy = f"photo.{pictures}.b8.c2"  # both processors of the record's machine
    return MeasuredMachine(
        n_photos=int(largest["n_photos"]),
        dim=dim,
        memory_mib=float(largest["memory_mib"]),
        rows_mib=float(largest["rows_mib"]),
        stored_mib=float(largest["stored_mib"]),
        build_cpu_s=float(largest["build_cpu_s"]),
        image_ms=float(largest["p50_ms image none"]),
        text_ms=float(largest["p50_ms text none"]),
        embed_cpu_ms=float(pick(embedding, f"{busy}.cpu_ms")),
        embedded_per_core_s=float(pick(embedding, f"{busy}.per_s")) / 2,
    )


def read_asking_ms(results: Results) -> dict[int, float]:
    """Read how many milliseconds it adds to ask actors, by the number of shards.

    These are upper bounds: the record's machine had fewer processors than the most shards.

    Raises:
        NotFoundError: Asking is not on record yet.
    """
    files = results.files(_ASKING)
    metrics: dict[str, Any] = results.values(files[0])["metrics"] if files else {}
    asked = {
        int(name.removeprefix("actors, ").removesuffix(".p50_ms")): float(ms)
        for name, ms in metrics.items()
        if name.startswith("actors, ") and name.endswith(".p50_ms")
    }
    if not asked:
        msg = (
            f"what asking shards costs must be on record, got no {_ASKING} with actors; "
            "python -m benchmarks.cluster.bench_shards --dataset spliced-1M"
        )
        raise NotFoundError(msg)
    return {n: max(0.0, ms - float(metrics["whole.p50_ms"])) for n, ms in sorted(asked.items())}


def plan_cluster(
    n_photos: float,
    measured: MeasuredMachine,
    machine: Machine,
    *,
    replicas: int = 1,
    hours: float = 730,
) -> dict[str, float]:
    """Plan a cluster that keeps all codes in memory.

    Args:
        n_photos: Photos of the library.
        measured: What one machine took.
        machine: What is rented.
        replicas: Machines that hold each part.
        hours: That it serves, 730 a month.

    Returns:
        GB of codes, rows and files; shards, and machines with replicas; processor hours to embed
        and to build; machine hours to embed on those machines' processors; prices to make it and to
        serve it for these hours; photos of a shard.

    Raises:
        InputError: A number is not above 0.
    """
    if min(n_photos, replicas, hours, machine.cores, machine.memory_gb, machine.usable) <= 0:
        msg = f"numbers of a plan must be above 0, got {n_photos}, {replicas}, {hours}, {machine}"
        raise InputError(msg)
    times = n_photos / measured.n_photos
    codes_gb = times * measured.memory_mib * _MIB / _GB
    shards = math.ceil(codes_gb / (machine.usable * machine.memory_gb))
    build_cpu_h = times * measured.build_cpu_s / 3600
    embed_machine_h = n_photos / (measured.embedded_per_core_s * machine.cores) / 3600
    make_h = embed_machine_h + build_cpu_h / machine.cores
    return {
        "codes_gb": codes_gb,
        "rows_gb": times * measured.rows_mib * _MIB / _GB,
        "files_gb": times * measured.stored_mib * _MIB / _GB,
        "shards": shards,
        "machines": shards * replicas,
        "embed_cpu_h": n_photos * measured.embed_cpu_ms / 1000 / 3600,
        "embed_machine_h": embed_machine_h,
        "build_cpu_h": build_cpu_h,
        "make_price": make_h * machine.price,
        "serve_price": shards * replicas * hours * machine.price,
        "photos_per_shard": n_photos / shards,
    }


def forecast_ms(
    n_photos: float, measured_ms: float, measured: MeasuredMachine, *, shards: int
) -> float:
    """Forecast the median milliseconds of a search, each shard on a machine of its own.

    Args:
        n_photos: Photos of the library.
        measured_ms: `image_ms` or `text_ms` of `measured`.
        measured: What one machine took.
        shards: Equal parts; what asking them adds is not in it.

    Raises:
        InputError: There is no shard.
    """
    if shards < 1:
        msg = f"a library must have at least 1 shard, got {shards}"
        raise InputError(msg)
    return measured_ms * math.sqrt(n_photos / shards / measured.n_photos)
