"""The client reads what the server's schema describes, and loads little to do so."""

import subprocess
import sys

import pytest

from searchlab.api.wire import schema
from searchlab.client import Photo
from searchlab.photos.colors import FAMILY_NAMES
from searchlab.photos.photo import PHOTO_FIELDS

HEAVY = {"PIL", "alembic", "granian", "litestar", "numba", "numpy", "onnxruntime", "sqlalchemy"}


@pytest.mark.slow
def test_importing_the_client_loads_nothing_of_the_server_and_nothing_heavy():
    code = (
        "import sys, searchlab.client\n"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))\n"
        "print(*sorted(name for name in sys.modules if name.startswith('searchlab.api.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, of_the_api = done.stdout.splitlines()
    assert HEAVY & set(names.split()) == set()
    assert of_the_api.split() == ["searchlab.api.wire", "searchlab.api.wire.schema"]


def test_a_photo_of_the_client_has_the_fields_of_the_schema_and_of_the_specification():
    assert Photo.__struct_fields__ == schema.Photo.__struct_fields__ == PHOTO_FIELDS


def test_the_color_names_of_the_schema_are_the_families():
    assert schema.COLOR_NAMES == FAMILY_NAMES
