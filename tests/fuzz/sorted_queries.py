"""Random queries with ORDER BY and LIMIT, LIMIT alone, and windows of which the first rows are asked for.

Below them lie filters, projections, joins, groups, unions, other limits, windows and subqueries, over the tables of
:mod:`tests.fuzz.formats`. A query comes with what of its answer is determined: of rows with equal sort keys, any may
be among the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tests.fuzz.formats import KINDS, NAMES, RISING

RANKS = ("row_number", "rank", "dense_rank")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_PREFIX = {"g": "g_", "id": "k_", **dict.fromkeys(RISING, "k_")}
"""Names of columns tell what they are good for: to group by, or to sort by."""
_KEYS = {
    # What is sorted by, for a column of each kind; the column itself comes first, and most often.
    "whole": ("{}", "-{}", "{} % 7", "abs({})", "{} + 1", "coalesce({}, 3)", "CAST({} AS double)", "nullif({}, 5)"),
    "float": ("{}", "-{}", "{} * 2", "abs({})", "nanvl({}, 1)", "round({}, 1)", "CAST({} AS float)"),
    "decimal": ("{}", "-{}", "{} + 1", "round({}, 0)", "CAST({} AS double)"),
    "string": ("{}", "upper({})", "substring({}, 1, 2)", "length({})", "coalesce({}, 'm')", "concat('a', {})"),
    "date": ("{}", "year({})", "date_add({}, 3)", "month({})", "datediff({}, DATE '2000-01-01')"),
    "timestamp": ("{}", "date_trunc('DAY', {})", "CAST({} AS date)", "hour({})", "year({})"),
    "boolean": ("{}", "NOT {}"),
}


def _kind(type_: str) -> str:
    kinds = {**dict.fromkeys(_WHOLE, "whole"), "double": "float", "timestamp_ntz": "timestamp"}
    return "decimal" if type_.startswith("decimal") else kinds.get(type_, type_)


@dataclass(frozen=True)
class Relation:
    """A subquery, its columns with their types, and those of them that no two rows have in common."""

    sql: str
    columns: tuple[tuple[str, str], ...]
    unique: tuple[str, ...]

    @property
    def names(self) -> str:
        return ", ".join(name for name, _ in self.columns)


@dataclass(frozen=True)
class Question:
    """A query, and what of its answer is determined."""

    sql: str
    ordered: bool = False
    """The order of the rows is determined."""
    open: bool = False
    """Which rows come out is not determined, only their first columns."""
    first: int = 0
    whole: str = ""
    """The same without the limit: where it is open which rows come out, they are some of these."""
    kind: str = ""
    """What asks for the first rows: ``limit``, ``order`` or the function of a window."""


class Queries:
    """Makes one random query after the other.

    Of two in three ``likely`` is set: a few rows of what files tell apart, so that most of these can be narrowed. A
    query that is not narrowed cannot come out wrong.
    """

    def __init__(self, random: Random, predicate: Callable[[], str], *, any_case: bool) -> None:
        self.random, self.predicate, self.any_case, self.made = random, predicate, any_case, 0
        self.likely = False

    def question(self) -> Question:
        self.likely = self.random.random() < 0.67
        roll = self.random.random()
        if roll < 0.15:
            return replace(self.some_rows(), kind="limit")
        if roll < 0.55:
            return self.first_of_groups()
        return replace(self.first_rows(), kind="order")

    def first_rows(self) -> Question:
        """ORDER BY … LIMIT."""
        inner, limit = self.relation(self.depth()), self.limit()
        if self.random.random() < 0.65:
            order = self.order(inner, total=True)
            return Question(f"SELECT {inner.names} FROM ({inner.sql}) ORDER BY {order} {limit}", ordered=True)
        made = [(self.key(inner), self.direction()) for _ in range(self.random.choice((1, 1, 2, 3)))]
        named = ", ".join(f"{key} AS o{i}" for i, (key, _) in enumerate(made))
        order = ", ".join(f"o{i} {direction}" for i, (_, direction) in enumerate(made))
        whole = f"SELECT {named}, {inner.names} FROM ({inner.sql})"
        return Question(f"{whole} ORDER BY {order} {limit}", ordered=True, open=True, first=len(made), whole=whole)

    def some_rows(self) -> Question:
        """LIMIT alone: any rows, but so many."""
        inner, limit = self.relation(self.depth() if self.likely else self.random.choice((0, 0, 1, 1, 2))), self.limit()
        whole = f"SELECT {inner.names} FROM ({inner.sql})"
        if self.random.random() < 0.2:
            return Question(f"SELECT count(*) FROM ({whole} {limit})")
        return Question(f"{whole} {limit}", open=True, whole=whole)

    def first_of_groups(self) -> Question:
        """A window of which the first rows are asked for; of row_number with ties, what is determined."""
        if self.random.random() < 0.8:
            function = self.random.choice(RANKS)
            made = self.windowed(1 if self.likely else self.random.choice((1, 1, 2)), function)
            return Question(f"SELECT {made.names} FROM ({made.sql})", kind=function)
        inner = self.relation(0 if self.likely else self.random.choice((0, 0, 1)))
        by, (key, direction) = self.partition(inner), (self.key(inner), self.direction())
        over = f"{by} ORDER BY {key} {direction}"
        made_sql = f"SELECT {key} AS o, row_number() OVER ({over}) AS rn FROM ({inner.sql})"
        return Question(f"SELECT * FROM ({made_sql}) WHERE {self.few('rn')}", kind="row_number")

    # Parts ------------------------------------------------------------------------------------------------------------

    def depth(self) -> int:
        return self.random.choice((0, 0, 0, 0, 1) if self.likely else (0, 0, 1, 1, 2))

    def name(self) -> str:
        self.made += 1
        return f"c{self.made}"

    def limit(self) -> str:
        # Files have some fifteen rows: where one ends, others may go on with the same values.
        few = self.random.randint(1, self.random.choice((3, 8, 25)))
        count = few if self.likely else self.random.choice((*(few,) * 12, 0, 60, 500, 2_000_000_000))
        offset = f" OFFSET {self.random.choice((0, 1, 4, 12, 30))}" if self.random.random() < 0.25 else ""
        return f"LIMIT {count}{offset}"

    def direction(self) -> str:
        return self.random.choice(("", "ASC", "DESC", "DESC")) + self.random.choice(("", " NULLS FIRST", " NULLS LAST"))

    def key(self, inner: Relation) -> str:
        rising = [column for column in inner.columns if column[0].startswith("k_")]
        tied = [column for column in rising if column[0] not in inner.unique]
        rising = tied if tied and self.random.random() < 0.8 else rising
        sure = 0.9 if self.likely else 0.6
        name, type_ = self.random.choice(rising if rising and self.random.random() < sure else inner.columns)
        shapes = _KEYS[_kind(type_)]
        return (shapes[0] if self.random.random() < sure else self.random.choice(shapes)).replace("{}", name)

    def order(self, inner: Relation, *, total: bool) -> str:
        made = [f"{self.key(inner)} {self.direction()}" for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        last = [f"{name} {self.direction()}" for name in inner.unique] if total else []
        return ", ".join([*made, *last])

    def partition(self, inner: Relation) -> str:
        count = self.random.choice((0, 1, 1) if self.likely else (0, 1, 1, 1, 2))
        chosen = self.random.sample(inner.columns, min(count, len(inner.columns)))
        groups = [name for name, _ in inner.columns if name.startswith("g_")]
        sure = 0.95 if self.likely else 0.8
        names = [self.random.choice(groups) if groups and self.random.random() < sure else n for n, _ in chosen]
        names = [f"{n} + 1" if n.startswith("g_") and self.random.random() < 0.15 else n for n in names]
        return f"PARTITION BY {', '.join(names)}" if names else ""

    def few(self, rank: str, *, different: bool = False) -> str:
        """A condition on a rank; of different values a file has not so many."""
        likely = self.random.randint(1, 4 if different else self.random.choice((3, 10)))
        k = likely if self.likely else self.random.choice((1, 1, 2, 2, 3, 5, 20))
        tests = ("{} <= {k}", "{} <= {k}", "{} = {k}", "{} < {k}", "{k} >= {}", "{} IN (1, {k})")
        return self.random.choice(tests[:-1] if self.likely else tests).format(rank, k=k)

    # Relations --------------------------------------------------------------------------------------------------------

    def relation(self, depth: int) -> Relation:
        if depth == 0:
            return self.leaf()
        makers = {
            self.join: 8, self.grouped: 4, self.distinct: 1, self.union: 3, self.windowed: 2, self.limited: 3,
            self.tested: 4, self.computed: 3,
        }  # fmt: skip
        make = self.random.choices(list(makers), list(makers.values()))[0]
        return make(depth)

    def leaf(self, sources: Sequence[str] = (), table: str = "") -> Relation:
        chosen = sources or self.sources()
        columns = tuple((_PREFIX.get(s, "") + self.name(), KINDS[s], s) for s in chosen)
        selected = ", ".join(f"{self.cased(source)} AS {name}" for name, _, source in columns)
        sql = f"SELECT {selected} FROM {table or self.random.choice(NAMES)}{self.where()}"
        return Relation(sql, tuple((name, type_) for name, type_, _ in columns), (columns[0][0],))

    def sources(self) -> list[str]:
        """Some columns: the number of the row, the group, some that rise with the number, and any."""
        others = sorted(KINDS.keys() - _PREFIX.keys())
        return ["id", "g", *self.random.sample(sorted(RISING), 2), *self.random.sample(others, 2)]

    def cased(self, name: str) -> str:
        return name.upper() if self.any_case and self.random.random() < 0.2 else name

    def where(self) -> str:
        roll, at = self.random.random(), self.random.randrange(180)
        if roll < (0.65 if self.likely else 0.5):
            return ""
        if self.likely:
            # What all rows of some files satisfy, and what a probe is for.
            ids = (f"id < {at + 60}", f"id >= {at}", f"id BETWEEN {at} AND {at + 120}")
            some = (*ids, "g IS NOT NULL", "v <> 3", "v > 1")
            return f" WHERE {self.random.choice(some)}"
        if roll < 0.65:
            return f" WHERE {self.predicate()}"
        tests = (
            "v = 3", "v > 2", "id % 3 = 0", f"id < {at}", f"id >= {at}", f"id BETWEEN {at} AND {at + 60} AND v <> 2",
            "g = 1", "g = 0", "g IS NULL", "g IS NOT NULL", "g > 0 AND v = 1", "x > 3", "y < 5", "s >= 'b'",
            "da > DATE '2010-01-01'", "i IS NOT NULL", "v = 9", f"id + v > {at}",
        )  # fmt: skip
        return f" WHERE {self.random.choice(tests)}"

    def join(self, depth: int) -> Relation:
        left, right = self.relation(depth - 1), self.relation(self.random.randrange(depth))
        if self.random.random() < 0.3:
            left, right = right, left
        pairs = [(a, b) for a, s in left.columns for b, t in right.columns if s == t or (s in _WHOLE and t in _WHOLE)]
        if not pairs:
            return left
        kinds = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
        kind = self.random.choices(kinds, [6, 5, 3, 1, 3, 3])[0]
        first = (left.columns[0][0], right.columns[0][0])
        a, b = first if first in pairs and self.random.random() < 0.5 else self.random.choice(pairs)
        on = f"{a} = {b}"
        if self.random.random() < 0.15:
            other, value = self.random.choice(pairs)
            on += f" AND {other} <= {value}"
        sql = f"SELECT * FROM ({left.sql}) {kind} ({right.sql}) ON {on}"
        if "SEMI" in kind or "ANTI" in kind:
            return Relation(sql, left.columns, left.unique)
        return Relation(sql, (*left.columns, *right.columns), (*left.unique, *right.unique))

    def grouped(self, depth: int) -> Relation:
        inner = self.relation(depth - 1)
        by = self.random.sample(inner.columns, min(len(inner.columns), self.random.choice((1, 1, 2))))
        rising = [column for column in inner.columns if column[0].startswith("k_") and column not in by]
        if rising and self.random.random() < 0.5:
            by[0] = self.random.choice(rising)
        value, type_ = self.random.choice(inner.columns)
        most, count = self.name(), self.name()
        function = self.random.choice(("max", "min"))
        names = ", ".join(n for n, _ in by)
        having = self.random.choice(("", "", "", " HAVING count(*) > 1", f" HAVING {function}({value}) IS NOT NULL"))
        sql = f"SELECT {names}, {function}({value}) AS {most}, count(*) AS {count} FROM ({inner.sql}) GROUP BY {names}"
        return Relation(sql + having, (*by, (most, type_), (count, "bigint")), tuple(n for n, _ in by))

    def distinct(self, depth: int) -> Relation:
        inner = self.relation(depth - 1)
        some = tuple(self.random.sample(inner.columns, min(len(inner.columns), self.random.choice((1, 2)))))
        names = tuple(n for n, _ in some)
        return Relation(f"SELECT DISTINCT {', '.join(names)} FROM ({inner.sql})", some, names)

    def union(self, depth: int) -> Relation:
        sources, tag = self.sources(), self.name()
        one, other = self.leaf(sources), self.leaf(sources)
        sql = f"SELECT {one.names}, 1 AS {tag} FROM ({one.sql}) UNION ALL SELECT {other.names}, 2 FROM ({other.sql})"
        return Relation(sql, (*one.columns, (tag, "int")), (*one.unique, tag))

    def windowed(self, depth: int, function: str = "") -> Relation:
        inner, rank = self.relation(depth - 1), self.name()
        function = function or self.random.choice(RANKS)
        total = function == "row_number" or self.random.random() < 0.2
        over = f"{self.partition(inner)} ORDER BY {self.order(inner, total=total)}"
        value, type_ = self.random.choice(inner.columns)
        extra, beside = self.name(), []
        if self.random.random() < (0.1 if self.likely else 0.3):
            ties = [
                f"count(*) OVER ({over})", f"rank() OVER ({over})", f"max(v_) OVER ({self.partition(inner)})",
                f"count(*) OVER ({over} RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
            ]  # fmt: skip
            if total:
                ties += [f"lag(v_) OVER ({over})", f"lead(v_) OVER ({over})", f"max(v_) OVER ({over} ROWS 2 PRECEDING)"]
            chosen = self.random.choice(ties)
            beside = [(f"{chosen.replace('v_', value)} AS {extra}", type_ if "v_" in chosen else "bigint")]
        made = ", ".join(["*", f"{function}() OVER ({over}) AS {rank}", *(sql for sql, _ in beside)])
        more = self.random.choice(("", "", "", "", f" AND {value} IS NOT NULL", f" OR {value} IS NULL"))
        more = more if not self.likely or self.random.random() < 0.3 else ""
        few = self.few(rank, different=function == "dense_rank")
        sql = f"SELECT * FROM (SELECT {made} FROM ({inner.sql})) WHERE {few}{more}"
        return Relation(sql, (*inner.columns, (rank, "int"), *((extra, t) for _, t in beside)), inner.unique)

    def limited(self, depth: int) -> Relation:
        inner = self.relation(depth - 1)
        order = self.order(inner, total=True)
        return replace(inner, sql=f"SELECT * FROM ({inner.sql}) ORDER BY {order} {self.limit()}")

    def tested(self, depth: int) -> Relation:
        outer, inner = self.relation(depth - 1), self.relation(self.random.randrange(depth))
        pairs = [(a, b) for a, s in outer.columns for b, t in inner.columns if s == t]
        a, b = self.random.choice(pairs) if pairs else (outer.columns[0][0], inner.columns[0][0])
        if not pairs:
            return outer
        few = f"SELECT {b} FROM ({inner.sql}) ORDER BY {', '.join([f'{b} DESC', *inner.unique])} LIMIT 3"
        tests = [
            f"{a} IN (SELECT {b} FROM ({inner.sql}))", f"{a} IN ({few})", f"{a} NOT IN ({few})",
            f"EXISTS (SELECT 1 FROM ({inner.sql}) WHERE {b} = {a})",
            f"NOT EXISTS (SELECT 1 FROM ({inner.sql}) WHERE {b} = {a})",
            f"{a} >= (SELECT min({b}) FROM ({inner.sql}))", f"{a} <= (SELECT max({b}) FROM ({few}))",
        ]  # fmt: skip
        return replace(outer, sql=f"SELECT * FROM ({outer.sql}) WHERE {self.random.choice(tests)}")

    def computed(self, depth: int) -> Relation:
        """Some columns computed, and a filter above that."""
        inner = self.relation(depth - 1)
        whole = [n for n, t in inner.columns if t in _WHOLE]
        if not whole:
            return inner
        source, name = self.random.choice(whole), self.name()
        made = self.random.choice(("{} + 1", "coalesce({}, 7)", "-{}", "{} % 5", "explode(array({}, {} + 10))"))
        others = ", ".join(n for n, _ in inner.columns)
        below = f"SELECT {others}, {made.replace('{}', source)} AS {name}_ FROM ({inner.sql})"
        sql = f"SELECT *, CAST({name}_ AS bigint) AS {name} FROM ({below})"
        unique = (*inner.unique, name) if "explode" in made else inner.unique
        where = self.random.choice(("", f" WHERE {name} > 3", f" WHERE {name} IS NOT NULL"))
        return Relation(f"SELECT {others}, {name} FROM ({sql}){where}", (*inner.columns, (name, "bigint")), unique)
