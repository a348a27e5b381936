"""The commands that write vectors and results for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from searchlab.cli.completion import complete_datasets, complete_words
from searchlab.cli.options import EXISTING_FILE, FOLDER, data_option, seed_option
from searchlab.errors import InputError, NotFoundError, count, shell_word

if TYPE_CHECKING:
    from searchlab.evaluation.reports import Report


@click.group()
def export() -> None:
    """Write vectors and results for other tools."""


@export.command("vectors")
@click.argument("folder", type=FOLDER)
@data_option
@click.option(
    "--format",
    "kind",
    default="npy",
    show_default=True,
    help="npy (with ids one a line in a .txt), npz, parquet or safetensors.",
    shell_complete=complete_words("npy", "npz", "parquet", "safetensors"),
)
@click.option(
    "--ids",
    default="photo_id",
    show_default=True,
    help="What names a row: photo_id, file, source_photo_id or sha256.",
    shell_complete=complete_words("photo_id", "file", "source_photo_id", "sha256"),
)
@click.option(
    "--texts", type=EXISTING_FILE, help="Also write vectors of the texts in this file, one a line."
)
@click.option(
    "--dataset",
    help="Also write vectors of the queries of a dataset, a name or a folder of your own.",
    shell_complete=complete_datasets,
)
@click.option("--force", is_flag=True, help="Replace vectors that are there.")
def export_vectors_to(
    folder: Path,
    data: Path,
    kind: str,
    ids: str,
    texts: Path | None,
    dataset: str | None,
    force: bool,
) -> None:
    """Write the vectors of a library's photos into FOLDER.

    The model that made them is on record beside them, so `vectors:FOLDER` can be indexed, evaluated
    and served like any model: searchlab index --data OTHER PHOTOS --model vectors:FOLDER
    """
    from searchlab.library.export import export_vectors
    from searchlab.library.library import open_library

    wanted: list[str] = []
    if texts is not None:
        try:
            wanted += texts.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            msg = f"--texts must be a file of texts in UTF-8, one a line, got {texts}: {why}"
            raise InputError(msg) from error
    if dataset is not None:
        from searchlab.evaluation.datasets import load_dataset

        wanted += [query.text for query in load_dataset(dataset).queries if query.text]
    report = export_vectors(
        open_library(data), folder, texts=wanted, ids=ids, kind=kind, force=force
    )
    photos, of_texts = count(report.n_photos, "photo"), count(report.n_texts, "text")
    click.echo(f"{photos} and {of_texts}, {report.model.dim} components: {report.model.model_id}")
    if report.n_empty:
        click.echo(f"{count(report.n_empty, 'photo')} left out: the model says nothing of them")
    model = shell_word(f"vectors:{folder}")
    click.echo(f"to use them: searchlab index --data {shell_word(data)} --model {model}")


@export.command("atlas")
@click.argument("folder", type=FOLDER)
@data_option
@click.option("--made", help="Made vectors in place of a library's, such as clustered-100k-64.")
@click.option(
    "--queries",
    "n_queries",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Per relation.",
)
@click.option(
    "-k",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="True nearest neighbours.",
)
@seed_option("attributes and queries")
def export_atlas_to(
    folder: Path, data: Path, made: str | None, n_queries: int, k: int, seed: int
) -> None:
    """Write the filter atlas into FOLDER, for other benchmarks.

    For VectorDBBench and ann-benchmarks: filters of every strictness, whose photos lie near the
    queries, far from them or anywhere, with the true neighbours of each query: Parquet, and HDF5.
    """
    import numpy as np

    from searchlab.library.library import open_library
    from searchlab.studies.filters.atlas import Atlas
    from searchlab.studies.filters.atlas_files import first_ids, write_atlas
    from searchlab.studies.vectors.made import made_vectors

    if made is not None:
        vectors = made_vectors(made, seed=seed).photos
    else:
        vectors = np.asarray(open_library(data).engine.index.vectors, dtype=np.float32)
    first_ids(len(vectors))
    filters = write_atlas(Atlas(vectors, n_queries=n_queries, seed=seed), folder, k=k)
    n = len(vectors)
    click.echo(f"{count(n, 'photo')}, 3 relations, each with {count(len(filters), 'filter')}:")
    for name, first in filters.items():
        click.echo(f"  neighbors_{name}: id >= {first}, {count(n - first, 'photo')}")


@export.command("results")
@click.argument("board", type=FOLDER)
@click.argument("folder", type=FOLDER)
@click.option(
    "--dataset",
    help="What was measured, for words, titles and files; the name on record if not given.",
    shell_complete=complete_datasets,
)
@click.option(
    "--data",
    type=FOLDER,
    envvar="SEARCHLAB_DATA",
    help="A library of the photos, for their titles and files.",
)
@click.option(
    "--to",
    "form",
    default="parquet",
    show_default=True,
    help="parquet, mteb (its JSON), card (metrics of model cards), mlflow or wandb.",
    shell_complete=complete_words("parquet", "mteb", "card", "mlflow", "wandb"),
)
def export_results_to(
    board: Path, folder: Path, dataset: str | None, data: Path | None, form: str
) -> None:
    """Write a leaderboard for other tools.

    BOARD is a folder of results of one dataset, such as results/search_quality/demo. FOLDER gets,
    for pandas, Polars or DuckDB, systems.parquet, queries.parquet (each system's score of each
    query) and answers.parquet (each photo that was found, with title and file); or what --to says.
    """
    from searchlab.evaluation.exporters import load_exporter
    from searchlab.evaluation.reports import load_report

    report = load_report(board)
    if form == "parquet":
        _write_parquet(report, board, folder, dataset, data)
        return
    for line in load_exporter(form)(report, folder):
        click.echo(line)


def _write_parquet(
    report: Report, board: Path, folder: Path, dataset: str | None, data: Path | None
) -> None:
    from searchlab.evaluation.datasets import dataset_names, load_dataset
    from searchlab.evaluation.reporting.rows import answer_rows, query_rows, system_rows
    from searchlab.files import write_parquet
    from searchlab.library.library import open_library

    name = dataset or report.results[0].dataset
    measured = None
    if dataset is not None or name in dataset_names():
        try:
            measured = load_dataset(name)
        except NotFoundError:
            if dataset is not None:
                raise
    library = None if data is None else open_library(data)
    folder.mkdir(parents=True, exist_ok=True)
    tables = {
        "systems": system_rows(report),
        "queries": query_rows(report, measured),
        "answers": list(answer_rows(report, board.resolve().parents[1], measured, library)),
    }
    for table, rows in tables.items():
        if rows:
            path = write_parquet(folder / f"{table}.parquet", rows)
            click.echo(f"{path}: {count(len(rows), 'row')}")
    if measured is None:
        click.echo(
            f"texts of queries, titles and files are left out: {name} is not at hand; say where it "
            "is with --dataset FOLDER",
            err=True,
        )
