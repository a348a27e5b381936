"""Photos that are on both sides: the same bytes, the same names, the same picture made smaller."""

import hashlib

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from searchlab.cli import searchlab
from searchlab.errors import InputError, NotFoundError
from searchlab.evaluation.datasets import load_dataset
from searchlab.evaluation.datasets.overlap import find_overlap
from searchlab.models import load_model

SHADES = ("#e50000", "#15b01a", "#0343df", "#ffff14")


def striped(seed):
    rng = np.random.default_rng(seed)
    colors = [Image.new("RGB", (1, 1), SHADES[n]).getpixel((0, 0)) for n in rng.permutation(4)]
    widths = rng.integers(10, 60, 4)
    row = np.concatenate([[color] * width for color, width in zip(colors, widths, strict=True)])
    return Image.fromarray(np.repeat(row[None].astype(np.uint8), 90, axis=0))


def make(folder, pictures):
    folder.mkdir()
    lines = []
    for name, picture in pictures.items():
        picture.save(folder / name)
        lines.append(f'{{"file": "{name}", "source": "own", "source_photo_id": "id-{name}"}}')
    first = next(iter(pictures))
    (folder / "photos.jsonl").write_text("\n".join(lines))
    (folder / "queries.tsv").write_text("query_id\tlang\ttext\nq\ten\tstripes\n")
    (folder / "qrels.tsv").write_text(f"query_id\tphoto_id\trelevance\nq\t{first}\t1\n")
    return folder


@pytest.fixture
def folders(tmp_path):
    """The test set has one photo of the other as it is, one made smaller, and two of its own."""
    same, resized = striped(1), striped(2)
    test = make(
        tmp_path / "test",
        {
            "same.png": same,
            "smaller.png": resized.resize((resized.width // 2, 45)),
            "one.png": Image.new("RGB", (60, 40), "#000000"),
            "two.png": Image.new("RGB", (60, 40), "#ffffff"),
        },
    )
    train = make(tmp_path / "train", {"a.png": same, "b.png": resized, "c.png": striped(3)})
    return test, train


def test_the_same_bytes_are_found_and_with_a_model_the_same_picture(folders):
    test, train = map(load_dataset, folders)
    (found,) = find_overlap(test, train)
    assert (found.name, found.by) == ("same.png", "content")
    assert found.other.endswith("a.png")
    both = find_overlap(test, train, model=load_model("palette"), at_least=0.99)
    assert [(one.name, one.by) for one in both] == [
        ("same.png", "content"),
        ("smaller.png", "looks"),
    ]
    assert both[1].other.endswith("b.png")
    assert 0.99 <= both[1].cosine <= 1


def test_a_training_list_names_photos_by_hash_file_or_id(folders, tmp_path):
    test = load_dataset(folders[0])
    digest = hashlib.sha256((folders[0] / "same.png").read_bytes()).hexdigest()
    seen = tmp_path / "seen.txt"
    seen.write_text(f"{digest}\nsome/where/one.jpg\n\nid-two.png\nnobody\n")
    assert [(one.name, one.by, one.other) for one in find_overlap(test, seen)] == [
        ("same.png", "content", digest),
        ("one.png", "name", "some/where/one.jpg"),
        ("two.png", "name", "id-two.png"),
    ]


def test_what_cannot_be_compared_is_refused(folders, tmp_path):
    test = load_dataset(folders[0])
    with pytest.raises(NotFoundError, match="must be a list of photos, one a line"):
        find_overlap(test, tmp_path / "none.txt")
    with pytest.raises(InputError, match="looks must be compared with a dataset"):
        find_overlap(test, tmp_path / "none.txt", model=load_model("palette"))
    with pytest.raises(InputError, match="at_least must be above 0"):
        find_overlap(test, test, at_least=0)


def test_the_command_lists_them_and_says_how_many(folders):
    done = CliRunner().invoke(searchlab, ["overlap", *map(str, folders)])
    assert done.exit_code == 0, done.output
    assert "1 of 4 photos of test (25.0 %)" in done.output


@pytest.mark.parametrize("line", ["{0}", "\ufeff{0}", "{0}  other.png", "{0} *sub/other.png"])
@pytest.mark.parametrize("written", [str.lower, str.upper])
def test_checksums_as_other_programs_print_them_are_found(folders, tmp_path, line, written):
    digest = hashlib.sha256((folders[0] / "same.png").read_bytes()).hexdigest()
    listed = tmp_path / "list.txt"
    listed.write_text(line.format(written(digest)) + "\n", encoding="utf-8")
    (found,) = find_overlap(load_dataset(folders[0]), listed)
    assert (found.name, found.by) == ("same.png", "content")
