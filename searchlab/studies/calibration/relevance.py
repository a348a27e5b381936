"""Whether `relevance_score` holds on photos, words and languages that it was not fitted on.

The curve of text queries is fitted on graded judgments of people, each time without one data set or
one language, and measured on what was left out. `benchmarks/relevance/bench_relevance.py` records
`measure`, draws the diagrams and ships the curve that is fitted on everything.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from searchlab.config import USUAL, Config
from searchlab.config.calibration import Calibration, QueryTraits
from searchlab.config.word_weights import USUAL_WORDS, WordWeights
from searchlab.evaluation.calibration.fit import fit_top
from searchlab.evaluation.calibration.query_fit import (
    JudgedPairs,
    TextFit,
    fit_text,
    judged_pairs,
    predict,
)
from searchlab.evaluation.calibration.scored_queries import ScoredQueries, score_queries
from searchlab.evaluation.datasets import Dataset, load_dataset
from searchlab.studies.calibration.concepts import CONCEPTS
from searchlab.studies.calibration.reliability import measure_reliability, round_floats
from searchlab.studies.calibration.thresholds import bootstrap_share, separation
from searchlab.studies.calibration.written import SETS as WITH_TEXTS
from searchlab.studies.calibration.written import measure_written, rank_pairs

if TYPE_CHECKING:
    from searchlab.search.engine import SearchEngine

FITTED: Final = {"sentences": "flickr8k", "words": "flickr8k-words"}
"""What the curve that ships is fitted on."""

SETS: Final = {**FITTED, "everyday": "demo-everyday"}
READ_ONLY: Final = {"labels": "demo", "coco": "coco-judge"}
"""Known-item pairs, which nothing is fitted on: how are their right first photos scored?"""

THRESHOLDS: Final = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7)
_LETTERS = "aabcdeeefghiijklmnooopqrsttuuvwxyz"
_N_RANDOM = 200


def measure(
    engines: Mapping[str, SearchEngine],
    datasets: Mapping[str, Dataset],
    read: Mapping[str, tuple[SearchEngine, Dataset]],
    *,
    least: int = 60,
    samples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Fit and measure.

    Args:
        engines: For each of `datasets` the engine over its photos; all of one model.
        datasets: Those of `SETS`, and of `READ_ONLY` as far as there are any.
        read: Those of `written.SETS`, with an engine each that reads their texts.
        least: Queries that a language must have to be left out.
        samples: Number of resamples of the intervals.
        seed: Seed of the resampling and of the letters at random.

    Returns:
        `metrics`; `fit`, the curve and weights fitted on `FITTED`; tables `left_out` (reliability
        of each left-out set, with its bars), `written` (the same with texts there), `first` (scores
        of right first photos), `missing` (queries of letters at random, and queries whose answers
        were taken out), `thresholds` (what is shown above a score) and `concepts` (the best score
        of a thing in several languages).
    """
    draw = {"samples": samples, "seed": seed}
    scored = {name: score_queries(engines[name], data) for name, data in datasets.items()}
    pairs = {name: judged_pairs(scored[name]) for name in SETS}
    at_large = _at_large(engines["sentences"])
    fit = fit_text([pairs[name] for name in FITTED], at_large)
    left_out = _leave_out(pairs, at_large, least=least, **draw)
    ranked = {name: rank_pairs(*read[name], fit) for name in WITH_TEXTS}
    with_texts, written = measure_written(ranked, least=least, **draw)
    missing = []
    for name in SETS:
        missing += _missing(engines[name], scored[name], fit, name, **draw)
    tables = {
        "left_out": left_out,
        "written": written,
        "first": [_first(name, scored[name], fit) for name in scored],
        "missing": missing,
        "thresholds": [
            row for name in SETS for row in _thresholds(name, scored[name], fit, **draw)
        ],
        "concepts": _concepts(engines["sentences"], fit),
    }
    metrics = {f"ece.without {row['left_out']}": row["ece"]["mean"] for row in left_out}
    metrics |= {f"ece_chance.without {row['left_out']}": row["ece_chance"] for row in left_out}
    for row in written:
        name = f"{row['scored_by']}.without {row['left_out']}"
        metrics[f"written_ece.{name}"] = row["ece"]["mean"]
        metrics[f"written_auc.{name}"] = row["auc"]["mean"]
    metrics |= {f"first.{row['set']}": row["median"] for row in tables["first"]}
    metrics |= {f"auc.{row['set']}.{row['against']}": row["auc"]["mean"] for row in missing}
    apart = [row["apart"] for row in tables["concepts"] if row["taught"] and row["lang"] != "en"]
    metrics |= {
        "concepts_within_0.15": float(np.mean([gap <= 0.15 for gap in apart])),
        "concepts_apart": float(np.mean(apart)),
    }
    values = {
        "curve": [fit.curve.slope, fit.curve.intercept],
        "weights": vars(fit.weights),
        **with_texts._asdict(),
    }
    return {"metrics": round_floats(metrics), "fit": values, **round_floats(tables)}


def calibration_of(
    fit: TextFit, engine: SearchEngine, similar: Dataset, steered: Dataset, source: str
) -> Calibration:
    """Return the calibration that ships: the text curve, and curves of pictures beside it.

    Args:
        fit: The curve of text queries.
        engine: Over the photos of both data sets, with the mixing of new libraries.
        similar: Judged queries by a photo.
        steered: Judged queries by a photo and words.
        source: What the text curve was fitted on.
    """
    image, both = (fit_top(score_queries(engine, one)) for one in (similar, steered))
    return Calibration(text=fit.curve, image=image, both=both, source=source, query=fit.weights)


def recompute(measurement: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the figures of a record again, with the recorded parameters."""
    parameters = measurement["parameters"]
    with tempfile.TemporaryDirectory() as scratch:
        model, place = parameters["model"], Path(scratch)
        engines, datasets = open_sets(model, parameters["sets"], place)
        read = open_sets(model, parameters["read"], place, words=USUAL_WORDS)
        draw = {name: parameters[name] for name in ("least", "samples", "seed")}
        return measure(engines, datasets, paired(*read), **draw)


def paired(
    engines: Mapping[str, SearchEngine], datasets: Mapping[str, Dataset]
) -> dict[str, tuple[SearchEngine, Dataset]]:
    """Put engines and data sets of the same names together."""
    return {name: (engine, datasets[name]) for name, engine in engines.items()}


def open_sets(
    spec: str, names: Mapping[str, str], folder: Path, *, words: WordWeights | None = None
) -> tuple[dict[str, SearchEngine], dict[str, Dataset]]:
    """Open data sets and an engine over the photos of each.

    Args:
        spec: The model.
        names: Set -> name of the data set.
        folder: Where libraries are kept.
        words: What words count; None where texts are not read.
    """
    from searchlab.evaluation.datasets.dataset_library import dataset_library

    datasets = {dataset: load_dataset(dataset) for dataset in dict.fromkeys(names.values())}
    config = replace(USUAL, model=spec, words=words)
    engines = {}
    for dataset, data in datasets.items():
        library = dataset_library(data, folder, config=Config())
        engines[dataset] = library.engine_for(
            config, withheld=data.unread, photo_ids=data.photo_ids
        )
    return (
        {name: engines[dataset] for name, dataset in names.items()},
        {name: datasets[dataset] for name, dataset in names.items()},
    )


def _at_large(engine: SearchEngine) -> str:
    from searchlab.models.protocol import is_reader

    return engine.model.at_large.digest if is_reader(engine.model) else ""


def _leave_out(
    pairs: Mapping[str, JudgedPairs], at_large: str, *, least: int, samples: int, seed: int
) -> list[dict[str, Any]]:
    rows = []

    def add(name: str, kind: str, fitted_on: Sequence[JudgedPairs], read: JudgedPairs) -> None:
        scores = predict(read, fit_text(fitted_on, at_large))
        diagram = measure_reliability(
            scores, read.relevant, clusters=read.clusters, samples=samples, seed=seed
        )
        rows.append({"left_out": name, "kind": kind, **diagram.to_dict()})

    for name in pairs:
        others = [pairs[other] for other in pairs if other != name]
        kind = "data set" if name in FITTED else "data set and library"
        add(name, kind, others, pairs[name])
    sentences, langs = pairs["sentences"], pairs["sentences"].langs
    for lang in sorted(set(langs.tolist())):
        mine = langs == lang
        if len(set(sentences.clusters[mine].tolist())) < least:
            continue
        # The words are English; without English they go as well.
        rest = [sentences.take(~mine), *([] if lang == "en" else [pairs["words"]])]
        add(lang, "language", rest, sentences.take(mine))
    return rows


def score_all(scored: ScoredQueries, fit: TextFit) -> NDArray[np.float64]:
    """Return (n_queries, n_photos) scores; 0 where a photo cannot be an answer."""
    traits = [] if scored.traits is None else scored.traits.tolist()
    shifts = np.array([fit.weights.log_odds(QueryTraits(*row)) for row in traits])
    logits = fit.curve.slope * scored.cosines.astype(np.float64) + fit.curve.intercept
    return np.asarray(0.5 * (1 + np.tanh(0.5 * (logits + shifts[:, np.newaxis]))))


def _first(name: str, scored: ScoredQueries, fit: TextFit) -> dict[str, Any]:
    english = np.array([lang == "en" for lang in scored.langs])
    scores = score_all(scored, fit)
    first = scored.cosines.argmax(axis=1)
    places = np.arange(len(scored))
    right = (scored.grades[places, first] >= 1) & english
    best = scores[places, first]
    quartiles = np.percentile(best[right], [25, 50, 75]) if right.any() else np.full(3, np.nan)
    return {
        "set": name,
        "n_queries": int(english.sum()),
        "n_right": int(right.sum()),
        "low": float(quartiles[0]),
        "median": float(quartiles[1]),
        "high": float(quartiles[2]),
        "wrong_median": float(np.median(best[english & ~right])),
    }


def random_letters(n: int, seed: int) -> list[str]:
    """Make queries of one or two words of letters at random."""
    rng = random.Random(seed)

    def word() -> str:
        return "".join(rng.choice(_LETTERS) for _ in range(rng.randint(4, 9)))

    return [word() if rng.random() < 0.5 else f"{word()} {word()}" for _ in range(n)]


def _missing(
    engine: SearchEngine, scored: ScoredQueries, fit: TextFit, name: str, *, samples: int, seed: int
) -> list[dict[str, Any]]:
    from searchlab.search.queries import Query

    draw = {"samples": samples, "seed": seed}
    best = score_all(scored, fit).max(axis=1)
    calibration = Calibration(fit.curve, fit.curve, fit.curve, "fitted", fit.weights)
    reader = type(engine)(
        engine.table, engine.index, engine.model, replace(engine.config, calibration=calibration)
    )
    letters = random_letters(max(_N_RANDOM, len(best)), seed)[: len(best)]
    random_best = np.array([reader.rank(Query(text=text), 1).scores[0] for text in letters])
    without = score_all(scored.without_answers(), fit).max(axis=1)
    rows = []
    for against, other in (("letters at random", random_best), ("answers taken out", without)):
        auc = separation(best, other, scored.cluster_ids, **draw)
        rows.append(
            {
                "set": name,
                "against": against,
                "auc": auc._asdict(),
                "median": float(np.median(other)),
                "answered": [float((best >= t).mean()) for t in THRESHOLDS],
                "false_answers": [float((other >= t).mean()) for t in THRESHOLDS],
            }
        )
    return rows


def _thresholds(
    name: str, scored: ScoredQueries, fit: TextFit, *, samples: int, seed: int
) -> list[dict[str, Any]]:
    scores, relevant = score_all(scored, fit), scored.grades >= 1
    rows = []
    for threshold in THRESHOLDS:
        shown = scores >= threshold
        query, photo = np.nonzero(shown)
        names = [scored.cluster_ids[row] for row in query.tolist()]
        hits = relevant[query, photo]
        share = bootstrap_share(hits, names, samples=samples, seed=seed) if len(hits) else None
        rows.append(
            {
                "set": name,
                "threshold": threshold,
                "shown": float(shown.sum(axis=1).mean()),
                "empty": float((~shown.any(axis=1)).mean()),
                "precision": None if share is None else share._asdict(),
                "recall": float(((shown & relevant).sum(axis=1) / relevant.sum(axis=1)).mean()),
            }
        )
    return rows


def _concepts(engine: SearchEngine, fit: TextFit) -> list[dict[str, Any]]:
    from searchlab.search.query_reading import traits_of

    rows = []
    vectors = np.asarray(engine.index.vectors)
    for english, names in CONCEPTS.items():
        best = {}
        for lang, text in {"en": english, **names}.items():
            vector = engine.model.encode_texts([text])[0]
            traits = traits_of(text, vector, engine.model)
            shift = 0.0 if traits is None else fit.weights.log_odds(traits)
            logit = fit.curve.slope * float((vectors @ vector).max()) + fit.curve.intercept + shift
            best[lang] = 0.5 * (1 + float(np.tanh(0.5 * logit)))
        rows += [
            {
                "concept": english,
                "lang": lang,
                "taught": lang in ("ar", "cs", "de", "en", "fr", "zh"),
                "score": score,
                "apart": abs(score - best["en"]),
            }
            for lang, score in best.items()
        ]
    return rows
