"""Whatever stops the programs while they write, no file is half-written, no temporary file stays,
and the exit code and stderr say what is lost.

    python writing_test.py REDFUSER_RUN REDFUSER_OPT
"""

import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper

RUN, OPT = sys.argv[1], sys.argv[2]
LARGE_BYTES = 1 << 28  # long enough to write that a process can be stopped in the middle
CALLERS_ERROR = 2
LONG_PATH = "a/" * 2500 + "x"  # longer than Linux takes


def make_model(path, elements, data=None):
    """Writes y = x + w; w is zeros, in the file `data` (a hole) if there is one."""
    if data is None:
        weights = helper.make_tensor("w", TensorProto.FLOAT, [elements], np.arange(elements))
    else:
        with open(path.parent / data, "wb") as file:
            file.truncate(4 * elements)
        weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[elements],
                              data_location=TensorProto.EXTERNAL)
        weights.external_data.add(key="location", value=data)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
              for name, dims in [("x", [1]), ("y", [elements])]]
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", values[:1],
                              values[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path.write_bytes(model.SerializeToString())


class Place:
    """A folder with the models in it, and a folder to write to."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.small, self.large = self.root / "small.onnx", self.root / "large.onnx"
        make_model(self.small, 300)
        make_model(self.large, LARGE_BYTES // 4, "large.bin")

    def fresh(self, name):
        folder = self.root / name
        subprocess.run(["rm", "-rf", folder], check=True)
        folder.mkdir()
        return folder


def listing(folder):
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
            for p in folder.rglob("*")}


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, timeout=60,
                          **options)


def shell(redirection, *command):
    return run("sh", "-c", f'exec "$@" {redirection}', "sh", *command)


def expect(done, code, text=""):
    said = done.stderr.decode(errors="replace")
    assert done.returncode == code, f"exit code {done.returncode}, not {code}: {said[-300:]}"
    assert text in said, f"stderr lacks {text!r}: {said[-300:]}"


def opened_below(process, folder):
    """The files below the folder that a process has open."""
    try:
        links = [os.readlink(entry) for entry in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()]
    except OSError:
        return []
    return [link for link in links if link.startswith(str(folder))]


def stop_while_writing(command, folder, before_start=None):
    """Starts a command and stops (SIGSTOP) it when it has a file of the folder open."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, preexec_fn=before_start)
    while process.poll() is None and not opened_below(process, folder):
        time.sleep(0.0005)
    process.send_signal(signal.SIGSTOP)
    # Only now is it sure that the writing is not over.
    assert opened_below(process, folder), "the process was too fast to be stopped"
    return process


def writers(place, model, folder):
    """A command for every kind of file that a program writes, by name."""
    return {
        "model": (OPT, model, folder / "out.onnx"),
        "model with data beside it":
            (OPT, model, folder / "out.onnx", "--external-data-threshold", "0"),
        "npz": (RUN, model, "--outputs", folder / "y.npz"),
        "npy": (RUN, model, "--outputs", folder / "y.npy"),
        "pb": (RUN, model, "--outputs", folder / "y.pb"),
        "json tensors": (RUN, model, "--outputs", folder / "y.json"),
        "data set": (RUN, model, "--outputs", folder),
        "report of run": (RUN, model, "--json", folder / "report.json"),
        "explanation of run": (RUN, model, "--explain", folder / "explain.json"),
        "profile": (RUN, model, "--profile", folder / "profile.json"),
        "explanation of opt": (OPT, model, "--explain", folder / "explain.json"),
        "drawing": (OPT, model, "--svg", folder / "graph.dot"),
        "page of opt": (OPT, model, "--report", folder / "page.html"),
        "page of run": (RUN, model, "--report", folder / "page.html"),
    }


def signals(place):
    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
        for name in ["model", "model with data beside it", "npz"]:
            def check(number=number, name=name):
                folder = place.fresh("signals")
                for old in ["out.onnx", "out.onnx.data", "y.npz"]:
                    (folder / old).write_text("old")
                before = listing(folder)
                process = stop_while_writing(writers(place, place.large, folder)[name], folder)
                process.send_signal(number)
                process.send_signal(signal.SIGCONT)
                process.communicate(timeout=60)
                assert process.returncode == -number, f"ended with {process.returncode}"
                assert listing(folder) == before, f"the folder has {sorted(listing(folder))}"
            yield f"{number.name} while writing: {name}", check

    def ignored():
        folder = place.fresh("signals")
        process = stop_while_writing((OPT, place.large, folder / "out.onnx"), folder,
                                     lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=60)
        assert process.returncode == 0, f"ended with {process.returncode}"
        assert [p.name for p in folder.iterdir()] == ["out.onnx"]
    yield "a signal that the caller ignores stays ignored", ignored


def limits(place):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))

    for name, command in writers(place, place.small, place.root / "limits").items():
        def check(command=command):
            folder = place.fresh("limits")
            expect(run(*command, preexec_fn=limited), CALLERS_ERROR, "File too large")
            assert listing(folder) == {}, f"the folder has {sorted(listing(folder))}"
        yield f"a limit of file sizes: {name}", check

    for name, command in writers(place, place.small, pathlib.Path("/proc")).items():
        yield (f"a folder that takes no file: {name}",
               lambda command=command: expect(run(*command), CALLERS_ERROR, "/proc"))


def standard_streams(place):
    folder = place.fresh("streams")
    model, written = place.small, folder / "out.onnx"
    commands = {
        "help": (OPT, "--help"), "version": (RUN, "--version"), "operators": (OPT, "--list-ops"),
        "dump": (OPT, model, "--dump", "graph"), "explain": (OPT, model, "--explain"),
        "explain as JSON": (OPT, model, "--explain", "-"),
        "summary of opt": (OPT, model, written), "model": (OPT, model, "-"),
        "drawing": (OPT, model, "--svg", "-"), "page": (OPT, model, "--report", "-"),
        "report": (RUN, model), "report as JSON": (RUN, model, "--json", "-"),
        "profile": (RUN, model, "--profile", "-"), "dump of run": (RUN, model, "--dump", "graph"),
    }
    for name, command in commands.items():
        def lost(command=command):
            for redirection, reason in [(">&-", "Bad file descriptor"), ("> /dev/full", "No space")]:
                expect(shell(redirection, *command), CALLERS_ERROR,
                       f"stdout: cannot be written: {reason}")
            reader, writer = os.pipe()
            os.close(reader)
            done = subprocess.run([str(part) for part in command], stdout=writer,
                                  stderr=subprocess.PIPE, timeout=60)
            os.close(writer)
            expect(done, CALLERS_ERROR, "stdout: cannot be written: Broken pipe")
        yield f"stdout is closed, full or a broken pipe: {name}", lost

        def unheard(command=command):
            for redirection in ["2>&-", "2> /dev/full"]:
                expect(shell(redirection, *command), 0)
        yield f"stderr is closed or full: {name}", unheard

    def other_results():
        report = folder / "report.json"
        expect(shell(">&-", RUN, model, "--json", report), CALLERS_ERROR)
        assert report.read_text().startswith("{")
        for redirection in [">&-", ">&- 2>&-", "<&- >&- 2>&-"]:
            written.unlink(missing_ok=True)
            expect(shell(redirection, OPT, model, written), CALLERS_ERROR)
            onnx.checker.check_model(onnx.load(written))
    yield "files are whole though stdout is closed", other_results

    def errors():
        for tool in [RUN, OPT]:
            expect(shell("2>&-", tool, folder / "missing.onnx", "--explain"), CALLERS_ERROR)
        expect(shell("2>&-", OPT, model, "--assert-fused", "row>=9"), 1)
    yield "exit codes stay though stderr is closed", errors


def model_on_stdout(place):
    def model_bytes():
        folder = place.fresh("stdout")
        expect(run(OPT, place.small, folder / "out.onnx"), 0)
        done = run(OPT, place.small, "-", "--explain", cwd=folder)
        expect(done, 0, "fused")
        assert done.stdout == (folder / "out.onnx").read_bytes(), "the bytes differ"
        done = run(OPT, place.small, "-", "--explain", "explain.json", cwd=folder)
        expect(done, 0)
        assert sorted(listing(folder)) == ["explain.json", "out.onnx"]
    yield "the model goes to stdout, words to stderr", model_bytes

    def refused():
        folder = place.fresh("stdout")
        for command in [(OPT, place.small, "-", "--explain", "-"),
                        (OPT, place.small, "-", "--dump", "graph"),
                        (OPT, place.small, "-", "--external-data-threshold", "1K"),
                        (RUN, place.small, "--json", "-", "--profile", "-"),
                        (OPT, place.small, "--report", "-", "--svg", "-"),
                        (RUN, place.small, "--outputs", "-")]:
            done = run(*command, cwd=folder)
            expect(done, CALLERS_ERROR, "stdout")
            assert done.stdout == b"" and listing(folder) == {}
    yield "what stdout cannot take is refused", refused


def paths(place):
    model = place.small
    commands = {
        "IN": (OPT, LONG_PATH, "--explain"), "MODEL": (RUN, LONG_PATH),
        "OUT": (OPT, model, LONG_PATH), "--svg": (OPT, model, "--svg", LONG_PATH),
        "--explain of opt": (OPT, model, "--explain", LONG_PATH),
        "--explain": (RUN, model, "--explain", LONG_PATH),
        "--json": (RUN, model, "--json", LONG_PATH),
        "--report": (RUN, model, "--report", LONG_PATH),
        "--profile": (RUN, model, "--profile", LONG_PATH),
        "--outputs": (RUN, model, "--outputs", LONG_PATH),
        "--outputs npz": (RUN, model, "--outputs", LONG_PATH + ".npz"),
        "--inputs": (RUN, model, "--inputs", LONG_PATH + ".npz"),
        "--inputs by name": (RUN, model, "--inputs", "x=" + LONG_PATH + ".npy"),
        "--compare": (RUN, model, "--compare", LONG_PATH + ".npz"),
    }
    for name, command in commands.items():
        def too_long(command=command):
            done = run(*command)
            expect(done, CALLERS_ERROR, "File name too long")
            expect(done, CALLERS_ERROR, "a/a/a/")
        yield f"a path that is too long: {name}", too_long

    def longest_name():
        target = place.fresh("paths") / ("n" * 250 + ".onnx")
        expect(run(OPT, model, target), 0)
        onnx.checker.check_model(onnx.load(target))
    yield "a name as long as names may be", longest_name

    def mode():
        target = place.fresh("paths") / "out.onnx"
        target.write_text("old")
        target.chmod(0o640)
        expect(run(OPT, model, target), 0)
        assert target.stat().st_mode & 0o777 == 0o640
    yield "a file that is replaced keeps its mode", mode

    for name, option in [("model", ()), ("JSON", ("--explain",)), ("drawing", ("--svg",))]:
        yield (f"a full device: {name}",
               lambda option=option: expect(run(OPT, model, *option, "/dev/full"), CALLERS_ERROR,
                                            "/dev/full: cannot be written: No space left"))


def links(place):
    def written(folder):
        return {
            "out.onnx": (OPT, place.small, folder / "out.onnx"),
            "y.npz": (RUN, place.small, "--outputs", folder / "y.npz"),
            "explain.json": (OPT, place.small, "--explain", folder / "explain.json"),
            "profile.json": (RUN, place.small, "--profile", folder / "profile.json"),
        }

    for exists in [True, False]:
        for name in written(place.root):
            def through(name=name, exists=exists):
                folder = place.fresh("links")
                (folder / "far").mkdir()
                if exists:
                    (folder / "far" / name).write_text("old")
                (folder / "middle").symlink_to(pathlib.Path("far") / name)
                (folder / name).symlink_to(folder / "middle")
                expect(run(*written(folder)[name]), 0)
                assert (folder / name).is_symlink() and (folder / "middle").is_symlink()
                assert (folder / "far" / name).stat().st_size > 3
                assert sorted(p.name for p in folder.iterdir()) == sorted(["far", "middle", name])
                assert [p.name for p in (folder / "far").iterdir()] == [name]
            kind = "a file" if exists else "no file yet"
            yield f"links to {kind}: {name}", through

    def circle():
        folder = place.fresh("links")
        (folder / "out.onnx").symlink_to("other")
        (folder / "other").symlink_to("out.onnx")
        expect(run(OPT, place.small, folder / "out.onnx"), CALLERS_ERROR, "out.onnx")
        assert (folder / "out.onnx").is_symlink()
    yield "links in a circle", circle


def main():
    passed = failed = 0
    with tempfile.TemporaryDirectory() as root:
        place = Place(root)
        for group in [signals, limits, standard_streams, model_on_stdout, paths, links]:
            for name, check in group(place):
                try:
                    check()
                    passed += 1
                except (AssertionError, OSError, subprocess.TimeoutExpired) as problem:
                    failed += 1
                    print(f"{name}: {problem}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
