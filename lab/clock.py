"""Clocks that can be stepped: the wall clock of a node, or of a store with all that belongs to it; and a node's own count of the time since boot."""
import os
import shutil
import struct
import tempfile

from program import HERE
from servers import program, run


class Clock:
    def __init__(self, fixed=0, slept=0):
        """Seconds from the beginning: that it is off, and that its machine has slept."""
        self.folder, self.off, self.ahead, self.fixed, self.slept = tempfile.mkdtemp(prefix='mtlc'), 0, 0, fixed, slept
        os.chmod(self.folder, 0o755)            # a server may run as somebody else
        self.library, self.file = os.path.join(self.folder, 'clock.so'), os.path.join(self.folder, 'clock')
        run([program('cc', 'gcc'), '-shared', '-fPIC', '-O1', '-o', self.library, os.path.join(HERE, 'skewed_clock.c'), '-ldl'])
        self.step(0)

    def env(self):
        return dict(LD_PRELOAD=self.library, MATINS_LAB_CLOCK=self.file, MATINS_TEST_SKEW_S=str(self.fixed), MATINS_LAB_SLEPT_S=str(self.slept))

    def step(self, seconds):
        self.off += seconds
        self.write()

    def leap(self, seconds):
        """The time since boot, as if more had passed than has."""
        self.ahead += seconds
        self.write()

    def write(self):
        with open(self.file, 'r+b' if os.path.exists(self.file) else 'wb') as f:
            f.write(struct.pack('=qq', round(self.off * 1e6), round(self.ahead * 1e6)))

    def end(self):
        shutil.rmtree(self.folder, ignore_errors=True)
