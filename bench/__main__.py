"""All measurements, one after the other."""

from bench import decide, delta, iceberg, spark, topk

for number, measured in enumerate((decide, spark, delta, iceberg, topk)):
    print("\n" * min(number, 1), end="")
    measured.main()
