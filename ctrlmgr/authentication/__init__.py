"""Who are you: the pure parts of authentication, without a server, a file or a clock of their own.

| module | knows |
|---|---|
| `user` | users, the groups that every user is in, and what authentication answers |
| `names` | the names of service accounts and nodes as users |
| `bearer` | where a request carries a token |
| `token_file` | static tokens, as kube-apiserver's `--token-auth-file` has them |
| `jwt`, `keys` | signed tokens, and the keys that sign and verify them |
| `service_account_claims`, `legacy_claims` | what is in a service account's token, and whether it still holds |
| `bootstrap_tokens` | tokens of nodes that are about to join |
| `certificates` | chains of client certificates, and whom they name |
| `request_header` | users named by a trusted proxy |
| `configuration`, `issuer_claims` | `AuthenticationConfiguration`, and users made of a JWT issuer's claims |

What calls out, reads files or is asked by the server is in `ctrlmgr.server.authn`.
"""
