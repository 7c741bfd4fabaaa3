"""The pure parts of authentication: they use no server and no clock.

| module | content |
|---|---|
| `user` | users, the groups that every user is in, and the results of authentication |
| `user_names` | the user names of service accounts and nodes |
| `bearer` | bearer tokens in the headers of a request |
| `jwt`, `token_keys` | signed tokens, and the keys that sign and verify them |
| `service_account_claims`, `legacy_claims` | the claims of service account tokens, and their validation |
| `bootstrap_tokens` | tokens of nodes that join the cluster |
| `x509_verification` | chains of client certificates, and their users |
| `request_header` | users named by a trusted proxy |
| `jwt_configuration`, `jwt_rules` | the `AuthenticationConfiguration` |
| `trusted_issuer`, `token_expressions` | JWT issuers, and expressions about the claims of their tokens |
| `id_tokens` | users from the tokens of JWT issuers |
| `header_lines`, `followed_files` | parsed headers, and changes of files with credentials |

`ctrlmgr.server.authn` contains the parts that make calls, read files or serve requests.
"""
