"""Mutants: copies of a module with one small change each, made from its syntax tree.

Changed are comparisons, boolean and arithmetic operators, numbers, truth values and conditions.
Removed are calls whose result nobody uses, raised errors, returned values, contexts such as locks,
and validators. Texts, docstrings, the parts of errors and type annotations stay.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
#: Contexts that only make texts of errors, or forgive.
_KEPT_CONTEXTS = ("translate_errors", "suppress")
_VALIDATORS = ("model_validator", "field_validator", "cache")


@dataclass(frozen=True)
class Mutant:
    """One changed copy of a module.

    Attributes:
        path: The file, relative to the checkout.
        line: The line of the change.
        first, last: The lines of the statement with the change: who tests it runs one of them.
        body: Whether it is in the body of a function.
        name: The file, the function or class, the code before and after. It has no line, which
            moves when other code changes.
        number: The place of the change among those of the file.
    """

    path: str
    line: int
    first: int
    last: int
    body: bool
    name: str
    number: int


@dataclass(frozen=True)
class _Place:
    """Where in a module a node is: its function or class, and its statement's lines."""

    scope: str
    body: bool
    first: int
    last: int


class _Changes:
    """All changes to one module, in order; each as a statement or expression and its new form."""

    def __init__(self, tree: ast.Module):
        self.found: list[tuple[ast.AST, ast.AST, _Place]] = []
        self._visit(tree, _Place("", False, 1, 10**9))

    def _visit(self, node: ast.AST, place: _Place) -> None:
        if _is_untouched(node):
            return
        if place.body and isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            place = replace(place, first=node.lineno, last=max(last, node.lineno))
        for new in _changed(node):
            self.found.append((node, new, place))
        if isinstance(node, ast.Raise):
            return  # the parts of an error are texts
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            scope = f"{place.scope}.{node.name}" if place.scope else node.name
            is_class = isinstance(node, ast.ClassDef)
            lines = (1, 10**9) if is_class else (node.lineno, node.end_lineno or node.lineno)
            place = _Place(scope, False, *lines)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "bases", "type_comment"):
                continue
            inside = name == "body" and isinstance(node, ast.FunctionDef)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self._visit(child, replace(place, body=True) if inside else place)


def _is_untouched(node: ast.AST) -> bool:
    """Whether code is for the eye or for types only."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.keyword(arg="strict"):
            return True  # of zip: a guard for the eye
        case ast.Call(func=ast.Name(id=called)):
            return called == "Problem" or called.endswith("Error")
        case ast.Subscript(value=ast.Name(id="type" | "Literal" | "ClassVar")):
            return True
    return False


def _changed(node: ast.AST) -> Iterator[ast.AST]:
    """The new forms of a node."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            for i, op in enumerate(ops):
                for other in _COMPARE[type(op)]:
                    yield ast.Compare(left, [*ops[:i], other(), *ops[i + 1 :]], others)
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
            yield ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in _ARITHMETIC:
            yield ast.AugAssign(target, _ARITHMETIC[type(op)](), value)
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
            if value > 1:
                yield ast.Constant(value - 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value + 1.0)
        case ast.Expr(value=ast.Call()) | ast.Raise():
            yield ast.Pass()
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) not in (
            "None",
            "False",
            "''",
        ):
            yield ast.Return(ast.Constant(None))
        case ast.With(items=[ast.withitem(optional_vars=None, context_expr=context)], body=body):
            if not ast.unparse(context).startswith(_KEPT_CONTEXTS):
                yield ast.If(ast.Constant(True), body, [])
        case ast.FunctionDef(decorator_list=decorators):
            kept = [d for d in decorators if not ast.unparse(d).startswith(_VALIDATORS)]
            if len(kept) < len(decorators):
                yield _replaced(node, "decorator_list", kept)
    yield from _conditions(node)


def _conditions(node: ast.AST) -> Iterator[ast.AST]:
    """The node with a condition turned round that is a bare value."""
    bare = ast.Name | ast.Attribute | ast.Call | ast.NamedExpr | ast.Subscript
    if isinstance(node, ast.If | ast.IfExp | ast.While) and isinstance(node.test, bare):
        yield _replaced(node, "test", ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.comprehension):
        for i, test in enumerate(node.ifs):
            if isinstance(test, bare):
                turned = ast.UnaryOp(ast.Not(), test)
                yield _replaced(node, "ifs", [*node.ifs[:i], turned, *node.ifs[i + 1 :]])


def _replaced(node: ast.AST, name: str, value: object) -> ast.AST:
    new = copy.copy(node)
    setattr(new, name, value)
    return new


@cache
def _changes(file: Path) -> tuple[ast.Module, list[tuple[ast.AST, ast.AST, _Place]]]:
    tree = ast.parse(file.read_text("utf-8"))
    return tree, _Changes(tree).found


def mutants(root: Path, path: str) -> list[Mutant]:
    """All mutants of a file."""
    made, seen = [], Counter[str]()
    for number, (node, new, place) in enumerate(_changes(root / path)[1]):
        line = getattr(node, "lineno", 0) or node.target.lineno  # a comprehension has no place
        name = f"{path} {place.scope or '-'}: {_shown(node)} -> {_shown(new)}"
        seen[name] += 1
        name += f" #{seen[name]}" if seen[name] > 1 else ""
        made.append(Mutant(path, line, place.first, place.last, place.body, name, number))
    return made


def _shown(node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef):
        return " ".join([*(f"@{ast.unparse(d)}" for d in node.decorator_list), f"def {node.name}"])
    if isinstance(node, ast.If | ast.While | ast.With):
        return ast.unparse(node).partition("\n")[0]
    return " ".join(ast.unparse(node).split())


def changed_tree(root: Path, mutant: Mutant) -> ast.Module:
    """The syntax tree of a mutant, with the places of the original."""
    tree, found = _changes(root / mutant.path)
    node, new, _ = found[mutant.number]

    class Change(ast.NodeTransformer):
        def visit(self, each: ast.AST) -> ast.AST:
            return ast.copy_location(new, node) if each is node else self.generic_visit(each)

    # Lists are replaced in place, so those on the way to the node are copied before.
    return ast.fix_missing_locations(Change().visit(_copied(tree, node)))


def _copied(tree: ast.AST, kept: ast.AST) -> ast.AST:
    """A copy of a tree that shares nothing with it but one node."""
    return copy.deepcopy(tree, {id(kept): kept})
