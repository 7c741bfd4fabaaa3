"""The report of a trial: as JSON, JUnit and SARIF, with a timeline for each finding."""
