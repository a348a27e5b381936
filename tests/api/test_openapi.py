"""The reference: it says of every route what the route does, and loads nothing from elsewhere."""

import re

import msgspec
import pytest
from jsonschema import Draft202012Validator

from searchlab.api.app import create_app
from searchlab.api.docs.openapi import EncodedDocument, build_document, list_places, place_document
from searchlab.api.docs.openapi_answers import make_example
from searchlab.api.settings import Settings
from searchlab.api.web.failures import is_page
from searchlab.api.wire.errors import KINDS
from searchlab.api.wire.operations import operation_of
from searchlab.api.wire.parameters import fields_of
from searchlab.api.wire.requests import NO_NUL
from searchlab.api.wire.schema import Collection, CollectionWithPhotos, Photo
from searchlab.photos.photo import PHOTO_FIELDS

# Not for people, and not described: the document itself, and other names of what is described.
_KNOWN = "/.well-known/oauth"
# What clients of OAuth and of tools ask describes itself, in the forms that they know.
UNSAID = {
    *("/openapi.json", "/media/{photo_id}", "/mcp", "/mcp/pictures/{ticket}"),
    *("/oauth/token", "/oauth/revoke", "/oauth/register"),
    *(f"{_KNOWN}-authorization-server", f"{_KNOWN}-authorization-server/{{path}}"),
    *(f"{_KNOWN}-protected-resource", f"{_KNOWN}-protected-resource/{{path}}"),
}
HERE = "http://testserver.local"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    """What answers; it opens nothing before it is started."""
    front = create_app(Settings(data=tmp_path_factory.mktemp("nothing"), access_log=False))
    return front._app


@pytest.fixture(scope="module")
def document(app):
    return place_document(build_document(app), base_url=HERE)


@pytest.fixture(scope="module")
def operations(document):
    return {
        operation["operationId"]: operation
        for methods in document["paths"].values()
        for operation in methods.values()
    }


def resolve(document, node):
    while "$ref" in node:
        target = document
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        node = target
    return node


def parameters_of(operation):
    return {one["name"]: one for one in operation["parameters"]}


def validator(document, schema):
    return Draft202012Validator(schema | {"components": document["components"]})


# -- every route ------------------------------------------------------------------------------


def test_every_route_of_the_api_is_described_and_nothing_else(app, document):
    routes = {(path, method) for path, method, _ in list_places(app) if path.startswith("/api/")}
    described = {
        (path, method)
        for path, methods in document["paths"].items()
        for method in methods
        if path.startswith("/api/")
    }
    assert described == routes
    assert len(routes) == 20


def test_every_path_of_the_service_is_described_or_a_page_for_people(app, document):
    served = {path for path, _, _ in list_places(app)}
    described = set(document["paths"])
    assert described <= served
    assert {path for path in served - described if not is_page(path)} == UNSAID


def test_every_operation_has_a_name_of_its_own_and_a_known_tag(document, operations):
    n_operations = sum(len(methods) for methods in document["paths"].values())
    assert len(operations) == n_operations
    tags = {tag["name"] for tag in document["tags"]}
    assert {operation["tags"][0] for operation in operations.values()} == tags


def test_parameters_are_the_fields_that_are_read(app, operations):
    for _, _, handler in list_places(app):
        operation = operation_of(handler.opt)
        if operation is None or operation.parameters is None:
            continue
        described = operations[operation.operation_id]["parameters"]
        parameters = [p for p in described if p["in"] == "query"]
        fields = fields_of(operation.parameters)
        names = [(p["name"], p["required"]) for p in parameters]
        assert names == [(field.name, field.required) for field in fields]
        repeatable = [p["name"] for p in parameters if p["schema"].get("type") == "array"]
        assert repeatable == [field.name for field in fields if field.repeatable]


@pytest.mark.parametrize(
    ("operation", "name", "expected"),
    [
        ("searchPhotosByText", "q", {"type": "string", "maxLength": 500, "pattern": NO_NUL}),
        (
            "searchPhotosByText",
            "color_tolerance",
            {"type": "integer", "minimum": 0, "maximum": 255, "default": 20},
        ),
        (
            "searchPhotosByText",
            "per_page",
            {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
        ),
        ("searchPhotosByText", "limit", {"type": "integer", "minimum": 1, "maximum": 100}),
        ("searchPhotosByText", "score_threshold", {"type": "number", "minimum": 0, "maximum": 1}),
        (
            "searchPhotosByText",
            "orientation",
            {
                "type": "array",
                "items": {"type": "string", "enum": ["landscape", "portrait", "square"]},
            },
        ),
        (
            "searchPhotosByImage",
            "text_alpha",
            {"type": "number", "minimum": 0, "maximum": 10, "default": 1.7},
        ),
        (
            "suggestPhotographers",
            "q",
            {"type": "string", "minLength": 1, "maxLength": 100, "pattern": NO_NUL},
        ),
        (
            "suggestPhotographers",
            "limit",
            {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
        ),
        (
            "getMonthlyUsage",
            "months",
            {"type": "integer", "minimum": 1, "maximum": 24, "default": 12},
        ),
        ("getDailyUsage", "days", {"type": "integer", "minimum": 1, "maximum": 90, "default": 30}),
        ("getCollection", "collection_id", {"type": "integer"}),
    ],
)
def test_ranges_and_defaults_are_those_of_the_specification(operations, operation, name, expected):
    assert parameters_of(operations[operation])[name]["schema"] == expected


@pytest.mark.parametrize(
    ("fields", "fits"),
    [("photo_id", True), ("urls, photo_id", True), ("photographer", False), ("", False)],
)
def test_fields_are_names_of_photo_fields(document, operations, fields, fits):
    schema = parameters_of(operations["getPhoto"])["fields"]["schema"]
    assert validator(document, schema).is_valid(fields) is fits


def test_a_key_is_asked_for_everywhere_but_on_the_services_own_paths(document):
    assert document["security"] == [{"ApiKey": []}]
    scheme = document["components"]["securitySchemes"]["ApiKey"]
    assert (scheme["type"], scheme["in"], scheme["name"]) == ("apiKey", "header", "x-api-key")
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert operation.get("security") == (None if path.startswith("/api/") else [])


def test_every_post_takes_an_idempotency_key(document):
    for methods in document["paths"].values():
        if "post" in methods:
            key = parameters_of(methods["post"])["Idempotency-Key"]
            assert (key["in"], key.get("required", False)) == ("header", False)
            assert "Idempotency-Replayed" in methods["post"]["responses"]["200"]["headers"]


def test_a_picture_is_sent_as_a_form_with_the_part_image(operations):
    body = operations["searchPhotosByImage"]["requestBody"]
    form = body["content"]["multipart/form-data"]
    assert body["required"] is False
    assert form["schema"]["properties"]["image"]["format"] == "binary"
    assert "refused as parts" in body["description"]


@pytest.mark.parametrize(
    ("form", "fits"),
    [
        ({}, True),
        ({"image": ""}, True),
        ({"image": "", "other": ""}, True),
        ({"other": ""}, False),
    ],
)
def test_a_form_has_the_part_image_or_no_part_at_all(operations, form, fits):
    body = operations["searchPhotosByImage"]["requestBody"]
    schema = body["content"]["multipart/form-data"]["schema"]
    assert Draft202012Validator(schema).is_valid(form) is fits


def test_what_is_cached_says_so(operations):
    cached = {name for name, one in operations.items() if "304" in one["responses"]}
    assert cached - {"getPicture"} == {
        "getPhoto",
        "listColors",
        "listSources",
        "listOrientations",
        "listLicenses",
        "suggestPhotographers",
        "getPhotographer",
    }
    assert all("ETag" in operations[name]["responses"]["200"]["headers"] for name in cached)


# -- answers ----------------------------------------------------------------------------------


def test_statuses_are_those_of_the_problems_that_may_come(app, operations):
    for _, _, handler in list_places(app):
        operation = operation_of(handler.opt)
        if operation is not None:
            answers = operations[operation.operation_id]["responses"]
            expected = {str(KINDS[code].status) for code in operation.problems}
            expected |= {"200", "400", "401", "414", "429", "431", "500", "503"}
            expected |= {"409"} if operation.replayable else set()
            assert expected <= set(answers) <= expected | {"304", "422"}


def test_a_picture_search_can_fail_in_every_way_that_one_can(document, operations):
    answers = operations["searchPhotosByImage"]["responses"]
    assert list(answers) == [
        "200",
        "400",
        "401",
        "404",
        "409",
        "410",
        "413",
        "414",
        "415",
        "422",
        "429",
        "431",
        "500",
        "503",
    ]
    limited = resolve(document, answers["429"])
    examples = limited["content"]["application/json"]["examples"]
    assert set(examples) == {"RATE_LIMITED", "QUOTA_EXCEEDED"}
    assert "Retry-After" in limited["headers"]


def test_every_reference_leads_somewhere(document):
    text = msgspec.json.encode(document).decode()
    references = set(re.findall(r'"\$ref":"([^"]+)"', text))
    assert len(references) > 40
    for reference in references:
        assert resolve(document, {"$ref": reference})


def test_every_example_of_a_body_and_an_answer_fits_its_schema(document, operations):
    contents = [
        content
        for operation in operations.values()
        for part in (*operation["responses"].values(), operation.get("requestBody", {}))
        for content in resolve(document, part).get("content", {}).values()
    ]
    n_checked = 0
    for content in contents:
        examples = [one["value"] for one in content.get("examples", {}).values()]
        examples += [content["example"]] if "example" in content else []
        for example in examples:
            validator(document, content["schema"]).validate(example)
            n_checked += 1
    assert n_checked > 150


def test_every_example_of_a_parameter_fits_its_schema(document, operations):
    for operation in operations.values():
        for parameter in operation.get("parameters", []):
            examples = [one["value"] for one in parameter.get("examples", {}).values()]
            examples += [parameter["example"]] if "example" in parameter else []
            for example in examples:
                validator(document, parameter["schema"]).validate(example)


def test_a_photo_has_the_fields_of_the_specification_and_any_may_be_left_out(document, make_photo):
    schema = document["components"]["schemas"]["Photo"]
    assert tuple(schema["properties"]) == PHOTO_FIELDS
    assert "required" not in schema
    record = make_photo(1).to_dict(relevance_score=0.5)
    validator(document, {"$ref": "#/components/schemas/Photo"}).validate(record)
    assert msgspec.convert(record, Photo).photo_id == record["photo_id"]


def test_only_a_single_collection_has_photos():
    assert "photos" not in make_example(Collection)
    assert len(make_example(CollectionWithPhotos)["photos"]) == 1


@pytest.mark.slow
def test_a_loader_of_schemathesis_reads_every_operation(document, operations):
    import schemathesis

    schema = schemathesis.openapi.from_dict(document)
    schema.validate()
    assert len([result.ok() for result in schema.get_all_operations()]) == len(operations)


def test_links_of_the_document_lead_to_the_address_of_its_service(document):
    placed = place_document(document, base_url="https://h.example/photos")
    links = re.findall(r"\]\(([^)]*)\)", placed["info"]["description"])
    assert links == [placed["externalDocs"]["url"]] == ["https://h.example/photos/docs/errors"]


def test_the_document_is_encoded_once_for_every_address(document):
    encoded = EncodedDocument(document)
    for address in ("https://photos.example.org", 'http://"a\\b'):
        expected = place_document(document, base_url=address)
        assert msgspec.json.decode(encoded.place(base_url=address)) == expected
