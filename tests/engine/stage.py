from __future__ import annotations

from ctrlmgr.testing.stage import REQUESTER, Response, Stage, builtin_kinds

__all__ = ["REQUESTER", "Response", "Stage", "builtin_kinds"]
