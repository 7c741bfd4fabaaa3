"""How fast a recording goes through log, caches and controllers.

- `replay into caches` loads a recording into a memory log and follows it with the caches a controller would use,
  without one. Its limit is decoding the same lines with the JSON library alone: `msgspec.json.decode` of each into
  plain dicts. Both read and inflate the same file, in the same run, in turns.
- `replay with controllers` runs the endpoints controller and compares at every checkpoint; its limit is the goal of
  20,000 events a second. docs/performance.md says what bounds it.

Run `python -m bench.replay [RECORDING]`; without one, the committed recording is put 40 times in a row, in as many
clusters' worth of namespaces. With `--check` it exits 1 when a goal is missed.
"""
