"""What came of it: records -> verdicts -> tables -> page, Markdown, JSON, feeds."""
