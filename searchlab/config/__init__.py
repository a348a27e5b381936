"""Config: every choice that can change a ranking or a score, frozen and hashed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from searchlab.config.calibration import UNCALIBRATED, Calibration, finite_number
from searchlab.config.indexes import check_index_name, load_index
from searchlab.config.operating_points import OperatingPoints
from searchlab.config.word_weights import USUAL_WORDS, WordWeights
from searchlab.errors import DataError, InputError, MismatchError, NotFoundError, quote
from searchlab.files import digest_of

COLOR_METRIC = "oklab-255"
MIXINGS = ("sum", "standardised")
READ_TEXTS = ("all", "shown")

# Left out of `to_dict` while they have their defaults, so that ids on record stay what they are.
_LATER = (
    "n_lists",
    "recall",
    "tuning",
    "build_threads",
    "words",
    "mixing",
    "newest_score",
    "read_texts",
)


def _canonical(values: Mapping[str, Any]) -> str:
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _id_of(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(values).encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class Config:
    """Every choice that can change a ranking or a score.

    Attributes:
        model: Spec of the embedding model, as `load_model` reads it.
        model_id: The model's own hash; empty until a library or an experiment has loaded it.
        index: `"exact"`, `"hnsw"`, `"clustered"`, or `"exact-on-device"` for evaluation; or an
            engine elsewhere with its address, `"pgvector:URL"` or `"milvus:URI"`.
        M: Links of a node in the graph, 2 to 200 (hnsw, pgvector up to 100, milvus).
        ef_construction: Candidates looked at while building, at least `M` (hnsw).
        ef_search: Candidates looked at while searching, at least 1 (hnsw).
        step_rows: Photos that are scored exactly in the time of one step through the graph, 0 to
            always take the graph; the planner goes by it where there is no `tuning` (hnsw).
        depth: Photos that the index ranks at least; those after them are ranked by exact score. The
            clustered index ranks up to a thousand, where there are a hundred times as many.
        steering: Weight of the text beside the picture, for each unit of `text_alpha`.
        mixing: How the text is added to the picture: `"sum"`, as the model embeds both, or
            `"standardised"`, without what all texts share, and brought to the picture's spread over
            the photos of the library.
        color_metric: The perceptual metric of the colour filters.
        calibration: From cosines to `relevance_score`.
        seed: Seed of the graph's levels and of the clusters' centres.
        n_lists: Number of clusters, 0 to choose it by the number of photos (clustered).
        recall: Recall target: the share of the true nearest photos that a search should find,
            above 0 to 1. The clustered index aims at it; where there is a `tuning`, the planner
            takes the least effort that was measured to reach it.
        tuning: What `searchlab tune` measured; it holds for the index that it was measured on.
        build_threads: Threads that build the graph, 0 for one a core. One builds the same graph
            every time; several are faster in proportion and as good in recall, but no two of their
            graphs are alike (hnsw).
        words: How much it counts that words of a text query are written about a photo; None to rank
            by vectors alone.
        newest_score: Least score, 0 to 1, of the photos that a query with words shows when they are
            sorted by date and it names no `score_threshold`. Without effect at 0, and where no
            scores were fitted, so that they are only an order.
        read_texts: The texts in which words are looked up: `"all"`, or only what others are
            `"shown"`, as a server does: not names of files and folders, keywords and places, which
            are the owner's.
    """

    model: str = "mini"
    model_id: str = ""
    index: str = "exact"
    M: int = 16
    ef_construction: int = 200
    ef_search: int = 100
    step_rows: int = 4
    depth: int = 200
    steering: float = 1.0
    color_metric: str = COLOR_METRIC
    calibration: Calibration = field(default=UNCALIBRATED)
    seed: int = 0
    n_lists: int = 0
    recall: float = 0.99
    tuning: OperatingPoints | None = None
    build_threads: int = 1
    words: WordWeights | None = None
    mixing: str = "sum"
    newest_score: float = 0.25
    read_texts: str = "all"

    def __post_init__(self) -> None:
        for name in ("model", "model_id"):
            if not isinstance(getattr(self, name), str):
                msg = f"{name} must be a name, got {quote(getattr(self, name))}"
                raise InputError(msg)
        check_index_name(self.index)
        ranges = {"M": (2, 200), "ef_construction": (self.M, 10_000), "ef_search": (1, 100_000)}
        ranges |= {"step_rows": (0, 2**40), "depth": (1, 100_000), "seed": (0, 2**31 - 1)}
        ranges |= {"n_lists": (0, 2**20), "build_threads": (0, 1_024)}
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                msg = f"{name} must be an integer from {low} to {high}, got {quote(value)}"
                raise InputError(msg)
        object.__setattr__(
            self, "steering", finite_number("steering", self.steering, positive=True)
        )
        object.__setattr__(self, "recall", finite_number("recall", self.recall, positive=True))
        if self.recall > 1:
            msg = f"recall must be a number above 0 and at most 1, got {quote(self.recall)}"
            raise InputError(msg)
        newest = finite_number("newest_score", self.newest_score)
        if not 0 <= newest <= 1:
            msg = f"newest_score must be a number from 0 to 1, got {quote(self.newest_score)}"
            raise InputError(msg)
        object.__setattr__(self, "newest_score", newest)
        if not isinstance(self.tuning, OperatingPoints | None):
            msg = f"tuning must be OperatingPoints or none, got {quote(self.tuning)}"
            raise InputError(msg)
        if not isinstance(self.words, WordWeights | None):
            msg = f"words must be WordWeights or none, got {quote(self.words)}"
            raise InputError(msg)
        if not isinstance(self.mixing, str) or self.mixing not in MIXINGS:
            msg = f"mixing must be one of {', '.join(MIXINGS)}, got {quote(self.mixing)}"
            raise InputError(msg)
        if not isinstance(self.read_texts, str) or self.read_texts not in READ_TEXTS:
            msg = f"read_texts must be one of {', '.join(READ_TEXTS)}, got {quote(self.read_texts)}"
            raise InputError(msg)
        if self.color_metric != COLOR_METRIC:
            msg = f"color_metric must be {COLOR_METRIC!r}, got {quote(self.color_metric)}"
            raise InputError(msg)

    def with_model_id(self, model_id: str) -> Config:
        """Fill in the hash of the loaded model.

        Raises:
            MismatchError: The configuration was measured with other weights.
        """
        if self.model_id not in ("", model_id):
            msg = (
                f"a configuration holds for the weights that it was measured with, "
                f"{self.model_id!r}, got {model_id!r}; measure again, or load that model"
            )
            raise MismatchError(msg)
        return replace(self, model_id=model_id)

    def for_others(self) -> Config:
        """Return the configuration that looks words up only in what others are shown."""
        return self if self.words is None else replace(self, read_texts="shown")

    @cached_property
    def config_id(self) -> str:
        """12 hex digits of the SHA-256 over the canonical JSON of `to_dict`."""
        return _id_of(self.to_dict())

    @cached_property
    def index_id(self) -> str:
        """12 hex digits of the hash over what the index is built from, without its photos."""
        names = ("model_id", "index", *load_index(self.index).built_from(self))
        return _id_of({name: getattr(self, name) for name in names})

    @property
    def measured(self) -> OperatingPoints | None:
        """The tuning, if it was measured on this index; None otherwise."""
        is_ours = self.tuning is not None and self.tuning.index_id == self.index_id
        return self.tuning if is_ours else None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, without those of `_LATER` that have their defaults."""
        values = dataclasses.asdict(self) | {"calibration": self.calibration.to_dict()}
        defaults = {field.name: field.default for field in dataclasses.fields(self)}
        return {n: v for n, v in values.items() if n not in _LATER or v != defaults[n]}

    def to_json(self) -> str:
        """Return the canonical JSON: sorted keys, no spaces, shortest floats."""
        return _canonical(self.to_dict())

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """Rebuild a Config from `to_dict`.

        Raises:
            InputError: An unknown or missing field, or a value out of range.
        """
        known = {f.name for f in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            msg = f"a config must have only the fields {', '.join(sorted(known))}, got {unknown}"
            raise InputError(msg)
        plain = dict(values)
        if "calibration" in plain:
            plain["calibration"] = Calibration.from_dict(plain["calibration"])
        if plain.get("tuning") is not None:
            plain["tuning"] = OperatingPoints.from_dict(plain["tuning"])
        if plain.get("words") is not None:
            plain["words"] = WordWeights.from_dict(plain["words"])
        return cls(**plain)

    @classmethod
    def load(cls, path: Path | str) -> Config:
        """Read a Config from a JSON file: the config itself, or a result file that holds one.

        Raises:
            NotFoundError: There is no such file.
            DataError: The file is not JSON or holds no config, or it has a seal (`digest`) and was
                changed since.
        """
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
            if "digest" in values and values["digest"] != digest_of(values):
                msg = (
                    f"{path} must be as it was written, got figures that were changed after they "
                    "were written; promote the result again"
                )
                raise DataError(msg)
            return cls.from_dict(values.get("config", values))
        except FileNotFoundError as error:
            msg = f"{path} must hold a config as JSON, got no file; write it with `searchlab demo`"
            raise NotFoundError(msg) from error
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            msg = f"{path} must hold a config as JSON, got: {error}; write it with `searchlab demo`"
            raise DataError(msg) from error


USUAL_CHOICES: Final[dict[str, Any]] = {
    "words": USUAL_WORDS,
    "mixing": "standardised",
    "steering": 0.59,
}
"""Fields of new libraries that a plain `Config` has not: `grid(models=[...], **USUAL_CHOICES)`."""

USUAL = Config(**USUAL_CHOICES)
"""Of new libraries. At the usual `text_alpha` text and picture count the same."""
