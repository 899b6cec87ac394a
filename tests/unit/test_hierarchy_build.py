"""Builders of hierarchies: names, places of what is odd, what is refused."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from anonlib.cli.hierarchy_parser import DATE_LEVELS
from anonlib.errors import InputError
from anonlib.hierarchy import Hierarchy
from anonlib.hierarchy import build as hierarchy_build
from anonlib.hierarchy import learn as hierarchy_learn
from anonlib.hierarchy.build import (
    dates,
    days_between,
    equal_frequency,
    intervals,
    mask,
    numbers_between,
    ordered_groups,
)
from anonlib.hierarchy.learn import frequency, target_aware


def ways(hierarchy: Hierarchy) -> dict[str, list[str]]:
    """The names above each leaf, up to the root."""
    names, parent = hierarchy.names, hierarchy.tree.parent
    found = {}
    for leaf in range(int(hierarchy.tree.high[-1])):
        node, way = leaf, []
        while node != len(names) - 1:
            node = int(parent[node])
            way.append(names[node])
        found[names[leaf]] = way
    return found


class TestIntervals:
    def test_whole_numbers(self) -> None:
        found = ways(intervals(pa.array([25, 0, 19, 4]), [5, 10]))
        assert found == {
            "0": ["0-4", "0-9", "*"],
            "4": ["0-4", "0-9", "*"],
            "19": ["15-19", "10-19", "*"],
            "25": ["25-29", "20-29", "*"],
        }

    @pytest.mark.parametrize(
        ("values", "widths", "origin", "name"),
        [
            (["-5", "25"], [10], 0, "[20, 30["),
            (["25", "3.5"], [10], 0, "[20, 30["),
            (["25", "3"], ["2.5"], 0, "[25, 27.5["),
            (["25", "3"], [1], 0, "[25, 26["),
            (["25", "3"], [10], -1, "[19, 29["),
            (["25", "3"], [10], "0.5", "[20.5, 30.5["),
            (["25", "3"], [10], 2, "22-31"),
            (["25", "1e1", "-.5"], [0.1], 0, "[25, 25.1["),
        ],
    )
    def test_names(self, values: list[str], widths: list[Any], origin: Any, name: str) -> None:
        assert ways(intervals(pa.array(values), widths, origin))["25"][0] == name

    def test_numbers_of_any_type(self) -> None:
        for values in (
            pa.array([1.5, 20.0]),
            pa.array([Decimal("1.50"), Decimal("20.00")]),
            pa.array(["1.5", "+20"]),
        ):
            found = intervals(values, [10])
            assert found.names[2:] == ("[20, 30[", "[0, 10[", "*")
            assert (found.places(values) == [0, 1]).all()

    def test_one_group_is_the_root(self) -> None:
        assert ways(intervals(pa.array([1, 2]), [5, 10])) == {"1": ["*"], "2": ["*"]}

    @pytest.mark.parametrize("widths", [[], [0], [-5], [5, 7], [10, 5], [5, 5], ["wide"], ["1/3"]])
    def test_widths_that_are_none(self, widths: list[Any]) -> None:
        with pytest.raises(InputError, match=r"^widths: "):
            intervals(pa.array([1, 2]), widths)

    def test_values_that_are_no_numbers(self) -> None:
        values = pa.array(["secret", "1", "inf", "nan", "1e9999", "2"])
        with pytest.raises(InputError, match=r"^4 of 6 distinct values are no numbers") as caught:
            intervals(values, [5])
        assert "secret" not in str(caught.value)


class TestEqualFrequency:
    def test_names(self) -> None:
        values, counts = pa.array([1, 2, 4, 8, 16, 40]), np.array([1, 1, 1, 1, 1, 20])
        found = ways(equal_frequency(values, counts, [12, 2]))
        assert found == {
            "1": ["1-3", "1-39", "*"],
            "2": ["1-3", "1-39", "*"],
            "4": ["4-15", "1-39", "*"],
            "8": ["4-15", "1-39", "*"],
            "16": ["1-39", "*"],
            "40": ["*"],
        }
        found = ways(equal_frequency(pa.array([1.5, 2, 3, 4]), np.ones(4, np.int64), [2]))
        assert [way[0] for way in found.values()] == ["[1.5, 3[", "[1.5, 3[", "[3, 4]", "[3, 4]"]

    def test_equal_numbers_are_together(self) -> None:
        values, counts = pa.array(["1", "1.0", "2", "3"]), np.array([2, 2, 2, 2])
        found = ways(equal_frequency(values, counts, [2]))
        assert found["1"] == found["1.0"] == ["1-1", "*"]

    @pytest.mark.parametrize("parts", [[], [1], [4, 1], [4, 3], [4, 4], [2, 4], [4, 0]])
    def test_parts_that_are_none(self, parts: list[int]) -> None:
        with pytest.raises(InputError, match=r"^parts: "):
            equal_frequency(pa.array([1, 2]), np.ones(2, np.int64), parts)


class TestMask:
    def test_zip_codes(self) -> None:
        found = ways(mask(pa.array(["12345", "12399", "20000"])))
        assert found["12345"] == ["1234*", "123**", "12***", "1****", "*"]
        assert found["20000"] == ["2000*", "200**", "20***", "2****", "*"]

    def test_some_levels(self) -> None:
        assert ways(mask(pa.array(["12345", "20000"]), [2, 4]))["12345"] == ["123**", "1****", "*"]

    def test_values_of_different_length(self) -> None:
        found = ways(mask(pa.array(["12345", "1234", "12", "", "7"])))
        assert found["12345"] == ["1234*", "123**", "12***", "1****", "*"]
        assert found["1234"] == ["1234*", "123**", "12***", "1****", "*"]
        assert found["12"] == ["12***", "1****", "*"]
        assert found["7"] == ["7****", "*"]
        assert found[""] == ["*"]

    def test_filled_up_on_the_left(self) -> None:
        found = ways(mask(pa.array([1234, 1299, 12345]), pad="0"))
        assert found["1234"] == ["0123*", "012**", "01***", "0****", "*"]
        assert found["12345"][-2] == "1****"

    @pytest.mark.parametrize("masked", [[], [0], [2, 2], [3, 1]])
    def test_masks_that_are_none(self, masked: list[int]) -> None:
        with pytest.raises(InputError, match=r"^masked: "):
            mask(pa.array(["12"]), masked)

    def test_what_fills_up_is_one_character(self) -> None:
        with pytest.raises(InputError, match="pad: must be one character"):
            mask(pa.array(["12"]), pad="00")

    def test_values_that_look_like_masks(self) -> None:
        with pytest.raises(InputError, match="1 values or groups would have the name of another"):
            mask(pa.array(["1234*", "12345", "20000"]))


class TestDates:
    def test_names(self) -> None:
        values = pa.array([date(2020, 1, 31), date(2020, 5, 1), date(1999, 12, 31), date(7, 1, 1)])
        found = ways(dates(values))
        assert found["2020-01-31"] == ["2020-01", "2020-Q1", "2020", "2020s", "*"]
        assert found["1999-12-31"] == ["1999-12", "1999-Q4", "1999", "1990s", "*"]
        assert found["0007-01-01"] == ["0007-01", "0007-Q1", "0007", "0000s", "*"]

    def test_times_have_days(self) -> None:
        values = pa.array([datetime(2020, 1, 31, 10), datetime(2020, 2, 1, 23, 59)])  # noqa: DTZ001
        found = dates(values, ["day", "month"])
        assert ways(found)[found.names[0]] == ["2020-01-31", "2020-01", "*"]
        assert (found.places(values) == [0, 1]).all()

    def test_values_that_are_no_dates(self) -> None:
        with pytest.raises(InputError, match=r"^3 of 4 distinct values are no dates such as"):
            dates(pa.array(["2020-02-30", "2020-02-28", "28.2.2020", "2020-02-28secret"]))

    @pytest.mark.parametrize("levels", [[], ["week"]])
    def test_levels_that_are_none(self, levels: list[str]) -> None:
        with pytest.raises(
            InputError, match="levels: must be some of day, month, quarter, year, decade"
        ):
            dates(pa.array(["2020-02-28"]), levels)

    def test_help_names_all_levels(self) -> None:
        assert tuple(hierarchy_build.DATE_LEVELS) == DATE_LEVELS


class TestGroups:
    def test_names(self) -> None:
        found = ways(ordered_groups(pa.array(list("abcdefg")), [2, 2]))
        assert found["a"] == ["a to b", "a to d", "*"]
        assert found["f"] == ["e to f", "e to g", "*"]
        assert found["g"] == ["e to g", "*"]

    @pytest.mark.parametrize("fan_outs", [[], [1], [2, 1]])
    def test_fan_outs_that_are_none(self, fan_outs: list[int]) -> None:
        with pytest.raises(InputError, match=r"^fan_outs: "):
            ordered_groups(pa.array(["a"]), fan_outs)


class TestFromData:
    ROWS = {"a": 1, "b": 1, "c": 2, "d": 5, "e": 8}  # noqa: RUF012

    def test_frequency(self) -> None:
        values, counts = pa.array(list(self.ROWS)), np.array(list(self.ROWS.values()))
        found = ways(frequency(values, counts))
        assert found["a"] == ["{a, b}", "{a, b, c}", "{a and 3 more}", "*"]
        assert found["e"] == ["*"]
        found = ways(frequency(values, counts, 3))
        assert found["a"] == ["{a, b, c}", "*"]

    def test_target_aware(self) -> None:
        """What is alike in the target stands together, however frequent it is."""
        values = pa.array(list("aabbccdd"))
        classes = pa.array(["x", "y"] * 4)
        counts = np.array([90, 10, 1, 9, 18, 2, 10, 90])
        found = ways(target_aware(values, classes, counts))
        assert found == {
            "a": ["{a, c}", "*"],
            "c": ["{a, c}", "*"],
            "b": ["{b, d}", "*"],
            "d": ["{b, d}", "*"],
        }

    def test_names_are_short_and_single(self) -> None:
        long = "x" * 100
        given = [f"{long}1", f"{long}2", f"{long}3", "y"]
        found = frequency(pa.array(given), np.array([1, 2, 3, 1000]))
        start = "x" * 39 + "…"
        assert ways(found)[f"{long}1"][:2] == [
            f"{{{start}, {start}}}",
            f"{{{start}, {start}, {start}}}",
        ]
        found = frequency(pa.array(["{y, z}", "y", "z"]), np.array([1000, 20, 21]))
        assert ways(found)["y"] == ["{y, z} (2)", "*"]

    def test_too_large_for_pairs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hierarchy_learn, "MOST_VALUES", 2)
        values, classes = pa.array(["a", "b", "secret"]), pa.array(["x", "y", "hush"])
        with pytest.raises(InputError, match="3 values; a target-aware tree takes 2 at most"):
            target_aware(values, classes, np.ones(3, np.int64))
        monkeypatch.setattr(hierarchy_learn, "MOST_CLASSES", 2)
        with pytest.raises(InputError, match="3 classes of the target; at most 2 are allowed"):
            target_aware(values[:2].take(pa.array([0, 1, 1])), classes, np.ones(3, np.int64))

    def test_fan_outs_that_are_none(self) -> None:
        values, counts = pa.array(["a", "b"]), np.ones(2, np.int64)
        with pytest.raises(InputError, match="fan_out: must be at least 2"):
            frequency(values, counts, 1)
        with pytest.raises(InputError, match="fan_out: must be at least 2"):
            target_aware(values, values, counts, 1)


BUILDERS: dict[str, Callable[..., Hierarchy]] = {
    "intervals": lambda values, **more: intervals(values, [5], **more),
    "parts": lambda values, **more: equal_frequency(
        values, np.ones(len(values), np.int64), [2], **more
    ),
    "mask": mask,
    "dates": dates,
    "groups": lambda values, **more: ordered_groups(values, [2], **more),
    "frequency": lambda values, **more: frequency(values, np.ones(len(values), np.int64), **more),
    "target": lambda values, **more: target_aware(
        values, values, np.ones(len(values), np.int64), **more
    ),
}


@pytest.mark.parametrize("kind", BUILDERS)
class TestAll:
    def value(self, kind: str) -> str:
        return "2020-01-31" if kind == "dates" else "12"

    def test_no_values(self, kind: str) -> None:
        for values in ([], [None]):
            with pytest.raises(InputError, match="there are no values"):
                BUILDERS[kind](pa.array(values, pa.string()))

    def test_one_value(self, kind: str) -> None:
        found = BUILDERS[kind](pa.array([self.value(kind), None, self.value(kind)]))
        assert found.names == (self.value(kind), "*")

    def test_roots_name(self, kind: str) -> None:
        value = self.value(kind)
        assert BUILDERS[kind](pa.array([value]), root="all").names[-1] == "all"
        with pytest.raises(InputError, match="root: a value has this name; choose another"):
            BUILDERS[kind](pa.array([value]), root=value)


class TestRanges:
    def test_numbers(self) -> None:
        assert numbers_between("17", "20").to_pylist() == ["17", "18", "19", "20"]
        assert numbers_between("-1", "0.5", "0.5").to_pylist() == ["-1", "-0.5", "0", "0.5"]
        assert numbers_between(0, 5, 2).to_pylist() == ["0", "2", "4"]

    @pytest.mark.parametrize("given", [(2, 1, 1), (1, 2, 0), (0, 10_000_000, 1), ("a", 2, 1)])
    def test_ranges_that_are_none(self, given: tuple[Any, Any, Any]) -> None:
        with pytest.raises(InputError, match="range"):
            numbers_between(*given)

    def test_days(self) -> None:
        found = days_between("2020-02-28", "2020-03-01")
        assert found.to_pylist() == ["2020-02-28", "2020-02-29", "2020-03-01"]
        assert days_between("2020-02-28", "2020-03-01", "2").to_pylist()[-1] == "2020-03-01"

    @pytest.mark.parametrize(
        "given",
        [("2020-01-02", "2020-01-01", 1), ("a", "2020-01-01", 1), ("2020-01-01",) * 2 + (0.5,)],
    )
    def test_days_that_are_none(self, given: tuple[Any, Any, Any]) -> None:
        with pytest.raises(InputError, match="a range of days must ascend"):
            days_between(*given)
