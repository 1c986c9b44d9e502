"""A link between a node and its database that can be made worse: an answer lost, a call held back, nothing let through, cut."""
import socket
import threading

# What the call that writes a run's end has in it, by the kind of store.
COMMIT = dict(postgresql=b'select v.n, v.noted', mariadb=b'"op":"commit"')


class Proxy:
    def __init__(self, server_port, kind):
        self.server_port, self.commit = server_port, COMMIT[kind]
        self.lock = threading.Condition()
        self.drop, self.hold, self.held, self.silent, self.hits = False, False, 0, False, 0
        self.pairs = []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(('127.0.0.1', self.server_port))
            except OSError:
                return
            pair = Pair(self, client, server)
            with self.lock:
                self.pairs.append(pair)
            for one_way in (pair.upwards, pair.downwards):
                threading.Thread(target=one_way, daemon=True).start()

    def drop_reply(self):
        """Of the next end of a run: it takes effect, and nobody is told."""
        with self.lock:
            self.drop = True

    def hold_commit(self):
        with self.lock:
            self.hold = True

    def release(self):
        with self.lock:
            self.hold, self.held = False, 0
            self.lock.notify_all()

    def blackhole(self):
        with self.lock:
            self.silent = True

    def open(self):
        with self.lock:
            self.silent = False
            self.lock.notify_all()

    def reset(self):
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for pair in pairs:
            pair.close()

    def end(self):
        self.listener.close()
        self.release()
        self.open()
        self.reset()


class Pair:
    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server, self.swallow = proxy, client, server, False

    def upwards(self):
        proxy = self.proxy
        for data in self.read(self.client):
            with proxy.lock:
                if proxy.commit in data and proxy.drop:
                    proxy.drop, self.swallow = False, True
                if proxy.commit in data and proxy.hold:
                    proxy.hold, proxy.held = False, 1
                    proxy.hits += 1
                    proxy.lock.wait_for(lambda: not proxy.held)
                proxy.lock.wait_for(lambda: not proxy.silent)
            self.write(self.server, data)
        # What is on its way still arrives: a client that has gone away does not unsay it.
        try:
            self.server.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def downwards(self):
        proxy = self.proxy
        for data in self.read(self.server):
            with proxy.lock:
                proxy.lock.wait_for(lambda: not proxy.silent)
                if self.swallow:
                    proxy.hits += 1
            if self.swallow:
                break
            self.write(self.client, data)
        self.close()

    @staticmethod
    def read(end):
        while True:
            try:
                data = end.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            yield data

    @staticmethod
    def write(end, data):
        try:
            end.sendall(data)
        except OSError:
            pass

    def close(self):
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
