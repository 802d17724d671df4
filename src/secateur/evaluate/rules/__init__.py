"""The rules of functions, a module for each kind: the range of a result from the ranges of the arguments."""

from secateur.evaluate.expression_ranges import Rule
from secateur.evaluate.rules import bits, casts, conditionals, numbers, strings, times

RULES: dict[str, Rule] = {
    **numbers.RULES,
    **bits.RULES,
    **casts.RULES,
    **conditionals.RULES,
    **times.RULES,
    **strings.RULES,
}
"""The rule of each function by the name of Spark's class for it."""
