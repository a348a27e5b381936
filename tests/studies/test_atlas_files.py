"""The filter atlas as files for other benchmarks: its truth is exact, and padding earns nothing."""

import h5py
import numpy as np
import pytest
from pyarrow import parquet

from searchlab.errors import ConflictError, DataError, InputError
from searchlab.studies.filters.atlas import RELATIONS, Atlas
from searchlab.studies.filters.atlas_files import (
    FEW,
    STRICTEST,
    check_answers,
    first_ids,
    write_atlas,
)
from searchlab.studies.vectors.made import made_vectors

N, K, N_QUERIES = 3000, 12, 6
ATLAS = Atlas(made_vectors(f"clustered-{N}-16", seed=2).photos, n_queries=N_QUERIES, seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    write_atlas(ATLAS, folder, k=K)
    return folder


def table(folder, relation, name):
    return parquet.read_table(folder / relation / f"{name}.parquet").to_pydict()


def truth_of(folder, relation, name):
    return table(folder, relation, f"neighbors_{name}" if name else "neighbors")["neighbors_id"]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["", *first_ids(N)])
def test_the_truth_is_what_scoring_each_photo_that_passes_gives(folder, relation, name):
    train, test = table(folder, relation, "train"), table(folder, relation, "test")
    ids, rows = np.array(train["id"]), np.array(train["emb"], dtype=np.float32)
    assert sorted(ids) == list(range(N))
    passing = ids >= first_ids(N).get(name, 0)
    scores = np.array(test["emb"], dtype=np.float32) @ rows[passing].T
    nearest = ids[passing][np.argsort(-scores, axis=1, kind="stable")[:, :K]]
    assert truth_of(folder, relation, name) == nearest.tolist()


@pytest.mark.parametrize("name", ["", "int_50p", "int_99.9p", STRICTEST])
def test_hdf5_says_the_same_and_marks_what_is_no_photo(folder, name):
    ending = f"_{name}" if name else ""
    with h5py.File(folder / "opposed.hdf5") as file:
        day, rows = file["day"][:], file[f"neighbors{ending}"][:]
        distances = file[f"distances{ending}"][:]
        assert (file.attrs["distance"], file.attrs["dimension"]) == ("angular", 16)
        assert file["train"].shape == (N, 16)
        assert file[f"neighbors{ending}"].attrs["first"] == first_ids(N).get(name, 0)
    for place, true in enumerate(truth_of(folder, "opposed", name)):
        assert day[rows[place, : len(true)]].tolist() == true
        assert (rows[place, len(true) :] == -1).all()
        assert np.isinf(distances[place, len(true) :]).all()
        assert (np.diff(distances[place, : len(true)]) >= 0).all()


def test_fewer_photos_pass_the_strictest_filter_than_are_asked_for(folder):
    for relation in RELATIONS:
        truth = truth_of(folder, relation, STRICTEST)
        assert all(sorted(true) == list(range(N - FEW, N)) for true in truth)


def test_the_truth_itself_is_a_perfect_answer_under_every_filter(folder):
    perfect = {"recall": 1, "short": 0, "wrong": 0, "repeated": 0, "padded": 0}
    for name in ["", *first_ids(N)]:
        answers = truth_of(folder, "aligned", name)
        assert check_answers(folder, "aligned", name, answers) == perfect


@pytest.mark.parametrize(
    ("fill", "fault"),
    [
        (lambda true: [-1] * (10 - FEW), "padded"),
        (lambda true: [N + 5] * (10 - FEW), "padded"),
        (lambda true: [true[0]] * (10 - FEW), "repeated"),
        (lambda true: list(range(10 - FEW)), "wrong"),
    ],
)
def test_whatever_fills_an_answer_earns_nothing_and_is_said(folder, fill, fault):
    truth = truth_of(folder, "uncorrelated", STRICTEST)
    whole = [true + fill(true) for true in truth]
    found = check_answers(folder, "uncorrelated", STRICTEST, whole)
    assert (found["recall"], found["short"], found[fault]) == (1, 0, 1)
    instead = [true[:1] + fill(true) for true in truth]
    found = check_answers(folder, "uncorrelated", STRICTEST, instead)
    assert found["recall"] == pytest.approx(1 / FEW)
    assert (found["short"], found[fault]) == (1, 1)


def test_an_answer_of_nothing_finds_nothing(folder):
    found = check_answers(folder, "aligned", "int_99p", [[]] * N_QUERIES)
    assert found == {"recall": 0, "short": 1, "wrong": 0, "repeated": 0, "padded": 0}


def test_what_cannot_be_written_or_checked_is_said(folder, tmp_path):
    with pytest.raises(ConflictError, match="must have no atlas yet"):
        write_atlas(ATLAS, folder)
    with pytest.raises(InputError, match="3,000 photos or more, got 200"):
        first_ids(200)
    with pytest.raises(InputError, match="k must be 1 or more"):
        write_atlas(ATLAS, tmp_path, k=0)
    with pytest.raises(DataError, match="must hold an atlas"):
        check_answers(tmp_path, "aligned", "", [])
    with pytest.raises(DataError, match="its filters are int_50p"):
        check_answers(folder, "aligned", "int_7p", [])
    with pytest.raises(InputError, match="one for each of 6 queries, to a k from 1 to 12"):
        check_answers(folder, "aligned", "", [[1]])
