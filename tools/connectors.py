"""The Delta and Iceberg connectors that secateur is tested and shown with, as settings of a Spark session.

>>> sorted(settings("/tmp/warehouse", "4.1.4"))[0]
'spark.jars.packages'
"""

from __future__ import annotations

import pyspark

DELTA = {"4.1": "io.delta:delta-spark_4.1_2.13:4.4.0", "4.0": "io.delta:delta-spark_2.13:4.0.1"}
ICEBERG = {
    "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
}
H2 = "com.h2database:h2:2.3.232"
"""A database in memory, for a catalog of Iceberg that keeps its tables' names in one."""


def settings(warehouse: str, version: str = pyspark.__version__) -> dict[str, str]:
    """What a user of both connectors sets: Delta as the session's catalog, and ``ice``, an Iceberg catalog of files."""
    spark = ".".join(version.split(".")[:2])
    return {
        "spark.jars.packages": f"{DELTA[spark]},{ICEBERG[spark]}",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": f"{warehouse}/ice",
    }
