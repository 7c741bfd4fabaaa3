"""Large bodies: worker processes started, fed, watched and ended (`process`, `pool`), and their questions answered.

What runs in such a process is `ctrlmgr.largebodies`.
"""
