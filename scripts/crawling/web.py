"""Serves folders on loopback: web.py FOLDER LOG PORT-FILE. It ends when its standard input ends.

The log has a line for each request, with status and path. The script never kills this process, so
the log has all requests.
"""

import os
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Pages(SimpleHTTPRequestHandler):
    """Answers with a file, or with status 404."""

    protocol_version = "HTTP/1.1"
    # The head and the body of an answer are two writes.
    disable_nagle_algorithm = True
    log_file = -1

    def list_directory(self, path):
        self.send_error(404)

    def log_request(self, code="-", size="-"):
        # A line is one write, so that threads do not mix their lines.
        os.write(self.log_file, f"{int(code)} {self.path}\n".encode())

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *_):
        """Ignores errors, because killed spiders break their connections."""


def main():
    folder, log, port = sys.argv[1:]
    Pages.log_file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    server = Server(("127.0.0.1", 0), partial(Pages, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    unfinished = Path(port).with_suffix(".unfinished")
    unfinished.write_text(str(server.server_port))
    unfinished.rename(port)
    sys.stdin.read()


if __name__ == "__main__":
    main()
