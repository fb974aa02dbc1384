"""Applications of Ray Serve: one for each model, so that each is scaled, replaced and fails by itself, and one for the
routes, which forward to them."""

from __future__ import annotations

import dataclasses
import time
import typing

from ray import serve

from .options import read_options
from .replica import ModelReplica
from .repository import Repository

INGRESS = "redfuser"
PREFIX = "redfuser-model-"
PATIENCE_S = 20.0  # with the first replicas of models; their start goes on


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
    """The application of the routes, likewise: args has the folder, and may have the number of its replicas and the
    fields of Limits."""
    from .ingress import Ingress

    limits = {name: value for name, value in args.items() if name not in ("folder", "replicas")}
    deployment = serve.deployment(ray_actor_options={"num_cpus": 0}, max_ongoing_requests=1024,
                                  num_replicas=args.get("replicas", 1))
    return deployment(serve.ingress()(Ingress)).bind(args["folder"], Limits(**limits))


class State(typing.NamedTuple):
    """Of an application: Ray's status, such as RUNNING or DEPLOYING, and its remarks."""

    status: str
    message: str


def served() -> dict[str, State]:
    """The models that have an application."""
    states = {}
    for name, application in serve.status().applications.items():
        if name.startswith(PREFIX):
            remarks = [application.message, *(each.message for each in application.deployments.values())]
            states[name[len(PREFIX):]] = State(application.status.value, " ".join(filter(None, remarks)))
    return states


def start(folder: str, names: typing.Iterable[str]) -> dict[str, str]:
    """Makes the applications of models, and does not wait for their replicas. Returns those that cannot have one, and
    why."""
    targets, problems = [], {}
    for name in names:
        try:
            application = model({"folder": folder, "name": name})
            targets.append(serve.RunTarget(application, application_of(name), route_prefix=None))
        except Exception as error:  # of the options, by this package or by Ray
            problems[name] = str(error)
    if targets:
        serve.run_many(targets, wait_for_applications_running=False)
    return problems


def load(folder: str, name: str, patience_s: float = PATIENCE_S) -> str | None:
    """Serves what the folder has of this name, in every replica. Returns why it does not, if so; what was served
    before then still is."""
    if name not in served():
        problem = start(folder, [name]).get(name)
        if problem is not None:
            return problem
    end = time.monotonic() + patience_s
    while (state := served().get(name)) is not None and state.status == "DEPLOYING" and time.monotonic() < end:
        time.sleep(0.1)
    if state is None or state.status != "RUNNING":
        return f"no replica has started yet {state.message}".rstrip() if state else "the application was removed"
    answers = serve.get_app_handle(application_of(name)).broadcast("reload").results()
    return next((answer for answer in answers if answer is not None), None)


def unload(name: str) -> None:
    serve.delete(application_of(name))


def deploy(folder: str, **options: typing.Any) -> dict[str, str]:
    """Serves the models of the folder; Ray must run. The options are args of ingress(). Returns those that cannot be
    served, and why."""
    repository = Repository(folder)
    path = str(repository.folder)
    serve.run(ingress({"folder": path, **options}), name=INGRESS, route_prefix="/")
    names = repository.names()
    problems: dict[str, str | None] = dict(start(path, [name for name in names if name not in served()]))
    end = time.monotonic() + PATIENCE_S
    problems.update({name: load(path, name, end - time.monotonic()) for name in names if name not in problems})
    return {name: problem for name, problem in problems.items() if problem is not None}
