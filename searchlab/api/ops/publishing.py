"""Publishing: a chosen configuration put in force, in a process that ends with the work.

Building loads a model; the process that keeps the workers alive lives long and loads none.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from searchlab.config import Config
from searchlab.errors import SearchlabError
from searchlab.library.library import Library, open_library
from searchlab.models import load_model


def put_in_force(library: Library, file: Path) -> None:
    """Put a configuration in force unless it is, in another process.

    Raises:
        DataError: The file holds none.
        SearchlabError: It cannot be put in force, such as one of other weights; says why.
    """
    config = Config.load(file)
    snapshot = library.snapshot()
    if snapshot is None or snapshot.config.config_id == config.config_id:
        return
    command = [sys.executable, "-P", "-m", "searchlab.api.ops.publishing"]
    process = subprocess.run(
        [*command, str(library.folder), str(file)], stdout=subprocess.PIPE, text=True, check=False
    )
    if process.returncode:
        msg = (
            process.stdout.strip()
            or f"{file} must be put in force, got an error; it is shown above"
        )
        raise SearchlabError(msg)


def publish(library: Library, config: Config) -> str:
    """Put a configuration in force unless it is; returns the name of the snapshot in force.

    Raises:
        MismatchError: It was measured with other weights than those that are installed.
        NotFoundError: Nothing was indexed yet, or there is no such model.
    """
    config = config.with_model_id(load_model(config.model).model_id)
    snapshot = library.snapshot()
    if snapshot is not None and snapshot.config.config_id == config.config_id:
        return snapshot.snapshot_id
    return library.publish(config)


def main() -> None:
    """Run as `python -m searchlab.api.ops.publishing LIBRARY FILE`; says what is wrong."""
    folder, file = sys.argv[1:]
    try:
        publish(open_library(folder), Config.load(file))
    except SearchlabError as error:
        sys.stdout.write(f"{error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
