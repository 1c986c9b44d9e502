"""A disk that keeps nothing but what it was told to flush, for the files of a SQLite store."""
import os
import shutil
import tempfile

from program import HERE
from servers import program, run


class ForgetfulDisk:
    def __init__(self, folder):
        """What is there by now is on the disk."""
        self.folder, self.own = folder, tempfile.mkdtemp(prefix='mtlf')
        self.flushed, self.library = os.path.join(self.own, 'flushed'), os.path.join(self.own, 'disk.so')
        run([program('cc', 'gcc'), '-shared', '-fPIC', '-O1', '-o', self.library, os.path.join(HERE, 'forgetful_disk.c'), '-ldl'])
        shutil.copytree(folder, self.flushed)

    def env(self):
        """Of whoever writes there from now on."""
        return dict(LD_PRELOAD=self.library, MATINS_LAB_DISK=self.folder, MATINS_LAB_FLUSHED=self.flushed)

    def forget(self):
        """The power fails, and comes back. A file that was never synced is gone; one that was removed since stays so."""
        for name in os.listdir(self.folder):
            path, kept = os.path.join(self.folder, name), os.path.join(self.flushed, name)
            if os.path.exists(kept):
                shutil.copyfile(kept, path)
            else:
                os.remove(path)

    def end(self):
        shutil.rmtree(self.own, ignore_errors=True)
