"""Names of results' files: words for a person, then the hash that tells which configuration it is.

`mini-exact-3b46c8f38ff9.json`. Results are found by the hash alone, so that those that were named
by nothing else, as results once were, are found too.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from searchlab.config import Config
from searchlab.config.indexes import index_kind

_MOST_WORDS = 48  # characters; with hash and ending far below the 255 bytes of file systems
_PATH_IN_SPEC = re.compile(r"(?:(?<=[:,=])|^)(?:[/~.]|[A-Za-z]:[/\\])[^:,=]*[/\\]")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9.]+|(?<!\d)\.|\.(?!\d)")  # points stay within numbers


def result_stem(config: Config) -> str:
    """Name the files of a result, without their endings.

    Lower case, ASCII, at most 80 characters. Folders of a model that lies on this machine are left
    out; of a long name its beginning stays.

    >>> config = Config(model="hybrid:mini=0.85,palette=0.15", index="hnsw")
    >>> result_stem(config).removesuffix(config.config_id)
    'hybrid-mini-0.85-palette-0.15-hnsw-'
    """
    model = _words(_PATH_IN_SPEC.sub("", config.model))[:_MOST_WORDS]
    parts = (model.strip("-."), index_kind(config.index), "" if config.words is None else "words")
    return "-".join([*map(_words, filter(None, parts)), config.config_id])


def find_result_file(folder: Path, config: Config) -> Path:
    """Return the JSON of a configuration's result in a folder; where it would lie if it is not."""
    path = folder / f"{result_stem(config)}.json"
    if path.exists():
        return path
    named = folder.glob(f"*{config.config_id}.json")
    return next((one for one in sorted(named) if is_named_by(one, config.config_id)), path)


def is_named_by(path: Path, config_id: str) -> bool:
    """Tell whether a file's name says that it is of a configuration: it ends with the hash."""
    return path.stem == config_id or path.stem.endswith(f"-{config_id}")


def _words(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _NOT_IN_NAMES.sub("-", plain).strip("-")
