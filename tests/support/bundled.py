"""Datasets that ship with searchlab, each read once a process: reading takes a second."""

import functools

from searchlab.evaluation.datasets import Dataset, load_dataset


@functools.cache
def bundled(name: str) -> Dataset:
    return load_dataset(name)
