"""The endpointslice mirroring controller: EndpointSlices for Endpoints that a client keeps by hand."""
