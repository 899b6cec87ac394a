"""What every kernel promises, over the whole registry."""

from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from hypothesis import assume, given, settings

from anonlib.errors import InfeasibleError
from anonlib.privacy import PrivacyModel
from anonlib.privacy.alpha_k import AlphaK
from anonlib.privacy.beta_likeness import BetaLikeness
from anonlib.privacy.delta_disclosure import DeltaDisclosure
from anonlib.privacy.l_diversity import LDiversity
from anonlib.privacy.p_sensitive import PSensitive
from anonlib.privacy.shares import make_reference
from anonlib.privacy.t_closeness import TCloseness
from anonlib.registry import plugins
from anonlib.table.block import Block
from anonlib.worker.contracts import find_cells, search_cells
from tests.property.test_kernels_generic import mixed_blocks
from tests.support import blocks, make_block, suited

#: Models of one column besides distinct diversity.
MODELS: list[PrivacyModel] = [
    LDiversity(l=3, kind="entropy", attribute="disease"),
    LDiversity(l=2, kind="recursive", c=1.2, attribute="disease"),
    PSensitive(p=4, attribute="disease"),
    AlphaK(alpha=0.4, attribute="disease"),
    TCloseness(t=0.2, attribute="disease"),
    TCloseness(t=0.15, distance="ordered", attribute="disease"),
    DeltaDisclosure(delta=0.8, attribute="disease"),
    BetaLikeness(beta=0.6, attribute="disease"),
    BetaLikeness(beta=1.5, kind="enhanced", attribute="disease"),
]


def variants() -> list[Any]:
    """Every kernel as it is, and with each other value of the parameters that list theirs."""
    found = []
    for plugin in plugins("kernel").values():
        if any(field.is_required() for field in plugin.model_fields.values()):
            continue
        found.append(plugin())
        for name, field in plugin.model_fields.items():
            if get_origin(field.annotation) is Literal:
                others = [each for each in get_args(field.annotation) if each != field.default]
                found += [plugin(**{name: each}) for each in others]
    return found


every_kernel = pytest.mark.parametrize("kernel", variants(), ids=repr)


def arrays(block: Block) -> dict[str, Any]:
    names = {f.name for f in fields(block)} - {"models", "ranks", "trees"}
    return {name: np.array(getattr(block, name)) for name in names}


def check(kernel: Any, block: Block) -> Any:
    """The cells, after all that can be said of any."""
    block = suited(kernel, block)
    before = arrays(block)
    ids, _ = find_cells(kernel, block)
    for name, value in arrays(block).items():
        assert np.array_equal(value, before[name]), name
    assert ids.shape == (block.n,)
    assert ids.dtype == np.int64
    distinct, first = np.unique(ids, return_index=True)
    assert distinct.tolist() == list(range(len(distinct)))
    assert (np.diff(first) > 0).all(), "cells are numbered by their first rows"
    assert block.holds(ids, len(distinct)).all()
    assert np.bincount(ids, minlength=1).min() >= (block.min_rows if block.n else 0)
    return ids


@every_kernel
@given(blocks())
@settings(max_examples=60)
def test_cells(kernel: Any, block: Block) -> None:
    assume(block.n_classes > 0 or not kernel.needs_classes)
    ids = check(kernel, block)
    assert (kernel.cells(suited(kernel, block)) == ids).all()


@every_kernel
@given(mixed_blocks(max_columns=6, max_rows=100))
@settings(max_examples=20)
def test_cells_with_hierarchies(kernel: Any, block: Block) -> None:
    assume(block.n_classes > 0 or not kernel.needs_classes)
    check(kernel, block)


@every_kernel
@pytest.mark.parametrize("n", range(1, 22))
def test_few_rows(kernel: Any, n: int) -> None:
    random = np.random.default_rng(n)
    block = make_block(random.normal(size=(n, 2)), random.integers(0, 3, (n, 1)), k=7)
    if n < 7:
        with pytest.raises(InfeasibleError):
            kernel.cells(suited(kernel, block))
    else:
        check(kernel, block)


@every_kernel
def test_no_rows(kernel: Any) -> None:
    check(kernel, make_block(np.zeros((0, 3)), np.zeros((0, 2)), sensitive=np.zeros(0)))


@every_kernel
def test_infeasible_text_has_no_values(kernel: Any) -> None:
    block = make_block(np.full((9, 1), 4711.0), k=3, sensitive=np.full(9, 815), l=2)
    with pytest.raises(InfeasibleError) as caught:
        kernel.cells(suited(kernel, block))
    assert "4711" not in str(caught.value)
    assert "815" not in str(caught.value)


@every_kernel
@pytest.mark.parametrize("shape", [(3, 0), (0, 2), (1, 1), (0, 0)])
def test_constant_columns(kernel: Any, shape: tuple[int, int]) -> None:
    check(kernel, make_block(np.ones((30, shape[0])), np.zeros((30, shape[1])), k=4))


@every_kernel
@pytest.mark.parametrize("scale", [2.0**-20, 2.0**-10, 1e6, 2.0**14])
def test_scales(kernel: Any, scale: float) -> None:
    random = np.random.default_rng(0)
    check(kernel, make_block(random.integers(-8, 8, (90, 3)) * scale, k=4))


@every_kernel
def test_read_only_and_strided_arrays(kernel: Any) -> None:
    random = np.random.default_rng(0)
    block = make_block(random.normal(size=(60, 3)), random.integers(0, 3, (60, 2)), k=4)
    block = suited(kernel, block)
    numeric, nominal = np.asfortranarray(block.numeric), np.asfortranarray(block.nominal)
    numeric.flags.writeable = nominal.flags.writeable = False
    other = replace(block, numeric=numeric, nominal=nominal)
    assert (check(kernel, other) == kernel.cells(block)).all()


@every_kernel
def test_every_cell_has_k_persons(kernel: Any) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(200, 2))
    block = suited(kernel, make_block(x, k=3, unit=np.sort(random.integers(0, 40, 200))))
    ids = check(kernel, block)
    assert block.unit is not None
    assert min(len(np.unique(block.unit[ids == c])) for c in range(ids.max() + 1)) >= 3


@every_kernel
def test_every_cell_is_diverse(kernel: Any) -> None:
    random = np.random.default_rng(0)
    x = np.sort(random.normal(size=(200, 1)), axis=0)
    disease = np.repeat([0, 1, 2, -1], 50)  # missing values don't count
    ids = check(kernel, make_block(x, k=3, sensitive=disease, l=3))
    assert min(len(set(disease[ids == c]) - {-1}) for c in range(ids.max() + 1)) >= 3


@every_kernel
@pytest.mark.parametrize("n_persons", [None, 300])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_every_model_holds(kernel: Any, model: PrivacyModel, n_persons: int | None) -> None:
    """Values that go with the quasi-identifiers, so that cells of near rows fail; with persons who
    have rows everywhere, and rows of nobody, models are not monotone."""
    random = np.random.default_rng(0)
    x = np.sort(random.normal(size=(240, 2)), axis=0)
    codes = np.sort(random.choice([-1, 0, 1, 2, 3], 240, p=[0.1, 0.2, 0.2, 0.2, 0.3]))
    swapped = random.choice(240, 200, replace=False)
    codes[swapped] = random.permutation(codes[swapped])
    unit = None if n_persons is None else random.integers(-1, n_persons, 240).astype(np.int32)
    block = make_block(x, k=3, sensitive=codes, unit=unit)
    reference = make_reference(codes, 4, unit)
    models = (block.models[0], model)
    block = suited(kernel, replace(block, models=models, references={"disease": reference}))
    plain = replace(block, models=models[:1])
    loose = kernel.cells(plain)
    assert not block.holds(loose, loose.max() + 1).all()
    ids = check(kernel, block)
    assert ids.max() > 0


@pytest.mark.parametrize("kernel", [k for k in variants() if k.takes_weights], ids=repr)
def test_weights_and_suppression(kernel: Any) -> None:
    """Rows that stand for several; some that may be left without a cell."""
    random = np.random.default_rng(0)
    block = suited(kernel, make_block(np.sort(random.normal(size=(60, 2)), axis=0), k=7))
    block = replace(block, weight=random.integers(1, 6, 60))
    ids = search_cells(kernel, block).cell_id
    assert block.holds(ids, ids.max() + 1).all()
    each = np.repeat(np.arange(60), block.weight)
    plain = replace(block, nominal=block.nominal[each], numeric=block.numeric[each], weight=None)
    plain = replace(plain, sensitive=block.sensitive[each], target=None)
    assert (kernel.cells(plain) == ids[each]).all()
    for may in (5, 40) if kernel.suppresses else ():
        ids, _ = find_cells(kernel, replace(block, may_suppress=may))
        assert block.weight[ids < 0].sum() <= may
        kept = np.flatnonzero(ids >= 0)
        assert block.holds(ids[kept], ids.max() + 1, kept).all()
        distinct, first = np.unique(ids[kept], return_index=True)
        assert (np.diff(first) > 0).all()
        assert distinct.tolist() == list(range(len(distinct)))


@every_kernel
def test_describes_itself(kernel: Any) -> None:
    assert kernel.cost.startswith("O(")
    assert kernel.reference
    for field in type(kernel).model_fields.values():
        assert field.description
