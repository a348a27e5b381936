"""Colours of pictures and colours that texts name."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from searchlab.errors import MismatchError
from searchlab.models.canaries import Canary
from searchlab.models.palette import embedder
from searchlab.models.palette.embedder import PaletteEmbedder

SHADES = {
    "red": "#d01010",
    "orange": "#f08010",
    "yellow": "#f0e020",
    "green": "#30a030",
    "blue": "#2050d0",
    "purple": "#8030b0",
    "pink": "#ff80b0",
    "brown": "#70401a",
    "black": "#080808",
    "white": "#ffffff",
    "grey": "#858585",
    "turquoise": "#20b0a8",
    "beige": "#dccaa0",
}
NAMES = list(SHADES)


@pytest.fixture(scope="module")
def model():
    return PaletteEmbedder()


@pytest.fixture(scope="module")
def shades(model):
    return model.encode_images([Image.new("RGB", (40, 30), code) for code in SHADES.values()])


def _best(model, shades, text):
    return NAMES[int((model.encode_texts([text]) @ shades.T).argmax())]


@pytest.mark.parametrize("name", NAMES)
def test_a_basic_word_finds_its_shade(model, shades, name):
    assert _best(model, shades, f"a {name} thing") == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ein rotes Auto", "red"),
        ("VOITURE ROUGE", "red"),
        ("coches rojos", "red"),
        ("macchina rossa", "red"),
        ("carro vermelho", "red"),
        ("rode fiets", "red"),
        ("röd stuga", "red"),
        ("rødt hus", "red"),
        ("punaisen talon", "red"),
        ("czerwonego domu", "red"),
        ("červené auto", "red"),
        ("красная машина", "red"),
        ("червоний автомобіль", "red"),
        ("kırmızı araba", "red"),
        ("mașină roșie", "red"),
        ("piros autó", "red"),
        ("κόκκινο αυτοκίνητο", "red"),
        ("السيارة الحمراء", "red"),
        ("מכונית אדומה", "red"),
        ("ماشین قرمز", "red"),
        ("लाल कार", "red"),
        ("লাল গাড়ি", "red"),
        ("红色汽车", "red"),
        ("赤い車", "red"),
        ("빨간색 자동차", "red"),
        ("xe màu đỏ", "red"),
        ("รถสีแดง", "red"),
        ("mobil merah", "red"),
        ("червена кола", "red"),
        ("gari nyekundu", "red"),
        ("weiße Wand", "white"),
        ("weisse Wand", "white"),
        ("fleur bleue", "blue"),
        ("cor de rosa", "pink"),
        ("SİYAH ARABA", "black"),
    ],
)
def test_basic_words_of_other_languages(model, shades, text, name):
    assert _best(model, shades, text) == name


@pytest.mark.parametrize(
    "text",
    ["", "a dog on a beach", "белка", "赤ちゃん", "🐈", "light breakfast", "#ff88", "#12345678"],
)
def test_a_text_without_a_colour_says_nothing(model, text):
    assert not model.encode_texts([text]).any()


def test_a_hex_code_is_a_colour(model, shades):
    assert _best(model, shades, "logo in #2050D0") == "blue"
    assert _best(model, shades, "#f00") == "red"


@pytest.mark.parametrize(
    "text", ["dark blue", "dunkelblau", "azul oscuro", "bleu foncé", "biru tua"]
)
def test_dark_moves_a_colour_towards_black(model, text):
    navy, sky = model.encode_images([Image.new("RGB", (9, 9), c) for c in ("#101c50", "#a0d0f8")])
    dark = model.encode_texts([text])[0]
    assert dark @ navy > dark @ sky + 0.2


def test_light_moves_a_colour_towards_white(model):
    navy, sky = model.encode_images([Image.new("RGB", (9, 9), c) for c in ("#101c50", "#a0d0f8")])
    for light in model.encode_texts(["light blue", "hellblau", "светло голубой", "bleu clair"]):
        assert light @ sky > light @ navy + 0.2


def test_a_modifier_belongs_to_the_colour_beside_it(model):
    left, right = model.encode_texts(["dark red and green", "green and dark red"])
    assert left == pytest.approx(right, abs=1e-6)
    assert left @ model.encode_texts(["red and dark green"])[0] < 0.95


def test_two_colours_mix(model):
    both = Image.new("RGB", (40, 40), SHADES["red"])
    both.paste(Image.new("RGB", (20, 40), SHADES["blue"]), (0, 0))
    rows = model.encode_images([both, Image.new("RGB", (40, 40), SHADES["red"])])
    scores = model.encode_texts(["red and blue"]) @ rows.T
    assert scores[0, 0] > scores[0, 1] + 0.1


def test_more_of_a_colour_scores_higher(model):
    pictures = []
    for width in (4, 16, 32, 48):
        picture = Image.new("RGB", (48, 48), SHADES["grey"])
        picture.paste(Image.new("RGB", (width, 48), SHADES["green"]), (0, 0))
        pictures.append(picture)
    scores = (model.encode_texts(["green"]) @ model.encode_images(pictures).T)[0]
    assert (np.diff(scores) > 0).all()


def _cut_out(ground):
    picture = Image.new("RGB", (100, 100), ground)
    ImageDraw.Draw(picture).ellipse((35, 35, 65, 65), fill=SHADES["red"])
    return picture


def test_the_white_ground_of_a_cut_out_counts_little(model):
    on_white, on_green = model.encode_images([_cut_out("#ffffff"), _cut_out(SHADES["green"])])
    red, white = model.encode_texts(["red", "white"])
    assert red @ on_white > white @ on_white
    assert red @ on_white > red @ on_green + 0.2


def test_a_white_picture_is_white(model, shades):
    assert _best(model, shades, "white") == "white"


def test_size_and_proportions_do_not_matter(model):
    rows = model.encode_images(
        [Image.new("RGB", size, SHADES["blue"]) for size in ((1, 1), (5, 4_000), (300, 200))]
    )
    assert rows[0] == pytest.approx(rows[1], abs=1e-6)
    assert rows[0] == pytest.approx(rows[2], abs=1e-6)


def test_a_changed_tower_is_refused(monkeypatch):
    wrong = (Canary("red", (1.0, 0.0, 0.0)),)
    monkeypatch.setattr(embedder, "_CANARIES_TEXT", wrong)
    with pytest.raises(MismatchError, match="palette's text tower must embed its canary 'red'"):
        PaletteEmbedder().encode_texts(["red"])
