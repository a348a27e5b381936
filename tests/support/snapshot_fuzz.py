"""Mutates every file of a snapshot, makes the checksums right again, opens it and asks it.

Run as `python -m tests.support.snapshot_fuzz FOLDER KIND[,KIND] SEED COUNT`. Each kind has a
process of its own, forked from one that has read all kernels, and writes FOLDER/KIND.txt: a line
before each mutation, so that the last line names the one that ended the process, and a summary at
the end.
"""

import faulthandler
import hashlib
import importlib
import json
import os
import random
import resource
import struct
import sys
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from searchlab.api.snapshots.encoded_photos import EncodedPhotos
from searchlab.api.snapshots.facet_lists import FacetLists
from searchlab.config import Config
from searchlab.config.indexes import ENGINES
from searchlab.config.word_weights import WordWeights
from searchlab.errors import DataError, MismatchError, NotFoundError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library, open_library
from searchlab.library.roots import check_root
from searchlab.search.filters.bitmaps import Bitmap
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.filters.photographers import Photographers
from searchlab.search.indexes import update_index
from searchlab.search.queries import Query
from tests.support.index_kinds import named

KINDS = {
    "exact": Config(model="palette", words=WordWeights(0.125, 0.125)),
    "hnsw": Config(model="palette", index="hnsw", M=4, step_rows=0, depth=5),
    "clustered": Config(model="palette", index="clustered", n_lists=6),
    "pgvector": Config(model="palette", index="pgvector:postgresql://host/none", M=4),
}
FILES = {
    *("manifest.json", "photos.columns", "facets.columns", "vectors.npy"),
    *("words.columns", "words-0.columns", "words-1.columns"),
}
"""What a snapshot holds, whatever its index; two runs make two segments of words."""
MORE_FILES = {
    "exact": set(),
    "hnsw": {"graph.hnsw"},
    "clustered": {"lists.columns"},
    "pgvector": {"engine.json"},
}
_CODED = ("source", "license_type")
N_PHOTOS = 130
LONGEST_S = 60
ROOM = 6 * 2**30
ODD = (0, 1, 2, 63, 64, 65, 129, 130, 131, 255, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1)
ODD += (2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
ODD_JSON = (
    *(None, True, -1, 0, 2**63, 2**70, 1e308),
    *("", "x", "../../x", [], {}, [None], [[]], {"a": 1}),
)


def compile_everything():
    """Use the compiled kernels, which trust what they read, on few photos too."""
    for name in ("bitmaps", "facets", "palettes", "upload_order", "value_sets"):
        importlib.import_module(f"searchlab.search.filters.{name}").COMPILED_FROM = 1
    importlib.import_module("searchlab.search.words.segment").COMPILED_FROM = 1


def build(folder, kind):
    pictures = folder / "photos"
    pictures.mkdir(parents=True)
    lines = []
    for number in range(N_PHOTOS):
        tiles = np.random.default_rng(number).integers(0, 256, (3, 4, 3), dtype=np.uint8)
        Image.fromarray(tiles).resize((16, 12), Image.Resampling.NEAREST).save(
            pictures / f"{number:03d}.png"
        )
        lines.append(
            {
                "file": f"{number:03d}.png",
                "title": f"A {('castle', 'harbour', 'mountain')[number % 3]} number {number}",
                "source": ("unsplash", "pexels")[number % 2],
                "license_type": ("cc0", "by", "free")[number % 3],
                "photographer_username": f"user{number % 9}",
                "photographer_full_name": f"Ünal {number % 9}",
                "uploaded_on": f"2024-01-{number % 28 + 1:02d}",
                "tags": ["sea", "sky"],
            }
        )
    (pictures / "photos.jsonl").write_text("\n".join(map(json.dumps, lines)))
    library = create_library(folder / "library")
    config = KINDS[kind]
    if kind in ENGINES:
        config = replace(config, index=named(kind))  # the address of a server that is started here
    late = [pictures / f"{number:03d}.png" for number in range(125, N_PHOTOS)]
    for path in late:
        path.rename(folder / path.name)
    index_photos(library, [check_root(pictures)], config=config)
    # A second state, so that there are two segments of words and deleted nodes of a graph.
    for path in late:
        (folder / path.name).rename(path)
    for number in range(10, 15):
        (pictures / f"{number:03d}.png").unlink()
    index_photos(library)


def ask(folder):
    """Read everything that the snapshot in force holds, in all the ways that searches do."""
    library = open_library(folder)
    engine = library.engine
    table, facets, index = engine.table, engine.facets, engine.index
    n = len(table)
    source, license_type = (tuple(table.codes(name).values[:1]) for name in _CODED)
    for text in ("red", "castle number 7", "harbor mountian", "sky"):
        page = engine.search(text, per_page=40)
        while page.next_cursor and len(page):
            page = engine.search(cursor=page.next_cursor)
    for query in (
        Query(text="blue", filter=PhotoFilter(color_hex="#204080", color_tolerance=90)),
        Query(text="castle", filter=PhotoFilter(color_name="blue", license_type=license_type)),
        Query(text="sea", filter=PhotoFilter(after_date="2024-01-09", source=source)),
        Query(filter=PhotoFilter(photographer="user3"), sort_by="newest"),
        Query(filter=PhotoFilter(before_date="2024-01-20", palette=("red:5", "#104090:1"))),
        Query(text="red", score_threshold=0.2),
        Query(photo_id=next(iter(table.texts("photo_id")))),
    ):
        engine.search(query)
    some = Bitmap.of_rows(np.arange(0, n, 3), n)
    vectors = np.array(index.vectors[: min(n, 3)])
    if np.isfinite(vectors).all() and np.abs(vectors).max(initial=0) <= 1e6:
        for allowed in (None, some):
            index.search(vectors, min(10, n), allowed=allowed)
            index.search(vectors, min(10, n), allowed=allowed, recall=1)
            for query in vectors:
                index.nearest(query, 7, allowed=allowed, at_least=0.1)
    for name in ("orientation", "color_name", "source", "license_type", "photographer_username"):
        facets.counts(name)
        facets.counts(name, some)
        facets.any_of(name, list(table.codes(name).values)).rows()
    for tolerance in (0, 7, 20, 120, 255):
        facets.within_hex("#808080", tolerance, some).rows()
        facets.within_name("green", tolerance).rows()
        facets.cover("#c04040", tolerance)
    facets.newest(some, 20)
    facets.until(19_700).rows()
    table.photos(range(n))
    encoded = EncodedPhotos(table)
    _ = [encoded, FacetLists(table)]
    Photographers(table).suggest("ü")
    labels = np.array(table.labels[:-2])
    update_index(index, np.array(index.vectors[:-2]), engine.config, labels=labels)


def exercise(folder, before):
    """Ask, and say what came: `ok`, or the kind of error that is allowed here."""
    faulthandler.dump_traceback_later(LONGEST_S, exit=True)
    try:
        ask(folder)
    except (DataError, *before) as error:
        str(error).encode("utf-8", "surrogatepass")
        return type(error).__name__
    except Exception:
        sys.stdout.write(traceback.format_exc())
        return "wrong"
    finally:
        faulthandler.cancel_dump_traceback_later()
    return "ok"


# -- mutations --------------------------------------------------------------------------------


def mutate(rng, name, content):
    """Return other bytes for a file, and what was done."""
    if name.endswith(".json"):
        return mutate_json(rng, content)
    ways = [flip, put_number, cut, double, swap]
    if name.endswith(".columns"):
        ways += [put_element] * 8 + [change_header]
    if name.endswith(".hnsw"):
        ways += [put_number] * 10
    if name.endswith(".npy"):
        ways += [change_npy_header] * 4
    way = rng.choice(ways)
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        data = way(rng, data) or data
    return bytes(data), way.__name__


def flip(rng, data):
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def put_number(rng, data):
    size = rng.choice((1, 2, 4, 8))
    if len(data) < size:
        return
    first = min(len(data), rng.choice((96, 4096, len(data))))
    place = rng.randrange(max(1, first - size + 1)) // size * size
    value = rng.choice(ODD) if rng.random() < 0.8 else rng.getrandbits(64)
    data[place : place + size] = (value % 256**size).to_bytes(size, "little")


def cut(rng, data):
    if rng.random() < 0.5:
        return data[: rng.randrange(len(data) + 1) // 64 * 64]
    return data + bytes(rng.randrange(1, 200))


def double(rng, data):
    size = rng.choice((4, 8, 64, 256))
    if len(data) > 2 * size:
        a, b = (rng.randrange(len(data) - size) // 4 * 4 for _ in range(2))
        data[a : a + size] = data[b : b + size]


def swap(rng, data):
    size = rng.choice((4, 8))
    if len(data) > 2 * size:
        a, b = (rng.randrange(len(data) - size) // size * size for _ in range(2))
        data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


def put_element(rng, data):
    length = int.from_bytes(data[8:16], "little")
    header = json.loads(data[16 : 16 + length])
    where = header[rng.choice(sorted(header))]
    if not where["length"]:
        return
    dtype = np.dtype(where["dtype"])
    place = where["offset"] + dtype.itemsize * rng.randrange(where["length"])
    if dtype.kind == "f":
        value = rng.choice((np.nan, np.inf, -np.inf, 0, -1, 1e38, 1e-45))
        data[place : place + 4] = struct.pack("<f", value)
    else:
        value = rng.choice(ODD) if rng.random() < 0.8 else rng.getrandbits(64)
        bits = 256**dtype.itemsize
        data[place : place + dtype.itemsize] = (value % bits).to_bytes(dtype.itemsize, "little")


def change_header(rng, data):
    length = int.from_bytes(data[8:16], "little")
    header = json.loads(data[16 : 16 + length])
    where = header[rng.choice(sorted(header))]
    key = rng.choice(("dtype", "length", "offset"))
    where[key] = rng.choice(
        ("|u1", "<u4", "<u8", "<i4", "<i8", "<f4", "|O", "<f8")
        if key == "dtype"
        else (*ODD, -64, 64, 128, 3, None, "1", 1.5)
    )
    text = json.dumps(header).encode()[:length].ljust(length)
    data[16 : 16 + length] = text


def change_npy_header(rng, data):
    length = int.from_bytes(data[8:10], "little")
    header = bytes(data[10 : 10 + length])
    for old, new in rng.sample(
        (
            (b"'<f4'", rng.choice((b"'<f8'", b"'|O'", b"'<i4'", b"'<c8'", b"'>f4'", b"'|S4'"))),
            (b"False", b"True"),
            (b"(125,", rng.choice((b"(126,", b"(-1,", b"(1,", b"(99999999999,", b"(125,1,", b"("))),
            (b"shape", b"shap3"),
            (b"{", b"[" * rng.choice((1, 30))),
        ),
        1,
    ):
        header = header.replace(old, new)
    data[10 : 10 + length] = header[:length].ljust(length)


def mutate_json(rng, content):
    document = json.loads(content)
    node = document
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = rng.choice(list(keys))
        if not isinstance(node[key], dict | list) or not node[key] or rng.random() < 0.3:
            break
        node = node[key]
    if isinstance(node, dict) and rng.random() < 0.2:
        del node[key]
    elif isinstance(node, dict) and rng.random() < 0.1:
        node[rng.choice(("../x", "/etc/passwd", "", "x" * 300, "manifest.json"))] = node[key]
    else:
        node[key] = rng.choice(ODD_JSON)
    text = json.dumps(document, indent=1, sort_keys=True)
    if rng.random() < 0.05:
        text = "[" * 100_000
    return text.encode(), "mutate_json"


# -- the run ----------------------------------------------------------------------------------


class Place:
    """A snapshot whose files are changed one at a time."""

    def __init__(self, folder):
        self.folder = folder
        self.name = (folder / "CURRENT").read_text().strip()
        self.place = folder / "snapshots" / self.name
        self.files = {path.name: path.read_bytes() for path in sorted(self.place.iterdir())}

    def put(self, name, content):
        """Write a file, and a manifest with its checksum, under the name that this gives."""
        if name != "manifest.json":
            # Not in place: the file may be shared, and mapped.
            (self.place / name).unlink()
            (self.place / name).write_bytes(content)
            manifest = json.loads(self.files["manifest.json"])
            digest = hashlib.sha256(content).hexdigest()
            manifest["files"][name] = {"bytes": len(content), "sha256": digest}
            content = json.dumps(manifest, indent=1, sort_keys=True).encode()
        (self.place / "manifest.json").write_bytes(content)
        renamed = f"{self.name[:6]}-{hashlib.sha256(content).hexdigest()[:8]}"
        self.place = self.place.rename(self.folder / "snapshots" / renamed)
        (self.folder / "CURRENT").write_text(f"{renamed}\n")

    def mend(self, name):
        if name != "manifest.json":
            (self.place / name).unlink()
            (self.place / name).write_bytes(self.files[name])


def fuzz(folder, kind, seed, count):
    """Mutate `count` times, and return whether all that came is allowed."""
    place = Place(folder)
    # One that is not known here might be of a format that needs ways of its own to be mutated.
    assert set(place.files) == FILES | MORE_FILES[kind]
    assert exercise(folder, ()) == "ok"
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    outcomes, mutated = Counter(), Counter()
    for number in range(seed, seed + count):
        rng = random.Random(f"{kind}-{number}")
        name = rng.choice(sorted(place.files))
        mutated[name] += 1
        content, way = mutate(rng, name, place.files[name])
        sys.stdout.write(f"{kind} {number} {name} {way}\n")
        sys.stdout.flush()
        place.put(name, content)
        also = (MismatchError, NotFoundError) if name == "manifest.json" else ()
        outcomes[exercise(folder, also)] += 1
        place.mend(name)
    sys.stdout.write(json.dumps(mutated) + "\n")
    sys.stdout.write(json.dumps(outcomes) + "\n")
    return outcomes["wrong"] == 0


def forked(said, do, *arguments):
    """Return the exit status of a process that does this; what it says goes to a file."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            file = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.dup2(file, 1)
            os.dup2(file, 2)
            code = 0 if do(*arguments) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main():
    folder, kinds, seed, count = Path(sys.argv[1]), sys.argv[2].split(","), *map(int, sys.argv[3:])
    compile_everything()
    for kind in kinds:
        build(folder / kind, kind)
        ask(folder / kind / "library")  # before the clock runs: it may compile kernels
    statuses = [
        forked(folder / f"{kind}.txt", fuzz, folder / kind / "library", kind, seed, count)
        for kind in kinds
    ]
    sys.stdout.write(json.dumps(dict(zip(kinds, statuses, strict=True))) + "\n")
    sys.exit(any(statuses))


if __name__ == "__main__":
    main()
