"""The range of a cell."""

from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, PositiveFloat, model_validator

from anonlib.arrays import Bools, Floats
from anonlib.errors import InputError
from anonlib.recode import Cells, Column, Domain, Form, Recoder
from anonlib.recode._outward import Way, make_scalar, move_to_beginnings, move_to_multiples
from anonlib.recode.arrow import (
    Kind,
    accept_type,
    add_brackets,
    dump_json,
    find_type_kind,
    find_value_type,
    write_iso,
)
from anonlib.recode.grouped import group, order_ascending
from anonlib.table.schema import Scale

_NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)
_TIMES = (Kind.DATE, Kind.TIMESTAMP)


class Interval(Recoder):
    """The least and the greatest present value, both included; null where more than half are
    missing.

    It is a `struct<lower, upper>` of the column's own type, or text "[lower, upper]". In text,
    dates and timestamps are ISO 8601 (in UTC, with a `Z`, if the column has a time zone). Strings
    are JSON strings, so that commas in them are unambiguous. Strings compare by the column's
    `order`, else by code point.

    The ends are values of single persons. `round_to` moves them outwards: numbers to its multiples,
    dates and timestamps to the beginning of a day, month or year, in UTC. Where the type has no
    such value, the end is its first or last one; of dates and timestamps 9999-12-31 is the last.
    In floats a multiple is the float nearest to it: 3.8 is one of 0.1. `bottom` and `top` replace
    ends of numbers that are beyond them: read these ends as "or less" and "or more".

    Cost O(n log n).
    """

    type: ClassVar[str] = "interval"
    scales: ClassVar[frozenset[Scale]] = frozenset({Scale.CONTINUOUS, Scale.ORDINAL})
    releases: ClassVar[Form] = "interval"
    public_parameters: ClassVar[frozenset[str]] = frozenset({"round_to", "bottom", "top"})
    form: Literal["struct", "text"] = Field(
        default="struct", description="struct<lower, upper>, or text [lower, upper]"
    )
    round_to: PositiveFloat | Literal["day", "month", "year"] | None = Field(
        None,
        description="ends go outwards to multiples of this number; of dates and timestamps, to "
        "days, months or years",
    )
    bottom: float | None = Field(None, description="numbers: ends below it are released as it")
    top: float | None = Field(None, description="numbers: ends above it are released as it")

    @model_validator(mode="after")
    def _has_room(self) -> "Interval":
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise ValueError("bottom must be below top")
        return self

    @property
    def shows(self) -> str:
        if self.round_to:
            return ""
        limited = self.bottom is not None and self.top is not None
        rarest = "" if limited else ", or bottom and top for the rarest"
        return (
            "the ends of intervals are values of single persons; set round_to of recoder "
            f"interval{rarest}"
        )

    @property
    def exceeds_cells(self) -> bool:
        return any(each is not None for each in (self.round_to, self.bottom, self.top))

    def output(self, column: pa.DataType) -> pa.DataType:
        bound = accept_type(self.type, column)
        self._require_ends(bound)
        if self.form == "text":
            return pa.string()
        return pa.struct([("lower", bound), ("upper", bound)])

    def recode(self, values: Column, cells: Cells, domain: Domain) -> Column:
        self.output(values.type)
        groups = group(values, cells)
        places = order_ascending(groups, domain.order)
        lower = groups.values.take(pa.array(places[groups.start]))
        upper = groups.values.take(pa.array(places[groups.start + groups.count - 1]))
        lower, upper = self._code(self._round(lower, "down")), self._code(self._round(upper, "up"))
        if self.form == "text":
            return groups.spread(_text(lower, upper))
        return groups.spread(pa.StructArray.from_arrays([lower, upper], ["lower", "upper"]))

    def open_ends(self, low: Floats, high: Floats, column: pa.DataType) -> tuple[Floats, Floats]:
        """What is at `bottom` or `top` is infinite."""
        if self.bottom is not None:
            low = np.where(_are_at(low, self.bottom, column), -np.inf, low)
        if self.top is not None:
            high = np.where(_are_at(high, self.top, column), np.inf, high)
        return low, high

    def explain(self) -> str:
        if self.round_to is self.bottom is self.top is None:
            return ""
        text = "A range of all present values, both ends included; null where more than half are "
        text += "missing. Its ends are the least and the greatest present value"
        if isinstance(self.round_to, str):
            text += f", moved outwards to the beginning of a {self.round_to}"
        elif self.round_to is not None:
            text += f", moved outwards to multiples of {self.round_to:.15g}"
        ends = [
            f" Ends {far} {end:.15g} are released as {end:.15g}: read it as {end:.15g} or {more}."
            for end, far, more in ((self.bottom, "below", "less"), (self.top, "above", "more"))
            if end is not None
        ]
        return f"{text}.{''.join(ends)}"

    def _require_ends(self, column: pa.DataType) -> None:
        """Raises InputError if the parameters do not fit ends of this type."""
        times = find_type_kind(column) in _TIMES
        given = [] if times or self.round_to is None else [("round_to", self.round_to)]
        given += [(n, v) for n in ("bottom", "top") if (v := getattr(self, n)) is not None]
        if times and isinstance(self.round_to, float):
            raise InputError(f"round_to must be day, month or year for a column of type {column}")
        for name, value in given:
            try:
                if find_type_kind(column) not in _NUMBERS or isinstance(value, str):
                    raise ValueError
                make_scalar(value, column)
            except (ValueError, pa.ArrowException):
                raise InputError(
                    f"{name} does not fit a column of type {column}; name a number that the type "
                    "has, and no number for text, dates and timestamps"
                ) from None

    def _round(self, ends: Column, way: Way) -> Column:
        """Moves ends outwards: lower ends down, upper ends up."""
        if self.round_to is None:
            return ends
        if isinstance(self.round_to, str):
            return move_to_beginnings(ends, self.round_to, way)
        return move_to_multiples(ends, self.round_to, way)

    def _code(self, ends: Column) -> Column:
        """Limits ends to `bottom` and `top`."""
        if self.bottom is not None:
            ends = pc.max_element_wise(ends, make_scalar(self.bottom, ends.type), skip_nulls=False)
        if self.top is not None:
            ends = pc.min_element_wise(ends, make_scalar(self.top, ends.type), skip_nulls=False)
        return ends


def _are_at(ends: Floats, limit: float, column: pa.DataType) -> Bools:
    """bool[n]. Whether ends are a limit that a column of this type has."""
    bound = find_value_type(column)
    # Texts of float32 and decimals, read as float64, may differ in the last bits.
    precision = np.float32 if pa.types.is_float32(bound) else np.float64
    at = float(make_scalar(limit, bound).as_py())
    near: Bools = np.abs(ends - at) <= 2 * float(np.spacing(precision(abs(at))))
    return near


def _text(lower: Column, upper: Column) -> Column:
    write = dump_json if find_type_kind(lower.type) is Kind.TEXT else write_iso
    return add_brackets(pc.binary_join_element_wise(write(lower), write(upper), ", "))
