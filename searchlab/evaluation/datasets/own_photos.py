"""Your own photos as a dataset: a folder of pictures, queries and judgments.

    my-photos/photos/...       pictures, in folders of any kind
    my-photos/queries.tsv      query_id, lang, text
    my-photos/qrels.tsv        query_id, photo_id, relevance; as photo_id the file, `photos/a.jpg`
    my-photos/photos.jsonl     one line per photo; `list_photos` writes it

`read_dataset("my-photos")` then reads all of it.
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
from searchlab.files import as_spelled, sha256_of, write_atomically
from searchlab.library.dumps import origins_of
from searchlab.photos.photo import photo_id_of
from searchlab.photos.sidecar import SIDECAR_NAME, Skipped, read_records

if TYPE_CHECKING:
    from searchlab.library.library import Library


def list_photos(library: Library, folder: Path | str) -> Path:
    """Write the photos of a library in a folder as the sidecar that `read_dataset` reads.

    Existing lines stay unchanged, with titles and credits that you wrote; each other indexed photo
    gets a new line. Ids are the same whether the folder is indexed with the sidecar or without.

    Args:
        library: Library in which the photos are indexed.
        folder: Folder of the photos, or of folders of them.

    Returns:
        The sidecar's path.

    Raises:
        InputError: The library has no photo in the folder, or an existing line is no record.
    """
    top = Path(folder).expanduser().resolve()
    sidecar = top / SIDECAR_NAME
    listed: set[Path] = set()
    existing = b""
    if sidecar.exists():
        existing = sidecar.read_bytes()
        for record in read_records(sidecar):
            if isinstance(record, Skipped):
                msg = f"{record.where} must be a record, got: {record.reason}"
                raise InputError(msg)
            listed.add(as_spelled(record[0]))
    table = library.engine.table
    photos = [table.photo(row) for row in range(len(table))]
    photo_of = {Path(photo.file): photo for photo in photos if photo.file}
    files = sorted(file for file in photo_of if file.is_relative_to(top))
    if not files:
        msg = f"the library must hold photos below {top}, got none; index that folder first"
        raise InputError(msg)
    new = [file for file in files if file not in listed]
    snapshot = library.snapshot()
    roots = () if snapshot is None else snapshot.roots
    origins = origins_of((photo_of[file] for file in new), roots)
    records = [
        {"file": file.relative_to(top).as_posix()}
        | dict(zip(("source", "source_photo_id"), origins[photo_of[file].photo_id], strict=True))
        for file in new
    ]
    new_lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    gap = b"\n" if existing and not existing.endswith(b"\n") else b""
    write_atomically(sidecar, existing + gap + new_lines.encode())
    return sidecar


def example_folder(
    folder: Path | str, *, languages: Sequence[str] = ("ar", "de", "en"), n_photos: int = 120
) -> Path:
    """Make such a folder from bundled photos, as an example of your own photos.

    The pictures have no titles or captions. The queries are the names of what they show in each
    language, so only the pictures themselves can answer them.

    Args:
        folder: An empty or new folder.
        languages: Languages of the queries.
        n_photos: Most photos to copy, of those that have a name in the first language.

    Returns:
        The folder.

    Raises:
        InputError: The folder is not empty, or a language has no names.
    """
    top = Path(folder)
    if top.exists() and any(top.iterdir()):
        msg = f"an example must go into an empty folder, got {top}; name a new one"
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
    (top / "photos").mkdir(parents=True)
    for photo_id in copied:
        shutil.copyfile(file_of[photo_id], top / "photos" / file_of[photo_id].name)
    queries, qrels = ["query_id\tlang\ttext"], ["query_id\tphoto_id\trelevance"]
    for query in whole.queries:
        relevant = [p for p in sorted(whole.qrels[query.query_id]) if p in copied]
        if relevant:
            queries.append(f"{query.query_id}\t{query.lang}\t{query.text}")
            qrels += [f"{query.query_id}\tphotos/{file_of[p].name}\t1" for p in relevant]
    for name, lines in (("queries.tsv", queries), ("qrels.tsv", qrels)):
        write_atomically(top / name, ("\n".join(lines) + "\n").encode())
    return top
