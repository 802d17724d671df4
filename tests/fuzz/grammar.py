"""The grammar of the generated expressions: what yields a value of each kind, one line a way.

``{kind}`` stands for any expression of that kind, ``{kind!}`` for a literal of it. A kind without lines has nothing but
literals (see :mod:`tests.fuzz.literals`). Whatever Spark refuses to analyse is left out when it is put to it, so a line
may be wrong for some of its arguments. **A function gets a rule: it gets a line here**; ``test_coverage.py`` insists.

``number`` is any of ``int``, ``float``, ``decimal`` and what yields them. Those that count something else than a column
of numbers does, the fields of a date, seconds since 1970, lengths, have kinds of their own, because of the literals
that they are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping

Grammar = Mapping[str, tuple[str, ...]]

NUMBERS = ("number", "int", "float", "decimal", "field", "epoch", "size")
"""Kinds that can stand for one another as far as Spark is concerned."""
COMPARED = (*NUMBERS, "text", "date", "ts", "ntz", "daytime", "yearmonth")
"""Kinds that are compared with each other."""

_LINES = {
    "number": """
        ({number} + {number})
        ({number} - {number})
        ({number} * {number})
        ({number} / {number})
        ({number} + {number!})
        ({number} - {number!})
        ({number} * {number!})
        ({number} / {number!})
        ({number} div {number})
        ({number} % {number})
        ({number} % {number!})
        pmod({number}, {number})
        pmod({number}, {number!})
        try_add({number}, {number})
        try_subtract({number}, {number})
        try_multiply({number}, {number})
        try_divide({number}, {number})
        try_mod({number}, {number})
        (- {number})
        abs({number})
        sign({number})
        floor({number})
        ceil({number})
        floor({number}, {digits!})
        ceil({number}, {digits!})
        round({number}, {digits!})
        bround({number}, {digits!})
        round({number})
        rint({number})
        sqrt({number})
        cbrt({number})
        exp({number})
        expm1({number})
        ln({number})
        log2({number})
        log10({number})
        log1p({number})
        log({number}, {number})
        pow({number}, {number})
        pow({number}, {power!})
        pow({power!}, {number})
        atan({number})
        sinh({number})
        tanh({number})
        degrees({number})
        radians({number})
        hypot({number}, {number})
        nanvl({number}, {number})
        cast({number} as {numeric!})
        cast({number} as {numeric!})
        cast({number} as {numeric!})
        try_cast({number} as {numeric!})
        cast({bool} as {numeric!})
        cast({text} as {numeric!})
        try_cast({text} as {numeric!})
        IF({bool}, {number}, {number})
        IF(unit = 'feet', {number} * 0.3048, {number})
        CASE WHEN {bool} THEN {number} WHEN {bool} THEN {number} ELSE {number} END
        CASE WHEN {bool} THEN {number} END
        coalesce({number}, {number})
        coalesce({number}, {number}, {number!})
        nvl({number}, {number})
        nvl2({number}, {number}, {number})
        nullif({number}, {number})
        nullifzero({number})
        zeroifnull({number})
        least({number}, {number})
        greatest({number}, {number})
        least({number}, {number}, {number!})
        greatest({number}, {number!})
        {field}
        {size}
        {epoch}
        months_between({ts}, {ts})
        months_between({ts}, {ts!}, false)
        cast({ts} as double)
    """,
    "int": """
        ({int} + {int})
        ({int} - {int!})
        ({int} * {int!})
        ({int} div {int})
        (- {int})
        cast({number} as {integer!})
        IF({bool}, {int}, {int})
        least({int}, {int})
        coalesce({int}, {int})
        (~{int})
        ({int} & {int})
        ({int} & {int!})
        ({int} | {int})
        ({int} | {int!})
        ({int} ^ {int})
        shiftright({int}, {count!})
        shiftleft({int}, {count!})
        bit_count({int})
        instr({text}, 'b')
        ascii({text})
        levenshtein({text}, 'abc')
        size(split({text}, 'b'))
    """,
    "float": """
        ({float} + {float})
        ({float} * {float})
        ({float} / {float!})
        cast({number} as double)
        cast({number} as float)
        nanvl({float}, {float})
        greatest({float}, {float})
        least({float}, {float})
    """,
    "decimal": """
        ({decimal} + {decimal})
        ({decimal} - {decimal})
        ({decimal} * {decimal})
        ({decimal} / {decimal})
        ({decimal} % {decimal})
        cast({number} as {decimals!})
        cast({decimal} as {decimals!})
        round({decimal}, {digits!})
        abs({decimal})
        coalesce({decimal}, {decimal})
    """,
    "field": """
        year({time})
        quarter({time})
        month({time})
        day({time})
        dayofweek({time})
        weekday({time})
        dayofyear({time})
        weekofyear({time})
        extract(YEAROFWEEK FROM {time})
        hour({moment})
        minute({moment})
        second({moment})
        extract(SECOND FROM {moment})
        datediff({date}, {date})
        datediff({date}, {date!})
        unix_date({date})
        timestampdiff({unit!}, {ts}, {ts})
        timestampdiff({unit!}, {ts}, {ts!})
        timestampdiff({unit!}, {ntz}, {ntz})
        extract(DAY FROM {daytime})
        cast({text} as int)
    """,
    "size": """
        length({text})
        octet_length({text})
        char_length({text})
        bit_length({text})
        (length({text}) + {size!})
    """,
    "epoch": """
        unix_timestamp({time})
        to_unix_timestamp({time})
        unix_timestamp({text}, {format!})
        unix_seconds({ts})
        unix_millis({ts})
        unix_micros({ts})
        cast({ts} as bigint)
        cast({ts} as int)
        try_cast({ts} as int)
        cast({ts} as smallint)
    """,
    "bool": """
        ({bool} AND {bool})
        ({bool} OR {bool})
        ({bool} AND {bool})
        ({bool} OR {bool})
        NOT ({bool})
        NOT ({bool})
        ({bool}) <=> ({bool})
        ({bool}) = ({bool})
        ({bool}) IS NULL
        ({bool}) IS NOT NULL
        ({bool}) IN (true, NULL)
        coalesce({bool}, {bool})
        IF({bool}, {bool}, {bool})
        CASE WHEN {bool} THEN {bool} WHEN {bool} THEN {bool} END
        cast({number} as boolean)
        cast({text} as boolean)
        isnan({number})
        startswith({text}, {text!})
        endswith({text}, {text!})
        contains({text}, {text!})
        contains({text}, {text})
        {text} LIKE {pattern!}
        {text} LIKE {pattern!}
        {text} NOT LIKE {pattern!}
        {text} LIKE {pattern!} ESCAPE {escape!}
        {text} ILIKE {pattern!}
        {text} LIKE ANY ({pattern!}, {pattern!})
        {text} RLIKE {regex!}
        {text} RLIKE {regex!}
        unit = 'feet'
    """,
    "text": """
        substring({text}, {start!}, {count!})
        substring({text}, 1, {count!})
        substring({text}, {start!})
        substring({text}, 1, {int})
        left({text}, {count!})
        right({text}, {count!})
        concat({text!}, {text})
        concat({text}, {text!})
        concat({text}, {text})
        ({text} || '-' || {text})
        concat_ws('-', {text}, {text})
        upper({text})
        lower({text})
        trim({text})
        ltrim({text})
        rtrim({text})
        trim(BOTH {trimmed!} FROM {text})
        trim(LEADING {trimmed!} FROM {text})
        trim(TRAILING {trimmed!} FROM {text})
        replace({text}, {text!}, {text!})
        lpad({text}, {count!}, 'x')
        rpad({text}, {count!}, 'x')
        reverse({text})
        repeat({text}, 2)
        initcap({text})
        regexp_replace({text}, '[ab]+', 'q')
        regexp_extract({text}, '(a|b)(.)', 2)
        get(split({text}, 'b'), 0)
        dayname({date})
        IF({bool}, {text}, {text})
        coalesce({text}, {text!})
        nullif({text}, {text!})
        least({text}, {text})
        greatest({text}, {text!})
        cast({date} as string)
        cast({ts} as string)
        cast({ntz} as string)
        cast({int} as string)
        cast({number} as string)
        cast({bool} as string)
        date_format({time}, {format!})
        from_unixtime({epoch}, {format!})
        left(cast({date} as string), {count!})
        left(cast({ts} as string), {count!})
    """,
    "date": """
        to_date({ts})
        cast({ts} as date)
        cast({ntz} as date)
        cast({text} as date)
        try_cast({text} as date)
        to_date({text}, {format!})
        trunc({date}, {period!})
        last_day({date})
        next_day({date}, {weekday!})
        date_add({date}, {days!})
        date_add({date}, {int})
        date_sub({date}, {days!})
        date_sub({date}, {int})
        add_months({date}, {days!})
        add_months({date}, {int})
        ({date} + {yearmonth!})
        ({date} - {yearmonth!})
        date_from_unix_date({int})
        IF({bool}, {date}, {date})
        coalesce({date}, {date!})
        least({date}, {date})
        greatest({date}, {date!})
        make_date({field}, {field}, {field})
        make_date(year({time}), 2, {field})
        make_date({int}, 1, 1)
    """,
    "ts": """
        cast({date} as timestamp)
        cast({ntz} as timestamp)
        cast({text} as timestamp)
        try_cast({text} as timestamp)
        to_timestamp({text}, {format!})
        cast({epoch} as timestamp)
        cast({int} as timestamp)
        date_trunc({period!}, {ts})
        date_trunc({period!}, {ts})
        ({ts} + {daytime!})
        ({ts} - {daytime!})
        ({ts} + {yearmonth!})
        ({ts} - {yearmonth!})
        ({ts} + {daytime})
        timestampadd({unit!}, {days!}, {ts})
        timestampadd({unit!}, {int}, {ts})
        timestamp_seconds({epoch})
        timestamp_millis({epoch})
        timestamp_micros({epoch})
        timestamp_seconds({number})
        IF({bool}, {ts}, {ts})
        coalesce({ts}, {ts!})
        least({ts}, {ts})
        greatest({ts}, {ts!})
        from_utc_timestamp({ts}, {zone!})
        to_utc_timestamp({ts}, {zone!})
        convert_timezone({zone!}, {zone!}, {ntz})
    """,
    "ntz": """
        cast({ts} as timestamp_ntz)
        cast({date} as timestamp_ntz)
        cast({text} as timestamp_ntz)
        ({ntz} + {daytime!})
        ({ntz} - {daytime!})
        ({ntz} + {yearmonth!})
        ({ntz} - {yearmonth!})
        timestampadd({unit!}, {days!}, {ntz})
        date_trunc({period!}, {ntz})
        coalesce({ntz}, {ntz!})
    """,
    "daytime": """
        ({date} - {date})
        ({date} - {date!})
        ({ts} - {ts})
        ({ts} - {ts!})
        ({ntz} - {ntz})
        ({ntz} - {ntz!})
        coalesce({daytime}, {daytime!})
        cast({daytime} as interval day to second)
        cast(({date} - {date}) as interval day to second)
        cast(IF({bool}, interval '25' hour, interval '-3' hour) as interval day to second)
        ({daytime} + {daytime!})
        ({daytime} * {digits!})
    """,
    "yearmonth": """
        cast({yearmonth} as interval year to month)
        cast(IF({bool}, interval '1' year, interval '-2' year) as interval year to month)
        IF({bool}, {yearmonth!}, {yearmonth!})
        coalesce({yearmonth}, {yearmonth!})
    """,
    "time": """
        {date}
        {ts}
        {ntz}
    """,
    "moment": """
        {ts}
        {ntz}
    """,
}


def _comparisons(kind: str) -> list[str]:
    left, right = f"{{{kind}}}", f"{{{kind}!}}"
    lines = [f"{left} {op} {right}" for op in ("=", "<", "<=", ">", ">=", "<>", "<=>")]
    lines += [f"{right} {op} {left}" for op in ("<", ">=", "<=>")]
    lines += [f"{left} {op} {left}" for op in ("=", "<", ">=", "<=>", "<>")]
    lines += [f"{left} BETWEEN {right} AND {right}", f"{left} IN ({right}, {right}, {right})"]
    lines += [f"{left} NOT IN ({right}, {right})", f"{left} IN ({right}, NULL)", f"{left} IN ({{many_{kind}!}})"]
    return [*lines, f"{left} IS NULL", f"{left} IS NOT NULL"]


def lines(text: str) -> tuple[str, ...]:
    """The lines of a block of text."""
    return tuple(line.strip() for line in text.strip().splitlines())


GRAMMAR: Grammar = {kind: lines(text) for kind, text in _LINES.items()}
COMPARISONS: Grammar = {kind: tuple(_comparisons(kind)) for kind in COMPARED}
"""The predicates by the kind that they compare."""
LEAVES = {
    "int": ("a", "b", "i", "j", "l"),
    "float": ("r", "d", "e"),
    "decimal": ("p", "q", "w"),
    "number": ("a", "b", "i", "j", "l", "r", "d", "e", "p", "q", "w", "st.x"),
    "field": ("i", "j", "st.x"),
    "size": ("i",),
    "epoch": ("k", "l"),
    "bool": ("o", "u"),
    "text": ("s", "s", "t", "unit", "st.y"),
    "date": ("da", "db"),
    "ts": ("ts", "us", "st.z"),
    "ntz": ("n", "m"),
    "daytime": ("(ts - us)", "(n - m)", "(da - db)"),
    "yearmonth": ("IF(o, interval '1' month, interval '-13' month)",),
    "time": ("da", "ts", "n"),
    "moment": ("ts", "n"),
}
"""The columns of each kind."""
