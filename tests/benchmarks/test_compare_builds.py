"""Builds of `mini` side by side: planted builds of which it is known what they find and gain."""

import numpy as np
import pytest
from PIL import Image

from benchmarks.mini.bench_reading import FOLDER
from benchmarks.mini.compare_builds import (
    Ranks,
    average,
    compare,
    lines_of,
    rank_judge,
    rank_photos,
    rank_sentences,
)
from benchmarks.mini.reading_chart import draw_reading
from benchmarks.mini.tasks import Query, Task
from searchlab.errors import NotFoundError

N = 300


def found(ranks, groups=None):
    return Ranks(np.array(ranks), np.arange(len(ranks)) if groups is None else np.array(groups))


def test_a_perfect_build_finds_all_and_one_that_shuffles_as_many_as_chance():
    rng = np.random.default_rng(1)
    names = [f"l{number}" for number in range(40)]
    perfect = {name: found(np.zeros(N, dtype=int)) for name in names}
    shuffled = {name: found(rng.permutation(N)) for name in names}
    best, chance, gain = compare([perfect, shuffled], 10, names)
    assert best == {"mean": 100.0, "interval": [100.0, 100.0]}
    assert chance["mean"] == pytest.approx(1000 / N, abs=0.01)
    low, high = chance["interval"]
    assert low < chance["mean"] < high
    assert gain["mean"] == pytest.approx(chance["mean"] - 100)


def test_a_gain_is_that_of_the_last_build_over_the_first():
    builds = [{"de": found([5] * 10)}, {"de": found([0] * 10)}, {"de": found([0, 5] * 5)}]
    first, second, third, gain = compare(builds, 1, ["de"])
    assert [one["mean"] for one in (first, second, third, gain)] == [0, 100, 50, 50]
    assert len(compare(builds[:1], 1, ["de"])) == 1


def test_a_gain_is_drawn_by_the_same_queries():
    rng = np.random.default_rng(3)
    before = rng.integers(0, 2, size=N)
    after = before.copy()
    after[np.flatnonzero(before)[:6]] = 0  # Six more are found first, and none is lost.
    first, last, gain = compare([{"de": found(before)}, {"de": found(after)}], 1, ["de"])
    assert gain["mean"] == 2
    assert gain["interval"][0] > 0
    assert last["interval"][0] < first["interval"][1]  # The two alone would not show it.


def test_each_language_counts_the_same_in_a_mean():
    values = [np.ones(90), np.zeros(10)]
    assert average(values, [np.arange(90), np.arange(100, 110)])["mean"] == 50


@pytest.mark.slow
def test_queries_of_several_languages_about_one_thing_are_drawn_together():
    hits = (np.random.default_rng(2).random(N) < 0.5).astype(float)
    together = average([hits] * 20, [np.arange(N)] * 20)["interval"]
    apart = average([hits] * 20, [np.arange(N) + N * number for number in range(20)])["interval"]
    assert together[1] - together[0] > 3 * (apart[1] - apart[0])


def test_sentences_with_one_english_counterpart_are_one_piece_of_evidence():
    pairs = {"de": [("Hund", "dog"), ("Haus", "house")], "fr": [("maison", "house")]}
    ranks = rank_sentences(pairs, lambda texts: np.eye(4, dtype=np.float32)[: len(texts)])
    assert ranks["de"].ranks.tolist() == [0, 0]
    assert ranks["fr"].groups.tolist() == [ranks["de"].groups[1]]


class Planted:
    """A model that sees the first colour channel, and reads every number as that."""

    def encode_images(self, pictures):
        reds = [picture.getpixel((0, 0))[0] for picture in pictures]
        return np.eye(256, dtype=np.float32)[reds]

    def encode_texts(self, texts):
        return np.eye(256, dtype=np.float32)[[int(text) for text in texts]]


def test_captions_are_ranked_by_language_over_all_photos(tmp_path):
    paths = [tmp_path / f"{red}.png" for red in range(70)]  # more than are open at a time
    for red, path in enumerate(paths):
        Image.new("RGB", (2, 2), (red, 0, 0)).save(path)
    queries = [Query("en", "0", (0,)), Query("de", "69", (69,)), Query("de", "200", (1,))]
    ranks = rank_photos(Task("drawn", paths, queries), Planted())
    assert {name: own.ranks.tolist() for name, own in ranks.items()} == {"en": [0], "de": [0, 69]}
    assert ranks["de"].groups.tolist() == [69, 1]


@pytest.mark.slow
def test_a_table_has_a_line_for_each_language_and_marks_a_gain_that_is_sure():
    worse, better = ({"de": found([rank] * N), "gl": found([9] * N)} for rank in (9, 0))
    lines = lines_of(FOLDER, [worse, better])
    assert lines[0] == "sentences-judge: success@k in percent, then the gain"
    marked = [line[:30].split() for line in lines if line.endswith(" *")]
    assert [(words[0], words[-1]) for words in marked] == [
        (name, cutoff) for name in ("de", "mean", "mean") for cutoff in ("@1", "@5")
    ]
    assert any(line.startswith("  mean of forty       300  @1") for line in lines)
    assert not any(line.endswith(" *") for line in lines_of(FOLDER, [worse]))


def test_a_judge_that_is_not_at_hand_is_named(monkeypatch):
    monkeypatch.delenv("SEARCHLAB_DATASETS", raising=False)
    with pytest.raises(NotFoundError, match="must name a folder that holds web-judge, got None"):
        rank_judge("web-judge", Planted())


@pytest.mark.slow
def test_languages_are_drawn_with_and_without_the_teacher(tmp_path):
    figure = {"mean": 100.0, "interval": [100.0, 100.0]}
    rows = {name: {"R@1": figure, "reach": "reads sentences"} for name in ("de", "fr", "zh-Hans")}
    alone = draw_reading(rows, 50.0, tmp_path / "alone")
    beside = draw_reading(
        {name: row | {"teacher": figure} for name, row in rows.items()}, 50.0, tmp_path / "beside"
    )
    for png, svg in (alone, beside):
        assert png.read_bytes().startswith(b"\x89PNG")
        assert "zh-Hans **" in svg.read_text(encoding="utf-8")
    assert alone[1].read_bytes() != beside[1].read_bytes()
