"""A folder of pictures that are as large as they may be, and larger, is indexed in bounded memory.

Each is a small file; on many cores they would be decoded together.
"""

import json
import subprocess
import sys
import zlib

import pytest
from PIL import Image

from tests.support.hostile_pictures import png

pytestmark = pytest.mark.slow

RUN = """
import json, os, sys
from pathlib import Path
os.cpu_count = lambda: 8
from searchlab.config import Config
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.roots import check_root
library, photos = map(Path, sys.argv[1:])
done = index_photos(create_library(library), [check_root(photos)], config=Config(model="palette"))
peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(json.dumps([done.added, sorted(p.reason for p in done.problems), int(peak) // 1024]))
"""


def packed(n_rows, n_bytes):
    """Rows of zeros, packed without having them all at once."""
    packer = zlib.compressobj(1)
    row = bytes(1 + n_bytes)
    return b"".join(packer.compress(row) for _ in range(n_rows)) + packer.flush()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_folder_of_bombs_takes_less_than_a_gigabyte(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    side = 12_300
    opaque, clear = packed(side, 3 * side), packed(side, 4 * side)
    for number in range(2):  # different contents, or they would be decoded once
        height = side - number
        (photos / f"opaque-{number}.png").write_bytes(png(side, height, packed=opaque))
        (photos / f"clear-{number}.png").write_bytes(png(side, height, color=6, packed=clear))
        (photos / f"long-{number}.png").write_bytes(png(300, 500_000 + number, packed=b""))
    Image.new("RGB", (6_300, 6_300)).save(photos / "0.webp", quality=1, method=0)
    Image.new("RGB", (13_000, 13_000)).save(photos / "0.jpg", progressive=True, quality=20)
    for name in ("webp", "jpg"):  # a byte behind a picture makes other contents of it
        (photos / f"1.{name}").write_bytes((photos / f"0.{name}").read_bytes() + b"\0")
    done = subprocess.run(
        [sys.executable, "-c", RUN, tmp_path / "library", photos],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    added, reasons, peak_mib = json.loads(done.stdout.splitlines()[-1])
    assert (added, reasons) == (8, ["too many pixels"] * 2)
    assert peak_mib < 950
