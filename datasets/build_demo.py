"""Build `datasets/demo` from the ten upstream packages, the source lists and WordNet.

    apt-get download gcompris-qt-data libjxl-testdata lomiri-wallpapers-16.04 \
        lomiri-wallpapers-20.04 mate-backgrounds palapeli-data plasma-workspace-wallpapers \
        tuxpaint-stamps-default wordnet-base
    pip download --no-deps scikit-image==0.26.0 scikit-learn==1.9.1
    python datasets/build_demo.py --packages DIR --shared DIR

`--packages` is the folder of those files. `--shared` holds the source lists `demo-photos/`
(photos.jsonl) and `stamps/` (photos.tsv, queries.tsv, qrels.tsv). Lists in `demo/` are written by
hand: `credits.tsv` (who made which stamp, after the package's changelog), `dropped_labels.tsv` and
`dropped_titles.tsv`, `gcompris.tsv` (which of GCompris's pictures are photographs, and what their
titles are), `kinds.tsv` and `words.tsv` (what photos show and words mean, by WordNet) and `eye.tsv`
(judgments by eye). `--texts` writes the queries and judgments alone. Needs `dpkg-deb` and takes
four minutes; the same Pillow gives the same bytes.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from demo_judgments import (
    Judgments,
    read_tsv,
    tell_english,
    tell_gcompris,
    tell_stamps,
    tell_titles,
)
from gcompris import PACKAGE as GCOMPRIS
from gcompris import Gcompris, is_needed
from kinds import Kinds
from PIL import Image, ImageCms, ImageOps

LONG_SIDE = 1024  # pixels; smaller originals stay as they are
QUALITY = 85
STAMPS = "tuxpaint-stamps-default"
STAMPS_PAGE = "https://packages.debian.org/bookworm/tuxpaint-stamps-default"
COMMON = Path("/usr/share/common-licenses")
CC = "https://creativecommons.org"
GNU = "https://www.gnu.org/licenses"

# Name in photos.jsonl -> canonical address of the text.
LICENCES = {
    "bsd-3-clause": "https://opensource.org/license/bsd-3-clause",
    "cc-by-2.0": f"{CC}/licenses/by/2.0/",
    "cc-by-2.5": f"{CC}/licenses/by/2.5/",
    "cc-by-3.0": f"{CC}/licenses/by/3.0/",
    "cc-by-4.0": f"{CC}/licenses/by/4.0/",
    "cc-by-sa-2.5": f"{CC}/licenses/by-sa/2.5/",
    "cc-by-sa-3.0": f"{CC}/licenses/by-sa/3.0/",
    "cc-by-sa-4.0": f"{CC}/licenses/by-sa/4.0/",
    "cc0": f"{CC}/publicdomain/zero/1.0/",
    "gfdl-1.2": f"{GNU}/old-licenses/fdl-1.2.html",
    "gpl-2.0": f"{GNU}/old-licenses/gpl-2.0.html",
    "gpl-2.0-or-later": f"{GNU}/old-licenses/gpl-2.0.html",
    "lgpl-3.0": f"{GNU}/lgpl-3.0.html",
    "public-domain": f"{CC}/publicdomain/mark/1.0/",
}
UPSTREAM_LICENCES = {"cc0-1.0": "cc0", "public domain": "public-domain", "gfdl": "gfdl-1.2"}
USERNAMES = {"danielbuechele", "vultilion", "riaphotographs", "keong_macan", "bliznaca"}


def members(package: Path, is_wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Return the wanted files of a Debian package or a wheel, by their path inside."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if is_wanted(name)}
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    found = {}
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as tar,
    ):
        for entry in tar:
            name = entry.name.removeprefix("./")
            data = tar.extractfile(entry) if entry.isfile() and is_wanted(name) else None
            if data is not None:
                found[name] = data.read()
    return found


def srgb(data: bytes) -> Image.Image:
    """Decode a picture upright, in sRGB, as RGB or RGBA, at most LONG_SIDE long."""
    image = Image.open(io.BytesIO(data))
    profile = image.info.get("icc_profile")
    image = ImageOps.exif_transpose(image)
    alpha = "A" in image.getbands() or "transparency" in image.info
    if profile and image.mode == "RGB":
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        # HLG is made to be shown as it is on a plain screen; converted it turns dark.
        if "HLG" not in ImageCms.getProfileDescription(source):
            converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"))
            image = converted or image
    image = image.convert("RGBA" if alpha else "RGB")
    image.thumbnail((LONG_SIDE, LONG_SIDE), Image.Resampling.LANCZOS, reducing_gap=None)
    return image


def picture(data: bytes) -> tuple[str, bytes]:
    """Return suffix and bytes of a picture, those of a plain WebP file of fit size as they are."""
    image = Image.open(io.BytesIO(data))
    plain = image.format == "WEBP" and not image.info.keys() & {"exif", "icc_profile", "xmp"}
    if plain and max(image.size) <= LONG_SIDE:
        return ".webp", data
    return encode(srgb(data))


def encode(image: Image.Image) -> tuple[str, bytes]:
    """Return suffix and bytes: JPEG, or WebP where parts are transparent; no metadata."""
    out = io.BytesIO()
    if image.mode == "RGBA" and image.getchannel("A").getextrema()[0] < 255:
        # White under what cannot be seen: a reader that drops alpha gets a white ground.
        hidden = image.getchannel("A").point(lambda a: 255 if a == 0 else 0)
        image.paste((255, 255, 255, 0), mask=hidden)
        image.save(out, "WEBP", quality=QUALITY, method=6, exact=True)
        return ".webp", out.getvalue()
    image.convert("RGB").save(out, "JPEG", quality=QUALITY, optimize=True, progressive=True)
    return ".jpg", out.getvalue()


def photo_records(shared: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield package, path inside and record (without `file`) of the demo photos."""
    for line in (shared / "demo-photos/photos.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        package = row["package"].split(":", 1)[1].split()[0]
        kind = row["license_type"].lower()
        licence = UPSTREAM_LICENCES.get(kind, kind)
        name = row["photographer_full_name"]
        page = row["source_url"].split()[0].replace("/wiki/Image:", "/wiki/File:")
        # Plasma's other sizes are links to the one picture.
        path = row["package_path"].split("/", 1)[1].replace("/1920x1080.", "/2560x1600.")
        flickr = package == "scikit-learn"
        record = {
            "source": package,
            "source_photo_id": row["photo_id"],
            "source_image_url": page.replace("http://commons", "https://commons"),
            "photographer_username": name if name in USERNAMES else None,
            "photographer_full_name": name,
            "photographer_url": f"https://www.flickr.com/photos/{name}/" if flickr else None,
            "title": row["title"],
            "source_description": row["title"],
            "alt_description": row["alt_description"],
            "license_type": licence,
            "license_url": LICENCES[licence],
            "uploaded_on": f"{row['year']}-01-01" if row["year"] else None,
            "tags": [],
        }
        yield package, path, record


def stamp_records(shared: Path, credits: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield package, path inside and record (without `file`) of the stamps."""
    known = {row["source_photo_id"]: row for row in read_tsv(credits)}
    for row in read_tsv(shared / "stamps/photos.tsv"):
        credit = known.get(row["photo_id"], {})
        licence = credit.get("license_type") or "gpl-2.0"
        record = {
            "source": "tuxpaint-stamps",
            "source_photo_id": row["photo_id"],
            "source_image_url": credit.get("source_image_url") or STAMPS_PAGE,
            "photographer_username": credit.get("photographer_username") or None,
            "photographer_full_name": credit.get("photographer_full_name")
            or "Tux Paint contributors",
            "photographer_url": None,
            "title": row["label_en"],
            "source_description": row["label_en"],
            "alt_description": None,
            "license_type": licence,
            "license_url": LICENCES[licence],
            "uploaded_on": credit.get("added_on") or None,
            "tags": [],
        }
        yield STAMPS, row["package_path"], record


def paragraph(copyright_file: str, licence: str) -> str:
    """Return the text of one licence out of a Debian copyright file."""
    text = copyright_file.split(f"\nLicense: {licence}\n ", 1)[1]
    body = re.split(r"\n(?=\S)", text, maxsplit=1)[0]
    lines = [line.removeprefix(" ") for line in body.split("\n")]
    return "\n".join("" if line == "." else line for line in lines).strip() + "\n"


def image_credits(fetchers: str) -> str:
    """Return the notes of scikit-image's `data` functions on the five photos."""
    wanted = {"astronaut", "chelsea", "coffee", "hubble_deep_field", "rocket"}
    notes = []
    for node in ast.parse(fetchers).body:
        if isinstance(node, ast.FunctionDef) and node.name in wanted:
            text = (ast.get_docstring(node) or "").split("\nReturns\n")[0]
            notes.append(f"{node.name}\n{'=' * len(node.name)}\n{text.strip()}\n")
    return "\n".join(notes)


def write_licences(packages: dict[str, Path], texts: dict[str, str], dataset: Path) -> None:
    """Write every licence text, the copyright files and credits of the packages, and `texts`."""
    for package, path in packages.items():
        if path.suffix == ".deb":
            doc = f"usr/share/doc/{package}"
            found = members(path, {f"{doc}/copyright", f"{doc}/changelog.gz"}.__contains__)
            texts[f"{package}-copyright"] = found[f"{doc}/copyright"].decode()
            if package == STAMPS:
                changes = gzip.decompress(found[f"{doc}/changelog.gz"])
                texts[f"{package}-changes"] = changes.decode("utf-8", "replace")
    readme = "sklearn/datasets/images/README.txt"
    fetchers = "skimage/data/_fetchers.py"
    texts["scikit-learn-images"] = members(packages["scikit-learn"], readme.__eq__)[readme].decode()
    source = members(packages["scikit-image"], fetchers.__eq__)[fetchers].decode()
    texts["scikit-image-images"] = image_credits(source)

    lomiri = texts["lomiri-wallpapers-16.04-copyright"]
    for licence in ("CC-BY-4.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0"):
        texts[licence.lower()] = paragraph(lomiri, licence)
    texts["bsd-3-clause"] = "Copyright (c) the JPEG XL Project Authors.\n\n" + paragraph(
        texts["libjxl-testdata-copyright"], "BSD-3-clause-Google"
    )
    for file in ("CC0-1.0", "GFDL-1.2", "GPL-2", "GPL-3", "LGPL-3"):
        name = {"CC0-1.0": "cc0", "GFDL-1.2": "gfdl-1.2"}.get(file, f"{file.lower()}.0")
        texts[name] = (COMMON / file).read_text("utf-8")
    texts["gpl-2.0-or-later"] = (
        "The GNU General Public License, version 2 (gpl-2.0.txt) or, at your option, any later\n"
        f"version (version 3: gpl-3.0.txt).\n{LICENCES['gpl-2.0-or-later']}\n"
    )
    texts["public-domain"] = (
        "No known copyright: the upstream package or its author says that the photo is in the\n"
        f"public domain.\n{LICENCES['public-domain']}\n"
    )
    for name in LICENCES:
        if name not in texts:
            texts[name] = f"The full text is at {LICENCES[name]}legalcode\n"
    target = dataset / "licences"
    target.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (target / f"{name}.txt").write_text(text.replace("\r\n", "\n"), encoding="utf-8")


def build(packages: Path, shared: Path, target: Path, *, texts_only: bool = False) -> None:
    """Write images, photos.jsonl, queries.tsv, qrels.tsv and licences into `target`."""
    rows = [*photo_records(shared), *stamp_records(shared, target / "credits.tsv")]
    names = sorted({GCOMPRIS, "wordnet-base", *(package for package, _, _ in rows)})
    files = {package: find_package(packages, package) for package in names}
    gcompris = Gcompris(members(files[GCOMPRIS], is_needed))
    listed = read_tsv(target / "gcompris.tsv")
    new = {row["path"]: gcompris.record(row["path"], row["title"]) for row in listed}
    records = [*(record for _, _, record in rows), *new.values()]

    if not texts_only:
        write_photos(rows, gcompris, new, files, target)
        of_photos = {name: file for name, file in files.items() if name != "wordnet-base"}
        texts = {f"{GCOMPRIS}-images": gcompris.readmes(new)}
        write_licences(of_photos, texts, target)
    with tempfile.NamedTemporaryFile() as nouns:
        path = "usr/share/wordnet/data.noun"
        nouns.write(members(files["wordnet-base"], path.__eq__)[path])
        nouns.flush()
        kinds = Kinds(target, Path(nouns.name))
    judgments = Judgments(
        {record["source_photo_id"]: record["source"] for record in records},
        {record["source_photo_id"]: record["title"] for record in records},
        kinds,
    )
    tell_stamps(judgments, shared, target / "dropped_labels.tsv")
    tell_titles(judgments, shared, target / "dropped_titles.tsv")
    for _, _, record in photo_records(shared):
        judgments.tell("alt", "en", record["alt_description"], record["source_photo_id"])
    tell_gcompris(judgments, gcompris, list(new.values()))
    tell_english(judgments)
    eye: dict[str, dict[str, int]] = {}
    for row in read_tsv(target / "eye.tsv"):
        eye.setdefault(row["text"], {})[row["source_photo_id"]] = int(row["grade"])
    judgments.write(target, eye)


def find_package(packages: Path, name: str) -> Path:
    """Return the file of a package."""
    found = [*packages.glob(f"{name}_*"), *packages.glob(f"{name.replace('-', '_')}-*")]
    if len(found) != 1:
        sys.exit(f"{packages} must hold one file of {name}, got {len(found)}; download it")
    return found[0]


def write_photos(
    rows: list[tuple[str, str, dict[str, Any]]],
    gcompris: Gcompris,
    new: dict[str, dict[str, Any]],
    files: dict[str, Path],
    target: Path,
) -> None:
    """Write images and photos.jsonl.

    Args:
        rows: Package, path inside and record of the photos that are files of a package.
        gcompris: The package whose photos lie in resource files.
        new: Path in there -> record.
        files: Package -> its file.
        target: Folder of the dataset.
    """
    images = target / "images"
    images.mkdir(parents=True, exist_ok=True)
    for old in images.iterdir():
        old.unlink()
    lines: list[str] = []

    def write(suffix: str, encoded: bytes, record: dict[str, Any]) -> None:
        name = record["source_photo_id"] + suffix
        (images / name).write_bytes(encoded)
        lines.append(json.dumps({"file": f"images/{name}", **record}, ensure_ascii=False))

    for package in sorted({package for package, _, _ in rows}):
        of_package = [(path, record) for name, path, record in rows if name == package]
        data = members(files[package], {path for path, _ in of_package}.__contains__)
        for path, record in of_package:
            write(*encode(srgb(data[path])), record)
        sys.stderr.write(f"{package}: {len(of_package)} photos\n")
    for path, record in new.items():
        write(*picture(gcompris.files[f"{path}.webp"]), record)
    sys.stderr.write(f"{GCOMPRIS}: {len(new)} photos\n")
    (target / "photos.jsonl").write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", type=Path, required=True, help="folder of the packages")
    parser.add_argument("--shared", type=Path, required=True, help="folder of the source lists")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent / "demo",
        help="where to build; must hold the two lists (default: demo beside this script)",
    )
    parser.add_argument("--texts", action="store_true", help="write queries and judgments alone")
    options = parser.parse_args()
    build(options.packages, options.shared, options.out, texts_only=options.texts)


if __name__ == "__main__":
    main()
