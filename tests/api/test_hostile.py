"""Hostile texts and hostile HTTP, everywhere: a clean refusal or the right answer, nothing else."""

import gzip
import http.client
import json
import re
from urllib.parse import quote

import httpx
import pytest

from tests.support.independent_client import UUID, check_failure, check_refused, check_success
from tests.support.spec_server import corpus

pytestmark = pytest.mark.slow

TEXTS = {
    "NUL": b"a\0b",
    "a lone surrogate": b"\xed\xa0\x80",
    "a pair of surrogates": b"\xed\xa0\xbd\xed\xb8\x80",
    "overlong dots and slash": b"\xc0\xae\xc0\xae\xc0\xaf",
    "overlong NUL": b"\xc0\x80",
    "beyond Unicode": b"\xf4\x90\x80\x80",
    "a cut character": b"\xe2\x82",
    "Latin-1": b"caf\xe9",
    "UTF-16": b"\xff\xfea\0",
    "right to left": "\u202egpj.exe\u202c \u2066שלום\u2069",
    "a combining bomb": "Z" + "\u0315\u031a\u0362\u0489" * 60,
    "invisible": "\u200b\u200d\ufeff\u00ad",
    "noncharacters": "\ufffe\uffff\U0010ffff",
    "emoji": "👩\u200d👩\u200d👧\u200d👦🏴\u200d☠️",
    "homoglyphs": "саstlе ｃｏｌｌｅｃｔｉｏｎ",
    "digits of another script": "١٢",
    "control characters": "\x01\x07\x08\x1b[31m\x7f\x85",
    "line ends": "x\r\nx-injected: 1\r\n\r\n<html>",
    "SQL": "' OR '1'='1'; DROP TABLE collections; --",
    "more SQL": '" UNION SELECT secret FROM api_keys; SELECT pg_sleep(9); /*',
    "wildcards": "%_*?[a-z]\\%",
    "markup": "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&lt;",
    "XML": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
    "a path upwards": "../../../../etc/passwd",
    "the same, encoded once more": "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "the same with backslashes": "..\\..\\windows\\win.ini",
    "a path": "//etc//passwd",
    "dots": "..",
    "an address": "http://169.254.169.254/latest/meta-data/",
    "a template": "{{7*7}}${7*7}<%= 7*7 %>#{7*7}{0.__class__}${jndi:ldap://x}",
    "a format": "%s%n%x%(name)s{}{0}%d",
    "a shell": "$(id)`id`;id|id&&id\n",
    "a pickle": b"cos\nsystem\n(S'id'\ntR.",
    "an object": '{"$ne": null, "__proto__": {"a": 1}}',
    "an integer of 400 digits": "9" * 400,
    "less than that": "-" + "9" * 400,
    "not a number": "nan",
    "infinity": "-inf",
    "beyond a float": "1e400",
    "hardly anything": "1e-400",
    "underscores": "1_0",
    "hexadecimal": "0x10",
    "null": "null",
    "nothing": "",
    "a space": " ",
    "8,000 characters": "x" * 8_000,
    "8,000 bytes of astral characters": "𝕏" * 2_000,
}
ENCODED = {
    name: quote(text if isinstance(text, bytes) else text.encode(), safe="")
    for name, text in TEXTS.items()
}
VALUES = {
    "an integer of 400 digits": b"1" + b"0" * 400,
    "a float without end": b"1." + b"3" * 5_000,
    "beyond a float": b"-1e400",
    "NaN": b"NaN",
    "true": b"true",
    "a list": b'["a"]',
    "an object": b'{"a": "b"}',
    "a deep list": b"[" * 500 + b"]" * 500,
    "a lone surrogate": rb'"\ud800"',
    "surrogates the wrong way round": rb'"\udc00\ud800"',
    "NUL": rb'"a\u0000b"',
    "a bare NUL": b'"a\0b"',
    "a bare line end": b'"a\nb"',
    "CESU": b'"\xed\xa0\xbd\xed\xb8\x80"',
    "overlong": b'"\xc0\xaf"',
    "an unknown escape": rb'"\x41\'"',
    "100 kB": b'"' + b"x" * 100_000 + b'"',
    "60 kB of combining characters": b'"a' + "\u0301".encode() * 30_000 + b'"',
}
BODIES = {
    "the same key twice": b'{"name": "a", "name": "b"}',
    "the same key, once wrong": b'{"name": 1, "name": "b"}',
    "deep lists": b'{"name": "a", "x": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "deep objects": b'{"a":' * 9_000 + b"1" + b"}" * 9_000,
    "no end": b'{"name": "a"',
    "more than one": b'{"name": "a"}{"name": "b"}',
    "a comment": b'{"name": "a"} // b',
    "a comma too many": b'{"name": "a",}',
    "single quotes": b"{'name': 'a'}",
    "a byte order mark": b'\xef\xbb\xbf{"name": "a"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "UTF-32": '{"name": "a"}'.encode("utf-32"),
    "a form": b"name=a",
    "nothing": b"",
    "spaces": b" " * 1_000,
    "NUL": b"\0" * 100,
    "a list of it": b'[{"name": "a"}]',
    "a text of it": rb'"{\"name\": \"a\"}"',
    "prototypes": b'{"name": "a", "__proto__": {"is_public": true}, "constructor": 1, "id": 1}',
    "9,000 other keys": b"{" + b",".join(b'"%d": 0' % n for n in range(6_000)) + b"}",
}
# Those that the service reads are sent alone; of the others one cannot hide what another does.
HEADERS = (
    "accept", "accept-encoding", "authorization", "cookie", "if-none-match", "if-range", "origin",
    "range", "referer", "user-agent", "x-forwarded-for", "x-request-id",
    "accept-charset accept-language from", "if-match if-modified-since te",
    "traceparent via forwarded", "x-forwarded-host x-forwarded-proto",
    "x-http-method-override x-original-url x-rewrite-url",
)  # fmt: skip


@pytest.fixture(scope="module")
def known():
    return corpus()


@pytest.fixture(scope="module")
def api(known):
    return known.new_account("hostile", plan="scale")


@pytest.fixture(scope="module")
def photo_id(known):
    return known.plain(0)["photo_id"]


def ask(api, method, target, body=None, **headers):
    """Send a request whose target is taken to the letter."""
    wire = http.client.HTTPConnection(httpx.URL(api.base_url).netloc.decode(), timeout=30)
    try:
        own_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        wire.request(
            method, target, body, {"x-api-key": api.key, "connection": "close"} | own_headers
        )
        answer = wire.getresponse()
        return httpx.Response(answer.status, headers=answer.getheaders(), content=answer.read())
    finally:
        wire.close()


def unclean(answer):
    """Say what is wrong with an answer, if anything is."""
    try:
        if answer.status_code == 200:
            check_success(answer)
        elif answer.headers["content-type"].startswith("text/html"):
            assert 400 <= answer.status_code < 500
            assert f'<p class="eyebrow">{answer.status_code}' in answer.text
        elif answer.status_code != 304:
            check_refused(answer)
        assert UUID.fullmatch(answer.headers["x-request-id"])
        assert "x-injected" not in answer.headers
        assert "Traceback" not in answer.text
        assert 'File "' not in answer.text
    except AssertionError as error:
        return f"{answer.status_code} {answer.text[:200]!r} {str(error)[:200]}"
    return ""


def found_unclean(answers):
    return {name: complaint for name, answer in answers if (complaint := unclean(answer))}


# -- texts -------------------------------------------------------------------------------------

SEARCH = "/api/v1/search/photos"
FILTERS = ("color_name", "color_hex", "color_tolerance", "orientation", "source", "license_type",
           "per_page", "limit", "score_threshold", "cursor", "fields", "after_date", "sort_by",
           "photographer", "q")  # fmt: skip
QUERIES = [
    *(("GET", f"{SEARCH}?color_tolerance=20&q=a&", name) for name in FILTERS[:-1]),
    ("GET", f"{SEARCH}?", "q"),
    *(("POST", f"{SEARCH}?photo_id={{photo_id}}&", name) for name in (*FILTERS, "text_alpha")),
    ("POST", f"{SEARCH}?", "photo_id"),
    *(("GET", "/api/v1/photos/{photo_id}/similar?", n) for n in ("per_page", "limit", "cursor")),
    ("GET", "/api/v1/photos/{photo_id}?", "fields"),
    ("GET", "/api/v1/facets/photographers/suggest?", "q"),
    ("GET", "/api/v1/facets/photographers/suggest?q=a&", "limit"),
    ("GET", "/api/v1/usage/monthly?", "months"),
    ("GET", "/api/v1/usage/daily?", "days"),
    ("GET", "/api/v1/usage?", "unknown"),
]


@pytest.mark.parametrize(
    ("method", "target", "name"),
    [pytest.param(*query, id=f"{query[0]}-{query[1][8:22]}-{query[2]}") for query in QUERIES],
)
def test_any_text_as_a_parameter(api, photo_id, method, target, name):
    target = target.format(photo_id=photo_id) + name
    answers = ((text, ask(api, method, f"{target}={value}")) for text, value in ENCODED.items())
    assert found_unclean(answers) == {}


@pytest.mark.parametrize(
    "query",
    ["{0}=1&q=a", "q=a&per_page={0}&per_page=1", "q[]={0}", "q={0}&q[a]=b", "fields[]={0}&q=a"],
)
def test_any_text_as_the_name_of_a_parameter_or_a_list_of_it(api, query):
    values = ENCODED.items()
    answers = ((text, ask(api, "GET", f"{SEARCH}?{query.format(v)}")) for text, v in values)
    assert found_unclean(answers) == {}


PATHS = [
    "GET /api/v1/photos/{0}",
    "GET /api/v1/photos/{0}/similar",
    "GET /api/v1/facets/photographers/{0}",
    "GET /api/v1/facets/{0}",
    "GET /api/v1/collections/{0}",
    "DELETE /api/v1/collections/{0}",
    "DELETE /api/v1/collections/1/photos/{0}",
    "DELETE /api/v1/collections/{0}/photos/{photo_id}",
    "POST /api/v1/collections/{0}/photos",
    "GET /api/v1/{0}",
    "GET /api/{0}/usage",
    "PUT /api/v1/usage/{0}",
]


@pytest.mark.parametrize("place", PATHS)
def test_any_text_in_a_path(api, photo_id, place):
    method, path = place.split(" ")
    body = json.dumps({"photo_id": photo_id}) if method == "POST" else None
    kind = {"content_type": "application/json"} if body else {}
    answers = (
        (text, ask(api, method, path.format(value, photo_id=photo_id), body, **kind))
        for text, value in ENCODED.items()
    )
    assert found_unclean(answers) == {}


@pytest.mark.parametrize("path", ["/media/{0}/full", "/media/{photo_id}/{0}", "/media/{0}", "/{0}",
                                  "/media/{photo_id}/full?v={0}", "/docs/{0}"])  # fmt: skip
def test_any_text_in_a_path_of_the_service(known, api, photo_id, path):
    answers = {
        text: ask(api, "GET", path.format(value, photo_id=photo_id))
        for text, value in ENCODED.items()
    }
    refused = {text: answer for text, answer in answers.items() if answer.status_code != 200}
    if path == "/docs/{0}":  # the page without the slash, wherever a proxy has put it
        assert refused.pop("nothing").headers["location"] == "../docs"
        del answers["nothing"]
    assert found_unclean(refused.items()) == {}
    for text in answers.keys() - refused.keys():
        answer = answers[text]
        assert answer.headers["content-type"].split(";")[0] in {"image/png", "text/html"}, text
        assert b"root:" not in answer.content
        assert "?v=" in path or TEXTS[text] == "", text


@pytest.mark.parametrize("names", HEADERS)
def test_any_text_as_a_header(api, names):
    # What no header can hold is another test's.
    texts = {
        text: re.sub(rb"[\0-\x1f\x7f]", b"", raw if isinstance(raw, bytes) else raw.encode())
        for text, raw in TEXTS.items()
    }
    answers = (
        (
            text,
            ask(api, "GET", "/api/v1/facets/orientations", **dict.fromkeys(names.split(), value)),
        )
        for text, value in texts.items()
    )
    assert found_unclean(answers) == {}


@pytest.mark.parametrize("name", ["idempotency_key", "content_type", "content_encoding"])
def test_any_text_as_a_header_of_a_body(api, name):
    content_type = {"content_type": "application/json"}
    texts = [(t, re.sub(rb"[\0-\x1f\x7f]", b"", v if isinstance(v, bytes) else v.encode()))
             for t, v in TEXTS.items()]  # fmt: skip
    answers = (
        (text, ask(api, "POST", path, b'{"name": "x"}', **content_type | {name: value}))
        for text, value in texts
        for path in ("/api/v1/collections", SEARCH)
    )
    assert found_unclean(answers) == {}


@pytest.mark.parametrize(
    ("kind", "coding", "got"),
    [
        ("application/json", "gzip", "'application/json' in 'gzip'"),
        ("text/plain", "identity", "'text/plain'"),
        ("", "", "''"),
    ],
)
def test_json_of_another_kind_or_compressed_is_told_what_came(api, kind, coding, got):
    body = gzip.compress(b'{"name": "x"}')
    path = "/api/v1/collections"
    answer = ask(api, "POST", path, body, content_type=kind, content_encoding=coding)
    message = check_failure(answer, 415, "UNSUPPORTED_MEDIA_TYPE")["message"]
    assert message == f"the body must be application/json, got {got}"


@pytest.mark.parametrize("kind", ["Application/JSON", "application/json; charset=utf-8"])
def test_json_is_json_in_any_case_and_with_parameters(api, kind):
    check_success(send(api, b'{"name": "x"}', kind=kind))


def test_any_text_as_a_key_opens_nothing_and_is_told_the_same(api):
    messages = set()
    for raw in TEXTS.values():
        key = re.sub(rb"[\0-\x1f\x7f]", b"", raw if isinstance(raw, bytes) else raw.encode())
        answer = ask(api, "GET", "/api/v1/usage", x_api_key=key)
        assert unclean(answer) == ""
        assert answer.status_code == 401
        messages.add(answer.json()["error"]["message"])
    assert len(messages) == 1


# -- bodies ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mine(api):
    return check_success(api.post("/collections", {"name": "mine"}))["data"]["id"]


@pytest.mark.parametrize("name", ["name", "description", "is_public"])
def test_any_value_in_a_new_collection(api, name):
    texts = {t: json.dumps(v).encode() for t, v in TEXTS.items() if isinstance(v, str)}
    answers = []
    for text, value in (texts | VALUES).items():
        rest = b"" if name == "name" else b'"name": "a", '
        answers.append((text, send(api, b'{%s"%s": %s}' % (rest, name.encode(), value))))
        answer = answers[-1][1]
        if answer.status_code == 200:
            assert answer.json()["data"][name] == json.loads(value)
    assert found_unclean(answers) == {}
    listed = api.data("/collections")
    assert len(listed) > 1


def send(api, body, path="/api/v1/collections", kind="application/json"):
    return ask(api, "POST", path, body, content_type=kind)


@pytest.mark.parametrize(
    "name", ["photo_id", "photo_thumbnail_url", "photo_source", "photo_photographer"]
)
def test_any_value_in_a_new_entry(api, mine, photo_id, name):
    texts = {t: json.dumps(v).encode() for t, v in TEXTS.items() if isinstance(v, str)}
    path = f"/api/v1/collections/{mine}/photos"
    rest = b"" if name == "photo_id" else b'"photo_id": "%s", ' % photo_id.encode()
    answers = []
    for text, value in (texts | VALUES).items():
        answer = send(api, b'{%s"%s": %s}' % (rest, name.encode(), value), path)
        answers.append((text, answer))
        if answer.status_code == 200:
            assert answer.json()["data"][name] == json.loads(value)
            check_success(api.delete(f"/collections/{mine}/photos/{photo_id}"))
    assert found_unclean(answers) == {}


def test_any_body_of_a_new_collection(api):
    answers = [(name, send(api, body)) for name, body in BODIES.items()]
    assert found_unclean(answers) == {}
    accepted = {name for name, answer in answers if answer.status_code == 200}
    assert accepted <= {"the same key twice", "the same key, once wrong", "prototypes"}
    (made,) = [answer.json()["data"] for name, answer in answers if name == "prototypes"]
    assert made["is_public"] is False


FILES = ("NUL", "a lone surrogate", "Latin-1", "line ends", "markup", "right to left", "nothing",
         "a path upwards", "the same with backslashes", "8,000 characters")  # fmt: skip


@pytest.mark.parametrize(
    "head", [b'name="image"; filename="%s"', b'name="%s"', b"name=\"image\"; filename*=UTF-8''%s"]
)
def test_any_text_as_the_name_of_a_file_or_a_part(known, api, head):
    picture = (known.photos / "plain-00.png").read_bytes()
    answers = []
    for text in FILES:
        raw = TEXTS[text]
        name = (raw if isinstance(raw, bytes) else raw.encode()).replace(b'"', b"%22")
        body = b"--x\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n--x--\r\n"
        body %= (head % name, picture)
        answers.append((text, send(api, body, SEARCH, "multipart/form-data; boundary=x")))
    assert found_unclean(answers) == {}
