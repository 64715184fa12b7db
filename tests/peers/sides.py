"""The protocol between report.py and a peer's process.

    PEER.py MODEL THREADS                a line of JSON when ready; then for every line "MEASURE SEED" on standard
                                         input a line of JSON with its values. Between lines the process sleeps.
    PEER.py MODEL THREADS first_token    a line of JSON when the first token of a short prompt is there
"""
import contextlib
import json
import sys
import time

import_seconds = 0.0


@contextlib.contextmanager
def imports():
    """Loading Python packages is no part of a peer's own start."""
    global import_seconds
    start = time.perf_counter()
    yield
    import_seconds += time.perf_counter() - start


def serve(side):
    answers = sys.stdout
    sys.stdout = sys.stderr  # what libraries print is not an answer

    def answer(values):
        print(json.dumps(values), file=answers, flush=True)

    model, threads = sys.argv[1], int(sys.argv[2])
    start = time.perf_counter()
    peer = side(model, threads)
    if sys.argv[3:] == ["first_token"]:
        peer.first_token()
        answer({"first_token": time.perf_counter() - start, "imports": import_seconds})
        return
    answer({"name": side.name})
    for line in sys.stdin:
        measure, seed = line.split()
        answer(getattr(peer, measure)(int(seed)))
