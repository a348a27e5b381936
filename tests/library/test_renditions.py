"""Pictures as files: originals only as they were indexed, smaller ones made once."""

import hashlib
import io
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from PIL import Image

from searchlab.errors import NotFoundError
from searchlab.library import renditions
from searchlab.library.decoding import thumbnail_path
from searchlab.library.renditions import CHUNK, SIDES, RenditionFiles, RenditionSource
from searchlab.library.roots import Root


class Shop:
    """A library's folder, a folder of photos beside it, and a photo for every file in it."""

    def __init__(self, place, make_photo):
        self.data, self.folder = place / "library", place / "photos"
        self.data.mkdir()
        self.folder.mkdir()
        self.roots = (Root(self.folder),)
        self.files = RenditionFiles(self.data)
        self._make_photo = make_photo

    def photo(self, name, content=None, **changes):
        path = self.folder / name
        if content is not None:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        values = {"file": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        return self._make_photo(1, **values | changes)

    def original(self, photo):
        return everything(self.files.original(photo, self.roots))

    def refused(self, photo):
        """Why a photo is not there, as text; the same for all that is made of its original."""
        with pytest.raises(NotFoundError) as caught:
            self.files.original(photo, self.roots)
        with pytest.raises(NotFoundError):
            self.files.make(photo, "small", roots=self.roots)
        assert str(self.folder) not in str(caught.value)
        return str(caught.value).rpartition("got ")[2]


@pytest.fixture
def shop(tmp_path, make_photo):
    return Shop(tmp_path, make_photo)


def everything(source):
    content = b""
    while len(content) < source.size:
        content += source.read(len(content), CHUNK)
    source.close()
    return content


def encoded(image, kind="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def noise(width, height):
    return Image.effect_noise((width, height), 90).convert("RGB")


RED = encoded(Image.new("RGB", (40, 30), "red"))
BLUE = encoded(Image.new("RGB", (40, 30), "blue"))


# -- originals --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "AVIF", "GIF", "TIFF"])
def test_an_original_is_the_file_itself_known_by_its_content(shop, kind):
    content = encoded(Image.new("RGB", (40, 30), "red"), kind)
    photo = shop.photo("misnamed.html", content)
    assert shop.files.original(photo, shop.roots).kind == kind
    assert shop.original(photo) == content


def test_a_long_original_is_read_piece_by_piece(shop):
    content = encoded(noise(600, 500))
    assert len(content) > 2 * CHUNK
    photo = shop.photo("a.png", content)
    source = shop.files.original(photo, shop.roots)
    assert source.read(CHUNK + 5, 10) == content[CHUNK + 5 : CHUNK + 15]
    source.close()
    assert shop.original(photo) == content


def test_a_file_that_has_gone_is_not_there(shop):
    photo = shop.photo("a.png", RED)
    (shop.folder / "a.png").unlink()
    assert shop.refused(photo) == "one that is gone"


def test_another_picture_is_never_shown_under_the_old_name(shop):
    photo = shop.photo("a.png", RED)
    assert shop.original(photo) == RED
    (shop.folder / "a.png").write_bytes(BLUE)
    assert shop.refused(photo) == "one that was changed since"


def test_not_even_where_size_and_time_are_the_same(shop):
    path = shop.folder / "a.png"
    photo = shop.photo("a.png", RED)
    os.utime(path, ns=(10**18, 10**18))
    assert shop.original(photo) == RED
    path.write_bytes(BLUE.ljust(len(RED))[: len(RED)])
    os.utime(path, ns=(10**18, 10**18))
    assert shop.refused(photo) == "one that was changed since"


def test_a_file_that_rests_is_read_for_its_checksum_once(shop, monkeypatch):
    monkeypatch.setattr(renditions, "_SETTLED_NS", -(10**12))
    photo = shop.photo("a.png", RED)
    assert shop.original(photo) == RED
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert shop.original(photo) == RED


@pytest.mark.slow
def test_a_change_while_it_is_sent_breaks_off(shop):
    photo = shop.photo("a.png", encoded(noise(600, 500)))
    for change in (lambda file: file.write(b"x"), lambda file: file.truncate(CHUNK)):
        shop.photo("a.png", encoded(noise(600, 500)))
        photo = shop.photo("a.png")
        source = shop.files.original(photo, shop.roots)
        with (shop.folder / "a.png").open("r+b") as file:
            change(file)
        with pytest.raises(OSError, match="must stay"):
            source.read(CHUNK, CHUNK)
        source.close()


def test_a_file_that_is_replaced_while_it_is_sent_is_sent_as_it_was(shop):
    content = encoded(noise(600, 500))
    source = shop.files.original(shop.photo("a.png", content), shop.roots)
    (shop.folder / "new").write_bytes(RED)
    (shop.folder / "new").replace(shop.folder / "a.png")
    with pytest.raises(OSError, match="must stay"):  # losing its name shows, as a change would
        source.read(CHUNK, CHUNK)
    source.close()


def test_nothing_outside_of_the_folders_is_handed_out(shop, tmp_path):
    (tmp_path / "outside.png").write_bytes(RED)
    (tmp_path / "photos-too").mkdir()
    (tmp_path / "photos-too" / "a.png").write_bytes(RED)
    for name in ("../outside.png", "../photos-too/a.png", str(tmp_path / "outside.png")):
        assert shop.refused(shop.photo(name)) == "one outside of the library's folders"


def test_a_link_that_leads_outside_is_not_followed(shop, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.png").write_bytes(RED)
    (shop.folder / "a.png").symlink_to(tmp_path / "outside" / "a.png")
    (shop.folder / "folder").symlink_to(tmp_path / "outside")
    for name in ("a.png", "folder/a.png"):
        assert shop.refused(shop.photo(name)) == "one outside of the library's folders"


def test_a_link_within_the_folders_is_followed(shop):
    shop.photo("a.png", RED)
    (shop.folder / "b.png").symlink_to("a.png")
    assert shop.original(shop.photo("b.png")) == RED


def test_a_folder_that_became_a_link_is_the_same_folder(shop, tmp_path):
    photo = shop.photo("a.png", RED)
    shop.folder.rename(tmp_path / "moved")
    shop.folder.symlink_to(tmp_path / "moved")
    assert shop.original(photo) == RED


def test_links_in_circles_pipes_folders_and_odd_names_are_not_there(shop, tmp_path, make_photo):
    (shop.folder / "circle").symlink_to("circle")
    os.mkfifo(shop.folder / "pipe")
    (shop.folder / "folder").mkdir()
    for name in ("circle", "pipe", "folder", "missing/a.png", "n" * 300, "nul\0.png", "."):
        assert shop.refused(make_photo(1, file=str(shop.folder / name), sha256="0" * 64))
    assert shop.refused(make_photo(1, file="", sha256=""))


def test_a_folder_that_is_not_mounted_has_no_photos(shop):
    photo = shop.photo("a.png", RED)
    shutil.rmtree(shop.folder)
    assert shop.refused(photo) == "one that is gone"


def test_a_file_larger_than_any_that_is_indexed_is_another_one(shop):
    photo = shop.photo("a.png", RED)
    with (shop.folder / "a.png").open("r+b") as file:
        file.truncate(51 * 2**20)
    with pytest.raises(NotFoundError):
        shop.files.original(photo, shop.roots)


# -- smaller ones -----------------------------------------------------------------------------


def opened(content):
    return Image.open(io.BytesIO(content))


@pytest.mark.parametrize(("size", "expected"), [("small", 480), ("regular", 1080), ("large", 1920)])
def test_a_rendition_has_its_longest_side(shop, size, expected):
    photo = shop.photo("a.jpg", encoded(Image.new("RGB", (2400, 1200), "red"), "JPEG"))
    with opened(shop.files.make(photo, size, roots=shop.roots)) as made:
        assert (made.format, made.size) == ("WEBP", (expected, expected // 2))


def test_a_rendition_is_upright_without_metadata_and_never_larger(shop):
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "secret place"
    photo = shop.photo("a.jpg", encoded(Image.new("RGB", (60, 40), "red"), "JPEG", exif=exif))
    content = shop.files.make(photo, "large", roots=shop.roots)
    with opened(content) as made:
        assert made.size == (40, 60)
        assert not made.getexif()
    assert b"secret" not in content


def test_a_rendition_is_made_once_and_found_by_content(shop):
    photo = shop.photo("a.png", RED)
    assert shop.files.find(photo, "small") is None
    made = shop.files.make(photo, "small", roots=shop.roots)
    (shop.folder / "a.png").unlink()
    assert everything(shop.files.find(photo, "small")) == made
    assert shop.files.find(photo, "large") is None
    assert shop.files.find(shop.photo("b.png", BLUE), "small") is None


def test_the_thumbnail_of_the_library_is_the_thumb(shop):
    photo = shop.photo("a.png", RED)
    place = thumbnail_path(shop.data / "thumbnails", photo.sha256)
    place.parent.mkdir(parents=True)
    place.write_bytes(encoded(Image.new("RGB", (4, 3), "red"), "WEBP"))
    with opened(everything(shop.files.find(photo, "thumb"))) as thumb:
        assert thumb.size == (4, 3)


@pytest.mark.parametrize("damage", [lambda c: b"", lambda c: c[:-9], lambda c: b"<html>" + c])
def test_a_damaged_small_picture_is_made_again(shop, damage):
    photo = shop.photo("a.png", RED)
    place = thumbnail_path(shop.data / "thumbnails", photo.sha256)
    place.parent.mkdir(parents=True)
    place.write_bytes(damage(encoded(Image.new("RGB", (4, 3), "red"), "WEBP")))
    assert shop.files.find(photo, "thumb") is None
    made = shop.files.make(photo, "thumb", roots=shop.roots)
    assert everything(shop.files.find(photo, "thumb")) == made


def test_many_that_make_the_same_leave_one_whole_file(shop):
    photo = shop.photo("a.png", encoded(noise(300, 200)))
    other = RenditionFiles(shop.data)
    with ThreadPoolExecutor(4) as pool:
        makers = [shop.files, other] * 4
        made = list(pool.map(lambda files: files.make(photo, "small", roots=shop.roots), makers))
    on_disk = [path for path in (shop.data / "renditions").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in on_disk] == [made[0]]


def test_a_disk_that_cannot_be_written_is_no_reason_to_send_nothing(shop):
    (shop.data / "renditions").write_text("in the way")
    photo = shop.photo("a.png", RED)
    assert shop.files.make(photo, "small", roots=shop.roots).startswith(b"RIFF")
    assert shop.files.find(photo, "small") is None


def test_the_oldest_go_where_there_are_too_many(shop, monkeypatch):
    monkeypatch.setattr(renditions, "_WRITES_PER_SWEEP", 1)
    pictures = [encoded(noise(100 + number, 80)) for number in range(4)]
    photos = [shop.photo(f"{number}.png", content) for number, content in enumerate(pictures)]
    size = len(shop.files.make(photos[0], "small", roots=shop.roots))
    shop.files = RenditionFiles(shop.data, most_bytes=int(2.8 * size))
    for number, photo in enumerate(photos):
        shop.files.make(photo, "small", roots=shop.roots)
        path = thumbnail_path(shop.data / "renditions" / "small", photo.sha256)
        os.utime(path, (number, number))
    left = [shop.files.find(photo, "small") for photo in photos]
    assert [source is not None for source in left] == [False, False, True, True]
    for source in left[2:]:
        source.close()


def test_what_a_dead_writer_left_is_cleared_away(shop):
    photo = shop.photo("a.png", RED)
    folder = thumbnail_path(shop.data / "renditions" / "small", photo.sha256).parent
    folder.mkdir(parents=True)
    old, fresh = folder / "old.part", folder / "fresh.part"
    old.write_bytes(b"RI")
    fresh.write_bytes(b"RI")
    os.utime(old, (0, 0))
    shop.files.make(photo, "small", roots=shop.roots)
    assert not old.exists()
    assert fresh.exists()


def test_a_picture_in_memory_is_read_like_a_file():
    source = RenditionSource(RED)
    assert (source.size, source.kind, source.read(2, 3)) == (len(RED), "PNG", RED[2:5])
    with pytest.raises(OSError, match="as long as it was"):
        source.read(len(RED), 1)
    source.close()


def test_the_sizes_are_those_of_the_specification_but_the_original():
    assert [*SIDES, "full"] == ["thumb", "small", "regular", "large", "full"]


def test_a_picture_of_many_pieces_is_read_whole(shop):
    content = encoded(noise(900, 900))
    assert len(content) > 2 * CHUNK
    photo = shop.photo("noise.png", content)
    source = shop.files.original(photo, shop.roots)
    assert source.read_all() == content
    source.close()
