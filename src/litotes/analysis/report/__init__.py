"""What the analyses of a corpus found, as an article: a section for each, with its figure, its evidence and its numbers."""

from litotes.analysis.report.page import report_html

__all__ = ["report_html"]
