"""Adapting: train heads on your own captioned photos, and keep them only if they gain.

The photos are split by their content, always in the same way: heads are trained on one part, chosen
by the second, and judged on the third, which no choice depends on. Photos and captions are embedded
once and kept in the library's cache, and training saves its state every few seconds. So a run that
was stopped, by Ctrl-C or by a power cut, continues when it is called again.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from searchlab.errors import ConflictError, InputError, refuse_names
from searchlab.library.cache import ContentCache
from searchlab.library.library import Library
from searchlab.library.mapped_vectors import map_known_vectors
from searchlab.library.models import MODELS_FOLDER, load_model_of
from searchlab.models import load_model
from searchlab.models.adapted import AdaptedEmbedder
from searchlab.models.protocol import Embedder
from searchlab.photos.sidecar import Skipped
from searchlab.progress import Progress
from searchlab.training.adapt.captions import (
    NO_LANGUAGE,
    CaptionedPhoto,
    file_captions,
    library_captions,
)
from searchlab.training.adapt.head_training import Trainer, TrainingSettings
from searchlab.training.adapt.model_folder import (
    install,
    is_model_folder,
    make_calibration,
    write_adapted,
)
from searchlab.training.adapt.pairs import CaptionPairs, Part, embed_pairs
from searchlab.training.adapt.ranking import HEADLINE, METRICS, Gain, measure_gain, queries_of

CHECKPOINT: Final = "training.npz"
MIN_TEST: Final = 20
"""Fewest photos to measure the gain on: with fewer, its interval would be too narrow."""
_CHECKPOINT_S = 5.0
_NAMES = {NO_LANGUAGE: "language not given"}


@dataclass(frozen=True)
class Adaptation:
    """What adapting did.

    Attributes:
        kept: Whether the model is kept: the whole interval of its gain lies above zero.
        folder: Where the model lies; None if it was not kept.
        model: Spec of the adapted model, or of the base if it was not kept.
        model_id: Id of the model that `model` names.
        base: Spec of the model that it started from.
        gain: What the heads gain over the base on the test photos.
        n_photos: Photos by part: `train`, `validation`, `test`.
        n_captions: Captions by language.
        rounds: Rounds trained, the number of the best one, and the share, 0 to 1, to which its
            heads are applied.
        seconds: Time of the training alone.
        problems: Lines and photos that were skipped.
    """

    kept: bool
    folder: Path | None
    model: str
    model_id: str
    base: str
    gain: Gain
    n_photos: dict[str, int]
    n_captions: dict[str, int]
    rounds: tuple[int, int, float]
    seconds: float
    problems: list[Skipped] = field(default_factory=list, repr=False)

    @property
    def verdict(self) -> str:
        """One sentence: what was gained, and whether the model is kept."""
        headline = self.gain.headline
        gain = f"{HEADLINE} {headline.mean:+.3f} [{headline.low:+.3f}, {headline.high:+.3f}]"
        if self.kept:
            return f"{self.model} gains {gain} over {self.base} on photos that it has not seen"
        return (
            f"an adapted model must gain on photos that it has not seen, got {gain} over "
            f"{self.base}; nothing is kept: bring more photos or captions, or stay with {self.base}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        best = {"rounds": self.rounds[0], "best": self.rounds[1], "share": self.rounds[2]}
        return {
            "n_photos": self.n_photos,
            "n_captions": self.n_captions,
            "training": best | {"seconds": round(self.seconds, 1)},
            "gain": self.gain.to_dict(),
        }

    def __str__(self) -> str:
        photos, gain = self.n_photos, self.gain
        captions = ", ".join(
            f"{count:,} {_NAMES.get(lang, lang)}" for lang, count in self.n_captions.items()
        )
        lines = [
            f"{sum(photos.values()):,} captioned photos: {photos['train']:,} to train on, "
            f"{photos['validation']:,} to choose by, {photos['test']:,} to test on",
            f"captions: {captions}",
            f"{gain.n_queries:,} captions of the test photos, searched among these photos:",
            f"  {'':34}{'before':>8}{'after':>8}    gain [95 % by bootstrap over photos]",
        ]
        for metric in METRICS:
            langs = gain.difference[metric].groups
            label = f"{metric}, mean of languages" if len(langs) > 1 else metric
            before, after, difference = (
                side[metric].macro for side in (gain.before, gain.after, gain.difference)
            )
            lines.append(_line(label, before.mean, after.mean, difference))
            for lang, interval in langs.items() if len(langs) > 1 else ():
                name = f"  {_NAMES.get(lang, lang)}"
                was, now = (side[metric].groups[lang].mean for side in (gain.before, gain.after))
                lines.append(_line(name, was, now, interval))
        return "\n".join(lines)


def _line(label: str, before: float, after: float, difference: tuple[float, float, float]) -> str:
    mean, low, high = difference
    return f"  {label:34}{before:8.3f}{after:8.3f}    {mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def adapt(
    library: Library,
    *,
    model: str | None = None,
    captions: Path | str | None = None,
    out: Path | str | None = None,
    settings: TrainingSettings | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Adaptation:
    """Train small heads for a model on captioned photos; keep them if they gain.

    The model itself is not changed, so minutes are enough. The result is a model like any other:
    `adapted:FOLDER` can be indexed with, served, evaluated, or be a part of a hybrid. Needs no
    torch, unless the base model does.

    Args:
        library: Its cache keeps embeddings. Without `captions`, the heads are trained on its photos
            and what people wrote of them: descriptions, titles and alternative texts.
        model: Spec of the base, which must read pixels; the library's model if left out.
        captions: A .tsv or .jsonl file of photos and captions, see
            `searchlab.training.adapt.captions`.
        out: Folder of the new model; `models/adapted` in the library if left out.
        settings: How to train.
        force: Replace a model that exists.
        progress: Shows every step.

    Returns:
        The report; `kept` says whether there is a new model.

    Raises:
        InputError: A model that cannot be adapted, or too few captioned photos.
        ConflictError: `out` exists already, or another process writes to the library.
    """
    refuse_names("open_library(folder)", library=library)
    progress, settings = progress or Progress(), settings or TrainingSettings()
    base = _load_base(library, model)
    folder = Path(out) if out is not None else library.folder / MODELS_FOLDER / "adapted"
    folder = folder.expanduser().resolve()
    _check_place(folder, base, force=force)
    is_ours_around = out is None or not folder.parent.exists()
    with library.writing(), library.cache() as cache:
        photos, problems = _read_captions(library, captions, cache, progress)
        pairs, unreadable = embed_pairs(photos, base, library, cache, progress)
    problems += unreadable
    names: tuple[Part, ...] = ("train", "validation", "test")
    parts = {name: pairs.part(name) for name in names}
    _check_sizes(parts, len(pairs), problems)
    working = folder.with_name(f"{folder.name}.unfinished")
    with _lock(working):
        report = _make_adapted(base, pairs, parts, folder, working, settings, problems, progress)
        shutil.rmtree(working)
    if report.kept:
        _store_rows(library, pairs, load_model(report.model), progress)
    if is_ours_around and not any(folder.parent.iterdir()):
        folder.parent.rmdir()
    return report


def _check_place(folder: Path, base: Embedder, *, force: bool) -> None:
    """Let a model go into a new folder, or with force in place of a model that it does not need."""
    if not folder.exists():
        return
    is_adapted = is_model_folder(folder)
    if not force or not is_adapted:
        told = (
            "which exists; choose another, or replace it with --force (force=True)"
            if is_adapted
            else "which is none; choose another with --out (out=...)"
        )
        msg = (
            "an adapted model must go into a new folder, or in place of another adapted model, "
            f"got {folder}, {told}"
        )
        raise ConflictError(msg)
    below: Embedder | None = base
    while below is not None:
        if below.name.partition(":")[2] == str(folder):
            msg = (
                f"a model must not replace one that it stands on, got {folder}; choose another "
                "folder with --out (out=...)"
            )
            raise ConflictError(msg)
        below = getattr(below, "base", None)


@contextmanager
def _lock(working: Path) -> Iterator[None]:
    """Keep other processes away from the unfinished folder of a model."""
    from filelock import FileLock, Timeout

    working.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(working / "lock", timeout=0):
            yield
    except Timeout as error:
        msg = f"{working} must belong to one process, and another one trains in it; wait for it"
        raise ConflictError(msg) from error


def _make_adapted(
    base: Embedder,
    pairs: CaptionPairs,
    parts: dict[Part, CaptionPairs],
    folder: Path,
    working: Path,
    settings: TrainingSettings,
    problems: list[Skipped],
    progress: Progress,
) -> Adaptation:
    """Train, judge, and write the model if it gains."""
    began = time.perf_counter()
    trainer = _train(parts["train"], parts["validation"], settings, working, progress)
    seconds = time.perf_counter() - began
    image, text, share = trainer.heads()
    test = parts["test"]
    gain = measure_gain(
        queries_of(test, most=len(test.texts)),
        test.photos,
        image(test.photos),
        head=text,
        seed=settings.seed,
    )
    kept = gain.headline.low > 0
    adapted = AdaptedEmbedder(f"adapted:{folder}", base, image, text)
    report = Adaptation(
        kept=kept,
        folder=folder if kept else None,
        model=adapted.name if kept else base.name,
        model_id=adapted.model_id if kept else base.model_id,
        base=base.name,
        gain=gain,
        n_photos={name: len(part) for name, part in parts.items()},
        n_captions=dict(sorted(Counter(pairs.langs.tolist()).items())),
        rounds=(trainer.round, trainer.best, share),
        seconds=seconds,
        problems=problems,
    )
    if kept:
        adapted.calibration = make_calibration(parts["validation"], base, image, text)
        details = report.to_dict() | {"settings": asdict(settings), "data": pairs.fingerprint}
        write_adapted(working / "model", adapted, details, str(report))
        install(working / "model", folder)
    return report


def _load_base(library: Library, spec: str | None) -> Embedder:
    """Load the model to adapt; without a spec, the library's model or the base of that one."""
    if spec is None:
        snapshot = library.snapshot()
        model = (
            load_model("mini")
            if snapshot is None
            else load_model_of(library.folder, snapshot.config)
        )
        while (base := getattr(model, "base", None)) is not None:
            model = base
    else:
        model = load_model(spec)
    if len(model.parts) != 1 or model.parts[0][0] is not model:
        parts = ", ".join(part.name for part, _ in model.parts)
        msg = (
            f"a model to adapt must be a plain one, got {model.name}; adapt one of {parts} with "
            "--model, and put the result in its place in the hybrid"
        )
        raise InputError(msg)
    if model.reads != "image":
        msg = (
            f"a model to adapt must read pixels, got {model.name}, which reads descriptions; "
            "adapt mini with --model mini, and fuse the two as a hybrid"
        )
        raise InputError(msg)
    if model.name.partition(":")[0] in ("migrated", "vectors"):
        msg = (
            f"a model to adapt must be one that embeds photos itself, got {model.name}; name the "
            "model that made its vectors with --model"
        )
        raise InputError(msg)
    return model


def _read_captions(
    library: Library, captions: Path | str | None, cache: ContentCache, progress: Progress
) -> tuple[list[CaptionedPhoto], list[Skipped]]:
    if captions is None:
        return library_captions(library), []
    return file_captions(Path(captions), cache, progress)


def _check_sizes(parts: dict[Part, CaptionPairs], n_all: int, problems: list[Skipped]) -> None:
    n_test, n_validation = len(parts["test"]), len(parts["validation"])
    if min(n_test, n_validation) >= MIN_TEST:
        return
    skipped = "".join(
        f" ({len(problems)} skipped, such as {p.where}: {p.reason})" for p in problems[:1]
    )
    msg = (
        f"an adapted model must be tested on at least {MIN_TEST} photos, and chosen by as many, "
        f"got {n_test} and {n_validation} out of {n_all} captioned photos"
        f"{skipped}; bring about {9 * MIN_TEST} photos with captions"
    )
    raise InputError(msg)


def _store_rows(library: Library, pairs: CaptionPairs, model: Embedder, progress: Progress) -> None:
    """Store adapted rows of all photos that the base has embedded: indexing then embeds nothing."""
    snapshot = library.snapshot()
    indexed = () if snapshot is None else snapshot.table.texts("sha256")
    with library.cache() as cache:
        map_known_vectors(list({*indexed, *pairs.sha256s}), [model], cache, progress)


def _train(
    train: CaptionPairs,
    validation: CaptionPairs,
    settings: TrainingSettings,
    working: Path,
    progress: Progress,
) -> Trainer:
    checkpoint = working / CHECKPOINT
    trainer = Trainer(train, validation, settings)
    if trainer.restore(checkpoint):
        progress.say(f"training continues after round {trainer.round}")
    saved = time.monotonic()
    with progress.step("training heads", settings.rounds, unit="rounds") as step:
        step.advance(trainer.round)
        while not trainer.done:
            trainer.train_round()
            step.advance(1)
            step.note(f"best so far after round {trainer.best}")
            if time.monotonic() - saved >= _CHECKPOINT_S or trainer.done:
                trainer.save(checkpoint)
                saved = time.monotonic()
    return trainer
