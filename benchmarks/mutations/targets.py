"""The modules that are changed, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A part of searchlab on which results depend.

    Attributes:
        about: What it does.
        modules: Files below `searchlab`.
        tests: Files below `tests`, those of the part itself first.
    """

    about: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


_ENGINE = ("search/test_engine_paging.py", "search/test_engine_ranking.py")

TARGETS = (
    Target(
        "cursors",
        ("search/cursors.py",),
        ("search/test_cursors.py", "library/test_cursors.py", *_ENGINE),
    ),
    Target(
        "paging",
        ("search/engine.py", "search/ranking.py"),
        (
            *_ENGINE,
            "search/test_engine_edges.py",
            "search/test_engine_scores.py",
            "search/test_engine_plans.py",
            "search/test_engine_embedding.py",
            "search/test_engine_pictures.py",
            "search/test_live_paging.py",
            "search/test_merging.py",
            "search/test_mixing.py",
            "search/test_query_reading.py",
            "search/test_ranked_before.py",
            "search/test_ranking.py",
            "search/test_written_scores.py",
        ),
    ),
    Target(
        "merging words and vectors",
        ("search/indexes/merging.py", "search/words/matches.py", "search/words/segment.py"),
        (
            "search/test_merging.py",
            "search/test_segment.py",
            "search/test_word_matches.py",
            "search/test_words.py",
            "search/test_kernels.py",
            "search/test_written_scores.py",
            *_ENGINE,
        ),
    ),
    Target(
        "filters",
        ("search/filters/photo_filter.py", "search/filters/bitmaps.py", "search/filters/facets.py"),
        (
            "search/test_filters.py",
            "search/test_palettes.py",
            "search/test_filter_refusals.py",
            "search/test_bitmaps.py",
            "search/test_facets.py",
            "search/test_kernels.py",
            "search/test_color_grid.py",
        ),
    ),
    Target(
        "colours",
        ("photos/colors/oklab.py", "photos/colors/families.py", "search/color_order.py"),
        (
            "photos/test_colors.py",
            "search/test_color_order.py",
            "search/test_color_grid.py",
            "search/test_palettes.py",
            "photos/test_dominant_colors.py",
        ),
    ),
    Target(
        "planner",
        ("search/planner.py",),
        ("search/test_planner.py", "search/test_engine_plans.py"),
    ),
    Target(
        "when a scan stops",
        (
            "search/indexes/ivf/early_stop.py",
            "search/indexes/ivf/stopping.py",
            "search/indexes/ivf/search.py",
            "search/indexes/ivf/_kernels/scan.py",
        ),
        (
            "search/test_index_ivf.py",
            "search/test_kernels.py",
            "search/test_scan_stops.py",
            "search/test_stopping.py",
            "search/test_index_nearest.py",
            "search/test_index_contract.py",
            "search/test_index_ivf_updates.py",
        ),
    ),
    Target(
        "exact search",
        ("search/indexes/exact.py", "search/indexes/scoring.py"),
        (
            "search/test_index_exact.py",
            "search/test_index_nearest.py",
            "search/test_index_contract.py",
        ),
    ),
    Target(
        "calibration",
        ("config/calibration.py", "evaluation/calibration/curves.py"),
        (
            "evaluation/test_calibration.py",
            "evaluation/test_query_fit.py",
            "search/test_engine_scores.py",
            "config/test_config.py",
            "search/test_query_reading.py",
            "search/test_written_scores.py",
        ),
    ),
    Target(
        "metrics",
        ("evaluation/metrics/quality.py", "evaluation/metrics/search.py"),
        ("evaluation/test_metrics.py", "evaluation/test_recall_at_k.py"),
    ),
    Target(
        "intervals and tests",
        (
            "evaluation/significance/intervals.py",
            "evaluation/significance/paired.py",
            "evaluation/significance/studentised.py",
        ),
        (
            "evaluation/test_studentised.py",
            "evaluation/test_significance.py",
            "evaluation/test_power.py",
        ),
    ),
    Target(
        "promotion",
        ("evaluation/promotion.py", "evaluation/weighing.py"),
        (
            "evaluation/test_promotion.py",
            "evaluation/test_weighing.py",
            "evaluation/test_reports.py",
        ),
    ),
    Target(
        "meter",
        ("api/accounts/meter.py", "api/accounts/usage.py", "api/accounts/rates.py"),
        (
            "api/test_storage_usage.py",
            "api/test_last_uses.py",
            "api/test_rates.py",
            "api/test_usage_records.py",
            "api/test_storage_known_usage.py",
            "api/test_clock_jumps.py",
        ),
    ),
    Target(
        "sources",
        (
            "sources/record.py",
            "sources/markup.py",
            "sources/providers/pexels.py",
            "sources/providers/wikimedia.py",
            "sources/providers/flickr.py",
            "sources/providers/unsplash.py",
        ),
        (
            "sources/test_sources.py",
            "sources/test_provider_rules.py",
            "sources/test_hostile.py",
            "sources/test_dumps.py",
            "sources/test_recorded.py",
            "sources/test_client.py",
        ),
    ),
)
