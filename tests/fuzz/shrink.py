"""Makes a counterexample small: the fewest rows, the shortest predicate, the plainest values, in one line.

Spark is asked about many candidates at once. For predicates they are the columns of one query; for tables each
candidate is a file of its own, so that one look at a table tells which of them is still judged wrongly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import secateur
from tests.fuzz.generate import Node
from tests.fuzz.harness import Bench
from tests.fuzz.regressions import Regression, Setting, bench_of
from tests.fuzz.tables import COLUMNS, Values

_BATCH = 15
_PLAIN: dict[str, tuple[Any, ...]] = {
    "string": (b"", b"a", b"b"),
    "boolean": (False, True),
    **dict.fromkeys(("float", "double"), (0.0, 1.0, -1.0)),
}


class Shrinker:
    """Shrinks what a campaign found in one setting."""

    def __init__(self, spark: SparkSession, pruner: secateur.Pruner, folder: Path, setting: Setting) -> None:
        self._bench: Callable[[list[Values]], Bench] = lambda files: bench_of(spark, pruner, folder, files, setting)
        self.setting = setting

    def shrink(self, node: Node, file: Values, wrong: str) -> Regression:
        """The smallest predicate and file that are still judged wrongly in the same way."""
        file = self._fewer_rows(node, file, wrong)
        node = self._smaller_predicate(node, file, wrong)
        file = self._fewer_columns(node, file, wrong)
        file = self._plainer_values(node, file, wrong)
        node = self._smaller_predicate(node, file, wrong)
        return Regression(wrong, str(node), self._fewer_columns(node, file, wrong), self.setting)

    def _smaller_predicate(self, node: Node, file: Values, wrong: str) -> Node:
        bench = self._bench([file])
        while (found := self._first_wrong(bench, self._candidates(node), wrong)) is not None:
            node = found
        return node

    @staticmethod
    def _candidates(node: Node) -> list[Node]:
        smaller = {str(other): other for other in node.smaller() if other.kind == "bool" and other.size < node.size}
        return sorted(smaller.values(), key=lambda other: other.size)

    @staticmethod
    def _first_wrong(bench: Bench, candidates: Sequence[Node], wrong: str) -> Node | None:
        for start in range(0, len(candidates), _BATCH):
            some = {str(node): node for node in candidates[start : start + _BATCH]}
            for judged in bench.judge(list(some)):
                if judged.wrong == wrong:
                    return some[judged.sql]
        return None

    def _fewer_columns(self, node: Node, file: Values, wrong: str) -> Values:
        named = set(re.findall(r"[a-z]+(?:\.[a-z])?", str(node)))
        fewer = {name: values for name, values in file.items() if name in named}
        if len(fewer) == len(file):
            return file
        return fewer if fewer and self._wrong_file([fewer], node, wrong) is not None else file

    def _fewer_rows(self, node: Node, file: Values, wrong: str) -> Values:
        rows = len(next(iter(file.values())))
        subsets: list[Values] = [
            {name: [values[i] for i in kept] for name, values in file.items()}
            for size in range(1, rows)
            for kept in combinations(range(rows), size)
        ]
        return file if (at := self._wrong_file(subsets, node, wrong)) is None else subsets[at]

    def _plainer_values(self, node: Node, file: Values, wrong: str) -> Values:
        tried: set[str] = set()
        for _ in range(8):
            plainer = [other for other in _plainer(file) if str(other) not in tried]
            tried |= {str(other) for other in plainer}
            if (at := self._wrong_file(plainer, node, wrong)) is None:
                break
            file = plainer[at]
        return file

    def _wrong_file(self, files: list[Values], node: Node, wrong: str) -> int | None:
        """The first of the files that the predicate is judged wrongly on."""
        if not files:
            return None
        judged = next(self._bench(files).judge([str(node)]), None)
        return judged.wrong_files[0] if judged is not None and judged.wrong == wrong else None


def _plainer(file: Values) -> Iterator[Values]:
    """The file with one value replaced by one that is easier to read."""
    for name, values in file.items():
        for i, held in enumerate(values):
            plain = _PLAIN.get(COLUMNS[name], (type(held)(0), type(held)(1)) if held is not None else ())
            # Only what comes earlier in the list is plainer.
            earlier = plain[: plain.index(held)] if held in plain else plain
            for other in earlier if held is not None else ():
                yield {**file, name: [*values[:i], other, *values[i + 1 :]]}
