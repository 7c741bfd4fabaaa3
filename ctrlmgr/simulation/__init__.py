"""What simulated nodes make of pods: pure functions of a pod, of what it was told to do, and of the time.

Guarantees: nothing is executed, no clock is read, no number is drawn that the seed does not give. A caller who asks
again with the same arguments gets the same life, the same status and the same logs.
"""
