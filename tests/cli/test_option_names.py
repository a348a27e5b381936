"""What is wrong with an option is said of the option, not of the field that it sets."""

import click
import pytest

from searchlab.cli.option_names import with_options
from tests.support import cli_world
from tests.support.cli_world import error_of

search = cli_world.search
whole = cli_world.whole

PARAMETERS = [
    click.Option(["--per-page"]),
    click.Option(["--limit"]),
    click.Option(["--photo-id"]),
    click.Option(["-v", "--verbose"]),
    click.Argument(["text"]),
]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("per_page must be from 1 to 100, got 0", "--per-page must be from 1 to 100, got 0"),
        ("limit must be from 1", "--limit must be from 1"),
        ("a page holds per_page photos", "a page holds --per-page photos"),
        ("a limit of memory", "a limit of memory"),
        ("text must be there", "text must be there"),
        ("got 'per_page' and `per_page=3`", "got 'per_page' and `per_page=3`"),
        ("/photos/per_page and source_photo_id", "/photos/per_page and source_photo_id"),
        ("got photo_id, per_page", "got photo_id, per_page"),
        (
            "limit must be among photo_id, source_photo_id, per_page or photo_id, got ['x']",
            "--limit must be among photo_id, source_photo_id, per_page or photo_id, got ['x']",
        ),
        ("a query must have a text, an image, a photo_id or a filter",) * 2,
        (
            "limit and photo_id cannot be combined, got photo_id 'y'; keep one",
            "--limit and --photo-id cannot be combined, got --photo-id 'y'; keep one",
        ),
        (
            "no field and photo_id must be, got photo_id",
            "no field and --photo-id must be, got photo_id",
        ),
        ("per_page must be, got per_page", "--per-page must be, got --per-page"),
        ("per_page must be, got photo_id", "--per-page must be, got photo_id"),
    ],
)
def test_fields_are_put_as_options_and_what_somebody_gave_stays(message, expected):
    assert with_options(message, PARAMETERS) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["red", "--per-page", 0], "--per-page must be"),
        (["red", "--limit", 101], "--limit must be"),
        (["red", "--score-threshold", 2], "--score-threshold must be"),
        (
            ["--after-date", "2024-02-01", "--before-date", "2024-01-01"],
            "--before-date must be the day of --after-date or later",
        ),
        (["red", "--color-hex", "1"], "--color-hex must be"),
        (["red", "--text-alpha", 2], "--text-alpha goes with TEXT beside --image or --photo-id"),
        (["red", "--color-tolerance", 9], "--color-tolerance goes with --color-name, --color-hex"),
        (["--orientation", "round"], "--orientation must be"),
        (["--image", "x.jpg", "--photo-id", "y"], "--image and --photo-id cannot be combined"),
        (["red", "--json", "--fields", "foo"], "--fields must be names among photo_id, source_ph"),
    ],
)
def test_a_refused_search_names_the_option(search, arguments, said):
    assert said in error_of(search(*arguments), 2)


def test_options_that_go_together_are_taken(search):
    assert search("--color-name", "red", "--color-tolerance", 9).code == 0
