"""Cells of data in memory. Runs kernels without Spark, for notebooks and tests."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from anonlib import registry
from anonlib.arrays import Codes, Ints, count_share
from anonlib.errors import ConfigError, ContractError, InputError, did_you_mean
from anonlib.hierarchy import Hierarchy, read_hierarchy
from anonlib.kernels import Kernel
from anonlib.kernels.merge import number_by_first_row
from anonlib.local.frames import require_distinct_names
from anonlib.privacy import PrivacyModel, Reference
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.table.block import Block, part
from anonlib.table.encoding import (
    Encoding,
    Values,
    code_among,
    encode_block,
    fit_whole,
    is_protectable,
    list_protected_values,
    mix,
    normalize,
    one_zero,
    to_float,
)
from anonlib.table.schema import Column, Role, Scale, find_target_scale, may_be_continuous
from anonlib.text import MISSING_TOKENS
from anonlib.worker.contracts import find_cells

#: The id of the target. The ids of quasi-identifiers are c0, c1, ...
TARGET = "target"


def cells(
    data: Any,
    kernel: str = "mdav",
    k: int = 10,
    *,
    scales: Mapping[Any, str] | None = None,
    hierarchies: Mapping[Any, Hierarchy | str | Path] | None = None,
    models: Sequence[PrivacyModel] = (),
    joint: bool = False,
    target: Any = None,
    target_scale: str | None = None,
    suppression_limit: float = 0.0,
    **parameters: Any,
) -> Ints:
    """Groups the rows of a table in memory into cells that hold privacy models. No Spark.

    Columns are encoded as for a release (`Encoding`). Ordinal columns become the ranks of their
    distinct values, or of the categories of an ordered Arrow dictionary or pandas category. Null
    and NaN are missing. The cells do not depend on the order of rows, except for rows that are
    equal in all columns used here: their order decides which row is in which cell.
    Cost: the kernel's, and O(n p + n log n).

    Args:
        data: A float array [n, p], with all columns continuous; or a pandas or Arrow table.
        kernel: The kernel's `type`.
        k: The fewest rows of a cell.
        scales: For a table: the scale of each quasi-identifier, "continuous", "ordinal" or
            "nominal". Other columns are used only if a model names them.
        hierarchies: The hierarchies of nominal columns, and of columns that models name: each a
            Hierarchy, or its file. Codes are in the order of the leaves.
        models: The privacy models that cells must hold, in addition to k.
        joint: Whether models must also hold among the rows of a cell that agree on all other
            columns that models name.
        target: The target, for kernels that look at it: n values for an array, the name of a column
            for a table.
        target_scale: "continuous" or "nominal". By default numbers are continuous, unless the
            kernel needs classes.
        suppression_limit: The largest share of rows that the kernel may leave without a cell.
        parameters: The parameters of the kernel.

    Returns:
        int64[n]. The cell of each row, 0..m-1 by first row; -1 for suppressed rows.

    Raises:
        InputError: The data or the arguments can't be used.
        InfeasibleError: All rows together do not hold the models.
        ContractError: The kernel failed, or gave no cells that hold the models.

    Example:
        anonlib.cells(frame, k=10, scales={"age": "continuous", "city": "nominal"})
    """
    method = _kernel(kernel, parameters)
    constraints = (_k_anonymity(k), *_check_models(models))
    columns = _quasi_identifiers(data, scales)
    trees = _hierarchies(hierarchies, columns, constraints)
    protected, references = _encode_protected(data, constraints, trees)
    label = _target(data, target, target_scale, method)
    _require_nominal(method, columns)
    encoded = {
        f"c{j}": _encoding(f"c{j}", name, values, scale, trees.get(name))
        for j, (name, values, scale) in enumerate(columns)
    }
    block = encode_block(
        [encoding for encoding, _ in encoded.values()],
        {id: values for id, (_, values) in {**encoded, **label}.items()},
        protected,
        constraints,
        label[TARGET][0] if label else None,
        len(data),
    )
    block = replace(
        block,
        references=references,
        joint=joint,
        may_suppress=_may_suppress(method, constraints, suppression_limit, len(data)),
    )
    keys = [] if block.target is None else [block.target]
    # Models look at the sensitive codes. So rows may be swapped only if these are equal, too.
    order = np.lexsort([*block.sensitive.T, *keys, mix(block.numeric, block.nominal)])
    ids = np.empty(block.n, np.int64)
    ids[order] = _find_cells(method, part(block, order))
    kept = ids >= 0
    ids[kept] = number_by_first_row(ids[kept])
    return ids


def _find_cells(kernel: Kernel, block: Block) -> Ints:
    """int64[n]. The cells of a block; all of them hold its models. They are not believed, since no
    audit comes after."""
    ids, m = find_cells(kernel, block)
    kept = np.flatnonzero(ids >= 0)
    if n_failing := m - int(np.count_nonzero(block.holds(ids[kept], m, kept))):
        raise ContractError(
            f"kernel {kernel.type}: {n_failing} of its {m} cells do not hold the models"
        )
    return ids


def _require_nominal(kernel: Kernel, columns: Sequence[tuple[str, pa.Array, Scale]]) -> None:
    other = [name for name, _, scale in columns if scale is not Scale.NOMINAL]
    if kernel.needs_nominal and other:
        raise InputError(
            f"scales: {', '.join(other)}: kernel {kernel.type} generalizes along "
            "hierarchies: must be nominal"
        )


def _may_suppress(kernel: Kernel, models: Sequence[PrivacyModel], limit: float, n: int) -> int:
    if not 0.0 <= limit < 1.0:
        raise InputError("suppression_limit: must be at least 0 and less than 1")
    if limit and not kernel.suppresses:
        raise InputError(f"suppression_limit: kernel {kernel.type} suppresses no rows")
    if limit and (relative := [model.type for model in models if model.relative]):
        raise InputError(
            f"suppression_limit: by {', '.join(relative)}, cells are measured against all rows, "
            "which suppressed ones would change; leave it out"
        )
    return count_share(limit, n)


def _kernel(name: str, parameters: dict[str, Any]) -> Kernel:
    try:
        cls = registry.plugin("kernel", name, "kernel")
        return cast(Kernel, registry.construct(cls, parameters, f"kernel {name}"))
    except ConfigError as error:
        raise InputError(error.line) from None


def _k_anonymity(k: int) -> KAnonymity:
    try:
        return registry.construct(KAnonymity, {"k": k}, "k_anonymity")
    except ConfigError as error:
        raise InputError(error.line) from None


def _check_models(models: Sequence[PrivacyModel]) -> Sequence[PrivacyModel]:
    for model in models:
        if not isinstance(model, PrivacyModel):
            raise InputError(f"models: {type(model).__name__} is not a privacy model")
    return models


def _quasi_identifiers(
    data: Any, scales: Mapping[Any, str] | None
) -> list[tuple[str, pa.Array, Scale]]:
    """Name, values and scale of each quasi-identifier, in the table's order."""
    if isinstance(data, np.ndarray):
        if scales is not None:
            raise InputError("scales: the columns of an array are continuous; give a table instead")
        return _of_array(data)
    names = _names(data)
    if not scales:
        raise InputError("scales: a table needs the scale of every quasi-identifier")
    absent = [str(name) for name in scales if name not in names]
    if absent:
        near = "".join(did_you_mean(name, map(str, names)) for name in absent)
        raise InputError(f"scales: not in the data: {', '.join(absent)}{near}")
    known = [scale.value for scale in Scale]
    wrong = {str(name): scale for name, scale in scales.items() if scale not in known}
    if wrong:
        near = did_you_mean(next(iter(wrong.values())), known) if len(wrong) == 1 else ""
        raise InputError(f"scales: {', '.join(wrong)}: must be one of {', '.join(known)}{near}")
    return [
        (str(name), _column(data, name), Scale(scales[name])) for name in names if name in scales
    ]


def _of_array(data: npt.NDArray[Any]) -> list[tuple[str, pa.Array, Scale]]:
    if data.ndim != 2 or data.dtype.kind not in "fiub":
        raise InputError(
            f"data: an array must have numbers in 2 dimensions, not {data.dtype} in {data.ndim}"
        )
    return [
        (str(j), pa.array(column.astype(np.float64), from_pandas=True), Scale.CONTINUOUS)
        for j, column in enumerate(data.T)
    ]


def _names(data: Any) -> list[Any]:
    import pandas as pd

    if isinstance(data, pd.DataFrame | pa.Table):
        names = data.column_names if isinstance(data, pa.Table) else list(data.columns)
        require_distinct_names("data", names)
        return names
    kind = type(data).__name__
    raise InputError(f"data: must be a numpy array, a pandas or an Arrow table, not {kind}")


def _column(data: Any, name: Any) -> pa.Array:
    """A column as an Arrow array of a plain type. Missing values are null."""
    if isinstance(data, pa.Table):
        values = data.column(name).combine_chunks()
    else:
        try:
            values = pa.Array.from_pandas(data[name])
        except pa.ArrowException:  # its text may hold values
            raise InputError(f"column {name}: its values are not of one type") from None
        if isinstance(values, pa.ChunkedArray):
            values = values.combine_chunks()
    return _to_plain_type(f"column {name}", values)


def _to_plain_type(what: str, values: pa.Array) -> pa.Array:
    try:
        return normalize(values)
    except pa.ArrowException:  # its text may hold values
        raise InputError(f"{what}: values of type {values.type} can't be read") from None


def _decode(values: pa.Array) -> pa.Array:
    """The values without a dictionary."""
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _encode_protected(
    data: Any, models: Sequence[PrivacyModel], hierarchies: Mapping[str, Hierarchy]
) -> tuple[dict[str, Codes], dict[str, Reference]]:
    """The codes and references of the columns that models name."""
    codes: dict[str, Codes] = {}
    references: dict[str, Reference] = {}
    for model in models:
        if "attribute" in type(model).model_fields:
            name = model.model_dump()["attribute"]
            if isinstance(data, np.ndarray) or name not in _names(data):
                raise InputError(f"models: {model.type}: attribute must name a column of a table")
            column = _decode(_column(data, name))
            if not is_protectable(column.type):
                raise InputError(
                    f"models: {model.type}: column {name} is of type {column.type}, which "
                    "can't be protected; convert it to text or numbers"
                )
            found = list_protected_values(column, MISSING_TOKENS)
            codes[name] = code_among(column, MISSING_TOKENS, found.categories)
            references[name] = _along(name, found, hierarchies.get(name), model).reference
    return codes, references


def _along(name: str, values: Values, hierarchy: Hierarchy | None, model: PrivacyModel) -> Values:
    """The values with the levels of their hierarchy, if they have one."""
    if hierarchy is not None:
        try:
            return values.along(hierarchy.folded())
        except InputError as error:
            raise InputError(f"hierarchies: {name}: {error}") from None
    if model.by_hierarchy:
        raise InputError(f"models: {model.type}: {name} needs a hierarchy; give `hierarchies`")
    return values


def _target(
    data: Any, target: Any, scale: str | None, kernel: Kernel
) -> dict[str, tuple[Encoding, pa.Array]]:
    """The target's encoding and values by TARGET; empty without a target."""
    if target is None:
        if kernel.needs_target:
            raise InputError(f"target: kernel {kernel.type} needs one")
        return {}
    if isinstance(data, np.ndarray):
        values = _label(target, len(data))
    elif isinstance(target, Hashable) and target in _names(data):
        values = _column(data, target)
    else:
        raise InputError("target: must name a column of the table")
    if scale not in (None, Scale.CONTINUOUS, Scale.NOMINAL):
        raise InputError("target_scale: must be one of continuous, nominal")
    if kernel.needs_classes and scale == Scale.CONTINUOUS:
        raise InputError(f"target_scale: kernel {kernel.type} needs classes; make it nominal")
    target_scale_of = Scale(scale or find_target_scale(values.type, kernel.needs_classes))
    return {TARGET: _encoding(TARGET, "target", values, target_scale_of, None)}


def _label(target: Any, n: int) -> pa.Array:
    try:
        values = pa.array(np.asarray(target), from_pandas=True)
    except (pa.ArrowException, ValueError):  # their texts may hold values
        values = None
    if values is None or len(values) != n:
        raise InputError(f"target: must be {n} values of one type")
    return _to_plain_type("target", values)


def _hierarchies(
    hierarchies: Mapping[Any, Hierarchy | str | Path] | None,
    columns: Sequence[tuple[str, pa.Array, Scale]],
    models: Sequence[PrivacyModel],
) -> dict[str, Hierarchy]:
    allowed = [name for name, _, scale in columns if scale is Scale.NOMINAL]
    allowed += [model.column for model in models if model.column is not None]
    trees = {}
    for name, each in (hierarchies or {}).items():
        if str(name) not in allowed:
            raise InputError(
                f"hierarchies: {name}: not a column with the scale nominal, nor one that "
                "a model names"
            )
        trees[str(name)] = each if isinstance(each, Hierarchy) else read_hierarchy(each)
    return trees


def _encoding(
    id: str, name: str, values: pa.Array, scale: Scale, hierarchy: Hierarchy | None
) -> tuple[Encoding, pa.Array]:
    """Fits an encoding on a column. Returns it, and the values in the form that it takes."""
    order = None
    is_ordered = pa.types.is_dictionary(values.type) and values.type.ordered
    if is_ordered and scale is not Scale.CONTINUOUS and hierarchy is None:
        categories = values.dictionary
        occurs = pc.is_in(categories, value_set=values.dictionary_decode())
        order = tuple(categories.filter(occurs).to_pylist())
    values = _decode(values)
    if scale is Scale.CONTINUOUS:
        _check_numbers(name, values)
    column = Column(
        name,
        id,
        Role.QUASI_IDENTIFIER,
        values.type,
        "",
        scale=scale,
        order=order,
        hierarchy=hierarchy,
    )
    try:
        values = values if scale is Scale.CONTINUOUS else one_zero(values)
        # Sorted, since a sum of floats depends on their order.
        return fit_whole(column, values.take(pc.sort_indices(values))), values
    except pa.ArrowException:
        raise InputError(f"column {name}: {values.type} has no categories") from None
    except ConfigError as error:
        raise InputError(f"column {name}: its hierarchy {error.problems[0].text}") from None


def _check_numbers(name: str, values: pa.Array) -> None:
    kind = values.type
    if not (may_be_continuous(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise InputError(
            f"column {name}: continuous, but of type {kind}; convert it to numbers or dates, or "
            "choose another scale"
        )
    if infinite := int(np.isinf(to_float(values)).sum()):
        raise InputError(
            f"column {name}: {infinite} infinite values; make them missing, or leave these rows out"
        )
