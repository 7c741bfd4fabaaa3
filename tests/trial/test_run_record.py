"""The record of a run leads to the files that the run kept."""

from __future__ import annotations

from pathlib import Path

from ctrlmgr.trial.finding import Finding
from ctrlmgr.trial.run_record import OUTPUT, RunRecord, StepSpan


def test_a_record_names_its_log_and_reads_the_output(tmp_path: Path) -> None:
    record = RunRecord(tmp_path, "trial-operator", 10, (StepSpan(10, 12),), 30)
    assert record.database_url == f"sqlite:///{tmp_path}/ctrlmgr.db"
    assert record.output == ""
    (tmp_path / OUTPUT).write_bytes(b"started\n\xff")
    assert record.output == "started\n�"


def test_a_finding_needs_no_object_and_no_revision() -> None:
    assert Finding("endless-writing", "the operator never stops writing.") == Finding(
        "endless-writing", "the operator never stops writing.", "", 0
    )
