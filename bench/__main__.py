"""All measurements, one after the other."""

from bench import decide, delta, iceberg, joins, spark

for number, measured in enumerate((decide, joins, spark, delta, iceberg)):
    print("\n" * min(number, 1), end="")
    measured.main()
