"""Serves the issuer's discovery document and keys, with which other systems verify service accounts' tokens.

Guarantees: the key set contains exactly the public keys that this server trusts. Clients need the role
`system:service-account-issuer-discovery` to read the key set.

Source: Kubernetes' `pkg/serviceaccount/openidmetadata.go`, `pkg/routes/openidmetadata.go`, OpenID Connect
Discovery 1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ctrlmgr.authentication.jwt import algorithm_of
from ctrlmgr.authentication.token_keys import VerificationKeys, json_web_key
from ctrlmgr.errors import MethodNotAllowed, NotAcceptable, StatusDetails
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.server.presenting.responses import Response
from ctrlmgr.server.request import Request

DISCOVERY = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"

_JSON = "application/json"
_KEY_SET = "application/jwk-set+json"
_MOST = 1_000
"""Maximum number of alternatives that are parsed in an Accept header."""
_FOR_AN_HOUR = (b"cache-control", b"public, max-age=3600")


def issuer_pages(issuer: str, keys: VerificationKeys, keys_url: Callable[[], str]) -> Mapping[str, Page]:
    """Return the pages by URL path. If the issuer is not an https URL, return no pages, as in Kubernetes.

    `keys_url` returns the URL at which the keys are served. `keys_url` is called for each request, because the server's
    port is not known before the start.
    """
    if not issuer.startswith("https://"):
        return {}
    algorithms = sorted({algorithm_of(each.key) for each in keys.all})
    key_set = msgspec.json.encode({"keys": [json_web_key(each) for each in keys.all]})

    def document() -> bytes:
        return msgspec.json.encode(
            {
                "issuer": issuer,
                "jwks_uri": keys_url(),
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": algorithms,
            }
        )

    return {DISCOVERY: _page(document, _JSON), KEYS: _page(lambda: key_set, _KEY_SET)}


def _page(body: Callable[[], bytes], media_type: str) -> Page:
    headers = ((b"content-type", media_type.encode()), _FOR_AN_HOUR)
    other = f"406: Not Acceptable\n\nAvailable representations: {media_type}"

    async def page(request: Request) -> Response:
        if request.method != "GET":
            raise MethodNotAllowed(details=StatusDetails())
        if not _accepts(request.header(b"accept"), media_type):
            raise NotAcceptable(other, details=StatusDetails())
        return Response(200, body(), headers)

    return page


def _accepts(accept: bytes, media_type: str) -> bool:
    """Return whether the Accept header allows the media type, by the rules of go-restful.

    An empty Accept header allows all media types.
    """
    if not accept:
        return True
    ranges = {each.partition(b";")[0].strip() for each in accept.split(b",", _MOST)}
    return not ranges.isdisjoint({b"*/*", media_type.encode()})
