from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.simulation.behaviour import NOTHING, Behaviour, Subject, behaviour_for
from ctrlmgr.simulation.python_behaviour import Scripted, ScriptedContainer, read_script

SCRIPT = """
FAILING = {"web": 3}

def behaviour(container):
    if container.labels.get("app") in FAILING:
        return f"exit {FAILING[container.labels['app']]} after 20s"
    if container.image.endswith(":bad"):
        return "dance"
    if container.pod == "lost":
        return FAILING[container.pod]
    if container.node == "slow":
        return 7
"""


def script(folder: Path, text: str = SCRIPT) -> Scripted:
    path = folder / "rules.py"
    path.write_text(text)
    return read_script(path)


def test_a_function_determines_the_behaviour_of_containers(tmp_path: Path) -> None:
    rules = [script(tmp_path)]
    web = Subject("a", "web-1", "c", "nginx", labels={"app": "web"})
    assert behaviour_for(web, rules).behaviour == Behaviour(exit_code=3, exits_after=20)
    assert behaviour_for(web._replace(labels={}), rules) == (NOTHING, ())
    own = web._replace(annotations={"simulate.ctrlmgr.io/c": "exit 0 after 1s"})
    assert behaviour_for(own, rules).behaviour.exits_after == 1


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        (Subject(image="x:bad"), ": behaviour(): 'dance' is not a valid phrase; write"),
        (Subject(pod="lost"), ":10: KeyError: 'lost'"),
        (Subject(node="slow"), ": behaviour() returned 7, not phrases or None"),
    ],
)
def test_an_error_is_reported_and_the_container_has_its_default_behaviour(
    subject: Subject, problem: str, tmp_path: Path
) -> None:
    found = behaviour_for(subject, [script(tmp_path)])
    assert found.behaviour == NOTHING
    assert f"{tmp_path / 'rules.py'}{problem}" in found.problems[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def behaviour(container):\n  return (\n", ":2: '(' was never closed"),
        ("import sys\nraise OSError('away')\n", ":2: OSError: away"),
        ("limit = {}\nlimit['x']\n", ":2: KeyError: 'x'"),
        ("behave = 1\n", ":1: there is no function `behaviour(container)`"),
    ],
)
def test_invalid_files_are_refused_with_their_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refusal:
        script(tmp_path, text)
    assert f"{tmp_path / 'rules.py'}{message}" in str(refusal.value)
    with pytest.raises(SettingsError, match="cannot be read"):
        read_script(tmp_path / "none.py")


def test_randomness_is_equal_in_every_run() -> None:
    chances = [ScriptedContainer(Subject("a", f"p{number}", "c")).chance for number in range(1000)]
    assert chances == [ScriptedContainer(Subject("a", f"p{number}", "c")).chance for number in range(1000)]
    assert 0.4 < sum(chances) / len(chances) < 0.6
    assert 0 <= min(chances) < 0.05
