"""Which languages are read: planted models of which it is known what they must reach."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.mini import bench_reading
from benchmarks.mini.bench_reading import (
    FORTY,
    average,
    measure_reading,
    rank_counterparts,
    reach_of,
    read_pairs,
)
from searchlab.models.mini.text import SENTENCES


def rows_of(texts):
    """Rows that tell texts apart by their last character, whatever language they are in."""
    return np.eye(128, dtype=np.float32)[[ord(text[-1]) for text in texts]]


PAIRS = {"de": [(f"Satz {chr(97 + n)}", f"sentence {chr(97 + n)}") for n in range(20)]}


def test_a_model_that_reads_everything_finds_all():
    (row,) = measure_reading(PAIRS, rows_of).values()
    assert row["sentences"] == 20
    assert row["R@1"] == {"mean": 100.0, "interval": [100.0, 100.0]}
    assert "reach" not in row  # Nothing is said of words where none were measured.


def test_a_model_that_takes_all_texts_for_the_same_finds_nothing():
    (row,) = measure_reading(PAIRS, lambda texts: np.ones((len(texts), 4), np.float32)).values()
    assert row["R@1"]["mean"] == row["R@10"]["mean"] == 0


def test_a_text_that_was_not_read_finds_nothing():
    english = np.eye(3, dtype=np.float32)
    sentences = english.copy()
    sentences[1] = 0
    assert rank_counterparts(sentences, english, "abc").tolist() == [0, 3, 0]


def test_ranks_count_the_better_answers():
    english = np.array([[1, 0], [0, 1], [0.8, 0.6]], dtype=np.float32)
    sentences = np.array([[1, 0], [1, 0.1], [0.6, 0.8]], dtype=np.float32)
    assert rank_counterparts(sentences, english, "abc").tolist() == [0, 2, 0]


def test_equal_english_sentences_are_the_same_answer():
    english = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert rank_counterparts(english, english, ["dog", "dog", "cat"]).tolist() == [0, 0, 0]
    # Rows that are equal by mistake are not.
    assert rank_counterparts(english, english, ["dog", "cat", "bus"]).tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("sentences", "words", "reach"),
    [
        (50.0, None, "reads sentences"),
        (50.0, 0.0, "reads sentences"),
        (49.9, 17.0, "reads words"),
        (49.9, 16.9, "does not read"),
        (17.0, None, "reads words"),
        (16.9, None, "does not read"),
    ],
)
def test_what_a_language_reaches(sentences, words, reach):
    assert reach_of(sentences, words) == reach


def test_labels_are_those_of_the_same_script():
    labels = {"zh_TW": {"labels": 150, "mean": 20.0}, "zh-Hant": {"labels": 150, "mean": 1.0}}
    pairs = {"zh-Hant": PAIRS["de"], "fo": PAIRS["de"]}
    blind = measure_reading(pairs, lambda texts: np.ones((len(texts), 4), np.float32), labels)
    assert blind["zh-Hant"]["words"] == labels["zh_TW"]
    assert blind["zh-Hant"]["reach"] == "reads words"
    assert (blind["fo"]["words"], blind["fo"]["reach"]) == (None, "does not read")


def test_means_are_over_all_and_over_the_forty():
    measured = {one: {"R@1": {"mean": 60.0}, "R@10": {"mean": 80.0}} for one in FORTY}
    measured["yi"] = {"R@1": {"mean": 19.0}, "R@10": {"mean": 80.0}}
    assert average(measured) == {
        "R@1.all": 0.59,
        "R@1.forty": 0.6,
        "R@10.all": 0.8,
        "R@10.forty": 0.8,
    }
    del measured["de"]
    assert set(average(measured)) == {"R@1.all", "R@10.all"}


def test_the_forty_are_forty():
    assert len(set(FORTY)) == len(FORTY) == 40


def test_pairs_are_read_by_language(tmp_path):
    path = tmp_path / bench_reading.FOLDER / bench_reading.FILE
    path.parent.mkdir()
    lines = ["lang\ttext\tenglish", 'de\t"Hund\tdog', "fr\tchien\tdog", "de\tHaus\thouse"]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert read_pairs(tmp_path) == {
        "de": [('"Hund', "dog"), ("Haus", "house")],
        "fr": [("chien", "dog")],
    }


NAMES = {
    "af": "afrikaans", "ar": "arabic", "az": "azerbaijani", "be": "belarusian", "bg": "bulgarian",
    "bn": "bengali", "br": "breton", "ca": "catalan", "cs": "czech", "cy": "welsh", "da": "danish",
    "de": "german", "el": "greek", "eo": "esperanto", "es": "spanish", "et": "estonian",
    "eu": "basque", "fa": "persian", "fi": "finnish", "fil": "filipino", "fr": "french",
    "ga": "irish", "gd": "scottish gaelic", "gl": "galician", "he": "hebrew", "hi": "hindi",
    "hr": "croatian", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "is": "icelandic",
    "it": "italian", "ja": "japanese", "ka": "georgian", "kk": "kazakh", "ko": "korean",
    "ku": "kurdish", "la": "latin", "lt": "lithuanian", "lv": "latvian", "mk": "macedonian",
    "ml": "malayalam", "mn": "mongolian", "mr": "marathi", "ms": "malay", "nb": "norwegian",
    "nl": "dutch", "nn": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sk": "slovak", "sl": "slovenian", "sq": "albanian", "sr": "serbian",
    "sr-Latn": "serbian", "sv": "swedish", "th": "thai", "tr": "turkish", "ug": "uyghur",
    "uk": "ukrainian", "ur": "urdu", "vi": "vietnamese", "yi": "yiddish", "zh-Hans": "chinese",
    "zh-Hant": "chinese",
}  # fmt: skip


def test_the_model_names_the_languages_that_it_was_measured_to_read():
    path = Path(__file__).parents[2] / "results/reading/sentences-judge/mini.json"
    measured = json.loads(path.read_text(encoding="utf-8"))["by_language"]
    read = {NAMES[one] for one, row in measured.items() if row["reach"] == "reads sentences"}
    others = {NAMES[one] for one, row in measured.items() if row["reach"] != "reads sentences"}
    assert set(SENTENCES) == (read - others) | {"english"}
    assert list(SENTENCES) == sorted(SENTENCES)


def test_the_readme_names_the_same_languages():
    text = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    listed = text.partition("- **Reads sentences** in ")[2].partition(":")[0]
    assert listed.lower().split(", ") == list(SENTENCES)
