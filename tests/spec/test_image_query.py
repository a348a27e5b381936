"""Section 4.2: what comes with a picture or an indexed photo: words, filters, pages."""

import pytest

from tests.support.independent_client import (
    PHOTO,
    SEARCH,
    UNKNOWN,
    check_failure,
    check_invalid,
    check_page,
    check_refused,
    follow,
    found_in,
    ids_of,
)


@pytest.fixture(scope="module")
def select(known):
    def ids(condition):
        return {photo["photo_id"] for photo in known.everything if condition(photo)}

    return ids


# -- photo_id ----------------------------------------------------------------------------------


def test_a_photo_never_appears_in_its_own_results(api, known, photo_id):
    photo_ids = found_in(follow(api, api.image_page(photo_id=photo_id, per_page=50)))
    assert photo_id not in photo_ids
    assert len(photo_ids) == len(set(photo_ids)) == len(known.everything) - 1


@pytest.mark.parametrize(
    "filters",
    [{"source": "scikit-image"}, {"q": "sea"}, {"sort_by": "newest"}, {"score_threshold": 0},
     {"color_name": "red", "color_tolerance": 255}, {"q": "sea", "text_alpha": 0}],
)  # fmt: skip
def test_nor_with_filters_or_words(api, photo_id, filters):
    photo_ids = found_in(follow(api, api.image_page(photo_id=photo_id, per_page=100, **filters)))
    assert photo_ids
    assert photo_id not in photo_ids


def test_photo_id_alone_returns_what_similar_returns(api, photo_id):
    searched = api.image_page(photo_id=photo_id)
    assert searched["data"] == api.data(f"/photos/{photo_id}/similar")


@pytest.mark.parametrize("unknown", [UNKNOWN, "abc", "%", "../x", "ä", "0" * 500])
def test_an_unknown_photo_id_is_not_found(api, unknown):
    check_failure(api.post(SEARCH, photo_id=unknown), 404, "NOT_FOUND")


def test_the_plans_cap_on_similar_photos_applies(known, photo_id):
    free = known.api("free").image_page(photo_id=photo_id, per_page=5)
    assert len(free["data"]) == 5
    assert free["pagination"] == {"per_page": 5, "has_more": False, "next_cursor": None}
    assert known.api().image_page(photo_id=photo_id, per_page=5)["pagination"]["has_more"]


def test_the_cap_does_not_apply_to_an_uploaded_picture(known, picture):
    page = check_page(known.api("free").upload(picture[0], per_page=5))
    assert page["pagination"]["has_more"]


# -- words beside the picture ------------------------------------------------------------------


def test_words_steer_the_match(api, picture, photo_id):
    alone = ids_of(api.upload(picture[0], per_page=50))
    steered = ids_of(api.upload(picture[0], per_page=50, q="a yellow flower"))
    assert alone != steered
    assert (
        api.image_page(photo_id=photo_id, q="a yellow flower")["data"]
        != (api.image_page(photo_id=photo_id)["data"])
    )


def test_alpha_0_ignores_the_text(api, picture):
    alone = check_page(api.upload(picture[0], per_page=50))["data"]
    assert check_page(api.upload(picture[0], per_page=50, q="sea", text_alpha=0))["data"] == alone


def test_alpha_has_no_effect_without_words(api, picture):
    alone = check_page(api.upload(picture[0]))["data"]
    assert check_page(api.upload(picture[0], text_alpha=10))["data"] == alone
    assert check_page(api.upload(picture[0], text_alpha=10, q=""))["data"] == alone


def test_the_default_alpha_is_1_7(api, picture):
    default = check_page(api.upload(picture[0], q="sea"))["data"]
    assert check_page(api.upload(picture[0], q="sea", text_alpha=1.7))["data"] == default


def test_a_higher_alpha_comes_nearer_to_the_words(api, picture):
    words = api.ids(q="a yellow flower", per_page=20)

    def shared(alpha):
        photo_ids = ids_of(api.upload(picture[0], q="a yellow flower", text_alpha=alpha))
        return len(set(photo_ids) & set(words))

    assert shared(0) < shared(10)
    assert shared(10) > 10


@pytest.mark.parametrize("alpha", ["0", "10", "0.0", "10.0", "1.7", "1e1", ".5"])
def test_alpha_from_0_to_10_is_accepted(api, photo_id, alpha):
    api.image_page(photo_id=photo_id, q="sea", text_alpha=alpha)


@pytest.mark.parametrize(
    "alpha", ["-0.1", "10.1", "11", "nan", "inf", "-inf", "abc", "", " 1", "1e400", "١"]
)
def test_alpha_out_of_range_is_invalid(api, photo_id, alpha):
    answer = api.post(SEARCH, photo_id=photo_id, q="sea", text_alpha=alpha)
    check_invalid(answer, "query", "text_alpha")


@pytest.mark.parametrize("q", ["x" * 501, "🌼" * 501])
def test_q_has_at_most_500_characters_here_too(api, photo_id, q):
    check_invalid(api.post(SEARCH, photo_id=photo_id, q=q), "query", "q")
    api.image_page(photo_id=photo_id, q=q[:500])


# -- the parameters of 4.1 ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "condition"),
    [
        ({"orientation": ["square", "portrait"]}, lambda p: p["orientation"] != "landscape"),
        ({"source": "scikit-learn"}, lambda p: p["source"] == "scikit-learn"),
        ({"license_type": ["by", "cc0"]}, lambda p: p["license_type"] in {"by", "cc0"}),
        ({"photographer": "ann"}, lambda p: p["photographer_username"] == "ann"),
        ({"after_date": "2020-01-20"}, lambda p: p["uploaded_on"] >= "2020-01-20"),
        ({"color_name": "red"}, lambda p: p["color_name"] == "red"),
        ({"color_hex": "#0343df", "color_tolerance": 0}, lambda p: p["color_hex"] == "#0343df"),
        (
            {"source": "palapeli-data", "orientation": "square", "color_name": "white"},
            lambda p: (
                (p["source"], p["orientation"], p["color_name"])
                == ("palapeli-data", "square", "white")
            ),
        ),
    ],
)
@pytest.mark.parametrize("q", [None, "sea"])
def test_filters_hold_as_in_a_text_search(api, picture, select, filters, condition, q):
    words = {"q": q} if q else {}
    first = check_page(api.upload(picture[0], per_page=100, **filters, **words))
    assert set(found_in(follow(api, first))) == select(condition)


@pytest.mark.parametrize(
    ("name", "value"),
    [("per_page", "0"), ("per_page", "101"), ("per_page", "abc"), ("limit", "0"), ("limit", "101"),
     ("color_tolerance", "256"), ("score_threshold", "1.1"), ("score_threshold", "nan"),
     ("orientation", "round"), ("source", "nowhere"), ("license_type", "stolen"),
     ("color_name", "octarine"), ("color_hex", "red"), ("after_date", "2020-02-30"),
     ("sort_by", "oldest"), ("per_page", "1" + "0" * 30)],
)  # fmt: skip
def test_parameters_have_the_same_rules(api, photo_id, name, value):
    check_invalid(api.post(SEARCH, **{"photo_id": photo_id, name: value}), "query", name)


def test_color_name_and_color_hex_cannot_be_combined(api, photo_id):
    check_invalid(api.post(SEARCH, photo_id=photo_id, color_name="red", color_hex="#e50000"))


@pytest.mark.parametrize(
    ("limit", "per_page", "sizes"), [(4, 2, [2, 2]), (3, 2, [2, 1]), (1, 5, [1]), (21, 20, [20, 1])]
)
def test_limit_caps_the_total(api, picture, limit, per_page, sizes):
    pages = follow(api, check_page(api.upload(picture[0], limit=limit, per_page=per_page)))
    assert [len(page["data"]) for page in pages] == sizes
    assert found_in(pages) == ids_of(api.upload(picture[0], per_page=100))[:limit]


def test_score_threshold_keeps_what_scores_at_least_it(api, picture):
    unset = check_page(api.upload(picture[0], per_page=100))["data"]
    middle = unset[5]["relevance_score"]
    photos = check_page(api.upload(picture[0], per_page=100, score_threshold=repr(middle)))["data"]
    assert photos == [photo for photo in unset if photo["relevance_score"] >= middle]


def test_newest_is_the_same_photos_the_most_recent_first(api, known, picture):
    first = check_page(api.upload(picture[0], per_page=100, sort_by="newest"))
    photos = [photo for page in follow(api, first) for photo in page["data"]]
    days = [photo["uploaded_on"] for photo in photos]
    assert days == sorted(days, reverse=True)
    assert len(photos) == len(known.everything)


def test_fields_are_accepted_here_too(api, picture, photo_id):
    page = check_page(api.upload(picture[0], fields="photo_id,width", per_page=2))
    assert [set(photo) for photo in page["data"]] == [{"photo_id", "width"}] * 2
    assert set(api.image_page(photo_id=photo_id, fields="urls")["data"][0]) == {"urls"}
    error = check_failure(api.post(SEARCH, photo_id=photo_id, fields="nope"), 400, "INVALID_FIELDS")
    assert all(name in f"{error['message']} {error['details']}" for name in PHOTO)


# -- paging ------------------------------------------------------------------------------------


def test_later_pages_need_the_cursor_alone(api, known, picture):
    whole = ids_of(api.upload(picture[0], per_page=100))
    pages = follow(api, check_page(api.upload(picture[0], per_page=30)))
    assert found_in(pages)[:100] == whole
    assert len(found_in(pages)) == len(set(found_in(pages))) == len(known.everything)


def test_the_cursor_remembers_picture_words_and_filters(api, picture, photo_id):
    query = {"q": "sea", "text_alpha": 3, "source": "palapeli-data", "sort_by": "newest"}
    first = check_page(api.upload(picture[0], per_page=4, limit=10, **query))
    whole = ids_of(api.upload(picture[0], per_page=10, limit=10, **query))
    assert found_in(follow(api, first)) == whole
    first = api.image_page(photo_id=photo_id, per_page=4, limit=10, **query)
    whole = [p["photo_id"] for p in api.image_page(photo_id=photo_id, limit=10, **query)["data"]]
    assert found_in(follow(api, first)) == whole


def test_what_else_comes_with_a_cursor_is_ignored(api, picture, photo_id):
    cursor = api.image_page(photo_id=photo_id, per_page=4)["pagination"]["next_cursor"]
    plain = api.image_page(cursor=cursor)["data"]
    changed = {"photo_id": photo_id, "q": "mountain", "text_alpha": "99", "per_page": "0"}
    assert api.image_page(cursor=cursor, **changed)["data"] == plain
    again = api.upload(picture[0], cursor=cursor)  # a second upload: never needed
    if again.is_success:
        assert check_page(again)["data"] == plain
    else:
        check_refused(again)


def test_fields_can_be_named_on_a_later_page(api, picture):
    first = check_page(api.upload(picture[0], per_page=4))
    cursor = first["pagination"]["next_cursor"]
    assert set(api.image_page(cursor=cursor, fields="width")["data"][0]) == {"width"}


def test_a_cursor_of_a_text_search_is_of_no_use_here_and_the_other_way_round(api, photo_id):
    text = api.page(q="sea")["pagination"]["next_cursor"]
    check_refused(api.post(SEARCH, cursor=text))
    image = api.image_page(photo_id=photo_id)["pagination"]["next_cursor"]
    check_refused(api.get(SEARCH, cursor=image))
