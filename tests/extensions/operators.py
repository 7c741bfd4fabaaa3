"""Five CustomResourceDefinitions that resemble those of well-known operators: deep, large, and with many
`x-kubernetes-…` keywords.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer", "format": "int32"}
BOOLEAN: Schema = {"type": "boolean"}
_AMOUNT = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY: Schema = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": rf"^(\+|-)?{_AMOUNT}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{_AMOUNT}))?$",
    "x-kubernetes-int-or-string": True,
}
DURATION: Schema = {
    "type": "string",
    "pattern": "^(0|(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?)$",
}
ATOMIC_LIST = {"x-kubernetes-list-type": "atomic"}
ATOMIC_MAP = {"x-kubernetes-map-type": "atomic"}
REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


def an_object(_required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties} | ({"required": list(_required)} if _required else {})


def a_map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def a_list(items: Schema, *keys: str) -> Schema:
    marks = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": items, **marks}


FREE: Schema = {"x-kubernetes-preserve-unknown-fields": True}
CONDITIONS = a_list(
    an_object(
        ("lastTransitionTime", "message", "reason", "status", "type"),
        lastTransitionTime={"type": "string", "format": "date-time"},
        message={"type": "string", "maxLength": 32768},
        observedGeneration={"type": "integer", "format": "int64", "minimum": 0},
        reason={"type": "string", "maxLength": 1024, "minLength": 1, "pattern": REASON},
        status={"type": "string", "enum": ["True", "False", "Unknown"]},
        type={"type": "string", "maxLength": 316},
    ),
    "type",
)
KEY_SELECTOR = an_object(("key",), key=STRING, name={"type": "string", "default": ""}, optional=BOOLEAN) | {
    "x-kubernetes-map-type": "atomic"
}
LABEL_SELECTOR = (
    an_object(
        matchExpressions=a_list(
            an_object(("key", "operator"), key=STRING, operator=STRING, values=a_list(STRING) | ATOMIC_LIST)
        )
        | ATOMIC_LIST,
        matchLabels=a_map(STRING),
    )
    | ATOMIC_MAP
)
RESOURCES = an_object(
    claims=a_list(an_object(("name",), name=STRING, request=STRING), "name"),
    limits=a_map(QUANTITY),
    requests=a_map(QUANTITY),
)


def a_container() -> Schema:
    env = an_object(
        ("name",),
        name=STRING,
        value=STRING,
        valueFrom=an_object(
            configMapKeyRef=KEY_SELECTOR,
            secretKeyRef=KEY_SELECTOR,
            fieldRef=an_object(("fieldPath",), apiVersion=STRING, fieldPath=STRING) | ATOMIC_MAP,
        ),
    )
    probe = an_object(
        exec=an_object(command=a_list(STRING) | ATOMIC_LIST),
        httpGet=an_object(("port",), path=STRING, port={"x-kubernetes-int-or-string": True}, scheme=STRING),
        periodSeconds=INTEGER,
        timeoutSeconds=INTEGER,
    )
    port = an_object(
        ("containerPort",),
        containerPort=INTEGER,
        name=STRING,
        protocol={"type": "string", "default": "TCP"},
    )
    return an_object(
        ("name",),
        name=STRING,
        image=STRING,
        args=a_list(STRING) | ATOMIC_LIST,
        env=a_list(env, "name"),
        ports=a_list(port, "containerPort", "protocol"),
        livenessProbe=probe,
        readinessProbe=probe,
        startupProbe=probe,
        resources=RESOURCES,
        securityContext=an_object(
            capabilities=an_object(add=a_list(STRING) | ATOMIC_LIST),
            runAsUser={"type": "integer"},
        ),
        volumeMounts=a_list(
            an_object(
                ("mountPath", "name"),
                mountPath=STRING,
                name=STRING,
                readOnly=BOOLEAN,
            ),
            "mountPath",
        ),
    )


def described(schema: Schema, words: str) -> Schema:
    """Add a description to every schema node, as in real CustomResourceDefinitions, which are large because of their
    descriptions.
    """
    result: Schema = {"description": words}
    for key, value in schema.items():
        if key == "properties":
            result[key] = {name: described(each, f"{name} of {words}") for name, each in value.items()}
        elif key == "items" or (key == "additionalProperties" and isinstance(value, dict)):
            result[key] = described(value, f"what is in {words}")
        else:
            result[key] = value
    return result


def monitoring() -> Schema:
    """Return a CustomResourceDefinition like that of Prometheus, whose schema contains whole pod specs many times, in
    more than half a megabyte.
    """
    pods = {
        f"role{number}": an_object(
            containers=a_list(a_container(), "name"),
            initContainers=a_list(a_container(), "name"),
        )
        for number in range(24)
    }
    spec = an_object(
        ("replicas",),
        replicas={**INTEGER, "minimum": 0, "default": 1},
        retention={**DURATION, "default": "24h"},
        scrapeInterval={**DURATION, "default": "30s"},
        serviceMonitorSelector=LABEL_SELECTOR,
        **pods,
    )
    return described(
        an_object(("spec",), spec=spec, status=an_object(conditions=CONDITIONS)),
        "the monitoring server, as its operator runs it",
    )


def certificates() -> Schema:
    """Return a CustomResourceDefinition like that of cert-manager's Certificate, with formats, enumerations and
    alternatives.
    """
    private_key = an_object(
        algorithm={"type": "string", "enum": ["RSA", "ECDSA", "Ed25519"]},
        rotationPolicy={"type": "string", "enum": ["Never", "Always"], "default": "Never"},
        size={"type": "integer"},
    )
    spec = an_object(
        ("issuerRef", "secretName"),
        commonName=STRING,
        dnsNames=a_list(STRING),
        duration=STRING,
        ipAddresses=a_list({"type": "string", "format": "ipv4"}),
        isCA=BOOLEAN,
        issuerRef=an_object(("name",), name=STRING, kind={"type": "string", "default": "Issuer"}, group=STRING),
        privateKey=private_key,
        secretName=STRING,
        uris=a_list({"type": "string", "format": "uri"}),
        usages=a_list({"type": "string", "enum": ["signing", "digital signature", "server auth", "client auth"]}),
    )
    spec["anyOf"] = [{"required": ["commonName"]}, {"required": ["dnsNames"]}, {"required": ["uris"]}]
    return an_object(("spec",), spec=spec, status=an_object(conditions=CONDITIONS, revision={"type": "integer"}))


def workflows() -> Schema:
    """Return a CustomResourceDefinition with templates for objects of any kind: embedded objects, and fields without a
    schema.
    """
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    step = an_object(
        ("name",),
        name=STRING,
        arguments=an_object(parameters=a_list(an_object(("name",), name=STRING, value=FREE), "name")),
        container=a_container() | {"x-kubernetes-preserve-unknown-fields": True},
        resource=an_object(manifest={**anything, "x-kubernetes-embedded-resource": True}),
    )
    return an_object(("spec",), spec=an_object(templates=a_list(step, "name"), podSpecPatch=anything), status=anything)


def databases() -> Schema:
    """Return a CustomResourceDefinition for database clusters, with validation rules, ranges, and defaults at every
    level.
    """
    storage = an_object(size=QUANTITY, storageClass=STRING, resizeInUseVolumes={"type": "boolean", "default": True})
    backup = an_object(
        retentionPolicy={"type": "string", "pattern": "^[1-9][0-9]*[dwm]$"},
        target={"type": "string", "default": "prefer-standby"},
    )
    spec = an_object(
        ("instances",),
        instances={"type": "integer", "minimum": 1, "default": 1},
        backup={**backup, "default": {}},
        bootstrap=an_object(initdb=an_object(database=STRING, owner=STRING, postInitSQL=a_list(STRING))),
        postgresql=an_object(parameters=a_map(STRING), pg_hba=a_list(STRING)),
        storage=storage,
        tablespaces=a_list(an_object(("name", "storage"), name=STRING, storage=storage), "name"),
    )
    spec["x-kubernetes-validations"] = [{"rule": "self.instances >= 1", "message": "at least one instance"}]
    return an_object(("spec",), spec=spec, status=an_object(instances=INTEGER, phase=STRING, conditions=CONDITIONS))


def routes() -> Schema:
    """Return a CustomResourceDefinition for HTTP routes, with unions, nested lists of type map, and limits for every
    field.
    """
    name = {"type": "string", "maxLength": 253, "minLength": 1}
    header = an_object(
        ("name", "value"),
        name={**name, "pattern": "^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$"},
        type={"type": "string", "enum": ["Exact", "RegularExpression"], "default": "Exact"},
        value={"type": "string", "maxLength": 4096},
    )
    backend = an_object(
        ("name",),
        name=name,
        port={"type": "integer", "maximum": 65535, "minimum": 1},
        weight={**INTEGER, "default": 1},
    )
    match = an_object(
        headers=a_list(header, "name") | {"maxItems": 16},
        method={"type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "DELETE"]},
        path=an_object(type={"type": "string", "default": "PathPrefix"}, value={"type": "string", "default": "/"})
        | {"default": {"type": "PathPrefix", "value": "/"}},
    )
    rule = an_object(
        backendRefs=a_list(backend) | {"maxItems": 16, "x-kubernetes-list-type": "atomic"},
        matches=a_list(match) | {"maxItems": 64, "default": [{"path": {"type": "PathPrefix", "value": "/"}}]},
        timeouts=an_object(request={"type": "string", "pattern": "^([0-9]{1,5}(h|m|s|ms)){1,4}$"}),
    )
    spec = an_object(
        hostnames=a_list({**name, "format": "hostname"}) | {"maxItems": 16},
        rules=a_list(rule) | {"maxItems": 16, "default": [{"matches": [{}]}]},
    )
    return an_object(
        ("spec",),
        spec=spec,
        status=an_object(parents=a_list(an_object(("name",), name=name, conditions=CONDITIONS))),
    )


def a_definition(kind: str, schema: Schema) -> dict[str, Any]:
    plural, group = f"{kind.lower()}s", "operators.example.com"
    columns = [
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [version],
        },
    }


DEFINITIONS = {
    "Monitoring": monitoring,
    "Certificate": certificates,
    "Workflow": workflows,
    "Database": databases,
    "Route": routes,
}
