import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from searchlab.errors import InputError
from searchlab.evaluation.datasets import (
    NO_LANGUAGE,
    WITHHELD,
    Dataset,
    LabelledQuery,
    load_dataset,
)
from searchlab.photos.photo import photo_id_of
from searchlab.photos.table import PhotoTable
from searchlab.search.filters.photo_filter import PhotoFilter
from searchlab.search.queries import Query
from tests.support.bundled import bundled

PHOTO_A, PHOTO_B = photo_id_of("pond", "a"), photo_id_of("pond", "b")


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return bundled("demo")


@pytest.fixture
def tiny(tmp_path: Path) -> Dataset:
    return Dataset(
        name="tiny",
        revision="0" * 12,
        folder=tmp_path,
        photos=None,
        queries=(
            LabelledQuery("q1", "en", "label", "A frog."),
            LabelledQuery("q2", "de", "alt", "Ein Frosch"),
        ),
        qrels={"q1": {photo_id_of("pond", "a"): 1}, "q2": {photo_id_of("pond", "b"): 2}},
        records=(
            {"source": "pond", "source_photo_id": "a"},
            {"source": "pond", "source_photo_id": "b"},
        ),
    )


def test_withheld_follows_the_kinds_of_the_queries(demo):
    assert demo.select(kinds=["label"]).withheld == {"source_description", "title"}
    assert demo.select(kinds=["alt"]).withheld == {"alt_description"}
    assert demo.withheld == {"source_description", "title", "alt_description"}


@pytest.mark.slow
def test_revision_is_stable_and_changes_with_the_queries(demo):
    assert re.fullmatch(r"[0-9a-f]{12}", demo.revision)
    assert load_dataset("demo").revision == demo.revision
    assert demo.select(kinds=["alt"]).revision != demo.revision


def test_sample_is_repeatable_and_grows(demo):
    small = demo.sample(["en", "zh-CN"], 5, 0)
    assert Counter(query.lang for query in small.queries) == {"en": 5, "zh-CN": 5}
    assert small == demo.sample(["zh-CN", "en"], 5, 0)
    assert set(small.queries) < set(demo.sample(["en", "zh-CN"], 9, 0).queries)
    assert set(small.queries) != set(demo.sample(["en", "zh-CN"], 5, 1).queries)
    assert small.qrels.keys() == {query.query_id for query in small.queries}


@pytest.mark.parametrize("number", [0, 2.5, True, "3"])
def test_sample_refuses_what_is_no_number_of_queries(demo, number):
    with pytest.raises(InputError, match="per_language must be an integer from 1"):
        demo.sample(["en"], number, 0)


def test_sample_refuses_an_unknown_language(demo):
    with pytest.raises(InputError, match="languages must be among"):
        demo.sample(["xx"], 5, 0)


def test_select_refuses_what_no_query_has(tiny):
    for choice in ({"languages": ["fr"]}, {"languages": ["en", "fr"]}, {"kinds": ["song"]}):
        with pytest.raises(InputError, match=r"must be a list of some of .*, got \["):
            tiny.select(**choice)


def test_select_takes_no_text_for_a_list_of_languages(demo):
    """In "pt-BR" there is "pt": a text would keep more than was asked for."""
    with pytest.raises(InputError, match=r"languages must be a list of some of .*'pt-BR'"):
        demo.select(languages="pt-BR")
    with pytest.raises(InputError, match="must have queries and qrels"):
        demo.select(languages=[])


def test_empty_qrels_are_refused(tiny):
    with pytest.raises(InputError, match="must have queries and qrels, got none"):
        replace(tiny, qrels={})


def test_duplicate_query_ids_are_refused(tiny):
    with pytest.raises(InputError, match="have every query_id once, got 'q1'"):
        replace(tiny, queries=(*tiny.queries, tiny.queries[0]))


def test_unknown_photos_are_refused(tiny):
    with pytest.raises(InputError, match="judge known photos only, got 'nobody'"):
        replace(tiny, qrels={**tiny.qrels, "q1": {"nobody": 1}})


def test_judgments_of_unknown_queries_are_refused(tiny):
    with pytest.raises(InputError, match="judge known queries only, got 'q3'"):
        replace(tiny, qrels={**tiny.qrels, "q3": {photo_id_of("pond", "a"): 1}})


@pytest.mark.parametrize("grades", [{}, {photo_id_of("pond", "a"): 0}])
def test_queries_without_a_relevant_photo_are_refused(tiny, grades):
    with pytest.raises(InputError, match="have a relevant photo for every query, got 'q2'"):
        replace(tiny, qrels={**tiny.qrels, "q2": grades})


@pytest.mark.parametrize("padding", ["", "-1", "None", "nan", " ", "a b", "q\n"])
def test_padding_and_spaces_in_place_of_a_query_id_are_refused(tiny, padding):
    queries = (tiny.queries[0], replace(tiny.queries[1], query_id=padding))
    with pytest.raises(InputError, match="have ids that are text without spaces and no padding"):
        replace(tiny, queries=queries, qrels={"q1": tiny.qrels["q1"], padding: {PHOTO_B: 1}})


@pytest.mark.parametrize("padding", ["", "-1", "None", None, -1, float("nan")])
def test_padding_in_place_of_a_photo_is_refused(tiny, padding):
    with pytest.raises(InputError, match="have ids that are text without spaces and no padding"):
        replace(tiny, qrels={**tiny.qrels, "q1": {PHOTO_A: 1, padding: 0}})


@pytest.mark.parametrize("grade", [-1, 0.5, True, None, "1", 1001])
def test_grades_that_are_no_whole_numbers_from_0_are_refused(tiny, grade):
    with pytest.raises(InputError, match=f"from 0 to 1000 as grades, got .q1 {PHOTO_B} "):
        replace(tiny, qrels={**tiny.qrels, "q1": {PHOTO_A: 1, PHOTO_B: grade}})


@pytest.mark.parametrize("text", [None, "", "  "])
def test_a_query_with_neither_text_nor_photo_is_refused(tiny, text):
    empty = replace(tiny.queries[1], text=text)
    with pytest.raises(InputError, match=r"have a text or a reference photo .*, got 'q2'"):
        replace(tiny, queries=(tiny.queries[0], empty))


def test_a_query_without_a_language_is_refused(tiny):
    nameless = replace(tiny.queries[1], lang="")
    with pytest.raises(InputError, match="name a language for every query, got 'q2'"):
        replace(tiny, queries=(tiny.queries[0], nameless))


def test_a_reference_photo_from_elsewhere_is_refused(tiny):
    stranger = replace(tiny.queries[1], photo_id=photo_id_of("sea", "b"))
    with pytest.raises(InputError, match="have reference photos of its own, got"):
        replace(tiny, queries=(tiny.queries[0], stranger))


@pytest.mark.parametrize("grade", [0, 1])
def test_a_judgment_of_a_querys_own_reference_photo_is_refused(pictured, grade):
    qrels = {**pictured.qrels, "q2": {PHOTO_A: 1, PHOTO_B: grade}}
    with pytest.raises(InputError, match="not judge a query's own reference photo, got 'q2'"):
        replace(pictured, qrels=qrels)


def test_a_message_names_five_and_counts_the_others(tiny):
    qrels = {**tiny.qrels, **{f"x{n}": {PHOTO_A: 1} for n in range(7)}}
    with pytest.raises(InputError, match="got 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more"):
        replace(tiny, qrels=qrels)


def test_of_a_kind_that_nobody_explains_every_text_is_withheld(tiny):
    guessed = replace(tiny, queries=(tiny.queries[0], replace(tiny.queries[1], kind="guess")))
    everything = {"source_description", "title", "alt_description", "description"}
    assert guessed.withheld == everything
    explained = replace(guessed, withholds={**WITHHELD, "guess": frozenset()})
    assert explained.withheld == WITHHELD["label"]


# -- queries and runs -------------------------------------------------------------------------


@pytest.fixture
def pictured(tiny: Dataset) -> Dataset:
    """The second query brings a photo, and looks for the other one."""
    by_photo = replace(tiny.queries[1], text=None, photo_id=PHOTO_B, lang=NO_LANGUAGE)
    return replace(
        tiny, queries=(tiny.queries[0], by_photo), qrels={**tiny.qrels, "q2": {PHOTO_A: 1}}
    )


def test_a_query_asks_the_engine_for_everything_that_it_brings():
    square = PhotoFilter(orientation=("square",))
    labelled = LabelledQuery("q", "en", "label", "at night", PHOTO_A, square, 3.0)
    assert labelled.query() == Query(
        text="at night", photo_id=PHOTO_A, filter=square, text_alpha=3.0
    )
    assert LabelledQuery("q", "en", "label", "at night").query() == Query(text="at night")
    with pytest.raises(InputError, match="at most 500 characters"):
        LabelledQuery("q", "en", "label", "x" * 501).query()


def test_the_task_is_what_the_queries_bring(tiny, pictured):
    assert [query.task for query in pictured.queries] == ["text", "photo"]
    assert (tiny.task, pictured.task) == ("text", "mixed")
    assert pictured.only(["q2"]).task == "photo"
    steered = replace(pictured.queries[1], text="in the rain", lang="en")
    assert replace(pictured, queries=(tiny.queries[0], steered)).only(["q2"]).task == "photo+text"


@pytest.mark.parametrize(
    ("run", "message"),
    [
        ({"q3": [PHOTO_A]}, "answer known queries only, got 'q3'"),
        ({"q1": [PHOTO_A, "-1"]}, "find photos, no padding, got '-1'"),
        ({"q1": [None]}, "find photos, no padding, got None"),
        ({"q1": ["elsewhere"]}, "find photos of the dataset only, got 'elsewhere'"),
        ({"q1": [PHOTO_A, PHOTO_A]}, "name a photo once for each query, got 'q1'"),
        ({"q2": [PHOTO_A, PHOTO_B]}, "never find the reference photo of a query, got 'q2'"),
    ],
)
def test_a_run_that_is_no_answer_is_refused(pictured, run, message):
    with pytest.raises(InputError, match=f"a run of dataset 'tiny' must {message}"):
        pictured.check_run(run)


def test_a_run_may_be_short_and_silent(pictured):
    pictured.check_run({})
    pictured.check_run({"q1": [PHOTO_B, PHOTO_A], "q2": []})


# -- parts of a dataset -----------------------------------------------------------------------


def test_only_keeps_the_named_queries_in_the_order_of_the_file(demo):
    ids = [query.query_id for query in demo.queries[:5]]
    part = demo.only(reversed(ids))
    assert [query.query_id for query in part.queries] == ids
    assert list(part.qrels) == ids
    assert part.photo_ids == demo.photo_ids
    assert part.revision not in (demo.revision, demo.only(ids[:4]).revision)


def test_the_revision_of_a_part_says_what_is_asked_and_not_how_it_was_cut(demo):
    cut_twice = demo.select(kinds=["title", "alt"]).sample(["en", "de"], 4, 0)
    ids = [query.query_id for query in cut_twice.queries]
    assert cut_twice == demo.only(ids)
    assert cut_twice.only(ids[:3]).revision == demo.only(ids[:3]).revision
    assert demo.only(demo.qrels) is demo
    assert demo.select() is demo


@pytest.mark.parametrize("ids", [[], ["q1", "nobody"]])
def test_only_refuses_unknown_queries_and_none(tiny, ids):
    with pytest.raises(InputError, match="query_ids must be ids of queries of 'tiny'"):
        tiny.only(ids)


@pytest.fixture(scope="module")
def wide(make_photo) -> tuple[Dataset, PhotoTable]:
    """Six queries, each for its photo and the next; photos 0, 2 and 4 are landscape."""
    photos = []
    for n in range(6):
        width, height = (30, 20) if n % 2 == 0 else (20, 30)
        photo_id = photo_id_of("pond", f"p{n}")
        photos.append(make_photo(n, photo_id=photo_id, source="pond", width=width, height=height))
    ids = [photo.photo_id for photo in photos]
    dataset = Dataset(
        name="wide",
        revision="0" * 12,
        folder=Path("wide"),
        photos=None,
        queries=tuple(LabelledQuery(f"q{n}", "en", "label", "frog") for n in range(6)),
        qrels={f"q{n}": {ids[n]: 2, ids[(n + 2) % 6]: 0} for n in range(6)},
        records=tuple({"source": "pond", "source_photo_id": f"p{n}"} for n in range(6)),
    )
    return dataset, PhotoTable.from_photos(photos)


def test_under_a_filter_only_photos_that_pass_are_looked_for(wide):
    dataset, table = wide
    landscape = PhotoFilter(orientation=("landscape",))
    part = dataset.under(landscape, table)
    assert [query.query_id for query in part.queries] == ["q0", "q2", "q4"]
    assert {query.query().filter for query in part.queries} == {landscape}
    assert part.qrels == {i: dataset.qrels[i] for i in ("q0", "q2", "q4")}
    assert (part.n_dropped, dataset.n_dropped) == (3, 0)
    assert part.photo_ids == dataset.photo_ids


def test_under_drops_judgments_of_photos_that_fail_and_keeps_the_query(wide):
    dataset, table = wide
    both = replace(
        dataset, qrels={i: dict.fromkeys(table.texts("photo_id"), 1) for i in dataset.qrels}
    )
    part = both.under(PhotoFilter(orientation=("portrait",)), table)
    assert part.n_dropped == 0
    portrait = {photo_id_of("pond", f"p{n}") for n in (1, 3, 5)}
    assert all(grades.keys() == portrait for grades in part.qrels.values())


def test_under_no_condition_is_the_dataset_itself(wide):
    dataset, table = wide
    assert dataset.under(PhotoFilter(color_tolerance=3), table) is dataset


def test_every_filter_has_a_revision_of_its_own(wide):
    dataset, table = wide
    parts = [
        dataset.under(PhotoFilter(orientation=("landscape",)), table),
        dataset.under(PhotoFilter(orientation=("portrait",)), table),
        dataset.under(PhotoFilter(source=("pond",)), table),
        dataset.under(PhotoFilter(orientation=("landscape", "portrait")), table),
    ]
    assert len({dataset.revision, *(part.revision for part in parts)}) == 5
    again = dataset.under(PhotoFilter(orientation=("landscape",)), table)
    assert again == parts[0]


def test_under_refuses_what_leaves_nothing_and_what_it_cannot_know(wide):
    dataset, table = wide
    with pytest.raises(InputError, match="must let a relevant photo of 'wide' through"):
        dataset.under(PhotoFilter(orientation=("square",)), table)
    with pytest.raises(InputError, match="source must be one of pond"):
        dataset.under(PhotoFilter(source=("sea",)), table)
    with pytest.raises(InputError, match="the table must hold every judged photo of 'wide', got"):
        dataset.under(PhotoFilter(source=("pond",)), table.select(list(dataset.photo_ids)[:3]))
    part = dataset.under(PhotoFilter(source=("pond",)), table)
    with pytest.raises(InputError, match="must have no filter yet"):
        part.under(PhotoFilter(orientation=("landscape",)), table)


def test_a_dataset_is_shown_in_one_line(demo, tiny):
    assert repr(tiny) == "Dataset(tiny@000000000000: 2 photos, 2 queries in de, en; task text)"
    assert repr(demo).startswith(f"Dataset(demo@{demo.revision}: 602 photos, ")
    assert "\n" not in repr(demo)
