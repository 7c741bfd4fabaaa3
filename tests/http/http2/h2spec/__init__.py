"""The cases of h2spec, the conformance suite of HTTP/2 servers, implemented in memory, without sockets and clocks.

Each module has the cases of one part of h2spec. A case has h2spec's section, the frames that the client sends, and the
required reaction of the server. Numbers of sections are those of RFC 7540 and RFC 7541. h2spec also accepts a server
that closes the connection without an error code. In these tests, the server must send the error code of the RFC.
"""
