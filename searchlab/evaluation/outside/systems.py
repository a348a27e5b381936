"""Systems as other toolkits leave them on disk: what they answered, or how each query scored.

run.trec, run.txt, run.gz    answers, TREC: query Q0 document rank score tag
run.json, run.parquet        answers, ranx: query -> document -> score
Task_predictions.json        answers, MTEB
scores.tsv, scores.jsonl     scores, `ir_measures --by_query`, `trec_eval -q`
scores.tsv, scores.csv       scores, a table with the column query_id and one for each metric
Task.json, FOLDER            scores, MTEB: one of each task and language
RESULT.json                  scores, a result of `searchlab evaluate`
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from searchlab.errors import InputError, MissingExtraError, NotFoundError, quote
from searchlab.evaluation.datasets.judgments import read_run
from searchlab.evaluation.outside.names import metric_name

MAIN_SCORE: Final = "main_score"
_QUERY: Final = ("query_id", "qid", "q_id", "query-id")
_DOCUMENT: Final = ("doc_id", "docno", "docid", "photo_id", "corpus-id")
_LANG: Final = ("lang", "language")
_ABOUT: Final = ("about", "cluster_id")
_COLUMNS_OF_A_RUN: Final = 6
_NO_METRICS: Final = (*_QUERY, *_LANG, *_ABOUT, "ms", "text", "")

# What `trec_eval` measures, whose file has the measure before the query.
_MEASURE: Final = re.compile(
    r"(?:gm_|11pt_)?(?:map|bpref)(?:_.+)?|num_.+|Rprec.*|recip_rank|P_.+|recall_.+|success_.+"
    r"|ndcg.*|G|binG|infAP|utility|set_.+|iprec_at_.+|relstring.*|Rndcg|runid"
)

Scores = dict[str, dict[str, float]]
"""Metric -> query_id -> score."""


@dataclass
class System:
    """One system: its answers, or the scores of its queries.

    Attributes:
        name: What it is called in tables.
        path: Where it was read from.
        run: query_id -> documents, best first; empty if only scores are known.
        scores: Metric -> query_id -> score; empty if only answers are known.
        langs: query_id -> language, where the file says it.
        clusters: query_id -> what it is about, where the file says it.
        are_tasks: Whether its units are whole tasks, each a mean of its own, and no queries.
    """

    name: str
    path: Path
    run: Mapping[str, list[str]] = field(default_factory=dict)
    scores: Scores = field(default_factory=dict)
    langs: dict[str, str] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
    are_tasks: bool = False


def read_system(named: str | Path) -> System:
    """Read a system from a file or folder; see the top of this module for the forms.

    Args:
        named: A path, or `NAME=PATH`; without a name, the file's own is used.

    Raises:
        NotFoundError: There is no such file.
        InputError: It is in none of these forms.
        MissingExtraError: A Parquet file, and pyarrow is not installed.
    """
    name, equals, rest = str(named).partition("=")
    if not equals or Path(str(named)).exists():
        name, rest = "", str(named)
    path = Path(rest)
    if not path.exists():
        msg = f"{path} must be a run or scores of another toolkit, got no file; check the path"
        raise NotFoundError(msg)
    system = System(name or _stem(path), path)
    try:
        _read(system)
    except (
        *(OSError, EOFError, KeyError, TypeError, ValueError, AttributeError),
        *(csv.Error, zlib.error),
    ) as error:
        if isinstance(error, InputError):
            raise
        why = f"{type(error).__name__}: {error}"
        msg = f"{path} must be whole, and of a form that `searchlab compare` knows, got {why}"
        raise InputError(msg) from error
    return system


def _stem(path: Path) -> str:
    name = path.resolve().name
    for ending in (".gz", ".tsv", ".csv", ".jsonl", ".json", ".parquet", ".parq", ".trec", ".txt"):
        name = name.removesuffix(ending)
    return name.removesuffix(".run").removesuffix(".scores") or path.name


def _read(system: System) -> None:
    path = system.path
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*.json")) if file.name != "model_meta.json"]
        tasks = [task for task in map(_load_json, files) if _is_task(task)]
        if not tasks:
            msg = f"{path} must be a folder of MTEB's results, Task.json each, got none"
            raise InputError(msg)
        _read_tasks(system, tasks)
    elif path.suffix in {".parquet", ".parq"}:
        _read_parquet(system)
    elif path.suffix == ".json":
        _read_json(system, _load_json(path))
    elif path.suffix == ".lz4":
        msg = f"{path} must be unpacked first, got LZ4; save the run as .json or .trec"
        raise InputError(msg)
    else:
        _read_lines(system)


# -- JSON -------------------------------------------------------------------------------------


def _load_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8-sig"))


def _is_task(values: Any) -> bool:
    return isinstance(values, dict) and {"task_name", "scores"} <= values.keys()


def _read_json(system: System, values: Any) -> None:
    if _is_task(values):
        _read_tasks(system, [values])
    elif isinstance(values, dict) and {"config_id", "intervals"} <= values.keys():
        system.name = system.name if system.name != values["config_id"] else values["system"]
        _read_table(system, system.path.with_suffix(".scores.tsv").read_text("utf-8"), "\t")
    else:
        system.run = {
            query_id: _ranked(system.path, query_id, documents)
            for query_id, documents in _answers(system.path, values).items()
        }


def _answers(path: Path, values: Any) -> Mapping[str, Mapping[str, float]]:
    """Find query -> document -> score, which MTEB puts below a subset and a split."""
    tables: dict[tuple[str, ...], Any] = {(): values}
    for _ in range(3):
        if tables and all(_is_answers(table) for table in tables.values()):
            if len(tables) == 1:
                return next(iter(tables.values()))
            listed = ", ".join("/".join(place) for place in tables)
            msg = f"{path} must hold one subset and split, got {listed}; write a file of each"
            raise InputError(msg)
        tables = {
            (*place, str(name)): part
            for place, table in tables.items()
            for name, part in (table.items() if isinstance(table, dict) else ())
            if name != "mteb_model_meta"
        }
    msg = f"{path} must map queries to documents to scores, got {quote(values)}"
    raise InputError(msg)


def _is_answers(table: Any) -> bool:
    if not isinstance(table, dict) or not table:
        return False
    return all(
        isinstance(documents, dict)
        and all(isinstance(score, int | float) for score in documents.values())
        for documents in table.values()
    )


def _ranked(path: Path, query_id: str, documents: Mapping[str, float]) -> list[str]:
    """Sort documents by score; equal scores by id, so that the file's order says nothing."""
    if not all(math.isfinite(score) for score in documents.values()):
        msg = f"{path} must have finite scores, got others for {query_id!r}"
        raise InputError(msg)
    return sorted(documents, key=lambda document: (-documents[document], document))


def _read_tasks(system: System, tasks: Iterable[Mapping[str, Any]]) -> None:
    system.are_tasks = True
    for task in tasks:
        for split, subsets in task["scores"].items():
            for subset in subsets:
                unit = f"{task['task_name']}/{split}/{subset['hf_subset']}"
                system.langs[unit] = "+".join(map(str, subset.get("languages", ()))) or "unknown"
                system.clusters[unit] = str(task["task_name"])
                for name, value in subset.items():
                    if isinstance(value, float | int) and math.isfinite(value):
                        column = system.scores.setdefault(metric_name(name), {})
                        if unit in column:
                            msg = (
                                f"{system.path} must hold one result of {unit}, got several; give "
                                "a folder for each model and revision"
                            )
                            raise InputError(msg)
                        column[unit] = float(value)
    if MAIN_SCORE in system.scores:  # the first one ranks the systems
        system.scores = {MAIN_SCORE: system.scores.pop(MAIN_SCORE), **system.scores}


# -- lines and tables -------------------------------------------------------------------------


def _read_lines(system: System) -> None:
    data = system.path.read_bytes()
    text = (gzip.decompress(data) if system.path.suffix == ".gz" else data).decode("utf-8-sig")
    first = next((line for line in text.splitlines() if line.strip()), "")
    cells = first.split("\t") if "\t" in first else first.split()
    if first.startswith("{"):
        rows = (json.loads(line) for line in text.splitlines() if line.strip())
        _add(system, ((row["query_id"], row["measure"], row["value"]) for row in rows))
    elif system.path.suffix == ".csv" or first.partition("\t")[0] in _QUERY:
        separator = "\t" if "\t" in first else ","
        names = first.split(separator)
        if separator == "\t" and "rank" in names and "score" not in names:
            system.run = read_run(text)
        else:
            _read_table(system, text, separator)
    elif len(cells) == _COLUMNS_OF_A_RUN or len(first.split()) == _COLUMNS_OF_A_RUN:
        system.run = read_run(system.path)
    elif len(cells) == 3:
        _add(system, _three_columns(text))
    else:
        msg = (
            f"{system.path} must be a run of TREC, six columns, or scores of each query, three "
            f"columns or a table with a header, got {quote(first)}"
        )
        raise InputError(msg)


def _three_columns(text: str) -> list[tuple[str, str, str]]:
    """Read lines of query, metric, score; `trec_eval -q` writes the metric first."""
    rows = [
        tuple(cell.strip() for cell in (line.split("\t") if "\t" in line else line.split()))
        for line in text.splitlines()
        if line.strip()
    ]
    if any(len(row) != 3 for row in rows):
        msg = f"lines must have three columns, got {next(row for row in rows if len(row) != 3)}"
        raise ValueError(msg)
    is_trec_eval = any(row[1] == "all" for row in rows) or (
        all(_MEASURE.fullmatch(row[0]) for row in rows)
        and not all(_MEASURE.fullmatch(row[1]) for row in rows)
    )
    return [(row[1], row[0], row[2]) if is_trec_eval else (row[0], row[1], row[2]) for row in rows]


def _add(system: System, rows: Iterable[tuple[str, str, Any]]) -> None:
    for query_id, measure, value in rows:
        if query_id != "all" and measure != "runid":
            column = system.scores.setdefault(metric_name(measure), {})
            if str(query_id) in column:
                msg = f"{system.path} must score a query once, got {query_id!r} again: {measure}"
                raise InputError(msg)
            column[str(query_id)] = _finite(system.path, value)


def _read_table(system: System, text: str, separator: str) -> None:
    file = io.StringIO(text, newline="")
    if separator == "\t":
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        rows = csv.reader(file)
    head, *lines = filter(None, rows)
    _read_rows(system, [dict(zip(head, cells, strict=True)) for cells in lines])


def _read_rows(system: System, rows: list[dict[str, Any]]) -> None:
    names = rows[0].keys() if rows else ()
    query, about, lang = (_first(names, known) for known in (_QUERY, _ABOUT, _LANG))
    document = _first(names, _DOCUMENT)
    if query is None:
        msg = f"{system.path} must have rows and a column query_id, got {', '.join(names)}"
        raise InputError(msg)
    if document is not None and ("score" in names or "rank" in names):
        run: dict[str, dict[str, float]] = {}
        for row in rows:
            answers, found = run.setdefault(str(row[query]), {}), str(row[document])
            if found in answers:
                msg = f"{system.path} must rank a document once, got {found!r} again: {row[query]}"
                raise InputError(msg)
            answers[found] = float(row["score"]) if "score" in names else -float(row["rank"])
        system.run = {query_id: _ranked(system.path, query_id, run[query_id]) for query_id in run}
        return
    metrics = [name for name in names if name not in _NO_METRICS]
    for row in rows:
        _add(system, ((str(row[query]), name, row[name]) for name in metrics))
    where: tuple[tuple[str | None, dict[str, str]], ...] = (
        (lang, system.langs),
        (about, system.clusters),
    )
    for column, labels in where:
        if column is not None:
            labels |= {str(row[query]): str(row[column]) for row in rows}


def _read_parquet(system: System) -> None:
    try:
        from pyarrow import parquet
    except ImportError as error:
        msg = f"{system.path} must be read by pyarrow, got none; pip install 'searchlab[tables]'"
        raise MissingExtraError(msg) from error
    _read_rows(system, parquet.read_table(system.path).to_pylist())


def _first(names: Iterable[str], known: tuple[str, ...]) -> str | None:
    return next((name for name in known if name in names), None)


def _finite(path: Path, value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        msg = f"{path} must have a finite score for each query, got {value!r}"
        raise InputError(msg)
    return number
