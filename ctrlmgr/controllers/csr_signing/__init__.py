"""Certificate signing: the four signers of `kubernetes.io`, each with its authority."""
