"""All measurements, one after the other."""

from bench import decide, delta, iceberg, spark

for number, measured in enumerate((decide, spark, delta, iceberg)):
    print("\n" * min(number, 1), end="")
    measured.main()
