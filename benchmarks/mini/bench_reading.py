"""Which languages `mini` reads: does a sentence find its English counterpart, and do names?

    python -m benchmarks.mini.bench_reading --teacher PACKAGES --cache FOLDER
    python -m benchmarks.mini.bench_reading --artefacts FOLDER
    python -m benchmarks.mini.bench_reading --smoke --out "$(mktemp -d)"

For each language of `sentences-judge` a sentence is searched among the English ones of the same 300
pairs, by text alone. Chance finds 0.3 % of them first. A text of which a model knows no piece finds
nothing. `--teacher` reads the same sentences with multilingual-e5-small, which `mini` learns from
(packages as for `searchlab models build`); `--keep-teachers` keeps its figures of the record that
is replaced. No one trained on these pairs, which people wrote. Single words are measured on
the labels of `stamps` in the same language, if it has enough.

Writes results/reading/sentences-judge/mini.json and a chart, or rebuilt.json with `--artefacts`,
another build of `mini`. `by_language` has R@1 and R@10 in percent with 95 % bootstrap intervals
over sentences, `words` the success@5 of labels, `teacher` its R@1, and `reach` what a language
reaches by `reach_of`; `metrics` the means over all languages and over the `FORTY`, as fractions,
and how many languages reach what.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.mini.reading_chart import draw_reading
from benchmarks.mini.tasks import Rows, load_stamps, open_rgb, rank_answers, with_interval
from benchmarks.mini.teachers import add_options, describe, read_kept
from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets import external_root
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.provenance.measurement import measurement_path
from searchlab.models.mini.artefacts import RECORD_FILE
from searchlab.models.mini.embedder import MINI_DATA, MiniEmbedder

FOLDER, FILE = "sentences-judge", "tatoeba.tsv.gz"
FORTY = (
    "zh-Hans", "hi", "es", "ar", "fr", "ur", "bn", "pt", "ru", "id", "de", "ja", "mr", "vi", "fa",
    "tr", "ko", "fil", "it", "th", "ml", "pl", "ms", "az", "nl", "uk", "ro", "sr", "kk", "sv", "cs",
    "hu", "el", "ku", "af", "he", "ca", "ug", "bg", "da",
)  # fmt: skip
"""The forty languages of the judge that most people speak, most first.

Speakers are those of CLDR 48.2.0 (`cldr-core`, `supplemental/territoryInfo.json`): population times
percentage, summed over territories and scripts. A language in two scripts counts once, in the
script that CLDR takes for granted. English is none of them: the others are compared with it.
"""
READS_SENTENCES, READS_WORDS = 50.0, 17.0
"""Least R@1 of sentences, and least success@5 of labels, in percent, from which a model is said to
read sentences of a language, more often than not, and words, ten times as often as by chance.
Chance finds 0.3 % and 1.7 %."""
FEWEST_LABELS = 100  # A language with fewer labels of stamps has no figure for words.
LABELLED_AS = {"sr-Latn": "sr@latin", "zh-Hans": "zh_CN", "zh-Hant": "zh_TW"}

Pairs = dict[str, list[tuple[str, str]]]


def read_pairs(root: Path) -> Pairs:
    """Read the judge's pairs of a sentence and its English counterpart, by language."""
    pairs: Pairs = defaultdict(list)
    with gzip.open(root / FOLDER / FILE, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            pairs[row["lang"]].append((row["text"], row["english"]))
    return pairs


def rank_counterparts(
    sentences: Rows, english: Rows, counterparts: Sequence[str]
) -> NDArray[np.int64]:
    """Rank each sentence's counterpart among the English ones, (n,) from 0.

    It comes last among equal scores, and after all others for a zero row, whose text was not read.

    Args:
        sentences: (n, dim) rows of the sentences.
        english: (n, dim) rows of their counterparts, in the same order.
        counterparts: The n texts of these; equal ones are the same answer.
    """
    scores = sentences @ english.T
    own = np.diagonal(scores)[:, np.newaxis]
    answers = np.unique(list(counterparts), return_inverse=True)[1]
    others = answers[:, np.newaxis] != answers
    ranks = ((scores >= own) & others).sum(axis=1)
    ranks[~sentences.any(axis=1)] = len(english)
    return ranks


def reach_of(sentences: float, words: float | None) -> str:
    """Say what a model reads of a language.

    Args:
        sentences: Percentage of sentences that find their counterpart first.
        words: Percentage of labels that find a stamp among the first five; None if not measured.
    """
    if sentences >= READS_SENTENCES:
        return "reads sentences"
    least = sentences if words is None else words
    return "reads words" if least >= READS_WORDS else "does not read"


def measure_words(root: Path, model: MiniEmbedder) -> dict[str, dict[str, Any]]:
    """Measure by language how often a label finds one of its stamps among the first five."""
    task = load_stamps(root, best=None)
    texts = model.encode_texts([query.text for query in task.queries])
    ranks = rank_answers(texts, model.encode_images(open_rgb(task.photos)), task.queries)
    languages = np.array([query.language for query in task.queries])
    first = np.array([query.answers[0] for query in task.queries])
    words = {}
    for language in np.unique(languages).tolist():
        own = languages == language
        if own.sum() >= FEWEST_LABELS:
            groups = np.unique(first[own], return_inverse=True)[1]
            words[language] = {"labels": int(own.sum()), **with_interval(ranks[own] < 5, groups)}
    return words


def measure_reading(
    pairs: Pairs, encode: Any, words: Mapping[str, Mapping[str, Any]] | None = None
) -> dict[str, dict[str, Any]]:
    """Measure each language.

    Args:
        pairs: Sentences and their counterparts.
        encode: Embeds a list of texts as rows.
        words: What `measure_words` gives; none for a model that embeds no photos.
    """
    measured: dict[str, dict[str, Any]] = {}
    for language, both in sorted(pairs.items()):
        sentences, counterparts = (list(texts) for texts in zip(*both, strict=True))
        ranks = rank_counterparts(encode(sentences), encode(counterparts), counterparts)
        found = {f"R@{k}": with_interval(ranks < k, np.arange(len(ranks))) for k in (1, 10)}
        measured[language] = {"sentences": len(both), **found}
        if words is not None:
            labelled = words.get(LABELLED_AS.get(language, language))
            share = None if labelled is None else labelled["mean"]
            measured[language] |= {
                "words": labelled,
                "reach": reach_of(found["R@1"]["mean"], share),
            }
    return measured


def average(measured: dict[str, dict[str, Any]], head: str = "") -> dict[str, float]:
    """Average R@k over all languages and over the forty, as fractions."""
    metrics = {}
    for k in (1, 10):
        for name, languages in (("all", list(measured)), ("forty", FORTY)):
            shares = [measured[one][f"R@{k}"]["mean"] for one in languages if one in measured]
            if len(shares) == len(languages):
                metrics[f"{head}R@{k}.{name}"] = round(float(np.mean(shares)) / 100, 4)
    reached = Counter(row["reach"] for row in measured.values() if "reach" in row)
    return metrics | {f"languages, {reach}": count for reach, count in reached.items()}


def recompute(measurement: dict[str, Any]) -> dict[str, Any]:
    """Measure the means over languages of the model that ships again.

    Raises:
        NotFoundError: It is of another build, or SEARCHLAB_DATASETS does not hold the sentences.
    """
    root = external_root()
    if measurement["name"] != "mini" or root is None or not (root / FOLDER).is_dir():
        msg = (
            f"the model that ships, and SEARCHLAB_DATASETS with a folder {FOLDER}, are needed, got "
            f"{measurement['name']!r} and {root}"
        )
        raise NotFoundError(msg)
    by_language = measure_reading(read_pairs(root), MiniEmbedder(MINI_DATA).encode_texts)
    return {"metrics": average(by_language)}


def make_pairs(seed: int) -> Pairs:
    """Make a few pairs for a smoke run."""
    rng = np.random.default_rng(seed)
    things = ["dog", "house", "tree", "child", "boat"]
    english = [f"{rng.choice(things)} {number}" for number in range(20)]
    return {"en": [(text.upper(), text) for text in english]}


def read_with_teacher(pairs: Pairs, options: Namespace) -> dict[str, dict[str, Any]]:
    """Measure multilingual-e5-small on the same pairs."""
    import torch

    from searchlab.training.mini.teacher import Teacher

    torch.set_num_threads(options.threads)
    return measure_reading(pairs, Teacher(options.teacher, options.cache).encode)


def keep_teacher(kept: dict[str, Any], by_language: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Take the teacher's figures of each language from a record of the same sentences.

    Returns:
        Its means.
    """
    for language, row in by_language.items():
        before = kept["by_language"].get(language, {})
        if "teacher" not in before or before["sentences"] != row["sentences"]:
            sys.exit(f"--keep-teachers must find the teacher's figures of the same {language}")
        row["teacher"] = before["teacher"]
    return {key: value for key, value in kept["metrics"].items() if key.startswith("teacher.")}


def main() -> None:
    """Measure, and record."""
    parser = bench_parser(__doc__, dataset=FOLDER, datasets=(FOLDER, "drawn"))
    add_options(parser)
    parser.add_argument("--cache", type=Path, default=Path("cache"), help="folder of its vectors")
    parser.add_argument("--artefacts", type=Path, help="folder of another build of mini")
    options = parser.parse_args()
    if options.smoke:
        options.dataset = "drawn"
    if options.artefacts and not (options.artefacts / RECORD_FILE).is_file():
        sys.exit(f"--artefacts must be a folder with {RECORD_FILE}, got {options.artefacts}")
    name = "rebuilt" if options.artefacts else "mini"
    if on_record(options, "reading", name) is not None:
        return
    root = Path(os.environ.get("SEARCHLAB_DATASETS", ""))
    for folder in (FOLDER, "stamps") if options.dataset == FOLDER else ():
        if not (root / folder).is_dir():
            sys.exit(f"SEARCHLAB_DATASETS must name a folder that holds {folder}, got {root}")
    pairs = read_pairs(root) if options.dataset == FOLDER else make_pairs(options.seed)
    model = MiniEmbedder(options.artefacts or MINI_DATA, threads=options.threads)
    words = measure_words(root, model) if options.dataset == FOLDER else {}
    values: dict[str, Any] = {"by_language": measure_reading(pairs, model.encode_texts, words)}
    metrics = average(values["by_language"])
    parameters: dict[str, Any] = {"forty": list(FORTY), "least": [READS_SENTENCES, READS_WORDS]}
    if options.keep_teachers:
        kept = read_kept(options, "reading", name)
        parameters["teachers"] = describe(kept)
        metrics |= keep_teacher(kept, values["by_language"])
    elif options.teacher:
        taught = read_with_teacher(pairs, options)
        metrics |= average(taught, "teacher.")
        for language, row in values["by_language"].items():
            row["teacher"] = taught[language]["R@1"]
    for language, row in values["by_language"].items():
        beside, labels = ((row.get(name) or {}).get("mean", "") for name in ("teacher", "words"))
        print(f"{language:<10}{row['R@1']['mean']:>8}{beside:>8}{labels:>8}  {row['reach']}")
    for figure, value in metrics.items():
        print(f"{figure:<40}{value:>10.4f}")
    described = {"spec": "mini", "model_id": model.model_id, **model.fingerprints()}
    if options.artefacts:
        described["spec"] = "mini, rebuilt"
    manifest = make_manifest(
        "reading", models=[described], seed=options.seed, threads=options.threads
    )
    values |= {"parameters": parameters, "metrics": metrics, "manifest": manifest}
    place = measurement_path(options.out, "reading", options.dataset, name).with_suffix("")
    charts = draw_reading(values["by_language"], READS_SENTENCES, place)
    record(options, "reading", name, values, beside=charts)


if __name__ == "__main__":
    main()
