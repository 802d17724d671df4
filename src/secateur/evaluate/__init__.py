"""What follows from statistics: one evaluator, may and must verdicts."""

from secateur.evaluate.evaluator import evaluate
from secateur.evaluate.obstacles import obstacles
from secateur.evaluate.verdict import Verdict

__all__ = ["Verdict", "evaluate", "obstacles"]
