"""Pages, figures and tables that show a run; one file that opens offline."""
