import pytest

pytest.register_assert_rewrite("ctrlmgr.testing.eventlog_contract", "ctrlmgr.testing.namespace_contract")
