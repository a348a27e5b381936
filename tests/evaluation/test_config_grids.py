import pytest

from searchlab.config import Config
from searchlab.config.calibration import UNCALIBRATED
from searchlab.errors import InputError
from searchlab.evaluation.config_grids import grid
from searchlab.models import load_model
from searchlab.models.shipped_calibration import default_calibration


def choices_of(configs):
    return [(config.model, config.index, config.ef_search, config.steering) for config in configs]


def test_every_combination_comes_once_models_outermost():
    configs = grid(["palette", "mini"], ["exact", "hnsw"], steering=[0.5, 0.6])
    assert choices_of(configs) == [
        ("palette", "exact", 100, 0.5),
        ("palette", "exact", 100, 0.6),
        ("palette", "hnsw", 100, 0.5),
        ("palette", "hnsw", 100, 0.6),
        ("mini", "exact", 100, 0.5),
        ("mini", "exact", 100, 0.6),
        ("mini", "hnsw", 100, 0.5),
        ("mini", "hnsw", 100, 0.6),
    ]
    assert len({config.config_id for config in configs}) == len(configs)


def test_choices_of_the_graph_do_not_multiply_the_exact_index():
    configs = grid(["palette"], ["exact", "hnsw"], ef_search=(50, 100), M=[8], depth=20)
    assert choices_of(configs) == [
        ("palette", "exact", 100, Config().steering),
        ("palette", "hnsw", 50, Config().steering),
        ("palette", "hnsw", 100, Config().steering),
    ]
    assert [config.depth for config in configs] == [Config().depth, 20, 20]


def test_a_model_brings_its_id_and_its_calibration_unless_one_is_given():
    model_id = load_model("mini").model_id
    both = grid(["mini"], calibrations=[None, UNCALIBRATED])
    assert [config.model_id for config in both] == [model_id] * 2
    assert [config.calibration for config in both] == [default_calibration(model_id), UNCALIBRATED]


def test_a_fusion_is_a_model_by_its_canonical_name():
    configs = grid(["hybrid:palette=1,mini=1", "hybrid:mini=0.5,palette=0.5"])
    assert [config.model for config in configs] == ["hybrid:mini=0.5,palette=0.5"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"models": []}, "models of a grid must be a list of at least one"),
        ({"models": None}, "models of a grid must be a list of at least one"),
        ({"models": "mini"}, "models of a grid must be a list"),
        ({"indexes": "hnsw"}, r"such as \['exact', 'hnsw', 'clustered', .*\], got 'hnsw'"),
        ({"indexes": ["annoy"]}, "index must be one of"),
        ({"calibrations": []}, "calibrations of a grid"),
        ({"speed": 3}, r"must be among .*steering.*, got \['speed'\]"),
        ({"model_id": "x"}, "must be among"),
        ({"ef_search": []}, "a value for each choice"),
        ({"ef_search": [0]}, "ef_search must be"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        grid(**{"models": ["palette"]} | arguments)


def test_what_an_index_does_not_read_makes_no_second_configuration():
    configs = grid(
        models=["palette"],
        indexes=["exact", "hnsw", "clustered"],
        ef_search=[50, 100],
        n_lists=[10, 20, 30],
    )
    assert [config.index for config in configs] == ["exact"] + ["hnsw"] * 2 + ["clustered"] * 3
    assert [config.n_lists for config in configs] == [0, 0, 0, 10, 20, 30]
