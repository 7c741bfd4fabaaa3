"""The constants of rules are found."""

from __future__ import annotations

from ctrlmgr.trial.generation.rule_literals import literals_of


def test_numbers_and_strings_are_found_once() -> None:
    rules = [
        {"rule": "self.mode != 'large' || self.replicas >= 3"},
        {"rule": "self.all(x, x in ['a', 'large']) && size(self) < 3 && self.share < 0.5"},
    ]
    assert {*literals_of({"x-kubernetes-validations": rules})} == {"large", 3, "a", 0.5}


def test_other_constants_and_invalid_rules_are_left_out() -> None:
    rules = [{"rule": "self.paused == true || self.name == '' || self.other == null"}, {"rule": "self.("}, {}]
    assert literals_of({"x-kubernetes-validations": rules}) == []
    assert literals_of({}) == []
