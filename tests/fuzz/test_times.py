"""Dates and timestamps against Spark: random predicates over nasty moments in many time zones, and a table by hand."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import secateur
from tests.fixtures import Same
from tests.fuzz.campaign import Tally, command_line, judge, settings
from tests.fuzz.harness import Bench

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "+05:30",
    "Asia/Tehran",
    "America/Sao_Paulo",
)
CONFS = [
    {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi} for ansi in ("true", "false") for zone in ZONES
]
Typed = tuple[str, Callable[[Random], str]]
"""An expression with a generator of literals that it can be compared with."""
EPOCH = dt.datetime(1970, 1, 1)
SECOND, HOUR, DAY = 10**6, 3600 * 10**6, 86400 * 10**6


def micros(text: str) -> int:
    """Microseconds of a time in UTC."""
    since = dt.datetime.fromisoformat(text) - EPOCH
    return (since.days * 86400 + since.seconds) * SECOND + since.microseconds


MOMENTS = [
    micros(text)
    for text in (
        "0001-01-03T00:00:00",
        "0999-12-31T23:59:59.999999",
        "1582-10-04T12:00:00",
        "1582-10-15T00:00:00",
        "1883-11-18T17:00:00",  # New York leaves local mean time
        "1893-03-31T23:06:32",  # Berlin
        "1899-12-31T23:59:59.999999",
        "1900-03-01T00:00:00",
        "1916-04-30T22:00:00",
        "1941-10-01T00:00:00",
        "1945-05-24T00:00:00",
        "1969-12-31T23:59:59.999999",
        "1970-01-01T00:00:00",
        "1981-02-28T14:00:00",  # Lord Howe
        "1999-12-31T23:59:59",
        "2000-02-29T00:00:00",
        "2008-10-04T15:30:00",  # Lord Howe, half an hour
        "2012-02-29T12:00:00",
        "2018-11-04T03:00:00",  # São Paulo, at midnight
        "2019-02-17T02:00:00",
        "2021-03-21T20:30:00",  # Tehran, at midnight
        "2021-09-21T19:30:00",
        "2023-12-31T23:30:00",
        "2024-02-29T00:00:00",
        "2024-03-10T07:00:00",  # New York
        "2024-03-31T01:00:00",  # Berlin
        "2024-04-06T15:00:00",
        "2024-10-27T01:00:00",
        "2024-11-03T06:00:00",
        "2024-12-30T00:00:00",  # the first day of the ISO year 2025
        "2037-11-01T06:00:00",
        "2099-12-31T12:00:00",
        "2150-03-14T07:00:00",
        "9999-12-30T00:00:00",
    )
]
SPREADS = (0, 0, 1, SECOND, 60 * SECOND, HOUR, 3 * HOUR, DAY, 7 * DAY, 32 * DAY, 370 * DAY, 4000 * DAY)
LEAST, MOST = micros("0001-01-02T00:00:00"), micros("9999-12-30T23:59:59.999999")


def nasty(rng: Random) -> Sequence[pa.Table]:
    """Two dozen files of five rows; some constant, some without a value, most narrow."""
    return [_file(rng) for _ in range(24)]


def _file(rng: Random) -> pa.Table:
    rows = rng.randint(1, 6)
    columns = {}
    moment, spread = rng.choice(MOMENTS), rng.choice(SPREADS)
    for name, kind in {
        "d": pa.date32(),
        "e": pa.date32(),
        "ts": pa.timestamp("us", "UTC"),
        "us": pa.timestamp("us", "UTC"),
        "n": pa.timestamp("us"),
        "i": pa.int32(),
        "l": pa.int64(),
    }.items():
        if rng.random() < 0.3:
            moment, spread = rng.choice(MOMENTS), rng.choice(SPREADS)
        values = [min(max(moment + rng.randint(-spread, spread), LEAST), MOST) for _ in range(rows)]
        if name in "de":
            values = [v // DAY for v in values]
        elif name == "i":
            values = [rng.choice((0, 1, 7, 31, -400, v // DAY)) for v in values]
        elif name == "l":
            values = [v // SECOND for v in values]
        nulls = rng.choice((0.0, 0.0, 0.0, 0.3, 1.0 if rng.random() < 0.3 else 0.0))
        columns[name] = (
            pa.array([None if rng.random() < nulls else v for v in values], pa.int64())
            .cast(pa.int32() if kind in (pa.date32(), pa.int32()) else pa.int64())
            .cast(kind)
        )
    return pa.table(columns)


UNITS = ("year", "yyyy", "QUARTER", "month", "mon", "week", "day", "hour", "minute", "second", "millisecond", "mm", "x")
ADDED = ("1", "-1", "0", "3", "30", "-31", "365", "-1000", "100000")
FORMATS = (
    "yyyy",
    "yyyy-MM",
    "yyyy-MM-dd",
    "yyyyMMdd",
    "yyyyMM",
    "yyyy-MM-dd HH:mm:ss",
    "MM-dd",
    "yyyy-MM-dd HH",
    "EEE",
)
DAY_TIMES = (
    "interval '1' day",
    "interval '-1' day",
    "interval '90' minute",
    "interval '-25' hour",
    "interval '1 02:03:04.000005' day to second",
    "interval '-40 23:59:59.999999' day to second",
    "interval '0' second",
)
YEAR_MONTHS = ("interval '1' month", "interval '-1' month", "interval '13' month", "interval '-2-3' year to month")
LONG_UNITS = ("MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")


def predicate(rng: Random, depth: int = 0) -> str:
    """A predicate in SQL."""
    roll = rng.random()
    if depth < 2 and roll < 0.2:
        op = rng.choice(("AND", "OR"))
        return f"({predicate(rng, depth + 1)} {op} {predicate(rng, depth + 1)})"
    if depth < 2 and roll < 0.27:
        return f"NOT ({predicate(rng, depth + 1)})"
    kind = rng.choice(("date", "ts", "ntz", "field", "field", "long", "double", "interval", "months", "text"))
    left, literal = EXPRESSIONS[kind](rng, 0)
    roll = rng.random()
    if roll < 0.08:
        return f"{left} IS {rng.choice(('', 'NOT '))}NULL"
    if roll < 0.18:
        return f"{left} IN ({literal(rng)}, {literal(rng)}, {literal(rng)})"
    if roll < 0.28:
        return f"{left} BETWEEN {literal(rng)} AND {literal(rng)}"
    op = rng.choice(("=", "<", "<=", ">", ">=", "<=>", "<>"))
    if roll < 0.4:
        return f"{left} {op} {EXPRESSIONS[kind](rng, 1)[0]}"
    return f"{left} {op} {literal(rng)}"


def _moment(rng: Random) -> int:
    value = rng.choice(MOMENTS) + rng.choice((0, 0, 1, -1, HOUR, -HOUR, 5 * HOUR, -DAY, DAY, 31 * DAY))
    value = value // DAY * DAY if rng.random() < 0.4 else value
    return min(max(value, LEAST), MOST)


def _date_literal(rng: Random) -> str:
    if rng.random() < 0.2:
        return f"to_date(timestamp_micros({_moment(rng)}))"
    return f"date'{(EPOCH + dt.timedelta(microseconds=_moment(rng))).date().isoformat()}'"


def _ts_literal(rng: Random) -> str:
    moment = f"timestamp_micros({_moment(rng)})"
    return moment if rng.random() < 0.6 else f"date_trunc('{rng.choice(UNITS[:-1])}', {moment})"


def _ntz_literal(rng: Random) -> str:
    return f"timestamp_ntz'{(EPOCH + dt.timedelta(microseconds=_moment(rng))).isoformat(sep=' ')}'"


def _date(rng: Random, depth: int) -> Typed:
    if depth > 2 or rng.random() < 0.25:
        return rng.choice("de"), _date_literal
    inner = _date(rng, depth + 1)[0]
    made = rng.choice(
        (
            f"to_date({_ts(rng, depth + 1)[0]})",
            f"cast({_ntz(rng, depth + 1)[0]} as date)",
            f"cast({_ts(rng, depth + 1)[0]} as date)",
            f"trunc({inner}, '{rng.choice(UNITS)}')",
            f"last_day({inner})",
            f"next_day({inner}, '{rng.choice(('MON', 'tu', 'Sunday', 'FRI', 'xx'))}')",
            f"date_add({inner}, {rng.choice((*ADDED, 'i'))})",
            f"date_sub({inner}, {rng.choice((*ADDED, 'i'))})",
            f"add_months({inner}, {rng.choice((*ADDED, 'i'))})",
            f"({inner} + {rng.choice(YEAR_MONTHS)})",
            f"({inner} - {rng.choice(YEAR_MONTHS)})",
            "date_from_unix_date(i)",
            f"make_date(year({inner}), {rng.choice((1, 2, 12))}, {rng.choice((1, 28, 29, 31))})",
            "make_date(i, 1, 1)",
        )
    )
    return made, _date_literal


def _ts(rng: Random, depth: int) -> Typed:
    if depth > 2 or rng.random() < 0.3:
        return rng.choice(("ts", "us")), _ts_literal
    inner = _ts(rng, depth + 1)[0]
    made = rng.choice(
        (
            f"cast({_date(rng, depth + 1)[0]} as timestamp)",
            f"cast({_ntz(rng, depth + 1)[0]} as timestamp)",
            f"date_trunc('{rng.choice(UNITS)}', {inner})",
            f"date_trunc('{rng.choice(UNITS)}', {inner})",
            f"({inner} {rng.choice('+-')} {rng.choice(DAY_TIMES)})",
            f"({inner} {rng.choice('+-')} {rng.choice(YEAR_MONTHS)})",
            f"timestampadd({rng.choice(LONG_UNITS)}, {rng.choice(ADDED)}, {inner})",
            f"from_utc_timestamp({inner}, '{rng.choice(ZONES)}')",
            f"to_utc_timestamp({inner}, '{rng.choice(ZONES)}')",
            "timestamp_seconds(l)",
            "timestamp_millis(l)",
            "timestamp_micros(l)",
            "timestamp_seconds(i)",
        )
    )
    return made, _ts_literal


def _ntz(rng: Random, depth: int) -> Typed:
    if depth > 2 or rng.random() < 0.3:
        return "n", _ntz_literal
    inner = _ntz(rng, depth + 1)[0]
    made = rng.choice(
        (
            f"cast({_ts(rng, depth + 1)[0]} as timestamp_ntz)",
            f"cast({_date(rng, depth + 1)[0]} as timestamp_ntz)",
            f"({inner} {rng.choice('+-')} {rng.choice(DAY_TIMES)})",
            f"({inner} {rng.choice('+-')} {rng.choice(YEAR_MONTHS)})",
            f"timestampadd({rng.choice(LONG_UNITS)}, {rng.choice(ADDED)}, {inner})",
        )
    )
    return made, _ntz_literal


FIELDS = {
    "year": (1, 999, 1582, 1883, 1899, 1900, 1969, 1970, 2000, 2021, 2023, 2024, 2025, 2150, 9999),
    "quarter": (1, 2, 3, 4, 5),
    "month": (0, 1, 2, 3, 10, 11, 12),
    "day": (1, 2, 15, 28, 29, 30, 31),
    "dayofweek": (0, 1, 2, 6, 7),
    "weekday": (0, 1, 5, 6, 7),
    "dayofyear": (1, 60, 61, 365, 366),
    "weekofyear": (1, 2, 9, 52, 53),
    "yearofweek": (1969, 1970, 2019, 2020, 2024, 2025),
}


def _field(rng: Random, depth: int) -> Typed:
    roll = rng.random()
    if roll < 0.25:
        name = rng.choice(("hour", "minute", "second"))
        return f"{name}({_any_time(rng, depth + 1)})", lambda r: str(r.choice((0, 1, 2, 3, 12, 22, 23, 30, 59)))
    if roll < 0.3:
        made = f"extract(SECOND FROM {_any_time(rng, depth + 1)})"
        return made, lambda r: r.choice(("0", "0.000001", "1.5", "30", "59", "59.999999"))
    if roll < 0.4:
        made = f"datediff({_date(rng, depth + 1)[0]}, {rng.choice((_date(rng, depth + 1)[0], _date_literal(rng)))})"
        return made, lambda r: str(r.choice((-1000, -31, -1, 0, 1, 7, 400, 100000)))
    if roll < 0.45:
        return f"unix_date({_date(rng, depth + 1)[0]})", lambda r: str(_moment(r) // DAY)
    name = rng.choice(tuple(FIELDS))
    inner = rng.choice((_date(rng, depth + 1)[0], _any_time(rng, depth + 1)))
    made = f"extract(yearofweek from {inner})" if name == "yearofweek" else f"{name}({inner})"
    return made, lambda r: str(r.choice(FIELDS[name]))


def _any_time(rng: Random, depth: int) -> str:
    made: str = rng.choice((_ts, _ntz))(rng, depth)[0]
    return made


def _long(rng: Random, depth: int) -> Typed:
    if rng.random() < 0.4:
        start, end = _ts(rng, depth + 1)[0], rng.choice((_ts(rng, depth + 1)[0], _ts_literal(rng)))
        made = f"timestampdiff({rng.choice(LONG_UNITS)}, {start}, {end})"
        return made, lambda r: str(r.choice((-(10**9), -1000, -12, -1, 0, 1, 2, 24, 50, 10**6)))
    made, size = rng.choice(
        (
            (f"unix_timestamp({_any_time(rng, depth + 1)})", SECOND),
            (f"unix_timestamp({_date(rng, depth + 1)[0]})", SECOND),
            (f"unix_seconds({_ts(rng, depth + 1)[0]})", SECOND),
            (f"unix_millis({_ts(rng, depth + 1)[0]})", 1000),
            (f"unix_micros({_ts(rng, depth + 1)[0]})", 1),
            (f"cast({_ts(rng, depth + 1)[0]} as bigint)", SECOND),
            (f"cast({_ts(rng, depth + 1)[0]} as int)", SECOND),
            (f"try_cast({_ts(rng, depth + 1)[0]} as int)", SECOND),
        )
    )
    return made, lambda r: str(_moment(r) // size)


def _double(rng: Random, depth: int) -> Typed:
    if rng.random() < 0.4:
        return f"cast({_ts(rng, depth + 1)[0]} as double)", lambda r: f"{_moment(r) / SECOND!r}D"
    second = rng.choice((_ts(rng, depth + 1)[0], _ts_literal(rng)))
    made = f"months_between({_ts(rng, depth + 1)[0]}, {second}{rng.choice(('', ', false'))})"
    return made, lambda r: r.choice(("-1", "0", "0.5", "1", str(round((_moment(r) - _moment(r)) / DAY / 30.436875))))


def _interval(rng: Random, depth: int) -> Typed:
    if rng.random() < 0.3:
        second = rng.choice((_date(rng, depth + 1)[0], _date_literal(rng)))
        days = ("interval '0' day", "interval '3' day", "interval '-400' day", "interval '100000' day")
        return f"({_date(rng, depth + 1)[0]} - {second})", lambda r: r.choice(days)
    kind, literal = rng.choice(((_ts, _ts_literal), (_ntz, _ntz_literal)))
    return f"({kind(rng, depth + 1)[0]} - {rng.choice((kind(rng, depth + 1)[0], literal(rng)))})", lambda r: r.choice(
        DAY_TIMES
    )


def _text(rng: Random, depth: int) -> Typed:
    made = rng.choice(
        (
            f"date_format({_ts(rng, depth + 1)[0]}, '{rng.choice(FORMATS)}')",
            f"from_unixtime(l, '{rng.choice(FORMATS)}')",
            f"cast({_date(rng, depth + 1)[0]} as string)",
            f"cast({_ts(rng, depth + 1)[0]} as string)",
            f"cast({_ntz(rng, depth + 1)[0]} as string)",
            f"dayname({_date(rng, depth + 1)[0]})",
            f"reverse(date_format({_ts(rng, depth + 1)[0]}, '{rng.choice(FORMATS)}'))",
        )
    )
    if rng.random() < 0.3:
        made = f"left({made}, {rng.choice((4, 7, 10))})"

    def literal(r: Random) -> str:
        text = (EPOCH + dt.timedelta(microseconds=_moment(r))).isoformat(sep=" ")
        text = text.replace("-", "") if r.random() < 0.1 else text
        return f"'{text[: r.choice((4, 7, 10, 13, 19, 26))]}'"

    return made, literal


EXPRESSIONS = {
    "date": _date,
    "ts": _ts,
    "ntz": _ntz,
    "field": _field,
    "long": _long,
    "double": _double,
    "interval": _interval,
    "months": _field,
    "text": _text,
}


@pytest.mark.parametrize("zone", ZONES)
def test_no_verdict_on_times_is_wrong(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, zone: str) -> None:
    rng = Random(f"times in {zone}")
    bench = Bench(spark, pruner, tmp_path / "times", nasty(rng))
    tally = Tally()
    ansi = "true" if ZONES.index(zone) % 2 else "false"
    with settings(spark, {"spark.sql.session.timeZone": zone, "spark.sql.ansi.enabled": ansi}):
        judge(bench, [predicate(rng) for _ in range(40)], tally)
    assert not tally.wrong
    assert tally.judged > 25
    assert tally.share > 0.4


def months_of_two_years() -> Sequence[pa.Table]:
    """A file for each month of 2023 and 2024: days from the first to the last, times two days inside of it."""
    files = []
    for month in range(24):
        first = dt.datetime(2023 + month // 12, month % 12 + 1, 1)
        last = (first + dt.timedelta(days=32)).replace(day=1) - dt.timedelta(days=1)
        inside = [first + dt.timedelta(days=2), first + dt.timedelta(days=14, hours=1), last - dt.timedelta(days=2)]
        files.append(
            pa.table(
                {
                    "d": pa.array([first.date(), (first + dt.timedelta(days=14)).date(), last.date()], pa.date32()),
                    "ts": pa.array(inside, pa.timestamp("us", "UTC")),
                    "n": pa.array(inside, pa.timestamp("us")),
                    "l": pa.array([micros(t.isoformat()) // SECOND for t in inside], pa.int64()),
                }
            )
        )
    return files


SHARP = """
year(ts) = 2024
year(n) = 2024
year(d) IN (2022, 2024)
year(d) > 2023 AND month(d) < 3
quarter(ts) = 2
month(d) = 3
month(ts) BETWEEN 5 AND 7
extract(YEAROFWEEK FROM ts) < 2024
date_trunc('month', ts) = timestamp'2024-03-01'
date_trunc('year', ts) = timestamp'2024-01-01'
date_trunc('quarter', n) = timestamp'2023-04-01'
trunc(d, 'MM') = date'2024-02-01'
trunc(ts, 'year') <> date'2024-01-01'
last_day(d) = date'2024-02-29'
next_day(d, 'MON') > date'2024-12-24'
to_date(ts) BETWEEN date'2024-03-01' AND date'2024-04-15'
cast(ts AS date) < date'2023-04-01'
cast(d AS timestamp) >= timestamp'2024-11-01'
make_date(year(d), 1, 1) = date'2024-01-01'
from_utc_timestamp(ts, 'Asia/Tokyo') < timestamp_micros(1680000000000000)
to_utc_timestamp(ts, 'America/New_York') < timestamp_micros(1680000000000000)
cast(ts AS timestamp_ntz) < timestamp_ntz'2023-02-01'
cast(n AS timestamp) < timestamp'2023-02-01'
date_add(d, 7) > date'2024-12-30'
date_sub(d, 7) < date'2023-02-10'
d + interval '1' month = date'2024-03-29'
add_months(d, 12) <= date'2024-02-01'
datediff(date'2024-12-31', d) < 31
d - date'2023-01-01' > interval '700' day
ts + interval '3' hour < timestamp'2023-03-01'
ts - interval '1' month >= timestamp'2024-11-01'
timestampadd(DAY, 3, ts) < timestamp'2023-03-01'
timestampdiff(DAY, ts, timestamp'2024-12-31') < 29
ts - timestamp'2023-01-01' < interval '33' day
unix_timestamp(ts) < 1680000000
unix_seconds(ts) >= 1733000000
cast(ts AS bigint) < 1680000000
cast(ts AS double) < 1680000000.5D
timestamp_seconds(l) < timestamp'2023-03-01'
date_format(ts, 'yyyy-MM') = '2024-03'
date_format(d, 'yyyyMMdd') >= '20241115'
from_unixtime(l, 'yyyy') = '2023'
cast(d AS string) LIKE '2024-03%'
substring(cast(ts AS string), 1, 7) = '2023-12'
year(ts) <=> 2024
NOT (year(ts) = 2024)
year(ts) = 2024 OR year(ts) = 2023 AND month(ts) = 1
"""


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_files_by_month_are_told_apart(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path, zone: str) -> None:
    """For each line the evaluator keeps exactly the files that hold a match, as if it had read them."""
    bench = Bench(spark, pruner, tmp_path / "months", months_of_two_years())
    lines = SHARP.strip().splitlines()
    with settings(spark, {"spark.sql.session.timeZone": zone}):
        judged = list(bench.judge(lines))
    assert [j.sql for j in judged] == lines
    blunt = [j.sql for j in judged if (j.may != j.some_true).any() or not 0 < j.may.sum() < 24]
    assert blunt == []
    assert not any(j.wrong_must for j in judged)


def test_a_query_keeps_the_time_zone_that_it_was_analysed_in(spark: SparkSession, same: Same, tmp_path: Path) -> None:
    folder = tmp_path / "hours"
    folder.mkdir()
    for hour in range(24):
        times = pa.array([dt.datetime(2024, 1, 15, hour, minute) for minute in (1, 59)], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": times}), folder / f"{hour}.parquet")
    secateur.collect(spark, str(folder))

    def query() -> DataFrame:
        with settings(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
            return spark.read.parquet(str(folder)).where("hour(ts) = 3")

    done = same(query)  # collects in UTC
    assert len(done.rows) == 2
    assert done.files == 1


def test_nothing_is_said_of_legacy_formats(spark: SparkSession, pruner: secateur.Pruner, tmp_path: Path) -> None:
    bench = Bench(spark, pruner, tmp_path / "legacy", months_of_two_years())
    with settings(spark, {"spark.sql.legacy.timeParserPolicy": "LEGACY"}):
        (judged,) = bench.judge(["date_format(ts, 'yyyy-MM') = '2024-03'"])
    assert judged.may.all()


if __name__ == "__main__":
    command_line(nasty, predicate, CONFS)
