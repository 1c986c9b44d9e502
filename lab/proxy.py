"""A link between a node and its database that can be made worse: an answer lost, a call held back, nothing let through, cut."""
import socket
import threading
import time

# What the call that writes a run's end has in it, by the kind of store.
COMMIT = dict(postgresql=b'select v.n, v.noted', mariadb=b"r.op = 'commit'")


class Proxy:
    def __init__(self, server_port, kind):
        self.server_port, self.commit = server_port, COMMIT[kind]
        self.lock = threading.Condition()
        self.drop, self.hold, self.again, self.held, self.hits = False, False, False, 0, 0
        self.shut, self.delay = set(), 0      # which ways carry nothing, 'up' to the server and 'down'; seconds that each piece takes
        self.pairs = []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(('127.0.0.1', self.server_port))
            except OSError:                # the server is away, and comes back
                client.close()
                continue
            pair = Pair(self, client, server)
            with self.lock:
                self.pairs.append(pair)
            for one_way in (pair.upwards, pair.downwards):
                threading.Thread(target=one_way, daemon=True).start()

    def drop_reply(self, for_all=False):
        """Of the next end of a run, or of all until release: it takes effect, and nobody is told."""
        with self.lock:
            self.drop, self.again = True, for_all

    def hold_commit(self, for_all=False):
        """The next end of a run, or all, is on its way until release, and its client is told at once that the connection broke."""
        with self.lock:
            self.hold, self.again = True, for_all

    def release(self):
        with self.lock:
            self.hold, self.drop, self.again, self.held = False, False, False, 0
            self.lock.notify_all()

    def blackhole(self):
        self.shut_ways('up', 'down')

    def mute(self):
        """Nothing comes to the server any more; its answers would."""
        self.shut_ways('up')

    def deafen(self):
        """All comes to the server, and no answer back."""
        self.shut_ways('down')

    def shut_ways(self, *ways):
        with self.lock:
            self.shut |= set(ways)

    def slow(self, seconds):
        """Each piece takes so long, each way."""
        self.delay = seconds

    def open(self):
        with self.lock:
            self.shut, self.delay = set(), 0
            self.lock.notify_all()

    def lead_to(self, server_port):
        """Another server from here on; who is connected to the old one is cut off."""
        self.server_port = server_port
        self.reset()

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
            time.sleep(proxy.delay)
            with proxy.lock:
                if proxy.commit in data and proxy.drop:
                    proxy.drop, self.swallow = proxy.again, True
                if proxy.commit in data and proxy.hold:
                    proxy.hold, proxy.held = proxy.again, 1
                    proxy.hits += 1
                    self.hang_up()
                    proxy.lock.wait_for(lambda: not proxy.held)
                proxy.lock.wait_for(lambda: 'up' not in proxy.shut)
            self.write(self.server, data)
        # What is on its way still arrives: a client that has gone away does not unsay it.
        try:
            self.server.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def downwards(self):
        proxy = self.proxy
        for data in self.read(self.server):
            time.sleep(proxy.delay)
            with proxy.lock:
                proxy.lock.wait_for(lambda: 'down' not in proxy.shut)
                if self.swallow:
                    proxy.hits += 1
            if self.swallow:
                break
            self.write(self.client, data)
        self.close()

    def hang_up(self):
        try:
            self.client.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

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
