"""Time one model on so many cores, in a process of its own, so that its memory peak is its own.

    python -m benchmarks.embedding.worker JOB.json

The job has `model`, `cores`, `runs`, `pictures` (name -> files), `texts`, `image_batches` and
`text_batches`; the rows go to standard output as JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

IMAGE_STAGES = ("read", "decode", "preprocess", "model")
TEXT_STAGES = ("tokenise", "model")


def main() -> None:
    """Read the job, measure, print."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # First of all, as numpy and others count the CPUs that they may use when they are imported.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job["cores"]])
    print(json.dumps(measure(job)))


def measure(job: Mapping[str, Any]) -> dict[str, Any]:
    """Measure pictures and texts; returns rows with the milliseconds of one picture or text."""
    from benchmarks.common.load.processes import peak_mib
    from benchmarks.embedding.limits import LIMITS, measure_limits
    from benchmarks.embedding.stages import Watch, load_pipeline

    if job["model"] == LIMITS:
        return measure_limits(batch=job["batch"], runs=job["runs"])
    limit_onnxruntime(job["cores"])
    watch = Watch()
    pipeline = load_pipeline(job["model"], watch)
    labels = {"model": job["name"], "cores": job["cores"]}
    images, texts = [], []
    if pipeline.embed_images is not None:
        for pictures, files in job["pictures"].items():
            paths = [Path(file) for file in files]
            for batch in job["image_batches"]:
                row = _time(
                    watch,
                    lambda paths=paths, batch=batch: _embed_files(paths, batch, pipeline, watch),
                    IMAGE_STAGES,
                    len(paths),
                    job["runs"],
                )
                images.append({**labels, "pictures": pictures, "batch": batch, **row})
    if pipeline.embed_texts is not None:
        for batch in job["text_batches"]:
            row = _time(
                watch,
                lambda batch=batch: _embed_texts(job["texts"], batch, pipeline, watch),
                TEXT_STAGES,
                len(job["texts"]),
                job["runs"],
            )
            texts.append({**labels, "batch": batch, **row})
    answer = {"images": images, "texts": texts, "models": _describe_models(job)}
    if pipeline.embed_cached is not None:
        answer["cached_text_us"] = _cached_us(pipeline.embed_cached, job["texts"])
    return answer | {"peak_mib": peak_mib(os.getpid())}


def _cached_us(embed_cached: Callable[[str], Any], texts: Sequence[str]) -> float:
    for text in texts:
        embed_cached(text)
    times = []
    for text in list(texts) * 50:
        started = time.perf_counter()
        embed_cached(text)
        times.append(time.perf_counter() - started)
    return round(1e6 * statistics.median(times), 3)


def _describe_models(job: Mapping[str, Any]) -> list[dict[str, str]]:
    from benchmarks.embedding.stages import ANALYSIS, EAGER
    from searchlab.evaluation.provenance.manifest import models_of

    if job["model"] in {ANALYSIS, EAGER}:
        return []
    # An export lies in a temporary folder, so its spec is replaced by the model's name.
    models = models_of(job["model"])
    return [one | {"spec": job["name"]} if len(models) == 1 else one for one in models]


def limit_onnxruntime(threads: int) -> None:
    """Make every onnxruntime session of this process compute on so many threads.

    By default, a session starts a thread for each core of the machine and binds it to that core,
    whatever cores the process may use.
    """
    import onnxruntime

    original = onnxruntime.InferenceSession

    def make_session(path: Any, options: Any, **others: Any) -> Any:
        options.intra_op_num_threads = threads
        return original(path, options, **others)

    onnxruntime.InferenceSession = make_session


def _time(
    watch: Any, work: Callable[[], None], stages: Sequence[str], n: int, runs: int
) -> dict[str, float]:
    work()  # not timed: files and towers are read and checked the first time
    walls, cpus = [], []
    for _ in range(runs):
        watch.reset()
        work()
        walls.append({name: 1e3 * watch.wall[name] / n for name in stages})
        cpus.append({name: 1e3 * watch.cpu[name] / n for name in stages})
    ms = statistics.median(sum(one.values()) for one in walls)
    row = {"per_s": round(1e3 / ms, 2), "ms": round(ms, 4)}
    row["cpu_ms"] = round(statistics.median(sum(one.values()) for one in cpus), 4)
    for name in stages:
        row[f"{name}_ms"] = round(statistics.median(one[name] for one in cpus), 4)
    return row


def _embed_files(paths: Sequence[Path], batch: int, pipeline: Any, watch: Any) -> None:
    for part in _parts(paths, batch):
        with watch.stage("read"):
            contents = [path.read_bytes() for path in part]
        with watch.stage("decode"):
            pictures = [pipeline.decode(content) for content in contents]
        with watch.stage("preprocess"):
            ready = [pipeline.prepare(picture) for picture in pictures]
        with watch.stage("model"):
            pipeline.embed_images(ready)


def _embed_texts(texts: Sequence[str], batch: int, pipeline: Any, watch: Any) -> None:
    for part in _parts(texts, batch):
        with watch.stage("model"):
            pipeline.embed_texts(part)


def _parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


if __name__ == "__main__":
    main()
