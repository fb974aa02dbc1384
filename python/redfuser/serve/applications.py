"""Applications of Ray Serve: one for each model, so that each is scaled, replaced and fails by itself, and one for the
routes, which forward to them."""

from __future__ import annotations

import dataclasses
import typing

from ray import serve

from .options import read_options
from .replica import ModelReplica
from .repository import Repository

INGRESS = "redfuser"
PREFIX = "redfuser-model-"


def application_of(name: str) -> str:
    """The application's name of a model."""
    return PREFIX + name


@dataclasses.dataclass(frozen=True)
class Limits:
    """Of the routes."""

    request_bytes: int = 64 << 20  # of a request's body or message
    attempts: int = 4  # at a request whose replica dies


def model(args: dict[str, typing.Any]) -> serve.Application:
    """The application of a model, also for a file of `serve deploy`: args has the folder and the model's name."""
    entry = Repository(args["folder"]).entry(args["name"])
    deployment = serve.deployment(**read_options(entry).deployment)(ModelReplica)
    return deployment.options(name="Model").bind(args["folder"], args["name"])


def ingress(args: dict[str, typing.Any]) -> serve.Application:
    """The application of the routes, likewise: args has the folder, and may have the fields of Limits."""
    from .ingress import Ingress

    limits = {name: value for name, value in args.items() if name != "folder"}
    deployment = serve.deployment(ray_actor_options={"num_cpus": 0}, max_ongoing_requests=1024)
    return deployment(serve.ingress()(Ingress)).bind(args["folder"], Limits(**limits))


def served() -> dict[str, str]:
    """The models that have an application, and its status."""
    return {name[len(PREFIX):]: status.status.value for name, status in serve.status().applications.items()
            if name.startswith(PREFIX)}


def load(folder: str, name: str) -> str | None:
    """Serves what the folder has of this name, in every replica. Returns why it does not, if so; what was served
    before then still is."""
    try:
        if name not in served():
            serve.run(model({"folder": folder, "name": name}), name=application_of(name), route_prefix=None)
        answers = serve.get_app_handle(application_of(name)).broadcast("reload").results()
    except Exception as error:
        return str(error)
    return next((answer for answer in answers if answer is not None), None)


def unload(name: str) -> None:
    serve.delete(application_of(name))


def deploy(folder: str, **limits: typing.Any) -> dict[str, str]:
    """Serves the models of the folder; Ray must run. Returns those that cannot be served, and why."""
    repository = Repository(folder)
    serve.run(ingress({"folder": str(repository.folder), **limits}), name=INGRESS, route_prefix="/")
    problems = {name: load(str(repository.folder), name) for name in repository.names()}
    return {name: problem for name, problem in problems.items() if problem is not None}
