"""The server that the specification's tests ask: a library whose every record is known.

Two dozen bundled photographs of nine sources and 90 plain pictures, whose colours, sizes, dates and
credits are made so that each rule has something to decide. Started once, when a test first needs
it; stopped when Python ends.
"""

import atexit
import datetime
import functools
import json
import os
import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

from click.testing import CliRunner
from PIL import Image

from searchlab.api.accounts.database import sqlite_url
from searchlab.cli import searchlab
from tests.support.independent_client import Api
from tests.support.served import Served

BUNDLED = Path(__file__).parents[2] / "datasets" / "demo"
SHADES = ("#e50000", "#15b01a", "#0343df", "#ffff14", "#000000", "#ffffff", "#7e1e9c", "#f97306",
          "#653700", "#929591", "#ff81c0")  # fmt: skip
SIZES = ((48, 32), (32, 48), (40, 40))
PEOPLE = (
    ("ann", "Ann Lee"),
    ("bob", "Bob O’Hara"),
    ("josé.núñez", "José Núñez"),
    ("100%_wool", "Wool & Søn"),
    ("a/b?c#d", "Ann Lee-Straße"),
    ("", ""),
)
LICENSES = ("cc0", "by", "public-domain")
_DATABASE = "SEARCHLAB_SPEC_DATABASE_URL"
# The corpus that the specification describes is of nine libraries.
SOURCES = (
    *("libjxl-testdata", "lomiri-wallpapers-16.04", "lomiri-wallpapers-20.04", "mate-backgrounds"),
    *("palapeli-data", "plasma-workspace-wallpapers", "scikit-image", "scikit-learn"),
    "tuxpaint-stamps",
)
ACCOUNTS = {"paid": "scale", "free": "free", "other": "free"}
OPTIONS = ("--workers", "2", "--rate", "1000000", "--burst", "1000000")


def plain_records(folder):
    """Write plain pictures and return their records, with what is to be seen in them."""
    first_day = datetime.date(2020, 1, 1)
    records = []
    for number in range(90):
        shade, (width, height) = SHADES[number % 11], SIZES[number % 3]
        username, full_name = PEOPLE[number % 6]
        if number % 12 == 11:
            username, full_name = f"amateur-{number}", f"Ama {number}"
        source = ("scikit-learn", "palapeli-data")[number // 6 % 2]
        file = f"plain-{number:02d}.png"
        Image.new("RGB", (width, height), shade).save(folder / file)
        records.append(
            {
                "file": file,
                "title": f"Plain <{number}>",
                "source": source,
                "source_photo_id": f"plain-{number:02d}",
                "source_image_url": f"https://example.org/page/{number}?a=1&b=2",
                "photographer_username": username,
                "photographer_full_name": full_name,
                "photographer_url": f"https://example.org/people/{number % 6}" if username else "",
                "license_type": LICENSES[number % 3],
                "license_url": "https://example.org/licence",
                # Two photos of each day, so that ties are there to be broken.
                "uploaded_on": (first_day + datetime.timedelta(days=number // 2)).isoformat(),
                "source_description": f"plain picture {number}",
                "width": width,
                "height": height,
                "color_hex": shade,
            }
        )
    return records


def bundled_records(folder):
    """Copy up to three bundled photographs of each of the nine sources; returns their records."""
    lines = (BUNDLED / "photos.jsonl").read_text(encoding="utf-8").splitlines()
    by_source = defaultdict(list)
    for record in map(json.loads, lines):
        if record["source"] in SOURCES and len(by_source[record["source"]]) < 3:
            shutil.copy(BUNDLED / record["file"], folder)
            by_source[record["source"]].append(record | {"file": Path(record["file"]).name})
    return [record for records in by_source.values() for record in records]


class Corpus:
    """A served library, and what is known of it.

    Attributes:
        records: What was said of each photo.
        base_url: Address of the server.
        today: Day of indexing, which is that of photos whose record names none.
        database_url: Where keys and counts are kept: in the library, unless the environment names
            another database under SEARCHLAB_SPEC_DATABASE_URL.
    """

    def __init__(self, folder):
        self.folder = folder
        self.data = folder / "library"
        self.database_url = os.environ.get(_DATABASE) or sqlite_url(self.data)
        photos = folder / "photos"
        photos.mkdir()
        self.records = bundled_records(photos) + plain_records(photos)
        lines = [json.dumps(record) for record in self.records]
        (photos / "photos.jsonl").write_text("\n".join(lines), encoding="utf-8")
        self.photos = photos
        self.today = datetime.datetime.now(datetime.UTC).date().isoformat()
        self.command("index", photos)
        self.keys = {name: self.create_key(name, plan=plan) for name, plan in ACCOUNTS.items()}
        self.clients = []
        self.server = Served(self.data, *OPTIONS, *self.database)
        self.base_url = self.server.base_url

    def command(self, command, *arguments, **options):
        """Run a command on the library and return its standard output."""
        words = [word for pair in options.items() for word in (f"--{pair[0]}", pair[1])]
        line = [*command.split(), *map(str, arguments), "--data", str(self.data), *words]
        done = CliRunner().invoke(searchlab, line, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    def create_key(self, account, name="first", **options):
        """Make a key as `searchlab keys create` does: it is the last line printed."""
        output = self.key_command("create", account=account, name=name, **options)
        return output.splitlines()[-1]

    def key_command(self, command, **options):
        """Run one of the commands on keys."""
        return self.command(f"keys {command}", **{"database-url": self.database_url} | options)

    @property
    def database(self):
        """The option that names the database, for a server of one's own."""
        return ("--database-url", self.database_url)

    @functools.cached_property
    def everything(self):
        """Every photo as the API tells it, whatever the day."""
        return self.api().all_photos(after_date="0001-01-01")

    @functools.cached_property
    def record_of(self):
        """What was said of each photo, by its photo_id."""
        by_source_id = {(each["source"], each["source_photo_id"]): each for each in self.records}
        return {
            photo["photo_id"]: by_source_id[photo["source"], photo["source_photo_id"]]
            for photo in self.everything
        }

    def plain(self, number):
        """Return plain picture `number` as the API tells it."""
        name = f"plain-{number:02d}"
        return next(each for each in self.everything if each["source_photo_id"] == name)

    def client(self, key=None, **headers):
        """Return a client that lives as long as the server."""
        self.clients.append(Api(self.base_url, key, **headers))
        return self.clients[-1]

    @functools.cache  # noqa: B019 - there is one corpus
    def api(self, account="paid"):
        """Return the client of one of `ACCOUNTS`."""
        return self.client(self.keys[account])

    def new_account(self, account, **options):
        """Return a client with a new key of an account, which is made on first use."""
        return self.client(self.create_key(account, **options))

    def stop(self):
        for client in self.clients:
            client.http.close()
        self.server.stop()
        self.server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@functools.cache
def corpus():
    """Return the one corpus of this run."""
    made = Corpus(Path(tempfile.mkdtemp(prefix="searchlab-spec-")))
    atexit.register(made.stop)
    return made
