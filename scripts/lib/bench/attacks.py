"""Attacks and their controls by kernel and k, in memory: Markdown tables of risks and intervals.

    scripts/bench attacks [--tables adult census generator] [--k 2 5 10 50] [--attempts 2000]
        [--rows 20000] [--differencing | --minimality]

`mdav` and `mondrian` release centroids, medians and modes, `peel` releases nodes of hierarchies (of
Adult: conf/adult_hierarchies.yaml with the occupation as sensitive; of other tables: the value or
the root). `raw` is the table as it is. Tables have at most `--rows` rows; Adult is whole.
`--differencing` attacks pairs of releases instead, with values and with intervals and sets;
`--minimality` releases of nodes that have two sensitive values in each class.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import yaml

sys.path.insert(0, str(Path(__file__).parents[3]))
sys.path.insert(0, str(Path(__file__).parent))
from kernels import DATA

import anonlib
from anonlib.measure import Measure
from anonlib.measure.risk.differencing import Differencing
from anonlib.measure.risk.downcoding import Downcoding
from anonlib.measure.risk.inference import Inference
from anonlib.measure.risk.linkability import Linkability
from anonlib.measure.risk.membership import Membership
from anonlib.measure.risk.minimality import Minimality
from anonlib.measure.risk.singling_out import SinglingOut
from tests.attack_tables import as_it_is, by_engine, figures_of, make_case

HOME = Path(__file__).parents[3]
#: Of census_income_kdd: quasi-identifiers by scale; major_occupation_code is sensitive.
CENSUS = {
    "age": "continuous",
    "wage_per_hour": "continuous",
    "weeks_worked_in_year": "continuous",
    "education": "nominal",
    "marital_stat": "nominal",
    "race": "nominal",
    "sex": "nominal",
    "class_of_worker": "nominal",
}
#: The same of the generator's table; the diagnosis is sensitive.
GENERATOR = {
    "age": "continuous",
    "hours": "continuous",
    "zip": "nominal",
    "sex": "nominal",
    "marital_status": "nominal",
    "education": "nominal",
}


def adult(nodes: bool, _: int) -> tuple[pa.Table, dict[str, Any]]:
    path = HOME / "conf" / ("adult_hierarchies.yaml" if nodes else "adult.yaml")
    config = yaml.safe_load(path.read_text())
    for column in config["attributes"].values():
        if "hierarchy" in column:
            column["hierarchy"] = str(path.parent / column["hierarchy"])
    if nodes:
        config["attributes"]["occupation"] = {"role": "sensitive"}
    frame = pd.read_csv(DATA / "adult" / "adult_train.csv.gz", skipinitialspace=True)
    if nodes:  # as in this config
        frame = frame.replace("?", None)
        frame["age"] = frame["age"].astype(str)
    return pa.Table.from_pandas(frame, preserve_index=False), config


def census(nodes: bool, rows: int) -> tuple[pa.Table, dict[str, Any]]:
    path = DATA / "census_income_kdd" / "census_income_kdd_train.csv.gz"
    frame = pd.read_csv(path, nrows=rows, skipinitialspace=True)
    secret = "major_occupation_code"
    table = pa.Table.from_pandas(frame[[*CENSUS, secret]], preserve_index=False)
    return table, plain(CENSUS, secret, nodes)


def generator(nodes: bool, rows: int) -> tuple[pa.Table, dict[str, Any]]:
    from anonlib.source.generator import generate
    from anonlib.spark.session import session

    table = generate(session({}), rows, 1).select(*GENERATOR, "diagnosis").toArrow()
    return table, plain(GENERATOR, "diagnosis", nodes)


def plain(scales: dict[str, str], secret: str, nodes: bool) -> dict[str, Any]:
    """A config of quasi-identifiers and a sensitive column."""
    role = "quasi_identifier"
    columns = {n: {"role": role, "scale": "nominal" if nodes else s} for n, s in scales.items()}
    return {
        "attributes": {**columns, secret: {"role": "sensitive"}},
        "one_row_per_person": True,
        "recode": {"nominal": "lca"} if nodes else {},
        "partition": {"steps": [{"type": "tuples"}]} if nodes else {"max_rows": 20_000},
    }


TABLES = {"adult": adult, "census": census, "generator": generator}
#: Of `--differencing`: the kernels of both releases, and how many times k the other one has.
PAIRS = (
    ("mdav", "mondrian", 1),
    ("mdav", "mdav", 2),
    ("mondrian", "mondrian", 2),
    ("peel", "peel", 2),
)
FORMS = {
    "values": {},
    "intervals and sets": {"continuous": "interval", "ordinal": "interval", "nominal": "set"},
}
KERNELS = {"mdav": False, "mondrian": False, "peel": True}


def measure(name: str, given: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """The cells of a row of figures for each kernel and k."""
    n = given.attempts
    measures: tuple[Measure, ...] = (
        SinglingOut(attempts=n),
        Linkability(attempts=n),
        Inference(attempts=n),
        Membership(attempts=n),
        Downcoding(attempts=n),
    )
    for kernel, nodes in KERNELS.items():
        table, config = TABLES[name](nodes, given.rows)
        # The raw tables of mdav and mondrian are the same.
        for k in ([] if kernel == "mondrian" else [1]) + given.k:
            case = make_case(table, choose(config, kernel, k), as_it_is if k == 1 else None)
            cells = [f"{'raw' if k == 1 else k}"]
            begun = time.process_time()
            for each in measures:
                found = figures_of(case.findings(each))
                subjects = sorted({of for _, of in found})
                if each.type == "downcoding":  # the column that is narrowed down best
                    subjects = [max(subjects, key=lambda of: found["risk", of] or 0)]
                cells += [show(found, of) for of in subjects]
            label = f"`{kernel}`" if k > 1 else "`peel`'s columns" if nodes else "all columns"
            print(f"{name} {kernel} {k}: {time.process_time() - begun:.0f} s", file=sys.stderr)
            yield label, *cells


def difference(name: str, given: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """The cells of a row of figures for each pair of releases and form of their values."""
    attack = Differencing(attempts=given.attempts, source={"format": "delta", "path": "unused"})
    for (kernel, other, times), (form, recode) in product(PAIRS, FORMS.items()):
        nodes = KERNELS[kernel]
        if nodes and recode:
            continue
        table, config = TABLES[name](nodes, given.rows)
        config = {**config, "recode": {**config.get("recode", {}), **recode}}
        cells = [f"`{kernel}`, k", f"`{other}`, {'' if times == 1 else times}k"]
        cells.append("nodes" if nodes else form)
        for k in given.k:
            case = make_case(table, choose(config, kernel, k))
            chosen = anonlib.parse(choose(config, other, times * k))
            case = replace(case, other=by_engine(chosen)(case.rows))
            found = figures_of(case.findings(attack))
            cells.append(show(found, next(of for _, of in found)))
        yield tuple(cells)


def reason(name: str, given: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """The cells of a row for each kernel of nodes and k, with 2-diversity."""
    measures = Minimality(attempts=given.attempts), Inference(attempts=given.attempts)
    table, config = TABLES[name](True, given.rows)
    for kernel, k in product(("peel", "full_domain"), given.k):
        chosen = choose(config, kernel, k)
        chosen["privacy"]["models"].append({"type": "l_diversity", "l": 2})
        case = make_case(table, chosen)
        cells = [f"`{kernel}`", str(k)]
        for each in measures:
            found = figures_of(case.findings(each))
            of = next(of for _, of in found)
            cells += [f"{found['attempts', of] or 0:.0f}", show(found, of)]
        yield tuple(cells)


def choose(config: dict[str, Any], kernel: str, k: int) -> dict[str, Any]:
    """The config with a kernel and a k, without measures."""
    chosen = config | {
        "source": {"format": "parquet", "path": "unused/source"},
        "privacy": {"models": [{"type": "k_anonymity", "k": max(k, 2)}]},
        "kernel": {"type": kernel},
        "release": {"path": "unused/release"},
        "seed": 7,
    }
    return {key: value for key, value in chosen.items() if key not in ("evaluate", "gates")}


def show(found: Mapping[tuple[str, str], float | None], of: str) -> str:
    """Both rates, the risk and its interval."""
    names = "attack_rate", "control_rate", "risk", "low", "high"
    values = [found[name, of] for name in names]
    if None in values:
        return "-"
    attack, control, risk, low, high = (f"{value:.3f}" for value in values)
    return f"{attack} / {control}: **{risk}** ({low}-{high})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=[*TABLES])
    parser.add_argument("--k", nargs="+", type=int, default=[2, 5, 10, 50])
    parser.add_argument("--attempts", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--differencing", action="store_true")
    parser.add_argument("--minimality", action="store_true")
    given = parser.parse_args()
    heads = ["kernel", "k", "singling out, several columns", "singling out, one column"]
    heads += ["linkability", "inference", "membership", "downcoding, worst column"]
    if given.differencing:
        heads = ["this release", "the other one", "released as", *(f"k = {k}" for k in given.k)]
    rows = difference if given.differencing else reason if given.minimality else measure
    if given.minimality:
        heads = ["kernel", "k", "attempts", "minimality", "attempts", "inference"]
    for name in given.tables:
        print(f"\n{name}\n\n| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
        for cells in rows(name, given):
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
