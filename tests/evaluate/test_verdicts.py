r"""Hit and miss, one case a line: a type, a predicate on x, what is known of x in a file, what the predicate can be.

The last column lists the possible results: T(rue), F(alse), N(ull), or ``-`` if there is nothing. A file is skipped if
there is no T, and matches as a whole if there is nothing but T. See ``language.py`` for how a file is written.
"""

from __future__ import annotations

import pytest

from secateur.evaluate.evaluator import evaluate
from tests.evaluate.language import columns_of, entry, file_stats, predicate, references

CASES = r"""
# comparisons, both orders
int             | x > 5                     | 1..5                | F
int             | x > 5                     | 1..6                | TF
int             | x > 5                     | 6..9                | T
int             | x >= 5                    | 1..4                | F
int             | x >= 5                    | 1..5                | TF
int             | x >= 5                    | 5..9                | T
int             | x < 5                     | 5..9                | F
int             | x < 5                     | 4..9                | TF
int             | x < 5                     | 1..4                | T
int             | x <= 5                    | 6..9                | F
int             | x <= 5                    | 5..9                | TF
int             | x <= 5                    | 1..5                | T
int             | x = 5                     | 1..4                | F
int             | x = 5                     | 6..9                | F
int             | x = 5                     | 5..9                | TF
int             | x = 5                     | 5..5                | T
int             | x <> 5                    | 5..5                | F
int             | x <> 5                    | 5..6                | TF
int             | x <> 5                    | 6..9                | T
int             | 5 < x                     | 1..5                | F
int             | 5 < x                     | 6..9                | T
int             | 5 >= x                    | 6..9                | F
int             | 5 = x                     | 6..9                | F
bigint          | x > 9223372036854775806   | 0..9223372036854775806 | F
bigint          | x > 9223372036854775806   | 0..9223372036854775807 | TF
bigint          | x < -9223372036854775807  | -9223372036854775808..0 | TF
bigint          | x < -9223372036854775808  | -9223372036854775808..0 | F
# NULLs
int             | x > 5                     | 6..9 nulls=1        | TN
int             | x > 5                     | 6..9 nulls=?        | TN
int             | x > 5                     | ?..? nulls=10       | N
int             | x <> 5                    | ?..? nulls=10       | N
int             | x > 5                     | ?..? nulls=?        | TFN
int             | x > 5                     | 6..9 nulls=3        ; rows=? | TN
int             | x > 5                     | ?..? nulls=10       ; rows=? | TFN
int             | x > 5                     | ?..? nulls=11       | TFN
int             | x > 5                     | 6..9 nulls=10       | TN
int             | x IS NULL                 | 1..5                | F
int             | x IS NULL                 | 1..5 nulls=?        | TF
int             | x IS NULL                 | 1..5 nulls=2        | TF
int             | x IS NULL                 | ?..? nulls=10       | T
int             | x IS NULL                 | ?..? nulls=10       ; rows=? | TF
int             | x IS NOT NULL             | 1..5                | T
int             | x IS NOT NULL             | ?..? nulls=10       | F
int             | x IS NOT NULL             | 1..5 nulls=?        | TF
int             | (x > 5) IS NULL           | 1..5                | F
int             | (x > 5) IS NULL           | 1..5 nulls=1        | TF
int             | x = NULL                  | 1..5                | N
int             | x <> NULL                 | 1..5                | N
int             | NULL < x                  | 1..5                | N
int             | x <=> NULL                | 1..5                | F
int             | x <=> NULL                | 1..5 nulls=1        | TF
int             | x <=> 5                   | 5..5                | T
int             | x <=> 5                   | 5..5 nulls=1        | TF
int             | x <=> 5                   | 6..9 nulls=?        | F
int             | x <=> 5                   | ?..? nulls=10       | F
int             | NOT x <=> 5               | ?..? nulls=10       | T
# nothing known, or nothing there
int             | x > 5                     | 6..?                | T
int             | x > 5                     | ?..5                | F
int             | x > 5                     | 1..?                | TF
int             | x = 5                     | 6..?                | F
int             | x = 5                     | ?..4                | F
int             | x = 5                     | 9..1                | TF
int             | x > 10                    | 9..1                | TF
int             | x < 0                     | 9..1                | TF
int             | x > 5                     | 1..9                ; rows=0 | -
int             | x IS NULL                 | ?..? nulls=?        ; rows=0 | -
int             | x > 5                     | ?..? nulls=?        ; rows=-1 | TFN
# IN
int             | x IN (1, 5, 9)            | 2..4                | F
int             | x IN (1, 5, 9)            | 2..5                | TF
int             | x IN (1, 5, 9)            | 10..20              | F
int             | x IN (1, 5, 9)            | 5..5                | T
int             | x IN (3, 4, 5)            | 3..5                | T
int             | x IN (3, 4, 5)            | 3..6                | TF
int             | x IN (3, 3, 5)            | 3..5                | TF
int             | x IN (5, NULL)            | 1..4                | N
int             | x IN (5, NULL)            | 5..9                | TN
int             | x IN (5, NULL)            | 5..5                | T
int             | x IN (NULL)               | 5..5                | N
int             | x NOT IN (5, NULL)        | 1..4                | N
int             | x NOT IN (5, NULL)        | 5..5                | F
int             | x NOT IN (1, 5, 9)        | 2..4                | T
int             | x NOT IN (3, 4, 5)        | 3..5                | F
int             | x IN (1, 9)               | ?..0                | F
int             | x IN (1, 9)               | ?..5                | TF
int             | x IN (1, 9)               | 5..?                | TF
int             | x IN (1, 9)               | 10..?               | F
int             | x IN (1, 9)               | 2..8 nulls=1        | FN
int             | x IN (1, 9)               | 8..2                | TF
int             | x IN ()                   | 2..8                | TFN
bigint          | x IN (-9223372036854775808, 9223372036854775807) | -9223372036854775808..9223372036854775807 | TF
bigint          | x IN (-9223372036854775808, 9223372036854775807) | -9223372036854775807..9223372036854775806 | F
string          | x IN ('b', 'd')           | 'c'..'cc'           | F
string          | x IN ('b', 'd')           | 'c'..'e'            | TF
string          | x IN ('b', 'd')           | 'd'..'d'            | T
string          | x IN ('b', 'd')           | ?..'a'              | F
string          | x IN ('b', 'd')           | ?..?                | TF
string          | x IN ('b', 'd', 'f')      | 'b'..'f'            | TF
decimal(10,2)   | x IN (1.00, 3.00)         | 1.50..2.99          | F
decimal(10,2)   | x IN (1.00, 3.00)         | 1.50..3.00          | TF
decimal(10,2)   | x IN (1.00, 3.00)         | 3.00..3.00          | T
double          | x IN (1, 3)               | 1.5..2.5            | F
double          | x IN (1, 3)               | 1..1                | T
double          | x IN (1, 3)               | 1..3                | TF
double          | x IN (0.0)                | -0.0..-0.0          | T
double          | x IN (1, NaN)             | 2..3 nans=0         | F
double          | x IN (1, NaN)             | 2..3 nans=1         | TF
double          | x IN (1, NaN)             | 2..3 nans=?         | TF
double          | x IN (1, NaN)             | 1..1 nans=?         | T
double          | x IN (NaN, NULL)          | ?..? nans=10        | T
double          | x NOT IN (1, 3)           | 1..1 nans=?         | TF
# floats: NaN is outside the bounds, above every number, equal to itself
double          | x > 5                     | 1..5 nans=0         | F
double          | x > 5                     | 1..5 nans=1         | TF
double          | x > 5                     | 1..5 nans=?         | TF
double          | x >= 5                    | 6..9 nans=?         | T
double          | x < 5                     | 6..9 nans=?         | F
double          | x < 5                     | 1..4 nans=0         | T
double          | x < 5                     | 1..4 nans=?         | TF
double          | x <= 5                    | 1..4 nans=1         | TF
double          | x = 5                     | 5..5 nans=0         | T
double          | x = 5                     | 5..5 nans=?         | TF
double          | x = 5                     | 6..9 nans=?         | F
double          | x <> 5                    | 5..5 nans=?         | TF
double          | NOT x < 5                 | 1..4 nans=?         | TF
double          | NOT x < 5                 | 1..4 nans=0         | F
double          | x = NaN                   | 1..5 nans=0         | F
double          | x = NaN                   | 1..5 nans=?         | TF
double          | x = NaN                   | ?..? nans=10        | T
double          | x <=> NaN                 | ?..? nulls=4 nans=6 | TF
double          | x = NaN                   | ?..? nulls=4 nans=6 | TN
double          | x < 5                     | ?..? nulls=4 nans=6 | FN
double          | x > 5                     | ?..? nulls=4 nans=6 | TN
double          | x < 5                     | ?..? nulls=4 nans=? | TFN
double          | x < NaN                   | 1..5 nans=0         | T
double          | x < NaN                   | 1..5 nans=?         | TF
double          | x < NaN                   | ?..? nans=10        | F
double          | x <= NaN                  | 1..5 nans=?         | T
double          | x > NaN                   | 1..5 nans=?         | F
double          | x >= NaN                  | 1..5 nans=0         | F
double          | x >= NaN                  | 1..5 nans=?         | TF
double          | NaN > x                   | 1..5 nans=0         | T
double          | x > inf                   | 1..inf nans=0       | F
double          | x >= inf                  | 1..inf nans=0       | TF
double          | x < -inf                  | -inf..5 nans=?      | F
double          | x = 0.0                   | -0.0..-0.0          | T
double          | x < 0.0                   | -0.0..0.0           | F
double          | x > -0.0                  | 0.0..0.0            | F
double          | x > 5                     | NaN..NaN            | TF
double          | x < 5                     | 6..NaN              | TF
double          | x = 5                     | 1..NaN              | TF
double          | x = 5                     | 9..1                | TF
float           | x > 0.5                   | 0.25..0.5           | F
float           | x > 0.5                   | 0.25..0.75          | TF
# decimals
decimal(10,2)   | x > 1.50                  | 1.00..1.50          | F
decimal(10,2)   | x > 1.50                  | 1.00..1.51          | TF
decimal(10,2)   | x = 1.50                  | 1.50..1.50          | T
decimal(10,2)   | x < -99999999.99          | -99999999.99..0.00  | F
decimal(38,0)   | x >= 99999999999999999999999999999999999999 | 0..99999999999999999999999999999999999998 | F
decimal(10,2)   | x > 1.50                  | 3.00..1.00          | TF
decimal(10,2)   | x > 1.50                  | ?..1.50             | F
# strings, as UTF-8 bytes
string          | x > 'b'                   | 'a'..'b'            | F
string          | x > 'b'                   | 'a'..'ba'           | TF
string          | x < 'é'                   | 'z'..'zz'           | T
string          | x < 'z'                   | 'é'..'ü'            | F
string          | x >= ''                   | ''..'a'             | T
string          | x < ''                    | ''..'a'             | F
string          | x = ''                    | 'a'..'b'            | F
string          | x > '😀'                  | 'ﬀ'..'￿'            | F
string          | x = 'b'                   | 'c'..'a'            | TF
string          | x > 'b'                   | ?..'a'              | F
string          | x > 'b'                   | 'a'..?              | TF
# prefixes and patterns
string          | startswith(x, 'ab')       | 'aa'..'aaz'         | F
string          | startswith(x, 'ab')       | 'ac'..'b'           | F
string          | startswith(x, 'ab')       | 'aa'..'ab'          | TF
string          | startswith(x, 'ab')       | 'ab'..'abz'         | T
string          | startswith(x, 'ab')       | 'ab'..'ac'          | TF
string          | startswith(x, 'ab')       | 'abx'..'abz' nulls=1 | TN
string          | startswith(x, '')         | 'a'..'b'            | T
string          | startswith(x, '')         | ?..? nulls=10       | N
string          | x LIKE 'ab%'              | 'ac'..'b'           | F
string          | x LIKE 'ab%'              | 'abc'..'abd'        | T
string          | x LIKE 'ab%%'             | 'abc'..'abd'        | T
string          | x LIKE 'AB%'              | 'AB'..'ABz'         | T
string          | x NOT LIKE 'ab%'          | 'abc'..'abd'        | F
string          | x NOT LIKE 'ab%'          | 'b'..'c'            | T
string          | x LIKE 'ab'               | 'abc'..'abd'        | F
string          | x LIKE 'ab'               | 'ab'..'ab'          | T
string          | x LIKE 'a_c'              | 'b'..'c'            | F
string          | x LIKE 'a_c'              | 'abc'..'abc'        | T
string          | x LIKE 'a%c'              | 'b'..'c'            | F
string          | x NOT LIKE 'a%c'          | 'abc'..'abd'        | TF
string          | x NOT LIKE 'a%c'          | 'b'..'c'            | T
string          | x LIKE '%c'               | 'a'..'b'            | TF
string          | x LIKE '%'                | 'a'..'b'            | T
string          | x LIKE ''                 | 'a'..'b'            | F
string          | x LIKE '50\%'             | '50'..'50'          | F
string          | x LIKE '50\%'             | '50%'..'50%'        | T
string          | x LIKE '50\%%'            | '50%a'..'50%b'      | T
string          | x LIKE '50!%%' ESCAPE '!' | '50'..'50'          | F
string          | x LIKE 'a\\%'             | 'a\b'..'a\c'        | T
string          | x LIKE 'a\b'              | 'x'..'y'            | TFN
string          | x LIKE 'a\'               | 'x'..'y'            | TFN
string          | x LIKE 'a�'               | 'b'..'c'            | F
string          | x LIKE 'a�'               | 'aa'..'ab'          | TF
# dates and timestamps
date            | x >= 2024-02-01           | 2024-01-01..2024-01-31 | F
date            | x >= 2024-02-01           | 2024-01-01..2024-02-01 | TF
date            | x < 1969-12-31            | 1969-12-31..1970-01-02 | F
timestamp       | x > 2024-01-01T00:00:00   | 2023-01-01T00:00:00..2024-01-01T00:00:00 | F
timestamp       | x > 2024-01-01T00:00:00   | 2023-01-01T00:00:00..2024-01-01T00:00:00.000001 | TF
timestamp_ntz   | x = 2024-01-01T00:00:00   | 2024-01-01T00:00:00..2024-01-01T00:00:00 | T
# booleans
boolean         | x                         | FALSE..FALSE        | F
boolean         | x                         | FALSE..TRUE         | TF
boolean         | x                         | TRUE..TRUE          | T
boolean         | NOT x                     | TRUE..TRUE          | F
boolean         | x                         | TRUE..TRUE nulls=1  | TN
boolean         | x = TRUE                  | FALSE..FALSE        | F
boolean         | x <=> FALSE               | TRUE..TRUE nulls=1  | F
boolean         | x IN (TRUE, FALSE)        | FALSE..TRUE         | T
# constants and connectives
int             | TRUE                      | 1..5                | T
int             | FALSE                     | 1..5                | F
int             | NULL                      | 1..5                | N
int             | NOT NULL                  | 1..5                | N
int             | x > 5 AND x < 3           | 1..9                | TF
int             | x > 5 AND x < 3           | 6..9                | F
int             | x > 5 OR x < 3            | 3..5                | F
int             | x > 5 OR x < 3            | 6..9                | T
int             | NOT (x > 5 OR x < 3)      | 3..5                | T
int             | x > 5 AND NULL            | 1..5                | F
int             | x > 5 AND NULL            | 6..9                | N
int             | x > 5 OR NULL             | 1..5                | N
int             | x > 5 OR NULL             | 6..9                | T
int             | x > 5 AND f(x) = 1        | 1..5                | F
int             | x > 5 OR f(x) = 1         | 6..9                | T
int             | NOT (x > 5 OR f(x) = 1)   | 6..9                | F
int             | x > 5 AND x IS NOT NULL   | 6..9 nulls=2        | TFN
# not modelled
int             | f(x) = 1                  | 5..9                | TFN
int             | x = x                     | 5..9                | TF
int             | f(x) IS NULL              | 5..9                | TF
int             | f(x) IN (1)               | 5..9                | TFN
int             | x                         | 5..9                | TFN
string          | startswith(f(x), 'a')     | 'b'..'c'            | TFN
string          | f(x) LIKE 'a'             | 'b'..'c'            | TFN
"""


def _cases() -> list[tuple[str, str, str, str]]:
    lines = [line for line in CASES.splitlines() if line and not line.startswith("#")]
    return [tuple(part.strip() for part in line.split(" | ")) for line in lines]  # type: ignore[misc]


@pytest.mark.parametrize(("type_", "condition", "known", "expected"), _cases())
def test_case(type_: str, condition: str, known: str, expected: str) -> None:
    columns = columns_of(f"x {type_}")
    # A neighbour with other statistics on each side, so that no case depends on being alone.
    files = [entry(text, columns) for text in ("| rows=7", "x: " + known.replace(";", "|"), "| rows=7")]
    verdict = evaluate(
        predicate(condition, references(columns)), file_stats(files, columns), {c.id: c for c in columns}
    )
    possible = zip("TFN", (verdict.can_true[1], verdict.can_false[1], verdict.can_null[1]), strict=True)
    assert "".join(letter for letter, flag in possible if flag) == expected.replace("-", "")
    assert verdict.may[1] == ("T" in expected)
    assert verdict.must[1] == (expected in ("T", "-"))
