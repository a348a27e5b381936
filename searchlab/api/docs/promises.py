"""What the API promises under faults and attacks, each by a test that would fail without it."""

from __future__ import annotations

from typing import Final, NamedTuple


class Promise(NamedTuple):
    """Something that holds.

    Attributes:
        text: What, with its limits.
        tests: Those that would fail if it did not, as `tests/FILE.py::NAME`.
        records: What a real server did under attack.
    """

    text: str
    tests: tuple[str, ...]
    records: tuple[Attack, ...] = ()


class Attack(NamedTuple):
    """An attack on a real server that is on record.

    Attributes:
        file: Of the project's results.
        text: What was done and what came of it; a test holds the numbers to the file.
    """

    file: str
    text: str


_SOAK: Final = Attack(
    "results/http/demo/soak.json",
    "1,002,947 requests in 20 rounds, while 120 workers were killed, the server was stopped "
    "60 times and killed 60 times, its clock set 160 times, its disk full 80 times, 200 "
    "snapshots swapped in and 36,000 slow clients came; checks that failed: 2",
)
_MADE_UP: Final = Attack(
    "results/http/demo/schemathesis.json",
    "282,942 made-up requests in 3,709 s; server errors: 0, answers that the document does "
    "not allow: 1",
)
_UPLOADS: Final = Attack(
    "results/http/demo/uploads.json",
    "400 of 400 uploads and 639 of 639 texts of other accounts were answered while 8 free accounts "
    "sent crafted pictures over 32 connections; the 99th percentile of texts was 0.99 times that "
    "without them",
)
_MUTATED: Final = Attack(
    "results/http/plain/snapshots.json",
    "14,500 snapshots with other bytes under right checksums, in 29 rounds: 4,098 were "
    "answered from, 10,402 refused; crashes and wrong errors: 0",
)

PROMISES: Final = (
    Promise(
        "Every operation of the API needs a key; a revoked one is refused at once by every worker.",
        (
            "tests/spec/test_auth.py::test_every_operation_requires_a_key",
            "tests/spec/test_auth.py::test_a_revoked_key_is_refused_at_once",
        ),
    ),
    Promise(
        "A key is stored as its hash, and stands neither in the log nor in the database.",
        ("tests/spec/test_auth.py::test_no_key_is_in_the_log_nor_in_the_database",),
    ),
    Promise(
        "An app gets access only through a button that its person presses, and codes and tokens go "
        "only to where the app said before; a code works once within a minute, and only for who "
        "asked for it.",
        (
            "tests/api/oauth/test_asking.py::test_an_answer_goes_nowhere_but_to_the_app",
            "tests/api/oauth/test_asking.py::test_no_other_site_can_press_the_button",
            "tests/api/oauth/test_tokens.py::test_a_code_is_redeemed_by_who_asked_alone",
            "tests/api/test_storage_grants.py::test_a_code_lasts_a_minute",
        ),
    ),
    Promise(
        "A code or refresh token that was used before ends the access that it gave, for the thief "
        "and the owner; an app that is disconnected is refused at once by every worker.",
        (
            "tests/api/oauth/test_tokens.py::test_a_code_that_is_replayed_ends_what_it_made",
            "tests/api/test_storage_grants.py::test_a_thief_is_noticed_when_the_owner_goes_on",
            "tests/api/test_storage_grants.py::"
            "test_revoking_ends_a_grant_at_once_where_it_is_remembered",
        ),
    ),
    Promise(
        "No token of an app allows more than its person had agreed to when it was made, whatever "
        "the app is allowed later.",
        (
            "tests/api/test_storage_wider_grants.py::"
            "test_tokens_of_before_go_on_allowing_what_they_did_and_no_more",
        ),
    ),
    Promise(
        "The description of an app is fetched from the public internet alone, without redirects, "
        "and for nobody who is not signed in.",
        (
            "tests/api/test_client_documents.py::test_no_private_address_is_reached",
            "tests/api/test_client_documents.py::"
            "test_a_person_connects_a_client_that_is_known_by_its_address",
        ),
    ),
    Promise(
        "Accounts see nothing of each other: collections, counts, cursors, replays are one's own.",
        (
            "tests/api/test_isolation.py::test_the_list_is_the_accounts_own",
            "tests/api/test_isolation.py::test_no_parameter_leads_to_the_records_of_another",
            "tests/search/test_cursors.py::test_any_other_character_at_any_place_is_refused",
        ),
    ),
    Promise(
        "Paths, places, keywords and ratings of your photos are in no answer, originals included.",
        (
            "tests/api/test_owners_data.py::test_no_answer_shows_them",
            "tests/api/test_owners_paths.py::test_no_answer_tells_where_photos_lie",
        ),
    ),
    Promise(
        "What is acknowledged is on the disk: collections, keys and replays survive a power cut. "
        "Of SQLite's counts of searches, those of the last second may be lost (RPO 1 s).",
        (
            "tests/library/test_power_cut.py::"
            "test_all_that_was_acknowledged_is_there_but_the_counts_of_a_second",
        ),
    ),
    Promise(
        "A process that is killed loses nothing that was acknowledged, counts included (RPO 0).",
        (
            "tests/api/test_storage_kill.py::"
            "test_a_killed_process_loses_no_count_that_was_acknowledged",
        ),
        (_SOAK,),
    ),
    Promise(
        "With PostgreSQL nothing that was acknowledged is lost when it crashes, counts included "
        "(RPO 0), and its workers go on when it is back (RTO: the time that it takes to recover).",
        (
            "tests/api/test_storage_kill.py::"
            "test_a_postgresql_that_crashes_loses_no_count_that_was_acknowledged",
        ),
    ),
    Promise(
        "A worker that is killed is replaced, and nobody is refused meanwhile if there is another. "
        "While none is there that has said it is ready, requests get 503 after 5 s, and are served "
        "again as soon as one is.",
        (
            "tests/api/test_server.py::"
            "test_a_worker_that_is_killed_is_replaced_and_nobody_is_refused_meanwhile",
            "tests/api/test_stand_in.py::"
            "test_while_no_worker_can_start_nobody_hangs_and_then_all_is_well",
            "tests/api/test_stand_in.py::test_an_upload_that_is_still_under_way_reads_its_answer",
        ),
        (_SOAK,),
    ),
    Promise(
        "`/health` says that a worker lives; `/ready` writes, and names a disk that is full or a "
        "database that is locked or gone. What cannot be written then is answered 503.",
        (
            "tests/api/test_readiness.py::test_a_server_that_cannot_write_says_so_and_still_lives",
            "tests/api/test_readiness.py::test_a_lock_of_another_process_is_named_for_what_it_is",
            "tests/api/test_readiness.py::test_a_database_that_takes_no_writes_is_not_ready",
            "tests/api/test_readiness.py::test_a_disk_without_space_is_named_before_a_write_fails",
            "tests/api/web/test_full_disks.py::"
            "test_a_full_disk_is_nobodys_input_and_no_page_tells_where_it_is",
        ),
        (_SOAK,),
    ),
    Promise(
        "Whatever is sent, an answer is one that `/openapi.json` allows, and no error of ours.",
        (
            "tests/api/test_schemathesis.py::test_answers_are_those_of_the_document",
            "tests/api/test_schemathesis.py::"
            "test_answers_of_requests_that_follow_each_other_are_too",
            "tests/api/test_hostile.py::test_any_text_as_a_parameter",
        ),
        (_MADE_UP,),
    ),
    Promise(
        "A client that takes no bytes for 30 s is closed (`--send-timeout`), and pictures of more "
        "than 256 KiB that wait to be taken hold 300 MB of a worker at most. One address holds 512 "
        "connections to a worker, or half of what its open files allow "
        "(`--max-connections-per-address`, `--trusted-proxy`).",
        (
            "tests/api/test_connections.py::"
            "test_readers_that_stall_cost_little_memory_and_are_closed",
            "tests/api/test_connections.py::"
            "test_idle_connections_of_one_address_do_not_stop_others",
            "tests/api/test_connections.py::"
            "test_with_few_open_files_one_address_leaves_half_of_the_connections_to_others",
        ),
        (_SOAK,),
    ),
    Promise(
        "With too few open files or too little address space (`ulimit -n`, `-v`) a server refuses "
        "to start and says how much it needs; where memory or threads run out later, answers are "
        "503.",
        (
            "tests/api/test_connections.py::"
            "test_too_little_of_what_a_worker_needs_is_refused_at_the_start",
            "tests/api/test_connections.py::"
            "test_with_more_clients_than_open_files_accepting_neither_fails_nor_spins",
            "tests/api/test_shortages.py::"
            "test_where_address_space_runs_out_answers_are_503_and_all_is_well_with_more",
            "tests/api/test_wrong_keys.py::"
            "test_too_little_memory_or_threads_is_an_answer_to_come_again",
        ),
    ),
    Promise(
        "Uploads are decoded in turns by account, paid plans more often, each within 10 s and "
        "1,536 MiB in a process that is stopped then; an account is charged for the time however "
        "it ends. A picture that the machine had no time for is answered 503. Searches come first: "
        "decoding runs at a priority that gets a tenth of a core that a search wants too.",
        (
            "tests/api/test_fair_queue.py::test_owners_take_turns_however_many_wishes_one_has",
            "tests/api/test_fair_queue.py::test_a_larger_share_gets_more_turns",
            "tests/api/test_decoders.py::"
            "test_what_takes_too_long_is_stopped_and_a_picture_is_blamed_only_for_its_own_time",
            "tests/api/test_decoders.py::"
            "test_scans_that_are_repeated_are_refused_before_anything_is_decoded",
            "tests/api/test_decoders.py::test_decoding_gives_way_to_searches",
            "tests/api/test_decoders.py::test_memory_is_bounded_by_the_system",
            "tests/api/test_decoders.py::"
            "test_time_is_bounded_by_the_system_as_well_should_nobody_look",
            "tests/api/test_decode_slots.py::"
            "test_a_picture_is_charged_for_its_time_however_it_ends",
        ),
        (_UPLOADS,),
    ),
    Promise(
        "Bodies of uploads that arrive or wait hold 256 MiB of a worker at most, one account half "
        "of what is free; after a wave the processes that decoded it end, but for one.",
        (
            "tests/api/test_upload_bodies.py::test_bodies_that_are_read_at_once_are_bounded_together",
            "tests/api/test_connections.py::"
            "test_bodies_that_wait_hold_little_memory_however_many_come",
            "tests/api/test_fair_share.py::"
            "test_who_is_alone_gets_half_and_who_comes_next_a_part_of_the_rest",
            "tests/api/test_decoders.py::test_after_a_wave_one_process_stays",
        ),
    ),
    Promise(
        "An address that sends wrong keys, tokens or sessions waits after 100, and then between "
        "each two. What a worker found in force within the last minute is taken nevertheless.",
        (
            "tests/api/test_wrong_keys.py::"
            "test_who_shares_an_address_with_a_guesser_is_not_shut_out",
            "tests/api/test_wrong_keys.py::test_who_guesses_keys_is_told_to_wait_and_nobody_else",
            "tests/api/test_wrong_keys.py::test_who_guesses_sessions_is_told_to_wait_as_well",
        ),
    ),
    Promise(
        "The password of a database comes from a file or the environment, and no list of processes "
        "shows it.",
        (
            "tests/cli/test_database_options.py::"
            "test_it_comes_from_a_file_or_from_the_environment_without_a_warning",
            "tests/cli/test_database_options.py::test_the_settings_do_not_show_it",
        ),
    ),
    Promise(
        "A library is whole after a kill or power cut at any moment: the state before, or the new.",
        (
            "tests/library/test_kill.py::test_a_later_run_killed_before_any_change_of_the_disk",
            "tests/library/test_power_cut.py::test_a_library_that_was_indexed_is_whole",
        ),
    ),
    Promise(
        "`searchlab backup` copies all while it is served (RPO: when it began), and `searchlab "
        "restore` puts it back into a server that runs (RTO: the time of copying the files).",
        (
            "tests/cli/test_backups.py::test_a_backup_is_taken_whole_while_others_write",
            "tests/cli/test_backups.py::"
            "test_a_server_goes_on_with_what_is_restored_and_refuses_what_came_since",
        ),
    ),
    Promise(
        "A database that is deleted or replaced while it is served, or whose journal is, takes "
        "nothing more: answers are 503 until it is back, and a line in the log says why.",
        (
            "tests/api/test_storage_file.py::"
            "test_a_file_that_is_lost_before_the_commit_acknowledges_nothing",
            "tests/api/test_storage_file.py::"
            "test_nothing_is_acknowledged_into_a_deleted_journal_and_a_stop_saves_what_it_holds",
            "tests/api/test_storage_file.py::"
            "test_nothing_is_written_into_a_deleted_file_and_none_is_made",
            "tests/api/test_storage_file.py::test_a_file_beside_the_journal_of_another_is_refused",
        ),
    ),
    Promise(
        "A clock that is set for less than ten minutes changes no quota, rate or record, nor does "
        "it for a worker that replaces another meanwhile. One that is wrong for longer deletes "
        "nothing of a record until there were searches on 31 wrong days.",
        (
            "tests/api/test_server.py::"
            "test_a_worker_that_replaces_another_while_the_clock_is_wrong_goes_by_the_right_time",
            "tests/api/test_clock_jumps.py::test_a_jump_is_not_believed_until_it_has_lasted",
            "tests/api/test_clock_jumps.py::test_rates_never_look_at_the_clock_that_can_be_set",
            "tests/api/test_clock_jumps.py::"
            "test_a_wrong_date_takes_nothing_of_a_record_within_a_month_of_days",
        ),
        (_SOAK,),
    ),
    Promise(
        "A POST that is repeated with its `Idempotency-Key` acts once within 24 hours; the key of "
        "a worker that died is free at once with SQLite, and after 60 s at most with PostgreSQL.",
        (
            "tests/api/test_storage_replays.py::"
            "test_a_process_that_dies_before_its_commit_leaves_the_key_to_another",
            "tests/api/test_storage_replays.py::test_of_many_at_once_one_owns_the_key",
        ),
    ),
    Promise(
        "Cursors page on for an hour after the library has changed, however often, within 10 GB of "
        "disk; `searchlab index --keep-minutes --keep-gb` sets both.",
        (
            "tests/library/test_retention.py::"
            "test_a_cursor_goes_on_through_one_changing_index_run_a_page",
            "tests/library/test_retention.py::test_all_of_the_last_hour_stay_within_the_budget",
        ),
    ),
    Promise(
        "A library from a stranger crashes nothing, whatever stands in the files of its snapshot: "
        "it is searched, or refused.",
        (
            "tests/library/test_strangers.py::test_mutated_files_are_answered_from_or_refused",
            "tests/library/test_strangers.py::"
            "test_all_that_any_index_writes_into_a_snapshot_is_mutated",
            "tests/library/test_strangers.py::test_no_kernel_reads_or_writes_beyond_an_array",
        ),
        (_MUTATED,),
    ),
    Promise(
        "Pictures are refused before they are decoded where they are too large or too many parts; "
        "`searchlab index` takes less than 1 GB, whatever lies in a folder; with more than four "
        "processors 80 MB more for each of the processes that decode, 16 at most.",
        (
            "tests/photos/test_hostile_images.py::test_a_picture_that_says_it_is_huge_is_too_large",
            "tests/photos/test_hostile_images.py::"
            "test_the_worst_of_them_need_memory_for_their_pixels_and_no_more",
            "tests/library/test_bombs.py::test_a_folder_of_bombs_takes_less_than_a_gigabyte",
        ),
    ),
    Promise(
        "`searchlab fetch` connects to public addresses only, whatever a record's link says.",
        ("tests/sources/test_client.py::test_private_addresses_are_known_in_all_their_disguises",),
    ),
    Promise(
        "What `.ci/supply-chain install` installs, and builds with, is fixed to the byte; packages "
        "of all extras are under licences that are listed.",
        (
            "tests/structure/test_supply_chain.py::test_every_locked_package_has_a_hash",
            "tests/structure/test_supply_chain.py::"
            "test_every_step_of_the_install_takes_what_is_locked_and_nothing_else",
            "tests/structure/test_supply_chain.py::"
            "test_every_licence_of_every_extra_is_one_that_was_allowed",
        ),
    ),
)
