"""Licences of packages, as what they say of themselves is read, and those that are allowed.

Run as `python -m tests.support.licenses REPORT` over what `pip install --dry-run --report REPORT`
wrote; see `.ci/supply-chain licenses`. It prints each package whose licence is not allowed.
"""

import json
import re
import sys
from pathlib import Path

from packaging.utils import canonicalize_name

ALLOWED = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|HPND|Historical Permission|Zlib|"
    r"Unlicense|MPL|Mozilla|LGPL|Lesser General|0BSD|CC0|Public Domain",
    re.I,
)
# Beside any of those too, unless they are one to choose from.
REFUSED = re.compile(
    r"(?<!L)GPL|GNU (Affero )?General|SSPL|Server Side Public|Proprietary|Business Source|BUSL|"
    r"Commons Clause|Non-?Commercial|-NC\b|Elastic-2",
    re.I,
)
# Read by eye where the package says nothing that a program could read.
READ = {
    "blurhash-python": "MIT",
    "hnswlib": "Apache-2.0",
    "matplotlib": "PSF-based",
    "pystemmer": "MIT and BSD-3-Clause",
}
# What torch brings for graphics cards, under NVIDIA's terms; only the extras `clip` and `dev` ask
# for torch, and an index of builds for processors, as PyTorch's own, has it without.
OF_TORCH = re.compile(r"(nvidia|cuda)-[a-z0-9-]+")


def license_said(name, metadata):
    """Join what a package says of its licence.

    Args:
        name: Of the package.
        metadata: `License-Expression`, `Classifier` and `License`, as METADATA holds them.
    """
    name = canonicalize_name(name)
    if name in READ:
        return READ[name]
    said = [text for text in metadata.get("Classifier", []) if text.startswith("License ::")]
    # Where there is a whole text, its name stands at the head.
    return " ".join(
        [metadata.get("License-Expression") or "", *said, (metadata.get("License") or "")[:200]]
    ).strip()


def is_allowed(name, said):
    """Tell whether a package may be asked for."""
    if OF_TORCH.fullmatch(canonicalize_name(name)):
        return True
    refused = REFUSED.search(said) and not re.search(r"\bOR\b|Dual", said)
    return bool(ALLOWED.search(said)) and not refused


def main():
    report = json.loads(Path(sys.argv[1]).read_bytes())
    packages = [entry["metadata"] for entry in report["install"]]
    unknown = []
    for package in packages:
        metadata = {
            "License-Expression": package.get("license_expression"),
            "Classifier": package.get("classifier", []),
            "License": package.get("license"),
        }
        said = license_said(package["name"], metadata)
        if not is_allowed(package["name"], said):
            unknown.append(f"{package['name']} {package['version']}: {said!r}")
    sys.stdout.write("".join(f"{line}\n" for line in unknown))
    sys.stdout.write(f"licences of {len(packages)} packages: {len(unknown)} are not allowed\n")
    sys.exit(len(unknown) > 0 or not packages)


if __name__ == "__main__":
    main()
