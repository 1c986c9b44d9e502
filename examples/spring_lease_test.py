"""The Spring service that shares a lease with `matins lock`, and how a JSON serialiser breaks it. Where there is no Maven, or none that
reaches its repository, it is skipped (exit 77)."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).parent / 'spring-lease'
PATIENCE = 120
SKIPPED = 77


def libraries():
    """Into a folder that is kept, so that the second time asks nobody."""
    folder = Path(os.environ['MATINS_EXAMPLE_LIBRARIES'])
    if (folder / 'complete').exists():
        return folder
    fetch = ['mvn', '-B', '-q', '-f', HERE / 'pom.xml', 'dependency:copy-dependencies', f'-DoutputDirectory={folder}', '-DincludeScope=runtime']
    try:
        subprocess.run(fetch, stdin=subprocess.DEVNULL, check=True, timeout=180)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as e:
        print('the libraries of examples/spring-lease cannot be had:', e)
        return None
    (folder / 'complete').touch()
    return folder


class SpringLease(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix='msl')
        cls.addClassCleanup(folder.cleanup)
        cls.path = f'{folder.name}:{LIBRARIES}/*'
        subprocess.run(['javac', '-Xlint:all', '-Werror', '-d', folder.name, '-cp', f'{LIBRARIES}/*', HERE / 'Lease.java'], check=True,
                       timeout=PATIENCE)
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            cls.port = s.getsockname()[1]
        redis = subprocess.Popen([REDIS, '--port', str(cls.port), '--bind', '127.0.0.1', '--save', '', '--dir', folder.name],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        cls.addClassCleanup(redis.wait)
        cls.addClassCleanup(redis.kill)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                socket.create_connection(('127.0.0.1', cls.port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.01)
        raise TimeoutError('Redis does not answer')

    def lease(self, *words):
        done = subprocess.run(['java', '-cp', self.path, 'Lease', str(self.port), *words], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def matins(self, key):
        """Whether a call of matins gets the lease."""
        call = [os.environ['MATINS_BINARY'], 'lock', key, '--redis', f'redis://127.0.0.1:{self.port}', '--if-held', 'fail', '--', 'true']
        done = subprocess.run(call, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        self.assertIn('held by' if done.returncode else '', done.stderr)
        return done.returncode == 0

    def test_strings_hold_and_release(self):
        value = self.lease('take', 'night', '60', 'string')
        self.assertEqual(self.lease('take', 'night', '60', 'string'), 'held')
        self.assertFalse(self.matins('night'))
        self.assertEqual(self.lease('release', 'night', 'service/another', 'string'), '0', 'not another holder')
        self.assertEqual(self.lease('release', 'night', value, 'string'), '1')
        self.assertTrue(self.matins('night'))

    def test_a_json_serialiser_releases_nothing_and_says_nothing(self):
        value = self.lease('take', 'load', '60', 'string')
        self.assertEqual(self.lease('release', 'load', value, 'json'), '0')
        self.assertFalse(self.matins('load'), 'it is held until the lease ends by itself')
        value = self.lease('take', 'bill', '60', 'json')
        self.assertEqual(self.lease('release', 'bill', value, 'string'), '0', 'what is stored stands in quotes')
        self.assertFalse(self.matins('bill'))


if __name__ == '__main__':
    REDIS = shutil.which('redis-server') or shutil.which('valkey-server')
    LIBRARIES = libraries() if REDIS and shutil.which('mvn') and shutil.which('javac') else None
    if LIBRARIES is None:
        print('skipped: it needs a JDK, Maven with its repository, and redis-server')
        sys.exit(SKIPPED)
    unittest.main()
