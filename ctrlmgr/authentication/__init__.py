"""The pure parts of authentication: they use no server, no files and no clock.

| module | content |
|---|---|
| `user` | users, the groups that every user is in, and the results of authentication |
| `names` | the user names of service accounts and nodes |
| `bearer` | bearer tokens in the headers of a request |
| `token_file` | static tokens, as in kube-apiserver's `--token-auth-file` |
| `jwt`, `keys` | signed tokens, and the keys that sign and verify them |
| `service_account_claims`, `legacy_claims` | the claims of service account tokens, and their validation |
| `bootstrap_tokens` | tokens of nodes that join the cluster |
| `certificates` | chains of client certificates, and their users |
| `request_header` | users named by a trusted proxy |
| `configuration`, `issuer_claims` | `AuthenticationConfiguration`, and users from a JWT issuer's claims |

`ctrlmgr.server.authn` contains the parts that make calls, read files or serve requests.
"""
