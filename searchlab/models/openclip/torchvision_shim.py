"""Import torchvision beside a torch that it was not built for.

Beside a CPU build of torch, pip may bring the CUDA build of torchvision, whose compiled part cannot
load there. torchvision's Python part, all that is needed here, then stops at two
operators that were never declared. Declaring their schemas is enough; nothing here calls them.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


@cache
def import_torchvision() -> Any:
    """Import torchvision, declaring its missing operators only if they are missing.

    Returns:
        The module. The declarations live as long as the process does.

    Raises:
        ImportError: torch or torchvision is not installed.
    """
    import torch

    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        declarations: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
        for schema in _SCHEMAS:
            if not hasattr(torch.ops.torchvision, schema.partition("(")[0]):
                declarations.define(schema)
        import torchvision

        # The operators vanish with the object that declared them.
        torchvision.searchlab_declarations = declarations
    return torchvision
