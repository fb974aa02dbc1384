"""Follows a folder of models."""

from __future__ import annotations

from .._core import UserError
from .applications import load, served, unload
from .repository import Repository


class Watch:
    """What was served of the folder at its making, or is by follow()."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._served = self._stamps()
        self._before = self._served

    def _stamps(self) -> dict[str, str]:
        """Of every model; the reason in place of a stamp where a name has none."""
        repository, stamps = Repository(self.folder), {}
        for name in repository.names():
            try:
                stamps[name] = repository.entry(name).stamp()
            except UserError as error:
                stamps[name] = str(error)
        return stamps

    def follow(self) -> dict[str, str | None]:
        """Loads what is new or has changed and is as it was at the last call, so that files that are being written are
        left alone; unloads what has gone. Returns the models that it loaded, and why one is not served."""
        now = self._stamps()
        settled = {name for name, stamp in now.items() if self._before.get(name) == stamp}
        changed = [name for name in sorted(settled) if self._served.get(name) != now[name]]
        self._before = now
        results = {}
        for name in changed:
            results[name] = load(self.folder, name)
            self._served[name] = now[name]
        for name in sorted(set(self._served) - set(now)):
            if name in served():
                unload(name)
            del self._served[name]
        return results
