"""Publishing: makes a chosen configuration the current one, in a short-lived process.

Building an index loads a model, which the long-lived parent of the workers must not do.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from searchlab.config import Config
from searchlab.errors import SearchlabError
from searchlab.library.library import Library, open_library
from searchlab.library.models import load_model_of


def put_in_force(library: Library, file: Path) -> None:
    """Publish the configuration in a file, in another process, unless it is the current one.

    Raises:
        DataError: The file holds no configuration.
        SearchlabError: It cannot be published, for example because the weights differ; says why.
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
    """Publish a configuration unless it is the current one; returns the name of its snapshot.

    Raises:
        MismatchError: It was measured with other weights than those that are installed.
        NotFoundError: Nothing was indexed yet, or there is no such model.
    """
    config = config.with_model_id(load_model_of(library.folder, config).model_id)
    snapshot = library.snapshot()
    if snapshot is not None and snapshot.config.config_id == config.config_id:
        return snapshot.snapshot_id
    return library.publish(config)


def main() -> None:
    """Run as `python -m searchlab.api.ops.publishing LIBRARY FILE`; prints what went wrong."""
    folder, file = sys.argv[1:]
    try:
        publish(open_library(folder), Config.load(file))
    except SearchlabError as error:
        sys.stdout.write(f"{error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
