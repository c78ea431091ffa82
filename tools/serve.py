"""Serve the built book on localhost."""

from __future__ import annotations

import argparse
import functools
import http.server
from pathlib import Path

BOOK = Path(__file__).resolve().parent.parent / "_build" / "html"


def main() -> None:
    """Serve the book until interrupted. Exit with an error if the port cannot be used."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    port = parser.parse_args().port
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=BOOK)
    try:
        server = http.server.ThreadingHTTPServer(("localhost", port), handler)
    except OSError as error:
        raise SystemExit(
            f"Port {port} cannot be used ({error.strerror}): make serve PORT=8001"
        ) from None
    print(f"http://localhost:{port} (Ctrl-C ends)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
