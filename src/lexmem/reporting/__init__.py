"""From the files of a finished study to its tables, figures and REPORT.md."""
