"""Labels of photos: what is near is listed, what labels share is summed up, damage is named."""

import numpy as np
import pytest

from searchlab.errors import DataError
from searchlab.models.mini.labels import LABEL_VECTORS_FILE, LABELS_FILE, read_labels


@pytest.fixture
def folder(tmp_path):
    lines = ["oboe\tan instrument", "cello\tan instrument", "beagle\ta dog\tan animal", "stone"]
    (tmp_path / LABELS_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    np.save(tmp_path / LABEL_VECTORS_FILE, np.eye(4, dtype=np.float16))
    return tmp_path


def test_kinds_of_fewest_labels_come_first(folder):
    labels = read_labels(folder)
    assert labels.labels == ["oboe", "cello", "beagle", "stone"]
    assert labels.kinds == ["a dog", "an animal", "an instrument"]
    assert labels.members.tolist() == [[0, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0]]


def test_a_kind_has_the_shares_of_all_its_labels(folder):
    between = np.array([[0.7, 0.7, 0.0, 0.14]], dtype=np.float32)
    (sight,) = read_labels(folder).name(between, 2)
    assert [label for label, _ in sight.labels] == ["oboe", "cello"]
    ((kind, share),) = sight.kinds
    assert kind == "an instrument"
    assert share == pytest.approx(1, abs=1e-4)


def test_a_share_below_a_half_is_no_kind(folder):
    even = np.full((1, 4), 0.5, dtype=np.float32)
    (sight,) = read_labels(folder).name(even, 4)
    assert sight.kinds == (("an instrument", pytest.approx(0.5)),)
    assert read_labels(folder).name(even * [[0, 1, 0, 1]], 1)[0].kinds[0][1] == pytest.approx(
        0.5, abs=1e-3
    )


@pytest.mark.parametrize("lost", [LABELS_FILE, LABEL_VECTORS_FILE])
def test_a_missing_file_is_named(folder, lost):
    (folder / lost).unlink()
    with pytest.raises(DataError, match=r"labels in .* must be readable"):
        read_labels(folder)


def test_labels_without_rows_are_refused(folder):
    with (folder / LABELS_FILE).open("a", encoding="utf-8") as file:
        file.write("harp\tan instrument\n")
    with pytest.raises(DataError, match="5 labels with 4 rows"):
        read_labels(folder)
