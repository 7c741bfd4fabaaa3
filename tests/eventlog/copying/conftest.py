from __future__ import annotations

from tests.inspection.conftest import past_url, postgres_story, sqlite_story, story_url

__all__ = ["past_url", "postgres_story", "sqlite_story", "story_url"]
