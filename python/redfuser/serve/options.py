"""The options of a served model, a TOML file of these tables:

    [session]      of redfuser.Session, such as device = "cuda"
    [batching]     max_rows = 32, which declares that rows of the first dimension do not depend on each other;
                   wait_ms = 2 for further requests
    [generator]    capacity, and states = [["past", "present"], ...], of redfuser.Generator
    [deployment]   of ray.serve.deployment: num_replicas, autoscaling_config, ray_actor_options, ...
"""

from __future__ import annotations

import dataclasses
import inspect
import typing

from ray import serve

from .._core import UserError
from ..providers import did_you_mean
from ..sessions import Session
from .repository import Entry

Table = typing.Dict[str, typing.Any]
# Of a deployment: more requests wait in a replica than Ray's default, so that batches can fill; no
# share of a machine is reserved unless the file asks for one.
DEPLOYMENT: Table = {"max_ongoing_requests": 256, "ray_actor_options": {"num_cpus": 0}}
SESSION = {name: parameter.default for name, parameter in inspect.signature(Session.__init__).parameters.items()
           if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
BATCHING: Table = {"max_rows": 1, "wait_ms": 2.0}
GENERATOR: Table = {"capacity": 0, "states": []}
DEPLOYMENT_NAMES = set(inspect.signature(serve.deployment).parameters) - {
    "_func_or_class", "name", "version", "route_prefix", "user_config"}


@dataclasses.dataclass(frozen=True)
class Options:
    session: Table
    batching: Table
    generator: Table
    deployment: Table


def parsed(text: str) -> Table:
    try:
        import tomllib as toml
    except ImportError:  # CPython 3.10
        import tomli as toml  # type: ignore[no-redef,import-not-found]
    return toml.loads(text)


def checked(where: str, table: typing.Any, defaults: Table) -> Table:
    """The table with defaults for what it lacks. UserError for unknown names and values of another type."""
    if not isinstance(table, dict):
        raise UserError(f"{where} is not a table")
    for name, value in table.items():
        if name not in defaults:
            raise UserError(f'{where} has no option "{name}"{did_you_mean(name, defaults)}')
        wanted = type(defaults[name])
        if type(value) is not wanted and not (wanted is float and type(value) is int):
            raise UserError(f"{where}: option {name} is {value!r}, but takes a value of type {wanted.__name__}")
    return {**defaults, **table}


def read_options(entry: Entry) -> Options:
    """Of an entry's file; the defaults where there is none. UserError, with the file and the option."""
    tables: Table = {}
    if entry.options.exists():
        try:
            tables = parsed(entry.options.read_text())
        except ValueError as error:
            raise UserError(f"{entry.options}: {error}") from None
    names = [field.name for field in dataclasses.fields(Options)]
    for name in tables:
        if name not in names:
            raise UserError(f"{entry.options} has no table [{name}]{did_you_mean(name, names)}")
    where = {name: f"{entry.options}, [{name}]" for name in names}
    deployment = tables.get("deployment", {})
    for name in deployment:
        if name not in DEPLOYMENT_NAMES:
            raise UserError(f'{where["deployment"]} has no option "{name}"{did_you_mean(name, DEPLOYMENT_NAMES)}')
    batching = checked(where["batching"], tables.get("batching", {}), BATCHING)
    if batching["max_rows"] < 1 or batching["wait_ms"] < 0:
        raise UserError(f'{where["batching"]}: max_rows is at least 1, wait_ms at least 0')
    return Options(session=checked(where["session"], tables.get("session", {}), SESSION), batching=batching,
                   generator=checked(where["generator"], tables.get("generator", {}), GENERATOR),
                   deployment={**DEPLOYMENT, **deployment})
