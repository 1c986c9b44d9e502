"""What `cmake --install` puts down is enough to build and run the embed example: nothing of the
repository is on its include path."""
import os
import subprocess
import sys
import tempfile

cmake, build, source = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    prefix, out = os.path.join(folder, 'prefix'), os.path.join(folder, 'out')

    def run(*command, **options):
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        if done.returncode != options.get('expect', 0):
            sys.exit(f'{" ".join(command)}: exit {done.returncode}\n{done.stdout}')
        return done.stdout

    run(cmake, '--install', build, '--prefix', prefix, '--component', 'library')
    headers = sorted(os.listdir(os.path.join(prefix, 'include', 'matins')))
    assert headers == ['job.h', 'run_context.h', 'scheduler.h', 'testing.h', 'types.h'], headers
    run(cmake, '-G', 'Ninja', '-S', source, '-B', out, f'-DCMAKE_PREFIX_PATH={prefix}')
    run(cmake, '--build', out)
    store = 'sqlite:' + os.path.join(folder, 'matins.db')
    # An empty range: opens, starts and drains.
    run(os.path.join(out, 'embed'), store, '2026-01-02', '2026-01-01')
