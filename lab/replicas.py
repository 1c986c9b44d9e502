"""A primary with a replica: begun together, cut from each other, the primary killed, the replica promoted. Both know how far each has got."""
import os
import shutil
import signal

from program import eventually
from proxy import Proxy
from servers import Mariadb, Postgres, Server, program, run


class Standby(Postgres):
    """A streaming replica of another server."""

    def __init__(self, primary):        # the primary's way of beginning, on a copy
        Server.__init__(self)
        self.postgres, self.psql, self.user = primary.postgres, primary.psql, primary.user
        if self.user:
            shutil.chown(self.folder, self.user['user'])
            os.chmod(self.folder, 0o755)
            open(self.log, 'a').close()
        self.data = os.path.join(self.folder, 'data')
        run([program('pg_basebackup', 'postgresql-client'), '-D', self.data, '-R', '-X', 'stream', '-c', 'fast', '--no-sync', '-d',
             primary.url()], cwd=self.folder, **self.user)
        self.begin()


def each(question, *places):
    """What each (server, place) answers to the question for it; None of one that does not answer."""
    found = []
    for server, where in places:
        try:
            found.append(server.ask(question(where)) if server.processes() else None)
        except RuntimeError:
            found.append(None)
    return found


class PostgresPair(Postgres):
    """Streaming replication. Who uses it knows both addresses, and writes where writing is allowed."""
    unit = 'bytes of its log'

    def __init__(self, synchronous):
        super().__init__()
        try:
            self.standby = Standby(self)
            if synchronous:
                self.ask("alter system set synchronous_standby_names = '*'", 'select pg_reload_conf()')
            eventually('the replica', lambda: self.ask("select count(*) from pg_stat_replication where state = 'streaming' and sync_state = "
                                                       f"'{'sync' if synchronous else 'async'}'") == '1')
        except BaseException:
            self.stop()
            raise

    def url(self):
        ports = [self.port] + ([self.standby.port] if hasattr(self, 'standby') else [])
        return f'postgresql://postgres@{",".join(f"127.0.0.1:{port}" for port in ports)}/postgres'

    def fresh(self, name):
        return f'{self.url()}?target_session_attrs=read-write&schema={name}'

    def cut(self):
        """The replica hears nothing of the primary any more; what it has got stays."""
        self.standby.ask("alter system set primary_conninfo = ''", 'select pg_reload_conf()')
        eventually('the cut', lambda: self.ask('select count(*) from pg_stat_replication') == '0')

    def promote(self):
        """The replica's word counts from here on."""
        self.standby.tell_all(signal.SIGCONT)
        if self.standby.ask('select pg_promote(true, 60)') != 't':
            raise RuntimeError('the replica was not promoted within 60 s')

    def reached(self):
        """-> how far (primary, replica) have written and played their log; None of one that does not answer"""
        found = each("select {} - '0/0'::pg_lsn".format, (self, 'pg_current_wal_lsn()'), (self.standby, 'pg_last_wal_replay_lsn()'))
        return tuple(int(float(v)) if v else None for v in found)

    def stop(self):
        if hasattr(self, 'standby'):
            self.standby.stop()
        super().stop()


class MariadbPair(Mariadb):
    """Replication by GTID, rows in the binary log. Nodes know one address, which leads to the primary and is led to the replica when that is
    promoted, as an address that moves or a proxy does."""
    unit = 'transactions'
    # A commit that waits for its replica waits for good: after a time-out it would be acknowledged all the same.
    FOR_EVER = 4 * 10**9      # ms
    BINLOG = ('--log-bin=bin', '--log-slave-updates=1', '--binlog-format=ROW', '--sync-binlog=1', '--gtid-strict-mode=1',
              '--log-bin-trust-function-creators=1', '--rpl-semi-sync-master-wait-point=AFTER_SYNC')

    def __init__(self, synchronous):
        super().__init__(options=(*self.BINLOG, '--server-id=1', f'--rpl-semi-sync-master-timeout={self.FOR_EVER}'))
        try:
            self.standby = Mariadb(options=(*self.BINLOG, '--server-id=2', '--read-only=1', f'--rpl-semi-sync-slave-enabled={int(synchronous)}'))
            self.address = Proxy(self.port, 'mariadb')
            self.standby.ask(f"change master to master_host = '127.0.0.1', master_port = {self.port}, master_user = 'root', "
                             'master_use_gtid = slave_pos, master_connect_retry = 1', 'start slave')
            eventually('the replica', lambda: self.replica('Slave_IO_Running') == self.replica('Slave_SQL_Running') == 'Yes')
            if synchronous:
                self.ask('set global rpl_semi_sync_master_enabled = 1')
                eventually('a replica that is waited for', lambda: self.ask("show status like 'Rpl_semi_sync_master_clients'").split()[-1] == '1')
        except BaseException:
            self.stop()
            raise

    def replica(self, what):
        """One line of what the replica says of itself."""
        for line in self.standby.ask('show slave status', vertical=True).splitlines():
            name, _, value = line.strip().partition(': ')
            if name.rstrip(':') == what:
                return value
        return None

    def fresh(self, name):
        return f'mariadb://root@127.0.0.1:{self.address.port}/{name}'

    def cut(self):
        self.standby.ask('stop slave io_thread')

    def promote(self):
        """First it plays all that it has got."""
        self.standby.ask('stop slave io_thread')
        eventually('what it has got', lambda: self.standby.ask('select @@gtid_slave_pos') == self.replica('Gtid_IO_Pos'))
        self.standby.ask('stop slave', 'reset slave all', 'set global read_only = 0')
        self.address.lead_to(self.standby.port)

    def reached(self):
        found = each('select {}'.format, (self, '@@gtid_binlog_pos'), (self.standby, '@@gtid_current_pos'))
        return tuple(int(v.rpartition('-')[2]) if v else None for v in found)      # domain-server-number

    def stop(self):
        if hasattr(self, 'address'):
            self.address.end()
        if hasattr(self, 'standby'):
            self.standby.stop()
        super().stop()


def pair(kind, replication):
    """For its caller alone, who stops it."""
    return dict(postgresql=PostgresPair, mariadb=MariadbPair)[kind](replication == 'synchronous')


def lag(server):
    """-> how far the replica is behind; None where there is none. The primary is asked first: 0 says that the replica has all that there was then."""
    if not hasattr(server, 'standby'):
        return None
    primary, replica = server.reached()
    behind = None if primary is None or replica is None else max(0, primary - replica)
    return dict(primary=primary, replica=replica, behind=behind, of=server.unit)
