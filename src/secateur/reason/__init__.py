"""What follows from statistics: one evaluator, may and must verdicts."""

from secateur.reason.evaluate import evaluate
from secateur.reason.obstacles import obstacles
from secateur.reason.verdict import Verdict

__all__ = ["Verdict", "evaluate", "obstacles"]
