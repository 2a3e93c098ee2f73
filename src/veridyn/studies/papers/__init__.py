"""The studies of the papers, each with the machine and the numbers of its paper; their pages stand in veridyn.report.papers."""
