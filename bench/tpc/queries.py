"""The texts of the queries: those that DuckDB's extensions carry, put into Spark's dialect.

python -m bench.tpc.queries tpcds 35
"""

from __future__ import annotations

import re
import sys
from functools import cache

from bench.tpc import cyclic
from bench.tpc.data import connect


@cache
def queries(name: str) -> dict[int, str]:
    """The queries of a set of tables by their number."""
    if name == "cyclic":
        return dict(cyclic.QUERIES)
    kind = "tpcds" if name == "tpcds" else "tpch"
    found = connect(kind).execute(f"SELECT query_nr, query FROM {kind}_queries() ORDER BY query_nr").fetchall()
    return {number: in_spark(text) for number, text in found}


def in_spark(text: str) -> str:
    """The query as Spark reads it.

    >>> in_spark('SELECT a AS "30 days", d + 14 FROM t WHERE d >= cast(\\'1998-01-01\\' AS date) + interval 14 day;')
    "SELECT a AS `30 days`, d + 14 FROM t WHERE d >= cast('1998-01-01' AS date) + interval 14 day"
    """
    text = text.strip().removesuffix(";")
    return re.sub(r'"([^"\n]*)"', r"`\1`", text)


if __name__ == "__main__":
    print(queries(sys.argv[1])[int(sys.argv[2])])
