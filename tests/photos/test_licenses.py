"""Licences: one name each, whatever a library calls it; what forbids use is known by the name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchlab.photos.licenses import (
    NAMED,
    RESTRICTIONS,
    license_label,
    license_url,
    normal_license,
    refusal,
    restrictions,
)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("CC BY 2.0", "cc-by-2.0"),
        ("cc-by-sa-4.0", "cc-by-sa-4.0"),
        ("CC BY-SA 3.0 de", "cc-by-sa-3.0"),
        ("CC BY-SA 4.0,3.0,2.5,2.0,1.0", "cc-by-sa-4.0"),
        ("Creative Commons Attribution-Share Alike 4.0", "cc-by-sa-4.0"),
        ("Creative Commons Attribution-NonCommercial 4.0 International", "cc-by-nc-4.0"),
        ("CC-BY-NC", "cc-by-nc"),
        ("by-nc-nd", "cc-by-nc-nd"),
        ("by-nd-nc", "cc-by-nc-nd"),
        ("CC0", "cc0"),
        ("CC0 1.0", "cc0"),
        ("zero", "cc0"),
        ("pdm", "public-domain"),
        ("pd", "public-domain"),
        ("Public domain", "public-domain"),
        ("No restrictions", "no-known-copyright"),
        ("Unsplash License", "free"),
        ("Pexels License", "free"),
        ("Pixabay Content License", "free"),
        ("GFDL 1.2", "gfdl-1.2"),
        ("GPL-2.0-or-later", "gpl-2.0"),
        ("nc-sampling+", "cc-nc-sampling-plus-1.0"),
        ("http://creativecommons.org/licenses/by-nc/4.0/", "cc-by-nc-4.0"),
        ("https://creativecommons.org/licenses/by-sa/3.0/de/deed.de", "cc-by-sa-3.0"),
        ("//creativecommons.org/publicdomain/zero/1.0/", "cc0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "public-domain"),
        ("https://creativecommons.org/licenses/sampling+/1.0/", "cc-sampling-plus-1.0"),
        ("http://rightsstatements.org/vocab/InC/1.0/", "in-copyright"),
        ("http://rightsstatements.org/vocab/InC-EDU/1.0/", "in-copyright"),
        ("http://rightsstatements.org/vocab/NoC-NC/1.0/", "no-copyright-nc"),
        ("http://rightsstatements.org/vocab/CNE/1.0/", "not-evaluated"),
        ("https://unsplash.com/license", "free"),
        ("", ""),
        ("by the sea", ""),
        ("by Tom", ""),
        ("(by) Jim", ""),
        ("Attribution Sam", ""),
        ("cc-by-de", "cc-by"),
        ("cc-by-9.9", ""),
        ("https://example.org/licenses/by/2.0/", ""),
        ("https://creativecommons.org.evil.example/licenses/by/2.0/", ""),
        ("http://[", ""),
    ],
)
def test_a_licence_has_one_name_however_it_is_written(written, name):
    assert normal_license(written) == name


def test_a_version_that_is_told_apart_belongs_to_the_name():
    assert normal_license("by-sa", version="2.0") == "cc-by-sa-2.0"
    assert normal_license("cc0", version="1.0") == "cc0"
    assert normal_license("by", version="two") == "cc-by"


@pytest.mark.parametrize("name", [*NAMED, "cc-by-2.0", "cc-by-nc-nd-4.0", "cc-by", "cc-sa-1.0"])
def test_names_are_their_own_names_and_so_are_their_addresses_and_labels(name):
    assert normal_license(name) == name
    if name in NAMED and NAMED[name].url:
        assert normal_license(NAMED[name].url) == name
    assert license_label(name)


def test_the_address_of_a_creative_commons_licence_leads_back_to_it():
    assert normal_license(license_url("cc-by-nc-sa-2.5")) == "cc-by-nc-sa-2.5"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cc-by-4.0", set()),
        ("cc-by-sa-4.0", set()),
        ("cc0", set()),
        ("free", set()),
        ("public-domain", set()),
        ("no-known-copyright", set()),
        ("cc-by-nc-2.0", {"nc"}),
        ("cc-by-nd-2.0", {"nd"}),
        ("cc-by-nc-nd-2.0", {"nc", "nd"}),
        ("all-rights-reserved", {"reserved"}),
        ("in-copyright", {"reserved"}),
        ("not-evaluated", {"none"}),
        ("", {"none"}),
        ("my own", {"none"}),
    ],
)
def test_what_a_licence_forbids_keeps_a_photo_out_until_all_of_it_is_asked_for(name, words):
    assert restrictions(name) == words
    assert bool(refusal(name)) == bool(words)
    assert refusal(name, words) == ""
    for word in words:
        assert f"--allow {word}" in refusal(name, words - {word})


def test_every_restriction_of_the_table_has_its_words():
    assert {word for terms in NAMED.values() for word in terms.forbids} == set(RESTRICTIONS)


@given(st.text(max_size=60), st.text(max_size=8))
def test_any_text_has_a_known_name_or_none(written, version):
    name = normal_license(written, version=version)
    assert name in {"", *NAMED} or name.startswith("cc-")
    assert isinstance(restrictions(name), frozenset)
