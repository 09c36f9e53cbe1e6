"""The report: what was recorded, for a person who was not there, and the same facts as JSON."""

from twinspan.analysis.report.document import report_document
from twinspan.analysis.report.facts import Report
from twinspan.analysis.report.gather import build_report
from twinspan.analysis.report.page import render_html

__all__ = ["Report", "build_report", "render_html", "report_document"]
