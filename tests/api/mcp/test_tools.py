"""The tools, asked by the official SDK's client in both families of the protocol."""

import json

import jsonschema
import pytest

from searchlab.api.accounts.tables import usage_months
from searchlab.api.mcp.answers import MOST_BYTES, NOTICE
from searchlab.api.mcp.collection_tools import describe_entry
from searchlab.api.mcp.library_tools import TOOLS
from searchlab.api.wire.schema import Photo
from searchlab.client import Client
from tests.support.apis import api
from tests.support.served_pages import make_library
from tests.support.tool_clients import (
    BASE_URL,
    ToolClient,
    ask_api,
    connect,
    used,
)

pytestmark = pytest.mark.slow

# -- what is listed ---------------------------------------------------------------------------


def test_tools_are_listed_with_schemas_annotations_and_a_title(tools):
    listed = {tool.name: tool for tool in tools.run(lambda client: client.list_tools()).tools}
    assert list(listed) == [
        *("search_photos", "similar_photos", "get_photo", "get_upload_address", "facets"),
        *("suggest_photographers", "usage", "list_collections", "get_collection"),
        *("create_collection", "add_to_collection", "remove_from_collection"),
        "delete_collection",
    ]
    for tool in listed.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert "$ref" not in json.dumps([tool.input_schema, tool.output_schema])
        assert tool.title
        assert tool.description
        assert tool.annotations.open_world_hint is False
    hints = {name: tool.annotations for name, tool in listed.items()}
    changing = {name for name, hint in hints.items() if not hint.read_only_hint}
    assert changing == {
        *("create_collection", "add_to_collection", "remove_from_collection"),
        "delete_collection",
    }
    destroying = {name for name, hint in hints.items() if hint.destructive_hint}
    assert destroying == {"remove_from_collection", "delete_collection"}
    assert {name for name, hint in hints.items() if not hint.idempotent_hint} == {
        "create_collection"
    }


def test_every_filter_of_the_api_is_an_argument_with_the_same_schema(modern):
    (tool,) = [
        tool
        for tool in modern.run(lambda client: client.list_tools()).tools
        if tool.name == "search_photos"
    ]
    names = set(tool.input_schema["properties"])
    api_names = {
        parameter["name"]
        for path in ("get", "post")
        for parameter in modern.server.anonymous.get("/openapi.json").json()["paths"][
            "/api/v1/search/photos"
        ][path]["parameters"]
        if parameter["in"] == "query"
    }
    assert names == api_names - {"fields"} | {"picture", "show_pictures"}
    assert tool.input_schema["additionalProperties"] is False


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_server_says_how_to_use_it_and_that_texts_are_data(server, token, mode):
    instructions = ToolClient(server, token, mode).run(_instructions)
    assert NOTICE in instructions
    assert "attribution" in instructions


async def _instructions(client):
    return client.instructions


# -- the same as the API ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        {"q": "red"},
        {"color_name": "blue", "color_tolerance": 60},
        {"orientation": ["landscape", "square"], "sort_by": "newest"},
        {"q": "gold", "limit": 3, "score_threshold": 0.2},
        {"source": ["nasa"], "license_type": ["cc0"], "after_date": "2000-01-01"},
    ],
    ids=["text", "color", "orientation", "limit", "facets"],
)
def test_a_search_finds_what_the_api_finds_and_counts_as_it_does(server, tools, query):
    expected = ask_api(server, "/search/photos", per_page=9, **query)
    before = used(server)
    found = tools.data("search_photos", **query)
    assert used(server) == before + 1
    assert [photo["photo_id"] for photo in found["photos"]] == [
        photo["photo_id"] for photo in expected["data"]
    ]
    assert [photo["relevance_score"] for photo in found["photos"]] == [
        photo["relevance_score"] for photo in expected["data"]
    ]
    assert found["pagination"]["has_more"] is expected["pagination"]["has_more"]


def test_cursors_page_on_in_the_tools_and_in_the_api_alike(server, tools):
    whole = [photo["photo_id"] for photo in ask_api(server, "/search/photos", q="a photo")["data"]]
    first = tools.data("search_photos", q="a photo", per_page=4)
    cursor = first["pagination"]["next_cursor"]
    second = tools.data("search_photos", cursor=cursor)
    by_api = ask_api(server, "/search/photos", cursor=cursor)
    ids = [photo["photo_id"] for page in (first, second) for photo in page["photos"]]
    assert ids == whole[:8]
    assert [photo["photo_id"] for photo in by_api["data"]] == whole[4:8]


def test_a_photo_of_the_library_leads_to_its_likes_by_both_tools(server, tools):
    photo_id = ask_api(server, "/search/photos", q="red")["data"][0]["photo_id"]
    expected = ask_api(server, f"/photos/{photo_id}/similar", per_page=4)
    similar = tools.data("similar_photos", photo_id=photo_id, per_page=4)
    searched = tools.data("search_photos", photo_id=photo_id, per_page=4)
    ids = [photo["photo_id"] for photo in expected["data"]]
    assert [photo["photo_id"] for photo in similar["photos"]] == ids
    assert [photo["photo_id"] for photo in searched["photos"]] == ids
    cursor = similar["pagination"]["next_cursor"]
    following = tools.data("similar_photos", photo_id=photo_id, cursor=cursor)
    assert not {photo["photo_id"] for photo in following["photos"]} & set(ids)


def test_get_photo_shows_the_record_of_the_api(server, tools):
    photo_id = ask_api(server, "/search/photos", q="red")["data"][0]["photo_id"]
    record = ask_api(server, f"/photos/{photo_id}")["data"]
    shown = tools.data("get_photo", photo_id=photo_id)["photo"]
    assert set(shown) == set(Photo.__struct_fields__)
    assert {name: shown[name] for name in ("photo_id", "width", "height", "source")} == {
        name: record[name] for name in ("photo_id", "width", "height", "source")
    }
    assert shown["attribution"] == record["attribution"]


@pytest.mark.parametrize("facet", ["colors", "sources", "orientations", "licenses"])
def test_facets_are_those_of_the_api(server, tools, facet):
    answer = tools.data("facets", facet=facet)
    assert answer["values"] == ask_api(server, f"/facets/{facet}")["data"]
    assert answer["next_start"] is None


def test_photographers_are_those_of_the_api_and_their_names_are_what_the_filter_takes(
    server, tools
):
    expected = ask_api(server, "/facets/photographers/suggest", q="AN", limit=5)["data"]
    answer = tools.data("suggest_photographers", q="AN", limit=5)
    assert answer["photographers"] == expected != []
    username = expected[0]["username"]
    found = tools.data("search_photos", photographer=username)["photos"]
    assert {photo["photographer_username"] for photo in found} == {username}
    assert tools.data("suggest_photographers", q="nobody of this name")["photographers"] == []


def test_usage_is_that_of_the_api_and_counts_the_connected_app(server, tools):
    tools.data("search_photos", q="red")
    told = tools.data("usage", months=2, days=3, by_key=True)
    assert told["requests"] == ask_api(server, "/usage")["data"]["requests"]
    assert told["monthly"] == ask_api(server, "/usage/monthly", months=2)["data"]
    assert told["daily"] == ask_api(server, "/usage/daily", days=3)["data"]
    assert {"key", "Finder"} <= {key["name"] for key in told["keys"]}
    assert set(tools.data("usage")) == {"notice", "period", "requests"}


def test_usage_by_key_is_said_to_hold_the_pages_as_it_does():
    (usage,) = [tool for tool in TOOLS if tool.name == "usage"]
    said = usage.arguments["properties"]["by_key"]["description"]
    for text in (usage.description, said, Client.usage_by_key.__doc__):
        assert "pages" in text


def test_collections_are_made_read_filled_emptied_and_deleted(server, tools):
    photo_id = ask_api(server, "/search/photos", q="red")["data"][0]["photo_id"]
    made = tools.data("create_collection", name="Autumn", is_public=True)["collection"]
    number = made["id"]
    tools.data("add_to_collection", collection_id=number, photo_id=photo_id)
    assert "Nothing needs to be done" in tools.refusal(
        "add_to_collection", collection_id=number, photo_id=photo_id
    )
    shown = tools.data("get_collection", collection_id=number)["collection"]
    assert shown == ask_api(server, f"/collections/{number}")["data"]
    listed = tools.data("list_collections")["collections"]
    assert listed == ask_api(server, "/collections")["data"]
    tools.data("remove_from_collection", collection_id=number, photo_id=photo_id)
    assert tools.data("delete_collection", collection_id=number) == {"deleted": True}
    assert "NOT_FOUND" in tools.refusal("get_collection", collection_id=number)


def test_a_photo_of_nobody_known_is_by_nobody():
    entry = {"photo_id": "a", "photo_photographer": "", "photo_source": "local"}
    assert describe_entry(entry) == "photo_id a, local"
    entry["photo_photographer"] = "Ann"
    assert describe_entry(entry) == 'photo_id a by "Ann", local'


@pytest.mark.parametrize(
    "name",
    [
        *("picture", "photo_id", "cursor", "color_name", "color_hex", "orientation", "source"),
        *("license_type", "photographer", "after_date", "sort_by", "limit", "per_page"),
        *("score_threshold", "text_alpha", "color_tolerance", "show_pictures"),
    ],
)
def test_an_empty_text_counts_as_left_out(modern, name):
    expected = modern.data("search_photos", q="red")
    assert modern.data("search_photos", q="red", **{name: ""})["photos"] == expected["photos"]


def test_an_empty_text_counts_as_left_out_in_every_tool(server, modern):
    photo_id = modern.data("search_photos", q="red", photo_id="")["photos"][0]["photo_id"]
    by_photo = modern.data("search_photos", photo_id=photo_id, picture="", q="")["photos"]
    assert by_photo == modern.data("search_photos", photo_id=photo_id)["photos"]
    similar = modern.data("similar_photos", photo_id=photo_id, cursor="", limit="")["photos"]
    assert similar == modern.data("similar_photos", photo_id=photo_id)["photos"]
    assert modern.data("facets", facet="colors", start="")["values"]
    assert modern.data("suggest_photographers", q="an", limit="")["photographers"]
    assert set(modern.data("usage", months="", days="", by_key="")) == set(modern.data("usage"))
    made = [
        modern.data("create_collection", name="Empty", idempotency_key="", description="")
        for _ in range(2)
    ]
    ids = [each["collection"]["id"] for each in made]
    assert ids[0] != ids[1]
    entry = {"collection_id": ids[0], "photo_id": photo_id, "idempotency_key": ""}
    assert modern.data("add_to_collection", **entry)["entry"]["photo_id"] == photo_id
    for collection_id in ids:
        modern.data("delete_collection", collection_id=collection_id)


def test_a_creation_that_is_repeated_with_its_idempotency_key_happens_once(server, tools):
    before = len(ask_api(server, "/collections")["data"])
    arguments = {"name": "Once", "idempotency_key": f"秋天 {tools.mode}"}
    first, again = (tools.data("create_collection", **arguments) for _ in range(2))
    assert first == again
    assert len(ask_api(server, "/collections")["data"]) == before + 1


def test_a_whole_number_may_be_written_with_a_point(tools):
    """JSON has one kind of numbers."""
    found = tools.data("search_photos", q="red", per_page=3.0)
    assert len(found["photos"]) == 3


# -- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        ("search_photos", {}, "a search must have q or a filter, got neither"),
        ("search_photos", {"q": "a", "per_page": 99999999999999999999}, "got 99999999999999999999"),
        ("search_photos", {"q": "a", "per_page": 1.5}, "per_page must be an integer"),
        ("search_photos", {"colour": "red"}, "an argument must be one of q, color_name"),
        ("search_photos", {"q": "x" * 501}, "q must be"),
        ("search_photos", {"q": "a", "per_page": 21}, "per_page must be"),
        ("search_photos", {"q": "a", "orientation": "round"}, "landscape, portrait, square"),
        ("search_photos", {"q": {"a": 1}}, "q must be a plain value"),
        ("search_photos", {"q": "a\0"}, "NUL"),
        ("search_photos", {"cursor": "abc"}, "cursor must be"),
        ("similar_photos", {}, "photo_id must be given"),
        ("get_photo", {"photo_id": "abc"}, "do not guess one"),
        ("get_photo", {"photo_id": "../usage"}, "must be one that an answer has shown"),
        ("facets", {"facet": "tastes"}, "facet must be one of colors"),
        ("suggest_photographers", {"q": ""}, "q must be"),
        ("usage", {"months": 25}, "months must be"),
        ("create_collection", {"name": ""}, "name must be"),
        ("get_collection", {"collection_id": 10**9}, "NOT_FOUND"),
        ("get_collection", {"collection_id": "7/photos"}, "collection_id must be"),
        ("add_to_collection", {"collection_id": 1}, "photo_id must be given"),
    ],
)
def test_a_refusal_says_what_must_hold_and_what_to_do(modern, tool, arguments, says):
    text = modern.refusal(tool, **arguments)
    assert says in text
    assert "Traceback" not in text
    assert text.isprintable()


def test_a_cursor_of_the_api_keeps_its_pages(server, modern):
    short = ask_api(server, "/search/photos", q="a photo", per_page=1)["pagination"]["next_cursor"]
    assert len(modern.data("search_photos", cursor=short)["photos"]) == 1


def test_a_page_of_the_api_that_is_longer_than_a_tools_is_refused(tmp_path):
    with api(make_library(tmp_path, n_photos=43), base_url=BASE_URL) as server:
        modern = ToolClient(server, connect(server.database, "tests"))
        long = ask_api(server, "/search/photos", q="a photo", per_page=21)["pagination"]
        for show_pictures in (False, True):
            refused = modern.refusal(
                "search_photos", cursor=long["next_cursor"], show_pictures=show_pictures
            )
            assert "whose pages have at most 20 photos" in refused
            assert "search again" in refused
        largest = modern.call("search_photos", q="a photo", per_page=20)
        cursor = largest.structured_content["pagination"]["next_cursor"]
        following = modern.data("search_photos", cursor=cursor)
        ids = [
            photo["photo_id"]
            for page in (largest.structured_content, following)
            for photo in page["photos"]
        ]
        assert len(set(ids)) == 40


def test_the_quota_is_the_accounts_and_the_refusal_says_to_stop(server):
    server.make_client(account="poor", plan="free")
    poor = ToolClient(server, connect(server.database, "poor"))
    assert not poor.call("search_photos", q="red").is_error
    grant = server.app.services.tokens.resolve(poor.token, f"{BASE_URL}/mcp")
    of_account = usage_months.c.account_id == grant.caller.account_id
    with server.database.writing() as connection:
        connection.execute(usage_months.update().where(of_account).values(requests=4_999))
    assert not poor.call("search_photos", q="red").is_error
    text = poor.refusal("search_photos", q="red")
    assert text.startswith("QUOTA_EXCEEDED: ")
    assert "Stop searching" in text
    assert "seconds have passed" in text
    assert not poor.call("facets", facet="colors").is_error


def test_answers_stay_below_25_000_tokens_whatever_the_tokenizer(tools):
    result = tools.call("search_photos", q="a photo", per_page=20, show_pictures=True)
    said = [block.text for block in result.content if block.type == "text"]
    links = [block.model_dump_json() for block in result.content if block.type == "resource_link"]
    n_bytes = len(json.dumps(result.structured_content, ensure_ascii=False).encode())
    assert n_bytes + sum(len(text.encode()) for text in [*said, *links]) < 25_000
    assert MOST_BYTES < 25_000
