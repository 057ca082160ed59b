"""Several trainings, each in a process of its own, at most one on a device at a time."""

from __future__ import annotations

import argparse
import collections
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

from numsim import _core
from numsim.torch.train._configuration import require_supported

STOPPED = 75


def run_all(options: argparse.Namespace, python: str) -> int:
    """Trains every configuration of the options. Returns the exit code of the program.

    That is the code of the first training that failed, or 75 if one was stopped.
    """
    devices = _devices(options)
    outs = _directories(options)
    for config in options.config:
        require_supported(_core.TrainConfig.read(config, options.set))
    waiting = collections.deque(zip(options.config, outs))
    pool = _Pool(python, _words(options))
    codes = [0] * len(outs)
    free = collections.deque(devices)
    while (waiting and not pool.stopped) or pool.running:
        while waiting and free and not pool.stopped:
            pool.start(len(outs) - len(waiting), *waiting.popleft(), free.popleft())
        number, device, code = pool.next_end()
        codes[number] = code
        free.append(device)
    if waiting:
        codes.append(STOPPED)
    failed = [code for code in codes if code not in (0, STOPPED)]
    return failed[0] if failed else max(codes)


def _devices(options):
    if options.devices is None:
        return [options.device]
    numbers = options.devices.split(",")
    if not all(n.isascii() and n.isdigit() for n in numbers) or len(set(numbers)) < len(numbers):
        raise ValueError(f"--devices: expected different numbers as 0,1, found {options.devices!r}")
    return [f"cuda:{n}" for n in numbers]


def _directories(options):
    """Returns the directory of each configuration."""
    parent = Path(options.out or "results/train")
    names = [Path(config).stem for config in options.config]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"CONFIG: two files have the name {name!r}, which their results need")
    return [parent / name for name in names]


def _words(options):
    """Returns the options that every training gets."""
    words = [word for setting in options.set for word in ("--set", setting)]
    words += ["--resume"] * options.resume + ["--compile"] * options.compile
    if options.autocast is not None:
        words += ["--autocast", options.autocast]
    if options.stop_after is not None:
        words += ["--stop-after", str(options.stop_after)]
    return words


class _Pool:
    """Processes that run. Signals go on to them, and nothing starts after one."""

    def __init__(self, python, words):
        self._command = [python, "-m", "numsim.torch.train"]
        self._words = words
        self._ends = queue.SimpleQueue()
        self.running = {}  # {number of the training: process}
        self.stopped = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._pass_on)

    def _pass_on(self, number, frame):
        self.stopped = True
        for process in list(self.running.values()):
            process.send_signal(number)

    def start(self, number, config, out, device):
        command = [*self._command, config, "--out", str(out), "--device", device, *self._words]
        # In a session of its own: a Ctrl-C of the terminal comes to this process alone.
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.running[number] = process
        print(f"{out.name}: starts on {device}", flush=True)
        threading.Thread(target=self._watch, args=(number, out.name, device, process)).start()

    def _watch(self, number, name, device, process):
        for line in process.stdout:
            sys.stdout.write(f"{name}: {line}")
            sys.stdout.flush()
        code = process.wait()
        self._ends.put((number, device, code if code >= 0 else 128 - code))  # as a shell says it

    def next_end(self):
        """Waits for a training to end. Returns its number, its device and its exit code."""
        end = self._ends.get()
        del self.running[end[0]]
        return end
