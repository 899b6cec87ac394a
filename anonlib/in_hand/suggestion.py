"""Tries kernels and k on a sample of a table in hand, and suggests three of them."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from anonlib import registry
from anonlib.auditing.report import rate_risk, rate_sizes
from anonlib.config.checks import check_config
from anonlib.config.dump import format_config
from anonlib.config.minimum_k import check_minimum_k
from anonlib.config.model import Config, Gate, PartitionSection
from anonlib.config.policies import ClassSize
from anonlib.config.policies.judgement import judge_rules
from anonlib.errors import AnonlibError, ConfigError, InputError, Problem
from anonlib.evaluation.class_gates import find_class_risk, list_broken
from anonlib.in_hand.proof import audit_release
from anonlib.privacy.k_anonymity import KAnonymity
from anonlib.table.schema import Role
from anonlib.text import tell_apart

if TYPE_CHECKING:
    from anonlib.local.rows import Rows

#: The kernels that are tried, besides that of the config: along hierarchies, and others.
ALONG_HIERARCHIES = ("peel", "greedy", "full_domain")
OTHERS = ("mondrian", "mdav", "refine")
#: How many blocks a sample has, at least, where partitioners are compared; the least block.
N_BLOCKS, LEAST_BLOCK = 4, 100
#: The rows that warm a kernel up.
WARM_ROWS = 200
#: How many configs are suggested, if as many attempts passed.
N_CHOICES = 3
#: How many times quicker an attempt is before it is called so: clocks waver.
QUICKER = 1.1
#: Seconds below which a time tells nothing of kernels.
LEAST_SECONDS = 0.5


@dataclass(frozen=True)
class SuggestOptions:
    """What is tried, and how much.

    Attributes:
        seconds: The time after which no attempt is begun. The first one is always made.
        rows: About the most rows of the sample, at least 100.
        ks: The k to try, besides that of the config; each at least 2.
        kernels: The kernels to try; if empty, some that suit the config.
        partitioners: The partitioners to compare with that of the config.

    Numbers and arrays of numpy are taken as well. Raises InputError with all that are of a wrong
    kind.
    """

    seconds: float
    rows: int
    ks: Sequence[int]
    kernels: Sequence[str]
    partitioners: Sequence[str]

    def __post_init__(self) -> None:
        values: dict[str, Any] = {name: _plain(value) for name, value in vars(self).items()}
        seconds, n_rows, ks = values["seconds"], values["rows"], values["ks"]
        wrong = []
        # NaN is not above 0, and no time is after it.
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
            wrong.append("seconds: must be a number above 0")
        if isinstance(n_rows, bool) or not isinstance(n_rows, int) or n_rows < 100:
            wrong.append("rows: must be a whole number, at least 100")
        if not isinstance(ks, list) or not all(isinstance(k, int) and k >= 2 for k in ks):
            wrong.append("ks: must be a list of whole numbers, each at least 2, such as [5, 10]")
        for name in ("kernels", "partitioners"):
            own = values[name]
            if not isinstance(own, list) or not all(isinstance(each, str) for each in own):
                wrong.append(f"{name}: must be a list of names, such as ['mondrian']")
        if wrong:
            raise InputError("; ".join(wrong))
        for name, value in values.items():
            object.__setattr__(self, name, value)


def _plain(value: Any) -> Any:
    """A number or an array of numpy, or any sequence but a text, as Python has it: a list."""
    value = value.tolist() if hasattr(value, "tolist") else value
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return [_plain(each) for each in value] if is_list else value


@dataclass(frozen=True)
class Attempt:
    """One release of the sample, which nobody gets.

    Attributes:
        kernel: The kernel.
        k: The fewest persons of a class.
        config: The config.
        loss: The metric ncp: the mean extent of a row's cell, 1 for a suppressed row. If no
            quasi-identifier varies, it is the share of suppressed rows: no other can lose. None if
            the attempt failed.
        chance: The mean chance of a person to be found again; None if the attempt failed, or with
            a unit.
        n_suppressed: Rows that were suppressed.
        seconds: The time that it took.
        sizes: The number of classes, by their size in rows. Empty if the attempt failed, or
            with a unit.
        least_persons: Persons of the smallest class; 0 if the attempt failed.
        error: Why it failed, without raw values; empty if it did not.
    """

    kernel: str
    k: int
    config: Config
    loss: float | None = None
    chance: float | None = None
    n_suppressed: int = 0
    seconds: float = 0.0
    sizes: Mapping[int, int] = field(default_factory=dict)
    least_persons: int = 0
    error: str = ""

    @property
    def risks(self) -> dict[str, float]:
        """How likely persons are found, by the names of RISKS. With a unit only the largest chance
        is known; none if the attempt failed."""
        return rate_sizes(self.sizes, self.least_persons)

    @property
    def risk(self) -> float:
        """The chance; with a unit 1 / k, which bounds it."""
        return 1 / self.k if self.chance is None else self.chance

    @property
    def config_yaml(self) -> str:
        """The config as YAML."""
        return format_config(self.config)


@dataclass(frozen=True)
class Choice:
    """A suggested config.

    Attributes:
        name: What it is best at.
        reason: A sentence with its figures.
        config: The config, for the whole table. `config_yaml` is its text.
    """

    name: str
    reason: str
    config: Config

    @property
    def config_yaml(self) -> str:
        """The config as YAML."""
        return format_config(self.config)


@dataclass(frozen=True, repr=False)
class Suggestion:
    """What was tried, and what is best.

    Attributes:
        config: The config that was given.
        choices: Three configs; as many as attempts passed, if these are fewer.
        attempts: All attempts, in the order in which they were made.
        notes: How many rows and attempts there were.
    """

    config: Config
    choices: tuple[Choice, ...]
    attempts: tuple[Attempt, ...]
    notes: tuple[str, ...]

    @property
    def frontier(self) -> tuple[Attempt, ...]:
        """The attempts that no other one is better than in loss and in risk, by risk."""
        return tuple(_list_frontier(self.attempts))

    def for_table(self, config: Config) -> "Suggestion":
        """The suggestion for a table, if the attempts were made on a sample that was read of it.

        config: The config of the table. That of the sample differs in what is not tried.
        """

        def adapt(own: Config) -> Config:
            names = ("partition", "kernel", "privacy")
            return config.model_copy(update={name: getattr(own, name) for name in names})

        return Suggestion(
            config,
            tuple(replace(each, config=adapt(each.config)) for each in self.choices),
            tuple(replace(each, config=adapt(each.config)) for each in self.attempts),
            self.notes,
        )

    def report(self, path: str | Path | None = None) -> str:
        """The page as HTML: loss against risk, the choices, all attempts, and the config's gates as
        lines; with `path` it is written there, and that path comes back. It is private. Its configs
        lack what may be data or a secret, such as orders: `config_yaml` has them.

        path: A file that gets the page. Only its owner can read it. A page of anonlib that is
            there is replaced.

        Raises InputError if another file is there, or the page can't be written.
        """
        from anonlib.pages.choices import render_suggestion
        from anonlib.pages.output import replace_page

        page = render_suggestion(
            self.choices, self.attempts, self.frontier, self.notes, self.config
        )
        if path is None:
            return page
        replace_page(path, page)
        return str(path)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for JSON."""
        names = ("kernel", "k", "loss", "chance", "n_suppressed", "seconds", "error")
        return {
            "choices": [
                {
                    "name": c.name,
                    "reason": c.reason,
                    "kernel": c.config.kernel.type,
                    "k": c.config.k,
                }
                for c in self.choices
            ],
            "attempts": [{name: getattr(a, name) for name in names} for a in self.attempts],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        lines = [f"  {choice.name}: {choice.reason}" for choice in self.choices]
        return "\n".join(["Suggestion:", *lines, *[f"  note: {note}" for note in self.notes]])

    def _repr_html_(self) -> str:
        from anonlib.pages.words import mark_code

        lines = [(choice.name, choice.reason) for choice in self.choices]
        lines += [("note", note) for note in self.notes]
        rows = [f"<tr><th>{mark_code(n)}</th><td>{mark_code(t)}</td></tr>" for n, t in lines]
        return f"<table>{''.join(rows)}</table>"


def suggest_settings(
    rows: "Rows",
    config: Config,
    options: SuggestOptions,
    notes: Sequence[str] = (),
    gates_of: Config | None = None,
) -> Suggestion:
    """Tries partitioners, then kernels and k on rows, until the time is up.

    Args:
        rows: The rows, or a sample of them.
        config: The config that attempts differ from in partitioner, kernel and k only.
        options: What is tried.
        notes: Notes on the config.
        gates_of: The config whose gates releases by the choices have to pass; by default `config`.

    Raises:
        ConfigError: A kernel or a partitioner can't be built, or the config's partition is not one
            step that another one can stand for.
    """
    ks, kernels = options.ks, options.kernels
    _warm_up(rows, [each for each in _list_candidates(config, ks, kernels) if not each.error])
    end = perf_counter() + options.seconds
    cut, compared = _choose_partitioner(rows, config, options.partitioners, end)
    combinations = [*_list_candidates(cut, ks, kernels)]
    candidates = [each for each in combinations if not each.error]
    attempts: list[Attempt] = []
    for each in candidates:
        if attempts and perf_counter() > end:
            break
        attempts.append(_attempt(rows, each))
    gates_of = config if gates_of is None else gates_of
    within, told = _judge(attempts, gates_of)
    choices = tuple(_warn(each, attempts, gates_of) for each in _choose(within, config.k))
    said = [f"{len(attempts)} of {len(candidates)} attempts, on {rows.table.num_rows:,} rows"]
    said += [f"{a.kernel}, k = {a.k}: {a.error}" for a in attempts if a.error]
    if not any(len(rows.table.column(c.id).unique()) > 1 for c in rows.schema.quasi_identifiers):
        said.append("no quasi-identifier varies in these rows: only suppressed rows lose anything")
    said += [*_tell_refused(combinations), *told, *_tell_lack(choices, attempts, within, config.k)]
    return Suggestion(config, choices, tuple(attempts), (*said, *compared, *notes))


def _judge(attempts: Sequence[Attempt], gates_of: Config) -> tuple[list[Attempt], list[str]]:
    """The attempts within the gates, or all if none is, and notes on the gates."""
    done = [each for each in attempts if each.loss is not None]
    broken = [dict(list_broken(gates_of, each.risks)) for each in done]
    within = [each for each, own in zip(done, broken, strict=True) if not own]
    notes = []
    if within and len(within) < len(done):
        names = ", ".join(dict.fromkeys(gate.text for own in broken for gate in own))
        n = len(done) - len(within)
        notes.append(f"{n} of {len(done)} attempts {'is' if n == 1 else 'are'} outside {names}")
        notes[-1] += ": a release by them would be refused, so none of them is a choice"
    elif done and not within:
        never = [gate for gate in gates_of.gates if all(gate in own for own in broken)]
        told = [f"{gate.text} (nearest: {_find_nearest(gate, broken)})" for gate in never]
        names = " nor ".join(told) or "all gates at once"
        notes.append(f"no attempt is within {names}: a release by a choice would be refused")
        notes[-1] += "; try other k, or let somebody look at the gates"
    unknown = [gate.text for gate in gates_of.gates if find_class_risk(gate, gates_of) is None]
    if done and unknown:
        one = len(unknown) == 1
        notes.append(
            f"the {'gate' if one else 'gates'} {', '.join(unknown)} {'was' if one else 'were'} not "
            f"tried on the sample: {'it' if one else 'they'} may refuse the release"
        )
    return within or done, notes


def _find_nearest(gate: Gate, broken: Sequence[Mapping[Gate, float]]) -> str:
    """The figure that is nearest to the bounds of a gate that all attempts break."""
    least, most = gate.bounds
    value = min((own[gate] for own in broken), key=lambda v: max(least - v, v - most))
    return tell_apart(value, gate.bounds)


def _warn(choice: Choice, attempts: Sequence[Attempt], gates_of: Config) -> Choice:
    """The choice whose reason says which gates it breaks."""
    (own,) = (each for each in attempts if each.config is choice.config)
    broken = [f"{g.text}: {tell_apart(v, g.bounds)}" for g, v in list_broken(gates_of, own.risks)]
    told = f" Outside the gate {'; '.join(broken)}; such a release is refused." if broken else ""
    return replace(choice, reason=f"{choice.reason}{told}")


def _tell_lack(
    choices: Sequence[Choice], attempts: Sequence[Attempt], within: Sequence[Attempt], k: int
) -> Iterator[str]:
    """What is said where there are fewer than three choices, or they have another k. within: The
    attempts that choices are of."""
    if not choices:
        yield "no attempt has a loss: there is no choice"
        return
    if choices[0].config.k != k:
        at_k = any(each.k == k and each.loss is not None for each in attempts)
        lacks = "is within the gates" if at_k else "has a loss"
        yield f"no attempt with k = {k} {lacks}: the choices have another k"
    if len(choices) < N_CHOICES:
        n = "1 attempt has" if len(choices) == 1 else f"{len(choices)} attempts have"
        is_gated = len(within) < sum(each.loss is not None for each in attempts)
        yield (
            f"only {n} a loss{' within the gates' if is_gated else ''}, of {len(attempts)} that "
            f"were made: so there are fewer than {N_CHOICES} choices; name more kernels or k, or "
            "give more seconds"
        )


def _choose_partitioner(
    rows: "Rows", config: Config, names: Sequence[str], end: float
) -> tuple[Config, list[str]]:
    """The config with the partitioner of the least loss, and a note on what was compared. After
    `end` none is begun but the first."""
    if not names:
        return config, []
    if len(config.partition.steps) > 1 or config.partition.controller or config.partition.by_tuples:
        text = "is more than cuts that another partitioner can make; leave out `partitioners`"
        raise ConfigError([Problem("partition.steps", text)])
    (step,) = config.partition.steps
    most = max(LEAST_BLOCK, min(config.partition.max_rows, rows.table.num_rows // N_BLOCKS))
    # All are made first: a name that no partitioner has is an error, however little time there is.
    others = [name for name in dict.fromkeys(names) if name != step.type]
    built = {name: _build("partitioner", name) for name in others}
    built = {step.type: step} | built
    tried: list[tuple[str, PartitionSection, Attempt]] = []
    for name, each in built.items():
        if tried and perf_counter() > end:
            break
        changed = config.partition.model_copy(update={"steps": (each,)})
        cut = changed.model_copy(update={"max_rows": most})
        attempt = Attempt(
            config.kernel.type, config.k, config.model_copy(update={"partition": cut})
        )
        tried.append((name, changed, _attempt(rows, attempt)))
    told = [
        f"{name} {each.error or 'no loss' if each.loss is None else format(each.loss, '.3g')}"
        for name, _, each in tried
    ]
    if len(tried) < len(built):
        told.append(f"the time was up after {len(tried)} of {len(built)} partitioners")
    note = f"loss by partitioner, in blocks of at most {most:,} rows: {'; '.join(told)}"
    done = [(each.loss, changed) for _, changed, each in tried if each.loss is not None]
    if not done:
        return config, [note]
    least = min(done, key=lambda pair: pair[0])[1]
    return config.model_copy(update={"partition": least}), [note]


def _list_candidates(
    config: Config, ks: Sequence[int], kernels: Sequence[str]
) -> Iterator[Attempt]:
    """All combinations, first those of the config's own k. Those that the operator's minimum or the
    config's policy refuses have an error."""
    own = config.kernel
    usual = ALONG_HIERARCHIES if own.needs_hierarchies else OTHERS
    names = dict.fromkeys([own.type, *(kernels or usual)])
    for k in dict.fromkeys([config.k, *sorted(ks)]):
        models = tuple(
            model.model_copy(update={"k": k}) if isinstance(model, KAnonymity) else model
            for model in config.privacy.models
        )
        privacy = config.privacy.model_copy(update={"models": models})
        for name in names:
            kernel = own if name == own.type else _build("kernel", name)
            changed = config.model_copy(update={"privacy": privacy, "kernel": kernel})
            yield Attempt(name, k, changed, error="; ".join(_list_refusals(changed)))


def _list_refusals(config: Config) -> Iterator[str]:
    """Why the operator's minimum or the policy refuses a config. Where classes are too small, it
    is the least size alone, so that the text is the same for all k that are refused."""
    for problem in check_minimum_k(config.privacy.models):
        yield problem.text.removeprefix(f"k is {config.k}; ")
    if config.policy is None:
        return
    for rule, verdict in zip(config.policy.rules, judge_rules(config), strict=True):
        if verdict.state == "not kept":
            found = f"asks for {rule.least} or more" if isinstance(rule, ClassSize) else ""
            yield f"policy {config.policy.name}, rule {rule.id}: {found or verdict.reason}"


def _build(family: str, name: str) -> Any:
    """The plug-in of this name. Raises ConfigError, which names the argument, if there is none, or
    if it can't be built by its name alone."""
    plugin = registry.plugin(family, name, f"{family}s")
    try:
        return registry.construct(plugin, {})
    except ConfigError as error:
        lacking = "; ".join(map(str, error.problems))
        text = f"can't be tried by its name alone ({lacking}); leave it out here: that of the "
        text += "config, with its parameters, is always tried"
        raise ConfigError([Problem(f"{family}s: {name}", text)]) from None


def _tell_refused(combinations: Sequence[Attempt]) -> Iterator[str]:
    """What was not tried, since the operator's minimum or the policy refuses it: all k at once that
    are refused alike, and by kernel where other kernels are not refused with the same k."""
    refused: dict[tuple[int, str], list[str]] = {}
    for each in combinations:
        if each.error:
            refused.setdefault((each.k, each.error), []).append(each.kernel)
    alike: dict[tuple[str, str], list[str]] = {}
    for (k, error), names in refused.items():
        every = len(names) == sum(each.k == k for each in combinations)
        kernels = "" if every else f"{', '.join(names)}, "
        alike.setdefault((kernels, error), []).append(str(k))
    for (kernels, error), ks in alike.items():
        told = " and ".join(filter(None, [", ".join(ks[:-1]), ks[-1]]))
        yield f"{kernels}k = {told} {'is' if len(ks) == 1 else 'are'} not tried: {error}"


def _warm_up(rows: "Rows", candidates: Sequence[Attempt]) -> None:
    """Runs each kernel once on few rows, so that no attempt has the time of its compilation."""
    from anonlib.local.engine import make_release
    from anonlib.local.rows import Rows

    few = Rows(rows.table.slice(0, WARM_ROWS), rows.schema)
    for each in {each.kernel: each for each in candidates}.values():
        with suppress(AnonlibError):  # told by the attempt, if it is one of the config
            if not _find_problems(rows, each.config):
                make_release(few, each.config, b"")


def _attempt(rows: "Rows", attempt: Attempt) -> Attempt:
    from anonlib.local.engine import make_release

    begun, config = perf_counter(), attempt.config
    if problems := _find_problems(rows, config):
        return replace(attempt, error="; ".join(problems))
    try:
        release = make_release(rows, config, secrets.token_bytes(32))
        report = audit_release(release, rows, config, exact_sizes=True)
    except AnonlibError as error:
        return replace(attempt, error=str(error), seconds=perf_counter() - begun)
    risk = rate_risk(report.sizes, report.n_classes, report.n_rows)
    n, loss = rows.table.num_rows, release.losses["ncp"]
    n_suppressed = n - report.n_rows
    return replace(
        attempt,
        loss=n_suppressed / n if loss is None else loss + release.further_ncp / n,
        chance=None if config.unit else risk["marketer"],
        n_suppressed=n_suppressed,
        seconds=perf_counter() - begun,
        sizes={} if config.unit else dict(report.sizes),
        least_persons=report.of_whole.smallest_class or 0,
    )


def _find_problems(rows: "Rows", config: Config) -> list[str]:
    """Why an attempt can't be made: problems of its config, and columns that the rows were read
    without, since the config that was given does not look at them."""
    seen = {column.role for column in rows.schema.columns if column.scale is not None}
    there = {column.role for column in rows.schema.columns}
    problems = [*map(str, check_config(config))]
    for needed, role, what in (
        (config.needs_target, Role.TARGET, "a target"),
        (config.partition.needs_context, Role.INSENSITIVE, "insensitive columns"),
    ):
        if needed and role not in there:
            problems.append(f"looks at {what}, and the config names none")
        elif needed and role not in seen:
            problems.append(
                f"looks at {what}, and these rows were read for a config that does not: to try it, "
                "name it as the kernel or the partitioner of the config, which is always tried"
            )
    return problems


def _list_frontier(attempts: Sequence[Attempt]) -> Iterator[Attempt]:
    """The attempts that no other one is better than in loss and in risk, by risk. Of attempts that
    are equal in both, all."""
    last: tuple[float, float] | None = None
    done = [((each.risk, each.loss), each) for each in attempts if each.loss is not None]
    for point, each in sorted(done, key=lambda pair: pair[0]):
        if last is None or point[1] < last[1] or point == last:
            last = point
            yield each


def _choose(attempts: Sequence[Attempt], k: int) -> Iterator[Choice]:
    """The least loss at the k that was asked for, the next safer k, the quickest at the same k.
    Where one of them is not there, others take its place, so that there are three.

    attempts: Those within the gates; all of them if none is.
    """
    done = [(each.loss, each) for each in attempts if each.loss is not None]
    if not done:
        return

    def rank(pair: tuple[float, Attempt]) -> tuple[bool, int, float]:
        """First the k that was asked for, then larger ones, which are safer, then smaller ones."""
        return pair[1].k < k, abs(pair[1].k - k), pair[0]

    order = [each for _, each in sorted(done, key=rank)]
    best = order[0]
    yield Choice("least loss", f"{_describe(best)}.", best.config)
    safer, quicker = _find_safer(order, best), _find_quickest(order, best)
    chosen = [("safer", safer)] if safer else []
    chosen += [("quicker", quicker)] if quicker and quicker is not safer else []
    named = (best, safer, quicker)
    left = iter([each for each in order if not any(each is other for other in named)])
    for name in ("another", "one more")[: N_CHOICES - 1 - len(chosen)]:
        chosen += [(name, each) for each in [next(left, None)] if each]
    for name, each in chosen:
        yield Choice(name, f"{_describe(each)}; {_compare(each, best)}.", each.config)


def _find_safer(order: Sequence[Attempt], best: Attempt) -> Attempt | None:
    """The attempt of the next larger k that is on the frontier; if there is none, the first that
    is safer at all."""
    front = [*_list_frontier(order)]
    larger = [each for each in front if each.k > best.k and each.risk < best.risk]
    safer = [each for each in order if each.k >= best.k and each.risk < best.risk]
    return min(larger, key=lambda each: (each.k, each.loss), default=next(iter(safer), None))


def _find_quickest(order: Sequence[Attempt], best: Attempt) -> Attempt | None:
    """The quickest attempt of the same k, if it is quicker than the best."""
    same = [each for each in order if each.k == best.k]
    quickest = min(same, key=lambda each: each.seconds)
    is_worth = best.seconds >= LEAST_SECONDS and quickest.seconds * QUICKER < best.seconds
    return quickest if is_worth else None


def _describe(attempt: Attempt) -> str:
    found = "" if attempt.chance is None else f", mean chance to be found {attempt.chance:.3g}"
    lost = f", {attempt.n_suppressed:,} rows suppressed" if attempt.n_suppressed else ""
    return f"Kernel {attempt.kernel} with k = {attempt.k}: loss {attempt.loss:.3g}{found}{lost}"


def _compare(attempt: Attempt, best: Attempt) -> str:
    """What an attempt costs and gains against the first choice."""
    loss, least = attempt.loss or 0.0, best.loss or 0.0
    change = 100 * (loss / least - 1) if least else 0.0
    if loss == least:
        lost = "loses as much"
    elif not least:
        lost = f"loses {loss:.2g} more"
    elif change >= 100:
        lost = f"loses {loss / least:.2g} times as much"
    else:
        lost = f"loses {abs(change):.2g} % {'more' if change > 0 else 'less'}"
    risk = "risk" if attempt.chance is not None else "1 / k"
    told = (
        f"as quick (below {LEAST_SECONDS:g} s)"
        if max(best.seconds, attempt.seconds) < LEAST_SECONDS
        else _tell_ratio(best.seconds, attempt.seconds, "quicker", "slower", "as quick"),
        lost,
        f"{risk} {_tell_ratio(best.risk, attempt.risk, 'smaller', 'larger', 'the same')}",
    )
    return f"compared with the first: {', '.join(told)}"


def _tell_ratio(first: float, other: float, less: str, more: str, same: str) -> str:
    """How many times the other one is less or more than the first. Where two digits don't tell it,
    it is about the same."""
    if first == other:
        return same
    low, high = sorted((first, other))
    ratio = f"{high / low:.2g}" if low else "very many"
    return f"about {same}" if ratio == "1" else f"{ratio} times {less if other < first else more}"
