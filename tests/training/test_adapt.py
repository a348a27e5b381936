"""Adapting: heads are trained, judged on photos of their own, and kept only if they gain."""

import json
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from filelock import FileLock

import searchlab
from searchlab.config import USUAL
from searchlab.errors import ConflictError, DataError, InputError, MismatchError, NotFoundError
from searchlab.library.ingest import index_photos
from searchlab.library.library import Library, create_library, open_library
from searchlab.models import load_model
from searchlab.models.adapted import CARD_FILE, HEADS_FILE, MODEL_FILE
from searchlab.models.openclip.torchvision_shim import import_torchvision
from searchlab.models.shipped_calibration import calibrate
from searchlab.models.vectors.writing import write_vectors
from searchlab.progress import Progress
from searchlab.training.adapt import adaptation
from searchlab.training.adapt.adaptation import adapt
from searchlab.training.adapt.head_training import Trainer, TrainingSettings
from searchlab.training.adapt.pairs import part_of

pytestmark = pytest.mark.slow

QUICK = TrainingSettings(rounds=6)
# Where it does not matter how well heads are trained: the first of many short rounds that brings
# nothing is the last.
BRIEF = TrainingSettings(rounds=60, patience=1)
APART = "tiles:1:0.7"


@pytest.fixture
def library(indexed, tmp_path, tiles_models, tiles_photos):
    """240 pictures, indexed by a model whose words lie apart from its pictures."""
    if not indexed.exists():
        index_photos(create_library(indexed), [tiles_photos], model=APART)
    return open_library(shutil.copytree(indexed, tmp_path / "library"))


class Interrupting(Progress):
    """Presses Ctrl-C after some rounds of training."""

    def __init__(self, rounds):
        self.left = rounds

    @contextmanager
    def step(self, name, total=None, *, unit=""):
        with super().step(name, total, unit=unit) as step:

            def advance(count):
                if name == "training heads" and count:
                    self.left -= count
                    if self.left <= 0:
                        raise KeyboardInterrupt

            yield replace(step, advance=advance)


def test_a_gain_is_kept_as_a_model_that_is_served_like_any_other(library, tiles_photos):
    report = adapt(library, settings=QUICK)
    assert report.kept
    assert report.base == APART
    assert report.gain.headline.low > 0.05
    assert sum(report.n_photos.values()) == 240
    assert report.folder == library.folder / "models/adapted"
    assert sorted(path.name for path in report.folder.iterdir()) == sorted(
        [CARD_FILE, HEADS_FILE, MODEL_FILE]
    )
    assert [path.name for path in report.folder.parent.iterdir()] == ["adapted"]
    model = load_model(report.model)
    assert model.model_id == report.model_id
    config = calibrate(replace(USUAL, model=report.model))
    assert config.calibration.source.startswith("held-out captions@")
    index_photos(library, model=report.model)
    assert library.engine.config == config
    base, rows = load_model(APART), np.asarray(library.engine.index.vectors)
    with library.cache() as cache:
        digests = list(library.engine.table.texts("sha256"))
        own = model.image_head(cache.vectors(base.model_id, digests, base.dim))
    np.testing.assert_allclose(rows, own, atol=1e-6)
    # By what the model sees alone: the texts of the photos name them.
    index_photos(library, config=replace(config, words=None))
    words = list(library.engine.table.texts("source_description"))[:40]
    pages = [library.search(text, per_page=10) for text in words]
    hits = [
        any(hit.photo.source_description == text for hit in page)
        for page, text in zip(pages, words, strict=True)
    ]
    assert np.mean(hits) > 0.5
    assert all(0 < hit.relevance_score < 1 for page in pages for hit in page)
    fused = load_model(f"hybrid:{report.model}=0.7,palette=0.3")
    assert fused.parts[0][0].model_id == report.model_id


def test_the_test_photos_are_not_trained_on(library, monkeypatch):
    seen = set()
    begin = Trainer.__init__

    def spy(self, train, validation, settings):
        seen.update(train.sha256s, validation.sha256s)
        begin(self, train, validation, settings)

    monkeypatch.setattr(Trainer, "__init__", spy)
    report = adapt(library, settings=QUICK)
    assert len(seen) == report.n_photos["train"] + report.n_photos["validation"]
    assert "test" not in {part_of(sha256) for sha256 in seen}


def test_a_loss_is_refused_and_leaves_nothing_behind(run, library, tiles_photos, tmp_path):
    lines = (tiles_photos / "photos.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    captions = tmp_path / "wrong.tsv"
    shuffled = np.random.default_rng(0).permutation(len(records))
    captions.write_text(
        "\n".join(
            f"{tiles_photos / one['file']}\t{records[other]['source_description']}"
            for one, other in zip(records, shuffled, strict=True)
        )
    )
    before = sorted(library.folder.iterdir())
    code, out, err = run("models", "adapt", "--data", library.folder, "--captions", captions)
    assert code == 1
    assert "gain [95 % by bootstrap over photos]" in out
    assert "must gain on photos that it has not seen" in err
    assert "nothing is kept" in err
    assert sorted(library.folder.iterdir()) == before


def test_the_command_says_what_was_gained_and_how_to_use_it(run, library, tmp_path):
    code, out, err = run("models", "adapt", "--data", library.folder, "--out", tmp_path / "mine")
    assert code == 0, err
    assert "162 to train on, 36 to choose by, 42 to test on" in out
    assert f"searchlab index --data {library.folder} --model adapted:{tmp_path / 'mine'}" in out
    card = (tmp_path / "mine" / CARD_FILE).read_text()
    assert "mrr@10" in card
    assert APART in card
    code, out, err = run("models", "adapt", "--data", library.folder, "--out", tmp_path / "mine")
    assert code == 1
    assert "which exists" in err


def test_a_model_that_is_there_is_replaced_only_by_force(library, tmp_path):
    place = tmp_path / "mine"
    first = adapt(library, out=place, settings=QUICK)
    with pytest.raises(ConflictError, match="new folder"):
        adapt(library, out=place, settings=QUICK)
    second = adapt(library, out=place, settings=replace(QUICK, seed=1), force=True)
    assert first.model_id != second.model_id == load_model(f"adapted:{place}").model_id
    assert [path.name for path in tmp_path.glob("mine*")] == ["mine"]


def test_no_other_folder_is_replaced_even_by_force(library, tmp_path):
    for place, name in ((tmp_path / "holiday", "IMG_1.jpg"), (tmp_path / "a.txt", "")):
        if name:
            place.mkdir()
        (place / name).write_bytes(b"mine")
        with pytest.raises(ConflictError, match="which is none"):
            adapt(library, out=place, settings=QUICK, force=True)
        assert (place / name).read_bytes() == b"mine"
    (tmp_path / "mine" / "sub").mkdir(parents=True)
    (tmp_path / "mine" / MODEL_FILE).write_text("{}")
    with pytest.raises(ConflictError, match="which is none"):
        adapt(library, out=tmp_path / "mine", settings=QUICK, force=True)
    assert (tmp_path / "mine" / "sub").is_dir()


def test_a_model_does_not_replace_the_one_it_stands_on(library, tmp_path):
    first = adapt(library, out=tmp_path / "first", settings=QUICK)
    with pytest.raises(ConflictError, match="stands on"):
        adapt(library, model=first.model, out=tmp_path / "first", settings=QUICK, force=True)
    assert load_model(first.model).model_id == first.model_id


def test_nothing_is_embedded_twice(library, tmp_path):
    model = load_model(APART)
    model.n_pictures = 0
    adapt(library, settings=QUICK, out=tmp_path / "a")
    assert model.n_pictures == 2  # the canaries
    index_photos(library, model=f"adapted:{tmp_path / 'a'}")
    assert model.n_pictures == 5  # the canaries again, and the witness of the snapshot
    index_photos(library, model=APART)
    first = (tmp_path / "a" / HEADS_FILE).read_bytes()
    adapt(library, settings=QUICK, out=tmp_path / "b")
    assert (tmp_path / "b" / HEADS_FILE).read_bytes() == first


def test_an_interrupted_run_goes_on_and_ends_as_if_it_had_not_been(library, tmp_path, monkeypatch):
    monkeypatch.setattr("searchlab.training.adapt.adaptation._CHECKPOINT_S", 0.0)
    whole = adapt(library, settings=QUICK, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        adapt(library, settings=QUICK, out=tmp_path / "part", progress=Interrupting(3))
    assert not (tmp_path / "part").exists()
    lines = []
    progress = Progress()
    progress.say = lines.append
    resumed = adapt(library, settings=QUICK, out=tmp_path / "part", progress=progress)
    assert lines == ["training continues after round 2"]
    assert resumed.model_id == whole.model_id
    assert not (tmp_path / "part.unfinished").exists()


def test_two_processes_do_not_train_the_same_model(library, tmp_path):
    (tmp_path / "mine.unfinished").mkdir()
    with (
        FileLock(tmp_path / "mine.unfinished/lock"),
        pytest.raises(ConflictError, match="one process"),
    ):
        adapt(library, settings=QUICK, out=tmp_path / "mine")


def captions_by_lot(folder, photos):
    words = np.random.default_rng(0)
    names = ["red", "green", "blue", "yellow", "black", "white"]
    captions = folder / "c.tsv"
    lines = [f"{file}\t{' '.join(words.choice(names, 3))}" for file in photos.glob("*.png")]
    captions.write_text("\n".join(lines))
    return captions


def test_where_no_model_is_kept_only_a_folder_that_a_person_made_stays(tmp_path, tiles_photos):
    library = create_library(tmp_path / "lib")
    captions = captions_by_lot(tmp_path, tiles_photos)
    for made in (True, False):
        place = tmp_path / f"models-{made}"
        if made:
            place.mkdir()
        report = adapt(
            library, model="palette", captions=captions, out=place / "mine", settings=BRIEF
        )
        assert not report.kept
        assert place.exists() == made


def test_a_killed_run_goes_on(tmp_path, tiles_photos, run, monkeypatch):
    monkeypatch.setattr("searchlab.training.adapt.adaptation._CHECKPOINT_S", 0.0)
    captions = captions_by_lot(tmp_path, tiles_photos)
    # Waits to be killed after the first round.
    code = (
        "import time, searchlab.training.adapt.adaptation as a\n"
        "from searchlab.training.adapt.head_training import Trainer\n"
        "from searchlab.cli import main\n"
        "a._CHECKPOINT_S = 0.0\n"
        "waits, train = iter([0]), Trainer.train_round\n"
        "Trainer.train_round = lambda self: (time.sleep(next(waits, 60)), train(self))\n"
        "main()\n"
    )
    arguments = ["models", "adapt", "--data", tmp_path / "lib", "--captions", captions]
    command = [*map(str, arguments), "--model", "palette"]
    process = subprocess.Popen([sys.executable, "-c", code, *command], stderr=subprocess.DEVNULL)
    state = tmp_path / "lib/models/adapted.unfinished/training.npz"
    deadline = time.monotonic() + 50
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert state.exists()
    done = run(*command)
    assert done.code == 1, done.err  # the captions are by lot
    assert "training continues after round 1" in done.err
    assert not (tmp_path / "lib/models").exists()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hybrid:palette=0.5,tiles:1=0.5", "adapt one of palette, tiles:1"),
        ("captions", "must read pixels, got captions"),
        ("nonsense", "must begin with one of"),
    ],
)
def test_models_that_cannot_be_adapted_are_refused(library, spec, message):
    with pytest.raises(InputError, match=message):
        adapt(library, model=spec)


def test_a_model_of_given_vectors_is_refused_and_the_one_that_made_them_adapted(
    library, tmp_path, monkeypatch
):
    rows = np.eye(3, load_model("palette").dim, dtype=np.float32)
    write_vectors(tmp_path / "v", ["a", "b", "c"], rows)
    config = SimpleNamespace(model=f"vectors:{tmp_path / 'v'}")
    monkeypatch.setattr(Library, "snapshot", lambda library: SimpleNamespace(config=config))
    with pytest.raises(InputError, match="must be one that embeds photos itself, got vectors:"):
        adaptation._load_base(library, None)
    config.model += "@palette"
    assert adaptation._load_base(library, None) is load_model("palette")
    with pytest.raises(InputError, match="must be one that embeds photos itself, got vectors:"):
        adaptation._load_base(library, config.model)


def test_too_few_photos_are_refused(tmp_path, tiles_models, tiles_photos):
    captions = tmp_path / "few.tsv"
    captions.write_text("\n".join(f"{tiles_photos}/{n:03d}.png\t{n}" for n in range(60)))
    library = create_library(tmp_path / "library")
    with pytest.raises(InputError, match="at least 20 photos"):
        adapt(library, model="tiles:1", captions=captions)
    assert not (library.folder / "models").exists()
    with pytest.raises(NotFoundError, match="must hold photos"):
        adapt(library, model="tiles:1")


def test_photos_that_cannot_be_read_are_reported_and_left_out(library, tiles_photos, tmp_path):
    lines = (tiles_photos / "photos.jsonl").read_text().splitlines()
    (tmp_path / "broken.png").write_bytes(b"no picture")
    records = [json.loads(line) for line in lines]
    rows = [f"{tiles_photos / one['file']}\t{one['source_description']}" for one in records]
    rows += [f"{tmp_path / 'broken.png'}\t1 2 3", f"{tmp_path / 'gone.png'}\t1 2 3"]
    (tmp_path / "c.tsv").write_text("\n".join(rows))
    report = adapt(library, captions=tmp_path / "c.tsv", settings=QUICK)
    assert report.kept
    reasons = {Path(problem.where).name: problem.reason for problem in report.problems}
    assert reasons["gone.png"] == "cannot be read: No such file or directory"
    assert set(reasons) == {"gone.png", "broken.png"}


def test_an_adapted_library_adapts_its_base_again(library):
    report = adapt(library, settings=QUICK)
    index_photos(library, model=report.model)
    again = adapt(library, settings=QUICK, out=library.folder / "models/again")
    assert again.base == APART


def test_a_damaged_or_misplaced_model_is_refused(library, tmp_path):
    report = adapt(library, settings=QUICK)
    path = report.folder / MODEL_FILE
    sound = path.read_text()
    values = json.loads(sound)
    path.write_text(json.dumps(values | {"base_model_id": "tiles-000000000000"}))
    with pytest.raises(MismatchError, match="must stand on the model that it was trained on"):
        load_model(report.model)
    path.write_text(json.dumps(values | {"model_id": "adapted-tiles-000000000000"}))
    with pytest.raises(DataError, match="must be as it was written"):
        load_model(report.model)
    for wrong in ("{", "[]", json.dumps(values | {"format": 9}), json.dumps({"kind": "adapted"})):
        path.write_text(wrong)
        with pytest.raises(DataError, match="must be as it was written"):
            load_model(report.model)
    path.write_text(sound)
    (report.folder / HEADS_FILE).write_bytes(b"PK")
    with pytest.raises(DataError, match="make the model again"):
        load_model(report.model)
    with pytest.raises(NotFoundError, match="searchlab models adapt"):
        load_model(f"adapted:{tmp_path / 'nowhere'}")
    with pytest.raises(InputError, match="named by its folder"):
        load_model("adapted:")


def test_a_base_that_embeds_otherwise_is_noticed_by_the_canaries(library, tiles_models):
    report = adapt(library, settings=QUICK)
    model = load_model(report.model)
    base = tiles_models[APART]
    base.turn = base.turn[:, ::-1]
    with pytest.raises(MismatchError, match="canary"):
        model.encode_images([])


def test_a_tower_of_open_clip_is_adapted_like_any_other(library, tmp_path):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    import_torchvision()
    open_clip = pytest.importorskip("open_clip", exc_type=ImportError)
    torch.set_num_threads(1)
    vision = {"image_size": 32, "layers": 1, "width": 64, "patch_size": 16, "head_width": 32}
    text = {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 1}
    config = tmp_path / "adapt-tiny.json"
    config.write_text(json.dumps({"embed_dim": 32, "vision_cfg": vision, "text_cfg": text}))
    open_clip.add_model_config(config)
    report = adapt(library, model="openclip:adapt-tiny/random-3", settings=BRIEF)
    assert report.base == "openclip:adapt-tiny/random-3"
    assert sum(report.n_photos.values()) == 240
    assert (report.folder is not None) == report.kept == (report.gain.headline.low > 0)


def test_it_is_a_public_name():
    assert searchlab.adapt is adapt
