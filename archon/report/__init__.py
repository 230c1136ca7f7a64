"""What runs show: pass@k with intervals, selectors beside coverage, costs, ledgers, paired comparisons, reports.

Everything is a pure function of the `Record`s that a run's journal stores; only `write_report` touches a disk.
"""

from archon.report.compare import Comparison, compare
from archon.report.coverage import Curve, coverage
from archon.report.intervals import Estimate, Interval, wilson
from archon.report.passk import pass_at_k, pass_at_ks
from archon.report.powerlaw import NoFit, PowerLaw, fit_power_law
from archon.report.records import LayerUse, Record, Run, RunInfo, Sample
from archon.report.summary import Summary, summarise
from archon.report.table import table
from archon.report.write import ReportPaths, write_report

__all__ = [
    "Comparison",
    "Curve",
    "Estimate",
    "Interval",
    "LayerUse",
    "NoFit",
    "PowerLaw",
    "Record",
    "ReportPaths",
    "Run",
    "RunInfo",
    "Sample",
    "Summary",
    "compare",
    "coverage",
    "fit_power_law",
    "pass_at_k",
    "pass_at_ks",
    "summarise",
    "table",
    "wilson",
    "write_report",
]
