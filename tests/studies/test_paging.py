import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchlab.config import Config
from searchlab.errors import InputError
from searchlab.library.ingest import index_photos
from searchlab.library.library import create_library
from searchlab.library.retention import Retention, write_retention
from searchlab.studies.paging.history import DIM, history
from searchlab.studies.paging.library_walks import library_walks
from searchlab.studies.paging.study import OURS, PEERS, measure_churn, measure_library, recompute
from searchlab.studies.paging.walks import (
    Moment,
    Walk,
    after_score,
    after_score_and_id,
    growing_k,
    make_pinned_turn,
    offset,
    presence,
    walk_history,
)


def array(*numbers):
    return np.array(numbers, dtype=np.int64)


def walked(ways, *, changes=0.0, swaps=0.0, n_photos=90, per_page=10, n_states=9, seed=0):
    states, centres = history(n_photos, n_states, changes=changes, swaps=swaps, seed=seed)
    looks = centres[:3] + 0.5 * np.random.default_rng(seed).standard_normal((3, DIM))
    chosen = {name: make(states, looks) for name, make in ways.items()}
    walks = walk_history(states, looks, chosen, per_page=per_page)
    present = presence([state.photos for state in states])
    return states, {
        name: [walk.rates(present) | {"walk": walk} for walk in some]
        for name, some in walks.items()
    }


def peer(turn):
    return lambda states, looks: turn


def ours(index):
    return lambda states, looks: make_pinned_turn(states[0], looks, index=index)


# -- rates, counted by hand


PRESENT = presence([array(0, 1, 2, 3, 4), array(0, 1, 2, 3, 5), array(0, 1, 2, 5, 6)])


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        # 0, 1 and 2 were there all the time, 3 and 4 left, 5 and 6 came.
        ([array(0, 1), array(2, 3), array()], {"duplicates": 0, "gaps": 0, "gone": 0, "new": 0}),
        ([array(0, 1), array(1, 5), array(2)], {"duplicates": 1 / 5, "new": 1 / 2}),
        ([array(0, 1), array(3), array(5)], {"duplicates": 0, "gaps": 1 / 3}),
        ([array(0), array(4), array(3, 1)], {"gone": 2 / 4, "gaps": 1 / 3}),
        ([array(0, 0), array(0), array(0)], {"duplicates": 3 / 4, "gaps": 2 / 3}),
        # One page: what comes or leaves later is of no account, 3 and 4 are missed.
        ([array(0, 1, 2)], {"gaps": 2 / 5, "new": 0}),
        ([], {"duplicates": 0, "gaps": 1, "gone": 0, "new": 0}),
    ],
)
def test_rates_of_walks_counted_by_hand(pages, expected):
    rates = Walk(pages=pages).rates(PRESENT)
    assert {name: rates[name] for name in expected} == pytest.approx(expected)


def test_the_last_state_stays_for_who_reads_on():
    pages = [array(0), array(1), array(2), array(5), array(6)]
    rates = Walk(pages=pages).rates(PRESENT)
    assert rates == {"duplicates": 0, "gaps": 0, "gone": 0, "new": 1}


# -- collections that change


@settings(max_examples=30, deadline=None)
@given(
    n_photos=st.integers(2, 60),
    changes=st.floats(0, 1),
    swaps=st.floats(0, 1),
    seed=st.integers(0, 5),
)
def test_a_history_keeps_its_size_and_never_gives_a_number_twice(n_photos, changes, swaps, seed):
    states, _ = history(n_photos, 6, changes=changes, swaps=swaps, seed=seed)
    look_of = {}
    gone = set()
    for state in states:
        numbers = state.photos.tolist()
        assert len(numbers) == n_photos == len(state.looks)
        assert numbers == sorted(set(numbers))
        assert gone.isdisjoint(numbers)
        gone |= set(look_of) - set(numbers)
        for number, look in zip(numbers, state.looks, strict=True):
            assert np.array_equal(look_of.setdefault(number, look), look)


def test_changes_and_swaps_come_as_often_as_asked_for():
    states, _ = history(50, 201, changes=0.03, swaps=0.25, seed=1)
    n_came = states[-1].photos.max() + 1 - 50
    assert n_came / 200 / 50 == pytest.approx(0.03, rel=0.1)
    assert states[-1].version / 200 == pytest.approx(0.25, rel=0.35)
    still, _ = history(50, 20, changes=0, swaps=0, seed=1)
    assert {state.photos.max() for state in still} <= {49, 50}


def test_some_photos_look_alike():
    states, _ = history(400, 1, changes=0, swaps=0, seed=0)
    assert len(np.unique(states[0].vectors, axis=0)) < 400


@pytest.mark.parametrize(
    "wrong",
    [{"n_photos": 1}, {"n_states": 0}, {"changes": 1.1}, {"swaps": -0.1}, {"swaps": np.nan}],
)
def test_a_history_out_of_range_is_refused(wrong):
    arguments = {"n_photos": 5, "n_states": 2, "changes": 0.0, "swaps": 0.0} | wrong
    with pytest.raises(InputError, match="0 to 1"):
        history(**arguments, seed=0)


# -- ways of paging


@settings(max_examples=12, deadline=None)
@given(
    changes=st.floats(0, 0.4),
    swaps=st.floats(0, 0.5),
    per_page=st.integers(3, 40),
    seed=st.integers(0, 1000),
    index=st.sampled_from(["exact", "hnsw"]),
)
def test_our_cursors_repeat_and_skip_nothing_whatever_happens(
    changes, swaps, per_page, seed, index
):
    _, walks = walked(
        {"ours": ours(index)}, changes=changes, swaps=swaps, per_page=per_page, seed=seed
    )
    for rates in walks["ours"]:
        assert (rates["duplicates"], rates["gaps"], rates["gone"]) == (0, 0, 0)


def test_every_way_over_exact_search_is_right_while_nothing_changes():
    ways = {"offset": peer(offset), "after": peer(after_score_and_id), "ours": ours("exact")}
    states, walks = walked(ways)
    orders = [
        [np.concatenate(rates["walk"].pages).tolist() for rates in some] for some in walks.values()
    ]
    assert orders[0] == orders[1] == orders[2]
    assert all(sorted(order) == states[0].photos.tolist() for order in orders[0])


def test_offset_skips_as_many_as_left_before_it_and_repeats_as_many_as_came():
    states, centres = history(20, 1, changes=0, swaps=0, seed=3)
    first = states[0]
    ranked, _ = offset(moment(first), centres[0], 20, None)
    fewer = part(first, np.sort(ranked[2:]))  # the two best leave after page 1
    page, token = offset(moment(first), centres[0], 5, None)
    after, _ = offset(moment(fewer), centres[0], 5, token)
    assert page.tolist() == ranked[:5].tolist()
    assert after.tolist() == ranked[7:12].tolist()
    back, _ = offset(moment(first), centres[0], 5, 5)
    assert back.tolist() == ranked[5:10].tolist()


def test_after_score_alone_skips_what_looks_alike_and_ids_mend_it():
    states, centres = history(12, 1, changes=0, swaps=0, seed=3)
    looks = np.repeat(states[0].looks[:4], 3, axis=0)
    alike = type(states[0])(states[0].photos, looks, states[0].turn, 0)
    for way, n_given in ((after_score, 8), (after_score_and_id, 12)):
        token, shown = None, []
        for _ in range(12):
            page, token = way(moment(alike), centres[0], 2, token)
            shown += page.tolist()
            if token is None:
                break
        assert len(set(shown)) == len(shown) == n_given


def test_growing_k_repeats_and_skips_though_nothing_changes():
    _, walks = walked({"k": peer(growing_k)}, n_photos=600, per_page=20, n_states=30)
    assert max(rates["duplicates"] for rates in walks["k"]) > 0
    assert max(rates["gaps"] for rates in walks["k"]) > 0


def test_another_model_between_pages_breaks_all_but_ours():
    ways = {name: peer(turn) for name, turn in PEERS.items()} | {"ours": ours("hnsw")}
    _, walks = walked(ways, swaps=1.0)
    for name, some in walks.items():
        assert (sum(rates["duplicates"] for rates in some) > 0) == (name != "ours")


def moment(state):
    return Moment(state, state, None)


def part(state, photos):
    inside = np.isin(state.photos, photos)
    return type(state)(state.photos[inside], state.looks[inside], state.turn, state.version)


# -- a real library


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    from PIL import Image

    folder = tmp_path_factory.mktemp("paging")
    (folder / "photos").mkdir()
    rng = np.random.default_rng(0)
    for number in range(30):
        tiles = rng.integers(0, 256, (2, 2, 3), dtype=np.uint8)
        Image.fromarray(tiles).resize((40, 30)).save(folder / "photos" / f"{number:02d}.png")
    library = create_library(folder / "library")
    index_photos(library, [folder / "photos"], config=Config(model="palette"))
    return library


def test_walks_over_a_library_that_changes_twice(library):
    before = set(library.engine.table.texts("photo_id"))
    walks, present = library_walks(
        library, ["red", "blue", "green"], changed_after=(1, 3), leave=0.3, per_page=5
    )
    assert not present[1].all()
    assert not np.array_equal(present[1], present[3])
    for walk in walks["searchlab"]:
        rates = walk.rates(present)
        assert (rates["duplicates"], rates["gaps"], rates["gone"]) == (0, 0, 0)
        assert not walk.cut_short
    faults = [walk.rates(present) for walk in walks["offset"]]
    assert sum(rates["gaps"] + rates["duplicates"] for rates in faults) > 0
    assert set(library.engine.table.texts("photo_id")) == before


def test_a_third_change_ends_a_walk_with_an_error_and_no_wrong_page(library):
    """Where cursors are kept for no time, only the last snapshots are there to go on with."""
    write_retention(library.folder, Retention(kept_s=0))
    measured = measure_library(
        texts=["red"], per_page=5, scenarios=((1, 2), (1, 2, 3)), library=library
    )
    mine = [row for row in measured["rows"] if row["way"] == "searchlab"]
    assert [row["n_cut_short"] for row in mine] == [0, 1]
    assert [row["n_faulty"] for row in mine] == [0, 0]
    assert mine[1]["gaps"] is None
    assert measured["metrics"]["searchlab walks cut short"] == 1


def test_walks_of_nobody_are_refused(library):
    with pytest.raises(InputError, match="texts"):
        library_walks(library, [], changed_after=())


# -- records


@pytest.mark.slow
def test_what_was_measured_can_be_measured_again():
    small = {"n_photos": 60, "per_page": 20, "n_histories": 2, "n_queries": 2}
    measured = measure_churn(**small, scenarios=((0.1, 0.0), (0.0, 0.5)), seed=4)
    assert recompute(measured) == measured
    assert len(measured["rows"]) == 2 * (len(OURS) + len(PEERS))
    assert measured["metrics"]["searchlab walks"] == 2 * 2 * 2 * 2
    assert measured["metrics"]["searchlab walks with a fault"] == 0
    # Of 4 collections none: 1 - 0.05 ** (1 / 4).
    assert measured["metrics"]["faulty at most where none was"] == pytest.approx(0.527129)
    assert measure_churn(**small, scenarios=((0.1, 0.0),), seed=5)["rows"] != measured["rows"][:6]


def test_a_fault_of_ours_would_be_counted(monkeypatch):
    monkeypatch.setattr("searchlab.studies.paging.study.make_pinned_turn", lambda *_, index: offset)
    measured = measure_churn(
        n_photos=60, n_histories=2, n_queries=2, scenarios=((0.3, 0.0),), seed=0
    )
    assert measured["metrics"]["searchlab walks with a fault"] > 0
