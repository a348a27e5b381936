"""Vectors computed elsewhere: every file that holds them, every way in which they are wrong."""

import base64
import hashlib
import io
import json
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from searchlab.errors import ConflictError, DataError, InputError, MismatchError, NotFoundError
from searchlab.models import load_model, unit_rows
from searchlab.models.contract import check_model
from searchlab.models.vectors.embedder import DESCRIPTION, load_vectors
from searchlab.models.vectors.names import NamedPhoto, NameIndex
from searchlab.models.vectors.tables import read_file, write_table
from searchlab.models.vectors.writing import write_vectors

IDS = ["a.jpg", "b.jpg", "c.jpg"]
ROWS = unit_rows(np.random.default_rng(0).normal(size=(3, 8)))


def photo(path, sha256="", photo_id="", source_photo_id=""):
    return NamedPhoto(photo_id, source_photo_id, sha256 or str(path), Path(path))


def row_for(model, path):
    (place,) = model.rows_of([photo(path)]).values()
    return model.photo_rows([place])[0]


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "vectors"
    folder.mkdir()
    return folder


def put(folder, rows=ROWS, ids=IDS):
    np.save(folder / "photos.npy", rows)
    (folder / "photos.txt").write_text("".join(f"{name}\n" for name in ids))
    return load_vectors(str(folder))


# -- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["npy", "npz", "parquet", "safetensors"])
def test_every_kind_of_file_comes_back_as_it_was_written(kind, tmp_path):
    if kind in ("parquet", "safetensors"):
        pytest.importorskip({"parquet": "pyarrow"}.get(kind, kind))
    written = write_vectors(
        tmp_path / "v", IDS, ROWS, texts=["a dog", "ein Hund"], text_vectors=ROWS[:2], kind=kind
    )
    model = load_model(f"vectors:{tmp_path / 'v'}")
    assert model.model_id == written.model_id
    assert [row_for(model, f"/x/{name}").tolist() for name in IDS] == ROWS.tolist()
    assert model.encode_texts(["ein Hund", " a dog "]).tolist() == ROWS[[1, 0]].tolist()


@pytest.mark.parametrize("names", ["ids.txt", "embeddings.txt", "ids.json", "ids.npy"])
def test_a_single_array_takes_its_names_from_a_file_beside_it(names, place):
    np.save(place / "embeddings.npy", ROWS.astype(np.float16))
    if names.endswith(".npy"):
        np.save(place / names, np.array(IDS))
    else:
        text = json.dumps(IDS) if names.endswith(".json") else "\r\n".join(IDS)
        (place / names).write_text(text)
    row = row_for(load_vectors(str(place)), "/photos/b.jpg")
    np.testing.assert_allclose(row, ROWS[1], atol=1e-3)


def test_usual_names_of_arrays_and_whole_numbers_as_ids_are_known(place):
    np.savez(place / "features.npz", image_ids=1, image_id=[7, 8, 9], image_embeddings=ROWS)
    np.savez(place / "captions.npz", captions=["a dog"], text_emb=ROWS[:1])
    model = load_vectors(str(place))
    assert row_for(model, "/coco/9.jpg").tolist() == ROWS[2].tolist()
    assert model.encode_texts(["a dog"]).tolist() == ROWS[:1].tolist()


def test_a_folder_of_clip_retrieval_is_read(place):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for kind in ("img_emb", "text_emb", "metadata"):
        (place / kind).mkdir()
    for part, rows in (("0", slice(0, 2)), ("1", slice(2, 3))):
        np.save(place / "img_emb" / f"img_emb_{part}.npy", ROWS[rows].astype(np.float16))
        np.save(place / "text_emb" / f"text_emb_{part}.npy", ROWS[::-1][rows].astype(np.float16))
        table = {
            "image_path": [f"/data/coco/val/{name}" for name in IDS[rows]],
            "caption": ["a dog", "a cat", "a dog"][rows],
            "width": [1] * len(IDS[rows]),
        }
        pq.write_table(pa.table(table), place / "metadata" / f"metadata_{part}.parquet")
    model = load_vectors(str(place))
    np.testing.assert_allclose(row_for(model, "/home/me/val/c.jpg"), ROWS[2], atol=1e-3)
    np.testing.assert_allclose(model.encode_texts(["a dog"])[0], ROWS[2], atol=1e-3)
    (place / "img_emb" / "img_emb_1.npy").unlink()
    with pytest.raises(InputError, match=r"img_emb_1\.npy"):
        load_vectors(str(place))


def fiftyone(array):
    file = io.BytesIO()
    np.save(file, array)
    return base64.b64encode(zlib.compress(file.getvalue())).decode()


@pytest.mark.parametrize(
    "encode",
    [
        lambda row: {"$binary": {"base64": fiftyone(row), "subType": "00"}},
        lambda row: {"$binary": fiftyone(row), "$type": "00"},
        lambda row: row.astype(float).tolist(),
    ],
)
def test_an_export_of_fiftyone_is_read(encode, place):
    samples = [
        {"filepath": f"data/{name}", "tags": ["x", "y"], "embedding": encode(row)}
        for name, row in zip(IDS, ROWS, strict=True)
    ]
    samples.append({"filepath": "data/d.jpg", "embedding": None})
    (place / "samples.json").write_text(json.dumps({"samples": samples}))
    model = load_vectors(str(place))
    np.testing.assert_allclose(row_for(model, "/x/data/b.jpg"), ROWS[1], rtol=1e-6)
    samples[0]["other"] = samples[0]["embedding"]
    (place / "samples.json").write_text(json.dumps({"samples": samples}))
    with pytest.raises(InputError, match=r"one field of vectors, got 'embedding', 'other'"):
        load_vectors(str(place))
    (place / DESCRIPTION).write_text('{"field": "embedding"}')
    assert load_vectors(str(place)).n_photos == 3


def test_a_cache_of_mteb_is_read_by_the_hashes_of_texts_and_pixels(place, tmp_path):
    picture = Image.new("RGB", (5, 4), "#e01010")
    picture.save(tmp_path / "red.png")
    names = [hashlib.sha256(data).hexdigest() for data in (b"a dog", picture.tobytes(), b"x")]
    # Bare float32 with room at the end, whatever the name of the file says.
    np.vstack([ROWS, np.zeros((5, 8), np.float32)]).tofile(place / "vectors.npy")
    (place / "index.json").write_text(json.dumps({name: i for i, name in enumerate(names)}))
    (place / "dimension").write_text("8")
    model = load_vectors(str(place))
    assert model.encode_texts(["a dog"]).tolist() == ROWS[:1].tolist()
    assert row_for(model, tmp_path / "red.png").tolist() == ROWS[1].tolist()
    (place / "dimension").write_text("7")
    with pytest.raises(InputError, match="must be a cache of MTEB"):
        load_vectors(str(place))


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "ids", "message"),
    [
        (np.where([[0], [1], [0]], np.nan, ROWS), IDS, "'b.jpg' .* finite numbers, got NaN"),
        (ROWS * 10, IDS, r"'a.jpg' .* length 1, got 10 .*\"normalised\": false"),
        (ROWS * [[1], [0], [1]], IDS, "'b.jpg' .* got all zeros"),
        (ROWS, IDS[:2], "one name a vector, got 2 names for 3 vectors"),
        (ROWS, ["a", "b", "a"], "must be different, got 'a' twice"),
        (ROWS[0], IDS, "one row a vector, got float32 of shape"),
        (np.array([["x"]] * 3), IDS, "must hold a table of numbers"),
        (np.array([[{}]] * 3), IDS, "must be a .npy file of vectors"),
    ],
)
def test_unusable_rows_and_names_are_refused_by_name(rows, ids, message, place):
    with pytest.raises(InputError, match=message):
        put(place, rows, ids)


def test_what_is_no_folder_of_vectors_says_what_would_be_one(place):
    with pytest.raises(NotFoundError, match="got no such folder"):
        load_vectors(str(place / "absent"))
    (place / "notes.md").write_text("")
    with pytest.raises(NotFoundError, match=r"ids one a line in photos.txt, got notes.md"):
        load_vectors(str(place))
    np.save(place / "photos.npy", ROWS)
    with pytest.raises(InputError, match=r"names one a line in photos.txt beside it"):
        load_vectors(str(place))
    with pytest.raises(InputError, match="must be named by their folder"):
        load_model("vectors:")


def test_photos_and_texts_are_of_one_dimension_and_one_file_each(place):
    put(place)
    np.savez(place / "texts.npz", texts=["x"], text_vectors=[[1.0, 0.0]])
    with pytest.raises(InputError, match="must have one dimension, got 8 and 2"):
        load_vectors(str(place))
    np.savez(place / "texts.npz", ids=IDS, vectors=ROWS, texts=IDS)
    np.savez(place / "more.npz", ids=IDS, vectors=ROWS)
    with pytest.raises(InputError, match=r"one file of vectors of photos .* more.npz, photos.npy"):
        load_vectors(str(place))


def test_rows_are_scaled_where_it_is_said_that_they_have_other_lengths(place):
    (place / DESCRIPTION).write_text('{"normalised": false}')
    assert row_for(put(place, ROWS * 7.5), "a.jpg").tolist() == pytest.approx(ROWS[0].tolist())


def test_an_unknown_or_damaged_description_is_refused(place):
    (place / DESCRIPTION).write_text('{"normalized": false}')
    with pytest.raises(DataError, match="got normalized; known are field, format, model"):
        put(place)
    (place / DESCRIPTION).write_text("[]")
    with pytest.raises(DataError, match="must be JSON that describes vectors"):
        put(place)


# -- the model that made them -----------------------------------------------------------------


def test_without_their_model_other_texts_and_pictures_are_refused(place):
    model = put(place)
    assert model.towers == frozenset()
    with pytest.raises(InputError, match=r"vector for every text, got none for 'x' and 1 more"):
        model.encode_texts(["x", "y"])
    with pytest.raises(InputError, match="name the model that made the vectors"):
        model.encode_images([Image.new("RGB", (4, 4))])


def test_without_their_model_the_promises_that_they_can_keep_are_tried(place):
    put(place)
    tried = dict(check_model(f"vectors:{place}"))
    assert set(tried.values()) == {""}
    assert len(tried) >= 5


def test_the_named_model_must_have_made_the_vectors(place):
    texts = ["a dog", "red boat", "snow"]
    mini = load_model("mini")
    rows = mini.encode_texts(texts)
    np.savez(place / "both.npz", ids=IDS, vectors=rows, texts=texts, text_vectors=rows)
    model = load_model(f"vectors:{place}@mini")
    assert model.name == f"vectors:{place}@mini"
    assert model.encode_texts(["green"]).tolist() == mini.encode_texts(["green"]).tolist()
    assert model.sights(rows, 2) == mini.sights(rows, 2)
    turned = rows[:, ::-1]
    np.savez(place / "both.npz", ids=IDS, vectors=turned, texts=texts, text_vectors=turned)
    with pytest.raises(MismatchError, match="mini must be the model that made the vectors"):
        load_model(f"vectors:{place}@mini")
    with pytest.raises(MismatchError, match="of a model of 256 components, where it is palette"):
        load_model(f"vectors:{place}@palette")


def test_recorded_identity_is_compared_with_the_model_of_today(tmp_path):
    mini = load_model("mini")
    rows = mini.encode_texts(["a", "dog", "cat"])
    say = {"model": "mini", "model_id": "mini-0123456789ab"}
    with pytest.raises(MismatchError, match=r"got vectors of mini-0123456789ab, where it is mini-"):
        write_vectors(tmp_path / "v", IDS, rows, **say)
    say |= {"model_id": mini.model_id, "preprocessing": "0" * 12}
    with pytest.raises(MismatchError, match=r"preprocessing of mini, .* got 000000000000"):
        write_vectors(tmp_path / "v", IDS, rows, **say)
    assert not list(tmp_path.iterdir())


def test_the_id_is_that_of_the_rows_wherever_they_lie(tmp_path):
    one = write_vectors(tmp_path / "a", IDS, ROWS)
    other = write_vectors(tmp_path / "b", IDS, ROWS)
    changed = write_vectors(tmp_path / "c", IDS[::-1], ROWS)
    assert one.model_id == other.model_id != changed.model_id


def test_a_folder_with_other_files_is_not_written_over(tmp_path):
    write_vectors(tmp_path / "v", IDS, ROWS)
    with pytest.raises(ConflictError, match="new or empty folder"):
        write_vectors(tmp_path / "v", IDS, ROWS)
    write_vectors(tmp_path / "v", IDS[:2], ROWS[:2], force=True)
    with pytest.raises(ConflictError, match="new or empty folder"):
        write_vectors(tmp_path, IDS, ROWS, force=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1, 0], [0, 2]],), r"'b' in vectors, row 1, .* length 1, got 2 .*normalised=False\)$"),
        (([[1, 0], [0, 0]],), "'b' in vectors, row 1, .* got all zeros"),
        (([[1, 0], [1, 0]], ["t"], [[3, 0]]), "'t' in text_vectors, row 0, .* length 1, got 3"),
        (([[1, 0], [1, 0]], ["t"], [[1, 0, 0]]), r"in /.*/v must have one dimension, got 2 and 3"),
    ],
)
def test_what_cannot_be_written_is_said_of_the_arguments(tmp_path, arguments, message):
    vectors, texts, text_vectors = [*arguments, [], []][:3]
    with pytest.raises(InputError, match=message) as refused:
        write_vectors(tmp_path / "v", ["a", "b"], vectors, texts=texts, text_vectors=text_vectors)
    assert ".part" not in str(refused.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["list_", "large_list"])
def test_lists_of_either_length_are_read_from_parquet(tmp_path, kind):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    vectors = pa.array(ROWS.tolist(), getattr(pa, kind)(pa.float32()))
    pq.write_table(pa.table({"id": IDS, "vector": vectors}), tmp_path / "photos.parquet")
    table, _ = read_file(tmp_path / "photos.parquet")
    assert table.rows.tolist() == ROWS.tolist()


# -- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["12.jpg", "12", "val/12", "val/12.jpg", "coco/val/12.jpg", "/data/coco/val/12.jpg", "v\\12"],
)
def test_a_photo_is_found_by_any_end_of_its_path(name):
    ends_here = name != "v\\12"
    rows = NameIndex([name, name.replace("12", "13")])
    assert rows.row_of(photo("/home/me/coco/val/12.jpg")) == (0 if ends_here else None)


def test_a_shared_folder_that_is_another_one_here_is_no_match():
    rows = NameIndex(["/data/coco/train/1.jpg", "/data/coco/train/2.jpg"])
    assert rows.row_of(photo("/home/me/coco/val/1.jpg")) is None
    assert rows.row_of(photo("/home/me/train/2.jpg")) == 1


def test_whole_paths_of_another_system_are_cut_as_ours_are():
    rows = NameIndex([r"C:\Users\me\photos\1.jpg", r"C:\Users\me\photos\2.jpg"])
    assert rows.row_of(photo("/data/photos/2.jpg")) == 1
    assert rows.row_of(photo("/data/pictures/2.jpg")) is None


def test_ids_of_a_photo_count_before_its_path():
    rows = NameIndex(["1.jpg", "P", "S", "f" * 64])
    assert rows.row_of(photo("/x/1.jpg", photo_id="P")) == 1
    assert rows.row_of(photo("/x/1.jpg", sha256="f" * 64, source_photo_id="S")) == 3
    assert rows.row_of(photo("/x/1.jpg", source_photo_id="S")) == 2


def test_one_id_for_two_photos_is_refused(place):
    model = put(place)
    with pytest.raises(InputError, match=r"one photo, got one for /x/a.jpg and /y/a.jpg"):
        model.rows_of([photo("/x/a.jpg"), photo("/y/a.jpg")])
    same = [photo("/x/a.jpg", sha256="1"), photo("/y/a.jpg", sha256="1")]
    assert model.rows_of(same) == {"1": 0}


# What a kind of file cannot keep: all else must come back as it went.
UNKEPT = {
    "npy": re.compile(r"[\n\r]"),
    "npz": re.compile(r"\0\Z"),
    "parquet": re.compile("\udcff"),
    "safetensors": re.compile(r"(?!)"),
}
# Names of files: any character, and a byte that is no UTF-8.
file_names = st.text(
    st.one_of(st.sampled_from("\ufeff\n\r\0\udcff"), st.characters(codec="utf-8")),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("kind", UNKEPT)
@given(names=st.lists(file_names, unique=True, min_size=1, max_size=5))
@example(names=["\ufeff"])
@example(names=["\ufeffa", "\ufeff"])
def test_any_name_that_can_be_written_is_read_again(tmp_path_factory, kind, names):
    folder = tmp_path_factory.mktemp("table")
    rows = np.eye(len(names), 8, dtype=np.float32)
    if any(UNKEPT[kind].search(name) for name in names):
        with pytest.raises(InputError, match="a name in a"):
            write_table(folder, "photos", names, rows, kind)
        assert not list(folder.iterdir())
        return
    write_table(folder, "photos", names, rows, kind)
    table, _ = read_file(folder / f"photos.{kind}")
    assert list(table.names) == names
