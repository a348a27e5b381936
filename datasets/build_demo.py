"""Build `datasets/demo` from the nine upstream packages and the source lists.

    apt-get download libjxl-testdata lomiri-wallpapers-16.04 lomiri-wallpapers-20.04 \
        mate-backgrounds palapeli-data plasma-workspace-wallpapers tuxpaint-stamps-default
    pip download --no-deps scikit-image==0.26.0 scikit-learn==1.9.1
    python datasets/build_demo.py --packages DIR --shared DIR

`--packages` is the folder of those nine files. `--shared` holds the source lists `demo-photos/`
(photos.jsonl) and `stamps/` (photos.tsv, queries.tsv, qrels.tsv). Two lists in `demo/` are written
by hand: `credits.tsv` (who made which stamp, after the package's changelog) and
`dropped_titles.tsv`. Needs `dpkg-deb` and takes four minutes; the same Pillow gives the same
bytes.
"""

from __future__ import annotations

import argparse
import ast
import csv
import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image, ImageCms, ImageOps

from searchlab.evaluation.datasets import language_tag

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


def read_tsv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a TSV file with a header line."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def write_tsv(path: Path, header: str, rows: list[tuple[str, ...]]) -> None:
    """Write rows under a header of names divided by spaces."""
    lines = ["\t".join(header.split()), *("\t".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def members(package: Path, wanted: set[str]) -> dict[str, bytes]:
    """Return the wanted files of a Debian package or a wheel, by their path inside."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist() if name in wanted}
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    found = {}
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as tar,
    ):
        for entry in tar:
            name = entry.name.removeprefix("./")
            data = tar.extractfile(entry) if name in wanted and entry.isfile() else None
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
        }
        yield STAMPS, row["package_path"], record


def title_texts(shared: Path, dropped: Path) -> Iterator[tuple[str, str, str]]:
    """Yield photo, language and title for titles that say what is seen."""
    skipped = {(row["source_photo_id"], row["locale"]) for row in read_tsv(dropped)}
    for line in (shared / "demo-photos/photos.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        photo, english = row["photo_id"], row["title"]
        if (photo, "*") in skipped:
            continue
        yield photo, "en", english
        for locale, text in sorted((row["title_translations"] or {}).items()):
            # "By the water 河畔" and "Evening Glow (brillantia de vespere)": the new part only.
            # A translation equal to the English title may be none, so it goes as well.
            again = re.compile(rf"{re.escape(english)}(?!\w)", re.IGNORECASE)
            text = again.sub("", text, count=1).strip(" ()")
            if text and locale not in {"en", "x-test"} and (photo, locale) not in skipped:
                yield photo, language_tag(locale), text


def folded(text: str) -> str:
    """Return a text without what does not change its meaning: case and a closing full stop."""
    return text.casefold().rstrip(" .。।")


def write_judgments(shared: Path, target: Path, source_of: dict[str, str]) -> None:
    """Write queries.tsv and qrels.tsv: labels, then titles, then alt texts."""
    relevant: dict[str, set[str]] = {}
    for row in read_tsv(shared / "stamps/qrels.tsv"):
        relevant.setdefault(row["query_id"], set()).add(row["photo_id"])
    texts = [
        ("label", language_tag(row["lang"]), row["text"].strip(), photo)
        for row in read_tsv(shared / "stamps/queries.tsv")
        for photo in sorted(relevant[row["query_id"]])
    ]
    titles = title_texts(shared, target / "dropped_titles.tsv")
    texts += [("title", lang, text.strip(), photo) for photo, lang, text in titles]
    for _, _, record in photo_records(shared):
        texts.append(("alt", "en", record["alt_description"], record["source_photo_id"]))

    # One query for each text of a language. Texts that differ only in case or full stop share
    # their photos, and a title spelled like a label is that label's query.
    kinds: dict[tuple[str, str], str] = {}
    photos: dict[tuple[str, str], set[str]] = {}
    for kind, lang, text, photo in texts:
        if kind == "label" or (lang, folded(text)) not in photos:
            kinds.setdefault((lang, text), kind)
        photos.setdefault((lang, folded(text)), set()).add(photo)
    counts: dict[tuple[str, str], int] = {}
    queries, qrels = [], []
    for (lang, text), kind in kinds.items():
        number = counts[kind, lang] = counts.get((kind, lang), 0) + 1
        query = f"{kind}-{lang}-{number:04d}"
        queries.append((query, lang, kind, text))
        for photo in sorted(photos[lang, folded(text)]):
            qrels.append((query, source_of[photo], photo, "1"))
    write_tsv(target / "queries.tsv", "query_id lang kind text", queries)
    write_tsv(target / "qrels.tsv", "query_id source source_photo_id relevance", qrels)


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


def write_licences(packages: dict[str, Path], target: Path) -> None:
    """Write every licence text, and the copyright files and credits of the packages."""
    texts = {}
    for package, path in packages.items():
        if path.suffix == ".deb":
            doc = f"usr/share/doc/{package}"
            found = members(path, {f"{doc}/copyright", f"{doc}/changelog.gz"})
            texts[f"{package}-copyright"] = found[f"{doc}/copyright"].decode()
            if package == STAMPS:
                changes = gzip.decompress(found[f"{doc}/changelog.gz"])
                texts[f"{package}-changes"] = changes.decode("utf-8", "replace")
    readme = "sklearn/datasets/images/README.txt"
    fetchers = "skimage/data/_fetchers.py"
    texts["scikit-learn-images"] = members(packages["scikit-learn"], {readme})[readme].decode()
    source = members(packages["scikit-image"], {fetchers})[fetchers].decode()
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
    target.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (target / f"{name}.txt").write_text(text.replace("\r\n", "\n"), encoding="utf-8")


def build(packages: Path, shared: Path, target: Path) -> None:
    """Write images, photos.jsonl, queries.tsv, qrels.tsv and licences into `target`."""
    rows = [*photo_records(shared), *stamp_records(shared, target / "credits.tsv")]
    found: dict[str, Path] = {}
    for package in sorted({package for package, _, _ in rows}):
        files = [*packages.glob(f"{package}_*"), *packages.glob(f"{package.replace('-', '_')}-*")]
        if len(files) != 1:
            sys.exit(f"{packages} must hold one file of {package}, got {len(files)}; download it")
        found[package] = files[0]

    images = target / "images"
    images.mkdir(parents=True, exist_ok=True)
    for old in images.iterdir():
        old.unlink()
    lines: list[str] = []
    for package, file in found.items():
        of_package = [(path, record) for name, path, record in rows if name == package]
        data = members(file, {path for path, _ in of_package})
        for path, record in of_package:
            suffix, encoded = encode(srgb(data[path]))
            name = record["source_photo_id"] + suffix
            (images / name).write_bytes(encoded)
            lines.append(json.dumps({"file": f"images/{name}", **record}, ensure_ascii=False))
        sys.stderr.write(f"{package}: {len(of_package)} photos\n")
    (target / "photos.jsonl").write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    source_of = {record["source_photo_id"]: record["source"] for _, _, record in rows}
    write_judgments(shared, target, source_of)
    write_licences(found, target / "licences")


def main() -> None:
    """Parse the command line and build."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", type=Path, required=True, help="folder of the nine packages")
    parser.add_argument("--shared", type=Path, required=True, help="folder of the source lists")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parent / "demo",
        help="where to build; must hold the two lists (default: demo beside this script)",
    )
    options = parser.parse_args()
    build(options.packages, options.shared, options.out)


if __name__ == "__main__":
    main()
