"""The cases of h2spec, the conformance suite for HTTP/2 servers, implemented in memory without sockets and clocks.

Each module contains the cases of one part of h2spec. A case consists of h2spec's section, the frames that the client
sends, and the reaction that the server must show. Section numbers are those of RFC 7540 and RFC 7541. h2spec also
accepts a server that closes the connection without an error code. In these tests, the server must send the error code
that the RFC specifies.
"""
