"""The rules of functions, a module for each kind; importing this fills ``ranges.RULES``."""

from secateur.reason.ranges import RULES
from secateur.reason.rules import casts, conditionals, numbers, strings, times

for module in (numbers, casts, conditionals, times, strings):
    RULES.update(module.RULES)
