"""Shared by the readers of datasets: rows of a TSV file, language tags, and the revision."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from searchlab.errors import InputError
from searchlab.evaluation.datasets.dataset import Dataset, contents
from searchlab.evaluation.datasets.labelled import WITHHELD, LabelledQuery
from searchlab.library.walk import xmp_beside

_SCRIPTS = {"latin": "Latn", "ijekavian": "ijekavsk", "ijekavianlatin": "Latn-ijekavsk"}


def language_tag(locale: str) -> str:
    """Return the BCP 47 tag of a POSIX locale name.

    >>> language_tag("zh_CN"), language_tag("sr@latin"), language_tag("ca@valencia")
    ('zh-CN', 'sr-Latn', 'ca-valencia')
    """
    name, _, modifier = locale.partition("@")
    tag = name.replace("_", "-")
    return f"{tag}-{_SCRIPTS.get(modifier, modifier)}" if modifier else tag


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read a TSV file with a header line and no quoting.

    Raises:
        InputError: It has no header, or a line with another number of columns.
        OSError: It cannot be read.
    """
    with path.open(encoding="utf-8-sig", newline="") as lines:
        head, *rows = list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)) or [[]]
    if not head:
        msg = f"{path} has no header"
        raise InputError(msg)
    for number, row in enumerate(rows, start=2):
        if row and len(row) != len(head):
            msg = f"{path}:{number} has {len(row)} columns, its header has {len(head)}"
            raise InputError(msg)
    return [dict(zip(head, row, strict=True)) for row in rows if row]


def make_dataset(
    name: str,
    folder: Path,
    queries: Iterable[LabelledQuery],
    qrels: Mapping[str, Mapping[str, int]],
    records: Sequence[Mapping[str, str | None]],
    *,
    photos: Path | None = None,
    withholds: Mapping[str, frozenset[str]] = WITHHELD,
    origins: Mapping[str, Mapping[str, str]] | None = None,
) -> Dataset:
    """Make a dataset, whose revision is the hash of everything in it and of its picture files.

    What lies beside a picture as `.xmp` is read with it, and counts as well.

    Raises:
        InputError: Its parts do not fit together.
        OSError: A picture cannot be read.
    """
    listed = tuple(queries)
    judged = {query_id: dict(grades) for query_id, grades in qrels.items()}
    digest = hashlib.sha256()
    for record in records:
        path = Path(record["file"] or "")
        fields = sorted((key, value) for key, value in record.items() if key != "file")
        digest.update(repr((path.name, fields)).encode())
        for part in (path, *xmp_beside(path)):
            digest.update(hashlib.sha256(part.read_bytes()).hexdigest().encode())
    digest.update(contents(listed, judged).encode())
    # Only kinds that differ from ours, so that revisions stay the same when we add a kind.
    own_kinds = {
        kind: sorted(names) for kind, names in withholds.items() if WITHHELD.get(kind) != names
    }
    if own_kinds:
        digest.update(repr(sorted(own_kinds.items())).encode())
    return Dataset(
        name,
        digest.hexdigest()[:12],
        folder,
        photos,
        listed,
        judged,
        tuple(records),
        withholds=withholds,
        origins=origins or {},
    )
