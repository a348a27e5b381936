"""What tests of the cluster share: an S3 server on this machine, and stores of every kind."""

import gc
import importlib.machinery
import importlib.util
import logging
import sys
import uuid
import warnings

import pytest

from searchlab.cluster.storage import Store
from tests.support import library_world

photos, put, library, index = (
    library_world.photos,
    library_world.put,
    library_world.library,
    library_world.index,
)


@pytest.fixture(scope="module", autouse=True)
def nothing_left_running():
    """Drop what Ray says of processes that tests have killed, before another file hears of it."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def s3_server():
    server_of = pytest.importorskip(
        "moto.server", reason="moto, flask and flask-cors are not installed"
    )
    pytest.importorskip("s3fs", reason="s3fs is not installed: pip install 'searchlab[cluster]'")
    server = server_of.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def s3_options(s3_server, monkeypatch):
    import boto3

    # What the command line finds, which is given no options.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server)
    keys = {"key": "any", "secret": "any", "endpoint_url": s3_server}
    client = boto3.client(
        "s3",
        endpoint_url=s3_server,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    client.create_bucket(Bucket="photos")
    client.close()
    return keys


@pytest.fixture(params=["folder", "file", "memory", "s3"])
def new_store(request, tmp_path):
    """Opens the same address of one kind again and again, as other machines do."""
    name = uuid.uuid4().hex
    if request.param == "s3":
        options = request.getfixturevalue("s3_options")
        return lambda: Store(f"s3://photos/{name}", **options)
    pytest.importorskip(
        "fsspec", reason="fsspec is not installed: pip install 'searchlab[cluster]'"
    )
    address = {
        "folder": str(tmp_path / name),
        "file": f"file://{tmp_path / name}",
        "memory": f"memory://{name}",
    }[request.param]
    return lambda: Store(address)


@pytest.fixture
def store(new_store):
    return new_store()


@pytest.fixture
def filled(library, put, index):
    """The library with 24 pictures."""
    for number in range(24):
        put(f"{number:02d}.png", number)
    index()
    return library


@pytest.fixture
def ray_named_only(monkeypatch):
    """Let `ray:local` be named where Ray is not installed, by a test that never starts it."""
    if importlib.util.find_spec("ray") is None:
        spec = importlib.machinery.ModuleSpec("ray", loader=None)
        monkeypatch.setitem(sys.modules, "ray", importlib.util.module_from_spec(spec))


@pytest.fixture(scope="module")
def ray():
    """Ray itself, which is shut down after a file of tests."""
    module = pytest.importorskip("ray", reason="ray: pip install 'searchlab[cluster]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield module
        module.shutdown()


@pytest.fixture(scope="module")
def two_workers(ray):
    """A Ray of its own with two processors, whichever others there are on this machine."""
    ray.shutdown()
    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        object_store_memory=200 * 2**20,
    )
    yield ray
    ray.shutdown()
