"""The endpointslice controller: the EndpointSlices of each Service that has a selector."""
