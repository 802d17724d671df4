"""Makes Spark read only the files that a query needs, with the same answer.

import secateur

pruner = secateur.attach(spark)      # every query from here on is pruned
spark.sql("SELECT ...").show()
print(pruner.last)                   # what was skipped, and why the rest was not
"""

from secateur.decision.records import JoinRecord, PassRecord
from secateur.errors import AttachError, OptionError, SecateurError
from secateur.reasons import Reason
from secateur.report.summary import PlanningTime, RuntimeStep, ScanSummary, Summary
from secateur.session.pruner import Pruner, attach, collect
from secateur.stats.collect.collector import CollectReport

__version__ = "0.1.0"

__all__ = [
    "AttachError",
    "CollectReport",
    "JoinRecord",
    "OptionError",
    "PassRecord",
    "PlanningTime",
    "Pruner",
    "Reason",
    "RuntimeStep",
    "ScanSummary",
    "SecateurError",
    "Summary",
    "attach",
    "collect",
]
