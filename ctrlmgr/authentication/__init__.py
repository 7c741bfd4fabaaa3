"""The parts of authentication that do no I/O and read no clock.

| module | content |
|---|---|
| `user` | users, the groups to which every user belongs, and the results of authentication |
| `user_names` | the user names that Kubernetes gives to service accounts and nodes |
| `bearer` | bearer tokens in the headers of a request |
| `jwt`, `token_keys` | signed tokens, and the keys that sign and verify tokens |
| `service_account_claims`, `legacy_claims` | the claims of service account tokens, and their validation |
| `bootstrap_tokens` | tokens of nodes that join the cluster |
| `x509_verification` | verification of client certificate chains, and the users that certificates name |
| `request_header` | users that a trusted proxy names in headers |
| `jwt_configuration`, `jwt_rules` | the `AuthenticationConfiguration` |
| `trusted_issuer`, `token_expressions` | JWT issuers, and expressions about the claims of their tokens |
| `id_tokens` | users from the tokens of JWT issuers |
| `header_lines`, `followed_files` | a cache of parsed headers, and the detection of changed files |

The package `ctrlmgr.server.authn` contains the parts of authentication that make calls, read files or serve requests.
"""
