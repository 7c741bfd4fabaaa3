"""The cases of h2spec, the conformance suite of HTTP/2 servers, written anew: in memory, with no socket and no clock.

A module has the cases of one part of h2spec. A case names h2spec's section, whose numbers are those of RFC 7540 and
RFC 7541, says what the client sends, and what the server must do. h2spec also passes a server that closes the
connection without a word; here the server must send the code that the RFC names.
"""
