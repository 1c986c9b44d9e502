"""The folder of a run: written once, secrets masked, and a digest of each file, so that what was changed afterwards shows."""
import hashlib
import json
import os
import re

MANIFEST = 'manifest.json'
SECRET = (re.compile(r'(\b[a-z]+://[^\s:/@"\']*:)[^\s@/"\']+(@)'),
          re.compile(r'(?i)((?:password|passwd|secret|api_?key|authorization)["\']?\s*[=:]\s*["\']?)[^\s"\',;&}]+()'))


def masked(text):
    for secret in SECRET:
        text = secret.sub(r'\1***\2', text)
    return text


def new_run(root):
    """A folder that was not there: run-001, run-002 ... of `root`."""
    os.makedirs(root, exist_ok=True)
    for number in range(1, 100000):
        folder = os.path.join(root, f'run-{number:03}')
        try:
            os.mkdir(folder)
            return folder
        except FileExistsError:
            continue
    raise FileExistsError(f'{root}: has 99999 runs; name another folder')


def runs(root):
    names = sorted(n for n in os.listdir(root) if re.fullmatch(r'run-\d+', n)) if os.path.isdir(root) else []
    return [os.path.join(root, name) for name in names]


def write(path, text):
    """Never over what is there."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'x', encoding='utf-8') as f:
        f.write(masked(text))


def write_json(path, value):
    write(path, json.dumps(value, indent=1, ensure_ascii=False, default=str) + '\n')


def write_lines(path, values):
    write(path, ''.join(json.dumps(value, ensure_ascii=False, default=str) + '\n' for value in values))


def read_json(path):
    with open(path, encoding='utf-8') as f:
        return json.load(f)


def read_lines(path):
    with open(path, encoding='utf-8') as f:
        return [json.loads(line) for line in f if line.strip()]


def files(folder):
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            relative = os.path.relpath(path, folder)
            if relative != MANIFEST:
                with open(path, 'rb') as f:
                    found[relative] = hashlib.sha256(f.read()).hexdigest()
    return dict(sorted(found.items()))


def seal(folder):
    """-> the digest of the manifest: who notes it down elsewhere can tell later whether the folder is still the same."""
    write_json(os.path.join(folder, MANIFEST), dict(files=files(folder)))
    return seal_of(folder)


def seal_of(folder):
    with open(os.path.join(folder, MANIFEST), 'rb') as f:
        return hashlib.sha256(f.read()).hexdigest()


def tampered(folder):
    """What is not as it was sealed, a line each."""
    try:
        told = dict(read_json(os.path.join(folder, MANIFEST))['files'])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return [f'{MANIFEST} is missing or is none: nothing says what the evidence was']
    found = files(folder)
    return ([f'{name} was changed' for name in told if name in found and found[name] != told[name]] +
            [f'{name} is gone' for name in told if name not in found] + [f'{name} was added' for name in found if name not in told])
