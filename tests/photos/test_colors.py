import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.errors import InputError
from searchlab.photos.colors import (
    FAMILIES,
    FAMILY_NAMES,
    color_name,
    color_names,
    distance,
    families,
    family_margin,
    format_hex,
    hex_distance,
    nearest_family,
    oklab_to_shades,
    parse_hex,
    shades_from_rgb,
    shades_to_oklab,
    srgb_to_oklab,
    within_hex,
    within_name,
)

NAMES = Path(__file__).parents[2] / "datasets" / "colour-names"
STEPS = np.array([*range(0, 256, 9), 254, 255], dtype=np.uint32)
LATTICE = (
    STEPS[:, None, None] << np.uint32(16) | STEPS[:, None] << np.uint32(8) | STEPS
).ravel()  # 29,791 shades of the cube, its corners and their neighbours among them
LAB = shades_to_oklab(LATTICE)

shade = st.integers(0, 0xFFFFFF)
tolerance = st.integers(0, 255)
family = st.sampled_from(FAMILY_NAMES)


def one(value: int) -> np.ndarray:
    return np.array([value], dtype=np.uint32)


# -- hex and OKLab


@pytest.mark.parametrize(
    ("text", "value"), [("#000000", 0), ("#ffffff", 0xFFFFFF), ("#1A2b3C", 0x1A2B3C)]
)
def test_parses_six_hex_digits_in_either_case(text, value):
    assert parse_hex(text) == value


@pytest.mark.parametrize(
    "text",
    [
        *("", "#", "ffffff", "#fff", "#12345g", "#1234567", " #123456", "#123456\n", "#+12345"),
        *("#１２３４５６", "#12345\0", "red", None, 0x123456),
    ],
)
def test_refuses_everything_else(text):
    with pytest.raises(InputError, match="six hex digits"):
        parse_hex(text)


@given(shade)
def test_formatting_and_parsing_are_inverse(value):
    assert parse_hex(format_hex(value)) == value


# Worked out from the matrices of Ottosson's definition, to four places.
@pytest.mark.parametrize(
    ("text", "lab"),
    [
        ("#000000", (0.0, 0.0, 0.0)),
        ("#ffffff", (1.0, 0.0, 0.0)),
        ("#808080", (0.5999, 0.0, 0.0)),
        ("#ff0000", (0.6280, 0.2249, 0.1258)),
        ("#00ff00", (0.8664, -0.2339, 0.1795)),
        ("#0000ff", (0.4520, -0.0325, -0.3115)),
        ("#ffff00", (0.9680, -0.0714, 0.1986)),
        ("#00ffff", (0.9054, -0.1494, -0.0394)),
        ("#ff00ff", (0.7017, 0.2746, -0.1692)),
    ],
)
def test_oklab_of_known_shades(text, lab):
    assert shades_to_oklab(one(parse_hex(text)))[0] == pytest.approx(lab, abs=1e-4)


def test_every_shade_of_a_lattice_survives_the_round_trip():
    assert (oklab_to_shades(LAB) == LATTICE).all()


def test_a_shade_alone_has_the_bits_it_has_among_many():
    alone = np.concatenate([shades_to_oklab(LATTICE[i : i + 1]) for i in range(0, 29_000, 499)])
    assert alone.tobytes() == np.ascontiguousarray(LAB[:29_000:499]).tobytes()


def test_pixels_and_shades_agree():
    rgb = np.array([[1, 2, 3], [250, 128, 0]], dtype=np.uint8)
    assert shades_from_rgb(rgb).tolist() == [0x010203, 0xFA8000]
    assert (srgb_to_oklab(rgb) == shades_to_oklab(shades_from_rgb(rgb))).all()


def test_no_shades_give_no_rows():
    none = np.array([], dtype=np.uint32)
    assert shades_to_oklab(none).shape == (0, 3)
    assert within_hex(none, "#123456").shape == (0,)
    assert within_name(none, "red").shape == (0,)
    assert nearest_family(shades_to_oklab(none)).shape == (0,)


# -- distance


def test_black_to_white_is_255():
    assert hex_distance("#000000", "#ffffff") == pytest.approx(255, abs=1e-3)


@given(shade, shade)
def test_distance_is_symmetric_to_the_bit(first, second):
    a, b = shades_to_oklab(one(first)), shades_to_oklab(one(second))
    assert distance(a, b).tobytes() == distance(b, a).tobytes()


@given(shade, shade)
def test_only_a_shade_itself_is_at_distance_0(first, second):
    assert (hex_distance(format_hex(first), format_hex(second)) == 0) == (first == second)


def test_nothing_is_farther_than_black_from_white():
    corners = [0, 0xFF, 0xFF00, 0xFF0000, 0xFFFF, 0xFF00FF, 0xFFFF00, 0xFFFFFF]
    farthest = max(distance(LAB, shades_to_oklab(one(c))[0]).max() for c in corners)
    assert farthest == pytest.approx(255, abs=1e-3)


# -- families


@pytest.mark.slow
def test_the_table_is_what_the_derivation_gives():
    spec = importlib.util.spec_from_file_location("derive_families", NAMES / "derive_families.py")
    derive = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(derive)
    assert derive.render(derive.derive()) == Path(families.__file__).read_text("utf-8")


def test_families_are_the_names_that_people_use():
    assert (
        *("black", "white", "gray", "beige", "brown", "red", "orange"),
        *("yellow", "green", "teal", "blue", "purple", "pink"),
    ) == FAMILY_NAMES


@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_a_family_holds_its_own_shade_even_at_tolerance_0(name):
    assert color_name(FAMILIES[name]) == name
    assert within_name(one(parse_hex(FAMILIES[name])), name, tolerance=0).all()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *[("#1a1a1a", "black"), ("#fafafa", "white"), ("#c0c0c0", "gray"), ("#808080", "gray")],
        *[("#f5deb3", "beige"), ("#8b4513", "brown"), ("#800000", "red"), ("#dc143c", "red")],
        *[("#ffa500", "orange"), ("#ffd700", "yellow"), ("#008000", "green"), ("#808000", "green")],
        *[("#008080", "teal"), ("#40e0d0", "teal"), ("#00ffff", "teal"), ("#000080", "blue")],
        *[("#87ceeb", "blue"), ("#add8e6", "blue"), ("#4b0082", "purple"), ("#dda0dd", "purple")],
        *[("#ffc0cb", "pink"), ("#ff00ff", "pink"), ("#fa8072", "pink"), ("#4a3b2c", "brown")],
    ],
)
def test_names_well_known_shades_as_people_do(text, name):
    assert color_name(text) == name


def test_the_grey_axis_goes_from_black_over_gray_to_white():
    shades = [f"#{v:02x}{v:02x}{v:02x}" for v in range(256)]
    names = [color_name(shade) for shade in shades]
    assert color_names([*shades, *shades[:3]]) == dict(zip(shades, names, strict=True))
    assert color_names([]) == {}
    assert [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name] == [
        *("black", "gray", "white")
    ]


@pytest.mark.slow
def test_at_20_each_shade_is_in_exactly_its_family():
    inside = np.stack([within_name(LATTICE, name, tolerance=20) for name in FAMILY_NAMES])
    assert (inside.sum(axis=0) == 1).all()
    assert (inside.argmax(axis=0) == nearest_family(LAB)).all()


@given(shade, family)
def test_at_20_the_filter_is_the_name(value, name):
    assert within_name(one(value), name, tolerance=20)[0] == (color_name(format_hex(value)) == name)


def test_a_tie_goes_to_one_family_only():
    prototypes = [(h, name) for name, shades in families.PROTOTYPES.items() for h in shades]
    lab = shades_to_oklab(np.array([parse_hex(h) for h, _ in prototypes], dtype=np.uint32))
    middles = ((lab[:-1] + lab[1:]) / 2).astype(np.float32)
    inside = np.stack([family_margin(middles, name) <= 0 for name in FAMILY_NAMES])
    assert (inside.sum(axis=0) == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILY_NAMES)
def test_a_smaller_tolerance_gives_a_subset_and_255_everything(name):
    steps = [0, 1, 10, 19, 20, 21, 40, 100, 200, 254, 255]
    masks = [within_name(LATTICE, name, tolerance=t, lab=LAB) for t in steps]
    assert all((small <= large).all() for small, large in itertools.pairwise(masks))
    assert masks[-1].all()


@pytest.mark.slow
def test_few_shades_and_many_are_measured_to_the_same_bits():
    some = LAB[:: len(LAB) // 200]
    for name in FAMILY_NAMES:
        assert (family_margin(LAB, name)[:: len(LAB) // 200] == family_margin(some, name)).all()


def test_margin_is_own_distance_minus_the_nearest_other():
    prototypes = {
        name: shades_to_oklab(np.array([parse_hex(h) for h in shades], dtype=np.uint32))
        for name, shades in families.PROTOTYPES.items()
    }
    place = shades_to_oklab(one(0x6B7D4F))[0]
    nearest = {name: distance(labs, place).min() for name, labs in prototypes.items()}
    others = min(nearest[name] for name in FAMILY_NAMES if name != "green")
    assert family_margin(place[None], "green")[0] == pytest.approx(
        nearest["green"] - others, abs=1e-4
    )


@pytest.mark.parametrize("name", ["", "Red", "grey", "turquoise", "red ", "\0"])
def test_an_unknown_family_is_refused_and_the_known_are_listed(name):
    with pytest.raises(InputError, match="black, white, gray"):
        within_name(LATTICE, name)


# -- hex filter


@given(shade, shade)
def test_hex_at_0_is_that_shade_and_no_other(first, second):
    assert within_hex(one(first), format_hex(second), tolerance=0)[0] == (first == second)


@pytest.mark.parametrize("value", [0, 0xFFFFFF, 0x010101, 0x0000FF, 0x7F8081])
def test_hex_at_0_leaves_out_the_nearest_neighbours(value):
    around = LATTICE[within_hex(LATTICE, format_hex(value), tolerance=2)]
    near = np.append(around, np.uint32(value))
    assert set(near[within_hex(near, format_hex(value), tolerance=0)].tolist()) == {value}


@given(shade, shade, tolerance, tolerance)
def test_hex_widens_with_the_tolerance(first, second, one_tolerance, other):
    small, large = sorted([one_tolerance, other])
    narrow = within_hex(one(first), format_hex(second), tolerance=small)
    assert narrow <= within_hex(one(first), format_hex(second), tolerance=large)


@given(shade, shade, tolerance)
def test_hex_filter_is_symmetric(first, second, limit):
    there = within_hex(one(first), format_hex(second), tolerance=limit)
    back = within_hex(one(second), format_hex(first), tolerance=limit)
    assert there == back


@pytest.mark.parametrize("text", ["#000000", "#ffffff", "#0000ff", "#3b7a57"])
def test_hex_at_255_is_everything(text):
    assert within_hex(LATTICE, text, tolerance=255).all()


def test_hex_is_inclusive_at_its_limit():
    limit = hex_distance("#336699", "#335577")
    assert within_hex(one(0x335577), "#336699", tolerance=limit)[0]
    assert not within_hex(one(0x335577), "#336699", tolerance=np.nextafter(np.float32(limit), 0))[0]


@pytest.mark.parametrize("limit", [-1, 256, float("nan"), float("inf"), -0.001])
def test_a_tolerance_out_of_range_is_refused(limit):
    with pytest.raises(InputError, match="0 to 255"):
        within_hex(LATTICE, "#123456", tolerance=limit)
    with pytest.raises(InputError, match="0 to 255"):
        within_name(LATTICE, "red", tolerance=limit)


def test_the_caller_may_bring_the_converted_shades():
    assert (within_hex(LATTICE, "#3b7a57", lab=LAB) == within_hex(LATTICE, "#3b7a57")).all()
    assert (within_name(LATTICE, "teal", lab=LAB) == within_name(LATTICE, "teal")).all()
