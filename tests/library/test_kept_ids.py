"""What is written into a file leaves its photo the same photo, with all that hangs on its id."""

import shutil

import numpy as np
import pytest
from PIL import Image

from tests.support import library_world
from tests.support.library_world import ids_by_name

embedded = library_world.embedded
index = library_world.index
library = library_world.library
photos = library_world.photos
put = library_world.put


def write_into(path, text):
    """Write a description into a file, as photo managers do; its pixels stay."""
    with Image.open(path) as image:
        image.load()
        exif = image.getexif()
        exif[0x10E] = text
        image.save(path, exif=exif)


def facts(report):
    return report.n_photos, report.added, report.removed, report.changed, len(report.problems)


def test_a_file_that_is_written_into_stays_the_same_photo(put, index, library, photos):
    path = put("a.png", 1)
    put("b.png", 2)
    index()
    before = ids_by_name(library)
    for text in ("Low tide", "High tide"):
        write_into(path, text)
        assert facts(index()) == (2, 0, 0, 0, 0)
        assert ids_by_name(library) == before
        assert library.search(text).hits[0].photo.source_description == text
    path = path.rename(photos / "moved.png")
    assert facts(index()) == (2, 0, 0, 0, 0)
    write_into(path, "No tide")
    for options in ({}, {"rebuild": True}):
        assert facts(index(**options)) == (2, 0, 0, 0, 0)
        assert ids_by_name(library)["moved.png"] == before["a.png"]


def test_nor_does_a_photo_change_that_a_program_encodes_anew(index, library, photos):
    photos.mkdir(exist_ok=True)
    path = photos / "a.jpg"
    tiles = np.random.default_rng(3).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    picture = Image.fromarray(tiles).resize((320, 240), Image.Resampling.BICUBIC)
    picture.save(path, quality=92)
    index()
    before = ids_by_name(library)
    write_into(path, "Low tide")  # as JPEG of another quality
    assert facts(index()) == (1, 0, 0, 0, 0)
    assert ids_by_name(library) == before
    picture.resize((300, 240)).save(path)
    assert facts(index()) == (1, 1, 1, 1, 0)


def test_where_nobody_can_tell_any_more_it_is_another_photo(put, index, library):
    path = put("a.png", 1)
    index()
    for small in library.thumbnails.glob("*/*"):
        small.unlink()
    write_into(path, "Low tide")
    assert facts(index()) == (1, 1, 1, 1, 0)


def test_another_picture_under_the_name_is_another_photo(put, index, library):
    path = put("a.png", 1)
    index()
    before = ids_by_name(library)
    put("a.png", 2)
    assert facts(index()) == (1, 1, 1, 1, 0)
    assert ids_by_name(library) != before
    with Image.open(path) as image:
        turned = image.transpose(Image.Transpose.ROTATE_180)
    turned.save(path)
    assert facts(index()) == (1, 1, 1, 1, 0)


def test_the_file_as_it_was_has_the_id_wherever_it_comes_back(put, index, library, photos):
    path = put("a.png", 1)
    index()
    before = ids_by_name(library)["a.png"]
    kept = shutil.copy(path, photos.parent / "kept.png")
    write_into(path, "Low tide")
    index()
    assert ids_by_name(library) == {"a.png": before}
    shutil.move(kept, photos / "z.png")
    report = index()
    assert (report.n_photos, report.problems) == (2, [])
    assert ids_by_name(library)["z.png"] == before
    again = ids_by_name(library)
    assert facts(index()) == (2, 0, 0, 0, 0)
    assert ids_by_name(library) == again


def test_where_a_copy_stays_as_it_was_the_copy_is_the_photo(put, index, library, photos):
    path = put("a.png", 1)
    shutil.copy(path, photos / "copy.png")
    index()
    [before] = ids_by_name(library).values()
    write_into(path, "Low tide")
    report = index()
    assert (report.n_photos, report.problems) == (2, [])
    assert ids_by_name(library)["copy.png"] == before


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_however_files_change_each_content_is_one_photo(put, index, library, photos, seed):
    rng = np.random.default_rng(seed)
    for number in range(3):
        put(f"{number}.png", number)
    originals = photos.parent / "originals"
    shutil.copytree(photos, originals)
    for turn in range(12):
        files = sorted(photos.glob("*.png"))
        path = files[rng.integers(len(files))]
        other = photos / f"{rng.integers(6)}.png"
        match int(rng.integers(6)):
            case 0 | 1:
                write_into(path, f"turn {turn}")
            case 2:
                path.rename(other)
            case 3 if path != other:
                shutil.copy(path, other)
            case 4 if len(files) > 1:
                path.unlink()
            case _:
                shutil.copy(originals / f"{rng.integers(3)}.png", other)
        report = index()
        contents = {path.read_bytes() for path in photos.glob("*.png")}
        assert (report.n_photos, report.problems) == (len(contents), [])
        ids = ids_by_name(library)
        assert len(set(ids.values())) == len(contents)
        named = {photo.source_photo_id for photo in library.engine.table.photos(range(len(ids)))}
        assert len(named) == len(contents)
        assert facts(index())[1:4] == (0, 0, 0)
        assert ids_by_name(library) == ids
