"""What tests of pages share: a library of one photo that is quick to make."""

from PIL import Image

from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root


def tiny_library(folder):
    """Make a library of one red photo in a folder, and return the library's own."""
    (folder / "photos").mkdir()
    Image.new("RGB", (40, 30), "red").save(folder / "photos" / "red.png")
    library = create_library(folder / "library")
    index_photos(library, [check_root(folder / "photos")], config=Config(model="palette"))
    return folder / "library"
