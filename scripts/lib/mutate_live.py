"""Tries mutants in a live process: `mutate.py` starts this with pytest's arguments.

First every collected test runs once and its lines are noted. Then each mutant is put into the live
functions, and the tests that ran its lines run until one fails. Without Spark that happens in a
forked process. On Spark it happens in this one, where the failed test must pass again without the
mutant: else the session is broken, and this process ends with BROKEN to be started again.
"""

import ast
import gc
import importlib
import os
import pickle
import re
import signal
import sys
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings
from mutants import Mutant, changed_tree

ROOT = Path(__file__).parents[2]
BROKEN = 70
#: The name of a set in the modules that are looked at.
RAN = "_lines_that_ran"
LATE = " (it takes too long)"
Lines = dict[tuple[str, int], set[str]]
#: What is replaced: of what, under which name, by what.
Changes = Iterator[tuple[object, str, Any]]
PLAIN = int | float | str | bytes | tuple | frozenset | list | dict | re.Pattern


class Late(BaseException):
    """A test takes much longer than it did without the mutant."""


class Loop:
    """Takes the place of pytest's loop over the tests.

    Args:
        todo: The mutants.
        note: Is told of every mutant and the test that killed it: empty if it survived, None if it
            can't be tried alive.
        forked: Whether each mutant is tried in a process of its own.
        known: The file of what the tests ran; made if it is not there.
        most: Seconds of tests for one mutant.
    """

    def __init__(
        self,
        todo: Sequence[Mutant],
        note: Callable[[Mutant, str | None], None],
        known: Path,
        *,
        forked: bool,
        most: float,
    ):
        self.todo, self.note, self.forked, self.known, self.most = todo, note, forked, known, most
        self.lines: Lines = defaultdict(set)
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Before tests are imported: what fails need not be made small."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.get_profile("anonlib"), phases=phases)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        paths = sorted({mutant.path for mutant in self.todo})
        for path in paths:
            importlib.import_module(dotted(path))
        self.live = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, types.FunctionType):
                self.live[each.__code__.co_filename].append(each)
        if not self.known.exists():
            self._look(paths)
        self.lines, self.seconds = pickle.loads(self.known.read_bytes())  # noqa: S301 - our own
        for mutant in self.todo:
            try:
                undo = self._put(mutant)
            except Exception as error:  # in what runs when the module is loaded
                self.note(mutant, f"{type(error).__name__} at import")
                continue
            if undo is None:
                self.note(mutant, None)
            elif self.forked:
                self.note(mutant, self._in_fork(self._tests(mutant)))
                undo()
            else:
                self._alive(mutant, undo)
        return True

    def _look(self, paths: Sequence[str]) -> None:
        """Runs all tests once; notes which lines each ran, and how long it took."""
        pid = os.fork() if self.forked else 0
        if pid:
            if os.waitpid(pid, 0)[1]:
                raise RuntimeError("the tests can't be run without a mutant")
            return
        ran: set[tuple[str, int]] = set()
        changes: list[tuple[object, str, Any]] = []
        for path in paths:
            vars(sys.modules[dotted(path)])[RAN] = ran
            tree = counting(ast.parse((ROOT / path).read_text("utf-8")), path)
            changes += self._changed_code(path, compile(tree, str(ROOT / path), "exec"))
        undo = put_all(changes)
        for name in self.items:
            ran.clear()
            begun = time.monotonic()
            if self._passes(name, 600):
                self.seconds[name] = time.monotonic() - begun
                for line in ran:
                    self.lines[line].add(name)
            else:
                print("fails without a mutant:", name, file=sys.stderr)
        undo()
        self.known.write_bytes(pickle.dumps((self.lines, self.seconds)))
        if self.forked:
            os._exit(0)

    def _tests(self, mutant: Mutant) -> list[str]:
        """The tests that ran the statement, or all if it runs at import; the quickest first."""
        path, first, last = mutant.path, mutant.first, mutant.last
        lines = [(p, n) for p, n in self.lines if p == path and first <= n <= last]
        names = {name for line in lines for name in self.lines[line]} & self.items.keys()
        if not mutant.body and self.forked:
            names = {*self.seconds} & self.items.keys()
        chosen, left = [], self.most
        for name in sorted(names, key=self.seconds.__getitem__):
            left -= self.seconds[name]
            if left > 0 or not chosen:
                chosen.append(name)
        return chosen

    def _passes(self, name: str, most: float) -> bool:
        item, self.late = self.items[name], False

        def late(*_: object) -> None:
            self.late = True
            raise Late

        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, most, 5.0)
        try:
            # What is set up for the session stays.
            reports = runtestprotocol(item, log=False, nextitem=item.session)  # type: ignore[arg-type]
        except BaseException:
            return False
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        return not any(report.failed for report in reports)

    def _first_failing(self, names: Sequence[str]) -> str:
        for name in names:
            if not self._passes(name, 60 + 10 * self.seconds[name]):
                return name + LATE * self.late
        return ""

    def _in_fork(self, names: Sequence[str]) -> str:
        if not names:
            return ""
        end, ours = os.pipe()
        if not (pid := os.fork()):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            os.write(ours, self._first_failing(names).encode())
            os._exit(0)
        os.close(ours)
        until = time.monotonic() + 60 + 10 * sum(self.seconds[name] for name in names)
        while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < until:
            time.sleep(0.02)
        if not ended[0]:
            os.kill(pid, signal.SIGKILL)
            ended = os.waitpid(pid, 0)
        with os.fdopen(end) as said:
            return said.read() or ("does not end well" if ended[1] else "")

    def _alive(self, mutant: Mutant, undo: Callable[[], None]) -> None:
        killer = self._first_failing(self._tests(mutant))
        undo()
        name = killer.removesuffix(LATE)
        if killer and not self._passes(name, 60 + 10 * self.seconds[name]):
            sys.stdout.flush()
            os._exit(BROKEN)
        self.note(mutant, killer)

    def _put(self, mutant: Mutant) -> Callable[[], None] | None:
        """Puts a mutant into the live functions and names of its module. None if it can't be."""
        file = str(ROOT / mutant.path)
        code = compile(changed_tree(ROOT, mutant), file, "exec")
        if mutant.body:
            changes = self._changed_code(mutant.path, code)
        else:
            module = sys.modules[dotted(mutant.path)]
            space = types.ModuleType(module.__name__)
            exec(code, space.__dict__)  # noqa: S102 - what this is for
            changes = [*self._changed_names(module, space), *self._changed_defaults(file, space)]
        return put_all(changes) if changes else None

    def _changed_code(self, path: str, module: types.CodeType) -> list[tuple[object, str, Any]]:
        """The live functions of a file whose code is another in this module; none where one can't
        be replaced."""
        new, changes = dict(codes(module)), []
        for each in self.live[str(ROOT / path)]:
            code = new.get((each.__code__.co_qualname, each.__code__.co_firstlineno))
            if code is None or code == each.__code__:
                continue
            if code.co_freevars != each.__code__.co_freevars:
                return []
            changes.append((each, "__code__", code))
        return changes

    def _changed_names(self, module: types.ModuleType, space: types.ModuleType) -> Changes:
        users = [m for n, m in sys.modules.items() if n.startswith("anonlib")]
        for name, value in vars(space).items():
            old = vars(module).get(name)
            plain = isinstance(old, PLAIN) and isinstance(value, PLAIN)
            plain = plain and " at 0x" not in repr(value)  # functions of the other module
            if plain and value != old and not name.startswith("__"):
                yield from [(user, name, value) for user in users if vars(user).get(name) is old]

    def _changed_defaults(self, file: str, space: types.ModuleType) -> Changes:
        new = {
            (f.__code__.co_qualname, f.__code__.co_firstlineno): f
            for f in gc.get_objects()
            if isinstance(f, types.FunctionType) and f.__globals__ is vars(space)
        }
        for each in self.live[file]:
            made = new.get((each.__code__.co_qualname, each.__code__.co_firstlineno), each)
            for name in ("__defaults__", "__kwdefaults__"):
                if getattr(made, name) != getattr(each, name):
                    yield each, name, getattr(made, name)


def put_all(values: Sequence[tuple[object, str, Any]]) -> Callable[[], None]:
    """Sets attributes; returns what sets them back."""
    before = [(each, name, getattr(each, name)) for each, name, _ in values]
    for each, name, value in values:
        setattr(each, name, value)
    return lambda: [setattr(*old) for old in before] and None


def dotted(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def codes(code: types.CodeType) -> Iterator[tuple[tuple[str, int], types.CodeType]]:
    """All code in a module, by its name and first line."""
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield (each.co_qualname, each.co_firstlineno), each
            yield from codes(each)


def counting(tree: ast.Module, path: str) -> ast.Module:
    """A module whose functions note every statement in the set RAN before they run it."""
    for node in [*ast.walk(tree)]:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or isinstance(node, ast.Module | ast.ClassDef):
                continue
            counted = []
            for each in block:
                is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
                noted = ast.parse(f"{RAN}.add(({path!r}, {each.lineno}))").body
                counted += [each] if is_text else [ast.copy_location(noted[0], each), each]
            setattr(node, name, counted)
    return ast.fix_missing_locations(tree)
