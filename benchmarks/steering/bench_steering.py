"""What `text_alpha` does to an image query, from 0 to 10, and where its default should lie.

    python -m benchmarks.steering.bench_steering
    SEARCHLAB_DATASETS=... python -m benchmarks.steering.bench_steering --dataset flickr8k
    python -m benchmarks.steering.bench_steering --mixing standardised
    python -m benchmarks.steering.bench_steering --smoke --out "$(mktemp -d)"

Queries are a photo together with words that do not describe it. Writes
results/steering/<dataset>/<model>.json, with another mixing than the sum <model>-<mixing>.json: how
much of the photo's look results keep and how far they follow the words, at every weight, by
language, for other ways to mix, and for words that do describe the photo; beside the sum, with the
differences; and charts.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.config import MIXINGS, USUAL, Config
from searchlab.evaluation.charts import chart, save_chart
from searchlab.evaluation.datasets.dataset_library import dataset_library
from searchlab.evaluation.provenance.manifest import data_hashes, make_manifest, models_of
from searchlab.models import load_model
from searchlab.search.queries import DEFAULT_TEXT_ALPHA
from searchlab.studies.query_sets import QuerySet
from searchlab.studies.steering.charts import draw_agreeing, draw_steering
from searchlab.studies.steering.conflicts import ALPHAS
from searchlab.studies.steering.study import engines_of, measure

BENCHMARK = "steering"


def main() -> None:
    """Measure and write, unless it is on record."""
    parser = bench_parser(__doc__, dataset="demo", datasets=("demo", "flickr8k"))
    parser.add_argument("--model", default=Config().model, help="as `load_model` reads it")
    parser.add_argument("--mixing", choices=MIXINGS, default="sum", help="see `Config.mixing`")
    parser.add_argument("--least", type=int, default=60, help="queries that a language must have")
    parser.add_argument("--most", type=int, help="queries of a language (60, of flickr8k 300)")
    parser.add_argument("--samples", type=int, default=1000, help="resamples of the intervals")
    parser.add_argument("--data", type=Path, help="folder to keep libraries in")
    options = parser.parse_args()
    options.most = options.most or (60 if options.dataset == "demo" else 300)
    alphas: Sequence[float] = ALPHAS
    if options.smoke:
        options.most, options.samples = 2, 50
        alphas = (ALPHAS[0], DEFAULT_TEXT_ALPHA, ALPHAS[-1])
    name = re.sub(r"[^a-z0-9.]+", "-", options.model.lower())
    usual = USUAL if options.mixing == USUAL.mixing else Config(mixing=options.mixing)
    if options.mixing != "sum":
        name += f"-{options.mixing}"
    if on_record(options, BENCHMARK, name) is not None:
        return
    query_set = QuerySet.load(
        options.dataset, least=options.least, most=options.most, seed=options.seed
    )
    if options.smoke and query_set.steered:
        few = query_set.steered.sample(query_set.steered.languages, options.most, options.seed)
        query_set = replace(query_set, steered=few)
    config = Config(model=options.model, mixing=usual.mixing, steering=usual.steering)
    config = config.with_model_id(load_model(options.model).model_id)
    with tempfile.TemporaryDirectory() as scratch:
        library = dataset_library(
            query_set.text,
            options.data or Path(scratch),
            config=config,
            progress=ConsoleProgress(Console(stderr=True)),
        )
        engine, plain = engines_of(library, query_set, config)
        measured = measure(
            engine,
            query_set,
            plain=plain,
            alphas=alphas,
            samples=options.samples,
            seed=options.seed,
        )
    place = options.out / BENCHMARK / options.dataset / name
    with chart(11, 4.2, columns=2) as (figure, (left, right)):
        draw_steering(left, measured["curve"], title="Words that do not describe the photo")
        draw_agreeing(right, measured["agreeing"], title="Words that describe the photo, too")
        figure.suptitle(f"A photo steered by words: {options.model} on {options.dataset}")
        beside = save_chart(figure, place)
    data = {dataset.name: data_hashes(dataset) for dataset in query_set.each()}
    values = {
        "config": config.to_dict(),
        "config_id": config.config_id,
        "parameters": {
            "model": options.model,
            "steering": config.steering,
            "mixing": config.mixing,
            "least": options.least,
            "most": options.most,
            "samples": options.samples,
            "seed": options.seed,
            "alphas": list(alphas),
        },
        **measured,
        "manifest": make_manifest(
            BENCHMARK,
            models=models_of(options.model),
            data=data,
            seed=options.seed,
            threads=options.threads,
        ),
    }
    record(options, BENCHMARK, name, values, beside=beside)
    for metric, value in measured["metrics"].items():
        sys.stdout.write(f"{metric}: {value:.3f}\n")


if __name__ == "__main__":
    main()
