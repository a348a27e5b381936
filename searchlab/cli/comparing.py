"""The command that compares systems of any toolkit."""

from __future__ import annotations

import json
from pathlib import Path

import click

from searchlab.cli.completion import complete_metrics
from searchlab.cli.options import EXISTING_FILE, seed_option, stdout, write_text
from searchlab.errors import InputError


@click.command()
@click.argument("systems", nargs=-1, required=True)
@click.option(
    "--qrels",
    type=EXISTING_FILE,
    help="Judgments of TREC, BEIR or ranx; needed where a file holds answers and no scores.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    help="Metric, such as ndcg@10; repeatable. The first one ranks the systems.",
    shell_complete=complete_metrics,
)
@click.option(
    "--queries",
    type=EXISTING_FILE,
    help="Table with the columns query_id, lang and about: languages count the same, and queries "
    "about one thing are no independent evidence.",
)
@click.option("--by-language", is_flag=True, help="Also print a table by language.")
@click.option("--out", type=EXISTING_FILE, help="Also write all of it to this JSON file.")
@seed_option("intervals and tests")
def compare(
    systems: tuple[str, ...],
    qrels: Path | None,
    metrics: tuple[str, ...],
    queries: Path | None,
    by_language: bool,
    out: Path | None,
    seed: int,
) -> None:
    """Compare systems of any toolkit, from their files alone.

    Prints means with intervals, and which systems cannot be told apart: paired tests with Holm's
    correction, and the differences that these queries can show.

    SYSTEMS are runs of TREC, ranx (JSON, Parquet) or MTEB's predictions, with --qrels; or scores of
    each query: `ir_measures --by_query`, `trec_eval -q`, a table, a result of `searchlab evaluate`;
    or folders of MTEB's results, a folder a model, where tasks take the place of queries. NAME=FILE
    names a system.
    """
    if out is not None and not out.absolute().parent.is_dir():
        msg = f"--out must be a file in a folder that is there, got no {out.parent}; make it"
        raise InputError(msg)
    from searchlab.evaluation.outside.comparison import compare_files
    from searchlab.evaluation.outside.tables import language_table

    comparison = compare_files(systems, qrels, metrics=metrics, queries=queries, seed=seed)
    console = stdout()
    console.print(comparison)
    if by_language:
        console.print(language_table(comparison))
    if out is not None:
        write_text(out, json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False) + "\n")
        click.echo(f"written: {out}")
