"""Pages of the studies of the papers; they stand above the studies because they are made of the blocks of reports."""
