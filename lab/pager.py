"""What tells a person: the nth message of all makes FOLDER/told.n and is on its way until there is FOLDER/taken.

    pager.py FOLDER
"""
import os
import sys
import time


def main(folder):
    n = 1
    while True:
        try:
            os.mkdir(os.path.join(folder, f'told.{n}'))
            break
        except FileExistsError:
            n += 1
    while not os.path.exists(os.path.join(folder, 'taken')):
        time.sleep(0.01)


if __name__ == '__main__':
    main(sys.argv[1])
