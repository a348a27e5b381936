"""What adapting gains by the number of captioned photos, and what migrating loses by the sample.

    SEARCHLAB_DATASETS=... python -m benchmarks.adapt.bench_adapt --packages PACKAGES --data work
    python -m benchmarks.adapt.bench_adapt --smoke --out "$(mktemp -d)"

Heads are trained on the training photos of flickr8k and judged on its 1,000 test photos, by their
English captions. `mini` was itself trained on those training photos and their captions, so it
cannot show what adapting gains; it is adapted all the same, to show how little is left to gain. The
base is a model that was never trained on photos with captions: ConSE. It embeds a photo as the mean
of the vectors of the ImageNet classes that EfficientNet-lite2 recognises, and a text as
all-MiniLM-L6-v2 does (which was trained on pairs of sentences, captions of Flickr photos among
them, but on no photo). PACKAGES is the folder where the packages of the two are unpacked, see
`searchlab.training.mini.materials`.

--stored MODEL_ID also migrates from a model that is not installed any more, such as the `mini` of
an earlier version, whose vectors of photos and texts an earlier run left in --data.

Writes results/adapt/<dataset>/{curve,migrate}.json, and skips what is on record (--force measures
again). --data keeps the embeddings; it is a temporary folder if left out, and embedding takes some
minutes. --smoke takes the bundled photos, `mini`, and `mini` with the axes of its space moved; it
writes the same files and needs no packages.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.adapt.base_models import ConseEmbedder, StoredEmbedder
from benchmarks.common.recording import bench_parser, on_record, record
from searchlab.cli.console import ConsoleProgress
from searchlab.errors import NotFoundError
from searchlab.evaluation.datasets import ENVIRONMENT, external_root, load_dataset
from searchlab.evaluation.provenance.manifest import make_manifest
from searchlab.evaluation.significance import bootstrap_interval
from searchlab.files import sha256_of
from searchlab.library.library import create_library
from searchlab.models import load_model
from searchlab.models.adapted import AdaptedEmbedder, Head
from searchlab.progress import Progress
from searchlab.training.adapt.captions import CaptionedPhoto, PhotoCaption, file_captions
from searchlab.training.adapt.head_training import Trainer, TrainingSettings
from searchlab.training.adapt.pairs import CaptionPairs, embed_pairs, part_of
from searchlab.training.adapt.ranking import Gain, Queries, measure_gain, queries_of
from searchlab.training.migrate.losses import LearntMap
from searchlab.training.migrate.maps import neighbour_recall

SIZES = (100, 300, 1_000, 3_000)
SAMPLES = (50, 100, 200, 500, 1_000, 2_000, 4_000)


def read_flickr(place: Path) -> tuple[list[CaptionedPhoto], set[str]]:
    """Read captions of all training and test photos; also the digests of the test photos."""
    root = external_root()
    if root is None:
        msg = f"the training photos do not ship with searchlab; set {ENVIRONMENT}"
        raise NotFoundError(msg)
    lines, test_digests = [], set()
    for folder in (root / "flickr8k", root / "flickr8k-train"):
        photos = {}
        for row in _read_tsv(folder / "photos.tsv"):
            split = row.get("split", "train")
            if split in ("train", "test"):
                photos[row["photo_id"]] = folder / row["file"]
                if split == "test":
                    test_digests.add(sha256_of(folder / row["file"]))
        for row in _read_tsv(folder / "captions.tsv"):
            if row["photo_id"] in photos and row["lang"] == "en":
                lines.append(f"{photos[row['photo_id']]}\t{row['text']}\t{row['lang']}")
    file = place / "captions.tsv"
    file.write_text("\n".join(lines), encoding="utf-8")
    with create_library(place / "library").cache() as cache:
        photos_read, problems = file_captions(file, cache, Progress())
    for problem in problems:
        print(f"skipped {problem.where}: {problem.reason}")
    return photos_read, test_digests


def _read_tsv(path: Path) -> list[dict[str, str]]:
    head, *lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    names = head.split("\t")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def read_bundled(n: int) -> tuple[list[CaptionedPhoto], set[str]]:
    """Read `n` bundled photos with their descriptions; a third of them are test photos."""
    records = load_dataset("demo").records[:n]
    photos = [
        CaptionedPhoto(
            sha256_of(Path(str(record["file"]))),
            Path(str(record["file"])),
            (PhotoCaption(str(record["source_description"] or record["title"]), "en"),),
        )
        for record in records
    ]
    photos = list({photo.sha256: photo for photo in photos}.values())
    return photos, {photo.sha256 for photo in photos[::3]}


def keep_first(pairs: CaptionPairs, n_photos: int) -> CaptionPairs:
    """Keep the first photos; they are in the order of their digests, which is as good as random."""
    return pairs.keep(np.arange(len(pairs)) < n_photos)


def train_heads(
    pairs: CaptionPairs, settings: TrainingSettings
) -> tuple[Head, Head, dict[str, Any]]:
    """Train heads; the photos of part "validation", 15 % of them, are held out to choose by."""
    is_validation = np.array([part_of(sha256) == "validation" for sha256 in pairs.sha256s])
    began = time.perf_counter()
    trainer = Trainer(pairs.keep(~is_validation), pairs.keep(is_validation), settings)
    while not trainer.done:
        trainer.train_round()
    image, text, share = trainer.heads()
    history = {
        "n_photos": len(pairs),
        "n_captions": len(pairs.texts),
        "n_train": int((~is_validation).sum()),
        "train_s": round(time.perf_counter() - began, 1),
        "rounds": trainer.round,
        "best": trainer.best,
        "share": share,
    }
    return image, text, history


def measure_heads(test: CaptionPairs, image: Head, text: Head) -> Gain:
    """Measure what heads gain on test photos."""
    queries = queries_of(test, most=len(test.texts))
    return measure_gain(queries, test.photos, image(test.photos), head=text)


def measure_curve(
    name: str, train: CaptionPairs, test: CaptionPairs, sizes: Sequence[int], seed: int
) -> list[dict[str, Any]]:
    """Adapt a model on more and more photos; returns a row for each number of photos."""
    rows = []
    for size in [*(size for size in sizes if size < len(train)), len(train)]:
        image, text, history = train_heads(keep_first(train, size), TrainingSettings(seed=seed))
        gain = measure_heads(test, image, text)
        rows.append({"model": name, **history, "gain": gain.to_dict()})
        interval = gain.difference["mrr@10"].macro
        print(
            f"{name}, {size:,} photos: mrr@10 {interval.mean:+.3f} [{interval.low:+.3f}, "
            f"{interval.high:+.3f}], {history['train_s']:.0f} s"
        )
    return rows


def measure_migration(
    old: tuple[CaptionPairs, CaptionPairs],
    new: tuple[CaptionPairs, CaptionPairs],
    samples: Sequence[int],
) -> dict[str, Any]:
    """Map rows of one model to those of another, from more and more photos."""
    (old_train, old_test), (train, test) = old, new
    queries, old_queries = (queries_of(pairs, most=6_000) for pairs in (test, old_test))
    rows = []
    for size in (size for size in samples if size < len(train)):
        held_out = np.arange(size, min(size + max(30, size // 4), len(train)))
        learnt = LearntMap(
            np.concatenate([old_train.photos, old_test.photos]),
            np.concatenate([train.photos, test.photos]),
            [np.arange(size), held_out, np.arange(len(train), len(train) + len(test))],
        )
        similar = bootstrap_interval(neighbour_recall(learnt.true, learnt.mapped, learnt.true))
        recalls = neighbour_recall(queries.texts, learnt.mapped, learnt.true, own=False)
        interval = bootstrap_interval(
            recalls, clusters=[str(photo) for photo in queries.cluster_ids]
        )
        rows.append(
            {
                "n_sample": size + len(held_out),
                "map": learnt.kind,
                "similar": list(similar),
                "told": list(interval),
                **measure_success(queries, learnt),
            }
        )
        print(f"{size:,} photos, {learnt.kind}: neighbours kept {similar}, captions {interval}")
    return {
        "old success@10": share_found(old_queries.ranks(old_test.photos)),
        "new success@10": share_found(queries.ranks(test.photos)),
        "n_test": len(test),
        "n_queries": len(queries.texts),
        "rows": rows,
    }


def share_found(ranks: NDArray[np.int64]) -> float:
    """Return the share of queries whose photo is among the first ten."""
    return round(float((ranks < 10).mean()), 6)


def measure_success(queries: Queries, learnt: LearntMap) -> dict[str, float]:
    """Measure how many captions find their photo, if all are mapped, and if every tenth is not."""
    is_unmapped = np.arange(len(learnt.true)) % 10 == 0
    mixed = np.where(is_unmapped[:, None], learnt.true, learnt.mapped)
    ranks = queries.ranks(mixed)
    finds_unmapped = is_unmapped[queries.cluster_ids]
    return {
        "success@10": share_found(queries.ranks(learnt.mapped)),
        "success@10 where a tenth is not mapped": share_found(ranks),
        "of those not mapped": share_found(ranks[finds_unmapped]),
        "of those mapped": share_found(ranks[~finds_unmapped]),
    }


def main() -> None:
    """Embed, measure, write."""
    parser = bench_parser(__doc__, dataset="flickr8k", datasets=("demo", "flickr8k"))
    parser.add_argument("--packages", type=Path, help="folder of the base's unpacked packages")
    parser.add_argument("--data", type=Path, help="folder to work in, which is kept")
    parser.add_argument("--stored", help="model_id of a model of 160 components stored in --data")
    options = parser.parse_args()
    if options.smoke:
        options.dataset = "demo"
    if all(on_record(options, "adapt", name) is not None for name in ("curve", "migrate")):
        return
    if options.dataset == "demo":
        base = load_model("mini")
        turned = Head(
            np.roll(np.eye(base.dim, dtype=np.float32), 1, axis=1), np.zeros(1, np.float32)
        )
        new = AdaptedEmbedder("turned", base, turned, turned)
    elif options.packages is not None:
        base, new = ConseEmbedder(options.packages), load_model("mini")
    else:
        parser.error("--packages must name the folder of the base's packages")
    with tempfile.TemporaryDirectory() as scratch:
        place = options.data or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        library = create_library(place / "library")
        photos, test_digests = (
            read_bundled(24 if options.smoke else 300)
            if options.dataset == "demo"
            else read_flickr(place)
        )
        progress = ConsoleProgress(Console(stderr=True))
        with library.cache() as cache:
            models = [base, new]
            if options.stored:
                models.append(StoredEmbedder(options.stored, 160))
            pairs = [embed_pairs(photos, m, library, cache, progress)[0] for m in models]
    # A photo whose captions say nothing to one of the models is left out for all.
    in_all = set.intersection(*(set(of_model.sha256s) for of_model in pairs))
    pairs = [of_model.keep(np.array([s in in_all for s in of_model.sha256s])) for of_model in pairs]
    is_test = np.array([sha256 in test_digests for sha256 in pairs[0].sha256s])
    halves = [(of_model.keep(~is_test), of_model.keep(is_test)) for of_model in pairs]
    adapted = measure_curve(base.name, *halves[0], SIZES, options.seed)
    adapted += measure_curve(new.name, *halves[1], (), options.seed)
    migrations = {"migrate": measure_migration(halves[0], halves[1], SAMPLES)}
    if options.stored:
        migrations["upgrade"] = measure_migration(halves[2], halves[1], SAMPLES)
    about = {
        "n_train": len(halves[0][0]),
        "n_test": len(halves[0][1]),
        "manifest": make_manifest(
            "adapt",
            models=[{"spec": model.name, "model_id": model.model_id} for model in models],
            seed=options.seed,
        ),
    }
    curves = {"metrics": metrics_of_curve(adapted), "curve": adapted}
    maps = {"metrics": metrics_of_maps(migrations), **migrations}
    record(options, "adapt", "curve", about | curves)
    record(options, "adapt", "migrate", about | maps)


def metrics_of_curve(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Name the figures for prose: `conse.300.mrr@10.difference`, with `.low` and `.high`."""
    metrics = {}
    for row in rows:
        for side in ("before", "after", "difference"):
            mean, low, high = row["gain"][side]["mrr@10"]["macro"]
            name = f"{row['model']}.{row['n_photos']}.mrr@10.{side}"
            metrics |= {name: mean, f"{name}.low": low, f"{name}.high": high}
    return metrics


def metrics_of_maps(migrations: dict[str, dict[str, Any]]) -> dict[str, float]:
    """Name the figures for prose: `migrate.250.similar`, `migrate.250.success@10`."""
    metrics = {}
    for part, figures in migrations.items():
        metrics |= {f"{part}.{name}": figures[name] for name in figures if "success" in name}
        for row in figures["rows"]:
            where = f"{part}.{row['n_sample']}"
            metrics |= {f"{where}.{name}": row[name][0] for name in ("similar", "told")}
            metrics[f"{where}.success@10"] = row["success@10"]
    return metrics


if __name__ == "__main__":
    main()
