r"""What limits `mini`: the number of photos to learn from, and the words that it knows.

    python -m benchmarks.mini.bench_mini_limits --packages PACKAGES --cldr CLDR \
        --wordnet /usr/share/wordnet/data.noun --cache CACHE
    python -m benchmarks.mini.bench_mini_limits --smoke --out "$(mktemp -d)"

Writes results/mini/flickr8k/limits.json and a chart. No setting of `mini` was chosen by it.

- *Photos*: heads are trained on more and more captioned photos, with the teachers themselves as
  text side (both for English, e5 for other languages). Then captions of the test photos are
  searched, with hubs ranked lower by captions of the language. The tower stays as it was tuned on
  nearly all photos. `recall@10.en.750` and the like are fractions; `doublings.en` says how often
  the photos would have to double to reach the aim at the last slope.
- *Words*: the shipped model on the stamps, separately for labels of which every word is read as one
  piece and for others: `success@5.known`, `success@5.other`, and `known share` of the labels.

`CACHE` is that of `searchlab models build`: its tuned tower and teachers' vectors are used, and
what is missing is made. SEARCHLAB_DATASETS names the folder of flickr8k, flickr8k-train and stamps.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from rich.console import Console

from benchmarks.common.recording import bench_parser, on_record, record
from benchmarks.mini.tasks import LANGUAGES, Query, load_stamps, rank_answers, with_interval
from searchlab.cli.console import ConsoleProgress
from searchlab.evaluation.charts import chart, look, save_chart, with_intervals
from searchlab.evaluation.provenance.manifest import make_manifest, models_of
from searchlab.evaluation.provenance.measurement import measurement_path
from searchlab.models.mini.embedder import MiniEmbedder
from searchlab.models.mini.pieces import Pieces, fold

SIZES = (750, 1500, 3000, 6000, 17000)
HEADS = 3  # As many as teach the model.
AIMS = {"en": 80, "zh": 72} | dict.fromkeys(("ar", "de", "fr", "cs"), 68)  # Percent of R@10.


def score_words(
    queries: list[Query], pictures: list[Image.Image], model: MiniEmbedder
) -> dict[str, Any]:
    """Measure success@5 of labels whose every word the model knows, of others, and by locale."""
    pieces = Pieces.open(model.folder)
    texts = model.encode_texts([query.text for query in queries])
    hits = rank_answers(texts, model.encode_images(pictures), queries) < 5
    known = np.array([is_known(query, pieces) for query in queries])
    languages = np.array([query.language for query in queries])
    first = np.array([query.answers[0] for query in queries])

    def measure_some(is_in: NDArray[np.bool_]) -> dict[str, Any]:
        groups = np.unique(first[is_in], return_inverse=True)[1]
        return {"queries": int(is_in.sum()), "success@5": with_interval(hits[is_in], groups)}

    return {
        "known": measure_some(known),
        "other": measure_some(~known),
        "by_locale": {
            name: {
                "queries": int((languages == name).sum()),
                "known share": round(float(known[languages == name].mean()), 4),
                "success@5": round(float(hits[languages == name].mean()), 4),
            }
            for name in sorted(set(languages.tolist()))
        },
    }


def is_known(query: Query, pieces: Pieces) -> bool:
    """Whether every word of a label is read as one piece."""
    folded = fold(query.text).split()
    return bool(folded) and all(len(pieces.encode(word)) == 1 for word in folded)


def draw(
    curves: dict[str, list[dict[str, Any]]], word_scores: dict[str, Any], path: Path
) -> list[Path]:
    """Draw recall against photos, and success on stamps against the share of known labels."""
    with chart(11, 4.8, columns=2) as (figure, (left, right)):
        for number, (language, curve) in enumerate(curves.items()):
            spans = [row["recall@10"]["interval"] for row in curve]
            with_intervals(
                left,
                [row["photos"] for row in curve],
                [row["recall@10"]["mean"] for row in curve],
                [low for low, _ in spans],
                [high for _, high in spans],
                label=f"{language} (aim {AIMS[language]})",
                number=number,
            )
        for aim in sorted(set(AIMS.values())):
            left.axhline(aim, color="#777777", linewidth=0.9, linestyle=":")
        sizes = [row["photos"] for row in curves["en"]]
        left.set_xscale("log", base=2)
        left.set_xticks(sizes, [f"{size:,}" for size in sizes])
        left.minorticks_off()
        left.set(xlabel="captioned photos to learn from", ylabel="R@10 on the test photos (%)")
        left.set_title("With the teachers themselves as text side")
        left.legend(ncols=2, loc="lower right")
        for name, row in word_scores["by_locale"].items():
            spot = 100 * row["known share"], 100 * row["success@5"]
            right.plot(*spot, **look(0) | {"markersize": 4})
            right.annotate(name, spot, fontsize=7, xytext=(3, 2), textcoords="offset points")
        right.set(xlabel="labels of which every word is one piece (%)", ylabel="success@5 (%)")
        right.set_title("`mini` on stamps, by locale")
        return save_chart(figure, path)


def main() -> None:
    """Measure both limits."""
    parser = bench_parser(__doc__, dataset="flickr8k", datasets=("drawn", "flickr8k"))
    for name in ("packages", "cldr", "wordnet"):
        parser.add_argument(f"--{name}", type=Path, help="as for `searchlab models build`")
    parser.add_argument("--cache", type=Path, default=Path("cache"), help="cache of that build")
    args = parser.parse_args()
    if args.smoke:
        args.dataset = "drawn"
    if on_record(args, "mini", "limits") is not None:
        return
    import torch

    from benchmarks.mini.learning import (
        STEPS,
        count_doublings,
        make_material,
        measure_learning,
        read_material,
    )

    torch.set_num_threads(args.threads)
    progress = ConsoleProgress(Console(stderr=True))
    sizes, heads, steps = ((100, 200), 1, 1) if args.smoke else (SIZES, HEADS, STEPS)
    if args.smoke:
        material = make_material(args.seed)
        queries = [Query("en", "red", (0,)), Query("de", "xqzblau", (1,))]
        pictures = [Image.new("RGB", (320, 320), color) for color in ("red", "navy")]
    else:
        root = Path(os.environ.get("SEARCHLAB_DATASETS", ""))
        if not (root / "stamps").is_dir():
            sys.exit(f"SEARCHLAB_DATASETS must name a folder that holds stamps, got {root}")
        if None in (args.packages, args.cldr, args.wordnet):
            sys.exit("--packages, --cldr and --wordnet must say what mini is made from")
        material = read_material(root, args, progress)
        task = load_stamps(root)
        queries = task.queries
        pictures = [Image.open(path).convert("RGB") for path in task.photos]
    curves: dict[str, list[dict[str, Any]]] = {}
    languages = [language for language in LANGUAGES if language in material.captions]
    languages = languages[:1] if args.smoke else languages
    with progress.step("training heads", len(languages) * len(sizes), unit="sizes") as step:
        for language in languages:
            curve = curves[language] = []
            n_captioned = len(np.unique(material.captions[language].photos))
            for size in sizes:
                if not curve or curve[-1]["photos"] < n_captioned:
                    curve.append(
                        measure_learning(
                            material, language, size, heads=heads, seed=args.seed, steps=steps
                        )
                    )
                step.advance(1)
    word_scores = score_words(queries, pictures, MiniEmbedder(threads=args.threads))
    metrics: dict[str, Any] = {
        f"recall@10.{language}.{row['photos']}": round(row["recall@10"]["mean"] / 100, 4)
        for language, curve in curves.items()
        for row in curve
    }
    metrics |= {
        f"doublings.{lang}": count_doublings(curve, AIMS[lang]) for lang, curve in curves.items()
    }
    shares = [row["known share"] for row in word_scores["by_locale"].values()]
    metrics["known share"] = round(float(np.mean(shares)), 4)
    for name in ("known", "other"):
        metrics[f"success@5.{name}"] = round(word_scores[name]["success@5"]["mean"] / 100, 4)
    for name, value in metrics.items():
        sys.stdout.write(f"{name:<40}{value}\n")
    place = measurement_path(args.out, "mini", args.dataset, "limits").with_suffix("")
    charts = draw(curves, word_scores, place)
    manifest = make_manifest("mini", models=models_of("mini"), seed=args.seed, threads=args.threads)
    values = {
        "parameters": {"sizes": list(sizes), "heads": heads, "aims": AIMS},
        "metrics": metrics,
        "learning": curves,
        "words": word_scores,
        "manifest": manifest,
    }
    record(args, "mini", "limits", values, beside=charts)


if __name__ == "__main__":
    main()
