"""The pure parts of authentication, which neither call a server nor read a clock.

| module | content |
|---|---|
| `user` | users, the groups that every user is in, and the results of authentication |
| `user_names` | the user names that Kubernetes gives to service accounts and nodes |
| `bearer` | bearer tokens in the headers of a request |
| `jwt`, `token_keys` | signed tokens, and the keys that sign and verify them |
| `service_account_claims`, `legacy_claims` | the claims of service account tokens, and their validation |
| `bootstrap_tokens` | tokens of nodes that join the cluster |
| `x509_verification` | verification of client certificate chains, and the users that certificates name |
| `request_header` | users that a trusted proxy names in headers |
| `jwt_configuration`, `jwt_rules` | the `AuthenticationConfiguration` |
| `trusted_issuer`, `token_expressions` | JWT issuers, and expressions about the claims of their tokens |
| `id_tokens` | users from the tokens of JWT issuers |
| `header_lines`, `followed_files` | headers that were parsed, and changes of files that contain credentials |

The package `ctrlmgr.server.authn` contains the parts of authentication that make calls, read files or serve requests.
"""
