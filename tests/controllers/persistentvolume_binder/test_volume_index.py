from __future__ import annotations

from random import Random

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.controllers.persistentvolume_binder.volume_index import index_by_possible_claims, possible_volumes
from ctrlmgr.controllers.persistentvolume_binder.volume_matching import best, candidates
from ctrlmgr.informer import Store
from tests.controllers.persistentvolume_binder.test_volume_matching import MINE, Thing, claim, volume

OTHERS = {"namespace": "a", "name": "other"}


def stored(fields: Thing, number: int) -> Object:
    metadata = {**fields["metadata"], "uid": f"u{number}", "resourceVersion": str(number)}
    return Object.from_dict({"apiVersion": "v1", "kind": "PersistentVolume", **fields, "metadata": metadata})


def random_volume(random: Random, number: int) -> Thing:
    spec = {"claimRef": random.choice((None, None, None, MINE, OTHERS)), "storageClassName": random.choice("cd")}
    phase = random.choice(("Available", "Available", "Released"))
    size = f"{random.randint(1, 4)}Gi"
    present = {name: value for name, value in spec.items() if value is not None}
    return volume(f"v{number}", size, random.choice(("O", "OM")), phase=phase, **present)


@pytest.mark.parametrize("seed", range(40))
def test_the_indexed_volumes_give_the_same_choice_as_all_volumes(seed: int) -> None:
    random = Random(seed)
    volumes = [stored(random_volume(random, number), number) for number in range(1, random.randint(2, 9))]
    store = Store()
    store.replace(volumes)
    index_by_possible_claims(store)
    asks = claim(f"{random.randint(1, 3)}Gi", storageClassName=random.choice("cd"))
    fewer = [each.to_dict() for each in possible_volumes(store, asks)]
    everything = [each.to_dict() for each in store.list()]
    assert candidates(asks, fewer) == candidates(asks, everything)
    for delayed in (False, True):
        assert best(asks, fewer, delayed=delayed) == best(asks, everything, delayed=delayed)
