"""Which device a script measures on, for its command line and for people."""

from __future__ import annotations

import argparse
import os
import platform

from searchlab.errors import InputError


def choose_device(parser: argparse.ArgumentParser, name: str) -> str:
    """Return the device of torch that --device names; ends the script where there is none."""
    try:
        from searchlab.models import devices
    except ImportError as error:
        parser.error(f"this benchmark must have torch, got {error}; pip install 'searchlab[clip]'")
    try:
        return str(devices.choose_device(name))
    except InputError as error:
        parser.error(str(error))


def device_name(device: str) -> str:
    """Name a device for people."""
    import torch

    kind = torch.device(device).type
    if kind in ("cuda", "xpu"):
        return str(getattr(torch, kind).get_device_name(device))
    return f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores ({kind})"
