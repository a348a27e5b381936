"""Photos a second of `searchlab index` on more and more cores, with an accelerator or without.

    python -m benchmarks.accelerator.bench_indexing  on cuda, xpu or mps, whichever torch has
    python -m benchmarks.accelerator.bench_indexing --device cpu  without one
    python -m benchmarks.accelerator.bench_indexing --smoke --out "$(mktemp -d)"

Writes results/indexing/<dataset>/<device>.json and a chart. `threads` and `processes` are the step
that embeds photos, as `searchlab index` does it: read, check, decode, colours, palette, blur hash,
small picture, vector, and all of it kept on disk, with as many of either as cores; it chooses
between them by their number. `open_clip` is a DataLoader with a worker a core and its own
transform, which gives vectors alone. Both read JPEGs of 1920 x 1280 from the page cache and have
the same model, with random weights, as trained ones are as fast. Each number of cores has processes
of its own that are bound to so many, and --photos a core, so that all take about as long. The first
of --runs loads libraries and kernels; of three or more it is not the median.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, set_start_method
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.accelerator.devices import choose_device, device_name
from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.embedding.pictures import draw_pictures
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.charts import COLORS, chart, save_chart
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path

BENCHMARK = "indexing"
THREADS, PROCESSES, PEER = "threads", "processes", "open_clip"
LEAST = 208  # photos: with fewer, indexing would not load its faster way to resize
DRAWN = 32  # pictures that are drawn; the others are the same ones with other bytes at their end


def time_alone(way: str, spec: str, n_cores: int, job: Mapping[str, Any]) -> dict[str, Any]:
    """Time one way in a process that is bound to so many cores from its start; returns a row."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:n_cores])
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            figures = pool.submit(time_here, way, spec, n_cores, job).result()
    finally:
        os.sched_setaffinity(0, allowed)
    return {"model": spec, "way": way, "cores": n_cores, **figures}


def time_here(way: str, spec: str, n_cores: int, job: Mapping[str, Any]) -> dict[str, float]:
    """Time one way in this process."""
    from benchmarks.embedding.worker import limit_onnxruntime
    from searchlab.models import load_model
    from searchlab.models.devices import ENVIRONMENT

    set_start_method("fork", force=True)  # of the loader's workers, as in a script of its own
    limit_onnxruntime(n_cores)
    os.environ[ENVIRONMENT] = job["device"]
    files = {digest: Path(file) for digest, file in job["files"].items()}
    files = dict(list(files.items())[: max(job["least"], n_cores * job["photos"])])
    model = load_model(spec)
    if way == PEER:
        work = _loop_of_open_clip(files, model, n_cores)
    else:
        work = _embedding_step(files, model, n_cores, in_processes=way == PROCESSES)
    walls, cpus = [], []
    for _ in range(job["runs"]):
        started, used = time.perf_counter(), _cpu_s()
        work()
        walls.append(time.perf_counter() - started)
        cpus.append(_cpu_s() - used)
    wall_s, cpu_s = statistics.median(walls), statistics.median(cpus)
    return {
        "per_s": round(len(files) / wall_s, 2),
        "cpu_ms": round(1e3 * cpu_s / len(files), 3),
        "busy": round(cpu_s / wall_s / n_cores, 3),
    }


def _embedding_step(
    files: Mapping[str, Path], model: Any, n_cores: int, *, in_processes: bool
) -> Callable[[], None]:
    from searchlab.library.cache import ContentCache
    from searchlab.library.embed import embed_pictures
    from searchlab.progress import Progress

    def embed() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            ContentCache(Path(folder, "cache.db")) as kept,
        ):
            small = Path(folder, "small")
            refused = embed_pictures(
                files,
                [model],
                kept,
                small,
                Progress(),
                threads=n_cores,
                in_processes=in_processes,
            )
            assert not refused, refused

    return embed


def _loop_of_open_clip(files: Mapping[str, Path], model: Any, n_cores: int) -> Callable[[], None]:
    from benchmarks.accelerator.loops import embed_by_loader
    from searchlab.models.openclip.weights import import_open_clip

    transform = import_open_clip().image_transform(model.module.visual.image_size, is_train=False)
    paths = list(files.values())
    return lambda: embed_by_loader(model, paths, transform, workers=n_cores)


def _cpu_s() -> float:
    used = os.times()  # with processes that have ended, such as the loader's workers
    return used.user + used.system + used.children_user + used.children_system


def list_cores(most: int) -> list[int]:
    """List 1, 4, 16, ... and the number of cores itself."""
    return sorted({most, *(4**power for power in range(most.bit_length()) if 4**power < most)})


def list_ways(n_cores: int, clip: str) -> list[tuple[str, str]]:
    """List ways and models; one process alone would only have its start to show."""
    ways = (THREADS, PROCESSES) if n_cores > 1 else (THREADS,)
    return [*((way, spec) for spec in ("mini", clip) for way in ways), (PEER, clip)]


def make_files(folder: Path, n: int, *, width: int, height: int, seed: int) -> dict[str, str]:
    """Write n pictures, no two with the same bytes; digest -> file."""
    drawn = draw_pictures(folder, min(n, DRAWN), width=width, height=height, seed=seed)
    contents = [file.read_bytes() for file in drawn]
    files = {}
    for number in range(n):
        content = contents[number % len(contents)] + number.to_bytes(4, "big")
        file = folder / f"photo-{number}.jpg"
        file.write_bytes(content)
        files[hashlib.sha256(content).hexdigest()] = str(file)
    return files


def draw(rows: Sequence[Mapping[str, Any]], device: str, path: Path) -> list[Path]:
    """Draw photos a second by cores; dotted lines are as many times one core's."""
    with chart(8, 4.5) as (figure, axes):
        ways = list(dict.fromkeys((row["model"], row["way"]) for row in rows))
        for number, (model, way) in enumerate(ways):
            points = [
                (row["cores"], row["per_s"])
                for row in rows
                if (row["model"], row["way"]) == (model, way)
            ]
            cores, per_s = zip(*points, strict=True)
            axes.plot(cores, per_s, marker="o", color=COLORS[number], label=f"{model}, {way}")
            ideal = [per_s[0] * n / cores[0] for n in cores]
            axes.plot(cores, ideal, color=COLORS[number], linestyle=":", linewidth=1)
        axes.set_xlabel("cores")
        axes.set_ylabel("photos a second")
        axes.set_title(f"Indexing JPEGs of 1920 x 1280 on {device}", loc="left")
        figure.legend(loc="outside lower center", ncols=2)
        return save_chart(figure, path)


def main() -> None:
    """Time every number of cores."""
    parser = bench_parser(__doc__, dataset="drawn", datasets=("drawn",))
    parser.set_defaults(runs=3, threads=len(os.sched_getaffinity(0)))
    parser.add_argument("--device", default="auto", help="torch device; auto for an accelerator")
    parser.add_argument("--clip", default="openclip:ViT-B-32/random-7:bf16", help="open_clip model")
    parser.add_argument(
        "--cores", type=int, nargs="+", help="numbers of cores; 1, 4, 16... if left out"
    )
    parser.add_argument("--photos", type=int, default=96, help="photos for each core")
    options = parser.parse_args()
    if not all(1 <= n_cores <= options.threads for n_cores in options.cores or ()):
        parser.error(f"--cores must be 1 to {options.threads} each, got {options.cores}")
    size = (1920, 1280)
    if options.smoke:
        options.device, options.threads, options.runs, options.photos = "cpu", 1, 1, 2
        options.clip, size = "openclip:ViT-S-32/random-7", (480, 320)
    options.device = choose_device(parser, options.device)
    name = options.device.replace(":", "-")
    if on_record(options, BENCHMARK, name) is not None:
        return
    progress = ConsoleProgress(Console(stderr=True))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        least = 1 if options.smoke else LEAST
        n_photos = max(least, options.threads * options.photos)
        files = make_files(Path(folder), n_photos, width=size[0], height=size[1], seed=options.seed)
        job = {
            "device": options.device,
            "photos": options.photos,
            "least": least,
            "runs": options.runs,
            "files": files,
        }
        todo = [
            (way, spec, n_cores)
            for n_cores in options.cores or list_cores(options.threads)
            for way, spec in list_ways(n_cores, options.clip)
        ]
        if options.smoke:
            todo = [(PROCESSES, "mini", 1), (PEER, options.clip, 1)]
        with progress.step("timing", len(todo), unit="timings") as step:
            for way, spec, n_cores in todo:
                step.note(f"{spec}, {way}, {n_cores} cores")
                row = time_alone(way, spec, n_cores, job)
                print(
                    f"{spec:<36}{way:<12}{n_cores:>3} cores{row['per_s']:>10.1f} photos/s"
                    f"{row['cpu_ms']:>9.2f} CPU ms{row['busy']:>7.0%} busy",
                    flush=True,
                )
                rows.append(row)
                step.advance(1)
    place = measurement_path(options.out, BENCHMARK, options.dataset, name)
    device = device_name(options.device)
    values = {
        "parameters": {"device": device, "photos": options.photos, "width": size[0]},
        "metrics": {
            f"{row['model']}.{row['way']}.c{row['cores']}.{figure}": row[figure]
            for row in rows
            for figure in ("per_s", "cpu_ms", "busy")
        },
        "rows": rows,
        "manifest": make_manifest(
            BENCHMARK,
            seed=options.seed,
            threads=options.threads,
            packages=["torch", "open_clip_torch"],
        ),
    }
    record(options, BENCHMARK, name, values, beside=draw(rows, device, place.with_name(name)))


if __name__ == "__main__":
    main()
