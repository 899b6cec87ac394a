"""Relations of columns: what they find, and that chance makes none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonlib.content.relations import (
    _count_rising,
    correct_chance,
    expect_equal,
    find_on_line,
    measure_codes,
    measure_order,
    measure_prediction,
)

N = 1000


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


class TestCodes:
    @pytest.mark.parametrize("n_codes", [2, 16, 200])
    def test_one_to_one(self, n_codes: int) -> None:
        a = random().integers(0, n_codes, N)
        assert measure_codes(a, a * 7 + 3) == pytest.approx(1)
        assert abs(measure_codes(a, random(1).permutation(a))) < 0.3
        some = np.where(np.arange(N) % 50 == 0, a + 1, a)  # another code in 2 % of the rows
        assert measure_codes(a, some) > 0.9

    def test_groups_are_not_one_to_one(self) -> None:
        a = random().integers(0, 16, N)
        assert measure_codes(a, a // 2) < 0.6
        assert measure_codes(a // 2, a) < 0.6

    def test_groups_of_values_of_equal_size(self) -> None:
        """Of each code one pair counts, although all pairs are as frequent."""
        a = np.arange(N) // 2
        assert measure_codes(a % 5, a) < 0.1
        assert measure_codes(a, a % 5) < 0.1

    @pytest.mark.parametrize(("n_rare", "told"), [(2, False), (3, False), (5, True)])
    def test_rare_codes_may_agree_by_chance(self, n_rare: int, *, told: bool) -> None:
        """Of 1000 rows three are 2e8 ways to be rare, five are 8e12."""
        a = (np.arange(N) < n_rare).astype(np.int64)
        assert (measure_codes(a, a) == pytest.approx(1)) is told

    def test_a_code_of_most_rows_is_no_evidence(self) -> None:
        a, b = ((random(seed).random(N) < 0.02).astype(np.int64) for seed in (1, 2))
        assert (a == b).mean() > 0.95
        assert measure_codes(a, b) < 0.1

    def test_codes_of_their_own_say_nothing(self) -> None:
        a = np.arange(N)
        assert measure_codes(a, a) == 0
        a[:251] = a[251:502]  # half of the rows have a twin
        assert measure_codes(a, a) == pytest.approx(1, abs=0.01)
        a[:2] = N, N + 1
        assert measure_codes(a, a) == 0

    def test_a_frequent_code_that_others_share_is_no_relation(self) -> None:
        """Zeros of the same rows beside numbers that are all different."""
        a = np.where(np.arange(N) < 900, 0, np.arange(N))
        assert measure_codes(a, np.where(a == 0, 0, random().permutation(N) + N)) == 0

    def test_constants_and_no_rows(self) -> None:
        none = np.zeros(0, np.int64)
        assert measure_codes(none, none) == 0
        assert measure_codes(np.zeros(N, np.int64), np.zeros(N, np.int64)) == 0


def test_equal_by_chance() -> None:
    """Of ten rows, 3 and 2 have one value, 7 and 7 another; the last one has a value that only one
    of the columns has."""
    a, b = np.array([7, 7, 9, 9]), np.array([7, 9, 9, 11])
    assert expect_equal(a, b, np.array([2, 1, 6, 1])) == pytest.approx(0.3 * 0.2 + 0.7 * 0.7)
    none = np.zeros(0, np.int64)
    assert expect_equal(none, none, none) == 0


class TestPrediction:
    def test_groups_are_told_in_one_direction(self) -> None:
        a = random().integers(0, 16, N)
        assert measure_prediction(a, a // 2) == pytest.approx(1)
        assert measure_prediction(a // 2, a) < 0.6

    def test_what_chance_explains(self) -> None:
        a, b = (random(seed).integers(0, 5, N) for seed in (1, 2))
        assert abs(measure_prediction(a, b)) < 0.1
        rare = (random(3).random(N) < 0.03).astype(np.int64)
        assert abs(measure_prediction(a, rare)) < 0.1
        pairs = np.arange(N) // 2
        assert measure_prediction(pairs, b) < 0.1

    def test_a_rare_value_of_a_row_that_no_other_tells(self) -> None:
        labels, values = np.arange(N) // 2, np.zeros(N, np.int64)
        labels[-1], values[-1] = N, 1
        assert measure_prediction(labels, values) == 0

    def test_only_rows_that_are_told(self) -> None:
        a = random().integers(0, 4, N)
        own = np.where(np.arange(N) < N // 5, np.arange(N) + N, a)
        assert measure_prediction(own, a) == pytest.approx(0.8)

    def test_rows_that_differ(self) -> None:
        a = random().integers(0, 4, N)
        b = np.where(np.arange(N) < N // 100, a + 1, a)
        assert 0.97 < measure_prediction(a, b) < 1

    def test_labels_of_their_own_tell_nothing(self) -> None:
        none = np.zeros(0, np.int64)
        assert measure_prediction(none, none) == 0
        assert measure_prediction(np.arange(N), random().integers(0, 2, N)) == 0
        assert measure_prediction(np.arange(N) // 9, np.zeros(N, np.int64)) == 0


class TestOrder:
    @pytest.mark.parametrize(
        "function", [np.log, np.negative, lambda x: x // 500, lambda x: x * 0.2 + 3]
    )
    def test_functions(self, function: object) -> None:
        x = random().integers(1, 90_000, N).astype(np.float64)
        assert callable(function)
        assert measure_order(x, function(x)) == pytest.approx(1)

    def test_no_functions(self) -> None:
        x = random().integers(0, 60, N).astype(np.float64)
        assert measure_order(x, x + random(1).normal(size=N)) < 0.5  # nearer than the next value
        assert measure_order(x, random(1).permutation(x)) < 0.2
        most = np.where(random(2).random(N) < 0.97, 0.0, random(3).random(N))
        assert measure_order(x, most) < 0.2
        assert measure_order(most, x) < 0.2
        assert measure_order(np.zeros(N), x) < 0.2

    def test_no_rows_and_constants(self) -> None:
        assert measure_order(np.zeros(0), np.zeros(0)) == 0
        assert measure_order(np.arange(9.0), np.zeros(9)) == 0

    @given(st.lists(st.integers(0, 5), max_size=9))
    def test_rising_parts(self, numbers: list[int]) -> None:
        """As the best of all parts."""
        best = 0
        for chosen in range(2 ** len(numbers)):
            part = [n for i, n in enumerate(numbers) if chosen >> i & 1]
            best = max(best, len(part) if part == sorted(part) else 0)
        assert _count_rising(numbers) == best


class TestLine:
    def test_points_on_a_line(self) -> None:
        x = random().integers(0, 10**6, N).astype(np.float64)
        y = x * -0.3 + 7
        assert find_on_line(x, y).all()
        y[::20] = 5
        assert np.flatnonzero(~find_on_line(x, y)).tolist() == list(range(0, N, 20))
        x[3] = y[3] = np.inf
        y[4] = np.nan
        assert not find_on_line(x, y)[3:5].any()

    def test_points_near_a_line(self) -> None:
        x = random().integers(0, 10**6, N).astype(np.float64)
        assert find_on_line(x, x + random(1).normal(0, 1000, N)).mean() < 0.05
        assert find_on_line(x, random(1).permutation(x)).mean() < 0.05

    @pytest.mark.parametrize("far", [99_999_999, 999_999_999, -1e12, np.finfo(float).max])
    @pytest.mark.parametrize("share", [0.01, 0.04, 0.06, 0.08, 0.1])
    def test_codes_of_missing_values_make_no_line(self, far: float, share: float) -> None:
        x = np.arange(N, dtype=np.float64)
        missing = random(2).random(N) < share
        honest = np.where(missing, far, random(1).normal(100, 15, N).round(2))
        assert find_on_line(x, honest).mean() < 0.05
        assert find_on_line(honest, x).mean() < 0.05

    @pytest.mark.parametrize("far", [99_999_999, 999_999_999, -1e12, np.finfo(float).max])
    @pytest.mark.parametrize("share", [0.01, 0.04, 0.06, 0.08, 0.1, 0.15])
    def test_codes_of_missing_values_hide_no_line(self, far: float, share: float) -> None:
        x = random(3).permutation(N) + 5000.0
        missing = random(2).random(N) < share
        y = np.where(missing, far, x * -0.3 + 7)
        assert (find_on_line(x, y) == ~missing).all()
        assert (find_on_line(y, x) == ~missing).all()

    def test_heavy_tails(self) -> None:
        x = np.exp(random().normal(10, 3, N))
        assert find_on_line(x, x * 1.95583).all()
        assert find_on_line(x, (x * 1.95583).round(2)).mean() > 0.95
        assert find_on_line(np.arange(N, dtype=np.float64), x).mean() < 0.05
        assert find_on_line(x, random(1).permutation(x)).mean() < 0.05

    @pytest.mark.filterwarnings("error")
    def test_the_largest_numbers(self) -> None:
        """Differences of them are beyond all floats."""
        x = random().uniform(-1, 1, N) * np.finfo(float).max
        for y in (x / 2, x * 1e-300):
            assert find_on_line(x, y).all()
            assert find_on_line(y, x).all()
        assert find_on_line(np.arange(N, dtype=np.float64), x).mean() < 0.05
        assert find_on_line(x, random(1).permutation(x)).mean() < 0.05
        assert not find_on_line(x / 1e308 / 1e5, x).any()  # the slope itself is beyond

    def test_level_lines_and_few_points(self) -> None:
        x = np.arange(9.0)
        assert not find_on_line(x, np.zeros(9)).any()
        assert not find_on_line(np.zeros(9), x).any()
        assert not find_on_line(np.full(9, np.nan), x).any()
        assert not find_on_line(np.zeros(0), np.zeros(0)).any()


def test_shares_beyond_chance() -> None:
    assert correct_chance(0.9, 0.8) == pytest.approx(0.5)
    assert correct_chance(1.0, 1.0) == 0
