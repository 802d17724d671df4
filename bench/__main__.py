"""All measurements, one after the other."""

from bench import decide, delta, iceberg, joins, spark, star, topk

for number, measured in enumerate((decide, joins, spark, delta, iceberg, topk, star)):
    print("\n" * min(number, 1), end="")
    measured.main()
