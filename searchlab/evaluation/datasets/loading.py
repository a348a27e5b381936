"""Load a dataset by its name, or a dataset of your own by its folder."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

from searchlab.errors import DataError, NotFoundError
from searchlab.evaluation.datasets.bundled import (
    demo,
    demo_everyday,
    demo_names,
    demo_proper_names,
)
from searchlab.evaluation.datasets.chinese import (
    flickr8k_described_zh,
    flickr8k_words_described_zh,
)
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.derived import derive_similar, derive_steered
from searchlab.evaluation.datasets.external import (
    coco_judge,
    flickr8k,
    flickr8k_abroad,
    flickr8k_captions,
    flickr8k_described,
    flickr8k_similar,
    flickr8k_words,
    flickr8k_words_described,
    stamps,
    web_judge,
)
from searchlab.evaluation.datasets.folders import read_dataset
from searchlab.evaluation.datasets.foreign import is_foreign, read_foreign
from searchlab.evaluation.datasets.written import (
    derive_half_written,
    derive_misspelt,
    derive_written,
    without_language,
)
from searchlab.plugins import load_plugin, plugin_names

DATASETS: dict[str, Callable[[], Dataset]] = {
    "demo": demo,
    "demo-everyday": demo_everyday,
    "demo-names": demo_names,
    "demo-similar": lambda: derive_similar(
        demo_names().select(kinds=["label", "title"]), "demo-similar"
    ),
    "demo-steered": lambda: derive_steered(demo_names(), "demo-steered"),
    "demo-proper-names": demo_proper_names,
    "demo-written": lambda: derive_written(demo(), "demo-written"),
    "demo-written-abroad": lambda: without_language(
        derive_written(demo(), "demo-written"), "demo-written-abroad", ["en"]
    ),
    "demo-written-half": lambda: derive_half_written(demo(), "demo-written-half"),
    "demo-written-misspelt": lambda: derive_misspelt(
        derive_written(demo(), "demo-written"), "demo-written-misspelt"
    ),
    "coco-judge": coco_judge,
    "flickr8k": flickr8k,
    "flickr8k-abroad": flickr8k_abroad,
    "flickr8k-captions": flickr8k_captions,
    "flickr8k-described": flickr8k_described,
    "flickr8k-described-half": lambda: derive_half_written(
        flickr8k_described(), "flickr8k-described-half"
    ),
    "flickr8k-described-misspelt": lambda: derive_misspelt(
        flickr8k_described(), "flickr8k-described-misspelt"
    ),
    "flickr8k-described-zh": flickr8k_described_zh,
    "flickr8k-similar": flickr8k_similar,
    "flickr8k-words": flickr8k_words,
    "flickr8k-words-described": flickr8k_words_described,
    "flickr8k-words-described-zh": flickr8k_words_described_zh,
    "flickr8k-steered": lambda: derive_steered(flickr8k(), "flickr8k-steered", least=2),
    "stamps": stamps,
    "web-judge": web_judge,
}
"""Name of a dataset that ships or was registered -> its loader."""

PLUGINS = "searchlab.datasets"
"""Entry points by which other packages add loaders."""


def dataset_names() -> list[str]:
    """List the datasets that `load_dataset` knows, those of installed packages among them."""
    return sorted({*DATASETS, *plugin_names(PLUGINS)})


def load_dataset(name: str | Path) -> Dataset:
    """Load a dataset by its name, or from a folder.

    | name | task | queries and what they look for |
    |---|---|---|
    | `demo` | text | names find the photos they name, and those of the same kind, 114 languages |
    | `demo-everyday` | text | everyday queries; every photo was looked at, grades 0 to 3 |
    | `demo-names` | text | as `demo`, but only the photos that bear the very name |
    | `demo-similar` | photo | a photo finds those that share its names, grades 1 to 3 |
    | `demo-steered` | photo+text | a name and one of its photos find its other photos |
    | `demo-proper-names` | text, texts there | names of photographers, people and places |
    | `demo-written` | text, texts there | as `demo`, with the titles there |
    | `demo-written-abroad` | text, texts there | the same queries, not those in English |
    | `demo-written-half` | text, texts there | half of the photos have no words |
    | `demo-written-misspelt` | text, texts there | the same queries with a typing error each |
    | `stamps` | text | labels find their cut-outs, 78 languages |
    | `flickr8k` | text | captions find the 1,000 test photos, grades 0 to 3, five languages |
    | `flickr8k-captions` | text | each caption finds its own photo, eleven languages |
    | `flickr8k-described` | text, texts there | as `flickr8k`; each photo has another caption |
    | `flickr8k-described-half` | text, texts there | half of the photos have no words |
    | `flickr8k-described-misspelt` | text, texts there | with a typing error each |
    | `flickr8k-described-zh` | text, texts there | its Chinese queries, Chinese captions |
    | `flickr8k-words` | text | plain English words; grades say how many of five writers use it |
    | `flickr8k-words-described` | text, texts there | as before; each photo has a caption |
    | `flickr8k-words-described-zh` | text, texts there | plain Chinese words, Chinese captions |
    | `coco-judge` | text | captions find their own of 351 COCO photos; never fitted on |
    | `web-judge` | text | a model's captions find their own of 828 web photos; never fitted on |
    | `flickr8k-abroad` | text | captions in languages that `mini` was taught none in |
    | `flickr8k-similar` | photo | a photo finds others that its caption describes, grades 0 to 3 |
    | `flickr8k-steered` | photo+text | a caption and a photo of it find its other photos |

    Those of the demo ship with searchlab; the others need SEARCHLAB_DATASETS.

    Args:
        name: One of these names, or a folder in the format of `read_dataset`, or as others publish
            theirs (`searchlab.evaluation.datasets.foreign`); `FOLDER:val` reads another part.

    Raises:
        NotFoundError: There is no such dataset, or its files are not here.
        InputError: A folder of your own cannot be read.
        MismatchError: It comes with another package, and cannot be imported.
        DataError: A file of a named dataset is damaged, a picture is missing, or its parts do not
            fit together.
    """
    loader = DATASETS.get(str(name)) or load_plugin(PLUGINS, str(name))
    if loader is None:
        before, colon, split = str(name).rpartition(":")
        if colon and not Path(name).is_dir() and Path(before).is_dir():
            return read_foreign(Path(before), split)
        if isinstance(name, Path) or Path(name).is_dir():
            own = (Path(name) / "queries.tsv").is_file() or not is_foreign(Path(name))
            return read_dataset(Path(name)) if own else read_foreign(Path(name))
        msg = f"a dataset must be one of {', '.join(dataset_names())}, or a folder, got {name!r}"
        raise NotFoundError(msg)
    try:
        dataset: Dataset = loader()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
        why = f"{type(error).__name__}: {error}"
        msg = f"the files of dataset {name!r} are damaged, got {why}; fetch them again"
        raise DataError(msg) from error
    return dataset
