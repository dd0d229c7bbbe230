"""Network namespaces for the end-to-end tests: anonymous, held by a process of the run and gone with it."""

import os
import subprocess

from harness import Failure, Skip, wait_until


class Network:
    def __init__(self, run, name):
        self.name = name
        self.holder = run.start(f"net-{name}", ["unshare", "--net", "sleep", "1000"], ready=None)
        own = os.stat("/proc/self/ns/net").st_ino
        wait_until(lambda: os.stat(f"/proc/{self.holder.pid}/ns/net").st_ino != own, 5, f"network {name}")
        self.do("ip", "link", "set", "lo", "up")

    def inside(self):
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net"]

    def do(self, *argv, text=None):
        done = subprocess.run([*self.inside(), *argv], input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"{self.name}: {' '.join(argv)}: {done.stderr.strip()}")

    def connect(self, other, ours, theirs):
        """A cable to another network, with an address at each end (ADDRESS/BITS)."""
        try:
            self.do("ip", "link", "add", f"to-{other.name}", "type", "veth", "peer", "name", f"to-{self.name}", "netns",
                    str(other.holder.pid))
        except Failure as refusal:
            raise Skip(f"no cables between networks here: {refusal}") from None
        for network, peer, address in ((self, other, ours), (other, self, theirs)):
            network.do("ip", "address", "add", address, "dev", f"to-{peer.name}")
            network.do("ip", "link", "set", f"to-{peer.name}", "up")
