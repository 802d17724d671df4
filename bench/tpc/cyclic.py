"""A schema of movies like that of the join order benchmark, made here, with queries whose join graphs have cycles.

Facts refer to titles and to each other's columns: what joins with a title also joins with what joins with that title,
and links of titles close further cycles. Titles come in the order of their years, so keys and years go together.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FACTS = {
    "cast_info": ("ci_movie", "ci_person"),
    "movie_info": ("mi_movie", "mi_kind"),
    "movie_companies": ("mc_movie", "mc_company"),
    "movie_keyword": ("mk_movie", "mk_keyword"),
    "movie_link": ("ml_movie", "ml_linked"),
}
"""Each with what it is clustered by and sorted by."""

QUERIES = {
    1: """SELECT count(*), min(t_id) FROM title, cast_info, movie_companies
          WHERE t_id = ci_movie AND t_id = mc_movie AND ci_movie = mc_movie AND t_year = 1990""",
    2: """SELECT count(*), min(p_name) FROM title, cast_info, person, movie_keyword
          WHERE t_id = ci_movie AND ci_person = p_id AND mk_movie = t_id AND mk_movie = ci_movie
            AND p_name LIKE 'person 00001%' AND t_year BETWEEN 1950 AND 1955""",
    3: """SELECT c_country, count(*) FROM title, movie_companies, company, movie_info
          WHERE t_id = mc_movie AND mc_company = c_id AND mi_movie = t_id AND mi_movie = mc_movie
            AND c_country = 'country 3' AND t_year > 2015 GROUP BY c_country""",
    4: """SELECT count(*) FROM title a, movie_link, title b, movie_keyword x, movie_keyword y
          WHERE a.t_id = ml_movie AND b.t_id = ml_linked AND x.mk_movie = a.t_id AND y.mk_movie = b.t_id
            AND x.mk_keyword = y.mk_keyword AND a.t_year = 1988""",
    5: """SELECT count(*) FROM cast_info a, cast_info b, movie_link
          WHERE a.ci_movie = ml_movie AND b.ci_movie = ml_linked AND a.ci_person = b.ci_person AND ml_movie < 500""",
    6: """SELECT k_word, count(*) FROM keyword, movie_keyword, title, movie_info
          WHERE k_id = mk_keyword AND mk_movie = t_id AND mi_movie = mk_movie AND mi_movie = t_id
            AND k_word IN ('word 00007', 'word 00013') AND mi_kind = 3 GROUP BY k_word""",
    7: """SELECT count(DISTINCT ci_person) FROM title
          JOIN cast_info ON t_id = ci_movie
          LEFT JOIN movie_info ON mi_movie = t_id AND mi_movie = ci_movie
          WHERE t_kind = 'series' AND t_year = 2001""",
    8: """SELECT t_year, count(*) FROM title
          WHERE t_id IN (SELECT mc_movie FROM movie_companies, company
                         WHERE mc_company = c_id AND c_country = 'country 7')
            AND EXISTS (SELECT 1 FROM movie_keyword WHERE mk_movie = t_id AND mk_keyword = 5) AND t_year < 1935
          GROUP BY t_year""",
    9: """SELECT count(*) FROM title a, title b, movie_link, movie_companies x, movie_companies y
          WHERE a.t_id = ml_movie AND b.t_id = ml_linked AND a.t_year = b.t_year AND x.mc_movie = a.t_id
            AND y.mc_movie = b.t_id AND x.mc_company = y.mc_company AND a.t_year BETWEEN 1970 AND 1972""",
}


def write(scale: float, target: Path) -> None:
    """One file a table; with scale 1 there are 100,000 titles."""
    rng = np.random.default_rng(3)
    titles = max(2_000, int(100_000 * scale))
    persons, companies, keywords = titles // 2, max(50, titles // 50), max(100, titles // 40)
    ids = np.arange(titles)
    years = 1900 + ids * 120 // titles

    def near(count: int) -> tuple[np.ndarray, np.ndarray]:
        movies = rng.integers(0, titles, count)
        return movies, np.clip(movies + rng.integers(-50, 51, count), 0, titles - 1)

    def few(values: int, count: int) -> np.ndarray:
        return np.minimum((rng.pareto(1.0, count) * values / 100).astype(np.int64), values - 1)

    movies, linked = near(titles // 2)
    cast = rng.integers(0, titles, titles * 12)
    # People work in some years only, so that their keys go with those of titles, roughly.
    people = np.clip(cast // 2 + rng.integers(-persons // 20 - 1, persons // 20 + 1, len(cast)), 0, persons - 1)
    tables = {
        "title": {"t_id": ids, "t_year": years, "t_kind": np.array(["movie", "series", "short"])[ids % 3]},
        "person": {"p_id": np.arange(persons), "p_name": [f"person {i:07}" for i in range(persons)]},
        "company": {"c_id": np.arange(companies), "c_country": [f"country {i % 20}" for i in range(companies)]},
        "keyword": {"k_id": np.arange(keywords), "k_word": [f"word {i:05}" for i in range(keywords)]},
        "cast_info": {"ci_movie": cast, "ci_person": people, "ci_role": rng.integers(0, 11, len(cast))},
        "movie_info": {"mi_movie": rng.integers(0, titles, titles * 6), "mi_kind": few(100, titles * 6)},
        "movie_companies": {"mc_movie": rng.integers(0, titles, titles * 3), "mc_company": few(companies, titles * 3)},
        "movie_keyword": {"mk_movie": rng.integers(0, titles, titles * 5), "mk_keyword": few(keywords, titles * 5)},
        "movie_link": {"ml_movie": movies, "ml_linked": linked},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), target / f"{name}.parquet")
