"""What each rule derives, whether that serves both questions, and where it gives up: one line a function.

``docs/functions.md`` is made of these lines (``python -m tools.functions_table``) and a test insists that there is one
for every rule. The parts of a line, between bars:

* Spark's class, as in ``RULES``, and what people write in SQL;
* what the range of the result is;
* *may*: what it takes to skip files. ``range``: files whose derived range misses what is asked for. ``constant``: only
  files in which the arguments have one value;
* *must*: what it takes to know that all rows of a file match. The same words; ``range`` and ``constant`` always say as
  well that no row of the file can make the result NULL, or NaN where that matters. ``never``: NULL is always possible;
* where it gives up and why. A rule that gives up keeps the file (rule S1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

QUESTIONS = ("range", "constant", "never")


@dataclass(frozen=True, slots=True)
class Note:
    """A line of the table."""

    function: str
    sql: str
    derives: str
    may: str
    must: str
    gives_up: str


_NUMBERS = """
Add | a + b, try_add | the sum of the bounds, decimals exactly | range | range | any value where integers could overflow (legacy mode wraps), unknown where a decimal has too few digits; NaN where infinities meet
Subtract | a - b, try_subtract | the difference of the bounds | range | range | as for a + b
Multiply | a * b, try_multiply | the extremes of the bounds' products | range | range | as for a + b; NaN where zero meets infinity
Divide | a / b, try_divide | the extremes of the bounds' quotients, decimals a little wider | range | range | anything where b can be zero (NULL or an error)
IntegralDivide | a div b | the bounds' quotients, towards zero | range | range | no larger than a where b can be zero, and NULL; the least bigint by -1 overflows; decimals: no rule
Remainder | a % b, try_mod | the sign of a, no larger than a, smaller than b | range | range | NULL where b can be zero; decimals: NULL is always possible, since a quotient of too many digits is an error
Pmod | pmod(a, b) | 0 to below b for a positive b | range | range | smaller than b in size for others; decimals: no rule
UnaryMinus | -a | mirrored | range | range | the least integer has no counterpart: any value; decimals of more than 34 digits: unknown
Abs | abs(a) | folded at zero | range | range | as for -a
Round | round(a, n) | integers and floats: half a unit wider; decimals: as Spark rounds | range | range | n is no literal, or beyond 37 digits
BRound | bround(a, n) | as round | range | range | as round
RoundFloor | floor(a, n) | decimals rounded down | range | range | other types than decimals; n is no literal
RoundCeil | ceil(a, n) | decimals rounded up | range | range | as floor(a, n)
Floor | floor(a) | rounded bounds; NaN is 0 | range | range | never
Ceil | ceil(a) | rounded bounds; NaN is 0 | range | range | never
Signum | sign(a) | -1, 0 or 1 of the bounds | range | range | intervals: no rule
Rint | rint(a) | rounded bounds | range | range | never
Sqrt | sqrt(a) | grows with a | range | range | NaN is possible where a can be negative
Exp | exp(a) | grows with a, sixteen places wider than computed | range | range | never
Expm1 | expm1(a) | as exp | range | range | never
Cbrt | cbrt(a) | as exp | range | range | never
Atan | atan(a) | as exp | range | range | never
Sinh | sinh(a) | as exp | range | range | never
Tanh | tanh(a) | as exp | range | range | never
BitwiseNot | ~a | mirrored: -a - 1 | range | range | never
BitwiseAnd | a & b | 0 to the lesser of both where none is negative, to the one that is not if one can be | range | range | any value where both can be negative
BitwiseOr | bitwise or of a and b | from the greater of both to below the next power of two | range | range | any value where one can be negative
BitwiseXor | a ^ b | 0 to below the next power of two | range | range | as for or
ShiftRight | shiftright(a, n) | grows with a | range | range | n is no literal
ShiftLeft | shiftleft(a, n) | a times a power of two | range | range | n is no literal; any value where it could overflow, since Spark wraps around
BitwiseCount | bit_count(a) | 0 to 64 | range | range | never
ToDegrees | degrees(a) | as exp | range | range | never
ToRadians | radians(a) | as exp | range | range | never
Log | ln(a) | grows with a | range | range | NULL where a can be at or below 0
Log2 | log2(a) | grows with a | range | range | as ln
Log10 | log10(a) | grows with a | range | range | as ln
Log1p | log1p(a) | grows with a | range | range | NULL where a can be at or below -1
Logarithm | log(b, a) | the extremes of the bounds' logarithms | range | range | anything where the base can be 1 or less; NULL where base or a can be at or below 0
Pow | pow(a, b) | the extremes of the bounds' powers | range | range | anything unless a is positive, or b an even literal; infinite exponents
IsNaN | isnan(a) | TRUE or FALSE as the NaN count and the bounds say; never NULL | range | range | a float without a NaN count may always hold one
CheckOverflow | (inserted by Spark) | the decimal in its new precision | range | range | unknown where it has too few digits
KnownNullable | (inserted by Spark) | its argument | range | range | never
KnownNotNull | (inserted by Spark) | its argument | range | range | never
KnownFloatingPointNormalized | (inserted by Spark) | its argument | range | range | never
NormalizeNaNAndZero | (inserted by Spark) | its argument | range | range | never
"""

_CHOICES = """
Cast | cast, try_cast | by the two types, see below | range | range | by the two types, see below
If | if(c, a, b), nullif, nvl2 | the hull of the branches that rows of the file can take | range | range | a branch of which nothing is known counts as any value where it can be taken
CaseWhen | CASE | as if | range | range | as if
Coalesce | coalesce, nvl, ifnull | the hull of the arguments up to the first that is never NULL | range | range | as if
NaNvl | nanvl(a, b) | the numbers of a, and b where a can be NaN | range | range | as if
Greatest | greatest | the hull, but no less than an argument that always is a number | range | range | an argument of a type without an order
Least | least | the hull, but no greater than an argument that always is a number | range | range | an argument of a type without an order
"""

_TIMES = """
Year | year(t) | grows with the date | range | range | bounds outside of the years 1 to 9999, as do all of these
YearOfWeek | extract(YEAROFWEEK FROM t) | grows with the date | range | range | as year
Quarter | quarter(t) | grows with the date within a year, else 1 to 4 | range | range | as year
Month | month(t) | grows with the date within a year, else 1 to 12 | range | range | as year
DayOfYear | dayofyear(t) | grows with the date within a year, else 1 to 366 | range | range | as year
WeekOfYear | weekofyear(t) | grows with the date within a year of ISO weeks, else 1 to 53 | range | range | as year
DayOfMonth | day(t) | grows with the date within a month, else 1 to 31 | range | range | as year
DayOfWeek | dayofweek(t) | grows with the date within a week from Sunday, else 1 to 7 | range | range | as year
WeekDay | weekday(t) | grows with the date within a week from Monday, else 0 to 6 | range | range | as year
Hour | hour(t) | grows with local time within a day, else 0 to 23 | range | range | as year; a time zone that is not known
Minute | minute(t) | grows with local time within an hour, else 0 to 59 | range | range | as hour
Second | second(t) | grows with local time within a minute, else 0 to 59 | range | range | as hour
TruncDate | trunc(d, unit) | grows with the date | range | range | a unit that is no literal, or that Spark does not know
TruncTimestamp | date_trunc(unit, t) | grows with local time | range | range | a unit that is no literal, or that Spark does not know
SecondWithFraction | extract(SECOND FROM t) | grows with local time within a minute, else 0 to 59.999999 | range | range | as hour
FromUTCTimestamp | from_utc_timestamp(t, zone) | the local time in the zone, taken for UTC | range | range | as hour; the zone is no literal
ToUTCTimestamp | to_utc_timestamp(t, zone) | the moment of a local time in the zone | range | range | as from_utc_timestamp
MakeDate | make_date(y, m, d) | all days of the years | range | never | as year; NULL is always possible, since a day need not exist
LastDay | last_day(d) | grows with the date | range | range | as year
NextDay | next_day(d, day) | grows with the date | range | range | a day that is no literal, or that Spark does not know
DateAdd | date_add(d, n) | the sum of the bounds | range | range | a result that may leave the dates, where Spark wraps around
DateSub | date_sub(d, n) | the difference of the bounds | range | range | as date_add
AddMonths | add_months(d, n) | grows with both | range | range | as date_add
DateAddYMInterval | d + interval | grows with both | range | range | as date_add
DateDiff | datediff(d, e) | the difference of the bounds | range | range | as year
SubtractDates | d - e | the difference of the bounds | range | range | legacy intervals
SubtractTimestamps | t - u | the difference of the bounds in local time | range | range | legacy intervals; timestamps of two types
TimestampAddInterval | t + interval | grows with local time | range | range | an interval that is no literal, and legacy intervals
TimeAdd | t + interval (Spark 4.0) | grows with local time | range | range | as t + interval
TimestampAddYMInterval | t + interval of months | grows with local time | range | range | as t + interval
TimestampAdd | timestampadd(unit, n, t) | grows with local time | range | range | a count that is no literal
TimestampDiff | timestampdiff(unit, t, u) | grows with the end, falls with the start, a month wider for months | range | range | timestamps of two types
MonthsBetween | months_between(t, u) | months and days / 31, a quarter of a month wider | range | range | as year
UnixTimestamp | unix_timestamp(t) | seconds, rounded towards zero | range | range | strings, which have to be parsed
ToUnixTimestamp | to_unix_timestamp(t) | as unix_timestamp | range | range | as unix_timestamp
UnixDate | unix_date(d) | the number | range | range | as year
UnixSeconds | unix_seconds(t) | rounded down | range | range | as year
UnixMillis | unix_millis(t) | rounded down | range | range | as year
UnixMicros | unix_micros(t) | the number | range | range | as year
CastTimestampNTZToLong | (inserted by Spark) | rounded down | range | range | as year
SecondsToTimestamp | timestamp_seconds(n) | the number times a constant | range | range | fractions; numbers that overflow
MillisToTimestamp | timestamp_millis(n) | the number times a constant | range | range | numbers that overflow
MicrosToTimestamp | timestamp_micros(n) | the number | range | range | as year
DateFromUnixDate | date_from_unix_date(n) | the number | range | range | as year
DateFormatClass | date_format(t, format) | the bounds written in that format | range | range | formats that do not write larger units first, and legacy formats: their order is not that of time
FromUnixTime | from_unixtime(n, format) | as date_format | range | range | as date_format
"""

_STRINGS = """
Substring | substring(s, 1, n), left(s, n) | the first characters of the bounds, which keep the order | range | range | another start: constants only, of ASCII; positions and lengths that are no literals
Concat | concat, a \\|\\| b | constants, then both bounds of the first other argument if it is the last, else its lower one | range | range | arguments that are no strings
Upper | upper(s) | of constants | constant | constant | ranges, whose order it does not keep; beyond ASCII, where Java may differ
Lower | lower(s) | of constants | constant | constant | as upper
StringTrim | trim(s), trim(BOTH …) | of constants | constant | constant | as upper; characters that are no ASCII literal
StringTrimLeft | ltrim(s), trim(LEADING …) | of constants | constant | constant | as trim
StringTrimRight | rtrim(s), trim(TRAILING …) | blanks: from the lower bound, cut off where it may end, to the upper; else of constants | range | range | as trim
Length | length(s) | of constants; else 1 and more if the lower bound is not empty | constant | constant | as upper
OctetLength | octet_length(s) | as length | constant | constant | as length
EndsWith | endswith(s, part), LIKE '%part' | of constants, byte by byte | constant | constant | a part that is no literal
Contains | contains(s, part), LIKE '%part%' | of constants, byte by byte | constant | constant | as endswith
RLike | s RLIKE '^abc…' | what starts with the literal prefix may match, and does if nothing but .* follows | range | range | patterns without ^, with \\|, backslashes or flags
"""

_PREDICATES = """
x = v, <, <=, >, >=, <=> | the bounds of x against the literal, or against those of another expression | range | range | two types that are not compared in one domain; collated strings
x BETWEEN v AND w | as x >= v AND x <= w | range | range | as a comparison
x IN (v, …) | a listed value lies in the bounds; integers are counted, [3, 5] is within (3, 4, 5) | range | range | a list that is a subquery; must of other types than integers: constants only
s LIKE 'abc%', startswith | the bounds against 'abc' and the least string above all that start with it | range | range | collated strings; patterns that are no literals
s LIKE 'ab_c%d' | its literal prefix; constants of ASCII in full | range | constant | a pattern without a literal prefix, on ranges
x IS NULL, IS NOT NULL | the NULL count of a column, what the rule says of an expression | range | range | a column without a NULL count
b, NOT b | a boolean column is a predicate by its bounds | range | range | never
p AND q, p OR q, NOT p | what is possible on either side, NULL as SQL has it | range | range | never: a side that nothing is known of can be anything, its neighbour still counts
any other function | where its columns have one value each in a file, Spark evaluates it | constant | constant | more than 4,096 different values, more than five columns; ranges
"""

_CASTS = """
integer to integer | the number | any value where the target is too narrow (legacy mode wraps)
integer to float | the number, wider where it is not exactly representable | never
integer to decimal | the number | unknown where the precision is too small
integer to boolean | whether it can be zero, and something else | never
float to integer | cut off at the point; NaN may become 0 | any value where it does not fit
float to float | the number, a double as a float a place wider | never
float to decimal | the number, a little wider | unknown where it does not fit; NaN and infinity become NULL
float to boolean | whether it can be zero, and something else; NaN is true | never
decimal to integer | cut off at the point, a little wider | any value where it does not fit
decimal to float | the number, a little wider | never
decimal to decimal | rounded half up, as Spark does | unknown where the precision is too small
decimal to boolean | whether it can be zero, and something else | never
boolean to integer | 0 and 1 | never
boolean to float | 0 and 1 | never
boolean to decimal | 0 and 1 | unknown if the decimal has no place for a 1
date to timestamp | midnight in the time zone, clocks' changes included | bounds outside of the years 1 to 9999
date to timestamp_ntz | midnight | bounds outside of the years 1 to 9999
timestamp to date | grows with local time | bounds outside of the years 1 to 9999
timestamp_ntz to date | grows with the time | bounds outside of the years 1 to 9999
timestamp to timestamp_ntz | local time, hours that clocks repeat included | bounds outside of the years 1 to 9999
timestamp_ntz to timestamp | the instants, hours that clocks skip included | bounds outside of the years 1 to 9999
timestamp to bigint | seconds, rounded down | bounds outside of the years 1 to 9999
timestamp to int | seconds, rounded down | where they do not fit
timestamp to double | seconds | bounds outside of the years 1 to 9999
tinyint to timestamp | seconds | never
smallint to timestamp | seconds | never
int to timestamp | seconds | never
bigint to timestamp | seconds | where they overflow
date to string | the bounds as Spark writes them | bounds outside of the years 1 to 9999, legacy formats
timestamp to string | the bounds in local time, up to the fraction of a second | bounds outside of the years 1 to 9999, legacy formats
timestamp_ntz to string | the bounds, up to the fraction of a second | bounds outside of the years 1 to 9999, legacy formats
interval to interval | the number | intervals that end before seconds, or before months
"""

SECTIONS: Mapping[str, str] = {
    "Numbers": _NUMBERS,
    "Conditions and choices": _CHOICES,
    "Dates and timestamps": _TIMES,
    "Strings": _STRINGS,
}


def notes(text: str) -> Iterator[Note]:
    """The notes of some lines; one that is not well-formed is an error that says what to write."""
    for line in text.strip().splitlines():
        parts = [part.strip().replace("\0", "|") for part in line.replace(r"\|", "\0").split("|")]
        if len(parts) != 6 or not all(parts) or parts[3] not in QUESTIONS or parts[4] not in QUESTIONS:
            raise ValueError(
                f"in {__name__} the line «{line}» must read: Spark's class | SQL | what it derives | may | must | "
                f"where it gives up and why, with may and must one of {', '.join(QUESTIONS)}"
            )
        yield Note(*parts)


def cast_notes() -> Iterator[tuple[str, str, str]]:
    """What is known of each cast: its types, what it derives, where it gives up."""
    for line in _CASTS.strip().splitlines():
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not all(parts) or " to " not in parts[0]:
            raise ValueError(f"in {__name__} the line «{line}» must read: from to to | what it derives | gives up")
        yield parts[0], parts[1], parts[2]


def predicate_notes() -> list[Note]:
    """The notes of predicates, which have no class: the evaluator knows them."""
    return list(notes("\n".join(f"predicate | {line}" for line in _PREDICATES.strip().splitlines())))
