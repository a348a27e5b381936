import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from searchlab.config import COLOR_METRIC
from searchlab.errors import InputError
from searchlab.evaluation.datasets import bundled_root
from searchlab.photos.colors import FAMILY_NAMES, hex_distance, parse_hex, within_hex
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.studies.color.curves import cube, tolerance_curves
from searchlab.studies.color.metrics import METRICS, ciede2000, euclid, shades_to_cielab
from searchlab.studies.color.names import (
    JudgedShades,
    find_family_words,
    measure_neighbours,
    measure_within_tolerance,
    name_families,
    read_judged_shades,
    read_survey,
)
from searchlab.studies.color.names import measure as measure_names
from searchlab.studies.color.names import recompute as recompute_names
from searchlab.studies.color.tolerance import (
    extremes,
    measure,
    measure_kept,
    measure_photos,
    read_bundled_shades,
    recompute,
)

# Sharma, Wu and Dalal, Color Research and Application 30(1), 2005, table 1: both colours' L*, a*,
# b*, and their difference. They were chosen to catch what implementations get wrong.
SHARMA = """
    50.0000   2.6772 -79.7751  50.0000   0.0000 -82.7485   2.0425
    50.0000   3.1571 -77.2803  50.0000   0.0000 -82.7485   2.8615
    50.0000   2.8361 -74.0200  50.0000   0.0000 -82.7485   3.4412
    50.0000  -1.3802 -84.2814  50.0000   0.0000 -82.7485   1.0000
    50.0000  -1.1848 -84.8006  50.0000   0.0000 -82.7485   1.0000
    50.0000  -0.9009 -85.5211  50.0000   0.0000 -82.7485   1.0000
    50.0000   0.0000   0.0000  50.0000  -1.0000   2.0000   2.3669
    50.0000  -1.0000   2.0000  50.0000   0.0000   0.0000   2.3669
    50.0000   2.4900  -0.0010  50.0000  -2.4900   0.0009   7.1792
    50.0000   2.4900  -0.0010  50.0000  -2.4900   0.0010   7.1792
    50.0000   2.4900  -0.0010  50.0000  -2.4900   0.0011   7.2195
    50.0000   2.4900  -0.0010  50.0000  -2.4900   0.0012   7.2195
    50.0000  -0.0010   2.4900  50.0000   0.0009  -2.4900   4.8045
    50.0000  -0.0010   2.4900  50.0000   0.0010  -2.4900   4.8045
    50.0000  -0.0010   2.4900  50.0000   0.0011  -2.4900   4.7461
    50.0000   2.5000   0.0000  50.0000   0.0000  -2.5000   4.3065
    50.0000   2.5000   0.0000  73.0000  25.0000 -18.0000  27.1492
    50.0000   2.5000   0.0000  61.0000  -5.0000  29.0000  22.8977
    50.0000   2.5000   0.0000  56.0000 -27.0000  -3.0000  31.9030
    50.0000   2.5000   0.0000  58.0000  24.0000  15.0000  19.4535
    50.0000   2.5000   0.0000  50.0000   3.1736   0.5854   1.0000
    50.0000   2.5000   0.0000  50.0000   3.2972   0.0000   1.0000
    50.0000   2.5000   0.0000  50.0000   1.8634   0.5757   1.0000
    50.0000   2.5000   0.0000  50.0000   3.2592   0.3350   1.0000
    60.2574 -34.0099  36.2677  60.4626 -34.1751  39.4387   1.2644
    63.0109 -31.0961  -5.8663  62.8187 -29.7946  -4.0864   1.2630
    61.2901   3.7196  -5.3901  61.4292   2.2480  -4.9620   1.8731
    35.0831 -44.1164   3.7933  35.0232 -40.0716   1.5901   1.8645
    22.7233  20.0904 -46.6940  23.0331  14.9730 -42.5619   2.0373
    36.4612  47.8580  18.3852  36.2715  50.5065  21.2231   1.4146
    90.8027  -2.0831   1.4410  91.1528  -1.6435   0.0447   1.4441
    90.9257  -0.5406  -0.9208  88.6381  -0.8985  -0.7239   1.5381
     6.7747  -0.2908  -2.4247   5.8714  -0.0985  -2.2286   0.6377
     2.0776   0.0795  -1.1350   0.9033  -0.0636  -0.5514   0.9082
"""
PAIRS = np.array([[float(n) for n in line.split()] for line in SHARMA.split("\n") if line.strip()])
POOL = cube(12)

shade = st.integers(0, 0xFFFFFF)


def shades(*values):
    return np.array([parse_hex(value) for value in values], dtype=np.uint32)


# -- CIEDE2000


def test_the_published_pairs_come_out_to_the_last_digit_that_was_published():
    assert len(PAIRS) == 34
    differences = ciede2000(PAIRS[:, :3], PAIRS[:, 3:6])
    assert differences.round(4).tolist() == PAIRS[:, 6].tolist()


@given(st.lists(st.tuples(shade, shade), min_size=1, max_size=20))
def test_a_difference_is_the_same_both_ways_and_zero_only_to_itself(pairs):
    first, second = (
        shades_to_cielab(np.array(part, dtype=np.uint32)) for part in zip(*pairs, strict=True)
    )
    there, back = ciede2000(first, second), ciede2000(second, first)
    assert there == pytest.approx(back, abs=1e-9)
    same = [one == other for one, other in pairs]
    assert ((there < 1e-9) == same).all()


def test_differences_broadcast():
    lab = shades_to_cielab(POOL[:7])
    square = ciede2000(lab[:, None], lab[None])
    assert square.shape == (7, 7)
    assert square[2, 5] == ciede2000(lab[2], lab[5])


# As published with the calculator of Lindbloom, brucelindbloom.com, to two places.
@pytest.mark.parametrize(
    ("text", "lab"),
    [
        ("#000000", (0.0, 0.0, 0.0)),
        ("#ffffff", (100.0, 0.0, 0.0)),
        ("#808080", (53.59, 0.0, 0.0)),
        ("#ff0000", (53.24, 80.09, 67.20)),
        ("#00ff00", (87.73, -86.18, 83.18)),
        ("#0000ff", (32.30, 79.19, -107.86)),
    ],
)
def test_cielab_of_known_shades(text, lab):
    assert shades_to_cielab(shades(text))[0] == pytest.approx(lab, abs=0.01)


def test_our_metric_among_the_peers_is_the_one_that_filters():
    places = METRICS[COLOR_METRIC](shades("#1a2b3c", "#fedcba"))
    assert euclid(places[:1], places[1])[0] == pytest.approx(hex_distance("#1a2b3c", "#fedcba"))


# -- tolerance curves


def test_a_cube_holds_its_corners_and_every_shade_once():
    cube_shades = cube(3)
    assert len(set(cube_shades.tolist())) == 27
    assert {0, 0xFFFFFF, 0xFF0000, 0x808080} <= set(cube_shades.tolist())
    with pytest.raises(InputError, match="from 2 to 256"):
        cube(1)


@pytest.fixture(scope="module")
def curves():
    return tolerance_curves(cube(3), pool=POOL, tolerances=(20, 40, 80))


def test_curves_agree_with_sets_counted_one_shade_at_a_time(curves):
    row, place, tolerance = 14, 1, 40
    reference = f"#{int(curves.references[row]):06x}"
    texts = [f"#{int(one):06x}" for one in POOL]
    within = {text for text in texts if hex_distance(reference, text) <= tolerance}
    lab = shades_to_cielab(shades(reference))[0]
    judged = dict(zip(texts, ciede2000(shades_to_cielab(POOL), lab), strict=True))
    nearest = set(sorted(texts, key=lambda text: judged[text])[: len(within)])
    assert curves.share[row, place] == len(within) / len(texts)
    # Powers and roots differ in their last bit between processors, and with how many come at once.
    assert curves.ciede2000[row, place] == pytest.approx(max(judged[text] for text in nearest))
    assert curves.at_most[row, place] == pytest.approx(max(judged[text] for text in within))
    furthest = min(judged[text] for text in texts if text not in within)
    assert curves.surely[row, place] == pytest.approx(furthest)
    overlap = curves.overlap[COLOR_METRIC][row, place]
    assert overlap == len(within & nearest) / len(within | nearest)


def test_a_larger_tolerance_keeps_more_and_means_more(curves):
    assert (np.diff(curves.share) >= 0).all()
    known = curves.ciede2000[~np.isnan(curves.ciede2000).any(axis=1)]
    assert len(known)
    assert (np.diff(known) >= 0).all()


def test_where_sets_differ_the_meaning_lies_between_surely_and_at_most(curves):
    differ = curves.overlap[COLOR_METRIC] < 1
    assert differ.any()
    assert (curves.surely[differ] <= curves.ciede2000[differ]).all()
    assert (curves.ciede2000[differ] <= curves.at_most[differ]).all()


def test_overlaps_and_orders_are_shares_and_peers_are_all_there(curves):
    assert list(curves.overlap) == list(curves.order) == list(METRICS)
    for values in (*curves.overlap.values(), *curves.order.values()):
        known = values[~np.isnan(values)]
        assert ((known >= 0) & (known <= 1)).all()


def test_a_set_too_small_to_say_anything_is_not_measured():
    curves = tolerance_curves(shades("#ff0000"), pool=POOL, tolerances=(1, 60))
    assert np.isnan(curves.ciede2000).tolist() == [[True, False]]
    assert curves.share[0, 0] > 0


def test_order_is_kendalls_over_pairs_that_do_not_tie():
    reference = shades("#808080")
    curves = tolerance_curves(reference, pool=cube(6), tolerances=(60,))
    lab = shades_to_cielab(cube(6))
    judged = ciede2000(lab, shades_to_cielab(reference)[0])
    ours = euclid(METRICS[COLOR_METRIC](cube(6)), METRICS[COLOR_METRIC](reference)[0])
    n_near = np.count_nonzero(ours <= 60)
    near = np.flatnonzero((ours <= 60) | (judged.argsort(kind="stable").argsort() < n_near))
    expected = (kendalltau(ours[near], judged[near]).statistic + 1) / 2
    assert curves.order[COLOR_METRIC][0] == pytest.approx(expected)


def test_regions_part_the_shades_and_leave_gray_without_hue(curves):
    rows = curves.region_rows(40)
    known = int(np.count_nonzero(~np.isnan(curves.ciede2000[:, 1])))
    for region in ("lightness", "chroma"):
        assert sum(row["n_shades"] for row in rows if row["region"] == region) == known
    gray = next(row["n_shades"] for row in rows if (row["region"], row["to"]) == ("chroma", 15))
    assert sum(row["n_shades"] for row in rows if row["region"] == "hue") == known - gray


def test_the_worst_shades_come_first_and_unmeasured_ones_never(curves):
    overlap = curves.overlap[COLOR_METRIC][curves.worst(20, 5), 0]
    assert (np.diff(overlap) >= 0).all()
    assert overlap[0] == np.nanmin(curves.overlap[COLOR_METRIC][:, 0])


@pytest.mark.parametrize(
    "wrong",
    [
        {"references": POOL[:0]},
        {"pool": POOL[:0]},
        {"tolerances": (20, 10)},
        {"tolerances": (10, 10)},
        {"tolerances": (0, 10)},
        {"tolerances": ()},
    ],
)
def test_curves_of_nothing_or_of_no_order_are_refused(wrong):
    arguments = {"references": POOL[:1], "pool": POOL, "tolerances": (20,)} | wrong
    with pytest.raises(InputError, match="ascend"):
        tolerance_curves(
            arguments["references"], pool=arguments["pool"], tolerances=arguments["tolerances"]
        )


def test_a_tolerance_that_was_not_measured_is_refused(curves):
    with pytest.raises(InputError, match="one of"):
        curves.region_rows(21)


# -- extremes and photos


@settings(max_examples=20)
@given(shade, st.integers(15, 100))
def test_extremes_lie_on_either_side_of_the_tolerance(value, tolerance):
    reference = f"#{value:06x}"
    within = within_hex(POOL, reference, tolerance=tolerance)
    if not within.any():
        with pytest.raises(InputError, match="keep some"):
            extremes(reference, tolerance, pool=POOL)
        return
    pair = extremes(reference, tolerance, pool=POOL)
    assert hex_distance(reference, pair.kept) <= tolerance < hex_distance(reference, pair.left_out)
    lab = shades_to_cielab(shades(reference, pair.kept, pair.left_out))
    assert pair.kept_ciede2000 == pytest.approx(ciede2000(lab[0], lab[1]))
    assert pair.left_out_ciede2000 == pytest.approx(ciede2000(lab[0], lab[2]))


def test_the_share_of_photos_is_that_of_the_filter(make_table):
    table = make_table(*({"color_hex": f"#{int(one):06x}"} for one in POOL[::17]))
    references = shades("#7f3010")
    measured = measure_kept(table.shades, references, tolerances=(10, 20, 60))
    assert measured["n_lost"] == 0
    for row in measured["rows"]:
        tolerance = row["tolerance"]
        mask = PhotoFilter(color_hex="#7f3010", color_tolerance=tolerance).mask(table)
        assert row["hex"]["mean"] == pytest.approx(mask.mean(), abs=1e-4)
        names = [
            PhotoFilter(color_name=name, color_tolerance=tolerance).mask(table).mean()
            for name in FAMILY_NAMES
        ]
        assert row["name"]["mean"] == pytest.approx(np.mean(names), abs=1e-4)


def test_a_filter_that_loses_photos_when_widened_is_found_out(monkeypatch):
    def narrowing(shades, value, *, tolerance, lab):
        return np.arange(len(shades)) >= tolerance

    monkeypatch.setattr("searchlab.studies.color.tolerance.within_hex", narrowing)
    measured = measure_kept(POOL[:9], shades("#000000"), tolerances=(0, 3, 5))
    assert measured["n_lost"] == 5


@pytest.mark.slow
def test_the_bundled_photos_have_the_colours_that_the_library_gives_them():
    bundled = read_bundled_shades()
    assert len(bundled) == 602
    assert bundled.dtype == np.uint32
    assert len(set(bundled.tolist())) > 200


# -- names


def test_a_name_says_the_family_that_it_ends_in_and_no_other():
    assert find_family_words("dark forest green", "xkcd") == {"green"}
    assert find_family_words("blue green", "xkcd") == {"blue", "green"}
    assert find_family_words("light grey", "xkcd") == {"gray"}
    assert find_family_words("greenish sage", "xkcd") == set()
    assert find_family_words("darkslateblue", "css4") == {"blue"}
    assert find_family_words("mintcream", "css4") == set()


def test_every_shade_of_a_survey_is_judged_or_counted():
    for survey, n in (("xkcd", 949), ("css4", 148)):
        names, _ = read_survey(survey)
        assert len(names) == n
    judged = read_judged_shades("xkcd")
    assert len(judged.names) + judged.n_two + judged.n_none == 949


def test_a_shade_is_never_its_own_prototype():
    lines = (bundled_root() / "colour-names" / "xkcd_949.tsv").read_text().splitlines()
    shade = next(line.split("\t")[1] for line in lines if line.startswith("lime green\t"))
    assert name_families(shades(shade)) == ["green"]


def test_neighbours_are_other_shades_and_all_alike_where_families_lie_apart():
    judged = JudgedShades(
        names=tuple("abcdef"),
        shades=shades("#ff0000", "#fe0000", "#fd0000", "#0000ff", "#0000fe", "#0000fd"),
        families=("red", "red", "red", "blue", "blue", "red"),
        n_two=0,
        n_none=0,
    )
    measured = measure_neighbours(judged, k=2)
    assert set(measured) == {"ciede2000", *METRICS}
    for shares in measured.values():
        assert shares.tolist() == [1, 1, 1, 0.5, 0.5, 0]
    with pytest.raises(InputError, match="1 to the 5"):
        measure_neighbours(judged, k=6)


def test_shades_within_a_tolerance_are_alike_where_nothing_else_is_near():
    judged = JudgedShades(
        names=tuple("abcd"),
        shades=shades("#ff0000", "#fb0000", "#0000ff", "#f70000"),
        families=("red", "red", "blue", "brown"),
        n_two=0,
        n_none=0,
    )
    measured = measure_within_tolerance(judged, tolerances=(1, 20, 255))
    assert measured[20][[0, 1, 3]].tolist() == [0.5, 0.5, 0]
    assert np.isnan(measured[20][2])
    assert np.isnan(measured[1]).all()
    assert measured[255].tolist() == pytest.approx([1 / 3, 1 / 3, 0, 0])


def test_a_survey_that_is_none_is_refused():
    with pytest.raises(InputError, match="xkcd, css4"):
        read_survey("pantone")


# -- records


@pytest.mark.slow
def test_what_was_measured_can_be_measured_again():
    curves = measure("xkcd", stride=300, pool_steps=9, tolerances=(20, 60))
    assert recompute(curves) == curves
    assert measure("cube", stride=300, pool_steps=9, tolerances=(20, 60)) != curves
    names = measure_names("css4", samples=50)
    assert recompute_names(names) == names
    photos = measure_photos(stride=200, every=20)
    assert photos["metrics"]["n_photos"] == 31
    assert recompute(photos) == photos
    for measured in (curves, names, photos):
        assert all(isinstance(value, int | float) for value in measured["metrics"].values())


@pytest.mark.slow
def test_the_families_agree_with_the_survey_as_published():
    metrics = measure_names("xkcd", samples=50)["metrics"]
    assert metrics["n_names"] == 522
    assert metrics["agreement"] == pytest.approx(0.8927, abs=1e-4)
