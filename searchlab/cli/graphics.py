"""Small pictures in a terminal: which protocol it understands, and how a picture is sent to it.

References:
    kitty: https://sw.kovidgoyal.net/kitty/graphics-protocol/
    iTerm2: https://iterm2.com/documentation-images.html
    sixel: Digital Equipment Corporation, VT330/VT340 Programmer Reference Manual, volume 2, 1987.
"""

from __future__ import annotations

import base64
import io
import os
import re
import select
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL import Image
    from rich.console import Console

_ROWS: Final = 6
_COLUMNS: Final = 30
_CELL: Final = (10, 20)  # pixels, where the terminal does not say
_CHUNK: Final = 4_096
_SIXEL_COLORS: Final = 64
# Does it know kitty's protocol, and what else can it do? Every terminal answers the second
# question, and answers come in order, so that nothing need be waited for in vain.
_QUESTION: Final = b"\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[c"
_ATTRIBUTES: Final = re.compile(rb"\x1b\[\?([\d;]*)c")
_PATIENCE_S: Final = 1.0
_KITTY: Final = ("xterm-kitty", "xterm-ghostty")
_ITERM2: Final = ("iTerm.app", "iTerm2", "WezTerm", "mintty")
_SILENT: Final = ("", "dumb", "linux", "unknown")
_GARBLING: Final = ("Apple_Terminal",)  # prints what it does not understand


def choose_protocol(choice: str) -> str | None:
    """Say how pictures are sent to the terminal that this process writes to.

    Args:
        choice: `auto`, `never`, or a protocol that is taken on trust.

    Returns:
        `kitty`, `iterm2` or `sixel`; None for no pictures.
    """
    if choice != "auto":
        return None if choice == "never" else choice
    known = protocol_of(os.environ)
    return ask_terminal() if known == "ask" else known


def protocol_of(environment: Mapping[str, str]) -> str | None:
    """Tell a terminal's protocol by the variables that it sets.

    Returns:
        `kitty` or `iterm2`; `ask` where only the terminal itself knows; None where it shows no
        pictures, or would garble a question.
    """
    term = environment.get("TERM", "")
    program = environment.get("TERM_PROGRAM", "")
    if term in _SILENT or program in _GARBLING:
        return None
    # Within a multiplexer the variables are those of the terminal outside.
    if "TMUX" in environment or "STY" in environment or term.startswith(("screen", "tmux")):
        return "ask"
    if term in _KITTY or "KITTY_WINDOW_ID" in environment:
        return "kitty"
    if program in _ITERM2 or environment.get("LC_TERMINAL") in _ITERM2:
        return "iterm2"
    return "ask"


def ask_terminal() -> str | None:
    """Ask the terminal which protocol it knows; None if it does not answer.

    Nothing is asked from the background, where that would stop the process, nor while somebody is
    typing, whose letters would be taken for an answer. The terminal is left as it was.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None
    try:
        return _ask(terminal)
    except OSError:
        return None
    finally:
        os.close(terminal)


def _ask(terminal: int) -> str | None:
    import termios
    import tty

    if os.tcgetpgrp(terminal) != os.getpgrp():
        return None
    try:
        before = termios.tcgetattr(terminal)
    except termios.error:
        return None
    when = termios.TCSADRAIN
    try:
        tty.setcbreak(terminal, termios.TCSADRAIN)
        if select.select([terminal], [], [], 0)[0]:
            return None
        os.write(terminal, _QUESTION)
        answer = _read_answer(terminal)
        if answer is None:
            when = termios.TCSAFLUSH
        return None if answer is None else protocol_in(answer)
    finally:
        termios.tcsetattr(terminal, when, before)


def _read_answer(terminal: int) -> bytes | None:
    answer = b""
    until = time.monotonic() + _PATIENCE_S
    while (left := until - time.monotonic()) > 0 and select.select([terminal], [], [], left)[0]:
        answer += os.read(terminal, 1_024)
        if _ATTRIBUTES.search(answer):
            return answer
    return None


def protocol_in(answer: bytes) -> str | None:
    r"""Read a terminal's answer to both questions.

    >>> protocol_in(b"\x1b[?62;4;22c"), protocol_in(b"\x1b[?1;2c")
    ('sixel', None)
    """
    if b"\x1b_Gi=31;OK" in answer:
        return "kitty"
    attributes = _ATTRIBUTES.search(answer)
    # The first number is the terminal's class; 4 among the others is sixel.
    return "sixel" if attributes and b"4" in attributes[1].split(b";")[1:] else None


def draw(thumbnail: Path, protocol: str, out: Console, *, indent: int) -> None:
    """Show a small picture below the line that was printed last; none where its file is gone.

    Args:
        thumbnail: The picture's file.
        protocol: `kitty`, `iterm2` or `sixel`.
        out: The terminal.
        indent: Columns left of it.
    """
    from PIL import Image

    cell = _cell_size()
    try:
        with Image.open(thumbnail) as opened:
            image = opened.convert("RGB")
    except OSError:
        return
    image.thumbnail((cell[0] * _COLUMNS, cell[1] * _ROWS))
    rows = max(1, round(image.height / cell[1]))
    sequence = {"kitty": kitty, "iterm2": iterm2, "sixel": sixel}[protocol](image, rows)
    out.file.write(f"{' ' * indent}{sequence}\n")
    out.file.flush()


def _cell_size() -> tuple[int, int]:
    try:
        import fcntl
        import struct
        import termios

        size = fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8)
        rows, columns, width, height = struct.unpack("HHHH", size)
    except (ImportError, OSError):
        return _CELL
    return (width // columns, height // rows) if width and height and rows and columns else _CELL


def kitty(image: Image.Image, rows: int) -> str:
    """Write an RGB picture for kitty's protocol, `rows` lines high."""
    data = _png(image)
    chunks = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
    keys = [f"a=T,f=100,r={rows},q=2,"] + [""] * (len(chunks) - 1)  # q=2: do not answer
    return "".join(
        f"\x1b_G{key}m={int(place < len(chunks) - 1)};{chunk}\x1b\\"
        for place, (key, chunk) in enumerate(zip(keys, chunks, strict=True))
    )


def iterm2(image: Image.Image, rows: int) -> str:
    """Write an RGB picture for iTerm2's protocol, `rows` lines high."""
    return f"\x1b]1337;File=inline=1;height={rows};preserveAspectRatio=1:{_png(image)}\a"


def _png(image: Image.Image) -> str:
    encoded = io.BytesIO()
    image.save(encoded, "PNG", compress_level=1)
    return base64.b64encode(encoded.getvalue()).decode()


def sixel(image: Image.Image, rows: int = 0) -> str:
    """Write an RGB picture as sixels, six of its lines at a time, in a palette of 64 colours.

    Args:
        image: The picture, in the terminal's pixels.
        rows: Without effect: a sixel is as large as its pixels.
    """
    import numpy as np

    few = image.quantize(_SIXEL_COLORS)
    palette = np.reshape(few.getpalette() or [], (-1, 3))
    pixels = np.asarray(few)  # (height, width)
    height, width = pixels.shape
    parts = [f'\x1bP0;1q"1;1;{width};{height}']
    parts += [
        f"#{number};2;{red};{green};{blue}"
        for number, (red, green, blue) in enumerate(np.rint(palette / 2.55).astype(int).tolist())
    ]
    for top in range(0, height, 6):
        band = pixels[top : top + 6]
        bits = 1 << np.arange(len(band))[:, np.newaxis]
        layers = [
            f"#{number}{_shorten(((band == number) * bits).sum(axis=0) + 63)}"
            for number in np.unique(band).tolist()
        ]
        parts.append(f"{'$'.join(layers)}-")
    return "".join([*parts, "\x1b\\"])


def _shorten(codes: NDArray[np.int64]) -> str:
    """Write repeated letters as a count and the letter."""
    text = bytes(codes.tolist()).decode("ascii")
    return re.sub(r"(.)\1{3,}", lambda run: f"!{len(run[0])}{run[1]}", text)
