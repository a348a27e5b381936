"""The threat model beside its promises: who may do what, and what is not promised."""

from __future__ import annotations

from typing import Final

PEOPLE: Final = (
    (
        "Anybody who reaches the port",
        "Pictures under `/media`, the pages, `/docs`, `/openapi.json`, `/health`, `/ready` and "
        "`/metrics`. Put a proxy before `/metrics` where it must be private.",
    ),
    (
        "The owner of a key",
        "Searches within the plan of the account, its own collections, and the public ones of "
        "others; nothing that another account wrote or counted.",
    ),
    (
        "An app that somebody has connected",
        "What its scopes allow in that account, at `/mcp` alone, until it is disconnected or was "
        "not used for 90 days. It never sees a key, a session or how somebody signs in.",
    ),
    (
        "Whoever runs searchlab on the machine",
        "All: the library's folder, keys, plans and backups. `secret.key` and `api.db` can be read "
        "by that user alone.",
    ),
    (
        "Whoever made a photo, a record or a library",
        "Nothing: they are read as data, within limits. Only a model that a configuration names is "
        "code, so name none that you do not trust.",
    ),
)

NOT_PROMISED: Final = (
    "TLS, and protection from floods of packets: put a proxy before the port.",
    "Secrecy from whoever can read the library's folder or a backup: neither is encrypted.",
    "Safety of models: the weights and code of a model that a configuration names are trusted.",
    "Safety of the files themselves: the full size of a photo is sent as it is but for places and "
    "keywords.",
    "An answer to a client that closes its sending half behind a request: the HTTP server below "
    "takes that for the end (hyper's pull request 1981), and has no setting for it (granian 2.8).",
    "A bound on small answers that wait to be taken: each holds up to 256 KiB, as long as its "
    "connection lives.",
    "How fast a search is beside others' uploads: reading and embedding them takes time of the "
    "same workers; more of them, and `--rate`, bound it.",
    "Separation of a library's own photos from the server: smaller sizes of them, made when they "
    "are first asked for, are decoded by threads of a worker, two at a time.",
    "An answer of a worker that lives and hangs: it is taken to be ready as long as it is there.",
    "Anything of a file that was copied over `api.db` in place: SQLite cannot notice. Use restore.",
    "Accounts and collections in a backup, where they lie in PostgreSQL: how much is lost with its "
    "disk, and how long it takes to come back, is up to its own backups (`pg_dump`). Its "
    "`synchronous_commit` must be on, as it is.",
    "Engines that a library names, as `pgvector:URL`: whoever opens it connects to them.",
    "Photos: a backup holds what was computed and written about them, not their files.",
    "A clock that is wrong when the server starts, or for longer than ten minutes, is believed; so "
    "is one while `searchlab index` looks which snapshots are older than an hour.",
)
