"""Pictures through the pipeline: facts, vectors and thumbnails, and files that are refused."""

import io
import sqlite3
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from searchlab.library import decoding
from searchlab.library import embed as pipeline
from searchlab.library.cache import ContentCache
from searchlab.library.decoding import THUMBNAIL_SIDE, thumbnail_path
from searchlab.library.embed import PASSING, embed_pictures
from searchlab.models import load_model
from searchlab.models.protocol import unit_rows
from searchlab.photos.images.decode import WORKING_SIDE, as_rgb, for_model
from searchlab.progress import Progress
from tests.support.embedding import MeanColour, picture


def claiming(width, height):
    """A PNG of a few bytes whose header tells another size."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    checksum = struct.pack(">I", zlib.crc32(header))
    content = picture("red")
    return content[:12] + header + checksum + content[33:]


def test_facts_vectors_and_thumbnails_of_each_picture_are_kept(put, embed, cache, tmp_path):
    digest, path = put("a.png", picture("#ff0000", (900, 600)))
    assert embed([(digest, path)], MeanColour()) == []
    facts = cache.facts([digest])[digest]
    assert (facts.width, facts.height, facts.shade, facts.problem) == (900, 600, 0xFF0000, "")
    assert facts.palette == (("#ff0000", 1.0),)
    [row] = cache.vectors("mean-000000000001", [digest], 3)
    assert row.tolist() == pytest.approx([1, 0, 0], abs=0.01)
    with Image.open(thumbnail_path(tmp_path / "small", digest)) as small:
        assert (small.format, small.size) == ("WEBP", (THUMBNAIL_SIDE, 267))


@pytest.mark.slow
def test_each_vector_belongs_to_its_own_picture(many, embed, cache):
    embed(many, MeanColour())
    rows = cache.vectors("mean-000000000001", [digest for digest, _ in many], 3)
    expected = unit_rows(np.array([(i + 1, 201 - i, 51) for i in range(100)]))
    assert np.abs(rows - expected).max() < 0.01


@pytest.mark.slow
def test_every_picture_is_embedded_once_and_never_again(many, embed):
    model = MeanColour()
    embed(many, model)
    assert sorted(model.seen) == [(i, 200 - i, 50) for i in range(100)]
    embed(many, model)
    assert len(model.seen) == 100


@pytest.mark.slow
def test_only_new_pictures_are_embedded(many, embed):
    model = MeanColour()
    embed(many[:60], model)
    model.seen.clear()
    embed(many, model)
    assert sorted(model.seen) == [(i, 200 - i, 50) for i in range(60, 100)]


@pytest.mark.slow
def test_a_new_model_embeds_and_the_one_before_does_not_again(many, embed):
    first, second = MeanColour("first"), MeanColour("second")
    embed(many, first)
    embed(many, first, second)
    assert (len(first.seen), len(second.seen)) == (100, 100)


def test_a_lost_thumbnail_is_made_anew_without_embedding(put, embed, tmp_path):
    model = MeanColour()
    digest, path = put("a.png", picture("red"))
    embed([(digest, path)], model)
    small = thumbnail_path(tmp_path / "small", digest)
    content = small.read_bytes()
    small.unlink()
    embed([(digest, path)], model)
    assert small.read_bytes() == content
    small.write_bytes(b"")  # what a power cut may leave of it
    embed([(digest, path)], model)
    assert small.read_bytes() == content
    assert len(model.seen) == 1


def test_facts_of_another_version_are_computed_again_without_embedding(put, embed, cache, tmp_path):
    model = MeanColour()
    digest, path = put("a.png", picture("#ff0000"))
    embed([(digest, path)], model)
    db = sqlite3.connect(tmp_path / "cache.db")
    with db:
        db.execute("UPDATE contents SET facts=json_set(facts, '$.version', 1, '$.shade', 7)")
    db.close()
    assert cache.facts([digest]) == {}
    embed([(digest, path)], model)
    assert cache.facts([digest])[digest].shade == 0xFF0000
    assert len(model.seen) == 1


def test_no_models_still_give_facts_and_thumbnails(put, embed, cache):
    digest, path = put("a.png", picture("red"))
    assert embed([(digest, path)]) == []
    assert cache.facts([digest])[digest].width == 40


def test_nothing_to_do_asks_the_model_nothing(embed):
    model = MeanColour()
    assert embed([], model) == []
    assert model.batches == []


def test_a_model_is_given_rgb_pictures_no_smaller_than_it_reads(put, embed):
    seen = []

    class Recording(MeanColour):
        def encode_images(self, images):
            seen.extend((image.mode, image.size) for image in images)
            return super().encode_images(images)

    files = [
        put("large.jpg", picture("red", (1_600, 800), "JPEG")),
        put("small.png", picture("blue", (5, 9))),
    ]
    embed(files, Recording())
    assert seen == [("RGB", (64, 32)), ("RGB", (5, 9))]


BAD = {
    "empty.png": (b"", "empty"),
    "text.jpg": (b"hello, world, I am no picture", "not an image"),
    "head.png": (b"\x89PNG\r\n\x1a\n", "damaged"),
    "cut.jpg": (picture("red", (300, 200), "JPEG")[:400], "damaged"),
    "cut.png": (picture("red", (300, 200))[:60], "damaged"),
    "page.pdf": (b"%PDF-1.7\n", "unsupported format"),
    "bitmap.bmp": (picture("red", kind="BMP"), "unsupported format"),
    "bomb.png": (claiming(60_000, 60_000), "too many pixels"),
}


def test_refused_files_are_reported_with_a_reason_and_stop_nothing(put, embed, cache):
    bad = {name: put(name, content) for name, (content, _) in BAD.items()}
    good = put("good.png", picture("red"))
    model = MeanColour()
    problems = embed([*bad.values(), good], model)
    assert {one.where.rpartition("/")[2]: one.reason for one in problems} == {
        name: reason for name, (_, reason) in BAD.items()
    }
    assert model.seen == [(255, 0, 0)]
    assert cache.known_vectors(model.model_id, [digest for digest, _ in bad.values()]) == set()


def test_a_known_refusal_is_reported_again_without_being_decoded(put, embed, monkeypatch):
    file = put("text.jpg", b"hello")
    first = embed([file], MeanColour())
    monkeypatch.setattr(decoding, "open_rgb", lambda *_, **__: pytest.fail("decoded again"))
    assert embed([file], MeanColour()) == first
    assert [(one.where, one.reason) for one in first] == [(str(file[1]), "not an image")]


def test_a_file_that_cannot_be_read_is_tried_again_next_time(put, embed):
    digest, path = put("a.png", picture("red"))
    content = path.read_bytes()
    path.unlink()
    model = MeanColour()
    [problem] = embed([(digest, path)], model)
    assert problem.reason == "unreadable"
    path.write_bytes(content)
    assert embed([(digest, path)], model) == []
    assert len(model.seen) == 1


def test_a_file_that_was_edited_after_it_was_identified_is_not_kept_under_the_old_content(
    put, embed, cache, tmp_path
):
    digest, path = put("a.png", picture("red"))
    path.write_bytes(picture("blue"))
    model = MeanColour()
    [problem] = embed([(digest, path)], model)
    assert problem.where == str(path)
    assert cache.known_vectors(model.model_id, [digest]) == set()
    assert cache.facts([digest]) == {}
    assert not thumbnail_path(tmp_path / "small", digest).exists()


def test_a_batch_of_nothing_but_refused_files_asks_the_model_nothing(put, embed):
    model = MeanColour()
    problems = embed([put(f"{i}.jpg", b"text %d" % i) for i in range(40)], model)
    assert len(problems) == 40
    assert model.batches == []


@pytest.mark.slow
def test_how_pictures_are_resized_changes_nothing_that_is_kept(put, tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    files = {}
    for i, size in enumerate([(900, 700), (640, 1000), (450, 450), (3000, 420), (420, 2000)]):
        tiles = Image.fromarray(rng.integers(0, 256, (9, 12, 3), dtype=np.uint8))
        encoded = io.BytesIO()
        tiles.resize(size, Image.Resampling.BICUBIC).save(encoded, "JPEG")
        digest, path = put(f"{i}.jpg", encoded.getvalue())
        files[digest] = path
    model, outcomes = load_model("palette"), []
    for many in (1, 100):
        monkeypatch.setattr(pipeline, "_MANY", many)
        folder = tmp_path / str(many)
        with ContentCache(tmp_path / f"{many}.db") as cache:
            assert embed_pictures(files, [model], cache, folder, Progress()) == []
            rows = cache.vectors(model.model_id, list(files), model.dim)
            facts = cache.facts(list(files))
        pictures = [thumbnail_path(folder, digest).read_bytes() for digest in files]
        outcomes.append((rows.tobytes(), facts, pictures))
    assert outcomes[0] == outcomes[1]


_LONG = """
import resource, sys
from pathlib import Path
import hashlib
from PIL import Image
from searchlab.library.cache import ContentCache
from searchlab.library.embed import embed_pictures
from searchlab.progress import Progress

folder = Path(sys.argv[1])
files = {}
for i in range(24):
    path = folder / f"{i}.png"
    Image.new("L", SIZE, i).save(path, compress_level=1)
    files[hashlib.sha256(path.read_bytes()).hexdigest()] = path
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with ContentCache(folder / "cache.db") as cache:
    assert embed_pictures(files, [], cache, folder / "small", Progress()) == []
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
def test_long_narrow_pictures_do_not_pile_up_in_memory(tmp_path):
    script = _LONG.replace("SIZE", "(300, 16_000)")
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    # A decoded picture is 14 MiB; the threads and the pictures ahead must not hold all 24.
    assert int(done.stdout) < 200


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["palette", "mini"])
@pytest.mark.parametrize("beside", [0, 800], ids=["alone", "beside a model of larger pictures"])
def test_a_file_is_the_same_to_a_model_as_photo_and_as_query(put, embed, cache, spec, beside):
    rng = np.random.default_rng(5)
    tiles = Image.fromarray(rng.integers(0, 256, (21, 30, 3), dtype=np.uint8))
    encoded = io.BytesIO()
    tiles.resize((1500, 1050), Image.Resampling.BICUBIC).save(encoded, "JPEG", quality=85)
    digest, path = put("large.jpg", encoded.getvalue())
    model = load_model(spec)
    others = []
    if beside:
        others.append(MeanColour("other"))
        others[0].input_size = beside
    assert embed([(digest, path)], model, *others) == []
    [stored] = cache.vectors(model.model_id, [digest], model.dim)
    query = for_model(as_rgb(path, min_side=max(WORKING_SIDE, model.input_size)), model.input_size)
    # Beside a model of larger pictures the JPEG is decoded at another scale.
    assert float(stored @ model.encode_images([query])[0]) > (0.999 if beside else 0.9999)


def test_reasons_that_pass_are_those_of_a_file_out_of_reach_at_the_moment(put, embed):
    digest, path = put("a.png", picture("red"))
    path.unlink()
    [problem] = embed([(digest, path)], MeanColour())
    assert problem.reason.startswith(PASSING)
    digest, path = put("b.png", b"no picture")
    [problem] = embed([(digest, path)], MeanColour())
    assert not problem.reason.startswith(PASSING)
