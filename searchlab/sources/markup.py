"""Text and links from the HTML that some libraries put into their fields."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from searchlab.photos.photo import web_url

if TYPE_CHECKING:
    from bs4 import BeautifulSoup


def plain_text(markup: str) -> str:
    """Return what a reader sees of a piece of HTML, on one line.

    >>> plain_text("<b>Jona</b> &amp; <i>Ann</i><script>alert(1)</script>")
    'Jona & Ann'
    """
    if "<" not in markup:
        return " ".join(html.unescape(markup).split())
    soup = _parse(markup)
    for invisible in soup(["script", "style", "template"]):
        invisible.decompose()
    for separate in soup(["br", "p", "div", "li", "td"]):
        separate.insert_before(" ")
    return " ".join(soup.get_text().split())


def first_link(markup: str) -> str:
    """Return the first web address that a piece of HTML links to; empty where there is none.

    >>> first_link('<a href="//commons.wikimedia.org/wiki/User:Ann">Ann</a>')
    'https://commons.wikimedia.org/wiki/User:Ann'
    """
    if "<" not in markup:
        return ""
    for anchor in _parse(markup)("a", href=True):
        href = str(anchor["href"]).strip()
        if url := web_url(f"https:{href}" if href.startswith("//") else href):
            return url
    return ""


def _parse(markup: str) -> BeautifulSoup:
    from bs4 import BeautifulSoup

    return BeautifulSoup(markup, "html.parser")
