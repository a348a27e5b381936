"""The routes of all pages, each admitted before it answers."""

from __future__ import annotations

from typing import Any, Final

from litestar import Router

from searchlab.api.web import connect, filters, photo_page, search_page, sign_in
from searchlab.api.web.account import apps, leaving
from searchlab.api.web.account import pages as account
from searchlab.api.web.admission import admit
from searchlab.api.web.collections import own, public
from searchlab.api.web.judging import comparing, grading, results, tasks
from searchlab.api.web.templates import STATIC_ROUTES

_PAGES: Final[list[Any]] = [
    *search_page.ROUTES,
    *filters.ROUTES,
    *photo_page.ROUTES,
    *sign_in.ROUTES,
    *own.ROUTES,
    *public.ROUTES,
    *tasks.ROUTES,
    *grading.ROUTES,
    *results.ROUTES,
    *comparing.ROUTES,
    *account.ROUTES,
    *leaving.ROUTES,
    *apps.ROUTES,
    *connect.ROUTES,
]
ROUTES: Final[list[Any]] = [
    Router("/", route_handlers=_PAGES, before_request=admit, include_in_schema=False),
    *STATIC_ROUTES,
]
