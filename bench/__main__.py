"""All measurements, one after the other."""

from bench import decide, spark

decide.main()
print()
spark.main()
