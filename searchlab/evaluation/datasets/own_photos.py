"""Photos of one's own as a dataset: a folder of pictures, the queries, which photo answers which.

    my-photos/photos/...       pictures, in folders of any kind
    my-photos/queries.tsv      query_id, lang, text
    my-photos/qrels.tsv        query_id, photo_id, relevance; as photo_id the file, `photos/a.jpg`
    my-photos/photos.jsonl     one line a photo; `list_photos` writes it

`read_dataset("my-photos")` then reads the four of them.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from searchlab.errors import InputError
from searchlab.evaluation.datasets import load_dataset
from searchlab.files import sha256_of, write_atomically
from searchlab.photos.photo import photo_id_of
from searchlab.photos.sidecar import SIDECAR_NAME, Skipped, read_records

if TYPE_CHECKING:
    from searchlab.library.library import Library


def list_photos(library: Library, folder: Path | str) -> Path:
    """Write which photos a library holds below a folder, as the sidecar that `read_dataset` reads.

    Lines that are there stay as they are, with the titles and credits that somebody wrote; photos
    that none of them names get one each; of two copies, the one that was indexed. Ids stay the
    same, whether the folder is indexed with the sidecar or without.

    Args:
        library: The photos, indexed.
        folder: Holds them, or folders of them.

    Returns:
        The sidecar's path.

    Raises:
        InputError: The library has no photo below the folder, or a line that is there is no record.
    """
    place = Path(folder).expanduser().resolve()
    sidecar = place / SIDECAR_NAME
    named: set[Path] = set()
    known = b""
    if sidecar.exists():
        known = sidecar.read_bytes()
        for record in read_records(sidecar):
            if isinstance(record, Skipped):
                msg = f"{record.where} must be a record, got: {record.reason}"
                raise InputError(msg)
            named.add(record[0])
    table = library.engine.table
    photos = [table.photo(row) for row in range(len(table))]
    below = {Path(photo.file): photo for photo in photos if photo.file}
    held = sorted(file for file in below if file.is_relative_to(place))
    if not held:
        msg = f"the library must hold photos below {place}, got none; index that folder first"
        raise InputError(msg)
    lines = [
        {
            "file": file.relative_to(place).as_posix(),
            "source": below[file].source,
            "source_photo_id": below[file].source_photo_id,
        }
        for file in held
        if file not in named
    ]
    fresh = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    gap = b"\n" if known and not known.endswith(b"\n") else b""
    write_atomically(sidecar, known + gap + fresh.encode())
    return sidecar


def example_folder(
    folder: Path | str, *, languages: Sequence[str] = ("ar", "de", "en"), n_photos: int = 120
) -> Path:
    """Make such a folder out of bundled photos, as if somebody had brought it.

    The pictures come without titles or captions. The queries are what people of each language call
    what they show, so nothing but the pictures can answer them.

    Args:
        folder: Where to; it must be empty or new.
        languages: Of the queries.
        n_photos: At most; photos with a name in the first language.

    Returns:
        The folder.

    Raises:
        InputError: It is not empty, or a language has no names.
    """
    place = Path(folder)
    if place.exists() and any(place.iterdir()):
        msg = f"an example must go into an empty folder, got {place}; name a new one"
        raise InputError(msg)
    whole = load_dataset("demo").select(languages=languages, kinds=("label",))
    if missing := sorted(set(languages) - set(whole.languages)):
        msg = f"languages must be among those of the bundled names, got {', '.join(missing)}"
        raise InputError(msg)
    file_of = {
        photo_id_of(str(record["source"]), str(record["source_photo_id"])): Path(
            str(record["file"])
        )
        for record in whole.records
    }
    named = {p for q in whole.queries if q.lang == languages[0] for p in whole.qrels[q.query_id]}
    # Two bundled photos may be copies, which a library holds once.
    contents = {sha256_of(file_of[photo_id]): photo_id for photo_id in sorted(named, reverse=True)}
    copied = sorted(contents.values(), key=lambda p: hashlib.sha256(p.encode()).hexdigest())[
        :n_photos
    ]
    (place / "photos").mkdir(parents=True)
    for photo_id in copied:
        shutil.copyfile(file_of[photo_id], place / "photos" / file_of[photo_id].name)
    queries, qrels = ["query_id\tlang\ttext"], ["query_id\tphoto_id\trelevance"]
    for query in whole.queries:
        relevant = [p for p in sorted(whole.qrels[query.query_id]) if p in copied]
        if relevant:
            queries.append(f"{query.query_id}\t{query.lang}\t{query.text}")
            qrels += [f"{query.query_id}\tphotos/{file_of[p].name}\t1" for p in relevant]
    for name, lines in (("queries.tsv", queries), ("qrels.tsv", qrels)):
        write_atomically(place / name, ("\n".join(lines) + "\n").encode())
    return place
