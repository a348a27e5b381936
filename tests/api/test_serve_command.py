"""The command that runs the server: what it says, counts and refuses, and how it ends."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image
from prometheus_client.parser import text_string_to_metric_families

from searchlab.api.ops import server as server_module
from searchlab.api.settings import Settings
from searchlab.cli import searchlab
from searchlab.config import Config
from searchlab.library.library import open_library
from tests.support.databases import postgres_server, psql
from tests.support.served import create_key, run_command, serving
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    photos = folder / "photos"
    photos.mkdir()
    for name in ("red", "green", "blue"):
        Image.new("RGB", (8, 6), name).save(photos / f"{name}.png")
    done = run_command("index", "--data", folder / "library", "--model", "palette", photos)
    assert done.returncode == 0, done.stderr
    return folder / "library"


@pytest.fixture(scope="module")
def server(library):
    create_key(library, "guests")
    with serving(
        library, "--workers", 2, "--log-format", "json", "--visitors", "guests"
    ) as running:
        yield running


def get(server, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def metrics_of(server):
    status, _, body = get(server, "/metrics")
    assert status == 200
    families = text_string_to_metric_families(body.decode())
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_health_says_what_is_served_and_needs_no_key(server, path):
    status, headers, body = get(server, path)
    about = json.loads(body)
    assert (status, headers["cache-control"]) == (200, "no-store")
    assert about["snapshot_id"] == server.snapshot
    assert about["config_id"] in server.log
    assert (about["status"], about["ready"], about["n_photos"]) == ("ok", True, 3)


def test_metrics_need_no_key_and_count_what_all_workers_answered(server):
    key = ("searchlab_requests_total", "/health", "2xx", "GET")
    before = metrics_of(server).get(key, 0)
    for _ in range(20):
        get(server, "/health")
    metrics = metrics_of(server)
    assert metrics[key] == before + 20
    assert metrics["searchlab_workers",] == 2


def test_a_key_made_while_it_runs_works_at_once(server):
    secret = create_key(server.data)
    status, headers, _ = get(server, "/api/v1/search/photos?q=red", **{"x-api-key": secret})
    assert status == 200
    assert headers["RateLimit-Policy"] == '"burst";q=400;w=2, "month";q=5000;w=2592000'


def test_the_log_holds_the_request_and_neither_key_nor_query(server):
    secret = create_key(server.data)
    _, headers, _ = get(server, f"/api/v1/facets/colors?q={secret}", **{"x-api-key": secret})
    wait_until(lambda: headers["X-Request-Id"] in server.log)
    (line,) = [line for line in server.log.splitlines() if headers["X-Request-Id"] in line]
    about = json.loads(line)
    assert (about["path"], about["status"]) == ("/api/v1/facets/colors", 200)
    assert about["plan"] == "free"
    assert secret not in server.log


def test_visitors_search_in_the_browser_on_the_quota_of_an_account(server):
    status, _, page = get(server, "/?q=red", Accept="text/html")
    assert (status, b"Searching as a guest" in page) == (200, True)
    assert page.count(b'<li class="photo') == 3
    secret = create_key(server.data, "guests", "reading")

    def used():
        _, _, body = get(server, "/api/v1/usage", **{"x-api-key": secret})
        return json.loads(body)["data"]["requests"]["used"]

    wait_until(lambda: used() >= 1)
    assert get(server, "/account", Accept="text/html")[0] == 303


def test_visitors_of_an_account_that_is_none_are_refused_before_it_serves(library):
    done = run_command("serve", "--data", library, "--port", 0, "--visitors", "nobody")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "visitors must be an account, got 'nobody'" in done.stderr


def test_counts_survive_the_worker_that_counted(server):
    key = ("searchlab_requests_total", "/health", "2xx", "GET")
    for _ in range(10):
        get(server, "/health")
    before = metrics_of(server)[key]
    for pid in server.workers:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: server.log.count("died; starting another") >= 2)
    wait_until(lambda: get(server, "/metrics")[0] == 200)  # until then the stand-in answers
    # Beside the first worker as well, for a moment.
    wait_until(
        lambda: server.log.count("no worker answers") == server.log.count("a worker answers again")
    )
    wait_until(lambda: metrics_of(server)["searchlab_workers",] == 2)
    assert metrics_of(server)[key] == before


def test_a_second_server_on_the_same_port_is_refused_in_one_line(server):
    done = CliRunner().invoke(
        searchlab, ["serve", "--data", str(server.data), "--port", str(server.port)]
    )
    assert done.exit_code == 2
    assert done.stderr == (
        f"searchlab: --port must be free, got {server.port}, one in use; "
        "stop what uses it or choose another with --port\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "0"], "--workers must be from 1 to 256, got 0"),
        (["--port", "65536"], "--port must be from 0 to 65535, got 65536"),
        (["--host", "203.0.113.7"], "--host must be a name or address of this machine"),
        (["--base-url", "ftp://x"], "--base-url must be like https://"),
        (["--mcp-url", "photos.test"], "--mcp-url must be like https://"),
        (["--config", "no-such.json"], "no-such.json must hold a config as JSON"),
        (["--database-url", "mysql://u:pass@h/d"], ""),
        (["--rate", "0"], "--rate must be from"),
        (["--decode-timeout", "0"], "--decode-timeout must be from"),
    ],
)
def test_what_cannot_be_served_ends_with_2_and_one_line(library, options, message):
    done = CliRunner().invoke(searchlab, ["serve", "--data", str(library), "--port", "0", *options])
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    refusals = [line for line in done.stderr.splitlines() if "other users" not in line]
    assert len(refusals) == 1
    assert "pass@" not in done.stderr


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (
            "--data D --host 0.0.0.0 --port 81 --workers 3 --config c.json --base-url https://a.b "
            "--mcp-url https://m.b --cors-origin https://x.y --cors-origin * "
            "--database-url postgresql://h/d --rate 5 --burst 7 --max-in-flight 9 "
            "--max-upload-mib 2 --decode-slots 4 --decode-timeout 1.5 "
            "--log-format json --no-access-log",
            {},
        ),
        (
            "",
            {
                "SEARCHLAB_DATA": "D",
                "SEARCHLAB_HOST": "0.0.0.0",
                "SEARCHLAB_PORT": "81",
                "SEARCHLAB_WORKERS": "3",
                "SEARCHLAB_CONFIG": "c.json",
                "SEARCHLAB_BASE_URL": "https://a.b",
                "SEARCHLAB_MCP_URL": "https://m.b",
                "SEARCHLAB_CORS_ORIGINS": "https://x.y *",
                "SEARCHLAB_DATABASE_URL": "postgresql://h/d",
                "SEARCHLAB_RATE": "5",
                "SEARCHLAB_BURST": "7",
                "SEARCHLAB_MAX_IN_FLIGHT": "9",
                "SEARCHLAB_MAX_UPLOAD_MIB": "2",
                "SEARCHLAB_DECODE_SLOTS": "4",
                "SEARCHLAB_DECODE_TIMEOUT": "1.5",
                "SEARCHLAB_LOG_FORMAT": "json",
                "SEARCHLAB_ACCESS_LOG": "false",
            },
        ),
    ],
)
def test_options_and_variables_say_the_same(monkeypatch, words, environment):
    settings = []
    monkeypatch.setattr(server_module, "serve", settings.append)
    done = CliRunner().invoke(searchlab, ["serve", *words.split()], env=environment)
    assert (done.exit_code, done.output) == (0, "")
    expected = Settings(
        data=Path("D"),
        config=Path("c.json"),
        database_url="postgresql://h/d",
        host="0.0.0.0",
        port=81,
        workers=3,
        base_url="https://a.b",
        mcp_url="https://m.b",
        cors_origins=("https://x.y", "*"),
        rate_per_second=5,
        rate_burst=7,
        max_in_flight=9,
        max_upload_bytes=2 * 2**20,
        decode_slots=4,
        decode_timeout_s=1.5,
        log_format="json",
        access_log=False,
    )
    assert settings == [expected]


def test_a_folder_that_is_no_library_ends_with_2_and_one_line(tmp_path):
    done = CliRunner().invoke(searchlab, ["serve", "--data", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert "a library must hold library.json" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_library_whose_snapshot_is_damaged_ends_with_2_and_one_line(library, tmp_path):
    copy = tmp_path / "library"
    shutil.copytree(library, copy)
    (vectors,) = copy.glob("snapshots/*/vectors.npy")
    vectors.write_bytes(b"damaged")
    done = CliRunner().invoke(searchlab, ["serve", "--data", str(copy), "--port", "0"])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "must be as it was written" in done.stderr


def test_a_configuration_is_served_and_an_interrupt_ends_it_with_0_and_leaves_nothing(
    library, tmp_path
):
    copy = tmp_path / "library"
    shutil.copytree(library, copy)
    before = open_library(copy).snapshot()
    chosen = Config(model="palette", depth=123)
    file = tmp_path / "chosen.json"
    file.write_text(json.dumps({"config": chosen.to_dict()}), encoding="utf-8")
    with serving(copy, "--config", file, "--no-access-log") as running:
        about = json.loads(get(running, "/health")[2])
        workers = running.workers
        assert running.stop(signal.SIGINT) == 0
        assert len(running.log.splitlines()) == 1
    expected = chosen.with_model_id(before.config.model_id).config_id
    assert about["config_id"] == expected != before.config.config_id
    assert [pid for pid in workers if Path(f"/proc/{pid}").exists()] == []


def test_a_configuration_that_cannot_be_served_ends_with_2_and_one_line(library, tmp_path):
    chosen = tmp_path / "chosen.json"
    other = Config(model="palette", model_id="palette-ffffffffffff").to_dict()
    chosen.write_text(json.dumps({"config": other}), encoding="utf-8")
    before = (library / "CURRENT").read_text()
    words = ["serve", "--data", str(library), "--port", "0", "--config", str(chosen)]
    done = CliRunner().invoke(searchlab, words)
    assert done.exit_code == 2
    assert done.stderr.startswith("searchlab: ")
    assert "palette-ffffffffffff" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (library / "CURRENT").read_text() == before


HEAVY = ("torch", "ranx", "matplotlib", "sklearn", "numba", "pandas", "scipy")


def test_a_worker_loads_nothing_that_answers_do_not_need():
    code = (
        "import json, sys\n"
        "import searchlab.api.ops.worker, searchlab.api.app\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(json.loads(done.stdout)).isdisjoint(HEAVY)


@pytest.mark.parametrize(
    "option", [("--shards", "3"), ("--replicas", "2"), ("--shard-timeout", "9")]
)
def test_options_of_shards_go_with_a_cluster(library, option):
    done = CliRunner().invoke(searchlab, ["serve", "--data", str(library), "--port", "0", *option])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        f"searchlab: {option[0]} goes with --on, got none; name who searches, such as --on "
        "ray:auto\n"
    )


def test_no_list_of_processes_shows_the_password_of_a_database(library, tmp_path):
    url = postgres_server().get_uri("shared_by_nobody").replace("postgres:@", "postgres:hunter2@")
    psql("CREATE DATABASE shared_by_nobody")
    file = tmp_path / "database-url"
    file.write_text(url, encoding="utf-8")
    with serving(library, "--database-url-file", file) as server:
        listed = subprocess.run(["ps", "-eww", "-o", "pid,args"], capture_output=True, text=True)
        for pid in (server.process.pid, *server.workers):
            assert re.search(rf"^ *{pid} ", listed.stdout, re.M)
        assert "hunter2" not in listed.stdout
        assert "hunter2" not in server.log
