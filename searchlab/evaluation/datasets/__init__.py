"""Datasets: photos with labelled queries and the judgments between them.

`load_dataset("demo")` and the datasets derived from it ship with searchlab. The others are read
from the folder that the environment variable SEARCHLAB_DATASETS names, because their photos may not
be redistributed. `load_dataset("path/to/folder")` reads a dataset of your own.
`searchlab.evaluation.datasets.judgments` reads and writes files of judgments and runs.
"""

from __future__ import annotations

from searchlab.evaluation.datasets.bundled import bundled_root
from searchlab.evaluation.datasets.dataset import Dataset
from searchlab.evaluation.datasets.external import ENVIRONMENT, external_root
from searchlab.evaluation.datasets.folders import read_dataset, write_dataset
from searchlab.evaluation.datasets.labelled import NO_LANGUAGE, WITHHELD, LabelledQuery
from searchlab.evaluation.datasets.loading import DATASETS, dataset_names, load_dataset
from searchlab.evaluation.datasets.rows import language_tag

__all__ = [
    "DATASETS",
    "ENVIRONMENT",
    "NO_LANGUAGE",
    "WITHHELD",
    "Dataset",
    "LabelledQuery",
    "bundled_root",
    "dataset_names",
    "external_root",
    "language_tag",
    "load_dataset",
    "read_dataset",
    "write_dataset",
]
