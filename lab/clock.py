"""A wall clock that can be stepped: of a node, or of a store with all that belongs to it. Monotonic clocks stay as they are."""
import os
import shutil
import struct
import tempfile

from program import HERE
from servers import program, run


class Clock:
    def __init__(self, fixed=0):
        """`fixed`: seconds that it is off from the beginning."""
        self.folder, self.off, self.fixed = tempfile.mkdtemp(prefix='mtlc'), 0, fixed
        os.chmod(self.folder, 0o755)            # a server may run as somebody else
        self.library, self.file = os.path.join(self.folder, 'clock.so'), os.path.join(self.folder, 'clock')
        run([program('cc', 'gcc'), '-shared', '-fPIC', '-O1', '-o', self.library, os.path.join(HERE, 'skewed_clock.c'), '-ldl'])
        self.step(0)

    def env(self):
        return dict(LD_PRELOAD=self.library, MATINS_LAB_CLOCK=self.file, MATINS_TEST_SKEW_S=str(self.fixed))

    def step(self, seconds):
        self.off += seconds
        with open(self.file, 'r+b' if os.path.exists(self.file) else 'wb') as f:
            f.write(struct.pack('=q', round(self.off * 1e6)))

    def end(self):
        shutil.rmtree(self.folder, ignore_errors=True)
