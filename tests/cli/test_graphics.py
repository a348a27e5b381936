"""Pictures in a terminal: known by its variables or its answer, sent as its protocol says."""

import base64
import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import numpy as np
import pytest
from PIL import Image

from searchlab.cli.graphics import iterm2, kitty, protocol_in, protocol_of, sixel
from tests.support import cli_world

pytestmark = pytest.mark.slow

search = cli_world.search
whole = cli_world.whole
SEQUENCES = {"kitty": "\x1b_G", "iterm2": "\x1b]1337;", "sixel": "\x1bP"}
ANSWERS = {
    "kitty": b"\x1b_Gi=31;OK\x1b\\\x1b[?62;c",
    "sixel": b"\x1b[?62;4;22c",
    None: b"\x1b[?1;2c",
}


@pytest.fixture
def picture():
    pixels = np.random.default_rng(0).integers(0, 2, (13, 21, 3), dtype=np.uint8) * 255
    return Image.fromarray(pixels)  # eight colours, which every palette has


# -- which protocol ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "protocol"),
    [
        ({}, None),
        ({"TERM": "dumb"}, None),
        ({"TERM": "linux"}, None),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "Apple_Terminal"}, None),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"TERM": "xterm-256color", "KITTY_WINDOW_ID": "1"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM": "xterm-256color", "LC_TERMINAL": "iTerm2"}, "iterm2"),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "WezTerm"}, "iterm2"),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, "ask"),
        ({"TERM": "xterm-kitty", "TMUX": "/tmp/tmux"}, "ask"),
        ({"TERM": "screen", "LC_TERMINAL": "iTerm2"}, "ask"),
        ({"TERM": "xterm-256color"}, "ask"),
        ({"TERM": "foot"}, "ask"),
    ],
)
def test_a_terminal_is_known_by_its_variables(environment, protocol):
    assert protocol_of(environment) == protocol


@pytest.mark.parametrize("protocol", ANSWERS)
def test_a_terminal_is_known_by_its_answer(protocol):
    assert protocol_in(ANSWERS[protocol]) == protocol


def test_a_class_of_terminals_is_not_taken_for_what_it_can_do():
    assert protocol_in(b"\x1b[?4c") is None
    assert protocol_in(b"\x1b[?64;14;24c") is None
    assert protocol_in(b"") is None


# -- how a picture is sent --------------------------------------------------------------------


def test_kitty_gets_a_png_in_chunks_and_is_told_not_to_answer():
    noise = np.random.default_rng(0).integers(0, 256, (80, 80, 3), dtype=np.uint8)
    chunks = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", kitty(Image.fromarray(noise), 6))
    keys = [key for key, _ in chunks]
    assert keys[0] == "a=T,f=100,r=6,q=2,m=1"
    assert {*keys[1:-1]} == {"m=1"}
    assert keys[-1] == "m=0"
    assert max(len(data) for _, data in chunks) == 4_096
    data = base64.b64decode("".join(data for _, data in chunks))
    assert np.array_equal(Image.open(io.BytesIO(data)), noise)


def test_a_picture_of_one_chunk_is_its_own_last(picture):
    assert kitty(picture, 1).startswith("\x1b_Ga=T,f=100,r=1,q=2,m=0;")


def test_iterm2_gets_a_png(picture):
    head, _, data = iterm2(picture, 6).partition(":")
    assert head == "\x1b]1337;File=inline=1;height=6;preserveAspectRatio=1"
    assert np.array_equal(Image.open(io.BytesIO(base64.b64decode(data[:-1]))), picture)
    assert data[-1] == "\a"


def read_sixels(text):
    """Draw sixels as the VT340's manual says; (height, width, 3) per cent."""
    head, body = re.fullmatch('\x1bP0;1q"1;1;(\\d+;\\d+)(.*)\x1b\\\\', text).groups()
    width, height = map(int, head.split(";"))
    drawn = np.full((height + 5, width, 3), -1)
    palette, color, top, left = {}, 0, 0, 0
    for token in re.findall(r"#\d+(?:;2;\d+;\d+;\d+)?|!\d+.|.", body):
        if token[0] == "#":
            number, *shade = token[1:].split(";2;")
            color = int(number)
            if shade:
                palette[color] = [int(part) for part in shade[0].split(";")]
        elif token == "$":
            left = 0
        elif token == "-":
            top, left = top + 6, 0
        else:
            times = int(token[1:-1]) if token[0] == "!" else 1
            for bit in range(6):
                if (ord(token[-1]) - 63) >> bit & 1:
                    drawn[top + bit, left : left + times] = palette[color]
            left += times
    return drawn[:height]


def test_sixels_draw_the_picture(picture):
    assert np.array_equal(read_sixels(sixel(picture)), np.asarray(picture) // 255 * 100)


def test_a_plain_picture_is_few_sixels():
    assert len(sixel(Image.new("RGB", (200, 100), "red"))) < 2_000


_TELLING = ("TMUX", "STY", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "TERM_PROGRAM", "LC_TERMINAL")


# -- in a terminal ----------------------------------------------------------------------------


def in_a_terminal(arguments, *, answer=b"", width=80, **variables):
    """Run a command line in a terminal that answers questions; returns what it was sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    before = termios.tcgetattr(theirs)
    script = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    command = [sys.executable, "-c", f"{script}from searchlab.cli import main; main()", *arguments]
    environment = {name: value for name, value in os.environ.items() if name not in _TELLING}
    process = subprocess.Popen(
        list(map(str, command)),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        env=environment | {"TERM": "xterm-256color"} | variables,
    )
    sent, until = b"", time.monotonic() + 60
    while time.monotonic() < until:
        is_over = process.poll() is not None
        if select.select([ours], [], [], 0 if is_over else 0.1)[0]:
            sent += os.read(ours, 65_536)
            if answer and sent.endswith(b"\x1b[c"):
                os.write(ours, answer)
        elif is_over:
            break
    assert process.wait() == 0, sent
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)
    return sent.decode().replace("\r\n", "\n")


@pytest.fixture
def arguments(whole):
    return ["search", "red", "--per-page", "2", "--data", whole / "data"]


@pytest.mark.parametrize("protocol", ANSWERS)
def test_a_terminal_that_can_show_pictures_is_sent_them(arguments, protocol):
    sent = in_a_terminal(arguments, answer=ANSWERS[protocol])
    question, _, shown = sent.partition("\x1b[c")
    assert question.startswith(SEQUENCES["kitty"])
    counts = {name: shown.count(sequence) for name, sequence in SEQUENCES.items()}
    assert {name for name, n in counts.items() if n} == ({protocol} - {None})
    assert "\x1b[?" not in shown  # no echo of the answer


def test_a_terminal_that_does_not_answer_is_left_as_it_was(arguments):
    assert "2 of 25" in in_a_terminal(arguments)


@pytest.mark.parametrize("protocol", SEQUENCES)
def test_a_protocol_can_be_named_and_no_question_is_asked(arguments, protocol):
    sent = in_a_terminal([*arguments, "--thumbnails", protocol])
    assert sent.count(SEQUENCES[protocol]) == 2
    assert "\x1b[c" not in sent


def test_pictures_can_be_forbidden(arguments):
    sent = in_a_terminal(arguments, SEARCHLAB_THUMBNAILS="never", KITTY_WINDOW_ID="1")
    assert not any(sequence in sent for sequence in SEQUENCES.values())


@pytest.mark.parametrize("choice", ["auto", *SEQUENCES])
def test_what_is_no_terminal_is_never_sent_a_picture(search, monkeypatch, choice):
    monkeypatch.setenv("KITTY_WINDOW_ID", "1")
    monkeypatch.setenv("TERM", "xterm-kitty")
    assert "\x1b" not in search("red", "--thumbnails", choice).out


# -- lines for eyes ---------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_in_a_terminal_only_the_caption_is_cut_and_the_path_is_a_link(arguments, whole, width):
    sent = in_a_terminal([*arguments, "--thumbnails", "never"], width=width)
    *lines, extent = sent.splitlines()
    assert extent == "2 of 25; more with --page 2"
    assert len(lines) == 2
    for line in lines:
        link, path = re.search("\x1b]8;[^;]*;([^\x1b]*)\x1b\\\\(.*?)\x1b]8;;", line).groups()
        assert path.startswith(f"{whole}/photos/")
        assert link.endswith(path)
