"""The endpoints controller: the Endpoints of each Service that has a selector."""
