import pytest

# Before any test module imports one: pytest shows the values in the assertions of these too.
pytest.register_assert_rewrite("ctrlmgr.testing.eventlog_contract", "ctrlmgr.testing.namespace_contract")
